//! A session's working context: read and written as one JSON document.

use super::NewMemory;
use crate::jobs::Work;
use crate::limits::Limits;
use crate::memories::Memories;
use crate::recording::Recording;
use crate::sessions::Sessions;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use strata_core::context::{
    CompactionLimits, ContextChanges, ContextCompactor, ContextData, SessionParts, changes, counts_usage,
    of_session, removals,
};
use strata_core::error::{Error, ErrorKind, Result};
use strata_core::id::{MemoryId, SessionId, SummaryId, TurnId, UserId};
use strata_core::job::Job;
use strata_core::memory::Memory;
use strata_core::ports::{Clock, IdSource, TokenCounter};
use strata_core::session::Session;
use strata_core::store::Store;
use strata_core::store::{
    Change, ChangeSet, Expectation, MemoryQuery, MemorySelect, Page, SummaryQuery, TurnQuery,
};
use strata_core::summary::{Strategy, Summary, SummaryStatus};
use strata_core::turn::{Hidden, HiddenReason, Turn};

/// The largest number of turns in the history, if it was never compacted.
const MOST_TURNS: u64 = 1_000;

/// The most memories that become facts: the newest of the session and the newest of the user. The limit keeps the
/// document readable for a model or a person.
const MOST_FACTS: u32 = 1_000;

/// The number of attempts if other writers are faster.
pub(super) const TRIES: usize = 4;

