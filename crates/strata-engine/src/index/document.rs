//! An item in the index: numbers only, so that a scan over ten thousand items is fast.

use super::features::{speaker, term_hash};
use strata_core::id::ItemId;
use strata_core::store::{Item, ItemKinds};
use strata_core::summary::Strategy;

/// The position of an item in the index.
pub(crate) type Doc = u32;

/// No position: for instance, a missing neighbour.
pub(crate) const NO_DOC: Doc = Doc::MAX;

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ItemKind {
    Turn = 0,
    Memory = 1,
    Summary = 2,
}

impl ItemKind {
    pub(crate) fn from_u8(number: u8) -> Option<Self> {
        [Self::Turn, Self::Memory, Self::Summary].into_iter().find(|kind| *kind as u8 == number)
    }
}

/// An item of this many words counts half: 1 / (1 + words / 100).
const HALF_LENGTH: f32 = 100.0;

/// The data of an item that scoring reads for every word of a question. It is separate from [`Document`] so that more
/// items fit into the processor's first-level cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Placement {
    /// The turns directly before and after it in its session, if they are at most an hour apart.
    pub(crate) previous: Doc,
    pub(crate) next: Doc,
    /// The weight of an item of this length.
    pub(crate) length_norm: f32,
}

impl Placement {
    pub(crate) fn new(word_count: u32) -> Self {
        let length_norm = 1.0 / (1.0 + word_count as f32 / HALF_LENGTH);
        Self { previous: NO_DOC, next: NO_DOC, length_norm }
    }
}

/// The kind of an item that recall can see now; empty for other items. It is a byte of its own, because every question
/// checks it for every item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Marks(u8);

impl Marks {
    fn of_kind(kind: ItemKind) -> Self {
        Self(1 << kind as u8)
    }

    pub(crate) fn of_kinds(kinds: ItemKinds) -> Self {
        let turns = if kinds.turns { Self::of_kind(ItemKind::Turn).0 } else { 0 };
        let memories = if kinds.memories { Self::of_kind(ItemKind::Memory).0 } else { 0 };
        let summaries = if kinds.summaries { Self::of_kind(ItemKind::Summary).0 } else { 0 };
        Self(turns | memories | summaries)
    }

    pub(crate) fn of(document: &Document) -> Self {
        if document.visible(None) { Self::of_kind(document.kind()) } else { Self::default() }
    }

    /// Whether the two sets of marks overlap.
    #[inline]
    pub(crate) fn is_one_of(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

/// An item without its text. Times are microseconds since the epoch; `i64::MAX` means «never».
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Document {
    pub(crate) id: ItemId,
    /// The session's number in the index; `u32::MAX` for none.
    pub(crate) session: u32,
    /// A turn's place in its session, or the last turn that a summary covers.
    pub(crate) seq: u32,
    pub(crate) created_at: i64,
    pub(crate) recorded_at: i64,
    pub(crate) valid_to: i64,
    pub(crate) hidden_at: i64,
    /// The hash of the speaker's name or role; 0 for memories. For a summary, which of its session's summaries it is.
    pub(crate) speaker: u32,
    /// Whether an encoder that knows no Chinese can read it.
    pub(crate) latin: bool,
    /// The number of its words, including repetitions.
    pub(crate) word_count: u32,
    /// Whether a newer version of the item has replaced it in the index.
    pub(crate) superseded: bool,
}

impl Document {
    pub(crate) fn new(id: ItemId) -> Self {
        Self {
            id,
            session: u32::MAX,
            seq: 0,
            created_at: 0,
            recorded_at: 0,
            valid_to: i64::MAX,
            hidden_at: i64::MAX,
            speaker: 0,
            latin: true,
            word_count: 0,
            superseded: false,
        }
    }

    pub(crate) fn of(item: &Item) -> Self {
        let created_at = item.created_at().as_microsecond();
        let document = Self { created_at, recorded_at: created_at, ..Self::new(item.id()) };
        match item {
            Item::Turn(turn) => Self {
                seq: u32::try_from(turn.seq).unwrap_or(u32::MAX),
                hidden_at: turn.hidden.map_or(i64::MAX, |hidden| hidden.at.as_microsecond()),
                speaker: term_hash(speaker(turn)),
                ..document
            },
            Item::Memory(memory) => Self {
                valid_to: memory.valid_to.map_or(i64::MAX, |end| end.as_microsecond()),
                hidden_at: memory.hidden.map_or(i64::MAX, |hidden| hidden.at.as_microsecond()),
                ..document
            },
            Item::Summary(summary) => Self {
                seq: u32::try_from(summary.end_seq).unwrap_or(u32::MAX),
                speaker: u32::from(summary.strategy == Strategy::Tree),
                ..document
            },
        }
    }

    pub(crate) fn kind(&self) -> ItemKind {
        match self.id {
            ItemId::Turn(_) => ItemKind::Turn,
            ItemId::Memory(_) => ItemKind::Memory,
            ItemId::Summary(_) => ItemKind::Summary,
        }
    }

    /// Whether recall may see it, now or at the time `as_of`.
    pub(crate) fn visible(&self, as_of: Option<i64>) -> bool {
        if self.superseded {
            return false;
        }
        match as_of {
            None => self.hidden_at == i64::MAX && self.valid_to == i64::MAX,
            Some(moment) => self.created_at <= moment && self.hidden_at > moment && self.valid_to > moment,
        }
    }

    /// Whether it is hidden, now or at the time `as_of`.
    pub(crate) fn is_hidden(&self, as_of: Option<i64>) -> bool {
        self.hidden_at <= as_of.unwrap_or(i64::MAX - 1)
    }

    pub(crate) fn is_one_of(&self, kinds: ItemKinds) -> bool {
        match self.kind() {
            ItemKind::Turn => kinds.turns,
            ItemKind::Memory => kinds.memories,
            ItemKind::Summary => kinds.summaries,
        }
    }
}
