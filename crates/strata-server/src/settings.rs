//! The settings of the server and its proxy.

mod proxy;

use std::time::Duration;

use strata_core::context::CompactionLimits;

pub use proxy::{ProxySettings, Secret, UpstreamUrl};

/// The settings of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The most bytes of one request body. 8 MiB: some turns of the largest size fit, a runaway client does not.
    pub max_body_bytes: usize,
    /// How long a request may take from its head to its answer.
    pub request_timeout: Duration,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// How long a client may take to send a request's head; a connection kept alive idles no longer either.
    pub header_timeout: Duration,
    /// How long a shutdown waits for the requests under way.
    pub drain_timeout: Duration,
    /// The most requests worked on at once; more wait for their turn until their time is over.
    pub max_concurrent_requests: usize,
    /// The most open connections; more wait in the listener's queue.
    pub max_connections: usize,
    /// When a session's context is compacted and what stays.
    pub compaction: CompactionLimits,
    /// Where chats are passed on to, and how.
    pub proxy: ProxySettings,
    /// From where the server can be reached.
    pub reach: Reach,
    /// Names beside those of loopback under which the server is called. Elsewhere than on loopback, none means any.
    pub allowed_hosts: Vec<String>,
    /// Web pages that may call the server and read its answers, as `https://example.com`.
    pub cors_origins: Vec<String>,
    /// How long a key is remembered once it was looked up. One that is made or taken back by another process has its
    /// effect no later than this.
    pub keys_remembered: Duration,
}

/// From where a server can be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    /// From this machine alone. A store without keys answers everybody there.
    #[default]
    Loopback,
    /// From elsewhere too: every request needs a key.
    Network,
}

impl Settings {
    /// Whether a key is needed even where the store has none: others than programs on this machine may be asking.
    pub(crate) fn always_needs_key(&self) -> bool {
        self.reach == Reach::Network || !self.allowed_hosts.is_empty()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_body_bytes: 8 * 1024 * 1024,
            request_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(15),
            header_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
            max_concurrent_requests: 256,
            max_connections: 1024,
            compaction: CompactionLimits::default(),
            reach: Reach::default(),
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
            // Short enough that a revocation takes effect soon, long enough that a busy client costs no lookup.
            keys_remembered: Duration::from_secs(1),
            proxy: ProxySettings::default(),
        }
    }
}
