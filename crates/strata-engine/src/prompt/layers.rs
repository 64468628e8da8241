//! The layers that both renderers share: the choice of recent messages, and the profiles' fields as text.

use serde_json::{Map, Value};

use super::extract::{Rules, fields_of};
use super::profile::Profile;
use super::tasks::shown_tasks;
use super::{Layer, Message};
use crate::neutral::{neutral_tags, quote_lines};
use strata_core::state::{DiagnosticState, DiagnosticStatus, State};
use strata_core::turn::Role;

/// The number of items of each list that stay until the list is cut entirely.
const LEAST_ITEMS: usize = 3;

/// The most items of a list in a prompt, the newest of them: of findings as in the layered-prompt design, of the other
/// lists enough for one case.
const SHOWN_FINDINGS: usize = 20;
const SHOWN_OTHERS: usize = 12;
const SHOWN_FACTS: usize = 8;

/// The layer of the tasks.
const TASKS: &str = "task_context";

/// The index of the first recent message. The recent messages hold the last `exchanges` questions and answers, with the
/// tool and system messages between them, but at most twice as many messages in total.
pub(crate) fn recent_start(messages: &[Message], exchanges: usize) -> usize {
    let (mut spoken, mut all) = (0, 0);
    for (place, message) in messages.iter().enumerate().rev() {
        let is_spoken = matches!(message.role, Role::User | Role::Assistant);
        spoken += usize::from(is_spoken);
        all += 1;
        if spoken > 2 * exchanges || all > 4 * exchanges {
            return place + 1;
        }
    }
    0
}

/// Whether a text holds the address of a device.
pub fn is_device(text: &str) -> bool {
    device_address(text).is_some()
}

/// The address of a device in a text.
pub(super) fn device_address(text: &str) -> Option<&str> {
    Rules::built_in().device_address(text)
}

/// The layers with the known facts and tasks.
pub(crate) fn context_texts(state: &State, rules: &Rules) -> Vec<String> {
    Context::all(rules, state).iter().map(Context::text).collect()
}

/// The known fields of one profile, as the lines of its layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) tag: String,
    pub(super) note: Option<String>,
    lines: Vec<ContextLine>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ContextLine {
    /// A label and its value.
    Value(String),
    /// A label and a list of names on one line.
    Names(String, Vec<String>),
    /// A label and a list of items below it.
    Items(String, Vec<String>),
}

impl Context {
    /// The contexts of all profiles that have a value.
    pub(super) fn all(rules: &Rules, state: &State) -> Vec<Self> {
        let contexts = rules.profiles().map(|profile| Self {
            tag: format!("{}_context", profile.name),
            note: profile.note.clone(),
            lines: if profile.name == "diagnostic" {
                diagnostic_lines(&state.diagnostic)
            } else {
                profile_lines(profile, &fields_of(profile, state))
            },
        });
        let tasks = Self { tag: TASKS.to_owned(), note: None, lines: task_lines(state) };
        contexts.chain([tasks]).filter(|context| !context.lines.is_empty()).collect()
    }

    /// The lines as text.
    pub(super) fn text(&self) -> String {
        let lines = self.lines.iter().map(|line| match line {
            ContextLine::Value(line) => on_one_line(line),
            ContextLine::Names(label, names) => on_one_line(&format!("{label}: {}", names.join(", "))),
            ContextLine::Items(label, items) => items
                .iter()
                .fold(format!("{label}:"), |text, item| text + "\n  - " + &quote_lines(&on_one_line(item))),
        });
        neutral_tags(&lines.collect::<Vec<_>>().join("\n")).into_owned()
    }

    /// Removes the older half of the longest list. Returns the number of removed items; 0 if all lists are short
    /// already.
    pub(super) fn shorten(&mut self) -> usize {
        let lists = self.lines.iter_mut().filter_map(|line| match line {
            ContextLine::Names(_, items) | ContextLine::Items(_, items) => Some(items),
            ContextLine::Value(_) => None,
        });
        let Some(longest) = lists.max_by_key(|items| items.len()) else { return 0 };
        let over = longest.len().saturating_sub(LEAST_ITEMS);
        let gone = over.min(longest.len().div_ceil(2));
        longest.drain(..gone);
        gone
    }
}

fn diagnostic_lines(state: &DiagnosticState) -> Vec<ContextLine> {
    let mut lines = Vec::new();
    match (&state.device_name, &state.device_ip) {
        (Some(name), Some(address)) => lines.push(ContextLine::Value(format!("Device: {name} ({address})"))),
        (Some(device), None) | (None, Some(device)) => {
            lines.push(ContextLine::Value(format!("Device: {device}")))
        }
        (None, None) => {}
    }
    lines.extend(state.last_log_file.iter().map(|file| ContextLine::Value(format!("Last log: {file}"))));
    if !state.downloaded_logs.is_empty() {
        lines.push(ContextLine::Names("Downloaded".to_owned(), state.downloaded_logs.clone()));
    }
    let lists = [
        ("Key findings", &state.findings, SHOWN_FINDINGS),
        ("Hypotheses", &state.hypotheses, SHOWN_OTHERS),
        ("Ruled out", &state.ruled_out, SHOWN_FACTS),
        ("Root causes", &state.root_causes, SHOWN_OTHERS),
        ("Decisions", &state.decisions, SHOWN_OTHERS),
        ("Constraints", &state.constraints, SHOWN_OTHERS),
        ("Circumstances", &state.facts, SHOWN_FACTS),
    ];
    lines.extend(lists.into_iter().filter_map(|(label, items, most)| newest(label, items, most)));
    // The layered-prompt design shows no status. Only `resolved` gets a line, because the other lines imply that work
    // goes on.
    if state.status == DiagnosticStatus::Resolved {
        lines.push(ContextLine::Value("Status: resolved".to_owned()));
    }
    lines
}

/// The open tasks, and those that are done.
fn task_lines(state: &State) -> Vec<ContextLine> {
    let (open, done) = shown_tasks(state);
    let lines = [newest("Open tasks", &open, SHOWN_OTHERS), newest("Done", &done, SHOWN_FACTS)];
    lines.into_iter().flatten().collect()
}

/// The newest items of a list under its label; none for an empty list.
fn newest(label: &str, items: &[String], most: usize) -> Option<ContextLine> {
    let from = items.len().saturating_sub(most);
    (!items.is_empty()).then(|| ContextLine::Items(label.to_owned(), items[from..].to_vec()))
}

fn profile_lines(profile: &Profile, fields: &Map<String, Value>) -> Vec<ContextLine> {
    let mut lines = Vec::new();
    for field in &profile.fields {
        match fields.get(&field.name) {
            Some(Value::String(value)) if !value.is_empty() => {
                lines.push(ContextLine::Value(format!("{}: {value}", field.label)));
            }
            Some(Value::Array(items)) if !items.is_empty() => {
                let items =
                    items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
                lines.push(ContextLine::Items(field.label.clone(), items.collect()));
            }
            _ => {}
        }
    }
    if let Some(status) = &profile.status
        && let Some(Value::String(value)) = fields.get(&status.field)
        && *value != status.initial
    {
        lines.push(ContextLine::Value(format!("Status: {value}")));
    }
    lines
}

/// A value on one line, so that it cannot imitate the next one.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A layer's entry, if it has any text.
pub(super) fn layer(name: impl Into<String>, tokens: u32) -> Option<Layer> {
    (tokens > 0).then(|| Layer { name: name.into(), tokens })
}
