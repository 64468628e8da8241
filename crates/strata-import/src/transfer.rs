//! Moves a whole store into another one, of any kind, through the storage port alone.
//!
//! Nothing is written down about how far a transfer has come: what the target has already is left out. So a transfer that was
//! interrupted is simply run again. At the end both stores are read completely and compared by counts and digests. Segments are
//! not moved, because Strata makes them anew, and neither are answers under idempotency keys, which serve for days only. The
//! source must not change meanwhile.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use strata_core::hash::{FNV_START, fnv_append};
use strata_core::store::{
    Change, ChangeSet, CheckDepth, JobQuery, KeyQuery, MemoryQuery, MemorySelect, MetricQuery, Page,
    SESSION_PURPOSES, SummaryQuery, TurnQuery, session_space,
};
use strata_core::turn::NewTurn;
use strata_core::vector::ItemVector;
use strata_core::{Error, MemoryId, Result, Session, SessionId, Store, Turn, UserId};

/// The turns, and the other items, of one change set.
const TURNS_A_BATCH: u32 = 500;
const ITEMS_A_BATCH: usize = 200;

/// The users that are read at once.
const USERS_A_PAGE: u32 = 500;

/// How far a transfer has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Transferred {
    /// Users.
    pub users: u64,
    /// Sessions.
    pub sessions: u64,
    /// Turns.
    pub turns: u64,
    /// Memories, closed and hidden ones included.
    pub memories: u64,
    /// Summaries.
    pub summaries: u64,
    /// Vectors.
    pub vectors: u64,
    /// Jobs.
    pub jobs: u64,
    /// Request rows.
    pub requests: u64,
    /// API keys.
    pub keys: u64,
}

/// Whether API keys are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// Keys of the same owner: who has one can go on using it.
    Copy,
    /// Keys that somebody else may have made: a copy would let them in.
    LeaveOut,
}

/// Copies everything that `from` has and `to` has not, and compares both. `models` are the models whose vectors are copied.
/// `tell` is called from time to time with what has been looked through, and with the number of all turns and memories.
pub async fn transfer(
    from: &dyn Store,
    to: &dyn Store,
    models: &[String],
    which_keys: Keys,
    mut tell: impl FnMut(&Transferred, u64),
) -> Result<Transferred> {
    let mut done = Transferred::default();
    let health = from.check(CheckDepth::Quick).await?;
    let all = health.turns + health.memories;
    let mut tell = |done: &Transferred| tell(done, all);
    tell(&done);
    let users = users(from).await?;
    for user in &users {
        let mut copy = Copy { from, to, user, done: &mut done, tell: &mut tell };
        copy.expect_no_others().await?;
        copy.sessions().await?;
        copy.memories().await?;
        copy.jobs().await?;
        copy.requests().await?;
        for model in models {
            copy.vectors(model).await?;
        }
        verify(from, to, user, models).await?;
        done.users += 1;
        tell(&done);
    }
    if which_keys == Keys::Copy {
        done.keys = keys(from, to).await?;
    }
    tell(&done);
    Ok(done)
}

async fn users(from: &dyn Store) -> Result<Vec<UserId>> {
    let mut users = Vec::new();
    loop {
        let page = Page { offset: users.len() as u64, limit: USERS_A_PAGE };
        let found = from.users(page).await?;
        if found.is_empty() {
            return Ok(users);
        }
        users.extend(found);
    }
}

/// One user's data on its way.
struct Copy<'a> {
    from: &'a dyn Store,
    to: &'a dyn Store,
    user: &'a UserId,
    done: &'a mut Transferred,
    tell: &'a mut dyn FnMut(&Transferred),
}

