//! The statements of a batch: each of them does for all change sets what `Writing` does for one.

use std::collections::BTreeMap;

use jiff::Timestamp;
use strata_core::store::{AppendedTurn, Applied, Change, ChangeSet, Expectation};
use strata_core::{Error, Result, SessionId, UserId};
use tokio_postgres::Client;
use uuid::Uuid;

use super::super::commit::{Commit, Evidence};
use super::super::turns::{PlacedTurn, insert_turns};
use super::super::{Done, replayed};
use super::Waiting;
use crate::connection::Connections;
use crate::error::{Fault, Outcome};
use crate::lent::Transaction;
use crate::row::{bound, count, json, micros};
use crate::sql::{args, execute, rows};

/// The result of a batch.
pub(super) enum Merged {
    /// All were applied.
    Done(Vec<Done>),
    /// Nothing was applied, and these change sets, by their places in ascending order, need not be.
    Without(Vec<(usize, Result<Done>)>),
}

/// A batch that failed as a whole.
pub(super) enum Failure {
    /// Nothing was applied.
    Undone,
    /// It cannot be told.
    Unknown(String),
}

/// How a batch treats a user whose row another transaction holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Locking {
    /// The user is left out.
    SkipHeld,
    /// The batch waits for the row.
    Wait,
}

/// The longest time that a batch of many users waits for a lock. A row that another transaction is just adding cannot be skipped.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = 1000";

/// A batch whose users are locked, in its transaction.
pub(super) struct Begun {
    transaction: Transaction,
    commit: Commit,
    /// The counters of each user before the batch.
    before: BTreeMap<String, Numbers>,
}

impl Begun {
    /// Begins the transaction and locks the users.
    pub(super) async fn new(
        connections: &Connections,
        batch: &[Waiting],
        locking: Locking,
    ) -> Result<Self, Failure> {
        let transaction = Transaction::new(connections.get().await.map_err(|_| Failure::Undone)?);
        let mut begin = connections.begin();
        if locking == Locking::SkipHeld {
            begin = format!("{begin}; {LOCK_TIMEOUT}");
        }
        let raised = connections.answered(raise_users(&transaction, &begin, batch, locking)).await;
        match raised {
            Ok((before, commit)) => Ok(Self { transaction, commit, before }),
            Err(fault) => Err(undo(connections, transaction, &fault).await),
        }
    }

    /// Whether another transaction holds the row of a user.
    pub(super) fn is_held(&self, user: &UserId) -> bool {
        !self.before.contains_key(user.as_str())
    }

    /// Applies the batch, from which the users whose rows are held were taken.
    pub(super) async fn apply(self, connections: &Connections, batch: &[Waiting]) -> Result<Merged, Failure> {
        let Self { mut transaction, commit, before } = self;
        let evidence = batch.first().and_then(|waiting| Evidence::of(&waiting.user, &waiting.changes));
        let written = match batch {
            [] => Ok(Merged::Without(Vec::new())),
            batch => connections.answered(write(&transaction, before, batch)).await,
        };
        match written {
            Ok(Merged::Done(done)) => match connections.answered(transaction.end("COMMIT")).await {
                Ok(()) => Ok(Merged::Done(done)),
                Err(fault) if fault.is_lost_connection() => {
                    drop(transaction);
                    match commit.is_done(evidence.as_ref(), connections).await {
                        Ok(true) => Ok(Merged::Done(done)),
                        Ok(false) => Err(Failure::Undone),
                        Err(error) => Err(Failure::Unknown(error.message().to_owned())),
                    }
                }
                Err(_) => Err(Failure::Undone),
            },
            Ok(without) => {
                let _ = connections.answered(transaction.end("ROLLBACK")).await;
                Ok(without)
            }
            Err(fault) => Err(undo(connections, transaction, &fault).await),
        }
    }
}

/// Ends the transaction of a batch that failed.
async fn undo(connections: &Connections, mut transaction: Transaction, fault: &Fault) -> Failure {
    if !fault.is_lost_connection() && transaction.client().is_ok_and(|client| !client.is_closed()) {
        let _ = connections.answered(transaction.end("ROLLBACK")).await;
    }
    Failure::Undone
}

