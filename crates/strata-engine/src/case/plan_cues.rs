//! Set phrases and forms of what speakers decide, plan and have done, whatever the conversation is about.
//!
//! A phrase alone decides nothing: [`super::roles`] asks the reader for some probability beside it.

use super::cues::folded;

/// Announces a decision. In 410 working conversations by another hand, five of six sentences with one of these phrases decide
/// something.
const DECIDED: [&str; 99] = [
    "we'll ",
    "from now on",
    "from today on",
    "let's go with",
    "we go with",
    "i'll go with",
    "going with",
    "we agreed",
    "we've agreed",
    "have agreed to",
    "agreed to",
    "we decided",
    "i decided",
    "i've decided",
    "we've decided",
    "decided to",
    "decided against",
    "made up my mind",
    "made up our mind",
    "dropped that idea",
    "dropped the idea",
    "we leave",
    "we're keeping",
    "we're dropping",
    "we're switching",
    "it is, then",
    "it is then",
    "it stays",
    "make that ",
    "scrap that",
    "then we take",
    "then we do",
    "决定",
    "決定",
    "定了",
    "说好了",
    "想好了",
    "商量好",
    "商量完",
    "谈妥",
    "讲定",
    "说定",
    "答应了",
    "就这么办",
    "就这么定",
    "就按",
    "改用",
    "改成",
    "改为",
    "改到",
    "换成",
    "不再",
    "一律",
    "从今",
    "今天起",
    "明天起",
    "下周起",
    "先不",
    "暂时不",
    "暂不",
    "以后都",
    "以后就",
    "还是不",
    "不等",
    "opted for",
    "opted to",
    "been settled",
    "was settled",
    "it's settled",
    "that's settled",
    "settled on",
    "is decided",
    "was decided",
    "stays put",
    "stay put",
    "stays as it is",
    "stays where it is",
    "i'd sooner ",
    "i'd rather ",
    "we'd rather ",
    "let's leave",
    "let's keep",
    "let's take",
    "let us also agree",
    "let us agree",
    "let's agree",
    "let's also agree",
    "actually, no",
    "actually no",
    "最后选",
    "最后定",
    "最终选",
    "最终定",
    "还是选",
    "选定",
    "挪到",
    "取消，",
    "统一用",
    "就用",
];

/// Announces a decision so plainly that it needs no other sign.
const PLAIN: [&str; 22] = [
    "we decided",
    "i decided",
    "i've decided",
    "we've decided",
    "we have decided",
    "it's decided",
    "we agreed",
    "we've agreed",
    "let us agree",
    "let's agree",
    "let us also agree",
    "let's also agree",
    "make that ",
    "opted for",
    "opted to",
    "it was settled",
    "it's settled",
    "商量好",
    "说好了",
    "想好了",
    "最后选",
    "最终选",
];

/// Begins a sentence or a Chinese clause in which speakers decide upon what was said before; elsewhere the words have other
/// meanings.
const DECIDED_FIRST: [&str; 5] = ["then we ", "then i'll ", "then let's ", "那就", "那先"];

/// Begins a conclusion, though it begins like a decision.
const CONCLUDED_FIRST: [&str; 12] = [
    "那就不是",
    "那就是",
    "那就没",
    "那就跟",
    "那就和",
    "那就说明",
    "那就可能",
    "那就排除",
    "那就好",
    "then we have",
    "then we can rule",
    "then we know",
];

/// Tells of a plan that speakers give up for another one.
const GIVEN_UP: [&str; 9] = [
    "i was going to ",
    "we were going to ",
    "i had planned to ",
    "we had planned to ",
    "本来想",
    "本来打算",
    "原本打算",
    "原来打算",
    "本來想",
];

/// Says that somebody wishes or proposes something, which decides nothing yet.
const PROPOSED: [&str; 8] =
    ["提出", "建议", "他们想", "对方想", "suggests", "suggested", "they want", "proposes"];