impl Copy<'_> {
    /// Refuses a target that has sessions or memories of its own, before anything is added to it.
    async fn expect_no_others(&self) -> Result<()> {
        let ours: HashSet<_> = self.session_ids(self.from).await?;
        let theirs = self.session_ids(self.to).await?;
        self.expect_none("sessions", theirs.difference(&ours).count())?;
        let ours: HashSet<_> = self.memory_ids(self.from).await?;
        let theirs = self.memory_ids(self.to).await?;
        self.expect_none("memories", theirs.difference(&ours).count())
    }

    async fn session_ids(&self, store: &dyn Store) -> Result<HashSet<SessionId>> {
        let sessions = store.sessions(self.user, Page::first(u32::MAX)).await?;
        Ok(sessions.into_iter().map(|session| session.id).collect())
    }

    async fn memory_ids(&self, store: &dyn Store) -> Result<HashSet<MemoryId>> {
        let memories = store.memories(self.user, &MemoryQuery::new(MemorySelect::All)).await?;
        Ok(memories.into_iter().map(|memory| memory.id).collect())
    }

    fn expect_none(&self, what: &str, count: usize) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "the target has {what} of user `{}` that the source does not have ({count}), and a copy has to be the same as its source; \
             nothing was copied for this user; choose an empty target",
            self.user
        )))
    }

    async fn sessions(&mut self) -> Result<()> {
        for session in self.from.sessions(self.user, Page::first(u32::MAX)).await? {
            self.session(&session).await?;
            self.summaries(&session).await?;
            self.done.sessions += 1;
            (self.tell)(self.done);
        }
        Ok(())
    }

    async fn session(&mut self, session: &Session) -> Result<()> {
        let known = self.to.session(self.user, &session.id).await?;
        let mut place = known.as_ref().map_or(0, |known| known.turn_count);
        self.expect_same(session, place).await?;
        self.done.turns += place;
        if known.is_none() {
            let begin = Change::AppendTurns { session: session.id.clone(), turns: Vec::new() };
            self.to.apply(self.user, ChangeSet::one(session.created_at, begin)).await?;
        }
        loop {
            let turns = self.range(session, place).await?;
            if turns.is_empty() {
                break;
            }
            let count = turns.len() as u64;
            let turns = turns.into_iter().map(again).collect();
            let append = Change::AppendTurns { session: session.id.clone(), turns };
            self.to.apply(self.user, ChangeSet::one(session.created_at, append)).await?;
            place += count;
            self.done.turns += count;
            (self.tell)(self.done);
        }
        let state = Box::new(session.state.clone());
        let mut changes = vec![Change::PutState { session: session.id.clone(), state }];
        for purpose in SESSION_PURPOSES {
            let space = session_space(purpose, &session.id);
            let revision = self.from.progress(self.user, &space).await?;
            if revision > 0 {
                changes.push(Change::SetProgress { space, revision });
            }
        }
        self.to.apply(self.user, ChangeSet::new(session.updated_at, changes)).await?;
        Ok(())
    }

    async fn range(&self, session: &Session, place: u64) -> Result<Vec<Turn>> {
        let after = place.checked_sub(1);
        let query = TurnQuery::Range { session: session.id.clone(), after, limit: TURNS_A_BATCH };
        self.from.turns(self.user, &query).await
    }

    /// Refuses a target whose session has other turns than the source, before anything is added to it.
    async fn expect_same(&self, session: &Session, place: u64) -> Result<()> {
        let Some(last) = place.checked_sub(1) else { return Ok(()) };
        let query = TurnQuery::Range { session: session.id.clone(), after: last.checked_sub(1), limit: 1 };
        let (here, there) =
            (self.from.turns(self.user, &query).await?, self.to.turns(self.user, &query).await?);
        if here.first().map(|turn| turn.id) == there.first().map(|turn| turn.id) && !here.is_empty() {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "session `{}` of user `{}` has other turns in the target; choose an empty target",
            session.id, self.user
        )))
    }

    async fn summaries(&mut self, session: &Session) -> Result<()> {
        let query =
            SummaryQuery { session: session.id.clone(), strategy: None, status: None, limit: u32::MAX };
        let known: HashSet<_> =
            self.to.summaries(self.user, &query).await?.into_iter().map(|summary| summary.id).collect();
        for summary in self.from.summaries(self.user, &query).await? {
            self.done.summaries += 1;
            if !known.contains(&summary.id) {
                let at = summary.updated_at;
                let change = Change::PutSummary(Box::new(summary));
                self.to.apply(self.user, ChangeSet::one(at, change)).await?;
            }
        }
        Ok(())
    }

    async fn memories(&mut self) -> Result<()> {
        let query = MemoryQuery::new(MemorySelect::All);
        let known: HashSet<_> =
            self.to.memories(self.user, &query).await?.into_iter().map(|memory| memory.id).collect();
        let mut memories = self.from.memories(self.user, &query).await?;
        self.done.memories += memories.len() as u64;
        // Oldest first, as they were made.
        memories.reverse();
        memories.retain(|memory| !known.contains(&memory.id));
        for batch in memories.chunks(ITEMS_A_BATCH) {
            let Some(at) = batch.iter().map(|memory| memory.recorded_at).max() else { continue };
            let changes = batch.iter().map(|memory| Change::AddMemory(Box::new(memory.clone()))).collect();
            self.to.apply(self.user, ChangeSet::new(at, changes)).await?;
            (self.tell)(self.done);
        }
        Ok(())
    }

    async fn jobs(&mut self) -> Result<()> {
        let query = JobQuery { limit: u32::MAX, ..JobQuery::default() };
        let known: HashSet<_> =
            self.to.jobs(self.user, &query).await?.into_iter().map(|job| job.id).collect();
        let mut jobs = self.from.jobs(self.user, &query).await?;
        self.done.jobs += jobs.len() as u64;
        jobs.reverse();
        jobs.retain(|job| !known.contains(&job.id));
        for batch in jobs.chunks(ITEMS_A_BATCH) {
            let Some(at) = batch.iter().map(|job| job.updated_at).max() else { continue };
            let changes = batch.iter().map(|job| Change::EnqueueJob(Box::new(job.clone()))).collect();
            self.to.apply(self.user, ChangeSet::new(at, changes)).await?;
        }
        Ok(())
    }

    async fn requests(&mut self) -> Result<()> {
        let query = MetricQuery { limit: u32::MAX, ..MetricQuery::default() };
        let known: HashSet<_> =
            self.to.requests(self.user, &query).await?.into_iter().map(|request| request.id).collect();
        let mut requests = self.from.requests(self.user, &query).await?;
        self.done.requests += requests.len() as u64;
        requests.reverse();
        requests.retain(|request| !known.contains(&request.id));
        for batch in requests.chunks(ITEMS_A_BATCH) {
            let Some(at) = batch.iter().map(|request| request.created_at).max() else { continue };
            let changes = batch.iter().map(|request| Change::AddRequest(Box::new(request.clone()))).collect();
            self.to.apply(self.user, ChangeSet::new(at, changes)).await?;
            (self.tell)(self.done);
        }
        Ok(())
    }

    /// Copies the vectors of a model. If no item waited to be embedded in the source, none waits in the target.
    async fn vectors(&mut self, model: &str) -> Result<()> {
        let vectors = self.from.vectors_since(self.user, model, 0).await?;
        let known = self.to.vectors_since(self.user, model, 0).await?;
        let known: HashMap<_, _> = known.iter().map(|known| (known.vector.item, &known.vector)).collect();
        self.done.vectors += vectors.len() as u64;
        let mut missing: Vec<&ItemVector> = vectors.iter().map(|stored| &stored.vector).collect();
        missing.retain(|vector| known.get(&vector.item) != Some(vector));
        if missing.is_empty() {
            return Ok(());
        }
        let at = self.newest().await?;
        for batch in missing.chunks(ITEMS_A_BATCH) {
            let batch = batch.iter().map(|vector| (*vector).clone()).collect();
            self.to.apply(self.user, ChangeSet::one(at, Change::PutVectors(batch))).await?;
            (self.tell)(self.done);
        }
        let waiting =
            self.from.head(self.user).await?.revision > self.from.progress(self.user, model).await?;
        if !waiting {
            let revision = self.to.head(self.user).await?.revision;
            let change = Change::SetProgress { space: model.to_owned(), revision };
            self.to.apply(self.user, ChangeSet::one(at, change)).await?;
        }
        Ok(())
    }

    /// The time of the user's last written session.
    async fn newest(&self) -> Result<jiff::Timestamp> {
        let last = self.from.sessions(self.user, Page::first(1)).await?;
        Ok(last.first().map_or(jiff::Timestamp::UNIX_EPOCH, |session| session.updated_at))
    }
}

