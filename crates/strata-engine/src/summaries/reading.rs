//! What a reader gets of summaries: document 1's context, the parts of document 3, and how making them goes.

use super::Summaries;
use crate::learn::structured::{Field, Structured};
use crate::learn::window::{WindowContext, gap};
use strata_core::error::Result;
use strata_core::id::{SessionId, SummaryId, UserId};
use strata_core::store::{Page, SummaryQuery};
use strata_core::summary::{Summary, SummaryStats, SummaryStatus};
use strata_language::text::fold;

/// The most turns of a gap. A summary is made every few rounds, so that only a session without one has more.
const MAX_GAP: u64 = 512;

/// How many of a session's summaries are counted at the most.
const MAX_COUNTED: u32 = 1_000;

/// How many sessions are read at once.
const SESSIONS: u32 = 500;

/// The versions of a session's summaries, and what making them took.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryReport {
    /// The versions, the one that reaches furthest first.
    pub versions: Vec<SummaryVersion>,
    /// What the last thousand of them took.
    pub stats: SummaryStats,
}

/// A version with what it was built on.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryVersion {
    /// The summary.
    pub summary: Summary,
    /// How far its base reached.
    pub base_end_seq: Option<u64>,
    /// Whether it should have come to an end by now.
    pub stuck: bool,
}

/// Something that a session's summary says in one of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructuredPoint {
    /// The session.
    pub session: SessionId,
    /// The summary that says it.
    pub summary: SummaryId,
    /// What it says.
    pub text: String,
    /// The turn up to which it was said.
    pub seq: Option<u64>,
}

impl Summaries {
    /// The session's summaries of all strategies, the one that reaches furthest first.
    pub async fn list(&self, user: &UserId, session: &SessionId, limit: u32) -> Result<Vec<Summary>> {
        let query = SummaryQuery { session: session.clone(), strategy: None, status: None, limit };
        let summaries = self.store.summaries(user, &query).await?;
        if summaries.is_empty() {
            self.sessions.get(user, session).await?;
        }
        Ok(summaries)
    }

    /// Document 1's read side: the last completed summary of the window with the turns after it, up to the user's current
    /// message; the raw conversation while there is no summary. *Not found* where there is no such session.
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

    /// The versions of a session's summaries, at most `limit`, and what making them took (document 1's observability).
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

    /// What the current summaries of a session, or of all of a user's sessions, say in one part: all open todos, for
    /// instance. The last written session comes first; what two sessions say alike is said once.
    pub async fn structured(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
        field: Field,
    ) -> Result<Vec<StructuredPoint>> {
        if let Some(session) = session {
            self.sessions.get(user, session).await?;
            return self.points(user, session, field).await;
        }
        let mut points: Vec<StructuredPoint> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        let mut offset = 0;
        loop {
            let sessions = self.store.sessions(user, Page { offset, limit: SESSIONS }).await?;
            for session in &sessions {
                let found = self.points(user, &session.id, field).await?;
                points.extend(found.into_iter().filter(|point| seen.insert(fold(&point.text))));
            }
            if sessions.len() < SESSIONS as usize {
                return Ok(points);
            }
            offset += u64::from(SESSIONS);
        }
    }

    async fn points(&self, user: &UserId, session: &SessionId, field: Field) -> Result<Vec<StructuredPoint>> {
        let Some(summary) = self.latest(user, session, SummaryStatus::Completed).await? else {
            return Ok(Vec::new());
        };
        let structured = summary.structured.as_ref().map(Structured::of_row).unwrap_or_default();
        let points = structured.field(field).iter().map(|point| StructuredPoint {
            session: session.clone(),
            summary: summary.id,
            text: point.text.clone(),
            seq: point.seq,
        });
        Ok(points.collect())
    }
}
