//! Connections in use: what becomes of one whose caller no longer waits.

use std::sync::Arc;

use deadpool_postgres::Object;
use tokio_postgres::Client;

use crate::connect::Encryption;
use crate::error::{Outcome, closed};
use crate::sql;

/// A connection in use.
pub(crate) type Connection = Arc<Object>;

/// A connection out of the pool. Unless it is given back it is closed, so no caller inherits a statement that still runs, or an open
/// transaction.
pub(crate) struct Lent {
    connection: Option<Connection>,
    /// How to cancel the statement; `None` if it has to run to its end, as a commit does.
    cancel: Option<Arc<Encryption>>,
}

impl Lent {
    /// A connection whose statement is cancelled if it is not given back.
    pub(crate) fn cancelled(connection: Object, encryption: &Arc<Encryption>) -> Self {
        Self { connection: Some(Arc::new(connection)), cancel: Some(Arc::clone(encryption)) }
    }

    pub(crate) fn connection(&self) -> Outcome<Connection> {
        Ok(Arc::clone(self.connection.as_ref().ok_or_else(closed)?))
    }

    fn client(&self) -> Outcome<&Client> {
        let connection = self.connection.as_ref().ok_or_else(closed)?;
        Ok(connection)
    }

    /// Gives the connection back to the pool.
    pub(crate) fn give_back(mut self) {
        self.connection.take();
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let running = (!connection.is_closed()).then(|| connection.cancel_token());
        match Arc::try_unwrap(connection) {
            Ok(connection) => drop(Object::take(connection)),
            // A caller that still holds it must not give it back to the pool in the middle of a transaction.
            Err(connection) => std::mem::forget(connection),
        }
        if let (Some(running), Some(encryption)) = (running, self.cancel.take())
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { encryption.cancel(running).await });
        }
    }
}

/// A connection inside a transaction.
pub(crate) struct Transaction {
    lent: Option<Lent>,
}

impl Transaction {
    /// A transaction that writes. Its statements are not cancelled: a commit that is cancelled while it waits for a standby would
    /// be there without it.
    pub(crate) fn new(connection: Object) -> Self {
        Self::of(Lent { connection: Some(Arc::new(connection)), cancel: None })
    }

    pub(crate) fn of(lent: Lent) -> Self {
        Self { lent: Some(lent) }
    }

    pub(crate) fn connection(&self) -> Outcome<Connection> {
        self.lent.as_ref().ok_or_else(closed)?.connection()
    }

    pub(crate) fn client(&self) -> Outcome<&Client> {
        self.lent.as_ref().ok_or_else(closed)?.client()
    }

    /// Ends the transaction with `COMMIT` or `ROLLBACK` and gives the connection back.
    pub(crate) async fn end(&mut self, statement: &str) -> Outcome<()> {
        sql::batch(self.client()?, statement).await?;
        if let Some(lent) = self.lent.take() {
            lent.give_back();
        }
        Ok(())
    }
}
