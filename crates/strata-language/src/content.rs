//! Whether a text says anything: «Porto» and «4417» do; «ok», «thanks!», 哈哈 and «where is it?» do not.
//!
//! A text is judged sentence by sentence. Words of courtesy («great», 好的) and words of grammar («it», «know», 的) carry no
//! content; every other word does. A statement needs one word with content. A question needs several, because it asks
//! more than it says: «did I tell you that my brother moved to Oslo?» says something, «who moved?» does not. Chinese is
//! judged by characters, because this crate has no dictionary. Deliberately absent: whether a text is true, or answers
//! a certain question.

mod words;

use std::collections::HashMap;

use crate::sentences;
use crate::text::{fold, is_stop_word};
use words::{
    CHINESE_COURTESY, CHINESE_GREETINGS, CHINESE_LIGHT, COURTESY, COURTESY_PHRASES, GREETINGS, LEADS, LIGHT,
    TAGS,
};

/// A longer text always says something. Courtesies are shorter.
const MAX_CHARS: usize = 160;

/// The number of words with content from which a question says something beside what it asks: «what …», «is it …», and a
/// sentence that is a question by its mark alone («your brother?»).
const OPEN_QUESTION: usize = 4;
const CLOSED_QUESTION: usize = 3;
const MARKED_QUESTION: usize = 2;

/// The most Chinese characters of a name in a greeting.
const MAX_NAME_CHARS: usize = 3;

/// Whether a text says anything that could answer a question.
pub fn has_content(text: &str) -> bool {
    text.chars().nth(MAX_CHARS).is_some() || sentences_of(text).any(|kind| kind == SentenceKind::Content)
}

/// Whether a message is only a greeting, thanks, agreement or another courtesy: «good morning!», «ok, thanks», 谢谢.
pub fn is_courtesy(message: &str) -> bool {
    if message.chars().nth(MAX_CHARS).is_some() {
        return false;
    }
    let mut courtesies = 0;
    for kind in sentences_of(message) {
        match kind {
            SentenceKind::Courtesy => courtesies += 1,
            SentenceKind::Blank => {}
            SentenceKind::Bare | SentenceKind::Content => return false,
        }
    }
    courtesies > 0
}

/// The content of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SentenceKind {
    /// No letters and no digits.
    Blank,
    /// Only words of courtesy and grammar.
    Courtesy,
    /// Only words of grammar, or a question that says nothing.
    Bare,
    /// Something is said.
    Content,
}

fn sentences_of(text: &str) -> impl Iterator<Item = SentenceKind> + '_ {
    let mut start = 0;
    let ends = sentences::ends(text).chain([text.len()]);
    ends.map(move |end| SentenceKind::of(&fold(&text[std::mem::replace(&mut start, end)..end])))
}

impl SentenceKind {
    /// The kind of a folded sentence.
    fn of(sentence: &str) -> Self {
        let parts: Vec<Part> = sentence.split([',', ';', ':', '、']).map(Part::new).collect();
        let asks = Asks::of(sentence, &parts);
        let content: usize = parts.iter().map(Part::weight).sum();
        let has_digits = parts.iter().any(|part| part.digits);
        let says = match asks {
            Asks::No => content > 0 && !names_someone(&parts),
            Asks::Open => content >= OPEN_QUESTION,
            Asks::Closed => content >= CLOSED_QUESTION || has_digits,
            Asks::ByMark => content >= MARKED_QUESTION || has_digits,
            Asks::Tag => content > 0,
        };
        let is_courteous = parts.iter().any(|part| part.courtesies > 0);
        match (says, asks) {
            (true, _) => Self::Content,
            (false, Asks::Open | Asks::Closed) => Self::Bare,
            (false, _) if is_courteous => Self::Courtesy,
            (false, _) if parts.iter().all(Part::is_blank) => Self::Blank,
            (false, _) => Self::Bare,
        }
    }
}

/// How a sentence asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    No,
    /// «what is …», 什么.
    Open,
    /// «is it …», 吗.
    Closed,
    /// A statement with a question behind it: «…, right?», 对吧.
    Tag,
    /// By the question mark alone.
    ByMark,
}

