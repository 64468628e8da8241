//! Durable appends: 64 writers whose commits the store groups, against one caller that waits for each of its turns.
//!
//! Both use the same store with the same settings. Each turn of the single caller is a transaction of its own, because there
//! is no other write to share it with.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use jiff::Timestamp;
use strata_core::store::{Change, ChangeSet};
use strata_core::{SessionId, Store, UserId};

use crate::corpus::{Corpus, Random};
use crate::report::{Report, Target, median};
use crate::{Bench, fill};

const WRITERS: usize = 64;
const ROUNDS: usize = 3;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let (many, one) = (bench.size(60_000, 2_000), bench.size(6_000, 500));
    let (mut grouped, mut indexed, mut single) = (Vec::new(), Vec::new(), Vec::new());
    // The rounds alternate, so that a slow minute of the machine affects both.
    for round in 0..ROUNDS {
        let path = bench.stores.fresh(&format!("append-one-{round}"));
        let rates = bench.runtime.block_on(append(&path, 1, one))?;
        single.push(rates.durable);
        let path = bench.stores.fresh(&format!("append-many-{round}"));
        let rates = bench.runtime.block_on(append(&path, WRITERS, many))?;
        grouped.push(rates.durable);
        indexed.push(rates.indexed);
    }
    let (grouped, indexed, single) = (median(&mut grouped), median(&mut indexed), median(&mut single));
    report.add("one caller, a transaction a turn", single, "turns/s", None);
    report.add(
        format!("{WRITERS} writers, grouped commits"),
        grouped,
        "turns/s",
        Some(Target::AtLeast(8_000.0)),
    );
    report.add(
        format!("{WRITERS} writers against one caller"),
        grouped / single,
        "x",
        Some(Target::AtLeast(4.0)),
    );
    report.add(format!("{WRITERS} writers, until the text index is current"), indexed, "turns/s", None);
    Ok(())
}

/// The number of turns per second.
struct Rates {
    durable: f64,
    indexed: f64,
}

async fn append(path: &Path, writers: usize, turns: usize) -> Result<Rates> {
    let store = fill::open(path).await?;
    let start = Instant::now();
    let durable = rate(&[Arc::clone(&store)], writers, turns, 0).await?;
    fill::wait_for_index(&store).await?;
    let indexed = (turns / writers * writers) as f64 / start.elapsed().as_secs_f64();
    store.close().await?;
    Ok(Rates { durable, indexed })
}

/// The number of turns a second that the writers append, spread over the stores. Each `series` has ids of its own.
pub(crate) async fn rate(
    stores: &[Arc<dyn Store>],
    writers: usize,
    turns: usize,
    series: u64,
) -> Result<f64> {
    let changes = prepare(writers, turns, series)?;
    let start = Instant::now();
    apply_each(stores, changes, 0).await?;
    Ok((turns / writers * writers) as f64 / start.elapsed().as_secs_f64())
}

/// The change sets of each writer.
pub(crate) fn prepare(writers: usize, turns: usize, series: u64) -> Result<Vec<Vec<ChangeSet>>> {
    let each = turns / writers;
    let mut changes: Vec<Vec<ChangeSet>> = Vec::new();
    let corpus = Corpus::new();
    for writer in 0..writers {
        let mut random = Random::new(writer as u64);
        let session = SessionId::new(format!("session-{series}-{writer}"))?;
        let sets = (0..each).map(|place| {
            let turn = fill::new_turn(
                corpus.turn(&mut random),
                fill::id(series * 1_000 + writer as u64, place as u64),
                place,
            )?;
            let change = Change::AppendTurns { session: session.clone(), turns: vec![turn] };
            Ok(ChangeSet::one(Timestamp::UNIX_EPOCH, change))
        });
        changes.push(sets.collect::<Result<_>>()?);
    }
    Ok(changes)
}

/// The users of the writers of one process.
pub(crate) const USERS: usize = 8;

/// Lets each writer append its change sets one after the other. The writers share [`USERS`] users, beginning with `first_user`.
pub(crate) async fn apply_each(
    stores: &[Arc<dyn Store>],
    changes: Vec<Vec<ChangeSet>>,
    first_user: usize,
) -> Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for (writer, changes) in changes.into_iter().enumerate() {
        let user = UserId::new(format!("user-{}", first_user + writer % USERS))?;
        let store = Arc::clone(&stores[writer % stores.len()]);
        tasks.spawn(async move { apply_all(store, user, changes).await });
    }
    while let Some(finished) = tasks.join_next().await {
        finished??;
    }
    Ok(())
}

async fn apply_all(store: Arc<dyn Store>, user: UserId, changes: Vec<ChangeSet>) -> Result<()> {
    for changes in changes {
        store.apply(&user, changes).await?;
    }
    Ok(())
}
