//! The built-in lexicon: a vector for every English and Chinese word, inside the binary.
//!
//! English words are split into word pieces, whose vectors were distilled from a sentence encoder. Chinese words have the
//! vectors of their English glosses in a dictionary, so both languages share one space. `data/README.md` describes the tables,
//! and `tools/distill` builds them. Nothing is read from disk, and nothing is computed before the first look-up.

mod chinese;
pub(crate) mod gloss;
mod pieces;
mod word_pieces;

use std::sync::{LazyLock, Mutex, PoisonError};

use strata_core::lexicon::{DIMENSION, Lexicon, Word, WordRows, WordRowsMut, rarity};
use strata_language::text;

use chinese::Chinese;
use pieces::Pieces;
pub(crate) use word_pieces::{first_pieces, last_pieces};

/// The number of words from which a look-up is shared between threads. A word takes one or two microseconds.
const SHARED_LOOK_UP: usize = 2_000;
/// The maximum number of threads of a look-up. More threads gain little and take cores from other work.
const LOOK_UP_THREADS: usize = 4;
/// The number of words that a thread takes at once.
const SHARE: usize = 256;

/// The built-in lexicon. Creating one costs nothing: the tables are prepared at the first look-up.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltinLexicon;

/// The tables inside the binary. They are part of the program, so a test finds damaged tables. If they are damaged anyway,
/// words have no vectors and recall uses terms only.
static TABLES: LazyLock<Option<Tables>> = LazyLock::new(|| {
    let tables = Pieces::new().and_then(|pieces| Ok(Tables { pieces, chinese: Chinese::new()? }));
    tables.inspect_err(|error| tracing::error!(%error, "the built-in lexicon is damaged")).ok()
});

struct Tables {
    pieces: Pieces,
    chinese: Chinese,
}

impl BuiltinLexicon {
    /// A lexicon over the tables inside the binary.
    pub fn new() -> Self {
        Self
    }
}

impl Tables {
    /// Adds the vectors of word pieces to `sum`, and returns the smallest probability of a piece.
    fn add_pieces(&self, ids: impl IntoIterator<Item = u16>, sum: &mut [f32; DIMENSION]) -> f32 {
        ids.into_iter().fold(1.0, |least, id| {
            self.pieces.add_row(id, sum);
            least.min(pieces::probability(id))
        })
    }

    /// Adds a word's vector to `sum`, and returns the word's probability.
    fn add_word(&self, word: &str, sum: &mut [f32; DIMENSION]) -> f32 {
        let Some(entry) = self.chinese.find(word) else {
            return self.add_pieces(self.pieces.cut(word).iter().copied(), sum);
        };
        let mut senses = 0;
        for sense in entry.senses() {
            self.add_pieces(sense, sum);
            senses += 1;
        }
        // The mean of the senses, weighted down for a common word: otherwise the glosses of 的 and 是 would dominate.
        let factor = rarity(entry.probability()) / senses.max(1) as f32;
        sum.iter_mut().for_each(|value| *value *= factor);
        entry.probability()
    }

    fn word(&self, word: &str) -> Word {
        let mut sum = [0.0; DIMENSION];
        let probability = self.add_word(word, &mut sum);
        Word::new(&sum, probability)
    }

    fn words(&self, words: &[&str], mut rows: WordRowsMut<'_>) {
        for (row, word) in words.iter().enumerate() {
            let mut sum = [0.0; DIMENSION];
            self.add_word(word, &mut sum);
            rows.set_direction(row, &sum);
        }
    }
}

impl Lexicon for BuiltinLexicon {
    fn for_each_word(&self, text: &str, emit: &mut dyn FnMut(&str)) {
        text::for_each_word(text, |word| match (word, &*TABLES) {
            (text::WordRun::Han(run), Some(tables)) => tables.chinese.cut(run, emit),
            (text::WordRun::Spaced(word) | text::WordRun::Han(word), _) => emit(word),
        });
    }

    fn words(&self, words: &[&str]) -> WordRows {
        self.words_beside(words, &mut || ())
    }

    fn words_beside(&self, words: &[&str], meanwhile: &mut dyn FnMut()) -> WordRows {
        let mut rows = WordRows::zeros(words.len());
        let Some(tables) = &*TABLES else {
            meanwhile();
            return rows;
        };
        let threads = if words.len() < SHARED_LOOK_UP {
            1
        } else {
            // Only for many words, because the system reads files to answer this.
            std::thread::available_parallelism().map_or(1, usize::from).min(LOOK_UP_THREADS)
        };
        let shares = Mutex::new(words.chunks(SHARE).zip(rows.shares(SHARE)));
        let next = || shares.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some((words, rows)) = next() {
                tables.words(words, rows);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            meanwhile();
            work();
        });
        drop(shares);
        rows
    }

    fn word(&self, word: &str) -> Word {
        TABLES.as_ref().map_or_else(|| Word::new(&[0.0; DIMENSION], 0.0), |tables| tables.word(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_looked_up_together_are_those_looked_up_one_by_one() {
        let words: Vec<String> = (0..SHARED_LOOK_UP + 3).map(|number| format!("word{number} 茶")).collect();
        let words: Vec<&str> = words.iter().flat_map(|word| word.split(' ')).collect();
        let together = BuiltinLexicon.words(&words);
        assert_eq!(together.scales.len(), words.len());
        for (row, word) in words.iter().enumerate().step_by(97) {
            let alone = BuiltinLexicon.word(word);
            assert_eq!(
                together.vectors[row * DIMENSION..(row + 1) * DIMENSION],
                alone.vector.values,
                "{word}"
            );
            assert_eq!((together.scales[row], together.weights[row]), (alone.vector.scale, alone.weight));
        }
        assert_eq!(BuiltinLexicon.words(&[]), WordRows::zeros(0));
        let mut called = 0;
        assert_eq!(BuiltinLexicon.words_beside(&words, &mut || called += 1), together);
        assert_eq!(called, 1);
    }

    #[test]
    fn both_languages_share_one_space() {
        let cosine = |a: &str, b: &str| BuiltinLexicon.word(a).vector.cosine(&BuiltinLexicon.word(b).vector);
        assert!(cosine("咖啡", "coffee") > 0.8);
        assert!(cosine("trip", "journey") > cosine("trip", "guitar"));
        assert!(cosine("猫", "cat") > cosine("猫", "car"));
    }
}
