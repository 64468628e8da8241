//! A scripted model that speaks the APIs of all providers, strictly: what a provider would refuse is refused.
//!
//! The question is the script: `say X`, `call NAME`, `fail STATUS`. The answer to any other question is `reply to` and
//! the question. [`Upstream`](super::Upstream) speaks chat completions; this one speaks the others.

mod documented;

use std::io::{self, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::upstream::{self, Received, read_request, reply_to, write_answer, write_head, write_piece};

/// The scripted model.
pub(crate) struct Apis {
    address: String,
    received: Arc<Mutex<Vec<Received>>>,
}

/// What the model refuses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strictness {
    /// What a provider would refuse.
    Provider,
    /// What Strata's own document calls invalid, and nothing else.
    Document,
}

impl Apis {
    pub(crate) fn start() -> Self {
        Self::with(Strictness::Provider)
    }

    /// A model that accepts every request which is valid by Strata's OpenAPI document.
    pub(crate) fn start_as_documented() -> Self {
        Self::with(Strictness::Document)
    }

    fn with(strictness: Strictness) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let requests = Arc::clone(&received);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let requests = Arc::clone(&requests);
                thread::spawn(move || serve(connection, strictness, &requests));
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

fn serve(connection: TcpStream, strictness: Strictness, requests: &Mutex<Vec<Received>>) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection);
    while let Some((head, body)) = read_request(&mut reader)? {
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        requests.lock().unwrap().push(Received { head: head.clone(), body: body.clone() });
        let stream = reader.get_mut();
        let target = head.split(' ').nth(1).unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default();
        let fetched = path.strip_prefix("/v1/responses/resp_later_").filter(|_| head.starts_with("GET "));
        let refused = match strictness {
            Strictness::Document => documented::problem(path, &body),
            Strictness::Provider => azure_problem(target, &head),
        };
        // Azure's newer paths are OpenAI's own.
        let path = match path {
            "/openai/responses" | "/openai/v1/responses" => "/v1/responses",
            path => path,
        };
        let asked = (strictness, head.as_str(), &body);
        let has_made = || {
            let is_made = |one: &Received| one.head.starts_with("POST ") && one.head.contains("/responses ");
            requests.lock().unwrap().iter().any(is_made)
        };
        match path {
            "/v1/models" => write_answer(stream, 200, "", &models())?,
            "/v1/responses/resp_1" if head.starts_with("GET ") => match has_made() {
                true => write_answer(stream, 200, "", &response("completed", json!([])))?,
                false => write_answer(stream, 404, "", &upstream::error("it does not exist"))?,
            },
            _ if refused.is_some() => {
                write_answer(stream, 400, "", &api_of(path).failure(refused.unwrap_or_default()))?;
            }
            _ if fetched.is_some() => {
                let is_same = |one: &&Received| one.head.starts_with(&format!("GET {path}"));
                let times = requests.lock().unwrap().iter().filter(is_same).count();
                let question = fetched.unwrap_or_default().replace('_', " ");
                let output = Responses.document(&Said::Text(reply_to(&question)))["output"].take();
                let state = if times > 1 { ("completed", output) } else { ("in_progress", json!([])) };
                write_answer(stream, 200, "", &later(&question, state))?;
            }
            _ if !head.starts_with("POST ") && !head.starts_with("DELETE ") => {
                write_answer(stream, 405, "Allow: POST\r\n", &upstream::error("chats are posted"))?;
            }
            "/v1/responses" if body["background"] == true => {
                let question = Responses.question(&body).0.join(" ");
                let question = question.rsplit("</strata_memory>\n\n").next().unwrap_or_default();
                write_answer(stream, 200, "", &later(question, ("queued", json!([]))))?;
            }
            "/v1/responses" => answer(stream, &Responses, asked)?,
            "/v1/messages" => answer(stream, &Messages, asked)?,
            "/v1/messages/count_tokens" => write_answer(stream, 200, "", &json!({"input_tokens": 7}))?,
            "/api/chat" => answer(stream, &OllamaChat, asked)?,
            "/api/generate" => answer(stream, &OllamaGenerate, asked)?,
            _ if path.ends_with("/chat/completions") => match upstream::problem(&body) {
                Some(problem) => write_answer(stream, 400, "", &upstream::error(problem))?,
                None => drop(upstream::answer(stream, &body, 1)?),
            },
            _ if head.starts_with("DELETE ") => write_answer(stream, 200, "", &json!({"deleted": true}))?,
            _ => write_answer(stream, 404, "", &json!({"error": {"message": format!("no {path}")}}))?,
        }
    }
    Ok(())
}

