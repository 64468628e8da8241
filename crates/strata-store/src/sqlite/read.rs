//! All reads except search. Every statement names the user, except those that serve the process itself.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use strata_core::job::Job;
use strata_core::key::{ApiKey, KeyHash};
use strata_core::memory::MemoryKind;
use strata_core::metric::RequestMetric;
use strata_core::store::{
    DAY_MICROS, Growth, Head, ItemRef, JobQuery, Keep, KeyQuery, MOST_TESTED, MemoryQuery, MemorySelect,
    MetricQuery, Page, PartQuery, SummaryQuery, TurnQuery,
};
use strata_core::summary::Summary;
use strata_core::{Memory, MemoryId, Session, SessionId, Turn, TurnId, UserId};

use super::damage::pass_over;
use super::error::Outcome;
use super::row::{self, Cells, bound, micros};

/// All rows of a query, each read by `read`.
pub(super) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Outcome<T>,
) -> Outcome<Vec<T>> {
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// As [`all`], without the rows that are damaged, which are noted.
pub(super) fn readable<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Outcome<T>,
) -> Outcome<Vec<T>> {
    let found = all(conn, sql, params, |row| pass_over(read(row)))?;
    Ok(found.into_iter().flatten().collect())
}

/// As [`readable`], but at most `most` rows. The query itself has no limit, so that a row that is passed over does not make
/// the answer shorter, which callers would take for the end.
fn first_readable<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    most: u32,
    read: impl Fn(&Row<'_>) -> Outcome<T>,
) -> Outcome<Vec<T>> {
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    let mut found = Vec::new();
    while found.len() < most as usize
        && let Some(row) = rows.next()?
    {
        found.extend(pass_over(read(row))?);
    }
    Ok(found)
}

/// The user's row, if it exists.
pub(super) fn user_id(conn: &Connection, user: &UserId) -> Outcome<Option<i64>> {
    let mut select = conn.prepare_cached("SELECT id FROM users WHERE name = ?1")?;
    Ok(select.query_row([user.as_str()], |row| row.get(0)).optional()?)
}

/// The user's row, or 0, which no user has, so that a query for an unknown user finds nothing.
fn user_or_nobody(conn: &Connection, user: &UserId) -> Outcome<i64> {
    Ok(user_id(conn, user)?.unwrap_or(0))
}

pub(crate) fn head(conn: &Connection, user: &UserId) -> Outcome<Head> {
    let sql = "SELECT id, revision, epoch, vectors FROM users WHERE name = ?1";
    let read = |row: &Row<'_>| {
        let cells = Cells::new("users", row);
        Ok(Head { revision: cells.number(1)?, epoch: cells.number(2)?, vectors: cells.number(3)? })
    };
    Ok(all(conn, sql, [user.as_str()], read)?.pop().unwrap_or_default())
}

pub(crate) fn session(conn: &Connection, user: &UserId, session: &SessionId) -> Outcome<Option<Session>> {
    let user_id = user_or_nobody(conn, user)?;
    let sql = format!("SELECT {} FROM sessions WHERE user_id = ?1 AND name = ?2", row::SESSION);
    Ok(all(conn, &sql, params![user_id, session.as_str()], row::session)?.pop())
}

pub(crate) fn sessions(conn: &Connection, user: &UserId, page: Page) -> Outcome<Vec<Session>> {
    let user_id = user_or_nobody(conn, user)?;
    let sql = format!(
        "SELECT {} FROM sessions WHERE user_id = ?1 ORDER BY updated_at DESC, name LIMIT ?2 OFFSET ?3",
        row::SESSION
    );
    readable(conn, &sql, params![user_id, page.limit, bound(page.offset)], row::session)
}

pub(crate) fn turns(conn: &Connection, user: &UserId, query: &TurnQuery) -> Outcome<Vec<Turn>> {
    let Some(user_id) = user_id(conn, user)? else { return Ok(Vec::new()) };
    match query {
        TurnQuery::Range { session, after, limit } | TurnQuery::Hidden { session, after, limit } => {
            let hidden =
                if matches!(query, TurnQuery::Hidden { .. }) { "AND t.hidden_at IS NOT NULL" } else { "" };
            let sql = format!(
                "SELECT {} FROM sessions s JOIN turns t ON t.session_id = s.id
                 WHERE s.user_id = ?1 AND s.name = ?2 AND t.seq > ?3 {hidden} ORDER BY t.seq",
                row::TURN
            );
            let after = after.map_or(-1, bound);
            first_readable(conn, &sql, params![user_id, session.as_str(), after], *limit, row::turn)
        }
        TurnQuery::Ids(ids) => turns_by_id(conn, user_id, ids),
        TurnQuery::Recent { session, as_of, keep, limit } => {
            recent_turns(conn, user_id, (session.as_ref(), *as_of), keep.as_ref(), *limit)
        }
    }
}

