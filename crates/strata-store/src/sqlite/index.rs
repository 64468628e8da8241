//! The text index: which items of a user hold a term, in an FTS5 table that keeps nothing else.
//!
//! Every term is stored with its user's number before it, so a user's lists of items are its own: they are as long as the
//! user's data makes them, however large the store is, and their lengths are the user's document frequencies. FTS5's own
//! `bm25()` would use the number of items of all users together. So ranking is done here: an item's number in the
//! index carries its kind and its length ([`Key`]), and a term that an item holds more than once is stored a second time
//! with a mark ([`REPEATED`]). FTS5 then needs neither positions nor sizes (`detail=none`).
//!
//! Appending does not touch the index. The writer indexes later, in batches; the table `indexed` says up to which row. Each
//! search analyses the rows beyond, the *tail*, itself, so it finds every item.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, OptionalExtension, params};
use strata_language::text;

use super::damage;
use super::error::Outcome;

/// Separates a user's number from a term. It is a private-use character: no term holds one, and the tokenizer keeps it.
const AFTER_USER: char = '\u{e000}';

/// Marks a term that an item holds at least twice. Higher counts are not stored: they hardly change a BM25 score.
const REPEATED: char = '\u{e001}';

/// Up to this length an item's length is kept exactly; beyond it, in steps of a fifth.
const EXACT_LENGTHS: u32 = 24;
const LENGTH_STEP: f64 = 1.2;
const LENGTH_BITS: u32 = 6;

/// If the tail has more rows than this, the user's part of it is found by an index and not by reading the whole tail.
const LONG_TAIL: i64 = 20_000;

/// The kinds of items in the index. The numbers are those of the tables `indexed` and `vectors`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Turn = 0,
    Memory = 1,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Turn, Self::Memory];

    pub(super) fn table(self) -> &'static str {
        match self {
            Self::Turn => "turns",
            Self::Memory => "memories",
        }
    }
}

/// An item's number in the index: its row, its kind and about how many terms it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(pub(crate) i64);

impl Key {
    fn new(kind: Kind, row: i64, length: u32) -> Self {
        Self(Self::first(kind, row).0 | i64::from(length_step(length)))
    }

    fn first(kind: Kind, row: i64) -> Self {
        Self((row << (LENGTH_BITS + 1)) | ((kind as i64) << LENGTH_BITS))
    }

    fn last(kind: Kind, row: i64) -> Self {
        Self(Self::first(kind, row).0 | ((1 << LENGTH_BITS) - 1))
    }

    pub(crate) fn kind(self) -> Kind {
        if (self.0 >> LENGTH_BITS) & 1 == 0 { Kind::Turn } else { Kind::Memory }
    }

    pub(crate) fn row(self) -> i64 {
        self.0 >> (LENGTH_BITS + 1)
    }

    /// The length that represents all lengths of the same step.
    pub(crate) fn length(self) -> u32 {
        step_length((self.0 & ((1 << LENGTH_BITS) - 1)) as u32)
    }
}

fn length_step(length: u32) -> u32 {
    if length <= EXACT_LENGTHS {
        return length;
    }
    let steps = (f64::from(length) / f64::from(EXACT_LENGTHS)).ln() / LENGTH_STEP.ln();
    (EXACT_LENGTHS + steps.round() as u32).min((1 << LENGTH_BITS) - 1)
}

fn step_length(step: u32) -> u32 {
    if step <= EXACT_LENGTHS {
        return step;
    }
    (f64::from(EXACT_LENGTHS) * LENGTH_STEP.powi((step - EXACT_LENGTHS).cast_signed())).round() as u32
}

/// A text's distinct terms with how often each occurs, and how many terms it has in all.
struct Terms {
    times: BTreeMap<String, u32>,
    length: u32,
}

impl Terms {
    fn of(content: &str) -> Self {
        let mut terms = Self { times: BTreeMap::new(), length: 0 };
        text::for_each_term(content, |term| {
            terms.length += 1;
            match terms.times.get_mut(term) {
                Some(times) => *times += 1,
                None => {
                    terms.times.insert(term.to_owned(), 1);
                }
            }
        });
        terms
    }

    /// The text for FTS5: the terms as they are stored, with blanks between them.
    fn document(&self, user_id: i64) -> String {
        let user = format!("{user_id}{AFTER_USER}");
        let mut document = String::new();
        for (term, times) in &self.times {
            document.push_str(&user);
            document.push_str(term);
            document.push(' ');
            if *times > 1 {
                document.push_str(&user);
                document.push_str(term);
                document.push(REPEATED);
                document.push(' ');
            }
        }
        document
    }
}

/// How many items a user has in the index and how many terms they have.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) items: i64,
    pub(crate) terms: i64,
}

impl Totals {
    fn add(&mut self, key: Key) {
        self.items += 1;
        self.terms += i64::from(key.length());
    }

