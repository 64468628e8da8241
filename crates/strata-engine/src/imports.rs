//! Taking over what another program has recorded, so that taking it over twice changes nothing.

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
use strata_core::turn::{NewMessage, NewTurn};

/// What another program knew about a session beside its messages.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportedSession {
    /// Its title, kept as `title` among the session's own settings.
    pub title: Option<String>,
    /// The state of its diagnosis.
    pub diagnostic: Option<DiagnosticState>,
    /// Fields to keep with the state as they are.
    pub extra: Map<String, Value>,
    /// What was said, in short.
    pub summary: Option<ImportedSummary>,
    /// Whether the other program has read its turns itself, so that they are only counted here.
    pub was_read: bool,
}

/// A summary that another program made.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedSummary {
    /// The id that it always has, however often it is imported.
    pub id: SummaryId,
    /// The text.
    pub text: String,
    /// The last turn that it covers.
    pub end_seq: u64,
}

/// What [`Engine::import_session`] added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportedParts {
    /// Whether the state took something over.
    pub state: bool,
    /// Whether the summary was new.
    pub summary: bool,
}

/// Whether imported turns are read for what they say about the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadInto {
    /// The state and the rolling summary follow them, as with any recording.
    State,
    /// They are only kept: the other program has made its own, which [`Engine::import_session`] takes over.
    Nothing,
}

/// Turns read at once to count what they used.
const PAGE: u32 = 1_000;

/// Takes over what another program has recorded.
#[derive(Clone)]
pub struct Imports {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tokens: Arc<dyn TokenCounter>,
    pub(crate) limits: Limits,
    pub(crate) recording: Recording,
}

impl Imports {
    /// Appends messages under ids that their source decides, checked and counted like any other recording. An id that
    /// exists already is a conflict and nothing is recorded: ask for the turns first, and pass over those that exist.
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

    /// Whether the content of a message could be recorded; the error says why not. It counts no tokens, so that a whole
    /// batch can be looked through for the one message that spoils it.
    pub fn check_content(&self, content: &str) -> Result<()> {
        self.limits.check_text("`content`", content)
    }

    /// Takes over what another program knew about a session, together or not at all. What Strata knows already stays: a
    /// title, a diagnosis that has begun, a field of that name, a summary of that id. Turns that were recorded without
    /// being read are counted as usage, and count as read.
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
            // Also for a summary alone: the state creates the session, which a summary needs.
            let put = Change::PutState { session: session.clone(), state: Box::new(state) };
            let changes = [put].into_iter().chain(summary).collect();
            let set = ChangeSet::new(self.clock.now(), changes).expecting(Expectation::unchanged(&before));
            self.store.apply(user, set).await?;
        }
        Ok(parts)
    }

    /// Counts what turns used that nobody has read into the state.
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
