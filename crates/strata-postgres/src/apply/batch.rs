//! Appends of many callers in one transaction.
//!
//! A user's writes wait for each other, and each commit waits for the disk. So the appends that wait are taken together: the
//! statements of a batch are as many as those of one append, and it has one commit. Users of a running batch are left to the next
//! one, so no batch of a process waits for another. A user whose row another transaction holds (a batch of another process, or
//! work that takes long) leaves the batch, and the appends of that user wait by themselves. Start reading at [`Batches::apply`].

mod merged;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use strata_core::store::{Change, ChangeSet, Expectation};
use strata_core::{Error, Result, SessionId, UserId};
use tokio::sync::oneshot;

use super::{Done, Texts, single};
use crate::connection::Connections;
use merged::{Begun, Locking, Merged};

/// The most batches of a process that run at once. More would only take connections from reads.
const RUNNERS: usize = 4;

/// Of how many connections one may wait for a user whose row is held, and the most that do so.
const WAITING_SHARE: usize = 3;
const MOST_WAITERS: usize = 8;

/// The most change sets and turns of a batch: at 1,000 turns the statements take longer than the commit.
const MOST_SETS: usize = 256;
const MOST_TURNS: usize = 1_000;

/// A change set with more turns is a batch already.
const LARGE: usize = 50;

/// Takes appends together.
pub(crate) struct Batches {
    shared: Arc<Shared>,
}

struct Shared {
    connections: Arc<Connections>,
    queue: Mutex<Queue>,
    locking: Locking,
    /// The most users that are waited for at once.
    most_waiters: usize,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// The users of running batches, and those whose rows are held.
    busy: HashSet<UserId>,
    runners: usize,
    /// The change sets of users whose rows other transactions hold, those of one user together.
    held: VecDeque<Vec<Waiting>>,
    waiters: usize,
}

/// A change set whose caller waits.
struct Waiting {
    user: UserId,
    changes: ChangeSet,
    texts: Texts,
    answer: oneshot::Sender<Result<Done>>,
}

impl Batches {
    /// Citus locks no rows of several servers in one statement, so a batch of a distributed store waits for all its users.
    pub(crate) fn new(connections: Arc<Connections>, is_distributed: bool) -> Self {
        let most_waiters = (connections.most() / WAITING_SHARE).clamp(1, MOST_WAITERS);
        let locking = if is_distributed { Locking::Wait } else { Locking::SkipHeld };
        Self { shared: Arc::new(Shared { connections, queue: Mutex::default(), locking, most_waiters }) }
    }

    /// Applies a change set: together with others if it is a plain append, else by itself.
    pub(crate) async fn apply(&self, user: &UserId, changes: ChangeSet) -> Result<Done> {
        let texts = Texts::of(user, &changes);
        if !is_plain(user, &changes) {
            return single(&self.shared.connections, user, &changes, &texts).await;
        }
        let (answer, answered) = oneshot::channel();
        let starts = {
            let mut queue = self.shared.lock();
            queue.waiting.push_back(Waiting { user: user.clone(), changes, texts, answer });
            let starts = queue.runners < RUNNERS;
            queue.runners += usize::from(starts);
            starts
        };
        if starts {
            tokio::spawn(run(Arc::clone(&self.shared)));
        }
        answered.await.map_err(|_| Error::internal("a write broke off; report this as a defect"))?
    }
}

/// Whether a change set appends turns to sessions, with what follows from it, and does nothing else.
fn is_plain(user: &UserId, changes: &ChangeSet) -> bool {
    let mut turns = 0;
    let plain = changes.changes.iter().all(|change| match change {
        Change::AppendTurns { turns: new, .. } => {
            turns += new.len();
            true
        }
        Change::PutState { .. } => true,
        Change::EnqueueOnce(job) => job.user == *user && job.lease.is_none(),
        _ => false,
    });
    let expects = changes.expect.iter().all(|expected| matches!(expected, Expectation::Session { .. }));
    plain && expects && (1..LARGE).contains(&turns)
}

/// Runs batches until none waits.
async fn run(shared: Arc<Shared>) {
    loop {
        let batch = shared.lock().take();
        if batch.is_empty() {
            // A caller may have come since then; it has seen this runner and started none.
            let mut queue = shared.lock();
            if queue.has_work() {
                continue;
            }
            queue.runners -= 1;
            return;
        }
        let users: Vec<UserId> = batch.iter().map(|waiting| waiting.user.clone()).collect();
        let held = apply_all(&shared.connections, batch, shared.locking).await;
        shared.set_free(&users, held);
    }
}

/// Applies the change sets of users whose rows were held, one user after the other, until none is left.
async fn run_held(shared: Arc<Shared>) {
    loop {
        let batch = {
            let mut queue = shared.lock();
            let Some(batch) = queue.held.pop_front() else {
                queue.waiters -= 1;
                return;
            };
            batch
        };
        let users: Vec<UserId> = batch.first().map(|waiting| waiting.user.clone()).into_iter().collect();
        apply_all(&shared.connections, batch, Locking::Wait).await;
        shared.set_free(&users, Vec::new());
    }
}

