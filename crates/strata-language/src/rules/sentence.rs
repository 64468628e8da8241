//! Splits a message into the clauses that may state something, without questions, hypotheses, code and quotations.
//!
//! Deliberately absent: the meaning of a clause, which the grammars read.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::tz::Offset;

use super::claim::{Arity, Claim, Hold, ReadClaim};
use super::{chinese, compound, english, value};
use crate::Pattern;
use crate::rules::StatementKind;
use crate::time::{self, Precision};

/// The maximum number of characters of a message that are read. Longer texts are pasted, not said.
const MAX_CHARS: usize = 4_000;

/// The grammar that reads a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    English,
    Chinese,
}

/// A clause that may state something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clause {
    pub(super) text: String,
    pub(super) language: Language,
    /// «I think», «maybe», 可能.
    pub(super) hedged: bool,
    /// «Remember that», 记住.
    pub(super) asked_for: bool,
}

static CODE_BLOCK: Pattern = Pattern::new(r"(?s)```.*?(?:```|$)");
static CODE: Pattern = Pattern::new(
    r"(?i)^\s*(?:at |File |Traceback|Caused by|warning|error|fatal|exception|panic|thread '|\$ |>>> |#include|import |from \S+ import|def |class |fn |let |const |var |function|public |private |return |SELECT |INSERT |\[?\d{4}-\d\d-\d\d[T ]\d\d:|\[\w+\] |<\w+)|[{};]\s*$|=>|::|</|\(\)|==|!=|&&|\|\||error\[|https?://\S+$",
);
static QUOTE: Pattern = Pattern::new(r#""([^"\n]+)"|“([^”\n]+)”|「([^」\n]+)」|『([^』\n]+)』"#);
/// A longer text between quotation marks is none: one of the marks is missing.
const LONGEST_QUOTE: usize = 400;
static FIRST_PERSON: Pattern = Pattern::new(r"(?i)\b(?:i|i'm|my|me|we)\b|我");
static LATER_CAPITAL: Pattern = Pattern::new(r".[ ][A-Z]");
static TO_YOU: Pattern = Pattern::new(r"(?i)\b(?:you|your|yourself)\b");
static ASIDE: Pattern = Pattern::new(r"（[^）]{0,40}）|\[[^\]]{0,200}\]|【[^】]{0,80}】");
static QUESTION: Pattern = Pattern::new(
    r"(?i)^(?:what|where|who|whom|whose|how|why|which|do|does|did|can|could|is|are|am|would|will|should|shall|have you|has|was|were|may i)\b|^(?:when|what) (?:do|does|did|is|are|will|should)\b",
);
static SUPPOSED: Pattern = Pattern::new(
    r"(?i)\b(?:if|would|wish|imagine|suppose|supposing|pretend|hypothetically|what if|as though|unless|let's say|let us say|assuming|role-?play|i'd|we'd|you'd)\b",
);
static REPORTED: Pattern =
    Pattern::new(r"(?i)\b(?:said|says|saying|told|tells|asked|claims|claimed|according to|wrote|thinks)\b");
static ENGLISH_LEAD: Pattern = Pattern::new(
    r"(?i)^(?:(?:actually|sorry|no|nope|yes|yeah|yep|yup|oh|ah|wait|oh wait|hmm|well|so|and|but|also|plus|ok|okay|right|anyway|correction|fyi|btw|by the way|for the record|just so you know|to be clear|never ?mind|funny(?: enough)?|honestly|in fact|as it turns out|it turns out(?: that)?|turns out(?: that)?|good news|bad news|great news|big news|news|update|quick update|quick note|small update|one more thing|one thing|another thing|i meant(?: to say)?|i mean|my mistake|my bad|oops|scratch that|hi|hello|hey|hey there|hi there|guess what|ps|p\.s|you know|you know what|now|these days|nowadays|currently|at the moment|recently|as i mentioned|as you know|i should mention(?: that)?|i forgot to (?:say|mention)(?: that)?|did i mention(?: that)?|thanks|thank you|please|unfortunately|fortunately|luckily|sadly|finally|after all|speaking of which|seriously|alright|haha|lol|cool|great|awesome|perfect|sure|exactly|i confess(?: that)?|the truth is(?: that)?|truth be told|then|still|just|since then|for now|to be honest|tbh|i have to say|what i meant is(?: that)?|i was wrong|that was wrong|let me correct that|let me correct myself|small correction|again|i can tell you(?: that)?|i realised(?: that)?|i realized(?: that)?|note|because|although|though|however|besides|meanwhile|otherwise|instead)\b(?: \w{2,10})?[,:!.…-]+|(?:actually|sorry|oh|well|so|and|but|also|plus|now|then|btw|fyi|honestly|because|although|though|however|turns out(?: that)?|it turns out(?: that)?|i meant|nowadays|currently|these days|just so you know|by the way|by now|for the record|finally|yes|yeah|hey|hi|please note(?: that)?|unfortunately|luckily|sadly|apparently|still|at the moment|anyway|i realised(?: that)?|i realized(?: that)?|i should mention(?: that)?|i forgot to (?:say|mention)(?: that)?|as of (?:now|today|this week),?|from now on,?|starting today,?))\s+",
);
static ENGLISH_HEDGE: Pattern = Pattern::new(
    r"(?i)^(?:i (?:think|guess|believe|suppose|assume|reckon|suspect)(?: that)?,? |maybe |perhaps |probably |possibly |apparently |i am not sure but |i'm not sure,? but )|\b(?:maybe|perhaps|probably|possibly|i think|i guess|i suppose|not sure|kind of|sort of)\b",
);
static ENGLISH_ASKED: Pattern = Pattern::new(
    r"(?i)^(?:please )?(?:(?:always )?(?:remember|note|keep in mind|bear in mind|make a note|take note|do not forget|don't forget|never forget|write down|save this|store this|add to (?:your )?memory)(?: for (?:me|later|next time|the future))?(?:(?:,|:)? (?:that )|[,:] ))(?<rest>.+)$",
);
static CLAUSE_START: Pattern = Pattern::new(
    r"(?i)(?:(?P<mark>[,;:]|\s[-–—]|—)\s*|\s)(?P<join>(?:(?:and|but|so|then|also|plus|though|whereas|while|however|now|because|since then|these days|meanwhile|nowadays|as|today)\s+)*)(?P<start>(?:i|i'm|i've|i'll|my|we|we're|we've|our|remind me|do not forget|don't forget|she|he|they|it|it's|that's|you|you're|there's)\b)",
);
static SAME_SUBJECT: Pattern = Pattern::new(
    r"(?i)^(?P<first>(?:i|we)(?:'m|'ve)?\b.*?),? (?:and|but)(?: also| now| then)? (?P<second>(?:live|work|study|have|love|hate|like|drive|speak|play|own|prefer|need|moved|started|joined|adopted|bought|am|got|enjoy|collect|support|grew up|was born|can't stand|don't|do not|dislike|no longer|used to|weigh|earn|learn)\b.+)$",
);
static CHINESE_QUESTION: Pattern = Pattern::new(
    r"(?:吗|么)$|^(?:请问|为什么|怎么|什么|哪|谁|几|多少|能不能|可不可以|是不是|有没有|你)|(?:什么|怎么样|哪里|哪儿|哪个|多少|几点|是谁|为什么|怎么办|是不是|有没有|能不能|要不要|好不好)",
);
static CHINESE_SUPPOSED: Pattern =
    Pattern::new(r"如果|假如|要是|假设|倘若|万一|想象一下|假装|的话|若是|即使|就算|扮演|假定");
static CHINESE_LEAD: Pattern = Pattern::new(
    r"^(?:(?:不对|说错了|我说错了|搞错了|记错了|更正一下|纠正一下|更正|等等|等一下|对了|哦对了|哦|啊|嗯|哎|唉|诶|哈哈|好的|好吧|好|那|其实|话说|顺便说一下|顺便说|顺便|另外|还有|而且|但是|不过|可是|所以|然后|因为|虽然|总之|反正|你知道吗|告诉你|跟你说|我跟你说|说起来|事实上|实际上|老实说|说实话|最新消息|更新一下|抱歉|对不起|不好意思|是的|不是|没错|没有|后来|结果|今天|你好|您好|嗨|谢谢|算了)[，,：:！!\s]+|(?:(?:医生|大夫|牙医|检查结果?|化验结果?|体检报告|报告)(?:说|显示|发现|告诉我|确认)[，,]?)|(?:其实|不过|但是|但|可是|而且|另外|所以|然后|因为|虽然|对了|顺便说一下|说实话|老实说|事实上|实际上|后来|结果))",
);
static CHINESE_ALMOST: Pattern =
    Pattern::new(r"差点|差一点|险些|本来想|本想|本来打算|本来要|原本想|原本打算");
static CHINESE_CORRECTS: Pattern = Pattern::new(r"不对|说错|搞错|记错|更正|纠正|打错|写错");
static REMINDED: Pattern = Pattern::new(
    r"^(?P<what>[^，,]{4,30})[，,](?:到时候?|记得|请|麻烦你?)*提醒(?:一下)?我(?:一下|下|一声|哦|吧|啊|喔)*$",
);
static CHINESE_HEDGE: Pattern =
    Pattern::new(r"可能|也许|大概|好像|或许|估计|似乎|应该是|我觉得|我想我|说不定|没准|貌似");
static CHINESE_ASKED: Pattern = Pattern::new(
    r"^(?:请|你|你要|请你|麻烦你?|帮我|务必|一定要)*(?:记住|记一下|记下来?|记好|牢记|备注一下|备注)(?:了)?[，,：:\s]*(?:这个|这一点|一点)?[，,：:\s]*(?P<rest>.+)$",
);

/// Whether a message asks a question, in English or Chinese.
pub fn is_question(text: &str) -> bool {
    let text = text.trim();
    let said = text.trim_end_matches(['。', '.', '!', '！', '…', ' ']);
    text.ends_with(['?', '？']) || QUESTION.is_match(said) || CHINESE_QUESTION.is_match(said)
}

/// A question with its mark, which many people leave out and a reader of questions goes by.
pub fn with_question_mark(text: &str) -> Cow<'_, str> {
    let said = text.trim_end_matches(['。', '.', '!', '！', '…', ' ']);
    if !is_question(text) || said.ends_with(['?', '？']) {
        return Cow::Borrowed(text);
    }
    let mark = if said.ends_with(|c| ('\u{3400}'..='\u{9FFF}').contains(&c)) { '？' } else { '?' };
    Cow::Owned(format!("{said}{mark}"))
}

