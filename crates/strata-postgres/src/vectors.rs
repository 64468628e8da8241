//! The search by vectors in the database, with pgvector.
//!
//! Within a user the search is exact: it compares all vectors of the user and model. A very large user gets an HNSW index of its
//! own, on the partition that has its rows; the search is then approximate.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use strata_core::UserId;
use strata_core::hash::{fnv, fnv_append};
use strata_core::store::{Hit, VectorQuery};
use strata_core::vector::Vector;
use tokio_postgres::Client;

use crate::connection::Connections;
use crate::error::Outcome;
use crate::row::{bound, micros};
use crate::search::{self, ScoredRow, VISIBLE_MEMORY, VISIBLE_TURN};
use crate::sql::{all, args, execute, first, one, rows};

/// The search reads this many times the wanted number of vectors first, because the items of some cannot be seen, and this many
/// times as many again while too few can be.
const FIRST_TIMES: u32 = 4;
const MORE_TIMES: u32 = 8;

/// The most components of a vector in an HNSW index of pgvector, as `halfvec`.
const MOST_INDEXED: usize = 4_000;

/// The largest value of `hnsw.ef_search`.
const MOST_REACHED: u32 = 1_000;

/// After how many questions of a small user a process looks again whether it has grown. A look costs about as much as one of them.
const LOOK_EVERY: u32 = 100;

/// The HNSW indexes that this process has asked for, by their names.
#[derive(Default)]
pub(crate) struct LargeUsers(Arc<Mutex<HashMap<String, Asked>>>);

/// The state of an index.
enum Asked {
    /// The database is being asked, or builds it.
    Now,
    /// It was not there, because the user was small or it could not be made. The user has asked that often since then.
    Small {
        questions: u32,
    },
    Made,
}

/// The items nearest to a vector. The caller has begun a snapshot.
pub(crate) async fn nearest(client: &Client, user: &UserId, query: &VectorQuery) -> Outcome<Vec<Hit>> {
    let dimension = query.vector.values.len();
    if dimension == 0 || query.vector.scale == 0.0 || !(query.kinds.turns || query.kinds.memories) {
        return Ok(Vec::new());
    }
    let sql = format!(
        "WITH near AS MATERIALIZED (
             SELECT v.kind, v.item, (1 - (v.embedding::halfvec({dimension}) <=> $4::text::halfvec({dimension})))::real AS score
             FROM vectors v WHERE v.user_id = $1 AND v.model = $5 AND vector_dims(v.embedding) = {dimension}
             ORDER BY v.embedding::halfvec({dimension}) <=> $4::text::halfvec({dimension}) LIMIT $6)
         SELECT n.score, t.created_at, true, t.id FROM near n JOIN turns t ON t.user_id = $1 AND t.id = n.item
         WHERE n.kind = 0 AND n.score > 0 AND $7 AND {VISIBLE_TURN}
         UNION ALL
         SELECT n.score, m.recorded_at, false, m.id FROM near n JOIN memories m ON m.user_id = $1 AND m.id = n.item
         WHERE n.kind = 1 AND n.score > 0 AND $8 AND {VISIBLE_MEMORY}
         UNION ALL
         SELECT 0, count(*), NULL, NULL FROM near"
    );
    let vector = text(&query.vector);
    let mut read = query.limit.saturating_mul(FIRST_TIMES);
    loop {
        // An HNSW index gives no more items than this; without one the setting has no effect.
        let reach = read.clamp(40, MOST_REACHED).to_string();
        execute(client, "SELECT set_config('hnsw.ef_search', $1, true)", args![reach]).await?;
        let args = args![
            user.as_str(),
            query.session.as_ref().map(|session| session.as_str()),
            query.as_of.map(micros),
            vector.as_str(),
            query.model.as_str(),
            i64::from(read),
            query.kinds.turns,
            query.kinds.memories
        ];
        // The last row has the number of vectors that were read.
        let mut compared = 0_i64;
        let rows = all(client, &sql, args, |row| {
            let (score, created_at): (f32, i64) = (row.try_get(0)?, row.try_get(1)?);
            let Some(is_turn) = row.try_get::<_, Option<bool>>(2)? else { return Ok(Err(created_at)) };
            Ok(Ok(ScoredRow { score, created_at, is_turn, id: row.try_get(3)? }))
        });
        let mut found = Vec::new();
        for row in rows.await? {
            match row {
                Ok(one) => found.push(one),
                Err(count) => compared = count,
            }
        }
        if found.len() >= query.limit as usize || compared < i64::from(read) {
            found.sort_unstable_by(search::best_first);
            found.truncate(query.limit as usize);
            return search::load(client, user, found).await;
        }
        read = read.saturating_mul(MORE_TIMES);
    }
}

/// The text of a `halfvec`.
fn text(vector: &Vector) -> String {
    let values: Vec<String> = vector.values.iter().map(ToString::to_string).collect();
    format!("[{}]", values.join(","))
}

