//! Splits a question into words, numbers, Chinese characters and signs, normalised so that the grammars can compare
//! them.

use std::ops::Range;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A run of letters.
    Word,
    /// A run of digits: its value (`u32::MAX` if it has more than nine digits) and the number of digits.
    Number(u32, usize),
    /// One Chinese character, simplified if the grammar uses it.
    Han(char),
    /// Any other character except white space.
    Sign(char),
}

#[derive(Debug)]
struct Token {
    kind: TokenKind,
    start: usize,
    end: usize,
}

/// The tokens of a question. A read past the end is allowed and finds nothing.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    question: &'a str,
    /// The question in lower case, with the same byte offsets.
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
                TokenKind::Number(digit, 1)
            } else if is_han(c) {
                TokenKind::Han(simplified(c))
            } else if c.is_alphabetic() {
                TokenKind::Word
            } else if c.is_whitespace() {
                continue;
            } else {
                TokenKind::Sign(if c == '’' { '\'' } else { c })
            };
            match (tokens.last_mut(), kind) {
                (Some(last), TokenKind::Word) if last.end == start && last.kind == TokenKind::Word => {
                    last.end = end
                }
                (Some(last), TokenKind::Number(digit, _)) if last.end == start => match last.kind {
                    TokenKind::Number(value, count) => {
                        let value = if count < 9 { value * 10 + digit } else { u32::MAX };
                        (last.kind, last.end) = (TokenKind::Number(value, count + 1), end);
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

    /// The byte range from token `from` up to token `to`, exclusive.
    pub(super) fn range(&self, from: usize, to: usize) -> Range<usize> {
        let start = self.tokens.get(from).map_or(self.question.len(), |token| token.start);
        let end = to.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(start, |token| token.end);
        start..end.max(start)
    }

    /// The word at `i` in lower case; empty if there is none.
    pub(super) fn word(&self, i: usize) -> &str {
        match self.tokens.get(i) {
            Some(Token { kind: TokenKind::Word, start, end }) => self.lower.get(*start..*end).unwrap_or(""),
            _ => "",
        }
    }

    /// The word before `i`; empty if there is none.
    pub(super) fn word_before(&self, i: usize) -> &str {
        i.checked_sub(1).map_or("", |before| self.word(before))
    }

    pub(super) fn is_capital(&self, i: usize) -> bool {
        let first = self.tokens.get(i).and_then(|token| self.question.get(token.start..)?.chars().next());
        first.is_some_and(char::is_uppercase)
    }

    /// The number at `i`, and the number of its digits.
    pub(super) fn number(&self, i: usize) -> Option<(u32, usize)> {
        match self.tokens.get(i)?.kind {
            TokenKind::Number(value, digits) if digits <= 9 => Some((value, digits)),
            _ => None,
        }
    }

    pub(super) fn is_number(&self, i: usize) -> bool {
        matches!(self.tokens.get(i), Some(Token { kind: TokenKind::Number(..), .. }))
    }

    /// The sign at `i`; NUL if there is none.
    pub(super) fn sign(&self, i: usize) -> char {
        match self.tokens.get(i) {
            Some(Token { kind: TokenKind::Sign(c), .. }) => *c,
            _ => '\0',
        }
    }

    /// The Chinese character at `i`; NUL if there is none.
    pub(super) fn han(&self, i: usize) -> char {
        match self.tokens.get(i) {
            Some(Token { kind: TokenKind::Han(c), .. }) => *c,
            _ => '\0',
        }
    }

    /// The Chinese character before `i`; NUL if there is none.
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

/// The simplified forms of the traditional characters that the Chinese grammar uses.
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
