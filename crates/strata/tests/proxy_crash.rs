//! `kill -9` during chats loses no reply that a client received completely: the real binary between clients of all APIs and a
//! scripted model, with many deaths, on a store of each kind.
//!
//! After the last death the same store is served again and read completely. A reply that a client received completely is recorded
//! word for word. For every other reply that had begun, the question is recorded, and either the reply or the fact that it was
//! interrupted. The same holds on a disk whose commits take longer than a chat waits for memory, and for several servers on
//! one store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Apis, Random, Server, Shim, TestStore, on_each_store, reply_to};

const ROUNDS: u64 = 12;
const CLIENTS: u64 = 6;
/// The maximum number of complete replies before a death.
const MOST_RECEIVED: u64 = 40;
const SEED: u64 = 20_261_116;
/// The rounds on a slow disk, and the complete replies before each death there.
const SLOW_ROUNDS: u64 = 3;
const SLOW_RECEIVED: u64 = 20;
/// The servers on one store, and the chats of each client with them.
const SERVERS: u64 = 3;
const CHATS: u64 = 6;
/// The lease in seconds. After that time, the replies of a dead process are marked as interrupted.
const LEASE_SECS: u32 = 5;
const PATIENCE: Duration = Duration::from_secs(120);

/// The APIs that the clients speak, in turn: the path, the field of the messages, and what the end of a stream has.
const APIS: [(&str, &str, &str); 6] = [
    ("/v1/chat/completions", "messages", "data: [DONE]"),
    ("/v1/responses", "input", "event: response.completed"),
    ("/v1/messages", "messages", "event: message_stop"),
    ("/api/chat", "messages", "\"done\":true"),
    ("/api/generate", "prompt", "\"done\":true"),
    ("/openai/deployments/d/chat/completions?api-version=2024-10-21", "messages", "data: [DONE]"),
];

/// A chat of a client, and what it received.
#[derive(Debug)]
struct Chat {
    session: String,
    question: String,
    /// Whether the client received any part of the answer.
    has_begun: bool,
    /// Whether the client received the complete answer.
    has_ended: bool,
}

on_each_store!(what_a_client_saw_the_end_of_is_recorded_and_the_rest_is_marked, chat_and_die);

fn chat_and_die(store: &TestStore) {
    let upstream = Apis::start();
    let mut random = Random(support::seed(SEED));
    // The chats of servers that wait long for a busy machine, and of servers with the default settings.
    let mut chats = [(Begun::IsRecorded, Vec::new()), (Begun::MayBeLost, Vec::new())];
    let rounds = store.rounds(ROUNDS);
    for round in 0..rounds {
        let (begun, said) = &mut chats[usize::from(!round.is_multiple_of(2))];
        let server = store.serve(&settings(&upstream, *begun));
        let deadly = 1 + random.below(MOST_RECEIVED);
        said.extend(run_until_killed(server, round, deadly));
    }
    let server = store.serve(&settings(&upstream, Begun::IsRecorded));
    let all = || chats.iter().flat_map(|(_, chats)| chats);
    let ended = all().filter(|chat| chat.has_ended).count();
    let cut = all().filter(|chat| chat.has_begun && !chat.has_ended).count();
    assert!(
        ended as u64 > rounds && (cut > 0 || rounds < ROUNDS),
        "{ended} ends and {cut} cuts prove little"
    );
    chats.iter().for_each(|(begun, chats)| check_all(&server, chats, *begun));
}

/// With commits of 300 ms, a reply is recorded after the time that a chat waits for memory.
fn die_on_a_slow_disk(store: &TestStore) {
    let upstream = Apis::start();
    let shim = Shim::of(store);
    let mut chats = Vec::new();
    let rounds = store.rounds(SLOW_ROUNDS);
    for round in 0..rounds {
        shim.set("");
        let server = store.serve_as("strata", &settings(&upstream, Begun::MayBeLost), Some(&shim));
        shim.set("slow 300");
        chats.extend(run_until_killed(server, round, SLOW_RECEIVED));
    }
    let server = store.serve(&settings(&upstream, Begun::MayBeLost));
    let ended = chats.iter().filter(|chat| chat.has_ended).count() as u64;
    assert!(ended >= rounds * SLOW_RECEIVED, "{ended} ends prove little");
    check_all(&server, &chats, Begun::MayBeLost);
}

