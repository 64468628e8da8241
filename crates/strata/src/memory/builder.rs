//! The options of a memory before it is opened.

use std::sync::Arc;

use strata_core::ports::{ChatModel, Embedder};
use strata_core::{Result, SessionId, UserId};

use super::Memory;
use crate::config::{Config, Flag, Sources, StoreUrl, platform_data_dir};
use crate::{engine, open_store};

/// Opens a [`Memory`]. Nothing is checked before [`MemoryBuilder::open`].
#[must_use = "a memory is opened by `open`"]
pub struct MemoryBuilder {
    store: String,
    user: Option<String>,
    session: Option<String>,
    instructions: Option<String>,
    model: Option<Arc<dyn ChatModel>>,
    embedder: Option<Arc<dyn Embedder>>,
    settings: Vec<(String, String)>,
}

impl MemoryBuilder {
    pub(super) fn new(store: String) -> Self {
        Self {
            store,
            user: None,
            session: None,
            instructions: None,
            model: None,
            embedder: None,
            settings: Vec::new(),
        }
    }

    /// The user that the handle is bound to. Defaults to the user `default`.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// The session that the handle is bound to. Defaults to the session `default`.
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// The chat model of an OpenAI-compatible server. Without a chat model, memory replies alone.
    pub fn model(self, url: impl Into<String>, model: impl Into<String>) -> Self {
        self.setting("upstream", url).setting("upstream_model", model)
    }

    /// The API key of that server.
    pub fn key(self, key: impl Into<String>) -> Self {
        self.setting("upstream_key", key)
    }

    /// A chat model that the program provides.
    pub fn chat_model(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.model = Some(model);
        self
    }

    /// The instructions for the model at the beginning of every chat.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// The embedder: `builtin`, `words`, `onnx:DIR` or `URL#MODEL`.
    pub fn embedder(self, embedder: impl Into<String>) -> Self {
        self.setting("embedder", embedder)
    }

    /// An embedder that the program provides.
    pub fn own_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// Any setting of `docs/configuration.md` by its name. If a setting is given twice, the last value applies.
    pub fn setting(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((key.into(), value.into()));
        self
    }

    /// Checks all options, opens the store and starts to learn in the background.
    pub async fn open(self) -> Result<Memory> {
        let Self { store, user, session, instructions, model, embedder, settings } = self;
        let flag = |(key, value)| Flag { name: "the setting".to_owned(), key, value };
        let mut flags: Vec<Flag> = settings.into_iter().map(flag).collect();
        flags.push(flag(("store".to_owned(), store_url(store))));
        let sources = Sources { flags, environment: Vec::new(), file: None, data_dir: platform_data_dir() };
        let config = Config::load(&sources)?;
        let user = user.map(UserId::new).transpose()?.unwrap_or_default();
        let session = session.map(SessionId::new).transpose()?.unwrap_or_default();
        let model = match model {
            Some(model) => Some(model),
            None => {
                let remote = config.chat_model()?;
                remote.map(|model| Arc::new(model) as Arc<dyn ChatModel>)
            }
        };
        let engine = engine(&config, open_store(&config.store).await?)?;
        let engine = match embedder {
            Some(embedder) => engine.with_embedder(embedder),
            None => engine,
        };
        Ok(Memory { user, session, ..Memory::start(engine, &config, model, instructions) })
    }
}

/// The address of a store; a plain path names a SQLite file.
fn store_url(store: String) -> String {
    let has_scheme = ["sqlite:", "memory:", "postgres:", "postgresql:", "vault:"];
    match has_scheme.iter().any(|scheme| store.starts_with(scheme)) || store.parse::<StoreUrl>().is_ok() {
        true => store,
        false => format!("sqlite:{store}"),
    }
}
