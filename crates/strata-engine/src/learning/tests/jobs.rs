//! Jobs are enqueued once and worked on one at a time, with exactly one result.

use std::sync::Arc;

use super::fixture::*;
use crate::{Ended, Event};
use strata_core::id::{JobId, LeaseId, UserId};
use strata_core::job::{Job, JobStatus};
use strata_core::ports::ChatModel;
use strata_core::store::{Change, ChangeSet, LeaseRequest, MemorySelect, Store, session_space};

/// Leases the next job and never ends it, like a worker that crashes.
async fn hold(world: &World, secs: i64) -> Option<Job> {
    let now = world.engine.now();
    let request = LeaseRequest {
        lease: LeaseId(world.engine.next_id()),
        worker: "dies".to_owned(),
        now,
        until: now + jiff::SignedDuration::from_secs(secs),
        user: None,
        after: None,
    };
    world.store.lease_job(&request).await.unwrap()
}

async fn progress(world: &World, of: &str) -> u64 {
    world.store.progress(&world.user, &session_space("learn", &session(of))).await.unwrap()
}

#[tokio::test]
async fn recording_enqueues_each_kind_of_job_once() {
    let world = world_with(|settings| settings.learn.summaries.enable_summarization = true);
    for text in ["one", "two", "three"] {
        world.say("s", text).await;
        reply(&world, "s", "yes").await;
    }
    world.say("t", "one").await;
    let mut asked: Vec<_> =
        jobs(&world).await.into_iter().map(|job| (job.session.unwrap().to_string(), job.kind)).collect();
    asked.sort();
    let expected = [("s", "extract"), ("s", "summarise"), ("t", "extract")];
    assert_eq!(asked, expected.map(|(of, kind)| (of.to_owned(), kind.to_owned())));
    world.engine.learning.learn_all().await.unwrap();
    assert!(jobs(&world).await.iter().all(|job| job.status == JobStatus::Done));
    assert_eq!(progress(&world, "s").await, 6);
    world.say("s", "four").await;
    assert_eq!(jobs_of(&world, "extract").await.len(), 3, "what is done waits no longer");
}

#[tokio::test]
async fn users_are_served_in_turn() {
    let world = world();
    for number in 0..5 {
        world.say(&format!("s{number}"), "one").await;
    }
    let zoe = UserId::new("zoe").unwrap();
    let job = jobs(&world).await.pop().unwrap();
    let job = Job { id: JobId(world.engine.next_id()), user: zoe.clone(), ..job };
    world.clock.forward(1);
    let job = Job { run_at: world.engine.now(), created_at: world.engine.now(), ..job };
    let enqueue = ChangeSet::one(world.engine.now(), Change::EnqueueJob(Box::new(job)));
    world.store.apply(&zoe, enqueue).await.unwrap();
    let mut served = Vec::new();
    for worker in ["one", "two"] {
        served.push(world.engine.learning.learn_next(worker).await.unwrap().unwrap().user);
    }
    assert_eq!(served, [world.user.clone(), zoe]);
}

#[tokio::test]
async fn no_job_is_enqueued_while_learning_is_off() {
    let world = world_with(|settings| settings.learn.enabled = false);
    world.say("s", "one").await;
    reply(&world, "s", "yes").await;
    assert!(jobs(&world).await.is_empty());
}

#[tokio::test]
async fn a_long_history_is_read_in_bounded_batches() {
    let world = world_with(|settings| settings.learn.enabled = false);
    for _ in 0..10 {
        world.say_all("s", &["one"; 10]).await;
    }
    let world = World { engine: on(&world), ..world };
    world.say("s", "last").await;
    let learned = world.engine.learning.learn_all().await.unwrap();
    let batches: Vec<_> = learned.iter().filter(|one| one.kind == "extract").collect();
    assert_eq!(batches.len(), 4, "101 turns at 32 a job");
    assert_eq!(progress(&world, "s").await, 101);
    assert!(world.engine.learning.learn_all().await.unwrap().is_empty());
}

/// The engine with learning switched on.
fn on(world: &World) -> crate::Engine {
    world.engine.clone().with_changed_settings(|settings| settings.learn.enabled = true)
}

#[tokio::test]
async fn a_lost_lease_leaves_exactly_one_result() {
    let world = Arc::new(world());
    world.say("s", "I live in Lisbon").await;
    let (quick, _) = with_model(&world, vec![states(&[("The user lives in Lisbon", 1)])]);
    let clock = Arc::clone(&world.clock);
    let overtaking = Answer::Meanwhile(
        Box::new(move || {
            let (quick, clock) = (quick.clone(), Arc::clone(&clock));
            Box::pin(async move {
                clock.forward(301);
                let learned = quick.learning.learn_next("quick").await.unwrap().unwrap();
                assert_eq!((learned.ended, learned.events.len()), (Ended::Done, 1));
            })
        }),
        r#"["The user dwells in Lisbon"]"#.to_owned(),
    );
    let (slow, _) = with_model(&world, vec![overtaking]);
    let learned = slow.learning.learn_next("slow").await.unwrap().unwrap();
    assert_eq!(learned.ended, Ended::Dropped);
    assert!(learned.events.is_empty());
    assert_eq!(learned.spent.calls, 2, "what was spent for nothing is told");
    assert_eq!(believed(&world).await, ["The user lives in Lisbon"]);
    let job = jobs_of(&world, "extract").await.pop().unwrap();
    assert_eq!((job.status, job.attempts), (JobStatus::Done, 2));
}

