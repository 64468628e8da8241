//! The arithmetic of the civil calendar. Every function returns `None` if the result is outside the calendar's range.

use jiff::Span;
use jiff::civil::{Date, DateTime};

use super::Precision;

/// The range of «a few» and 几: two to six.
pub(super) const FEW: (u32, u32) = (2, 6);

/// A span of local time; its end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Period {
    pub(super) start: DateTime,
    pub(super) end: DateTime,
    pub(super) precision: Precision,
}

impl Period {
    /// Its day, if it is exactly one day.
    pub(super) fn as_day(&self) -> Option<Date> {
        let day = self.start.date();
        (self.precision == Precision::Day && self.end.date() == plus(day, Unit::Day, 1)?).then_some(day)
    }

    /// From the start of the first period to the end of the second.
    pub(super) fn until(self, other: Self) -> Self {
        Self { end: other.end, ..self }
    }
}

/// A match of a grammar: a period, and the first token after the words that name it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeMatch {
    pub(super) next: usize,
    pub(super) period: Period,
}

impl TimeMatch {
    pub(super) fn new(next: usize, period: Option<Period>) -> Option<Self> {
        Some(Self { next, period: period? })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

/// A number of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// From the first number to the second; both are equal if the number is exact.
    Of(u32, u32),
    /// A half.
    Half,
}

/// A part of a month, year, week or season.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeriodPart {
    Early,
    Middle,
    Late,
    Beginning,
    End,
    FirstHalf,
    SecondHalf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DayPart {
    SmallHours,
    Morning,
    Noon,
    Afternoon,
    Evening,
    Night,
}

/// A season by the number of its first month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Season {
    Spring = 3,
    Summer = 6,
    Autumn = 9,
    Winter = 12,
}

/// The choice among recurring periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occurrence {
    /// The latest that is over.
    Last,
    /// The current one.
    This,
    /// The first that has not begun.
    Next,
    /// The latest that has begun.
    Latest,
}

/// The calendar as seen from one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calendar {
    now: DateTime,
    today: Date,
}

impl Calendar {
    pub(super) fn new(now: DateTime) -> Self {
        Self { now, today: now.date() }
    }

    pub(super) fn this_year(&self) -> i32 {
        i32::from(self.today.year())
    }

    /// The day this many days from today.
    pub(super) fn day(&self, offset: i32) -> Option<Period> {
        day(plus(self.today, Unit::Day, offset)?)
    }

    pub(super) fn date(&self, year: i32, month: u32, number: u32) -> Option<Period> {
        day(date(year, month, number)?)
    }

    /// The week this many weeks from this one, Monday to Sunday.
    pub(super) fn week(&self, offset: i32) -> Option<Period> {
        let monday = plus(self.monday()?, Unit::Week, offset)?;
        days(monday, plus(monday, Unit::Week, 1)?, Precision::Week)
    }

    /// The Saturday and Sunday of the week this many weeks from this one.
    pub(super) fn weekend(&self, offset: i32) -> Option<Period> {
        let monday = plus(self.monday()?, Unit::Week, offset)?;
        days(plus(monday, Unit::Day, 5)?, plus(monday, Unit::Week, 1)?, Precision::Week)
    }

    /// The latest weekend that has begun by now.
    pub(super) fn latest_weekend(&self) -> Option<Period> {
        let this = self.weekend(0)?;
        if this.start <= self.now { Some(this) } else { self.weekend(-1) }
    }

    /// A day of the week this many weeks from this one; Monday is 0.
    pub(super) fn weekday(&self, week: i32, weekday: u32) -> Option<Period> {
        day(plus(plus(self.monday()?, Unit::Week, week)?, Unit::Day, weekday as i32)?)
    }

    /// A weekday without a week: the latest up to today, or with «last» before today.
    pub(super) fn named_weekday(&self, which: Occurrence, weekday: u32) -> Option<Period> {
        let back = (self.today.weekday().to_monday_zero_offset() as i32 - weekday as i32).rem_euclid(7);
        match which {
            Occurrence::Latest => self.day(-back),
            Occurrence::Last => self.day(if back == 0 { -7 } else { -back }),
            Occurrence::This => self.weekday(0, weekday),
            Occurrence::Next => self.weekday(1, weekday),
        }
    }

    pub(super) fn month(&self, year: i32, month: u32) -> Option<Period> {
        let first = date(year, month, 1)?;
        days(first, plus(first, Unit::Month, 1)?, Precision::Month)
    }

    /// The month this many months from this one.
    pub(super) fn month_from_now(&self, offset: i32) -> Option<Period> {
        let first = plus(self.today.first_of_month(), Unit::Month, offset)?;
        self.month(i32::from(first.year()), first.month() as u32)
    }

    pub(super) fn year(&self, year: i32) -> Option<Period> {
        self.years(year, 1)
    }

