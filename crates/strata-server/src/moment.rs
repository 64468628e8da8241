//! Moments in the forms that clients write: RFC 3339, a date, or seconds since 1970 as a number.

use std::fmt;

use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, Visitor};
use strata_core::moment::{parse_as_of, parse_moment};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, OneOfBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::error::ApiError;

/// The earliest accepted moment, 0001-01-01: RFC 3339 cannot express years before 0, and answers must be readable.
const EARLIEST: i64 = -62_135_596_800;

/// A moment in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    at: Timestamp,
    last: Timestamp,
}

impl Moment {
    /// The moment; for a date, its first moment.
    pub(crate) fn at(self) -> Timestamp {
        self.at
    }

    /// The end of a period: for a date, the end of its day.
    pub(crate) fn as_of(self) -> Timestamp {
        self.last
    }

    /// Reads the parameter `name` of a query or a tool call.
    pub(crate) fn parameter(name: &str, text: Option<&str>) -> Result<Option<Self>, ApiError> {
        let moment = text.map(Self::parse).transpose();
        moment.map_err(|reason| ApiError::invalid(format!("`{name}`: {reason}")))
    }

    /// Reads a moment from a query, in which numbers are text too.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(seconds) = text.parse::<i64>() {
            return Self::from_seconds(seconds);
        }
        if let Ok(seconds) = text.parse::<f64>() {
            return Self::from_fraction(seconds);
        }
        Self::from_text(text)
    }

    fn from_text(text: &str) -> Result<Self, String> {
        let shown: String = text.chars().take(64).collect();
        let read = |text: &str| Ok::<_, String>((parse_moment(text)?, parse_as_of(text)?));
        let (at, last) = read(text).map_err(|reason| format!("{reason}, or seconds since 1970"))?;
        Ok(Self { last, ..Self::checked(at, shown)? })
    }

    fn checked(timestamp: Timestamp, shown: impl fmt::Display) -> Result<Self, String> {
        if timestamp.as_second() < EARLIEST {
            Err(out_of_range(shown))
        } else {
            Ok(Self { at: timestamp, last: timestamp })
        }
    }

    fn from_seconds(seconds: i64) -> Result<Self, String> {
        let timestamp = Timestamp::from_second(seconds).map_err(|_| out_of_range(seconds))?;
        Self::checked(timestamp, seconds)
    }

    fn from_fraction(seconds: f64) -> Result<Self, String> {
        // To the microsecond, the precision of the stores; a float of today's seconds is not more precise either.
        let micros = (seconds * 1e6).round();
        if !micros.is_finite() || micros.abs() > 1e18 {
            return Err(out_of_range(seconds));
        }
        let timestamp = Timestamp::from_microsecond(micros as i64).map_err(|_| out_of_range(seconds))?;
        Self::checked(timestamp, seconds)
    }
}

fn out_of_range(value: impl fmt::Display) -> String {
    format!(
        "`{value}` is out of range; take a time from year 1 to 9999, and seconds rather than milliseconds since 1970"
    )
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MomentVisitor;

        impl Visitor<'_> for MomentVisitor {
            type Value = Moment;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time as `2026-01-31T12:00:00Z`, a date or seconds since 1970")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Moment, E> {
                Moment::from_text(text).map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<Moment, E> {
                Moment::from_seconds(seconds).map_err(E::custom)
            }

            fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<Moment, E> {
                i64::try_from(seconds)
                    .map_err(|_| out_of_range(seconds))
                    .and_then(Moment::from_seconds)
                    .map_err(E::custom)
            }

            fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<Moment, E> {
                Moment::from_fraction(seconds).map_err(E::custom)
            }
        }

        deserializer.deserialize_any(MomentVisitor)
    }
}

impl PartialSchema for Moment {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("RFC 3339; a date alone, as `2026-01-31`, is taken too"));
        let number = ObjectBuilder::new()
            .schema_type(Type::Number)
            .description(Some("seconds since 1970"))
            .minimum(Some(EARLIEST))
            .maximum(Some(Timestamp::MAX.as_second()));
        OneOfBuilder::new().item(text).item(number).into()
    }
}

impl ToSchema for Moment {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_text_or_seconds() {
        for (json, expected) in [
            ("\"2026-01-31T12:00:00Z\"", "2026-01-31T12:00:00Z"),
            ("\"2026-01-31T12:00:00.25+02:00\"", "2026-01-31T10:00:00.25Z"),
            ("\"2026-01-31\"", "2026-01-31T00:00:00Z"),
            ("\"2026-01-31T12:00:00\"", "2026-01-31T12:00:00Z"),
            ("\"9999-12-31\"", "9999-12-30T22:00:00Z"),
            ("0", "1970-01-01T00:00:00Z"),
            ("-1", "1969-12-31T23:59:59Z"),
            ("1700000000.125", "2023-11-14T22:13:20.125Z"),
        ] {
            assert_eq!(serde_json::from_str::<Moment>(json).unwrap().at().to_string(), expected, "{json}");
        }
        for json in [
            "\"yesterday\"",
            "\"\"",
            "\"2026-13-31\"",
            "\"2026-01-31T12:00:00 or so\"",
            "1700000000000000",
            "1e300",
            "true",
            "null",
            "{}",
        ] {
            assert!(serde_json::from_str::<Moment>(json).is_err(), "{json}");
        }
        let day = Moment::parse("2026-01-31").unwrap();
        assert_eq!(day.as_of().to_string(), "2026-01-31T23:59:59.999999Z");
        assert_eq!(Moment::parse("0").unwrap().at(), Timestamp::UNIX_EPOCH);
        assert_eq!(Moment::parse("1.5").unwrap().at().as_millisecond(), 1500);
        for text in ["1.7e12x", "nan", "inf", "1e300", ""] {
            assert!(Moment::parse(text).is_err(), "{text}");
        }
    }
}
