//! The chat renderer: messages for a chat model, whose beginning stays byte for byte what it was.
//!
//! Recollection goes in front of the last of the user's messages, in a block of its own ([`OPEN`] … [`CLOSE`]): everything
//! before that message is untouched, so that a provider's cache of the prompt goes on working, and a block that comes back
//! is recognised ([`strip_injected`]) and never recorded or learned from. Within the block stand what is known, the
//! summary, then what was recalled as `[role] content` (document 4), and after it what the user said.
//!
//! When the budget does not hold all they give way in this order: the oldest messages, by whole steps, so that the
//! beginning changes seldom; the summary; the memories, least relevant first; what is known. The last of the user's
//! messages never does.

use super::extract::Rules;
use super::layers::{Context, layer, plain};
use super::summary::condense;
use super::{Cut, Layer, Prompt, PromptBody, PromptSettings, count_all, note_cut, replace_cut};
use crate::recall::RecalledItem;
use strata_core::ports::{ChatMessage, TokenCounter};
use strata_core::state::State;
use strata_core::store::Item;
use strata_core::turn::Role;

/// Where injected memory begins.
pub(crate) const OPEN: &str = "<strata_memory>";

/// Where injected memory ends.
pub(crate) const CLOSE: &str = "</strata_memory>";

/// What the model is told of the block.
const ABOUT: &str =
    "Remembered by Strata from earlier turns. It was not said in this message; use it if it helps.";

/// The tokens that a message takes beside its content, as OpenAI counts them.
const MESSAGE_TOKENS: u32 = 4;

/// A summary with fewer characters than this is left out rather than shortened.
const MIN_SUMMARY_CHARS: usize = 100;

/// What a chat is made of.
#[derive(Debug, Clone, Copy)]
pub struct ChatLayers<'a> {
    /// The client's messages, the current request last. They are passed on as they are.
    pub messages: &'a [ChatMessage],
    /// What is known.
    pub state: &'a State,
    /// What was said before `messages`.
    pub summary: &'a str,
    /// What was recalled, best first.
    pub memories: &'a [RecalledItem],
    /// The most tokens; `None` leaves the client's messages to the client and the block to recall's own budget.
    pub max_tokens: Option<u32>,
}

/// Renders the layers within the budget. Without a message of the user's, nothing is injected.
pub fn chat(
    layers: ChatLayers<'_>,
    rules: &Rules,
    settings: &PromptSettings,
    tokens: &dyn TokenCounter,
) -> Prompt {
    let mut draft = ChatDraft::new(layers, rules, settings.fold_step.max(1), tokens);
    let mut cut = Vec::new();
    if let Some(most) = layers.max_tokens {
        while draft.total() > most && draft.cut_next(&mut cut, tokens) {}
    }
    Prompt { tokens: draft.total(), layers: draft.layers(tokens), body: draft.body(), cut }
}

/// The block that [`chat`] puts in front of the last of the user's messages, for a client whose messages are not plain
/// texts; `None` where there is nothing to remember.
pub(crate) fn memory_block(
    state: &State,
    summary: &str,
    memories: &[RecalledItem],
    rules: &Rules,
) -> Option<String> {
    let layers = ChatLayers { messages: &[], state, summary, memories, max_tokens: None };
    block(&Recollection::new(layers, rules))
}

/// A text without the blocks that Strata injected. A block that does not end is somebody's own words and stays.
pub fn strip_injected(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains(OPEN) {
        return text.into();
    }
    let mut left = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, block)) = rest.split_once(OPEN) {
        let Some((_, after)) = block.split_once(CLOSE) else { break };
        left.push_str(before);
        rest = after.strip_prefix("\n\n").unwrap_or(after);
    }
    left.push_str(rest);
    left.into()
}

/// What the block holds.
struct Recollection {
    contexts: Vec<Context>,
    summary: String,
    /// Best first.
    memories: Vec<String>,
}

impl Recollection {
    fn new(layers: ChatLayers<'_>, rules: &Rules) -> Self {
        Self {
            contexts: Context::all(rules, layers.state),
            summary: plain(layers.summary),
            memories: layers.memories.iter().map(recalled_line).collect(),
        }
    }
}

/// A recalled item as document 4 shows it: `[role] content`.
fn recalled_line(recalled: &RecalledItem) -> String {
    let role = match &recalled.item {
        Item::Turn(turn) => turn.role.as_str(),
        Item::Memory(_) => "memory",
        Item::Summary(_) => "summary",
    };
    let content = recalled.shortened.as_deref().unwrap_or_else(|| recalled.item.content());
    format!("[{role}] {}", plain(content.trim()))
}

