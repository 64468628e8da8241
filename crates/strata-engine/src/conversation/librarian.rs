//! The replies of memory itself, without a model: the memories it has learned, and the items it knows about a
//! question.
//!
//! The reply only repeats stored text, in the language of the message. Nothing is invented.

use crate::jobs::{Event, InferredEvent};
use crate::learn::extractive::is_chinese;
use crate::recall::RecalledItem;
use strata_core::store::Item;
use strata_core::turn::Role;
use strata_language::rules::is_question;

/// The most items that a reply shows: as many as fit on a screen beside the question.
const MAX_SHOWN: usize = 5;

/// The reply, and the items that it shows.
pub(super) fn reply(
    message: &str,
    learned: &[InferredEvent],
    recalled: Vec<RecalledItem>,
) -> (String, Vec<RecalledItem>) {
    let words = if is_chinese(std::iter::once(message)) { &CHINESE } else { &ENGLISH };
    let mut lines = said_to(learned, words);
    if !is_question(message) {
        if lines.is_empty() {
            lines.push(words.noted.to_owned());
        }
        return (lines.join("\n"), Vec::new());
    }
    let shown = worth_showing(recalled);
    // If nothing matches, recall returns recent turns, with a relevance of 0.
    let fits = shown.iter().any(|found| found.relevance > 0.0);
    let head = match (shown.is_empty(), fits) {
        (true, _) => words.nothing,
        (false, true) => words.remembered,
        (false, false) => words.recent,
    };
    lines.push(head.to_owned());
    lines.extend(shown.iter().map(|found| {
        let day = found.item.created_at().strftime("%Y-%m-%d");
        let content = found.shortened.as_deref().unwrap_or_else(|| found.item.content());
        format!("• {} ({day})", content.trim())
    }));
    (lines.join("\n"), shown)
}

/// The changes of memory that the message has caused, one line each.
fn said_to(learned: &[InferredEvent], words: &Words) -> Vec<String> {
    learned
        .iter()
        .map(|InferredEvent { memory, event, previous, .. }| {
            let head = match event {
                Event::Add => words.learned,
                Event::Update => words.changed,
                Event::Delete => words.ended,
                Event::None => words.known,
            };
            match previous {
                Some(previous) => format!("{head}{memory} ({}{previous})", words.before),
                None => format!("{head}{memory}"),
            }
        })
        .collect()
}

/// The items to show: no earlier questions, and no turn that a shown memory was learned from.
fn worth_showing(recalled: Vec<RecalledItem>) -> Vec<RecalledItem> {
    let mut told: Vec<_> = Vec::new();
    for found in &recalled {
        if let Item::Memory(memory) = &found.item {
            told.extend_from_slice(&memory.source_turns);
        }
    }
    let is_new = |found: &RecalledItem| match &found.item {
        Item::Turn(turn) => {
            turn.role != Role::System && !is_question(&turn.content) && !told.contains(&turn.id)
        }
        Item::Memory(_) | Item::Summary(_) => true,
    };
    let mut shown: Vec<RecalledItem> = recalled.into_iter().filter(is_new).collect();
    // A person wants the best first. Recall's own order also cares for diversity, which serves a model.
    shown.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
    shown.truncate(MAX_SHOWN);
    shown
}

/// The wording of a language.
struct Words {
    learned: &'static str,
    changed: &'static str,
    ended: &'static str,
    known: &'static str,
    before: &'static str,
    noted: &'static str,
    remembered: &'static str,
    recent: &'static str,
    nothing: &'static str,
}

const ENGLISH: Words = Words {
    learned: "Learned: ",
    changed: "Changed: ",
    ended: "No longer so: ",
    known: "I knew that: ",
    before: "before: ",
    noted: "Noted, word for word. Ask me about it whenever you like.",
    remembered: "This is what I remember:",
    recent: "I am not sure. This is what was said last:",
    nothing: "I remember nothing about that yet.",
};

const CHINESE: Words = Words {
    learned: "记住了：",
    changed: "更新了：",
    ended: "不再成立：",
    known: "我已经知道：",
    before: "原来是：",
    noted: "已经一字不差地记下了，随时可以问我。",
    remembered: "我记得这些：",
    recent: "我不确定。最近说过这些：",
    nothing: "关于这个，我还没有任何记忆。",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::tests::fixture::{World, contents};

    #[tokio::test]
    async fn recent_turns_that_stand_in_are_told_as_such() {
        let world = World::new();
        world.say("s", "The kettle is broken.").await;
        let recalled = world.recall(&crate::recall::RecallRequest::new("qqqq?")).await;
        assert_eq!(contents(&recalled), ["The kettle is broken."]);
        for (question, head) in [("qqqq?", ENGLISH.recent), ("锅呢？", CHINESE.recent)] {
            let (text, shown) = reply(question, &[], recalled.items.clone());
            assert!(text.starts_with(&format!("{head}\n• The kettle is broken. (")), "{text}");
            assert_eq!(shown.len(), 1);
        }
        assert_eq!(reply("qqqq?", &[], Vec::new()).0, ENGLISH.nothing);
    }
}
