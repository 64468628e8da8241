//! However an index was built, it ranks like an index that is built from the store again.

use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::recall::tests::fixture::*;
use crate::recall::{Order, RecallRequest, Recalled};
use crate::{Engine, MemoryEdit};
use strata_core::id::{ItemId, MemoryId, TurnId};
use strata_core::ports::InlineCompute;
use strata_core::scope::Scope;
use strata_core::store::{Change, Forget, Segment};
use strata_core::trace::RetrievalPath;
use strata_core::turn::{Hidden, HiddenReason};
use strata_core::vector::Vector;

/// A question whose result contains the whole ranking.
fn ranking(query: &str) -> RecallRequest {
    RecallRequest { limit: Some(50), order: Order::Relevance, explain: true, ..RecallRequest::new(query) }
}

/// The items with their scores, best first.
fn scores(recalled: &Recalled) -> Vec<(ItemId, f32)> {
    let candidates = &recalled.trace.as_ref().unwrap().candidates;
    candidates.iter().map(|candidate| (candidate.item, candidate.score)).collect()
}

/// Asserts that two rankings are the same, apart from rounding errors that depend on the order of additions.
fn same(a: &Recalled, b: &Recalled) -> Result<(), TestCaseError> {
    prop_assert_eq!(
        (a.fts_hits, a.trgm_hits, a.vector_hits, a.path),
        (b.fts_hits, b.trgm_hits, b.vector_hits, b.path)
    );
    let (a, b) = (scores(a), scores(b));
    prop_assert_eq!(a.len(), b.len(), "{:?}\n{:?}", a, b);
    for ((one, score), (other, expected)) in a.iter().zip(&b) {
        let near = |a: f32, b: f32| (a - b).abs() < 1e-5;
        prop_assert!(near(*score, *expected), "{:?}\n{:?}", a, b);
        let elsewhere = || b.iter().find(|(item, _)| item == one).is_some_and(|(_, s)| near(*s, *score));
        prop_assert!(one == other || elsewhere(), "{:?}\n{:?}", a, b);
    }
    Ok(())
}

async fn same_answers(a: &Engine, b: &Engine, user: &UserId) -> Result<(), TestCaseError> {
    let in_session =
        RecallRequest { session: Some(session("s0")), scope: Some(Scope::Session), ..ranking("tea dog") };
    for request in [ranking("where is the trip"), ranking("coffee tea 7 lamp"), in_session] {
        same(&a.recall.ask(user, &request).await.unwrap(), &b.recall.ask(user, &request).await.unwrap())?;
    }
    Ok(())
}

#[derive(Debug, Clone)]
enum Act {
    Say(u8, Vec<String>),
    Hide(usize),
    Restore(usize),
    Remember(String),
    Revise(usize, String),
    Close(usize),
    Delete(usize),
    Undelete(usize),
    ForgetSession(u8),
    ForgetMemory(usize),
    Embed,
    Wait(i64),
}

fn statement() -> impl Strategy<Value = String> {
    let words = ["trip", "journey", "coffee", "espresso", "tea", "dog", "puppy", "lamp", "7", "8", "咖啡"];
    proptest::collection::vec(prop::sample::select(words.to_vec()), 1..5).prop_map(|words| words.join(" "))
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0_u8..3, proptest::collection::vec(statement(), 1..4)).prop_map(|(s, texts)| Act::Say(s, texts)),
        2 => any::<usize>().prop_map(Act::Hide),
        2 => any::<usize>().prop_map(Act::Restore),
        3 => statement().prop_map(Act::Remember),
        2 => (any::<usize>(), statement()).prop_map(|(at, text)| Act::Revise(at, text)),
        1 => any::<usize>().prop_map(Act::Close),
        1 => any::<usize>().prop_map(Act::Delete),
        1 => any::<usize>().prop_map(Act::Undelete),
        1 => (0_u8..3).prop_map(Act::ForgetSession),
        1 => any::<usize>().prop_map(Act::ForgetMemory),
        2 => Just(Act::Embed),
        2 => (1_i64..10_000).prop_map(Act::Wait),
    ]
}

/// The ids created so far, to choose from.
#[derive(Default)]
struct Known {
    turns: Vec<TurnId>,
    memories: Vec<MemoryId>,
}

