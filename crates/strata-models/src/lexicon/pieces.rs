//! English word pieces and their vectors.

use hashbrown::HashTable;
use strata_core::lexicon::{DIMENSION, add_bytes};
use strata_core::{Error, Result, hash};

static VOCABULARY: &str = include_str!("../../data/vocab.txt");
static TABLE: &[u8] = include_bytes!("../../data/builtin.bin");

/// The offset of the weights, and the alignment of the rows.
const HEADER: usize = 64;

/// Longer words have no pieces, as the tokenizer defines it.
const MAX_WORD_CHARS: usize = 100;

/// The first id of the part of the vocabulary that is sorted by frequency.
const FIRST_WORD: u16 = 1996;

/// Pieces by their text. The table is fixed, so an attacker cannot add colliding entries.
struct Table {
    ids: HashTable<u16>,
    /// The texts by id, without `##`.
    texts: Vec<&'static str>,
    /// The length of the longest, in bytes.
    longest: usize,
    /// The lengths of the texts with the same hash of their first [`START`] bytes, one bit for each length. Most beginnings of a
    /// word are not a piece, and this avoids looking them up.
    lengths: Vec<u64>,
}

const START: usize = 3;
const STARTS: usize = 4096;

impl Table {
    fn new(pieces: impl Iterator<Item = (&'static str, u16)> + Clone) -> Self {
        let count = pieces.clone().count();
        let last = pieces.clone().map(|(_, id)| usize::from(id) + 1).max().unwrap_or(0);
        let mut table = Self {
            ids: HashTable::with_capacity(count),
            texts: vec![""; last],
            longest: 0,
            lengths: vec![0; STARTS],
        };
        for (text, id) in pieces {
            if let Some(start) = start(text) {
                table.lengths[start] |= 1 << text.len().min(MAX_PIECE_BYTES);
            }
            table.texts[usize::from(id)] = text;
            table.longest = table.longest.max(text.len());
            let hash = |text: &str| scattered(hash::fnv(text.as_bytes()));
            table.ids.insert_unique(hash(text), id, |id| hash(table.texts[usize::from(*id)]));
        }
        table
    }

    fn get(&self, hash: u64, text: &str) -> Option<u16> {
        self.ids.find(scattered(hash), |id| self.texts[usize::from(*id)] == text).copied()
    }

    /// The longest piece at the beginning of a text, and its length. The hashes of all beginnings are computed in one pass.
    fn longest_start(&self, text: &str) -> Option<(usize, u16)> {
        let mut hashes = [0; MAX_PIECE_BYTES + 1];
        let mut hash = hash::FNV_START;
        let length = text.len().min(self.longest).min(MAX_PIECE_BYTES);
        for (at, byte) in text.bytes().take(length).enumerate() {
            hash = hash::fnv_step(hash, u64::from(byte));
            hashes[at + 1] = hash;
        }
        let lengths = start(text).map_or(u64::MAX, |start| self.lengths[start] | ((1 << START) - 1));
        let is_length = |end: usize| lengths & (1 << end) != 0;
        let mut ends = (1..=length).rev().filter(|end| is_length(*end) && text.is_char_boundary(*end));
        ends.find_map(|end| Some((end, self.get(hashes[end], &text[..end])?)))
    }
}

/// The slot of a text's first bytes in `lengths`; `None` for a shorter text.
fn start(text: &str) -> Option<usize> {
    let bytes = text.as_bytes().first_chunk::<START>()?;
    Some((scattered(hash::fnv(bytes)) >> 40) as usize % STARTS)
}

/// The length of the longest piece.
const MAX_PIECE_BYTES: usize = 63;

/// FNV-1a with its bits mixed. The table uses the highest bits, which the last bytes of a text hardly change.
fn scattered(hash: u64) -> u64 {
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The pieces by their text. Continuing pieces have their own table, so that a look-up needs no `##`.
pub(super) struct Pieces {
    first: Table,
    next: Table,
    rows: &'static [u8],
    /// The factor of each row: its weight divided by its length.
    scales: Vec<f32>,
}

impl Pieces {
    pub(super) fn new() -> Result<Self> {
        let number = |at: usize| TABLE.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let count = VOCABULARY.lines().count();
        let weights = TABLE.get(HEADER..HEADER + 4 * count).unwrap_or_default();
        let rows = TABLE.get((HEADER + 4 * count).next_multiple_of(HEADER)..).unwrap_or_default();
        let fits = TABLE.starts_with(b"STRV")
            && number(4) == Some(1)
            && number(8) == u32::try_from(count).ok()
            && number(12) == Some(DIMENSION as u32)
            && rows.len() == count * DIMENSION;
        if !fits {
            return Err(Error::internal(
                "the table of word pieces does not match its vocabulary; rebuild it",
            ));
        }
        let pieces = VOCABULARY.lines().zip(0_u16..);
        let first = Table::new(pieces.clone().filter(|(piece, _)| !piece.starts_with("##")));
        let next = Table::new(pieces.filter_map(|(piece, id)| Some((piece.strip_prefix("##")?, id))));
        let weights = weights.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let scales =
            rows.chunks_exact(DIMENSION).zip(weights).map(|(row, weight)| weight * scale(row)).collect();
        Ok(Self { first, next, rows, scales })
    }

    /// The pieces of a word, each the longest possible; empty if the vocabulary cannot express the word.
    pub(super) fn cut(&self, word: &str) -> Vec<u16> {
        let mut ids = Vec::new();
        if word.chars().count() > MAX_WORD_CHARS {
            return ids;
        }
        let mut rest = word;
        while !rest.is_empty() {
            let vocabulary = if ids.is_empty() { &self.first } else { &self.next };
            let Some((end, id)) = vocabulary.longest_start(rest) else { return Vec::new() };
            ids.push(id);
            rest = &rest[end..];
        }
        ids
    }

    /// Adds a piece's weighted vector to `sum`.
    pub(super) fn add_row(&self, id: u16, sum: &mut [f32; DIMENSION]) {
        let start = usize::from(id) * DIMENSION;
        let (Some(row), Some(scale)) =
            (self.rows.get(start..start + DIMENSION), self.scales.get(usize::from(id)))
        else {
            return;
        };
        add_bytes(sum, row, *scale);
    }
}

fn scale(row: &[u8]) -> f32 {
    let square: f32 = row.iter().map(|value| f32::from(value.cast_signed()).powi(2)).sum();
    if square > 0.0 { square.sqrt().recip() } else { 0.0 }
}

/// The probability of a piece. Its position in the vocabulary estimates it as well as a table of frequencies.
pub(super) fn probability(id: u16) -> f32 {
    if id < FIRST_WORD { 1e-3 } else { 1.0 / ((f32::from(id - FIRST_WORD + 1) + 2.7) * 10.74) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_into_the_longest_pieces() {
        let pieces = Pieces::new().unwrap();
        let cut = |word: &str| {
            let names: Vec<&str> = VOCABULARY.lines().collect();
            pieces.cut(word).into_iter().map(|id| names[usize::from(id)]).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(cut("guitar"), "guitar");
        assert_eq!(cut("embeddings"), "em ##bed ##ding ##s");
        assert_eq!(cut("茶x\u{1F980}"), "");
        assert_eq!(cut(&"a".repeat(101)), "");
    }
}
