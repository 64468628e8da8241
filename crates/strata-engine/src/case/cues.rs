//! Set phrases that give a sentence its role, whatever the conversation is about.
//!
//! The reader judges a sentence by its words and the one before it. Where a speaker announces the role («case closed, …»,
//! 这下清楚了), the announcement weighs more than the reader's doubt. Only phrases that mean the same in every domain are
//! listed here.

use strata_language::text::simplified;

/// Announces that a cause is found. The sentence has to name it, so more words follow or precede.
const FOUND: [&str; 76] = [
    "case closed",
    "mystery solved",
    "that settles it",
    "that decides it",
    "that explains",
    "there you have it",
    "there we have it",
    "there you are,",
    "there we are,",
    "that's it,",
    "it turns out",
    "turned out to be",
    "found the cause",
    "found the reason",
    "found the culprit",
    "the culprit",
    "that's why",
    "there it is",
    "is the reason",
    "清楚了",
    "很清楚，",
    "我明白了，",
    "说白了",
    "归根结底",
    "弄明白了",
    "真相大白",
    "找到原因",
    "原因就",
    "原因找到",
    "罪魁祸首",
    "问题出在",
    "毛病出在",
    "根源",
    "根子",
    "病根",
    "症结",
    "问题就在",
    "怪不得",
    "找到了，",
    "查到了，",
    "查出来了",
    "惹的祸",
    "捣的鬼",
    "my own fault",
    "our own fault",
    "is to blame",
    "was to blame",
    "are to blame",
    "accounts for it",
    "that accounts for",
    "that's all it was",
    "that is all it was",
    "the reason is",
    "the reason was",
    "the cause is",
    "the cause was",
    "the real cause",
    "boils down to",
    "boiled down to",
    "at the root of",
    "all because",
    "simply because",
    "which is why",
    "solves the riddle",
    "solves the mystery",
    "what happened is",
    "what happened was",
    "元凶",
    "祸根",
    "作怪",
    "就是因为",
    "都是因为",
    "全因为",
    "归咎",
    "所以才",
    "就出在",
];

/// The same at the beginning of a sentence only; elsewhere the words have other meanings (原来 «former», 就是 «namely»).
const FOUND_FIRST: [&str; 4] = ["原来", "原來", "就是", "so it's the "];

/// Begins a sentence that names no cause, though it begins like one that does.
const NOT_FOUND: [&str; 6] = ["就是不", "就是没", "就是想", "就是说", "就是有点", "就是觉得"];

/// Takes the certainty out of an announcement.
pub(super) const SUPPOSED: [&str; 14] = [
    "maybe",
    "perhaps",
    "might",
    "could",
    "may be",
    "if ",
    "not sure",
    "wonder",
    "可能",
    "也许",
    "或许",
    "会不会",
    "如果",
    "要是",
];

/// Announces that a supposition is dropped.
const DROPPED: [&str; 18] = [
    "off the list",
    "off the table",
    "off the hook",
    "in the clear",
    "theory is dead",
    "so much for",
    "is ruled out",
    "are ruled out",
    "rule that out",
    "rule out",
    "can be excluded",
    "排除",
    "不考虑",
    "不用怀疑",
    "站不住",
    "可以放下",
    "这条去掉",
    "没有关系",
];

/// Keeps a supposition open by a double negation. The reader takes it for one that is dropped.
const LEFT_OPEN: [&str; 21] = [
    "isn't impossible",
    "not impossible",
    "isn't out of the question",
    "not out of the question",
    "isn't ruled out",
    "not ruled out",
    "n't be ruled out",
    "not be ruled out",
    "n't rule ",
    "not rule ",
    "不排除",
    "不能排除",
    "没法排除",
    "无法排除",
    "排除不了",
    "没排除",
    "没有排除",
    "不是没可能",
    "不是没有可能",
    "不是没这种可能",
    "不无可能",
];

/// Says that a speaker suspects something.
const SUSPECTED: [&str; 6] = ["i suspect", "i'm suspecting", "怀疑", "懷疑", "我猜", "嫌疑"];

/// Takes a suspicion back.
const NOT_SUSPECTED: [&str; 8] =
    ["no longer suspect", "n't suspect", "不怀疑", "不用怀疑", "没有嫌疑", "没嫌疑", "洗清", "排除"];

