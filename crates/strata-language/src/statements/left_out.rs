//! Pieces that are not the speaker's own word, by the form of the whole message.
//!
//! A request names its material, and the material's sentences look like facts. So a quotation is left out as a whole,
//! and so are the lines after a request for something to be done with them, until the speaker speaks again.

use super::alone::stands_alone;
use super::asked::asks_without_mark;
use super::facts::is_verb;
use super::orders::planted;
use super::others::{Retold, retold, transcript};
use super::pieces::{Form, Piece};
use super::without_greeting;
use crate::Pattern;
use crate::content::has_content;

/// The reason why a piece is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeftOut {
    /// A chat program's own prompt.
    Housekeeping,
    /// A quotation.
    Quotation,
    /// Code.
    Code,
    /// A line of a mail's head, a log or a chat.
    Log,
    /// Material that a request names.
    Material,
    /// Fiction that a request asks for.
    Fiction,
    /// A question that tells nothing.
    Question,
    /// Words of another person that are copied or retold.
    Retold,
    /// An order to remember something about «the user» inside a text, or to drop the assistant's instructions.
    Planted,
    /// A sentence that announces what follows it.
    LeadIn,
    /// A heading or an item without a verb.
    Fragment,
}

impl LeftOut {
    /// The reason in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Housekeeping => "a prompt of the chat program",
            Self::Quotation => "a quotation",
            Self::Code => "code",
            Self::Log => "a line of a log or a mail's head",
            Self::Material => "material of a request",
            Self::Fiction => "fiction",
            Self::Question => "a question",
            Self::Retold => "words of another person",
            Self::Planted => "an order about the user inside a text, or against the assistant's instructions",
            Self::LeadIn => "it only announces what follows",
            Self::Fragment => "it states nothing by itself",
        }
    }
}

/// A reader's judgement of a piece, as far as the form of the message needs it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Leaning {
    /// The probability that it is material of others, or fiction.
    pub foreign: f32,
    /// The probability that it is a request.
    pub request: f32,
}

/// The probability from which a piece counts as a request that names something.
const REQUEST: f32 = 0.3;
/// The probability from which a piece is more probably so than not.
const LIKELY: f32 = 0.5;
/// The number of characters at the beginning of a message in which a chat program says what it wants.
const HEAD_CHARS: usize = 400;

static LIST_ITEM: Pattern =
    Pattern::new(r"^\s*(?:[-*•·]|\(?[A-Za-z\d]{1,2}[).:、]|[甲乙丙丁一二三四五][：:、])\s*");
static LOG: Pattern = Pattern::new(
    r"(?i)^\s*(?:from|to|cc|subject|date|sent|发件人|發件人|收件人|主题|主題|日期)\s*[:：]|^\s*\[?\d{1,2}:\d{2}(?::\d{2})?\]?\s+\S+|^\s*\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d|^\s*(?:ERROR|WARN|INFO|DEBUG|FATAL|Traceback|Exception)\b|^\s*at \w+[.(]|^\s*>",
);
static MAIL_HEAD: Pattern = Pattern::new(
    r"(?i)^\s*(?:from|to|cc|subject|sent|date|收件人|主题|主題)\s*[:：]|(?:发件人|發件人|寄件者)\s*[:：]",
);
static MAIL_SENDER: Pattern = Pattern::new(r"(?i)^\s*from\s*[:：].*@|(?:发件人|發件人|寄件者)\s*[:：]");
static NAMED: Pattern =
    Pattern::new(r"(?i)\b(?:this|these|following|below|attached)\b|[这這]|以下|下面|如下|[转轉]");
static OWN_LIST: Pattern = Pattern::new(
    r"(?i)\bmy (?:own )?(?:personal statement|statement|speech|cv|resume|bio|profile|intro\w*|draft|essay|application|cover letter)\b|自我介[绍紹]|我[写寫]的|\b(?:i|we) (?:have|had|got|need|want|own|use|am|are|do|did)\b|\b(?:i've|we've|i'm|we're)\b|\bmy (?:list|details|plan|setup|data|numbers|stats)\b|我(?:有|的|要|家)",
);
static FIRST_PERSON: Pattern =
    Pattern::new(r"(?i)\b(?:i|i'm|im|i've|ive|i'd|i'll|my|mine|me|we|we're|we've|our|ours|us)\b|[我咱俺]");
