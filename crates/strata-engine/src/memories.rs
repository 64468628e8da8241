//! Memories: added as given, edited with their history, deleted, restored and forgotten.

mod history;

pub use history::{HistoryStep, Quote};

use crate::limits::Limits;
use jiff::Timestamp;
use std::sync::Arc;
use strata_core::ports::{Clock, IdSource};
use strata_core::store::Store;

use crate::clock::to_micros;
use crate::disputes::drop_settled;
use crate::filter::Filter;
use strata_core::error::{Error, Result};
use strata_core::id::{MemoryId, SessionId, TurnId, UserId};
use strata_core::memory::{Memory, MemoryKind, MemoryNotes};
use strata_core::store::{Change, ChangeSet, Forget, MemoryQuery, MemorySelect, Removed};
use strata_core::turn::{Hidden, HiddenReason, Metadata};

/// A statement to store as given.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMemory {
    /// The statement.
    pub content: String,
    /// The kind of the statement.
    pub kind: MemoryKind,
    /// The session that the memory is bound to, if any.
    pub session: Option<SessionId>,
    /// The agent that the memory belongs to, if any.
    pub agent: Option<String>,
    /// The caller's confidence, from 0 to 1.
    pub confidence: f32,
    /// When the statement began to be true; defaults to now.
    pub valid_from: Option<Timestamp>,
    /// The turns that hold the statement.
    pub source_turns: Vec<TurnId>,
    /// The client's metadata.
    pub metadata: Metadata,
}

impl NewMemory {
    /// A fact that holds in all sessions, with full confidence.
    pub fn new(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            kind: MemoryKind::Fact,
            session: None,
            agent: None,
            confidence: 1.0,
            valid_from: None,
            source_turns: Vec::new(),
            metadata: Metadata::new(),
        }
    }
}

/// An edit of a memory by a person.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryEdit {
    /// The new statement.
    pub content: String,
    /// The new metadata; `None` keeps the old.
    pub metadata: Option<Metadata>,
}

/// Memories: added as given, edited with their history, deleted, restored and forgotten.
#[derive(Clone)]
pub struct Memories {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) limits: Limits,
}

impl Memories {
    /// Stores statements as given, all or none.
    pub async fn add(&self, user: &UserId, memories: Vec<NewMemory>) -> Result<Vec<Memory>> {
        if memories.is_empty() {
            return Err(Error::invalid("no memory was given; send at least one"));
        }
        let now = self.clock.now();
        let memories =
            memories.into_iter().map(|memory| self.memory_at(memory, now)).collect::<Result<Vec<_>>>()?;
        let changes = memories.iter().cloned().map(|memory| Change::AddMemory(Box::new(memory))).collect();
        self.store.apply(user, ChangeSet::new(now, changes)).await?;
        Ok(memories)
    }

    pub(crate) fn memory_at(&self, memory: NewMemory, now: Timestamp) -> Result<Memory> {
        let NewMemory { content, kind, session, agent, confidence, valid_from, source_turns, metadata } =
            memory;
        self.check_statement(&content)?;
        self.limits.check_metadata("`metadata`", &metadata)?;
        if let Some(agent) = &agent {
            // The name of an agent follows the rules for session names.
            SessionId::new(agent.as_str())
                .map_err(|error| Error::invalid(error.message().replace("session", "agent")))?;
        }
        if !(0.0..=1.0).contains(&confidence) {
            return Err(Error::invalid(format!("`confidence` is `{confidence}`; it goes from 0 to 1")));
        }
        Ok(Memory {
            id: MemoryId(self.ids.next()),
            session,
            agent,
            kind,
            content,
            confidence,
            valid_from: valid_from.map_or(now, to_micros),
            valid_to: None,
            recorded_at: now,
            replaced_by: None,
            source_turns,
            source_summary: None,
            metadata,
            notes: MemoryNotes::default(),
            hidden: None,
        })
    }

    fn check_statement(&self, content: &str) -> Result<()> {
        self.limits.check_text("the memory", content)?;
        if content.trim().is_empty() {
            return Err(Error::invalid("the memory is empty; say what to remember"));
        }
        Ok(())
    }

    /// One memory in any state; *not found* if there is none.
    pub async fn get(&self, user: &UserId, id: MemoryId) -> Result<Memory> {
        let query = MemoryQuery::new(MemorySelect::Ids(vec![id]));
        self.listed(user, &query).await?.pop().ok_or_else(|| unknown_memory(id))
    }

