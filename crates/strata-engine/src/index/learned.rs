//! Which memories were learned from which turns, and what took their places: how a turn is known to be out of date.
//!
//! Segments do not hold it. It comes with each memory that is fed; of those that came from segments it is read once, and
//! only where some memory was ever closed ([`Learned::is_missing`]).

use hashbrown::HashMap;

use super::document::Document;
use super::user::UserIndex;
use strata_core::id::{ItemId, MemoryId, TurnId};
use strata_core::memory::Memory;

/// How many memories may have followed each other: nobody moves house more often.
const LONGEST_CHAIN: usize = 64;

/// Memories by the turns that they were learned from.
#[derive(Default)]
pub(crate) struct Learned {
    by_turn: HashMap<TurnId, Vec<MemoryId>>,
    /// What took a memory's place, of all that are known.
    replaced_by: HashMap<MemoryId, Option<MemoryId>>,
    /// Whether there are memories whose turns are not known.
    unread: bool,
    /// Whether some memory is closed.
    closed: bool,
}

impl Learned {
    /// Takes in a memory that is new or has changed.
    pub(super) fn note(&mut self, memory: &Memory) {
        self.closed |= memory.valid_to.is_some();
        self.replaced_by.insert(memory.id, memory.replaced_by);
        for turn in &memory.source_turns {
            let learned = self.by_turn.entry(*turn).or_default();
            if !learned.contains(&memory.id) {
                learned.push(memory.id);
            }
        }
    }

    /// An item was given a place, by whatever way.
    pub(super) fn placed(&mut self, document: &Document) {
        if let ItemId::Memory(id) = document.id {
            self.closed |= document.valid_to != i64::MAX;
            self.unread |= !self.replaced_by.contains_key(&id);
        }
    }

    /// Whether anything was learned from a turn.
    pub(crate) fn knows(&self, turn: TurnId) -> bool {
        self.by_turn.contains_key(&turn)
    }

    /// Whether memories must be read before [`UserIndex::replacements`] is asked.
    pub(crate) fn is_missing(&self) -> bool {
        self.unread && self.closed
    }

    /// Takes in all memories. What is known already is newer than what was read.
    pub(super) fn complete(&mut self, memories: &[Memory]) {
        for memory in memories {
            if !self.replaced_by.contains_key(&memory.id) {
                self.note(memory);
            }
        }
        self.unread = false;
    }

    pub(super) fn bytes(&self) -> usize {
        self.by_turn.capacity() * 64 + self.replaced_by.capacity() * 34
    }
}

impl UserIndex {
    /// Looks for closed memories in what was loaded.
    pub(super) fn look_for_closed(&mut self) {
        let is_closed = |document: &Document| {
            matches!(document.id, ItemId::Memory(_)) && document.valid_to != i64::MAX && !document.superseded
        };
        self.learned.closed |= self.learned.unread && self.documents.iter().any(is_closed);
    }

    /// The memories that took the places of all that was learned from a turn, as things stood at `as_of` or now: none where
    /// anything learned from it still holds, or nothing ever was.
    pub(crate) fn replacements(&self, turn: TurnId, as_of: Option<i64>) -> Vec<MemoryId> {
        let Some(learned) = self.learned.by_turn.get(&turn) else { return Vec::new() };
        let mut current = Vec::new();
        for memory in learned {
            match self.memory(*memory) {
                Some(document) if document.visible(as_of) => return Vec::new(),
                // What was taken out of recall says nothing about what holds.
                Some(document) if !document.is_hidden(as_of) => {
                    let last = self.follow(*memory, as_of).filter(|last| !learned.contains(last));
                    current.extend(last.filter(|last| !current.contains(last)));
                }
                _ => {}
            }
        }
        current
    }

    /// The memory that holds now where `memory` once did.
    fn follow(&self, memory: MemoryId, as_of: Option<i64>) -> Option<MemoryId> {
        let mut at = memory;
        for _ in 0..LONGEST_CHAIN {
            at = (*self.learned.replaced_by.get(&at)?)?;
            if self.memory(at).is_some_and(|document| document.visible(as_of)) {
                return Some(at);
            }
        }
        None
    }

    fn memory(&self, memory: MemoryId) -> Option<&Document> {
        self.doc(&ItemId::Memory(memory)).map(|doc| &self.documents[doc as usize])
    }
}
