//! Tasks that the speakers name: todos, and the items of checklists.
//!
//! They stand among the state's `active_tasks`. A note tells them from the tasks of the client, which stay as they are.

use jiff::Timestamp;
use serde_json::Value;
use strata_core::state::{State, Task};
use strata_language::secrets::redacted;

use super::items::{Likeness, likeness, one_line};

/// The status of a task that is open.
const PENDING: &str = "Pending";
/// The status of a task that is done, in the word of the context-store design.
const COMPLETED: &str = "Completed";

/// The key that marks a task that a speaker named.
const SOURCE: &str = "source";
const SAID: &str = "said";
/// The key of the turn in which it was named.
const TURN: &str = "turn";

/// The most open tasks, and the most finished ones. The oldest leave first.
const MAX_OPEN: usize = 40;
const MAX_DONE: usize = 20;

/// Whether a task is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskEnd {
    /// It is open.
    Open,
    /// It is done.
    Done,
}

/// The place and the time of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
}

/// The items of a text's checklists, each with whether it is ticked: `- [ ] …`, `- [x] …`, `☐ …`, `TODO: …`.
pub(crate) fn checklist(text: &str) -> Vec<(String, TaskEnd)> {
    let text = redacted(text);
    let items = text.lines().filter_map(checklist_item);
    items.map(|(item, end)| (one_line(item), end)).filter(|(item, _)| !item.is_empty()).collect()
}

/// Whether a line is an item of a checklist.
pub(crate) fn is_checklist_line(line: &str) -> bool {
    checklist_item(line).is_some()
}

fn checklist_item(line: &str) -> Option<(&str, TaskEnd)> {
    let bare = line.trim_start_matches(['>', ' ', '\t']);
    let bare = without_number(bare).trim_start_matches(['-', '*', '+', '•', '·', '#', ' ']);
    let marks = [
        ("[ ]", TaskEnd::Open),
        ("[]", TaskEnd::Open),
        ("【 】", TaskEnd::Open),
        ("☐", TaskEnd::Open),
        ("□", TaskEnd::Open),
        ("⬜", TaskEnd::Open),
        ("[x]", TaskEnd::Done),
        ("[X]", TaskEnd::Done),
        ("[✓]", TaskEnd::Done),
        ("[✔]", TaskEnd::Done),
        ("☑", TaskEnd::Done),
        ("☒", TaskEnd::Done),
        ("✅", TaskEnd::Done),
        ("✔", TaskEnd::Done),
    ];
    let marked = marks.iter().find_map(|(mark, end)| Some((bare.strip_prefix(mark)?, *end)));
    let (item, end) = marked.or_else(|| Some((labelled(bare)?, TaskEnd::Open)))?;
    // A link `[x](…)` is no box.
    let item = item.trim_start_matches('\u{fe0f}');
    (!item.starts_with('(') && item.chars().any(char::is_alphanumeric)).then_some((item.trim(), end))
}

/// The task behind a label such as `TODO:`.
fn labelled(line: &str) -> Option<&str> {
    let plain = line.trim_start_matches('*');
    let labels = ["todo", "to do", "to-do", "action item", "待办", "待辦", "待办事项", "待辦事項"];
    let (label, task) = plain.split_once([':', '：'])?;
    let label = label.trim_matches(['*', ' ']).to_lowercase();
    let label = label.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, ' ' | '#'));
    labels.contains(&label).then(|| task.trim_start_matches(['*', ' ']))
}

fn without_number(line: &str) -> &str {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let behind = if rest.len() < line.len() { rest.strip_prefix(['.', ')', '、']) } else { None };
    behind.map_or(line, str::trim_start)
}

/// Removes a task that a speaker named.
pub(crate) fn remove_task(state: &mut State, description: &str) {
    state.active_tasks.retain(|task| !(is_said(task) && task.description == description));
}

/// Adds a task, unless an open one says the same. A ticked item ends the task that it names.
pub(crate) fn add_task(state: &mut State, description: &str, end: TaskEnd, moment: Moment) {
    let known = state.active_tasks.iter().position(|task| {
        is_said(task)
            && is_named(task, moment.seq)
            && likeness(&task.description, description) != Likeness::Other
    });
    let status = if end == TaskEnd::Done { COMPLETED } else { PENDING };
    match known {
        Some(place) if end == TaskEnd::Done => close_task(state, place, moment),
        Some(place) if state.active_tasks[place].status == PENDING => {}
        _ => {
            let at = moment.at.as_second();
            let mut task = Task {
                id: next_id(state),
                description: description.to_owned(),
                status: status.to_owned(),
                progress: if end == TaskEnd::Done { 1.0 } else { 0.0 },
                created_at: at,
                updated_at: at,
                extra: serde_json::Map::new(),
            };
            task.extra.insert(SOURCE.to_owned(), Value::from(SAID));
            task.extra.insert(TURN.to_owned(), Value::from(moment.seq));
            state.active_tasks.push(task);
        }
    }
    bound(state);
}

