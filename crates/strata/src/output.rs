//! All output of the command line: tables and JSON on stdout, notes and errors on stderr.
//!
//! The output has no colour, so that it is the same in a pipe and on a terminal. On a terminal, lines are cut to its width.
//! Control characters of stored texts are replaced, so that a turn cannot control the reader's terminal.

use std::fmt::Display;
use std::io::{self, BufRead, BufWriter, IsTerminal, Stdout, Write};

use serde::Serialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::failure::{Failure, Outcome};

/// The standard output of a command.
pub(crate) struct Output {
    stdout: BufWriter<Stdout>,
    /// The terminal's width; `None` if stdout is not a terminal.
    width: Option<usize>,
}

impl Output {
    pub(crate) fn new() -> Self {
        let stdout = io::stdout();
        let width = stdout
            .is_terminal()
            .then(|| terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0)));
        Self { stdout: BufWriter::new(stdout), width }
    }

    /// Prints one line.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self.stdout, "{text}")
    }

    /// Prints a stored text of several lines, indented.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        for line in text.lines() {
            writeln!(self.stdout, "  {}", visible(line))?;
        }
        Ok(())
    }

    /// Prints a piece of a text that is still being written, and flushes it.
    pub(crate) fn piece(&mut self, text: &str) -> io::Result<()> {
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                writeln!(self.stdout)?;
            }
            write!(self.stdout, "{}", visible(line))?;
        }
        self.stdout.flush()
    }

    /// Prints a JSON document.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut self.stdout, value)?;
        writeln!(self.stdout)
    }

    /// Prints one line of JSON.
    pub(crate) fn json_line(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.stdout, value)?;
        writeln!(self.stdout)
    }

    /// Prints a table whose last column may be long.
    pub(crate) fn table<const N: usize>(&mut self, head: [&str; N], rows: &[[String; N]]) -> io::Result<()> {
        for line in lay_out(head, rows, self.width) {
            writeln!(self.stdout, "{line}")?;
        }
        Ok(())
    }

    /// Flushes the output so far.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

/// Prints a note for the user on stderr.
pub(crate) fn note(text: impl Display) {
    // If stderr is closed, there is no other place for the note.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints an error with all its causes.
pub(crate) fn print_error(error: &anyhow::Error) {
    let mut text = String::from("error: ");
    text.push_str(&error.to_string());
    for cause in error.chain().skip(1) {
        text.push_str("\n  because: ");
        text.push_str(&cause.to_string());
    }
    note(text);
}

/// Asks for confirmation before data is destroyed. Without a terminal, `--yes` is required.
pub(crate) fn confirm(what: &str, yes: bool) -> Outcome {
    if yes {
        return Ok(());
    }
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(Failure::usage(format!("this destroys {what}; add `--yes` to confirm")));
    }
    let mut stderr = io::stderr();
    write!(stderr, "This destroys {what}. Continue? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::failed("nothing was changed")),
    }
}

/// The minimum width of a readable text column. If the terminal has less room left, the text gets its own line.
const READABLE: usize = 40;

/// The lines of a table, within `width` columns if a width is given.
fn lay_out<const N: usize>(head: [&str; N], rows: &[[String; N]], width: Option<usize>) -> Vec<String> {
    let head = head.map(str::to_owned);
    let rows: Vec<[String; N]> = rows.iter().map(|row| row.each_ref().map(|cell| visible(cell))).collect();
    let mut widths = [0; N];
    for row in std::iter::once(&head).chain(&rows) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let before_last: usize = widths.iter().rev().skip(1).map(|width| width + 2).sum();
    let longest = widths.last().copied().unwrap_or(0);
    let stacked = width.is_some_and(|width| before_last + longest.min(READABLE) > width);
    let mut lines = Vec::new();
    for row in std::iter::once(&head).chain(&rows) {
        let mut line = String::new();
        for (index, (width, cell)) in widths.iter().zip(row).enumerate() {
            if stacked && index + 1 == N {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
                line.push_str("  ");
            }
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - cell.width() + 2));
        }
        lines.push(line.trim_end().to_owned());
    }
    match width {
        Some(width) => lines.iter().map(|line| cut(line, width)).collect(),
        None => lines,
    }
}

/// `text` on one line, without characters that control a terminal.
fn visible(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\n' | '\r' | '\t' => ' ',
            // Control characters, and characters that change the direction of the following text.
            c if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                '\u{fffd}'
            }
            c => c,
        })
        .collect()
}

/// The beginning of `line` that fits into `width` columns.
fn cut(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let mut columns = 0;
    let mut cut: String = line
        .chars()
        .take_while(|character| {
            columns += character.width().unwrap_or(0);
            columns < width
        })
        .collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_to_its_width_in_columns() {
        let check = |line: &str, width, expected: &str| assert_eq!(cut(line, width), expected);
        check("abcdef", 6, "abcdef");
        check("abcdef", 5, "abcd…");
        check("西湖边骑车", 5, "西湖…");
        check("西湖边骑车", 10, "西湖边骑车");
        check("abc", 0, "…");
    }

    #[test]
    fn a_table_leaves_room_for_its_text() {
        let text = "Ada moved to Lisbon in March, and likes it there very much";
        let rows = [["x".repeat(36), text.to_owned()], ["yy".to_owned(), "西湖".to_owned()]];
        let check = |width, expected: &[&str]| assert_eq!(lay_out(["ID", "TEXT"], &rows, width), expected);
        let x = "x".repeat(36);
        let whole = format!("{x}  {text}");
        let blank = " ".repeat(34);
        check(None, &[&format!("ID{blank}  TEXT"), &whole, &format!("yy{blank}  西湖")]);
        check(Some(200), &[&format!("ID{blank}  TEXT"), &whole, &format!("yy{blank}  西湖")]);
        let cut = format!("{x}  Ada moved to Lisbon in March, and likes it ther…");
        check(Some(86), &[&format!("ID{blank}  TEXT"), &cut, &format!("yy{blank}  西湖")]);
        let stacked = "  Ada moved to Lisbon in March, and lik…";
        check(Some(40), &["ID", "  TEXT", &x, stacked, "yy", "  西湖"]);
    }

    #[test]
    fn a_stored_text_cannot_control_the_terminal() {
        assert_eq!(visible("a\x1b[31mb\u{202e}c\nd\te\u{7}"), "a\u{fffd}[31mb\u{fffd}c d e\u{fffd}");
        assert_eq!(visible("🦀 西湖"), "🦀 西湖");
    }
}
