//! Whole numbers in documents, however they are written: many programs write `5` as `5.0`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};
use serde_json::Number;

/// Beyond this a float may stand for a neighbour that does not fit: the reader has rounded it.
const EXACT: f64 = 9_223_372_036_854_775_808.0;

/// A whole number.
#[derive(Deserialize)]
#[serde(try_from = "Number", bound = "T: TryFrom<i128>")]
pub(crate) struct Whole<T>(pub(crate) T);

impl<T: TryFrom<i128>> TryFrom<Number> for Whole<T> {
    type Error = String;

    fn try_from(number: Number) -> Result<Self, String> {
        let whole = match (number.as_i128(), number.as_f64()) {
            (Some(whole), _) => Some(whole),
            (None, Some(float)) if float.fract() == 0.0 && float.abs() < EXACT => Some(float as i128),
            _ => None,
        };
        let whole = whole.and_then(|whole| T::try_from(whole).ok());
        whole.map(Self).ok_or_else(|| format!("`{number}` is no whole number that fits here"))
    }
}

/// Reads a whole number.
pub(crate) fn number<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: TryFrom<i128>,
    D: Deserializer<'de>,
{
    let number = Number::deserialize(deserializer)?;
    Whole::try_from(number).map(|Whole(value)| value).map_err(de::Error::custom)
}

/// Reads a whole number, or nothing.
pub(crate) fn optional<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: TryFrom<i128>,
    D: Deserializer<'de>,
{
    Ok(Option::<Whole<T>>::deserialize(deserializer)?.map(|Whole(value)| value))
}

/// Reads a whole number; `null` is none, which is 0.
pub(crate) fn number_or_null<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: TryFrom<i128> + Default,
    D: Deserializer<'de>,
{
    optional(deserializer).map(Option::unwrap_or_default)
}

/// Reads whole numbers by name.
pub(crate) fn by_name<'de, T, D>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    T: TryFrom<i128>,
    D: Deserializer<'de>,
{
    let map = BTreeMap::<String, Whole<T>>::deserialize(deserializer)?;
    Ok(map.into_iter().map(|(name, Whole(value))| (name, value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_may_have_a_point() {
        let read = |text: &str| serde_json::from_str::<Whole<u64>>(text).ok().map(|Whole(value)| value);
        assert_eq!(read("5"), Some(5));
        assert_eq!(read("5.0"), Some(5));
        assert_eq!(read("18446744073709551615"), Some(u64::MAX));
        for wrong in ["-1", "5.5", "18446744073709551616", "1e300", "\"5\"", "null"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
