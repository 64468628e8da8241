//! English word pieces and their directions.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use strata_core::lexicon::DIMENSION;
use strata_core::{Error, Result};

static VOCABULARY: &str = include_str!("../../data/vocab.txt");
static TABLE: &[u8] = include_bytes!("../../data/builtin.bin");

/// Where the weights begin, and what the rows' place is a multiple of.
const HEADER: usize = 64;

/// Words with more characters have no pieces, as the tokenizer defines it.
const MAX_WORD_CHARS: usize = 100;

/// The vocabulary is sorted by frequency from here on.
const FIRST_WORD: u16 = 1996;

/// Pieces by their text.
type Table = HashMap<&'static str, u16, BuildHasherDefault<Fnv>>;

/// FNV-1a: pieces are short, a word asks for all its beginnings, and nobody can add to the table what would collide.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The pieces by their text. Continuing pieces are kept apart, so that no `##` need be written before a look-up.
pub(super) struct Pieces {
    first: Table,
    next: Table,
    rows: &'static [u8],
    /// What to multiply each row with: its weight over its length.
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
                "the table of word pieces does not fit its vocabulary; build it anew",
            ));
        }
        let mut first = Table::with_capacity_and_hasher(count, BuildHasherDefault::new());
        let mut next = Table::default();
        for (piece, id) in VOCABULARY.lines().zip(0_u16..) {
            match piece.strip_prefix("##") {
                Some(piece) => next.insert(piece, id),
                None => first.insert(piece, id),
            };
        }
        let weights = weights.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let scales =
            rows.chunks_exact(DIMENSION).zip(weights).map(|(row, weight)| weight * scale(row)).collect();
        Ok(Self { first, next, rows, scales })
    }

    /// The pieces of a word, longest first; none where the vocabulary cannot write it.
    pub(super) fn cut(&self, word: &str) -> Vec<u16> {
        let mut ids = Vec::new();
        if word.chars().count() > MAX_WORD_CHARS {
            return ids;
        }
        let mut rest = word;
        while !rest.is_empty() {
            let vocabulary = if ids.is_empty() { &self.first } else { &self.next };
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).collect::<Vec<_>>();
            let found = ends.iter().rev().find_map(|&end| Some((end, *vocabulary.get(&rest[..end])?)));
            let Some((end, id)) = found else { return Vec::new() };
            ids.push(id);
            rest = &rest[end..];
        }
        ids
    }

    /// Adds a piece's direction by its weight.
    pub(super) fn add_row(&self, id: u16, sum: &mut [f32; DIMENSION]) {
        let start = usize::from(id) * DIMENSION;
        let (Some(row), Some(scale)) =
            (self.rows.get(start..start + DIMENSION), self.scales.get(usize::from(id)))
        else {
            return;
        };
        for (sum, value) in sum.iter_mut().zip(row) {
            *sum += scale * f32::from(value.cast_signed());
        }
    }
}

fn scale(row: &[u8]) -> f32 {
    let square: f32 = row.iter().map(|value| f32::from(value.cast_signed()).powi(2)).sum();
    if square > 0.0 { square.sqrt().recip() } else { 0.0 }
}

/// How common a piece is. Its place in the vocabulary tells as well as a table of frequencies would.
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
