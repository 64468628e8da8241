//! Parses moments as people write them: RFC 3339, a time without an offset in UTC, or a date in UTC. The command line, HTTP and MCP use this parser.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;

/// The moment that `text` names; a date means its first moment.
pub fn parse_moment(text: &str) -> Result<Timestamp, String> {
    parse(text, Time::midnight())
}

/// The end of a time range; a date includes its whole day.
pub fn parse_as_of(text: &str) -> Result<Timestamp, String> {
    parse(text, Time::constant(23, 59, 59, 999_999_000))
}

fn parse(text: &str, time_of_date: Time) -> Result<Timestamp, String> {
    let wrong = || {
        let shown: String = text.chars().take(64).collect();
        format!(
            "`{shown}` is no time; write `2026-01-31`, `2026-01-31T12:00:00` or `2026-01-31T12:00:00+02:00`"
        )
    };
    if let Ok(moment) = text.parse() {
        return Ok(moment);
    }
    // `Date` would also accept a time and ignore it, so that it would silently mean another moment.
    let is_date = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let civil = if is_date {
        text.parse::<Date>().map_err(|_| wrong())?.to_datetime(time_of_date)
    } else {
        without_offset(text).ok_or_else(wrong)?
    };
    // The last hours of the year 9999 are not moments of every zone, and people write them for «for ever».
    Ok(civil.to_zoned(TimeZone::UTC).map_or_else(|_| last(), |zoned| zoned.timestamp()))
}

/// The last second that a timestamp can name.
fn last() -> Timestamp {
    Timestamp::from_second(Timestamp::MAX.as_second()).unwrap_or(Timestamp::MAX)
}

/// A date and a time without an offset, which is UTC; also with the `Z` of a time that is too late for a timestamp.
fn without_offset(text: &str) -> Option<DateTime> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let time = time.strip_suffix(['Z', 'z']).unwrap_or(time);
    let is_time =
        time.contains(':') && time.bytes().all(|byte| byte.is_ascii_digit() || b":.".contains(&byte));
    if !is_time {
        return None;
    }
    format!("{date}T{time}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_rfc_3339_or_a_date() {
        let check = |text: &str, first: &str, last: &str| {
            assert_eq!(parse_moment(text).unwrap().to_string(), first);
            assert_eq!(parse_as_of(text).unwrap().to_string(), last);
        };
        check("2026-01-31", "2026-01-31T00:00:00Z", "2026-01-31T23:59:59.999999Z");
        check("2026-01-31T12:00:00+02:00", "2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z");
        check("2026-01-31T12:00:00", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z");
        check("2026-01-31 12:00", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z");
        check("2026-01-31T12:00:00.25", "2026-01-31T12:00:00.25Z", "2026-01-31T12:00:00.25Z");
    }

    #[test]
    fn the_end_of_time_is_a_moment() {
        for text in ["9999-12-31", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59"] {
            assert_eq!(parse_as_of(text).unwrap(), last(), "{text}");
        }
        assert_eq!(parse_moment("9999-06-01").unwrap().to_string(), "9999-06-01T00:00:00Z");
        assert!(parse_moment("10000-01-01").is_err());
    }

    #[test]
    fn a_text_that_is_no_moment_is_an_error() {
        for text in [
            "",
            "yesterday",
            "2026-01-31T",
            "2026-01-31T12:00+",
            "2026-01-31 at 12:00",
            "2026-01-31T25:00:00",
            "2026-13-01",
            "2026-02-30",
            "31.01.2026",
            "1700000000",
        ] {
            assert!(parse_moment(text).unwrap_err().contains("is no time"), "{text}");
        }
    }
}
