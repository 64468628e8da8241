//! Reading one user's data.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::part;
use super::user_data::UserData;
use crate::id::{ItemId, MemoryId, SessionId, UserId};
use crate::job::{Job, JobStatus};
use crate::memory::Memory;
use crate::metric::RequestMetric;
use crate::session::Session;
use crate::store::{
    DAY_MICROS, Growth, Head, Health, Hit, Item, ItemRef, JobQuery, Keep, LeaseRequest, MOST_TESTED,
    MemoryQuery, MemorySelect, MetricQuery, Page, PartQuery, Segment, StoredVector, SummaryQuery, TextMatch,
    TextQuery, TurnQuery,
};
use crate::summary::{Strategy, Summary, SummaryStatus};
use crate::turn::Turn;
use crate::vector::ItemVector;
use strata_language::text::SimilarWords;

impl UserData {
    pub(super) fn head(&self) -> Head {
        self.head
    }

    /// Whether nothing but its counters is stored of the user.
    pub(super) fn is_empty(&self) -> bool {
        self.sessions.rows().is_empty()
            && self.memories.rows().is_empty()
            && self.jobs.rows().is_empty()
            && self.requests.rows().is_empty()
    }

    pub(super) fn session(&self, session: &SessionId) -> Option<Session> {
        self.sessions.get(session).cloned()
    }

    pub(super) fn sessions(&self, page: Page) -> Vec<Session> {
        let mut sessions: Vec<_> = self.sessions.rows().values().collect();
        sessions.sort_by_key(|session| Reverse(session.updated_at));
        part(sessions.into_iter(), page).cloned().collect()
    }

    pub(super) fn turns(&self, query: &TurnQuery) -> Vec<Turn> {
        match query {
            TurnQuery::Range { session, after, limit } => {
                self.turns_after(session, *after).take(*limit as usize).cloned().collect()
            }
            TurnQuery::Hidden { session, after, limit } => {
                let hidden = self.turns_after(session, *after).filter(|turn| turn.hidden.is_some());
                hidden.take(*limit as usize).cloned().collect()
            }
            TurnQuery::Ids(ids) => ids.iter().filter_map(|id| self.turns.get(id)).cloned().collect(),
            TurnQuery::Recent { session, as_of, keep, limit } => {
                let mut turns = self.recent_turns(session.as_ref(), *as_of);
                if let Some(keep) = keep {
                    turns.truncate(MOST_TESTED as usize);
                    turns.retain(|turn| keep.keeps(ItemRef::Turn(turn)));
                }
                turns.into_iter().take(*limit as usize).cloned().collect()
            }
        }
    }

    /// The turns that recall can see, the newest first.
    fn recent_turns(&self, session: Option<&SessionId>, as_of: Option<Timestamp>) -> Vec<&Turn> {
        let mut turns: Vec<&Turn> = self.turns.rows().values().collect();
        turns.retain(|turn| {
            turn.hidden.is_none()
                && session.is_none_or(|session| turn.session == *session)
                && as_of.is_none_or(|as_of| turn.created_at <= as_of)
        });
        turns.sort_by_key(|turn| Reverse((turn.created_at, turn.seq, turn.id)));
        turns
    }

    /// The turns of a session after a `seq`, in their order.
    fn turns_after(&self, session: &SessionId, after: Option<u64>) -> impl Iterator<Item = &Turn> {
        let first = after.map_or(Some(0), |after| after.checked_add(1));
        let range = first.map(|first| (session.clone(), first)..=(session.clone(), u64::MAX));
        let places = range.into_iter().flat_map(|range| self.places.rows().range(range));
        places.filter_map(|(_, id)| self.turns.get(id))
    }

