use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};
use strata_core::key::{SECRET_BYTES, SecretSource};
use strata_engine::NewKey;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::testing::{Answer, TestServer, request, with_window, with_window_on};
use crate::{Settings, serve_mcp};

const JSON: &str = "application/json";
const BOTH: &str = "application/json, text/event-stream";

/// One message over HTTP, from `user` if one is given.
async fn post(server: &TestServer, user: Option<&str>, message: &Value) -> Answer {
    let mut request = request(Method::POST, "/mcp").header("content-type", JSON).header("accept", BOTH);
    if let Some(user) = user {
        request = request.header("x-strata-user", user);
    }
    server.send(request.body(Body::from(message.to_string())).unwrap()).await
}

async fn ask(server: &TestServer, user: Option<&str>, method: &str, params: Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let answer = post(server, user, &message).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.header("content-type"), Some(JSON));
    answer.json()
}

/// A tool's result.
async fn call(server: &TestServer, user: Option<&str>, tool: &str, arguments: Value) -> Value {
    let answer = ask(server, user, "tools/call", json!({"name": tool, "arguments": arguments})).await;
    answer.get("result").unwrap_or_else(|| panic!("{tool}: {answer}")).clone()
}

async fn done(server: &TestServer, user: Option<&str>, tool: &str, arguments: Value) -> Value {
    let result = call(server, user, tool, arguments).await;
    assert_eq!(result["isError"], false, "{tool}: {result}");
    result["structuredContent"].clone()
}

#[tokio::test]
async fn the_catalogue_as_agents_see_it() {
    let server = TestServer::new();
    let tools = ask(&server, None, "tools/list", json!({})).await;
    insta::assert_snapshot!("tools", serde_json::to_string_pretty(&tools["result"]["tools"]).unwrap());
}

#[tokio::test]
async fn the_header_names_the_user_and_else_the_call() {
    let server = TestServer::new();
    let text = json!({"text": "prefers green tea", "user_id": "eve"});
    let added = done(&server, Some("ada"), "add_memory", text).await;
    let id = added["results"][0]["id"].as_str().unwrap().to_owned();
    let named = |user: &str| json!({"query": "green tea", "user_id": user});
    assert_eq!(done(&server, None, "search_memories", named("ada")).await["results"][0]["id"], id.as_str());
    assert_eq!(done(&server, None, "search_memories", named("eve")).await["results"], json!([]));
    assert_eq!(
        done(&server, Some("eve"), "search_memories", named("ada")).await["results"],
        json!([]),
        "a call never goes past the header"
    );
    for (tool, extra) in [
        ("get_memory", json!({})),
        ("update_memory", json!({"text": "mine now"})),
        ("delete_memory", json!({})),
    ] {
        let mut arguments = json!({"memory_id": id});
        arguments.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let result = call(&server, Some("eve"), tool, arguments).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
    }
    let uri = json!({"uri": format!("strata://memories/{id}")});
    assert!(ask(&server, Some("eve"), "resources/read", uri.clone()).await.get("error").is_some());
    assert!(
        ask(&server, Some("ada"), "resources/read", uri).await["result"]["contents"][0]["text"].is_string()
    );
    assert_eq!(
        ask(&server, Some("eve"), "resources/list", json!({})).await["result"]["resources"],
        json!([])
    );
}

