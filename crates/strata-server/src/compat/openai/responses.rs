//! OpenAI's Responses: `input` is a text or a list of items of many kinds, and the provider may keep the conversation.

use std::ops::Range;

use serde_json::{Value, json};
use strata_core::Role;
use strata_core::turn::NewMessage;

use super::completions::{role, said};
use crate::compat::chat::reply::Reply;
use crate::compat::chat::splice::{self, Object};
use crate::compat::chat::{ChatApi, Message, Prompt, Slot, add_line, tool_call, turn};
use crate::error::ApiError;

/// `POST /v1/responses`.
pub(crate) struct Responses;

impl ChatApi for Responses {
    fn prompt(&self, body: &Object<'_>) -> Result<Prompt, ApiError> {
        let text = body.text();
        // A stored prompt of the provider's needs no input.
        let Some(place) = body.place("input").filter(|place| !text[place.clone()].starts_with('n')) else {
            return Ok(Prompt { messages: Vec::new(), place: 0..0, is_list: false });
        };
        match text.as_bytes()[place.start] {
            b'"' => Ok(Prompt { messages: vec![plain(text, &place).once()], place, is_list: false }),
            b'[' => {
                let mut messages: Vec<Message> = Vec::new();
                for item in splice::elements(text, &place) {
                    let message = joined(&mut messages, item_message(text, item));
                    // The parts of a reply are joined later.
                    let is_reply = message.role == Some(Role::Assistant);
                    messages.push(if is_reply { message } else { message.once() });
                }
                Ok(Prompt { messages, place, is_list: true })
            }
            _ => Err(ApiError::invalid("`input` is neither a text nor a list of items; send one of them")),
        }
    }

    fn text_part(&self, escaped: &str) -> String {
        format!("{{\"type\":\"input_text\",\"text\":\"{escaped}\"}}")
    }

    fn is_kept_upstream(&self, body: &Object<'_>) -> bool {
        let is_given = |name| body.written(name).is_some_and(|written| written != "null");
        is_given("previous_response_id") || is_given("conversation")
    }

    fn is_stored_upstream(&self, _body: &Object<'_>) -> bool {
        true
    }

    fn read_document(&self, document: &Value, reply: &mut Reply) {
        reply.stored_as(document.get("id").and_then(Value::as_str));
        reply.answered_by(document.get("model").and_then(Value::as_str));
        reply.fail(document.get("error").unwrap_or(&Value::Null));
        if let Some(usage) = document.get("usage") {
            reply.spent(usage, "input_tokens", "output_tokens");
        }
        let output = document.get("output").and_then(Value::as_array).into_iter().flatten();
        for (place, item) in output.enumerate() {
            take_item(place as u64, item, reply);
        }
        take_status(document, reply);
    }

