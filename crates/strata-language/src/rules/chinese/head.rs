//! Adverbs, negation and time between a Chinese subject and its predicate.

use super::super::claim::{Hold, Verb};

/// Adverbs, negation and time before the predicate.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct PredicateHead {
    pub(super) negated: bool,
    ended: bool,
    pub(super) past: bool,
    pub(super) planned: bool,
    pub(super) changed: bool,
    pub(super) done: bool,
}

/// A word before the predicate, and how it changes the head.
type Mark = (&'static str, fn(&mut PredicateHead));

/// Words that change the head. A longer word stands before its own beginning (已经不 before 已经).
const MARKS: &[Mark] = &[
    ("已经不再", |head| (head.negated, head.ended) = (true, true)),
    ("再也不", |head| (head.negated, head.ended) = (true, true)),
    ("已经不", |head| (head.negated, head.ended) = (true, true)),
    ("现在不", |head| (head.negated, head.ended) = (true, true)),
    ("不再", |head| (head.negated, head.ended) = (true, true)),
    ("不怎么", |head| head.negated = true),
    ("不太", |head| head.negated = true),
    ("不是很", |head| head.negated = true),
    ("从来不", |head| head.negated = true),
    ("从不", |head| head.negated = true),
    ("并不", |head| head.negated = true),
    ("不能", |head| head.negated = true),
    ("没有", |head| head.negated = true),
    ("以前", |head| head.past = true),
    ("曾经", |head| head.past = true),
    ("过去", |head| head.past = true),
    ("小时候", |head| head.past = true),
    ("原来", |head| head.past = true),
    ("之前", |head| head.past = true),
    ("打算", |head| head.planned = true),
    ("准备", |head| head.planned = true),
    ("计划", |head| head.planned = true),
    ("即将", |head| head.planned = true),
    ("将要", |head| head.planned = true),
    ("快要", |head| head.planned = true),
    ("马上要", |head| head.planned = true),
    ("现在", |head| head.changed = true),
    ("目前", |head| head.changed = true),
    ("如今", |head| head.changed = true),
    ("改成", |head| head.changed = true),
    ("已经", |head| head.done = true),
    ("终于", |head| head.done = true),
    ("刚刚", |head| head.done = true),
    ("刚", |head| head.done = true),
];

/// Words that change nothing.
const ADVERBS: &[&str] = &[
    "其实",
    "也",
    "还",
    "又",
    "都",
    "一直",
    "最近",
    "真的",
    "特别",
    "非常",
    "超级",
    "超",
    "很",
    "挺",
    "最",
    "比较",
    "一向",
    "平时",
    "就",
    "自己",
    "本来",
    "确实",
    "后来",
    "依然",
    "仍然",
    "从小",
    "向来",
    "可",
    "蛮",
    "太",
    "有点",
    "说实话",
    "，",
    " ",
    "正在",
    "个人",
    "尤其",
    "更加",
    "平常",
    "的确",
    "们",
];

/// 不 before one of these is part of another word (不过, 不错), not a negation.
const AFTER_NO_NEGATION: [&str; 10] = ["过", "仅", "但", "错", "同", "好", "得", "管", "知", "如"];

/// Splits the text after a subject into its head and the predicate.
pub(super) fn parse(mut rest: &str) -> (PredicateHead, &str) {
    let mut head = PredicateHead::default();
    while let Some(after) = head.after_word(rest) {
        rest = after;
    }
    (head, rest)
}

impl PredicateHead {
    /// Reads one mark, adverb or negation; returns the text after it, or none if the predicate begins here.
    fn after_word<'t>(&mut self, rest: &'t str) -> Option<&'t str> {
        for (mark, note) in MARKS {
            if let Some(after) = rest.strip_prefix(mark) {
                note(self);
                return Some(after);
            }
        }
        if let Some(after) = ADVERBS.iter().find_map(|adverb| rest.strip_prefix(adverb)) {
            return Some(after);
        }
        let after = rest.strip_prefix('不').filter(|_| !self.negated)?;
        if AFTER_NO_NEGATION.iter().any(|word| after.starts_with(word)) {
            return None;
        }
        self.negated = true;
        Some(after)
    }

    /// The state of a claim with a verb of this kind, if there is one. `over` says whether the sentence ends in 了.
    pub(super) fn hold_of(self, verb: Verb, over: bool) -> Option<Hold> {
        let state = if self.ended || self.past || self.negated && over {
            Hold::NoLonger
        } else if self.negated {
            Hold::Not
        } else if self.planned {
            Hold::Planned
        } else {
            Hold::Now
        };
        let told = !self.negated && !self.planned;
        match verb {
            Verb::State => Some(state),
            Verb::Opposite => Some(state.flipped()),
            Verb::Begin if self.planned => Some(Hold::Planned),
            Verb::Begin => told.then_some(Hold::Now),
            Verb::End => (told && (over || self.done)).then_some(Hold::NoLonger),
            Verb::Plan => (!self.negated).then_some(Hold::Planned),
            Verb::Deed | Verb::Did | Verb::Drop | Verb::Todo => told.then_some(Hold::Now),
        }
    }
}
