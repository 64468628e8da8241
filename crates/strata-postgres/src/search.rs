//! Full-text search in one snapshot.
//!
//! The server finds the items that hold a term by its GIN index, computes BM25 over the user's own statistics and sends the best
//! items. The formula, its constants and its precision are those of the embedded store, so both give the same order.

use std::cmp::Ordering;
use std::collections::HashSet;

use strata_core::UserId;
use strata_core::store::{Hit, Item, MOST_TESTED, TextMatch, TextQuery};
use strata_language::text;
use strata_language::text::SimilarWords;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::error::Outcome;
use crate::extensions::Extensions;
use crate::read::READ_AT_ONCE;
use crate::row::{self, micros};
use crate::sql::{all, arg, args, batch, first, rows};
use crate::terms;

/// The number of the user's newest turns, and of its newest memories, that are compared with a question word by word.
const COMPARED: i64 = 10_000;

/// The conditions under which a query sees a turn (`t`) and a memory (`m`): `$2` is the session and `$3` the moment.
pub(crate) const VISIBLE_TURN: &str = "t.hidden_at IS NULL AND ($2::text IS NULL OR t.session = $2) \
     AND ($3::bigint IS NULL OR t.created_at <= $3)";
pub(crate) const VISIBLE_MEMORY: &str = "($2::text IS NULL OR m.session IS NULL OR m.session = $2) \
     AND (CASE WHEN $3::bigint IS NULL THEN m.valid_to IS NULL AND m.hidden_at IS NULL \
          ELSE m.recorded_at <= $3 AND (m.valid_to IS NULL OR m.valid_to > $3) \
              AND (m.hidden_at IS NULL OR m.hidden_at > $3) END)";

/// The items that the query finds, best first. The caller has begun a snapshot.
pub(crate) async fn search(
    client: &Client,
    user: &UserId,
    query: &TextQuery,
    extensions: Extensions,
) -> Outcome<Vec<Hit>> {
    let found = match query.matching {
        TextMatch::Words => by_words(client, user, query).await?,
        TextMatch::Similar { min_similarity } => {
            similar(client, user, query, min_similarity, extensions).await?
        }
    };
    let Some(keep) = &query.keep else { return load(client, user, found).await };
    let mut hits = Vec::new();
    for part in found.chunks(READ_AT_ONCE as usize) {
        let read = load(client, user, part.to_vec()).await?;
        hits.extend(read.into_iter().filter(|hit| hit.item.tested().is_some_and(|item| keep.keeps(item))));
        if hits.len() >= query.limit as usize {
            break;
        }
    }
    hits.truncate(query.limit as usize);
    Ok(hits)
}

/// How many items to find: with a test, as many as it may see.
fn wanted(query: &TextQuery) -> u32 {
    if query.keep.is_some() { MOST_TESTED } else { query.limit }
}

/// A found item that is not read yet.
#[derive(Clone)]
pub(crate) struct ScoredRow {
    pub(crate) score: f32,
    pub(crate) created_at: i64,
    pub(crate) is_turn: bool,
    pub(crate) id: Uuid,
}