    fn read_event(&self, event: &Value, reply: &mut Reply) {
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        let number = |name: &str| event.get(name).and_then(Value::as_u64).unwrap_or(0);
        let output = number("output_index");
        match text("type") {
            "response.created" => {
                reply.stored_as(event.pointer("/response/id").and_then(Value::as_str));
                if event.pointer("/response/background") == Some(&Value::Bool(true)) {
                    reply.work_on();
                }
            }
            "response.output_text.delta" => {
                reply.say_in(part(output, number("content_index")), text("delta"))
            }
            "response.refusal.delta" => reply.refuse(text("delta")),
            "response.output_item.done" => {
                let item = event.get("item").unwrap_or(&Value::Null);
                if let Some(call) = call(item) {
                    reply.whole_call(call);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let whole = event.get("response").unwrap_or(&Value::Null);
                let has_output =
                    whole.get("output").and_then(Value::as_array).is_some_and(|items| !items.is_empty());
                // The last event repeats the reply. Not every server sends it whole.
                if has_output {
                    *reply = Reply::default();
                }
                self.read_document(whole, reply);
                if text("type") == "response.failed" && reply.error().is_none() {
                    reply.fail(&json!("the response failed"));
                }
                reply.end();
            }
            "error" => {
                let error = event.get("error").filter(|error| !error.is_null()).unwrap_or(event);
                reply.fail(error);
                reply.end();
            }
            _ => {}
        }
    }
}

/// A part of the output, as one number.
fn part(output: u64, content: u64) -> u64 {
    output << 32 | content
}

/// An input that is one text.
fn plain(text: &str, place: &Range<usize>) -> Message {
    let said = splice::string(text, place).unwrap_or_default().into_owned();
    let turns = vec![turn(Role::User, &said, &[])];
    let slot = Slot::before(text, place);
    Message { place: place.clone(), slot, role: Some(Role::User), said, other_parts: 0, turns }
}

/// One item of the input. Reasoning, references and kinds that do not exist yet are passed on and not recorded.
pub(super) fn item_message(text: &str, place: Range<usize>) -> Message {
    let item = Object::at(text, &place);
    let kind = item.string("type").unwrap_or_default();
    let id = || item.string("call_id").map(|id| id.into_owned());
    match &*kind {
        "message" | "" => {
            let role = item.string("role").and_then(|name| role(&name));
            let content =
                item.place("content").filter(|place| matches!(text.as_bytes()[place.start], b'"' | b'['));
            let (said, others) = content.as_ref().map(|place| said(text, place)).unwrap_or_default();
            let turns = role.filter(|role| *role != Role::System).map(|role| turn(role, &said, &others));
            let slot = content.and_then(|content| Slot::before(text, &content));
            let (turns, other_parts) = (turns.into_iter().collect(), others.len() as u32);
            Message { place, slot, role, said, other_parts, turns }
        }
        kind if kind.ends_with("_call_output") => {
            let output = item.place("output");
            let (said, others) = output.map(|place| said(text, &place)).unwrap_or_default();
            let mut turn = turn(Role::Tool, &said, &others);
            turn.notes.tool_call_id = id();
            let other_parts = others.len() as u32;
            Message {
                place,
                role: Some(Role::Tool),
                said,
                other_parts,
                turns: vec![turn],
                ..Message::default()
            }
        }
        kind if kind.ends_with("_call") && id().is_some() => {
            let mut turn = turn(Role::Assistant, "", &[]);
            let value: Value = serde_json::from_str(&text[place.clone()]).unwrap_or_default();
            turn.notes.tool_calls.extend(call(&value));
            Message { place, role: Some(Role::Assistant), turns: vec![turn], ..Message::default() }
        }
        _ => Message { place, ..Message::default() },
    }
}

/// A reply is recorded as one turn, but comes back as several items. They are heard as one turn again.
fn joined(before: &mut [Message], mut message: Message) -> Message {
    let is_reply = |turn: &NewMessage| turn.role == Role::Assistant;
    let last = before.iter_mut().rev().find_map(|message| message.turns.last_mut());
    if let (Some(last), Some(turn)) = (last.filter(|last| is_reply(last)), message.turns.first())
        && is_reply(turn)
    {
        if !turn.content.is_empty() {
            add_line(&mut last.content, &turn.content);
        }
        last.notes.tool_calls.extend(turn.notes.tool_calls.iter().cloned());
        message.turns.clear();
    }
    message
}

/// The call that an item asks the client for.
fn call(item: &Value) -> Option<Value> {
    let kind = item.get("type").and_then(Value::as_str)?;
    let id = item.get("call_id").filter(|id| id.is_string())?;
    let arguments = ["arguments", "input", "action"].iter().find_map(|name| item.get(*name));
    kind.ends_with("_call").then(|| tool_call(Some(id), item.get("name").or(item.get("type")), arguments))
}

fn take_item(place: u64, item: &Value, reply: &mut Reply) {
    for (number, content) in item.get("content").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let text = |field: &str| content.get(field).and_then(Value::as_str).unwrap_or_default();
        let part = part(place, number as u64);
        match text("type") {
            // Realtime conversations have texts of both types, and transcripts.
            "output_text" | "text" => reply.say_in(part, text("text")),
            "refusal" => reply.refuse(text("refusal")),
            "output_audio" | "audio" => reply.say_in(part, text("transcript")),
            _ => {}
        }
    }
    if let Some(call) = call(item) {
        reply.whole_call(call);
    }
}

/// A response that works in the background is not complete yet; nor is one that was cancelled.
fn take_status(document: &Value, reply: &mut Reply) {
    let reason = document.pointer("/incomplete_details/reason").and_then(Value::as_str);
    match document.get("status").and_then(Value::as_str) {
        Some(status @ ("completed" | "incomplete")) => {
            reply.finish(Some(reason.unwrap_or(status)));
            reply.end();
        }
        // A server that gives no status.
        None if document.get("output").is_some_and(Value::is_array) => reply.end(),
        Some("queued" | "in_progress") => reply.work_on(),
        Some(_) => reply.stop_working(),
        None => {}
    }
}

#[cfg(test)]
mod tests;
