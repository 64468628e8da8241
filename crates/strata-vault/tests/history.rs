//! Steps back through a vault's history: each is whole or nothing, and what was forgotten stays forgotten.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's own functions")]

mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use strata_core::store::{Change, ChangeSet, Forget, MemoryQuery, MemorySelect, TurnQuery};
use strata_core::turn::{Metadata, NewTurn, Role, TurnNotes};
use strata_core::{MemoryId, SessionId, Store, TurnId, UserId};
use strata_vault::{Committed, Git, VaultOptions, VaultStore};
use support::{Now, current, files, git_at, open, options, problems, run, write};
use uuid::Uuid;

/// A vault with a history, in which each step is taken in and committed.
struct World {
    folder: tempfile::TempDir,
    store: VaultStore,
    git: Git,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, git) = (open(folder.path()).await, git_at(folder.path()));
        Self { folder, store, git }
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    async fn commit(&self) -> String {
        self.store.sync().await.unwrap();
        match self.git.commit().await.unwrap() {
            Committed::Commit(subject) => subject,
            other => panic!("{other:?}"),
        }
    }

    async fn add(&self, name: &str, text: &str) -> String {
        write(self.root(), &format!("entries/global/facts/{name}.md"), &format!("{text}\n"));
        self.commit().await
    }

    async fn edit(&self, name: &str, from: &str, to: &str) -> String {
        let path = self.root().join(format!("entries/global/facts/{name}.md"));
        fs::write(&path, fs::read_to_string(&path).unwrap().replace(from, to)).unwrap();
        self.commit().await
    }

    async fn say(&self, session: &str, number: u128, text: &str) {
        let turn = NewTurn {
            id: TurnId(Uuid::from_u128(0x0190_7777_0000_7000_8000_0000_0000_0000 + number)),
            role: Role::User,
            name: None,
            content: text.to_owned(),
            created_at: Timestamp::from_second(1_800_000_000 + number as i64).unwrap(),
            token_count: 3,
            metadata: Metadata::new(),
            notes: TurnNotes::default(),
            hidden: None,
        };
        let session = SessionId::new(session).unwrap();
        let at = turn.created_at;
        let append = Change::AppendTurns { session: session.clone(), turns: vec![turn] };
        self.store.apply(&UserId::default(), ChangeSet::one(at, append)).await.unwrap();
    }

    async fn apply(&self, user: &UserId, change: Change) {
        let at = Timestamp::from_second(1_900_000_000).unwrap();
        self.store.apply(user, ChangeSet::one(at, change)).await.unwrap();
    }

    fn head(&self) -> String {
        run(self.root(), &["rev-parse", "HEAD"])
    }

    fn subject(&self) -> String {
        run(self.root(), &["log", "-1", "--format=%s"]).trim().to_owned()
    }

    /// All files with their contents, without git's and Strata's own.
    fn everything(&self) -> Vec<(std::path::PathBuf, String)> {
        let read = |path: std::path::PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
        files(&self.root().join("entries")).into_iter().map(read).collect()
    }

    async fn memory(&self, text: &str) -> Option<MemoryId> {
        let all = MemoryQuery::new(MemorySelect::All);
        let all = self.store.memories(&UserId::default(), &all).await.unwrap();
        all.into_iter().find(|memory| memory.content == text).map(|memory| memory.id)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_undo_touches_no_file() {
    let world = World::new().await;
    world.say("harbour", 1, "The ferry leaves at noon").await;
    write(world.root(), "entries/harbour/facts/a.md", "The ferry is called Linnea\n");
    let mut state = strata_core::state::State::default();
    state.system_state.insert("berth".to_owned(), "north".into());
    let session = SessionId::new("harbour").unwrap();
    world.apply(&UserId::default(), Change::PutState { session, state: Box::new(state) }).await;
    world.commit().await;
    let first = world.head();
    let path = world.root().join("entries/harbour/facts/a.md");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("Linnea", "Sigrid")).unwrap();
    world.commit().await;
    // Each file and folder keeps its time: nothing was there and gone in between.
    let times = || {
        let of = |path: &std::path::PathBuf| (path.clone(), fs::metadata(path).unwrap().modified().unwrap());
        let paths = files(&world.root().join("entries"));
        let folders = paths.iter().map(|path| path.parent().unwrap().to_owned());
        folders.chain(paths.clone()).map(|path| of(&path)).collect::<Vec<_>>()
    };
    let (before, head) = (times(), world.head());
    let error = world.store.undo(Some(first.trim())).await.unwrap_err();
    assert!(error.message().contains("later ones change the same files"), "{error}");
    assert_eq!((times(), world.head()), (before, head));
    assert!(!world.root().join(".git/REVERT_HEAD").exists());
    assert_eq!(run(world.root(), &["status", "--porcelain"]), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_memory_does_not_come_back() {
    let world = World::new().await;
    world.add("a", "Plays the harp").await;
    world.add("b", "Owns a loom").await;
    let id = world.memory("Owns a loom").await.unwrap();
    world.apply(&UserId::default(), Change::Forget(Forget::Memory(id))).await;
    assert_eq!(world.commit().await, "Destroy 1 memory");
    let before = world.everything();
    let error = world.store.undo(None).await.unwrap_err();
    assert!(error.message().contains("what it destroyed stays destroyed"), "{error}");
    let named = error.message().split("undo ").nth(1).unwrap().split('`').next().unwrap().to_owned();
    assert!(world.store.undo(Some("HEAD")).await.unwrap_err().message().contains("stays destroyed"));
    assert_eq!(world.everything(), before);
    // The message names the step before it.
    assert_eq!(world.store.undo(Some(&named)).await.unwrap(), "Add 1 memory");
    assert!(current(&world.store).await.is_empty());
    world.store.redo().await.unwrap();
    assert_eq!(current(&world.store).await, ["Plays the harp"]);
    assert_eq!(world.memory("Owns a loom").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redo_brings_no_forgotten_memory_back() {
    let world = World::new().await;
    world.add("a", "Plays the harp").await;
    world.store.undo(None).await.unwrap();
    let id = world.memory("Plays the harp").await.unwrap();
    world.apply(&UserId::default(), Change::Forget(Forget::Memory(id))).await;
    world.commit().await;
    let error = world.store.redo().await.unwrap_err();
    assert!(error.message().contains("stays destroyed"), "{error}");
    assert_eq!(world.memory("Plays the harp").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_user_does_not_come_back() {
    let world = World::new().await;
    let bo = UserId::new("bo").unwrap();
    write(world.root(), "users/bo/entries/global/facts/a.md", "Collects barometers\n");
    write(world.root(), "users/bo/entries/global/facts/broken.md", "---\nid: [\n---\nBarometers\n");
    write(world.root(), "entries/global/facts/a.md", "Plays the harp\n");
    world.commit().await;
    world.apply(&bo, Change::Forget(Forget::User)).await;
    // Something else is committed with it.
    write(world.root(), "entries/global/facts/b.md", "Owns a loom\n");
    assert_eq!(world.commit().await, "Add 1 memory; destroy 2 memories");
    let told = world.store.undo(None).await.unwrap();
    assert!(told.contains("what it destroyed stays destroyed"), "{told}");
    assert_eq!(current(&world.store).await, ["Plays the harp"]);
    let all = MemoryQuery::new(MemorySelect::All);
    assert!(world.store.memories(&bo, &all).await.unwrap().is_empty());
    assert!(files(&world.root().join("users")).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_was_cut_short_hinders_no_commit() {
    let world = World::new().await;
    world.add("a", "Plays the harp").await;
    world.add("b", "Owns a loom").await;
    let committing = VaultOptions { git: true, clock: Arc::new(Now), ..options() };
    let store = VaultStore::open(world.root(), committing).await.unwrap();
    assert_eq!(problems(&store).await, Vec::<String>::new());
    // A person, or an earlier version, has left a revert unfinished.
    write(world.root(), ".git/REVERT_HEAD", &world.head());
    let told = problems(&store).await;
    assert!(
        told.len() == 1 && told[0].contains("`.git/REVERT_HEAD`") && told[0].contains("`git revert --abort`"),
        "{told:?}"
    );
    let before = world.everything();
    assert!(store.undo(None).await.unwrap_err().message().contains("`git revert --abort`"));
    assert_eq!(world.everything(), before);
    fs::remove_file(world.root().join(".git/REVERT_HEAD")).unwrap();
    assert_eq!(problems(&store).await, Vec::<String>::new());
    store.undo(None).await.unwrap();
    assert_eq!(current(&store).await, ["Plays the harp"]);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_edit_by_hand_every_step_can_be_taken_back() {
    let world = World::new().await;
    world.add("a", "Rows on Mondays").await;
    world.add("b", "Owns a loom").await;
    world.edit("a", "Mondays", "Sundays").await;
    world.edit("b", "loom", "kiln").await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        world.store.undo(None).await.unwrap();
        seen.push(current(&world.store).await);
    }
    let expected: [&[&str]; 4] =
        [&["Owns a loom", "Rows on Sundays"], &["Owns a loom", "Rows on Mondays"], &["Rows on Mondays"], &[]];
    assert_eq!(seen, expected);
    for expected in [&["Rows on Mondays"][..], expected[1], expected[0], &["Owns a kiln", "Rows on Sundays"]]
    {
        world.store.redo().await.unwrap();
        assert_eq!(current(&world.store).await, expected);
    }
    assert_eq!(run(world.root(), &["status", "--porcelain"]), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renamed_session_folder_goes_back() {
    let world = World::new().await;
    world.say("harbour", 1, "The ferry leaves at noon").await;
    let mut state = strata_core::state::State::default();
    state.system_state.insert("berth".to_owned(), "north".into());
    let session = SessionId::new("harbour").unwrap();
    world.apply(&UserId::default(), Change::PutState { session, state: Box::new(state) }).await;
    assert_eq!(world.commit().await, "Add 1 turn");
    let before = world.everything();
    let entries = world.root().join("entries");
    fs::rename(entries.join("harbour"), entries.join("port")).unwrap();
    assert_eq!(world.commit().await, "Move 1 turn");
    assert_eq!(world.store.undo(None).await.unwrap(), "Move 1 turn");
    assert_eq!(world.everything(), before);
    world.store.redo().await.unwrap();
    assert!(entries.join("port/session.json").exists() && !entries.join("harbour").exists());
    let query = TurnQuery::Range { session: SessionId::new("harbour").unwrap(), after: None, limit: 9 };
    let turns = world.store.turns(&UserId::default(), &query).await.unwrap();
    assert!(turns.len() == 1 && turns[0].hidden.is_none());
    assert_eq!(problems(&world.store).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_reverts_and_what_strata_makes_of_it_are_one_step() {
    let world = World::new().await;
    world.add("a", "Rows on Mondays").await;
    world.edit("a", "Mondays", "Sundays").await;
    run(world.root(), &["revert", "--no-edit", "HEAD"]);
    world.commit().await;
    assert_eq!(current(&world.store).await, ["Rows on Mondays"]);
    // The edit is not in force any more, so the step before it is the last one.
    assert_eq!(world.store.undo(None).await.unwrap(), "Add 1 memory");
    assert!(current(&world.store).await.is_empty());
    world.store.redo().await.unwrap();
    assert_eq!(current(&world.store).await, ["Rows on Mondays"]);
    world.store.redo().await.unwrap();
    assert_eq!(current(&world.store).await, ["Rows on Sundays"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_of_a_person_and_what_strata_makes_of_it_are_one_step() {
    let world = World::new().await;
    world.add("a", "Rows on Mondays").await;
    // A commit of other files is no part of the step.
    write(world.root(), "list.md", "mine\n");
    run(world.root(), &["add", "list.md"]);
    run(world.root(), &["commit", "--quiet", "-m", "my list"]);
    write(world.root(), "entries/global/facts/b.md", "Plays the oboe\n");
    run(world.root(), &["add", "entries"]);
    run(world.root(), &["commit", "--quiet", "-m", "my oboe"]);
    world.commit().await;
    assert_eq!(world.store.undo(None).await.unwrap(), "my oboe");
    assert_eq!(world.subject(), "Undo “my oboe”");
    assert_eq!(current(&world.store).await, ["Rows on Mondays"]);
    // An undo that is taken back by its name is a redo.
    assert_eq!(world.store.undo(Some("HEAD")).await.unwrap(), "Undo “my oboe”");
    assert_eq!(world.subject(), "Redo “my oboe”");
    assert_eq!(current(&world.store).await, ["Plays the oboe", "Rows on Mondays"]);
    // A later commit that has nothing to do with a person's one is a step of its own.
    write(world.root(), "notes.md", "mine\n");
    run(world.root(), &["add", "notes.md"]);
    run(world.root(), &["commit", "--quiet", "-m", "my notes"]);
    world.add("c", "Owns a loom").await;
    assert_eq!(world.store.undo(None).await.unwrap(), "Add 1 memory");
    assert!(world.root().join("notes.md").exists());
    assert_eq!(current(&world.store).await, ["Plays the oboe", "Rows on Mondays"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_counts_each_item_once() {
    let world = World::new().await;
    world.add("a", "Rows on Mondays").await;
    fs::remove_file(world.root().join("entries/global/facts/a.md")).unwrap();
    assert_eq!(world.commit().await, "Take out 1 memory");
    let deleted = || files(&world.root().join("entries/global/deleted")).remove(0);
    fs::rename(deleted(), world.root().join("entries/global/facts/a.md")).unwrap();
    assert_eq!(world.commit().await, "Bring back 1 memory");
    fs::remove_file(world.root().join("entries/global/facts/a.md")).unwrap();
    world.commit().await;
    fs::remove_file(deleted()).unwrap();
    assert_eq!(world.commit().await, "Destroy 1 memory");
    assert!(!run(world.root(), &["log", "-1", "--format=%b"]).contains("Rows"));
}
