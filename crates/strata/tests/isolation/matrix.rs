//! The calls: every operation of the document, with every id and name of ann's that fits.

use serde_json::{Map, Value, json};

use crate::world::Ann;

/// One operation of the document.
pub(crate) struct Operation {
    pub(crate) method: String,
    pub(crate) path: String,
    /// The scope that a key needs; `None` if no key is needed.
    pub(crate) scopes: Option<Vec<String>>,
    /// Whether the operation has a user.
    pub(crate) knows_users: bool,
    /// Whether the operation is a chat, where the field `user` is a label.
    is_chat: bool,
    value: Value,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
    /// Whether the call names ann as its user.
    pub(crate) names_ann: bool,
    /// Whether the call has an optional parameter.
    pub(crate) is_varied: bool,
}

pub(crate) fn operations(document: &Value) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, value) in methods.as_object().unwrap() {
            let scopes = value.get("x-strata-scopes").map(|list| {
                list.as_array().unwrap().iter().map(|scope| scope.as_str().unwrap().to_owned()).collect()
            });
            let text = value["parameters"].to_string();
            operations.push(Operation {
                method: method.to_uppercase(),
                path: path.clone(),
                scopes,
                is_chat: value["tags"] == json!(["proxy"]),
                knows_users: text.contains("X-Strata-User") || text.contains("\"user_id\""),
                value: value.clone(),
            });
        }
    }
    assert!(operations.len() > 25, "the document lists the routes");
    operations
}

/// All values of ann's for a parameter of this name, without the name of the calling user (see [`calls`]).
pub(crate) fn tempting(name: &str, ann: &Ann) -> Vec<Value> {
    let of = |table: &str| {
        let ids = ann.known.iter().find(|(name, _)| name == table).map(|(_, ids)| ids.clone());
        ids.unwrap_or_default().into_iter().map(Value::from).collect::<Vec<_>>()
    };
    let items = || [of("turns"), of("memories"), of("summaries")].concat();
    match name {
        // A path: all ids and names.
        "id" => {
            let ids = ann.known.iter().flat_map(|(table, _)| of(table));
            ids.chain([json!(ann.session), json!("ann"), json!("*"), json!("../ann/walks")]).collect()
        }
        "item" => items(),
        "session_id" | "run_id" | "memory_id" | "X-Strata-Session" => vec![json!(ann.session)],
        "agent_id" => vec![json!(ann.agent)],
        "scope" => vec![json!("session"), json!("user"), json!("global")],
        "kind" => vec![json!("fact"), json!("preference")],
        "part" => ["facts", "preferences", "decisions", "todos", "entities"].map(Value::from).to_vec(),
        "status" => vec![json!("dead"), json!("queued")],
        "kinds" => vec![json!(["turns"]), json!(["memories"]), json!(["turns", "memories"])],
        "as_of" => vec![json!("2000-01-01T00:00:00Z"), json!("2999-01-01T00:00:00Z")],
        "days" => vec![json!(3_650)],
        "since" => vec![json!("2000-01-01T00:00:00Z")],
        "after" | "offset" => vec![json!(0), json!(1)],
        "limit" | "top_k" => vec![json!(1000)],
        "max_tokens" => vec![json!(1_000_000)],
        "threshold" | "mmr_lambda" | "recency_weight" => vec![json!(0.0), json!(1.0)],
        "explain" | "confirmed" | "forget" | "infer" | "rerank" | "memory_rerank" => {
            vec![json!(true), json!(false)]
        }
        "format" => vec![json!("flat"), json!("chat")],
        "filters" => vec![
            json!({}),
            json!({ "user_id": "ann" }),
            json!({ "OR": [{ "user_id": "ann" }, { "user_id": "bob" }] }),
        ],
        "metadata" => vec![json!({ "user_id": "ann" })],
        "stream" => vec![json!(false), json!(true)],
        "memory_scope" => vec![json!("session"), json!("user")],
        "memory_top_k" => vec![json!(1000)],
        "memory_recency_weight" | "memory_score_threshold" => vec![json!(0.0), json!(1.0)],
        "X-Strata-Memory" => ["on", "off", "read", "write"].map(Value::from).to_vec(),
        // Names of other programs, which a bound key takes for labels.
        "user" | "safety_identifier" => vec![json!("ann")],
        "prompt_cache_key" | "conversation" => vec![json!(ann.session)],
        "previous_response_id" => vec![json!("resp_of_ann")],
        "deployment" => vec![json!("d"), json!("../../sessions")],
        "input" | "prompt" => vec![json!("which garden"), json!("what did I say last time")],
        "Idempotency-Key" => vec![json!(ann.idempotency_key)],
        "If-Match" => vec![json!(ann.tag), json!("*")],
        // Bob's own text.
        "query" | "question" => {
            vec![
                json!("which garden"),
                json!("what did I say last time"),
                json!("ann"),
                json!("walk 3 10.0.0.3"),
            ]
        }
        "text" | "memory" | "data" => vec![json!("a garden of my own")],
        "messages" => vec![json!([{ "role": "user", "content": "a garden of my own", "name": "ann" }])],
        other => panic!("`{other}` is new: say in `tempting` what of another user's it could be given"),
    }
}

