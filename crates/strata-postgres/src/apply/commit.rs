//! The meaning of a lost answer to `COMMIT`.
//!
//! The number of the transaction alone does not tell: a server that was restarted or replaced by its standby may have given it to
//! another transaction. So something that the change set has created is looked for as well.

use strata_core::store::{Change, ChangeSet};
use strata_core::{Error, Result, UserId};
use tokio_postgres::{Client, SimpleQueryMessage};
use uuid::Uuid;

use crate::connection::Connections;
use crate::error::Outcome;
use crate::sql::{args, one, simple};

/// A transaction that is about to be committed.
#[derive(Debug, Clone)]
pub(super) struct Commit {
    /// The number of the transaction.
    xid: i64,
    /// The start of the server that runs it.
    server: String,
}

/// A row that exists if the transaction was committed, and not before.
#[derive(Debug, Clone)]
pub(super) struct Evidence {
    table: &'static str,
    user: String,
    id: Uuid,
}

/// The facts about a transaction that [`Commit`] needs. It is a statement of its own, because Citus lets no statement that writes return
/// what only the server in front knows.
const WHICH: &str = "SELECT pg_current_xact_id()::text, extract(epoch FROM pg_postmaster_start_time())::text";

impl Evidence {
    pub(super) fn of(user: &UserId, changes: &ChangeSet) -> Option<Self> {
        let (table, id) = changes.changes.iter().find_map(|change| match change {
            Change::AppendTurns { turns, .. } => turns.first().map(|turn| ("turns", turn.id.0)),
            Change::AddMemory(memory) => Some(("memories", memory.id.0)),
            Change::AddRequest(request) => Some(("requests", request.id.0)),
            _ => None,
        })?;
        Some(Self { table, user: user.as_str().to_owned(), id })
    }
}

impl Commit {
    /// Runs the statements that begin a transaction which writes, and notes which one it is, in one round trip.
    pub(super) async fn begin(client: &Client, begin: &str) -> Outcome<Self> {
        let messages = simple(client, &format!("{begin}; {WHICH}")).await?;
        let row = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some((row.get(0)?.parse().ok()?, row.get(1)?.to_owned())),
            _ => None,
        });
        let untold = || Error::internal("PostgreSQL does not tell the number of a transaction");
        let (xid, server) = row.ok_or_else(untold)?;
        Ok(Self { xid, server })
    }

    /// Whether the transaction was committed. One that still runs is waited for.
    pub(super) async fn is_done(
        &self,
        evidence: Option<&Evidence>,
        connections: &Connections,
    ) -> Result<bool> {
        let unknown = || {
            Error::unavailable(
                "the connection to PostgreSQL was lost during a commit, and it cannot be told whether the data is stored; \
                 read before you try again",
            )
        };
        let mut retry = connections.retry();
        loop {
            let (status, exists) = connections
                .read(|client| async move { self.look(&client, evidence).await })
                .await
                .map_err(|error| unknown().with_source(error))?;
            match (status.as_deref(), exists) {
                // The same server knows the transaction; another one may have used its number again.
                (Some("aborted"), _) => return Ok(false),
                (Some("committed") | None, Some(exists)) => return Ok(exists),
                (Some("committed"), None) => return Ok(true),
                (Some(_), _) if retry.pause().await => {}
                _ => return Err(unknown()),
            }
        }
    }

    /// The server's word on the transaction, if it is still the same server, and whether the evidence exists.
    async fn look(
        &self,
        client: &Client,
        evidence: Option<&Evidence>,
    ) -> Outcome<(Option<String>, Option<bool>)> {
        let sql = "SELECT CASE WHEN extract(epoch FROM pg_postmaster_start_time())::text = $1
                               THEN pg_xact_status($2::text::xid8) END";
        let row = one(client, sql, args![self.server.as_str(), self.xid.to_string()]).await?;
        let Some(Evidence { table, user, id }) = evidence else { return Ok((row.try_get(0)?, None)) };
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE user_id = $1 AND id = $2)");
        let exists = one(client, &sql, args![user.as_str(), *id]).await?;
        Ok((row.try_get(0)?, Some(exists.try_get(0)?)))
    }
}