/// The items that share a term with the question, with their BM25 scores: `k1` is 1.2 and `b` 0.75, the defaults of Lucene and
/// Elasticsearch. Every item of the user counts for the statistics, and only visible ones are returned.
async fn by_words(client: &Client, user: &UserId, query: &TextQuery) -> Outcome<Vec<ScoredRow>> {
    let (once, twice): (Vec<String>, Vec<String>) =
        text::query_terms(&query.text).iter().map(|term| terms::queries(user, term)).unzip();
    let Some(totals) = totals(client, user).await? else { return Ok(Vec::new()) };
    if once.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "WITH wanted AS MATERIALIZED (
             SELECT n, once::tsquery, twice::tsquery FROM unnest($4::text[], $5::text[]) WITH ORDINALITY
                 AS w (once, twice, n)),
         holding AS MATERIALIZED (
             SELECT w.n, true AS is_turn, t.id, t.created_at, t.length, {VISIBLE_TURN} AS visible,
                 (CASE WHEN t.terms @@ w.twice THEN 2 ELSE 1 END)::real AS times
             FROM wanted w JOIN turns t ON t.user_id = $1 AND t.terms @@ w.once
             UNION ALL
             SELECT w.n, false, m.id, m.recorded_at, m.length, {VISIBLE_MEMORY},
                 (CASE WHEN m.terms @@ w.twice THEN 2 ELSE 1 END)::real
             FROM wanted w JOIN memories m ON m.user_id = $1 AND m.terms @@ w.once),
         rarity AS (
             SELECT n, ln(1 + ($6::real - count(*)::real + 0.5::real) / (count(*)::real + 0.5::real))::real AS weight
             FROM holding GROUP BY n),
         scored AS (
             SELECT h.is_turn, h.id, h.created_at, sum(r.weight * h.times * 2.2::real
                 / (h.times + 1.2::real * (0.25::real + 0.75::real * h.length::real / $7::real)) ORDER BY h.n) AS score
             FROM holding h JOIN rarity r USING (n)
             WHERE h.visible AND CASE WHEN h.is_turn THEN $8 ELSE $9 END
             GROUP BY h.is_turn, h.id, h.created_at)
         SELECT score, created_at, is_turn, id FROM scored
         ORDER BY score DESC, created_at DESC, is_turn, id DESC LIMIT $10"
    );
    let (items, mean_length) = totals;
    let args = args![
        user.as_str(),
        query.session.as_ref().map(|session| session.as_str()),
        query.as_of.map(micros),
        once,
        twice,
        items,
        mean_length,
        query.kinds.turns,
        query.kinds.memories,
        i64::from(wanted(query))
    ];
    all(client, &sql, args, |row| {
        let (score, created_at) = (row.try_get(0)?, row.try_get(1)?);
        Ok(ScoredRow { score, created_at, is_turn: row.try_get(2)?, id: row.try_get(3)? })
    })
    .await
}

/// The number of the user's items and their mean length.
async fn totals(client: &Client, user: &UserId) -> Outcome<Option<(f32, f32)>> {
    let sql = "SELECT indexed_items, indexed_terms FROM users WHERE user_id = $1";
    let Some(row) = first(client, sql, args![user.as_str()]).await? else { return Ok(None) };
    let (items, terms): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    let items = items as f32;
    Ok(Some((items, (terms as f32 / items.max(1.0)).max(1.0))))
}

/// The items that hold the question or resemble it: among the user's newest, which Strata compares itself, and among the older
/// ones with an index of trigrams.
async fn similar(
    client: &Client,
    user: &UserId,
    query: &TextQuery,
    least: f32,
    extensions: Extensions,
) -> Outcome<Vec<ScoredRow>> {
    let Some((items, _)) = totals(client, user).await? else { return Ok(Vec::new()) };
    let looks_up = extensions.trigrams && items > COMPARED as f32;
    let tables = [
        (query.kinds.turns, true, "turns t", "t.created_at", "t", VISIBLE_TURN),
        (query.kinds.memories, false, "memories m", "m.recorded_at", "m", VISIBLE_MEMORY),
    ];
    let mut similar = Similar::new(query, least);
    for (_, is_turn, from, time, name, visible) in tables.into_iter().filter(|table| table.0) {
        let select = format!(
            "SELECT {name}.id, {time}, {name}.content FROM {from} WHERE {name}.user_id = $1 AND {visible}"
        );
        let session = query.session.as_ref().map(|session| session.as_str());
        let newest = format!("{select} ORDER BY {time} DESC LIMIT $4");
        let mut args = vec![arg(user.as_str()), arg(session), arg(query.as_of.map(micros)), arg(COMPARED)];
        similar.add(&rows(client, &newest, &args).await?, is_turn)?;
        if looks_up {
            // A statement of its own kind, because Citus tells the other servers of `SET LOCAL` and of nothing else.
            let least = least * ROUNDING;
            batch(client, &format!("SET LOCAL pg_trgm.strict_word_similarity_threshold = '{least}'")).await?;
            let mut any = vec![format!("{name}.content ILIKE $5")];
            args.push(arg(similar.pattern()));
            for (place, word) in similar.words.compared().iter().take(LOOKED_UP).enumerate() {
                any.push(format!("{name}.content %>> ${}", place + 6));
                args.push(arg(word.clone()));
            }
            let older = format!("{select} AND ({}) ORDER BY {time} DESC LIMIT $4", any.join(" OR "));
            let older = rows(client, &older, &args).await?;
            similar.add(&older, is_turn)?;
        }
    }
    similar.found.sort_unstable_by(best_first);
    similar.found.truncate(wanted(query) as usize);
    Ok(similar.found)
}

