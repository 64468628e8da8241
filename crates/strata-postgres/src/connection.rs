//! Connections: the pool, the wait for a server that is being restarted, and transactions that end whatever happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, Timeouts,
};
use strata_core::{Error, Result};
use tokio::time::Instant;
use tokio_postgres::{Client, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Fault, Outcome, closed};
use crate::options::{Address, PostgresOptions};

/// The first pause before another attempt to connect; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How long a quick check waits for the server.
const ANSWER_NOW: Duration = Duration::from_secs(2);

/// A connection in use.
pub(crate) type Connection = Arc<Object>;

/// The connections to one server.
pub(crate) struct Connections {
    pool: Pool,
    patience: Duration,
    statement_timeout: Duration,
    closing: AtomicBool,
}

impl Connections {
    pub(crate) fn new(address: &Address, options: &PostgresOptions) -> Result<Self> {
        let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = if address.wants_tls() {
            let tls = MakeRustlsConnect::new(tls(options)?);
            Manager::from_config(address.config().clone(), tls, config)
        } else {
            if !address.is_local() {
                tracing::warn!(
                    "the connection to PostgreSQL is not encrypted; add `?sslmode=require` to its address"
                );
            }
            Manager::from_config(address.config().clone(), NoTls, config)
        };
        let timeouts = Timeouts {
            wait: Some(options.patience),
            create: Some(options.patience),
            recycle: Some(options.patience),
        };
        let pool = Pool::builder(manager)
            .max_size(options.connections.max(1))
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::internal("the pool of connections cannot be made").with_source(error))?;
        Ok(Self {
            pool,
            patience: options.patience,
            statement_timeout: options.statement_timeout,
            closing: AtomicBool::new(false),
        })
    }

    /// A connection. While the server cannot be reached, it is tried again with growing pauses, up to the patience.
    pub(crate) async fn get(&self) -> Result<Object> {
        let mut retry = Retry::new(self.patience);
        loop {
            if self.closing.load(Ordering::Acquire) {
                return Err(closed());
            }
            let error = match self.pool.get().await {
                Ok(connection) => return Ok(connection),
                Err(PoolError::Closed) => return Err(closed()),
                Err(PoolError::Backend(error)) => {
                    let fault = Fault::Driver(error);
                    if !fault.is_lost_connection() {
                        return Err(fault.into());
                    }
                    Error::from(fault)
                }
                Err(error) => {
                    let message = "no connection to PostgreSQL became free in time; try again, or allow more \
                                   connections with `postgres.connections`";
                    return Err(Error::unavailable(message).retryable().with_source(error));
                }
            };
            if !retry.pause().await {
                return Err(error);
            }
        }
    }

    /// Runs a read on its own connection, again on another one if the connection is lost.
    pub(crate) async fn read<T, F>(&self, read: impl Fn(Connection) -> F) -> Result<T>
    where
        F: Future<Output = Outcome<T>> + Send,
    {
        let mut retry = Retry::new(self.patience);
        loop {
            let connection = Arc::new(self.get().await?);
            let reading = read(Arc::clone(&connection));
            let fault = match tokio::time::timeout(self.statement_timeout, reading).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(fault)) => fault,
                Err(_) => {
                    abandon(connection).await;
                    let message = "PostgreSQL took longer than the time limit of a statement; try again";
                    return Err(Error::unavailable(message).retryable());
                }
            };
            if !fault.is_lost_connection() || !retry.pause().await {
                return Err(fault.into());
            }
            discard(connection);
        }
    }

    /// Runs statements that may take any time, once.
    pub(crate) async fn run_once<T, F>(&self, run: impl FnOnce(Connection) -> F) -> Result<T>
    where
        F: Future<Output = Outcome<T>> + Send,
    {
        let connection = Arc::new(self.get().await?);
        Ok(run(connection).await?)
    }

    /// Runs a read without waiting for a server that is away, for a caller that wants to know whether it is.
    pub(crate) async fn read_now<T, F>(&self, read: impl Fn(Connection) -> F) -> Result<T>
    where
        F: Future<Output = Outcome<T>> + Send,
    {
        let away =
            || Error::unavailable("PostgreSQL does not answer; check that the server runs").retryable();
        if self.closing.load(Ordering::Acquire) {
            return Err(closed());
        }
        let reading = async {
            loop {
                let connection = Arc::new(self.pool.get().await.map_err(|error| away().with_source(error))?);
                match read(Arc::clone(&connection)).await {
                    // The pool may have given a connection that the server has closed in the meantime.
                    Err(fault) if fault.is_lost_connection() => discard(connection),
                    other => return Ok(other?),
                }
            }
        };
        tokio::time::timeout(ANSWER_NOW, reading).await.map_err(|_| away())?
    }

    /// As [`Connections::read`], with all statements of the read in one snapshot.
    pub(crate) async fn read_snapshot<T, F>(&self, read: impl Fn(Connection) -> F) -> Result<T>
    where
        F: Future<Output = Outcome<T>> + Send,
    {
        let mut retry = Retry::new(self.patience);
        loop {
            let mut transaction = Transaction::new(self.get().await?);
            let fault = match self.in_snapshot(&mut transaction, &read).await {
                Ok(value) => return Ok(value),
                Err(fault) => fault,
            };
            if !fault.is_lost_connection() || !retry.pause().await {
                return Err(fault.into());
            }
        }
    }

    async fn in_snapshot<T, F>(
        &self,
        transaction: &mut Transaction,
        read: &impl Fn(Connection) -> F,
    ) -> Outcome<T>
    where
        F: Future<Output = Outcome<T>> + Send,
    {
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = {}",
            self.statement_timeout.as_millis()
        );
        transaction.client()?.batch_execute(&begin).await?;
        let value = read(transaction.connection()?).await?;
        transaction.end("COMMIT").await?;
        Ok(value)
    }

    /// The statement that begins a transaction which writes.
    pub(crate) fn begin(&self) -> String {
        format!("BEGIN; SET LOCAL statement_timeout = {}", self.statement_timeout.as_millis())
    }

    /// Attempts at a call that may take up to the patience in all.
    pub(crate) fn retry(&self) -> Retry {
        Retry::new(self.patience)
    }

    /// Closes the connections after the calls that use them. Later calls fail, this one included.
    pub(crate) async fn close(&self) -> Result<()> {
        if self.closing.swap(true, Ordering::AcqRel) {
            return Err(closed());
        }
        let mut retry = Retry::new(self.patience);
        while self.pool.status().available < self.pool.status().size && retry.pause().await {}
        self.pool.close();
        Ok(())
    }

    /// How many connections are open.
    pub(crate) fn open(&self) -> usize {
        self.pool.status().size
    }
}

