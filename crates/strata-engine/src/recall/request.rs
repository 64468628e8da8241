//! What is asked of recall, what it gives back, and its settings.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::budget::Budget;
use crate::filter::Filter;
use crate::index::Saying;
use strata_core::error::{Error, Result};
use strata_core::id::{ItemId, RequestId, SessionId};
use strata_core::metric::ErrorStage;
use strata_core::scope::Scope;
use strata_core::store::{Item, ItemKinds};
use strata_core::trace::RetrievalPath;
use strata_core::trace::Trace;
use strata_language::cues;

/// The longest question, in characters: longer texts are no questions, and their terms would match everything.
pub const MAX_QUERY_CHARS: usize = 10_000;

/// The most items one call may ask for.
pub const MAX_LIMIT: u32 = 1_000;

/// How many ranked items recency and diversity choose from.
const POOL: usize = 50;

/// How recall works. Names and defaults are the documents'.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallSettings {
    /// How many items to give where the caller does not say (document 4).
    pub default_top_k: u32,
    /// Items less relevant than this are left out (document 4).
    pub score_threshold: f32,
    /// How much being recent counts (document 4).
    pub recency_weight: f32,
    /// How much relevance counts against diversity (document 4).
    pub mmr_lambda: f32,
    /// The least trigram similarity of a word: `pg_trgm`'s own default, which document 3 builds on.
    pub min_similarity: f32,
    /// Questions shorter than this many characters do not go to the trigrams: everything resembles them.
    pub min_query_len: usize,
    /// With fewer full-text hits than this in a session, all of the user's sessions are searched (document 3's upgrade
    /// trigger calls fewer than 3 hits insufficient).
    pub min_fts_hits: u32,
    /// How much may be given back where the caller does not say (document 3).
    pub budget: Budget,
    /// Up to so many changes of a user's items the index in memory serves; beyond, the store's own.
    pub index_max_items: u64,
    /// The most bytes that all indexes in memory take together.
    pub index_bytes: usize,
    /// Whether the configured encoder knows Chinese. Strata's own does not.
    pub encoder_reads_chinese: bool,
}

impl Default for RecallSettings {
    fn default() -> Self {
        Self {
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
            encoder_reads_chinese: false,
        }
    }
}

/// A question to memory.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallRequest {
    /// The question.
    pub query: String,
    /// The session it is asked in.
    pub session: Option<SessionId>,
    /// Where to look; without it, the session if one is named, widened when that has too little, else all of the user's, and
    /// in any case what all users share.
    pub scope: Option<Scope>,
    /// Whether to look at what all users share although a narrower scope is named.
    pub shared: bool,
    /// Which kinds of items.
    pub kinds: ItemKinds,
    /// Which of them.
    pub filter: Option<Filter>,
    /// What could be seen then instead of now.
    pub as_of: Option<Timestamp>,
    /// How many items at the most.
    pub limit: Option<u32>,
    /// In which order, and whether the guardrails apply.
    pub order: Order,
    /// Instead of the setting.
    pub score_threshold: Option<f32>,
    /// Instead of the setting.
    pub recency_weight: Option<f32>,
    /// Instead of the setting.
    pub mmr_lambda: Option<f32>,
    /// How much may be given back; without it, the setting's budget unless `limit` says how many items are wanted.
    pub budget: Option<Budget>,
    /// What whoever asks has in front of them anyway: it takes no place.
    pub shown: Shown,
    /// Whether to give a trace back and keep it with the request.
    pub explain: bool,
}

/// What a prompt shows already.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shown {
    /// Items.
    pub items: HashSet<ItemId>,
    /// Texts, in whichever session they were said.
    pub texts: HashSet<Saying>,
}

/// In which order items come back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// As they are shown to a model: recency, diversity and the budget applied.
    #[default]
    Served,
    /// By relevance alone, after fusion, time and validity: what benchmarks measure.
    Relevance,
}

