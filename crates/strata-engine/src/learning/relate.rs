//! Reconciliation by the reader: for each new statement, the memories near it, the relation to each, and the change.
//!
//! - A statement changes one memory, with those that say the same (its thread). A change that speaks about a part of a
//!   memory leaves the rest of it as a memory of its own.
//! - A statement that repeats a memory and names something more joins its thread; one that names nothing more confirms it.
//! - A statement that only ends a memory is kept if it names something more.

use super::Learning;
use super::reconcile::{DatedStatement, Reconciler};
use crate::jobs::Event;
use crate::learn::Statement;
use crate::learn::relation::{Decision, decide, untouched};
use strata_core::error::Result;
use strata_core::id::MemoryId;
use strata_core::memory::{Memory, MemoryKind, MemoryNotes};
use strata_core::ports::{PairReading, Reader, SentencePair};
use strata_core::store::Change;
use strata_language::plan::{Fate, TodoEnd};
use strata_language::statements::{has_new_values, joined, parts};

/// A statement's candidates, with the relation to each.
pub(super) struct Related {
    pub(super) candidates: Vec<Memory>,
    pub(super) relations: Vec<PairReading>,
}

impl Learning {
    /// The memories near a statement, with the statement's relation to each.
    pub(super) async fn related(
        &self,
        reader: &dyn Reader,
        statement: &Statement,
        known: &[Memory],
    ) -> Result<Related> {
        let nearest = self.nearest(statement.said(), known).await?;
        let candidates: Vec<Memory> = nearest.into_iter().map(|place| known[place].clone()).collect();
        let texts = candidates.iter().map(|memory| memory.content.as_str());
        let relations = reader.relations(&pairs(statement, texts)).await?;
        Ok(Related { candidates, relations })
    }

    /// Applies statements one after the other, as the reader relates them to the memories.
    pub(super) async fn relate(
        &self,
        reader: &dyn Reader,
        reconciler: &mut Reconciler<'_>,
        dated: &[DatedStatement],
    ) -> Result<()> {
        for one in dated {
            let Related { candidates, relations } =
                self.related(reader, &one.statement, &reconciler.known).await?;
            match decide(&relations) {
                Decision::New => reconciler.add_unless_change(one),
                Decision::Repeats { place } => reconciler.repeated(one, &candidates[place]),
                Decision::Disputes { place, certainty } => {
                    reconciler.dispute(one, &candidates[place], certainty);
                }
                Decision::Replaces { place, certainty } => {
                    let ended = self.ended(reader, reconciler, one, &candidates[place]).await?;
                    reconciler.change(one, &ended, certainty, true);
                }
                Decision::Ends { place, certainty } => {
                    let ended = self.ended(reader, reconciler, one, &candidates[place]).await?;
                    let says_more = !one.statement.only_as_change()
                        && has_new_values(one.statement.said(), &candidates[place].content);
                    reconciler.change(one, &ended, certainty, says_more);
                }
            }
        }
        Ok(())
    }

    /// The memories that a change of `target` closes, and what is left of each.
    async fn ended(
        &self,
        reader: &dyn Reader,
        reconciler: &Reconciler<'_>,
        one: &DatedStatement,
        target: &Memory,
    ) -> Result<Vec<Ended>> {
        let thread: Vec<Memory> =
            reconciler.known.iter().filter(|memory| memory.thread() == target.thread()).cloned().collect();
        let mut ended = Vec::new();
        for memory in thread {
            let parts = parts(&memory.content);
            if parts.len() < 2 {
                ended.push(Ended { memory, rest: None });
                continue;
            }
            let pairs = pairs(&one.statement, parts.iter().map(String::as_str));
            let changes: Vec<f32> = reader.relations(&pairs).await?.iter().map(PairReading::change).collect();
            match untouched(&changes) {
                Some(left) => {
                    let left: Vec<&str> = left.into_iter().map(|part| parts[part].as_str()).collect();
                    ended.push(Ended { memory, rest: joined(&left) });
                }
                // A change of the whole closes the memory that it is about. Others of the thread say something else too.
                None if memory.id == target.id => ended.push(Ended { memory, rest: None }),
                None => {}
            }
        }
        Ok(ended)
    }
}

/// A memory that a change closes.
pub(super) struct Ended {
    memory: Memory,
    /// The part of it that still holds.
    rest: Option<String>,
}

