//! Set phrases with which a speaker turns to another subject, or returns to one.
//!
//! «Another thing» and «another problem» are not among them: they mostly begin a further problem of the same undertaking.

use super::cues::{folded, leaves_subject};

/// Turns to another subject, wherever it stands in a sentence.
const ANOTHER_SUBJECT: [&str; 32] = [
    "next topic",
    "next subject",
    "new topic",
    "new subject",
    "another topic",
    "another subject",
    "different topic",
    "different subject",
    "another matter",
    "different matter",
    "separate matter",
    "something different",
    "something else entirely",
    "something else:",
    "now something else",
    "now to something else",
    "on to something else",
    "moving on to",
    "move on to",
    "turning to the",
    "let's turn to",
    "switching to",
    "switch to the",
    "换个问题",
    "换个事",
    "另一个项目",
    "说另一件",
    "換個問題",
    "另一个话题",
    "另外一个话题",
    "接下来说",
    "现在说说",
];

/// Turns to another subject at the beginning of a sentence.
const FIRST: [&str; 11] = [
    "now to the ",
    "now for the ",
    "now about the ",
    "next up",
    "on to the ",
    "as for the ",
    "as for my ",
    "as for our ",
    "至于",
    "下一个",
    "再说说",
];

/// Names a subject before a colon: «Now the choir: …», 下面是合唱团：….
const NAMES_FIRST: [&str; 8] = ["now ", "next", "then ", "and now ", "about the ", "现在", "下面", "接着"];

/// The most characters before such a colon.
const MAX_NAME_CHARS: usize = 32;

/// Returns to a subject.
const RETURNS: [&str; 17] = [
    "back to ",
    "back on the ",
    "return to ",
    "returning to ",
    "as for the ",
    "about the ",
    "again about ",
    "once more ",
    "回到",
    "说回",
    "再说",
    "回头说",
    "接着说",
    "继续说",
    "话说回来",
    "关于",
    "至于",
];

/// Whether a sentence announces another subject. One that leaves the work for small talk announces none.
pub(super) fn announces_subject(text: &str) -> bool {
    let folded = folded(text);
    !leaves_subject(text)
        && (ANOTHER_SUBJECT.iter().any(|phrase| folded.contains(phrase))
            || FIRST.iter().any(|phrase| folded.starts_with(phrase))
            || names_first(&folded))
}

/// A folded sentence without the phrase that announces its subject: two announcements share no word by it.
pub(super) fn without_announcement(text: &str) -> String {
    let folded = folded(text);
    let phrase = ANOTHER_SUBJECT.iter().find(|phrase| folded.contains(**phrase));
    phrase.map_or(folded.clone(), |phrase| folded.replacen(phrase, " ", 1))
}

/// Whether a sentence begins with the name of its subject and a colon.
fn names_first(folded: &str) -> bool {
    let Some((name, rest)) = folded.split_once([':', '：']) else { return false };
    NAMES_FIRST.iter().any(|phrase| name.starts_with(phrase))
        && name.chars().count() <= MAX_NAME_CHARS
        && !rest.trim().is_empty()
}

/// Whether a sentence says that it returns to a subject.
pub(super) fn returns(text: &str) -> bool {
    let folded = folded(text);
    RETURNS.iter().any(|phrase| folded.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_subject_is_announced_and_small_talk_is_not() {
        for text in [
            "Now the choir: the hall is booked twice.",
            "Different topic, the loom skips a thread.",
            "New topic: the ferry leaks.",
            "As for the oven, it trips the fuse.",
            "现在说说洗碗机，它漏水。",
            "换个问题，合唱团的场地没订到。",
        ] {
            assert!(announces_subject(text), "{text}");
        }
        for text in [
            "Now the loom runs again.",
            "Another thing, the loom is loud.",
            "还有一件事，织布机很吵。",
            "Enough of that, how are the children?",
            "The gauge says: 4 bar.",
            "好了，聊点别的吧。",
            "现在好了。",
        ] {
            assert!(!announces_subject(text), "{text}");
        }
        assert!(
            returns("Back to the loom.") && returns("回到织布机的问题。") && !returns("The loom is back.")
        );
    }
}
