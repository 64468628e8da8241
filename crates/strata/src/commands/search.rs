//! `strata search`: finds the turns, memories and summaries that answer a question.

use jiff::Timestamp;
use strata_core::SessionId;
use strata_core::moment::parse_as_of;
use strata_core::scope::{RecallScope, Scope};
use strata_core::store::{Item, ItemKinds};
use strata_core::trace::RetrievalPath;
use strata_engine::Filter;
use strata_engine::recall::{RecallRequest, Recalled, RecalledItem};
use strata_server::wire::{SearchResponse, kind_of};

use super::explain::show_trace;
use super::{Context, JsonArgs, UserArgs};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Output};

/// Search turns and memories
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
    /// The session of the question
    #[arg(long, value_name = "SESSION")]
    session: Option<SessionId>,
    /// The scope: session, user or global [default: user, with the memories that all users share; the items of `--session`
    /// are preferred]
    #[arg(long, value_name = "SCOPE")]
    scope: Option<Scope>,
    /// Search what was known then: a date (at the end of the day, UTC) or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = parse_as_of)]
    as_of: Option<Timestamp>,
    /// The maximum number of results [default: the setting `default_top_k`]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<u32>,
    /// The kinds to search, separated by commas: turn, memory, summary [default: turn,memory; summaries if none of them answers]
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    kind: Vec<SearchedKind>,
    /// Only items that match this JSON filter, as in `{"category": {"in": ["travel", "food"]}}`
    #[arg(long, value_name = "JSON")]
    filter: Option<Filter>,
    /// Let a cross-encoder read the best candidates with the question and reorder them; `--rerank=false` leaves the order
    /// [default: the setting `recall.rerank`]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    rerank: Option<bool>,
    /// Show the outcome of each candidate, and keep it for `strata explain`
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    json: JsonArgs,
}

/// A kind of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SearchedKind {
    Turn,
    Memory,
    Summary,
}

/// The kinds to search; without any, the default of a request.
fn kinds(named: &[SearchedKind]) -> ItemKinds {
    if named.is_empty() {
        return ItemKinds::ALL;
    }
    ItemKinds {
        turns: named.contains(&SearchedKind::Turn),
        memories: named.contains(&SearchedKind::Memory),
        summaries: named.contains(&SearchedKind::Summary),
    }
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args {
        query,
        user,
        session,
        scope,
        as_of,
        limit,
        kind,
        filter,
        rerank,
        explain,
        json: JsonArgs { json },
    } = args;
    if scope == Some(Scope::Session) && session.is_none() {
        return Err(Failure::usage("scope `session` needs a session; name one with `--session`"));
    }
    let user = user.of(context);
    let engine = context.engine_for(&user).await?;
    let within = (scope == Some(Scope::Session)).then_some(RecallScope::Session);
    let request = RecallRequest {
        session,
        scope,
        within,
        kinds: kinds(&kind),
        as_of,
        limit,
        filter,
        rerank,
        explain,
        ..RecallRequest::new(query)
    };
    let recalled = engine.recall.ask(&user, &request).await?;
    if json {
        output.json(&SearchResponse::load(&engine, &user, &recalled).await?)?;
        return Ok(());
    }
    show(&recalled, kind.is_empty(), output)?;
    if let Some(trace) = &recalled.trace {
        output.line("")?;
        show_trace(&engine, &user, trace, output).await?;
        // Of a store that is only read, nothing is kept.
        if context.opened_engine().is_some() {
            output::note(format_args!("`strata explain {}` shows this again", recalled.request_id));
        }
    }
    Ok(())
}

/// Shows the items, and says what is special about them.
fn show(recalled: &Recalled, any_kind: bool, output: &mut Output) -> Outcome {
    match recalled.path {
        RetrievalPath::None => output::note("nothing was found that is good enough"),
        RetrievalPath::Window => output::note("showing the most recent turns"),
        RetrievalPath::SummariesOnly if any_kind => {
            output::note("no turn and no memory answers this; showing summaries")
        }
        _ => {}
    }
    if !recalled.items.is_empty() {
        let rows: Vec<_> = recalled.items.iter().map(row).collect();
        output.table(["SCORE", "KIND", "SESSION", "WHEN", "SPEAKER", "ID", "TEXT"], &rows)?;
        if !recalled.items.is_sorted_by(|a, b| a.score >= b.score) {
            output::note(
                "the score is how likely an item helps; newer ones and other sides of the answer may come first",
            );
        }
    }
    Ok(())
}

fn row(found: &RecalledItem) -> [String; 7] {
    let RecalledItem { item, shortened, score, .. } = found;
    [
        format!("{score:.2}"),
        kind(item),
        item.session().map_or("-", SessionId::as_str).to_owned(),
        item.created_at().to_string(),
        speaker(item).to_owned(),
        item.id().to_string(),
        shortened.as_deref().unwrap_or_else(|| item.content()).to_owned(),
    ]
}

/// The kind of an item, and whether it may contradict another one.
fn kind(item: &Item) -> String {
    match item {
        Item::Memory(memory) if memory.in_dispute_with().is_some() => format!("{}, disputed", kind_of(item)),
        _ => kind_of(item).to_owned(),
    }
}

/// The speaker of a turn: the name, or else the role.
fn speaker(item: &Item) -> &str {
    match item {
        Item::Turn(turn) => turn.name.as_deref().unwrap_or_else(|| turn.role.as_str()),
        Item::Memory(_) | Item::Summary(_) => "-",
    }
}
