//! Statements that a person has taken back: deleted memories, and the turns that were deleted or replaced by an edit.
//!
//! A summary outlives what it was made from. So each new version leaves these statements out: sentences that carry one
//! are removed from the texts that it is made from and from the result, and a model is told what to leave out.
//!
//! A sentence carries a statement if it holds nearly all of the statement's content words, in English or Chinese. It may
//! say more, because a statement is usually a part of the sentence that said it. A sentence that says something else
//! that still holds stays.

use std::borrow::Cow;
use std::ops::Range;

use crate::prompt::with_entries;
use strata_core::error::Result;
use strata_core::id::{SessionId, UserId};
use strata_core::memory::Memory;
use strata_core::store::{MemoryQuery, MemorySelect, Page, Store, TurnQuery};
use strata_core::turn::{HiddenReason, Turn};
use strata_language::sentences::ends;
use strata_language::statements::content_terms;

/// The most memories that are read, the newest first. A user seldom has more.
const MAX_MEMORIES: u32 = 2_000;

/// The most turns of a session that are searched for deleted ones, the last before the end.
const MAX_TURNS: u64 = 500;

/// The share of a statement's content words that a sentence has to hold. A paraphrase changes about one word in five.
const CARRIED: f32 = 0.8;

/// The most statements that a model is told to leave out.
const MAX_NAMED: usize = 12;

/// The statements that a person has taken back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Withdrawn {
    memories: Vec<TakenBack>,
    /// The statements that still hold: current memories.
    held: Vec<Vec<String>>,
    sentences: Vec<TakenBack>,
    /// The sentences of the other turns, which are still said.
    said: Vec<Vec<String>>,
}

#[derive(Debug, Clone)]
struct TakenBack {
    text: String,
    terms: Vec<String>,
}

impl TakenBack {
    fn new(text: &str) -> Option<Self> {
        let terms = content_terms(text);
        (!terms.is_empty()).then(|| Self { text: text.trim().to_owned(), terms })
    }
}

impl Withdrawn {
    /// Reads a user's deleted memories, and the deleted turns of a session in a range.
    pub(crate) async fn read(
        store: &dyn Store,
        user: &UserId,
        session: &SessionId,
        turns: Range<u64>,
    ) -> Result<Self> {
        let select = |select| MemoryQuery { page: Page::first(MAX_MEMORIES), ..MemoryQuery::new(select) };
        // Most users have taken nothing back. Then nothing else is read.
        let mut memories = store.memories(user, &select(MemorySelect::Hidden)).await?;
        memories.retain(|memory| memory.hidden.is_some_and(|hidden| hidden.reason == HiddenReason::Deleted));
        let first = turns.start.max(turns.end.saturating_sub(MAX_TURNS));
        let limit = u32::try_from(turns.end.saturating_sub(first)).unwrap_or(u32::MAX);
        let (session, after) = (session.clone(), first.checked_sub(1));
        let hidden = TurnQuery::Hidden { session: session.clone(), after, limit };
        let mut said = if limit == 0 { Vec::new() } else { store.turns(user, &hidden).await? };
        said.retain(|turn| turn.seq < turns.end && is_taken_back(turn));
        if memories.is_empty() && said.is_empty() {
            return Ok(Self::default());
        }
        memories.extend(store.memories(user, &select(MemorySelect::Current { as_of: None })).await?);
        if !said.is_empty() {
            said = store.turns(user, &TurnQuery::Range { session, after, limit }).await?;
        }
        Ok(Self::new(&memories, &said))
    }

