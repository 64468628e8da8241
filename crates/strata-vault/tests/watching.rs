//! The watcher, and files that other programs are busy with: links, folders, slow writers, a checkout.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

mod support;

use std::collections::HashSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

use strata_core::Store;
use strata_core::store::{Change, ChangeSet};
use strata_vault::{VaultOptions, VaultStore};
use support::{all, content, current, eventually, found, open, options, problems, vault, write};

async fn watching(root: &Path) -> VaultStore {
    VaultStore::open(root, VaultOptions { watch: true, ..options() }).await.unwrap()
}

/// The inodes that this process watches.
fn watched() -> HashSet<u64> {
    let mut inodes = HashSet::new();
    for entry in fs::read_dir("/proc/self/fdinfo").unwrap().flatten() {
        let info = fs::read_to_string(entry.path()).unwrap_or_default();
        let lines = info.lines().filter(|line| line.starts_with("inotify "));
        let inode = |line: &str| {
            let field = line.split(' ').find_map(|field| field.strip_prefix("ino:"))?;
            u64::from_str_radix(field, 16).ok()
        };
        inodes.extend(lines.filter_map(inode));
    }
    inodes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_watcher_stays_inside_the_vault() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = folder.path();
    let secret = write(outside.path(), "deep/facts/secret.md", "Secret outside\n");
    write(root, "entries/s/facts/known.md", "Known inside\n");
    symlink(outside.path(), root.join("entries/out")).unwrap();
    symlink(root.join("entries"), root.join("entries/loop")).unwrap();
    let store = watching(root).await;
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    assert!(watched().contains(&inode(&root.join("entries/s/facts"))));
    // A link that comes later, in a new folder.
    fs::create_dir_all(root.join("entries/new")).unwrap();
    symlink(outside.path(), root.join("entries/new/facts")).unwrap();
    write(root, "entries/new/inside.md", "New inside\n");
    eventually(|| async { current(&store).await == ["Known inside", "New inside"] }).await;
    for path in [outside.path().to_owned(), outside.path().join("deep"), secret.parent().unwrap().to_owned()]
    {
        assert!(!watched().contains(&inode(&path)), "{} is watched", path.display());
    }
    fs::write(&secret, "Changed outside\n").unwrap();
    write(root, "entries/s/facts/last.md", "Last inside\n");
    eventually(|| async { current(&store).await.len() == 3 }).await;
    assert!(found(&store, "outside").await.is_empty());
    assert_eq!(fs::read_to_string(&secret).unwrap(), "Changed outside\n");
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folders_come_and_go_whatever_their_names_are() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = folder.path();
    write(root, "entries/global/facts/b.md", "The path is open\n");
    let store = watching(root).await;
    write(elsewhere.path(), "trip.2026/facts/a.md", "The hut is closed\n");
    fs::rename(elsewhere.path().join("trip.2026"), root.join("entries/trip.2026")).unwrap();
    eventually(|| async { current(&store).await == ["The hut is closed", "The path is open"] }).await;
    fs::rename(root.join("entries/trip.2026"), root.join("entries/v1.2.md")).unwrap();
    write(root, "entries/v1.2.md/facts/c.md", "The lake is cold\n");
    // Strata writes the id into the file after it has taken it in.
    let is_complete =
        || fs::read_to_string(root.join("entries/v1.2.md/facts/c.md")).unwrap().contains("id: ");
    eventually(|| async { current(&store).await.len() == 3 && is_complete() }).await;
    fs::remove_dir_all(root.join("entries/v1.2.md")).unwrap();
    eventually(|| async { current(&store).await == ["The path is open"] }).await;
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_writer_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "entries/global/facts/old.md", "Old\n");
    let store = watching(folder.path()).await;
    let append = |path: &Path| fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    // A file that is new, and one that Strata knows.
    let new = folder.path().join("entries/global/facts/new.md");
    let (mut one, mut two) = (append(&new), append(&path));
    for words in ["first words", "more words", "last words"] {
        for file in [&mut one, &mut two] {
            writeln!(file, "{words}").unwrap();
            file.flush().unwrap();
        }
        store.sync().await.unwrap();
    }
    drop((one, two));
    let whole = "first words\nmore words\nlast words";
    let is_whole = |path: &Path, text: &str| {
        let written = fs::read_to_string(path).unwrap();
        written.contains("id: ") && written.ends_with(&format!("{text}\n"))
    };
    let expected = [format!("Old\n{whole}"), whole.to_owned()];
    eventually(|| async {
        current(&store).await == expected && is_whole(&path, &expected[0]) && is_whole(&new, whole)
    })
    .await;
    assert!(problems(&store).await.is_empty());
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strata_writes_no_file_that_a_program_is_writing() {
    let (folder, store) = vault().await;
    let path = write(folder.path(), "entries/global/facts/a.md", "Sings\n");
    store.sync().await.unwrap();
    let id = all(&store).await[0].id;
    let mut writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    writeln!(writer, "and dances").unwrap();
    let close = Change::CloseMemory {
        id,
        valid_to: jiff::Timestamp::from_second(1_900_000_000).unwrap(),
        replaced_by: None,
    };
    let change = ChangeSet::one(jiff::Timestamp::UNIX_EPOCH, close);
    store.apply(&strata_core::UserId::default(), change).await.unwrap();
    writeln!(writer, "and paints").unwrap();
    drop(writer);
    store.sync().await.unwrap();
    let texts: Vec<String> = all(&store).await.into_iter().map(|memory| memory.content).collect();
    assert_eq!(texts, ["Sings", "Sings\nand dances\nand paints"]);
    let before = content(&store).await;
    store.close().await.unwrap();
    fs::remove_dir_all(folder.path().join(".strata")).unwrap();
    assert_eq!(content(&open(folder.path()).await).await, before);
}

