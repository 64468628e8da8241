//! The writes of the store, as values. Start reading at [`ChangeSet`].

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Head;
use crate::error::Error;
use crate::id::{JobId, KeyId, LeaseId, MemoryId, RequestId, SessionId, TurnId};
use crate::job::{Job, JobOutcome};
use crate::key::ApiKey;
use crate::memory::{Memory, MemoryNotes};
use crate::metric::{Feedback, RequestMetric};
use crate::session::Session;
use crate::state::State;
use crate::summary::{Summary, SummaryStatus};
use crate::turn::{Hidden, Metadata, NewTurn};
use crate::vector::ItemVector;

/// Changes that happen together or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeSet {
    /// The time at which the changes happen.
    pub at: Timestamp,
    /// Makes a repeated call harmless.
    pub idempotency: Option<Idempotency>,
    /// The preconditions. All of them are checked before the first change.
    pub expect: Vec<Expectation>,
    /// The changes, applied in this order.
    pub changes: Vec<Change>,
}

impl ChangeSet {
    /// Changes at `at`, without an idempotency key and without preconditions.
    pub fn new(at: Timestamp, changes: Vec<Change>) -> Self {
        Self { at, idempotency: None, expect: Vec::new(), changes }
    }

    /// One change at `at`.
    pub fn one(at: Timestamp, change: Change) -> Self {
        Self::new(at, vec![change])
    }

    /// The same change set with one more precondition.
    #[must_use]
    pub fn expecting(mut self, expectation: Expectation) -> Self {
        self.expect.push(expectation);
        self
    }
}

/// A client's key for one write, with a digest of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The client's key.
    pub key: String,
    /// A digest of the request: the same key with another digest is a mistake of the client.
    pub fingerprint: u64,
}

/// A precondition of a change set: the data that the changes were computed from has not changed.
///
/// The caller names the version of the data that it has read. If another writer was faster, the store applies nothing and
/// answers with [`Expectation::conflict`]; the caller then reads again and repeats its computation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// The session has this [`Session::version`]; 0 means that the session does not exist.
    Session {
        /// The session.
        id: SessionId,
        /// The version that was read.
        version: u64,
    },
    /// No memory of the user was added or changed after a revision, and nothing of the user was destroyed after an epoch.
    Memories {
        /// The user's revision before the memories were read.
        revision: u64,
        /// The user's epoch at that time.
        epoch: u64,
    },
    /// A space has been worked through up to exactly this revision; 0 means that it has not been begun.
    Progress {
        /// The space.
        space: String,
        /// The progress that was read.
        revision: u64,
    },
}

impl Expectation {
    /// The session is still in the version that was read.
    pub fn unchanged(session: &Session) -> Self {
        Self::Session { id: session.id.clone(), version: session.version }
    }

    /// No memory has changed since the user's head was read.
    pub fn memories_since(head: Head) -> Self {
        Self::Memories { revision: head.revision, epoch: head.epoch }
    }

