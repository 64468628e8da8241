//! A text written in the user's editor.

use std::io::{IsTerminal, Write, stderr, stdin};
use std::process::Command;

use anyhow::Context as _;

use super::no_terminal;
use crate::failure::{Failure, Outcome};

/// Opens `text` in the user's editor and answers with what they left.
pub(super) fn in_editor(text: &str) -> Outcome<String> {
    if !(stdin().is_terminal() && stderr().is_terminal()) {
        return Err(no_terminal());
    }
    let editor = strata::config::editor().ok_or_else(|| {
        Failure::usage("no editor is set; give the new statement as an argument, or set `EDITOR`")
    })?;
    let mut file = tempfile::Builder::new()
        .prefix("strata-memory-")
        .suffix(".txt")
        .tempfile()
        .context("no temporary file could be made")?;
    writeln!(file, "{text}")
        .and_then(|()| file.flush())
        .context("the temporary file could not be written")?;
    // `code --wait` is one editor with an argument.
    let editor = editor.to_string_lossy();
    let mut words = editor.split_whitespace();
    let status = Command::new(words.next().unwrap_or("vi"))
        .args(words)
        .arg(file.path())
        .status()
        .with_context(|| format!("the editor `{editor}` could not be started"))?;
    if !status.success() {
        return Err(Failure::failed(format!("the editor `{editor}` failed; nothing was changed")));
    }
    let text = std::fs::read_to_string(file.path()).context("the edited text could not be read")?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
