//! A conversation full of logs, with budgets of any size.

use proptest::prelude::*;

use super::*;

/// Exchange `number` of a conversation as the layered-prompt design describes it: long replies with charts, tables and
/// raw logs, about 5,000 characters for a question and its answer.
fn exchange(number: usize) -> [Message; 2] {
    let question = if number.is_multiple_of(2) {
        format!(
            "10.1.1.47 plot temp control, part {number}, and tell me what changed since yesterday evening."
        )
    } else {
        format!("第 {number} 個問題：為什麼溫度在半夜會波動？可以把昨天晚上的記錄再檢查一次嗎？")
    };
    let mut reply = format!("Downloaded InstrumentDebug_2026-02-{:02}_23-24-45.39.log.\n\n", number % 28 + 1);
    reply.push_str("Key findings:\n");
    reply.push_str(&format!("- Zone {number} oscillates by ±0.{number}°C within its band\n\n"));
    reply.push_str(&format!("<!-- PLOTLY_CHART:{{\"data\":[{}]}} -->\n\n", "1.25,".repeat(100)));
    for line in 0..34 {
        reply.push_str(&format!(
            "[2026-02-19 23:24:{:02}.{number:03}] PID id={line} setpoint=37.0 actual=37.{line:02} kp=0.09 out=45.{line}\n",
            line % 60
        ));
    }
    reply.push_str("\n| zone | kp | ki | kd |\n|---|---|---|---|\n");
    for line in 0..40 {
        reply.push_str(&format!("| {line} | 0.09 | 0.012 | 0.000 |\n"));
    }
    reply.push_str("\nThe controller holds its setpoints. Power stays at about 45 % for all zones. ");
    reply.push_str(
        "溫度控制正常，沒有發散的跡象。\n\nTemperature control healthy, no instability or divergence.",
    );
    [Message::new(Role::User, question), Message::new(Role::Assistant, reply)]
}

fn tokens_at(turn: usize) -> (u32, usize) {
    let rules = rules();
    let settings = PromptSettings::default();
    let (mut summary, mut state, mut waiting, mut raw) = (String::new(), State::default(), Vec::new(), 0);
    for number in 1..turn {
        let [question, reply] = exchange(number);
        raw += question.content.chars().count() + reply.content.chars().count();
        rules.observe(Role::User, &question.content, &settings.filter, &mut state);
        rules.observe(Role::Assistant, &reply.content, &settings.filter, &mut state);
        waiting.extend([question, reply]);
        let leaving = recent_start(&waiting, settings.recent_exchanges);
        let gone: Vec<_> = waiting.drain(..leaving).collect();
        summary = build_summary(&summary, &gone);
    }
    let [question, _] = exchange(turn);
    (build_prompt(&question.content, &waiting, &state, &summary, true).prompt.tokens, raw)
}

#[test]
fn fifty_thousand_characters_become_a_few_thousand_tokens() {
    assert!(tokens_at(11).1 >= 45_000, "the conversation has {} characters only", tokens_at(11).1);
    for (turn, most) in [(1, 2_000), (5, 6_000), (10, 8_000), (500, 8_000)] {
        let (tokens, _) = tokens_at(turn);
        assert!(tokens <= most, "turn {turn} takes {tokens} tokens");
    }
}

#[test]
fn layers_are_cut_in_the_documented_order() {
    let messages: Vec<_> = (0..3).flat_map(exchange).collect();
    let summary = build_summary("", &(3..9).flat_map(exchange).collect::<Vec<_>>());
    let mut state = state();
    state.diagnostic.hypotheses = (0..12).map(|number| format!("hypothesis number {number}")).collect();
    let mut seen: Vec<String> = Vec::new();
    for max_tokens in (0..5_000).rev().step_by(25) {
        let settings = PromptSettings { max_tokens, ..PromptSettings::default() };
        let recent = &messages;
        let layers =
            FlatLayers { question: "why?", state: &state, summary: &summary, recent, is_device: true };
        for cut in flat(layers, rules(), &settings, &EstimatedTokens).cut {
            if !seen.contains(&cut.layer) {
                seen.push(cut.layer);
            }
        }
    }
    assert_eq!(seen, ["recent_conversation", "conversation_summary", "diagnostic_context", "note"]);
}