/// The models of every provider that the script knows.
fn models() -> Value {
    let model = |id: &str| json!({"id": id, "object": "model", "created": 1, "owned_by": "us"});
    let known = ["claude-9", "gpt-9", "small-9"].map(model);
    json!({"object": "list", "data": known})
}

/// The kinds of items that a request for a response may have.
const ITEMS: [&str; 22] = [
    "message",
    "function_call",
    "function_call_output",
    "reasoning",
    "item_reference",
    "custom_tool_call",
    "custom_tool_call_output",
    "web_search_call",
    "file_search_call",
    "computer_call",
    "computer_call_output",
    "image_generation_call",
    "code_interpreter_call",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "compaction",
];

/// The kinds of blocks that a message may have.
const BLOCKS: [&str; 10] = [
    "text",
    "image",
    "document",
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "server_tool_use",
    "web_search_tool_result",
    "search_result",
];

/// The reason for which Azure would refuse a request.
fn azure_problem(target: &str, head: &str) -> Option<&'static str> {
    let rest = target.strip_prefix("/openai/")?;
    if header(head, "api-key").as_deref() != Some("sk-test") {
        return Some("Access denied due to a missing or invalid `api-key`");
    }
    // Only the newer paths have no version.
    let has_version =
        rest.starts_with("v1/") || target.contains("?api-version=") || target.contains("&api-version=");
    (!has_version).then_some("Missing required query parameter: api-version")
}

/// One API.
trait Api {
    /// The reason for which the provider would refuse a request.
    fn problem(&self, head: &str, body: &Value) -> Option<String>;
    /// The texts of the user's last message, and whether a tool has answered since.
    fn question(&self, body: &Value) -> (Vec<String>, bool);
    fn is_stream(&self, body: &Value) -> bool {
        body["stream"] == true
    }
    fn failure(&self, message: &str) -> Value;
    fn document(&self, said: &Said) -> Value;
    fn stream(&self, said: &Said) -> Vec<String>;
    fn kind(&self) -> &'static str {
        "text/event-stream"
    }
}

/// What the model says.
enum Said {
    Text(String),
    Call(String),
}

/// The API of a path.
fn api_of(path: &str) -> &'static dyn Api {
    match path {
        "/v1/messages" => &Messages,
        "/api/chat" => &OllamaChat,
        "/api/generate" => &OllamaGenerate,
        _ => &Responses,
    }
}

fn answer(
    stream: &mut TcpStream,
    api: &dyn Api,
    (strictness, head, body): (Strictness, &str, &Value),
) -> io::Result<()> {
    if let Some(problem) = api.problem(head, body).filter(|_| strictness == Strictness::Provider) {
        return write_answer(stream, 400, "", &api.failure(&problem));
    }
    let (texts, has_result) = api.question(body);
    let texts = texts
        .iter()
        .filter(|text| !text.starts_with("<strata_memory>") || text.contains("</strata_memory>\n\n"));
    let question = texts.map(|text| text.rsplit("</strata_memory>\n\n").next().unwrap_or_default());
    let question = question.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
    if let Some(status) = question.strip_prefix("fail ").and_then(|status| status.parse().ok()) {
        return write_answer(stream, status, "", &api.failure("as asked"));
    }
    let said = match question.strip_prefix("call ") {
        Some(name) if !has_result => Said::Call(name.to_owned()),
        _ => Said::Text(reply_to(&question)),
    };
    if !api.is_stream(body) {
        return write_answer(stream, 200, "X-Upstream: scripted\r\n", &api.document(&said));
    }
    write_head(stream, api.kind())?;
    for piece in api.stream(&said) {
        write_piece(stream, piece.as_bytes())?;
    }
    write_piece(stream, b"")?;
    stream.flush()
}

