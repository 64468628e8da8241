//! The words in which memories were said. A reader compares them better than their form in the third person.

use std::collections::HashMap;

use super::Learning;
use crate::prompt::strip_injected;
use strata_core::error::Result;
use strata_core::id::{TurnId, UserId};
use strata_core::memory::Memory;
use strata_core::store::TurnQuery;
use strata_core::turn::Turn;
use strata_language::statements::{chinese_clauses, facts, pieces, third_person, without_reply};

impl Learning {
    /// The sentence behind each memory, found again in its first turn; the memory's own text if there is none.
    pub(super) async fn as_said(&self, user: &UserId, memories: &[Memory]) -> Result<Vec<String>> {
        let mut ids: Vec<TurnId> =
            memories.iter().filter_map(|memory| memory.source_turns.first().copied()).collect();
        ids.sort_unstable();
        ids.dedup();
        let turns =
            if ids.is_empty() { Vec::new() } else { self.store.turns(user, &TurnQuery::Ids(ids)).await? };
        let turns: HashMap<TurnId, &Turn> = turns.iter().map(|turn| (turn.id, turn)).collect();
        let said = |memory: &Memory| {
            let turn = memory.source_turns.first().and_then(|turn| turns.get(turn));
            turn.and_then(|turn| sentence_of(memory, turn)).unwrap_or_else(|| memory.content.clone())
        };
        Ok(memories.iter().map(said).collect())
    }
}

/// The sentence, clause, fact or pair of sentences of a turn that became a memory.
fn sentence_of(memory: &Memory, turn: &Turn) -> Option<String> {
    let text = strip_injected(&turn.content);
    let content = without_reply(&memory.content);
    let is_it = |said: &String| third_person(said, turn.name.as_deref(), turn.created_at) == content;
    let sentences: Vec<String> = pieces(&text).into_iter().map(|piece| piece.text).collect();
    let clauses: Vec<String> = sentences.iter().flat_map(|sentence| chinese_clauses(sentence)).collect();
    let pairs: Vec<String> = sentences.windows(2).map(|pair| pair.join(" ")).collect();
    let whole = text.trim().to_owned();
    let texts: Vec<String> = sentences.into_iter().chain(clauses).chain(pairs).chain([whole]).collect();
    let facts = texts.iter().flat_map(|text| facts(text)).collect::<Vec<_>>();
    texts.into_iter().chain(facts).find(is_it)
}