/// Begins another problem.
const ANOTHER_PROBLEM: [&str; 20] = [
    "another thing",
    "another problem",
    "another issue",
    "a new problem",
    "a new issue",
    "a different problem",
    "a second problem",
    "next problem",
    "something else has",
    "unrelated problem",
    "新冒出",
    "新问题",
    "新毛病",
    "另一个问题",
    "另一件事",
    "另外一个问题",
    "还有个问题",
    "还有一个问题",
    "又出了",
    "又冒出",
];

/// Leaves the subject of a conversation for another one.
const LEAVING: [&str; 24] = [
    "enough of that",
    "enough of this",
    "enough about",
    "enough shop talk",
    "on to nicer things",
    "on to other things",
    "something more pleasant",
    "talk about something else",
    "change the subject",
    "changing the subject",
    "change of subject",
    "on a different note",
    "on another note",
    "正事说完",
    "说完正事",
    "说点别的",
    "聊点别的",
    "说点开心的",
    "换个话题",
    "不说这个",
    "不说这些",
    "不聊这个",
    "不提这个",
    "不谈这个",
];

/// The fewest letters beside a phrase that say something. Chinese characters count three times.
const LEAST_REST: usize = 9;

/// Whether a sentence announces a cause and names it.
pub(super) fn announces_cause(text: &str) -> bool {
    let text = folded(text);
    if SUPPOSED.iter().any(|phrase| text.contains(phrase)) {
        return false;
    }
    let begins = |phrases: &[&str]| phrases.iter().any(|phrase| text.starts_with(phrase));
    (begins(&FOUND_FIRST) && !begins(&NOT_FOUND) && says_more(&text, FOUND_FIRST[0]))
        || FOUND.iter().any(|phrase| text.contains(phrase) && says_more(&text, phrase))
}

/// Whether a sentence says that a supposition is dropped.
pub(super) fn drops_supposition(text: &str) -> bool {
    if leaves_open(text) {
        return false;
    }
    let text = folded(text);
    let crosses_off = ["cross ", "crossed "].iter().any(|cross| {
        text.split_once(cross).is_some_and(|(_, rest)| rest.trim_end_matches('.').ends_with(" off"))
    });
    let rules_out = ["rule ", "rules "]
        .iter()
        .any(|rule| text.split_once(rule).is_some_and(|(_, rest)| rest.contains(" out")));
    crosses_off || rules_out || DROPPED.iter().any(|phrase| text.contains(phrase))
}

/// Whether a sentence keeps a supposition open, though it is full of negations.
pub(super) fn leaves_open(text: &str) -> bool {
    let text = folded(text);
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    has(&LEFT_OPEN) || (has(&SUSPECTED) && !has(&NOT_SUSPECTED))
}

/// Whether a sentence begins another problem.
pub(super) fn begins_problem(text: &str) -> bool {
    let text = folded(text);
    ANOTHER_PROBLEM.iter().any(|phrase| text.contains(phrase))
}

/// Whether a sentence leaves the subject of the conversation.
pub(super) fn leaves_subject(text: &str) -> bool {
    let text = folded(text);
    LEAVING.iter().any(|phrase| text.contains(phrase))
}

/// A text as the phrases are written: in lower case, with simplified characters.
pub(super) fn folded(text: &str) -> String {
    simplified(&text.trim().to_lowercase()).replace('’', "'")
}

/// Whether a text says something beside a phrase.
fn says_more(text: &str, phrase: &str) -> bool {
    let size = |text: &str| -> usize {
        text.chars().filter(|c| c.is_alphanumeric()).map(|c| if c.is_ascii() { 1 } else { 3 }).sum()
    };
    size(text) >= size(phrase) + LEAST_REST
}

/// The alternatives that a supposition names: «A, B or C», 甲、乙，或者丙. One part if it names no alternatives.
pub(super) fn alternatives(text: &str) -> Vec<&str> {
    let between: &[&str] = if OR_CHINESE.iter().any(|or| text.contains(or)) {
        &["、", "，"]
    } else if text.contains(" or ") {
        &[", ", " or "]
    } else {
        return vec![text];
    };
    let mut parts = vec![text];
    for separator in between.iter().chain(&OR_CHINESE) {
        parts = parts.into_iter().flat_map(|part| part.split(separator)).collect();
    }
    let bare = parts.into_iter().map(|part| {
        let part = part.trim().trim_start_matches("or ");
        let part = PERHAPS_CHINESE.iter().find_map(|perhaps| part.strip_prefix(perhaps)).unwrap_or(part);
        part.trim_matches(['。', '.', '?', '？', ' '])
    });
    bare.filter(|part| !part.is_empty()).collect()
}