fn header(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut found = lines.filter(|(field, _)| field.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim().to_owned())
}

fn events(all: &[Value]) -> Vec<String> {
    all.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).collect()
}

fn array(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// The texts of a content: a string, or parts with a text.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        parts => array(parts).iter().filter_map(|part| Some(part["text"].as_str()?.to_owned())).collect(),
    }
}

struct Responses;

impl Api for Responses {
    fn problem(&self, _head: &str, body: &Value) -> Option<String> {
        if !body["model"].is_string() {
            return Some("`model` is missing".to_owned());
        }
        for item in array(&body["input"]) {
            let kind = item["type"].as_str().unwrap_or("message").to_owned();
            if !ITEMS.contains(&kind.as_str()) {
                return Some(format!("an item has the type `{kind}`"));
            }
            for part in array(&item["content"]) {
                let expected: &[&str] = match item["role"].as_str() {
                    Some("assistant") => &["output_text", "refusal"],
                    _ => &["input_text", "input_image", "input_file"],
                };
                let kind = part["type"].as_str().unwrap_or_default();
                if !expected.contains(&kind) {
                    return Some(format!("a part of `{}` has the type `{kind}`", item["role"]));
                }
            }
        }
        let is_input = body["input"].is_string() || body["input"].is_array();
        (!is_input).then(|| "`input` is missing".to_owned())
    }

    fn question(&self, body: &Value) -> (Vec<String>, bool) {
        if let Some(text) = body["input"].as_str() {
            return (vec![text.to_owned()], false);
        }
        let items = array(&body["input"]);
        let last = items.iter().rposition(|item| item["role"] == "user");
        let since = &items[last.map_or(0, |place| place + 1)..];
        let has_result = since.iter().any(|item| item["type"] == "function_call_output");
        (last.map(|place| texts(&items[place]["content"])).unwrap_or_default(), has_result)
    }

    fn failure(&self, message: &str) -> Value {
        json!({"error": {"message": message, "type": "scripted", "param": null, "code": "scripted"}})
    }

    fn document(&self, said: &Said) -> Value {
        let item = match said {
            Said::Text(text) => {
                json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]})
            }
            Said::Call(name) => {
                json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name,
                "arguments": "{\"place\":\"Lisbon\"}", "status": "completed"})
            }
        };
        response("completed", json!([item]))
    }

    fn stream(&self, said: &Said) -> Vec<String> {
        let whole = self.document(said);
        let item = whole["output"][0].clone();
        let mut all =
            vec![json!({"type": "response.created", "response": response("in_progress", json!([]))})];
        let mut added = item.clone();
        match said {
            Said::Text(text) => {
                added["content"] = json!([]);
                all.push(json!({"type": "response.output_item.added", "output_index": 0, "item": added}));
                let part = json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []});
                all.push(json!({"type": "response.content_part.added", "item_id": "msg_1", "output_index": 0, "content_index": 0, "part": part}));
                all.extend(text.split_inclusive(' ').map(|word| {
                    json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": word, "logprobs": []})
                }));
                all.push(json!({"type": "response.output_text.done", "item_id": "msg_1", "output_index": 0, "content_index": 0, "text": text, "logprobs": []}));
                let part = item["content"][0].clone();
                all.push(json!({"type": "response.content_part.done", "item_id": "msg_1", "output_index": 0, "content_index": 0, "part": part}));
            }
            Said::Call(_) => {
                added["arguments"] = json!("");
                all.push(json!({"type": "response.output_item.added", "output_index": 0, "item": added}));
                all.push(json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 0, "delta": item["arguments"]}));
                all.push(json!({"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 0, "name": item["name"], "arguments": item["arguments"]}));
            }
        }
        all.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
        all.push(json!({"type": "response.completed", "response": whole}));
        for (number, event) in all.iter_mut().enumerate() {
            event["sequence_number"] = number.into();
        }
        events(&all)
    }
}

