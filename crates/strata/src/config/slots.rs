//! The kinds of values that a setting can have: each function here makes the [`Slot`] of one kind.
//!
//! A slot borrows the setting's field in [`Config`](super::Config), so that one expression in the table says where the
//! default comes from and where a given value goes.

use std::fmt::Display;
use std::net::{Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use strata_core::{Error, Result};
use strata_engine::prompt::Profile;
use strata_server::Secret;
use toml::Value;

/// The maximum size of instructions for a model.
const MAX_INSTRUCTION_BYTES: usize = 1024 * 1024;

pub(super) const MILLISECOND: Duration = Duration::from_millis(1);
pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const DAY: Duration = Duration::from_secs(86_400);

/// The field of one setting: its default as text, the values that it accepts, and how one is stored.
pub(super) struct Slot<'a> {
    /// The value of the field before anything is stored, as text; empty for an unset one.
    pub(super) default: String,
    /// The accepted values, as error messages and the documentation name them.
    pub(super) accepts: String,
    /// Whether `strata config` hides the value.
    pub(super) is_secret: bool,
    store: Store<'a>,
}

/// Checks a value and stores it. The error says what to use instead.
type Store<'a> = Box<dyn FnOnce(&Value) -> Result<()> + 'a>;

impl<'a> Slot<'a> {
    pub(super) fn new(
        default: String,
        accepts: String,
        store: impl FnOnce(&Value) -> Result<()> + 'a,
    ) -> Self {
        Self { default, accepts, is_secret: false, store: Box::new(store) }
    }

    /// Checks a value and stores it in the field.
    pub(super) fn set(self, value: &Value) -> Result<()> {
        (self.store)(value)
    }
}

/// A field that `parse` reads from one text.
fn parsed<'a, T>(
    field: &'a mut T,
    show: impl FnOnce(&T) -> String,
    accepts: impl Into<String>,
    parse: impl FnOnce(&str) -> Option<T> + 'a,
) -> Slot<'a> {
    let accepts = accepts.into();
    let advice = format!("use {accepts}");
    Slot::new(show(field), accepts, move |value| {
        *field = parse(&plain(value)?).ok_or_else(|| Error::invalid(advice))?;
        Ok(())
    })
}

/// A type with a text form of its own, whose errors say what to use.
pub(super) fn typed<'a, T: FromStr<Err = Error> + Display>(field: &'a mut T, accepts: &str) -> Slot<'a> {
    Slot::new(field.to_string(), accepts.to_owned(), move |value| {
        *field = plain(value)?.parse()?;
        Ok(())
    })
}

/// A number in a range.
pub(super) fn number<T: Number>(field: &mut T, range: RangeInclusive<T>) -> Slot<'_> {
    parsed(field, T::to_string, numbers(&range), move |text| number_in(text, &range))
}

/// A duration, given as a number of `unit`s.
pub(super) fn duration(field: &mut Duration, unit: Duration, range: RangeInclusive<u32>) -> Slot<'_> {
    let show = |field: &Duration| (field.as_millis() / unit.as_millis()).to_string();
    parsed(field, show, numbers(&range), move |text| number_in(text, &range).map(|count| unit * count))
}

/// `true` or `false`.
pub(super) fn switch(field: &mut bool) -> Slot<'_> {
    choice(field, [("true", true), ("false", false)])
}

/// One of several names.
pub(super) fn choice<'a, T: Copy + PartialEq + 'a>(
    field: &'a mut T,
    names: impl IntoIterator<Item = (&'static str, T)>,
) -> Slot<'a> {
    let names: Vec<(&'static str, T)> = names.into_iter().collect();
    let known = names.clone();
    let show = move |field: &T| {
        known.iter().find(|(_, value)| value == field).map_or("", |(name, _)| name).to_owned()
    };
    let quoted = names.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let accepts = quoted.rsplit_once(", ").map_or(quoted.clone(), |(rest, last)| format!("{rest} or {last}"));
    parsed(field, show, accepts, move |text| Some(names.iter().find(|(name, _)| *name == text)?.1))
}

/// Any text.
pub(super) fn text(field: &mut String) -> Slot<'_> {
    parsed(field, String::clone, "text", |text| Some(text.to_owned()))
}

