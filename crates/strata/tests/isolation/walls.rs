//! Sessions as walls: a question in one session is shown nothing of another one, whatever else the request says.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::matrix::tempting;
use crate::support::{Client, Server};
use crate::tools;
use crate::world::{Ann, MARKER, run, send};

/// The session that has something to be seen.
const OTHER: &str = "quay";

/// The session that must not see it.
const OWN: &str = "码头-二";

/// A request: the path, the headers and the body.
type Sent = (String, Vec<(String, String)>, Value);

/// A client of a server, its OpenAPI document, and the key of all calls.
struct Walled {
    client: Client,
    document: Value,
    key: Option<String>,
}

impl Walled {
    /// Records a conversation in the other session, lets Strata learn from it, and adds a memory and a standing instruction for
    /// that session.
    fn new(server: &Server, key: Option<String>, user: &str) -> Self {
        let mut client = server.client();
        let document = send(&mut client, key.as_deref(), "GET", "/openapi.json", &[], None).json();
        let mut walled = Self { client, document, key };
        let said = |text: &str| json!([{ "role": "user", "content": format!("{text} {MARKER}.") }]);
        for text in ["I like the garden of", "My garden is called", "我喜欢"] {
            walled.call("POST", "/turns", &[], json!({ "session_id": OTHER, "messages": said(text) }));
        }
        let chat = json!({ "model": "any", "memory_id": OTHER, "messages": said("Which garden? I live in") });
        walled.call("POST", "/v1/chat/completions", &[], chat);
        let memory = json!({ "text": format!("walks in the garden of {MARKER}"), "run_id": OTHER });
        walled.call("POST", "/memories", &[], memory);
        let instruction = json!({ "text": format!("mentions {MARKER} in every reply"), "kind": "instruction", "run_id": OTHER });
        walled.call("POST", "/memories", &[], instruction);
        let shared = |memories: &Value| {
            let found = memories["results"].as_array().unwrap().iter();
            found.filter(|memory| memory["memory"].as_str().unwrap().contains(MARKER)).count()
        };
        let list = format!("/memories?user_id={user}");
        while shared(&walled.call("GET", &list, &[], Value::Null)) < 3 {}
        walled
    }

