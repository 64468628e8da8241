//! Configuration: flags, then `STRATA_*`, then `strata.toml`, then defaults; each value knows where it came from.
//!
//! Nothing else in Strata reads the environment. `table.rs` declares every setting, once; start reading there, then at
//! [`Config::load`]. An unknown key is an error that names the nearest known one, and an error about a value names the value's
//! origin and the accepted values.

mod given;
mod learning;
mod models;
mod postgres;
mod slots;
mod sources;
mod store_url;
mod table;
#[cfg(test)]
mod tests;
mod upstreams;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use strata_core::{Error, Result, UserId};
use strata_engine::Settings;
use strata_engine::prompt::PromptSettings;
use strata_models::Tokenizer;
use strata_models::chat::{ChatOptions, OpenAiChat};
use strata_server::{Reach, Secret};

pub use learning::{LearnModel, Learning, ReaderChoice};
pub use models::{EmbedderChoice, Models, RerankChoice, STRATA_ENCODER};
pub use postgres::Postgres;
pub use sources::{DEFAULT_FILE, Flag, Sources, allows_colour, browser, editor};
pub use store_url::{StoreUrl, VaultFolder};
pub use table::reference;

/// The model that is asked for when no other is named; the sliding-window design names it.
const DEFAULT_MODEL: &str = "gpt-4.1-mini";

/// The endpoint of an `embedding_model` if no other is set.
const OPENAI: &str = "https://api.openai.com/v1";

/// How a vault is used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vault {
    /// The vault's folder, if `store` is not set.
    pub path: Option<PathBuf>,
    /// Whether changes of a person are followed while a server runs.
    pub watch: bool,
    /// Whether changes are committed to git.
    pub git: bool,
}

/// The effective configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where data is stored.
    pub store: StoreUrl,
    /// The user of commands that name none.
    pub user: UserId,
    /// How a PostgreSQL store is used.
    pub postgres: Postgres,
    /// How a vault is used.
    pub vault: Vault,
    /// The address that the server listens on.
    pub listen: SocketAddr,
    /// Limits of the use-cases, and how recall and learning work.
    pub engine: Settings,
    /// How tokens are counted.
    pub tokenizer: Tokenizer,
    /// How prompts are made.
    pub prompts: PromptSettings,
    /// The models that make vectors and rank candidates.
    pub models: Models,
    /// The source of memories.
    pub learning: Learning,
    /// The model that a chat asks the upstream for.
    pub upstream_model: String,
    /// How long the record of a request is kept.
    pub requests_kept: Duration,
    /// How long the answer to a request with an idempotency key is kept.
    pub answers_kept: Duration,
    /// Limits and timeouts of the server.
    pub server: strata_server::Settings,
    /// Which log events are written, as a `tracing` filter; `None` leaves it to the command.
    pub log: Option<String>,
    /// How log events are written.
    pub log_format: LogFormat,
    /// The configuration file that was read.
    pub file: Option<PathBuf>,
    settings: Vec<Setting>,
}

/// A setting, its effective value and where the value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// The name.
    pub key: &'static str,
    /// The value; empty for an unset setting.
    pub value: String,
    /// The flag, variable or file, or `default`.
    pub origin: String,
    /// The purpose of the setting, in one line.
    #[serde(skip)]
    pub about: &'static str,
}

/// How log events are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One line of text for each event.
    #[default]
    Text,
    /// One JSON object on a line for each event.
    Json,
}

impl Config {
    /// Reads every source, checks every value and fills in the defaults.
    pub fn load(sources: &Sources) -> Result<Self> {
        let values = given::gather(sources)?;
        let mut config = Self { file: sources.file.clone(), ..Self::defaults() };
        let mut settings = Vec::new();
        for entry in table::entries() {
            let slot = (entry.slot)(&mut config);
            let given = values.get(entry.name);
            let mut value = given.map_or_else(|| slot.default.clone(), |given| slots::shown(&given.value));
            if slot.is_secret && !value.is_empty() {
                value = "(hidden)".to_owned();
            }
            if entry.name == "store" {
                value = store_url::without_password(&value);
            }
            if let Some(given) = given {
                slot.set(&given.value).map_err(|error| given.refused(entry, &value, &error))?;
            }
            let origin = given.map_or(given::DEFAULT, |given| &given.origin).to_owned();
            settings.push(Setting { key: entry.name, value, origin, about: entry.about });
        }
        config.settings = settings;
        config.complete()
    }

    fn defaults() -> Self {
        Self {
            // Always replaced: a configuration without a store is refused, see `given.rs`.
            store: StoreUrl::Memory,
            user: UserId::default(),
            postgres: Postgres::default(),
            vault: Vault::default(),
            listen: SocketAddr::from(([127, 0, 0, 1], 8100)),
            engine: Settings::default(),
            tokenizer: Tokenizer::default(),
            prompts: PromptSettings::default(),
            models: Models::default(),
            learning: Learning::default(),
            upstream_model: DEFAULT_MODEL.to_owned(),
            requests_kept: 30 * slots::DAY,
            answers_kept: 7 * slots::DAY,
            server: strata_server::Settings::default(),
            log: None,
            log_format: LogFormat::default(),
            file: None,
            settings: Vec::new(),
        }
    }