/// Says that a decision is still open, though the sentence speaks of deciding.
const UNDECIDED: [&str; 24] = [
    "undecided",
    "n't decided",
    "not decided",
    "n't agreed",
    "not agreed",
    "yet to decide",
    "nothing is decided",
    "n't made up ",
    "whether",
    "没决定",
    "没有决定",
    "未决定",
    "再决定",
    "决定不了",
    "没定",
    "没有定",
    "未定",
    "没想好",
    "没商量",
    "没谈妥",
    "没说好",
    "要不要",
    "该不该",
    "是否",
];

/// The most characters between 不 and 了 in 不修了, 不等休渔期了.
const GIVEN_UP_CHARS: usize = 6;

/// Ends a Chinese sentence that tells what has been done: 导出来了, 装好了.
const COMPLETED: [&str; 11] =
    ["完了", "好了", "到了", "上了", "出了", "过了", "掉了", "来了", "去了", "齐了", "完毕"];

/// Puts a Chinese sentence into the future, or takes its certainty.
const AHEAD: [&str; 27] = [
    "明", "后天", "下周", "下个", "要", "得", "打算", "准备", "等", "今晚", "回头", "记得", "别", "快", "该",
    "想", "就", "不", "没", "再", "会", "將", "将", "准備", "後天", "下週", "記得",
];

/// Tells what has been done, in English.
const HAVE_DONE: [&str; 6] =
    ["i've already ", "we've already ", "have already ", "has already ", "already did ", "already done"];

/// Whether a sentence announces a decision.
pub(super) fn announces_decision(text: &str) -> bool {
    let text = folded(text);
    if is_undecided(&text) {
        return false;
    }
    // «The day is still open, so we'll wait»: a clause about what is open decides nothing, another clause may.
    let text: String = clauses(&text).filter(|clause| !has(clause, &UNDECIDED)).collect();
    let begins = |phrases: &[&str]| {
        text.split('，').any(|clause| phrases.iter().any(|phrase| clause.starts_with(phrase)))
    };
    if has(&text, &PROPOSED) || begins(&CONCLUDED_FIRST) {
        return false;
    }
    has(&text, &DECIDED) || begins(&DECIDED_FIRST) || has(&text, &GIVEN_UP) || chooses(&text) || agrees(&text)
}

/// Whether a sentence announces a decision so plainly that the reader's doubt does not count.
pub(super) fn decides_plainly(text: &str) -> bool {
    let folded = folded(text);
    announces_decision(text) && (has(&folded, &PLAIN) || chooses(&folded))
}

/// Whether a clause agrees upon a proposal: 贴吧，就贴在柜子上.
fn agrees(text: &str) -> bool {
    let mut clauses = text.split('，');
    clauses.next().is_some_and(|first| first.ends_with('吧') && first.chars().count() <= MOST_AGREED)
        && clauses.next().is_some_and(|second| second.starts_with(['就', '先', '那']))
}

/// Whether a clause chooses something: «felt it is, then», «no more glaze for us».
fn chooses(text: &str) -> bool {
    let first = text.split([',', '.', ';', '!']).next().unwrap_or_default();
    let chosen = first.strip_suffix(" it is").filter(|chosen| {
        let words: Vec<&str> = chosen.split_whitespace().collect();
        (1..=MOST_CHOSEN_WORDS).contains(&words.len()) && !NO_CHOICE.contains(&words[0])
    });
    chosen.is_some() || (first.starts_with("no more ") && first.ends_with(" for us"))
}

/// The most characters of a word of agreement, with 吧.
const MOST_AGREED: usize = 5;

/// The most words of what is chosen.
const MOST_CHOSEN_WORDS: usize = 4;

/// Begins a clause that ends with «it is» and chooses nothing.
const NO_CHOICE: [&str; 14] = [
    "what", "how", "as", "so", "that", "where", "yes", "no", "here", "there", "who", "whatever", "like",
    "and",
];

/// Whether a sentence ends with the word that a decision is still open.
pub(super) fn is_undecided(text: &str) -> bool {
    clauses(&folded(text)).last().is_some_and(|clause| has(clause, &UNDECIDED))
}

