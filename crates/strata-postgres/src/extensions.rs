//! The additions of the server's extensions to the tables: an index of trigrams (`pg_trgm`) and a column of vectors (`pgvector`).
//!
//! Both are optional. A process that starts looks which of them the database has, adds what it may, and otherwise says what a
//! person has to do ([`strata_core::Store::advice`]). Without them the store works as well, with a fallback that reads more. Start reading
//! at [`prepare`].

use strata_core::Error;
use tokio_postgres::Client;

use crate::check;
use crate::error::Outcome;
use crate::schema;
use crate::sql::one;

/// Which additions the database has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extensions {
    /// Trigrams of all texts are indexed.
    pub(crate) trigrams: bool,
    /// Vectors are kept as `halfvec` too.
    pub(crate) halfvec: bool,
    /// The tables may be spread over several servers.
    pub(crate) citus: bool,
}

/// One addition.
struct Addition {
    what: &'static str,
    extensions: &'static [&'static str],
    /// The package that has the extensions; `NN` stands for the version of the server.
    package: &'static str,
    /// A query that tells whether the tables have the addition.
    made: &'static str,
    /// The statements that add it, after those that create the extensions.
    make: &'static str,
}

/// The user is a part of the index (by `btree_gin`), so a search reads the lists of one user.
const TRIGRAMS: Addition = Addition {
    what: "the search for misspelled words beyond a user's newest 10,000 items",
    extensions: &["pg_trgm", "btree_gin"],
    package: "postgresql-contrib",
    made: "SELECT to_regclass('turns_trigrams') IS NOT NULL AND to_regclass('memories_trigrams') IS NOT NULL",
    make: "CREATE INDEX IF NOT EXISTS turns_trigrams ON turns USING gin (user_id, content gin_trgm_ops);
           CREATE INDEX IF NOT EXISTS memories_trigrams ON memories USING gin (user_id, content gin_trgm_ops);",
};

/// The column follows from `components`, so every process fills it, also one that does not know of it. The components are whole
/// numbers up to 127, which a half keeps exactly. `SET search_path` lets a restored dump find the type.
const HALFVEC: Addition = Addition {
    what: "the search for vectors in the database",
    extensions: &["vector"],
    package: "postgresql-NN-pgvector",
    made: "SELECT EXISTS (SELECT 1 FROM pg_attribute
                   WHERE attrelid = 'vectors'::regclass AND attname = 'embedding' AND NOT attisdropped)",
    make: "CREATE OR REPLACE FUNCTION strata_halfvec(components bytea) RETURNS halfvec
               LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS
               'SELECT array_agg(((get_byte(components, i) + 128) % 256 - 128)::real ORDER BY i)::halfvec
                FROM generate_series(0, length(components) - 1) i';
           ALTER TABLE vectors ADD COLUMN IF NOT EXISTS embedding halfvec
               GENERATED ALWAYS AS (strata_halfvec(components)) STORED;",
};

/// A larger store is left alone, because the tables could not be written to for minutes.
const SMALL: u64 = 200_000;

/// How long the tables are waited for.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = 0";

/// Looks which additions the database has, and makes those that it can have. Nothing of it is needed: also returns what is missing, and
/// what to do about it.
pub(crate) async fn prepare(client: &Client) -> Outcome<(Extensions, Vec<String>)> {
    let (no_trigrams, no_halfvec) = (add(client, &TRIGRAMS).await?, add(client, &HALFVEC).await?);
    let (trigrams, halfvec) = (no_trigrams.is_none(), no_halfvec.is_none());
    let mut missing: Vec<String> = [no_trigrams, no_halfvec].into_iter().flatten().collect();
    if trigrams {
        missing.extend(problem_of_locale(client).await?);
    }
    let citus = "SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')";
    let citus = one(client, citus, &[]).await?.try_get(0)?;
    Ok((Extensions { trigrams, halfvec, citus }, missing))
}

/// Adds an addition that the tables do not have yet. If that cannot be, returns why, and what to do about it.
async fn add(client: &Client, addition: &Addition) -> Outcome<Option<String>> {
    if one(client, addition.made, &[]).await?.try_get(0)? {
        return Ok(None);
    }
    if let Some(package) = missing_package(client, addition).await? {
        return Ok(Some(format!(
            "PostgreSQL lacks {} for {}; install the package `{package}` on its server and restart Strata",
            addition.extensions.join(" and "),
            addition.what
        )));
    }
    if check::estimate(client).await?.iter().sum::<u64>() > SMALL {
        return Ok(Some(format!(
            "the tables are too large to add {} at start-up; run the statements of docs/scale.md at a quiet time, and restart Strata",
            addition.what
        )));
    }
    client.batch_execute("BEGIN").await?;
    match make(client, addition).await {
        Ok(()) => {
            client.batch_execute("COMMIT").await?;
            Ok(None)
        }
        Err(fault) => {
            client.batch_execute("ROLLBACK").await?;
            Ok(Some(refused(addition, &Error::from(fault))))
        }
    }
}

/// The package whose extensions the server does not have.
async fn missing_package(client: &Client, addition: &Addition) -> Outcome<Option<String>> {
    let names = addition.extensions.join("', '");
    let sql = format!(
        "SELECT count(*), (current_setting('server_version_num')::int / 10000)::text
         FROM pg_available_extensions WHERE name IN ('{names}')"
    );
    let row = one(client, &sql, &[]).await?;
    let is_missing = (row.try_get::<_, i64>(0)? as usize) < addition.extensions.len();
    let package = addition.package.replace("NN", row.try_get::<_, &str>(1)?);
    Ok(is_missing.then_some(package))
}

/// The remedy for an addition that the database refuses.
fn refused(addition: &Addition, error: &Error) -> String {
    let extensions = addition.extensions.iter().map(|name| format!("CREATE EXTENSION {name};"));
    format!(
        "cannot add {} ({error}); let an administrator run `{}` in the database, and restart Strata",
        addition.what,
        extensions.collect::<Vec<_>>().join(" ")
    )
}

async fn make(client: &Client, addition: &Addition) -> Outcome<()> {
    client.batch_execute(LOCK_TIMEOUT).await?;
    schema::lock(client).await?;
    for name in addition.extensions {
        client.batch_execute(&format!("CREATE EXTENSION IF NOT EXISTS {name}")).await?;
    }
    client.batch_execute(addition.make).await?;
    tracing::info!("added {}", addition.what);
    Ok(())
}

/// The remedy for a locale in which `pg_trgm` sees no letters beyond ASCII: it then extracts nothing from Chinese, and a search for
/// a Chinese word reads all of the user's items.
async fn problem_of_locale(client: &Client) -> Outcome<Option<String>> {
    let sql = "SELECT cardinality(show_trgm('西湖')) > 0, datctype FROM pg_database WHERE datname = current_database()";
    let row = one(client, sql, &[]).await?;
    let knows_letters: bool = row.try_get(0)?;
    let locale: &str = row.try_get(1)?;
    Ok((!knows_letters).then(|| {
        format!(
            "the database's locale `{locale}` knows no letters beyond ASCII, so misspelled words of other scripts are found late or not at \
             all; create the database with `createdb --template=template0 --encoding=UTF8 --locale=C.UTF-8`, and move the data \
             with `strata migrate` or `pg_dump`"
        )
    }))
}

/// A number that stands for the statements of all additions.
#[cfg(feature = "test-server")]
pub(crate) fn digest(start: u64) -> u64 {
    use strata_core::hash::fnv_append;
    [TRIGRAMS.make, HALFVEC.make].iter().fold(start, |hash, text| fnv_append(hash, text.as_bytes()))
}