fn response(status: &str, output: Value) -> Value {
    let usage = json!({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15});
    json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "m-1", "output": output,
        "error": null, "incomplete_details": null, "instructions": null, "metadata": {}, "parallel_tool_calls": true,
        "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0, "usage": usage})
}

/// A response that works in the background. Its id holds the question.
fn later(question: &str, (status, output): (&str, Value)) -> Value {
    let mut made = response(status, output);
    (made["id"], made["background"]) =
        (json!(format!("resp_later_{}", question.replace(' ', "_"))), json!(true));
    made
}

struct Messages;

impl Api for Messages {
    fn problem(&self, head: &str, body: &Value) -> Option<String> {
        let version = header(head, "anthropic-version");
        let (key, bearer) = (header(head, "x-api-key"), header(head, "authorization"));
        let is_known = match (version.as_deref(), key.as_deref(), bearer.as_deref()) {
            (None, _, _) => return Some("anthropic-version: header is required".to_owned()),
            (Some(_), Some("sk-test"), None) => true,
            // Newer versions of the API take a key as others do.
            (Some(version), None, Some("Bearer sk-test")) => version > "2026",
            _ => false,
        };
        if !is_known {
            return Some("x-api-key header is required".to_owned());
        }
        if !body["max_tokens"].is_u64() {
            return Some("max_tokens: field required".to_owned());
        }
        for message in array(&body["messages"]) {
            let kinds: Vec<String> = array(&message["content"])
                .iter()
                .map(|part| part["type"].as_str().unwrap_or_default().to_owned())
                .collect();
            if let Some(kind) = kinds.iter().find(|kind| !BLOCKS.contains(&kind.as_str())) {
                return Some(format!("messages: a block has the type `{kind}`"));
            }
            let first_other = kinds.iter().position(|kind| kind != "tool_result");
            let last_result = kinds.iter().rposition(|kind| kind == "tool_result");
            if first_other < last_result && first_other.is_some() && last_result.is_some() {
                return Some("tool_result blocks come first".to_owned());
            }
        }
        body["messages"].as_array().is_none().then(|| "messages: field required".to_owned())
    }

    fn question(&self, body: &Value) -> (Vec<String>, bool) {
        let messages = array(&body["messages"]);
        let is_result =
            |message: &Value| array(&message["content"]).iter().any(|part| part["type"] == "tool_result");
        let has_result = messages.last().is_some_and(is_result);
        let last = messages.iter().rfind(|message| message["role"] == "user" && !is_result(message));
        (last.map(|message| texts(&message["content"])).unwrap_or_default(), has_result)
    }

    fn failure(&self, message: &str) -> Value {
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
    }

