//! Reads for the process itself: request rows, users, health, closing.

use serde_json::json;

use super::fixture::*;
use crate::error::ErrorKind;
use crate::id::{LeaseId, RequestId, UserId};
use crate::memory::Memory;
use crate::metric::{ErrorStage, Feedback, FeedbackKind, LateStage, PromptUse, RequestMetric};
use crate::scope::Scope;
use crate::store::{
    Change, ChangeSet, CheckDepth, Growth, GrowthDay, JobQuery, KeyQuery, LeaseRequest, MemoryQuery,
    MemorySelect, MetricQuery, Page, Store, SummaryQuery, TurnQuery,
};
use crate::trace::RetrievalPath;
use crate::turn::NewTurn;

async fn log(store: &dyn Store, request: RequestMetric) -> RequestId {
    let id = request.id;
    apply(store, &ann(), Change::AddRequest(Box::new(request))).await;
    id
}

fn all() -> MetricQuery {
    MetricQuery { limit: u32::MAX, ..MetricQuery::default() }
}

/// A row comes back as it was given.
pub async fn keeps_everything_of_a_request(store: &dyn Store) {
    for (path, stage) in [
        (RetrievalPath::Fts, None),
        (RetrievalPath::Trgm, Some(ErrorStage::Retrieval)),
        (RetrievalPath::Vector, Some(ErrorStage::LlmReply)),
        (RetrievalPath::Window, Some(ErrorStage::Summary)),
        (RetrievalPath::SummariesOnly, Some(ErrorStage::Embedding)),
        (RetrievalPath::None, None),
    ] {
        let full = RequestMetric {
            session: Some(session("user:agent:1")),
            query: "西湖 where?".to_owned(),
            fts_hits: 1,
            trgm_hits: 2,
            vector_hits: 3,
            used_fallback: true,
            retrieval_path: path,
            scope: Scope::Session,
            scope_used: Scope::Global,
            expansion: Some("上次".to_owned()),
            context_items: 4,
            estimated_tokens: 5,
            truncated: true,
            latency_retrieval_us: 6,
            latency_llm_us: Some(7),
            error_stage: stage,
            late: Some(LateStage::Reranking),
            unasked: true,
            prompt: PromptUse {
                raw_tokens: Some(u64::MAX),
                input_tokens: Some(8),
                output_tokens: Some(9),
                stable_share: Some(0.1),
            },
            feedback: vec![complaint(2, FeedbackKind::Meaning)],
            trace: Some(json!({"stages": [{"n": 0.5}]})),
            ..request(1)
        };
        log(store, full.clone()).await;
        let query = MetricQuery { id: Some(full.id), ..all() };
        assert_eq!(store.requests(&ann(), &query).await.unwrap(), [full]);
    }
}

/// Rows are listed newest first, since a moment, up to the limit.
pub async fn lists_requests_newest_first_and_by_choice(store: &dyn Store) {
    let (b, c, a) =
        (log(store, request(2)).await, log(store, request(3)).await, log(store, request(1)).await);
    for (query, expected) in [
        (all(), vec![c, b, a]),
        (MetricQuery { limit: 1, ..all() }, vec![c]),
        (MetricQuery { since: Some(at(2)), ..all() }, vec![c, b]),
        (MetricQuery { id: Some(a), ..all() }, vec![a]),
        (MetricQuery { id: Some(RequestId(fresh())), ..all() }, vec![]),
    ] {
        let rows = store.requests(&ann(), &query).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), expected, "{query:?}");
    }
}

/// Rows that were created before the moment are removed, others stay.
pub async fn prunes_old_requests(store: &dyn Store) {
    for second in [1, 2, 3] {
        log(store, request(second)).await;
    }
    apply(store, &ann(), Change::PruneRequests { before: at(2) }).await;
    let rows = store.requests(&ann(), &all()).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.created_at).collect::<Vec<_>>(), [at(3), at(2)]);
}

