//! Which memories were learned from which turns, and which memories replaced them. This tells whether a turn is
//! outdated.
//!
//! Segments do not store this. It comes with each memory from the feed. For memories from segments it is read once, and
//! only if some memory is closed ([`LearnedFrom::is_missing`]).

use hashbrown::HashMap;

use super::document::Document;
use super::user::UserIndex;
use strata_core::id::{ItemId, MemoryId, TurnId};
use strata_core::memory::Memory;

/// The maximum length of a chain of replacements. The limit also ends cycles.
const LONGEST_CHAIN: usize = 64;

/// Memories by the turns from which they were learned.
#[derive(Default)]
pub(crate) struct LearnedFrom {
    by_turn: HashMap<TurnId, Vec<MemoryId>>,
    /// The replacement of each known memory.
    replaced_by: HashMap<MemoryId, Option<MemoryId>>,
    /// Whether the source turns of some memories are not known.
    unread: bool,
    /// Whether some memory is closed.
    closed: bool,
}

impl LearnedFrom {
    /// Records a new or changed memory.
    pub(super) fn note(&mut self, memory: &Memory) {
        self.closed |= memory.valid_to.is_some();
        let is_known = self.replaced_by.insert(memory.id, memory.replaced_by).is_some();
        if is_known && memory.source_turns.is_empty() {
            self.part_from_turns(memory.id);
        }
        for turn in &memory.source_turns {
            let learned = self.by_turn.entry(*turn).or_default();
            if !learned.contains(&memory.id) {
                learned.push(memory.id);
            }
        }
    }

    /// Records that no turn says a memory any more: its statement was corrected, and its former one stands for the turns.
    fn part_from_turns(&mut self, memory: MemoryId) {
        self.by_turn.values_mut().for_each(|learned| learned.retain(|other| *other != memory));
    }

    /// Records that an item was added to the index, from a segment or from the feed.
    pub(super) fn placed(&mut self, document: &Document) {
        if let ItemId::Memory(id) = document.id {
            self.closed |= document.valid_to != i64::MAX;
            self.unread |= !self.replaced_by.contains_key(&id);
        }
    }

    /// Whether any memory was learned from a turn.
    pub(crate) fn knows(&self, turn: TurnId) -> bool {
        self.by_turn.contains_key(&turn)
    }

    /// Whether memories must be read before [`UserIndex::replacements`] is called.
    pub(crate) fn is_missing(&self) -> bool {
        self.unread && self.closed
    }

    /// Records all memories. A memory that is known already is newer than the given one.
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
    /// Checks whether the loaded items include a closed memory.
    pub(super) fn find_closed(&mut self) {
        let is_closed = |document: &Document| {
            matches!(document.id, ItemId::Memory(_)) && document.valid_to != i64::MAX && !document.superseded
        };
        self.learned.closed |= self.learned.unread && self.documents.iter().any(is_closed);
    }

    /// The memories that replaced everything learned from a turn, now or at the time `as_of`. Empty if something
    /// learned from it is still current, or if nothing was learned from it.
    pub(crate) fn replacements(&self, turn: TurnId, as_of: Option<i64>) -> Vec<MemoryId> {
        let Some(learned) = self.learned.by_turn.get(&turn) else { return Vec::new() };
        let mut current = Vec::new();
        for memory in learned {
            match self.memory(*memory) {
                Some(document) if document.visible(as_of) => return Vec::new(),
                // A hidden memory does not tell which memory is current.
                Some(document) if !document.is_hidden(as_of) => {
                    let last = self.follow(*memory, as_of).filter(|last| !learned.contains(last));
                    current.extend(last.filter(|last| !current.contains(last)));
                }
                _ => {}
            }
        }
        current
    }

    /// The current memory at the end of the chain of replacements.
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
