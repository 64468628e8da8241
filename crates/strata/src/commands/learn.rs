//! `strata learn`: runs the queued jobs now, as a server does in the background.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use strata_core::job::{Job, JobStatus};
use strata_core::ports::Spent;
use strata_core::store::{JobQuery, Page, session_space};
use strata_core::{SessionId, UserId};
use strata_engine::Engine;
use strata_engine::{Ended, Learned, SentenceExplanation};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::jobs::users;
use super::users::warn_if_unknown;
use super::{Context, JsonArgs, text_or_stdin};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, counted};

/// Learn from recorded turns now
///
/// Turns that are recorded without a server wait in a queue. A server learns from them when it next runs; this command does so
/// now and returns when it is done.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata record --session trip < turns.jsonl && strata learn\n  \
        strata learn --explain \"I moved to Porto last week\" --user ada")]
pub(crate) struct Args {
    /// Show what would be made of this message and why, and change nothing; `-` reads it from stdin
    #[arg(long, value_name = "TEXT")]
    explain: Option<String>,
    /// Learn from this user's turns only [default: all users]; with `--explain`, the user who would say the message [default:
    /// the setting `user`, else `default`]
    #[arg(long, value_name = "USER")]
    user: Option<UserId>,
    /// The session in which the message would be said
    #[arg(long, value_name = "SESSION", requires = "explain")]
    session: Option<SessionId>,
    #[command(flatten)]
    json: JsonArgs,
}

/// The longest wait for a postponed job. A job that is due later has failed, or another process works on it.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    if let Some(text) = args.explain {
        let text = text_or_stdin(text, context.config.engine.limits.max_turn_bytes)?;
        let session = args.session.unwrap_or_default();
        let user = args.user.unwrap_or_else(|| context.config.user.clone());
        return explain(&text, &user, &session, context, args.json, output).await;
    }
    context.existing_store()?;
    let engine = eager_engine(context).await?;
    if let Some(user) = &args.user {
        warn_if_unknown(&engine, user).await?;
    }
    let mut report = Report::default();
    loop {
        drain(&engine, args.user.as_ref(), context.config.learning.workers(), &mut report).await?;
        match next_due(&engine, args.user.as_ref()).await? {
            Some(wait) => tokio::time::sleep(wait).await,
            None => break,
        }
    }
    report.print(args.json, output)
}

/// Prints what would become of a message.
async fn explain(
    text: &str,
    user: &UserId,
    session: &SessionId,
    context: &Context,
    json: JsonArgs,
    output: &mut Output,
) -> Outcome {
    if text.trim().is_empty() {
        return Err(Failure::usage("the text is empty; give a message to explain"));
    }
    let engine = context.engine_to_read().await?;
    let explanation = engine.learning.explain(user, session, text).await?;
    if json.json {
        output.json(&explanation)?;
        return Ok(());
    }
    output.line(format_args!("read by {}", explanation.by))?;
    for sentence in &explanation.sentences {
        explain_sentence(sentence, output)?;
    }
    Ok(())
}

fn explain_sentence(sentence: &SentenceExplanation, output: &mut Output) -> Outcome {
    output.line("")?;
    output.text(&sentence.text)?;
    if let (Some(worth), Some(voice), Some(sure)) =
        (sentence.worth, sentence.voice, sentence.voice_probability)
    {
        let voice = voice.replace('_', " ");
        output.line(format_args!("  voice: {voice} ({sure:.2}); worth remembering: {worth:.2}"))?;
    }
    if let Some(reason) = sentence.left_out {
        output.line(format_args!("  left out: {reason}"))?;
    }
    let Some(statement) = &sentence.statement else { return Ok(()) };
    output.line(format_args!(
        "  {} ({}, confidence {:.2}):",
        statement.effect,
        statement.kind.as_str(),
        statement.confidence
    ))?;
    output.text(&statement.memory)?;
    for candidate in &statement.candidates {
        let mark = if statement.about == Some(candidate.id) { "*" } else { "-" };
        output.line(format_args!(
            "  {mark} repeats {:.2}, replaces {:.2}, ends {:.2}: memory {}",
            candidate.repeats, candidate.replaces, candidate.ends, candidate.id
        ))?;
        output.text(&candidate.memory)?;
    }
    Ok(())
}

/// The use-cases without the learning delay: a turn does not wait for other turns to share a model's call with.
pub(crate) async fn eager_engine(context: &Context) -> Outcome<Engine> {
    let mut config = context.config.clone();
    config.engine.learn.delay_secs = Some(0);
    context.engine_to_write_with(&config).await
}

/// The time until the next job is due that waits only for other turns to share a model's call with, if there is one.
async fn next_due(engine: &Engine, only: Option<&UserId>) -> Outcome<Option<Duration>> {
    let query = JobQuery { status: Some(JobStatus::Queued), limit: u32::MAX, ..JobQuery::default() };
    let mut next = None;
    for user in learners(engine, only).await? {
        // A job that is already due waits for another job of its session, which another process works on.
        let postponed = |job: &Job| job.last_error.is_none() && job.run_at > engine.now();
        let waiting = engine.jobs.list(&user, &query).await?.into_iter().filter(postponed);
        next = waiting.map(|job| job.run_at).chain(next).min();
    }
    let wait = next.map(|due| Duration::try_from(due.duration_since(engine.now())).unwrap_or_default());
    Ok(wait.filter(|wait| *wait <= LONGEST_WAIT))
}

