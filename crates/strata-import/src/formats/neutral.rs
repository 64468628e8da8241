//! The neutral form of benchmarks: one conversation on each line, with sessions and turns. A conversation is a user.

use serde::Deserialize;
use serde_json::Value;
use strata_core::{Result, Role};

use super::{Reading, lines, moment, reason};
use crate::foreign::{Chat, Said};

#[derive(Deserialize)]
struct Conversation {
    conversation_id: String,
    sessions: Vec<Session>,
}

#[derive(Deserialize)]
struct Session {
    session_id: String,
    timestamp: Option<Value>,
    turns: Vec<Turn>,
}

#[derive(Deserialize)]
struct Turn {
    turn_id: Option<String>,
    speaker: String,
    text: String,
    timestamp: Option<Value>,
}

pub(super) fn read(text: &str, reading: &mut Reading<'_>) -> Result<()> {
    for (line, text) in lines(text) {
        let parsed = serde_json::from_str::<Conversation>(text).map_err(|error| reason(&error));
        let Some(conversation) = reading.take(line, "conversation", parsed)? else { continue };
        for session in conversation.sessions {
            let began = moment(session.timestamp.as_ref());
            let turns = session.turns.into_iter().filter(|turn| !turn.text.trim().is_empty());
            let messages = turns.map(|turn| {
                let (role, name) = speaker(&turn.speaker);
                let created_at = moment(turn.timestamp.as_ref()).or(began);
                Said { id: turn.turn_id, role, name, content: turn.text, created_at }
            });
            reading.contents.chats.push(Chat {
                user: Some(conversation.conversation_id.clone()),
                session: session.session_id,
                title: None,
                place: format!("line {line}"),
                messages: messages.collect(),
                ..Chat::default()
            });
        }
    }
    Ok(())
}

/// A role, or a person with a name.
fn speaker(name: &str) -> (Role, Option<String>) {
    match crate::values::role(name) {
        Ok(role) => (role, None),
        Err(_) if name.trim().is_empty() => (Role::User, None),
        Err(_) => (Role::User, Some(name.to_owned())),
    }
}
