//! The list of sessions.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use strata_core::state::{DiagnosticState, DiagnosticStatus};
use strata_core::store::Page;
use strata_core::{Session, SessionId};

use super::clip::Room;
use super::frame::{Frame, Section, Visitor, encode, grouped, moment};
use crate::app::App;
use crate::error::ApiError;
use crate::route::Route;

/// The sessions on one page.
const PER_PAGE: u32 = 40;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::undocumented("/inspect/sessions", get(show)).inspects()]
}

/// A session in a list.
pub(super) struct SessionRow {
    pub(super) href: String,
    pub(super) name: String,
    /// The title of an imported conversation.
    pub(super) title: Option<String>,
    pub(super) turns: String,
    pub(super) updated: String,
    pub(super) status: Option<&'static str>,
}

impl SessionRow {
    pub(super) fn new(frame: &Frame, session: &Session, room: &mut Room) -> Self {
        Self {
            href: frame.href(&path(session.id.as_str())),
            name: room.line(session.id.as_str(), 120).text,
            title: session.title().map(|title| room.line(title, 120).text),
            turns: grouped(session.turn_count),
            updated: moment(session.updated_at),
            status: status(&session.state.diagnostic),
        }
    }
}

/// The phase of the diagnosis in a session. What somebody tells about themselves is no case: without a finding, a supposition or a
/// cause there is no phase.
pub(super) fn status(diagnostic: &DiagnosticState) -> Option<&'static str> {
    let DiagnosticState { findings, hypotheses, ruled_out, root_causes, .. } = diagnostic;
    let has_case = [findings, hypotheses, ruled_out, root_causes].iter().any(|list| !list.is_empty());
    match diagnostic.status {
        DiagnosticStatus::Resolved => Some("resolved"),
        DiagnosticStatus::Investigating if has_case => Some("investigating"),
        DiagnosticStatus::Investigating | DiagnosticStatus::Idle => None,
    }
}

/// The path of a session's page. Browsers read `.` and `..` as steps in a path, also if they are encoded. Such a name gets a tilde
/// before it, and so does a name that begins with a tilde.
pub(super) fn path(session: &str) -> String {
    let tilde = if matches!(session, "." | "..") || session.starts_with('~') { "~" } else { "" };
    format!("/inspect/sessions/{tilde}{}", encode(session))
}

/// The address of a session's turns from one of them on.
pub(super) fn turns_from(frame: &Frame, session: &str, first: u64) -> String {
    // The parameter names the turn before, and the first turn has none.
    let after = first.checked_sub(1).map_or("-1".to_owned(), |after| after.to_string());
    frame.href_with(&path(session), &format!("after={after}"))
}

/// The session that the part of a path names.
pub(super) fn named(part: String) -> Result<SessionId, ApiError> {
    let name = part.strip_prefix('~').map(str::to_owned).unwrap_or(part);
    Ok(SessionId::new(name)?)
}

#[derive(Template)]
#[template(path = "sessions.html")]
struct SessionsPage {
    frame: Frame,
    sessions: Vec<SessionRow>,
    page: u64,
    earlier: Option<String>,
    later: Option<String>,
}

async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, ApiError> {
    let Visitor { user, frame, asked, .. } = visitor;
    let frame = frame.titled(Section::Sessions, "Sessions");
    let page = asked.page();
    let offset = (page - 1) * u64::from(PER_PAGE);
    // One more than shown tells whether more follow.
    let found = app.engine().sessions.list(&user, Page { offset, limit: PER_PAGE + 1 }).await?;
    let link = |page: u64| frame.href_with("/inspect/sessions", &format!("page={page}"));
    let later = (found.len() > PER_PAGE as usize).then(|| link(page + 1));
    let earlier = (page > 1).then(|| link(page - 1));
    let mut room = Room::new();
    let shown = found.iter().take(PER_PAGE as usize);
    let sessions = shown.map(|session| SessionRow::new(&frame, session, &mut room)).collect();
    let page = SessionsPage { frame, sessions, page, earlier, later };
    page.frame.answer(&page)
}
