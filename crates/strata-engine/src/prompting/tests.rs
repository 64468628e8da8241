//! Prompts and states of sessions in a store.

use crate::Engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

mod fill;
mod history;
mod standing;

use super::*;
use crate::Settings;
use crate::prompt::{CLOSE, OPEN, Profile, PromptBody};
use strata_core::ports::{Clock, EstimatedTokens, IdSource};
use strata_core::state::{DiagnosticStatus, Observed};
use strata_core::store::ChangeSet;
use strata_core::store::conformance::fixture::{ann, appending, at, session, turn};
use strata_core::store::{InMemoryStore, Store};
use strata_core::summary::{Strategy, SummaryStatus};
use strata_core::turn::{Hidden, HiddenReason, NewMessage, TurnNotes, Usage};

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        at(100)
    }
}

#[derive(Default)]
struct Counter(AtomicU64);

impl IdSource for Counter {
    fn next(&self) -> Uuid {
        Uuid::from_u64_pair(7, self.0.fetch_add(1, Ordering::Relaxed))
    }
}

fn engine() -> Engine {
    let store: Arc<dyn Store> = Arc::new(InMemoryStore::new());
    let (clock, ids, tokens) = (Arc::new(Fixed), Arc::new(Counter::default()), Arc::new(EstimatedTokens));
    Engine::new(store, clock, ids, tokens, Settings::default())
}

fn engine_with(history: History, max_tokens: u32) -> Engine {
    let settings = PromptSettings { history, max_tokens, ..PromptSettings::default() };
    engine().with_prompts(settings).unwrap()
}

async fn say(engine: &Engine, role: Role, content: &str) {
    let message = NewMessage::new(role, content);
    engine.recording.record(&ann(), &session("s"), vec![message], None).await.unwrap();
}

async fn exchange(engine: &Engine, number: usize) {
    say(engine, Role::User, &format!("question {number}")).await;
    say(engine, Role::Assistant, &format!("answer {number}")).await;
}

async fn flat_text(engine: &Engine, question: &str) -> String {
    let prompted =
        engine.prompting.prompt(&ann(), &PromptRequest::new(session("s"), question)).await.unwrap();
    prompted.prompt.text().unwrap().to_owned()
}

async fn chat_messages(engine: &Engine, question: &str) -> Vec<ChatMessage> {
    let request = PromptRequest { format: PromptFormat::Chat, ..PromptRequest::new(session("s"), question) };
    let prompted = engine.prompting.prompt(&ann(), &request).await.unwrap();
    assert!(prompted.request_id.is_some());
    prompted.prompt.messages().unwrap().to_vec()
}

async fn state_now(engine: &Engine) -> State {
    engine.sessions.state(&ann(), &session("s")).await.unwrap()
}

#[tokio::test]
async fn a_session_that_does_not_exist_has_the_question_only() {
    let engine = engine();
    assert_eq!(flat_text(&engine, "hello").await, "hello");
    let error = engine.prompting.prompt(&ann(), &PromptRequest::new(session("s"), " \n")).await.unwrap_err();
    assert_eq!(error.kind(), strata_core::ErrorKind::Invalid);
    assert!(engine.sessions.state(&ann(), &session("s")).await.is_err());
    assert!(engine.summaries.list(&ann(), &session("s"), 10).await.is_err());
}

