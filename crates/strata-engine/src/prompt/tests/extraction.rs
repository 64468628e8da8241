//! The built-in profile reads replies in English and Chinese.

use super::*;

fn after(replies: &[&str]) -> DiagnosticState {
    replies.iter().fold(State::default(), |state, reply| extract_state_updates(reply, state)).diagnostic
}

#[test]
fn logs_are_found() {
    let state = after(&[
        &format!("Downloaded {LOG}."),
        "Then I read InstrumentDebug_2.log and `a.log`, and again a.log.",
    ]);
    assert_eq!(state.downloaded_logs, [LOG, "InstrumentDebug_2.log", "a.log"]);
    assert_eq!(state.last_log_file.as_deref(), Some("a.log"));
    assert_eq!(state.status, DiagnosticStatus::Investigating);
    assert_eq!(after(&["b.log was not found on the device."]), DiagnosticState::default());
    assert_eq!(
        after(&["已下載 InstrumentDebug_3.log，開始分析。"]).last_log_file.as_deref(),
        Some("InstrumentDebug_3.log")
    );
}

#[test]
fn the_user_says_which_device_is_meant() {
    let mut state = State::default();
    let told = |role: Role, text: &str, state: &mut State| {
        rules().observe(role, text, &FilterSettings::default(), state);
        (state.diagnostic.device_ip.clone(), state.diagnostic.device_name.clone())
    };
    let of = |address: &str, name: Option<&str>| (Some(address.to_owned()), name.map(str::to_owned));
    assert_eq!(told(Role::User, "10.1.1.47 為什麼溫度波動？", &mut state), of("10.1.1.47", None));
    let reply = "Device: zspr 052 (10.1.1.47), gateway 10.1.1.1";
    assert_eq!(told(Role::Assistant, reply, &mut state), of("10.1.1.47", Some("zspr 052")));
    assert_eq!(told(Role::User, "and 10.1.1.48?", &mut state), of("10.1.1.48", None), "another device");
    assert_eq!(told(Role::User, "zspr 053 on 10.1.1.49", &mut state), of("10.1.1.49", Some("zspr 053")));
}

#[test]
fn findings_hypotheses_and_causes_are_found() {
    let reply = "\
Overview first.

**Key findings:**
- PID controller stable, PI-dominant (kd ≈ 0)
- Temperature oscillation ±0.15°C within normal band.

## Hypotheses
1. The fan is clogged
2. A loose sensor cable

Nothing else.
- no finding";
    let state = after(&[
        reply,
        "Key finding: PID controller stable",
        "We found that power drops at night. Then it rises.",
    ]);
    let findings = [
        "PID controller stable, PI-dominant (kd ≈ 0)",
        "Temperature oscillation ±0.15°C within normal band",
        "power drops at night",
    ];
    assert_eq!(state.findings, findings);
    assert_eq!(state.hypotheses, ["The fan is clogged", "A loose sensor cable"]);
    let state = after(&[reply, "Root cause: **the fan is clogged**. The issue is resolved."]);
    assert_eq!(state.root_causes, ["the fan is clogged"]);
    assert_eq!(state.hypotheses, ["A loose sensor cable"], "what is confirmed is no suspicion any more");
    assert_eq!(state.status, DiagnosticStatus::Resolved);
}

#[test]
fn chinese_replies_are_read_as_well() {
    let state = after(&["主要发现：\n- 夜间功率下降\n- 温度波动 ±0.15°C\n\n可能是风扇堵塞导致温度升高。"]);
    assert_eq!(state.findings, ["夜间功率下降", "温度波动 ±0.15°C"]);
    assert_eq!(state.hypotheses, ["风扇堵塞"]);
    assert_eq!(state.status, DiagnosticStatus::Investigating);
    let state = after(&["可能是風扇堵塞導致。", "根本原因是風扇堵塞。問題已解決。"]);
    assert_eq!((state.root_causes, state.hypotheses), (vec!["風扇堵塞".to_owned()], Vec::<String>::new()));
    assert_eq!(state.status, DiagnosticStatus::Resolved);
}

#[test]
fn an_unknown_cause_is_not_a_cause() {
    for reply in [
        "The root cause is not yet known.",
        "Root cause: unknown",
        "What is the root cause? Is the root cause the fan?",
        "根本原因是尚不清楚的",
        "The issue is not resolved.",
        "Tell me when the problem is fixed.",
        "問題還沒解決。",
        "[2026-02-19 23:24:45] Root cause: a word in a log",
    ] {
        assert_eq!(after(&[reply]), DiagnosticState::default(), "{reply}");
    }
}

#[test]
fn lists_are_bounded_and_hold_nothing_twice() {
    let mut state = State::default();
    for round in 0..2 {
        for number in 0..50 {
            state =
                extract_state_updates(&format!("Finding: thing number {number} of {round} is odd."), state);
            state =
                extract_state_updates(&format!("Finding: Thing number {number} of {round} is odd"), state);
        }
    }
    assert_eq!(state.diagnostic.findings.len(), 20);
    assert_eq!(state.diagnostic.findings[19], "thing number 49 of 1 is odd");
    let long = format!("Root cause: {}", "a very long story ".repeat(1_000));
    let state = extract_state_updates(&long, state);
    assert!(state.diagnostic.root_causes[0].chars().count() <= 240);
}

#[test]
fn a_megabyte_is_read_at_its_ends() {
    let reply = format!("Root cause: the fan\n{}\nDownloaded z.log.", "x = 1\n".repeat(200_000));
    let state = after(&[&reply]);
    assert_eq!(
        (state.root_causes, state.last_log_file),
        (vec!["the fan".to_owned()], Some("z.log".to_owned()))
    );
}