    fn store(self, conn: &Connection, user_id: i64, sign: i64) -> Outcome<()> {
        conn.prepare_cached(
            "UPDATE users SET indexed_items = indexed_items + ?2, indexed_terms = indexed_terms + ?3 WHERE id = ?1",
        )?
        .execute(params![user_id, sign * self.items, sign * self.terms])?;
        Ok(())
    }
}

fn insert(conn: &Connection, user_id: i64, kind: Kind, row: i64, content: &str) -> Outcome<Key> {
    let terms = Terms::of(content);
    let key = Key::new(kind, row, terms.length);
    conn.prepare_cached("INSERT INTO text_index (rowid, terms) VALUES (?1, ?2)")?
        .execute(params![key.0, terms.document(user_id)])?;
    Ok(key)
}

/// Indexes up to `most` items that are not yet in the index, and returns their number. The caller has begun a transaction
/// that writes.
pub(crate) fn index_batch(conn: &Connection, most: usize) -> Outcome<usize> {
    let mut totals: HashMap<i64, Totals> = HashMap::new();
    let mut left = most;
    for kind in Kind::ALL {
        let upto = watermark(conn, kind)?;
        let mut select = conn.prepare_cached(match kind {
            Kind::Turn => "SELECT row, user_id, content FROM turns WHERE row > ?1 ORDER BY row LIMIT ?2",
            Kind::Memory => "SELECT row, user_id, content FROM memories WHERE row > ?1 ORDER BY row LIMIT ?2",
        })?;
        let mut rows = select.query(params![upto, left as i64])?;
        let mut last = upto;
        while let Some(found) = rows.next()? {
            let (row, user_id) = (found.get(0)?, found.get(1)?);
            // A damaged text has no words, and its row still has its place in the index.
            let content = found.get_ref(2)?.as_str().unwrap_or_default();
            totals.entry(user_id).or_default().add(insert(conn, user_id, kind, row, content)?);
            last = row;
            left -= 1;
        }
        if last != upto {
            set_watermark(conn, kind, last)?;
        }
    }
    for (user_id, totals) in totals {
        totals.store(conn, user_id, 1)?;
    }
    Ok(most - left)
}

/// How many items are not yet in the index.
pub(crate) fn unindexed(conn: &Connection) -> Outcome<u64> {
    let mut unindexed = 0_i64;
    for kind in Kind::ALL {
        let sql = format!("SELECT count(*) FROM {} WHERE row > ?1", kind.table());
        unindexed +=
            conn.prepare_cached(&sql)?.query_row([watermark(conn, kind)?], |row| row.get::<_, i64>(0))?;
    }
    Ok(unindexed.unsigned_abs())
}

/// Empties the index, so that all items are in its tail.
pub(crate) fn clear(conn: &Connection) -> Outcome<()> {
    conn.execute_batch(
        "INSERT INTO text_index (text_index) VALUES ('delete-all');
         UPDATE indexed SET upto = 0 WHERE kind >= 0;
         UPDATE users SET indexed_items = 0, indexed_terms = 0;",
    )?;
    Ok(())
}

/// Removes items from the index, if they are in it.
pub(crate) fn remove(conn: &Connection, user_id: i64, kind: Kind, rows: &[i64]) -> Outcome<()> {
    let mut removed = Totals::default();
    for row in rows {
        if let Some(key) = find(conn, kind, *row)? {
            conn.prepare_cached("DELETE FROM text_index WHERE rowid = ?1")?.execute([key.0])?;
            removed.add(key);
        }
    }
    if removed.items > 0 {
        removed.store(conn, user_id, -1)?;
    }
    Ok(())
}

/// Indexes an item again whose text has changed, unless it is still in the tail.
pub(crate) fn replace(conn: &Connection, user_id: i64, kind: Kind, row: i64, content: &str) -> Outcome<()> {
    if find(conn, kind, row)?.is_none() {
        return Ok(());
    }
    remove(conn, user_id, kind, &[row])?;
    let mut added = Totals::default();
    added.add(insert(conn, user_id, kind, row, content)?);
    added.store(conn, user_id, 1)
}

/// An item's number in the index. FTS5 keeps the numbers of its rows in a table of its own, the only place where the length
/// is stored with which an item was indexed.
fn find(conn: &Connection, kind: Kind, row: i64) -> Outcome<Option<Key>> {
    let mut select = conn.prepare_cached("SELECT id FROM text_index_docsize WHERE id BETWEEN ?1 AND ?2")?;
    let range = params![Key::first(kind, row).0, Key::last(kind, row).0];
    Ok(select.query_row(range, |row| row.get(0).map(Key)).optional()?)
}

/// Corrects `indexed` after rows were deleted: SQLite uses the numbers of the last rows again, for items that are not indexed.
pub(crate) fn lower_watermark(conn: &Connection, kind: Kind) -> Outcome<()> {
    let sql = format!(
        "UPDATE indexed SET upto = min(upto, (SELECT coalesce(max(row), 0) FROM {})) WHERE kind = ?1",
        kind.table()
    );
    conn.prepare_cached(&sql)?.execute([kind as i64])?;
    Ok(())
}

