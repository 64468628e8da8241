//! What the model is shown: a few thousand tokens in the place of a whole conversation.
//!
//! The layers are document 0's: the current request, what is known (a *profile*'s fields, see [`Profile`]), a rolling
//! summary of what was said earlier, and the recent turns without what only an interface or a log reader needs. Two
//! renderers put them together: [`flat`], one text with the request first, and [`chat`], a list of messages whose
//! beginning stays as it was. Both keep to a budget of tokens and say what they cut.
//!
//! All of it is pure: no model, no store, no clock. The use-cases over a store are in
//! [`crate::Prompting`] and [`crate::Recording`]. Start reading at [`build_prompt`]; `docs/prompt.md` is the guide.

mod chat;
mod extract;
mod filter;
mod flat;
mod layers;
mod profile;
mod rules;
mod steps;
mod summary;
#[cfg(test)]
mod tests;
mod usage;

use serde::{Deserialize, Serialize};

pub(crate) use chat::memory_block;
#[cfg(test)]
pub(crate) use chat::{CLOSE, OPEN};
pub use chat::{ChatLayers, chat, strip_injected};
pub use extract::{Rules, extract_state_updates};
pub use filter::{FilterSettings, filter_content, filter_content_with};
pub(crate) use filter::{RawLogs, strip};
pub(crate) use flat::speaks_of_device;
pub use flat::{BuiltPrompt, FlatLayers, build_prompt, build_prompt_with, flat};
pub use layers::is_device;
pub(crate) use layers::recent_start;
pub use profile::{Field, Profile, Rule, Status, StatusRule};
pub(crate) use rules::PromptRules;
pub use steps::{Compaction, MessageSize, compacted, summary_share};
pub use summary::{build_summary, build_summary_with, compress_message, compress_message_with};
pub(crate) use usage::count_usage;

use strata_core::error::Error;
use strata_core::names::{Named, unknown};
use strata_core::ports::{ChatMessage, TokenCounter};
use strata_core::turn::{Role, Turn};

/// How prompts are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PromptSettings {
    /// The most tokens of a prompt, the question aside, which is never cut. What document 0 estimates for ten turns.
    pub max_tokens: u32,
    /// How many exchanges stay as they were said (document 0).
    pub recent_exchanges: usize,
    /// After how many messages the stored summary is moved on. Between two steps the beginning of a chat stays
    /// byte for byte what it was, and the store is not written to.
    pub fold_step: usize,
    /// What is left out of messages.
    pub filter: FilterSettings,
    /// How long the rolling summary may be.
    pub summary: SummarySettings,
    /// What is read out of replies, and shown. [`Profile::diagnostic`] unless said otherwise.
    pub profiles: Vec<Profile>,
    /// What the current request becomes when it names a device, with `{question}`, `{device_ip}` and `{device_name}`
    /// replaced; the request as it is where this is not set.
    pub enrichment: Option<String>,
}

impl Default for PromptSettings {
    fn default() -> Self {
        Self {
            max_tokens: 8_000,
            recent_exchanges: 3,
            // Twice the messages that stay: a prompt then reads 18 turns at the most.
            fold_step: 12,
            filter: FilterSettings::default(),
            summary: SummarySettings::default(),
            profiles: vec![Profile::diagnostic()],
            enrichment: None,
        }
    }
}

/// How long the rolling summary may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SummarySettings {
    /// The most characters of a message in it (document 0).
    pub entry_chars: usize,
    /// The most characters of all of it: twenty whole entries, or about a hundred condensed ones.
    pub max_chars: usize,
}

impl Default for SummarySettings {
    fn default() -> Self {
        Self { entry_chars: 300, max_chars: 6_000 }
    }
}

/// A message of a conversation, as far as a prompt needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub content: String,
}

impl Message {
    /// What somebody said.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into() }
    }
}

impl From<Turn> for Message {
    fn from(turn: Turn) -> Self {
        Self { role: turn.role, content: turn.content }
    }
}

/// A prompt, and how it came to its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// What the model is shown.
    pub body: PromptBody,
    /// The tokens of all of it.
    pub tokens: u32,
    /// The layers that are in it, in their order.
    pub layers: Vec<Layer>,
    /// What gave way to the budget, in the order in which it did.
    pub cut: Vec<Cut>,
}

/// What the model is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptBody {
    /// One text, for a program that takes one.
    Text(String),
    /// Messages, for a chat model.
    Messages(Vec<ChatMessage>),
}

impl Prompt {
    /// The text of a flat prompt; `None` for a chat.
    pub fn text(&self) -> Option<&str> {
        match &self.body {
            PromptBody::Text(text) => Some(text),
            PromptBody::Messages(_) => None,
        }
    }

    /// The messages of a chat; `None` for a flat prompt.
    pub fn messages(&self) -> Option<&[ChatMessage]> {
        match &self.body {
            PromptBody::Messages(messages) => Some(messages),
            PromptBody::Text(_) => None,
        }
    }
}

/// One layer's share of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// The layer, by the name of its tag.
    pub name: String,
    /// Its tokens.
    pub tokens: u32,
}

/// Something that gave way to the budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// The layer, by the name of its tag.
    pub layer: String,
    /// How many of the things that `what` names went; 0 where they are not counted.
    pub count: usize,
    /// What of it went, and where to.
    pub what: String,
}

/// Counts some more of a layer's cuts.
fn note_cut(cut: &mut Vec<Cut>, layer: &str, count: usize, what: &str) {
    match cut.iter_mut().find(|cut| cut.layer == layer) {
        Some(cut) => {
            cut.count += count;
            what.clone_into(&mut cut.what);
        }
        None => cut.push(Cut { layer: layer.to_owned(), count, what: what.to_owned() }),
    }
}

/// Says what became of a layer, instead of what was said before.
fn replace_cut(cut: &mut Vec<Cut>, layer: &str, what: &str) {
    cut.retain(|cut| cut.layer != layer);
    cut.push(Cut { layer: layer.to_owned(), count: 0, what: what.to_owned() });
}

/// In which form a prompt is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<PromptFormat>)]
pub enum PromptFormat {
    /// One text, the request first (document 0).
    #[default]
    Flat,
    /// A list of messages, memory beside the last of the user's (document 4).
    Chat,
}

impl Named for PromptFormat {
    const WHAT: &'static str = "format";
}

/// How a speaker is called in a prompt.
fn label(role: Role) -> &'static str {
    match role {
        Role::User => "User",
        Role::Assistant => "Assistant",
        Role::System => "System",
        Role::Tool => "Tool",
    }
}

/// Counts the tokens of many texts.
fn count_all<'a>(texts: impl IntoIterator<Item = &'a str>, tokens: &dyn TokenCounter) -> u32 {
    texts.into_iter().fold(0, |sum, text| sum.saturating_add(tokens.count(text)))
}
