//! Deadlines of models: the result of an embedder or a cross-encoder is used if it comes in time. A late model costs
//! quality; recall still answers with what it has.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use strata_core::ports::Timer;

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The time until which a recall waits for models. It runs from the moment it is made.
#[derive(Clone)]
pub struct Deadline(Arc<Mutex<Option<Wait>>>);

impl Deadline {
    pub(crate) fn after(timer: &Arc<dyn Timer>, time: Duration) -> Self {
        let timer = Arc::clone(timer);
        let deadline = Self(Arc::new(Mutex::new(Some(Box::pin(async move { timer.rest(time).await })))));
        // A future does nothing before it is polled, so the time would begin with the first model.
        let _ = deadline.poll_passed(&mut Context::from_waker(Waker::noop()));
        deadline
    }

    fn poll_passed(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut wait = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = wait.as_mut() else { return Poll::Ready(()) };
        let state = running.as_mut().poll(context);
        if state.is_ready() {
            *wait = None;
        }
        state
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deadline")
    }
}

impl PartialEq for Deadline {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The result of `work`, or `None` if the deadline passes first. After the deadline, `work` is not even begun.
pub(super) async fn in_time<T>(deadline: Option<&Deadline>, work: impl Future<Output = T>) -> Option<T> {
    let Some(deadline) = deadline else { return Some(work.await) };
    let mut work = pin!(work);
    poll_fn(|context| {
        if deadline.poll_passed(context).is_ready() {
            return Poll::Ready(None);
        }
        work.as_mut().poll(context).map(Some)
    })
    .await
}

/// Runs two pieces of work at the same time and returns both results.
pub(super) async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut first, mut second) = (None, None);
    poll_fn(|context| {
        if first.is_none()
            && let Poll::Ready(result) = one.as_mut().poll(context)
        {
            first = Some(result);
        }
        if second.is_none()
            && let Poll::Ready(result) = other.as_mut().poll(context)
        {
            second = Some(result);
        }
        match (first.take(), second.take()) {
            (Some(first), Some(second)) => Poll::Ready((first, second)),
            (one, other) => {
                (first, second) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}
