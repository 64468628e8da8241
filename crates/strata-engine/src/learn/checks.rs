//! Checks of a model's statements and plans: only values that were said, and no change that the message does not speak about.
//!
//! The values of a text are its numbers, names and dates. A model may tell them in other words («5 pm» for «17:00», a date
//! for «last Friday»), but it may not invent them.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::Timestamp;

use strata_language::text::query_terms;
use strata_language::time::{self, TimeSpan};

/// Number words with their digits. «One» and 一 are left out, because they mostly count nothing.
const NUMBER_WORDS: [(&str, &str); 28] = [
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("ten", "10"),
    ("eleven", "11"),
    ("twelve", "12"),
    ("fifteen", "15"),
    ("twenty", "20"),
    ("thirty", "30"),
    ("forty", "40"),
    ("fifty", "50"),
    ("hundred", "100"),
    ("thousand", "1000"),
    ("二", "2"),
    ("两", "2"),
    ("三", "3"),
    ("四", "4"),
    ("五", "5"),
    ("六", "6"),
    ("七", "7"),
    ("八", "8"),
    ("九", "9"),
    ("十", "10"),
];

/// Capitalised words of a told sentence that are no names.
const TOLD: [&str; 12] =
    ["user", "users", "i", "the", "am", "pm", "ok", "tv", "id", "speaker", "assistant", "pc"];

/// Words after which the first word of a sentence is a name: «Anne is …», «Anne's …».
const AFTER_A_NAME: [&str; 14] = [
    "is", "was", "has", "had", "and", "will", "lives", "works", "likes", "s", "wants", "moved", "plans",
    "goes",
];

/// First words before such a word that are no names.
const NO_NAMES: [&str; 16] = [
    "he", "she", "it", "they", "this", "that", "there", "who", "what", "which", "these", "those", "one",
    "someone", "nobody", "everyone",
];

/// Chinese words with which a sentence is told. Other words of two characters or more have to be said.
const TOLD_CHINESE: [&str; 84] = [
    "用户", "说话", "自己", "喜欢", "喜爱", "偏爱", "偏好", "讨厌", "不再", "不是", "没有", "拥有", "具有",
    "居住", "住在", "位于", "来自", "搬到", "搬家", "迁往", "工作", "任职", "就职", "职业", "从事", "学习",
    "就读", "计划", "打算", "准备", "需要", "想要", "希望", "决定", "选择", "使用", "正在", "已经", "目前",
    "现在", "曾经", "以前", "之后", "之前", "以后", "开始", "结束", "完成", "取消", "名字", "名叫", "名为",
    "叫做", "称为", "成为", "属于", "对于", "关于", "因为", "由于", "所以", "并且", "而且", "以及", "或者",
    "如果", "但是", "可以", "能够", "必须", "应该", "不能", "要求", "告诉", "认为", "觉得", "感到", "每天",
    "每周", "每月", "每年", "时候", "时间", "其中",
];

/// The said texts, in which a value may be found.
#[derive(Debug, Default)]
pub(crate) struct SaidValues {
    tokens: BTreeSet<String>,
    han: BTreeSet<char>,
    spans: Vec<(Timestamp, Timestamp)>,
}

impl SaidValues {
    /// Adds a text, with the time from which its relative dates are reckoned.
    pub(crate) fn add(&mut self, text: &str, at: Timestamp) {
        let tokens = tokens(text);
        for pair in tokens.windows(2) {
            // «5 pm» may be told as 17:00.
            if let (Ok(hour @ 1..=11), "pm" | "p") = (pair[0].text.parse::<u32>(), pair[1].text.as_str()) {
                self.tokens.insert((hour + 12).to_string());
            }
        }
        for token in tokens {
            if let Some(digits) = digits_of(&token.text) {
                self.tokens.insert(digits.to_owned());
            }
            self.tokens.insert(token.text);
        }
        for (word, digits) in NUMBER_WORDS {
            if !word.is_ascii() && text.contains(word) {
                self.tokens.insert(digits.to_owned());
            }
        }
        self.han.extend(text.chars().filter(|c| is_han(*c)));
        self.spans.extend(time::parse(text, at).into_iter().map(|TimeSpan { start, end, .. }| (start, end)));
    }

    /// Adds a name, of the speaker for example.
    pub(crate) fn add_name(&mut self, name: &str) {
        self.tokens.extend(tokens(name).into_iter().map(|token| token.text));
        self.han.extend(name.chars().filter(|c| is_han(*c)));
    }

    /// Adds the day on which something was said: a statement may name it.
    pub(crate) fn add_day(&mut self, at: Timestamp) {
        let Ok(day) = at.to_zoned(jiff::tz::TimeZone::UTC).start_of_day() else { return };
        if let Ok(next) = day.tomorrow() {
            self.spans.push((day.timestamp(), next.timestamp()));
        }
    }