#[tokio::test]
async fn a_failure_names_the_next_step() {
    let server = TestServer::new();
    let before = server.heads().await;
    for (tool, arguments, expected) in [
        (
            "get_memory",
            json!({"memory_id": "00000000-0000-0000-0000-000000000099"}),
            "Call `search_memories`",
        ),
        ("get_memory", json!({"memory_id": "nonsense"}), "Correct the arguments"),
        ("add_memory", json!({"text": "   "}), "the memory is empty"),
        ("add_memory", json!({"text": "x".repeat(2_000_000)}), "Make it shorter"),
        ("add_memory", json!({"text": "x", "metadata": {"a": "\u{0}"}}), "NUL"),
        ("add_memory", json!({"text": "x", "user_id": "*"}), "Correct the arguments"),
        ("search_memories", json!({"query": "x", "limit": 0}), "from 1 to 1000"),
        ("search_memories", json!({"query": "x", "threshold": 2}), "from 0 to 1"),
        ("search_memories", json!({"query": "x", "kinds": ["rumour"]}), "`memory`, `turn` and `summary`"),
        ("search_memories", json!({"query": "x", "as_of": "yesterday"}), "no time"),
        ("search_memories", json!({"query": "x", "scope": "world"}), "scope"),
        ("get_memories", json!({"offset": -1}), "next_offset"),
        (
            "explain_recall",
            json!({"request_id": "00000000-0000-0000-0000-000000000099"}),
            "Call `search_memories`",
        ),
        ("get_context", json!({"session_id": "nowhere"}), "does not exist"),
    ] {
        let result = call(&server, None, tool, arguments.clone()).await;
        assert_eq!(result["isError"], true, "{tool} {arguments}");
        let told = result["content"][0]["text"].as_str().unwrap();
        assert!(told.contains(expected), "{tool} {arguments}: {told}");
        assert!(told.chars().count() < 2_000, "{told}");
    }
    assert_eq!(server.heads().await, before, "what is refused changes nothing");
    let unknown = ask(&server, None, "tools/call", json!({"name": "forget_everything"})).await;
    assert!(unknown["error"]["message"].as_str().unwrap().contains("search_memories"), "{unknown}");
}

#[tokio::test]
async fn a_search_has_a_hint_for_using_it() {
    let server = TestServer::new();
    let search =
        async |query: &str| done(&server, Some("ada"), "search_memories", json!({"query": query})).await;
    assert_eq!(search("tea").await["note"], "nothing is known about this");
    let messages = json!([{"role": "user", "content": "we drink green tea"}]);
    server.post("/turns", json!({"user_id": "ada", "session_id": "s", "messages": messages})).await;
    let found = search("tea").await;
    assert_eq!(
        (&found["results"][0]["kind"], &found["results"][0]["role"], found.get("note")),
        (&json!("turn"), &json!("user"), None)
    );
    let only = json!({"query": "tea", "kinds": ["memory"]});
    assert_eq!(done(&server, Some("ada"), "search_memories", only).await["results"], json!([]));
    // Recent turns are not an answer to an unrelated question.
    let foreign = search("qqqq zzzz").await;
    assert_eq!((&foreign["results"], &foreign["note"]), (&json!([]), &json!("nothing is known about this")));
}

#[tokio::test]
async fn a_search_finds_summaries_alone() {
    let server = with_window_on(TestServer::with_lexicon()).await;
    let asked = json!({"query": "the relay of the kiln in Gdansk", "kinds": ["summary"], "threshold": 0});
    let found = done(&server, Some("ada"), "search_memories", asked).await;
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.len(), 1, "{found}");
    assert_eq!(results[0]["kind"], "summary");
    assert_eq!(results[0]["memory"], "The relay of the kiln was replaced in Gdansk.");
}

#[tokio::test]
async fn the_door_has_the_guards_and_limits_of_the_others() {
    let settings = Settings { max_body_bytes: 1_000, ..Settings::default() };
    let server = TestServer::with(settings, Default::default());
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let check = async |pairs: &[(&str, &str)], body: &str, status: u16, code: &str| {
        let mut request = request(Method::POST, "/mcp");
        for (name, value) in pairs {
            request = request.header(*name, *value);
        }
        let answer = server.send(request.body(Body::from(body.to_owned())).unwrap()).await;
        assert_eq!(answer.status, status, "{pairs:?} {}", answer.body);
        if status != 200 {
            assert_eq!(answer.json()["error"]["code"], code, "{pairs:?} {}", answer.body);
        }
        assert!(answer.header("x-strata-request-id").is_some());
    };
    let good = [("content-type", JSON), ("accept", BOTH)];
    check(&good, &ping, 200, "").await;
    check(&[("content-type", "text/plain"), ("accept", BOTH)], &ping, 415, "unsupported_media_type").await;
    check(&[("content-type", JSON)], &ping, 406, "invalid").await;
    check(&[good[0], good[1], ("origin", "https://evil.example")], &ping, 403, "forbidden_origin").await;
    check(&[good[0], good[1], ("host", "evil.example")], &ping, 403, "forbidden_host").await;
    check(&[good[0], good[1], ("x-strata-user", "*")], &ping, 400, "invalid").await;
    check(&good, &"x".repeat(2_000), 413, "too_large").await;
    for (body, code) in [("{\"jsonrpc\": \"2.0\", ", -32700), ("", -32700), ("{}", -32600), ("[1]", -32600)] {
        let mut request = request(Method::POST, "/mcp");
        for (name, value) in good {
            request = request.header(name, value);
        }
        let answer = server.send(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.body);
        let told = answer.json();
        assert_eq!(
            (&told["jsonrpc"], &told["id"], &told["error"]["code"]),
            (&json!("2.0"), &Value::Null, &json!(code))
        );
    }
    let answer = server.get("/mcp").await;
    assert_eq!((answer.status.as_u16(), answer.header("allow")), (405, Some("POST")));
}

