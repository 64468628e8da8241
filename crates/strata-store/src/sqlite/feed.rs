//! The reads and writes that serve an index in memory: changed items, vectors, segments and progress.

use rusqlite::{Connection, OptionalExtension, Row, params};
use strata_core::store::{Item, Segment, SegmentSize, StoredVector};
use strata_core::vector::{ItemVector, Vector};
use strata_core::{Error, ItemId, MemoryId, SummaryId, TurnId, UserId};

use super::apply::Writing;
use super::error::{Outcome, damaged};
use super::read::{all, readable, user_id};
use super::row::{self, Cells, bound, count};

pub(crate) fn feed(conn: &Connection, user: &UserId, after: u64, limit: u32) -> Outcome<Vec<(u64, Item)>> {
    let Some(user_id) = user_id(conn, user)? else { return Ok(Vec::new()) };
    let mut after = bound(after);
    let mut items = Vec::new();
    // A damaged row must not make the answer shorter, which callers would take for the end.
    loop {
        let wanted = limit.saturating_sub(items.len() as u32).max(1);
        let last = last_revision(conn, user_id, after, wanted)?;
        items.extend(changed(conn, user_id, after, last)?);
        if last == i64::MAX || items.len() >= limit as usize {
            return Ok(items);
        }
        after = last;
    }
}

/// The items whose last change lies after one revision and not after another.
fn changed(conn: &Connection, user_id: i64, after: i64, last: i64) -> Outcome<Vec<(u64, Item)>> {
    let range = params![user_id, after, last];
    let revision = |row: &Row<'_>, table, column| Cells::new(table, row).number::<u64>(column);
    let turns = format!(
        "SELECT {}, t.revision FROM turns t JOIN sessions s ON s.id = t.session_id
         WHERE t.user_id = ?1 AND t.revision > ?2 AND t.revision <= ?3 ORDER BY t.revision, t.row",
        row::TURN
    );
    let mut items = readable(conn, &turns, range, |row| {
        Ok((revision(row, "turns", row::AFTER_TURN)?, Item::Turn(row::turn(row)?)))
    })?;
    let memories = format!(
        "SELECT {}, m.revision FROM memories m
         WHERE m.user_id = ?1 AND m.revision > ?2 AND m.revision <= ?3 ORDER BY m.revision, m.row",
        row::MEMORY
    );
    items.extend(readable(conn, &memories, range, |row| {
        Ok((revision(row, "memories", row::AFTER_MEMORY)?, Item::Memory(row::memory(row)?)))
    })?);
    let summaries = format!(
        "SELECT {}, m.revision FROM summaries m JOIN sessions s ON s.id = m.session_id
         WHERE m.user_id = ?1 AND m.revision > ?2 AND m.revision <= ?3 AND m.status = 'completed'
         ORDER BY m.revision, m.row",
        row::SUMMARY
    );
    items.extend(readable(conn, &summaries, range, |row| {
        Ok((revision(row, "summaries", 16)?, Item::Summary(row::summary(row)?)))
    })?);
    // A stable merge of three ascending runs.
    items.sort_by_key(|(revision, _)| *revision);
    Ok(items)
}

/// The revision at which the feed has `limit` items, or the largest revision if there are fewer items.
fn last_revision(conn: &Connection, user_id: i64, after: i64, limit: u32) -> Outcome<i64> {
    let part = |table: &str| {
        format!(
            "SELECT * FROM (SELECT revision FROM {table} WHERE user_id = ?1 AND revision > ?2
             ORDER BY revision LIMIT ?3)"
        )
    };
    let sql = format!(
        "{} UNION ALL {} UNION ALL {} ORDER BY revision LIMIT 1 OFFSET ?3 - 1",
        part("turns"),
        part("memories"),
        part("summaries")
    );
    let mut select = conn.prepare_cached(&sql)?;
    let last = select.query_row(params![user_id, after, limit.max(1)], |row| row.get(0)).optional()?;
    Ok(last.unwrap_or(i64::MAX))
}

