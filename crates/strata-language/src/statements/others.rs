//! The words of other people inside a message: chats that were copied, and messages that are retold. Both may say «I» and
//! mean somebody else.

use super::pieces::Piece;
use crate::Pattern;

// A speaker before what they say: «Bea: …», «[14:02] Bea: …», 「小蓓 14:02 …」.
static SPEAKER: Pattern = Pattern::new(
    r"^\s*(?:\[?\d{1,2}:\d{2}(?::\d{2})?\]?\s+)?(?P<name>[\p{Lu}\p{Lo}][\p{L}.'’-]*(?: [\p{Lu}\p{Lo}][\p{L}.'’-]*){0,2})\s*(?:[:：]|\s\[?\d{1,2}:\d{2}\]?[:：]?\s)\s*\S",
);
/// Labels of a list, which are no speakers.
const LABELS: &str = "todo to-do note notes task tasks item update deadline step day week monday tuesday wednesday thursday friday saturday sunday mon tue \
    wed thu fri sat sun name age job work home city address phone email hobby hobbies diet food family pets health school language languages music sport sports \
    travel goal goals likes dislikes allergies background about bio context question answer example summary breakfast lunch dinner morning afternoon evening \
    pros cons plan idea problem reason today yesterday tomorrow 待办 待辦 备注 備註 注 注意 事项 事項 任务 任務 周一 周二 周三 周四 周五 周六 周日 姓名 名字 年龄 年齡 工作 职业 職業 家 \
    住址 地址 电话 電話 邮箱 爱好 愛好 饮食 家庭 宠物 健康 学校 语言 音乐 运动 目标 背景 问题 問題 回答 例子 总结 早上 中午 下午 晚上 早餐 午餐 晚餐 优点 缺点 计划 原因 今天 昨天 明天";
static FIRST_PERSON: Pattern = Pattern::new(
    r"(?i)\b(?:i|i'm|i’m|im|i've|i’ve|ive|i'd|i'll|my|mine|me|we|we're|we've|our|ours|us)\b|[我咱俺]",
);
static REPORT: Pattern = Pattern::new(
    r"(?i)\b(?:wrote|writes|says|said|texted|texts|messaged|posted|posts|replied|answered|told (?:me|us)|emailed)(?: (?:me|us|back|again|today|yesterday|just now|this|in the \w+ ?\w*))*\s*[:：]|(?:[说說]|写道|寫道|[发發](?:来|來|了|的)?|回复|回覆|回我|转发|轉發|留言|告诉我|告訴我|来信|來信|朋友圈|群[里裡]|消息)[^，。：:]{0,6}[：:]",
);
static BY_SPEAKER: Pattern = Pattern::new(
    r"(?i)(?:\b(?:i|we)(?:['’](?:ve|d))?(?: have| had)?(?: just| already| also| then)*\s*|我(?:们|們)?(?:刚|剛|就|也|还|還|跟|对|對|给|給)?[^，。]{0,4})$",
);
/// The pieces of a copied chat: lines with a speaker before them, of two speakers or of one who speaks twice, and
/// somebody says «I».
pub(super) fn transcript(pieces: &[Piece]) -> Vec<usize> {
    let mut lines: Vec<(String, std::ops::Range<usize>)> = Vec::new();
    let mut says_i = false;
    let mut start = 0;
    for line in pieces.chunk_by(|a, b| a.line == b.line) {
        let end = start + line.len();
        if let Some((name, text)) = line.first().and_then(|first| speaker(&first.text)) {
            says_i |= FIRST_PERSON.is_match(text)
                || line[1..].iter().any(|piece| FIRST_PERSON.is_match(&piece.text));
            lines.push((name, start..end));
        }
        start = end;
    }
    let is_chat = says_i && lines.len() > 1;
    if is_chat { lines.into_iter().flat_map(|(_, line)| line).collect() } else { Vec::new() }
}

/// The speaker before a line, in lower case, and what they say.
fn speaker(line: &str) -> Option<(String, &str)> {
    let found = SPEAKER.captures(line)?;
    let name = found.name("name")?;
    let lower = name.as_str().to_lowercase();
    let is_label = LABELS.split_whitespace().any(|label| label == lower);
    (!is_label && lower.chars().count() <= 20).then(|| (lower, &line[name.end()..]))
}

/// The words of another person, from the pieces of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Retold {
    /// The piece holds it behind a colon.
    Here(usize),
    /// It stands in the lines after this piece.
    Below(usize),
}

/// The first piece in which another person's words begin behind a colon and say «I»: «my aunt wrote: I moved to Ulm».
pub(super) fn retold(pieces: &[Piece], free: &[bool]) -> Option<Retold> {
    (0..pieces.len()).filter(|place| free[*place]).find_map(|place| {
        let text = &pieces[place].text;
        let report = REPORT.find(text)?;
        let behind = text[report.end()..].trim();
        if BY_SPEAKER.is_match(&text[..report.start()]) {
            return None;
        }
        let ends_line = pieces.get(place + 1).is_none_or(|next| next.line != pieces[place].line);
        match behind {
            "" if ends_line => Some(Retold::Below(place)),
            "" => FIRST_PERSON.is_match(&pieces[place + 1].text).then_some(Retold::Here(place)),
            behind => FIRST_PERSON.is_match(behind).then_some(Retold::Here(place)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::pieces;
    use super::*;

    #[test]
    fn lines_of_two_speakers_are_a_chat() {
        for chat in [
            "Nora: I work at the aquarium.\nTom: I work at the zoo.",
            "小蓓：我在水族馆上班。\n老周：我在动物园上班。",
            "Nora: I row.\nNora: I swim.",
        ] {
            assert_eq!(transcript(&pieces(chat)), [0, 1], "{chat}");
        }
        for own in [
            "Work: I teach.\nHome: I live in Ulm.",
            "工作：我教书。\n爱好：我喜欢划船。",
            "Nora: I work at the aquarium.",
        ] {
            assert_eq!(transcript(&pieces(own)), [0; 0], "{own}");
        }
    }
}