/// An address to listen on.
pub(super) fn address(field: &mut SocketAddr) -> Slot<'_> {
    let accepts = "an address with a port, as in `127.0.0.1:8100`";
    parsed(field, SocketAddr::to_string, accepts, |text| match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}").parse().ok(),
        None => text.parse().ok(),
    })
}

/// A value that is unset by default; the text `unset` stands for that.
pub(super) fn optional<'a, T>(
    field: &'a mut Option<T>,
    unset: &'static str,
    accepts: impl Into<String>,
    parse: impl FnOnce(&str) -> Option<T> + 'a,
) -> Slot<'a> {
    let parse = move |text: &str| if text == unset { Some(None) } else { parse(text).map(Some) };
    parsed(field, |_| unset.to_owned(), accepts, parse)
}

/// A number that is unset by default; the text `unset` stands for that.
pub(super) fn optional_number<'a, T: Number>(
    field: &'a mut Option<T>,
    unset: &'static str,
    range: RangeInclusive<T>,
) -> Slot<'a> {
    let accepts =
        if unset.is_empty() { numbers(&range) } else { format!("`{unset}` or {}", numbers(&range)) };
    optional(field, unset, accepts, move |text| number_in(text, &range))
}

/// A text or a path that is unset by default.
pub(super) fn optional_text<T: for<'t> From<&'t str>>(field: &mut Option<T>) -> Slot<'_> {
    optional(field, "", "text", |text| Some(text.into()))
}

/// An API key, which is never shown.
pub(super) fn secret(field: &mut Option<Secret>) -> Slot<'_> {
    Slot { is_secret: true, ..optional(field, "", "text", |text| Some(Secret::new(text))) }
}

/// A value that is never shown.
pub(super) fn hidden(slot: Slot<'_>) -> Slot<'_> {
    Slot { is_secret: true, ..slot }
}

/// The address of an HTTP endpoint.
pub(super) fn endpoint(field: &mut Option<String>) -> Slot<'_> {
    optional(field, "", "an address that begins with `https://` or `http://`", http_url)
}

pub(super) fn http_url(text: &str) -> Option<String> {
    (text.starts_with("http://") || text.starts_with("https://")).then(|| text.to_owned())
}

/// The folder of an ONNX model.
pub(super) fn onnx_folder(text: &str) -> Option<PathBuf> {
    text.strip_prefix("onnx:").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// Any names.
pub(super) fn names(field: &mut Vec<String>) -> Slot<'_> {
    list(field, "names", |_| true)
}

/// Host names, as the header `Host` has them: without a scheme and without a port.
pub(super) fn hosts(field: &mut Vec<String>) -> Slot<'_> {
    list(field, "names without a scheme or a port, as in `memory.example.com`", |host| {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let ipv6 = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        ipv6.map_or(host.bytes().all(is_name), |text| text.parse::<Ipv6Addr>().is_ok()) && !host.is_empty()
    })
}

/// Exact web origins. `*` is refused, because it would let any page read the answers.
pub(super) fn origins(field: &mut Vec<String>) -> Slot<'_> {
    let accepts = "a scheme and a name in lower case, without a path or `*`, as in `https://app.example.com`";
    list(field, accepts, |origin| {
        let is_name =
            |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase() || b".-_:[]".contains(&byte);
        let name = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        name.is_some_and(|name| !name.is_empty() && name.bytes().all(is_name))
    })
}

