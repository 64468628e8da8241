//! Finding every row that cannot be read, and putting it aside.
//!
//! A damaged row is copied into the table `quarantine`, as it is. Then a turn or a session is made readable, because a gap in
//! a session would damage the rest of it: a text keeps what is valid of it, and the turn is hidden from recall. A row of any
//! other table is removed, with its vectors and its entry in the index.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Row, params};
use serde_json::{Map, Value, json};
use strata_core::metric::RequestMetric;
use strata_core::store::Applied;

use super::error::{Fault, Outcome};
use super::index::{self, Kind};
use super::row::{self, Cells};

/// A row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) table: &'static str,
    pub(crate) row: i64,
    /// The rest of the row's place, in a table without numbers.
    key: Option<Vec<u8>>,
    /// The problem, with the remedy.
    pub(crate) problem: String,
}

/// A row in quarantine.
#[derive(Debug, Clone, PartialEq)]
pub struct Quarantined {
    /// The table that it comes from.
    pub table: String,
    /// Its number there.
    pub row: i64,
    /// The problem with it.
    pub problem: String,
    /// All of its columns; bytes that are no valid text are given as `{"hex": …}`.
    pub content: Value,
}

/// Reads one row of a table, as the rest of this backend does.
type ReadRow = fn(&Row<'_>) -> Outcome<()>;

// long: one entry for each table.
/// Every table, with a query whose first column is the row's number, and the function that reads it.
fn tables() -> [(&'static str, String, ReadRow); 12] {
    [
        ("users", "SELECT id, name, revision, epoch, vectors, writes FROM users".to_owned(), |row| {
            let cells = Cells::new("users", row);
            cells.user(1)?;
            (2..6).try_for_each(|column| cells.number::<u64>(column).map(drop))
        }),
        ("sessions", format!("SELECT {} FROM sessions", row::SESSION), |row| row::session(row).map(drop)),
        (
            "turns",
            // The session's name stands in another row, which is read by itself.
            format!(
                "SELECT {} FROM turns t JOIN (SELECT id, 'session' AS name FROM sessions) s ON s.id = t.session_id",
                row::TURN
            ),
            |row| row::turn(row).map(drop),
        ),
        ("memories", format!("SELECT {} FROM memories m", row::MEMORY), |row| row::memory(row).map(drop)),
        (
            "summaries",
            format!(
                "SELECT {} FROM summaries m JOIN (SELECT id, 'session' AS name FROM sessions) s ON s.id = m.session_id",
                row::SUMMARY
            ),
            |row| row::summary(row).map(drop),
        ),
        (
            "jobs",
            format!(
                "SELECT {} FROM jobs j JOIN (SELECT id, 'user' AS name FROM users) u ON u.id = j.user_id",
                row::JOB
            ),
            |row| row::job(row).map(drop),
        ),
        (
            "keys",
            format!(
                "SELECT {} FROM keys k JOIN (SELECT id, 'user' AS name FROM users) u ON u.id = k.user_id",
                row::KEY
            ),
            |row| row::key(row).map(drop),
        ),
        ("requests", "SELECT row, metric FROM requests".to_owned(), |row| {
            row::document::<RequestMetric>("requests", row).map(drop)
        }),
        ("vectors", "SELECT row, kind, components, scale FROM vectors".to_owned(), |row| {
            let cells = Cells::new("vectors", row);
            let is_kind = (0..=2).contains(&cells.get::<i64>(1)?);
            let has_components = !cells.get::<Vec<u8>>(2)?.is_empty();
            cells.get::<f64>(3)?;
            if is_kind && has_components {
                Ok(())
            } else {
                Err(cells.damaged(1, "it is no vector of an item"))
            }
        }),
        ("segments", "SELECT rowid, space, first, last FROM segments".to_owned(), |row| {
            let cells = Cells::new("segments", row);
            cells.get::<String>(1)?;
            (2..4).try_for_each(|column| cells.number::<u64>(column).map(drop))
        }),
        ("models", "SELECT id, name FROM models".to_owned(), |row| {
            Cells::new("models", row).get::<String>(1).map(drop)
        }),
        // This table has no numbers of rows: a row is named by its user and its key.
        (
            "idempotency",
            "SELECT user_id, answer, key, CAST(key AS BLOB) FROM idempotency".to_owned(),
            |row| {
                let cells = Cells::new("idempotency", row);
                cells.get::<String>(2)?;
                row::document::<Applied>("idempotency", row).map(drop)
            },
        ),
    ]
}

/// Reads every row of every table, and returns at most `most` that cannot be read.
pub(crate) fn damaged_rows(conn: &Connection, most: usize) -> Outcome<Vec<Damage>> {
    let mut found = Vec::new();
    for (table, sql, read) in tables() {
        let mut select = conn.prepare(&sql)?;
        let mut rows = select.query([])?;
        while found.len() < most
            && let Some(row) = rows.next()?
        {
            match read(row) {
                Ok(()) => {}
                Err(Fault::Damaged { error, .. }) => {
                    let key = if table == "idempotency" { Some(row.get(3)?) } else { None };
                    let problem = error.message().to_owned();
                    found.push(Damage { table, row: row.get(0)?, key, problem });
                }
                Err(fault) => return Err(fault),
            }
        }
    }
    Ok(found)
}

/// Puts all damaged rows aside, inside a transaction of the caller, and returns how many there were.
pub(crate) fn repair(conn: &Connection, now: i64) -> Outcome<u64> {
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS quarantine (
             id INTEGER PRIMARY KEY,
             source TEXT NOT NULL,
             row INTEGER NOT NULL,
             user_id INTEGER,
             session_id INTEGER,
             problem TEXT NOT NULL,
             at INTEGER NOT NULL,
             content TEXT NOT NULL
         ) STRICT",
    )?;
    let damaged = damaged_rows(conn, usize::MAX)?;
    for damage in &damaged {
        keep(conn, damage, now)?;
        match damage.table {
            "turns" | "sessions" | "users" => make_readable(conn, damage.table, damage.row)?,
            _ => remove(conn, damage)?,
        }
    }
    if !damaged.is_empty() {
        // Indexes in memory and segments may hold what the rows said before.
        conn.execute_batch(
            "UPDATE users SET revision = revision + 1, epoch = epoch + 1;
             DELETE FROM progress WHERE space IN (SELECT space FROM segments);
             DELETE FROM segments;",
        )?;
    }
    Ok(damaged.len() as u64)
}

/// The name of the column that numbers the rows of a table.
fn number_of(table: &str) -> &'static str {
    match table {
        "users" | "sessions" | "models" => "id",
        "segments" => "rowid",
        "idempotency" => "user_id",
        _ => "row",
    }
}

