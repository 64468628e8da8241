//! The request of a chat completion as the client wrote it: the fields that memory needs, and the few bytes that
//! memory changes.

use std::ops::Range;

use serde_json::{Map, Value, json};
use strata_core::Role;
use strata_core::scope::RecallScope;
use strata_core::turn::NewMessage;
use strata_engine::recall::MAX_LIMIT;

use super::splice::{self, Edits, Member};
use crate::error::ApiError;

/// Fields for Strata, which the upstream would not understand.
const EXTRAS: [&str; 6] = [
    "memory_id",
    "memory_top_k",
    "memory_recency_weight",
    "memory_score_threshold",
    "memory_scope",
    "memory_rerank",
];

/// Fields that name the user and the session. Each has to be a string: if a number were ignored, one user's words
/// would be recorded for another user.
const NAMES: [&str; 5] = ["user_id", "user", "memory_id", "session_id", "run_id"];

/// A request's body.
pub(crate) struct ChatBody<'a> {
    text: &'a str,
    members: Vec<Member>,
    pub(crate) messages: Vec<Message>,
    pub(crate) names: Names,
    pub(crate) options: Options,
}

/// A body for the upstream.
pub(crate) struct Forwarded {
    pub(crate) text: String,
    /// Where the messages are.
    prompt: Range<usize>,
}

impl Forwarded {
    /// The messages, as the model will be shown them.
    pub(crate) fn prompt(&self) -> &[u8] {
        self.text.as_bytes().get(self.prompt.clone()).unwrap_or_default()
    }
}

/// The user and the session that the body names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) user_id: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) memory_id: Option<String>,
    pub(crate) session_id: Option<String>,
    pub(crate) run_id: Option<String>,
}

/// Recall parameters, instead of the settings.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Options {
    pub(crate) top_k: Option<u32>,
    pub(crate) recency_weight: Option<f32>,
    pub(crate) score_threshold: Option<f32>,
    /// Whether a cross-encoder reorders the best candidates.
    pub(crate) rerank: Option<bool>,
    /// How far recall may look from the session.
    pub(crate) scope: Option<RecallScope>,
}

/// One of the client's messages.
#[derive(Debug)]
pub(crate) struct Message {
    place: Range<usize>,
    content: Option<Range<usize>>,
    /// `None` for an unknown role: such a message is passed on, but not recorded.
    pub(crate) role: Option<Role>,
    /// Its text, or the texts of its parts joined.
    pub(crate) said: String,
    name: Option<String>,
    /// The types of its parts that are not text.
    other_parts: Vec<Value>,
    tool_calls: Vec<Value>,
    tool_call_id: Option<String>,
}

impl Message {
    /// The message in the form that is recorded; `None` for instructions.
    pub(crate) fn heard(&self) -> Option<NewMessage> {
        let role = self.role.filter(|role| *role != Role::System)?;
        let mut message = NewMessage::new(role, self.said.clone());
        message.name.clone_from(&self.name);
        message.notes.tool_calls.clone_from(&self.tool_calls);
        message.notes.tool_call_id.clone_from(&self.tool_call_id);
        if !self.other_parts.is_empty() {
            message.metadata.insert("parts", self.other_parts.clone().into());
        }
        Some(message)
    }

    /// The number of its parts that are not text.
    pub(crate) fn other_parts(&self) -> u32 {
        self.other_parts.len() as u32
    }

    /// The number of bytes that it takes in the body. Images count with their full size.
    pub(crate) fn bytes(&self) -> usize {
        self.place.len()
    }
}