/// An id that exists already is a conflict.
pub async fn refuses_a_request_id_that_exists(store: &dyn Store) {
    let first = request(1);
    log(store, first.clone()).await;
    let again = RequestMetric { query: "other".to_owned(), ..first.clone() };
    assert_eq!(refuse(store, &ann(), Change::AddRequest(Box::new(again))).await, ErrorKind::Conflict);
    assert_eq!(store.requests(&ann(), &all()).await.unwrap(), [first]);
}

fn complaint(second: i64, kind: FeedbackKind) -> Feedback {
    Feedback { kind, at: at(second), text: format!("第 {second} 次: it forgot the \"lake\"") }
}

/// Complaints are added to a request's row in their order. The rest of the row stays as it is, and no other row changes.
pub async fn keeps_the_complaints_about_a_request(store: &dyn Store) {
    let full = RequestMetric { trace: Some(json!({"stages": [0.5]})), late: None, ..request(1) };
    let (first, other) = (log(store, full.clone()).await, log(store, request(2)).await);
    let complaints = [complaint(3, FeedbackKind::Forgot), complaint(4, FeedbackKind::Meaning)];
    for feedback in complaints.clone() {
        apply(store, &ann(), Change::AddFeedback { id: first, feedback }).await;
    }
    let read = async |id| store.requests(&ann(), &MetricQuery { id: Some(id), ..all() }).await.unwrap();
    assert_eq!(read(first).await, [RequestMetric { feedback: complaints.to_vec(), ..full }]);
    assert_eq!(read(other).await[0].feedback, []);
}

/// A complaint about a request that the user has not made is *not found*, and changes nothing.
pub async fn refuses_a_complaint_about_an_unknown_request(store: &dyn Store) {
    let id = log(store, request(1)).await;
    let complain = |id| Change::AddFeedback { id, feedback: complaint(2, FeedbackKind::Forgot) };
    assert_eq!(refuse(store, &ann(), complain(RequestId(fresh()))).await, ErrorKind::NotFound);
    assert_eq!(refuse(store, &bob(), complain(id)).await, ErrorKind::NotFound);
    let both = vec![complain(id), complain(RequestId(fresh()))];
    assert!(store.apply(&ann(), ChangeSet::new(at(3), both)).await.is_err());
    assert_eq!(store.requests(&ann(), &all()).await.unwrap()[0].feedback, []);
}

/// The items of a user are counted in any state, and by the days on which they came, from the moment asked for.
pub async fn counts_what_a_user_has_and_when_it_came(store: &dyn Store) {
    const DAY: i64 = 86_400;
    assert_eq!(store.growth(&ann(), at(0)).await.unwrap(), Growth::default());
    let said = |second| NewTurn { created_at: at(second), ..turn("said") };
    let turns = vec![said(0), said(2 * DAY - 1), said(2 * DAY), said(5 * DAY)];
    apply(store, &ann(), appending("s", turns)).await;
    append(store, &bob(), "s", &["of another user"]).await;
    let learned = |second| Memory { recorded_at: at(second), ..memory("learned") };
    for second in [DAY, 5 * DAY + 1] {
        add(store, &ann(), learned(second)).await;
    }
    let gone = add(store, &ann(), learned(5 * DAY + 2)).await;
    apply(store, &ann(), Change::HideMemory { id: gone, hidden: deleted(9) }).await;
    let day = |day, turns, memories| GrowthDay { day, turns, memories };
    let days = vec![day(0, 1, 1), day(1, 1, 0), day(4, 1, 2)];
    let expected = Growth { sessions: 1, turns: 4, memories: 3, days };
    assert_eq!(store.growth(&ann(), at(DAY)).await.unwrap(), expected);
    let later = store.growth(&ann(), at(6 * DAY)).await.unwrap();
    assert_eq!(later, Growth { days: Vec::new(), ..expected });
}

