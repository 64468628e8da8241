//! The snapshot: what every file was like when Strata last read or wrote it, and which item it is. It is derived data in a
//! SQLite file of its own, beside the index, and both are deleted together.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Row, params};
use strata_core::{Error, Result, UserId};

use super::front::Fault;

/// The kinds of items that have a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Turn = 0,
    Memory = 1,
    Summary = 2,
    Session = 3,
    Key = 4,
}

impl Kind {
    fn from_number(number: i64) -> rusqlite::Result<Self> {
        match number {
            0 => Ok(Self::Turn),
            1 => Ok(Self::Memory),
            2 => Ok(Self::Summary),
            3 => Ok(Self::Session),
            4 => Ok(Self::Key),
            other => Err(rusqlite::Error::IntegralValueOutOfRange(2, other)),
        }
    }
}

/// Which item a file is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ItemKey {
    pub(crate) user: UserId,
    pub(crate) kind: Kind,
    /// A UUID, or a session's name.
    pub(crate) id: String,
}

/// The facts of the file system about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) size: u64,
    /// Its last change, in nanoseconds since the epoch.
    pub(crate) changed: i64,
    pub(crate) inode: i64,
}

/// A file as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The path, relative to the vault.
    pub(crate) path: String,
    pub(crate) item: ItemKey,
    /// The SHA-256 of its bytes.
    pub(crate) hash: [u8; 32],
    pub(crate) stat: Stat,
    /// Whether it was looked at so soon after its last change that another change may have left the same times.
    pub(crate) racy: bool,
    /// A digest of the item that the file was written for.
    pub(crate) row: u64,
}

/// A file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) path: String,
    pub(crate) fault: Fault,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.fault.line {
            Some(line) => write!(f, "`{}`, line {line}: {}", self.path, self.fault.reason),
            None => write!(f, "`{}`: {}", self.path, self.fault.reason),
        }
    }
}

