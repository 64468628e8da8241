//! A chat with an embedder that takes longer than the deadline, over real HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::harness::Machine;
use crate::upstream::Upstream;

/// An embeddings endpoint. While it is slow, it takes requests and does not answer.
struct Embeddings {
    url: String,
    slow: Arc<AtomicBool>,
}

impl Embeddings {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let slow = Arc::new(AtomicBool::new(false));
        let is_slow = Arc::clone(&slow);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let is_slow = Arc::clone(&is_slow);
                thread::spawn(move || answer_all(connection, &is_slow));
            }
        });
        Self { url, slow }
    }
}

/// Answers the requests of one connection with a vector of the letters of each text.
fn answer_all(connection: TcpStream, is_slow: &AtomicBool) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut writer = connection;
    loop {
        let mut head = String::new();
        while reader.read_line(&mut head).ok()? > 2 {}
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        })?;
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        while is_slow.load(Ordering::SeqCst) {
            thread::park();
        }
        let body: Value = serde_json::from_slice(&body).ok()?;
        let vector = |text: &Value| {
            let mut vector = [0.0_f32; 26];
            for letter in text.as_str().unwrap_or_default().bytes().filter(u8::is_ascii_lowercase) {
                vector[usize::from(letter - b'a')] += 1.0;
            }
            vector
        };
        let texts = body["input"].as_array()?.iter().enumerate();
        let data: Vec<Value> =
            texts.map(|(index, text)| json!({"index": index, "embedding": vector(text)})).collect();
        let body = json!({ "data": data }).to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
        write!(writer, "{head}\r\n\r\n{body}").ok()?;
    }
}

#[test]
fn an_embedder_that_is_late_removes_no_memory() {
    let (machine, model, embeddings) = (Machine::new(), Upstream::start(), Embeddings::start());
    let settings = [
        format!("upstream={}", model.url()),
        format!("embedder={}#letters", embeddings.url),
        "embed=all".to_owned(),
        "learn.enabled=false".to_owned(),
        // A fifth of it is left for the words, also on a busy machine.
        "memory_deadline_ms=3000".to_owned(),
    ];
    let args: Vec<&str> = settings.iter().flat_map(|setting| ["--setting", setting]).collect();
    let server = machine.serve(&args);
    let post = |path: &str, body: Value| {
        let (status, text) = server.http("POST", path, &body.to_string());
        assert!(status < 300, "{path}: {status} {text}");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let said = "the spare fuse lies behind the blue paint";
    let messages = json!([{"role": "user", "content": said}]);
    post("/turns", json!({"user_id": "ida", "session_id": "cellar", "messages": messages}));
    let question = "where is the spare fuse";
    let search = || post("/search", json!({"user_id": "ida", "query": question, "explain": true}));
    while search()["trace"]["vector_hits"] == 0 {}

    embeddings.slow.store(true, Ordering::SeqCst);
    let messages = json!([{"role": "user", "content": question}]);
    post(
        "/v1/chat/completions",
        json!({"user": "ida", "memory_id": "hall", "model": "m", "messages": messages}),
    );
    let sent = model.received().last().unwrap().body["messages"].to_string();
    assert!(sent.contains(said), "{sent}");
    let rows = || {
        let (_, rows) = server.http("GET", "/requests?user_id=ida&limit=1", "");
        serde_json::from_str::<Value>(&rows).unwrap()["requests"][0].clone()
    };
    let row = loop {
        let row = rows();
        if row["session_id"] == "hall" {
            break row;
        }
    };
    assert_eq!((&row["late"], &row["error_stage"]), (&json!("embedding"), &Value::Null), "{row}");
    assert_eq!((&row["context_items"], &row["vector_hits"]), (&json!(1), &json!(0)), "{row}");
    drop(server);
    let shown = machine.run(&["explain", row["id"].as_str().unwrap(), "--user", "ida"]).ok();
    assert!(shown.contains("the embedder was late: ranked by words"), "{shown}");
}
