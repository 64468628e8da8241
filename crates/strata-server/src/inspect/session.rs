//! One session: its turns, its state, the versions of its summaries, and what a model would be shown now.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use strata_core::state::{DiagnosticState, Task};
use strata_core::store::TurnQuery;
use strata_core::summary::Summary;
use strata_core::{Role, Session, SessionId, UserId};
use strata_engine::prompt::{PromptBody, PromptFormat};
use strata_engine::{Preview, PromptRequest};

use super::charts::share_width;
use super::clip::{Clipped, Room};
use super::diff::{Part, diff};
use super::frame::{Frame, Section, Visitor, grouped, moment};
use super::sessions::{named, path, status, turns_from};
use super::turn::TurnView;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::PathName;
use crate::route::Route;

/// The turns on one page.
const TURNS: u64 = 30;

/// The most characters of a turn in a list.
const TURN_CHARS: usize = 1_600;

/// The most versions of summaries on the page.
const VERSIONS: u32 = 12;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::undocumented("/inspect/sessions/{id}", get(turns)).inspects(),
        Route::undocumented("/inspect/sessions/{id}/state", get(state)).inspects(),
        Route::undocumented("/inspect/sessions/{id}/summaries", get(summaries)).inspects(),
        Route::undocumented("/inspect/sessions/{id}/prompt", get(prompt)).inspects(),
    ]
}

/// The head of all pages of a session: its name and its tabs.
struct SessionHead {
    name: String,
    /// The title of an imported conversation.
    title: Option<String>,
    turns: String,
    created: String,
    updated: String,
    tabs: Vec<Tab>,
}

struct Tab {
    href: String,
    label: &'static str,
    /// The label on a phone.
    short: &'static str,
    is_present: bool,
}

impl SessionHead {
    fn new(frame: &Frame, session: &Session, present: &str, room: &mut Room) -> Self {
        let path = path(session.id.as_str());
        let tab = |part: &str, label: &'static str, short: &'static str| Tab {
            href: frame.href(&format!("{path}{part}")),
            label,
            short,
            is_present: part == present,
        };
        Self {
            name: room.line(session.id.as_str(), 200).text,
            title: session.title().map(|title| room.line(title, 200).text),
            turns: grouped(session.turn_count),
            created: moment(session.created_at),
            updated: moment(session.updated_at),
            tabs: vec![
                tab("", "Turns", "Turns"),
                tab("/state", "State", "State"),
                tab("/summaries", "Summaries", "Summaries"),
                tab("/prompt", "What a model would see", "Model’s view"),
            ],
        }
    }
}

/// A session as the address names it. One that was imported began with its first turn and not with the import.
async fn session_of(app: &App, user: &UserId, id: String) -> Result<Session, ApiError> {
    let engine = app.engine();
    let session = engine.sessions.get(user, &named(id)?).await?;
    let created_at = engine.sessions.begun(user, &session).await?;
    Ok(Session { created_at, ..session })
}

fn titled(frame: Frame, session: &Session) -> Frame {
    let name: String = session.id.as_str().chars().take(60).collect();
    frame.titled(Section::Sessions, format!("Session {name}"))
}

#[derive(Template)]
#[template(path = "session_turns.html")]
struct TurnsPage {
    frame: Frame,
    head: SessionHead,
    turns: Vec<TurnView>,
    earlier: Option<String>,
    later: Option<String>,
    newest: Option<String>,
}

