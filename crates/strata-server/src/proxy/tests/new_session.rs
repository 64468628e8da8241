//! A question in a new session: memories that share a word with it do not hide the answer of another session, in the proxy, in
//! prompts, over MCP and in a search.

use super::*;

/// Memories of the user, a turn of another session, and a question that only the turn answers.
struct Case {
    memories: [&'static str; 4],
    fact: &'static str,
    question: &'static str,
}

/// Learned memories begin with «The user», so a question with that word shares it with all of them.
const CASES: [Case; 3] = [
    Case {
        memories: ["Runa likes gliding", "Runa likes rye bread", "Runa likes curling", "Runa likes fog"],
        fact: "The combination of Runa's sea chest is 2963.",
        question: "What is the combination of Runa's sea chest?",
    },
    Case {
        memories: [
            "The user likes harbour towns.",
            "The user plays the bassoon.",
            "The user is left-handed.",
            "The user works in Esbjerg.",
        ],
        fact: "The staging database runs under the user heron_rw.",
        question: "Under which user does the staging database run?",
    },
    Case {
        memories: ["小岩喜欢滑翔", "小岩喜欢黑麦面包", "小岩喜欢冰壶", "小岩喜欢看雾"],
        fact: "小岩储物柜的密码是2963。",
        question: "小岩储物柜的密码是多少？",
    },
];

async fn told(case: &Case) -> Chatting {
    let chatting = Chatting::start().await;
    for memory in case.memories {
        let body = json!({"user_id": "ada", "text": memory, "infer": false});
        let answer = chatting.server.post("/memories", body).await;
        assert!(answer.status.is_success(), "{}", answer.body);
    }
    let body = json!({"user_id": "ada", "session_id": "monday", "messages": [user(case.fact)]});
    chatting.server.post("/turns", body).await;
    chatting
}

#[tokio::test]
async fn the_proxy_prompts_and_mcp_find_the_answer_of_another_session() {
    for case in &CASES {
        let chatting = told(case).await;
        // From the third message on, the client shows more than one message.
        let (hello, reply) = (user("good morning"), json!({"role": "assistant", "content": "Hello!"}));
        for messages in [json!([user(case.question)]), json!([hello, reply, user(case.question)])] {
            chatting.upstream.will_say("I see.");
            chatting.chat(messages).await;
            let sent = chatting.sent().to_string();
            assert!(sent.contains(case.fact), "the proxy: {sent}");
        }
        let body = json!({"user_id": "ada", "question": case.question, "format": "chat"});
        let prompt = chatting.server.post("/sessions/tuesday/prompt", body).await.body;
        assert!(prompt.contains(case.fact), "the prompt: {prompt}");
        let arguments = json!({"query": case.question, "user_id": "ada", "session_id": "tuesday"});
        let params = json!({"name": "search_memories", "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = request(Method::POST, "/mcp").header("content-type", "application/json");
        let request = request.header("accept", "application/json, text/event-stream");
        let answer =
            chatting.server.send(request.body(Body::from(message.to_string())).unwrap()).await.json();
        let found = &answer["result"]["structuredContent"]["results"][0]["memory"];
        assert_eq!(found, case.fact, "MCP: {answer}");
        let body = json!({"query": case.question, "user_id": "ada", "session_id": "tuesday"});
        let found = chatting.server.post("/search", body).await.json();
        assert_eq!(found["results"][0]["memory"], case.fact, "{found}");
    }
}
