//! Forgetting in a vault: files go, whatever is in them, and no byte of them stays in what Strata derives from them.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

mod support;

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use strata_core::store::{Change, ChangeSet, Forget};
use strata_core::{SessionId, Store, UserId};
use strata_vault::VaultStore;
use support::{all, files, found, problems, vault, write};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forgetting_removes_files_that_cannot_be_read_too() {
    let (folder, store) = vault().await;
    let root = folder.path();
    let outside = tempfile::tempdir().unwrap();
    let kept = write(outside.path(), "kept.md", "Outside\n");
    write(root, "users/bo/entries/global/facts/a.md", "Bo likes plums\n");
    write(root, "users/bo/entries/trip/facts/broken.md", "---\nid: [\n---\nBo's secret\n");
    std::os::unix::fs::symlink(&kept, root.join("users/bo/entries/trip/facts/link.md")).unwrap();
    let own = write(root, "users/bo/entries/trip/photo.txt", "not Strata's\n");
    write(root, "entries/global/facts/mine.md", "Stays\n");
    write(root, "entries/trip/facts/broken.md", "---\nid: [\n---\nstays\n");
    write(root, "entries/trip/turns/user/hello.md", "We leave at noon\n");
    let unnamed = std::ffi::OsStr::from_bytes(b"users/bo/entries/trip/facts/\xff.md");
    fs::write(root.join(unnamed), "Bo's name is not UTF-8\n").unwrap();
    write(root, &format!("users/bo/entries/{}/far.md", "deep/".repeat(20)), "Too far away\n");
    write(root, "users/bo/entries/trip/facts/.a.md.swp", "Bo's secret, half edited\n");
    write(root, "users/bo/entries/deleted/trip/facts/old.md", "---\nid: [\n---\nBo's old secret\n");
    store.sync().await.unwrap();
    assert_eq!(problems(&store).await.len(), 6);
    // A folder takes the place of a file that Strata knows.
    let known = root.join("users/bo/entries/global/facts/a.md");
    fs::remove_file(&known).unwrap();
    fs::create_dir(known).unwrap();
    let forget = ChangeSet::one(jiff::Timestamp::UNIX_EPOCH, Change::Forget(Forget::User));
    store.apply(&UserId::new("bo").unwrap(), forget).await.unwrap();
    assert_eq!(files(&root.join("users")), [own]);
    assert!(kept.exists());
    assert_eq!(files(&root.join("entries")).len(), 3);
    assert_eq!(problems(&store).await.len(), 1);
    let session = Forget::Session(strata_core::SessionId::new("trip").unwrap());
    store
        .apply(&UserId::default(), ChangeSet::one(jiff::Timestamp::UNIX_EPOCH, Change::Forget(session)))
        .await
        .unwrap();
    assert_eq!(files(&root.join("entries")).len(), 1);
    assert!(problems(&store).await.is_empty());
}

/// A word that is in the statements, the names of files and the name of the session that are forgotten, and nowhere else.
const SECRET: &str = "zanzibarquuxly";
/// It is looked for without its last letters, whatever the analysis of words makes of them.
const SOUGHT: &[u8] = b"zanzibarqu";

/// The time within which forgotten bytes are gone while the store is open.
const SOON: Duration = Duration::from_secs(2);

/// The files whose names or bytes hold the secret.
fn holding_it(root: &Path) -> Vec<String> {
    let holds = |bytes: &[u8]| bytes.to_ascii_lowercase().windows(SOUGHT.len()).any(|part| part == SOUGHT);
    let is_told = |path: &std::path::PathBuf| {
        holds(path.as_os_str().as_bytes()) || holds(&fs::read(path).unwrap_or_default())
    };
    files(root).into_iter().filter(is_told).map(|path| path.display().to_string()).collect()
}

async fn gone_soon(root: &Path) {
    let since = Instant::now();
    loop {
        let left = holding_it(root);
        if left.is_empty() {
            return;
        }
        assert!(since.elapsed() < SOON, "still in {left:?}");
        tokio::task::yield_now().await;
    }
}

async fn forget(store: &VaultStore, user: &UserId, what: Forget) {
    let set = ChangeSet::one(jiff::Timestamp::from_second(1_850_000_000).unwrap(), Change::Forget(what));
    store.apply(user, set).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_byte_of_what_was_forgotten_stays() {
    let (folder, store) = vault().await;
    let root = folder.path();
    let user = UserId::new("bo").unwrap();
    for number in 0..300 {
        write(
            root,
            &format!("users/bo/entries/kept/facts/{number}.md"),
            &format!("Bread and salt {number}\n"),
        );
    }
    let statement = format!("Keeps the {SECRET} in the cellar\n");
    let broken = format!("---\nkind: {SECRET}\n---\n{statement}");
    let tell = |place: &str| {
        write(root, &format!("users/bo/entries/{place}/facts/{SECRET}.md"), &statement);
        write(root, &format!("users/bo/entries/{place}/turns/user/{SECRET}-said.md"), &statement);
        write(root, &format!("users/bo/entries/{place}/facts/broken-{SECRET}.md"), &broken);
    };
    for what in ["session", "user"] {
        tell(&format!("{SECRET}-trip"));
        store.sync().await.unwrap();
        assert!(holding_it(root).len() > 3, "it was never there: {:?}", holding_it(root));
        match what {
            "session" => {
                let session = SessionId::new(format!("{SECRET}-trip")).unwrap();
                forget(&store, &user, Forget::Session(session)).await;
            }
            _ => forget(&store, &user, Forget::User).await,
        }
        gone_soon(root).await;
    }
    // One memory, in a file that a person has named.
    write(root, &format!("entries/global/facts/{SECRET}.md"), &statement);
    write(root, "entries/global/facts/other.md", "Bread and salt\n");
    store.sync().await.unwrap();
    let id = all(&store).await.iter().find(|memory| memory.content.contains(SECRET)).unwrap().id;
    forget(&store, &UserId::default(), Forget::Memory(id)).await;
    gone_soon(root).await;
    assert_eq!(found(&store, "bread salt").await, ["Bread and salt"]);
    store.close().await.unwrap();
    assert_eq!(holding_it(root), Vec::<String>::new());
}
