//! Messages that hold a task and a question: «Write a haiku about rain. Also, when is my appointment?»
//!
//! The task needs no memory, and its words hide the question's. So memory looks for the question alone.

use super::general::{is_task, refers_to_own};
use super::is_bare_task;
use crate::rules::is_question;
use crate::sentences;

/// Words that join a question to a task. After «translate this:», a question without one of them may be what is to be
/// translated.
const JOINS: &[&str] = &[
    "by the way",
    "one more thing",
    "another thing",
    "additionally",
    "besides",
    "also",
    "and",
    "plus",
    "btw",
    "oh",
    "另外",
    "顺便",
    "还有",
    "对了",
];

/// The endings and words of a task whose text follows.
const BRINGS_ALONG: &[&str] = &["following", "below", "这段", "以下", "下面", "这句"];

/// The parts of a message that memory helps with, if the message also holds a task that needs no memory ([`is_bare_task`]).
/// Empty for any other message: statements of the user's own belong to the question behind them.
pub fn asked_beside_task(message: &str) -> Vec<&str> {
    let mut start = 0;
    let ends = sentences::ends(message).chain([message.len()]);
    let sentences: Vec<&str> =
        ends.map(|end| message[std::mem::replace(&mut start, end)..end].trim()).collect();
    let (tasks, others): (Vec<&str>, Vec<&str>) =
        sentences.into_iter().partition(|sentence| is_bare_task(unjoined(sentence).0));
    let brings_along = tasks.iter().any(|task| brings_along(task));
    let is_wanted = |sentence: &&str| {
        let (said, is_joined) = unjoined(sentence);
        (is_joined || !brings_along) && wants_memory(said)
    };
    let (wanted, rest): (Vec<&str>, Vec<&str>) = others.into_iter().partition(is_wanted);
    if tasks.is_empty() || (!brings_along && rest.iter().any(|sentence| refers_to_own(sentence))) {
        return Vec::new();
    }
    wanted.into_iter().map(|sentence| unjoined(sentence).0).collect()
}

/// Whether a sentence asks for something of the user's own.
fn wants_memory(sentence: &str) -> bool {
    (is_question(sentence) || is_task(sentence)) && refers_to_own(sentence)
}

/// Whether the text of a task follows it.
fn brings_along(task: &str) -> bool {
    let folded = task.to_lowercase();
    folded.contains([':', '：']) || BRINGS_ALONG.iter().any(|word| folded.contains(word))
}

/// A sentence without the words that join it to the one before, and whether there were any.
fn unjoined(sentence: &str) -> (&str, bool) {
    let (mut said, mut is_joined) = (sentence, false);
    while let Some(rest) = JOINS.iter().find_map(|join| without(said, join)) {
        (said, is_joined) = (rest, true);
    }
    (said, is_joined)
}

/// The rest of a sentence after a joining word, which ends at the end of a word.
fn without<'s>(sentence: &'s str, join: &str) -> Option<&'s str> {
    let head = sentence.get(..join.len())?;
    let rest = sentence.get(join.len()..)?;
    let ends = !join.is_ascii() || rest.starts_with(|c: char| !c.is_alphanumeric());
    (head.eq_ignore_ascii_case(join) && ends).then(|| rest.trim_start_matches(|c: char| !c.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_beside_a_task_is_found() {
        for (message, asked) in [
            (
                "Write a haiku about rain. Also, when is my appointment at the optician?",
                &["when is my appointment at the optician?"][..],
            ),
            (
                "When does my ferry leave? And translate «good night» into Danish, please.",
                &["When does my ferry leave?"],
            ),
            (
                "Summarise this article: Bees dance. They do it in the dark. By the way, what is my locker code?",
                &["what is my locker code?"],
            ),
            ("帮我写一首关于秋天的诗。另外，我的体检是什么时候？", &["我的体检是什么时候？"]),
            ("Explain recursion briefly.\nwhere did I park my bike", &["where did I park my bike"]),
        ] {
            assert_eq!(asked_beside_task(message), asked, "{message}");
        }
    }

    #[test]
    fn other_messages_are_left_whole() {
        for message in [
            "When is my appointment at the optician?",
            "Write a haiku about rain.",
            "Translate the following sentence into Welsh: Where is my coat?",
            "Translate this into Welsh:\nWhere is my coat?",
            "My ferry leaves at nine. When should I get up?",
            "Explain recursion. How does a stack work?",
            "I feel tired. Write a poem about sleep. When did I last have a holiday?",
            "请翻译以下句子。我的外套在哪里？",
            "",
        ] {
            assert_eq!(asked_beside_task(message), Vec::<&str>::new(), "{message}");
        }
    }
}