/// The most words of a question that are looked up among the trigrams.
const LOOKED_UP: usize = 8;

/// `pg_trgm` computes with other roundings, so a little less is looked up and then compared exactly.
const ROUNDING: f32 = 0.98;

/// The items that resemble a question.
struct Similar {
    words: SimilarWords,
    least: f32,
    compared: HashSet<(bool, Uuid)>,
    found: Vec<ScoredRow>,
}

impl Similar {
    fn new(query: &TextQuery, least: f32) -> Self {
        Self { words: SimilarWords::new(&query.text), least, compared: HashSet::new(), found: Vec::new() }
    }

    /// Adds those of the rows (id, time, content) that resemble the question.
    fn add(&mut self, rows: &[Row], is_turn: bool) -> Outcome<()> {
        for row in rows {
            let id = row.try_get(0)?;
            if !self.compared.insert((is_turn, id)) {
                continue;
            }
            let score = self.words.score(row.try_get(2)?);
            if score > 0.0 && score >= self.least {
                self.found.push(ScoredRow { score, created_at: row.try_get(1)?, is_turn, id });
            }
        }
        Ok(())
    }

    /// The pattern of texts that hold the question.
    fn pattern(&self) -> String {
        let escaped = self.words.folded().replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        format!("%{escaped}%")
    }
}

/// Best first; of items with the same score the newest comes first.
pub(crate) fn best_first(a: &ScoredRow, b: &ScoredRow) -> Ordering {
    let newest = || (b.created_at, !b.is_turn, b.id).cmp(&(a.created_at, !a.is_turn, a.id));
    b.score.total_cmp(&a.score).then_with(newest)
}

/// Reads the found items whole.
pub(crate) async fn load(client: &Client, user: &UserId, found: Vec<ScoredRow>) -> Outcome<Vec<Hit>> {
    let ids = |is_turn: bool| -> Vec<Uuid> {
        found.iter().filter(|found| found.is_turn == is_turn).map(|found| found.id).collect()
    };
    let (turns, memories) = (ids(true), ids(false));
    let mut items = std::collections::HashMap::new();
    if !turns.is_empty() {
        let sql = format!("SELECT {} FROM turns t WHERE t.user_id = $1 AND t.id = ANY ($2)", row::TURN);
        for turn in all(client, &sql, args![user.as_str(), turns], row::turn).await? {
            items.insert((true, turn.id.0), Item::Turn(turn));
        }
    }
    if !memories.is_empty() {
        let sql = format!("SELECT {} FROM memories m WHERE m.user_id = $1 AND m.id = ANY ($2)", row::MEMORY);
        for memory in all(client, &sql, args![user.as_str(), memories], row::memory).await? {
            items.insert((false, memory.id.0), Item::Memory(memory));
        }
    }
    let hit = |found: &ScoredRow| {
        let item = items.remove(&(found.is_turn, found.id))?;
        Some(Hit { item, score: found.score })
    };
    Ok(found.iter().filter_map(hit).collect())
}
