//! All reads except search. Every statement names the user, except those that serve the process itself.

use jiff::Timestamp;
use strata_core::job::Job;
use strata_core::key::{ApiKey, KeyHash};
use strata_core::metric::RequestMetric;
use strata_core::store::{
    DAY_MICROS, Growth, Head, ItemRef, JobQuery, KeyQuery, MOST_TESTED, MemoryQuery, MemorySelect,
    MetricQuery, Page, PartQuery, SummaryQuery, TurnQuery,
};
use strata_core::summary::Summary;
use strata_core::{Memory, MemoryId, Session, SessionId, Turn, UserId};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::error::Outcome;
use crate::row::{self, Cells, bound, micros};
use crate::sql::{all, arg, args, first, one};

pub(crate) async fn head(client: &Client, user: &UserId) -> Outcome<Head> {
    let sql = "SELECT user_id, revision, epoch, vectors FROM users WHERE user_id = $1";
    let Some(row) = first(client, sql, args![user.as_str()]).await? else { return Ok(Head::default()) };
    let cells = Cells::new("users", &row);
    Ok(Head { revision: cells.number(1)?, epoch: cells.number(2)?, vectors: cells.number(3)? })
}

pub(crate) async fn session(client: &Client, user: &UserId, session: &SessionId) -> Outcome<Option<Session>> {
    let sql = format!("SELECT {} FROM sessions WHERE user_id = $1 AND session = $2", row::SESSION);
    first(client, &sql, args![user.as_str(), session.as_str()]).await?.as_ref().map(row::session).transpose()
}

pub(crate) async fn sessions(client: &Client, user: &UserId, page: Page) -> Outcome<Vec<Session>> {
    let sql = format!(
        "SELECT {} FROM sessions WHERE user_id = $1 ORDER BY updated_at DESC, session LIMIT $2 OFFSET $3",
        row::SESSION
    );
    all(client, &sql, args![user.as_str(), i64::from(page.limit), bound(page.offset)], row::session).await
}

pub(crate) async fn turns(client: &Client, user: &UserId, query: &TurnQuery) -> Outcome<Vec<Turn>> {
    match query {
        TurnQuery::Range { session, after, limit } | TurnQuery::Hidden { session, after, limit } => {
            let hidden =
                if matches!(query, TurnQuery::Hidden { .. }) { "AND t.hidden_at IS NOT NULL" } else { "" };
            let sql = format!(
                "SELECT {} FROM turns t WHERE t.user_id = $1 AND t.session = $2 AND t.seq > $3 {hidden}
                 ORDER BY t.seq LIMIT $4",
                row::TURN
            );
            let after = after.map_or(-1, bound);
            let args = args![user.as_str(), session.as_str(), after, i64::from(*limit)];
            all(client, &sql, args, row::turn).await
        }
        TurnQuery::Ids(ids) => {
            let sql = format!(
                "SELECT {} FROM unnest($2::uuid[]) WITH ORDINALITY AS wanted (id, place)
                 JOIN turns t ON t.user_id = $1 AND t.id = wanted.id ORDER BY wanted.place",
                row::TURN
            );
            let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
            all(client, &sql, args![user.as_str(), ids], row::turn).await
        }
        TurnQuery::Recent { session, as_of, keep, limit } => {
            let sql = format!(
                "SELECT {} FROM turns t
                 WHERE t.user_id = $1 AND t.created_at <= $2 AND t.hidden_at IS NULL
                   AND ($3::text IS NULL OR t.session = $3)
                 ORDER BY t.created_at DESC, t.seq DESC, t.id DESC LIMIT $4 OFFSET $5",
                row::TURN
            );
            let as_of = as_of.map_or(i64::MAX, micros);
            let session = session.as_ref().map(SessionId::as_str);
            let Some(keep) = keep else {
                let args = args![user.as_str(), as_of, session, i64::from(*limit), 0_i64];
                return all(client, &sql, args, row::turn).await;
            };
            let mut turns = Vec::new();
            for offset in (0..i64::from(MOST_TESTED)).step_by(READ_AT_ONCE as usize) {
                let args = args![user.as_str(), as_of, session, READ_AT_ONCE, offset];
                let read = all(client, &sql, args, row::turn).await?;
                let is_last = read.len() < READ_AT_ONCE as usize;
                turns.extend(read.into_iter().filter(|turn| keep.keeps(ItemRef::Turn(turn))));
                if is_last || turns.len() >= *limit as usize {
                    break;
                }
            }
            turns.truncate(*limit as usize);
            Ok(turns)
        }
    }
}

/// The rows of one statement if a query has a test of its own: few enough that refused ones need little memory.
pub(crate) const READ_AT_ONCE: i64 = 256;

