//! Recent turns fill the budget.

use super::*;
use strata_core::memory::Memory;
use strata_core::store::Change;
use strata_core::store::conformance::fixture::{deleted, memory};

const COUNT: usize = 60;

fn told(number: usize) -> (String, String) {
    let answer = match number % 3 {
        0 => format!("Hive {number} has {} frames. Nice weather today!", 100 + number),
        1 => format!("{number}号蜂箱有{}框蜂。天气真好！", 200 + number),
        _ => format!("The queen of hive {number} is marked blue, no. {}.", 300 + number),
    };
    (format!("How is hive {number} doing?"), answer)
}

async fn talk(engine: &Engine) {
    for number in 0..COUNT {
        let (question, answer) = told(number);
        say(engine, Role::User, &question).await;
        say(engine, Role::Assistant, &answer).await;
    }
}

async fn prompt_of(engine: &Engine, format: PromptFormat) -> (String, Prompt) {
    let request = PromptRequest { format, ..PromptRequest::new(session("s"), "and then?") };
    let prompt = engine.prompting.prompt(&ann(), &request).await.unwrap().prompt;
    let text = match &prompt.body {
        PromptBody::Text(text) => text.clone(),
        PromptBody::Messages(messages) => {
            messages.iter().map(|message| format!("{}\n", message.content)).collect()
        }
    };
    (text, prompt)
}

#[tokio::test]
async fn a_conversation_that_fits_is_shown_as_it_was_said() {
    for format in [PromptFormat::Flat, PromptFormat::Chat] {
        let engine = engine_with(History::Auto, 8_000);
        talk(&engine).await;
        assert!(!engine.summaries.list(&ann(), &session("s"), 1).await.unwrap().is_empty());
        let (text, prompt) = prompt_of(&engine, format).await;
        for number in 0..COUNT {
            let (question, answer) = told(number);
            assert_eq!(text.matches(&question).count(), 1, "{text}");
            assert_eq!(text.matches(&answer).count(), 1, "{text}");
        }
        assert!(!text.contains("<conversation_summary>") && prompt.cut.is_empty(), "{text}");
    }
}

#[tokio::test]
async fn a_longer_one_shows_its_last_turns_and_sums_up_the_others() {
    for format in [PromptFormat::Flat, PromptFormat::Chat] {
        for budget in [600, 1_200, 2_000] {
            let engine = engine_with(History::Auto, budget);
            talk(&engine).await;
            let (text, prompt) = prompt_of(&engine, format).await;
            assert!(prompt.tokens <= budget + 20, "{} tokens of {budget}", prompt.tokens);
            let shown = |number: usize| text.matches(told(number).1.as_str()).count();
            assert!((0..COUNT).all(|number| shown(number) <= 1), "{text}");
            assert!((COUNT - 3..COUNT).all(|number| shown(number) == 1), "the recent exchanges: {text}");
            assert!(text.contains("<conversation_summary>"), "{text}");
            // Numbers outlast pleasantries.
            let kept = (0..COUNT - 3).filter(|number| {
                let value = (100 + 100 * (number % 3) + number).to_string();
                text.contains(&value)
            });
            let least = if budget == 600 { 12 } else { 30 };
            assert!(kept.count() >= least, "within {budget}: {text}");
        }
    }
}

#[tokio::test]
async fn the_designs_number_of_recent_turns_is_a_setting() {
    let engine = engine_with(History::Rolling, 8_000);
    talk(&engine).await;
    let (text, _) = prompt_of(&engine, PromptFormat::Flat).await;
    let recent = text.split("recent_conversation>").nth(1).unwrap();
    assert_eq!(recent.matches("[2023-11-14 ").count(), 6, "{recent}");
}

#[tokio::test]
async fn what_was_taken_back_is_not_shown_among_older_turns() {
    for format in [PromptFormat::Flat, PromptFormat::Chat] {
        let engine = engine_with(History::Auto, 8_000);
        say(&engine, Role::User, "I keep bees. My sister Ines works at the lighthouse in Aveiro.").await;
        say(&engine, Role::Assistant, "Noted.").await;
        talk(&engine).await;
        let taken_back = "The user's sister Ines works at the lighthouse in Aveiro";
        let gone = Memory { hidden: deleted(1), ..memory(taken_back) };
        let add = ChangeSet::one(at(90), Change::AddMemory(Box::new(gone)));
        engine.store().apply(&ann(), add).await.unwrap();
        let (text, _) = prompt_of(&engine, format).await;
        assert!(text.contains("I keep bees.") && !text.contains("Aveiro"), "{text}");
    }
}

/// A destroyed memory leaves nothing to recognise its sentence by, so its turn says it until the turn is taken back.
#[tokio::test]
async fn a_destroyed_memory_is_said_until_its_turn_is_taken_back() {
    let engine = engine_with(History::Auto, 1_500);
    say(&engine, Role::User, "我妹妹在阿威罗的灯塔工作。The gate code is 4471.").await;
    say(&engine, Role::Assistant, "Noted.").await;
    talk(&engine).await;
    let stated = memory("The gate code is 4471");
    let id = stated.id;
    engine.store().apply(&ann(), ChangeSet::one(at(90), Change::AddMemory(Box::new(stated)))).await.unwrap();
    engine.memories.forget(&ann(), id).await.unwrap();
    let turns = engine.sessions.turns(&ann(), &session("s"), None, 1).await.unwrap();
    for (is_taken_back, expected) in [(false, true), (true, false)] {
        if is_taken_back {
            let hidden = Some(Hidden { reason: HiddenReason::Deleted, at: at(95) });
            let hide = Change::HideTurns { ids: vec![turns[0].id], hidden };
            engine.store().apply(&ann(), ChangeSet::one(at(95), hide)).await.unwrap();
        }
        for format in [PromptFormat::Flat, PromptFormat::Chat] {
            let request =
                PromptRequest { format, ..PromptRequest::new(session("s"), "What is the gate code?") };
            let prompt = engine.prompting.prompt(&ann(), &request).await.unwrap().prompt;
            let said = format!("{:?}", prompt.body).contains("4471");
            assert_eq!(said, expected, "taken back: {is_taken_back}, {:?}", prompt.body);
        }
    }
}

#[tokio::test]
async fn a_chat_that_no_longer_fits_keeps_its_beginning_between_steps() {
    let engine = engine_with(History::Auto, 800);
    talk(&engine).await;
    let (mut before, mut changes) = (Vec::new(), 0);
    for number in 0..30 {
        let messages = chat_messages(&engine, &format!("question {number}")).await;
        let stable = messages.len().min(before.len());
        changes += usize::from(messages.len() < before.len() || messages[..stable] != before[..stable]);
        before = messages[..messages.len() - 1].to_vec();
        exchange(&engine, number).await;
    }
    // 60 messages are five steps of 12; messages of other lengths add a few.
    assert!(changes <= 8, "the beginning changed {changes} times in 30 exchanges");
}
