//! Token counting: exact for OpenAI's vocabularies, estimated for every other model.
//!
//! The vocabularies are inside the binary and are unpacked on first use, so that a process that counts nothing pays nothing.
//! Unpacking `o200k` takes 35 MB of memory and 70 ms, `cl100k` 14 MB and 25 ms, beside the pages of the binary itself.
//! Counting is linear in the text, even for a megabyte of one repeated character.

use strata_core::Error;
use strata_core::names::{Named, unknown};
use strata_core::ports::{EstimatedTokens, TokenCounter};
use strum::{EnumString, IntoStaticStr, VariantArray};

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
        let count = match self {
            Self::O200k => bpe_openai::o200k_base().count(text),
            Self::Cl100k => bpe_openai::cl100k_base().count(text),
            Self::Estimate => return EstimatedTokens.count(text),
        };
        u32::try_from(count).unwrap_or(u32::MAX)
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
    fn a_megabyte_of_one_character_is_counted() {
        for character in ['a', ' ', '\n', '!', '1', '界', '🦀', '\u{301}'] {
            let text = String::from(character).repeat(1024 * 1024 / character.len_utf8());
            for tokenizer in Tokenizer::ALL {
                let count = tokenizer.count(&text);
                assert!(count > 1000 && count as usize <= text.len(), "{tokenizer:?} {character:?}: {count}");
            }
        }
    }

    proptest! {
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
