//! Shortens texts so that a page stays small however long the stored texts are.

/// The most bytes of stored text on one page, escaped. The rest of a page needs less than 35 kB.
const PAGE_BYTES: usize = 62_000;

/// The fewest characters that a text keeps when the page is full.
const LEAST_CHARS: usize = 60;

/// A shortened text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Clipped {
    pub(super) text: String,
    /// The number of characters that are left out.
    pub(super) more: usize,
}

/// The room for stored text that a page has left.
#[derive(Debug)]
pub(super) struct Room {
    left: usize,
}

impl Room {
    pub(super) fn new() -> Self {
        Self { left: PAGE_BYTES }
    }

    /// At most `chars` characters of a text, and fewer if the page has no room for them.
    pub(super) fn clip(&mut self, text: &str, chars: usize) -> Clipped {
        let (mut used, mut end) = (0, 0);
        for (count, (place, character)) in text.char_indices().enumerate() {
            let bytes = escaped_len(character);
            if count >= chars || (used + bytes > self.left && count >= LEAST_CHARS) {
                break;
            }
            used += bytes;
            end = place + character.len_utf8();
        }
        self.left = self.left.saturating_sub(used);
        Clipped { text: shown(&text[..end]), more: text[end..].chars().count() }
    }

    /// The same on one line.
    pub(super) fn line(&mut self, text: &str, chars: usize) -> Clipped {
        // A line needs only the beginning of a text that may have a megabyte.
        let beginning: String = text.chars().take(chars * 4 + 1).collect();
        let joined = beginning.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut clipped = self.clip(&joined, chars);
        clipped.more += text.chars().count() - beginning.chars().count();
        clipped
    }
}

/// The most bytes of one part of a text, escaped: a page, less its other texts.
const PART_BYTES: usize = PAGE_BYTES - 4_000;

/// The parts of a text that fit a page each. An empty text has one part.
pub(super) fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (place, character) in text.char_indices() {
        let bytes = escaped_len(character);
        if used + bytes > PART_BYTES {
            parts.push(&text[start..place]);
            (start, used) = (place, 0);
        }
        used += bytes;
    }
    parts.push(&text[start..]);
    parts
}

/// The bytes of a character in HTML.
fn escaped_len(character: char) -> usize {
    match character {
        '<' | '>' | '&' | '"' | '\'' => 5,
        other => other.len_utf8(),
    }
}

/// A text without the characters that could change the direction of what follows or that a page cannot show.
pub(super) fn shown(text: &str) -> String {
    let is_control = |character: char| {
        (character.is_control() && !matches!(character, '\n' | '\t'))
            || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
    };
    match text.contains(is_control) {
        true => text.replace(is_control, "\u{fffd}"),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_its_first_characters() {
        let mut room = Room::new();
        assert_eq!(room.clip("西湖 lake", 3), Clipped { text: "西湖 ".to_owned(), more: 4 });
        assert_eq!(room.clip("short", 30), Clipped { text: "short".to_owned(), more: 0 });
        assert_eq!(room.line("a\n\n b", 30).text, "a b");
        let long = "x ".repeat(500_000);
        let line = room.line(&long, 10);
        assert_eq!(line.text, "x x x x x ");
        assert!(line.more > 900_000, "{}", line.more);
    }

    #[test]
    fn a_page_stays_small_also_if_everything_has_to_be_escaped() {
        let hostile = "<".repeat(1_000_000);
        let mut room = Room::new();
        let bytes: usize = (0..50).map(|_| room.clip(&hostile, 2_000).text.len() * 5).sum();
        assert!(bytes <= PAGE_BYTES + 50 * LEAST_CHARS * 5, "{bytes}");
        assert_eq!(room.clip(&hostile, 2_000).text.len(), LEAST_CHARS);
    }

    #[test]
    fn the_parts_of_a_text_are_the_text() {
        for text in ["", "short", &"<西湖>".repeat(30_000), &"x".repeat(PART_BYTES + 1)] {
            let parts = parts(text);
            assert_eq!(parts.concat(), text);
            assert!(parts.iter().all(|part| part.chars().map(escaped_len).sum::<usize>() <= PART_BYTES));
        }
        assert_eq!((parts("").len(), parts(&"x".repeat(PART_BYTES + 1)).len()), (1, 2));
    }

    #[test]
    fn what_a_page_cannot_show_is_replaced() {
        assert_eq!(shown("a\u{202e}b\u{1}\nc\t"), "a\u{fffd}b\u{fffd}\nc\t");
    }
}
