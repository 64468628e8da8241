//! Correcting turns. The store's contract has no such change, because a turn is what was said: it serves a store whose index is
//! derived from files, where a person may have corrected the file.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use strata_core::store::Applied;
use strata_core::{Turn, UserId};

use super::super::error::Outcome;
use super::super::index::{self, Kind};
use super::super::row::{follows, list, metadata, micros};
use super::super::scrub;
use super::{Writing, unknown};

/// Gives turns that exist everything of these except their place and whether they are hidden. What was made of their former
/// texts is destroyed: vectors, segments and index entries.
pub(crate) fn correct_turns(
    conn: &Connection,
    user: &UserId,
    at: Timestamp,
    turns: &[Turn],
) -> Outcome<Applied> {
    let mut writing = Writing::begin(conn, user, at, 0)?;
    scrub::mark(conn)?;
    writing.begin_epoch()?;
    turns.iter().try_for_each(|turn| writing.correct(turn))?;
    Ok(writing.applied)
}

impl Writing<'_> {
    fn correct(&self, turn: &Turn) -> Outcome<()> {
        let notes = &turn.notes;
        let mut update = self.conn.prepare_cached(
            "UPDATE turns SET created_at = ?3, revision = ?4, role = ?5, token_count = ?6, name = ?7, metadata = ?8,
                 content = ?9, follows = ?10, interrupted = ?11, truncated = ?12, tool_calls = ?13, tool_call_id = ?14,
                 failed = ?15, input_tokens = ?16, output_tokens = ?17, high_value = ?18, agent = ?19,
                 memories_in_session = ?20, memory_metadata = ?21
             WHERE user_id = ?1 AND id = ?2 RETURNING row, session_id",
        )?;
        let corrected = update.query_row(
            params![
                self.user_id,
                turn.id.0.as_bytes(),
                micros(turn.created_at),
                self.revision,
                turn.role.as_str(),
                turn.token_count,
                turn.name,
                metadata(&turn.metadata),
                turn.content,
                follows(notes.follows)?,
                notes.interrupted,
                notes.truncated,
                list(&notes.tool_calls)?,
                notes.tool_call_id,
                notes.failed,
                notes.usage.input,
                notes.usage.output,
                notes.high_value,
                notes.owner.agent,
                u8::from(notes.owner.in_session) + u8::from(notes.owner.in_session && notes.owner.apart),
                metadata(&notes.owner.metadata),
            ],
            |row| Ok((row.get(0)?, row.get(1)?)),
        );
        let (row, session): (i64, i64) = corrected.optional()?.ok_or_else(|| unknown("turn", turn.id))?;
        self.replace_text(row, &turn.content)?;
        let sql = "UPDATE sessions SET version = ?2, updated_at = max(updated_at, ?3) WHERE id = ?1";
        self.conn.prepare_cached(sql)?.execute([session, self.version, micros(turn.created_at)])?;
        Ok(())
    }

    /// Replaces what was made of a turn's text.
    fn replace_text(&self, row: i64, content: &str) -> Outcome<()> {
        index::replace(self.conn, self.user_id, Kind::Turn, row, content)?;
        self.conn
            .prepare_cached("DELETE FROM vectors WHERE user_id = ?1 AND kind = ?2 AND item = ?3")?
            .execute(params![self.user_id, Kind::Turn as i64, row])?;
        Ok(())
    }
}
