//! Memory for a chat whose client keeps the conversation: the block in front of the question, and the request's row.

use std::collections::HashSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{Gathering, Prompting, Remembered};
use crate::index::TextFingerprint;
use crate::prompt::{Message, PromptRules, build_summary_with, memory_block};
use crate::recording::session_now;
use strata_core::error::Result;
use strata_core::id::{ItemId, RequestId, SessionId, UserId};
use strata_core::metric::RequestMetric;
use strata_core::scope::{RecallScope, Scope};
use strata_core::session::Session;
use strata_core::state::State;
use strata_core::store::{MemoryQuery, MemorySelect, TurnQuery};
use strata_core::turn::Role;

/// A client's question to its model.
#[derive(Debug, Clone, Default)]
pub struct ChatQuestion {
    /// The session it is asked in.
    pub session: SessionId,
    /// The text of the question.
    pub question: String,
    /// The messages that the client itself shows the model, by their [`key`](crate::align::key), without
    /// instructions.
    pub shown: HashSet<u64>,
    /// The texts of these messages. Items with these texts are excluded: already shown.
    pub texts: HashSet<TextFingerprint>,
    /// The most items, instead of the setting.
    pub top_k: Option<u32>,
    /// The weight of recency, instead of the setting.
    pub recency_weight: Option<f32>,
    /// The lowest relevance, instead of the setting.
    pub score_threshold: Option<f32>,
    /// Whether a cross-encoder reorders the best candidates, instead of the setting.
    pub rerank: Option<bool>,
    /// How far recall may look from the session, instead of the setting.
    pub scope: Option<RecallScope>,
    /// How long recall may wait for models. Defaults to no limit.
    pub deadline: Option<Duration>,
}

/// A session as it was before its question was recorded.
#[derive(Debug, Clone)]
pub struct ChatSnapshot {
    /// Turns recorded after this moment are not in the snapshot.
    taken_at: Timestamp,
    turn_count: u64,
    state: State,
    epoch: u64,
}

/// The memory block for a question.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatMemory {
    /// The block that goes in front of the question, in the form of [`crate::prompt::chat`]; none if nothing is
    /// known.
    pub block: Option<String>,
    /// The items that the block was made of.
    pub sources: BlockSources,
    /// The row of the request. [`Prompting::note_chat`] logs it after the model has answered.
    pub row: RequestMetric,
}

/// The items that a memory block was made of. A caller that keeps a block to send it again asks [`Prompting::may_repeat`] first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockSources {
    epoch: u64,
    items: Vec<ItemId>,
}

impl Prompting {
    /// Reads the session and brings the user's index up to date. Afterwards the question may be recorded while
    /// [`Prompting::chat_memory`] ranks.
    pub async fn chat_snapshot(&self, user: &UserId, session: &SessionId) -> Result<ChatSnapshot> {
        // Before anything else is read, so that whatever is destroyed from now on is noticed.
        let head = self.recording.store.head(user).await?;
        let Session { turn_count, state, .. } =
            session_now(self.recording.store.as_ref(), self.clock.as_ref(), user, session).await?;
        self.recall.freshen_to(user, head).await?;
        Ok(ChatSnapshot { taken_at: self.clock.now(), turn_count, state, epoch: head.epoch })
    }

    /// Makes the memory block for a question, without items that the client already shows the model.
    pub async fn chat_memory(
        &self,
        user: &UserId,
        id: RequestId,
        question: &ChatQuestion,
        snapshot: ChatSnapshot,
    ) -> Result<ChatMemory> {
        let began = self.clock.now();
        let ChatSnapshot { taken_at, turn_count, mut state, epoch } = snapshot;
        // A client that shows the whole session has room for items of other sessions.
        let shows_all = question.shown.len() as u64 > turn_count;
        let gathering = Gathering::of_chat(question, shows_all.then_some(Scope::User));
        let Remembered { items, mut row, problem } = self.gather(user, id, &gathering).await;
        if let Some(problem) = problem {
            return Err(problem);
        }
        row.created_at = taken_at;
        row.prompt.raw_tokens = (state.observed.tokens > 0).then_some(state.observed.tokens);
        let PromptRules { settings, rules } = &*self.prompts;
        rules.observe_turn(Role::User, &question.question, turn_count, &settings.filter, &mut state);
        let summary = match shows_all {
            true => String::new(),
            false => {
                let mut unfolded = self.recording.unfolded(user, &question.session, turn_count).await?;
                // The client shows the last turns.
                let first_shown = turn_count.saturating_sub(question.shown.len() as u64);
                self.history(user, &question.session, &mut unfolded, Some(first_shown)).await?
            }
        };
        let block = memory_block(&state, &summary, &items, rules);
        let sources = BlockSources { epoch, items: items.iter().map(|item| item.item.id()).collect() };
        row.latency_retrieval_us = micros(self.clock.now().duration_since(began));
        Ok(ChatMemory { block, sources, row })
    }

