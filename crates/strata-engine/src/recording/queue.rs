//! A queue of the writers of each session, within this process.
//!
//! A writer that computes its changes from a session expects the version that it has read
//! ([`Expectation::Session`](strata_core::store::Expectation::Session)). If many writers computed at once, one of them would
//! succeed with each commit and all others would have to repeat their work. So they queue, first come first served.
//! Correctness does not depend on the queue: another process, or a writer that expects nothing, may still be faster, and
//! then the writer tries again.
//!
//! The queue needs no async runtime: a place in it is a waker.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use strata_core::id::{SessionId, UserId};

/// The queues of all sessions that are written to.
#[derive(Default)]
pub(crate) struct Queues(Mutex<Table>);

#[derive(Default)]
struct Table {
    next: u64,
    sessions: HashMap<(UserId, SessionId), VecDeque<Waiting>>,
}

/// The first writer of a queue writes, the others wait.
struct Waiting {
    number: u64,
    waker: Option<Waker>,
}

/// A place in a session's queue. When it is dropped, the next writer continues; this also happens if its owner is
/// cancelled.
pub(crate) struct Place<'a> {
    queues: &'a Queues,
    session: (UserId, SessionId),
    number: u64,
}

impl Queues {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all earlier writers have left the session's queue.
    pub(crate) async fn enter(&self, user: &UserId, session: &SessionId) -> Place<'_> {
        let session = (user.clone(), session.clone());
        let number = {
            let mut table = self.lock();
            table.next += 1;
            let number = table.next;
            let queue = table.sessions.entry(session.clone()).or_default();
            queue.push_back(Waiting { number, waker: None });
            number
        };
        let place = Place { queues: self, session, number };
        poll_fn(|context| {
            let mut table = self.lock();
            let Some(queue) = table.sessions.get_mut(&place.session) else { return Poll::Ready(()) };
            if queue.front().is_none_or(|first| first.number == number) {
                return Poll::Ready(());
            }
            if let Some(waiting) = queue.iter_mut().find(|waiting| waiting.number == number) {
                waiting.waker = Some(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
        place
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut table = self.queues.lock();
        let Some(queue) = table.sessions.get_mut(&self.session) else { return };
        queue.retain(|waiting| waiting.number != self.number);
        let next = queue.front_mut().and_then(|first| first.waker.take());
        if queue.is_empty() {
            table.sessions.remove(&self.session);
        }
        drop(table);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn writers_run_one_after_the_other_and_none_is_left_waiting() {
        let queues = Arc::<Queues>::default();
        let (inside, done) = (Arc::<AtomicU32>::default(), Arc::<AtomicU32>::default());
        let mut tasks = Vec::new();
        for number in 0..200 {
            let (queues, inside, done) = (Arc::clone(&queues), Arc::clone(&inside), Arc::clone(&done));
            tasks.push(tokio::spawn(async move {
                let _place = queues.enter(&UserId::default(), &SessionId::default()).await;
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "somebody else is in it");
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
                number
            }));
        }
        for (number, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.await.unwrap(), number);
        }
        assert_eq!(done.load(Ordering::SeqCst), 200);
        assert!(queues.lock().sessions.is_empty(), "nothing is kept of it");
    }

    async fn is_ready<T>(future: &mut Pin<Box<impl Future<Output = T>>>) -> bool {
        poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
    }

    #[tokio::test]
    async fn a_cancelled_writer_blocks_no_other() {
        let queues = Queues::default();
        let (user, session) = (UserId::default(), SessionId::default());
        let first = queues.enter(&user, &session).await;
        let mut gone = Box::pin(queues.enter(&user, &session));
        let mut last = Box::pin(queues.enter(&user, &session));
        assert!(!is_ready(&mut gone).await && !is_ready(&mut last).await);
        let other = SessionId::new("other").unwrap();
        drop(queues.enter(&user, &other).await);
        drop(first);
        // It was woken, but is never polled again.
        drop(gone);
        drop(last.await);
        assert!(queues.lock().sessions.is_empty());
    }
}