impl RecallRequest {
    /// A plain question over all of the user's items.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            session: None,
            scope: None,
            shared: false,
            kinds: ItemKinds::ALL,
            filter: None,
            as_of: None,
            limit: None,
            order: Order::default(),
            score_threshold: None,
            recency_weight: None,
            mmr_lambda: None,
            budget: None,
            shown: Shown::default(),
            explain: false,
        }
    }

    /// Checks the request and settles what it leaves open.
    pub(crate) fn plan(&self, settings: &RecallSettings) -> Result<Plan> {
        let length = self.query.chars().count();
        if self.query.trim().is_empty() {
            return Err(Error::invalid("the query is empty; say what to look for"));
        }
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
        let scope = match (self.scope, &self.session) {
            (Some(Scope::Session), None) => {
                return Err(Error::invalid("scope `session` needs a session; name one"));
            }
            (Some(scope), _) => scope,
            (None, Some(_)) => Scope::Session,
            (None, None) => Scope::User,
        };
        Ok(Plan {
            scope,
            shared: self.shared || self.scope.is_none(),
            limit: limit as usize,
            pool: POOL.max(limit as usize),
            score_threshold: share("score_threshold", self.score_threshold, settings.score_threshold)?,
            recency_weight: share("recency_weight", self.recency_weight, settings.recency_weight)?,
            mmr_lambda: share("mmr_lambda", self.mmr_lambda, settings.mmr_lambda)?,
            budget: self.budget.or_else(|| self.limit.is_none().then_some(settings.budget)),
            encoder_reads_chinese: settings.encoder_reads_chinese,
        })
    }
}

/// A request with nothing left open.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub(crate) scope: Scope,
    /// Whether to look at what all users share, whatever the scope.
    pub(crate) shared: bool,
    pub(crate) limit: usize,
    pub(crate) pool: usize,
    pub(crate) score_threshold: f32,
    pub(crate) recency_weight: f32,
    pub(crate) mmr_lambda: f32,
    pub(crate) budget: Option<Budget>,
    pub(crate) encoder_reads_chinese: bool,
}

impl Plan {
    /// Whether the caller leaves it open to look beyond the session.
    pub(crate) fn may_expand(&self, request: &RecallRequest) -> bool {
        self.scope == Scope::Session && request.scope.is_none()
    }

    /// Why to look beyond the session, if it may be done.
    pub(crate) fn expansion(
        &self,
        request: &RecallRequest,
        term_hits: u32,
        settings: &RecallSettings,
    ) -> Option<String> {
        if !self.may_expand(request) {
            return None;
        }
        if let Some(cue) = cues::cue(&request.query) {
            return Some(format!("the question says «{cue}»"));
        }
        let least = settings.min_fts_hits;
        (term_hits < least).then(|| format!("{term_hits} full-text hits in the session, fewer than {least}"))
    }
}

/// What recall brought back.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// The id under which the request is known.
    pub request_id: RequestId,
    /// The items, best first.
    pub items: Vec<RecalledItem>,
    /// Which path gave them.
    pub path: RetrievalPath,
    /// The scope that was used.
    pub scope: Scope,
    /// Why the scope was widened.
    pub expansion: Option<String>,
    /// Hits of full text.
    pub fts_hits: u32,
    /// Hits of trigrams.
    pub trgm_hits: u32,
    /// Items compared by their vectors.
    pub vector_hits: u32,
    /// The tokens of the items.
    pub tokens: u32,
    /// Whether the budget cut something.
    pub truncated: bool,
    /// What failed without failing the recall.
    pub error_stage: Option<ErrorStage>,
    /// Why each candidate was or was not recalled, where it was asked for.
    pub trace: Option<Trace>,
}

/// One recalled item.
#[derive(Debug, Clone, PartialEq)]
pub struct RecalledItem {
    /// What it is.
    pub item: Item,
    /// What of its text fits the budget, where that is not all.
    pub shortened: Option<String>,
    /// How good a choice it is: relevance and recency together, from 0 to 1.
    pub score: f32,
    /// How well it fits the question, from 0 to 1.
    pub relevance: f32,
}
