//! Chinese in the third person.

use crate::text;

/// Whether a text is Chinese: it has at least as many Chinese characters as Latin words.
pub(super) fn is_chinese(text: &str) -> bool {
    let han = text.chars().filter(|c| ('\u{3400}'..='\u{9fff}').contains(c)).count();
    let words =
        text.split_whitespace().filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic())).count();
    han > 0 && han >= words
}

/// Words in which 我 is not the speaker.
const NO_SPEAKER: [&str; 6] = ["自我", "我国", "我國", "我行我素", "忘我", "你我"];
/// The speaker, longest first.
const SPEAKER: [&str; 12] =
    ["我们自己", "我們自己", "我自己", "我们", "我們", "咱们", "咱們", "本人", "俺们", "我", "俺", "咱"];
/// Kin and belongings that follow the speaker without 的.
const KIN: [&str; 40] = [
    "妈",
    "媽",
    "爸",
    "爷",
    "爺",
    "奶",
    "哥",
    "姐",
    "弟",
    "妹",
    "儿子",
    "兒子",
    "女儿",
    "女兒",
    "老婆",
    "老公",
    "先生",
    "太太",
    "媳妇",
    "媳婦",
    "丈夫",
    "妻子",
    "男友",
    "女友",
    "男朋友",
    "女朋友",
    "对象",
    "對象",
    "室友",
    "同事",
    "老板",
    "老闆",
    "闺蜜",
    "閨蜜",
    "外婆",
    "外公",
    "姥",
    "舅",
    "姨",
    "叔",
];

/// The text with 用户, or the speaker's name, for the first person. Quotations stay.
pub(super) fn third_person(said: &str, name: Option<&str>) -> String {
    let is_traditional = text::simplified(said) != said;
    let who = name.unwrap_or(if is_traditional { "用戶" } else { "用户" });
    let mut told = String::with_capacity(said.len() + 8);
    let mut rest = said;
    let mut depth = 0_i32;
    'text: while let Some(c) = rest.chars().next() {
        match c {
            '“' | '「' | '『' | '《' => depth += 1,
            '”' | '」' | '』' | '》' => depth -= 1,
            _ => {}
        }
        for other in NO_SPEAKER {
            if let Some(after) = rest.strip_prefix(other) {
                told.push_str(other);
                rest = after;
                continue 'text;
            }
        }
        if depth <= 0
            && let Some(after) = SPEAKER.iter().find_map(|speaker| rest.strip_prefix(speaker))
        {
            told.push_str(who);
            if KIN.iter().any(|kin| after.starts_with(kin)) {
                told.push('的');
            }
            rest = after;
            continue;
        }
        told.push(c);
        rest = &rest[c.len_utf8()..];
    }
    told
}
