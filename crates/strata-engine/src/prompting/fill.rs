//! Recent turns that fill the budget: a prompt shows the whole conversation as it was said if that fits, and otherwise as
//! many of the last turns as their share of the budget holds. The summary then stands for the others.
//!
//! This is [`History::Auto`]. The other histories show the turns that their designs demand.

use super::{PromptRequest, Prompting};
use crate::prompt::{
    Message, PromptFormat, PromptRules, context_texts, filter_content_with, recent_start, without_said,
};
use crate::recording::Unfolded;
use crate::withdrawn::Withdrawn;
use std::sync::Arc;
use strata_core::error::Result;
use strata_core::id::{SessionId, UserId};
use strata_core::state::State;
use strata_core::store::TurnQuery;
use strata_core::turn::Turn;

/// The tokens of the beginning of a turn's line, `[2023-05-08 Caroline] `, with the end of the line.
const HEAD_TOKENS: u32 = 14;

/// The tokens from which a turn is counted as it is shown, without logs and long code. Shorter ones seldom hold any.
const COUNTED: u32 = 200;

/// The number of turns that one read takes.
const CHUNK: u64 = 64;

/// A conversation of more tokens than this many budgets is not read to its beginning. Logs and code, which no prompt
/// shows, make most of a long conversation shorter by less.
const TOO_LONG: u64 = 4;

/// The share of the budget for what recall finds, if the conversation does not fit: a quarter.
pub(super) const RECALL_SHARE: u32 = 4;

/// The share of the budget for the known facts, if the prompt is too long: a quarter.
const CONTEXT_SHARE: u32 = 4;

/// The share of the rest for the last turns: a half. The summary has the other half.
const TURNS_SHARE: u32 = 2;

impl Prompting {
    /// Lets a prompt show as many of the last turns as fit, and takes them out of the summary. `beside` are tokens of the
    /// budget that other layers need in any case.
    pub(super) async fn fill(
        &self,
        user: &UserId,
        request: &PromptRequest,
        state: &State,
        unfolded: Unfolded,
        beside: u32,
    ) -> Result<Unfolded> {
        if unfolded.skipped > 0 || unfolded.turns.is_empty() {
            return Ok(unfolded);
        }
        let PromptRules { settings, rules } = &*self.prompts;
        let budget = request.max_tokens.unwrap_or(settings.max_tokens);
        let whole = budget.saturating_sub(beside);
        let contexts = self.counted(context_texts(state, rules)).await?.min(budget / CONTEXT_SHARE);
        let part = whole.saturating_sub(contexts).saturating_sub(budget / RECALL_SHARE) / TURNS_SHARE;
        let may_fit = state.observed.tokens <= TOO_LONG * u64::from(whole);
        let most = if may_fit { whole } else { part };
        let Unfolded { summary, turns, .. } = unfolded;
        let mut turns = self.with_tokens(turns).await?;
        let covered = summary.as_ref().map_or(0, |summary| summary.end_seq + 1);
        let is_whole = self.read_back(user, &request.session, covered, most, &mut turns).await?;
        let shown =
            if is_whole && sum(&turns) <= whole { 0 } else { self.first_shown(&turns, part, request) };
        let (left, turns) = (turns[..shown].to_vec(), turns.split_off(shown));
        let left = left.into_iter().map(|(_, turn)| turn).filter(|turn| turn.seq >= covered).collect();
        let turns: Vec<Turn> = turns.into_iter().map(|(_, turn)| turn).collect();
        let is_whole = is_whole && shown == 0;
        let end = turns.last().map_or(0, |turn| turn.seq + 1);
        let store = self.recording.store.as_ref();
        let withdrawn = Withdrawn::read(store, user, &request.session, 0..end).await?;
        let mut unfolded = Unfolded { summary, skipped: 0, turns, uncovered: String::new() };
        if let Some(version) = &mut unfolded.summary {
            let said = unfolded.turns.iter().map(|turn| turn.content.as_str());
            version.text = withdrawn.removed_from_summary(&without_said(&version.text, said, is_whole));
        }
        unfolded.summary = unfolded.summary.filter(|version| !is_whole || !version.text.is_empty());
        let uncovered = self.recording.entries_for(left, &state.observed);
        unfolded.uncovered = withdrawn.removed_from_summary(&uncovered);
        self.remove_withdrawn(&withdrawn, &mut unfolded.turns);
        Ok(unfolded)
    }

