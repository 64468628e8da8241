//! Imports files whose format is recognised or named, and folders of notes.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use strata_engine::Engine;
use strata_import::archive::{self, ArchiveOptions, ArchiveReport};
use strata_import::{FileOptions, FileReport, Format, LoadedFile};

use crate::commands::{Context, JsonArgs, UserArgs, progress};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, counted, note};

/// Files to import.
#[derive(Debug, clap::Args)]
pub(super) struct FileArgs {
    /// The files; of a folder, its Markdown and text files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    user: UserArgs,
    /// A prefix of the session names, to keep two sources apart
    #[arg(long, value_name = "TEXT", default_value = "")]
    prefix: String,
    /// Leave out conversations and lines that cannot be understood, and report them; of an export of Strata, everything from the
    /// first damaged line on
    #[arg(long)]
    skip_bad: bool,
    #[command(flatten)]
    json: JsonArgs,
}

/// The beginning of every SQLite database.
const SQLITE: &[u8] = b"SQLite format 3\0";

pub(super) async fn run(
    form: Option<Format>,
    args: FileArgs,
    context: &Context,
    output: &mut Output,
) -> Outcome {
    let FileArgs { files, user, prefix, skip_bad, json } = args;
    let user = user.named();
    let files = with_text(expanded(&files, form)?);
    let mut parts = Vec::new();
    // Every file is recognised, read and checked before the first one is imported.
    for (file, name) in files {
        let form = match form {
            Some(form) => form,
            None => recognise(&file)?,
        };
        parts.push((file, name, form));
    }
    let engine = context.engine_to_write().await?;
    let options = FileOptions {
        format: None,
        name: None,
        user: user.clone(),
        default_user: context.config.user.clone(),
        session_prefix: prefix,
        skip_bad,
    };
    let count = parts.len();
    let archive = ArchiveOptions { user, skip_bad };
    let mut ready = Vec::new();
    for (file, name, form) in parts {
        let loaded = if form == Format::Strata {
            // One file alone is checked by its import.
            if count > 1 {
                archive::verify(engine.store().as_ref(), &file, &archive).await.map_err(failed)?;
            }
            None
        } else {
            let options = FileOptions { format: Some(form), name, ..options.clone() };
            Some(strata_import::load(&file, &engine, &options).await.map_err(failed)?)
        };
        ready.push((file, loaded));
    }
    strata_import::check_apart(ready.iter().filter_map(|(_, loaded)| loaded.as_ref())).map_err(failed)?;
    import_all(ready, &engine, &archive, json, output).await
}

/// Imports files that were read and checked. `None` stands for an export of Strata.
async fn import_all(
    files: Vec<(PathBuf, Option<LoadedFile>)>,
    engine: &Engine,
    archive: &ArchiveOptions,
    json: JsonArgs,
    output: &mut Output,
) -> Outcome {
    let (count, mut turns_added) = (files.len(), 0);
    for (file, loaded) in files {
        let named = if count > 1 { format!("{}: ", file.display()) } else { String::new() };
        match loaded {
            None => show_archive(&named, &restore(&file, engine, archive).await?, json, output)?,
            Some(loaded) => {
                let report = import(loaded, engine).await?;
                turns_added += report.turns_added;
                show(&named, &report, json, output)?;
            }
        }
    }
    if turns_added > 0 && !json.json {
        note("a running server learns from the new turns; `strata learn` does it now");
    }
    Ok(())
}

fn recognise(file: &Path) -> Outcome<Format> {
    let mut head = Vec::new();
    let opened = std::fs::File::open(file).and_then(|file| file.take(16).read_to_end(&mut head));
    if opened.is_ok() && head == SQLITE {
        let file = file.display();
        return Err(Failure::usage(format!(
            "`{file}` is a SQLite database; for one with the tables conversations and messages, use `strata import sqlite {file}`"
        )));
    }
    Ok(strata_import::recognise(file).map_err(failed)?)
}

/// An error about the content of a file, which is a failure and not wrong usage.
fn failed(error: strata_core::Error) -> anyhow::Error {
    anyhow::Error::from(error)
}

/// A file, and the name of its session if that is not the file's name.
type Named = (PathBuf, Option<String>);

/// The files; a folder stands for the Markdown and text files in it, unless it is an unpacked data export. Each of them is named
/// by its path in the folder, because folders repeat names such as `index.md`.
fn expanded(files: &[PathBuf], form: Option<Format>) -> Outcome<Vec<Named>> {
    let mut all = Vec::new();
    for file in files {
        if !file.is_dir() || file.join("conversations.json").is_file() {
            all.push((file.clone(), None));
            continue;
        }
        let mut notes = Vec::new();
        notes_in(file, form, &mut notes)?;
        if notes.is_empty() {
            return Err(Failure::failed(format!(
                "`{}` holds no Markdown and no text file; name the files to import",
                file.display()
            )));
        }
        all.extend(notes.into_iter().map(|path| {
            let name = name_inside(file, &path);
            (path, Some(name))
        }));
    }
    Ok(all)
}

