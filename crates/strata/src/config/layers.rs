//! The layers of configuration, the strongest last, and the values read through them.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};
use serde::Serialize;
use serde::de::DeserializeOwned;
use strata_core::{Error, Result};

use super::keys::{KEYS, defaults, nearest};
use super::sources::{PREFIX, Sources};

/// A setting, its effective value and where that came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its name.
    pub key: &'static str,
    /// Its value; empty where there is none.
    pub value: String,
    /// The flag, variable or file, or `default`.
    pub origin: String,
}

/// All layers, merged.
pub(super) struct Layers {
    figment: Figment,
}

impl Layers {
    pub(super) fn new(sources: &Sources) -> Result<Self> {
        let mut layers = default_layers(sources);
        if let Some(file) = &sources.file {
            layers.push(read_file(file)?);
        }
        for (variable, value) in &sources.environment {
            let name = variable.strip_prefix(PREFIX).unwrap_or(variable).to_lowercase();
            // A variable's name has no dots.
            let known = KEYS.iter().find(|key| key.name.replace('.', "_") == name);
            let key = known.map_or(name, |key| key.name.to_owned());
            layers.push(Layer::one(variable, key, value));
        }
        for flag in &sources.flags {
            layers.push(Layer::one(&flag.name, flag.key.clone(), &flag.value));
        }
        refuse_unknown(&layers)?;
        let mut figment = layers.into_iter().fold(Figment::new(), Figment::merge);
        // The default store lies in the data directory, whichever layer named that.
        if !figment.contains("store")
            && let Some(directory) = figment.find_value("data_dir").ok().as_ref().and_then(Value::as_str)
        {
            let url = format!("sqlite:{}", Path::new(directory).join("strata.db").display());
            let origin = match figment.find_metadata("data_dir") {
                Some(metadata) if metadata.name != DEFAULT => format!("{DEFAULT}, in `data_dir`"),
                _ => DEFAULT.to_owned(),
            };
            figment = figment.merge(Layer::one(&origin, "store".to_owned(), &url));
        }
        Ok(Self { figment })
    }

    /// The value of `key` as text, `None` where no layer has it.
    pub(super) fn given(&self, key: &str) -> Result<Option<String>> {
        let Ok(value) = self.figment.find_value(key) else { return Ok(None) };
        match value {
            Value::String(_, text) => Ok(Some(text)),
            Value::Bool(_, flag) => Ok(Some(flag.to_string())),
            Value::Num(_, number) => Ok(Some(match (number.to_f64(), number.to_i128()) {
                (Some(float), _) => float.to_string(),
                (None, Some(integer)) => integer.to_string(),
                (None, None) => number.to_u128().unwrap_or(u128::MAX).to_string(),
            })),
            _ => {
                Err(Error::invalid(format!("setting `{key}` in {} takes one plain value", self.origin(key))))
            }
        }
    }

    /// The texts of a list, which may also be one text with commas between them.
    pub(super) fn list(&self, key: &str) -> Result<Vec<String>> {
        if let Ok(list) = self.figment.extract_inner::<Vec<String>>(key) {
            return Ok(list);
        }
        let text = self.given(key)?.unwrap_or_default();
        Ok(text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect())
    }

    /// The tables of a list, `None` where the value is no list.
    pub(super) fn tables<T: DeserializeOwned>(&self, key: &str) -> Result<Option<Vec<T>>> {
        match self.figment.find_value(key) {
            Ok(Value::Array(..)) => self.figment.extract_inner(key).map(Some).map_err(|error| {
                Error::invalid(format!("setting `{key}`, from {}, is wrong: {error}", self.origin(key)))
            }),
            _ => Ok(None),
        }
    }

    /// The value of `key` as a person reads it: of a list, its texts or the names of its tables.
    fn shown(&self, key: &str) -> Result<String> {
        let Ok(Value::Array(_, list)) = self.figment.find_value(key) else {
            return Ok(self.given(key)?.unwrap_or_default());
        };
        let names = list.iter().filter_map(|value| match value {
            Value::Dict(_, table) => table.get("name")?.as_str(),
            value => value.as_str(),
        });
        Ok(names.collect::<Vec<_>>().join(","))
    }

