//! Recall: from a question to the few items that answer it.
//!
//! The order of things: where to look ([`scope`]), what is there and how relevant it is ([`rank`]), what of it is worth
//! serving ([`serve`]: threshold, recency, diversity, budget), and why ([`trace`]). A user's items are ranked in memory
//! (see [`crate::index`]); for a user with more items than that is made for, the store's own text index stands in. A
//! model that fails costs quality, never the answer. Start reading at [`Engine::recall`].

mod aside;
mod asks;
mod best;
mod budget;
mod diversity;
mod fallback;
mod fresh;
mod lexical;
mod likeness;
mod log;
mod narrow;
mod question;
mod rank;
mod request;
mod serve;
#[cfg(test)]
pub(crate) mod tests;
mod trace;
mod validity;
mod visible;

use crate::index::Indexes;
use std::collections::HashSet;
use std::sync::Arc;
use strata_core::ports::{Clock, Compute, IdSource, Reranker, TokenCounter};
use strata_core::store::Store;

pub use budget::{Budget, Share, cut, share};
pub use diversity::{mmr, recency, with_recency};
pub(crate) use log::RequestLog;
pub use request::{
    MAX_LIMIT, MAX_QUERY_CHARS, Order, RecallRequest, RecallSettings, Recalled, RecalledItem, Shown,
};

pub(crate) use rank::{Ranked, mean_vector};

use crate::index::{Doc, Document, FreshIndex, UserIndex};
use strata_core::error::Result;
use strata_core::id::{ItemId, RequestId, UserId};
use strata_core::metric::ErrorStage;
use strata_core::ports::Embedder;
use strata_core::scope::Scope;
use strata_core::store::{MemoryQuery, MemorySelect};
use strata_core::trace::RetrievalPath;
use strata_core::vector::Vector;

use aside::{Reason, Rules};
use question::Question;
use rank::{Inputs, Ranking, Scored};
use request::Plan;
use visible::Visible;

/// How often a ranking is made again for what it has to read, at the most.
const MOST_READINGS: usize = 4;

/// Answers questions from memory.
#[derive(Clone)]
pub struct Recall {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) tokens: Arc<dyn TokenCounter>,
    pub(crate) compute: Arc<dyn Compute>,
    pub(crate) settings: Arc<RecallSettings>,
    pub(crate) indexes: Option<Arc<Indexes>>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) reranker: Option<Arc<dyn Reranker>>,
    pub(crate) log: RequestLog,
}

impl Recall {
    /// Answers a question from memory, and notes what that took.
    pub async fn ask(&self, user: &UserId, request: &RecallRequest) -> Result<Recalled> {
        let began = self.clock.now();
        let plan = request.plan(&self.settings)?;
        let id = RequestId(self.ids.next());
        // A filter is not kept with the row, so that asking again would explain another question: the trace is kept.
        let traced = request.filter.is_some().then(|| RecallRequest { explain: true, ..request.clone() });
        let mut recalled = self.recall_planned(user, traced.as_ref().unwrap_or(request), plan, id).await;
        let elapsed = self.clock.now().duration_since(began);
        self.log.note_request(user, request, id, recalled.as_ref().ok(), elapsed);
        if let Ok(recalled) = &mut recalled
            && !request.explain
        {
            recalled.trace = None;
        }
        recalled
    }

    /// As [`Engine::recall`], under the id of an earlier request and without a row of its own.
    pub(crate) async fn ask_unnoted(
        &self,
        user: &UserId,
        request: &RecallRequest,
        id: RequestId,
    ) -> Result<Recalled> {
        let plan = request.plan(&self.settings)?;
        self.recall_planned(user, request, plan, id).await
    }

