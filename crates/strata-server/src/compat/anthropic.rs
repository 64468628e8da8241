//! Anthropic's Messages: contents are blocks, results of tools are blocks of the user's messages, instructions stand
//! apart from the messages.

use std::ops::Range;

use serde::Serialize;
use serde_json::{Value, json};
use strata_core::Role;
use strata_core::turn::NewMessage;

use super::chat::reply::Reply;
use super::chat::splice::{self, Object};
use super::chat::{ChatApi, Message, Prompt, Slot, add_line, tool_call, turn};
use super::openai::completions::{messages, role, said};
use crate::error::{ApiError, ErrorDetail};

/// The type of a block that asks the client for a call of a tool.
const CALL: &str = "tool_use";

/// The type of a block with the result of such a call.
const RESULT: &str = "tool_result";

/// `POST /v1/messages`.
pub(crate) struct Messages;

impl ChatApi for Messages {
    fn prompt(&self, body: &Object<'_>) -> Result<Prompt, ApiError> {
        messages(body, message)
    }

    fn continues_last(&self) -> bool {
        true
    }

    fn read_document(&self, document: &Value, reply: &mut Reply) {
        reply.answered_by(document.get("model").and_then(Value::as_str));
        if is_error(document) {
            reply.fail(document.get("error").unwrap_or(document));
            return;
        }
        let content = document.get("content").and_then(Value::as_array);
        for block in content.into_iter().flatten() {
            match kind(block) {
                "text" => reply.say_run(text_of(block, "text")),
                other => {
                    reply.break_run();
                    if other == CALL {
                        let input = Value::from(block["input"].to_string());
                        reply.whole_call(tool_call(block.get("id"), block.get("name"), Some(&input)));
                    }
                }
            }
        }
        if let Some(usage) = document.get("usage") {
            reply.spent(usage, "input_tokens", "output_tokens");
        }
        reply.finish(document.get("stop_reason").and_then(Value::as_str));
        if content.is_some() {
            reply.end();
        }
    }

