//! Words with directions: what lets recall match «trip» with «journey», and 咖啡 with «coffee», without any network.
//!
//! A [`Lexicon`] gives words and their vectors; the tables live elsewhere. Here is what ranking does with them.

use crate::vector::Vector;

/// The dimension of a word's vector.
pub const DIMENSION: usize = 256;

/// How much a word counts in the mean of a text falls with how common it is: a / (a + p), with a = 1e-4 as published for
/// smooth inverse frequency.
pub const WORD_RARITY: f32 = 1e-4;

/// Words and their vectors.
pub trait Lexicon: Send + Sync + 'static {
    /// Calls `emit` with the words of a text, stop words left out, in order and with repeats.
    fn for_each_word(&self, text: &str, emit: &mut dyn FnMut(&str));

    /// What is known of a word that [`Lexicon::for_each_word`] gave.
    fn word(&self, word: &str) -> Word;
}

/// What a lexicon knows of a word.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// Its direction; all zeros for a word without one.
    pub vector: Vector,
    /// How common it is in general, as a probability; 0 for one that no list has.
    pub probability: f32,
}

impl Word {
    /// A word of the given direction, of any length.
    pub fn new(direction: &[f32; DIMENSION], probability: f32) -> Self {
        Self { vector: Vector::quantise(direction), probability }
    }

    /// How much the word tells, from 0 for the most common to 1 for the rarest.
    pub fn rarity(&self) -> f32 {
        rarity(self.probability)
    }
}

/// How much a word of this probability tells, from 0 to 1.
pub fn rarity(probability: f32) -> f32 {
    WORD_RARITY / (WORD_RARITY + probability)
}

/// The direction of a text: the mean of its words' directions, rare words counting more. Not normalised.
pub fn mean(lexicon: &dyn Lexicon, text: &str) -> Vec<f32> {
    let mut sum = vec![0.0; DIMENSION];
    lexicon.for_each_word(text, &mut |text| {
        let word = lexicon.word(text);
        let weight = word.rarity() * word.vector.scale;
        for (sum, value) in sum.iter_mut().zip(&word.vector.values) {
            *sum += weight * f32::from(*value);
        }
    });
    sum
}
