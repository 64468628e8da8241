//! A question, analysed for ranking.

use jiff::Timestamp;

use super::multi_question;
use crate::index::{TermHash, is_latin, question_terms, question_words};
use strata_core::lexicon::{DIMENSION, Lexicon, Word, add};
use strata_core::vector::Vector;
use strata_language::cues;
use strata_language::time;
use strata_language::time::{Precision, TimeSpan};

/// A question, analysed.
pub(crate) struct Question {
    pub(crate) text: String,
    /// When it is asked, in microseconds.
    pub(crate) asked_at: i64,
    /// Its distinct terms with their counts.
    pub(crate) terms: Vec<(TermHash, u8)>,
    /// Its distinct words.
    pub(crate) words: Vec<QuestionWord>,
    /// The vector of all its words together.
    pub(crate) mean: Vector,
    /// The times it names.
    pub(crate) times: Vec<TimeSpan>,
    /// Whether an encoder that knows no Chinese can read it.
    pub(crate) latin: bool,
    /// Whether it is a task that refers to nothing of the user's own, so that only a strong match helps.
    pub(crate) is_general: bool,
    /// The single questions in it, if it asks several things at once.
    pub(crate) sub_questions: Vec<Self>,
}

/// A word of a question.
pub(crate) struct QuestionWord {
    pub(crate) text: String,
    pub(crate) word: Word,
    /// Its weight: its rarity, higher if the question repeats it.
    pub(crate) weight: f32,
    /// Whether it holds a digit: numbers match only themselves.
    pub(crate) numeric: bool,
}

impl Question {
    /// Analyses a message that is asked at `now`, and the single questions in it.
    pub(crate) fn new(text: &str, now: Timestamp, lexicon: &dyn Lexicon) -> Self {
        let mut sub_questions: Vec<Self> =
            multi_question::split(text).into_iter().map(|part| Self::one(part, now, lexicon)).collect();
        sub_questions.retain(Self::stands_alone);
        if !(2..=multi_question::MAX_QUESTIONS).contains(&sub_questions.len()) {
            sub_questions.clear();
        }
        Self { sub_questions, ..Self::one(text, now, lexicon) }
    }

    /// Whether the question can be answered on its own: «really?» and «is it?» cannot.
    fn stands_alone(&self) -> bool {
        !self.words.is_empty() && (self.words.len() > 1 || self.text.split_whitespace().count() > 1)
    }

    /// Each single question: the message itself, or the questions in it.
    pub(crate) fn each(&self) -> &[Self] {
        if self.sub_questions.is_empty() { std::slice::from_ref(self) } else { &self.sub_questions }
    }

    fn one(text: &str, now: Timestamp, lexicon: &dyn Lexicon) -> Self {
        let mut mean = [0.0; DIMENSION];
        let words = question_words(text, lexicon)
            .into_iter()
            .map(|(text, count)| {
                let word = lexicon.word(&text);
                add(&mut mean, &word.vector.values, f32::from(count) * word.weight * word.vector.scale);
                QuestionWord {
                    weight: word.rarity * repeated(count),
                    numeric: text.chars().any(char::is_numeric),
                    text,
                    word,
                }
            })
            .collect();
        Self {
            text: text.to_owned(),
            asked_at: now.as_microsecond(),
            terms: question_terms(text),
            words,
            mean: Vector::quantise(&mean),
            times: times(text, now),
            latin: is_latin(text),
            is_general: cues::is_general_request(text),
            sub_questions: Vec::new(),
        }
    }
}

/// The factor of a word or term that occurs `count` times in a question.
pub(crate) fn repeated(count: u8) -> f32 {
    (1.0 + f32::from(count)).log2()
}

/// The times that a question names. Today is left out: «how are you today» does not ask for items of today.
fn times(text: &str, now: Timestamp) -> Vec<TimeSpan> {
    let mut times = time::parse(text, now);
    times.retain(|span| span.precision > Precision::Day || !span.contains(now));
    times
}

/// A span in microseconds, extended to whole days: an item with a date and no time is stored with the time midnight.
pub(crate) fn whole_days(span: &TimeSpan) -> (i64, i64) {
    const DAY: i64 = 86_400_000_000;
    let (start, end) = (span.start.as_microsecond(), span.end.as_microsecond());
    (start.div_euclid(DAY) * DAY, end.saturating_add(DAY - 1).div_euclid(DAY) * DAY)
}
