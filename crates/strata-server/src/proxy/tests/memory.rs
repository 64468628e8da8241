//! The effect of memory on a chat.

use std::sync::atomic::Ordering;

use strata_core::turn::NewMessage;

use super::upstream::stream;
use super::*;

#[tokio::test]
async fn a_question_asked_many_times_is_still_answered_from_memory() {
    let chatting = Chatting::start().await;
    let body = json!({"user_id": "ada", "session_id": "t", "messages": [user("my locker code is 4417")]});
    chatting.server.post("/turns", body).await;
    for number in 0..12 {
        chatting.upstream.will_say("I do not know that.");
        let body = json!({"model": "m", "messages": [user("What is my locker code?")]});
        let mut request = chat_request(body);
        request.headers_mut().insert("x-strata-session", format!("s{number}").parse().unwrap());
        chatting.server.send(request).await;
        chatting.turns().await;
        let sent = chatting.sent();
        let content = sent[0]["content"].as_str().unwrap();
        assert!(
            content.contains("[2026-03-01 user] my locker code is 4417"),
            "asked {number} times: {content}"
        );
        assert_eq!(content.matches("What is my locker code?").count(), 1, "{content}");
    }
}

#[tokio::test]
async fn a_chat_is_recalled_for_and_recorded() {
    let chatting = Chatting::start().await;
    let body = json!({"user_id": "ada", "session_id": "t", "messages": [user("my dog is called Bello")]});
    chatting.server.post("/turns", body).await;
    chatting.upstream.will_say("Bello.");
    let answer = chatting.chat(json!([user("what is my dog called")])).await;
    assert_eq!(answer.json(), super::upstream::completion("Bello."));
    let content = chatting.sent()[0]["content"].as_str().unwrap().to_owned();
    assert!(content.starts_with("<strata_memory>\n"), "{content}");
    assert!(content.contains("[2026-03-01 user] my dog is called Bello"), "{content}");
    assert!(content.ends_with("</strata_memory>\n\nwhat is my dog called"), "{content}");
    assert_eq!(chatting.turns().await, ["user: what is my dog called", "assistant: Bello."]);
    let reply = chatting.turn(1).await;
    assert_eq!(reply["usage"], json!({"prompt_tokens": 9, "completion_tokens": 2}));

    let rows = chatting.rows().await;
    assert_eq!(rows.as_array().unwrap().len(), 1, "one row for one request: {rows}");
    assert_eq!(rows[0]["id"].as_str(), answer.header("x-strata-request-id"));
    assert_eq!((&rows[0]["context_items"], &rows[0]["query"]), (&json!(1), &json!("what is my dog called")));
    assert!(rows[0]["latency_llm_ms"].is_number(), "{rows}");
    assert_eq!(rows[0]["error_stage"], Value::Null);
}

#[tokio::test]
async fn a_whole_history_is_stored_once_and_branches_are_left() {
    let chatting = Chatting::start().await;
    chatting.upstream.will_say("two");
    chatting.chat(json!([{"role": "system", "content": "be brief"}, user("one")])).await;
    chatting.upstream.will_say("four");
    chatting.chat(json!([user("one"), assistant("two"), user("three")])).await;
    chatting.upstream.will_say("other");
    chatting.chat(json!([user("one"), assistant("two"), user("three")])).await;
    let turns =
        ["user: one", "assistant: two", "user: three", "assistant: four (abandoned)", "assistant: other"];
    assert_eq!(chatting.turns().await, turns);
}

#[tokio::test]
async fn injected_blocks_that_come_back_are_not_recorded() {
    let chatting = Chatting::start().await;
    let body = json!({"user_id": "ada", "session_id": "t", "messages": [user("tea at four")]});
    chatting.server.post("/turns", body).await;
    chatting.upstream.will_say("at four");
    chatting.chat(json!([user("when is tea")])).await;
    // A client may keep the forwarded prompt, for example a framework that logs prompts.
    let echoed = chatting.sent()[0].clone();
    assert!(echoed["content"].as_str().unwrap().contains("tea at four"));
    chatting.chat(json!([echoed, assistant("at four"), user("thanks")])).await;
    let turns = ["user: when is tea", "assistant: at four", "user: thanks", "assistant: ok"];
    assert_eq!(chatting.turns().await, turns);
}

