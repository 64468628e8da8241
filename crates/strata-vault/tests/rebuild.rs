//! The files alone bring everything back: the index is deleted and built again, with equal content.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

mod support;

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use serde_json::json;
use strata_core::key::{ApiKey, KeyLimits, KeySecret, Scopes};
use strata_core::memory::MemoryNotes;
use strata_core::state::State;
use strata_core::store::{
    Change, ChangeSet, Forget, Idempotency, MemoryQuery, MemorySelect, SummaryQuery, TurnQuery, session_space,
};
use strata_core::summary::{Strategy, Summary, SummaryStatus};
use strata_core::turn::{Follows, Hidden, HiddenReason, Metadata, NewTurn, Role, TurnNotes};
use strata_core::{KeyId, Memory, MemoryId, MemoryKind, SessionId, Store, SummaryId, TurnId, UserId};
use strata_vault::VaultStore;
use support::{content, open};
use uuid::Uuid;

fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x0190_1111_0000_7000_8000_0000_0000_0000 + number)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap()
}

fn turn(number: u128, text: &str) -> NewTurn {
    NewTurn {
        id: TurnId(id(number)),
        role: Role::User,
        name: None,
        content: text.to_owned(),
        created_at: at(number as i64),
        token_count: 3,
        metadata: Metadata::new(),
        notes: TurnNotes::default(),
        hidden: None,
    }
}

