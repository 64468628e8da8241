//! One request: its trace as a picture of the stages, its candidates, and the form for complaints.

use std::collections::HashMap;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use strata_core::metric::{FeedbackKind, RequestMetric};
use strata_core::scope::Scope;
use strata_core::store::{Item, MemoryQuery, MemorySelect, TurnQuery};
use strata_core::trace::{Outcome, Trace, TraceCandidate};
use strata_core::{ItemId, RequestId, UserId};
use strata_engine::Engine;
use strata_engine::report::Unit;

use super::charts::share_width;
use super::clip::{Clipped, Room};
use super::frame::{Frame, Section, Visitor, counted, day, grouped, moment};
use super::guard::Form;
use super::requests::{badges, found_by};
use super::sessions;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::PathName;
use crate::route::Route;

/// The candidates that are shown without unfolding the rest.
const OPEN: usize = 10;

/// The most candidates on the page.
const CANDIDATES: usize = 40;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::undocumented("/inspect/requests/{id}", get(show)).inspects(),
        Route::undocumented("/inspect/requests/{id}/feedback", post(complain)).inspects(),
    ]
}

/// A stage of the picture: what came in, what was left out, and why.
pub(super) struct Stage {
    pub(super) name: &'static str,
    pub(super) left: usize,
    pub(super) dropped: usize,
    pub(super) why: String,
    /// The widths of what is left and of what was left out, of 100.
    pub(super) widths: (String, String),
}

/// The stages of a trace, in order. The answer is `truncated` if the budget shortened or dropped an item.
pub(super) fn stages(trace: &Trace, truncated: bool) -> Vec<Stage> {
    let all = trace.candidates.len();
    let count =
        |is_so: &dyn Fn(&Outcome) -> bool| trace.candidates.iter().filter(|one| is_so(&one.outcome)).count();
    let hits = format!(
        "{} by words, {} by trigrams, {} compared by meaning",
        grouped(trace.fts_hits),
        grouped(trace.trgm_hits),
        grouped(trace.vector_hits)
    );
    let reasons = [
        (count(&|outcome| matches!(outcome, Outcome::Shown)), "shown anyway"),
        (count(&|outcome| matches!(outcome, Outcome::SameQuestion)), "the same question"),
        (count(&|outcome| matches!(outcome, Outcome::SaidAgain(_))), "said again later"),
        (count(&|outcome| matches!(outcome, Outcome::NoContent)), "without content"),
    ];
    let excluded: usize = reasons.iter().map(|(count, _)| count).sum();
    let reasons: Vec<String> =
        reasons.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count} {why}")).collect();
    let steps = [
        ("Exclusion", excluded, reasons.join(", ")),
        (
            "Relevance",
            count(&|outcome| matches!(outcome, Outcome::BelowThreshold)),
            "not relevant enough".to_owned(),
        ),
        (
            "Choice",
            count(&|outcome| matches!(outcome, Outcome::NotChosen)),
            "others were better, or say the same".to_owned(),
        ),
        (
            "Budget",
            count(&|outcome| matches!(outcome, Outcome::OverBudget(_))),
            "did not fit the budget".to_owned(),
        ),
    ];
    let width = |count: usize| share_width(count as f64, all as f64, 100.0);
    let mut stages =
        vec![Stage { name: "Candidates", left: all, dropped: 0, why: hits, widths: (width(all), width(0)) }];
    let mut left = all;
    for (name, dropped, why) in steps {
        left -= dropped.min(left);
        let why = match dropped {
            0 if truncated && name == "Budget" => "an item was shortened to fit".to_owned(),
            0 => "nothing left out".to_owned(),
            _ => why,
        };
        stages.push(Stage { name, left, dropped, why, widths: (width(left), width(dropped)) });
    }
    stages.push(Stage {
        name: "Served",
        left,
        dropped: 0,
        why: served_words(trace),
        widths: (width(left), width(0)),
    });
    stages
}

