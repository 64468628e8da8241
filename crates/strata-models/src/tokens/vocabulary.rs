//! One vocabulary of byte-pair tokens: the tokens by their bytes, and the count of a piece of text.
//!
//! A piece is split as byte-pair encoding defines it: it begins as single bytes, and the neighbours that form the token of the
//! lowest rank are merged, the leftmost first, until no neighbours form a token. The table holds only the tokens; a pair's rank
//! is the rank of its bytes together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashTable;
use strata_core::{Error, Result, hash};

/// The bytes before the lengths of the tokens.
const HEADER: usize = 12;

/// Pieces up to this length are merged by looking at all pairs in each step, which is faster for a word.
const SHORT: usize = 48;

/// No token.
const NONE: u32 = u32::MAX;

/// A vocabulary. The bytes stay in the program; only the positions and the look-up table are made.
pub(super) struct Vocabulary {
    ranks: HashTable<u32>,
    starts: Vec<u32>,
    bytes: &'static [u8],
}

impl Vocabulary {
    /// Reads a table that `tools/vocabularies` has packed.
    pub(super) fn read(table: &'static [u8]) -> Result<Self> {
        Self::read_parts(table)
            .ok_or_else(|| Error::internal("a table of tokens inside the program is damaged; rebuild it"))
    }

    fn read_parts(table: &'static [u8]) -> Option<Self> {
        let number = |at: usize| Some(u32::from_le_bytes(*table.get(at..)?.first_chunk()?));
        if !table.starts_with(b"STRB") || number(4)? != 1 {
            return None;
        }
        let count = usize::try_from(number(8)?).ok()?;
        let (lengths, bytes) = table.get(HEADER..)?.split_at_checked(count)?;
        let mut starts = Vec::with_capacity(count + 1);
        let mut end = 0;
        starts.push(end);
        for length in lengths {
            end += u32::from(*length);
            starts.push(end);
        }
        if end as usize != bytes.len() {
            return None;
        }
        let mut vocabulary = Self { ranks: HashTable::with_capacity(count), starts, bytes };
        for rank in 0..number(8)? {
            let token = vocabulary.token(rank);
            let hash = hash_of(token);
            let Self { ranks, starts, bytes } = &mut vocabulary;
            ranks.insert_unique(hash, rank, |rank| hash_of(token_of(starts, bytes, *rank)));
        }
        Some(vocabulary)
    }

    fn token(&self, rank: u32) -> &'static [u8] {
        token_of(&self.starts, self.bytes, rank)
    }

    /// The rank of the token with these bytes, or [`NONE`].
    fn rank(&self, bytes: &[u8]) -> u32 {
        self.ranks.find(hash_of(bytes), |rank| self.token(*rank) == bytes).copied().unwrap_or(NONE)
    }

    /// The number of tokens of a piece.
    pub(super) fn count(&self, piece: &[u8]) -> usize {
        // Most words are a token, or are empty.
        if piece.len() < 2 || self.rank(piece) != NONE {
            return piece.len().min(1);
        }
        if piece.len() <= SHORT { self.count_short(piece) } else { self.count_long(piece) }
    }

    /// Merges the pairs of a short piece.
    fn count_short(&self, piece: &[u8]) -> usize {
        // The parts of the piece by their start; the last is the end. `ranks[i]` is the rank of the parts `i` and `i + 1` together.
        let mut starts: Vec<usize> = (0..=piece.len()).collect();
        let mut ranks: Vec<u32> = piece.windows(2).map(|pair| self.rank(pair)).collect();
        while let Some((at, &rank)) = ranks.iter().enumerate().min_by_key(|(_, rank)| **rank)
            && rank != NONE
        {
            starts.remove(at + 1);
            ranks.remove(at);
            let pair = |at: usize| starts.get(at + 2).map(|end| self.rank(&piece[starts[at]..*end]));
            if let Some(rank) = pair(at) {
                ranks[at] = rank;
            }
            if let Some(rank) = at.checked_sub(1).and_then(pair) {
                ranks[at - 1] = rank;
            }
        }
        starts.len() - 1
    }

    /// Merges the pairs of a long piece, which wait in a heap. A megabyte without a break takes a fraction of a second.
    fn count_long(&self, piece: &[u8]) -> usize {
        let mut parts = Parts::new(piece.len());
        let mut ranks: Vec<u32> = piece.windows(2).map(|pair| self.rank(pair)).chain([NONE]).collect();
        // An entry is a rank and a start in one number, so the smallest entry is the lowest rank and the leftmost of its kind.
        let entry = |rank: u32, start: usize| Reverse(u64::from(rank) << 32 | start as u64);
        let known = ranks.iter().zip(0..).filter(|(rank, _)| **rank != NONE);
        let mut heap: BinaryHeap<Reverse<u64>> = known.map(|(rank, start)| entry(*rank, start)).collect();
        let mut count = piece.len();
        while let Some(Reverse(lowest)) = heap.pop() {
            let (rank, start) = ((lowest >> 32) as u32, lowest as u32 as usize);
            // The pair has been merged with others since it was found.
            if ranks[start] != rank {
                continue;
            }
            ranks[parts.next(start)] = NONE;
            parts.merge(start);
            count -= 1;
            for start in [Some(start), parts.before(start)].into_iter().flatten() {
                let rank = parts.pair_end(start).map_or(NONE, |end| self.rank(&piece[start..end]));
                ranks[start] = rank;
                if rank != NONE {
                    heap.push(entry(rank, start));
                }
            }
        }
        count
    }
}

