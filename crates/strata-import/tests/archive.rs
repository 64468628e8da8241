//! A store as JSON lines: out, in again without loss, twice, half, as another user, and damaged.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::path::{Path, PathBuf};

use serde_json::json;
use sha2::{Digest as _, Sha256};
use strata_core::job::{Job, JobStatus};
use strata_core::key::{ApiKey, KeyHash, KeyLimits, Scopes};
use strata_core::memory::MemoryNotes;
use strata_core::state::State;
use strata_core::store::conformance::fixture::{ann, at, bob, fresh, memory, session, summary, turn};
use strata_core::store::{Change, ChangeSet, Forget, InMemoryStore, Page, session_space};
use strata_core::turn::{Hidden, HiddenReason, Metadata, NewTurn, Role};
use strata_core::{JobId, KeyId, Memory, Store, UserId};
use strata_import::archive::{self, ArchiveOptions, ArchiveReport};
use strata_store::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

async fn apply(store: &dyn Store, user: &UserId, changes: Vec<Change>) {
    store.apply(user, ChangeSet::new(at(50), changes)).await.unwrap();
}

/// Two users and the shared memories, with everything that an export holds.
async fn filled() -> InMemoryStore {
    let store = InMemoryStore::new();
    let metadata = Metadata::from_text(r#"{"z":1.50,"a":"ü\"x"}"#).unwrap();
    let hidden = Some(Hidden { reason: HiddenReason::Abandoned, at: at(9) });
    let turns = vec![
        NewTurn { metadata, name: Some("Ann".into()), ..turn("I keep bees.\n在屋顶上。") },
        NewTurn { role: Role::Assistant, hidden, ..turn("How many hives?") },
    ];
    let source = turns[0].id;
    let mut state = State::default();
    state.system_state.insert("title".into(), json!("Bees"));
    state.extra.insert("own".into(), json!({ "n": 12_345_678_901_234_u64 }));
    let old = Memory { valid_to: Some(at(20)), source_turns: vec![source], ..memory("Ann has two hives") };
    let notes = MemoryNotes { thread: Some(old.id), certainty: Some(91), ..MemoryNotes::default() };
    let new = Memory { notes, confidence: 0.7, recorded_at: at(20), ..memory("Ann has three hives") };
    let old = Memory { replaced_by: Some(new.id), ..old };
    let job = Job {
        id: JobId(fresh()),
        user: ann(),
        session: Some(session("bees")),
        kind: "extract".into(),
        payload: json!({}),
        status: JobStatus::Queued,
        attempts: 0,
        run_at: at(60),
        lease: None,
        last_error: None,
        result: None,
        created_at: at(50),
        updated_at: at(50),
    };
    let changes = vec![
        Change::AppendTurns { session: session("bees"), turns },
        Change::PutState { session: session("bees"), state: Box::new(state) },
        Change::PutSummary(Box::new(summary("bees", 1))),
        Change::AddMemory(Box::new(new)),
        Change::AddMemory(Box::new(old)),
        Change::EnqueueJob(Box::new(job)),
        Change::SetProgress { space: session_space("learn", &session("bees")), revision: 1 },
        Change::AddKey(Box::new(key(ann()))),
    ];
    apply(&store, &ann(), changes).await;
    apply(
        &store,
        &bob(),
        vec![Change::AppendTurns { session: session("empty"), turns: vec![turn("hello")] }],
    )
    .await;
    apply(&store, &UserId::global(), vec![Change::AddMemory(Box::new(memory("The office closes at six")))])
        .await;
    store
}

fn key(user: UserId) -> ApiKey {
    ApiKey {
        id: KeyId(fresh()),
        user,
        name: Some("laptop".into()),
        scopes: Scopes::ALL,
        hash: KeyHash([7; 32]),
        prefix: "strata_abcdef".into(),
        created_at: at(1),
        expires_at: None,
        revoked_at: None,
        limits: KeyLimits::default(),
        recall_scope: None,
    }
}

async fn exported(store: &dyn Store, user: Option<&UserId>) -> String {
    let mut bytes = Vec::new();
    let mut told = 0;
    archive::export(store, user, at(99), &mut bytes, |_| told += 1).await.unwrap();
    assert!(told > 0);
    String::from_utf8(bytes).unwrap()
}

/// The lines without the keys, which an import leaves out, and without the digest, which covers them.
fn body(export: &str) -> Vec<&str> {
    export.lines().filter(|line| !line.starts_with("{\"key\"") && !line.starts_with("{\"end\"")).collect()
}

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join("export.jsonl");
        std::fs::write(&path, text).unwrap();
        path
    }
}