    /// Whether every number, name and date of a statement was said.
    pub(crate) fn hold(&self, told: &str, at: Timestamp) -> bool {
        let told = self.without_known_dates(told, at);
        let tokens = tokens(&told);
        let mut previous_ends = true;
        for (place, token) in tokens.iter().enumerate() {
            let starts = std::mem::replace(&mut previous_ends, token.ends_sentence);
            let next = tokens.get(place + 1).map(|next| next.text.as_str());
            if is_value(token, starts, next) && !self.holds_token(token) {
                return false;
            }
        }
        self.holds_chinese(&told)
    }

    fn holds_token(&self, token: &Token) -> bool {
        if let Some(digits) = digits_of(&token.text) {
            return self.tokens.contains(digits) || self.tokens.contains(&token.text);
        }
        if token.is_number() {
            return self.tokens.contains(&token.text);
        }
        // «Japan» for «Japanese», «Berliners» for «Berlin».
        let is_form = |said: &String| {
            let least = said.chars().count().min(token.text.chars().count());
            least >= 4 && (said.starts_with(&token.text) || token.text.starts_with(said.as_str()))
        };
        self.tokens.contains(&token.text) || self.tokens.iter().any(is_form)
    }

    /// The statement without the dates that lie in a time that was named.
    fn without_known_dates(&self, told: &str, at: Timestamp) -> String {
        let mut text = told.to_owned();
        let mut spans = time::parse(told, at);
        spans.sort_by_key(|span| std::cmp::Reverse(span.text.start));
        for TimeSpan { start, end, text: place, .. } in spans {
            let overlaps = |(from, to): &(Timestamp, Timestamp)| *from < end && start < *to;
            if self.spans.iter().any(overlaps) && text.get(place.clone()).is_some() {
                text.replace_range(place, " ");
            }
        }
        text
    }

    /// Whether the Chinese words of a statement were said, if anything was said in Chinese at all.
    fn holds_chinese(&self, told: &str) -> bool {
        if self.han.is_empty() {
            return true;
        }
        let mut rest = told.to_owned();
        for word in TOLD_CHINESE {
            rest = rest.replace(word, " ");
        }
        let unsaid = |run: &str| {
            let mut length = 0;
            run.chars().any(|c| {
                length = if is_han(c) && !self.han.contains(&c) { length + 1 } else { 0 };
                length >= 2
            })
        };
        !rest.split_whitespace().any(unsaid)
    }
}

/// English words with which many memories are told. Two sentences that share only such words, or [`TOLD_CHINESE`], speak
/// about different things.
const TOLD_ENGLISH: &str = "user users speaker person someone like likes love loves enjoy enjoys prefer prefers hate hates \
    live lives work works have has had own owns want wants need needs use uses go goes know knows new";

/// Whether two sentences share a word with content.
pub(crate) fn share_content(one: &str, other: &str) -> bool {
    !shared_content(one, other).is_empty()
}

/// The words with content that two sentences share.
pub(crate) fn shared_content(one: &str, other: &str) -> Vec<String> {
    let known = content_terms(other);
    let mut shared = content_terms(one);
    shared.retain(|term| known.contains(term));
    shared
}

/// The terms of a text without the words with which many memories are told.
fn content_terms(text: &str) -> Vec<String> {
    static TOLD: LazyLock<BTreeSet<String>> =
        LazyLock::new(|| query_terms(TOLD_ENGLISH).into_iter().collect());
    let rest = TOLD_CHINESE.iter().fold(text.to_owned(), |rest, word| rest.replace(word, " "));
    let mut terms = query_terms(&rest);
    terms.retain(|term| !TOLD.contains(term));
    terms
}

/// Whether a text has a term.
pub(crate) fn has_term(text: &str, term: &str) -> bool {
    query_terms(text).iter().any(|other| other == term)
}

/// A run of letters or of digits.
#[derive(Debug)]
struct Token {
    /// In lower case; digits without leading zeros.
    text: String,
    is_capital: bool,
    ends_sentence: bool,
}

impl Token {
    fn is_number(&self) -> bool {
        self.text.starts_with(|c: char| c.is_numeric())
    }
}