/// A valid body for the operation, without data of ann's.
fn plain_body(schema: &str) -> Value {
    match schema {
        "RecordRequest" => json!({ "messages": [{ "role": "user", "content": "a garden of my own" }] }),
        "AddRequest" | "ReviseRequest" => json!({ "text": "a garden of my own" }),
        "FeedbackRequest" => json!({ "text": "it forgot a garden" }),
        "SearchRequest" => json!({ "query": "which garden" }),
        "PromptBodyRequest" => json!({ "question": "which garden" }),
        "ChatRequest" => {
            json!({ "model": "any", "messages": [{ "role": "user", "content": "which garden do I like" }] })
        }
        "ResponsesRequest" => json!({ "model": "any", "input": "which garden do I like" }),
        "MessagesRequest" | "OllamaChatRequest" => json!({ "model": "any", "max_tokens": 9,
            "messages": [{ "role": "user", "content": "which garden do I like" }] }),
        "OllamaGenerateRequest" => json!({ "model": "any", "prompt": "which garden do I like" }),
        "ContextDocument" => json!({ "session_id": "walks", "facts": ["a garden of my own"] }),
        "StateDocument" => json!({ "own": "a garden" }),
        other => panic!("`{other}` is new: give `plain_body` one that its operation takes"),
    }
}

/// Whether a body is a client's own document, whose fields the server does not interpret.
fn is_document(schema: &str) -> bool {
    matches!(schema, "ContextDocument" | "StateDocument")
}

/// All calls of an operation: each id in the path, with each value of each parameter, and with each way to name ann as the
/// user.
pub(crate) fn calls(operation: &Operation, document: &Value, ann: &Ann) -> Vec<Call> {
    let parameters = operation.value["parameters"].as_array().cloned().unwrap_or_default();
    let schema = operation.value.pointer("/requestBody/content/application~1json/schema/$ref");
    let schema = schema.map(|name| name.as_str().unwrap().rsplit('/').next().unwrap());
    assert!(
        schema.is_some() || operation.value.get("requestBody").is_none(),
        "a body without a schema of its own"
    );
    let fields = schema.filter(|schema| !is_document(schema)).map_or_else(Map::new, |schema| {
        document["components"]["schemas"][schema]["properties"].as_object().unwrap().clone()
    });
    let mut calls = Vec::new();
    for path in paths(&operation.path, ann) {
        let mut base = Request {
            path,
            query: Vec::new(),
            headers: Vec::new(),
            body: schema.map(plain_body),
            is_varied: false,
            names_ann: false,
        };
        for parameter in
            parameters.iter().filter(|parameter| parameter["required"] == true && parameter["in"] == "query")
        {
            let name = parameter["name"].as_str().unwrap();
            let value = if name == "user_id" { json!("bob") } else { tempting(name, ann).remove(0) };
            base.query.push((name.to_owned(), value));
        }
        let mut requests = vec![base.clone()];
        for parameter in &parameters {
            let name = parameter["name"].as_str().unwrap();
            match parameter["in"].as_str().unwrap() {
                "path" => {}
                "header" if name == "X-Strata-User" => {}
                "query" if name == "user_id" => {}
                "query" => {
                    requests.extend(tempting(name, ann).into_iter().map(|value| base.with_query(name, value)))
                }
                "header" => requests
                    .extend(tempting(name, ann).into_iter().map(|value| base.with_header(name, &value))),
                other => panic!("a parameter in `{other}` is new: put it into the calls"),
            }
        }
        let is_name = |name: &str| name == "user_id" || name == "user" && !operation.is_chat;
        for name in fields.keys().filter(|name| !is_name(name)) {
            requests.extend(tempting(name, ann).into_iter().map(|value| base.with_field(name, value)));
        }
        for request in requests.iter_mut().skip(1) {
            request.is_varied = true;
        }
        let as_ann: Vec<Request> = requests
            .iter()
            .flat_map(|request| request.as_ann(&parameters, &fields, operation.is_chat))
            .collect();
        calls.extend(requests.into_iter().chain(as_ann).map(|request| request.into_call(&operation.method)));
    }
    calls
}

