//! Bodies in, bodies out: every byte that does not concern memory stays.

use proptest::prelude::*;
use strata_core::scope::RecallScope;
use strata_core::turn::{NewMessage, TurnNotes};

use super::*;
use crate::compat::chat::{ChatBody, Options, OwnNames, name};

const BLOCK: &str = "<strata_memory>\n\"known\"\n</strata_memory>";

fn read(text: &str) -> ChatBody<'_> {
    match ChatBody::read(&Completions, text.as_bytes()) {
        Ok(body) => body,
        Err(error) => panic!("{text}: {error:?}"),
    }
}

/// The body with memory in front of the question.
fn remembered(text: &str) -> String {
    let body = read(text);
    let blocks: Vec<_> = body.question().map(|place| (place, BLOCK.to_owned())).into_iter().collect();
    body.forwarded_text(&blocks, |_| false)
}

#[test]
fn memory_goes_in_front_of_the_last_question_and_nothing_else_changes() {
    let check = |text: &str, expected: &str| assert_eq!(remembered(text), expected);
    let escaped = r#"<strata_memory>\n\"known\"\n</strata_memory>\n\n"#;
    check(
        r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"b\u00e9"}],"n":1.0}"#,
        &format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"a"}},{{"role":"user","content":"{escaped}b\u00e9"}}],"n":1.0}}"#
        ),
    );
    // Parts: Strata's own text part comes before the others.
    check(
        r#"{ "messages" : [ {"content": [ {"type":"image_url","image_url":{"url":"data:,x"}} ], "role":"user"} ] }"#,
        &format!(
            r#"{{ "messages" : [ {{"content": [{{"type":"text","text":"{escaped}"}}, {{"type":"image_url","image_url":{{"url":"data:,x"}}}} ], "role":"user"}} ] }}"#
        ),
    );
    check(
        r#"{"messages":[{"role":"user","content":[]}]}"#,
        &format!(r#"{{"messages":[{{"role":"user","content":[{{"type":"text","text":"{escaped}"}}]}}]}}"#),
    );
    // There is no message to insert it into.
    for untouched in [
        r#"{"messages":[]}"#,
        r#"{"messages":[{"role":"system","content":"s"},{"role":"assistant","content":null}]}"#,
        r#"{"messages":[{"role":"user"},{"role":"user","content":null}]}"#,
        r#"{"messages":[5,null,"user",{"role":["user"]}]}"#,
    ] {
        check(untouched, untouched);
    }
}

#[test]
fn names_that_an_upstream_may_know_are_read_and_passed_on() {
    let text = r#"{"messages":[],"user":"u","user_id":"v","session_id":"s","run_id":"r"}"#;
    let body = read(text);
    assert_eq!(body.forwarded_text(&[], |_| false), text);
    let OwnNames { user_id, session_id, run_id, .. } = &body.names;
    let names = [user_id, session_id, run_id].map(|name| name.as_deref().unwrap());
    assert_eq!(names, ["v", "s", "r"]);
    let text = r#"{"messages":[],"user":"u","metadata":{"user_id":"m"},"conversation":{"id":"c"},"prompt_cache_key":null}"#;
    let body = read(text);
    let named = |path| name(body.fields(), path, "user").unwrap();
    let names = ["user", "metadata.user_id", "conversation"].map(|path| named(path).unwrap());
    assert_eq!(names, ["u", "m", "c"]);
    for none in ["prompt_cache_key", "safety_identifier", "metadata.other", "other.user_id", "user.id"] {
        assert_eq!(named(none), None, "{none}");
    }
}

