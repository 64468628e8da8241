//! The state of working conversations: each sentence of a case has its role, and the state that Strata keeps in the end is
//! compared with the roles.
//!
//! Start reading at [`load`] and [`run`]. `docs/evals.md` describes the format of the files.

mod parse;
mod score;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use strata_core::turn::{NewMessage, Role};
use strata_core::{Result, SessionId, UserId};
use strata_engine::{Engine, PromptRequest};
use strata_language::text::fold;

pub use parse::{CaseConversation, CaseLine, CaseSet, load};

use crate::reading::Share;

/// The results of the conversations of one language.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CaseFindings {
    /// Of the sentences, those whose likeliest role is the labelled one.
    pub roles: Share,
    /// Of the causes, those in the state's root causes.
    pub causes: Share,
    /// Of the findings, those in the state.
    pub findings: Share,
    /// Of the ruled-out hypotheses, those in the state and not among the open hypotheses.
    pub ruled_out: Share,
    /// Of the decisions, those in the state's decisions or tasks.
    pub decisions: Share,
    /// Of the todos after which nothing is done, those in the state's open tasks or decisions.
    pub todos: Share,
    /// Of the causes, findings, ruled-out hypotheses, decisions and open todos together, those in the state or summary.
    pub kept: Share,
    /// Of the items of the state, those whose sentence has a role that contradicts them.
    pub wrong: Share,
    /// The same, strictly: of the items of the state, those whose sentence has another role than that of their list.
    pub misfiled: Share,
    /// Of the conversations, those with the right status.
    pub status: Share,
    /// Of the questions, those whose answer the flat prompt holds.
    pub answered: Share,
    /// The same within 1,000 tokens, which do not hold the whole conversation.
    pub answered_short: Share,
}

/// The results by language.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CasesReport {
    /// The findings of each language.
    pub languages: BTreeMap<String, CaseFindings>,
    /// Everything that is missing or wrong, in words.
    pub notes: Vec<String>,
}

/// Records each conversation as a session of a user of its own, followed by the set's small talk, and compares the
/// state. Calls `progress` after each.
pub async fn run(engine: &Engine, set: &CaseSet, progress: &mut dyn FnMut(usize)) -> Result<CasesReport> {
    let mut report = CasesReport::default();
    for (number, conversation) in set.conversations.iter().enumerate() {
        let found = report.languages.entry(conversation.language.clone()).or_default();
        count_roles(engine, conversation, found).await?;
        let user = UserId::new(format!("case-{number}"))?;
        let session = SessionId::new("case")?;
        let small_talk = set.small_talk.get(&conversation.language).into_iter().flatten();
        for messages in messages(conversation.lines.iter().chain(small_talk)).chunks(MESSAGES) {
            engine.recording.record(&user, &session, messages.to_vec(), None).await?;
        }
        engine.learning.read_state(&user, &session).await?;
        let state = engine.sessions.state(&user, &session).await?;
        let summary = engine.summaries.list(&user, &session, 1).await?.pop().map(|summary| summary.text);
        let summary = summary.unwrap_or_default();
        score::score(conversation, &state, &summary, found, &mut report.notes);
        ask(engine, &user, &session, conversation, &mut report).await?;
        progress(number + 1);
    }
    Ok(report)
}

/// Asks the flat prompt for the answers, with the usual budget and with a small one.
async fn ask(
    engine: &Engine,
    user: &UserId,
    session: &SessionId,
    conversation: &CaseConversation,
    report: &mut CasesReport,
) -> Result<()> {
    let found = report.languages.entry(conversation.language.clone()).or_default();
    for (question, answer) in &conversation.questions {
        for max_tokens in [None, Some(SMALL_BUDGET)] {
            let request = PromptRequest { max_tokens, ..PromptRequest::new(session.clone(), question) };
            let prompted = engine.prompting.prompt(user, &request).await?;
            let is_told = fold(prompted.prompt.text().unwrap_or_default()).contains(&fold(answer));
            let (share, within) = match max_tokens {
                None => (&mut found.answered, String::new()),
                Some(most) => (&mut found.answered_short, format!(" within {most} tokens")),
            };
            share.count(is_told);
            if !is_told {
                report.notes.push(format!("{} no answer{within} to «{question}»: {answer}", conversation.id));
            }
        }
    }
    Ok(())
}

/// The tokens of a prompt that cannot show a whole conversation of these sets.
const SMALL_BUDGET: u32 = 1_000;

/// The number of messages in one call.
const MESSAGES: usize = 20;

/// The lines as messages: consecutive ones of a speaker are one message.
fn messages<'a>(lines: impl Iterator<Item = &'a CaseLine>) -> Vec<NewMessage> {
    let mut messages: Vec<NewMessage> = Vec::new();
    for line in lines {
        match messages.last_mut() {
            Some(last) if last.role == line.role => {
                let ended = last.content.ends_with(['.', '!', '?', '。', '！', '？']);
                last.content.push(if ended { ' ' } else { '\n' });
                last.content.push_str(&line.text);
            }
            _ => messages.push(NewMessage::new(line.role, line.text.clone())),
        }
    }
    messages
}

async fn count_roles(
    engine: &Engine,
    conversation: &CaseConversation,
    found: &mut CaseFindings,
) -> Result<()> {
    let said: Vec<(Role, &str)> =
        conversation.lines.iter().map(|line| (line.role, line.text.as_str())).collect();
    let roles = engine.learning.case_roles(&said).await?;
    for (line, role) in conversation.lines.iter().zip(roles) {
        found.roles.count(line.label == role);
    }
    Ok(())
}

/// The results as a table.
pub fn table(report: &CasesReport) -> String {
    let mut text = String::from(
        "cases    roles  causes  findings  ruled out  decisions  todos   kept  wrong  misfiled  status  answered  short\n",
    );
    for (language, found) in &report.languages {
        let widths = [6, 7, 9, 10, 10, 6, 6, 6, 9, 7, 9, 6];
        let _ = write!(text, "{language:<7}");
        for (share, width) in found.shares().into_iter().zip(widths) {
            let _ = write!(text, " {:>width$.1}", share.per_cent());
        }
        text.push('\n');
    }
    text
}

impl CaseFindings {
    /// The figures in the order of the table.
    fn shares(&self) -> [Share; 12] {
        let Self { roles, causes, findings, ruled_out, decisions, todos, .. } = *self;
        let Self { kept, wrong, misfiled, status, answered, answered_short, .. } = *self;
        [
            roles,
            causes,
            findings,
            ruled_out,
            decisions,
            todos,
            kept,
            wrong,
            misfiled,
            status,
            answered,
            answered_short,
        ]
    }
}
