//! Parses a filter from JSON. Unknown input is an error that names it, and is never skipped: a lost condition would
//! return items that the caller wanted to exclude.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::{Comparison, Field, Filter, Moment, Test};
use strata_core::error::{Error, Result, shown};

/// The deepest nesting of conditions.
const MAX_DEPTH: usize = 8;

/// The most conditions in one filter, and the most values in one list.
const MAX_CONDITIONS: usize = 200;
const MAX_VALUES: usize = 1_000;

/// The longest name of a field, in characters.
const MAX_NAME_CHARS: usize = 256;

impl Filter {
    /// Parses a filter.
    pub fn from_json(filter: &Map<String, Value>) -> Result<Self> {
        let mut parser = Parser { conditions: 0 };
        parser.object(filter, "", MAX_DEPTH)
    }
}

impl std::str::FromStr for Filter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let filter: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
            Error::invalid(format!(
                "the filter is not a JSON object ({error}); write it as `{{\"category\": \"travel\"}}`"
            ))
        })?;
        Self::from_json(&filter)
    }
}

struct Parser {
    conditions: usize,
}

impl Parser {
    /// Parses an object, all of whose conditions must hold. `prefix` is set inside `metadata`.
    fn object(&mut self, object: &Map<String, Value>, prefix: &str, depth: usize) -> Result<Filter> {
        if depth == 0 {
            return Err(Error::invalid(format!(
                "the filter has more than {MAX_DEPTH} levels; make it flatter"
            )));
        }
        let mut filters = Vec::with_capacity(object.len());
        for (name, value) in object {
            filters.push(match name.as_str() {
                "AND" => Filter::All(self.list(name, value, prefix, depth)?),
                "OR" => Filter::Any(self.list(name, value, prefix, depth)?),
                // None of the listed conditions may hold, as in mem0.
                "NOT" => Filter::Not(Box::new(Filter::Any(self.list(name, value, prefix, depth)?))),
                "metadata" if prefix.is_empty() && value.is_object() => {
                    self.object(value.as_object().unwrap_or(&Map::new()), "metadata.", depth - 1)?
                }
                _ => self.field(&format!("{prefix}{name}"), value)?,
            });
        }
        Ok(match filters.len() {
            1 => filters.remove(0),
            _ => Filter::All(filters),
        })
    }

    fn list(&mut self, name: &str, value: &Value, prefix: &str, depth: usize) -> Result<Vec<Filter>> {
        let wrong = || {
            Error::invalid(format!(
                "`{name}` takes a list of conditions; write it as `{{\"{name}\": [{{\"category\": \"travel\"}}]}}`"
            ))
        };
        let objects: Vec<&Map<String, Value>> = match value {
            Value::Array(list) => {
                list.iter().map(Value::as_object).collect::<Option<_>>().ok_or_else(wrong)?
            }
            Value::Object(object) if name == "NOT" => vec![object],
            _ => return Err(wrong()),
        };
        if objects.is_empty() && name != "AND" {
            return Err(wrong());
        }
        objects.into_iter().map(|object| self.object(object, prefix, depth - 1)).collect()
    }

    fn field(&mut self, name: &str, value: &Value) -> Result<Filter> {
        let field = field_named(name)?;
        let conditions: Vec<(&str, &Value)> = match value {
            Value::Object(operators) if !operators.is_empty() => {
                operators.iter().map(|(operator, value)| (operator.as_str(), value)).collect()
            }
            Value::Object(_) => {
                return Err(Error::invalid(format!(
                    "`{name}` has an empty condition; give a value, or an operator with one"
                )));
            }
            Value::String(text) if text == "*" => vec![("*", value)],
            Value::Array(_) => vec![("in", value)],
            value => vec![("eq", value)],
        };
        let mut filters = Vec::with_capacity(conditions.len());
        for (operator, value) in conditions {
            self.conditions += 1;
            if self.conditions > MAX_CONDITIONS {
                return Err(Error::invalid(format!(
                    "the filter has more than {MAX_CONDITIONS} conditions; use `in` with a list"
                )));
            }
            filters.push(condition(name, &field, operator, value)?);
        }
        Ok(match filters.len() {
            1 => filters.remove(0),
            _ => Filter::All(filters),
        })
    }
}

