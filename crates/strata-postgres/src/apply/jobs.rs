//! Writing jobs: enqueueing, leasing, finishing, retrying.

use jiff::Timestamp;
use strata_core::job::{Job, JobOutcome, JobStatus};
use strata_core::store::LeaseRequest;
use strata_core::{Error, JobId, LeaseId, SessionId, UserId};
use tokio_postgres::Client;
use uuid::Uuid;

use super::{Writing, unknown};
use crate::error::Outcome;
use crate::row::{self, json, micros};
use crate::sql::{args, execute, first, one, rows};

/// How many jobs a worker tries to take at once. Those whose session another worker is just taking are passed over.
const CANDIDATES: i64 = 8;

impl Writing<'_> {
    pub(super) async fn enqueue_job(&mut self, job: &Job) -> Outcome<()> {
        if job.user != *self.user {
            return Err(Error::invalid(format!("job `{}` names another user than the call", job.id)).into());
        }
        let sql = "INSERT INTO jobs (user_id, id, session, kind, payload, status, attempts, run_at, lease_id,
                       lease_worker, lease_until, last_error, created_at, updated_at, result)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
        let lease = job.lease.as_ref();
        let args = args![
            self.name(),
            job.id.0,
            job.session.as_ref().map(SessionId::as_str),
            job.kind.as_str(),
            json(&job.payload)?,
            job.status.as_str(),
            i64::from(job.attempts),
            micros(job.run_at),
            lease.map(|lease| lease.id.0),
            lease.map(|lease| lease.worker.as_str()),
            lease.map(|lease| micros(lease.until)),
            job.last_error.as_deref(),
            micros(job.created_at),
            micros(job.updated_at),
            job.result.as_ref().map(json).transpose()?,
        ];
        let inserted = execute(self.client, sql, args).await;
        inserted.map_err(|fault| {
            fault.or_conflict(|| format!("job `{}` exists already; give it another id", job.id))
        })?;
        self.wake(job.run_at);
        Ok(())
    }

    /// Notes that workers have something to do after the commit, if the job is due.
    fn wake(&mut self, run_at: Timestamp) {
        self.wakes |= run_at <= self.at;
    }

    pub(super) async fn enqueue_once(&mut self, job: &Job) -> Outcome<()> {
        let sql = "SELECT id, attempts, run_at FROM jobs
                   WHERE user_id = $1 AND session IS NOT DISTINCT FROM $2 AND kind = $3 AND status = 'queued'
                   ORDER BY number LIMIT 1";
        let session = job.session.as_ref().map(SessionId::as_str);
        let waiting = first(self.client, sql, args![self.name(), session, job.kind.as_str()]).await?;
        let Some(waiting) = waiting else { return self.enqueue_job(job).await };
        let (id, attempts, run_at): (Uuid, i64, i64) =
            (waiting.try_get(0)?, waiting.try_get(1)?, waiting.try_get(2)?);
        let due = micros(job.run_at);
        if attempts == 0 && run_at > due {
            let sql = "UPDATE jobs SET run_at = $3 WHERE user_id = $1 AND id = $2";
            execute(self.client, sql, args![self.name(), id, due]).await?;
            self.wake(job.run_at);
        }
        Ok(())
    }

    pub(super) async fn prune_jobs(&self, before: Timestamp) -> Outcome<()> {
        let sql = "DELETE FROM jobs WHERE user_id = $1 AND status = 'done' AND updated_at < $2";
        execute(self.client, sql, args![self.name(), micros(before)]).await?;
        Ok(())
    }

    pub(super) async fn finish_job(&self, id: JobId, lease: LeaseId, outcome: &JobOutcome) -> Outcome<()> {
        // The row stays locked, so no worker takes the job over between this and the commit.
        let sql = "SELECT lease_id FROM jobs WHERE user_id = $1 AND id = $2 FOR UPDATE";
        let row = first(self.client, sql, args![self.name(), id.0]).await?;
        let held: Option<Uuid> = row.ok_or_else(|| unknown("job", id))?.try_get(0)?;
        if held != Some(lease.0) {
            let message = format!(
                "lease `{lease}` on job `{id}` was lost; drop the result, another worker has the job"
            );
            return Err(Error::conflict(message).into());
        }
        let mut uncounted = 0_i64;
        let (status, run_at, error, result) = match outcome {
            JobOutcome::Done { result } => (JobStatus::Done, None, None, result.as_ref()),
            JobOutcome::Dropped => {
                let sql = "DELETE FROM jobs WHERE user_id = $1 AND id = $2";
                execute(self.client, sql, args![self.name(), id.0]).await?;
                return Ok(());
            }
            JobOutcome::Later { run_at } => {
                uncounted = 1;
                (JobStatus::Queued, Some(micros(*run_at)), None, None)
            }
            JobOutcome::Retry { run_at, error } => {
                (JobStatus::Queued, Some(micros(*run_at)), Some(error.as_str()), None)
            }
            JobOutcome::Dead { error } => (JobStatus::Dead, None, Some(error.as_str()), None),
        };
        let sql = "UPDATE jobs SET status = $3, run_at = coalesce($4, run_at), last_error = coalesce($5, last_error),
                       result = coalesce($7, result), attempts = greatest(attempts - $8, 0),
                       lease_id = NULL, lease_worker = NULL, lease_until = NULL, updated_at = $6
                   WHERE user_id = $1 AND id = $2";
        let args = args![
            self.name(),
            id.0,
            status.as_str(),
            run_at,
            error,
            micros(self.at),
            result.map(json).transpose()?,
            uncounted
        ];
        execute(self.client, sql, args).await?;
        Ok(())
    }

    pub(super) async fn retry_job(&mut self, id: JobId) -> Outcome<()> {
        let sql = "SELECT status FROM jobs WHERE user_id = $1 AND id = $2 FOR UPDATE";
        let row = first(self.client, sql, args![self.name(), id.0]).await?;
        let status: String = row.ok_or_else(|| unknown("job", id))?.try_get(0)?;
        if status != JobStatus::Dead.as_str() {
            let message = format!("job `{id}` is {status}; only a dead job can be retried");
            return Err(Error::conflict(message).into());
        }
        let sql = "UPDATE jobs SET status = 'queued', attempts = 0, run_at = $3, updated_at = $3
                   WHERE user_id = $1 AND id = $2";
        execute(self.client, sql, args![self.name(), id.0, micros(self.at)]).await?;
        self.wake(self.at);
        Ok(())
    }
}

