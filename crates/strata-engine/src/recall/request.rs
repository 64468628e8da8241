//! The recall request, its result, and the settings of recall.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::deadline::Deadline;
use crate::filter::Filter;
use crate::index::TextFingerprint;
use strata_core::error::{Error, Result};
use strata_core::id::{ItemId, RequestId, SessionId};
use strata_core::metric::{ErrorStage, LateStage};
use strata_core::nul::check_nul;
use strata_core::scope::{RecallScope, Scope};
use strata_core::store::{Item, ItemKinds};
use strata_core::trace::RetrievalPath;
use strata_core::trace::Trace;
use strata_language::cues;

/// The longest question, in characters. Longer texts are not questions, and their terms would match everything.
pub(crate) const MAX_QUERY_CHARS: usize = 10_000;

/// The most items one call may ask for.
pub const MAX_LIMIT: u32 = 1_000;

/// Recency and diversity choose from this many ranked items.
const POOL: usize = 50;

/// The settings of recall. Names and defaults come from the context-store design and the memory-proxy design.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallSettings {
    /// How far a question in a session looks, if neither the request nor its key says so.
    pub scope: RecallScope,
    /// The number of items, if the request names none (memory-proxy design).
    pub default_top_k: u32,
    /// Items with a lower relevance are left out (memory-proxy design).
    pub score_threshold: f32,
    /// The weight of recency (memory-proxy design).
    pub recency_weight: f32,
    /// The weight of relevance against diversity (memory-proxy design).
    pub mmr_lambda: f32,
    /// The minimum trigram similarity of a word: the default of `pg_trgm`, which the context-store design uses.
    pub min_similarity: f32,
    /// Questions with fewer characters skip the trigram search, because everything resembles them.
    pub min_query_len: usize,
    /// With fewer full-text hits in a session, recall searches all of the user's sessions. The upgrade trigger of the
    /// context-store design calls fewer than 3 hits insufficient.
    pub min_fts_hits: u32,
    /// The budget of the result, if the request names none (context-store design).
    pub budget: Budget,
    /// The index in memory serves users with up to this many changes. The store's own index serves larger users.
    pub index_max_items: u64,
    /// The maximum size in bytes of all indexes in memory together.
    pub index_bytes: usize,
    /// Whether the configured encoder reads Chinese. Strata's own does, through English glosses of its words.
    pub encoder_reads_chinese: bool,
    /// Whether a cross-encoder reorders the best candidates of a request that does not say.
    pub rerank: bool,
    /// Whether the reader reads the best candidates where the scores leave in doubt whether anything helps.
    pub second_look: bool,
}

impl Default for RecallSettings {
    fn default() -> Self {
        Self {
            scope: RecallScope::User,
            default_top_k: 5,
            score_threshold: 0.35,
            recency_weight: 0.2,
            mmr_lambda: 0.7,
            min_similarity: 0.3,
            min_query_len: 2,
            min_fts_hits: 3,
            budget: Budget::default(),
            index_max_items: 100_000,
            index_bytes: 256 * 1024 * 1024,
            encoder_reads_chinese: true,
            rerank: false,
            second_look: true,
        }
    }
}

