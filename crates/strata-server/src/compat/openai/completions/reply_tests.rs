//! Replies, complete and in pieces.

use proptest::prelude::*;
use strata_core::turn::{TurnNotes, Usage};

use super::*;
use crate::compat::chat::reply::{Framing, StreamReader, document, failure};

fn recorded(reply: Reply) -> Value {
    let message = reply.into_message();
    let TurnNotes { tool_calls, usage, .. } = message.notes;
    let mut told = json!(message.metadata);
    if !tool_calls.is_empty() {
        told["tool_calls"] = tool_calls.into();
    }
    if usage != Usage::default() {
        told["usage"] = json!({"prompt_tokens": usage.input, "completion_tokens": usage.output});
    }
    json!([message.content, told])
}

#[test]
fn a_document_is_read() {
    let body = json!({
        "id": "x", "model": "m-1", "object": "chat.completion",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "hello", "refusal": null}, "finish_reason": "stop"},
            {"index": 1, "message": {"role": "assistant", "content": "other"}, "finish_reason": "stop"},
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    });
    let reply = document(&Completions, body.to_string().as_bytes());
    assert!(reply.is_complete());
    let usage = json!({"prompt_tokens": 5, "completion_tokens": 2});
    let expected = json!(["hello", {"finish_reason": "stop", "model": "m-1", "usage": usage, "choices": 2}]);
    assert_eq!(recorded(reply), expected);

    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let body = json!({"choices": [{"message": {"content": null, "tool_calls": [call]}, "finish_reason": "tool_calls"}]});
    let reply = document(&Completions, body.to_string().as_bytes());
    let calls = json!([{"id": "c", "name": "f", "arguments": "{}"}]);
    assert_eq!(recorded(reply), json!(["", {"finish_reason": "tool_calls", "tool_calls": calls}]));

    assert!(!document(&Completions, b"<html>").is_complete());
}

#[test]
fn a_failure_is_described() {
    let check = |status, body: &str, expected: &str| {
        assert_eq!(failure(status, body.as_bytes(), "no reason").content, expected);
    };
    let body = r#"{"error":{"message":"slow down","type":"rate_limit"}}"#;
    check(Some(429), body, "The model failed with status 429: slow down");
    check(Some(500), "<html>", "The model failed with status 500: no reason");
    check(Some(422), r#"{"detail":"bad"}"#, "The model failed with status 422: bad");
    check(None, r#"{"error":"gone"}"#, "The model failed: gone");
}

/// A stream of chunks with the text `pieces` and a tool call in two pieces, with these line ends.
fn stream(pieces: &[String], newline: &str, has_done: bool, is_split: bool) -> String {
    let mut text = format!(": hello{newline}{newline}");
    let mut event = |value: Value| {
        let json = value.to_string();
        // JSON may be split at any space between its tokens. Then it has several lines of data.
        let lines = if is_split { json.replacen(',', &format!(",{newline}data: "), 2) } else { json };
        text.push_str(&format!("event: message{newline}data: {lines}{newline}{newline}"));
    };
    let chunk = |delta: Value, finish: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "model": "m"});
    event(chunk(json!({"role": "assistant", "content": ""}), Value::Null));
    for piece in pieces {
        event(chunk(json!({"content": piece}), Value::Null));
        event(json!({"choices": [{"index": 1, "delta": {"content": "another choice"}}]}));
    }
    let call = |id: Value, name: Value, arguments: &str| json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}]});
    event(chunk(call(json!("c1"), json!("look"), "{\"a\""), Value::Null));
    event(chunk(call(Value::Null, Value::Null, ":1}"), Value::Null));
    event(chunk(json!({}), json!("tool_calls")));
    event(json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}));
    if has_done {
        text.push_str(&format!("data: [DONE]{newline}{newline}"));
    }
    text
}

proptest! {
    /// The reply is the same for every notation of a stream and every way of cutting it.
    #[test]
    fn a_stream_cut_anywhere_is_read(
        pieces in proptest::collection::vec("[a-z\n\r\"长é🦀]{0,6}", 0..6),
        newline in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
        has_done in any::<bool>(),
        is_split in any::<bool>(),
        ends_early in any::<bool>(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..20),
    ) {
        let text = stream(&pieces, newline, has_done, is_split);
        let text = if ends_early { text.trim_end() } else { &text };
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut reader = StreamReader::new(&Completions, Framing::Events);
        for cut in cuts.windows(2) {
            reader.feed(&text.as_bytes()[cut[0]..cut[1]]);
        }
        reader.finish();
        prop_assert!(reader.reply.is_complete());
        prop_assert_eq!(reader.reply.is_done(), has_done);
        let calls = json!([{"id": "c1", "name": "look", "arguments": "{\"a\":1}"}]);
        let usage = json!({"prompt_tokens": 3, "completion_tokens": 4});
        let mut metadata = json!({"finish_reason": "tool_calls", "model": "m", "tool_calls": calls, "usage": usage});
        if !pieces.is_empty() {
            metadata["choices"] = json!(2);
        }
        prop_assert_eq!(recorded(reader.reply), json!([pieces.concat(), metadata]));
    }
}

#[test]
fn a_stream_that_fails_says_so() {
    let mut reader = StreamReader::new(&Completions, Framing::Events);
    reader.feed(b"data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n");
    reader.feed(b"data: {\"error\":{\"message\":\"overloaded\"}}\n\ndata: [DONE]\n\n");
    assert_eq!(reader.reply.error(), Some("overloaded"));
    assert!(!reader.reply.is_complete());
    reader.feed(b"data: 5\n\ndata: {\"choices\":5}\n\ndata: nonsense\n\n");
}
