//! The words by which a prompt is recognised that a program sends for itself.

pub(super) const LABELS: &[&str] = &[
    "title",
    "titles",
    "headline",
    "tag",
    "tags",
    "emoji",
    "emojis",
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

/// Labels of more than one word.
pub(super) const LONG_LABELS: &[&str] =
    &["image prompt", "image generation", "follow up question", "search quer"];

/// Words for a question that stands without its conversation.
pub(super) const STANDALONE: &[&str] = &["standalone", "stand-alone", "self-contained", "独立"];

pub(super) const REWRITES: &[&str] = &[
    "rephrase",
    "rewrite",
    "reformulate",
    "formulate",
    "condense",
    "rewriting",
    "rephrasing",
    "改写",
    "重写",
    "重述",
    "改述",
];

/// Words for the choice of a tool.
pub(super) const TOOL_CHOICES: &[&str] = &[
    "available tools",
    "list of tools",
    "correct tool",
    "which tool",
    "appropriate tool",
    "可用工具",
    "选择工具",
];

pub(super) const CHINESE_LABELS: &[&str] =
    &["标题", "题目", "主题", "标签", "关键词", "后续问题", "追问", "搜索词", "搜索查询", "检索词", "表情"];

pub(super) const COMPLETIONS: &[&str] =
    &["autocomplet", "auto-complet", "completion system", "自动补全", "自动完成", "续写"];

pub(super) const SUMMARIES: &[&str] = &["summar", "condense", "compact", "总结", "概括", "摘要", "压缩"];

/// Verbs at the beginning of an order.
pub(super) const VERBS: &[&str] = &[
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
    "select",
    "interpret",
    "reflect",
];

/// Orders in the middle of a sentence.
pub(super) const ORDERS: &[&str] = &[
    "task is to",
    "you generate",
    "you will generate",
    "you write",
    "you create",
    "you output",
    " generator",
    "your job is to",
    "tasked with",
    "you need to",
    "you must",
    " that summari",
    " that generates",
    " summarizer",
    " summariser",
];

pub(super) const CHINESE_ORDERS: &[&str] = &[
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
    "选择",
];

pub(super) const CHATS: &[&str] = &[
    "chat history",
    "conversation history",
    "message history",
    "dialogue history",
    "chat log",
    "chat session",
    "chat_history",
    "first message",
    "summarizing conversation",
    "summarising conversation",
    "summarizes conversation",
    "chat title",
    "conversation title",
    "thread title",
    "session title",
    "conversation topic",
    "message exchange",
    "对话",
    "会话",
    "聊天",
    "上文",
    "这句话",
];

/// Words for one message, which count less: the question of every application is one.
pub(super) const MESSAGES: &[&str] =
    &["user's message", "user message", "the message", "the query", "speaker's", "用户消息", "用户的消息"];

/// Words for a conversation, which count after a word that points at one.
pub(super) const TALKS: &[&str] = &[
    "conversation",
    "conversations",
    "chat",
    "dialogue",
    "dialog",
    "discussion",
    "exchange",
    "thread",
    "session",
    "messages",
];

pub(super) const POINTERS: &[&str] = &[
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
pub(super) const OTHER_CHATS: &[&str] = &[
    "bot", "bots", "app", "room", "page", "widget", "window", "feature", "server", "client", "program",
    "model",
];

pub(super) const FORMS: &[&str] = &[
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

pub(super) const ENCLOSURES: &[&str] = &[
    "<chat_history>",
    "<conversation>",
    "<messages>",
    "<transcript>",
    "<history>",
    "<text>",
    "<input>",
    "<context>",
    "message: ```",
    "history:\nuser",
    "follow up input:",
    "follow up message",
    "### chat history",
    "### conversation",
    "chat history:",
    "conversation:",
    "聊天记录：",
    "聊天记录:",
    "对话内容：",
    "对话内容:",
];

pub(super) const PROGRAMS: &[&str] = &[
    "as context",
    "for context",
    "<analysis",
    "analysis tags",
    "state_snapshot",
    "without losing context",
    "losing context",
    "running out of context",
    "resume the",
    "resume its",
    "pick up where",
    "compaction",
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

/// Other models, which are told about a conversation.
pub(super) const OTHER_MODELS: &[&str] = &[
    "another llm",
    "another language model",
    "another assistant",
    "another agent",
    "another model",
    "new instance",
    "另一个模型",
    "新的助手",
];

/// Verbs for talking with the user.
pub(super) const TALKING: &[&str] = &[
    "answer",
    "reply",
    "help",
    "assist",
    "greet",
    "advise",
    "recommend",
    "guide",
    "explain",
    "troubleshoot",
    "resolve",
    "support",
    "teach",
    "welcome",
];

/// Orders to answer, anywhere.
pub(super) const ANSWERS: &[&str] =
    &["answer the", "answer question", "answer user", "answer any", "answer them", "answer their"];

/// Words after such a verb that speak of the form of the answer.
pub(super) const FORM_WORDS: &[&str] = &["only", "with", "in", "as", "strictly", "nothing", "just", "solely"];

pub(super) const CHINESE_TALKING: &[&str] =
    &["礼貌", "客服", "耐心", "解答", "帮助用户", "回答用户", "回答客户", "回答顾客", "回答问题"];

/// Words for what a prompt makes of its reader, if it is a program's prompt.
pub(super) const PLAIN_ROLES: &[&str] = &[
    "assistant",
    "ai",
    "model",
    "system",
    "component",
    "claude",
    "tool",
    "program",
    "chatgpt",
    "gpt",
    "expert",
    "generator",
    "title",
    "tag",
    "summar",
    "autocomplet",
    "completion",
    "rewriter",
    "query",
    "queries",
    "助理",
    "助手",
    "专家",
    "模型",
    "系统",
    "生成",
    "标题",
    "总结",
];

/// The names of chat programs for their tasks in `metadata.task`, before `_generation`.
pub(super) const TASKS: &[&str] = &[
    "title",
    "chat_title",
    "conversation_title",
    "tag",
    "tags",
    "emoji",
    "query",
    "queries",
    "search_query",
    "follow_up",
    "follow_ups",
    "followup",
    "image_prompt",
    "autocomplete",
    "autocompletion",
    "moa_response",
];
