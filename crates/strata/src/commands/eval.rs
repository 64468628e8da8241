//! `strata eval`: runs labelled conversations through the real write and read path, and scores the results.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::ValueEnum;
use evals::{Options, Progress, Report, Set};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use strata::config::StoreUrl;
use strata_core::Store;
use strata_core::ports::Clock;
use strata_engine::recall::Order;

use super::{Context, JsonArgs};
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// Measure recall on labelled conversations
///
/// DIR holds NAME.conversations.jsonl and NAME.questions.jsonl, plain or with .gz; docs/evals.md describes the format.
/// Strata uses a temporary store unless `--store` names one.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata eval evals/samples\n  strata eval DIR --set locomo --runs runs --json\n  strata eval evals/conflicts --conflicts\n  \
        strata eval evals/reading --reading\n  strata eval evals/cases --cases\n  strata eval DIR --cases --held-out\n  strata eval evals/prompts --prompts\n  strata eval DIR --foreign"
)]
pub(crate) struct Args {
    /// The folder with the sets
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Run this set; may be given several times [default: all sets of the folder]
    #[arg(long = "set", value_name = "NAME")]
    pub(crate) sets: Vec<String>,
    /// Write a run file for each set into this folder
    #[arg(long, value_name = "OUTDIR")]
    runs: Option<PathBuf>,
    /// Measure the built-in rules of learning on dialogues in which facts change; DIR holds the dialogues
    #[arg(long, conflicts_with_all = ["sets", "runs", "learn", "foreign"])]
    conflicts: bool,
    /// Measure reading: what is believed after streams of messages and whole chats; DIR holds `values` and `chats`
    #[arg(long, conflicts_with_all = ["sets", "runs", "learn", "conflicts"])]
    reading: bool,
    /// Measure the state of working conversations, whose sentences have their roles; DIR holds the conversations
    #[arg(long, conflicts_with_all = ["sets", "runs", "learn", "conflicts", "reading"])]
    cases: bool,
    /// With `--cases`: take only the tenth of the conversations that the training of the reader holds out, by their ids
    #[arg(long, requires = "cases")]
    held_out: bool,
    /// Measure what prompts still tell of long conversations, by strategy and budget; DIR holds conversations with
    /// questions, or sets if `--set` names them
    #[arg(long, conflicts_with_all = ["runs", "learn", "conflicts", "reading", "cases"])]
    prompts: bool,
    /// With `--reading`, `--cases` or `--prompts`: print every wrong line too
    #[arg(long)]
    verbose: bool,
    /// Learn from all turns before asking, so that memories and summaries are recalled too
    #[arg(long)]
    learn: bool,
    /// Also ask each question with a cross-encoder, and print the figures with and without
    #[arg(long, conflicts_with_all = ["conflicts", "reading"])]
    rerank: bool,
    /// Also ask each question of another conversation, to measure whether recall knows what it does not know
    #[arg(long)]
    foreign: bool,
    /// The order of results to measure: by relevance alone, as served to a model, or both
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = Orders::Both)]
    order: Orders,
    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Orders {
    Relevance,
    Served,
    Both,
}

impl Orders {
    fn list(self) -> Vec<Order> {
        match self {
            Self::Relevance => vec![Order::Relevance],
            Self::Served => vec![Order::Served],
            Self::Both => vec![Order::Relevance, Order::Served],
        }
    }
}

#[derive(Serialize)]
struct ReportsJson {
    sets: Vec<Report>,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let (dir, json) = (&args.dir, args.json.json);
    if args.cases {
        return run_cases(&args, context, output).await;
    }
    if args.prompts {
        return Box::pin(run_prompts(&args, context, output)).await;
    }
    if args.reading {
        return run_reading(dir, args.verbose, json, context, output).await;
    }
    if args.conflicts {
        return run_conflicts(dir, json, output);
    }
    Box::pin(run_sets(args, context, output)).await
}

/// Measures recall on the named sets, or on all of the folder.
async fn run_sets(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { dir, sets, runs, learn, rerank, foreign, order, json: JsonArgs { json }, .. } = args;
    let sets = if sets.is_empty() { evals::sets(&dir)? } else { sets };
    if sets.is_empty() {
        return Err(Failure::usage(format!(
            "folder `{}` contains no set; a set consists of `NAME.conversations.jsonl` and `NAME.questions.jsonl`",
            dir.display()
        )));
    }
    let options = Options { orders: order.list(), learn, rerank, foreign, ..Options::default() };
    // All sets are read before the first is run, so that a wrong line is found at once and not after an hour.
    let sets = sets.iter().map(|name| evals::load(&dir, name)).collect::<Result<Vec<_>, _>>()?;
    let named = if context.config.origin("store") == "--store" {
        let store = super::progress::open_store(&context.config.store)
            .await
            .map_err(|error| context.not_opened(error))?;
        context.close_later(Arc::clone(&store));
        Some(store)
    } else {
        None
    };
    let mut reports = Vec::with_capacity(sets.len());
    for set in &sets {
        let report = match &named {
            Some(store) => Box::pin(run_set(set, Arc::clone(store), &options, context)).await?,
            None => Box::pin(run_in_temporary_store(set, &options, context)).await?,
        };
        if let Some(runs) = &runs {
            write_runs(runs, &report)?;
        }
        if json {
            reports.push(report);
        } else {
            output.line(evals::table(&report))?;
            output.flush()?;
        }
    }
    if json {
        output.json(&ReportsJson { sets: reports })?;
    }
    Ok(())
}