/// The path that found the items, and its place.
fn served_words(trace: &Trace) -> String {
    let place = match trace.scope {
        Scope::Session => "in this session",
        Scope::User => "in all sessions of the user",
        Scope::Global => "in all sessions of the user and in what all users share",
    };
    match found_by(trace.path) {
        Some(how) => format!("found by {how}, {place}"),
        None => format!("nothing was good enough {place}"),
    }
}

/// A candidate in the list.
pub(super) struct CandidateView {
    pub(super) href: Option<String>,
    pub(super) kind: &'static str,
    pub(super) text: Clipped,
    pub(super) said: String,
    pub(super) relevance: String,
    /// The width of the relevance's bar, of 100.
    pub(super) width: String,
    pub(super) parts: String,
    pub(super) outcome: String,
    pub(super) is_served: bool,
    /// Whether it is in the folded rest of the list.
    pub(super) is_rest: bool,
    /// The size of the rest, if it begins here.
    pub(super) begins_rest: Option<usize>,
}

/// Folds the candidates behind the first ones and behind the last one that was served.
fn fold(candidates: &mut [CandidateView]) {
    let served = candidates.iter().rposition(|candidate| candidate.is_served).map_or(0, |place| place + 1);
    let begin = served.max(OPEN).min(candidates.len());
    let rest = &mut candidates[begin..];
    let count = rest.len();
    rest.iter_mut().for_each(|candidate| candidate.is_rest = true);
    if let Some(first) = rest.first_mut() {
        first.begins_rest = Some(count);
    }
}

/// The candidates of a trace with their texts.
pub(super) async fn candidates(
    engine: &Engine,
    frame: &Frame,
    user: &UserId,
    trace: &Trace,
    room: &mut Room,
) -> Result<Vec<CandidateView>, ApiError> {
    let shown = &trace.candidates[..trace.candidates.len().min(CANDIDATES)];
    let items = items(engine, user, shown).await?;
    let views =
        shown.iter().map(|candidate| candidate_view(frame, candidate, items.get(&candidate.item), room));
    let mut views: Vec<CandidateView> = views.collect();
    fold(&mut views);
    Ok(views)
}

fn candidate_view(
    frame: &Frame,
    candidate: &TraceCandidate,
    item: Option<&Item>,
    room: &mut Room,
) -> CandidateView {
    let (kind, path) = match candidate.item {
        ItemId::Turn(id) => ("turn", Some(format!("/inspect/turns/{id}"))),
        ItemId::Memory(id) => ("memory", Some(format!("/inspect/memories/{id}"))),
        ItemId::Summary(_) => ("summary", None),
    };
    let part = |name: &str, value: Option<f32>| value.map(|value| format!("{name} {value:.2}"));
    let parts = [
        part("words", candidate.terms),
        part("similar words", candidate.words),
        part("meaning", candidate.encoder.or(candidate.mean)),
        part("like the best", candidate.likeness.filter(|likeness| *likeness != 0.0)),
        candidate.timely.then(|| "from the time asked for".to_owned()),
    ];
    CandidateView {
        href: path.filter(|_| item.is_some()).map(|path| frame.href(&path)),
        kind,
        text: item.map_or_else(Clipped::default, |item| room.line(item.content(), 260)),
        said: item.map(|item| day(item.created_at())).unwrap_or_default(),
        relevance: format!("{:.2}", candidate.relevance),
        width: share_width(f64::from(candidate.relevance), 1.0, 100.0),
        parts: parts.into_iter().flatten().collect::<Vec<_>>().join(" · "),
        outcome: candidate.outcome.to_string().replace('`', ""),
        is_served: matches!(candidate.outcome, Outcome::Served(_)),
        is_rest: false,
        begins_rest: None,
    }
}