/// The parts of a long piece, each by the byte at which it begins.
struct Parts {
    /// The start of the part after the one that begins here.
    next: Vec<u32>,
    /// The start of the part before the one that begins here.
    previous: Vec<u32>,
}

impl Parts {
    /// Single bytes. A piece is shorter than 4 GB, because a request is.
    fn new(length: usize) -> Self {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        Self { next: (1..=length).collect(), previous: (0..=length).map(|at| at.saturating_sub(1)).collect() }
    }

    fn next(&self, start: usize) -> usize {
        self.next[start] as usize
    }

    fn before(&self, start: usize) -> Option<usize> {
        (start > 0).then(|| self.previous[start] as usize)
    }

    /// The end of the part after the one at `start`, if there is one.
    fn pair_end(&self, start: usize) -> Option<usize> {
        self.next.get(self.next(start)).map(|end| *end as usize)
    }

    /// Merges the part at `start` with the one after it.
    fn merge(&mut self, start: usize) {
        let end = self.next[self.next(start)];
        self.next[start] = end;
        self.previous[end as usize] = start as u32;
    }
}

fn token_of(starts: &[u32], bytes: &'static [u8], rank: u32) -> &'static [u8] {
    let at = rank as usize;
    &bytes[starts[at] as usize..starts[at + 1] as usize]
}

/// The highest bits choose the place in the table, which the last bytes of a short text hardly change in FNV-1a.
fn hash_of(bytes: &[u8]) -> u64 {
    hash::fnv(bytes).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_table_is_refused() {
        for table in [&b""[..], b"STRB", b"STRB\x01\0\0\0\x02\0\0\0\x01\x01a", b"STRX\x01\0\0\0\0\0\0\0"] {
            assert!(Vocabulary::read(table.to_vec().leak()).is_err());
        }
    }

    #[test]
    fn the_lowest_rank_is_merged_first_and_the_leftmost_of_two() {
        // Tokens in the order of their ranks: a, b, c, bc, ab, aa, abc.
        let table = b"STRB\x01\0\0\0\x07\0\0\0\x01\x01\x01\x02\x02\x02\x03abcbcabaaabc";
        let vocabulary = Vocabulary::read(table).unwrap();
        let check = |piece: &str, expected: usize| {
            assert_eq!(vocabulary.count(piece.as_bytes()), expected, "{piece}");
            // Both ways of merging agree.
            let piece = piece.as_bytes();
            assert_eq!(vocabulary.count_long(piece), vocabulary.count_short(piece));
        };
        check("abc", 1);
        check("abb", 2);
        check("abcabc", 2);
        check("aaa", 2);
        check("aaaa", 2);
        check("aab", 2);
        check("cab", 2);
    }
}