/// The clauses of a message that may state something.
pub(super) fn clauses(text: &str) -> Vec<Clause> {
    let end = text.char_indices().nth(MAX_CHARS).map_or(text.len(), |(end, _)| end);
    let text = said_by_the_speaker(&text[..end]);
    let mut clauses = Vec::new();
    for line in text.lines() {
        if line.trim().is_empty() || CODE.is_match(line) {
            continue;
        }
        for sentence in sentences(line) {
            match language(sentence) {
                Language::English => english_clauses(sentence, &mut clauses),
                Language::Chinese => chinese_clauses(sentence, &mut clauses),
            }
        }
    }
    clauses
}

/// The message without code and quotations; titles and names only lose their quotation marks.
fn said_by_the_speaker(text: &str) -> String {
    let text = text.replace('’', "'");
    let text = CODE_BLOCK
        .get()
        .map_or(Cow::Borrowed(text.as_str()), |code| code.replace_all(&text, "\n"))
        .into_owned();
    let text =
        ASIDE.get().map_or(Cow::Borrowed(text.as_str()), |aside| aside.replace_all(&text, "")).into_owned();
    let Some(quote) = QUOTE.get() else { return text };
    quote
        .replace_all(&text, |found: &regex::Captures<'_>| {
            let inside = (1..=4).find_map(|group| found.get(group)).map_or("", |group| group.as_str());
            if inside.chars().count() > LONGEST_QUOTE {
                return found[0].to_owned();
            }
            let long = inside.split_whitespace().count() > 6;
            if long || FIRST_PERSON.is_match(inside) { String::new() } else { inside.to_owned() }
        })
        .into_owned()
}

