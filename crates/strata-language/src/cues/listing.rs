//! Questions for everything of one kind: «what is on my to-do list?», «what are my open tasks», 我还有什么没做.
//!
//! Such a question names the kind and nothing else, so no word and no meaning leads to the items. «Which tasks are left for the
//! wedding?» names a thing as well; the ranking finds it.

use crate::rules::is_question;
use crate::text::{fold, simplified};

/// The kind of what a question wants to have listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Tasks to be done.
    Todos,
    /// Plans: tasks and appointments.
    Plans,
    /// Appointments and rhythms.
    Schedule,
    /// Likes and dislikes.
    Preferences,
    /// Standing instructions to the assistant.
    Instructions,
    /// Decisions.
    Decisions,
}

/// The names of a kind. The longer ones of one beginning come first.
type Names = (Listed, &'static [&'static str]);

const ENGLISH: &[Names] = &[
    (
        Listed::Todos,
        &[
            "to do list",
            "to do lists",
            "to do items",
            "to dos",
            "have to do",
            "need to do",
            "left to do",
            "things to do",
            "to do",
            "todo list",
            "todo lists",
            "todo items",
            "todos",
            "todo",
            "task list",
            "tasks",
            "task",
            "chores",
            "action items",
            "unfinished",
            "undone",
        ],
    ),
    (Listed::Plans, &["plans", "plan", "planned", "planning"]),
    (Listed::Schedule, &["appointments", "appointment", "schedule", "calendar", "agenda"]),
    (
        Listed::Preferences,
        &["preferences", "preference", "likes", "dislikes", "like", "dislike", "prefer", "enjoy"],
    ),
    (Listed::Instructions, &["standing instructions", "instructions", "instruction"]),
    (Listed::Decisions, &["decisions", "decision", "decided", "decide"]),
];

/// Words that ask for a list and add no thing to it.
const ENGLISH_FRAME: &str = "what which is are was were s re ve do does did i have has had got my mine our me we us the a an any \
    all on in of to still list show tell give remind please now right currently current open left pending outstanding there \
    remaining know about so far at moment everything anything every thing things item items yet not don haven t made been \
    and or that else";

/// What stands before a request and is addressed to the assistant.
const ADDRESSED: &[&str] =
    &["can you ", "could you ", "would you ", "will you ", "do you know ", "do you remember "];

/// Words that belong to instructions alone: the user gives them to the assistant.
const GIVEN: &str = "you your given gave give told set";

/// Verbs of a request for a list.
const REQUESTS: &str = "list show tell give remind";

const CHINESE: &[Names] = &[
    (
        Listed::Todos,
        &[
            "待办事项",
            "待办清单",
            "待办",
            "任务",
            "没做完",
            "没完成",
            "未完成",
            "没做",
            "没办",
            "没干",
            "需要做",
            "要做",
            "该做",
            "得做",
            "要办",
            "该办",
        ],
    ),
    (Listed::Plans, &["计划", "打算"]),
    (Listed::Schedule, &["日程", "安排", "预约"]),
    (Listed::Preferences, &["不喜欢", "喜欢", "喜好", "偏好", "爱好", "讨厌"]),
    (Listed::Instructions, &["指令", "指示", "要求"]),
    (Listed::Decisions, &["决定"]),
];

/// The Chinese counterpart of [`ENGLISH_FRAME`]. The longer ones of one beginning come first.
const CHINESE_FRAME: &[&str] = &[
    "什么事情",
    "什么事",
    "什么",
    "些什么",
    "哪些",
    "我们",
    "咱们",
    "你知道",
    "你记得",
    "知道",
    "记得",
    "对你",
    "给你",
    "给过你",
    "列出来",
    "列出",
    "列一下",
    "告诉",
    "给我",
    "看看",
    "看一下",
    "一下",
    "一些",
    "现在",
    "目前",
    "当前",
    "没有",
    "所有",
    "全部",
    "剩下",
    "还有",
    "清单",
    "列表",
    "事情",
    "帮我",
    "可以",
    "请",
    "列",
    "我",
    "还",
    "有",
    "啥",
    "吗",
    "呢",
    "吧",
    "了",
    "的",
    "都",
    "是",
    "上",
    "里",
    "做",
    "过",
    "些",
    "能",
    "把",
    "说",
    "事",
    "剩",
];

