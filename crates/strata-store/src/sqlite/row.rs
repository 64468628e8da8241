//! Conversion from rows to domain types and back. Invalid stored data is an error that names the table and the row.

use jiff::Timestamp;
use rusqlite::Row;
use rusqlite::types::FromSql;
use serde::Serialize;
use serde::de::DeserializeOwned;
use strata_core::job::{Job, Lease};
use strata_core::key::{ApiKey, KeyHash, KeyLimits};
use strata_core::memory::MemoryNotes;
use strata_core::summary::Summary;
use strata_core::turn::{Follows, Hidden, Metadata, Owner, TurnNotes, Usage};
use strata_core::{
    Error, JobId, KeyId, LeaseId, Memory, MemoryId, Session, SessionId, SummaryId, Turn, TurnId, UserId,
};
use uuid::Uuid;

use super::error::{Fault, Outcome, damaged};

/// A time as it is stored.
pub(crate) fn micros(timestamp: Timestamp) -> i64 {
    timestamp.as_microsecond()
}

/// A count as it is stored. A count that SQLite's integers cannot hold is refused as too large.
pub(crate) fn count(number: u64) -> Outcome<i64> {
    i64::try_from(number)
        .map_err(|_| Error::too_large(format!("`{number}` is larger than the store can keep")).into())
}

/// A limit, an offset or another bound to compare with; the largest integer of SQLite stands for everything beyond it.
pub(crate) fn bound(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A structured value as it is stored.
pub(crate) fn json(value: &impl Serialize) -> Outcome<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::invalid("a value cannot be written as JSON").with_source(error).into())
}

/// Metadata as it is stored: the client's own text, or NULL if it is empty.
pub(crate) fn metadata(metadata: &Metadata) -> Option<&str> {
    (!metadata.is_empty()).then(|| metadata.as_text())
}

/// A list as it is stored: NULL if it is empty.
pub(crate) fn list(values: &[impl Serialize]) -> Outcome<Option<String>> {
    if values.is_empty() { Ok(None) } else { json(&values).map(Some) }
}

/// One row of a known table, whose first column is its number.
pub(crate) struct Cells<'a> {
    row: &'a Row<'a>,
    table: &'static str,
}

impl<'a> Cells<'a> {
    pub(crate) fn new(table: &'static str, row: &'a Row<'a>) -> Self {
        Self { row, table }
    }

    pub(super) fn damaged(&self, column: usize, detail: impl std::fmt::Display) -> Fault {
        let number = self.row.get(0).unwrap_or(-1);
        let column = self.row.as_ref().column_name(column).unwrap_or("?");
        damaged(self.table, number, format!("column `{column}`: {detail}"))
    }

    pub(crate) fn get<T: FromSql>(&self, column: usize) -> Outcome<T> {
        self.row.get(column).map_err(|error| self.damaged(column, error))
    }

    /// A number that is never negative or larger than its type.
    pub(crate) fn number<T: TryFrom<i64>>(&self, column: usize) -> Outcome<T> {
        let number: i64 = self.get(column)?;
        T::try_from(number).map_err(|_| self.damaged(column, format!("`{number}` is out of range")))
    }

    fn optional_number<T: TryFrom<i64>>(&self, column: usize) -> Outcome<Option<T>> {
        if self.get::<Option<i64>>(column)?.is_none() { Ok(None) } else { self.number(column).map(Some) }
    }

    pub(crate) fn uuid(&self, column: usize) -> Outcome<Uuid> {
        self.get::<[u8; 16]>(column).map(Uuid::from_bytes)
    }

    fn optional_uuid(&self, column: usize) -> Outcome<Option<Uuid>> {
        Ok(self.get::<Option<[u8; 16]>>(column)?.map(Uuid::from_bytes))
    }

    fn time(&self, column: usize) -> Outcome<Timestamp> {
        let micros = self.get(column)?;
        Timestamp::from_microsecond(micros).map_err(|error| self.damaged(column, error))
    }

    fn optional_time(&self, column: usize) -> Outcome<Option<Timestamp>> {
        if self.get::<Option<i64>>(column)?.is_none() { Ok(None) } else { self.time(column).map(Some) }
    }

    fn word<T: std::str::FromStr<Err = Error>>(&self, column: usize) -> Outcome<T> {
        let word: String = self.get(column)?;
        word.parse().map_err(|error| self.damaged(column, error))
    }

    fn optional_word<T: std::str::FromStr<Err = Error>>(&self, column: usize) -> Outcome<Option<T>> {
        if self.get::<Option<String>>(column)?.is_none() { Ok(None) } else { self.word(column).map(Some) }
    }

    fn session(&self, column: usize) -> Outcome<SessionId> {
        SessionId::new(self.get::<String>(column)?).map_err(|error| self.damaged(column, error))
    }

    fn optional_session(&self, column: usize) -> Outcome<Option<SessionId>> {
        if self.get::<Option<String>>(column)?.is_none() { Ok(None) } else { self.session(column).map(Some) }
    }

