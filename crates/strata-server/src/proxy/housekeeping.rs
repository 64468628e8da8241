//! Recognises the prompts that chat programs send for themselves: for a title, tags, follow-up questions, search
//! queries, an autocompletion or a summary of a chat. They are passed on bare, and neither recorded nor learned.
//!
//! No program's wording is known here. A prompt is recognised by its form: an order to make one of these things, about
//! a conversation, that prescribes the form of the answer or encloses the conversation. A person who asks for a title
//! or a summary of something else, or in plain words, is not meant.

use strata_core::Role;

use crate::compat::chat::ChatBody;

/// An order that is not at the beginning of a long text is part of a description, not the task.
const HEAD_CHARS: usize = 600;

/// Whether a program asks for itself.
pub(crate) fn is_housekeeping(body: &ChatBody<'_>) -> bool {
    // Some programs say so.
    let task = body.fields().object("metadata").and_then(|metadata| metadata.string("task"));
    if task.is_some_and(|task| task.ends_with("_generation")) {
        return true;
    }
    let messages = body.messages();
    let asked = messages.iter().rfind(|message| message.role == Some(Role::User));
    let has_replies = messages.iter().any(|message| message.role == Some(Role::Assistant));
    let Some(asked) = asked.map(|message| message.said()) else { return false };
    if Traits::of(asked).are_housekeeping(has_replies) {
        return true;
    }
    let instructed = |text: &str| Traits::of(text).are_housekeeping(true);
    let in_messages = messages.iter().filter(|message| message.role == Some(Role::System));
    let mut apart = ["instructions", "system"].into_iter().filter_map(|name| body.fields().string(name));
    // A chat whose instructions are housekeeping has nothing but the conversation that they are about.
    !has_replies
        && (in_messages.map(|message| message.said()).any(instructed) || apart.any(|text| instructed(&text)))
}

/// The traits of a prompt that matter.
#[derive(Debug, Default)]
struct Traits {
    /// What it asks for.
    wanted: Option<Wanted>,
    /// It orders something.
    is_order: bool,
    /// It is about a conversation.
    is_about_chat: bool,
    /// It prescribes the form of the answer.
    has_form: bool,
    /// It encloses a conversation or a text.
    encloses: bool,
    /// It says that another program uses the answer.
    is_for_program: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// A title, tags, follow-up questions, search queries.
    Label,
    /// The rest of a text that somebody writes.
    Completion,
    Summary,
}

impl Traits {
    fn of(text: &str) -> Self {
        let lower = text.to_lowercase();
        let head: String = lower.chars().take(HEAD_CHARS).collect();
        let has = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
        let wanted = if has(&head, COMPLETIONS) {
            Some(Wanted::Completion)
        } else if has_word(&head, LABELS) || has(&head, CHINESE_LABELS) {
            Some(Wanted::Label)
        } else if has(&head, SUMMARIES) {
            Some(Wanted::Summary)
        } else {
            None
        };
        Self {
            wanted,
            is_order: head.lines().any(is_order) || has(&head, ORDERS) || has(&head, CHINESE_ORDERS),
            is_about_chat: has(&lower, CHATS) || names_this_chat(&lower),
            has_form: has(&lower, FORMS) || limits_length(&lower),
            encloses: has(&lower, ENCLOSURES) || is_transcript(&lower),
            is_for_program: has(&lower, PROGRAMS),
        }
    }

    /// `has_chat` tells that the conversation stands in front of the prompt.
    fn are_housekeeping(&self, has_chat: bool) -> bool {
        let is_task = self.is_order && self.is_about_chat;
        match self.wanted {
            Some(Wanted::Label) => is_task && (self.encloses || has_chat && self.has_form),
            Some(Wanted::Completion) => self.is_order && self.encloses,
            // People ask for summaries of their chats too.
            Some(Wanted::Summary) => {
                is_task && (self.encloses && self.has_form || has_chat && self.is_for_program)
            }
            None => false,
        }
    }
}

const LABELS: &[&str] = &[
    "title",
    "titles",
    "headline",
    "tag",
    "tags",
    "emoji",
    "follow-up",
    "followup",
    "follow-ups",
    "queries",
    "topic",
    "topics",
    "keywords",
    "category",
    "categories",
    "suggestions",
];

const CHINESE_LABELS: &[&str] =
    &["标题", "题目", "主题", "标签", "关键词", "后续问题", "追问", "搜索词", "搜索查询", "检索词", "表情"];

const COMPLETIONS: &[&str] =
    &["autocomplet", "auto-complet", "completion system", "自动补全", "自动完成", "续写"];

const SUMMARIES: &[&str] = &["summar", "condense", "compact", "总结", "概括", "摘要", "压缩"];

/// Verbs at the beginning of an order.
const VERBS: &[&str] = &[
    "generate",
    "create",
    "write",
    "suggest",
    "summarize",
    "summarise",
    "propose",
    "provide",
    "produce",
    "analyze",
    "analyse",
    "extract",
    "give",
    "name",
    "categorize",
    "categorise",
    "predict",
    "continue",
    "complete",
    "condense",
    "return",
    "output",
    "determine",
    "choose",
    "craft",
    "compose",
    "come",
];

