//! The settings of a connection to PostgreSQL.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use strata_core::{Error, Result};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode, TargetSessionAttrs};

/// How long a server is tried before the next one of the address.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long sent bytes may stay unacknowledged before the connection counts as lost. Without it, Linux sends them again for about
/// 15 minutes to a machine that has vanished.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(10);

/// After how long an idle connection is probed; the default of Linux is two hours.
const KEEPALIVES_IDLE: Duration = Duration::from_secs(30);

/// How a store uses its database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// The address of the database.
    pub address: Address,
    /// The address of a read replica, for the reads of recall. Its answers may be a moment old.
    pub replica: Option<Address>,
    /// The most connections that this process holds to each address.
    pub connections: usize,
    /// The number of hash partitions, when the tables are made.
    pub partitions: u32,
    /// The longest time of a statement.
    pub statement_timeout: Duration,
    /// How long a call waits for a connection, while the server is restarted for example, before it fails.
    pub patience: Duration,
    /// A file with the certificates of the authorities to trust, instead of the usual public ones.
    pub root_certificates: Option<std::path::PathBuf>,
    /// With pgvector, a user with more changes than this gets an approximate index of its vectors; 0 means never.
    pub hnsw_from: u64,
}

impl PostgresOptions {
    /// The usual number of connections. PostgreSQL allows 100 by default, so three processes leave room for others.
    pub const CONNECTIONS: usize = 24;

    /// The usual number of partitions: see docs/scale.md.
    pub const PARTITIONS: u32 = 8;

    /// The usual time limit of a statement.
    pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

    /// How long a call usually waits for a connection: a restart of the server takes a few seconds.
    pub const PATIENCE: Duration = Duration::from_secs(15);

    /// The usual size from which a user's vectors are indexed: an exact search of as many takes about a quarter of a second.
    pub const HNSW_FROM: u64 = 500_000;

    /// The usual settings for a database.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            replica: None,
            connections: Self::CONNECTIONS,
            partitions: Self::PARTITIONS,
            statement_timeout: Self::STATEMENT_TIMEOUT,
            patience: Self::PATIENCE,
            root_certificates: None,
            hnsw_from: Self::HNSW_FROM,
        }
    }
}

/// The purpose of the connections to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Reads and writes, on the primary.
    Write,
    /// Reads, on any server.
    Read,
}

/// The address of a database, `postgres://user:password@host:port/database?sslmode=require`. Its texts never show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    config: Config,
}

impl Address {
    /// The same address with a password, unless it has one.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        if self.config.get_password().is_none() {
            self.config.password(password);
        }
        self
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// The settings of each server of the address, in its order.
    pub(crate) fn servers(&self, purpose: Purpose) -> Vec<Config> {
        let ports = self.config.get_ports();
        let hosts = self.config.get_hosts().iter().enumerate();
        let mut servers: Vec<Config> = hosts
            .map(|(place, host)| {
                let mut server = without_hosts(&self.config);
                match host {
                    Host::Tcp(name) => server.host(name),
                    #[cfg(unix)]
                    Host::Unix(path) => server.host_path(path),
                };
                if let Some(address) = self.config.get_hostaddrs().get(place) {
                    server.hostaddr(*address);
                }
                if let Some(port) = ports.get(place).or(ports.first()) {
                    server.port(*port);
                }
                server
            })
            .collect();
        // Of several servers one is the primary, and only it can be written to.
        let is_open = self.config.get_target_session_attrs() == TargetSessionAttrs::Any;
        if servers.len() > 1 && purpose == Purpose::Write && is_open {
            for server in &mut servers {
                server.target_session_attrs(TargetSessionAttrs::ReadWrite);
            }
        }
        servers
    }

    /// Whether the servers are tried in changing orders.
    pub(crate) fn spreads(&self) -> bool {
        self.config.get_load_balance_hosts() == LoadBalanceHosts::Random
    }

    /// Whether the connection is encrypted and the server's certificate is checked: with `sslmode=require`. The mode `prefer`
    /// protects against nobody who can change what is sent, so it counts as off.
    pub(crate) fn wants_tls(&self) -> bool {
        self.config.get_ssl_mode() == SslMode::Require
    }

    /// Whether all hosts are on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.config.get_hosts().iter().all(|host| match host {
            Host::Tcp(host) => matches!(host.as_str(), "localhost" | "127.0.0.1" | "::1"),
            #[cfg(unix)]
            Host::Unix(_) => true,
        })
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // The error of the driver may repeat a part of the address, so it is not passed on.
        let config = Config::from_str(&with_known_modes(text)).ok().filter(|_| !has_loose_password(text));
        let mut config = config.ok_or_else(|| unreadable(text))?;
        if config.get_hosts().is_empty() {
            return Err(Error::invalid(
                "the address of the PostgreSQL store has no host; write `postgres://user@host/database`",
            ));
        }
        if config.get_application_name().is_none() {
            config.application_name("strata");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(TCP_USER_TIMEOUT);
        }
        if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
            config.keepalives_idle(KEEPALIVES_IDLE);
        }
        Ok(Self { config })
    }
}

