//! Learning: the work behind the conversation, as jobs that survive a crash.
//!
//! Recording asks for a session's jobs in the change set that records ([`Jobs::asked_for`]). A worker calls
//! [`Learning::learn_next`], which leases one job, lets its handler work out what to write, and writes that *together with* the
//! job's end: where the lease was lost meanwhile nothing is written, so there is exactly one result. A handler only reads and
//! returns [`Work`].
//!
//! What is deliberately absent: threads, timers and who calls ([`Learning::learn_next`] does one job and returns).

mod evict;
mod extract;
mod infer;
mod reconcile;

use std::sync::Arc;

use strata_core::error::{Error, Result};
use strata_core::id::LeaseId;
use strata_core::job::Job;
use strata_core::ports::{ChatModel, Clock, IdSource};
use strata_core::store::{LeaseRequest, Store};

use crate::jobs::{Ended, JobKind, Jobs, Learned, Work, after};
use crate::learn::LearnSettings;
use crate::recall::Recall;
use crate::recording::Recording;
use crate::summaries::Summaries;

/// Learns from what was recorded: statements, memories, eviction.
#[derive(Clone)]
pub struct Learning {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) settings: Arc<LearnSettings>,
    /// Without a model the rules learn.
    pub(crate) model: Option<Arc<dyn ChatModel>>,
    pub(crate) jobs: Jobs,
    pub(crate) recording: Recording,
    pub(crate) recall: Recall,
    pub(crate) summaries: Summaries,
}

impl Learning {
    /// Works on the job that has waited longest, of any user; `None` when nothing is due. A job that fails is put back or
    /// given up and is no error here: an error is one of the store's.
    pub async fn learn_next(&self, worker: &str) -> Result<Option<Learned>> {
        let now = self.clock.now();
        let request = LeaseRequest {
            lease: LeaseId(self.ids.next()),
            worker: worker.to_owned(),
            now,
            until: after(now, u64::from(self.settings.lease_secs)),
        };
        let Some(job) = self.store.lease_job(&request).await? else { return Ok(None) };
        let most = self.settings.max_attempts.max(1);
        let worked = if job.attempts > most {
            // Whoever held it before never came to its end: it may be what brings workers down.
            Err(Error::internal(format!("the job was begun {most} times and never came to an end")))
        } else {
            self.work_on(&job, request.lease).await
        };
        let (ended, work) = match worked {
            Ok(done) => done,
            Err(error) => (self.jobs.put_back(&job, request.lease, &error).await?, Work::default()),
        };
        let Work { spent, events, .. } = work;
        let Job { id, user, session, kind, .. } = job;
        Ok(Some(Learned { job: id, user, session, kind, ended, spent, events }))
    }

    /// Works until nothing is due, and says what was done.
    pub async fn learn_all(&self) -> Result<Vec<Learned>> {
        let mut learned = Vec::new();
        while let Some(one) = self.learn_next("learn_all").await? {
            learned.push(one);
        }
        Ok(learned)
    }

    /// The one place that knows which kind of job is whose.
    async fn work_on(&self, job: &Job, lease: LeaseId) -> Result<(Ended, Work)> {
        let work = match job.kind.parse()? {
            // It writes by itself, because it may have to look at the memories again.
            JobKind::Extract => return self.extract_job(job, lease).await,
            // It writes by itself, because its rows are there before the job ends.
            JobKind::Summarise => return self.summaries.summarise_job(job, lease).await,
            JobKind::Evict => self.evict_job(job).await?,
            JobKind::Reply => return self.recording.settle_reply(job, lease).await,
        };
        self.jobs.settle(job, lease, work).await
    }
}

#[cfg(test)]
mod tests;
