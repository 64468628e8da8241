//! Learning while somebody waits: the very path that jobs take, done at once.

use super::Learning;
use super::extract::OnModelFailure;
use crate::Recorded;
use crate::jobs::{Event, InferredEvent, was_overtaken};
use strata_core::error::Result;
use strata_core::id::{SessionId, TurnId, UserId};
use strata_core::store::{ChangeSet, MemoryQuery, MemorySelect};
use strata_core::turn::NewMessage;

/// How often it is tried again when a worker is at the same turns or memories.
const TRIES: usize = 16;

impl Learning {
    /// Records messages in a session and learns from them before it returns: what was added, replaced, ended and known already.
    /// Only what the user said is learned from; whose the
    /// memories become is what the message's notes say ([`strata_core::turn::Owner`]).
    ///
    /// Where the model fails the rules decide. Should this call die, or fail after the messages were recorded, a worker does the
    /// rest: recording asks for the job as it always does.
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

    /// Learns from turns that were just recorded, without waiting for a worker; where one was faster, says what it learned.
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
        // Whether nobody else can have learned from these turns.
        let mut alone = !recorded.replayed;
        while !done {
            let Some(batch) = self.batch(user, session).await?.filter(|batch| !batch.is_behind(last)) else {
                alone = false;
                break;
            };
            // Turns that waited before these are nobody's question: they cost no call.
            let learning = if batch.covers(first) { self } else { &by_rules };
            let found = learning.extract(&batch, OnModelFailure::UseRules).await?;
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
        // A worker was faster, or an earlier call with the same key: then the memories tell.
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