#[test]
fn a_slow_disk_neither_doubles_nor_loses_a_reply() {
    die_on_a_slow_disk(&TestStore::sqlite());
}

#[test]
fn a_vault_on_a_slow_disk_neither_doubles_nor_loses_a_reply() {
    die_on_a_slow_disk(&TestStore::vault());
}

on_each_store!(several_servers_double_nothing, ask_several);

/// A client sends each request to another server than the one before. Files are on a slow disk.
fn ask_several(store: &TestStore) {
    let upstream = Apis::start();
    let shim = store.path().is_some().then(|| Shim::of(store));
    let mut settings = settings(&upstream, Begun::IsRecorded);
    // No process dies here, and a busy machine ends no lease.
    settings.push("learn.lease_secs=120");
    let servers: Vec<Server> =
        (0..SERVERS).map(|number| store.serve_as(&number.to_string(), &settings, shim.as_ref())).collect();
    shim.iter().for_each(|shim| shim.set("slow 100"));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let addresses: Vec<String> = servers.iter().map(|server| server.address().to_owned()).collect();
            thread::spawn(move || {
                let next =
                    |number: u64| (number < CHATS).then(|| addresses[(number % SERVERS) as usize].clone());
                chat_with(next, &mpsc::channel().0, 0, client)
            })
        })
        .collect();
    let chats: Vec<Chat> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    shim.iter().for_each(|shim| shim.set(""));
    assert_eq!(chats.iter().filter(|chat| chat.has_ended).count() as u64, CLIENTS * CHATS);
    check_all(&servers[0], &chats, Begun::IsRecorded);
}

/// The deaths of the server while responses are worked on in the background, and after replies over WebSockets.
const BACKGROUND_ROUNDS: usize = 6;
const SOCKET_ROUNDS: u64 = 6;
const SOCKET_CLIENTS: u64 = 4;
const SOCKET_RECEIVED: u64 = 20;

/// A request on a connection of its own: the body of the answer, if all of it came.
fn ask(address: &str, method: &str, path: &str, body: &str) -> Option<Value> {
    let bytes = exchange_with(address, method, path, body).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
}

/// A response in the background is recorded before a client has fetched its end. What was said is recorded before its id is told.
#[test]
fn a_response_in_the_background_is_recorded_before_its_end_is_fetched() {
    let (upstream, store) = (Apis::start(), TestStore::sqlite());
    let mut asked = Vec::new();
    for round in 0..BACKGROUND_ROUNDS {
        let server = store.serve(&settings(&upstream, Begun::IsRecorded));
        let question = format!("question {round} that takes long");
        let session = format!("background {round}");
        let body = json!({"model": "m", "input": question, "background": true, "memory_id": session});
        let made = ask(server.address(), "POST", "/v1/responses", &body.to_string()).unwrap();
        assert_eq!(made["status"], "queued", "{made}");
        let is_fetched = round % 2 == 0;
        if is_fetched {
            let path = format!("/v1/responses/{}", made["id"].as_str().unwrap());
            let states: Vec<Value> =
                (0..2).map(|_| ask(server.address(), "GET", &path, "").unwrap()["status"].take()).collect();
            assert_eq!(states, ["in_progress", "completed"]);
        }
        server.kill();
        asked.push(Chat { session, question, has_begun: true, has_ended: is_fetched });
    }
    let server = store.serve(&settings(&upstream, Begun::IsRecorded));
    check_all(&server, &asked, Begun::IsRecorded);
}

