//! The settings of the server and its proxy.

mod proxy;

use std::time::Duration;

use strata_core::UserId;

pub use proxy::{
    ModelPattern, NameSources, ProxySettings, Secret, UpstreamApi, UpstreamSettings, UpstreamUrl,
};

/// The settings of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The most bytes of one request body. 8 MiB: several turns of the largest size fit, and a runaway client is
    /// stopped.
    pub max_body_bytes: usize,
    /// The longest time from the head of a request to its answer.
    pub request_timeout: Duration,
    /// The longest time for sending a body.
    pub body_timeout: Duration,
    /// The longest time for sending the head of a request. An idle connection is closed after the same time.
    pub header_timeout: Duration,
    /// How long a shutdown waits for running requests.
    pub drain_timeout: Duration,
    /// The most concurrent requests. Others wait for a permit until their time is over.
    pub max_concurrent_requests: usize,
    /// The most open connections. Others wait in the listener's queue.
    pub max_connections: usize,
    /// The most open connections of one address. Others are refused.
    pub max_connections_per_peer: usize,
    /// How long a client may read nothing of an answer that is sent to it.
    pub write_timeout: Duration,
    /// The most bytes of the bodies of chats that are read and passed on at once. Others wait.
    pub max_bytes_under_way: usize,
    /// The upstream of chats, and how they are passed on.
    pub proxy: ProxySettings,
    /// The user whose data the inspector shows if a person has not chosen one.
    pub user: UserId,
    /// From where the server can be reached.
    pub reach: Reach,
    /// Names of the server besides those of loopback. On other addresses than loopback, an empty list allows any
    /// name.
    pub allowed_hosts: Vec<String>,
    /// Web pages that may call the server and read its answers, for example `https://example.com`.
    pub cors_origins: Vec<String>,
    /// How long a key is cached. A key that another process creates or revokes takes effect within this time.
    pub keys_remembered: Duration,
}

/// From where a server can be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    /// From this machine alone. A store without keys answers every program there.
    #[default]
    Loopback,
    /// From other machines too: every request needs a key.
    Network,
}

impl Settings {
    /// Whether a key is needed even if the store has none: requests may come from other machines.
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
            // Half of them: one peer cannot take them all, and a gateway in front of many clients has enough.
            max_connections_per_peer: 512,
            write_timeout: Duration::from_secs(30),
            // Four of the largest bodies.
            max_bytes_under_way: 256 * 1024 * 1024,
            user: UserId::default(),
            reach: Reach::default(),
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
            // Short enough that a revocation takes effect soon, long enough that a busy client costs no lookup.
            keys_remembered: Duration::from_secs(1),
            proxy: ProxySettings::default(),
        }
    }
}
