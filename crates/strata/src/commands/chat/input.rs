//! Where the messages come from: an edited line of a terminal, or the lines of stdin.

use std::io::{self, IsTerminal};

use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Config, Editor};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use crate::failure::{Failure, Outcome};

/// How many lines the arrow keys go back.
pub(super) const MAX_HISTORY: u64 = 200;

/// What is shown where the user writes.
const PROMPT: &str = "› ";

/// The messages.
pub(super) enum Input {
    /// Read on a thread of its own; taken while it is read.
    Terminal(Option<Box<Editor<(), MemHistory>>>),
    /// Not a terminal.
    Lines(Lines<BufReader<Stdin>>),
}

/// What came in.
pub(super) enum Line {
    /// A line, possibly empty.
    Said(String),
    /// Ctrl-C where nothing was under way.
    Nothing,
    /// Nothing comes any more.
    End,
}

impl Input {
    /// With what was said `earlier`, the oldest first.
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
                    Err(ReadlineError::Interrupted) => Ok(Line::Nothing),
                    Err(ReadlineError::Eof) => Ok(Line::End),
                    Err(error) => Err(not_read(error)),
                }
            }
            Self::Lines(lines) => {
                let line = tokio::select! {
                    line = lines.next_line() => line?,
                    // Nobody is at the keys to mean anything else.
                    _ = tokio::signal::ctrl_c() => None,
                };
                Ok(line.map_or(Line::End, Line::Said))
            }
        }
    }
}

fn not_read(error: ReadlineError) -> Failure {
    Failure::Failed(
        anyhow::Error::from(error).context("the terminal cannot be read; feed the messages on stdin"),
    )
}
