//! Scores that mean the same for every question and every user: the probability that an item helps to answer.
//!
//! The ranking score cannot tell: something always ranks first, also for a question that nothing answers. The probability
//! comes from two logistic regressions, one with and one without an encoder. Both were fitted on public conversations, on
//! questions asked of their own conversation and of another one, which cannot answer them. `docs/recall.md` gives the
//! features, the fit and what it reaches; `strata eval --foreign` measures it.

use super::rank::{FULL_TERM, LEXICAL_WEIGHT, Ranked, ScoreParts};

/// The regression without an encoder.
const BY_WORDS: WordModel = WordModel {
    exact: 7.3,
    terms: 8.3,
    length: 2.8,
    searched: 0.6,
    offset: -9.6,
    chinese_offset: -7.4,
    min_words: 4,
};

/// The regression with an encoder.
const BY_ENCODER: EncoderModel =
    EncoderModel { score: 8.9, cosine: 10.0, length: 2.1, searched: 1.0, offset: -14.8, min_words: 8 };

/// The number of words for which `searched` adds nothing. The best of many items looks better than the best of few, by
/// chance alone.
const USUAL_SEARCHED: f32 = 12_000.0;
/// The range of words in which `searched` counts: that of the conversations of the fit. By words alone, an item of a
/// small store that shares one word with the question is no better than one of a large store. With an encoder, an item of a
/// small store that is about the same topic is little better. A lower limit serves more answers of small stores and more
/// items that only resemble the question: at 1,000, 70 % of the unanswerable questions of `evals/small-stores` were served
/// something.
const SEARCHED_BY_WORDS: (f32, f32) = (USUAL_SEARCHED, 54_000.0);
const SEARCHED_BY_ENCODER: (f32, f32) = (4_000.0, 36_000.0);

/// The regression with an encoder for an item in another script than the question. The cosine of an answer is lower there (a
/// median of 0.37 instead of 0.6) and spreads less, so the other regression tells it from noise by chance only; words of like
/// meaning in the two languages tell more. Fitted on the pairs of `crosslang` and on questions of other sets that the
/// conversations of the other language cannot answer: of the latter 10 % are served something, of the answers 74 %, where the
/// other regression served 15 and 57 %. Fitted on one direction, the two weights order the other one as well.
const ENCODED_ACROSS: AcrossModel = AcrossModel { cosine: 8.0, lexical: 8.0, searched: 1.0, offset: -6.4 };
const SEARCHED_ACROSS_SCRIPTS: (f32, f32) = (1_000.0, 36_000.0);
/// The same without an encoder: words of like meaning alone, whatever the length of the question. Repeated words, which the
/// other regression goes by, are chance between two languages: by them, 42 % of the questions that nothing answers were served
/// something, for 54 % of the answers; now 15 % for 57 %.
const WORDS_ACROSS: AcrossModel = AcrossModel { cosine: 0.0, lexical: 8.0, searched: 0.6, offset: -2.14 };

/// The regression with the reader's logit, for questions in small stores. The words that question and item share, and those of the
/// question that the item lacks, tell nothing there: they are the same for «who is the vet?» and «what does the vet charge?».
/// Fitted on `evals/withheld`.
const BY_READING: ReadingModel = ReadingModel { logit: 0.82, cosine: 1.4, offset: -0.5 };

/// The share of an item's own log odds beside the best of the items that were read.
const OWN_SHARE_BY_READING: f32 = 0.5;

/// The share of an item's own evidence in its log odds; the rest is the evidence of the best item. An answer in several
/// parts has weak parts, and they help only beside the best one. An encoder finds parts that share no word with the
/// question, so with one the best item counts for more.
const OWN_SHARE_BY_WORDS: f32 = 0.45;
const OWN_SHARE_BY_ENCODER: f32 = 0.35;

/// The log odds of the best item count up to this value for the others: beside a certain answer, an item that shares one
/// word with the question helps as little as alone.
const BEST_COUNTS: f32 = 1.0;