    /// The value of `key`, read by `parse`, whose error says what is possible.
    pub(super) fn parsed<T>(&self, key: &str, parse: impl FnOnce(&str) -> Result<T>) -> Result<T> {
        let Some(text) = self.given(key)? else {
            return Err(Error::invalid(match key {
                "store" => {
                    "no home directory was found for the data; set `--data-dir` or `--store`".to_owned()
                }
                _ => format!("setting `{key}` has no value; give it one"),
            }));
        };
        parse(&text).map_err(|error| self.wrong(key, &text, error.message()))
    }

    /// The number at `key`, from `least` to `most`.
    pub(super) fn number<T>(&self, key: &str, least: T, most: T) -> Result<T>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        self.parsed(key, |text| match text.parse::<T>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(Error::invalid(format!("use a number from {least} to {most}"))),
        })
    }

    /// All settings as they are in force.
    pub(super) fn settings(&self) -> Result<Vec<Setting>> {
        let setting = |key: &'static str| {
            let mut value = self.shown(key)?;
            // Settings are printed, and a key is nobody's business.
            if SECRETS.contains(&key) && !value.is_empty() {
                value = "(hidden)".to_owned();
            }
            Ok(Setting { key, value, origin: self.origin(key) })
        };
        KEYS.iter().map(|key| setting(key.name)).collect()
    }

    pub(super) fn origin(&self, key: &str) -> String {
        self.figment
            .find_metadata(key)
            .map_or_else(|| DEFAULT.to_owned(), |metadata| metadata.name.to_string())
    }

    fn wrong(&self, key: &str, text: &str, advice: &str) -> Error {
        let origin = self.origin(key);
        // The address of a database server may hold a password.
        let shown = match key {
            "store" => String::new(),
            _ => format!(" `{}`", text.chars().take(64).collect::<String>()),
        };
        Error::invalid(format!("setting `{key}` has a wrong value{shown}, from {origin}; {advice}"))
    }
}

/// Settings whose values are never shown.
const SECRETS: [&str; 3] = ["embedder_key", "openai_api_key", "upstream_key"];

/// What the origin of an untouched value is called.
const DEFAULT: &str = "default";

/// One layer: values of one origin.
struct Layer {
    origin: String,
    values: Dict,
}

impl Layer {
    fn one(origin: &str, key: String, value: &str) -> Self {
        let values = match key.split_once('.') {
            Some((table, key)) => {
                Dict::from([(table.to_owned(), Dict::from([(key.to_owned(), Value::from(value))]).into())])
            }
            None => Dict::from([(key, Value::from(value))]),
        };
        Self { origin: origin.to_owned(), values }
    }

    /// The names of its values; of a table that has settings, each with the table's name before it.
    fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for (name, value) in &self.values {
            let prefix = format!("{name}.");
            match value {
                Value::Dict(_, table) if KEYS.iter().any(|key| key.name.starts_with(&prefix)) => {
                    keys.extend(table.keys().map(|key| format!("{prefix}{key}")));
                }
                _ => keys.push(name.clone()),
            }
        }
        keys
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.clone())
    }

    fn data(&self) -> figment::Result<Map<Profile, Dict>> {
        Ok(Map::from([(Profile::Default, self.values.clone())]))
    }
}

fn default_layers(sources: &Sources) -> Vec<Layer> {
    let mut layers: Vec<Layer> =
        defaults().into_iter().map(|(key, value)| Layer::one(DEFAULT, key.to_owned(), &value)).collect();
    if let Some(directory) = &sources.data_dir {
        layers.push(Layer::one(DEFAULT, "data_dir".to_owned(), &directory.to_string_lossy()));
    }
    layers
}

fn read_file(file: &Path) -> Result<Layer> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| {
        Error::invalid(format!("configuration file `{shown}` cannot be read")).with_source(error)
    })?;
    let values = Toml::string(&text)
        .data()
        .map_err(|error| {
            let error = error.to_string();
            Error::invalid(format!("configuration file `{shown}` is no TOML: {}", error.trim_end()))
        })?
        .into_values()
        .flatten()
        .collect();
    Ok(Layer { origin: shown.to_string(), values })
}

