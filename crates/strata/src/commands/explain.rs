//! `strata explain`: shows the outcome of each candidate of a request, and why an item was not recalled.

use std::collections::HashMap;

use strata_core::metric::{LateStage, RequestMetric};
use strata_core::scope::Scope;
use strata_core::store::{MemoryQuery, MemorySelect, TurnQuery};
use strata_core::trace::{Trace, TraceCandidate};
use strata_core::{ItemId, UserId};
use strata_engine::Engine;
use strata_server::wire::{ExplanationResponse, TracedRequestResponse};

use super::ids::{self, IdText};
use super::{Context, JsonArgs, UserArgs};
use crate::failure::Outcome;
use crate::output::{Output, counted};

/// Explain why an item was or was not recalled
///
/// Shows the outcome of each candidate of an earlier search. If the search was not run with `--explain`, it is run again over
/// the items that were visible then.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata explain 0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e\n  strata explain 0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e --item 0197f3c1-0a2b-7d4c-8e6f-123456789abc"
)]
pub(crate) struct Args {
    /// The id of the request, or its last characters, from `strata search --json` or `POST /search`
    #[arg(value_name = "REQUEST")]
    request: IdText,
    /// Explain only this turn or memory
    #[arg(long, value_name = "ID")]
    item: Option<IdText>,
    #[command(flatten)]
    user: UserArgs,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { request, item, user, json: JsonArgs { json } } = args;
    let user = user.of(context);
    let engine = context.engine_for(&user).await?;
    let request = ids::request(&engine, &user, &request).await?;
    if let Some(item) = item {
        // An id is unique across turns, memories and summaries, so the engine finds the item whatever its kind is.
        let item = ids::item(&engine, &user, request, &item).await?;
        let explanation = engine.requests.explain(&user, request, ItemId::Turn(item)).await?;
        if json {
            output.json(&ExplanationResponse::from(&explanation))?;
            return Ok(());
        }
        output.line(&explanation.reason)?;
        if let Some(candidate) = &explanation.candidate {
            output.line("")?;
            show_candidates(&engine, &user, Scope::Global, std::slice::from_ref(candidate), output).await?;
        }
        return Ok(());
    }
    let row = engine.requests.get(&user, request).await?;
    let trace = engine.requests.trace_of(&user, row.clone()).await?;
    if json {
        output.json(&TracedRequestResponse::new(&user, &row, &trace))?;
        return Ok(());
    }
    show_row(&row, output)?;
    output.line("")?;
    output.line(row.trace_source().note())?;
    show_trace(&engine, &user, &trace, output).await
}

fn show_row(row: &RequestMetric, output: &mut Output) -> Outcome {
    let session = row.session.as_ref().map(|session| format!(", session `{session}`")).unwrap_or_default();
    output.line(format_args!("asked at {}{session}", row.created_at))?;
    output.text(&row.query)?;
    let cut = if row.truncated { ", cut by the budget" } else { "" };
    output.line(format_args!(
        "returned {}, {}{cut}, in {:.1} ms",
        counted(row.context_items.into(), "item"),
        counted(row.estimated_tokens.into(), "token"),
        row.latency_retrieval_us as f64 / 1_000.0
    ))?;
    if let Some(stage) = row.error_stage {
        output.line(format_args!("failed at stage {stage:?}"))?;
    }
    match row.late {
        Some(LateStage::Embedding) => output.line("the embedder was late: ranked by words")?,
        Some(LateStage::Reranking) => output.line("the cross-encoder was late: in the order before it")?,
        Some(LateStage::SecondLook) => output.line("the reader was late: with the scores before it")?,
        None => {}
    }
    Ok(())
}

/// Prints the outcome of each candidate.
pub(super) async fn show_trace(
    engine: &Engine,
    user: &UserId,
    trace: &Trace,
    output: &mut Output,
) -> Outcome {
    output.line(format_args!(
        "scope {}, path {}: {} hits by words, {} by trigrams, {} compared by vectors",
        trace.scope.as_str(),
        trace.path.as_str(),
        trace.fts_hits,
        trace.trgm_hits,
        trace.vector_hits
    ))?;
    if let Some(reason) = &trace.expansion {
        output.line(format_args!("searched beyond the session: {reason}"))?;
    }
    if trace.candidates.is_empty() {
        output.line("there were no candidates")?;
        return Ok(());
    }
    show_candidates(engine, user, trace.scope, &trace.candidates, output).await
}

async fn show_candidates(
    engine: &Engine,
    user: &UserId,
    scope: Scope,
    candidates: &[TraceCandidate],
    output: &mut Output,
) -> Outcome {
    let texts = texts(engine, user, scope, candidates).await?;
    let rows: Vec<_> = candidates
        .iter()
        .map(|candidate| {
            let text = texts.get(&candidate.item).map_or("(gone)", String::as_str);
            [
                candidate.place.to_string(),
                format!("{:.2}", candidate.relevance),
                part(candidate.served_score),
                part(candidate.terms),
                part(candidate.words),
                part(candidate.encoder.or(candidate.mean)),
                if candidate.timely { "yes" } else { "-" }.to_owned(),
                part(candidate.judged),
                part(candidate.likeness.filter(|likeness| *likeness != 0.0)),
                if candidate.fresher_by == 0 {
                    "-".to_owned()
                } else {
                    format!("{:+}", candidate.fresher_by)
                },
                candidate.age_days.map_or("-".to_owned(), |days| format!("{days:.0} d")),
                candidate.reason(),
                candidate.item.to_string(),
                text.to_owned(),
            ]
        })
        .collect();
    let head = [
        "#",
        "RELEVANCE",
        "SCORE",
        "TERMS",
        "WORDS",
        "VECTOR",
        "TIME",
        "READ",
        "LIKE",
        "FRESH",
        "AGE",
        "OUTCOME",
        "ID",
        "TEXT",
    ];
    output.table(head, &rows)?;
    Ok(())
}

fn part(value: Option<f32>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.2}"))
}

/// The texts of the candidates that still exist.
async fn texts(
    engine: &Engine,
    user: &UserId,
    scope: Scope,
    candidates: &[TraceCandidate],
) -> Outcome<HashMap<ItemId, String>> {
    let (mut turns, mut memories) = (Vec::new(), Vec::new());
    for candidate in candidates {
        match candidate.item {
            ItemId::Turn(id) => turns.push(id),
            ItemId::Memory(id) => memories.push(id),
            ItemId::Summary(_) => {}
        }
    }
    let store = engine.store();
    let mut texts = HashMap::new();
    for turn in store.turns(user, &TurnQuery::Ids(turns)).await? {
        texts.insert(ItemId::Turn(turn.id), turn.content);
    }
    let query = MemoryQuery::new(MemorySelect::Ids(memories));
    let mut found = store.memories(user, &query).await?;
    if scope == Scope::Global {
        found.extend(store.memories(&UserId::global(), &query).await?);
    }
    texts.extend(found.into_iter().map(|memory| (ItemId::Memory(memory.id), memory.content)));
    Ok(texts)
}
