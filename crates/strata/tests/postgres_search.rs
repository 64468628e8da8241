//! Both stores answer the same question with the same items in the same order, up to ties.
//!
//! The conversations and questions are the evaluation's samples and, where they are, the public benchmark sets beside the repository
//! (`shared/bench`), of which a part is asked. `STRATA_TEST_SETS` names a folder whose sets are asked whole.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use evals::{Conversation, Set};
use jiff::{SignedDuration, Timestamp};
use strata_core::store::{Change, ChangeSet, Hit, ItemKinds, TextMatch, TextQuery};
use strata_core::turn::{NewMessage, NewTurn, Role};
use strata_core::{Memory, MemoryId, SessionId, Store, TurnId, UserId};
use strata_postgres::test_server;
use strata_store::{SqliteOptions, SqliteStore};
use uuid::Uuid;

/// Scores that differ by less are a tie: the two databases compute logarithms in different precision.
const TIE: f32 = 1e-4;

/// How much of a set is asked.
#[derive(Clone, Copy)]
struct Part {
    /// The most turns of its conversations together; the last conversation is cut.
    turns: usize,
    /// The most questions.
    questions: usize,
}

const WHOLE: Part = Part { turns: usize::MAX, questions: usize::MAX };
const SAMPLES: Part = Part { turns: usize::MAX, questions: 240 };
const SHARE: Part = Part { turns: 600, questions: 12 };

#[tokio::test(flavor = "multi_thread")]
async fn both_stores_rank_alike() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let beside = root.join("../shared/bench");
    let mut folders = vec![(root.join("evals/samples"), SAMPLES)];
    folders.extend(beside.is_dir().then_some((beside, SHARE)));
    folders.extend(std::env::var_os("STRATA_TEST_SETS").map(|folder| (PathBuf::from(folder), WHOLE)));
    let mut compared = 0;
    for (folder, part) in folders {
        for name in evals::sets(&folder).unwrap() {
            let asked = compare(&evals::load(&folder, &name).unwrap(), part).await;
            println!("{name}: {asked} comparisons");
            assert!(asked > 0, "{name}: nothing was compared");
            compared += asked;
        }
    }
    assert!(compared > 200, "{compared} comparisons prove little");
}

/// Asks the questions of a set; each of its conversations is a user of its own.
async fn compare(set: &Set, part: Part) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(folder.path().join("a.db"), SqliteOptions::default()).unwrap();
    let database = test_server::database().await;
    let postgres = database.open().await;
    let (mut turns, mut questions) = (0, 0);
    for (number, conversation) in set.conversations.iter().enumerate() {
        if questions == part.questions || turns == part.turns {
            break;
        }
        let user = UserId::new(format!("reader{number}")).unwrap();
        let (filled, taken) = fill(conversation, part.turns - turns);
        turns += taken;
        for changes in filled {
            sqlite.apply(&user, changes.clone()).await.unwrap();
            postgres.apply(&user, changes).await.unwrap();
        }
        let of_it = set.questions.iter().filter(|one| one.conversation_id == conversation.conversation_id);
        for question in of_it.take(part.questions - questions) {
            ask(&set.name, &user, &question.question, [&sqlite, &postgres]).await;
            questions += 1;
        }
    }
    2 * questions
}

/// Asks both stores a question in both ways.
async fn ask(set: &str, user: &UserId, question: &str, [sqlite, postgres]: [&dyn Store; 2]) {
    for matching in [TextMatch::Words, TextMatch::Similar { min_similarity: 0.3 }] {
        let query = TextQuery {
            text: question.to_owned(),
            matching,
            session: None,
            kinds: ItemKinds::ALL,
            as_of: None,
            keep: None,
            limit: 50,
        };
        let one = sqlite.search(user, &query).await.unwrap();
        let two = postgres.search(user, &query).await.unwrap();
        assert_alike(&format!("{set}: {question} ({matching:?})"), &one, &two);
    }
}

/// The turns of one change set.
const AT_ONCE: usize = 40;

/// The first turns of a conversation, some of them also as memories, and how many they are.
fn fill(conversation: &Conversation, most: usize) -> (Vec<ChangeSet>, usize) {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut number = 0_usize;
    let mut filled = Vec::new();
    for session in &conversation.sessions {
        let id = SessionId::new(&session.session_id).unwrap();
        let texts = &session.turns[..session.turns.len().min(most - number)];
        for texts in texts.chunks(AT_ONCE) {
            let (mut turns, mut changes) = (Vec::new(), Vec::new());
            for text in texts.iter().map(|turn| turn.text.as_str()) {
                number += 1;
                let at = start + SignedDuration::from_secs(number as i64);
                let uuid = Uuid::from_u128(number as u128);
                turns.push(turn(uuid, text, at));
                if number.is_multiple_of(5) {
                    changes.push(Change::AddMemory(Box::new(memory(uuid, text, at))));
                }
            }
            changes.push(Change::AppendTurns { session: id.clone(), turns });
            filled.push(ChangeSet::new(start, changes));
        }
    }
    (filled, number)
}

fn turn(id: Uuid, text: &str, at: Timestamp) -> NewTurn {
    let message = NewMessage::new(Role::User, text);
    NewTurn {
        id: TurnId(id),
        role: message.role,
        name: None,
        content: message.content,
        created_at: at,
        token_count: 1,
        metadata: message.metadata,
        notes: message.notes,
        hidden: None,
    }
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
