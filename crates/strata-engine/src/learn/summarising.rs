//! How summaries are made, and what a model is asked for one.
//!
//! Instructions are the texts in `learn/prompts/summary`, which a user may replace; what was said follows them in a message of
//! its own, as JSON lines where it has parts, so that nothing a user said can pass for an instruction's end.

use serde_json::json;

use super::structured::Answered;
use super::tree::ContentType;
use super::window::{Window, WindowSettings};
use crate::prompt::{FilterSettings, filter_content_with};
use strata_core::error::{Error, Result};
use strata_core::ports::{ChatMessage, ChatRequest};
use strata_core::turn::{Role, Turn};
use strata_language::sentences::beginning;

/// The most characters of a message that has left the window, in the list of those: enough to know what it was about.
const LEFT_CHARS: usize = 100;

/// How summaries are made.
#[derive(Debug, Clone, PartialEq)]
pub struct SummarySettings {
    /// Whether sessions are summarised behind the conversation (document 4: they are). Summaries that exist are read in any
    /// case.
    pub enable_summarization: bool,
    /// When, and over how many turns.
    pub window: WindowSettings,
    /// Instructions of one's own.
    pub prompts: SummaryPrompts,
}

impl Default for SummarySettings {
    fn default() -> Self {
        Self {
            enable_summarization: true,
            window: WindowSettings::default(),
            prompts: SummaryPrompts::default(),
        }
    }
}

/// What a model is asked to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum SummaryPrompt {
    /// The sliding window, with its parts.
    Window,
    /// A sentence.
    Brief,
    /// A paragraph.
    Standard,
    /// One chunk of a long text.
    Chunk,
    /// One account from several summaries.
    Meta,
    /// A summary with what has come since.
    Rolling,
}

impl SummaryPrompt {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Window, Self::Brief, Self::Standard, Self::Chunk, Self::Meta, Self::Rolling];

    /// The name in settings.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The built-in instructions.
    pub fn built_in(self) -> &'static str {
        match self {
            Self::Window => include_str!("prompts/summary/window.txt"),
            Self::Brief => include_str!("prompts/summary/brief.txt"),
            Self::Standard => include_str!("prompts/summary/standard.txt"),
            Self::Chunk => include_str!("prompts/summary/chunk.txt"),
            Self::Meta => include_str!("prompts/summary/meta.txt"),
            Self::Rolling => include_str!("prompts/summary/rolling.txt"),
        }
    }
}

/// Instructions of one's own, each instead of the built-in one. `{words}` is replaced by the length that is wanted,
/// `{content}` by what the kind of text asks for, `{start}` by the window's beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryPrompts {
    given: Vec<(SummaryPrompt, String)>,
}

impl SummaryPrompts {
    /// With these instructions for a prompt.
    #[must_use]
    pub fn with(mut self, prompt: SummaryPrompt, instructions: impl Into<String>) -> Self {
        self.given.retain(|(known, _)| *known != prompt);
        self.given.push((prompt, instructions.into()));
        self
    }

    fn text(&self, prompt: SummaryPrompt) -> &str {
        let given = self.given.iter().find(|(known, _)| *known == prompt);
        given.map_or_else(|| prompt.built_in(), |(_, text)| text).trim()
    }
}

/// What a kind of text asks for.
fn variant(content: ContentType) -> &'static str {
    let text = match content {
        ContentType::Conversation => include_str!("prompts/summary/conversation.txt"),
        ContentType::Journal => include_str!("prompts/summary/journal.txt"),
        ContentType::Document => include_str!("prompts/summary/document.txt"),
    };
    text.trim()
}

/// What a window's summary is made of.
#[derive(Debug, Clone, Copy)]
pub struct WindowQuestion<'a> {
    /// The text of the version before, where it still says something of the window.
    pub previous: Option<&'a str>,
    /// Its todos.
    pub todos: &'a [&'a str],
    /// Turns that it speaks of and that have left the window.
    pub left: &'a [&'a Turn],
    /// The turns that are new.
    pub new: &'a [&'a Turn],
    /// The window.
    pub window: Window,
    /// How many tokens the summary should have.
    pub target: u32,
    /// The most characters of a message.
    pub max_message_chars: usize,
}

/// Asks for the summary of a window, with its parts.
pub fn window(question: &WindowQuestion<'_>, prompts: &SummaryPrompts) -> ChatRequest {
    let WindowQuestion { previous, todos, left, new, window, target, max_message_chars } = question;
    let instructions = prompts.text(SummaryPrompt::Window);
    let instructions = instructions
        .replace("{words}", &words(*target).to_string())
        .replace("{start}", &window.start.to_string())
        .replace("{content}", variant(ContentType::Conversation));
    let filter = FilterSettings { max_message_chars: *max_message_chars, ..FilterSettings::default() };
    let mut data = Vec::new();
    if let Some(previous) = previous {
        data.push(json!({ "previous_summary": previous }).to_string());
    }
    if !todos.is_empty() {
        data.push(json!({ "open_todos": todos }).to_string());
    }
    for turn in *left {
        let text = beginning(&turn.content, LEFT_CHARS);
        data.push(json!({ "left": turn.seq, "role": turn.role.as_str(), "text": text }).to_string());
    }
    for turn in *new {
        let text = filter_content_with(&turn.content, &filter);
        let mut line = json!({ "message": turn.seq, "role": turn.role.as_str(), "text": text });
        if let Some(name) = &turn.name {
            line["name"] = name.as_str().into();
        }
        data.push(line.to_string());
    }
    // The parts need about as many tokens as the text.
    let max_tokens = Some(target.saturating_mul(3).saturating_add(400));
    ChatRequest {
        messages: messages(instructions, data.join("\n")),
        schema: Some(Answered::schema()),
        max_tokens,
    }
}

