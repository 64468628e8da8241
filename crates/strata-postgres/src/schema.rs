//! The stored format: its versions, how an old database becomes a new one, and which databases are refused.
//!
//! Several processes may start at once: the first one takes an advisory lock and migrates, the others wait and find nothing to
//! do. A step only adds, so that processes of the version before keep working on the migrated database until they are replaced;
//! a step that cannot do so raises [`OLDEST_READER`].

use strata_core::Error;
use tokio_postgres::Client;

use crate::error::Outcome;
use crate::sql::{args, execute, first, one};

/// The version that this program reads and writes.
pub(crate) const VERSION: u32 = MIGRATIONS.len() as u32;

/// The oldest version of the format whose programs can use a database of this version.
const OLDEST_READER: i32 = 1;

/// The steps from each version to the next, beginning with an empty schema. A released step never changes.
const MIGRATIONS: [&str; 4] = [
    include_str!("version_1.sql"),
    include_str!("version_2.sql"),
    include_str!("version_3.sql"),
    include_str!("version_4.sql"),
];

/// The views with the names of the designs. They are made anew by each program with a newer format.
const VIEWS: &str = include_str!("views.sql");

/// The tables of each version that are hash-partitioned by the user.
const PARTITIONED: [&[&str]; 4] = [
    &[
        "sessions",
        "turns",
        "memories",
        "summaries",
        "vectors",
        "segments",
        "progress",
        "requests",
        "idempotency",
    ],
    &[],
    &[],
    &[],
];

/// The rows of these tables are written again and again, so their pages keep room for new versions of a row.
const REWRITTEN: [&str; 2] = ["sessions", "progress"];

/// The advisory lock under which a process migrates: `Strata` in ASCII.
const LOCK: i64 = 0x5374_7261_7461;

/// How often a migration is tried. A reader of the views waits for the tables while the migration waits for the views, so
/// PostgreSQL may undo either.
const ATTEMPTS: u32 = 10;

/// The contents of a database before any change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DatabaseState {
    /// No table of Strata: it can be filled.
    Empty,
    /// A store of this version, an older one, or a newer one that this program may use, with its number of partitions.
    Store { version: u32, partitions: u32 },
}

/// Brings the database to this version in one transaction, and returns its number of partitions. `partitions` counts only
/// when the tables are made.
pub(crate) async fn migrate(client: &Client, partitions: u32) -> Outcome<u32> {
    if let DatabaseState::Store { version, partitions } = inspect(client).await?
        && version >= VERSION
    {
        return Ok(partitions);
    }
    let mut attempts = 0;
    loop {
        attempts += 1;
        client.batch_execute("BEGIN; SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0").await?;
        match migrate_locked(client, partitions).await {
            Ok(partitions) => {
                client.batch_execute("COMMIT").await?;
                return Ok(partitions);
            }
            Err(fault) => {
                // The first error is the one to tell of.
                let _ = client.batch_execute("ROLLBACK").await;
                if attempts == ATTEMPTS || !fault.is_transient() {
                    return Err(fault);
                }
            }
        }
    }
}

/// Waits until no other process changes the tables. The lock ends with the transaction.
pub(crate) async fn lock(client: &Client) -> Outcome<()> {
    execute(client, "SELECT pg_advisory_xact_lock($1)", args![LOCK]).await?;
    Ok(())
}

async fn migrate_locked(client: &Client, partitions: u32) -> Outcome<u32> {
    lock(client).await?;
    let (from, partitions) = match inspect(client).await? {
        DatabaseState::Empty => (0, partitions),
        DatabaseState::Store { version, partitions } => (version, partitions),
    };
    if from >= VERSION {
        return Ok(partitions);
    }
    step(client, from, VERSION, partitions).await?;
    tracing::info!(from, to = VERSION, partitions, "brought the store's format up to date");
    Ok(partitions)
}

