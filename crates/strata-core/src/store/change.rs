//! What can be written, as values.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{JobId, KeyId, LeaseId, MemoryId, SessionId, TurnId};
use crate::job::{Job, JobOutcome};
use crate::key::ApiKey;
use crate::memory::{Memory, MemoryNotes};
use crate::metric::RequestMetric;
use crate::state::State;
use crate::summary::Summary;
use crate::turn::{Hidden, Metadata, NewTurn};
use crate::vector::ItemVector;

/// Changes that happen together or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeSet {
    /// When they happen.
    pub at: Timestamp,
    /// Makes a repeated call harmless.
    pub idempotency: Option<Idempotency>,
    /// What happens, in order.
    pub changes: Vec<Change>,
}

impl ChangeSet {
    /// Changes at `at`, without an idempotency key.
    pub fn new(at: Timestamp, changes: Vec<Change>) -> Self {
        Self { at, idempotency: None, changes }
    }

    /// One change at `at`.
    pub fn one(at: Timestamp, change: Change) -> Self {
        Self::new(at, vec![change])
    }
}

/// A client's key for one write, and what was written under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The client's key.
    pub key: String,
    /// A digest of the request: the same key with another digest is a mistake of the client's.
    pub fingerprint: u64,
}

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Appends turns to a session, which is created if it does not exist.
    AppendTurns {
        /// The session.
        session: SessionId,
        /// The turns, in order.
        turns: Vec<NewTurn>,
    },
    /// Takes turns out of recall, or with `None` brings them back.
    HideTurns {
        /// The turns.
        ids: Vec<TurnId>,
        /// Why and since when.
        hidden: Option<Hidden>,
    },
    /// Replaces a session's state; the session is created if it does not exist.
    PutState {
        /// The session.
        session: SessionId,
        /// The new state.
        state: Box<State>,
    },
    /// Goes on only while a session still has so many turns and this state, an unknown session having none and the default:
    /// otherwise a conflict that may be tried again. What was worked out from a session travels with this and never
    /// overwrites what another worked out meanwhile.
    ExpectSession {
        /// The session.
        session: SessionId,
        /// The turns that it had.
        turn_count: u64,
        /// The state that was read.
        state: Box<State>,
    },
    /// Inserts a summary, or moves one with the same id on.
    PutSummary(Box<Summary>),
    /// Adds a memory.
    AddMemory(Box<Memory>),
    /// Gives a memory a new statement under the same id, and notes when its first statement was recorded. The former
    /// statement stays as a closed memory named `archive_as`, replaced by this one, and keeps its sources: the turns did
    /// not say the new statement, unless it is the same.
    ReviseMemory {
        /// The memory.
        id: MemoryId,
        /// The id under which the old statement stays readable.
        archive_as: MemoryId,
        /// The new statement.
        content: String,
        /// New metadata; `None` keeps the old.
        metadata: Option<Metadata>,
    },
    /// Ends a memory's validity.
    CloseMemory {
        /// The memory.
        id: MemoryId,
        /// Until when it was so.
        valid_to: Timestamp,
        /// What took its place.
        replaced_by: Option<MemoryId>,
    },
    /// Sets those of a memory's notes that are given; the other notes and everything else stay.
    NoteMemory {
        /// The memory.
        id: MemoryId,
        /// The notes.
        notes: MemoryNotes,
    },
    /// Says that these turns say the same as a memory that came from turns: they join its sources, as
    /// [`Memory::confirm`] does.
    ConfirmMemory {
        /// The memory.
        id: MemoryId,
        /// The turns.
        turns: Vec<TurnId>,
    },
    /// Goes on only while no memory of the user was added or changed after a revision, and nothing was destroyed since an
    /// epoch: otherwise a conflict that may be tried again. What was worked out from the memories travels with this and comes
    /// before what changes them.
    ExpectMemories {
        /// The user's revision before the memories were read.
        revision: u64,
        /// The user's epoch then.
        epoch: u64,
    },
    /// Takes a memory out of recall, or with `None` brings it back.
    HideMemory {
        /// The memory.
        id: MemoryId,
        /// Why and since when.
        hidden: Option<Hidden>,
    },
    /// Stores vectors, each replacing the item's former vector of the same model. Items that no longer exist are passed
    /// over: embedding runs behind and may meet what was forgotten meanwhile.
    PutVectors(Vec<ItemVector>),
    /// Stores a segment and moves the progress of its space on. One that does not begin right after that progress is a
    /// conflict: somebody else was faster. So is one that was made in another epoch: it may hold what was destroyed since.
    PutSegment {
        /// The segment.
        segment: Segment,
        /// The user's epoch when what it was made from was read.
        epoch: u64,
    },
    /// Puts one segment in the place of the segments that cover just its revisions, two or more of them, and leaves the
    /// progress of its space where it is. Where there are no such segments it is a conflict: somebody else was faster. So
    /// is one that was made in another epoch.
    MergeSegments {
        /// What they are together.
        segment: Segment,
        /// The user's epoch when they were read.
        epoch: u64,
    },
    /// Removes all segments of a space that nobody reads any more, and its progress.
    DropSegments {
        /// The space.
        space: String,
    },
    /// Says up to which revision a space has been worked through.
    SetProgress {
        /// The space: a model's name, or that of another derived thing.
        space: String,
        /// Up to which revision.
        revision: u64,
    },
    /// Goes on only while a space has been worked through up to exactly this revision: otherwise a conflict that may be
    /// tried again, because somebody else was faster.
    ExpectProgress {
        /// The space.
        space: String,
        /// Up to which revision it has to be.
        revision: u64,
    },
    /// Asks for background work.
    EnqueueJob(Box<Job>),
    /// Asks for background work unless a job of the same kind already waits for the same session. That one is brought forward
    /// if this one would be due earlier, but not if it waits because it failed.
    EnqueueOnce(Box<Job>),
    /// Says what became of a leased job.
    FinishJob {
        /// The job.
        id: JobId,
        /// The hold under which it was worked on.
        lease: LeaseId,
        /// What became of it.
        outcome: JobOutcome,
    },
    /// Sends a dead job back into the queue with its attempts at zero.
    RetryJob {
        /// The job.
        id: JobId,
    },
    /// Removes jobs that were finished before this moment.
    PruneJobs {
        /// Jobs done before this moment go.
        before: Timestamp,
    },
    /// Appends a request's row.
    AddRequest(Box<RequestMetric>),
    /// Removes request rows older than this.
    PruneRequests {
        /// Rows created before this moment go.
        before: Timestamp,
    },
    /// Removes answers that are kept under idempotency keys, so that these may be used anew.
    PruneIdempotency {
        /// Answers kept before this moment go.
        before: Timestamp,
    },
    /// Adds an API key.
    AddKey(Box<ApiKey>),
    /// Takes an API key back, from the moment of the change set on; one that was taken back before keeps that moment.
    RevokeKey {
        /// The key.
        id: KeyId,
    },
    /// Destroys.
    Forget(Forget),
}

