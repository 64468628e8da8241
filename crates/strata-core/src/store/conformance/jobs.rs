//! Jobs: leased in order, one per session, taken over, finished once.

use serde_json::json;

use super::fixture::*;
use crate::error::ErrorKind;
use crate::id::{JobId, LeaseId, UserId};
use crate::job::{Job, JobOutcome, JobStatus, Lease};
use crate::store::{Change, ChangeSet, JobQuery, LeaseRequest, Store};

async fn read(store: &dyn Store, id: JobId) -> Job {
    let query = JobQuery { id: Some(id), limit: 1, ..JobQuery::default() };
    store.jobs(&ann(), &query).await.unwrap().pop().expect("the job exists")
}

async fn take(store: &dyn Store, now: i64, until: i64) -> Option<Job> {
    store.lease_job(&lease(now, until)).await.unwrap()
}

fn held(job: &Job) -> LeaseId {
    job.lease.as_ref().expect("the job is leased").id
}

fn finishing(job: &Job, outcome: JobOutcome) -> Change {
    Change::FinishJob { id: job.id, lease: held(job), outcome }
}

/// A leased job names its lease, and its attempts rise by one.
pub async fn leases_a_job(store: &dyn Store) {
    let queued = job(Some("s"), 0);
    enqueue(store, vec![queued.clone()]).await;
    let request = lease(5, 65);
    let leased = store.lease_job(&request).await.unwrap().unwrap();
    let expected = Job {
        status: JobStatus::Leased,
        attempts: 1,
        lease: Some(Lease { id: request.lease, worker: request.worker.clone(), until: at(65) }),
        updated_at: at(5),
        ..queued
    };
    assert_eq!(leased, expected);
    assert_eq!(read(store, leased.id).await, expected);
    assert_eq!(take(store, 5, 65).await, None);
}

/// No job is leased before it is due, or if there is no job.
pub async fn has_nothing_to_lease_before_its_time(store: &dyn Store) {
    assert_eq!(take(store, 0, 9).await, None);
    let ids = enqueue(store, vec![job(None, 10)]).await;
    assert_eq!(take(store, 9, 99).await, None);
    assert_eq!(take(store, 10, 99).await.unwrap().id, ids[0]);
}

/// Of the jobs that are due, the one that has waited longest comes first.
pub async fn leases_what_has_waited_longest(store: &dyn Store) {
    let ids = enqueue(store, vec![job(None, 30), job(None, 10), job(None, 20), job(None, 50)]).await;
    let mut taken = Vec::new();
    while let Some(job) = take(store, 40, 99).await {
        taken.push(job.id);
    }
    assert_eq!(taken, [ids[1], ids[2], ids[0]]);
}

/// All users share one queue.
pub async fn leases_jobs_of_all_users(store: &dyn Store) {
    let bobs = Job { user: bob(), ..job(None, 10) };
    enqueue(store, vec![job(None, 20), bobs, job(None, 5)]).await;
    let mut users = Vec::new();
    while let Some(job) = take(store, 40, 99).await {
        users.push(job.user);
    }
    assert_eq!(users, [ann(), bob(), ann()]);
}

/// A request that names a user takes only that user's jobs.
pub async fn leases_jobs_of_one_user(store: &dyn Store) {
    let bobs = Job { user: bob(), ..job(None, 20) };
    enqueue(store, vec![job(None, 10), bobs, job(None, 5)]).await;
    let of = |user: &str| LeaseRequest { user: Some(UserId::new(user).unwrap()), ..lease(40, 99) };
    assert_eq!(store.lease_job(&of("nobody")).await.unwrap(), None);
    assert_eq!(store.lease_job(&of(bob().as_str())).await.unwrap().unwrap().user, bob());
    assert_eq!(store.lease_job(&of(bob().as_str())).await.unwrap(), None);
    assert_eq!(take(store, 40, 99).await.unwrap().user, ann());
}

