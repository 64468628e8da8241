//! The data export of Claude: a list of conversations with `chat_messages`.

use serde::Deserialize;
use serde_json::{Map, Value};
use strata_core::{Result, Role};

use super::{Reading, moment, objects, reason};
use crate::foreign::Said;

#[derive(Deserialize)]
struct Conversation {
    uuid: Option<String>,
    name: Option<String>,
    chat_messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    uuid: Option<String>,
    sender: String,
    text: Option<String>,
    #[serde(default)]
    content: Vec<Map<String, Value>>,
    created_at: Option<Value>,
    #[serde(default)]
    attachments: Vec<Map<String, Value>>,
    #[serde(default)]
    files: Vec<Map<String, Value>>,
}

pub(super) fn read(text: &str, reading: &mut Reading<'_>) -> Result<()> {
    for (number, (line, raw)) in (1..).zip(objects(text, &reading.source.path)?) {
        let what = format!("conversation {number}");
        let parsed = serde_json::from_str::<Conversation>(raw.get()).map_err(|error| reason(&error));
        let Some(conversation) = reading.take(line, &what, parsed)? else { continue };
        let mut messages = Vec::new();
        for message in conversation.chat_messages {
            let role = match message.sender.as_str() {
                "human" | "user" => Ok(Role::User),
                "assistant" => Ok(Role::Assistant),
                other => Err(format!("sender `{other}` is unknown")),
            };
            let Some(role) = reading.take(line, &what, role)? else { continue };
            match said(message, role) {
                Some(said) => messages.push(said),
                None => reading.contents.skipped.add("empty messages"),
            }
        }
        reading.add_chat(number, conversation.uuid, conversation.name, what, messages);
    }
    Ok(())
}

fn said(message: Message, role: Role) -> Option<Said> {
    let blocks =
        message.content.iter().filter(|block| block.get("type").and_then(Value::as_str) == Some("text"));
    let texts: Vec<&str> = blocks
        .filter_map(|block| block.get("text")?.as_str())
        .filter(|text| !text.trim().is_empty())
        .collect();
    // Old exports have `text` alone; in new ones it also holds the notes about tools.
    let mut content = if texts.is_empty() { message.text.unwrap_or_default() } else { texts.join("\n\n") };
    let named = message.attachments.iter().chain(&message.files);
    for name in named.filter_map(|file| file.get("file_name")?.as_str()) {
        content.push_str(&format!("\n[file: {name}]"));
    }
    let content = content.trim().to_owned();
    let created_at = moment(message.created_at.as_ref());
    (!content.is_empty()).then_some(Said { id: message.uuid, role, name: None, content, created_at })
}
