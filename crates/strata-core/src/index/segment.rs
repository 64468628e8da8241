//! Ranking features of a block of items as bytes: what a cold index is loaded from.
//!
//! Analysing ten thousand turns takes a third of a second; reading their features takes milliseconds. A segment has a
//! dictionary of its own, so that loading looks each word up once a segment instead of once an item. What may change about
//! an item (its visibility, its validity) is there as of the time of writing: a later change raises the item's
//! revision, so that it comes again with the items after the last segment.

use uuid::Uuid;

use super::document::{Document, ItemKind};
use super::features::Features;
use crate::id::{ItemId, MemoryId, SessionId, SummaryId, TurnId};

/// The name under which segments are stored. Another analyser, another lexicon or another layout is another name.
pub const SEGMENT_SPACE: &str = "lexical-2";

/// An item's place in the index, with its features.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) document: Document,
    pub(crate) session: Option<SessionId>,
    pub(crate) features: Features,
}

/// Writes a segment.
pub(crate) fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut words: Vec<&str> =
        entries.iter().flat_map(|entry| entry.features.words.iter().map(|(word, _)| word.as_str())).collect();
    words.sort_unstable();
    words.dedup();
    let mut sessions: Vec<&str> =
        entries.iter().filter_map(|entry| entry.session.as_ref().map(SessionId::as_str)).collect();
    sessions.sort_unstable();
    sessions.dedup();

    let mut out = Writer(Vec::new());
    out.strings(&words);
    out.strings(&sessions);
    out.u32(entries.len() as u32);
    for Entry { document, session, features } in entries {
        out.0.push(document.kind() as u8);
        out.0.extend(document.id.uuid().as_bytes());
        let session = session.as_ref().and_then(|name| sessions.binary_search(&name.as_str()).ok());
        out.u32(session.map_or(u32::MAX, |place| place as u32));
        out.u32(document.seq);
        for moment in [document.created_at, document.recorded_at, document.valid_to, document.hidden_at] {
            out.0.extend(moment.to_le_bytes());
        }
        out.u32(document.speaker);
        out.0.push(u8::from(document.latin));
        out.u32(features.word_count);
        out.u32(features.terms.len() as u32);
        for (hash, count) in &features.terms {
            out.u32(*hash);
            out.0.push(*count);
        }
        out.u32(features.words.len() as u32);
        for (word, count) in &features.words {
            out.u32(words.binary_search(&word.as_str()).unwrap_or_default() as u32);
            out.0.push(*count);
        }
    }
    let sum = checksum(&out.0);
    out.0.extend(sum.to_le_bytes());
    out.0
}

/// Tells damaged bytes from sound ones: FNV-1a by words of eight bytes, a quarter of a millisecond for ten thousand items.
fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        // The rotation lets high bits reach low ones, which a product alone never does.
        sum = (sum ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    }
    sum
}

/// A segment's words and sessions; entries refer to them by number.
pub(crate) struct Segment<'a> {
    pub(crate) words: Vec<&'a str>,
    pub(crate) sessions: Vec<SessionId>,
    pub(crate) entries: Vec<SegmentEntry<'a>>,
}

/// An entry as it stands in a segment.
pub(crate) struct SegmentEntry<'a> {
    pub(crate) document: Document,
    pub(crate) session: Option<u32>,
    pub(crate) terms: Counted<'a>,
    pub(crate) words: Counted<'a>,
}

/// Numbers, each with a count, as they stand in a segment: read where they are needed, so that loading a thousand items
/// allocates nothing for each.
#[derive(Clone, Copy)]
pub(crate) struct Counted<'a>(&'a [[u8; 5]]);

impl<'a> Counted<'a> {
    pub(crate) fn iter(self) -> impl Iterator<Item = (u32, u8)> + Clone + 'a {
        self.0.iter().map(|[a, b, c, d, count]| (u32::from_le_bytes([*a, *b, *c, *d]), *count))
    }
}

