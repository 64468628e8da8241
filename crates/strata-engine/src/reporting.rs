//! Reports over a period, read from the rows of requests and jobs, and complaints about requests.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use strata_core::error::{Error, ErrorKind, Result};
use strata_core::id::{RequestId, UserId};
use strata_core::metric::{Feedback, FeedbackKind, RequestMetric};
use strata_core::ports::Clock;
use strata_core::store::{
    Change, ChangeSet, Growth, JobQuery, MemoryQuery, MemorySelect, Page, Store, TurnQuery,
};

use crate::report::{InForce, MIN_ITEMS, Period, Report, ReportRows, day_start};
use crate::requests::Requests;

/// The most characters of a complaint.
const MAX_FEEDBACK_CHARS: usize = 2_000;

/// The most complaints about one request.
const MAX_FEEDBACK: usize = 20;

/// The days of a report that does not name its period: the evolution plan's week.
pub const REPORT_DAYS: u32 = 7;

/// Reports, growth, and complaints.
#[derive(Clone)]
pub struct Reporting {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) requests: Requests,
    pub(crate) in_force: Arc<InForce>,
}

impl Reporting {
    /// The report of some users since a moment. At most `limit` of the newest rows of each kind and user are read.
    pub async fn report(&self, users: &[UserId], since: Timestamp, limit: u32) -> Result<Report> {
        let until = self.clock.now();
        // A period that would begin in the future is the last second.
        let since = since.min(until.saturating_sub(SignedDuration::from_secs(1)).unwrap_or(until));
        let mut rows = ReportRows { in_force: (*self.in_force).clone(), ..ReportRows::default() };
        let (asked, mut items) = (Period { since, until }, 0);
        for user in users {
            let requests = self.requests.list(user, Some(since), limit).await?;
            let jobs = self.store.jobs(user, &JobQuery { limit, ..JobQuery::default() }).await?;
            rows.add(requests, jobs, asked, limit);
            items += self.items(user).await?;
        }
        rows.items = Some(items);
        Ok(Report::of(&rows, asked))
    }

    /// The number of a user's turns and current memories, counted up to a few.
    async fn items(&self, user: &UserId) -> Result<usize> {
        let few = MIN_ITEMS as u32;
        let turns = TurnQuery::Recent { session: None, as_of: None, keep: None, limit: few };
        let current = MemorySelect::Current { as_of: None };
        let memories = MemoryQuery { page: Page::first(few), ..MemoryQuery::new(current) };
        Ok(self.store.turns(user, &turns).await?.len() + self.store.memories(user, &memories).await?.len())
    }

    /// The moment so many days before now.
    pub fn days_ago(&self, days: u32) -> Timestamp {
        let ago = SignedDuration::from_hours(24 * i64::from(days));
        self.clock.now().checked_sub(ago).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// The first moment of the day (UTC) that is so many days before today.
    pub fn day_start(&self, days: u32) -> Timestamp {
        day_start(self.days_ago(days))
    }

    /// How much a user has, and what came on each day since a moment.
    pub async fn growth(&self, user: &UserId, since: Timestamp) -> Result<Growth> {
        self.store.growth(user, since).await
    }

    /// Files a complaint about a request; *not found* if the user has made no such request.
    pub async fn complain(
        &self,
        user: &UserId,
        id: RequestId,
        kind: FeedbackKind,
        text: &str,
    ) -> Result<RequestMetric> {
        let text = text.trim().replace('\0', "");
        if text.chars().count() > MAX_FEEDBACK_CHARS {
            return Err(Error::invalid(format!(
                "the complaint has more than {MAX_FEEDBACK_CHARS} characters; shorten it"
            )));
        }
        // The row may still wait to be written.
        let row = self.requests.get(user, id).await?;
        if row.feedback.len() >= MAX_FEEDBACK {
            return Err(Error::conflict(format!(
                "request `{id}` has {MAX_FEEDBACK} complaints already; read them instead of adding another"
            )));
        }
        let at = self.clock.now();
        let feedback = Feedback { kind, at, text };
        let filed = self.store.apply(user, ChangeSet::one(at, Change::AddFeedback { id, feedback })).await;
        match filed {
            // A worker has taken the row from the queue and not written it yet.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::unavailable("the request is still being written; try again").retryable());
            }
            filed => filed?,
        };
        self.requests.get(user, id).await
    }
}
