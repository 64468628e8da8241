//! Tool statistics and token usage, counted as turns are recorded.

use strata_core::state::State;
use strata_core::turn::{Role, TurnNotes};

use super::failures::failed_by_content;

/// The most tools that are counted by name. Further tools are counted together, so that a client that makes up names
/// does not fill the state.
const MAX_TOOLS: usize = 200;

/// Counts tools without a name, and tools beyond [`MAX_TOOLS`].
const OTHER_TOOLS: &str = "other";

/// The most characters of a tool's name.
const MAX_TOOL_CHARS: usize = 64;

/// Counts a turn. A turn of the role `tool` is a call of the tool in the turn's name. The call failed if the notes say
/// so, or else if the content says so. The tokens of a reply are those that the model reported,
/// or else the counted ones: input is everything since the last reply, output is the reply.
pub(crate) fn count_usage(
    role: Role,
    name: Option<&str>,
    content: &str,
    notes: &TurnNotes,
    token_count: u32,
    state: &mut State,
) {
    if role == Role::Tool {
        count_call(name, content, notes.failed, state);
    }
    state.observed.tokens = state.observed.tokens.saturating_add(u64::from(token_count));
    let (usage, unanswered) = (&mut state.token_usage, &mut state.observed.unanswered_tokens);
    if role != Role::Assistant {
        *unanswered = unanswered.saturating_add(u64::from(token_count));
        return;
    }
    let input = notes.usage.input.map_or(*unanswered, u64::from);
    let output = u64::from(notes.usage.output.unwrap_or(token_count));
    *unanswered = 0;
    usage.total_input = usage.total_input.saturating_add(input);
    usage.total_output = usage.total_output.saturating_add(output);
    usage.by_session = usage.total_input.saturating_add(usage.total_output);
}

fn count_call(name: Option<&str>, content: &str, failed: Option<bool>, state: &mut State) {
    let stats = &mut state.tool_stats;
    let mut tool: String = name.unwrap_or(OTHER_TOOLS).chars().take(MAX_TOOL_CHARS).collect();
    if tool.is_empty() || (stats.by_tool.len() >= MAX_TOOLS && !stats.by_tool.contains_key(&tool)) {
        tool = OTHER_TOOLS.to_owned();
    }
    stats.total_calls = stats.total_calls.saturating_add(1);
    let calls = stats.by_tool.entry(tool).or_default();
    *calls = calls.saturating_add(1);
    let failed = failed.or_else(|| failed_by_content(content)).unwrap_or(false);
    stats.failures = stats.failures.saturating_add(u64::from(failed));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use strata_core::turn::Usage;

    fn call(state: &mut State, name: Option<&str>, content: &str, failed: Option<bool>) {
        let notes = TurnNotes { failed, ..TurnNotes::default() };
        count_usage(Role::Tool, name, content, &notes, 1, state);
    }

    #[test]
    fn calls_are_counted_by_their_tools() {
        let mut state = State::default();
        call(&mut state, Some("file_read"), "ok", None);
        call(&mut state, Some("file_read"), "{\"success\": true}", None);
        call(&mut state, Some("echo"), "{\"success\": false}", None);
        call(&mut state, Some("echo"), "x", Some(true));
        call(&mut state, None, "{\"error\": \"timeout\"}", Some(false));
        let stats = &state.tool_stats;
        assert_eq!((stats.total_calls, stats.failures), (5, 2));
        assert_eq!(
            serde_json::to_value(&stats.by_tool).unwrap(),
            json!({"file_read": 2, "echo": 2, "other": 1})
        );
        for number in 0..300 {
            call(&mut state, Some(&format!("made up {number}")), "", None);
        }
        assert_eq!((state.tool_stats.by_tool.len(), state.tool_stats.total_calls), (MAX_TOOLS, 305));
    }

    #[test]
    fn a_result_says_whether_it_failed() {
        for (content, failed) in [
            (r#"{"success": false}"#, true),
            (r#"{"success": true, "error": "none"}"#, false),
            (r#"{"error": "timeout"}"#, true),
            (r#"{"is_error": true}"#, true),
            (r#"{"error": null}"#, false),
            (r#"{"error": ""}"#, false),
            ("an error", false),
        ] {
            let mut state = State::default();
            call(&mut state, None, content, None);
            assert_eq!(state.tool_stats.failures, u64::from(failed), "{content}");
        }
    }

    #[test]
    fn usage_is_what_the_model_reports_or_what_was_counted() {
        let mut state = State::default();
        let count = |state: &mut State, role: Role, usage: Usage, tokens: u32| {
            let notes = TurnNotes { usage, ..TurnNotes::default() };
            count_usage(role, None, "said", &notes, tokens, state);
        };
        let unknown = Usage::default();
        count(&mut state, Role::User, unknown, 10);
        count(&mut state, Role::Tool, unknown, 5);
        count(&mut state, Role::Assistant, unknown, 7);
        let usage = |state: &State| {
            let usage = &state.token_usage;
            (usage.total_input, usage.total_output, usage.by_session)
        };
        assert_eq!(usage(&state), (15, 7, 22));
        count(&mut state, Role::User, unknown, 10);
        count(&mut state, Role::Assistant, Usage { input: Some(100), output: Some(20) }, 7);
        assert_eq!(usage(&state), (115, 27, 142));
        count(&mut state, Role::Assistant, Usage { input: Some(1), output: None }, 2);
        assert_eq!(usage(&state), (116, 29, 145));
        assert_eq!(state.observed.tokens, 10 + 5 + 7 + 10 + 7 + 2, "each turn once, as it was counted");
    }
}