/// A list: an array of texts, or one text with commas between the entries.
fn list<'a>(field: &'a mut Vec<String>, accepts: &'static str, is_valid: fn(&str) -> bool) -> Slot<'a> {
    Slot::new(field.join(","), format!("{accepts}; with commas between"), move |value| {
        let entries = entries(value)?;
        if let Some(wrong) = entries.iter().find(|entry| !is_valid(entry)) {
            return Err(Error::invalid(format!("for the entry `{}`, use {accepts}", shortened(wrong))));
        }
        *field = entries;
        Ok(())
    })
}

fn entries(value: &Value) -> Result<Vec<String>> {
    if let Some(entries) = value.as_array() {
        let texts = entries.iter().map(|entry| entry.as_str().map(str::to_owned)).collect::<Option<_>>();
        return texts.ok_or_else(|| Error::invalid("use a list of texts"));
    }
    let text = plain(value)?;
    Ok(text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect())
}

/// Instructions for a model, given as they are or as `file:PATH`; `store` takes them.
pub(super) fn instructions<'a>(store: impl FnOnce(String) + 'a) -> Slot<'a> {
    Slot::new(String::new(), "text or `file:PATH`".to_owned(), move |value| {
        let mut text = plain(value)?;
        if let Some(path) = text.strip_prefix("file:") {
            text = std::fs::read_to_string(path).map_err(|error| {
                Error::invalid(format!("the file cannot be read ({error}); name one with `file:PATH`"))
            })?;
        }
        if text.trim().is_empty() || text.len() > MAX_INSTRUCTION_BYTES {
            return Err(Error::invalid(format!(
                "use instructions of 1 to {MAX_INSTRUCTION_BYTES} bytes, or leave the setting out for the built-in ones"
            )));
        }
        store(text);
        Ok(())
    })
}

/// Profiles: `auto` for all shipped ones, names of some of them, or tables of the configuration file.
pub(super) fn profiles(field: &mut Vec<Profile>) -> Slot<'_> {
    const ACCEPTS: &str = "`auto`, names of shipped profiles (`diagnostic`, `incident`, `support`, `coding`, `research`, `household`) with commas between them, or tables `[[prompt.profiles]]` in the configuration file";
    let names = field.iter().map(|profile| profile.name.as_str()).collect::<Vec<_>>().join(",");
    let default = if *field == Profile::shipped() { "auto".to_owned() } else { names };
    Slot::new(default, ACCEPTS.to_owned(), move |value| {
        *field = match value {
            Value::Array(_) => value.clone().try_into().map_err(|error| Error::invalid(error.to_string()))?,
            Value::String(name) if name == "auto" => Profile::shipped(),
            Value::String(names) => {
                let named = names.split(',').map(|name| Profile::named(name.trim())).collect::<Option<_>>();
                named.ok_or_else(|| Error::invalid(format!("use {ACCEPTS}")))?
            }
            _ => return Err(Error::invalid(format!("use {ACCEPTS}"))),
        };
        Ok(())
    })
}

/// A value as `strata config` shows it: of a list, its texts or the names or addresses of its tables.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float(number) => number.to_string(),
        Value::Array(list) => list.iter().map(shown).collect::<Vec<_>>().join(","),
        Value::Table(table) => table.get("name").or(table.get("url")).map(shown).unwrap_or_default(),
        Value::Integer(_) | Value::Boolean(_) | Value::Datetime(_) => value.to_string(),
    }
}

/// The beginning of a text, for an error message.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

fn plain(value: &Value) -> Result<String> {
    match value {
        Value::Array(_) | Value::Table(_) => Err(Error::invalid("use one plain value")),
        _ => Ok(shown(value)),
    }
}

pub(super) trait Number: FromStr + PartialOrd + Display + 'static {}
impl<T: FromStr + PartialOrd + Display + 'static> Number for T {}

fn number_in<T: Number>(text: &str, range: &RangeInclusive<T>) -> Option<T> {
    text.parse().ok().filter(|number| range.contains(number))
}

fn numbers<T: Number>(range: &RangeInclusive<T>) -> String {
    format!("a number from {} to {}", range.start(), range.end())
}
