//! The APIs that are measured: how a chat is asked in each, and how the scripted model answers.

use serde_json::{Value, json};

/// The number of words of a streamed reply.
const WORDS: usize = 20;

/// An API of a provider.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    ChatCompletions,
    Responses,
    Messages,
    Ollama,
    Generate,
    Azure,
}

impl Dialect {
    /// All of them; chat completions, whose figures are known for the longest time, first.
    pub(super) const ALL: [Self; 6] =
        [Self::ChatCompletions, Self::Responses, Self::Messages, Self::Ollama, Self::Generate, Self::Azure];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat completions",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Ollama => "ollama",
            Self::Generate => "ollama generate",
            Self::Azure => "azure",
        }
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::ChatCompletions => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
            Self::Ollama => "/api/chat",
            Self::Generate => "/api/generate",
            Self::Azure => "/openai/deployments/m/chat/completions",
        }
    }

    /// The dialect of a request, by its first line.
    pub(super) fn of_request(head: &str) -> Self {
        let path = head.split(' ').nth(1).unwrap_or_default();
        Self::ALL.into_iter().find(|dialect| path == dialect.path()).unwrap_or(Self::ChatCompletions)
    }

    /// The body of a chat.
    pub(super) fn request(self, question: &str, is_stream: bool) -> Value {
        let messages = json!([{ "role": "user", "content": question }]);
        match self {
            Self::Responses => json!({ "model": "m", "input": question, "stream": is_stream }),
            Self::Generate => json!({ "model": "m", "prompt": question, "stream": is_stream }),
            Self::Messages => {
                json!({ "model": "m", "max_tokens": 50, "messages": messages, "stream": is_stream })
            }
            Self::ChatCompletions | Self::Ollama | Self::Azure => {
                json!({ "model": "m", "messages": messages, "stream": is_stream })
            }
        }
    }

    /// The whole reply.
    pub(super) fn document(self) -> Value {
        const TEXT: &str = "a reply of several words, as models give them";
        let message = json!({ "role": "assistant", "content": TEXT });
        match self {
            Self::ChatCompletions | Self::Azure => {
                let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
                json!({ "id": "c", "object": "chat.completion", "model": "m", "choices": [choice] })
            }
            Self::Responses => response("completed", TEXT),
            Self::Messages => json!({ "id": "c", "type": "message", "role": "assistant", "model": "m",
                "content": [{ "type": "text", "text": TEXT }], "stop_reason": "end_turn",
                "usage": { "input_tokens": 10, "output_tokens": 9 } }),
            Self::Ollama => json!({ "model": "m", "message": message, "done": true, "done_reason": "stop" }),
            Self::Generate => json!({ "model": "m", "response": TEXT, "done": true, "done_reason": "stop" }),
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Ollama | Self::Generate => "application/x-ndjson",
            Self::ChatCompletions | Self::Responses | Self::Messages | Self::Azure => "text/event-stream",
        }
    }

    /// The pieces of a streamed reply: those before its text, one for each word, and the end.
    pub(super) fn stream(self) -> (Vec<String>, Vec<String>, Vec<String>) {
        let words: Vec<String> = (0..WORDS).map(|number| format!("word{number} ")).collect();
        let text = words.concat();
        let named = |event: Value| {
            format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
        };
        let plain = |event: Value| format!("data: {event}\n\n");
        match self {
            Self::ChatCompletions | Self::Azure => {
                let piece = |word: &String| {
                    let choice = json!({ "index": 0, "delta": { "content": word }, "finish_reason": null });
                    plain(json!({ "choices": [choice] }))
                };
                (Vec::new(), words.iter().map(piece).collect(), vec!["data: [DONE]\n\n".to_owned()])
            }
            Self::Responses => {
                let begin = json!({ "type": "response.created", "response": response("in_progress", "") });
                let piece = |word: &String| {
                    named(json!({ "type": "response.output_text.delta", "output_index": 0,
                        "content_index": 0, "delta": word }))
                };
                let end = json!({ "type": "response.completed", "response": response("completed", &text) });
                (vec![named(begin)], words.iter().map(piece).collect(), vec![named(end)])
            }
            Self::Messages => {
                let message = json!({ "id": "c", "type": "message", "role": "assistant", "model": "m", "content": [],
                    "usage": { "input_tokens": 10, "output_tokens": 1 } });
                let block = json!({ "type": "text", "text": "" });
                let begin = [
                    json!({ "type": "message_start", "message": message }),
                    json!({ "type": "content_block_start", "index": 0, "content_block": block }),
                ];
                let piece = |word: &String| {
                    let delta = json!({ "type": "text_delta", "text": word });
                    named(json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
                };
                let end = [
                    json!({ "type": "content_block_stop", "index": 0 }),
                    json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 20 } }),
                    json!({ "type": "message_stop" }),
                ];
                (begin.map(named).to_vec(), words.iter().map(piece).collect(), end.map(named).to_vec())
            }
            Self::Ollama | Self::Generate => {
                let line = |word: &str, is_done: bool| {
                    let mut line = json!({ "model": "m", "done": is_done });
                    match self {
                        Self::Generate => line["response"] = json!(word),
                        _ => line["message"] = json!({ "role": "assistant", "content": word }),
                    }
                    format!("{line}\n")
                };
                (Vec::new(), words.iter().map(|word| line(word, false)).collect(), vec![line("", true)])
            }
        }
    }
}

fn response(status: &str, text: &str) -> Value {
    let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
    let item =
        json!({ "type": "message", "id": "i", "role": "assistant", "status": status, "content": content });
    let output = if text.is_empty() { json!([]) } else { json!([item]) };
    json!({ "id": "c", "object": "response", "status": status, "model": "m", "output": output })
}
