//! The reads that serve an index in memory: changed items, vectors and segments.

use strata_core::store::{Item, Segment, SegmentSize, StoredVector};
use strata_core::vector::{ItemVector, Vector};
use strata_core::{ItemId, MemoryId, SummaryId, TurnId, UserId};
use tokio_postgres::{Client, Row};

use crate::error::{Outcome, damaged};
use crate::row::{self, Cells, bound};
use crate::sql::{all, args, first};

/// The changed items. The caller has begun a snapshot, because an item that changes between two of the statements would
/// otherwise be in none of them.
pub(crate) async fn feed(
    client: &Client,
    user: &UserId,
    after: u64,
    limit: u32,
) -> Outcome<Vec<(u64, Item)>> {
    let after = bound(after);
    let last = last_revision(client, user, after, limit).await?;
    let turns = format!(
        "SELECT {}, t.revision FROM turns t WHERE t.user_id = $1 AND t.revision > $2 AND t.revision <= $3
         ORDER BY t.revision, t.session, t.seq",
        row::TURN
    );
    let memories = format!(
        "SELECT {}, m.revision FROM memories m WHERE m.user_id = $1 AND m.revision > $2 AND m.revision <= $3
         ORDER BY m.revision, m.recorded_at, m.id",
        row::MEMORY
    );
    let summaries = format!(
        "SELECT {}, m.revision FROM summaries m
         WHERE m.user_id = $1 AND m.revision > $2 AND m.revision <= $3 AND m.status = 'completed'
         ORDER BY m.revision, m.created_at, m.id",
        row::SUMMARY
    );
    let range = args![user.as_str(), after, last];
    let revision = |row: &Row, table, column| Cells::new(table, row).number::<u64>(column);
    let (turns, memories, summaries) = tokio::try_join!(
        all(client, &turns, range, |row| {
            Ok((revision(row, "turns", row::AFTER_TURN)?, Item::Turn(row::turn(row)?)))
        }),
        all(client, &memories, range, |row| {
            Ok((revision(row, "memories", row::AFTER_MEMORY)?, Item::Memory(row::memory(row)?)))
        }),
        all(client, &summaries, range, |row| {
            Ok((revision(row, "summaries", row::AFTER_SUMMARY)?, Item::Summary(row::summary(row)?)))
        }),
    )?;
    let mut items: Vec<(u64, Item)> = turns.into_iter().chain(memories).chain(summaries).collect();
    // A stable merge of three ascending runs.
    items.sort_by_key(|(revision, _)| *revision);
    Ok(items)
}

/// The revision at which the feed has `limit` items, or the largest revision if there are fewer items.
async fn last_revision(client: &Client, user: &UserId, after: i64, limit: u32) -> Outcome<i64> {
    let part = |table: &str| {
        format!(
            "(SELECT revision FROM {table} WHERE user_id = $1 AND revision > $2 ORDER BY revision LIMIT $3)"
        )
    };
    let sql = format!(
        "{} UNION ALL {} UNION ALL {} ORDER BY revision LIMIT 1 OFFSET $3 - 1",
        part("turns"),
        part("memories"),
        part("summaries")
    );
    let row = first(client, &sql, args![user.as_str(), after, i64::from(limit.max(1))]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(i64::MAX))
}

pub(crate) async fn vectors_since(
    client: &Client,
    user: &UserId,
    model: &str,
    after: u64,
) -> Outcome<Vec<StoredVector>> {
    let sql = "SELECT item, kind, revision, scale, components FROM vectors
               WHERE user_id = $1 AND model = $2 AND revision > $3 ORDER BY revision, kind, item";
    all(client, sql, args![user.as_str(), model, bound(after)], |row| {
        let cells = Cells::new("vectors", row);
        let id: uuid::Uuid = cells.get(0)?;
        let item = match cells.get::<i16>(1)? {
            0 => ItemId::Turn(TurnId(id)),
            1 => ItemId::Memory(MemoryId(id)),
            2 => ItemId::Summary(SummaryId(id)),
            kind => {
                return Err(damaged("vectors", &id.to_string(), format!("kind `{kind}` is unknown")).into());
            }
        };
        let components: &[u8] = cells.get(4)?;
        if components.is_empty() {
            return Err(damaged("vectors", &id.to_string(), "the vector has no components").into());
        }
        let values = components.iter().map(|value| value.cast_signed()).collect();
        let vector = Vector { scale: cells.get(3)?, values };
        Ok(StoredVector {
            revision: cells.number(2)?,
            vector: ItemVector { item, model: model.to_owned(), vector },
        })
    })
    .await
}

pub(crate) async fn segments(
    client: &Client,
    user: &UserId,
    space: &str,
    from: u64,
) -> Outcome<Vec<Segment>> {
    let sql = "SELECT space, first, last, bytes FROM segments
               WHERE user_id = $1 AND space = $2 AND first >= $3 ORDER BY first";
    all(client, sql, args![user.as_str(), space, bound(from)], |row| {
        let cells = Cells::new("segments", row);
        let (first, last, bytes) = (cells.number(1)?, cells.number(2)?, cells.get(3)?);
        Ok(Segment { space: space.to_owned(), first, last, bytes })
    })
    .await
}

pub(crate) async fn segment_sizes(client: &Client, user: &UserId, space: &str) -> Outcome<Vec<SegmentSize>> {
    let sql = "SELECT space, first, last, length(bytes)::bigint FROM segments
               WHERE user_id = $1 AND space = $2 ORDER BY first";
    all(client, sql, args![user.as_str(), space], |row| {
        let cells = Cells::new("segments", row);
        Ok(SegmentSize { first: cells.number(1)?, last: cells.number(2)?, bytes: cells.number(3)? })
    })
    .await
}