/// The items of candidates that still exist.
async fn items(
    engine: &Engine,
    user: &UserId,
    candidates: &[TraceCandidate],
) -> Result<HashMap<ItemId, Item>, ApiError> {
    let (mut turns, mut memories) = (Vec::new(), Vec::new());
    for candidate in candidates {
        match candidate.item {
            ItemId::Turn(id) => turns.push(id),
            ItemId::Memory(id) => memories.push(id),
            ItemId::Summary(_) => {}
        }
    }
    let store = engine.store();
    let turns = store.turns(user, &TurnQuery::Ids(turns)).await?;
    let query = MemoryQuery::new(MemorySelect::Ids(memories));
    let mut memories = store.memories(user, &query).await?;
    // Recall shows the memories that all users share to every user.
    memories.extend(store.memories(&UserId::global(), &query).await?);
    let items = turns.into_iter().map(Item::Turn).chain(memories.into_iter().map(Item::Memory));
    Ok(items.map(|item| (item.id(), item)).collect())
}

#[derive(Template)]
#[template(path = "request.html")]
struct RequestPage {
    frame: Frame,
    id: String,
    query: Clipped,
    facts: Vec<(&'static str, String)>,
    badges: Vec<(&'static str, &'static str)>,
    session: Option<(String, String)>,
    note: &'static str,
    expansion: Option<String>,
    stages: Vec<Stage>,
    candidates: Vec<CandidateView>,
    left_out: usize,
    complaints: Vec<(String, &'static str, Clipped)>,
    /// The address of the form for complaints.
    action: String,
}

async fn show(
    State(app): State<App>,
    visitor: Visitor,
    PathName(id): PathName,
) -> Result<Response, ApiError> {
    let Visitor { user, frame, .. } = visitor;
    let id: RequestId = id.parse()?;
    let engine = app.engine();
    let row = engine.requests.get(&user, id).await?;
    let trace = engine.requests.trace_of(&user, row.clone()).await?;
    let mut room = Room::new();
    let query = room.clip(&row.query, 2_000);
    let frame = frame.titled(Section::Requests, "Request");
    let candidates = candidates(engine, &frame, &user, &trace, &mut room).await?;
    let page = RequestPage {
        id: id.to_string(),
        query,
        facts: facts(&row),
        badges: badges(&row),
        session: row.session.as_ref().map(|session| {
            (frame.href(&sessions::path(session.as_str())), room.line(session.as_str(), 120).text)
        }),
        note: row.trace_source().note(),
        expansion: row.expansion.as_ref().map(|why| room.line(why, 200).text),
        stages: stages(&trace, row.truncated),
        left_out: trace.candidates.len() - candidates.len(),
        candidates,
        action: frame.href(&format!("/inspect/requests/{id}/feedback")),
        complaints: row
            .feedback
            .iter()
            .map(|feedback| (moment(feedback.at), feedback.kind.as_str(), room.clip(&feedback.text, 2_000)))
            .collect(),
        frame,
    };
    page.frame.answer(&page)
}

/// How much a request returned, in words.
fn returned(row: &RequestMetric) -> String {
    let items = counted(row.context_items.into(), "item", "items");
    format!("{items}, {}", counted(row.estimated_tokens.into(), "token", "tokens"))
}

fn facts(row: &RequestMetric) -> Vec<(&'static str, String)> {
    let time = |micros: u64| Unit::Seconds.words(micros as f64 / 1_000_000.0);
    let mut facts = vec![
        ("Asked", moment(row.created_at)),
        ("Returned", returned(row)),
        ("Recall took", time(row.latency_retrieval_us)),
    ];
    facts.extend(row.latency_llm_us.map(|micros| ("Model took", time(micros))));
    if let (Some(raw), Some(input)) = (row.prompt.raw_tokens, row.prompt.input_tokens) {
        facts.push(("Tokens shown", format!("{} instead of {}", grouped(input), grouped(raw))));
    }
    facts.extend(row.error_stage.map(|stage| ("Failed at", stage.as_str().replace('_', " "))));
    facts.extend(row.late.map(|late| ("Too late", late.as_str().to_owned())));
    facts
}

async fn complain(
    State(app): State<App>,
    visitor: Visitor,
    PathName(id): PathName,
    form: Form,
) -> Result<Response, ApiError> {
    let Visitor { user, frame, .. } = visitor;
    let id: RequestId = id.parse()?;
    let kind = if form.field("meaning") == "yes" { FeedbackKind::Meaning } else { FeedbackKind::Forgot };
    app.engine().reporting.complain(&user, id, kind, form.field("text")).await?;
    Ok(frame.go(&format!("/inspect/requests/{id}"), "complained"))
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use strata_core::scope::Scope;
    use strata_core::trace::RetrievalPath;
    use uuid::Uuid;

    fn candidate(number: u32, outcome: Outcome) -> TraceCandidate {
        TraceCandidate {
            item: ItemId::Turn(strata_core::TurnId(Uuid::from_u128(u128::from(number)))),
            place: number,
            terms: None,
            words: None,
            mean: None,
            encoder: None,
            timely: false,
            likeness: None,
            fresher_by: 0,
            score: 0.0,
            judged: None,
            relevance: 0.5,
            age_days: None,
            served_score: None,
            replaced_by: None,
            outcome,
        }
    }

    #[test]
    fn the_rest_of_the_candidates_is_folded_behind_the_last_served_one() {
        let folded = |count: u32, served: u32| {
            let outcome =
                |number| if number == served { Outcome::Served(1) } else { Outcome::BelowThreshold };
            let view = |number| {
                let candidate = candidate(number, outcome(number));
                candidate_view(&Frame::default(), &candidate, None, &mut Room::new())
            };
            let mut views: Vec<CandidateView> = (0..count).map(view).collect();
            fold(&mut views);
            let begin = views.iter().position(|view| view.begins_rest.is_some());
            (begin, views.iter().filter(|view| view.is_rest).count())
        };
        assert_eq!((folded(0, 0), folded(10, 0)), ((None, 0), (None, 0)));
        assert_eq!((folded(14, 0), folded(14, 12)), ((Some(10), 4), (Some(13), 1)));
    }

    #[test]
    fn the_stages_say_where_each_candidate_went() {
        let outcomes = [
            Outcome::Served(1),
            Outcome::Shown,
            Outcome::SaidAgain("x".to_owned()),
            Outcome::BelowThreshold,
            Outcome::BelowThreshold,
            Outcome::NotChosen,
            Outcome::OverBudget("too long".to_owned()),
            Outcome::Served(2),
        ];
        let trace = Trace {
            query: "q".to_owned(),
            scope: Scope::User,
            expansion: None,
            path: RetrievalPath::Fts,
            fts_hits: 5,
            trgm_hits: 0,
            vector_hits: 8,
            candidates: outcomes
                .into_iter()
                .zip(1..)
                .map(|(outcome, number)| candidate(number, outcome))
                .collect(),
        };
        let shortened = Trace { candidates: vec![candidate(1, Outcome::Served(1))], ..trace.clone() };
        let why = |truncated| stages(&shortened, truncated)[4].why.clone();
        assert_eq!(
            (why(true), why(false)),
            ("an item was shortened to fit".to_owned(), "nothing left out".to_owned())
        );
        let stages = stages(&trace, true);
        let counts: Vec<_> = stages.iter().map(|stage| (stage.name, stage.left, stage.dropped)).collect();
        let expected = [
            ("Candidates", 8, 0),
            ("Exclusion", 6, 2),
            ("Relevance", 4, 2),
            ("Choice", 3, 1),
            ("Budget", 2, 1),
            ("Served", 2, 0),
        ];
        assert_eq!(counts, expected);
        assert_eq!(stages[1].why, "1 shown anyway, 1 said again later");
        assert_eq!((stages[0].widths.0.as_str(), stages[1].widths.1.as_str()), ("100.0", "25.0"));
    }
}
