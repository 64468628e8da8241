//! Conversion from rows to domain types and back. Invalid stored data is an error that names the table and the row.

use jiff::Timestamp;
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
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use crate::error::{Fault, Outcome, damaged};

/// A time as it is stored.
pub(crate) fn micros(timestamp: Timestamp) -> i64 {
    timestamp.as_microsecond()
}

/// A count as it is stored. A count that a `bigint` cannot hold is refused as too large.
pub(crate) fn count(number: u64) -> Outcome<i64> {
    i64::try_from(number)
        .map_err(|_| Error::too_large(format!("`{number}` is larger than the store can keep")).into())
}

/// A limit, an offset or another bound to compare with; the largest `bigint` stands for everything beyond it.
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

/// The ids of turns as they are stored: NULL if there are none.
pub(crate) fn turn_ids(turns: &[TurnId]) -> Option<Vec<Uuid>> {
    (!turns.is_empty()).then(|| turns.iter().map(|turn| turn.0).collect())
}

/// One row of a known table, whose first column is its id or name.
pub(crate) struct Cells<'a> {
    row: &'a Row,
    table: &'static str,
}

impl<'a> Cells<'a> {
    pub(crate) fn new(table: &'static str, row: &'a Row) -> Self {
        Self { row, table }
    }

    fn damaged(&self, column: usize, detail: impl std::fmt::Display) -> Fault {
        let id = self.row.try_get::<_, Uuid>(0).map(|id| id.to_string());
        let id = id.or_else(|_| self.row.try_get::<_, String>(0)).unwrap_or_else(|_| "?".to_owned());
        let column = self.row.columns().get(column).map_or("?", |column| column.name());
        damaged(self.table, &id, format!("column `{column}`: {detail}")).into()
    }

