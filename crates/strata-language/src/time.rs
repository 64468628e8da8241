//! Finds the times that a question names, in English and Chinese, relative to the moment it is asked.
//!
//! [`parse`] finds expressions such as «last March», «two weeks ago», 上周三 or 去年夏天 and returns the time span of each. It
//! uses fixed rules and ignores every expression that it cannot place for certain. It does not know ranking, time zones
//! beyond a fixed offset, lunar or moving holidays, or times relative to other events («three days before the
//! wedding»). Start reading at [`parse`]; the grammars are in `english` and `chinese`, the arithmetic is in `calendar`.
//!
//! Decisions for ambiguous expressions:
//!
//! - The past is preferred: a month, weekday, season or date without a year is the latest that has begun by now.
//!   With «last» it is the latest that is over, with «this» the current one, with «next» the one to come.
//! - A week starts on Monday. «Last Monday» is the latest before today; 上周一 is the Monday of the week before this one.
//! - Seasons are those of the northern half: spring is March to May, summer June to August, autumn September to
//!   November, winter December to February. A winter belongs to the year in which it starts («winter of 2022» is
//!   December 2022 to February 2023); in January and February «this winter» is the one that is going on.
//! - «N weeks ago» is the seven days around that day; «N months ago» and «N years ago» are that calendar month and year.
//!   «A few» is two to six. «The past N …» and «the last few …» reach from then to the end of today.
//! - Of a month, early, middle and late are the 1st–10th, the 11th–20th and the rest; of a year, four months each; the
//!   beginning and the end of a year are its first and last three months.
//! - `5/6/2023` is the sixth of May (month first) unless that cannot be; `5.6.2023` is the fifth of June.
//! - Words that are more often something else (`may`, `march`, `fall`, `sun`, a bare `summer` or 夏天, names of months
//!   that are people's names) count only beside a number, a year, or a word such as `in` or `last`. Habits («every
//!   Monday», 每周三) name no time, nor do «recently», «before», 最近 and 以前 alone.

mod calendar;
mod chinese;
mod english;
mod numeral;
#[cfg(test)]
mod tests;
mod token;
mod words;

use std::ops::Range;

use jiff::Timestamp;
use jiff::tz::Offset;

use calendar::Calendar;
use chinese::Chinese;
use english::English;
use token::Tokens;

pub(crate) use numeral::chinese_number;
pub(crate) use words::number;

/// A time span that a question names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeSpan {
    /// Its first moment.
    pub start: Timestamp,
    /// The first moment after it.
    pub end: Timestamp,
    /// The byte range of the question that names it.
    pub text: Range<usize>,
    /// The precision with which it is named.
    pub precision: Precision,
}

impl TimeSpan {
    /// Whether a moment is inside the span.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }
}

/// The precision of a named time: the unit of its borders, from the finest to the coarsest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// A part of a day, an hour.
    Hour,
    /// A day or some days.
    Day,
    /// A week, a weekend, a third of a month.
    Week,
    /// A month, some months, a part of a year.
    Month,
    /// Spring, summer, autumn or winter.
    Season,
    /// A year, some years.
    Year,
}

/// The times that `question` names if it is asked at `now`: in their order, without overlap, the longest match of each.
/// Days begin at midnight UTC. The cost is linear in the length of the question, and the function never fails.
pub fn parse(question: &str, now: Timestamp) -> Vec<TimeSpan> {
    parse_at(question, now, Offset::UTC)
}

/// Like [`parse`], for days that begin at midnight at a fixed `offset` from UTC.
fn parse_at(question: &str, now: Timestamp, offset: Offset) -> Vec<TimeSpan> {
    let tokens = Tokens::of(question);
    let calendar = Calendar::new(offset.to_datetime(now));
    let (english, chinese) = (English::new(&tokens, calendar), Chinese::new(&tokens, calendar));
    let mut spans = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        // No grammar looks further than a fixed number of tokens, so the total cost is linear.
        let found = [english.at(i), chinese.at(i)].into_iter().flatten().max_by_key(|found| found.next);
        let Some(found) = found else {
            i += 1;
            continue;
        };
        let (start, end) = (offset.to_timestamp(found.period.start), offset.to_timestamp(found.period.end));
        if let (Ok(start), Ok(end)) = (start, end) {
            let text = tokens.range(i, found.next);
            spans.push(TimeSpan { start, end, text, precision: found.period.precision });
        }
        i = found.next.max(i + 1);
    }
    spans
}
