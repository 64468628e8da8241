//! Imports the conversations of another program from SQLite, in the format of the layered-prompt design.
//!
//! The source is only read. The id of every turn and summary is derived from the source's own ids. So a second run adds
//! nothing, a run after a crash continues where the first ended, and a source that has grown adds only its new messages.
//! Deliberately absent: the meaning of the messages. Start reading at [`sqlite`], then [`source`]. [`file()`] imports the files
//! of other programs, [`archive`] writes a store as JSON lines and reads them back, and [`transfer()`] moves a whole store of
//! Strata into another one.

pub mod archive;
mod file;
mod foreign;
mod formats;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod source;
mod transfer;
mod values;

pub use file::{
    FileMemory, FileOptions, FileProgress, LoadedFile, Mem0File, check_apart, file, load, recognise,
};
pub use foreign::{FileReport, Skips};
pub use formats::Format;
pub use transfer::{Keys, Transferred, transfer};

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use strata_core::error::shown;
use strata_core::id::{SummaryId, TurnId};
use strata_core::state::DiagnosticState;
use strata_core::store::TurnQuery;
use strata_core::turn::Metadata;
use strata_core::turn::NewMessage;
use strata_core::{Error, ErrorKind, Result, SessionId, Turn, UserId};
use strata_engine::Engine;
use strata_engine::prompt::strip_injected;
use strata_engine::{ImportedSession, ImportedSummary, ReadInto};
use uuid::Uuid;

use source::{Conversation, Event, Message};

/// The options of an import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The user whose sessions the conversations become.
    pub user: UserId,
    /// A prefix of the session names, to keep two sources apart whose conversations are both numbered from 1.
    pub session_prefix: String,
    /// How to handle a row that cannot be imported.
    pub bad_rows: BadRows,
    /// The number of exchanges at the end of a conversation that its summary does not cover. The layered-prompt design has 3.
    pub recent_exchanges: usize,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            user: UserId::default(),
            session_prefix: String::new(),
            bad_rows: BadRows::Stop,
            recent_exchanges: 3,
        }
    }
}

/// How to handle a row that cannot be imported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BadRows {
    /// The import ends with an error that names the row. The rows imported before it stay.
    #[default]
    Stop,
    /// The report names the row, and the import continues without the message. If a conversation contradicts an earlier import
    /// under its name, the import continues without the rest of the conversation.
    Skip,
}

/// The progress of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportProgress {
    /// Conversations that are done.
    pub conversations: u64,
    /// All conversations.
    pub total_conversations: u64,
    /// Messages that are done.
    pub messages: u64,
    /// All messages.
    pub total_messages: u64,
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Conversations that were read.
    pub conversations: u64,
    /// Messages that were read.
    pub messages: u64,
    /// Turns that were added.
    pub turns_added: u64,
    /// Turns that an earlier run had added.
    pub turns_present: u64,
    /// Summaries that were added.
    pub summaries_added: u64,
    /// Sessions whose state was imported.
    pub states_added: u64,
    /// The number of rows that were skipped.
    pub skipped: u64,
    /// The first of the skipped rows, each with its table, row and reason.
    pub problems: Vec<String>,
}

/// The maximum number of problems in a report.
const MAX_PROBLEMS: usize = 100;

/// Imports the conversations of the database at `path`, which is opened for reading only, and reports `progress` after
/// each batch of messages and each conversation.
///
/// The database needs the tables `conversations` (`id`, optionally a title, `summary` and `diagnostic_state`) and `messages`
/// (conversation, role, content, optionally an id and a time). Other common names of the columns are supported. A
/// conversation becomes the session of its id, its messages become turns in the order in which they were written, `summary`
/// becomes the first version of the rolling summary, and `diagnostic_state` becomes the session's diagnosis.
pub async fn sqlite(
    path: impl AsRef<Path>,
    engine: &Engine,
    options: &ImportOptions,
    mut progress: impl FnMut(&ImportProgress),
) -> Result<ImportReport> {
    let mut events = source::read(path.as_ref().to_owned());
    let mut import = Import { engine, options, report: ImportReport::default(), current: None };
    let mut state = ImportProgress::default();
    while let Some(event) = events.recv().await {
        match event {
            Event::Totals { conversations, messages } => {
                (state.total_conversations, state.total_messages) = (conversations, messages);
            }
            Event::Conversation(conversation) => import.begin(conversation)?,
            Event::Messages(messages) => import.messages(messages).await?,
            Event::End => import.end().await?,
            Event::Failed(error) => return Err(error),
        }
        (state.conversations, state.messages) = (import.report.conversations, import.report.messages);
        progress(&state);
    }
    Ok(import.report)
}

