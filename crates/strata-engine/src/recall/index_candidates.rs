//! Candidates from the indexes in memory: exact statistics over all of a user's items.
//!
//! Loading, analysing and ranking run through the compute port, so that one large user cannot stall the requests of others.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use strata_core::error::Result;
use strata_core::id::{ItemId, UserId};
use strata_core::metric::{ErrorStage, LateStage};
use strata_core::ports::{Embedder, Load, compute};
use strata_core::scope::Scope;
use strata_core::store::{Head, MemoryQuery, MemorySelect};
use strata_core::trace::RetrievalPath;
use strata_core::vector::Vector;

use super::Recall;
use super::candidates::{Candidate, CandidateSet, CandidateSource};
use super::deadline::{both, in_time};
use super::exclusions::ExclusionRules;
use super::question::Question;
use super::rank::{self, Ranked, Ranking, RankingInputs, Scored};
use super::request::{Order, RecallPlan, RecallRequest};
use super::validity;
use super::visible::VisibleItems;
use crate::index::{Doc, Document, FreshIndex, Indexes, UserIndex};

/// A ranking is repeated at most this many times after items were read for it.
const MAX_READINGS: usize = 4;

/// A question up to this length is analysed on the calling thread; at about half a microsecond a byte.
const INLINE_QUESTION_BYTES: usize = 512;

/// The up-to-date indexes of all owners, and the analysed question.
pub(super) struct IndexSource<'a> {
    recall: &'a Recall,
    request: Arc<RecallRequest>,
    question: Arc<Question>,
    owners: Vec<OwnerIndex>,
}

/// The index of one owner.
#[derive(Clone)]
struct OwnerIndex {
    owner: UserId,
    index: FreshIndex,
    /// The items that the request's filter accepts; `None` without a filter.
    accepted: Option<Arc<HashSet<ItemId>>>,
}

impl<'a> IndexSource<'a> {
    pub(super) async fn load(
        recall: &'a Recall,
        indexes: &Arc<Indexes>,
        owners: Vec<UserId>,
        heads: &[Head],
        request: &Arc<RecallRequest>,
    ) -> Result<Self> {
        let model = recall.embedder.as_ref().map(|embedder| embedder.model());
        let mut loaded = Vec::with_capacity(owners.len());
        for (owner, head) in owners.into_iter().zip(heads) {
            let accepted = recall.accepted_items(&owner, request).await?.map(Arc::new);
            let index =
                indexes.fresh(recall.store.as_ref(), recall.compute.as_ref(), &owner, *head, model).await?;
            loaded.push(OwnerIndex { owner, index, accepted });
        }
        let now = request.as_of.unwrap_or_else(|| recall.clock.now());
        let question = Arc::new(analyse(recall, indexes, request, now).await?);
        Ok(Self { recall, request: Arc::clone(request), question, owners: loaded })
    }
}

/// Analyses the question: here if it is short, because that takes less time than handing it to another thread.
async fn analyse(
    recall: &Recall,
    indexes: &Arc<Indexes>,
    request: &Arc<RecallRequest>,
    now: Timestamp,
) -> Result<Question> {
    let (lexicon, asked) = (Arc::clone(indexes), Arc::clone(request));
    let analyse = move || Question::new(&asked.query, now, lexicon.lexicon());
    match request.query.len() <= INLINE_QUESTION_BYTES {
        true => Ok(analyse()),
        false => compute(recall.compute.as_ref(), Load::Short, analyse).await,
    }
}