fn field_named(name: &str) -> Result<Field> {
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS {
        return Err(Error::invalid(format!(
            "a field of the filter has no name or one of more than {MAX_NAME_CHARS} characters"
        )));
    }
    if let Some(name) = name.strip_prefix("metadata.") {
        return Ok(Field::Metadata(name.to_owned()));
    }
    Ok(match name {
        "user_id" => Field::User,
        "agent_id" => Field::Agent,
        "run_id" | "session_id" => Field::Session,
        "id" | "memory_id" => Field::Id,
        "memory" | "text" => Field::Text,
        "kind" => Field::Kind,
        "role" => Field::Role,
        "confidence" => Field::Confidence,
        "created_at" => Field::Time(Moment::Created),
        "updated_at" => Field::Time(Moment::Updated),
        "valid_from" => Field::Time(Moment::ValidFrom),
        "valid_to" => Field::Time(Moment::ValidTo),
        name => Field::Metadata(name.to_owned()),
    })
}

fn condition(name: &str, field: &Field, operator: &str, value: &Value) -> Result<Filter> {
    let test = match (operator, operator.parse().ok()) {
        (_, Some(comparison)) => compares(name, field, operator, comparison, value)?,
        ("*", _) => Test::Exists,
        ("eq", _) if *value == "*" => Test::Exists,
        ("eq" | "ne", _) => Test::Is(value.clone()),
        ("in" | "nin", _) => Test::OneOf(values(name, operator, value)?),
        ("contains", _) => Test::Contains(text(name, operator, value)?.to_owned()),
        ("icontains", _) => Test::ContainsIgnoringCase(text(name, operator, value)?.to_lowercase()),
        _ => {
            return Err(Error::invalid(format!(
                "`{name}` has the unknown operator `{}`; use eq, ne, in, nin, gt, gte, lt, lte, contains or icontains",
                shown(operator)
            )));
        }
    };
    let filter = match (field, &test, moment(value)) {
        // The same time can be written in several ways, so it is compared as a time.
        (Field::Time(_), Test::Is(_), Some(moment)) => {
            let bounds = [Comparison::GreaterOrEqual, Comparison::LessOrEqual];
            Filter::All(bounds.map(|at| Filter::Field(field.clone(), Test::TimeCompares(at, moment))).into())
        }
        _ => Filter::Field(field.clone(), test),
    };
    Ok(if matches!(operator, "ne" | "nin") { Filter::Not(Box::new(filter)) } else { filter })
}

fn compares(
    name: &str,
    field: &Field,
    operator: &str,
    comparison: Comparison,
    value: &Value,
) -> Result<Test> {
    if matches!(field, Field::Time(_)) {
        let moment = moment(value).ok_or_else(|| {
            Error::invalid(format!(
                "`{name}` is compared with `{}`; give a time as `2026-01-31` or `2026-01-31T12:00:00Z`",
                shown(value)
            ))
        })?;
        return Ok(Test::TimeCompares(comparison, moment));
    }
    if value.is_number() || value.is_string() {
        return Ok(Test::Compares(comparison, value.clone()));
    }
    Err(Error::invalid(format!(
        "`{name}` has `{operator}` with `{}`; it compares with a number or a text",
        shown(value)
    )))
}

fn values(name: &str, operator: &str, value: &Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(values) if values.len() <= MAX_VALUES => Ok(values.clone()),
        Value::Array(values) => Err(Error::invalid(format!(
            "`{name}` has `{operator}` with {} values; the most is {MAX_VALUES}",
            values.len()
        ))),
        _ => Err(Error::invalid(format!(
            "`{name}` has `{operator}` with `{}`; it takes a list, as in `{{\"{operator}\": [\"a\", \"b\"]}}`",
            shown(value)
        ))),
    }
}

fn text<'a>(name: &str, operator: &str, value: &'a Value) -> Result<&'a str> {
    value.as_str().ok_or_else(|| {
        Error::invalid(format!("`{name}` has `{operator}` with `{}`; it takes a text", shown(value)))
    })
}

/// Parses a time: RFC 3339, a date or a time in UTC, or seconds since 1970.
fn moment(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => {
            let local = |text: &str| -> Option<Timestamp> {
                let moment = text.parse::<DateTime>().or_else(|_| text.parse::<Date>().map(DateTime::from));
                moment.ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
            };
            text.parse().ok().or_else(|| local(text))
        }
        Value::Number(number) => {
            let micros = number.as_f64()? * 1e6;
            (micros.abs() < 1e18).then(|| Timestamp::from_microsecond(micros as i64).ok()).flatten()
        }
        _ => None,
    }
}