/// The clauses of a sentence, each with the mark that ends it.
fn clauses(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['，', ',', '；', ';'])
}

/// Whether a Chinese clause says that something is given up: 不修了, 不等休渔期了. The form also tells of a change (不响了), so
/// the reader has to agree.
pub(super) fn gives_up(text: &str) -> bool {
    text.split(['，', ',', '。', '；', '！']).any(|clause| {
        let Some((_, rest)) = clause.split_once('不') else { return false };
        let Some(rest) = rest.strip_suffix('了') else { return false };
        // 香得不得了 praises.
        !rest.starts_with('得') && (1..=GIVEN_UP_CHARS).contains(&rest.chars().count())
    })
}

/// Whether a sentence tells by its form what has been done, so that it is no task.
pub(super) fn is_completed(text: &str) -> bool {
    let text = folded(text);
    if has(&text, &HAVE_DONE) {
        return true;
    }
    let bare = text.trim_end_matches(['。', '！', '.', '!']);
    let is_told =
        COMPLETED.iter().any(|end| bare.ends_with(end)) || text.contains("已经") || text.contains("已經");
    is_told && !has(&text, &AHEAD)
}

fn has(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| text.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_announced() {
        for text in [
            "From now on we rinse twice.",
            "Then we paint only the north wall.",
            "I was going to sell the loom, but it stays with us.",
            "以后一律用新谱。",
            "那就先补左边，右边下个月再说。",
            "本来打算请人，后来自己动手。",
            "谱子有八页，那就减到六页。",
            "Felt it is, the leather is too dear.",
            "We have opted for the oak, not the ash.",
            "The warp stays put, the reed moves to the other loom.",
            "I'd rather pay twice than wait.",
            "挂吧，就挂在琴房门口。",
            "排练挪到周四晚上。",
            "No more glaze for us.",
        ] {
            assert!(announces_decision(text), "{text}");
        }
        for text in [
            "We rinse twice.",
            "Then we have a leak.",
            "A week on: no more cracks in the glaze.",
            "What a day it is.",
            "They want to drop it from now on.",
            "谱子是新的。",
            "那就不是水泵。",
            "对方提出改成周三。",
        ] {
            assert!(!announces_decision(text), "{text}");
        }
    }

    #[test]
    fn some_decisions_need_no_other_sign() {
        for text in ["Felt it is, then.", "Actually make that two weeks.", "我们商量好了，用青的。"]
        {
            assert!(decides_plainly(text), "{text}");
        }
        for text in ["We'll see.", "We haven't agreed, they want to make that a rule.", "还没商量好。"]
        {
            assert!(!decides_plainly(text), "{text}");
        }
    }

    #[test]
    fn an_open_decision_is_none() {
        for text in [
            "We haven't decided on the glaze.",
            "The board has to say whether we'll lease the hall.",
            "釉色还没决定。",
            "票价改成多少，还没定。",
        ] {
            assert!(is_undecided(text) && !announces_decision(text), "{text}");
        }
        assert!(!announces_decision("要不要改成双层，下次开会谈。"));
        for text in ["The glaze is undecided, so we'll wait.", "演出的日子还没定，海报先不印。"]
        {
            assert!(!is_undecided(text) && announces_decision(text), "{text}");
        }
        assert!(!is_undecided("We decided on the glaze.") && !is_undecided("釉色定了，用青的。"));
    }

    #[test]
    fn something_is_given_up() {
        assert!(gives_up("船不卖了，留着自己用。") && gives_up("不等休渔期了，明天就换。"));
        assert!(!gives_up("桂花香得不得了。") && !gives_up("船卖了。") && !gives_up("水不流。"));
    }

    #[test]
    fn what_has_been_done_is_no_task() {
        for text in ["我把名单抄出来了。", "琴弦都装好了。", "I've already called the tuner."]
        {
            assert!(is_completed(text), "{text}");
        }
        for text in ["明天把名单抄出来。", "等琴弦装好了再说。", "I'll call the tuner."] {
            assert!(!is_completed(text), "{text}");
        }
    }
}
