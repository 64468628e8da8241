//! `strata import`: imports the conversations of another program.

use std::path::PathBuf;

use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use strata_import::{BadRows, ImportOptions, ImportProgress, ImportReport};

use super::{Context, JsonArgs, UserArgs};
use crate::failure::Outcome;
use crate::output::{Output, note};

/// Import the conversations of another program
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata import sqlite conversations.db --user ada")]
pub(crate) struct Args {
    #[command(subcommand)]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Format {
    /// Import a SQLite database with the tables conversations and messages
    ///
    /// The file is only read. A second run adds only new messages, and an interrupted run can be repeated. docs/context.md lists
    /// the supported columns.
    #[command(after_help = "Example:\n  strata import sqlite conversations.db --user ada --prefix old:")]
    Sqlite {
        /// The database
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        user: UserArgs,
        /// A prefix of the session names, to keep two sources apart
        #[arg(long, value_name = "TEXT", default_value = "")]
        prefix: String,
        /// Skip rows that cannot be imported, and report them
        #[arg(long)]
        skip_bad_rows: bool,
        #[command(flatten)]
        json: JsonArgs,
    },
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Format::Sqlite {
        file,
        user: UserArgs { user },
        prefix,
        skip_bad_rows,
        json: JsonArgs { json: as_json },
    } = args.format;
    let options = ImportOptions {
        user,
        session_prefix: prefix,
        bad_rows: if skip_bad_rows { BadRows::Skip } else { BadRows::Stop },
        recent_exchanges: context.config.prompts.recent_exchanges,
    };
    let engine = context.engine_to_write().await?;
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {msg} {eta}") {
        bar.set_style(style);
    }
    let report = strata_import::sqlite(&file, &engine, &options, |progress| show(&bar, progress)).await;
    bar.finish_and_clear();
    let report = report?;
    if as_json {
        output.json(&json!({
            "conversations": report.conversations,
            "messages": report.messages,
            "turns_added": report.turns_added,
            "turns_present": report.turns_present,
            "summaries_added": report.summaries_added,
            "states_added": report.states_added,
            "skipped": report.skipped,
            "problems": report.problems,
        }))?;
        return Ok(());
    }
    let ImportReport { conversations, turns_added, turns_present, skipped, .. } = &report;
    output.line(format_args!(
        "{conversations} conversations: {turns_added} new turns, {turns_present} already imported, {skipped} rows skipped"
    ))?;
    for problem in &report.problems {
        note(format_args!("skipped: {problem}"));
    }
    Ok(())
}

fn show(bar: &ProgressBar, progress: &ImportProgress) {
    let ImportProgress { conversations, total_conversations, messages, total_messages } = progress;
    bar.set_length(*total_messages);
    bar.set_position(*messages);
    bar.set_message(format!(
        "{conversations}/{total_conversations} conversations, {messages}/{total_messages} messages"
    ));
}
