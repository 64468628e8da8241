//! Gathers items for a prompt or a chat: asks recall, excludes items that are already shown, and makes the request's
//! row.

use std::collections::HashSet;
use std::time::Duration;

use strata_core::error::Error;
use strata_core::id::{ItemId, RequestId, SessionId, UserId};
use strata_core::metric::RequestMetric;
use strata_core::scope::{RecallScope, Scope};
use strata_core::store::Item;

use crate::line::{Days, item_head};

use super::{ChatQuestion, PromptRequest, Prompting};
use crate::index::TextFingerprint;
use crate::recall::{Budget, Deadline, MAX_LIMIT, MAX_QUERY_CHARS, RecallRequest, RecalledItem, Shown, cut};
use crate::recording::align::key;

/// A question for which memories are gathered.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    pub(crate) session: SessionId,
    pub(crate) question: String,
    pub(crate) scope: Option<Scope>,
    /// How far recall may look from the session, instead of the setting.
    pub(crate) within: Option<RecallScope>,
    /// How long recall may wait for models.
    pub(crate) deadline: Option<Duration>,
    /// The most items, instead of the setting.
    pub(crate) top_k: Option<u32>,
    pub(crate) recency_weight: Option<f32>,
    pub(crate) score_threshold: Option<f32>,
    pub(crate) rerank: Option<bool>,
    /// Items that the prompt already shows.
    pub(crate) shown_items: HashSet<ItemId>,
    /// Messages that the client itself shows the model, by their [`key`].
    pub(crate) shown_messages: HashSet<u64>,
    /// Texts that are already shown, regardless of their session.
    pub(crate) shown_texts: HashSet<TextFingerprint>,
    /// How many items that are already shown recall may find. This many more items are requested.
    pub(crate) shown_count: usize,
    /// Whether the items are the answer itself, without a model that standing instructions could guide. Such an instruction
    /// is then an item as any other.
    pub(crate) answers_alone: bool,
}

/// The items that recall found for a prompt, and the request's row.
pub(crate) struct Remembered {
    /// The best first, without items that the prompt already shows.
    pub(crate) items: Vec<RecalledItem>,
    /// Not logged yet.
    pub(crate) row: RequestMetric,
    /// The error, if recall failed.
    pub(crate) problem: Option<Error>,
}