#[test]
fn cuts_are_reported() {
    let messages: Vec<_> = (0..3).flat_map(exchange).collect();
    let settings = PromptSettings { max_tokens: 1_400, ..PromptSettings::default() };
    let state = &state();
    let layers = FlatLayers { question: "why?", state, summary: "", recent: &messages, is_device: true };
    let prompt = flat(layers, rules(), &settings, &EstimatedTokens);
    insta::assert_json_snapshot!(prompt.cut, @r#"
    [
      {
        "layer": "recent_conversation",
        "count": 2,
        "what": "oldest messages, which went into the summary"
      }
    ]
    "#);
    assert!(
        prompt.text().unwrap().contains("<conversation_summary>\nUser: 10.1.1.47 plot temp control, part 0")
    );
}

/// A pasted log is the question: the layers are those of a short question.
#[test]
fn a_long_question_cuts_no_layer() {
    let messages: Vec<_> = (0..3).flat_map(exchange).collect();
    let settings = PromptSettings::default();
    let state = &state();
    let summary = build_summary("", &(3..9).flat_map(exchange).collect::<Vec<_>>());
    let asked = ["为什么又停了？", "why did it stop again?"];
    for line in ["2026-03-04 ERROR pump 7 stalled at 41 rpm\n", "三月四日 水泵七号 转速过低\n"] {
        for asked in asked {
            let log = format!("{asked}\n{}", line.repeat(3_000));
            assert!(EstimatedTokens.count(&log) > 2 * settings.max_tokens);
            let of = |question: &str| {
                let layers =
                    FlatLayers { question, state, summary: &summary, recent: &messages, is_device: true };
                let flat = flat(layers, rules(), &settings, &EstimatedTokens);
                let said = messages.iter().map(|message| {
                    let Message { role, content, .. } = message.clone();
                    ChatMessage { role, content }
                });
                let question = ChatMessage { role: Role::User, content: question.to_owned() };
                let said: Vec<_> = said.chain([question]).collect();
                let max_tokens = Some(settings.max_tokens);
                let layers = ChatLayers {
                    messages: &said,
                    state,
                    summary: &summary,
                    memories: &[],
                    max_tokens,
                    now: None,
                };
                let chat = chat(layers, rules(), &settings, &EstimatedTokens);
                let names = |prompt: &Prompt| {
                    let layers = prompt.layers.iter().filter(|layer| layer.name != "question");
                    layers.map(|layer| (layer.name.clone(), layer.tokens)).collect::<Vec<_>>()
                };
                (flat.cut.clone(), names(&flat), chat.cut.clone(), names(&chat))
            };
            assert_eq!(of(&log), of(asked));
        }
    }
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop::sample::select(vec![Role::User, Role::Assistant, Role::Tool, Role::System]);
    (role, "(?s)[a-z .。\n\\[\\]<>`西👨🏽]{0,300}").prop_map(|(role, content)| Message::new(role, content))
}

/// Counts one token per character, more than any real vocabulary.
struct Characters;

impl TokenCounter for Characters {
    fn count(&self, text: &str) -> u32 {
        text.chars().count() as u32
    }
}

proptest! {
    #[test]
    fn a_prompt_never_exceeds_its_budget(
        question in "[a-z西 ]{1,60}",
        messages in proptest::collection::vec(message(), 0..12),
        findings in proptest::collection::vec("[a-z西 ]{1,80}", 0..20),
        summary in "[a-z. \n]{0,300}",
        max_tokens in 0_u32..2_000,
    ) {
        let mut state = state();
        state.diagnostic.findings = findings;
        let settings = PromptSettings { max_tokens, ..PromptSettings::default() };
        for counter in [&EstimatedTokens as &dyn TokenCounter, &Characters] {
            let layers =
                FlatLayers { question: &question, state: &state, summary: &summary, recent: &messages, is_device: true };
            let prompt = build_prompt_with(layers, rules(), &settings, counter).prompt;
            let text = prompt.text().unwrap();
            prop_assert!(text.starts_with(&question));
            prop_assert_eq!(prompt.tokens, counter.count(text));
            prop_assert!(prompt.tokens <= max_tokens + counter.count(&question));
            let messages: Vec<_> = messages
                .iter()
                .map(|message| ChatMessage { role: message.role, content: message.content.clone() })
                .chain([ChatMessage { role: Role::User, content: question.clone() }])
                .collect();
            let layers =
                ChatLayers { messages: &messages, state: &state, summary: &summary, memories: &[], max_tokens: Some(max_tokens), now: None };
            let prompt = chat(layers, rules(), &settings, counter);
            let least: u32 = prompt.messages().unwrap().iter().map(|message| counter.count(&message.content) + 4).sum();
            prop_assert!(prompt.messages().unwrap().last().unwrap().content.ends_with(&question));
            let is_bare = prompt.layers.iter().all(|layer| ["messages", "question"].contains(&layer.name.as_str()));
            let most = max_tokens + counter.count(&question) + 4;
            prop_assert!(prompt.tokens <= most || is_bare, "{} tokens of {}", prompt.tokens, most);
            prop_assert!(least <= prompt.tokens + 1);
        }
    }
}
