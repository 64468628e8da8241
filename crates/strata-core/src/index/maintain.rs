//! Work behind the scenes that makes a cold index quick to load: segments, written as a user's items grow.

use super::user::{entry_of, is_indexed};
use super::{SEGMENT_SPACE, segment};
use crate::error::{ErrorKind, Result};
use crate::id::UserId;
use crate::lexicon::Lexicon;
use crate::store::{Change, ChangeSet, Segment, Store};

/// Items a segment. What is not in a segment yet is analysed when the index is loaded: 256 items take about 10 ms.
pub(crate) const SEGMENT_ITEMS: u32 = 256;

/// Writes the next segment of a user's items, if there are enough for one. Says whether it did.
pub(crate) async fn write_segment(
    store: &dyn Store,
    lexicon: &dyn Lexicon,
    user: &UserId,
    now: jiff::Timestamp,
) -> Result<bool> {
    let epoch = store.head(user).await?.epoch;
    let after = store.progress(user, SEGMENT_SPACE).await?;
    let items = store.feed(user, after, SEGMENT_ITEMS).await?;
    let Some((last, _)) = items.last() else { return Ok(false) };
    if items.len() < SEGMENT_ITEMS as usize {
        return Ok(false);
    }
    let entries: Vec<_> =
        items.iter().filter(|(_, item)| is_indexed(item)).map(|(_, item)| entry_of(item, lexicon)).collect();
    let segment = Segment {
        space: SEGMENT_SPACE.to_owned(),
        first: after + 1,
        last: *last,
        bytes: segment::encode(&entries),
    };
    match store.apply(user, ChangeSet::one(now, Change::PutSegment { segment, epoch })).await {
        // Another process was faster, or something was destroyed meanwhile: the next round looks again.
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(true),
        result => result.map(|_| true),
    }
}
