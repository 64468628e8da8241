//! A vault with a clock and ids of its own, and its content as one text.

#![allow(dead_code, reason = "not every test file uses all of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use jiff::Timestamp;
use strata_core::ports::{Clock, IdSource};
use strata_core::store::{
    CheckDepth, ItemKinds, KeyQuery, MemoryQuery, MemorySelect, Page, SESSION_PURPOSES, SummaryQuery,
    TextMatch, TextQuery, TurnQuery, session_space,
};
use strata_core::{Memory, Session, Store, UserId};
use strata_vault::{Git, VaultOptions, VaultStore};
use tempfile::TempDir;
use uuid::Uuid;

/// A clock that starts at a fixed time and moves by a second with each look.
pub(crate) struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + self.0.fetch_add(1, Ordering::Relaxed)).unwrap()
    }
}

/// The time of the machine, which the ages of files are compared with.
pub(crate) struct Now;

impl Clock for Now {
    #[allow(clippy::disallowed_methods, reason = "ages of real files")]
    fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(Timestamp::now().as_microsecond()).unwrap()
    }
}

pub(crate) fn git_at(root: &Path) -> Git {
    Git::new(root, Arc::new(Now)).unwrap()
}

/// What git prints for a person's command.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(root).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Ids that never repeat in one test process.
pub(crate) struct Counted;

static NEXT: AtomicU64 = AtomicU64::new(1);

impl IdSource for Counted {
    fn next(&self) -> Uuid {
        Uuid::from_u128(
            0x0190_0000_0000_7000_8000_0000_0000_0000 + u128::from(NEXT.fetch_add(1, Ordering::Relaxed)),
        )
    }
}

pub(crate) fn options() -> VaultOptions {
    VaultOptions::new(Arc::new(Ticking(AtomicI64::new(0))), Arc::new(Counted))
}

pub(crate) async fn open(root: &Path) -> VaultStore {
    VaultStore::open(root, options()).await.unwrap()
}

/// Everything that a rebuild has to bring back, as text.
pub(crate) async fn content(store: &dyn Store) -> String {
    let mut text = String::new();
    for user in store.users(Page::first(u32::MAX)).await.unwrap() {
        text.push_str(&format!("user {user}\n"));
        let mut sessions = store.sessions(&user, Page::first(u32::MAX)).await.unwrap();
        sessions.sort_by(|a, b| a.id.cmp(&b.id));
        for session in sessions {
            // The version counts writes to the index.
            text.push_str(&format!("{:?}\n", Session { version: 0, ..session.clone() }));
            for purpose in SESSION_PURPOSES {
                let progress = store.progress(&user, &session_space(purpose, &session.id)).await.unwrap();
                text.push_str(&format!("{purpose} {progress}\n"));
            }
            let query = TurnQuery::Range { session: session.id.clone(), after: None, limit: u32::MAX };
            for turn in store.turns(&user, &query).await.unwrap() {
                text.push_str(&format!("{turn:?}\n"));
            }
            let query =
                SummaryQuery { session: session.id.clone(), strategy: None, status: None, limit: u32::MAX };
            let mut summaries = store.summaries(&user, &query).await.unwrap();
            summaries.sort_by_key(|summary| summary.id);
            summaries.iter().for_each(|summary| text.push_str(&format!("{summary:?}\n")));
        }
        let mut memories = store.memories(&user, &MemoryQuery::new(MemorySelect::All)).await.unwrap();
        memories.sort_by_key(|memory| memory.id);
        memories.iter().for_each(|memory| text.push_str(&format!("{memory:?}\n")));
    }
    let query = KeyQuery { revoked: true, ..KeyQuery::unrevoked(Page::first(u32::MAX)) };
    let mut keys = store.keys(&query).await.unwrap();
    keys.sort_by_key(|key| key.id);
    keys.iter().for_each(|key| text.push_str(&format!("{}\n", serde_json::to_string(key).unwrap())));
    text
}

pub(crate) fn write(root: &Path, path: &str, text: &str) -> PathBuf {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

pub(crate) async fn all(store: &VaultStore) -> Vec<Memory> {
    let mut all = store.memories(&UserId::default(), &MemoryQuery::new(MemorySelect::All)).await.unwrap();
    all.sort_by(|a, b| a.content.cmp(&b.content));
    all
}

pub(crate) async fn current(store: &VaultStore) -> Vec<String> {
    all(store).await.into_iter().filter(Memory::is_current).map(|memory| memory.content).collect()
}

pub(crate) async fn found(store: &VaultStore, words: &str) -> Vec<String> {
    let query = TextQuery {
        text: words.to_owned(),
        matching: TextMatch::Words,
        session: None,
        kinds: ItemKinds::ALL,
        as_of: None,
        keep: None,
        limit: 9,
    };
    let hits = store.search(&UserId::default(), &query).await.unwrap();
    hits.into_iter().map(|hit| hit.item.content().to_owned()).collect()
}

pub(crate) async fn problems(store: &VaultStore) -> Vec<String> {
    assert!(store.check(CheckDepth::Quick).await.unwrap().problems.is_empty(), "the store can serve");
    store.check(CheckDepth::Thorough).await.unwrap().problems
}

/// All Markdown files below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return files };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

pub(crate) async fn vault() -> (TempDir, VaultStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    (folder, store)
}

/// Waits until a condition holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(mut condition: impl FnMut() -> F) {
    let waiting = async {
        while !condition().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), waiting)
        .await
        .expect("the condition did not come to hold");
}
