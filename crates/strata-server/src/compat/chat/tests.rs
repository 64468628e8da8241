//! What holds for the bodies of every API.

use proptest::prelude::*;
use serde_json::Value;

use super::{ChatApi, ChatBody};
use crate::compat::anthropic::Messages;
use crate::compat::ollama;
use crate::compat::openai::completions::Completions;
use crate::compat::openai::responses::Responses;

const BLOCK: &str = "<strata_memory>\n\"known\" 🦀\n</strata_memory>";

/// Any JSON, with unusual spacing, numbers and escapes.
fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-0.0".to_owned()),
        Just("1E+2".to_owned()),
        "[1-9][0-9]{0,19}",
        r#""[a-z /éü长]{0,8}""#,
        Just(r#""\ud83e\udd80 \" \\""#.to_owned()),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let members = proptest::collection::vec(("[a-z]{1,5}", inner.clone()), 0..4);
        let object =
            (members, prop_oneof![Just(""), Just(" "), Just("\n\t")]).prop_map(|(members, space)| {
                let members = members.iter().map(|(name, value)| format!("{space}\"{name}\"{space}:{value}"));
                format!("{{{}{space}}}", members.collect::<Vec<_>>().join(","))
            });
        let list = proptest::collection::vec(inner, 0..4);
        prop_oneof![list.prop_map(|items| format!("[{}]", items.join(" , "))), object]
    })
}

/// A content: a text, parts of known and unknown types, or anything.
fn any_content() -> impl Strategy<Value = String> {
    let kind = prop_oneof![
        Just("text"),
        Just("input_text"),
        Just("image"),
        Just("document"),
        Just("tool_result"),
        Just("input_file"),
        "[a-z_]{1,9}".prop_map(|kind| &*kind.leak()),
    ];
    let part = (kind, any_json()).prop_map(|(kind, more)| {
        format!(
            r#"{{"type" : "{kind}","text":"part \u00e9","cache_control":{{"type":"ephemeral"}}, "x":{more}}}"#
        )
    });
    let parts = proptest::collection::vec(part, 0..4).prop_map(|parts| format!("[ {} ]", parts.join(" , ")));
    prop_oneof![r#""[a-z é长]{0,12}""#, parts, any_json()]
}

/// A message, or an item of any other kind.
fn any_item() -> impl Strategy<Value = String> {
    let role = prop_oneof![Just("user"), Just("assistant"), Just("system"), Just("tool"), Just("other")];
    let message = (role, any_content(), any_json()).prop_map(|(role, content, more)| {
        format!(r#"{{"role": "{role}", "content" :{content}, "x":{more}}}"#)
    });
    let item = ("[a-z_]{1,12}", any_json())
        .prop_map(|(kind, more)| format!(r#"{{ "type":"{kind}" ,"id": "i_1","payload":{more}}}"#));
    prop_oneof![3 => message, 1 => item, 1 => any_json()]
}

/// Whether `sent` is `body` with at most one text put in.
fn has_one_text_more(sent: &[u8], body: &[u8]) -> bool {
    let same = |(one, other): &(&u8, &u8)| one == other;
    let before = sent.iter().zip(body).take_while(same).count();
    let after = sent.iter().rev().zip(body.iter().rev()).take_while(same).count();
    sent.len() >= body.len() && before + after >= body.len()
}

proptest! {
    /// In every API: memory is one text that is put into the body, every other byte of the client stays, and an item of a kind that
    /// is not known passes as it is.
    #[test]
    fn every_other_byte_stays_in_every_api(
        before in any_json(), items in proptest::collection::vec(any_item(), 0..5), prompt in any_content(), after in any_json(),
    ) {
        let items = items.join(" , ");
        let apis: [(&'static dyn ChatApi, String); 6] = [
            (&Completions, format!("\"messages\": [{items}]")),
            (&Responses, format!("\"input\": [{items}]")),
            (&Responses, format!("\"input\" :{prompt}")),
            (&Messages, format!("\"system\":{prompt}, \"messages\":[{items}]")),
            (&ollama::Chat, format!("\"messages\": [{items}]")),
            (&ollama::Generate, format!("\"prompt\": {prompt}")),
        ];
        for (api, field) in apis {
            let text = format!("{{\"a\":{before}, {field} ,\"z\":{after}}}\n");
            // Some APIs refuse what has another form; then nothing is passed on.
            let Ok(body) = ChatBody::read(api, text.as_bytes()) else { continue };
            prop_assert_eq!(&body.forwarded_text(&[], |_| false), &text);
            let blocks: Vec<_> = body.question().map(|place| (place, BLOCK.to_owned())).into_iter().collect();
            let sent = body.forwarded_text(&blocks, |_| false);
            prop_assert!(serde_json::from_str::<Value>(&sent).is_ok(), "{}", sent);
            prop_assert!(has_one_text_more(sent.as_bytes(), text.as_bytes()), "{} became {}", text, sent);
            prop_assert_eq!(sent.matches("strata_memory").count(), 2 * blocks.len());
        }
    }
}