    fn json<T: DeserializeOwned>(&self, column: usize) -> Outcome<Option<T>> {
        let text: Option<String> = self.get(column)?;
        text.map(|text| serde_json::from_str(&text).map_err(|error| self.damaged(column, error))).transpose()
    }

    fn metadata(&self, column: usize) -> Outcome<Metadata> {
        let text: Option<String> = self.get(column)?;
        let read = text.map(|text| Metadata::from_text(&text)).transpose();
        Ok(read.map_err(|error| self.damaged(column, error))?.unwrap_or_default())
    }

    fn hidden(&self, at: usize, reason: usize) -> Outcome<Option<Hidden>> {
        let Some(since) = self.optional_time(at)? else { return Ok(None) };
        Ok(Some(Hidden { reason: self.word(reason)?, at: since }))
    }

    pub(crate) fn user(&self, column: usize) -> Outcome<UserId> {
        UserId::from_stored(self.get(column)?).map_err(|error| self.damaged(column, error))
    }
}

/// The columns of [`session`].
pub(crate) const SESSION: &str = "id, name, created_at, updated_at, next_seq, state, version";

pub(crate) fn session(row: &Row<'_>) -> Outcome<Session> {
    let cells = Cells::new("sessions", row);
    Ok(Session {
        id: cells.session(1)?,
        created_at: cells.time(2)?,
        updated_at: cells.time(3)?,
        turn_count: cells.number(4)?,
        state: cells.json(5)?.unwrap_or_default(),
        version: cells.number(6)?,
    })
}

/// The columns of [`turn`], of `turns` as `t` and `sessions` as `s`.
pub(crate) const TURN: &str = "t.row, t.id, s.name, t.seq, t.role, t.name, t.content, t.created_at, \
     t.token_count, t.metadata, t.hidden_at, t.hidden_reason, t.follows, t.interrupted, t.truncated, t.tool_calls, \
     t.tool_call_id, t.failed, t.input_tokens, t.output_tokens, t.high_value, t.agent, t.memories_in_session, \
     t.memory_metadata";

/// The place after the columns of [`TURN`].
pub(crate) const AFTER_TURN: usize = 24;

pub(crate) fn turn(row: &Row<'_>) -> Outcome<Turn> {
    let cells = Cells::new("turns", row);
    Ok(Turn {
        id: TurnId(cells.uuid(1)?),
        session: cells.session(2)?,
        seq: cells.number(3)?,
        role: cells.word(4)?,
        name: cells.get(5)?,
        content: cells.get(6)?,
        created_at: cells.time(7)?,
        token_count: cells.number(8)?,
        metadata: cells.metadata(9)?,
        hidden: cells.hidden(10, 11)?,
        notes: turn_notes(&cells)?,
    })
}

fn turn_notes(cells: &Cells<'_>) -> Outcome<TurnNotes> {
    Ok(TurnNotes {
        follows: match cells.get(12)? {
            None => Follows::Previous,
            Some(FOLLOWS_NOTHING) => Follows::Nothing,
            Some(_) => Follows::Turn(cells.number(12)?),
        },
        interrupted: cells.get(13)?,
        truncated: cells.get(14)?,
        tool_calls: cells.json(15)?.unwrap_or_default(),
        tool_call_id: cells.get(16)?,
        failed: cells.get(17)?,
        usage: Usage { input: cells.optional_number(18)?, output: cells.optional_number(19)? },
        high_value: cells.get(20)?,
        owner: owner(cells)?,
    })
}

/// The owner of what is learned from a turn. The second cell is 1 for memories that are bound to the session, and 2 for a
/// session that stands apart.
fn owner(cells: &Cells<'_>) -> Outcome<Owner> {
    let bound: i64 = cells.get(22)?;
    Ok(Owner {
        agent: cells.get(21)?,
        in_session: bound > 0,
        apart: bound > 1,
        metadata: cells.metadata(23)?,
    })
}

/// The value of `turns.follows` for a turn that begins a conversation; NULL stands for the turn before.
const FOLLOWS_NOTHING: i64 = -1;

/// The turn that a turn follows, as it is stored.
pub(crate) fn follows(follows: Follows) -> Outcome<Option<i64>> {
    match follows {
        Follows::Previous => Ok(None),
        Follows::Nothing => Ok(Some(FOLLOWS_NOTHING)),
        Follows::Turn(seq) => count(seq).map(Some),
    }
}

/// The columns of [`memory`], of `memories` as `m`.
pub(crate) const MEMORY: &str = "m.row, m.id, m.session, m.agent, m.kind, m.content, m.confidence, m.valid_from, \
     m.valid_to, m.recorded_at, m.replaced_by, m.source_turns, m.source_summary, m.metadata, m.hidden_at, \
     m.hidden_reason, m.todo, m.restored_at, m.first_recorded_at, m.thread, m.disputed, m.certainty";

/// The place after the columns of [`MEMORY`].
pub(crate) const AFTER_MEMORY: usize = 22;

