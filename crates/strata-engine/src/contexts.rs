//! A session's working context: read and written as one JSON document.

use super::NewMemory;
use crate::limits::Limits;
use crate::memories::Memories;
use crate::recording::Recording;
use crate::sessions::Sessions;
use std::sync::Arc;
use strata_core::context::{
    CompactionLimits, ContextChanges, ContextCompactor, ContextData, SessionParts, changes, counts_usage,
    of_session,
};
use strata_core::error::{Error, ErrorKind, Result};
use strata_core::id::{SessionId, SummaryId, UserId};
use strata_core::ports::{Clock, IdSource, TokenCounter};
use strata_core::session::Session;
use strata_core::state::State;
use strata_core::store::Store;
use strata_core::store::{
    Change, ChangeSet, Expectation, MemoryQuery, MemorySelect, Page, SummaryQuery, TurnQuery,
};
use strata_core::summary::{Strategy, Summary, SummaryStatus};
use strata_core::turn::{Hidden, HiddenReason};

/// The least number of turns in the history: as many as the context-store design keeps before it compacts.
const LEAST_TURNS: u64 = 50;

/// The largest number of turns in the history, if no summary covers the turns before them.
const MOST_TURNS: u64 = 1_000;

/// The most memories that become facts: the newest of the session and the newest of the user. The limit keeps the
/// document readable for a model or a person.
const MOST_FACTS: u32 = 1_000;

/// The number of attempts if other writers are faster.
pub(super) const TRIES: usize = 4;

/// The working contexts of sessions, each as one JSON document.
#[derive(Clone)]
pub struct Contexts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) tokens: Arc<dyn TokenCounter>,
    pub(crate) limits: Limits,
    pub(crate) sessions: Sessions,
    pub(crate) recording: Recording,
    pub(crate) memories: Memories,
}

impl Contexts {
    /// A session's working context; *not found* if there is no such session. Its facts include those that hold in all
    /// of the user's sessions.
    pub async fn get(&self, user: &UserId, session: &SessionId) -> Result<ContextData> {
        let found = self.sessions.get(user, session).await?;
        Ok(of_session(&self.session_parts(user, found).await?))
    }

    /// Replaces a session's working context by `context`, all or nothing, and returns the stored result. The session is
    /// created if it does not exist.
    ///
    /// `expected` is the [`ContextData::fingerprint`] of the document that the caller read. If the document has changed
    /// since then, the result is a conflict. Without `expected` the document is compared with the stored one, and a
    /// fact that was learned since the caller read it counts as removed.
    pub async fn put(
        &self,
        user: &UserId,
        session: &SessionId,
        context: &ContextData,
        expected: Option<u64>,
    ) -> Result<ContextData> {
        let mut tries = 0;
        loop {
            let found = self.store.session(user, session).await?;
            let is_new = found.is_none();
            let found = found.unwrap_or_else(|| Session::unwritten(session.clone(), self.clock.now()));
            let parts = self.session_parts(user, found).await?;
            if expected.is_some_and(|expected| of_session(&parts).fingerprint() != expected) {
                return Err(Error::conflict(format!(
                    "the context of session `{session}` changed since it was read; read it again and repeat the change"
                )));
            }
            let mut asked = changes(&parts, context)?;
            if is_new && asked.state.is_none() {
                asked.state = Some(State::default());
            }
            if !asked.is_empty() {
                let changes = self.context_changes(&parts, asked)?;
                let expected = Expectation::unchanged(&parts.session);
                match self
                    .store
                    .apply(user, ChangeSet::new(self.clock.now(), changes).expecting(expected))
                    .await
                {
                    Err(error)
                        if error.kind() == ErrorKind::Conflict && error.is_retryable() && tries < TRIES =>
                    {
                        tries += 1;
                        continue;
                    }
                    applied => applied?,
                };
            }
            return self.get(user, session).await;
        }
    }