/// Users take turns: the many jobs of one do not hold up the few of others, and each user's jobs come in their order.
pub async fn serves_users_in_turn(store: &dyn Store) {
    let ids = enqueue(store, (0..100).map(|due| job(None, due)).collect()).await;
    for other in [bob(), user("cleo")] {
        let job = Job { user: other.clone(), ..job(Some("s"), 200) };
        apply(store, &other, Change::EnqueueJob(Box::new(job))).await;
    }
    let mut after = Some(ann());
    let mut next = async || {
        let request = LeaseRequest { after: after.clone(), ..lease(300, 999) };
        let job = store.lease_job(&request).await.unwrap().expect("a job is due");
        after = Some(job.user.clone());
        job
    };
    let mut others = [next().await.user, next().await.user];
    others.sort();
    assert_eq!(others, [bob(), user("cleo")]);
    for id in ids {
        assert_eq!(next().await.id, id);
    }
    for after in [ann(), user("nobody")] {
        assert_eq!(
            store.lease_job(&LeaseRequest { after: Some(after), ..lease(301, 999) }).await.unwrap(),
            None
        );
    }
    // A lease that has ended and a request for one user take turns as well.
    let again = LeaseRequest { after: Some(bob()), user: Some(bob()), ..lease(1_000, 2_000) };
    assert_eq!(store.lease_job(&again).await.unwrap().unwrap().user, bob());
}

/// A user whose jobs cannot be taken is passed over.
pub async fn passes_over_users_whose_jobs_wait(store: &dyn Store) {
    enqueue(store, (0..20).map(|due| job(Some("s"), due)).collect()).await;
    let cleo = user("cleo");
    let late = Job { user: bob(), ..job(None, 500) };
    apply(store, &bob(), Change::EnqueueJob(Box::new(late))).await;
    let due = Job { user: cleo.clone(), ..job(None, 30) };
    apply(store, &cleo, Change::EnqueueJob(Box::new(due))).await;
    let take = async |after: &UserId| {
        let request = LeaseRequest { after: Some(after.clone()), ..lease(100, 999) };
        store.lease_job(&request).await.unwrap().map(|job| job.user)
    };
    assert_eq!(take(&cleo).await, Some(ann()));
    assert_eq!(take(&cleo).await, Some(cleo.clone()), "the session of ann is held, and bob's job is not due");
    assert_eq!(take(&cleo).await, None);
}

/// While a live lease holds a session, no other job of that session is leased; jobs of other sessions are.
pub async fn holds_one_job_a_session_at_a_time(store: &dyn Store) {
    let ids =
        enqueue(store, vec![job(Some("s"), 1), job(Some("s"), 2), job(Some("t"), 3), job(None, 4)]).await;
    let first = take(store, 10, 99).await.unwrap();
    assert_eq!(first.id, ids[0]);
    assert_eq!(take(store, 10, 99).await.unwrap().id, ids[2]);
    assert_eq!(take(store, 10, 99).await.unwrap().id, ids[3]);
    assert_eq!(take(store, 10, 99).await, None);
    apply_at(store, &ann(), 11, finishing(&first, JobOutcome::done())).await;
    assert_eq!(take(store, 11, 99).await.unwrap().id, ids[1]);
}

/// Sessions of the same name of two users are two sessions.
pub async fn sessions_of_two_users_do_not_hold_each_other_up(store: &dyn Store) {
    let bobs = Job { user: bob(), ..job(Some("s"), 2) };
    enqueue(store, vec![job(Some("s"), 1), bobs]).await;
    assert_eq!(take(store, 10, 99).await.unwrap().user, ann());
    assert_eq!(take(store, 10, 99).await.unwrap().user, bob());
}

/// A job whose lease has ended is taken over under a new one.
pub async fn takes_a_job_over_when_its_lease_has_ended(store: &dyn Store) {
    enqueue(store, vec![job(Some("s"), 0), job(Some("s"), 1)]).await;
    let first = take(store, 10, 20).await.unwrap();
    assert_eq!(take(store, 19, 99).await, None);
    let second = take(store, 20, 99).await.unwrap();
    assert_eq!((second.id, second.attempts), (first.id, 2));
    assert_ne!(held(&second), held(&first));
    assert_eq!(take(store, 21, 99).await, None, "the session is held by the new lease");
}

