//! Whole words, for vectors: they are not stemmed, and Chinese comes in runs for a dictionary to split.

use super::normalise::normalise;
use super::runs::skip_clitic;
use super::{MAX_TERM_CHARS, is_stop_word};

/// A word or a run of normalised text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordRun<'a> {
    /// A word between separators.
    Spaced(&'a str),
    /// Chinese characters without a break. A dictionary finds the words in them.
    Han(&'a str),
}

/// Calls `emit` with the words of `text` except stop words, in order and with repeats.
pub fn for_each_word(text: &str, mut emit: impl FnMut(WordRun<'_>)) {
    let text = normalise(text);
    let mut rest: &str = &text;
    while let Some(first) = rest.chars().next() {
        let han = is_han(first);
        if !han && !first.is_alphanumeric() {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let end = rest.find(|c: char| if han { !is_han(c) } else { is_han(c) || !c.is_alphanumeric() });
        let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
        if han {
            emit(WordRun::Han(run));
            rest = after;
        } else {
            if !is_stop_word(run) {
                let end = run.char_indices().nth(MAX_TERM_CHARS).map_or(run.len(), |(at, _)| at);
                emit(WordRun::Spaced(&run[..end]));
            }
            rest = skip_clitic(after);
        }
    }
}

fn is_han(c: char) -> bool {
    ('\u{3400}'..='\u{9FFF}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_apart_and_chinese_in_runs() {
        let check = |text: &str, expected: &[&str]| {
            let mut words = Vec::new();
            for_each_word(text, |word| match word {
                WordRun::Spaced(word) => words.push(word.to_owned()),
                WordRun::Han(run) => words.push(format!("<{run}>")),
            });
            assert_eq!(words, expected, "{text}");
        };
        check("I don't like Bart's café_bar!", &["don", "like", "bart", "cafe", "bar"]);
        check("我在2023年去了Paris", &["<我在>", "2023", "<年去了>", "paris"]);
        check("", &[]);
    }
}