/// The beginnings of a Chinese request for a list.
const CHINESE_REQUESTS: &[&str] = &["请", "列", "告诉", "给我", "帮我", "看看", "我的"];

/// The kind that a question wants to have listed; `None` for a question about anything in particular.
pub fn listed(question: &str) -> Option<Listed> {
    let folded = simplified(&fold(question));
    if folded.contains(is_han) { chinese(question, &folded) } else { english(question, &folded) }
}

fn english(question: &str, folded: &str) -> Option<Listed> {
    let said = ADDRESSED.iter().fold(folded, |said, start| said.strip_prefix(start).unwrap_or(said));
    let words: Vec<&str> =
        said.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_short = words.first().is_some_and(|first| has(REQUESTS, first) || matches!(*first, "my" | "our"));
    if !(is_question(question) || is_short) {
        return None;
    }
    let said = format!(" {} ", words.join(" "));
    let wants = |(kind, names): &Names| {
        let name = names.iter().find(|name| said.contains(&format!(" {name} ")))?;
        let rest = names.iter().fold(said.replacen(&format!(" {name} "), " ", 1), |rest, name| {
            rest.replace(&format!(" {name} "), " ")
        });
        let frames =
            |word: &str| has(ENGLISH_FRAME, word) || (*kind == Listed::Instructions && has(GIVEN, word));
        rest.split(' ').filter(|word| !word.is_empty()).all(frames).then_some(*kind)
    };
    ENGLISH.iter().find_map(wants)
}

fn chinese(question: &str, folded: &str) -> Option<Listed> {
    let said: String = folded.chars().filter(|c| c.is_alphanumeric()).collect();
    let is_short = CHINESE_REQUESTS.iter().any(|start| said.starts_with(start));
    if !(is_question(question) || is_short || said.contains("什么") || said.contains("哪些")) {
        return None;
    }
    let wants = |(kind, names): &Names| {
        let name = names.iter().find(|name| said.contains(**name))?;
        let (before, behind) = said.split_once(name)?;
        (is_frame(before) && is_frame(behind)).then_some(*kind)
    };
    CHINESE.iter().find_map(wants)
}

/// Whether Chinese words do nothing but ask for a list.
fn is_frame(mut said: &str) -> bool {
    while !said.is_empty() {
        let Some(word) = CHINESE_FRAME.iter().find(|word| said.starts_with(**word)) else { return false };
        said = &said[word.len()..];
    }
    true
}

fn has(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

fn is_han(c: char) -> bool {
    ('\u{3400}'..='\u{9FFF}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_for_a_kind_is_known() {
        for (question, kind) in [
            ("What is on my to-do list?", Listed::Todos),
            ("what are my open tasks", Listed::Todos),
            ("Do I have any todos left?", Listed::Todos),
            ("show me my tasks", Listed::Todos),
            ("What do I still have to do?", Listed::Todos),
            ("Can you list all my pending tasks, please?", Listed::Todos),
            ("What are my plans?", Listed::Plans),
            ("Which appointments do I have?", Listed::Schedule),
            ("What do I like?", Listed::Preferences),
            ("What are my likes and dislikes?", Listed::Preferences),
            ("Which instructions have I given you?", Listed::Instructions),
            ("What have we decided?", Listed::Decisions),
            ("我还有什么没做？", Listed::Todos),
            ("我有哪些待办事项", Listed::Todos),
            ("列出我的任务", Listed::Todos),
            ("我還有什麼任務？", Listed::Todos),
            ("我有什么计划？", Listed::Plans),
            ("我喜欢什么？", Listed::Preferences),
            ("我给过你哪些指示？", Listed::Instructions),
            ("我们决定了什么？", Listed::Decisions),
        ] {
            assert_eq!(listed(question), Some(kind), "{question}");
        }
    }

    #[test]
    fn a_question_about_something_in_particular_lists_nothing() {
        for question in [
            "What do I like to eat in winter?",
            "Which tasks are left for the regatta?",
            "When is my appointment?",
            "What do you like?",
            "What is there to do in Tromsø?",
            "Who decided that?",
            "My plan has changed",
            "I have to do the dishes",
            "What is my job?",
            "where do I live",
            "我喜欢什么茶？",
            "我昨天没做什么？",
            "谁的计划？",
            "我的预约是几点？",
            "我住在哪里？",
            "我有个计划",
            "",
        ] {
            assert_eq!(listed(question), None, "{question}");
        }
    }
}