/// The parameters of an address.
fn parameters(text: &str) -> impl Iterator<Item = &str> {
    text.split_once('?').map(|(_, parameters)| parameters.split('&')).into_iter().flatten()
}

/// The address with the modes that the driver knows. Strata checks the certificate and the name of the server with `require` too, so
/// the stricter modes of PostgreSQL's own programs mean the same.
fn with_known_modes(text: &str) -> String {
    let Some((before, _)) = text.split_once('?') else { return text.to_owned() };
    let known = parameters(text).map(|parameter| match parameter {
        "sslmode=verify-full" | "sslmode=verify-ca" => "sslmode=require",
        other => other,
    });
    format!("{before}?{}", known.collect::<Vec<_>>().join("&"))
}

/// Parameters of PostgreSQL's own programs that have another place here, with that place.
const ELSEWHERE: [(&str, &str); 5] = [
    ("sslrootcert", "name the file in the setting `postgres.root_certificates`"),
    ("sslcert", "leave it out, because Strata has no certificate of its own"),
    ("sslkey", "leave it out, because Strata has no certificate of its own"),
    ("passfile", "name a file that holds the password alone in the setting `postgres.password_file`"),
    ("sslmode", "use `disable`, `prefer` or `require`, which checks the server's certificate"),
];

/// Why an address cannot be read. A part of it is named only if it is certainly no part of a password.
fn unreadable(text: &str) -> Error {
    let named = |parameter: &str| parameter.split('=').next().unwrap_or_default().to_owned();
    let reads = |mode: &str| matches!(mode, "sslmode=disable" | "sslmode=prefer" | "sslmode=require");
    let elsewhere = parameters(&with_known_modes(text))
        .filter(|parameter| !reads(parameter))
        .find_map(|parameter| ELSEWHERE.iter().find(|(name, _)| *name == named(parameter)));
    Error::invalid(match elsewhere {
        Some((name, remedy)) => {
            format!("the address of the PostgreSQL store has a value of `{name}` that Strata cannot use; {remedy}")
        }
        None => "the address of the PostgreSQL store cannot be read; write \
                 `postgres://user@host:5432/database`, with `%40` for an `@` and `%2F` for a `/` inside a name or password"
            .to_owned(),
    })
}

/// The settings without hosts and ports: `Config` can only add to these.
fn without_hosts(all: &Config) -> Config {
    let mut config = Config::new();
    config
        .ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .keepalives(all.get_keepalives())
        .keepalives_idle(all.get_keepalives_idle())
        .target_session_attrs(all.get_target_session_attrs())
        .channel_binding(all.get_channel_binding());
    if let Some(user) = all.get_user() {
        config.user(user);
    }
    if let Some(password) = all.get_password() {
        config.password(password);
    }
    if let Some(name) = all.get_dbname() {
        config.dbname(name);
    }
    if let Some(options) = all.get_options() {
        config.options(options);
    }
    if let Some(name) = all.get_application_name() {
        config.application_name(name);
    }
    if let Some(time) = all.get_connect_timeout() {
        config.connect_timeout(*time);
    }
    if let Some(time) = all.get_tcp_user_timeout() {
        config.tcp_user_timeout(*time);
    }
    if let Some(time) = all.get_keepalives_interval() {
        config.keepalives_interval(time);
    }
    if let Some(count) = all.get_keepalives_retries() {
        config.keepalives_retries(count);
    }
    config
}

/// Whether an `@` stands where no password ends. The password then holds an `@` or a `/` that is not escaped, and its rest would
/// be taken for the host or the database, which are shown.
fn has_loose_password(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let named = rest.split('?').next().unwrap_or_default();
    let (authority, database) = named.split_once('/').unwrap_or((named, ""));
    authority.matches('@').count() > 1 || database.contains('@')
}

