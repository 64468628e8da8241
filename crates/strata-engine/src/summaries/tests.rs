//! Windows in a store, with and without a model.

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::fixture::*;
use super::*;
use crate::Engine;
use crate::learn::window::WindowSettings;
use strata_core::job::JobStatus;
use strata_core::store::JobQuery;
use strata_core::store::conformance::fixture::{ann, session};
use strata_core::summary::SummaryPart;
use strata_core::turn::NewMessage;
use strata_core::turn::{Hidden, HiddenReason, Role};

/// `(start, end, index of its base, status)` of each version, oldest first.
async fn chain(engine: &Engine) -> Vec<(u64, u64, Option<usize>, &'static str)> {
    let rows = rows(engine, "window").await;
    let place = |id| rows.iter().position(|row| Some(row.id) == id);
    rows.iter().map(|row| (row.start_seq, row.end_seq, place(row.base_id), row.status.as_str())).collect()
}

async fn rounds(engine: &Engine, count: usize) {
    for _ in 0..count {
        round(engine).await;
    }
}

#[tokio::test]
async fn the_table_evolves_as_in_the_design() {
    let Fixture { engine, model, .. } = with_model(|_| ());
    rounds(&engine, 2).await;
    summarise(&engine).await;
    assert_eq!(chain(&engine).await, [], "seq 3 is too early");
    // The model is slow in the rounds that the sliding-window design leaves out.
    for (name, slow) in [("1", true), ("2", true), ("3", false), ("4", true), ("5", false)] {
        round(&engine).await;
        let text = answer(&format!("summary {name}"));
        model.will(if slow { Reply::AfterRound(text) } else { Reply::Says(text) });
        summarise(&engine).await;
    }
    assert_eq!(
        chain(&engine).await,
        [
            (0, 5, None, "completed"),
            (0, 9, Some(0), "completed"),
            (0, 13, Some(1), "completed"),
            (2, 15, Some(2), "completed"),
            (6, 19, Some(3), "completed"),
        ]
    );
    let rows = rows(&engine, "window").await;
    assert_eq!(rows[4].text, "summary 5");
    assert!(rows.iter().all(|row| row.generation_ms.is_some_and(|ms| ms > 0) && row.output_tokens > 0));
    let asked = model.take_asked();
    assert_eq!(asked.len(), 5, "one call a version");
    assert!(asked[3].contains(r#"{"previous_summary":"summary 3"}"#), "{}", asked[3]);
    assert!(
        asked[3].contains("The window begins at message 2.") && asked[3].contains(r#"{"left":0,"#),
        "{}",
        asked[3]
    );
    assert!(asked[3].contains(r#"{"message":14,"#) && !asked[3].contains(r#"{"message":13,"#), "incremental");
}

#[tokio::test]
async fn a_reader_gets_the_summary_and_the_gap() {
    let Fixture { engine, model, .. } = with_model(|_| ());
    let context = || async { engine.summaries.window_context(&ann(), &session("s")).await.unwrap() };
    let places = |context: &crate::learn::window::WindowContext| -> Vec<u64> {
        context.gap.iter().map(|turn| turn.seq).collect()
    };
    assert!(engine.summaries.window_context(&ann(), &session("s")).await.is_err());
    rounds(&engine, 3).await;
    say(&engine, Role::User, "Round 4 starts").await;
    let raw = context().await;
    assert_eq!((raw.memory_text.as_deref(), places(&raw)), (None, vec![0, 1, 2, 3, 4, 5]), "raw fallback");
    model.says(&answer("rounds 1 to 3"));
    summarise(&engine).await;
    say(&engine, Role::Assistant, "Round 4 ends").await;
    say(&engine, Role::User, "Round 5 starts").await;
    let read = context().await;
    assert_eq!(read.memory_text.as_deref(), Some("rounds 1 to 3"));
    assert_eq!((places(&read), read.left_out), (vec![6, 7], 0));
}

#[tokio::test]
async fn hidden_turns_are_never_summarised() {
    let Fixture { engine, model, .. } = with_model(|_| ());
    rounds(&engine, 2).await;
    say(&engine, Role::User, "What now?").await;
    let hidden = Some(Hidden { reason: HiddenReason::Error, at: engine.now() });
    let failed = NewMessage { hidden, ..NewMessage::new(Role::Assistant, "secret failure") };
    engine.recording.record(&ann(), &session("s"), vec![failed], None).await.unwrap();
    summarise(&engine).await;
    assert_eq!(chain(&engine).await, [], "a failure ends no round");
    say(&engine, Role::Assistant, "Now this.").await;
    model.says(&answer("fine"));
    summarise(&engine).await;
    assert_eq!(chain(&engine).await, [(0, 6, None, "completed")]);
    assert!(!model.take_asked().concat().contains("secret"));
    let Fixture { engine, .. } = without_model(|_| ());
    for _ in 0..8 {
        let failed = NewMessage { hidden, ..NewMessage::new(Role::User, "secret failure") };
        engine.recording.record(&ann(), &session("s"), vec![failed], None).await.unwrap();
    }
    round(&engine).await;
    summarise(&engine).await;
    assert!(!rows(&engine, "window").await[0].text.contains("secret"));
}

#[tokio::test]
async fn an_unusable_answer_is_repaired_once() {
    for wrong in
        ["", "I'm sorry, I can't help with that.", r#"{"facts": []}"#, "no JSON", "{\"summary\": \"  \"}"]
    {
        let Fixture { engine, model, .. } = with_model(|_| ());
        rounds(&engine, 3).await;
        model.says(wrong);
        model.says(&format!("Of course:\n```json\n{}\n```", answer("mended")));
        let learned = summarise(&engine).await;
        assert_eq!(rows(&engine, "window").await[0].text, "mended", "{wrong}");
        assert_eq!(learned[0].spent.calls, 2);
        assert!(model.take_asked()[1].contains("This cannot be used: "), "{wrong}");
    }
}

#[tokio::test]
async fn a_model_that_keeps_failing_is_replaced_by_the_rules() {
    let failures = [
        || Reply::Fails(Error::unavailable("the model did not answer in time").retryable()),
        || Reply::Fails(Error::internal("the model is broken")),
        || Reply::Says("I cannot do that.".to_owned()),
        || Reply::Says(answer("I'm sorry, but I can't help with that.")),
    ];
    for failure in failures {
        let Fixture { engine, model, clock } = with_model(|settings| {
            settings.max_attempts = 2;
        });
        rounds(&engine, 3).await;
        for status in ["processing", "completed"] {
            model.will(failure());
            model.will(failure());
            summarise(&engine).await;
            assert_eq!(chain(&engine).await, [(0, 5, None, status)]);
            model.say_no_more();
            clock.advance(3_600);
        }
        let made = &rows(&engine, "window").await[0];
        let why = made.structured.as_ref().unwrap()["without_model"].as_str().unwrap();
        assert!(!made.text.is_empty() && !why.contains("I cannot do that"), "{why}");
        let dead = JobQuery { status: Some(JobStatus::Dead), limit: 9, ..JobQuery::default() };
        assert!(engine.jobs.list(&ann(), &dead).await.unwrap().is_empty());
        // The next round asks the model again, from the version that was made without it.
        rounds(&engine, 2).await;
        model.says(&answer("at last"));
        summarise(&engine).await;
        assert_eq!(chain(&engine).await, [(0, 5, None, "completed"), (0, 9, Some(0), "completed")]);
        let context = engine.summaries.window_context(&ann(), &session("s")).await.unwrap();
        assert_eq!(context.memory_text.as_deref(), Some("at last"));
        assert!(rows(&engine, "window").await[1].structured.as_ref().unwrap().get("without_model").is_none());
    }
}

#[tokio::test]
async fn what_is_said_while_a_summary_is_made_is_summarised_when_the_session_rests() {
    let Fixture { engine, model, clock } = with_model(|_| ());
    rounds(&engine, 3).await;
    model.will(Reply::AfterRound(answer("three rounds")));
    summarise(&engine).await;
    summarise(&engine).await;
    assert_eq!(chain(&engine).await, [(0, 5, None, "completed")], "the next round may take it along");
    clock.advance(121);
    model.says(&answer("four rounds"));
    summarise(&engine).await;
    assert_eq!(chain(&engine).await, [(0, 5, None, "completed"), (0, 7, Some(0), "completed")]);
}

#[tokio::test]
async fn a_row_left_by_a_crash_is_taken_over() {
    let Fixture { engine, model, clock } = with_model(|_| ());
    rounds(&engine, 3).await;
    model.says(&answer("first"));
    summarise(&engine).await;
    rounds(&engine, 2).await;
    model.will(Reply::Hangs);
    loop {
        let done = tokio::select! {
            biased;
            learned = engine.learning.learn_next("lost") => learned.unwrap(),
            () = std::future::ready(()) => None,
        };
        if done.is_none() {
            break;
        }
    }
    assert_eq!(chain(&engine).await, [(0, 5, None, "completed"), (0, 9, Some(0), "processing")]);
    let begun = rows(&engine, "window").await.pop().unwrap();
    round(&engine).await;
    assert!(summarise(&engine).await.is_empty(), "its lease holds the session");
    clock.advance(400);
    assert!(begun.is_stuck(engine.now()));
    assert_eq!(engine.summaries.report(&ann(), &session("s"), 9).await.unwrap().stats.stuck, 1);
    model.says(&answer("second"));
    // The session has rested, so that the turns of that time need no further round.
    model.says(&answer("third"));
    summarise(&engine).await;
    let expected = [(0, 5, None, "completed"), (0, 9, Some(0), "completed"), (0, 11, Some(1), "completed")];
    assert_eq!(chain(&engine).await, expected);
    let taken = rows(&engine, "window").await.remove(1);
    assert_eq!((taken.id, taken.text.as_str()), (begun.id, "second"));
}

#[tokio::test]
async fn a_second_worker_leaves_the_row_alone() {
    let Fixture { engine, model, clock } = with_model(|_| ());
    rounds(&engine, 3).await;
    let now = engine.now();
    let row = strata_core::store::conformance::fixture::summary("s", 5);
    let row = Summary {
        strategy: Strategy::Window,
        status: SummaryStatus::Processing,
        created_at: now,
        updated_at: now,
        ..row
    };
    let put = Change::PutSummary(Box::new(row.clone()));
    engine.store().apply(&ann(), ChangeSet::one(now, put)).await.unwrap();
    let learned = summarise(&engine).await;
    assert_eq!((learned[0].ended.clone(), model.take_asked().len()), (Ended::Done, 0));
    assert_eq!(chain(&engine).await, [(0, 5, None, "processing")]);
    // The worker that began the summary is gone once its lease has ended.
    clock.advance(400);
    round(&engine).await;
    model.says(&answer("mine"));
    summarise(&engine).await;
    assert_eq!(rows(&engine, "window").await[0].id, row.id);
    assert_eq!(chain(&engine).await[0], (0, 5, None, "completed"));
}

#[tokio::test]
async fn a_session_without_answers_is_summarised_by_user_turns() {
    let Fixture { engine, .. } = without_model(|_| ());
    for day in 1..=6 {
        say(&engine, Role::User, &format!("On day {day} I walked {day} miles along the river.")).await;
        summarise(&engine).await;
    }
    assert_eq!(chain(&engine).await, []);
    say(&engine, Role::User, "On day 7 I rested and wrote letters.").await;
    summarise(&engine).await;
    assert_eq!(chain(&engine).await, [(0, 6, None, "completed")]);
    let text = rows(&engine, "window").await[0].text.clone();
    assert!(text.contains("On day 7 I rested and wrote letters."), "{text}");
}

#[tokio::test]
async fn nothing_is_made_when_it_is_switched_off() {
    let off = WindowSettings {
        memory_summarize_after_seq: 0,
        summarise_every_user_turns: 0,
        ..WindowSettings::default()
    };
    for both in [false, true] {
        let Fixture { engine, .. } = without_model(|settings| {
            settings.summaries.enable_summarization = both;
            settings.summaries.window = if both { off } else { WindowSettings::default() };
        });
        rounds(&engine, 8).await;
        summarise(&engine).await;
        assert_eq!(chain(&engine).await, []);
    }
}

#[tokio::test]
async fn without_a_model_the_window_really_slides() {
    let Fixture { engine, .. } = without_model(|_| ());
    let exchange = |text: &'static str| {
        let engine = engine.clone();
        async move {
            say(&engine, Role::User, text).await;
            say(&engine, Role::Assistant, "I will keep that in mind for you.").await;
            summarise(&engine).await;
        }
    };
    exchange("My cat is called Miso and she is three years old.").await;
    rounds(&engine, 2).await;
    summarise(&engine).await;
    assert!(rows(&engine, "window").await[0].text.contains("Miso"));
    for _ in 0..5 {
        round(&engine).await;
        summarise(&engine).await;
    }
    let last = rows(&engine, "window").await.pop().unwrap();
    assert_eq!((last.start_seq, last.end_seq), (2, 15));
    assert!(!last.text.contains("Miso"), "{}", last.text);
    assert!(last.text.contains("Turn 15 answers it."), "{}", last.text);
    assert!(last.input_tokens > last.output_tokens && last.output_tokens > 0, "{last:?}");
}

#[tokio::test]
async fn chinese_is_summarised_in_chinese() {
    let Fixture { engine, .. } = without_model(|_| ());
    for (question, reply) in [
        ("你好！我下个月要和姐姐去大理旅行。", "好的！大理四季都很美。"),
        ("我们的预算是每人三千元，想住在洱海旁边。", "洱海旁边有很多民宿，每晚两百元左右。"),
        ("我姐姐对花生过敏，餐厅要注意。", "记住了，我会避开含花生的菜。"),
    ] {
        say(&engine, Role::User, question).await;
        say(&engine, Role::Assistant, reply).await;
    }
    summarise(&engine).await;
    let row = rows(&engine, "window").await.pop().unwrap();
    assert!(row.text.starts_with("[2023-11-14 user] 我下个月要和姐姐去大理旅行。"), "{}", row.text);
    assert!(row.text.contains("我们的预算是每人三千元，想住在洱海旁边。"), "{}", row.text);
    assert!(row.text.contains("我姐姐对花生过敏"), "{}", row.text);
    let Fixture { engine, model, .. } = with_model(|_| ());
    for _ in 0..3 {
        say(&engine, Role::User, "我住在杭州。").await;
        say(&engine, Role::Assistant, "好的。").await;
    }
    let said = json!({"summary": "用户住在杭州。", "facts": ["用户住在杭州"], "todos": ["订机票"], "entities": ["杭州"]});
    model.says(&said.to_string());
    summarise(&engine).await;
    assert_eq!(rows(&engine, "window").await[0].text, "用户住在杭州。");
    let points = engine.summaries.structured(&ann(), None, SummaryPart::Todos, usize::MAX).await.unwrap();
    assert_eq!((points[0].text.as_str(), points[0].seq), ("订机票", Some(5)));
}

#[tokio::test]
async fn structured_points_can_be_queried() {
    let Fixture { engine, model, .. } = with_model(|_| ());
    rounds(&engine, 3).await;
    model.says(
        &json!({"summary": "x", "facts": ["Ann lives in Porto"], "todos": ["Book a flight", "Buy milk"]})
            .to_string(),
    );
    summarise(&engine).await;
    round(&engine).await;
    model.says(&json!({"summary": "y", "facts": [], "todos": ["Book a flight"]}).to_string());
    summarise(&engine).await;
    assert!(model.take_asked()[1].contains(r#"{"open_todos":["Book a flight","Buy milk"]}"#));
    let todos = engine
        .summaries
        .structured(&ann(), Some(&session("s")), SummaryPart::Todos, usize::MAX)
        .await
        .unwrap();
    assert_eq!(
        todos.iter().map(|todo| (todo.text.as_str(), todo.seq)).collect::<Vec<_>>(),
        [("Book a flight", Some(5))]
    );
    assert_eq!(
        engine.summaries.structured(&ann(), None, SummaryPart::Facts, usize::MAX).await.unwrap()[0].text,
        "Ann lives in Porto"
    );
    assert!(
        engine
            .summaries
            .structured(&ann(), None, SummaryPart::Decisions, usize::MAX)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        engine
            .summaries
            .structured(&ann(), Some(&session("none")), SummaryPart::Facts, usize::MAX)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn rapid_rounds_share_a_summary_by_a_model() {
    let Fixture { engine, model, clock } = with_model(|settings| {
        settings.delay_secs = None;
    });
    rounds(&engine, 5).await;
    assert!(summarise(&engine).await.is_empty(), "it waits for others");
    clock.advance(181);
    model.says(&answer("five rounds"));
    summarise(&engine).await;
    assert_eq!(chain(&engine).await, [(0, 9, None, "completed")]);
}

/// Collects the messages of log events, with their levels.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("strata_engine::summaries")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Message(String);
        impl tracing::field::Visit for Message {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().unwrap().push(format!("{} {}", event.metadata().level(), message.0));
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn the_log_has_the_messages_of_the_design() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let Fixture { engine, model, clock } = with_model(|settings| {
        settings.max_attempts = 1;
    });
    rounds(&engine, 8).await;
    model.will(Reply::AfterRound(answer("rounds 2 to 8")));
    summarise(&engine).await;
    clock.advance(1);
    round(&engine).await;
    model.will(Reply::Fails(Error::unavailable("busy")));
    summarise(&engine).await;
    let rows = rows(&engine, "window").await;
    let (first, second) = (rows[0].id, rows[1].id);
    let ms = rows[0].generation_ms.unwrap();
    let lines = log.0.lock().unwrap().clone();
    for line in [
        format!("DEBUG Memory {first} status updated to completed"),
        "INFO Sliding window: dropping seq 0-1 for s".to_owned(),
        format!("INFO Summarized messages 2-15 for s in {ms}ms"),
        "DEBUG Summarization already in progress for s".to_owned(),
        format!("DEBUG Memory {second} status updated to completed"),
        "WARN the model made no summary; it is made without one".to_owned(),
    ] {
        assert!(lines.contains(&line), "{line}: {lines:#?}");
    }
    let Fixture { engine, .. } = without_model(|_| ());
    rounds(&engine, 3).await;
    summarise(&engine).await;
    let now = engine.now();
    let again = engine.jobs.enqueue_once(&ann(), &session("s"), JobKind::Summarise, now, now);
    engine.store().apply(&ann(), ChangeSet::one(now, again)).await.unwrap();
    summarise(&engine).await;
    assert!(log.0.lock().unwrap().contains(&"DEBUG No new messages to summarize for s".to_owned()));
}

/// Says something that will be taken back, in the first of three rounds. Returns the turn and the memory of it.
async fn confide(
    engine: &Engine,
    said: &str,
    memory: &str,
) -> (strata_core::id::TurnId, strata_core::id::MemoryId) {
    let message = NewMessage::new(Role::User, said);
    let turn = engine.recording.record(&ann(), &session("s"), vec![message], None).await.unwrap().turns[0].id;
    say(engine, Role::Assistant, "The harvest begins in May.").await;
    let memory = crate::NewMemory { source_turns: vec![turn], ..crate::NewMemory::new(memory) };
    let id = engine.memories.add(&ann(), vec![memory]).await.unwrap()[0].id;
    rounds(engine, 2).await;
    (turn, id)
}

const CONFIDED: [(&str, &str, &str); 2] = [
    (
        "We sell at the market. My cousin Teodor owes the bank in Lugano a fortune.",
        "The user's cousin Teodor owes the bank in Lugano a fortune",
        "Teodor",
    ),
    ("我们在集市上卖。我表哥欠银行很多钱。", "用户的表哥欠银行很多钱", "表哥"),
];

#[tokio::test]
async fn a_deleted_memory_leaves_the_next_window() {
    for (said, memory, word) in CONFIDED {
        let Fixture { engine, .. } = without_model(|_| ());
        let (_, id) = confide(&engine, said, memory).await;
        summarise(&engine).await;
        let first = rows(&engine, "window").await.pop().unwrap();
        assert!(first.text.contains(word), "{}", first.text);
        engine.memories.delete(&ann(), id).await.unwrap();
        rounds(&engine, 1).await;
        summarise(&engine).await;
        let second = rows(&engine, "window").await.pop().unwrap();
        assert_ne!(second.id, first.id);
        let whole = format!("{} {}", second.text, second.structured.unwrap());
        assert!(!whole.contains(word), "{whole}");
        assert!(second.text.contains("market") || second.text.contains("集市"), "{}", second.text);
    }
}

#[tokio::test]
async fn a_deleted_turn_leaves_the_next_window_of_a_model() {
    for (said, _, word) in CONFIDED {
        let Fixture { engine, model, .. } = with_model(|_| ());
        let (turn, _) = confide(&engine, said, "unrelated").await;
        let with_point = json!({
            "summary": format!("They sell. {said}"), "facts": [said], "preferences": [], "decisions": [],
            "todos": [said], "entities": [],
        });
        model.says(&with_point.to_string());
        summarise(&engine).await;
        assert!(rows(&engine, "window").await.pop().unwrap().text.contains(word));
        engine.sessions.hide_turns(&ann(), vec![turn]).await.unwrap();
        model.take_asked();
        rounds(&engine, 1).await;
        // The model repeats it all the same.
        model.says(&with_point.to_string());
        summarise(&engine).await;
        let asked = model.take_asked().join("\n");
        assert!(!asked.contains(word) && asked.contains("previous_summary"), "{asked}");
        let second = rows(&engine, "window").await.pop().unwrap();
        let whole = format!("{} {}", second.text, second.structured.unwrap());
        assert!(!whole.contains(word) && whole.contains("They sell"), "{whole}");
    }
}

#[tokio::test]
async fn a_paraphrase_of_a_deleted_memory_is_named_to_the_model() {
    let Fixture { engine, model, .. } = with_model(|_| ());
    let (_, id) = confide(&engine, "I took up fencing.", "The user enjoys fencing").await;
    model.says(&answer("She is fond of fencing with sabres."));
    summarise(&engine).await;
    engine.memories.delete(&ann(), id).await.unwrap();
    model.take_asked();
    rounds(&engine, 1).await;
    model.says(&answer("The harvest begins in May."));
    summarise(&engine).await;
    let asked = model.take_asked().join("\n");
    assert!(asked.contains(r#"{"leave_out":"The user enjoys fencing"}"#), "{asked}");
    assert!(asked.contains("must not say them"), "{asked}");
}

#[tokio::test]
async fn deleted_memories_and_turns_leave_the_rolling_summary() {
    for (said, memory, word) in CONFIDED {
        for by_turn in [false, true] {
            let Fixture { engine, .. } = without_model(|_| ());
            let (turn, id) = confide(&engine, said, memory).await;
            rounds(&engine, 9).await;
            let before = rows(&engine, "rolling").await.pop().unwrap();
            assert!(before.text.contains(word), "{}", before.text);
            if by_turn {
                engine.sessions.hide_turns(&ann(), vec![turn]).await.unwrap();
            } else {
                engine.memories.delete(&ann(), id).await.unwrap();
            }
            rounds(&engine, 9).await;
            let after = rows(&engine, "rolling").await.pop().unwrap();
            assert!(after.end_seq > before.end_seq);
            assert!(!after.text.contains(word), "{}", after.text);
            let kept = after.text.contains("market") || after.text.contains("集市");
            assert_eq!(kept, !by_turn, "{}", after.text);
            assert!(after.text.contains("Turn 5 answers it."), "{}", after.text);
        }
    }
}

#[tokio::test]
async fn speakers_keep_their_names_and_days_in_every_summary_without_a_model() {
    let Fixture { engine, .. } = without_model(|_| ());
    let said = |name: &str, number: usize| NewMessage {
        name: Some(name.to_owned()),
        ..NewMessage::new(
            Role::User,
            format!(
                "In week {number} {name} planted {number} rows of onions and watered the terrace twice. "
            )
            .repeat(20),
        )
    };
    for number in 0..20 {
        let messages = vec![said("Ottilie", number), said("Bram", number + 50)];
        engine.recording.record(&ann(), &session("s"), messages, None).await.unwrap();
    }
    summarise(&engine).await;
    for strategy in ["window", "tree"] {
        let rows = rows(&engine, strategy).await;
        assert!(!rows.is_empty(), "{strategy}");
        for row in rows {
            let heads = ["[2023-11-14 Ottilie] ", "[2023-11-14 Bram] "];
            assert!(
                row.text.lines().all(|line| heads.iter().any(|head| line.starts_with(head))),
                "{}",
                row.text
            );
            for name in ["Ottilie", "Bram"] {
                let lines = row.text.lines().filter(|line| line.contains(&format!("{name} planted")));
                assert!(
                    lines.clone().all(|line| line.starts_with(&format!("[2023-11-14 {name}]"))),
                    "{}",
                    row.text
                );
            }
        }
    }
}