fn memory(number: u128, text: &str) -> Memory {
    Memory {
        id: MemoryId(id(1_000 + number)),
        session: None,
        agent: None,
        kind: MemoryKind::Preference,
        content: text.to_owned(),
        confidence: 0.85,
        valid_from: at(5),
        valid_to: None,
        recorded_at: at(6),
        replaced_by: None,
        source_turns: vec![TurnId(id(1))],
        source_summary: None,
        metadata: Metadata::from_text(r#"{"z":1.0,"a":"x: y"}"#).unwrap(),
        notes: MemoryNotes::default(),
        hidden: None,
    }
}

fn summary(number: u128, level: u8, text: &str) -> Summary {
    Summary {
        id: SummaryId(id(2_000 + number)),
        session: SessionId::new("garden").unwrap(),
        strategy: if level > 0 { Strategy::Tree } else { Strategy::Window },
        level,
        start_seq: 0,
        end_seq: 1,
        base_id: None,
        status: SummaryStatus::Completed,
        text: text.to_owned(),
        structured: Some(json!({"facts": ["a: b"], "n": 1.5})),
        input_tokens: 10,
        output_tokens: 4,
        generation_ms: Some(7),
        created_at: at(20),
        updated_at: at(21),
    }
}

async fn apply(store: &dyn Store, user: &UserId, second: i64, changes: Vec<Change>) {
    store.apply(user, ChangeSet::new(at(second), changes)).await.unwrap();
}

fn append(session: &str, turns: Vec<NewTurn>) -> Change {
    Change::AppendTurns { session: SessionId::new(session).unwrap(), turns }
}

/// Fills a store with everything that has a file.
async fn fill(store: &dyn Store) {
    let (me, bo, all) = (UserId::default(), UserId::new("Bo/ß").unwrap(), UserId::global());
    let notes = TurnNotes {
        follows: Follows::Turn(0),
        interrupted: true,
        tool_calls: vec![json!({"f": 1})],
        ..TurnNotes::default()
    };
    let second = NewTurn {
        role: Role::Assistant,
        name: Some("Bot: 1".to_owned()),
        notes,
        ..turn(2, "Use compost.\r\n---\nid: x\n")
    };
    apply(store, &me, 30, vec![append("garden", vec![turn(1, "My roses wilt"), second])]).await;
    let keyed = ChangeSet {
        idempotency: Some(Idempotency { key: "k 1".to_owned(), fingerprint: u64::MAX }),
        ..ChangeSet::one(at(31), append("garden", vec![turn(3, ""), turn(4, "  spaced  \n\n")]))
    };
    store.apply(&me, keyed).await.unwrap();
    apply(
        store,
        &me,
        32,
        vec![Change::HideTurns {
            ids: vec![TurnId(id(3))],
            hidden: Some(Hidden { reason: HiddenReason::Evicted, at: at(32) }),
        }],
    )
    .await;
    let mut state = State::default();
    state.system_state.insert("n".to_owned(), json!(0.1));
    let garden = SessionId::new("garden").unwrap();
    apply(
        store,
        &me,
        33,
        vec![
            Change::PutState { session: garden.clone(), state: Box::new(state) },
            Change::SetProgress { space: session_space("learn", &garden), revision: 4 },
        ],
    )
    .await;
    let bound = Memory {
        session: Some(garden),
        kind: MemoryKind::Todo,
        agent: Some("a".to_owned()),
        ..memory(2, "Buy mulch")
    };
    apply(
        store,
        &me,
        34,
        vec![Change::AddMemory(Box::new(memory(1, "Likes roses"))), Change::AddMemory(Box::new(bound))],
    )
    .await;
    apply(
        store,
        &me,
        35,
        vec![Change::ReviseMemory {
            id: MemoryId(id(1_001)),
            archive_as: MemoryId(id(1_003)),
            content: "喜欢玫瑰".to_owned(),
            metadata: None,
        }],
    )
    .await;
    apply(
        store,
        &me,
        36,
        vec![
            Change::AddMemory(Box::new(memory(4, "Has a greenhouse"))),
            Change::CloseMemory {
                id: MemoryId(id(1_002)),
                valid_to: at(36),
                replaced_by: Some(MemoryId(id(1_004))),
            },
        ],
    )
    .await;
    for (number, level) in [(1, 1), (2, 1), (3, 2), (4, 3), (5, 0), (6, 3)] {
        apply(store, &me, 37, vec![Change::PutSummary(Box::new(summary(number, level, "About roses")))])
            .await;
    }
    apply(
        store,
        &bo,
        38,
        vec![append("garden", vec![turn(1, "mine")]), append("deleted", vec![turn(9, "odd")])],
    )
    .await;
    let shared = Memory {
        session: Some(SessionId::new("global").unwrap()),
        ..memory(7, "bound to a session named global")
    };
    apply(
        store,
        &all,
        39,
        vec![Change::AddMemory(Box::new(memory(8, "shared"))), Change::AddMemory(Box::new(shared))],
    )
    .await;
    let secret = KeySecret::parse(&format!("strata_{}", "a".repeat(32))).unwrap();
    let key = ApiKey {
        id: KeyId(id(3_000)),
        user: bo.clone(),
        name: Some("phone".to_owned()),
        scopes: Scopes::default(),
        hash: secret.hash(),
        prefix: secret.prefix(),
        created_at: at(40),
        expires_at: None,
        revoked_at: None,
        limits: KeyLimits::default(),
        recall_scope: None,
    };
    apply(store, &bo, 40, vec![Change::AddKey(Box::new(key))]).await;
    apply(store, &bo, 41, vec![Change::RevokeKey { id: KeyId(id(3_000)) }]).await;
}

fn delete_index(root: &std::path::Path) {
    for entry in std::fs::read_dir(root.join(".strata")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("index.db") {
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_index_is_built_again_with_equal_content() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    fill(&store).await;
    let before = content(&store).await;
    store.close().await.unwrap();
    delete_index(folder.path());
    let store = open(folder.path()).await;
    assert_eq!(content(&store).await, before);
    // The answer to a keyed write is known again.
    let again = ChangeSet {
        idempotency: Some(Idempotency { key: "k 1".to_owned(), fingerprint: u64::MAX }),
        ..ChangeSet::one(at(50), append("garden", vec![turn(3, ""), turn(4, "  spaced  \n\n")]))
    };
    let applied = store.apply(&UserId::default(), again).await.unwrap();
    assert!(applied.replayed);
    assert_eq!(applied.turns.iter().map(|turn| turn.seq).collect::<Vec<_>>(), [2, 3]);
    assert!(store.check(strata_core::store::CheckDepth::Thorough).await.unwrap().problems.is_empty());
    store.close().await.unwrap();
    // The whole private folder may go as well.
    std::fs::remove_dir_all(folder.path().join(".strata")).unwrap();
    let store = open(folder.path()).await;
    assert_eq!(content(&store).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_again_changes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    fill(&store).await;
    store.close().await.unwrap();
    let files = |root: &std::path::Path| {
        let output = std::process::Command::new("sh")
            .args(["-c", "find . -path ./.strata -prune -o -type f -exec sha256sum {} + | sort"])
            .current_dir(root)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let before = files(folder.path());
    let store = open(folder.path()).await;
    store.sync().await.unwrap();
    store.close().await.unwrap();
    assert_eq!(files(folder.path()), before);
    delete_index(folder.path());
    open(folder.path()).await.close().await.unwrap();
    assert_eq!(files(folder.path()), before, "building the index writes nothing into the vault");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forgetting_removes_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    fill(&store).await;
    apply(&store, &UserId::default(), 60, vec![Change::Forget(Forget::User)]).await;
    assert!(!folder.path().join("entries/garden").exists());
    let left = content(&store).await;
    store.close().await.unwrap();
    delete_index(folder.path());
    let store = open(folder.path()).await;
    assert_eq!(content(&store).await, left);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_in_use_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    apply(&store, &UserId::default(), 1, vec![append("s", vec![turn(1, "still here")])]).await;
    let before = content(&store).await;
    let error = strata_vault::remove_index(folder.path()).unwrap_err();
    assert!(error.message().contains("another Strata process"), "{error}");
    // If a person deletes it nevertheless, no other process opens half of it.
    delete_index(folder.path());
    assert!(strata_vault::VaultStore::open(folder.path(), support::options()).await.is_err());
    let _ = store.close().await;
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(content(&store).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_share_a_vault() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (open(folder.path()).await, open(folder.path()).await);
    for number in 0..6 {
        let store = if number % 2 == 0 { &one } else { &two };
        apply(store, &UserId::default(), 1, vec![append("s", vec![turn(number, "said")])]).await;
    }
    apply(
        &two,
        &UserId::default(),
        2,
        vec![Change::HideTurns {
            ids: vec![TurnId(id(0))],
            hidden: Some(Hidden { reason: HiddenReason::Deleted, at: at(2) }),
        }],
    )
    .await;
    apply(&one, &UserId::default(), 3, vec![Change::HideTurns { ids: vec![TurnId(id(0))], hidden: None }])
        .await;
    let before = content(&one).await;
    one.close().await.unwrap();
    two.close().await.unwrap();
    delete_index(folder.path());
    let store = open(folder.path()).await;
    assert_eq!(content(&store).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_turn_leaves_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let turns: Vec<NewTurn> = (1..=4).map(|number| turn(number, &format!("turn {number}"))).collect();
    apply(&store, &UserId::default(), 1, vec![append("s", turns)]).await;
    store.close().await.unwrap();
    let user = folder.path().join("entries/s/turns/user");
    let second = std::fs::read_dir(&user).unwrap().map(|entry| entry.unwrap().path());
    let second = second.into_iter().find(|path| path.to_string_lossy().contains(&id(2).to_string())).unwrap();
    std::fs::remove_file(second).unwrap();
    std::fs::remove_dir_all(folder.path().join(".strata")).unwrap();
    let store = open(folder.path()).await;
    let query = TurnQuery::Range { session: SessionId::new("s").unwrap(), after: None, limit: 9 };
    let read = store.turns(&UserId::default(), &query).await.unwrap();
    let contents: Vec<&str> = read.iter().map(|turn| turn.content.as_str()).collect();
    assert_eq!(contents, ["turn 1", "", "turn 3", "turn 4"]);
    assert!(read[1].hidden.is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_text_and_name_comes_back(
        texts in proptest::collection::vec("(?s)[^\0]{0,80}", 1..4),
        name in "[^\0-\u{1f}\u{7f}-\u{9f}]{1,20}",
        lines in proptest::collection::vec("(---|\\.\\.\\.|id: x|# h|\r|)", 0..6),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let store = open(folder.path()).await;
            let user = if name == "*" { UserId::default() } else { UserId::new(name.clone()).unwrap() };
            let mut texts = texts.clone();
            texts.push(lines.join("\n"));
            for (number, text) in texts.iter().enumerate() {
                let number = number as u128;
                let said = NewTurn { name: Some(text.clone()), ..turn(number, text) };
                let known = Memory { session: Some(SessionId::new(name.clone()).unwrap()), ..memory(number, text) };
                apply(&store, &user, 1, vec![append(&name, vec![said]), Change::AddMemory(Box::new(known))]).await;
                let session = SessionId::new(name.clone()).unwrap();
                for level in [0, 1] {
                    let made = summary(2 * number + u128::from(level), level, text);
                    let made = Summary { session: session.clone(), ..made };
                    apply(&store, &user, 1, vec![Change::PutSummary(Box::new(made))]).await;
                }
            }
            let before = content(&store).await;
            store.close().await.unwrap();
            delete_index(folder.path());
            let store = open(folder.path()).await;
            assert_eq!(content(&store).await, before);
            store.close().await.unwrap();
        });
    }
}

/// What a person's editor may make of a text: its line ends, and the mark at the beginning of the file.
fn as_saved(text: &str, crlf: bool, mark: bool) -> String {
    let text = if crlf { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text.to_owned() };
    if mark { format!("\u{feff}{text}") } else { text }
}

/// The files of the vault that hold turns, summaries and memories in force.
fn items(root: &std::path::Path) -> Vec<std::path::PathBuf> {
    let is_one = |path: &std::path::PathBuf| {
        let path = path.to_string_lossy();
        path.ends_with(".md") && !path.contains("/deleted/")
    };
    support::files(&root.join("entries")).into_iter().filter(is_one).collect()
}

/// The front matter of a file without its fences, and what stands behind them.
fn parts(saved: &str) -> (&str, &str) {
    let saved = saved.strip_prefix('\u{feff}').unwrap_or(saved);
    let begin = saved.find('\n').unwrap() + 1;
    let mut end = begin;
    let is_fence = |line: &&str| {
        let is_it = line.trim_end() == "---";
        end += if is_it { 0 } else { line.len() };
        is_it
    };
    let fence = saved[begin..].split_inclusive('\n').find(is_fence).expect("a front matter that ends");
    (&saved[begin..end], &saved[end + fence.len()..])
}

/// The id of the item in a file, and the text that the file holds: byte for byte, or without the empty lines around it.
fn said(saved: &str) -> (String, String) {
    let (front, body) = parts(saved);
    let line = |key: &str| {
        front.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim().to_owned())
    };
    let text = match line("verbatim: ") {
        Some(_) => body.strip_suffix('\n').unwrap_or(body).to_owned(),
        None => body.replace("\r\n", "\n").trim_matches('\n').trim_end().to_owned(),
    };
    (line("id: ").unwrap(), text)
}

/// The texts of all items of the session `garden`, by their ids.
async fn texts(store: &VaultStore) -> BTreeMap<String, String> {
    let (me, session) = (UserId::default(), SessionId::new("garden").unwrap());
    let query = TurnQuery::Range { session: session.clone(), after: None, limit: u32::MAX };
    let turns = store.turns(&me, &query).await.unwrap();
    let query = SummaryQuery { session, strategy: None, status: None, limit: u32::MAX };
    let summaries = store.summaries(&me, &query).await.unwrap();
    let query = MemoryQuery::new(MemorySelect::Current { as_of: None });
    let memories = store.memories(&me, &query).await.unwrap();
    let turns = turns.into_iter().map(|turn| (turn.id.to_string(), turn.content));
    let summaries = summaries.into_iter().map(|summary| (summary.id.to_string(), summary.text));
    turns
        .chain(summaries)
        .chain(memories.into_iter().map(|memory| (memory.id.to_string(), memory.content)))
        .collect()
}

/// What a person does to a file.
#[derive(Debug, Clone)]
enum Edit {
    Append(String),
    Replace(String),
    Front,
}

impl Edit {
    fn of(&self, old: &str) -> String {
        let (front, body) = parts(old);
        match self {
            Self::Append(text) => format!("{old}{text}\nEdited\n"),
            Self::Replace(text) => format!("---\n{front}---\n{text}\n"),
            Self::Front => format!("---\nmood: mine   # a note\n{front}weather: [fog, rain]\n---\n{body}"),
        }
    }
}

fn any_edit() -> impl proptest::strategy::Strategy<Value = Edit> {
    prop_oneof![
        "[^\0]{0,40}".prop_map(Edit::Append),
        "(?s)[^\0]{0,60}".prop_map(Edit::Replace),
        Just(Edit::Front),
    ]
}

/// A vault with a turn, a memory and two summaries that hold a text.
async fn with_items(root: &std::path::Path, text: &str) -> VaultStore {
    let (store, me) = (open(root).await, UserId::default());
    let known = Memory { session: Some(SessionId::new("garden").unwrap()), ..memory(1, text) };
    apply(&store, &me, 1, vec![append("garden", vec![turn(1, text)])]).await;
    apply(&store, &me, 2, vec![Change::AddMemory(Box::new(known))]).await;
    for (number, level) in [(1, 1), (2, 0)] {
        apply(&store, &me, 3, vec![Change::PutSummary(Box::new(summary(number, level, text)))]).await;
    }
    store
}

/// Saves each file as an editor would; the vault then holds just what the files say, also when the index is built anew.
async fn expect_edits(
    root: &std::path::Path,
    store: VaultStore,
    edit: &Edit,
    as_saved: impl Fn(&str) -> String,
) {
    let files = items(root);
    assert_eq!(files.len(), 4);
    let mut expected = BTreeMap::new();
    for path in &files {
        let saved = as_saved(&edit.of(&std::fs::read_to_string(path).unwrap()));
        let (id, text) = said(&saved);
        expected.insert(id, text);
        std::fs::write(path, saved).unwrap();
    }
    store.sync().await.unwrap();
    assert_eq!(support::problems(&store).await, Vec::<String>::new());
    assert!(texts(&store).await == expected, "{:?} is not {expected:?}", texts(&store).await);
    if matches!(edit, Edit::Front) {
        let is_kept = |path: &std::path::PathBuf| {
            let text = std::fs::read_to_string(path).unwrap();
            text.contains("mood: mine   # a note") && text.contains("weather: [fog, rain]")
        };
        assert!(files.iter().all(is_kept), "the person's own keys stay");
    }
    let before = content(&store).await;
    store.close().await.unwrap();
    std::fs::remove_dir_all(root.join(".strata")).unwrap();
    let store = open(root).await;
    assert!(content(&store).await == before);
    store.close().await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn an_edit_outside_of_any_item_is_taken_in_and_lasts(
        text in "(?s)[^\0]{0,80}",
        edit in any_edit(),
        lines in proptest::collection::vec("(---|\\.\\.\\.|id: x|# h|)", 0..4),
        crlf: bool,
        mark: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let text = format!("{text}\n{}", lines.join("\n"));
            let store = with_items(folder.path(), &text).await;
            expect_edits(folder.path(), store, &edit, |text| as_saved(text, crlf, mark)).await;
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_megabyte_with_changed_line_ends_and_keys_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_items(folder.path(), &"表 --- \r\n".repeat(90_000)).await;
    expect_edits(folder.path(), store, &Edit::Front, |text| text.replace("\r\n", "\n")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_files_lie_where_the_design_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let (store, me) = (open(folder.path()).await, UserId::default());
    let reply = NewTurn { role: Role::Assistant, ..turn(2, "Use compost") };
    apply(&store, &me, 10, vec![append("garden", vec![turn(1, "My roses wilt"), reply])]).await;
    let bound = Memory { session: Some(SessionId::new("garden").unwrap()), ..memory(1, "Grows roses") };
    apply(&store, &me, 11, vec![Change::AddMemory(Box::new(bound.clone()))]).await;
    let later = Memory { id: MemoryId(id(1_002)), content: "Grows lilies".to_owned(), ..bound };
    let close = |by| Change::CloseMemory { id: MemoryId(id(1_001)), valid_to: at(12), replaced_by: Some(by) };
    apply(&store, &me, 12, vec![Change::AddMemory(Box::new(later.clone())), close(later.id)]).await;
    apply(&store, &me, 13, vec![Change::AddMemory(Box::new(memory(3, "Lives in Porto")))]).await;
    for (number, level) in [(1, 1), (2, 1), (3, 2), (4, 3)] {
        apply(&store, &me, 14, vec![Change::PutSummary(Box::new(summary(number, level, "On roses")))]).await;
    }
    // The root before it, which the next one replaces, is kept among the deleted files.
    apply(&store, &me, 15, vec![Change::PutSummary(Box::new(summary(5, 3, "On roses and lilies")))]).await;
    let dated = |time: Timestamp, id: &str| format!("{time}__{id}.md").replace(':', "-");
    let (said, replied) = (dated(at(1), &id(1).to_string()), dated(at(2), &id(2).to_string()));
    let fact = |number: u128| dated(at(6), &id(1_000 + number).to_string());
    let root = summary(4, 3, "").id;
    let mut expected = vec![
        format!("garden/deleted/facts/{}", fact(1)),
        format!("garden/deleted/summaries/L3/{root}.md"),
        format!("garden/facts/{}", fact(2)),
        "garden/summaries/L1/chunk_0.md".to_owned(),
        "garden/summaries/L1/chunk_1.md".to_owned(),
        "garden/summaries/L2/group_0.md".to_owned(),
        "garden/summaries/L3/final.md".to_owned(),
        format!("garden/turns/assistant/{replied}"),
        format!("garden/turns/user/{said}"),
        format!("global/facts/{}", fact(3)),
    ];
    expected.sort();
    let entries = folder.path().join("entries");
    let names = |path: &std::path::PathBuf| path.strip_prefix(&entries).unwrap().to_str().unwrap().to_owned();
    let mut found: Vec<String> = support::files(&entries).iter().map(names).collect();
    found.sort();
    assert_eq!(found, expected);
    let tombstone = std::fs::read_to_string(entries.join(&expected[0])).unwrap();
    assert!(tombstone.contains(&format!("replaced_by: {}\n", later.id)), "{tombstone}");
    let latest = std::fs::read_to_string(entries.join("garden/summaries/L3/final.md")).unwrap();
    assert!(latest.ends_with("On roses and lilies\n"), "{latest}");
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_of_a_megabyte_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let large = "表 --- \r\n".repeat(120_000);
    let me = UserId::default();
    apply(&store, &me, 1, vec![append("garden", vec![turn(1, &large)])]).await;
    apply(&store, &me, 1, vec![Change::AddMemory(Box::new(memory(1, &large)))]).await;
    apply(&store, &me, 1, vec![Change::PutSummary(Box::new(summary(1, 1, &large)))]).await;
    let before = content(&store).await;
    store.close().await.unwrap();
    delete_index(folder.path());
    let store = open(folder.path()).await;
    assert!(content(&store).await == before);
    store.close().await.unwrap();
}