/// The runs of letters and of digits in a text, without Chinese characters.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut current = String::new();
    let push = |current: &mut String, tokens: &mut Vec<Token>| {
        if current.is_empty() {
            return;
        }
        let is_capital = current.starts_with(char::is_uppercase);
        let lower = current.to_lowercase();
        let short = lower.trim_start_matches('0');
        let text = if lower.starts_with('0') && !short.is_empty() { short.to_owned() } else { lower };
        tokens.push(Token { text, is_capital, ends_sentence: false });
        current.clear();
    };
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        let is_part = c.is_alphanumeric() && !is_han(c);
        let changes = current.chars().next_back().is_some_and(|last| last.is_numeric() != c.is_numeric());
        if !is_part || changes {
            // A comma between digits groups thousands.
            let groups = c == ','
                && current.chars().next_back().is_some_and(char::is_numeric)
                && letters.peek().is_some_and(|next| next.is_numeric());
            if groups {
                continue;
            }
            push(&mut current, &mut tokens);
        }
        if is_part {
            current.push(c);
        } else if matches!(c, '.' | '!' | '?' | ':' | '\n')
            && let Some(last) = tokens.last_mut()
        {
            last.ends_sentence = true;
        }
    }
    push(&mut current, &mut tokens);
    tokens
}

/// Whether a token of a told sentence is a number or a name.
fn is_value(token: &Token, starts: bool, next: Option<&str>) -> bool {
    if token.is_number() || digits_of(&token.text).is_some() {
        // The minutes of «18:00».
        return token.text != "00";
    }
    if !token.is_capital || TOLD.contains(&token.text.as_str()) {
        return false;
    }
    let is_name = next.is_some_and(|next| AFTER_A_NAME.contains(&next));
    !starts || is_name && !NO_NAMES.contains(&token.text.as_str())
}

fn digits_of(word: &str) -> Option<&'static str> {
    NUMBER_WORDS.iter().find(|(name, _)| *name == word).map(|(_, digits)| *digits)
}

fn is_han(c: char) -> bool {
    ('\u{3400}'..='\u{9fff}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(said: &str, told: &str, expected: bool) {
        let at = "2026-03-12T10:00:00Z".parse().unwrap();
        let mut values = SaidValues::default();
        values.add(said, at);
        values.add_name("Bo");
        values.add_day(at);
        assert_eq!(values.hold(told, at), expected, "«{said}» told as «{told}»");
    }

    #[test]
    fn numbers_and_names_have_to_be_said() {
        check(
            "we rented a flat in Graz for 890 a month",
            "The user rents a flat in Graz for 890 a month",
            true,
        );
        check(
            "we rented a flat in Graz for 890 a month",
            "The user rents a flat in Graz for 980 a month",
            false,
        );
        check("we rented a flat in Graz", "The user rents a flat in Linz", false);
        check("my dentist is moving", "The user's dentist, Dr. Weber, is moving", false);
        check("my sister is a nurse", "Clara is the user's sister", false);
        check("my sister Clara is a nurse", "Clara is the user's sister", true);
        check("i love tea", "Bo loves tea", true);
        check("i love tea", "Prefers tea", true);
        check("my gym code is 0417", "The user's gym code is 417", true);
        check("it costs 1,200 euros", "It costs 1200 euros", true);
        check("room 112", "The room is 12", false);
    }

    #[test]
    fn numbers_may_be_told_in_words_and_hours_by_the_clock() {
        check("i have three cats", "The user has 3 cats", true);
        check("i have 3 cats", "The user has three cats", true);
        check("i have cats", "The user has three cats", false);
        check("the choir meets at 6 pm", "The choir meets at 18:00", true);
        check("the choir meets at 6 pm", "The choir meets at 19:00", false);
        check("我养了三只鸟", "用户养了3只鸟", true);
    }

    #[test]
    fn a_relative_date_may_be_told_as_a_date() {
        check("the exam was yesterday", "The user's exam was on 2026-03-11", true);
        check("the exam was yesterday", "The user's exam was on March 11, 2026", true);
        check("the exam was yesterday", "The user's exam was on 2026-02-11", false);
        check("the exam was hard", "As of 2026-03-12 the user found the exam hard", true);
        check("考试是昨天", "用户的考试在2026年3月11日", true);
    }

    #[test]
    fn chinese_words_have_to_be_said() {
        check("我搬到了成都", "用户住在成都", true);
        check("我搬到了成都", "用户住在重庆", false);
        check("我很喜欢吃辣", "用户喜欢吃辣", true);
        // A statement in another language than the message has no characters to compare.
        check("i moved to Chengdu", "用户住在成都", true);
    }

    #[test]
    fn content_is_shared_by_a_word_that_says_something() {
        assert!(share_content("The user's cat is ill", "The user has a cat"));
        assert!(!share_content("The user moved to Graz", "The user likes tea"));
        assert!(
            !share_content("The user likes rowing", "The user likes tea"),
            "only the way of telling is shared"
        );
        assert!(!share_content("用户喜欢划船", "用户喜欢喝茶"));
        assert!(share_content("用户不再喝茶", "用户喜欢喝茶"));
    }
}