/// A frame of a WebSocket with a text. A client masks what it sends.
fn frame(text: &str, is_masked: bool) -> Vec<u8> {
    let mut frame = vec![0x81];
    let mask = u8::from(is_masked) << 7;
    match text.len() {
        length @ 0..=125 => frame.push(mask | length as u8),
        length => {
            frame.push(mask | 126);
            frame.extend((length as u16).to_be_bytes());
        }
    }
    let key: [u8; 4] = if is_masked { [7, 33, 5, 250] } else { [0; 4] };
    if is_masked {
        frame.extend(key);
    }
    frame.extend(text.bytes().enumerate().map(|(place, byte)| byte ^ key[place % 4]));
    frame
}

/// Reads the text of the next frame.
fn read_frame(stream: &mut impl Read) -> std::io::Result<String> {
    let mut head = [0; 2];
    stream.read_exact(&mut head)?;
    let mut length = usize::from(head[1] & 0x7f);
    if length == 126 {
        let mut more = [0; 2];
        stream.read_exact(&mut more)?;
        length = usize::from(u16::from_be_bytes(more));
    }
    let mut key = [0; 4];
    if head[1] & 0x80 != 0 {
        stream.read_exact(&mut key)?;
    }
    let mut text = vec![0; length];
    stream.read_exact(&mut text)?;
    text.iter_mut().enumerate().for_each(|(place, byte)| *byte ^= key[place % 4]);
    Ok(String::from_utf8(text).unwrap())
}

/// Reads the head of a request or an answer.
fn read_head(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// A model that answers each request for a response on a WebSocket.
fn socket_model() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || answer_socket(stream));
        }
    });
    address
}

fn answer_socket(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    read_head(&mut stream)?;
    stream.write_all(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    )?;
    for number in 0.. {
        let asked: Value = serde_json::from_str(&read_frame(&mut stream)?).unwrap();
        let reply = reply_to(asked["input"].as_str().unwrap());
        let id = format!("resp_{number}");
        let content = json!([{"type": "output_text", "text": reply}]);
        let output = json!([{"type": "message", "role": "assistant", "content": content}]);
        for event in [
            json!({"type": "response.created", "response": {"id": id, "output": []}}),
            json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": reply}),
            json!({"type": "response.completed", "response": {"id": id, "status": "completed", "output": output}}),
        ] {
            stream.write_all(&frame(&event.to_string(), false))?;
        }
    }
    Ok(())
}

/// Asks on one WebSocket until the server is dead.
fn talk_until_cut(address: &str, received: &mpsc::Sender<()>, round: u64, client: u64) -> Vec<Chat> {
    let session = format!("socket-{client}-of-{round}");
    let mut chats: Vec<Chat> = Vec::new();
    let mut talk = || -> std::io::Result<()> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "GET /v1/responses?model=m&session_id={session} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )?;
        let head = read_head(&mut stream)?;
        assert!(
            head.starts_with("HTTP/1.1 101") && head.contains("x-strata-memory-recorded: true"),
            "{head}"
        );
        for number in 0.. {
            let question = format!("question {number} of {session}");
            chats.push(Chat {
                session: session.clone(),
                question: question.clone(),
                has_begun: false,
                has_ended: false,
            });
            let request = json!({"type": "response.create", "model": "m", "input": question});
            stream.write_all(&frame(&request.to_string(), true))?;
            let chat = chats.last_mut().unwrap();
            while !chat.has_ended {
                chat.has_ended = read_frame(&mut stream)?.contains("response.completed");
                chat.has_begun = true;
            }
            let _ = received.send(());
        }
        Ok(())
    };
    // The connection ends when the server is dead.
    let _ = talk();
    chats
}

