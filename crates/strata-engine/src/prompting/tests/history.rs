//! What prompts and chats show in the place of old turns.

use super::*;
use strata_core::id::SummaryId;
use strata_core::store::Change;
use strata_core::summary::{MODEL_FIELD, Summary};

const WINDOW: &str = "The beekeeper moved two hives to the orchard.";
const ROOT: &str = "All winter the beekeeper fought mites and lost one colony.";

async fn put(engine: &Engine, strategy: Strategy, (start_seq, end_seq): (u64, u64), text: &str, model: bool) {
    let level = if strategy == Strategy::Tree { 3 } else { 0 };
    let summary = Summary {
        id: SummaryId(Uuid::from_u64_pair(9, end_seq + u64::from(level) * 1_000)),
        session: session("s"),
        strategy,
        level,
        start_seq,
        end_seq,
        base_id: None,
        status: SummaryStatus::Completed,
        text: text.to_owned(),
        structured: model.then(|| json!({MODEL_FIELD: "tiny"})),
        input_tokens: 0,
        output_tokens: 10,
        generation_ms: None,
        created_at: at(90),
        updated_at: at(90),
    };
    let put = ChangeSet::one(at(90), Change::PutSummary(Box::new(summary)));
    engine.recording.store.apply(&ann(), put).await.unwrap();
}

/// A session of 60 turns with a window's summary and a root.
async fn kept(history: History, model: bool) -> Engine {
    // The whole conversation does not fit.
    let engine = engine_with(history, 900);
    for number in 0..30 {
        exchange(&engine, number).await;
    }
    put(&engine, Strategy::Window, (30, 43), WINDOW, model).await;
    put(&engine, Strategy::Tree, (0, 39), ROOT, model).await;
    engine
}

#[tokio::test]
async fn what_a_model_wrote_stands_in_every_prompt() {
    let engine = kept(History::Auto, true).await;
    let flat = flat_text(&engine, "and now?").await;
    let chat = chat_messages(&engine, "and now?").await.pop().unwrap().content;
    let question = ChatQuestion {
        session: session("s"),
        question: "and now?".to_owned(),
        shown: std::collections::HashSet::from([1]),
        ..ChatQuestion::default()
    };
    let snapshot = engine.prompting.chat_snapshot(&ann(), &session("s")).await.unwrap();
    let id = RequestId(Uuid::from_u64_pair(1, 1));
    let block = engine.prompting.chat_memory(&ann(), id, &question, snapshot).await.unwrap().block.unwrap();
    for text in [flat, chat, block] {
        let summary = text.split("<conversation_summary>").nth(1).unwrap();
        let summary = summary.split("</conversation_summary>").next().unwrap();
        assert!(summary.contains(&format!("summary of messages 1 to 40] {ROOT}")), "{text}");
        assert!(summary.contains(&format!("summary of messages 31 to 44] {WINDOW}")), "{text}");
        assert!(summary.contains("question 3"), "the rolling summary stays: {text}");
    }
}

#[tokio::test]
async fn without_a_model_the_rolling_summary_is_enough() {
    let engine = kept(History::Auto, false).await;
    let flat = flat_text(&engine, "and now?").await;
    assert!(!flat.contains(WINDOW) && !flat.contains(ROOT), "{flat}");
}

#[tokio::test]
async fn turns_that_are_shown_have_no_summary_beside_them() {
    let engine = kept(History::Auto, true).await;
    put(&engine, Strategy::Window, (58, 59), "The last two messages.", true).await;
    let flat = flat_text(&engine, "and now?").await;
    assert!(flat.contains("answer 29") && !flat.contains("The last two messages."), "{flat}");
}

#[tokio::test]
async fn the_window_comes_with_the_turns_after_it() {
    let engine = kept(History::Window, false).await;
    let flat = flat_text(&engine, "and now?").await;
    assert!(flat.contains(WINDOW) && !flat.contains(ROOT), "{flat}");
    for number in 22..30 {
        assert!(flat.contains(&format!("question {number}")), "turn {number}: {flat}");
    }
    assert!(!flat.contains("question 5"), "the window has dropped it: {flat}");
    let messages = chat_messages(&engine, "and now?").await;
    assert_eq!(messages.len(), 17, "the turns 44 to 59 and the question");
}

#[tokio::test]
async fn the_root_comes_with_the_turns_after_it() {
    let engine = kept(History::Tree, false).await;
    let messages = chat_messages(&engine, "and now?").await;
    assert_eq!(messages.len(), 21, "the turns 40 to 59 and the question");
    assert!(messages.last().unwrap().content.contains(ROOT));
}

#[tokio::test]
async fn a_session_without_the_chosen_summary_shows_the_rolling_one() {
    for history in [History::Window, History::Tree] {
        let engine = engine_with(history, 900);
        for number in 0..30 {
            exchange(&engine, number).await;
        }
        let flat = flat_text(&engine, "and now?").await;
        assert!(flat.contains("<conversation_summary>") && flat.contains("question 3"), "{flat}");
    }
}