    fn read_event(&self, event: &Value, reply: &mut Reply) {
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match kind(event) {
            "message_start" => {
                let message = event.get("message").unwrap_or(&Value::Null);
                reply.answered_by(message.get("model").and_then(Value::as_str));
                reply.spent(&message["usage"], "input_tokens", "output_tokens");
            }
            "content_block_start" => {
                let block = event.get("content_block").unwrap_or(&Value::Null);
                match kind(block) {
                    "text" => reply.say_run(text_of(block, "text")),
                    other => {
                        reply.break_run();
                        if other == CALL {
                            reply.call_piece(index, text_of(block, "id"), text_of(block, "name"), "");
                        }
                    }
                }
            }
            "content_block_delta" => {
                let delta = event.get("delta").unwrap_or(&Value::Null);
                match kind(delta) {
                    "text_delta" => reply.say_run(text_of(delta, "text")),
                    "input_json_delta" => reply.more_arguments(index, text_of(delta, "partial_json")),
                    _ => {}
                }
            }
            "message_delta" => {
                reply.finish(event.pointer("/delta/stop_reason").and_then(Value::as_str));
                reply.spent(&event["usage"], "input_tokens", "output_tokens");
            }
            "message_stop" => reply.end(),
            "error" => {
                reply.fail(event.get("error").unwrap_or(event));
                reply.end();
            }
            _ => {}
        }
    }
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn kind(value: &Value) -> &str {
    text_of(value, "type")
}

fn is_error(document: &Value) -> bool {
    kind(document) == "error"
}

fn message(text: &str, place: Range<usize>) -> Message {
    let object = Object::at(text, &place);
    let role = object.string("role").and_then(|name| role(&name));
    let content = object.place("content").filter(|place| matches!(text.as_bytes()[place.start], b'"' | b'['));
    let Some((role, content)) = role.zip(content) else {
        return Message { place, role, ..Message::default() };
    };
    if splice::string(text, &content).is_some() {
        let (said, _) = said(text, &content);
        let turns = turns(role, &said, Blocks::default());
        return Message {
            place,
            slot: Slot::before(text, &content),
            role: Some(role),
            said,
            other_parts: 0,
            turns,
        };
    }
    let blocks = Blocks::read(text, &content, role);
    let (said, other_parts) = (blocks.said.clone(), blocks.others.len() as u32);
    // A message that has only results of tools belongs to the tools: the user has said nothing in it.
    let is_result = role == Role::User && !blocks.results.is_empty() && said.is_empty() && other_parts == 0;
    let role = if is_result { Role::Tool } else { role };
    // Results come first in their message; anything before them is refused.
    let slot = blocks.after_results.map(Slot::Part).or_else(|| Slot::before(text, &content));
    let slot = slot.filter(|_| !is_result);
    let turns = turns(role, &said, blocks);
    Message { place, slot, role: Some(role), said, other_parts, turns }
}

/// The blocks of a message.
#[derive(Default)]
struct Blocks {
    said: String,
    calls: Vec<Value>,
    results: Vec<NewMessage>,
    /// The types of the other blocks. Thinking is not among them: it is no part of the conversation.
    others: Vec<Value>,
    /// The first block after the results of tools.
    after_results: Option<usize>,
}

impl Blocks {
    fn read(text: &str, content: &Range<usize>, role: Role) -> Self {
        let mut blocks = Self::default();
        let mut is_run = false;
        for place in splice::elements(text, content) {
            let block = Object::at(text, &place);
            let kind = block.string("type").unwrap_or_default();
            let is_text = kind == "text";
            if !blocks.results.is_empty() && blocks.after_results.is_none() && kind != RESULT {
                blocks.after_results = Some(place.start);
            }
            match &*kind {
                "text" => {
                    let said = block.string("text").unwrap_or_default();
                    // A reply with citations is cut into many blocks, which are one text.
                    match is_run && role == Role::Assistant {
                        true => blocks.said.push_str(&said),
                        false => add_line(&mut blocks.said, &said),
                    }
                }
                CALL => {
                    let [id, name] = ["id", "name"].map(|name| block.value(name));
                    let input = Value::from(block.value("input").to_string());
                    blocks.calls.push(tool_call(Some(&id), Some(&name), Some(&input)));
                }
                RESULT => {
                    blocks.after_results = None;
                    let (words, others) =
                        block.place("content").map(|place| said(text, &place)).unwrap_or_default();
                    let mut result = turn(Role::Tool, &words, &others);
                    result.notes.tool_call_id = block.string("tool_use_id").map(|id| id.into_owned());
                    blocks.results.push(result);
                }
                "thinking" | "redacted_thinking" => {}
                other => blocks.others.push(json!(other)),
            }
            is_run = is_text;
        }
        blocks
    }
}

/// A message in the form that is recorded: the results of tools, then the text.
fn turns(role: Role, said: &str, blocks: Blocks) -> Vec<NewMessage> {
    let Blocks { calls, mut results, others, .. } = blocks;
    if matches!(role, Role::User | Role::Assistant) {
        let mut turn = turn(role, said, &others);
        turn.notes.tool_calls = calls;
        results.push(turn);
    }
    results
}

/// A failure in the shape that Anthropic's clients read.
#[derive(Serialize)]
pub(crate) struct FailureResponse {
    #[serde(rename = "type")]
    kind: &'static str,
    error: Failure,
}

#[derive(Serialize)]
struct Failure {
    #[serde(rename = "type")]
    kind: &'static str,
    message: String,
    code: &'static str,
}

/// One of Strata's failures. A failure of the upstream is passed on unchanged.
pub(crate) fn failure(error: ErrorDetail) -> FailureResponse {
    let ErrorDetail { message, kind, code } = error;
    let kind = if kind == "server_error" { "api_error" } else { kind };
    FailureResponse { kind: "error", error: Failure { kind, message, code } }
}

#[cfg(test)]
mod tests;