const OPEN_WORDS: [&str; 8] = ["what", "where", "who", "whom", "whose", "which", "why", "how"];
const HELPERS: [&str; 24] = [
    "do", "does", "did", "is", "are", "am", "was", "were", "will", "would", "should", "shall", "can",
    "could", "have", "has", "had", "may", "might", "don", "didn", "isn", "aren", "won",
];
/// Words that follow a helping verb in a question: «is it», but not «is fine».
const SUBJECTS: [&str; 16] = [
    "i", "you", "we", "he", "she", "it", "they", "the", "my", "your", "our", "there", "this", "that",
    "anyone", "t",
];
const CHINESE_OPEN: [&str; 19] = [
    "什么", "怎么", "怎样", "哪里", "哪儿", "哪个", "哪天", "哪", "谁", "几点", "几号", "几", "多少", "多大",
    "多久", "为何", "为啥", "啥", "何时",
];
const CHINESE_TAGS: [&str; 7] = ["对吧", "对吗", "是吧", "是吗", "对不对", "是不是", "没错吧"];

impl Asks {
    fn of(sentence: &str, parts: &[Part]) -> Self {
        let is_marked = sentence.trim_end().ends_with('?');
        let said = sentence.trim_end_matches(|c: char| !c.is_alphanumeric());
        if CHINESE_TAGS.iter().any(|tag| said.ends_with(tag)) && said.chars().count() > 4 {
            return Self::Tag;
        }
        if let Some(open) = chinese_question(said, is_marked) {
            return open;
        }
        let words: Vec<&str> = parts.iter().flat_map(|part| part.words.iter().map(String::as_str)).collect();
        let led = words.iter().take_while(|word| LEADS.contains(**word)).count();
        let (first, second) = (words.get(led).copied(), words.get(led + 1).copied());
        let is_helped = |word: Option<&str>| word.is_some_and(|word| HELPERS.contains(&word));
        if first.is_some_and(|word| OPEN_WORDS.contains(&word))
            || (first == Some("when") && is_helped(second))
        {
            return Self::Open;
        }
        if is_helped(first) && (is_marked || second.is_some_and(|word| SUBJECTS.contains(&word))) {
            return Self::Closed;
        }
        match parts.last() {
            _ if !is_marked => Self::No,
            Some(last) if parts.len() > 1 && TAGS.contains(last.words.join(" ").as_str()) => Self::Tag,
            _ => Self::ByMark,
        }
    }
}

/// A Chinese question: by its last or first word, or by its question mark.
fn chinese_question(said: &str, is_marked: bool) -> Option<Asks> {
    if !said.chars().any(is_han) {
        return None;
    }
    let edge = |word: &&str| said.ends_with(*word) || said.starts_with(*word) || said.starts_with("请问");
    let is_open = match is_marked {
        true => CHINESE_OPEN.iter().any(|word| said.contains(word)),
        false => CHINESE_OPEN.iter().any(edge),
    };
    match is_open {
        true => Some(Asks::Open),
        false if is_marked || said.ends_with('吗') => Some(Asks::Closed),
        false => None,
    }
}

/// The words of a sentence up to a comma.
#[derive(Debug, Default)]
struct Part {
    /// The words of scripts with spaces, without phrases of courtesy.
    words: Vec<String>,
    /// How many words have content, and whether the last one is the only one.
    content: usize,
    ends_with_content: bool,
    /// How many Chinese characters have content, and how many words of grammar are among them.
    han: usize,
    light_han: usize,
    /// The words and phrases of courtesy.
    courtesies: usize,
    greets: bool,
    digits: bool,
}

impl Part {
    fn new(text: &str) -> Self {
        let mut part = Self::default();
        for piece in text.split(|c: char| !c.is_alphanumeric()).filter(|piece| !piece.is_empty()) {
            let mut rest = piece;
            while let Some(first) = rest.chars().next() {
                let han = is_han(first);
                let end = rest.find(|c: char| is_han(c) != han).unwrap_or(rest.len());
                let (run, after) = rest.split_at(end);
                match han {
                    true => part.read_chinese(run),
                    false => part.words.push(run.to_owned()),
                }
                rest = after;
            }
        }
        part.read_words();
        part
    }

