//! Background work that makes an index fast to load: it writes segments as a user's items grow, and merges them.
//!
//! With small segments, few items remain to be analysed at loading. A few large segments are faster to read, because
//! each segment repeats most of a user's words. So a small segment is written as soon as there are enough items for it.
//! After some have been written, they are merged, together with earlier segments that are no larger than all segments
//! after them. A hundred thousand items then have about a dozen segments, and each item is written about ten times.

use std::sync::Arc;

use super::segment::FORMER_SPACES;
use super::user::{entry_of, is_indexed};
use super::{Indexes, SEGMENT_SPACE, segment};
use strata_core::error::{ErrorKind, Result};
use strata_core::id::UserId;
use strata_core::ports::{self, Compute, Load};
use strata_core::store::{Change, ChangeSet, Segment, SegmentSize, Store};

/// The number of items in a small segment. Items that are not in a segment yet are analysed at loading, at about 40 µs
/// for an item.
pub(crate) const SEGMENT_ITEMS: u32 = 64;

/// The number of items in a segment while this many wait. Analysing them takes about 20 ms, for which another user's index may
/// have to wait.
const BACKLOG_ITEMS: u32 = 512;

/// This many segments are needed for a merge.
const MERGED_AT_ONCE: usize = 8;

/// The maximum size of a merged segment, about twenty thousand items: writers wait while it is written.
const LARGEST_BYTES: u64 = 2 << 20;

/// Writes the next segment of a user's items, if there are enough items. Returns whether it did.
pub(crate) async fn write_segment(
    store: &dyn Store,
    compute: &dyn Compute,
    indexes: &Arc<Indexes>,
    user: &UserId,
    now: jiff::Timestamp,
) -> Result<bool> {
    let head = store.head(user).await?;
    let epoch = head.epoch;
    let after = store.progress(user, SEGMENT_SPACE).await?;
    // Many small segments for a user far behind would take longer than recording the items did.
    let backlog = head.revision.saturating_sub(after) >= u64::from(BACKLOG_ITEMS);
    let items = store.feed(user, after, if backlog { BACKLOG_ITEMS } else { SEGMENT_ITEMS }).await?;
    let Some(&(last, _)) = items.last() else { return Ok(false) };
    if items.len() < SEGMENT_ITEMS as usize {
        return Ok(false);
    }
    let words = Arc::clone(indexes);
    let bytes = ports::compute(compute, Load::Long, move || {
        let items = items.iter().map(|(_, item)| item).filter(|item| is_indexed(item));
        segment::encode(&items.map(|item| entry_of(item, words.lexicon())).collect::<Vec<_>>())
    });
    let bytes = bytes.await?;
    let segment = Segment { space: SEGMENT_SPACE.to_owned(), first: after + 1, last, bytes };
    let mut changes = vec![Change::PutSegment { segment, epoch }];
    if after == 0 {
        changes.extend(FORMER_SPACES.map(|space| Change::DropSegments { space: space.to_owned() }));
    }
    if apply(store, user, ChangeSet::new(now, changes)).await? {
        merge_segments(store, compute, user, epoch, now).await?;
    }
    Ok(true)
}

/// Merges a user's last segments, if there are enough of them.
async fn merge_segments(
    store: &dyn Store,
    compute: &dyn Compute,
    user: &UserId,
    epoch: u64,
    now: jiff::Timestamp,
) -> Result<()> {
    let sizes = store.segment_sizes(user, SEGMENT_SPACE).await?;
    let Some(from) = merged_from(&sizes) else { return Ok(()) };
    let segments = store.segments(user, SEGMENT_SPACE, from).await?;
    let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return Ok(()) };
    let (first, last) = (first.first, last.last);
    // A damaged segment stays, and loading skips it.
    let merge = move || segment::merge(segments.iter().map(|segment| segment.bytes.as_slice()));
    let Some(bytes) = ports::compute(compute, Load::Long, merge).await? else {
        tracing::warn!(space = SEGMENT_SPACE, first, "a stored segment is damaged");
        return Ok(());
    };
    let segment = Segment { space: SEGMENT_SPACE.to_owned(), first, last, bytes };
    apply(store, user, ChangeSet::one(now, Change::MergeSegments { segment, epoch })).await?;
    Ok(())
}

/// The first revision of the segments to merge: those that are no larger than all segments after them together. `None`
/// if they are too few.
fn merged_from(sizes: &[SegmentSize]) -> Option<u64> {
    let (mut merged, mut after) = (0, 0);
    for (place, size) in sizes.iter().rev().enumerate() {
        if after + size.bytes > LARGEST_BYTES {
            break;
        }
        if size.bytes <= after {
            merged = place + 1;
        }
        after += size.bytes;
    }
    let first = sizes.len() - merged;
    (merged >= MERGED_AT_ONCE).then(|| sizes[first].first)
}

/// Returns whether the changes were applied. If not, another process was faster, or something was erased in the
/// meantime; the next round tries again.
async fn apply(store: &dyn Store, user: &UserId, changes: ChangeSet) -> Result<bool> {
    match store.apply(user, changes).await {
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
        result => result.map(|_| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of writing a hundred thousand items with the given segment sizes: the final segments, the maximum
    /// number of segments, and how often an item was written.
    fn grown(bytes: impl Fn(u64) -> u64) -> (Vec<u64>, usize, u64) {
        let (mut sizes, mut most, mut written, mut all) = (Vec::<SegmentSize>::new(), 0, 0, 0);
        for number in 1..=100_000 / u64::from(SEGMENT_ITEMS) {
            let bytes = bytes(number);
            sizes.push(SegmentSize { first: number, last: number, bytes });
            (written, all) = (written + bytes, all + bytes);
            if let Some(from) = merged_from(&sizes) {
                let kept = sizes.iter().position(|size| size.first == from).unwrap();
                let bytes = sizes.drain(kept..).map(|size| size.bytes).sum();
                sizes.push(SegmentSize { first: from, last: number, bytes });
                written += bytes;
            }
            most = most.max(sizes.len());
        }
        (sizes.iter().map(|size| size.bytes).collect(), most, written / all)
    }

    /// The bytes of a segment, by its number.
    type Sizes = fn(u64) -> u64;

    #[test]
    fn segments_stay_few_and_are_not_written_often() {
        let sizes: [(&str, Sizes); 4] = [
            ("alike", |_| 6_000),
            ("shrinking", |number| 8_000 - number),
            ("growing", |number| 4_000 + number),
            ("uneven", |number| 3_000 + number * 7_919 % 6_000 + if number % 97 == 0 { 100_000 } else { 0 }),
        ];
        for (name, bytes) in sizes {
            let (sizes, most, written) = grown(bytes);
            assert!(most <= 24 && written <= 12, "{name}: {most} segments, written {written} times");
            assert!(sizes.iter().all(|bytes| *bytes <= LARGEST_BYTES), "{name}: {sizes:?}");
        }
    }
}