    /// The memories that a query selects. A current one names the memory that it may contradict only while that one is
    /// current too.
    pub async fn list(&self, user: &UserId, query: &MemoryQuery) -> Result<Vec<Memory>> {
        self.listed(user, query).await
    }

    async fn listed(&self, user: &UserId, query: &MemoryQuery) -> Result<Vec<Memory>> {
        let mut memories = self.store.memories(user, query).await?;
        drop_settled(self.store.as_ref(), user, memories.iter_mut()).await?;
        Ok(memories)
    }

    /// Like [`Memories::list`], but only the memories that match a filter.
    pub async fn filtered(&self, user: &UserId, query: &MemoryQuery, filter: &Filter) -> Result<Vec<Memory>> {
        if filter.is_only(user) {
            return self.list(user, query).await;
        }
        self.listed(user, &MemoryQuery { keep: Some(filter.keep(user)), ..query.clone() }).await
    }

    /// The statements that a memory replaced, the memory itself, and those that replaced it, oldest first.
    pub async fn history(&self, user: &UserId, id: MemoryId) -> Result<Vec<Memory>> {
        let query = MemoryQuery::new(MemorySelect::History(id));
        let history = self.store.memories(user, &query).await?;
        if history.is_empty() { Err(unknown_memory(id)) } else { Ok(history) }
    }

    /// Gives a memory a new statement under the same id. The old statement stays in the history.
    pub async fn revise(&self, user: &UserId, id: MemoryId, edit: MemoryEdit) -> Result<Memory> {
        let MemoryEdit { content, metadata } = edit;
        self.check_statement(&content)?;
        if let Some(metadata) = &metadata {
            self.limits.check_metadata("`metadata`", metadata)?;
        }
        let archive_as = MemoryId(self.ids.next());
        let change = Change::ReviseMemory { id, archive_as, content, metadata };
        self.store.apply(user, ChangeSet::one(self.clock.now(), change)).await?;
        self.get(user, id).await
    }

    /// Hides a memory from recall and lists. It can be restored until it is forgotten.
    pub async fn delete(&self, user: &UserId, id: MemoryId) -> Result<()> {
        let now = self.clock.now();
        let hidden = Some(Hidden { reason: HiddenReason::Deleted, at: now });
        self.store.apply(user, ChangeSet::one(now, Change::HideMemory { id, hidden })).await?;
        Ok(())
    }

    /// Deletes the memories that a query selects, all or none. Returns their number.
    pub async fn delete_all(&self, user: &UserId, query: &MemoryQuery) -> Result<u64> {
        let now = self.clock.now();
        let hidden = Some(Hidden { reason: HiddenReason::Deleted, at: now });
        let memories = self.store.memories(user, query).await?;
        let changes: Vec<_> =
            memories.iter().map(|memory| Change::HideMemory { id: memory.id, hidden }).collect();
        let count = changes.len() as u64;
        self.store.apply(user, ChangeSet::new(now, changes)).await?;
        Ok(count)
    }

    /// Restores a deleted or evicted memory. It is not evicted again.
    pub async fn restore(&self, user: &UserId, id: MemoryId) -> Result<Memory> {
        let now = self.clock.now();
        let was_evicted =
            self.get(user, id).await?.hidden.map(|hidden| hidden.reason) == Some(HiddenReason::Evicted);
        let mut changes = vec![Change::HideMemory { id, hidden: None }];
        if was_evicted {
            let notes = MemoryNotes { restored_at: Some(now), ..MemoryNotes::default() };
            changes.push(Change::NoteMemory { id, notes });
        }
        self.store.apply(user, ChangeSet::new(now, changes)).await?;
        self.get(user, id).await
    }

    /// Destroys a memory and its former statements.
    pub async fn forget(&self, user: &UserId, id: MemoryId) -> Result<Removed> {
        let change = Change::Forget(Forget::Memory(id));
        Ok(self.store.apply(user, ChangeSet::one(self.clock.now(), change)).await?.removed)
    }

    /// Destroys all memories of a user. The turns stay.
    pub async fn forget_all(&self, user: &UserId) -> Result<Removed> {
        let change = Change::Forget(Forget::Memories);
        Ok(self.store.apply(user, ChangeSet::one(self.clock.now(), change)).await?.removed)
    }
}

fn unknown_memory(id: MemoryId) -> Error {
    Error::not_found(format!("memory `{id}` does not exist for this user"))
}
