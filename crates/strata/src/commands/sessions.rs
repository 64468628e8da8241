//! `strata sessions`: lists, shows, deletes and exports sessions, and lists the points of their summaries.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Subcommand;
use jiff::Timestamp;
use serde::Serialize;
use strata_core::store::TurnQuery;
use strata_core::summary::SummaryPart;
use strata_core::summary::{Summary, SummaryStats};
use strata_core::turn::{HiddenReason, Metadata};
use strata_core::{Role, Session, SessionId, Turn, UserId};
use strata_engine::Engine;
use strata_engine::{StructuredPoint, SummaryReport, SummaryVersion};
use strata_server::forget_kept_chats;
use strata_server::wire::{
    NotesResponse, PointsResponse, RemovedResponse, SessionResponse, SessionsResponse, SummariesResponse,
    TurnResponse,
};

use super::serve::spill_folder;
use super::{Context, JsonArgs, PageArgs, SessionArgs, UserArgs};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, confirm, counted, note};

/// List, show, delete and export sessions
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata sessions list --user ada\n  strata sessions show trip --limit 20")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List a user's sessions, most recently updated first
    #[command(after_help = "Example:\n  strata sessions list --user ada --limit 20")]
    List {
        #[command(flatten)]
        user: UserArgs,
        #[command(flatten)]
        page: PageArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Show a session and its turns
    #[command(after_help = "Example:\n  strata sessions show trip --after 99 --limit 20")]
    Show {
        #[command(flatten)]
        which: SessionArgs,
        /// Only turns after this seq
        #[arg(long, value_name = "SEQ", allow_negative_numbers = true)]
        after: Option<u64>,
        /// The maximum number of turns
        #[arg(long, value_name = "N", default_value_t = 50, allow_negative_numbers = true)]
        limit: u32,
        /// Show the versions of the session's summaries instead, the one that covers the most turns first
        #[arg(long, conflicts_with = "after")]
        summaries: bool,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// List the points of one part of the current summaries, of one session or of all
    ///
    /// A point that several sessions share is listed once. The most recently updated session comes first.
    #[command(
        after_help = "Example:\n  strata sessions points todos\n  strata sessions points facts --session trip --json"
    )]
    Points {
        /// The part: `facts`, `preferences`, `decisions`, `todos` or `entities`
        #[arg(value_name = "PART")]
        part: SummaryPart,
        /// Only points of this session
        #[arg(long, value_name = "NAME")]
        session: Option<SessionId>,
        #[command(flatten)]
        user: UserArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Destroy a session with its turns, summaries and the memories bound to it
    #[command(after_help = "Example:\n  strata sessions delete trip --yes")]
    Delete {
        #[command(flatten)]
        which: SessionArgs,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Export a session's turns as JSON lines for `strata record`
    ///
    /// Turns that are hidden from recall (errors, abandoned branches) are left out.
    #[command(after_help = "Example:\n  strata sessions export trip --output trip.jsonl")]
    Export {
        #[command(flatten)]
        which: SessionArgs,
        /// The file to write; it must not exist [default: stdout]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// The number of turns that an export reads at once.
const EXPORT_PAGE: u32 = 1_000;

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    match args.action {
        Action::List { user, page, json: JsonArgs { json } } => {
            let user = user.of(context);
            let engine = context.engine_for(&user).await?;
            let sessions = engine.sessions.list(&user, page.into()).await?;
            list(&engine, &user, &sessions, json, output).await
        }
        Action::Show { which, limit, summaries: true, json, .. } => {
            let (session, user) = which.of(context);
            let engine = context.engine_for(&user).await?;
            let session = engine.sessions.get(&user, &session).await?;
            let report = engine.summaries.report(&user, &session.id, limit).await?;
            show_summaries(&user, &session, &report, json, output)
        }
        Action::Show { which, after, limit, json, .. } => {
            let (session, user) = which.of(context);
            let engine = context.engine_for(&user).await?;
            let turns = engine.sessions.turns(&user, &session, after, limit).await?;
            let session = engine.sessions.get(&user, &session).await?;
            let deleted = deleted_turns(&engine, &user, &session.id).await?;
            let created_at = engine.sessions.begun(&user, &session).await?;
            let session =
                Session { created_at: if json.json { session.created_at } else { created_at }, ..session };
            show(&user, &session, deleted, &turns, json, output)
        }
        Action::Points { part, session, user, json: JsonArgs { json } } => {
            let user = user.of(context);
            let engine = context.engine_for(&user).await?;
            let points = engine.summaries.structured(&user, session.as_ref(), part, usize::MAX).await?;
            list_points(part, points, json, output)
        }
        Action::Delete { which, yes, json } => delete(which, yes, json, context, output).await,
        Action::Export { which, output: file } => {
            let (session, user) = which.of(context);
            let engine = context.engine_for(&user).await?;
            match file {
                Some(file) => {
                    let count = export_to_file(&engine, &user, &session, &file).await?;
                    note(format_args!("wrote {} to `{}`", counted(count, "turn"), file.display()));
                    Ok(())
                }
                None => {
                    export(&engine, &user, &session, &mut |line| output.json_line(line)).await?;
                    Ok(())
                }
            }
        }
    }
}

async fn delete(
    which: SessionArgs,
    yes: bool,
    json: JsonArgs,
    context: &Context,
    output: &mut Output,
) -> Outcome {
    let (session, user) = which.of(context);
    let engine = context.engine_for(&user).await?;
    let count = engine.sessions.get(&user, &session).await?.turn_count;
    let turns = counted(count, "turn");
    confirm(&format!("session `{session}` of user `{user}` with its {turns}"), yes)?;
    if let Some(folder) = context.config.store.path().map(spill_folder) {
        forget_kept_chats(&folder, &user, Some(&session));
    }
    let removed = engine.sessions.delete(&user, &session).await?;
    if json.json {
        output.json(&RemovedResponse::from(&removed))?;
    } else {
        let (turns, memories) = (counted(removed.turns, "turn"), counted(removed.memories, "memory"));
        output.line(format_args!("destroyed {turns} and {memories}"))?;
    }
    Ok(())
}

/// A session with its turns or its summaries.
#[derive(Debug, Serialize)]
struct SessionWithParts {
    #[serde(flatten)]
    session: SessionResponse,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<Vec<TurnResponse>>,
    #[serde(flatten)]
    summaries: Option<SummariesResponse>,
}

/// The turns of a session that were deleted, whose places stay.
async fn deleted_turns(engine: &Engine, user: &UserId, session: &SessionId) -> Outcome<u64> {
    let hidden = TurnQuery::Hidden { session: session.clone(), after: None, limit: u32::MAX };
    let hidden = engine.store().turns(user, &hidden).await?;
    let is_deleted = |turn: &&Turn| turn.hidden.is_some_and(|hidden| hidden.reason == HiddenReason::Deleted);
    Ok(hidden.iter().filter(is_deleted).count() as u64)
}

async fn list(
    engine: &Engine,
    user: &UserId,
    sessions: &[Session],
    json: bool,
    output: &mut Output,
) -> Outcome {
    if json {
        output.json(&SessionsResponse::new(user, sessions))?;
    } else if sessions.is_empty() {
        note(format_args!("user `{user}` has no sessions"));
    } else {
        let mut rows = Vec::with_capacity(sessions.len());
        for session in sessions {
            rows.push(row(engine, user, session).await?);
        }
        table(rows, sessions.iter().map(Session::title), output)?;
    }
    Ok(())
}

async fn row(engine: &Engine, user: &UserId, session: &Session) -> Outcome<[String; 4]> {
    let Session { id, updated_at, turn_count, .. } = session;
    let turns = turn_count.saturating_sub(deleted_turns(engine, user, id).await?);
    let created_at = engine.sessions.begun(user, session).await?;
    Ok([turns.to_string(), created_at.to_string(), updated_at.to_string(), id.to_string()])
}

/// The table of sessions, with their titles if one of them has one.
fn table<'a>(
    rows: Vec<[String; 4]>,
    titles: impl Iterator<Item = Option<&'a str>>,
    output: &mut Output,
) -> Outcome {
    let titles: Vec<Option<&str>> = titles.collect();
    if titles.iter().all(Option::is_none) {
        output.table(["TURNS", "CREATED", "UPDATED", "SESSION"], &rows)?;
        return Ok(());
    }
    let titled = |([turns, created, updated, session], title): ([String; 4], Option<&str>)| {
        [turns, created, updated, session, title.unwrap_or("-").to_owned()]
    };
    let rows: Vec<[String; 5]> = rows.into_iter().zip(titles).map(titled).collect();
    output.table(["TURNS", "CREATED", "UPDATED", "SESSION", "TITLE"], &rows)?;
    Ok(())
}

fn list_points(part: SummaryPart, points: Vec<StructuredPoint>, json: bool, output: &mut Output) -> Outcome {
    if json {
        output.json(&points.iter().collect::<PointsResponse>())?;
    } else if points.is_empty() {
        note(format_args!("no current summary has {} yet", part.as_str()));
    } else {
        let rows: Vec<_> = points
            .into_iter()
            .map(|StructuredPoint { session, text, seq, .. }| {
                [session.to_string(), seq.map(|seq| seq.to_string()).unwrap_or_default(), text]
            })
            .collect();
        output.table(["SESSION", "SEQ", "TEXT"], &rows)?;
    }
    Ok(())
}

fn show(
    user: &UserId,
    session: &Session,
    deleted: u64,
    turns: &[Turn],
    json: JsonArgs,
    output: &mut Output,
) -> Outcome {
    if json.json {
        let turns = Some(turns.iter().map(TurnResponse::from).collect());
        let session = SessionResponse::new(user, session);
        output.json(&SessionWithParts { session, turns, summaries: None })?;
        return Ok(());
    }
    let Session { id, created_at, updated_at, turn_count, .. } = session;
    let left = counted(turn_count.saturating_sub(deleted), "turn");
    let deleted = if deleted == 0 { String::new() } else { format!(" and {deleted} deleted") };
    output.line(format_args!("session `{id}` of user `{user}`: {left}{deleted}"))?;
    if let Some(title) = session.title() {
        output.text(title)?;
    }
    output.line(format_args!("created {created_at}, updated {updated_at}"))?;
    for turn in turns {
        let name = turn.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
        let hidden =
            turn.hidden.map(|hidden| format!(", hidden: {}", hidden.reason.as_str())).unwrap_or_default();
        output.line("")?;
        output.line(format_args!("{} {}{name} {}{hidden}", turn.seq, turn.role.as_str(), turn.created_at))?;
        output.text(&turn.content)?;
    }
    let next = turns.last().map_or(0, |turn| turn.seq + 1);
    if next > 0 && next < *turn_count {
        note(format_args!("{} more turns; continue with `--after {}`", turn_count - next, next - 1));
    }
    Ok(())
}

fn show_summaries(
    user: &UserId,
    session: &Session,
    report: &SummaryReport,
    json: JsonArgs,
    output: &mut Output,
) -> Outcome {
    if json.json {
        let summaries = Some(SummariesResponse::from(report));
        let session = SessionResponse::new(user, session);
        output.json(&SessionWithParts { session, turns: None, summaries })?;
        return Ok(());
    }
    if report.versions.is_empty() {
        note(format_args!("session `{}` has no summaries yet", session.id));
    }
    for (place, SummaryVersion { summary, base_end_seq, stuck }) in report.versions.iter().enumerate() {
        let Summary { id, strategy, level, start_seq, end_seq, base_id, status, created_at, .. } = summary;
        let base = base_id.map(|base| format!(" on {base}")).unwrap_or_default();
        let reached = base_end_seq.map(|end| format!(" (to {end})")).unwrap_or_default();
        let level = if *level > 0 { format!(" L{level}") } else { String::new() };
        let took = summary.generation_ms.map(|ms| format!(", {ms} ms")).unwrap_or_default();
        let tokens = format!("{} of {} tokens", summary.output_tokens, summary.input_tokens);
        let stuck = if *stuck { ", stuck: its job continues when the lease has expired" } else { "" };
        if place > 0 {
            output.line("")?;
        }
        output.line(format_args!(
            "{id}{base}{reached} {}{level} {} turns {start_seq} to {end_seq} {created_at}, {tokens}{took}{stuck}",
            strategy.as_str(),
            status.as_str()
        ))?;
        output.text(&summary.text)?;
    }
    let SummaryStats { total_summaries, avg_ms, max_ms, stuck } = report.stats;
    if let (Some(average), Some(longest)) = (avg_ms, max_ms) {
        let stuck = if stuck > 0 { format!(", {stuck} stuck") } else { String::new() };
        note(format_args!(
            "{total_summaries} summaries, {average} ms on average, {longest} ms at most{stuck}"
        ));
    }
    Ok(())
}

/// A turn as `strata record` reads it.
#[derive(Debug, Serialize)]
struct ExportedTurn<'a> {
    role: Role,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    metadata: &'a Metadata,
    #[serde(flatten)]
    notes: NotesResponse,
}

