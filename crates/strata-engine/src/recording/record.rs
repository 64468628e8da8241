//! [`Recording::record`]: appends messages to a session; they are durable before the call returns.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use jiff::Timestamp;
use serde_json::Value;

use super::Recording;
use crate::clock::to_micros;
use crate::prompt::strip_injected;
use strata_core::error::{Error, Result};
use strata_core::hash::{FNV_START, fnv_append};
use strata_core::id::{SessionId, TurnId, UserId};
use strata_core::ports::{Load, compute};
use strata_core::store::{AppendedTurn, Change, ChangeSet, Idempotency};
use strata_core::turn::{NewMessage, NewTurn, TurnNotes};

/// The longest idempotency key, in characters.
const MAX_KEY_CHARS: usize = 256;

/// The longest speaker's name, in characters: the limit OpenAI sets for `name`.
pub(crate) const MAX_SPEAKER_CHARS: usize = 64;

/// Up to this many bytes are tokenised on the request's thread: at 13 MB/s that takes about a millisecond.
const INLINE_BYTES: usize = 16 * 1024;

/// The result of recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The turns with their places in the session.
    pub turns: Vec<AppendedTurn>,
    /// Whether an earlier call with the same key has recorded them.
    pub replayed: bool,
}

impl Recording {
    /// Appends messages to a session. When the call returns, they are durable, numbered without gaps, and found by
    /// the next search. With an idempotency key, a repeated call records nothing and returns the first call's result.
    ///
    /// A reply or a tool's result also updates the session's state, and from time to time the rolling summary, in the
    /// same change set. Blocks that [`crate::prompt::chat`] has injected are not recorded.
    pub async fn record(
        &self,
        user: &UserId,
        session: &SessionId,
        messages: Vec<NewMessage>,
        idempotency_key: Option<&str>,
    ) -> Result<Recorded> {
        let most = self.limits.max_turns_per_call;
        if messages.is_empty() {
            return Err(Error::invalid("no message was given; send at least one in `messages`"));
        }
        if messages.len() > most {
            return Err(Error::too_large(format!(
                "{} messages in one call; the most is {most} (setting `max_turns_per_call`), so send several calls",
                messages.len()
            )));
        }
        let idempotency = idempotency_key.map(|key| self.idempotency(key, session, &messages)).transpose()?;
        let now = self.clock.now();
        let turns = self.new_turns(messages, now).await?;
        let applied = self.append(user, session, turns, idempotency, now).await?;
        self.recorded.fetch_add(applied.turns.len() as u64, Ordering::Relaxed);
        Ok(Recorded { turns: applied.turns, replayed: applied.replayed })
    }

    /// How many turns this part and its clones have recorded. Background work uses it to find out whether clients are
    /// busy recording.
    pub fn recorded_turns(&self) -> u64 {
        self.recorded.load(Ordering::Relaxed)
    }

    /// Removes the results that are stored under a user's idempotency keys before `before`. A call that is repeated
    /// later records its messages again.
    pub async fn prune_answers(&self, user: &UserId, before: Timestamp) -> Result<()> {
        self.store.apply(user, ChangeSet::one(self.clock.now(), Change::PruneIdempotency { before })).await?;
        Ok(())
    }

    /// Checks messages and counts their tokens. Long ones are counted through the compute port.
    pub(crate) async fn new_turns(&self, messages: Vec<NewMessage>, now: Timestamp) -> Result<Vec<NewTurn>> {
        let bytes: usize = messages.iter().map(|message| message.content.len()).sum();
        let this = self.clone();
        let count = move || messages.into_iter().map(|message| this.new_turn(message, now)).collect();
        if bytes <= INLINE_BYTES {
            return count();
        }
        compute(self.compute.as_ref(), Load::Short, count).await?
    }

    pub(crate) fn new_turn(&self, message: NewMessage, now: Timestamp) -> Result<NewTurn> {
        let NewMessage { role, name, content, created_at, metadata, notes, hidden } = message;
        self.limits.check_text("`content`", &content)?;
        // The client has not said the blocks that Strata injected into the prompt.
        let content = match strip_injected(&content) {
            Cow::Borrowed(_) => content,
            Cow::Owned(said) => said,
        };
        self.limits.check_metadata("`metadata`", &metadata)?;
        self.check_notes(&notes)?;
        if let Some(name) = &name {
            self.limits.check_text("`name`", name)?;
            if name.chars().count() > MAX_SPEAKER_CHARS {
                return Err(Error::invalid(format!("`name` is longer than {MAX_SPEAKER_CHARS} characters")));
            }
        }
        Ok(NewTurn {
            id: TurnId(self.ids.next()),
            token_count: self.tokens.count(&content),
            created_at: created_at.map_or(now, to_micros),
            role,
            name,
            content,
            metadata,
            notes,
            hidden,
        })
    }

    pub(super) fn check_notes(&self, notes: &TurnNotes) -> Result<()> {
        self.limits.check_text("`tool_call_id`", notes.tool_call_id.as_deref().unwrap_or_default())?;
        self.limits.check_text("`agent_id`", notes.owner.agent.as_deref().unwrap_or_default())?;
        self.limits.check_metadata("`metadata`", &notes.owner.metadata)?;
        self.limits.check_json("`tool_calls`", &Value::from(notes.tool_calls.as_slice()))
    }

    fn idempotency(&self, key: &str, session: &SessionId, messages: &[NewMessage]) -> Result<Idempotency> {
        let length = key.chars().count();
        if length == 0 || length > MAX_KEY_CHARS || key.chars().any(char::is_control) {
            return Err(Error::invalid(format!(
                "the idempotency key has {length} characters; use 1 to {MAX_KEY_CHARS} without control characters"
            )));
        }
        let mut fingerprint = with_field(FNV_START, session.as_str());
        for message in messages {
            let at = message.created_at.map(|at| at.to_string()).unwrap_or_default();
            let metadata = Value::Object(message.metadata.fields().clone()).to_string();
            let name = message.name.as_deref().unwrap_or_default();
            let fields = [message.role.as_str(), name, &message.content, &at, &metadata];
            fingerprint = fields.into_iter().fold(fingerprint, with_field);
            if message.notes != TurnNotes::default() {
                fingerprint = with_field(fingerprint, &serde_json::json!(message.notes).to_string());
            }
        }
        Ok(Idempotency { key: key.to_owned(), fingerprint })
    }
}

/// Adds a field with its length to a fingerprint. FNV-1a is enough: the fingerprint detects a client's mistake, not
/// an attack. A client that chooses the key could simply choose another one.
fn with_field(fingerprint: u64, text: &str) -> u64 {
    fnv_append(fnv_append(fingerprint, &(text.len() as u64).to_le_bytes()), text.as_bytes())
}