struct Import<'a> {
    engine: &'a Engine,
    options: &'a ImportOptions,
    report: ImportReport,
    current: Option<Current>,
}

/// The conversation whose messages are being read.
struct Current {
    conversation: Conversation,
    session: SessionId,
    first_seq: Option<u64>,
    /// The seqs of the newest messages: those that the summary does not cover, and the one before them.
    last_seqs: VecDeque<u64>,
    refused: bool,
}

impl Import<'_> {
    fn begin(&mut self, conversation: Conversation) -> Result<()> {
        let name = format!("{}{}", self.options.session_prefix, conversation.id);
        match SessionId::new(name) {
            Ok(session) => {
                self.current = Some(Current {
                    conversation,
                    session,
                    first_seq: None,
                    last_seqs: VecDeque::new(),
                    refused: false,
                });
                Ok(())
            }
            Err(error) => {
                self.current = None;
                self.problem(at_row("conversations", &conversation.id, error))
            }
        }
    }

    async fn messages(&mut self, messages: Vec<Result<Message>>) -> Result<()> {
        self.report.messages += messages.len() as u64;
        let Some(mut current) = self.current.take() else {
            self.report.skipped += messages.len() as u64;
            return Ok(());
        };
        let mut good = Vec::new();
        for message in messages {
            let made = message.and_then(|message| self.new_message(&current, message));
            match made {
                Ok(message) => good.push(message),
                Err(error) => self.problem(error)?,
            }
        }
        if current.refused {
            self.report.skipped += good.len() as u64;
        } else {
            self.record(&mut current, good).await?;
        }
        self.current = Some(current);
        Ok(())
    }

    fn new_message(&self, current: &Current, message: Message) -> Result<Incoming> {
        let Message { id: row, role, content, created_at } = message;
        let role = values::role(&role).map_err(|error| at_row("messages", &row, error))?;
        let id = derived_id(&["turn", self.options.user.as_str(), current.session.as_str(), &row]);
        // The content is compared with recorded turns, which never contain text that Strata injected.
        let mut message = NewMessage::new(role, strip_injected(&content));
        message.created_at = created_at;
        let origin = json!({ "format": "sqlite", "conversation": current.conversation.id, "message": row });
        message.metadata = Metadata::from_iter([("import".to_owned(), origin)]);
        Ok(Incoming { row, id: TurnId(id), message })
    }

    /// Records the messages that are not stored yet.
    async fn record(&mut self, current: &mut Current, messages: Vec<Incoming>) -> Result<()> {
        let user = &self.options.user;
        let ids = messages.iter().map(|message| message.id).collect();
        let present = self.engine.store().turns(user, &TurnQuery::Ids(ids)).await?;
        let present: HashMap<TurnId, Turn> = present.into_iter().map(|turn| (turn.id, turn)).collect();
        let mut seqs = Vec::with_capacity(messages.len());
        let mut new = Vec::new();
        let mut ids = HashSet::with_capacity(messages.len());
        for incoming in messages {
            if !ids.insert(incoming.id) {
                let twice =
                    Error::invalid("another message of its conversation has the same id; give it another id");
                self.problem(at_row("messages", &incoming.row, twice))?;
                continue;
            }
            match present.get(&incoming.id) {
                Some(turn)
                    if turn.role != incoming.message.role || turn.content != incoming.message.content =>
                {
                    current.refused = true;
                    self.problem(contradiction(current, &incoming))?;
                    break;
                }
                Some(turn) => seqs.push(turn.seq),
                None => new.push(incoming),
            }
        }
        self.report.turns_present += seqs.len() as u64;
        let new = self.recordable(new)?;
        if !new.is_empty() {
            let added = self
                .engine
                .imports
                .record_as(user, &current.session, new, current.conversation.read_into())
                .await?;
            self.report.turns_added += added.len() as u64;
            seqs.extend(added.iter().map(|turn| turn.seq));
        }
        current.first_seq = current.first_seq.or_else(|| seqs.first().copied());
        current.last_seqs.extend(seqs);
        let excess = current.last_seqs.len().saturating_sub(2 * self.options.recent_exchanges + 1);
        current.last_seqs.drain(..excess);
        Ok(())
    }

    /// The messages that can be recorded; the others are reported as problems.
    fn recordable(&mut self, messages: Vec<Incoming>) -> Result<Vec<(TurnId, NewMessage)>> {
        let mut good = Vec::with_capacity(messages.len());
        for Incoming { row, id, message } in messages {
            match self.engine.imports.check_content(&message.content) {
                Ok(()) => good.push((id, message)),
                Err(error) => self.problem(at_row("messages", &row, error))?,
            }
        }
        Ok(good)
    }

    async fn end(&mut self) -> Result<()> {
        self.report.conversations += 1;
        let Some(current) = self.current.take().filter(|current| !current.refused) else { return Ok(()) };
        let imported = match self.imported_session(&current) {
            Ok(imported) => imported,
            Err(error) => return self.problem(at_row("conversations", &current.conversation.id, error)),
        };
        match self.engine.imports.import_session(&self.options.user, &current.session, imported).await {
            Ok(added) => {
                self.report.states_added += u64::from(added.state);
                self.report.summaries_added += u64::from(added.summary);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::TooLarge) => {
                self.problem(at_row("conversations", &current.conversation.id, error))
            }
            Err(error) => Err(error),
        }
    }

    fn imported_session(&self, current: &Current) -> Result<ImportedSession> {
        let Conversation { title, summary, diagnostic_state, .. } = &current.conversation;
        let was_read = current.conversation.read_into() == ReadInto::Nothing;
        let mut imported = ImportedSession { title: title.clone(), was_read, ..ImportedSession::default() };
        if let Some(text) = diagnostic_state {
            let (diagnostic, whole) = diagnostic(text)?;
            imported.diagnostic = Some(diagnostic);
            imported.extra.extend(whole.map(|whole| ("diagnostic_state".to_owned(), whole)));
        }
        imported.summary = summary.as_ref().map(|text| {
            let (user, session) = (self.options.user.as_str(), current.session.as_str());
            let evicted = current.last_seqs.len() > 2 * self.options.recent_exchanges;
            let last = if evicted { current.last_seqs.front().copied() } else { current.first_seq };
            ImportedSummary {
                id: SummaryId(derived_id(&["summary", user, session, text])),
                text: text.clone(),
                end_seq: last.unwrap_or_default(),
            }
        });
        Ok(imported)
    }

    fn problem(&mut self, error: Error) -> Result<()> {
        if self.options.bad_rows == BadRows::Stop {
            return Err(error);
        }
        self.report.skipped += 1;
        if self.report.problems.len() < MAX_PROBLEMS {
            self.report.problems.push(error.message().to_owned());
        }
        Ok(())
    }
}

