//! Writing what serves an index in memory: vectors, segments and progress.

use strata_core::store::Segment;
use strata_core::vector::ItemVector;
use strata_core::{Error, ItemId};
use uuid::Uuid;

use super::Writing;
use crate::error::Outcome;
use crate::read;
use crate::row::{bound, count};
use crate::sql::{args, execute, one};

impl Writing<'_> {
    /// Stores vectors of items that exist, each replacing the one of the same model.
    pub(super) async fn put_vectors(&self, vectors: &[ItemVector]) -> Outcome<()> {
        let sql = "UPDATE users SET vectors = vectors + 1 WHERE user_id = $1 RETURNING vectors";
        let revision: i64 = one(self.client, sql, args![self.name()]).await?.try_get(0)?;
        // One statement cannot write the same row twice, so of several vectors of an item and model the last one counts.
        let mut last: Vec<&ItemVector> = Vec::with_capacity(vectors.len());
        let mut places = std::collections::HashMap::new();
        for vector in vectors {
            match places.insert((vector.item, vector.model.as_str()), last.len()) {
                Some(place) => {
                    places.insert((vector.item, vector.model.as_str()), place);
                    last[place] = vector;
                }
                None => last.push(vector),
            }
        }
        let kinds: Vec<i16> = last.iter().map(|vector| kind(vector.item)).collect();
        let items: Vec<Uuid> = last.iter().map(|vector| vector.item.uuid()).collect();
        let models: Vec<&str> = last.iter().map(|vector| vector.model.as_str()).collect();
        let scales: Vec<f32> = last.iter().map(|vector| vector.vector.scale).collect();
        let components: Vec<Vec<u8>> = last
            .iter()
            .map(|vector| vector.vector.values.iter().map(|value| value.cast_unsigned()).collect())
            .collect();
        let sql = "INSERT INTO vectors (user_id, model, kind, item, revision, scale, components)
                   SELECT $1, v.model, v.kind, v.item, $2, v.scale, v.components
                   FROM unnest($3::text[], $4::smallint[], $5::uuid[], $6::real[], $7::bytea[])
                       AS v (model, kind, item, scale, components)
                   WHERE CASE v.kind
                       WHEN 0 THEN EXISTS (SELECT 1 FROM turns t WHERE t.user_id = $1 AND t.id = v.item)
                       WHEN 1 THEN EXISTS (SELECT 1 FROM memories m WHERE m.user_id = $1 AND m.id = v.item)
                       ELSE EXISTS (SELECT 1 FROM summaries s WHERE s.user_id = $1 AND s.id = v.item) END
                   ON CONFLICT (user_id, kind, item, model) DO UPDATE SET
                       revision = excluded.revision, scale = excluded.scale, components = excluded.components";
        execute(self.client, sql, args![self.name(), revision, models, kinds, items, scales, components])
            .await?;
        Ok(())
    }

    pub(super) async fn put_segment(&self, segment: &Segment, epoch: u64) -> Outcome<()> {
        self.expect_epoch(segment, epoch)?;
        let progress = read::progress(self.client, self.user, &segment.space).await?;
        if segment.first != progress + 1 || segment.last < segment.first {
            return Err(Error::conflict(format!(
                "a segment of `{}` begins at revision {} and not at {}; read the progress again",
                segment.space,
                segment.first,
                progress + 1
            ))
            .into());
        }
        self.insert_segment(segment).await?;
        self.set_progress(&segment.space, segment.last).await
    }

    pub(super) async fn merge_segments(&self, segment: &Segment, epoch: u64) -> Outcome<()> {
        self.expect_epoch(segment, epoch)?;
        let (first, last) = (count(segment.first)?, count(segment.last)?);
        let sql = "SELECT count(*), min(first), max(last) FROM segments
                   WHERE user_id = $1 AND space = $2 AND first BETWEEN $3 AND $4 AND last <= $4";
        let row = one(self.client, sql, args![self.name(), segment.space.as_str(), first, last]).await?;
        let covered: (i64, Option<i64>, Option<i64>) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        if covered.0 < 2 || (covered.1, covered.2) != (Some(first), Some(last)) {
            return Err(Error::conflict(format!(
                "no segments of `{}` cover just the revisions {first} to {last}; read them again",
                segment.space
            ))
            .into());
        }
        let sql = "DELETE FROM segments WHERE user_id = $1 AND space = $2 AND first BETWEEN $3 AND $4";
        execute(self.client, sql, args![self.name(), segment.space.as_str(), first, last]).await?;
        self.insert_segment(segment).await
    }

    pub(super) async fn drop_segments(&self, space: &str) -> Outcome<()> {
        for sql in [
            "DELETE FROM segments WHERE user_id = $1 AND space = $2",
            "DELETE FROM progress WHERE user_id = $1 AND space = $2",
        ] {
            execute(self.client, sql, args![self.name(), space]).await?;
        }
        Ok(())
    }

    fn expect_epoch(&self, segment: &Segment, epoch: u64) -> Outcome<()> {
        if self.epoch == bound(epoch) {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "a segment of `{}` was made in epoch {epoch}, before something was destroyed; make it anew",
            segment.space
        ))
        .into())
    }

    async fn insert_segment(&self, segment: &Segment) -> Outcome<()> {
        let sql = "INSERT INTO segments (user_id, space, first, last, bytes) VALUES ($1, $2, $3, $4, $5)";
        let (first, last) = (count(segment.first)?, count(segment.last)?);
        let args = args![self.name(), segment.space.as_str(), first, last, segment.bytes.as_slice()];
        execute(self.client, sql, args).await?;
        Ok(())
    }

    pub(super) async fn set_progress(&self, space: &str, revision: u64) -> Outcome<()> {
        let sql = "INSERT INTO progress (user_id, space, revision) VALUES ($1, $2, $3)
                   ON CONFLICT (user_id, space) DO UPDATE SET revision = excluded.revision";
        execute(self.client, sql, args![self.name(), space, count(revision)?]).await?;
        Ok(())
    }

    /// Destroys all segments, because the store cannot tell what they hold. Their spaces begin anew.
    pub(super) async fn clear_segments(&self) -> Outcome<()> {
        for sql in [
            "DELETE FROM progress WHERE user_id = $1
             AND space IN (SELECT space FROM segments WHERE segments.user_id = $1)",
            "DELETE FROM segments WHERE user_id = $1",
        ] {
            execute(self.client, sql, args![self.name()]).await?;
        }
        Ok(())
    }
}

/// The number of an item's kind in table `vectors`.
fn kind(item: ItemId) -> i16 {
    match item {
        ItemId::Turn(_) => 0,
        ItemId::Memory(_) => 1,
        ItemId::Summary(_) => 2,
    }
}
