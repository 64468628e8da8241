//! Ollama's bodies and lines.

use proptest::prelude::*;
use serde_json::json;
use strata_core::turn::NewMessage;

use super::*;
use crate::compat::chat::ChatBody;
use crate::compat::chat::reply::{Framing, StreamReader, document};

const BLOCK: &str = "<strata_memory>\nknown\n</strata_memory>";

fn remembered(api: &'static dyn ChatApi, text: &str) -> String {
    let body = ChatBody::read(api, text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let blocks: Vec<_> = body.question().map(|place| (place, BLOCK.to_owned())).into_iter().collect();
    body.forwarded_text(&blocks, |_| false)
}

#[test]
fn memory_goes_in_front_of_the_question() {
    let block = r"<strata_memory>\nknown\n</strata_memory>\n\n";
    let text = r#"{"model":"q","messages":[{"role":"system","content":"s"},{"role":"user","content":"a","images":["AA"]}]}"#;
    assert_eq!(remembered(&Chat, text), text.replace(r#""a""#, &format!(r#""{block}a""#)));
    let text = r#"{"model":"q","prompt":"a","context":[1,2]}"#;
    assert_eq!(remembered(&Generate, text), text.replace(r#""a""#, &format!(r#""{block}a""#)));
    for untouched in [
        r#"{"model":"q"}"#,
        r#"{"model":"q","prompt":"","keep_alive":0}"#,
        r#"{"model":"q","prompt":"fn a() {","suffix":"}"}"#,
        r#"{"model":"q","prompt":"[INST]a[/INST]","raw":true}"#,
    ] {
        assert_eq!(remembered(&Generate, untouched), untouched);
    }
    assert_eq!(remembered(&Chat, r#"{"model":"q"}"#), r#"{"model":"q"}"#);
    assert!(ChatBody::read(&Generate, br#"{"prompt":5}"#).is_err());
    assert!(ChatBody::read(&Chat, br#"{"messages":5}"#).is_err());
}

#[test]
fn messages_are_heard_as_they_were_said() {
    let text = r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"look","images":["AA","BB"]},
        {"role":"assistant","content":"","tool_calls":[{"function":{"name":"look","arguments":{"a":1}}}]},
        {"role":"tool","tool_name":"look","content":"there"}]}"#;
    let body = ChatBody::read(&Chat, text.as_bytes()).unwrap();
    let shown =
        |turn: &NewMessage| json!([turn.role, turn.content, turn.notes.tool_calls, turn.name, turn.metadata]);
    let heard: Vec<Value> =
        body.messages().iter().flat_map(|message| message.turns.iter().map(shown)).collect();
    let expected = json!([
        ["user", "look", [], null, {"parts": ["image", "image"]}],
        ["assistant", "", [{"name": "look", "arguments": {"a": 1}}], null, {}],
        ["tool", "there", [], "look", {}],
    ]);
    assert_eq!(Value::from(heard), expected);
}

proptest! {
    #[test]
    fn lines_cut_anywhere_are_read(
        has_end in any::<bool>(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..20),
    ) {
        let line = |text: &str| json!({"model": "q", "message": {"role": "assistant", "content": text}, "done": false});
        let end = json!({"model": "q", "message": {"role": "assistant", "content": ""}, "done": true,
            "done_reason": "stop", "prompt_eval_count": 4, "eval_count": 3});
        let mut text: String = ["你", "好 ", "🦀"].iter().map(|word| format!("{}\n", line(word))).collect();
        text.push_str(&end.to_string());
        if has_end {
            text.push('\n');
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut reader = StreamReader::new(&Chat, Framing::Lines);
        for cut in cuts.windows(2) {
            reader.feed(&text.as_bytes()[cut[0]..cut[1]]);
        }
        reader.finish();
        prop_assert!(reader.reply.is_done() && reader.reply.is_complete());
        let turn = reader.reply.into_message();
        prop_assert_eq!(turn.content, "你好 🦀");
        prop_assert_eq!((turn.notes.usage.input, turn.notes.usage.output), (Some(4), Some(3)));
    }
}

#[test]
fn a_document_is_read() {
    let reply = document(&Generate, br#"{"model":"q","response":"ok","done":true,"done_reason":"stop"}"#);
    assert!(reply.is_complete());
    assert_eq!(reply.into_message().content, "ok");
    assert_eq!(document(&Chat, br#"{"error":"model not found"}"#).error(), Some("model not found"));
}
