//! Writing memories: adding, revising with their history kept, closing, hiding.

use jiff::Timestamp;
use strata_core::memory::{MemoryNotes, TodoState};
use strata_core::turn::{Hidden, Metadata};
use strata_core::{Memory, MemoryId, SessionId, TurnId};

use super::{Writing, unknown};
use crate::error::Outcome;
use crate::row::{self, metadata, micros, turn_ids};
use crate::sql::{args, execute, first};
use crate::terms::Terms;

impl Writing<'_> {
    pub(super) async fn add_memory(&self, memory: &Memory, terms: &[Terms]) -> Outcome<()> {
        let sql = "INSERT INTO memories (user_id, id, revision, session, agent, kind, confidence, valid_from, valid_to,
                       recorded_at, replaced_by, hidden_at, hidden_reason, source_turns, source_summary, metadata,
                       content, todo, restored_at, first_recorded_at, thread, disputed, certainty, terms, length)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
                       $21, $22, $23, $24::text::tsvector, $25)";
        let terms = terms.first();
        let args = args![
            self.name(),
            memory.id.0,
            self.revision,
            memory.session.as_ref().map(SessionId::as_str),
            memory.agent.as_deref(),
            memory.kind.as_str(),
            f64::from(memory.confidence),
            micros(memory.valid_from),
            memory.valid_to.map(micros),
            micros(memory.recorded_at),
            memory.replaced_by.map(|id| id.0),
            memory.hidden.map(|hidden| micros(hidden.at)),
            memory.hidden.map(|hidden| hidden.reason.as_str()),
            turn_ids(&memory.source_turns),
            memory.source_summary.map(|id| id.0),
            metadata(&memory.metadata),
            memory.content.as_str(),
            memory.notes.todo.map(TodoState::as_str),
            memory.notes.restored_at.map(micros),
            memory.notes.first_recorded_at.map(micros),
            memory.notes.thread.map(|id| id.0),
            memory.notes.disputed.map(|id| id.0),
            memory.notes.certainty.map(i16::from),
            terms.map_or("", |terms| terms.vector.as_str()),
            terms.map_or(0, |terms| terms.length),
        ];
        execute(self.client, sql, args).await.map_err(|fault| {
            fault.or_conflict(|| format!("memory `{}` exists already; give it another id", memory.id))
        })?;
        Ok(())
    }

    pub(super) async fn revise_memory(
        &self,
        id: MemoryId,
        archive_as: MemoryId,
        content: &str,
        new_metadata: Option<&Metadata>,
        terms: &[Terms],
    ) -> Outcome<()> {
        let sql = format!("SELECT {} FROM memories m WHERE m.user_id = $1 AND m.id = $2", row::MEMORY);
        let found = first(self.client, &sql, args![self.name(), id.0]).await?;
        let memory = row::memory(&found.ok_or_else(|| unknown("memory", id))?)?;
        let archived = Memory {
            id: archive_as,
            valid_to: Some(memory.valid_to.map_or(self.at, |end| end.min(self.at))),
            replaced_by: Some(id),
            ..memory.clone()
        };
        self.add_memory(&archived, &[Terms::of(self.user, &memory.content)]).await?;
        let (vector, length) = terms.first().map_or(("", 0), |terms| (terms.vector.as_str(), terms.length));
        let sql = "UPDATE memories SET content = $3, metadata = $4, valid_from = $5, recorded_at = $5, revision = $6,
                       first_recorded_at = coalesce(first_recorded_at, recorded_at),
                       source_turns = CASE content WHEN $3 THEN source_turns END,
                       source_summary = CASE content WHEN $3 THEN source_summary END,
                       terms = $7::text::tsvector, length = $8
                   WHERE user_id = $1 AND id = $2";
        let new_metadata = metadata(new_metadata.unwrap_or(&memory.metadata));
        let args =
            args![self.name(), id.0, content, new_metadata, micros(self.at), self.revision, vector, length];
        execute(self.client, sql, args).await?;
        // The archived statement is one more item, with the length that the revised one had.
        self.add_to_totals(1, i64::from(length)).await?;
        // A vector of the old statement would match questions that the new one does not answer.
        let sql = "DELETE FROM vectors WHERE user_id = $1 AND kind = 1 AND item = $2";
        execute(self.client, sql, args![self.name(), id.0]).await?;
        Ok(())
    }

    /// Changes how many items with text the user has, and how many terms.
    pub(super) async fn add_to_totals(&self, items: i64, length: i64) -> Outcome<()> {
        let sql = "UPDATE users SET indexed_items = indexed_items + $2, indexed_terms = indexed_terms + $3
                   WHERE user_id = $1";
        execute(self.client, sql, args![self.name(), items, length]).await?;
        Ok(())
    }

    pub(super) async fn close_memory(
        &self,
        id: MemoryId,
        valid_to: Timestamp,
        replaced_by: Option<MemoryId>,
    ) -> Outcome<()> {
        if let Some(successor) = replaced_by {
            self.need_memory(successor).await?;
        }
        let sql = "UPDATE memories SET valid_to = $3, replaced_by = $4, revision = $5 WHERE user_id = $1 AND id = $2";
        let args = args![self.name(), id.0, micros(valid_to), replaced_by.map(|id| id.0), self.revision];
        found(execute(self.client, sql, args).await?, id)
    }

    pub(super) async fn hide_memory(&self, id: MemoryId, hidden: Option<Hidden>) -> Outcome<()> {
        let sql = "UPDATE memories SET hidden_at = $3, hidden_reason = $4, revision = $5
                   WHERE user_id = $1 AND id = $2";
        let args = args![
            self.name(),
            id.0,
            hidden.map(|hidden| micros(hidden.at)),
            hidden.map(|hidden| hidden.reason.as_str()),
            self.revision
        ];
        found(execute(self.client, sql, args).await?, id)
    }

    pub(super) async fn note_memory(&self, id: MemoryId, notes: MemoryNotes) -> Outcome<()> {
        let sql = "UPDATE memories SET todo = coalesce($3, todo), restored_at = coalesce($4, restored_at),
                       first_recorded_at = coalesce($5, first_recorded_at), revision = $6,
                       thread = coalesce($7, thread), disputed = coalesce($8, disputed),
                       certainty = coalesce($9, certainty)
                   WHERE user_id = $1 AND id = $2";
        let args = args![
            self.name(),
            id.0,
            notes.todo.map(TodoState::as_str),
            notes.restored_at.map(micros),
            notes.first_recorded_at.map(micros),
            self.revision,
            notes.thread.map(|id| id.0),
            notes.disputed.map(|id| id.0),
            notes.certainty.map(i16::from),
        ];
        found(execute(self.client, sql, args).await?, id)
    }

    pub(super) async fn confirm_memory(&self, id: MemoryId, turns: &[TurnId]) -> Outcome<()> {
        let sql = "SELECT source_turns FROM memories WHERE user_id = $1 AND id = $2";
        let row = first(self.client, sql, args![self.name(), id.0]).await?;
        let stored: Option<Vec<uuid::Uuid>> = row.ok_or_else(|| unknown("memory", id))?.try_get(0)?;
        let mut sources: Vec<TurnId> = stored.unwrap_or_default().into_iter().map(TurnId).collect();
        Memory::confirm(&mut sources, turns);
        let sql = "UPDATE memories SET source_turns = $3, revision = $4 WHERE user_id = $1 AND id = $2";
        execute(self.client, sql, args![self.name(), id.0, turn_ids(&sources), self.revision]).await?;
        Ok(())
    }

    /// Fails if the user does not have the memory.
    pub(super) async fn need_memory(&self, id: MemoryId) -> Outcome<()> {
        let sql = "SELECT 1 FROM memories WHERE user_id = $1 AND id = $2";
        match first(self.client, sql, args![self.name(), id.0]).await? {
            Some(_) => Ok(()),
            None => Err(unknown("memory", id)),
        }
    }
}

fn found(changed: u64, id: MemoryId) -> Outcome<()> {
    if changed == 0 { Err(unknown("memory", id)) } else { Ok(()) }
}