#[test]
fn fields_for_strata_are_removed() {
    let check = |text: &str, expected: &str| {
        assert_eq!(read(text).forwarded_text(&[], |_| false), expected);
    };
    check(r#"{"memory_id":"s","messages":[]}"#, r#"{"messages":[]}"#);
    check(r#"{"messages":[], "memory_top_k" : 3.0 , "x":[1]}"#, r#"{"messages":[], "x":[1]}"#);
    check(r#"{"messages":[],"memory_top_k":null,"memory_score_threshold":0.5}"#, r#"{"messages":[]}"#);
    check(r#"{"memory_rerank":false,"messages":[]}"#, r#"{"messages":[]}"#);
    check(r#"{"memory\u005fid":"s","messages":[]}"#, r#"{"messages":[]}"#);
    let text = r#"{"messages":[],"memory_id":"s","memory_top_k":3,"memory_recency_weight":0,"memory_score_threshold":1e-1,"memory_scope":"session","memory_rerank":true,"user":"u"}"#;
    let body = read(text);
    let options = Options {
        top_k: Some(3),
        recency_weight: Some(0.0),
        score_threshold: Some(0.1),
        rerank: Some(true),
        scope: Some(RecallScope::Session),
    };
    assert_eq!(body.options, options);
    assert_eq!(body.names.memory_id.as_deref(), Some("s"));
}

#[test]
fn invalid_bodies_are_refused() {
    for text in [
        "",
        "{",
        "[]",
        "null",
        "5",
        r#"{"memory_id":5}"#,
        r#"{"memory_top_k":0}"#,
        r#"{"memory_top_k":1.5}"#,
        r#"{"memory_top_k":"3"}"#,
        r#"{"memory_top_k":1001}"#,
        r#"{"memory_recency_weight":2}"#,
        r#"{"memory_score_threshold":[]}"#,
        r#"{"memory_scope":"global","messages":[]}"#,
        r#"{"memory_scope":5,"messages":[]}"#,
        r#"{"memory_rerank":1,"messages":[]}"#,
        r#"{"memory_rerank":"yes","messages":[]}"#,
    ] {
        assert!(ChatBody::read(&Completions, text.as_bytes()).is_err(), "{text}");
    }
    assert!(ChatBody::read(&Completions, b"{\"a\":\"\xff\"}").is_err());
    for name in ["user_id", "memory_id", "session_id", "run_id"] {
        for value in ["5", "true", "{\"id\":\"ada\"}", "[\"s\"]"] {
            let text = format!("{{\"messages\":[],\"{name}\":{value}}}");
            let refused = ChatBody::read(&Completions, text.as_bytes()).map(|_| ()).unwrap_err();
            assert!(
                format!("{refused:?}").contains(&format!("`{name}` is not a string")),
                "{text}: {refused:?}"
            );
        }
        read(&format!("{{\"messages\":[],\"{name}\":null}}"));
    }
}

#[test]
fn messages_are_heard_as_they_were_said() {
    let text = r#"{"messages":[
        {"role":"system","content":"be brief"},
        {"role":"developer","content":"be kind"},
        {"role":"user","name":"ada","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"x"}},{"type":"input_audio","input_audio":{}},{"type":"text","text":"there"}]},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},
        {"role":"tool","tool_call_id":"c1","content":"42"},
        {"role":"critic","content":"?"}
    ]}"#;
    let heard: Vec<NewMessage> =
        read(text).messages().iter().flat_map(|message| message.turns.clone()).collect();
    let shown: Vec<Value> = heard
        .iter()
        .map(|message| {
            let TurnNotes { tool_calls, tool_call_id, .. } = &message.notes;
            json!([message.role, message.name, message.content, message.metadata, tool_calls, tool_call_id])
        })
        .collect();
    let expected = json!([
        ["user", "ada", "look\nthere", {"parts": ["image_url", "input_audio"]}, [], null],
        ["assistant", null, "", {}, [{"id": "c1", "name": "f", "arguments": "{\"a\":1}"}], null],
        ["tool", null, "42", {}, [], "c1"],
    ]);
    assert_eq!(Value::from(shown), expected);
}

/// Any JSON, with unusual spacing and escapes.
fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-0.0".to_owned()),
        Just("1E+2".to_owned()),
        "[1-9][0-9]{0,19}",
        r#""[a-z \\/éü长]{0,8}""#.prop_map(|text| text.replace('\\', "\\\\")),
        Just(r#""\ud83e\udd80 \" \\""#.to_owned()),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let space = prop_oneof![Just(""), Just(" "), Just("\n\t")];
        let list =
            proptest::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(",")));
        let object =
            (proptest::collection::vec(("[a-z]{1,5}", inner), 0..4), space).prop_map(|(items, space)| {
                let items: Vec<String> = items
                    .into_iter()
                    .map(|(name, value)| format!("{space}\"{name}\"{space}:{value}"))
                    .collect();
                format!("{{{}{space}}}", items.join(","))
            });
        prop_oneof![list, object]
    })
}

fn any_message() -> impl Strategy<Value = String> {
    let role = prop_oneof![Just("user"), Just("assistant"), Just("system"), Just("tool"), Just("other")];
    (role, any_json(), any_json()).prop_map(|(role, content, more)| {
        format!(r#"{{"role": "{role}", "content" :{content}, "x":{more}}}"#)
    })
}

proptest! {
    /// For any body: removing the inserted block restores the client's bytes.
    #[test]
    fn every_other_byte_stays(
        before in any_json(), messages in proptest::collection::vec(any_message(), 0..5), after in any_json(),
    ) {
        let text = format!(r#"{{"a":{before}, "messages": [{}] ,"z":{after}}}"#, messages.join(" , "));
        let block = splice::escaped(&format!("{BLOCK}\n\n"));
        let sent = remembered(&text);
        serde_json::from_str::<Value>(&sent).unwrap();
        let part = format!(r#"{{"type":"text","text":"{block}"}}"#);
        let restored = sent.replacen(&format!("{part},"), "", 1).replacen(&part, "", 1).replacen(&block, "", 1);
        prop_assert_eq!(&restored, &text);
        let body = read(&text);
        let is_changed = body.question().is_some();
        prop_assert_eq!(sent != text, is_changed);
        let forwarded = body.forwarded(&[], |_| false);
        let prompt = format!("[{}]", messages.join(" , "));
        let shown: Vec<u8> = forwarded.prompt(text.as_bytes()).flatten().copied().collect();
        prop_assert_eq!(shown, prompt.as_bytes());
    }

    /// Strata's fields at any position leave the other fields unchanged.
    #[test]
    fn extras_go_without_a_trace(fields in proptest::collection::vec((any::<bool>(), any_json()), 0..8)) {
        let written = |extras: bool| {
            let members = fields.iter().enumerate().filter_map(|(number, (is_extra, value))| {
                match (is_extra, extras) {
                    (false, _) => Some(format!("\"f{number}\":{value}")),
                    (true, true) => Some("\"memory_top_k\":3".to_owned()),
                    (true, false) => None,
                }
            });
            let members: Vec<String> = members.chain(["\"messages\":[]".to_owned()]).collect();
            format!("{{{}}}", members.join(","))
        };
        prop_assert_eq!(read(&written(true)).forwarded_text(&[], |_| false), written(false));
    }
}