#[tokio::test]
async fn a_diagnosis_fills_itself() {
    let engine = engine();
    say(&engine, Role::User, "10.1.1.47 plot temp control").await;
    assert_eq!(state_now(&engine).await, State::default(), "a question alone is not read");
    let reply = "Downloaded InstrumentDebug_1.log for zspr 052.\n\nKey findings:\n- PID controller stable";
    say(&engine, Role::Assistant, reply).await;
    insta::assert_snapshot!(flat_text(&engine, "為什麼溫度波動？").await, @"
    為什麼溫度波動？

    <diagnostic_context>
    Device: zspr 052 (10.1.1.47)
    Last log: InstrumentDebug_1.log
    Downloaded: InstrumentDebug_1.log
    Key findings:
      - PID controller stable
    </diagnostic_context>

    <note>Use diagnostic_context and conversation_summary to avoid
    re-downloading logs already analyzed. Reuse existing findings.</note>

    <recent_conversation>
    [2023-11-14 user] 10.1.1.47 plot temp control
    [2023-11-14 assistant] Downloaded InstrumentDebug_1.log for zspr 052.

    Key findings:
    - PID controller stable
    </recent_conversation>
    ");
    // The device in the question counts even before there is an answer, and is not stored.
    assert!(flat_text(&engine, "10.1.1.99?").await.contains("Device: 10.1.1.99\n"));
    assert_eq!(state_now(&engine).await.diagnostic.device_ip.as_deref(), Some("10.1.1.47"));
}

#[tokio::test]
async fn a_long_session_shows_what_recall_finds_in_its_old_turns() {
    let engine = engine_with(History::Auto, 1_000);
    say(&engine, Role::User, "The spare key of the boathouse hangs behind the blue door.").await;
    say(&engine, Role::Assistant, "Noted.").await;
    assert!(!flat_text(&engine, "Where does the spare key hang?").await.contains("<relevant_memories>"));
    for number in 0..60 {
        exchange(&engine, number).await;
    }
    let text = flat_text(&engine, "Where does the spare key hang?").await;
    let (_, block) = text.split_once("<relevant_memories>").expect(&text);
    assert!(block.contains("behind the blue door"), "{text}");
    let text = flat_text(&engine, "What is the capital of Peru?").await;
    assert!(!text.contains("<relevant_memories>"), "{text}");
}

#[tokio::test]
async fn tools_and_tokens_count_themselves() {
    let engine = engine();
    let read = |content: &str, failed: Option<bool>| NewMessage {
        name: Some("read".to_owned()),
        notes: TurnNotes { failed, ..TurnNotes::default() },
        ..NewMessage::new(Role::Tool, content)
    };
    say(&engine, Role::User, "four letters each").await;
    let messages = vec![read("ok", None), read("no", Some(true)), NewMessage::new(Role::Assistant, "done")];
    engine.recording.record(&ann(), &session("s"), messages, None).await.unwrap();
    let state = state_now(&engine).await;
    assert_eq!((state.tool_stats.total_calls, state.tool_stats.failures), (2, 1));
    assert_eq!((state.token_usage.total_input, state.token_usage.total_output), (5 + 1 + 1, 1));
    assert_eq!(state.observed, Observed { turns: 4, tokens: state.observed.tokens, ..Observed::default() });
    let usage = Usage { input: Some(50), output: Some(9) };
    let notes = TurnNotes { usage, ..TurnNotes::default() };
    let used = NewMessage { notes, ..NewMessage::new(Role::Assistant, "more") };
    engine.recording.record(&ann(), &session("s"), vec![used], None).await.unwrap();
    assert_eq!(state_now(&engine).await.token_usage.by_session, 8 + 59);
}

#[tokio::test]
async fn a_repeated_recording_is_read_once() {
    let engine = engine();
    for _ in 0..2 {
        let message = NewMessage::new(Role::Tool, "ok");
        engine.recording.record(&ann(), &session("s"), vec![message], Some("key")).await.unwrap();
    }
    assert_eq!(state_now(&engine).await.tool_stats.total_calls, 1);
}

#[tokio::test]
async fn errors_are_neither_read_nor_shown() {
    let engine = engine();
    exchange(&engine, 0).await;
    let hidden = Some(Hidden { reason: HiddenReason::Error, at: at(1) });
    let failed = NewMessage { hidden, ..NewMessage::new(Role::Assistant, "Root cause: upstream 500") };
    engine.recording.record(&ann(), &session("s"), vec![failed], None).await.unwrap();
    exchange(&engine, 1).await;
    let text = flat_text(&engine, "next").await;
    assert!(!text.contains("500") && text.contains("answer 1"), "{text}");
    assert_eq!(state_now(&engine).await.diagnostic.status, DiagnosticStatus::Idle);
}

#[tokio::test]
async fn turns_of_another_path_are_caught_up() {
    let engine = engine();
    let told = vec![turn("look at 10.1.1.47"), turn("please")];
    let changes = ChangeSet::one(at(0), appending("s", told));
    engine.store().apply(&ann(), changes).await.unwrap();
    say(&engine, Role::Assistant, "I do.").await;
    let state = state_now(&engine).await;
    assert_eq!(state.diagnostic.device_ip.as_deref(), Some("10.1.1.47"));
    assert_eq!((state.observed.turns, state.token_usage.total_input), (3, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_at_once_lose_nothing() {
    let engine = Arc::new(engine());
    let mut tasks = Vec::new();
    for number in 0..8 {
        let engine = Arc::clone(&engine);
        tasks.push(tokio::spawn(async move {
            for _ in 0..10 {
                say(&engine, Role::Tool, &format!("call {number}")).await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    say(&engine, Role::Tool, "the last").await;
    let state = state_now(&engine).await;
    assert_eq!((state.tool_stats.total_calls, state.observed.turns), (81, 81));
}

#[tokio::test]
async fn an_edited_state_goes_on_from_where_it_was() {
    let engine = engine();
    exchange(&engine, 0).await;
    let mut edited = State::default();
    edited.diagnostic.findings.push("by hand".to_owned());
    edited.observed.turns = 99;
    edited.extra.insert("mine".to_owned(), json!(1));
    let put = engine.sessions.put_state(&ann(), &session("s"), edited).await.unwrap();
    assert_eq!((put.observed.turns, state_now(&engine).await), (2, put));
    say(&engine, Role::Assistant, "Finding: by rule, it hums").await;
    let state = state_now(&engine).await;
    assert_eq!(state.diagnostic.findings, ["by hand", "by rule, it hums"]);
    assert_eq!(state.extra["mine"], json!(1));
}

#[tokio::test]
async fn the_summary_moves_on_by_steps_and_keeps_its_chain() {
    let engine = engine_with(History::Rolling, 8_000);
    let mut ends = Vec::new();
    for number in 0..150 {
        exchange(&engine, number).await;
        let chain = engine.summaries.list(&ann(), &session("s"), 100).await.unwrap();
        ends.extend(chain.first().map(|summary| summary.end_seq).filter(|end| ends.last() != Some(end)));
        // With any folding, the prompt has the last three exchanges unchanged.
        let text = flat_text(&engine, "and?").await;
        let recent = text.split("<recent_conversation>\n").nth(1).unwrap();
        assert!(
            recent.starts_with(&format!("[2023-11-14 user] question {}\n", number.saturating_sub(2))),
            "{text}"
        );
        assert!(recent.contains(&format!("[2023-11-14 assistant] answer {number}\n")));
        if number >= 3 {
            assert!(
                text.contains(&format!("[2023-11-14 assistant] answer {}\n", number - 3)),
                "no turn is missing: {text}"
            );
        }
    }
    assert!(ends.windows(2).all(|pair| pair[1] - pair[0] == 12), "{ends:?}");
    let chain = engine.summaries.list(&ann(), &session("s"), 100).await.unwrap();
    assert_eq!(chain.len(), 3);
    assert_eq!(
        (chain[0].base_id, chain[1].base_id, chain[2].base_id),
        (Some(chain[1].id), Some(chain[2].id), None)
    );
    let all = |summary: &strata_core::summary::Summary| {
        summary.strategy == Strategy::Rolling
            && summary.status == SummaryStatus::Completed
            && summary.start_seq == 0
    };
    assert!(chain.iter().all(all) && chain[0].text.chars().count() <= 16_000);
    assert!(chain[0].input_tokens > 0 && chain[0].output_tokens > 0);
}

#[tokio::test]
async fn a_long_session_without_a_summary_is_caught_up_once() {
    let engine = engine();
    let turns: Vec<_> = (0..3_000).map(|number| turn(&format!("note {number}"))).collect();
    engine.store().apply(&ann(), ChangeSet::one(at(0), appending("s", turns))).await.unwrap();
    let text = flat_text(&engine, "and?").await;
    assert!(
        text.contains("earlier messages left out]") && text.contains("[2023-11-14 user] note 2993\n"),
        "{text}"
    );
    let chain = engine.summaries.list(&ann(), &session("s"), 10).await.unwrap();
    assert_eq!((chain.len(), chain[0].end_seq), (1, 2_993));
    assert_eq!(flat_text(&engine, "and?").await, text, "the stored summary says the same");
}

/// An engine of another process: it counts ids of its own.
fn another_engine(store: &Arc<dyn Store>) -> Engine {
    let ids = Arc::new(Counter(AtomicU64::new(1 << 40)));
    Engine::new(Arc::clone(store), Arc::new(Fixed), ids, Arc::new(EstimatedTokens), Settings::default())
}

#[tokio::test]
async fn two_processes_that_move_the_summary_on_at_once_store_it_once() {
    let one = engine();
    let other = another_engine(one.store());
    let turns: Vec<_> = (0..90).map(|number| turn(&format!("knot {number}"))).collect();
    one.store().apply(&ann(), ChangeSet::one(at(0), appending("s", turns))).await.unwrap();
    let before = one.store().session(&ann(), &session("s")).await.unwrap().unwrap();
    // Both have read the session before either of them writes.
    let mut shown = Vec::new();
    let unfolded =
        async |engine: &Engine| engine.recording.unfolded(&ann(), &session("s"), 90).await.unwrap();
    let read = [unfolded(&one).await, unfolded(&other).await];
    for (engine, unfolded) in [&one, &other].into_iter().zip(read) {
        let caught_up = engine.recording.catch_up(&ann(), &before, unfolded).await;
        shown.push(caught_up.summary.map(|summary| summary.text));
    }
    assert_eq!(shown[0], shown[1], "the prompt of the second process has its summary all the same");
    assert_eq!(one.summaries.list(&ann(), &session("s"), 10).await.unwrap().len(), 1);
    let after = one.store().session(&ann(), &session("s")).await.unwrap().unwrap();
    assert_eq!((after.state, after.updated_at), (before.state, before.updated_at));
}

/// Counts tokens, and notes the longest text that is counted outside of the compute port.
#[derive(Default)]
struct Watched {
    inside: AtomicU64,
    longest: AtomicU64,
}

impl strata_core::ports::TokenCounter for Watched {
    fn count(&self, text: &str) -> u32 {
        if self.inside.load(Ordering::Relaxed) == 0 {
            self.longest.fetch_max(text.len() as u64, Ordering::Relaxed);
        }
        EstimatedTokens.count(text)
    }
}

struct WatchedCompute(Arc<Watched>);

#[async_trait::async_trait]
impl strata_core::ports::Compute for WatchedCompute {
    async fn run(&self, _load: strata_core::ports::Load, work: Box<dyn FnOnce() + Send>) {
        self.0.inside.fetch_add(1, Ordering::Relaxed);
        work();
        self.0.inside.fetch_sub(1, Ordering::Relaxed);
    }
}

struct NoTimer;

#[async_trait::async_trait]
impl strata_core::ports::Timer for NoTimer {
    async fn rest(&self, _time: std::time::Duration) {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_prompt_counts_long_texts_through_the_compute_port() {
    let watched = Arc::new(Watched::default());
    let store: Arc<dyn Store> = Arc::new(InMemoryStore::new());
    let engine = Engine::new(
        store,
        Arc::new(Fixed),
        Arc::new(Counter::default()),
        Arc::clone(&watched) as _,
        Settings::default(),
    );
    let engine = engine.with_runtime(Arc::new(WatchedCompute(Arc::clone(&watched))), Arc::new(NoTimer));
    for number in 0..6 {
        let long = format!("Chapter {number} of the logbook. {}", "The ketch sails on. ".repeat(900));
        say(&engine, Role::User, &long).await;
        say(&engine, Role::Assistant, "Noted.").await;
    }
    watched.longest.store(0, Ordering::Relaxed);
    let question = format!("Where does she sail? {}", "Look closely. ".repeat(600));
    for format in [PromptFormat::Flat, PromptFormat::Chat] {
        let request = PromptRequest { format, ..PromptRequest::new(session("s"), question.clone()) };
        engine.prompting.prompt(&ann(), &request).await.unwrap();
    }
    let longest = watched.longest.load(Ordering::Relaxed);
    assert!(longest <= 4 * 1024, "{longest} bytes were counted on the thread of the request");
}

#[tokio::test]
async fn a_recorded_question_is_not_shown_twice() {
    let engine = engine();
    exchange(&engine, 0).await;
    say(&engine, Role::User, "why?").await;
    assert_eq!(flat_text(&engine, "why?").await.matches("why?").count(), 1);
    let messages = chat_messages(&engine, "why?").await;
    assert_eq!(messages.iter().filter(|message| message.content.contains("why?")).count(), 1);
}

#[tokio::test]
async fn a_chat_keeps_its_beginning_between_steps() {
    let engine = engine();
    let (mut before, mut changes) = (Vec::new(), 0);
    for number in 0..40 {
        let messages = chat_messages(&engine, &format!("question {number}")).await;
        let stable = messages.len().min(before.len());
        changes += usize::from(messages.len() < before.len() || messages[..stable] != before[..stable]);
        before = messages[..messages.len() - 1].to_vec();
        exchange(&engine, number).await;
    }
    assert!(changes <= 6, "the beginning changed {changes} times in 40 exchanges");
}

#[tokio::test]
async fn a_chat_recalls_and_its_injected_block_is_not_recorded() {
    let engine = engine();
    let elsewhere = NewMessage::new(Role::User, "My sister Mei lives in Hangzhou");
    engine.recording.record(&ann(), &session("other"), vec![elsewhere], None).await.unwrap();
    let messages = chat_messages(&engine, "Where does my sister live?").await;
    let [ChatMessage { role: Role::User, content }] = &messages[..] else { panic!("{messages:?}") };
    assert!(
        content.starts_with(OPEN)
            && content.contains("[2023-11-14 user, today] My sister Mei lives in Hangzhou"),
        "{content}"
    );
    assert!(content.ends_with(&format!("{CLOSE}\n\nWhere does my sister live?")));
    say(&engine, Role::User, content).await;
    let turns = engine.sessions.turns(&ann(), &session("s"), None, 10).await.unwrap();
    assert_eq!(turns[0].content, "Where does my sister live?");
}

#[tokio::test]
async fn a_clients_own_messages_pass_untouched() {
    let engine = engine();
    exchange(&engine, 0).await;
    let said = |role, content: &str| ChatMessage { role, content: content.to_owned() };
    let given = vec![
        said(Role::System, "Be brief."),
        said(Role::User, &"a very long message ".repeat(10_000)),
        said(Role::Assistant, "<!-- PLOTLY_CHART:x -->"),
        said(Role::User, "10.1.1.47?"),
    ];
    let request = PromptRequest {
        format: PromptFormat::Chat,
        messages: Some(given.clone()),
        ..PromptRequest::new(session("s"), "10.1.1.47?")
    };
    let PromptBody::Messages(messages) = engine.prompting.prompt(&ann(), &request).await.unwrap().prompt.body
    else {
        panic!("no messages")
    };
    assert_eq!(messages[..3], given[..3]);
    assert!(messages[3].content.contains("Device: 10.1.1.47") && messages[3].content.ends_with("10.1.1.47?"));
}

#[tokio::test]
async fn settings_are_checked() {
    let settings = PromptSettings { enrichment: Some("@tag".to_owned()), ..PromptSettings::default() };
    assert!(engine().with_prompts(settings).is_err());
    let twice = PromptSettings { profiles: vec![Profile::diagnostic(); 2], ..PromptSettings::default() };
    assert!(engine().with_prompts(twice).is_err());
    let none = PromptSettings {
        profiles: Vec::new(),
        recent_exchanges: 0,
        fold_step: 0,
        ..PromptSettings::default()
    };
    let engine = engine().with_prompts(none).unwrap();
    exchange(&engine, 0).await;
    say(&engine, Role::Assistant, "Root cause: none is read").await;
    let text = flat_text(&engine, "10.1.1.47?").await;
    assert!(!text.contains("recent_conversation") && text.contains("answer 0"), "{text}");
}