/// The users from whose turns a command learns.
async fn learners(engine: &Engine, only: Option<&UserId>) -> Outcome<Vec<UserId>> {
    match only {
        Some(user) => Ok(vec![user.clone()]),
        None => users(engine).await,
    }
}

/// Runs the jobs of all users, or of only one, until none is due, up to `workers` at once.
pub(crate) async fn drain(
    engine: &Engine,
    only: Option<&UserId>,
    workers: usize,
    report: &mut Report,
) -> Outcome {
    let (sender, mut finished) = mpsc::channel(workers);
    let mut learners = JoinSet::new();
    for number in 0..workers {
        let (engine, sender, only) = (engine.clone(), sender.clone(), only.cloned());
        let name = format!("learn-{}-{number}", std::process::id());
        learners.spawn(async move {
            while let Some(learned) = engine.learning.learn_next_of(only.as_ref(), &name).await? {
                if sender.send(learned).await.is_err() {
                    break;
                }
            }
            Ok::<(), strata_core::Error>(())
        });
    }
    drop(sender);
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} turns, {msg} {eta}") {
        bar.set_style(style);
    }
    // A hidden bar is not seen, and counting reads every session.
    let mut backlog = if bar.is_hidden() { Backlog::default() } else { Backlog::read(engine, only).await? };
    bar.set_length(backlog.turns);
    while let Some(learned) = finished.recv().await {
        report.count(&learned);
        bar.set_position(backlog.read_after(engine, &learned).await?);
        bar.set_message(format!("{} jobs, {} memories changed", report.jobs, report.changed()));
    }
    bar.finish_and_clear();
    while let Some(ended) = learners.join_next().await {
        ended.map_err(|error| Failure::Failed(error.into()))??;
    }
    Ok(())
}

/// The turns that wait to be learned from.
#[derive(Debug, Default)]
struct Backlog {
    turns: u64,
    read: u64,
    /// How far each session that waits was read.
    marks: HashMap<(UserId, SessionId), u64>,
}

impl Backlog {
    async fn read(engine: &Engine, only: Option<&UserId>) -> Outcome<Self> {
        let mut backlog = Self::default();
        for user in learners(engine, only).await? {
            for session in engine.store().sessions(&user, Page::first(u32::MAX)).await? {
                let mark = engine.store().progress(&user, &session_space("learn", &session.id)).await?;
                if mark < session.turn_count {
                    backlog.turns += session.turn_count - mark;
                    backlog.marks.insert((user.clone(), session.id), mark);
                }
            }
        }
        Ok(backlog)
    }

    /// The number of turns that were read, after a job.
    async fn read_after(&mut self, engine: &Engine, learned: &Learned) -> Outcome<u64> {
        if let Some(session) = &learned.session
            && let Some(mark) = self.marks.get_mut(&(learned.user.clone(), session.clone()))
        {
            let now = engine.store().progress(&learned.user, &session_space("learn", session)).await?;
            self.read += now.saturating_sub(*mark);
            *mark = now.max(*mark);
        }
        Ok(self.read.min(self.turns))
    }
}

/// Whether turns of a user wait to be read.
pub(super) async fn has_unread(engine: &Engine, user: &UserId) -> Outcome<bool> {
    Ok(Backlog::read(engine, Some(user)).await?.turns > 0)
}

/// The jobs that were run and their results.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    jobs: u64,
    done: u64,
    /// Postponed, or to be retried.
    waiting: u64,
    dead: u64,
    /// The number of memories by event: added, updated and so on.
    events: BTreeMap<&'static str, u64>,
    spent: Spent,
}

impl Report {
    fn count(&mut self, learned: &Learned) {
        self.jobs += 1;
        match learned.ended {
            Ended::Done => self.done += 1,
            Ended::Later { .. } | Ended::Retried { .. } => self.waiting += 1,
            Ended::Dead { .. } => self.dead += 1,
            Ended::Dropped => {}
        }
        for event in &learned.events {
            *self.events.entry(event.event.as_str()).or_default() += 1;
        }
        self.spent += learned.spent;
    }

    fn changed(&self) -> u64 {
        self.events.iter().filter(|(event, _)| **event != "NONE").map(|(_, count)| count).sum()
    }

    pub(crate) fn print(&self, json: JsonArgs, output: &mut Output) -> Outcome {
        if json.json {
            output.json_line(self)?;
        } else {
            let count = |event| self.events.get(event).copied().unwrap_or_default();
            output.line(format_args!(
                "{} done: {} added, {} updated, {} ended, {} already known",
                counted(self.done, "job"),
                counted(count("ADD"), "memory"),
                count("UPDATE"),
                count("DELETE"),
                count("NONE")
            ))?;
            let Spent { calls, input_tokens, output_tokens } = self.spent;
            if calls > 0 {
                output.line(format_args!(
                    "{calls} model calls, {input_tokens} input tokens, {output_tokens} output tokens"
                ))?;
            }
            if self.waiting > 0 {
                output
                    .line(format_args!("{} jobs wait to be retried; see `strata jobs list`", self.waiting))?;
            }
        }
        match self.dead {
            0 => Ok(()),
            dead => Err(Failure::failed(format!(
                "{dead} jobs failed for good; `strata jobs list --status dead --all-users` shows why"
            ))),
        }
    }
}
