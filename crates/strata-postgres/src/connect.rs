//! Making one connection: which server of an address is taken, TLS, and how a statement is cancelled.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use strata_core::{Error, Result};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{CancelToken, Client, Config, Connection, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::options::{Address, CONNECT_TIMEOUT, PostgresOptions, Purpose};

/// How long a request to cancel a statement may take.
const CANCEL_WITHIN: Duration = Duration::from_secs(1);

/// The servers of an address.
pub(crate) struct Servers {
    servers: Vec<Config>,
    /// Stands for an address without servers, which is refused when it is read.
    none: Config,
    /// How long a server is tried before the next one.
    within: Duration,
    /// The number of connections made, if each of them begins with another server.
    turn: Option<AtomicUsize>,
}

impl Servers {
    /// All servers are tried within the patience of a call.
    pub(crate) fn new(address: &Address, purpose: Purpose, patience: Duration) -> Self {
        let servers = address.servers(purpose);
        let given = address.config().get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
        let share = patience / u32::try_from(servers.len()).unwrap_or(1).max(1);
        Self {
            servers,
            none: Config::new(),
            within: given.min(share),
            turn: address.spreads().then(AtomicUsize::default),
        }
    }

    /// Connects to the first server that answers and is of the wanted kind. A server may accept a connection and then say
    /// nothing, so the limit covers the whole greeting.
    pub(crate) async fn connect<T>(
        &self,
        tls: &T,
    ) -> Result<(Client, Connection<Socket, T::Stream>), tokio_postgres::Error>
    where
        T: MakeTlsConnect<Socket> + Clone,
    {
        let mut refused = None;
        let mut servers = self.in_order();
        let last = servers.pop();
        for server in servers {
            match tokio::time::timeout(self.within, server.connect(tls.clone())).await {
                Ok(Ok(connected)) => return Ok(connected),
                Ok(Err(error)) => refused = Some(error),
                Err(_) => {}
            }
        }
        let connecting = last.unwrap_or(&self.none).connect(tls.clone());
        match refused {
            Some(error) => tokio::time::timeout(self.within, connecting).await.unwrap_or(Err(error)),
            // The driver's errors cannot be made here for a server that says nothing: the caller's own limit ends the wait.
            None => connecting.await,
        }
    }

    fn in_order(&self) -> Vec<&Config> {
        let mut servers: Vec<&Config> = self.servers.iter().collect();
        if let Some(turn) = &self.turn {
            let first = turn.fetch_add(1, Ordering::Relaxed) % servers.len().max(1);
            servers.rotate_left(first);
        }
        servers
    }
}

/// Whether connections are encrypted.
#[derive(Clone)]
pub(crate) enum Encryption {
    Off,
    On(MakeRustlsConnect),
}

impl Encryption {
    pub(crate) fn of(address: &Address, options: &PostgresOptions) -> Result<Self> {
        if !address.wants_tls() {
            return Ok(Self::Off);
        }
        Ok(Self::On(MakeRustlsConnect::new(settings(options)?)))
    }

    /// Asks the server to stop what a connection does.
    pub(crate) async fn cancel(&self, statement: CancelToken) {
        let asking = async {
            match self {
                Self::Off => statement.cancel_query(NoTls).await,
                Self::On(tls) => statement.cancel_query(tls.clone()).await,
            }
        };
        if let Ok(Err(error)) = tokio::time::timeout(CANCEL_WITHIN, asking).await {
            tracing::debug!(%error, "an abandoned statement cannot be cancelled");
        }
    }
}

/// Makes the connections of a pool.
pub(crate) struct Connector {
    pub(crate) servers: Servers,
    pub(crate) encryption: Encryption,
}

type Connected = Result<(Client, JoinHandle<()>), tokio_postgres::Error>;

impl deadpool_postgres::Connect for Connector {
    fn connect(&self, _: &Config) -> Pin<Box<dyn Future<Output = Connected> + Send + '_>> {
        Box::pin(async move {
            Ok(match &self.encryption {
                Encryption::Off => spawned(self.servers.connect(&NoTls).await?),
                Encryption::On(tls) => spawned(self.servers.connect(tls).await?),
            })
        })
    }
}

/// Starts the task that serves a connection.
fn spawned<S, T>((client, connection): (Client, Connection<S, T>)) -> (Client, JoinHandle<()>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let task = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to PostgreSQL was lost");
        }
    });
    (client, task)
}

/// The TLS settings: the public certificate authorities, or those of a file.
fn settings(options: &PostgresOptions) -> Result<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    match &options.root_certificates {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => {
            use rustls::pki_types::CertificateDer;
            use rustls::pki_types::pem::PemObject;
            let unreadable = |error| {
                Error::invalid(format!("the certificates in `{}` cannot be read", path.display()))
                    .with_source(error)
            };
            for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
                let certificate = certificate.map_err(unreadable)?;
                roots.add(certificate).map_err(|error| {
                    Error::invalid(format!("a certificate in `{}` is invalid", path.display()))
                        .with_source(error)
                })?;
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::internal("TLS cannot be set up").with_source(error))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