fn watermark(conn: &Connection, kind: Kind) -> Outcome<i64> {
    let mut select = conn.prepare_cached("SELECT upto FROM indexed WHERE kind = ?1")?;
    Ok(select.query_row([kind as i64], |row| row.get(0))?)
}

fn set_watermark(conn: &Connection, kind: Kind, upto: i64) -> Outcome<()> {
    conn.prepare_cached("UPDATE indexed SET upto = ?2 WHERE kind = ?1")?.execute([kind as i64, upto])?;
    Ok(())
}

/// Gives `visit` each distinct term of the user's items that are in the index.
pub(crate) fn for_each_term(conn: &Connection, user_id: i64, mut visit: impl FnMut(&str)) -> Outcome<()> {
    let mut select = conn.prepare_cached("SELECT term FROM text_terms WHERE term >= ?1 AND term < ?2")?;
    let first = format!("{user_id}{AFTER_USER}");
    let mut rows = select.query([&first, &format!("{user_id}{REPEATED}")])?;
    while let Some(row) = rows.next()? {
        let term = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
        if let Some(term) = term.strip_prefix(&first).filter(|term| !term.ends_with(REPEATED)) {
            visit(term);
        }
    }
    Ok(())
}

/// A user's items that are not yet in the index, analysed.
#[derive(Default)]
pub(crate) struct Tail {
    items: Vec<(Key, Terms)>,
}

impl Tail {
    pub(crate) fn read(conn: &Connection, user_id: i64) -> Outcome<Self> {
        let mut items = Vec::new();
        for kind in Kind::ALL {
            let (upto, table) = (watermark(conn, kind)?, kind.table());
            let last: i64 = conn
                .prepare_cached(&format!("SELECT coalesce(max(row), 0) FROM {table}"))?
                .query_row([], |row| row.get(0))?;
            if last <= upto {
                continue;
            }
            // Because of the `+`, SQLite does not read all of the user's rows to find the few new ones.
            let plus = if last - upto > LONG_TAIL { "" } else { "+" };
            let sql = format!("SELECT row, content FROM {table} WHERE row > ?1 AND {plus}user_id = ?2");
            let mut select = conn.prepare_cached(&sql)?;
            let mut rows = select.query([upto, user_id])?;
            while let Some(found) = rows.next()? {
                let row = found.get(0)?;
                let Ok(content) = found.get_ref(1)?.as_str() else {
                    damage::note((table, row));
                    continue;
                };
                let terms = Terms::of(content);
                items.push((Key::new(kind, row, terms.length), terms));
            }
        }
        Ok(Self { items })
    }

    /// The counts of the index with these items added.
    pub(crate) fn add_to(&self, mut totals: Totals) -> Totals {
        self.items.iter().for_each(|(key, _)| totals.add(*key));
        totals
    }
}

/// The items that hold a term, in the order of their keys, each with whether it holds the term more than once.
pub(crate) fn holding(conn: &Connection, user_id: i64, tail: &Tail, term: &str) -> Outcome<Vec<(Key, bool)>> {
    let quoted = |mark: &str| format!("\"{user_id}{AFTER_USER}{}{mark}\"", term.replace('"', "\"\""));
    let mut select = conn.prepare_cached("SELECT rowid FROM text_index WHERE text_index MATCH ?1")?;
    let mut read = |words: String| -> Outcome<Vec<(Key, bool)>> {
        let mut rows = select.query([words])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push((Key(row.get(0)?), false));
        }
        Ok(found)
    };
    let mut found = read(quoted(""))?;
    if !found.is_empty() {
        for (key, _) in read(quoted(REPEATED.encode_utf8(&mut [0; 4])))? {
            if let Ok(at) = found.binary_search_by_key(&key, |(key, _)| *key) {
                found[at].1 = true;
            }
        }
    }
    let in_tail = tail.items.iter().filter_map(|(key, terms)| Some((*key, *terms.times.get(term)? > 1)));
    found.extend(in_tail);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gives_back_what_it_was_made_of() {
        for kind in Kind::ALL {
            for row in [1, 2, 77, 1 << 40] {
                for length in [0, 1, EXACT_LENGTHS, 60, 1_000, u32::MAX] {
                    let key = Key::new(kind, row, length);
                    assert_eq!((key.kind(), key.row()), (kind, row));
                    assert!((Key::first(kind, row)..=Key::last(kind, row)).contains(&key));
                    let (kept, exact) = (f64::from(key.length()), f64::from(length));
                    assert!(length > 20_000 || (kept - exact).abs() <= exact * 0.1 + 0.5, "{length}: {kept}");
                }
            }
        }
    }
}
