//! Applying changes to a user's jobs.

use jiff::Timestamp;

use super::user_data::{UserData, unknown};
use crate::error::{Error, Result};
use crate::id::{JobId, LeaseId, UserId};
use crate::job::{Job, JobOutcome, JobStatus};

impl UserData {
    pub(super) fn enqueue_job(&mut self, user: &UserId, job: Job) -> Result<()> {
        if job.user != *user {
            return Err(Error::invalid(format!("job `{}` names another user than the call", job.id)));
        }
        if self.jobs.contains(&job.id) {
            return Err(Error::conflict(format!("job `{}` exists already; give it another id", job.id)));
        }
        self.jobs.put(job.id, job);
        Ok(())
    }

    pub(super) fn enqueue_once(&mut self, user: &UserId, job: Job) -> Result<()> {
        let waits = |other: &&Job| {
            other.status == JobStatus::Queued && other.kind == job.kind && other.session == job.session
        };
        let Some(waiting) = self.jobs.rows().values().find(waits) else { return self.enqueue_job(user, job) };
        if waiting.attempts == 0 && waiting.run_at > job.run_at {
            let forward = Job { run_at: job.run_at, ..waiting.clone() };
            self.jobs.put(forward.id, forward);
        }
        Ok(())
    }

    pub(super) fn finish_job(
        &mut self,
        at: Timestamp,
        id: JobId,
        lease: LeaseId,
        outcome: JobOutcome,
    ) -> Result<()> {
        let mut job = self.jobs.get(&id).ok_or_else(|| unknown("job", id))?.clone();
        if job.lease.as_ref().is_none_or(|held| held.id != lease) {
            return Err(Error::conflict(format!(
                "lease `{lease}` on job `{id}` was lost; drop the result, another worker has the job"
            )));
        }
        job.lease = None;
        job.updated_at = at;
        match outcome {
            JobOutcome::Done { result } => {
                job.status = JobStatus::Done;
                job.result = result;
            }
            JobOutcome::Dropped => {
                self.jobs.remove(&id);
                return Ok(());
            }
            JobOutcome::Later { run_at } => {
                job.status = JobStatus::Queued;
                job.run_at = run_at;
                job.attempts = job.attempts.saturating_sub(1);
            }
            JobOutcome::Retry { run_at, error } => {
                job.status = JobStatus::Queued;
                job.run_at = run_at;
                job.last_error = Some(error);
            }
            JobOutcome::Dead { error } => {
                job.status = JobStatus::Dead;
                job.last_error = Some(error);
            }
        }
        self.jobs.put(id, job);
        Ok(())
    }

    pub(super) fn retry_job(&mut self, at: Timestamp, id: JobId) -> Result<()> {
        let job = self.jobs.get(&id).ok_or_else(|| unknown("job", id))?;
        if job.status != JobStatus::Dead {
            return Err(Error::conflict(format!(
                "job `{id}` is {}; only a dead job can be retried",
                job.status.as_str()
            )));
        }
        let job = Job { status: JobStatus::Queued, attempts: 0, run_at: at, updated_at: at, ..job.clone() };
        self.jobs.put(id, job);
        Ok(())
    }

    /// Stores a job under a new lease. This is the only write outside a change set.
    pub(super) fn put_leased(&mut self, job: Job) {
        self.jobs.put(job.id, job);
        self.jobs.commit();
    }
}