/// A turn as it is appended to the target.
fn again(turn: Turn) -> NewTurn {
    let Turn { id, role, name, content, created_at, token_count, metadata, notes, hidden, .. } = turn;
    NewTurn { id, role, name, content, created_at, token_count, metadata, notes, hidden }
}

/// Copies the API keys of all users and returns their number.
async fn keys(from: &dyn Store, to: &dyn Store) -> Result<u64> {
    let query = KeyQuery { revoked: true, ..KeyQuery::unrevoked(Page::first(u32::MAX)) };
    let known: HashSet<_> = to.keys(&query).await?.into_iter().map(|key| (key.user, key.id)).collect();
    let keys = from.keys(&query).await?;
    let count = keys.len() as u64;
    for key in keys.into_iter().filter(|key| !known.contains(&(key.user.clone(), key.id))) {
        let (user, at) = (key.user.clone(), key.created_at);
        to.apply(&user, ChangeSet::one(at, Change::AddKey(Box::new(key)))).await?;
    }
    let stored: HashMap<_, _> =
        to.keys(&query).await?.into_iter().map(|key| ((key.user.clone(), key.id), key)).collect();
    for key in from.keys(&query).await? {
        if stored.get(&(key.user.clone(), key.id)) != Some(&key) {
            return Err(Error::conflict(format!(
                "key `{}` differs between the source and the target; choose an empty target, and stop everything that \
                 writes to either",
                key.id
            )));
        }
    }
    Ok(count)
}

