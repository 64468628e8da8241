//! Cues in a message about the memory that it needs: phrases that point at an earlier conversation or at the current
//! session, requests that need nothing of a user's own, and questions for everything of one kind.
//!
//! Courtesies, which need no memory either, are in [`crate::content`].

mod beside;
mod general;
mod listing;
mod session;

pub use beside::asked_beside_task;
pub use general::{is_bare_task, is_general_request};
pub use listing::{Listed, listed};
pub use session::points_at_session;

/// English phrases that point at an earlier conversation, in lower case.
const ENGLISH_CUES: [&str; 22] = [
    "last time",
    "before",
    "earlier",
    "previously",
    "remember when",
    "do you remember",
    "you remember",
    "as i said",
    "i told you",
    "i mentioned",
    "we talked",
    "we discussed",
    "we spoke",
    "other day",
    "another session",
    "another chat",
    "previous conversation",
    "previous chat",
    "last session",
    "in the past",
    "a while ago",
    "back then",
];

/// The Chinese phrases, simplified and traditional.
const CHINESE_CUES: [&str; 19] = [
    "之前", "以前", "上次", "上回", "先前", "曾经", "曾經", "过去", "過去", "记得", "記得", "说过", "說過",
    "提过", "提過", "聊过", "聊過", "那次", "从前",
];

/// The first phrase in a question that points at an earlier conversation.
pub fn cue(question: &str) -> Option<&'static str> {
    let lower = question.to_lowercase();
    let word_at = |cue: &str| {
        lower.match_indices(cue).any(|(at, _)| {
            let before = lower[..at].chars().next_back();
            let after = lower[at + cue.len()..].chars().next();
            !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
        })
    };
    ENGLISH_CUES
        .into_iter()
        .find(|cue| word_at(cue))
        .or_else(|| CHINESE_CUES.into_iter().find(|cue| question.contains(cue)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cue_is_a_phrase_of_its_own() {
        let check =
            |question: &str, expected: Option<&str>| assert_eq!(cue(question), expected, "{question}");
        check("What did I say last time?", Some("last time"));
        check("你之前说喜欢什么？", Some("之前"));
        check("上次我們去哪裡吃飯", Some("上次"));
        check("Have we met BEFORE?", Some("before"));
        check("beforehand", None);
        check("What is the capital of France?", None);
        check("今天天气怎么样", None);
    }
}
