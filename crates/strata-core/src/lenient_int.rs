//! Reads integers from JSON documents that write them as floats: many programs write `5` as `5.0`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};
use serde_json::Number;

/// A float of this size or more may be rounded from a number that does not fit.
const EXACT: f64 = 9_223_372_036_854_775_808.0;

/// An integer that may be written as a float without a fraction.
#[derive(Deserialize)]
#[serde(try_from = "Number", bound = "T: TryFrom<i128>")]
pub(crate) struct LenientInt<T>(pub(crate) T);

impl<T: TryFrom<i128>> TryFrom<Number> for LenientInt<T> {
    type Error = String;

    fn try_from(number: Number) -> Result<Self, String> {
        let integer = match (number.as_i128(), number.as_f64()) {
            (Some(integer), _) => Some(integer),
            (None, Some(float)) if float.fract() == 0.0 && float.abs() < EXACT => Some(float as i128),
            _ => None,
        };
        let integer = integer.and_then(|integer| T::try_from(integer).ok());
        integer.map(Self).ok_or_else(|| format!("`{number}` is no whole number that fits here"))
    }
}

/// Reads an integer.
pub(crate) fn number<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: TryFrom<i128>,
    D: Deserializer<'de>,
{
    let number = Number::deserialize(deserializer)?;
    LenientInt::try_from(number).map(|LenientInt(value)| value).map_err(de::Error::custom)
}

/// Reads an integer or `null`.
pub fn optional<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: TryFrom<i128>,
    D: Deserializer<'de>,
{
    Ok(Option::<LenientInt<T>>::deserialize(deserializer)?.map(|LenientInt(value)| value))
}

/// Reads an integer; `null` becomes 0.
pub(crate) fn number_or_null<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: TryFrom<i128> + Default,
    D: Deserializer<'de>,
{
    optional(deserializer).map(Option::unwrap_or_default)
}

/// Reads a map from names to integers.
pub(crate) fn by_name<'de, T, D>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    T: TryFrom<i128>,
    D: Deserializer<'de>,
{
    let map = BTreeMap::<String, LenientInt<T>>::deserialize(deserializer)?;
    Ok(map.into_iter().map(|(name, LenientInt(value))| (name, value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_may_be_written_as_a_float() {
        let read =
            |text: &str| serde_json::from_str::<LenientInt<u64>>(text).ok().map(|LenientInt(value)| value);
        assert_eq!(read("5"), Some(5));
        assert_eq!(read("5.0"), Some(5));
        assert_eq!(read("18446744073709551615"), Some(u64::MAX));
        for wrong in ["-1", "5.5", "18446744073709551616", "1e300", "\"5\"", "null"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
