//! Word vectors: with them recall matches «trip» with «journey», and 咖啡 with «coffee», without any network.
//!
//! A [`Lexicon`] provides words and their vectors; other crates hold the tables. This module has the arithmetic that
//! ranking needs.

use crate::vector::{Vector, quantise_into};

/// The dimension of a word's vector.
pub const DIMENSION: usize = 256;

/// The weight of a word falls with its frequency: a / (a + p), with a = 1e-4 as published for smooth inverse frequency.
const WORD_RARITY: f32 = 1e-4;

/// Words and their vectors.
pub trait Lexicon: Send + Sync + 'static {
    /// Calls `emit` with the words of a text, without stop words, in order and with repeats.
    fn for_each_word(&self, text: &str, emit: &mut dyn FnMut(&str));

    /// The entry of a word that [`Lexicon::for_each_word`] gave.
    fn word(&self, word: &str) -> Word;

    /// The entries of many words, in their order. A cold user with ten thousand items needs about fifteen thousand.
    fn words(&self, words: &[&str]) -> WordRows {
        let mut rows = WordRows::zeros(words.len());
        for (mut row, word) in rows.shares(1).zip(words) {
            row.set(0, &self.word(word));
        }
        rows
    }

    /// Like [`Lexicon::words`], but also calls `meanwhile` once. A lexicon with several threads looks words up at the
    /// same time.
    fn words_beside(&self, words: &[&str], meanwhile: &mut dyn FnMut()) -> WordRows {
        meanwhile();
        self.words(words)
    }
}

/// The entries of many words, one row per word.
#[derive(Debug, Clone, PartialEq)]
pub struct WordRows {
    /// The directions, one after the other.
    pub vectors: Vec<i8>,
    /// The factor of each direction.
    pub scales: Vec<f32>,
    /// The weight of each word in the mean of a text.
    pub weights: Vec<f32>,
}

/// A writable part of the rows of [`WordRows`].
pub struct WordRowsMut<'a> {
    vectors: &'a mut [i8],
    scales: &'a mut [f32],
    weights: &'a mut [f32],
}

impl WordRows {
    /// Rows for this many words, all without a direction.
    pub fn zeros(count: usize) -> Self {
        Self { vectors: vec![0; count * DIMENSION], scales: vec![0.0; count], weights: vec![0.0; count] }
    }

    /// The rows in parts of `size`, which may be written in parallel.
    pub fn shares(&mut self, size: usize) -> impl Iterator<Item = WordRowsMut<'_>> {
        let vectors = self.vectors.chunks_mut(size * DIMENSION);
        let rest = self.scales.chunks_mut(size).zip(self.weights.chunks_mut(size));
        vectors.zip(rest).map(|(vectors, (scales, weights))| WordRowsMut { vectors, scales, weights })
    }
}

impl WordRowsMut<'_> {
    /// Writes a word to a row without a direction. The length of the given vector is the word's weight.
    pub fn set_direction(&mut self, row: usize, direction: &[f32; DIMENSION]) {
        let values = &mut self.vectors[row * DIMENSION..(row + 1) * DIMENSION];
        (self.scales[row], self.weights[row]) = quantise_into(direction, values);
    }

    fn set(&mut self, row: usize, word: &Word) {
        self.vectors[row * DIMENSION..(row + 1) * DIMENSION].copy_from_slice(&word.vector.values);
        (self.scales[row], self.weights[row]) = (word.vector.scale, word.weight);
    }
}

/// The entry of a word in a lexicon.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// Its direction; all zeros for a word without one.
    pub vector: Vector,
    /// The weight of the word in the mean of a text.
    pub weight: f32,
    /// How much the word says about the topic of a text, from 0 for the most common words to 1 for the rarest.
    pub rarity: f32,
}

impl Word {
    /// A word with the given vector, whose length is the word's weight, and its probability.
    pub fn new(direction: &[f32; DIMENSION], probability: f32) -> Self {
        let (vector, weight) = Vector::with_norm(direction);
        Self { vector, weight, rarity: rarity(probability) }
    }
}

/// How much a word of this probability says about the topic of a text, from 0 to 1.
pub fn rarity(probability: f32) -> f32 {
    WORD_RARITY / (WORD_RARITY + probability)
}

/// The direction of a text: the weighted sum of the directions of its words, not normalised.
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

/// Adds `weight` times a vector, given as the bytes of a table.
pub fn add_bytes(sum: &mut [f32], values: &[u8], weight: f32) {
    add_numbers(sum, values, weight, |value| value.cast_signed());
}

fn add_numbers<T>(sum: &mut [f32], values: &[T], weight: f32, number: impl Fn(&T) -> i8) {
    #[cfg(target_arch = "x86_64")]
    {
        // The same loop for registers of twice the width. It gives the same numbers.
        #[target_feature(enable = "avx2")]
        fn add_avx2<T>(sum: &mut [f32], values: &[T], weight: f32, number: impl Fn(&T) -> i8) {
            add_each(sum, values, weight, number);
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the condition above checks that the processor has the one feature that the function needs.
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
