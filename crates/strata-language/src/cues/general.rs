//! Whether a message is a general request: a task for the model that refers to nothing of the user's own.

use crate::text::fold;

/// Verbs of tasks that need no knowledge of the user. Recommending, planning and choosing do, so they are not listed.
const TASKS: &str = "write translate explain define describe summarise summarize convert generate create calculate compute solve \
    implement debug refactor optimise optimize list compare draft rewrite rephrase paraphrase proofread format \
    draw compose classify extract parse simplify shorten expand count prove simulate sketch outline invent \
    brainstorm spell pronounce render teach";

/// Beginnings with more than one word.
const BEGINNINGS: &[&str] = &[
    "how to ",
    "how do i ",
    "how do you ",
    "how can i ",
    "how would i ",
    "how does one ",
    "how should i ",
    "give me a ",
    "give me an ",
    "give me some ",
    "show me a ",
    "show me how ",
    "tell me a ",
    "make a ",
];

/// Politeness before a request.
const POLITE: &str = "please pls hi hello hey ok okay now so then thanks can could would will you kindly just quickly help me to";

/// Words that refer to the user, to people in the conversation, or to habits.
const OWN: &str = "i im ive my mine myself we our ours us he him his she her hers they them their usual usually always \
    favourite favorite mum mom dad remember again last earlier previous yesterday tonight tomorrow today";

/// Words before a name of a person or thing that the user may have spoken about.
const BEFORE_NAMES: &str = "for to about with from of";

/// Names that are the same for everyone: languages of people and of computers.
const COMMON_NAMES: &str = "english chinese mandarin cantonese french german spanish italian portuguese japanese korean russian arabic \
    hindi dutch latin greek turkish polish swedish python rust java javascript typescript go c ruby kotlin \
    swift sql html css json yaml csv markdown pdf linux windows";

/// Chinese requests, and the words before them.
const CHINESE_POLITE: &[&str] = &[
    "请",
    "麻烦",
    "你能不能",
    "你能",
    "能不能",
    "可以",
    "可不可以",
    "你可以",
    "能",
    "帮我",
    "帮忙",
    "帮",
    "给我",
    "替我",
    "你好",
    "您好",
    "，",
    ",",
    "你",
    "用python",
    "用",
];
const CHINESE_TASKS: &[&str] = &[
    "写",
    "翻译",
    "解释",
    "说明一下",
    "总结",
    "概括",
    "生成",
    "列出",
    "计算",
    "算一下",
    "算",
    "实现",
    "画",
    "编写",
    "编一",
    "创建",
    "设计一",
    "改写",
    "润色",
    "介绍一下",
    "介绍",
    "定义",
    "描述",
    "比较",
    "转换",
    "把这",
    "将这",
    "讲一个",
    "讲个",
    "证明",
    "求解",
    "教我",
    "如何",
    "怎么用",
];
const CHINESE_OWN: &[&str] = &[
    "我",
    "咱",
    "他",
    "她",
    "上次",
    "昨天",
    "今天",
    "明天",
    "之前",
    "以前",
    "刚才",
    "记得",
    "平时",
    "常用",
    "老样子",
    "妈妈",
    "爸爸",
    "老婆",
    "老公",
    "同事",
    "朋友",
    "女儿",
];

/// Words that point at one certain thing, which the user may have spoken about, after the verb of a task and before names:
/// «explain the rules of the house». What a message brings along itself is no such thing.
const DEFINITE: &str = "the that those";
const BROUGHT_ALONG: &[&str] =
    &["the following", "the text", "the sentence", "the paragraph", "the word", "that follows"];
const CHINESE_DEFINITE: &[&str] = &["那", "家里", "公司里"];

/// Whether a message is nothing but a task for the model: a general request ([`is_general_request`]) that begins with a
/// verb of a task and points at no certain thing. Nothing that the user has said helps with it, whatever words they share.
pub fn is_bare_task(message: &str) -> bool {
    if !is_general_request(message) {
        return false;
    }
    let first = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let mut folded = fold(first);
    if is_chinese_request(&folded) {
        return !CHINESE_DEFINITE.iter().any(|definite| folded.contains(definite));
    }
    for brought in BROUGHT_ALONG {
        folded = folded.replace(brought, "");
    }
    let words = words(&folded);
    let Some(verb) = words.iter().position(|word| !has_word(POLITE, word)) else { return false };
    let is_task = has_word(TASKS, words[verb]) || folded.contains("give me a");
    let points = |at: usize| at == verb || has_word(BEFORE_NAMES, words[at]);
    let is_definite =
        |at: usize| points(at) && words.get(at + 1).is_some_and(|word| has_word(DEFINITE, word));
    is_task && !(verb..words.len()).any(is_definite)
}

/// Whether a message asks for a task that refers to nothing of the user's own: «write a function that sorts a list»,
/// 帮我写一个快速排序. Such a message needs memory only if something in it matches strongly.
pub fn is_general_request(message: &str) -> bool {
    if super::cue(message).is_some() || super::points_at_session(message) {
        return false;
    }
    let first: String = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
    let folded = fold(&first);
    is_chinese_request(&folded) || (is_english_request(&folded) && !names_someone(&first))
}

/// Whether a sentence gives the model a task, whatever it refers to.
pub(super) fn is_task(sentence: &str) -> bool {
    let folded = fold(sentence);
    chinese_task(&folded).is_some() || english_task(&folded).is_some()
}

/// Whether a sentence refers to something that the user may have spoken about.
pub(super) fn refers_to_own(sentence: &str) -> bool {
    let folded = fold(sentence);
    words(&folded).iter().any(|word| has_word(OWN, word))
        || CHINESE_OWN.iter().any(|own| folded.contains(own))
        || names_someone(sentence)
}