fn pairs<'a>(statement: &Statement, remembered: impl Iterator<Item = &'a str>) -> Vec<SentencePair> {
    let before = statement.as_said.as_ref().map(|said| said.before.clone()).unwrap_or_default();
    remembered
        .map(|remembered| SentencePair {
            remembered: remembered.to_owned(),
            before: before.clone(),
            new: statement.said().to_owned(),
        })
        .collect()
}

fn per_cent(certainty: f32) -> Option<u8> {
    Some((certainty.clamp(0.0, 1.0) * 100.0).round() as u8)
}

impl Reconciler<'_> {
    fn add_unless_change(&mut self, one: &DatedStatement) {
        if !one.statement.only_as_change() {
            self.add(one, &[]);
        }
    }

    /// A statement that says the same as a memory. What it says beside that is kept in the memory's thread.
    fn repeated(&mut self, one: &DatedStatement, memory: &Memory) {
        if one.statement.only_as_change() || !has_new_values(one.statement.said(), &memory.content) {
            self.repeat(memory, &one.statement);
            return;
        }
        let id = self.add(one, &[]);
        self.note(id, MemoryNotes { thread: Some(memory.thread()), ..MemoryNotes::default() });
    }

    fn dispute(&mut self, one: &DatedStatement, memory: &Memory, certainty: f32) {
        if one.statement.only_as_change() {
            return;
        }
        let id = self.add(one, &[]);
        let notes = |other| MemoryNotes {
            disputed: Some(other),
            certainty: per_cent(certainty),
            ..MemoryNotes::default()
        };
        self.note(id, notes(memory.id));
        self.note(memory.id, notes(id));
    }

    /// Closes memories, keeps what still holds of them, and adds the statement if it is to be kept.
    fn change(&mut self, one: &DatedStatement, ended: &[Ended], certainty: f32, keep: bool) {
        let is_earlier = ended.iter().any(|old| old.memory.recorded_at > one.at);
        // A statement from before the memory ends nothing, and becomes history if it says something.
        if is_earlier && !keep {
            return;
        }
        let fates: Vec<(Memory, Fate)> =
            ended.iter().map(|old| (old.memory.clone(), fate(&old.memory, &one.statement, keep))).collect();
        if keep {
            self.add(one, &fates);
        } else {
            self.close(one, &fates);
        }
        if is_earlier {
            return;
        }
        for Ended { memory, rest } in ended {
            self.changes.push(Change::NoteMemory {
                id: memory.id,
                notes: MemoryNotes { certainty: per_cent(certainty), ..MemoryNotes::default() },
            });
            if let Some(rest) = rest {
                self.keep_rest(one, memory, rest);
            }
        }
    }

    /// Adds the part of a closed memory that still holds.
    fn keep_rest(&mut self, one: &DatedStatement, former: &Memory, rest: &str) {
        let memory = Memory {
            id: MemoryId(self.learning.ids.next()),
            content: rest.to_owned(),
            recorded_at: one.at,
            valid_to: None,
            replaced_by: None,
            notes: MemoryNotes::default(),
            ..former.clone()
        };
        self.report(&memory, Event::Add, None);
        self.changes.push(Change::AddMemory(Box::new(memory.clone())));
        self.known.push(memory);
    }

    fn note(&mut self, id: MemoryId, notes: MemoryNotes) {
        self.changes.push(Change::NoteMemory { id, notes });
        if let Some(memory) = self.known.iter_mut().find(|memory| memory.id == id) {
            memory.notes = notes.or(memory.notes);
        }
    }
}

/// What happens to a memory that a statement changes.
fn fate(memory: &Memory, statement: &Statement, replaced: bool) -> Fate {
    match memory.kind {
        MemoryKind::Todo if !replaced || !is_open(statement) => Fate::End { by: 0, how: end(statement) },
        _ if replaced => Fate::Update { by: 0 },
        _ => Fate::Delete { by: 0 },
    }
}

/// Whether a statement is itself something to be done.
fn is_open(statement: &Statement) -> bool {
    matches!(statement.kind, MemoryKind::Todo | MemoryKind::Schedule | MemoryKind::Decision)
}

/// Whether a statement says that a todo was dropped; otherwise it was done.
fn end(statement: &Statement) -> TodoEnd {
    const DROPPED: [&str; 16] = [
        "cancel",
        "no longer",
        "not going to",
        "won't",
        "never mind",
        "nevermind",
        "forget it",
        "drop",
        "scrap",
        "called off",
        "instead",
        "取消",
        "不用",
        "算了",
        "不去了",
        "不做了",
    ];
    let said = statement.said().to_lowercase();
    if DROPPED.iter().any(|word| said.contains(word)) { TodoEnd::Dropped } else { TodoEnd::Done }
}