    fn call(&mut self, method: &str, path: &str, headers: &[(String, String)], body: Value) -> Value {
        let body = Some(&body).filter(|body| !body.is_null());
        let answer = send(&mut self.client, self.key.as_deref(), method, path, headers, body);
        assert!(answer.status < 300, "{method} {path} {body:?}: {} {}", answer.status, answer.text());
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// Asks in every form that the document allows, in the session that must not see the other one.
    fn check(&mut self, server: &Server) {
        let mut asked = 0;
        for (path, schema, question) in [
            ("/search", "SearchRequest", "query"),
            ("/sessions/{id}/prompt", "PromptBodyRequest", "question"),
            ("/v1/chat/completions", "ChatRequest", "messages"),
            ("/v1/responses", "ResponsesRequest", "input"),
            ("/v1/messages", "MessagesRequest", "messages"),
            ("/api/chat", "OllamaChatRequest", "messages"),
            ("/api/generate", "OllamaGenerateRequest", "prompt"),
            ("/openai/deployments/d/chat/completions", "ChatRequest", "messages"),
            ("/openai/v1/chat/completions", "ChatRequest", "messages"),
            ("/openai/responses?api-version=1", "ResponsesRequest", "input"),
        ] {
            let fields = self.document["components"]["schemas"][schema]["properties"].clone();
            for body in bodies(fields.as_object().unwrap(), question) {
                for (path, headers, body) in in_session(path, fields.as_object().unwrap(), &body) {
                    let body = Some(&body);
                    let answer = send(&mut self.client, self.key.as_deref(), "POST", &path, &headers, body);
                    let text = answer.text();
                    assert!(!text.contains(MARKER), "{path} {headers:?} {body:?}: {text}");
                    assert!(answer.status < 500, "{path} {body:?}: {text}");
                    asked += usize::from(answer.status < 300);
                }
            }
        }
        assert!(asked > 150, "{asked} questions were answered: the others were refused for another reason");
        self.check_tools();
        self.check_instructions();
        // There is something to be seen: the session itself is shown it.
        for (path, mut body) in [
            ("/search", json!({ "query": "which garden" })),
            ("/v1/chat/completions", json!({ "messages": [{ "role": "user", "content": "my garden?" }] })),
            ("/v1/responses", json!({ "input": "my garden?" })),
            ("/v1/messages", json!({ "messages": [{ "role": "user", "content": "my garden?" }] })),
            ("/api/chat", json!({ "messages": [{ "role": "user", "content": "my garden?" }] })),
            ("/api/generate", json!({ "prompt": "my garden?" })),
            (
                "/openai/deployments/d/chat/completions",
                json!({ "messages": [{ "role": "user", "content": "my garden?" }] }),
            ),
            (
                "/openai/v1/chat/completions",
                json!({ "messages": [{ "role": "user", "content": "my garden?" }] }),
            ),
            ("/openai/v1/responses", json!({ "input": "my garden?" })),
            ("/openai/responses?api-version=1", json!({ "input": "my garden?" })),
        ] {
            body["memory_id"] = json!(OTHER);
            let answer = send(&mut self.client, self.key.as_deref(), "POST", path, &[], Some(&body));
            assert!(answer.text().contains(MARKER), "{path}: {}\n{}", answer.text(), server.log());
        }
    }

    /// Every chat of the other session holds its standing instruction, whatever it asks.
    fn check_instructions(&mut self) {
        let asked = json!({ "messages": [{ "role": "user", "content": "How deep is the Baltic?" }], "memory_id": OTHER });
        for path in ["/v1/chat/completions", "/v1/messages", "/api/chat", "/openai/v1/chat/completions"] {
            let answer = send(&mut self.client, self.key.as_deref(), "POST", path, &[], Some(&asked)).text();
            assert!(answer.contains(&format!("mentions {MARKER}")), "{path}: {answer}");
        }
    }

    fn check_tools(&mut self) {
        for arguments in [
            json!({ "query": "which garden" }),
            json!({ "query": "what did I say last time", "threshold": 0, "limit": 1000 }),
            json!({ "query": "我喜欢什么", "scope": "user", "threshold": 0 }),
            json!({ "query": "Which instructions have I given you?" }),
        ] {
            let params = json!({ "name": "search_memories", "arguments": arguments });
            let mut call = tools::message("tools/call", params);
            call.headers.push(("X-Strata-Session".to_owned(), OWN.to_owned()));
            let key = self.key.as_deref();
            let answer = send(&mut self.client, key, "POST", &call.path, &call.headers, call.body.as_ref());
            assert_eq!(answer.status, 200);
            assert!(!answer.text().contains(MARKER), "{arguments}: {}", answer.text());
        }
    }
}

/// Each question, and each value of each other field with the first question.
fn bodies(fields: &Map<String, Value>, question: &str) -> Vec<Value> {
    let nobody = Ann {
        session: OTHER,
        agent: "guide",
        idempotency_key: "none",
        tag: String::new(),
        known: Vec::new(),
        unknown: Vec::new(),
    };
    let ask = |words: Value| match question {
        "messages" => json!({ "messages": [{ "role": "user", "content": words }] }),
        "question" => json!({ "question": words, "format": "chat" }),
        "input" | "prompt" => json!({ question: words }),
        _ => json!({ "query": words }),
    };
    let mut questions = tempting("query", &nobody);
    let kinds = ["我喜欢什么", "之前说过的花园", "what do I like", "which instructions have I given you?"];
    questions.extend(kinds.map(Value::from));
    let mut bodies: Vec<Value> = questions.into_iter().map(ask).collect();
    // Names of a user lift the wall; names of a session choose another one.
    let named = [
        "user_id",
        "user",
        "safety_identifier",
        "metadata",
        "session_id",
        "memory_id",
        "run_id",
        "conversation",
        "prompt_cache_key",
        question,
    ];
    for field in fields.keys().filter(|field| !named.contains(&field.as_str())) {
        for value in tempting(field, &nobody) {
            let mut body = bodies[0].clone();
            body[field] = value;
            bodies.push(body);
        }
    }
    bodies
}

/// The request in the own session, with the session named in every possible place.
fn in_session(path: &str, fields: &Map<String, Value>, body: &Value) -> Vec<Sent> {
    if path.contains("{id}") {
        let id: String = OWN.bytes().map(|byte| format!("%{byte:02X}")).collect();
        return vec![(path.replace("{id}", &id), Vec::new(), body.clone())];
    }
    let header = ("X-Strata-Session".to_owned(), OWN.to_owned());
    let mut requests = vec![(path.to_owned(), vec![header], body.clone())];
    for field in ["session_id", "memory_id", "run_id"].into_iter().filter(|field| fields.contains_key(*field))
    {
        let mut body = body.clone();
        body[field] = json!(OWN);
        requests.push((path.to_owned(), Vec::new(), body));
    }
    requests
}

fn start(file: &Path) -> Server {
    let upstream = format!("upstream=http://{}/v1", crate::upstream::start());
    Server::start_with(file, &["learn.delay_secs=0", "memory_deadline_ms=60000", &upstream])
}

#[test]
fn a_session_without_a_user_is_a_wall() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(&directory.path().join("walls.db"));
    Walled::new(&server, None, "default").check(&server);
}

#[test]
fn a_key_that_is_confined_to_sessions_sees_one_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("keys.db");
    let server = start(&file);
    let args = ["keys", "create", "--user", "ann", "--recall-scope", "session", "--json"];
    let key = run(&file, &args)["key"].as_str().unwrap().to_owned();
    Walled::new(&server, Some(key), "ann").check(&server);
}