fn turns_by_id(conn: &Connection, user_id: i64, ids: &[TurnId]) -> Outcome<Vec<Turn>> {
    let sql = format!(
        "SELECT {} FROM turns t JOIN sessions s ON s.id = t.session_id WHERE t.user_id = ?1 AND t.id = ?2",
        row::TURN
    );
    let mut turns = Vec::with_capacity(ids.len());
    for id in ids {
        turns.extend(readable(conn, &sql, params![user_id, id.0.as_bytes()], row::turn)?);
    }
    Ok(turns)
}

fn recent_turns(
    conn: &Connection,
    user_id: i64,
    (session, as_of): (Option<&SessionId>, Option<Timestamp>),
    keep: Option<&Keep>,
    limit: u32,
) -> Outcome<Vec<Turn>> {
    // The index over time also holds the session. The order by `seq` does not help, because a session's turns may come from
    // any time.
    let sql = format!(
        "SELECT {} FROM turns t INDEXED BY turns_recent JOIN sessions s ON s.id = t.session_id
         WHERE t.user_id = ?1 AND t.created_at <= ?2 AND t.hidden_at IS NULL
           AND (?3 IS NULL OR t.session_id = (SELECT id FROM sessions WHERE user_id = ?1 AND name = ?3))
         ORDER BY t.created_at DESC, t.seq DESC, t.id DESC LIMIT ?4",
        row::TURN
    );
    let as_of = as_of.map_or(i64::MAX, micros);
    let read = if keep.is_some() { MOST_TESTED } else { limit };
    let mut select = conn.prepare_cached(&sql)?;
    let mut rows = select.query(params![user_id, as_of, session.map(SessionId::as_str), read])?;
    let mut turns = Vec::new();
    while turns.len() < limit as usize
        && let Some(row) = rows.next()?
    {
        let turn = pass_over(row::turn(row))?;
        turns.extend(turn.filter(|turn| Keep::is_kept(keep, ItemRef::Turn(turn))));
    }
    Ok(turns)
}

pub(crate) fn memories(conn: &Connection, user: &UserId, query: &MemoryQuery) -> Outcome<Vec<Memory>> {
    let Some(user_id) = user_id(conn, user)? else { return Ok(Vec::new()) };
    let MemoryQuery { select, session, agent, kind, keep, page } = query;
    // Offset and limit apply after all other criteria, and some of these are checked here and not by SQL.
    let mut skip = page.offset;
    let mut found = Vec::new();
    let mut take = |memory: Memory| {
        let wanted = session.as_ref().is_none_or(|session| memory.session.as_ref() == Some(session))
            && agent.as_ref().is_none_or(|agent| memory.agent.as_ref() == Some(agent))
            && kind.is_none_or(|kind| memory.kind == kind)
            && Keep::is_kept(keep.as_ref(), ItemRef::Memory(&memory));
        if wanted && skip > 0 {
            skip -= 1;
        } else if wanted && found.len() < page.limit as usize {
            found.push(memory);
        }
        found.len() < page.limit as usize
    };
    let newest = newest_memories(select, *kind);
    let params = params![user_id, kind.map(|kind| kind.as_str())];
    match select {
        MemorySelect::Current { as_of } => each_memory(conn, &newest, params, |memory| {
            let believed = as_of.map_or_else(|| memory.is_current(), |moment| memory.believed_at(moment));
            !believed || take(memory)
        })?,
        MemorySelect::All | MemorySelect::Hidden => each_memory(conn, &newest, params, take)?,
        MemorySelect::Ids(ids) => {
            let sql = format!("SELECT {} FROM memories m WHERE m.user_id = ?1 AND m.id = ?2", row::MEMORY);
            for id in ids {
                each_memory(conn, &sql, params![user_id, id.0.as_bytes()], &mut take)?;
            }
        }
        MemorySelect::History(id) => {
            for memory in history(conn, user_id, *id)? {
                take(memory);
            }
        }
    }
    Ok(found)
}

/// Selects a user's memories, the newest first. Every chat asks for the few standing instructions and the few deleted memories
/// among all, so each has an index.
fn newest_memories(select: &MemorySelect, kind: Option<MemoryKind>) -> String {
    let is_hidden = matches!(select, MemorySelect::Hidden);
    let index = match kind {
        None if is_hidden => " INDEXED BY memories_hidden",
        None => "",
        Some(_) => " INDEXED BY memories_of_kind",
    };
    let of_kind = if kind.is_some() { "m.kind = ?2" } else { "?2 IS NULL" };
    let hidden = if is_hidden { " AND m.hidden_at IS NOT NULL" } else { "" };
    format!(
        "SELECT {} FROM memories m{index} WHERE m.user_id = ?1 AND {of_kind}{hidden}
         ORDER BY m.recorded_at DESC, m.id DESC",
        row::MEMORY
    )
}

