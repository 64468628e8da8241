//! Markdown and plain text: a transcript if lines name their speakers, else notes.
//!
//! A note becomes one turn of the user for each paragraph, with the headings above it. Its id follows from its text, so a
//! file that has grown adds only its new paragraphs.

use jiff::Timestamp;
use strata_core::Role;

use super::{Format, Reading};
use crate::foreign::{Chat, Said};
use crate::values::written;

/// A paragraph with more characters is divided at the end of a line.
const MAX_NOTE_CHARS: usize = 4_000;

mod names;

/// The most characters of a speaker's name at the beginning of a line.
const MAX_SPEAKER_CHARS: usize = 24;

pub(super) fn read(text: &str, format: Format, reading: &mut Reading<'_>) {
    let (front, body) = if format == Format::Markdown { front_matter(text) } else { ("", text) };
    let source = reading.source;
    let at = date_in(front).or_else(|| date_of_name(&source.stem)).or(source.modified);
    let title =
        field(front, "title").or_else(|| (format == Format::Markdown).then(|| heading(body)).flatten());
    let named = || names::transcript(body, at);
    let messages = transcript(body, at).or_else(named).unwrap_or_else(|| notes(body, format, at));
    if messages.is_empty() {
        reading.contents.skipped.add("files without text");
        return;
    }
    let (session, place) = (source.name.clone(), "the file".to_owned());
    let chat = Chat { session, is_named_by_file: true, title, place, messages, ..Chat::default() };
    reading.contents.chats.push(chat);
}

/// The lines between `---` at the beginning of a Markdown file, and the rest.
fn front_matter(text: &str) -> (&str, &str) {
    let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else {
        return ("", text);
    };
    match rest.find("\n---") {
        Some(end) => {
            let after = &rest[end + 4..];
            (&rest[..end], after.split_once('\n').map_or("", |(_, body)| body))
        }
        None => ("", text),
    }
}

fn field(front: &str, name: &str) -> Option<String> {
    let value = front.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    let value = value.trim().trim_matches(['"', '\'']).to_owned();
    (!value.is_empty()).then_some(value)
}

fn date_in(front: &str) -> Option<Timestamp> {
    ["date", "created", "created_at", "updated"].iter().find_map(|name| written(&field(front, name)?))
}

/// The date with which the name of a file begins, as in `2026-01-31 walk`.
fn date_of_name(stem: &str) -> Option<Timestamp> {
    let date = stem.get(..10)?;
    let is_date = date.bytes().enumerate().all(|(place, byte)| match place {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    if is_date { written(date) } else { None }
}

fn heading(body: &str) -> Option<String> {
    let line = body.lines().find(|line| !line.trim().is_empty())?;
    line.strip_prefix("# ").map(|title| title.trim().to_owned())
}

/// The turns of a text in which lines begin with their speakers; `None` if fewer than two do, or none is the user.
fn transcript(body: &str, at: Option<Timestamp>) -> Option<Vec<Said>> {
    let mut turns: Vec<Said> = Vec::new();
    for line in body.lines() {
        match speaker(line) {
            Some((role, rest)) => turns.push(Said { created_at: at, ..Said::new(role, rest) }),
            None => {
                if let Some(last) = turns.last_mut() {
                    last.content.push('\n');
                    last.content.push_str(line);
                }
            }
        }
    }
    let is_conversation = turns.len() > 1 && turns.iter().any(|turn| turn.role == Role::User);
    let mut turns = Some(turns).filter(|_| is_conversation)?;
    for turn in &mut turns {
        turn.content = turn.content.trim().to_owned();
    }
    turns.retain(|turn| !turn.content.is_empty());
    Some(turns)
}

/// The speaker that a line names, as `User:`, `**Assistant:**`, `## User` or `用户：`, and the rest of the line.
fn speaker(line: &str) -> Option<(Role, String)> {
    let line = line.trim();
    if let Some(name) = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim()) {
        return Some((role(name.trim_end_matches([':', '：']))?, String::new()));
    }
    let bold = line.strip_prefix("**");
    let text = bold.unwrap_or(line);
    let (name, rest) = text.split_once([':', '：'])?;
    if name.chars().count() > MAX_SPEAKER_CHARS {
        return None;
    }
    let rest = if bold.is_some() { rest.trim_start_matches('*') } else { rest };
    Some((role(name.trim_end_matches('*'))?, rest.trim().to_owned()))
}

/// The role of a speaker's name in a transcript.
fn role(name: &str) -> Option<Role> {
    match name.trim().to_lowercase().as_str() {
        "user" | "human" | "you" | "me" | "q" | "用户" | "我" | "问" | "使用者" => Some(Role::User),
        "assistant" | "ai" | "bot" | "model" | "chatgpt" | "gpt" | "claude" | "gemini" | "a" | "助手"
        | "答" | "助理" | "机器人" => Some(Role::Assistant),
        "system" | "系统" => Some(Role::System),
        _ => None,
    }
}

/// The paragraphs of a note, each with the heading above it.
fn notes(body: &str, format: Format, at: Option<Timestamp>) -> Vec<Said> {
    let mut notes = Vec::new();
    let mut heading: Option<&str> = None;
    let mut at = at;
    let mut paragraph = String::new();
    let mut is_code = false;
    let end =
        |paragraph: &mut String, heading: Option<&str>, at: Option<Timestamp>, notes: &mut Vec<Said>| {
            let text = std::mem::take(paragraph);
            let text = text.trim();
            if !text.is_empty() {
                let content = heading.map_or(text.to_owned(), |heading| format!("{heading}\n{text}"));
                notes.push(Said { created_at: at, ..Said::new(Role::User, content) });
            }
        };
    for line in body.lines() {
        let is_fence = line.trim_start().starts_with("```");
        let title = Some(line)
            .filter(|_| format == Format::Markdown && !is_code)
            .and_then(|line| line.strip_prefix('#'));
        if let Some(title) =
            title.map(|title| title.trim_start_matches('#')).filter(|title| title.starts_with(' '))
        {
            end(&mut paragraph, heading, at, &mut notes);
            let title = title.trim();
            // A diary has its days as headings.
            at = title.get(..10).and_then(date_of_name).or(at);
            heading = Some(title).filter(|title| !title.is_empty());
            continue;
        }
        is_code ^= is_fence;
        if line.trim().is_empty() && !is_code {
            end(&mut paragraph, heading, at, &mut notes);
            continue;
        }
        if paragraph.chars().count() + line.chars().count() > MAX_NOTE_CHARS {
            end(&mut paragraph, heading, at, &mut notes);
        }
        paragraph.push_str(line);
        paragraph.push('\n');
    }
    end(&mut paragraph, heading, at, &mut notes);
    notes
}