/// A finished job is done, and never leased again.
pub async fn finishes_a_job(store: &dyn Store) {
    enqueue(store, vec![job(Some("s"), 0)]).await;
    let leased = take(store, 1, 9).await.unwrap();
    apply_at(store, &ann(), 5, finishing(&leased, JobOutcome::done())).await;
    let expected = Job { status: JobStatus::Done, lease: None, updated_at: at(5), ..leased.clone() };
    assert_eq!(read(store, leased.id).await, expected);
    assert_eq!(take(store, 1_000, 2_000).await, None);
}

/// A dropped job is removed, and its id is free again. In one change set this works as a longer lease.
pub async fn drops_a_job(store: &dyn Store) {
    enqueue(store, vec![job(None, 0)]).await;
    let leased = take(store, 1, 9).await.unwrap();
    let until = Lease { until: at(50), ..leased.lease.clone().unwrap() };
    let longer = Job { lease: Some(until), ..leased.clone() };
    let changes = vec![finishing(&leased, JobOutcome::Dropped), Change::EnqueueJob(Box::new(longer.clone()))];
    store.apply(&ann(), ChangeSet::new(at(5), changes)).await.unwrap();
    assert_eq!(read(store, leased.id).await, longer);
    assert_eq!(take(store, 20, 99).await, None, "it is still held");
    apply_at(store, &ann(), 30, finishing(&longer, JobOutcome::Dropped)).await;
    let query = JobQuery { limit: 9, ..JobQuery::default() };
    assert_eq!(store.jobs(&ann(), &query).await.unwrap(), []);
    assert_eq!(take(store, 1_000, 2_000).await, None);
}

/// Finishing under a lease that was lost is a conflict, and nothing of its change set is stored.
pub async fn a_lost_lease_conflicts_and_applies_nothing(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    enqueue(store, vec![job(Some("s"), 0)]).await;
    let slow = take(store, 1, 2).await.unwrap();
    let quick = take(store, 3, 99).await.unwrap();
    let result = |text: &str, job: &Job, outcome| {
        let add = Change::AddMemory(Box::new(memory(text)));
        ChangeSet::new(at(4), vec![add, finishing(job, outcome)])
    };
    for outcome in [
        JobOutcome::done(),
        JobOutcome::Retry { run_at: at(9), error: "late".to_owned() },
        JobOutcome::Dead { error: "late".to_owned() },
    ] {
        assert_eq!(kind(store.apply(&ann(), result("slow", &slow, outcome)).await), ErrorKind::Conflict);
    }
    assert!(current(store, &ann()).await.is_empty());
    assert_eq!(read(store, quick.id).await, quick);
    store.apply(&ann(), result("quick", &quick, JobOutcome::done())).await.unwrap();
    assert_eq!(current(store, &ann()).await[0].content, "quick");
    assert_eq!(
        kind(store.apply(&ann(), result("slow", &slow, JobOutcome::done())).await),
        ErrorKind::Conflict
    );
}

/// A lease that has ended is still the current one until another worker takes the job over.
pub async fn an_ended_lease_that_nobody_took_over_still_finishes(store: &dyn Store) {
    enqueue(store, vec![job(None, 0)]).await;
    let leased = take(store, 1, 2).await.unwrap();
    apply_at(store, &ann(), 50, finishing(&leased, JobOutcome::done())).await;
    assert_eq!(read(store, leased.id).await.status, JobStatus::Done);
}

/// A lease ends with the job: it cannot finish the job again.
pub async fn finishing_twice_conflicts(store: &dyn Store) {
    enqueue(store, vec![job(None, 0)]).await;
    let leased = take(store, 1, 9).await.unwrap();
    apply(store, &ann(), finishing(&leased, JobOutcome::done())).await;
    assert_eq!(refuse(store, &ann(), finishing(&leased, JobOutcome::done())).await, ErrorKind::Conflict);
}

