//! The tables of a store, each with a query of all rows and the function that reads one.
//!
//! Deliberately absent: the text index, which SQLite's own check reads, and which `strata reindex` makes anew.

use rusqlite::Row;
use strata_core::metric::RequestMetric;
use strata_core::store::Applied;

use crate::sqlite::error::Outcome;
use crate::sqlite::row::{self, Cells};

/// A table of the store.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The column that numbers the rows.
    pub(super) number: &'static str,
    /// The column that tells rows of one number apart, in a table whose rows have no numbers of their own.
    pub(super) key: Option<&'static str>,
    /// Selects all rows. The first column is the number, and [`PLACE`] the bytes of the key.
    pub(super) select: String,
    /// Reads one row, as the rest of this backend does.
    pub(super) read: fn(&Row<'_>) -> Outcome<()>,
}

/// The name of the column with the bytes of a row's key.
pub(super) const PLACE: &str = "place";

impl Table {
    fn new(name: &'static str, select: impl Into<String>, read: fn(&Row<'_>) -> Outcome<()>) -> Self {
        Self { name, number: "row", key: None, select: select.into(), read }
    }

    fn numbered_by(self, number: &'static str) -> Self {
        Self { number, ..self }
    }

    fn told_apart_by(self, key: &'static str) -> Self {
        Self { key: Some(key), ..self }.numbered_by("user_id")
    }

    /// The condition that a row has the number `?1` and the key `?2`.
    pub(super) fn place(&self) -> String {
        let key = self.key.map_or_else(|| "?2 IS NULL".to_owned(), |key| format!("CAST({key} AS BLOB) = ?2"));
        format!("{} = ?1 AND {key}", self.number)
    }
}

/// Every table.
pub(super) fn tables() -> Vec<Table> {
    [conversations(), work(), derived(), own()].into_iter().flatten().collect()
}

/// Users and what they have said and told.
fn conversations() -> Vec<Table> {
    // The name of a row's session stands in another row, which is read by itself.
    let turns = format!(
        "SELECT {} FROM turns t JOIN (SELECT id, 'session' AS name FROM sessions) s ON s.id = t.session_id",
        row::TURN
    );
    let summaries = format!(
        "SELECT {} FROM summaries m JOIN (SELECT id, 'session' AS name FROM sessions) s ON s.id = m.session_id",
        row::SUMMARY
    );
    vec![
        Table::new(
            "users",
            "SELECT id, name, revision, epoch, vectors, writes, indexed_items, indexed_terms FROM users",
            user,
        )
        .numbered_by("id"),
        Table::new("sessions", format!("SELECT {}, parts FROM sessions", row::SESSION), session)
            .numbered_by("id"),
        Table::new("turns", turns, |row| row::turn(row).map(drop)),
        Table::new("memories", format!("SELECT {} FROM memories m", row::MEMORY), |row| {
            row::memory(row).map(drop)
        }),
        Table::new("summaries", summaries, |row| row::summary(row).map(drop)),
    ]
}

fn user(row: &Row<'_>) -> Outcome<()> {
    let cells = Cells::new("users", row);
    cells.user(1)?;
    (2..8).try_for_each(|column| cells.number::<u64>(column).map(drop))
}

fn session(row: &Row<'_>) -> Outcome<()> {
    row::session(row)?;
    Cells::new("sessions", row).number::<u64>(7).map(drop)
}

/// Jobs, keys, rows of questions and the answers to writes that may be repeated.
fn work() -> Vec<Table> {
    // The name of a row's user stands in another row, which is read by itself.
    let user = "JOIN (SELECT id, 'user' AS name FROM users) u ON u.id =";
    vec![
        Table::new("jobs", format!("SELECT {} FROM jobs j {user} j.user_id", row::JOB), |row| {
            row::job(row).map(drop)
        }),
        Table::new("keys", format!("SELECT {} FROM keys k {user} k.user_id", row::KEY), |row| {
            row::key(row).map(drop)
        }),
        Table::new("requests", "SELECT row, metric FROM requests", |row| {
            row::document::<RequestMetric>("requests", row).map(drop)
        }),
        Table::new(
            "idempotency",
            "SELECT user_id, answer, key, CAST(key AS BLOB) AS place FROM idempotency",
            |row| {
                Cells::new("idempotency", row).get::<String>(2)?;
                row::document::<Applied>("idempotency", row).map(drop)
            },
        )
        .told_apart_by("key"),
    ]
}

/// Vectors, blocks of the index in memory, and how far background work has come.
fn derived() -> Vec<Table> {
    vec![
        Table::new("vectors", "SELECT row, kind, components, scale, item, revision FROM vectors", vector),
        Table::new("models", "SELECT id, name FROM models", |row| {
            Cells::new("models", row).get::<String>(1).map(drop)
        })
        .numbered_by("id"),
        Table::new("segments", "SELECT rowid, space, first, last, bytes FROM segments", segment)
            .numbered_by("rowid"),
        Table::new(
            "progress",
            "SELECT user_id, space, revision, CAST(space AS BLOB) AS place FROM progress",
            |row| {
                let cells = Cells::new("progress", row);
                cells.get::<String>(1)?;
                cells.number::<u64>(2).map(drop)
            },
        )
        .told_apart_by("space"),
        Table::new("indexed", "SELECT kind, upto FROM indexed", |row| {
            Cells::new("indexed", row).number::<u64>(1).map(drop)
        })
        .numbered_by("kind"),
    ]
}

fn vector(row: &Row<'_>) -> Outcome<()> {
    let cells = Cells::new("vectors", row);
    let is_kind = (0..=2).contains(&cells.get::<i64>(1)?);
    let has_components = !cells.get::<Vec<u8>>(2)?.is_empty();
    cells.get::<f64>(3)?;
    (4..6).try_for_each(|column| cells.number::<u64>(column).map(drop))?;
    if is_kind && has_components { Ok(()) } else { Err(cells.damaged(1, "it is no vector of an item")) }
}

/// What the bytes of a segment mean is the engine's: it checks their digest and makes a damaged segment anew.
fn segment(row: &Row<'_>) -> Outcome<()> {
    let cells = Cells::new("segments", row);
    cells.get::<String>(1)?;
    let (first, last) = (cells.number::<u64>(2)?, cells.number::<u64>(3)?);
    let has_bytes = !cells.get::<Vec<u8>>(4)?.is_empty();
    if first <= last && has_bytes { Ok(()) } else { Err(cells.damaged(4, "it is no segment of an index")) }
}

/// What the store keeps about itself. These tables are made when they are first needed.
fn own() -> Vec<Table> {
    vec![
        Table::new("openings", "SELECT id, mark FROM openings", |row| {
            Cells::new("openings", row).get::<i64>(1).map(drop)
        })
        .numbered_by("id"),
        Table::new("quarantine", "SELECT id, source, problem, content, row, at FROM quarantine", |row| {
            let cells = Cells::new("quarantine", row);
            (1..4).try_for_each(|column| cells.get::<String>(column).map(drop))?;
            (4..6).try_for_each(|column| cells.get::<i64>(column).map(drop))
        })
        .numbered_by("id"),
    ]
}