    pub(super) fn years(&self, year: i32, count: i32) -> Option<Period> {
        days(date(year, 1, 1)?, date(year + count, 1, 1)?, Precision::Year)
    }

    /// The season that starts in `year`.
    pub(super) fn season(&self, year: i32, season: Season) -> Option<Period> {
        let first = date(year, season as u32, 1)?;
        days(first, plus(first, Unit::Month, 3)?, Precision::Season)
    }

    /// A period that recurs every year; `of` returns it for one year.
    pub(super) fn yearly(&self, which: Occurrence, of: impl Fn(i32) -> Option<Period>) -> Option<Period> {
        let this_year = self.this_year();
        // It looks eight years back: the 29th of February comes every fourth year, and not in 1900.
        let mut back = (0..=8).filter_map(|back| of(this_year - back));
        match which {
            Occurrence::Latest => back.find(|period| period.start <= self.now),
            Occurrence::Last => back.find(|period| period.end <= self.now),
            Occurrence::Next => {
                (0..=8).filter_map(|on| of(this_year + on)).find(|period| period.start > self.now)
            }
            Occurrence::This => {
                // A winter that began last year continues.
                let going_on = of(this_year - 1).filter(|period| period.end > self.now);
                going_on.or_else(|| of(this_year))
            }
        }
    }

    /// The period this many units ago.
    pub(super) fn ago(&self, count: Count, unit: Unit) -> Option<Period> {
        match (count, unit) {
            (Count::Of(least, most), _) => {
                Some(self.exactly_ago(most, unit)?.until(self.exactly_ago(least, unit)?))
            }
            // «Half a year ago» is imprecise: it means the three months around that day.
            (Count::Half, Unit::Year) => {
                Some(self.exactly_ago(7, Unit::Month)?.until(self.exactly_ago(5, Unit::Month)?))
            }
            (Count::Half, Unit::Month) => self.around(plus(self.today, Unit::Day, -15)?),
            (Count::Half, Unit::Hour) => self.exactly_ago(30, Unit::Minute),
            (Count::Half, _) => None,
        }
    }

    fn exactly_ago(&self, count: u32, unit: Unit) -> Option<Period> {
        let offset = -i32::try_from(count).ok()?;
        match unit {
            Unit::Minute => self.hour_of(self.now.checked_add(Span::new().try_minutes(offset).ok()?).ok()?),
            Unit::Hour => self.hour_of(self.now.checked_add(Span::new().try_hours(offset).ok()?).ok()?),
            Unit::Day => self.day(offset),
            Unit::Week => self.around(plus(self.today, Unit::Week, offset)?),
            Unit::Month => self.month_from_now(offset),
            Unit::Year => self.year(self.this_year().checked_add(offset)?),
        }
    }

    /// The seven days around a day.
    fn around(&self, day: Date) -> Option<Period> {
        days(plus(day, Unit::Day, -3)?, plus(day, Unit::Day, 4)?, Precision::Week)
    }

    fn hour_of(&self, at: DateTime) -> Option<Period> {
        let start = at.date().at(at.hour(), 0, 0, 0);
        let end = start.checked_add(Span::new().try_hours(1).ok()?).ok()?;
        Some(Period { start, end, precision: Precision::Hour })
    }

    /// From this many units ago to the end of today, or of this hour.
    pub(super) fn past(&self, count: Count, unit: Unit) -> Option<Period> {
        let (count, unit) = match (count, unit) {
            (Count::Of(_, most), unit) => (most, unit),
            (Count::Half, Unit::Year) => (6, Unit::Month),
            (Count::Half, Unit::Month) => (15, Unit::Day),
            (Count::Half, Unit::Hour) => (30, Unit::Minute),
            (Count::Half, _) => return None,
        };
        if matches!(unit, Unit::Minute | Unit::Hour) {
            return Some(self.exactly_ago(count, unit)?.until(self.hour_of(self.now)?));
        }
        let precision = match unit {
            Unit::Week => Precision::Week,
            Unit::Month => Precision::Month,
            Unit::Year => Precision::Year,
            Unit::Minute | Unit::Hour | Unit::Day => Precision::Day,
        };
        let start = plus(self.today, unit, -i32::try_from(count).ok()?)?;
        days(start, plus(self.today, Unit::Day, 1)?, precision)
    }

    /// The same period, extended to the end of today: «since» it.
    pub(super) fn since(&self, period: Period) -> Period {
        let today = self.day(0).map_or(period.end, |today| today.end);
        Period { end: period.end.max(today), ..period }
    }

