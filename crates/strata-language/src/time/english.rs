//! The English grammar, and dates in digits.
//!
//! [`English::at`] tries every rule at one token and takes the longest match. A rule looks back one or two words for a
//! hint that an ambiguous word is a time, and ahead a fixed number of tokens.

mod dates;

use super::calendar::{
    Calendar, Count, DayPart, FEW, Occurrence, Period, PeriodPart, Season, TimeMatch, Unit,
};
use super::token::Tokens;
use super::words;

pub(super) use dates::two_digit_year;

pub(super) struct English<'a> {
    tokens: &'a Tokens<'a>,
    calendar: Calendar,
}

impl<'a> English<'a> {
    pub(super) fn new(tokens: &'a Tokens<'a>, calendar: Calendar) -> Self {
        Self { tokens, calendar }
    }

    /// The longest time that is named from token `i` on.
    pub(super) fn at(&self, i: usize) -> Option<TimeMatch> {
        let found = if self.tokens.is_number(i) {
            [self.figures(i), self.day_month(i), self.bare_year(i), self.ago(i)]
                .into_iter()
                .flatten()
                .max_by_key(length)
        } else if self.word(i).is_empty() {
            None
        } else {
            let rules = [
                self.day(i),
                self.ago(i),
                self.unit(i),
                self.past(i),
                self.weekday(i),
                self.month(i),
                self.season(i),
                self.part(i),
                self.holiday(i),
            ];
            rules.into_iter().flatten().max_by_key(length)
        }?;
        let found = self.with_part_of_day(found);
        if self.tokens.word_before(i) == "since" {
            return Some(TimeMatch { period: self.calendar.since(found.period), ..found });
        }
        Some(found)
    }

    fn word(&self, i: usize) -> &str {
        self.tokens.word(i)
    }

    /// The first token after these words at `i`.
    fn phrase(&self, i: usize, words: &[&str]) -> Option<usize> {
        let matches = words.iter().enumerate().all(|(offset, word)| self.word(i + offset) == *word);
        matches.then_some(i + words.len())
    }

    /// Skips `word` if it is at `i`.
    fn skip(&self, i: usize, word: &str) -> usize {
        if self.word(i) == word { i + 1 } else { i }
    }

    fn skip_sign(&self, i: usize, sign: char) -> usize {
        if self.tokens.sign(i) == sign { i + 1 } else { i }
    }

    /// Skips the `'s` of a possessive.
    fn skip_possessive(&self, i: usize) -> usize {
        if self.tokens.sign(i) == '\'' && self.word(i + 1) == "s" { i + 2 } else { i }
    }

    /// `Monday` + `morning`.
    fn with_part_of_day(&self, found: TimeMatch) -> TimeMatch {
        let part = words::part_of_day(self.word(found.next));
        let day = found.period.as_day();
        match part.zip(day).and_then(|(part, day)| self.calendar.part_of_day(day, part)) {
            Some(period) => TimeMatch { next: found.next + 1, period },
            None => found,
        }
    }

    /// `today`, `last night`, `the day before yesterday`.
    fn day(&self, i: usize) -> Option<TimeMatch> {
        let calendar = &self.calendar;
        match self.word(i) {
            "today" => TimeMatch::new(i + 1, calendar.day(0)),
            "yesterday" => TimeMatch::new(i + 1, calendar.day(-1)),
            "tomorrow" => TimeMatch::new(i + 1, calendar.day(1)),
            "tonight" => TimeMatch::new(i + 1, calendar.part_of(0, DayPart::Night)),
            "last" if self.word(i + 1) == "night" => {
                TimeMatch::new(i + 2, calendar.part_of(-1, DayPart::Night))
            }
            "this" => {
                let part = words::part_of_day(self.word(i + 1)).filter(|part| *part != DayPart::Night)?;
                TimeMatch::new(i + 2, calendar.part_of(0, part))
            }
            "day" => {
                let before = self.phrase(i, &["day", "before", "yesterday"]);
                let after = self.phrase(i, &["day", "after", "tomorrow"]);
                before
                    .and_then(|next| TimeMatch::new(next, calendar.day(-2)))
                    .or_else(|| TimeMatch::new(after?, calendar.day(2)))
            }
            _ => None,
        }
    }

