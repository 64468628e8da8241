//! Candidates: the items that may answer a question, from one of two sources behind one interface.
//!
//! The index in memory ([`super::index_candidates`]) ranks exactly, for users up to a size; the store's own text index
//! ([`super::store_candidates`]) serves larger users. [`Recall::find_candidates`] chooses the source and reports, for both,
//! whether the session of the question could not have answered it alone.

use std::sync::Arc;

use async_trait::async_trait;

use strata_core::error::Result;
use strata_core::id::{ItemId, UserId};
use strata_core::metric::{ErrorStage, LateStage};
use strata_core::scope::Scope;
use strata_core::trace::RetrievalPath;

use super::Recall;
use super::exclusions::ExclusionReason;
use super::index_candidates::IndexSource;
use super::rank::Ranked;
use super::request::{RecallPlan, RecallRequest};
use super::store_candidates::StoreSource;
use crate::index::FreshIndex;

/// Where candidates come from.
#[async_trait]
pub(super) trait CandidateSource: Send + Sync {
    /// How many of the session's items share a term with the question. The count may stop at `enough`.
    async fn session_hits(&self, enough: u32) -> Result<u32>;

    /// The candidates of the plan's scope, best first.
    async fn candidates(&self, plan: &RecallPlan) -> Result<CandidateSet>;
}

impl Recall {
    /// The candidates of a request. A question in a session ranks the session and all other items of the user together; the
    /// session is preferred by a weight and hides nothing.
    pub(super) async fn find_candidates(
        &self,
        user: &UserId,
        request: &Arc<RecallRequest>,
        plan: &RecallPlan,
    ) -> Result<CandidateSet> {
        let source = self.source(user, request, plan).await?;
        let expansion = match plan.preferred_session(request) {
            Some(_) => {
                let hits = source.session_hits(self.settings.min_fts_hits).await?;
                plan.expansion(request, hits, &self.settings)
            }
            None => None,
        };
        let found = source.candidates(plan).await?;
        Ok(CandidateSet { expansion, ..found })
    }

    /// The index in memory, or the store's own index for an owner who is too large for it.
    async fn source<'a>(
        &'a self,
        user: &UserId,
        request: &Arc<RecallRequest>,
        plan: &RecallPlan,
    ) -> Result<Box<dyn CandidateSource + 'a>> {
        let Some(indexes) = &self.indexes else {
            let owners = plan.scope.owners(user, plan.shared);
            return Ok(Box::new(StoreSource::new(self, owners, request)));
        };
        let (mut owners, mut heads) = (Vec::new(), Vec::new());
        for owner in plan.scope.owners(user, plan.shared) {
            let head = self.store.head(&owner).await?;
            // In most stores, no items are shared between all users.
            if owner == *user || head.revision > 0 {
                owners.push(owner);
                heads.push(head);
            }
        }
        if heads.iter().any(|head| head.revision > self.settings.index_max_items) {
            return Ok(Box::new(StoreSource::new(self, owners, request)));
        }
        Ok(Box::new(IndexSource::load(self, indexes, owners, &heads, request).await?))
    }
}

/// The candidates of a recall, and how they were found.
pub(crate) struct CandidateSet {
    /// Best first.
    pub(crate) candidates: Vec<Candidate>,
    /// Items that match and are excluded, best first, with the reason.
    pub(crate) excluded: Vec<(Candidate, ExclusionReason)>,
    /// The indexes that the candidates point into.
    pub(crate) indexes: Vec<FreshIndex>,
    /// Whether the question names a time.
    pub(crate) names_time: bool,
    /// Whether the question is a task that refers to nothing of the user's own ([`cues::is_general_request`]).
    ///
    /// [`cues::is_general_request`]: strata_language::cues::is_general_request
    pub(crate) is_general: bool,
    /// Whether the first candidates are all memories of a kind that the question asks for.
    pub(crate) is_list: bool,
    pub(crate) scope: Scope,
    /// The owners whose items were searched.
    pub(crate) owners: Vec<UserId>,
    pub(crate) expansion: Option<String>,
    pub(crate) term_hits: u32,
    pub(crate) similar_hits: u32,
    pub(crate) vector_hits: u32,
    pub(crate) path: RetrievalPath,
    pub(crate) error_stage: Option<ErrorStage>,
    pub(crate) late: Option<LateStage>,
}

impl Default for CandidateSet {
    fn default() -> Self {
        Self {
            candidates: Vec::new(),
            excluded: Vec::new(),
            indexes: Vec::new(),
            names_time: false,
            is_general: false,
            is_list: false,
            scope: Scope::User,
            owners: Vec::new(),
            expansion: None,
            term_hits: 0,
            similar_hits: 0,
            vector_hits: 0,
            path: RetrievalPath::None,
            error_stage: None,
            late: None,
        }
    }
}

/// One item that may answer the question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) id: ItemId,
    /// The time it was said or learned, in microseconds.
    pub(crate) created_at: i64,
    pub(crate) score: f32,
    /// The probability that it helps to answer.
    pub(crate) relevance: f32,
    /// Its standing among the candidates, from 0 to 1.
    pub(crate) standing: f32,
    /// For an item ranked in memory: the position of its index in [`CandidateSet::indexes`], and its ranking.
    pub(crate) ranked: Option<(usize, Ranked)>,
    /// The reader's judgement whether it answers, as log odds, if it was read.
    pub(crate) judged: Option<f32>,
    /// The memory that is current now, if this item is outdated.
    pub(crate) replaced_by: Option<ItemId>,
}

impl Candidate {
    /// A candidate that the index in memory has not ranked.
    pub(super) fn unranked(id: ItemId, created_at: i64, score: f32, relevance: f32) -> Self {
        Self {
            id,
            created_at,
            score,
            relevance,
            standing: relevance,
            ranked: None,
            judged: None,
            replaced_by: None,
        }
    }
}