#[tokio::test]
async fn memory_can_be_left_out_of_a_call() {
    let chatting = Chatting::start().await;
    chatting.chat(json!([user("one")])).await;
    let before = chatting.rows().await;
    let body = r#"{"memory_top_k": 3, "messages":[{"role":"user","content":"secret"}], "x": 1.0}"#;
    let request = request(Method::POST, "/v1/chat/completions")
        .header("x-strata-user", "ada")
        .header("x-strata-session", "s")
        .header("x-strata-memory", "off");
    let answer = chatting.server.send(request.body(Body::from(body)).unwrap()).await;
    assert_eq!(answer.status, 200);
    let sent = chatting.upstream.last();
    assert_eq!(sent.body, r#"{"messages":[{"role":"user","content":"secret"}], "x": 1.0}"#);
    assert_eq!(sent.header("x-strata-memory"), None);
    assert_eq!(chatting.turns().await, ["user: one", "assistant: ok"]);
    assert_eq!(chatting.rows().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_that_is_slow_does_not_hold_the_chat_up() {
    let chatting = Chatting::with(|proxy| proxy.memory_deadline = Duration::from_millis(20)).await;
    // For a memory, recall counts the tokens.
    let added = chatting.server.post("/memories", json!({"user_id": "ada", "text": "wait!"})).await;
    assert_eq!(added.status, 200);
    crate::testing::WAIT.store(true, Ordering::SeqCst);
    let answer = chatting.chat(json!([user("how long do I wait")])).await;
    crate::testing::WAIT.store(false, Ordering::SeqCst);
    assert_eq!(answer.status, 200);
    assert_eq!(chatting.sent(), json!([user("how long do I wait")]));
    assert_eq!(chatting.turns().await, ["user: how long do I wait", "assistant: ok"], "it is recorded");
    assert_eq!(chatting.rows().await[0]["error_stage"], "retrieval");
}

#[tokio::test]
async fn memory_that_fails_does_not_fail_the_chat() {
    let deadline = Duration::from_millis(200);
    let chatting = Chatting::with(|proxy| proxy.memory_deadline = deadline).await;
    assert_eq!(chatting.server.get("/sessions").await.status, 200);
    chatting.server.app.engine().store().close().await.unwrap();
    let answer = chatting.chat(json!([user("one")])).await;
    assert_eq!((answer.status.as_u16(), answer.json()), (200, super::upstream::completion("ok")));
    assert_eq!(answer.header("x-strata-memory-recorded"), Some("later"));
    // The chat is kept until the store is there again.
    chatting.server.app.proxy().finish(deadline).await;
    let meters = chatting.server.get("/metrics").await.body;
    assert!(meters.contains(r#"strata_chats_total{memory="failed",reply="complete"} 1"#), "{meters}");
}

#[tokio::test]
async fn while_tools_are_called_the_prompt_stays_as_it_was() {
    let chatting = Chatting::start().await;
    let body = json!({"user_id": "ada", "session_id": "t", "messages": [user("the key is under the mat")]});
    chatting.server.post("/turns", body).await;
    let calls = json!([{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]);
    let asked = json!({"role": "assistant", "content": null, "tool_calls": calls});
    chatting.upstream.will(axum::Json(
        json!({"choices": [{"index": 0, "message": asked, "finish_reason": "tool_calls"}]}),
    ));
    let question = user("where is the key");
    chatting.chat(json!([question])).await;
    let first = chatting.sent();
    // Meanwhile another memory is learned that recall would also find.
    let body = json!({"user_id": "ada", "session_id": "t", "messages": [user("the key is on the table")]});
    chatting.server.post("/turns", body).await;
    let result = json!({"role": "tool", "tool_call_id": "c1", "content": "under the mat"});
    let answer = chatting.chat(json!([question, asked, result])).await;
    assert_eq!(chatting.sent()[0], first[0], "byte for byte");
    let share: f64 = answer.header("x-strata-stable-prefix").unwrap().parse().unwrap();
    assert!(share > 0.3, "{share}");
    let turns = ["user: where is the key", "assistant: ", "tool: under the mat", "assistant: ok"];
    assert_eq!(chatting.turns().await, turns);
    let call = json!([{"id": "c1", "name": "look", "arguments": "{}"}]);
    assert_eq!(chatting.turn(1).await["tool_calls"], call);
    assert!(chatting.server.get("/metrics").await.body.contains("strata_chat_stable_prefix_ratio_count 1"));
}

#[tokio::test]
async fn a_chat_that_could_not_be_kept_says_so_and_goes_without_memory() {
    let chatting = Chatting::start().await;
    let large = crate::upstream::SpilledExchange {
        user: strata_core::UserId::default(),
        session: strata_core::SessionId::default(),
        messages: vec![NewMessage::new(strata_core::Role::User, "word ".repeat(8 << 20))],
        keeper: strata_engine::KeptBy::Client,
        ids: strata_engine::ExchangeIds::new(uuid::Uuid::nil),
        ending: strata_engine::Ending::Complete(NewMessage::new(strata_core::Role::Assistant, "fine")),
    };
    let spill = &chatting.server.app.proxy().spill;
    let kept = spill.keep("one", &large).expect("there is room for one");
    assert!(spill.keep("two", &large).is_none());
    let answer = chatting.chat(json!([user("is this remembered")])).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("x-strata-memory-recorded"), Some("false"));
    assert_eq!(answer.header("x-strata-memory-reason"), Some("store-fails"));
    kept.done();
    let answer = chatting.chat(json!([user("is this remembered")])).await;
    assert_eq!(answer.header("x-strata-memory-recorded"), Some("true"));
}

#[tokio::test]
async fn what_was_forgotten_is_not_sent_again_in_the_next_tool_round() {
    for way in ["session", "memory", "user"] {
        let chatting = Chatting::start().await;
        let memory = json!({"user_id": "ada", "text": "the spare key is under the mat"});
        let added = chatting.server.post("/memories", memory).await.json();
        let body =
            json!({"user_id": "ada", "session_id": "t", "messages": [user("the key hangs in the shed")]});
        chatting.server.post("/turns", body).await;
        let calls =
            json!([{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]);
        let asked = json!({"role": "assistant", "content": null, "tool_calls": calls});
        chatting.upstream.will(axum::Json(
            json!({"choices": [{"index": 0, "message": asked, "finish_reason": "tool_calls"}]}),
        ));
        let question = user("where is the key");
        chatting.chat(json!([question])).await;
        let first = chatting.sent()[0]["content"].as_str().unwrap().to_owned();
        assert!(first.contains("under the mat") && first.contains("in the shed"), "{first}");
        let id = added["results"][0]["id"].as_str().unwrap();
        let (path, gone, kept) = match way {
            "session" => ("/sessions/t?user_id=ada".to_owned(), "in the shed", Some("under the mat")),
            "memory" => (format!("/memories/{id}?user_id=ada"), "under the mat", Some("in the shed")),
            _ => ("/users/ada".to_owned(), "key is under the mat", None),
        };
        assert_eq!(chatting.server.delete(&path).await.status, 200, "{path}");
        let result = json!({"role": "tool", "tool_call_id": "c1", "content": "nothing here"});
        chatting.chat(json!([question, asked, result])).await;
        let second = chatting.sent()[0]["content"].as_str().unwrap().to_owned();
        assert!(!second.contains(gone), "{way}: {second}");
        assert!(kept.is_none_or(|kept| second.contains(kept)), "{way}: {second}");
    }
}

#[tokio::test]
async fn a_stream_is_recorded_before_its_end_is_passed_on() {
    let chatting = Chatting::start().await;
    let text = stream(&["Hel", "lo"]);
    chatting.upstream.will_stream(pieces(&text, &[]));
    let answer = chatting.chat_with(json!({"stream": true, "messages": [user("one")]})).await;
    assert_eq!(answer.body, text);
    assert_eq!((answer.header("x-upstream"), answer.status.as_u16()), (Some("yes"), 200));
    let answer = chatting.server.get("/sessions/s/turns?user_id=ada").await.json();
    assert_eq!(answer["turns"][1]["content"], "Hello", "without waiting for anything");
}

/// Recording counts the tokens of a reply, so it does not end while the counting waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_end_of_a_reply_waits_for_a_slow_store_as_long_as_the_setting_says() {
    let chatting = Chatting::with(|proxy| proxy.reply_wait = Some(Duration::from_millis(20))).await;
    chatting.upstream.will_say("wait!");
    crate::testing::WAIT.store(true, Ordering::SeqCst);
    let answer = chatting.chat(json!([user("how long")])).await;
    let early = chatting.server.get("/sessions/s/turns?user_id=ada").await.body;
    crate::testing::WAIT.store(false, Ordering::SeqCst);
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "wait!");
    assert_eq!(answer.header("x-strata-memory-recorded"), Some("later"));
    assert!(early.contains("how long") && !early.contains("wait!"), "{early}");
    assert_eq!(chatting.turns().await, ["user: how long", "assistant: wait!"], "it is recorded all the same");
    assert_eq!(chatting.rows().await[0]["error_stage"], "recording");
}

#[tokio::test]
async fn a_reply_that_is_recorded_in_time_is_no_failure() {
    let chatting = Chatting::with(|proxy| proxy.reply_wait = Some(Duration::from_secs(60))).await;
    let answer = chatting.chat(json!([user("how long")])).await;
    assert_eq!(answer.header("x-strata-memory-recorded"), Some("later"), "it is not promised");
    let turns = chatting.server.get("/sessions/s/turns?user_id=ada").await.json();
    assert_eq!(turns["turns"][1]["content"], "ok", "without waiting for anything");
    assert_eq!(chatting.rows().await[0]["error_stage"], Value::Null);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn chats_at_once_in_one_session_are_all_recorded() {
    const CHATS: usize = 32;
    let chatting = Arc::new(Chatting::start().await);
    for is_stream in [false, true] {
        let tasks: Vec<_> = (0..CHATS)
            .map(|number| {
                let chatting = Arc::clone(&chatting);
                if is_stream {
                    chatting.upstream.will_stream(pieces(&stream(&["o", "k"]), &[]));
                }
                let question = format!("{} question {number}", if is_stream { "streamed" } else { "plain" });
                let body = json!({"stream": is_stream, "messages": [user(&question)]});
                tokio::spawn(async move { chatting.chat_with(body).await.status.as_u16() })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), 200);
        }
    }
    chatting.server.app.proxy().finish(Duration::from_secs(30)).await;
    let answer = chatting.server.get("/sessions/s/turns?user_id=ada&limit=1000").await.json();
    let turns = answer["turns"].as_array().unwrap();
    let places: Vec<u64> = turns.iter().map(|turn| turn["seq"].as_u64().unwrap()).collect();
    assert_eq!(places, (0..4 * CHATS as u64).collect::<Vec<_>>());
    let mut replied: Vec<u64> = turns.iter().filter_map(|turn| turn["follows"].as_u64()).collect();
    replied.sort_unstable();
    let asked = turns.iter().filter(|turn| turn["role"] == "user").map(|turn| turn["seq"].as_u64().unwrap());
    assert_eq!(replied, asked.collect::<Vec<_>>(), "each question has its reply");
}

#[tokio::test]
async fn the_trace_of_a_chat_agrees_with_the_sent_block() {
    let chatting = Chatting::start().await;
    let body = json!({"user_id": "ada", "session_id": "t", "messages": [user("my dog is called Bello")]});
    chatting.server.post("/turns", body).await;
    chatting.chat(json!([user("my dog likes the sea")])).await;
    let messages = json!([user("my dog likes the sea"), assistant("ok"), user("what is my dog called")]);
    let answer = chatting.chat(messages).await;
    let sent = chatting.sent()[2]["content"].as_str().unwrap().to_owned();
    assert!(sent.contains("Bello") && !sent.contains("likes the sea"), "{sent}");
    // Later a message is recorded that would be an answer too.
    let body = json!({"user_id": "ada", "session_id": "t", "messages": [user("my dog is called Rex")]});
    chatting.server.post("/turns", body).await;
    chatting.server.app.proxy().finish(Duration::from_secs(30)).await;
    let id = answer.header("x-strata-request-id").unwrap();
    let shown = chatting.server.get(&format!("/requests/{id}?user_id=ada")).await.json();
    assert_eq!((&shown["trace_kept"], &shown["context_items"]), (&json!(false), &json!(1)), "{shown}");
    let note = shown["trace_note"].as_str().unwrap();
    assert!(note.contains("made anew") && note.contains("what was given then"), "{note}");
    let turns = chatting.server.get("/sessions/t/turns?user_id=ada").await.json();
    let bello = &turns["turns"][0]["id"];
    let candidates = shown["trace"]["candidates"].as_array().unwrap();
    let served: Vec<&Value> = candidates.iter().filter(|found| found["outcome"] == "served").collect();
    assert_eq!(served.len(), 1, "{shown}");
    assert_eq!((&served[0]["id"], &served[0]["reason"]), (bello, &json!("served as number 1")));
    let here = chatting.server.get("/sessions/s/turns?user_id=ada").await.json();
    let question = here["turns"].as_array().unwrap().iter().rfind(|turn| turn["role"] == "user").unwrap();
    assert!(candidates.iter().all(|found| found["id"] != question["id"]), "not the question: {shown}");
    assert!(candidates.iter().all(|found| found["id"] != turns["turns"][1]["id"]), "nor what came later");
}

#[tokio::test]
async fn how_much_of_a_short_prompt_stayed_is_told_from_the_first_request_on() {
    let chatting = Chatting::start().await;
    let share = |answer: &Answer| answer.header("x-strata-stable-prefix").unwrap().parse::<f64>().unwrap();
    let first = chatting.chat(json!([user("hi")])).await;
    assert_eq!(share(&first), 0.0, "nothing was there before");
    let second = chatting.chat(json!([user("hi"), assistant("ok"), user("more")])).await;
    assert!(share(&second) > 0.2, "{}", share(&second));
}

/// The lines in the block show when and by whom something was said, in a form that is the same on every day.
#[tokio::test]
async fn the_block_shows_days_and_speakers() {
    let chatting = Chatting::start().await;
    let said = json!([
        {"role": "user", "name": "Ingrid", "content": "I passed the harbour pilot exam yesterday!",
            "created_at": "2022-09-03T10:00:00Z"},
        {"role": "user", "name": "林岚", "content": "我上周通过了潜水考试", "created_at": "2022-10-05T10:00:00Z"},
    ]);
    chatting.server.post("/turns", json!({"user_id": "ada", "session_id": "t", "messages": said})).await;
    for (question, line) in [
        ("Who passed the pilot exam?", "\n[2022-09-03 Ingrid] I passed the harbour pilot exam yesterday!\n"),
        ("谁通过了潜水考试？", "\n[2022-10-05 林岚] 我上周通过了潜水考试\n"),
    ] {
        chatting.upstream.will_say("ok");
        chatting.chat(json!([user(question)])).await;
        let content = chatting.sent()[0]["content"].as_str().unwrap().to_owned();
        assert!(content.contains(line), "{content}");
    }
}

/// A greeting and thanks need no memory, even if earlier ones have the same words.
#[tokio::test]
async fn a_task_gets_no_block_whatever_words_it_shares_with_memory() {
    let chatting = Chatting::start().await;
    let said = json!([
        user("I wrote a short poem about autumn in the mountains for my grandmother"),
        user("我昨天写了一首关于秋天的诗")
    ]);
    chatting.server.post("/turns", json!({"user_id": "ada", "session_id": "t", "messages": said})).await;
    for (task, question) in [
        ("Could you write a short poem about autumn in the mountains?", "what was my poem about autumn for?"),
        ("帮我写一首关于秋天的诗", "我昨天写了一首关于什么的诗？"),
    ] {
        for (asked, is_bare) in [(task, true), (question, false)] {
            chatting.upstream.will_say("Leaves fall.");
            chatting.chat(json!([user(asked)])).await;
            assert_eq!(chatting.sent()[0]["content"] == asked, is_bare, "{asked}: {}", chatting.sent()[0]);
        }
    }
}

#[tokio::test]
async fn a_greeting_gets_no_block() {
    let chatting = Chatting::start().await;
    let said =
        json!([user("hello and good morning, my boat is in the harbour"), user("thanks!"), user("你好")]);
    chatting.server.post("/turns", json!({"user_id": "ada", "session_id": "t", "messages": said})).await;
    for greeting in ["hey, good morning!", "thanks!", "你好"] {
        chatting.upstream.will_say("Hello.");
        chatting.chat(json!([user(greeting)])).await;
        assert_eq!(chatting.sent()[0]["content"], greeting);
    }
}
