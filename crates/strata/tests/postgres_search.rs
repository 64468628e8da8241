//! Both stores answer the same question with the same items in the same order, up to ties.
//!
//! The conversations and questions are the evaluation's samples. `STRATA_TEST_SETS` names a folder with more sets in the same
//! form (`NAME.conversations.jsonl` and `NAME.questions.jsonl`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use strata_core::store::{Change, ChangeSet, Hit, ItemKinds, TextMatch, TextQuery};
use strata_core::turn::{NewMessage, NewTurn, Role};
use strata_core::{Memory, MemoryId, SessionId, Store, TurnId, UserId};
use strata_postgres::test_server;
use strata_store::{SqliteOptions, SqliteStore};
use uuid::Uuid;

/// The most questions of one conversation, and the most conversations of one set.
const QUESTIONS: usize = 60;
const CONVERSATIONS: usize = 4;

/// Scores that differ by less are a tie: the two databases compute logarithms in different precision.
const TIE: f32 = 1e-4;

struct Conversation {
    texts: Vec<(String, String)>,
    questions: Vec<String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn both_stores_rank_alike() {
    let mut compared = 0;
    for set in sets() {
        for (number, conversation) in read(&set).into_iter().take(CONVERSATIONS).enumerate() {
            compared += compare(&format!("{} {number}", set.display()), &conversation).await;
        }
    }
    assert!(compared > 200, "{compared} comparisons prove little");
}

fn sets() -> Vec<PathBuf> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evals/samples");
    let folders = [Some(samples), std::env::var_os("STRATA_TEST_SETS").map(PathBuf::from)];
    let mut sets = Vec::new();
    for folder in folders.into_iter().flatten() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().ends_with(".conversations.jsonl") {
                sets.push(path);
            }
        }
    }
    sets.sort();
    sets
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn read(set: &Path) -> Vec<Conversation> {
    let questions = PathBuf::from(set.to_string_lossy().replace(".conversations.", ".questions."));
    let questions = lines(&questions);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let conversation = |conversation: &Value| {
        let mut texts = Vec::new();
        for session in conversation["sessions"].as_array().unwrap() {
            for turn in session["turns"].as_array().unwrap() {
                texts.push((text(&session["session_id"]), text(&turn["text"])));
            }
        }
        let asked =
            questions.iter().filter(|line| line["conversation_id"] == conversation["conversation_id"]);
        let questions = asked.map(|line| text(&line["question"])).take(QUESTIONS).collect();
        Conversation { texts, questions }
    };
    lines(set).iter().map(conversation).collect()
}

async fn compare(name: &str, conversation: &Conversation) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(folder.path().join("a.db"), SqliteOptions::default()).unwrap();
    let database = test_server::database().await;
    let postgres = database.open().await;
    let user = UserId::new("reader").unwrap();
    for changes in fill(conversation) {
        sqlite.apply(&user, changes.clone()).await.unwrap();
        postgres.apply(&user, changes).await.unwrap();
    }
    let mut compared = 0;
    for question in &conversation.questions {
        let similar = TextMatch::Similar { min_similarity: 0.3 };
        for matching in [TextMatch::Words, similar] {
            let (kinds, limit) = (ItemKinds::ALL, 50);
            let query = TextQuery {
                text: question.clone(),
                matching,
                session: None,
                kinds,
                as_of: None,
                keep: None,
                limit,
            };
            let one = sqlite.search(&user, &query).await.unwrap();
            let two = postgres.search(&user, &query).await.unwrap();
            assert_alike(&format!("{name}: {question} ({matching:?})"), &one, &two);
            compared += 1;
        }
    }
    compared
}

/// The conversation as turns, some of them also as memories.
fn fill(conversation: &Conversation) -> Vec<ChangeSet> {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let change = |(number, (session, text)): (usize, &(String, String))| {
        let at = start + SignedDuration::from_secs(number as i64);
        let id = Uuid::from_u128(number as u128 + 1);
        let message = NewMessage::new(Role::User, text);
        let turn = NewTurn {
            id: TurnId(id),
            role: message.role,
            name: None,
            content: message.content,
            created_at: at,
            token_count: 1,
            metadata: message.metadata,
            notes: message.notes,
            hidden: None,
        };
        let session = SessionId::new(session).unwrap();
        let mut changes = vec![Change::AppendTurns { session, turns: vec![turn] }];
        if number % 5 == 0 {
            changes.push(Change::AddMemory(Box::new(memory(id, text, at))));
        }
        ChangeSet::new(at, changes)
    };
    conversation.texts.iter().enumerate().map(change).collect()
}

fn memory(id: Uuid, text: &str, at: Timestamp) -> Memory {
    Memory {
        id: MemoryId(id),
        session: None,
        agent: None,
        kind: Default::default(),
        content: text.to_owned(),
        confidence: 1.0,
        valid_from: at,
        valid_to: None,
        recorded_at: at,
        replaced_by: None,
        source_turns: Vec::new(),
        source_summary: None,
        metadata: Default::default(),
        notes: Default::default(),
        hidden: None,
    }
}

/// The scores are the same at every place, and every item has the same score in both answers unless the limit cut a tie.
fn assert_alike(name: &str, one: &[Hit], two: &[Hit]) {
    assert_eq!(one.len(), two.len(), "{name}");
    let close = |a: f32, b: f32| (a - b).abs() <= TIE * a.abs().max(1.0);
    for (place, (a, b)) in one.iter().zip(two).enumerate() {
        assert!(close(a.score, b.score), "{name}: place {place} has {} and {}", a.score, b.score);
        let elsewhere = two.iter().find(|hit| hit.item.id() == a.item.id());
        let last = one[one.len() - 1].score;
        match elsewhere {
            Some(hit) => assert!(close(hit.score, a.score), "{name}: place {place}"),
            None => assert!(close(a.score, last), "{name}: place {place} is missing in the other answer"),
        }
    }
}
