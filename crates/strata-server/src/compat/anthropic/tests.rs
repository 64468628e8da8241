//! Blocks in, blocks out.

use proptest::prelude::*;
use strata_core::turn::TurnNotes;

use super::*;
use crate::compat::chat::ChatBody;
use crate::compat::chat::reply::{Framing, StreamReader, document};

const BLOCK: &str = "<strata_memory>\nknown\n</strata_memory>";

fn read(text: &str) -> ChatBody<'_> {
    ChatBody::read(&Messages, text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn shown(turn: &NewMessage) -> Value {
    let TurnNotes { tool_calls, tool_call_id, .. } = &turn.notes;
    json!([turn.role, turn.content, tool_calls, tool_call_id, turn.metadata])
}

#[test]
fn memory_goes_in_front_of_the_text_and_after_results() {
    let check = |text: &str, expected: &str| {
        let body = read(text);
        let blocks: Vec<_> = body.question().map(|place| (place, BLOCK.to_owned())).into_iter().collect();
        assert_eq!(body.forwarded_text(&blocks, |_| false), expected);
    };
    let escaped = r"<strata_memory>\nknown\n</strata_memory>\n\n";
    let part = format!(r#"{{"type":"text","text":"{escaped}"}}"#);
    check(
        r#"{"max_tokens":9,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"a"}]}"#,
        &format!(
            r#"{{"max_tokens":9,"system":[{{"type":"text","text":"s","cache_control":{{"type":"ephemeral"}}}}],"messages":[{{"role":"user","content":"{escaped}a"}}]}}"#
        ),
    );
    // A provider refuses anything in front of the results of tools.
    check(
        r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}, {"type":"text","text":"and now"}]}]}"#,
        &format!(
            r#"{{"messages":[{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":"x"}}, {part},{{"type":"text","text":"and now"}}]}}]}}"#
        ),
    );
    // While tools are called, the block stays in front of the question.
    check(
        r#"{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}]}"#,
        &format!(
            r#"{{"messages":[{{"role":"user","content":"{escaped}q"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"t","name":"f","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":"x"}}]}}]}}"#
        ),
    );
    assert!(ChatBody::read(&Messages, br#"{"max_tokens":9}"#).is_err());
}

#[test]
fn blocks_are_heard_as_turns() {
    let text = r#"{"system":"be kind","messages":[
        {"role":"user","content":[{"type":"image","source":{}},{"type":"text","text":"look"},{"type":"text","text":"there"}]},
        {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},
            {"type":"text","text":"The quay "},{"type":"text","text":"is wet.","citations":[]},
            {"type":"tool_use","id":"t1","name":"look","input":{"b":1,"a":2}},
            {"type":"text","text":"So."}]},
        {"role":"user","content":[
            {"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"wet"},{"type":"image","source":{}}]},
            {"type":"tool_result","tool_use_id":"t2","content":"dry"},
            {"type":"text","text":"well?"}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t3"}]}
    ]}"#;
    let body = read(text);
    let heard: Vec<Value> =
        body.messages().iter().flat_map(|message| message.turns.iter().map(shown)).collect();
    let calls = json!([{"id": "t1", "name": "look", "arguments": "{\"b\":1,\"a\":2}"}]);
    let expected = json!([
        ["user", "look\nthere", [], null, {"parts": ["image"]}],
        ["assistant", "The quay is wet.\nSo.", calls, null, {}],
        ["tool", "wet", [], "t1", {"parts": ["image"]}],
        ["tool", "dry", [], "t2", {}],
        ["user", "well?", [], null, {}],
        ["tool", "", [], "t3", {}],
    ]);
    let mut heard = Value::from(heard);
    // The order of keys inside the arguments is not the client's.
    if heard[1][2][0]["arguments"] == "{\"a\":2,\"b\":1}" {
        heard[1][2][0]["arguments"] = calls[0]["arguments"].clone();
    }
    assert_eq!(heard, expected);
    assert_eq!(body.question(), Some(2));
}

fn expected() -> Value {
    let calls = json!([{"id": "t1", "name": "look", "arguments": "{\"a\":1}"}]);
    json!(["assistant", "on it\nthen", calls, null, {"finish_reason": "tool_use", "model": "claude-x"}])
}

#[test]
fn a_document_is_read() {
    let content = json!([
        {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "on "}, {"type": "text", "text": "it"},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {"a": 1}}, {"type": "text", "text": "then"},
    ]);
    let usage = json!({"input_tokens": 5, "output_tokens": 2});
    let body = json!({"id": "m", "type": "message", "role": "assistant", "model": "claude-x", "content": content,
        "stop_reason": "tool_use", "usage": usage});
    let reply = document(&Messages, body.to_string().as_bytes());
    assert!(reply.is_complete());
    let turn = reply.into_message();
    assert_eq!(shown(&turn), expected());
    assert_eq!((turn.notes.usage.input, turn.notes.usage.output), (Some(5), Some(2)));
    let failed = document(&Messages, br#"{"type":"error","error":{"type":"x","message":"busy"}}"#);
    assert_eq!(failed.error(), Some("busy"));
}

fn events() -> String {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let all = [
        json!({"type": "message_start", "message": {"model": "claude-x", "usage": {"input_tokens": 5, "output_tokens": 1}}}),
        start(0, json!({"type": "thinking", "thinking": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "s"})),
        json!({"type": "ping"}),
        start(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "on "})),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "it"})),
        start(3, json!({"type": "tool_use", "id": "t1", "name": "look", "input": {}})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "{\"a\""})),
        delta(3, json!({"type": "input_json_delta", "partial_json": ":1}"})),
        start(4, json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}})),
        delta(4, json!({"type": "input_json_delta", "partial_json": "{}"})),
        start(5, json!({"type": "text", "text": ""})),
        delta(5, json!({"type": "text_delta", "text": "then"})),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ];
    all.iter()
        .map(|event| format!("event: {}\r\ndata: {event}\r\n\r\n", event["type"].as_str().unwrap()))
        .collect()
}

proptest! {
    #[test]
    fn a_stream_cut_anywhere_is_read(cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..20)) {
        let text = events();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut reader = StreamReader::new(&Messages, Framing::Events);
        for cut in cuts.windows(2) {
            reader.feed(&text.as_bytes()[cut[0]..cut[1]]);
        }
        reader.finish();
        prop_assert!(reader.reply.is_done() && reader.reply.is_complete());
        let turn = reader.reply.into_message();
        prop_assert_eq!(shown(&turn), expected());
        prop_assert_eq!((turn.notes.usage.input, turn.notes.usage.output), (Some(5), Some(9)));
    }
}

#[test]
fn a_stream_that_fails_says_so() {
    let mut reader = StreamReader::new(&Messages, Framing::Events);
    reader.feed(b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n");
    assert_eq!(reader.reply.error(), Some("Overloaded"));
}
