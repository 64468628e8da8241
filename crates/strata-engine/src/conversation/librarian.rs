//! The replies of memory itself, without a model: the memories it has learned, and the items it knows about a
//! question.
//!
//! The reply only repeats stored text, in the language of the message. Nothing is invented.

use crate::jobs::{Event, InferredEvent};
use crate::line::{Days, is_chinese, item_line};
use crate::recall::{RecalledItem, newer_side_first};
use jiff::Timestamp;
use std::collections::HashSet;
use strata_core::memory::Memory;
use strata_core::store::Item;
use strata_core::turn::{Role, Turn};
use strata_language::content::has_content;
use strata_language::rules::is_question;
use strata_language::text::analyse;

/// The most items that a reply shows: as many as fit on a screen beside the question.
const MAX_SHOWN: usize = 5;

/// The relevance from which an item answers also without a word of the question. In small stores, answers have 0.6 to 0.9, and the
/// nearest items to what nothing answers up to 0.6.
const SURE: f32 = 0.7;

/// The share of the best relevance from which an item without a word of the question is shown beside the best one. A model can use a
/// weak part of an answer; a person takes it for noise.
const BESIDE_BEST: f32 = 0.75;

/// The reply, and the items that it shows. `last` is the turn before the message.
pub(super) fn reply(
    message: &str,
    learned: &[InferredEvent],
    recalled: Vec<RecalledItem>,
    last: Option<Turn>,
    now: Timestamp,
) -> (String, Vec<RecalledItem>) {
    let is_chinese = is_chinese(std::iter::once(message));
    let words = if is_chinese { &CHINESE } else { &ENGLISH };
    let mut lines = said_to(learned, words);
    if !is_question(message) {
        if lines.is_empty() {
            lines.push(words.noted.to_owned());
        }
        return (lines.join("\n"), Vec::new());
    }
    let (head, shown) = answer(message, recalled, last, words);
    lines.push(head.to_owned());
    let days = Days::Relative { now, is_chinese };
    lines.extend(shown.iter().map(|found| {
        let content = found.shortened.as_deref().unwrap_or_else(|| found.item.content());
        format!("• {}", item_line(&found.item, content.trim(), days))
    }));
    (lines.join("\n"), shown)
}

/// The words before the items, and the items that answer a question.
fn answer(
    message: &str,
    recalled: Vec<RecalledItem>,
    last: Option<Turn>,
    words: &Words,
) -> (&'static str, Vec<RecalledItem>) {
    let shown = worth_showing(message, recalled);
    if shown.is_empty() {
        let said: Vec<RecalledItem> = last.and_then(just_said).into_iter().collect();
        return (if said.is_empty() { words.nothing } else { words.unsure }, said);
    }
    // For a question about the session itself, recall may return recent turns, with a relevance of 0.
    let fits = shown.iter().any(|found| found.relevance > 0.0);
    let head = match fits {
        false => words.recent,
        true if is_sure(message, &shown) => words.remembered,
        true => words.nearest,
    };
    (head, shown)
}

/// Whether one of the items surely is about a question: it is very relevant, or has a word of the question.
fn is_sure(question: &str, shown: &[RecalledItem]) -> bool {
    let asked = terms(question);
    shown.iter().any(|found| found.relevance >= SURE || shares_word(&asked, found))
}

fn shares_word(asked: &HashSet<String>, found: &RecalledItem) -> bool {
    !asked.is_disjoint(&terms(found.item.content()))
}