    fn read_words(&mut self) {
        let words = std::mem::take(&mut self.words);
        let mut others = Vec::with_capacity(words.len());
        self.greets |= words.first().is_some_and(|word| GREETINGS.contains(word.as_str()));
        let mut at = 0;
        while let Some(word) = words.get(at).map(String::as_str) {
            if let Some(length) = phrase_at(&words[at..]) {
                self.courtesies += 1;
                self.greets |= at == 0;
                at += length;
                continue;
            }
            at += 1;
            others.push(word.to_owned());
            self.digits |= word.contains(|c: char| c.is_ascii_digit());
            let is_courtesy = COURTESY.contains(word) || is_drawn_out(word);
            self.courtesies += usize::from(is_courtesy);
            // «we won» says something, «I won't» does not.
            let is_denial = word == "won" && words.get(at).is_some_and(|next| next == "t");
            if !is_courtesy && !is_denial && !is_stop_word(word) && !LIGHT.contains(word) {
                self.content += 1;
                self.ends_with_content = at == words.len();
            }
        }
        // «it was great» tells about an experience; «that is great» does not.
        let past = words.iter().any(|word| word == "was" || word == "were");
        if past && self.courtesies > 0 && self.content == 0 {
            self.content = 1;
        }
        self.words = others;
    }

    fn read_chinese(&mut self, run: &str) {
        self.greets |= CHINESE_GREETINGS.iter().any(|greeting| run.starts_with(greeting));
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let courtesy = longest(&CHINESE_COURTESY, rest);
            let light = longest(&CHINESE_LIGHT, rest);
            self.courtesies += usize::from(courtesy > 0 && courtesy >= light);
            self.light_han += usize::from(light > courtesy);
            self.han += usize::from(courtesy == 0 && light == 0);
            rest = &rest[courtesy.max(light).max(first.len_utf8())..];
        }
    }

    /// How much it says, in words. A Chinese word has about two characters; a single one counts.
    fn weight(&self) -> usize {
        self.content + self.han.div_ceil(2)
    }

    fn is_blank(&self) -> bool {
        self.words.is_empty() && self.courtesies == 0 && self.weight() == 0
    }
}

/// Whether the only content of a greeting is the name of the person greeted: «hi Anna!», «thanks, Mel», 你好，小李.
fn names_someone(parts: &[Part]) -> bool {
    if !parts.first().is_some_and(|part| part.greets) || parts.iter().any(|part| part.digits) {
        return false;
    }
    let mut saying = parts.iter().enumerate().filter(|(_, part)| part.weight() > 0);
    let (Some((place, named)), None) = (saying.next(), saying.next()) else { return false };
    let is_called = named.content == 1
        && named.ends_with_content
        && (place == 0 || named.words.len() == 1)
        && !named.words.iter().any(|word| BEFORE_THINGS.contains(&word.as_str()));
    let is_called_in_chinese = named.content == 0 && named.light_han == 0 && named.han <= MAX_NAME_CHARS;
    is_called || is_called_in_chinese
}

/// «thanks for the recipe» names a thing and not a person.
const BEFORE_THINGS: [&str; 5] = ["for", "the", "to", "a", "my"];

/// The number of words of the longest phrase of courtesy at the beginning of `words`.
fn phrase_at(words: &[String]) -> Option<usize> {
    let phrases = COURTESY_PHRASES.get(words.first()?.as_str())?;
    let begins = |phrase: &&Vec<&str>| {
        words.len() >= phrase.len() && words.iter().zip(*phrase).all(|(word, expected)| word == expected)
    };
    phrases.iter().filter(begins).map(Vec::len).max()
}

/// «hahaha», «hmmm», «sooo», «okkk»: sounds that people draw out.
fn is_drawn_out(word: &str) -> bool {
    let mut letters: Vec<char> = word.chars().collect();
    letters.dedup();
    let short: String = letters.iter().collect();
    let is_laugh = word.len() > 3 && letters.iter().all(|c| matches!(c, 'h' | 'a' | 'e' | 'i'));
    let is_sound = ["hm", "um", "uh", "ah", "oh", "ok", "yes", "no", "so", "hey", "hi", "aw", "yay", "wow"];
    word.len() > short.len() && (is_sound.contains(&short.as_str())) || is_laugh
}

/// The length in bytes of the longest entry that `text` begins with; 0 if there is none.
fn longest(entries: &HashMap<char, Vec<&str>>, text: &str) -> usize {
    let entries = text.chars().next().and_then(|first| entries.get(&first)).into_iter().flatten();
    entries.filter(|entry| text.starts_with(**entry)).map(|entry| entry.len()).max().unwrap_or(0)
}

fn is_han(c: char) -> bool {
    ('\u{3400}'..='\u{9FFF}').contains(&c)
}

#[cfg(test)]
mod tests;
