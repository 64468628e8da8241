//! The settings of summaries, and the requests that ask a model for one.
//!
//! The instructions are the texts in `learn/prompts/summary`, which a user may replace. The data follow in a message of
//! their own, as JSON lines if there are several parts, so that nothing a user said can end the instructions.

use serde_json::json;

use super::answer::without_thoughts;
use super::structured::Answered;
use super::tree::ContentType;
use super::window::{Window, WindowSettings};
use crate::prompt::{FilterSettings, filter_content_with};
use strata_core::error::{Error, Result};
use strata_core::ports::{ChatMessage, ChatRequest};
use strata_core::turn::{Role, Turn};
use strata_language::secrets::redacted;
use strata_language::sentences::beginning;

/// The most characters of a message that has left the window: enough to recognise its subject.
const LEFT_CHARS: usize = 100;

/// The instruction for the lines that name deleted statements. It follows the other instructions, also custom ones.
const LEAVE_OUT: &str = "The user has deleted the statements in lines with `leave_out`. \
    The answer must not say them, in any words, even if the text below still does.";

/// The settings of summaries.
#[derive(Debug, Clone, PartialEq)]
pub struct SummarisingSettings {
    /// Whether sessions are summarised in the background (memory-proxy design: yes). Existing summaries are read in any
    /// case.
    pub enable_summarization: bool,
    /// When a session is summarised, and over how many turns.
    pub window: WindowSettings,
    /// Custom instructions.
    pub prompts: SummaryPrompts,
    /// The tokens that a model may spend on its thoughts before an answer, beside those of the answer.
    pub thought_tokens: u32,
}

impl Default for SummarisingSettings {
    fn default() -> Self {
        Self {
            enable_summarization: true,
            window: WindowSettings::default(),
            prompts: SummaryPrompts::default(),
            // Reasoning models think for about 500 to 3,000 tokens about a page of text.
            thought_tokens: 4_096,
        }
    }
}

/// The kind of summary that a model writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum SummaryPrompt {
    /// The sliding window, with its structured part.
    Window,
    /// One sentence.
    Brief,
    /// One paragraph.
    Standard,
    /// The summary of one chunk of a long text.
    Chunk,
    /// One summary from several summaries.
    Meta,
    /// An existing summary, extended by what is new.
    Rolling,
}

impl SummaryPrompt {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Window, Self::Brief, Self::Standard, Self::Chunk, Self::Meta, Self::Rolling];

    /// The name in the settings.
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

/// Custom instructions, each of which replaces a built-in one. `{words}` stands for the length, `{content}` for the
/// instructions of the content type, `{start}` for the beginning of the window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryPrompts {
    given: Vec<(SummaryPrompt, String)>,
}

impl SummaryPrompts {
    /// Sets the instructions of one kind.
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

/// The instructions of a content type.
fn variant(content: ContentType) -> &'static str {
    let text = match content {
        ContentType::Conversation => include_str!("prompts/summary/conversation.txt"),
        ContentType::Journal => include_str!("prompts/summary/journal.txt"),
        ContentType::Document => include_str!("prompts/summary/document.txt"),
    };
    text.trim()
}

/// The input for the summary of a window.
#[derive(Debug, Clone, Copy)]
pub struct WindowQuestion<'a> {
    /// The text of the previous version, if it still covers a part of the window.
    pub previous: Option<&'a str>,
    /// The open todos of the previous version.
    pub todos: &'a [&'a str],
    /// The turns that the previous version covers and that have left the window.
    pub left: &'a [&'a Turn],
    /// The new turns.
    pub new: &'a [&'a Turn],
    /// The window.
    pub window: Window,
    /// The number of tokens that the summary should have.
    pub target: u32,
    /// The most characters of a message.
    pub max_message_chars: usize,
    /// Deleted statements that the summary must not say.
    pub leave_out: &'a [&'a str],
}

