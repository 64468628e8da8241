//! Learning while the caller waits: the same code that jobs run, called directly.

use super::Learning;
use super::extract::OnModelFailure;
use crate::Recorded;
use crate::jobs::{Event, InferredEvent, was_overtaken};
use strata_core::error::Result;
use strata_core::id::{SessionId, TurnId, UserId};
use strata_core::store::{ChangeSet, MemoryQuery, MemorySelect};
use strata_core::turn::NewMessage;

/// The number of attempts if a worker changes the same turns or memories.
const TRIES: usize = 16;

impl Learning {
    /// Records messages in a session and learns from them before it returns. The result lists the memories that were
    /// added, replaced, ended or known already. Only the user's messages are learned from. The notes of a message name
    /// the owner of its memories ([`strata_core::turn::Owner`]).
    ///
    /// If the model fails, the rules decide. If this call is interrupted or fails after the messages were recorded, a
    /// worker does the rest, because recording enqueues the job as always.
    pub async fn infer(
        &self,
        user: &UserId,
        session: &SessionId,
        messages: Vec<NewMessage>,
        idempotency_key: Option<&str>,
    ) -> Result<Vec<InferredEvent>> {
        let recorded = self.recording.record(user, session, messages, idempotency_key).await?;
        self.learn_from(user, session, &recorded).await
    }

    /// Learns from turns that were just recorded, without waiting for a worker. If a worker was faster, the result
    /// lists what the worker learned.
    pub async fn learn_from(
        &self,
        user: &UserId,
        session: &SessionId,
        recorded: &Recorded,
    ) -> Result<Vec<InferredEvent>> {
        let turns: Vec<TurnId> = recorded.turns.iter().map(|turn| turn.id).collect();
        let places = recorded.turns.first().zip(recorded.turns.last());
        let Some((first, last)) = places.map(|(first, last)| (first.seq, last.seq)) else {
            return Ok(Vec::new());
        };
        let by_rules = Self { model: None, ..self.clone() };
        let mut events = Vec::new();
        let mut tries = 0;
        let mut done = recorded.replayed;
        // Whether no worker can have learned from these turns.
        let mut alone = !recorded.replayed;
        while !done {
            let Some(batch) = self.batch(user, session).await?.filter(|batch| !batch.is_behind(last)) else {
                alone = false;
                break;
            };
            // The caller does not wait for turns from before this call: the rules read them, without a call of the
            // model.
            let learning = if batch.covers(first) { self } else { &by_rules };
            let found = learning.extract(user, &batch, OnModelFailure::UseRules).await?;
            let work = learning.learned(user, &batch, &found).await?;
            let set = ChangeSet { expect: work.expect, ..ChangeSet::new(self.clock.now(), work.changes) };
            match self.store.apply(user, set).await {
                Ok(_) => events.extend(work.events),
                Err(error) if was_overtaken(&error) && tries < TRIES => {
                    tries += 1;
                    alone = false;
                    continue;
                }
                Err(error) => return Err(error),
            }
            done = batch.covers(last);
        }
        if alone {
            return Ok(events);
        }
        // A worker or an earlier call with the same key learned first. The memories then show the result.
        let told = |id| events.iter().any(|event| event.id == id);
        let query = MemoryQuery::new(MemorySelect::Current { as_of: None });
        let learned =
            self.store.memories(user, &query).await?.into_iter().filter(|memory| {
                memory.source_turns.iter().any(|turn| turns.contains(turn)) && !told(memory.id)
            });
        let missed: Vec<InferredEvent> = learned
            .map(|memory| InferredEvent {
                id: memory.id,
                memory: memory.content,
                event: Event::Add,
                previous: None,
            })
            .collect();
        events.extend(missed);
        Ok(events)
    }
}
