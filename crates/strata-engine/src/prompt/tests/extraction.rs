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

#[test]
fn a_cause_that_is_denied_or_supposed_is_none() {
    for reply in [
        "I don't think the root cause is the mainspring.",
        "I doubt the root cause is the mainspring.",
        "If the root cause is the mainspring, it would stop at once.",
        "The root cause is not the mainspring.",
        "The root cause is probably the mainspring.",
        "我不认为根本原因是发条。",
        "如果根因是发条，它会马上停。",
    ] {
        assert!(after(&[reply]).root_causes.is_empty(), "{reply}");
    }
    assert_eq!(after(&["It ran. The root cause is the mainspring."]).root_causes, ["the mainspring"]);
}

#[test]
fn numbers_of_versions_sections_and_parts_are_no_devices() {
    for text in [
        "See section 3.1.2.4 of the lease.",
        "The part no. 7.12.33.4 is sold out",
        "clause 10.4.2.1 says so",
        "v2.10.4.1 is out",
        "firmware 2.10.4.1 is out",
        "We upgraded it to 2.10.4.1 yesterday",
        "合同第 3.1.2.4 条",
        "固件版本 2.10.4.1",
        "The network is 10.20.0.0/16.",
        "203.0.113.77 - - [04/May/2031:10:15:32 +0000] \"GET /kiln HTTP/1.1\" 200 17",
        "2031/05/04 10:15:32 [error] 31#31: upstream timed out, client: 203.0.113.77, server: kiln",
    ] {
        let state = Rules::built_in().read_alone(Role::User, text, &FilterSettings::default()).diagnostic;
        assert_eq!(state.device_ip, None, "{text}");
        assert!(!is_device(text), "{text}");
    }
    for text in ["192.168.40.9 beeps", "Why does http://192.168.40.9/admin hang?", "机台 192.168.40.9。"] {
        assert!(is_device(text), "{text}");
    }
}

#[test]
fn devices_have_names_and_serial_numbers_too() {
    for (text, name) in [
        ("the server barn-03 is slow", Some("barn-03")),
        ("host press2.example.net is down", Some("press2.example.net")),
        ("服务器 barn-03 很慢", Some("barn-03")),
        ("its serial number is KX-90412", Some("KX-90412")),
        ("序列号：KX90412", Some("KX90412")),
        ("the server v2 is slow", None),
        ("the server is slow", None),
    ] {
        let state = Rules::built_in().read_alone(Role::User, text, &FilterSettings::default()).diagnostic;
        assert_eq!(state.device_name.as_deref(), name, "{text}");
    }
}

#[test]
fn a_log_that_is_merely_named_is_not_downloaded() {
    for reply in [
        "Please look at kiln.log next.",
        "kiln.log has not been downloaded.",
        "It writes to kiln.log.",
        "请下载 kiln.log。",
    ] {
        assert!(after(&[reply]).downloaded_logs.is_empty(), "{reply}");
    }
    for reply in ["I fetched kiln.log.", "We have read kiln.log.", "已下载 kiln.log。"] {
        assert_eq!(after(&[reply]).downloaded_logs, ["kiln.log"], "{reply}");
    }
}
