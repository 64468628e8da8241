//! The flat renderer: one text in the «Prompt Output Format» of the layered-prompt design. Messages whose time is known
//! begin with their day and speaker; for all others it is that format byte for byte.
//!
//! If the budget is too small, the layers are cut in this order: the oldest recent messages, which move into the
//! summary, down to the last exchange; the oldest parts of the summary, then all of it; the oldest items of the
//! profiles' fields, down to three per list; the last exchange; the profiles' fields. The question is never cut and does
//! not count.

use super::covered::summary_before;
use super::extract::Rules;
use super::layers::{Context, device_address, layer, recent_start};
use super::summary::{build_summary_with, condense, neutral_summary};
use super::{
    Cut, Message, Prompt, PromptBody, PromptSettings, count_all, filter_content_with, is_device, note_cut,
    replace_cut,
};
use crate::neutral::{neutral, neutral_tags};
use strata_core::ports::{EstimatedTokens, TokenCounter};
use strata_core::state::State;
use strata_core::turn::Role;

/// The number of messages in the last exchange, which stays while anything older can be cut.
const LAST_EXCHANGE: usize = 2;

/// The layers of a flat prompt.
#[derive(Debug, Clone, Copy)]
pub struct FlatLayers<'a> {
    /// The current request.
    pub question: &'a str,
    /// The state, which holds the profiles' fields.
    pub state: &'a State,
    /// The summary of the turns before `recent`.
    pub summary: &'a str,
    /// The recent messages, oldest first and unfiltered.
    pub recent: &'a [Message],
    /// Whether the request is about a device. Then a note tells the model to use the known findings.
    pub is_device: bool,
}

/// A prompt, and the summary to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltPrompt {
    /// The prompt.
    pub prompt: Prompt,
    /// The summary, with the messages that left the recent ones.
    pub summary: String,
    /// The number of messages, from the first, that the summary now covers.
    pub evicted: usize,
}

/// The `build_prompt` of the layered-prompt design. `messages` is the whole conversation, and `summary` is the one that
/// the previous call returned. Messages before the recent exchanges are in the summary, each once. If the current
/// question is the last message, it is shown once. Tokens are estimated.
///
/// A program may also pass only the messages that the summary does not cover.
pub fn build_prompt(
    question: &str,
    messages: &[Message],
    state: &State,
    summary: &str,
    is_device: bool,
) -> BuiltPrompt {
    let settings = PromptSettings::default();
    let messages = before_question(question, messages);
    let evicted = recent_start(messages, settings.recent_exchanges);
    let summary = summary_before(summary, messages, evicted, &settings);
    let layers = FlatLayers { question, state, summary: &summary, recent: &messages[evicted..], is_device };
    let prompt = flat(layers, Rules::built_in(), &settings, &EstimatedTokens);
    BuiltPrompt { prompt, summary, evicted }
}

/// The messages without the last one, if the question says it already.
fn before_question<'a>(question: &str, messages: &'a [Message]) -> &'a [Message] {
    let asks = |message: &Message| message.role == Role::User && question.contains(message.content.trim());
    match messages.split_last() {
        Some((last, before)) if asks(last) => before,
        _ => messages,
    }
}

/// Like [`build_prompt`], with custom settings, for messages that the summary does not cover.
pub fn build_prompt_with(
    layers: FlatLayers<'_>,
    rules: &Rules,
    settings: &PromptSettings,
    tokens: &dyn TokenCounter,
) -> BuiltPrompt {
    let evicted = recent_start(layers.recent, settings.recent_exchanges);
    let (leaving, recent) = layers.recent.split_at(evicted);
    let summary = build_summary_with(layers.summary, leaving, 0, &settings.filter, &settings.summary);
    let prompt = flat(FlatLayers { summary: &summary, recent, ..layers }, rules, settings, tokens);
    BuiltPrompt { prompt, summary, evicted }
}

/// Renders the layers, with all of `recent`, within the budget.
pub fn flat(
    layers: FlatLayers<'_>,
    rules: &Rules,
    settings: &PromptSettings,
    tokens: &dyn TokenCounter,
) -> Prompt {
    within(FlatDraft::new(layers, rules, settings, tokens), Vec::new())
}