#[tokio::test]
async fn a_job_whose_worker_died_is_taken_over() {
    let world = world();
    world.say("s", "one").await;
    let held = hold(&world, 60).await.unwrap();
    world.say("s", "two").await;
    assert!(world.engine.learning.learn_next("w").await.unwrap().is_none(), "one at a time a session");
    world.clock.forward(60);
    let learned = world.engine.learning.learn_next("w").await.unwrap().unwrap();
    assert_eq!((learned.job, learned.ended), (held.id, Ended::Done));
    assert_eq!(progress(&world, "s").await, 2);
    world.engine.learning.learn_all().await.unwrap();
    assert!(jobs(&world).await.iter().all(|job| job.status == JobStatus::Done));
}

#[tokio::test]
async fn a_job_that_crashes_its_workers_is_given_up() {
    let world = world();
    world.say("s", "one").await;
    for _ in 0..5 {
        hold(&world, 60).await.unwrap();
        world.clock.forward(60);
    }
    let learned = world.engine.learning.learn_next("w").await.unwrap().unwrap();
    assert!(matches!(learned.ended, Ended::Dead { .. }), "{learned:?}");
    assert_eq!(world.engine.jobs.record().dead, [("extract".to_owned(), 1)].into());
    let job = world.engine.jobs.retry(&world.user, learned.job).await.unwrap();
    assert_eq!((job.status, job.attempts), (JobStatus::Queued, 0));
    assert_eq!(world.engine.learning.learn_next("w").await.unwrap().unwrap().ended, Ended::Done);
}

