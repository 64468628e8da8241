//! Long conversations with questions, from files of their own or from a benchmark set.

use std::collections::HashMap;
use std::path::Path;

use strata_core::turn::{NewMessage, Role};
use strata_core::{Error, Result};

use crate::data::{Set, speaker};

/// A conversation, and questions about what was said early in it.
#[derive(Debug, Clone, PartialEq)]
pub struct LongConversation {
    /// Its name.
    pub name: String,
    /// All messages of one session.
    pub messages: Vec<NewMessage>,
    /// The questions.
    pub questions: Vec<Asked>,
}

/// A question with what answers it.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The question.
    pub question: String,
    /// Its answer.
    pub evidence: Evidence,
}

/// The answer of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Evidence {
    /// These words, in the message at this place.
    Words(String, usize),
    /// The messages at these places.
    Messages(Vec<usize>),
}

impl Evidence {
    /// Whether all of it was said before a message.
    pub(super) fn is_before(&self, message: usize) -> bool {
        match self {
            Self::Words(_, place) => *place < message,
            Self::Messages(places) => !places.is_empty() && places.iter().all(|place| *place < message),
        }
    }
}

/// Reads the `*.txt` files of a folder, each a conversation.
pub fn load(folder: &Path) -> Result<Vec<LongConversation>> {
    let unreadable = |path: &Path, error: std::io::Error| {
        Error::invalid(format!("`{}` cannot be read: {error}", path.display()))
    };
    let entries = std::fs::read_dir(folder).map_err(|error| unreadable(folder, error))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    let mut conversations = Vec::with_capacity(paths.len());
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
        conversations.push(conversation(&text, &path)?);
    }
    if conversations.is_empty() {
        return Err(Error::invalid(format!("folder `{}` contains no `*.txt`", folder.display())));
    }
    Ok(conversations)
}

fn conversation(text: &str, path: &Path) -> Result<LongConversation> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut found = LongConversation { name, messages: Vec::new(), questions: Vec::new() };
    for (number, line) in text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty()) {
        let wrong = |what: &str| Error::invalid(format!("`{}` line {}: {what}", path.display(), number + 1));
        if let Some(text) = line.strip_prefix("U: ") {
            found.messages.push(NewMessage::new(Role::User, text));
        } else if let Some(text) = line.strip_prefix("A: ") {
            found.messages.push(NewMessage::new(Role::Assistant, text));
        } else if let Some(line) = line.strip_prefix("? ") {
            let (question, answer) =
                line.rsplit_once('|').ok_or_else(|| wrong("not `? question | answer`"))?;
            let (question, answer) = (question.trim().to_owned(), answer.trim().to_owned());
            let place = found.messages.iter().position(|message| message.content.contains(&answer));
            let place = place.ok_or_else(|| wrong("no message says the answer"))?;
            found.questions.push(Asked { question, evidence: Evidence::Words(answer, place) });
        } else {
            return Err(wrong("not `U: `, `A: ` or `? `"));
        }
    }
    Ok(found)
}

/// The longest conversations of a set, at most `most`, each as one session.
pub fn of_set(set: &Set, most: usize) -> Vec<LongConversation> {
    let mut conversations: Vec<LongConversation> = Vec::new();
    for conversation in &set.conversations {
        let mut messages = Vec::new();
        let mut places = HashMap::new();
        let turns = conversation.sessions.iter().zip(conversation.times());
        for (turn, time) in turns.flat_map(|(session, times)| session.turns.iter().zip(times)) {
            if turn.text.trim().is_empty() {
                continue;
            }
            let (role, name) = speaker(&turn.speaker);
            places.insert(turn.turn_id.as_str(), messages.len());
            messages.push(NewMessage { name, created_at: time, ..NewMessage::new(role, turn.text.as_str()) });
        }
        let own = set
            .questions
            .iter()
            .filter(|question| question.scored && question.conversation_id == conversation.conversation_id);
        let questions = own.map(|question| Asked {
            question: question.question.clone(),
            evidence: Evidence::Messages(
                question.evidence_turns.iter().filter_map(|id| places.get(id.as_str()).copied()).collect(),
            ),
        });
        let questions = questions.collect();
        conversations.push(LongConversation {
            name: conversation.conversation_id.clone(),
            messages,
            questions,
        });
    }
    conversations.sort_by_key(|conversation| std::cmp::Reverse(conversation.messages.len()));
    conversations.truncate(most);
    conversations
}