/// The user's statement right before a question, which often belongs to it although no word and no meaning that recall knows
/// connects them.
fn just_said(turn: Turn) -> Option<RecalledItem> {
    let says = turn.role == Role::User && has_content(&turn.content) && !is_question(&turn.content);
    says.then_some(RecalledItem { item: Item::Turn(turn), shortened: None, score: 0.0, relevance: 0.0 })
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

/// The items to show: no bare questions, and no turn whose answer a shown memory repeats.
fn worth_showing(question: &str, recalled: Vec<RecalledItem>) -> Vec<RecalledItem> {
    let memories: Vec<Memory> = recalled
        .iter()
        .filter_map(|found| match &found.item {
            Item::Memory(memory) => Some(memory.clone()),
            Item::Turn(_) | Item::Summary(_) => None,
        })
        .collect();
    let asked = terms(question);
    let is_told = |turn: &Turn| {
        let learned = memories.iter().filter(|memory| memory.source_turns.contains(&turn.id));
        learned.into_iter().any(|memory| tells_as_much(&asked, &turn.content, &memory.content))
    };
    let is_new = |found: &RecalledItem| match &found.item {
        Item::Turn(turn) => turn.role != Role::System && has_content(&turn.content) && !is_told(turn),
        Item::Memory(_) | Item::Summary(_) => true,
    };
    let mut shown: Vec<RecalledItem> = recalled.into_iter().filter(is_new).collect();
    // A person wants the best first. Recall's own order also cares for diversity, which serves a model.
    shown.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
    let least = BESIDE_BEST * shown.first().map_or(0.0, |best| best.relevance);
    shown.retain(|found| found.relevance >= least || shares_word(&asked, found));
    newer_side_first(&mut shown);
    shown.truncate(MAX_SHOWN);
    shown
}

/// A memory repeats a turn if it has at least this share of the turn's terms. The rest is «the user», a date or a filler.
const NEARLY_ALL: f32 = 0.8;

/// Whether a memory tells as much as the turn it was learned from: nearly all that the turn says, or everything in it that
/// the question asks for. A turn with several facts of which only one became a memory is not told by it.
fn tells_as_much(asked: &HashSet<String>, turn: &str, memory: &str) -> bool {
    let (turn, memory) = (terms(turn), terms(memory));
    let told = turn.intersection(&memory).count();
    let mut matched = asked.intersection(&turn).peekable();
    told as f32 >= NEARLY_ALL * turn.len() as f32
        || (matched.peek().is_some() && matched.all(|term| memory.contains(term)))
}

fn terms(text: &str) -> HashSet<String> {
    analyse(text).into_iter().collect()
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
    unsure: &'static str,
    nearest: &'static str,
}

const ENGLISH: Words = Words {
    learned: "Learned: ",
    changed: "Changed: ",
    ended: "No longer so: ",
    known: "I knew that: ",
    before: "before: ",
    noted: "Noted, word for word. Ask me about it whenever you like.",
    remembered: "This is what I remember:",
    recent: "This is what was said last:",
    nothing: "I don't know. I remember nothing about that yet.",
    unsure: "I am not sure. You have just said this:",
    nearest: "I am not sure. This is the nearest that I remember:",
};

const CHINESE: Words = Words {
    learned: "记住了：",
    changed: "更新了：",
    ended: "不再成立：",
    known: "我已经知道：",
    before: "原来是：",
    noted: "已经一字不差地记下了，随时可以问我。",
    remembered: "我记得这些：",
    recent: "最近说过这些：",
    nothing: "我不知道。关于这个，我还没有任何记忆。",
    unsure: "我不确定。你刚才说过：",
    nearest: "我不确定。最接近的记忆是：",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::tests::fixture::{World, contents};
    use strata_core::store::conformance::fixture;

    #[tokio::test]
    async fn recent_turns_that_stand_in_are_told_as_such() {
        let world = World::new();
        world.say("s", "The kettle is broken.").await;
        let recalled = world.recall(&crate::recall::RecallRequest::new("What did I just say?")).await;
        assert_eq!(contents(&recalled), ["The kettle is broken."]);
        for (question, head) in
            [("What did I just say?", ENGLISH.recent), ("我刚才说了什么？", CHINESE.recent)]
        {
            let (text, shown) = reply(question, &[], recalled.items.clone(), None, Timestamp::UNIX_EPOCH);
            assert!(text.starts_with(&format!("{head}\n• [")), "{text}");
            assert!(text.ends_with("] The kettle is broken."), "{text}");
            assert_eq!(shown.len(), 1);
        }
        assert_eq!(reply("qqqq?", &[], Vec::new(), None, Timestamp::UNIX_EPOCH).0, ENGLISH.nothing);
    }

    #[test]
    fn what_only_resembles_a_question_is_no_answer() {
        let found = |text: &str, relevance: f32| {
            let turn = fixture::turn(text).at(fixture::session("s"), 0);
            RecalledItem { item: Item::Turn(turn), shortened: None, score: relevance, relevance }
        };
        let ask = |question: &str, recalled: Vec<RecalledItem>| {
            let (text, shown) = reply(question, &[], recalled, None, Timestamp::UNIX_EPOCH);
            (text.lines().next().unwrap_or_default().to_owned(), shown.len())
        };
        let question = "Where do I live?";
        let far = [found("I work at the quarry.", 0.6), found("My dog is called Moss.", 0.37)];
        assert_eq!(ask(question, far.to_vec()), (ENGLISH.nearest.to_owned(), 1));
        let beside =
            [found("I live in Ghent.", 0.86), found("I keep bees.", 0.39), found("Ana lives in Porto.", 0.4)];
        assert_eq!(
            ask(question, beside.to_vec()),
            (ENGLISH.remembered.to_owned(), 2),
            "one has a word of it"
        );
        assert_eq!(ask(question, vec![found("My flat is in Ghent.", 0.8)]).0, ENGLISH.remembered);
        assert_eq!(ask("我住在哪里？", vec![found("I work at the quarry.", 0.5)]).0, CHINESE.nearest);
    }

    #[test]
    fn a_statement_right_before_a_question_is_shown() {
        let turn = |text: &str| Some(fixture::turn(text).at(fixture::session("s"), 0));
        let ask = |last: Option<Turn>| reply("Why do I limp?", &[], Vec::new(), last, Timestamp::UNIX_EPOCH);
        let (text, shown) = ask(turn("I sprained my ankle on the stairs."));
        assert!(
            text.starts_with(ENGLISH.unsure) && text.ends_with("I sprained my ankle on the stairs."),
            "{text}"
        );
        assert_eq!(shown.len(), 1);
        for last in [None, turn("Is the kettle broken?"), turn("Thanks!")] {
            assert_eq!(ask(last).0, ENGLISH.nothing, "neither a question nor thanks is an answer");
        }
    }
}
