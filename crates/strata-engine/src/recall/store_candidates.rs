//! Candidates from the store's own text index, for users who are too large for the index in memory, and the trigram
//! fallback for questions without a known word.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::Recall;
use super::calibration::{QuestionShape, by_coverage};
use super::candidates::{Candidate, CandidateSet, CandidateSource};
use super::exclusions::exclude_hits;
use super::rank::SESSION_WEIGHT;
use super::request::{Order, RecallPlan, RecallRequest};
use crate::index::{TermHash, is_latin, question_terms};
use strata_core::error::Result;
use strata_core::id::{ItemId, UserId};
use strata_core::scope::Scope;
use strata_core::store::{Hit, TextMatch, TextQuery};
use strata_core::trace::RetrievalPath;
use strata_language::cues;

/// The standing of a store's hits by position, as a logistic curve (height, slope): it follows the ranking in memory.
const STORE_STANDING: (f32, f32) = (6.0, 2.0);

/// The search reads this many times the wanted number of hits, because some are excluded.
pub(super) const EXCLUDED_TIMES: usize = 4;

/// A hit, and whether it belongs to the user (and not to all users).
pub(super) struct FoundHit {
    pub(super) hit: Hit,
    pub(super) own: bool,
}

/// The store's own text index, over the items of all owners.
pub(super) struct StoreSource<'a> {
    recall: &'a Recall,
    owners: Vec<UserId>,
    request: Arc<RecallRequest>,
    /// The candidates of the preferred session, kept after its hits were counted.
    in_session: Mutex<Option<CandidateSet>>,
}

impl<'a> StoreSource<'a> {
    pub(super) fn new(recall: &'a Recall, owners: Vec<UserId>, request: &Arc<RecallRequest>) -> Self {
        Self { recall, owners, request: Arc::clone(request), in_session: Mutex::default() }
    }