async fn write(
    transaction: &Transaction,
    before: BTreeMap<String, Numbers>,
    batch: &[Waiting],
) -> Outcome<Merged> {
    let client = transaction.client()?;
    let mut answers = earlier_answers(client, batch).await?;
    answers.extend(broken_expectations(client, batch).await?);
    if !answers.is_empty() {
        // An answer that was given before counts more than an expectation.
        answers.sort_by_key(|(place, _)| *place);
        answers.dedup_by_key(|(place, _)| *place);
        return Ok(Merged::Without(answers));
    }
    let numbers = number_all(before, batch)?;
    let mut places = touch_sessions(client, batch, &numbers).await?;
    let mut turns = Vec::new();
    let mut done: Vec<Done> = Vec::with_capacity(batch.len());
    for (waiting, numbers) in batch.iter().zip(&numbers) {
        let mut applied = Applied::default();
        for (change, terms) in waiting.changes.changes.iter().zip(&waiting.texts.terms) {
            let Change::AppendTurns { session, turns: new } = change else { continue };
            let next = places.get_mut(&(waiting.user.as_str(), session.as_str())).ok_or_else(missing)?;
            for (turn, terms) in new.iter().zip(terms) {
                let seq = *next;
                *next += 1;
                let (user, session) = (waiting.user.as_str(), session.as_str());
                turns.push(PlacedTurn { user, session, revision: numbers.revision, seq, turn, terms });
                applied.turns.push(AppendedTurn { id: turn.id, seq: seq.cast_unsigned() });
            }
        }
        done.push(Done { applied, wakes: false });
    }
    insert_turns(client, &turns).await?;
    let wakes = enqueue_once(client, batch).await?;
    keep_answers(client, batch, &done).await?;
    if let Some(first) = done.first_mut() {
        first.wakes = wakes;
    }
    Ok(Merged::Done(done))
}

fn missing() -> Fault {
    Error::internal("the database did not return a row that it has written").into()
}

/// The numbers of one change set, and of a user before a batch.
#[derive(Clone, Copy)]
struct Numbers {
    revision: i64,
    version: i64,
}

/// The numbers that a batch adds to the counters of a user.
#[derive(Default)]
struct Raise {
    revision: i64,
    writes: i64,
    items: i64,
    terms: i64,
}

fn revisions(changes: &ChangeSet) -> Outcome<i64> {
    count(changes.changes.iter().map(Change::items_changed).sum::<usize>() as u64)
}

/// Locks the rows of all users. None of them waits for another transaction: the others find a row that is not returned here.
const FREE: &str = "WITH free AS (
                        SELECT user_id FROM users WHERE user_id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED)";

/// Which users are left: those whose rows are locked now, and new ones.
const ARE_FREE: &str = "WHERE n.user_id IN (SELECT user_id FROM free)
                            OR NOT EXISTS (SELECT 1 FROM users k WHERE k.user_id = n.user_id)";

