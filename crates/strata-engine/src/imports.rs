//! Imports the recordings of another program. A second import of the same data changes nothing.

use crate::limits::Limits;
use crate::recording::{Recording, session_now};
use serde_json::{Map, Value};
use std::sync::Arc;
use strata_core::ports::{Clock, TokenCounter};
use strata_core::store::Store;

use crate::contexts::TRIES;
use crate::prompt::count_usage;
use strata_core::error::{ErrorKind, Result};
use strata_core::id::{SessionId, SummaryId, TurnId, UserId};
use strata_core::state::{DiagnosticState, State};
use strata_core::store::{AppendedTurn, Change, ChangeSet, Expectation, SummaryQuery, TurnQuery};
use strata_core::summary::{Strategy, Summary, SummaryStatus};
use strata_core::turn::{Metadata, NewMessage, NewTurn};

/// The data of another program about a session, without its messages.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportedSession {
    /// The title, stored as `title` in the session's own settings.
    pub title: Option<String>,
    /// The state of a diagnosis.
    pub diagnostic: Option<DiagnosticState>,
    /// Fields to store in the state unchanged.
    pub extra: Map<String, Value>,
    /// The summary of the session.
    pub summary: Option<ImportedSummary>,
    /// Whether the other program has read the turns itself. Then Strata only counts them.
    pub was_read: bool,
}

/// A summary by another program.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedSummary {
    /// The id, the same in every import.
    pub id: SummaryId,
    /// The text.
    pub text: String,
    /// The last turn that it covers.
    pub end_seq: u64,
}

/// The parts that [`Imports::import_session`] added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportedParts {
    /// Whether the state changed.
    pub state: bool,
    /// Whether the summary was new.
    pub summary: bool,
}

/// Whether imported turns update the state of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadInto {
    /// The turns update the state and the rolling summary, as any recorded turn does.
    State,
    /// The turns are only stored. [`Imports::import_session`] imports the other program's own state.
    Nothing,
}

/// The number of turns in one read.
const PAGE: u32 = 1_000;

/// Imports the recordings of another program.
#[derive(Clone)]
pub struct Imports {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tokens: Arc<dyn TokenCounter>,
    pub(crate) limits: Limits,
    pub(crate) recording: Recording,
}

impl Imports {
    /// Appends messages under ids from their source, checked and counted like any recorded message. If an id exists
    /// already, the result is a conflict and nothing is recorded. The caller first reads the existing turns and skips
    /// them.
    pub async fn record_as(
        &self,
        user: &UserId,
        session: &SessionId,
        messages: Vec<(TurnId, NewMessage)>,
        read_into: ReadInto,
    ) -> Result<Vec<AppendedTurn>> {
        let now = self.clock.now();
        let turns = messages
            .into_iter()
            .map(|(id, message)| Ok(NewTurn { id, ..self.recording.new_turn(message, now)? }))
            .collect::<Result<_>>()?;
        let applied = match read_into {
            ReadInto::State => self.recording.append(user, session, turns, None, now).await?,
            ReadInto::Nothing => {
                let change = Change::AppendTurns { session: session.clone(), turns };
                self.store.apply(user, ChangeSet::one(now, change)).await?
            }
        };
        Ok(applied.turns)
    }

    /// Checks whether the content of a message can be recorded. It counts no tokens, so that a caller can quickly find
    /// the one invalid message of a batch.
    pub fn check_content(&self, content: &str) -> Result<()> {
        self.limits.check_text("`content`", content)
    }

    /// Checks whether the metadata of a message or a memory can be stored.
    pub fn check_metadata(&self, metadata: &Metadata) -> Result<()> {
        self.limits.check_metadata("`metadata`", metadata)
    }

    /// Imports another program's data about a session, all or none. Existing data stay: a title, a started diagnosis, a
    /// field of the same name, a summary of the same id. With `was_read`, turns that were only stored are counted as
    /// usage, and count as read.
    pub async fn import_session(
        &self,
        user: &UserId,
        session: &SessionId,
        imported: ImportedSession,
    ) -> Result<ImportedParts> {
        let mut tries = 0;
        loop {
            match self.try_import(user, session, imported.clone()).await {
                Err(error)
                    if error.kind() == ErrorKind::Conflict && error.is_retryable() && tries < TRIES =>
                {
                    tries += 1;
                }
                result => return result,
            }
        }
    }

    async fn try_import(
        &self,
        user: &UserId,
        session: &SessionId,
        imported: ImportedSession,
    ) -> Result<ImportedParts> {
        let before = session_now(self.store.as_ref(), self.clock.as_ref(), user, session).await?;
        let mut state = before.state.clone();
        if let Some(title) = imported.title {
            state.system_state.entry("title").or_insert(Value::String(title));
        }
        if let Some(diagnostic) = imported.diagnostic
            && state.diagnostic == DiagnosticState::default()
        {
            state.diagnostic = diagnostic;
        }
        for (name, value) in imported.extra {
            state.extra.entry(name).or_insert(value);
        }
        let mut parts = ImportedParts { state: state != before.state, summary: false };
        if imported.was_read {
            self.count_unread(user, session, before.turn_count, &mut state).await?;
        }
        let summary = match imported.summary {
            Some(summary) => self.imported_summary(user, session, summary).await?,
            None => None,
        };
        parts.summary = summary.is_some();
        if state != before.state || parts.summary {
            self.limits.check_state(&state)?;
            // The state is also written for a summary alone, because it creates the session that the summary needs.
            let put = Change::PutState { session: session.clone(), state: Box::new(state) };
            let changes = [put].into_iter().chain(summary).collect();
            let set = ChangeSet::new(self.clock.now(), changes).expecting(Expectation::unchanged(&before));
            self.store.apply(user, set).await?;
        }
        Ok(parts)
    }

    /// Counts the usage of the turns that were not read into the state.
    async fn count_unread(
        &self,
        user: &UserId,
        session: &SessionId,
        turn_count: u64,
        state: &mut State,
    ) -> Result<()> {
        while state.observed.turns < turn_count {
            let after = state.observed.turns.checked_sub(1);
            let query = TurnQuery::Range { session: session.clone(), after, limit: PAGE };
            let turns = self.store.turns(user, &query).await?;
            let Some(last) = turns.last() else { break };
            state.observed.turns = last.seq + 1;
            for turn in turns.iter().filter(|turn| turn.hidden.is_none()) {
                let name = turn.name.as_deref();
                count_usage(turn.role, name, &turn.content, &turn.notes, turn.token_count, state);
            }
        }
        Ok(())
    }

    async fn imported_summary(
        &self,
        user: &UserId,
        session: &SessionId,
        imported: ImportedSummary,
    ) -> Result<Option<Change>> {
        let ImportedSummary { id, text, end_seq } = imported;
        self.limits.check_text("the summary", &text)?;
        let query = SummaryQuery {
            session: session.clone(),
            strategy: Some(Strategy::Rolling),
            status: None,
            limit: u32::MAX,
        };
        let known = self.store.summaries(user, &query).await?;
        if known.iter().any(|summary| summary.id == id) {
            return Ok(None);
        }
        let now = self.clock.now();
        Ok(Some(Change::PutSummary(Box::new(Summary {
            id,
            session: session.clone(),
            strategy: Strategy::Rolling,
            level: 0,
            start_seq: 0,
            end_seq,
            base_id: known.first().map(|summary| summary.id),
            status: SummaryStatus::Completed,
            output_tokens: self.tokens.count(&text),
            text,
            structured: None,
            input_tokens: 0,
            generation_ms: None,
            created_at: now,
            updated_at: now,
        }))))
    }
}
