//! The words of other people inside a message: chats that were copied, messages that are retold, and orders about «the
//! user» that a pasted text addresses to an assistant. All of them may say «I» or «the user» and mean somebody else.

use std::sync::LazyLock;

use regex::Regex;

use super::pieces::Piece;

macro_rules! pattern {
    ($name:ident, $source:expr) => {
        static $name: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new($source).ok());
    };
}

// A speaker before what they say: «Bea: …», «[14:02] Bea: …», 「小蓓 14:02 …」.
pattern!(
    SPEAKER,
    r"^\s*(?:\[?\d{1,2}:\d{2}(?::\d{2})?\]?\s+)?(?P<name>[\p{Lu}\p{Lo}][\p{L}.'’-]*(?: [\p{Lu}\p{Lo}][\p{L}.'’-]*){0,2})\s*(?:[:：]|\s\[?\d{1,2}:\d{2}\]?[:：]?\s)\s*\S"
);
/// Labels of a list, which are no speakers.
const LABELS: &str = "todo to-do note notes task tasks item update deadline step day week monday tuesday wednesday thursday friday saturday sunday mon tue \
    wed thu fri sat sun 待办 待辦 备注 備註 注 注意 事项 事項 任务 任務 周一 周二 周三 周四 周五 周六 周日";
pattern!(
    FIRST_PERSON,
    r"(?i)\b(?:i|i'm|i’m|im|i've|i’ve|ive|i'd|i'll|my|mine|me|we|we're|we've|our|ours|us)\b|[我咱俺]"
);
pattern!(
    REPORT,
    r"(?i)\b(?:wrote|writes|says|said|texted|texts|messaged|posted|posts|replied|answered|told (?:me|us)|emailed)(?: (?:me|us|back|again|today|yesterday|just now|this|in the \w+ ?\w*))*\s*[:：]|(?:[说說]|写道|寫道|[发發](?:来|來|了|的)?|回复|回覆|回我|转发|轉發|留言|告诉我|告訴我|来信|來信|朋友圈|群[里裡]|消息)[^，。：:]{0,6}[：:]"
);
pattern!(
    BY_SPEAKER,
    r"(?i)(?:\b(?:i|we)(?:['’](?:ve|d))?(?: have| had)?(?: just| already| also| then)*\s*|我(?:们|們)?(?:刚|剛|就|也|还|還|跟|对|對|给|給)?[^，。]{0,4})$"
);
pattern!(
    PLANTED,
    r"(?ix)
    \b(?:remember|note|store|save|record|memori[sz]e|add|update|keep\ in\ mind)\b[^.!?\n]{0,60}\bthe\ user(?:['’]s\b|\s+(?:is|was|has|had|lives?|works?|likes?|loves?|hates?|prefers?|wants?|needs?|moved|owns?|uses?|agree[sd]?|should|must|will|always|never|now|no\ longer)\b)
    |\b(?:notes?|notice|message|instructions?|hints?)\ (?:to|for)\ (?:the\ |any\ |all\ )?(?:ai|assistants?|llms?|chat\ ?bots?|language\ models?|agents?)\b
    |<\s*/?\s*(?:system|instructions?|memory)\s*>
    |(?:记住|記住|记下|記下|保存|存入|写入|寫入|存储|儲存|更新|添加)[^。！？\n]{0,16}(?:用户|用戶)(?:的|是|有|住|在|喜|叫|姓|已|想|要|不|会|會|从|從|现|現|偏|爱|愛)
    |(?:给|給|致|对|對)(?:所有|任何)?(?:AI|助手|模型|机器人|機器人)的?(?:提示|指令|说明|說明|注意)"
);

fn is(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// The pieces in which a text tells an assistant what to remember about «the user», with the rest of their lines. People
/// say «remember that I …»; a message of one piece is left to the reader.
pub(super) fn planted(pieces: &[Piece]) -> Vec<usize> {
    if pieces.len() < 2 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut start = 0;
    for line in pieces.chunk_by(|a, b| a.line == b.line) {
        let first = line.iter().position(|piece| is(&PLANTED, &piece.text));
        found.extend(first.into_iter().flat_map(|first| start + first..start + line.len()));
        start += line.len();
    }
    found
}

/// The pieces of a copied chat: lines with a speaker before them, one of whom speaks twice, and somebody says «I».
pub(super) fn transcript(pieces: &[Piece]) -> Vec<usize> {
    let mut lines: Vec<(String, std::ops::Range<usize>)> = Vec::new();
    let mut says_i = false;
    let mut start = 0;
    for line in pieces.chunk_by(|a, b| a.line == b.line) {
        let end = start + line.len();
        if let Some((name, text)) = line.first().and_then(|first| speaker(&first.text)) {
            says_i |= is(&FIRST_PERSON, text) || line[1..].iter().any(|piece| is(&FIRST_PERSON, &piece.text));
            lines.push((name, start..end));
        }
        start = end;
    }
    let is_me = |name: &str| matches!(name, "me" | "我" | "i");
    let again = |name: &str| lines.iter().filter(|(other, _)| other == name).count() > 1;
    let is_chat = says_i && lines.len() > 1 && lines.iter().any(|(name, _)| is_me(name) || again(name));
    if is_chat { lines.into_iter().flat_map(|(_, line)| line).collect() } else { Vec::new() }
}

/// The speaker before a line, in lower case, and what they say.
fn speaker(line: &str) -> Option<(String, &str)> {
    let found = SPEAKER.as_ref()?.captures(line)?;
    let name = found.name("name")?;
    let lower = name.as_str().to_lowercase();
    let is_label = LABELS.split_whitespace().any(|label| label == lower);
    (!is_label && lower.chars().count() <= 20).then(|| (lower, &line[name.end()..]))
}

/// What somebody else says, from the pieces of a message.
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
        let report = REPORT.as_ref()?.find(text)?;
        let behind = text[report.end()..].trim();
        if is(&BY_SPEAKER, &text[..report.start()]) {
            return None;
        }
        let ends_line = pieces.get(place + 1).is_none_or(|next| next.line != pieces[place].line);
        match behind {
            "" if ends_line => Some(Retold::Below(place)),
            "" => is(&FIRST_PERSON, &pieces[place + 1].text).then_some(Retold::Here(place)),
            behind => is(&FIRST_PERSON, behind).then_some(Retold::Here(place)),
        }
    })
}
