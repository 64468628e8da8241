//! Recording over HTTP while Strata learns from the recorded turns, compared with recording without learning.

use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::chat::Chat;
use crate::Bench;
use crate::report::{Report, Target, median};
use crate::server::Served;

const CLIENTS: usize = 8;
const ROUNDS: usize = 5;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let exchanges = bench.size(1_500, 50);
    let (mut off, mut on, mut jobs) = (Vec::new(), Vec::new(), Vec::new());
    // The rounds alternate, so that a slow minute of the machine affects both.
    for round in 0..ROUNDS {
        off.push(record(bench, &format!("learn-off-{round}"), "learn.enabled=false", exchanges)?.0);
        let (turns, done) = record(bench, &format!("learn-on-{round}"), "learn.enabled=true", exchanges)?;
        on.push(turns);
        jobs.push(done);
    }
    let (off, on) = (median(&mut off), median(&mut on));
    report.add(format!("recording, {CLIENTS} clients, not learning"), off, "turns/s", None);
    report.add(format!("recording, {CLIENTS} clients, while learning by rules"), on, "turns/s", None);
    // Learning gives way to recording and catches up afterwards, so the number of jobs during recording is reported too.
    report.add("jobs of learning done meanwhile", median(&mut jobs), "jobs/s", None);
    report.add("recording while learning against recording alone", on / off, "x", Some(Target::AtLeast(0.9)));
    Ok(())
}

/// The turns and learning jobs per second, with one exchange of two turns per request.
fn record(bench: &Bench, name: &str, setting: &str, exchanges: usize) -> Result<(f64, f64)> {
    let served =
        Served::start_with(&bench.binary, &bench.stores.fresh(name), "words", &[setting.to_owned()])?;
    served.wait_until_ready()?;
    let bodies: Vec<Vec<Value>> = (0..CLIENTS).map(|client| conversation(client, exchanges)).collect();
    // The first statement prepares the rules, which is not part of the measurement.
    let warm = json!({ "user_id": "warm", "infer": true, "messages": [{ "role": "user", "content": "I live in Lisbon" }] });
    served.connect()?.post("/memories", &warm)?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let clients: Vec<_> = bodies
            .iter()
            .map(|bodies| {
                scope.spawn(|| {
                    let mut client = served.connect()?;
                    bodies.iter().try_for_each(|body| client.post("/turns", body).map(|_| ()))
                })
            })
            .collect();
        clients.into_iter().try_for_each(|client| client.join().ok().context("a client panicked")?)
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let mut client = served.connect()?;
    let mut jobs = 0;
    for number in 0..CLIENTS {
        let done = client.get(&format!("/jobs?user_id=user-{number}&status=done&limit=1000"))?;
        jobs += done["jobs"].as_array().map_or(0, Vec::len);
    }
    Ok(((2 * CLIENTS * exchanges) as f64 / seconds, jobs as f64 / seconds))
}

/// A user's conversation, a new session every fifty exchanges.
fn conversation(client: usize, exchanges: usize) -> Vec<Value> {
    let mut chat = Chat::new(client as u64);
    (0..exchanges)
        .map(|number| {
            json!({
                "user_id": format!("user-{client}"),
                "session_id": format!("session-{}", number / 50),
                "messages": [
                    { "role": "user", "content": chat.user() },
                    { "role": "assistant", "content": chat.assistant() },
                ],
            })
        })
        .collect()
}
