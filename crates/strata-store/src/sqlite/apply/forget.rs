//! Forgetting: it destroys what is named and everything derived from it alone, vectors and index entries included.

use rusqlite::{Params, params};
use strata_core::store::{Forget, SESSION_PURPOSES, session_space};
use strata_core::{MemoryId, SessionId};

use super::super::error::Outcome;
use super::super::index::{self, Kind};
use super::super::repair;
use super::super::scrub;
use super::{Writing, unknown};

/// The memories that are not bound to a session but that only its turns state; turns that were destroyed before do not count.
/// Ids are stored as bytes and named in a memory's sources as text.
const SAID_ONLY_HERE: &str = "SELECT m.row FROM memories m
     WHERE m.user_id = ?1 AND m.source_turns IS NOT NULL AND m.session IS NOT ?2
       AND (SELECT min(t.session_id = ?3) FROM json_each(iif(json_valid(m.source_turns), m.source_turns, '[]')) source
            JOIN turns t ON t.user_id = ?1 AND t.id = unhex(source.value, '-'))";

impl Writing<'_> {
    pub(super) fn forget(&mut self, what: Forget) -> Outcome<()> {
        let before = self.applied.removed;
        match what {
            Forget::Session(session) => self.forget_session(&session)?,
            Forget::Memory(id) => self.forget_memory(id)?,
            Forget::Memories => {
                self.applied.removed.memories += repair::forget_memories(self.conn, self.user_id)?;
                self.forget_memories(
                    &self.rows("SELECT row FROM memories WHERE user_id = ?1", [self.user_id])?,
                )?;
            }
            Forget::User => self.forget_user()?,
        }
        scrub::mark(self.conn)?;
        if self.applied.removed != before { self.begin_epoch() } else { Ok(()) }
    }

    /// Notes that something was destroyed, so that nothing that was made of it before is used.
    pub(super) fn begin_epoch(&mut self) -> Outcome<()> {
        let sql =
            "UPDATE users SET revision = revision + 1, epoch = epoch + 1 WHERE id = ?1 RETURNING revision";
        self.revision = self.conn.prepare_cached(sql)?.query_row([self.user_id], |row| row.get(0))?;
        self.clear_segments()
    }

    fn forget_session(&mut self, session: &SessionId) -> Outcome<()> {
        let mut bound = self.rows(
            "SELECT row FROM memories WHERE user_id = ?1 AND session = ?2",
            params![self.user_id, session.as_str()],
        )?;
        let session_id = self.find_session(session)?;
        if let Some(session_id) = session_id {
            bound.extend(self.rows(SAID_ONLY_HERE, params![self.user_id, session.as_str(), session_id])?);
        }
        let quarantined = repair::forget_session(self.conn, self.user_id, session_id, session.as_str())?;
        self.applied.removed.memories += quarantined;
        // A memory may be bound to a session that does not exist yet.
        if session_id.is_none() && bound.is_empty() && quarantined == 0 {
            return Err(unknown("session", session));
        }
        if let Some(session_id) = session_id {
            let turns = self.rows(
                "SELECT row FROM turns WHERE user_id = ?1 AND session_id = ?2",
                [self.user_id, session_id],
            )?;
            self.forget_turns(&turns)?;
            let sql = "SELECT row FROM summaries WHERE user_id = ?1 AND session_id = ?2";
            self.forget_summaries(&self.rows(sql, [self.user_id, session_id])?)?;
            self.conn.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([session_id])?;
            self.applied.removed.sessions += 1;
        }
        // The questions of its requests were asked in the session.
        for table in ["jobs", "requests"] {
            self.conn
                .prepare_cached(&format!("DELETE FROM {table} WHERE user_id = ?1 AND session = ?2"))?
                .execute(params![self.user_id, session.as_str()])?;
        }
        for purpose in SESSION_PURPOSES {
            self.conn
                .prepare_cached("DELETE FROM progress WHERE user_id = ?1 AND space = ?2")?
                .execute(params![self.user_id, session_space(purpose, session)])?;
        }
        self.forget_memories(&bound)
    }

    /// Destroys a memory and all that it replaced, directly or through others.
    fn forget_memory(&mut self, id: MemoryId) -> Outcome<()> {
        let quarantined = repair::forget_memory(self.conn, self.user_id, id.0.as_bytes())?;
        self.applied.removed.memories += quarantined;
        if quarantined == 0 {
            self.memory_row(id)?;
        }
        let rows = self.rows(
            "WITH RECURSIVE former (id) AS (
                 VALUES (?2)
                 UNION SELECT m.id FROM memories m JOIN former ON m.user_id = ?1 AND m.replaced_by = former.id)
             SELECT m.row FROM memories m JOIN former ON m.user_id = ?1 AND m.id = former.id",
            params![self.user_id, id.0.as_bytes()],
        )?;
        self.forget_memories(&rows)
    }

    /// The user's row stays with its counters. If they began again at zero, an index or a writer elsewhere could take a new
    /// user's data for the forgotten one's.
    fn forget_user(&mut self) -> Outcome<()> {
        self.forget_turns(&self.rows("SELECT row FROM turns WHERE user_id = ?1", [self.user_id])?)?;
        self.forget_summaries(&self.rows("SELECT row FROM summaries WHERE user_id = ?1", [self.user_id])?)?;
        self.forget_memories(&self.rows("SELECT row FROM memories WHERE user_id = ?1", [self.user_id])?)?;
        self.applied.removed.sessions += self.delete_all("sessions")?;
        for table in ["vectors", "segments", "progress", "jobs", "requests", "keys", "idempotency"] {
            self.delete_all(table)?;
        }
        repair::forget_user(self.conn, self.user_id)
    }

    fn delete_all(&self, table: &str) -> Outcome<u64> {
        let mut statement = self.conn.prepare_cached(&format!("DELETE FROM {table} WHERE user_id = ?1"))?;
        Ok(statement.execute([self.user_id])? as u64)
    }

    fn forget_turns(&mut self, rows: &[i64]) -> Outcome<()> {
        index::remove(self.conn, self.user_id, Kind::Turn, rows)?;
        self.applied.removed.turns += self.delete_items("turns", Kind::Turn as i64, rows)?;
        index::lower_watermark(self.conn, Kind::Turn)
    }

    fn forget_memories(&mut self, rows: &[i64]) -> Outcome<()> {
        if rows.is_empty() {
            return Ok(());
        }
        index::remove(self.conn, self.user_id, Kind::Memory, rows)?;
        self.applied.removed.memories += self.delete_items("memories", Kind::Memory as i64, rows)?;
        index::lower_watermark(self.conn, Kind::Memory)?;
        // The memories that they had replaced are no longer replaced by anything.
        self.conn
            .prepare_cached(
                "UPDATE memories AS m SET replaced_by = NULL
                 WHERE user_id = ?1 AND replaced_by IS NOT NULL
                   AND NOT EXISTS (SELECT 1 FROM memories n WHERE n.user_id = ?1 AND n.id = m.replaced_by)",
            )?
            .execute([self.user_id])?;
        Ok(())
    }

    fn forget_summaries(&mut self, rows: &[i64]) -> Outcome<()> {
        self.applied.removed.summaries += self.delete_items("summaries", 2, rows)?;
        Ok(())
    }

    /// Deletes rows with their vectors and returns how many there were.
    fn delete_items(&self, table: &str, kind: i64, rows: &[i64]) -> Outcome<u64> {
        let mut vectors =
            self.conn.prepare_cached("DELETE FROM vectors WHERE user_id = ?1 AND kind = ?2 AND item = ?3")?;
        let mut items = self.conn.prepare_cached(&format!("DELETE FROM {table} WHERE row = ?1"))?;
        let mut deleted = 0;
        for row in rows {
            vectors.execute(params![self.user_id, kind, row])?;
            deleted += items.execute([row])? as u64;
        }
        Ok(deleted)
    }

    /// The rows that a query finds.
    fn rows(&self, sql: &str, params: impl Params) -> Outcome<Vec<i64>> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let rows = statement.query_map(params, |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(rows)
    }
}
