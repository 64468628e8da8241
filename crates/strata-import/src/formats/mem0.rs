//! Memories of mem0: the answer of `get_all`, a list of memories, or one memory on each line.

use serde::Deserialize;
use serde_json::{Map, Value};
use strata_core::Result;
use strata_core::memory::MemoryKind;
use strata_core::turn::Metadata;

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
}

pub(super) fn read(text: &str, reading: &mut Reading<'_>) -> Result<()> {
    let is_lines = {
        let first = text.trim_start().lines().next().unwrap_or_default();
        first.starts_with('{') && serde_json::from_str::<Row>(first).is_ok()
    };
    if is_lines {
        for (line, text) in lines(text) {
            let row = serde_json::from_str::<Row>(text).map_err(|error| reason(&error));
            if let Some(row) = reading.take(line, "memory", row)? {
                take(row, line, reading);
            }
        }
        return Ok(());
    }
    for (line, raw) in objects(text, &reading.source.path)? {
        // `get_all` answers with an object that holds the list.
        let rows = match serde_json::from_str::<Answer>(raw.get()) {
            Ok(answer) => answer.results,
            Err(_) => vec![serde_json::from_str(raw.get()).unwrap_or_default()],
        };
        for (number, row) in (1..).zip(rows) {
            let row = serde_json::from_value::<Row>(row).map_err(|error| error.to_string());
            if let Some(row) = reading.take(line, &format!("memory {number}"), row)? {
                take(row, line, reading);
            }
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Value>,
}

fn take(row: Row, line: u64, reading: &mut Reading<'_>) {
    if row.memory.trim().is_empty() {
        reading.contents.skipped.add("empty memories");
        return;
    }
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
    reading.contents.memories.push(Remembered {
        id,
        user: row.user_id.filter(|user| !user.is_empty()),
        agent: row.agent_id.filter(|agent| !agent.is_empty()),
        session: row.run_id.filter(|run| !run.is_empty()),
        kind,
        content: row.memory,
        created_at: moment(row.created_at.as_ref()),
        updated_at: moment(row.updated_at.as_ref()),
        metadata: Metadata::from(metadata),
        place: format!("line {line}"),
    });
}