/// The snapshot's file.
pub(crate) struct Snapshot {
    conn: Connection,
}

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS files (
        path TEXT PRIMARY KEY, user TEXT NOT NULL, kind INTEGER NOT NULL, id TEXT NOT NULL, hash BLOB NOT NULL,
        size INTEGER NOT NULL, changed INTEGER NOT NULL, inode INTEGER NOT NULL, racy INTEGER NOT NULL,
        row INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS files_by_item ON files (user, kind, id);
    CREATE TABLE IF NOT EXISTS problems (path TEXT PRIMARY KEY, line INTEGER, reason TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;";

const COLUMNS: &str = "path, user, kind, id, hash, size, changed, inode, racy, row";

impl Snapshot {
    /// Opens the snapshot, which is made if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let open = || -> rusqlite::Result<Connection> {
            let conn = Connection::open(path)?;
            conn.busy_timeout(std::time::Duration::from_secs(5))?;
            conn.pragma_update(None, "journal_mode", "WAL")?;
            // Losing the last entries in a power cut costs a second look at those files.
            conn.pragma_update(None, "synchronous", "NORMAL")?;
            // The names of forgotten files tell about them.
            conn.pragma_update(None, "secure_delete", true)?;
            conn.execute_batch(SCHEMA)?;
            Ok(conn)
        };
        Ok(Self { conn: open().map_err(fault)? })
    }

    /// Removes the bytes of rows that were deleted. Another process that reads puts that off until the next time.
    pub(crate) fn scrub(&self) -> Result<()> {
        let scrub = || -> rusqlite::Result<()> {
            // Pages that were rearranged may hold older copies.
            self.conn.execute_batch("VACUUM")?;
            self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        };
        scrub().map_err(fault)
    }

    /// Runs `work` in one transaction.
    pub(crate) fn write<T>(&mut self, work: impl FnOnce(&Writing<'_>) -> rusqlite::Result<T>) -> Result<T> {
        let transaction = self.conn.transaction().map_err(fault)?;
        let value = work(&Writing { conn: &transaction }).map_err(fault)?;
        transaction.commit().map_err(fault)?;
        Ok(value)
    }

    /// The file at a path.
    pub(crate) fn at(&self, path: &str) -> Result<Option<Entry>> {
        let sql = format!("SELECT {COLUMNS} FROM files WHERE path = ?1");
        self.one(&sql, params![path])
    }

    /// The file of an item.
    pub(crate) fn of(&self, item: &ItemKey) -> Result<Option<Entry>> {
        let sql = format!("SELECT {COLUMNS} FROM files WHERE user = ?1 AND kind = ?2 AND id = ?3 LIMIT 1");
        self.one(&sql, params![item.user.as_str(), item.kind as i64, item.id])
    }

    /// The file at a path, or the files in the folder at that path.
    pub(crate) fn at_or_below(&self, path: &str) -> Result<Vec<Entry>> {
        let sql = format!("SELECT {COLUMNS} FROM files WHERE path = ?1 OR (path >= ?2 AND path < ?3)");
        self.many(&sql, params![path, format!("{path}/"), format!("{path}0")])
    }

    /// A file in a folder.
    pub(crate) fn one_below(&self, folder: &str) -> Result<Option<Entry>> {
        let sql = format!("SELECT {COLUMNS} FROM files WHERE path >= ?1 AND path < ?2 LIMIT 1");
        self.one(&sql, params![format!("{folder}/"), format!("{folder}0")])
    }

    /// The paths of the problems at a path, or in the folder at that path.
    pub(crate) fn problems_at_or_below(&self, path: &str) -> Result<Vec<String>> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let sql = "SELECT path FROM problems WHERE path = ?1 OR (path >= ?2 AND path < ?3)";
            let mut statement = self.conn.prepare_cached(sql)?;
            statement.query_map([path, &format!("{path}/"), &format!("{path}0")], |row| row.get(0))?.collect()
        };
        read().map_err(fault)
    }

    /// Whether the file at a path could not be used when it was last looked at.
    pub(crate) fn has_problem(&self, path: &str) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM problems WHERE path = ?1)";
        self.conn
            .prepare_cached(sql)
            .and_then(|mut query| query.query_row([path], |row| row.get(0)))
            .map_err(fault)
    }

    /// All files.
    pub(crate) fn all(&self) -> Result<Vec<Entry>> {
        self.many(&format!("SELECT {COLUMNS} FROM files"), [])
    }

    /// The files of a user.
    pub(crate) fn of_user(&self, user: &UserId) -> Result<Vec<Entry>> {
        self.many(&format!("SELECT {COLUMNS} FROM files WHERE user = ?1"), [user.as_str()])
    }

    /// The users who have files.
    pub(crate) fn users(&self) -> Result<Vec<UserId>> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.conn.prepare_cached("SELECT DISTINCT user FROM files")?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        read().map_err(fault)?.into_iter().map(UserId::from_stored).collect()
    }

    /// The number of files in a folder.
    pub(crate) fn count_in(&self, folder: &str) -> Result<usize> {
        let sql = "SELECT count(*) FROM files WHERE path >= ?1 AND path < ?2";
        let bounds = (format!("{folder}/"), format!("{folder}0"));
        let count: i64 = self.conn.query_row(sql, bounds, |row| row.get(0)).map_err(fault)?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// The files that cannot be used.
    pub(crate) fn problems(&self) -> Result<Vec<Problem>> {
        let read = || -> rusqlite::Result<Vec<Problem>> {
            let mut statement =
                self.conn.prepare_cached("SELECT path, line, reason FROM problems ORDER BY path")?;
            let rows = statement.query_map([], |row| {
                let line: Option<i64> = row.get(1)?;
                let fault = Fault { line: line.map(i64::cast_unsigned), reason: row.get(2)? };
                Ok(Problem { path: row.get(0)?, fault })
            })?;
            rows.collect()
        };
        read().map_err(fault)
    }

    /// The number of files that cannot be used.
    pub(crate) fn problem_count(&self) -> Result<u64> {
        let count = self.conn.query_row("SELECT count(*) FROM problems", [], |row| row.get::<_, i64>(0));
        Ok(count.map_err(fault)?.cast_unsigned())
    }

    /// The value of a mark.
    pub(crate) fn mark(&self, name: &str) -> Result<Option<String>> {
        let mut statement =
            self.conn.prepare_cached("SELECT value FROM marks WHERE name = ?1").map_err(fault)?;
        statement.query_row([name], |row| row.get(0)).optional().map_err(fault)
    }

    fn one(&self, sql: &str, params: impl rusqlite::Params) -> Result<Option<Entry>> {
        let mut statement = self.conn.prepare_cached(sql).map_err(fault)?;
        statement.query_row(params, entry).optional().map_err(fault)
    }

    fn many(&self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<Entry>> {
        let mut statement = self.conn.prepare_cached(sql).map_err(fault)?;
        let rows = statement.query_map(params, entry).map_err(fault)?;
        rows.collect::<rusqlite::Result<_>>().map_err(fault)
    }
}

/// Writes of one transaction.
pub(crate) struct Writing<'a> {
    conn: &'a Connection,
}