pub(crate) fn vectors_since(
    conn: &Connection,
    user: &UserId,
    model: &str,
    after: u64,
) -> Outcome<Vec<StoredVector>> {
    let Some(user_id) = user_id(conn, user)? else { return Ok(Vec::new()) };
    let sql = "SELECT v.row, v.kind, v.revision, v.scale, v.components, coalesce(t.id, m.id, s.id)
               FROM vectors v
               LEFT JOIN turns t ON v.kind = 0 AND t.row = v.item
               LEFT JOIN memories m ON v.kind = 1 AND m.row = v.item
               LEFT JOIN summaries s ON v.kind = 2 AND s.row = v.item
               WHERE v.user_id = ?1 AND v.model_id = (SELECT id FROM models WHERE name = ?2) AND v.revision > ?3
               ORDER BY v.revision, v.row";
    readable(conn, sql, params![user_id, model, bound(after)], |row| {
        let cells = Cells::new("vectors", row);
        let id = cells.uuid(5)?;
        let item = match cells.get::<i64>(1)? {
            0 => ItemId::Turn(TurnId(id)),
            1 => ItemId::Memory(MemoryId(id)),
            2 => ItemId::Summary(SummaryId(id)),
            kind => return Err(damaged("vectors", cells.get(0)?, format!("kind `{kind}` is unknown"))),
        };
        let components: Vec<u8> = cells.get(4)?;
        if components.is_empty() {
            return Err(damaged("vectors", cells.get(0)?, "the vector has no components"));
        }
        let values = components.into_iter().map(u8::cast_signed).collect();
        let vector = Vector { scale: cells.get::<f64>(3)? as f32, values };
        Ok(StoredVector {
            revision: cells.number(2)?,
            vector: ItemVector { item, model: model.to_owned(), vector },
        })
    })
}

pub(crate) fn segments(conn: &Connection, user: &UserId, space: &str, from: u64) -> Outcome<Vec<Segment>> {
    let Some(user_id) = user_id(conn, user)? else { return Ok(Vec::new()) };
    let sql = "SELECT first, last, bytes FROM segments WHERE user_id = ?1 AND space = ?2 AND first >= ?3
               ORDER BY first";
    all(conn, sql, params![user_id, space, bound(from)], |row| {
        let cells = Cells::new("segments", row);
        let (first, last, bytes) = (cells.number(0)?, cells.number(1)?, cells.get(2)?);
        Ok(Segment { space: space.to_owned(), first, last, bytes })
    })
}

pub(crate) fn segment_sizes(conn: &Connection, user: &UserId, space: &str) -> Outcome<Vec<SegmentSize>> {
    let Some(user_id) = user_id(conn, user)? else { return Ok(Vec::new()) };
    let sql =
        "SELECT first, last, length(bytes) FROM segments WHERE user_id = ?1 AND space = ?2 ORDER BY first";
    all(conn, sql, params![user_id, space], |row| {
        let cells = Cells::new("segments", row);
        Ok(SegmentSize { first: cells.number(0)?, last: cells.number(1)?, bytes: cells.number(2)? })
    })
}

pub(crate) fn progress(conn: &Connection, user: &UserId, space: &str) -> Outcome<u64> {
    let sql = "SELECT p.user_id, p.revision FROM progress p JOIN users u ON u.id = p.user_id
               WHERE u.name = ?1 AND p.space = ?2";
    let found = all(conn, sql, params![user.as_str(), space], |row| Cells::new("progress", row).number(1))?;
    Ok(found.first().copied().unwrap_or(0))
}

pub(crate) fn behind(conn: &Connection, space: &str, gap: u64, limit: u32) -> Outcome<Vec<UserId>> {
    // A forgotten user keeps a row with its counters, and has nothing to work on.
    let sql = "SELECT u.id, u.name FROM users u
               LEFT JOIN progress p ON p.user_id = u.id AND p.space = ?1
               WHERE u.revision - coalesce(p.revision, 0) > ?2
                 AND (EXISTS (SELECT 1 FROM sessions WHERE user_id = u.id)
                      OR EXISTS (SELECT 1 FROM memories WHERE user_id = u.id))
               ORDER BY u.revision - coalesce(p.revision, 0) DESC, u.name LIMIT ?3";
    all(conn, sql, params![space, bound(gap), limit], |row| Cells::new("users", row).user(1))
}

