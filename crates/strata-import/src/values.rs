//! Reads the values that foreign databases have for a role or a time.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rusqlite::types::ValueRef;
use strata_core::{Error, Result, Role};

/// Reads a role by the names that chat programs use.
pub(super) fn role(name: &str) -> Result<Role> {
    match name.trim().to_lowercase().as_str() {
        "user" | "human" | "customer" => Ok(Role::User),
        "assistant" | "ai" | "bot" | "model" | "agent" => Ok(Role::Assistant),
        "system" | "developer" => Ok(Role::System),
        "tool" | "function" => Ok(Role::Tool),
        // The error of the core's parser lists the known roles.
        _ => name.parse(),
    }
}

/// Reads a time: a number since the epoch, in the unit that its size suggests, or a text like ISO 8601. Without a zone it is
/// UTC, as SQLite's own functions write it.
pub(super) fn moment(value: ValueRef<'_>) -> Result<Option<Timestamp>> {
    let unknown = |shown: String| {
        let shown: String = shown.chars().take(64).collect();
        Error::invalid(format!("time `{shown}` is unknown; use ISO 8601 or seconds since the epoch"))
    };
    match value {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(number) => integer(number).map(Some).ok_or_else(|| unknown(number.to_string())),
        ValueRef::Real(number) => real(number).map(Some).ok_or_else(|| unknown(number.to_string())),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            let text = String::from_utf8_lossy(text);
            let text = text.trim();
            if text.is_empty() {
                Ok(None)
            } else {
                written(text).map(Some).ok_or_else(|| unknown(text.to_owned()))
            }
        }
    }
}

/// A number of seconds up to the year 5138; larger numbers are milliseconds, and so on.
fn integer(number: i64) -> Option<Timestamp> {
    match number.unsigned_abs() {
        0..100_000_000_000 => Timestamp::from_second(number).ok(),
        100_000_000_000..100_000_000_000_000 => Timestamp::from_millisecond(number).ok(),
        100_000_000_000_000..100_000_000_000_000_000 => Timestamp::from_microsecond(number).ok(),
        _ => Timestamp::from_nanosecond(number.into()).ok(),
    }
}

fn real(number: f64) -> Option<Timestamp> {
    if number.abs() >= 1e11 {
        // Numbers in finer units need no fraction.
        return (number.abs() < 9e18).then(|| integer(number as i64)).flatten();
    }
    number.is_finite().then(|| Timestamp::from_microsecond((number * 1e6).round() as i64).ok()).flatten()
}

/// A time as a number since the epoch.
pub(super) fn number(number: f64) -> Option<Timestamp> {
    real(number)
}

pub(super) fn written(text: &str) -> Option<Timestamp> {
    let zoned = || text.parse::<Timestamp>().ok();
    let civil = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    let number = || text.parse::<i64>().ok().and_then(integer);
    let fraction = || text.parse::<f64>().ok().and_then(real);
    // Numbers first: `20260219` is read as seconds, although it could be a date too.
    number().or_else(fraction).or_else(zoned).or_else(civil)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_programs_write_them() {
        let check = |value: ValueRef<'_>, expected: &str| {
            assert_eq!(moment(value).unwrap().unwrap().to_string(), expected, "{value:?}");
        };
        let text = |text: &'static str| ValueRef::Text(text.as_bytes());
        check(ValueRef::Integer(1_708_654_321), "2024-02-23T02:12:01Z");
        check(ValueRef::Integer(1_708_654_321_500), "2024-02-23T02:12:01.5Z");
        check(ValueRef::Integer(1_708_654_321_500_000), "2024-02-23T02:12:01.5Z");
        check(ValueRef::Integer(1_708_654_321_500_000_000), "2024-02-23T02:12:01.5Z");
        check(ValueRef::Real(1_708_654_321.25), "2024-02-23T02:12:01.25Z");
        check(ValueRef::Real(1_708_654_321_250.0), "2024-02-23T02:12:01.25Z");
        check(text("2024-02-23 02:12:01"), "2024-02-23T02:12:01Z");
        check(text("2024-02-23T02:12:01.250000"), "2024-02-23T02:12:01.25Z");
        check(text("2024-02-23T10:12:01+08:00"), "2024-02-23T02:12:01Z");
        check(text("2024-02-23 02:12:01Z"), "2024-02-23T02:12:01Z");
        check(text("2024-02-23"), "2024-02-23T00:00:00Z");
        check(text(" 1708654321 "), "2024-02-23T02:12:01Z");
        check(text("1708654321.25"), "2024-02-23T02:12:01.25Z");
        assert_eq!(moment(ValueRef::Null).unwrap(), None);
        assert_eq!(moment(text("")).unwrap(), None);
        for wrong in [text("yesterday"), text("inf"), ValueRef::Real(f64::NAN), ValueRef::Real(1e300)] {
            assert!(moment(wrong).unwrap_err().message().contains("ISO 8601"), "{wrong:?}");
        }
    }

    #[test]
    fn roles_are_read_as_programs_write_them() {
        for (name, expected) in [
            ("user", Role::User),
            ("Human", Role::User),
            ("ASSISTANT", Role::Assistant),
            ("ai", Role::Assistant),
            ("developer", Role::System),
            (" function ", Role::Tool),
        ] {
            assert_eq!(role(name).unwrap(), expected, "{name}");
        }
        assert!(role("narrator").unwrap_err().message().contains("`narrator`"));
    }
}