/// Gives each memory of a query to `take`, until that returns false.
fn each_memory(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    mut take: impl FnMut(Memory) -> bool,
) -> Outcome<()> {
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    while let Some(row) = rows.next()? {
        if pass_over(row::memory(row))?.is_some_and(|memory| !take(memory)) {
            break;
        }
    }
    Ok(())
}

/// A memory with all that it replaced and all that replaced it, oldest first. Memories of the same moment are ordered by
/// replacement. `CROSS JOIN` keeps the order of the tables: the planner would rather scan all memories of the user.
fn history(conn: &Connection, user_id: i64, id: MemoryId) -> Outcome<Vec<Memory>> {
    let sql = format!(
        "WITH RECURSIVE
             former (id, place) AS (
                 VALUES (?2, 0)
                 UNION SELECT m.id, place - 1 FROM former CROSS JOIN memories m
                 ON m.user_id = ?1 AND m.replaced_by = former.id WHERE place > -10000),
             later (id, place) AS (
                 VALUES (?2, 0)
                 UNION SELECT m.replaced_by, place + 1 FROM later CROSS JOIN memories m
                 ON m.user_id = ?1 AND m.id = later.id WHERE m.replaced_by IS NOT NULL AND place < 10000),
             chain (id, place) AS (
                 SELECT id, max(place) FROM (SELECT * FROM former UNION SELECT * FROM later) GROUP BY id)
         SELECT {} FROM chain CROSS JOIN memories m ON m.user_id = ?1 AND m.id = chain.id
         ORDER BY m.recorded_at, chain.place",
        row::MEMORY
    );
    readable(conn, &sql, params![user_id, id.0.as_bytes()], row::memory)
}

pub(crate) fn summaries(conn: &Connection, user: &UserId, query: &SummaryQuery) -> Outcome<Vec<Summary>> {
    let user_id = user_or_nobody(conn, user)?;
    let sql = format!(
        "SELECT {} FROM sessions s JOIN summaries m ON m.session_id = s.id
         WHERE s.user_id = ?1 AND s.name = ?2 AND (?3 IS NULL OR m.strategy = ?3) AND (?4 IS NULL OR m.status = ?4)
         ORDER BY m.end_seq DESC, m.created_at DESC, m.id DESC LIMIT ?5",
        row::SUMMARY
    );
    let strategy = query.strategy.map(|strategy| strategy.as_str());
    let status = query.status.map(|status| status.as_str());
    let params = params![user_id, query.session.as_str(), strategy, status, query.limit];
    readable(conn, &sql, params, row::summary)
}

/// The index holds the parts of each session's current summary, so no other session is read.
pub(crate) fn summaries_with(conn: &Connection, user: &UserId, query: &PartQuery) -> Outcome<Vec<Summary>> {
    let user_id = user_or_nobody(conn, user)?;
    let sql = format!(
        "SELECT {} FROM (
             SELECT id, name, updated_at FROM sessions INDEXED BY sessions_with_parts
             WHERE user_id = ?1 AND parts > 0 AND parts & ?2 ORDER BY updated_at DESC, name LIMIT ?3 OFFSET ?4) s
         CROSS JOIN summaries m ON m.row = (
             SELECT c.row FROM summaries c
             WHERE c.session_id = s.id AND c.strategy = 'window' AND c.status = 'completed'
             ORDER BY c.end_seq DESC, c.created_at DESC, c.id DESC LIMIT 1)
         ORDER BY s.updated_at DESC, s.name",
        row::SUMMARY
    );
    let params = params![user_id, query.part.bit(), query.page.limit, bound(query.page.offset)];
    readable(conn, &sql, params, row::summary)
}

pub(crate) fn jobs(conn: &Connection, user: &UserId, query: &JobQuery) -> Outcome<Vec<Job>> {
    let user_id = user_or_nobody(conn, user)?;
    let sql = format!(
        "SELECT {} FROM jobs j JOIN users u ON u.id = j.user_id
         WHERE j.user_id = ?1 AND (?2 IS NULL OR j.id = ?2) AND (?3 IS NULL OR j.status = ?3)
           AND (?4 IS NULL OR j.session = ?4)
         ORDER BY j.created_at DESC, j.id DESC LIMIT ?5",
        row::JOB
    );
    let id = query.id.map(|id| *id.0.as_bytes());
    let status = query.status.map(|status| status.as_str());
    let session = query.session.as_ref().map(SessionId::as_str);
    readable(conn, &sql, params![user_id, id, status, session, query.limit], row::job)
}

