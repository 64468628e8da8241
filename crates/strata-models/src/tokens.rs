//! Token counting: exact for OpenAI's vocabularies, estimated for every other model.
//!
//! The vocabularies are inside the binary (`data/o200k.bin`, `data/cl100k.bin`). Their look-up tables are made on first use, so
//! that a process that counts nothing pays nothing. A text is cut into words, and a word that is not a token itself is merged
//! from its bytes; a text without a break is counted in little more than linear time.

mod ascii;
mod vocabulary;

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};
use strata_core::Error;
use strata_core::names::{Named, unknown};
use strata_core::ports::{EstimatedTokens, TokenCounter};
use strum::{EnumString, IntoStaticStr, VariantArray};

use ascii::Letters;
use vocabulary::Vocabulary;

/// How tokens are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<Tokenizer>)]
pub enum Tokenizer {
    /// The vocabulary of GPT-4o and later models.
    #[default]
    O200k,
    /// The vocabulary of GPT-4, GPT-3.5 and `text-embedding-3`.
    Cl100k,
    /// An estimate from the characters, for models whose vocabulary is not in the binary.
    Estimate,
}

impl Tokenizer {
    /// All tokenizers, in the order of preference.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The name that settings use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for Tokenizer {
    const WHAT: &'static str = "tokenizer";
}

impl TokenCounter for Tokenizer {
    fn count(&self, text: &str) -> u32 {
        let encoding = match self {
            Self::O200k => &*O200K,
            Self::Cl100k => &*CL100K,
            Self::Estimate => return EstimatedTokens.count(text),
        };
        match encoding {
            Some(encoding) => u32::try_from(encoding.count(text)).unwrap_or(u32::MAX),
            None => EstimatedTokens.count(text),
        }
    }
}

/// How OpenAI's encodings cut a text into words, as `tiktoken` publishes it, without the rule for white space before a word.
const CL100K_WORDS: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
    r"|[^\r\n\p{L}\p{N}]?\p{L}+",
    r"|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]+",
);
const O200K_WORDS: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"|\s*[\r\n]+",
);

static O200K: LazyLock<Option<Encoding>> =
    LazyLock::new(|| Encoding::read(include_bytes!("../data/o200k.bin"), O200K_WORDS, Letters::ByCase));
static CL100K: LazyLock<Option<Encoding>> =
    LazyLock::new(|| Encoding::read(include_bytes!("../data/cl100k.bin"), CL100K_WORDS, Letters::Any));

/// A vocabulary with the rule that cuts a text into words.
struct Encoding {
    vocabulary: Vocabulary,
    words: Regex,
    letters: Letters,
}

impl Encoding {
    /// The tables are part of the program, so a test finds a damaged one. If one is damaged anyway, tokens are estimated.
    fn read(table: &'static [u8], words: &str, letters: Letters) -> Option<Self> {
        let vocabulary = Vocabulary::read(table);
        let vocabulary =
            vocabulary.inspect_err(|error| tracing::error!(%error, "tokens are estimated")).ok()?;
        let words = Regex::new_many(&[words, r"\s+"]);
        let words = words.inspect_err(|error| tracing::error!(%error, "tokens are estimated")).ok()?;
        Some(Self { vocabulary, words, letters })
    }

    fn count(&self, text: &str) -> usize {
        let (mut rest, mut count) = (text, 0);
        loop {
            while let Some(end) = ascii::word(rest.as_bytes(), self.letters) {
                count += self.vocabulary.count(&rest.as_bytes()[..end]);
                rest = &rest[end..];
            }
            let Some(end) = self.word_end(rest) else { return count };
            count += self.vocabulary.count(&rest.as_bytes()[..end]);
            rest = &rest[end..];
        }
    }

