//! The beliefs of Strata after people have spoken: streams of messages whose changes are marked, and whole chats with what
//! must be believed at the end, what must not, and questions. They run through recording, learning and recall.
//!
//! Start reading at [`load`] and [`run`]. `docs/evals.md` describes the format of the files.

mod chats;
mod parse;
mod streams;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use strata_core::memory::Memory;
use strata_core::store::{MemoryQuery, MemorySelect, Page};
use strata_core::{Result, UserId};
use strata_engine::Engine;
use strata_language::Pattern;

pub use parse::{Chat, ChatSession, Line, Mark, Operation, ReadingSet, Stream, load};

/// Part of a sum: how many of how many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The number that counts.
    pub part: usize,
    /// The number of all.
    pub all: usize,
}

impl Share {
    pub(crate) fn count(&mut self, counts: bool) {
        self.part += usize::from(counts);
        self.all += 1;
    }

    fn add(&mut self, other: Self) {
        self.part += other.part;
        self.all += other.all;
    }

    /// In per cent; 0 of nothing.
    pub fn per_cent(self) -> f64 {
        100.0 * self.part as f64 / self.all.max(1) as f64
    }
}

/// The results of streams in one language.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StreamFindings {
    /// Of the lines that still hold, those whose value is in a current memory.
    pub kept: Share,
    /// Of the lines that were replaced or ended, those whose value is in a current memory that does not say so.
    pub stale: Share,
    /// Of the current memories, those learned from lines that say nothing worth remembering.
    pub junk: Share,
    /// Of the streams, those with everything kept and nothing stale.
    pub truth: Share,
    /// Of all lines, those that lose a true value of another line that they do not speak about.
    pub false_changes: Share,
}

impl StreamFindings {
    /// Adds the findings of one stream.
    fn add(&mut self, one: &Self) {
        self.kept.add(one.kept);
        self.stale.add(one.stale);
        self.junk.add(one.junk);
        self.false_changes.add(one.false_changes);
        self.truth.count(one.kept.part == one.kept.all && one.stale.part == 0);
    }
}

/// The results of chats in one language.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ChatFindings {
    /// Of the values that must be believed, those in a current memory.
    pub kept: Share,
    /// Of the values that must not be believed, those in a current memory that does not say that it ended.
    pub wrong: Share,
    /// Of the questions, those with their value among the first five results.
    pub answered: Share,
    /// The number of current memories, and of chats.
    pub memories: Share,
}

impl ChatFindings {
    /// Adds the findings of one chat.
    fn add(&mut self, one: &Self) {
        self.kept.add(one.kept);
        self.wrong.add(one.wrong);
        self.answered.add(one.answered);
        self.memories.add(one.memories);
    }
}

/// The results by language.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReadingReport {
    /// Of the streams.
    pub streams: BTreeMap<String, StreamFindings>,
    /// Of the chats.
    pub chats: BTreeMap<String, ChatFindings>,
    /// Every wrong line, in words.
    pub notes: Vec<String>,
}

/// Runs streams and chats, each as a user of its own, and calls `progress` after each.
pub async fn run(
    engine: &Engine,
    set: &ReadingSet,
    progress: &mut dyn FnMut(usize),
) -> Result<ReadingReport> {
    let mut report = ReadingReport::default();
    for (number, stream) in set.streams.iter().enumerate() {
        let found = streams::run(engine, stream, number, &mut report.notes).await?;
        report.streams.entry(stream.language.clone()).or_default().add(&found);
        progress(number + 1);
    }
    for (number, chat) in set.chats.iter().enumerate() {
        let found = chats::run(engine, chat, number, &mut report.notes).await?;
        report.chats.entry(chat.language.clone()).or_default().add(&found);
        progress(set.streams.len() + number + 1);
    }
    Ok(report)
}

/// The results as a table.
pub fn table(report: &ReadingReport) -> String {
    let mut text = String::from("streams   kept  stale   junk  truth  false changes\n");
    for (language, found) in &report.streams {
        let StreamFindings { kept, stale, junk, truth, false_changes } = found;
        let _ = writeln!(
            text,
            "{language:<7} {:>6.1} {:>6.1} {:>6.1} {:>6.1} {:>14.1}",
            kept.per_cent(),
            stale.per_cent(),
            junk.per_cent(),
            truth.per_cent(),
            false_changes.per_cent()
        );
    }
    add_chats(&mut text, report);
    text
}

fn add_chats(text: &mut String, report: &ReadingReport) {
    text.push_str("chats     kept  wrong  answered  memories a chat\n");
    for (language, found) in &report.chats {
        let ChatFindings { kept, wrong, answered, memories } = found;
        let _ = writeln!(
            text,
            "{language:<7} {:>6.1} {:>6.1} {:>9.1} {:>16.1}",
            kept.per_cent(),
            wrong.per_cent(),
            answered.per_cent(),
            memories.part as f64 / memories.all.max(1) as f64
        );
    }
}

/// Words by which a memory says that something is over.
static ENDED: Pattern = Pattern::new(
    r"(?i)no longer|\bnot\b|n't\b|used to|formerly|previously|finished|completed|done|stopped|quit|left|sold|cancel|ended|until|instead|meant to|was going to|swapped|replaced|rather than|changed from|moved from|不再|没有|沒有|以前|已经|已經|完成|取消|曾|原来|原來|原本|本来|本來|改成|改为|改為|换成|換成|换到|換到",
);

fn says_ended(text: &str) -> bool {
    ENDED.is_match(text)
}

/// The most memories of a user that are read.
const MAX_MEMORIES: u32 = 1_000;

/// The user's current memories.
async fn current(engine: &Engine, user: &UserId) -> Result<Vec<Memory>> {
    let current = MemoryQuery::new(MemorySelect::Current { as_of: None });
    engine.memories.list(user, &MemoryQuery { page: Page::first(MAX_MEMORIES), ..current }).await
}
