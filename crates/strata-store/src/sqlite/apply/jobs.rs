//! Writing jobs: enqueueing, leasing, finishing, retrying.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use strata_core::job::{Job, JobOutcome, JobStatus};
use strata_core::store::LeaseRequest;
use strata_core::{Error, JobId, LeaseId, SessionId, UserId};

use super::super::error::{Fault, Outcome};
use super::super::row::{self, json, micros};
use super::{Writing, unknown};

impl Writing<'_> {
    pub(super) fn enqueue_job(&self, job: &Job) -> Outcome<()> {
        if job.user != *self.user {
            return Err(Error::invalid(format!("job `{}` names another user than the call", job.id)).into());
        }
        self.conn
            .prepare_cached(
                "INSERT INTO jobs (user_id, id, session, kind, payload, status, attempts, run_at, lease_id,
                     lease_worker, lease_until, last_error, created_at, updated_at, result)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            )?
            .execute(params![
                self.user_id,
                job.id.0.as_bytes(),
                job.session.as_ref().map(SessionId::as_str),
                job.kind,
                json(&job.payload)?,
                job.status.as_str(),
                job.attempts,
                micros(job.run_at),
                job.lease.as_ref().map(|lease| *lease.id.0.as_bytes()),
                job.lease.as_ref().map(|lease| lease.worker.as_str()),
                job.lease.as_ref().map(|lease| micros(lease.until)),
                job.last_error,
                micros(job.created_at),
                micros(job.updated_at),
                job.result.as_ref().map(json).transpose()?,
            ])
            .map_err(|error| {
                Fault::from(error)
                    .or_conflict(|| format!("job `{}` exists already; give it another id", job.id))
            })?;
        Ok(())
    }

    pub(super) fn enqueue_once(&self, job: &Job) -> Outcome<()> {
        let waiting: Option<(i64, u32, i64)> = self
            .conn
            .prepare_cached(
                "SELECT row, attempts, run_at FROM jobs INDEXED BY jobs_waiting
                 WHERE user_id = ?1 AND session IS ?2 AND kind = ?3 AND status = 'queued' ORDER BY row LIMIT 1",
            )?
            .query_row(
                params![self.user_id, job.session.as_ref().map(SessionId::as_str), job.kind],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .optional()?;
        let due = micros(job.run_at);
        match waiting {
            None => self.enqueue_job(job)?,
            Some((row, 0, run_at)) if run_at > due => {
                self.conn
                    .prepare_cached("UPDATE jobs SET run_at = ?2 WHERE row = ?1")?
                    .execute([row, due])?;
            }
            Some(_) => {}
        }
        Ok(())
    }

    pub(super) fn prune_jobs(&self, before: Timestamp) -> Outcome<()> {
        self.conn
            .prepare_cached("DELETE FROM jobs WHERE user_id = ?1 AND status = 'done' AND updated_at < ?2")?
            .execute(params![self.user_id, micros(before)])?;
        Ok(())
    }

    pub(super) fn finish_job(&self, id: JobId, lease: LeaseId, outcome: JobOutcome) -> Outcome<()> {
        let held: Option<Option<[u8; 16]>> = self
            .conn
            .prepare_cached("SELECT lease_id FROM jobs WHERE user_id = ?1 AND id = ?2")?
            .query_row(params![self.user_id, id.0.as_bytes()], |row| row.get(0))
            .optional()?;
        if held.ok_or_else(|| unknown("job", id))? != Some(*lease.0.as_bytes()) {
            let message = format!(
                "lease `{lease}` on job `{id}` was lost; drop the result, another worker has the job"
            );
            return Err(Error::conflict(message).into());
        }
        let mut uncounted = 0;
        let (status, run_at, error, result) = match outcome {
            JobOutcome::Done { result } => (JobStatus::Done, None, None, result),
            JobOutcome::Dropped => {
                self.conn
                    .prepare_cached("DELETE FROM jobs WHERE user_id = ?1 AND id = ?2")?
                    .execute(params![self.user_id, id.0.as_bytes()])?;
                return Ok(());
            }
            JobOutcome::Later { run_at } => {
                uncounted = 1;
                (JobStatus::Queued, Some(micros(run_at)), None, None)
            }
            JobOutcome::Retry { run_at, error } => {
                (JobStatus::Queued, Some(micros(run_at)), Some(error), None)
            }
            JobOutcome::Dead { error } => (JobStatus::Dead, None, Some(error), None),
        };
        self.conn
            .prepare_cached(
                "UPDATE jobs SET status = ?3, run_at = coalesce(?4, run_at), last_error = coalesce(?5, last_error),
                     result = coalesce(?7, result), attempts = max(attempts - ?8, 0),
                     lease_id = NULL, lease_worker = NULL, lease_until = NULL, updated_at = ?6
                 WHERE user_id = ?1 AND id = ?2",
            )?
            .execute(params![
                self.user_id,
                id.0.as_bytes(),
                status.as_str(),
                run_at,
                error,
                micros(self.at),
                result.as_ref().map(json).transpose()?,
                uncounted
            ])?;
        Ok(())
    }

    pub(super) fn retry_job(&self, id: JobId) -> Outcome<()> {
        let status: Option<String> = self
            .conn
            .prepare_cached("SELECT status FROM jobs WHERE user_id = ?1 AND id = ?2")?
            .query_row(params![self.user_id, id.0.as_bytes()], |row| row.get(0))
            .optional()?;
        let status = status.ok_or_else(|| unknown("job", id))?;
        if status != JobStatus::Dead.as_str() {
            let message = format!("job `{id}` is {status}; only a dead job can be retried");
            return Err(Error::conflict(message).into());
        }
        self.conn
            .prepare_cached(
                "UPDATE jobs SET status = 'queued', attempts = 0, run_at = ?3, updated_at = ?3
                 WHERE user_id = ?1 AND id = ?2",
            )?
            .execute(params![self.user_id, id.0.as_bytes(), micros(self.at)])?;
        Ok(())
    }
}

