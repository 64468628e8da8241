//! The data export of ChatGPT: a list of conversations, each a tree of messages.
//!
//! The path from the root to `current_node` is the conversation that its owner saw last. Messages beside it, which were edited
//! or generated again, are left out. Tool calls and their results are left out too, because they are not said by anybody.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::{Map, Value};
use strata_core::{Result, Role};

use super::{Reading, moment, objects, reason};
use crate::foreign::Said;

#[derive(Deserialize)]
struct Conversation {
    id: Option<String>,
    /// The same as `id`; exports have one of the two, or both.
    conversation_id: Option<String>,
    title: Option<String>,
    mapping: HashMap<String, Node>,
    current_node: Option<String>,
}

#[derive(Deserialize)]
struct Node {
    message: Option<Message>,
    parent: Option<String>,
    #[serde(default)]
    children: Vec<String>,
}

#[derive(Deserialize)]
struct Message {
    id: String,
    author: Author,
    create_time: Option<Value>,
    #[serde(default)]
    content: Map<String, Value>,
    #[serde(default)]
    metadata: Map<String, Value>,
    recipient: Option<String>,
}

#[derive(Deserialize)]
struct Author {
    role: String,
}

pub(super) fn read(text: &str, reading: &mut Reading<'_>) -> Result<()> {
    for (number, (line, raw)) in (1..).zip(objects(text, &reading.source.path)?) {
        let what = format!("conversation {number}");
        let parsed = serde_json::from_str::<Conversation>(raw.get()).map_err(|error| reason(&error));
        let parsed = parsed.and_then(|conversation| Ok((path(&conversation)?, conversation)));
        let Some((path, conversation)) = reading.take(line, &what, parsed)? else { continue };
        let mut messages = Vec::new();
        let on_path: HashSet<&str> = path.iter().map(String::as_str).collect();
        for id in &path {
            let Some(message) = conversation.mapping.get(id).and_then(|node| node.message.as_ref()) else {
                continue;
            };
            match said(message) {
                Ok(said) => messages.push(said),
                Err(Some(left_out)) => reading.contents.skipped.add(left_out),
                Err(None) => {}
            }
        }
        let beside = conversation.mapping.iter().filter(|(id, node)| {
            !on_path.contains(id.as_str())
                && node.message.as_ref().is_some_and(|message| said(message).is_ok())
        });
        for _ in beside {
            reading.contents.skipped.add("messages of abandoned branches");
        }
        let id = conversation.id.or(conversation.conversation_id);
        reading.add_chat(number, id, conversation.title, what, messages);
    }
    Ok(())
}

/// The ids from the root to the current node, or to the last leaf if none is named.
fn path(conversation: &Conversation) -> Result<Vec<String>, String> {
    let mapping = &conversation.mapping;
    let mut path = Vec::new();
    let mut next = conversation.current_node.clone().or_else(|| newest_leaf(mapping));
    while let Some(id) = next {
        let node = mapping.get(&id).ok_or_else(|| format!("node `{id}` of the tree is missing"))?;
        if path.len() > mapping.len() {
            return Err(format!("node `{id}` is its own ancestor"));
        }
        next = node.parent.clone();
        path.push(id);
    }
    path.reverse();
    Ok(path)
}

fn newest_leaf(mapping: &HashMap<String, Node>) -> Option<String> {
    let time = |node: &Node| {
        let time = node.message.as_ref().and_then(|message| moment(message.create_time.as_ref()));
        time.map(|time| time.as_microsecond())
    };
    let leaves = mapping.iter().filter(|(_, node)| node.children.is_empty());
    leaves.max_by_key(|(id, node)| (time(node), (*id).clone())).map(|(id, _)| id.clone())
}

/// A message as it was said; or why it is left out, if that is worth a word.
fn said(message: &Message) -> Result<Said, Option<&'static str>> {
    let role = match message.author.role.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => return Err(Some("results of tools")),
        // Instructions of the service, mostly empty.
        _ => return Err(None),
    };
    let is_hidden = message.metadata.get("is_visually_hidden_from_conversation") == Some(&Value::Bool(true));
    if is_hidden {
        return Err(None);
    }
    if message.recipient.as_deref().is_some_and(|recipient| recipient != "all") {
        return Err(Some("calls of tools"));
    }
    let kind = message.content.get("content_type").and_then(Value::as_str).unwrap_or("text");
    if matches!(kind, "thoughts" | "reasoning_recap" | "user_editable_context" | "model_editable_context") {
        return Err(Some("thoughts and settings of the model"));
    }
    let text = text(&message.content);
    if text.trim().is_empty() {
        return Err(None);
    }
    let created_at = moment(message.create_time.as_ref());
    Ok(Said { id: Some(message.id.clone()), role, name: None, content: text, created_at })
}

/// The text of a message; a file or picture is named by a note.
fn text(content: &Map<String, Value>) -> String {
    let Some(parts) = content.get("parts").and_then(Value::as_array) else {
        let text = content.get("text").or_else(|| content.get("result")).and_then(Value::as_str);
        return text.unwrap_or_default().to_owned();
    };
    let texts = parts.iter().filter_map(|part| match part {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Object(part) => match part.get("content_type").and_then(Value::as_str) {
            Some("audio_transcription") => part.get("text").and_then(Value::as_str).map(str::to_owned),
            Some(kind) if kind.contains("image") => Some("[image]".to_owned()),
            Some(kind) if kind.contains("audio") || kind.contains("video") => None,
            _ => Some("[attachment]".to_owned()),
        },
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
