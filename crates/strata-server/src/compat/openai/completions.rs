//! OpenAI's chat completions, which most providers imitate.

use serde_json::{Value, json};
use strata_core::Role;

use crate::compat::chat::reply::Reply;
use crate::compat::chat::splice::{self, Object};
use crate::compat::chat::{ChatApi, Message, Prompt, Slot, add_line, tool_call, turn};
use crate::error::ApiError;

/// `POST /v1/chat/completions`.
pub(crate) struct Completions;

impl ChatApi for Completions {
    fn prompt(&self, body: &Object<'_>) -> Result<Prompt, ApiError> {
        messages(body, message)
    }

    fn is_stored_upstream(&self, body: &Object<'_>) -> bool {
        body.written("store") == Some("true")
    }

    fn read_document(&self, document: &Value, reply: &mut Reply) {
        take(document, reply);
        for choice in choices(document).filter(|choice| index(choice) == 0) {
            let calls = said_in(choice).and_then(calls_of).map(compact_calls);
            calls.into_iter().flatten().for_each(|call| reply.whole_call(call));
        }
        if choices(document).next().is_some() {
            reply.end();
        }
    }

    fn read_event(&self, event: &Value, reply: &mut Reply) {
        take(event, reply);
        for choice in choices(event).filter(|choice| index(choice) == 0) {
            take_pieces(said_in(choice).and_then(calls_of), reply);
        }
    }
}

fn choices(completion: &Value) -> impl Iterator<Item = &Value> {
    completion.get("choices").and_then(Value::as_array).into_iter().flatten()
}

fn index(choice: &Value) -> u64 {
    choice.get("index").and_then(Value::as_u64).unwrap_or(0)
}

/// The message of a choice, or the piece of one.
fn said_in(choice: &Value) -> Option<&Value> {
    choice.get("delta").or_else(|| choice.get("message"))
}

fn calls_of(message: &Value) -> Option<&Value> {
    let calls = [message.get("tool_calls"), message.get("function_call")];
    calls.into_iter().flatten().find(|calls| !calls.is_null())
}

/// Reads the list `messages`, which other APIs have too.
pub(crate) fn messages(
    body: &Object<'_>,
    message: fn(&str, std::ops::Range<usize>) -> Message,
) -> Result<Prompt, ApiError> {
    let text = body.text();
    let list = body.place("messages").filter(|place| text.as_bytes()[place.start] == b'[');
    let place = list.ok_or_else(|| {
        ApiError::invalid("the body has no list of `messages`; send the messages of the conversation in one")
    })?;
    let messages =
        splice::elements(text, &place).into_iter().map(|place| message(text, place).once()).collect();
    Ok(Prompt { messages, place, is_list: true })
}

/// The role of a message by its name.
pub(crate) fn role(name: &str) -> Option<Role> {
    match name {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        "system" | "developer" => Some(Role::System),
        "tool" | "function" => Some(Role::Tool),
        _ => None,
    }
}

fn message(text: &str, place: std::ops::Range<usize>) -> Message {
    let object = Object::at(text, &place);
    let role = object.string("role").and_then(|name| role(&name));
    let content = object.place("content").filter(|place| matches!(text.as_bytes()[place.start], b'"' | b'['));
    let (said, other_parts) = content.as_ref().map(|place| said(text, place)).unwrap_or_default();
    let calls = object
        .place("tool_calls")
        .map_or_else(|| object.value("function_call"), |_| object.value("tool_calls"));
    // The upstream judges a content of a wrong type. It holds no message.
    let is_wrong = content.is_none() && !object.value("content").is_null();
    let turns = role.filter(|role| *role != Role::System && !is_wrong).map(|role| {
        let mut turn = turn(role, &said, &other_parts);
        turn.name = object.string("name").map(|name| name.into_owned());
        turn.notes.tool_calls = compact_calls(&calls);
        turn.notes.tool_call_id = object.string("tool_call_id").map(|id| id.into_owned());
        turn
    });
    let slot = content.and_then(|content| Slot::before(text, &content));
    let (turns, other_parts) = (turns.into_iter().collect(), other_parts.len() as u32);
    Message { place, slot, role, said, other_parts, turns }
}

/// The text of a content, and the types of its parts that are not text.
pub(crate) fn said(text: &str, content: &std::ops::Range<usize>) -> (String, Vec<Value>) {
    if let Some(said) = splice::string(text, content) {
        return (said.into_owned(), Vec::new());
    }
    let (mut said, mut others) = (String::new(), Vec::new());
    for place in splice::elements(text, content) {
        let part = Object::at(text, &place);
        match part.string("text").or_else(|| part.string("refusal")) {
            Some(words) => add_line(&mut said, &words),
            None => others.push(json!(part.string("type").as_deref().unwrap_or("unknown"))),
        }
    }
    (said, others)
}

/// The tool calls that a message asks for, each as `{id, name, arguments}`.
pub(crate) fn compact_calls(calls: &Value) -> Vec<Value> {
    let calls = match calls {
        Value::Array(calls) => calls.as_slice(),
        Value::Object(_) => std::slice::from_ref(calls),
        _ => return Vec::new(),
    };
    let compact = |call: &Value| {
        let function = call.get("function").or_else(|| call.get("custom")).unwrap_or(call);
        let arguments = function.get("arguments").or_else(|| function.get("input"));
        tool_call(call.get("id"), function.get("name"), arguments)
    };
    calls.iter().map(compact).collect()
}

/// Reads a completion or a chunk of one, without its tool calls. Only the first choice is kept.
fn take(completion: &Value, reply: &mut Reply) {
    reply.stored_as(completion.get("id").and_then(Value::as_str));
    reply.answered_by(completion.get("model").and_then(Value::as_str));
    if let Some(usage) = completion.get("usage") {
        reply.spent(usage, "prompt_tokens", "completion_tokens");
    }
    reply.fail(completion.get("error").unwrap_or(&Value::Null));
    for choice in choices(completion) {
        if index(choice) != 0 {
            reply.another(index(choice));
            continue;
        }
        reply.finish(choice.get("finish_reason").and_then(Value::as_str));
        let Some(message) = said_in(choice) else { continue };
        match message.get("content") {
            Some(Value::String(text)) => reply.say(text),
            Some(Value::Array(parts)) => {
                parts.iter().filter_map(|part| part.get("text")?.as_str()).for_each(|text| reply.say(text));
            }
            _ => {}
        }
        if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
            reply.refuse(refusal);
        }
    }
}

fn take_pieces(calls: Option<&Value>, reply: &mut Reply) {
    let calls = match calls {
        Some(Value::Array(calls)) => calls.as_slice(),
        Some(call) => std::slice::from_ref(call),
        None => return,
    };
    for call in calls {
        let function = call.get("function").unwrap_or(call);
        let [id, name, arguments] = [(call, "id"), (function, "name"), (function, "arguments")]
            .map(|(value, field)| value.get(field).and_then(Value::as_str).unwrap_or_default());
        reply.call_piece(index(call), id, name, arguments);
    }
}

#[cfg(test)]
mod reply_tests;
#[cfg(test)]
mod request_tests;
