//! Words with directions: what lets recall match «trip» with «journey», and 咖啡 with «coffee», without any network.
//!
//! A [`Lexicon`] gives words and their vectors; the tables live elsewhere. Here is what ranking does with them.

use crate::vector::{Vector, quantise_into};

/// The dimension of a word's vector.
pub const DIMENSION: usize = 256;

/// How much a word tells falls with how common it is: a / (a + p), with a = 1e-4 as published for smooth inverse
/// frequency.
const WORD_RARITY: f32 = 1e-4;

/// Words and their vectors.
pub trait Lexicon: Send + Sync + 'static {
    /// Calls `emit` with the words of a text, stop words left out, in order and with repeats.
    fn for_each_word(&self, text: &str, emit: &mut dyn FnMut(&str));

    /// What is known of a word that [`Lexicon::for_each_word`] gave.
    fn word(&self, word: &str) -> Word;

    /// What is known of many words, in their order: a cold user of ten thousand items brings about fifteen thousand.
    fn words(&self, words: &[&str]) -> WordRows {
        let mut rows = WordRows::zeros(words.len());
        for (mut row, word) in rows.shares(1).zip(words) {
            row.set(0, &self.word(word));
        }
        rows
    }

    /// As [`Lexicon::words`], and calls `meanwhile` once: a lexicon that shares its work between threads looks words up
    /// beside it.
    fn words_beside(&self, words: &[&str], meanwhile: &mut dyn FnMut()) -> WordRows {
        meanwhile();
        self.words(words)
    }
}

/// What a lexicon knows of many words, one row a word.
#[derive(Debug, Clone, PartialEq)]
pub struct WordRows {
    /// Their directions, one after the other.
    pub vectors: Vec<i8>,
    /// What to multiply each direction with.
    pub scales: Vec<f32>,
    /// How much each counts in the mean of a text.
    pub weights: Vec<f32>,
}

/// Some rows of [`WordRows`], to be written.
pub struct WordRowsMut<'a> {
    vectors: &'a mut [i8],
    scales: &'a mut [f32],
    weights: &'a mut [f32],
}

impl WordRows {
    /// So many words without a direction.
    pub fn zeros(count: usize) -> Self {
        Self { vectors: vec![0; count * DIMENSION], scales: vec![0.0; count], weights: vec![0.0; count] }
    }

    /// The rows in shares of `size`, which may be written side by side.
    pub fn shares(&mut self, size: usize) -> impl Iterator<Item = WordRowsMut<'_>> {
        let vectors = self.vectors.chunks_mut(size * DIMENSION);
        let rest = self.scales.chunks_mut(size).zip(self.weights.chunks_mut(size));
        vectors.zip(rest).map(|(vectors, (scales, weights))| WordRowsMut { vectors, scales, weights })
    }
}

impl WordRowsMut<'_> {
    /// Writes a word of the given direction, whose length is its weight, to a row without one.
    pub fn set_direction(&mut self, row: usize, direction: &[f32; DIMENSION]) {
        let values = &mut self.vectors[row * DIMENSION..(row + 1) * DIMENSION];
        (self.scales[row], self.weights[row]) = quantise_into(direction, values);
    }

    fn set(&mut self, row: usize, word: &Word) {
        self.vectors[row * DIMENSION..(row + 1) * DIMENSION].copy_from_slice(&word.vector.values);
        (self.scales[row], self.weights[row]) = (word.vector.scale, word.weight);
    }
}

/// What a lexicon knows of a word.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// Its direction; all zeros for a word without one.
    pub vector: Vector,
    /// How much it counts in the mean of a text.
    pub weight: f32,
    /// How much it tells about what a text is about, from 0 for the most common words to 1 for the rarest.
    pub rarity: f32,
}

impl Word {
    /// A word of the given direction, whose length is its weight, and how common it is as a probability.
    pub fn new(direction: &[f32; DIMENSION], probability: f32) -> Self {
        let (vector, weight) = Vector::with_norm(direction);
        Self { vector, weight, rarity: rarity(probability) }
    }
}

/// How much a word of this probability tells, from 0 to 1.
pub fn rarity(probability: f32) -> f32 {
    WORD_RARITY / (WORD_RARITY + probability)
}

/// The direction of a text: the sum of its words' directions by their weights. Not normalised.
pub fn mean(lexicon: &dyn Lexicon, text: &str) -> Vec<f32> {
    let mut sum = vec![0.0; DIMENSION];
    lexicon.for_each_word(text, &mut |text| {
        let word = lexicon.word(text);
        add(&mut sum, &word.vector.values, word.weight * word.vector.scale);
    });
    sum
}

/// Adds `weight` times a vector.
pub fn add(sum: &mut [f32], values: &[i8], weight: f32) {
    add_numbers(sum, values, weight, i8::clone);
}

/// Adds `weight` times a vector of which a table holds the bytes.
pub fn add_bytes(sum: &mut [f32], values: &[u8], weight: f32) {
    add_numbers(sum, values, weight, |value| value.cast_signed());
}

fn add_numbers<T>(sum: &mut [f32], values: &[T], weight: f32, number: impl Fn(&T) -> i8) {
    #[cfg(target_arch = "x86_64")]
    {
        // The same loop for registers of twice the width, which gives the same numbers.
        #[target_feature(enable = "avx2")]
        fn add_avx2<T>(sum: &mut [f32], values: &[T], weight: f32, number: impl Fn(&T) -> i8) {
            add_each(sum, values, weight, number);
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has just been asked for the one feature that the function needs.
            #[allow(
                unsafe_code,
                reason = "a function compiled for a processor feature can only be called so"
            )]
            return unsafe { add_avx2(sum, values, weight, number) };
        }
    }
    add_each(sum, values, weight, number);
}

#[inline(always)]
fn add_each<T>(sum: &mut [f32], values: &[T], weight: f32, number: impl Fn(&T) -> i8) {
    for (sum, value) in sum.iter_mut().zip(values) {
        *sum += weight * f32::from(number(value));
    }
}