    fn new(memories: &[Memory], turns: &[Turn]) -> Self {
        let is_deleted =
            |memory: &&Memory| memory.hidden.is_some_and(|hidden| hidden.reason == HiddenReason::Deleted);
        let deleted = memories.iter().filter(is_deleted);
        let deleted: Vec<_> = deleted.filter_map(|memory| TakenBack::new(&memory.content)).collect();
        let gone: Vec<_> = turns
            .iter()
            .filter(|turn| is_taken_back(turn))
            .flat_map(|turn| sentences(&turn.content))
            .filter_map(TakenBack::new)
            .collect();
        let mut withdrawn = Self { memories: deleted, sentences: gone, ..Self::default() };
        if withdrawn.is_empty() {
            return withdrawn;
        }
        let current = memories.iter().filter(|memory| memory.is_current());
        withdrawn.held = current.map(|memory| content_terms(&memory.content)).collect();
        let held = &withdrawn.held;
        withdrawn.memories.retain(|deleted| !held.contains(&deleted.terms));
        if !withdrawn.sentences.is_empty() {
            let visible = turns.iter().filter(|turn| turn.is_in_conversation());
            withdrawn.said = visible.flat_map(|turn| sentences(&turn.content)).map(content_terms).collect();
        }
        withdrawn
    }

    /// Whether nothing was taken back.
    pub(crate) fn is_empty(&self) -> bool {
        self.memories.is_empty() && self.sentences.is_empty()
    }

    /// Whether a sentence says something that was taken back.
    pub(crate) fn is_said_by(&self, sentence: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let terms = content_terms(sentence);
        let shared = |of: &[String]| of.iter().filter(|term| terms.contains(term)).count();
        let carried = |of: &[String]| {
            let shared = shared(of);
            (!of.is_empty() && shared as f32 >= CARRIED * of.len() as f32).then_some(shared)
        };
        let most = |lists: &[Vec<String>]| lists.iter().filter_map(|of| carried(of)).max().unwrap_or(0);
        let longest = |statements: &[TakenBack]| {
            statements.iter().filter_map(|statement| carried(&statement.terms)).max()
        };
        // Another statement that the sentence holds, and of which it holds more, is what it is about.
        longest(&self.memories).is_some_and(|shared| shared >= most(&self.held))
            || longest(&self.sentences).is_some_and(|shared| shared > most(&self.said))
    }

    /// Whether a name or a phrase is a part of something that was taken back.
    pub(crate) fn mentions(&self, phrase: &str) -> bool {
        let terms = content_terms(phrase);
        let holds = |statement: &TakenBack| terms.iter().all(|term| statement.terms.contains(term));
        !terms.is_empty() && self.memories.iter().chain(&self.sentences).any(holds)
    }

    /// A text without the sentences that say something that was taken back.
    pub(crate) fn removed_from<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_empty() || !sentences(text).any(|sentence| self.is_said_by(sentence)) {
            return Cow::Borrowed(text);
        }
        let kept: String = pieces(text).filter(|piece| !self.is_said_by(piece)).collect();
        Cow::Owned(kept.trim().to_owned())
    }

    /// A summary without the sentences that say something that was taken back. Its entries keep their labels.
    pub(crate) fn removed_from_summary(&self, summary: &str) -> String {
        if self.is_empty() {
            summary.to_owned()
        } else {
            with_entries(summary, |text| self.removed_from(text))
        }
    }

    /// The statements that these texts say, for a model that has to leave them out.
    pub(crate) fn named_in<'a>(&'a self, texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        if self.is_empty() {
            return Vec::new();
        }
        let said: Vec<Vec<String>> = texts.flat_map(sentences).map(content_terms).collect();
        // A paraphrase may hold fewer of the words. Naming a statement that is not there costs a few tokens only.
        let is_near = |statement: &&TakenBack| {
            let least = statement.terms.len().div_ceil(3);
            said.iter()
                .any(|terms| statement.terms.iter().filter(|term| terms.contains(term)).count() >= least)
        };
        let all = self.memories.iter().chain(&self.sentences);
        all.filter(is_near).map(|statement| statement.text.as_str()).take(MAX_NAMED).collect()
    }
}

fn is_taken_back(turn: &Turn) -> bool {
    turn.hidden.is_some_and(|hidden| matches!(hidden.reason, HiddenReason::Deleted | HiddenReason::Abandoned))
}