pub(crate) async fn memories(client: &Client, user: &UserId, query: &MemoryQuery) -> Outcome<Vec<Memory>> {
    let Some(keep) = &query.keep else { return memories_page(client, user, query).await };
    let mut skip = query.page.offset;
    let mut memories = Vec::new();
    let mut page = Page { offset: 0, limit: READ_AT_ONCE as u32 };
    loop {
        let part = MemoryQuery { keep: None, page, ..query.clone() };
        let read = memories_page(client, user, &part).await?;
        let is_last = read.len() < READ_AT_ONCE as usize;
        for memory in read.into_iter().filter(|memory| keep.keeps(ItemRef::Memory(memory))) {
            match skip {
                0 => memories.push(memory),
                _ => skip -= 1,
            }
        }
        if is_last || memories.len() >= query.page.limit as usize {
            memories.truncate(query.page.limit as usize);
            return Ok(memories);
        }
        page.offset += u64::from(page.limit);
    }
}

/// A page of the memories that meet all criteria except the test.
async fn memories_page(client: &Client, user: &UserId, query: &MemoryQuery) -> Outcome<Vec<Memory>> {
    let MemoryQuery { select, session, agent, kind, keep: _, page } = query;
    const MEMORIES: &str = "memories m";
    const NEWEST: &str = "m.recorded_at DESC, m.id DESC";
    let (from, condition, order) = match select {
        MemorySelect::Current { as_of: None } => {
            (MEMORIES, "m.valid_to IS NULL AND m.hidden_at IS NULL", NEWEST)
        }
        MemorySelect::Current { as_of: Some(_) } => (
            MEMORIES,
            "m.recorded_at <= $7 AND (m.valid_to IS NULL OR m.valid_to > $7)
                 AND (m.hidden_at IS NULL OR m.hidden_at > $7)",
            NEWEST,
        ),
        MemorySelect::All => (MEMORIES, "true", NEWEST),
        MemorySelect::Hidden => (MEMORIES, "m.hidden_at IS NOT NULL", NEWEST),
        MemorySelect::Ids(_) => (
            "unnest($8) WITH ORDINALITY AS wanted (id, place) JOIN memories m ON m.id = wanted.id",
            "true",
            "wanted.place",
        ),
        MemorySelect::History(id) => {
            return Ok(chosen(history(client, user, *id).await?, query));
        }
    };
    // Both last parameters are named in every case, because PostgreSQL wants to see each of them.
    let sql = format!(
        "SELECT {} FROM {from}
         WHERE m.user_id = $1 AND ($2::text IS NULL OR m.session = $2) AND ($3::text IS NULL OR m.agent = $3)
           AND ($4::text IS NULL OR m.kind = $4) AND ($7::bigint IS NULL OR true) AND ($8::uuid[] IS NULL OR true)
           AND {condition}
         ORDER BY {order} LIMIT $5 OFFSET $6",
        row::MEMORY
    );
    let moment = match select {
        MemorySelect::Current { as_of } => as_of.map(micros),
        _ => None,
    };
    let ids: Option<Vec<Uuid>> = match select {
        MemorySelect::Ids(ids) => Some(ids.iter().map(|id| id.0).collect()),
        _ => None,
    };
    let args = args![
        user.as_str(),
        session.as_ref().map(SessionId::as_str),
        agent.as_deref(),
        kind.map(|kind| kind.as_str()),
        i64::from(page.limit),
        bound(page.offset),
        moment,
        ids
    ];
    all(client, &sql, args, row::memory).await
}

/// Those of a history's memories that the query's other criteria choose.
fn chosen(history: Vec<Memory>, query: &MemoryQuery) -> Vec<Memory> {
    let wanted = |memory: &Memory| {
        query.session.as_ref().is_none_or(|session| memory.session.as_ref() == Some(session))
            && query.agent.as_ref().is_none_or(|agent| memory.agent.as_ref() == Some(agent))
            && query.kind.is_none_or(|kind| memory.kind == kind)
    };
    let skip = usize::try_from(query.page.offset).unwrap_or(usize::MAX);
    history.into_iter().filter(wanted).skip(skip).take(query.page.limit as usize).collect()
}

/// A memory with all that it replaced and all that replaced it, oldest first. Memories of the same moment are ordered by
/// replacement.
async fn history(client: &Client, user: &UserId, id: MemoryId) -> Outcome<Vec<Memory>> {
    let sql = format!(
        "WITH RECURSIVE
             former (id, place) AS (
                 VALUES ($2::uuid, 0)
                 UNION SELECT m.id, place - 1 FROM memories m JOIN former
                 ON m.user_id = $1 AND m.replaced_by = former.id WHERE place > -10000),
             later (id, place) AS (
                 VALUES ($2::uuid, 0)
                 UNION SELECT m.replaced_by, place + 1 FROM memories m JOIN later
                 ON m.user_id = $1 AND m.id = later.id WHERE m.replaced_by IS NOT NULL AND place < 10000),
             chain (id, place) AS (
                 SELECT id, max(place) FROM (SELECT * FROM former UNION SELECT * FROM later) linked GROUP BY id)
         SELECT {} FROM chain JOIN memories m ON m.user_id = $1 AND m.id = chain.id
         ORDER BY m.recorded_at, chain.place",
        row::MEMORY
    );
    all(client, &sql, args![user.as_str(), id.0], row::memory).await
}

