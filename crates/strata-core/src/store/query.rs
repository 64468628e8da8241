//! The queries of the store, as values.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{ItemId, JobId, KeyId, MemoryId, RequestId, SessionId, TurnId, UserId};
use crate::job::JobStatus;
use crate::memory::{Memory, MemoryKind};
use crate::summary::{Strategy, Summary, SummaryStatus};
use crate::turn::Turn;
use crate::vector::ItemVector;

/// A part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// The number of entries to skip.
    pub offset: u64,
    /// The maximum number of entries.
    pub limit: u32,
}

impl Page {
    /// The first `limit` entries.
    pub fn first(limit: u32) -> Self {
        Self { offset: 0, limit }
    }
}

/// Selects turns.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnQuery {
    /// A range of one session.
    Range {
        /// The session.
        session: SessionId,
        /// Only turns with a greater `seq`.
        after: Option<u64>,
        /// The maximum number of turns.
        limit: u32,
    },
    /// The hidden turns of a range of one session, by `seq`.
    Hidden {
        /// The session.
        session: SessionId,
        /// Only turns with a greater `seq`.
        after: Option<u64>,
        /// The maximum number of turns.
        limit: u32,
    },
    /// The turns with these ids.
    Ids(Vec<TurnId>),
    /// The newest turns.
    Recent {
        /// Only turns of this session; `None` selects all of the user's sessions.
        session: Option<SessionId>,
        /// Only turns that were said no later than this.
        as_of: Option<Timestamp>,
        /// The maximum number of turns.
        limit: u32,
    },
}

/// Selects memories.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryQuery {
    /// The main criterion.
    pub select: MemorySelect,
    /// Only memories bound to this session.
    pub session: Option<SessionId>,
    /// Only memories of this agent.
    pub agent: Option<String>,
    /// Only memories of this kind.
    pub kind: Option<MemoryKind>,
    /// Which part of the list.
    pub page: Page,
}

impl MemoryQuery {
    /// All memories that `select` selects.
    pub fn new(select: MemorySelect) -> Self {
        Self { select, session: None, agent: None, kind: None, page: Page::first(u32::MAX) }
    }
}

/// The main criterion of a [`MemoryQuery`].
#[derive(Debug, Clone, PartialEq)]
pub enum MemorySelect {
    /// The memories that are believed now, or were at a moment.
    Current {
        /// The moment; `None` means now.
        as_of: Option<Timestamp>,
    },
    /// All memories, also closed and hidden ones, newest `recorded_at` first.
    All,
    /// The hidden memories, newest `recorded_at` first. Few users have many, so this is cheaper than `All`.
    Hidden,
    /// The memories with these ids.
    Ids(Vec<MemoryId>),
    /// A memory with all that it replaced and all that replaced it.
    History(MemoryId),
}

/// Selects summaries of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryQuery {
    /// The session.
    pub session: SessionId,
    /// Only summaries of this strategy.
    pub strategy: Option<Strategy>,
    /// Only those in this state.
    pub status: Option<SummaryStatus>,
    /// The maximum number of summaries.
    pub limit: u32,
}

/// A full-text question.
#[derive(Debug, Clone, PartialEq)]
pub struct TextQuery {
    /// The question as it was asked; the store analyses it in the same way as the indexed text.
    pub text: String,
    /// How to match.
    pub matching: TextMatch,
    /// Only items of this session (and memories bound to none).
    pub session: Option<SessionId>,
    /// Which kinds of items.
    pub kinds: ItemKinds,
    /// Only items that could be seen at this moment; `None` means now.
    pub as_of: Option<Timestamp>,
    /// The maximum number of items.
    pub limit: u32,
}

/// How a text question matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TextMatch {
    /// Shared terms, ranked by BM25.
    Words,
    /// Substrings and misspellings.
    Similar {
        /// The least trigram similarity, from 0 to 1.
        min_similarity: f32,
    },
}

/// Which kinds of items a search returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemKinds {
    /// Turns.
    pub turns: bool,
    /// Memories.
    pub memories: bool,
    /// Summaries: of each session the newest of its window and the root of its tree. A store's own text index has none
    /// of them.
    #[serde(default)]
    pub summaries: bool,
}

impl ItemKinds {
    /// Turns and memories: all that people said and all that was learned from it.
    pub const ALL: Self = Self { turns: true, memories: true, summaries: false };
    /// Memories alone.
    pub const MEMORIES: Self = Self { turns: false, memories: true, summaries: false };
    /// Summaries alone.
    pub const SUMMARIES: Self = Self { turns: false, memories: false, summaries: true };
}

/// A vector, and when it was stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVector {
    /// The value of [`Head::vectors`](super::Head) at that time.
    pub revision: u64,
    /// The vector.
    pub vector: ItemVector,
}

/// One found item.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The item.
    pub item: Item,
    /// Its score.
    pub score: f32,
}

/// Anything that recall can return.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A turn.
    Turn(Turn),
    /// A memory.
    Memory(Memory),
    /// A summary.
    Summary(Summary),
}

impl Item {
    /// Its id.
    pub fn id(&self) -> ItemId {
        match self {
            Self::Turn(turn) => ItemId::Turn(turn.id),
            Self::Memory(memory) => ItemId::Memory(memory.id),
            Self::Summary(summary) => ItemId::Summary(summary.id),
        }
    }

    /// Its text.
    pub fn content(&self) -> &str {
        match self {
            Self::Turn(turn) => &turn.content,
            Self::Memory(memory) => &memory.content,
            Self::Summary(summary) => &summary.text,
        }
    }

    /// The time at which it was said, learned or made.
    pub fn created_at(&self) -> Timestamp {
        match self {
            Self::Turn(turn) => turn.created_at,
            Self::Memory(memory) => memory.recorded_at,
            Self::Summary(summary) => summary.created_at,
        }
    }

    /// The session it belongs to.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Turn(turn) => Some(&turn.session),
            Self::Memory(memory) => memory.session.as_ref(),
            Self::Summary(summary) => Some(&summary.session),
        }
    }
}

/// Selects jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobQuery {
    /// Only the job with this id.
    pub id: Option<JobId>,
    /// Only those in this state.
    pub status: Option<JobStatus>,
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// The maximum number of jobs.
    pub limit: u32,
}

/// Selects request rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MetricQuery {
    /// Only the row with this id.
    pub id: Option<RequestId>,
    /// Only those since this moment.
    pub since: Option<Timestamp>,
    /// The maximum number of rows.
    pub limit: u32,
}

/// Selects API keys.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyQuery {
    /// Only the key with this id.
    pub id: Option<KeyId>,
    /// Only those of this user.
    pub user: Option<UserId>,
    /// Whether to include revoked keys.
    pub revoked: bool,
    /// Which part of the list.
    pub page: Page,
}

impl KeyQuery {
    /// All keys that are not revoked.
    pub fn unrevoked(page: Page) -> Self {
        Self { id: None, user: None, revoked: false, page }
    }
}