#[tokio::test]
async fn over_streams_the_process_names_the_user() {
    let server = TestServer::new();
    let (client, ours) = tokio::io::duplex(64 * 1024);
    let user = Some("ada".parse().unwrap());
    let session = Some("desk".parse().unwrap());
    let serving = tokio::spawn(serve_mcp(
        server.app.clone(),
        user,
        session,
        tokio::io::split(ours),
        std::future::pending(),
    ));
    let (read, mut write) = tokio::io::split(client);
    let mut lines = BufReader::new(read).lines();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let add = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params":
        {"name": "add_memory", "arguments": {"text": "prefers green tea", "user_id": "eve"}}});
    for message in [initialize, initialized, add] {
        write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    let mut answer =
        async || -> Value { serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap() };
    let information = answer().await;
    assert_eq!(information["result"]["serverInfo"]["name"], "strata");
    assert!(information["result"]["instructions"].as_str().unwrap().contains("add_memory"));
    assert_eq!(answer().await["result"]["isError"], false);
    let listed = server.get("/memories?user_id=ada").await.json();
    assert_eq!(listed["results"][0]["memory"], "prefers green tea");
    assert_eq!(listed["results"][0]["run_id"], Value::Null, "the connection's session binds nothing");
    write.shutdown().await.unwrap();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_list_of_resources_goes_on_where_it_was() {
    let server = TestServer::new();
    for number in 0..150 {
        server.post("/memories", json!({"user_id": "ada", "text": format!("plant {number}")})).await;
    }
    let page =
        async |params: Value| ask(&server, Some("ada"), "resources/list", params).await["result"].clone();
    let first = page(json!({})).await;
    assert_eq!(first["resources"].as_array().unwrap().len(), 100);
    assert_eq!(first["resources"][0]["title"], "plant 149");
    server.post("/memories", json!({"user_id": "ada", "text": "a pond"})).await;
    let second = page(json!({"cursor": first["nextCursor"]})).await;
    assert_eq!(second["resources"].as_array().unwrap().len(), 50);
    assert_eq!(second["resources"][0]["title"], "plant 49");
    assert_eq!(second.get("nextCursor"), None);
    for wrong in ["", "x", "1", "1-", "1--1", "99999999999999999999-0", "1-9223372036854775808"] {
        let answer = ask(&server, Some("ada"), "resources/list", json!({"cursor": wrong})).await;
        assert_eq!(answer["error"]["code"], -32602, "{wrong}: {answer}");
    }
}

/// A secret of one byte.
struct Plain(u8);

impl SecretSource for Plain {
    fn fill(&self, bytes: &mut [u8; SECRET_BYTES]) -> strata_core::Result<()> {
        bytes.fill(self.0);
        Ok(())
    }
}

#[tokio::test]
async fn a_key_decides_the_user_and_the_scopes() {
    let settings = Settings { keys_remembered: std::time::Duration::ZERO, ..Settings::default() };
    let server = TestServer::with(settings, Default::default());
    let own = json!({"user_id": "ada", "text": "prefers green tea"});
    let id = server.post("/memories", own).await.json()["results"][0]["id"].as_str().unwrap().to_owned();
    let make = async |number: u8, user: &str, scopes: &str| {
        let new = NewKey { scopes: scopes.parse().unwrap(), ..NewKey::new(user.parse().unwrap()) };
        server.app.engine().keys.create(new, &Plain(number)).await.unwrap().1.reveal().to_owned()
    };
    let (reader, writer) = (make(1, "ada", "read").await, make(2, "ada", "write").await);
    let stranger = make(3, "eve", "read,write").await;
    let send = async |key: Option<&str>, method: &str, params: Value| {
        let mut request = request(Method::POST, "/mcp").header("content-type", JSON).header("accept", BOTH);
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        server.send(request.body(Body::from(message.to_string())).unwrap()).await
    };
    let list = json!({});
    assert_eq!(send(None, "tools/list", list).await.status, 401);
    let all = [
        ("search_memories", json!({"query": "green tea"}), true),
        ("get_memories", json!({}), true),
        ("get_memory", json!({"memory_id": id}), true),
        ("add_memory", json!({"text": "prefers black tea"}), false),
        ("update_memory", json!({"memory_id": id, "text": "prefers tea"}), false),
        ("delete_memory", json!({"memory_id": id}), false),
        ("delete_all_memories", json!({}), false),
    ];
    for (tool, arguments, reads) in all {
        let call = |arguments: &Value| json!({"name": tool, "arguments": arguments});
        let other = if reads { &writer } else { &reader };
        let refused = send(Some(other), "tools/call", call(&arguments)).await.json()["result"].clone();
        assert_eq!(refused["isError"], true, "{tool}");
        assert!(refused["content"][0]["text"].as_str().unwrap().contains("scope"), "{tool}: {refused}");
        let mut foreign = arguments.clone();
        foreign["user_id"] = json!("ada");
        let refused = send(Some(&stranger), "tools/call", call(&foreign)).await.json()["result"].clone();
        assert_eq!(refused["isError"], true, "{tool}: a key names nobody else");
        let answer = send(Some(&stranger), "tools/call", call(&arguments)).await.json()["result"].clone();
        assert!(!answer.to_string().contains("prefers green tea"), "{tool}: {answer}");
        if reads {
            let mine = send(Some(&reader), "tools/call", call(&arguments)).await.json()["result"].clone();
            assert!(mine.to_string().contains("prefers green tea"), "{tool}: {mine}");
        }
    }
    let uri = json!({"uri": format!("strata://memories/{id}")});
    for (key, sees) in [(&reader, true), (&writer, false), (&stranger, false)] {
        let answer = send(Some(key), "resources/read", uri.clone()).await.json();
        assert_eq!(answer.to_string().contains("prefers green tea"), sees, "{answer}");
    }
    assert!(send(Some(&writer), "resources/list", json!({})).await.json().get("error").is_some());
}

#[tokio::test]
async fn filters_narrow_a_search_and_a_list() {
    let server = TestServer::new();
    for (text, topic) in [("prefers green tea", "drink"), ("prefers green shirts", "clothes")] {
        let arguments = json!({"text": text, "metadata": {"topic": topic}});
        done(&server, Some("ada"), "add_memory", arguments).await;
    }
    let drinks = json!({"topic": {"in": ["drink"]}});
    let found =
        done(&server, Some("ada"), "search_memories", json!({"query": "green", "filters": drinks})).await;
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["results"][0]["memory"], "prefers green tea");
    let listed = done(&server, Some("ada"), "get_memories", json!({"filters": drinks})).await;
    assert_eq!(listed["results"].as_array().unwrap().len(), 1, "{listed}");
    let named = json!({"query": "green", "filters": {"user_id": "ada"}});
    let named = done(&server, None, "search_memories", named).await;
    assert_eq!(named["results"].as_array().unwrap().len(), 2, "a filter may say who asks");
    let wrong =
        call(&server, None, "search_memories", json!({"query": "x", "filters": {"a": {"like": 1}}})).await;
    assert!(wrong["content"][0]["text"].as_str().unwrap().contains("`like`"), "{wrong}");
}