impl<'a> ChatBody<'a> {
    /// Reads a body. Fields that memory does not need are not checked; that is left to the upstream.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, ApiError> {
        let (text, place) = splice::parse(bytes)
            .map_err(|reason| ApiError::invalid(format!("the body is not JSON: {reason}; send an object")))?;
        if !text[place.clone()].starts_with('{') {
            return Err(ApiError::invalid("the body is not a JSON object; send one with `messages`"));
        }
        let members = splice::members(text, &place);
        let value = |name: &str| splice::member(text, &members, name).map(|member| member.value.clone());
        let named = |name: &str| value(name).and_then(|place| splice::string(text, &place));
        let named = |name: &str| named(name).map(|text| text.into_owned());
        for name in NAMES {
            if value(name).is_some_and(|place| !matches!(text.as_bytes()[place.start], b'"' | b'n')) {
                let what = if name.starts_with("user") { "user" } else { "session" };
                return Err(ApiError::invalid(format!(
                    "`{name}` is not a string; name a {what} in quotes, or leave it out"
                )));
            }
        }
        let number = |name| number(name, value(name).map(|place| &text[place]));
        let top_k = match number("memory_top_k")? {
            None => None,
            Some(value) if value.fract() == 0.0 && (1.0..=f64::from(MAX_LIMIT)).contains(&value) => {
                Some(value as u32)
            }
            Some(value) => {
                return Err(ApiError::invalid(format!(
                    "`memory_top_k` is `{value}`; it is a whole number from 1 to {MAX_LIMIT}"
                )));
            }
        };
        let share = |name| match number(name)? {
            Some(value) if !(0.0..=1.0).contains(&value) => {
                Err(ApiError::invalid(format!("`{name}` is `{value}`; it goes from 0 to 1")))
            }
            value => Ok(value.map(|value| value as f32)),
        };
        let options = Options {
            top_k,
            recency_weight: share("memory_recency_weight")?,
            score_threshold: share("memory_score_threshold")?,
            rerank: rerank(value("memory_rerank").map(|place| &text[place]))?,
            scope: scope(value("memory_scope").map(|place| &text[place]), named("memory_scope"))?,
        };
        let names = Names {
            user_id: named("user_id"),
            user: named("user"),
            memory_id: named("memory_id"),
            session_id: named("session_id"),
            run_id: named("run_id"),
        };
        let list = value("messages").filter(|place| text.as_bytes()[place.start] == b'[');
        let list = list.ok_or_else(|| {
            ApiError::invalid(
                "the body has no list of `messages`; send the messages of the conversation in one",
            )
        })?;
        let messages = splice::elements(text, &list).into_iter().map(|place| message(text, place)).collect();
        Ok(Self { text, members, messages, names, options })
    }

    /// The index of the user's last message into which memory can be inserted.
    pub(crate) fn question(&self) -> Option<usize> {
        let place = self.messages.iter().rposition(|message| message.role == Some(Role::User))?;
        self.messages[place].content.as_ref()?;
        Some(place)
    }

    /// The body for the upstream: without the fields for Strata, with blocks in front of some messages' contents, and
    /// without the messages that were compacted.
    pub(crate) fn forwarded(&self, blocks: &[(usize, String)], is_gone: impl Fn(usize) -> bool) -> Forwarded {
        let mut edits = Edits::default();
        let is_extra = |place: usize| {
            splice::string(self.text, &self.members[place].name).is_some_and(|name| EXTRAS.contains(&&*name))
        };
        let members: Vec<Range<usize>> =
            self.members.iter().map(|member| member.name.start..member.value.end).collect();
        edits.remove(&members, is_extra);
        let messages: Vec<Range<usize>> = self.messages.iter().map(|message| message.place.clone()).collect();
        edits.remove(&messages, is_gone);
        for (place, block) in blocks {
            let Some(content) = &self.messages[*place].content else { continue };
            let text = splice::escaped(&format!("{block}\n\n"));
            let is_list = self.text.as_bytes()[content.start] == b'[';
            let more = is_list && !splice::elements(self.text, content).is_empty();
            edits.insert(
                content.start + 1,
                match is_list {
                    false => text,
                    true => {
                        format!("{{\"type\":\"text\",\"text\":\"{text}\"}}{}", if more { "," } else { "" })
                    }
                },
            );
        }
        let list = splice::member(self.text, &self.members, "messages").map(|member| member.value.clone());
        let prompt = list.map(|list| edits.moved(list.start)..edits.moved(list.end)).unwrap_or_default();
        Forwarded { text: edits.apply(self.text), prompt }
    }
}

