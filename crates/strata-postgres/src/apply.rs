//! Applying a change set in one transaction. Start reading at [`Batches::apply`], then [`single`].
//!
//! The first statement raises the counters of the user's row, which also locks it: a user's writes wait for each other, in any
//! process. Writes of different users do not, although they share batches: a batch leaves out the users whose rows are locked.

mod batch;
mod change;
mod commit;
mod expect;
mod forget;
mod jobs;
mod keys;
mod memories;
mod parts;
mod segments;
mod turns;

use jiff::Timestamp;
use strata_core::store::{Applied, Change, ChangeSet, Idempotency};
use strata_core::{Error, Result, UserId};
use tokio_postgres::Client;

pub(crate) use batch::Batches;
use commit::{Commit, Evidence};
pub(crate) use jobs::lease_job;
pub(crate) use parts::catch_up;

use crate::connection::Connections;
use crate::error::{Fault, Outcome};
use crate::lent::Transaction;
use crate::row::{count, json, micros};
use crate::sql::{args, execute, first, one};
use crate::terms::Terms;

/// Applies a change set by itself. If the connection is lost before the commit, the whole is done again on another one; if it is
/// lost during the commit, the server is asked whether the transaction was committed.
async fn single(
    connections: &Connections,
    user: &UserId,
    changes: &ChangeSet,
    texts: &Texts,
) -> Result<Done> {
    let mut retry = connections.retry();
    loop {
        let mut transaction = Transaction::new(connections.get().await?);
        let begin = connections.begin();
        let written = connections.answered(write(&mut transaction, &begin, user, changes, texts)).await;
        let fault = match written {
            Ok(Written::Replayed(applied)) => return Ok(Done { applied, wakes: false }),
            Ok(Written::Ready { done, commit }) => {
                match connections.answered(transaction.end("COMMIT")).await {
                    Ok(()) => return Ok(done),
                    Err(fault) if fault.is_lost_connection() => {
                        let evidence = Evidence::of(user, changes);
                        if commit.is_done(evidence.as_ref(), connections).await? {
                            return Ok(done);
                        }
                        fault
                    }
                    Err(fault) => fault,
                }
            }
            Err(fault) => fault,
        };
        if !(fault.is_lost_connection() || fault.is_transient()) {
            if transaction.client().is_ok_and(|client| !client.is_closed()) {
                let _ = connections.answered(transaction.end("ROLLBACK")).await;
            }
            return Err(fault.into());
        }
        drop(transaction);
        tracing::debug!("a write is tried again on another connection");
        if !retry.pause().await {
            return Err(fault.into());
        }
    }
}

/// A change set that was applied.
pub(crate) struct Done {
    pub(crate) applied: Applied,
    /// Whether a job was enqueued that is due.
    pub(crate) wakes: bool,
}

/// A change set after its statements.
enum Written {
    /// An earlier call with the same key was answered.
    Replayed(Applied),
    /// The changes wait for the commit of their transaction.
    Ready { done: Done, commit: Commit },
}

async fn write(
    transaction: &mut Transaction,
    begin: &str,
    user: &UserId,
    changes: &ChangeSet,
    texts: &Texts,
) -> Outcome<Written> {
    let client = transaction.client()?;
    let (mut writing, commit) = Writing::begin(client, begin, user, changes, texts).await?;
    if let Some(idempotency) = &changes.idempotency
        && let Some(answer) = writing.earlier_answer(idempotency).await?
    {
        transaction.end("ROLLBACK").await?;
        return Ok(Written::Replayed(answer));
    }
    for expectation in &changes.expect {
        writing.expect(expectation).await?;
    }
    for (change, terms) in changes.changes.iter().zip(&texts.terms) {
        writing.change(change, terms).await?;
    }
    if let Some(idempotency) = &changes.idempotency {
        writing.keep_answer(idempotency).await?;
    }
    let done = Done { applied: writing.applied, wakes: writing.wakes };
    Ok(Written::Ready { done, commit })
}

/// The analysed texts of a change set. They are made before its transaction begins, because analysing takes longer than the
/// user's row should be locked.
struct Texts {
    /// The terms of each change's texts, in order.
    terms: Vec<Vec<Terms>>,
    /// The number of texts that are added, and of their terms.
    items: i64,
    length: i64,
}