async fn turns(
    State(app): State<App>,
    visitor: Visitor,
    PathName(id): PathName,
) -> Result<Response, ApiError> {
    let Visitor { user, frame, asked, .. } = visitor;
    let session = session_of(&app, &user, id).await?;
    let frame = titled(frame, &session);
    let newest = session.turn_count.saturating_sub(TURNS);
    let first = match asked.after.as_str() {
        // `turns_from` writes this for the first turn.
        "-1" => 0,
        after => after.parse::<u64>().map_or(newest, |after| after.saturating_add(1)),
    };
    let first = first.min(session.turn_count.saturating_sub(1));
    let found = app.engine().sessions.turns(&user, &session.id, first.checked_sub(1), TURNS as u32).await?;
    let mut room = Room::new();
    let head = SessionHead::new(&frame, &session, "", &mut room);
    let place = path(session.id.as_str());
    let from = |first: u64| turns_from(&frame, session.id.as_str(), first);
    let page = TurnsPage {
        turns: found.iter().map(|turn| TurnView::new(&frame, turn, TURN_CHARS, &mut room)).collect(),
        earlier: (first > 0).then(|| from(first.saturating_sub(TURNS))),
        later: (first + TURNS < session.turn_count).then(|| from(first + TURNS)),
        newest: (first < newest).then(|| frame.href(&place)),
        head,
        frame,
    };
    page.frame.answer(&page)
}

/// A list of the state, with its heading.
struct StateList {
    label: &'static str,
    entries: Vec<Clipped>,
}

struct TaskView {
    description: Clipped,
    status: String,
    is_done: bool,
    updated: String,
}

impl TaskView {
    fn new(task: &Task, room: &mut Room) -> Self {
        let updated = jiff::Timestamp::from_second(task.updated_at);
        Self {
            description: room.clip(&task.description, 300),
            is_done: task.status.eq_ignore_ascii_case("completed"),
            status: room.line(&task.status, 40).text,
            updated: updated.map(moment).unwrap_or_default(),
        }
    }
}