/// The language of a sentence: Chinese if it has enough Chinese characters to be a Chinese sentence with foreign words.
fn language(text: &str) -> Language {
    let han = text.chars().filter(|c| ('\u{4E00}'..='\u{9FFF}').contains(c)).count();
    let words =
        text.split_whitespace().filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic())).count();
    if han > 0 && han >= words { Language::Chinese } else { Language::English }
}

/// The sentences with their final mark. A full stop ends one only before white space and not after an abbreviation.
fn sentences(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut from = 0;
    for (at, c) in line.char_indices() {
        let after = at + c.len_utf8();
        let is_end = match c {
            '。' | '！' | '？' | '；' | '\n' | '…' | '!' | '?' => true,
            '.' | ';' => stop_ends(&line[from..at], &line[after..]),
            _ => false,
        };
        if is_end {
            found.push(line[from..after].trim());
            from = after;
        }
    }
    found.push(line[from..].trim());
    found.retain(|sentence| sentence.chars().count() > 1);
    found
}

/// Whether a full stop or semicolon between two texts ends a sentence, and not an abbreviation, an initial or a number.
fn stop_ends(before: &str, after: &str) -> bool {
    const SHORT: [&str; 12] = ["mr", "mrs", "ms", "dr", "st", "prof", "e.g", "i.e", "vs", "no", "jr", "inc"];
    let spaced = after.chars().next().is_none_or(|next| next.is_whitespace() || !next.is_ascii());
    let word = before.rsplit(' ').next().unwrap_or_default().to_lowercase();
    let initial = word.len() == 1 && word != "i";
    spaced && !SHORT.contains(&word.as_str()) && !initial
}

