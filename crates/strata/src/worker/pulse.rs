//! The pulse of the background tasks. A task without work waits for the next beat, so that an idle process wakes once a
//! second, however many tasks it has.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
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

/// Four beats a second while there is work, so that a request row is stored soon after its request; else one.
const RHYTHM: Rhythm =
    Rhythm { quick: Duration::from_millis(250), slow: Duration::from_secs(1), busy: Duration::from_secs(5) };

/// The pulse, as one task sees it.
#[derive(Clone)]
pub(super) struct Pulse {
    beats: watch::Receiver<u64>,
    /// The last time at which a task found work.
    worked: Arc<watch::Sender<Option<Instant>>>,
}

impl Pulse {
    /// Starts the beats. They end when the worker is stopped.
    pub(super) fn start(stopped: watch::Receiver<bool>) -> (Self, JoinHandle<()>) {
        Self::with(RHYTHM, stopped)
    }

    fn with(rhythm: Rhythm, stopped: watch::Receiver<bool>) -> (Self, JoinHandle<()>) {
        let (sender, beats) = watch::channel(0);
        let (worked, noticed) = watch::channel(None);
        let beating = tokio::spawn(beat(rhythm, sender, noticed, stopped));
        (Self { beats, worked: Arc::new(worked) }, beating)
    }

    /// Notes that a task found work: the next beats come quickly.
    pub(super) fn found_work(&self) {
        self.worked.send_replace(Some(Instant::now()));
    }

    /// Waits for a beat whose number is a multiple of `every`. Without beats, because the worker is stopped, it returns.
    pub(super) async fn wait(&mut self, every: u64) {
        self.beats.mark_unchanged();
        while self.beats.changed().await.is_ok() {
            if self.beats.borrow_and_update().is_multiple_of(every) {
                return;
            }
        }
    }
}

async fn beat(
    rhythm: Rhythm,
    beats: watch::Sender<u64>,
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
                beats.send_modify(|number| *number += 1);
            }
            // The next beat of an idle process comes earlier as soon as there is work.
            Ok(()) = worked.changed(), if !is_busy => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sixty times as fast as the real one.
    const FAST: Rhythm = Rhythm {
        quick: Duration::from_millis(5),
        slow: Duration::from_millis(20),
        busy: Duration::from_millis(200),
    };

    async fn beats_in(pulse: &mut Pulse, time: Duration) -> u32 {
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
        let (mut pulse, beating) = Pulse::with(FAST, stopped);
        let idle = beats_in(&mut pulse, FAST.slow * 10).await;
        assert!((1..=10).contains(&idle), "{idle} beats");
        pulse.found_work();
        pulse.wait(1).await;
        // The quick beats end when there was no work for a while.
        beats_in(&mut pulse, FAST.busy).await;
        let idle = beats_in(&mut pulse, FAST.slow * 10).await;
        assert!((1..=11).contains(&idle), "{idle} beats");
        stop.send_replace(true);
        beating.await.unwrap();
        pulse.wait(1).await;
    }

    #[tokio::test]
    async fn some_tasks_take_only_every_eighth_beat() {
        let (_stop, stopped) = watch::channel(false);
        let (mut pulse, _beating) = Pulse::with(FAST, stopped);
        let began = Instant::now();
        pulse.wait(8).await;
        assert!(began.elapsed() >= FAST.slow * 7);
        assert_eq!(*pulse.beats.borrow() % 8, 0);
    }
}
