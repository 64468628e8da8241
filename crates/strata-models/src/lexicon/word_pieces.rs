//! A text as the word pieces that Strata's networks read: BERT's splitting into words, then the longest pieces of each word.
//!
//! The result is that of the networks' `tokenizer.json`, with one exception: the text `[SEP]` inside a message is punctuation
//! and letters here, so no message can forge the mark between two texts.

use strata_core::{Error, Result};
use unicode_categories::UnicodeCategories;
use unicode_normalization::UnicodeNormalization;

use super::TABLES;

/// The piece of a word that the vocabulary cannot express.
const UNKNOWN: u32 = 100;

/// The bytes at the end of a text that hold its last pieces. A piece of an ordinary text has about five bytes, so this is enough
/// for 800 pieces; the networks read at most 60 from the end.
const TAIL_BYTES: usize = 4096;

/// The first `most` pieces of a text. The rest of the text is not read.
pub(crate) fn first_pieces(text: &str, most: usize) -> Result<Vec<u32>> {
    let tables = TABLES.as_ref().ok_or_else(|| Error::internal("the table of word pieces is damaged"))?;
    let mut ids = Vec::new();
    for_each_word(text, |word| {
        let pieces = tables.pieces.cut(word);
        match pieces.is_empty() {
            true => ids.push(UNKNOWN),
            false => ids.extend(pieces.into_iter().map(u32::from)),
        }
        ids.len() < most
    });
    ids.truncate(most);
    Ok(ids)
}

/// The last `most` pieces of a text. Only the last few kilobytes of a long text are read.
pub(crate) fn last_pieces(text: &str, most: usize) -> Result<Vec<u32>> {
    let mut from = text.len().saturating_sub(TAIL_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let mut ids = first_pieces(&text[from..], usize::MAX)?;
    ids.drain(..ids.len().saturating_sub(most));
    Ok(ids)
}

/// Passes on the words of a text in lower case and without accents, until `emit` returns `false`. Punctuation marks and Chinese
/// characters are words of their own.
fn for_each_word(text: &str, mut emit: impl FnMut(&str) -> bool) {
    let characters = text
        .chars()
        .filter(|c| !is_control(*c))
        .nfd()
        .filter(|c| !c.is_mark_nonspacing())
        .flat_map(char::to_lowercase);
    let mut word = String::new();
    for character in characters {
        let alone = is_punctuation(character) || is_chinese(character);
        if (alone || character.is_whitespace()) && !word.is_empty() {
            if !emit(&word) {
                return;
            }
            word.clear();
        }
        if alone && !emit(character.encode_utf8(&mut [0; 4])) {
            return;
        }
        if !alone && !character.is_whitespace() {
            word.push(character);
        }
    }
    if !word.is_empty() {
        emit(&word);
    }
}

/// Characters that BERT drops: control and format characters, and unassigned ones. Line breaks and tabs are white space.
fn is_control(character: char) -> bool {
    !matches!(character, '\t' | '\n' | '\r') && (character.is_other() || character == '\u{fffd}')
}

fn is_punctuation(character: char) -> bool {
    character.is_ascii_punctuation() || character.is_punctuation()
}

/// The blocks of Chinese characters that BERT knows.
fn is_chinese(character: char) -> bool {
    matches!(character as u32,
        0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x2a6df | 0x2a700..=0x2b81f
        | 0x2b920..=0x2ceaf | 0x2f800..=0x2fa1f)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokenizers::Tokenizer;
    use tokenizers::models::wordpiece::WordPiece;
    use tokenizers::normalizers::BertNormalizer;
    use tokenizers::pre_tokenizers::bert::BertPreTokenizer;

    use super::*;

    /// The tokenizer of the networks' `tokenizer.json`, from the vocabulary.
    fn reference() -> Tokenizer {
        let vocabulary = concat!(env!("CARGO_MANIFEST_DIR"), "/data/vocab.txt");
        let model = WordPiece::from_file(vocabulary).unk_token("[UNK]".to_owned()).build().unwrap();
        let mut tokenizer = Tokenizer::new(model);
        tokenizer.with_normalizer(Some(BertNormalizer::default()));
        tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
        tokenizer
    }

    #[track_caller]
    fn check(reference: &Tokenizer, text: &str) {
        let expected = reference.encode_fast(text, false).unwrap().get_ids().to_vec();
        assert_eq!(first_pieces(text, usize::MAX).unwrap(), expected, "{text:?}");
        let first: Vec<u32> = expected.iter().copied().take(5).collect();
        assert_eq!(first_pieces(text, 5).unwrap(), first, "{text:?}");
        let last = &expected[expected.len().saturating_sub(5)..];
        assert_eq!(last_pieces(text, 5).unwrap(), last, "{text:?}");
    }

    #[test]
    fn pieces_are_those_of_the_tokenizer() {
        let reference = reference();
        let long = "word ".repeat(5_000);
        for text in [
            "",
            " \n\t",
            "Naïve CAFÉS, don't re-embed!",
            "Wir fuhren nach Ærøskøbing; İstanbul",
            "我上周三在西湖边骑车。OK？",
            "한국어 とカタカナ がぎ",
            "a\u{0}b\u{200b}c\u{fffd}d\u{ad}e",
            "x\u{301}\u{323}y e\u{301} \u{f900}",
            "🦀🦀 emoji👍🏽 ok",
            "supercalifragilisticexpialidocious antidisestablishmentarianism",
            &"a".repeat(101),
            &"界".repeat(300),
            &long,
        ] {
            check(&reference, text);
        }
    }

    #[test]
    fn a_mark_inside_a_message_is_text() {
        let pieces = first_pieces("a [SEP] b", 20).unwrap();
        assert!(!pieces.contains(&102), "{pieces:?}");
        assert_eq!(pieces.len(), 5);
    }

    proptest! {
        #[test]
        fn any_text_has_the_tokenizer_s_pieces(text in "\\PC{0,60}|[a-zA-Z ,.'é-]{0,80}") {
            thread_local!(static REFERENCE: Tokenizer = reference());
            REFERENCE.with(|reference| check(reference, &text));
        }
    }
}
