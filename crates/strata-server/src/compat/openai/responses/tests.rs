//! Items in, items out.

use proptest::prelude::*;
use strata_core::turn::TurnNotes;

use super::*;
use crate::compat::chat::ChatBody;
use crate::compat::chat::reply::{Framing, StreamReader, document};

const BLOCK: &str = "<strata_memory>\nknown\n</strata_memory>";

fn read(text: &str) -> ChatBody<'_> {
    ChatBody::read(&Responses, text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn remembered(text: &str) -> String {
    let body = read(text);
    let blocks: Vec<_> = body.question().map(|place| (place, BLOCK.to_owned())).into_iter().collect();
    body.forwarded_text(&blocks, |_| false)
}

/// The role, the text, the calls and the call that a result belongs to.
fn shown(turn: &NewMessage) -> Value {
    let TurnNotes { tool_calls, tool_call_id, .. } = &turn.notes;
    json!([turn.role, turn.content, tool_calls, tool_call_id, turn.metadata])
}

#[test]
fn memory_goes_into_the_last_message_of_the_user() {
    let check = |text: &str, expected: &str| assert_eq!(remembered(text), expected);
    let block = r"<strata_memory>\nknown\n</strata_memory>\n\n";
    check(r#"{"input":"a","model":"m"}"#, &format!(r#"{{"input":"{block}a","model":"m"}}"#));
    check(
        r#"{"input":[{"role":"user","content":"a"},{"type":"reasoning","id":"r","summary":[]},{"type":"future","x":1.0}]}"#,
        &format!(
            r#"{{"input":[{{"role":"user","content":"{block}a"}},{{"type":"reasoning","id":"r","summary":[]}},{{"type":"future","x":1.0}}]}}"#
        ),
    );
    check(
        r#"{"input":[{"type":"message","role":"user","content":[{"type":"input_image","image_url":"x"}]}],"memory_id":"s"}"#,
        &format!(
            r#"{{"input":[{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{block}"}},{{"type":"input_image","image_url":"x"}}]}}]}}"#
        ),
    );
    for untouched in [
        r#"{"model":"m"}"#,
        r#"{"input":null,"prompt":{"id":"p"}}"#,
        r#"{"input":[]}"#,
        r#"{"input":[{"type":"item_reference","id":"i"},5,{"role":"developer","content":"d"}]}"#,
    ] {
        check(untouched, untouched);
    }
    assert!(ChatBody::read(&Responses, br#"{"input":5}"#).is_err());
}

#[test]
fn items_are_heard_as_turns() {
    let text = r#"{"instructions":"be kind","input":[
        {"role":"developer","content":"be brief"},
        {"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_file","file_id":"f"}]},
        {"type":"reasoning","id":"r1","summary":[],"encrypted_content":"x"},
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"one moment"}]},
        {"type":"function_call","call_id":"c1","name":"look","arguments":"{}"},
        {"type":"custom_tool_call","call_id":"c2","name":"run","input":"ls"},
        {"type":"function_call_output","call_id":"c1","output":"there"},
        {"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"files"}]},
        {"type":"web_search_call","id":"w1","status":"completed"},
        {"type":"item_reference","id":"i1"},
        {"role":"user","content":"thanks"}
    ]}"#;
    let heard: Vec<Value> =
        read(text).messages().iter().flat_map(|message| message.turns.iter().map(shown)).collect();
    let calls = json!([
        {"id": "c1", "name": "look", "arguments": "{}"}, {"id": "c2", "name": "run", "arguments": "ls"},
    ]);
    let expected = json!([
        ["user", "look", [], null, {"parts": ["input_file"]}],
        ["assistant", "one moment", calls, null, {}],
        ["tool", "there", [], "c1", {}],
        ["tool", "files", [], "c2", {}],
        ["user", "thanks", [], null, {}],
    ]);
    assert_eq!(Value::from(heard), expected);
}

#[test]
fn a_conversation_that_the_provider_keeps_is_noticed() {
    let check = |text: &str, expected| assert_eq!(read(text).is_kept_upstream(), expected, "{text}");
    check(r#"{"input":"a"}"#, false);
    check(r#"{"input":"a","previous_response_id":null,"conversation":null}"#, false);
    check(r#"{"input":"a","previous_response_id":"resp_1"}"#, true);
    check(r#"{"input":"a","conversation":{"id":"c"}}"#, true);
}

fn output() -> Value {
    json!([
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "on", "annotations": []},
            {"type": "output_text", "text": "it"}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{\"a\":1}"},
    ])
}

fn expected() -> Value {
    let calls = json!([{"id": "c1", "name": "look", "arguments": "{\"a\":1}"}]);
    json!(["assistant", "on\nit", calls, null, {"finish_reason": "completed", "model": "m-1"}])
}

#[test]
fn a_document_is_read() {
    let usage = json!({"input_tokens": 7, "output_tokens": 2});
    let body = json!({"id": "resp_1", "status": "completed", "model": "m-1", "output": output(), "usage": usage, "error": null});
    let reply = document(&Responses, body.to_string().as_bytes());
    assert!(reply.is_complete() && reply.is_done());
    let turn = reply.into_message();
    assert_eq!(shown(&turn), expected());
    assert_eq!((turn.notes.usage.input, turn.notes.usage.output), (Some(7), Some(2)));

    let queued = document(&Responses, br#"{"id":"r","status":"queued","output":[]}"#);
    assert!(!queued.is_complete() && queued.error().is_none());
    let failed = document(&Responses, br#"{"status":"failed","error":{"message":"no"},"output":[]}"#);
    assert_eq!(failed.error(), Some("no"));
}

fn events(is_whole: bool) -> String {
    let whole = json!({"id": "resp_1", "status": "completed", "model": "m-1", "output": if is_whole { output() } else { json!([]) }});
    let delta = |part: u64, text: &str| json!({"type": "response.output_text.delta", "output_index": 1, "content_index": part, "delta": text});
    let all = [
        json!({"type": "response.created", "response": {"id": "resp_1", "output": []}}),
        delta(0, "o"),
        delta(0, "n"),
        delta(1, "it"),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{"}),
        json!({"type": "response.output_item.done", "output_index": 2, "item": output()[2]}),
        json!({"type": "response.future", "x": [1]}),
        json!({"type": "response.completed", "response": whole}),
    ];
    all.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).collect()
}

proptest! {
    #[test]
    fn a_stream_cut_anywhere_is_read(
        is_whole in any::<bool>(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..20),
    ) {
        let text = events(is_whole);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut reader = StreamReader::new(&Responses, Framing::Events);
        for cut in cuts.windows(2) {
            reader.feed(&text.as_bytes()[cut[0]..cut[1]]);
        }
        reader.finish();
        prop_assert!(reader.reply.is_done() && reader.reply.is_complete());
        prop_assert_eq!(shown(&reader.reply.into_message()), expected());
    }
}

#[test]
fn a_stream_that_fails_says_so() {
    for event in [
        r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"overloaded"}}}"#,
        r#"{"type":"error","code":"x","message":"overloaded"}"#,
    ] {
        let mut reader = StreamReader::new(&Responses, Framing::Events);
        reader.feed(format!("data: {event}\n\n").as_bytes());
        assert_eq!(reader.reply.error(), Some("overloaded"), "{event}");
        assert!(reader.reply.is_done() && !reader.reply.is_complete());
    }
}
