//! Checking the store: a quick check, and a thorough one that reads everything.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use strata_core::store::{CheckDepth, Health};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::error::Outcome;
use crate::lent::Connection;
use crate::sql::{args, execute, one, rows};
use crate::{read, schema};

/// The most problems of one kind that are listed; more would add nothing.
const NAMED: usize = 20;

/// A quick check of a store with more rows takes the planner's estimates, because a monitor asks every few seconds.
const COUNTED: u64 = 200_000;

/// How long the outcome of a write that was tried counts, because several monitors may ask at once.
const PROBED: Duration = Duration::from_millis(500);

/// Checks the server's settings before the store is used: refuses an encoding that cannot hold every text, and warns of settings
/// under which a crash loses acknowledged data.
pub(crate) async fn settings(client: &Client) -> Outcome<()> {
    let sql = "SELECT current_setting('server_encoding'), current_setting('fsync'),
                      current_setting('synchronous_commit'), current_setting('full_page_writes')";
    let row = one(client, sql, &[]).await?;
    let encoding: String = row.try_get(0)?;
    if encoding != "UTF8" {
        return Err(strata_core::Error::invalid(format!(
            "the database has the encoding `{encoding}`; create one with `createdb --encoding=UTF8 --template=template0`"
        ))
        .into());
    }
    for (column, name) in [(1, "fsync"), (2, "synchronous_commit"), (3, "full_page_writes")] {
        if row.try_get::<_, &str>(column)? == "off" {
            tracing::warn!(
                setting = name,
                "PostgreSQL may lose acknowledged data in a crash; turn the setting on"
            );
        }
    }
    Ok(())
}

/// Counts what is stored and, for a thorough check, reads everything to find problems.
pub(crate) async fn check(connection: Connection, location: String, depth: CheckDepth) -> Outcome<Health> {
    let client: &Client = &connection;
    let counts = match depth {
        CheckDepth::Quick if estimate(client).await?.iter().sum::<u64>() > COUNTED => {
            estimate(client).await?
        }
        _ => exact(client).await?,
    };
    let [users, sessions, turns, memories] = counts;
    let mut health = Health {
        location,
        format_version: schema::VERSION,
        users,
        sessions,
        turns,
        memories,
        unindexed: 0,
        bytes: count(client, "SELECT pg_database_size(current_database())").await?,
        problems: Vec::new(),
    };
    health.problems.extend(problem_of_writes(client, &health.location).await);
    if depth == CheckDepth::Thorough {
        examine(client, &mut health.problems).await?;
    }
    Ok(health)
}

/// The numbers of users, sessions, turns and memories.
async fn exact(client: &Client) -> Outcome<[u64; 4]> {
    Ok([
        count(client, &format!("SELECT count(*) {}", read::STORED_USERS)).await?,
        count(client, "SELECT count(*) FROM sessions").await?,
        // Each session knows its number of turns, and there are fewer sessions than turns.
        count(client, "SELECT coalesce(sum(next_seq), 0)::bigint FROM sessions").await?,
        count(client, "SELECT count(*) FROM memories").await?,
    ])
}

/// The same numbers as the planner knows them, without reading the tables.
pub(crate) async fn estimate(client: &Client) -> Outcome<[u64; 4]> {
    let mut counts = [0; 4];
    for (count, table) in counts.iter_mut().zip(["users", "sessions", "turns", "memories"]) {
        let sql = "SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint FROM pg_class c
                   LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
                   WHERE $1::text::regclass IN (c.oid, i.inhparent) AND c.relkind = 'r'";
        let row = one(client, sql, args![table]).await?;
        *count = row.try_get::<_, i64>(0)?.unsigned_abs();
    }
    Ok(counts)
}

async fn count(client: &Client, sql: &str) -> Outcome<u64> {
    Ok(one(client, sql, &[]).await?.try_get::<_, i64>(0)?.unsigned_abs())
}

/// When the writes of each database were last tried, and the problem that was found.
type Probes = HashMap<String, (Instant, Option<String>)>;

/// The problem that keeps writes from being committed, if there is one. What was found within the last half second still
/// holds.
async fn problem_of_writes(client: &Client, location: &str) -> Option<String> {
    static FOUND: Mutex<Option<Probes>> = Mutex::new(None);
    let lock = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let known = lock().as_ref().and_then(|found| found.get(location).cloned());
    if let Some((_, problem)) = known.filter(|(at, _)| at.elapsed() < PROBED) {
        return problem;
    }
    let problem = probe(client).await.err().map(|fault| {
        let error = strata_core::Error::from(fault);
        format!("the store cannot be written: {error}")
    });
    lock().get_or_insert_default().insert(location.to_owned(), (Instant::now(), problem.clone()));
    problem
}

