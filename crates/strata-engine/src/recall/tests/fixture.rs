//! The test fixture: the reference store, a manual clock, and a lexicon of a few words.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

use crate::recall::{RecallRequest, Recalled};
use crate::{Engine, NewMemory, Settings};
use strata_core::error::Result;
use strata_core::hash::fnv;
use strata_core::id::{ItemId, MemoryId, SessionId, TurnId, UserId};
use strata_core::lexicon::{DIMENSION, Lexicon, Word, mean};
use strata_core::ports::{Clock, Embedder, EmbedderCost, IdSource, Passage, TokenCounter};
use strata_core::scope::Scope;
use strata_core::store::{Change, ChangeSet, InMemoryStore, Item, Store};
use strata_core::trace::TraceCandidate;
use strata_core::turn::NewMessage;
use strata_core::turn::{Hidden, HiddenReason, Role};
use strata_language::text;

/// The words of one line are synonyms.
const SYNONYMS: [&[&str]; 4] = [
    &["trip", "journey", "旅行"],
    &["coffee", "espresso", "咖啡"],
    &["flat", "apartment"],
    &["dog", "puppy"],
];

/// A lexicon with a pseudo-random direction for every word; synonyms share one.
pub(crate) struct FewWords;

impl Lexicon for FewWords {
    fn for_each_word(&self, text: &str, emit: &mut dyn FnMut(&str)) {
        text::for_each_word(text, |run| match run {
            text::WordRun::Spaced(word) => emit(word),
            text::WordRun::Han(run) => {
                // Words of two characters, the most common length.
                let characters: Vec<char> = run.chars().collect();
                characters.chunks(2).for_each(|word| emit(&word.iter().collect::<String>()));
            }
        });
    }

    fn word(&self, word: &str) -> Word {
        let meaning = SYNONYMS.iter().find(|words| words.contains(&word)).map_or(word, |words| words[0]);
        Word::new(&direction(meaning), 1e-6)
    }
}

/// A pseudo-random direction. Two of them are almost orthogonal.
fn direction(text: &str) -> [f32; DIMENSION] {
    let mut state = fnv(text.as_bytes());
    std::array::from_fn(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    })
}

/// An encoder that returns the mean of a text's words, cut to `dimension` components.
pub(crate) struct MeanEncoder {
    pub(crate) name: &'static str,
    pub(crate) dimension: usize,
    pub(crate) cost: EmbedderCost,
}

impl MeanEncoder {
    pub(crate) fn local(name: &'static str, dimension: usize) -> Arc<Self> {
        Arc::new(Self { name, dimension, cost: EmbedderCost::Local })
    }

    fn embed(&self, text: &str) -> Vec<f32> {
        mean(&FewWords, text)[..self.dimension].to_vec()
    }
}

#[async_trait]
impl Embedder for MeanEncoder {
    fn model(&self) -> &str {
        self.name
    }

    fn cost(&self) -> EmbedderCost {
        self.cost
    }

    async fn embed_passages(&self, passages: &[Passage]) -> Result<Vec<Vec<f32>>> {
        Ok(passages.iter().map(|passage| self.embed(&passage.text)).collect())
    }

    async fn embed_question(&self, question: &str) -> Result<Vec<f32>> {
        Ok(self.embed(question))
    }
}

/// A manual clock that advances by `step` microseconds with each read.
#[derive(Default)]
pub(crate) struct HandClock {
    now: AtomicI64,
    step: AtomicI64,
}

impl HandClock {
    pub(crate) fn set(&self, now: &str) {
        self.now.store(moment(now).as_microsecond(), Ordering::SeqCst);
    }

    pub(crate) fn step(&self, micros: i64) {
        self.step.store(micros, Ordering::SeqCst);
    }

    pub(crate) fn forward(&self, seconds: i64) {
        self.now.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        let now = self.now.fetch_add(self.step.load(Ordering::SeqCst), Ordering::SeqCst);
        Timestamp::from_microsecond(now).unwrap()
    }
}

/// Ids in sequence.
#[derive(Default)]
pub(crate) struct CountingIds(AtomicU64);

impl CountingIds {
    pub(crate) fn peek(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.load(Ordering::SeqCst)) + 1)
    }
}

impl IdSource for CountingIds {
    fn next(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::SeqCst)) + 1)
    }
}

/// One token for each word.
pub(crate) struct WordCount;

impl TokenCounter for WordCount {
    fn count(&self, text: &str) -> u32 {
        text.split_whitespace().count() as u32
    }
}

/// A timestamp, written as `2024-05-08` or `2024-05-08T10:00`.
pub(crate) fn moment(text: &str) -> Timestamp {
    let time = if text.contains('T') { text.to_owned() } else { format!("{text}T12:00") };
    format!("{time}:00Z").parse().unwrap()
}

pub(crate) fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