    /// A number of units: `3`, `two`, `twenty-five`, `a couple of`, `2-3`, `two or three`, `half a`.
    fn count(&self, i: usize) -> Option<(usize, Count)> {
        let one = |next: usize| Some((next, Count::Of(1, 1)));
        match self.word(i) {
            "a" | "an" => match self.word(i + 1) {
                "couple" => Some((self.skip(i + 2, "of"), Count::Of(2, 2))),
                "few" => Some((i + 2, Count::Of(FEW.0, FEW.1))),
                "half" => Some((i + 2, Count::Half)),
                _ => one(i + 1),
            },
            "couple" => Some((self.skip(i + 1, "of"), Count::Of(2, 2))),
            "few" | "several" => Some((i + 1, Count::Of(FEW.0, FEW.1))),
            "half" => Some((if matches!(self.word(i + 1), "a" | "an") { i + 2 } else { i + 1 }, Count::Half)),
            _ => {
                let (next, least) = self.plain_number(i).filter(|_| !self.follows_figure(i))?;
                let to = self.phrase(next, &["or"]).or_else(|| self.phrase(next, &["to"]));
                let to = to.or_else(|| matches!(self.tokens.sign(next), '-' | '–').then_some(next + 1));
                match to.and_then(|to| self.plain_number(to)) {
                    Some((next, most)) if most > least => Some((next, Count::Of(least, most))),
                    _ => Some((next, Count::Of(least, least))),
                }
            }
        }
    }

    fn plain_number(&self, i: usize) -> Option<(usize, u32)> {
        if let Some((value, digits)) = self.tokens.number(i) {
            return (digits <= 4 && value > 0).then_some((i + 1, value));
        }
        let value = words::number(self.word(i))?;
        if value >= 20 {
            let at = self.skip_sign(i + 1, '-');
            if let Some(ones) = words::number(self.word(at)).filter(|ones| *ones < 10) {
                return Some((at + 1, value + ones));
            }
        }
        Some((i + 1, value))
    }

    /// Whether the number at `i` continues another number, as in `1.5`, `2,000` or `555-2023`.
    fn follows_figure(&self, i: usize) -> bool {
        let sign = i.checked_sub(1).map_or('\0', |before| self.tokens.sign(before));
        let is_figure = matches!(sign, '.' | ',' | ':' | '/' | '-' | '–' | '$' | '€' | '£' | '#');
        is_figure
            && self.tokens.is_glued(i)
            && (matches!(sign, '$' | '€' | '£' | '#') || self.is_figure_before(i - 1))
    }

    fn is_figure_before(&self, sign: usize) -> bool {
        self.tokens.is_glued(sign) && sign.checked_sub(1).is_some_and(|before| self.tokens.is_number(before))
    }

    /// Whether the number before `next` continues there, as in `5.5`, `5%`, `5:30` or `5kg`.
    fn goes_on(&self, next: usize) -> bool {
        if !self.tokens.is_glued(next) {
            return false;
        }
        let sign = self.tokens.sign(next);
        let joins = matches!(sign, '.' | ',' | ':' | '/' | '-') && self.tokens.is_glued(next + 1);
        sign == '%' || (joins && self.tokens.is_number(next + 1)) || !self.word(next).is_empty()
    }

    /// `two weeks ago`, `a year from now`, `two weekends ago`.
    fn ago(&self, i: usize) -> Option<TimeMatch> {
        let (at, count) = self.count(i)?;
        if let (Count::Of(least, most), "weekend" | "weekends") = (count, self.word(at)) {
            let next = self.phrase(at + 1, &["ago"])?;
            let weekend = |count: u32| self.calendar.weekend(-i32::try_from(count).ok()?);
            return TimeMatch::new(next, Some(weekend(most)?.until(weekend(least)?)));
        }
        let (unit, times) = words::unit(self.word(at))?;
        let count = multiplied(count, times)?;
        if let Some(next) = self.phrase(at + 1, &["ago"]) {
            return TimeMatch::new(next, self.calendar.ago(count, unit));
        }
        let next = self.phrase(at + 1, &["from", "now"])?;
        let Count::Of(least, most) = count else { return None };
        TimeMatch::new(next, Some(self.ahead(least, unit)?.until(self.ahead(most, unit)?)))
    }

