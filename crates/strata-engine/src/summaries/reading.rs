//! Reads summaries: the context of the sliding-window design, the structured part of the evolution plan, and
//! statistics.

use super::Summaries;
use super::todos::LearnedTodos;
use crate::learn::structured::{Point, Structured};
use crate::learn::window::{WindowContext, gap};
use strata_core::error::Result;
use strata_core::id::{SessionId, SummaryId, UserId};
use strata_core::store::{Page, PartQuery, SummaryQuery};
use strata_core::summary::{Summary, SummaryPart, SummaryStats, SummaryStatus};
use strata_language::text::fold;

/// The most turns of a gap. A summary is made every few rounds, so that only a session without one has more.
const MAX_GAP: u64 = 512;

/// The most summaries of a session that are counted.
const MAX_COUNTED: u32 = 1_000;

/// The fewest and the most summaries in one read. A summary has at most a few kilobytes of points.
const READ_AT_ONCE: (usize, usize) = (50, 500);

/// For each point that is wanted, at most this many summaries are read, and at least [`LEAST_READ`] in all: sessions may all
/// have the same point, and it is listed once.
const READ_PER_POINT: usize = 20;
const LEAST_READ: usize = 1_000;

/// The versions of a session's summaries, and statistics about them.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryReport {
    /// The versions; the one that reaches furthest comes first.
    pub versions: Vec<SummaryVersion>,
    /// Statistics of the last thousand versions.
    pub stats: SummaryStats,
}

/// A version and its base.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryVersion {
    /// The summary.
    pub summary: Summary,
    /// The last turn that its base covers.
    pub base_end_seq: Option<u64>,
    /// Whether it should be finished by now.
    pub stuck: bool,
}

/// A point of a session's summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructuredPoint {
    /// The session.
    pub session: SessionId,
    /// The summary that holds it.
    pub summary: SummaryId,
    /// The text of the point.
    pub text: String,
    /// The last turn that the point comes from.
    pub seq: Option<u64>,
}

impl Summaries {
    /// The session's summaries of all strategies; the one that reaches furthest comes first.
    pub async fn list(&self, user: &UserId, session: &SessionId, limit: u32) -> Result<Vec<Summary>> {
        let query = SummaryQuery { session: session.clone(), strategy: None, status: None, limit };
        let summaries = self.store.summaries(user, &query).await?;
        if summaries.is_empty() {
            self.sessions.get(user, session).await?;
        }
        Ok(summaries)
    }

    /// The read side of the sliding-window design: the last completed summary of the window and the turns after it, up
    /// to the user's current message. While there is no summary, it is the raw conversation. *Not found* if the session
    /// does not exist.
    pub async fn window_context(&self, user: &UserId, session: &SessionId) -> Result<WindowContext> {
        let turn_count = self.sessions.get(user, session).await?.turn_count;
        let latest = self.latest(user, session, SummaryStatus::Completed).await?;
        let covered = latest.as_ref().map(|summary| summary.end_seq);
        let first = covered.map_or(0, |end| end + 1);
        let from = first.max(turn_count.saturating_sub(MAX_GAP));
        let turns = self.visible(user, session, from, turn_count).await?;
        let memory_text = latest.map(|summary| summary.text);
        Ok(WindowContext { memory_text, gap: gap(turns, covered), left_out: from - first })
    }

    /// The versions of a session's summaries, at most `limit`, and statistics about them (observability in the
    /// sliding-window design).
    pub async fn report(&self, user: &UserId, session: &SessionId, limit: u32) -> Result<SummaryReport> {
        let summaries = self.list(user, session, limit.max(MAX_COUNTED)).await?;
        let now = self.clock.now();
        let stats = SummaryStats::of(&summaries[..summaries.len().min(MAX_COUNTED as usize)], now);
        let base_end = |summary: &Summary| {
            let base = summaries.iter().find(|other| Some(other.id) == summary.base_id)?;
            Some(base.end_seq)
        };
        let version = |summary: &Summary| SummaryVersion {
            base_end_seq: base_end(summary),
            stuck: summary.is_stuck(now),
            summary: summary.clone(),
        };
        Ok(SummaryReport { versions: summaries.iter().take(limit as usize).map(version).collect(), stats })
    }

    /// One part of the current summaries of a session, or of all of a user's sessions: for instance all open todos.
    /// The session with the last write comes first. A point that several sessions share is listed once. At most `most`
    /// points are returned; twenty summaries are read for each of them, and a thousand in all, at the most.
    ///
    /// Of the todos, those that learning knows to have ended are left out, and those that only learning has found are added.
    pub async fn structured(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
        part: SummaryPart,
        most: usize,
    ) -> Result<Vec<StructuredPoint>> {
        let learned = match part {
            SummaryPart::Todos => LearnedTodos::read(self.store.as_ref(), user, session).await?,
            _ => LearnedTodos::default(),
        };
        let mut points = match session {
            Some(session) => {
                self.sessions.get(user, session).await?;
                let summary = self.latest(user, session, SummaryStatus::Completed).await?;
                let points = summary.iter().flat_map(|summary| points_of(summary, part));
                points.filter(|point| learned.is_open(point)).collect()
            }
            None => self.points_of_all(user, part, most, &learned).await?,
        };
        if points.len() < most {
            self.add_learned(user, &learned, &mut points).await?;
        }
        points.truncate(most);
        Ok(points)
    }

    async fn points_of_all(
        &self,
        user: &UserId,
        part: SummaryPart,
        most: usize,
        learned: &LearnedTodos,
    ) -> Result<Vec<StructuredPoint>> {
        let mut points: Vec<StructuredPoint> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        let most_read = most.saturating_mul(READ_PER_POINT).max(LEAST_READ) as u64;
        let mut offset = 0;
        while points.len() < most && offset < most_read {
            let limit = (most - points.len()).clamp(READ_AT_ONCE.0, READ_AT_ONCE.1) as u32;
            let page = Page { offset, limit };
            let summaries = self.store.summaries_with(user, &PartQuery { part, page }).await?;
            if summaries.is_empty() {
                break;
            }
            let found = summaries.iter().flat_map(|summary| points_of(summary, part));
            let found = found.filter(|point| learned.is_open(point));
            points.extend(found.filter(|point| seen.insert(fold(&point.text))));
            offset += u64::from(limit);
        }
        Ok(points)
    }

    /// Adds the learned todos that no point tells, each behind the points of its session.
    async fn add_learned(
        &self,
        user: &UserId,
        learned: &LearnedTodos,
        points: &mut Vec<StructuredPoint>,
    ) -> Result<()> {
        let mut sessions: Vec<&SessionId> = learned.sessions().collect();
        sessions.sort_unstable();
        for session in sessions {
            let Some(summary) = self.latest(user, session, SummaryStatus::Completed).await? else { continue };
            let known: Vec<String> = points.iter().map(|point| fold(&point.text)).collect();
            let mut untold = learned.untold(&summary, points);
            untold.retain(|point| !known.contains(&fold(&point.text)));
            let end = points.iter().rposition(|point| point.session == *session);
            let at = end.map_or(points.len(), |end| end + 1);
            points.splice(at..at, untold);
        }
        Ok(())
    }
}

/// The points of a summary's part.
fn points_of(summary: &Summary, part: SummaryPart) -> Vec<StructuredPoint> {
    let structured = summary.structured.as_ref().map(Structured::of_row).unwrap_or_default();
    let point = |point: &Point| StructuredPoint {
        session: summary.session.clone(),
        summary: summary.id,
        text: point.text.clone(),
        seq: point.seq,
    };
    structured.field(part).iter().map(point).collect()
}