    /// The settings of a trial with invented data at `store`: the defaults, on loopback, without another program's model. Only the
    /// port, the log and the choice of less work (`embedder = words`, `learn.reader = off`) are a person's own.
    pub fn on_its_own(&self, store: StoreUrl) -> Result<Self> {
        let mut config =
            Self { store, log: self.log.clone(), log_format: self.log_format, ..Self::defaults() };
        config.listen.set_port(self.listen.port());
        if self.models.embedder == EmbedderChoice::Words {
            config.models.embedder = EmbedderChoice::Words;
        }
        if self.learning.reader == ReaderChoice::Off {
            config.learning.reader = ReaderChoice::Off;
        }
        config.complete()
    }

    /// Derives what depends on several settings, and checks what several settings have to agree on.
    fn complete(mut self) -> Result<Self> {
        self.server.user = self.user.clone();
        self.server.reach = if self.listen.ip().is_loopback() { Reach::Loopback } else { Reach::Network };
        self.store = self.store_at(self.store.clone())?;
        self.use_embedding_model();
        self.engine.recall.rerank = self.models.rerank != RerankChoice::Off;
        let limits = &self.engine.compaction;
        if limits.keep_recent_history > limits.max_recent_history {
            return Err(Error::invalid(
                "`context.keep_recent_history` is more than `context.max_recent_history`; lower it, or raise the other",
            ));
        }
        Ok(self)
    }

    /// The store at `url` with the settings of this configuration.
    pub fn store_at(&self, url: StoreUrl) -> Result<StoreUrl> {
        match url {
            StoreUrl::Postgres(options) => {
                Ok(StoreUrl::Postgres(Box::new(self.postgres.options(&options.address)?)))
            }
            StoreUrl::Vault(VaultFolder { path, .. }) => {
                let max_memory_bytes = self.engine.limits.max_turn_bytes;
                let Vault { watch, git, .. } = self.vault;
                Ok(StoreUrl::Vault(VaultFolder { path, watch, git, max_memory_bytes }))
            }
            other => Ok(other),
        }
    }

    /// The embedder that the memory-proxy design's `embedding_model` names: a folder, or a model of the endpoint that learning
    /// uses. The setting `embedder` goes before it.
    fn use_embedding_model(&mut self) {
        let Some(model) = self.models.embedding_model.clone() else { return };
        if self.origin("embedder") != given::DEFAULT {
            return;
        }
        let base = || self.learning.base_url.clone().unwrap_or_else(|| OPENAI.to_owned());
        self.models.embedder = match model.parse() {
            Ok(choice) => choice,
            Err(_) if std::path::Path::new(&model).is_dir() => EmbedderChoice::Onnx(model.into()),
            Err(_) => EmbedderChoice::Remote { url: base(), model },
        };
        if self.models.embedder_key.is_none() {
            self.models.embedder_key.clone_from(&self.learning.key);
        }
    }

    /// Every setting with its effective value and where that came from.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Where the value of `key` came from.
    pub fn origin(&self, key: &str) -> &str {
        self.settings
            .iter()
            .find(|setting| setting.key == key)
            .map_or(given::DEFAULT, |setting| &setting.origin)
    }

    /// The upstream's model, for chats; `None` without an upstream, where memory replies alone.
    pub fn chat_model(&self) -> Result<Option<OpenAiChat>> {
        let proxy = &self.server.proxy;
        let Some(upstream) = proxy.upstream_of(&self.upstream_model) else { return Ok(None) };
        let url = format!("{}/chat/completions", upstream.url);
        let timeout = upstream.timeout.unwrap_or(proxy.upstream_timeout);
        let options =
            ChatOptions { transport: upstream.transport, ..self.chat_options(upstream.key, timeout) };
        OpenAiChat::new(&url, &self.upstream_model, options).map(Some)
    }

    /// The model that learns; `None` for the rules.
    pub fn learn_model(&self) -> Result<Option<OpenAiChat>> {
        let LearnModel::Remote { url, model } = self.learning.model() else { return Ok(None) };
        let options = self.chat_options(self.learning.key.clone(), self.learning.timeout);
        OpenAiChat::new(&url, &model, options).map(Some)
    }

    fn chat_options(&self, key: Option<Secret>, timeout: Duration) -> ChatOptions {
        let key = key.map(|key| key.expose().to_owned());
        ChatOptions { key, timeout, ..ChatOptions::new(Arc::new(self.tokenizer)) }
    }
}

/// The platform's directory for Strata's data; `None` if the user has no home directory.
pub(crate) fn platform_data_dir() -> Option<PathBuf> {
    use etcetera::BaseStrategy;
    let strategy = etcetera::base_strategy::choose_native_strategy().ok()?;
    Some(strategy.data_dir().join("strata"))
}
