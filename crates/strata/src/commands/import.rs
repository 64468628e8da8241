//! `strata import`: imports the conversations and memories of another program, or an export of Strata.
//!
//! A format is a subcommand; without one, the content of the file decides ([`files`]).

mod files;

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;
use strata_import::{BadRows, ImportOptions, ImportProgress, ImportReport};

use super::vault::{self, ImportArgs};
use super::{Context, JsonArgs, UserArgs, progress};
use crate::failure::Outcome;
use crate::output::{Output, counted, note};
use files::FileArgs;

/// Import conversations and memories of another program, or an export of Strata
///
/// The format is recognised by the content of the file, or named as a subcommand. A file is checked whole before anything is
/// written, and a conversation is recorded whole or not at all. A second run adds only what is new, so an interrupted run is
/// simply repeated.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  strata import chatgpt-export.zip --user ada\n  strata import strata.jsonl\n  \
                  strata import notes/ --prefix notes:\n  strata import sqlite conversations.db --user ada"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    format: Option<Format>,
    #[command(flatten)]
    recognised: FileArgs,
}

#[derive(Debug, Subcommand)]
enum Format {
    /// Import a SQLite database with the tables conversations and messages
    ///
    /// The file is only read. A second run adds only new messages, and an interrupted run can be repeated. docs/context.md lists
    /// the supported columns.
    #[command(after_help = "Example:\n  strata import sqlite conversations.db --user ada --prefix old:")]
    Sqlite(SqliteArgs),
    /// Import an export of Strata, as `strata export` writes it
    #[command(after_help = "Example:\n  strata import strata strata.jsonl")]
    Strata(FileArgs),
    /// Import logs of OpenAI's chat API as JSON lines: messages, lists of messages, or requests with responses
    #[command(after_help = "Example:\n  strata import openai log.jsonl --user ada")]
    Openai(FileArgs),
    /// Import a data export of ChatGPT: the .zip, or its conversations.json
    #[command(after_help = "Example:\n  strata import chatgpt export.zip")]
    Chatgpt(FileArgs),
    /// Import a data export of Claude: the .zip, or its conversations.json
    #[command(after_help = "Example:\n  strata import claude export.zip")]
    Claude(FileArgs),
    /// Import memories of mem0: the answer of `get_all`, or a list of memories
    #[command(after_help = "Example:\n  strata import mem0 memories.json")]
    Mem0(FileArgs),
    /// Import Markdown: a transcript if lines name their speakers, else a turn for each paragraph
    #[command(after_help = "Example:\n  strata import markdown notes/ --prefix notes:")]
    Markdown(FileArgs),
    /// Import plain text: a transcript if lines name their speakers, else a turn for each paragraph
    #[command(after_help = "Example:\n  strata import text diary.txt")]
    Text(FileArgs),
    /// Import a vault of Markdown files, or an agent-cli memory folder
    #[command(after_help = "Example:\n  strata import vault memory/")]
    Vault(ImportArgs),
    /// Import the conversations of a benchmark, each as a user
    #[command(after_help = "Example:\n  strata import neutral own.conversations.jsonl.gz")]
    Neutral(FileArgs),
}

#[derive(Debug, clap::Args)]
struct SqliteArgs {
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
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    use strata_import::Format as Form;
    let (form, files) = match (args.format, args.recognised) {
        (Some(Format::Sqlite(args)), _) => return sqlite(args, context, output).await,
        (Some(Format::Vault(args)), _) => return vault::import(args, context, output).await,
        (Some(Format::Strata(files)), _) => (Some(Form::Strata), files),
        (Some(Format::Openai(files)), _) => (Some(Form::OpenAi), files),
        (Some(Format::Chatgpt(files)), _) => (Some(Form::ChatGpt), files),
        (Some(Format::Claude(files)), _) => (Some(Form::Claude), files),
        (Some(Format::Mem0(files)), _) => (Some(Form::Mem0), files),
        (Some(Format::Markdown(files)), _) => (Some(Form::Markdown), files),
        (Some(Format::Text(files)), _) => (Some(Form::Text), files),
        (Some(Format::Neutral(files)), _) => (Some(Form::Neutral), files),
        (None, files) => (None, files),
    };
    files::run(form, files, context, output).await
}

async fn sqlite(args: SqliteArgs, context: &Context, output: &mut Output) -> Outcome {
    let SqliteArgs { file, user, prefix, skip_bad_rows, json: JsonArgs { json: as_json } } = args;
    let options = ImportOptions {
        user: user.of(context),
        session_prefix: prefix,
        bad_rows: if skip_bad_rows { BadRows::Skip } else { BadRows::Stop },
        recent_exchanges: context.config.prompts.recent_exchanges,
    };
    let engine = context.engine_to_write().await?;
    let bar = progress::bar("{bar:40} {msg} {eta}");
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
        "{}: {}, {turns_present} already imported, {} skipped",
        counted(*conversations, "conversation"),
        counted(*turns_added, "new turn"),
        counted(*skipped, "row")
    ))?;
    for problem in &report.problems {
        note(format_args!("skipped: {problem}"));
    }
    Ok(())
}

fn show(bar: &indicatif::ProgressBar, progress: &ImportProgress) {
    let ImportProgress { conversations, total_conversations, messages, total_messages } = progress;
    bar.set_length(*total_messages);
    bar.set_position(*messages);
    bar.set_message(format!(
        "{conversations}/{total_conversations} conversations, {messages}/{total_messages} messages"
    ));
}
