//! Ollama's own API: chats and plain generation, streamed as one JSON document on each line.

use std::ops::Range;

use serde::Serialize;
use serde_json::Value;
use strata_core::Role;

use super::chat::reply::Reply;
use super::chat::splice::{self, Object};
use super::chat::{ChatApi, Message, Prompt, Slot, turn};
use super::openai::completions::{compact_calls, messages, role};
use crate::error::{ApiError, ErrorDetail};

/// `POST /api/chat`.
pub(crate) struct Chat;

/// `POST /api/generate`.
pub(crate) struct Generate;

impl ChatApi for Chat {
    fn prompt(&self, body: &Object<'_>) -> Result<Prompt, ApiError> {
        // A request without messages loads or unloads a model.
        match body.written("messages") {
            None | Some("null") => Ok(Prompt { messages: Vec::new(), place: 0..0, is_list: false }),
            Some(_) => messages(body, message),
        }
    }

    fn read_document(&self, document: &Value, reply: &mut Reply) {
        self.read_event(document, reply);
    }

    fn read_event(&self, event: &Value, reply: &mut Reply) {
        if let Some(message) = event.get("message") {
            reply.say(message.get("content").and_then(Value::as_str).unwrap_or_default());
            let calls = message.get("tool_calls").map(compact_calls);
            calls.into_iter().flatten().for_each(|call| reply.whole_call(call));
        }
        take_rest(event, reply);
    }
}

impl ChatApi for Generate {
    fn prompt(&self, body: &Object<'_>) -> Result<Prompt, ApiError> {
        let text = body.text();
        let Some(place) =
            body.place("prompt").filter(|place| !matches!(&text[place.clone()], "null" | "\"\""))
        else {
            return Ok(Prompt { messages: Vec::new(), place: 0..0, is_list: false });
        };
        let Some(said) = splice::string(text, &place) else {
            return Err(ApiError::invalid("`prompt` is not a text; send one"));
        };
        let images = images(body);
        let turns = vec![turn(Role::User, &said, &images)];
        // The model continues a raw prompt, or fills in code before a suffix. A block would be continued too.
        let is_given =
            |name: &str| body.written(name).is_some_and(|value| !matches!(value, "null" | "false" | "\"\""));
        let is_question = !is_given("raw") && !is_given("suffix");
        let slot = Slot::before(text, &place).filter(|_| is_question);
        let (said, other_parts) = (said.into_owned(), images.len() as u32);
        let turns = if is_question { turns } else { Vec::new() };
        let message =
            Message { place: place.clone(), slot, role: Some(Role::User), said, other_parts, turns };
        Ok(Prompt { messages: vec![message.once()], place, is_list: false })
    }

    fn read_document(&self, document: &Value, reply: &mut Reply) {
        self.read_event(document, reply);
    }

    fn read_event(&self, event: &Value, reply: &mut Reply) {
        reply.say(event.get("response").and_then(Value::as_str).unwrap_or_default());
        take_rest(event, reply);
    }
}

fn message(text: &str, place: Range<usize>) -> Message {
    let object = Object::at(text, &place);
    let role = object.string("role").and_then(|name| role(&name));
    let written = object.string("content");
    // The upstream judges a content of a wrong type. It holds no message.
    let is_wrong = written.is_none() && !object.value("content").is_null();
    let said = written.unwrap_or_default().into_owned();
    let images = images(&object);
    let turns = role.filter(|role| *role != Role::System && !is_wrong).map(|role| {
        let mut turn = turn(role, &said, &images);
        turn.notes.tool_calls = compact_calls(&object.value("tool_calls"));
        turn.name = object.string("tool_name").map(|name| name.into_owned());
        turn
    });
    let content = object.place("content").filter(|place| text.as_bytes()[place.start] == b'"');
    let slot = content.and_then(|content| Slot::before(text, &content));
    let (turns, other_parts) = (turns.into_iter().collect(), images.len() as u32);
    Message { place, slot, role, said, other_parts, turns }
}

/// The images of a message or a prompt, as parts.
fn images(object: &Object<'_>) -> Vec<Value> {
    let list = object.place("images").map(|place| splice::elements(object.text(), &place));
    list.unwrap_or_default().iter().map(|_| Value::from("image")).collect()
}

fn take_rest(event: &Value, reply: &mut Reply) {
    reply.answered_by(event.get("model").and_then(Value::as_str));
    reply.fail(event.get("error").unwrap_or(&Value::Null));
    reply.spent(event, "prompt_eval_count", "eval_count");
    reply.finish(event.get("done_reason").and_then(Value::as_str));
    if event.get("done") == Some(&Value::Bool(true)) {
        reply.end();
    }
}

/// A failure in the shape that Ollama's clients read.
#[derive(Serialize)]
pub(crate) struct FailureResponse {
    error: String,
    code: &'static str,
}

/// One of Strata's failures. A failure of the upstream is passed on unchanged.
pub(crate) fn failure(error: ErrorDetail) -> FailureResponse {
    FailureResponse { error: error.message, code: error.code }
}

#[cfg(test)]
mod tests;