/// Asks for the summary of a window, with its structured part.
pub fn window(question: &WindowQuestion<'_>, settings: &SummarisingSettings) -> ChatRequest {
    let WindowQuestion { previous, todos, left, new, window, target, max_message_chars, leave_out } =
        question;
    let instructions = settings.prompts.text(SummaryPrompt::Window);
    let instructions = instructions
        .replace("{words}", &words(*target).to_string())
        .replace("{start}", &window.start.to_string())
        .replace("{content}", variant(ContentType::Conversation));
    let filter = FilterSettings { max_message_chars: *max_message_chars, ..FilterSettings::default() };
    let mut data = left_out(leave_out);
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
    // The structured part needs about as many tokens as the text.
    let answer_tokens = target.saturating_mul(3).saturating_add(400);
    let max_tokens = Some(answer_tokens.saturating_add(settings.thought_tokens));
    ChatRequest {
        messages: messages(with_leave_out(instructions, leave_out), data.join("\n")),
        schema: Some(Answered::schema()),
        max_tokens,
    }
}

/// The input for the summary of a text.
#[derive(Debug, Clone, Copy)]
pub enum TextQuestion<'a> {
    /// Asks for one sentence about a text.
    Brief(&'a str),
    /// Asks for one paragraph about a text, merged with a prior summary.
    Standard {
        /// The text.
        text: &'a str,
        /// The prior summary.
        prior: Option<&'a str>,
    },
    /// Asks for the summary of a chunk.
    Chunk(&'a str),
    /// Asks for one summary of several summaries.
    Meta(&'a [&'a str]),
    /// Asks to extend a summary by what is new.
    Rolling {
        /// The existing summary.
        previous: &'a str,
        /// Summaries of the new parts.
        new: &'a [&'a str],
        /// Facts that were learned since the existing summary.
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

/// Asks for the summary of a text that must not say the statements in `leave_out`. The answer is plain text.
pub fn text(
    question: &TextQuestion<'_>,
    content: ContentType,
    target: u32,
    leave_out: &[&str],
    settings: &SummarisingSettings,
) -> ChatRequest {
    let instructions = settings.prompts.text(question.prompt());
    let instructions =
        instructions.replace("{words}", &words(target).to_string()).replace("{content}", variant(content));
    let answer_tokens = target.saturating_mul(2).saturating_add(100);
    let max_tokens = Some(answer_tokens.saturating_add(settings.thought_tokens));
    let mut data = left_out(leave_out);
    data.push(question.data());
    let instructions = with_leave_out(instructions, leave_out);
    ChatRequest { messages: messages(instructions, data.join("\n")), schema: None, max_tokens }
}

/// A line for each deleted statement.
fn left_out(statements: &[&str]) -> Vec<String> {
    statements.iter().map(|statement| json!({ "leave_out": statement }).to_string()).collect()
}

fn with_leave_out(instructions: String, statements: &[&str]) -> String {
    if statements.is_empty() { instructions } else { format!("{instructions}\n\n{LEAVE_OUT}") }
}

/// The number of words in so many tokens.
fn words(tokens: u32) -> u32 {
    (tokens.saturating_mul(3) / 4).max(10)
}

fn messages(instructions: String, data: String) -> Vec<ChatMessage> {
    vec![
        ChatMessage { role: Role::System, content: instructions },
        ChatMessage { role: Role::User, content: data },
    ]
}

/// Reads a plain-text answer, without the reasoning before it and the fences around it. *Invalid* if it is empty or a
/// refusal, because a stored refusal would be shown in every later prompt. Secrets do not outlive their turn in it.
pub(crate) fn read_text(answer: &str) -> Result<String> {
    let answer = without_thoughts(answer).trim();
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
    Ok(redacted(&text.replace('\0', "")).into_owned())
}

/// Whether an answer is a refusal. Only its beginning is checked, because a summary may mention a person's refusal.
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