    fn ahead(&self, count: u32, unit: Unit) -> Option<Period> {
        let count = i32::try_from(count).ok()?;
        match unit {
            Unit::Day => self.calendar.day(count),
            Unit::Week => self.calendar.week(count),
            Unit::Month => self.calendar.month_from_now(count),
            Unit::Year => self.calendar.year(self.calendar.this_year() + count),
            Unit::Minute | Unit::Hour => None,
        }
    }

    /// `the past 3 months`, `last few days`, `the past week`, `in the last year`.
    fn past(&self, i: usize) -> Option<TimeMatch> {
        let word = self.word(i);
        if !matches!(word, "last" | "past" | "previous") {
            return None;
        }
        if !matches!(self.word(i + 1), "a" | "an")
            && let Some((at, count)) = self.count(i + 1)
        {
            let (unit, times) = words::unit(self.word(at))?;
            return TimeMatch::new(at + 1, self.calendar.past(multiplied(count, times)?, unit));
        }
        // `in the last month` reaches up to now, `last month` does not.
        let within = ["in", "over", "during", "within", "for", "throughout"];
        let rolling = word == "past"
            || (self.tokens.word_before(i) == "the"
                && i.checked_sub(1).is_some_and(|the| within.contains(&self.tokens.word_before(the))));
        let (unit, times) = words::unit(self.word(i + 1)).filter(|_| rolling)?;
        if self.word(i + 1).ends_with('s') || unit == Unit::Minute || self.word(i + 2) == "of" {
            return None;
        }
        TimeMatch::new(i + 2, self.calendar.past(Count::Of(times, times), unit))
    }

    /// `last`, `this past`, `next`.
    fn which(&self, i: usize) -> Option<(usize, Occurrence)> {
        if let Some(next) = self.phrase(i, &["this", "past"]) {
            return Some((next, Occurrence::Last));
        }
        if let Some(next) = self.phrase(i, &["this", "coming"]) {
            return Some((next, Occurrence::Next));
        }
        words::which(self.word(i)).map(|which| (i + 1, which))
    }

    /// `last week`, `this weekend`, `the month before last`, and an expression after them: `last week on Monday`, `last
    /// year in March`.
    fn unit(&self, i: usize) -> Option<TimeMatch> {
        let (at, offset) = match self.which(i) {
            Some((at, Occurrence::Last)) => (at, -1),
            Some((at, Occurrence::Next)) => (at, 1),
            Some((at, _)) => (at, 0),
            None if self.phrase(i + 1, &["before", "last"]).is_some() => (i, -2),
            None if self.word(i) == "weekend" => return self.bare_weekend(i),
            None => return None,
        };
        let next = if offset == -2 { at + 3 } else { at + 1 };
        match self.word(at) {
            "week" => {
                let weekday = self.skip(self.skip_possessive(next), "on");
                match words::weekday(self.word(weekday)) {
                    Some(number) => TimeMatch::new(weekday + 1, self.calendar.weekday(offset, number)),
                    None => TimeMatch::new(next, self.calendar.week(offset)),
                }
            }
            "weekend" => TimeMatch::new(next, self.calendar.weekend(offset)),
            "month" => TimeMatch::new(next, self.calendar.month_from_now(offset)),
            "year" => {
                let year = self.calendar.this_year() + offset;
                self.within_year(next, year).or_else(|| TimeMatch::new(next, self.calendar.year(year)))
            }
            _ => None,
        }
    }

    /// `last year` + `in March`, `'s summer`.
    fn within_year(&self, next: usize, year: i32) -> Option<TimeMatch> {
        let at = self.skip(self.skip_possessive(next), "in");
        if at == next {
            return None;
        }
        if let Some((month, _)) = words::month(self.word(at)) {
            let day = self.day_number(at + 1);
            return match day {
                Some((next, day, _)) => TimeMatch::new(next, self.calendar.date(year, month, day)),
                None => TimeMatch::new(at + 1, self.calendar.month(year, month)),
            };
        }
        let at = self.skip(at, "the");
        TimeMatch::new(at + 1, self.calendar.season(year, words::season(self.word(at))?))
    }

