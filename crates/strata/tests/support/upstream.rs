//! A scripted model behind the proxy: an OpenAI-compatible server on threads that does what the question says.
//!
//! The question is the script, so that a test reads like a conversation: `say X`, `fail 429`, `fail once`, `call look`,
//! `break off`, `hang on`. The answer to any other question is `reply to` and the question. Invalid requests are refused, as by a
//! real server.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// The scripted model.
pub(crate) struct Upstream {
    address: String,
    received: Arc<Mutex<Vec<Received>>>,
}

#[derive(Default)]
struct Memory {
    /// The number of times that a question was asked.
    asked: BTreeMap<String, u32>,
}

impl Upstream {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let (requests, memory) = (Arc::clone(&received), Arc::<Mutex<Memory>>::default());
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (requests, memory) = (Arc::clone(&requests), Arc::clone(&memory));
                thread::spawn(move || serve(connection, &requests, &memory));
            }
        });
        Self { address, received }
    }

    /// For the setting `upstream`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

fn serve(connection: TcpStream, requests: &Mutex<Vec<Received>>, memory: &Mutex<Memory>) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection);
    while let Some((head, body)) = read_request(&mut reader)? {
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        requests.lock().unwrap().push(Received { head: head.clone(), body: body.clone() });
        let stream = reader.get_mut();
        if head.starts_with("GET /v1/models") {
            let models = json!({"object": "list", "data": [{"id": "m-1", "object": "model", "created": 1, "owned_by": "us"}]});
            write_json(stream, 200, &models)?;
        } else if !head.starts_with("POST ") {
            write_answer(stream, 405, "Allow: POST\r\n", &error("chats are posted"))?;
        } else if let Some(problem) = problem(&body) {
            write_json(stream, 400, &error(problem))?;
        } else {
            let asked = {
                let mut memory = memory.lock().unwrap();
                let times = memory.asked.entry(question(&body)).or_default();
                *times += 1;
                *times
            };
            if !answer(stream, &body, asked)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

pub(super) fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line.trim_end().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok(Some((head, body)))
}

/// The reason for which a model would refuse a body.
pub(super) fn problem(body: &Value) -> Option<&'static str> {
    if body["messages"].as_array().is_none_or(|messages| !messages.iter().all(Value::is_object)) {
        return Some("`messages` is a list of objects");
    }
    if !matches!(body["stream"], Value::Null | Value::Bool(_)) {
        return Some("`stream` is true or false");
    }
    (!matches!(body["user"], Value::Null | Value::String(_))).then_some("`user` is a text")
}

pub(super) fn error(message: &str) -> Value {
    json!({"error": {"message": message, "type": "scripted", "param": null, "code": "scripted"}})
}

/// The user's last question, without the context that memory added before it.
pub(crate) fn question(body: &Value) -> String {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.iter().rfind(|message| message["role"] == "user").cloned().unwrap_or_default();
    let text = match &last["content"] {
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.filter(|text| !text.starts_with("<strata_memory>")).collect::<Vec<_>>().join(" ")
        }
        content => content.as_str().unwrap_or_default().to_owned(),
    };
    text.rsplit("</strata_memory>\n\n").next().unwrap_or_default().to_owned()
}

/// The model's reply to a question.
pub(crate) fn reply_to(question: &str) -> String {
    match question.strip_prefix("say ") {
        Some(words) => words.to_owned(),
        None => format!("reply to {question}"),
    }
}

/// Answers a request, and returns whether the connection stays open.
pub(super) fn answer(stream: &mut TcpStream, body: &Value, asked: u32) -> io::Result<bool> {
    let question = question(body);
    let has_result =
        body["messages"].as_array().into_iter().flatten().any(|message| message["role"] == "tool");
    if let Some(status) = question.strip_prefix("fail ").and_then(|status| status.parse().ok()) {
        write_json(stream, status, &error("as asked"))?;
    } else if question.starts_with("fail once") && asked == 1 {
        write_json(stream, 500, &json!({"error": {"message": "once", "type": "scripted", "code": null}}))?;
    } else if question.starts_with("call ") && !has_result {
        let call = json!({"id": "call_1", "type": "function",
            "function": {"name": question.trim_start_matches("call "), "arguments": "{\"place\":\"Lisbon\"}"}});
        complete(
            stream,
            body,
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            "tool_calls",
        )?;
    } else if body["stream"] == true {
        if question.starts_with("hang on") {
            write_head(stream, "text/event-stream")?;
            write_chunk(stream, &chunk(json!({"content": "reply "}), Value::Null))?;
            // Waits until the client has disconnected.
            stream.read_to_end(&mut Vec::new())?;
            return Ok(false);
        }
        let breaks = question.starts_with("break off");
        write_stream(stream, &reply_to(&question), breaks)?;
        return Ok(!breaks);
    } else {
        complete(stream, body, json!({"role": "assistant", "content": reply_to(&question)}), "stop")?;
    }
    Ok(true)
}

fn complete(stream: &mut TcpStream, body: &Value, message: Value, finish: &str) -> io::Result<()> {
    if body["stream"] == true {
        let mut delta = message;
        if let Some(calls) = delta["tool_calls"].as_array_mut() {
            calls.iter_mut().enumerate().for_each(|(index, call)| call["index"] = index.into());
        }
        write_head(stream, "text/event-stream")?;
        write_chunk(stream, &chunk(delta, Value::Null))?;
        write_chunk(stream, &chunk(json!({}), json!(finish)))?;
        write_piece(stream, b"data: [DONE]\n\n")?;
        return write_piece(stream, b"");
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish, "logprobs": null});
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let completion = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m-1",
        "choices": [choice], "usage": usage});
    write_json(stream, 200, &completion)
}

fn chunk(delta: Value, finish: Value) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish, "logprobs": null});
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1", "choices": [choice]})
}

/// Streams `text` word by word. With `breaks`, the connection ends in the middle of the text.
fn write_stream(stream: &mut TcpStream, text: &str, breaks: bool) -> io::Result<()> {
    write_head(stream, "text/event-stream")?;
    for (number, word) in text.split_inclusive(' ').enumerate() {
        if breaks && number == 2 {
            return Ok(());
        }
        write_chunk(stream, &chunk(json!({"content": word}), Value::Null))?;
    }
    write_chunk(stream, &chunk(json!({}), json!("stop")))?;
    write_piece(stream, b"data: [DONE]\n\n")?;
    write_piece(stream, b"")
}

fn write_chunk(stream: &mut TcpStream, chunk: &Value) -> io::Result<()> {
    write_piece(stream, format!("data: {chunk}\n\n").as_bytes())
}

pub(super) fn write_head(stream: &mut TcpStream, kind: &str) -> io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n")
}

pub(super) fn write_piece(stream: &mut TcpStream, piece: &[u8]) -> io::Result<()> {
    let mut framed = format!("{:x}\r\n", piece.len()).into_bytes();
    framed.extend_from_slice(piece);
    framed.extend_from_slice(b"\r\n");
    stream.write_all(&framed)
}

fn write_json(stream: &mut TcpStream, status: u16, body: &Value) -> io::Result<()> {
    write_answer(stream, status, "X-Upstream: scripted\r\n", body)
}

pub(super) fn write_answer(
    stream: &mut TcpStream,
    status: u16,
    headers: &str,
    body: &Value,
) -> io::Result<()> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes())
}
