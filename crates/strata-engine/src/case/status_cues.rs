//! Set phrases that say how a problem stands, whatever it is.
//!
//! Only phrases that mean the same in every domain are listed here. Those that people also use about a single step («fixed»
//! of one part, 修好了) count beside what is known about the case: [`super::fold`] asks whether anything was done at all.

use super::cues::{SUPPOSED, folded};

/// Says that the whole problem is over, whatever else the sentence seems to be.
const WHOLE: [&str; 49] = [
    "back to normal",
    "back in business",
    "up and running",
    "problem solved",
    "problem is solved",
    "problem is gone",
    "problem's gone",
    "issue is gone",
    "issue is resolved",
    "issue resolved",
    "all sorted",
    "all good now",
    "all good again",
    "all fixed",
    "all is well again",
    "everything works",
    "everything is fine",
    "everything is working",
    "done and dusted",
    "out of the woods",
    "consider this closed",
    "consider it closed",
    "consider that closed",
    "consider this solved",
    "consider it solved",
    "call it solved",
    "call that solved",
    "can close this",
    "can close the case",
    "全好了",
    "都好了",
    "彻底好了",
    "终于好了",
    "总算好了",
    "好利索",
    "问题没了",
    "毛病没了",
    "没问题了",
    "没毛病了",
    "问题解决",
    "问题已解决",
    "解决了",
    "结案",
    "算过去了",
    "告一段落",
    "恢复正常",
    "恢复如初",
    "一切正常",
    "完全正常了",
];

/// Says that something is over: the whole problem, or only what was being done.
const CLOSED: [&str; 31] = [
    "that's fixed",
    "it's fixed",
    "is fixed now",
    "it's sorted",
    "that did it",
    "did the trick",
    "works now",
    "works again",
    "works fine",
    "working now",
    "working again",
    "working fine",
    "runs again",
    "running again",
    "running smoothly",
    "as good as new",
    "call it fixed",
    "call that fixed",
    "搞定",
    "弄好了",
    "修好了",
    "修复了",
    "治好了",
    "这下好了",
    "现在好了",
    "已经好了",
    "真的好了",
    "又好了",
    "后就好了",
    "恢复了",
    "恢复使用",
];

/// Says that a problem is over, unless the sentence is something else.
const OVER: [&str; 12] = [
    "not a single",
    "ever since",
    "without an alarm",
    "without a hitch",
    "has been fine",
    "no trouble since",
    "没有再",
    "没再",
    "再没",
    "再也没",
    "终于",
    "一分不差",
];

/// Says that it is not, or not yet, wherever it stands in the sentence.
const NOT_OVER: [&str; 16] = [
    "still",
    "not yet",
    "hope",
    "still not",
    "还没",
    "还是",
    "还不",
    "仍",
    "没有解决",
    "没解决",
    "没修好",
    "没搞定",
    "没弄好",
    "尚未",
    "希望",
    "没好",
];

/// Says that it is not yet so, in the same clause.
const AHEAD: [&str; 13] = [
    "n't",
    "should",
    "will be",
    "will work",
    "'ll",
    "才能",
    "就能",
    "未",
    "应该能",
    "争取",
    "一定要",
    "能不能",
    "什么时候",
];

/// Begins a condition or a time that is to come, in the same clause or in the one before it.
const WAITS: [&str; 6] = ["unless", "until", "once ", "as soon as", "等", "只要"];

/// Begins with a word of waiting, and tells what has been.
const WAITED: [&str; 4] = ["等了", "等到昨", "等到今", "等于"];

/// Says that what was done has not helped.
const FAILED: [&str; 25] = [
    "not over",
    "no further",
    "no better",
    "no luck",
    "no use",
    "made no difference",
    "makes no difference",
    "didn't help",
    "did not help",
    "hasn't helped",
    "spoke too soon",
    "back to square one",
    "isn't settled",
    "not settled",
    "isn't resolved",
    "没着落",
    "没定下来",
    "还悬着",
    "没完",
    "没用",
    "不管用",
    "不顶用",
    "没见好",
    "不见好",
    "没有好转",
];

/// Says that something goes on as before, in a sentence of no clear role or about something that was done.
const GOES_ON: [&str; 9] = ["still", "as before", "还是", "照样", "依旧", "依然", "仍", "還是", "照樣"];

/// How a sentence says that a problem is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The whole problem, in so many words.
    Whole,
    /// In so many words; it may be only a step of the work.
    Announced,
    /// If the sentence is nothing else.
    Likely,
}

impl End {
    /// Whether the sentence says so in so many words.
    pub(super) fn is_announced(self) -> bool {
        self != Self::Likely
    }
}

/// Whether a sentence says that a problem is over.
pub(super) fn announced_end(text: &str) -> Option<End> {
    let text = folded(text);
    if has(&text, &NOT_OVER) || has(&text, &SUPPOSED) {
        return None;
    }
    let is_said = |phrases: &[&str]| {
        let clauses: Vec<&str> = text.split([',', ';', '，', '；', '。']).collect();
        (0..clauses.len()).any(|place| has(clauses[place], phrases) && !is_ahead(&clauses[..=place]))
    };
    if is_said(&WHOLE) {
        return Some(End::Whole);
    }
    if is_said(&CLOSED) {
        return Some(End::Announced);
    }
    (has(&text, &OVER) && !is_ahead(&[&text])).then_some(End::Likely)
}

/// Whether the last of these clauses tells of a time that is still to come.
fn is_ahead(clauses: &[&str]) -> bool {
    let lately = &clauses[clauses.len().saturating_sub(2)..];
    let waits = lately.iter().any(|clause| has(clause, &WAITS) && !has(clause, &WAITED));
    waits || clauses.last().is_some_and(|clause| has(clause, &AHEAD))
}

/// Whether a sentence says that what was done has not helped.
pub(super) fn announces_failure(text: &str) -> bool {
    has(&folded(text), &FAILED)
}

/// Whether a sentence says that something goes on as before.
pub(super) fn goes_on(text: &str) -> bool {
    has(&folded(text), &GOES_ON)
}

fn has(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| text.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_announced_or_likely() {
        let check = |text: &str, expected: Option<End>| assert_eq!(announced_end(text), expected, "{text}");
        for text in [
            "So the choir is back to normal.",
            "I'd consider this closed.",
            "三天没出过事，可以结案了。",
            "水压恢复正常。",
            "水壓恢復正常了。",
            "等了两天，总算好了。",
        ] {
            check(text, Some(End::Whole));
        }
        for text in [
            "The pump works now, thank you.",
            "换了新垫圈，搞定了。",
            "等了一个礼拜，琴修好了。",
            "He didn't charge us, and the pump runs again.",
        ] {
            check(text, Some(End::Announced));
        }
        for text in ["Not a single drip ever since.", "两个月没有再犯。", "装完以后再没响过。"]
        {
            check(text, Some(End::Likely));
        }
        for text in [
            "It has not run again yet, it still drips ever since.",
            "Once it works again we'll see.",
            "I hope it's fixed by Monday.",
            "问题还没解决。",
            "等修好了再说。",
            "等零件到了，机器就恢复正常了。",
            "The pump works now, but the valve is still loose.",
            "可能搞定了。",
            "The pump is new.",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn failures_are_announced() {
        for text in ["So it's not over.", "The new belt made no difference.", "换了也没用。", "这事还没完。"]
        {
            assert!(announces_failure(text), "{text}");
        }
        assert!(!announces_failure("The belt is new.") && !announces_failure("皮带是新的。"));
        assert!(goes_on("换了皮带，照样响。") && !goes_on("皮带换好了。"));
    }
}