/// Like [`flat`], for recent messages that were chosen to fill their share of the budget: the known facts and the summary
/// are shortened before any of these messages is.
pub(crate) fn flat_filled(
    layers: FlatLayers<'_>,
    rules: &Rules,
    settings: &PromptSettings,
    tokens: &dyn TokenCounter,
) -> Prompt {
    let mut draft = FlatDraft::new(layers, rules, settings, tokens);
    let mut cut = Vec::new();
    draft.divide(&mut cut);
    draft.summary_first = true;
    within(draft, cut)
}

/// Cuts a prompt until it fits the budget.
fn within(mut draft: FlatDraft<'_>, mut cut: Vec<Cut>) -> Prompt {
    let (settings, tokens) = (draft.settings, draft.tokens);
    // Tokens are counted part by part while layers are cut. The joined text may have a few more tokens; then more is
    // cut.
    // The question is no part of the budget: a long one would cut every layer.
    let most = settings.max_tokens.saturating_add(draft.question_tokens);
    let mut aim = most;
    loop {
        if draft.summary_first && draft.tokens() > aim {
            // Each message that is folded into the summary would be counted with the whole summary.
            let room = draft.summary.1.saturating_sub(draft.tokens() - aim);
            draft.shorten_summary(room, &mut cut);
        }
        while draft.tokens() > aim && draft.cut_next(&mut cut) {}
        let text = draft.text();
        let total = tokens.count(&text);
        if total <= most || draft.is_bare() {
            return Prompt { body: PromptBody::Text(text), tokens: total, layers: draft.layers(), cut };
        }
        aim = draft.tokens().min(aim).saturating_sub(total - most);
    }
}

/// A flat prompt that is still being cut.
struct FlatDraft<'a> {
    question: String,
    question_tokens: u32,
    contexts: Vec<(Context, u32)>,
    notes: Vec<(String, u32)>,
    summary: (String, u32),
    recent: Vec<RecentLine<'a>>,
    settings: &'a PromptSettings,
    tokens: &'a dyn TokenCounter,
    /// Whether the summary is cut before messages are.
    summary_first: bool,
}

/// A recent message as rendered.
struct RecentLine<'a> {
    text: String,
    tokens: u32,
    message: &'a Message,
}

impl<'a> FlatDraft<'a> {
    fn new(
        layers: FlatLayers<'a>,
        rules: &Rules,
        settings: &'a PromptSettings,
        tokens: &'a dyn TokenCounter,
    ) -> Self {
        let FlatLayers { question, state, summary, recent: messages, is_device } = layers;
        let question = enriched(question, state, settings);
        let contexts: Vec<_> = Context::all(rules, state).into_iter().map(|c| counted(c, tokens)).collect();
        let about = |context: &Context| is_device || context.tag != "diagnostic_context";
        let mut notes: Vec<_> = contexts
            .iter()
            .filter(|(context, _)| about(context))
            .filter_map(|(c, _)| c.note.clone())
            .collect();
        if notes.is_empty() && is_device && !summary.is_empty() {
            notes.extend(rules.profiles().find(|p| p.name == "diagnostic").and_then(|p| p.note.clone()));
        }
        let notes = notes.into_iter().map(|note| {
            let note = format!("<note>{note}</note>");
            let count = tokens.count(&note) + 1;
            (note, count)
        });
        let recent = messages.iter().filter_map(|message| {
            let content = filter_content_with(&message.content, &settings.filter);
            let text = format!("{} {}", neutral_tags(&message.head()), neutral(content.trim_end()));
            let tokens = tokens.count(&text) + 1;
            (!content.trim().is_empty()).then_some(RecentLine { text, tokens, message })
        });
        Self {
            question_tokens: tokens.count(&question),
            question,
            contexts,
            notes: notes.collect(),
            summary: counted_summary(neutral_summary(summary), tokens),
            recent: recent.collect(),
            settings,
            tokens,
            summary_first: false,
        }
    }

