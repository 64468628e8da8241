//! WebSockets through the proxy, on real sockets.

use strata_core::UserId;
use strata_engine::NewKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::names::Counted;
use super::*;
use crate::{ModelPattern, UpstreamApi, UpstreamSettings};

/// A frame with a short text. Those of a client are masked; this mask changes nothing.
fn text(text: &str, is_masked: bool) -> Vec<u8> {
    let mut frame = vec![0x81, 126 | if is_masked { 0x80 } else { 0 }];
    frame.extend((text.len() as u16).to_be_bytes());
    frame.extend(if is_masked { &[0; 4][..] } else { &[] });
    frame.extend(text.as_bytes());
    frame
}

async fn read_text(stream: &mut TcpStream) -> String {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await.unwrap();
    let masked = if head[1] & 0x80 == 0 { 0 } else { 4 };
    let mut content = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]])) + masked];
    stream.read_exact(&mut content).await.unwrap();
    String::from_utf8(content.split_off(masked)).unwrap()
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push(char::from(stream.read_u8().await.unwrap()));
    }
    head.to_lowercase()
}

/// An upstream that accepts WebSockets, or refuses them. It answers each text with those that `script` says.
struct Upstream {
    address: String,
    /// The heads and texts that it has received.
    received: UnboundedReceiver<String>,
}

impl Upstream {
    async fn start(accepts: bool, script: fn(&Value) -> Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, received) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let sender = sender.clone();
                tokio::spawn(async move {
                    let _ = sender.send(read_head(&mut stream).await);
                    let answer = match accepts {
                        false => "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n",
                        true => {
                            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                             Sec-WebSocket-Accept: abc\r\nSec-WebSocket-Protocol: realtime\r\n\r\n"
                        }
                    };
                    stream.write_all(answer.as_bytes()).await.unwrap();
                    loop {
                        let asked = read_text(&mut stream).await;
                        for answer in script(&serde_json::from_str(&asked).unwrap_or_default()) {
                            stream.write_all(&text(&answer.to_string(), false)).await.unwrap();
                        }
                        let _ = sender.send(asked);
                    }
                });
            }
        });
        Self { address, received }
    }
}

/// A server in front of an upstream, and its address.
struct Realtime {
    chatting: TestServer,
    address: std::net::SocketAddr,
    upstream: Upstream,
}

impl Realtime {
    async fn start(script: fn(&Value) -> Vec<Value>) -> Self {
        Self::in_front_of(Upstream::start(true, script).await).await
    }

    async fn in_front_of(upstream: Upstream) -> Self {
        Self::in_front_of_several(upstream, Vec::new()).await
    }