fn block(memory: &Recollection) -> Option<String> {
    let mut parts = Vec::new();
    for context in &memory.contexts {
        parts.push(format!("<{0}>\n{1}\n</{0}>", context.tag, context.text()));
    }
    if !memory.summary.is_empty() {
        parts.push(format!("<conversation_summary>\n{}\n</conversation_summary>", memory.summary));
    }
    if !memory.memories.is_empty() {
        parts.push(memory.memories.join("\n"));
    }
    (!parts.is_empty()).then(|| format!("{OPEN}\n{ABOUT}\n\n{}\n{CLOSE}", parts.join("\n\n")))
}

/// A chat in the making.
struct ChatDraft<'a> {
    messages: &'a [ChatMessage],
    counts: Vec<u32>,
    /// Instructions at the beginning, which stay.
    instructions: usize,
    /// How many messages after the instructions are left out.
    dropped: usize,
    /// The last of the user's messages.
    last: Option<usize>,
    step: usize,
    memory: Recollection,
    block: Option<String>,
    block_tokens: u32,
}

impl<'a> ChatDraft<'a> {
    fn new(layers: ChatLayers<'a>, rules: &Rules, step: usize, tokens: &dyn TokenCounter) -> Self {
        let messages = layers.messages;
        let last = messages.iter().rposition(|message| message.role == Role::User);
        let count = |message: &ChatMessage| tokens.count(&message.content).saturating_add(MESSAGE_TOKENS);
        let mut draft = Self {
            messages,
            counts: messages.iter().map(count).collect(),
            instructions: messages.iter().take_while(|message| message.role == Role::System).count(),
            dropped: 0,
            last,
            step,
            memory: Recollection::new(layers, rules),
            block: None,
            block_tokens: 0,
        };
        draft.write_block(tokens);
        draft
    }

    fn write_block(&mut self, tokens: &dyn TokenCounter) {
        self.block = if self.last.is_some() { block(&self.memory) } else { None };
        self.block_tokens = self.block.as_deref().map_or(0, |block| tokens.count(block) + 1);
    }

    /// The places of the messages that are passed on.
    fn shown(&self) -> impl Iterator<Item = usize> + '_ {
        let first = self.instructions + self.dropped;
        (0..self.instructions).chain(first..self.messages.len())
    }

    fn total(&self) -> u32 {
        self.shown().fold(self.block_tokens, |sum, place| sum.saturating_add(self.counts[place]))
    }

    /// Lets the next thing give way. Says whether there was one.
    fn cut_next(&mut self, cut: &mut Vec<Cut>, tokens: &dyn TokenCounter) -> bool {
        let droppable = self.last.map_or(0, |last| last.saturating_sub(self.instructions));
        if self.dropped < droppable {
            let before = self.dropped;
            self.dropped = (self.dropped + self.step).min(droppable);
            note_cut(cut, "messages", self.dropped - before, "oldest messages");
            return true;
        }
        if !self.memory.summary.is_empty() {
            let shorter = condense(&self.memory.summary, self.memory.summary.chars().count() / 2);
            let is_short = shorter.chars().count() < MIN_SUMMARY_CHARS;
            self.memory.summary = if is_short { String::new() } else { shorter };
            replace_cut(cut, "conversation_summary", if is_short { "all of it" } else { "its oldest parts" });
        } else if self.memory.memories.pop().is_some() {
            note_cut(cut, "memories", 1, "least relevant memories");
        } else if let Some(gone) =
            self.memory.contexts.last_mut().map(Context::shorten).filter(|gone| *gone > 0)
        {
            let name = self.memory.contexts.last().map(|context| context.tag.clone()).unwrap_or_default();
            note_cut(cut, &name, gone, "oldest items");
        } else if let Some(context) = self.memory.contexts.pop() {
            replace_cut(cut, &context.tag, "all of it");
        } else {
            return false;
        }
        self.write_block(tokens);
        true
    }

    fn layers(&self, tokens: &dyn TokenCounter) -> Vec<Layer> {
        let before = self.shown().filter(|place| Some(*place) != self.last);
        let before = before.fold(0, |sum: u32, place| sum.saturating_add(self.counts[place]));
        let question = self.last.map_or(0, |last| self.counts[last]);
        let mut layers = vec![layer("messages", before)];
        if self.block.is_some() {
            let contexts = self.memory.contexts.iter();
            layers.extend(contexts.map(|context| layer(context.tag.clone(), tokens.count(&context.text()))));
            layers.push(layer("conversation_summary", tokens.count(&self.memory.summary)));
            let memories = self.memory.memories.iter().map(String::as_str);
            layers.push(layer("memories", count_all(memories, tokens)));
        }
        layers.push(layer("question", question));
        layers.into_iter().flatten().collect()
    }

    fn body(&self) -> PromptBody {
        let messages = self.shown().map(|place| {
            let ChatMessage { role, content } = &self.messages[place];
            let content = match &self.block {
                Some(block) if Some(place) == self.last => format!("{block}\n\n{content}"),
                _ => content.clone(),
            };
            ChatMessage { role: *role, content }
        });
        PromptBody::Messages(messages.collect())
    }
}
