//! Summaries: a chain of versions, with at most one in progress.

use serde_json::json;

use super::fixture::*;
use crate::error::ErrorKind;
use crate::id::SummaryId;
use crate::store::{Change, Store, SummaryQuery};
use crate::summary::{Strategy, Summary, SummaryStatus};

async fn put(store: &dyn Store, summary: &Summary) {
    apply(store, &ann(), Change::PutSummary(Box::new(summary.clone()))).await;
}

fn all(of: &str) -> SummaryQuery {
    SummaryQuery { session: session(of), strategy: None, status: None, limit: u32::MAX }
}

/// A summary comes back as it was given.
pub async fn keeps_everything_of_a_summary(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    let base = summary("s", 3);
    put(store, &base).await;
    let full = Summary {
        id: SummaryId(fresh()),
        strategy: Strategy::Tree,
        level: 3,
        start_seq: 1,
        end_seq: u64::from(u32::MAX) + 1,
        base_id: Some(base.id),
        status: SummaryStatus::Failed,
        text: "他们谈到西湖 🦀".to_owned(),
        structured: Some(json!({"facts": ["x"], "todos": [], "n": 1.5})),
        input_tokens: 4_000_000_000,
        output_tokens: 7,
        generation_ms: Some(1_234),
        created_at: at(1),
        updated_at: at(2),
        ..base.clone()
    };
    put(store, &full).await;
    assert_eq!(store.summaries(&ann(), &all("s")).await.unwrap(), [full, base]);
}

/// A summary with the same id is replaced.
pub async fn moves_a_summary_on(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    let begun = Summary { status: SummaryStatus::Processing, text: String::new(), ..summary("s", 5) };
    put(store, &begun).await;
    put(store, &Summary { updated_at: at(1), ..begun.clone() }).await;
    let done = Summary {
        status: SummaryStatus::Completed,
        text: "done".to_owned(),
        updated_at: at(2),
        ..begun.clone()
    };
    put(store, &done).await;
    assert_eq!(store.summaries(&ann(), &all("s")).await.unwrap(), [done]);
    put(store, &Summary { status: SummaryStatus::Processing, ..summary("s", 9) }).await;
}

/// The summary that reaches furthest comes first, up to the limit.
pub async fn lists_the_furthest_reaching_first(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    append(store, &ann(), "t", &["one"]).await;
    for end in [3, 9, 6] {
        put(store, &summary("s", end)).await;
    }
    put(store, &summary("t", 99)).await;
    let read = store.summaries(&ann(), &all("s")).await.unwrap();
    assert_eq!(read.iter().map(|summary| summary.end_seq).collect::<Vec<_>>(), [9, 6, 3]);
    let read = store.summaries(&ann(), &SummaryQuery { limit: 2, ..all("s") }).await.unwrap();
    assert_eq!(read.iter().map(|summary| summary.end_seq).collect::<Vec<_>>(), [9, 6]);
}

/// Strategy and status select together.
pub async fn chooses_by_strategy_and_status(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    for (end, strategy, status) in [
        (1, Strategy::Rolling, SummaryStatus::Completed),
        (2, Strategy::Window, SummaryStatus::Completed),
        (3, Strategy::Window, SummaryStatus::Failed),
        (4, Strategy::Window, SummaryStatus::Processing),
    ] {
        put(store, &Summary { strategy, status, ..summary("s", end) }).await;
    }
    for (strategy, status, expected) in [
        (Some(Strategy::Window), None, vec![4, 3, 2]),
        (None, Some(SummaryStatus::Completed), vec![2, 1]),
        (Some(Strategy::Window), Some(SummaryStatus::Completed), vec![2]),
        (Some(Strategy::Tree), None, vec![]),
    ] {
        let query = SummaryQuery { strategy, status, ..all("s") };
        let read = store.summaries(&ann(), &query).await.unwrap();
        assert_eq!(read.iter().map(|summary| summary.end_seq).collect::<Vec<_>>(), expected, "{query:?}");
    }
}

/// A second `processing` summary for a session is a conflict, with any strategy, whether it is new or set back.
pub async fn refuses_a_second_processing_summary(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    let failed = Summary { status: SummaryStatus::Failed, ..summary("s", 1) };
    put(store, &failed).await;
    put(store, &Summary { status: SummaryStatus::Processing, ..summary("s", 2) }).await;
    for second in [
        Summary { status: SummaryStatus::Processing, strategy: Strategy::Tree, ..summary("s", 3) },
        Summary { status: SummaryStatus::Processing, ..failed },
    ] {
        let change = Change::PutSummary(Box::new(second));
        assert_eq!(refuse(store, &ann(), change).await, ErrorKind::Conflict);
    }
    let read = store.summaries(&ann(), &all("s")).await.unwrap();
    assert_eq!(
        read.iter().map(|summary| summary.status).collect::<Vec<_>>(),
        [SummaryStatus::Processing, SummaryStatus::Failed]
    );
}

/// Other sessions, and other users' sessions of the same name, do not count.
pub async fn processes_one_summary_in_each_session(store: &dyn Store) {
    for (user, name) in [(ann(), "s"), (ann(), "t"), (bob(), "s")] {
        append(store, &user, name, &["one"]).await;
        let begun = Summary { status: SummaryStatus::Processing, ..summary(name, 1) };
        apply(store, &user, Change::PutSummary(Box::new(begun))).await;
    }
}

/// A summary of a session that does not exist is an error.
pub async fn refuses_a_summary_of_an_unknown_session(store: &dyn Store) {
    let change = Change::PutSummary(Box::new(summary("never", 1)));
    assert_eq!(refuse(store, &ann(), change).await, ErrorKind::NotFound);
}
