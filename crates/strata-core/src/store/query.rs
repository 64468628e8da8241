//! The queries of the store, as values.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{ItemId, JobId, KeyId, MemoryId, RequestId, SessionId, TurnId, UserId};
use crate::job::JobStatus;
use crate::memory::{Memory, MemoryKind};
use crate::summary::{Strategy, Summary, SummaryPart, SummaryStatus};
use crate::turn::Turn;
use crate::vector::{ItemVector, Vector};

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
        /// Only turns that pass this test, among the newest [`MOST_TESTED`].
        keep: Option<Keep>,
        /// The maximum number of turns.
        limit: u32,
    },
}

impl TurnQuery {
    /// The newest turns of a session, or of all sessions.
    pub fn recent(session: Option<SessionId>, limit: u32) -> Self {
        Self::Recent { session, as_of: None, keep: None, limit }
    }
}

/// The most items that a search or a read of recent turns gives to its [`Keep`]. A test that accepts almost nothing would
/// otherwise have all items read.
pub const MOST_TESTED: u32 = 10_000;

/// A test for the items of a query. A store gives it each item as soon as the item is read and drops the ones that fail, so
/// that a query over many large items needs little memory.
#[derive(Clone)]
pub struct Keep(Arc<dyn Fn(ItemRef<'_>) -> bool + Send + Sync>);

impl Keep {
    /// Keeps the items for which `test` is true.
    pub fn new(test: impl Fn(ItemRef<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(test))
    }

    /// Whether an item passes the test.
    pub fn keeps(&self, item: ItemRef<'_>) -> bool {
        (self.0)(item)
    }

    /// Whether an item passes the test of a query that may have none.
    pub fn is_kept(keep: Option<&Self>, item: ItemRef<'_>) -> bool {
        keep.is_none_or(|keep| keep.keeps(item))
    }
}

impl fmt::Debug for Keep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Keep")
    }
}

/// Two tests are the same if one is a clone of the other.
impl PartialEq for Keep {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A turn or a memory that a [`Keep`] tests.
#[derive(Debug, Clone, Copy)]
pub enum ItemRef<'a> {
    /// A turn.
    Turn(&'a Turn),
    /// A memory.
    Memory(&'a Memory),
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
    /// Only memories that pass this test.
    pub keep: Option<Keep>,
    /// Which part of the list.
    pub page: Page,
}

impl MemoryQuery {
    /// All memories that `select` selects.
    pub fn new(select: MemorySelect) -> Self {
        Self { select, session: None, agent: None, kind: None, keep: None, page: Page::first(u32::MAX) }
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

/// Selects the current summaries of a user's sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartQuery {
    /// Only summaries that have entries in this part.
    pub part: SummaryPart,
    /// Which part of the list.
    pub page: Page,
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
    /// Only items that pass this test, among the best [`MOST_TESTED`].
    pub keep: Option<Keep>,
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

/// A search by a vector.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorQuery {
    /// The model that made the vector; only vectors of the same model are compared.
    pub model: String,
    /// The vector of the question.
    pub vector: Vector,
    /// Only items of this session (and memories bound to none).
    pub session: Option<SessionId>,
    /// Which kinds of items; summaries are never found.
    pub kinds: ItemKinds,
    /// Only items that could be seen at this moment; `None` means now.
    pub as_of: Option<Timestamp>,
    /// The maximum number of items.
    pub limit: u32,
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

    /// The item for a [`Keep`]; `None` for a summary.
    pub fn tested(&self) -> Option<ItemRef<'_>> {
        match self {
            Self::Turn(turn) => Some(ItemRef::Turn(turn)),
            Self::Memory(memory) => Some(ItemRef::Memory(memory)),
            Self::Summary(_) => None,
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
