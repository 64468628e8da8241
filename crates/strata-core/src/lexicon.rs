//! Words with directions: what lets recall match «trip» with «journey», and 咖啡 with «coffee», without any network.
//!
//! A [`Lexicon`] gives words and their vectors; the tables live elsewhere. Here is what ranking does with them.

use crate::vector::Vector;

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
    fn words(&self, words: &[Box<str>]) -> Vec<Word> {
        words.iter().map(|word| self.word(word)).collect()
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
pub(crate) fn add(sum: &mut [f32], values: &[i8], weight: f32) {
    for (sum, value) in sum.iter_mut().zip(values) {
        *sum += weight * f32::from(*value);
    }
}