/// Takes the steps from one version to a later one.
async fn step(client: &Client, from: u32, to: u32, partitions: u32) -> Outcome<()> {
    let steps = MIGRATIONS.iter().zip(PARTITIONED).take(to as usize);
    for (step, tables) in steps.skip(from as usize) {
        client.batch_execute(step).await?;
        for table in tables {
            client.batch_execute(&partition(table, partitions)).await?;
        }
    }
    client.batch_execute(VIEWS).await?;
    let sql = "INSERT INTO strata_format (version, oldest_reader, partitions) VALUES ($1, $2, $3)
               ON CONFLICT (only_row) DO UPDATE SET version = $1, oldest_reader = $2";
    execute(client, sql, args![to.cast_signed(), OLDEST_READER, partitions.cast_signed()]).await?;
    Ok(())
}

/// Makes an empty database one of an older version.
#[cfg(feature = "test-server")]
pub(crate) async fn make_old(client: &Client, version: u32, partitions: u32) -> Outcome<()> {
    step(client, 0, version, partitions).await
}

/// A number that stands for the statements of all versions.
#[cfg(feature = "test-server")]
pub(crate) fn digest() -> u64 {
    use strata_core::hash::{FNV_START, fnv_append};
    let partitioned = PARTITIONED.iter().flat_map(|tables| tables.iter());
    MIGRATIONS
        .iter()
        .chain(partitioned)
        .chain([&VIEWS])
        .fold(FNV_START, |hash, text| fnv_append(hash, text.as_bytes()))
}

/// The statements that make a table's partitions.
fn partition(table: &str, partitions: u32) -> String {
    let room = if REWRITTEN.contains(&table) { " WITH (fillfactor = 70)" } else { "" };
    (0..partitions)
        .map(|number| {
            format!(
                "CREATE TABLE {table}_{number} PARTITION OF {table}
                 FOR VALUES WITH (MODULUS {partitions}, REMAINDER {number}){room};"
            )
        })
        .collect()
}

/// All relations that a new store makes, except partitions.
const RELATIONS: [&str; 18] = [
    "strata_format",
    "users",
    "sessions",
    "turns",
    "memories",
    "summaries",
    "vectors",
    "segments",
    "progress",
    "requests",
    "idempotency",
    "jobs",
    "keys",
    "memory",
    "chat_turns",
    "chat_summaries",
    "memory_request_metrics",
    "memories_structured",
];

/// Reads the format, without writing. A schema with tables of another program and a store of a later Strata are refused.
async fn inspect(client: &Client) -> Outcome<DatabaseState> {
    let sql = "SELECT to_regclass('strata_format') IS NOT NULL,
                      array_to_string(ARRAY(SELECT name FROM unnest($1::text[]) name
                                            WHERE to_regclass(name) IS NOT NULL), '`, `')";
    let found = one(client, sql, args![RELATIONS.to_vec()]).await?;
    let (is_store, taken): (bool, &str) = (found.try_get(0)?, found.try_get(1)?);
    if !is_store && !taken.is_empty() {
        return Err(Error::invalid(format!(
            "the database has tables or views of another program with Strata's names: `{taken}`; \
             give Strata a database or a schema of its own"
        ))
        .into());
    }
    if !is_store {
        return Ok(DatabaseState::Empty);
    }
    let sql = "SELECT version, oldest_reader, partitions FROM strata_format";
    let Some(row) = first(client, sql, &[]).await? else { return Ok(DatabaseState::Empty) };
    let number = |column| -> Outcome<u32> { Ok(row.try_get::<_, i32>(column)?.unsigned_abs()) };
    let (version, oldest) = (number(0)?, number(1)?);
    if oldest > VERSION {
        return Err(Error::invalid(format!(
            "the database has format version {version}, and this Strata knows versions up to {VERSION}; \
             use a newer Strata"
        ))
        .into());
    }
    Ok(DatabaseState::Store { version, partitions: number(2)? })
}
