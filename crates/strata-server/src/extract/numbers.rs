//! Numbers and switches from queries and bodies.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde_json::Number;
use strata_core::store::Page;

use crate::error::ApiError;

/// The most entries of one list.
pub(crate) const MAX_LIMIT: u32 = 1_000;

/// The default number of entries of a list.
pub(crate) const DEFAULT_LIMIT: u32 = 100;

/// How many entries a query asks for.
pub(crate) fn limit(limit: &Option<String>) -> Result<u32, ApiError> {
    number("limit", limit, 1..=MAX_LIMIT, DEFAULT_LIMIT)
}

/// The range of a list that a query asks for.
pub(crate) fn page(limit: &Option<String>, offset: &Option<String>) -> Result<Page, ApiError> {
    // Stores count with signed 64-bit numbers.
    Ok(Page { limit: self::limit(limit)?, offset: number("offset", offset, 0..=i64::MAX as u64, 0)? })
}

/// A whole number from a query, within `range`; `default` if it is absent.
pub(crate) fn number<N>(
    name: &str,
    value: &Option<String>,
    range: RangeInclusive<N>,
    default: N,
) -> Result<N, ApiError>
where
    N: FromStr + PartialOrd + Display,
{
    let Some(text) = value else { return Ok(default) };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<N>() {
        Ok(number) if digits && range.contains(&number) => Ok(number),
        _ => Err(ApiError::invalid(format!(
            "`{name}` is `{}`; it is a whole number from {} to {}",
            text.chars().take(64).collect::<String>(),
            range.start(),
            range.end()
        ))),
    }
}

/// A switch from a query: `true` or `false`. Defaults to off.
pub(crate) fn switch(name: &str, value: &Option<String>) -> Result<bool, ApiError> {
    match value.as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(text) => Err(ApiError::invalid(format!(
            "`{name}` is `{}`; it is `true` or `false`",
            text.chars().take(64).collect::<String>()
        ))),
    }
}

/// An integer in any notation (`5`, `5.0`), from 1 to `most`.
pub(crate) fn count(name: &str, number: &Option<Number>, most: u32) -> Result<Option<u32>, ApiError> {
    let Some(number) = number else { return Ok(None) };
    let value = number.as_f64().unwrap_or_default();
    if value.fract() == 0.0 && (1.0..=f64::from(most)).contains(&value) {
        return Ok(Some(value as u32));
    }
    Err(ApiError::invalid(format!("`{name}` is `{number}`; it is a whole number from 1 to {most}")))
}

/// A number from 0 to 1.
pub(crate) fn share(name: &str, value: Option<f64>) -> Result<Option<f32>, ApiError> {
    match value {
        Some(value) if !(0.0..=1.0).contains(&value) => {
            Err(ApiError::invalid(format!("`{name}` is `{value}`; it goes from 0 to 1")))
        }
        value => Ok(value.map(|value| value as f32)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_switches_are_plain() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(number("limit", &None, 1..=10, 5).unwrap(), 5);
        assert_eq!(number("limit", &text("10"), 1..=10, 5).unwrap(), 10);
        for value in ["", "0", "11", "-1", "+1", "1.0", "1e1", " 1", "99999999999999999999999"] {
            assert!(number("limit", &text(value), 1u32..=10, 5).is_err(), "{value}");
        }
        assert!(switch("forget", &text("true")).unwrap());
        assert!(!switch("forget", &None).unwrap());
        assert!(switch("forget", &text("yes")).is_err());
    }
}