impl LargeUsers {
    /// Makes an HNSW index for a user with more than `from` changes, in the background. `from` 0 means never.
    pub(crate) fn index(
        &self,
        connections: &Arc<Connections>,
        user: &UserId,
        query: &VectorQuery,
        from: u64,
    ) {
        let dimension = query.vector.values.len();
        if from == 0 || dimension > MOST_INDEXED {
            return;
        }
        let name = index_name(user, &query.model);
        if !self.looks(&name) {
            return;
        }
        let (connections, user, model) = (Arc::clone(connections), user.clone(), query.model.clone());
        let asked = Arc::clone(&self.0);
        tokio::spawn(async move {
            let made = connections
                .run_once(|client| {
                    let (user, model, name) = (&user, &model, &name);
                    async move { make_index(&client, user, model, name, dimension, from).await }
                })
                .await;
            let next = match made {
                Ok(Made::Yes) => Asked::Made,
                Ok(Made::No) => Asked::Small { questions: 0 },
                Err(error) => {
                    tracing::warn!(%error, index = name, "the vectors of a large user cannot be indexed");
                    Asked::Small { questions: 0 }
                }
            };
            asked.lock().unwrap_or_else(PoisonError::into_inner).insert(name, next);
        });
    }

    /// Drops the indexes whose vectors are gone, in the background: those of forgotten users, whose names they hold. What is not
    /// dropped now is dropped when the next process starts.
    pub(crate) fn drop_unused(&self, connections: &Arc<Connections>) {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asked.retain(|_, known| matches!(known, Asked::Now));
        let connections = Arc::clone(connections);
        tokio::spawn(async move {
            let dropped = connections.run_once(|client| async move { drop_unused(&client).await }).await;
            if let Err(error) = dropped {
                tracing::warn!(%error, "the indexes of vectors that are gone cannot be dropped");
            }
        });
    }

    /// Whether to look now if a user needs an index: a small user may have grown since the last look.
    fn looks(&self, name: &str) -> bool {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let looks = match asked.get_mut(name) {
            None => true,
            Some(Asked::Now | Asked::Made) => false,
            Some(Asked::Small { questions }) => {
                *questions += 1;
                *questions >= LOOK_EVERY
            }
        };
        if looks {
            asked.insert(name.to_owned(), Asked::Now);
        }
        looks
    }
}

/// The name of the index of a user and model.
fn index_name(user: &UserId, model: &str) -> String {
    format!("vectors_hnsw_{:016x}", fnv_append(fnv(user.as_str().as_bytes()), model.as_bytes()))
}

/// Whether a user has an index.
enum Made {
    Yes,
    No,
}

async fn make_index(
    client: &Client,
    user: &UserId,
    model: &str,
    name: &str,
    dimension: usize,
    from: u64,
) -> Outcome<Made> {
    let sql = "SELECT (SELECT v.tableoid::regclass::text FROM vectors v WHERE v.user_id = u.user_id AND v.model = $3 LIMIT 1)
               FROM users u WHERE u.user_id = $1 AND u.revision > $2";
    let Some(row) = first(client, sql, args![user.as_str(), bound(from), model]).await? else {
        return Ok(Made::No);
    };
    let Some(partition) = row.try_get::<_, Option<String>>(0)? else { return Ok(Made::No) };
    // A build that broke off leaves an index that is kept up to date and never read.
    let sql = "SELECT i.indisvalid, EXISTS (SELECT 1 FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid)
               FROM pg_index i WHERE i.indexrelid = to_regclass($1)";
    if let Some(row) = first(client, sql, args![name]).await? {
        match (row.try_get(0)?, row.try_get(1)?) {
            (true, _) => return Ok(Made::Yes),
            // Another process builds it.
            (false, true) => return Ok(Made::No),
            (false, false) => {
                tracing::info!(index = name, "an index of vectors was left unfinished; it is built again");
                client.batch_execute(&format!("DROP INDEX CONCURRENTLY IF EXISTS {name}")).await?;
            }
        }
    }
    // Other processes go on writing meanwhile. A statement that is not in a transaction is needed for that.
    let sql = format!(
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {partition}
         USING hnsw ((embedding::halfvec({dimension})) halfvec_cosine_ops)
         WHERE user_id = {} AND model = {}",
        literal(user.as_str()),
        literal(model)
    );
    client.batch_execute(&sql).await?;
    Ok(Made::Yes)
}

/// Drops the indexes of no vectors. Each index holds the vectors of one user and model; PostgreSQL tells its condition.
async fn drop_unused(client: &Client) -> Outcome<()> {
    let sql = "SELECT c.oid::regclass::text, i.indrelid::regclass::text, pg_get_expr(i.indpred, i.indrelid)
               FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
               WHERE c.relname LIKE 'vectors\\_hnsw\\_%' AND i.indrelid IN (
                   SELECT inhrelid FROM pg_inherits WHERE inhparent = 'vectors'::regclass)";
    for index in rows(client, sql, &[]).await? {
        let (name, table, condition): (&str, &str, &str) =
            (index.try_get(0)?, index.try_get(1)?, index.try_get(2)?);
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE {condition})");
        if !one(client, &sql, &[]).await?.try_get::<_, bool>(0)? {
            client.batch_execute(&format!("DROP INDEX CONCURRENTLY IF EXISTS {name}")).await?;
        }
    }
    Ok(())
}

/// A text as a literal of SQL, whatever `standard_conforming_strings` says.
fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
