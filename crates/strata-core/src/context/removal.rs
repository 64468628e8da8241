//! The parts of a document that a new version of it no longer has.
//!
//! A changed number or word is an update. A missing fact, task, entry or field is a removal, and so is a summary that
//! no longer holds the text that it had.

use serde::Serialize;
use serde_json::Value;

use super::document::ContextData;

/// The fields from which `after` removes something that `before` has, in the order of the document.
pub fn removals(before: &ContextData, after: &ContextData) -> Vec<&'static str> {
    let tasks = |context: &ContextData| -> Vec<String> {
        context.active_tasks.iter().map(|task| task.id.clone()).collect()
    };
    let said = |context: &ContextData| -> Vec<(i64, String)> {
        let entries = context.recent_history.iter();
        entries.map(|entry| (entry.timestamp, entry.content.clone())).collect()
    };
    let summary = before.long_term_summary.trim();
    let fields = [
        ("system_state", loses(&before.system_state, &after.system_state)),
        ("facts", lacks(&before.facts, &after.facts)),
        ("recent_history", lacks(&said(before), &said(after))),
        ("long_term_summary", !after.long_term_summary.contains(summary)),
        ("active_tasks", lacks(&tasks(before), &tasks(after))),
        ("tool_stats", loses(&before.tool_stats, &after.tool_stats)),
        ("last_known_environment", loses(&before.last_known_environment, &after.last_known_environment)),
        ("token_usage", loses(&before.token_usage, &after.token_usage)),
        ("other fields", loses(&before.extra, &after.extra)),
    ];
    fields.into_iter().filter(|(_, is_removed)| *is_removed).map(|(field, _)| field).collect()
}

fn lacks<T: PartialEq>(before: &[T], after: &[T]) -> bool {
    before.iter().any(|known| !after.contains(known))
}

fn loses(before: &impl Serialize, after: &impl Serialize) -> bool {
    let value = |part: Result<Value, serde_json::Error>| part.unwrap_or_default();
    loses_value(&value(serde_json::to_value(before)), &value(serde_json::to_value(after)))
}

fn loses_value(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.iter().any(|(name, value)| loses_value(value, after.get(name).unwrap_or(&Value::Null)))
        }
        (Value::Array(before), Value::Array(after)) => lacks(before, after),
        (Value::Object(fields), _) => !fields.is_empty(),
        (Value::Array(items), _) => !items.is_empty(),
        (Value::String(text), Value::Null) => !text.is_empty(),
        (Value::String(text), Value::String(new)) => !text.is_empty() && new.is_empty(),
        (Value::Number(_) | Value::Bool(_), Value::Null) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        json!({
            "session_id": "s",
            "system_state": { "theme": "dark", "panes": { "left": true } },
            "facts": ["the boiler is from 1998", "暖气片在走廊"],
            "recent_history": [{ "timestamp": 5, "role": "user", "content": "hello" }],
            "long_term_summary": "They met.",
            "active_tasks": [{ "id": "t1", "description": "bleed the radiators", "status": "Running", "progress": 0.5, "created_at": 1, "updated_at": 2 }],
            "tool_stats": { "total_calls": 2, "by_tool": { "grep": 2 }, "failures": 0 },
            "token_usage": { "total_input": 9, "total_output": 1, "by_session": 10 },
            "own": [1, 2],
        })
    }

    fn check(change: impl FnOnce(&mut Value), expected: &[&str]) {
        let read = |document: Value| -> ContextData { serde_json::from_value(document).unwrap() };
        let mut after = document();
        change(&mut after);
        assert_eq!(removals(&read(document()), &read(after.clone())), expected, "{after}");
    }

    #[test]
    fn an_update_or_an_addition_removes_nothing() {
        check(|_| {}, &[]);
        check(|after| after["tool_stats"] = json!({ "total_calls": 3, "by_tool": { "grep": 3 } }), &[]);
        check(|after| after["active_tasks"][0]["status"] = json!("Completed"), &[]);
        check(|after| after["facts"] = json!(["暖气片在走廊", "new", "the boiler is from 1998"]), &[]);
        check(|after| after["long_term_summary"] = json!("They met. They left."), &[]);
        check(|after| after["system_state"]["theme"] = json!("light"), &[]);
        check(|after| after["own"] = json!([2, 1, 3]), &[]);
    }

    #[test]
    fn whatever_is_missing_is_named() {
        check(|after| after["facts"] = json!(["暖气片在走廊"]), &["facts"]);
        check(|after| after["active_tasks"] = json!([]), &["active_tasks"]);
        check(|after| after["recent_history"] = json!([]), &["recent_history"]);
        check(|after| after["long_term_summary"] = json!("Another text."), &["long_term_summary"]);
        check(|after| after["system_state"]["panes"] = json!({}), &["system_state"]);
        check(|after| after["own"] = json!([1]), &["other fields"]);
        check(
            |after| *after = json!({ "session_id": "s" }),
            &[
                "system_state",
                "facts",
                "recent_history",
                "long_term_summary",
                "active_tasks",
                "tool_stats",
                "other fields",
            ],
        );
    }
}