static WORKS_ON: Pattern = Pattern::new(
    r"(?i)\b(?:translat\w*|summari[sz]\w*|sum up|proof-?read|check|correct|shorten|rewrite|reword|rephrase|repl(?:y|ies)|answer|respond|explain|mark|fix|edit|polish|convert|turn|format|review|critique)\b|翻[译譯]|[总總][结結]|[润潤]色|修改|改[写寫一成短下]|提[炼煉]|批改|回[复覆]|解[释釋]|看看|看一?下|[简簡][化写寫]",
);
static IMPERATIVE: Pattern = Pattern::new(
    r"(?i)\b(?:gimme|give me|write|make|draft|tell|do me|create|invent|come up with|compose|pretend|act as|role-?play)\b|[写寫编編讲講来來]|假装|扮演",
);
static REAL_PERSON: Pattern = Pattern::new(r"(?i)\b(?:my|our)\b|我[家的们們女儿兒妈媽爸老弟妹哥姐]");
static FICTION: Pattern = Pattern::new(
    r"(?i)\b(?:story|stories|poem|limerick|haiku|sonnet|song|rap|lullaby|fairy ?tale|backstory|screenplay|monologue|scene|villain|protagonist|role-?play\w*|fan ?fic\w*|parody|fictional|fictitious|made[- ]up|invented|pretend|imaginary|dummy|placeholder|fake)\b|故事|小说|小說|童话|童話|剧本|劇本|歌词|歌詞|诗|詩|假装|假裝|扮演|虚构|虛構",
);
static HOUSEKEEPING: Pattern = Pattern::new(
    r"(?ix)
    ^\s*\#{1,4}\s*task\s*:
    |<chat_history>
    |\b(?:generate|write|create|provide|suggest|give|produce|come\ up\ with|make)\b[^.\n]{0,80}\b(?:titles?|tags?|follow-?ups?(?:\ questions?)?|search\ quer(?:y|ies)|headline|emoji)\b[^.\n]{0,80}\b(?:chat|conversation|dialogue|dialog|discussion|thread|chat\ history|messages)\b
    |^\s*(?:summari[sz]e|condense|compress)\b[^.\n]{0,40}\b(?:chat|conversation|dialogue|dialog|discussion|thread)\b
    |(?:为|為|給|给|根据|根據|基于|基於|对|對)[^。\n]{0,12}(?:对话|對話|聊天|会话|會話)[^。\n]{0,20}(?:标题|標題|标签|標籤|摘要|后续问题|後續問題)
    |(?:生成|起|取|拟|擬|提供)[^。\n]{0,16}(?:对话|對話|聊天|会话|會話)[^。\n]{0,8}(?:标题|標題|标签|標籤)",
);

/// Whether a heading is the speaker's own: it speaks in the first person, or is a short label.
pub(super) fn is_own_heading(heading: &str) -> bool {
    const LABEL_WORDS: usize = 5;
    const LABEL_CHARS: usize = 12;
    let han = heading.chars().filter(|c| ('\u{3400}'..='\u{9fff}').contains(c)).count();
    let is_label = han <= LABEL_CHARS && heading.split_whitespace().count() <= LABEL_WORDS;
    FIRST_PERSON.is_match(heading) || is_label
}

/// Whether a heading asks for something to be done with what follows it.
pub(super) fn is_request_for(heading: &str) -> bool {
    NAMED.is_match(heading)
        || WORKS_ON.is_match(heading)
        || IMPERATIVE.is_match(heading)
        || LOG.is_match(heading)
}

/// Whether a message is the prompt by which a chat program titles, tags or summarises a chat. No person said it.
pub fn is_housekeeping(message: &str) -> bool {
    let end = message.char_indices().nth(HEAD_CHARS).map_or(message.len(), |(end, _)| end);
    HOUSEKEEPING.is_match(&message[..end])
}

/// Which pieces of a message are left out, and why. `leanings` has one entry for each piece.
pub fn left_out(pieces: &[Piece], leanings: &[Leaning]) -> Vec<Option<LeftOut>> {
    let mut reasons: Vec<Option<LeftOut>> = pieces
        .iter()
        .map(|piece| match piece.form {
            Form::Plain if is_marker(&piece.text) => Some(LeftOut::Material),
            Form::Plain => is_bare_question(&piece.text).then_some(LeftOut::Question),
            Form::Quotation => Some(LeftOut::Quotation),
            Form::Code => Some(LeftOut::Code),
        })
        .collect();
    let lines = Lines { pieces, leanings };
    mark(&mut reasons, (0..pieces.len()).filter(|place| is_cut(pieces, *place)).collect(), LeftOut::Fragment);
    mark(&mut reasons, planted(pieces), LeftOut::Planted);
    mark(&mut reasons, transcript(pieces), LeftOut::Retold);
    mark(&mut reasons, lines.log(), LeftOut::Log);
    mark(&mut reasons, lines.mail(), LeftOut::Retold);
    mark(&mut reasons, lines.material(), LeftOut::Material);
    let free: Vec<bool> = reasons.iter().map(Option::is_none).collect();
    mark(&mut reasons, lines.retold(&free), LeftOut::Retold);
    let free: Vec<bool> = reasons.iter().map(Option::is_none).collect();
    mark(&mut reasons, lines.fiction(&free), LeftOut::Fiction);
    mark(&mut reasons, lines.inline(&free), LeftOut::Material);
    reasons
}