impl Writing<'_> {
    pub(super) fn put_segment(&self, segment: &Segment, epoch: u64) -> Outcome<()> {
        self.expect_epoch(segment, epoch)?;
        let progress = progress(self.conn, self.user, &segment.space)?;
        if segment.first != progress + 1 || segment.last < segment.first {
            return Err(Error::conflict(format!(
                "a segment of `{}` begins at revision {} and not at {}; read the progress again",
                segment.space,
                segment.first,
                progress + 1
            ))
            .into());
        }
        self.insert_segment(segment)?;
        self.set_progress(&segment.space, segment.last)
    }

    pub(super) fn merge_segments(&self, segment: &Segment, epoch: u64) -> Outcome<()> {
        self.expect_epoch(segment, epoch)?;
        let (first, last) = (count(segment.first)?, count(segment.last)?);
        let within = params![self.user_id, segment.space, first, last];
        let covered = self
            .conn
            .prepare_cached(
                "SELECT count(*), min(first), max(last) FROM segments
                 WHERE user_id = ?1 AND space = ?2 AND first BETWEEN ?3 AND ?4 AND last <= ?4",
            )?
            .query_row(within, |row| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?)))?;
        if covered.0 < 2 || (covered.1, covered.2) != (Some(first), Some(last)) {
            return Err(Error::conflict(format!(
                "no segments of `{}` cover just the revisions {first} to {last}; read them again",
                segment.space
            ))
            .into());
        }
        self.conn
            .prepare_cached(
                "DELETE FROM segments WHERE user_id = ?1 AND space = ?2 AND first BETWEEN ?3 AND ?4",
            )?
            .execute(within)?;
        self.insert_segment(segment)
    }

    pub(super) fn drop_segments(&self, space: &str) -> Outcome<()> {
        for sql in [
            "DELETE FROM segments WHERE user_id = ?1 AND space = ?2",
            "DELETE FROM progress WHERE user_id = ?1 AND space = ?2",
        ] {
            self.conn.prepare_cached(sql)?.execute(params![self.user_id, space])?;
        }
        Ok(())
    }

    fn expect_epoch(&self, segment: &Segment, epoch: u64) -> Outcome<()> {
        if super::read::head(self.conn, self.user)?.epoch == epoch {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "a segment of `{}` was made in epoch {epoch}, before something was destroyed; make it anew",
            segment.space
        ))
        .into())
    }

    fn insert_segment(&self, segment: &Segment) -> Outcome<()> {
        self.conn
            .prepare_cached(
                "INSERT INTO segments (user_id, space, first, last, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                self.user_id,
                segment.space,
                count(segment.first)?,
                count(segment.last)?,
                segment.bytes
            ])?;
        Ok(())
    }

    pub(super) fn set_progress(&self, space: &str, revision: u64) -> Outcome<()> {
        self.conn
            .prepare_cached(
                "INSERT INTO progress (user_id, space, revision) VALUES (?1, ?2, ?3)
                 ON CONFLICT (user_id, space) DO UPDATE SET revision = excluded.revision",
            )?
            .execute(params![self.user_id, space, count(revision)?])?;
        Ok(())
    }

    /// Destroys all segments, because the store cannot tell what they hold. Their spaces begin anew.
    pub(super) fn clear_segments(&self) -> Outcome<()> {
        for sql in [
            "DELETE FROM progress WHERE user_id = ?1
             AND space IN (SELECT space FROM segments WHERE segments.user_id = ?1)",
            "DELETE FROM segments WHERE user_id = ?1",
        ] {
            self.conn.prepare_cached(sql)?.execute([self.user_id])?;
        }
        Ok(())
    }

    /// Raises the count of the user's vectors and returns it.
    pub(super) fn raise_vectors(&self) -> Outcome<i64> {
        let sql = "UPDATE users SET vectors = vectors + 1 WHERE id = ?1 RETURNING vectors";
        Ok(self.conn.prepare_cached(sql)?.query_row([self.user_id], |row| row.get(0))?)
    }
}
