//! The document of a session in the store: made from the session's parts, and turned back into changes of them.
//!
//! Facts are memories, the history is turns, the summary is the session's rolling summary, and everything else is the
//! session's state. Turns never change, so a history that is written back may only grow at its end, and lose its oldest
//! entries to a summary that covers them or says more than before.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::document::{ContextData, Environment, HistoryEntry};
use crate::error::{Error, Result, shown};
use crate::id::MemoryId;
use crate::memory::Memory;
use crate::session::Session;
use crate::state::State;
use crate::summary::Summary;
use crate::turn::{NewMessage, Turn};

/// The key under which a summary that was written through a context keeps the first turn of the history after it.
const HISTORY_FROM: &str = "history_from";

/// Fields of the state that the document does not have. They must not come in through its unknown fields.
const STATE_ONLY: [&str; 3] = ["archived", "diagnostic", "observed"];

/// The parts from which a session's document is made.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionParts {
    /// The session with its state.
    pub session: Session,
    /// The memories that are valid in it.
    pub memories: Vec<Memory>,
    /// Its newest turns by `seq`, without gaps.
    pub turns: Vec<Turn>,
    /// Its newest rolling summary.
    pub summary: Option<Summary>,
}

impl SessionParts {
    /// The `seq` of the first turn in the history: the turns since the last compaction, at most `most`. The rolling
    /// summary may cover some of them already.
    pub fn history_start(session: &Session, summary: Option<&Summary>, most: u64) -> u64 {
        let compacted = summary.and_then(history_from).unwrap_or(0);
        compacted.max(session.turn_count.saturating_sub(most)).min(session.turn_count)
    }

    /// The number of oldest entries of the history that the summary covers.
    pub fn covered(&self) -> usize {
        let Some(summary) = &self.summary else { return 0 };
        self.visible_turns().take_while(|turn| turn.seq <= summary.end_seq).count()
    }

    fn visible_turns(&self) -> impl Iterator<Item = &Turn> {
        self.turns.iter().filter(|turn| turn.is_in_conversation())
    }
}

fn history_from(summary: &Summary) -> Option<u64> {
    summary.structured.as_ref()?.get(HISTORY_FROM)?.as_u64()
}

/// The document of a session: current memories as facts, sorted and each once; visible turns as history.
pub fn of_session(parts: &SessionParts) -> ContextData {
    let Session { id, state, .. } = &parts.session;
    let mut context = ContextData::new(id.as_str());
    let facts: BTreeSet<&str> = parts
        .memories
        .iter()
        .filter(|memory| memory.is_current())
        .map(|memory| memory.content.as_str())
        .collect();
    context.facts = facts.into_iter().map(str::to_owned).collect();
    context.recent_history = parts.visible_turns().map(entry).collect();
    context.long_term_summary =
        parts.summary.as_ref().map(|summary| summary.text.clone()).unwrap_or_default();
    context.system_state = state.system_state.clone();
    context.active_tasks = state.active_tasks.clone();
    context.tool_stats = state.tool_stats.clone();
    context.last_known_environment = environment(&state.last_known_environment);
    context.token_usage = state.token_usage.clone();
    context.extra = state.extra.clone();
    context
}

fn entry(turn: &Turn) -> HistoryEntry {
    HistoryEntry {
        // The context-store design counts seconds since 1970.
        timestamp: turn.created_at.as_second().max(0),
        role: turn.role.as_str().to_owned(),
        content: turn.content.clone(),
        token_count: Some(turn.token_count as usize),
    }
}

/// The state keeps the environment as the client wrote it, even if a field has another type than ours.
fn environment(stored: &Map<String, Value>) -> Environment {
    serde_json::from_value(Value::Object(stored.clone()))
        .unwrap_or_else(|_| Environment { extra: stored.clone(), ..Environment::default() })
}

/// The changes that an edited document asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContextChanges {
    /// The new messages.
    pub new_messages: Vec<NewMessage>,
    /// Statements to remember, bound to the session.
    pub new_facts: Vec<String>,
    /// Memories that are no longer among the facts.
    pub removed_facts: Vec<MemoryId>,
    /// The new state, if it differs.
    pub state: Option<State>,
    /// The new summary, if it differs.
    pub summary: Option<SummaryRewrite>,
}

