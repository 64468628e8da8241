//! Short forms of the data that the cases write and of the calls that they make.

use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use uuid::Uuid;

use crate::error::{Error, ErrorKind};
use crate::id::{ItemId, JobId, KeyId, LeaseId, MemoryId, RequestId, SessionId, SummaryId, TurnId, UserId};
use crate::job::{Job, JobStatus};
use crate::key::{ApiKey, KeyHash, KeyLimits, Scopes};
use crate::memory::{Memory, MemoryKind, MemoryNotes};
use crate::metric::{PromptUse, RequestMetric};
use crate::scope::Scope;
use crate::store::{
    Applied, Change, ChangeSet, Hit, ItemKinds, LeaseRequest, MemoryQuery, MemorySelect, Store, TextMatch,
    TextQuery, TurnQuery,
};
use crate::summary::{Strategy, Summary, SummaryStatus};
use crate::trace::RetrievalPath;
use crate::turn::{Hidden, HiddenReason, Metadata, NewTurn, Role, Turn, TurnNotes};
use crate::vector::ItemVector;

/// A UUID that no other call returns, in ascending order.
pub fn fresh() -> Uuid {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    Uuid::from_u64_pair(0x0190_0000_0000_7000, 0x8000_0000_0000_0000 | number)
}

/// The moment this many seconds after the beginning of the cases.
pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

/// A user.
pub fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

/// The user of most cases.
pub fn ann() -> UserId {
    user("ann")
}

/// Another user.
pub fn bob() -> UserId {
    user("bob")
}

/// A session.
pub fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

/// A user's turn, said at the beginning.
pub fn turn(content: &str) -> NewTurn {
    NewTurn {
        id: TurnId(fresh()),
        role: Role::User,
        name: None,
        content: content.to_owned(),
        created_at: at(0),
        token_count: 1,
        metadata: Metadata::new(),
        notes: TurnNotes::default(),
        hidden: None,
    }
}

/// A fact, learned at the beginning.
pub fn memory(content: &str) -> Memory {
    Memory {
        id: MemoryId(fresh()),
        session: None,
        agent: None,
        kind: MemoryKind::Fact,
        content: content.to_owned(),
        confidence: 1.0,
        valid_from: at(0),
        valid_to: None,
        recorded_at: at(0),
        replaced_by: None,
        source_turns: Vec::new(),
        source_summary: None,
        metadata: Metadata::new(),
        notes: MemoryNotes::default(),
        hidden: None,
    }
}

/// A completed rolling summary of turns 0 to `end_seq`.
pub fn summary(of: &str, end_seq: u64) -> Summary {
    Summary {
        id: SummaryId(fresh()),
        session: session(of),
        strategy: Strategy::Rolling,
        level: 0,
        start_seq: 0,
        end_seq,
        base_id: None,
        status: SummaryStatus::Completed,
        text: "they talked".to_owned(),
        structured: None,
        input_tokens: 0,
        output_tokens: 0,
        generation_ms: None,
        created_at: at(0),
        updated_at: at(0),
    }
}

/// A job of ann's that is due at `due`.
pub fn job(of: Option<&str>, due: i64) -> Job {
    Job {
        id: JobId(fresh()),
        user: ann(),
        session: of.map(session),
        kind: "summarise".to_owned(),
        payload: serde_json::json!({}),
        status: JobStatus::Queued,
        attempts: 0,
        run_at: at(due),
        lease: None,
        last_error: None,
        result: None,
        created_at: at(due),
        updated_at: at(due),
    }
}

/// A key of ann's, made at `second`, with a hash of its own.
pub fn key(second: i64) -> ApiKey {
    let id = KeyId(fresh());
    let mut hash = [0; 32];
    hash[..16].copy_from_slice(id.0.as_bytes());
    ApiKey {
        id,
        user: ann(),
        name: None,
        scopes: Scopes::default(),
        hash: KeyHash(hash),
        prefix: "strata_abc123".to_owned(),
        created_at: at(second),
        expires_at: None,
        revoked_at: None,
        limits: KeyLimits::default(),
        recall_scope: None,
    }
}

/// A request's row, made at `second`.
pub fn request(second: i64) -> RequestMetric {
    RequestMetric {
        id: RequestId(fresh()),
        session: None,
        created_at: at(second),
        query: "where do I live".to_owned(),
        fts_hits: 1,
        trgm_hits: 0,
        vector_hits: 0,
        used_fallback: false,
        retrieval_path: RetrievalPath::Fts,
        scope: Scope::User,
        scope_used: Scope::User,
        expansion: None,
        context_items: 1,
        estimated_tokens: 12,
        truncated: false,
        latency_retrieval_us: 800,
        latency_llm_us: None,
        error_stage: None,
        late: None,
        unasked: false,
        prompt: PromptUse::default(),
        feedback: Vec::new(),
        trace: None,
    }
}

/// Deleted at `second`.
pub fn deleted(second: i64) -> Option<Hidden> {
    Some(Hidden { reason: HiddenReason::Deleted, at: at(second) })
}

