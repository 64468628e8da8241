//! Months, days and years, in words and in digits.

use super::super::calendar::{Count, Occurrence, Period, TimeMatch};
use super::super::words::{self, Clarity};
use super::English;

/// A named year, and the first token after it.
type NamedYear = (usize, i32);

impl English<'_> {
    /// `March 2023`, `May 5th`, `last March`, `in May`.
    pub(super) fn month(&self, i: usize) -> Option<TimeMatch> {
        let Some((at, which)) = self.which(i) else {
            return self.month_at(i, self.is_after_cue(i));
        };
        let (month, clarity) = words::month(self.word(at))?;
        // `this may help`, `the last march was long`
        let lower_verb = clarity == Clarity::Verb && !self.tokens.is_capital(at);
        if lower_verb && (which == Occurrence::This || self.tokens.word_before(i) == "the") {
            return None;
        }
        let next = self.after_month(at);
        if self.day_number(next).is_some() {
            return None;
        }
        TimeMatch::new(next, self.calendar.yearly(which, |year| self.calendar.month(year, month)))
    }

    fn is_after_cue(&self, i: usize) -> bool {
        words::BEFORE_DATE.contains(&self.tokens.word_before(i))
    }

    /// The token after a month's name and the full stop of its abbreviation.
    fn after_month(&self, i: usize) -> usize {
        let stop = self.word(i).len() <= 4 && self.tokens.sign(i + 1) == '.' && self.tokens.is_glued(i + 1);
        let goes_on = self.tokens.is_number(i + 2);
        if stop && goes_on { i + 2 } else { i + 1 }
    }

    /// A month's name at `i`, with a day, a year or neither. `cue`: a word before it shows that it is a month.
    pub(super) fn month_at(&self, i: usize, cue: bool) -> Option<TimeMatch> {
        let (month, clarity) = words::month(self.word(i))?;
        let lower_verb = clarity == Clarity::Verb && !self.tokens.is_capital(i);
        let next = self.after_month(i);
        if let Some((next, day, ordinal)) = self.day_number(next) {
            let year = self.year_after(next);
            let on = ["on", "the"].contains(&self.tokens.word_before(i));
            if lower_verb && !(ordinal || year.is_some() || cue || on) {
                return None;
            }
            let last = self.last_day(next, day);
            let year = last.map_or(year, |(next, _)| self.year_after(next));
            let next = year.map_or(last.map_or(next, |(next, _)| next), |(next, _)| next);
            let to = last.map_or(day, |(_, day)| day);
            return TimeMatch::new(next, self.days_of(year, month, day, to));
        }
        if let Some((next, year)) = self.year_after(next) {
            let certain = !lower_verb || cue || self.tokens.is_number(next - 1);
            return TimeMatch::new(next, self.calendar.month(year, month).filter(|_| certain));
        }
        let certain =
            (cue || clarity == Clarity::Clear) && !words::HABITS.contains(&self.tokens.word_before(i));
        TimeMatch::new(next, self.latest_month(month).filter(|_| certain))
    }

    fn latest_month(&self, month: u32) -> Option<Period> {
        self.calendar.yearly(Occurrence::Latest, |year| self.calendar.month(year, month))
    }

    /// Days of a month, in the named year or in the latest year that has them.
    fn days_of(&self, year: Option<NamedYear>, month: u32, from: u32, to: u32) -> Option<Period> {
        let days =
            |year| Some(self.calendar.date(year, month, from)?.until(self.calendar.date(year, month, to)?));
        match year {
            Some((_, year)) => days(year),
            None => self.calendar.yearly(Occurrence::Latest, days),
        }
    }

    /// A day of a month at `i`: the next token, the day, and whether it is an ordinal number.
    pub(super) fn day_number(&self, i: usize) -> Option<(usize, u32, bool)> {
        let (day, digits) = self.tokens.number(i)?;
        if digits > 2 || !(1..=31).contains(&day) || self.follows_figure(i) {
            return None;
        }
        if self.tokens.is_glued(i + 1) && matches!(self.word(i + 1), "st" | "nd" | "rd" | "th") {
            return Some((i + 2, day, true));
        }
        let range = self.last_day(i + 1, day).is_some();
        let clock = matches!(self.word(i + 1), "am" | "pm");
        (range || !(self.goes_on(i + 1) || clock)).then_some((i + 1, day, false))
    }

    /// The end of a range of days: `-7`.
    fn last_day(&self, i: usize, from: u32) -> Option<(usize, u32)> {
        let (day, digits) = self.tokens.number(i + 1).filter(|_| matches!(self.tokens.sign(i), '-' | '–'))?;
        (digits <= 2 && from < day && day <= 31 && !self.goes_on(i + 2)).then_some((i + 2, day))
    }

    /// `5 May 2023`, `the 31st of December`, `1 Jan.`
    pub(super) fn day_month(&self, i: usize) -> Option<TimeMatch> {
        let (at, day, ordinal) = self.day_number(i)?;
        let of = self.skip(at, "of");
        let (month, clarity) = words::month(self.word(of))?;
        let next = self.after_month(of);
        let year = self.year_after(next);
        // `5 may be enough`
        let lower_verb = clarity == Clarity::Verb && !self.tokens.is_capital(of);
        if lower_verb && !ordinal && of == at && year.is_none() {
            return None;
        }
        TimeMatch::new(year.map_or(next, |(next, _)| next), self.days_of(year, month, day, day))
    }

    /// A year after a month, a day or a season: `2023`, `, 2023`, `of 2023`, `'23`, `last year`.
    pub(super) fn year_after(&self, i: usize) -> Option<NamedYear> {
        let at = self.skip(self.skip_sign(i, ','), "of");
        let short = self
            .tokens
            .number(at + 1)
            .filter(|_| self.tokens.sign(at) == '\'' && self.tokens.is_glued(at + 1));
        if let Some((year, 2)) = short {
            return Some((at + 2, two_digit_year(year)));
        }
        if let Some((next, year)) = self.year_number(at) {
            return Some((next, year));
        }
        self.relative_year(at)
    }

    /// A year of four digits.
    pub(super) fn year_number(&self, i: usize) -> Option<NamedYear> {
        let (year, digits) = self.tokens.number(i)?;
        let fits =
            digits == 4 && (1000..3000).contains(&year) && !self.follows_figure(i) && !self.goes_on(i + 1);
        fits.then_some((i + 1, year as i32))
    }

    fn relative_year(&self, i: usize) -> Option<NamedYear> {
        let this_year = self.calendar.this_year();
        if let Some((next, which)) = self.which(i).filter(|(at, _)| self.word(*at) == "year") {
            let offset = if which == Occurrence::Last { -1 } else { i32::from(which == Occurrence::Next) };
            return Some((next + 1, this_year + offset));
        }
        let the = self.skip(i, "the");
        if let Some(next) = self.phrase(the, &["year", "before", "last"]) {
            return Some((next, this_year - 2));
        }
        let (at, count) = self.count(i)?;
        match (count, self.word(at), self.word(at + 1)) {
            (Count::Of(count, most), "year" | "years", "ago") if count == most => {
                Some((at + 2, this_year.checked_sub_unsigned(count)?))
            }
            _ => None,
        }
    }

    /// `in 2022`, `the 1990s`.
    pub(super) fn bare_year(&self, i: usize) -> Option<TimeMatch> {
        let (year, digits) = self.tokens.number(i)?;
        let plausible = digits == 4 && (1800..2200).contains(&year) && !self.follows_figure(i);
        let before = self.tokens.word_before(i);
        let ranges = i.checked_sub(2).is_some_and(|from| matches!(self.tokens.number(from), Some((_, 4))));
        let cue = self.is_after_cue(i) || before == "year" || (matches!(before, "and" | "to") && ranges);
        if !plausible || !(cue || before == "the") {
            return None;
        }
        if year % 10 == 0 && self.tokens.is_glued(i + 1) && self.word(i + 1) == "s" {
            return TimeMatch::new(i + 2, self.calendar.years(year as i32, 10));
        }
        let is_year = cue && !self.goes_on(i + 1) && !words::COUNTED.contains(&self.word(i + 1));
        TimeMatch::new(i + 1, self.calendar.year(year as i32).filter(|_| is_year))
    }

    /// `2023-05-05`, `2023/5/5`, `5/5/2023`, `5.6.2023`, `2023-05`.
    pub(super) fn figures(&self, i: usize) -> Option<TimeMatch> {
        let separator = self.tokens.sign(i + 1);
        let glued = (i + 1..=i + 2).all(|at| self.tokens.is_glued(at));
        if !matches!(separator, '-' | '/' | '.') || !glued || self.follows_figure(i) {
            return None;
        }
        let ((first, digits), (second, second_digits)) = (self.tokens.number(i)?, self.tokens.number(i + 2)?);
        let whole =
            self.tokens.sign(i + 3) == separator && (i + 3..=i + 4).all(|at| self.tokens.is_glued(at));
        let Some((third, third_digits)) = self.tokens.number(i + 4).filter(|_| whole) else {
            let month =
                digits == 4 && second_digits == 2 && separator != '.' && (1000..3000).contains(&first);
            let ends = !self.goes_on(i + 3);
            return TimeMatch::new(
                i + 3,
                self.calendar.month(first as i32, second).filter(|_| month && ends),
            );
        };
        if self.joins_another(i + 5) || second_digits > 2 {
            return None;
        }
        let period = match (digits, third_digits) {
            (4, 1..=2) => self.calendar.date(first as i32, second, third),
            (1..=2, 4) if separator == '.' || first > 12 => self.calendar.date(third as i32, second, first),
            (1..=2, 4) => self.calendar.date(third as i32, first, second),
            _ => None,
        };
        TimeMatch::new(i + 5, period)
    }

    /// Whether a date in digits continues at `i` with another digit: then it is not a date.
    fn joins_another(&self, i: usize) -> bool {
        let sign = matches!(self.tokens.sign(i), '-' | '/' | '.' | ':') && self.tokens.is_glued(i);
        sign && self.tokens.is_glued(i + 1) && self.tokens.is_number(i + 1)
    }
}

/// The year that two digits mean.
pub(in crate::time) fn two_digit_year(year: u32) -> i32 {
    if year < 70 { 2000 + year as i32 } else { 1900 + year as i32 }
}
