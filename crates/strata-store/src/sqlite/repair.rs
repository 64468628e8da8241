//! Finding every row that cannot be read, and putting it aside.
//!
//! A damaged row is copied into the table `quarantine`, as it is. Then a turn or a session is made readable, because a gap in
//! a session would damage the rest of it: a text keeps what is valid of it, and the turn is hidden from recall. A row of any
//! other table is removed, with its vectors and its entry in the index.

mod tables;

use jiff::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Params, params};
use serde_json::{Map, Value, json};
use strata_core::{SessionId, UserId};

use self::tables::{PLACE, Table, tables};
use super::error::{Fault, Outcome};
use super::index::{self, Kind};
use super::row::micros;

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

/// Reads every row of every table, and returns at most `most` that cannot be read.
pub(crate) fn damaged_rows(conn: &Connection, most: usize) -> Outcome<Vec<Damage>> {
    let mut found = Vec::new();
    for table in tables() {
        if has_table(conn, table.name)? {
            examine(conn, &table, most, &mut found)?;
        }
    }
    Ok(found)
}

fn examine(conn: &Connection, table: &Table, most: usize, found: &mut Vec<Damage>) -> Outcome<()> {
    let mut select = conn.prepare(&table.select)?;
    let mut rows = select.query([])?;
    while found.len() < most
        && let Some(row) = rows.next()?
    {
        match (table.read)(row) {
            Ok(()) => {}
            Err(Fault::Damaged { error, .. }) => {
                let key = table.key.map(|_| row.get(PLACE)).transpose()?;
                let problem = error.message().to_owned();
                found.push(Damage { table: table.name, row: row.get(0)?, key, problem });
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
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
            // The index begins anew: a number that cannot be right does not tell what is in it.
            "indexed" => index::clear(conn)?,
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

/// The condition that a row of a table has the number `?1` and the key `?2`.
fn place_in(name: &str) -> String {
    tables().iter().find(|table| table.name == name).map(Table::place).unwrap_or_default()
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

/// Replaces what cannot be read in a row: a text keeps what is valid of it, a structure and a number take the value that a new
/// row has, and a turn is hidden from recall.
fn make_readable(conn: &Connection, table: &str, row: i64) -> Outcome<()> {
    match table {
        "turns" => {
            for column in ["content", "name", "tool_call_id", "agent"] {
                make_text_valid(conn, column, row)?;
            }
            make_turn_valid(conn, row)
        }
        "sessions" => {
            rename(conn, table, row, |name| SessionId::new(name).is_ok())?;
            make_session_valid(conn, row)
        }
        _ => {
            rename(conn, table, row, |name| UserId::from_stored(name.to_owned()).is_ok())?;
            make_user_valid(conn, row)
        }
    }
}

/// Keeps what is valid of a turn's text.
fn make_text_valid(conn: &Connection, column: &str, row: i64) -> Outcome<()> {
    let select = format!("SELECT CAST({column} AS BLOB) FROM turns WHERE row = ?1");
    let bytes: Option<Vec<u8>> = conn.query_row(&select, [row], |found| found.get(0))?;
    if let Some(bytes) = bytes.filter(|bytes| std::str::from_utf8(bytes).is_err()) {
        let valid = String::from_utf8_lossy(&bytes).into_owned();
        conn.execute(&format!("UPDATE turns SET {column} = ?2 WHERE row = ?1"), params![row, valid])?;
    }
    Ok(())
}

/// The expression for a time of a row that can be read: the nearest one, in whole seconds at the end of time.
fn readable_time(column: &str) -> String {
    let last = Timestamp::MAX.as_second() * 1_000_000;
    format!("min(max({column}, {}), {last})", micros(Timestamp::MIN))
}

fn make_turn_valid(conn: &Connection, row: i64) -> Outcome<()> {
    let update = format!(
        "UPDATE turns SET
             id = iif(length(id) = 16, id, randomblob(16)),
             role = iif(role IN ('system', 'user', 'assistant', 'tool'), role, 'user'),
             metadata = iif(json_valid(metadata), metadata, NULL),
             tool_calls = iif(json_valid(tool_calls), tool_calls, NULL),
             memory_metadata = iif(json_valid(memory_metadata), memory_metadata, NULL),
             token_count = min(max(token_count, 0), {MOST}),
             input_tokens = min(max(input_tokens, 0), {MOST}),
             output_tokens = min(max(output_tokens, 0), {MOST}),
             follows = max(follows, -1),
             created_at = {created_at},
             hidden_at = {hidden_at}, hidden_reason = 'error'
         WHERE row = ?1",
        MOST = u32::MAX,
        created_at = readable_time("created_at"),
        hidden_at = readable_time("coalesce(hidden_at, created_at)"),
    );
    conn.execute(&update, [row])?;
    Ok(())
}

fn make_session_valid(conn: &Connection, row: i64) -> Outcome<()> {
    let update = format!(
        "UPDATE sessions SET state = NULL, version = max(version, 1), parts = max(parts, 0),
             next_seq = (SELECT coalesce(max(seq) + 1, 0) FROM turns WHERE session_id = ?1),
             created_at = {created_at}, updated_at = {updated_at}
         WHERE id = ?1",
        created_at = readable_time("created_at"),
        updated_at = readable_time("updated_at"),
    );
    conn.execute(&update, [row])?;
    Ok(())
}

/// A counter that cannot be right begins where no process has been: behind everything that it has numbered.
fn make_user_valid(conn: &Connection, row: i64) -> Outcome<()> {
    conn.execute(
        "UPDATE users SET
             revision = max(revision, 0, (SELECT coalesce(max(revision), 0) FROM turns WHERE user_id = ?1),
                 (SELECT coalesce(max(revision), 0) FROM memories WHERE user_id = ?1),
                 (SELECT coalesce(max(revision), 0) FROM summaries WHERE user_id = ?1)),
             vectors = max(vectors, 0, (SELECT coalesce(max(revision), 0) FROM vectors WHERE user_id = ?1)),
             writes = max(writes, 1, (SELECT coalesce(max(version), 0) FROM sessions WHERE user_id = ?1)),
             epoch = max(epoch, 0)
         WHERE id = ?1",
        [row],
    )?;
    let is_counted = "SELECT indexed_items >= 0 AND indexed_terms >= 0 FROM users WHERE id = ?1";
    if !conn.query_row(is_counted, [row], |found| found.get(0))? {
        index::clear(conn)?;
    }
    Ok(())
}

/// Gives a user or a session a valid name that no other has, if its own is not valid.
fn rename(conn: &Connection, table: &str, row: i64, is_valid: fn(&str) -> bool) -> Outcome<()> {
    let select = format!("SELECT CAST(name AS BLOB) FROM {table} WHERE id = ?1");
    let bytes: Vec<u8> = conn.query_row(&select, [row], |found| found.get(0))?;
    if std::str::from_utf8(&bytes).is_ok_and(is_valid) {
        return Ok(());
    }
    let mut name: String =
        String::from_utf8_lossy(&bytes).chars().filter(|c| !c.is_control()).take(200).collect();
    let owner =
        if table == "sessions" { "AND user_id = (SELECT user_id FROM sessions WHERE id = ?2)" } else { "" };
    let is_taken = format!("SELECT 1 FROM {table} WHERE name = ?1 AND id <> ?2 {owner}");
    while !is_valid(&name) || conn.query_row(&is_taken, params![name, row], |_| Ok(())).optional()?.is_some()
    {
        name.push_str(&format!("-{row}"));
    }
    conn.execute(&format!("UPDATE {table} SET name = ?2 WHERE id = ?1"), params![row, name])?;
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
    has_table(conn, "quarantine")
}

fn has_table(conn: &Connection, name: &str) -> Outcome<bool> {
    let sql = "SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    Ok(conn.prepare_cached(sql)?.query_row([name], |row| row.get(0))?)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SqliteOptions, SqliteStore};

    /// A table that the check does not read could be damaged unnoticed.
    #[tokio::test]
    async fn every_table_of_the_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("strata.db");
        drop(SqliteStore::open(&path, SqliteOptions::default()).unwrap());
        let conn = Connection::open(&path).unwrap();
        // These two are made when they are first needed.
        repair(&conn, 0).unwrap();
        conn.execute_batch(
            "CREATE TABLE IF NOT EXISTS openings (id INTEGER PRIMARY KEY, mark INTEGER NOT NULL)",
        )
        .unwrap();
        // SQLite's own tables, and those of the text index, are read by its integrity check.
        let mut select = conn
            .prepare(
                r"SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
                     AND name NOT LIKE 'text\_%' ESCAPE '\' ORDER BY name",
            )
            .unwrap();
        let names: Vec<String> =
            select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let mut read: Vec<&str> = tables().iter().map(|table| table.name).collect();
        read.sort_unstable();
        assert_eq!(names, read);
    }
}