    /// Puts turns before the first one in front, until they have more than `most` tokens. Returns whether all of them are
    /// there.
    async fn read_back(
        &self,
        user: &UserId,
        session: &SessionId,
        covered: u64,
        most: u32,
        turns: &mut Vec<(u32, Turn)>,
    ) -> Result<bool> {
        let mut first = turns.first().map_or(covered, |(_, turn)| turn.seq).min(covered);
        let mut tokens = sum(turns);
        while first > 0 && tokens <= most {
            let from = first.saturating_sub(CHUNK);
            let limit = u32::try_from(first - from).unwrap_or(u32::MAX);
            let query = TurnQuery::Range { session: session.clone(), after: from.checked_sub(1), limit };
            let read = self.recording.store.turns(user, &query).await?;
            let read = read.into_iter().filter(|turn| turn.is_in_conversation() && turn.seq < first);
            let read = self.with_tokens(read.collect()).await?;
            tokens = tokens.saturating_add(sum(&read));
            turns.splice(..0, read);
            first = from;
        }
        Ok(first == 0)
    }

    /// Turns with the tokens that a prompt needs for them. Long ones are counted through the compute port.
    async fn with_tokens(&self, turns: Vec<Turn>) -> Result<Vec<(u32, Turn)>> {
        let is_counted = |turn: &Turn| turn.token_count >= COUNTED;
        let bytes = turns.iter().filter(|turn| is_counted(turn)).map(|turn| turn.content.len()).sum();
        let (prompts, tokens) = (Arc::clone(&self.prompts), Arc::clone(&self.tokens));
        let shown = move |turn: Turn| {
            let count = match is_counted(&turn) {
                true => tokens.count(&filter_content_with(&turn.content, &prompts.settings.filter)),
                false => turn.token_count,
            };
            (count.saturating_add(HEAD_TOKENS), turn)
        };
        self.computed(bytes, move || turns.into_iter().map(shown).collect()).await
    }

    /// The place of the first turn that is shown: of the recent exchanges, or before them if the turns until there have
    /// at most `part` tokens. In a chat it moves in steps, so that the beginning changes seldom.
    fn first_shown(&self, turns: &[(u32, Turn)], part: u32, request: &PromptRequest) -> usize {
        let settings = &self.prompts.settings;
        let messages: Vec<Message> = turns.iter().map(|(_, turn)| Message::from(turn.clone())).collect();
        let recent = recent_start(&messages, settings.recent_exchanges);
        let mut left = part;
        let fitting = turns.iter().rev().take_while(|(tokens, _)| match left.checked_sub(*tokens) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        });
        let first = turns.len() - fitting.count();
        if request.format == PromptFormat::Flat {
            return first.min(recent);
        }
        let step = settings.fold_step.max(1) as u64;
        let is_step = |(_, turn): &(u32, Turn)| turn.seq.is_multiple_of(step);
        let next = turns[first..].iter().position(is_step).map_or(recent, |ahead| first + ahead);
        next.min(recent)
    }

    /// Removes what a person has taken back. The recent exchanges stay as they were said.
    fn remove_withdrawn(&self, withdrawn: &Withdrawn, turns: &mut [Turn]) {
        if withdrawn.is_empty() {
            return;
        }
        let messages: Vec<Message> = turns.iter().cloned().map(Message::from).collect();
        let recent = recent_start(&messages, self.prompts.settings.recent_exchanges);
        for turn in &mut turns[..recent] {
            turn.content = withdrawn.removed_from(&turn.content).into_owned();
        }
    }
}

fn sum(turns: &[(u32, Turn)]) -> u32 {
    turns.iter().fold(0, |sum, (tokens, _)| sum.saturating_add(*tokens))
}