/// The condition that a row has this number (`?1`) and this key (`?2`), if its table has no numbers.
fn place_in(table: &str) -> String {
    let key = if table == "idempotency" { "CAST(key AS BLOB) = ?2" } else { "?2 IS NULL" };
    format!("{} = ?1 AND {key}", number_of(table))
}

/// Copies a row into the quarantine.
fn keep(conn: &Connection, damage: &Damage, now: i64) -> Outcome<()> {
    let Damage { table, row, key, problem } = damage;
    let (table, row) = (*table, *row);
    let mut select = conn.prepare(&format!("SELECT * FROM {table} WHERE {}", place_in(table)))?;
    let names: Vec<String> = select.column_names().map(str::to_owned).collect();
    let mut rows = select.query(params![row, key])?;
    while let Some(found) = rows.next()? {
        let mut content = Map::new();
        for (column, name) in names.iter().enumerate() {
            content.insert(name.clone(), shown(found.get_ref(column)?));
        }
        let number = |name: &str| content.get(name).and_then(Value::as_i64);
        let user = if table == "users" { Some(row) } else { number("user_id") };
        let session = if table == "sessions" { Some(row) } else { number("session_id") };
        conn.prepare_cached(
            "INSERT INTO quarantine (source, row, user_id, session_id, problem, at, content)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            table,
            row,
            user,
            session,
            problem,
            now,
            Value::Object(content).to_string()
        ])?;
    }
    Ok(())
}

fn shown(value: ValueRef<'_>) -> Value {
    let hex =
        |bytes: &[u8]| json!({ "hex": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() });
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).map_or_else(|_| hex(bytes), |text| json!(text)),
        ValueRef::Blob(bytes) => hex(bytes),
    }
}

/// Replaces what cannot be read in a row: a text keeps what is valid of it, an unreadable structure is dropped, and the turn
/// is hidden from recall.
fn make_readable(conn: &Connection, table: &str, row: i64) -> Outcome<()> {
    let id = number_of(table);
    let texts: &[&str] = match table {
        "turns" => &["content", "name", "tool_call_id", "agent"],
        _ => &["name"],
    };
    for column in texts {
        let text = format!("SELECT CAST({column} AS BLOB) FROM {table} WHERE {id} = ?1");
        let bytes: Option<Vec<u8>> = conn.query_row(&text, [row], |found| found.get(0))?;
        if let Some(bytes) = bytes.filter(|bytes| std::str::from_utf8(bytes).is_err()) {
            let valid = String::from_utf8_lossy(&bytes).into_owned();
            conn.execute(&format!("UPDATE {table} SET {column} = ?2 WHERE {id} = ?1"), params![row, valid])?;
        }
    }
    match table {
        "turns" => conn.execute(
            "UPDATE turns SET
                 role = iif(role IN ('system', 'user', 'assistant', 'tool'), role, 'user'),
                 metadata = iif(json_valid(metadata), metadata, NULL),
                 tool_calls = iif(json_valid(tool_calls), tool_calls, NULL),
                 memory_metadata = iif(json_valid(memory_metadata), memory_metadata, NULL),
                 token_count = max(token_count, 0),
                 hidden_at = coalesce(hidden_at, created_at), hidden_reason = 'error'
             WHERE row = ?1",
            [row],
        )?,
        "sessions" => conn.execute("UPDATE sessions SET state = NULL WHERE id = ?1", [row])?,
        _ => 0,
    };
    Ok(())
}

