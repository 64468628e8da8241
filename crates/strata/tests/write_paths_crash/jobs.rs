//! Jobs that have failed and are put back into the queue.

use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::outage::PATIENCE;
use crate::support::{self, Client, Random, TestStore, made_up_word, on_each_store};

const ROUNDS: u64 = 3;
const PEOPLE: u64 = 4;
const SEED: u64 = 20_261_121;

/// What a killed server held is free after one second.
const SETTINGS: [&str; 2] = ["learn.lease_secs=1", "learn.retry_secs=1"];

on_each_store!(a_job_that_is_tried_again_survives_kills, retry_and_die);

fn retry_and_die(store: &TestStore) {
    let mut random = Random(support::seed(SEED));
    for round in 0..store.rounds(ROUNDS) {
        let people: Vec<String> = (0..PEOPLE).map(|number| format!("r{round}p{number}")).collect();
        speak(store, &people, round);
        give_up_all_jobs(store);
        let retried = retry_until_killed(store, &people, 1 + random.below(PEOPLE));
        let server = store.serve(&SETTINGS);
        let mut client = server.client();
        for (person, job) in retried {
            let found = client.get(&format!("/jobs/{job}?user_id={person}")).unwrap().json();
            assert_ne!(found["status"], "dead", "its retry was acknowledged: {found}");
        }
        for person in &people {
            for job in dead_jobs(&mut client, person) {
                assert!(retry(&mut client, person, &job).unwrap());
            }
        }
        for (number, person) in people.iter().enumerate() {
            await_learned(&mut client, person, &liking(round, number as u64));
        }
        server.stop();
    }
    store.assert_well();
}

fn liking(round: u64, number: u64) -> String {
    made_up_word("zo", round * 1_000 + number)
}

/// Records what each person likes; what is to be learned from it waits for a day.
fn speak(store: &TestStore, people: &[String], round: u64) {
    let server = store.serve(&["learn.delay_secs=86400"]);
    let mut client = server.client();
    for (number, person) in people.iter().enumerate() {
        let messages =
            json!([{"role": "user", "content": format!("I like {}", liking(round, number as u64))}]);
        let body = json!({"user_id": person, "session_id": "talk", "messages": messages});
        assert_eq!(client.post("/turns", &body).unwrap().status, 201);
    }
    server.stop();
}

/// Marks all jobs that wait as given up, as after their last attempt.
fn give_up_all_jobs(store: &TestStore) {
    let update = "UPDATE jobs SET status = 'dead', attempts = 3 WHERE status = 'queued'";
    if let Some(database) = store.database() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async { database.client().await.batch_execute(update).await.unwrap() });
        return;
    }
    let path = store.path().unwrap();
    let file = if path.is_dir() { path.join(".strata/index.db") } else { path.to_owned() };
    assert!(Connection::open(file).unwrap().execute(update, []).unwrap() > 0);
}

fn dead_jobs(client: &mut Client, person: &str) -> Vec<String> {
    let listed = client.get(&format!("/jobs?status=dead&user_id={person}")).unwrap().json();
    let jobs = listed["jobs"].as_array().cloned().unwrap_or_default();
    jobs.iter().filter_map(|job| job["id"].as_str().map(str::to_owned)).collect()
}

/// Puts a job back into the queue. The error is that of a connection that was cut.
fn retry(client: &mut Client, person: &str, job: &str) -> std::io::Result<bool> {
    let answer = client.post(&format!("/jobs/{job}/retry?user_id={person}"), &Value::Null)?;
    // A request that is sent again over a new connection may have been done.
    assert!([200, 409].contains(&answer.status), "{}", answer.text());
    Ok(answer.status == 200)
}

/// Lets a client of each person retry its jobs, kills the server after so many answers, and returns the jobs of all answers.
fn retry_until_killed(store: &TestStore, people: &[String], deadly: u64) -> Vec<(String, String)> {
    let server = store.serve(&SETTINGS);
    let (told, heard) = mpsc::channel();
    let clients: Vec<_> = people
        .iter()
        .map(|person| {
            let (mut client, person, told) = (server.client(), person.clone(), told.clone());
            let jobs = dead_jobs(&mut client, &person);
            assert!(!jobs.is_empty(), "{person} has jobs");
            thread::spawn(move || {
                let answered = |job: &String| retry(&mut client, &person, job).is_ok_and(|done| done);
                let taken = jobs.into_iter().take_while(answered).map(|job| (person.clone(), job));
                taken.inspect(|_| told.send(()).unwrap_or_default()).collect::<Vec<_>>()
            })
        })
        .collect();
    drop(told);
    assert_eq!(heard.iter().take(deadly as usize).count() as u64, deadly, "{}", server.log());
    server.kill();
    clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
}

/// Waits until a person's statement is remembered, and fails if it is remembered twice.
fn await_learned(client: &mut Client, person: &str, word: &str) {
    let began = Instant::now();
    loop {
        let listed = client.get(&format!("/memories?user_id={person}&limit=100")).unwrap().json();
        let results = listed["results"].as_array().cloned().unwrap_or_default();
        let has_word = |result: &&Value| result["memory"].as_str().is_some_and(|text| text.contains(word));
        let count = results.iter().filter(has_word).count();
        assert!(count <= 1, "{person}: {results:?}");
        if count == 1 {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{person} is never learned: {results:?}");
    }
}
