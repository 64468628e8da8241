//! One memory: its statement, its validity, its history, and the forms to edit, delete, restore and destroy it.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use jiff::Timestamp;
use strata_core::memory::{Memory, TodoState};
use strata_core::store::{MemoryQuery, MemorySelect};
use strata_core::turn::HiddenReason;
use strata_core::{MemoryId, UserId};
use strata_engine::{HistoryStep, MemoryEdit};

use super::clip::{Clipped, Room};
use super::frame::{Frame, Section, Visitor, day, moment};
use super::guard::Form;
use super::memories::{MemoryRow, badge, period};
use super::sessions;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::PathName;
use crate::route::Route;

/// The most steps of a history on the page.
const STEPS: usize = 30;

/// The width of the timeline's drawing.
const TIMELINE: f64 = 600.0;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::undocumented("/inspect/memories/{id}", get(show)).inspects(),
        form("/inspect/memories/{id}/edit", FormAction::Edit),
        form("/inspect/memories/{id}/delete", FormAction::Delete),
        form("/inspect/memories/{id}/restore", FormAction::Restore),
        form("/inspect/memories/{id}/forget", FormAction::Forget),
    ]
}

/// The route of one form of the page.
fn form(path: &str, action: FormAction) -> Route {
    let handler = move |State(app): State<App>, visitor: Visitor, PathName(id): PathName, form: Form| async move {
        action.run(&app, visitor, &id, &form).await
    };
    Route::undocumented(path, post(handler)).inspects()
}

/// A statement on the timeline.
struct Span {
    x: String,
    width: String,
    label: String,
    is_this: bool,
    is_open: bool,
}

/// A step of the history.
struct StepView {
    href: Option<String>,
    text: Clipped,
    period: String,
    sentence: Clipped,
    said: Vec<(String, String, String)>,
}

#[derive(Template)]
#[template(path = "memory.html")]
struct MemoryPage {
    frame: Frame,
    actions: Actions,
    text: Clipped,
    /// The whole statement for the form; `None` if it is too long to be edited here.
    whole: Option<String>,
    kind: &'static str,
    badge: Option<(&'static str, &'static str)>,
    facts: Vec<(&'static str, String)>,
    session: Option<(String, String)>,
    dispute: Option<Dispute>,
    steps: Vec<StepView>,
    spans: Vec<Span>,
    ends: (String, String),
    is_hidden: bool,
    is_current: bool,
    metadata: Option<Clipped>,
}

/// The addresses of the forms.
struct Actions {
    edit: String,
    delete: String,
    restore: String,
    forget: String,
}

/// The memory that this one may contradict.
struct Dispute {
    other: MemoryRow,
    certainty: Option<u8>,
}

async fn show(
    State(app): State<App>,
    visitor: Visitor,
    PathName(id): PathName,
) -> Result<Response, ApiError> {
    let Visitor { user, frame, .. } = visitor;
    let id: MemoryId = id.parse()?;
    let memories = &app.engine().memories;
    let memory = memories.get(&user, id).await?;
    let steps = memories.explain(&user, id).await?;
    let mut room = Room::new();
    let text = room.clip(&memory.content, 8_000);
    let frame = frame.titled(Section::Memories, room.line(&memory.content, 60).text);
    let dispute = dispute(&app, &user, &frame, &memory, &mut room).await?;
    let from = steps.len().saturating_sub(STEPS);
    let spans = timeline(&steps[from..], id, app.engine().now(), &mut room);
    let page = MemoryPage {
        actions: Actions {
            edit: frame.href(&format!("/inspect/memories/{id}/edit")),
            delete: frame.href(&format!("/inspect/memories/{id}/delete")),
            restore: frame.href(&format!("/inspect/memories/{id}/restore")),
            forget: frame.href(&format!("/inspect/memories/{id}/forget")),
        },
        whole: (text.more == 0 && text.text == memory.content).then(|| text.text.clone()),
        text,
        kind: memory.kind.as_str(),
        badge: badge(&memory),
        facts: facts(&memory),
        session: memory.session.as_ref().map(|session| {
            (frame.href(&sessions::path(session.as_str())), room.line(session.as_str(), 120).text)
        }),
        dispute,
        steps: steps[from..].iter().map(|step| step_view(&frame, step, id, &mut room)).collect(),
        ends: spans.0,
        spans: spans.1,
        is_hidden: memory.hidden.is_some(),
        is_current: memory.is_current(),
        metadata: (!memory.metadata.is_empty())
            .then(|| room.clip(&serde_json::to_string_pretty(&memory.metadata).unwrap_or_default(), 3_000)),
        frame,
    };
    page.frame.answer(&page)
}

fn facts(memory: &Memory) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Believed since", moment(memory.valid_from)),
        ("Learned", moment(memory.first_recorded_at())),
        ("Confidence", format!("{:.0} %", f64::from(memory.confidence) * 100.0)),
    ];
    facts.extend(memory.valid_to.map(|end| ("Until", moment(end))));
    facts.extend(memory.todo().map(|todo| ("Todo", todo.as_str().to_owned())));
    facts.extend(memory.hidden.map(|hidden| ("Out of recall since", moment(hidden.at))));
    facts
}