    fn document(&self, said: &Said) -> Value {
        let (block, reason) = match said {
            Said::Text(text) => (json!({"type": "text", "text": text}), "end_turn"),
            Said::Call(name) => (
                json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {"place": "Lisbon"}}),
                "tool_use",
            ),
        };
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": [block],
            "stop_reason": reason, "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 5}})
    }

    fn stream(&self, said: &Said) -> Vec<String> {
        let whole = self.document(said);
        let mut start = whole.clone();
        (start["content"], start["stop_reason"]) = (json!([]), Value::Null);
        let mut all = vec![json!({"type": "message_start", "message": start})];
        let delta = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
        match said {
            Said::Text(text) => {
                all.push(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}));
                all.push(json!({"type": "ping"}));
                all.extend(
                    text.split_inclusive(' ').map(|word| delta(json!({"type": "text_delta", "text": word}))),
                );
            }
            Said::Call(name) => {
                let block = json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}});
                all.push(json!({"type": "content_block_start", "index": 0, "content_block": block}));
                all.push(delta(json!({"type": "input_json_delta", "partial_json": "{\"place\":"})));
                all.push(delta(json!({"type": "input_json_delta", "partial_json": "\"Lisbon\"}"})));
            }
        }
        all.push(json!({"type": "content_block_stop", "index": 0}));
        let end = json!({"stop_reason": whole["stop_reason"], "stop_sequence": null});
        all.push(json!({"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}}));
        all.push(json!({"type": "message_stop"}));
        events(&all)
    }
}

struct OllamaChat;
struct OllamaGenerate;

/// A line of Ollama's.
fn line(mut answer: Value, is_done: bool) -> Value {
    (answer["model"], answer["created_at"], answer["done"]) =
        (json!("m"), json!("2026-01-01T00:00:00Z"), json!(is_done));
    if is_done {
        (answer["done_reason"], answer["prompt_eval_count"], answer["eval_count"]) =
            (json!("stop"), json!(10), json!(5));
    }
    answer
}

fn lines(said: &Said, answer: fn(&Said) -> Value) -> Vec<String> {
    let mut all: Vec<Value> = match said {
        Said::Text(text) => {
            text.split_inclusive(' ').map(|word| line(answer(&Said::Text(word.to_owned())), false)).collect()
        }
        Said::Call(_) => vec![line(answer(said), false)],
    };
    all.push(line(answer(&Said::Text(String::new())), true));
    all.iter().map(|line| format!("{line}\n")).collect()
}

impl OllamaChat {
    fn answer(said: &Said) -> Value {
        let message = match said {
            Said::Text(text) => json!({"role": "assistant", "content": text}),
            Said::Call(name) => json!({"role": "assistant", "content": "",
                "tool_calls": [{"function": {"name": name, "arguments": {"place": "Lisbon"}}}]}),
        };
        json!({ "message": message })
    }
}

impl OllamaGenerate {
    fn answer(said: &Said) -> Value {
        match said {
            Said::Text(text) | Said::Call(text) => json!({ "response": text }),
        }
    }
}

impl Api for OllamaChat {
    fn problem(&self, _head: &str, body: &Value) -> Option<String> {
        let is_plain = |message: &Value| message["content"].is_string() || message["content"].is_null();
        (!array(&body["messages"]).iter().all(is_plain)).then(|| "content is a string".to_owned())
    }
    fn question(&self, body: &Value) -> (Vec<String>, bool) {
        let messages = array(&body["messages"]);
        let last = messages.iter().rfind(|message| message["role"] == "user");
        let has_result = messages.last().is_some_and(|message| message["role"] == "tool");
        (last.map(|message| texts(&message["content"])).unwrap_or_default(), has_result)
    }
    fn is_stream(&self, body: &Value) -> bool {
        body["stream"] != false
    }
    fn failure(&self, message: &str) -> Value {
        json!({ "error": message })
    }
    fn document(&self, said: &Said) -> Value {
        line(Self::answer(said), true)
    }
    fn stream(&self, said: &Said) -> Vec<String> {
        lines(said, Self::answer)
    }
    fn kind(&self) -> &'static str {
        "application/x-ndjson"
    }
}

impl Api for OllamaGenerate {
    fn problem(&self, _head: &str, body: &Value) -> Option<String> {
        (!body["prompt"].is_string()).then(|| "prompt is a string".to_owned())
    }
    fn question(&self, body: &Value) -> (Vec<String>, bool) {
        (texts(&body["prompt"]), false)
    }
    fn is_stream(&self, body: &Value) -> bool {
        body["stream"] != false
    }
    fn failure(&self, message: &str) -> Value {
        json!({ "error": message })
    }
    fn document(&self, said: &Said) -> Value {
        line(Self::answer(said), true)
    }
    fn stream(&self, said: &Said) -> Vec<String> {
        lines(said, Self::answer)
    }
    fn kind(&self) -> &'static str {
        "application/x-ndjson"
    }
}
