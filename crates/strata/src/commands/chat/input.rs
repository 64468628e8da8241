//! The source of the messages: a line editor on a terminal, or the lines of stdin.

use std::io::{self, IsTerminal};

use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Config, Editor};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use crate::failure::{Failure, Outcome};

/// The number of lines that the arrow keys go back.
pub(super) const MAX_HISTORY: u64 = 200;

/// The prompt before the user's line.
const PROMPT: &str = "› ";

/// The messages.
pub(super) enum Input {
    /// The line editor. It is `None` while a blocking thread reads a line with it.
    Terminal(Option<Box<Editor<(), MemHistory>>>),
    /// The lines of stdin, which is not a terminal.
    Lines(Lines<BufReader<Stdin>>),
}

/// The result of one read.
pub(super) enum Line {
    /// A line, possibly empty.
    Said(String),
    /// Ctrl-C while no reply was in progress.
    Interrupted,
    /// The end of the input.
    End,
}

impl Input {
    /// Opens the input, with the messages said `earlier` (oldest first) as the history.
    pub(super) fn new(earlier: &[String]) -> Outcome<Self> {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Ok(Self::Lines(BufReader::new(tokio::io::stdin()).lines()));
        }
        let config = Config::builder().auto_add_history(true).build();
        let history = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, history).map_err(not_read)?;
        for line in earlier {
            editor.add_history_entry(line).map_err(not_read)?;
        }
        Ok(Self::Terminal(Some(Box::new(editor))))
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    pub(super) async fn next(&mut self) -> Outcome<Line> {
        match self {
            Self::Terminal(editor) => {
                let Some(mut taken) = editor.take() else { return Ok(Line::End) };
                let reading = tokio::task::spawn_blocking(move || {
                    let read = taken.readline(PROMPT);
                    (taken, read)
                });
                let (taken, read) = reading.await.map_err(|error| Failure::Failed(error.into()))?;
                *editor = Some(taken);
                match read {
                    Ok(line) => Ok(Line::Said(line)),
                    Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
                    Err(ReadlineError::Eof) => Ok(Line::End),
                    Err(error) => Err(not_read(error)),
                }
            }
            Self::Lines(lines) => {
                let line = tokio::select! {
                    line = lines.next_line() => line?,
                    // Without a terminal there is no line to cancel, so Ctrl-C ends the chat.
                    _ = tokio::signal::ctrl_c() => None,
                };
                Ok(line.map_or(Line::End, Line::Said))
            }
        }
    }
}

fn not_read(error: ReadlineError) -> Failure {
    Failure::Failed(
        anyhow::Error::from(error).context("the terminal cannot be read; send the messages on stdin"),
    )
}