#[async_trait]
impl CandidateSource for IndexSource<'_> {
    async fn session_hits(&self, enough: u32) -> Result<u32> {
        // Shared items belong to no session, so only the index of the first owner, the user, is counted.
        let Some(own) = self.owners.first().cloned() else { return Ok(0) };
        let (request, question) = (Arc::clone(&self.request), Arc::clone(&self.question));
        compute(self.recall.compute.as_ref(), Load::Short, move || {
            hits_in_session(&own.index.read(), own.accepted.as_deref(), &request, &question, enough)
        })
        .await
    }

    async fn candidates(&self, plan: &RecallPlan) -> Result<CandidateSet> {
        let mut found = CandidateSet { scope: plan.scope, ..CandidateSet::default() };
        let rankings = match (self.request.deadline.as_ref(), self.vector_dimension()) {
            (_, None) => self.ranked_by(plan, Vec::new()).await?,
            (None, Some(dimension)) => {
                let vectors = self.question_vectors(dimension, &mut found.error_stage).await;
                self.ranked_by(plan, vectors).await?
            }
            (deadline, Some(dimension)) => {
                // By the deadline there is a ranking by words, whatever the embedder does.
                let embedding = self.question_vectors(dimension, &mut found.error_stage);
                let by_words = self.ranked_by(plan, Vec::new());
                let (by_words, vectors) = both(by_words, in_time(deadline, embedding)).await;
                found.late = vectors.is_none().then_some(LateStage::Embedding);
                match vectors.filter(|vectors| vectors.iter().any(Option::is_some)) {
                    Some(vectors) => self.ranked_by(plan, vectors).await?,
                    None => by_words?,
                }
            }
        };
        for (owner, ranking) in self.owners.iter().zip(rankings) {
            found.add(owner.index.clone(), ranking, plan);
            found.owners.push(owner.owner.clone());
        }
        found.names_time = !self.question.times.is_empty();
        found.is_general = self.question.is_general;
        validity::current_first(&mut found, &self.request, plan);
        Ok(found)
    }
}