/// A failed job waits until it is due again, with its attempts and its error.
pub async fn puts_a_failed_job_back(store: &dyn Store) {
    enqueue(store, vec![job(Some("s"), 0)]).await;
    let leased = take(store, 1, 9).await.unwrap();
    let outcome = JobOutcome::Retry { run_at: at(30), error: "模型 timed out".to_owned() };
    apply_at(store, &ann(), 5, finishing(&leased, outcome)).await;
    let expected = Job {
        status: JobStatus::Queued,
        run_at: at(30),
        lease: None,
        last_error: Some("模型 timed out".to_owned()),
        updated_at: at(5),
        ..leased.clone()
    };
    assert_eq!(read(store, leased.id).await, expected);
    assert_eq!(take(store, 29, 99).await, None);
    let again = take(store, 30, 99).await.unwrap();
    assert_eq!((again.id, again.attempts), (leased.id, 2));
}

/// A dead job stays until it is retried, with its attempts at zero.
pub async fn buries_and_retries_a_dead_job(store: &dyn Store) {
    enqueue(store, vec![job(Some("s"), 0)]).await;
    let leased = take(store, 1, 9).await.unwrap();
    apply_at(store, &ann(), 5, finishing(&leased, JobOutcome::Dead { error: "refused".to_owned() })).await;
    let dead = read(store, leased.id).await;
    assert_eq!((dead.status, dead.lease, dead.attempts), (JobStatus::Dead, None, 1));
    assert_eq!(dead.last_error.as_deref(), Some("refused"));
    assert_eq!(take(store, 1_000, 2_000).await, None);
    apply_at(store, &ann(), 1_000, Change::RetryJob { id: leased.id }).await;
    let queued = read(store, leased.id).await;
    assert_eq!((queued.status, queued.attempts), (JobStatus::Queued, 0));
    assert_eq!(take(store, 1_000, 2_000).await.unwrap().attempts, 1);
}

/// Only a dead job can be retried.
pub async fn refuses_to_retry_a_job_that_is_not_dead(store: &dyn Store) {
    let id = enqueue(store, vec![job(None, 0)]).await[0];
    assert_eq!(refuse(store, &ann(), Change::RetryJob { id }).await, ErrorKind::Conflict);
    let leased = take(store, 1, 9).await.unwrap();
    assert_eq!(refuse(store, &ann(), Change::RetryJob { id }).await, ErrorKind::Conflict);
    apply(store, &ann(), finishing(&leased, JobOutcome::done())).await;
    assert_eq!(refuse(store, &ann(), Change::RetryJob { id }).await, ErrorKind::Conflict);
}

/// An id that exists already is a conflict.
pub async fn refuses_an_id_that_exists(store: &dyn Store) {
    let first = job(None, 0);
    enqueue(store, vec![first.clone()]).await;
    let again = Job { kind: "other".to_owned(), ..first.clone() };
    assert_eq!(refuse(store, &ann(), Change::EnqueueJob(Box::new(again))).await, ErrorKind::Conflict);
    assert_eq!(read(store, first.id).await, first);
}

/// A job that does not exist can neither be finished nor retried.
pub async fn refuses_unknown_jobs(store: &dyn Store) {
    let id = JobId(fresh());
    let change = Change::FinishJob { id, lease: LeaseId(fresh()), outcome: JobOutcome::done() };
    assert_eq!(refuse(store, &ann(), change).await, ErrorKind::NotFound);
    assert_eq!(refuse(store, &ann(), Change::RetryJob { id }).await, ErrorKind::NotFound);
}

/// Jobs are listed newest first, by state and session, up to the limit.
pub async fn lists_jobs_newest_first_and_by_choice(store: &dyn Store) {
    let ids = enqueue(store, vec![job(Some("s"), 2), job(Some("t"), 1), job(None, 3)]).await;
    take(store, 1, 9).await.unwrap();
    let all = JobQuery { limit: 9, ..JobQuery::default() };
    for (query, expected) in [
        (all.clone(), vec![ids[2], ids[0], ids[1]]),
        (JobQuery { limit: 2, ..all.clone() }, vec![ids[2], ids[0]]),
        (JobQuery { status: Some(JobStatus::Leased), ..all.clone() }, vec![ids[1]]),
        (JobQuery { status: Some(JobStatus::Queued), ..all.clone() }, vec![ids[2], ids[0]]),
        (JobQuery { session: Some(session("s")), ..all.clone() }, vec![ids[0]]),
        (JobQuery { id: Some(ids[1]), ..all.clone() }, vec![ids[1]]),
        (JobQuery { id: Some(JobId(fresh())), ..all.clone() }, vec![]),
    ] {
        let jobs = store.jobs(&ann(), &query).await.unwrap();
        assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), expected, "{query:?}");
    }
}