/// A question to memory.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallRequest {
    /// The question.
    pub query: String,
    /// The session in which the question is asked.
    pub session: Option<SessionId>,
    /// Where to look. Without a scope: all of the user's sessions; if a session is named, its items are preferred by a
    /// weight. Items that all users share are included in both cases.
    pub scope: Option<Scope>,
    /// How far a question in a session may look, instead of the setting. [`RecallScope::Session`] narrows any scope: recall
    /// stays in the session, and leaves out memories that were learned in other sessions.
    pub within: Option<RecallScope>,
    /// Whether to include items that all users share if a narrower scope is named.
    pub shared: bool,
    /// Which kinds of items.
    pub kinds: ItemKinds,
    /// Whether trigrams find items that share no term with the question. That reads all of the user's items.
    pub similar: bool,
    /// A filter on the items.
    pub filter: Option<Filter>,
    /// Answers with the items that were visible at this time.
    pub as_of: Option<Timestamp>,
    /// The maximum number of items.
    pub limit: Option<u32>,
    /// In which order, and whether the guardrails apply.
    pub order: Order,
    /// Instead of the setting.
    pub score_threshold: Option<f32>,
    /// Instead of the setting.
    pub recency_weight: Option<f32>,
    /// Instead of the setting.
    pub mmr_lambda: Option<f32>,
    /// Whether a cross-encoder reorders the best candidates, instead of the setting.
    pub rerank: Option<bool>,
    /// The budget of the result. Without one, the budget of the settings applies; a larger `limit` raises its number of
    /// turns, and never its tokens.
    pub budget: Option<Budget>,
    /// The time until which recall waits for models.
    pub deadline: Option<Deadline>,
    /// Items that the caller shows already: they are excluded.
    pub shown: Shown,
    /// Whether to return a trace and to store it with the request.
    pub explain: bool,
}

/// Items and texts that a prompt shows already.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shown {
    /// Items.
    pub items: HashSet<ItemId>,
    /// Texts, from any session.
    pub texts: HashSet<TextFingerprint>,
}

/// The order of the returned items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The order for a model: recency, diversity and the budget are applied.
    #[default]
    Served,
    /// By relevance alone, after fusion, time and validity. Benchmarks measure this order.
    Relevance,
}

impl RecallRequest {
    /// A plain question over all of the user's items.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            session: None,
            scope: None,
            within: None,
            shared: false,
            kinds: ItemKinds::ALL,
            similar: true,
            filter: None,
            as_of: None,
            limit: None,
            order: Order::default(),
            score_threshold: None,
            recency_weight: None,
            mmr_lambda: None,
            rerank: None,
            budget: None,
            deadline: None,
            shown: Shown::default(),
            explain: false,
        }
    }

    /// Checks the request and fills in the defaults.
    pub(crate) fn plan(&self, settings: &RecallSettings) -> Result<RecallPlan> {
        let length = self.query.chars().count();
        if self.query.trim().is_empty() {
            return Err(Error::invalid("the query is empty; say what to look for"));
        }
        check_nul("`query`", self.query.as_str())?;
        if length > MAX_QUERY_CHARS {
            return Err(Error::too_large(format!(
                "the query has {length} characters; the most is {MAX_QUERY_CHARS}"
            )));
        }
        let limit = self.limit.unwrap_or(settings.default_top_k);
        if limit == 0 || limit > MAX_LIMIT {
            return Err(Error::invalid(format!("the limit is `{limit}`; it goes from 1 to {MAX_LIMIT}")));
        }
        let share = |name: &str, value: Option<f32>, default: f32| match value {
            Some(value) if !(0.0..=1.0).contains(&value) => {
                Err(Error::invalid(format!("`{name}` is `{value}`; it goes from 0 to 1")))
            }
            value => Ok(value.unwrap_or(default)),
        };
        let confined = self.is_confined(settings);
        let scope = match (self.scope, &self.session) {
            (Some(Scope::Session), None) => {
                return Err(Error::invalid("scope `session` needs a session; name one"));
            }
            (_, Some(_)) if confined => Scope::Session,
            (Some(scope), _) => scope,
            (None, _) => Scope::User,
        };
        Ok(RecallPlan {
            scope,
            confined,
            shared: self.shared || matches!(self.scope, None | Some(Scope::Global)),
            limit: limit as usize,
            pool: POOL.max(limit as usize),
            score_threshold: share("score_threshold", self.score_threshold, settings.score_threshold)?,
            recency_weight: share("recency_weight", self.recency_weight, settings.recency_weight)?,
            mmr_lambda: share("mmr_lambda", self.mmr_lambda, settings.mmr_lambda)?,
            budget: self.planned_budget(settings),
            encoder_reads_chinese: settings.encoder_reads_chinese,
            rerank: self.rerank.unwrap_or(settings.rerank),
            second_look: settings.second_look,
        })
    }

    /// Whether nothing of the user's other sessions may be returned. The setting decides only for a request that leaves
    /// the scope open.
    fn is_confined(&self, settings: &RecallSettings) -> bool {
        let by_default = self.scope.is_none().then_some(settings.scope);
        self.session.is_some() && self.within.or(by_default) == Some(RecallScope::Session)
    }

    /// The budget of the request or of the settings; none for benchmarks and other callers that show no model the items.
    fn planned_budget(&self, settings: &RecallSettings) -> Option<Budget> {
        let by_default = || (self.order == Order::Served).then(|| settings.budget.for_items(self.limit));
        self.budget.or_else(by_default)
    }
}

