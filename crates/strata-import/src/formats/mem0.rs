//! Memories of mem0: the answer of `get_all`, a list of memories, or one memory on each line.
//!
//! `strata memories export` writes the same form with fields of its own: validity, replacement, and what is hidden.

use std::str::FromStr;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use strata_core::memory::{MemoryKind, TodoState};
use strata_core::turn::{Hidden, HiddenReason, Metadata};
use strata_core::{Error, Result};

use super::{Reading, lines, moment, objects, reason};
use crate::foreign::Remembered;

#[derive(Deserialize)]
struct Row {
    id: Option<Value>,
    #[serde(alias = "text", alias = "data")]
    memory: String,
    user_id: Option<String>,
    agent_id: Option<String>,
    run_id: Option<String>,
    created_at: Option<Value>,
    updated_at: Option<Value>,
    metadata: Option<Map<String, Value>>,
    categories: Option<Value>,
    kind: Option<String>,
    scope: Option<String>,
    confidence: Option<f32>,
    todo: Option<String>,
    valid_from: Option<Value>,
    valid_to: Option<Value>,
    replaced_by: Option<String>,
    hidden: Option<String>,
    disputed_with: Option<String>,
    certainty: Option<u8>,
}

pub(super) fn read(text: &str, reading: &mut Reading<'_>) -> Result<()> {
    let is_lines = {
        let first = text.trim_start().lines().next().unwrap_or_default();
        first.starts_with('{') && serde_json::from_str::<Row>(first).is_ok()
    };
    if is_lines {
        for (line, text) in lines(text) {
            let row = serde_json::from_str::<Row>(text).map_err(|error| reason(&error));
            take(row, line, "memory", reading)?;
        }
        return Ok(());
    }
    let mut is_cut = false;
    for (line, raw) in objects(text, &reading.source.path)? {
        // `get_all` answers with an object that holds the list.
        let rows = match serde_json::from_str::<Answer>(raw.get()) {
            Ok(answer) => {
                is_cut = answer.next.is_some_and(|next| !next.is_null());
                answer.results
            }
            Err(_) => vec![serde_json::from_str(raw.get()).unwrap_or_default()],
        };
        for (number, row) in (1..).zip(rows) {
            let row = serde_json::from_value::<Row>(row).map_err(|error| error.to_string());
            take(row, line, &format!("memory {number}"), reading)?;
        }
    }
    if is_cut {
        reading.contents.skipped.add("next page or more; save every page of `get_all` and import them too");
    }
    Ok(())
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Value>,
    /// The address of the next page.
    next: Option<Value>,
}

fn take(row: Result<Row, String>, line: u64, what: &str, reading: &mut Reading<'_>) -> Result<()> {
    if row.as_ref().is_ok_and(|row| row.memory.trim().is_empty()) {
        reading.contents.skipped.add("empty memories");
        return Ok(());
    }
    let memory = row.and_then(|row| remembered(row, line));
    if let Some(memory) = reading.take(line, what, memory)? {
        reading.contents.memories.push(memory);
    }
    Ok(())
}

fn remembered(row: Row, line: u64) -> Result<Remembered, String> {
    let created_at = moment(row.created_at.as_ref());
    let updated_at = moment(row.updated_at.as_ref());
    let reason = row.hidden.as_deref().map(known::<HiddenReason>).transpose()?;
    // A memory that is hidden was changed last when it was hidden.
    let hidden_at = updated_at.or(created_at).unwrap_or(Timestamp::UNIX_EPOCH);
    let hidden = reason.map(|reason| Hidden { reason, at: hidden_at });
    let id = match &row.id {
        Some(Value::String(id)) => id.clone(),
        Some(Value::Null) | None => row.memory.clone(),
        Some(other) => other.to_string(),
    };
    let mut metadata = row.metadata.unwrap_or_default();
    if let Some(categories) = row.categories.filter(|categories| !categories.is_null()) {
        metadata.entry("categories").or_insert(categories);
    }
    let kind = row.kind.and_then(|kind| kind.parse().ok()).unwrap_or(MemoryKind::Fact);
    Ok(Remembered {
        id,
        user: row.user_id.filter(|user| !user.is_empty()),
        is_shared: row.scope.as_deref() == Some("global"),
        agent: row.agent_id.filter(|agent| !agent.is_empty()),
        session: row.run_id.filter(|run| !run.is_empty()),
        kind,
        content: row.memory,
        confidence: row.confidence.filter(|confidence| (0.0..=1.0).contains(confidence)),
        todo: row.todo.as_deref().map(known::<TodoState>).transpose()?,
        valid_from: time("valid_from", row.valid_from.as_ref())?,
        valid_to: time("valid_to", row.valid_to.as_ref())?,
        replaced_by: row.replaced_by,
        disputed_with: row.disputed_with,
        certainty: row.certainty.filter(|certainty| *certainty <= 100),
        created_at,
        updated_at: updated_at.filter(|_| hidden.is_none()),
        hidden,
        metadata: Metadata::from(metadata),
        place: format!("line {line}"),
    })
}

/// A value with a fixed list of names.
fn known<T: FromStr<Err = Error>>(name: &str) -> Result<T, String> {
    name.parse().map_err(|error: Error| error.message().to_owned())
}

/// A time that decides whether a memory is current, so that an unreadable one is refused.
fn time(name: &str, value: Option<&Value>) -> Result<Option<Timestamp>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        value => moment(value).map(Some).ok_or_else(|| format!("`{name}` is no time")),
    }
}
