//! Gives one spelling to texts that readers consider the same: normal form, case, accents, width.

use std::borrow::Cow;
use std::cmp::Ordering;

use unicode_normalization::UnicodeNormalization;

/// Traditional characters and their simplified forms, sorted; `data/README.md` describes the file.
static SIMPLIFIED: &[u8] = include_bytes!("../../data/simplified.bin");

/// The text for substring comparison: normalised, lower case, with single spaces.
pub fn fold(text: &str) -> String {
    let text = normalise(text);
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}

/// The text with simplified characters instead of traditional ones; everything else stays.
pub fn simplified(text: &str) -> String {
    text.chars().map(unified).collect()
}

/// Composes compatibility forms (full width becomes half width), lowers the case and removes Latin accents.
///
/// Normalising twice changes nothing.
pub(super) fn normalise(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        };
    }
    let mut normalised = String::with_capacity(text.len());
    // Lower case comes first because a few capitals become two characters, and the second is a combining mark.
    let lower = text.chars().flat_map(char::to_lowercase);
    let bare = lower.nfkd().filter(|c| !is_accent(*c) && !is_invisible(*c));
    for c in bare.nfc().flat_map(char::to_lowercase) {
        match unaccented(c) {
            Some(letters) => normalised.push_str(letters),
            None => normalised.push(unified(c)),
        }
    }
    Cow::Owned(normalised)
}

/// The combining marks that Latin, Greek and Cyrillic share. Kana's voicing marks and the vowels of other scripts are
/// in other blocks and stay, because they make different letters.
fn is_accent(c: char) -> bool {
    ('\u{300}'..='\u{36F}').contains(&c)
}

/// Invisible characters inside words: soft hyphen, zero-width space and joiners, byte order mark.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{200B}'..='\u{200D}' | '\u{2060}' | '\u{FEFF}')
}

/// Letters that Unicode does not decompose, and their usual spelling on a keyboard without them.
fn unaccented(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ħ' => "h",
        'ı' => "i",
        'ς' => "σ",
        _ => return None,
    })
}

/// The character that replaces `c`: traditional Chinese becomes simplified.
fn unified(c: char) -> char {
    let Ok(unit) = u16::try_from(u32::from(c)) else { return c };
    // Most characters are not Chinese.
    if !(0x3400..=0x9FFF).contains(&unit) {
        return c;
    }
    let pair = |place: usize| {
        let at = 4 * place;
        (
            u16::from_le_bytes([SIMPLIFIED[at], SIMPLIFIED[at + 1]]),
            u16::from_le_bytes([SIMPLIFIED[at + 2], SIMPLIFIED[at + 3]]),
        )
    };
    let (mut low, mut high) = (0, SIMPLIFIED.len() / 4);
    while low < high {
        let middle = usize::midpoint(low, high);
        match pair(middle).0.cmp(&unit) {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => return char::from_u32(u32::from(pair(middle).1)).unwrap_or(c),
        }
    }
    c
}
