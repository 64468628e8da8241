//! Finds the ends of sentences, in English and Chinese, and shortens texts at them.

use unicode_segmentation::GraphemeCursor;

/// Words whose full stop does not end a sentence.
const ABBREVIATIONS: [&str; 12] =
    ["e.g", "i.e", "mr", "mrs", "ms", "dr", "vs", "no", "fig", "approx", "ca", "cf"];

/// The first sentence.
pub fn first_sentence(text: &str) -> &str {
    let text = text.trim();
    match ends(text).next() {
        Some(end) => text[..end].trim_end(),
        None => text,
    }
}

/// As many whole sentences from the beginning as fit into `max_chars` characters. If not even the first one fits, it
/// returns the beginning up to the end of a word, with an ellipsis.
pub fn beginning(text: &str, max_chars: usize) -> String {
    let text = text.trim();
    if text.len() <= max_chars || text.chars().count() <= max_chars {
        return text.to_owned();
    }
    let most = head_end(text, max_chars);
    if let Some(end) = ends(text).take_while(|end| *end <= most).last() {
        return text[..end].trim_end().to_owned();
    }
    let most = head_end(text, max_chars.saturating_sub(1));
    let head = &text[..most];
    let cut = match head.rfind(char::is_whitespace) {
        // At least half of the room is used: the text may be a single word, and Chinese has no spaces.
        Some(space) if space * 2 >= most => space,
        _ => most,
    };
    let mut short = head[..cut].trim_end().to_owned();
    if max_chars > 0 {
        short.push('…');
    }
    short
}

/// As many whole sentences from the end as fit into `max_chars` characters. If not even the last one fits, it returns
/// its beginning.
pub fn ending(text: &str, max_chars: usize) -> String {
    let text = text.trim();
    if text.len() <= max_chars || text.chars().count() <= max_chars {
        return text.to_owned();
    }
    let fits = |start: &usize| text[*start..].trim().chars().count() <= max_chars;
    let starts: Vec<usize> = ends(text).filter(|end| *end < text.len()).collect();
    // It tries sentences from the last one backwards, so that it does not count a long text again for each sentence.
    match starts.iter().rev().take_while(|start| fits(start)).last() {
        Some(start) => text[*start..].trim().to_owned(),
        None => beginning(starts.last().map_or(text, |start| &text[*start..]), max_chars),
    }
}

/// The offsets just after each sentence: after line breaks, Chinese stops, and Latin stops before a space.
pub fn ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.char_indices().filter_map(move |(at, c)| {
        let end = at + c.len_utf8();
        let rest = &text[end..];
        match c {
            '\n' => Some(end),
            // Of several stops in a row the last one ends the sentence; a closing quote belongs to the sentence.
            '。' | '！' | '？' | '；' => (!rest.starts_with(STOPS)).then(|| end + closing(rest)),
            '.' | '!' | '?' => {
                let behind = &rest[closing(rest)..];
                let is_end = behind.is_empty() || behind.starts_with(char::is_whitespace);
                (is_end && !(c == '.' && is_abbreviation(&text[..at]))).then(|| end + closing(rest))
            }
            _ => None,
        }
    })
}

const STOPS: [char; 7] = ['。', '！', '？', '；', '.', '!', '?'];

/// The length in bytes of the closing quotes and brackets at the beginning of `rest`.
fn closing(rest: &str) -> usize {
    rest.len() - rest.trim_start_matches(['"', '\'', ')', ']', '”', '’', '」', '』', '）', '»', '*']).len()
}

/// Whether a text ends with an abbreviation or the number of a list item.
fn is_abbreviation(text: &str) -> bool {
    let word = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    // A space may have several bytes, as the full-width one has.
    let before = &text[..text.len() - word.len()];
    let at_line_start = before.trim_end_matches([' ', '\t']).chars().next_back().is_none_or(|c| c == '\n');
    let is_number = !word.is_empty() && word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    (at_line_start && is_number)
        || ABBREVIATIONS
            .iter()
            .any(|abbreviation| word.trim_start_matches('(').eq_ignore_ascii_case(abbreviation))
}

/// The last grapheme boundary at or before `end`, which is a character boundary.
pub fn grapheme_border(text: &str, end: usize) -> usize {
    let mut cursor = GraphemeCursor::new(end, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(true) => end,
        _ => cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0),
    }
}

/// The end of the first `chars` characters, or of the last whole grapheme before it.
pub fn head_end(text: &str, chars: usize) -> usize {
    let Some((at, _)) = text.char_indices().nth(chars) else { return text.len() };
    grapheme_border(text, at)
}

/// The start of the last `chars` characters, or of the first whole grapheme after it.
pub fn tail_start(text: &str, chars: usize) -> usize {
    let Some(last) = chars.checked_sub(1) else { return text.len() };
    let Some((at, _)) = text.char_indices().nth_back(last) else { return 0 };
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(true) => at,
        _ => cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sentences_end_where_people_end_them() {
        let check = |text: &str, first: &str| assert_eq!(first_sentence(text), first);
        check("Power at 45.3 % now. Fine.", "Power at 45.3 % now.");
        check("See e.g. the fan. Then go.", "See e.g. the fan.");
        check("1. Look at the fan. 2. Go.", "1. Look at the fan.");
        check("风扇　e.g. 这个。走", "风扇　e.g. 这个。");
        check("The\u{2003}fan. Go.", "The\u{2003}fan.");
        check("He said \"stop.\" Then left.", "He said \"stop.\"");
        check("温度正常。风扇停了。", "温度正常。");
        check("真的吗？！是的。", "真的吗？！");
        check("No stop\nin this line", "No stop");
        check("", "");
    }

    #[test]
    fn a_shorter_text_ends_with_a_sentence() {
        let text = "One is here. Two is there. Three is far.";
        assert_eq!(beginning(text, 30), "One is here. Two is there.");
        assert_eq!(ending(text, 30), "Two is there. Three is far.");
        assert_eq!(beginning(text, 8), "One is…");
        assert_eq!(ending(text, 8), "Three…");
        assert_eq!(beginning("温度正常。风扇停了。还要再看。", 12), "温度正常。风扇停了。");
        assert_eq!(ending("温度正常。风扇停了。还要再看。", 12), "风扇停了。还要再看。");
        assert_eq!(beginning("没有句号的一段很长的文字", 5), "没有句号…");
    }

    proptest! {
        #[test]
        fn shorter_is_never_longer(text in "[a-z。.! \n西👨‍👩‍👧]{0,80}", max in 0_usize..50) {
            prop_assert!(beginning(&text, max).chars().count() <= max);
            prop_assert!(ending(&text, max).chars().count() <= max);
        }
    }
}
