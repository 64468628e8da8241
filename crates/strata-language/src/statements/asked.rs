//! Questions without a question mark: «where do I live», 我的狗叫什么.
//!
//! Only the order of the words tells them from statements («what I like is tea»), so each form is narrow, and a sentence of
//! several clauses is left to a reader, because one of them may tell something.

use crate::Pattern;
use crate::text::simplified;

const OPEN: &str =
    "what where when who whom whose which why how what's where's when's who's how's whats wheres whos";
const HELPERS: &str = "do does did is are am was were will would should can could have has";
const PERSONS: &str = "i you we he she they";
const OWNED: &str = "my our your his her their its the it this that these those there";
/// Words before a question.
const LEADS: &str = "so and but hey hi hello ok okay please um hmm again wait btw also";
/// The most words between «how» and the verb: «what size shoes do I wear».
const BETWEEN: usize = 3;

static SEVERAL: Pattern =
    Pattern::new(r"[,;:，；：、。！？!?—]|\.\s|(?i)\b(?:tell|told|mention(?:ed)?)\b|告[诉訴]");
static CHINESE_ASKS: Pattern = Pattern::new(
    r"(?:什么|哪[里儿天个家位年月座款种]|谁|几[点号岁时]|多少|多大|多久|多高|为什么|为啥|有没有|是不是|吗|哪)",
);
/// Words beside which a word of asking asks nothing: 我谁都不怕, 我忘了密码是什么, 没什么.
const CHINESE_NO_QUESTION: [&str; 20] = [
    "都", "也", "不", "没", "忘", "无论", "任", "怕", "问", "说", "想", "知", "看", "懂", "讨论", "决定",
    "研究", "学", "猜", "的人",
];

/// Whether a sentence without a question mark is a question and nothing else.
pub(super) fn asks_without_mark(sentence: &str) -> bool {
    let said = sentence.trim().trim_end_matches(['.', '。', '!', '！', '…', ' ']);
    !SEVERAL.is_match(said) && (asks_in_chinese(&simplified(said)) || asks_in_english(said))
}

fn asks_in_chinese(said: &str) -> bool {
    let said = said.trim_end_matches(['呢', '啊', '呀', '来', '着']);
    let is_open =
        CHINESE_ASKS.is_match(said) && !CHINESE_NO_QUESTION.iter().any(|word| asked_of(said).contains(word));
    said.ends_with('吗') || is_open
}

/// The text without the forms of asking that hold a denial.
fn asked_of(said: &str) -> String {
    said.replace("有没有", "").replace("是不是", "")
}

fn asks_in_english(said: &str) -> bool {
    let words: Vec<&str> = said.split_whitespace().skip_while(|word| is_in(LEADS, word)).collect();
    match words.split_first() {
        Some((first, rest)) if is_in(OPEN, first) => is_open(first, rest),
        Some((first, rest)) if is_in(HELPERS, first) => is_closed(first, rest),
        _ => false,
    }
}

/// «where do I live», «what's my name», but not «what I like is tea» and «which is the reason».
fn is_open(first: &str, rest: &[&str]) -> bool {
    if is_in("what's where's when's who's how's whats wheres whos", first) {
        return rest.first().is_some_and(|next| is_in(OWNED, next));
    }
    let is_subject = |word: &str| is_in(PERSONS, word) || is_in(OWNED, word);
    let Some(verb) = rest.iter().take(BETWEEN + 1).position(|word| is_in(HELPERS, word)) else {
        return false;
    };
    let is_relative = verb == 0 && is_in("which", first) || rest[..verb].iter().any(|word| is_subject(word));
    !is_relative && rest.get(verb + 1).is_some_and(|next| is_subject(next))
}

/// «do I have a dentist», «is my passport valid», but not «do the dishes» and «can you write shorter answers».
fn is_closed(first: &str, rest: &[&str]) -> bool {
    let Some(next) = rest.first() else { return false };
    let is_request = is_in("can could will would should", first) && is_in("you", next);
    let is_owned = is_in("is are does will can", first) && is_in("my our there", next);
    !is_request && (is_in(PERSONS, next) || is_owned)
}

fn is_in(list: &str, word: &str) -> bool {
    let word = word.to_lowercase().replace('’', "'");
    list.split_whitespace().any(|one| one == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_needs_no_mark() {
        for question in [
            "where do I live",
            "Where do I live.",
            "so what's my name",
            "what size shoes do I wear",
            "how many cats do we have",
            "when is my appointment",
            "do I have a dentist",
            "is my passport valid",
            "我的狗叫什么",
            "我住在哪里",
            "我住在哪",
            "我住在哪儿呢",
            "我的狗叫什麼",
            "我几点开会",
            "我是不是对虾过敏",
            "谁是我的牙医",
            "你还记得我叫什么吗",
        ] {
            assert!(asks_without_mark(question), "{question}");
        }
    }

    #[test]
    fn what_tells_something_is_no_question() {
        for said in [
            "What I like is the sea.",
            "Which is the reason I moved.",
            "When I was a child I lived in Bern.",
            "How I make bread is simple.",
            "Do the dishes every Monday.",
            "Can you always answer in Dutch",
            "Did it yesterday.",
            "Should it rain, we stay in.",
            "where do I start, I moved to Porto and have no job",
            "Did I tell you my brother moved to Oslo",
            "I know where my keys are.",
            "我谁都不怕。",
            "我什么都吃。",
            "我忘了密码是什么。",
            "没什么",
            "我有几个朋友在绵阳。",
            "我几乎每天跑步。",
            "我告诉过你我养了什么",
            "我不知道他住在哪里",
        ] {
            assert!(!asks_without_mark(said), "{said}");
        }
    }
}
