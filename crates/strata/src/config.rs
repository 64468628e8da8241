//! Configuration: flags, then `STRATA_*`, then `strata.toml`, then defaults; each value knows where it came from.
//!
//! Nothing else in Strata reads the environment. An unknown key is an error that names the nearest known one, and an
//! error about a value names its origin. Start reading at [`Config::load`].

mod chat;
mod keys;
mod layers;
mod learning;
mod models;
mod prompts;
mod proxy;
mod reach;
mod sources;
mod store_url;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use strata_core::{Error, Result};
use strata_engine::prompt::PromptSettings;
use strata_engine::recall::{Budget, MAX_LIMIT, RecallSettings};
use strata_engine::{EmbedItems, Settings};
use strata_models::Tokenizer;
use strata_server::Reach;

pub use chat::Chat;
pub use keys::{KEYS, Key};
pub use layers::Setting;
pub use learning::{LearnModel, Learning};
pub use models::{EmbedderChoice, Models, STRATA_ENCODER};
pub use sources::{DEFAULT_FILE, Flag, Sources, editor};
pub use store_url::StoreUrl;

use layers::Layers;

/// The effective configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where things are kept.
    pub store: StoreUrl,
    /// Where the server listens.
    pub listen: SocketAddr,
    /// Limits of the use-cases, and how recall works.
    pub engine: Settings,
    /// How tokens are counted.
    pub tokenizer: Tokenizer,
    /// How prompts are made.
    pub prompts: PromptSettings,
    /// What makes vectors, and what judges candidates.
    pub models: Models,
    /// What learns.
    pub learning: Learning,
    /// What chats.
    pub chat: Chat,
    /// How long the row of a request is kept.
    pub requests_kept: Duration,
    /// How long the answer to a request with an idempotency key is kept.
    pub answers_kept: Duration,
    /// Limits and timeouts of the server.
    pub server: strata_server::Settings,
    /// Which log events are written, as `tracing` filters are written; `None` where nobody said.
    pub log: Option<String>,
    /// How log events are written.
    pub log_format: LogFormat,
    /// The configuration file that was read.
    pub file: Option<PathBuf>,
    settings: Vec<Setting>,
}

/// How log events are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// A line for a person.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

impl std::str::FromStr for LogFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(Error::invalid("use `text` or `json`")),
        }
    }
}

impl Config {
    /// Puts the layers together and checks every value.
    pub fn load(sources: &Sources) -> Result<Self> {
        let layers = Layers::new(sources)?;
        let recall = RecallSettings {
            default_top_k: layers.number("default_top_k", 1, MAX_LIMIT)?,
            min_similarity: layers.number("min_similarity", 0.0, 1.0)?,
            min_query_len: layers.number("min_query_len", 1, 1_000)?,
            score_threshold: layers.number("score_threshold", 0.0, 1.0)?,
            recency_weight: layers.number("recency_weight", 0.0, 1.0)?,
            mmr_lambda: layers.number("mmr_lambda", 0.0, 1.0)?,
            min_fts_hits: layers.number("min_fts_hits", 0, MAX_LIMIT)?,
            budget: Budget {
                max_tokens: layers.number("max_context_tokens", 1, 10_000_000)?,
                max_turns: layers.number("max_context_turns", 1, MAX_LIMIT)?,
                max_item_chars: layers.number("max_item_chars", 1, 10_000_000)?,
            },
            index_max_items: layers.number("index_max_items", 0, 100_000_000)?,
            index_bytes: layers.number("index_bytes", 0, usize::MAX)?,
            encoder_reads_chinese: layers.number("encoder_reads_chinese", false, true)?,
        };
        let engine = Settings {
            max_turn_bytes: layers.number("max_turn_bytes", 1, 256 * 1024 * 1024)?,
            max_turns_per_call: layers.number("max_turns_per_call", 1, 100_000)?,
            embed: layers.parsed("embed", parse_embed)?,
            recall,
            learn: learning::settings(&layers)?,
        };
        let seconds = |key, least| layers.number(key, least, 3_600).map(Duration::from_secs);
        let listen = layers.parsed("listen", parse_listen)?;
        let server = strata_server::Settings {
            max_body_bytes: layers.number("max_body_bytes", 1024, 1024 * 1024 * 1024)?,
            request_timeout: seconds("request_timeout_secs", 1)?,
            body_timeout: seconds("body_timeout_secs", 1)?,
            header_timeout: seconds("header_timeout_secs", 1)?,
            drain_timeout: seconds("drain_timeout_secs", 0)?,
            max_concurrent_requests: layers.number("max_concurrent_requests", 1, 65_536)?,
            max_connections: layers.number("max_connections", 1, 65_536)?,
            compaction: prompts::compaction(&layers)?,
            proxy: proxy::proxy(&layers)?,
            reach: if listen.ip().is_loopback() { Reach::Loopback } else { Reach::Network },
            allowed_hosts: reach::allowed_hosts(&layers)?,
            cors_origins: reach::cors_origins(&layers)?,
            ..strata_server::Settings::default()
        };
        Ok(Self {
            store: layers.parsed("store", StoreUrl::parse)?,
            listen,
            engine,
            tokenizer: layers.parsed("tokenizer", str::parse)?,
            prompts: prompts::prompts(&layers)?,
            models: Models::load(&layers)?,
            learning: Learning::load(&layers)?,
            chat: Chat::load(&layers)?,
            requests_kept: Duration::from_secs(86_400 * layers.number("requests_days", 1, 36_500)?),
            answers_kept: Duration::from_secs(86_400 * layers.number("idempotency_days", 1, 36_500)?),
            server,
            log: layers.given("log")?,
            log_format: layers.parsed("log_format", str::parse)?,
            file: sources.file.clone(),
            settings: layers.settings()?,
        })
    }

    /// Every setting with its effective value and where that came from, in the order of [`KEYS`].
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Where the value of `key` came from.
    pub fn origin(&self, key: &str) -> &str {
        self.settings.iter().find(|setting| setting.key == key).map_or("default", |setting| &setting.origin)
    }
}

fn parse_embed(name: &str) -> Result<EmbedItems> {
    match name {
        "auto" => Ok(EmbedItems::Auto),
        "derived" => Ok(EmbedItems::Derived),
        "all" => Ok(EmbedItems::All),
        _ => Err(Error::invalid("use `auto`, `derived` or `all`")),
    }
}

fn parse_listen(text: &str) -> Result<SocketAddr> {
    let address = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    address.parse().map_err(|_| Error::invalid("use an address with a port, as in `127.0.0.1:8100`"))
}

/// The platform's directory for Strata's data; `None` where the user has no home.
pub(crate) fn platform_data_dir() -> Option<PathBuf> {
    use etcetera::BaseStrategy;
    let strategy = etcetera::base_strategy::choose_native_strategy().ok()?;
    Some(strategy.data_dir().join("strata"))
}