/// Commits a write. A standby, a database that was set to read-only and a disk that fails refuse it. On a full disk, an update
/// finds room in a page that is there already, so a table also grows by a page; it is empty again after the commit.
async fn probe(client: &Client) -> Outcome<()> {
    execute(client, "UPDATE strata_format SET version = version WHERE only_row", &[]).await?;
    let grown = client
        .batch_execute(
            "SET LOCAL client_min_messages = warning;
             CREATE TEMPORARY TABLE IF NOT EXISTS strata_probe (filler text) ON COMMIT DELETE ROWS;
             INSERT INTO pg_temp.strata_probe VALUES ('x')",
        )
        .await;
    match grown {
        // Not every role may create temporary tables.
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(()),
        grown => Ok(grown?),
    }
}

async fn examine(client: &Client, problems: &mut Vec<String>) -> Outcome<()> {
    for (sql, before, after) in EXAMINATIONS {
        for row in rows(client, sql, &[]).await?.iter().take(NAMED) {
            problems.push(format!("{before}{}{after}", row.try_get::<_, &str>(0)?));
        }
    }
    Ok(())
}

/// Queries for what is wrong, with the text before and after each name.
const EXAMINATIONS: [(&str, &str, &str); 4] = [
    (
        "SELECT s.session || '` of user `' || s.user_id FROM sessions s
         LEFT JOIN turns t ON t.user_id = s.user_id AND t.session = s.session
         GROUP BY s.user_id, s.session, s.next_seq
         HAVING count(t.seq) <> s.next_seq OR coalesce(max(t.seq) + 1, 0) <> s.next_seq
             OR coalesce(min(t.seq), 0) <> 0",
        "session `",
        "` has a gap in its turns; restore a backup and report this as a defect",
    ),
    (
        "SELECT t.session || '` of user `' || t.user_id FROM turns t
         WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.user_id = t.user_id AND s.session = t.session)",
        "a turn of session `",
        "` belongs to nothing; restore a backup",
    ),
    (
        "SELECT v.item::text FROM vectors v
         WHERE (v.kind = 0 AND NOT EXISTS (SELECT 1 FROM turns WHERE id = v.item AND user_id = v.user_id))
            OR (v.kind = 1 AND NOT EXISTS (SELECT 1 FROM memories WHERE id = v.item AND user_id = v.user_id))
            OR (v.kind = 2 AND NOT EXISTS (SELECT 1 FROM summaries WHERE id = v.item AND user_id = v.user_id))",
        "the vector of `",
        "` is of no item; report this as a defect",
    ),
    (
        "SELECT u.user_id FROM users u
         LEFT JOIN (SELECT user_id, count(*) AS items, sum(length) AS terms
                    FROM (SELECT user_id, length FROM turns UNION ALL SELECT user_id, length FROM memories) texts
                    GROUP BY user_id) t USING (user_id)
         WHERE u.indexed_items <> coalesce(t.items, 0) OR u.indexed_terms <> coalesce(t.terms, 0)",
        "the text statistics of user `",
        "` are wrong; report this as a defect",
    ),
];

#[cfg(all(test, feature = "test-server"))]
mod tests {
    use super::*;
    use crate::test_server;

    #[tokio::test]
    async fn the_probe_commits_so_a_database_that_cannot_is_noticed() {
        let database = test_server::database().await;
        drop(database.open().await);
        let client = database.client().await;
        let problem = async |place: &str| problem_of_writes(&client, place).await;
        assert_eq!(problem("a").await, None);
        // Twice, because the table that grows is there then.
        assert_eq!(problem("b").await, None);
        let fail = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
                    $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
                    CREATE CONSTRAINT TRIGGER full_disk AFTER UPDATE ON strata_format
                    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION full_disk()";
        client.batch_execute(fail).await.unwrap();
        let found = problem("c").await.unwrap();
        assert!(found.contains("out of disk space"), "{found}");
        client.batch_execute("DROP FUNCTION full_disk CASCADE").await.unwrap();
        assert_eq!(problem("d").await, None);
    }
}
