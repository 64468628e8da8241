//! The subject of a session: the device that it is about. A change of the subject archives what is known about it.

use strata_core::state::{DiagnosticState, DiagnosticStatus, State};
use strata_language::Pattern;

/// The most archived subjects. The one that was left first goes first.
const MAX_ARCHIVED: usize = 8;

/// Archives the subject before a turn if the turn came to another one, and brings the other one back if it is known.
///
/// Two states are about the same device if they agree in its address, or in its name while an address is missing. A state
/// without a device is about whichever one is named first.
///
/// A device that is merely mentioned changes nothing: the turn has to begin with it, ask about it, or turn to it in words.
pub(super) fn follow(before: DiagnosticState, content: &str, seq: u64, state: &mut State) {
    let now = &mut state.diagnostic;
    // Another name without an address is another device's.
    if now.device_name != before.device_name
        && before.device_name.is_some()
        && now.device_ip == before.device_ip
    {
        now.device_ip = None;
    }
    if !has_device(&before) || !has_device(now) || is_same(&before, now) {
        return;
    }
    if !is_turned(content, &before, now) {
        (now.device_ip, now.device_name) = (before.device_ip, before.device_name);
        return;
    }
    let known = state.archived.iter().position(|subject| is_same(subject, now));
    let subject = known.map(|place| state.archived.remove(place)).unwrap_or_default();
    let read = std::mem::replace(now, DiagnosticState { since: seq, ..subject });
    move_new(read, &before, now);
    state.archived.push(before);
    let over = state.archived.len().saturating_sub(MAX_ARCHIVED);
    state.archived.drain(..over);
}

/// Moves what a turn added to the subject that it came to. The rest is the old subject's.
fn move_new(read: DiagnosticState, before: &DiagnosticState, subject: &mut DiagnosticState) {
    let DiagnosticState {
        device_ip,
        device_name,
        last_log_file,
        downloaded_logs,
        findings,
        hypotheses,
        root_causes,
        status,
        ..
    } = read;
    subject.device_ip = device_ip.or(subject.device_ip.take());
    subject.device_name = device_name.or(subject.device_name.take());
    if last_log_file != before.last_log_file {
        subject.last_log_file = last_log_file;
    }
    let lists = [
        (downloaded_logs, &before.downloaded_logs, &mut subject.downloaded_logs),
        (findings, &before.findings, &mut subject.findings),
        (hypotheses, &before.hypotheses, &mut subject.hypotheses),
        (root_causes, &before.root_causes, &mut subject.root_causes),
    ];
    for (read, old, target) in lists {
        let new = |item: &String| !old.contains(item) && !target.contains(item);
        let new: Vec<String> = read.into_iter().filter(new).collect();
        target.extend(new);
    }
    if subject.status == DiagnosticStatus::Idle || status != before.status {
        subject.status = status;
    }
}

/// Whether a message turns to one of the devices that it names.
fn is_turned(content: &str, before: &DiagnosticState, now: &DiagnosticState) -> bool {
    let devices = [(&now.device_ip, &before.device_ip), (&now.device_name, &before.device_name)];
    let new = devices.into_iter().filter(|(now, before)| now != before);
    new.filter_map(|(now, _)| now.as_deref()).any(|device| turns_to(content, device))
}

/// Whether a message turns to a device: it begins with it, asks about it, or says so.
fn turns_to(content: &str, device: &str) -> bool {
    static CUE: Pattern = Pattern::new(
        r"(?i)(?-u:\b)(?:now|next|switch(?:ing)? to|turn(?:ing)? to|move on to|back to|back on|look at|check|about|same for|as for|another|the other|instead|take)(?-u:\b)|现在|現在|接下来|接下來|换|換|回到|另一|看看|再看|那么|那麼",
    );
    let Some(at) = content.find(device) else { return false };
    let from = content[..at].rfind(['\n', '。', '！', '？', '!', '?']).map_or(0, |stop| stop + 1);
    let from = (from..=at).find(|from| content.is_char_boundary(*from)).unwrap_or(at);
    let before = &content[from..at];
    let rest = &content[at..];
    let is_leading =
        at <= content.len() - content.trim_start().len() || before.split_whitespace().count() <= 1;
    let asks = rest.find(['\n', '。', '?', '？']).is_some_and(|stop| rest[stop..].starts_with(['?', '？']));
    is_leading || asks || CUE.is_match(before)
}

fn has_device(state: &DiagnosticState) -> bool {
    state.device_ip.is_some() || state.device_name.is_some()
}

fn is_same(one: &DiagnosticState, other: &DiagnosticState) -> bool {
    let fold =
        |name: &Option<String>| name.as_deref().map(|name| name.to_lowercase().replace(['-', '_', ' '], ""));
    match (&one.device_ip, &other.device_ip) {
        (Some(one), Some(other)) => one == other,
        _ => fold(&one.device_name).is_some_and(|name| fold(&other.device_name) == Some(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::{FilterSettings, Rules};
    use strata_core::turn::Role;

    fn say(state: &mut State, role: Role, text: &str, seq: u64) {
        Rules::built_in().observe_turn(role, text, seq, &FilterSettings::default(), state);
    }

    #[test]
    fn another_subject_archives_the_old_one_and_a_return_brings_it_back() {
        let mut state = State::default();
        say(&mut state, Role::User, "192.168.7.20 loses its link", 0);
        say(&mut state, Role::Assistant, "Key finding: the cable is cut", 1);
        say(&mut state, Role::Assistant, "Root cause: a fox bit it", 2);
        say(&mut state, Role::User, "What about 192.168.7.31?", 3);
        assert_eq!(state.diagnostic.device_ip.as_deref(), Some("192.168.7.31"));
        assert!(state.diagnostic.findings.is_empty() && state.diagnostic.root_causes.is_empty());
        say(&mut state, Role::Assistant, "Key finding: the fan is loud", 4);
        say(&mut state, Role::User, "Back to 192.168.7.20, please", 5);
        let now = &state.diagnostic;
        assert_eq!((now.findings.len(), now.root_causes.len(), now.since), (1, 1, 5));
        assert_eq!(state.archived.len(), 1);
        assert_eq!(state.archived[0].findings, ["the fan is loud"]);
    }

    #[test]
    fn a_device_that_is_merely_mentioned_changes_nothing() {
        let mut state = State::default();
        say(&mut state, Role::User, "server hut-12 reboots at night", 0);
        say(&mut state, Role::Assistant, "Root cause: the timer of the heater", 1);
        say(&mut state, Role::User, "I moved the script to the replica 10.9.8.7 last week.", 2);
        assert_eq!(state.diagnostic.device_name.as_deref(), Some("hut-12"));
        assert_eq!((state.diagnostic.root_causes.len(), state.archived.len()), (1, 0));
        say(&mut state, Role::User, "现在看看服务器 hut-13", 3);
        assert_eq!(state.diagnostic.device_name.as_deref(), Some("hut-13"));
        assert!(state.diagnostic.root_causes.is_empty());
    }
}