/// The row of the job that is next among those that are due or whose lease has ended, and whose session no other worker holds:
/// the one that has waited longest, of the next user if users take turns.
pub(crate) fn due_job(conn: &Connection, request: &LeaseRequest) -> Outcome<Option<i64>> {
    let Some(last) = &request.after else {
        return first_due(conn, request, 0, "jobs_open", "AND j.user_id > ?5 ORDER BY j.run_at");
    };
    let mut known = conn.prepare_cached("SELECT id FROM users WHERE name = ?1")?;
    let last = known.query_row([last.as_str()], |row| row.get(0)).optional()?.unwrap_or(0);
    let order = "ORDER BY j.user_id, j.run_at";
    match first_due(conn, request, last, "jobs_in_turn", &format!("AND j.user_id > ?5 {order}"))? {
        None => first_due(conn, request, last, "jobs_in_turn", &format!("AND j.user_id <= ?5 {order}")),
        found => Ok(found),
    }
}

/// The first such job of some users, in the order of an index.
fn first_due(
    conn: &Connection,
    request: &LeaseRequest,
    last: i64,
    index: &str,
    users: &str,
) -> Outcome<Option<i64>> {
    let mut select = conn.prepare_cached(&format!(
        "SELECT j.row FROM jobs j INDEXED BY {index}
         WHERE j.status IN ('queued', 'leased')
           AND ((j.status = 'queued' AND (j.run_at <= ?1 OR j.created_at > ?2 OR j.updated_at > ?2))
             OR (j.status = 'leased' AND (j.lease_until <= ?1 OR j.lease_until > ?3 OR j.updated_at > ?2)))
           AND NOT EXISTS (SELECT 1 FROM jobs o
                           WHERE o.status = 'leased' AND o.user_id = j.user_id AND o.session = j.session
                             AND o.lease_until > ?1 AND o.lease_until <= ?3 AND o.updated_at <= ?2)
           AND (?4 IS NULL OR j.user_id = (SELECT id FROM users WHERE name = ?4))
           {users}, j.created_at, j.id LIMIT 1"
    ))?;
    let (now, latest, latest_end) =
        (micros(request.now), micros(request.latest()), micros(request.latest_end()));
    let user = request.user.as_ref().map(UserId::as_str);
    Ok(select.query_row(params![now, latest, latest_end, user, last], |row| row.get(0)).optional()?)
}

/// Leases the job that [`due_job`] finds.
pub(crate) fn lease_job(conn: &Connection, request: &LeaseRequest) -> Outcome<Option<Job>> {
    let now = micros(request.now);
    loop {
        let Some(due) = due_job(conn, request)? else { return Ok(None) };
        let leased = lease_row(conn, request, due, now);
        let Err(Fault::Damaged { error, .. }) = leased else { return leased };
        // A job that cannot be read would stand in front of all others for ever.
        tracing::error!(%error, "a damaged job was given up");
        conn.prepare_cached(
            "UPDATE jobs SET status = 'dead', lease_id = NULL, updated_at = ?2 WHERE row = ?1",
        )?
        .execute([due, now])?;
    }
}

fn lease_row(conn: &Connection, request: &LeaseRequest, due: i64, now: i64) -> Outcome<Option<Job>> {
    conn.prepare_cached(
        "UPDATE jobs SET status = 'leased', attempts = attempts + 1, lease_id = ?2, lease_worker = ?3,
             lease_until = ?4, updated_at = ?5
         WHERE row = ?1",
    )?
    .execute(params![due, request.lease.0.as_bytes(), request.worker, micros(request.until), now])?;
    let sql = format!("SELECT {} FROM jobs j JOIN users u ON u.id = j.user_id WHERE j.row = ?1", row::JOB);
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query([due])?;
    rows.next()?.map(row::job).transpose()
}
