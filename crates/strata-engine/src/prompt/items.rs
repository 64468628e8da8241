//! Items of the state's lists: tidied, compared and added.

use serde_json::Value;
use strata_language::sentences::{beginning, first_sentence, head_end};

/// The most characters of one value: about two lines of a prompt.
const MAX_VALUE_CHARS: usize = 240;

/// A value without emphasis, reduced to one line and one sentence, without the full stop.
pub(crate) fn one_line(found: &str) -> String {
    let plain = found.replace("**", "").replace('`', "");
    let line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = first_sentence(&line);
    let sentence = &sentence[..head_end(sentence, MAX_VALUE_CHARS * 4)];
    beginning(sentence, MAX_VALUE_CHARS)
        .trim_end_matches(['.', '。', ';', '；', ',', '，', ':', '：', ' '])
        .to_owned()
}

/// The relation of two statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Likeness {
    /// The first statement includes the second.
    Covers,
    /// The second statement says more.
    Covered,
    Other,
}

pub(crate) fn likeness(first: &str, second: &str) -> Likeness {
    let fold = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    // A name inside a longer name is a different name. Only a longer phrase includes a shorter one.
    let is_phrase = |text: &str| text.contains(' ') || !text.is_ascii();
    let phrases = is_phrase(first) && is_phrase(second);
    let (first, second) = (fold(first), fold(second));
    if first == second {
        Likeness::Covers
    } else if first.is_empty() || second.is_empty() || !phrases {
        Likeness::Other
    } else if includes(&first, &second) {
        Likeness::Covers
    } else if includes(&second, &first) {
        Likeness::Covered
    } else {
        Likeness::Other
    }
}

/// Whether a text holds another one. A number inside a longer number is a different number.
fn includes(text: &str, part: &str) -> bool {
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let splits =
        |left: &str, right: &str| is_digit(left.chars().next_back()) && is_digit(right.chars().next());
    text.match_indices(part).any(|(at, _)| {
        let end = at + part.len();
        !splits(&text[..at], &text[at..]) && !splits(&text[..end], &text[end..])
    })
}

/// Adds an item that the list does not include yet. It replaces an item that says less. The oldest items leave a full
/// list.
pub(super) fn add_item(items: &mut Vec<Value>, value: String, max: usize) {
    let mut place = None;
    for (at, item) in items.iter().enumerate() {
        match likeness(item.as_str().unwrap_or_default(), &value) {
            Likeness::Covers => return,
            Likeness::Covered => place = place.or(Some(at)),
            Likeness::Other => {}
        }
    }
    match place {
        Some(at) => items[at] = Value::String(value),
        None => items.push(Value::String(value)),
    }
    let over = items.len().saturating_sub(max);
    items.drain(..over);
}
