//! How much a prompt still tells of a long conversation: each question's answer lies in a turn that the prompt no longer shows,
//! and the prompt of each strategy and budget is searched for it.
//!
//! Start reading at [`load`] and [`run`]. `docs/evals.md` describes the format of the files.

mod coverage;
mod parse;

use std::fmt::Write as _;

use serde::Serialize;
use strata_core::turn::NewMessage;
use strata_core::{Result, SessionId, UserId};
use strata_engine::prompt::{History, PromptSettings};
use strata_engine::{Engine, PromptRequest};

pub use parse::{Asked, Evidence, LongConversation, load, of_set};

use crate::reading::Share;
use coverage::{Coverage, without_recall};

/// The budgets of prompts, in tokens.
const BUDGETS: [u32; 3] = [2_000, 4_000, 8_000];

/// The number of messages in one call. The reader judges them before the next ones come, as in a conversation.
const MESSAGES: usize = 20;

/// The number of turns at the end that any prompt may show.
const RECENT: usize = 20;

/// The parts of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    /// Strata's prompt with this history, with or without what recall finds.
    Strata { history: History, recall: bool },
    /// As many of the last turns as fit.
    LastTurns,
    /// All turns, whatever the budget.
    Everything,
}

/// The results of one variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PromptRow {
    /// The name of the variant.
    pub name: String,
    /// By budget.
    pub budgets: Vec<PromptCell>,
}

/// The results of one variant and budget.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PromptCell {
    /// The most tokens.
    pub budget: u32,
    /// Of the answers, those that the prompt tells.
    pub covered: Share,
    /// The mean of the prompts' tokens.
    pub tokens: f64,
}

/// The results by variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PromptsReport {
    /// The number of conversations.
    pub conversations: usize,
    /// The variants.
    pub rows: Vec<PromptRow>,
    /// The answers that no variant of Strata tells within the largest budget.
    pub notes: Vec<String>,
}

/// Records each conversation as a session of a user of its own and asks its questions. Calls `progress` after each.
pub async fn run(
    engine: &Engine,
    conversations: &[LongConversation],
    progress: &mut (dyn FnMut(usize) + Send),
) -> Result<PromptsReport> {
    let mut report = PromptsReport {
        conversations: conversations.len(),
        rows: variants().map(|variant| PromptRow { name: name(variant), budgets: cells() }).collect(),
        notes: Vec::new(),
    };
    let session = SessionId::new("long")?;
    for (number, conversation) in conversations.iter().enumerate() {
        let user = UserId::new(format!("prompts-{number}"))?;
        for messages in conversation.messages.chunks(MESSAGES) {
            engine.recording.record(&user, &session, messages.to_vec(), None).await?;
            engine.learning.read_state(&user, &session).await?;
        }
        engine.learning.learn_all().await?;
        engine.maintenance.maintain_all().await?;
        ask(engine, &user, &session, conversation, &mut report).await?;
        progress(number + 1);
    }
    Ok(report)
}

fn variants() -> impl Iterator<Item = Variant> {
    let histories = [History::Auto, History::Rolling, History::Window, History::Tree];
    let each = |history| [true, false].map(|recall| Variant::Strata { history, recall });
    histories.into_iter().flat_map(each).chain([Variant::LastTurns, Variant::Everything])
}

fn name(variant: Variant) -> String {
    match variant {
        Variant::Strata { history, recall } => {
            let recall = if recall { "with recall" } else { "alone" };
            format!("{} {recall}", format!("{history:?}").to_lowercase())
        }
        Variant::LastTurns => "last turns".to_owned(),
        Variant::Everything => "everything".to_owned(),
    }
}

fn cells() -> Vec<PromptCell> {
    BUDGETS.iter().map(|budget| PromptCell { budget: *budget, ..PromptCell::default() }).collect()
}

/// Asks a conversation's questions in every variant.
async fn ask(
    engine: &Engine,
    user: &UserId,
    session: &SessionId,
    conversation: &LongConversation,
    report: &mut PromptsReport,
) -> Result<()> {
    let coverage = Coverage::new(&conversation.messages);
    let old = conversation.messages.len().saturating_sub(RECENT);
    for asked in conversation.questions.iter().filter(|asked| asked.evidence.is_before(old)) {
        let mut told = false;
        for (place, variant) in variants().enumerate() {
            for (at, budget) in BUDGETS.iter().enumerate() {
                let text = prompt(engine, user, session, conversation, asked, variant, *budget).await?;
                let covered = coverage.tells(&text, &asked.evidence);
                told |= covered == 1.0 && matches!(variant, Variant::Strata { .. });
                let cell = &mut report.rows[place].budgets[at];
                let before = cell.tokens * cell.covered.all as f64;
                cell.covered.count(covered >= 0.5);
                let tokens = f64::from(engine.prompting.count_tokens(&text));
                cell.tokens = (before + tokens) / cell.covered.all as f64;
            }
        }
        if !told {
            report.notes.push(format!("{}: no prompt answers «{}»\n", conversation.name, asked.question));
        }
    }
    Ok(())
}

/// The prompt of a variant.
async fn prompt(
    engine: &Engine,
    user: &UserId,
    session: &SessionId,
    conversation: &LongConversation,
    asked: &Asked,
    variant: Variant,
    budget: u32,
) -> Result<String> {
    let line = |message: &NewMessage| format!("{}: {}\n", message.role.as_str(), message.content);
    match variant {
        Variant::Everything => Ok(conversation.messages.iter().map(line).collect()),
        Variant::LastTurns => {
            let mut shown = Vec::new();
            let mut left = budget;
            for text in conversation.messages.iter().rev().map(line) {
                let Some(rest) = left.checked_sub(engine.prompting.count_tokens(&text)) else { break };
                left = rest;
                shown.push(text);
            }
            Ok(shown.into_iter().rev().collect())
        }
        Variant::Strata { history, recall } => {
            let settings = PromptSettings { history, ..engine.prompting.settings().clone() };
            let engine = engine.clone().with_prompts(settings)?;
            let request = PromptRequest {
                max_tokens: Some(budget),
                ..PromptRequest::new(session.clone(), asked.question.as_str())
            };
            let prompted = engine.prompting.prompt(user, &request).await?;
            let text = prompted.prompt.text().unwrap_or_default();
            Ok(if recall { text.to_owned() } else { without_recall(text) })
        }
    }
}

/// The results as a table: for each budget the share of answers, and behind it the mean tokens.
pub fn table(report: &PromptsReport) -> String {
    let mut text = format!("prompts of {} conversations", report.conversations);
    for budget in BUDGETS {
        let _ = write!(text, "  {:>6} tokens", budget);
    }
    text.push('\n');
    for row in &report.rows {
        let _ = write!(text, "{:<27}", row.name);
        for cell in &row.budgets {
            let _ = write!(text, "  {:>6.1} {:>6.0}", cell.covered.per_cent(), cell.tokens);
        }
        text.push('\n');
    }
    text
}