/// Refuses keys that nobody reads, all of them at once.
fn refuse_unknown(layers: &[Layer]) -> Result<()> {
    let unknown: Vec<String> = layers
        .iter()
        .flat_map(|layer| layer.keys().into_iter().map(move |key| (layer, key)))
        .filter(|(_, name)| !KEYS.iter().any(|key| key.name == name.as_str()))
        .map(|(layer, name)| {
            let shown: String = name.chars().take(64).collect();
            let advice = match nearest(&name) {
                Some(key) if layer.origin.starts_with(PREFIX) => {
                    format!("did you mean `{PREFIX}{}`?", key.to_uppercase().replace('.', "_"))
                }
                Some(key) => format!("did you mean `{key}`?"),
                None => "`strata config` lists all settings".to_owned(),
            };
            format!("setting `{shown}`, from {}, is unknown; {advice}", layer.origin)
        })
        .collect();
    if unknown.is_empty() { Ok(()) } else { Err(Error::invalid(unknown.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::{Config, Flag, LogFormat, StoreUrl};
    use super::*;

    fn sources() -> Sources {
        Sources { data_dir: Some("/home/ada/.local/share/strata".into()), ..Sources::default() }
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[track_caller]
    fn refused(sources: &Sources) -> String {
        let error = Config::load(sources).unwrap_err();
        assert_eq!(error.kind(), strata_core::ErrorKind::Invalid);
        error.message().to_owned()
    }

    #[test]
    fn the_defaults_are_those_of_the_core() {
        let config = Config::load(&sources()).unwrap();
        assert_eq!(config.engine, strata_engine::Settings::default());
        assert_eq!(config.listen.to_string(), "127.0.0.1:8100");
        assert_eq!(config.log, None);
        assert_eq!(config.log_format, LogFormat::Text);
        assert_eq!(config.store, StoreUrl::Sqlite("/home/ada/.local/share/strata/strata.db".into()));
        assert_eq!(config.settings().len(), KEYS.len());
        assert!(config.settings().iter().all(|setting| setting.origin == "default"));
    }

    #[test]
    fn a_flag_wins_over_the_environment_and_that_over_the_file() {
        let file = file("default_top_k = 7\nmin_similarity = 0.5\nmin_query_len = 3\nlog = 'debug'\n");
        let mut sources = sources();
        sources.file = Some(file.path().to_owned());
        sources.environment =
            vec![("STRATA_DEFAULT_TOP_K".into(), "8".into()), ("STRATA_MIN_QUERY_LEN".into(), "4".into())];
        sources.flags = vec![Flag::new("default_top_k", "9")];
        let config = Config::load(&sources).unwrap();
        let recall = &config.engine.recall;
        assert_eq!((recall.default_top_k, recall.min_query_len, recall.min_similarity), (9, 4, 0.5));
        assert_eq!(config.log.as_deref(), Some("debug"));
        assert_eq!(config.origin("default_top_k"), "--default-top-k");
        assert_eq!(config.origin("min_query_len"), "STRATA_MIN_QUERY_LEN");
        assert_eq!(config.origin("min_similarity"), file.path().to_str().unwrap());
        assert_eq!(config.origin("listen"), "default");
    }

    #[test]
    fn the_data_directory_moves_the_default_store_only() {
        let mut sources = sources();
        sources.environment = vec![("STRATA_DATA_DIR".into(), "/data".into())];
        let config = Config::load(&sources).unwrap();
        assert_eq!(config.store, StoreUrl::Sqlite("/data/strata.db".into()));
        assert_eq!(config.origin("store"), "default, in `data_dir`");
        sources.flags = vec![Flag::new("store", "memory:")];
        assert_eq!(Config::load(&sources).unwrap().store, StoreUrl::Memory);
    }

    #[test]
    fn without_a_home_a_store_must_be_named() {
        let mut sources = Sources::default();
        assert!(refused(&sources).contains("--data-dir"));
        sources.flags = vec![Flag::new("store", "memory:")];
        assert!(Config::load(&sources).is_ok());
    }

    #[test]
    fn an_unknown_key_names_the_nearest_and_its_origin() {
        let file = file("max_turn_byte = 5\nlisten = '127.0.0.1:1'\n[server]\nport = 1\n");
        let mut sources = sources();
        sources.file = Some(file.path().to_owned());
        sources.environment = vec![("STRATA_STROE".into(), "x".into())];
        sources.flags = vec![Flag { name: "--setting".into(), key: "tokeniser".into(), value: "x".into() }];
        let message = refused(&sources);
        let lines: Vec<&str> = message.lines().collect();
        let path = file.path().display();
        assert_eq!(
            lines,
            [
                &format!("setting `max_turn_byte`, from {path}, is unknown; did you mean `max_turn_bytes`?"),
                &format!("setting `server`, from {path}, is unknown; `strata config` lists all settings"),
                "setting `stroe`, from STRATA_STROE, is unknown; did you mean `STRATA_STORE`?",
                "setting `tokeniser`, from --setting, is unknown; did you mean `tokenizer`?",
            ]
        );
    }

    #[test]
    fn a_wrong_value_names_its_origin_and_what_is_possible() {
        let check = |key: &str, value: &str, advice: &str| {
            let variable = format!("STRATA_{}", key.to_uppercase());
            let message =
                refused(&Sources { environment: vec![(variable.clone(), value.into())], ..sources() });
            let expected = format!("setting `{key}` has a wrong value `{value}`, from {variable}; {advice}");
            assert_eq!(message, expected);
        };
        check("max_turn_bytes", "lots", "use a number from 1 to 268435456");
        check("max_turn_bytes", "-1", "use a number from 1 to 268435456");
        check("default_top_k", "0", "use a number from 1 to 1000");
        check("default_top_k", "99999999999999999999", "use a number from 1 to 1000");
        check("min_similarity", "NaN", "use a number from 0 to 1");
        check("listen", "8100", "use an address with a port, as in `127.0.0.1:8100`");
        check("log_format", "xml", "use `text` or `json`");
        let message = refused(&Sources {
            environment: vec![("STRATA_STORE".into(), "postgres://a:secret@b/c".into())],
            ..sources()
        });
        assert!(
            message.contains("from STRATA_STORE") && message.contains("not in this version"),
            "{message}"
        );
        assert!(!message.contains("secret"), "{message}");
    }

    #[test]
    fn an_api_key_is_used_but_not_shown() {
        let environment = vec![("STRATA_EMBEDDER_KEY".into(), "sk-secret".into())];
        let config = Config::load(&Sources { environment, ..sources() }).unwrap();
        assert_eq!(config.models.embedder_key.as_deref(), Some("sk-secret"));
        let shown = config.settings().iter().find(|setting| setting.key == "embedder_key").unwrap();
        assert_eq!((shown.value.as_str(), shown.origin.as_str()), ("(hidden)", "STRATA_EMBEDDER_KEY"));
    }

    #[test]
    fn numbers_and_texts_of_a_file_are_both_read() {
        let file = file("max_turn_bytes = \"2048\"\nmin_similarity = 1\ndata_dir = \"2024\"\n");
        let config = Config::load(&Sources { file: Some(file.path().to_owned()), ..sources() }).unwrap();
        assert_eq!(config.engine.max_turn_bytes, 2048);
        assert_eq!(config.engine.recall.min_similarity, 1.0);
        assert_eq!(config.store, StoreUrl::Sqlite("2024/strata.db".into()));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let broken = file("listen = \n");
        let message = refused(&Sources { file: Some(broken.path().to_owned()), ..sources() });
        assert!(
            message.contains("is no TOML") && message.contains(broken.path().to_str().unwrap()),
            "{message}"
        );
        let list = file("listen = ['a']\n");
        let message = refused(&Sources { file: Some(list.path().to_owned()), ..sources() });
        assert!(message.contains("`listen`") && message.contains("one plain value"), "{message}");
        let message = refused(&Sources { file: Some("/nowhere/strata.toml".into()), ..sources() });
        assert!(message.contains("`/nowhere/strata.toml` cannot be read"), "{message}");
    }
}