    async fn recall_planned(
        &self,
        user: &UserId,
        request: &RecallRequest,
        plan: Plan,
        id: RequestId,
    ) -> Result<Recalled> {
        let mut found = self.candidates(user, request, &plan).await?;
        // In memory this was settled before anything was ranked.
        if found.expansion.is_none()
            && let Some(reason) = plan.expansion(request, found.term_hits, &self.settings)
        {
            let wider = Plan { scope: Scope::User, ..plan.clone() };
            found = Found { expansion: Some(reason), ..self.candidates(user, request, &wider).await? };
        }
        if found.term_hits == 0 {
            self.add_similar(request, &mut found).await?;
        }
        self.serve(user, request, &plan, id, found).await
    }

    /// Brings a user's index up to date, so that the recall that follows has only to rank.
    pub(crate) async fn freshen(&self, user: &UserId) -> Result<()> {
        let Some(indexes) = &self.indexes else { return Ok(()) };
        let head = self.store.head(user).await?;
        if head.revision <= self.settings.index_max_items {
            let model = self.embedder.as_ref().map(|embedder| embedder.model());
            indexes.fresh(self.store.as_ref(), user, head, model).await?;
        }
        Ok(())
    }

    /// The ranked candidates of a scope.
    async fn candidates(&self, user: &UserId, request: &RecallRequest, plan: &Plan) -> Result<Found> {
        let now = request.as_of.unwrap_or_else(|| self.clock.now());
        let Some(indexes) = &self.indexes else {
            return self.candidates_of_store(plan.scope.owners(user, plan.shared), request, plan).await;
        };
        let (mut owners, mut heads) = (Vec::new(), Vec::new());
        for owner in plan.scope.owners(user, plan.shared) {
            let head = self.store.head(&owner).await?;
            // Most have nothing that all users share.
            if owner == *user || head.revision > 0 {
                owners.push(owner);
                heads.push(head);
            }
        }
        if heads.iter().any(|head| head.revision > self.settings.index_max_items) {
            return self.candidates_of_store(owners, request, plan).await;
        }
        let model = self.embedder.as_ref().map(|embedder| embedder.model());
        let question = Question::new(&request.query, now, indexes.lexicon());
        let mut fresh = Vec::with_capacity(owners.len());
        let mut passing = Vec::with_capacity(owners.len());
        for (owner, head) in owners.iter().zip(heads) {
            passing.push(self.let_through(owner, request).await?);
            fresh.push(indexes.fresh(self.store.as_ref(), owner, head, model).await?);
        }
        // A session and all sessions of a user are in one index: hits are counted first, and only one scope is ranked.
        let least = self.settings.min_fts_hits;
        let hits = || {
            // What all users share is in no session.
            fresh.iter().zip(&passing).take(1).map(|(index, passing)| {
                hits_in_session(&index.read(), passing.as_ref(), request, &question, least)
            })
        };
        let expansion = match plan.scope {
            Scope::Session => plan.expansion(request, hits().sum(), &self.settings),
            Scope::User | Scope::Global => None,
        };
        let plan = &match &expansion {
            Some(_) => Plan { scope: Scope::User, ..plan.clone() },
            None => plan.clone(),
        };
        let mut found = Found { scope: plan.scope, expansion, ..Found::default() };
        let vectors = self.question_vectors(&fresh, &question, &mut found).await;
        for ((index, passing), owner) in fresh.into_iter().zip(passing).zip(&owners) {
            let asked = Asked { request, plan, question: &question, vectors: &vectors };
            let ranking = self.ranked(owner, &index, passing.as_ref(), &asked).await?;
            found.add(index, ranking, plan);
        }
        found.owners = owners;
        found.names_time = !question.times.is_empty();
        validity::current_first(&mut found, request, plan);
        Ok(found)
    }

    /// The ranking of one index. Where it depends on what some items say word for word, and that is not known yet, they are
    /// read and it is made again.
    async fn ranked(
        &self,
        owner: &UserId,
        index: &FreshIndex,
        passing: Option<&HashSet<ItemId>>,
        asked: &Asked<'_>,
    ) -> Result<Ranking> {
        if index.read().learned.is_missing() {
            let all = MemoryQuery::new(MemorySelect::All);
            index.note_memories(&self.store.memories(owner, &all).await?);
        }
        let mut ranking = asked.rank(&index.read(), passing);
        for _ in 0..MOST_READINGS {
            let unknown = std::mem::take(&mut ranking.aside.unknown);
            if unknown.is_empty() {
                break;
            }
            let items = self.load(std::slice::from_ref(owner), unknown.into_iter()).await?;
            index.note_sayings(items.into_values());
            ranking = asked.rank(&index.read(), passing);
        }
        Ok(ranking)
    }

