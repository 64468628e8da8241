//! Forgetting: it destroys what is named and everything derived from it alone, vectors included.

use strata_core::store::{Forget, SESSION_PURPOSES, session_space};
use strata_core::{MemoryId, SessionId};
use uuid::Uuid;

use super::{Writing, unknown};
use crate::error::Outcome;
use crate::sql::{Arg, args, execute, first, one, rows};

impl Writing<'_> {
    pub(super) async fn forget(&mut self, what: &Forget) -> Outcome<()> {
        let before = self.applied.removed;
        match what {
            Forget::Session(session) => self.forget_session(session).await?,
            Forget::Memory(id) => self.forget_memory(*id).await?,
            Forget::Memories => {
                let sql = "SELECT id FROM memories WHERE user_id = $1";
                let all = self.ids(sql, args![self.name()]).await?;
                self.forget_memories(&all).await?;
            }
            Forget::User => self.forget_user().await?,
        }
        if self.applied.removed != before {
            let sql = "UPDATE users SET revision = revision + 1, epoch = epoch + 1 WHERE user_id = $1
                       RETURNING revision, epoch";
            let row = one(self.client, sql, args![self.name()]).await?;
            (self.revision, self.epoch) = (row.try_get(0)?, row.try_get(1)?);
            self.clear_segments().await?;
        }
        Ok(())
    }

    async fn forget_session(&mut self, session: &SessionId) -> Outcome<()> {
        let name = session.as_str();
        let of_session = args![self.name(), name];
        // Bound to the session, or not bound to it and said only in it; turns that were destroyed before do not count.
        let sql = "SELECT m.id FROM memories m WHERE m.user_id = $1 AND (m.session = $2
                     OR m.source_turns IS NOT NULL AND m.session IS DISTINCT FROM $2
                        AND (SELECT bool_and(t.session = $2) FROM turns t
                             WHERE t.user_id = $1 AND t.id = ANY (m.source_turns)))";
        let bound = self.ids(sql, of_session).await?;
        let sql = "DELETE FROM sessions WHERE user_id = $1 AND session = $2";
        let sessions = execute(self.client, sql, of_session).await?;
        // A memory may be bound to a session that does not exist yet.
        if sessions == 0 && bound.is_empty() {
            return Err(unknown("session", session));
        }
        self.applied.removed.sessions += sessions;
        let sql = "SELECT id FROM turns WHERE user_id = $1 AND session = $2";
        self.forget_turns(&self.ids(sql, of_session).await?).await?;
        let sql = "SELECT id FROM summaries WHERE user_id = $1 AND session = $2";
        self.forget_summaries(&self.ids(sql, of_session).await?).await?;
        // The questions of its requests were asked in the session.
        for table in ["jobs", "requests"] {
            let sql = format!("DELETE FROM {table} WHERE user_id = $1 AND session = $2");
            execute(self.client, &sql, of_session).await?;
        }
        let spaces: Vec<String> =
            SESSION_PURPOSES.iter().map(|purpose| session_space(purpose, session)).collect();
        let sql = "DELETE FROM progress WHERE user_id = $1 AND space = ANY ($2)";
        execute(self.client, sql, args![self.name(), spaces]).await?;
        self.forget_memories(&bound).await
    }

    /// Destroys a memory and all that it replaced, directly or through others.
    async fn forget_memory(&mut self, id: MemoryId) -> Outcome<()> {
        self.need_memory(id).await?;
        let sql = "WITH RECURSIVE former (id) AS (
                       VALUES ($2::uuid)
                       UNION SELECT m.id FROM memories m JOIN former ON m.user_id = $1 AND m.replaced_by = former.id)
                   SELECT m.id FROM memories m JOIN former ON m.user_id = $1 AND m.id = former.id";
        let former = self.ids(sql, args![self.name(), id.0]).await?;
        self.forget_memories(&former).await
    }

    /// The user's row stays with its counters. If they began again at zero, an index or a writer elsewhere could take a new
    /// user's data for the forgotten one's.
    async fn forget_user(&mut self) -> Outcome<()> {
        self.applied.removed.turns += self.delete_all("turns").await?;
        self.applied.removed.summaries += self.delete_all("summaries").await?;
        self.applied.removed.memories += self.delete_all("memories").await?;
        self.applied.removed.sessions += self.delete_all("sessions").await?;
        for table in ["vectors", "segments", "progress", "jobs", "requests", "keys", "idempotency"] {
            self.delete_all(table).await?;
        }
        let sql = "UPDATE users SET indexed_items = 0, indexed_terms = 0 WHERE user_id = $1";
        execute(self.client, sql, args![self.name()]).await?;
        Ok(())
    }

    async fn delete_all(&self, table: &str) -> Outcome<u64> {
        execute(self.client, &format!("DELETE FROM {table} WHERE user_id = $1"), args![self.name()]).await
    }

    async fn forget_turns(&mut self, ids: &[Uuid]) -> Outcome<()> {
        self.applied.removed.turns += self.delete_texts("turns", 0, ids).await?;
        Ok(())
    }

    async fn forget_memories(&mut self, ids: &[Uuid]) -> Outcome<()> {
        if ids.is_empty() {
            return Ok(());
        }
        self.applied.removed.memories += self.delete_texts("memories", 1, ids).await?;
        // The memories that they had replaced are no longer replaced by anything.
        let sql = "UPDATE memories SET replaced_by = NULL WHERE user_id = $1 AND replaced_by = ANY ($2)";
        execute(self.client, sql, args![self.name(), ids.to_vec()]).await?;
        Ok(())
    }

    async fn forget_summaries(&mut self, ids: &[Uuid]) -> Outcome<()> {
        self.delete_vectors(2, ids).await?;
        let sql = "DELETE FROM summaries WHERE user_id = $1 AND id = ANY ($2)";
        self.applied.removed.summaries += execute(self.client, sql, args![self.name(), ids.to_vec()]).await?;
        Ok(())
    }

    /// Deletes turns or memories with their vectors and returns how many there were.
    async fn delete_texts(&self, table: &str, kind: i16, ids: &[Uuid]) -> Outcome<u64> {
        self.delete_vectors(kind, ids).await?;
        let sql = format!(
            "WITH gone AS (DELETE FROM {table} WHERE user_id = $1 AND id = ANY ($2) RETURNING length)
             SELECT count(*), coalesce(sum(length), 0)::bigint FROM gone"
        );
        let row = first(self.client, &sql, args![self.name(), ids.to_vec()]).await?;
        let Some(row) = row else { return Ok(0) };
        let (items, length): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        self.add_to_totals(-items, -length).await?;
        Ok(items.unsigned_abs())
    }

    async fn delete_vectors(&self, kind: i16, ids: &[Uuid]) -> Outcome<()> {
        let sql = "DELETE FROM vectors WHERE user_id = $1 AND kind = $2 AND item = ANY ($3)";
        execute(self.client, sql, args![self.name(), kind, ids.to_vec()]).await?;
        Ok(())
    }

    /// The ids that a query finds.
    async fn ids(&self, sql: &str, args: &[Arg<'_>]) -> Outcome<Vec<Uuid>> {
        let found = rows(self.client, sql, args).await?;
        Ok(found.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
    }
}
