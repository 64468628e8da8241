//! Stores to measure: filled through the port, as a program would, and shared by the groups of a run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use jiff::Timestamp;
use strata_core::store::{Change, ChangeSet, CheckDepth, Store};
use strata_core::turn::{Metadata, NewTurn, Role};
use strata_core::{SessionId, TurnId, UserId};
use strata_store::{SqliteOptions, SqliteStore};
use uuid::Uuid;

use crate::corpus::{Corpus, Random};

/// The turns of the user that is measured.
pub(crate) const MEASURED_TURNS: usize = 10_000;
/// The turns of everybody else.
const OTHER_TURNS: usize = 1_000;
/// The turns of a session.
const SESSION_TURNS: usize = 100;
/// When the first turn was said; each later one a minute later.
const START_SECOND: i64 = 1_700_000_000;

/// The user that is measured, the same in every store.
pub(crate) fn measured_user() -> Result<UserId> {
    Ok(UserId::new("measured")?)
}

/// Opens a store as the binary does.
pub(crate) async fn open(path: &Path) -> Result<Arc<dyn Store>> {
    let store = SqliteStore::open(path, SqliteOptions::default())?;
    Ok(Arc::new(store))
}

/// Stores by their number of turns, made when first asked for and removed at the end.
pub(crate) struct Stores {
    folder: PathBuf,
    made: BTreeMap<usize, PathBuf>,
}

impl Stores {
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("emptying {}", folder.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        Ok(Self { folder: folder.to_owned(), made: BTreeMap::new() })
    }

    /// A path for a store that nobody else uses.
    pub(crate) fn fresh(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.db"))
    }

    /// A store of `turns` turns, indexed and closed: [`MEASURED_TURNS`] of one user, the others of many.
    pub(crate) async fn of(&mut self, turns: usize) -> Result<PathBuf> {
        if let Some(path) = self.made.get(&turns) {
            return Ok(path.clone());
        }
        eprintln!("  filling a store with {turns} turns");
        let path = self.fresh(&format!("turns-{turns}"));
        let store = open(&path).await?;
        let corpus = Corpus::new();
        let measured = MEASURED_TURNS.min(turns);
        fill(&store, &corpus, &measured_user()?, 0, measured).await?;
        let others = (turns - measured).div_ceil(OTHER_TURNS);
        for other in 1..=others {
            let count = OTHER_TURNS.min(turns - measured - (other - 1) * OTHER_TURNS);
            fill(&store, &corpus, &UserId::new(format!("user-{other}"))?, other as u64, count).await?;
        }
        wait_for_index(&store).await?;
        store.close().await?;
        self.made.insert(turns, path.clone());
        Ok(path)
    }
}

impl Drop for Stores {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Waits until everything is in the text index. Looking is a call like others, and the store indexes when no call has come
/// for a while: so it looks seldom.
pub(crate) async fn wait_for_index(store: &Arc<dyn Store>) -> Result<()> {
    while store.check(CheckDepth::Quick).await?.unindexed > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    Ok(())
}

async fn fill(store: &Arc<dyn Store>, corpus: &Corpus, user: &UserId, seed: u64, turns: usize) -> Result<()> {
    let mut random = Random::new(seed);
    let at = Timestamp::from_second(START_SECOND)?;
    let sessions = turns.div_ceil(SESSION_TURNS);
    let mut changes = Vec::new();
    for session in 0..sessions {
        let first = session * SESSION_TURNS;
        let count = SESSION_TURNS.min(turns - first);
        let turns = (first..first + count)
            .map(|place| new_turn(corpus.turn(&mut random), id(seed, place as u64), place))
            .collect::<Result<_>>()?;
        changes.push(Change::AppendTurns { session: SessionId::new(format!("session-{session}"))?, turns });
        if changes.len() == 10 || session + 1 == sessions {
            store.apply(user, ChangeSet::new(at, std::mem::take(&mut changes))).await?;
        }
    }
    Ok(())
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
        hidden: None,
    })
}

/// Ids in the shape of a UUID of version 7: ordered by place within a series, and as scattered at the end.
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
