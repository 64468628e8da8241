//! `strata learn`: works through the queue that recording left, as a server does in the background.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::ProgressBar;
use serde::Serialize;
use strata_core::job::{Job, JobStatus};
use strata_core::ports::Spent;
use strata_core::store::JobQuery;
use strata_engine::Engine;
use strata_engine::{Ended, Learned};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::jobs::users;
use super::{Context, JsonArgs};
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// Learn now from what was recorded
///
/// Turns that are recorded without a server wait in a queue. A server learns from them when it next runs; this does it now and
/// says when it is done.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata record --session trip < turns.jsonl && strata learn")]
pub(crate) struct Args {
    #[command(flatten)]
    json: JsonArgs,
}

/// The longest wait for a job that was put off: what waits longer has failed or is somebody else's.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    context.existing_file()?;
    let engine = eager_engine(context).await?;
    let mut report = Report::default();
    loop {
        drain(&engine, context.config.learning.workers(), &mut report).await?;
        match next_due(&engine).await? {
            Some(wait) => tokio::time::sleep(wait).await,
            None => break,
        }
    }
    report.print(args.json, output)
}

/// The use-cases for somebody who waits: a turn does not wait for others to share a model's call with.
pub(crate) async fn eager_engine(context: &Context) -> Outcome<Engine> {
    let mut config = context.config.clone();
    config.engine.learn.delay_secs = Some(0);
    context.engine_to_write_with(&config).await
}

/// How long until the next job is due that waits only for others to share a model's call with; none where there is none.
async fn next_due(engine: &Engine) -> Outcome<Option<Duration>> {
    let query = JobQuery { status: Some(JobStatus::Queued), limit: u32::MAX, ..JobQuery::default() };
    let mut next = None;
    for user in users(engine).await? {
        // One that is due by now is held up by another of its session, which somebody else works on.
        let put_off = |job: &Job| job.last_error.is_none() && job.run_at > engine.now();
        let waiting = engine.jobs.list(&user, &query).await?.into_iter().filter(put_off);
        next = waiting.map(|job| job.run_at).chain(next).min();
    }
    let wait = next.map(|due| Duration::try_from(due.duration_since(engine.now())).unwrap_or_default());
    Ok(wait.filter(|wait| *wait <= LONGEST_WAIT))
}

/// Works until nothing is due, so many jobs at once.
pub(crate) async fn drain(engine: &Engine, workers: usize, report: &mut Report) -> Outcome {
    let (sender, mut finished) = mpsc::channel(workers);
    let mut learners = JoinSet::new();
    for number in 0..workers {
        let (engine, sender) = (engine.clone(), sender.clone());
        let name = format!("learn-{}-{number}", std::process::id());
        learners.spawn(async move {
            while let Some(learned) = engine.learning.learn_next(&name).await? {
                if sender.send(learned).await.is_err() {
                    break;
                }
            }
            Ok::<(), strata_core::Error>(())
        });
    }
    drop(sender);
    let bar = ProgressBar::new_spinner();
    while let Some(learned) = finished.recv().await {
        report.count(&learned);
        bar.set_message(format!("{} jobs, {} memories changed", report.jobs, report.changed()));
        bar.tick();
    }
    bar.finish_and_clear();
    while let Some(ended) = learners.join_next().await {
        ended.map_err(|error| Failure::Failed(error.into()))??;
    }
    Ok(())
}

/// What was done.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    jobs: u64,
    done: u64,
    /// Put off, or to be tried again.
    waiting: u64,
    dead: u64,
    /// How many memories were added, updated and so on.
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
                "{} jobs done: {} memories added, {} updated, {} ended, {} known already",
                self.done,
                count("ADD"),
                count("UPDATE"),
                count("DELETE"),
                count("NONE")
            ))?;
            let Spent { calls, input_tokens, output_tokens } = self.spent;
            if calls > 0 {
                output.line(format_args!(
                    "{calls} calls of the model, {input_tokens} tokens in, {output_tokens} out"
                ))?;
            }
            if self.waiting > 0 {
                output.line(format_args!(
                    "{} jobs wait to be tried again; see `strata jobs list`",
                    self.waiting
                ))?;
            }
        }
        match self.dead {
            0 => Ok(()),
            dead => Err(Failure::failed(format!(
                "{dead} jobs were given up; `strata jobs list --status dead --all-users` says why"
            ))),
        }
    }
}