impl ContextChanges {
    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A summary that was written through a context.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryRewrite {
    /// The text.
    pub text: String,
    /// The last turn that it covers.
    pub end_seq: u64,
    /// Data to store with the summary, so that the history continues at the same turn.
    pub structured: Value,
}

/// The changes that turn a session's document into `after`.
///
/// This is the inverse of [`of_session`]: a document that comes back unchanged changes nothing. A history that was
/// changed in any way that this module does not describe is an error, and so is a document of another session.
pub fn changes(parts: &SessionParts, after: &ContextData) -> Result<ContextChanges> {
    let before = of_session(parts);
    if !after.session_id.is_empty() && after.session_id != before.session_id {
        return Err(Error::conflict(format!(
            "`session_id` is `{}` in a document for session `{}`; write it to the session that it is about",
            shown(&after.session_id),
            before.session_id
        )));
    }
    let (dropped, added) = compare_history(&before.recent_history, after)?;
    let summary = summary_rewrite(parts, &before, after, dropped)?;
    let (new_facts, removed_facts) = compare_facts(parts, &before, after);
    Ok(ContextChanges {
        new_messages: added,
        new_facts,
        removed_facts,
        state: changed_state(&parts.session.state, &before, after)?,
        summary,
    })
}

/// The number of oldest entries that are gone, and the new messages.
fn compare_history(before: &[HistoryEntry], after: &ContextData) -> Result<(usize, Vec<NewMessage>)> {
    let history = &after.recent_history;
    let follows = |dropped: usize| {
        let rest = &before[dropped..];
        rest.len() <= history.len() && rest.iter().zip(history).all(|(old, new)| same(old, new))
    };
    let dropped = (0..=before.len()).find(|dropped| follows(*dropped)).unwrap_or(before.len());
    if dropped == before.len() && dropped > 0 && !history.is_empty() {
        let at = before.iter().zip(history).position(|(old, new)| !same(old, new)).unwrap_or(history.len());
        return Err(Error::conflict(format!(
            "`recent_history` differs from what was said, first at entry {at}; turns never change, so send back the \
             entries as they were served and add new ones at the end"
        )));
    }
    let kept = before.len() - dropped;
    let added = history[kept..].iter().map(|entry| message(after, entry)).collect::<Result<_>>()?;
    Ok((dropped, added))
}

/// Whether an entry is the same as the served one. Strata counts the tokens, so they may differ.
fn same(old: &HistoryEntry, new: &HistoryEntry) -> bool {
    old.timestamp == new.timestamp && old.role == new.role && old.content == new.content
}

fn message(context: &ContextData, entry: &HistoryEntry) -> Result<NewMessage> {
    let mut message = NewMessage::new(entry.role.parse()?, entry.content.clone());
    if entry.timestamp != 0 {
        let moment = Timestamp::from_second(entry.timestamp).map_err(|error| {
            Error::invalid(format!(
                "`timestamp` of a new entry is `{}`; give seconds since the epoch",
                entry.timestamp
            ))
            .with_source(error)
        })?;
        message.created_at = Some(moment);
    }
    message.metadata = context.unknown_fields(entry).into();
    Ok(message)
}

fn summary_rewrite(
    parts: &SessionParts,
    before: &ContextData,
    after: &ContextData,
    dropped: usize,
) -> Result<Option<SummaryRewrite>> {
    let last_dropped = dropped.checked_sub(1).and_then(|last| parts.visible_turns().nth(last));
    let last_dropped = last_dropped.map(|turn| turn.seq);
    let covered = parts.summary.as_ref().map(|summary| summary.end_seq);
    if after.long_term_summary == before.long_term_summary {
        if last_dropped > covered {
            return Err(Error::conflict(format!(
                "the oldest {dropped} entries of `recent_history` are gone and `long_term_summary` does not say more; \
                 summarise them or send them back"
            )));
        }
        if dropped == 0 {
            return Ok(None);
        }
    }
    let shown_from = parts.turns.first().map_or(parts.session.turn_count, |turn| turn.seq);
    let history_from = match last_dropped {
        Some(seq) => Some(seq + 1),
        // The text was edited but covers no more turns than before: the history must still begin at the same turn.
        None => parts.summary.as_ref().map_or(Some(shown_from), history_from),
    };
    Ok(Some(SummaryRewrite {
        text: after.long_term_summary.clone(),
        end_seq: covered.max(last_dropped).unwrap_or_else(|| shown_from.saturating_sub(1)),
        structured: history_from.map_or(Value::Null, |from| json!({ HISTORY_FROM: from })),
    }))
}

fn compare_facts(
    parts: &SessionParts,
    before: &ContextData,
    after: &ContextData,
) -> (Vec<String>, Vec<MemoryId>) {
    let old: BTreeSet<&str> = before.facts.iter().map(String::as_str).collect();
    let new: BTreeSet<&str> = after.facts.iter().map(String::as_str).collect();
    let mut by_content: BTreeMap<&str, Vec<MemoryId>> = BTreeMap::new();
    for memory in parts.memories.iter().filter(|memory| memory.is_current()) {
        by_content.entry(&memory.content).or_default().push(memory.id);
    }
    let added = new.difference(&old).map(|fact| (*fact).to_owned()).collect();
    let removed = old.difference(&new).filter_map(|fact| by_content.remove(fact)).flatten().collect();
    (added, removed)
}

fn changed_state(state: &State, before: &ContextData, after: &ContextData) -> Result<Option<State>> {
    if let Some(field) = STATE_ONLY.into_iter().find(|field| after.extra.contains_key(*field)) {
        return Err(Error::invalid(format!(
            "`{field}` is no field of the context; write it to the session's state instead"
        )));
    }
    let mut new = state.clone();
    new.system_state = after.system_state.clone();
    new.active_tasks = after.active_tasks.clone();
    new.tool_stats = after.tool_stats.clone();
    new.token_usage = after.token_usage.clone();
    new.extra = after.extra.clone();
    if after.last_known_environment != before.last_known_environment {
        new.last_known_environment = match serde_json::to_value(&after.last_known_environment) {
            Ok(Value::Object(fields)) => fields,
            _ => return Err(Error::internal("an environment did not become JSON; report this as a defect")),
        };
    }
    Ok((new != *state).then_some(new))
}

/// Whether the client has counted the tokens itself.
pub fn counts_usage(state: &State, new: &State) -> bool {
    new.tool_stats != state.tool_stats || new.token_usage != state.token_usage
}

#[cfg(test)]
mod tests;
