//! The stored form of the index: ranking features of a block of items as bytes.
//!
//! Analysing ten thousand turns takes a third of a second; reading their features takes milliseconds. A segment
//! consists of columns and has its own dictionaries, so that loading looks up each word or term once a segment and not
//! once an item. The dictionaries are in order of first use: a loaded index numbers its words like an index built from
//! the feed. Values of an item that can change (its visibility, its validity) are stored as of the time of writing. A
//! later change raises the item's revision, so that the item is stored again in a later segment or comes with the feed.

mod columns;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry as MapEntry;
use uuid::Uuid;

use self::columns::{Numbers, Reader, Writer};
use super::document::{Document, ItemKind};
use super::features::{Features, TermHash};
use super::vocabulary::Vocabulary;
use strata_core::hash::{FNV_START, fnv_step};
use strata_core::id::{ItemId, MemoryId, SessionId, SummaryId, TurnId};

/// The name under which segments are stored. Change it when the analyser, the lexicon or the layout changes.
pub const SEGMENT_SPACE: &str = "lexical-4";

/// The names that earlier versions used.
pub(crate) const FORMER_SPACES: [&str; 3] = ["lexical-1", "lexical-2", "lexical-3"];

/// The flags of an item: the lowest bits hold its kind.
const KIND: u8 = 0b11;
const LATIN: u8 = 0b100;
/// The item has three more timestamps. Most items do not: they are recorded when they are created, and neither closed
/// nor hidden.
const MOMENTS: u8 = 0b1000;

/// An item with its features.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IndexEntry {
    pub(crate) document: Document,
    pub(crate) session: Option<SessionId>,
    pub(crate) features: Features,
}

/// An item as it is written.
#[derive(Debug, Clone, PartialEq)]
struct Row<'a> {
    document: Document,
    session: Option<&'a str>,
    /// Distinct terms with their counts; `words` has the same form.
    terms: Vec<(TermHash, u8)>,
    words: Vec<(&'a str, u8)>,
}

/// Writes a segment.
pub(crate) fn encode(entries: &[IndexEntry]) -> Vec<u8> {
    let rows = entries.iter().map(|entry| Row {
        document: entry.document.clone(),
        session: entry.session.as_ref().map(SessionId::as_str),
        terms: entry.features.terms.clone(),
        words: entry.features.words.iter().map(|(word, count)| (word.as_str(), *count)).collect(),
    });
    write(&rows.collect::<Vec<_>>())
}

/// Merges consecutive segments into one. Each item is in the result once, in its last version. `None` if a segment is
/// damaged.
pub(crate) fn merge<'a>(segments: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let segments = segments.into_iter().map(decode).collect::<Option<Vec<_>>>()?;
    let mut rows: Vec<Option<Row<'_>>> = Vec::new();
    let mut places: HashMap<ItemId, usize> = HashMap::new();
    for segment in &segments {
        for entry in segment.entries() {
            let row = Row {
                session: entry.session.map(|place| segment.sessions[place as usize]),
                terms: entry.terms.map(|(place, count)| (segment.terms.get(place as usize), count)).collect(),
                words: entry.words.map(|(place, count)| (segment.words[place as usize], count)).collect(),
                document: entry.document,
            };
            match places.entry(row.document.id) {
                MapEntry::Vacant(vacant) => {
                    vacant.insert(rows.len());
                }
                MapEntry::Occupied(mut known) => {
                    let former = &mut rows[*known.get()];
                    let same = |former: &Row<'_>| former.terms == row.terms && former.words == row.words;
                    // The text of a turn never changes. An item with unchanged features keeps its position, as in an
                    // index.
                    if matches!(row.document.id, ItemId::Turn(_)) || former.as_ref().is_some_and(same) {
                        *former = Some(row);
                        continue;
                    }
                    *former = None;
                    known.insert(rows.len());
                }
            }
            rows.push(Some(row));
        }
    }
    Some(write(&rows.into_iter().flatten().collect::<Vec<_>>()))
}