    fn bare_weekend(&self, i: usize) -> Option<TimeMatch> {
        let the = i.checked_sub(1).filter(|the| self.word(*the) == "the")?;
        let cue = ["at", "on", "over", "during", "in"].contains(&self.tokens.word_before(the));
        TimeMatch::new(i + 1, self.calendar.latest_weekend().filter(|_| cue))
    }

    /// `Monday`, `last Fri`, `Wednesday of last week`, `Monday, May 5`.
    fn weekday(&self, i: usize) -> Option<TimeMatch> {
        let (at, which) = self.which(i).unwrap_or((i, Occurrence::Latest));
        let word = self.word(at);
        let Some(number) = words::weekday(word) else {
            let (number, ordinary) = words::short_weekday(word)?;
            let on = which == Occurrence::Latest && self.tokens.word_before(at) == "on";
            let cue = (on || which != Occurrence::Latest) && (!ordinary || self.tokens.is_capital(at));
            return TimeMatch::new(at + 1, self.calendar.named_weekday(which, number).filter(|_| cue));
        };
        if which != Occurrence::Latest {
            return TimeMatch::new(at + 1, self.calendar.named_weekday(which, number));
        }
        let before = self.tokens.word_before(at);
        if words::HABITS.contains(&before) || words::NAMED_DAYS.contains(&before) {
            return None;
        }
        let date = self.skip(self.skip_sign(at + 1, ','), "the");
        if let Some(found) = self.month_at(date, true).or_else(|| self.day_month(date))
            && found.period.as_day().is_some()
        {
            return Some(found);
        }
        let week = self.skip(at + 1, "of");
        match (words::which(self.word(week)), self.word(week + 1)) {
            (Some(which), "week") => {
                let offset =
                    if which == Occurrence::Last { -1 } else { i32::from(which == Occurrence::Next) };
                TimeMatch::new(week + 2, self.calendar.weekday(offset, number))
            }
            _ => TimeMatch::new(at + 1, self.calendar.named_weekday(Occurrence::Latest, number)),
        }
    }

    /// `last summer`, `winter of 2022`, `in the spring`, `winter 2022/23`.
    fn season(&self, i: usize) -> Option<TimeMatch> {
        if let Some((at, which)) = self.which(i) {
            let season = words::season(self.word(at))?;
            // `my last fall` is an accident.
            let possessive =
                ["my", "his", "her", "their", "your", "our"].contains(&self.tokens.word_before(i));
            if self.word(at) == "fall" && possessive {
                return None;
            }
            return TimeMatch::new(at + 1, self.season_of(which, season));
        }
        let season = words::season(self.word(i))?;
        if let Some(found) = self.season_with_year(i, season) {
            return Some(found);
        }
        let the = i.checked_sub(1).filter(|the| self.word(*the) == "the")?;
        let cue = ["in", "during", "over", "since", "throughout"].contains(&self.tokens.word_before(the));
        // `hurt in the fall`, `in the spring of the mattress`
        let certain = cue && self.word(i) != "fall" && self.word(i + 1) != "of";
        TimeMatch::new(i + 1, self.season_of(Occurrence::Latest, season).filter(|_| certain))
    }

    fn season_of(&self, which: Occurrence, season: Season) -> Option<Period> {
        self.calendar.yearly(which, |year| self.calendar.season(year, season))
    }

    fn season_with_year(&self, i: usize, season: Season) -> Option<TimeMatch> {
        let at = self.skip(self.skip_sign(i + 1, ','), "of");
        // A winter has two years.
        if let (Some((year, 4)), '/' | '-' | '–', Some((second, digits))) =
            (self.tokens.number(at), self.tokens.sign(at + 1), self.tokens.number(at + 2))
        {
            let both = if digits == 2 { (year + 1) % 100 } else { year + 1 };
            return TimeMatch::new(
                at + 3,
                self.calendar.season(year as i32, season).filter(|_| second == both),
            );
        }
        let (next, year) = self.year_after(i + 1)?;
        // `may fall last year after year`: only with a number is the verb a season.
        let certain = self.word(i) != "fall" || self.tokens.is_number(next - 1) || self.word(i + 1) == "of";
        TimeMatch::new(next, self.calendar.season(year, season).filter(|_| certain))
    }