    /// Whether a block may be sent again: nothing of the user was destroyed since it was made, and none of its items was
    /// taken out of recall.
    pub async fn may_repeat(&self, user: &UserId, sources: &BlockSources) -> Result<bool> {
        let BlockSources { epoch, items } = sources;
        if self.recording.store.head(user).await?.epoch != *epoch {
            return Ok(false);
        }
        let mut left: HashSet<ItemId> =
            items.iter().filter(|item| !matches!(item, ItemId::Summary(_))).copied().collect();
        // Items of the shared user stand beside the user's own.
        for owner in [user, &UserId::global()] {
            if !left.is_empty() {
                self.remove_visible(owner, &mut left).await?;
            }
        }
        Ok(left.is_empty())
    }

    /// Removes those of the items that the owner has and that recall may see.
    async fn remove_visible(&self, owner: &UserId, items: &mut HashSet<ItemId>) -> Result<()> {
        let store = self.recording.store.as_ref();
        let (mut turns, mut memories) = (Vec::new(), Vec::new());
        for item in &*items {
            match item {
                ItemId::Turn(id) => turns.push(*id),
                ItemId::Memory(id) => memories.push(*id),
                ItemId::Summary(_) => {}
            }
        }
        if !turns.is_empty() {
            let turns = store.turns(owner, &TurnQuery::Ids(turns)).await?;
            for turn in turns.iter().filter(|turn| turn.hidden.is_none()) {
                items.remove(&ItemId::Turn(turn.id));
            }
        }
        if !memories.is_empty() {
            let memories = store.memories(owner, &MemoryQuery::new(MemorySelect::Ids(memories))).await?;
            for memory in memories.iter().filter(|memory| memory.hidden.is_none()) {
                items.remove(&ItemId::Memory(memory.id));
            }
        }
        Ok(())
    }

    /// The row of a chat without a memory block: because there was no question in words, or, with `failed`, because
    /// recall failed or took too long.
    pub fn chat_without_memory(
        &self,
        id: RequestId,
        question: &ChatQuestion,
        elapsed: Duration,
        failed: bool,
    ) -> RequestMetric {
        let request = self.recall_request(&Gathering::of_chat(question, None));
        let elapsed = SignedDuration::try_from(elapsed).unwrap_or_default();
        let mut row = self.recall.log.row(&request, id, None, elapsed);
        row.keep_served(std::iter::empty());
        RequestMetric { error_stage: row.error_stage.filter(|_| failed), unasked: !failed, ..row }
    }

    /// A block with a summary of messages that did not fit a budget. It has at most `max_tokens` tokens, and is the
    /// same for the same messages. `None` if the messages have no text or nothing of them fits.
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
            // The limit shrinks in proportion to the excess, and by at least a tenth, so that the loop ends.
            let chars = summary.chars().count() as u64 * u64::from(max_tokens) / u64::from(tokens);
            bound.max_chars = bound.max_chars.min(summary.chars().count()) * 9 / 10;
            bound.max_chars = bound.max_chars.min(usize::try_from(chars).unwrap_or(usize::MAX));
        }
    }

    /// The number of tokens of a text, by the configured counter.
    pub fn count_tokens(&self, text: &str) -> u32 {
        self.tokens.count(text)
    }

    /// Logs the row of a chat's request, which is written in the background like those of searches. Then brings the
    /// user's index up to date, at a time when no request waits for it.
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
