//! The one check for NUL characters. PostgreSQL cannot keep them in text, so no store is given any.
//!
//! The check reads parsed values. In serialised JSON a NUL character and the six characters `\u0000` inside a string are
//! hard to tell apart.

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Text, or a JSON value with text in it.
pub trait MayHoldNul {
    /// Whether the value contains a NUL character.
    fn holds_nul(&self) -> bool;
}

impl MayHoldNul for str {
    fn holds_nul(&self) -> bool {
        self.contains('\0')
    }
}

impl MayHoldNul for Value {
    fn holds_nul(&self) -> bool {
        match self {
            Self::String(text) => text.holds_nul(),
            Self::Array(values) => values.iter().any(Self::holds_nul),
            Self::Object(fields) => fields.holds_nul(),
            Self::Null | Self::Bool(_) | Self::Number(_) => false,
        }
    }
}

impl MayHoldNul for Map<String, Value> {
    fn holds_nul(&self) -> bool {
        self.iter().any(|(name, value)| name.holds_nul() || value.holds_nul())
    }
}

/// Returns an error for a value that contains a NUL character; `what` names the value in the message.
pub fn check_nul(what: &str, value: &(impl MayHoldNul + ?Sized)) -> Result<()> {
    if value.holds_nul() {
        return Err(Error::invalid(format!("{what} holds a NUL character; remove it")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_nul_is_found_wherever_it_is_and_its_escape_is_not_one() {
        for held in [json!("\0"), json!(["a", ["b\0"]]), json!({"a": {"b": "\0"}}), json!([{"a\0": 1}])] {
            let error = check_nul("`metadata`", &held).unwrap_err();
            assert_eq!(error.message(), "`metadata` holds a NUL character; remove it", "{held}");
        }
        for free in [json!(r"\u0000"), json!({r"\u0000": [r"a\u0000b", null, 0, true]}), json!("\u{1}")] {
            check_nul("`metadata`", &free).unwrap();
        }
    }
}