/// Leases the job that is next among those that are due or whose lease has ended, and whose session no other worker holds: the
/// one that has waited longest, of the next user if users take turns. The caller has begun a transaction.
///
/// Workers skip the rows that another one has locked. Two jobs of one session are two rows, so a worker also takes a lock that
/// stands for the session, and looks again under it whether the session is held.
pub(crate) async fn lease_job(client: &Client, request: &LeaseRequest) -> Outcome<Option<Job>> {
    let Some(last) = &request.after else {
        return Ok(take_one(client, request, ("", None), "").await?.0);
    };
    for (last, until) in [(last.as_str(), None), ("", Some(last.as_str()))] {
        let mut last = last.to_owned();
        // Another worker may be taking a job of the same session: then the users behind that one are next.
        loop {
            match take_one(client, request, (&last, until), "j.user_id,").await? {
                (Some(job), _) => return Ok(Some(job)),
                (None, Some(passed)) => last = passed,
                (None, None) => break,
            }
        }
    }
    Ok(None)
}

/// Leases one of the first jobs of the users after one and up to another one. Also returns the user of the last job that could
/// not be taken.
async fn take_one(
    client: &Client,
    request: &LeaseRequest,
    (after, until): (&str, Option<&str>),
    order: &str,
) -> Outcome<(Option<Job>, Option<String>)> {
    let now = micros(request.now);
    let (latest, latest_end) = (micros(request.latest()), micros(request.latest_end()));
    let sql = format!(
        "SELECT j.user_id, j.id, j.session FROM jobs j
         WHERE j.status IN ('queued', 'leased')
           AND ((j.status = 'queued' AND (j.run_at <= $1 OR j.created_at > $3 OR j.updated_at > $3))
             OR (j.status = 'leased' AND (j.lease_until <= $1 OR j.lease_until > $4 OR j.updated_at > $3)))
           AND NOT EXISTS (SELECT 1 FROM jobs o
                           WHERE o.status = 'leased' AND o.user_id = j.user_id AND o.session = j.session
                             AND o.lease_until > $1 AND o.lease_until <= $4 AND o.updated_at <= $3)
           AND ($5::text IS NULL OR j.user_id = $5) AND j.user_id > $6 AND ($7::text IS NULL OR j.user_id <= $7)
         ORDER BY {order} j.run_at, j.created_at, j.id LIMIT $2 FOR UPDATE OF j SKIP LOCKED"
    );
    let only = request.user.as_ref().map(UserId::as_str);
    let args = args![now, CANDIDATES, latest, latest_end, only, after, until];
    let mut passed = None;
    for candidate in rows(client, &sql, args).await? {
        let (user, id): (String, Uuid) = (candidate.try_get(0)?, candidate.try_get(1)?);
        let session: Option<String> = candidate.try_get(2)?;
        if let Some(session) = session {
            let name = format!("{user}\u{1}{session}");
            let sql = "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))";
            if !one(client, sql, args![name]).await?.try_get::<_, bool>(0)? {
                passed = Some(user);
                continue;
            }
        }
        if let Some(job) = take(client, request, &user, id).await? {
            return Ok((Some(job), None));
        }
        passed = Some(user);
    }
    Ok((None, passed))
}

/// Takes a job unless its session is held.
async fn take(client: &Client, request: &LeaseRequest, user: &str, id: Uuid) -> Outcome<Option<Job>> {
    let sql = format!(
        "UPDATE jobs j SET status = 'leased', attempts = attempts + 1, lease_id = $3, lease_worker = $4,
             lease_until = $5, updated_at = $6
         WHERE user_id = $1 AND id = $2
           AND NOT EXISTS (SELECT 1 FROM jobs o
                           WHERE o.status = 'leased' AND o.user_id = j.user_id AND o.session = j.session
                             AND o.lease_until > $6 AND o.lease_until <= $8 AND o.updated_at <= $7)
         RETURNING {}",
        row::JOB
    );
    let args = args![
        user,
        id,
        request.lease.0,
        request.worker.as_str(),
        micros(request.until),
        micros(request.now),
        micros(request.latest()),
        micros(request.latest_end())
    ];
    first(client, &sql, args).await?.as_ref().map(row::job).transpose()
}