/// Orders in the middle of a sentence.
const ORDERS: &[&str] = &[
    "task is to",
    "you generate",
    "you will generate",
    "you write",
    "you create",
    "you output",
    " generator",
    "your job is to",
];

const CHINESE_ORDERS: &[&str] = &[
    "生成",
    "总结",
    "概括",
    "拟定",
    "起一个",
    "起个",
    "取一个",
    "给出",
    "提供",
    "建议",
    "提取",
    "返回",
    "输出",
    "续写",
    "补全",
    "压缩",
];

const CHATS: &[&str] = &[
    "chat history",
    "conversation history",
    "message history",
    "dialogue history",
    "chat log",
    "chat session",
    "chat_history",
    "user's message",
    "user message",
    "first message",
    "对话",
    "会话",
    "聊天",
    "上文",
    "这句话",
];

/// Words for a conversation, which count after a word that points at one.
const TALKS: &[&str] = &[
    "conversation",
    "chat",
    "dialogue",
    "dialog",
    "discussion",
    "exchange",
    "thread",
    "session",
    "messages",
];

const POINTERS: &[&str] = &[
    "the",
    "this",
    "our",
    "that",
    "following",
    "given",
    "above",
    "previous",
    "ongoing",
    "entire",
    "coding",
    "user's",
    "a",
];

/// Words after «chat» that make it something else.
const OTHER_CHATS: &[&str] = &[
    "bot", "bots", "app", "room", "page", "widget", "window", "feature", "server", "client", "program",
    "model",
];

const FORMS: &[&str] = &[
    "json",
    "nothing else",
    "no quotes",
    "without quotes",
    "quotation",
    "no punctuation",
    "without punctuation",
    "do not explain",
    "don't explain",
    "no explanation",
    "respond only",
    "only respond",
    "respond with only",
    "reply only",
    "only the",
    "return only",
    "output only",
    "just the",
    "without any lead-in",
    "do not include",
    "plain text",
    "不要解释",
    "不要标点",
    "不要多余",
    "直接返回",
    "只返回",
    "只输出",
    "仅输出",
    "仅返回",
    "以内",
    "不超过",
    "个字",
];

const ENCLOSURES: &[&str] = &[
    "<chat_history>",
    "<conversation>",
    "<messages>",
    "<transcript>",
    "<history>",
    "<text>",
    "<input>",
    "<context>",
    "### chat history",
    "### conversation",
    "chat history:",
    "conversation:",
    "聊天记录：",
    "聊天记录:",
    "对话内容：",
    "对话内容:",
];

const PROGRAMS: &[&str] = &[
    "as context",
    "for context",
    "as a prompt",
    "context window",
    "continue the conversation",
    "continue the work",
    "continuing development",
    "<summary>",
    "will be used",
    "hand off",
    "handoff",
    "后续的上下文",
    "上下文提示",
];

/// Whether one of the words is in a text as a whole word.
fn has_word(text: &str, words: &[&str]) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '-';
    text.split(|c: char| !is_part(c)).any(|word| words.contains(&word))
}

/// Whether a line begins with an order.
fn is_order(line: &str) -> bool {
    line.split(['.', ':', ';']).any(|sentence| {
        let words =
            sentence.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
        let mut words =
            words.skip_while(|word| matches!(*word, "please" | "now" | "then" | "task") || is_number(word));
        words.next().is_some_and(|word| VERBS.contains(&word))
    })
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text points at a conversation: «this chat», «the following conversation».
fn names_this_chat(text: &str) -> bool {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).collect();
    words.windows(2).enumerate().any(|(place, pair)| {
        let after = words.get(place + 2).copied().unwrap_or_default();
        POINTERS.contains(&pair[0]) && TALKS.contains(&pair[1]) && !OTHER_CHATS.contains(&after)
    })
}

/// Whether a text limits the length of the answer: «3-5 words», «under fifty characters».
fn limits_length(text: &str) -> bool {
    const NUMBERS: &[&str] =
        &["two", "three", "four", "five", "six", "seven", "eight", "ten", "twenty", "fifty", "few", "one"];
    const UNITS: &[&str] = &["word", "words", "character", "characters", "letters", "tokens", "sentence"];
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words
        .windows(2)
        .any(|pair| (is_number(pair[0]) || NUMBERS.contains(&pair[0])) && UNITS.contains(&pair[1]))
}

/// Whether some lines begin with the name of one speaker and others with that of the other.
fn is_transcript(text: &str) -> bool {
    const USERS: &[&str] = &["user", "human", "用户", "问"];
    const MODELS: &[&str] = &["assistant", "ai", "response", "model", "bot", "助手", "助理", "答"];
    let speakers = || {
        text.lines().filter_map(|line| {
            let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
            line.split_once([':', '：']).map(|(speaker, _)| speaker.trim_end_matches(['*', '"', '>']))
        })
    };
    speakers().any(|speaker| USERS.contains(&speaker)) && speakers().any(|speaker| MODELS.contains(&speaker))
}

#[cfg(test)]
mod tests {
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
}
