//! Prompts: a few thousand tokens that replace a whole conversation.
//!
//! The layers come from the layered-prompt design: the current request, the known fields of each *profile*
//! ([`Profile`]), a rolling summary of earlier turns, and the recent turns without interface markers and raw logs. Two
//! renderers join the layers: [`flat`] makes one text with the request first, and [`chat`] makes a list of messages
//! whose beginning stays the same. Both keep to a token budget and report what they cut.
//!
//! All functions are pure: no model, no store, no clock. The use-cases over a store are in [`crate::Prompting`] and
//! [`crate::Recording`]. Start reading at [`build_prompt`]; `docs/prompt.md` is the guide.

mod chat;
mod covered;
mod extract;
mod failures;
mod filter;
mod flat;
mod items;
mod layers;
mod logs;
mod profile;
mod rules;
mod steps;
mod subject;
mod summary;
mod tasks;
#[cfg(test)]
mod tests;
mod usage;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[cfg(test)]
pub(crate) use chat::{CLOSE, OPEN};
pub use chat::{ChatLayers, chat, strip_injected};
pub(crate) use chat::{chat_filled, memory_block};
pub(crate) use covered::without_last;
pub use extract::{Rules, extract_state_updates};
pub use filter::{FilterSettings, filter_content, filter_content_with};
pub(crate) use filter::{RawLogs, strip};
pub use flat::{BuiltPrompt, FlatLayers, build_prompt, build_prompt_with, flat};
pub(crate) use flat::{flat_filled, speaks_of_device};
pub(crate) use items::{Likeness, likeness, one_line};
pub use layers::is_device;
pub(crate) use layers::{context_texts, recent_start};
pub use profile::{Field, Profile, Rule, Status, StatusRule};
pub(crate) use rules::PromptRules;
pub use steps::{Compaction, MessageSize, compacted, summary_share};
pub(crate) use subject::{
    begin as begin_subject, has_device, return_to as return_to_subject, undo as undo_subject,
};
pub use summary::{build_summary, build_summary_with, compress_message, compress_message_with};
pub(crate) use summary::{condense, entry_of, has_left_out, label_of, with_entries, without_said};
pub(crate) use tasks::{
    Moment, TaskEnd, add_task, checklist, close_task, has_done, is_checklist_line, open_tasks, remove_task,
};
pub(crate) use usage::count_usage;

use crate::line::{Days, said_head, speaker};
use strata_core::error::Error;
use strata_core::names::{Named, unknown};
use strata_core::ports::{ChatMessage, TokenCounter};
use strata_core::turn::{Role, Turn};

/// The settings of prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PromptSettings {
    /// The most tokens of a prompt, without the question, which is never cut. The default is the estimate of the
    /// layered-prompt design for ten turns.
    pub max_tokens: u32,
    /// The number of recent exchanges that stay verbatim (layered-prompt design); with [`History::Auto`] the least number.
    pub recent_exchanges: usize,
    /// The number of messages after which the stored summary is updated. Between two updates the beginning of a chat
    /// stays the same byte for byte, and the store is not written to.
    pub fold_step: usize,
    /// The parts of messages that are left out.
    pub filter: FilterSettings,
    /// The length of the rolling summary.
    pub summary: SummarySettings,
    /// The replacement of the turns that a prompt no longer shows.
    pub history: History,
    /// The profiles that read messages and appear in prompts. Defaults to [`Profile::shipped`].
    pub profiles: Vec<Profile>,
    /// The template for a request that names a device, with `{question}`, `{device_ip}` and `{device_name}` as
    /// placeholders. Without it the request stays unchanged.
    pub enrichment: Option<String>,
}

impl Default for PromptSettings {
    fn default() -> Self {
        Self {
            max_tokens: 8_000,
            recent_exchanges: 3,
            // Twice the messages that stay, so that a prompt reads at most 18 turns.
            fold_step: 12,
            filter: FilterSettings::default(),
            summary: SummarySettings::default(),
            history: History::default(),
            profiles: Profile::shipped(),
            enrichment: None,
        }
    }
}

