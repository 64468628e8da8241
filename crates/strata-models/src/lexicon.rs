//! The built-in embedder: a direction for every English and Chinese word, inside the binary.
//!
//! English words are cut into word pieces whose vectors were distilled from a sentence encoder; Chinese words take the
//! vectors of a dictionary's English glosses, so both languages share one space. `data/README.md` describes the tables
//! and `tools/distill` makes them. Nothing is read from disk and nothing is computed before a word is asked for.

mod chinese;
mod pieces;

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use strata_core::lexicon::{DIMENSION, Lexicon, Word, mean, rarity};
use strata_core::ports::{Embedder, EmbedderCost, Passage};
use strata_core::{Result, text};

use chinese::Chinese;
use pieces::Pieces;

/// The built-in lexicon. Making one costs nothing: the tables are prepared when the first word is looked up.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltinLexicon;

/// The tables inside the binary. They are part of the program, so that damage to them is a defect that a test finds;
/// should it happen all the same, words have no vectors and recall goes by terms alone.
static TABLES: LazyLock<Option<Tables>> = LazyLock::new(|| {
    let tables = Pieces::new().and_then(|pieces| Ok(Tables { pieces, chinese: Chinese::new()? }));
    tables.inspect_err(|error| tracing::error!(%error, "the built-in lexicon is damaged")).ok()
});

struct Tables {
    pieces: Pieces,
    chinese: Chinese,
}

impl BuiltinLexicon {
    /// The tables inside the binary.
    pub fn new() -> Self {
        Self
    }
}

impl Tables {
    /// Adds the directions of pieces; the least probability of one.
    fn add_pieces(&self, ids: impl IntoIterator<Item = u16>, sum: &mut [f32; DIMENSION]) -> f32 {
        ids.into_iter().fold(1.0, |least, id| {
            self.pieces.add_row(id, sum);
            least.min(pieces::probability(id))
        })
    }

    fn word(&self, word: &str) -> Word {
        let mut sum = [0.0; DIMENSION];
        let probability = match self.chinese.find(word) {
            Some(entry) => {
                let mut senses = 0;
                for sense in entry.senses() {
                    self.add_pieces(sense, &mut sum);
                    senses += 1;
                }
                // The mean of the senses, and less of it for a common word: glosses of 的 and 是 would drown the rest.
                let factor = rarity(entry.probability()) / senses.max(1) as f32;
                sum.iter_mut().for_each(|value| *value *= factor);
                entry.probability()
            }
            None => self.add_pieces(self.pieces.cut(word), &mut sum),
        };
        Word::new(&sum, probability)
    }
}

impl Lexicon for BuiltinLexicon {
    fn for_each_word(&self, text: &str, emit: &mut dyn FnMut(&str)) {
        text::for_each_word(text, |word| match (word, &*TABLES) {
            (text::WordRun::Han(run), Some(tables)) => tables.chinese.cut(run, emit),
            (text::WordRun::Spaced(word) | text::WordRun::Han(word), _) => emit(word),
        });
    }

    fn word(&self, word: &str) -> Word {
        TABLES.as_ref().map_or_else(|| Word::new(&[0.0; DIMENSION], 0.0), |tables| tables.word(word))
    }
}

/// The lexicon as an embedder: the mean of a text's words. It answers in microseconds.
pub struct BuiltinEmbedder {
    lexicon: Arc<dyn Lexicon>,
}

impl BuiltinEmbedder {
    /// An embedder over the lexicon.
    pub fn new(lexicon: Arc<dyn Lexicon>) -> Self {
        Self { lexicon }
    }
}

#[async_trait]
impl Embedder for BuiltinEmbedder {
    fn model(&self) -> &str {
        "builtin-1"
    }

    fn cost(&self) -> EmbedderCost {
        EmbedderCost::Local
    }

    async fn embed_passages(&self, passages: &[Passage]) -> Result<Vec<Vec<f32>>> {
        Ok(passages.iter().map(|passage| mean(self.lexicon.as_ref(), &passage.text)).collect())
    }

    async fn embed_question(&self, question: &str) -> Result<Vec<f32>> {
        Ok(mean(self.lexicon.as_ref(), question))
    }
}
