//! Connections: the pool, the wait for a server that is being restarted, and transactions that end whatever happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType, Timeouts,
};
use strata_core::{Error, Result};
use tokio::time::Instant;

use crate::connect::{Connector, Encryption, Servers};
use crate::error::{Fault, Outcome, closed};
use crate::lent::{Connection, Lent, Transaction};
use crate::options::{Address, PostgresOptions, Purpose};
use crate::sql;

/// The first pause before another attempt to connect; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How long after the time limit of a statement the server may answer: a working one ends the statement at once.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// How long a quick check waits for the server.
const ANSWER_NOW: Duration = Duration::from_secs(2);

/// The connections to one server.
pub(crate) struct Connections {
    pool: Pool,
    encryption: Arc<Encryption>,
    patience: Duration,
    statement_timeout: Duration,
    closing: AtomicBool,
}

impl Connections {
    pub(crate) fn new(address: &Address, purpose: Purpose, options: &PostgresOptions) -> Result<Self> {
        let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let encryption = Encryption::of(address, options)?;
        if matches!(encryption, Encryption::Off) && !address.is_local() {
            tracing::warn!(
                "the connection to PostgreSQL is not encrypted; add `?sslmode=require` to its address"
            );
        }
        let servers = Servers::new(address, purpose, options.patience);
        let connector = Connector { servers, encryption: encryption.clone() };
        let manager = Manager::from_connect(address.config().clone(), connector, config);
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
            encryption: Arc::new(encryption),
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
                Err(PoolError::Timeout(TimeoutType::Create)) => return Err(Fault::Unanswered.into()),
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
            let lent = self.lend(self.get().await?);
            let reading = read(lent.connection()?);
            let fault = match self.in_time(&lent, reading).await {
                Ok(value) => {
                    lent.give_back();
                    return Ok(value);
                }
                Err(fault) => fault,
            };
            drop(lent);
            if !fault.is_lost_connection() || !retry.pause().await {
                return Err(fault.into());
            }
        }
    }

    /// Runs a read up to the time limit of a statement. A statement that takes longer is cancelled; a server that does not
    /// even answer then is away.
    async fn in_time<T>(&self, lent: &Lent, reading: impl Future<Output = Outcome<T>>) -> Outcome<T> {
        let mut reading = std::pin::pin!(reading);
        if let Ok(read) = tokio::time::timeout(self.statement_timeout, &mut reading).await {
            return read;
        }
        self.encryption.cancel(lent.connection()?.cancel_token()).await;
        match tokio::time::timeout(ANSWER_WITHIN, reading).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(fault)) if fault.is_lost_connection() => Err(fault),
            Ok(Err(_)) => Err(Fault::TooSlow),
            Err(_) => {
                self.mistrust();
                Err(Fault::Unanswered)
            }
        }
    }

    /// Runs statements that may take any time, once.
    pub(crate) async fn run_once<T, F>(&self, run: impl FnOnce(Connection) -> F) -> Result<T>
    where
        F: Future<Output = Outcome<T>> + Send,
    {
        let lent = self.lend(self.get().await?);
        let value = run(lent.connection()?).await?;
        lent.give_back();
        Ok(value)
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
                let lent = self.lend(self.pool.get().await.map_err(|error| away().with_source(error))?);
                match read(lent.connection()?).await {
                    // The pool may have given a connection that the server has closed in the meantime.
                    Err(fault) if fault.is_lost_connection() => {}
                    Err(fault) => return Err(fault.into()),
                    Ok(value) => {
                        lent.give_back();
                        return Ok(value);
                    }
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
            let mut transaction = Transaction::of(self.lend(self.get().await?));
            let fault = match self.answered(self.in_snapshot(&mut transaction, &read)).await {
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
        let begin = format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {}", self.limits());
        sql::batch(transaction.client()?, &begin).await?;
        let value = read(transaction.connection()?).await?;
        transaction.end("COMMIT").await?;
        Ok(value)
    }

    /// The statements that begin a transaction which writes.
    pub(crate) fn begin(&self) -> String {
        format!("BEGIN; {}", self.limits())
    }

    /// The time limits of a transaction. The second one frees what a process holds that has vanished.
    fn limits(&self) -> String {
        format!(
            "SET LOCAL statement_timeout = {}; SET LOCAL idle_in_transaction_session_timeout = {}",
            self.statement_timeout.as_millis(),
            (self.statement_timeout + ANSWER_WITHIN).as_millis()
        )
    }

    /// Runs the statements of a transaction. The server ends a statement that takes too long. If it has not answered some
    /// seconds later, it is away or hangs, and the connection counts as lost: a machine that vanishes closes no connection.
    pub(crate) async fn answered<T>(&self, work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
        let done = sql::answered_within(self.statement_timeout + ANSWER_WITHIN, work).await;
        if matches!(done, Err(Fault::Unanswered)) {
            self.mistrust();
        }
        done
    }

    /// Closes the unused connections: they lead to a server that has not answered.
    fn mistrust(&self) {
        tracing::warn!("PostgreSQL does not answer; connecting anew");
        self.pool.retain(|_, _| false);
    }

    /// A connection that is closed, and its statement cancelled, if the caller goes away.
    fn lend(&self, connection: Object) -> Lent {
        Lent::cancelled(connection, &self.encryption)
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

    /// The most connections.
    pub(crate) fn most(&self) -> usize {
        self.pool.status().max_size
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