    /// A part of a calendar period.
    pub(super) fn part(&self, part: PeriodPart, of: Period) -> Option<Period> {
        let first = of.start.date();
        let month = |from: i32, to: i32| {
            let (from, to) = (plus(first, Unit::Month, from)?, plus(first, Unit::Month, to)?);
            days(from, to, Precision::Month)
        };
        match of.precision {
            Precision::Year => match part {
                PeriodPart::Beginning => month(0, 3),
                PeriodPart::Early => month(0, 4),
                PeriodPart::Middle => month(4, 8),
                PeriodPart::Late => month(8, 12),
                PeriodPart::End => month(9, 12),
                PeriodPart::FirstHalf => month(0, 6),
                PeriodPart::SecondHalf => month(6, 12),
            },
            Precision::Season => match part {
                PeriodPart::Beginning | PeriodPart::Early => month(0, 1),
                PeriodPart::Middle => month(1, 2),
                PeriodPart::Late | PeriodPart::End => month(2, 3),
                PeriodPart::FirstHalf | PeriodPart::SecondHalf => None,
            },
            Precision::Month | Precision::Week => {
                let (from, to) = match (of.precision, part) {
                    (Precision::Month, PeriodPart::Beginning | PeriodPart::Early) => (0, Some(10)),
                    (Precision::Month, PeriodPart::Middle) => (10, Some(20)),
                    (Precision::Month, PeriodPart::Late | PeriodPart::End) => (20, None),
                    (Precision::Month, PeriodPart::FirstHalf) => (0, Some(15)),
                    (Precision::Month, PeriodPart::SecondHalf) => (15, None),
                    (_, PeriodPart::Beginning | PeriodPart::Early) => (0, Some(2)),
                    (_, PeriodPart::Middle) => (2, Some(4)),
                    (_, PeriodPart::Late | PeriodPart::End) => (4, None),
                    (_, PeriodPart::FirstHalf | PeriodPart::SecondHalf) => return None,
                };
                let end = to.map_or(Some(of.end.date()), |to| plus(first, Unit::Day, to))?;
                let precision =
                    if of.precision == Precision::Month { Precision::Week } else { Precision::Day };
                days(plus(first, Unit::Day, from)?, end, precision)
            }
            Precision::Day | Precision::Hour => None,
        }
    }

    /// The latest part of a month, week or year that has begun by now.
    pub(super) fn latest_part(&self, part: PeriodPart, unit: Unit) -> Option<Period> {
        let of = |offset| match unit {
            Unit::Week => self.part(part, self.week(offset)?),
            Unit::Month => self.part(part, self.month_from_now(offset)?),
            Unit::Year => self.part(part, self.year(self.this_year() + offset)?),
            Unit::Minute | Unit::Hour | Unit::Day => None,
        };
        of(0).filter(|period| period.start <= self.now).or_else(|| of(-1))
    }

    /// The `number`th seven days of a month or year, from 1; the last seven days without a number.
    pub(super) fn week_of(&self, number: Option<u32>, of: Period) -> Option<Period> {
        let (first, end) = (of.start.date(), of.end.date());
        let start = match number {
            Some(number) => plus(first, Unit::Week, number as i32 - 1)?,
            None => plus(end, Unit::Week, -1)?,
        };
        days(start, plus(start, Unit::Week, 1)?.min(end), Precision::Week)
    }

    /// A part of a day. A night lasts until six in the morning.
    pub(super) fn part_of_day(&self, day: Date, part: DayPart) -> Option<Period> {
        let (from, to) = match part {
            DayPart::SmallHours => (0, 6),
            DayPart::Morning => (5, 12),
            DayPart::Noon => (11, 14),
            DayPart::Afternoon => (12, 18),
            DayPart::Evening => (18, 24),
            DayPart::Night => (18, 30),
        };
        let at = |hour| day.at(0, 0, 0, 0).checked_add(Span::new().try_hours(hour).ok()?).ok();
        Some(Period { start: at(from)?, end: at(to)?, precision: Precision::Hour })
    }

    /// A part of the day this many days from today.
    pub(super) fn part_of(&self, offset: i32, part: DayPart) -> Option<Period> {
        self.part_of_day(plus(self.today, Unit::Day, offset)?, part)
    }

    fn monday(&self) -> Option<Date> {
        plus(self.today, Unit::Day, -i32::from(self.today.weekday().to_monday_zero_offset()))
    }
}

fn date(year: i32, month: u32, day: u32) -> Option<Date> {
    Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()
}

fn day(date: Date) -> Option<Period> {
    days(date, plus(date, Unit::Day, 1)?, Precision::Day)
}

fn days(start: Date, end: Date, precision: Precision) -> Option<Period> {
    Some(Period { start: start.at(0, 0, 0, 0), end: end.at(0, 0, 0, 0), precision })
}

fn plus(date: Date, unit: Unit, count: i32) -> Option<Date> {
    let span = match unit {
        Unit::Day => Span::new().try_days(count),
        Unit::Week => Span::new().try_weeks(count),
        Unit::Month => Span::new().try_months(count),
        Unit::Year => Span::new().try_years(count),
        Unit::Minute | Unit::Hour => return None,
    };
    date.checked_add(span.ok()?).ok()
}
