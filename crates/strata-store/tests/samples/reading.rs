//! Everything that a store gives back of the users in a sample, as one value to compare.

#![allow(clippy::unwrap_used, reason = "test code, shared with the program that makes the samples")]

use serde_json::{Value, json};
use strata_core::Store;
use strata_core::store::conformance::fixture::{vectors_of, words};
use strata_core::store::{
    JobQuery, KeyQuery, MemoryQuery, MemorySelect, MetricQuery, Page, SummaryQuery, TurnQuery,
};

/// Reads what there is.
pub(crate) async fn reading(store: &dyn Store) -> Value {
    let mut users = serde_json::Map::new();
    for user in store.users(Page::first(100)).await.unwrap() {
        let mut sessions = Vec::new();
        for session in store.sessions(&user, Page::first(100)).await.unwrap() {
            let range = TurnQuery::Range { session: session.id.clone(), after: None, limit: 100 };
            let summaries =
                SummaryQuery { session: session.id.clone(), strategy: None, status: None, limit: 100 };
            sessions.push(json!({
                "turns": store.turns(&user, &range).await.unwrap(),
                "summaries": store.summaries(&user, &summaries).await.unwrap(),
                "session": session,
            }));
        }
        let memories = store.memories(&user, &MemoryQuery::new(MemorySelect::All)).await.unwrap();
        let hits = store.search(&user, &words("lake 西湖")).await.unwrap();
        let items: Vec<_> = hits.iter().map(|hit| hit.item.id()).collect();
        users.insert(
            user.to_string(),
            json!({
                "head": store.head(&user).await.unwrap(),
                "sessions": sessions,
                "vectors": vectors_of(store, &user, "static-1", &items).await,
                "found": hits.iter().map(|hit| hit.item.content()).collect::<Vec<_>>(),
                "memories": memories,
                "jobs": store.jobs(&user, &JobQuery { limit: 100, ..JobQuery::default() }).await.unwrap(),
                "requests":
                    store.requests(&user, &MetricQuery { limit: 100, ..MetricQuery::default() }).await.unwrap(),
            }),
        );
    }
    let mut read = Value::Object(users);
    // Versions before the third have none, and their samples say nothing of them.
    let query = KeyQuery { id: None, user: None, revoked: true, page: Page::first(100) };
    let keys = store.keys(&query).await.unwrap();
    if !keys.is_empty() {
        read["*keys"] = json!(keys);
    }
    read
}