/// Growing pauses between attempts, until the patience is over.
pub(crate) struct Retry {
    end: Instant,
    pause: Duration,
}

impl Retry {
    fn new(patience: Duration) -> Self {
        Self { end: Instant::now() + patience, pause: FIRST_PAUSE }
    }

    /// Waits before the next attempt; false if there is no time for one.
    pub(crate) async fn pause(&mut self) -> bool {
        if Instant::now() + self.pause > self.end {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }
}

/// A connection inside a transaction. If it is dropped before the end, by a caller that no longer waits for example, the
/// connection is closed and not used again, so nobody inherits an open transaction.
pub(crate) struct Transaction {
    connection: Option<Connection>,
}

impl Transaction {
    pub(crate) fn new(connection: Object) -> Self {
        Self { connection: Some(Arc::new(connection)) }
    }

    pub(crate) fn connection(&self) -> Outcome<Connection> {
        Ok(Arc::clone(self.connection.as_ref().ok_or_else(closed)?))
    }

    pub(crate) fn client(&self) -> Outcome<&Client> {
        let connection = self.connection.as_ref().ok_or_else(closed)?;
        Ok(connection)
    }

    /// Ends the transaction with `COMMIT` or `ROLLBACK` and gives the connection back.
    pub(crate) async fn end(&mut self, statement: &str) -> Outcome<()> {
        self.client()?.batch_execute(statement).await?;
        self.connection.take();
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            discard(connection);
        }
    }
}

/// Takes a connection out of the pool and closes it.
fn discard(connection: Connection) {
    match Arc::try_unwrap(connection) {
        Ok(connection) => drop(Object::take(connection)),
        // Whoever still holds it must not give it back to the pool in the middle of a transaction.
        Err(connection) => std::mem::forget(connection),
    }
}

/// Stops what a connection does and closes it.
async fn abandon(connection: Connection) {
    let cancel = connection.cancel_token();
    discard(connection);
    // Without TLS: a server that insists on it ignores the request, and ends the statement when it notices the closed socket.
    let _ = tokio::time::timeout(Duration::from_secs(1), cancel.cancel_query(NoTls)).await;
}

/// The TLS settings: the public certificate authorities, or those of a file.
pub(crate) fn tls(options: &PostgresOptions) -> Result<rustls::ClientConfig> {
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