/// Ends the task at a place of the list.
pub(crate) fn close_task(state: &mut State, place: usize, moment: Moment) {
    if let Some(task) = state.active_tasks.get_mut(place) {
        COMPLETED.clone_into(&mut task.status);
        task.progress = 1.0;
        task.updated_at = moment.at.as_second();
    }
}

/// The open tasks that a speaker named up to a turn, with their places in the list. The reader follows the record, so a
/// task may be named after the sentence that it judges.
pub(crate) fn open_tasks(state: &State, seq: u64) -> Vec<(usize, &str)> {
    let tasks = state.active_tasks.iter().enumerate();
    let open = tasks.filter(|(_, task)| is_said(task) && task.status == PENDING && is_named(task, seq));
    open.map(|(place, task)| (place, task.description.as_str())).collect()
}

/// Whether a task that a speaker named is done.
pub(crate) fn has_done(state: &State) -> bool {
    state.active_tasks.iter().any(|task| is_said(task) && task.status == COMPLETED)
}

/// The descriptions of the tasks that are open and of those that are done, as a prompt shows them.
pub(super) fn shown_tasks(state: &State) -> (Vec<String>, Vec<String>) {
    let (done, open): (Vec<&Task>, Vec<&Task>) =
        state.active_tasks.iter().partition(|task| task.status.eq_ignore_ascii_case(COMPLETED));
    let texts = |tasks: Vec<&Task>| tasks.iter().map(|task| task.description.clone()).collect();
    (texts(open), texts(done))
}

/// Whether a task was named in a turn up to `seq`.
fn is_named(task: &Task, seq: u64) -> bool {
    task.extra.get(TURN).and_then(Value::as_u64).is_none_or(|turn| turn <= seq)
}

fn is_said(task: &Task) -> bool {
    task.extra.get(SOURCE).and_then(Value::as_str) == Some(SAID)
}

fn next_id(state: &State) -> String {
    let numbers =
        state.active_tasks.iter().filter_map(|task| task.id.strip_prefix("said-")?.parse::<u64>().ok());
    format!("said-{}", numbers.max().unwrap_or(0) + 1)
}

/// Removes the oldest tasks beyond the limits, never one of the client's.
fn bound(state: &mut State) {
    for (status, most) in [(PENDING, MAX_OPEN), (COMPLETED, MAX_DONE)] {
        let is_of = |task: &Task| is_said(task) && task.status == status;
        let mut over = state.active_tasks.iter().filter(|task| is_of(task)).count().saturating_sub(most);
        state.active_tasks.retain(|task| {
            let goes = over > 0 && is_of(task);
            over -= usize::from(goes);
            !goes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checklists_are_read_in_their_usual_forms() {
        let text = "Plan:\n- [ ] Tune the harp\n- [x] Buy strings\n* [X] Call the hall\n3. [ ] Print programmes\n☐ 订花\n✅ 通知合唱团\n\
                    TODO: pack the stands\n**TODO 2:** find a page turner\n待办：还谱架\n- a plain item\n[x](http://example.org)\nWhat to do: nothing";
        let found = checklist(text);
        let of = |end: TaskEnd| -> Vec<&str> {
            found.iter().filter(|(_, is)| *is == end).map(|(item, _)| item.as_str()).collect()
        };
        assert_eq!(
            of(TaskEnd::Open),
            ["Tune the harp", "Print programmes", "订花", "pack the stands", "find a page turner", "还谱架"]
        );
        assert_eq!(of(TaskEnd::Done), ["Buy strings", "Call the hall", "通知合唱团"]);
    }

    #[test]
    fn a_ticked_item_ends_its_task_and_the_clients_tasks_stay() {
        let mut state = State::default();
        let own = Task {
            id: "task_001".to_owned(),
            description: "Watch the barometer".to_owned(),
            status: "Running".to_owned(),
            progress: 0.5,
            created_at: 1,
            updated_at: 1,
            extra: serde_json::Map::new(),
        };
        state.active_tasks.push(own.clone());
        let at = Moment { seq: 4, at: Timestamp::UNIX_EPOCH };
        add_task(&mut state, "Tune the harp", TaskEnd::Open, at);
        add_task(&mut state, "Tune the harp", TaskEnd::Open, at);
        add_task(&mut state, "Tune the harp", TaskEnd::Done, at);
        for number in 0..90 {
            add_task(&mut state, &format!("carry stand number {number}"), TaskEnd::Open, at);
        }
        assert_eq!(state.active_tasks[0], own);
        assert_eq!((open_tasks(&state, 4).len(), open_tasks(&state, 3).len()), (MAX_OPEN, 0));
        let (open, done) = shown_tasks(&state);
        assert_eq!((open[0].as_str(), done), ("Watch the barometer", vec!["Tune the harp".to_owned()]));
    }
}