/// Whether a piece is what is left of a sentence around a quotation, and says nothing without it: «She wrote».
fn is_cut(pieces: &[Piece], place: usize) -> bool {
    let piece = &pieces[place];
    let is_quotation = |other: Option<&Piece>| {
        other.is_some_and(|other| other.form == Form::Quotation && other.line == piece.line)
    };
    let text = piece.text.trim_start_matches([',', ';', ' ']);
    let goes_on = text.starts_with(char::is_lowercase) && !stands_alone(without_joint(text));
    let breaks_off = || {
        let last = text.split_whitespace().next_back().unwrap_or_default();
        let last = last.trim_end_matches([',', ':']).to_lowercase();
        !text.ends_with(['.', '!', '?']) && (is_verb(&last) || last == "that" || last == "me")
    };
    let before = place.checked_sub(1).and_then(|before| pieces.get(before));
    piece.form == Form::Plain
        && (is_quotation(before) && goes_on || is_quotation(pieces.get(place + 1)) && breaks_off())
}

/// A clause without the «and», «but» or «so» that joins it to the one before.
fn without_joint(clause: &str) -> &str {
    ["and ", "but ", "so "].iter().find_map(|joint| clause.strip_prefix(joint)).unwrap_or(clause)
}

/// Whether a piece is a program's note about what was sent: «[photo: a boat]», 【图片】.
fn is_marker(text: &str) -> bool {
    let inside = |open, close| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    inside('[', ']')
        .or(inside('【', '】'))
        .is_some_and(|inside: &str| !inside.contains(['[', ']', '【', '】']))
}

/// Whether a sentence is a question that tells nothing; people often leave the question mark out.
pub fn is_bare_question(text: &str) -> bool {
    let is_marked = text.trim_end().ends_with(['?', '？']);
    if is_marked { !has_content(text) } else { asks_without_mark(without_greeting(text)) }
}

/// Notes a reason for the pieces that have none.
fn mark(reasons: &mut [Option<LeftOut>], places: Vec<usize>, reason: LeftOut) {
    for place in places {
        reasons[place].get_or_insert(reason);
    }
}

/// The pieces of a message by their lines.
struct Lines<'a> {
    pieces: &'a [Piece],
    leanings: &'a [Leaning],
}

