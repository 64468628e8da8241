//! Edits a text in the user's editor.

use std::io::{IsTerminal, Write, stderr, stdin};
use std::process::Command;

use anyhow::Context as _;

use super::no_statement;
use crate::failure::{Failure, Outcome};

/// Opens `text` in the user's editor and returns the edited text.
pub(super) fn in_editor(text: &str) -> Outcome<String> {
    if !(stdin().is_terminal() && stderr().is_terminal()) {
        return Err(no_statement());
    }
    let editor = strata::config::editor().ok_or_else(|| {
        Failure::usage("no editor is set; give the new statement as an argument, or set `EDITOR`")
    })?;
    let file = written(text)?;
    // `EDITOR` may hold arguments, as in `code --wait`.
    let editor = editor.to_string_lossy();
    let mut words = editor.split_whitespace();
    let status = Command::new(words.next().unwrap_or("vi"))
        .args(words)
        .arg(file.path())
        .status()
        .with_context(|| format!("the editor `{editor}` cannot be started"))?;
    if !status.success() {
        return Err(Failure::failed(format!("the editor `{editor}` failed; nothing was changed")));
    }
    let text = std::fs::read_to_string(file.path()).context("the edited text cannot be read")?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// A temporary file with a text.
fn written(text: &str) -> Outcome<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix("strata-memory-")
        .suffix(".txt")
        .tempfile()
        .context("no temporary file can be created")?;
    writeln!(file, "{text}").and_then(|()| file.flush()).context("the temporary file cannot be written")?;
    Ok(file)
}