struct WordModel {
    /// The weight of the share of the question that the item itself repeats.
    exact: f32,
    /// The weight of BM25, as a share of the question.
    terms: f32,
    /// The weight of the question's length, as the logarithm of its number of words: no item covers a long question.
    length: f32,
    /// The weight of the logarithm of the number of words that were searched, which counts against an item.
    searched: f32,
    offset: f32,
    /// Instead of `offset` for a question in Chinese, whose words match less often.
    chinese_offset: f32,
    /// A question with fewer words counts as this long: below it, the evidence does not depend on the length.
    min_words: usize,
}

struct EncoderModel {
    /// The weight of the ranking score.
    score: f32,
    /// The weight of the encoder's cosine.
    cosine: f32,
    /// As in [`WordModel`].
    length: f32,
    /// As in [`WordModel`].
    searched: f32,
    offset: f32,
    /// As in [`WordModel`].
    min_words: usize,
}

struct AcrossModel {
    /// The weight of the encoder's cosine.
    cosine: f32,
    /// The weight of terms and words.
    lexical: f32,
    /// As in [`WordModel`].
    searched: f32,
    offset: f32,
}

struct ReadingModel {
    /// The weight of the reader's logit.
    logit: f32,
    /// The weight of the encoder's cosine.
    cosine: f32,
    offset: f32,
}

/// The properties of a question that its scores depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct QuestionShape {
    /// The number of its words.
    pub(super) words: usize,
    /// Whether it is written in Latin script.
    pub(super) latin: bool,
    /// The number of words of all items of the user, if it is known.
    pub(super) searched_words: Option<u64>,
}

impl QuestionShape {
    fn length(self, min_words: usize) -> f32 {
        (1.0 + self.words.max(min_words) as f32).ln()
    }

    /// How much more was searched than usual, as a logarithm.
    fn searched(self, (least, most): (f32, f32)) -> f32 {
        let words = self.searched_words.map_or(USUAL_SEARCHED, |words| words as f32);
        (words.clamp(least, most) / USUAL_SEARCHED).ln()
    }

    /// The log odds that an item helps, from its own evidence. A long item that alone has a rare word of the question is judged by
    /// its words too, without the loss by its length: the encoder has not read it to its end.
    fn log_odds(self, score: f32, parts: &ScoreParts) -> f32 {
        let read = self.as_read(score, parts);
        match parts.sole > 0.0 && !parts.across {
            true => read.max(self.by_words(parts.exact, parts.terms.max(FULL_TERM * parts.sole))),
            false => read,
        }
    }

    fn as_read(self, score: f32, parts: &ScoreParts) -> f32 {
        match parts.encoder {
            encoder if parts.across => self.across_scripts(encoder, parts),
            Some(cosine) => {
                let EncoderModel { score: by_score, cosine: by_cosine, length, searched, offset, min_words } =
                    BY_ENCODER;
                let score = score - parts.reweighed();
                let evidence = by_score * score + by_cosine * cosine.max(0.0);
                offset + evidence + length * self.length(min_words)
                    - searched * self.searched(SEARCHED_BY_ENCODER)
            }
            None => self.by_words(parts.exact, parts.terms),
        }
    }

    /// The log odds that an item helps, by its words alone.
    fn by_words(self, exact: f32, terms: f32) -> f32 {
        let WordModel {
            exact: by_exact,
            terms: by_terms,
            length,
            searched,
            offset,
            chinese_offset,
            min_words,
        } = BY_WORDS;
        let offset = if self.latin { offset } else { chinese_offset };
        offset + by_exact * exact + by_terms * terms + length * self.length(min_words)
            - searched * self.searched(SEARCHED_BY_WORDS)
    }
}

impl QuestionShape {
    /// The log odds that an item in another script helps. An identifier is the same in both.
    fn across_scripts(self, encoder: Option<f32>, parts: &ScoreParts) -> f32 {
        let (model, range) = match encoder {
            Some(_) => (ENCODED_ACROSS, SEARCHED_ACROSS_SCRIPTS),
            None => (WORDS_ACROSS, SEARCHED_BY_WORDS),
        };
        let words = model.lexical * (parts.terms + parts.words) + BY_ENCODER.score * parts.identified;
        let cosine = model.cosine * encoder.unwrap_or_default().max(0.0);
        model.offset + cosine + words - model.searched * self.searched(range)
    }
}