pub(crate) fn requests(conn: &Connection, user: &UserId, query: &MetricQuery) -> Outcome<Vec<RequestMetric>> {
    let user_id = user_or_nobody(conn, user)?;
    let sql = "SELECT row, metric FROM requests
               WHERE user_id = ?1 AND (?2 IS NULL OR id = ?2) AND created_at >= ?3
               ORDER BY created_at DESC, id DESC LIMIT ?4";
    let id = query.id.map(|id| *id.0.as_bytes());
    let since = query.since.map_or(i64::MIN, micros);
    readable(conn, sql, params![user_id, id, since, query.limit], |row| row::document("requests", row))
}

pub(crate) fn key_by_hash(conn: &Connection, hash: &KeyHash) -> Outcome<Option<ApiKey>> {
    let sql = format!("SELECT {} FROM keys k JOIN users u ON u.id = k.user_id WHERE k.hash = ?1", row::KEY);
    Ok(all(conn, &sql, [hash.0], row::key)?.pop())
}

pub(crate) fn keys(conn: &Connection, query: &KeyQuery) -> Outcome<Vec<ApiKey>> {
    let sql = format!(
        "SELECT {} FROM keys k JOIN users u ON u.id = k.user_id
         WHERE (?1 IS NULL OR k.id = ?1) AND (?2 IS NULL OR u.name = ?2) AND (?3 OR k.revoked_at IS NULL)
         ORDER BY k.created_at DESC, k.id DESC LIMIT ?4 OFFSET ?5",
        row::KEY
    );
    let id = query.id.map(|id| *id.0.as_bytes());
    let user = query.user.as_ref().map(UserId::as_str);
    all(conn, &sql, params![id, user, query.revoked, query.page.limit, bound(query.page.offset)], row::key)
}

pub(crate) fn owner_of(conn: &Connection, id: MemoryId) -> Outcome<Option<UserId>> {
    let sql = "SELECT u.id, u.name FROM memories m JOIN users u ON u.id = m.user_id
               WHERE m.id = ?1 AND u.name <> ?2 ORDER BY u.name LIMIT 1";
    let global = UserId::global();
    let owners =
        all(conn, sql, params![id.0.as_bytes(), global.as_str()], |row| Cells::new("users", row).user(1))?;
    Ok(owners.into_iter().next())
}

pub(crate) fn growth(conn: &Connection, user: &UserId, since: Timestamp) -> Outcome<Growth> {
    let user_id = user_or_nobody(conn, user)?;
    let since = micros(since);
    let count = |counted: &str, table: &str| -> Outcome<u64> {
        let sql = format!("SELECT 0, {counted} FROM {table} WHERE user_id = ?1");
        let counts: Vec<u64> = all(conn, &sql, [user_id], |row| Cells::new("users", row).number(1))?;
        Ok(counts.into_iter().sum())
    };
    let by_day = |table: &'static str, time: &str| -> Outcome<Vec<(u32, u64)>> {
        let sql = format!(
            "SELECT 0, ({time} - ?2) / {DAY_MICROS}, count(*) FROM {table} WHERE user_id = ?1 AND {time} >= ?2 GROUP BY 2"
        );
        all(conn, &sql, [user_id, since], |row| {
            let cells = Cells::new(table, row);
            Ok((cells.number(1)?, cells.number(2)?))
        })
    };
    let growth = Growth {
        sessions: count("count(*)", "sessions")?,
        // A session has a turn for each number up to its next one; counting the turns would read all of them.
        turns: count("coalesce(sum(next_seq), 0)", "sessions")?,
        memories: count("count(*)", "memories")?,
        days: Vec::new(),
    };
    Ok(growth.with_days(by_day("turns", "created_at")?, by_day("memories", "recorded_at")?))
}

/// The condition for users that have anything stored. A forgotten user keeps an empty row, and a key alone does not count.
pub(crate) const STORED_USERS: &str = "FROM users u WHERE
     EXISTS (SELECT 1 FROM sessions WHERE user_id = u.id) OR EXISTS (SELECT 1 FROM memories WHERE user_id = u.id)
     OR EXISTS (SELECT 1 FROM jobs WHERE user_id = u.id) OR EXISTS (SELECT 1 FROM requests WHERE user_id = u.id)";

pub(crate) fn users(conn: &Connection, page: Page) -> Outcome<Vec<UserId>> {
    let sql = format!("SELECT u.id, u.name {STORED_USERS} ORDER BY u.name LIMIT ?1 OFFSET ?2");
    all(conn, &sql, params![page.limit, bound(page.offset)], |row| Cells::new("users", row).user(1))
}