/// A message to be recorded.
struct Incoming {
    row: String,
    id: TurnId,
    message: NewMessage,
}

/// An id that is always the same for the same parts.
fn derived_id(parts: &[&str]) -> Uuid {
    let mut hasher = Sha256::new();
    for part in ["strata import sqlite"].iter().chain(parts) {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize()[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

fn at_row(table: &str, row: &str, error: Error) -> Error {
    let message = format!("row `{}` of table `{table}`: {}", shown(row), error.message());
    Error::new(error.kind(), message).with_source(error)
}

fn contradiction(current: &Current, incoming: &Incoming) -> Error {
    let error = Error::conflict(format!(
        "an earlier import into session `{}` has another message here; import this database with another prefix",
        current.session
    ));
    at_row("messages", &incoming.row, error)
}

/// The diagnostic state, and the original JSON if it has fields that [`DiagnosticState`] does not have.
fn diagnostic(text: &str) -> Result<(DiagnosticState, Option<Value>)> {
    let cannot = |error: serde_json::Error| {
        Error::invalid(format!(
            "`diagnostic_state` is not a valid diagnostic state ({error}); correct or empty it"
        ))
        .with_source(error)
    };
    let mut fields: Map<String, Value> = serde_json::from_str(text).map_err(cannot)?;
    let whole = fields.clone();
    let is_nothing = |name: &str, value: &Value| value.is_null() || (name == "status" && value == "");
    fields.retain(|name, value| !is_nothing(name, value));
    let state: DiagnosticState = serde_json::from_value(Value::Object(fields.clone())).map_err(cannot)?;
    let known = serde_json::to_value(&state).map_err(cannot)?;
    let all_known = fields.keys().all(|name| known.get(name).is_some());
    Ok((state, (!all_known).then_some(Value::Object(whole))))
}
