//! A model that repeats its request in the answer, so that the test can check what reached it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::json;

/// Starts the model for the time of the test, and returns its address.
pub(crate) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

/// Answers the requests of one connection.
fn answer(stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut writer = stream;
    loop {
        let mut head = String::new();
        while reader.read_line(&mut head).ok()? > 2 {}
        let field = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(':'));
            let mut found = lines.filter(|(field, _)| field.eq_ignore_ascii_case(name));
            found.next().map(|(_, value)| value.trim().to_owned())
        };
        // A request for a WebSocket has no body.
        let mut shown = vec![0; field("content-length").map_or(Some(0), |length| length.parse().ok())?];
        reader.read_exact(&mut shown).ok()?;
        let shown = String::from_utf8_lossy(&shown).into_owned();
        let message = json!({ "role": "assistant", "content": format!("{head} {shown}") });
        let body = json!({ "id": "1", "object": "chat.completion", "created": 0, "model": "any",
            "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] });
        let body = body.to_string();
        write!(
            writer,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .ok()?;
    }
}
