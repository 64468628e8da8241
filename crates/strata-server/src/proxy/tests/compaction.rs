//! Long chats: the messages that are sent on.

use super::*;

const WORDS: &str = "several words to make it long enough to count for something here";

/// The tokens of messages, as the test server counts them: their words, and the fixed cost of each message.
fn tokens(messages: &[Value]) -> usize {
    let said = messages.iter().filter(|message| message["role"] != "system");
    said.map(|message| 4 + message["content"].as_str().unwrap().split_whitespace().count()).sum()
}

/// The messages that were sent, without the memory block in front of the question.
fn sent(chatting: &Chatting, question: &Value) -> Vec<Value> {
    let mut sent = chatting.sent().as_array().unwrap().clone();
    let last = sent.last_mut().unwrap();
    // A summary may precede the same message.
    let blocks = last["content"].as_str().unwrap().split_inclusive("</strata_memory>\n\n");
    let summary: String = blocks.filter(|block| block.contains("<conversation_summary>")).collect();
    *last = user(&format!("{summary}{}", question["content"].as_str().unwrap()));
    sent
}

#[tokio::test]
async fn a_long_chat_is_compacted_by_steps() {
    const BUDGET: u32 = 400;
    let chatting = Chatting::with(|proxy| proxy.compact_tokens = BUDGET).await;
    let mut messages = vec![json!({"role": "system", "content": "be brief"})];
    let mut beginnings = Vec::new();
    for number in 0..40 {
        messages.push(user(&format!("question {number}: {WORDS}")));
        let reply = format!("answer {number}: {WORDS}");
        chatting.upstream.will_say(&reply);
        assert_eq!(chatting.chat(messages.clone().into()).await.status, 200);
        let sent = sent(&chatting, messages.last().unwrap());
        assert_eq!(sent[0], messages[0], "instructions stay");
        assert_eq!(sent[1]["role"], "user");
        assert!(tokens(&sent) <= tokens(&messages), "{number}: {} {sent:#?}", tokens(&messages));
        let (_, before) = sent.split_last().unwrap();
        assert!(tokens(before) <= BUDGET as usize, "{number}: {} {sent:#?}", tokens(&sent));
        beginnings.push(sent[1].clone());
        messages.push(assistant(&reply));
    }
    let last = beginnings.last().unwrap()["content"].as_str().unwrap();
    assert!(last.contains("<conversation_summary>") && last.contains("earlier messages left out"), "{last}");
    let mut steps = beginnings.clone();
    steps.dedup();
    assert!((3..=12).contains(&steps.len()), "between two steps the beginning stays: {steps:#?}");
    let turns = chatting.turns().await;
    assert_eq!(turns.len(), 80, "all of it is recorded: {turns:#?}");
}

#[tokio::test]
async fn a_chat_whose_last_exchange_is_long_is_not_made_longer() {
    let chatting = Chatting::with(|proxy| proxy.compact_tokens = 100).await;
    let long = [WORDS; 20].join(" ");
    let question = user(&long);
    let messages = vec![user("hello"), assistant("hi"), question.clone()];
    chatting.chat(messages.clone().into()).await;
    let sent = sent(&chatting, &question);
    assert!(tokens(&sent) <= tokens(&messages), "{sent:#?}");
    assert_eq!(sent.last().unwrap(), &question, "it stays whole");
}