fn english_clauses(sentence: &str, clauses: &mut Vec<Clause>) {
    if sentence.ends_with('?') || sentence.ends_with("？") {
        return;
    }
    let mut sentence = sentence.trim_end_matches(['.', '!', ' ', ';', '…']);
    let mut asked_for = false;
    loop {
        if let Some(lead) = ENGLISH_LEAD.find(sentence).filter(|lead| lead.end() > 0) {
            sentence = &sentence[lead.end()..];
        } else if let Some(rest) =
            ENGLISH_ASKED.get().and_then(|asked| asked.captures(sentence)?.name("rest"))
        {
            asked_for = true;
            sentence = rest.as_str();
        } else {
            break;
        }
    }
    if QUESTION.is_match(sentence) || SUPPOSED.is_match(sentence) || REPORTED.is_match(sentence) {
        return;
    }
    let unfolded = compound::unfold(sentence);
    for text in unfolded.unwrap_or_else(|| split_english(sentence)) {
        let mut text = text.trim();
        while let Some(lead) = ENGLISH_LEAD.find(text) {
            text = &text[lead.end()..];
        }
        let hedged = ENGLISH_HEDGE.is_match(text);
        let text = match ENGLISH_HEDGE.get().filter(|_| hedged) {
            Some(hedge) => hedge.replace_all(text, "").split_whitespace().collect::<Vec<_>>().join(" "),
            None => text.to_owned(),
        };
        if text.len() > 3 {
            clauses.push(Clause { text, language: Language::English, hedged, asked_for });
        }
    }
}

/// Splits a sentence at a new subject after a comma or a conjunction, and at «and» with another verb of the same
/// subject.
fn split_english(sentence: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut from = 0;
    if let Some(start) = CLAUSE_START.get() {
        for found in start.captures_iter(sentence) {
            let (Some(whole), Some(begin)) = (found.get(0), found.name("start")) else { continue };
            let joined = found.name("mark").is_some()
                || found.name("join").is_some_and(|join| !join.as_str().is_empty());
            // «Luc and I» is one subject.
            let words = sentence[from..whole.start()].split_whitespace().count();
            if joined && words > 1 {
                parts.push(&sentence[from..whole.start()]);
                from = begin.start();
            }
        }
    }
    parts.push(&sentence[from..]);
    let mut clauses = Vec::new();
    for part in parts {
        let mut part = part.to_owned();
        while let Some((first, second)) = SAME_SUBJECT.get().and_then(|same| {
            // Further right the verb belongs to another clause («people who read it and love it»).
            let found =
                same.captures(&part).filter(|found| found["first"].split_whitespace().count() <= 8)?;
            Some((found["first"].to_owned(), format!("I {}", &found["second"])))
        }) {
            clauses.push(first);
            part = second;
        }
        clauses.push(part);
    }
    clauses
}

fn chinese_clauses(sentence: &str, clauses: &mut Vec<Clause>) {
    let asks = sentence.ends_with(['?', '？']);
    let simplified = chinese::simplified(sentence);
    let trimmed = simplified.trim_end_matches(['。', '！', '!', '.', '；', '…', ' ', '~', '～', '?', '？']);
    let (sentence, asked_for) = without_chinese_lead(trimmed);
    if asks || CHINESE_SUPPOSED.is_match(sentence) {
        return;
    }
    let corrected = corrected_chinese(&simplified, sentence);
    let sentence = corrected.as_deref().unwrap_or(sentence);
    let reminded = REMINDED.captures(sentence).map(|found| {
        format!(
            "提醒我{}",
            found["what"].trim_start_matches('我').replacen("需要", "", 1).replacen('要', "", 1)
        )
    });
    let joined = join_chinese(reminded.as_deref().unwrap_or(sentence));
    clauses.extend(
        joined.split(['，', ',', '；', ';']).filter_map(|part| chinese_clause(part.trim(), asked_for)),
    );
}