/// The store, the parts that engines over it share, and one engine.
pub(crate) struct World {
    pub(crate) store: Arc<InMemoryStore>,
    pub(crate) clock: Arc<HandClock>,
    pub(crate) ids: Arc<CountingIds>,
    pub(crate) user: UserId,
    pub(crate) engine: Engine,
}

impl World {
    /// An empty world on 1 June 2024.
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    /// A world with other settings.
    pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::default();
        change(&mut settings);
        let (store, clock, ids) = (Arc::new(InMemoryStore::new()), Arc::default(), Arc::default());
        let engine = engine(&store, &clock, &ids, settings);
        clock.set("2024-06-01");
        Self { store, clock, ids, user: user("ann"), engine }
    }

    /// Another engine over the same store, as another process would have.
    pub(crate) fn another_engine(&self) -> Engine {
        engine(&self.store, &self.clock, &self.ids, self.engine.settings().clone())
    }

    /// Records a turn now.
    pub(crate) async fn say(&self, to: &str, text: &str) -> TurnId {
        self.say_all(to, &[text]).await[0]
    }

    /// Records several turns now, in one call.
    pub(crate) async fn say_all(&self, to: &str, texts: &[&str]) -> Vec<TurnId> {
        let messages = texts.iter().map(|text| NewMessage::new(Role::User, *text)).collect();
        let recorded = self.engine.recording.record(&self.user, &session(to), messages, None).await.unwrap();
        recorded.turns.into_iter().map(|turn| turn.id).collect()
    }

    /// Records a turn on a day.
    pub(crate) async fn say_on(&self, day: &str, to: &str, text: &str) -> TurnId {
        let message = NewMessage { created_at: Some(moment(day)), ..NewMessage::new(Role::User, text) };
        let recorded =
            self.engine.recording.record(&self.user, &session(to), vec![message], None).await.unwrap();
        recorded.turns[0].id
    }

    /// Stores a memory now.
    pub(crate) async fn remember(&self, text: &str) -> MemoryId {
        let memories = self.engine.memories.add(&self.user, vec![NewMemory::new(text)]).await.unwrap();
        memories[0].id
    }

    /// Applies a change for the user.
    pub(crate) async fn apply(&self, change: Change) {
        self.store.apply(&self.user, ChangeSet::one(self.engine.now(), change)).await.unwrap();
    }

    /// Hides a turn from recall now.
    pub(crate) async fn hide(&self, turn: TurnId) {
        let hidden = Some(Hidden { reason: HiddenReason::Deleted, at: self.engine.now() });
        self.apply(Change::HideTurns { ids: vec![turn], hidden }).await;
    }

    /// Ends a memory's validity now.
    pub(crate) async fn close(&self, id: MemoryId) {
        self.apply(Change::CloseMemory { id, valid_to: self.engine.now(), replaced_by: None }).await;
    }

    pub(crate) async fn recall(&self, request: &RecallRequest) -> Recalled {
        self.engine.recall.ask(&self.user, request).await.unwrap()
    }

    /// The contents that a plain question returns.
    pub(crate) async fn ask(&self, query: &str) -> Vec<String> {
        contents(&self.recall(&RecallRequest::new(query)).await)
    }
}

fn engine(
    store: &Arc<InMemoryStore>,
    clock: &Arc<HandClock>,
    ids: &Arc<CountingIds>,
    settings: Settings,
) -> Engine {
    let (store, clock, ids) = (Arc::clone(store), Arc::clone(clock), Arc::clone(ids));
    Engine::new(store, clock, ids, Arc::new(WordCount), settings).with_lexicon(Arc::new(FewWords))
}

pub(crate) fn contents(recalled: &Recalled) -> Vec<String> {
    recalled.items.iter().map(|found| found.item.content().to_owned()).collect()
}

pub(crate) fn ids(recalled: &Recalled) -> Vec<ItemId> {
    recalled.items.iter().map(|found| found.item.id()).collect()
}

/// A question with its trace.
pub(crate) fn explained(query: &str) -> RecallRequest {
    RecallRequest { explain: true, ..RecallRequest::new(query) }
}

/// A question in a session.
pub(crate) fn within(query: &str, of: &str) -> RecallRequest {
    RecallRequest { session: Some(session(of)), ..RecallRequest::new(query) }
}

/// A question with a scope.
pub(crate) fn scoped(query: &str, scope: Scope) -> RecallRequest {
    RecallRequest { scope: Some(scope), ..RecallRequest::new(query) }
}

/// The trace of an item.
pub(crate) fn traced(recalled: &Recalled, item: impl Into<Uuid>) -> Option<&TraceCandidate> {
    let item = item.into();
    let trace = recalled.trace.as_ref().expect("a trace was asked for");
    trace.candidates.iter().find(|candidate| candidate.item.uuid() == item)
}

/// All items of a user, in any state.
pub(crate) async fn all_items(store: &InMemoryStore, user: &UserId) -> Vec<Item> {
    store.feed(user, 0, u32::MAX).await.unwrap().into_iter().map(|(_, item)| item).collect()
}