/// Performs one act. The store refuses to change items that were forgotten in the meantime.
async fn perform(world: &World, known: &mut Known, act: Act) {
    fn chosen<T: Copy>(from: &[T], at: usize) -> Option<T> {
        (!from.is_empty()).then(|| from[at % from.len()])
    }
    let hidden = Some(Hidden { reason: HiddenReason::Deleted, at: world.engine.now() });
    let change = match act {
        Act::Say(to, texts) => {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            known.turns.extend(world.say_all(&format!("s{to}"), &texts).await);
            None
        }
        Act::Remember(text) => {
            known.memories.push(world.remember(&text).await);
            None
        }
        Act::Revise(at, content) => {
            if let Some(id) = chosen(&known.memories, at) {
                world.clock.forward(1);
                let edit = MemoryEdit { content, metadata: None };
                let _ = world.engine.memories.revise(&world.user, id, edit).await;
            }
            None
        }
        Act::Embed => {
            world.engine.maintenance.maintain_all().await.unwrap();
            None
        }
        Act::Wait(seconds) => {
            world.clock.forward(seconds);
            None
        }
        Act::Hide(at) => chosen(&known.turns, at).map(|id| Change::HideTurns { ids: vec![id], hidden }),
        Act::Restore(at) => {
            chosen(&known.turns, at).map(|id| Change::HideTurns { ids: vec![id], hidden: None })
        }
        Act::Close(at) => chosen(&known.memories, at).map(|id| Change::CloseMemory {
            id,
            valid_to: world.engine.now(),
            replaced_by: None,
        }),
        Act::Delete(at) => chosen(&known.memories, at).map(|id| Change::HideMemory { id, hidden }),
        Act::Undelete(at) => chosen(&known.memories, at).map(|id| Change::HideMemory { id, hidden: None }),
        Act::ForgetSession(at) => Some(Change::Forget(Forget::Session(session(&format!("s{at}"))))),
        Act::ForgetMemory(at) => chosen(&known.memories, at).map(|id| Change::Forget(Forget::Memory(id))),
    };
    if let Some(change) = change {
        let changes = strata_core::store::ChangeSet::one(world.engine.now(), change);
        let _ = world.store.apply(&world.user, changes).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// One index is updated after every change; the other is built at the end.
    #[test]
    fn however_it_was_fed_it_ranks_the_same(acts in proptest::collection::vec(act(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new();
            let encoder = MeanEncoder::local("mean", 64);
            world.engine = world.engine.with_embedder(Arc::clone(&encoder) as Arc<_>);
            let mut known = Known::default();
            for act in acts {
                perform(&world, &mut known, act).await;
                world.recall(&ranking("trip")).await;
            }
            let built = world.another_engine().with_embedder(encoder);
            same_answers(&world.engine, &built, &world.user).await
        })?;
    }
}

/// The store drops a revised memory's vector even if the text is the same, and so does an index that saw the old one.
#[tokio::test]
async fn a_revision_with_the_same_text_has_no_vector_until_it_is_embedded() {
    let mut world = World::new();
    let encoder = MeanEncoder::local("mean", 64);
    world.engine = world.engine.with_embedder(Arc::clone(&encoder) as Arc<_>);
    let id = world.remember("trip by ferry").await;
    world.engine.maintenance.maintain_all().await.unwrap();
    world.recall(&ranking("trip")).await;
    world.clock.forward(1);
    let edit = MemoryEdit { content: "trip by ferry".to_owned(), metadata: None };
    world.engine.memories.revise(&world.user, id, edit).await.unwrap();
    let built = world.another_engine().with_embedder(encoder);
    same_answers(&world.engine, &built, &world.user).await.unwrap();
}

/// A user with more turns than two segments hold. Some turns are hidden or revised between the segments.
async fn long_talk() -> World {
    let world = World::new();
    let words = ["trip", "coffee", "tea", "dog", "lamp", "旅行", "7", "paint"];
    let mut turns = Vec::new();
    for number in 0..300_usize {
        let word = |step: usize| words[(number * step) % words.len()];
        let text = format!("{} {} number{}", word(1), word(3), number % 40);
        turns.push(world.say(&format!("s{}", number % 3), &text).await);
        world.clock.forward(600);
    }
    let memory = world.remember("the dog is called Rex").await;
    world.engine.maintenance.maintain_all().await.unwrap();
    for turn in turns.iter().step_by(40) {
        world.hide(*turn).await;
    }
    let edit = MemoryEdit { content: "the dog is called Max".to_owned(), metadata: None };
    world.engine.memories.revise(&world.user, memory, edit).await.unwrap();
    for number in 0..300 {
        world.say("s4", &format!("lamp number{number}")).await;
    }
    world.apply(Change::HideTurns { ids: vec![turns[0]], hidden: None }).await;
    world.engine.maintenance.maintain_all().await.unwrap();
    world
}

async fn segments(world: &World) -> Vec<Segment> {
    world.store.segments(&world.user, SEGMENT_SPACE, 0).await.unwrap()
}

impl Indexes {
    /// The approximate size of all indexes in bytes, and their number.
    fn usage(&self) -> (usize, usize) {
        let users = self.lock();
        (users.iter().map(|(_, cached)| cached.bytes).sum(), users.len())
    }
}

/// A user's index, brought up to date.
async fn fresh(indexes: &Arc<Indexes>, world: &World, user: &UserId) -> FreshIndex {
    let head = world.store.head(user).await.unwrap();
    indexes.fresh(world.store.as_ref(), &InlineCompute, user, head, None).await.unwrap()
}

/// An index of the user's items as the store has them now.
async fn index_of(world: &World) -> Arc<Indexes> {
    let indexes = Arc::new(Indexes::new(Arc::new(FewWords), usize::MAX));
    fresh(&indexes, world, &world.user).await;
    indexes
}

#[tokio::test]
async fn an_index_from_segments_ranks_like_one_from_the_feed() {
    let world = long_talk().await;
    // Eight small segments were merged into one, and one more followed.
    let items = |segment: &Segment| segment::decode(&segment.bytes).unwrap().len();
    let sizes: Vec<usize> = segments(&world).await.iter().map(items).collect();
    assert!(sizes.len() == 2 && sizes[0] > 7 * SEGMENT_ITEMS as usize, "{sizes:?}");
    let loaded = world.another_engine();
    same_answers(&loaded, &world.engine, &world.user).await.unwrap();
    // The same result without any segment.
    world.apply(Change::Forget(Forget::Session(session("s4")))).await;
    assert!(segments(&world).await.is_empty());
    let built = world.another_engine();
    same_answers(&world.engine, &built, &world.user).await.unwrap();
    world.engine.maintenance.maintain_all().await.unwrap();
    assert!(!segments(&world).await.is_empty());
    same_answers(&world.another_engine(), &built, &world.user).await.unwrap();
}

/// An index of unchanged items is the same to the last digit, however it was built.
#[tokio::test]
async fn an_index_from_merged_segments_equals_one_from_the_feed() {
    let world = World::new();
    let words = ["trip", "coffee", "tea", "dog", "lamp", "旅行", "7", "paint"];
    for number in 0..700_usize {
        let word = |step: usize| words[(number * step) % words.len()];
        world.say(&format!("s{}", number % 3), &format!("{} {} n{}", word(1), word(3), number % 90)).await;
    }
    let built = world.another_engine();
    let requests = [ranking("where is the trip"), ranking("coffee tea 7 lamp n12")];
    let ask = async |engine: &Engine| {
        let mut answers = Vec::new();
        for request in &requests {
            answers.push(scores(&engine.recall.ask(&world.user, request).await.unwrap()));
        }
        answers
    };
    let expected = ask(&built).await;
    world.engine.maintenance.maintain_all().await.unwrap();
    let stored = segments(&world).await;
    assert_eq!(stored.len(), 3, "eight in one and two small ones");
    assert_eq!(ask(&world.another_engine()).await, expected);
    // All segments merged into one.
    let bytes = segment::merge(stored.iter().map(|segment| segment.bytes.as_slice())).unwrap();
    let segment = Segment { last: stored[2].last, bytes, ..stored[0].clone() };
    world.apply(Change::MergeSegments { segment, epoch: 0 }).await;
    assert_eq!(ask(&world.another_engine()).await, expected);
}

/// Several processes write and merge the segments of one user while turns are recorded and forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn segments_written_concurrently_are_consecutive() {
    let world = Arc::new(World::new());
    world.say_all("gone", &["a trip to forget"; 100]).await;
    let tasks = (0..3).map(|number| {
        let (world, engine) = (Arc::clone(&world), world.another_engine());
        tokio::spawn(async move {
            for round in 0..40 {
                world.say_all(&format!("s{number}"), &["tea with the dog", "coffee on the trip", "7"]).await;
                engine.maintenance.maintain_all().await.unwrap();
                if (number, round) == (0, 20) {
                    world.engine.sessions.delete(&world.user, &session("gone")).await.unwrap();
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    world.engine.maintenance.maintain_all().await.unwrap();
    let stored = segments(&world).await;
    let mut next = 1;
    for segment in &stored {
        assert_eq!(segment.first, next);
        next = segment.last + 1;
    }
    assert_eq!(world.store.progress(&world.user, SEGMENT_SPACE).await.unwrap() + 1, next);
    assert!(stored.iter().all(|segment| !segment.bytes.windows(6).any(|bytes| bytes == b"forget")));
    let (loaded, built) = (world.another_engine(), world.another_engine());
    loaded.recall.ask(&world.user, &ranking("trip")).await.unwrap();
    world.apply(Change::DropSegments { space: SEGMENT_SPACE.to_owned() }).await;
    same_answers(&loaded, &built, &world.user).await.unwrap();
}

#[tokio::test]
async fn segments_of_earlier_versions_are_removed() {
    let world = World::new();
    world.say_all("s", &["nothing to see"; 70]).await;
    let former = Segment { space: "lexical-2".to_owned(), first: 1, last: 70, bytes: vec![7; 90] };
    world.apply(Change::PutSegment { segment: former, epoch: 0 }).await;
    world.engine.maintenance.maintain_all().await.unwrap();
    assert!(world.store.segments(&world.user, "lexical-2", 0).await.unwrap().is_empty());
    assert_eq!(segments(&world).await.len(), 1);
}

#[tokio::test]
async fn a_damaged_segment_is_skipped() {
    let world = long_talk().await;
    let built = world.another_engine();
    for damage in [0, 1] {
        let mut stored = segments(&world).await;
        // One flipped bit in the first segment, then random bytes in the second.
        let bytes = &mut stored[damage].bytes;
        if damage == 0 {
            bytes[1_000] ^= 4
        } else {
            *bytes = vec![7; 90]
        }
        world.apply(Change::SetProgress { space: SEGMENT_SPACE.to_owned(), revision: 0 }).await;
        for segment in stored {
            world.apply(Change::PutSegment { segment, epoch: 0 }).await;
        }
        same_answers(&world.another_engine(), &built, &world.user).await.unwrap();
    }
}

#[tokio::test]
async fn changes_of_another_process_are_found() {
    let world = World::new();
    let other = world.another_engine();
    world.say("s", "the trip went well").await;
    assert_eq!(world.ask("trip").await, ["the trip went well"]);
    let message = strata_core::turn::NewMessage::new(strata_core::turn::Role::User, "a second trip follows");
    other.recording.record(&world.user, &session("s"), vec![message], None).await.unwrap();
    let mut found = world.ask("trip").await;
    found.sort();
    assert_eq!(found, ["a second trip follows", "the trip went well"]);
}

/// A question keeps the index if its head is older than the index because another question has updated the index since.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_questions_and_writes_share_one_index() {
    let world = Arc::new(World::new());
    world.say("s", "the trip went well").await;
    let indexes = Arc::new(index_of(&world).await);
    let before = Arc::clone(&indexes.lock().peek(&world.user).unwrap().index);
    let tasks = (0..4).map(|number| {
        let (world, indexes) = (Arc::clone(&world), Arc::clone(&indexes));
        tokio::spawn(async move {
            for _ in 0..50 {
                world.say(&format!("s{number}"), "another trip").await;
                let index = fresh(&indexes, &world, &world.user).await;
                assert!(index.read().len() > 1);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let after = Arc::clone(&indexes.lock().peek(&world.user).unwrap().index);
    assert!(Arc::ptr_eq(&before, &after));
    assert_eq!(after.read().unwrap().len(), 201);
}

#[tokio::test]
async fn forgetting_rebuilds_the_index() {
    let world = World::new();
    world.say("s", "the trip went well").await;
    world.say("t", "another trip").await;
    let indexes = index_of(&world).await;
    let before = Arc::clone(&indexes.lock().peek(&world.user).unwrap().index);
    world.engine.sessions.delete(&world.user, &session("s")).await.unwrap();
    fresh(&indexes, &world, &world.user).await;
    let after = Arc::clone(&indexes.lock().peek(&world.user).unwrap().index);
    assert!(!Arc::ptr_eq(&before, &after));
    let known = |index: &UserIndex| (index.len(), index.words.number("well"));
    assert_eq!(known(&after.read().unwrap()), (1, None));
    assert_eq!(world.ask("trip").await, ["another trip"]);
}

#[tokio::test]
async fn forgetting_leaves_nothing_in_segments() {
    let world = World::new();
    world.say_all("s", &["my secret is xylophone"; 200]).await;
    world.say_all("t", &["nothing to see"; 200]).await;
    world.engine.maintenance.maintain_all().await.unwrap();
    let holds = |segments: Vec<Segment>| {
        segments.iter().any(|segment| segment.bytes.windows(9).any(|bytes| bytes == b"xylophone"))
    };
    assert!(holds(segments(&world).await));
    world.engine.sessions.delete(&world.user, &session("s")).await.unwrap();
    assert!(segments(&world).await.is_empty());
    world.say_all("t", &["still nothing"; 100]).await;
    world.engine.maintenance.maintain_all().await.unwrap();
    assert!(!segments(&world).await.is_empty());
    assert!(!holds(segments(&world).await));
}

#[tokio::test]
async fn a_user_far_behind_gets_large_segments() {
    let world = World::new();
    for number in 0..600 {
        world.say("s", &format!("lamp {number}")).await;
    }
    let built = world.another_engine();
    world.engine.maintenance.maintain_all().await.unwrap();
    let items = |segment: &Segment| segment::decode(&segment.bytes).unwrap().len();
    let sizes: Vec<usize> = segments(&world).await.iter().map(items).collect();
    assert_eq!(sizes, [512, 64]);
    same_answers(&world.another_engine(), &built, &world.user).await.unwrap();
}

#[tokio::test]
async fn statistics_exclude_the_former_text_of_a_memory() {
    let world = World::new();
    let memory = world.remember("the dog is called Rex").await;
    let indexes = index_of(&world).await;
    let edit = MemoryEdit { content: "the cat is called Tom".to_owned(), metadata: None };
    world.engine.memories.revise(&world.user, memory, edit).await.unwrap();
    // The former statement stays readable as a closed memory of its own.
    let index = fresh(&indexes, &world, &world.user).await;
    let index = index.read();
    assert_eq!((index.len(), index.documents.len()), (2, 3));
    for (word, holding) in [("rex", 1), ("tom", 1), ("called", 2)] {
        let number = index.words.number(word).unwrap();
        assert_eq!(index.words.postings(number).len(), holding, "{word}");
        let (hash, _) = question_terms(word)[0];
        assert_eq!(index.terms.get(hash).len(), holding, "{word}");
    }
}

#[tokio::test]
async fn a_memory_hidden_and_shown_again_keeps_its_position() {
    let world = World::new();
    let memory = world.remember("the dog is called Rex").await;
    let indexes = index_of(&world).await;
    for _ in 0..3 {
        world.engine.memories.delete(&world.user, memory).await.unwrap();
        world.engine.memories.restore(&world.user, memory).await.unwrap();
        let index = fresh(&indexes, &world, &world.user).await;
        assert_eq!((index.read().len(), index.read().documents.len()), (1, 1));
    }
    assert_eq!(world.ask("dog").await, ["the dog is called Rex"]);
}

#[tokio::test]
async fn neighbours_are_linked_in_any_order_of_the_feed() {
    let world = World::new();
    let turns = world.say_all("s", &["zero", "one", "two", "three"]).await;
    // The changed turn comes in the feed after the turns that follow it.
    world.hide(turns[1]).await;
    world.clock.forward(3_601);
    world.say("s", "much later").await;
    let indexes = index_of(&world).await;
    let index = fresh(&indexes, &world, &world.user).await;
    let index = index.read();
    let doc = |turn: TurnId| index.doc(&ItemId::Turn(turn)).unwrap();
    assert_ne!(doc(turns[1]), 1, "the feed brings it last");
    for pair in turns.windows(2) {
        let (first, second) = (doc(pair[0]), doc(pair[1]));
        assert_eq!(index.places[first as usize].next, second);
        assert_eq!(index.places[second as usize].previous, first);
    }
    assert_eq!(index.places[doc(turns[3]) as usize].next, document::NO_DOC, "an hour is too long");
}

#[tokio::test]
async fn the_least_recently_used_indexes_are_dropped() {
    let world = World::new();
    let users = ["a", "b", "c"].map(user);
    for user in &users {
        let messages =
            vec![strata_core::turn::NewMessage::new(strata_core::turn::Role::User, "the trip went well"); 50];
        world.engine.recording.record(user, &session("s"), messages, None).await.unwrap();
    }
    let fill = Arc::new(Indexes::new(Arc::new(FewWords), usize::MAX));
    fresh(&fill, &world, &users[0]).await;
    let one = fill.usage().0;
    assert!(one > 50 * size_of::<Document>());

    let indexes = Arc::new(Indexes::new(Arc::new(FewWords), one * 5 / 2));
    let kept = |indexes: &Indexes| {
        let mut kept: Vec<String> = indexes.lock().iter().map(|(user, _)| user.to_string()).collect();
        kept.sort();
        kept.concat()
    };
    for (asking, expected) in [(0, "a"), (1, "ab"), (0, "ab"), (2, "ac"), (1, "bc"), (1, "bc")] {
        fresh(&indexes, &world, &users[asking]).await;
        assert_eq!(kept(&indexes), expected);
        assert!(indexes.usage().0 <= one * 5 / 2);
    }
    // An index that alone exceeds the budget is still served.
    let small = Arc::new(Indexes::new(Arc::new(FewWords), 1));
    for user in &users {
        let index = fresh(&small, &world, user).await;
        assert_eq!((index.read().len(), kept(&small)), (50, user.to_string()));
    }
    small.forget(&users[2]);
    assert_eq!(small.usage(), (0, 0));
}

#[tokio::test]
async fn the_stores_own_index_serves_large_users() {
    let world = World::with(|settings| settings.recall.index_max_items = 3);
    world.say_all("s", &["the trip went well", "the lamp is on", "tea"]).await;
    assert_eq!(world.ask("journey").await[0], "the trip went well", "by meaning");
    world.say("s", "my trips and trips").await;
    let recalled = world.recall(&ranking("trip")).await;
    assert_eq!((recalled.path, recalled.fts_hits), (RetrievalPath::Fts, 2));
    assert_eq!(contents(&recalled), ["my trips and trips", "the trip went well"]);
    // The store cannot compare by meaning, only by letters and by time.
    let letters = world.recall(&ranking("jurney lampp")).await;
    assert_eq!(contents(&letters), ["the lamp is on"]);
    let nothing = world.recall(&RecallRequest::new("journey")).await;
    assert_eq!((nothing.path, nothing.items.len()), (RetrievalPath::None, 0));
    // Shared items count, too.
    let bob = World { user: user("bob"), engine: world.engine.clone(), ..World::new() };
    bob.say("s", "hello").await;
    let shared = vec![crate::NewMemory::new("trip"); 4];
    world.engine.memories.add(&UserId::global(), shared).await.unwrap();
    let request = RecallRequest { scope: Some(Scope::Global), ..ranking("trip") };
    let recalled = bob.recall(&request).await;
    assert_eq!((recalled.path, recalled.fts_hits), (RetrievalPath::Fts, 4));
    assert!(recalled.trace.unwrap().candidates.iter().all(|candidate| candidate.terms.is_none()));
}

#[tokio::test]
async fn vectors_take_part_for_large_users() {
    let world = World::with(|settings| settings.recall.index_max_items = 1);
    world.say_all("s", &["the trip went well", "the lamp is on", "tea"]).await;
    let encoder = || MeanEncoder::local("mean", 64);
    let engine = world.engine.clone().with_embedder(encoder());
    let ask = async |question: &str| engine.recall.ask(&world.user, &ranking(question)).await.unwrap();
    let recalled = ask("journey").await;
    assert!(recalled.vector_hits > 0, "what was said just now is embedded at once");
    engine.maintenance.maintain_all().await.unwrap();
    assert_eq!(
        (contents(&recalled)[0].as_str(), recalled.path),
        ("the trip went well", RetrievalPath::Vector)
    );
    assert!(recalled.vector_hits > 0);
    // Words and vectors are fused, and each item is served once.
    let recalled = ask("trip").await;
    assert_eq!((contents(&recalled)[0].as_str(), recalled.path), ("the trip went well", RetrievalPath::Fts));
    let distinct: HashSet<String> = contents(&recalled).into_iter().collect();
    assert_eq!(distinct.len(), recalled.items.len());
    // Another process, with tables of its own, embeds a turn.
    world.say("t", "a trip by boat").await;
    world.another_engine().with_embedder(encoder()).maintenance.maintain_all().await.unwrap();
    let boat = "a trip by boat".to_owned();
    assert!(contents(&ask("journey").await).contains(&boat));
    // A destroyed item is gone from the table.
    engine.sessions.delete(&world.user, &session("t")).await.unwrap();
    assert!(!contents(&ask("journey").await).contains(&boat));
}

#[tokio::test]
async fn vectors_of_a_new_model_replace_the_old_ones() {
    let world = World::new();
    world.say_all("s", &["the trip went well", "the lamp is on"]).await;
    let first = world.engine.clone().with_embedder(MeanEncoder::local("first", 64));
    first.maintenance.maintain_all().await.unwrap();
    let hits = |recalled: &Recalled| (recalled.vector_hits, recalled.error_stage);
    let ask = ranking("journey");
    assert_eq!(hits(&first.recall.ask(&world.user, &ask).await.unwrap()), (2, None));
    // The same index, now for a model with another dimension and without vectors.
    let second = world.engine.clone().with_embedder(MeanEncoder::local("second", 32));
    let before = second.recall.ask(&world.user, &ask).await.unwrap();
    assert_eq!((hits(&before), contents(&before)[0].as_str()), ((2, None), "the trip went well"));
    // A turn that was said just now is embedded for the question.
    world.say("s", "a trip by boat").await;
    assert_eq!(hits(&second.recall.ask(&world.user, &ask).await.unwrap()), (3, None));
    // After much was said at once, a turn is served without a vector until it has one.
    world.say_all("s", &["the lamp is on"; 80]).await;
    assert_eq!(hits(&second.recall.ask(&world.user, &ask).await.unwrap()), (3, None));
    second.maintenance.maintain_all().await.unwrap();
    assert!(second.recall.ask(&world.user, &ask).await.unwrap().vector_hits > 3);
}

#[tokio::test]
async fn a_vector_stored_after_the_head_was_read_waits_for_its_item() {
    let world = World::new();
    let encoder = MeanEncoder::local("mean", 64);
    let engine = world.engine.clone().with_embedder(encoder);
    world.say("s", "the trip went well").await;
    engine.maintenance.maintain_all().await.unwrap();
    let early = world.store.head(&world.user).await.unwrap();
    let indexes = Arc::new(Indexes::new(Arc::new(FewWords), usize::MAX));
    let index = Arc::new(RwLock::new(UserIndex::default()));
    indexes.catch_up(world.store.as_ref(), &InlineCompute, &world.user, &index, early).await.unwrap();
    // These are written after a question reads the head and before it reads the vectors.
    world.say("s", "a trip by boat").await;
    engine.maintenance.maintain_all().await.unwrap();
    indexes
        .catch_up_vectors(world.store.as_ref(), &InlineCompute, &world.user, &index, "mean", early)
        .await
        .unwrap();
    let late = world.store.head(&world.user).await.unwrap();
    indexes.catch_up(world.store.as_ref(), &InlineCompute, &world.user, &index, late).await.unwrap();
    indexes
        .catch_up_vectors(world.store.as_ref(), &InlineCompute, &world.user, &index, "mean", late)
        .await
        .unwrap();
    let index = index.read().unwrap();
    let boat = index.documents.iter().position(|document| document.seq == 1).unwrap();
    assert!(index.vectors.get(boat as Doc).is_some());
}

#[tokio::test]
async fn cached_lengths_do_not_change_mean_cosines() {
    let world = long_talk().await;
    let indexes = index_of(&world).await;
    let index = fresh(&indexes, &world, &world.user).await;
    let index = index.read();
    let docs: Vec<Doc> = (0..index.documents.len() as Doc).collect();
    let direction = Vector::quantise(&index.mean(docs[3]));
    let some = index.mean_cosines(&docs[..docs.len() / 2], &direction);
    let all = index.mean_cosines(&docs, &direction);
    assert_eq!(all[..some.len()], some);
    assert!(all[3] > 0.99 && all.iter().any(|cosine| *cosine < 0.9), "{all:?}");
    for (doc, cosine) in docs.iter().zip(all) {
        let plainly = Vector::quantise(&index.mean(*doc)).cosine(&direction);
        assert!((cosine - plainly).abs() < 0.02, "{doc}: {cosine} is not {plainly}");
    }
}