/// Removes a row, with its vectors and its entry in the index.
fn remove(conn: &Connection, damage: &Damage) -> Outcome<()> {
    let Damage { table, row, key, .. } = damage;
    let (table, row) = (*table, *row);
    let kind = match table {
        "memories" => Some(1),
        "summaries" => Some(2),
        _ => None,
    };
    if let Some(kind) = kind {
        conn.execute("DELETE FROM vectors WHERE kind = ?1 AND item = ?2", [kind, row])?;
    }
    if table == "memories" {
        let user =
            conn.query_row("SELECT user_id FROM memories WHERE row = ?1", [row], |found| found.get(0))?;
        index::remove(conn, user, Kind::Memory, &[row])?;
    }
    if table == "models" {
        conn.execute("DELETE FROM vectors WHERE model_id = ?1", [row])?;
    }
    conn.execute(&format!("DELETE FROM {table} WHERE {}", place_in(table)), params![row, key])?;
    if table == "memories" {
        index::lower_watermark(conn, Kind::Memory)?;
    }
    Ok(())
}

fn has_quarantine(conn: &Connection) -> Outcome<bool> {
    let sql = "SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = 'quarantine'";
    Ok(conn.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// The rows in quarantine, the oldest first.
pub(crate) fn quarantined(conn: &Connection) -> Outcome<Vec<Quarantined>> {
    if !has_quarantine(conn)? {
        return Ok(Vec::new());
    }
    let mut select =
        conn.prepare_cached("SELECT source, row, problem, content FROM quarantine ORDER BY id")?;
    let mut rows = select.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let content: String = row.get(3)?;
        let content = serde_json::from_str(&content).unwrap_or(Value::String(content));
        found.push(Quarantined { table: row.get(0)?, row: row.get(1)?, problem: row.get(2)?, content });
    }
    Ok(found)
}

/// Removes what is in quarantine of a user.
pub(crate) fn forget_user(conn: &Connection, user_id: i64) -> Outcome<()> {
    if has_quarantine(conn)? {
        conn.prepare_cached("DELETE FROM quarantine WHERE user_id = ?1")?.execute([user_id])?;
    }
    Ok(())
}

/// Removes what is in quarantine of a session: its own rows, the rows that name it, and the memories that one of its turns
/// states. Called while the turns exist. Returns how many memories there were.
pub(crate) fn forget_session(
    conn: &Connection,
    user_id: i64,
    session_id: Option<i64>,
    name: &str,
) -> Outcome<u64> {
    let condition = "user_id = ?1 AND (session_id = ?2 OR json_extract(content, '$.session') = ?3
         OR source = 'memories' AND EXISTS (
             SELECT 1 FROM json_each(iif(json_valid(quarantine.content ->> '$.source_turns'), quarantine.content ->> '$.source_turns', '[]')) said
             JOIN turns t ON t.user_id = ?1 AND t.session_id = ?2 AND t.id = unhex(said.value, '-')))";
    delete_quarantined(conn, condition, params![user_id, session_id, name])
}

/// Removes the memories in quarantine with one of these ids, and those that one of them has replaced, directly or through
/// others. Returns how many there were.
pub(crate) fn forget_memory(conn: &Connection, user_id: i64, id: &[u8]) -> Outcome<u64> {
    // A chain of statements may lead through memories that are in quarantine and through others.
    let condition = "user_id = ?1 AND source = 'memories' AND content ->> '$.id.hex' IN (
         WITH RECURSIVE
             link (id, next) AS (
                 SELECT lower(hex(id)), lower(hex(replaced_by)) FROM memories WHERE user_id = ?1
                 UNION ALL SELECT content ->> '$.id.hex', content ->> '$.replaced_by.hex' FROM quarantine
                 WHERE user_id = ?1 AND source = 'memories'),
             former (id) AS (
                 VALUES (lower(hex(?2)))
                 UNION SELECT link.id FROM link JOIN former ON link.next = former.id)
         SELECT id FROM former)";
    delete_quarantined(conn, condition, params![user_id, id])
}

/// Removes all memories in quarantine of a user, and returns how many there were.
pub(crate) fn forget_memories(conn: &Connection, user_id: i64) -> Outcome<u64> {
    delete_quarantined(conn, "user_id = ?1 AND source = 'memories'", params![user_id])
}

/// Removes rows from the quarantine, and returns how many of them were memories.
fn delete_quarantined(conn: &Connection, condition: &str, given: impl Params) -> Outcome<u64> {
    if !has_quarantine(conn)? {
        return Ok(0);
    }
    let mut delete =
        conn.prepare_cached(&format!("DELETE FROM quarantine WHERE {condition} RETURNING source"))?;
    let mut rows = delete.query(given)?;
    let mut memories = 0;
    while let Some(row) = rows.next()? {
        memories += u64::from(row.get::<_, String>(0)? == "memories");
    }
    Ok(memories)
}
