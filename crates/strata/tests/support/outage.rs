//! What a client of a server on a bad day does and expects.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Answer, Client, reply_to};

/// How long something that has to happen may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How long a slow disk takes for each write. An answer that comes before that has not waited for the disk.
pub(crate) const HANG: Duration = Duration::from_secs(8);

pub(crate) fn chat(client: &mut Client, session: &str, question: &str) -> Answer {
    let body = json!({
        "model": "m", "memory_id": session, "messages": [{"role": "user", "content": question}],
    });
    client.post("/v1/chat/completions", &body).unwrap()
}

pub(crate) fn turns(client: &mut Client, session: &str) -> Vec<Value> {
    let answer = client.get(&format!("/sessions/{session}/turns?limit=1000")).unwrap();
    if answer.status == 404 {
        return Vec::new();
    }
    answer.json()["turns"].as_array().cloned().unwrap_or_default()
}

/// Waits until the question and its reply are each recorded once, and fails if either is doubled.
pub(crate) fn await_recorded(client: &mut Client, session: &str, question: &str) {
    let began = Instant::now();
    loop {
        let turns = turns(client, session);
        let count = |text: &str| turns.iter().filter(|turn| turn["content"] == text).count();
        let (asked, replied) = (count(question), count(&reply_to(question)));
        assert!(
            asked <= 1 && replied <= 1,
            "`{question}`: {asked} times, its reply {replied} times: {turns:?}"
        );
        if (asked, replied) == (1, 1) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "`{question}` was never recorded: {turns:?}");
    }
}

/// The status of `/readyz`, which may not wait for a disk that hangs. That it answers within a second of the server's own time is
/// shown in `strata-server/src/routes/health.rs`, without the time that a busy machine adds.
pub(crate) fn readiness(client: &mut Client) -> u16 {
    let began = Instant::now();
    let status = client.get("/readyz").unwrap().status;
    assert!(began.elapsed() < HANG, "`/readyz` took {:?}", began.elapsed());
    status
}
