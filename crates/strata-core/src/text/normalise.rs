//! One spelling for what readers take for the same: normal form, case, accents, width.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// The text as it is compared when looking for a substring: normalised, lower case, white space folded.
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

/// Compatibility forms composed (full width becomes half width), lower case, Latin accents gone.
///
/// Doing it twice changes nothing.
pub(super) fn normalise(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        };
    }
    let mut normalised = String::with_capacity(text.len());
    // Lower case comes first because a few capitals become two characters, the second a combining mark.
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

/// The combining marks that Latin, Greek and Cyrillic share. Kana's voicing marks and the vowels of other scripts lie
/// elsewhere and stay: they make other letters.
fn is_accent(c: char) -> bool {
    ('\u{300}'..='\u{36F}').contains(&c)
}

/// Characters inside words that nobody sees or types: soft hyphen, zero-width space and joiners, byte order mark.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{200B}'..='\u{200D}' | '\u{2060}' | '\u{FEFF}')
}

/// Letters that Unicode does not take apart, as people write them without the right keyboard.
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

/// The character that stands for `c` and for those written instead of it elsewhere.
///
/// The seam for a table of traditional and simplified Chinese: until it is here, each character stands for itself.
fn unified(c: char) -> char {
    c
}
