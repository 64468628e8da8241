//! The background work: jobs that were given up, and summaries that failed.

use std::collections::BTreeMap;

use strata::SystemClock;
use strata_core::Store;
use strata_core::job::JobStatus;
use strata_core::ports::Clock;
use strata_core::store::{JobQuery, Page, SummaryQuery};
use strata_core::summary::SummaryStatus;
use strata_engine::WITHOUT_MODEL;

use super::{Finding, JOBS_A_USER, Status, USERS_A_PAGE};

/// The number of a user's last sessions that are searched for summaries that are stuck.
const SESSIONS_A_USER: u32 = 50;

/// The background work of all users.
#[derive(Default)]
struct BackgroundWork {
    /// Dead jobs by kind.
    dead: BTreeMap<String, u64>,
    last_error: Option<String>,
    /// The last `summarise` jobs, and those of them that were done without the model.
    summaries: u64,
    without_model: u64,
    failure: Option<String>,
    /// Summaries that should be finished by now.
    stuck: u64,
}

/// Checks the jobs and summaries of all users.
pub(super) async fn check(store: &dyn Store) -> strata_core::Result<Vec<Finding>> {
    let mut found = BackgroundWork::default();
    let mut page = Page::first(USERS_A_PAGE);
    loop {
        let users = store.users(page).await?;
        for user in &users {
            found.read_jobs(store, user).await?;
            found.read_stuck(store, user).await?;
        }
        if users.len() < USERS_A_PAGE as usize {
            return Ok(vec![found.jobs(), found.summaries()]);
        }
        page.offset += u64::from(USERS_A_PAGE);
    }
}

impl BackgroundWork {
    async fn read_jobs(&mut self, store: &dyn Store, user: &strata_core::UserId) -> strata_core::Result<()> {
        let of = |status, limit| JobQuery { status: Some(status), limit, ..JobQuery::default() };
        for job in store.jobs(user, &of(JobStatus::Dead, u32::MAX)).await? {
            *self.dead.entry(job.kind).or_default() += 1;
            self.last_error = job.last_error.or(self.last_error.take());
        }
        let done = store.jobs(user, &of(JobStatus::Done, JOBS_A_USER)).await?;
        for job in done.into_iter().filter(|job| job.kind == "summarise") {
            let noted = |name: &str| job.result.as_ref().and_then(|result| result.get(name)?.as_str());
            self.summaries += 1;
            if let Some(failure) = noted(WITHOUT_MODEL) {
                self.without_model += 1;
                self.failure = Some(failure.to_owned());
            }
        }
        Ok(())
    }

    async fn read_stuck(&mut self, store: &dyn Store, user: &strata_core::UserId) -> strata_core::Result<()> {
        let now = SystemClock.now();
        for session in store.sessions(user, Page::first(SESSIONS_A_USER)).await? {
            let status = Some(SummaryStatus::Processing);
            let query = SummaryQuery { session: session.id, strategy: None, status, limit: 1 };
            let rows = store.summaries(user, &query).await?;
            self.stuck += rows.iter().filter(|row| row.is_stuck(now)).count() as u64;
        }
        Ok(())
    }

    fn jobs(&self) -> Finding {
        if self.dead.is_empty() {
            return Finding::new("jobs", Status::Ok, "none was given up");
        }
        let dead: Vec<String> = self.dead.iter().map(|(kind, count)| format!("{count} `{kind}`")).collect();
        let why = self.last_error.as_ref().map(|error| format!("; an error: {error}")).unwrap_or_default();
        let found = format!(
            "given up: {}{why}; `strata jobs list --status dead` lists them, `strata jobs retry ID` tries one again",
            dead.join(", ")
        );
        Finding::new("jobs", Status::Problem, found)
    }

    fn summaries(&self) -> Finding {
        let mut problems = Vec::new();
        if self.without_model > 0 {
            let why = self.failure.as_deref().unwrap_or_default();
            problems.push(format!(
                "{} of the last {} jobs were done without the model; a failure: {why}",
                self.without_model, self.summaries
            ));
        }
        if self.stuck > 0 {
            problems.push(format!(
                "{} unfinished for more than five minutes; a running `strata serve` takes them over",
                self.stuck
            ));
        }
        match problems.as_slice() {
            [] => Finding::new("summaries", Status::Ok, "no failures"),
            problems => Finding::new("summaries", Status::Warning, problems.join("; ")),
        }
    }
}