    fn tokens(&self) -> u32 {
        let parts = self.contexts.iter().map(|(_, count)| *count);
        let parts = parts.chain(self.notes.iter().map(|(_, count)| *count));
        let parts = parts.chain([self.question_tokens, self.summary.1, self.recent_tokens()]);
        parts.fold(0, u32::saturating_add)
    }

    fn recent_tokens(&self) -> u32 {
        let tags = if self.recent.is_empty() { 0 } else { self.tokens.count(RECENT_TAGS) };
        self.recent.iter().fold(tags, |sum, line| sum.saturating_add(line.tokens))
    }

    /// Whether nothing is left to cut.
    fn is_bare(&self) -> bool {
        self.contexts.is_empty()
            && self.notes.is_empty()
            && self.summary.0.is_empty()
            && self.recent.is_empty()
    }

    /// Gives the known facts a quarter of the budget and the summary the rest, if the prompt is too long. If there is no
    /// summary, the messages are the whole conversation, which says more than the known facts: these get the rest.
    fn divide(&mut self, cut: &mut Vec<Cut>) {
        let most = self.settings.max_tokens.saturating_add(self.question_tokens);
        if self.tokens() <= most {
            return;
        }
        let is_whole = self.summary.0.is_empty();
        let rest = most.saturating_sub(self.tokens() - self.context_tokens());
        let for_contexts = if is_whole { rest } else { self.settings.max_tokens / CONTEXT_SHARE };
        while self.context_tokens() > for_contexts {
            let Some((name, gone)) = self.shorten_context() else { break };
            note_cut(cut, &name, gone, "oldest items");
        }
        while is_whole && self.context_tokens() > for_contexts {
            let Some((context, _)) = self.contexts.pop() else { break };
            replace_cut(cut, &context.tag, ALL);
        }
        let room = most.saturating_sub(self.tokens() - self.summary.1);
        self.shorten_summary(room, cut);
    }