pub(crate) async fn summaries(client: &Client, user: &UserId, query: &SummaryQuery) -> Outcome<Vec<Summary>> {
    let sql = format!(
        "SELECT {} FROM summaries m
         WHERE m.user_id = $1 AND m.session = $2 AND ($3::text IS NULL OR m.strategy = $3)
           AND ($4::text IS NULL OR m.status = $4)
         ORDER BY m.end_seq DESC, m.created_at DESC, m.id DESC LIMIT $5",
        row::SUMMARY
    );
    let args = args![
        user.as_str(),
        query.session.as_str(),
        query.strategy.map(|strategy| strategy.as_str()),
        query.status.map(|status| status.as_str()),
        i64::from(query.limit)
    ];
    all(client, &sql, args, row::summary).await
}

/// Whether an older program has written summaries of the user whose parts are not noted.
pub(crate) async fn has_unnoted_summaries(client: &Client, user: &UserId) -> Outcome<bool> {
    let sql =
        "SELECT EXISTS (SELECT 1 FROM summaries WHERE user_id = $1 AND noted IS DISTINCT FROM revision)";
    Ok(one(client, sql, args![user.as_str()]).await?.try_get(0)?)
}

/// The index holds the parts of each session's current summary, so no other session is read.
pub(crate) async fn summaries_with(
    client: &Client,
    user: &UserId,
    query: &PartQuery,
) -> Outcome<Vec<Summary>> {
    let sql = format!(
        "SELECT {} FROM (
             SELECT session, updated_at FROM sessions
             WHERE user_id = $1 AND parts > 0 AND parts & $2 > 0
             ORDER BY updated_at DESC, session LIMIT $3 OFFSET $4) s
         CROSS JOIN LATERAL (
             SELECT * FROM summaries c WHERE c.user_id = $1 AND c.session = s.session
                 AND c.strategy = 'window' AND c.status = 'completed'
             ORDER BY c.end_seq DESC, c.created_at DESC, c.id DESC LIMIT 1) m
         ORDER BY s.updated_at DESC, s.session",
        row::SUMMARY
    );
    let args = args![
        user.as_str(),
        i16::from(query.part.bit()),
        i64::from(query.page.limit),
        bound(query.page.offset)
    ];
    all(client, &sql, args, row::summary).await
}

pub(crate) async fn progress(client: &Client, user: &UserId, space: &str) -> Outcome<u64> {
    let sql = "SELECT space, revision FROM progress WHERE user_id = $1 AND space = $2";
    match first(client, sql, args![user.as_str(), space]).await? {
        Some(row) => Cells::new("progress", &row).number(1),
        None => Ok(0),
    }
}

/// The users that are more than `gap` behind, among all users or the given ones.
pub(crate) async fn behind(
    client: &Client,
    space: &str,
    among: Option<&[UserId]>,
    gap: u64,
    limit: u32,
) -> Outcome<Vec<UserId>> {
    // A forgotten user keeps a row with its counters, and has nothing to work on.
    let sql = format!(
        "SELECT u.user_id FROM users u
         LEFT JOIN progress p ON p.user_id = u.user_id AND p.space = $1
         WHERE u.revision - coalesce(p.revision, 0) > $2 {}
           AND (EXISTS (SELECT 1 FROM sessions s WHERE s.user_id = u.user_id)
                OR EXISTS (SELECT 1 FROM memories m WHERE m.user_id = u.user_id))
         ORDER BY u.revision - coalesce(p.revision, 0) DESC, u.user_id LIMIT $3",
        if among.is_some() { "AND u.user_id = ANY ($4)" } else { "" }
    );
    let mut args = vec![arg(space), arg(bound(gap)), arg(i64::from(limit))];
    args.extend(among.map(|users| arg(users.iter().map(UserId::as_str).collect::<Vec<_>>())));
    all(client, &sql, &args, |row| Cells::new("users", row).user(0)).await
}

pub(crate) async fn jobs(client: &Client, user: &UserId, query: &JobQuery) -> Outcome<Vec<Job>> {
    let sql = format!(
        "SELECT {} FROM jobs j
         WHERE j.user_id = $1 AND ($2::uuid IS NULL OR j.id = $2) AND ($3::text IS NULL OR j.status = $3)
           AND ($4::text IS NULL OR j.session = $4)
         ORDER BY j.created_at DESC, j.id DESC LIMIT $5",
        row::JOB
    );
    let args = args![
        user.as_str(),
        query.id.map(|id| id.0),
        query.status.map(|status| status.as_str()),
        query.session.as_ref().map(SessionId::as_str),
        i64::from(query.limit)
    ];
    all(client, &sql, args, row::job).await
}