/// Counts and digests of one user's data.
#[derive(Debug, Default, PartialEq, Eq)]
struct Contents {
    sessions: (u64, u64),
    turns: (u64, u64),
    memories: (u64, u64),
    summaries: (u64, u64),
    jobs: (u64, u64),
    requests: (u64, u64),
    vectors: (u64, u64),
}

/// Fails if a user's data is not the same in both stores.
async fn verify(from: &dyn Store, to: &dyn Store, user: &UserId, models: &[String]) -> Result<()> {
    let (one, two) = (contents(from, user, models).await?, contents(to, user, models).await?);
    let pairs = [
        ("sessions", one.sessions, two.sessions),
        ("turns", one.turns, two.turns),
        ("memories", one.memories, two.memories),
        ("summaries", one.summaries, two.summaries),
        ("jobs", one.jobs, two.jobs),
        ("request rows", one.requests, two.requests),
        ("vectors", one.vectors, two.vectors),
    ];
    pairs.into_iter().try_for_each(|(what, one, two)| verify_kind(user, what, one, two))
}

/// Compares the number and the digest of the items of one kind.
fn verify_kind(
    user: &UserId,
    what: &str,
    (count, digest): (u64, u64),
    (copied, copy_digest): (u64, u64),
) -> Result<()> {
    if count != copied {
        return Err(Error::conflict(format!(
            "user `{user}` has {count} {what} in the source and {copied} in the target; \
             stop everything that writes to either, and run this again"
        )));
    }
    if digest != copy_digest {
        return Err(Error::conflict(format!(
            "the {what} of user `{user}` differ between the source and the target; \
             choose an empty target, and stop everything that writes to the source"
        )));
    }
    Ok(())
}

async fn contents(store: &dyn Store, user: &UserId, models: &[String]) -> Result<Contents> {
    let mut contents = Contents::default();
    for model in models {
        for stored in store.vectors_since(user, model, 0).await? {
            add(&mut contents.vectors, hash(&stored.vector)?);
        }
    }
    let mut sessions = store.sessions(user, Page::first(u32::MAX)).await?;
    sessions.sort_by(|a, b| a.id.cmp(&b.id));
    let mut turns = Vec::new();
    let mut summaries = Vec::new();
    for session in &sessions {
        let mut after = None;
        loop {
            let query = TurnQuery::Range { session: session.id.clone(), after, limit: TURNS_A_BATCH };
            let page = store.turns(user, &query).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.seq);
            for turn in &page {
                turns.push(hash(turn)?);
            }
        }
        let query =
            SummaryQuery { session: session.id.clone(), strategy: None, status: None, limit: u32::MAX };
        for summary in store.summaries(user, &query).await? {
            summaries.push(hash(&summary)?);
        }
        // The version of a session is a store's own.
        let parts = (&session.id, session.created_at, session.updated_at, session.turn_count, &session.state);
        add(&mut contents.sessions, hash(&parts)?);
    }
    turns.into_iter().for_each(|digest| add(&mut contents.turns, digest));
    summaries.into_iter().for_each(|digest| add(&mut contents.summaries, digest));
    for memory in store.memories(user, &MemoryQuery::new(MemorySelect::All)).await? {
        add(&mut contents.memories, hash(&memory)?);
    }
    for job in store.jobs(user, &JobQuery { limit: u32::MAX, ..JobQuery::default() }).await? {
        add(&mut contents.jobs, hash(&job)?);
    }
    for request in store.requests(user, &MetricQuery { limit: u32::MAX, ..MetricQuery::default() }).await? {
        add(&mut contents.requests, hash(&request)?);
    }
    Ok(contents)
}

/// Adds an item's digest to a count and a sum, which does not depend on the order.
fn add(to: &mut (u64, u64), digest: u64) {
    *to = (to.0 + 1, to.1.wrapping_add(digest));
}

fn hash(value: &impl Serialize) -> Result<u64> {
    let text = serde_json::to_vec(value)
        .map_err(|error| Error::internal("an item cannot be compared").with_source(error))?;
    Ok(fnv_append(FNV_START, &text))
}
