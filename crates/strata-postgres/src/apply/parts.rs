//! Noting which parts the current summary of a session has, in the row of the session.
//!
//! Programs of version 3 of the format leave that to a trigger, which is gone (`version_4.sql`). What they write while they are
//! replaced is found by the column `summaries.noted`, and noted before anybody reads it. Start reading at [`catch_up`].

use serde_json::Value;
use strata_core::summary::SummaryPart;
use strata_core::{Result, UserId};
use tokio_postgres::Client;

use crate::connection::Connections;
use crate::error::Outcome;
use crate::lent::Transaction;
use crate::sql::{args, batch, execute, first, rows};

/// Notes the parts of the sessions whose summaries an older program has written. Noting them twice does no harm, so a lost
/// connection is no reason to ask what became of the commit.
pub(crate) async fn catch_up(connections: &Connections, user: &UserId) -> Result<()> {
    let mut retry = connections.retry();
    loop {
        let mut transaction = Transaction::new(connections.get().await?);
        let begin = connections.begin();
        let noted = connections.answered(note_all(&mut transaction, &begin, user)).await;
        drop(transaction);
        match noted {
            Ok(()) => return Ok(()),
            Err(fault) if !(fault.is_lost_connection() || fault.is_transient()) => return Err(fault.into()),
            Err(fault) if !retry.pause().await => return Err(fault.into()),
            Err(_) => {}
        }
    }
}

async fn note_all(transaction: &mut Transaction, begin: &str, user: &UserId) -> Outcome<()> {
    let client = transaction.client()?;
    batch(client, begin).await?;
    // As every write does, so that no other one changes the summaries meanwhile.
    first(client, "SELECT 1 FROM users WHERE user_id = $1 FOR UPDATE", args![user.as_str()]).await?;
    let sql = "UPDATE summaries SET noted = revision WHERE user_id = $1 AND noted IS DISTINCT FROM revision
               RETURNING session";
    let found = rows(client, sql, args![user.as_str()]).await?;
    let mut sessions: Vec<&str> = found.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    sessions.sort_unstable();
    sessions.dedup();
    note(client, user.as_str(), &sessions).await?;
    transaction.end("COMMIT").await
}

/// Notes the parts of some sessions. The caller has locked the user's row.
pub(super) async fn note(client: &Client, user: &str, sessions: &[&str]) -> Outcome<()> {
    let sql = "SELECT s.session, s.parts,
                   (SELECT c.structured FROM summaries c WHERE c.user_id = $1 AND c.session = s.session
                        AND c.strategy = 'window' AND c.status = 'completed'
                    ORDER BY c.end_seq DESC, c.created_at DESC, c.id DESC LIMIT 1)
               FROM sessions s WHERE s.user_id = $1 AND s.session = ANY ($2)";
    let current = rows(client, sql, args![user, sessions.to_vec()]).await?;
    let (mut names, mut parts) = (Vec::<&str>::new(), Vec::<i16>::new());
    for row in &current {
        let has = row.try_get::<_, Option<&str>>(2)?.map_or(0, bits);
        if has != row.try_get::<_, i16>(1)? {
            names.push(row.try_get(0)?);
            parts.push(has);
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    let sql =
        "UPDATE sessions s SET parts = n.parts FROM unnest($2::text[], $3::smallint[]) AS n (session, parts)
               WHERE s.user_id = $1 AND s.session = n.session";
    execute(client, sql, args![user, names, parts]).await?;
    Ok(())
}

/// The bits of the parts that a summary has. A damaged one has none.
fn bits(structured: &str) -> i16 {
    let structured: Value = serde_json::from_str(structured).unwrap_or_default();
    let has = |part: &&SummaryPart| {
        structured.get(part.as_str()).and_then(Value::as_array).is_some_and(|list| !list.is_empty())
    };
    SummaryPart::ALL.iter().filter(has).map(|part| i16::from(part.bit())).sum()
}