/// A job comes back as it was given.
pub async fn keeps_everything_of_a_job(store: &dyn Store) {
    let full = Job {
        kind: "extract".to_owned(),
        payload: json!({"turns": [1, 2], "深": {"x": null}}),
        attempts: 3,
        last_error: Some("earlier".to_owned()),
        run_at: at(9),
        created_at: at(1),
        updated_at: at(2),
        ..job(Some("user:agent:1"), 0)
    };
    enqueue(store, vec![full.clone()]).await;
    assert_eq!(read(store, full.id).await, full);
}

/// A finished job keeps its report; a failed job keeps the report that it had.
pub async fn keeps_a_jobs_result(store: &dyn Store) {
    enqueue(store, vec![Job { result: Some(json!({"deep": ["深", null]})), ..job(None, 0) }]).await;
    let leased = take(store, 1, 9).await.unwrap();
    assert_eq!(leased.result, Some(json!({"deep": ["深", null]})));
    let outcome = JobOutcome::Retry { run_at: at(5), error: "late".to_owned() };
    apply(store, &ann(), finishing(&leased, outcome)).await;
    assert_eq!(read(store, leased.id).await.result, leased.result);
    let leased = take(store, 5, 9).await.unwrap();
    let result = Some(json!({"spent": {"calls": 2}}));
    apply(store, &ann(), finishing(&leased, JobOutcome::Done { result: result.clone() })).await;
    assert_eq!(read(store, leased.id).await.result, result);
}

/// A job that was too early waits again, and its attempt does not count.
pub async fn puts_a_job_back_that_came_too_early(store: &dyn Store) {
    enqueue(store, vec![job(Some("s"), 0)]).await;
    let leased = take(store, 1, 9).await.unwrap();
    apply_at(store, &ann(), 5, finishing(&leased, JobOutcome::Later { run_at: at(30) })).await;
    let expected = Job {
        status: JobStatus::Queued,
        attempts: 0,
        run_at: at(30),
        lease: None,
        updated_at: at(5),
        ..leased.clone()
    };
    assert_eq!(read(store, leased.id).await, expected);
    assert_eq!(take(store, 29, 99).await, None);
    assert_eq!(take(store, 30, 99).await.unwrap().attempts, 1);
}

/// No job is added if one of the same kind waits for the same session. A leased, finished or dead job does not wait.
pub async fn asks_once_for_what_waits_already(store: &dyn Store) {
    let once = |job: Job| Change::EnqueueOnce(Box::new(job));
    let first = job(Some("s"), 0);
    for asked in [first.clone(), job(Some("s"), 3)] {
        apply(store, &ann(), once(asked)).await;
    }
    let all = JobQuery { limit: 99, ..JobQuery::default() };
    assert_eq!(store.jobs(&ann(), &all).await.unwrap(), std::slice::from_ref(&first));
    for other in [job(Some("t"), 1), job(None, 1), Job { kind: "other".to_owned(), ..job(Some("s"), 1) }] {
        apply(store, &ann(), once(other.clone())).await;
        apply(store, &ann(), once(Job { id: JobId(fresh()), ..other.clone() })).await;
        assert_eq!(read(store, other.id).await, other);
    }
    assert_eq!(store.jobs(&ann(), &all).await.unwrap().len(), 4);
    let bobs = Job { user: bob(), ..job(Some("s"), 1) };
    apply(store, &bob(), once(bobs)).await;
    assert_eq!(store.jobs(&bob(), &all).await.unwrap().len(), 1);
    assert_eq!(refuse(store, &bob(), once(job(Some("new"), 1))).await, ErrorKind::Invalid);

    // The job is leased, and then finished: in neither state does it prevent another one.
    let leased = take(store, 0, 99).await.unwrap();
    assert_eq!(leased.id, first.id);
    let second = job(Some("s"), 50);
    apply(store, &ann(), once(second.clone())).await;
    assert_eq!(read(store, second.id).await, second);
    apply(store, &ann(), finishing(&leased, JobOutcome::Dead { error: "gone".to_owned() })).await;
    apply(store, &ann(), once(job(Some("s"), 60))).await;
    assert_eq!(store.jobs(&ann(), &all).await.unwrap().len(), 5);
    // An id that is taken is a conflict only for a job that would be added.
    apply(store, &ann(), once(Job { id: first.id, ..job(Some("s"), 70) })).await;
    let taken = Job { id: first.id, ..job(Some("u"), 70) };
    assert_eq!(refuse(store, &ann(), once(taken)).await, ErrorKind::Conflict);
}

