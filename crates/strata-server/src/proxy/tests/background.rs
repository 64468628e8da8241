//! Responses that the provider works on in the background: they are recorded when they are fetched, once.

use super::*;

/// A response in this state.
fn response(id: &str, status: &str, text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    let output = json!([{"type": "message", "role": "assistant", "content": content}]);
    let output = if text.is_empty() { json!([]) } else { output };
    json!({"id": id, "object": "response", "status": status, "background": true, "model": "m", "output": output,
        "error": null})
}

/// Asks for a response in the background.
async fn ask(chatting: &Chatting, question: &str, more: Value) -> Response {
    let mut body = json!({"model": "m", "input": question, "background": true});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let request = request(Method::POST, "/v1/responses").header("content-type", "application/json");
    let request = request.header("x-strata-user", "ada").header("x-strata-session", "s");
    let request = request.body(Body::from(body.to_string())).unwrap();
    crate::router::router(chatting.server.app.clone()).oneshot(request).await.unwrap()
}

async fn begin(chatting: &Chatting, id: &str, question: &str) {
    chatting.upstream.will(axum::Json(response(id, "queued", "")));
    let answer = ask(chatting, question, json!({})).await;
    assert_eq!(answer.headers()["x-strata-memory-recorded"], "later");
    http_body_util::BodyExt::collect(answer.into_body()).await.unwrap();
}

async fn fetch(chatting: &Chatting, path: &str, answer: Value) {
    let expected = answer.to_string();
    chatting.upstream.will(axum::Json(answer));
    let fetched = chatting.server.get(path).await;
    assert_eq!(fetched.body, expected, "it passes unchanged");
}

#[tokio::test]
async fn a_reply_is_recorded_once_when_it_is_fetched() {
    for path in ["/v1/responses/resp_b", "/openai/v1/responses/resp_b", "/openai/responses/resp_b"] {
        let chatting = Chatting::start().await;
        begin(&chatting, "resp_b", "how deep is the lake").await;
        fetch(&chatting, path, response("resp_b", "in_progress", "")).await;
        fetch(&chatting, "/v1/responses/resp_other", response("resp_other", "completed", "Not ours.")).await;
        chatting.upstream.will((StatusCode::NOT_FOUND, "{}"));
        chatting.server.get(path).await;
        for _ in 0..3 {
            fetch(&chatting, path, response("resp_b", "completed", "Ninety metres.")).await;
        }
        let expected = ["user: how deep is the lake", "assistant: Ninety metres."];
        assert_eq!(chatting.turns().await, expected, "{path}");
        assert_eq!(chatting.turn(1).await["metadata"]["model"], "m");
    }
}

#[tokio::test]
async fn each_reply_follows_its_own_question() {
    let chatting = Chatting::start().await;
    begin(&chatting, "resp_1", "first").await;
    begin(&chatting, "resp_2", "second").await;
    fetch(&chatting, "/v1/responses/resp_2", response("resp_2", "completed", "Two.")).await;
    fetch(&chatting, "/v1/responses/resp_1", response("resp_1", "completed", "One.")).await;
    let turns = chatting.server.get("/sessions/s/turns?user_id=ada").await.json();
    let of = |content: &str| {
        let turns = turns["turns"].as_array().unwrap().iter();
        turns.clone().find(|turn| turn["content"] == content).unwrap().clone()
    };
    assert_eq!(of("One.")["follows"], of("first")["seq"]);
    assert_eq!(of("Two.")["follows"], of("second")["seq"]);
}

#[tokio::test]
async fn a_reply_that_fails_or_is_cancelled_ends_the_wait() {
    let chatting = Chatting::start().await;
    begin(&chatting, "resp_f", "question one").await;
    let mut failed = response("resp_f", "failed", "");
    failed["error"] = json!({"code": "server_error", "message": "it broke"});
    fetch(&chatting, "/v1/responses/resp_f", failed).await;
    begin(&chatting, "resp_c", "question two").await;
    chatting.upstream.will(axum::Json(response("resp_c", "cancelled", "")));
    chatting.server.post("/v1/responses/resp_c/cancel", json!({})).await;
    let turns = chatting.turns().await;
    assert_eq!(turns[1], "assistant: The model failed: it broke (error)");
    assert_eq!(turns[2..], ["user: question two", "assistant:  (error)"]);
}

#[tokio::test]
async fn a_stream_that_the_client_leaves_is_fetched_later() {
    let chatting = Chatting::start().await;
    let (sender, pieces) = tokio::sync::mpsc::unbounded_channel();
    let event = |event: Value| Ok(Bytes::from(format!("data: {event}\n\n")));
    let created = json!({"type": "response.created", "response": response("resp_s", "queued", "")});
    sender.send(event(created)).unwrap();
    chatting.upstream.will_stream_from(pieces);
    let answer = ask(&chatting, "tell me a story", json!({"stream": true})).await;
    let mut body = answer.into_body();
    http_body_util::BodyExt::frame(&mut body).await.unwrap().unwrap();
    drop(body);
    // The rest of the stream has no beginning.
    let delta =
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "upon"});
    let whole =
        json!({"type": "response.completed", "response": response("resp_s", "completed", "Once upon.")});
    let rest = [delta, whole].map(|event| format!("data: {event}\n\n")).concat();
    chatting.upstream.will_stream(vec![Bytes::from(rest.clone())]);
    let fetched = chatting.server.get("/v1/responses/resp_s?stream=true&starting_after=1").await;
    assert_eq!(fetched.body, rest);
    assert_eq!(chatting.turns().await, ["user: tell me a story", "assistant: Once upon."]);
}

#[tokio::test]
async fn a_reply_that_nobody_fetches_is_a_question_without_one() {
    let chatting = Chatting::start().await;
    begin(&chatting, "resp_n", "is anybody there").await;
    assert_eq!(chatting.turns().await, ["user: is anybody there", "assistant:  (error)"]);
    fetch(&chatting, "/v1/responses/resp_n", response("resp_n", "completed", "Too late.")).await;
    assert_eq!(chatting.turns().await.len(), 2);
}
