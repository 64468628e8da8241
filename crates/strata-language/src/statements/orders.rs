//! Orders that no user gives to be remembered: what a pasted text tells an assistant to store about «the user», and orders to
//! drop the assistant's own instructions. A standing instruction such as «always answer in French» is none of them.

use std::borrow::Cow;
use std::ops::Range;

use super::pieces::{Piece, pieces};
use crate::Pattern;

static PLANTED: Pattern = Pattern::new(
    r"(?ix)
    \b(?:remember|note|store|save|record|memori[sz]e|add|update|keep\ in\ mind)\b[^.!?\n]{0,60}\bthe\ user(?:['’]s\b|\s+(?:is|was|has|had|lives?|works?|likes?|loves?|hates?|prefers?|wants?|needs?|moved|owns?|uses?|agree[sd]?|should|must|will|always|never|now|no\ longer)\b)
    |\b(?:notes?|notice|message|instructions?|hints?)\ (?:to|for)\ (?:the\ |any\ |all\ )?(?:ai|assistants?|llms?|chat\ ?bots?|language\ models?|agents?)\b
    |<\s*/?\s*(?:system|instructions?|memory)\s*>
    |(?:记住|記住|记下|記下|保存|存入|写入|寫入|存储|儲存|更新|添加)[^。！？\n]{0,16}(?:用户|用戶)(?:的|是|有|住|在|喜|叫|姓|已|想|要|不|会|會|从|從|现|現|偏|爱|愛)
    |(?:给|給|致|对|對)(?:所有|任何)?(?:AI|助手|模型|机器人|機器人)的?(?:提示|指令|说明|說明|注意)",
);

// Rights that «the user» gets by an order to remember them.
static RIGHTS: Pattern = Pattern::new(
    r"(?ix)\bthe\ user\b[^.!?\n]{0,30}\b(?:admin(?:istrator)?s?|root|super-?users?|authori[sz]ed|verified|permissions?|privileges?|full\ access)\b
    |(?:用户|用戶)[^。！？\n]{0,10}(?:管理员|管理員|超级用户|超級用戶|最高权限|最高權限|所有权限|所有權限|已授权|已授權)",
);
// Orders to drop or reveal the assistant's instructions, or to act without them. «Forget my earlier instructions» is the speaker's own
// affair.
static OVERRIDE: Pattern = Pattern::new(
    r"(?ix)
    (?P<who>\b(?:i|we|they|he|she|who|people)(?:\ \w+)?\s+)?\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|overrid(?:e|ing)|bypass(?:ing)?|discard|drop|neglect)\s+(?:(?:all|any|every|each|of|the|your|these|those|previous(?:ly\ given)?|prior|earlier|above|preceding|former|existing|original|initial|current|system|safety|content|hidden)\s+)+(?:\w+\s+)?(?:instructions|prompts?|rules|guidelines?|directives|restrictions|safeguards|polic(?:y|ies)|constraints|training|programming|filters?)\b
    |\b(?:ignore|disregard|forget)\s+(?:everything|anything|all)\s+(?:above|before\ this|you\ (?:were|have\ been)\ (?:told|instructed|given))
    |\b(?:reveal|leak|print|output|repeat|show|expose|disclose|dump)\b[^.!?\n]{0,30}\b(?:system\ prompts?|hidden\ (?:instructions|prompts?)|initial\ (?:instructions|prompts?)|developer\ message)
    |\b(?:from\ now\ on|starting\ now|henceforth)\b,?\ (?:you(?:\ are|['’]re|\ will\ be|\ will\ act)|act|behave|pretend)\b[^.!?\n]{0,80}\b(?:admin\w*|root|unrestricted|unfiltered|uncensored|jailbr\w+|developer\ mode|DAN|reveals?|(?:without|no)\ (?:any\ )?(?:rules|restrictions|limits|filters|guidelines)|everyone['’]s|other\ users)
    |^\W*(?:system|admin(?:istrator)?|developer)\ (?:note|notice|prompt|override|instructions?)\s*:
    |^\W*(?:new|updated|revised)\ (?:system\ (?:prompt|message|instructions?)|developer\ message)\b\W
    |^\W*(?:新的?|更新后的)(?:系统|系統)(?:提示|指令|消息)
    |\byou\ are\ now\ (?:an?\ |in\ )?(?:admin\w*|root|unrestricted|unfiltered|uncensored|jailbr\w+|developer\ mode|DAN)\b
    |(?:忽略|无视|無視|忘掉|忘记|忘記|不要理会|不要理會|别管|別管|绕过|繞過|推翻|覆盖|覆蓋|抛开|拋開)(?:掉|你|了)?[^我。！？\n]{0,6}(?:之前|以前|先前|前面|上面|以上|此前|原来|原來|原有|系统|系統|所有|一切|全部)[^我。！？\n]{0,8}(?:指令|指示|提示|规则|規則|设定|設定|限制|约束|約束|命令)
    |(?:从现在起|从现在开始|從現在起|從現在開始|从此刻起|接下来|接下來)[，,]?\s*你(?:就是|是|将是|將是|扮演|变成|變成)[^。！？\n]{0,16}(?:管理员|管理員|超级用户|超級用戶|无限制|無限制|不受(?:任何)?限制|没有(?:任何)?限制|沒有(?:任何)?限制|越狱|越獄|开发者模式|開發者模式)
    |(?:透露|泄露|洩露|输出|輸出|打印|列印|公开|公開|交出|复述|複述)[^。！？\n]{0,10}(?:系统提示|系統提示|提示词|提示詞|内部指令|內部指令|其他用户|其他用戶)",
);

// Marks of the templates in which programs hand conversations to models: nobody types them in a message of their own.
static TEMPLATE: Pattern = Pattern::new(
    r"(?ix)<\|\s*(?:im_start|im_end|im_sep|system|user|assistant|end|endoftext|eot_id|eom_id|begin_of_text|end_of_text|start_header_id|end_header_id)\s*\|>
    |\[/?\s*(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS)\s*\]|<</?SYS>>|<(?:start|end)_of_turn>",
);

/// Whether a text orders the assistant to drop its instructions, or to remember what «the user» is.
fn is_order(text: &str) -> bool {
    PLANTED.is_match(text) || TEMPLATE.is_match(text) || overrides(text)
}

/// Whether a text orders the assistant to drop its instructions. «I ignore all rules» tells something about the speaker.
fn overrides(text: &str) -> bool {
    let is_ordered = |found: regex::Captures<'_>| found.name("who").is_none();
    OVERRIDE.get().is_some_and(|pattern| pattern.captures_iter(text).any(is_ordered))
}

/// Whether a piece holds an order, so that the pieces around it have to be judged apart from it.
pub fn hold_orders(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| is_order(&piece.text))
}

/// The pieces that are orders, with the rest of their lines. People say «remember that I …», so a message of one piece that tells
/// something about «the user» is left to the reader, unless it gives rights or drops the assistant's instructions.
pub(super) fn planted(pieces: &[Piece]) -> Vec<usize> {
    let is_planted = |text: &str| match pieces {
        [_] => overrides(text) || TEMPLATE.is_match(text) || PLANTED.is_match(text) && RIGHTS.is_match(text),
        _ => is_order(text),
    };
    let templates = between_templates(pieces);
    let mut found = Vec::new();
    let mut start = 0;
    for line in pieces.chunk_by(|a, b| a.line == b.line) {
        let first = line.iter().position(|piece| is_planted(&piece.text) || templates.contains(&piece.line));
        found.extend(first.into_iter().flat_map(|first| start + first..start + line.len()));
        start += line.len();
    }
    found
}

/// The lines from the first mark of a template to the last one.
fn between_templates(pieces: &[Piece]) -> Range<usize> {
    let mut marked = pieces.iter().filter(|piece| TEMPLATE.is_match(&piece.text)).map(|piece| piece.line);
    let first = marked.next();
    first.map_or(0..0, |first| first..marked.next_back().unwrap_or(first) + 1)
}

/// A message without the lines, or ends of lines, that are orders.
pub fn without_orders(message: &str) -> Cow<'_, str> {
    if !is_order(message) {
        return Cow::Borrowed(message);
    }
    let pieces = pieces(message);
    let orders = planted(&pieces);
    if orders.is_empty() {
        return Cow::Borrowed(message);
    }
    let kept = pieces.iter().enumerate().filter(|(place, _)| !orders.contains(place));
    Cow::Owned(kept.map(|(_, piece)| piece.text.as_str()).collect::<Vec<_>>().join("\n"))
}
