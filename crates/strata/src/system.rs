//! The system's clock, ids and secrets: the only place where Strata uses ambient time and randomness.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use strata_core::key::{SECRET_BYTES, SecretSource};
use strata_core::ports::{Clock, Compute, IdSource, Load, Timer};
use strata_core::{Error, Result};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use uuid::{ContextV7, Uuid};

/// The machine's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the `Clock` port's implementation")]
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        // Every backend stores microseconds.
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }
}

/// Waits on the runtime's timer.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemTimer;

#[async_trait]
impl Timer for SystemTimer {
    async fn rest(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// Threads beside those that serve requests. Long work gets half of the processors, so that short work never waits for it.
///
/// Short work runs on the thread that asks for it, while another thread takes over that thread's other tasks: handing a ranking of
/// half a millisecond to a second thread and waiting for it would take a tenth of a millisecond more, several times a recall.
#[derive(Debug)]
pub struct BlockingPool {
    long: Arc<Semaphore>,
}

impl BlockingPool {
    /// A pool for the processors of this machine.
    pub fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self { long: Arc::new(Semaphore::new((processors / 2).max(1))) }
    }
}

impl Default for BlockingPool {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Compute for BlockingPool {
    async fn run(&self, load: Load, work: Box<dyn FnOnce() + Send>) {
        let permit = match load {
            // Work that panics leaves no result, which the caller reports.
            Load::Short if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread => {
                let _ = tokio::task::block_in_place(|| catch_unwind(AssertUnwindSafe(work)));
                return;
            }
            Load::Short => None,
            Load::Long => Arc::clone(&self.long).acquire_owned().await.ok(),
        };
        let work = move || {
            work();
            drop(permit);
        };
        let _ = tokio::task::spawn_blocking(work).await;
    }
}

/// UUIDs of version 7 that always rise within the process, even if the wall clock is set back.
#[derive(Debug)]
pub struct SystemIds(Mutex<ContextV7>);

impl SystemIds {
    /// A fresh source.
    pub fn new() -> Self {
        // The extra precision fills twelve bits with the time below the millisecond. So ids of several processes on one
        // store sort by time, with a resolution of about a quarter of a microsecond.
        Self(Mutex::new(ContextV7::new().with_additional_precision()))
    }
}

impl Default for SystemIds {
    fn default() -> Self {
        Self::new()
    }
}

impl IdSource for SystemIds {
    fn next(&self) -> Uuid {
        let context = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Uuid::new_v7(uuid::Timestamp::now(&*context))
    }
}

/// Secrets from the operating system's random number generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemSecrets;

impl SecretSource for SystemSecrets {
    fn fill(&self, bytes: &mut [u8; SECRET_BYTES]) -> Result<()> {
        getrandom::fill(bytes).map_err(|error| {
            Error::unavailable("the operating system provides no random numbers, so no key can be created")
                .with_source(error)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn short_work_does_not_wait_for_long_work() {
        let pool = Arc::new(BlockingPool::new());
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let long: Vec<_> = (0..64)
            .map(|_| {
                let (pool, held) = (Arc::clone(&pool), Arc::clone(&held));
                let work = move || {
                    let _ = held.lock().unwrap().recv();
                };
                tokio::spawn(async move { pool.run(Load::Long, Box::new(work)).await })
            })
            .collect();
        tokio::task::yield_now().await;
        let answer = strata_core::ports::compute(pool.as_ref(), Load::Short, || 42).await.unwrap();
        assert_eq!(answer, 42);
        assert!(long.iter().all(|one| !one.is_finished()));
        drop(release);
        for one in long {
            one.await.unwrap();
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn short_work_stays_on_its_thread_and_others_go_on() {
        let pool = BlockingPool::new();
        let (send, receive) = std::sync::mpsc::channel();
        // The other task can only run if another thread takes over, because the only one is busy.
        let asked = tokio::spawn(async move {
            let before = std::thread::current().id();
            let other = tokio::spawn(async move { send.send(()).unwrap() });
            let during = strata_core::ports::compute(&pool, Load::Short, move || {
                receive.recv().unwrap();
                std::thread::current().id()
            });
            assert_eq!(during.await.unwrap(), before);
            other.await.unwrap();
        });
        asked.await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn short_work_that_panics_is_an_error() {
        let pool = BlockingPool::new();
        let result: Result<u8> = strata_core::ports::compute(&pool, Load::Short, || panic!("a bug")).await;
        assert_eq!(result.unwrap_err().kind(), strata_core::ErrorKind::Internal);
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error() {
        let pool = BlockingPool::new();
        let result: Result<u8> = strata_core::ports::compute(&pool, Load::Short, || panic!("a bug")).await;
        assert_eq!(result.unwrap_err().kind(), strata_core::ErrorKind::Internal);
    }

    #[test]
    fn ids_rise_within_the_process() {
        let ids = SystemIds::new();
        let made: Vec<Uuid> = (0..20_000).map(|_| ids.next()).collect();
        assert!(made.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(made.iter().all(|id| id.get_version_num() == 7));
    }

    #[test]
    fn threads_never_share_an_id() {
        let ids = Arc::new(SystemIds::new());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let ids = Arc::clone(&ids);
                std::thread::spawn(move || (0..5_000).map(|_| ids.next()).collect::<Vec<_>>())
            })
            .collect();
        let made: HashSet<Uuid> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(made.len(), 20_000);
    }

    #[test]
    fn every_secret_is_different() {
        let secret = || {
            let mut bytes = [0; SECRET_BYTES];
            SystemSecrets.fill(&mut bytes).unwrap();
            bytes
        };
        let made: HashSet<_> = (0..1_000).map(|_| secret()).collect();
        assert_eq!(made.len(), 1_000);
    }

    #[test]
    fn the_clock_shows_microseconds() {
        let now = SystemClock.now();
        assert_eq!(now.as_nanosecond() % 1_000, 0);
        assert!(now.as_second() > 1_700_000_000);
    }
}
