//! Candidates by their vectors, beside those of the store's own text index.
//!
//! The store finds the nearest vectors if it has an index of them; otherwise they are compared here, in a table of the user's
//! vectors. Both lists are fused by place, because the scores of a store's text index cannot be compared with cosines.

use std::collections::HashMap;

use super::Recall;
use super::calibration::by_encoder;
use super::candidates::{Candidate, CandidateSet};
use super::deadline::in_time;
use super::exclusions::exclude_hits;
use super::filtered::passes;
use super::rank::SESSION_WEIGHT;
use super::request::{Order, RecallPlan, RecallRequest};
use super::store_candidates::{AskedTerms, EXCLUDED_TIMES, FoundHit, candidate, standing_at};
use crate::index::{Indexes, is_latin};
use strata_core::error::Result;
use strata_core::id::{ItemId, UserId};
use strata_core::metric::{ErrorStage, LateStage};
use strata_core::ports::Embedder;
use strata_core::scope::Scope;
use strata_core::store::{Hit, Item, VectorQuery};
use strata_core::trace::RetrievalPath;
use strata_core::vector::Vector;

/// Reciprocal rank fusion: the constant of Cormack, Clarke and Büttcher (2009).
const FUSION: f32 = 60.0;

/// A table is asked for this many times the wanted number of items, because some cannot be seen, and again for this many times
/// as many while too few can be.
const UNSEEN_TIMES: usize = 4;
const MORE_TIMES: usize = 8;

impl Recall {
    /// Adds the items whose vectors are nearest to the question. If the embedder fails or is late, `found` stays as it is.
    pub(super) async fn add_nearest(
        &self,
        request: &RecallRequest,
        plan: &RecallPlan,
        found: &mut CandidateSet,
    ) -> Result<()> {
        let (Some(embedder), Some(indexes)) = (&self.embedder, &self.indexes) else { return Ok(()) };
        let reads_chinese = self.settings.encoder_reads_chinese;
        if !(is_latin(&request.query) || reads_chinese) || !self.have_vectors(&found.owners).await? {
            return Ok(());
        }
        let embedding = question_vector(embedder.as_ref(), &request.query);
        let vector = match in_time(request.deadline.as_ref(), embedding).await {
            None => {
                found.late = Some(LateStage::Embedding);
                return Ok(());
            }
            Some(None) => {
                found.error_stage = Some(ErrorStage::Embedding);
                return Ok(());
            }
            Some(Some(vector)) => vector,
        };
        let query = VectorQuery {
            model: embedder.model().to_owned(),
            vector,
            session: request.session.clone().filter(|_| found.scope == Scope::Session),
            kinds: request.kinds,
            as_of: request.as_of,
            limit: (plan.pool * EXCLUDED_TIMES) as u32,
        };
        let mut near = Vec::new();
        for (place, owner) in found.owners.iter().enumerate() {
            let mut hits = self.nearest(indexes, owner, &query).await?;
            if let Some(filter) = &request.filter {
                hits.retain(|hit| passes(filter, owner, &hit.item));
            }
            hits.retain(|hit| reads_chinese || is_latin(hit.item.content()));
            near.extend(hits.into_iter().map(|hit| FoundHit { hit, own: place == 0 }));
        }
        let preferred = plan.preferred_session(request);
        for found in &mut near {
            if preferred.is_some() && found.hit.item.session() == preferred {
                found.hit.score *= 1.0 + SESSION_WEIGHT;
            }
        }
        near.sort_by(|a, b| {
            b.hit.score.total_cmp(&a.hit.score).then_with(|| a.hit.item.id().cmp(&b.hit.item.id()))
        });
        if request.order == Order::Served {
            near = exclude_hits(request, near).0;
        }
        near.retain(|near| found.excluded.iter().all(|(excluded, _)| excluded.id != near.hit.item.id()));
        near.truncate(plan.pool);
        fuse(found, &near, &AskedTerms::new(&request.query), plan.pool);
        Ok(())
    }

    async fn have_vectors(&self, owners: &[UserId]) -> Result<bool> {
        for owner in owners {
            if self.store.head(owner).await?.vectors > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The items of one owner that are nearest to a vector and can be seen.
    async fn nearest(&self, indexes: &Indexes, owner: &UserId, query: &VectorQuery) -> Result<Vec<Hit>> {
        if let Some(hits) = self.store.nearest(owner, query).await? {
            return Ok(hits);
        }
        let (store, compute) = (self.store.as_ref(), self.compute.as_ref());
        let wanted = query.limit as usize;
        let mut count = wanted * UNSEEN_TIMES;
        loop {
            let VectorQuery { model, vector, .. } = query;
            let near = indexes.tables.nearest(store, compute, owner, model, vector, count).await?;
            let is_all = near.len() < count;
            let ids = near.iter().map(|(id, _)| *id);
            let mut items = self.load(std::slice::from_ref(owner), ids).await?;
            items.retain(|_, item| can_be_seen(item, query));
            if is_all || items.len() >= wanted {
                let hit = |(id, score)| Some(Hit { item: items.remove(&id)?, score });
                return Ok(near.into_iter().filter_map(hit).take(wanted).collect());
            }
            count *= MORE_TIMES;
        }
    }
}

/// Whether a query may find an item.
fn can_be_seen(item: &Item, query: &VectorQuery) -> bool {
    let in_session = |session| query.session.is_none() || query.session.as_ref() == session;
    match item {
        Item::Turn(turn) => {
            query.kinds.turns
                && turn.hidden.is_none()
                && query.as_of.is_none_or(|moment| turn.created_at <= moment)
                && in_session(Some(&turn.session))
        }
        Item::Memory(memory) => {
            query.kinds.memories
                && query.as_of.map_or_else(|| memory.is_current(), |moment| memory.believed_at(moment))
                && (memory.session.is_none() || in_session(memory.session.as_ref()))
        }
        Item::Summary(_) => false,
    }
}

async fn question_vector(embedder: &dyn Embedder, question: &str) -> Option<Vector> {
    match embedder.embed_question(question).await {
        Ok(values) => Some(Vector::quantise(&values)),
        Err(error) => {
            tracing::warn!(%error, "the question could not be embedded; recall goes on without");
            None
        }
    }
}

/// Makes one list of the found items and of those whose vectors are near.
fn fuse(found: &mut CandidateSet, near: &[FoundHit], asked: &AskedTerms, pool: usize) {
    if near.is_empty() {
        return;
    }
    let by_place = |place: usize| 1.0 / (FUSION + place as f32 + 1.0);
    let mut fused: HashMap<ItemId, Candidate> = HashMap::new();
    for (place, mut candidate) in std::mem::take(&mut found.candidates).into_iter().enumerate() {
        candidate.score = by_place(place);
        fused.insert(candidate.id, candidate);
    }
    for (place, FoundHit { hit, .. }) in near.iter().enumerate() {
        let covered = asked.covered(hit.item.content());
        let relevance = by_encoder(hit.score, covered, asked.shape);
        let entry = fused
            .entry(hit.item.id())
            .or_insert_with(|| Candidate { score: 0.0, ..candidate(hit, relevance) });
        entry.relevance = entry.relevance.max(relevance);
        entry.score += by_place(place);
    }
    found.candidates = fused.into_values().collect();
    found.candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.id.cmp(&b.id)));
    found.candidates.truncate(pool);
    for (place, candidate) in found.candidates.iter_mut().enumerate() {
        candidate.standing = standing_at(place);
    }
    found.vector_hits = near.len() as u32;
    if found.path == RetrievalPath::None {
        found.path = RetrievalPath::Vector;
    }
}
