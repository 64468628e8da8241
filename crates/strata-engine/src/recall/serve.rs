//! From candidates to the returned items: the threshold, recency, diversity and the budget.

use super::Recall;
use std::collections::{HashMap, HashSet};

use super::budget::{Share, share};
use super::candidates::{Candidate, CandidateSet};
use super::covered::without_covered;
use super::disputed::{lift_disputed, newer_side_first};
use super::diversity::{mmr, with_recency};
use super::exclusions::ExclusionReason;
use super::rank::mean_vector;
use super::request::{Order, RecallPlan, RecallRequest, Recalled, RecalledItem};
use super::summaries::keep_one_of_covered;
use super::trace::TraceLog;
use super::validity::{keep_current_first, lift_current};
use crate::disputes::drop_settled;
use crate::index::TextFingerprint;
use strata_core::error::Result;
use strata_core::id::{ItemId, RequestId, UserId};
use strata_core::store::{CLOCK_SLACK, Item, MemoryQuery, MemorySelect, TurnQuery};
use strata_core::trace::Outcome;
use strata_core::trace::RetrievalPath;
use strata_core::turn::Turn;
use strata_core::vector::Vector;
use strata_language::content::has_content;
use strata_language::cues;
use strata_language::sought::lacks_answer;

/// The least relevance for a general request, which needs nothing of a user's own unless it matches strongly.
const GENERAL_THRESHOLD: f32 = 0.6;

/// The relevance from which an item is served although it has nothing of the kind that the question seeks.
const LIKELY_ALL_THE_SAME: f32 = 0.9;

const MICROS_A_DAY: f32 = 86_400_000_000.0;

/// The age of an item whose time cannot be right: old enough to get nothing for being recent.
const UNKNOWN_AGE_DAYS: f32 = 36_500.0;

/// The fallback reads this many times the wanted number of recent turns, because some turns have no text.
const BLANK_TIMES: u32 = 4;

impl Recall {
    pub(super) async fn serve(
        &self,
        user: &UserId,
        request: &RecallRequest,
        plan: &RecallPlan,
        request_id: RequestId,
        mut found: CandidateSet,
    ) -> Result<Recalled> {
        // Boxed, because the futures of all callers hold them.
        let mut items = Box::pin(self.look_again(request, plan, &mut found)).await?;
        lift_current(&mut found.candidates);
        lift_disputed(&mut found.candidates, &items);
        let mut trace = request.explain.then(|| TraceLog::new(request, &found));
        items.extend(Box::pin(self.rerank(request, plan, &mut found)).await?);
        if let Some(trace) = trace.as_mut().filter(|_| plan.rerank) {
            trace.rerank(&found.candidates);
        }
        let chosen = match request.order {
            Order::Relevance => by_relevance(plan, &found, trace.as_mut()),
            Order::Served => self.choose(request, plan, &found, trace.as_mut()),
        };
        let chosen = if chosen.is_empty() { asked_before(request, plan, &found) } else { chosen };
        items.extend(self.load(&found.owners, chosen.iter().map(|(candidate, _)| candidate.id)).await?);
        items.extend(self.load_summaries(&found, &chosen).await?);
        let mut recalled = nothing_yet(request_id, &found);
        recalled.items = answering(request, plan, chosen, items, &mut trace);
        keep_one_of_covered(&mut recalled.items);
        newer_side_first(&mut recalled.items);
        recalled.path = path_of(&recalled.items, found.path);
        if recalled.items.is_empty() && wants_recent(request) {
            self.add_recent(user, request, plan, &mut recalled).await?;
            if let Some(trace) = &mut trace {
                trace.add_recent(&recalled.items);
            }
        }
        self.apply_budget(plan, &mut recalled, trace.as_mut());
        if let Some(trace) = &mut trace {
            trace.finish(&recalled);
        }
        recalled.trace = trace.map(|TraceLog(trace)| trace);
        Ok(recalled)
    }

