//! The difference between two versions of a text, word by word.

/// The most words that are compared; the rest of a longer text counts as replaced.
const MAX_WORDS: usize = 700;

/// A part of the difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) kind: Kind,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Same,
    Added,
    Removed,
}

impl Part {
    pub(super) fn is_added(&self) -> bool {
        self.kind == Kind::Added
    }

    pub(super) fn is_removed(&self) -> bool {
        self.kind == Kind::Removed
    }
}

/// The parts that lead from one text to another, in order.
pub(super) fn diff(old: &str, new: &str) -> Vec<Part> {
    let (old_words, new_words) = (words(old), words(new));
    let (old, old_rest) = old_words.split_at(old_words.len().min(MAX_WORDS));
    let (new, new_rest) = new_words.split_at(new_words.len().min(MAX_WORDS));
    let lengths = common_lengths(old, new);
    let mut parts = Vec::new();
    let (mut left, mut right) = (0, 0);
    while left < old.len() || right < new.len() {
        let length = |left: usize, right: usize| lengths[left * (new.len() + 1) + right];
        if left < old.len() && right < new.len() && old[left] == new[right] {
            push(&mut parts, Kind::Same, new[right]);
            (left, right) = (left + 1, right + 1);
        } else if right == new.len()
            || (left < old.len() && length(left + 1, right) >= length(left, right + 1))
        {
            push(&mut parts, Kind::Removed, old[left]);
            left += 1;
        } else {
            push(&mut parts, Kind::Added, new[right]);
            right += 1;
        }
    }
    old_rest.iter().for_each(|word| push(&mut parts, Kind::Removed, word));
    new_rest.iter().for_each(|word| push(&mut parts, Kind::Added, word));
    parts
}

/// The words of a text with the space after them. A Chinese character is a word of its own, and so is the end of a line: a last
/// word stays the same if a line follows it.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut in_space) = (0, false);
    for (place, character) in text.char_indices() {
        let is_end = character == '\n';
        let begins = (in_space && !character.is_whitespace()) || is_ideograph(character) || is_end;
        if begins && place > start {
            words.push(&text[start..place]);
            start = place;
        }
        in_space = character.is_whitespace() || is_ideograph(character);
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}

fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// The lengths of the longest common subsequences of all ends of both lists.
fn common_lengths(old: &[&str], new: &[&str]) -> Vec<u16> {
    let width = new.len() + 1;
    let mut lengths = vec![0_u16; (old.len() + 1) * width];
    for left in (0..old.len()).rev() {
        for right in (0..new.len()).rev() {
            lengths[left * width + right] = match old[left] == new[right] {
                true => lengths[(left + 1) * width + right + 1] + 1,
                false => lengths[(left + 1) * width + right].max(lengths[left * width + right + 1]),
            };
        }
    }
    lengths
}

fn push(parts: &mut Vec<Part>, kind: Kind, word: &str) {
    match parts.last_mut().filter(|last| last.kind == kind) {
        Some(last) => last.text.push_str(word),
        None => parts.push(Part { kind, text: word.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, expected: &str) {
        let parts = diff(old, new);
        let shown: String = parts
            .iter()
            .map(|part| match part.kind {
                Kind::Same => part.text.clone(),
                Kind::Added => format!("+[{}]", part.text),
                Kind::Removed => format!("-[{}]", part.text),
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn words_are_compared() {
        check("", "", "");
        check("the red boat", "the red boat", "the red boat");
        check("the red boat", "the blue boat", "the -[red ]+[blue ]boat");
        check("", "all new", "+[all new]");
        check("all gone", "", "-[all gone]");
        check("all dry.", "all dry.\nnew line", "all dry.+[\nnew line]");
        check("水修好。\n谢", "水修好。", "水修好。-[\n谢]");
        check("船在西湖", "船在东湖", "船在-[西]+[东]湖");
    }

    #[test]
    fn both_versions_can_be_read_off_however_long_they_are() {
        let old: String = (0..2_000).map(|number| format!("w{number} ")).collect();
        let new: String = (0..2_000).map(|number| format!("w{} ", number * 3 / 2)).collect();
        let parts = diff(&old, &new);
        let without = |kind: Kind| {
            parts.iter().filter(|part| part.kind != kind).map(|part| part.text.as_str()).collect::<String>()
        };
        assert_eq!((without(Kind::Added), without(Kind::Removed)), (old, new));
    }
}