impl Writing<'_> {
    /// Notes a file, in place of what was noted about its path and its item.
    pub(crate) fn put(&self, entry: &Entry) -> rusqlite::Result<()> {
        self.conn
            .prepare_cached("DELETE FROM files WHERE user = ?1 AND kind = ?2 AND id = ?3 AND path <> ?4")?
            .execute(params![entry.item.user.as_str(), entry.item.kind as i64, entry.item.id, entry.path])?;
        self.conn
            .prepare_cached("INSERT OR REPLACE INTO files VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?
            .execute(params![
                entry.path,
                entry.item.user.as_str(),
                entry.item.kind as i64,
                entry.item.id,
                entry.hash,
                entry.stat.size.cast_signed(),
                entry.stat.changed,
                entry.stat.inode,
                entry.racy,
                entry.row.cast_signed()
            ])?;
        self.solve(&entry.path)
    }

    /// Forgets a path.
    pub(crate) fn remove(&self, path: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached("DELETE FROM files WHERE path = ?1")?.execute([path])?;
        Ok(())
    }

    /// Notes that a file cannot be used.
    pub(crate) fn report(&self, problem: &Problem) -> rusqlite::Result<()> {
        self.conn.prepare_cached("INSERT OR REPLACE INTO problems VALUES (?1, ?2, ?3)")?.execute(params![
            problem.path,
            problem.fault.line.map(u64::cast_signed),
            problem.fault.reason
        ])?;
        Ok(())
    }

    /// Notes that a file has no problem any more.
    pub(crate) fn solve(&self, path: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached("DELETE FROM problems WHERE path = ?1")?.execute([path])?;
        Ok(())
    }

    /// Adds to a mark that is a number, which starts at 0 and does not fall below it.
    pub(crate) fn add_to_mark(&self, name: &str, number: i64) -> rusqlite::Result<()> {
        let sql = "INSERT INTO marks VALUES (?1, max(0, ?2)) ON CONFLICT (name) DO UPDATE SET value = max(0, value + ?2)";
        self.conn.prepare_cached(sql)?.execute(params![name, number])?;
        Ok(())
    }

    /// Sets a mark.
    pub(crate) fn set_mark(&self, name: &str, value: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached("INSERT OR REPLACE INTO marks VALUES (?1, ?2)")?.execute([name, value])?;
        Ok(())
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let user: String = row.get(1)?;
    let user = UserId::from_stored(user).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, Box::new(error))
    })?;
    Ok(Entry {
        path: row.get(0)?,
        item: ItemKey { user, kind: Kind::from_number(row.get(2)?)?, id: row.get(3)? },
        hash: row.get(4)?,
        stat: Stat { size: row.get::<_, i64>(5)?.cast_unsigned(), changed: row.get(6)?, inode: row.get(7)? },
        racy: row.get(8)?,
        row: row.get::<_, i64>(9)?.cast_unsigned(),
    })
}

fn fault(error: rusqlite::Error) -> Error {
    Error::unavailable("the vault's snapshot of its files cannot be used; stop Strata, delete the folder `.strata` and start again")
        .with_source(error)
}
