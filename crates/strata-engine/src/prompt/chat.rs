//! The chat renderer: messages for a chat model, whose beginning stays the same byte for byte.
//!
//! The memory goes in front of the user's last message, in a block of its own ([`OPEN`] … [`CLOSE`]). All messages
//! before it stay unchanged, so that the provider's prompt cache keeps working. A block that comes back is recognised
//! ([`strip_injected`]), and is never recorded or learned from. The block holds the profiles' fields, the summary, and
//! the recalled items, each with its day and speaker ([`crate::line`]). The user's own text follows the block.
//!
//! If the budget is too small, the layers are cut in this order: the oldest messages, in whole steps, so that the
//! beginning changes seldom; the summary; the memories, least relevant first; the profiles' fields. The user's last
//! message is never cut and does not count.

use super::extract::Rules;
use super::layers::{Context, layer};
use super::summary::{condense, neutral_summary};
use super::{Cut, Layer, Prompt, PromptBody, PromptSettings, count_all, note_cut, replace_cut};
use crate::line::{Days, is_chinese, item_line};
use crate::recall::RecalledItem;
use jiff::Timestamp;
use strata_core::ports::{ChatMessage, TokenCounter};
use strata_core::state::State;
use strata_core::turn::Role;

/// The beginning of an injected block.
pub(crate) const OPEN: &str = "<strata_memory>";

/// The end of an injected block.
pub(crate) const CLOSE: &str = "</strata_memory>";

/// Explains the block to the model.
const ABOUT: &str = "Remembered by Strata from earlier turns, with days in UTC. It was not said in this message; use it if it helps.";

/// The tokens of a message beside its content, as OpenAI counts them.
const MESSAGE_TOKENS: u32 = 4;

/// The tokens of the block beside its parts: tags, and the sentence that explains it.
const BLOCK_TOKENS: u32 = 80;

/// The share of the budget for the known facts, and for recalled items, if a chat is too long: a quarter each.
const SHARE: u32 = 4;

/// A shorter summary is left out.
const MIN_SUMMARY_CHARS: usize = 100;

/// The layers of a chat.
#[derive(Debug, Clone, Copy)]
pub struct ChatLayers<'a> {
    /// The client's messages, with the current request last. They are passed on unchanged.
    pub messages: &'a [ChatMessage],
    /// The state, which holds the profiles' fields.
    pub state: &'a State,
    /// The summary of the turns before `messages`.
    pub summary: &'a str,
    /// The recalled items, best first.
    pub memories: &'a [RecalledItem],
    /// The most tokens, without the request's. With `None` the client's messages are not cut, and recall's own budget limits the block.
    pub max_tokens: Option<u32>,
    /// The moment of the request. With it, recalled turns show how long ago they were said, beside their day.
    pub now: Option<Timestamp>,
}

/// Renders the layers within the budget. If there is no message of the user, nothing is injected.
pub fn chat(
    layers: ChatLayers<'_>,
    rules: &Rules,
    settings: &PromptSettings,
    tokens: &dyn TokenCounter,
) -> Prompt {
    within(layers, ChatDraft::new(layers, rules, settings.fold_step.max(1), tokens), Vec::new(), tokens)
}

/// Like [`chat`], for messages that were chosen to fill their share of the budget: the memory is shortened before any of
/// these messages is dropped.
pub(crate) fn chat_filled(
    layers: ChatLayers<'_>,
    rules: &Rules,
    settings: &PromptSettings,
    tokens: &dyn TokenCounter,
) -> Prompt {
    let mut draft = ChatDraft::new(layers, rules, settings.fold_step.max(1), tokens);
    let mut cut = Vec::new();
    if let Some(most) = layers.max_tokens {
        draft.divide(most, &mut cut, tokens);
    }
    within(layers, draft, cut, tokens)
}

/// Cuts a chat until it fits the budget.
fn within(
    layers: ChatLayers<'_>,
    mut draft: ChatDraft<'_>,
    mut cut: Vec<Cut>,
    tokens: &dyn TokenCounter,
) -> Prompt {
    if let Some(most) = layers.max_tokens {
        while draft.beside_question() > most && draft.cut_next(&mut cut, tokens) {}
    }
    Prompt { tokens: draft.total(), layers: draft.layers(tokens), body: draft.body(), cut }
}

