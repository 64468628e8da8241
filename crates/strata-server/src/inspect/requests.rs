//! The list of requests.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use strata_core::metric::RequestMetric;
use strata_core::trace::RetrievalPath;
use strata_engine::report::Unit;

use super::clip::{Clipped, Room};
use super::frame::{Frame, Section, Visitor, moment};
use crate::app::App;
use crate::error::ApiError;
use crate::route::Route;

/// The requests on the page: the newest.
const SHOWN: u32 = 60;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::undocumented("/inspect/requests", get(show)).inspects()]
}

/// A request in a list.
pub(super) struct RequestRow {
    href: String,
    query: Clipped,
    asked: String,
    /// The path that found its items; `None` if none did.
    found_by: Option<&'static str>,
    items: u32,
    tokens: u32,
    time: String,
    badges: Vec<(&'static str, &'static str)>,
}

impl RequestRow {
    fn new(frame: &Frame, row: &RequestMetric, room: &mut Room) -> Self {
        Self {
            href: frame.href(&format!("/inspect/requests/{}", row.id)),
            query: room.line(&row.query, 160),
            asked: moment(row.created_at),
            found_by: found_by(row.retrieval_path),
            items: row.context_items,
            tokens: row.estimated_tokens,
            time: Unit::Seconds.words(row.latency_retrieval_us as f64 / 1_000_000.0),
            badges: badges(row),
        }
    }
}

/// The path of a recall in words; `None` if nothing was found.
pub(super) fn found_by(path: RetrievalPath) -> Option<&'static str> {
    Some(match path {
        RetrievalPath::Fts => "words",
        RetrievalPath::Trgm => "parts of words",
        RetrievalPath::Vector => "meaning",
        RetrievalPath::Window => "being recent",
        RetrievalPath::SummariesOnly => "summaries",
        RetrievalPath::None => return None,
    })
}

/// A remark about a request: a class of the style sheet, and words.
pub(super) fn badges(row: &RequestMetric) -> Vec<(&'static str, &'static str)> {
    [
        (row.error_stage.is_some(), ("act", "failed")),
        (!row.feedback.is_empty(), ("act", "complaint")),
        (row.truncated, ("unknown", "cut by the budget")),
        (row.used_fallback, ("unknown", "fallback")),
        (row.late.is_some(), ("unknown", "late model")),
        (row.unasked, ("unknown", "recall not asked")),
    ]
    .into_iter()
    .filter_map(|(is_so, badge)| is_so.then_some(badge))
    .collect()
}

#[derive(Template)]
#[template(path = "requests.html")]
struct RequestsPage {
    frame: Frame,
    requests: Vec<RequestRow>,
    is_cut: bool,
    older: Option<String>,
}

async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, ApiError> {
    let Visitor { user, frame, asked, .. } = visitor;
    let frame = frame.titled(Section::Requests, "Requests");
    // Rows are selected since a moment and from the newest on, so a page reads those before it too.
    let page = asked.page().min(10);
    let limit = SHOWN * page as u32;
    let rows = app.engine().requests.list(&user, None, limit + 1).await?;
    let has_more = rows.len() > limit as usize;
    let mut room = Room::new();
    let shown = rows.iter().skip((limit - SHOWN) as usize).take(SHOWN as usize);
    let page = RequestsPage {
        requests: shown.map(|row| RequestRow::new(&frame, row, &mut room)).collect(),
        is_cut: has_more && page == 10,
        older: (has_more && page < 10)
            .then(|| frame.href_with("/inspect/requests", &format!("page={}", page + 1))),
        frame,
    };
    page.frame.answer(&page)
}
