//! Full-text search in one snapshot over the index, its tail and the visible rows.

use std::collections::{BTreeSet, HashSet};

use rusqlite::{Connection, OptionalExtension, params};
use strata_core::store::{Hit, Item, ItemRef, Keep, MOST_TESTED, TextMatch, TextQuery};
use strata_core::{Memory, Turn, UserId};
use strata_language::text;
use strata_language::text::SimilarWords;

use super::damage::{self, pass_over};
use super::error::Outcome;
use super::index::{self, Key, Kind, Tail, Totals};
use super::row::{self, micros};

/// BM25's `k1`, the saturation of a repeated term: the default of Lucene and Elasticsearch, as in the reference store.
const K1: f32 = 1.2;

/// BM25's `b`, the penalty of a long item: the default of Lucene and Elasticsearch, as in the reference store.
const B: f32 = 0.75;

/// The number of the user's newest turns, and of its newest memories, that are compared with a question word by word. An older
/// item is compared only if it holds a term that resembles the question.
const COMPARED: i64 = 10_000;

/// The allowance for terms, which are stems: a term may resemble the question by this much less than a word must.
const STEM_SLACK: f32 = 0.7;

/// The most terms that resemble the question whose items are read, the most similar first.
const SIMILAR_TERMS: usize = 64;

/// The most items with the same score as the last one that are read too, so that the newest of them come first.
const TIES: usize = 64;

/// The items that the query finds, best first.
pub(crate) fn search(conn: &Connection, user: &UserId, query: &TextQuery) -> Outcome<Vec<Hit>> {
    search_comparing(conn, user, query, COMPARED)
}

