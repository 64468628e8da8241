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
    put(&engine, Strategy::Window, (24, 37), WINDOW, model).await;
    put(&engine, Strategy::Tree, (0, 33), ROOT, model).await;
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
        assert!(summary.contains(&format!("summary of messages 1 to 34] {ROOT}")), "{text}");
        assert!(summary.contains(&format!("summary of messages 25 to 38] {WINDOW}")), "{text}");
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
    put(&engine, Strategy::Window, (46, 59), "The last seven rounds.", true).await;
    put(&engine, Strategy::Tree, (0, 57), "Nearly everything.", true).await;
    let flat = flat_text(&engine, "and now?").await;
    assert!(flat.contains("answer 29") && flat.contains("question 25"), "{flat}");
    assert!(!flat.contains("The last seven rounds.") && !flat.contains("Nearly everything."), "{flat}");
    assert!(flat.contains(WINDOW) && flat.contains(ROOT), "the versions before the shown turns: {flat}");
}

#[tokio::test]
async fn a_root_needs_no_window_that_it_covers_and_no_entries_that_it_repeats() {
    let engine = kept(History::Auto, true).await;
    put(&engine, Strategy::Tree, (0, 37), "Her sister asked: question 3. The mites are gone.", true).await;
    let flat = flat_text(&engine, "and now?").await;
    assert!(flat.contains("The mites are gone.") && !flat.contains(WINDOW) && !flat.contains(ROOT), "{flat}");
    assert_eq!(flat.matches("question 3").count(), 1, "{flat}");
}

#[tokio::test]
async fn evicted_turns_stay_in_the_prompt_whatever_its_history() {
    for history in [History::Auto, History::Rolling, History::Window, History::Tree] {
        let engine = kept(history, false).await;
        let before = (flat_text(&engine, "and now?").await, chat_messages(&engine, "and now?").await);
        let turns = engine.sessions.turns(&ann(), &session("s"), None, 100).await.unwrap();
        let hidden = Some(Hidden { reason: HiddenReason::Evicted, at: at(99) });
        let ids = turns.iter().map(|turn| turn.id).collect();
        let evicted = ChangeSet::one(at(99), Change::HideTurns { ids, hidden });
        engine.recording.store.apply(&ann(), evicted).await.unwrap();
        assert_eq!(flat_text(&engine, "and now?").await, before.0, "{history:?}");
        assert_eq!(chat_messages(&engine, "and now?").await, before.1, "{history:?}");
    }
}

#[tokio::test]
async fn the_window_comes_with_the_turns_after_it() {
    let engine = kept(History::Window, false).await;
    let flat = flat_text(&engine, "and now?").await;
    assert!(flat.contains(WINDOW) && !flat.contains(ROOT), "{flat}");
    for number in 19..30 {
        assert!(flat.contains(&format!("question {number}")), "turn {number}: {flat}");
    }
    assert!(!flat.contains("question 5"), "the window has dropped it: {flat}");
    let messages = chat_messages(&engine, "and now?").await;
    assert_eq!(messages.len(), 23, "the turns 38 to 59 and the question");
}

#[tokio::test]
async fn the_root_comes_with_the_turns_after_it() {
    let engine = kept(History::Tree, false).await;
    let messages = chat_messages(&engine, "and now?").await;
    assert_eq!(messages.len(), 27, "the turns 34 to 59 and the question");
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

#[tokio::test]
async fn open_tasks_stand_in_the_prompt_until_they_are_done() {
    let engine = engine();
    say(&engine, Role::User, "What is left?").await;
    say(&engine, Role::Assistant, "- [ ] oil the lathe\n- [ ] sweep the loft").await;
    let layer = |text: String| {
        text.split_once("<task_context>")
            .and_then(|(_, rest)| rest.split_once("</task_context>"))
            .unwrap()
            .0
            .to_owned()
    };
    let before = layer(flat_text(&engine, "and now?").await);
    assert!(before.contains("oil the lathe") && before.contains("sweep the loft"), "{before}");
    say(&engine, Role::User, "- [x] oil the lathe").await;
    say(&engine, Role::Assistant, "Good.").await;
    let (open, done) = (layer(flat_text(&engine, "and now?").await), "oil the lathe");
    assert!(open.contains("sweep the loft"), "{open}");
    assert!(open.find(done) > open.find("sweep the loft"), "what is done stands behind what is open: {open}");
    let block = chat_messages(&engine, "and now?").await.pop().unwrap().content;
    assert!(block.contains("<task_context>") && block.contains("sweep the loft"), "{block}");
}