#[tokio::test]
async fn a_limit_raises_the_results_and_never_the_tokens() {
    let server = TestServer::new();
    for number in 0..40 {
        let said = format!("apiary report {number} {}", "hive ".repeat(600));
        let messages = json!([{"role": "user", "content": said}]);
        let body = json!({"user_id": "ada", "session_id": format!("s{number}"), "messages": messages});
        server.post("/turns", body).await;
    }
    for limit in [json!({"limit": 10}), json!({"top_k": 40}), json!({"limit": 1000})] {
        let mut arguments = json!({"query": "apiary report", "threshold": 0});
        arguments.as_object_mut().unwrap().extend(limit.as_object().unwrap().clone());
        let found = done(&server, Some("ada"), "search_memories", arguments).await;
        let texts = found["results"].as_array().unwrap().iter();
        let words = texts.map(|item| item["memory"].as_str().unwrap().split_whitespace().count());
        let words: usize = words.sum();
        assert!(words > 500 && words <= 2_000, "{limit}: {words} tokens");
    }
}

#[tokio::test]
async fn a_connections_session_without_a_user_is_a_wall() {
    let server = TestServer::new();
    let call = async |session: &str, method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let request = request(Method::POST, "/mcp").header("content-type", JSON).header("accept", BOTH);
        let request = request.header("x-strata-session", session);
        server.send(request.body(Body::from(message.to_string())).unwrap()).await.json()["result"].clone()
    };
    let tool = async |session: &str, name: &str, arguments: Value| {
        call(session, "tools/call", json!({"name": name, "arguments": arguments})).await
    };
    let text = json!({"text": "the safe of the workshop opens with 90210"});
    let messages = json!([{"role": "user", "content": "I wrote 90210 on the door."}]);
    server.post("/turns", json!({"session_id": "guild-a", "messages": messages})).await;
    let added = tool("guild-a", "add_memory", text).await;
    let id = added["structuredContent"]["results"][0]["id"].as_str().unwrap().to_owned();
    for (name, arguments) in [
        ("search_memories", json!({"query": "safe of the workshop", "threshold": 0})),
        ("search_memories", json!({"query": "safe of the workshop", "scope": "user", "threshold": 0})),
        ("get_memories", json!({})),
        ("get_memories", json!({"session_id": "guild-a"})),
        ("get_context", json!({"session_id": "guild-a"})),
        ("get_memory", json!({"memory_id": id})),
        ("update_memory", json!({"memory_id": id, "text": "mine"})),
        ("delete_memory", json!({"memory_id": id})),
        ("delete_all_memories", json!({})),
    ] {
        let result = tool("guild-b", name, arguments).await;
        assert!(!result.to_string().contains("90210"), "{name}: {result}");
    }
    let uri = json!({"uri": format!("strata://memories/{id}")});
    assert_eq!(call("guild-b", "resources/read", uri.clone()).await, Value::Null);
    assert_eq!(call("guild-b", "resources/list", json!({})).await["resources"], json!([]));
    // The session itself still has all of it.
    let found = tool("guild-a", "search_memories", json!({"query": "safe of the workshop"})).await;
    assert_eq!(found["structuredContent"]["results"][0]["id"], id.as_str());
    assert!(call("guild-a", "resources/read", uri).await.to_string().contains("90210"));
    let named = json!({"query": "safe of the workshop", "user_id": "default"});
    let found = tool("guild-b", "search_memories", named).await;
    assert!(found.to_string().contains("90210"), "the user `default` has all its sessions: {found}");
}

#[tokio::test]
async fn summaries_of_a_model_stand_in_the_context() {
    let server = with_window().await;
    let context = async |turns: u32| {
        done(&server, Some("ada"), "get_context", json!({"session_id": "kiln", "turns": turns})).await
    };
    let written = context(4).await["summaries"][0].as_str().unwrap().to_owned();
    assert!(
        written.ends_with("summary of messages 1 to 4] The relay of the kiln was replaced in Gdansk."),
        "{written}"
    );
    let all = context(8).await;
    assert_eq!(all.get("summaries"), None, "its messages are shown: {all}");
}