/// Something derived from a range of a user's revisions, as bytes that only its maker reads. Destroying anything of the
/// user destroys all segments, because nobody else can say what is in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// What it is, and of which version.
    pub space: String,
    /// The first revision it covers.
    pub first: u64,
    /// The last revision it covers.
    pub last: u64,
    /// The content.
    pub bytes: Vec<u8>,
}

/// How large a stored segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentSize {
    /// The first revision it covers.
    pub first: u64,
    /// The last revision it covers.
    pub last: u64,
    /// The bytes of its content.
    pub bytes: u64,
}

/// What is destroyed, with everything derived from it alone: vectors, index entries, files.
#[derive(Debug, Clone, PartialEq)]
pub enum Forget {
    /// A session with its turns, state, summaries, jobs, the memories bound to it, the memories that only its turns say, and
    /// the progress of its own spaces ([`session_space`]).
    Session(SessionId),
    /// A memory, with the former statements that it replaced.
    Memory(MemoryId),
    /// All of the user's memories; turns stay.
    Memories,
    /// Everything of the user, API keys included.
    User,
}

/// What a session may have progress of its own in.
pub const SESSION_PURPOSES: [&str; 5] = ["learn", "summarise", "evict", "prune", "left"];

/// The name of a session's own space of progress, which goes when the session is forgotten. `purpose` is one of
/// [`SESSION_PURPOSES`].
pub fn session_space(purpose: &str, session: &SessionId) -> String {
    format!("session:{purpose}:{session}")
}

/// What [`apply`](super::Store::apply) did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The appended turns with their places, in the order given.
    pub turns: Vec<AppendedTurn>,
    /// What was destroyed.
    #[serde(default)]
    pub removed: Removed,
    /// Whether this is the answer of an earlier call with the same idempotency key.
    #[serde(default)]
    pub replayed: bool,
}

/// A turn's id and place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendedTurn {
    /// Its id.
    pub id: TurnId,
    /// Its place in the session.
    pub seq: u64,
}

/// How much was destroyed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// Sessions.
    pub sessions: u64,
    /// Turns.
    pub turns: u64,
    /// Memories, former statements included.
    pub memories: u64,
    /// Summaries.
    pub summaries: u64,
}