/// A JSON object.
pub fn object<T: From<serde_json::Map<String, serde_json::Value>>>(value: serde_json::Value) -> T {
    match value {
        serde_json::Value::Object(object) => object.into(),
        other => panic!("{other} is no object"),
    }
}

/// Applies one change at the beginning.
pub async fn apply(store: &dyn Store, user: &UserId, change: Change) -> Applied {
    apply_at(store, user, 0, change).await
}

/// Applies one change at `second`.
pub async fn apply_at(store: &dyn Store, user: &UserId, second: i64, change: Change) -> Applied {
    store.apply(user, ChangeSet::one(at(second), change)).await.unwrap()
}

/// Applies one change that must fail, and returns the error's kind.
pub async fn refuse(store: &dyn Store, user: &UserId, change: Change) -> ErrorKind {
    kind(store.apply(user, ChangeSet::one(at(0), change)).await)
}

/// The kind of the error of a call that must fail.
pub fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.expect_err("the call should have failed").kind()
}

/// The change that appends turns.
pub fn appending(to: &str, turns: Vec<NewTurn>) -> Change {
    Change::AppendTurns { session: session(to), turns }
}

/// Appends plain turns, said at the beginning.
pub async fn append(store: &dyn Store, user: &UserId, to: &str, contents: &[&str]) -> Vec<TurnId> {
    let turns: Vec<_> = contents.iter().map(|content| turn(content)).collect();
    append_turns(store, user, to, turns).await
}

/// Appends turns.
pub async fn append_turns(store: &dyn Store, user: &UserId, to: &str, turns: Vec<NewTurn>) -> Vec<TurnId> {
    let applied = apply(store, user, appending(to, turns)).await;
    applied.turns.iter().map(|turn| turn.id).collect()
}

/// Adds a memory and returns its id.
pub async fn add(store: &dyn Store, user: &UserId, memory: Memory) -> MemoryId {
    let id = memory.id;
    apply(store, user, Change::AddMemory(Box::new(memory))).await;
    id
}

/// All turns of a session.
pub async fn all_turns(store: &dyn Store, user: &UserId, of: &str) -> Vec<Turn> {
    let query = TurnQuery::Range { session: session(of), after: None, limit: u32::MAX };
    store.turns(user, &query).await.unwrap()
}

/// The memories that `select` selects.
pub async fn select(store: &dyn Store, user: &UserId, select: MemorySelect) -> Vec<Memory> {
    store.memories(user, &MemoryQuery::new(select)).await.unwrap()
}

/// One memory, which must exist.
pub async fn one(store: &dyn Store, user: &UserId, id: MemoryId) -> Memory {
    select(store, user, MemorySelect::Ids(vec![id])).await.pop().expect("the memory exists")
}

/// The memories believed now.
pub async fn current(store: &dyn Store, user: &UserId) -> Vec<Memory> {
    select(store, user, MemorySelect::Current { as_of: None }).await
}

/// The vectors of one model that these items have, in the order of the items.
pub async fn vectors_of(store: &dyn Store, user: &UserId, model: &str, items: &[ItemId]) -> Vec<ItemVector> {
    let stored = store.vectors_since(user, model, 0).await.unwrap();
    let of = |item: &ItemId| stored.iter().find(|stored| stored.vector.item == *item);
    items.iter().filter_map(of).map(|stored| stored.vector.clone()).collect()
}

/// A question for words, over everything.
pub fn words(text: &str) -> TextQuery {
    TextQuery {
        text: text.to_owned(),
        matching: TextMatch::Words,
        session: None,
        kinds: ItemKinds::ALL,
        as_of: None,
        keep: None,
        limit: 100,
    }
}

/// A question for substrings and misspellings, over everything.
pub fn similar(text: &str, min_similarity: f32) -> TextQuery {
    TextQuery { matching: TextMatch::Similar { min_similarity }, ..words(text) }
}

/// The hits of a search.
pub async fn hits(store: &dyn Store, user: &UserId, query: &TextQuery) -> Vec<Hit> {
    store.search(user, query).await.unwrap()
}

/// The contents of the hits, best first.
pub async fn found(store: &dyn Store, user: &UserId, query: &TextQuery) -> Vec<String> {
    let hits = hits(store, user, query).await;
    hits.iter().map(|hit| hit.item.content().to_owned()).collect()
}

/// The contents of the hits, sorted.
pub async fn found_sorted(store: &dyn Store, user: &UserId, query: &TextQuery) -> Vec<String> {
    let mut found = found(store, user, query).await;
    found.sort();
    found
}

/// Leases a job at `now` until `until`.
pub fn lease(now: i64, until: i64) -> LeaseRequest {
    let worker = "worker".to_owned();
    LeaseRequest { lease: LeaseId(fresh()), worker, now: at(now), until: at(until), user: None, after: None }
}

/// Enqueues ann's jobs and returns their ids.
pub async fn enqueue(store: &dyn Store, jobs: Vec<Job>) -> Vec<JobId> {
    let ids = jobs.iter().map(|job| job.id).collect();
    for job in jobs {
        apply(store, &job.user.clone(), Change::EnqueueJob(Box::new(job))).await;
    }
    ids
}
