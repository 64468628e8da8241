//! Logs of OpenAI's chat API: JSON lines, each a message, a list of messages, or a request with its response.
//!
//! Programs without memory send the whole conversation each time. A line whose messages continue those of an earlier line
//! belongs to the same session, and only its new messages count. Lines of different users never share a session.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Map, Value};
use strata_core::hash::{FNV_START, fnv_append};
use strata_core::{Result, Role};

use super::{Reading, lines, moment, objects, reason};
use crate::foreign::{Chat, Said};

/// A line of the log.
struct Logged {
    session: Option<String>,
    user: Option<String>,
    title: Option<String>,
    messages: Vec<Said>,
    skipped: Vec<&'static str>,
}

pub(super) fn read(text: &str, reading: &mut Reading<'_>) -> Result<()> {
    let mut sessions = Sessions::default();
    let mut lone = Vec::new();
    let is_list = text.trim_start().starts_with('[');
    let parts: Vec<(u64, &str)> = if is_list {
        objects(text, &reading.source.path)?.into_iter().map(|(line, raw)| (line, raw.get())).collect()
    } else {
        lines(text).collect()
    };
    for (line, text) in parts {
        let object = serde_json::from_str::<Map<String, Value>>(text).map_err(|error| reason(&error));
        let logged = object.and_then(|object| match object.contains_key("role") {
            // A file of single messages is one conversation.
            true => message(&object, None).map(|said| {
                lone.extend(said);
                None
            }),
            false => logged(&object).map(Some),
        });
        if let Some(Some(logged)) = reading.take(line, "entry", logged)? {
            for reason in &logged.skipped {
                reading.contents.skipped.add(*reason);
            }
            let name = reading.session(line);
            sessions.take(logged, line, name);
        }
    }
    if !lone.is_empty() {
        let session = reading.source.stem.clone();
        let place = "the file".to_owned();
        let chat = Chat { session, is_named_by_file: true, place, messages: lone, ..Chat::default() };
        reading.contents.chats.push(chat);
    }
    reading.contents.chats.extend(sessions.chats);
    Ok(())
}

/// The conversations so far, found by their messages.
#[derive(Default)]
struct Sessions {
    chats: Vec<Chat>,
    /// The conversation of a user that has exactly these messages, by their digest.
    by_messages: HashMap<(Option<String>, u64), usize>,
    by_name: HashMap<(Option<String>, String), usize>,
}

impl Sessions {
    fn take(&mut self, logged: Logged, line: u64, name: String) {
        let Logged { session, user, title, messages, .. } = logged;
        let digests = digests(&messages);
        // The longest beginning that is a whole conversation so far.
        let known = (1..=messages.len()).rev().find_map(|count| {
            let place = self.by_messages.get(&(user.clone(), digests[count]))?;
            Some((*place, count))
        });
        let named =
            session.as_ref().and_then(|name| self.by_name.get(&(user.clone(), name.clone())).copied());
        let (place, begin) = match (known, named) {
            (Some((place, count)), None) if session.is_none() => (place, count),
            (Some((place, count)), Some(named)) if place == named => (place, count),
            (_, Some(named)) => (named, common(&self.chats[named].messages, &messages)),
            _ => {
                let is_named_by_file = session.is_none();
                let session = session.unwrap_or(name);
                self.by_name.insert((user.clone(), session.clone()), self.chats.len());
                self.chats.push(Chat {
                    user: user.clone(),
                    session,
                    is_named_by_file,
                    title,
                    place: format!("line {line}"),
                    messages: Vec::new(),
                });
                (self.chats.len() - 1, 0)
            }
        };
        self.chats[place].messages.extend(messages.into_iter().skip(begin));
        let all = self.chats[place].messages.len();
        let whole = digests_of(&self.chats[place].messages);
        self.by_messages.insert((user, whole[all]), place);
    }
}

/// The number of messages at the beginning that both have.
fn common(known: &[Said], new: &[Said]) -> usize {
    known.iter().zip(new).take_while(|(a, b)| a.role == b.role && a.content == b.content).count()
}

