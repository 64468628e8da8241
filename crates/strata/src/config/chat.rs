//! Which model `strata chat` and [`Memory::chat`](crate::Memory::chat) talk to: the one behind the upstream.

use std::sync::Arc;
use std::time::Duration;

use strata_core::Result;
use strata_core::ports::TokenCounter;
use strata_models::chat::{ChatOptions, OpenAiChat};
use strata_server::UpstreamUrl;

use super::layers::Layers;
use super::learning::Key;

/// The model that a chat has its replies from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chat {
    /// The OpenAI-compatible server; without one, memory replies alone.
    pub upstream: Option<UpstreamUrl>,
    /// The model's name there.
    pub model: String,
    key: Option<Key>,
    timeout: Duration,
}

impl Chat {
    pub(super) fn load(layers: &Layers) -> Result<Self> {
        let upstream = match layers.given("upstream")?.filter(|url| !url.is_empty()) {
            Some(_) => Some(layers.parsed("upstream", str::parse::<UpstreamUrl>)?),
            None => None,
        };
        Ok(Self {
            upstream,
            model: layers.parsed("upstream_model", |name| Ok::<_, strata_core::Error>(name.to_owned()))?,
            key: layers.given("upstream_key")?.filter(|key| !key.is_empty()).map(Key::new),
            timeout: Duration::from_secs(layers.number("upstream_timeout_secs", 1, 86_400)?),
        })
    }

    /// The client of the configured model; none where memory replies alone.
    pub fn chat_model(&self, counter: Arc<dyn TokenCounter>) -> Result<Option<OpenAiChat>> {
        let Some(upstream) = &self.upstream else { return Ok(None) };
        let key = self.key.clone().map(Key::into_text);
        let options = ChatOptions { key, timeout: self.timeout, ..ChatOptions::new(counter) };
        OpenAiChat::new(&format!("{upstream}/chat/completions"), &self.model, options).map(Some)
    }
}