/// The length of the rolling summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SummarySettings {
    /// The most characters of one message in the summary (layered-prompt design).
    pub entry_chars: usize,
    /// The most characters of the summary: fifty whole entries, about half of the default budget of a prompt.
    pub max_chars: usize,
    /// Whether the sentences that matter are chosen, where the reader has judged them. Otherwise a message keeps its
    /// beginning, or its first and last paragraph (layered-prompt design).
    pub by_reader: bool,
}

impl Default for SummarySettings {
    fn default() -> Self {
        Self { entry_chars: 300, max_chars: 16_000, by_reader: true }
    }
}

/// A message of a conversation, with the fields that a prompt needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The speaker.
    pub role: Role,
    /// The text.
    pub content: String,
    /// The speaker's name, if it is known.
    pub name: Option<String>,
    /// The time at which it was said, if it is known. Then the message is shown with its day and speaker.
    pub said_at: Option<Timestamp>,
}

impl Message {
    /// A message of a speaker.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), name: None, said_at: None }
    }

    /// The beginning of the message's line: `[2023-05-08 Caroline]`, or `User:` if its time is not known.
    fn head(&self) -> String {
        match (self.said_at, &self.name) {
            (Some(at), name) => said_head(self.role, name.as_deref(), at, Days::Absolute),
            (None, Some(name)) => format!("{}:", speaker(self.role, Some(name))),
            (None, None) => format!("{}:", label(self.role)),
        }
    }
}

impl From<Turn> for Message {
    fn from(Turn { role, name, content, created_at, .. }: Turn) -> Self {
        Self { role, content, name, said_at: Some(created_at) }
    }
}

/// A prompt, with its layers and cuts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The text or the messages.
    pub body: PromptBody,
    /// The tokens of the whole prompt.
    pub tokens: u32,
    /// The layers of the prompt, in their order.
    pub layers: Vec<Layer>,
    /// The cuts that the budget required, in the order in which they were made.
    pub cut: Vec<Cut>,
}

/// The text or the messages of a prompt.
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

/// The share of one layer in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// The layer, by the name of its tag.
    pub name: String,
    /// Its tokens.
    pub tokens: u32,
}

/// A cut that the budget required.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// The layer, by the name of its tag.
    pub layer: String,
    /// The number of things that were cut; 0 if they are not counted.
    pub count: usize,
    /// The things that were cut, and where they went.
    pub what: String,
}

/// Adds to a layer's cut.
fn note_cut(cut: &mut Vec<Cut>, layer: &str, count: usize, what: &str) {
    match cut.iter_mut().find(|cut| cut.layer == layer) {
        Some(cut) => {
            cut.count += count;
            what.clone_into(&mut cut.what);
        }
        None => cut.push(Cut { layer: layer.to_owned(), count, what: what.to_owned() }),
    }
}

/// Replaces a layer's cut.
fn replace_cut(cut: &mut Vec<Cut>, layer: &str, what: &str) {
    cut.retain(|cut| cut.layer != layer);
    cut.push(Cut { layer: layer.to_owned(), count: 0, what: what.to_owned() });
}

/// The replacement of the turns that a prompt no longer shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum History {
    /// As many of the last turns as the budget has room for, and before them the rolling summary with the summaries that
    /// a model wrote.
    #[default]
    Auto,
    /// The rolling summary, and the number of recent exchanges that the settings name (layered-prompt design).
    Rolling,
    /// The summary of the window and the turns after it (sliding-window design).
    Window,
    /// The root of the tree and the turns after it (memory-proxy design).
    Tree,
}

/// The form of a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<PromptFormat>)]
pub enum PromptFormat {
    /// One text, with the request first (layered-prompt design).
    #[default]
    Flat,
    /// A list of messages, with the memory in the user's last message (memory-proxy design).
    Chat,
}

impl Named for PromptFormat {
    const WHAT: &'static str = "format";
}

/// The label of a speaker in a prompt.
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