    /// The candidates that pass the threshold, chosen by recency and diversity, with their probabilities.
    fn choose(
        &self,
        request: &RecallRequest,
        plan: &RecallPlan,
        found: &CandidateSet,
        mut trace: Option<&mut TraceLog>,
    ) -> Vec<(Candidate, f32)> {
        let now = request.as_of.unwrap_or_else(|| self.clock.now()).as_microsecond();
        let least = match found.is_general {
            true => plan.score_threshold.max(GENERAL_THRESHOLD),
            false => plan.score_threshold,
        };
        let relevant: Vec<&Candidate> =
            found.candidates.iter().filter(|candidate| candidate.relevance >= least).collect();
        if let Some(trace) = trace.as_deref_mut() {
            // Those that are left out now say what others say.
            relevant.iter().for_each(|candidate| trace.settle(candidate.id, Outcome::NotChosen));
        }
        let relevant = if relevant.len() > plan.limit { without_covered(found, relevant) } else { relevant };
        // An item of a time that is still to come was recorded under a clock that was ahead: its age is unknown.
        let latest = now.saturating_add(CLOCK_SLACK.as_micros() as i64);
        let age_days = |candidate: &Candidate| match candidate.created_at > latest {
            true => UNKNOWN_AGE_DAYS,
            false => (now - candidate.created_at) as f32 / MICROS_A_DAY,
        };
        // A question that names a time asks for items of that time, not for the latest ones.
        let weight = if found.names_time { 0.0 } else { plan.recency_weight };
        let scores: Vec<f32> = relevant
            .iter()
            .map(|candidate| with_recency(candidate.standing, age_days(candidate), weight))
            .collect();
        let vectors: Vec<Option<Vector>> =
            relevant.iter().map(|candidate| vector_of(found, candidate)).collect();
        let similarity = |a: usize, b: usize| match (&vectors[a], &vectors[b]) {
            (Some(a), Some(b)) => a.cosine(b).max(0.0),
            _ => 0.0,
        };
        let mut order = mmr(&scores, plan.limit, plan.mmr_lambda, similarity);
        // Diversity decides which items are shown. The order is by relevance and recency, so that a small budget or a
        // reader who stops early gets the best ones.
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        keep_current_first(&relevant, &mut order);
        if let Some(trace) = trace {
            for (candidate, score) in relevant.iter().zip(&scores) {
                trace.scored(candidate.id, age_days(candidate), *score);
            }
        }
        order.into_iter().map(|place| (relevant[place].clone(), relevant[place].relevance)).collect()
    }

    /// The last fallback of the context-store design: the most recent turns.
    async fn add_recent(
        &self,
        user: &UserId,
        request: &RecallRequest,
        plan: &RecallPlan,
        recalled: &mut Recalled,
    ) -> Result<()> {
        let turns = self.recent_turns(user, request, plan.limit).await?;
        recalled.path = if turns.is_empty() { RetrievalPath::None } else { RetrievalPath::Window };
        recalled.items.extend(turns.into_iter().map(|turn| RecalledItem {
            item: Item::Turn(turn),
            shortened: None,
            score: 0.0,
            relevance: 0.0,
        }));
        Ok(())
    }

    /// The newest turns with a text, except those that are shown already.
    async fn recent_turns(&self, user: &UserId, request: &RecallRequest, limit: usize) -> Result<Vec<Turn>> {
        let session = request.session.clone();
        let looked_through = (limit as u32).saturating_mul(BLANK_TIMES);
        let keep = request.filter.as_ref().map(|filter| filter.keep(user));
        let recent = TurnQuery::Recent { session, as_of: request.as_of, keep, limit: looked_through };
        let mut turns = self.store.turns(user, &recent).await?;
        let is_shown = |turn: &Turn| {
            request.shown.items.contains(&ItemId::Turn(turn.id))
                || request.shown.texts.contains(&TextFingerprint::new(&turn.content))
        };
        turns.retain(|turn| !turn.content.trim().is_empty() && !is_shown(turn));
        turns.truncate(limit);
        Ok(turns)
    }