/// Raises the counters of all users and locks their rows, in the order of their names: two batches cannot wait for each other.
/// Returns the counters of each user before it, without the users that are left out.
async fn raise_users(
    transaction: &Transaction,
    begin: &str,
    batch: &[Waiting],
    locking: Locking,
) -> Outcome<(BTreeMap<String, Numbers>, Commit)> {
    let client = transaction.client()?;
    let users = raises(batch)?;
    let (free, are_free) = if locking == Locking::SkipHeld { (FREE, ARE_FREE) } else { ("", "") };
    let sql = format!(
        "{free}
         INSERT INTO users AS u (user_id, revision, writes, indexed_items, indexed_terms)
         SELECT n.* FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
             AS n (user_id, revision, writes, items, terms) {are_free}
         ORDER BY n.user_id COLLATE \"C\"
         ON CONFLICT (user_id) DO UPDATE SET revision = u.revision + excluded.revision,
             writes = u.writes + excluded.writes, indexed_items = u.indexed_items + excluded.indexed_items,
             indexed_terms = u.indexed_terms + excluded.indexed_terms
         RETURNING user_id, revision, writes"
    );
    let each = |value: fn(&Raise) -> i64| users.values().map(value).collect::<Vec<_>>();
    let args = args![
        users.keys().copied().collect::<Vec<_>>(),
        each(|raise| raise.revision),
        each(|raise| raise.writes),
        each(|raise| raise.items),
        each(|raise| raise.terms)
    ];
    let (commit, raised) = tokio::join!(Commit::begin(client, begin), rows(client, &sql, args));
    let (commit, raised) = (commit?, raised?);
    let mut before = BTreeMap::new();
    for row in &raised {
        let (name, revision, version): (&str, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let raise = users.get(name).ok_or_else(missing)?;
        let numbers = Numbers { revision: revision - raise.revision, version: version - raise.writes };
        before.insert(name.to_owned(), numbers);
    }
    Ok((before, commit))
}

/// What a batch adds to the counters of each user.
fn raises(batch: &[Waiting]) -> Outcome<BTreeMap<&str, Raise>> {
    let mut users: BTreeMap<&str, Raise> = BTreeMap::new();
    for waiting in batch {
        let raise = users.entry(waiting.user.as_str()).or_default();
        raise.revision += revisions(&waiting.changes)?;
        raise.writes += 1;
        raise.items += waiting.texts.items;
        raise.terms += waiting.texts.length;
    }
    Ok(users)
}

/// The numbers of each change set: they continue those of its user.
fn number_all(mut now: BTreeMap<String, Numbers>, batch: &[Waiting]) -> Outcome<Vec<Numbers>> {
    let next = |waiting: &Waiting| {
        let numbers = now.get_mut(waiting.user.as_str()).ok_or_else(missing)?;
        numbers.revision += revisions(&waiting.changes)?;
        numbers.version += 1;
        Ok(*numbers)
    };
    batch.iter().map(next).collect()
}

/// The change sets whose keys were answered before.
async fn earlier_answers(client: &Client, batch: &[Waiting]) -> Outcome<Vec<(usize, Result<Done>)>> {
    let keyed = batch.iter().enumerate().filter_map(|(place, waiting)| {
        waiting.changes.idempotency.as_ref().map(|idempotency| (place, waiting.user.as_str(), idempotency))
    });
    let keyed: Vec<_> = keyed.collect();
    if keyed.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT k.place, i.fingerprint, i.answer
               FROM unnest($1::bigint[], $2::text[], $3::text[]) AS k (place, user_id, key)
               JOIN idempotency i ON i.user_id = k.user_id AND i.key = k.key ORDER BY k.place";
    let args = args![
        keyed.iter().map(|(place, ..)| *place as i64).collect::<Vec<_>>(),
        keyed.iter().map(|(_, user, _)| *user).collect::<Vec<_>>(),
        keyed.iter().map(|(.., idempotency)| idempotency.key.as_str()).collect::<Vec<_>>()
    ];
    let mut answers = Vec::new();
    for row in rows(client, sql, args).await? {
        let place = row.try_get::<_, i64>(0)? as usize;
        let Some(idempotency) = batch.get(place).and_then(|waiting| waiting.changes.idempotency.as_ref())
        else {
            return Err(missing());
        };
        let answer = replayed(idempotency, row.try_get(1)?, row.try_get(2)?);
        let answer = answer.map(|applied| Done { applied, wakes: false }).map_err(Error::from);
        answers.push((place, answer));
    }
    Ok(answers)
}

/// The change sets whose sessions have changed since they were read.
async fn broken_expectations(client: &Client, batch: &[Waiting]) -> Outcome<Vec<(usize, Result<Done>)>> {
    let mut expected = Vec::new();
    for (place, waiting) in batch.iter().enumerate() {
        for expectation in &waiting.changes.expect {
            if let Expectation::Session { id, version } = expectation {
                expected.push((place, waiting.user.as_str(), id.as_str(), bound(*version), expectation));
            }
        }
    }
    if expected.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT e.number, s.version FROM unnest($1::bigint[], $2::text[], $3::text[]) AS e (number, user_id, session)
               JOIN sessions s ON s.user_id = e.user_id AND s.session = e.session";
    let args = args![
        (0..expected.len() as i64).collect::<Vec<_>>(),
        expected.iter().map(|one| one.1).collect::<Vec<_>>(),
        expected.iter().map(|one| one.2).collect::<Vec<_>>()
    ];
    // A session that does not exist has version 0.
    let mut versions = vec![0; expected.len()];
    for row in rows(client, sql, args).await? {
        let version = versions.get_mut(row.try_get::<_, i64>(0)? as usize).ok_or_else(missing)?;
        *version = row.try_get::<_, i64>(1)?;
    }
    let found = expected.into_iter().zip(versions).filter(|(one, version)| one.3 != *version);
    Ok(found.map(|((place, .., expectation), _)| (place, Err(expectation.conflict()))).collect())
}

/// The changes of a batch to one session.
struct Touch {
    places: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
    version: i64,
    state: Option<String>,
}

/// Notes the writes to all sessions and takes places of their sequences. Returns the first place in each.
async fn touch_sessions<'a>(
    client: &Client,
    batch: &'a [Waiting],
    numbers: &[Numbers],
) -> Outcome<BTreeMap<(&'a str, &'a str), i64>> {
    let mut touches: BTreeMap<(&'a str, &'a str), Touch> = BTreeMap::new();
    for (waiting, numbers) in batch.iter().zip(numbers) {
        for change in &waiting.changes.changes {
            let (session, places, state) = match change {
                Change::AppendTurns { session, turns } => (session, turns.len(), None),
                Change::PutState { session, state } => (session, 0, Some(json(state)?)),
                _ => continue,
            };
            let at = waiting.changes.at;
            let touch = touches.entry((waiting.user.as_str(), session.as_str())).or_insert(Touch {
                places: 0,
                created_at: at,
                updated_at: at,
                version: 0,
                state: None,
            });
            touch.places += places as i64;
            touch.updated_at = touch.updated_at.max(at);
            touch.version = numbers.version;
            touch.state = state.or(touch.state.take());
        }
    }
    // Writers that overtake each other do not set the session's time back.
    let sql = "INSERT INTO sessions AS s (user_id, session, created_at, updated_at, next_seq, version, state)
               SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
                   $7::text[])
               ON CONFLICT (user_id, session) DO UPDATE SET next_seq = s.next_seq + excluded.next_seq,
                   updated_at = greatest(s.updated_at, excluded.updated_at), version = excluded.version,
                   state = coalesce(excluded.state, s.state)
               RETURNING user_id, session, next_seq";
    let args = args![
        touches.keys().map(|(user, _)| *user).collect::<Vec<_>>(),
        touches.keys().map(|(_, session)| *session).collect::<Vec<_>>(),
        touches.values().map(|touch| micros(touch.created_at)).collect::<Vec<_>>(),
        touches.values().map(|touch| micros(touch.updated_at)).collect::<Vec<_>>(),
        touches.values().map(|touch| touch.places).collect::<Vec<_>>(),
        touches.values().map(|touch| touch.version).collect::<Vec<_>>(),
        touches.values().map(|touch| touch.state.as_deref()).collect::<Vec<_>>()
    ];
    let written = rows(client, sql, args).await?;
    let mut next: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for row in &written {
        next.insert((row.try_get(0)?, row.try_get(1)?), row.try_get(2)?);
    }
    let first = |(key, touch): (&(&'a str, &'a str), &Touch)| {
        let next = next.get(&(key.0, key.1)).ok_or_else(missing)?;
        Ok((*key, next - touch.places))
    };
    touches.iter().map(first).collect()
}