/// Applies a batch and answers its callers. Returns the change sets of users whose rows other transactions hold, unless it waits
/// for them.
async fn apply_all(
    connections: &Arc<Connections>,
    mut batch: Vec<Waiting>,
    locking: Locking,
) -> Vec<Waiting> {
    let mut held = Vec::new();
    while !batch.is_empty() {
        let Ok(begun) = Begun::new(connections, &batch, locking).await else { break };
        let is_held = |waiting: &Waiting| begun.is_held(&waiting.user);
        let (skipped, free): (Vec<_>, Vec<_>) = batch.into_iter().partition(is_held);
        held.extend(skipped);
        batch = free;
        match begun.apply(connections, &batch).await {
            Ok(Merged::Done(done)) => {
                for (waiting, done) in batch.into_iter().zip(done) {
                    let _ = waiting.answer.send(Ok(done));
                }
                return held;
            }
            Ok(Merged::Without(answers)) => batch = without(batch, answers),
            Err(merged::Failure::Unknown(message)) => {
                for waiting in batch {
                    let _ = waiting.answer.send(Err(Error::unavailable(message.clone())));
                }
                return held;
            }
            Err(merged::Failure::Undone) => break,
        }
    }
    // One of them cannot be applied, or the server is away: each for itself gets its own answer.
    apply_each(connections, batch).await;
    held
}

async fn apply_each(connections: &Arc<Connections>, batch: Vec<Waiting>) {
    let mut tasks = tokio::task::JoinSet::new();
    for Waiting { user, changes, texts, answer } in batch {
        let connections = Arc::clone(connections);
        tasks.spawn(async move {
            let _ = answer.send(single(&connections, &user, &changes, &texts).await);
        });
    }
    tasks.join_all().await;
}

/// Answers some of the callers of a batch and returns the others.
fn without(batch: Vec<Waiting>, answers: Vec<(usize, Result<Done>)>) -> Vec<Waiting> {
    let mut answers = answers.into_iter().peekable();
    let mut rest = Vec::with_capacity(batch.len());
    for (place, waiting) in batch.into_iter().enumerate() {
        match answers.next_if(|(answered, _)| *answered == place) {
            Some((_, answer)) => {
                let _ = waiting.answer.send(answer);
            }
            None => rest.push(waiting),
        }
    }
    rest
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the next batches have the users of one that has ended, except those whose rows are held, and begins to wait for these.
    fn set_free(self: &Arc<Self>, users: &[UserId], held: Vec<Waiting>) {
        let mut queue = self.lock();
        for user in users {
            queue.busy.remove(user);
        }
        queue.hold(held);
        let waiters = queue.held.len().min(self.most_waiters - queue.waiters);
        queue.waiters += waiters;
        let starts = queue.runners < RUNNERS && queue.has_work();
        queue.runners += usize::from(starts);
        drop(queue);
        (0..waiters).for_each(|_| drop(tokio::spawn(run_held(Arc::clone(self)))));
        if starts {
            tokio::spawn(run(Arc::clone(self)));
        }
    }
}

impl Queue {
    /// Keeps the change sets of users whose rows are held, those of one user together.
    fn hold(&mut self, held: Vec<Waiting>) {
        self.busy.extend(held.iter().map(|waiting| waiting.user.clone()));
        let mut by_user: BTreeMap<UserId, Vec<Waiting>> = BTreeMap::new();
        for waiting in held {
            by_user.entry(waiting.user.clone()).or_default().push(waiting);
        }
        self.held.extend(by_user.into_values());
    }

    fn has_work(&self) -> bool {
        self.waiting.iter().any(|waiting| !self.busy.contains(&waiting.user))
    }

    /// Takes the change sets of the next batch out of the queue.
    fn take(&mut self) -> Vec<Waiting> {
        let mut batch: Vec<Waiting> = Vec::new();
        let mut turns = 0;
        let mut sessions: HashSet<(UserId, SessionId)> = HashSet::new();
        let mut keys: HashSet<(UserId, String)> = HashSet::new();
        for waiting in std::mem::take(&mut self.waiting) {
            let touched = waiting.sessions();
            let key =
                waiting.changes.idempotency.as_ref().map(|known| (waiting.user.clone(), known.key.clone()));
            // The expectations of a batch are checked before any of its change sets is applied, so a change set that expects
            // something may not follow another one to the same session.
            let overtaken = waiting.is_computed() && touched.iter().any(|one| sessions.contains(one));
            let repeated = key.as_ref().is_some_and(|key| keys.contains(key));
            let full = batch.len() == MOST_SETS || (turns > 0 && turns + waiting.turns() > MOST_TURNS);
            if full || overtaken || repeated || self.busy.contains(&waiting.user) {
                self.waiting.push_back(waiting);
                continue;
            }
            turns += waiting.turns();
            sessions.extend(touched);
            keys.extend(key);
            batch.push(waiting);
        }
        self.busy.extend(batch.iter().map(|waiting| waiting.user.clone()));
        batch
    }
}

impl Waiting {
    fn turns(&self) -> usize {
        self.texts.terms.iter().map(Vec::len).sum()
    }

    /// Whether the changes were computed from the session as it was read.
    fn is_computed(&self) -> bool {
        let states = |change: &Change| matches!(change, Change::PutState { .. });
        !self.changes.expect.is_empty() || self.changes.changes.iter().any(states)
    }

    fn sessions(&self) -> Vec<(UserId, SessionId)> {
        let session = |change: &Change| match change {
            Change::AppendTurns { session, .. } | Change::PutState { session, .. } => {
                Some((self.user.clone(), session.clone()))
            }
            _ => None,
        };
        let expected = self.changes.expect.iter().filter_map(|expected| match expected {
            Expectation::Session { id, .. } => Some((self.user.clone(), id.clone())),
            _ => None,
        });
        self.changes.changes.iter().filter_map(session).chain(expected).collect()
    }
}
