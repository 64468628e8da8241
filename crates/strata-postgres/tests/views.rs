//! The designs' queries run as written on the views with their names.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use serde_json::json;
use strata_core::Store;
use strata_core::memory::MemoryKind;
use strata_core::store::Change;
use strata_core::store::conformance::fixture::*;
use strata_core::summary::{Strategy, Summary, SummaryStatus};
use strata_postgres::test_server::database;

async fn put(store: &dyn Store, summary: Summary) {
    apply(store, &ann(), Change::PutSummary(Box::new(summary))).await;
}

#[tokio::test]
async fn the_sliding_window_designs_queries_run_as_written() {
    let database = database().await;
    let store = database.open().await;
    let window =
        |end| Summary { strategy: Strategy::Window, generation_ms: Some(40), ..summary("conv_123", end) };
    append(&store, &ann(), "conv_123", &["one", "two"]).await;
    let base = window(5);
    put(&store, base.clone()).await;
    put(&store, Summary { start_seq: 2, base_id: Some(base.id), ..window(15) }).await;
    put(&store, Summary { status: SummaryStatus::Processing, generation_ms: None, ..window(17) }).await;
    // A stuck task of another user, and one that has just begun.
    for session in ["conv_789", "conv_now"] {
        append(&store, &bob(), session, &["one"]).await;
        let begun =
            Summary { strategy: Strategy::Window, status: SummaryStatus::Processing, ..summary(session, 9) };
        apply(&store, &bob(), Change::PutSummary(Box::new(begun))).await;
    }
    let client = database.client().await;
    let now =
        "UPDATE summaries SET created_at = extract(epoch FROM now()) * 1000000 WHERE session = 'conv_now'";
    client.batch_execute(now).await.unwrap();
    let history = client
        .query(
            "SELECT m.*,
                    b.end_sequence as base_end_seq
             FROM memory m
             LEFT JOIN memory b ON m.base_memory_id = b.memory_id
             WHERE m.conversation_id = 'conv_123'
             ORDER BY m.end_sequence DESC",
            &[],
        )
        .await
        .unwrap();
    let reach: Vec<(i64, Option<i64>)> =
        history.iter().map(|row| (row.get("end_sequence"), row.get("base_end_seq"))).collect();
    assert_eq!(reach, [(17, None), (15, Some(5)), (5, None)]);
    let stuck = client
        .query(
            "SELECT conversation_id, memory_id, created_at,
                    NOW() - created_at as age
             FROM memory
             WHERE status = 'processing'
               AND created_at < NOW() - INTERVAL '5 minutes'",
            &[],
        )
        .await
        .unwrap();
    let mut stuck: Vec<&str> = stuck.iter().map(|row| row.get(0)).collect();
    stuck.sort_unstable();
    assert_eq!(stuck, ["conv_123", "conv_789"]);
    let progression = client
        .query(
            "SELECT conversation_id, start_sequence, end_sequence,
                    end_sequence - start_sequence + 1 as window_size, generation_time_ms
             FROM memory WHERE status = 'completed' ORDER BY created_at DESC LIMIT 20",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(progression.len(), 2);
    let average = client
        .query_one(
            "SELECT AVG(generation_time_ms)::float8 as avg_ms, MAX(generation_time_ms) as max_ms,
                    COUNT(*) as total_summaries
             FROM memory WHERE status = 'completed' AND generation_time_ms IS NOT NULL",
            &[],
        )
        .await
        .unwrap();
    assert_eq!((average.get::<_, f64>(0), average.get::<_, i64>(2)), (40.0, 2));
}

#[tokio::test]
async fn the_evolution_plans_tables_can_be_read() {
    let database = database().await;
    let store = database.open().await;
    append(&store, &ann(), "s", &["the oven is broken", "buy a fuse"]).await;
    put(&store, Summary { structured: Some(json!({ "todos": ["buy a fuse"] })), ..summary("s", 1) }).await;
    let todo = strata_core::Memory { kind: MemoryKind::Todo, ..memory("buy a fuse") };
    add(&store, &ann(), todo).await;
    apply(&store, &ann(), Change::AddRequest(Box::new(request(3)))).await;
    let client = database.client().await;
    let text = async |sql: &str| -> String { client.query_one(sql, &[]).await.unwrap().get(0) };
    assert_eq!(
        text("SELECT content FROM chat_turns WHERE user_id = 'ann' AND session_id = 's' AND turn_index = 1")
            .await,
        "buy a fuse"
    );
    assert_eq!(text("SELECT meta->'structured'->'todos'->>0 FROM chat_summaries").await, "buy a fuse");
    assert_eq!(
        text("SELECT type || ': ' || content FROM memories_structured WHERE valid_to IS NULL").await,
        "todo: buy a fuse"
    );
    let report = "SELECT retrieval_path || ' ' || fts_hits || ' ' || used_fallback || ' ' || truncated || ' '
                      || latency_retrieval_ms FROM memory_request_metrics
                  WHERE created_at < now() AND error_stage IS NULL";
    assert_eq!(text(report).await, "fts 1 false false 0");
}
