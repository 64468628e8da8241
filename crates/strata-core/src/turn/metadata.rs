//! The metadata that clients attach to turns and memories: a JSON object that Strata stores and returns, and never acts
//! on.

use std::fmt;
use std::ops::Deref;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A client's JSON object, with the text that the client sent.
///
/// The text is stored and returned, so the order of keys and numbers that a float cannot represent come back as they
/// were sent. White space between values is removed, because some stores keep an object on one line. The parsed fields
/// are for reading, and two objects with the same fields are equal.
#[derive(Clone, Default)]
pub struct Metadata {
    text: Box<str>,
    fields: Map<String, Value>,
}

impl Metadata {
    /// An empty object.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses the text of a JSON object. A number that is too large even for a float is an error.
    pub fn from_text(text: &str) -> serde_json::Result<Self> {
        let fields: Map<String, Value> = serde_json::from_str(text)?;
        let text = if fields.is_empty() { Box::default() } else { without_white_space(text) };
        Ok(Self { text, fields })
    }

    /// The text of the object, without white space between values.
    pub fn as_text(&self) -> &str {
        if self.fields.is_empty() { "{}" } else { &self.text }
    }

    /// The fields.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// These fields with the fields of `other`, which replace fields of the same name.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        if self.is_empty() || other.is_empty() {
            return if other.is_empty() { self } else { other };
        }
        let mut fields = self.fields;
        fields.extend(other.fields);
        fields.into()
    }

    /// Adds a field, or replaces the one of that name.
    pub fn insert(&mut self, name: &str, value: Value) {
        let mut fields = std::mem::take(self).fields;
        fields.insert(name.to_owned(), value);
        *self = fields.into();
    }
}

impl Deref for Metadata {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.fields
    }
}

impl PartialEq for Metadata {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_text())
    }
}

impl From<Map<String, Value>> for Metadata {
    fn from(fields: Map<String, Value>) -> Self {
        let fields = Value::Object(fields);
        let text = fields.to_string().into();
        let Value::Object(fields) = fields else { return Self::default() };
        Self { text, fields }
    }
}

impl FromIterator<(String, Value)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(fields: I) -> Self {
        Map::from_iter(fields).into()
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(self.as_text()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_text(text.get()).map_err(|error| {
            // The position is relative to the beginning of the object; the outer parser knows the right one.
            let message = error.to_string();
            D::Error::custom(message.split(" at line ").next().unwrap_or_default())
        })
    }
}

/// The text of a valid JSON value without the white space between its parts.
fn without_white_space(json: &str) -> Box<str> {
    let mut kept = String::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for character in json.chars() {
        if in_string || !matches!(character, ' ' | '\t' | '\n' | '\r') {
            kept.push(character);
        }
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = in_string,
            '"' => in_string = !in_string,
            _ => {}
        }
    }
    kept.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_text_comes_back_as_it_was_sent() {
        let check = |sent: &str, text: &str| {
            let metadata: Metadata = serde_json::from_str(sent).unwrap();
            assert_eq!(metadata.as_text(), text);
            assert_eq!(serde_json::to_string(&metadata).unwrap(), text);
        };
        check(r#"{"z":1,"a":{"y":[],"b":2}}"#, r#"{"z":1,"a":{"y":[],"b":2}}"#);
        check(
            r#"{"n":[1.0,1e2,-0,123456789012345678901234567890]}"#,
            r#"{"n":[1.0,1e2,-0,123456789012345678901234567890]}"#,
        );
        check(
            "{ \"a b\" :\n\t\" \\\" \\\\\" , \"c\": \"\\u0041 {\" }\n",
            r#"{"a b":" \" \\","c":"\u0041 {"}"#,
        );
        check(" { } ", "{}");
        check(r#"{"a":1,"a":2}"#, r#"{"a":1,"a":2}"#);
    }

    #[test]
    fn no_object_and_a_number_beyond_a_float_are_refused() {
        let refused = |sent: &str, reason: &str| {
            let error = serde_json::from_str::<Metadata>(sent).unwrap_err().to_string();
            assert!(error.starts_with(reason), "{sent}: {error}");
        };
        refused("[]", "invalid type: sequence, expected a map");
        refused("7", "invalid type: integer `7`, expected a map");
        refused(r#"{"a": 1e400}"#, "number out of range");
        refused(r#"{"a": 1"#, "EOF");
    }

    #[test]
    fn fields_are_read_added_and_merged() {
        let mut metadata = Metadata::from_text(r#"{"z": 1, "a": 2}"#).unwrap();
        assert_eq!((metadata["z"].clone(), metadata.len(), metadata.get("b")), (json!(1), 2, None));
        let other = Metadata::from_iter([("a".to_owned(), json!(3))]);
        assert_eq!(metadata.clone().merged(Metadata::new()).as_text(), r#"{"z":1,"a":2}"#);
        assert_eq!(metadata.clone().merged(other.clone()), Metadata::from_text(r#"{"a":3,"z":1}"#).unwrap());
        assert_eq!(Metadata::new().merged(other.clone()), other);
        metadata.insert("b", json!(null));
        assert_eq!(metadata.as_text(), r#"{"a":2,"b":null,"z":1}"#);
    }

    #[test]
    fn it_passes_through_a_json_value() {
        let metadata = Metadata::from_text(r#"{"b": 1, "a": [2]}"#).unwrap();
        let value = serde_json::to_value(&metadata).unwrap();
        assert_eq!(value, json!({"a": [2], "b": 1}));
        assert_eq!(serde_json::from_value::<Metadata>(value).unwrap(), metadata);
    }

    proptest! {
        #[test]
        fn leaving_out_white_space_changes_no_value(text in r#"[ \n\\"a-c{}:,]{0,12}"#, name in ".{0,6}") {
            let fields = Map::from_iter([(name, json!([{"text": text}, 1.5, null]))]);
            let pretty = serde_json::to_string_pretty(&fields).unwrap();
            let metadata = Metadata::from_text(&pretty).unwrap();
            prop_assert_eq!(metadata.as_text(), serde_json::to_string(&fields).unwrap());
            prop_assert_eq!(metadata.fields(), &fields);
        }
    }
}