/// What a summary of a text is made of.
#[derive(Debug, Clone, Copy)]
pub enum TextQuestion<'a> {
    /// A sentence about a text.
    Brief(&'a str),
    /// A paragraph about a text, joined with a prior summary.
    Standard {
        /// The text.
        text: &'a str,
        /// What is known already.
        prior: Option<&'a str>,
    },
    /// A chunk.
    Chunk(&'a str),
    /// Several summaries.
    Meta(&'a [&'a str]),
    /// A summary and what has come since.
    Rolling {
        /// The summary.
        previous: &'a str,
        /// Summaries of what has come.
        new: &'a [&'a str],
        /// What was learned meanwhile.
        facts: &'a [&'a str],
    },
}

impl TextQuestion<'_> {
    fn prompt(&self) -> SummaryPrompt {
        match self {
            Self::Brief(_) => SummaryPrompt::Brief,
            Self::Standard { .. } => SummaryPrompt::Standard,
            Self::Chunk(_) => SummaryPrompt::Chunk,
            Self::Meta(_) => SummaryPrompt::Meta,
            Self::Rolling { .. } => SummaryPrompt::Rolling,
        }
    }

    fn data(&self) -> String {
        let lines = |name: &str, texts: &[&str]| {
            let lines =
                texts.iter().zip(1..).map(|(text, number)| json!({ name: number, "text": text }).to_string());
            lines.collect::<Vec<_>>()
        };
        match self {
            Self::Brief(text) | Self::Chunk(text) => (*text).to_owned(),
            Self::Standard { text, prior } => {
                let prior = prior.map(|prior| format!("{}\n\n", json!({ "prior_summary": prior })));
                format!("{}{text}", prior.unwrap_or_default())
            }
            Self::Meta(texts) => lines("part", texts).join("\n"),
            Self::Rolling { previous, new, facts } => {
                let mut data = vec![json!({ "summary": previous }).to_string()];
                data.extend(lines("new_part", new));
                data.extend(facts.iter().map(|fact| json!({ "fact": fact }).to_string()));
                data.join("\n")
            }
        }
    }
}

/// Asks for the summary of a text, as text.
pub fn text(
    question: &TextQuestion<'_>,
    content: ContentType,
    target: u32,
    prompts: &SummaryPrompts,
) -> ChatRequest {
    let instructions = prompts.text(question.prompt());
    let instructions =
        instructions.replace("{words}", &words(target).to_string()).replace("{content}", variant(content));
    let max_tokens = Some(target.saturating_mul(2).saturating_add(100));
    ChatRequest { messages: messages(instructions, question.data()), schema: None, max_tokens }
}

/// How many words about so many tokens are.
fn words(tokens: u32) -> u32 {
    (tokens.saturating_mul(3) / 4).max(10)
}

fn messages(instructions: String, data: String) -> Vec<ChatMessage> {
    vec![
        ChatMessage { role: Role::System, content: instructions },
        ChatMessage { role: Role::User, content: data },
    ]
}

/// A text answer, without thoughts before it and fences around it. *Invalid* where it is empty or a refusal: a summary that
/// says «I cannot» would be shown for ever.
pub(crate) fn read_text(answer: &str) -> Result<String> {
    let answer = answer.rsplit_once("</think>").map_or(answer, |(_, answer)| answer).trim();
    let unfenced = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let text =
        unfenced.map_or(answer, |inside| inside.split_once('\n').map_or(inside, |(_, text)| text)).trim();
    if text.is_empty() {
        return Err(Error::invalid("the answer is empty"));
    }
    if is_refusal(text) {
        return Err(Error::invalid(
            "the answer is a refusal; the text is the user's own and is only to be shortened",
        ));
    }
    Ok(text.replace('\0', ""))
}

/// Whether an answer says that it is none. Only its beginning is looked at: a summary may speak of somebody's refusal.
fn is_refusal(text: &str) -> bool {
    const BEGINNINGS: [&str; 15] = [
        "i'm sorry",
        "i am sorry",
        "i’m sorry",
        "sorry,",
        "i cannot",
        "i can't",
        "i can’t",
        "i'm unable",
        "i am unable",
        "i'm not able",
        "as an ai",
        "抱歉",
        "对不起",
        "很抱歉",
        "作为一个ai",
    ];
    let head: String =
        text.trim_start_matches(['"', '“', '*']).chars().take(24).collect::<String>().to_lowercase();
    BEGINNINGS.iter().any(|beginning| head.starts_with(beginning))
}

#[cfg(test)]
#[path = "summarising/tests.rs"]
mod tests;