async fn export(
    engine: &Engine,
    user: &UserId,
    session: &SessionId,
    write: &mut (dyn FnMut(&ExportedTurn<'_>) -> std::io::Result<()> + Send),
) -> Outcome<u64> {
    let (mut after, mut count) = (None, 0);
    loop {
        let turns = engine.sessions.turns(user, session, after, EXPORT_PAGE).await?;
        let Some(last) = turns.last() else { return Ok(count) };
        after = Some(last.seq);
        for turn in turns.iter().filter(|turn| turn.hidden.is_none()) {
            write(&ExportedTurn {
                role: turn.role,
                content: &turn.content,
                name: turn.name.as_deref(),
                created_at: turn.created_at,
                metadata: &turn.metadata,
                notes: NotesResponse::from(&turn.notes),
            })?;
            count += 1;
        }
    }
}

async fn export_to_file(engine: &Engine, user: &UserId, session: &SessionId, path: &Path) -> Outcome<u64> {
    // The session is looked up first, so that no file is created for a session that does not exist.
    engine.sessions.get(user, session).await?;
    let failed = || format!("`{}` cannot be written; name a new file in an existing folder", path.display());
    let mut file = BufWriter::new(File::create_new(path).with_context(failed)?);
    let count = export(engine, user, session, &mut |line| {
        serde_json::to_writer(&mut file, line)?;
        file.write_all(b"\n")
    })
    .await?;
    let file = file.into_inner().map_err(|error| Failure::Failed(error.into_error().into()))?;
    file.sync_all().with_context(failed)?;
    Ok(count)
}