    pub(crate) fn get<T: FromSql<'a>>(&self, column: usize) -> Outcome<T> {
        self.row.try_get(column).map_err(|error| self.damaged(column, error))
    }

    /// A number that is never negative or larger than its type.
    pub(crate) fn number<T: TryFrom<i64>>(&self, column: usize) -> Outcome<T> {
        let number: i64 = self.get(column)?;
        T::try_from(number).map_err(|_| self.damaged(column, format!("`{number}` is out of range")))
    }

    fn optional_number<T: TryFrom<i64>>(&self, column: usize) -> Outcome<Option<T>> {
        if self.get::<Option<i64>>(column)?.is_none() { Ok(None) } else { self.number(column).map(Some) }
    }

    fn time(&self, column: usize) -> Outcome<Timestamp> {
        let micros = self.get(column)?;
        Timestamp::from_microsecond(micros).map_err(|error| self.damaged(column, error))
    }

    fn optional_time(&self, column: usize) -> Outcome<Option<Timestamp>> {
        if self.get::<Option<i64>>(column)?.is_none() { Ok(None) } else { self.time(column).map(Some) }
    }

    fn word<T: std::str::FromStr<Err = Error>>(&self, column: usize) -> Outcome<T> {
        let word: &str = self.get(column)?;
        word.parse().map_err(|error| self.damaged(column, error))
    }

    fn optional_word<T: std::str::FromStr<Err = Error>>(&self, column: usize) -> Outcome<Option<T>> {
        if self.get::<Option<&str>>(column)?.is_none() { Ok(None) } else { self.word(column).map(Some) }
    }

    fn session(&self, column: usize) -> Outcome<SessionId> {
        SessionId::new(self.get::<String>(column)?).map_err(|error| self.damaged(column, error))
    }

    fn optional_session(&self, column: usize) -> Outcome<Option<SessionId>> {
        if self.get::<Option<&str>>(column)?.is_none() { Ok(None) } else { self.session(column).map(Some) }
    }

    fn json<T: DeserializeOwned>(&self, column: usize) -> Outcome<Option<T>> {
        let text: Option<&str> = self.get(column)?;
        text.map(|text| serde_json::from_str(text).map_err(|error| self.damaged(column, error))).transpose()
    }

    fn metadata(&self, column: usize) -> Outcome<Metadata> {
        let text: Option<&str> = self.get(column)?;
        let read = text.map(Metadata::from_text).transpose();
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
pub(crate) const SESSION: &str = "session, created_at, updated_at, next_seq, state, version";

pub(crate) fn session(row: &Row) -> Outcome<Session> {
    let cells = Cells::new("sessions", row);
    Ok(Session {
        id: cells.session(0)?,
        created_at: cells.time(1)?,
        updated_at: cells.time(2)?,
        turn_count: cells.number(3)?,
        state: cells.json(4)?.unwrap_or_default(),
        version: cells.number(5)?,
    })
}

/// The columns of [`turn`], of `turns` as `t`.
pub(crate) const TURN: &str = "t.id, t.session, t.seq, t.role, t.name, t.content, t.created_at, t.token_count, \
     t.metadata, t.hidden_at, t.hidden_reason, t.follows, t.interrupted, t.truncated, t.tool_calls, t.tool_call_id, \
     t.failed, t.input_tokens, t.output_tokens, t.high_value, t.agent, t.memories_in_session, t.memory_metadata";

/// The place after the columns of [`TURN`].
pub(crate) const AFTER_TURN: usize = 23;

pub(crate) fn turn(row: &Row) -> Outcome<Turn> {
    let cells = Cells::new("turns", row);
    Ok(Turn {
        id: TurnId(cells.get(0)?),
        session: cells.session(1)?,
        seq: cells.number(2)?,
        role: cells.word(3)?,
        name: cells.get(4)?,
        content: cells.get(5)?,
        created_at: cells.time(6)?,
        token_count: cells.number(7)?,
        metadata: cells.metadata(8)?,
        hidden: cells.hidden(9, 10)?,
        notes: turn_notes(&cells)?,
    })
}

fn turn_notes(cells: &Cells<'_>) -> Outcome<TurnNotes> {
    Ok(TurnNotes {
        follows: match cells.get(11)? {
            None => Follows::Previous,
            Some(FOLLOWS_NOTHING) => Follows::Nothing,
            Some(_) => Follows::Turn(cells.number(11)?),
        },
        interrupted: cells.get(12)?,
        truncated: cells.get(13)?,
        tool_calls: cells.json(14)?.unwrap_or_default(),
        tool_call_id: cells.get(15)?,
        failed: cells.get(16)?,
        usage: Usage { input: cells.optional_number(17)?, output: cells.optional_number(18)? },
        high_value: cells.get(19)?,
        owner: owner(cells)?,
    })
}

/// The owner of what is learned from a turn. The second cell is 1 for memories that are bound to the session, and 2 for a
/// session that stands apart.
fn owner(cells: &Cells<'_>) -> Outcome<Owner> {
    let bound: i16 = cells.get(21)?;
    Ok(Owner {
        agent: cells.get(20)?,
        in_session: bound > 0,
        apart: bound > 1,
        metadata: cells.metadata(22)?,
    })
}

/// The value of `turns.follows` for a turn that begins a conversation; NULL stands for the turn before.
const FOLLOWS_NOTHING: i64 = -1;

/// The turn that another one follows, as it is stored.
pub(crate) fn follows(follows: Follows) -> Outcome<Option<i64>> {
    match follows {
        Follows::Previous => Ok(None),
        Follows::Nothing => Ok(Some(FOLLOWS_NOTHING)),
        Follows::Turn(seq) => count(seq).map(Some),
    }
}

/// The columns of [`memory`], of `memories` as `m`.
pub(crate) const MEMORY: &str = "m.id, m.session, m.agent, m.kind, m.content, m.confidence, m.valid_from, m.valid_to, \
     m.recorded_at, m.replaced_by, m.source_turns, m.source_summary, m.metadata, m.hidden_at, m.hidden_reason, m.todo, \
     m.restored_at, m.first_recorded_at, m.thread, m.disputed, m.certainty";

/// The place after the columns of [`MEMORY`].
pub(crate) const AFTER_MEMORY: usize = 21;

pub(crate) fn memory(row: &Row) -> Outcome<Memory> {
    let cells = Cells::new("memories", row);
    let sources: Option<Vec<Uuid>> = cells.get(10)?;
    let certainty: Option<i16> = cells.get(20)?;
    Ok(Memory {
        id: MemoryId(cells.get(0)?),
        session: cells.optional_session(1)?,
        agent: cells.get(2)?,
        kind: cells.word(3)?,
        content: cells.get(4)?,
        confidence: cells.get::<f64>(5)? as f32,
        valid_from: cells.time(6)?,
        valid_to: cells.optional_time(7)?,
        recorded_at: cells.time(8)?,
        replaced_by: cells.get::<Option<Uuid>>(9)?.map(MemoryId),
        source_turns: sources.unwrap_or_default().into_iter().map(TurnId).collect(),
        source_summary: cells.get::<Option<Uuid>>(11)?.map(SummaryId),
        metadata: cells.metadata(12)?,
        hidden: cells.hidden(13, 14)?,
        notes: MemoryNotes {
            todo: cells.optional_word(15)?,
            restored_at: cells.optional_time(16)?,
            first_recorded_at: cells.optional_time(17)?,
            thread: cells.get::<Option<Uuid>>(18)?.map(MemoryId),
            disputed: cells.get::<Option<Uuid>>(19)?.map(MemoryId),
            certainty: certainty.map(|percent| percent.clamp(0, 255) as u8),
        },
    })
}

/// The columns of [`summary`], of `summaries` as `m`.
pub(crate) const SUMMARY: &str = "m.id, m.session, m.strategy, m.level, m.start_seq, m.end_seq, m.base_id, m.status, \
     m.text, m.structured, m.input_tokens, m.output_tokens, m.generation_ms, m.created_at, m.updated_at";

/// The place after the columns of [`SUMMARY`].
pub(crate) const AFTER_SUMMARY: usize = 15;

pub(crate) fn summary(row: &Row) -> Outcome<Summary> {
    let cells = Cells::new("summaries", row);
    Ok(Summary {
        id: SummaryId(cells.get(0)?),
        session: cells.session(1)?,
        strategy: cells.word(2)?,
        level: cells.number(3)?,
        start_seq: cells.number(4)?,
        end_seq: cells.number(5)?,
        base_id: cells.get::<Option<Uuid>>(6)?.map(SummaryId),
        status: cells.word(7)?,
        text: cells.get(8)?,
        structured: cells.json(9)?,
        input_tokens: cells.number(10)?,
        output_tokens: cells.number(11)?,
        generation_ms: cells.optional_number(12)?,
        created_at: cells.time(13)?,
        updated_at: cells.time(14)?,
    })
}

/// The columns of [`job`], of `jobs` as `j`.
pub(crate) const JOB: &str = "j.id, j.user_id, j.session, j.kind, j.payload, j.status, j.attempts, j.run_at, \
     j.lease_id, j.lease_worker, j.lease_until, j.last_error, j.created_at, j.updated_at, j.result";

pub(crate) fn job(row: &Row) -> Outcome<Job> {
    let cells = Cells::new("jobs", row);
    let lease = match cells.get::<Option<Uuid>>(8)? {
        Some(id) => Some(Lease { id: LeaseId(id), worker: cells.get(9)?, until: cells.time(10)? }),
        None => None,
    };
    Ok(Job {
        id: JobId(cells.get(0)?),
        user: cells.user(1)?,
        session: cells.optional_session(2)?,
        kind: cells.get(3)?,
        payload: cells.json(4)?.unwrap_or_default(),
        status: cells.word(5)?,
        attempts: cells.number(6)?,
        run_at: cells.time(7)?,
        lease,
        last_error: cells.get(11)?,
        created_at: cells.time(12)?,
        updated_at: cells.time(13)?,
        result: cells.json(14)?,
    })
}

/// The columns of [`key`], of `keys` as `k`.
pub(crate) const KEY: &str = "k.id, k.user_id, k.hash, k.name, k.scopes, k.prefix, k.created_at, k.expires_at, \
     k.revoked_at, k.per_minute, k.concurrent, k.recall_scope";

pub(crate) fn key(row: &Row) -> Outcome<ApiKey> {
    let cells = Cells::new("keys", row);
    let hash: &[u8] = cells.get(2)?;
    let hash = hash.try_into().map_err(|_| cells.damaged(2, "it does not have 32 bytes"))?;
    Ok(ApiKey {
        id: KeyId(cells.get(0)?),
        user: cells.user(1)?,
        hash: KeyHash(hash),
        name: cells.get(3)?,
        scopes: cells.word(4)?,
        prefix: cells.get(5)?,
        created_at: cells.time(6)?,
        expires_at: cells.optional_time(7)?,
        revoked_at: cells.optional_time(8)?,
        limits: KeyLimits { per_minute: cells.optional_number(9)?, concurrent: cells.optional_number(10)? },
        recall_scope: cells.optional_word(11)?,
    })
}

/// A value of a table's second column that is kept whole as JSON.
pub(crate) fn document<T: DeserializeOwned>(table: &'static str, row: &Row) -> Outcome<T> {
    let cells = Cells::new(table, row);
    cells.json(1)?.ok_or_else(|| cells.damaged(1, "the value is missing"))
}