/// Takes out the files of folders that have no text, and names them. A file that a person names has to have some.
fn with_text(files: Vec<Named>) -> Vec<Named> {
    let is_empty = |file: &Path| std::fs::read(file).is_ok_and(|text| text.trim_ascii().is_empty());
    let (empty, others): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|(file, name)| name.is_some() && is_empty(file));
    for (file, _) in empty {
        note(format_args!("left out: `{}` is empty", file.display()));
    }
    others
}

fn name_inside(folder: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(folder).unwrap_or(path);
    inside.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/")
}

/// Adds the Markdown and text files of a folder and of its folders, by name. Hidden ones are left out. The files of a vault are
/// memories and turns, and read as notes only where that is asked for.
fn notes_in(folder: &Path, form: Option<Format>, all: &mut Vec<PathBuf>) -> Outcome {
    if form.is_none() && strata_vault::is_vault(folder) {
        return Err(Failure::failed(format!(
            "`{0}` is a vault or a memory folder of agent-cli; use `strata import vault {0}`, or `strata import markdown {0}` if its \
             files are notes",
            folder.display()
        )));
    }
    let cannot = || format!("folder `{}` cannot be read", folder.display());
    let entries = std::fs::read_dir(folder).with_context(cannot)?;
    let mut entries: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .with_context(cannot)?;
    entries.sort();
    for path in entries {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let extension = path.extension().map(|end| end.to_string_lossy().to_lowercase());
        if name.starts_with('.') || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            notes_in(&path, form, all)?;
        } else if matches!(extension.as_deref(), Some("md" | "markdown" | "txt")) {
            all.push(path);
        }
    }
    Ok(())
}

async fn import(file: LoadedFile, engine: &Engine) -> Outcome<FileReport> {
    let bar = progress::bar("{bar:40} {msg} {eta}");
    let report = file.import(engine, |progress| {
        let ((done, all), (items, total)) = (progress.conversations, progress.items);
        bar.set_length(total);
        bar.set_position(items);
        bar.set_message(format!("{done}/{all} conversations, {items}/{total} messages and memories"));
    });
    let report = report.await;
    bar.finish_and_clear();
    Ok(report.map_err(failed)?)
}

async fn restore(file: &Path, engine: &Engine, options: &ArchiveOptions) -> Outcome<ArchiveReport> {
    let bar = progress::bar("{bar:40} {pos}/{len} lines {eta}");
    let imported = archive::import(engine.store().as_ref(), file, options, |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    let imported = imported.await;
    bar.finish_and_clear();
    Ok(imported.map_err(failed)?)
}

fn show(named: &str, report: &FileReport, json: JsonArgs, output: &mut Output) -> Outcome {
    if json.json {
        output.json(report)?;
        return Ok(());
    }
    let FileReport { format, conversations, turns_added, turns_present, .. } = report;
    let has_memories = report.memories_added + report.memories_present > 0;
    let is_of_memories = has_memories || *format == Format::Mem0.as_str();
    if *conversations > 0 || !is_of_memories {
        output.line(format_args!(
            "{named}{format}, {}: {}, {turns_present} already imported",
            counted(*conversations, "conversation"),
            counted(*turns_added, "new turn")
        ))?;
    }
    if is_of_memories && (has_memories || *conversations == 0) {
        output.line(format_args!(
            "{named}{format}: {}, {} already imported",
            counted(report.memories_added, "new memory"),
            report.memories_present
        ))?;
    }
    for (reason, count) in report.skipped.iter() {
        note(format_args!("{named}left out: {}", left_out(count, reason)));
    }
    Ok(())
}

/// Parts of a file that were left out. The reasons begin with a noun in the plural, or with the place of one part.
fn left_out(count: u64, reason: &str) -> String {
    let nouns = [("memories", "memory"), ("messages", "message"), ("files", "file")];
    let one = nouns.iter().find(|(many, _)| reason.contains(many));
    match (count, one) {
        (1, _) if reason.starts_with("line ") => reason.to_owned(),
        (1, Some((many, one))) => format!("1 {}", reason.replacen(many, one, 1)),
        _ => format!("{count} {reason}"),
    }
}

fn show_archive(named: &str, report: &ArchiveReport, json: JsonArgs, output: &mut Output) -> Outcome {
    if json.json {
        output.json(report)?;
        return Ok(());
    }
    let ArchiveReport { found, added, damage } = report;
    output.line(format_args!(
        "{named}{} of {} turns, {} of {} memories and {} of {} summaries were new, of {} users",
        added.turns,
        found.turns,
        added.memories,
        found.memories,
        added.summaries,
        found.summaries,
        found.users
    ))?;
    if let Some(damage) = damage {
        note(format_args!("{named}left out: the rest of the file, from there on; {damage}"));
    }
    if found.keys > 0 {
        note(format_args!(
            "{} keys are not imported, because an export has no secrets; `strata keys create` makes new ones",
            found.keys
        ));
    }
    Ok(())
}