/// The sentences of a text with the space after them.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut start = 0;
    let ends = ends(text).chain([text.len()]);
    ends.filter_map(move |end| {
        let piece = text.get(start..end).filter(|piece| !piece.is_empty());
        start = start.max(end);
        piece
    })
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).map(str::trim).filter(|sentence| !sentence.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use strata_core::store::conformance::fixture::{at, deleted, memory, session, turn};
    use strata_core::turn::Hidden;

    fn of_memories(gone: &[&str], current: &[&str]) -> Withdrawn {
        let gone = gone.iter().map(|text| Memory { hidden: deleted(1), ..memory(text) });
        let memories: Vec<Memory> = gone.chain(current.iter().map(|text| memory(text))).collect();
        Withdrawn::new(&memories, &[])
    }

    fn of_turns(gone: &str, reason: HiddenReason, visible: &str) -> Withdrawn {
        let mut hidden = turn(gone).at(session("s"), 0);
        hidden.hidden = Some(Hidden { reason, at: at(1) });
        Withdrawn::new(&[], &[hidden, turn(visible).at(session("s"), 1)])
    }

    #[test]
    fn sentences_that_carry_a_deleted_memory_go() {
        let check = |memory: &str, text: &str, expected: &str| {
            assert_eq!(of_memories(&[memory], &[]).removed_from(text), expected, "{memory}");
        };
        let text = "I keep bees. My sister Ines works at the lighthouse in Aveiro. Honey sells well.";
        check(
            "The user's sister Ines works at the lighthouse in Aveiro",
            text,
            "I keep bees. Honey sells well.",
        );
        let told = "The user keeps bees. Ines, a sister, has a job at the lighthouse of Aveiro.";
        check("The user's sister Ines works at the lighthouse in Aveiro", told, "The user keeps bees.");
        check("用户的妹妹在灯塔工作", "我养蜜蜂。我妹妹在灯塔工作。蜂蜜卖得好。", "我养蜜蜂。蜂蜜卖得好。");
        check("用戶對花生過敏", "用户养蜂；他对花生过敏。喜欢爬山。", "用户养蜂；喜欢爬山。");
        check(
            "The user is allergic to peanuts",
            "Nothing about it.\nStill nothing.",
            "Nothing about it.\nStill nothing.",
        );
        check("The user has 14 hives", "There are 15 hives.", "There are 15 hives.");
    }

    #[test]
    fn what_still_holds_stays() {
        let withdrawn = of_memories(&["The user lives in Aveiro"], &["Ines lives in Aveiro"]);
        assert!(withdrawn.is_said_by("I live in Aveiro now"));
        assert!(!withdrawn.is_said_by("Ines lives in Aveiro too"));
        let again = of_memories(&["The user lives in Aveiro"], &["The user lives in Aveiro"]);
        assert!(again.is_empty(), "it was said again");
    }

    #[test]
    fn sentences_of_deleted_and_replaced_turns_go() {
        for reason in [HiddenReason::Deleted, HiddenReason::Abandoned] {
            let withdrawn = of_turns("The gate code is 4471. Thanks!", reason, "The gate was painted green.");
            let summary = "User: The gate code is 4471. The gate was painted green.";
            assert_eq!(withdrawn.removed_from(summary), "The gate was painted green.");
        }
        for reason in [HiddenReason::Evicted, HiddenReason::Error] {
            assert!(of_turns("The gate code is 4471.", reason, "").is_empty());
        }
        let both = of_turns("The gate code is 4471.", HiddenReason::Deleted, "The gate code is 4471.");
        assert!(!both.is_said_by("The gate code is 4471."), "another turn still says it");
    }

    #[test]
    fn only_statements_that_a_text_may_say_are_named() {
        let withdrawn = of_memories(&["The user enjoys fencing", "用户养了两只山羊"], &[]);
        assert_eq!(withdrawn.named_in(["She likes fencing."].into_iter()), ["The user enjoys fencing"]);
        assert_eq!(withdrawn.named_in(["家里有山羊。"].into_iter()), ["用户养了两只山羊"]);
        assert!(withdrawn.named_in(["The roof leaks."].into_iter()).is_empty());
    }
}