fn write(rows: &[Row<'_>]) -> Vec<u8> {
    let (mut words, mut sessions) = (Vocabulary::default(), Vocabulary::default());
    let (mut terms, mut term_numbers) = (Vec::new(), HashMap::new());
    let (mut term_places, mut word_places) = (Vec::new(), Vec::new());
    let (mut term_counts, mut word_counts) = (Vec::new(), Vec::new());
    for row in rows {
        let (first_term, first_word) = (term_places.len(), word_places.len());
        for (hash, count) in &row.terms {
            let number = *term_numbers.entry(*hash).or_insert_with(|| {
                terms.push(*hash);
                terms.len() as u32 - 1
            });
            // A repeated entry is written several times. Repetitions are rare, so this is smaller than a column of
            // counts.
            term_places.extend(std::iter::repeat_n(number, usize::from(*count)));
        }
        for (word, count) in &row.words {
            word_places.extend(std::iter::repeat_n(words.enter(word).0, usize::from(*count)));
        }
        term_counts.push((term_places.len() - first_term) as u32);
        word_counts.push((word_places.len() - first_word) as u32);
    }
    let session = |row: &Row<'_>| row.session.map_or(0, |name| sessions.enter(name).0 + 1);
    let session_places: Vec<u32> = rows.iter().map(session).collect();

    let mut out = Writer::default();
    out.strings(&words);
    out.strings(&sessions);
    out.numbers(&terms);
    write_documents(&mut out, rows);
    for column in [session_places, term_counts, word_counts, term_places, word_places] {
        out.numbers(&column);
    }
    let sum = checksum(&out.0);
    out.0.extend(sum.to_le_bytes());
    out.0
}

fn write_documents(out: &mut Writer, rows: &[Row<'_>]) {
    let moments = |document: &Document| [document.recorded_at, document.valid_to, document.hidden_at];
    let usual = |document: &Document| moments(document) == [document.created_at, i64::MAX, i64::MAX];
    let documents = || rows.iter().map(|row| &row.document);
    out.u32(rows.len() as u32);
    for document in documents() {
        let latin = if document.latin { LATIN } else { 0 };
        let told = if usual(document) { 0 } else { MOMENTS };
        out.0.push(document.kind() as u8 | latin | told);
    }
    documents().for_each(|document| out.0.extend(document.id.uuid().as_bytes()));
    documents().for_each(|document| out.0.extend(document.created_at.to_le_bytes()));
    for document in documents().filter(|document| !usual(document)) {
        moments(document).iter().for_each(|moment| out.0.extend(moment.to_le_bytes()));
    }
    let column = |number: fn(&Document) -> u32| documents().map(number).collect::<Vec<_>>();
    out.numbers(&column(|document| document.seq));
    out.numbers(&column(|document| document.speaker));
    out.numbers(&column(|document| document.word_count));
}

/// The checksum against damage: FNV-1a by words of eight bytes. It takes a quarter of a millisecond for ten thousand
/// items.
fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = FNV_START ^ bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        // The rotation moves high bits to low positions, which the multiplication alone never does.
        sum = fnv_step(sum, u64::from_le_bytes(word)).rotate_left(29);
    }
    sum
}

/// A decoded segment. [`Segment::entries`] refer to its words, sessions and terms by their positions.
pub(crate) struct Segment<'a> {
    pub(crate) words: Vec<&'a str>,
    pub(crate) sessions: Vec<&'a str>,
    pub(crate) terms: Numbers<'a>,
    flags: &'a [u8],
    ids: &'a [[u8; 16]],
    created: &'a [[u8; 8]],
    moments: &'a [[[u8; 8]; 3]],
    seqs: Numbers<'a>,
    speakers: Numbers<'a>,
    lengths: Numbers<'a>,
    session_places: Numbers<'a>,
    term_counts: Numbers<'a>,
    word_counts: Numbers<'a>,
    pub(crate) term_places: Numbers<'a>,
    pub(crate) word_places: Numbers<'a>,
}

/// An entry of a decoded segment.
pub(crate) struct SegmentEntry<'a> {
    pub(crate) document: Document,
    pub(crate) session: Option<u32>,
    pub(crate) terms: Counted<'a>,
    pub(crate) words: Counted<'a>,
}

/// Distinct numbers with their counts, decoded on iteration, so that loading needs no allocation for each item.
#[derive(Clone, Copy)]
pub(crate) struct Counted<'a> {
    numbers: Numbers<'a>,
    at: usize,
    end: usize,
}

impl Iterator for Counted<'_> {
    type Item = (u32, u8);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let number = self.numbers.get(self.at);
        self.at += 1;
        let mut count = 1_u8;
        while self.at < self.end && self.numbers.get(self.at) == number {
            count = count.saturating_add(1);
            self.at += 1;
        }
        Some((number, count))
    }
}