    /// The vector of each thing that the question asks, if there are vectors to compare it with. A failing embedder is
    /// noted and done without.
    async fn question_vectors(
        &self,
        indexes: &[FreshIndex],
        question: &Question,
        found: &mut Found,
    ) -> Vec<Option<Vector>> {
        let dimension = indexes.iter().find_map(|index| {
            let index = index.read();
            (index.vectors.count > 0).then_some(index.vectors.dimension)
        });
        let (Some(embedder), Some(dimension)) = (&self.embedder, dimension) else { return Vec::new() };
        let mut vectors = Vec::with_capacity(question.each().len());
        for ask in question.each() {
            // Reading Chinese with an encoder that knows none would cost time and find nothing. An embedder that failed
            // is not asked again: it may have taken its time.
            let readable = ask.latin || self.settings.encoder_reads_chinese;
            vectors.push(match readable && found.error_stage.is_none() {
                true => question_vector(embedder.as_ref(), ask, dimension, found).await,
                false => None,
            });
        }
        vectors
    }
}

async fn question_vector(
    embedder: &dyn Embedder,
    question: &Question,
    dimension: usize,
    found: &mut Found,
) -> Option<Vector> {
    match embedder.embed_question(&question.text).await {
        Ok(values) if values.len() == dimension => return Some(Vector::quantise(&values)),
        Ok(values) => {
            tracing::warn!(expected = dimension, given = values.len(), "the embedder changed its dimension");
        }
        Err(error) => {
            tracing::warn!(%error, "the question could not be embedded; recall goes on without");
        }
    }
    found.error_stage = Some(ErrorStage::Embedding);
    None
}

/// What the candidate paths brought.
pub(crate) struct Found {
    /// Best first.
    pub(crate) candidates: Vec<Candidate>,
    /// What matches and takes no place, best first, and why.
    pub(crate) aside: Vec<(Candidate, Reason)>,
    /// The indexes that the candidates point into.
    pub(crate) indexes: Vec<FreshIndex>,
    /// Whether the question names a time.
    pub(crate) names_time: bool,
    pub(crate) scope: Scope,
    /// Whose items were looked through.
    pub(crate) owners: Vec<UserId>,
    pub(crate) expansion: Option<String>,
    pub(crate) term_hits: u32,
    pub(crate) similar_hits: u32,
    pub(crate) vector_hits: u32,
    pub(crate) path: RetrievalPath,
    pub(crate) error_stage: Option<ErrorStage>,
}

impl Default for Found {
    fn default() -> Self {
        Self {
            candidates: Vec::new(),
            aside: Vec::new(),
            indexes: Vec::new(),
            names_time: false,
            scope: Scope::User,
            owners: Vec::new(),
            expansion: None,
            term_hits: 0,
            similar_hits: 0,
            vector_hits: 0,
            path: RetrievalPath::None,
            error_stage: None,
        }
    }
}

/// One item that may answer the question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) id: strata_core::id::ItemId,
    /// When it was said or learned, in microseconds.
    pub(crate) created_at: i64,
    pub(crate) score: f32,
    pub(crate) relevance: f32,
    /// Where it was ranked, if it was ranked in memory: which index, and how.
    pub(crate) ranked: Option<(usize, Ranked)>,
    /// What holds now, where this held once.
    pub(crate) replaced_by: Option<ItemId>,
}

/// What is asked of an index.
struct Asked<'a> {
    request: &'a RecallRequest,
    plan: &'a Plan,
    question: &'a Question,
    vectors: &'a [Option<Vector>],
}

