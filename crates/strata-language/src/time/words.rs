//! English time words.

use super::calendar::{DayPart, Occurrence, PeriodPart, Season, Unit};

/// How clearly a word is the name of a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clarity {
    /// It has no other meaning.
    Clear,
    /// It is also a person's name, or an abbreviation of the month.
    Name,
    /// It is also a verb: `may`, `march`.
    Verb,
}

/// The number of a month by its name.
pub(super) fn month(word: &str) -> Option<(u32, Clarity)> {
    Some(match word {
        "january" => (1, Clarity::Clear),
        "february" => (2, Clarity::Clear),
        "march" => (3, Clarity::Verb),
        "april" => (4, Clarity::Name),
        "may" => (5, Clarity::Verb),
        "june" => (6, Clarity::Name),
        "july" => (7, Clarity::Clear),
        "august" => (8, Clarity::Name),
        "september" => (9, Clarity::Clear),
        "october" => (10, Clarity::Clear),
        "november" => (11, Clarity::Clear),
        "december" => (12, Clarity::Clear),
        "jan" => (1, Clarity::Name),
        "feb" => (2, Clarity::Name),
        "mar" => (3, Clarity::Name),
        "apr" => (4, Clarity::Name),
        "jun" => (6, Clarity::Name),
        "jul" => (7, Clarity::Name),
        "aug" => (8, Clarity::Name),
        "sep" | "sept" => (9, Clarity::Name),
        "oct" => (10, Clarity::Name),
        "nov" => (11, Clarity::Name),
        "dec" => (12, Clarity::Name),
        _ => return None,
    })
}

/// A weekday by its full name; Monday is 0.
pub(super) fn weekday(word: &str) -> Option<u32> {
    const NAMES: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    NAMES.iter().position(|name| *name == word).map(|i| i as u32)
}

/// A weekday by its abbreviation, and whether that is also an ordinary word.
pub(super) fn short_weekday(word: &str) -> Option<(u32, bool)> {
    Some(match word {
        "mon" => (0, false),
        "tue" | "tues" => (1, false),
        "wed" => (2, true),
        "thu" | "thur" | "thurs" => (3, false),
        "fri" => (4, false),
        "sat" => (5, true),
        "sun" => (6, true),
        _ => return None,
    })
}

/// Days with a weekday in their name.
pub(super) const NAMED_DAYS: [&str; 8] =
    ["black", "good", "ash", "easter", "palm", "freaky", "cyber", "maundy"];

/// Words that make the name after them a habit.
pub(super) const HABITS: [&str; 8] = ["every", "each", "any", "most", "all", "some", "a", "another"];

pub(super) fn season(word: &str) -> Option<Season> {
    Some(match word {
        "spring" => Season::Spring,
        "summer" => Season::Summer,
        "autumn" | "fall" => Season::Autumn,
        "winter" => Season::Winter,
        _ => return None,
    })
}

/// A unit, and the number of units that the word means.
pub(super) fn unit(word: &str) -> Option<(Unit, u32)> {
    Some(match word {
        "minute" | "minutes" => (Unit::Minute, 1),
        "hour" | "hours" => (Unit::Hour, 1),
        "day" | "days" => (Unit::Day, 1),
        "week" | "weeks" => (Unit::Week, 1),
        "fortnight" | "fortnights" => (Unit::Week, 2),
        "month" | "months" => (Unit::Month, 1),
        "year" | "years" => (Unit::Year, 1),
        "decade" | "decades" => (Unit::Year, 10),
        _ => return None,
    })
}

pub(super) fn which(word: &str) -> Option<Occurrence> {
    Some(match word {
        "last" | "previous" => Occurrence::Last,
        "this" | "current" => Occurrence::This,
        "next" | "coming" => Occurrence::Next,
        _ => return None,
    })
}

pub(super) fn part(word: &str) -> Option<PeriodPart> {
    Some(match word {
        "early" => PeriodPart::Early,
        "mid" => PeriodPart::Middle,
        "late" => PeriodPart::Late,
        "beginning" | "start" => PeriodPart::Beginning,
        "middle" => PeriodPart::Middle,
        "end" => PeriodPart::End,
        _ => return None,
    })
}

pub(super) fn part_of_day(word: &str) -> Option<DayPart> {
    Some(match word {
        "morning" => DayPart::Morning,
        "afternoon" => DayPart::Afternoon,
        "evening" => DayPart::Evening,
        "night" => DayPart::Night,
        _ => return None,
    })
}

pub(super) fn ordinal(word: &str) -> Option<u32> {
    const NAMES: [&str; 4] = ["first", "second", "third", "fourth"];
    NAMES.iter().position(|name| *name == word).map(|i| i as u32 + 1)
}

/// A number from one to nineteen, or a multiple of ten.
pub(crate) fn number(word: &str) -> Option<u32> {
    const ONES: [&str; 19] = [
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    let ones = ONES.iter().position(|name| *name == word).map(|i| i as u32 + 1);
    ones.or_else(|| TENS.iter().position(|name| *name == word).map(|i| (i as u32 + 2) * 10))
}

/// Words after which a month's name or a bare number is a month or a year.
pub(super) const BEFORE_DATE: [&str; 17] = [
    "in",
    "during",
    "since",
    "until",
    "till",
    "by",
    "before",
    "after",
    "around",
    "from",
    "through",
    "throughout",
    "of",
    "early",
    "mid",
    "late",
    "between",
];

/// Nouns that are counted in thousands: `in 2000 words` is not a year.
pub(super) const COUNTED: [&str; 18] = [
    "words",
    "dollars",
    "euros",
    "pounds",
    "people",
    "steps",
    "calories",
    "miles",
    "meters",
    "metres",
    "years",
    "days",
    "hours",
    "users",
    "items",
    "characters",
    "tokens",
    "pieces",
];