    /// `early March`, `mid-2023`, `the end of last month`, `the first week of May`, `the second half of 2022`.
    fn part(&self, i: usize) -> Option<TimeMatch> {
        if let Some(part) = words::part(self.word(i)) {
            let at = match self.word(i) {
                "early" | "late" => self.skip(i + 1, "in"),
                "mid" => self.skip_sign(i + 1, '-'),
                _ => self.phrase(i + 1, &["of"])?,
            };
            if self.word(at) == "the" {
                let (unit, _) = words::unit(self.word(at + 1)).filter(|_| self.word(i + 1) == "of")?;
                return TimeMatch::new(at + 2, self.calendar.latest_part(part, unit));
            }
            let of = self.whole(at)?;
            return TimeMatch::new(of.next, self.calendar.part(part, of.period));
        }
        let number = words::ordinal(self.word(i));
        if number.is_none() && self.word(i) != "last" {
            return None;
        }
        let of = self.whole(self.phrase(i + 2, &["of"])?)?;
        let period = match (self.word(i + 1), number) {
            ("week", _) => self.calendar.week_of(number, of.period),
            ("half", Some(1)) => self.calendar.part(PeriodPart::FirstHalf, of.period),
            ("half", Some(2) | None) => self.calendar.part(PeriodPart::SecondHalf, of.period),
            _ => None,
        };
        TimeMatch::new(of.next, period)
    }

    /// A whole month, year, week or season, as the base of a part.
    fn whole(&self, i: usize) -> Option<TimeMatch> {
        let season = || {
            let season = words::season(self.word(i))?;
            let latest = || TimeMatch::new(i + 1, self.season_of(Occurrence::Latest, season));
            self.season_with_year(i, season).or_else(latest)
        };
        let year =
            || self.year_number(i).and_then(|(next, year)| TimeMatch::new(next, self.calendar.year(year)));
        let found = self.unit(i).or_else(|| self.month(i)).or_else(|| self.month_at(i, true));
        let found = found.or_else(year).or_else(|| self.season(i)).or_else(season)?;
        found.period.as_day().is_none().then_some(found)
    }

    /// Holidays with the same date every year: `last Christmas`, `New Year's Eve 2022`, `on Halloween`.
    fn holiday(&self, i: usize) -> Option<TimeMatch> {
        let (at, which) = self.which(i).map_or((i, None), |(at, which)| (at, Some(which)));
        let (next, month, day) = self.holiday_name(at)?;
        let date = |year| self.calendar.date(year, month, day);
        if let Some(which) = which {
            return TimeMatch::new(next, self.calendar.yearly(which, date));
        }
        if let Some((next, year)) = self.year_after(next) {
            return TimeMatch::new(next, date(year));
        }
        let cue = ["on", "at", "over", "during", "since"].contains(&self.tokens.word_before(i));
        TimeMatch::new(next, self.calendar.yearly(Occurrence::Latest, date).filter(|_| cue))
    }

    fn holiday_name(&self, i: usize) -> Option<(usize, u32, u32)> {
        match self.word(i) {
            "christmas" => Some(match self.word(i + 1) {
                "eve" => (i + 2, 12, 24),
                "day" => (i + 2, 12, 25),
                _ => (i + 1, 12, 25),
            }),
            "halloween" => Some((i + 1, 10, 31)),
            "valentine" | "valentines" => Some((self.phrase(self.skip_possessive(i + 1), &["day"])?, 2, 14)),
            "new" if matches!(self.word(i + 1), "year" | "years") => {
                let at = self.skip_possessive(i + 2);
                match self.word(at) {
                    "eve" => Some((at + 1, 12, 31)),
                    "day" => Some((at + 1, 1, 1)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

fn length(found: &TimeMatch) -> usize {
    found.next
}

fn multiplied(count: Count, times: u32) -> Option<Count> {
    match count {
        Count::Of(least, most) => Some(Count::Of(least.checked_mul(times)?, most.checked_mul(times)?)),
        Count::Half => (times == 1).then_some(Count::Half),
    }
}