    /// The retryable error of a change set whose expectation does not hold.
    pub fn conflict(&self) -> Error {
        let message = match self {
            Self::Session { id, .. } => {
                format!("session `{id}` has changed since it was read; read it again")
            }
            Self::Memories { .. } => "memories have changed since they were read; read them again".to_owned(),
            Self::Progress { space, revision } => {
                format!("the progress of `{space}` is no longer {revision}; read it again")
            }
        };
        Error::conflict(message).retryable()
    }
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
    /// Inserts a summary, or replaces the one with the same id.
    PutSummary(Box<Summary>),
    /// Adds a memory.
    AddMemory(Box<Memory>),
    /// Gives a memory a new statement under the same id, and notes when its first statement was recorded. The former
    /// statement stays as a closed memory named `archive_as`, replaced by this one, and keeps its source turns. The revised
    /// memory keeps them only if its content is unchanged, because the turns did not say the new content.
    ReviseMemory {
        /// The memory.
        id: MemoryId,
        /// The id under which the former statement stays readable.
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
        /// The end of its validity.
        valid_to: Timestamp,
        /// The memory that replaces it.
        replaced_by: Option<MemoryId>,
    },
    /// Sets those of a memory's notes that are given; the other notes and everything else stay.
    NoteMemory {
        /// The memory.
        id: MemoryId,
        /// The notes.
        notes: MemoryNotes,
    },
    /// Adds turns that state the same as a memory to its sources, as [`Memory::confirm`] does.
    ConfirmMemory {
        /// The memory.
        id: MemoryId,
        /// The turns.
        turns: Vec<TurnId>,
    },
    /// Takes a memory out of recall, or with `None` brings it back.
    HideMemory {
        /// The memory.
        id: MemoryId,
        /// Why and since when.
        hidden: Option<Hidden>,
    },
    /// Stores vectors, each replacing the item's former vector of the same model. Items that do not exist are skipped:
    /// embedding runs in the background, and an item may be forgotten before its vector is ready.
    PutVectors(Vec<ItemVector>),
    /// Stores a segment and sets the progress of its space to the segment's last revision. A segment that does not begin
    /// right after the present progress is a conflict: another worker was faster. A segment that was made in another epoch
    /// is a conflict too: it may hold data that has been destroyed since.
    PutSegment {
        /// The segment.
        segment: Segment,
        /// The user's epoch when the segment's source was read.
        epoch: u64,
    },
    /// Replaces the two or more segments that cover exactly this segment's revisions by this one, and leaves the progress of
    /// the space alone. If there are no such segments it is a conflict: another worker was faster. A segment that was made
    /// in another epoch is a conflict too.
    MergeSegments {
        /// The merged segment.
        segment: Segment,
        /// The user's epoch when the segments were read.
        epoch: u64,
    },
    /// Removes all segments of a space and its progress.
    DropSegments {
        /// The space.
        space: String,
    },
    /// Sets the revision up to which a space has been worked through.
    SetProgress {
        /// The space: a model's name, or the name of other derived data.
        space: String,
        /// The revision.
        revision: u64,
    },
    /// Asks for background work.
    EnqueueJob(Box<Job>),
    /// Asks for background work unless a job of the same kind already waits for the same session. The waiting job is moved
    /// forward if this one would be due earlier, but not if it waits because it failed.
    EnqueueOnce(Box<Job>),
    /// Ends the work on a leased job.
    FinishJob {
        /// The job.
        id: JobId,
        /// The lease under which it was worked on.
        lease: LeaseId,
        /// The outcome.
        outcome: JobOutcome,
    },
    /// Sends a dead job back into the queue with its attempts at zero.
    RetryJob {
        /// The job.
        id: JobId,
    },
    /// Removes jobs that were finished before a moment.
    PruneJobs {
        /// The moment.
        before: Timestamp,
    },
    /// Appends a request's row.
    AddRequest(Box<RequestMetric>),
    /// Adds a complaint to a request's row, after those that it has.
    AddFeedback {
        /// The request.
        id: RequestId,
        /// The complaint.
        feedback: Feedback,
    },
    /// Removes request rows that were created before a moment.
    PruneRequests {
        /// The moment.
        before: Timestamp,
    },
    /// Removes answers that were stored under idempotency keys before a moment. Their keys can be used again.
    PruneIdempotency {
        /// The moment.
        before: Timestamp,
    },
    /// Adds an API key.
    AddKey(Box<ApiKey>),
    /// Revokes an API key from the time of the change set on; a key that is revoked already keeps its earlier time.
    RevokeKey {
        /// The key.
        id: KeyId,
    },
    /// Destroys data.
    Forget(Forget),
}

impl Change {
    /// How many of the items that recall sees this change changes: a database store raises the user's revision by as
    /// much. It is 0 for [`Forget`]: a store raises the revision for that only if anything was destroyed.
    pub fn items_changed(&self) -> usize {
        match self {
            // A summary that was completed before may be replaced by one that failed.
            Self::PutSummary(summary) => usize::from(summary.status != SummaryStatus::Processing),
            Self::AppendTurns { turns, .. } => turns.len().max(1),
            Self::HideTurns { ids, .. } => ids.len().max(1),
            Self::ReviseMemory { .. } => 2,
            Self::AddMemory(_)
            | Self::CloseMemory { .. }
            | Self::NoteMemory { .. }
            | Self::ConfirmMemory { .. }
            | Self::HideMemory { .. } => 1,
            Self::PutState { .. }
            | Self::EnqueueOnce(_)
            | Self::PruneJobs { .. }
            | Self::PutVectors(_)
            | Self::PutSegment { .. }
            | Self::MergeSegments { .. }
            | Self::DropSegments { .. }
            | Self::SetProgress { .. }
            | Self::EnqueueJob(_)
            | Self::FinishJob { .. }
            | Self::RetryJob { .. }
            | Self::AddRequest(_)
            | Self::AddFeedback { .. }
            | Self::PruneRequests { .. }
            | Self::PruneIdempotency { .. }
            | Self::AddKey(_)
            | Self::RevokeKey { .. }
            | Self::Forget(_) => 0,
        }
    }
}

/// Data derived from a range of a user's revisions, as bytes that only its maker can read. Destroying anything of the user
/// destroys all segments, because the store cannot read their content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The kind of the data, and its version.
    pub space: String,
    /// The first revision it covers.
    pub first: u64,
    /// The last revision it covers.
    pub last: u64,
    /// The content.
    pub bytes: Vec<u8>,
}

/// The size of a stored segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentSize {
    /// The first revision it covers.
    pub first: u64,
    /// The last revision it covers.
    pub last: u64,
    /// The bytes of its content.
    pub bytes: u64,
}

/// Data to destroy, together with everything that is derived from it alone: vectors, index entries, files.
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

/// The purposes for which a session has progress of its own.
pub const SESSION_PURPOSES: [&str; 5] = ["learn", "summarise", "evict", "prune", "left"];

/// The name of a session's own space of progress, which goes when the session is forgotten. `purpose` is one of
/// [`SESSION_PURPOSES`].
pub fn session_space(purpose: &str, session: &SessionId) -> String {
    format!("session:{purpose}:{session}")
}

/// The answer of [`apply`](super::Store::apply).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The appended turns with their places, in the order given.
    pub turns: Vec<AppendedTurn>,
    /// The numbers of destroyed items.
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
