//! The OpenAI-compatible proxy: an application gets memory by changing one URL.
//!
//! A chat completion is recalled for, passed on and recorded ([`chat`]); anything else under `/v1` goes to the upstream as
//! it came ([`forward`]). The foreign wire format and the shape of its errors are known here and nowhere else: [`raw`]
//! finds and changes the few bytes that memory touches, [`wire`] reads requests, [`reply`] reads along with
//! answers, [`relay`] passes them on, [`keeper`] records. What an answer says is never changed.
//!
//! Two rules hold throughout. Memory that fails or is slow never fails a chat, and delays it by no more than
//! [`ProxySettings::memory_deadline`]. And what a client saw the end of is recorded before it sees that end.

mod chat;
mod compaction;
mod error;
mod forward;
mod keeper;
mod raw;
mod relay;
mod reply;
mod sessions;
mod settings;
mod upstream;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use axum::routing::{any, post};
use tokio::sync::Semaphore;

pub(crate) use chat::{__path_complete_chat, schema};
pub(crate) use error::schema as error_schema;
pub use settings::{ProxySettings, Secret, UpstreamUrl};

use crate::router::Route;
use sessions::Sessions;
use upstream::Upstream;

/// The route that has memory, and all others under `/v1`.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        ("/v1/chat/completions", post(chat::complete_chat).fallback(forward::pass_on_reading)),
        ("/v1/{*path}", any(forward::pass_on)),
    ]
}

/// More recordings than this at once are not counted on.
const MAX_RECORDINGS: u32 = 1 << 20;

/// What the proxy's requests share.
pub(crate) struct Proxy {
    upstream: Option<Upstream>,
    sessions: Sessions,
    /// Held by whoever records: all free means that nothing is being recorded.
    recordings: Arc<Semaphore>,
}

impl Proxy {
    pub(crate) fn new(settings: &ProxySettings) -> Self {
        Self {
            upstream: settings.upstream.as_ref().map(|url| Upstream::new(url, settings)),
            sessions: Sessions::default(),
            recordings: Arc::new(Semaphore::new(MAX_RECORDINGS as usize)),
        }
    }

    /// Waits until everything that passed is recorded, at most so long.
    pub(crate) async fn finish(&self, most: Duration) {
        if tokio::time::timeout(most, self.recordings.acquire_many(MAX_RECORDINGS)).await.is_err() {
            tracing::error!("some replies could not be recorded before the server stopped");
        }
    }
}

#[cfg(test)]
mod tests;
