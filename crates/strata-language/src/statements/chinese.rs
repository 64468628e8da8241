//! Chinese in the third person.

use crate::{Pattern, text};

/// Whether a text is Chinese: it has at least as many Chinese characters as Latin words.
pub(super) fn is_chinese(text: &str) -> bool {
    let han = text.chars().filter(|c| ('\u{3400}'..='\u{9fff}').contains(c)).count();
    let words =
        text.split_whitespace().filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic())).count();
    han > 0 && han >= words
}

/// A sentence that leaves out the speaker, with 我 before it: 昨天买了一艘船 becomes 我昨天买了一艘船. `None` for any other one:
/// only verbs of what people do themselves count, because 来了 and 看起来 may be said of anything.
pub fn with_left_out_speaker(said: &str) -> Option<String> {
    const BEFORE: &str = "最近|昨天|前天|今天|明天|后天|後天|昨晚|今早|上周|下周|上週|下週|上个月|下个月|上個月|下個月|去年|今年|明年|刚刚|剛剛|刚|剛|已经|已經|一直|平时|平時|每天|从小|從小|终于|終於|还|還|也|又|都|很|特别|特別|最|不|没|沒|想";
    const VERBS: &str = "喜欢|喜歡|讨厌|討厭|爱吃|愛吃|爱喝|愛喝|住在|搬到|搬家|养了|養了|报名|報名|辞职|辭職|买了|買了|卖了|賣了|订了|訂了|约了|約了|换了|換了|租了|学了|學了|参加了|參加了|加入了|考了|去了|打算|准备|準備|计划|計劃|决定|決定|在[^，。是]{1,10}(?:上班|工作|读书|讀書|上学|上學)|对[^，。]{1,10}(?:过敏|過敏)|對[^，。]{1,10}(?:过敏|過敏)";
    static LEFT_OUT: Pattern = Pattern::made(|| format!("^(?:{BEFORE})*(?:{VERBS})"));
    let said = said.trim();
    (is_chinese(said) && LEFT_OUT.is_match(said)).then(|| format!("我{said}"))
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