/// Reads a segment; `None` when the bytes are no segment.
pub(crate) fn decode(bytes: &[u8]) -> Option<Segment<'_>> {
    let (bytes, sum) = bytes.split_last_chunk()?;
    if checksum(bytes) != u64::from_le_bytes(*sum) {
        return None;
    }
    let mut input = Reader(bytes);
    let words = input.strings()?;
    let sessions = input.strings()?.into_iter().map(SessionId::new).collect::<Result<Vec<_>, _>>().ok()?;
    let count = input.u32()?;
    let mut entries = Vec::with_capacity(count.min(100_000) as usize);
    for _ in 0..count {
        let kind = ItemKind::from_u8(input.take(1)?[0])?;
        let uuid = Uuid::from_slice(input.take(16)?).ok()?;
        let id = match kind {
            ItemKind::Turn => ItemId::Turn(TurnId(uuid)),
            ItemKind::Memory => ItemId::Memory(MemoryId(uuid)),
            ItemKind::Summary => ItemId::Summary(SummaryId(uuid)),
        };
        let session = input.u32()?;
        let session = (session != u32::MAX).then_some(session);
        if session.is_some_and(|place| place as usize >= sessions.len()) {
            return None;
        }
        let seq = input.u32()?;
        let mut moments = [0; 4];
        for moment in &mut moments {
            *moment = i64::from_le_bytes(input.take(8)?.try_into().ok()?);
        }
        let [created_at, recorded_at, valid_to, hidden_at] = moments;
        let (speaker, latin) = (input.u32()?, input.take(1)?[0] != 0);
        let word_count = input.u32()?;
        let terms = input.counted()?;
        let places = input.counted()?;
        if places.iter().any(|(place, _)| place as usize >= words.len()) {
            return None;
        }
        let document = Document {
            seq,
            created_at,
            recorded_at,
            valid_to,
            hidden_at,
            speaker,
            latin,
            word_count,
            ..Document::new(id)
        };
        entries.push(SegmentEntry { document, session, terms, words: places });
    }
    input.0.is_empty().then_some(Segment { words, sessions, entries })
}

struct Writer(Vec<u8>);

impl Writer {
    fn u32(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    fn strings(&mut self, strings: &[&str]) {
        self.u32(strings.len() as u32);
        for string in strings {
            self.u32(string.len() as u32);
            self.0.extend(string.as_bytes());
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// Numbers, each with a count.
    fn counted(&mut self) -> Option<Counted<'a>> {
        let count = self.u32()? as usize;
        Some(Counted(self.take(count.checked_mul(5)?)?.as_chunks().0))
    }

    fn strings(&mut self) -> Option<Vec<&'a str>> {
        let count = self.u32()?;
        (0..count)
            .map(|_| {
                let length = self.u32()? as usize;
                std::str::from_utf8(self.take(length)?).ok()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry() -> impl Strategy<Value = Entry> {
        let words = proptest::collection::btree_map("[a-z茶]{1,6}", 1_u8..9, 0..5);
        let terms = proptest::collection::vec((any::<u32>(), 1_u8..9), 0..5);
        (any::<u128>(), proptest::option::of("[a-z/:]{1,9}"), any::<i64>(), words, terms).prop_map(
            |(id, session, moment, words, terms)| Entry {
                document: Document {
                    created_at: moment,
                    hidden_at: i64::MAX,
                    word_count: 7,
                    ..Document::new(ItemId::Turn(TurnId(Uuid::from_u128(id))))
                },
                session: session.map(|name| SessionId::new(name).unwrap()),
                features: Features { terms, words: words.into_iter().collect(), word_count: 7, latin: true },
            },
        )
    }

    proptest! {
        #[test]
        fn a_segment_is_read_as_it_was_written(entries in proptest::collection::vec(entry(), 0..6)) {
            let bytes = encode(&entries);
            let segment = decode(&bytes).unwrap();
            prop_assert_eq!(segment.entries.len(), entries.len());
            for (read, written) in segment.entries.iter().zip(&entries) {
                prop_assert_eq!(&read.document, &written.document);
                prop_assert_eq!(&read.terms.iter().collect::<Vec<_>>(), &written.features.terms);
                let session = read.session.map(|place| segment.sessions[place as usize].clone());
                prop_assert_eq!(&session, &written.session);
                let word = |(place, count): (u32, u8)| (segment.words[place as usize].to_owned(), count);
                let words: Vec<_> = read.words.iter().map(word).collect();
                prop_assert_eq!(&words, &written.features.words);
            }
        }

        #[test]
        fn damaged_bytes_are_refused_and_never_panic(
            entries in proptest::collection::vec(entry(), 1..4),
            at in any::<prop::sample::Index>(),
            bit in 0_u32..8,
            mut noise in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let mut bytes = encode(&entries);
            prop_assert!(decode(&bytes[..at.index(bytes.len())]).is_none());
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(decode(&bytes).is_none());
            // What has the right sum and is still no segment.
            noise.extend(checksum(&noise).to_le_bytes());
            let _ = decode(&noise);
        }
    }
}