    pub(super) fn memories(&self, query: &MemoryQuery) -> Vec<Memory> {
        let MemoryQuery { select, session, agent, kind, keep, page } = query;
        let newest_first = |condition: &dyn Fn(&Memory) -> bool| {
            let mut memories: Vec<_> =
                self.memories.rows().values().filter(|memory| condition(memory)).collect();
            memories.sort_by_key(|memory| Reverse((memory.recorded_at, memory.id)));
            memories
        };
        let memories = match select {
            MemorySelect::Current { as_of } => newest_first(&|memory| believed(memory, *as_of)),
            MemorySelect::All => newest_first(&|_| true),
            MemorySelect::Hidden => newest_first(&|memory| memory.hidden.is_some()),
            MemorySelect::Ids(ids) => ids.iter().filter_map(|id| self.memories.get(id)).collect(),
            MemorySelect::History(id) => self.history(*id),
        };
        let chosen = memories.into_iter().filter(|memory| {
            session.as_ref().is_none_or(|session| memory.session.as_ref() == Some(session))
                && agent.as_ref().is_none_or(|agent| memory.agent.as_ref() == Some(agent))
                && kind.is_none_or(|kind| memory.kind == kind)
                && Keep::is_kept(keep.as_ref(), ItemRef::Memory(memory))
        });
        part(chosen, *page).cloned().collect()
    }

    /// A memory with all that it replaced and all that replaced it, oldest first.
    fn history(&self, id: MemoryId) -> Vec<&Memory> {
        if !self.memories.contains(&id) {
            return Vec::new();
        }
        let former = self.replaced_by(id);
        let mut later = Vec::new();
        let mut seen = BTreeSet::from([id]);
        let mut last = self.memories.get(&id);
        while let Some(next) = last.and_then(|memory| memory.replaced_by)
            && seen.insert(next)
        {
            later.push(next);
            last = self.memories.get(&next);
        }
        // Memories of the same moment are ordered by replacement: a memory comes after the one that it replaced.
        let ids = former.iter().filter(|former| **former != id).chain([&id]);
        let ids = ids.chain(later.iter().filter(|later| !former.contains(later)));
        let mut history: Vec<_> = ids.filter_map(|id| self.memories.get(id)).collect();
        history.sort_by_key(|memory| memory.recorded_at);
        history
    }

    pub(super) fn summaries(&self, query: &SummaryQuery) -> Vec<Summary> {
        let mut summaries: Vec<_> = self.summaries.rows().values().collect();
        summaries.retain(|summary| {
            summary.session == query.session
                && query.strategy.is_none_or(|strategy| summary.strategy == strategy)
                && query.status.is_none_or(|status| summary.status == status)
        });
        summaries.sort_by_key(|summary| Reverse((summary.end_seq, summary.created_at, summary.id)));
        summaries.into_iter().take(query.limit as usize).cloned().collect()
    }

    pub(super) fn summaries_with(&self, query: &PartQuery) -> Vec<Summary> {
        let mut current: BTreeMap<&SessionId, &Summary> = BTreeMap::new();
        let reach = |summary: &Summary| (summary.end_seq, summary.created_at, summary.id);
        for summary in self.summaries.rows().values() {
            let is_candidate =
                summary.strategy == Strategy::Window && summary.status == SummaryStatus::Completed;
            if is_candidate && current.get(&summary.session).is_none_or(|known| reach(summary) > reach(known))
            {
                current.insert(&summary.session, summary);
            }
        }
        let sessions = self.sessions(Page::first(u32::MAX));
        let summaries = sessions.iter().filter_map(|session| current.get(&session.id).copied());
        part(summaries.filter(|summary| summary.has(query.part)), query.page).cloned().collect()
    }

    pub(super) fn search(&self, query: &TextQuery) -> Vec<Hit> {
        let found = match query.matching {
            TextMatch::Words => self.index.search(&query.text),
            TextMatch::Similar { min_similarity } => self.similar(&query.text, min_similarity),
        };
        let found = found.into_iter().filter_map(|(item, score)| Some((self.visible(item, query)?, score)));
        let mut hits: Vec<Hit> = found.map(|(item, score)| Hit { item, score }).collect();
        hits.sort_by(|a, b| {
            let newest = || b.item.created_at().cmp(&a.item.created_at());
            b.score.total_cmp(&a.score).then_with(newest).then_with(|| b.item.id().cmp(&a.item.id()))
        });
        if query.keep.is_some() {
            hits.truncate(MOST_TESTED as usize);
            hits.retain(|hit| hit.item.tested().is_some_and(|item| Keep::is_kept(query.keep.as_ref(), item)));
        }
        hits.truncate(query.limit as usize);
        hits
    }