/// The block that [`chat`] puts in front of the user's last message, for a client whose messages are not plain text;
/// `None` if there is nothing to inject.
pub(crate) fn memory_block(
    state: &State,
    summary: &str,
    memories: &[RecalledItem],
    rules: &Rules,
) -> Option<String> {
    let layers = ChatLayers { messages: &[], state, summary, memories, max_tokens: None, now: None };
    block(&Recollection::new(layers, rules))
}

/// Removes the blocks that Strata injected. A block without an end is the user's own text and stays.
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

/// The content of the block.
struct Recollection {
    contexts: Vec<Context>,
    summary: String,
    /// Best first.
    memories: Vec<String>,
}

impl Recollection {
    fn new(layers: ChatLayers<'_>, rules: &Rules) -> Self {
        let question = layers.messages.iter().rfind(|message| message.role == Role::User);
        let days = match layers.now {
            Some(now) => Days::Relative {
                now,
                is_chinese: is_chinese(question.map(|question| question.content.as_str()).into_iter()),
            },
            None => Days::Absolute,
        };
        let line = |recalled: &RecalledItem| {
            let content = recalled.shortened.as_deref().unwrap_or_else(|| recalled.item.content());
            item_line(&recalled.item, content.trim(), days)
        };
        Self {
            contexts: Context::all(rules, layers.state),
            summary: neutral_summary(layers.summary),
            memories: layers.memories.iter().map(line).collect(),
        }
    }
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

/// A chat that is still being cut.
struct ChatDraft<'a> {
    messages: &'a [ChatMessage],
    counts: Vec<u32>,
    /// The number of system messages at the beginning, which stay.
    instructions: usize,
    /// The number of messages after the instructions that are left out.
    dropped: usize,
    /// The index of the user's last message.
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

    /// The indexes of the messages that are passed on.
    fn shown(&self) -> impl Iterator<Item = usize> + '_ {
        let first = self.instructions + self.dropped;
        (0..self.instructions).chain(first..self.messages.len())
    }

    fn total(&self) -> u32 {
        self.shown().fold(self.block_tokens, |sum, place| sum.saturating_add(self.counts[place]))
    }

    /// The tokens that count against the budget: all but the question's.
    fn beside_question(&self) -> u32 {
        self.total().saturating_sub(self.last.map_or(0, |last| self.counts[last]))
    }

    /// Shortens the memory to the room beside the messages: the known facts and the recalled items to a quarter of the
    /// budget each, and the summary to the rest. If there is no summary, the messages are the whole conversation, and
    /// facts and items share the room beside it.
    fn divide(&mut self, most: u32, cut: &mut Vec<Cut>, tokens: &dyn TokenCounter) {
        if self.beside_question() <= most {
            return;
        }
        let messages = self.beside_question().saturating_sub(self.block_tokens);
        let room = most.saturating_sub(messages).saturating_sub(BLOCK_TOKENS);
        let share = if self.memory.summary.is_empty() { room / 2 } else { room.min(most / SHARE) };
        let contexts = |memory: &Recollection| {
            count_all(
                memory.contexts.iter().map(Context::text).collect::<Vec<_>>().iter().map(String::as_str),
                tokens,
            )
        };
        while contexts(&self.memory) > share {
            let Some(context) = self.memory.contexts.last_mut() else { break };
            let (tag, gone) = (context.tag.clone(), context.shorten());
            if gone > 0 {
                note_cut(cut, &tag, gone, "oldest items");
            } else {
                self.memory.contexts.pop();
                replace_cut(cut, &tag, "all of it");
            }
        }
        let memories = |memory: &Recollection| count_all(memory.memories.iter().map(String::as_str), tokens);
        while memories(&self.memory) > share && self.memory.memories.pop().is_some() {
            note_cut(cut, "memories", 1, "least relevant memories");
        }
        let left = room.saturating_sub(contexts(&self.memory)).saturating_sub(memories(&self.memory));
        let summary = tokens.count(&self.memory.summary);
        if summary > left {
            let chars = self.memory.summary.chars().count() as u64 * u64::from(left) / u64::from(summary);
            let shorter = condense(&self.memory.summary, usize::try_from(chars).unwrap_or(usize::MAX));
            let is_short = shorter.chars().count() < MIN_SUMMARY_CHARS;
            self.memory.summary = if is_short { String::new() } else { shorter };
            replace_cut(cut, "conversation_summary", if is_short { "all of it" } else { "its oldest parts" });
        }
        self.write_block(tokens);
    }

    /// Makes the next cut. Returns whether there was anything to cut.
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