/// As [`search`], comparing at most `compared` items of a kind word by word.
pub(super) fn search_comparing(
    conn: &Connection,
    user: &UserId,
    query: &TextQuery,
    compared: i64,
) -> Outcome<Vec<Hit>> {
    let owner = conn
        .prepare_cached("SELECT id, indexed_items, indexed_terms FROM users WHERE name = ?1")?
        .query_row([user.as_str()], |row| {
            Ok((row.get(0)?, Totals { items: row.get(1)?, terms: row.get(2)? }))
        })
        .optional()?;
    let Some((user_id, totals)) = owner else { return Ok(Vec::new()) };
    let mut seen = Visible { conn, user_id, query, session: None };
    if let Some(session) = &query.session {
        // No session has the number 0, so an unknown session has no turns.
        let sql = "SELECT id, next_seq FROM sessions WHERE user_id = ?1 AND name = ?2";
        let found = conn
            .prepare_cached(sql)?
            .query_row(params![user_id, session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        seen.session = Some(found.unwrap_or((0, 0)));
    }
    match query.matching {
        TextMatch::Words => seen.load(by_words(conn, user_id, totals, &query.text)?),
        TextMatch::Similar { min_similarity } => seen.similar(min_similarity, compared, totals),
    }
}

/// All items that share a term with the question, with their BM25 scores over the user's own statistics.
fn by_words(conn: &Connection, user_id: i64, totals: Totals, question: &str) -> Outcome<Vec<(Key, f32)>> {
    let tail = Tail::read(conn, user_id)?;
    let totals = tail.add_to(totals);
    let count = totals.items as f32;
    let mean_length = (totals.terms as f32 / count.max(1.0)).max(1.0);
    let mut scores: Vec<(Key, f32)> = Vec::new();
    for term in text::query_terms(question) {
        let found = index::holding(conn, user_id, &tail, &term)?;
        let holding = found.len() as f32;
        let rarity = (1.0 + (count - holding + 0.5) / (holding + 0.5)).ln();
        scores.extend(found.into_iter().map(|(key, repeated)| {
            let times = if repeated { 2.0 } else { 1.0 };
            let saturation = times + K1 * (1.0 - B + B * key.length() as f32 / mean_length);
            (key, rarity * times * (K1 + 1.0) / saturation)
        }));
    }
    // There is one ascending run for each term, and the stable sort merges them in linear time.
    scores.sort_by_key(|(key, _)| *key);
    scores.dedup_by(|next, first| {
        let same = next.0 == first.0;
        if same {
            first.1 += next.1;
        }
        same
    });
    Ok(scores)
}

/// The items that a query may see.
struct Visible<'a> {
    conn: &'a Connection,
    user_id: i64,
    query: &'a TextQuery,
    /// The row and the number of turns of the session that the query is bound to.
    session: Option<(i64, i64)>,
}

impl Visible<'_> {
    /// The best of the candidates that may be seen.
    fn load(&self, mut candidates: Vec<(Key, f32)>) -> Outcome<Vec<Hit>> {
        let kinds = self.query.kinds;
        candidates.retain(|(key, _)| match key.kind() {
            Kind::Turn => kinds.turns,
            Kind::Memory => kinds.memories,
        });
        self.keep_session(&mut candidates)?;
        let limit = self.query.limit as usize;
        let better = |a: &(Key, f32), b: &(Key, f32)| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0));
        let mut hits: Vec<Hit> = Vec::new();
        let mut tested = 0;
        let mut rest = candidates.as_mut_slice();
        // Only as many candidates are sorted as are needed; usually the first part is enough.
        while !rest.is_empty() {
            let part = (limit.saturating_add(TIES)).saturating_mul(2).min(rest.len());
            if part < rest.len() {
                rest.select_nth_unstable_by(part, better);
            }
            let (first, others) = rest.split_at_mut(part);
            first.sort_unstable_by(better);
            for (key, score) in first.iter() {
                let is_tie = hits.last().is_some_and(|last| last.score == *score);
                if hits.len() >= limit.saturating_add(if is_tie { TIES } else { 0 }) {
                    return Ok(newest_first(hits, limit));
                }
                let Some(item) = self.item(key.kind(), key.row())? else { continue };
                tested += 1;
                if self.query.keep.is_some() && tested > MOST_TESTED {
                    return Ok(newest_first(hits, limit));
                }
                if self.keeps(&item) {
                    hits.push(Hit { item, score: *score });
                }
            }
            rest = others;
        }
        Ok(newest_first(hits, limit))
    }

    /// Removes candidates of other sessions, if that is quicker than reading each row.
    fn keep_session(&self, candidates: &mut Vec<(Key, f32)>) -> Outcome<()> {
        let Some((session, turns)) = self.session else { return Ok(()) };
        if turns > 8 * candidates.len() as i64 {
            return Ok(());
        }
        let mut select = self.conn.prepare_cached("SELECT row FROM turns WHERE session_id = ?1")?;
        let rows: HashSet<i64> = select.query_map([session], |row| row.get(0))?.collect::<Result<_, _>>()?;
        candidates.retain(|(key, _)| key.kind() == Kind::Memory || rows.contains(&key.row()));
        Ok(())
    }

    fn item(&self, kind: Kind, row: i64) -> Outcome<Option<Item>> {
        match kind {
            Kind::Turn => Ok(self.turn(row)?.map(Item::Turn)),
            Kind::Memory => Ok(self.memory(row)?.filter(|memory| self.shows(memory)).map(Item::Memory)),
        }
    }

    fn turn(&self, row: i64) -> Outcome<Option<Turn>> {
        let sql = format!(
            "SELECT {} FROM turns t JOIN sessions s ON s.id = t.session_id
             WHERE t.row = ?1 AND t.user_id = ?2 AND t.hidden_at IS NULL
               AND (?3 IS NULL OR t.session_id = ?3) AND (?4 IS NULL OR t.created_at <= ?4)",
            row::TURN
        );
        let mut select = self.conn.prepare_cached(&sql)?;
        let session = self.session.map(|(row, _)| row);
        let mut rows = select.query(params![row, self.user_id, session, self.query.as_of.map(micros)])?;
        let turn = rows.next()?.map(|row| pass_over(row::turn(row))).transpose()?;
        Ok(turn.flatten())
    }

    fn memory(&self, row: i64) -> Outcome<Option<Memory>> {
        let sql = format!("SELECT {} FROM memories m WHERE m.row = ?1 AND m.user_id = ?2", row::MEMORY);
        let mut select = self.conn.prepare_cached(&sql)?;
        let mut rows = select.query([row, self.user_id])?;
        let memory = rows.next()?.map(|row| pass_over(row::memory(row))).transpose()?;
        Ok(memory.flatten())
    }

    /// Whether an item passes the query's own test.
    fn keeps(&self, item: &Item) -> bool {
        item.tested().is_some_and(|item: ItemRef<'_>| Keep::is_kept(self.query.keep.as_ref(), item))
    }

    fn shows(&self, memory: &Memory) -> bool {
        let believed = match self.query.as_of {
            Some(moment) => memory.believed_at(moment),
            None => memory.is_current(),
        };
        let session = self.query.session.as_ref();
        believed && (session.is_none() || memory.session.is_none() || memory.session.as_ref() == session)
    }

    /// The items that hold the question or resemble it. It compares all of the newest items, and the older items that hold a
    /// similar term.
    fn similar(&self, min_similarity: f32, compared: i64, totals: Totals) -> Outcome<Vec<Hit>> {
        let similar = SimilarWords::new(&self.query.text);
        let resembles = |content: &str| {
            let score = similar.score(content);
            (score > 0.0 && score >= min_similarity).then_some(score)
        };
        let mut found = Vec::new();
        if self.query.kinds.turns {
            self.similar_turns(&resembles, compared, &mut found)?;
        }
        if self.query.kinds.memories {
            self.similar_memories(&resembles, compared, &mut found)?;
        }
        if totals.items > compared {
            let seen: HashSet<(Kind, i64)> = found.iter().map(|one| (one.kind, one.row)).collect();
            for key in self.keys_of_similar_terms(&similar, min_similarity * STEM_SLACK)? {
                if seen.contains(&(key.kind(), key.row())) {
                    continue;
                }
                let Some(item) = self.item(key.kind(), key.row())? else { continue };
                if let Some(score) = resembles(item.content()) {
                    let created_at = micros(item.created_at());
                    found.push(Resembling { score, created_at, kind: key.kind(), row: key.row() });
                }
            }
        }
        // Many items may resemble a question of common words, so only the items of the answer are read whole.
        found.sort_unstable_by(|a, b| {
            let newest = || (b.created_at, b.row).cmp(&(a.created_at, a.row));
            b.score.total_cmp(&a.score).then_with(newest)
        });
        let limit = self.query.limit as usize;
        let mut hits = Vec::new();
        // A test sees no more items than the contract says; there are seldom as many.
        for Resembling { score, kind, row, .. } in found.into_iter().take(MOST_TESTED as usize) {
            if hits.len() == limit {
                break;
            }
            let item = self.item(kind, row)?.filter(|item| self.keeps(item));
            hits.extend(item.map(|item| Hit { item, score }));
        }
        Ok(newest_first(hits, limit))
    }

    /// The newest items in the index that hold a term similar to the question.
    fn keys_of_similar_terms(&self, similar: &SimilarWords, least: f32) -> Outcome<Vec<Key>> {
        let mut terms: Vec<(f32, String)> = Vec::new();
        index::for_each_term(self.conn, self.user_id, |term| {
            let score = similar.score(term);
            if score > 0.0 && score >= least {
                terms.push((score, term.to_owned()));
            }
        })?;
        terms.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut keys = BTreeSet::new();
        for (_, term) in terms.iter().take(SIMILAR_TERMS) {
            // Items in the tail are among the newest, which have been compared already.
            let holding = index::holding(self.conn, self.user_id, &Tail::default(), term)?;
            keys.extend(holding.into_iter().map(|(key, _)| key));
        }
        let kinds = self.query.kinds;
        let wanted = keys.into_iter().rev().filter(|key| match key.kind() {
            Kind::Turn => kinds.turns,
            Kind::Memory => kinds.memories,
        });
        Ok(wanted.take(COMPARED as usize).collect())
    }

    fn similar_turns(
        &self,
        resembles: &dyn Fn(&str) -> Option<f32>,
        compared: i64,
        found: &mut Vec<Resembling>,
    ) -> Outcome<()> {
        let mut select = self.conn.prepare_cached(
            "SELECT row, created_at, content FROM turns INDEXED BY turns_recent
             WHERE user_id = ?1 AND (?2 IS NULL OR session_id = ?2) AND (?3 IS NULL OR created_at <= ?3)
               AND hidden_at IS NULL
             ORDER BY created_at DESC LIMIT ?4",
        )?;
        let session = self.session.map(|(row, _)| row);
        let as_of = self.query.as_of.map(micros);
        let rows = select.query(params![self.user_id, session, as_of, compared])?;
        compare(rows, Kind::Turn, resembles, found)
    }

    fn similar_memories(
        &self,
        resembles: &dyn Fn(&str) -> Option<f32>,
        compared: i64,
        found: &mut Vec<Resembling>,
    ) -> Outcome<()> {
        let mut select = self.conn.prepare_cached(
            "SELECT row, recorded_at, content FROM memories WHERE user_id = ?1
             ORDER BY recorded_at DESC LIMIT ?2",
        )?;
        compare(select.query([self.user_id, compared])?, Kind::Memory, resembles, found)
    }
}