/// A reply over a WebSocket is recorded before the message that ends it is passed on.
#[test]
fn a_reply_over_a_websocket_whose_end_a_client_saw_is_recorded() {
    let store = TestStore::sqlite();
    let upstream = format!("upstream=http://{}/v1", socket_model());
    let lease = format!("learn.lease_secs={LEASE_SECS}");
    let settings = [&*upstream, &*lease, "log=warn", "memory_deadline_ms=60000"];
    let mut chats = Vec::new();
    for round in 0..SOCKET_ROUNDS {
        let server = store.serve(&settings);
        let (received, receiving) = mpsc::channel();
        let clients: Vec<_> = (0..SOCKET_CLIENTS)
            .map(|client| {
                let (address, received) = (server.address().to_owned(), received.clone());
                thread::spawn(move || talk_until_cut(&address, &received, round, client))
            })
            .collect();
        drop(received);
        let ended = receiving.iter().take(SOCKET_RECEIVED as usize).count() as u64;
        assert_eq!(ended, SOCKET_RECEIVED, "{}", server.log());
        server.kill();
        chats.extend(clients.into_iter().flat_map(|client| client.join().unwrap()));
    }
    let server = store.serve(&settings);
    assert!(chats.iter().filter(|chat| chat.has_ended).count() as u64 >= SOCKET_ROUNDS * SOCKET_RECEIVED);
    // What was said is recorded while the model works, so a reply may begin before.
    check_all(&server, &chats, Begun::MayBeLost);
}

/// What holds for a reply of which a client has seen the beginning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begun {
    IsRecorded,
    /// On a slow disk, the beginning of a reply does not wait for the question.
    MayBeLost,
}

#[track_caller]
fn check_all(server: &Server, chats: &[Chat], begun: Begun) {
    await_the_awaited(server);
    let wrong: Vec<String> =
        sessions(server, chats).into_iter().flat_map(|(of, turns)| check(&of, &turns, begun)).collect();
    assert!(wrong.is_empty(), "{} of {} chats:\n{}", wrong.len(), chats.len(), wrong.join("\n"));
}

/// Waits until no reply is awaited. There are no chats now, so the awaited replies belong to dead processes.
fn await_the_awaited(server: &Server) {
    let (began, mut client) = (Instant::now(), server.client());
    loop {
        let mut is_awaited = |status: &str| {
            let jobs = client.get(&format!("/jobs?status={status}&limit=1000")).unwrap().json();
            jobs["jobs"].as_array().unwrap().iter().any(|job| job["kind"] == "reply")
        };
        if !is_awaited("leased") && !is_awaited("queued") {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "some replies are awaited for ever:\n{}", server.log());
    }
}

fn settings(upstream: &Apis, begun: Begun) -> Vec<&'static str> {
    let upstream = format!("upstream={}", upstream.url());
    let lease = format!("learn.lease_secs={LEASE_SECS}");
    let mut settings = vec![&*upstream.leak(), lease.leak(), "log=warn"];
    if begun == Begun::IsRecorded {
        // On a busy machine a write may take longer than the beginning of a reply waits by default.
        settings.push("memory_deadline_ms=60000");
    }
    settings
}

fn run_until_killed(server: Server, round: u64, deadly: u64) -> Vec<Chat> {
    let (received, receiving) = mpsc::channel();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (address, received) = (server.address().to_owned(), received.clone());
            thread::spawn(move || chat_until_cut(&address, &received, round, client))
        })
        .collect();
    drop(received);
    assert_eq!(receiving.iter().take(deadly as usize).count() as u64, deadly, "{}", server.log());
    server.kill();
    clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
}

/// Chats in its own session, with the whole history each time, until the server is dead.
fn chat_until_cut(address: &str, received: &mpsc::Sender<()>, round: u64, client: u64) -> Vec<Chat> {
    chat_with(|_| Some(address.to_owned()), received, round, client)
}

