//! A model on a loopback port with OpenAI's protocol and two simple rules, so that tests know its answers.
//!
//! «I like X» and «I live in X» become statements. A new home replaces the old one, and a statement in the same words is already
//! known.
#![allow(dead_code, clippy::expect_used, reason = "each test uses its part, and fails by panicking")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

/// The model's reaction to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Answer.
    Helpful,
    /// Answer with a temporary error.
    Broken,
    /// Answer with a refusal in prose.
    Unwilling,
    /// Accept requests and do not answer, until the mood changes.
    Silent,
}

/// A running model. It ends with the test process.
pub(crate) struct Model {
    pub(crate) url: String,
    shared: Arc<Shared>,
}

struct Shared {
    mood: Mutex<Mood>,
    changed: Condvar,
    requests: AtomicUsize,
    arrived: Mutex<usize>,
    arrival: Condvar,
}

impl Model {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let shared = Arc::new(Shared {
            mood: Mutex::new(Mood::Helpful),
            changed: Condvar::new(),
            requests: AtomicUsize::new(0),
            arrived: Mutex::new(0),
            arrival: Condvar::new(),
        });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { url, shared }
    }

    /// The setting that makes Strata learn with it.
    pub(crate) fn setting(&self) -> String {
        format!("learn.model={}#scripted", self.url)
    }

    pub(crate) fn set(&self, mood: Mood) {
        *self.shared.mood.lock().expect("nobody panicked") = mood;
        self.shared.changed.notify_all();
    }

    /// The number of requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Waits until this many requests have arrived in total.
    pub(crate) fn wait_for(&self, requests: usize) {
        let arrived = self.shared.arrived.lock().expect("nobody panicked");
        let waited =
            self.shared.arrival.wait_timeout_while(arrived, std::time::Duration::from_secs(60), |arrived| {
                *arrived < requests
            });
        assert!(!waited.expect("nobody panicked").1.timed_out(), "the model was not asked {requests} times");
    }
}

fn serve(stream: TcpStream, shared: &Shared) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream) {
        shared.requests.fetch_add(1, Ordering::SeqCst);
        *shared.arrived.lock().expect("nobody panicked") += 1;
        shared.arrival.notify_all();
        let mood = shared.mood.lock().expect("nobody panicked");
        let mood = *shared.changed.wait_while(mood, |mood| *mood == Mood::Silent).expect("nobody panicked");
        let (status, body) = match mood {
            Mood::Broken => ("500 Internal Server Error", json!({"error": {"message": "out of order"}})),
            Mood::Unwilling => ("200 OK", completion("I cannot help with that.")),
            _ => ("200 OK", completion(&answer(&request))),
        };
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        // The client may have been killed, which is not an error here.
        if stream.get_mut().write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn read(stream: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn completion(text: &str) -> Value {
    json!({
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10},
    })
}

fn answer(request: &Value) -> String {
    let data = request["messages"][1]["content"].as_str().unwrap_or_default();
    match request["response_format"]["json_schema"]["name"].as_str() {
        Some("statements") => extract(data).to_string(),
        Some("memories") => reconcile(data).to_string(),
        Some("summary") => json!({"summary": "They spoke about the trip.", "facts": [], "preferences": [],
            "decisions": [], "todos": [], "entities": []})
        .to_string(),
        _ => "They spoke about the trip.".to_owned(),
    }
}

fn lines(data: &str) -> Vec<Value> {
    data.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn extract(data: &str) -> Value {
    let statement = |line: &Value| {
        let text = line["text"].as_str()?;
        let content = match (text.strip_prefix("I like "), text.strip_prefix("I live in ")) {
            (Some(thing), _) => format!("The user likes {thing}"),
            (_, Some(place)) => format!("The user lives in {place}"),
            _ => return None,
        };
        // What was said before stands without a number, for context alone.
        let number = line["message"].as_u64()?;
        Some(json!({"content": content, "kind": "fact", "confidence": 0.9, "message": number, "since": null}))
    };
    json!({"statements": lines(data).iter().filter_map(statement).collect::<Vec<_>>()})
}

fn reconcile(data: &str) -> Value {
    let (known, new) = data.split_once("New statements:").unwrap_or((data, ""));
    let (known, new) = (lines(known), lines(new));
    let place = |line: &Value| line["text"].as_str().is_some_and(|text| text.contains(" lives in "));
    let last_place = new.iter().rev().find(|line| place(line));
    let mut events = Vec::new();
    for line in &known {
        let same = new.iter().any(|other| other["text"] == line["text"]);
        match last_place.filter(|_| place(line) && !same) {
            Some(by) => events.push(json!({"id": line["id"], "event": "DELETE", "by": by["id"]})),
            None => events.push(json!({"id": line["id"], "event": "NONE", "by": null})),
        }
    }
    for (at, line) in new.iter().enumerate() {
        let same = known.iter().chain(&new[..at]).find(|other| other["text"] == line["text"]);
        match same {
            Some(same) => events.push(json!({"id": line["id"], "event": "NONE", "by": same["id"]})),
            None => events.push(json!({"id": line["id"], "event": "ADD", "by": null})),
        }
    }
    json!({"memories": events})
}