impl IndexSource<'_> {
    /// The ranking of each owner's index, with the vectors of the questions in the message.
    async fn ranked_by(&self, plan: &RecallPlan, vectors: Vec<Option<Vector>>) -> Result<Vec<Ranking>> {
        let task = Arc::new(RankingTask {
            request: Arc::clone(&self.request),
            plan: plan.clone(),
            question: Arc::clone(&self.question),
            vectors,
        });
        let mut rankings = Vec::with_capacity(self.owners.len());
        for owner in &self.owners {
            rankings.push(self.ranked(owner, &task).await?);
        }
        Ok(rankings)
    }

    /// The ranking of one index. If it depends on the exact texts of items that are not known yet, the items are read
    /// and the ranking is repeated.
    async fn ranked(&self, owner: &OwnerIndex, task: &Arc<RankingTask>) -> Result<Ranking> {
        let index = &owner.index;
        if index.read().learned.is_missing() {
            let all = MemoryQuery::new(MemorySelect::All);
            index.note_memories(&self.recall.store.memories(&owner.owner, &all).await?);
        }
        let mut ranking = self.rank(owner, task).await?;
        for _ in 0..MAX_READINGS {
            let unknown = std::mem::take(&mut ranking.excluded.unknown);
            if unknown.is_empty() {
                break;
            }
            let items = self.recall.load(std::slice::from_ref(&owner.owner), unknown.into_iter()).await?;
            index.note_texts(items.into_values());
            ranking = self.rank(owner, task).await?;
        }
        Ok(ranking)
    }

    async fn rank(&self, owner: &OwnerIndex, task: &Arc<RankingTask>) -> Result<Ranking> {
        let (owner, task) = (owner.clone(), Arc::clone(task));
        compute(self.recall.compute.as_ref(), Load::Short, move || {
            task.rank(&owner.index.read(), owner.accepted.as_deref())
        })
        .await
    }

    /// The dimension of the vectors that a question can be compared with; `None` without any.
    fn vector_dimension(&self) -> Option<usize> {
        self.recall.embedder.as_ref()?;
        self.owners.iter().find_map(|owner| {
            let index = owner.index.read();
            (index.vectors.count > 0).then_some(index.vectors.dimension)
        })
    }

    /// The vector of each question in the message. If the embedder fails, the failure is recorded and recall goes on
    /// without vectors.
    async fn question_vectors(
        &self,
        dimension: usize,
        failed: &mut Option<ErrorStage>,
    ) -> Vec<Option<Vector>> {
        let Some(embedder) = &self.recall.embedder else { return Vec::new() };
        let mut vectors = Vec::with_capacity(self.question.each().len());
        for part in self.question.each() {
            // An encoder that knows no Chinese would cost time and find nothing. After a failure the embedder is not
            // called again, because the failed call may have used its whole time limit.
            let readable = part.latin || self.recall.settings.encoder_reads_chinese;
            vectors.push(match readable && failed.is_none() {
                true => question_vector(embedder.as_ref(), part, dimension, failed).await,
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
    failed: &mut Option<ErrorStage>,
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
    *failed = Some(ErrorStage::Embedding);
    None
}

/// One ranking, ready to run on the compute port.
struct RankingTask {
    request: Arc<RecallRequest>,
    plan: RecallPlan,
    question: Arc<Question>,
    vectors: Vec<Option<Vector>>,
}

impl RankingTask {
    fn rank(&self, index: &UserIndex, accepted: Option<&HashSet<ItemId>>) -> Ranking {
        let Self { request, plan, question, vectors } = self;
        let number = request.session.as_ref().map(|session| index.session(session));
        let visible = &VisibleItems::new(index, request, plan.scope, accepted);
        let rules = (request.order == Order::Served)
            .then(|| ExclusionRules::new(index, &request.query, question, &request.shown, number.flatten()));
        let reads_chinese = plan.encoder_reads_chinese;
        let rules = rules.as_ref();
        let preferred = plan.preferred_session(request).and(number.flatten());
        let inputs = RankingInputs { index, question, vectors, reads_chinese, preferred, visible, rules };
        rank::rank(&inputs, plan.pool, plan.limit)
    }
}

impl CandidateSet {
    /// Merges the ranking of one index by relevance.
    fn add(&mut self, index: FreshIndex, ranking: Ranking, plan: &RecallPlan) {
        let place = self.indexes.len();
        let Ranking { items, term_hits, vector_hits, excluded } = ranking;
        self.term_hits += term_hits;
        self.vector_hits += vector_hits;
        {
            let index = index.read();
            self.candidates.extend(items.into_iter().map(|ranked| ranked_candidate(&index, place, ranked)));
            self.excluded.extend(excluded.items.into_iter().map(|(scored, reason)| {
                let Scored { doc, score } = scored;
                let Document { id, created_at, .. } = index.documents[doc as usize];
                // The score of an excluded item is the share of the question that it matches.
                let relevance = score.clamp(0.0, 1.0);
                (Candidate::unranked(id, created_at, score, relevance), reason)
            }));
        }
        self.indexes.push(index);
        if place > 0 {
            self.merge_rankings(plan);
        }
        let matched = self.candidates.iter().any(|candidate| candidate.score > 0.0);
        self.path = match (self.term_hits, self.vector_hits, matched) {
            (_, _, false) => RetrievalPath::None,
            // Without term hits, the vectors of words or of the encoder matched.
            (0, _, _) => RetrievalPath::Vector,
            _ => RetrievalPath::Fts,
        };
    }

    /// Makes one ranking of the rankings of several indexes. Scores and probabilities can be compared. A standing cannot:
    /// an index of a few unrelated items has a best item, too.
    fn merge_rankings(&mut self, plan: &RecallPlan) {
        self.candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.candidates.truncate(plan.pool);
        let ranked = self.candidates.iter().filter_map(|candidate| candidate.ranked.as_ref());
        let mut ranked: Vec<Ranked> = ranked.map(|(_, ranked)| ranked.clone()).collect();
        rank::set_standing(&mut ranked, plan.limit);
        for (candidate, ranked) in self.candidates.iter_mut().zip(ranked) {
            candidate.standing = ranked.standing;
            candidate.ranked = candidate.ranked.take().map(|(place, _)| (place, ranked));
        }
    }
}

fn ranked_candidate(index: &UserIndex, place: usize, ranked: Ranked) -> Candidate {
    let document = &index.documents[ranked.doc as usize];
    Candidate {
        id: document.id,
        created_at: document.created_at,
        score: ranked.score,
        relevance: ranked.relevance,
        standing: ranked.standing,
        ranked: Some((place, ranked)),
        judged: None,
        replaced_by: None,
    }
}

/// The number of a session's items that share a term with the question. Counting stops at `enough`.
fn hits_in_session(
    index: &UserIndex,
    accepted: Option<&HashSet<ItemId>>,
    request: &RecallRequest,
    question: &Question,
    enough: u32,
) -> u32 {
    let number = request.session.as_ref().and_then(|session| index.session(session));
    let visible = VisibleItems::new(index, request, Scope::Session, accepted);
    let rules = (request.order == Order::Served)
        .then(|| ExclusionRules::new(index, &request.query, question, &request.shown, number));
    let counts = |doc: Doc| rules.as_ref().is_none_or(|rules| !rules.is_no_hit(index, doc));
    let mut hits = HashSet::new();
    for (term, _) in &question.terms {
        for (doc, _) in index.terms.get(*term).iter() {
            if visible.contains(*doc) && counts(*doc) {
                hits.insert(*doc);
                if hits.len() >= enough as usize {
                    return enough;
                }
            }
        }
    }
    hits.len() as u32
}