/// Chats as [`chat_until_cut`] does, with the server that `next` names for each chat, until it names none.
fn chat_with(
    next: impl Fn(u64) -> Option<String>,
    received: &mpsc::Sender<()>,
    round: u64,
    client: u64,
) -> Vec<Chat> {
    let session = format!("session {client} of round {round}");
    let mut history: Vec<Value> = Vec::new();
    let mut chats = Vec::new();
    for number in 0.. {
        let Some(address) = next(number) else { break };
        let question = format!("question {number} of {session} with some words to stream");
        history.push(json!({"role": "user", "content": question}));
        let is_stream = !(number + client).is_multiple_of(3);
        let (path, field, end) = APIS[client as usize % APIS.len()];
        let mut body = json!({"model": "m", "max_tokens": 50, "stream": is_stream, "memory_id": session});
        // A generation has no history.
        body[field] = if field == "prompt" { json!(question) } else { json!(history) };
        let bytes = exchange(&address, path, &body.to_string()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let has_ended = match is_stream {
            true => text.ends_with("0\r\n\r\n") && text.contains(end),
            false => text
                .split_once("\r\n\r\n")
                .is_some_and(|(_, body)| serde_json::from_str::<Value>(body).is_ok()),
        };
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 200"), "{text}");
        chats.push(Chat {
            session: session.clone(),
            question: question.clone(),
            has_begun: !text.is_empty(),
            has_ended,
        });
        if !has_ended {
            return chats;
        }
        // Nobody may count any more.
        let _ = received.send(());
        history.push(json!({"role": "assistant", "content": reply_to(&question)}));
    }
    chats
}

/// The bytes until the connection ends, for any reason.
fn exchange(address: &str, path: &str, body: &str) -> std::io::Result<Vec<u8>> {
    exchange_with(address, "POST", path, body)
}

fn exchange_with(address: &str, method: &str, path: &str, body: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         X-Api-Key: sk-test\r\nApi-Key: sk-test\r\nAnthropic-Version: 2023-06-01\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes())?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    // A reset ends the connection as well.
    while let Ok(count) = stream.read(&mut buffer)
        && count > 0
    {
        bytes.extend_from_slice(&buffer[..count]);
    }
    Ok(bytes)
}

/// The chats of each session with its stored turns.
fn sessions<'a>(server: &Server, chats: &'a [Chat]) -> Vec<(Vec<&'a Chat>, Vec<Value>)> {
    let mut client = server.client();
    let mut names: Vec<&str> = chats.iter().map(|chat| chat.session.as_str()).collect();
    names.dedup();
    let of = |name: &str| {
        let path = format!("/sessions/{}/turns?limit=1000", name.replace(' ', "%20"));
        let turns = client.get(&path).unwrap().json()["turns"].as_array().cloned().unwrap_or_default();
        (chats.iter().filter(|chat| chat.session == name).collect(), turns)
    };
    names.into_iter().map(of).collect()
}

/// The problems of a session.
fn check(chats: &[&Chat], turns: &[Value], begun: Begun) -> Vec<String> {
    let mut wrong = Vec::new();
    for Chat { question, has_begun, has_ended, .. } in chats {
        let asked: Vec<&Value> = turns.iter().filter(|turn| turn["content"] == **question).collect();
        if asked.len() > 1 {
            wrong.push(format!("`{question}` is stored {} times", asked.len()));
        }
        let Some(asked) = asked.first() else {
            if *has_ended || *has_begun && begun == Begun::IsRecorded {
                wrong.push(format!("`{question}` was answered and is not recorded"));
            }
            continue;
        };
        let replies = turns.iter().filter(|turn| turn["follows"] == asked["seq"]);
        let replies: Vec<&Value> = replies.filter(|turn| turn["role"] == "assistant").collect();
        let is_whole =
            |turn: &&&Value| turn["content"] == reply_to(question) && turn["interrupted"].is_null();
        let is_marked = |turn: &&&Value| turn["interrupted"] == true;
        let whole = replies.iter().filter(is_whole).count();
        let marked = replies.iter().filter(is_marked).count();
        let is_right = if *has_ended { whole == 1 && marked == 0 } else { whole + marked == 1 };
        if !is_right {
            wrong.push(format!("`{question}` (ended: {has_ended}) has the replies {replies:?}"));
        }
    }
    wrong
}
