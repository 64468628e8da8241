//! The subject of a session: the device that it is about. A change of the subject archives what is known about it.

use strata_core::state::{DiagnosticState, State};

/// The most archived subjects. The one that was left first goes first.
const MAX_ARCHIVED: usize = 8;

/// Archives the subject before a turn if the turn came to another one, and brings the other one back if it is known.
///
/// Two states are about the same device if they agree in its address, or in its name while an address is missing. A state
/// without a device is about whichever one is named first.
pub(super) fn follow(mut before: DiagnosticState, seq: u64, state: &mut State) {
    let now = &mut state.diagnostic;
    // A name without its address is another device's, unless the address came in the same turn.
    if now.device_name != before.device_name
        && before.device_name.is_some()
        && now.device_ip == before.device_ip
    {
        now.device_ip = None;
    }
    if !has_device(&before) || !has_device(now) || is_same(&before, now) {
        return;
    }
    let known = state.archived.iter().position(|subject| is_same(subject, now));
    let mut subject = known.map(|place| state.archived.remove(place)).unwrap_or_default();
    subject.since = seq;
    subject.device_ip = now.device_ip.take().or(subject.device_ip);
    subject.device_name = now.device_name.take().or(subject.device_name);
    // The turn speaks about the new subject: what it adds goes there, and the rest is the old subject's.
    let new = std::mem::replace(now, subject);
    let lists = |of: &mut DiagnosticState| {
        let DiagnosticState { downloaded_logs, findings, hypotheses, root_causes, .. } = of;
        [downloaded_logs, findings, hypotheses, root_causes].map(std::mem::take)
    };
    let mut read = new.clone();
    let (read, mut old) = (lists(&mut read), before.clone());
    let DiagnosticState { downloaded_logs, findings, hypotheses, root_causes, .. } = now;
    let targets = [downloaded_logs, findings, hypotheses, root_causes];
    for ((read, old), target) in read.into_iter().zip(lists(&mut old)).zip(targets) {
        let fresh = read.into_iter().filter(|item| !old.contains(item));
        let fresh: Vec<String> = fresh.filter(|item| !target.contains(item)).collect();
        target.extend(fresh);
    }
    if new.last_log_file != before.last_log_file {
        now.last_log_file = new.last_log_file;
    }
    if new.status != before.status || now.status == Default::default() {
        now.status = new.status;
    }
    before.since = before.since.min(seq);
    state.archived.push(before);
    let over = state.archived.len().saturating_sub(MAX_ARCHIVED);
    state.archived.drain(..over);
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
