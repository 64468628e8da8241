//! Memories: the statements, their sources, and the result of a call that changes them.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde::Serialize;
use strata_core::memory::TodoState;
use strata_core::store::{MemoryQuery, MemorySelect, Removed, TurnQuery};
use strata_core::turn::Metadata;
use strata_core::{Memory, MemoryId, Result, SessionId, Turn, TurnId, UserId};
use strata_engine::Engine;
use strata_engine::{Event, InferredEvent};
use utoipa::ToSchema;
use uuid::Uuid;

use super::names::{Kind, Scope};
use super::session::RemovedCounts;
use super::shortest_f32;

response! {
    /// A memory.
    pub MemoryResponse of pub(crate) fn(owner: &UserId, memory: &Memory, sources: &Sources) {
        /// Its id. An edit does not change it.
        pub(crate) id: Uuid = memory.id.0,
        /// The statement.
        pub(crate) memory: String = memory.content.clone(),
        /// The user it belongs to; `null` if the scope is `global`.
        user_id: Option<String> = (*owner != UserId::global()).then(|| owner.to_string()),
        /// The agent it belongs to.
        pub(crate) agent_id: Option<String> = memory.agent.clone(),
        /// The session it is bound to.
        pub(crate) run_id: Option<String> = memory.session.as_ref().map(ToString::to_string),
        /// Where it holds.
        pub(crate) scope: Scope = scope_of(owner, memory),
        /// The kind of the statement.
        pub(crate) kind: Kind = memory.kind.into(),
        /// The confidence, from 0 to 1.
        #[serde(serialize_with = "shortest_f32")]
        confidence: f32 = memory.confidence,
        /// The client's metadata.
        #[schema(value_type = Object)]
        pub(crate) metadata: Metadata = memory.metadata.clone(),
        /// How a todo ended: `done` or `dropped`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        pub(crate) todo: Option<&'static str> = memory.notes.todo.map(TodoState::as_str),
        /// A current memory that it may contradict. The newer of the two comes first in lists.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        pub(crate) disputed_with: Option<Uuid> = sources.disputed(memory),
        /// How sure the reader was of the change that closed it, or of the dispute, in per cent.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        certainty: Option<u8> = memory.notes.certainty,
        /// When its first statement was recorded. An edit does not change it.
        pub(crate) created_at: Timestamp = memory.first_recorded_at(),
        /// When it last changed.
        updated_at: Timestamp = memory.hidden.map_or(memory.recorded_at, |hidden| hidden.at),
        /// When the statement became true.
        pub(crate) valid_from: Timestamp = memory.valid_from,
        /// When the statement stopped being true; `null` while it is true.
        pub(crate) valid_to: Option<Timestamp> = memory.valid_to,
        /// The memory that replaced it.
        pub(crate) replaced_by: Option<Uuid> = memory.replaced_by.map(|id| id.0),
        /// Why recall does not return it; `null` if recall does.
        pub(crate) hidden: Option<&'static str> = memory.hidden.map(|hidden| hidden.reason.as_str()),
        /// The turns that it comes from.
        pub(crate) source: Source = sources.of(memory),
    }
}

impl MemoryResponse {
    /// A memory of `owner`. This reads the places of its source turns.
    pub async fn load(engine: &Engine, owner: &UserId, memory: &Memory) -> Result<Self> {
        let sources = Sources::load(engine, owner, [memory]).await?;
        Ok(Self::new(owner, memory, &sources))
    }
}

fn scope_of(owner: &UserId, memory: &Memory) -> Scope {
    match &memory.session {
        Some(_) => Scope::Session,
        None if *owner == UserId::global() => Scope::Global,
        None => Scope::User,
    }
}

/// Memories, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemoriesResponse {
    results: Vec<MemoryResponse>,
}

impl MemoriesResponse {
    /// Memories of `owner`. This reads the places of their source turns.
    pub async fn load(engine: &Engine, owner: &UserId, memories: &[Memory]) -> Result<Self> {
        let sources = Sources::load(engine, owner, memories).await?;
        let results = memories.iter().map(|memory| MemoryResponse::new(owner, memory, &sources)).collect();
        Ok(Self { results })
    }
}

/// The turns that an item comes from.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Source {
    /// The turns that state it.
    pub(crate) turns: Vec<SourceTurn>,
}

/// A turn that an item comes from.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SourceTurn {
    /// Its id.
    pub(crate) id: Uuid,
    /// Its session; absent if the turn has been destroyed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    session_id: Option<String>,
    /// Its place in the session; absent if the turn has been destroyed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    seq: Option<u64>,
}

impl From<&Turn> for Source {
    fn from(turn: &Turn) -> Self {
        let session_id = Some(turn.session.to_string());
        Self { turns: vec![SourceTurn { id: turn.id.0, session_id, seq: Some(turn.seq) }] }
    }
}

/// The source turns of some memories (their places, times and speakers), and those of their disputes that are still open.
#[derive(Default)]
pub(crate) struct Sources {
    said: HashMap<TurnId, SaidTurn>,
    current: HashSet<MemoryId>,
}

/// Where, when and by whom a turn was said.
struct SaidTurn {
    session: SessionId,
    seq: u64,
    said_at: Timestamp,
    name: Option<String>,
}