fn digests(messages: &[Said]) -> Vec<u64> {
    digests_of(messages)
}

/// The digest of each beginning of the messages.
fn digests_of(messages: &[Said]) -> Vec<u64> {
    let mut digest = FNV_START;
    let mut all = vec![digest];
    for said in messages {
        digest = fnv_append(digest, said.role.as_str().as_bytes());
        digest = fnv_append(digest, &(said.content.len() as u64).to_le_bytes());
        digest = fnv_append(digest, said.content.as_bytes());
        all.push(digest);
    }
    all
}

/// Reads a line: `messages` at the top, in `request` or in `body`, with the reply in `choices` or `response`.
fn logged(object: &Map<String, Value>) -> Result<Logged, String> {
    let inner = |name: &str| object.get(name).and_then(Value::as_object);
    let request = inner("request").or_else(|| inner("body")).unwrap_or(object);
    let request = request.get("body").and_then(Value::as_object).unwrap_or(request);
    let response = inner("response").unwrap_or(object);
    let response = response.get("body").and_then(Value::as_object).unwrap_or(response);
    let list = request.get("messages").and_then(Value::as_array).ok_or("it has no list `messages`")?;
    let text = |names: &[&str]| {
        let places = [object, request];
        let found = places.iter().flat_map(|place| names.iter().map(move |name| place.get(*name)));
        found.flatten().find_map(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let times = ["created_at", "created", "timestamp", "time"];
    let at = times.iter().find_map(|name| moment(object.get(*name)).or_else(|| moment(response.get(*name))));
    let mut read = Logged {
        session: named(&[object, request], &["session_id", "conversation_id", "thread_id", "memory_id"])?,
        user: named(&[object, request], &["user_id", "user", "safety_identifier"])?,
        title: text(&["title"]),
        messages: Vec::new(),
        skipped: Vec::new(),
    };
    let replies = response.get("choices").and_then(Value::as_array).into_iter().flatten();
    let reply = replies.filter_map(|choice| choice.get("message")).next();
    for one in list.iter().chain(reply) {
        let one = one.as_object().ok_or("a message is not an object")?;
        match message(one, at)? {
            Some(said) => read.messages.push(said),
            None => read.skipped.push("messages without text"),
        }
    }
    Ok(read)
}

/// The first of these names. An invalid name is refused: without it, one user's words would be among another's.
fn named(places: &[&Map<String, Value>], names: &[&str]) -> Result<Option<String>, String> {
    let all = places.iter().flat_map(|place| names.iter().map(move |name| (*name, place.get(*name))));
    for (name, value) in all {
        match value {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if !text.is_empty() => return Ok(Some(text.clone())),
            Some(Value::Number(number)) => return Ok(Some(number.to_string())),
            Some(_) => return Err(format!("`{name}` is no name; give a text")),
        }
    }
    Ok(None)
}

/// A message; `None` if it has no text, as a call of a tool.
fn message(object: &Map<String, Value>, at: Option<Timestamp>) -> Result<Option<Said>, String> {
    let role = object.get("role").and_then(Value::as_str).ok_or("a message has no `role`")?;
    let role: Role = crate::values::role(role).map_err(|error| error.message().to_owned())?;
    let content = match object.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(part).collect::<Vec<_>>().join("\n"),
        Some(Value::Null) | None => String::new(),
        Some(_) => return Err("`content` is neither a text nor a list of parts".to_owned()),
    };
    if content.trim().is_empty() {
        return Ok(None);
    }
    let own = ["created_at", "timestamp", "created", "time"];
    let created_at = own.iter().find_map(|name| moment(object.get(*name))).or(at);
    let name = object.get("name").and_then(Value::as_str).map(str::to_owned);
    Ok(Some(Said { name, created_at, ..Said::new(role, content) }))
}

fn part(part: &Value) -> Option<String> {
    if let Some(text) = part.as_str().or_else(|| part.get("text")?.as_str()) {
        return Some(text.to_owned());
    }
    let kind = part.get("type")?.as_str()?;
    Some(if kind.contains("image") { "[image]" } else { "[attachment]" }.to_owned())
}