    /// Compacts a session's working context as the context-store design describes, and returns whether anything
    /// changed. The turns stay stored: a new version of the rolling summary covers those that leave the history.
    pub async fn compact(
        &self,
        user: &UserId,
        session: &SessionId,
        limits: &CompactionLimits,
    ) -> Result<(ContextData, bool)> {
        let found = self.sessions.get(user, session).await?;
        let parts = self.session_parts(user, found).await?;
        let before = of_session(&parts);
        let mut context = before.clone();
        if !ContextCompactor::compact_with(&mut context, limits, self.clock.now().as_second()) {
            return Ok((context, false));
        }
        // The rolling summary may already cover the turns that leave the history. Then it needs no new version.
        let gone = before.recent_history.len() - context.recent_history.len();
        if parts.covers(gone) {
            context.long_term_summary.clone_from(&before.long_term_summary);
        }
        let read = before.fingerprint();
        Ok((self.put(user, session, &context, Some(read)).await?, true))
    }

    async fn session_parts(&self, user: &UserId, session: Session) -> Result<SessionParts> {
        let query = SummaryQuery {
            session: session.id.clone(),
            strategy: Some(Strategy::Rolling),
            status: Some(SummaryStatus::Completed),
            limit: 1,
        };
        let summary = self.store.summaries(user, &query).await?.pop();
        let start = SessionParts::history_start(&session, summary.as_ref(), LEAST_TURNS, MOST_TURNS);
        let after = start.checked_sub(1);
        let limit = u32::try_from(session.turn_count - start).unwrap_or(u32::MAX);
        let query = TurnQuery::Range { session: session.id.clone(), after, limit };
        let turns = self.store.turns(user, &query).await?;
        let mut query = MemoryQuery::new(MemorySelect::Current { as_of: None });
        query.page = Page::first(MOST_FACTS);
        let mut memories = self.store.memories(user, &query).await?;
        memories.retain(|memory| memory.session.is_none());
        query.session = Some(session.id.clone());
        memories.extend(self.store.memories(user, &query).await?);
        Ok(SessionParts { session, memories, turns, summary })
    }

    fn context_changes(&self, parts: &SessionParts, asked: ContextChanges) -> Result<Vec<Change>> {
        let now = self.clock.now();
        let session = &parts.session.id;
        let Session { turn_count, state: before, .. } = &parts.session;
        let mut changes = Vec::new();
        // The state comes first, because it creates a session that does not exist yet.
        if let Some(mut state) = asked.state {
            self.limits.check_state(&state)?;
            if counts_usage(before, &state) && state.observed.turns == *turn_count {
                state.observed.turns += asked.new_messages.len() as u64;
            }
            changes.push(Change::PutState { session: session.clone(), state: Box::new(state) });
        }
        if !asked.new_messages.is_empty() {
            let messages = asked.new_messages.into_iter();
            let turns =
                messages.map(|message| self.recording.new_turn(message, now)).collect::<Result<_>>()?;
            changes.push(Change::AppendTurns { session: session.clone(), turns });
        }
        if let Some(rewrite) = asked.summary {
            self.limits.check_text("`long_term_summary`", &rewrite.text)?;
            changes.push(Change::PutSummary(Box::new(Summary {
                id: SummaryId(self.ids.next()),
                session: session.clone(),
                strategy: Strategy::Rolling,
                level: 0,
                start_seq: 0,
                end_seq: rewrite.end_seq,
                base_id: parts.summary.as_ref().map(|summary| summary.id),
                status: SummaryStatus::Completed,
                output_tokens: self.tokens.count(&rewrite.text),
                text: rewrite.text,
                structured: Some(rewrite.structured).filter(|structured| !structured.is_null()),
                input_tokens: 0,
                generation_ms: None,
                created_at: now,
                updated_at: now,
            })));
        }
        for fact in asked.new_facts {
            let memory = NewMemory { session: Some(session.clone()), ..NewMemory::new(fact) };
            changes.push(Change::AddMemory(Box::new(self.memories.memory_at(memory, now)?)));
        }
        let hidden = Some(Hidden { reason: HiddenReason::Deleted, at: now });
        changes.extend(asked.removed_facts.into_iter().map(|id| Change::HideMemory { id, hidden }));
        Ok(changes)
    }
}

#[cfg(test)]
mod tests;
