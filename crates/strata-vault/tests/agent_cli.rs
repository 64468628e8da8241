//! A memory folder of the memory-proxy design's program is opened as it is.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use strata_core::store::{Change, ChangeSet, CheckDepth, MemoryQuery, MemorySelect, SummaryQuery, TurnQuery};
use strata_core::summary::Strategy;
use strata_core::turn::{Hidden, HiddenReason, Metadata, NewTurn, Role, TurnNotes};
use strata_core::{Memory, SessionId, Store, TurnId, UserId};
use strata_vault::{Committed, Git};
use support::{content, open};

/// The files below a folder with their bytes, without Strata's own.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != ".strata" {
                walk(root, &path, files);
            } else if path.is_file() {
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found
}

fn copy_of_the_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent_cli");
    for (name, bytes) in files(&source) {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    // What no fixture can hold: its database of vectors, and its own history.
    for (name, bytes) in [
        ("chroma/chroma.sqlite3", &b"SQLite format 3\0\x10"[..]),
        ("chroma/6f0c/data_level0.bin", &[0, 159, 146, 150]),
        (".gitignore", b"chroma/\nmemory_index.json\n"),
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    for arguments in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "Update facts"]] {
        git(folder.path(), arguments);
    }
    folder
}

fn git(root: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(root).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_folders_own_history_goes_on() {
    let folder = copy_of_the_folder();
    let root = folder.path();
    let (before, first) = (files(root), git(root, &["rev-parse", "HEAD"]));
    let store = open(root).await;
    let history = Git::new(root, support::options().clock).unwrap();
    assert_eq!(history.commit().await.unwrap(), Committed::Nothing);
    let fact = root.join("entries/kitchen/facts/mine.md");
    fs::write(&fact, "---\nid: mine\nrole: memory\ncreated_at: 2026-05-01\n---\nOwns a copper pan\n")
        .unwrap();
    store.sync().await.unwrap();
    assert_eq!(history.commit().await.unwrap(), Committed::Commit("Add 1 memory".to_owned()));
    assert_eq!(git(root, &["rev-parse", "HEAD~1"]), first);
    assert_eq!(git(root, &["show", "--name-only", "--format="]), "entries/kitchen/facts/mine.md\n");
    store.undo(None).await.unwrap();
    assert!(!fact.exists());
    let after = files(root);
    let is_history = |name: &str| name.starts_with(".git/") || name.contains("deleted");
    let stayed = before.iter().filter(|(name, _)| !is_history(name));
    stayed.for_each(|(name, bytes)| assert_eq!(after.get(name), Some(bytes), "{name}"));
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_folder_is_read_without_a_change() {
    let folder = copy_of_the_folder();
    let before = files(folder.path());
    let store = open(folder.path()).await;
    let me = UserId::default();
    let kitchen = SessionId::new("kitchen").unwrap();
    let query = TurnQuery::Range { session: kitchen.clone(), after: None, limit: 9 };
    let turns = store.turns(&me, &query).await.unwrap();
    assert_eq!(
        turns.iter().map(|turn| (turn.seq, turn.role)).collect::<Vec<_>>(),
        [(0, Role::User), (1, Role::Assistant), (2, Role::User)]
    );
    assert_eq!(turns[2].content, "The oven door hinge broke,\nand the spare part takes two weeks.");
    let memories = store.memories(&me, &MemoryQuery::new(MemorySelect::All)).await.unwrap();
    let of = |text: &str| memories.iter().find(|memory| memory.content.contains(text)).unwrap();
    assert_eq!(memories.len(), 5);
    assert_eq!(of("bread").session, None, "`global` holds for all sessions");
    assert_eq!(of("sage").session.as_ref(), Some(&kitchen));
    assert_eq!(of("sage").source_turns, [turns[0].id]);
    let white = of("white");
    assert_eq!((white.replaced_by, white.valid_to), (Some(of("sage").id), Some(of("sage").valid_from)));
    assert_eq!(of("gas stove").hidden.unwrap().reason, HiddenReason::Deleted);
    let query = SummaryQuery { session: kitchen, strategy: Some(Strategy::Tree), status: None, limit: 9 };
    let mut levels: Vec<u8> =
        store.summaries(&me, &query).await.unwrap().iter().map(|summary| summary.level).collect();
    levels.sort_unstable();
    assert_eq!(levels, [1, 1, 2, 3]);
    assert!(store.check(CheckDepth::Thorough).await.unwrap().problems.is_empty());
    store.close().await.unwrap();
    assert_eq!(files(folder.path()), before, "nothing is written without need");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_folder_is_extended() {
    let folder = copy_of_the_folder();
    let before = files(folder.path());
    let store = open(folder.path()).await;
    let me = UserId::default();
    let at = jiff::Timestamp::from_second(1_790_000_000).unwrap();
    let turn = NewTurn {
        id: TurnId(uuid::Uuid::from_u128(5)),
        role: Role::User,
        name: None,
        content: "The hinge arrived.".to_owned(),
        created_at: at,
        token_count: 4,
        metadata: Metadata::new(),
        notes: TurnNotes::default(),
        hidden: None,
    };
    let session = SessionId::new("kitchen").unwrap();
    let append = Change::AppendTurns { session, turns: vec![turn] };
    let applied = store.apply(&me, ChangeSet::one(at, append)).await.unwrap();
    assert_eq!(applied.turns[0].seq, 3);
    let memories = store.memories(&me, &MemoryQuery::new(MemorySelect::All)).await.unwrap();
    let oven: &Memory = memories.iter().find(|memory| memory.content.contains("oven")).unwrap();
    let hidden = Some(Hidden { reason: HiddenReason::Evicted, at });
    store.apply(&me, ChangeSet::one(at, Change::HideMemory { id: oven.id, hidden })).await.unwrap();
    let after = files(folder.path());
    let changed: Vec<&String> =
        before.iter().filter(|(name, bytes)| after.get(*name) != Some(bytes)).map(|(name, _)| name).collect();
    assert_eq!(changed.len(), 1, "only the evicted fact has moved: {changed:?}");
    let moved = changed[0].replace("kitchen/facts", "kitchen/deleted/facts");
    let text = String::from_utf8(after[&moved].clone()).unwrap();
    assert!(
        text.contains("hidden: evicted\n")
            && text.contains(&format!("source_id: {}\n", oven.source_turns[0])),
        "{text}"
    );
    let all = content(&store).await;
    store.close().await.unwrap();
    fs::remove_dir_all(folder.path().join(".strata")).unwrap();
    let store = open(folder.path()).await;
    assert_eq!(content(&store).await, all);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_goes_on_in_the_folder_that_agent_cli_has_named() {
    let folder = tempfile::tempdir().unwrap();
    let said = "---\nid: 7d0f3a01-5b1c-4e8a-9c1d-2f6b8a9e0c01\nconversation_id: summer house/2026\nrole: user\n\
                created_at: \"2026-01-01T10:00:00\"\n---\nThe roof leaks.\n";
    let turns = folder.path().join("entries/summer_house_2026/turns/user");
    fs::create_dir_all(&turns).unwrap();
    fs::write(turns.join("2026-01-01T10-00-00__7d0f3a01-5b1c-4e8a-9c1d-2f6b8a9e0c01.md"), said).unwrap();
    let store = open(folder.path()).await;
    let me = UserId::default();
    let at = jiff::Timestamp::from_second(1_790_000_000).unwrap();
    for (number, name) in [(5, "summer house/2026"), (6, "summer_house/2026")] {
        let turn = NewTurn {
            id: TurnId(uuid::Uuid::from_u128(number)),
            role: Role::User,
            name: None,
            content: "The roof is mended.".to_owned(),
            created_at: at,
            token_count: 4,
            metadata: Metadata::new(),
            notes: TurnNotes::default(),
            hidden: None,
        };
        let session = SessionId::new(name).unwrap();
        let append = Change::AppendTurns { session, turns: vec![turn] };
        store.apply(&me, ChangeSet::one(at, append)).await.unwrap();
    }
    assert_eq!(fs::read_dir(&turns).unwrap().count(), 2, "agent-cli reads this folder alone");
    let other = folder.path().join("entries/summer_house%2F2026/turns/user");
    assert_eq!(fs::read_dir(other).unwrap().count(), 1);
    let all = content(&store).await;
    store.close().await.unwrap();
    fs::remove_dir_all(folder.path().join(".strata")).unwrap();
    let store = open(folder.path()).await;
    assert_eq!(content(&store).await, all);
    store.close().await.unwrap();
}
