//! Checking the store: a quick check, and a thorough one that reads everything.

use std::path::Path;

use rusqlite::Connection;
use strata_core::Error;
use strata_core::store::{CheckDepth, Health};

use super::error::Outcome;
use super::{index, read, repair, schema};

/// The most problems of one kind that are listed; more would add nothing.
const NAMED: usize = 20;

/// Counts what is stored and, for a thorough check, reads everything to find problems.
pub(crate) fn check(conn: &Connection, path: &Path, depth: CheckDepth) -> Outcome<Health> {
    let count = |sql: &str| -> Outcome<u64> {
        Ok(conn.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0))?.unsigned_abs())
    };
    let mut health = Health {
        location: format!("sqlite:{}", path.display()),
        format_version: schema::VERSION,
        users: count(&format!("SELECT count(*) {}", read::STORED_USERS))?,
        sessions: count("SELECT count(*) FROM sessions")?,
        // Each session knows its number of turns, and there are fewer sessions than turns.
        turns: count("SELECT coalesce(sum(next_seq), 0) FROM sessions")?,
        memories: count("SELECT count(*) FROM memories")?,
        unindexed: index::unindexed(conn)?,
        bytes: bytes(path),
        problems: Vec::new(),
    };
    if depth == CheckDepth::Thorough {
        examine(conn, &mut health.problems)?;
        match repair::damaged_rows(conn, NAMED) {
            Ok(found) => health.problems.extend(found.into_iter().map(|damage| damage.problem)),
            // The file itself is damaged, so that not every row can be reached.
            Err(fault) => health.problems.push(Error::from(fault).to_string()),
        }
    }
    Ok(health)
}

/// The size of the file and its log.
fn bytes(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    size(path) + size(Path::new(&log))
}

fn examine(conn: &Connection, problems: &mut Vec<String>) -> Outcome<()> {
    let mut say = |sql: &str, what: &dyn Fn(&str) -> String| -> Outcome<()> {
        let mut select = conn.prepare(sql)?;
        let mut rows = select.query([])?;
        let mut named = 0;
        while let Some(row) = rows.next()?
            && named < NAMED
        {
            // A name may be damaged itself.
            problems.push(what(&String::from_utf8_lossy(row.get_ref(0)?.as_bytes().unwrap_or_default())));
            named += 1;
        }
        Ok(())
    };
    say("SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'", &|found| {
        format!("the file is damaged: {found}; restore a backup")
    })?;
    say("SELECT \"table\" || ' row ' || coalesce(rowid, '?') FROM pragma_foreign_key_check", &|found| {
        format!("{found} belongs to nothing; restore a backup")
    })?;
    say(
        "SELECT s.name || '` of user `' || u.name FROM sessions s JOIN users u ON u.id = s.user_id
         LEFT JOIN turns t ON t.session_id = s.id GROUP BY s.id
         HAVING count(t.row) <> s.next_seq OR coalesce(max(t.seq) + 1, 0) <> s.next_seq
             OR coalesce(min(t.seq), 0) <> 0",
        &|found| {
            format!("session `{found}` has a gap in its turns; restore a backup and report this as a defect")
        },
    )?;
    say(
        "SELECT 'vector ' || v.row FROM vectors v
         WHERE (v.kind = 0 AND NOT EXISTS (SELECT 1 FROM turns WHERE row = v.item AND user_id = v.user_id))
            OR (v.kind = 1 AND NOT EXISTS (SELECT 1 FROM memories WHERE row = v.item AND user_id = v.user_id))
            OR (v.kind = 2 AND NOT EXISTS (SELECT 1 FROM summaries WHERE row = v.item AND user_id = v.user_id))",
        &|found| format!("{found} is of no item; report this as a defect"),
    )?;
    let reindex = |found: &str| format!("the text index has {found}; run `strata reindex`");
    // An item's number in the index consists of its row, one bit for its kind and six for its length.
    say(
        "SELECT count(*) || ' items too few' FROM (
             SELECT row * 2 AS item FROM turns WHERE row <= (SELECT upto FROM indexed WHERE kind = 0)
             UNION ALL SELECT row * 2 + 1 FROM memories WHERE row <= (SELECT upto FROM indexed WHERE kind = 1)
             EXCEPT SELECT id >> 6 FROM text_index_docsize) HAVING count(*) > 0",
        &reindex,
    )?;
    say(
        "SELECT count(*) || ' items too many' FROM (
             SELECT id >> 6 AS item FROM text_index_docsize
             EXCEPT SELECT row * 2 FROM turns WHERE row <= (SELECT upto FROM indexed WHERE kind = 0)
             EXCEPT SELECT row * 2 + 1 FROM memories WHERE row <= (SELECT upto FROM indexed WHERE kind = 1))
         HAVING count(*) > 0",
        &reindex,
    )?;
    say(
        "SELECT 'wrong totals' WHERE (SELECT count(*) FROM text_index_docsize)
             <> (SELECT coalesce(sum(indexed_items), 0) FROM users)",
        &reindex,
    )?;
    Ok(())
}