/// Whether a sentence names several causes, of which none is established.
pub(super) fn names_alternatives(text: &str) -> bool {
    let text = folded(text);
    let is_paired =
        |first: &str, second: &str| text.split_once(first).is_some_and(|(_, rest)| rest.contains(second));
    is_paired("either ", " or ")
        || is_paired("要么", "要么")
        || is_paired("也许", "也许")
        || HINTED.iter().any(|phrase| text.contains(phrase))
}

/// Says that a cause is only hinted at.
const HINTED: [&str; 7] =
    ["hints at", "hint at", "points to", "makes me think", "sounds like", "looks like it could", "多半是"];

/// The text before the first alternative.
const PERHAPS_CHINESE: [&str; 8] =
    ["可能是", "也许是", "或许是", "会不会是", "估计是", "应该是", "要么是", "可能"];

const OR_CHINESE: [&str; 4] = ["或者", "或是", "还是", "也可能"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_announced_and_named() {
        for text in [
            "Case closed, the gasket leaks at the lower bolt.",
            "It turns out the clerk had two calendars.",
            "这下清楚了，水是从窗台渗进来的。",
            "原来是邻居把总闸关了。",
            "就是轴承缺油，一转就响。",
            "结论很清楚，软管破了。",
            "So a mouse in the motor box is to blame.",
            "The belt was a size too long, which is why it slipped.",
            "That accounts for it: the valve was fitted upside down.",
            "阀门装反了，所以才一直滴水。",
            "都是因为有人把总闸关了。",
        ] {
            assert!(announces_cause(text), "{text}");
        }
        for text in [
            "Case closed.",
            "That settles it!",
            "If the reason is the belt, we'll see.",
            "The reason?",
            "Maybe that explains the noise.",
            "清楚了。",
            "比原来慢一点。",
            "难怪。",
            "就是不知道要等多久。",
        ] {
            assert!(!announces_cause(text), "{text}");
        }
    }

    #[test]
    fn suppositions_are_dropped_and_subjects_left() {
        for text in [
            "You can cross the valve off.",
            "Rule the reed out too.",
            "So much for the damp.",
            "电池可以排除了。",
        ] {
            assert!(drops_supposition(text), "{text}");
        }
        assert!(!drops_supposition("We crossed the river by ferry."));
        assert!(
            leaves_subject("Enough of that, how are the children?") && leaves_subject("好了，聊点别的吧。")
        );
        assert!(!leaves_subject("Anyway, the pump runs again."));
    }

    #[test]
    fn a_double_negation_keeps_a_supposition_open() {
        for text in [
            "A cracked reed isn't impossible.",
            "We can't rule the damper out yet.",
            "也不排除是滤芯堵了。",
            "阀门坏了也不是没有可能。",
            "我有点怀疑轴承，得拆开才知道。",
        ] {
            assert!(leaves_open(text) && !drops_supposition(text), "{text}");
        }
        for text in ["It can't be the reed.", "轴承不用怀疑了。", "滤芯可以排除。"] {
            assert!(!leaves_open(text), "{text}");
        }
        assert!(begins_problem("Another thing, the bell rings twice.") && !begins_problem("琴又响了。"));
    }

    #[test]
    fn several_causes_are_none() {
        for text in [
            "So either the belt slips or the fan is stuck.",
            "要么是皮带，要么是风扇。",
            "That hints at the belt.",
        ] {
            assert!(names_alternatives(text), "{text}");
        }
        assert!(!names_alternatives("The belt slips.") && !names_alternatives("皮带松了。"));
    }

    #[test]
    fn alternatives_are_told_apart() {
        let check = |text: &str, expected: &[&str]| assert_eq!(alternatives(text), expected, "{text}");
        check(
            "It may be the belt, the fan or a stuck relay.",
            &["It may be the belt", "the fan", "a stuck relay"],
        );
        check("可能是皮带、风扇，或者继电器。", &["皮带", "风扇", "继电器"]);
        check("It may be the belt, which is old.", &["It may be the belt, which is old."]);
    }
}