    /// The end of the first word; `None` if there is no word left.
    fn word_end(&self, rest: &str) -> Option<usize> {
        let found = self.words.find(Input::new(rest).anchored(Anchored::Yes))?;
        let end = found.end();
        // Of several white-space characters before a word, the last belongs to the word.
        if found.pattern().as_usize() == 1 && end < rest.len() {
            let last = rest[..end].chars().next_back().map_or(0, char::len_utf8);
            return Some(if last < end { end - last } else { end });
        }
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, o200k: u32, cl100k: u32, estimate: u32) {
        assert_eq!(Tokenizer::O200k.count(text), o200k, "o200k of {text:?}");
        assert_eq!(Tokenizer::Cl100k.count(text), cl100k, "cl100k of {text:?}");
        assert_eq!(Tokenizer::Estimate.count(text), estimate, "estimate of {text:?}");
    }

    // The exact counts were made with tiktoken 0.14.
    #[test]
    fn counts_are_those_of_tiktoken() {
        check("", 0, 0, 0);
        check("Hello, world!", 4, 4, 4);
        check("I moved from Hangzhou to Lisbon last March.", 10, 10, 11);
        check("我上周三在西湖边骑车。", 11, 15, 11);
        check("<|endoftext|>", 7, 7, 4);
        check("  \n\n\tlet x = 1;\r\n", 7, 7, 5);
    }

    #[test]
    fn a_name_is_read_back() {
        for tokenizer in Tokenizer::ALL {
            assert_eq!(tokenizer.as_str().parse::<Tokenizer>().unwrap(), *tokenizer);
        }
        assert!("gpt-5".parse::<Tokenizer>().unwrap_err().message().contains("`gpt-5`"));
    }

    #[test]
    fn a_long_text_of_one_character_is_counted() {
        for character in ['a', ' ', '\n', '!', '1', '界', '🦀', '\u{301}'] {
            let text = String::from(character).repeat(128 * 1024 / character.len_utf8());
            for tokenizer in Tokenizer::ALL {
                let count = tokenizer.count(&text);
                assert!(count > 1000 && count as usize <= text.len(), "{tokenizer:?} {character:?}: {count}");
            }
        }
    }

    #[test]
    fn texts_of_many_kinds_have_the_counts_of_another_implementation() {
        let long = "https://example.com/a/very/long/path?with=many&parameters=1234567890#".repeat(9);
        for text in [
            "It's what they'LL do; we'd've gone. I'M HERE",
            "fn main() {\n\tprintln!(\"{:?}\", x_1 + 0xFFFF_u32);\n}\n\n\n",
            "   leading,   inner \u{a0}\u{3000} and trailing   ",
            "日本語のテキストと한국어 텍스트，以及一段没有空格的很长的中文文字用来检查长词的合并是否正确",
            "Ελληνικά, русский, العربية, हिन्दी, ไทย 12345 ½ Ⅷ",
            "👩‍👩‍👧‍👦 e\u{301}\u{323} \u{1F3FD} \0 \u{7f}",
            "Pneumonoultramicroscopicsilicovolcanoconiosisantidisestablishmentarianismqzxjv",
            &long,
        ] {
            assert_eq!(Tokenizer::O200k.count(text) as usize, bpe_openai::o200k_base().count(text), "{text}");
            assert_eq!(
                Tokenizer::Cl100k.count(text) as usize,
                bpe_openai::cl100k_base().count(text),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_has_the_counts_of_another_implementation(
            text in "\\PC{0,200}|[ \\t\\r\\na-cA-C0-9'./\u{4e00}-\u{4e20}\u{301}]{0,200}|[a-f]{40,300}"
        ) {
            prop_assert_eq!(Tokenizer::O200k.count(&text) as usize, bpe_openai::o200k_base().count(text.as_str()));
            prop_assert_eq!(Tokenizer::Cl100k.count(&text) as usize, bpe_openai::cl100k_base().count(text.as_str()));
        }

        #[test]
        fn a_text_has_no_more_tokens_than_bytes(text in any::<String>()) {
            for tokenizer in Tokenizer::ALL {
                let count = tokenizer.count(&text) as usize;
                prop_assert!(count <= text.len());
                prop_assert_eq!(count == 0, text.is_empty());
            }
        }
    }
}