impl Texts {
    fn of(user: &UserId, changes: &ChangeSet) -> Self {
        let mut texts = Self { terms: Vec::new(), items: 0, length: 0 };
        for change in &changes.changes {
            let terms: Vec<Terms> = match change {
                Change::AppendTurns { turns, .. } => {
                    turns.iter().map(|turn| Terms::of(user, &turn.content)).collect()
                }
                Change::AddMemory(memory) => vec![Terms::of(user, &memory.content)],
                Change::ReviseMemory { content, .. } => vec![Terms::of(user, content)],
                _ => Vec::new(),
            };
            if !matches!(change, Change::ReviseMemory { .. }) {
                texts.items += terms.len() as i64;
                texts.length += terms.iter().map(|terms| i64::from(terms.length)).sum::<i64>();
            }
            texts.terms.push(terms);
        }
        texts
    }
}

/// One change set being applied.
struct Writing<'a> {
    client: &'a Client,
    user: &'a UserId,
    revision: i64,
    epoch: i64,
    /// The number of this change set among the user's: the version of the sessions that it writes to.
    version: i64,
    at: Timestamp,
    applied: Applied,
    /// Whether a job was enqueued that is due.
    wakes: bool,
}

impl<'a> Writing<'a> {
    /// Begins the transaction, finds or makes the user's row and raises its counters, in one round trip. Also returns what
    /// tells later whether the transaction was committed.
    async fn begin(
        client: &'a Client,
        begin: &str,
        user: &'a UserId,
        changes: &ChangeSet,
        texts: &Texts,
    ) -> Outcome<(Self, Commit)> {
        let raise = count(changes.changes.iter().map(Change::items_changed).sum::<usize>() as u64)?;
        let sql = "INSERT INTO users AS u (user_id, revision, writes, indexed_items, indexed_terms)
                   VALUES ($1, $2, 1, $3, $4)
                   ON CONFLICT (user_id) DO UPDATE SET revision = u.revision + $2, writes = u.writes + 1,
                       indexed_items = u.indexed_items + $3, indexed_terms = u.indexed_terms + $4
                   RETURNING revision, epoch, writes";
        let args = args![user.as_str(), raise, texts.items, texts.length];
        let begun = Commit::begin(client, begin);
        let (commit, row) = tokio::join!(begun, one(client, sql, args));
        let (commit, row) = (commit?, row?);
        let writing = Self {
            client,
            user,
            revision: row.try_get(0)?,
            epoch: row.try_get(1)?,
            version: row.try_get(2)?,
            at: changes.at,
            applied: Applied::default(),
            wakes: false,
        };
        Ok((writing, commit))
    }

    /// The answer that was given under a key before.
    async fn earlier_answer(&self, idempotency: &Idempotency) -> Outcome<Option<Applied>> {
        let key = &idempotency.key;
        let sql = "SELECT fingerprint, answer FROM idempotency WHERE user_id = $1 AND key = $2";
        let Some(row) = first(self.client, sql, args![self.name(), key.as_str()]).await? else {
            return Ok(None);
        };
        replayed(idempotency, row.try_get(0)?, row.try_get(1)?).map(Some)
    }

    async fn keep_answer(&self, idempotency: &Idempotency) -> Outcome<()> {
        let sql = "INSERT INTO idempotency (user_id, key, fingerprint, answer, created_at) VALUES ($1, $2, $3, $4, $5)";
        let args = args![
            self.name(),
            idempotency.key.as_str(),
            idempotency.fingerprint.cast_signed(),
            json(&self.applied)?,
            micros(self.at)
        ];
        execute(self.client, sql, args).await?;
        Ok(())
    }

    fn name(&self) -> &'a str {
        self.user.as_str()
    }
}

/// The answer that was kept under a key, for a request with the same digest.
fn replayed(idempotency: &Idempotency, fingerprint: i64, answer: &str) -> Outcome<Applied> {
    let key = &idempotency.key;
    if fingerprint.cast_unsigned() != idempotency.fingerprint {
        let message = format!("idempotency key `{key}` was used for another request; use a new key");
        return Err(Error::conflict(message).into());
    }
    let answer: Applied = serde_json::from_str(answer).map_err(|error| {
        let message = format!("the answer kept in table `idempotency` under `{key}` cannot be read");
        Error::internal(message).with_source(error)
    })?;
    Ok(Applied { replayed: true, ..answer })
}

fn unknown(what: &str, id: impl std::fmt::Display) -> Fault {
    Error::not_found(format!("{what} `{id}` does not exist for this user")).into()
}
