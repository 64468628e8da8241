//! A vault that somebody else has filled: links, bombs, wrong encodings, odd names, and very many files.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use strata_core::store::{Change, ChangeSet};
use strata_core::{Memory, SessionId, Store, UserId};
use support::{all, files, found, problems, vault, write};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_vault_neither_escapes_nor_crashes() {
    use std::os::unix::ffi::OsStrExt;

    let (folder, store) = vault().await;
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), "facts/secret.md", "Secret outside\n");
    let known = write(folder.path(), "entries/s/facts/known.md", "Known inside\n");
    store.sync().await.unwrap();
    symlink(outside.path().join("facts/secret.md"), folder.path().join("entries/s/facts/link.md")).unwrap();
    symlink(outside.path(), folder.path().join("entries/out")).unwrap();
    symlink(folder.path().join("entries"), folder.path().join("entries/loop")).unwrap();
    fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"entries/s/facts/\xff.md")), "odd").unwrap();
    write(folder.path(), "entries/s/facts/utf16.md", "x");
    fs::write(folder.path().join("entries/s/facts/utf16.md"), [0xff, 0xfe, 0x41, 0x00]).unwrap();
    write(
        folder.path(),
        "entries/s/facts/far.md",
        "---\nid: f\nrole: user\nseq: 18446744073709551615\nconversation_id: \"../../up\"\n---\nhi\n",
    );
    fs::remove_file(&known).unwrap();
    fs::create_dir(&known).unwrap();
    store.sync().await.unwrap();
    // What Strata writes for a session with such a name lies in the vault.
    let up = SessionId::new("../../up").unwrap();
    let state = Change::PutState { session: up, state: Box::default() };
    store.apply(&UserId::default(), ChangeSet::one(jiff::Timestamp::UNIX_EPOCH, state)).await.unwrap();
    assert!(folder.path().join("entries/%2E.%2F..%2Fup/session.json").is_file());
    for above in [folder.path(), folder.path().parent().unwrap()] {
        assert!(fs::symlink_metadata(above.join("up")).is_err());
    }
    let listed = problems(&store).await.join("\n");
    for expected in [
        "link.md`: it is a symbolic link",
        "entries/out`: it is a symbolic link",
        "entries/loop`",
        "not UTF-8; rename",
        "utf16.md`, line 1: the file is not UTF-8",
    ] {
        assert!(listed.contains(expected), "{expected} in\n{listed}");
    }
    assert!(found(&store, "secret outside").await.is_empty());
    assert_eq!(all(&store).await.len(), 1, "the memory whose file became a folder is deleted, not lost");
    // A session whose folder is a link out of the vault cannot be written.
    let memory = Memory {
        id: strata_core::MemoryId(uuid::Uuid::from_u128(77)),
        session: Some(SessionId::new("out").unwrap()),
        content: "goes out".to_owned(),
        ..all(&store).await.remove(0)
    };
    let add = ChangeSet::one(
        jiff::Timestamp::UNIX_EPOCH,
        Change::AddMemory(Box::new(Memory { hidden: None, ..memory })),
    );
    let error = store.apply(&UserId::default(), add).await.unwrap_err();
    assert!(error.message().contains("not a folder"), "{error}");
    assert_eq!(files(outside.path()).len(), 1);
    // The others can still be written.
    write(folder.path(), "entries/s/facts/fine.md", "Fine\n");
    store.sync().await.unwrap();
    assert_eq!(found(&store, "fine").await, ["Fine"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_cannot_be_looked_into_does_not_hide_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let nested = |levels: usize| vec!["x".repeat(250); levels].join("/");
    let root = &folder.path().join(nested(1));
    let store = support::open(root).await;
    write(root, "entries/a/facts/first.md", "First\n");
    store.sync().await.unwrap();
    // No system call takes the whole path of the innermost folder.
    write(root, &format!("elsewhere/{}/lost.md", nested(9)), "Too far away\n");
    let outer = root.join("entries/b").join(nested(9));
    fs::create_dir_all(&outer).unwrap();
    fs::rename(root.join("elsewhere").join(nested(1)), outer.join(nested(1))).unwrap();
    write(root, "entries/c/facts/last.md", "Last\n");
    store.sync().await.unwrap();
    assert_eq!(support::current(&store).await, ["First", "Last"]);
    let listed = problems(&store).await;
    assert!(listed.len() == 1 && listed[0].contains("it cannot be read: "), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_with_a_far_place_makes_no_files() {
    let (folder, store) = vault().await;
    let far = "---\nid: far\nrole: user\nseq: 9999\ncreated_at: 2026-01-01\nconversation_id: s\n---\nhi\n";
    write(folder.path(), "entries/s/turns/user/far.md", far);
    store.sync().await.unwrap();
    assert_eq!(files(&folder.path().join("entries")).len(), 1);
    let before = support::content(&store).await;
    // Neither after a death, when missing files are written.
    drop(store);
    let store = support::open(folder.path()).await;
    assert_eq!(files(&folder.path().join("entries")).len(), 1);
    store.close().await.unwrap();
    fs::remove_dir_all(folder.path().join(".strata")).unwrap();
    let store = support::open(folder.path()).await;
    assert!(support::content(&store).await == before);
}

/// Files of each kind of [`plant`].
const EACH: usize = 12_500;

/// Writes eight files. One in a hundred can be used and one in fifty is a bomb, because both take long; the others are refused
/// sooner.
fn plant(folder: &Path, outside: &Path, number: usize) {
    let at = |name: &str| folder.join(format!("{name}-{number}.md"));
    let fine = match number % 100 {
        0 => format!("The harbour of number {number} freezes over\n"),
        _ => "---\nrole: [1, 2]\n---\nNo role\n".to_owned(),
    };
    fs::write(at("fine"), fine).unwrap();
    fs::write(at("bomb"), if number.is_multiple_of(50) { BOMB } else { "---\nid: {\n" }).unwrap();
    fs::write(at("latin"), b"---\nid: caf\xe9\n---\nThe caf\xe9 is closed\n").unwrap();
    fs::write(at("wide"), [0xff, 0xfe, b'A', 0, number as u8, 0]).unwrap();
    fs::write(at("open"), "---\nid: [\n---\nNever closed\n").unwrap();
    fs::write(at("zero"), "Zero\0 byte\n").unwrap();
    symlink(outside, at("link")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("folder").join("inside.md"), "---\n- a list\n---\nNo keys\n").unwrap();
}

/// Nine times nine times … times nine nodes.
const BOMB: &str = "---\na: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n\
    c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]\n\
    e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e]\n---\nBoom\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_hostile_files_leave_the_rest_in_use() {
    let (folder, store) = vault().await;
    let outside = tempfile::tempdir().unwrap();
    let secret = write(outside.path(), "secret.md", "Secret outside\n");
    let known = write(folder.path(), "entries/global/facts/known.md", "The ferry leaves at nine\n");
    store.sync().await.unwrap();
    for number in 0..EACH {
        let facts = folder.path().join(format!("entries/s{}/facts", number % 50));
        fs::create_dir_all(&facts).unwrap();
        plant(&facts, &secret, number);
    }
    store.sync().await.unwrap();
    let listed = problems(&store).await;
    assert!(listed.len() < 100, "a report of {} lines is not read by anybody", listed.len());
    let count = store.problem_count().await.unwrap();
    assert_eq!(
        listed.last(),
        Some(&format!("{} further files cannot be used", count as usize - listed.len() + 1))
    );
    assert_eq!(found(&store, "the ferry leaves").await, ["The ferry leaves at nine"]);
    assert_eq!(found(&store, "harbour 12000").await[0], "The harbour of number 12000 freezes over");
    assert!(found(&store, "secret outside").await.is_empty());
    // A person goes on working in it.
    fs::write(&known, fs::read_to_string(&known).unwrap().replace("nine", "eleven")).unwrap();
    store.sync().await.unwrap();
    assert_eq!(found(&store, "the ferry leaves").await[0], "The ferry leaves at eleven");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "Secret outside\n");
    store.close().await.unwrap();
}
