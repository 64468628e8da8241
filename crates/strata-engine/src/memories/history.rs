//! Explains a memory's history in sentences: each statement with its dates, its replacement and its turns.

use std::fmt;

use jiff::Timestamp;

use super::Memories;
use strata_core::error::Result;
use strata_core::id::{MemoryId, TurnId, UserId};
use strata_core::memory::{Memory, TodoState};
use strata_core::store::TurnQuery;
use strata_core::turn::{HiddenReason, Turn};

/// The most characters of a quoted turn.
const QUOTED_CHARS: usize = 120;

/// A turn that is quoted as the source of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// The turn.
    pub turn: TurnId,
    /// When it was said.
    pub said_at: Timestamp,
    /// Its text, shortened.
    pub text: String,
}

/// One statement of a memory's history. Its [`Display`](fmt::Display) is a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryStep {
    /// The memory as it is stored.
    pub memory: Memory,
    /// The turns that hold the statement, if they still exist.
    pub said: Vec<Quote>,
    /// The memory that replaced it.
    pub replaced_by: Option<MemoryId>,
    /// The text of the replacement, if it still exists.
    pub replacement: Option<String>,
    /// The turns that hold the replacement.
    pub replaced_because: Vec<Quote>,
    /// Whether a person wrote the replacement.
    pub replaced_by_hand: bool,
}

impl Memories {
    /// The steps of a memory's history, oldest first, each with its turns; *not found* if there is no such memory.
    pub async fn explain(&self, user: &UserId, id: MemoryId) -> Result<Vec<HistoryStep>> {
        let memories = self.history(user, id).await?;
        let mut ids: Vec<TurnId> = memories.iter().flat_map(|memory| memory.source_turns.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        let turns = self.store.turns(user, &TurnQuery::Ids(ids)).await?;
        let quotes = |memory: &Memory| -> Vec<Quote> {
            let said = turns.iter().filter(|turn| memory.source_turns.contains(&turn.id));
            said.map(quote).collect()
        };
        let step = |memory: &Memory| {
            let replacement = next_edit(&memories, memory)
                .or_else(|| memories.iter().find(|other| Some(other.id) == memory.replaced_by));
            HistoryStep {
                said: quotes(memory),
                replaced_by: memory.replaced_by,
                replacement: replacement.map(|memory| memory.content.clone()),
                replaced_because: replacement.map(quotes).unwrap_or_default(),
                replaced_by_hand: replacement.is_some_and(is_by_hand),
                memory: memory.clone(),
            }
        };
        Ok(memories.iter().map(step).collect())
    }
}

/// The statement that replaced another one by an edit. Both name the memory that they belong to.
fn next_edit<'a>(memories: &'a [Memory], memory: &Memory) -> Option<&'a Memory> {
    memory.replaced_by?;
    memories.iter().find(|other| {
        other.id != memory.id
            && other.is_edited()
            && other.replaced_by == memory.replaced_by
            && Some(other.valid_from) == memory.valid_to
    })
}

/// Marks a statement that a person wrote.
const BY_HAND: &str = " (edited by hand)";

fn is_by_hand(memory: &Memory) -> bool {
    memory.is_edited() && memory.source_turns.is_empty()
}

fn quote(turn: &Turn) -> Quote {
    let mut text: String = turn.content.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() > QUOTED_CHARS {
        text = text.chars().take(QUOTED_CHARS - 1).collect::<String>() + "…";
    }
    Quote { turn: turn.id, said_at: turn.created_at, text }
}

impl fmt::Display for HistoryStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory, said, replaced_by, replacement, replaced_because, replaced_by_hand } = self;
        let day = |at: Timestamp| at.strftime("%Y-%m-%d").to_string();
        let taken_back = memory.hidden.filter(|hidden| hidden.reason == HiddenReason::Abandoned);
        let is_open = memory.valid_to.is_none() && taken_back.is_none();
        let verb = if is_open { "is believed" } else { "was believed" };
        write!(f, "«{}» {verb} since {}", memory.content, day(memory.valid_from))?;
        write_quotes(f, said)?;
        if is_by_hand(memory) {
            f.write_str(BY_HAND)?;
        }
        if let Some(hidden) = taken_back {
            write!(
                f,
                "; on {} the message that said so was edited, so that it no longer counts",
                day(hidden.at)
            )?;
            if let Some(replacement) = replacement.as_ref().filter(|_| memory.valid_to == Some(hidden.at)) {
                write!(f, " and «{replacement}» holds again")?;
                write_quotes(f, replaced_because)?;
            }
            return f.write_str(".");
        }
        match (memory.valid_to, memory.todo()) {
            (Some(end), Some(TodoState::Done)) => write!(f, "; it was done by {}", day(end))?,
            (Some(end), Some(TodoState::Dropped)) => write!(f, "; it was dropped on {}", day(end))?,
            (Some(end), _) => write!(f, ", until {}", day(end))?,
            (None, _) => {}
        }
        if let (Some(_), Some(certainty)) = (memory.valid_to, memory.notes.certainty) {
            write!(f, " (the reader is {certainty} % sure)")?;
        }
        match (replacement, replaced_by) {
            (Some(replacement), _) => {
                write!(f, ", when «{replacement}» took its place")?;
                write_quotes(f, replaced_because)?;
                if *replaced_by_hand {
                    f.write_str(BY_HAND)?;
                }
            }
            (None, Some(id)) => write!(f, ", when memory {id} took its place")?,
            (None, None) => {}
        }
        if let Some(hidden) = memory.hidden {
            let how = if hidden.reason == HiddenReason::Evicted { "evicted" } else { "deleted" };
            write!(f, "; it was {how} on {}", day(hidden.at))?;
        }
        f.write_str(".")
    }
}

fn write_quotes(f: &mut fmt::Formatter<'_>, quotes: &[Quote]) -> fmt::Result {
    let Some(first) = quotes.first() else { return Ok(()) };
    let day = first.said_at.strftime("%Y-%m-%d");
    write!(f, " (turn {} on {day}: “{}”", first.turn, first.text)?;
    if quotes.len() > 1 {
        write!(f, " and {} more", quotes.len() - 1)?;
    }
    f.write_str(")")
}
