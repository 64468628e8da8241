//! Statements that a person or a program adds: reconciled with the known memories like learned ones.

use super::Learning;
use super::reconcile::{DatedStatement, Target};
use crate::jobs::{InferredEvent, was_overtaken};
use crate::learn::Statement;
use crate::memories::NewMemory;
use strata_core::error::{Error, Result};
use strata_core::id::UserId;
use strata_core::store::ChangeSet;
use strata_core::turn::Owner;

/// The number of attempts if other writers change the memories in the meantime.
const TRIES: usize = 8;

impl Learning {
    /// Adds statements in the given words, and reconciles them with the known memories: one that is known already
    /// confirms the memory, and one that changes a memory replaces it. To store statements without that, call
    /// [`crate::Memories::add`].
    pub async fn add(&self, user: &UserId, memories: Vec<NewMemory>) -> Result<Vec<InferredEvent>> {
        if memories.is_empty() {
            return Err(Error::invalid("no memory was given; send at least one"));
        }
        let now = self.clock.now();
        // All of them are checked before the first is stored.
        for memory in &memories {
            self.memories.memory_at(memory.clone(), now)?;
        }
        let mut events = Vec::new();
        for memory in memories {
            events.extend(self.add_one(user, memory).await?);
        }
        Ok(events)
    }

    async fn add_one(&self, user: &UserId, memory: NewMemory) -> Result<Vec<InferredEvent>> {
        let NewMemory { content, kind, session, agent, confidence, valid_from, source_turns, metadata } =
            memory;
        let target = Target {
            session: session.clone(),
            within: session.unwrap_or_default(),
            owner: Owner { agent, metadata, ..Owner::default() },
            // A statement that is given for a session, or for none, says nothing about other sessions.
            apart: true,
        };
        let statement =
            Statement { content, kind, confidence, turns: source_turns, valid_from, as_said: None };
        let alone = Self { model: None, ..self.clone() };
        let mut overtaken = None;
        for _ in 0..TRIES {
            let heard = statement.content.clone();
            let dated = DatedStatement { statement: statement.clone(), at: self.clock.now(), heard };
            // Boxed, because the futures of all callers hold it.
            let work = Box::pin(alone.reconcile(user, &target, vec![dated])).await?;
            let set = ChangeSet { expect: work.expect, ..ChangeSet::new(self.clock.now(), work.changes) };
            if set.changes.is_empty() {
                return Ok(work.events);
            }
            match self.store.apply(user, set).await {
                Ok(_) => return Ok(work.events),
                Err(error) if was_overtaken(&error) => overtaken = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(overtaken.unwrap_or_else(|| Error::internal("adding a memory made no progress")))
    }
}