/// A checked request with all defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecallPlan {
    pub(crate) scope: Scope,
    /// Whether nothing of the user's other sessions may be returned.
    pub(crate) confined: bool,
    /// Whether to include items that all users share, in any scope.
    pub(crate) shared: bool,
    pub(crate) limit: usize,
    pub(crate) pool: usize,
    pub(crate) score_threshold: f32,
    pub(crate) recency_weight: f32,
    pub(crate) mmr_lambda: f32,
    pub(crate) budget: Option<Budget>,
    pub(crate) encoder_reads_chinese: bool,
    /// Whether a cross-encoder reorders the best candidates.
    pub(crate) rerank: bool,
    /// Whether the reader is asked in cases of doubt.
    pub(crate) second_look: bool,
}

impl RecallPlan {
    /// The session whose items are preferred: the request names it and no scope, and nothing confines recall.
    pub(crate) fn preferred_session<'a>(&self, request: &'a RecallRequest) -> Option<&'a SessionId> {
        request.session.as_ref().filter(|_| request.scope.is_none() && !self.confined)
    }

    /// Why the session alone cannot answer: the question points beyond it, or too few of its items match. The reason is
    /// reported; all of the user's items are ranked in any case.
    pub(crate) fn expansion(
        &self,
        request: &RecallRequest,
        term_hits: u32,
        settings: &RecallSettings,
    ) -> Option<String> {
        if let Some(cue) = cues::cue(&request.query) {
            return Some(format!("the question says «{cue}»"));
        }
        let least = settings.min_fts_hits;
        (term_hits < least).then(|| format!("{term_hits} full-text hits in the session, fewer than {least}"))
    }
}

/// The result of a recall.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// The id of the request in the log.
    pub request_id: RequestId,
    /// The items, best first.
    pub items: Vec<RecalledItem>,
    /// The retrieval path that found them.
    pub path: RetrievalPath,
    /// The scope that was used.
    pub scope: Scope,
    /// Why the scope was expanded.
    pub expansion: Option<String>,
    /// The number of full-text hits.
    pub fts_hits: u32,
    /// The number of trigram hits.
    pub trgm_hits: u32,
    /// The number of items compared by their vectors.
    pub vector_hits: u32,
    /// The number of tokens of all items.
    pub tokens: u32,
    /// Whether the budget shortened or dropped an item.
    pub truncated: bool,
    /// The stage that failed, if recall could answer without it.
    pub error_stage: Option<ErrorStage>,
    /// The stage that was too late to be used.
    pub late: Option<LateStage>,
    /// Why each candidate was or was not recalled, if the request asked for a trace.
    pub trace: Option<Trace>,
}

/// One recalled item.
#[derive(Debug, Clone, PartialEq)]
pub struct RecalledItem {
    /// The item.
    pub item: Item,
    /// The part of its text that fits the budget, if the whole text does not.
    pub shortened: Option<String>,
    /// The probability that the item helps to answer, from 0 to 1.
    pub score: f32,
    /// The same, also for an item that stands in without a score of its own.
    pub relevance: f32,
}