/// The address without its password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(f, "{user}@")?;
        }
        for (place, host) in self.config.get_hosts().iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            match host {
                Host::Tcp(host) => write!(f, "{comma}{host}")?,
                #[cfg(unix)]
                Host::Unix(path) => write!(f, "{comma}{}", path.display())?,
            }
            if let Some(port) = self.config.get_ports().get(place).or(self.config.get_ports().first()) {
                write!(f, ":{port}")?;
            }
        }
        write!(f, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_never_shows_its_password() {
        let address: Address = "postgres://me:hush@db.example:6432/memory".parse().unwrap();
        assert_eq!(address.to_string(), "postgres://me@db.example:6432/memory");
        assert_eq!(format!("{address:?}"), "postgres://me@db.example:6432/memory");
        assert!(address.config.get_password().is_some());
        for loose in [
            "postgres://me:p@hush@db.example/m",
            "postgres://me:p/hush@db.example/m",
            "postgres://me:p@hush/w@db/m",
        ] {
            let error = loose.parse::<Address>().unwrap_err();
            assert!(error.message().contains("%40") && !error.message().contains("hush"), "{error}");
        }
        let escaped: Address =
            "postgres://me:p%40hush%2Fw@a.example,b.example/memory?sslmode=require".parse().unwrap();
        assert_eq!(escaped.config.get_password(), Some(b"p@hush/w".as_slice()));
        for wrong in ["postgres://me:hush@:x/", "postgres://me:hush@host:port/db", "postgres:///db"] {
            let error = wrong.parse::<Address>().unwrap_err();
            assert!(!error.message().contains("hush"), "{error}");
        }
    }

    #[test]
    fn modes_that_check_the_certificate_are_known() {
        for mode in ["require", "verify-ca", "verify-full"] {
            let text = format!("postgres://me@db.example/memory?connect_timeout=3&sslmode={mode}");
            assert!(text.parse::<Address>().unwrap().wants_tls(), "{mode}");
        }
        let plain: Address = "postgres://me@db.example/memory?sslmode=disable".parse().unwrap();
        assert!(!plain.wants_tls());
        let refused = |parameter: &str| {
            let text = format!("postgres://me:hush@db.example/memory?sslmode=require&{parameter}");
            let message = text.parse::<Address>().unwrap_err().message().to_owned();
            assert!(!message.contains("hush"), "{message}");
            message
        };
        assert!(refused("sslrootcert=/etc/authority.pem").contains("postgres.root_certificates"));
        assert!(refused("sslmode=allow").contains("`sslmode`"));
        assert!(refused("hushed=1").contains("%40"));
    }

    #[test]
    fn each_server_keeps_the_settings_of_the_address() {
        let text = "postgres://me:hush@a.example:1,b.example:2/d?sslmode=require&options=-cx%3D1&connect_timeout=3\
                    &keepalives_retries=4&keepalives_interval=5&application_name=other&channel_binding=disable";
        let address: Address = text.parse().unwrap();
        let servers = address.servers(Purpose::Read);
        assert_eq!(servers.len(), 2);
        for (server, host) in servers.iter().zip(["a.example:1", "b.example:2"]) {
            let mut one: Config = text.replace("a.example:1,b.example:2", host).parse().unwrap();
            one.tcp_user_timeout(TCP_USER_TIMEOUT).keepalives_idle(KEEPALIVES_IDLE);
            assert_eq!(*server, one);
        }
        let own: Address = "postgres://a/d?tcp_user_timeout=3&keepalives_idle=4".parse().unwrap();
        let server = &own.servers(Purpose::Write)[0];
        assert_eq!(server.get_tcp_user_timeout(), Some(&Duration::from_secs(3)));
        assert_eq!(server.get_keepalives_idle(), Duration::from_secs(4));
    }

    #[test]
    fn only_the_primary_of_several_servers_has_to_be_writable() {
        let attributes = |text: &str, purpose| -> Vec<_> {
            let servers = text.parse::<Address>().unwrap().servers(purpose);
            servers.iter().map(Config::get_target_session_attrs).collect()
        };
        use TargetSessionAttrs::{Any, ReadOnly, ReadWrite};
        assert_eq!(attributes("postgres://a,b/d", Purpose::Write), [ReadWrite; 2]);
        assert_eq!(attributes("postgres://a,b/d", Purpose::Read), [Any; 2]);
        assert_eq!(attributes("postgres://a/d", Purpose::Write), [Any]);
        let given = "postgres://a,b/d?target_session_attrs=read-only";
        assert_eq!(attributes(given, Purpose::Read), [ReadOnly; 2]);
    }

    #[test]
    fn a_password_of_the_address_wins() {
        let given = |text: &str| text.parse::<Address>().unwrap().with_password("other");
        assert_eq!(given("postgres://me:hush@h/d").config.get_password(), Some(&b"hush"[..]));
        assert_eq!(given("postgres://me@h/d").config.get_password(), Some(&b"other"[..]));
    }
}