/// The sentence without its introductory words, and whether one of them asks to remember it.
fn without_chinese_lead(mut sentence: &str) -> (&str, bool) {
    let mut asked_for = false;
    loop {
        if let Some(rest) = CHINESE_ASKED.get().and_then(|asked| asked.captures(sentence)?.name("rest")) {
            asked_for = true;
            sentence = rest.as_str();
        } else if let Some(end) = chinese_lead(sentence) {
            sentence = &sentence[end..];
        } else {
            return (sentence, asked_for);
        }
    }
}

/// The end of the introductory words of a Chinese text, if more text follows.
fn chinese_lead(text: &str) -> Option<usize> {
    let lead = CHINESE_LEAD.find(text)?;
    (lead.end() < text.len()).then_some(lead.end())
}

/// Joins clauses that are one statement: 不是甲，而是乙 and 有只猫，叫团子.
fn join_chinese(sentence: &str) -> String {
    let joined = sentence
        .replace("，而是", "而是")
        .replace(",而是", "而是")
        .replace("，叫我", "；叫我")
        .replace("，叫", "叫")
        .replace("，名字叫", "叫")
        .replace("，名叫", "叫");
    if joined.contains("不是") && !joined.starts_with("不是") && !joined.contains("而是") {
        joined.replace("，不是", "而不是").replace("，而不是", "而不是")
    } else {
        joined
    }
}

/// One part of a Chinese sentence as a clause; none if it asks, almost happened, or is too short or too long.
fn chinese_clause(mut part: &str, asked_for: bool) -> Option<Clause> {
    while let Some(end) = chinese_lead(part) {
        part = part[end..].trim_start();
    }
    if CHINESE_QUESTION.is_match(part) || CHINESE_ALMOST.is_match(part) {
        return None;
    }
    let hedged = CHINESE_HEDGE.is_match(part);
    let text = match CHINESE_HEDGE.get().filter(|_| hedged) {
        Some(hedge) => hedge.replace_all(part, "").into_owned(),
        None => part.to_owned(),
    };
    let chars = text.chars().count();
    (chars > 2 && chars < 60).then_some(Clause { text, language: Language::Chinese, hedged, asked_for })
}

/// 不对，是搬到台南: a correction without a subject is about the speaker.
fn corrected_chinese(whole: &str, rest: &str) -> Option<String> {
    let lead = whole.get(..whole.len().checked_sub(rest.len())?)?;
    let said = rest.strip_prefix("应该是").or_else(|| rest.strip_prefix('是'))?;
    (CHINESE_CORRECTS.is_match(lead) && !said.contains(['我', '，', ','])).then(|| format!("我{said}"))
}

/// A sentence that the user asked to remember and that no rule reads, in the third person.
pub(super) fn in_its_own_words(clause: &Clause, who: &str) -> Option<ReadClaim> {
    let text = clause.text.trim();
    let claims_about_person = FIRST_PERSON.is_match(text)
        || text.contains(|c: char| c.is_ascii_digit())
        || LATER_CAPITAL.is_match(text);
    let stands = claims_about_person && !TO_YOU.is_match(text);
    if text.chars().count() < 4 || clause.language == Language::English && !stands {
        return None;
    }
    let content = match clause.language {
        Language::English => english::in_its_own_words(text, who),
        Language::Chinese => chinese::in_third_person(text, who),
    };
    let claim = Claim {
        subject: String::new(),
        slot: "said".to_owned(),
        value: value::terms(text),
        detail: Default::default(),
        old: None,
        arity: Arity::Many,
        hold: Hold::Now,
        errand: None,
    };
    Some(ReadClaim { claim, content, kind: StatementKind::Fact, confidence: 0.9, begins: false })
}

/// Adds the date after a relative day in the future: «tomorrow (2024-05-10)».
pub(super) fn with_dates(content: &str, at: Timestamp) -> String {
    let mut dated = String::with_capacity(content.len());
    let mut from = 0;
    for span in time::parse(content, at) {
        let named = content.get(span.text.clone()).unwrap_or_default();
        let absolute = named.contains(|c: char| c.is_ascii_digit());
        if span.precision > Precision::Day || absolute || span.end <= at {
            continue;
        }
        dated.push_str(&content[from..span.text.end]);
        let day = Offset::UTC.to_datetime(span.start).date();
        dated.push_str(&format!(" ({day})"));
        from = span.text.end;
    }
    dated.push_str(&content[from..]);
    dated
}