/// Adds those of the rows (row, time, content) that resemble the question.
fn compare(
    mut rows: rusqlite::Rows<'_>,
    kind: Kind,
    resembles: &dyn Fn(&str) -> Option<f32>,
    found: &mut Vec<Resembling>,
) -> Outcome<()> {
    while let Some(item) = rows.next()? {
        let Some(content) = content(item, kind)? else { continue };
        if let Some(score) = resembles(content) {
            let (row, created_at) = (item.get(0)?, item.get(1)?);
            found.push(Resembling { score, created_at, kind, row });
        }
    }
    Ok(())
}

/// An item that resembles a question. It is not read yet and may turn out to be invisible.
struct Resembling {
    score: f32,
    created_at: i64,
    kind: Kind,
    row: i64,
}

/// The content of a row without a copy, because most rows are only compared. A damaged one is passed over.
fn content<'a>(row: &'a rusqlite::Row<'_>, kind: Kind) -> Outcome<Option<&'a str>> {
    let content = row.get_ref("content")?.as_str().ok();
    if content.is_none() {
        damage::note((kind.table(), row.get(0)?));
    }
    Ok(content)
}

/// Orders by score, best first; of items with the same score the newest comes first.
fn newest_first(mut hits: Vec<Hit>, limit: usize) -> Vec<Hit> {
    hits.sort_by(|a, b| {
        let newest = || b.item.created_at().cmp(&a.item.created_at());
        b.score.total_cmp(&a.score).then_with(newest).then_with(|| b.item.id().cmp(&a.item.id()))
    });
    hits.truncate(limit);
    hits
}
