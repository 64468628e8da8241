//! `strata demo`: plays a conversation of several weeks, shows what memory makes of it, and serves it for a look.
//!
//! The conversation (`demo/story.txt`) is written for this purpose, in English and Chinese, with facts that change. Everything
//! happens in a temporary store on this machine: no key, no network.

mod browser;

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde::Serialize;
use serde_json::json;
use strata::config::{Config, StoreUrl};
use strata_core::store::{Item, MemoryQuery, MemorySelect, TurnQuery};
use strata_core::turn::NewMessage;
use strata_core::{Memory, Role, SessionId, TurnId, UserId};
use strata_engine::prompt::PromptFormat;
use strata_engine::recall::{RecallRequest, RecalledItem};
use strata_engine::{Engine, PromptRequest};
use strata_server::wire::kind_of;
use tokio::net::TcpListener;

use super::learn::{Report, drain};
use super::settle::settle_all;
use super::{Context, JsonArgs, progress, serve};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, note};

/// Play a bundled conversation, show what memory makes of it, and serve it
///
/// The demo needs no key and no network. It records six weeks of a conversation in English and Chinese in a temporary store,
/// learns from it, and asks some questions. Then it serves the store until Ctrl-C, and the store is removed. On a desktop it opens
/// the inspector in your browser. Whatever the settings are, it listens on loopback only and asks no other machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata demo\n  strata demo --no-serve --json")]
pub(crate) struct Args {
    /// End after the questions instead of serving the store
    #[arg(long)]
    no_serve: bool,
    /// Print the address of the inspector without opening a browser
    #[arg(long, conflicts_with = "no_serve")]
    no_open: bool,
    /// Serve on this port [default: that of the setting `listen`, or a free one if another program uses it]
    #[arg(long, value_name = "PORT", conflicts_with = "no_serve")]
    port: Option<u16>,
    #[command(flatten)]
    json: JsonArgs,
}

const STORY: &str = include_str!("demo/story.txt");
const QUESTIONS: &str = include_str!("demo/questions.txt");

/// The user of the demo.
const USER: &str = "meilin";

/// The session of the questions, which has no turns.
const NOW: &str = "today";

/// The number of sources that are shown for a question.
const SHOWN: usize = 2;

/// A message of the story.
#[derive(Debug, PartialEq)]
struct Line {
    days: i64,
    time: Time,
    session: &'static str,
    role: Role,
    text: &'static str,
}

/// A question with its costs and sources.
#[derive(Debug, Serialize)]
struct Answer {
    question: &'static str,
    /// The tokens of the whole conversation, as a client without memory sends it.
    raw_tokens: u64,
    /// The tokens of Strata's prompt.
    tokens: u32,
    ms: f64,
    sources: Vec<Source>,
}

#[derive(Debug, Serialize)]
struct Source {
    kind: &'static str,
    day: String,
    text: String,
    /// Whether a later message has changed what it says.
    is_outdated: bool,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { no_serve, no_open, port, json: JsonArgs { json } } = args;
    let begun = Instant::now();
    // The signal is handled first, so that the folder is removed in any case.
    let stop = serve::stop_signal()?;
    let folder = tempfile::Builder::new()
        .prefix("strata-demo-")
        .tempdir()
        .context("no temporary folder can be created")?;
    // A person's own settings may name other machines, which the demo neither asks nor lets in.
    let config: Config = context.config.on_its_own(StoreUrl::Sqlite(folder.path().join("strata.db")))?;
    let store = strata::open_store(&config.store).await?;
    context.close_later(store.clone());
    let engine = strata::engine(&config, store)?;
    let user = UserId::new(USER)?;
    let lines = story()?;
    record(&engine, &user, &lines).await?;
    let mut learned = Report::default();
    drain(&engine, None, config.learning.workers(), &mut learned).await?;
    settle_all(&engine).await?;
    let answers = ask_all(&engine, &user).await?;
    let seconds = begun.elapsed().as_secs_f64();
    let memories = engine.memories.list(&user, &current()).await?.len();
    if json {
        output.json(
            &json!({ "turns": lines.len(), "memories": memories, "seconds": seconds, "questions": answers }),
        )?;
    } else {
        let weeks = lines.first().map_or(0, |line| -line.days / 7);
        output.line(format_args!(
            "{} messages of {weeks} weeks in English and Chinese: {memories} memories now, in {seconds:.1} s, on this machine alone.\n",
            lines.len()
        ))?;
        show(&answers, output)?;
    }
    output.flush()?;
    if no_serve {
        return Ok(());
    }
    let listener = match port {
        Some(port) => listener_at(SocketAddr::new(config.listen.ip(), port)).await?,
        None => listener(config.listen).await?,
    };
    let address = format!("http://{}/", listener.local_addr()?);
    output.line("")?;
    output.line(format_args!(
        "Look at it at {address} (user `{USER}`); Ctrl-C ends the demo and removes its store."
    ))?;
    output.flush()?;
    if !no_open {
        browser::open(&address);
    }
    serve::serve_on(listener, engine, &config, stop, output).await
}