/// The document that a write replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMatch {
    /// The caller names none. Then nothing may be removed.
    Absent,
    /// Any document.
    Any,
    /// The document with this [`ContextData::fingerprint`].
    Document(u64),
}

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
    pub(crate) compaction: Arc<CompactionLimits>,
    pub(crate) compactions: Arc<AtomicU64>,
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
    /// `if_match` names the document that the caller read. If it has changed since then, the result is a conflict. If
    /// the caller names none, the result is an error as soon as anything would be removed, because a fact or a task
    /// that came up since the caller read would count as removed.
    ///
    /// A fact that was said in another session stays, and so do all facts if the session is new.
    pub async fn put(
        &self,
        user: &UserId,
        session: &SessionId,
        context: &ContextData,
        if_match: IfMatch,
    ) -> Result<ContextData> {
        let mut tries = 0;
        loop {
            let found = self.store.session(user, session).await?;
            let is_new = found.is_none();
            let found = found.unwrap_or_else(|| Session::unwritten(session.clone(), self.clock.now()));
            let parts = self.session_parts(user, found).await?;
            let before = of_session(&parts);
            if matches!(if_match, IfMatch::Document(expected) if before.fingerprint() != expected) {
                return Err(Error::conflict(format!(
                    "the context of session `{session}` changed since it was read; read it again and repeat the change"
                )));
            }
            let mut asked = changes(&parts, context)?;
            if is_new {
                asked.removed_facts.clear();
                asked.state.get_or_insert_default();
            }
            self.keep_facts_of_others(user, &parts, &mut asked).await?;
            if if_match == IfMatch::Absent {
                check_removals(&before, context, &asked)?;
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
        let now = self.clock.now().as_second();
        if !ContextCompactor::compact_with(&mut context, limits, now) {
            return Ok((context, false));
        }
        context.long_term_summary = summary_of_gone(&parts, &before, &context, limits, now);
        let read = IfMatch::Document(before.fingerprint());
        let compacted = self.put(user, session, &context, read).await?;
        self.compactions.fetch_add(1, Ordering::Relaxed);
        Ok((compacted, true))
    }

    /// The number of compactions by this process.
    pub fn compactions(&self) -> u64 {
        self.compactions.load(Ordering::Relaxed)
    }

    /// Whether a recorded session has more history, tokens or completed tasks than the settings allow.
    pub(crate) async fn needs_compaction(&self, user: &UserId, session: &SessionId) -> Result<bool> {
        let Some(session) = self.store.session(user, session).await? else { return Ok(false) };
        let limits = &self.compaction;
        let cutoff = self.clock.now().as_second().saturating_sub(limits.completed_task_seconds);
        if session.state.active_tasks.iter().any(|task| task.is_completed_before(cutoff)) {
            return Ok(true);
        }
        let summary = self.rolling_summary(user, &session.id).await?;
        let start = SessionParts::history_start(&session, summary.as_ref(), MOST_TURNS);
        if session.turn_count - start > limits.max_recent_history as u64 {
            return Ok(true);
        }
        if session.state.token_usage.by_session <= limits.max_tokens as u64 {
            return Ok(false);
        }
        let turns = self.history(user, &session, start).await?;
        let tokens: u64 = turns.iter().map(|turn| u64::from(turn.token_count)).sum();
        Ok(turns.len() > 1 && tokens > limits.max_tokens as u64)
    }

    /// The changes of a `compact` job. They are written before the job ends: a second compaction finds nothing to do.
    pub(crate) async fn compact_job(&self, job: &Job) -> Result<Work> {
        let mut work = Work::default();
        let Some(session) = &job.session else { return Ok(work) };
        let compacted = match self.compact(&job.user, session, &self.compaction).await {
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            compacted => compacted?.1,
        };
        work.details.insert("compacted".to_owned(), compacted.into());
        Ok(work)
    }

    /// Leaves facts that were said in other sessions out of the removed ones.
    async fn keep_facts_of_others(
        &self,
        user: &UserId,
        parts: &SessionParts,
        asked: &mut ContextChanges,
    ) -> Result<()> {
        let here = &parts.session.id;
        let unbound = |id: &MemoryId| {
            let memory = parts.memories.iter().find(|memory| memory.id == *id);
            memory.filter(|memory| memory.session.as_ref() != Some(here))
        };
        let sources: Vec<TurnId> = asked
            .removed_facts
            .iter()
            .filter_map(unbound)
            .flat_map(|memory| memory.source_turns.clone())
            .collect();
        if sources.is_empty() {
            return Ok(());
        }
        let mut elsewhere = self.store.turns(user, &TurnQuery::Ids(sources)).await?;
        elsewhere.retain(|turn| turn.session != *here);
        let is_said_elsewhere =
            |memory: &Memory| elsewhere.iter().any(|turn| memory.source_turns.contains(&turn.id));
        asked.removed_facts.retain(|id| !unbound(id).is_some_and(is_said_elsewhere));
        Ok(())
    }

    async fn rolling_summary(&self, user: &UserId, session: &SessionId) -> Result<Option<Summary>> {
        let query = SummaryQuery {
            session: session.clone(),
            strategy: Some(Strategy::Rolling),
            status: Some(SummaryStatus::Completed),
            limit: 1,
        };
        Ok(self.store.summaries(user, &query).await?.pop())
    }

    /// The turns from `start` on.
    async fn history(&self, user: &UserId, session: &Session, start: u64) -> Result<Vec<Turn>> {
        let limit = u32::try_from(session.turn_count - start).unwrap_or(u32::MAX);
        let query = TurnQuery::Range { session: session.id.clone(), after: start.checked_sub(1), limit };
        self.store.turns(user, &query).await
    }

    async fn session_parts(&self, user: &UserId, session: Session) -> Result<SessionParts> {
        let summary = self.rolling_summary(user, &session.id).await?;
        let start = SessionParts::history_start(&session, summary.as_ref(), MOST_TURNS);
        let turns = self.history(user, &session, start).await?;
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
        // The state comes first, because it creates a session that does not exist yet. It is written with every summary, because
        // it raises the session's version: of two compactions at once, the second one then meets a conflict.
        let with_summary = asked.summary.is_some().then(|| before.clone());
        if let Some(mut state) = asked.state.or(with_summary) {
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

/// The summary after a compaction. The rolling summary may cover the entries that have left the history already; only
/// the others are added to it.
fn summary_of_gone(
    parts: &SessionParts,
    before: &ContextData,
    after: &ContextData,
    limits: &CompactionLimits,
    now: i64,
) -> String {
    let kept = after.recent_history.len();
    let covered = parts.covered().min(before.recent_history.len() - kept);
    let mut rest = before.clone();
    rest.recent_history.drain(..covered);
    let limits = CompactionLimits {
        max_recent_history: kept,
        keep_recent_history: kept,
        max_tokens: usize::MAX,
        ..limits.clone()
    };
    ContextCompactor::compact_with(&mut rest, &limits, now);
    rest.long_term_summary
}

/// *Unconditional* if the document would remove anything.
fn check_removals(before: &ContextData, after: &ContextData, asked: &ContextChanges) -> Result<()> {
    let mut removed = removals(before, after);
    removed.retain(|field| *field != "facts" || !asked.removed_facts.is_empty());
    if removed.is_empty() {
        return Ok(());
    }
    Err(Error::unconditional(format!(
        "the document would remove something from {}, perhaps what was added since it was read; read the document again, \
         repeat the change and say which document it replaces",
        removed.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ")
    )))
}

#[cfg(test)]
mod tests;
