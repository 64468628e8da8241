//! Many chats at once in one session: the real binary between real clients and a scripted model. Each exchange is recorded,
//! once, and the session is numbered without gaps.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;
use std::thread;

use serde_json::{Value, json};
use support::{Server, Upstream, reply_to};

const CHATS: usize = 32;

#[test]
fn chats_at_once_in_one_session_are_all_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("parallel.db");
    let upstream = Upstream::start();
    // A reply is recorded before the client receives its end, so the test need not wait.
    let settings =
        [&format!("upstream={}", upstream.url()), "memory_deadline_ms=60000", "learn.enabled=false"];
    let server = Server::start_with(&file, &settings);
    for is_stream in [false, true] {
        let session = if is_stream { "streamed" } else { "plain" };
        let clients: Vec<_> = (0..CHATS)
            .map(|number| {
                let mut client = server.client();
                thread::spawn(move || {
                    let messages = [json!({"role": "user", "content": question(number)})];
                    let body = json!({"memory_id": session, "stream": is_stream, "messages": messages});
                    client.post("/v1/chat/completions", &body).unwrap().status
                })
            })
            .collect();
        for client in clients {
            assert_eq!(client.join().unwrap(), 200);
        }
        check(&server, session);
    }
    assert!(!server.log().contains("could not be recorded"), "{}", server.log());
}

fn question(number: usize) -> String {
    format!("question {number}: how deep is lake {number}")
}

/// Checks that all questions and replies are stored in pairs.
fn check(server: &Server, session: &str) {
    let answer = server.client().get(&format!("/sessions/{session}/turns?limit=1000")).unwrap().json();
    let turns = answer["turns"].as_array().unwrap();
    let places: Vec<u64> = turns.iter().map(|turn| turn["seq"].as_u64().unwrap()).collect();
    assert_eq!(places, (0..2 * CHATS as u64).collect::<Vec<_>>(), "{session}:\n{}", server.log());
    let said = |role: &str| -> BTreeSet<String> {
        let of = turns.iter().filter(|turn| turn["role"] == role && turn["hidden"].is_null());
        of.map(|turn| turn["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(said("user"), (0..CHATS).map(question).collect());
    assert_eq!(said("assistant"), (0..CHATS).map(|number| reply_to(&question(number))).collect());
    for reply in turns.iter().filter(|turn| turn["role"] == "assistant") {
        let asked: &Value = &turns[reply["follows"].as_u64().unwrap() as usize];
        assert_eq!(reply["content"], reply_to(asked["content"].as_str().unwrap()), "to its own question");
    }
}