    async fn in_front_of_several(upstream: Upstream, upstreams: Vec<UpstreamSettings>) -> Self {
        let url = format!("http://{}/v1", upstream.address).parse().unwrap();
        let memory_deadline = Duration::from_secs(30);
        let proxy =
            ProxySettings { upstream: Some(url), upstreams, memory_deadline, ..ProxySettings::default() };
        let settings = Settings { proxy, keys_remembered: Duration::ZERO, ..Settings::default() };
        let chatting = TestServer::with(settings, Default::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(crate::serve(listener, chatting.app.clone(), std::future::pending()));
        Self { chatting, address, upstream }
    }

    /// Opens a WebSocket, and returns it with the head of the answer.
    async fn open(&self, path: &str, headers: &str) -> (TcpStream, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: key\r\n\
             Sec-WebSocket-Extensions: permessage-deflate\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let head = read_head(&mut stream).await;
        (stream, head)
    }

    /// The turns of a session of `ada`.
    async fn turns(&self, session: &str) -> Vec<String> {
        self.chatting.app.proxy().finish(Duration::from_secs(30)).await;
        let answer = self.chatting.get(&format!("/sessions/{session}/turns?user_id=ada")).await.json();
        let shown = |turn: &Value| {
            let broken = if turn["interrupted"] == true { " …" } else { "" };
            format!("{}: {}{broken}", turn["role"].as_str().unwrap(), turn["content"].as_str().unwrap())
        };
        answer["turns"].as_array().map(|turns| turns.iter().map(shown).collect()).unwrap_or_default()
    }
}

const ADA: &str = "X-Strata-User: ada\r\nX-Strata-Session: s\r\n";

async fn send(stream: &mut TcpStream, event: &Value) {
    stream.write_all(&text(&event.to_string(), true)).await.unwrap();
}

fn nothing(_: &Value) -> Vec<Value> {
    Vec::new()
}

/// A model that hears, transcribes and speaks.
fn spoken(event: &Value) -> Vec<Value> {
    let reply = |text: &str| {
        let content = json!([{"type": "output_audio", "transcript": text}]);
        let output = json!([{"type": "message", "role": "assistant", "content": content}]);
        json!({"type": "response.done", "response": {"id": "resp_1", "status": "completed", "output": output,
            "conversation_id": "conv_1", "usage": {"input_tokens": 7, "output_tokens": 2}}})
    };
    match event["type"].as_str().unwrap_or_default() {
        "session.update" => vec![json!({"type": "session.updated", "session": event["session"]})],
        "input_audio_buffer.commit" => {
            let kind = "conversation.item.input_audio_transcription.completed";
            vec![
                json!({"type": "input_audio_buffer.committed", "item_id": "item_1"}),
                reply("Behind the aquarium."),
                json!({"type": kind, "item_id": "item_1", "transcript": "Where is my bike?"}),
            ]
        }
        "response.create" => vec![reply("Noted.")],
        _ => Vec::new(),
    }
}

/// A model that answers requests for responses, lane by lane.
fn responded(event: &Value) -> Vec<Value> {
    let stream = |id: &str, words: &str, lane: &Value, status: &str| {
        let content = json!([{"type": "output_text", "text": words}]);
        let output = json!([{"type": "message", "role": "assistant", "content": content}]);
        let end = json!({"id": id, "status": status, "output": output, "model": "m-1"});
        let mut events = vec![
            json!({"type": "response.created", "response": {"id": id}}),
            json!({"type": format!("response.{status}"), "response": end}),
        ];
        for event in events.iter_mut().filter(|_| lane.is_string()) {
            event["stream_id"] = lane.clone();
        }
        events
    };
    let lane = &event["stream_id"];
    match event["input"].as_str().unwrap_or_default() {
        "wait" => stream("resp_w", "", lane, "completed")[..1].to_vec(),
        "go on" => {
            let mut both = stream("resp_w", "One.", lane, "incomplete");
            both.remove(0);
            both.extend(stream("resp_x", "Two.", lane, "completed"));
            both
        }
        said => stream(&format!("resp_{said}"), &format!("reply to {said}"), lane, "completed"),
    }
}

#[tokio::test]
async fn a_websocket_passes_in_both_directions() {
    let mut realtime = Realtime::start(|event| vec![event.clone()]).await;
    let (mut stream, head) =
        realtime.open("/v1/other?model=m", "Authorization: Bearer mine\r\nX-Strata-User: ada\r\n").await;
    assert!(head.starts_with("http/1.1 101"), "{head}");
    for line in ["upgrade: websocket", "sec-websocket-accept: abc", "sec-websocket-protocol: realtime"] {
        assert!(head.contains(line), "{head}");
    }
    assert!(head.contains("x-strata-memory-reason: websocket"), "it is said that memory has no part: {head}");
    assert!(head.contains("x-strata-memory-recorded: false"), "{head}");
    send(&mut stream, &json!({"n": 1})).await;
    assert_eq!(read_text(&mut stream).await, r#"{"n":1}"#);
    let sent = realtime.upstream.received.recv().await.unwrap();
    assert!(sent.starts_with("get /v1/other?model=m http/1.1"), "{sent}");
    let extensions = "sec-websocket-extensions: permessage-deflate";
    for line in ["upgrade: websocket", "sec-websocket-key: key", "authorization: bearer mine", extensions] {
        assert!(sent.contains(line), "{sent}");
    }
    assert!(!sent.contains("x-strata"), "{sent}");
    assert!(realtime.chatting.heads().await.is_empty(), "nothing is recorded");
}

#[tokio::test]
async fn a_refusal_of_the_upstream_passes() {
    let realtime = Realtime::in_front_of(Upstream::start(false, nothing).await).await;
    let (_, head) = realtime.open("/v1/realtime", ADA).await;
    assert!(head.starts_with("http/1.1 426"), "{head}");
}

#[tokio::test]
async fn a_realtime_conversation_is_recorded_with_its_transcripts() {
    let mut realtime = Realtime::start(spoken).await;
    let (mut stream, head) = realtime.open("/v1/realtime?model=m", ADA).await;
    assert!(head.contains("x-strata-memory-recorded: true"), "{head}");
    let sent = realtime.upstream.received.recv().await.unwrap();
    assert!(!sent.contains("deflate"), "the texts have to be readable: {sent}");
    let input = json!({"audio": {"input": {"transcription": {"model": "t"}}}});
    send(&mut stream, &json!({"type": "session.update", "session": input})).await;
    read_text(&mut stream).await;
    let content = json!([{"type": "input_text", "text": "My bike is a red Gazelle."}]);
    let item = json!({"type": "message", "role": "user", "content": content});
    send(&mut stream, &json!({"type": "conversation.item.create", "item": item})).await;
    send(&mut stream, &json!({"type": "response.create"})).await;
    assert!(read_text(&mut stream).await.contains("Noted."));
    let told = ["user: My bike is a red Gazelle.", "assistant: Noted."];
    // The reply was recorded before it was passed on, while the connection is open.
    let turns = realtime.chatting.get("/sessions/s/turns?user_id=ada").await.json();
    assert_eq!(turns["turns"].as_array().map(Vec::len), Some(2), "{turns}");
    assert_eq!(turns["turns"][1]["usage"], json!({"prompt_tokens": 7, "completion_tokens": 2}));
    send(&mut stream, &json!({"type": "input_audio_buffer.append", "audio": "AAAA"})).await;
    send(&mut stream, &json!({"type": "input_audio_buffer.commit"})).await;
    for _ in 0..3 {
        read_text(&mut stream).await;
    }
    let asked = ["user: Where is my bike?", "assistant: Behind the aquarium."];
    assert_eq!(realtime.turns("s").await, [told, asked].concat());
}

#[tokio::test]
async fn responses_on_a_websocket_are_recorded_like_chats() {
    let realtime = Realtime::start(responded).await;
    let (mut stream, head) = realtime.open("/v1/responses", ADA).await;
    assert!(head.contains("x-strata-memory-recorded: true"), "{head}");
    let create = |input: &str| json!({"type": "response.create", "model": "m", "input": input});
    send(&mut stream, &create("one")).await;
    read_text(&mut stream).await;
    read_text(&mut stream).await;
    assert_eq!(realtime.turns("s").await, ["user: one", "assistant: reply to one"]);
    let mut next = create("two");
    next["previous_response_id"] = json!("resp_one");
    // It prepares a request, and says nothing.
    let mut prepared = create("nothing");
    prepared["generate"] = json!(false);
    for event in [&prepared, &next] {
        send(&mut stream, event).await;
        read_text(&mut stream).await;
        read_text(&mut stream).await;
    }
    let expected = ["user: one", "assistant: reply to one", "user: two", "assistant: reply to two"];
    assert_eq!(realtime.turns("s").await, expected);
}

#[tokio::test]
async fn lanes_are_told_apart_and_a_steered_response_has_a_successor() {
    let realtime = Realtime::start(responded).await;
    let (mut stream, _) = realtime.open("/v1/responses", "X-Strata-User: ada\r\n").await;
    let in_lane = |lane: &str, input: &str| json!({"type": "response.create", "stream_id": lane, "input": input, "session_id": lane});
    send(&mut stream, &in_lane("a", "wait")).await;
    read_text(&mut stream).await;
    send(&mut stream, &in_lane("b", "three")).await;
    read_text(&mut stream).await;
    read_text(&mut stream).await;
    // Only the scripted model needs to be told the lane.
    let steer = json!({"type": "response.steer", "previous_response_id": "resp_w", "input": "go on", "stream_id": "a"});
    send(&mut stream, &steer).await;
    for _ in 0..3 {
        read_text(&mut stream).await;
    }
    assert_eq!(realtime.turns("b").await, ["user: three", "assistant: reply to three"]);
    let expected = ["user: wait", "assistant: One.", "user: go on", "assistant: Two."];
    assert_eq!(realtime.turns("a").await, expected);
}

#[tokio::test]
async fn memory_is_off_for_a_connection_if_it_says_so_and_names_may_stand_in_the_address() {
    let realtime = Realtime::start(spoken).await;
    let (mut stream, head) = realtime.open("/v1/realtime", &format!("{ADA}X-Strata-Memory: off\r\n")).await;
    assert!(head.contains("x-strata-memory-recorded: false"), "{head}");
    send(&mut stream, &json!({"type": "response.create"})).await;
    read_text(&mut stream).await;
    assert!(realtime.chatting.heads().await.is_empty());
    let (mut stream, _) = realtime.open("/v1/realtime?model=m&user_id=ada&session_id=browser", "").await;
    send(&mut stream, &json!({"type": "response.create"})).await;
    read_text(&mut stream).await;
    assert_eq!(realtime.turns("browser").await, ["assistant: Noted."]);
}

#[tokio::test]
async fn a_conversation_that_breaks_off_is_recorded_as_far_as_it_came() {
    let realtime = Realtime::start(responded).await;
    let (mut stream, _) = realtime.open("/v1/responses", ADA).await;
    send(&mut stream, &json!({"type": "response.create", "input": "wait"})).await;
    read_text(&mut stream).await;
    drop(stream);
    while realtime.turns("s").await.len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(realtime.turns("s").await, ["user: wait", "assistant:  …"]);
}

#[tokio::test]
async fn a_key_goes_on_with_its_own_responses_only() {
    let realtime = Realtime::start(responded).await;
    let keys = &realtime.chatting.app.engine().keys;
    let key = async |user: &str, number| {
        let new = NewKey::new(UserId::new(user).unwrap());
        keys.create(new, &Counted(number)).await.unwrap().1.reveal().to_owned()
    };
    let (ann, bob) = (key("ann", 31).await, key("bob", 32).await);
    let open =
        async |key: &str| realtime.open("/v1/responses", &format!("Authorization: Bearer {key}\r\n")).await.0;
    let create = |input: &str, before: Option<&str>| json!({"type": "response.create", "input": input, "previous_response_id": before});
    let mut anns = open(&ann).await;
    send(&mut anns, &create("one", None)).await;
    read_text(&mut anns).await;
    read_text(&mut anns).await;
    send(&mut anns, &create("two", Some("resp_one"))).await;
    assert!(read_text(&mut anns).await.contains("resp_two"));
    let mut bobs = open(&bob).await;
    send(&mut bobs, &create("three", Some("resp_one"))).await;
    let mut rest = Vec::new();
    // The connection ends without an answer.
    let _ = bobs.read_to_end(&mut rest).await;
    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
}

#[tokio::test]
async fn the_model_of_the_query_chooses_the_upstream() {
    let [main, mut named] =
        [Upstream::start(true, |_| vec![]).await, Upstream::start(true, |_| vec![]).await];
    let one = UpstreamSettings {
        models: vec![ModelPattern::new("talk-*")],
        url: format!("http://{}/v1", named.address).parse().unwrap(),
        api: UpstreamApi::OpenAi,
        key: None,
        timeout: None,
        transport: Default::default(),
        retries: 0,
    };
    let mut realtime = Realtime::in_front_of_several(main, vec![one]).await;
    for (path, is_named) in [
        ("/v1/realtime?model=talk-2", true),
        ("/v1/realtime?voice=low&model=talk%2D2", true),
        ("/openai/v1/realtime?model=talk-2", true),
        ("/openai/realtime?api-version=2025-04-01&deployment=talk-2", true),
        ("/v1/realtime?model=other-2", false),
        ("/v1/realtime?no_model=talk-2", false),
        ("/v1/realtime?model=", false),
        ("/v1/realtime", false),
    ] {
        let (_stream, head) = realtime.open(path, ADA).await;
        assert!(head.starts_with("http/1.1 101 "), "{path}: {head}");
        let reached = if is_named { &mut named } else { &mut realtime.upstream };
        let sent = reached.received.recv().await.unwrap();
        assert!(sent.starts_with(&format!("get {} http/1.1", path.to_lowercase())), "{path}: {sent}");
    }
}
