//! Summaries of any text: a model writes them, or the extractive rules do.
//!
//! [`Summaries::summarise_text`] summarises a text that is not stored. A session's tree ([`super::tree`]) makes its nodes
//! with the same functions.

use super::{Summaries, chars_for, max_chars};
use crate::ask::ask;
use crate::learn::extractive::{self, Part, parts_of};
use crate::learn::summarising::{self, TextQuestion};
use crate::learn::tree::{CHUNK_TOKENS, ContentType, GROUP, Level, OVERLAP_TOKENS, chunks};
use crate::withdrawn::Withdrawn;
use strata_core::error::Result;
use strata_core::ports::{ChatModel, Spent};
use strata_language::secrets::redacted;
use strata_language::sentences::beginning;

/// The author of a summary: a model, or the rules if it is `None`; and what it leaves out.
#[derive(Clone, Copy)]
pub(super) struct Writer<'a> {
    pub(super) model: Option<&'a dyn ChatModel>,
    pub(super) withdrawn: &'a Withdrawn,
    /// Why the rules write in the place of a model.
    pub(super) failure: Option<&'a str>,
}

impl<'a> Writer<'a> {
    /// Writes with a model, or with the rules if it is `None`.
    pub(super) fn new(model: Option<&'a dyn ChatModel>, withdrawn: &'a Withdrawn) -> Self {
        Self { model, withdrawn, failure: None }
    }
}

/// The summary of a text, with the nodes below it.
#[derive(Debug, Clone, PartialEq)]
pub struct TextSummary {
    /// The depth of the summary.
    pub level: Level,
    /// The kind of the text.
    pub content: ContentType,
    /// The summary; empty for [`Level::None`].
    pub text: String,
    /// The nodes of L1, then those of L2, in the order of the text. Empty for a short text.
    pub nodes: Vec<TextNode>,
    /// Tokens of the text.
    pub input_tokens: u32,
    /// Tokens of the summary.
    pub output_tokens: u32,
    /// The cost of the model's calls.
    pub spent: Spent,
}

/// A node below the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextNode {
    /// 1 for a chunk, 2 for a group.
    pub level: u8,
    /// Its summary.
    pub text: String,
    /// Tokens of the text that it summarises.
    pub input_tokens: u32,
    /// Tokens of its summary.
    pub output_tokens: u32,
}

impl Summaries {
    /// Summarises a text to the depth that its length needs (memory-proxy design, 4.4). Nothing is stored.
    pub async fn summarise_text(&self, text: &str, content: Option<ContentType>) -> Result<TextSummary> {
        self.sessions.limits.check_text("the text", text)?;
        let content = content.unwrap_or_else(|| ContentType::detect(text));
        let input_tokens = self.tokens.count(text);
        let level = Level::of(u64::from(input_tokens));
        let mut spent = Spent::default();
        let mut nodes = Vec::new();
        if level >= Level::Detailed {
            nodes = self.text_nodes(text, level, content, &mut spent).await?;
        }
        // The root summarises the nodes of the highest level.
        let highest = nodes.iter().map(|node| node.level).max();
        let parts: Vec<&str> =
            nodes.iter().filter(|node| Some(node.level) == highest).map(|node| node.text.as_str()).collect();
        let question = match level {
            Level::None => None,
            Level::Brief => Some(TextQuestion::Brief(text)),
            Level::Standard => Some(TextQuestion::Standard { text, prior: None }),
            Level::Detailed | Level::Hierarchical => Some(TextQuestion::Meta(&parts)),
        };
        let target = level.target_tokens(u64::from(input_tokens));
        let summary = match question {
            Some(question) => {
                let nothing = Withdrawn::default();
                let writer = Writer::new(self.model.as_deref(), &nothing);
                self.write(writer, &question, content, target, &mut spent).await?
            }
            None => String::new(),
        };
        let output_tokens = self.tokens.count(&summary);
        Ok(TextSummary { level, content, text: summary, nodes, input_tokens, output_tokens, spent })
    }

