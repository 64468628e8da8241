//! One turn, whole: a long one in parts.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use strata_core::store::TurnQuery;
use strata_core::turn::HiddenReason;
use strata_core::{Error, Turn, TurnId};

use super::clip::{Clipped, Room, parts};
use super::frame::{Frame, Section, Visitor, grouped, moment};
use super::sessions::turns_from;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::PathName;
use crate::route::Route;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::undocumented("/inspect/turns/{id}", get(show)).inspects()]
}

/// A turn in a list.
pub(super) struct TurnView {
    pub(super) href: String,
    pub(super) anchor: String,
    pub(super) seq: u64,
    pub(super) role: &'static str,
    pub(super) name: Option<String>,
    pub(super) said: String,
    pub(super) tokens: String,
    pub(super) text: Clipped,
    /// Why recall does not see it.
    pub(super) hidden: Option<&'static str>,
}

impl TurnView {
    pub(super) fn new(frame: &Frame, turn: &Turn, chars: usize, room: &mut Room) -> Self {
        Self {
            href: frame.href(&format!("/inspect/turns/{}", turn.id)),
            anchor: format!("turn-{}", turn.seq),
            seq: turn.seq,
            role: turn.role.as_str(),
            name: turn.name.as_ref().map(|name| room.line(name, 60).text),
            said: moment(turn.created_at),
            tokens: grouped(turn.token_count),
            text: room.clip(&turn.content, chars),
            hidden: turn.hidden.map(|hidden| match hidden.reason {
                HiddenReason::Evicted => "out of recall: evicted to make room",
                HiddenReason::Deleted => "out of recall: deleted",
                HiddenReason::Abandoned => "out of recall: the client edited the message",
                _ => "out of recall",
            }),
        }
    }
}

#[derive(Template)]
#[template(path = "turn.html")]
struct TurnPage {
    frame: Frame,
    session: (String, String),
    turn: TurnView,
    part: usize,
    parts: usize,
    earlier: Option<String>,
    later: Option<String>,
}

async fn show(
    State(app): State<App>,
    visitor: Visitor,
    PathName(id): PathName,
) -> Result<Response, ApiError> {
    let Visitor { user, frame, asked, .. } = visitor;
    let id: TurnId = id.parse()?;
    let found = app.engine().store().turns(&user, &TurnQuery::Ids(vec![id])).await?.pop();
    let mut turn =
        found.ok_or_else(|| Error::not_found(format!("turn `{id}` does not exist for this user")))?;
    let all = parts(&turn.content);
    let count = all.len();
    let part = usize::try_from(asked.page()).unwrap_or(1).clamp(1, count);
    turn.content = all[part - 1].to_owned();
    let frame = frame.titled(Section::Sessions, format!("Turn {}", turn.seq));
    let link = |part: usize| frame.href_with(&format!("/inspect/turns/{id}"), &format!("page={part}"));
    let mut room = Room::new();
    let back = turns_from(&frame, turn.session.as_str(), turn.seq);
    let page = TurnPage {
        session: (format!("{back}#turn-{}", turn.seq), room.line(turn.session.as_str(), 120).text),
        turn: TurnView::new(&frame, &turn, usize::MAX, &mut room),
        part,
        parts: count,
        earlier: (part > 1).then(|| link(part - 1)),
        later: (part < count).then(|| link(part + 1)),
        frame,
    };
    page.frame.answer(&page)
}
