//! Blocks that programs put into a message of the user: they pass, and are not the user's words.

use super::*;

const REMINDER: &str = "<system-reminder>\nThe file pier.rs was changed by a linter. The user's canoe is called Otter.\n</system-reminder>";

#[tokio::test]
async fn blocks_of_programs_are_neither_the_question_nor_recorded() {
    for path in ["/v1/messages", "/v1/chat/completions", "/v1/responses"] {
        let chatting = Chatting::start().await;
        let known =
            json!({"user_id": "ada", "session_id": "t", "messages": [user("my canoe is called Heron")]});
        chatting.server.post("/turns", known).await;
        let kind = if path == "/v1/responses" { "input_text" } else { "text" };
        let part = |text: &str| json!({"type": kind, "text": text});
        let field = if path == "/v1/responses" { "input" } else { "messages" };
        let send = async |messages: &Value| {
            let mut body = json!({"model": "m", "max_tokens": 9});
            body[field] = messages.clone();
            let request = request(Method::POST, path).header("content-type", "application/json");
            let request = request.header("x-strata-user", "ada").header("x-strata-session", "s");
            let answer = chatting.server.send(request.body(Body::from(body.to_string())).unwrap()).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            chatting.server.app.proxy().finish(Duration::from_secs(30)).await;
            chatting.upstream.last().json()[field].clone()
        };
        let mut messages =
            json!([{"role": "user", "content": [part(REMINDER), part("what is my canoe called")]}]);
        let sent = send(&messages).await;
        let block = sent[0]["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(block.starts_with("<strata_memory>") && block.contains("Heron"), "{path}: {block}");
        assert_eq!(sent[0]["content"][1], part(REMINDER), "it passes");
        // A message of reminders alone is no question, and does not move the block.
        messages.as_array_mut().unwrap().push(user(REMINDER));
        let sent = send(&messages).await;
        assert_eq!(sent[0]["content"][0]["text"], block, "{path}");
        assert_eq!(sent[1], user(REMINDER));
        let turns = chatting.turns().await;
        assert_eq!(turns[0], "user: what is my canoe called", "{path}");
        assert!(turns.iter().all(|turn| !turn.contains("reminder")), "{path}: {turns:?}");
        assert_eq!(turns.iter().filter(|turn| turn.starts_with("user:")).count(), 1, "{path}: {turns:?}");
    }
}

#[tokio::test]
async fn results_of_tools_with_a_reminder_are_no_question() {
    let chatting = Chatting::start().await;
    chatting
        .server
        .post(
            "/turns",
            json!({"user_id": "ada", "session_id": "t", "messages": [user("the key is under the mat")]}),
        )
        .await;
    let result =
        json!({"type": "tool_result", "tool_use_id": "t1", "content": format!("there\n\n{REMINDER}")});
    let messages = json!([
        user("where is the key"),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]},
        {"role": "user", "content": [result, {"type": "text", "text": REMINDER}]},
    ]);
    let body = json!({"model": "m", "max_tokens": 9, "messages": messages});
    let request =
        request(Method::POST, "/v1/messages").header("x-strata-user", "ada").header("x-strata-session", "s");
    chatting.server.send(request.body(Body::from(body.to_string())).unwrap()).await;
    let sent = chatting.sent();
    assert!(sent[0]["content"].as_str().unwrap().contains("under the mat"), "{sent}");
    assert_eq!(sent[2], messages[2]);
    assert_eq!(chatting.turns().await[..3], ["user: where is the key", "assistant: ", "tool: there"]);
}
