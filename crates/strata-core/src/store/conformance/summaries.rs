//! Summaries: a chain of versions, with at most one in progress.

use serde_json::json;

use super::fixture::*;
use crate::error::ErrorKind;
use crate::id::SummaryId;
use crate::store::{Change, Forget, Page, PartQuery, Store, SummaryQuery};
use crate::summary::{Strategy, Summary, SummaryPart, SummaryStatus};

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

/// A completed summary of a session's window.
fn window(of: &str, end_seq: u64) -> Summary {
    Summary { strategy: Strategy::Window, ..summary(of, end_seq) }
}

/// The sessions whose current summaries have entries in a part.
async fn with_part(store: &dyn Store, part: SummaryPart, page: Page) -> Vec<String> {
    let found = store.summaries_with(&ann(), &PartQuery { part, page }).await.unwrap();
    found.iter().map(|summary| format!("{} {}", summary.session, summary.end_seq)).collect()
}

/// Of each session counts the completed summary of the window that reaches furthest. The session last written to comes
/// first, and pages cut the list.
pub async fn lists_current_summaries_with_a_part(store: &dyn Store) {
    for (second, name) in [(1, "a"), (3, "b"), (2, "c"), (4, "d"), (5, "e")] {
        apply_at(store, &ann(), second, appending(name, vec![turn("one")])).await;
    }
    let todos = json!({"todos": [{"text": "buy milk", "seq": 0}], "facts": []});
    let facts = json!({"todos": [], "facts": ["Ann lives in Porto"], "entities": "none"});
    for (name, end, structured) in [
        ("a", 1, &todos),
        ("b", 1, &facts),
        ("b", 2, &todos),
        ("c", 1, &todos),
        ("c", 2, &facts),
        ("d", 9, &todos),
    ] {
        put(store, &Summary { structured: Some(structured.clone()), ..window(name, end) }).await;
    }
    let other = Summary { structured: Some(facts.clone()), ..window("a", 7) };
    put(store, &Summary { strategy: Strategy::Tree, ..other.clone() }).await;
    put(store, &Summary { id: SummaryId(fresh()), status: SummaryStatus::Failed, ..other }).await;
    put(store, &window("e", 1)).await;
    apply(store, &bob(), appending("a", vec![turn("one")])).await;
    let bobs = Summary { structured: Some(todos.clone()), ..window("a", 5) };
    apply(store, &bob(), Change::PutSummary(Box::new(bobs))).await;

    let all = Page::first(100);
    assert_eq!(with_part(store, SummaryPart::Todos, all).await, ["d 9", "b 2", "a 1"]);
    assert_eq!(with_part(store, SummaryPart::Facts, all).await, ["c 2"]);
    assert_eq!(with_part(store, SummaryPart::Entities, all).await, [""; 0]);
    assert_eq!(with_part(store, SummaryPart::Todos, Page { offset: 1, limit: 1 }).await, ["b 2"]);
    assert_eq!(with_part(store, SummaryPart::Todos, Page { offset: 3, limit: 1 }).await, [""; 0]);
}

/// A summary that moves on, and a session that is forgotten, no longer count; a turn moves its session to the front.
pub async fn a_part_leaves_with_its_summary(store: &dyn Store) {
    let done = |name: &str| Summary { structured: Some(json!({"todos": ["x"]})), ..window(name, 1) };
    for name in ["a", "b", "c"] {
        append(store, &ann(), name, &["one"]).await;
    }
    let (first, second) = (done("a"), done("b"));
    put(store, &first).await;
    put(store, &second).await;
    let all = Page::first(100);
    let todos = SummaryPart::Todos;
    apply_at(store, &ann(), 1, appending("b", vec![turn("two")])).await;
    assert_eq!(with_part(store, todos, all).await, ["b 1", "a 1"]);
    put(store, &Summary { structured: Some(json!({"todos": []})), ..first }).await;
    assert_eq!(with_part(store, todos, all).await, ["b 1"]);
    apply(store, &ann(), Change::Forget(Forget::Session(session("b")))).await;
    assert_eq!(with_part(store, todos, all).await, [""; 0]);
}