/// A job that would be due earlier moves a waiting job forward, but not one that waits because it failed.
pub async fn brings_a_waiting_job_forward(store: &dyn Store) {
    let once = |due| Change::EnqueueOnce(Box::new(job(Some("s"), due)));
    let id = enqueue(store, vec![job(Some("s"), 30)]).await[0];
    for (due, expected) in [(40, 30), (20, 20), (25, 20)] {
        apply(store, &ann(), once(due)).await;
        assert_eq!(read(store, id).await.run_at, at(expected));
    }
    let leased = take(store, 20, 99).await.unwrap();
    let outcome = JobOutcome::Retry { run_at: at(80), error: "late".to_owned() };
    apply(store, &ann(), finishing(&leased, outcome)).await;
    apply(store, &ann(), once(30)).await;
    assert_eq!(read(store, id).await.run_at, at(80));
    assert_eq!(take(store, 79, 99).await, None);
}

/// Jobs that were finished before a moment are removed; waiting, leased and dead jobs stay.
pub async fn prunes_finished_jobs(store: &dyn Store) {
    let ids = enqueue(store, (0..5).map(|due| job(None, due)).collect()).await;
    for (second, outcome) in [
        (10, JobOutcome::done()),
        (20, JobOutcome::done()),
        (10, JobOutcome::Dead { error: "gone".to_owned() }),
    ] {
        let leased = take(store, 9, 99).await.unwrap();
        apply_at(store, &ann(), second, finishing(&leased, outcome)).await;
    }
    take(store, 9, 99).await.unwrap();
    apply(store, &bob(), Change::PruneJobs { before: at(99) }).await;
    apply(store, &ann(), Change::PruneJobs { before: at(20) }).await;
    let left = store.jobs(&ann(), &JobQuery { limit: 9, ..JobQuery::default() }).await.unwrap();
    let mut left: Vec<JobId> = left.into_iter().map(|job| job.id).collect();
    left.sort();
    assert_eq!(left, ids[1..]);
}

/// A year, in seconds.
const YEAR: i64 = 365 * 24 * 3_600;

/// A job that was enqueued, put off or leased under a clock that was a year ahead is taken under the right one.
pub async fn takes_jobs_of_a_clock_that_was_ahead(store: &dyn Store) {
    let ahead = Job { created_at: at(YEAR), updated_at: at(YEAR), ..job(Some("enqueued"), YEAR) };
    enqueue(store, vec![ahead]).await;
    let taken = take(store, 5, 65).await.expect("it is due");
    apply(store, &ann(), finishing(&taken, JobOutcome::done())).await;

    enqueue(store, vec![job(Some("put off"), 5)]).await;
    let taken = take(store, YEAR, YEAR + 60).await.unwrap();
    let later = finishing(&taken, JobOutcome::Later { run_at: at(YEAR + 60) });
    store.apply(&ann(), ChangeSet::one(at(YEAR), later)).await.unwrap();
    let taken = take(store, 10, 70).await.expect("it is due");
    apply(store, &ann(), finishing(&taken, JobOutcome::done())).await;

    enqueue(store, vec![job(Some("leased"), 5), job(Some("leased"), 6)]).await;
    let first = take(store, YEAR, YEAR + 60).await.unwrap();
    let again = take(store, 20, 80).await.expect("its lease has ended");
    assert_eq!(again.id, first.id);
    assert_ne!(held(&again), held(&first));
    assert_eq!(take(store, 21, 81).await, None, "the session is held now");
}