pub(crate) async fn requests(
    client: &Client,
    user: &UserId,
    query: &MetricQuery,
) -> Outcome<Vec<RequestMetric>> {
    let sql = "SELECT id, metric FROM requests
               WHERE user_id = $1 AND ($2::uuid IS NULL OR id = $2) AND created_at >= $3
               ORDER BY created_at DESC, id DESC LIMIT $4";
    let since = query.since.map_or(i64::MIN, micros);
    let args = args![user.as_str(), query.id.map(|id| id.0), since, i64::from(query.limit)];
    all(client, sql, args, |row| row::document("requests", row)).await
}

pub(crate) async fn key_by_hash(client: &Client, hash: &KeyHash) -> Outcome<Option<ApiKey>> {
    let sql = format!("SELECT {} FROM keys k WHERE k.hash = $1", row::KEY);
    first(client, &sql, args![hash.0.to_vec()]).await?.as_ref().map(row::key).transpose()
}

pub(crate) async fn keys(client: &Client, query: &KeyQuery) -> Outcome<Vec<ApiKey>> {
    let sql = format!(
        "SELECT {} FROM keys k
         WHERE ($1::uuid IS NULL OR k.id = $1) AND ($2::text IS NULL OR k.user_id = $2)
           AND ($3 OR k.revoked_at IS NULL)
         ORDER BY k.created_at DESC, k.id DESC LIMIT $4 OFFSET $5",
        row::KEY
    );
    let args = args![
        query.id.map(|id| id.0),
        query.user.as_ref().map(UserId::as_str),
        query.revoked,
        i64::from(query.page.limit),
        bound(query.page.offset)
    ];
    all(client, &sql, args, row::key).await
}

pub(crate) async fn owner_of(client: &Client, id: MemoryId) -> Outcome<Option<UserId>> {
    let sql = "SELECT user_id FROM memories WHERE id = $1 AND user_id <> $2 ORDER BY user_id LIMIT 1";
    let row = first(client, sql, args![id.0, UserId::global().as_str()]).await?;
    row.map(|row| Cells::new("memories", &row).user(0)).transpose()
}

pub(crate) async fn growth(client: &Client, user: &UserId, since: Timestamp) -> Outcome<Growth> {
    let sql = "SELECT (SELECT count(*) FROM sessions WHERE user_id = $1),
                      (SELECT count(*) FROM turns WHERE user_id = $1),
                      (SELECT count(*) FROM memories WHERE user_id = $1)";
    let row = one(client, sql, args![user.as_str()]).await?;
    let cells = Cells::new("users", &row);
    let growth = Growth {
        sessions: cells.number(0)?,
        turns: cells.number(1)?,
        memories: cells.number(2)?,
        days: Vec::new(),
    };
    let turns = by_day(client, user, since, ("turns", "created_at")).await?;
    let memories = by_day(client, user, since, ("memories", "recorded_at")).await?;
    Ok(growth.with_days(turns, memories))
}

async fn by_day(
    client: &Client,
    user: &UserId,
    since: Timestamp,
    (table, time): (&'static str, &str),
) -> Outcome<Vec<(u32, u64)>> {
    let sql = format!(
        "SELECT ({time} - $2) / {DAY_MICROS}, count(*) FROM {table} WHERE user_id = $1 AND {time} >= $2 GROUP BY 1"
    );
    all(client, &sql, args![user.as_str(), micros(since)], |row| {
        let cells = Cells::new(table, row);
        Ok((cells.number(0)?, cells.number(1)?))
    })
    .await
}

/// The condition for users that have anything stored. A forgotten user keeps an empty row, and a key alone does not count.
pub(crate) const STORED_USERS: &str = "FROM users u WHERE
     EXISTS (SELECT 1 FROM sessions s WHERE s.user_id = u.user_id)
     OR EXISTS (SELECT 1 FROM memories m WHERE m.user_id = u.user_id)
     OR EXISTS (SELECT 1 FROM requests r WHERE r.user_id = u.user_id)
     OR u.user_id IN (SELECT j.user_id FROM jobs j)";

pub(crate) async fn users(client: &Client, page: Page) -> Outcome<Vec<UserId>> {
    let sql = format!("SELECT u.user_id {STORED_USERS} ORDER BY u.user_id LIMIT $1 OFFSET $2");
    let args = args![i64::from(page.limit), bound(page.offset)];
    all(client, &sql, args, |row| Cells::new("users", row).user(0)).await
}