    async fn search(&self, scope: Scope, pool: usize) -> Result<CandidateSet> {
        // Some of the best hits may be excluded.
        let request = &*self.request;
        let query = text_query(request, scope, TextMatch::Words, pool * EXCLUDED_TIMES);
        let hits = self.recall.search_in(&self.owners, query, request).await?;
        let all = hits.len();
        let (mut hits, excluded) = match request.order {
            Order::Served => exclude_hits(request, hits),
            Order::Relevance => (hits, Vec::new()),
        };
        let all = (all - excluded.iter().filter(|(_, reason)| reason.is_no_hit()).count()).min(pool);
        hits.truncate(pool);
        // Shared and excluded items do not count as hits of a session.
        let own = hits.iter().filter(|hit| hit.own).count();
        let term_hits = if scope == Scope::Session { own } else { all };
        let asked = AskedTerms::new(&request.query);
        let found = hits.iter().enumerate();
        let candidates: Vec<Candidate> = found
            .map(|(place, found)| Candidate {
                standing: standing_at(place),
                ..candidate(&found.hit, asked.probability(found.hit.item.content()))
            })
            .collect();
        Ok(CandidateSet {
            term_hits: term_hits as u32,
            excluded: excluded.iter().map(|(hit, reason)| (candidate(hit, 1.0), *reason)).collect(),
            scope,
            is_general: cues::is_general_request(&request.query),
            owners: self.owners.clone(),
            path: if candidates.is_empty() { RetrievalPath::None } else { RetrievalPath::Fts },
            candidates,
            ..CandidateSet::default()
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<CandidateSet>> {
        self.in_session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl CandidateSource for StoreSource<'_> {
    async fn session_hits(&self, _enough: u32) -> Result<u32> {
        let plan = self.request.plan(&self.recall.settings)?;
        let found = self.search(Scope::Session, plan.pool).await?;
        let hits = found.term_hits;
        *self.lock() = Some(found);
        Ok(hits)
    }

    async fn candidates(&self, plan: &RecallPlan) -> Result<CandidateSet> {
        let found = self.search(plan.scope, plan.pool).await?;
        let in_session = self.lock().take();
        let mut found = match in_session {
            Some(in_session) => prefer(found, in_session, plan.pool),
            None => found,
        };
        self.recall.add_nearest(&self.request, plan, &mut found).await?;
        self.recall.add_identified(&self.request, &mut found).await?;
        Ok(found)
    }
}

/// Merges the candidates of the preferred session into those of all sessions, and prefers them by the session's weight.
fn prefer(mut found: CandidateSet, in_session: CandidateSet, pool: usize) -> CandidateSet {
    let preferred: HashSet<ItemId> = in_session.candidates.iter().map(|candidate| candidate.id).collect();
    found.candidates.retain(|candidate| !preferred.contains(&candidate.id));
    found.candidates.extend(in_session.candidates.into_iter().map(|mut candidate| {
        candidate.score *= 1.0 + SESSION_WEIGHT;
        candidate
    }));
    found.candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.id.cmp(&b.id)));
    found.candidates.truncate(pool);
    for (place, candidate) in found.candidates.iter_mut().enumerate() {
        candidate.standing = standing_at(place);
    }
    if found.path == RetrievalPath::None {
        found.path = in_session.path;
    }
    found
}

/// The terms of a question, to be found in the texts of hits.
pub(super) struct AskedTerms {
    terms: HashSet<TermHash>,
    pub(super) shape: QuestionShape,
}

impl AskedTerms {
    pub(super) fn new(question: &str) -> Self {
        let terms: HashSet<TermHash> = question_terms(question).into_iter().map(|(term, _)| term).collect();
        let shape = QuestionShape { words: terms.len(), latin: is_latin(question), searched_words: None };
        Self { terms, shape }
    }

    /// The probability that a text helps, by the share of the terms that it has.
    fn probability(&self, text: &str) -> f32 {
        by_coverage(self.covered(text), self.shape)
    }

    /// The share of the terms that a text has.
    pub(super) fn covered(&self, text: &str) -> f32 {
        let found = question_terms(text).iter().filter(|(term, _)| self.terms.contains(term)).count();
        found as f32 / self.terms.len().max(1) as f32
    }
}

pub(super) fn standing_at(place: usize) -> f32 {
    let (height, fall) = STORE_STANDING;
    1.0 / (1.0 + (fall * (place as f32 + 1.0).ln() - height).exp())
}

impl Recall {
    /// Adds items that contain the question as a substring or have similar words: the trigram fallback of the
    /// context-store design.
    pub(super) async fn add_similar(
        &self,
        request: &RecallRequest,
        plan: &RecallPlan,
        found: &mut CandidateSet,
    ) -> Result<()> {
        let settings = &self.settings;
        let words = question_terms(&request.query).len();
        if request.query.trim().chars().count() < settings.min_query_len || !may_serve(request, plan, words) {
            return Ok(());
        }
        let matching = TextMatch::Similar { min_similarity: settings.min_similarity };
        let query = text_query(request, found.scope, matching, settings.default_top_k as usize);
        let hits = self.search_in(&found.owners, query, request).await?;
        let hits = match request.order {
            Order::Served => exclude_hits(request, hits).0,
            Order::Relevance => hits,
        };
        found.similar_hits = hits.len() as u32;
        if hits.is_empty() {
            return Ok(());
        }
        found.path = RetrievalPath::Trgm;
        let probability = |hit: &Hit| by_similarity(hit.score, words);
        let similar: Vec<Candidate> =
            hits.iter().map(|found| candidate(&found.hit, probability(&found.hit))).collect();
        found.candidates.retain(|known| similar.iter().all(|hit| hit.id != known.id));
        found.candidates.splice(0..0, similar);
        found.candidates.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
        Ok(())
    }

    /// One search over the items of all given owners.
    pub(super) async fn search_in(
        &self,
        owners: &[UserId],
        query: TextQuery,
        request: &RecallRequest,
    ) -> Result<Vec<FoundHit>> {
        let wanted = query.limit as usize;
        let mut hits: Vec<FoundHit> = Vec::new();
        for (place, owner) in owners.iter().enumerate() {
            let keep = request.filter.as_ref().map(|filter| filter.keep(owner));
            let found = self.store.search(owner, &TextQuery { keep, ..query.clone() }).await?;
            hits.extend(found.into_iter().map(|hit| FoundHit { hit, own: place == 0 }));
        }
        if hits.iter().any(|found| !found.own) {
            hits.sort_by(|a, b| {
                let by_id = || a.hit.item.id().cmp(&b.hit.item.id());
                b.hit.score.total_cmp(&a.hit.score).then_with(by_id)
            });
        }
        hits.truncate(wanted);
        Ok(hits)
    }
}

/// The probability that an item of this trigram similarity helps. It is stronger evidence than vectors alone and weaker than
/// a term match. It is that of one word, so it says the less the more words the question has.
fn by_similarity(similarity: f32, words: usize) -> f32 {
    (0.5 + 0.4 * similarity.min(1.0)) / words.max(1) as f32
}

/// Whether the most similar item could be served for a question of this many words. If not, comparing thousands of items
/// would be in vain.
fn may_serve(request: &RecallRequest, plan: &RecallPlan, words: usize) -> bool {
    request.order == Order::Relevance || plan.rerank || by_similarity(1.0, words) >= plan.score_threshold
}

pub(super) fn text_query(
    request: &RecallRequest,
    scope: Scope,
    matching: TextMatch,
    limit: usize,
) -> TextQuery {
    TextQuery {
        text: request.query.clone(),
        matching,
        session: request.session.clone().filter(|_| scope == Scope::Session),
        kinds: request.kinds,
        as_of: request.as_of,
        keep: None,
        limit: limit as u32,
    }
}

pub(super) fn candidate(hit: &Hit, relevance: f32) -> Candidate {
    Candidate::unranked(hit.item.id(), hit.item.created_at().as_microsecond(), hit.score, relevance)
}