async fn import(store: &dyn Store, path: &Path) -> ArchiveReport {
    archive::import(store, path, &ArchiveOptions::default(), |_, _| {}).await.unwrap()
}

#[tokio::test]
async fn a_copy_tells_its_total_from_the_start_and_comes_to_it() {
    let (from, to) = (filled().await, InMemoryStore::new());
    for _ in 0..2 {
        let mut told = Vec::new();
        let tell = |done: &strata_import::Transferred, all: u64| told.push((done.turns + done.memories, all));
        strata_import::transfer(&from, &to, &[], strata_import::Keys::Copy, tell).await.unwrap();
        assert_eq!((told[0], *told.last().unwrap()), ((0, 6), (6, 6)));
        assert!(told.is_sorted() && told.iter().all(|(_, all)| *all == 6), "{told:?}");
    }
}

#[tokio::test]
async fn an_export_is_imported_without_loss() {
    let (files, source) = (Files::new(), filled().await);
    let export = exported(&source, None).await;
    assert!(!export.contains(&"07".repeat(32)), "the digest of a secret stays in the store");
    let path = files.write(&export);
    let sqlite = SqliteStore::open(files.0.path().join("a.db"), SqliteOptions::default()).unwrap();
    let memory = InMemoryStore::new();
    for target in [&sqlite as &dyn Store, &memory] {
        let report = import(target, &path).await;
        assert_eq!((report.added.turns, report.added.memories, report.added.summaries), (3, 3, 1));
        assert_eq!((report.added.jobs, report.found.keys, report.added.keys), (1, 1, 0));
        assert_eq!(body(&exported(target, None).await), body(&export));
        // A second run adds nothing, and nothing changes.
        let again = import(target, &path).await;
        assert_eq!(again.added, archive::ArchiveCounts::default());
        assert_eq!(body(&exported(target, None).await), body(&export));
    }
    sqlite.close().await.unwrap();
}

#[tokio::test]
async fn one_user_is_exported_alone_and_imported_under_another_name() {
    let (files, source) = (Files::new(), filled().await);
    let export = exported(&source, Some(&ann())).await;
    assert!(!export.contains("hello") && !export.contains("office"), "{export}");
    let path = files.write(&export);
    let carol = UserId::new("carol").unwrap();
    let target = filled().await;
    let options = ArchiveOptions { user: Some(carol.clone()), ..ArchiveOptions::default() };
    archive::import(&target, &path, &options, |_, _| {}).await.unwrap();
    let copied = exported(&target, Some(&carol)).await.replace("carol", "ann");
    assert_eq!(body(&copied)[1..], body(&export)[1..]);
    // A whole store cannot become one user.
    let path = files.write(exported(&source, None).await);
    let refused = archive::import(&target, &path, &options, |_, _| {}).await.unwrap_err();
    assert!(refused.message().contains("3 users"), "{refused}");
}

#[tokio::test]
async fn an_interrupted_import_is_continued() {
    let (files, source) = (Files::new(), filled().await);
    let export = exported(&source, None).await;
    let path = files.write(&export);
    let target = InMemoryStore::new();
    // As if the process had ended after the first turn.
    let query = strata_core::store::TurnQuery::Range { session: session("bees"), after: None, limit: 1 };
    let first = source.turns(&ann(), &query).await.unwrap().remove(0);
    let first = NewTurn {
        id: first.id,
        role: first.role,
        name: first.name,
        content: first.content,
        created_at: first.created_at,
        token_count: first.token_count,
        metadata: first.metadata,
        notes: first.notes,
        hidden: first.hidden,
    };
    let begun = Change::AppendTurns { session: session("bees"), turns: vec![first] };
    target.apply(&ann(), ChangeSet::one(at(50), begun)).await.unwrap();
    assert_eq!(import(&target, &path).await.added.turns, 2);
    assert_eq!(body(&exported(&target, None).await), body(&export));
}