impl Prompting {
    /// Asks recall and excludes items that are already shown. The row is not logged yet.
    pub(crate) async fn gather(&self, user: &UserId, id: RequestId, gathering: &Gathering) -> Remembered {
        let began = self.clock.now();
        let time = gathering.deadline.zip(self.recall.timer.as_ref());
        let deadline = time.map(|(time, timer)| Deadline::after(timer, time));
        let request = RecallRequest { deadline, ..self.recall_request(gathering) };
        let recalled = self.recall.ask_unnoted(user, &request, id).await;
        let elapsed = self.clock.now().duration_since(began);
        let mut row = self.recall.log.row(&request, id, recalled.as_ref().ok(), elapsed);
        let (found, problem) = match recalled {
            Ok(recalled) => (recalled.items, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let standing = match gathering.answers_alone {
            true => Vec::new(),
            false => self.instructions(user, gathering).await,
        };
        let is_standing = |item: &Item| standing.iter().any(|other| other.item.id() == item.id());
        let found =
            found.into_iter().filter(|found| !gathering.shows(&found.item) && !is_standing(&found.item));
        let found: Vec<RecalledItem> = found.take(self.wanted(gathering) as usize).collect();
        let mut items = self.within_budget(standing, found);
        row.truncated |= self.keep_within(&mut items, request.budget);
        row.keep_served(items.iter().map(|item| item.item.id()));
        row.context_items = items.len() as u32;
        row.estimated_tokens =
            items.iter().fold(0, |sum: u32, item| sum.saturating_add(self.line_tokens(item)));
        Remembered { items, row, problem }
    }

    /// The standing instructions as recalled items, without those that are already shown.
    async fn instructions(&self, user: &UserId, gathering: &Gathering) -> Vec<RecalledItem> {
        let item =
            |memory| RecalledItem { item: Item::Memory(memory), shortened: None, score: 1.0, relevance: 1.0 };
        let found = self.standing(user, &gathering.session, gathering.within).await;
        found.into_iter().map(item).filter(|item| !gathering.shows(&item.item)).collect()
    }

    /// The instructions, at most a third of the budget, and the other items that fit beside them.
    fn within_budget(&self, standing: Vec<RecalledItem>, found: Vec<RecalledItem>) -> Vec<RecalledItem> {
        let most = self.recall.settings.budget.max_tokens;
        let mut used = 0_u32;
        let mut items = Vec::with_capacity(standing.len() + found.len());
        for item in standing {
            let tokens = self.recall.tokens_shown(&item);
            if used.saturating_add(tokens) <= most / 3 {
                used += tokens;
                items.push(item);
            }
        }
        if items.is_empty() {
            return found;
        }
        for item in found {
            used = used.saturating_add(self.recall.tokens_shown(&item));
            if used > most {
                break;
            }
            items.push(item);
        }
        items
    }

    pub(crate) fn recall_request(&self, gathering: &Gathering) -> RecallRequest {
        let budget = self.recall.settings.budget;
        let query = &gathering.question;
        let asked = gathering.top_k.map(|top_k| top_k.clamp(1, MAX_LIMIT));
        let top_k = asked.unwrap_or(self.recall.settings.default_top_k);
        let spare = (gathering.shown_count as u32).min(top_k);
        let max_turns = budget.for_items(asked).max_turns + spare;
        // A scope that the setting confines stays open, so that the setting decides.
        let is_confined = gathering.within.unwrap_or(self.recall.settings.scope) == RecallScope::Session;
        RecallRequest {
            session: Some(gathering.session.clone()),
            scope: gathering.scope.filter(|_| !is_confined),
            within: gathering.within,
            shared: true,
            limit: Some((top_k + spare).min(MAX_LIMIT)),
            budget: Some(Budget { max_turns, ..budget }),
            recency_weight: gathering.recency_weight,
            score_threshold: gathering.score_threshold,
            rerank: gathering.rerank,
            shown: Shown { items: gathering.shown_items.clone(), texts: gathering.shown_texts.clone() },
            ..RecallRequest::new(cut(query, MAX_QUERY_CHARS).unwrap_or_else(|| query.clone()))
        }
    }

    /// The tokens of an item's line.
    fn line_tokens(&self, item: &RecalledItem) -> u32 {
        let head = item_head(&item.item, Days::Absolute);
        self.recall.tokens_shown(item).saturating_add(self.tokens.count(&head))
    }

    /// Drops the items whose lines do not fit the budget, and returns whether there were any. Recall counts texts
    /// without the beginnings of their lines.
    fn keep_within(&self, items: &mut Vec<RecalledItem>, budget: Option<Budget>) -> bool {
        let (before, mut left) = (items.len(), budget.map_or(u32::MAX, |budget| budget.max_tokens));
        items.retain(|item| {
            let fitting = left.checked_sub(self.line_tokens(item));
            left = fitting.unwrap_or(left);
            fitting.is_some()
        });
        items.len() < before
    }

    fn wanted(&self, gathering: &Gathering) -> u32 {
        gathering.top_k.unwrap_or(self.recall.settings.default_top_k)
    }
}

impl Gathering {
    /// The question of a prompt that already shows the items `shown`.
    pub(crate) fn of_prompt(request: &PromptRequest, shown: Vec<ItemId>, scope: Option<Scope>) -> Self {
        Self {
            session: request.session.clone(),
            question: request.question.clone(),
            scope,
            within: request.scope,
            deadline: request.deadline,
            // Recall may find the question itself too.
            shown_count: shown.len() + 1,
            shown_items: shown.into_iter().collect(),
            shown_texts: HashSet::from([TextFingerprint::new(&request.question)]),
            ..Self::default()
        }
    }

    /// The question of a chat whose client keeps the conversation.
    pub(crate) fn of_chat(chat: &ChatQuestion, scope: Option<Scope>) -> Self {
        Self {
            session: chat.session.clone(),
            question: chat.question.clone(),
            scope,
            within: chat.scope,
            deadline: chat.deadline,
            top_k: chat.top_k,
            recency_weight: chat.recency_weight,
            score_threshold: chat.score_threshold,
            rerank: chat.rerank,
            shown_count: chat.shown.len(),
            shown_messages: chat.shown.clone(),
            shown_texts: chat.texts.clone(),
            ..Self::default()
        }
    }

    /// Whether an item is already shown: among the messages, or as the question itself.
    fn shows(&self, item: &Item) -> bool {
        let is_message = match item {
            Item::Turn(turn) => self.shown_messages.contains(&key(turn.role, &turn.content, &turn.notes)),
            Item::Memory(_) | Item::Summary(_) => false,
        };
        is_message || self.shown_items.contains(&item.id()) || item.content().trim() == self.question.trim()
    }
}
