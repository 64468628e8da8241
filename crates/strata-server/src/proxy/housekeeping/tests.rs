use serde_json::{Value, json};

use super::*;
use crate::compat::anthropic::Messages;
use crate::compat::openai::completions::Completions;

fn is_recognised(messages: Value) -> bool {
    let text = json!({ "messages": messages }).to_string();
    is_housekeeping(&ChatBody::read(&Completions, text.as_bytes()).unwrap())
}

fn alone(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

fn after_a_chat(text: &str) -> Value {
    json!([{"role": "user", "content": "my ferry leaves at nine"}, {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": text}])
}

#[test]
fn programs_that_ask_for_themselves_are_recognised() {
    for text in [
        "### Task:\nCreate a short title of three to five words with an emoji for the chat history.\n### Output:\nJSON: { \"title\": \"…\" }\n### Chat History:\n<chat_history>\nUSER: my ferry leaves at nine\nASSISTANT: Noted.\n</chat_history>",
        "### Task:\nGenerate 1-3 broad tags for the main themes of the chat history.\n<chat_history>\n…\n</chat_history>",
        "### Task:\nSuggest 3 follow-up questions that the user might ask next in this conversation. Return a JSON list.\n<chat_history>…</chat_history>",
        "### Task:\nYou are an autocompletion system. Continue the text in `<text>`.\n<type>General</type>\n<text>my ferry</text>",
        "Analyze this conversation and provide:\n1. its language\n2. A title, five words or less, no punctuation\n\nUser: my ferry leaves at nine\nAI: Noted.",
        "Please write a title for the conversation below.\n||>User:\n\"my ferry leaves at nine\"\n||>Response:\n\"Noted.\"",
        "### Task:\nDetermine the search queries that the chat history needs, as JSON.\n<chat_history>…</chat_history>",
        "请为以下对话生成一个十字以内的标题，不要解释。\n聊天记录：\n用户：渡轮九点开\n助手：好的",
        "根据聊天记录生成三个标签，只返回 JSON。\n<chat_history>…</chat_history>",
    ] {
        assert!(is_recognised(alone(text)), "{text}");
    }
    for text in [
        "Please generate a four to five word title for our conversation without any lead-in or punctuation.",
        "Summarise the conversation so far in less than 200 words; it will be used as context for what follows.",
        "使用四到五个字直接返回这句话的简要主题，不要解释、不要标点",
        "简要总结一下对话内容，用作后续的上下文提示，控制在 200 字以内",
    ] {
        assert!(is_recognised(after_a_chat(text)), "{text}");
    }
    let instructed = |order: &str| json!([{"role": "system", "content": order}, {"role": "user", "content": "user: my ferry leaves at nine"}]);
    assert!(is_recognised(instructed(
        "You are a title generator. You output ONLY the title of the conversation, nothing else."
    )));
    assert!(is_recognised(instructed("将用户的会话总结为 10 个字以内的标题，不要标点")));
    let text = json!({"system": "Generate a title for this coding conversation in under 50 characters.",
        "messages": alone("my ferry leaves at nine")});
    let text = text.to_string();
    assert!(is_housekeeping(&ChatBody::read(&Messages, text.as_bytes()).unwrap()));
    let text = json!({"metadata": {"task": "title_generation"}, "messages": alone("hello")}).to_string();
    assert!(is_housekeeping(&ChatBody::read(&Completions, text.as_bytes()).unwrap()));
}

/// Prompts with all the sections that the default ones of chat programs have: a task, guidelines, the form of the output, examples,
/// and the conversation.
#[test]
fn prompts_in_the_shape_of_the_programs_defaults_are_recognised() {
    const CHAT: &str = "### Chat History:\n<chat_history>\nUSER: my ferry leaves at nine, from which pier?\nASSISTANT: From the third one. Shall I draw a map?\n</chat_history>";
    let sections = |task: &str, guidelines: &[&str], output: &str, examples: &[&str]| {
        let list = |lines: &[&str]| lines.iter().map(|line| format!("- {line}\n")).collect::<String>();
        format!(
            "### Task:\n{task}\n### Guidelines:\n{}### Output:\n{output}\n### Examples:\n{}{CHAT}",
            list(guidelines),
            list(examples)
        )
    };
    let raw = "Answer with the JSON object alone: no code fences, no greeting, no explanation.";
    let language = "Use the main language of the chat; if there are several, use English.";
    let title = sections(
        "Generate a concise title of 3 to 5 words, with one emoji, that summarizes the chat history.",
        &[
            "It names the subject of the conversation.",
            "No quotation marks and no formatting.",
            language,
            raw,
        ],
        "JSON format: { \"title\": \"your title here\" }",
        &["{ \"title\": \"⛴ Morning Ferry\" }", "{ \"title\": \"🍞 Bread With Seeds\" }"],
    );
    let tags = sections(
        "Generate 1-3 broad tags categorizing the main themes of the chat history, along with 1-3 more specific subtopic tags.",
        &[
            "Begin with wide fields (Travel, Cooking, Science).",
            "If the content is too short, use only [\"General\"].",
            language,
            raw,
        ],
        "JSON format: { \"tags\": [\"tag1\", \"tag2\"] }",
        &["{ \"tags\": [\"Travel\", \"Ferries\"] }"],
    );
    let follow_ups = sections(
        "Suggest 3-5 relevant follow-up questions or prompts that the user might naturally ask next in this conversation, based on the chat history.",
        &[
            "Write them from the user's point of view, towards the assistant.",
            "Do not repeat what was answered.",
            language,
            raw,
        ],
        "JSON format: { \"follow_ups\": [\"Question 1?\", \"Question 2?\"] }",
        &["{ \"follow_ups\": [\"When does the last one return?\"] }"],
    );
    let queries = sections(
        "Analyze the chat history to determine the necessity of generating search queries, in the given language. By default, prioritize generating 1-3 broad queries unless it is certain that no more information is needed.",
        &[
            "Respond **EXCLUSIVELY** with a JSON object.",
            "If nothing has to be looked up, return { \"queries\": [] }.",
            "Today's date is: 2026-03-02.",
        ],
        "Strictly return in JSON format: { \"queries\": [\"query1\", \"query2\"] }",
        &["{ \"queries\": [\"pier of the morning ferry\"] }"],
    );
    let completion = "### Task:\nYou are an autocompletion system. Continue the text in `<text>` based on the **completion type** in `<type>` and the given language.\n\n### **Instructions**:\n1. Analyze `<text>` for context and meaning.\n2. Use `<type>` to guide your output.\n3. Start as if you were directly continuing `<text>`. Do **not** repeat or answer it.\n4. If unsure, return { \"text\": \"\" }.\n\n### **Output Rules**:\n- Respond only in JSON format: { \"text\": \"<your_completion>\" }.\n\n### **Examples**:\nInput:\n<type>Search Query</type>\n<text>Ferries to</text>\nOutput:\n{ \"text\": \"the northern islands.\" }\n\n---\n### Context:\n<chat_history>\nUSER: my ferry leaves at nine\n</chat_history>\n<type>General</type>\n<text>and when must I</text>\n#### Output:";
    for prompt in [&title, &tags, &follow_ups, &queries, completion] {
        assert!(is_recognised(alone(prompt)), "{prompt}");
    }
    // LibreChat asks in one instruction, with the first exchange behind it, or in the instructions.
    let order = "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the title itself.";
    let exchange = "User: my ferry leaves at nine\nAI: Noted.";
    assert!(is_recognised(alone(&format!("{order}\n\nConversation:\n{exchange}"))));
    assert!(is_recognised(instructed(order, &alone(exchange))));
    // The same words in a person's question, who wants something made of a text of its own.
    for text in [
        "Generate 1-3 broad tags for my blog article about ferries, as JSON.",
        "Suggest 3-5 follow-up questions that I can ask the captain after the interview.",
        "Continue the text: and when must I",
    ] {
        assert!(!is_recognised(alone(text)), "{text}");
    }
}

#[test]
fn people_are_not() {
    for text in [
        "Give me a title for my article about chat bots, in five words.",
        "Suggest three tags for my photo of the harbour, as JSON.",
        "Summarise our conversation so far, please.",
        "Can you summarise what we discussed in three bullet points?",
        "Write a summary of the book I told you about in 100 words.",
        "How do I add autocompletion to vim?",
        "What was the title of the film we talked about in our last conversation?",
        "Continue the story about the lighthouse.",
        "My daughter's conversation class is on Monday; write that down.",
        "Generate a JSON file with my contacts: name, phone, nothing else.",
        "帮我总结一下我们的对话",
        "给我的文章起一个标题，不超过十个字",
        "我们上次聊天说的那部电影叫什么名字？",
        "续写灯塔的故事",
    ] {
        assert!(!is_recognised(alone(text)), "{text}");
        assert!(!is_recognised(after_a_chat(text)), "{text}");
    }
    let long = "You are a helpful guide of the harbour museum. Be brief. ".repeat(20)
        + "At the end of the conversation, generate a title of five words.";
    let messages =
        json!([{"role": "system", "content": long}, {"role": "user", "content": "when do you open"}]);
    assert!(!is_recognised(messages));
}

/// A body whose instructions are these, before the messages.
fn instructed(order: &str, messages: &Value) -> Value {
    let mut all = vec![json!({"role": "system", "content": order})];
    all.extend(messages.as_array().unwrap().iter().cloned());
    all.into()
}

fn is_recognised_in(api: &'static dyn crate::compat::chat::ChatApi, body: &Value) -> bool {
    is_housekeeping(&ChatBody::read(api, body.to_string().as_bytes()).unwrap())
}

#[test]
fn a_table_of_programs_and_applications() {
    let ferry = alone("my ferry leaves at nine");
    let lines = alone("History:\nUSER: \"\"\"my ferry leaves at nine\"\"\"\nQuery: when must I pack");
    for messages in [
        alone(
            "Below is a chat between a person and a model. Name it in at most six words, title case, no quotation marks. Output the title and nothing else.\n\nUser: my ferry leaves at nine\nAssistant: Noted.",
        ),
        alone(
            "### Task:\nGenerate a detailed prompt for an image generation task based on the given language and context.\n### Output:\nReturn JSON: {\"prompt\": \"…\"}\n### Chat History:\n<chat_history>\nUSER: the harbour at dawn\n</chat_history>",
        ),
        alone(
            "Your task is to reflect the speaker's likely facial expression through a fitting emoji. Interpret emotions from the message and use fitting emojis (e.g., 😊).\n\nMessage: ```my ferry leaves at nine```",
        ),
        alone(
            "Given the following conversation and a follow up question, rephrase the follow up question to be a standalone question, in its original language.\n\nChat History:\nHuman: my ferry leaves at nine\nAssistant: Noted.\nFollow Up Input: and from where?\nStandalone question:",
        ),
        alone(
            "根据以下对话历史，将用户的最后一个问题改写为独立的问题，不要回答。\n对话内容：\n用户：渡轮九点开\n助手：好的\n问题：从哪里开？",
        ),
        alone(
            "<conversation>\nUser: my ferry leaves at nine\nAssistant: Noted.\n</conversation>\nSuggest three follow-ups that the user may send next in this conversation. Return only a JSON array of strings.",
        ),
        after_a_chat(
            "Your task is to create a detailed summary of the conversation so far. Before your final summary, wrap your thoughts in <analysis> tags and check that nothing essential is missing.",
        ),
        after_a_chat(
            "The current conversation is running out of context. Write a comprehensive summary of the conversation, so that the work can go on.",
        ),
        after_a_chat(
            "Create a handoff summary for another LLM that will resume the task. Include progress, decisions and what is left.",
        ),
        instructed(
            "Given a chat history and the latest user question, formulate a standalone question which can be understood without the chat history. Do NOT answer the question, just reformulate it if needed.",
            &after_a_chat("and from where?"),
        ),
        instructed(
            "You are the component that summarizes internal chat history into a given structure. The agent will resume its work from this snapshot alone.",
            &after_a_chat("First, reason in your scratchpad. Then, generate the <state_snapshot>."),
        ),
        instructed(
            "You are a helpful AI assistant tasked with summarizing conversations.",
            &after_a_chat("Summarize the conversation so far, as described above."),
        ),
        instructed(
            "Available Tools: [{\"name\": \"ferries\"}]\n\nYour task is to choose and return the correct tool(s) from the list of available tools based on the query. Return only the JSON object, without any additional text or explanation.",
            &lines,
        ),
        instructed(
            "Generate a concise chat title (2-5 words) that summarizes the user's message.\n\nOutput ONLY the title text. No prefixes.",
            &ferry,
        ),
        instructed("你是一名擅长会话的助理，你需要将用户的会话总结为 10 个字以内的标题", &ferry),
        instructed(
            "Summarize this coding conversation in under 50 characters.\nCapture the main task and the current status.",
            &ferry,
        ),
    ] {
        assert!(is_recognised(messages.clone()), "{messages}");
    }
    for messages in [
        instructed(
            "You are a customer-support agent. Determine the topic of the conversation, answer politely and return only JSON.",
            &ferry,
        ),
        instructed("Determine the topic of the conversation, answer politely and return only JSON.", &ferry),
        instructed(
            "You are a travel planner. Generate an itinerary title and a plan for the user's message, as JSON.",
            &ferry,
        ),
        instructed("Generate an itinerary title and a plan for the user's message, as JSON.", &ferry),
        instructed(
            "You are a helpful assistant. Keep it under 100 words. Summarize the conversation when asked.",
            &ferry,
        ),
        instructed(
            "You are a tutor. Suggest three follow-up exercises after each conversation, as JSON.",
            &ferry,
        ),
        instructed(
            "You are a meeting assistant. Summarise the conversation in JSON and reply to questions about it.",
            &ferry,
        ),
        instructed("你是客服助手。判断会话的主题，礼貌地回答用户，只返回 JSON。", &ferry),
        instructed("你是一名导游。根据对话给出景点建议，并以 JSON 返回标题和路线。", &ferry),
        instructed(
            "Answer from the context. If the question is unclear, suggest tags of the conversation to look at. Return only JSON.",
            &ferry,
        ),
        instructed(
            "You can call tools. Available tools: ferries, tides. Choose the correct tool and return only JSON.",
            &ferry,
        ),
        after_a_chat(
            "Provide three title ideas for my talk about chat history in museums; return only JSON.",
        ),
        after_a_chat("Summarise the conversation that I had with the harbour office, in five words."),
        after_a_chat("请为我的对话课程起一个标题，不超过十个字，只返回标题"),
        after_a_chat("Rewrite the paragraph so that it is self-contained."),
        after_a_chat("Write a handoff summary of the patient for the night nurse, under 100 words."),
        alone("Write a summary of the meeting in 100 words.\nAnn: the ferry is late\nBob: I know"),
        alone(
            "Use the following context and chat history to answer the question. Return only JSON with the answer and a category.\n<context>tides</context>\nChat history:\nUser: hello\nAssistant: hello\nQuestion: when do I row",
        ),
        instructed(
            "You are an expert data extraction system. Extract name, date and topic from the user's message as JSON only.",
            &ferry,
        ),
        instructed(
            "Translate the conversation into French and return only JSON with the fields title and text.",
            &ferry,
        ),
        alone("Extract three tags for this lamp: brass, 1920, JSON only."),
    ] {
        assert!(!is_recognised(messages.clone()), "{messages}");
    }
}

#[test]
fn the_form_of_a_body_does_not_hide_a_program() {
    use crate::compat::openai::responses::Responses;
    let title = "Analyze if this message indicates a new conversation topic. If it does, extract a 2-3 word title. Format your response as a JSON object.";
    let begun = json!([{"role": "user", "content": "my ferry leaves at nine"}, {"role": "assistant", "content": "{"}]);
    for body in [
        json!({"system": [{"type": "text", "text": "You are a command line tool."}, {"type": "text", "text": title}], "messages": begun}),
        json!({"system": title, "messages": begun}),
    ] {
        assert!(is_recognised_in(&Messages, &body), "{body}");
    }
    assert!(is_recognised_in(
        &Responses,
        &json!({"instructions": title, "input": "my ferry leaves at nine"})
    ));
    for (task, expected) in [
        ("title_generation", true),
        ("follow_up_generation", true),
        ("image_prompt_generation", true),
        ("function_calling", true),
        ("report_generation", false),
        ("code_generation", false),
        ("response_generation", false),
        ("_generation", false),
    ] {
        let body = json!({"metadata": {"task": task}, "messages": alone("hello")});
        assert_eq!(is_recognised_in(&Completions, &body), expected, "{task}");
    }
}