fn number(name: &str, text: Option<&str>) -> Result<Option<f64>, ApiError> {
    match text {
        None | Some("null") => Ok(None),
        Some(text) => text.parse::<f64>().map(Some).map_err(|_| {
            let shown: String = text.chars().take(64).collect();
            ApiError::invalid(format!("`{name}` is `{shown}`; it is a number"))
        }),
    }
}

/// The value of `memory_rerank`, as it is written.
fn rerank(written: Option<&str>) -> Result<Option<bool>, ApiError> {
    match written {
        None | Some("null") => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(text) => {
            let shown: String = text.chars().take(64).collect();
            Err(ApiError::invalid(format!("`memory_rerank` is `{shown}`; it is `true` or `false`")))
        }
    }
}

/// The value of `memory_scope`: as it is written, and as a string if it is one.
fn scope(written: Option<&str>, named: Option<String>) -> Result<Option<RecallScope>, ApiError> {
    let known = match (written, named) {
        (None | Some("null"), _) => return Ok(None),
        (Some(_), name) => name.and_then(|name| name.parse().ok()),
    };
    known.map(Some).ok_or_else(|| {
        let shown: String = written.unwrap_or_default().chars().take(64).collect();
        ApiError::invalid(format!("`memory_scope` is `{shown}`; use `session` or `user`, or leave it out"))
    })
}

fn message(text: &str, place: Range<usize>) -> Message {
    let members = splice::members(text, &place);
    let value = |name: &str| splice::member(text, &members, name).map(|member| member.value.clone());
    let string = |name: &str| value(name).and_then(|place| splice::string(text, &place));
    let role = string("role").and_then(|role| match &*role {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        "system" | "developer" => Some(Role::System),
        "tool" | "function" => Some(Role::Tool),
        _ => None,
    });
    let content = value("content").filter(|place| matches!(text.as_bytes()[place.start], b'"' | b'['));
    let (said, other_parts) = content.as_ref().map(|place| said(text, place)).unwrap_or_default();
    let calls = value("tool_calls").or_else(|| value("function_call"));
    let calls = calls.and_then(|place| serde_json::from_str(&text[place]).ok()).unwrap_or(Value::Null);
    let tool_calls = compact_calls(&calls);
    let tool_call_id = string("tool_call_id").map(|id| id.into_owned());
    let name = string("name").map(|name| name.into_owned());
    Message { place, content, role, said, name, other_parts, tool_calls, tool_call_id }
}

/// The text of a content, and the types of its parts that are not text.
fn said(text: &str, content: &Range<usize>) -> (String, Vec<Value>) {
    if let Some(said) = splice::string(text, content) {
        return (said.into_owned(), Vec::new());
    }
    let mut said = String::new();
    let mut others = Vec::new();
    for part in splice::elements(text, content) {
        let members = splice::members(text, &part);
        let string = |name: &str| {
            let member = splice::member(text, &members, name)?;
            splice::string(text, &member.value)
        };
        match (string("type").as_deref(), string("text").or_else(|| string("refusal"))) {
            (_, Some(words)) => {
                if !said.is_empty() {
                    said.push('\n');
                }
                said.push_str(&words);
            }
            (kind, None) => others.push(json!(kind.unwrap_or("unknown"))),
        }
    }
    (said, others)
}

/// The tool calls that a message asks for, each as `{id, name, arguments}`.
pub(crate) fn compact_calls(calls: &Value) -> Vec<Value> {
    let one = [calls.clone()];
    let calls = match calls {
        Value::Array(calls) => calls.as_slice(),
        Value::Object(_) => &one,
        _ => return Vec::new(),
    };
    let compact = |call: &Value| {
        let function = call.get("function").or_else(|| call.get("custom")).unwrap_or(call);
        let mut compact = Map::new();
        let arguments = function.get("arguments").or_else(|| function.get("input"));
        for (name, value) in
            [("id", call.get("id")), ("name", function.get("name")), ("arguments", arguments)]
        {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                compact.insert(name.to_owned(), value.clone());
            }
        }
        Value::Object(compact)
    };
    calls.iter().map(compact).collect()
}

#[cfg(test)]
mod tests;
