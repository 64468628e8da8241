//! Finds the words of a user that are similar to a word of a question.
//!
//! Each word of a question is compared with every word of the user, which takes most of the time of a recall. Questions
//! share most of their words, so the results are cached, and only words that the user has added since are compared.

use std::sync::{Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use super::postings::Words;
use strata_core::dot::{dots, dots_of_two};
use strata_core::lexicon::DIMENSION;
use strata_core::vector::Vector;

/// The number of words in a block: 16 KiB of vectors. All directions are compared with one block before the next.
const BLOCK: usize = 64;

/// The number of words that are checked together for any similar word, because few words are similar.
const PART: usize = 16;

/// The number of cached question words. Words that come again are common words, and a language has few of them.
const REMEMBERED: usize = 512;

/// A word's number, and its cosine.
type Near = (u32, f32);

/// The cache of similar words, by question word.
#[derive(Default)]
pub(crate) struct SimilarWordsCache {
    remembered: Mutex<Remembered>,
}

struct Remembered {
    words: LruCache<Box<str>, NearWords>,
    /// The minimum cosine of a similar word.
    least: f32,
}

impl Default for Remembered {
    fn default() -> Self {
        Self { words: LruCache::unbounded(), least: 0.0 }
    }
}

#[derive(Clone, Default)]
struct NearWords {
    /// The number of the user's words that were compared: whole blocks.
    compared: usize,
    near: Vec<Near>,
}

impl Remembered {
    /// Clears the cache if the minimum cosine has changed.
    fn begin(&mut self, least: f32) {
        if self.least != least {
            *self = Self { least, ..Self::default() };
        }
    }
}

impl Words {
    /// For each given word with its vector, the user's words whose cosine with it is above `least`, in ascending order
    /// of their numbers, with the cosine. Another `least` than before clears the cache. Words with digits are left out:
    /// 2022 is near 2023 in every embedding, and wrong.
    pub(crate) fn near(&self, asked: &[(&str, &Vector)], least: f32) -> Vec<Vec<Near>> {
        let (vectors, scales, numeric) = self.rows();
        let mut results = self.similar().of(asked, least);
        let first = asked.iter().zip(&results).filter(|((_, direction), _)| direction.scale > 0.0);
        let first = first.map(|(_, result)| result.compared / BLOCK).min().unwrap_or(usize::MAX);
        let (mut one, mut other) = ([0; BLOCK], [0; BLOCK]);
        // All directions are compared with a block of words while it is in the first-level cache, two directions at a
        // time.
        for (block, rows) in vectors.chunks(BLOCK * DIMENSION).enumerate().skip(first) {
            let start = block * BLOCK;
            let end = start + rows.len() / DIMENSION;
            let (one, other) = (&mut one[..end - start], &mut other[..end - start]);
            let (scales, numeric) = (&scales[start..end], &numeric[start..end]);
            let take = |products: &[i32], direction: &Vector, result: &mut NearWords| {
                gather(products, scales, numeric, direction.scale, least, start, &mut result.near);
            };
            let is_due =
                |result: &NearWords, direction: &Vector| direction.scale > 0.0 && result.compared <= start;
            let directions = asked.iter().map(|(_, direction)| *direction).zip(&mut results);
            let mut directions = directions.filter(|(direction, result)| is_due(result, direction));
            while let Some((direction, result)) = directions.next() {
                match directions.next() {
                    Some((second, second_result)) => {
                        dots_of_two(rows, [&direction.values, &second.values], [&mut *one, &mut *other]);
                        take(other, second, second_result);
                    }
                    None => dots(rows, &direction.values, one),
                }
                take(one, direction, result);
            }
        }
        let found = results.iter().map(|result| result.near.clone()).collect();
        self.similar().keep(asked, results, least, vectors.len() / DIMENSION);
        found
    }
}

/// Collects the similar words of a block.
fn gather(
    products: &[i32],
    scales: &[f32],
    numeric: &[bool],
    scale: f32,
    least: f32,
    start: usize,
    near: &mut Vec<Near>,
) {
    let cosine = |(product, own): (&i32, &f32)| *product as f32 * scale * own;
    for (part, (products, scales)) in products.chunks(PART).zip(scales.chunks(PART)).enumerate() {
        let pairs = products.iter().zip(scales);
        if pairs.clone().fold(false, |any, pair| any | (cosine(pair) > least)) {
            let words = pairs.map(cosine).zip(start + part * PART..);
            let is_near = |(cosine, word): &(f32, usize)| *cosine > least && !numeric[word - start];
            near.extend(words.filter(is_near).map(|(cosine, word)| (word as u32, cosine)));
        }
    }
}

impl SimilarWordsCache {
    /// The cached result of each word.
    fn of(&self, asked: &[(&str, &Vector)], least: f32) -> Vec<NearWords> {
        let mut remembered = self.lock();
        remembered.begin(least);
        asked.iter().map(|(text, _)| remembered.words.peek(*text).cloned().unwrap_or_default()).collect()
    }

    /// Caches the results over the first `words` words, and drops the least recently used ones.
    fn keep(&self, asked: &[(&str, &Vector)], results: Vec<NearWords>, least: f32, words: usize) {
        let whole = words / BLOCK * BLOCK;
        let mut remembered = self.lock();
        remembered.begin(least);
        for ((text, direction), mut result) in asked.iter().zip(results) {
            if direction.scale > 0.0 {
                // The last block still grows, so it is compared again.
                result.near.truncate(result.near.partition_point(|(word, _)| (*word as usize) < whole));
                result.near.shrink_to_fit();
                result.compared = whole;
                remembered.words.put((*text).into(), result);
            }
        }
        while remembered.words.len() > REMEMBERED {
            remembered.words.pop_lru();
        }
    }

    /// The approximate size of the cache in bytes.
    pub(super) fn bytes(&self) -> usize {
        let remembered = self.lock();
        remembered.words.iter().map(|(_, result)| result.near.capacity() * size_of::<Near>() + 80).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strata_core::lexicon::{Lexicon, Word};

    /// A lexicon with pseudo-random directions.
    struct Scattered;

    impl Lexicon for Scattered {
        fn for_each_word(&self, text: &str, emit: &mut dyn FnMut(&str)) {
            text.split(' ').for_each(emit);
        }

        fn word(&self, word: &str) -> Word {
            let mut state = word.bytes().fold(7_u32, |state, byte| state.wrapping_mul(31) ^ u32::from(byte));
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 24) as f32 - 0.4
            };
            Word::new(&std::array::from_fn::<f32, DIMENSION, _>(|_| next()), 0.5)
        }
    }

    const LEAST: f32 = 0.16;

    /// Writes a number with letters, because words with digits are left out.
    fn name(number: usize) -> String {
        number.to_string().bytes().map(|digit| char::from(b'a' + digit - b'0')).collect()
    }

    /// The expected result: each word is compared by itself.
    fn plainly(words: &Words, direction: &Vector, least: f32) -> Vec<Near> {
        let cosine = |word: u32| {
            let (values, scale) = words.vector(word);
            strata_core::dot::dot(values, &direction.values) as f32 * direction.scale * scale
        };
        let all = (0..words.len() as u32).map(|word| (word, cosine(word)));
        all.filter(|(word, cosine)| *cosine > least && !words.is_numeric(*word)).collect()
    }

    #[test]
    fn cached_results_equal_new_ones() {
        let mut words = Words::default();
        let directions: Vec<(String, Vector)> =
            (0..REMEMBERED + 20).map(|word| (name(word), Scattered.word(&name(word)).vector)).collect();
        let mut entered = 0;
        for more in [0, 1, 63, 64, 70, 3, 500] {
            for number in entered..entered + more {
                words.enter(&if number % 7 == 0 { number.to_string() } else { name(number) });
            }
            entered += more;
            words.look_up(&Scattered);
            // A few words at a time, some of them repeated, and in the end more than the cache holds.
            for asked in directions.chunks(9).chain(directions[..20].chunks(4)) {
                let asked: Vec<(&str, &Vector)> =
                    asked.iter().map(|(text, vector)| (text.as_str(), vector)).collect();
                let found = words.near(&asked, LEAST);
                let expected: Vec<Vec<Near>> =
                    asked.iter().map(|(_, vector)| plainly(&words, vector, LEAST)).collect();
                assert_eq!(found, expected, "{entered} words");
            }
        }
        assert!(directions.iter().any(|(_, vector)| plainly(&words, vector, LEAST).len() > 5));
        for least in [LEAST + 0.05, LEAST] {
            let asked: Vec<(&str, &Vector)> =
                directions[..9].iter().map(|(text, vector)| (text.as_str(), vector)).collect();
            let expected: Vec<Vec<Near>> =
                asked.iter().map(|(_, vector)| plainly(&words, vector, least)).collect();
            assert_eq!(words.near(&asked, least), expected, "{least}");
        }
        assert!(words.similar().lock().words.len() <= REMEMBERED);
        assert!(words.similar().bytes() > 0);
    }
}
