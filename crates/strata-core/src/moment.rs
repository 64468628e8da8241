//! Parses moments as people write them: RFC 3339, or a date in UTC. The command line, HTTP and MCP use this parser.

use jiff::Timestamp;
use jiff::civil::{Date, Time};
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
        format!("`{shown}` is no time; write `2026-01-31` or `2026-01-31T12:00:00Z`")
    };
    // `Date` would also accept a time without an offset and ignore the time, so that it would silently mean another
    // moment.
    let is_date = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if !is_date {
        return text.parse().map_err(|_| wrong());
    }
    let date: Date = text.parse().map_err(|_| wrong())?;
    let zoned = date.to_datetime(time_of_date).to_zoned(TimeZone::UTC).map_err(|_| wrong())?;
    Ok(zoned.timestamp())
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
    }

    #[test]
    fn an_ambiguous_moment_is_an_error() {
        for text in
            ["", "yesterday", "2026-01-31T12:00:00", "2026-13-01", "2026-02-30", "31.01.2026", "1700000000"]
        {
            assert!(parse_moment(text).unwrap_err().contains("is no time"), "{text}");
        }
    }
}