    fn context_tokens(&self) -> u32 {
        self.contexts.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Condenses the summary to this many tokens.
    fn shorten_summary(&mut self, room: u32, cut: &mut Vec<Cut>) {
        while self.summary.1 > room {
            let chars = self.summary.0.chars().count();
            // The limit shrinks in proportion to the excess, and by at least a fiftieth, so that the loop ends.
            let fitting = chars as u64 * u64::from(room) / u64::from(self.summary.1);
            let most = (chars * 49 / 50).min(usize::try_from(fitting).unwrap_or(usize::MAX));
            let shorter = condense(&self.summary.0, most);
            let is_short =
                shorter.chars().count() < MIN_SUMMARY_CHARS || shorter.len() >= self.summary.0.len();
            let shorter = if is_short { String::new() } else { shorter };
            let what = if shorter.is_empty() { ALL } else { LEAST };
            replace_cut(cut, "conversation_summary", what);
            self.summary = counted_summary(shorter, self.tokens);
        }
    }

    /// Makes the next cut. Returns whether there was anything to cut.
    fn cut_next(&mut self, cut: &mut Vec<Cut>) -> bool {
        if self.recent.len() > LAST_EXCHANGE {
            self.fold_oldest();
            note_cut(cut, "recent_conversation", 1, "oldest messages, which went into the summary");
        } else if !self.summary.0.is_empty() {
            let shorter = condense(&self.summary.0, self.summary.0.chars().count() / 2);
            // A summary below this length holds no useful entry.
            let shorter = if shorter.chars().count() < MIN_SUMMARY_CHARS { String::new() } else { shorter };
            let what = if shorter.is_empty() { ALL } else { LEAST };
            replace_cut(cut, "conversation_summary", what);
            self.summary = counted_summary(shorter, self.tokens);
        } else if let Some((name, gone)) = self.shorten_context() {
            note_cut(cut, &name, gone, "oldest items");
        } else if !self.recent.is_empty() {
            self.recent.remove(0);
            note_cut(cut, "recent_conversation", 1, "messages");
        } else if let Some((context, _)) = self.contexts.pop() {
            replace_cut(cut, &context.tag, ALL);
        } else if self.notes.pop().is_some() {
            replace_cut(cut, "note", ALL);
        } else {
            return false;
        }
        true
    }

    /// Moves the oldest recent message into the summary.
    fn fold_oldest(&mut self) {
        let oldest = self.recent.remove(0);
        let (filter, settings) = (&self.settings.filter, &self.settings.summary);
        let oldest = std::slice::from_ref(oldest.message);
        let summary = build_summary_with(&self.summary.0, oldest, 0, filter, settings);
        self.summary = counted_summary(neutral_summary(&summary), self.tokens);
    }

    fn shorten_context(&mut self) -> Option<(String, usize)> {
        let tokens = self.tokens;
        self.contexts.iter_mut().rev().find_map(|(context, count)| {
            let gone = context.shorten();
            *count = counted(context.clone(), tokens).1;
            (gone > 0).then(|| (context.tag.clone(), gone))
        })
    }

    fn text(&self) -> String {
        let mut text = self.question.clone();
        for (context, _) in &self.contexts {
            text.push_str(&format!("\n\n<{0}>\n{1}\n</{0}>", context.tag, context.text()));
        }
        for (note, _) in &self.notes {
            text.push_str("\n\n");
            text.push_str(note);
        }
        if !self.summary.0.is_empty() {
            text.push_str(&format!(
                "\n\n<conversation_summary>\n{}\n</conversation_summary>",
                self.summary.0
            ));
        }
        if !self.recent.is_empty() {
            text.push_str("\n\n<recent_conversation>");
            for line in &self.recent {
                text.push('\n');
                text.push_str(&line.text);
            }
            text.push_str("\n</recent_conversation>");
        }
        text
    }

    fn layers(&self) -> Vec<super::Layer> {
        let contexts = self.contexts.iter().map(|(context, count)| layer(context.tag.clone(), *count));
        let notes = count_all(self.notes.iter().map(|(note, _)| note.as_str()), self.tokens);
        let layers = [layer("question", self.question_tokens)].into_iter().chain(contexts);
        let rest = [
            layer("note", notes),
            layer("conversation_summary", self.summary.1),
            layer("recent_conversation", self.recent_tokens()),
        ];
        layers.chain(rest).flatten().collect()
    }
}

const RECENT_TAGS: &str = "\n\n<recent_conversation>\n\n</recent_conversation>";
const SUMMARY_TAGS: &str = "\n\n<conversation_summary>\n\n</conversation_summary>";

const ALL: &str = "all of it";

/// The parts that condensing takes out of a summary.
const LEAST: &str = "its oldest parts";

/// The share of the budget for the known facts, if the prompt is too long: a quarter.
const CONTEXT_SHARE: u32 = 4;

/// A shorter summary is left out.
const MIN_SUMMARY_CHARS: usize = 100;

fn counted(context: Context, tokens: &dyn TokenCounter) -> (Context, u32) {
    let count = tokens.count(&format!("\n\n<{0}>\n{1}\n</{0}>", context.tag, context.text()));
    (context, count)
}

fn counted_summary(summary: String, tokens: &dyn TokenCounter) -> (String, u32) {
    let count = if summary.is_empty() { 0 } else { count_all([summary.as_str(), SUMMARY_TAGS], tokens) };
    (summary, count)
}

/// The question, or the enriched question if it names a device and the settings have a template.
fn enriched(question: &str, state: &State, settings: &PromptSettings) -> String {
    match (&settings.enrichment, device_address(question)) {
        (Some(template), Some(address)) => {
            let name = state.diagnostic.device_name.as_deref().unwrap_or(address);
            // The question is inserted last, so that placeholders inside it are not replaced.
            let template = template.replace("{device_ip}", address).replace("{device_name}", name);
            template.replace("{question}", question)
        }
        _ => question.to_owned(),
    }
}

/// Whether a prompt needs the note about devices: the request or the session is about one.
pub(crate) fn speaks_of_device(question: &str, state: &State) -> bool {
    is_device(question) || state.diagnostic.device_ip.is_some() || state.diagnostic.device_name.is_some()
}
