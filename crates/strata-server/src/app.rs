//! What every request can reach: the engine, the settings, the meters.

use std::sync::Arc;
use std::time::Duration;

use strata_core::context::CompactionLimits;
use strata_engine::Engine;
use tokio::sync::Semaphore;

use crate::keys::Keys;
use crate::proxy::{Proxy, ProxySettings};
use crate::telemetry::Meters;

/// What the server may be told.
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
    /// From elsewhere too: nobody is answered without a key.
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
            // Short enough that nobody waits for a revocation, long enough that a busy client costs no lookup.
            keys_remembered: Duration::from_secs(1),
            proxy: ProxySettings::default(),
        }
    }
}

/// A server's parts, shared by all its requests. Cloning it is cheap.
#[derive(Clone)]
pub struct App(Arc<Parts>);

struct Parts {
    engine: Engine,
    settings: Settings,
    meters: Meters,
    permits: Semaphore,
    keys: Keys,
    proxy: Proxy,
}

impl App {
    /// A server over `engine`.
    pub fn new(engine: Engine, settings: Settings) -> Self {
        let permits = Semaphore::new(settings.max_concurrent_requests.clamp(1, Semaphore::MAX_PERMITS));
        let proxy = Proxy::new(&settings.proxy);
        let (meters, keys) = (Meters::new(), Keys::default());
        Self(Arc::new(Parts { engine, settings, meters, permits, keys, proxy }))
    }

    /// The use-cases.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn meters(&self) -> &Meters {
        &self.0.meters
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.0.keys
    }

    pub(crate) fn proxy(&self) -> &Proxy {
        &self.0.proxy
    }

    pub(crate) fn permits(&self) -> &Semaphore {
        &self.0.permits
    }
}
