//! Waking the workers of all processes when a job was enqueued, by `NOTIFY` and `LISTEN`.
//!
//! It is a hint: workers also look from time to time, so a lost notice costs a moment and no job. Behind a pooler in transaction
//! mode no notice arrives, and everything else works. A notice is sent after the commit and not in the transaction, because
//! PostgreSQL commits transactions with notices one after the other.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Connection, NoTls, Socket};

use crate::connect::{Encryption, Servers};
use crate::connection::Connections;
use crate::options::{PostgresOptions, Purpose};
use crate::sql::{args, execute};

/// The channel of the notices.
const CHANNEL: &str = "strata_jobs";

/// The shortest time between two notices of one process: workers that are awake find the other jobs by themselves.
const BETWEEN: Duration = Duration::from_millis(20);

/// The pause before the listener connects again.
const RECONNECT: Duration = Duration::from_secs(1);

/// Tells other processes of jobs, and hears of theirs.
pub(crate) struct Wake {
    options: PostgresOptions,
    connections: Arc<Connections>,
    tell: Arc<Notify>,
    heard: Arc<Notify>,
    tasks: Mutex<Tasks>,
}

/// The tasks, once they are needed.
#[derive(Default)]
struct Tasks {
    teller: Option<JoinHandle<()>>,
    listener: Option<JoinHandle<()>>,
}

impl Wake {
    pub(crate) fn new(options: PostgresOptions, connections: Arc<Connections>) -> Self {
        Self {
            options,
            connections,
            tell: Arc::new(Notify::new()),
            heard: Arc::new(Notify::new()),
            tasks: Mutex::default(),
        }
    }

    /// Tells all processes that a job was enqueued. It does not wait.
    pub(crate) fn tell(&self) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks
            .teller
            .get_or_insert_with(|| tokio::spawn(tell(Arc::clone(&self.connections), Arc::clone(&self.tell))));
        self.tell.notify_one();
    }

    /// Returns at the next notice of any process.
    pub(crate) async fn heard(&self) {
        let heard = self.heard.notified();
        {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            tasks
                .listener
                .get_or_insert_with(|| tokio::spawn(listen(self.options.clone(), Arc::clone(&self.heard))));
        }
        heard.await;
    }

    /// Ends the tasks.
    pub(crate) fn stop(&self) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        for task in [tasks.teller.take(), tasks.listener.take()].into_iter().flatten() {
            task.abort();
        }
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn tell(connections: Arc<Connections>, tell: Arc<Notify>) {
    loop {
        tell.notified().await;
        let told = connections
            .read(|client| async move { execute(&client, "SELECT pg_notify($1, '')", args![CHANNEL]).await })
            .await;
        if let Err(error) = told {
            tracing::debug!(%error, "other processes were not told of a job; they find it by themselves");
        }
        tokio::time::sleep(BETWEEN).await;
    }
}

async fn listen(options: PostgresOptions, heard: Arc<Notify>) {
    let servers = Servers::new(&options.address, Purpose::Write, options.patience);
    let Ok(encryption) = Encryption::of(&options.address, &options) else { return };
    loop {
        let ended = match &encryption {
            Encryption::Off => listen_once(&servers, &NoTls, options.patience, &heard).await,
            Encryption::On(tls) => listen_once(&servers, tls, options.patience, &heard).await,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "notices of jobs cannot be heard; connecting again");
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

/// Connects and listens until the connection ends.
async fn listen_once<T>(
    servers: &Servers,
    tls: &T,
    patience: Duration,
    heard: &Notify,
) -> Result<(), tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket> + Clone,
    T::Stream: Unpin,
{
    match tokio::time::timeout(patience, servers.connect(tls)).await {
        Ok(connected) => {
            let (client, connection) = connected?;
            hear(client, connection, heard).await
        }
        Err(_) => Ok(()),
    }
}

/// Passes notices on until the connection ends.
async fn hear<S, T>(
    client: tokio_postgres::Client,
    mut connection: Connection<S, T>,
    heard: &Notify,
) -> Result<(), tokio_postgres::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let sql = format!("LISTEN {CHANNEL}");
    let listening = async {
        client.batch_execute(&sql).await?;
        // Jobs that were enqueued while no process listened.
        heard.notify_waiters();
        std::future::pending::<Result<(), tokio_postgres::Error>>().await
    };
    let notices = async {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(_) = message? {
                heard.notify_waiters();
            }
        }
        Ok(())
    };
    tokio::select! {
        ended = listening => ended,
        ended = notices => ended,
    }
}
