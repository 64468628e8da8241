//! A session's working context: served as one document, and taken back.

use super::{Engine, NewMemory};
use strata_core::context::{
    CompactionLimits, ContextChanges, ContextCompactor, ContextData, SessionParts, changes, counts_usage,
    of_session,
};
use strata_core::error::{Error, ErrorKind, Result};
use strata_core::id::{SessionId, SummaryId, UserId};
use strata_core::session::Session;
use strata_core::state::State;
use strata_core::store::{Change, ChangeSet, MemoryQuery, MemorySelect, Page, SummaryQuery, TurnQuery};
use strata_core::summary::{Strategy, Summary, SummaryStatus};
use strata_core::turn::{Hidden, HiddenReason};

/// The history shows at least so many turns: what document 2 keeps before it compacts.
const LEAST_TURNS: u64 = 50;

/// And at most so many, where no summary covers those before.
const MOST_TURNS: u64 = 1_000;

/// The most memories that become facts, the newest of the session and the newest of the user: a document is to be read by a model or a person.
const MOST_FACTS: u32 = 1_000;

/// How often a write is tried again that another writer overtook.
pub(super) const TRIES: usize = 4;

impl Engine {
    /// A session's working context; *not found* where there is no such session. What holds for all of the user's
    /// sessions stands among its facts.
    pub async fn context(&self, user: &UserId, session: &SessionId) -> Result<ContextData> {
        let found = self.session(user, session).await?;
        Ok(of_session(&self.session_parts(user, found).await?))
    }

    /// Makes a session's working context what `context` says, all or nothing, and gives it back as it is then. The
    /// session is created if it does not exist.
    ///
    /// With `expected`, the [`ContextData::fingerprint`] of the document that was read before, a document that changed
    /// since is a conflict. Without it the document is compared with what is stored now, and a fact that was learned
    /// since it was read counts as removed.
    pub async fn put_context(
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
            let parts = self.session_parts(user, found.unwrap_or_else(|| self.no_session(session))).await?;
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
                match self.store.apply(user, ChangeSet::new(self.now(), changes)).await {
                    Err(error)
                        if error.kind() == ErrorKind::Conflict && error.is_retryable() && tries < TRIES =>
                    {
                        tries += 1;
                        continue;
                    }
                    applied => applied?,
                };
            }
            return self.context(user, session).await;
        }
    }

    /// Compacts a session's working context as document 2 describes, and says whether anything changed. Turns stay where
    /// they are: what leaves the history is summarised in a new version of the rolling summary.
    pub async fn compact_context(
        &self,
        user: &UserId,
        session: &SessionId,
        limits: &CompactionLimits,
    ) -> Result<(ContextData, bool)> {
        let found = self.session(user, session).await?;
        let parts = self.session_parts(user, found).await?;
        let before = of_session(&parts);
        let mut context = before.clone();
        if !ContextCompactor::compact_with(&mut context, limits, self.now().as_second()) {
            return Ok((context, false));
        }
        // What has left the history may stand in the rolling summary already: then it needs no second one.
        let gone = before.recent_history.len() - context.recent_history.len();
        if parts.covers(gone) {
            context.long_term_summary.clone_from(&before.long_term_summary);
        }
        let read = before.fingerprint();
        Ok((self.put_context(user, session, &context, Some(read)).await?, true))
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

    fn no_session(&self, session: &SessionId) -> Session {
        let now = self.now();
        Session {
            id: session.clone(),
            created_at: now,
            updated_at: now,
            turn_count: 0,
            state: State::default(),
        }
    }

    fn context_changes(&self, parts: &SessionParts, asked: ContextChanges) -> Result<Vec<Change>> {
        let now = self.now();
        let session = &parts.session.id;
        let Session { turn_count, state: before, .. } = &parts.session;
        let expected = Change::ExpectSession {
            session: session.clone(),
            turn_count: *turn_count,
            state: Box::new(before.clone()),
        };
        let mut changes = vec![expected];
        // Before the others, because it creates a session that does not exist yet.
        if let Some(mut state) = asked.state {
            self.check_state(&state)?;
            if counts_usage(before, &state) && state.observed.turns == *turn_count {
                state.observed.turns += asked.new_messages.len() as u64;
            }
            changes.push(Change::PutState { session: session.clone(), state: Box::new(state) });
        }
        if !asked.new_messages.is_empty() {
            let messages = asked.new_messages.into_iter();
            let turns = messages.map(|message| self.new_turn(message, now)).collect::<Result<_>>()?;
            changes.push(Change::AppendTurns { session: session.clone(), turns });
        }
        if let Some(rewrite) = asked.summary {
            self.check_text("`long_term_summary`", &rewrite.text)?;
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
            changes.push(Change::AddMemory(Box::new(self.memory_at(memory, now)?)));
        }
        let hidden = Some(Hidden { reason: HiddenReason::Deleted, at: now });
        changes.extend(asked.removed_facts.into_iter().map(|id| Change::HideMemory { id, hidden }));
        Ok(changes)
    }

    pub(super) fn check_state(&self, state: &State) -> Result<()> {
        let value = serde_json::to_value(state)
            .map_err(|error| Error::invalid("the state is no JSON").with_source(error))?;
        self.check_json("the state", &value)
    }
}

#[cfg(test)]
mod tests;