pub(crate) fn memory(row: &Row<'_>) -> Outcome<Memory> {
    let cells = Cells::new("memories", row);
    Ok(Memory {
        id: MemoryId(cells.uuid(1)?),
        session: cells.optional_session(2)?,
        agent: cells.get(3)?,
        kind: cells.word(4)?,
        content: cells.get(5)?,
        confidence: cells.get::<f64>(6)? as f32,
        valid_from: cells.time(7)?,
        valid_to: cells.optional_time(8)?,
        recorded_at: cells.time(9)?,
        replaced_by: cells.optional_uuid(10)?.map(MemoryId),
        source_turns: cells.json(11)?.unwrap_or_default(),
        source_summary: cells.optional_uuid(12)?.map(SummaryId),
        metadata: cells.metadata(13)?,
        hidden: cells.hidden(14, 15)?,
        notes: MemoryNotes {
            todo: cells.optional_word(16)?,
            restored_at: cells.optional_time(17)?,
            first_recorded_at: cells.optional_time(18)?,
            thread: cells.optional_uuid(19)?.map(MemoryId),
            disputed: cells.optional_uuid(20)?.map(MemoryId),
            certainty: cells.get(21)?,
        },
    })
}

/// The columns of [`summary`], of `summaries` as `m` and `sessions` as `s`.
pub(crate) const SUMMARY: &str = "m.row, m.id, s.name, m.strategy, m.level, m.start_seq, m.end_seq, m.base_id, \
     m.status, m.text, m.structured, m.input_tokens, m.output_tokens, m.generation_ms, m.created_at, m.updated_at";

pub(crate) fn summary(row: &Row<'_>) -> Outcome<Summary> {
    let cells = Cells::new("summaries", row);
    Ok(Summary {
        id: SummaryId(cells.uuid(1)?),
        session: cells.session(2)?,
        strategy: cells.word(3)?,
        level: cells.number(4)?,
        start_seq: cells.number(5)?,
        end_seq: cells.number(6)?,
        base_id: cells.optional_uuid(7)?.map(SummaryId),
        status: cells.word(8)?,
        text: cells.get(9)?,
        structured: cells.json(10)?,
        input_tokens: cells.number(11)?,
        output_tokens: cells.number(12)?,
        generation_ms: cells.optional_number(13)?,
        created_at: cells.time(14)?,
        updated_at: cells.time(15)?,
    })
}

/// The columns of [`job`], of `jobs` as `j` and `users` as `u`.
pub(crate) const JOB: &str = "j.row, j.id, u.name, j.session, j.kind, j.payload, j.status, j.attempts, j.run_at, \
     j.lease_id, j.lease_worker, j.lease_until, j.last_error, j.created_at, j.updated_at, j.result";

pub(crate) fn job(row: &Row<'_>) -> Outcome<Job> {
    let cells = Cells::new("jobs", row);
    let lease = match cells.optional_uuid(9)? {
        Some(id) => Some(Lease { id: LeaseId(id), worker: cells.get(10)?, until: cells.time(11)? }),
        None => None,
    };
    Ok(Job {
        id: JobId(cells.uuid(1)?),
        user: cells.user(2)?,
        session: cells.optional_session(3)?,
        kind: cells.get(4)?,
        payload: cells.json(5)?.unwrap_or_default(),
        status: cells.word(6)?,
        attempts: cells.number(7)?,
        run_at: cells.time(8)?,
        lease,
        last_error: cells.get(12)?,
        created_at: cells.time(13)?,
        updated_at: cells.time(14)?,
        result: cells.json(15)?,
    })
}

/// The columns of [`key`], of `keys` as `k` and `users` as `u`.
pub(crate) const KEY: &str = "k.row, k.id, u.name, k.hash, k.name, k.scopes, k.prefix, k.created_at, k.expires_at, \
     k.revoked_at, k.per_minute, k.concurrent, k.recall_scope";

pub(crate) fn key(row: &Row<'_>) -> Outcome<ApiKey> {
    let cells = Cells::new("keys", row);
    Ok(ApiKey {
        id: KeyId(cells.uuid(1)?),
        user: cells.user(2)?,
        hash: KeyHash(cells.get(3)?),
        name: cells.get(4)?,
        scopes: cells.word(5)?,
        prefix: cells.get(6)?,
        created_at: cells.time(7)?,
        expires_at: cells.optional_time(8)?,
        revoked_at: cells.optional_time(9)?,
        limits: KeyLimits { per_minute: cells.optional_number(10)?, concurrent: cells.optional_number(11)? },
        recall_scope: cells.optional_word(12)?,
    })
}

/// A value of a table's second column that is kept whole as JSON.
pub(crate) fn document<T: DeserializeOwned>(table: &'static str, row: &Row<'_>) -> Outcome<T> {
    let cells = Cells::new(table, row);
    cells.json(1)?.ok_or_else(|| cells.damaged(1, "the value is missing"))
}
