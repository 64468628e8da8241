//! Third-party clients of the providers' APIs, with the real binary: only the URL is changed.
//!
//! `api_clients.py` and `api_clients.mjs` run the clients; the model behind the proxy is scripted and strict. Afterwards the
//! tests check what reached the model and what is in the store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use support::{Apis, Received, Server, api_venv, node_folder};

/// The image that the scripts send.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn python_clients_of_all_apis_chat_with_memory() {
    let python = api_venv().join("bin/python");
    assert!(
        python.is_file(),
        "no Python at {}; `cargo xtask check` makes it, or name a virtual environment in `STRATA_TEST_API_VENV`",
        python.display()
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api_clients.py");
    let remembering: &[(&str, &[&str])] = &[
        ("responses", &["asked"]),
        ("anthropic", &["asked", "document"]),
        ("agents", &["asked", "streamed"]),
        ("litellm", &["openai-asked", "anthropic-asked"]),
        (
            "pydantic",
            &[
                "responses-asked",
                "chat-asked",
                "anthropic-asked",
                "responses-streamed",
                "chat-streamed",
                "anthropic-streamed",
            ],
        ),
        ("langchain", &["asked-True", "asked-False"]),
        ("llama-index", &["chat-asked", "responses-asked"]),
        ("instructor", &["asked"]),
        ("ollama", &["asked", "generated"]),
        ("azure", &["asked", "streamed", "responses", "newer", "newer-responses"]),
    ];
    check(
        |root| Command::new(&python).arg(&script).arg(root).output().unwrap(),
        remembering,
        &[
            ("responses", "tools"),
            ("anthropic", "tools"),
            ("anthropic", "cached-tools"),
            ("agents", "tools"),
            ("agents", "streamed-tools"),
            ("litellm", "openai-tools"),
            ("litellm", "anthropic-tools"),
            ("pydantic", "responses-tools"),
            ("pydantic", "chat-tools"),
            ("pydantic", "anthropic-tools"),
            ("langchain", "tools-True"),
            ("langchain", "tools-False"),
            ("llama-index", "chat-tools"),
            ("llama-index", "responses-tools"),
            ("instructor", "tools"),
            ("ollama", "tools"),
            ("azure", "tools"),
        ],
        // The clients above, LlamaIndex in two ways, and instructor.
        15,
    );
}

#[test]
fn javascript_clients_of_all_apis_chat_with_memory() {
    let folder = node_folder();
    assert!(
        folder.join("node_modules").is_dir(),
        "no packages at {}; `cargo xtask check` installs them, or name a folder in `STRATA_TEST_NODE`",
        folder.display()
    );
    let folder = folder.canonicalize().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api_clients.mjs");
    let remembering: &[(&str, &[&str])] = &[
        ("js-openai", &["asked", "chat", "chat-streamed"]),
        ("js-anthropic", &["asked", "document"]),
        ("js-vercel", &["openai-asked", "anthropic-asked", "compatible-asked"]),
        ("js-ollama", &["asked"]),
    ];
    check(
        |root| Command::new("node").arg(&script).arg(root).arg(&folder).output().unwrap(),
        remembering,
        &[
            ("js-openai", "tools"),
            ("js-anthropic", "tools"),
            ("js-anthropic", "cached-tools"),
            ("js-vercel", "openai-tools"),
            ("js-vercel", "anthropic-tools"),
            ("js-vercel", "compatible-tools"),
            ("js-ollama", "tools"),
        ],
        6,
    );
}

