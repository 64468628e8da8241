//! Tool statistics and token usage, counted as turns are recorded.

use serde_json::Value;

use strata_core::state::State;
use strata_core::turn::{Metadata, Role};

/// The most tools that are counted by their names; further ones are counted together, so that a client which makes names
/// up does not fill the state.
const MAX_TOOLS: usize = 200;

/// The name under which tools are counted that have none, or come after [`MAX_TOOLS`].
const OTHER_TOOLS: &str = "other";

/// The most characters of a tool's name.
const MAX_TOOL_CHARS: usize = 64;

/// Counts a turn. A tool's is a call, by `tool` or `name` of its metadata or else the speaker's name, and failed if its
/// metadata, or else its content as JSON, says so. A reply's tokens are those of `usage` in its metadata, as OpenAI and
/// Anthropic write it, or else those that were counted: everything said since the last reply went in, the reply came out.
pub fn count_usage(
    role: Role,
    name: Option<&str>,
    content: &str,
    metadata: &Metadata,
    token_count: u32,
    state: &mut State,
) {
    if role == Role::Tool {
        count_call(name, content, metadata, state);
    }
    let (usage, unanswered) = (&mut state.token_usage, &mut state.observed.unanswered_tokens);
    if role != Role::Assistant {
        *unanswered = unanswered.saturating_add(u64::from(token_count));
        return;
    }
    let reported = |names: [&str; 2]| {
        let usage = metadata.get("usage")?;
        names.iter().find_map(|name| usage.get(*name)?.as_u64())
    };
    let input = reported(["prompt_tokens", "input_tokens"]).unwrap_or(*unanswered);
    let output = reported(["completion_tokens", "output_tokens"]).unwrap_or(u64::from(token_count));
    *unanswered = 0;
    usage.total_input = usage.total_input.saturating_add(input);
    usage.total_output = usage.total_output.saturating_add(output);
    usage.by_session = usage.total_input.saturating_add(usage.total_output);
}

fn count_call(name: Option<&str>, content: &str, metadata: &Metadata, state: &mut State) {
    let stats = &mut state.tool_stats;
    let named = |key: &str| metadata.get(key).and_then(Value::as_str);
    let tool = named("tool").or_else(|| named("name")).or(name).unwrap_or(OTHER_TOOLS);
    let mut tool: String = tool.chars().take(MAX_TOOL_CHARS).collect();
    if tool.is_empty() || (stats.by_tool.len() >= MAX_TOOLS && !stats.by_tool.contains_key(&tool)) {
        tool = OTHER_TOOLS.to_owned();
    }
    stats.total_calls = stats.total_calls.saturating_add(1);
    let calls = stats.by_tool.entry(tool).or_default();
    *calls = calls.saturating_add(1);
    let failed = failed(metadata).or_else(|| failed_by_content(content)).unwrap_or(false);
    stats.failures = stats.failures.saturating_add(u64::from(failed));
}

/// Whether a call failed, where its metadata or result says so.
fn failed(result: &Metadata) -> Option<bool> {
    if let Some(success) = result.get("success").and_then(Value::as_bool) {
        return Some(!success);
    }
    let error = result.get("error").or_else(|| result.get("is_error"))?;
    Some(!matches!(error, Value::Null | Value::Bool(false)) && error.as_str() != Some(""))
}

fn failed_by_content(content: &str) -> Option<bool> {
    // A long result is data; what says that it failed is short.
    let content = content.trim();
    if !content.starts_with('{') || content.len() > 4_096 {
        return None;
    }
    failed(&serde_json::from_str(content).ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn count(state: &mut State, role: Role, content: &str, metadata: Value, tokens: u32) {
        let Value::Object(metadata) = metadata else { panic!("{metadata} is no object") };
        count_usage(role, None, content, &metadata, tokens, state);
    }

    #[test]
    fn calls_are_counted_by_their_tools() {
        let mut state = State::default();
        count(&mut state, Role::Tool, "ok", json!({"tool": "file_read"}), 1);
        count(&mut state, Role::Tool, "{\"success\": true}", json!({"name": "file_read"}), 1);
        count(&mut state, Role::Tool, "{\"success\": false}", json!({"tool": "echo"}), 1);
        count(&mut state, Role::Tool, "x", json!({"tool": "echo", "error": "timeout"}), 1);
        count(&mut state, Role::Tool, "{\"error\": null}", json!({"success": true}), 1);
        let stats = &state.tool_stats;
        assert_eq!((stats.total_calls, stats.failures), (5, 2));
        assert_eq!(
            serde_json::to_value(&stats.by_tool).unwrap(),
            json!({"file_read": 2, "echo": 2, "other": 1})
        );
        for number in 0..300 {
            count(&mut state, Role::Tool, "", json!({"tool": format!("made up {number}")}), 0);
        }
        assert_eq!((state.tool_stats.by_tool.len(), state.tool_stats.total_calls), (MAX_TOOLS, 305));
    }

    #[test]
    fn usage_is_what_the_model_reports_or_what_was_counted() {
        let mut state = State::default();
        count(&mut state, Role::User, "question", json!({}), 10);
        count(&mut state, Role::Tool, "result", json!({}), 5);
        count(&mut state, Role::Assistant, "answer", json!({}), 7);
        let usage = |state: &State| {
            let usage = &state.token_usage;
            (usage.total_input, usage.total_output, usage.by_session)
        };
        assert_eq!(usage(&state), (15, 7, 22));
        count(&mut state, Role::User, "question", json!({}), 10);
        let reported = json!({"usage": {"prompt_tokens": 100, "completion_tokens": 20}});
        count(&mut state, Role::Assistant, "answer", reported, 7);
        assert_eq!(usage(&state), (115, 27, 142));
        let reported = json!({"usage": {"input_tokens": 1, "output_tokens": 2}});
        count(&mut state, Role::Assistant, "answer", reported, 7);
        assert_eq!(usage(&state), (116, 29, 145));
    }
}
