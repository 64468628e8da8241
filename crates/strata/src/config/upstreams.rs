//! The setting `upstream`: the address of one server, or tables `[[upstream]]` of several, each for some models.

use std::time::Duration;

use serde::Deserialize;
use strata_core::{Error, Result};
use strata_server::{
    Authorities, ModelPattern, ProxyError, ProxySettings, Secret, Transport, UpstreamApi, UpstreamSettings,
};
use toml::Value;

use super::slots::{Slot, hidden, optional};
use super::sources::variable;

const ACCEPTS: &str = "the address of an OpenAI-compatible server, as in `https://api.openai.com/v1`, or tables `[[upstream]]` in the configuration file";

/// The pause doubles with each attempt, so more of them would take longer than clients wait.
const MAX_RETRIES: u32 = 8;

/// One table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UpstreamTable {
    url: String,
    /// The models that it serves; without it, all that no other one does.
    r#match: Option<OneOrMany>,
    #[serde(default)]
    dialect: Dialect,
    key: Option<String>,
    key_env: Option<String>,
    key_file: Option<String>,
    timeout_secs: Option<u32>,
    #[serde(default)]
    retries: u32,
    proxy: Option<String>,
    ca_file: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Dialect {
    #[default]
    OpenAi,
    Anthropic,
    Azure,
    Ollama,
}

/// The field of the setting.
pub(super) fn upstreams(proxy: &mut ProxySettings) -> Slot<'_> {
    Slot::new(String::new(), ACCEPTS.to_owned(), move |value| {
        match value {
            Value::Array(tables) => {
                let tables = tables.iter().map(|table| UpstreamTable::deserialize(table.clone()));
                let tables = tables
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(|error| Error::invalid(error.to_string()))?;
                proxy.upstreams = tables.into_iter().map(UpstreamTable::read).collect::<Result<_>>()?;
            }
            Value::String(text) if text.is_empty() => proxy.upstream = None,
            Value::String(text) => {
                let url = text.parse().map_err(|_| Error::invalid(format!("use {ACCEPTS}")))?;
                proxy.upstream = Some(url);
            }
            _ => return Err(Error::invalid(format!("use {ACCEPTS}"))),
        }
        Ok(())
    })
}

/// The HTTP proxy in front of the one upstream. It is hidden, because it may hold a password.
pub(super) fn upstream_proxy(transport: &mut Transport) -> Slot<'_> {
    let accepts =
        "the address of an HTTP proxy, as in `http://proxy.example:3128`, also with `USER:PASSWORD@`";
    hidden(optional(&mut transport.proxy, "", accepts, |text| text.parse().ok()))
}

/// The certificate authorities of the one upstream.
pub(super) fn upstream_ca_file(transport: &mut Transport) -> Slot<'_> {
    Slot::new(String::new(), "a PEM file".to_owned(), move |value| {
        let path = value.as_str().ok_or_else(|| Error::invalid("use the path of a PEM file"))?;
        transport.authorities = if path.is_empty() { Authorities::default() } else { authorities(path)? };
        Ok(())
    })
}

/// The certificates of a file.
fn authorities(path: &str) -> Result<Authorities> {
    let pem = std::fs::read(path).map_err(|error| {
        Error::invalid(format!("the certificates in `{path}` cannot be read ({error}); name a PEM file"))
    })?;
    Authorities::from_pem(&pem)
        .map_err(|why| Error::invalid(format!("the file `{path}` is no PEM file with certificates: {why}")))
}

impl UpstreamTable {
    fn read(self) -> Result<UpstreamSettings> {
        let key = self.read_key()?;
        let models = match self.r#match {
            None => vec!["*".to_owned()],
            Some(OneOrMany::One(model)) => vec![model],
            Some(OneOrMany::Many(models)) => models,
        };
        if models.is_empty() || models.iter().any(String::is_empty) {
            return Err(Error::invalid(
                "`match` names no model; write one as in `claude-*`, or leave it out",
            ));
        }
        let timeout = match self.timeout_secs {
            Some(0) => return Err(Error::invalid("`timeout_secs` is 0; use at least 1")),
            seconds => seconds.map(|seconds| Duration::from_secs(seconds.into())),
        };
        let api = match self.dialect {
            Dialect::OpenAi => UpstreamApi::OpenAi,
            Dialect::Anthropic => UpstreamApi::Anthropic,
            Dialect::Azure => UpstreamApi::Azure,
            Dialect::Ollama => UpstreamApi::Ollama,
        };
        let models = models.into_iter().map(ModelPattern::new).collect();
        let proxy = self.proxy.filter(|proxy| !proxy.is_empty());
        let proxy = proxy.map(|proxy| proxy.parse()).transpose();
        let proxy =
            proxy.map_err(|error: ProxyError| Error::invalid(format!("`proxy` is wrong; {error}")))?;
        let authorities = self.ca_file.as_deref().map_or_else(|| Ok(Authorities::default()), authorities)?;
        let transport = Transport { proxy, authorities };
        if self.retries > MAX_RETRIES {
            return Err(Error::invalid(format!(
                "`retries` is `{}`; use at most {MAX_RETRIES}",
                self.retries
            )));
        }
        let (url, retries) = (self.url.parse()?, self.retries);
        Ok(UpstreamSettings { models, url, api, key, timeout, transport, retries })
    }

    fn read_key(&self) -> Result<Option<Secret>> {
        let url = &self.url;
        match (&self.key, &self.key_env, &self.key_file) {
            (None, None, None) => Ok(None),
            (Some(key), None, None) => Ok(Some(Secret::new(key.as_str()))),
            (None, Some(name), None) => match variable(name) {
                Some(key) => Ok(Some(Secret::new(key))),
                None => Err(Error::invalid(format!(
                    "the variable `{name}`, the key of `{url}`, is not set; set it, or leave `key_env` out"
                ))),
            },
            (None, None, Some(path)) => match std::fs::read_to_string(path) {
                Ok(key) if !key.trim().is_empty() => Ok(Some(Secret::new(key.trim()))),
                Ok(_) => Err(Error::invalid(format!("the file `{path}`, the key of `{url}`, is empty"))),
                Err(error) => Err(Error::invalid(format!(
                    "the file `{path}`, the key of `{url}`, cannot be read ({error}); correct `key_file`"
                ))),
            },
            _ => Err(Error::invalid(format!(
                "`{url}` has several keys; use one of `key`, `key_env` and `key_file`"
            ))),
        }
    }
}