/// Runs every example of `docs/clients.md` with the real package; only the address is the test's.
#[test]
fn the_examples_of_the_page_run() {
    let page = include_str!("../../../docs/clients.md");
    let directory = tempfile::tempdir().unwrap();
    let upstream = Apis::start();
    let setting = format!("upstream={}", upstream.url());
    let server =
        Server::start_with(&directory.path().join("page.db"), &[&setting, "memory_deadline_ms=60000"]);
    let node = node_folder().canonicalize().unwrap();
    let mut client = server.client();
    let told = json!({"user_id": "ada", "session_id": "told", "messages": [{"role": "user", "content": "My canoe is called Heron."}]});
    assert_eq!(client.post("/turns", &told).unwrap().status, 201);
    let (mut ran, mut asked) = (0, 0);
    for (language, program, file) in [
        ("python", api_venv().join("bin/python"), directory.path().join("example.py")),
        ("js", "node".into(), node.join("example.mjs")),
    ] {
        for example in
            page.split(&format!("```{language}\n")).skip(1).filter_map(|rest| rest.split("```").next())
        {
            let before = upstream.received().len();
            std::fs::write(&file, example.replace("127.0.0.1:8100", server.address())).unwrap();
            let mut command = Command::new(&program);
            command.env("OPENAI_API_KEY", "sk-test").env("ANTHROPIC_API_KEY", "sk-test");
            command.env("OPENAI_AGENTS_DISABLE_TRACING", "1").env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
            let output = command.arg(&file).output().unwrap();
            assert!(output.status.success(), "{example}\n{}\n{}", support::show(&output), server.log());
            let calls = example.matches("canoe called?").count() + example.matches("called Heron.").count();
            let received = upstream.received().split_off(before);
            assert!(
                calls > 0 && received.len() >= calls,
                "{calls} calls reach the model: {received:?}\n{example}"
            );
            let is_question = |request: &&Received| request.body.to_string().contains("canoe called?");
            for question in received.iter().filter(is_question) {
                let text = question.body.to_string();
                assert!(text.contains("<strata_memory>") && text.contains("Heron"), "{text}\n{example}");
                asked += 1;
            }
            ran += 1;
        }
    }
    std::fs::remove_file(node.join("example.mjs")).unwrap();
    // A client may repeat a request.
    assert!(ran == 16 && asked >= 17, "{ran} examples, {asked} questions that were asked with memory");
    let turns = client.get("/sessions/default/turns?user_id=ada&limit=100").unwrap().json();
    // All ask the same in one conversation, so each has the question answered anew.
    let is_reply = |turn: &&String| turn.as_str() == "assistant: reply to What is my canoe called?";
    let recorded = shown(&turns).iter().filter(is_reply).count();
    assert!(recorded >= 17, "{recorded} of {asked} replies are recorded: {turns}");
}

/// Sends the headers of LibreChat's example as LibreChat fills them in.
#[test]
fn the_headers_of_librechats_example_name_user_and_conversation() {
    let page = include_str!("../../../docs/clients.md");
    let example = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let filled: Vec<(String, &str)> = example
        .lines()
        .filter_map(|line| line.trim().split_once(": "))
        .filter_map(|(name, template)| match template.trim_matches('"') {
            "{{LIBRECHAT_USER_ID}}" => Some((name.to_owned(), "65f1c0ffee")),
            "{{LIBRECHAT_BODY_CONVERSATIONID}}" => {
                Some((name.to_owned(), "7c9e6679-7425-40de-944b-e07fc1f90ae7"))
            }
            _ => None,
        })
        .collect();
    assert_eq!(filled.len(), 2, "{example}");
    let directory = tempfile::tempdir().unwrap();
    let upstream = Apis::start();
    let setting = format!("upstream={}", upstream.url());
    let server = Server::start_with(&directory.path().join("librechat.db"), &[&setting]);
    let mut headers = vec![("Content-Type", "application/json")];
    headers.extend(filled.iter().map(|(name, value)| (name.as_str(), *value)));
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "My canoe is called Heron."}]});
    let mut client = server.client();
    let answer = client.send("POST", "/v1/chat/completions", &headers, body.to_string().as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let path = "/sessions/7c9e6679-7425-40de-944b-e07fc1f90ae7/turns?user_id=65f1c0ffee";
    assert_eq!(shown(&client.get(path).unwrap().json())[0], "user: My canoe is called Heron.");
}

