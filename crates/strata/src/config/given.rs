//! The values that the sources give: those of the configuration file, the environment and the command line, by setting.

use std::collections::BTreeMap;
use std::path::Path;

use strata_core::{Error, Result};
use toml::{Table, Value};

use super::slots::{shortened, shown};
use super::sources::{Flag, PREFIX, Sources};
use super::table::{Entry, entries, nearest};

/// The origin of a value that no source gives.
pub(super) const DEFAULT: &str = "default";

/// Former names of settings, which are still understood.
const FORMER_NAMES: [(&str, &str); 1] = [("reranker", "recall.rerank")];

/// A value and the flag, variable or file that it comes from.
pub(super) struct Given {
    pub(super) value: Value,
    pub(super) origin: String,
}

/// The values by the names of their settings.
pub(super) type Values = BTreeMap<&'static str, Given>;

impl Given {
    /// The error for a value that a setting does not accept; `shown` is the value as it may be printed.
    pub(super) fn refused(&self, entry: &Entry, shown: &str, advice: &Error) -> Error {
        let value = match (entry.name, shown) {
            // The address of a database server may hold a password.
            ("store" | "postgres.replica", _) | (_, "") => String::new(),
            _ => format!(" `{}`", shortened(shown)),
        };
        let (name, origin, advice) = (entry.name, &self.origin, advice.message());
        Error::invalid(format!("setting `{name}` has a wrong value{value}, from {origin}; {advice}"))
    }
}

/// Every value that a source gives; flags win over variables, and those over the file.
pub(super) fn gather(sources: &Sources) -> Result<Values> {
    let mut values = match &sources.file {
        Some(file) => read_file(file)?,
        None => Vec::new(),
    };
    for (variable, value) in &sources.environment {
        let known = entries().find(|entry| entry.variable().eq_ignore_ascii_case(variable));
        let rest = || variable.strip_prefix(PREFIX).unwrap_or(variable).to_lowercase();
        let name = known.map_or_else(rest, |entry| entry.name.to_owned());
        values.push((name, given(value.as_str(), variable)));
    }
    for Flag { name, key, value } in &sources.flags {
        values.push((key.clone(), given(value.as_str(), name)));
    }
    with_default_store(known(values)?, sources)
}

fn given(value: impl Into<Value>, origin: &str) -> Given {
    Given { value: value.into(), origin: origin.to_owned() }
}

/// The values of a file; a table that holds settings is taken apart.
fn read_file(file: &Path) -> Result<Vec<(String, Given)>> {
    let origin = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| {
        Error::invalid(format!("configuration file `{origin}` cannot be read")).with_source(error)
    })?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        Error::invalid(format!("configuration file `{origin}` is no TOML: {}", error.to_string().trim_end()))
    })?;
    let mut values = Vec::new();
    for (name, value) in table {
        let prefix = format!("{name}.");
        match value {
            Value::Table(inner) if entries().any(|entry| entry.name.starts_with(&prefix)) => values.extend(
                inner.into_iter().map(|(key, value)| (format!("{prefix}{key}"), given(value, &origin))),
            ),
            value => values.push((name, given(value, &origin))),
        }
    }
    Ok(values)
}

/// The last value of each setting. All unknown settings are refused at once.
fn known(values: Vec<(String, Given)>) -> Result<Values> {
    let mut known = BTreeMap::new();
    let mut unknown = Vec::new();
    for (name, value) in values {
        let former = FORMER_NAMES.iter().find(|(former, _)| *former == name);
        let name = former.map_or(name, |(_, now)| (*now).to_owned());
        match entries().find(|entry| entry.name == name) {
            Some(entry) => drop(known.insert(entry.name, value)),
            None => unknown.push(is_unknown(&name, &value.origin)),
        }
    }
    if unknown.is_empty() { Ok(known) } else { Err(Error::invalid(unknown.join("\n"))) }
}

fn is_unknown(name: &str, origin: &str) -> String {
    let advice = match nearest(name) {
        Some(entry) if origin.starts_with(PREFIX) => format!("did you mean `{}`?", entry.variable()),
        Some(entry) => format!("did you mean `{}`?", entry.name),
        None => "`strata config` lists all settings".to_owned(),
    };
    format!("setting `{}`, from {origin}, is unknown; {advice}", shortened(name))
}

/// The default store is a file in the data directory, whichever source names that.
fn with_default_store(mut values: Values, sources: &Sources) -> Result<Values> {
    if let Some(directory) = &sources.data_dir {
        let default = || given(directory.to_string_lossy().as_ref(), DEFAULT);
        values.entry("data_dir").or_insert_with(default);
    }
    if !values.contains_key("store")
        && let Some(path) = values.get("memory_path")
    {
        let store = given(format!("vault:{}", shown(&path.value)), "`memory_path`");
        values.insert("store", store);
    }
    if !values.contains_key("store") {
        let advice = "no home directory was found for the data; set `--data-dir` or `--store`";
        let directory = values.get("data_dir").ok_or_else(|| Error::invalid(advice))?;
        let file = Path::new(&shown(&directory.value)).join("strata.db");
        let is_default = directory.origin == DEFAULT;
        let origin = if is_default { DEFAULT } else { "default, in `data_dir`" };
        values.insert("store", given(format!("sqlite:{}", file.display()), origin));
    }
    Ok(values)
}