/// Sets the probability of each item of a ranking.
pub(super) fn calibrate(items: &mut [Ranked], question: QuestionShape) {
    let own: Vec<f32> = items.iter().map(|item| question.log_odds(item.score, &item.parts)).collect();
    // An item in another script says nothing about items in the question's own: by its regression, weak ones score higher.
    let best_of = |across: bool| {
        let counts = |item: &Ranked| across || !item.parts.across;
        let own = items.iter().zip(&own).filter(|(item, _)| counts(item)).map(|(_, own)| *own);
        own.fold(f32::NEG_INFINITY, f32::max).min(BEST_COUNTS)
    };
    let (best_same, best_across) = (best_of(false), best_of(true));
    for (item, own) in items.iter_mut().zip(own) {
        let matched = item.score > 0.0;
        let best = if item.parts.across { best_across } else { best_same };
        let share = match item.parts.encoder {
            Some(_) => OWN_SHARE_BY_ENCODER,
            None => OWN_SHARE_BY_WORDS,
        };
        item.relevance = if matched { probability(share * own + (1.0 - share) * best) } else { 0.0 };
    }
}

/// The probability for an item of which only the covered share of the question is known.
pub(super) fn by_coverage(covered: f32, question: QuestionShape) -> f32 {
    // Of the items that public questions find, BM25 gives about half of the share that is matched.
    let parts = ScoreParts { exact: covered, terms: covered / 2.0, ..ScoreParts::default() };
    probability(question.log_odds(covered, &parts))
}

/// The probability for an item of which the encoder's cosine and the covered share of the question are known.
pub(super) fn by_encoder(cosine: f32, covered: f32, question: QuestionShape) -> f32 {
    let parts = ScoreParts { encoder: Some(cosine), ..ScoreParts::default() };
    probability(question.log_odds(cosine + LEXICAL_WEIGHT * covered, &parts))
}

/// The probability for an item that the reader has read together with the question.
pub(super) fn by_reading(logit: f32, cosine: f32) -> f32 {
    let ReadingModel { logit: by_logit, cosine: by_cosine, offset } = BY_READING;
    probability(by_logit * logit + by_cosine * cosine + offset)
}

/// The probability for an item beside the best one: both were read.
pub(super) fn beside(own: f32, best: f32) -> f32 {
    let (own, best) = (log_odds(own), log_odds(best).min(BEST_COUNTS));
    probability(own + (1.0 - OWN_SHARE_BY_READING) * (best - own).max(0.0))
}

fn log_odds(probability: f32) -> f32 {
    (probability / (1.0 - probability)).ln()
}

/// The probability whose log odds are higher by `by`.
pub(super) fn shifted(relevance: f32, by: f32) -> f32 {
    probability(log_odds(relevance) + by)
}

