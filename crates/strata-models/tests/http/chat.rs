//! The chat client against a real socket: retries, refusals, wrong answers, and servers that know less than all.

use std::sync::Arc;
use std::time::Duration;

use crate::server::{Request, Server, answer};
use serde_json::{Value, json};
use strata_core::ports::{AnswerSchema, ChatAnswer, ChatMessage, ChatModel, ChatRequest, Spent};
use strata_core::{Error, ErrorKind, Role};
use strata_models::Tokenizer;
use strata_models::chat::{ChatOptions, OpenAiChat};

const KEY: &str = "sk-very-secret";

fn options() -> ChatOptions {
    ChatOptions {
        key: Some(KEY.to_owned()),
        first_wait: Duration::from_millis(1),
        timeout: Duration::from_secs(20),
        ..ChatOptions::new(Arc::new(Tokenizer::O200k))
    }
}

fn chat(server: &Server) -> OpenAiChat {
    OpenAiChat::new(&server.url, "mini", options()).unwrap()
}

fn request() -> ChatRequest {
    let message = |role, content: &str| ChatMessage { role, content: content.to_owned() };
    let schema = json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false });
    ChatRequest {
        messages: vec![message(Role::System, "answer as JSON"), message(Role::User, "I moved to Lisbon")],
        schema: Some(AnswerSchema { name: "facts", schema }),
        max_tokens: Some(300),
    }
}

fn completion(content: impl Into<Value>) -> Vec<u8> {
    let body = json!({
        "object": "chat.completion",
        "choices": [{ "index": 0, "finish_reason": "stop",
            "message": { "role": "assistant", "content": content.into() } }],
        "usage": { "prompt_tokens": 21, "completion_tokens": 4, "total_tokens": 25 },
    });
    answer("200 OK", "", body.to_string().as_bytes())
}

fn sent(request: &Request) -> Value {
    serde_json::from_str(&request.body).unwrap()
}

#[tokio::test]
async fn a_question_is_answered_and_paid_for() {
    let server = Server::start(|_, _| completion("{\"facts\":[]}")).await;
    let chat = chat(&server);
    assert_eq!(chat.model(), "mini");
    let answered = chat.complete(&request()).await.unwrap();
    assert_eq!(answered.text, "{\"facts\":[]}");
    assert_eq!(answered.spent, Spent { calls: 1, input_tokens: 21, output_tokens: 4 });
    let requests = server.requests();
    assert!(requests[0].head.starts_with("post /v1/chat/completions "), "{}", requests[0].head);
    assert!(requests[0].head.contains(&format!("authorization: bearer {KEY}")));
    assert_eq!(
        sent(&requests[0]),
        json!({
            "model": "mini", "stream": false, "temperature": 0.0, "max_tokens": 300,
            "messages": [
                { "role": "system", "content": "answer as JSON" },
                { "role": "user", "content": "I moved to Lisbon" },
            ],
            "response_format": { "type": "json_schema", "json_schema": {
                "name": "facts", "strict": true,
                "schema": { "type": "object", "properties": {}, "required": [], "additionalProperties": false },
            } },
        })
    );
}

#[tokio::test]
async fn a_busy_server_is_asked_again_as_it_wishes() {
    let server = Server::start(|number, _| match number {
        0 => answer("429 Too Many Requests", "Retry-After: 0\r\n", b"slow down"),
        1 => answer("500 Internal Server Error", "", b""),
        2 => answer(
            "503 Service Unavailable",
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            b"",
        ),
        _ => completion("done"),
    })
    .await;
    let answered = chat(&server).complete(&request()).await.unwrap();
    assert_eq!((answered.text.as_str(), answered.spent.calls), ("done", 4));
}