    fn apply_budget(&self, plan: &RecallPlan, recalled: &mut Recalled, mut trace: Option<&mut TraceLog>) {
        let Some(budget) = plan.budget else {
            recalled.tokens = recalled.items.iter().map(|item| self.tokens_of(&item.item)).sum();
            return;
        };
        let texts =
            recalled.items.iter().map(|item| (item.item.content(), matches!(item.item, Item::Turn(_))));
        // The token count of a turn is stored with it. Counting again may have to unpack a vocabulary first.
        let counted: HashMap<&str, u32> =
            recalled.items.iter().filter_map(|item| counted(&item.item)).collect();
        let count = |text: &str| counted.get(text).copied().unwrap_or_else(|| self.tokens.count(text));
        let shares = share(texts, budget, count);
        let mut shares = shares.into_iter();
        recalled.items.retain_mut(|item| match shares.next() {
            Some(Share::Whole { tokens }) => {
                recalled.tokens += tokens;
                true
            }
            Some(Share::Cut { text, tokens }) => {
                recalled.tokens += tokens;
                recalled.truncated = true;
                item.shortened = Some(text);
                true
            }
            Some(Share::Dropped(reason)) => {
                recalled.truncated = true;
                if let Some(trace) = trace.as_deref_mut() {
                    trace.settle(item.item.id(), Outcome::OverBudget(reason.to_owned()));
                }
                false
            }
            None => true,
        });
    }

    /// The tokens of the shown part of an item.
    pub(crate) fn tokens_shown(&self, item: &RecalledItem) -> u32 {
        match &item.shortened {
            Some(text) => self.tokens.count(text),
            None => self.tokens_of(&item.item),
        }
    }

    fn tokens_of(&self, item: &Item) -> u32 {
        match item {
            Item::Turn(turn) if turn.token_count > 0 => turn.token_count,
            Item::Turn(turn) => self.tokens.count(&turn.content),
            Item::Memory(memory) => self.tokens.count(&memory.content),
            Item::Summary(summary) => summary.output_tokens,
        }
    }

    /// The items with the given ids, from any of the owners.
    pub(super) async fn load(
        &self,
        owners: &[UserId],
        ids: impl Iterator<Item = ItemId>,
    ) -> Result<HashMap<ItemId, Item>> {
        let (mut turns, mut memories) = (Vec::new(), Vec::new());
        for id in ids {
            match id {
                ItemId::Turn(id) => turns.push(id),
                ItemId::Memory(id) => memories.push(id),
                ItemId::Summary(_) => {}
            }
        }
        let mut items = HashMap::new();
        for owner in owners {
            if !turns.is_empty() {
                let found = self.store.turns(owner, &TurnQuery::Ids(turns.clone())).await?;
                items.extend(found.into_iter().map(|turn| (ItemId::Turn(turn.id), Item::Turn(turn))));
            }
            if !memories.is_empty() {
                let query = MemoryQuery::new(MemorySelect::Ids(memories.clone()));
                let mut found = self.store.memories(owner, &query).await?;
                drop_settled(self.store.as_ref(), owner, found.iter_mut()).await?;
                items.extend(
                    found.into_iter().map(|memory| (ItemId::Memory(memory.id), Item::Memory(memory))),
                );
            }
        }
        Ok(items)
    }
}

/// The path of an answer: `found`, unless nothing or nothing but summaries was chosen.
fn path_of(items: &[RecalledItem], found: RetrievalPath) -> RetrievalPath {
    if items.is_empty() {
        RetrievalPath::None
    } else if items.iter().all(|chosen| matches!(chosen.item, Item::Summary(_))) {
        RetrievalPath::SummariesOnly
    } else {
        found
    }
}

/// The result of a recall, without items.
fn nothing_yet(request_id: RequestId, found: &CandidateSet) -> Recalled {
    Recalled {
        request_id,
        items: Vec::new(),
        path: found.path,
        scope: found.scope,
        expansion: found.expansion.clone(),
        fts_hits: found.term_hits,
        trgm_hits: found.similar_hits,
        vector_hits: found.vector_hits,
        tokens: 0,
        truncated: false,
        error_stage: found.error_stage,
        late: found.late,
        trace: None,
    }
}