impl Asked<'_> {
    fn rank(&self, index: &UserIndex, passing: Option<&HashSet<ItemId>>) -> Ranking {
        let Self { request, plan, question, vectors } = *self;
        let number = request.session.as_ref().map(|session| index.session(session));
        let visible = &Visible::new(index, request, plan.scope, passing);
        let rules = (request.order == Order::Served)
            .then(|| Rules::new(index, &request.query, question, &request.shown, number.flatten()));
        let reads_chinese = plan.encoder_reads_chinese;
        let rules = rules.as_ref();
        let inputs = Inputs { index, question, vectors, reads_chinese, visible, rules };
        rank::rank(&inputs, plan.pool, plan.limit)
    }
}

impl Found {
    /// Merges the ranking of one index in by relevance.
    fn add(&mut self, index: FreshIndex, ranking: Ranking, plan: &Plan) {
        let place = self.indexes.len();
        let Ranking { items, term_hits, vector_hits, aside } = ranking;
        self.term_hits += term_hits;
        self.vector_hits += vector_hits;
        {
            let index = index.read();
            self.candidates.extend(items.into_iter().map(|ranked| {
                let document = &index.documents[ranked.doc as usize];
                Candidate {
                    id: document.id,
                    created_at: document.created_at,
                    score: ranked.score,
                    relevance: ranked.relevance,
                    ranked: Some((place, ranked)),
                    replaced_by: None,
                }
            }));
            self.aside.extend(aside.items.into_iter().map(|(Scored { doc, score }, reason)| {
                let Document { id, created_at, .. } = index.documents[doc as usize];
                // As much of the question as it matches.
                let relevance = score.clamp(0.0, 1.0);
                (Candidate { id, created_at, score, relevance, ranked: None, replaced_by: None }, reason)
            }));
        }
        self.indexes.push(index);
        if place > 0 {
            self.calibrate(plan);
        }
        let matched = self.candidates.iter().any(|candidate| candidate.score > 0.0);
        self.path = match (self.term_hits, self.vector_hits, matched) {
            (_, _, false) => RetrievalPath::None,
            // The vectors of words, where no encoder compared.
            (0, _, _) => RetrievalPath::Vector,
            _ => RetrievalPath::Fts,
        };
    }
}

impl Found {
    /// Makes one ranking of those of several indexes. Scores can be compared, because they are shares of the question;
    /// relevance cannot: the best of a few unrelated items is the best of them.
    fn calibrate(&mut self, plan: &Plan) {
        self.candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.candidates.truncate(plan.pool);
        let ranked = self.candidates.iter().filter_map(|candidate| candidate.ranked.as_ref());
        let mut ranked: Vec<Ranked> = ranked.map(|(_, ranked)| ranked.clone()).collect();
        let encoded = ranked.iter().any(|ranked| ranked.parts.unread || ranked.parts.encoder.is_some());
        rank::calibrate(&mut ranked, encoded, plan.limit);
        for (candidate, ranked) in self.candidates.iter_mut().zip(ranked) {
            candidate.relevance = ranked.relevance;
            candidate.ranked = candidate.ranked.take().map(|(place, _)| (place, ranked));
        }
    }
}

/// How many items of the request's session share a term with the question; counting ends at `enough`.
fn hits_in_session(
    index: &UserIndex,
    passing: Option<&HashSet<ItemId>>,
    request: &RecallRequest,
    question: &Question,
    enough: u32,
) -> u32 {
    let number = request.session.as_ref().and_then(|session| index.session(session));
    let visible = Visible::new(index, request, Scope::Session, passing);
    let rules = (request.order == Order::Served)
        .then(|| Rules::new(index, &request.query, question, &request.shown, number));
    let is_find = |doc: Doc| rules.as_ref().is_none_or(|rules| !rules.is_no_find(index, doc));
    let mut hits = HashSet::new();
    for (term, _) in &question.terms {
        for (doc, _) in index.terms.get(*term).iter() {
            if visible.sees(*doc) && is_find(*doc) {
                hits.insert(*doc);
                if hits.len() >= enough as usize {
                    return enough;
                }
            }
        }
    }
    hits.len() as u32
}
