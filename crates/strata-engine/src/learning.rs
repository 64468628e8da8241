//! Learning: background work, done by jobs that survive a crash.
//!
//! Recording enqueues a session's jobs in the change set that records its turns ([`Jobs::jobs_for_turns`]). A worker calls
//! [`Learning::learn_next`], which leases one job. The job's handler computes the changes, and they are written
//! *together with* the job's end. If the lease was lost in the meantime, nothing is written, so that each job has
//! exactly one result. A handler only reads, and returns [`Work`].
//!
//! Deliberately absent: threads, timers and the caller ([`Learning::learn_next`] does one job and returns).

mod as_said;
mod by_hand;
mod checked;
mod compare;
mod evict;
mod explain;
mod extract;
mod infer;
mod moves;
mod nearest;
mod read;
mod reconcile;
mod relate;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use strata_core::error::{Error, Result};
use strata_core::id::{LeaseId, UserId};
use strata_core::job::Job;
use strata_core::ports::{ChatModel, Clock, Embedder, IdSource, Reader};
use strata_core::store::{LeaseRequest, Store};

pub(crate) use checked::ModelCounts;
pub use checked::ModelRecord;
pub use explain::{CandidateExplanation, SentenceExplanation, StatementExplanation, TextExplanation};
pub use extract::MODEL_FAILED;
pub(crate) use nearest::StatementVectors;

use crate::contexts::Contexts;
use crate::jobs::{Ended, JobKind, Jobs, Learned, Work, after};
use crate::learn::LearnSettings;
use crate::memories::Memories;
use crate::recall::Recall;
use crate::recording::Recording;
use crate::summaries::Summaries;

/// Learns from recorded turns: extracts statements, reconciles memories, evicts old entries.
#[derive(Clone)]
pub struct Learning {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) settings: Arc<LearnSettings>,
    /// Without a model, the built-in rules learn.
    pub(crate) model: Option<Arc<dyn ChatModel>>,
    /// Without a reader, the rules read.
    pub(crate) reader: Option<Arc<dyn Reader>>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) vectors: StatementVectors,
    pub(crate) counts: ModelCounts,
    pub(crate) jobs: Jobs,
    pub(crate) recording: Recording,
    pub(crate) recall: Recall,
    pub(crate) summaries: Summaries,
    pub(crate) memories: Memories,
    pub(crate) contexts: Arc<Contexts>,
    /// The user that was served last: users take turns.
    pub(crate) served: Arc<Mutex<Option<UserId>>>,
}

impl Learning {
    /// Works on the job that has waited longest, of the next user with one; `None` if no job is due. A failed job is put back or
    /// given up, and is not an error here. Only a failure of the store is an error.
    pub async fn learn_next(&self, worker: &str) -> Result<Option<Learned>> {
        self.learn_next_of(None, worker).await
    }

    /// Like [`Self::learn_next`], but works only on jobs of this user.
    pub async fn learn_next_of(&self, user: Option<&UserId>, worker: &str) -> Result<Option<Learned>> {
        let now = self.clock.now();
        let request = LeaseRequest {
            lease: LeaseId(self.ids.next()),
            worker: worker.to_owned(),
            now,
            until: after(now, u64::from(self.settings.lease_secs)),
            user: user.cloned(),
            after: self.served().clone(),
        };
        let Some(job) = self.store.lease_job(&request).await? else { return Ok(None) };
        *self.served() = Some(job.user.clone());
        let most = self.settings.max_attempts.max(1);
        let worked = if job.attempts > most {
            // Earlier workers never finished this job. It may be the job that crashes them.
            Err(Error::internal(format!("the job was started {most} times and never finished")))
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

    /// The user that was served last, by any worker of this process.
    fn served(&self) -> MutexGuard<'_, Option<UserId>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until no job is due. Returns the jobs that were worked on.
    pub async fn learn_all(&self) -> Result<Vec<Learned>> {
        let mut learned = Vec::new();
        while let Some(one) = self.learn_next("learn_all").await? {
            learned.push(one);
        }
        Ok(learned)
    }

    /// Calls the handler of a job's kind. No other place knows the handlers.
    async fn work_on(&self, job: &Job, lease: LeaseId) -> Result<(Ended, Work)> {
        let work = match job.kind.parse()? {
            // This handler writes its changes itself, because it may have to read the memories again.
            JobKind::Extract => return self.extract_job(job, lease).await,
            // This handler writes its changes itself, because its rows exist before the job ends.
            JobKind::Summarise => return self.summaries.summarise_job(job, lease).await,
            // This handler writes its changes itself, because recording may change the state in the meantime.
            JobKind::State => return self.state_job(job, lease).await,
            JobKind::Evict => self.evict_job(job).await?,
            JobKind::Compact => self.contexts.compact_job(job).await?,
            JobKind::Reply => return self.recording.settle_reply(job, lease).await,
        };
        self.jobs.settle(job, lease, work).await
    }
}

#[cfg(test)]
mod tests;
