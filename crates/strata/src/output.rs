//! All output of the command line: tables and JSON on stdout, notes and errors on stderr.
//!
//! The output has no colour, so that it is the same in a pipe and on a terminal; only a chat on a terminal has some, unless
//! `NO_COLOR` is set. On a terminal, lines are cut to its width, ids are short and times have no seconds.
//! Control characters of stored texts are replaced, so that a turn cannot control the reader's terminal.

use std::fmt::Display;
use std::io::{self, BufRead, BufWriter, IsTerminal, Stdout, Write};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::failure::{Failure, Outcome};

/// The standard output of a command.
pub(crate) struct Output {
    stdout: BufWriter<Stdout>,
    /// The terminal's width; `None` if stdout is not a terminal.
    width: Option<usize>,
    /// Whether [`Output::styled`] uses colour.
    has_colour: bool,
}

/// A style of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// As the terminal shows text.
    Plain,
    /// Words of memory about itself.
    Memory,
    /// That something is not known.
    Unknown,
    /// Less important than the rest.
    Faint,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Memory => "\x1b[32m",
            Self::Unknown => "\x1b[33m",
            Self::Faint => "\x1b[2m",
        }
    }
}

impl Output {
    pub(crate) fn new() -> Self {
        let stdout = io::stdout();
        let width = stdout
            .is_terminal()
            .then(|| terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0)));
        let has_colour = width.is_some() && strata::config::allows_colour();
        Self { stdout: BufWriter::new(stdout), width, has_colour }
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

    /// Prints a text as it is, for another program.
    pub(crate) fn raw(&mut self, text: &str) -> io::Result<()> {
        self.stdout.write_all(text.as_bytes())
    }

    /// The stdout itself, for a long text that another program reads.
    pub(crate) fn writer(&mut self) -> &mut (dyn Write + Send) {
        &mut self.stdout
    }

    /// Prints a piece of one line in a style, where the terminal has colour.
    pub(crate) fn styled(&mut self, style: Style, text: &str) -> io::Result<()> {
        let text = visible(text);
        match self.has_colour && style != Style::Plain {
            true => write!(self.stdout, "{}{text}\x1b[0m", style.code()),
            false => write!(self.stdout, "{text}"),
        }
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

/// A number with its noun: «1 turn», «2 memories».
pub(crate) fn counted(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}

/// Prints a note for the user on stderr.
pub(crate) fn note(text: impl Display) {
    // If stderr is closed, there is no other place for the note.
    let _ = writeln!(io::stderr(), "{text}");
}

/// The warnings that wait for the end of the command.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints a warning at the end of the command, after its output or its error.
pub(crate) fn warn_later(text: impl Display) {
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).push(format!("warning: {text}"));
}

/// Prints the warnings that wait.
pub(crate) fn print_warnings() {
    for warning in WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        note(warning);
    }
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
    confirm_that(&format!("destroys {what}"), yes)
}

/// Asks for confirmation of something that this command does. Without a terminal, `--yes` is required.
pub(crate) fn confirm_that(does: &str, yes: bool) -> Outcome {
    if yes {
        return Ok(());
    }
    if !can_ask() {
        return Err(Failure::usage(format!("this {does}; add `--yes` to confirm")));
    }
    match ask(&format!("This {does}. Continue? [y/N] "))?.to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::failed("nothing was changed")),
    }
}

/// Whether a person can be asked.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a person, and returns the answer without white space around it.
pub(crate) fn ask(question: &str) -> io::Result<String> {
    let mut stderr = io::stderr();
    write!(stderr, "{question}")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}

/// The minimum width of a readable text column. If the terminal has less room left, the text gets its own line.
const READABLE: usize = 40;

/// The lines of a table, within `width` columns if a width is given.
fn lay_out<const N: usize>(head: [&str; N], rows: &[[String; N]], width: Option<usize>) -> Vec<String> {
    let head = head.map(str::to_owned);
    let shown = |cell: &String| if width.is_some() { compact(visible(cell)) } else { visible(cell) };
    let rows: Vec<[String; N]> = rows.iter().map(|row| row.each_ref().map(shown)).collect();
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

/// The number of characters of an id that a terminal shows: its end, because it begins with the time.
const SHORT_ID: usize = 8;

/// A cell of a table as a terminal shows it: an id by its last characters, which every command accepts, and a time without its
/// seconds.
fn compact(cell: String) -> String {
    let is_id = cell.len() == 36 && uuid::Uuid::try_parse(&cell).is_ok();
    if is_id {
        return cell[cell.len() - SHORT_ID..].to_owned();
    }
    let (before, time) = match cell.split_once(' ') {
        Some((before, time)) if cell.len() < 48 => (format!("{before} "), time),
        _ => (String::new(), cell.as_str()),
    };
    match time.parse::<jiff::Timestamp>() {
        Ok(at) if time.ends_with('Z') => format!("{before}{}", at.strftime("%Y-%m-%d %H:%M")),
        _ => cell,
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
    fn a_terminal_shows_short_ids_and_times() {
        let rows = [[
            "0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e",
            "until 2026-01-31T12:05:09.123456Z",
            "2026-01-31T12:05:09Z",
        ]
        .map(str::to_owned)];
        let head = ["ID", "STATE", "AT"];
        assert_eq!(lay_out(head, &rows, Some(80))[1], "5b6c7d8e  until 2026-01-31 12:05  2026-01-31 12:05");
        assert!(lay_out(head, &rows, None)[1].contains("0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e"));
        for text in ["a text 2026", "5b6c7d8e", "", "at noon"] {
            assert_eq!(compact(text.to_owned()), text);
        }
    }

    #[test]
    fn a_stored_text_cannot_control_the_terminal() {
        assert_eq!(visible("a\x1b[31mb\u{202e}c\nd\te\u{7}"), "a\u{fffd}[31mb\u{fffd}c d e\u{fffd}");
        assert_eq!(visible("🦀 西湖"), "🦀 西湖");
    }
}