#[tokio::test]
async fn a_server_that_wants_more_time_than_there_is_gets_none() {
    let server = Server::start(|_, _| answer("429 Too Many Requests", "Retry-After: 3600\r\n", b"")).await;
    let error = chat(&server).complete(&request()).await.unwrap_err();
    assert!(error.is_retryable() && error.message().contains("429"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

async fn fails_after(
    tries: usize,
    reply: impl Fn(usize, &Request) -> Vec<u8> + Send + Sync + 'static,
) -> Error {
    let server = Server::start(reply).await;
    let error = chat(&server).complete(&request()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(server.requests().len(), tries, "{error}");
    assert!(!format!("{error:?}").contains(KEY), "{error:?}");
    error
}

#[tokio::test]
async fn what_may_pass_is_tried_again_but_not_for_ever() {
    assert!(fails_after(4, |_, _| answer("500 Internal Server Error", "", b"")).await.is_retryable());
    assert!(fails_after(4, |_, _| Vec::new()).await.is_retryable(), "closed without a word");
    let broken = fails_after(4, |_, _| {
        let mut whole = completion("a long answer that never comes to its end");
        whole.truncate(whole.len() - 30);
        whole
    });
    assert!(broken.await.is_retryable(), "closed in the middle of the body");
}

#[tokio::test]
async fn what_will_not_pass_is_not_tried_again() {
    let error = fails_after(1, |_, _| {
        answer("401 Unauthorized", "", format!("wrong key {KEY}, {}", "x".repeat(5_000)).as_bytes())
    })
    .await;
    assert!(error.message().contains("401") && error.message().contains("check its API key"), "{error}");
    assert!(error.message().len() < 400, "{error}");
    fails_after(1, |_, _| answer("404 Not Found", "", b"no such model")).await;
    fails_after(1, |_, _| answer("400 Bad Request", "", b"the prompt is too long")).await;
    let error = fails_after(1, |_, _| answer("200 OK", "", b"<html>sign in</html>")).await;
    assert!(error.message().contains("something other"), "{error}");
    let error = fails_after(1, |_, _| answer("200 OK", "", br#"{"choices":[]}"#)).await;
    assert!(error.message().contains("without choices"), "{error}");
    fails_after(1, |_, _| answer("200 OK", "", br#"{"error":{"message":"overloaded"}}"#)).await;
    let error = fails_after(1, |_, _| answer("200 OK", "", &vec![b' '; 5 * 1024 * 1024])).await;
    assert!(error.message().contains("longer than"), "{error}");
    let error = fails_after(2, |_, _| {
        let body = json!({ "choices": [{ "finish_reason": "length", "message": { "content": "{\"fac" } }] });
        answer("200 OK", "", body.to_string().as_bytes())
    })
    .await;
    assert!(error.message().contains("cut off the answer") && !error.is_retryable(), "{error}");
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_asked_for_once_more_with_more_room() {
    let server = Server::start(|call, _| match call {
        0 => {
            let choice = json!({ "finish_reason": "length", "message": { "content": "<think>hm" } });
            let usage = json!({ "prompt_tokens": 20, "completion_tokens": 300 });
            answer("200 OK", "", json!({ "choices": [choice], "usage": usage }).to_string().as_bytes())
        }
        _ => completion("{\"facts\":[]}"),
    })
    .await;
    let answered = chat(&server).complete(&request()).await.unwrap();
    assert_eq!(answered.text, "{\"facts\":[]}");
    assert_eq!(answered.spent, Spent { calls: 2, input_tokens: 41, output_tokens: 304 }, "both are paid for");
    let limits: Vec<Value> =
        server.requests().iter().map(|sent_one| sent(sent_one)["max_tokens"].clone()).collect();
    assert_eq!(limits, [json!(300), json!(1_200)]);
}

#[tokio::test]
async fn thoughts_beside_the_answer_are_no_part_of_it() {
    let parts = json!([
        { "type": "reasoning", "text": "The user wants JSON." },
        { "type": "thinking", "thinking": "Yes." },
        { "type": "text", "text": "{\"facts\":[]}" },
    ]);
    let server = Server::start(move |_, _| completion(parts.clone())).await;
    assert_eq!(chat(&server).complete(&request()).await.unwrap().text, "{\"facts\":[]}");
    let server = Server::start(|_, _| {
        let message = json!({ "content": "fine", "reasoning_content": "Hm.", "reasoning": "Hm." });
        answer("200 OK", "", json!({ "choices": [{ "message": message }] }).to_string().as_bytes())
    })
    .await;
    assert_eq!(chat(&server).complete(&request()).await.unwrap().text, "fine");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    // Never accepted from: the connection stands, and nothing comes.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let options = ChatOptions { timeout: Duration::from_millis(50), ..options() };
    let error = OpenAiChat::new(&url, "mini", options).unwrap().complete(&request()).await.unwrap_err();
    assert!(error.is_retryable() && error.message().contains("within 0.05 s"), "{error}");
    drop(silent);
}

#[tokio::test]
async fn nobody_there_is_an_error_that_may_pass() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = OpenAiChat::new(&url, "mini", options()).unwrap().complete(&request()).await.unwrap_err();
    assert!(error.is_retryable() && error.message().contains("cannot be reached"), "{error}");
}

#[tokio::test]
async fn what_a_server_does_not_know_is_not_asked_for_again() {
    let server = Server::start(|_, request| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        match body["response_format"]["type"].as_str() {
            Some("json_schema") => answer("400 Bad Request", "", b"response_format.type must be json_object"),
            Some(_) if body["messages"][0]["content"] == "words only" => {
                answer("422 Unprocessable Entity", "", b"unknown field response_format")
            }
            _ => completion("{}"),
        }
    })
    .await;
    let chat = chat(&server);
    let answered = chat.complete(&request()).await.unwrap();
    assert_eq!(answered.spent.calls, 2, "the refused call reached the server too");
    assert_eq!(chat.complete(&request()).await.unwrap().spent.calls, 1, "remembered");
    let mut words = request();
    words.messages[0].content = "words only".to_owned();
    assert_eq!(chat.complete(&words).await.unwrap().spent.calls, 2);
    assert_eq!(chat.complete(&words).await.unwrap().spent.calls, 1);
    let shapes: Vec<Value> =
        server.requests().iter().map(|request| sent(request)["response_format"]["type"].clone()).collect();
    let (schema, object) = (json!("json_schema"), json!("json_object"));
    assert_eq!(shapes, [schema, object.clone(), object.clone(), object, Value::Null, Value::Null]);
}

#[tokio::test]
async fn a_reasoning_model_is_asked_in_its_own_way() {
    let server = Server::start(|_, request| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        if body.get("max_tokens").is_some() {
            let complaint = b"'max_tokens' is not supported; use 'max_completion_tokens' instead";
            return answer("400 Bad Request", "", complaint);
        }
        if body.get("temperature").is_some() {
            return answer("400 Bad Request", "", b"'temperature' does not support 0 with this model");
        }
        completion("{}")
    })
    .await;
    let chat = chat(&server);
    assert_eq!(chat.complete(&request()).await.unwrap().spent.calls, 3);
    assert_eq!(chat.complete(&request()).await.unwrap().spent.calls, 1);
    let last = sent(server.requests().last().unwrap());
    assert_eq!(last["max_completion_tokens"], 300);
    assert_eq!(last["response_format"]["type"], "json_schema");
}

#[tokio::test]
async fn what_was_not_counted_is_counted_here() {
    let server = Server::start(|_, _| {
        let body = json!({ "choices": [{ "message": { "content": "one two three" } }] });
        answer("200 OK", "", body.to_string().as_bytes())
    })
    .await;
    let spent = chat(&server).complete(&request()).await.unwrap().spent;
    assert_eq!(spent, Spent { calls: 1, input_tokens: 7, output_tokens: 3 });
}

#[tokio::test]
async fn a_model_that_says_nothing_or_refuses_is_no_failure() {
    for (message, expected) in [
        (json!({ "content": null, "refusal": "I cannot help with that." }), "I cannot help with that."),
        (json!({ "content": null }), ""),
        (
            json!({ "content": [{ "type": "text", "text": "one " }, { "type": "text", "text": "two" }] }),
            "one two",
        ),
    ] {
        let body = json!({ "choices": [{ "message": message }] }).to_string();
        let server = Server::start(move |_, _| answer("200 OK", "", body.as_bytes())).await;
        assert_eq!(chat(&server).complete(&request()).await.unwrap().text, expected);
    }
}

#[test]
fn an_endpoint_is_a_url_with_or_without_its_version() {
    for base in ["https://host", "https://host/", "https://host/v1", "https://host/v1/chat/completions"] {
        assert!(OpenAiChat::new(base, "m", options()).is_ok(), "{base}");
    }
    assert!(OpenAiChat::new("host/v1", "m", options()).is_err());
}

/// A stream of events, written as they stand.
fn events(text: &str) -> Vec<u8> {
    answer("200 OK", "Content-Type: text/event-stream; charset=utf-8\r\n", text.as_bytes())
}

const HALF: &str = ": hello\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"By \"}},{\"index\":1,\"delta\":{\"content\":\"no\"}}]}\n\n\
    data: {\"choices\":[{\"index\":0,\n\
    data: \"delta\":{\"content\":\"火车\"}}]}\n\n";

const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

async fn streamed(chat: &OpenAiChat) -> (Vec<String>, Result<ChatAnswer, Error>) {
    let mut pieces = Vec::new();
    let asked = ChatRequest { schema: None, ..request() };
    let answered = chat.stream(&asked, &mut |piece| pieces.push(piece.to_owned())).await;
    (pieces, answered)
}

#[tokio::test]
async fn an_answer_is_handed_over_as_it_comes() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":21,\"completion_tokens\":4}}\n\n";
    let whole = format!("{HALF}{END}{usage}data: [DONE]\n\n");
    let server = Server::start(move |_, _| events(&whole)).await;
    let (pieces, answered) = streamed(&chat(&server)).await;
    assert_eq!(pieces, ["By ", "火车"]);
    let answered = answered.unwrap();
    assert_eq!(answered.text, "By 火车");
    assert_eq!(answered.spent, Spent { calls: 1, input_tokens: 21, output_tokens: 4 });
    let sent = sent(&server.requests()[0]);
    assert_eq!((&sent["stream"], &sent["stream_options"]), (&json!(true), &json!({ "include_usage": true })));
    assert_eq!(sent.get("temperature"), None, "a conversation has the server's own");
}

#[tokio::test]
async fn a_stream_ends_with_or_without_its_mark() {
    for end in [END, "data: [DONE]", &END[..END.len() - 2]] {
        let whole = format!("{HALF}{end}");
        let server = Server::start(move |_, _| events(&whole)).await;
        let (_, answered) = streamed(&chat(&server)).await;
        let spent = answered.unwrap().spent;
        assert!(spent.input_tokens > 0 && spent.output_tokens > 0, "what was not counted is counted here");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_asked_for_again() {
    let overloaded = format!("data: {{\"error\":{{\"message\":\"overloaded, {KEY}\"}}}}\n\n");
    for (end, says) in [(String::new(), "interrupted its answer"), (overloaded, "overloaded, (key)")] {
        let whole = format!("{HALF}{end}");
        let server = Server::start(move |_, _| events(&whole)).await;
        let (pieces, answered) = streamed(&chat(&server)).await;
        assert_eq!(pieces.concat(), "By 火车");
        let error = answered.unwrap_err();
        assert!(error.message().contains(says), "{error}");
        assert_eq!(server.requests().len(), 1);
    }
    // The connection dies in the middle of what was announced.
    let server = Server::start(|_, _| {
        let mut broken = events(&format!("{HALF}{END}"));
        broken.truncate(broken.len() - END.len());
        broken
    })
    .await;
    let (pieces, answered) = streamed(&chat(&server)).await;
    assert_eq!((pieces.len(), server.requests().len()), (2, 1));
    assert!(answered.unwrap_err().message().contains("interrupted its answer"));
}

#[tokio::test]
async fn what_may_pass_is_tried_again_before_an_answer_begins() {
    let server = Server::start(|number, request| match number {
        0 => answer("503 Service Unavailable", "", b"busy"),
        _ if request.body.contains("stream_options") => {
            answer("400 Bad Request", "", b"unknown field `stream_options`")
        }
        _ => events(&format!("{HALF}{END}")),
    })
    .await;
    let chat = chat(&server);
    assert_eq!(streamed(&chat).await.1.unwrap().spent.calls, 3);
    assert_eq!(streamed(&chat).await.1.unwrap().spent.calls, 1, "what was refused is not asked for again");
    let server = Server::start(|_, _| answer("401 Unauthorized", "", b"wrong key")).await;
    let (pieces, answered) = streamed(&self::chat(&server)).await;
    assert!(pieces.is_empty() && answered.unwrap_err().message().contains("check its API key"));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_server_that_knows_no_streams_is_understood() {
    let server = Server::start(|_, _| completion("By train")).await;
    let (pieces, answered) = streamed(&chat(&server)).await;
    assert_eq!((pieces, answered.unwrap().text.as_str()), (vec!["By train".to_owned()], "By train"));
}
