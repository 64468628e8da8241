//! The pulse of the background tasks. A task without work waits for the next beat, so that an idle process wakes no more than
//! once a second, however many tasks it has.
//!
//! A beat goes from task to task: each wakes the next one. Tasks that are woken together would wake a thread each, which
//! finds nothing to do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How often there are beats.
#[derive(Debug, Clone, Copy)]
struct Rhythm {
    /// The time between two beats while there is work.
    quick: Duration,
    /// The time between two beats of an idle process.
    slow: Duration,
    /// How long after the last work the beats stay quick.
    busy: Duration,
}

/// Four beats a second while there is work, so that a request row is stored soon after its request; else two in five seconds,
/// because the runtime's timer wakes its thread twice for each.
const RHYTHM: Rhythm = Rhythm {
    quick: Duration::from_millis(250),
    slow: Duration::from_millis(2_500),
    busy: Duration::from_secs(5),
};

/// The pulse, as the tasks see it.
#[derive(Clone)]
pub(super) struct Pulse {
    waiters: Arc<Mutex<Waiters>>,
    /// The last time at which a task found work.
    worked: Arc<watch::Sender<Option<Instant>>>,
}

/// The tasks that wait for a beat.
#[derive(Default)]
struct Waiters {
    waiting: Vec<Waiter>,
    /// The number of the last beat.
    number: u64,
    /// Whether there are no more beats.
    ended: bool,
}

/// A task that waits for a beat whose number is a multiple of `every`.
struct Waiter {
    every: u64,
    woken: oneshot::Sender<Beat>,
}

/// A beat, with the tasks that it still has to reach. The task that drops it hands it on.
struct Beat(Vec<Waiter>);

impl Drop for Beat {
    fn drop(&mut self) {
        if let Some(next) = self.0.pop() {
            // A task that waits no longer gives the beat back, and it goes on from here.
            drop(next.woken.send(Self(std::mem::take(&mut self.0))));
        }
    }
}

impl Waiters {
    /// The next beat, for the tasks whose turn it is.
    fn next_beat(&mut self) -> Beat {
        self.number += 1;
        let number = self.number;
        self.waiting.retain(|waiter| !waiter.woken.is_closed());
        Beat(self.waiting.extract_if(.., |waiter| number.is_multiple_of(waiter.every)).collect())
    }

    fn end(&mut self) {
        self.ended = true;
        self.waiting.clear();
    }
}

impl Pulse {
    /// Starts the beats. They end when the worker is stopped.
    pub(super) fn start(stopped: watch::Receiver<bool>) -> (Self, JoinHandle<()>) {
        Self::with(RHYTHM, stopped)
    }

    fn with(rhythm: Rhythm, stopped: watch::Receiver<bool>) -> (Self, JoinHandle<()>) {
        let (worked, noticed) = watch::channel(None);
        let pulse = Self { waiters: Arc::default(), worked: Arc::new(worked) };
        let beating = tokio::spawn(beat(rhythm, Arc::clone(&pulse.waiters), noticed, stopped));
        (pulse, beating)
    }

    /// Notes that a task found work: the next beats come quickly.
    pub(super) fn found_work(&self) {
        self.worked.send_replace(Some(Instant::now()));
    }

    /// Waits for a beat whose number is a multiple of `every`. Without beats, because the worker is stopped, it returns.
    pub(super) async fn wait(&self, every: u64) {
        let (woken, waking) = oneshot::channel();
        {
            let mut waiters = lock(&self.waiters);
            if waiters.ended {
                return;
            }
            waiters.waiting.push(Waiter { every, woken });
        }
        // The beat goes on to the next task at once, however long the work of this one takes.
        drop(waking.await);
    }
}

fn lock(waiters: &Mutex<Waiters>) -> MutexGuard<'_, Waiters> {
    waiters.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn beat(
    rhythm: Rhythm,
    waiters: Arc<Mutex<Waiters>>,
    mut worked: watch::Receiver<Option<Instant>>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut last = Instant::now();
    loop {
        let is_busy = worked.borrow_and_update().is_some_and(|at| at.elapsed() < rhythm.busy);
        let next = last + if is_busy { rhythm.quick } else { rhythm.slow };
        tokio::select! {
            () = tokio::time::sleep_until(next) => {
                last = Instant::now();
                let beat = lock(&waiters).next_beat();
                drop(beat);
            }
            // The next beat of an idle process comes earlier as soon as there is work.
            Ok(()) = worked.changed(), if !is_busy => {}
            _ = stopped.wait_for(|stopped| *stopped) => return lock(&waiters).end(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Much faster than the real one.
    const FAST: Rhythm = Rhythm {
        quick: Duration::from_millis(5),
        slow: Duration::from_millis(20),
        busy: Duration::from_millis(200),
    };

    async fn beats_in(pulse: &Pulse, time: Duration) -> u32 {
        let end = Instant::now() + time;
        let mut beats = 0;
        while tokio::time::timeout_at(end, pulse.wait(1)).await.is_ok() {
            beats += 1;
        }
        beats
    }

    #[tokio::test]
    async fn an_idle_process_wakes_no_more_often_than_it_says() {
        let (stop, stopped) = watch::channel(false);
        let (pulse, beating) = Pulse::with(FAST, stopped);
        let idle = beats_in(&pulse, FAST.slow * 10).await;
        assert!((1..=10).contains(&idle), "{idle} beats");
        pulse.found_work();
        pulse.wait(1).await;
        // The quick beats end when there was no work for a while.
        beats_in(&pulse, FAST.busy).await;
        let idle = beats_in(&pulse, FAST.slow * 10).await;
        assert!((1..=11).contains(&idle), "{idle} beats");
        stop.send_replace(true);
        beating.await.unwrap();
        pulse.wait(1).await;
    }

    #[tokio::test]
    async fn some_tasks_take_only_every_eighth_beat() {
        let (_stop, stopped) = watch::channel(false);
        let (pulse, _beating) = Pulse::with(FAST, stopped);
        let began = Instant::now();
        pulse.wait(8).await;
        assert!(began.elapsed() >= FAST.slow * 7);
        assert_eq!(lock(&pulse.waiters).number % 8, 0);
    }

    #[test]
    fn a_beat_wakes_one_task_after_the_other_and_none_that_waits_no_longer_holds_it_up() {
        let pulse = Pulse { waiters: Arc::default(), worked: Arc::new(watch::channel(None).0) };
        let context = &mut Context::from_waker(Waker::noop());
        let mut waiting: Vec<_> = (0..4).map(|_| Box::pin(pulse.wait(1))).collect();
        let mut later = pin!(pulse.wait(2));
        for one in &mut waiting {
            assert!(one.as_mut().poll(context).is_pending());
        }
        assert!(later.as_mut().poll(context).is_pending());
        // One waits no longer before the beat, another one when the beat has reached it already.
        drop(waiting.remove(2));
        drop(lock(&pulse.waiters).next_beat());
        drop(waiting.pop());
        assert_eq!(waiting[0].as_mut().poll(context), Poll::Pending, "the other one has to hand the beat on");
        assert_eq!(waiting[1].as_mut().poll(context), Poll::Ready(()));
        assert_eq!(waiting[0].as_mut().poll(context), Poll::Ready(()));
        assert!(later.as_mut().poll(context).is_pending(), "its turn is the second beat");
        drop(lock(&pulse.waiters).next_beat());
        assert!(later.as_mut().poll(context).is_ready());
    }
}
