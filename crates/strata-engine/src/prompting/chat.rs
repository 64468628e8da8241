//! Memory for a chat whose client keeps the conversation: what to put in front of the question, and the row about it.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};

use super::{Gathering, Prompting, Remembered};
use crate::index::TextFingerprint;
use crate::prompt::{Message, PromptRules, build_summary_with, memory_block};
use crate::recording::session_now;
use strata_core::error::Result;
use strata_core::id::{RequestId, SessionId, UserId};
use strata_core::metric::RequestMetric;
use strata_core::scope::Scope;
use strata_core::session::Session;
use strata_core::state::State;
use strata_core::turn::Role;

/// A client's question to its model.
#[derive(Debug, Clone, Default)]
pub struct ChatQuestion {
    /// The session it is asked in.
    pub session: SessionId,
    /// What is asked.
    pub question: String,
    /// The messages that the client shows the model itself, as [`key`] numbers them, instructions left out.
    pub shown: HashSet<u64>,
    /// What these messages say: it takes no place in what memory has to say.
    pub texts: HashSet<TextFingerprint>,
    /// How many items at the most, instead of the setting.
    pub top_k: Option<u32>,
    /// Instead of the setting.
    pub recency_weight: Option<f32>,
    /// Instead of the setting.
    pub score_threshold: Option<f32>,
}

/// A session as it was before its question was recorded.
#[derive(Debug, Clone)]
pub struct ChatSnapshot {
    /// Whatever was recorded later was not looked at.
    taken_at: Timestamp,
    turn_count: u64,
    state: State,
}

/// What memory has to say to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatMemory {
    /// The block for [`crate::prompt::chat`]'s place, in front of the question; none where nothing is known.
    pub block: Option<String>,
    /// The row of the request, to be noted with [`Prompting::note_chat`] once the model has answered.
    pub row: RequestMetric,
}

impl Prompting {
    /// Reads what a question is answered from: the session, and the user's index brought up to date. Afterwards the question
    /// may be recorded while [`Prompting::chat_memory`] ranks.
    pub async fn chat_snapshot(&self, user: &UserId, session: &SessionId) -> Result<ChatSnapshot> {
        let Session { turn_count, state, .. } =
            session_now(self.recording.store.as_ref(), self.clock.as_ref(), user, session).await?;
        self.recall.freshen(user).await?;
        Ok(ChatSnapshot { taken_at: self.clock.now(), turn_count, state })
    }

    /// What memory has to say to a question, without what the client shows the model anyway.
    pub async fn chat_memory(
        &self,
        user: &UserId,
        id: RequestId,
        question: &ChatQuestion,
        snapshot: ChatSnapshot,
    ) -> Result<ChatMemory> {
        let began = self.clock.now();
        let ChatSnapshot { taken_at, turn_count, mut state } = snapshot;
        // A client that shows all of the session has room for what was said elsewhere.
        let shows_all = question.shown.len() as u64 > turn_count;
        let gathering = Gathering::of_chat(question, shows_all.then_some(Scope::User));
        let Remembered { items, mut row, problem } = self.gather(user, id, &gathering).await;
        if let Some(problem) = problem {
            return Err(problem);
        }
        row.created_at = taken_at;
        let PromptRules { settings, rules } = &*self.prompts;
        rules.observe(Role::User, &question.question, &settings.filter, &mut state);
        let summary = match shows_all {
            true => String::new(),
            false => self.recording.unfolded(user, &question.session, turn_count).await?.text(settings),
        };
        let block = memory_block(&state, &summary, &items, rules);
        row.latency_retrieval_us = micros(self.clock.now().duration_since(began));
        Ok(ChatMemory { block, row })
    }

    /// The row of a question to which memory had nothing to say: because nothing was asked in words, or, where
    /// `failed`, because it failed or took too long.
    pub fn chat_without_memory(
        &self,
        id: RequestId,
        question: &ChatQuestion,
        elapsed: std::time::Duration,
        failed: bool,
    ) -> RequestMetric {
        let request = self.recall_request(&Gathering::of_chat(question, None));
        let elapsed = SignedDuration::try_from(elapsed).unwrap_or_default();
        let mut row = self.recall.log.row(&request, id, None, elapsed);
        row.keep_served(std::iter::empty());
        RequestMetric { error_stage: row.error_stage.filter(|_| failed), ..row }
    }

    /// What takes the place of messages that gave way to a budget: a block with their summary, of at most so many tokens,
    /// the same for the same messages; none where they say nothing or where nothing of them fits.
    pub fn summary_block(&self, messages: &[Message], max_tokens: u32) -> Option<String> {
        let PromptRules { settings, rules } = &*self.prompts;
        let mut bound = settings.summary.clone();
        loop {
            let summary = build_summary_with("", messages, 0, &settings.filter, &bound);
            let block = memory_block(&State::default(), &summary, &[], rules)?;
            let tokens = self.tokens.count(&format!("{block}\n\n"));
            if tokens <= max_tokens {
                return Some(block);
            }
            // By as much as it is too long, and by a tenth at least, so that it comes to an end.
            let chars = summary.chars().count() as u64 * u64::from(max_tokens) / u64::from(tokens);
            bound.max_chars = bound.max_chars.min(summary.chars().count()) * 9 / 10;
            bound.max_chars = bound.max_chars.min(usize::try_from(chars).unwrap_or(usize::MAX));
        }
    }

    /// The tokens of a text, as the configured counter has them.
    pub fn count_tokens(&self, text: &str) -> u32 {
        self.tokens.count(text)
    }

    /// Notes the row of a chat's request, which is written behind, as those of searches are; and takes what was said into
    /// the user's index now, when nobody waits for it.
    pub async fn note_chat(&self, user: &UserId, row: RequestMetric) {
        self.recall.log.note(user, row);
        if let Err(error) = self.recall.freshen(user).await {
            tracing::debug!(%error, "a user's index stays as it was until the next question");
        }
    }
}

fn micros(elapsed: SignedDuration) -> u64 {
    u64::try_from(elapsed.as_micros()).unwrap_or(0)
}
