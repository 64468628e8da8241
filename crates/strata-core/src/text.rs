//! Text analysis: from a text to the terms that are indexed and searched, in every backend alike.

use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// The terms of `text` as they are indexed, in order and with repeats.
pub fn analyse(text: &str) -> Vec<String> {
    let text: String = text.nfkc().collect::<String>().to_lowercase();
    text.unicode_words().map(str::to_owned).collect()
}

/// The distinct terms of a question, in order of first appearance.
pub fn query_terms(text: &str) -> Vec<String> {
    let mut terms = analyse(text);
    let mut seen = std::collections::HashSet::new();
    terms.retain(|term| seen.insert(term.clone()));
    terms
}

/// The text as it is compared when looking for a substring: normalised, lower case, white space folded.
pub fn fold(text: &str) -> String {
    text.nfkc().collect::<String>().to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How much two words resemble each other, from 0 to 1, by shared trigrams.
pub fn trigram_similarity(a: &str, b: &str) -> f32 {
    let trigrams = |word: &str| {
        let padded: Vec<char> = "  ".chars().chain(word.chars()).chain(" ".chars()).collect();
        padded.windows(3).map(<[char]>::to_vec).collect::<std::collections::HashSet<_>>()
    };
    let (a, b) = (trigrams(a), trigrams(b));
    let shared = a.intersection(&b).count() as f32;
    shared / (a.len() + b.len()) as f32 * 2.0
}