impl Lines<'_> {
    fn leans(&self, place: usize) -> Leaning {
        self.leanings.get(place).copied().unwrap_or_default()
    }

    /// The pieces of lines that look like a log, in a message of several lines.
    fn log(&self) -> Vec<usize> {
        if self.pieces.first().map(|piece| piece.line) == self.pieces.last().map(|piece| piece.line) {
            return Vec::new();
        }
        let lines = self.pieces.chunk_by(|a, b| a.line == b.line);
        let is_log = lines.flat_map(|line| {
            let is_log = line.first().is_some_and(|first| LOG.is_match(&first.text));
            line.iter().map(move |_| is_log)
        });
        is_log.enumerate().filter(|(_, is_log)| *is_log).map(|(place, _)| place).collect()
    }

    /// The pieces of a mail with its head. Its «I» is not the speaker's, so only a request ends it.
    fn mail(&self) -> Vec<usize> {
        let has = |pattern: &Pattern, place: usize| pattern.is_match(&self.pieces[place].text);
        let heads: Vec<usize> =
            (0..self.pieces.len()).filter(|place| has(&MAIL_HEAD, *place)).take(2).collect();
        match heads.first() {
            Some(first) if heads.len() > 1 || has(&MAIL_SENDER, *first) => {
                let is_request = |place: &usize| self.leans(*place).request >= LIKELY;
                (*first..self.pieces.len()).take_while(|place| place == first || !is_request(place)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The pieces of the fiction that the first of the `free` pieces asks for. A tale about the speaker's own people is
    /// none.
    fn fiction(&self, free: &[bool]) -> Vec<usize> {
        let text = |place: usize| self.pieces[place].text.as_str();
        let mut asking =
            (0..self.pieces.len()).filter(|place| free[*place] && FICTION.is_match(text(*place)));
        let Some(asks) = asking.next() else { return Vec::new() };
        let Leaning { request, foreign } = self.leans(asks);
        let is_asked = request >= REQUEST || foreign >= REQUEST || IMPERATIVE.is_match(text(asks));
        if !is_asked || REAL_PERSON.is_match(text(asks)) {
            return Vec::new();
        }
        (asks..self.pieces.len())
            .filter(|place| *place == asks || !FIRST_PERSON.is_match(text(*place)))
            .collect()
    }

    /// The pieces of what another person said, until the speaker speaks again.
    fn retold(&self, free: &[bool]) -> Vec<usize> {
        match retold(self.pieces, free) {
            Some(Retold::Here(place)) => {
                let same_line = |other: &usize| self.pieces[*other].line == self.pieces[place].line;
                let is_request = |other: usize| other > place && self.leans(other).request >= LIKELY;
                let later = (place..self.pieces.len()).take_while(same_line);
                later.take_while(|other| !is_request(*other)).collect()
            }
            // Their «I» is not the speaker's: an empty line or a request ends it.
            Some(Retold::Below(place)) => {
                let goes_on = |other: &usize| {
                    self.pieces[*other].line <= self.pieces[other - 1].line + 1
                        && self.leans(*other).request < LIKELY
                };
                (place + 1..self.pieces.len()).take_while(goes_on).collect()
            }
            None => Vec::new(),
        }
    }

    /// The pieces of material that stands behind a colon in the line of the request, until the next request.
    fn inline(&self, free: &[bool]) -> Vec<usize> {
        for place in (0..self.pieces.len()).filter(|place| free[*place]) {
            let text = &self.pieces[place].text;
            let Some(colon) = naming_colon(text) else { continue };
            let (request, material) = text.split_at(colon);
            let asks = WORKS_ON.is_match(request) && !OWN_LIST.is_match(request);
            let first = match asks.then(|| material.trim_start_matches([':', '：', ' '])) {
                Some("") => place + 1,
                Some(material) if is_long(material) => place,
                _ => continue,
            };
            let same_line = |other: &usize| self.pieces[*other].line == self.pieces[place].line;
            let later = (first..self.pieces.len()).take_while(same_line);
            return later
                .take_while(|other| *other <= first || self.leans(*other).request < LIKELY)
                .collect();
        }
        Vec::new()
    }

    /// The pieces of the material that the first naming line names.
    fn material(&self) -> Vec<usize> {
        let mut start = 0;
        for line in self.pieces.chunk_by(|a, b| a.line == b.line) {
            let end = start + line.len();
            let lead: Vec<usize> =
                (start..end).filter(|place| self.pieces[*place].form != Form::Quotation).collect();
            if self.names_material(&lead, end) {
                return self.until_speaker_returns(end);
            }
            start = end;
        }
        Vec::new()
    }

    /// Whether a line names the material that begins at `next`.
    fn names_material(&self, lead: &[usize], next: usize) -> bool {
        let (Some(last), Some(first)) = (lead.last(), self.pieces.get(next)) else { return false };
        let text = &self.pieces[*last].text;
        let asks = lead.iter().any(|place| self.leans(*place).request >= LIKELY)
            || self.leans(*last).request >= REQUEST;
        let named = lead.iter().any(|place| NAMED.is_match(&self.pieces[*place].text));
        let (colon, question) = (text.ends_with([':', '：']), text.ends_with(['?', '？']));
        colon && (named || asks) && !OWN_LIST.is_match(text)
            || named
                && (asks || question)
                && !lead.iter().any(|place| OWN_LIST.is_match(&self.pieces[*place].text))
            || question && LIST_ITEM.is_match(&first.text)
    }

    /// The pieces from `start` on, without the last lines in which the speaker speaks again.
    fn until_speaker_returns(&self, start: usize) -> Vec<usize> {
        let mut end = self.pieces.len();
        while end > start {
            let line = self.pieces[end - 1].line;
            let first = (start..end).find(|place| self.pieces[*place].line == line).unwrap_or(start);
            if first == start || !self.is_own(first..end) {
                break;
            }
            end = first;
        }
        (start..end).collect()
    }

    /// Whether a line after material is the speaker's own.
    fn is_own(&self, mut line: std::ops::Range<usize>) -> bool {
        let first = line.start;
        let foreign = line.clone().any(|place| self.leans(place).foreign >= LIKELY);
        let speaks = line.any(|place| {
            FIRST_PERSON.is_match(&self.pieces[place].text) || self.leans(place).request >= LIKELY
        });
        !foreign && speaks && !LIST_ITEM.is_match(&self.pieces[first].text)
    }
}

/// The place of the first colon that may begin material: not inside a time or an address.
fn naming_colon(text: &str) -> Option<usize> {
    let begins = |(at, c): &(usize, char)| {
        let after_digit = text[..*at].ends_with(|before: char| before.is_ascii_digit());
        let next = text[at + c.len_utf8()..].chars().next();
        (*c == '：' || *c == ':' && next.is_none_or(|next| next.is_whitespace() || !next.is_ascii()))
            && !after_digit
    };
    text.char_indices().find(begins).map(|(at, _)| at)
}

/// Whether what stands behind a colon is long enough to be material.
fn is_long(text: &str) -> bool {
    let han = text.chars().filter(|c| ('\u{3400}'..='\u{9fff}').contains(c)).count();
    han >= 8 || text.split_whitespace().count() >= 4
}