/// Measures extraction and reconciliation by the rules. No store is needed.
fn run_conflicts(dir: &Path, json: bool, output: &mut Output) -> Outcome {
    let report = evals::conflicts::run(&evals::conflicts::load(dir)?)?;
    if json { Ok(output.json(&report)?) } else { Ok(output.line(evals::conflicts::table(&report))?) }
}

/// Measures what is believed after streams and chats, in a temporary store.
async fn run_reading(
    dir: &Path,
    verbose: bool,
    json: bool,
    context: &Context,
    output: &mut Output,
) -> Outcome {
    let set = evals::reading::load(dir)?;
    let directory = tempfile::tempdir().context("no temporary directory can be created for the store")?;
    let store = strata::open_store(&StoreUrl::Sqlite(directory.path().join("eval.db"))).await?;
    let engine = strata::engine(&context.config, Arc::clone(&store))?;
    let bar = ProgressBar::new((set.streams.len() + set.chats.len()) as u64);
    let report = evals::reading::run(&engine, &set, &mut |done| bar.set_position(done as u64)).await;
    bar.finish_and_clear();
    store.close().await?;
    let report = report?;
    if json {
        return Ok(output.json(&report)?);
    }
    show(&evals::reading::table(&report), if verbose { &report.notes } else { &[] }, output)
}

/// Measures the state of working conversations, in a temporary store.
async fn run_cases(args: &Args, context: &Context, output: &mut Output) -> Outcome {
    let mut set = evals::cases::load(&args.dir)?;
    if args.held_out {
        set.keep_held_out();
    }
    let engine = strata::engine(&context.config, strata::open_store(&StoreUrl::Memory).await?)?;
    let bar = ProgressBar::new(set.conversations.len() as u64);
    let report = evals::cases::run(&engine, &set, &mut |done| bar.set_position(done as u64)).await;
    bar.finish_and_clear();
    let report = report?;
    if args.json.json {
        return Ok(output.json(&report)?);
    }
    show(&evals::cases::table(&report), if args.verbose { &report.notes } else { &[] }, output)
}

/// The most conversations of a set whose prompts are measured: its longest.
const LONG_CONVERSATIONS: usize = 10;

/// Measures the prompts of long conversations, in temporary stores.
async fn run_prompts(args: &Args, context: &Context, output: &mut Output) -> Outcome {
    let mut groups = Vec::new();
    for name in &args.sets {
        groups.push(evals::prompts::of_set(&evals::load(&args.dir, name)?, LONG_CONVERSATIONS));
    }
    if groups.is_empty() {
        groups.push(evals::prompts::load(&args.dir)?);
    }
    for conversations in groups {
        let engine = strata::engine(&context.config, strata::open_store(&StoreUrl::Memory).await?)?;
        let bar = ProgressBar::new(conversations.len() as u64);
        let report =
            evals::prompts::run(&engine, &conversations, &mut |done| bar.set_position(done as u64)).await;
        bar.finish_and_clear();
        let report = report?;
        if args.json.json {
            output.json(&report)?;
        } else {
            show(&evals::prompts::table(&report), if args.verbose { &report.notes } else { &[] }, output)?;
        }
    }
    Ok(())
}

/// Prints every note and the table below them.
fn show(table: &str, notes: &[String], output: &mut Output) -> Outcome {
    for note in notes {
        output.text(note)?;
    }
    Ok(output.line(table)?)
}

/// Runs a set in a temporary store, because a benchmark must not touch the user's own data.
async fn run_in_temporary_store(set: &Set, options: &Options, context: &Context) -> Outcome<Report> {
    let directory = tempfile::tempdir().context("no temporary directory can be created for the store")?;
    let store = strata::open_store(&StoreUrl::Sqlite(directory.path().join("eval.db"))).await?;
    let report = Box::pin(run_set(set, Arc::clone(&store), options, context)).await;
    store.close().await?;
    report
}

async fn run_set(set: &Set, store: Arc<dyn Store>, options: &Options, context: &Context) -> Outcome<Report> {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:40} {msg} {eta}") {
        bar.set_style(style);
    }
    bar.set_prefix(set.name.clone());
    let mut show = |progress: Progress| {
        bar.set_length((progress.all_turns + progress.all_questions) as u64);
        bar.set_position((progress.turns + progress.questions) as u64);
        let Progress { turns, all_turns, questions, all_questions } = progress;
        bar.set_message(format!("{turns}/{all_turns} turns, {questions}/{all_questions} questions"));
    };
    let clock = Arc::new(evals::EvalClock::default());
    let engine = strata::engine_at(&context.config, store, Arc::clone(&clock) as Arc<dyn Clock>)?;
    let report = Box::pin(evals::run(engine, clock, set, options, &mut show)).await;
    bar.finish_and_clear();
    Ok(report?)
}

/// Writes `NAME.jsonl` for the relevance order, which benchmarks measure, and `NAME.served.jsonl` for the served order.
fn write_runs(directory: &Path, report: &Report) -> Outcome {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("folder `{}` cannot be created", directory.display()))?;
    for order in &report.orders {
        let name = match (order.order, order.reranked) {
            (Order::Relevance, false) => format!("{}.jsonl", report.set),
            (Order::Relevance, true) => format!("{}.reranked.jsonl", report.set),
            (Order::Served, false) => format!("{}.served.jsonl", report.set),
            (Order::Served, true) => format!("{}.served.reranked.jsonl", report.set),
        };
        let path = directory.join(name);
        let file = order.run_file().context("the run cannot be written as JSON")?;
        std::fs::write(&path, file)
            .with_context(|| format!("file `{}` cannot be written", path.display()))?;
    }
    Ok(())
}