/// Enqueues the jobs of all change sets, one of a kind for each session, unless one waits already. Returns whether one is due.
async fn enqueue_once(client: &Client, batch: &[Waiting]) -> Outcome<bool> {
    let mut jobs = BTreeMap::new();
    let mut due = false;
    for waiting in batch {
        for change in &waiting.changes.changes {
            let Change::EnqueueOnce(job) = change else { continue };
            let session = job.session.as_ref().map(SessionId::as_str);
            let known =
                jobs.entry((waiting.user.as_str(), session, job.kind.as_str())).or_insert((job, job.run_at));
            known.1 = known.1.min(job.run_at);
            due |= job.run_at <= waiting.changes.at;
        }
    }
    if jobs.is_empty() {
        return Ok(false);
    }
    let sql = "WITH new AS (
                   SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::text[],
                       $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
                       AS n (user_id, session, kind, id, payload, status, attempts, run_at, created_at, updated_at)),
               waiting AS MATERIALIZED (
                   SELECT DISTINCT ON (n.user_id, n.session, n.kind) n.user_id, n.session, n.kind, j.id, j.attempts,
                       j.run_at AS now, n.run_at
                   FROM new n JOIN jobs j ON j.user_id = n.user_id AND j.session IS NOT DISTINCT FROM n.session
                       AND j.kind = n.kind AND j.status = 'queued'
                   ORDER BY n.user_id, n.session, n.kind, j.number),
               sooner AS (
                   UPDATE jobs j SET run_at = w.run_at FROM waiting w
                   WHERE j.user_id = w.user_id AND j.id = w.id AND w.attempts = 0 AND w.now > w.run_at)
               INSERT INTO jobs (user_id, session, kind, id, payload, status, attempts, run_at, created_at, updated_at)
               SELECT n.* FROM new n WHERE NOT EXISTS (SELECT 1 FROM waiting w WHERE w.user_id = n.user_id
                   AND w.session IS NOT DISTINCT FROM n.session AND w.kind = n.kind)";
    let payloads: Vec<String> = jobs.values().map(|(job, _)| json(&job.payload)).collect::<Outcome<_>>()?;
    let args = args![
        jobs.keys().map(|(user, ..)| *user).collect::<Vec<_>>(),
        jobs.keys().map(|(_, session, _)| *session).collect::<Vec<_>>(),
        jobs.keys().map(|(.., kind)| *kind).collect::<Vec<_>>(),
        jobs.values().map(|(job, _)| job.id.0).collect::<Vec<Uuid>>(),
        payloads,
        jobs.values().map(|(job, _)| job.status.as_str()).collect::<Vec<_>>(),
        jobs.values().map(|(job, _)| i64::from(job.attempts)).collect::<Vec<_>>(),
        jobs.values().map(|(_, run_at)| micros(*run_at)).collect::<Vec<_>>(),
        jobs.values().map(|(job, _)| micros(job.created_at)).collect::<Vec<_>>(),
        jobs.values().map(|(job, _)| micros(job.updated_at)).collect::<Vec<_>>()
    ];
    Ok(execute(client, sql, args).await? > 0 && due)
}

/// Keeps the answers of all change sets with a key.
async fn keep_answers(client: &Client, batch: &[Waiting], done: &[Done]) -> Outcome<()> {
    let mut answers = Vec::new();
    for (waiting, done) in batch.iter().zip(done) {
        if let Some(idempotency) = &waiting.changes.idempotency {
            answers.push((waiting, idempotency, json(&done.applied)?));
        }
    }
    if answers.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO idempotency (user_id, key, fingerprint, answer, created_at)
               SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[])";
    let args = args![
        answers.iter().map(|(waiting, ..)| waiting.user.as_str()).collect::<Vec<_>>(),
        answers.iter().map(|(_, idempotency, _)| idempotency.key.as_str()).collect::<Vec<_>>(),
        answers.iter().map(|(_, idempotency, _)| idempotency.fingerprint.cast_signed()).collect::<Vec<_>>(),
        answers.iter().map(|(.., answer)| answer.as_str()).collect::<Vec<_>>(),
        answers.iter().map(|(waiting, ..)| micros(waiting.changes.at)).collect::<Vec<_>>()
    ];
    execute(client, sql, args).await?;
    Ok(())
}