    /// The summaries of a text's chunks, then for [`Level::Hierarchical`] those of groups of chunks.
    async fn text_nodes(
        &self,
        text: &str,
        level: Level,
        content: ContentType,
        spent: &mut Spent,
    ) -> Result<Vec<TextNode>> {
        let nothing = Withdrawn::default();
        let writer = Writer::new(self.model.as_deref(), &nothing);
        let mut nodes = Vec::new();
        for chunk in chunks(text, CHUNK_TOKENS, OVERLAP_TOKENS, self.tokens.as_ref()) {
            let question = TextQuestion::Chunk(&text[chunk.all]);
            nodes.push(self.node(writer, 1, &question, content, spent).await?);
        }
        if level == Level::Hierarchical {
            let leaves: Vec<String> = nodes.iter().map(|node| node.text.clone()).collect();
            for group in leaves.chunks(GROUP) {
                let group: Vec<&str> = group.iter().map(String::as_str).collect();
                nodes.push(self.node(writer, 2, &TextQuestion::Meta(&group), content, spent).await?);
            }
        }
        Ok(nodes)
    }

    pub(super) async fn node(
        &self,
        writer: Writer<'_>,
        level: u8,
        question: &TextQuestion<'_>,
        content: ContentType,
        spent: &mut Spent,
    ) -> Result<TextNode> {
        let input_tokens = self.question_tokens(question);
        let target = Level::Detailed.target_tokens(u64::from(input_tokens));
        let text = self.write(writer, question, content, target, spent).await?;
        Ok(TextNode { level, output_tokens: self.tokens.count(&text), text, input_tokens })
    }

    pub(super) fn question_tokens(&self, question: &TextQuestion<'_>) -> u32 {
        sources(question).iter().fold(0, |sum: u32, text| sum.saturating_add(self.tokens.count(text)))
    }

    /// Answers a question about a text, with the model or with the rules.
    pub(super) async fn write(
        &self,
        writer: Writer<'_>,
        question: &TextQuestion<'_>,
        content: ContentType,
        target: u32,
        spent: &mut Spent,
    ) -> Result<String> {
        let Writer { model, withdrawn, .. } = writer;
        let Some(model) = model else { return Ok(self.rewritten(question, target)) };
        let leave_out = withdrawn.named_in(sources(question).into_iter());
        let request = summarising::text(question, content, target, &leave_out, &self.settings.summaries);
        let text = ask(model, &request, summarising::read_text, spent).await?;
        Ok(beginning(&withdrawn.removed_from_summary(&text), max_chars(target)))
    }

    /// Answers a question about a text with the rules.
    fn rewritten(&self, question: &TextQuestion<'_>, target: u32) -> String {
        let sources = sources(question);
        let chars: u64 = sources.iter().map(|text| text.chars().count() as u64).sum();
        let budget = chars_for(target, chars, u64::from(self.question_tokens(question)));
        let parts: Vec<Part<'_>> = sources.iter().flat_map(|text| parts_of(text)).collect();
        let summary = extractive::summarise(&parts, budget);
        if summary.is_empty() {
            beginning(&redacted(sources.first().copied().unwrap_or_default()), budget)
        } else {
            summary
        }
    }
}

/// The texts in a question.
fn sources<'a>(question: &TextQuestion<'a>) -> Vec<&'a str> {
    match question {
        TextQuestion::Brief(text) | TextQuestion::Chunk(text) => vec![text],
        TextQuestion::Standard { text, prior } => prior.iter().chain([text]).copied().collect(),
        TextQuestion::Meta(texts) => texts.to_vec(),
        TextQuestion::Rolling { previous, new, facts } => {
            [*previous].into_iter().chain(new.iter().copied()).chain(facts.iter().copied()).collect()
        }
    }
}