impl<'a> Segment<'a> {
    /// The number of items.
    pub(crate) fn len(&self) -> usize {
        self.flags.len()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = SegmentEntry<'a>> {
        let (mut moments, mut term, mut word) = (self.moments.iter(), 0, 0);
        (0..self.len()).map(move |at| {
            let (flags, created_at) = (self.flags[at], i64::from_le_bytes(self.created[at]));
            let told = if flags & MOMENTS == 0 { None } else { moments.next() };
            let usual = [created_at, i64::MAX, i64::MAX];
            let [recorded_at, valid_to, hidden_at] =
                told.map_or(usual, |moments| moments.map(i64::from_le_bytes));
            let document = Document {
                seq: self.seqs.get(at),
                created_at,
                recorded_at,
                valid_to,
                hidden_at,
                speaker: self.speakers.get(at),
                latin: flags & LATIN != 0,
                word_count: self.lengths.get(at),
                ..Document::new(item(flags, self.ids[at]))
            };
            let take = |numbers: Numbers<'a>, from: &mut usize, count: u32| {
                let start = *from;
                *from += count as usize;
                Counted { numbers, at: start, end: *from }
            };
            SegmentEntry {
                document,
                session: self.session_places.get(at).checked_sub(1),
                terms: take(self.term_places, &mut term, self.term_counts.get(at)),
                words: take(self.word_places, &mut word, self.word_counts.get(at)),
            }
        })
    }

    /// Whether all columns have the right length and refer to existing entries.
    fn fits(&self) -> bool {
        let columns = [self.seqs, self.speakers, self.lengths, self.session_places];
        let refers = |column: Numbers<'_>, to: usize| column.iter().all(|place| (place as usize) < to);
        let sums = |counts: Numbers<'_>, to: Numbers<'_>| {
            counts.len() == self.len() && counts.iter().map(u64::from).sum::<u64>() == to.len() as u64
        };
        columns.iter().all(|column| column.len() == self.len())
            && self.flags.iter().all(|flags| ItemKind::from_u8(flags & KIND).is_some())
            && refers(self.session_places, self.sessions.len() + 1)
            && sums(self.term_counts, self.term_places)
            && sums(self.word_counts, self.word_places)
            && refers(self.term_places, self.terms.len())
            && refers(self.word_places, self.words.len())
    }
}

/// The item id, with the kind from the flags.
fn item(flags: u8, id: [u8; 16]) -> ItemId {
    let id = Uuid::from_bytes(id);
    match ItemKind::from_u8(flags & KIND) {
        Some(ItemKind::Memory) => ItemId::Memory(MemoryId(id)),
        Some(ItemKind::Summary) => ItemId::Summary(SummaryId(id)),
        Some(ItemKind::Turn) | None => ItemId::Turn(TurnId(id)),
    }
}

/// Reads any bytes as a segment, with a checksum that is right.
#[cfg(feature = "fuzz")]
pub(crate) fn fuzz(data: &[u8]) {
    let mut bytes = data.to_vec();
    bytes.extend(checksum(data).to_le_bytes());
    if let Some(segment) = decode(&bytes) {
        assert!(segment.entries().count() <= segment.len());
    }
    if let Some(merged) = merge([bytes.as_slice(), &bytes]) {
        assert!(decode(&merged).is_some(), "merged segments can be read");
    }
}