#[tokio::test]
async fn a_failing_job_waits_longer_each_time_and_then_dies() {
    let world = world();
    world.say("s", "one").await;
    world.engine.learning.learn_all().await.unwrap();
    let done = jobs_of(&world, "extract").await.pop().unwrap();
    let odd = Job {
        id: JobId(world.engine.next_id()),
        kind: "sing".to_owned(),
        status: JobStatus::Queued,
        attempts: 0,
        result: None,
        ..done
    };
    let id = odd.id;
    world.apply(Change::EnqueueJob(Box::new(odd))).await;
    let mut pauses = Vec::new();
    loop {
        let began = world.engine.now();
        match world.engine.learning.learn_next("w").await.unwrap().unwrap().ended {
            Ended::Retried { run_at, error } => {
                assert!(error.contains("`sing`"), "{error}");
                pauses.push(run_at.duration_since(began).as_millis());
                assert!(world.engine.learning.learn_next("w").await.unwrap().is_none(), "it is not due yet");
                world.clock.forward(run_at.duration_since(began).as_secs() + 1);
            }
            Ended::Dead { error } => {
                assert!(error.contains("`sing`"), "{error}");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(pauses.len(), 4);
    for (pause, most) in pauses.iter().zip([5_000, 10_000, 20_000, 40_000]) {
        assert!((most / 2..=most).contains(pause), "{pauses:?}");
    }
    let dead = world.engine.jobs.get(&world.user, id).await.unwrap();
    assert_eq!((dead.status, dead.attempts), (JobStatus::Dead, 5));
    assert_eq!(world.engine.jobs.retry(&world.user, id).await.unwrap().status, JobStatus::Queued);
}

#[tokio::test]
async fn several_turns_share_a_models_calls() {
    let world = world_with(|settings| settings.learn.delay_secs = None);
    let model = Scripted::new((0..9).map(|_| states(&[])).collect());
    let engine = world.engine.clone().with_chat_model(Arc::clone(&model) as Arc<dyn ChatModel>);
    for text in ["one", "two", "three"] {
        world.say("s", text).await;
        let learned = engine.learning.learn_next("w").await.unwrap().unwrap();
        assert!(matches!(learned.ended, Ended::Later { .. }), "{learned:?}");
        assert!(engine.learning.learn_next("w").await.unwrap().is_none());
        world.clock.forward(1);
    }
    assert_eq!(model.calls(), 0);
    world.say("s", "four").await;
    assert_eq!(engine.learning.learn_next("w").await.unwrap().unwrap().ended, Ended::Done);
    assert_eq!(model.calls(), 1);
    for text in ["one", "two", "three", "four"] {
        assert!(model.data(0).contains(text), "{}", model.data(0));
    }
    let done = jobs_of(&world, "extract").await.pop().unwrap();
    assert_eq!((done.status, done.attempts), (JobStatus::Done, 1), "waiting is no attempt");

    engine.learning.learn_all().await.unwrap();
    world.say("s", "alone").await;
    assert!(matches!(engine.learning.learn_next("w").await.unwrap().unwrap().ended, Ended::Later { .. }));
    world.clock.forward(180);
    assert_eq!(engine.learning.learn_next("w").await.unwrap().unwrap().ended, Ended::Done);
    assert_eq!(model.calls(), 2, "after a while one turn is enough");
}

#[tokio::test]
async fn the_rules_read_a_long_history() {
    let world = world_with(|settings| {
        settings.learn.model_backlog = 8;
        settings.learn.batch_turns = 8;
        settings.learn.summaries.enable_summarization = false;
    });
    world.say_all("s", &["one"; 40]).await;
    let (engine, model) = with_model(&world, (0..9).map(|_| states(&[])).collect());
    engine.learning.learn_all().await.unwrap();
    assert_eq!(model.calls(), 2, "the last sixteen turns");
    assert_eq!(progress(&world, "s").await, 40);
}

#[tokio::test]
async fn a_session_forgotten_during_learning_stays_forgotten() {
    let world = Arc::new(world());
    world.say("s", "I live in Lisbon").await;
    let forgetting = Arc::clone(&world);
    let forgets = Answer::Meanwhile(
        Box::new(move || {
            let world = Arc::clone(&forgetting);
            Box::pin(async move {
                world.engine.sessions.delete(&world.user, &session("s")).await.unwrap();
            })
        }),
        r#"["The user lives in Lisbon"]"#.to_owned(),
    );
    let (engine, _) = with_model(&world, vec![forgets]);
    assert_eq!(engine.learning.learn_next("w").await.unwrap().unwrap().ended, Ended::Dropped);
    assert!(memories(&world, MemorySelect::All).await.is_empty());
    assert!(jobs(&world).await.is_empty());
    assert_eq!(progress(&world, "s").await, 0);
}

#[tokio::test]
async fn forgetting_a_session_removes_what_was_learned_from_it_alone() {
    let world = world();
    learn(&world, "I live in Lisbon", vec![states(&[("The user lives in Lisbon", 1)])]).await;
    world.say("t", "I have a dog").await;
    let (engine, _) =
        with_model(&world, vec![states(&[("The user has a dog", 1)]), decides(&["NONE", "ADD"])]);
    engine.learning.learn_all().await.unwrap();
    world.remember("told by hand").await;
    assert_eq!(progress(&world, "s").await, 1);
    let removed = world.engine.sessions.delete(&world.user, &session("s")).await.unwrap();
    assert_eq!((removed.turns, removed.memories), (1, 1));
    assert_eq!(believed(&world).await, ["The user has a dog", "told by hand"]);
    assert_eq!((progress(&world, "s").await, progress(&world, "t").await), (0, 1));
    assert!(jobs(&world).await.iter().all(|job| job.session == Some(session("t"))));
    world.say("s", "anew").await;
    world.engine.learning.learn_all().await.unwrap();
    assert_eq!(progress(&world, "s").await, 1, "a session of the same name is learned from the beginning");
}

#[tokio::test]
async fn a_repeated_statement_outlives_its_first_session() {
    let world = world();
    for (name, said) in [("first", "I live in Lisbon"), ("second", "I live in Lisbon."), ("third", "Hello!")]
    {
        world.say(name, said).await;
        world.engine.learning.learn_all().await.unwrap();
    }
    // The same statement occurs twice in one batch.
    world.say("fourth", "I live in Lisbon").await;
    world.say("fourth", "I have a dog").await;
    world.say("fourth", "I live in Lisbon!").await;
    world.engine.learning.learn_all().await.unwrap();
    let lisbon = saying(&world, "The user lives in Lisbon").await;
    assert_eq!(lisbon.source_turns.len(), 4);
    let forget = async |name: &str| {
        world.clock.forward(60);
        world.engine.sessions.delete(&world.user, &session(name)).await.unwrap().memories
    };
    assert_eq!(forget("first").await, 0);
    assert_eq!(forget("third").await, 0);
    assert_eq!(saying(&world, "The user lives in Lisbon").await.id, lisbon.id);
    assert_eq!(forget("fourth").await, 1, "the dog");
    assert_eq!(believed(&world).await, ["The user lives in Lisbon"]);
    assert_eq!(forget("second").await, 1, "nobody says it any more");
    assert!(believed(&world).await.is_empty());
}

#[tokio::test]
async fn a_jobs_result_says_what_it_did_and_spent_but_not_what_was_said() {
    let world = world();
    learn(&world, "I live in Lisbon", vec![states(&[("The user lives in Lisbon", 1)])]).await;
    let job = jobs_of(&world, "extract").await.pop().unwrap();
    let result = job.result.unwrap();
    assert_eq!(result["spent"]["calls"], 1);
    assert_eq!(result["spent"]["input_tokens"], 100);
    assert_eq!(result["extracted_by"], "scripted");
    assert_eq!(result["events"][0]["event"], Event::Add.as_str());
    assert_eq!(
        result["events"][0]["memory"],
        saying(&world, "The user lives in Lisbon").await.id.to_string()
    );
    assert!(!result.to_string().contains("Lisbon"));
    world.clock.forward(8 * 86_400);
    world.engine.jobs.prune(&world.user).await.unwrap();
    assert!(jobs(&world).await.is_empty());
}
