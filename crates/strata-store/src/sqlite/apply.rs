//! Applying a change set to the database, inside a transaction that the caller begins and ends.

mod expect;
mod forget;
mod jobs;
mod keys;
mod memories;
mod turns;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use strata_core::metric::{Feedback, RequestMetric};
use strata_core::state::State;
use strata_core::store::{AppendedTurn, Applied, Change, ChangeSet, Idempotency, MetricQuery};
use strata_core::summary::Summary;
use strata_core::turn::{Hidden, NewTurn};
use strata_core::vector::ItemVector;
use strata_core::{Error, ItemId, RequestId, SessionId, UserId};
use uuid::Uuid;

pub(crate) use jobs::{due_job, lease_job};
pub(crate) use turns::correct_turns;

use super::error::{Fault, Outcome};
use super::read;
use super::row::{count, follows, json, list, metadata, micros};

/// Checks the expectations and applies all of `changes`. If it fails, the caller rolls back.
pub(crate) fn apply(conn: &Connection, user: &UserId, changes: ChangeSet) -> Outcome<Applied> {
    let ChangeSet { at, idempotency, expect, changes } = changes;
    if let Some(idempotency) = &idempotency
        && let Some(answer) = earlier_answer(conn, user, idempotency)?
    {
        return Ok(answer);
    }
    let mut writing = Writing::begin(conn, user, at, changes.iter().map(Change::items_changed).sum())?;
    expect.iter().try_for_each(|expectation| writing.expect(expectation))?;
    for change in changes {
        writing.apply(change)?;
    }
    if let Some(idempotency) = &idempotency {
        writing.keep_answer(idempotency)?;
    }
    Ok(writing.applied)
}

/// The answer that was given under a key before.
fn earlier_answer(conn: &Connection, user: &UserId, idempotency: &Idempotency) -> Outcome<Option<Applied>> {
    let key = &idempotency.key;
    let earlier: Option<(i64, String)> = conn
        .prepare_cached(
            "SELECT i.fingerprint, i.answer FROM idempotency i JOIN users u ON u.id = i.user_id
             WHERE u.name = ?1 AND i.key = ?2",
        )?
        .query_row(params![user.as_str(), key], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((fingerprint, answer)) = earlier else { return Ok(None) };
    if fingerprint.cast_unsigned() != idempotency.fingerprint {
        let message = format!("idempotency key `{key}` was used for another request; use a new key");
        return Err(Error::conflict(message).into());
    }
    let answer: Applied = serde_json::from_str(&answer).map_err(|error| {
        Error::internal(format!("the answer kept in table `idempotency` under `{key}` cannot be read"))
            .with_source(error)
    })?;
    Ok(Some(Applied { replayed: true, ..answer }))
}

/// One change set being applied.
pub(super) struct Writing<'a> {
    pub(super) conn: &'a Connection,
    pub(super) user: &'a UserId,
    pub(super) user_id: i64,
    revision: i64,
    /// The number of this change set among the user's: the version of the sessions that it writes to.
    version: i64,
    at: Timestamp,
    applied: Applied,
}

impl<'a> Writing<'a> {
    /// Finds or makes the user's row and raises its counters: one statement for a user that exists. Row numbers are not
    /// remembered from one set to the next, because another process may have deleted the row.
    fn begin(conn: &'a Connection, user: &'a UserId, at: Timestamp, items_changed: usize) -> Outcome<Self> {
        let raise = count(items_changed as u64)?;
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let found = conn
            .prepare_cached(
                "UPDATE users SET revision = revision + ?2, writes = writes + 1 WHERE name = ?1
                 RETURNING id, revision, writes",
            )?
            .query_row(params![user.as_str(), raise], row)
            .optional()?;
        let (user_id, revision, version) = match found {
            Some(found) => found,
            None => conn
                .prepare_cached(
                    "INSERT INTO users (name, revision, writes) VALUES (?1, ?2, 1) RETURNING id, revision, writes",
                )?
                .query_row(params![user.as_str(), raise], row)?,
        };
        Ok(Self { conn, user, user_id, revision, version, at, applied: Applied::default() })
    }

