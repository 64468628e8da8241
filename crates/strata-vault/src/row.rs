//! An item on its way into its file.

use serde_json::Value;
use sha2::{Digest, Sha256};
use strata_core::file_name::Names;
use strata_core::hash::fnv;
use strata_core::key::ApiKey;
use strata_core::summary::{Summary, SummaryStatus};
use strata_core::{Error, Memory, Result, SessionId, Turn, UserId};

use super::form::{self, Keyed, SessionFile, TurnExtra};
use super::front::Document;
use super::layout;
use super::snapshot::{ItemKey, Kind};

/// An item with everything that its file holds.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) user: UserId,
    pub(crate) content: Content,
}

/// The kinds of items.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Turn(Box<Turn>, TurnExtra),
    Memory(Box<Memory>, Option<Keyed>),
    Summary(Box<Summary>),
    Session(Box<SessionFile>),
    Key(Box<ApiKey>),
}

impl Row {
    pub(crate) fn new(user: &UserId, content: Content) -> Self {
        Self { user: user.clone(), content }
    }

    /// Which item it is.
    pub(crate) fn key(&self) -> ItemKey {
        let (kind, id) = match &self.content {
            Content::Turn(turn, _) => (Kind::Turn, turn.id.to_string()),
            Content::Memory(memory, _) => (Kind::Memory, memory.id.to_string()),
            Content::Summary(summary) => (Kind::Summary, summary.id.to_string()),
            Content::Session(session) => (Kind::Session, session.session.to_string()),
            Content::Key(key) => (Kind::Key, key.id.to_string()),
        };
        ItemKey { user: self.user.clone(), kind, id }
    }

    /// Whether its file lies among deleted files.
    pub(crate) fn is_deleted(&self) -> bool {
        match &self.content {
            Content::Turn(turn, _) => turn.hidden.is_some(),
            Content::Memory(memory, _) => !memory.is_current(),
            Content::Summary(summary) => summary.status == SummaryStatus::Failed,
            Content::Session(_) | Content::Key(_) => false,
        }
    }

    /// The file's text, on top of the text that it has.
    pub(crate) fn render(&self, on: &Document) -> Result<String> {
        Ok(match &self.content {
            Content::Turn(turn, extra) => form::turn(turn, extra, on),
            Content::Memory(memory, keyed) => form::memory(memory, keyed.as_ref(), on),
            Content::Summary(summary) => form::summary(summary, on),
            Content::Session(session) => json(&serde_json::to_value(session).map_err(unwritable)?)?,
            Content::Key(key) => json(&serde_json::to_value(key).map_err(unwritable)?)?,
        })
    }

    /// The conversation that its file names.
    pub(crate) fn conversation(&self) -> Option<&str> {
        match &self.content {
            Content::Turn(turn, _) => Some(turn.session.as_str()),
            Content::Memory(memory, _) => memory.session.as_ref().map(SessionId::as_str),
            Content::Summary(summary) => Some(summary.session.as_str()),
            Content::Session(_) | Content::Key(_) => None,
        }
    }

    /// Whether its file has a front matter.
    pub(crate) fn is_markdown(&self) -> bool {
        !matches!(self.content, Content::Session(_) | Content::Key(_))
    }

    /// A digest of the item, without what only its file has.
    pub(crate) fn digest(&self) -> Result<u64> {
        let bare = match &self.content {
            Content::Turn(turn, _) => form::turn(turn, &TurnExtra::default(), &Document::default()),
            Content::Memory(memory, _) => form::memory(memory, None, &Document::default()),
            _ => self.render(&Document::default())?,
        };
        // Zero stands for a file that was never written for an item.
        Ok(fnv(bare.as_bytes()).max(1))
    }

    /// The path for a file that does not exist yet; `number` tells parts of a tree apart.
    pub(crate) fn new_path(&self, names: Names, number: usize) -> Result<String> {
        match &self.content {
            Content::Turn(turn, _) => layout::turn_path(names, &self.user, turn),
            Content::Memory(memory, _) => layout::memory_path(names, &self.user, memory),
            Content::Summary(summary) => {
                let folder = layout::summary_folder(names, &self.user, summary)?;
                let path = format!("{folder}/{}", layout::summary_name(summary, number));
                Ok(layout::moved(&path, self.is_deleted()))
            }
            Content::Session(session) => layout::session_path(names, &self.user, &session.session),
            Content::Key(key) => Ok(layout::key_path(key.id)),
        }
    }
}

fn json(value: &Value) -> Result<String> {
    let mut text = serde_json::to_string_pretty(value).map_err(unwritable)?;
    text.push('\n');
    Ok(text)
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::internal("an item cannot be written as JSON").with_source(error)
}

/// The SHA-256 of a file's bytes.
pub(crate) fn hash(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