#[tokio::test]
async fn a_store_that_went_on_keeps_what_is_newer() {
    let (files, source) = (Files::new(), filled().await);
    let path = files.write(exported(&source, None).await);
    let said = Change::AppendTurns { session: session("bees"), turns: vec![turn("A fourth hive came.")] };
    source.apply(&ann(), ChangeSet::one(at(80), said)).await.unwrap();
    let before = exported(&source, None).await;
    assert_eq!(import(&source, &path).await.added.turns, 0);
    assert_eq!(exported(&source, None).await, before);
    // Another conversation under the same name is refused before anything is written.
    let other = InMemoryStore::new();
    let said = Change::AppendTurns { session: session("bees"), turns: vec![turn("Something else.")] };
    other.apply(&ann(), ChangeSet::one(at(80), said)).await.unwrap();
    let refused = archive::import(&other, &path, &ArchiveOptions::default(), |_, _| {}).await.unwrap_err();
    assert!(
        refused.message().contains("session `bees`") && refused.message().contains("nothing was imported"),
        "{refused}"
    );
    assert_eq!(other.users(Page::first(9)).await.unwrap(), [ann()]);
}

#[tokio::test]
async fn a_damaged_export_changes_nothing() {
    let (files, source) = (Files::new(), filled().await);
    let export = exported(&source, None).await;
    let lines: Vec<&str> = export.lines().collect();
    let without = |place: usize| {
        let mut lines = lines.clone();
        lines.remove(place);
        lines.join("\n") + "\n"
    };
    let cases = [
        (export[..export.len() / 2].to_owned(), "line "),
        (without(lines.len() - 1), "last line of an export is missing"),
        (without(3), "line "),
        (without(0), "line 1"),
        (export.replace("three hives", "nine hives"), "not those that were exported"),
        (export.replace("\"version\":1", "\"version\":7"), "version 7"),
        (format!("{export}{}\n", lines[1]), "follows the last one"),
        (export.replacen("{\"user\":\"ann\"}", "{\"user\":\"ann\"", 1), "line 4"),
    ];
    for (text, expected) in cases {
        let target = InMemoryStore::new();
        let path = files.write(&text);
        let refused =
            archive::import(&target, &path, &ArchiveOptions::default(), |_, _| {}).await.unwrap_err();
        assert!(refused.message().contains(expected), "{expected}: {refused}");
        assert!(target.users(Page::first(9)).await.unwrap().is_empty(), "{expected}");
    }
}

#[tokio::test]
async fn forgotten_data_is_not_exported() {
    let source = filled().await;
    source.apply(&ann(), ChangeSet::one(at(90), Change::Forget(Forget::User))).await.unwrap();
    let export = exported(&source, None).await;
    assert!(!export.contains("hives") && !export.contains("bees"), "{export}");
}

/// The export with another text in it, and the digest that fits.
fn resealed(export: &str, from: &str, to: &str) -> String {
    let changed = export.replace(from, to);
    let (lines, end) = changed.trim_end().rsplit_once('\n').unwrap();
    let mut end: serde_json::Value = serde_json::from_str(end).unwrap();
    let digest = Sha256::digest(format!("{lines}\n"));
    end["end"]["sha256"] = json!(strata_core::hash::hex(&digest));
    format!("{lines}\n{end}\n")
}

#[tokio::test]
async fn an_export_with_a_nul_character_is_refused() {
    let (files, export) = (Files::new(), exported(&filled().await, None).await);
    for (from, to) in [
        ("three hives", r"three\u0000hives"),
        (r#""title":"Bees""#, r#""title":"Bees\u0000""#),
        (r#""z":1.50"#, r#""z":"\u0000""#),
    ] {
        let target = InMemoryStore::new();
        let path = files.write(resealed(&export, from, to));
        let options = ArchiveOptions::default();
        let refused = archive::import(&target, &path, &options, |_, _| {}).await.unwrap_err();
        assert!(refused.message().contains("NUL character"), "{from}: {refused}");
        assert!(target.users(Page::first(9)).await.unwrap().is_empty());
    }
    // Another change of the same kind is imported: the digest fits, and an escaped backslash is none.
    let target = InMemoryStore::new();
    let path = files.write(resealed(&export, "three hives", r"three \\u0000 hives"));
    archive::import(&target, &path, &ArchiveOptions::default(), |_, _| {}).await.unwrap();
}