    fn keep_answer(&self, idempotency: &Idempotency) -> Outcome<()> {
        self.conn
            .prepare_cached(
                "INSERT INTO idempotency (user_id, key, fingerprint, answer, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                self.user_id,
                idempotency.key,
                idempotency.fingerprint.cast_signed(),
                json(&self.applied)?,
                micros(self.at)
            ])?;
        Ok(())
    }

    fn apply(&mut self, change: Change) -> Outcome<()> {
        match change {
            Change::AppendTurns { session, turns } => self.append(&session, turns),
            Change::HideTurns { ids, hidden } => {
                ids.into_iter().try_for_each(|id| self.hide("turns", "turn", id.0, hidden))
            }
            Change::PutState { session, state } => self.put_state(&session, &state),
            Change::PutSummary(summary) => self.put_summary(&summary),
            Change::AddMemory(memory) => self.add_memory(&memory),
            Change::ReviseMemory { id, archive_as, content, metadata } => {
                self.revise_memory(id, archive_as, content, metadata)
            }
            Change::CloseMemory { id, valid_to, replaced_by } => self.close_memory(id, valid_to, replaced_by),
            Change::NoteMemory { id, notes } => self.note_memory(id, notes),
            Change::ConfirmMemory { id, turns } => self.confirm_memory(id, &turns),
            Change::HideMemory { id, hidden } => self.hide("memories", "memory", id.0, hidden),
            Change::PutVectors(vectors) => {
                let revision = self.raise_vectors()?;
                vectors.iter().try_for_each(|vector| self.put_vector(vector, revision))
            }
            Change::PutSegment { segment, epoch } => self.put_segment(&segment, epoch),
            Change::MergeSegments { segment, epoch } => self.merge_segments(&segment, epoch),
            Change::DropSegments { space } => self.drop_segments(&space),
            Change::SetProgress { space, revision } => self.set_progress(&space, revision),
            Change::EnqueueJob(job) => self.enqueue_job(&job),
            Change::EnqueueOnce(job) => self.enqueue_once(&job),
            Change::FinishJob { id, lease, outcome } => self.finish_job(id, lease, outcome),
            Change::RetryJob { id } => self.retry_job(id),
            Change::PruneJobs { before } => self.prune_jobs(before),
            Change::AddRequest(request) => self.add_request(&request),
            Change::AddFeedback { id, feedback } => self.add_feedback(id, feedback),
            Change::PruneRequests { before } => self.prune_requests(before),
            Change::PruneIdempotency { before } => self.prune_idempotency(before),
            Change::AddKey(key) => self.add_key(&key),
            Change::RevokeKey { id } => self.revoke_key(id),
            Change::Forget(what) => self.forget(what),
        }
    }

    fn append(&mut self, session: &SessionId, turns: Vec<NewTurn>) -> Outcome<()> {
        let (session_id, first) = self.touch_session(session, turns.len())?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO turns (user_id, session_id, seq, created_at, hidden_at, hidden_reason, revision, id, role,
                                token_count, name, metadata, content, follows, interrupted, truncated, tool_calls,
                                tool_call_id, failed, input_tokens, output_tokens, high_value, agent,
                                memories_in_session, memory_metadata)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
                     ?22, ?23, ?24, ?25)",
        )?;
        for (turn, seq) in turns.iter().zip(first..) {
            let notes = &turn.notes;
            let inserted = insert.execute(params![
                self.user_id,
                session_id,
                seq,
                micros(turn.created_at),
                turn.hidden.map(|hidden| micros(hidden.at)),
                turn.hidden.map(|hidden| hidden.reason.as_str()),
                self.revision,
                turn.id.0.as_bytes(),
                turn.role.as_str(),
                turn.token_count,
                turn.name,
                metadata(&turn.metadata),
                turn.content,
                follows(notes.follows)?,
                notes.interrupted,
                notes.truncated,
                list(&notes.tool_calls)?,
                notes.tool_call_id,
                notes.failed,
                notes.usage.input,
                notes.usage.output,
                notes.high_value,
                notes.owner.agent,
                // 1 for memories that are bound to the session, 2 for a session that stands apart.
                u8::from(notes.owner.in_session) + u8::from(notes.owner.in_session && notes.owner.apart),
                metadata(&notes.owner.metadata),
            ]);
            inserted.map_err(|error| {
                Fault::from(error)
                    .or_conflict(|| format!("turn `{}` exists already; give it another id", turn.id))
            })?;
            self.applied.turns.push(AppendedTurn { id: turn.id, seq: seq.cast_unsigned() });
        }
        Ok(())
    }

    /// Notes a write to a session, which is created if it does not exist, and takes the next `places` of its sequence.
    /// Returns the session's row and the first of the places.
    fn touch_session(&self, session: &SessionId, places: usize) -> Outcome<(i64, i64)> {
        let places = count(places as u64)?;
        let (name, at) = (session.as_str(), micros(self.at));
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        // Writers that overtake each other do not set the session's time back.
        let found = self
            .conn
            .prepare_cached(
                "UPDATE sessions SET next_seq = next_seq + ?3, updated_at = max(updated_at, ?4), version = ?5
                 WHERE user_id = ?1 AND name = ?2 RETURNING id, next_seq - ?3",
            )?
            .query_row(params![self.user_id, name, places, at, self.version], row)
            .optional()?;
        if let Some(found) = found {
            return Ok(found);
        }
        let made = self
            .conn
            .prepare_cached(
                "INSERT INTO sessions (user_id, name, created_at, updated_at, next_seq, version)
                 VALUES (?1, ?2, ?4, ?4, ?3, ?5) RETURNING id, next_seq - ?3",
            )?
            .query_row(params![self.user_id, name, places, at, self.version], row)?;
        Ok(made)
    }

    /// Hides a turn or a memory, or shows it again.
    fn hide(&self, table: &str, what: &str, id: Uuid, hidden: Option<Hidden>) -> Outcome<()> {
        let changed = self
            .conn
            .prepare_cached(&format!(
                "UPDATE {table} SET hidden_at = ?3, hidden_reason = ?4, revision = ?5 WHERE user_id = ?1 AND id = ?2"
            ))?
            .execute(params![
                self.user_id,
                id.as_bytes(),
                hidden.map(|hidden| micros(hidden.at)),
                hidden.map(|hidden| hidden.reason.as_str()),
                self.revision
            ])?;
        if changed == 0 { Err(unknown(what, id)) } else { Ok(()) }
    }

    fn put_state(&self, session: &SessionId, state: &State) -> Outcome<()> {
        let (session_id, _) = self.touch_session(session, 0)?;
        self.conn
            .prepare_cached("UPDATE sessions SET state = ?2 WHERE id = ?1")?
            .execute(params![session_id, json(state)?])?;
        Ok(())
    }

    /// The row of a session that has to exist.
    fn session_id(&self, session: &SessionId) -> Outcome<i64> {
        self.find_session(session)?.ok_or_else(|| unknown("session", session))
    }

    fn find_session(&self, session: &SessionId) -> Outcome<Option<i64>> {
        let mut statement =
            self.conn.prepare_cached("SELECT id FROM sessions WHERE user_id = ?1 AND name = ?2")?;
        Ok(statement.query_row(params![self.user_id, session.as_str()], |row| row.get(0)).optional()?)
    }

    fn put_summary(&self, summary: &Summary) -> Outcome<()> {
        let session_id = self.session_id(&summary.session)?;
        let written = self
            .conn
            .prepare_cached(
                "INSERT INTO summaries (user_id, session_id, id, revision, strategy, level, start_seq, end_seq, base_id,
                     status, input_tokens, output_tokens, generation_ms, created_at, updated_at, structured, text)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
                 ON CONFLICT (user_id, id) DO UPDATE SET
                     revision = excluded.revision, strategy = excluded.strategy, level = excluded.level,
                     start_seq = excluded.start_seq, end_seq = excluded.end_seq, base_id = excluded.base_id,
                     status = excluded.status, input_tokens = excluded.input_tokens,
                     output_tokens = excluded.output_tokens, generation_ms = excluded.generation_ms,
                     created_at = excluded.created_at, updated_at = excluded.updated_at,
                     structured = excluded.structured, text = excluded.text
                 WHERE session_id = excluded.session_id",
            )?
            .execute(params![
                self.user_id,
                session_id,
                summary.id.0.as_bytes(),
                self.revision,
                summary.strategy.as_str(),
                summary.level,
                count(summary.start_seq)?,
                count(summary.end_seq)?,
                summary.base_id.map(|id| *id.0.as_bytes()),
                summary.status.as_str(),
                summary.input_tokens,
                summary.output_tokens,
                summary.generation_ms,
                micros(summary.created_at),
                micros(summary.updated_at),
                summary.structured.as_ref().map(json).transpose()?,
                summary.text,
            ]);
        let session = &summary.session;
        let changed = written.map_err(|error| {
            // The only other unique index is the one that allows one `processing` row a session.
            Fault::from(error).or_conflict(|| {
                format!(
                    "session `{session}` is being summarised already; wait until that is completed or failed"
                )
            })
        })?;
        if changed == 0 {
            let message =
                format!("summary `{}` exists already in another session; give it another id", summary.id);
            return Err(Error::conflict(message).into());
        }
        Ok(())
    }

    fn put_vector(&self, vector: &ItemVector, revision: i64) -> Outcome<()> {
        let Some((kind, item)) = self.find_item(vector.item)? else { return Ok(()) };
        let model: Option<i64> = self
            .conn
            .prepare_cached("SELECT id FROM models WHERE name = ?1")?
            .query_row([&vector.model], |row| row.get(0))
            .optional()?;
        let model: i64 = match model {
            Some(model) => model,
            None => self
                .conn
                .prepare_cached("INSERT INTO models (name) VALUES (?1) RETURNING id")?
                .query_row([&vector.model], |row| row.get(0))?,
        };
        let components: Vec<u8> = vector.vector.values.iter().map(|value| value.cast_unsigned()).collect();
        self.conn
            .prepare_cached(
                "INSERT INTO vectors (user_id, model_id, kind, item, revision, scale, components)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (user_id, kind, item, model_id) DO UPDATE SET
                     revision = excluded.revision, scale = excluded.scale, components = excluded.components",
            )?
            .execute(params![
                self.user_id,
                model,
                kind,
                item,
                revision,
                f64::from(vector.vector.scale),
                components
            ])?;
        Ok(())
    }

    /// An item's kind and row as table `vectors` names them, if the item exists.
    fn find_item(&self, item: ItemId) -> Outcome<Option<(i64, i64)>> {
        let (kind, sql) = item_row(item);
        let mut statement = self.conn.prepare_cached(sql)?;
        let row = statement
            .query_row(params![self.user_id, item.uuid().as_bytes()], |row| row.get(0))
            .optional()?;
        Ok(row.map(|row| (kind, row)))
    }

    fn add_request(&self, request: &RequestMetric) -> Outcome<()> {
        self.conn
            .prepare_cached(
                "INSERT INTO requests (user_id, id, session, created_at, metric) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                self.user_id,
                request.id.0.as_bytes(),
                request.session.as_ref().map(SessionId::as_str),
                micros(request.created_at),
                json(request)?
            ])
            .map_err(|error| {
                Fault::from(error).or_conflict(|| format!("request `{}` exists already", request.id))
            })?;
        Ok(())
    }

    fn add_feedback(&self, id: RequestId, feedback: Feedback) -> Outcome<()> {
        let query = MetricQuery { id: Some(id), since: None, limit: 1 };
        let found = read::requests(self.conn, self.user, &query)?.pop();
        let mut request = found.ok_or_else(|| unknown("request", id))?;
        request.feedback.push(feedback);
        self.conn
            .prepare_cached("UPDATE requests SET metric = ?3 WHERE user_id = ?1 AND id = ?2")?
            .execute(params![self.user_id, id.0.as_bytes(), json(&request)?])?;
        Ok(())
    }

    fn prune_requests(&self, before: Timestamp) -> Outcome<()> {
        self.conn
            .prepare_cached("DELETE FROM requests WHERE user_id = ?1 AND created_at < ?2")?
            .execute(params![self.user_id, micros(before)])?;
        Ok(())
    }

    /// Reads all answers of the user: an index by time would slow every write down for a query that runs once an hour.
    fn prune_idempotency(&self, before: Timestamp) -> Outcome<()> {
        self.conn
            .prepare_cached("DELETE FROM idempotency WHERE user_id = ?1 AND created_at < ?2")?
            .execute(params![self.user_id, micros(before)])?;
        Ok(())
    }
}

/// The number of an item's kind in table `vectors`, and the query for the item's row.
fn item_row(item: ItemId) -> (i64, &'static str) {
    match item {
        ItemId::Turn(_) => (0, "SELECT row FROM turns WHERE user_id = ?1 AND id = ?2"),
        ItemId::Memory(_) => (1, "SELECT row FROM memories WHERE user_id = ?1 AND id = ?2"),
        ItemId::Summary(_) => (2, "SELECT row FROM summaries WHERE user_id = ?1 AND id = ?2"),
    }
}

fn unknown(what: &str, id: impl std::fmt::Display) -> Fault {
    Error::not_found(format!("{what} `{id}` does not exist for this user")).into()
}
