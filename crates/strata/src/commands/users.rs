//! `strata users`: lists the users of the store, and forgets one.

mod forget;

use clap::Subcommand;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use strata_core::store::{CheckDepth, MemoryQuery, MemorySelect, Page};
use strata_core::{Memory, Session, UserId};
use strata_engine::Engine;

use super::{Context, JsonArgs, jobs};
use crate::failure::Outcome;
use crate::output::{Output, note, warn_later};

/// List users, or forget one with everything
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata users list\n  strata users forget ada --yes")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the users that have anything stored, by name
    #[command(after_help = "Example:\n  strata users list --json")]
    List {
        #[command(flatten)]
        json: JsonArgs,
    },
    Forget(forget::Args),
}

/// A user and the size of what is stored.
#[derive(Debug, Serialize)]
struct UserRow {
    user: String,
    sessions: u64,
    turns: u64,
    memories: u64,
    updated_at: Option<Timestamp>,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    match args.action {
        Action::List { json } => list(&context.engine_to_read().await?, context, json, output).await,
        Action::Forget(args) => forget::run(args, context, output).await,
    }
}

async fn list(engine: &Engine, context: &Context, json: JsonArgs, output: &mut Output) -> Outcome {
    let mut rows = Vec::new();
    for user in jobs::users(engine).await? {
        rows.push(row(engine, &user).await?);
    }
    // A question about a mistyped name leaves a request row, which does not create a user.
    rows.retain(|row| row.updated_at.is_some());
    if json.json {
        output.json(&json!({ "users": rows, "default": context.config.user }))?;
        return Ok(());
    }
    if rows.is_empty() {
        note("the store is empty");
        return Ok(());
    }
    let cells: Vec<_> = rows
        .iter()
        .map(|row| {
            let shared = if row.user == UserId::global().as_str() { " (shared by all)" } else { "" };
            [
                row.sessions.to_string(),
                row.turns.to_string(),
                row.memories.to_string(),
                row.updated_at.map_or("-".to_owned(), |at| at.to_string()),
                format!("{}{shared}", row.user),
            ]
        })
        .collect();
    output.table(["SESSIONS", "TURNS", "MEMORIES", "UPDATED", "USER"], &cells)?;
    Ok(())
}

async fn row(engine: &Engine, user: &UserId) -> Outcome<UserRow> {
    let sessions = engine.sessions.list(user, Page::first(u32::MAX)).await?;
    // Also closed and deleted memories are data of the user.
    let memories = engine.memories.list(user, &MemoryQuery::new(MemorySelect::All)).await?;
    let updated = sessions.iter().map(|session| session.updated_at);
    let changed = |memory: &Memory| {
        let ends = [memory.valid_to, memory.hidden.map(|hidden| hidden.at)];
        ends.into_iter().flatten().fold(memory.recorded_at, Timestamp::max)
    };
    let updated_at = updated.chain(memories.iter().map(changed)).max();
    Ok(UserRow {
        user: user.as_str().to_owned(),
        sessions: sessions.len() as u64,
        turns: sessions.iter().map(|session: &Session| session.turn_count).sum(),
        memories: memories.iter().filter(|memory| memory.is_current()).count() as u64,
        updated_at,
    })
}

/// Warns if the store has nothing of `user`: a mistyped name would otherwise look like an empty memory.
pub(super) async fn warn_if_unknown(engine: &Engine, user: &UserId) -> Outcome {
    if !is_known(engine, user).await? {
        warn_later(format_args!("the store has nothing of user `{user}`{}", similar(engine, user).await?));
    }
    Ok(())
}

/// Whether the store has a session or a memory of a user.
async fn is_known(engine: &Engine, user: &UserId) -> Outcome<bool> {
    Ok(engine.store().head(user).await?.revision > 0
        || !engine.sessions.list(user, Page::first(1)).await?.is_empty())
}

/// The most users that a warning names.
const MOST_NAMED: usize = 5;

/// The names of other users, the most similar first, as the end of a sentence.
async fn similar(engine: &Engine, user: &UserId) -> Outcome<String> {
    let mut users = jobs::users(engine).await?;
    users.retain(|known| *known != UserId::global() && known != user);
    let likeness =
        |known: &UserId| strsim::jaro_winkler(&known.as_str().to_lowercase(), &user.as_str().to_lowercase());
    users.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    let mut known = Vec::new();
    for user in users {
        if known.len() <= MOST_NAMED && is_known(engine, &user).await? {
            known.push(user);
        }
    }
    Ok(match known.is_empty() {
        true => String::new(),
        false => format!("; the store has {}", named(&known)),
    })
}

/// The first names, and a sign if there are more.
pub(super) fn named(users: &[UserId]) -> String {
    let names: Vec<String> = users.iter().take(MOST_NAMED).map(|user| format!("`{user}`")).collect();
    let more = if users.len() > MOST_NAMED { ", …" } else { "" };
    format!("{}{more}", names.join(", "))
}

/// The number of turns and memories of a user, or of all users.
pub(super) async fn items(engine: &Engine, user: Option<&UserId>) -> Outcome<u64> {
    let Some(user) = user else {
        let health = engine.store().check(CheckDepth::Quick).await?;
        return Ok(health.turns + health.memories);
    };
    let sessions = engine.sessions.list(user, Page::first(u32::MAX)).await?;
    let turns: u64 = sessions.iter().map(|session| session.turn_count).sum();
    let memories = engine.memories.list(user, &MemoryQuery::new(MemorySelect::All)).await?.len() as u64;
    Ok(turns + memories)
}
