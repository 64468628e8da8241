//! The files of streams and chats.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use strata_core::{Error, Result, Role};

/// Streams and chats.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadingSet {
    /// The streams.
    pub streams: Vec<Stream>,
    /// The chats.
    pub chats: Vec<Chat>,
}

/// The messages of one user, with what each does to what was believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stream {
    /// Its id.
    pub id: String,
    /// Its language.
    pub language: String,
    /// Its messages.
    pub lines: Vec<Line>,
}

/// A message of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its effect.
    pub operation: Operation,
    /// The message.
    pub text: String,
    /// The values that decide whether it is believed, in lower case.
    pub values: Vec<String>,
}

/// The effect of a message on the beliefs before it. A number is the place of an earlier line, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// It is new and worth remembering.
    Adds,
    /// It replaces a line.
    Replaces(usize),
    /// It ends a line.
    Ends(usize),
    /// It repeats a line.
    Repeats(usize),
    /// It says nothing worth remembering.
    Nothing,
}

/// A whole chat over weeks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chat {
    /// Its id.
    pub id: String,
    /// Its language.
    pub language: String,
    /// Its sessions.
    pub sessions: Vec<ChatSession>,
    /// The conditions that must hold at the end.
    pub marks: Vec<Mark>,
}

/// A session of a chat.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatSession {
    /// When it took place.
    pub at: Timestamp,
    /// Its turns.
    pub turns: Vec<(Role, String)>,
}

/// A condition that must hold at the end of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// A value that must be believed.
    Believed(String),
    /// A value that must not be believed.
    NotBelieved(String),
    /// A question and the value of its answer.
    Question(String, String),
}

/// Reads the files of the folders `values` and `chats` in a folder.
pub fn load(folder: &Path) -> Result<ReadingSet> {
    let mut set = ReadingSet::default();
    for text in texts(&folder.join("values"))? {
        text.lines().for_each(|line| read_stream_line(line.trim(), &mut set.streams));
    }
    for text in texts(&folder.join("chats"))? {
        for line in text.lines() {
            read_chat_line(line.trim(), &mut set.chats)?;
        }
    }
    if set.streams.is_empty() && set.chats.is_empty() {
        let message =
            format!("folder `{}` contains no `values/*.txt` and no `chats/*.txt`", folder.display());
        return Err(Error::invalid(message));
    }
    Ok(set)
}

fn texts(folder: &Path) -> Result<Vec<String>> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
    paths.sort();
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path)
            .map_err(|error| Error::invalid(format!("file `{}` cannot be read: {error}", path.display())))
    };
    paths.iter().map(read).collect()
}

/// The id and the language of a heading.
fn heading(line: &str) -> Option<(String, String)> {
    let (id, language) = line.strip_prefix("# ")?.split_once('|')?;
    Some((id.trim().to_owned(), language.split('|').next()?.trim().to_owned()))
}

fn read_stream_line(line: &str, streams: &mut Vec<Stream>) {
    if let Some((id, language)) = heading(line) {
        streams.push(Stream { id, language, lines: Vec::new() });
    } else if let (Some(stream), Some((mark, text))) = (streams.last_mut(), line.split_once(' ')) {
        let place = || mark[1..].parse::<usize>().ok()?.checked_sub(1);
        let operation = match (mark.chars().next(), place()) {
            (Some('+'), _) => Operation::Adds,
            (Some('~'), Some(line)) => Operation::Replaces(line),
            (Some('-'), Some(line)) => Operation::Ends(line),
            (Some('='), Some(line)) => Operation::Repeats(line),
            (Some('.' | '?'), None) if mark.len() == 1 => Operation::Nothing,
            _ => return,
        };
        let values = text.split('{').skip(1).filter_map(|part| part.split_once('}'));
        let values = values.map(|(value, _)| value.to_lowercase()).collect();
        let text = text.trim().replace(['{', '}'], "");
        stream.lines.push(Line { operation, text, values });
    }
}

fn read_chat_line(line: &str, chats: &mut Vec<Chat>) -> Result<()> {
    if let Some((id, language)) = heading(line) {
        chats.push(Chat { id, language, ..Chat::default() });
        return Ok(());
    }
    let Some(chat) = chats.last_mut() else { return Ok(()) };
    if let Some(date) = line.strip_prefix("@ ") {
        let at = format!("{}T09:00:00Z", date.trim());
        let at = at.parse().map_err(|_| Error::invalid(format!("`{line}` is no date")))?;
        chat.sessions.push(ChatSession { at, turns: Vec::new() });
        return Ok(());
    }
    for (mark, role) in [("U: ", Role::User), ("A: ", Role::Assistant)] {
        if let (Some(text), Some(session)) = (line.strip_prefix(mark), chat.sessions.last_mut()) {
            session.turns.push((role, text.replace('⏎', "\n")));
        }
    }
    let Some((value, note)) = line.get(2..).and_then(|rest| rest.split_once(" | ")) else { return Ok(()) };
    let (value, note) = (value.trim().to_owned(), note.trim().to_owned());
    match line.get(..2) {
        Some("= ") => chat.marks.push(Mark::Believed(value)),
        Some("! ") => chat.marks.push(Mark::NotBelieved(value)),
        Some("? ") => chat.marks.push(Mark::Question(value, note)),
        _ => {}
    }
    Ok(())
}
