//! The subject of a session: the device that it is about, or whatever else its speakers work on. A change of the subject
//! archives what is known about it, with the fields of the profiles, and a return brings it back.
//!
//! The word patterns know a subject by its device ([`follow`]). The reader knows one without a device by what was said about
//! it ([`crate::case`]), and changes it with [`begin`] and [`return_to`]. Tasks stay: what is still to be done does not
//! depend on what is being talked about.

use serde_json::{Map, Value};
use strata_core::state::{DiagnosticState, DiagnosticStatus, State};
use strata_language::Pattern;

/// The most archived subjects. The one that was left first goes first.
const MAX_ARCHIVED: usize = 8;

/// The state's field for the profiles' fields of archived subjects, by the turn with which the session came to the subject.
const ARCHIVED_PROFILES: &str = "archived_profiles";

/// What a session knew about its subject before a turn.
pub(super) struct Before {
    diagnostic: DiagnosticState,
    fields: Map<String, Value>,
}

impl Before {
    pub(super) fn of(state: &State) -> Self {
        Self { diagnostic: state.diagnostic.clone(), fields: profile_fields(state) }
    }
}

/// Archives the subject before a turn if the turn came to another device, and brings the other one back if it is known.
/// Returns whether it did; then the fields of the profiles are those of the new subject before the turn.
///
/// Two states are about the same device if they agree in its address, or in its name while an address is missing. A state
/// without a device is about whichever one is named first.
///
/// A device that is merely mentioned changes nothing: the turn has to begin with it, ask about it, or turn to it in words.
pub(super) fn follow(before: Before, content: &str, seq: u64, state: &mut State) -> bool {
    let Before { diagnostic: before, fields } = before;
    let now = &mut state.diagnostic;
    // Another name without an address is another device's.
    if now.device_name != before.device_name
        && before.device_name.is_some()
        && now.device_ip == before.device_ip
    {
        now.device_ip = None;
    }
    if !has_device(&before) || !has_device(now) || is_same(&before, now) {
        return false;
    }
    if !is_turned(content, &before, now) {
        (now.device_ip, now.device_name) = (before.device_ip, before.device_name);
        return false;
    }
    let known = state.archived.iter().position(|subject| is_same(subject, &state.diagnostic));
    let (subject, known_fields) = known.map(|place| take_archived(state, place)).unwrap_or_default();
    let read = std::mem::replace(&mut state.diagnostic, DiagnosticState { since: seq, ..subject });
    move_new(read, &before, &mut state.diagnostic);
    replace_fields(state, known_fields);
    archive(state, before, fields);
    true
}

/// Begins another subject with the turn `seq`. `read` is what the word patterns read in this turn, which is already in the
/// state.
pub(crate) fn begin(state: &mut State, read: &State, seq: u64) {
    let mut fields = replace_fields(state, profile_fields(read));
    remove_known(&mut fields, &profile_fields(read));
    let mut before = std::mem::take(&mut state.diagnostic);
    let values = &read.diagnostic;
    for (list, new) in [
        (&mut before.findings, &values.findings),
        (&mut before.hypotheses, &values.hypotheses),
        (&mut before.root_causes, &values.root_causes),
    ] {
        list.retain(|item| !new.contains(item));
    }
    state.diagnostic.since = seq;
    move_new(values.clone(), &DiagnosticState::default(), &mut state.diagnostic);
    archive(state, before, fields);
}

/// Returns to an archived subject with the turn `seq`.
pub(crate) fn return_to(state: &mut State, place: usize, seq: u64) {
    let (subject, known_fields) = take_archived(state, place);
    let fields = replace_fields(state, known_fields);
    let before = std::mem::replace(&mut state.diagnostic, DiagnosticState { since: seq, ..subject });
    archive(state, before, fields);
}

/// Takes back the change to the present subject, which turned out to be none: the latest archived subject is the present one
/// again.
pub(crate) fn undo(state: &mut State) {
    if let Some(last) = state.archived.len().checked_sub(1) {
        let (subject, fields) = take_archived(state, last);
        state.diagnostic = subject;
        replace_fields(state, fields);
    }
}

/// Adds what a turn says alone to the profiles' fields.
pub(super) fn add_fields(state: &mut State, read: &State) {
    state.extra.extend(profile_fields(read));
}

/// Whether the subject has a device, so that the word patterns follow it.
pub(crate) fn has_device(state: &DiagnosticState) -> bool {
    state.device_ip.is_some() || state.device_name.is_some()
}

fn archive(state: &mut State, subject: DiagnosticState, fields: Map<String, Value>) {
    if !fields.is_empty() {
        let known = state.extra.entry(ARCHIVED_PROFILES).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(known) = known {
            known.insert(subject.since.to_string(), Value::Object(fields));
        }
    }
    state.archived.push(subject);
    while state.archived.len() > MAX_ARCHIVED {
        take_archived(state, 0);
    }
}

/// Takes a subject out of the archive, with its fields.
fn take_archived(state: &mut State, place: usize) -> (DiagnosticState, Map<String, Value>) {
    let subject = state.archived.remove(place);
    let Some(Value::Object(known)) = state.extra.get_mut(ARCHIVED_PROFILES) else {
        return (subject, Map::new());
    };
    let fields = known.remove(&subject.since.to_string());
    if known.is_empty() {
        state.extra.remove(ARCHIVED_PROFILES);
    }
    match fields {
        Some(Value::Object(fields)) => (subject, fields),
        _ => (subject, Map::new()),
    }
}

fn is_profile(key: &str) -> bool {
    key.starts_with("profile:")
}

/// The fields of all profiles but `diagnostic`.
fn profile_fields(state: &State) -> Map<String, Value> {
    let fields = state.extra.iter().filter(|(key, _)| is_profile(key));
    fields.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Replaces the fields of all profiles but `diagnostic`, and returns those before.
fn replace_fields(state: &mut State, fields: Map<String, Value>) -> Map<String, Value> {
    let before = profile_fields(state);
    state.extra.retain(|key, _| !is_profile(key));
    state.extra.extend(fields);
    before
}

/// Removes single values that a turn has just written.
fn remove_known(fields: &mut Map<String, Value>, new: &Map<String, Value>) {
    for (profile, values) in fields.iter_mut() {
        let (Value::Object(values), Some(Value::Object(new))) = (values, new.get(profile)) else { continue };
        values.retain(|name, value| !value.is_string() || new.get(name) != Some(value));
    }
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
    fn the_fields_of_profiles_leave_and_return_with_their_device() {
        let mut state = State::default();
        say(&mut state, Role::User, "10.7.7.1 has an incident: severity 2, service: ferry-desk", 0);
        let fields = profile_fields(&state);
        assert!(!fields.is_empty());
        say(&mut state, Role::User, "Now look at 10.7.7.2", 1);
        assert!(profile_fields(&state).is_empty(), "{:?}", state.extra);
        say(&mut state, Role::User, "Back to 10.7.7.1, please", 2);
        assert_eq!(profile_fields(&state), fields);
        assert!(!state.extra.contains_key(ARCHIVED_PROFILES));
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