    fn similar(&self, question: &str, min_similarity: f32) -> BTreeMap<ItemId, f32> {
        let similar = SimilarWords::new(question);
        let turns = self.turns.rows().values().map(|turn| (ItemId::Turn(turn.id), &turn.content));
        let memories =
            self.memories.rows().values().map(|memory| (ItemId::Memory(memory.id), &memory.content));
        let scored = turns.chain(memories).map(|(item, content)| (item, similar.score(content)));
        scored.filter(|(_, score)| *score > 0.0 && *score >= min_similarity).collect()
    }

    /// The item, if the query may see it.
    fn visible(&self, item: ItemId, query: &TextQuery) -> Option<Item> {
        match item {
            ItemId::Turn(id) => {
                let turn = self.turns.get(&id).filter(|turn| {
                    query.kinds.turns
                        && turn.hidden.is_none()
                        && query.session.as_ref().is_none_or(|session| turn.session == *session)
                        && query.as_of.is_none_or(|as_of| turn.created_at <= as_of)
                })?;
                Some(Item::Turn(turn.clone()))
            }
            ItemId::Memory(id) => {
                let memory = self.memories.get(&id).filter(|memory| {
                    query.kinds.memories
                        && believed(memory, query.as_of)
                        && (query.session.is_none()
                            || memory.session.is_none()
                            || memory.session == query.session)
                })?;
                Some(Item::Memory(memory.clone()))
            }
            ItemId::Summary(_) => None,
        }
    }

    pub(super) fn feed(&self, after: u64, limit: u32) -> Vec<(u64, Item)> {
        let changed = self.revisions.rows().iter().filter(|(_, revision)| **revision > after);
        let mut changed: Vec<(u64, ItemId)> = changed.map(|(item, revision)| (*revision, *item)).collect();
        changed.sort_unstable();
        let found = changed.into_iter().filter_map(|(revision, item)| Some((revision, self.item(item)?)));
        let mut feed: Vec<(u64, Item)> = Vec::new();
        for (revision, item) in found {
            if feed.len() >= limit as usize && feed.last().is_some_and(|(last, _)| *last != revision) {
                break;
            }
            feed.push((revision, item));
        }
        // Within a revision, turns stand in the order in which they were said.
        feed.sort_by_key(|(revision, item)| match item {
            Item::Turn(turn) => (*revision, turn.seq),
            Item::Memory(_) | Item::Summary(_) => (*revision, u64::MAX),
        });
        feed
    }

    /// An item as the feed shows it: summaries only when they are completed.
    fn item(&self, item: ItemId) -> Option<Item> {
        match item {
            ItemId::Turn(id) => self.turns.get(&id).cloned().map(Item::Turn),
            ItemId::Memory(id) => self.memories.get(&id).cloned().map(Item::Memory),
            ItemId::Summary(id) => self
                .summaries
                .get(&id)
                .filter(|summary| summary.status == SummaryStatus::Completed)
                .cloned()
                .map(Item::Summary),
        }
    }

    pub(super) fn vectors_since(&self, model: &str, after: u64) -> Vec<StoredVector> {
        let stored =
            self.vectors.rows().iter().filter(|((_, of), (revision, _))| of == model && *revision > after);
        let mut stored: Vec<StoredVector> = stored
            .map(|((item, model), (revision, vector))| StoredVector {
                revision: *revision,
                vector: ItemVector { item: *item, model: model.clone(), vector: vector.clone() },
            })
            .collect();
        stored.sort_by_key(|stored| stored.revision);
        stored
    }

    pub(super) fn segments(&self, space: &str, from: u64) -> impl Iterator<Item = &Segment> {
        let segments = self.segments.rows().range((space.to_owned(), from)..);
        segments.map(|(_, segment)| segment).take_while(move |segment| segment.space == space)
    }

