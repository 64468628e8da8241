//! `strata search`: what memory holds on a question.

use jiff::Timestamp;
use strata_core::SessionId;
use strata_core::moment::parse_as_of;
use strata_core::scope::Scope;
use strata_core::trace::RetrievalPath;
use strata_engine::Filter;
use strata_engine::recall::{RecallRequest, RecalledItem};
use strata_server::wire::{SearchResponse, kind_of};

use super::explain::show_trace;
use super::{Context, JsonArgs, UserArgs};
use crate::failure::Outcome;
use crate::output::{self, Output};

/// Find what was said and remembered
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata search \"where does Ada live\" --user ada --as-of 2026-01-31 --limit 3"
)]
pub(crate) struct Args {
    /// The question
    #[arg(value_name = "QUERY")]
    query: String,
    #[command(flatten)]
    user: UserArgs,
    /// The session it is asked in
    #[arg(long, value_name = "SESSION")]
    session: Option<SessionId>,
    /// Where to look: session, user or global [default: the session if one is named, else
    /// the user, and what all users share]
    #[arg(long, value_name = "SCOPE")]
    scope: Option<Scope>,
    /// What was known then: a date (all of its day, UTC) or a time as in RFC 3339
    #[arg(long, value_name = "TIME", value_parser = parse_as_of)]
    as_of: Option<Timestamp>,
    /// How many results at the most [default: the setting `default_top_k`]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<u32>,
    /// Only what this JSON object lets pass, as in `{"category": {"in": ["travel", "food"]}}`
    #[arg(long, value_name = "JSON")]
    filter: Option<Filter>,
    /// Say what became of each candidate, and keep that for `strata explain`
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args {
        query,
        user: UserArgs { user },
        session,
        scope,
        as_of,
        limit,
        filter,
        explain,
        json: JsonArgs { json },
    } = args;
    let engine = context.engine_to_read().await?;
    let request =
        RecallRequest { session, scope, as_of, limit, filter, explain, ..RecallRequest::new(query) };
    let recalled = engine.recall.ask(&user, &request).await?;
    if json {
        output.json(&SearchResponse::load(&engine, &user, &recalled).await?)?;
        return Ok(());
    }
    match recalled.path {
        RetrievalPath::None => output::note("nothing is known about this"),
        RetrievalPath::Window => output::note("nothing matches; these are the most recent turns"),
        _ => {}
    }
    if !recalled.items.is_empty() {
        let rows: Vec<_> = recalled.items.iter().map(row).collect();
        output.table(["SCORE", "KIND", "SESSION", "WHEN", "ID", "TEXT"], &rows)?;
    }
    if let Some(trace) = &recalled.trace {
        output.line("")?;
        show_trace(&engine, &user, trace, output).await?;
        output::note(format_args!("`strata explain {}` shows this again", recalled.request_id));
    }
    Ok(())
}

fn row(found: &RecalledItem) -> [String; 6] {
    let RecalledItem { item, shortened, score, .. } = found;
    [
        format!("{score:.2}"),
        kind_of(item).to_owned(),
        item.session().map_or("-", SessionId::as_str).to_owned(),
        item.created_at().to_string(),
        item.id().to_string(),
        shortened.as_deref().unwrap_or_else(|| item.content()).to_owned(),
    ]
}