/// The memory that this one may contradict, if it still exists.
async fn dispute(
    app: &App,
    user: &UserId,
    frame: &Frame,
    memory: &Memory,
    room: &mut Room,
) -> Result<Option<Dispute>, ApiError> {
    let Some(other) = memory.notes.disputed.filter(|_| memory.is_current()) else { return Ok(None) };
    let query = MemoryQuery::new(MemorySelect::Ids(vec![other]));
    let other = app.engine().memories.list(user, &query).await?.pop();
    let other = other.map(|other| MemoryRow::new(frame, &other, room));
    Ok(other.map(|other| Dispute { other, certainty: memory.notes.certainty }))
}

fn step_view(frame: &Frame, step: &HistoryStep, shown: MemoryId, room: &mut Room) -> StepView {
    let memory = &step.memory;
    let period = period(memory);
    StepView {
        href: (memory.id != shown).then(|| frame.href(&format!("/inspect/memories/{}", memory.id))),
        text: room.line(&memory.content, 300),
        period,
        sentence: room.clip(&ending(step), 600),
        said: step
            .said
            .iter()
            .take(4)
            .map(|quote| {
                let href = frame.href(&format!("/inspect/turns/{}", quote.turn));
                (href, day(quote.said_at), room.line(&quote.text, 160).text)
            })
            .collect(),
    }
}

/// How a statement ended, in a sentence; empty for one that holds. The page shows its period and its sources itself.
fn ending(step: &HistoryStep) -> String {
    let memory = &step.memory;
    let mut parts: Vec<String> = Vec::new();
    match (memory.valid_to, memory.todo()) {
        (Some(_), Some(TodoState::Done)) => parts.push("It was done".to_owned()),
        (Some(_), Some(TodoState::Dropped)) => parts.push("It was dropped".to_owned()),
        (Some(_), _) => match &step.replacement {
            Some(replacement) => parts.push(format!("“{replacement}” took its place")),
            None if step.replaced_by.is_some() => parts.push("Another memory took its place".to_owned()),
            None => parts.push("It ended".to_owned()),
        },
        (None, _) => {}
    }
    if step.replaced_by_hand {
        parts.push("written by hand".to_owned());
    }
    if let (Some(_), Some(certainty)) = (memory.valid_to, memory.notes.certainty) {
        parts.push(format!("the reader was {certainty} % sure"));
    }
    if let Some(hidden) = memory.hidden {
        let how = match hidden.reason {
            HiddenReason::Evicted => "evicted",
            HiddenReason::Abandoned => "taken back, because its message was edited",
            _ => "deleted",
        };
        parts.push(format!("{how} on {}", day(hidden.at)));
    }
    parts.join("; ")
}

/// The statements of a history as bars over time, and both ends of the drawing.
fn timeline(
    steps: &[HistoryStep],
    shown: MemoryId,
    now: Timestamp,
    room: &mut Room,
) -> ((String, String), Vec<Span>) {
    let starts = steps.iter().map(|step| step.memory.valid_from);
    let start = starts.min().unwrap_or(now);
    let ends = steps.iter().filter_map(|step| step.memory.valid_to);
    let end = ends.chain([now]).max().unwrap_or(now);
    let whole = end.duration_since(start).as_secs_f64().max(1.0);
    let place = |at: Timestamp| (at.duration_since(start).as_secs_f64() / whole).clamp(0.0, 1.0) * TIMELINE;
    let spans = steps.iter().map(|step| {
        let memory = &step.memory;
        let (from, to) = (place(memory.valid_from), memory.valid_to.map_or(TIMELINE, place));
        // A statement that held for a moment is still seen.
        let from = from.min(TIMELINE - 6.0);
        Span {
            x: format!("{from:.1}"),
            width: format!("{:.1}", (to - from).max(6.0)),
            label: shortened(room.line(&memory.content, 90)),
            is_this: memory.id == shown,
            is_open: memory.valid_to.is_none(),
        }
    });
    // A history of one day is told by the hour.
    let name = if day(start) == day(end) { moment } else { day };
    ((name(start), name(end)), spans.collect())
}

fn shortened(text: Clipped) -> String {
    if text.more > 0 { format!("{}…", text.text.trim_end()) } else { text.text }
}

/// The action of a form of the page.
#[derive(Clone, Copy)]
enum FormAction {
    Edit,
    Delete,
    Restore,
    Forget,
}

impl FormAction {
    async fn run(self, app: &App, visitor: Visitor, id: &str, form: &Form) -> Result<Response, ApiError> {
        let Visitor { user, frame, .. } = visitor;
        let id: MemoryId = id.parse()?;
        let memories = &app.engine().memories;
        let page = format!("/inspect/memories/{id}");
        match self {
            Self::Edit => {
                let edit = MemoryEdit { content: form.field("content").trim().to_owned(), metadata: None };
                memories.revise(&user, id, edit).await?;
                Ok(frame.go(&page, "edited"))
            }
            Self::Delete => {
                memories.delete(&user, id).await?;
                Ok(frame.go(&page, "deleted"))
            }
            Self::Restore => {
                memories.restore(&user, id).await?;
                Ok(frame.go(&page, "restored"))
            }
            Self::Forget if form.field("sure") != "yes" => Err(ApiError::invalid(
                "nothing was destroyed; tick the box to confirm that it is to be destroyed",
            )),
            Self::Forget => {
                memories.forget(&user, id).await?;
                Ok(frame.go("/inspect/memories", "forgotten"))
            }
        }
    }
}