impl Sources {
    pub(crate) async fn load<'a>(
        engine: &Engine,
        user: &UserId,
        memories: impl IntoIterator<Item = &'a Memory>,
    ) -> Result<Self> {
        let (mut ids, mut disputed) = (Vec::new(), Vec::new());
        for memory in memories {
            ids.extend(&memory.source_turns);
            disputed.extend(memory.notes.disputed.filter(|_| memory.is_current()));
        }
        ids.sort_unstable();
        ids.dedup();
        let mut sources = Self::default();
        if !ids.is_empty() {
            let turns = engine.store().turns(user, &TurnQuery::Ids(ids)).await?;
            let said =
                turns.into_iter().map(|Turn { id, session, seq, created_at: said_at, name, .. }| {
                    (id, SaidTurn { session, seq, said_at, name })
                });
            sources.said = said.collect();
        }
        if !disputed.is_empty() {
            let others = MemoryQuery::new(MemorySelect::Ids(disputed));
            let others = engine.store().memories(user, &others).await?;
            sources.current =
                others.iter().filter(|other| other.is_current()).map(|other| other.id).collect();
        }
        Ok(sources)
    }

    /// The current memory that a memory is in dispute with.
    fn disputed(&self, memory: &Memory) -> Option<Uuid> {
        let other = memory.notes.disputed.filter(|other| memory.is_current() && self.current.contains(other));
        other.map(|other| other.0)
    }

    /// When a memory's first source turn was said, or else when the memory was first recorded.
    pub(crate) fn said_at(&self, memory: &Memory) -> Timestamp {
        self.first(memory).map_or_else(|| memory.first_recorded_at(), |said| said.said_at)
    }

    /// The name of the speaker of a memory's first source turn.
    pub(crate) fn name(&self, memory: &Memory) -> Option<String> {
        self.first(memory)?.name.clone()
    }

    fn first(&self, memory: &Memory) -> Option<&SaidTurn> {
        memory.source_turns.iter().filter_map(|id| self.said.get(id)).min_by_key(|said| said.said_at)
    }

    pub(crate) fn of(&self, memory: &Memory) -> Source {
        let turns = memory.source_turns.iter().map(|id| {
            let (session_id, seq) =
                self.said.get(id).map(|said| (said.session.to_string(), said.seq)).unzip();
            SourceTurn { id: id.0, session_id, seq }
        });
        Source { turns: turns.collect() }
    }
}

/// The memories that were added.
#[derive(Debug, Serialize, ToSchema)]
pub struct AddResponse {
    pub(crate) results: Vec<AddedMemory>,
    /// Whether statements were inferred. `false` means that they are stored in the given words.
    inferred: bool,
}

impl AddResponse {
    /// Memories that are stored unchanged.
    pub(crate) fn stored(memories: &[Memory]) -> Self {
        Self { results: memories.iter().map(AddedMemory::from).collect(), inferred: false }
    }

    /// Memories that are stored in the given words and reconciled with the known ones.
    pub(crate) fn reconciled(events: &[InferredEvent]) -> Self {
        Self { inferred: false, ..Self::inferred(events) }
    }

    /// The result of learning.
    pub fn inferred(events: &[InferredEvent]) -> Self {
        Self { results: events.iter().map(AddedMemory::from).collect(), inferred: true }
    }

    /// The number of memories that are new or have a new statement.
    pub(crate) fn added(&self) -> usize {
        let is_added = |result: &&AddedMemory| matches!(result.event, AddEvent::Add | AddEvent::Update);
        self.results.iter().filter(is_added).count()
    }
}

/// The change of one memory.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AddedMemory {
    /// Its id.
    pub(crate) id: Uuid,
    /// The statement.
    pub(crate) memory: String,
    /// The kind of the change.
    pub(crate) event: AddEvent,
    /// The statement that this one replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    previous_memory: Option<String>,
}

/// The kind of a change.
#[derive(Debug, Serialize, ToSchema, strum::IntoStaticStr)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
pub(crate) enum AddEvent {
    /// The memory is new.
    Add,
    /// The memory replaced another one.
    Update,
    /// The memory is no longer believed.
    Delete,
    /// The statement was already known.
    None,
}

impl AddEvent {
    pub(crate) fn as_str(&self) -> &'static str {
        self.into()
    }
}

impl From<&InferredEvent> for AddedMemory {
    fn from(inferred: &InferredEvent) -> Self {
        let InferredEvent { id, memory, event, previous } = inferred;
        let event = match event {
            Event::Add => AddEvent::Add,
            Event::Update => AddEvent::Update,
            Event::Delete => AddEvent::Delete,
            Event::None => AddEvent::None,
        };
        Self { id: id.0, memory: memory.clone(), event, previous_memory: previous.clone() }
    }
}

impl From<&Memory> for AddedMemory {
    fn from(memory: &Memory) -> Self {
        let memory_text = memory.content.clone();
        Self { id: memory.id.0, memory: memory_text, event: AddEvent::Add, previous_memory: None }
    }
}

/// The result of a deletion.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedResponse {
    /// A message for a person.
    message: &'static str,
    /// The number of memories that were removed from recall and lists. They can be restored.
    deleted: u64,
    /// The number of destroyed items, with `forget`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    removed: Option<RemovedCounts>,
}

impl DeletedResponse {
    /// This many memories were removed from recall.
    pub(crate) fn deleted(message: &'static str, deleted: u64) -> Self {
        Self { message, deleted, removed: None }
    }

    /// Memories were destroyed.
    pub(crate) fn destroyed(message: &'static str, removed: &Removed) -> Self {
        Self { message, deleted: 0, removed: Some(removed.into()) }
    }
}
