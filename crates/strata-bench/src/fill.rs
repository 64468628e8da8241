//! The stores that are measured. They are filled through the port, as a program would, and shared by the groups of a run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use strata_core::store::{Change, ChangeSet, CheckDepth, Store};
use strata_core::turn::{Metadata, NewTurn, Role};
use strata_core::{SessionId, TurnId, UserId};
use strata_store::{SqliteOptions, SqliteStore};
use uuid::Uuid;

use crate::corpus::{Corpus, Random};
use crate::engine;

/// The default number of turns of the measured user.
pub(crate) const MEASURED_TURNS: usize = 10_000;
/// The number of turns of the measured user before the other users' share.
const ROUND_TURNS: usize = 10;
/// The approximate number of turns of each other user.
const OTHER_TURNS: usize = 1_000;
/// The number of turns of a session.
const SESSION_TURNS: usize = 100;
/// The time of the first turn; each later turn is one minute later.
const START_SECOND: i64 = 1_700_000_000;

/// The measured user, the same in every store.
pub(crate) fn measured_user() -> Result<UserId> {
    Ok(UserId::new("measured")?)
}

/// Opens a store as the binary does.
pub(crate) async fn open(path: &Path) -> Result<Arc<dyn Store>> {
    let store = SqliteStore::open(path, SqliteOptions::default())?;
    Ok(Arc::new(store))
}

/// The stores, by the measured user's number of turns and the total number. They are created when first needed and removed at
/// the end.
pub(crate) struct Stores {
    folder: PathBuf,
    made: BTreeMap<(usize, usize), PathBuf>,
}

impl Stores {
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("emptying {}", folder.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        Ok(Self { folder: folder.to_owned(), made: BTreeMap::new() })
    }

    /// A new path for a store.
    pub(crate) fn fresh(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.db"))
    }

    /// A store of `turns` turns, at rest and closed: [`MEASURED_TURNS`] of the measured user, the others of many users.
    pub(crate) async fn of(&mut self, turns: usize) -> Result<PathBuf> {
        self.with(MEASURED_TURNS, turns).await
    }

    /// A store of `turns` turns, at rest and closed: `measured` of the measured user, the others of many users. At rest means
    /// that all items are in the text index and all segments are written, so that no background work disturbs a measurement.
    pub(crate) async fn with(&mut self, measured: usize, turns: usize) -> Result<PathBuf> {
        if let Some(path) = self.made.get(&(measured, turns)) {
            return Ok(path.clone());
        }
        eprintln!("  filling a store with {turns} turns");
        let path = self.fresh(&format!("turns-{measured}-{turns}"));
        let store = open(&path).await?;
        fill(&store, measured, turns).await?;
        wait_for_index(&store).await?;
        engine::over(&store).maintenance.maintain_all().await?;
        let stored = store.check(CheckDepth::Quick).await?.turns;
        ensure!(stored == turns as u64, "the store should hold {turns} turns and holds {stored}");
        store.close().await?;
        self.made.insert((measured, turns), path.clone());
        Ok(path)
    }
}

impl Drop for Stores {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Waits until all items are in the text index. The store indexes after a pause without calls, and a check is a call, so the
/// checks are rare.
pub(crate) async fn wait_for_index(store: &Arc<dyn Store>) -> Result<()> {
    while store.check(CheckDepth::Quick).await?.unindexed > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    Ok(())
}

/// Writes alternately some turns of the measured user and some of the others. If the measured user's turns were written at
/// once, their rows would be adjacent in every store, and a large store could not be slower.
pub(crate) async fn fill(store: &Arc<dyn Store>, measured: usize, turns: usize) -> Result<()> {
    let rounds = measured / ROUND_TURNS;
    let rest = turns.checked_sub(measured).context("a store holds at least the measured user's turns")?;
    ensure!(rest.is_multiple_of(rounds), "{rest} turns of others do not divide into {rounds} rounds");
    let corpus = Corpus::new();
    let mut measured = Writer::new(measured_user()?, 0);
    let mut others = (1..=rest.div_ceil(OTHER_TURNS))
        .map(|other| Ok(Writer::new(UserId::new(format!("user-{other}"))?, other as u64)))
        .collect::<Result<Vec<_>>>()?;
    for round in 0..rounds {
        measured.append(store, &corpus, ROUND_TURNS).await?;
        let other = round % others.len().max(1);
        if let Some(other) = others.get_mut(other) {
            other.append(store, &corpus, rest / rounds).await?;
        }
    }
    Ok(())
}

/// One user and its number of turns so far.
struct Writer {
    user: UserId,
    seed: u64,
    random: Random,
    written: usize,
}

impl Writer {
    fn new(user: UserId, seed: u64) -> Self {
        Self { user, seed, random: Random::new(seed), written: 0 }
    }

    /// Appends in one change set, to a new session every [`SESSION_TURNS`] turns.
    async fn append(&mut self, store: &Arc<dyn Store>, corpus: &Corpus, turns: usize) -> Result<()> {
        let mut changes: Vec<Change> = Vec::new();
        let end = self.written + turns;
        while self.written < end {
            let session = self.written / SESSION_TURNS;
            let upto = ((session + 1) * SESSION_TURNS).min(end);
            let turns = (self.written..upto)
                .map(|place| new_turn(corpus.turn(&mut self.random), id(self.seed, place as u64), place))
                .collect::<Result<_>>()?;
            changes
                .push(Change::AppendTurns { session: SessionId::new(format!("session-{session}"))?, turns });
            self.written = upto;
        }
        store.apply(&self.user, ChangeSet::new(Timestamp::from_second(START_SECOND)?, changes)).await?;
        Ok(())
    }
}

/// A plain turn.
pub(crate) fn new_turn(content: String, id: TurnId, minute: usize) -> Result<NewTurn> {
    Ok(NewTurn {
        id,
        role: if minute.is_multiple_of(2) { Role::User } else { Role::Assistant },
        name: None,
        token_count: (content.len() / 4) as u32,
        content,
        created_at: Timestamp::from_second(START_SECOND + 60 * minute as i64)?,
        metadata: Metadata::new(),
        notes: Default::default(),
        hidden: None,
    })
}

/// Ids like UUIDs of version 7: ordered within a series, with scattered last bytes.
pub(crate) fn id(series: u64, place: u64) -> TurnId {
    let millis = START_SECOND as u64 * 1000 + place;
    let scatter = Random::new(series.wrapping_mul(1_000_003) ^ place).next();
    let bits = (u128::from(millis) << 80)
        | (0x7 << 76)
        | (u128::from(series & 0xfff) << 64)
        | u128::from(scatter >> 2)
        | (0b10 << 62);
    TurnId(Uuid::from_u128(bits))
}