/// The chosen items in their order, without those that cannot answer. A memory stays if the turn that it replaced is among them.
fn answering(
    request: &RecallRequest,
    plan: &RecallPlan,
    chosen: Vec<(Candidate, f32)>,
    mut items: HashMap<ItemId, Item>,
    trace: &mut Option<TraceLog>,
) -> Vec<RecalledItem> {
    let replacing: HashSet<ItemId> =
        chosen.iter().filter_map(|(candidate, _)| candidate.replaced_by).collect();
    let mut answering = Vec::with_capacity(chosen.len());
    for (Candidate { id, relevance, .. }, score) in chosen {
        let Some(item) = items.remove(&id) else { continue };
        if !replacing.contains(&id) && lacks_kind(request, plan, &item, relevance) {
            trace.iter_mut().for_each(|trace| trace.settle(id, Outcome::BelowThreshold));
            continue;
        }
        answering.push(RecalledItem { item, shortened: None, score, relevance });
    }
    answering
}

/// Whether an item cannot answer a question, because it has nothing of the kind that the question seeks: no number, no name. The
/// name of a speaker may be the answer.
fn lacks_kind(request: &RecallRequest, plan: &RecallPlan, item: &Item, relevance: f32) -> bool {
    if request.order != Order::Served || plan.score_threshold <= 0.0 || relevance >= LIKELY_ALL_THE_SAME {
        return false;
    }
    match item {
        Item::Turn(Turn { name: Some(name), content, .. }) => {
            lacks_answer(&request.query, &format!("{name}: {content}"))
        }
        other => lacks_answer(&request.query, other.content()),
    }
}

/// The most relevant candidates, without a threshold.
fn by_relevance(
    plan: &RecallPlan,
    found: &CandidateSet,
    trace: Option<&mut TraceLog>,
) -> Vec<(Candidate, f32)> {
    if let Some(trace) = trace {
        for candidate in &found.candidates {
            trace.settle(candidate.id, Outcome::NotChosen);
        }
    }
    let best = found.candidates.iter().take(plan.limit);
    best.map(|candidate| (candidate.clone(), candidate.relevance)).collect()
}

/// Whether recent turns stand in if nothing is found: the question points at the session itself. Recent turns have no
/// relevance, so a request with its own threshold does not get them.
fn wants_recent(request: &RecallRequest) -> bool {
    request.order == Order::Served
        && request.kinds.turns
        && request.score_threshold.is_none_or(|least| least <= 0.0)
        && cues::points_at_session(&request.query)
}

/// If nothing else was found, an earlier copy of the same question, if the question itself says something. The newest is
/// enough, because all copies say the same.
fn asked_before(request: &RecallRequest, plan: &RecallPlan, found: &CandidateSet) -> Vec<(Candidate, f32)> {
    if request.order == Order::Relevance || !has_content(&request.query) {
        return Vec::new();
    }
    let asked = found.excluded.iter().filter(|(candidate, reason)| {
        *reason == ExclusionReason::SameQuestion && candidate.relevance >= plan.score_threshold
    });
    let newest = asked.max_by_key(|(candidate, _)| (candidate.created_at, candidate.id));
    newest.map(|(candidate, _)| (candidate.clone(), candidate.relevance)).into_iter().collect()
}

/// A turn's text and its token count, if the count is known.
fn counted(item: &Item) -> Option<(&str, u32)> {
    match item {
        Item::Turn(turn) if turn.token_count > 0 => Some((&turn.content, turn.token_count)),
        _ => None,
    }
}

/// The vector of a candidate: the encoder's if it has one, otherwise the mean of its words.
fn vector_of(found: &CandidateSet, candidate: &Candidate) -> Option<Vector> {
    let (place, ranked) = candidate.ranked.as_ref()?;
    let index = found.indexes.get(*place)?.read();
    // All vectors must be of one space. The encoder's vectors are used only if the encoder ranked the items, too.
    if ranked.parts.encoder.is_some()
        && let Some((values, scale)) = index.vectors.get(ranked.doc)
    {
        return Some(Vector { scale, values: values.to_vec() });
    }
    Some(mean_vector(&index, ranked.doc))
}
