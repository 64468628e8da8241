//! A question cut into words, numbers, Chinese characters and signs, folded so that the grammars compare plainly.

use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A run of letters.
    Word,
    /// A run of digits: its value (`u32::MAX` where it has more than nine) and how many digits it has.
    Number(u32, usize),
    /// One Chinese character, simplified where the grammar knows it.
    Han(char),
    /// Anything else but white space.
    Sign(char),
}

#[derive(Debug)]
struct Token {
    kind: Kind,
    start: usize,
    end: usize,
}

/// The tokens of a question. Reading past the end is fine and finds nothing.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    question: &'a str,
    /// The question in lower case, byte for byte.
    lower: String,
    tokens: Vec<Token>,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(question: &'a str) -> Self {
        let lower = question.to_ascii_lowercase();
        let mut tokens: Vec<Token> = Vec::new();
        for (start, c) in question.char_indices() {
            let end = start + c.len_utf8();
            let kind = if let Some(digit) = digit(c) {
                Kind::Number(digit, 1)
            } else if is_han(c) {
                Kind::Han(simplified(c))
            } else if c.is_alphabetic() {
                Kind::Word
            } else if c.is_whitespace() {
                continue;
            } else {
                Kind::Sign(if c == '’' { '\'' } else { c })
            };
            match (tokens.last_mut(), kind) {
                (Some(last), Kind::Word) if last.end == start && last.kind == Kind::Word => last.end = end,
                (Some(last), Kind::Number(digit, _)) if last.end == start => match last.kind {
                    Kind::Number(value, count) => {
                        let value = if count < 9 { value * 10 + digit } else { u32::MAX };
                        (last.kind, last.end) = (Kind::Number(value, count + 1), end);
                    }
                    _ => tokens.push(Token { kind, start, end }),
                },
                _ => tokens.push(Token { kind, start, end }),
            }
        }
        Self { question, lower, tokens }
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The bytes from token `from` up to, and without, token `to`.
    pub(super) fn range(&self, from: usize, to: usize) -> Range<usize> {
        let start = self.tokens.get(from).map_or(self.question.len(), |token| token.start);
        let end = to.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(start, |token| token.end);
        start..end.max(start)
    }

    /// The word at `i` in lower case; empty where there is none.
    pub(super) fn word(&self, i: usize) -> &str {
        match self.tokens.get(i) {
            Some(Token { kind: Kind::Word, start, end }) => self.lower.get(*start..*end).unwrap_or(""),
            _ => "",
        }
    }

    /// The word before `i`; empty where there is none.
    pub(super) fn word_before(&self, i: usize) -> &str {
        i.checked_sub(1).map_or("", |before| self.word(before))
    }

    pub(super) fn is_capital(&self, i: usize) -> bool {
        let first = self.tokens.get(i).and_then(|token| self.question.get(token.start..)?.chars().next());
        first.is_some_and(char::is_uppercase)
    }

    /// The number at `i` and how many digits it has.
    pub(super) fn number(&self, i: usize) -> Option<(u32, usize)> {
        match self.tokens.get(i)?.kind {
            Kind::Number(value, digits) if digits <= 9 => Some((value, digits)),
            _ => None,
        }
    }

    pub(super) fn is_number(&self, i: usize) -> bool {
        matches!(self.tokens.get(i), Some(Token { kind: Kind::Number(..), .. }))
    }

    /// The sign at `i`; NUL where there is none.
    pub(super) fn sign(&self, i: usize) -> char {
        match self.tokens.get(i) {
            Some(Token { kind: Kind::Sign(c), .. }) => *c,
            _ => '\0',
        }
    }

    /// The Chinese character at `i`; NUL where there is none.
    pub(super) fn han(&self, i: usize) -> char {
        match self.tokens.get(i) {
            Some(Token { kind: Kind::Han(c), .. }) => *c,
            _ => '\0',
        }
    }

    /// The Chinese character before `i`; NUL where there is none.
    pub(super) fn han_before(&self, i: usize) -> char {
        i.checked_sub(1).map_or('\0', |before| self.han(before))
    }

    /// Whether token `i` follows the one before it without a space.
    pub(super) fn is_glued(&self, i: usize) -> bool {
        match (i.checked_sub(1).and_then(|before| self.tokens.get(before)), self.tokens.get(i)) {
            (Some(before), Some(token)) => before.end == token.start,
            _ => false,
        }
    }
}

fn digit(c: char) -> Option<u32> {
    match c {
        '0'..='9' => Some(c as u32 - '0' as u32),
        '０'..='９' => Some(c as u32 - '０' as u32),
        _ => None,
    }
}

fn is_han(c: char) -> bool {
    matches!(c, '〇' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}')
}

/// The simplified form of those traditional characters that the Chinese grammar looks at.
fn simplified(c: char) -> char {
    const PAIRS: &str = "週周個个這这後后禮礼兩两幾几號号過过內内聖圣誕诞節节時时鐘钟鍾钟數数萬万國国慶庆頭头氣气\
                         齡龄輕轻從从網网鄉乡當当線线樓楼車车馬马頓顿圍围邊边臨临將将課课書书資资樣样劇剧筆笔腳脚來来\
                         級级裡里裏里剛刚還还";
    let mut pairs = PAIRS.chars();
    while let (Some(traditional), Some(simple)) = (pairs.next(), pairs.next()) {
        if traditional == c {
            return simple;
        }
    }
    c
}