/// Users that have anything stored are listed by name, the shared bucket included, in pages.
pub async fn lists_users_by_name(store: &dyn Store) {
    assert!(store.users(Page::first(9)).await.unwrap().is_empty());
    append(store, &user("bob"), "s", &["one"]).await;
    add(store, &user("ann"), memory("one")).await;
    append(store, &UserId::global(), "s", &["one"]).await;
    add(store, &user("安"), memory("one")).await;
    store.head(&user("asked")).await.unwrap();
    store.search(&user("asked"), &words("one")).await.unwrap();
    let names = |users: Vec<UserId>| users.iter().map(UserId::to_string).collect::<Vec<_>>();
    assert_eq!(names(store.users(Page::first(9)).await.unwrap()), ["*", "ann", "bob", "安"]);
    assert_eq!(names(store.users(Page { offset: 1, limit: 2 }).await.unwrap()), ["ann", "bob"]);
}

/// A check counts the stored data and finds no problems.
pub async fn checks_and_counts(store: &dyn Store) {
    for depth in [CheckDepth::Quick, CheckDepth::Thorough] {
        let health = store.check(depth).await.unwrap();
        assert_eq!((health.users, health.sessions, health.turns, health.memories), (0, 0, 0, 0));
        assert_eq!(health.problems, Vec::<String>::new());
    }
    append(store, &ann(), "s", &["one", "two"]).await;
    append(store, &ann(), "t", &["three"]).await;
    append(store, &bob(), "s", &["four"]).await;
    add(store, &bob(), memory("five")).await;
    for depth in [CheckDepth::Quick, CheckDepth::Thorough] {
        let health = store.check(depth).await.unwrap();
        assert_eq!((health.users, health.sessions, health.turns, health.memories), (2, 3, 4, 1));
        assert_eq!(health.problems, Vec::<String>::new());
        assert!(!health.location.is_empty());
    }
}

/// After closing every call fails as unavailable.
pub async fn refuses_calls_after_close(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    store.close().await.unwrap();
    let (user, name) = (ann(), session("s"));
    let changes = ChangeSet::one(at(0), appending("s", vec![turn("two")]));
    let summaries = SummaryQuery { session: name.clone(), strategy: None, status: None, limit: 1 };
    let lease = LeaseRequest {
        lease: LeaseId(fresh()),
        worker: "w".to_owned(),
        now: at(0),
        until: at(1),
        user: None,
        after: None,
    };
    let memories = MemoryQuery::new(MemorySelect::All);
    for (call, kind) in [
        ("apply", kind(store.apply(&user, changes).await)),
        ("head", kind(store.head(&user).await)),
        ("session", kind(store.session(&user, &name).await)),
        ("sessions", kind(store.sessions(&user, Page::first(1)).await)),
        ("turns", kind(store.turns(&user, &TurnQuery::Ids(Vec::new())).await)),
        ("memories", kind(store.memories(&user, &memories).await)),
        ("summaries", kind(store.summaries(&user, &summaries).await)),
        ("search", kind(store.search(&user, &words("one")).await)),
        ("feed", kind(store.feed(&user, 0, 1).await)),
        ("vectors_since", kind(store.vectors_since(&user, "model", 0).await)),
        ("segments", kind(store.segments(&user, "space", 0).await)),
        ("segment_sizes", kind(store.segment_sizes(&user, "space").await)),
        ("progress", kind(store.progress(&user, "space").await)),
        ("behind", kind(store.behind("space", 0, 1).await)),
        ("jobs", kind(store.jobs(&user, &JobQuery::default()).await)),
        ("lease_job", kind(store.lease_job(&lease).await)),
        ("requests", kind(store.requests(&user, &all()).await)),
        ("key_by_hash", kind(store.key_by_hash(&key(0).hash).await)),
        ("keys", kind(store.keys(&KeyQuery::unrevoked(Page::first(1))).await)),
        ("growth", kind(store.growth(&user, at(0)).await)),
        ("users", kind(store.users(Page::first(1)).await)),
        ("check", kind(store.check(CheckDepth::Quick).await)),
        ("close", kind(store.close().await)),
    ] {
        assert_eq!(kind, ErrorKind::Unavailable, "{call}");
    }
}
