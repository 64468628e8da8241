//! A read replica, which may be away: its reads then go to the primary.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use strata_core::{ErrorKind, Result};
use tokio::time::Instant;

use crate::connection::Connections;
use crate::error::Outcome;
use crate::lent::Connection;
use crate::options::{Address, PostgresOptions, Purpose};

/// How long a read waits for the replica before it goes to the primary, and for how long the replica is then left alone.
const PATIENCE: Duration = Duration::from_secs(1);
const LEFT_ALONE: Duration = Duration::from_secs(10);

/// Whether the statements of a read see one state of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Snapshot {
    /// Each statement sees the state of its own moment.
    Each,
    /// All statements see one state.
    One,
}

/// The connections to a replica.
pub(crate) struct Replica {
    connections: Connections,
    /// The time until which it is left alone, after it was away.
    alone_until: Mutex<Option<Instant>>,
}

impl Replica {
    pub(crate) fn new(address: &Address, options: &PostgresOptions) -> Result<Self> {
        let options = PostgresOptions { patience: options.patience.min(PATIENCE), ..options.clone() };
        Ok(Self {
            connections: Connections::new(address, Purpose::Read, &options)?,
            alone_until: Mutex::default(),
        })
    }

    /// Runs a read; `None` if the replica is away.
    pub(crate) async fn read<T, F>(
        &self,
        snapshot: Snapshot,
        read: impl Fn(Connection) -> F,
    ) -> Option<Result<T>>
    where
        F: Future<Output = Outcome<T>> + Send,
    {
        if self.is_left_alone() {
            return None;
        }
        let result = match snapshot {
            Snapshot::Each => self.connections.read(read).await,
            Snapshot::One => self.connections.read_snapshot(read).await,
        };
        if let Err(error) = &result
            && error.kind() == ErrorKind::Unavailable
        {
            tracing::warn!(%error, "the replica cannot be read; recall reads from the primary for a while");
            *self.alone_until.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(Instant::now() + LEFT_ALONE);
            return None;
        }
        Some(result)
    }

    fn is_left_alone(&self) -> bool {
        let until = *self.alone_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    pub(crate) fn open(&self) -> usize {
        self.connections.open()
    }

    pub(crate) async fn close(&self) -> Result<()> {
        self.connections.close().await
    }
}
