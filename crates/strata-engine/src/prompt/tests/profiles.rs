//! Profiles written by users: the example of the documentation, and mistakes.

use serde::Deserialize;
use serde_json::json;

use super::*;

#[derive(Deserialize)]
struct Configuration {
    prompt: PromptSettings,
}

/// The configuration that `docs/prompt.md` shows.
fn documented() -> PromptSettings {
    let page = include_str!("../../../../../docs/prompt.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    toml::from_str::<Configuration>(example).unwrap().prompt
}

#[test]
fn the_worked_example_reads_a_support_desk() {
    let settings = documented();
    let rules = Rules::new(&settings.profiles).unwrap();
    let mut state = State::default();
    let said = [
        (Role::User, "My order SO-20417 has not arrived, I am Mei Lin."),
        (
            Role::Assistant,
            "I am sorry, Mei Lin. I opened ticket #8812.\n\nSymptoms:\n- Parcel stuck in Leipzig\n- No scan since Monday",
        ),
        (Role::Assistant, "I have escalated this to the carrier."),
        (Role::User, "客户：王芳，订单 SO-20418 也没到"),
    ];
    let mut statuses = Vec::new();
    for (role, text) in said {
        rules.observe(role, text, &settings.filter, &mut state);
        statuses.push(state.extra["profile:support"]["status"].clone());
    }
    assert_eq!(statuses, ["open", "open", "escalated", "open"]);
    let expected = json!({
        "order": "SO-20418",
        "ticket": "8812",
        "customer": "王芳",
        "symptoms": ["Parcel stuck in Leipzig", "No scan since Monday"],
        "status": "escalated",
    });
    // The escalation is followed by a new order, so work goes on.
    let expected = {
        let mut fields = expected;
        fields["status"] = json!("open");
        fields
    };
    assert_eq!(state.extra["profile:support"], expected);
    assert_eq!(state.diagnostic, DiagnosticState::default());
    let recent = &[];
    let layers =
        FlatLayers { question: "Where is it?", state: &state, summary: "", recent, is_device: false };
    insta::assert_snapshot!(flat(layers, &rules, &settings, &EstimatedTokens).text().unwrap(), @"
    Where is it?

    <support_context>
    Order: SO-20418
    Ticket: 8812
    Customer: 王芳
    Symptoms:
      - Parcel stuck in Leipzig
      - No scan since Monday
    Status: open
    </support_context>

    <note>Use support_context; do not ask the customer again for what is in it.</note>
    ");
}

#[test]
fn settings_come_back_as_they_were_written() {
    let settings = PromptSettings { enrichment: Some("{question}".to_owned()), ..PromptSettings::default() };
    let text = toml::to_string(&settings).unwrap();
    assert_eq!(toml::from_str::<PromptSettings>(&text).unwrap(), settings);
    assert_eq!(toml::from_str::<PromptSettings>("").unwrap(), PromptSettings::default());
    let error = toml::from_str::<PromptSettings>("max_token = 3").unwrap_err();
    assert!(error.to_string().contains("max_token"), "{error}");
}

#[test]
fn a_profile_that_cannot_be_right_says_why() {
    let check = |profile: serde_json::Value, expected: &str| {
        let profile: Profile = serde_json::from_value(profile).unwrap();
        let error = Rules::new(&[profile]).unwrap_err();
        assert!(error.message().contains(expected), "{error}");
    };
    let field = json!({"name": "a", "label": "A"});
    check(json!({"name": "x", "field": [field], "rule": [{"pattern": "(?P<b>x)"}]}), "no field `b`");
    check(json!({"name": "x", "field": [field], "rule": [{"pattern": "(?P<a>"}]}), "cannot be read");
    check(json!({"name": "x", "field": [field], "rule": [{"section": "x"}]}), "a `section` and a `field`");
    check(json!({"name": "x y", "field": [field]}), "invalid name");
    check(json!({"name": "x", "field": [field], "rule": [{"pattern": "(a{1000}){1000}"}]}), "cannot be read");
    let error = Rules::new(&[Profile::diagnostic(), Profile::diagnostic()]).unwrap_err();
    assert!(error.message().contains("given twice"), "{error}");
}

#[test]
fn a_shipped_profile_waits_for_its_domain() {
    let settings = PromptSettings::default();
    let rules = Rules::built_in();
    let read = |said: &[&str]| -> State {
        let mut state = State::default();
        for text in said {
            rules.observe(Role::User, text, &settings.filter, &mut state);
        }
        state
    };
    let fields =
        |state: &State, name: &str| state.extra.get(&format!("profile:{name}")).cloned().unwrap_or_default();
    let state = read(&["The outage began with release 4.7.1, SEV-2, service ledger-sync."]);
    assert_eq!(
        fields(&state, "incident"),
        json!({"service": "ledger-sync", "severity": "SEV-2", "version": "4.7.1"})
    );
    let state = read(&["我要退款，订单号 70412-9，快递单号 YT778812345"]);
    assert_eq!(fields(&state, "support"), json!({"order": "70412-9", "tracking": "YT778812345"}));
    let state = read(&["The unit tests fail on branch fix/harp-strings in src/harp.rs"]);
    assert_eq!(fields(&state, "coding"), json!({"branch": "fix/harp-strings", "files": ["src/harp.rs"]}));
    let state = read(&["The paper arXiv:2101.00001 reports p = 0.03 on the Oystercatcher dataset."]);
    assert_eq!(
        fields(&state, "research"),
        json!({"sources": ["arXiv:2101.00001"], "datasets": ["Oystercatcher"], "results": ["p = 0.03"]})
    );
    let state = read(&["洗衣机报错 E18，型号是 WD-7012"]);
    assert_eq!(
        fields(&state, "household"),
        json!({"appliance": "洗衣机", "error_code": "E18", "model": "WD-7012"})
    );
    assert!(read(&["I walked to src/harp.rs street with 70412-9 steps."]).extra.is_empty());
    assert!(Profile::named("coding").unwrap().when.is_none() && Profile::named("nothing").is_none());
}
