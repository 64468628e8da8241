//! Writing memories: adding, revising with their history kept, closing, hiding.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};
use strata_core::memory::{MemoryNotes, TodoState};
use strata_core::turn::Metadata;
use strata_core::{Memory, MemoryId, SessionId, TurnId};

use super::super::error::{Fault, Outcome, damaged};
use super::super::index;
use super::super::row::{self, list, metadata, micros};
use super::{Writing, unknown};

impl Writing<'_> {
    pub(super) fn add_memory(&self, memory: &Memory) -> Outcome<()> {
        let inserted = self
            .conn
            .prepare_cached(
                "INSERT INTO memories (user_id, id, revision, session, agent, kind, confidence, valid_from, valid_to,
                     recorded_at, replaced_by, hidden_at, hidden_reason, source_turns, source_summary, metadata, content,
                     todo, restored_at, first_recorded_at, thread, disputed, certainty)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
                     ?22, ?23)",
            )?
            .execute(params![
                self.user_id,
                memory.id.0.as_bytes(),
                self.revision,
                memory.session.as_ref().map(SessionId::as_str),
                memory.agent,
                memory.kind.as_str(),
                f64::from(memory.confidence),
                micros(memory.valid_from),
                memory.valid_to.map(micros),
                micros(memory.recorded_at),
                memory.replaced_by.map(|id| *id.0.as_bytes()),
                memory.hidden.map(|hidden| micros(hidden.at)),
                memory.hidden.map(|hidden| hidden.reason.as_str()),
                list(&memory.source_turns)?,
                memory.source_summary.map(|id| *id.0.as_bytes()),
                metadata(&memory.metadata),
                memory.content,
                memory.notes.todo.map(TodoState::as_str),
                memory.notes.restored_at.map(micros),
                memory.notes.first_recorded_at.map(micros),
                memory.notes.thread.map(|id| *id.0.as_bytes()),
                memory.notes.disputed.map(|id| *id.0.as_bytes()),
                memory.notes.certainty,
            ]);
        inserted.map_err(|error| {
            Fault::from(error)
                .or_conflict(|| format!("memory `{}` exists already; give it another id", memory.id))
        })?;
        Ok(())
    }

    pub(super) fn revise_memory(
        &self,
        id: MemoryId,
        archive_as: MemoryId,
        content: String,
        new_metadata: Option<Metadata>,
    ) -> Outcome<()> {
        let sql = format!("SELECT {} FROM memories m WHERE m.user_id = ?1 AND m.id = ?2", row::MEMORY);
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut rows = statement.query(params![self.user_id, id.0.as_bytes()])?;
        let Some(found) = rows.next()? else { return Err(unknown("memory", id)) };
        let (number, memory): (i64, Memory) = (found.get(0)?, row::memory(found)?);
        drop(rows);

        let archived = Memory {
            id: archive_as,
            valid_to: Some(memory.valid_to.map_or(self.at, |end| end.min(self.at))),
            replaced_by: Some(id),
            ..memory.clone()
        };
        self.add_memory(&archived)?;
        self.conn
            .prepare_cached(
                "UPDATE memories SET content = ?2, metadata = ?3, valid_from = ?4, recorded_at = ?4, revision = ?5,
                     first_recorded_at = coalesce(first_recorded_at, recorded_at),
                     source_turns = CASE content WHEN ?2 THEN source_turns END,
                     source_summary = CASE content WHEN ?2 THEN source_summary END
                 WHERE row = ?1",
            )?
            .execute(params![
                number,
                content,
                metadata(new_metadata.as_ref().unwrap_or(&memory.metadata)),
                micros(self.at),
                self.revision
            ])?;
        index::replace(self.conn, self.user_id, index::Kind::Memory, number, &content)?;
        // A vector of the old statement would match questions that the new one does not answer.
        self.conn
            .prepare_cached("DELETE FROM vectors WHERE user_id = ?1 AND kind = 1 AND item = ?2")?
            .execute(params![self.user_id, number])?;
        Ok(())
    }

    pub(super) fn close_memory(
        &self,
        id: MemoryId,
        valid_to: Timestamp,
        replaced_by: Option<MemoryId>,
    ) -> Outcome<()> {
        if let Some(successor) = replaced_by {
            self.memory_row(successor)?;
        }
        let changed = self
            .conn
            .prepare_cached(
                "UPDATE memories SET valid_to = ?3, replaced_by = ?4, revision = ?5 WHERE user_id = ?1 AND id = ?2",
            )?
            .execute(params![
                self.user_id,
                id.0.as_bytes(),
                micros(valid_to),
                replaced_by.map(|id| *id.0.as_bytes()),
                self.revision
            ])?;
        if changed == 0 { Err(unknown("memory", id)) } else { Ok(()) }
    }

    pub(super) fn note_memory(&self, id: MemoryId, notes: MemoryNotes) -> Outcome<()> {
        let row = self.memory_row(id)?;
        self.conn
            .prepare_cached(
                "UPDATE memories SET todo = coalesce(?2, todo), restored_at = coalesce(?3, restored_at),
                     first_recorded_at = coalesce(?4, first_recorded_at), revision = ?5, thread = coalesce(?6, thread),
                     disputed = coalesce(?7, disputed), certainty = coalesce(?8, certainty)
                 WHERE row = ?1",
            )?
            .execute(params![
                row,
                notes.todo.map(TodoState::as_str),
                notes.restored_at.map(micros),
                notes.first_recorded_at.map(micros),
                self.revision,
                notes.thread.map(|id| *id.0.as_bytes()),
                notes.disputed.map(|id| *id.0.as_bytes()),
                notes.certainty,
            ])?;
        Ok(())
    }

    pub(super) fn confirm_memory(&self, id: MemoryId, turns: &[TurnId]) -> Outcome<()> {
        let row = self.memory_row(id)?;
        let stored: Option<String> = self
            .conn
            .prepare_cached("SELECT source_turns FROM memories WHERE row = ?1")?
            .query_row([row], |found| found.get(0))?;
        let read = stored.map(|text| serde_json::from_str(&text)).transpose();
        let read =
            read.map_err(|error| damaged("memories", row, format!("column `source_turns`: {error}")))?;
        let mut sources: Vec<TurnId> = read.unwrap_or_default();
        Memory::confirm(&mut sources, turns);
        self.conn
            .prepare_cached("UPDATE memories SET source_turns = ?2, revision = ?3 WHERE row = ?1")?
            .execute(params![row, list(&sources)?, self.revision])?;
        Ok(())
    }

    /// The row of a memory that has to exist.
    pub(super) fn memory_row(&self, id: MemoryId) -> Outcome<i64> {
        let row = self
            .conn
            .prepare_cached("SELECT row FROM memories WHERE user_id = ?1 AND id = ?2")?
            .query_row(params![self.user_id, id.0.as_bytes()], |row| row.get(0))
            .optional()?;
        row.ok_or_else(|| unknown("memory", id))
    }
}
