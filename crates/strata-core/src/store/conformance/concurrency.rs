//! Concurrent calls. [`conformance_suite`](crate::conformance_suite) makes the tests, because it has a runtime to spawn
//! tasks on. This module has the work of each task and the checks afterwards.

use std::collections::BTreeSet;

use super::fixture::*;
use crate::error::ErrorKind;
use crate::id::{JobId, TurnId};
use crate::job::{Job, JobOutcome, JobStatus};
use crate::store::{
    AppendedTurn, Applied, Change, ChangeSet, CheckDepth, Expectation, Idempotency, JobQuery, Store,
};

/// The number of concurrent writers.
pub const WRITERS: usize = 16;

/// The number of calls per writer.
const CALLS: usize = 20;

/// One writer: appends one to three turns per call to a shared session, and returns the answers.
pub async fn append_as(store: &dyn Store, writer: usize) -> Vec<AppendedTurn> {
    let mut answers = Vec::new();
    for call in 0..CALLS {
        let count = 1 + (writer + call) % 3;
        let turns =
            (0..count).map(|number| turn(&format!("writer{writer} call{call} part{number}"))).collect();
        let applied = apply(store, &ann(), appending("shared", turns)).await;
        assert_eq!(applied.turns.len(), count);
        let together = applied.turns.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq);
        assert!(together, "turns of one call were torn apart");
        answers.extend(applied.turns);
    }
    answers
}

/// The session has no gap and no duplicate, every writer got the right answer, and the order of its turns was kept.
pub async fn verify(store: &dyn Store, answers: Vec<Vec<AppendedTurn>>) {
    let turns = all_turns(store, &ann(), "shared").await;
    let stored: Vec<(u64, TurnId)> = turns.iter().map(|turn| (turn.seq, turn.id)).collect();
    for writer in &answers {
        assert!(writer.is_sorted_by_key(|turn| turn.seq), "a writer's own order was lost");
    }
    let told: BTreeSet<(u64, TurnId)> = answers.iter().flatten().map(|turn| (turn.seq, turn.id)).collect();
    assert_eq!(stored.len(), told.len());
    assert_eq!(stored, told.into_iter().collect::<Vec<_>>());
    assert!(
        stored.iter().zip(0..).all(|((seq, _), expected)| *seq == expected),
        "there is a gap or a double"
    );
    for writer in [0, WRITERS - 1] {
        let query = crate::store::TextQuery { limit: u32::MAX, ..words(&format!("writer{writer}")) };
        assert_eq!(found(store, &ann(), &query).await.len(), answers[writer].len());
    }
    let session = store.session(&ann(), &session("shared")).await.unwrap().unwrap();
    assert_eq!(session.turn_count, stored.len() as u64);
    assert_eq!(store.check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());
}

/// One of many calls with the same idempotency key.
pub async fn append_with_key(store: &dyn Store) -> Applied {
    let idempotency = Some(Idempotency { key: "key".to_owned(), fingerprint: 7 });
    let changes = vec![appending("s", vec![turn("once")])];
    store.apply(&ann(), ChangeSet { idempotency, ..ChangeSet::new(at(0), changes) }).await.unwrap()
}

/// One call wrote; all others got its answer.
pub async fn verify_key(store: &dyn Store, answers: Vec<Applied>) {
    let turns = all_turns(store, &ann(), "s").await;
    assert_eq!(turns.len(), 1);
    assert_eq!(answers.iter().filter(|answer| !answer.replayed).count(), 1);
    for answer in answers {
        assert_eq!(answer.turns, [AppendedTurn { id: turns[0].id, seq: 0 }]);
    }
}

/// One of many writers that have read that a session does not exist. Returns whether it was the first to write.
pub async fn append_expecting(store: &dyn Store) -> bool {
    let expectation = Expectation::Session { id: session("s"), version: 0 };
    let changes = ChangeSet::one(at(0), appending("s", vec![turn("once")])).expecting(expectation);
    match store.apply(&ann(), changes).await {
        Ok(_) => true,
        Err(error) => {
            assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Conflict, true));
            false
        }
    }
}

/// One of the writers wrote; all others got a conflict.
pub async fn verify_expecting(store: &dyn Store, answers: Vec<bool>) {
    assert_eq!(answers.iter().filter(|wrote| **wrote).count(), 1);
    assert_eq!(all_turns(store, &ann(), "s").await.len(), 1);
}

/// Jobs of five sessions of two users.
pub async fn enqueue(store: &dyn Store) {
    for number in 0..60 {
        let user = if number % 2 == 0 { ann() } else { bob() };
        let job = Job { user, ..job(Some(&format!("s{}", number % 5)), 0) };
        apply(store, &job.user.clone(), Change::EnqueueJob(Box::new(job))).await;
    }
}

/// One worker: takes jobs and finishes them until the queue is empty. It also appends a turn for each job to the job's
/// session.
pub async fn work_as(store: &dyn Store, worker: usize) -> Vec<JobId> {
    let mut done = Vec::new();
    loop {
        let Some(job) = store.lease_job(&lease(1, 1_000)).await.unwrap() else {
            if all_done(store).await {
                return done;
            }
            // Every session with open jobs is leased by another worker, who is about to finish.
            continue;
        };
        let session = job.session.clone().unwrap();
        let held = job.lease.clone().unwrap();
        let changes = vec![
            appending(session.as_str(), vec![turn(&format!("worker {worker} did {}", job.id))]),
            Change::FinishJob { id: job.id, lease: held.id, outcome: JobOutcome::done() },
        ];
        store.apply(&job.user, ChangeSet::new(at(2), changes)).await.unwrap();
        done.push(job.id);
    }
}

async fn all_done(store: &dyn Store) -> bool {
    let mut open = 0;
    for user in [ann(), bob()] {
        for status in [JobStatus::Queued, JobStatus::Leased] {
            let query = JobQuery { status: Some(status), limit: 1, ..JobQuery::default() };
            open += store.jobs(&user, &query).await.unwrap().len();
        }
    }
    open == 0
}

/// Every job was done exactly once.
pub async fn verify_work(store: &dyn Store, done: Vec<JobId>) {
    assert_eq!(done.len(), 60);
    assert_eq!(done.into_iter().collect::<BTreeSet<_>>().len(), 60);
    let mut turns = 0;
    for user in [ann(), bob()] {
        for number in 0..5 {
            turns += all_turns(store, &user, &format!("s{number}")).await.len();
        }
    }
    assert_eq!(turns, 60);
}