    pub(super) fn progress(&self, space: &str) -> u64 {
        self.progress.get(space).copied().unwrap_or(0)
    }

    pub(super) fn jobs(&self, query: &JobQuery) -> Vec<Job> {
        let mut jobs: Vec<_> = self.jobs.rows().values().collect();
        jobs.retain(|job| {
            query.id.is_none_or(|id| job.id == id)
                && query.status.is_none_or(|status| job.status == status)
                && query.session.as_ref().is_none_or(|session| job.session.as_ref() == Some(session))
        });
        jobs.sort_by_key(|job| Reverse((job.created_at, job.id)));
        jobs.into_iter().take(query.limit as usize).cloned().collect()
    }

    /// The job of this user that has waited longest and may be leased.
    pub(super) fn next_job(&self, request: &LeaseRequest) -> Option<&Job> {
        let jobs = self.jobs.rows().values();
        let is_live = |job: &&Job| request.is_held(job);
        let held: BTreeSet<&SessionId> =
            jobs.clone().filter(is_live).filter_map(|job| job.session.as_ref()).collect();
        let free = jobs.filter(|job| match job.status {
            JobStatus::Queued => request.is_due(job),
            JobStatus::Leased => !is_live(job),
            JobStatus::Done | JobStatus::Dead => false,
        });
        free.filter(|job| job.session.as_ref().is_none_or(|session| !held.contains(session)))
            .min_by_key(|job| (job.run_at, job.created_at, job.id))
    }

    pub(super) fn requests(&self, query: &MetricQuery) -> Vec<RequestMetric> {
        let mut requests: Vec<_> = self.requests.rows().values().collect();
        requests.retain(|request| {
            query.id.is_none_or(|id| request.id == id)
                && query.since.is_none_or(|since| request.created_at >= since)
        });
        requests.sort_by_key(|request| Reverse((request.created_at, request.id)));
        requests.into_iter().take(query.limit as usize).cloned().collect()
    }

    pub(super) fn growth(&self, since: Timestamp) -> Growth {
        let day = |at: &Timestamp| {
            let micros = at.as_microsecond() - since.as_microsecond();
            (micros >= 0).then(|| u32::try_from(micros / DAY_MICROS).ok()).flatten()
        };
        let turns = self.turns.rows().values().filter_map(|turn| Some((day(&turn.created_at)?, 1)));
        let memories =
            self.memories.rows().values().filter_map(|memory| Some((day(&memory.recorded_at)?, 1)));
        let growth = Growth {
            sessions: self.sessions.rows().len() as u64,
            turns: self.turns.rows().len() as u64,
            memories: self.memories.rows().len() as u64,
            days: Vec::new(),
        };
        growth.with_days(turns.collect(), memories.collect())
    }

    pub(super) fn count_into(&self, health: &mut Health) {
        health.users += 1;
        health.sessions += self.sessions.rows().len() as u64;
        health.turns += self.turns.rows().len() as u64;
        health.memories += self.memories.rows().len() as u64;
        let items = self.turns.rows().len() + self.memories.rows().len();
        health.unindexed += items.saturating_sub(self.index.len()) as u64;
    }

    /// Adds inconsistencies to `problems`.
    pub(super) fn verify(&self, user: &UserId, problems: &mut Vec<String>) {
        for session in self.sessions.rows().values() {
            let range = (session.id.clone(), 0)..=(session.id.clone(), u64::MAX);
            let places = self.places.rows().range(range);
            let gap_free = places.clone().zip(0..).all(|(((_, seq), _), expected)| *seq == expected);
            if !gap_free || places.count() as u64 != session.turn_count {
                problems.push(format!(
                    "session `{}` of user `{user}` has a gap in its turns; report this as a defect",
                    session.id
                ));
            }
        }
    }
}

/// Whether a memory was believed at a moment, or is believed now.
fn believed(memory: &Memory, as_of: Option<Timestamp>) -> bool {
    as_of.map_or_else(|| memory.is_current(), |moment| memory.believed_at(moment))
}