/// Reads a segment; `None` if the bytes are not a valid segment.
pub(crate) fn decode(bytes: &[u8]) -> Option<Segment<'_>> {
    let (bytes, sum) = bytes.split_last_chunk()?;
    if checksum(bytes) != u64::from_le_bytes(*sum) {
        return None;
    }
    let mut input = Reader(bytes);
    let (words, sessions, terms) = (input.strings()?, input.strings()?, input.numbers()?);
    let count = input.u32()? as usize;
    let flags = input.take(count)?;
    let told = flags.iter().filter(|flags| **flags & MOMENTS != 0).count();
    let segment = Segment {
        words,
        sessions,
        terms,
        flags,
        ids: input.chunks(count)?,
        created: input.chunks(count)?,
        moments: input.chunks(told.checked_mul(3)?)?.as_chunks().0,
        seqs: input.numbers()?,
        speakers: input.numbers()?,
        lengths: input.numbers()?,
        session_places: input.numbers()?,
        term_counts: input.numbers()?,
        word_counts: input.numbers()?,
        term_places: input.numbers()?,
        word_places: input.numbers()?,
    };
    (input.0.is_empty() && segment.fits()).then_some(segment)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry() -> impl Strategy<Value = IndexEntry> {
        let words = proptest::collection::btree_map("[a-z茶]{1,6}", 1_u8..9, 0..5);
        let terms = proptest::collection::btree_map(any::<u32>(), 1_u8..9, 0..5);
        let moments = (any::<i64>(), any::<bool>(), proptest::option::of(any::<i64>()));
        let numbers = (any::<u32>(), prop::sample::select(vec![3, 300, 70_000]), any::<bool>());
        (0_u128..9, any::<bool>(), proptest::option::of("[a-z/:]{1,9}"), moments, numbers, words, terms)
            .prop_map(
                |(id, is_turn, session, (moment, later, hidden), (speaker, seq, latin), words, terms)| {
                    let id = Uuid::from_u128(id);
                    let id = if is_turn { ItemId::Turn(TurnId(id)) } else { ItemId::Memory(MemoryId(id)) };
                    let features = Features {
                        terms: terms.into_iter().collect(),
                        words: words.into_iter().collect(),
                        word_count: seq,
                        latin,
                    };
                    let document = Document {
                        created_at: moment,
                        recorded_at: moment.saturating_add(i64::from(later)),
                        hidden_at: hidden.unwrap_or(i64::MAX),
                        word_count: seq,
                        seq,
                        speaker,
                        latin,
                        ..Document::new(id)
                    };
                    IndexEntry {
                        document,
                        session: session.map(|name| SessionId::new(name).unwrap()),
                        features,
                    }
                },
            )
    }

    /// The entries of a segment.
    fn entries(bytes: &[u8]) -> Vec<IndexEntry> {
        let segment = decode(bytes).unwrap();
        let word = |(place, count): (u32, u8)| (segment.words[place as usize].to_owned(), count);
        let term = |(place, count): (u32, u8)| (segment.terms.get(place as usize), count);
        let read = |entry: SegmentEntry<'_>| IndexEntry {
            session: entry.session.map(|at| SessionId::new(segment.sessions[at as usize]).unwrap()),
            features: Features {
                terms: entry.terms.map(term).collect(),
                words: entry.words.map(word).collect(),
                word_count: entry.document.word_count,
                latin: entry.document.latin,
            },
            document: entry.document,
        };
        segment.entries().map(read).collect()
    }

    /// The expected result of merging, written in the simplest way.
    fn expected(entries: Vec<IndexEntry>) -> Vec<IndexEntry> {
        let mut kept: Vec<IndexEntry> = Vec::new();
        for mut entry in entries {
            let former = kept.iter().position(|former| former.document.id == entry.document.id);
            let says = |entry: &IndexEntry| (entry.features.terms.clone(), entry.features.words.clone());
            match former {
                Some(at)
                    if matches!(entry.document.id, ItemId::Turn(_)) || says(&kept[at]) == says(&entry) =>
                {
                    std::mem::swap(&mut kept[at], &mut entry);
                }
                Some(at) => {
                    kept.remove(at);
                    kept.push(entry);
                }
                None => kept.push(entry),
            }
        }
        kept
    }

    proptest! {
        #[test]
        fn a_segment_is_read_as_it_was_written(entries in proptest::collection::vec(entry(), 0..6)) {
            prop_assert_eq!(super::tests::entries(&encode(&entries)), entries);
        }

        #[test]
        fn segments_are_merged_as_if_written_at_once(
            segments in proptest::collection::vec(proptest::collection::vec(entry(), 0..6), 1..5)
        ) {
            let bytes: Vec<Vec<u8>> = segments.iter().map(|entries| encode(entries)).collect();
            let merged = merge(bytes.iter().map(Vec::as_slice)).unwrap();
            let expected = expected(segments.concat());
            prop_assert_eq!(&entries(&merged), &expected);
            prop_assert!(merged == encode(&expected));
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
            // Bytes with a valid checksum that are not a segment.
            noise.extend(checksum(&noise).to_le_bytes());
            let _ = decode(&noise).map(|segment| segment.entries().count());
        }
    }
}
