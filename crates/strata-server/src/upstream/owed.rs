//! The order in which chats are recorded that could not be recorded at once.
//!
//! A conversation that goes on through an outage leaves several chats in one session. Each is tried again by a task of its
//! own, or from the file of an earlier process. If a later one came first, the earlier one would look like a client that
//! goes back. So a chat is tried only when the session owes no earlier one. Chats of other sessions do not wait.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use strata_core::{SessionId, UserId};
use tokio::sync::Notify;

type Key = (UserId, SessionId);

/// Numbers below it belong to the chats of earlier processes.
const FIRST_NUMBER: u64 = 1 << 32;

/// The chats of each session that are still to be recorded.
#[derive(Default)]
pub(crate) struct Owed {
    sessions: Mutex<HashMap<Key, BTreeSet<u64>>>,
    begun: AtomicU64,
    paid: Notify,
}

/// A chat that is still to be recorded. Later ones of its session wait until this is dropped.
pub(crate) struct Debt<'a> {
    owed: &'a Owed,
    session: Key,
    number: u64,
}

impl Owed {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, BTreeSet<u64>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a chat that begins now.
    pub(crate) fn number(&self) -> u64 {
        FIRST_NUMBER + self.begun.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes that a chat could not be recorded.
    pub(crate) fn owe(&self, user: &UserId, session: &SessionId, number: u64) -> Debt<'_> {
        let session = (user.clone(), session.clone());
        self.lock().entry(session.clone()).or_default().insert(number);
        Debt { owed: self, session, number }
    }

    /// Whether no chat is owed.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether the session owes no chat that began before this one.
    pub(crate) fn is_next(&self, user: &UserId, session: &SessionId, number: u64) -> bool {
        let sessions = self.lock();
        if sessions.is_empty() {
            return true;
        }
        let owed = sessions.get(&(user.clone(), session.clone()));
        owed.is_none_or(|owed| owed.first().is_none_or(|first| *first >= number))
    }
}

impl Debt<'_> {
    /// Whether no earlier chat is owed.
    pub(crate) fn is_next(&self) -> bool {
        self.owed.is_next(&self.session.0, &self.session.1, self.number)
    }

    /// Waits until no earlier chat is owed.
    pub(crate) async fn until_next(&self) {
        loop {
            let mut paid = std::pin::pin!(self.owed.paid.notified());
            // From here on no wake-up is missed.
            paid.as_mut().enable();
            if self.is_next() {
                return;
            }
            paid.await;
        }
    }
}

impl Drop for Debt<'_> {
    fn drop(&mut self) {
        let mut sessions = self.owed.lock();
        if let Some(owed) = sessions.get_mut(&self.session) {
            owed.remove(&self.number);
            if owed.is_empty() {
                sessions.remove(&self.session);
            }
        }
        drop(sessions);
        self.owed.paid.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn chats_of_a_session_are_paid_in_the_order_in_which_they_began() {
        let owed = Arc::<Owed>::default();
        let (user, session) = (UserId::default(), SessionId::default());
        let numbers: Vec<u64> = (0..5).map(|_| owed.number()).collect();
        let paid = Arc::<Mutex<Vec<u64>>>::default();
        let mut tasks = Vec::new();
        let first = owed.owe(&user, &session, 7);
        for number in numbers.iter().rev().copied() {
            let (owed, paid) = (Arc::clone(&owed), Arc::clone(&paid));
            tasks.push(tokio::spawn(async move {
                let debt = owed.owe(&UserId::default(), &SessionId::default(), number);
                debt.until_next().await;
                paid.lock().unwrap().push(number);
            }));
        }
        // All of them wait for a chat of an earlier process, and another session does not.
        while owed.lock().values().map(BTreeSet::len).sum::<usize>() < 6 {
            tokio::task::yield_now().await;
        }
        let other = SessionId::new("other").unwrap();
        assert!(owed.is_next(&user, &other, numbers[4]));
        assert!(!owed.is_next(&user, &session, numbers[0]));
        drop(first);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*paid.lock().unwrap(), numbers);
        assert!(owed.is_empty());
    }
}