fn is_english_request(folded: &str) -> bool {
    english_task(folded).is_some_and(|rest| !rest.split(' ').any(|word| has_word(OWN, word)))
}

/// What an English task is about: its words without politeness and beginning.
fn english_task(folded: &str) -> Option<String> {
    let words: Vec<&str> = words(folded);
    let polite = words.iter().take_while(|word| has_word(POLITE, word)).count();
    let said = words[polite..].join(" ");
    let is_task = words.get(polite).is_some_and(|word| has_word(TASKS, word));
    let whole = words.join(" ");
    let begun =
        |text: &str| BEGINNINGS.iter().find(|begin| text.starts_with(**begin)).map(|begin| begin.len());
    let start = begun(&said).map(|length| &said[length..]);
    let start = start.or_else(|| begun(&whole).map(|length| &whole[length..]));
    match (start, is_task) {
        (Some(rest), _) => Some(rest.to_owned()),
        (None, true) => Some(said),
        (None, false) => None,
    }
}

/// Whether a request names a person or thing of the user's: a capital after a preposition, or a possessive.
fn names_someone(request: &str) -> bool {
    let words: Vec<&str> = request.split_whitespace().collect();
    let is_name = |word: &str| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        bare.starts_with(char::is_uppercase) && !has_word(COMMON_NAMES, bare.to_lowercase().as_str())
    };
    let follows = |pair: &[&str]| has_word(BEFORE_NAMES, pair[0].to_lowercase().as_str()) && is_name(pair[1]);
    let owns = |word: &&str| is_name(word) && (word.contains("'s") || word.contains("’s"));
    words.windows(2).any(follows) || words.iter().skip(1).any(owns)
}

fn is_chinese_request(folded: &str) -> bool {
    let Some(rest) = chinese_task(folded) else { return false };
    let rest = rest.replace("给我", "").replace("帮我", "");
    !CHINESE_OWN.iter().any(|own| rest.contains(own))
}

/// What a Chinese task is about: its text without politeness and verb.
fn chinese_task(folded: &str) -> Option<&str> {
    let mut said = folded.trim_start();
    while let Some(polite) =
        CHINESE_POLITE.iter().filter(|polite| said.starts_with(**polite)).max_by_key(|p| p.len())
    {
        said = said[polite.len()..].trim_start();
    }
    CHINESE_TASKS.iter().find_map(|task| said.strip_prefix(task))
}

/// Whether a list, with spaces between its words, has a word.
fn has_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

fn words(folded: &str) -> Vec<&str> {
    folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_task_points_at_no_certain_thing() {
        let yes = [
            "Write a Python function that merges two sorted lists",
            "please translate this sentence into French: the weather is nice",
            "Could you write me a short poem about autumn?",
            "Give me a regex for email addresses",
            "Summarize the following article:\nI went to the shop and bought my bike.",
            "Explain recursion in two sentences",
            "Write a story about winter in the hills",
            "帮我写一个快速排序",
            "请把这段话翻译成英文",
            "讲个笑话",
        ];
        let no = [
            "How do I open the shed?",
            "how to reset the alarm at the cabin",
            "Explain the rules of the allotment",
            "Write about that trip to the lake",
            "Compare the two flats",
            "Write a birthday card for my sister",
            "解释一下家里的暖气怎么开",
            "写一下那次旅行",
            "Where do I live?",
            "",
        ];
        let missed: Vec<_> = yes.iter().filter(|text| !is_bare_task(text)).collect();
        let wrong: Vec<_> = no.iter().filter(|text| is_bare_task(text)).collect();
        assert!(missed.is_empty() && wrong.is_empty(), "missed {missed:?}, wrong {wrong:?}");
    }

    #[test]
    fn a_general_request_refers_to_nothing_of_the_users_own() {
        let yes = [
            "Write a Python function that merges two sorted lists",
            "please translate this sentence into French: the weather is nice",
            "Can you explain how photosynthesis works?",
            "Could you write me a short poem about autumn?",
            "How do I reverse a string in Rust?",
            "how to boil an egg",
            "Give me a regex for email addresses",
            "hey, can you help me debug this code?",
            "Summarize the following article:\nI went to the shop and bought my bike.",
            "tell me a joke",
            "Translate «good evening» to Japanese",
            "Convert 12 miles to kilometres",
            "帮我写一个快速排序",
            "请把这段话翻译成英文",
            "用Python写一个爬虫",
            "解释一下相对论",
            "讲个笑话",
            "翻译：今晚的月色真美",
        ];
        let no = [
            "Write a birthday card for my sister",
            "Write a birthday card for Jonas",
            "Translate Priya's letter",
            "Draft a mail to our landlord",
            "Explain what I told you about the boiler",
            "Summarise our conversation",
            "Write it like last time",
            "List my allergies",
            "How do I get to my dentist?",
            "Recommend a restaurant",
            "Where do I live?",
            "What is the code of the shed?",
            "I moved to Oslo",
            "good morning",
            "Describe her new flat",
            "帮我写一封给我妈妈的信",
            "写一下我上次说的计划",
            "推荐一家餐厅",
            "我住在哪里？",
            "总结一下我们的对话",
            "",
        ];
        let missed: Vec<_> = yes.iter().filter(|text| !is_general_request(text)).collect();
        let wrong: Vec<_> = no.iter().filter(|text| is_general_request(text)).collect();
        assert!(missed.is_empty() && wrong.is_empty(), "missed {missed:?}, wrong {wrong:?}");
    }
}
