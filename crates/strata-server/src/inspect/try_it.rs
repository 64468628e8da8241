//! A box to try questions and statements: what recall finds, and what reading would learn. Nothing is recorded.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use strata_core::{SessionId, UserId};
use strata_engine::recall::{RecallRequest, RecalledItem};
use strata_engine::report::Unit;
use strata_engine::{Engine, SentenceExplanation};

use super::clip::{Clipped, Room};
use super::frame::{Frame, Section, Visitor, counted, day};
use super::request::{CandidateView, Stage, candidates, stages};
use crate::app::App;
use crate::error::ApiError;
use crate::route::Route;

/// The longest text that is tried, in characters.
const MAX_CHARS: usize = 2_000;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::undocumented("/inspect/try", get(show)).inspects()]
}

struct FoundView {
    href: Option<String>,
    kind: &'static str,
    said: String,
    text: Clipped,
    score: String,
}

/// A sentence, and what would become of it.
struct ReadView {
    text: Clipped,
    verdict: String,
    memory: Option<Clipped>,
    about: Option<String>,
}

struct Tried {
    found: Vec<FoundView>,
    summary: String,
    read: Vec<ReadView>,
    by: String,
}

#[derive(Template)]
#[template(path = "try_it.html")]
struct TryPage {
    frame: Frame,
    q: String,
    session: String,
    tried: Option<Tried>,
    stages: Vec<Stage>,
    candidates: Vec<CandidateView>,
}

async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, ApiError> {
    let Visitor { user, frame, asked, caller } = visitor;
    let frame = frame.titled(Section::TryIt, "Try it");
    let q: String = asked.q.trim().chars().take(MAX_CHARS).collect();
    let session = Some(asked.session.trim()).filter(|session| !session.is_empty());
    let session = session.map(SessionId::new).transpose()?;
    let (tried, stages, candidates) = match q.is_empty() {
        true => (None, Vec::new(), Vec::new()),
        false => {
            let request = RecallRequest {
                within: caller.recall_scope(true, session.as_ref(), None),
                session: session.clone(),
                explain: true,
                ..RecallRequest::new(q.clone())
            };
            let (tried, stages, candidates) = try_out(app.engine(), &frame, &user, &request, session).await?;
            (Some(tried), stages, candidates)
        }
    };
    let session = asked.session.trim().chars().take(256).collect();
    let page = TryPage { frame, q, session, tried, stages, candidates };
    page.frame.answer(&page)
}

async fn try_out(
    engine: &Engine,
    frame: &Frame,
    user: &UserId,
    request: &RecallRequest,
    session: Option<SessionId>,
) -> Result<(Tried, Vec<Stage>, Vec<CandidateView>), ApiError> {
    let mut room = Room::new();
    let began = engine.now();
    let recalled = engine.recall.rehearse(user, request).await?;
    let took = engine.now().duration_since(began).as_secs_f64();
    let found = recalled.items.iter().map(|item| found_view(frame, item, &mut room)).collect();
    let (stages, candidates) = match &recalled.trace {
        Some(trace) => {
            (stages(trace, recalled.truncated), candidates(engine, frame, user, trace, &mut room).await?)
        }
        None => (Vec::new(), Vec::new()),
    };
    let explanation = engine.learning.explain(user, &session.unwrap_or_default(), &request.query).await?;
    let tried = Tried {
        summary: format!(
            "{}, {}, in {}",
            counted(recalled.items.len() as u64, "item", "items"),
            counted(recalled.tokens.into(), "token", "tokens"),
            Unit::Seconds.words(took)
        ),
        found,
        read: explanation.sentences.iter().take(40).map(|sentence| read_view(sentence, &mut room)).collect(),
        by: room.line(&explanation.by, 60).text,
    };
    Ok((tried, stages, candidates))
}

fn found_view(frame: &Frame, found: &RecalledItem, room: &mut Room) -> FoundView {
    use strata_core::store::Item;
    let (kind, href) = match &found.item {
        Item::Turn(turn) => ("turn", Some(frame.href(&format!("/inspect/turns/{}", turn.id)))),
        Item::Memory(memory) => {
            (memory.kind.as_str(), Some(frame.href(&format!("/inspect/memories/{}", memory.id))))
        }
        Item::Summary(_) => ("summary", None),
    };
    FoundView {
        href,
        kind,
        said: day(found.item.created_at()),
        text: room.clip(found.shortened.as_deref().unwrap_or_else(|| found.item.content()), 600),
        score: format!("{:.2}", found.relevance),
    }
}

fn read_view(sentence: &SentenceExplanation, room: &mut Room) -> ReadView {
    let statement = sentence.statement.as_ref();
    let percent = |share: f32| format!("{:.0} %", share * 100.0);
    let verdict = match (statement, sentence.left_out) {
        (Some(statement), _) => format!(
            "{} a {}, confidence {}",
            effect(statement.effect),
            statement.kind.as_str(),
            percent(statement.confidence)
        ),
        (None, Some(why)) => format!("left out: {why}"),
        (None, None) => match sentence.worth {
            Some(worth) => format!("not worth remembering ({})", percent(worth)),
            None => "nothing to remember".to_owned(),
        },
    };
    let about = statement.and_then(|statement| {
        let id = statement.about?;
        let known = statement.candidates.iter().find(|candidate| candidate.id == id)?;
        Some(room.line(&known.memory, 200).text)
    });
    ReadView {
        text: room.line(&sentence.text, 400),
        verdict,
        memory: statement.map(|statement| room.line(&statement.memory, 300)),
        about,
    }
}

fn effect(effect: &str) -> &'static str {
    match effect {
        "adds" => "would add",
        "repeats" => "repeats",
        "replaces" => "would replace",
        "ends" => "would end",
        "disputes" => "would dispute",
        _ => "changes nothing about",
    }
}