fn probability(log_odds: f32) -> f32 {
    1.0 / (1.0 + (-log_odds).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(score: f32, parts: ScoreParts) -> Ranked {
        Ranked { doc: 0, score, relevance: 0.0, standing: 0.0, parts }
    }

    fn relevance(items: &mut [Ranked], words: usize) -> Vec<f32> {
        calibrate(items, QuestionShape { words, latin: true, searched_words: None });
        items.iter().map(|item| item.relevance).collect()
    }

    #[test]
    fn an_item_that_repeats_the_question_helps_and_one_with_a_stray_word_does_not() {
        let strong = ScoreParts { exact: 0.9, terms: 0.6, ..ScoreParts::default() };
        let stray = ScoreParts { exact: 0.1, terms: 0.05, ..ScoreParts::default() };
        assert!(relevance(&mut [item(1.0, strong)], 4)[0] > 0.9);
        assert!(relevance(&mut [item(0.2, stray)], 4)[0] < 0.1);
    }

    #[test]
    fn a_weak_item_beside_a_strong_one_helps_more_than_alone() {
        let strong = ScoreParts { exact: 0.9, terms: 0.6, ..ScoreParts::default() };
        let weak = ScoreParts { exact: 0.2, terms: 0.1, ..ScoreParts::default() };
        let beside = relevance(&mut [item(1.0, strong), item(0.3, weak)], 4)[1];
        let alone = relevance(&mut [item(0.3, weak)], 4)[0];
        assert!(beside > alone, "{beside} beside, {alone} alone");
    }

    #[test]
    fn the_best_of_much_helps_less_than_the_best_of_little() {
        let near = ScoreParts { encoder: Some(0.45), lexical_weight: 0.35, ..ScoreParts::default() };
        let among = |words| {
            let mut items = [item(0.5, near)];
            calibrate(&mut items, QuestionShape { words: 6, latin: true, searched_words: Some(words) });
            items[0].relevance
        };
        assert!(among(5_000) > among(20_000) && among(20_000) > among(35_000));
        assert_eq!(among(3), among(300), "a handful of words is not less than the least of the fit");
    }

    #[test]
    fn a_weak_item_in_another_language_lifts_none_in_the_question_s_own() {
        let shape = QuestionShape { words: 5, latin: true, searched_words: Some(1_500) };
        let weak = |across| {
            item(
                0.24,
                ScoreParts { encoder: Some(0.24), lexical_weight: 0.35, across, ..ScoreParts::default() },
            )
        };
        let (mut alone, mut beside) = ([weak(false)], [weak(false), weak(true)]);
        calibrate(&mut alone, shape);
        calibrate(&mut beside, shape);
        assert_eq!(alone[0].relevance, beside[0].relevance);
    }

    #[test]
    fn an_answer_in_another_language_needs_a_lower_cosine_and_words_of_like_meaning() {
        let among = |searched, parts: ScoreParts| {
            let mut items = [item(0.49, ScoreParts { lexical_weight: 0.35, ..parts })];
            calibrate(&mut items, QuestionShape { words: 6, latin: true, searched_words: Some(searched) });
            items[0].relevance
        };
        let near = ScoreParts { encoder: Some(0.37), across: true, ..ScoreParts::default() };
        let told = ScoreParts { words: 0.24, ..near };
        let far = ScoreParts { encoder: Some(0.2), ..near };
        assert!(among(1_500, told) > 0.5, "{}", among(1_500, told));
        assert!(among(1_500, near) < 0.35 && among(1_500, far) < 0.1, "{}", among(1_500, near));
        assert!(among(30_000, told) < among(3_000, told), "the best of much helps less");
        let same = |parts| ScoreParts { across: false, ..parts };
        assert!(among(1_500, told) > among(1_500, same(told)), "one language wants a higher cosine");
        let repeated = ScoreParts { encoder: None, exact: 0.5, ..near };
        assert!(among(1_500, repeated) < 0.2, "a word that both have is chance");
        assert!(among(1_500, ScoreParts { words: 0.35, ..repeated }) > 0.5, "words of like meaning are not");
        let numbered = ScoreParts { identified: 1.0, ..far };
        assert!(among(1_500, numbered) > 0.9, "a number is the same in every language");
    }

    #[test]
    fn a_reading_decides_between_items_of_one_topic() {
        assert!(by_reading(4.0, 0.5) > 0.5 && by_reading(-2.0, 0.5) < 0.3);
        assert!(by_reading(1.0, 0.3) < by_reading(1.0, 0.6));
        // A weak item gains beside a strong one, and never passes it.
        let (weak, strong) = (by_reading(-1.0, 0.4), by_reading(4.0, 0.6));
        assert!(weak < beside(weak, strong) && beside(weak, strong) < strong);
        assert!((beside(strong, strong) - strong).abs() < 1e-5);
    }

    #[test]
    fn an_item_without_any_match_never_helps() {
        let strong = ScoreParts { exact: 1.0, terms: 1.0, ..ScoreParts::default() };
        assert_eq!(relevance(&mut [item(1.0, strong), item(0.0, ScoreParts::default())], 4)[1], 0.0);
    }

    #[test]
    fn a_cosine_decides_where_words_differ() {
        let near = ScoreParts { encoder: Some(0.7), ..ScoreParts::default() };
        let far = ScoreParts { encoder: Some(0.2), ..ScoreParts::default() };
        assert!(relevance(&mut [item(0.75, near)], 6)[0] > 0.7);
        assert!(relevance(&mut [item(0.25, far)], 6)[0] < 0.05);
    }
}