/// The memories of the next test.
const MEMORIES: usize = 1_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkout_of_a_thousand_files_and_back_destroys_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
        let output = Command::new("git").args(identity).args(arguments).current_dir(root).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    for number in 0..MEMORIES {
        // Every second one is a former statement of the one before it.
        let (place, end) = match number % 2 {
            0 => ("facts", String::new()),
            _ => ("deleted/facts", format!("valid_to: 2026-03-02\nreplaced_by: {}\n", id(number - 1))),
        };
        let (day, id) = (if number % 2 == 0 { "02" } else { "01" }, id(number));
        let text = format!(
            "---\nid: {id}\nrole: memory\nconversation_id: global\ncreated_at: 2026-03-{day}\n{end}---\nFact {number}\n"
        );
        write(root, &format!("entries/global/{place}/{number}.md"), &text);
    }
    // Git writes some of the files slowly, so that others are missing for seconds.
    write(root, ".gitattributes", "99*.md filter=slow\n");
    write(root, ".gitignore", ".strata/\n");
    git(&["init", "--quiet", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "all"]);
    git(&["checkout", "--quiet", "-b", "moved"]);
    fs::create_dir(root.join("entries/work")).unwrap();
    git(&["mv", "entries/global/facts", "entries/global/deleted", "entries/work"]);
    git(&["commit", "--quiet", "-m", "moved"]);
    git(&["checkout", "--quiet", "main"]);
    git(&["config", "filter.slow.smudge", "sleep 0.1; cat"]);
    let store = watching(root).await;
    let before = content(&store).await;
    assert_eq!(all(&store).await.len(), MEMORIES);
    for branch in ["moved", "main"] {
        git(&["checkout", "--quiet", branch]);
        store.sync().await.unwrap();
        assert!(content(&store).await == before, "the checkout of `{branch}` has changed the content");
    }
    assert!(problems(&store).await.is_empty());
    store.close().await.unwrap();
}

fn id(number: usize) -> uuid::Uuid {
    uuid::Uuid::from_u128(0x0190_3333_0000_7000_8000_0000_0000_0000 + number as u128)
}