/// Two providers and a local server by the names of their models: what one was told the others are told too, and a response stays
/// with its server after a restart.
#[test]
fn several_upstreams_serve_their_models_and_keep_their_responses() {
    let directory = tempfile::tempdir().unwrap();
    let [anthropic, local, openai] = [Apis::start(), Apis::start(), Apis::start()];
    let tables = format!(
        "[[upstream]]\nmatch = \"claude-*\"\nurl = \"{}\"\ndialect = \"anthropic\"\nkey_env = \"KEY_OF_THE_TEST\"\n\
         [[upstream]]\nmatch = [\"small-*\", \"tiny-*\"]\nurl = \"{}\"\n\
         [[upstream]]\nurl = \"{}\"\n",
        anthropic.url(),
        local.url(),
        openai.url()
    );
    std::fs::write(directory.path().join("strata.toml"), tables).unwrap();
    let file = directory.path().join("several.db");
    let start = || {
        Server::start_with_variables(&file, &["memory_deadline_ms=60000"], &[("KEY_OF_THE_TEST", "sk-test")])
    };
    let server = start();
    let send = |server: &Server, path: &str, body: Value| {
        let headers = [
            ("Content-Type", "application/json"),
            ("Anthropic-Version", "2023-06-01"),
            ("X-Strata-User", "ada"),
        ];
        let answer = server.client().send("POST", path, &headers, body.to_string().as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{path} {body}: {}\n{}", answer.text(), server.log());
        answer.text()
    };
    let said = |text: &str| json!([{"role": "user", "content": text}]);
    let told = json!({"model": "claude-9", "max_tokens": 9, "memory_id": "one", "messages": said("my canoe is called Heron")});
    send(&server, "/v1/messages", told);
    let question = said("what is my canoe called");
    let asked = json!({"model": "gpt-9", "stream": true, "memory_id": "two", "messages": question});
    assert!(send(&server, "/v1/chat/completions", asked).contains("[DONE]"));
    let asked = json!({"model": "claude-9", "max_tokens": 9, "stream": true, "memory_id": "three", "messages": question});
    assert!(send(&server, "/v1/messages", asked).contains("message_stop"));
    send(
        &server,
        "/v1/responses",
        json!({"model": "tiny-9", "memory_id": "four", "input": "what is my canoe called"}),
    );
    let heads = |apis: &Apis| {
        let first = |one: Received| one.head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
        apis.received().into_iter().map(first).collect::<Vec<_>>()
    };
    assert_eq!(heads(&anthropic), ["POST /v1/messages", "POST /v1/messages"]);
    assert_eq!(heads(&openai), ["POST /v1/chat/completions"]);
    assert_eq!(heads(&local), ["POST /v1/responses"]);
    for asked in [&anthropic.received()[1], &openai.received()[0], &local.received()[0]] {
        assert!(asked.body.to_string().contains("Heron"), "{asked:?}");
    }
    let mut listed: Vec<String> = server.client().get("/v1/models").unwrap().json()["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap().to_owned())
        .collect();
    listed.sort();
    assert_eq!(listed, ["claude-9", "gpt-9", "small-9"], "each once, from the server that serves it");

    // The client has chosen another model meanwhile, and the server was started again.
    server.stop();
    let server = start();
    let body =
        json!({"model": "gpt-9", "memory_id": "four", "input": "say yes", "previous_response_id": "resp_1"});
    assert!(send(&server, "/v1/responses", body).contains("yes"));
    assert_eq!(heads(&local).last().unwrap(), "POST /v1/responses");
    assert_eq!(
        heads(&openai),
        ["POST /v1/chat/completions", "GET /v1/models"],
        "it is not asked who keeps it"
    );
}

/// Clients that name no user share the memories of `default`: the log says so once, and so does the doctor.
#[test]
fn clients_that_share_the_default_user_are_warned_about() {
    let directory = tempfile::tempdir().unwrap();
    let upstream = Apis::start();
    let setting = format!("upstream={}", upstream.url());
    let file = directory.path().join("shared.db");
    let server = Server::start_with(&file, &[&setting]);
    let chat = |agent: &str, body: Value| {
        let headers = [("Content-Type", "application/json"), ("User-Agent", agent)];
        let path = "/v1/chat/completions";
        let answer = server.client().send("POST", path, &headers, body.to_string().as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    let unnamed = json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]});
    let mut named = unnamed.clone();
    named["user"] = json!("ada");
    let warnings = || server.log().matches("several clients name no user").count();
    let doctor = || {
        let output =
            support::strata().args(["doctor", "--store", &support::store_url(&file)]).output().unwrap();
        support::show(&output)
    };
    chat("one/1", unnamed.clone());
    chat("one/1", unnamed.clone());
    chat("two/1", named);
    assert_eq!(warnings(), 0, "one client, and one that names its user:\n{}", server.log());
    assert!(!doctor().contains("clients name no user"), "{}", doctor());
    for agent in ["two/1", "two/1", "three/1", "one/1"] {
        chat(agent, unnamed.clone());
    }
    assert_eq!(warnings(), 1, "{}", server.log());
    assert!(server.log().contains("proxy.user_headers"), "the warning says what to do:\n{}", server.log());
    server.stop();
    assert!(doctor().contains("3 clients name no user"), "{}", doctor());
}

/// Runs a script against a server, and checks that each user was reminded in these sessions of what it said in another,
/// that its calls of tools are recorded once, that so many images arrive as they were sent, and that nothing which was
/// injected is recorded or learned.
fn check(
    run: impl Fn(&str) -> std::process::Output,
    remembering: &[(&str, &[&str])],
    with_tools: &[(&str, &str)],
    images: usize,
) {
    let directory = tempfile::tempdir().unwrap();
    let upstream = Apis::start();
    let setting = format!("upstream={}", upstream.url());
    let file = directory.path().join("clients.db");
    let mut server = Server::start_with(&file, &[&setting, "memory_deadline_ms=60000"]);
    let output = run(&format!("http://{}", server.address()));
    server.assert_running();
    assert!(output.status.success(), "{}\n{}", support::show(&output), server.log());
    server.stop();

    let reminded = upstream
        .received()
        .iter()
        .filter(|request| {
            let text = request.body.to_string();
            text.contains("what is my canoe called")
                && text.contains("<strata_memory>")
                && text.contains("Heron")
        })
        .count();
    let expected: usize = remembering.iter().map(|(_, sessions)| sessions.len()).sum();
    assert!(reminded >= expected, "{reminded} of {expected} questions were asked with memory");
    let is_image = |request: &&Received| request.body.to_string().contains(PIXEL);
    let received = upstream.received();
    assert_eq!(received.iter().filter(is_image).count(), images, "images that arrive as they were sent");
    let mut marked = (0, 0);
    for request in received {
        assert!(!request.head.to_lowercase().contains("x-strata"), "{}", request.head);
        let (documents, results) = marks_that_stayed(&request.body);
        marked = (marked.0 + documents, marked.1 + results);
    }
    let documents = remembering.iter().filter(|(_, sessions)| sessions.contains(&"document")).count();
    let results = with_tools.iter().filter(|(_, session)| *session == "cached-tools").count();
    assert_eq!(marked, (documents, results), "documents and results with marks of a cache");

    let learned = support::strata().args(["learn", "--store", &support::store_url(&file)]).output().unwrap();
    assert!(learned.status.success(), "{}", support::show(&learned));

    let server = Server::start(&file);
    let mut client = server.client();
    for (user, sessions) in remembering {
        if *user == "responses" {
            let turns = client.get("/sessions/background/turns?user_id=responses").unwrap().json();
            let expected = ["user: take your time", "assistant: reply to take your time"];
            assert_eq!(shown(&turns), expected, "a reply that is fetched later is recorded once");
        }
        for session in *sessions {
            let turns = client.get(&format!("/sessions/{session}/turns?user_id={user}")).unwrap().json();
            let turns = shown(&turns);
            assert!(
                turns.contains(&"user: what is my canoe called".to_owned()),
                "{user} {session}: {turns:?}"
            );
            assert!(
                turns.contains(&"assistant: reply to what is my canoe called".to_owned()),
                "{user} {session}: {turns:?}"
            );
        }
        let memories = client.get(&format!("/memories?user_id={user}")).unwrap().json().to_string();
        assert!(memories.contains("Heron"), "something was learned of {user}: {memories}");
        assert!(
            !memories.contains("strata_memory") && !memories.contains("Remembered by Strata"),
            "{user}: {memories}"
        );
    }
    for (user, session) in with_tools {
        let turns = client.get(&format!("/sessions/{session}/turns?user_id={user}")).unwrap().json();
        let expected =
            ["user: call weather", "assistant: ", "tool: sunny", "assistant: reply to call weather"];
        assert_eq!(shown(&turns), expected, "{user} {session}");
    }
}

/// Checks that documents, results of tools and instructions arrive with the marks of a cache that they were sent with, and that the
/// block of memory is a part without a mark. Returns how many documents and marked results there are.
fn marks_that_stayed(body: &Value) -> (usize, usize) {
    let messages = body["messages"].as_array().into_iter().flatten();
    let parts: Vec<&Value> =
        messages.flat_map(|message| message["content"].as_array().into_iter().flatten()).collect();
    let is_marked = |part: &Value| !part["cache_control"].is_null();
    if is_marked(&body["system"][0]) {
        let mark = json!({"type": "ephemeral"});
        assert_eq!(body["system"], json!([{"type": "text", "text": "be brief", "cache_control": mark}]));
    }
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    if parts.iter().any(|part| part["type"] == "document") {
        keeps_document(&parts, &mark);
        return (1, 0);
    }
    let is_result = |part: &&&Value| part["type"] == "tool_result" && is_marked(part);
    let results: Vec<&&Value> = parts.iter().filter(is_result).collect();
    for result in &results {
        let sunny = json!([{"type": "text", "text": "sunny"}]);
        let expected =
            json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": sunny, "cache_control": mark});
        assert_eq!(***result, expected);
        let asked = parts.iter().find(|part| part["text"] == "call weather");
        assert_eq!(asked.map(|part| &part["cache_control"]), Some(&mark), "{parts:?}");
    }
    (0, results.len())
}

fn keeps_document(parts: &[&Value], mark: &Value) {
    let [block, paper, question] = parts else { panic!("{parts:?}") };
    assert!(block["text"].as_str().unwrap().starts_with("<strata_memory>"), "{block}");
    assert_eq!((&block["cache_control"], &paper["cache_control"]), (&Value::Null, mark));
    assert_eq!((&question["text"], &question["cache_control"]), (&json!("what is my canoe called"), mark));
    let source =
        json!({"type": "text", "media_type": "text/plain", "data": "The log of a voyage, in two parts."});
    assert_eq!(
        **paper,
        json!({"type": "document", "source": source, "title": "Log", "citations": {"enabled": true}, "cache_control": mark})
    );
}

fn shown(turns: &Value) -> Vec<String> {
    let turns = turns["turns"].as_array().unwrap_or_else(|| panic!("{turns}"));
    let shown = |turn: &Value| {
        let content = turn["content"].as_str().unwrap();
        assert!(!content.contains("strata_memory"), "{content}");
        format!("{}: {content}", turn["role"].as_str().unwrap())
    };
    turns.iter().map(shown).collect()
}