#[derive(Template)]
#[template(path = "session_state.html")]
struct StatePage {
    frame: Frame,
    head: SessionHead,
    facts: Vec<(&'static str, String)>,
    lists: Vec<StateList>,
    tasks: Vec<TaskView>,
    tools: Vec<(String, String)>,
    other: Option<Clipped>,
    is_empty: bool,
}

async fn state(
    State(app): State<App>,
    visitor: Visitor,
    PathName(id): PathName,
) -> Result<Response, ApiError> {
    let Visitor { user, frame, .. } = visitor;
    let session = session_of(&app, &user, id).await?;
    let frame = titled(frame, &session);
    let mut room = Room::new();
    let head = SessionHead::new(&frame, &session, "/state", &mut room);
    let state = &session.state;
    let lists = state_lists(&state.diagnostic, &mut room);
    let tasks: Vec<TaskView> =
        state.active_tasks.iter().take(60).map(|task| TaskView::new(task, &mut room)).collect();
    let tools = state.tool_stats.by_tool.iter().take(40);
    let tools: Vec<_> = tools.map(|(name, calls)| (room.line(name, 60).text, grouped(*calls))).collect();
    let mut other = state.extra.clone();
    for (name, values) in
        [("system_state", &state.system_state), ("environment", &state.last_known_environment)]
    {
        if !values.is_empty() {
            other.insert(name.to_owned(), values.clone().into());
        }
    }
    let other = (!other.is_empty()).then(|| serde_json::to_string_pretty(&other).unwrap_or_default());
    let page = StatePage {
        facts: state_facts(&session, &mut room),
        is_empty: lists.is_empty() && tasks.is_empty() && tools.is_empty() && other.is_none(),
        other: other.map(|text| room.clip(&text, 6_000)),
        lists,
        tasks,
        tools,
        head,
        frame,
    };
    page.frame.answer(&page)
}

/// The single values of a state.
fn state_facts(session: &Session, room: &mut Room) -> Vec<(&'static str, String)> {
    let state = &session.state;
    let status = status(&state.diagnostic).unwrap_or("idle");
    let usage = &state.token_usage;
    let mut facts = vec![("Status", status.to_owned())];
    let diagnostic = &state.diagnostic;
    for (label, value) in [
        ("Subject", &diagnostic.device_name),
        ("Address", &diagnostic.device_ip),
        ("Last log", &diagnostic.last_log_file),
    ] {
        facts.extend(value.as_ref().map(|value| (label, room.line(value, 120).text)));
    }
    facts.push((
        "Turns read",
        format!("{} of {}", grouped(state.observed.turns), grouped(session.turn_count)),
    ));
    facts.push((
        "Tokens read and written by models",
        format!("{} · {}", grouped(usage.total_input), grouped(usage.total_output)),
    ));
    if state.tool_stats.total_calls > 0 {
        let stats = &state.tool_stats;
        facts.push((
            "Tool calls",
            format!("{}, {} failed", grouped(stats.total_calls), grouped(stats.failures)),
        ));
    }
    facts
}

fn state_lists(diagnostic: &DiagnosticState, room: &mut Room) -> Vec<StateList> {
    let lists = [
        ("Findings", &diagnostic.findings),
        ("Root causes", &diagnostic.root_causes),
        ("Hypotheses", &diagnostic.hypotheses),
        ("Ruled out", &diagnostic.ruled_out),
        ("Decisions", &diagnostic.decisions),
        ("Constraints", &diagnostic.constraints),
        ("Facts", &diagnostic.facts),
        ("Logs", &diagnostic.downloaded_logs),
    ];
    let filled = lists.into_iter().filter(|(_, entries)| !entries.is_empty());
    filled
        .map(|(label, entries)| StateList {
            label,
            entries: entries.iter().take(40).map(|entry| room.clip(entry, 400)).collect(),
        })
        .collect()
}

/// A version of a summary, with its difference from the version before it.
struct VersionView {
    strategy: &'static str,
    status: &'static str,
    is_failed: bool,
    covers: String,
    updated: String,
    cost: String,
    /// The version that the difference is from.
    from: Option<String>,
    parts: Vec<Part>,
    more: usize,
}

#[derive(Template)]
#[template(path = "session_summaries.html")]
struct SummariesPage {
    frame: Frame,
    head: SessionHead,
    versions: Vec<VersionView>,
    has_more: bool,
}

async fn summaries(
    State(app): State<App>,
    visitor: Visitor,
    PathName(id): PathName,
) -> Result<Response, ApiError> {
    let Visitor { user, frame, .. } = visitor;
    let session = session_of(&app, &user, id).await?;
    let frame = titled(frame, &session);
    let mut room = Room::new();
    let head = SessionHead::new(&frame, &session, "/summaries", &mut room);
    // The version before the last one shown is needed for its difference.
    let found = app.engine().summaries.list(&user, &session.id, VERSIONS * 2).await?;
    let shown = found.iter().take(VERSIONS as usize).enumerate();
    let versions = shown.map(|(place, summary)| version(summary, &found[place + 1..], &mut room)).collect();
    let page = SummariesPage { has_more: found.len() > VERSIONS as usize, versions, head, frame };
    page.frame.answer(&page)
}

/// A version, compared with its base or else with the next older one of its kind.
fn version(summary: &Summary, older: &[Summary], room: &mut Room) -> VersionView {
    let is_alike = |other: &&Summary| other.strategy == summary.strategy && other.level == summary.level;
    let base = summary.base_id.and_then(|id| older.iter().find(|other| other.id == id));
    let base = base.or_else(|| older.iter().find(is_alike)).filter(|other| !other.text.is_empty());
    let text = room.clip(&summary.text, 4_000);
    let parts = match base {
        Some(base) => diff(&room.clip(&base.text, 4_000).text, &text.text),
        None => diff(&text.text, &text.text),
    };
    let seconds =
        summary.generation_ms.map(|ms| format!(" in {:.1} s", f64::from(ms) / 1_000.0)).unwrap_or_default();
    let by = summary.model().map(|model| format!(", by {}", room.line(model, 60).text)).unwrap_or_default();
    VersionView {
        strategy: summary.strategy.as_str(),
        status: summary.status.as_str(),
        is_failed: summary.status == strata_core::summary::SummaryStatus::Failed,
        covers: format!("turns {} to {}", summary.start_seq, summary.end_seq),
        updated: moment(summary.updated_at),
        cost: format!(
            "{} tokens in, {} out{seconds}{by}",
            grouped(summary.input_tokens),
            grouped(summary.output_tokens)
        ),
        from: base.map(|base| format!("turns {} to {}", base.start_seq, base.end_seq)),
        parts,
        more: text.more,
    }
}

/// A layer of a prompt, with the width of its bar.
struct LayerView {
    name: String,
    tokens: String,
    width: String,
}

struct MessageView {
    role: &'static str,
    text: Clipped,
}

#[derive(Template)]
#[template(path = "session_prompt.html")]
struct PromptPage {
    frame: Frame,
    head: SessionHead,
    action: String,
    question: String,
    shown: Option<ShownPrompt>,
    /// Whether the prompt is loaded after the page, because recall of a large user takes its time.
    loads_later: bool,
}

struct ShownPrompt {
    tokens: String,
    raw: String,
    saved: Option<String>,
    /// The widths of both bars, of 100.
    widths: (String, String),
    layers: Vec<LayerView>,
    cuts: Vec<String>,
    messages: Vec<MessageView>,
}

async fn prompt(
    State(app): State<App>,
    visitor: Visitor,
    PathName(id): PathName,
) -> Result<Response, ApiError> {
    let Visitor { user, frame, asked, caller } = visitor;
    let session = session_of(&app, &user, id).await?;
    let frame = titled(frame, &session);
    let mut room = Room::new();
    let head = SessionHead::new(&frame, &session, "/prompt", &mut room);
    let question = match asked.q.trim() {
        "" => last_question(&app, &user, &session.id).await?,
        question => question.to_owned(),
    };
    let revision = app.engine().store().head(&user).await?.revision;
    let is_large = revision > app.engine().settings().recall.index_max_items;
    let loads_later = is_large && asked.q.trim().is_empty() && !question.is_empty();
    let shown = match question.is_empty() || loads_later {
        true => None,
        false => {
            let scope = caller.recall_scope(true, Some(&session.id), None);
            let request = PromptRequest {
                format: PromptFormat::Chat,
                scope,
                ..PromptRequest::new(session.id.clone(), question.clone())
            };
            Some(shown_prompt(&app.engine().prompting.preview(&user, &request).await?, &mut room))
        }
    };
    let action = path(session.id.as_str()) + "/prompt";
    let question = room.clip(&question, 2_000).text;
    let page = PromptPage { frame, head, action, question, shown, loads_later };
    page.frame.answer(&page)
}

/// The user's last message in the session; empty if there is none.
async fn last_question(app: &App, user: &UserId, session: &SessionId) -> Result<String, ApiError> {
    let recent = TurnQuery::recent(Some(session.clone()), 8);
    let turns = app.engine().store().turns(user, &recent).await?;
    let said = turns.into_iter().find(|turn| turn.role == Role::User && !turn.content.trim().is_empty());
    Ok(said.map(|turn| turn.content.chars().take(2_000).collect()).unwrap_or_default())
}

fn shown_prompt(preview: &Preview, room: &mut Room) -> ShownPrompt {
    let Preview { prompt, raw_tokens } = preview;
    let (tokens, raw) = (u64::from(prompt.tokens), *raw_tokens);
    let most = tokens.max(raw) as f64;
    let saved = (raw > tokens).then(|| format!("{:.0} %", 100.0 - tokens as f64 * 100.0 / raw as f64));
    let messages = match &prompt.body {
        PromptBody::Messages(messages) => {
            messages.iter().map(|message| (message.role.as_str(), message.content.as_str())).collect()
        }
        PromptBody::Text(text) => vec![("prompt", text.as_str())],
    };
    ShownPrompt {
        tokens: grouped(tokens),
        raw: grouped(raw),
        saved,
        widths: (share_width(tokens as f64, most, 100.0), share_width(raw as f64, most, 100.0)),
        layers: prompt
            .layers
            .iter()
            .map(|layer| LayerView {
                name: layer.name.replace('_', " "),
                tokens: grouped(layer.tokens),
                width: share_width(f64::from(layer.tokens), tokens as f64, 100.0),
            })
            .collect(),
        cuts: prompt
            .cut
            .iter()
            .map(|cut| room.line(&format!("{}: {}", cut.layer.replace('_', " "), cut.what), 200).text)
            .collect(),
        messages: messages
            .into_iter()
            .take(60)
            .map(|(role, text)| MessageView { role, text: room.clip(text, 6_000) })
            .collect(),
    }
}
