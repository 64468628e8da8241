//! The additions of the server's extensions to the tables: an index of trigrams (`pg_trgm`) and a column of vectors (`pgvector`).
//!
//! Both are optional. A process that starts looks which of them the database has, adds what it may, and otherwise logs what a
//! person has to do. Without them the store works as well, with a fallback that reads more. Start reading at [`prepare`].

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
    /// The package that has the extensions.
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

/// Looks which additions the database has, and makes those that it can have. Nothing of it is needed, so a failure is logged.
pub(crate) async fn prepare(client: &Client) -> Outcome<Extensions> {
    let trigrams = add(client, &TRIGRAMS).await?;
    let halfvec = add(client, &HALFVEC).await?;
    if trigrams {
        check_locale(client).await?;
    }
    let citus = "SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')";
    let citus = one(client, citus, &[]).await?.try_get(0)?;
    Ok(Extensions { trigrams, halfvec, citus })
}

/// Returns whether the tables have an addition now.
async fn add(client: &Client, addition: &Addition) -> Outcome<bool> {
    if one(client, addition.made, &[]).await?.try_get(0)? {
        return Ok(true);
    }
    let names = addition.extensions.join("', '");
    let sql = format!("SELECT count(*) FROM pg_available_extensions WHERE name IN ('{names}')");
    let available: i64 = one(client, &sql, &[]).await?.try_get(0)?;
    if (available as usize) < addition.extensions.len() {
        tracing::info!(
            extensions = addition.extensions.join(", "),
            "PostgreSQL lacks extensions for {}; install the package `{}` on its server and restart Strata",
            addition.what,
            addition.package
        );
        return Ok(false);
    }
    if check::estimate(client).await?.iter().sum::<u64>() > SMALL {
        tracing::warn!(
            "the tables are too large to add {} at start-up; docs/scale.md has the statements",
            addition.what
        );
        return Ok(false);
    }
    client.batch_execute("BEGIN").await?;
    match make(client, addition).await {
        Ok(()) => {
            client.batch_execute("COMMIT").await?;
            Ok(true)
        }
        Err(fault) => {
            client.batch_execute("ROLLBACK").await?;
            let error = Error::from(fault);
            let extensions = addition.extensions.iter().map(|name| format!("CREATE EXTENSION {name};"));
            tracing::warn!(
                %error,
                "cannot add {}; let an administrator run `{}` in the database, and restart Strata",
                addition.what,
                extensions.collect::<Vec<_>>().join(" ")
            );
            Ok(false)
        }
    }
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

/// Warns of a locale in which `pg_trgm` sees no letters beyond ASCII: it then extracts nothing from Chinese, and a search for
/// a Chinese word reads all of the user's items.
async fn check_locale(client: &Client) -> Outcome<()> {
    let sql = "SELECT cardinality(show_trgm('西湖')) > 0, datctype FROM pg_database WHERE datname = current_database()";
    let row = one(client, sql, &[]).await?;
    if !row.try_get::<_, bool>(0)? {
        tracing::warn!(
            locale = row.try_get::<_, &str>(1)?,
            "the database's locale knows no letters beyond ASCII, so misspelled words of other scripts are found late or not at \
             all; create the database with `createdb --template=template0 --encoding=UTF8 --locale=C.UTF-8`, and move the data \
             with `strata migrate` or `pg_dump`"
        );
    }
    Ok(())
}

/// A number that stands for the statements of all additions.
#[cfg(feature = "test-server")]
pub(crate) fn digest(start: u64) -> u64 {
    use strata_core::hash::fnv_append;
    [TRIGRAMS.make, HALFVEC.make].iter().fold(start, |hash, text| fnv_append(hash, text.as_bytes()))
}