/// The path with each value of ann's in each of its places.
fn paths(template: &str, ann: &Ann) -> Vec<String> {
    let Some((before, rest)) = template.split_once('{') else { return vec![template.to_owned()] };
    let (name, after) = rest.split_once('}').unwrap();
    let ends = paths(after, ann);
    let begins =
        tempting(name, ann).into_iter().map(|value| format!("{before}{}", escaped(value.as_str().unwrap())));
    begins.flat_map(|begin| ends.iter().map(move |end| format!("{begin}{end}"))).collect()
}

fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// A request in its parts.
#[derive(Debug, Clone)]
struct Request {
    path: String,
    query: Vec<(String, Value)>,
    headers: Vec<(String, String)>,
    body: Option<Value>,
    names_ann: bool,
    is_varied: bool,
}

impl Request {
    fn with_query(&self, name: &str, value: Value) -> Self {
        let mut request = self.clone();
        request.query.retain(|(known, _)| known != name);
        request.query.push((name.to_owned(), value));
        request
    }

    fn with_header(&self, name: &str, value: &Value) -> Self {
        let mut request = self.clone();
        request.headers.push((name.to_owned(), value.as_str().unwrap().to_owned()));
        request
    }

    fn with_field(&self, name: &str, value: Value) -> Self {
        let mut request = self.clone();
        let body = request.body.as_mut().unwrap();
        // Either field holds the text to remember.
        if name == "messages" {
            body.as_object_mut().unwrap().remove("text");
        }
        body[name] = value;
        request
    }

    /// The same request in ann's name, with the name in every possible place.
    fn as_ann(&self, parameters: &[Value], fields: &Map<String, Value>, is_chat: bool) -> Vec<Self> {
        let takes = |name: &str| parameters.iter().any(|parameter| parameter["name"] == name);
        let mut requests = Vec::new();
        if takes("X-Strata-User") {
            requests.push(self.with_header("X-Strata-User", &json!("ann")));
        }
        if takes("user_id") {
            requests.push(self.with_query("user_id", json!("ann")));
        }
        let names: &[&str] = if is_chat { &["user_id"] } else { &["user_id", "user"] };
        for field in names.iter().filter(|field| fields.contains_key(**field)) {
            requests.push(self.with_field(field, json!("ann")));
        }
        // A right name in one place does not permit a wrong name in another.
        if takes("X-Strata-User") && takes("user_id") {
            requests
                .push(self.with_header("X-Strata-User", &json!("bob")).with_query("user_id", json!("ann")));
        }
        if fields.contains_key("user_id") && fields.contains_key("user") && !is_chat {
            requests.push(self.with_field("user_id", json!("bob")).with_field("user", json!("ann")));
        }
        requests.into_iter().map(|request| Self { names_ann: true, ..request }).collect()
    }

    fn into_call(self, method: &str) -> Call {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let query: Vec<String> =
            self.query.iter().map(|(name, value)| format!("{name}={}", escaped(&text(value)))).collect();
        let path = if query.is_empty() { self.path } else { format!("{}?{}", self.path, query.join("&")) };
        let Self { headers, body, names_ann, is_varied, .. } = self;
        Call { method: method.to_owned(), path, headers, body, names_ann, is_varied }
    }
}