fn current() -> MemoryQuery {
    MemoryQuery::new(MemorySelect::Current { as_of: None })
}

/// Reads the story: `@ DAYS TIME SESSION` begins a conversation, `U:` and `A:` a message.
fn story() -> Outcome<Vec<Line>> {
    let wrong = |number: usize| Failure::failed(format!("line {number} of the story cannot be read"));
    let mut place: Option<(i64, Time, &'static str)> = None;
    let mut lines: Vec<Line> = Vec::new();
    for (number, text) in STORY.lines().enumerate() {
        if let Some(head) = text.strip_prefix("@ ") {
            let parts: Vec<&'static str> = head.split(' ').collect();
            let [days, time, session] = parts[..] else { return Err(wrong(number + 1)) };
            let days = days.parse().map_err(|_| wrong(number + 1))?;
            let time = time.parse().map_err(|_| wrong(number + 1))?;
            place = Some((days, time, session));
            continue;
        }
        let (role, text) = match (text.strip_prefix("U: "), text.strip_prefix("A: ")) {
            (Some(text), _) => (Role::User, text),
            (_, Some(text)) => (Role::Assistant, text),
            _ => return Err(wrong(number + 1)),
        };
        let (days, time, session) = place.ok_or_else(|| wrong(number + 1))?;
        lines.push(Line { days, time, session, role, text });
    }
    Ok(lines)
}

/// Records the story as if it had been told up to today.
async fn record(engine: &Engine, user: &UserId, lines: &[Line]) -> Outcome {
    let today = engine.now().to_zoned(TimeZone::UTC).date();
    let bar = progress::bar("recording {bar:40} {pos}/{len} messages {eta}");
    bar.set_length(lines.len() as u64);
    for (minute, Line { days, time, session, role, text }) in (0..).zip(lines) {
        let date = today.checked_add(Span::new().days(*days)).map_err(anyhow::Error::from)?;
        let at: Timestamp =
            date.to_datetime(*time).to_zoned(TimeZone::UTC).map_err(anyhow::Error::from)?.timestamp();
        // Messages of one conversation are a few seconds apart.
        let at = at.checked_add(jiff::SignedDuration::from_secs(minute)).unwrap_or(at);
        let message = NewMessage { created_at: Some(at), ..NewMessage::new(*role, *text) };
        engine.recording.record(user, &SessionId::new(*session)?, vec![message], None).await?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

async fn ask_all(engine: &Engine, user: &UserId) -> Outcome<Vec<Answer>> {
    let recent = TurnQuery::recent(None, u32::MAX);
    let turns = engine.store().turns(user, &recent).await?;
    let raw: u64 = turns.iter().map(|turn| u64::from(turn.token_count)).sum();
    let outdated = outdated(engine, user).await?;
    let mut answers = Vec::new();
    for question in QUESTIONS.lines() {
        let session = SessionId::new(NOW)?;
        let begun = Instant::now();
        let request = PromptRequest { format: PromptFormat::Chat, ..PromptRequest::new(session, question) };
        let prompt = engine.prompting.prompt(user, &request).await?.prompt;
        let ms = Duration::as_secs_f64(&begun.elapsed()) * 1_000.0;
        let recalled = engine
            .recall
            .ask(user, &RecallRequest { limit: Some(8), ..RecallRequest::new(question) })
            .await?;
        let sources = sources(recalled.items, &outdated);
        answers.push(Answer { question, raw_tokens: raw, tokens: prompt.tokens, ms, sources });
    }
    Ok(answers)
}

/// The best items in the order of recall, which has current knowledge before outdated knowledge, without messages that a memory
/// tells again. `outdated` are the messages of which a later one has changed the facts.
fn sources(mut items: Vec<RecalledItem>, outdated: &HashSet<TurnId>) -> Vec<Source> {
    // A fallback to the most recent messages is no answer.
    items.retain(|found| found.relevance > 0.0);
    let told: Vec<_> = items
        .iter()
        .filter_map(|found| match &found.item {
            Item::Memory(memory) => Some(memory.source_turns.clone()),
            Item::Turn(_) | Item::Summary(_) => None,
        })
        .flatten()
        .collect();
    items.retain(|found| !matches!(&found.item, Item::Turn(turn) if told.contains(&turn.id)));
    items.iter().take(SHOWN).map(|found| source(found, outdated)).collect()
}

/// The messages whose facts have all been replaced.
async fn outdated(engine: &Engine, user: &UserId) -> Outcome<HashSet<TurnId>> {
    let all = engine.memories.list(user, &MemoryQuery::new(MemorySelect::All)).await?;
    let (current, former): (Vec<Memory>, Vec<Memory>) = all.into_iter().partition(Memory::is_current);
    let turns = |memories: &[Memory]| -> HashSet<TurnId> {
        memories.iter().flat_map(|memory| memory.source_turns.iter().copied()).collect()
    };
    Ok(&turns(&former) - &turns(&current))
}

fn source(found: &RecalledItem, outdated: &HashSet<TurnId>) -> Source {
    let text = found.shortened.as_deref().unwrap_or_else(|| found.item.content());
    let at = match &found.item {
        Item::Memory(memory) => memory.valid_from,
        other => other.created_at(),
    };
    let is_outdated = matches!(&found.item, Item::Turn(turn) if outdated.contains(&turn.id));
    let day = at.strftime("%Y-%m-%d").to_string();
    Source { kind: kind_of(&found.item), day, text: text.to_owned(), is_outdated }
}

fn show(answers: &[Answer], output: &mut Output) -> Outcome {
    let rows: Vec<_> = answers.iter().map(row).collect();
    output.table(["RAW TOKENS", "STRATA", "SAVED", "TIME", "QUESTION"], &rows)?;
    for answer in answers {
        output.line("")?;
        output.line(answer.question)?;
        if answer.sources.is_empty() {
            output.line("  nothing is known about this, and Strata says so")?;
        }
        for Source { kind, day, text, is_outdated } in &answer.sources {
            let kind = if *is_outdated { "said before" } else { kind };
            output.text(&format!("{day} {kind}: {text}"))?;
        }
    }
    Ok(())
}

fn row(answer: &Answer) -> [String; 5] {
    let share = 100.0 - 100.0 * f64::from(answer.tokens) / answer.raw_tokens.max(1) as f64;
    [
        answer.raw_tokens.to_string(),
        answer.tokens.to_string(),
        format!("{share:.0} %"),
        format!("{:.0} ms", answer.ms),
        answer.question.to_owned(),
    ]
}

/// Listens on the address of the settings, or on a free port if another program uses it.
async fn listener(listen: SocketAddr) -> Outcome<TcpListener> {
    match TcpListener::bind(listen).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            note(format_args!("`{listen}` is in use, so the demo takes a free port"));
            Ok(TcpListener::bind((listen.ip(), 0)).await?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Listens on an address that a person has chosen.
async fn listener_at(listen: SocketAddr) -> Outcome<TcpListener> {
    let failed = || format!("the demo cannot listen on `{listen}`; choose another port with `--port`");
    Ok(TcpListener::bind(listen).await.with_context(failed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_story_is_told_in_order() {
        let lines = story().unwrap();
        assert!(lines.len() > 40);
        assert!(
            lines.is_sorted_by_key(|line| line.days),
            "{:?}",
            lines.iter().map(|line| line.days).collect::<Vec<_>>()
        );
        assert!(lines.iter().all(|line| line.days < 0 && !line.text.is_empty()));
        assert!(lines.first().unwrap().days <= -42, "it takes six weeks");
        let chinese = |text: &str| text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
        assert!(lines.iter().filter(|line| chinese(line.text)).count() >= 8);
        assert!(QUESTIONS.lines().any(chinese) && !QUESTIONS.lines().any(|line| line.trim().is_empty()));
    }
}
