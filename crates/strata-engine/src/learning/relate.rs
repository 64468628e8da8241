//! Reconciliation by the reader: for each new statement, the memories near it, the relation to each, and the change.
//!
//! - A statement changes one memory, with those that say the same (its thread). A change that speaks about a part of a
//!   memory leaves the rest of it as a memory of its own.
//! - A statement that repeats a memory and names something more joins its thread; one that names nothing more confirms it.
//! - A statement that only ends a memory is kept if it names something more.

use super::Learning;
use super::moves::settle_moves;
use super::reconcile::{DatedStatement, Reconciler, is_later};
use crate::jobs::Event;
use crate::learn::relation::{Decision, decide, is_touched, rest_holds, untouched};
use crate::learn::{Standing, Statement};
use strata_core::error::{Error, Result};
use strata_core::id::{MemoryId, UserId};
use strata_core::memory::{Memory, MemoryKind, MemoryNotes};
use strata_core::ports::{PairReading, Reader, Relation, SentenceInContext, SentencePair};
use strata_core::store::Change;
use strata_language::plan::{Fate, TodoEnd};
use strata_language::statements::{
    has_new_clause, has_new_values, is_rest, is_short_answer, joined, lacks_referent, names_another, parts,
    plainly, refers_back, rough_length, says_done, says_done_elsewhere, says_more, says_postponed,
    share_content, stands_alone, with_subject, without_done, without_greeting, without_items, without_one,
    without_reply, without_saying,
};

/// The number of candidates whose parts are compared too, if they are long.
const LOOKED_INTO: usize = 2;
/// The length, in word pieces, from which a memory is long.
const LONG: usize = 20;
/// The length from which a change may leave a part of a memory.
const DIVISIBLE: usize = 12;
/// The probability from which a change of the whole is likely, and from which one of a part is sure.
const LIKELY: f32 = 0.5;
const SURE: f32 = 0.9;
/// The probability from which a statement ends a memory with which it shares no word. If it refers to what was said
/// before, [`SURE`] is enough.
const VERY_SURE: f32 = 0.95;

/// A statement's candidates, with the relation to each.
pub(super) struct Related {
    pub(super) candidates: Vec<Memory>,
    pub(super) relations: Vec<PairReading>,
}

impl Related {
    /// A memory that says the same in the same words.
    pub(super) fn same(memory: &Memory) -> Self {
        let mut relation = PairReading::default();
        relation.0[Relation::Repeats as usize] = 1.0;
        Self { candidates: vec![memory.clone()], relations: vec![relation] }
    }
}

impl Learning {
    /// The memories near a statement, with the statement's relation to each.
    pub(super) async fn related(
        &self,
        user: &UserId,
        reader: &dyn Reader,
        statement: &Statement,
        known: &[Memory],
    ) -> Result<Related> {
        // The facts of one sentence do not change each other.
        let is_beside = |memory: &&Memory| statement.is_beside(&memory.content, &memory.source_turns);
        let others: Vec<Memory> = known.iter().filter(|memory| !is_beside(memory)).cloned().collect();
        let nearest = self.nearest(statement.said(), &others).await?;
        let candidates: Vec<Memory> = nearest.into_iter().map(|place| others[place].clone()).collect();
        let said = self.as_said(user, &candidates).await?;
        let mut relations = reader.relations(&pairs(statement, said.iter().map(String::as_str))).await?;
        // A change of one of many facts is easily missed in the whole.
        for (said, relation) in said.iter().zip(&mut relations).take(LOOKED_INTO) {
            let parts = parts(said);
            if relation.change() >= LIKELY || parts.len() < 2 || rough_length(said) < LONG {
                continue;
            }
            let of_parts = reader.relations(&pairs(statement, parts.iter().map(String::as_str))).await?;
            let surest = of_parts.into_iter().max_by(|a, b| a.change().total_cmp(&b.change()));
            if let Some(surest) = surest.filter(|surest| surest.change() >= SURE) {
                *relation = surest;
            }
        }
        for (place, relation) in relations.iter_mut().enumerate() {
            if is_about_another(statement, &said[place], relation) {
                *relation = PairReading::default();
            }
        }
        settle_moves(reader, statement, &said, &mut relations).await?;
        Ok(Related { candidates, relations })
    }

    /// Applies a statement as the reader relates it to the memories. On an error nothing has been applied.
    pub(super) async fn relate(
        &self,
        user: &UserId,
        reader: &dyn Reader,
        reconciler: &mut Reconciler<'_>,
        one: &DatedStatement,
    ) -> Result<()> {
        let Related { candidates, relations } =
            self.related(user, reader, &one.statement, &reconciler.known).await?;
        match decide(&relations, one.statement.standing()) {
            Decision::New => reconciler.add_unless_change(one),
            Decision::Repeats { place } => reconciler.repeated(one, &candidates[place]),
            Decision::Disputes { place, certainty } => {
                reconciler.dispute(one, &candidates[place], certainty);
            }
            Decision::Replaces { place, certainty } => {
                let ended = self.ended(user, reader, reconciler, one, &candidates[place]).await?;
                let keep = one.statement.standing() != Standing::AsSureChange;
                reconciler.change(one, &ended, certainty, keep);
            }
            Decision::Ends { place, certainty } => {
                let ended = self.ended(user, reader, reconciler, one, &candidates[place]).await?;
                let (said, ended_one) = (one.statement.said(), &candidates[place].content);
                let says_more = one.statement.standing() == Standing::Kept
                    && (has_new_values(said, ended_one) || has_new_clause(said, ended_one));
                reconciler.change(one, &ended, certainty, says_more);
            }
        }
        Ok(())
    }

    /// The memories that a change of `target` closes, and what is left of each.
    async fn ended(
        &self,
        user: &UserId,
        reader: &dyn Reader,
        reconciler: &Reconciler<'_>,
        one: &DatedStatement,
        target: &Memory,
    ) -> Result<Vec<Ended>> {
        let thread: Vec<Memory> =
            reconciler.known.iter().filter(|memory| memory.thread() == target.thread()).cloned().collect();
        let mut ended = Vec::new();
        let as_said = self.as_said(user, &thread).await?;
        for (memory, said) in thread.into_iter().zip(as_said) {
            // A list of things goes on without the things that are done or changed.
            let rest = match memory.id == target.id {
                true => rest_of_list(&memory, one.statement.said()),
                false => None,
            };
            if rest.is_some() {
                ended.push(Ended { memory, rest });
                continue;
            }
            let parts = Parts::new(&memory.content, &said);
            if parts.told.len() < 2 || rough_length(&memory.content) < DIVISIBLE {
                ended.push(Ended { memory, rest: None });
                continue;
            }
            let is_target = memory.id == target.id;
            match self.left(reader, &one.statement, &parts, is_target).await? {
                Some(rest) => ended.push(Ended { memory, rest }),
                // A change of the whole closes the memory that it is about. Others of the thread say something else too.
                None if is_target => ended.push(Ended { memory, rest: None }),
                None => {}
            }
        }
        Ok(ended)
    }

    /// The rest of a memory of several parts after a change; `None` if the change is not about a part of it.
    async fn left(
        &self,
        reader: &dyn Reader,
        statement: &Statement,
        parts: &Parts,
        is_target: bool,
    ) -> Result<Option<Option<String>>> {
        let changes = |texts: Vec<String>| async move {
            let pairs = pairs(statement, texts.iter().map(String::as_str));
            let readings = reader.relations(&pairs).await?;
            Ok::<Vec<f32>, Error>(readings.iter().map(PairReading::change).collect())
        };
        let of_parts = changes(parts.said.clone()).await?;
        let without = if is_target && !is_touched(&of_parts) {
            let without = |part| joined(&others(&parts.said, part)).unwrap_or_default();
            changes((0..parts.said.len()).map(without).collect()).await?
        } else {
            Vec::new()
        };
        let Some(left) = untouched(&of_parts, &without) else { return Ok(None) };
        let Some((told, said)) = parts.rest(&left) else { return Ok(Some(None)) };
        let change = changes(vec![said.clone()]).await?.first().copied().unwrap_or(1.0);
        let alone = SentenceInContext { text: said, ..SentenceInContext::default() };
        let worth = reader.sentences(&[alone]).await?.first().map_or(0.0, |reading| reading.worth);
        Ok(Some(Some(told).filter(|_| rest_holds(change, worth))))
    }
}

/// The rest of a memory about several things after a sentence about some of them.
fn rest_of_list(memory: &Memory, sentence: &str) -> Option<String> {
    let is_todo = memory.kind == MemoryKind::Todo;
    let left = || {
        let items = without_items(&memory.content, sentence);
        items.or_else(|| without_done(&memory.content, sentence))
    };
    let rest = is_todo.then(left).flatten();
    rest.or_else(|| without_one(&memory.content, sentence)).filter(|rest| is_rest(rest))
}

/// The parts of a memory, as it is told and as it was said.
struct Parts {
    told: Vec<String>,
    said: Vec<String>,
}

impl Parts {
    fn new(told: &str, said: &str) -> Self {
        let (told, said) = (parts(told), parts(said));
        // A sentence that falls into other parts in the third person is compared as it is told.
        let said = if told.len() == said.len() { said } else { told.clone() };
        Self { told, said }
    }

    /// What these parts say, as it is told and as it was said. Parts that stood beside each other stay together, and what does
    /// not stand alone goes with the rest of its sentence. If a number or a name would go with it, the parts stay as they are,
    /// unless their beginning was cut off.
    fn rest(&self, left: &[usize]) -> Option<(String, String)> {
        let runs = left.chunk_by(|a, b| a + 1 == *b);
        let (told, said): (Vec<String>, Vec<String>) = runs.filter_map(|run| self.rest_of(run)).unzip();
        let alone = (!told.is_empty()).then(|| (sentences_of(&told), sentences_of(&said)));
        let kept = alone.as_ref().map(|(told, _)| told.as_str()).unwrap_or_default();
        let is_whole = |(told, _): &(String, String)| {
            is_rest(told) && !lacks_referent(told) && has_new_values(&format!("and {told}"), kept)
        };
        self.joined(left).filter(is_whole).or(alone)
    }

    /// The longest end of these parts that stands alone.
    fn rest_of(&self, run: &[usize]) -> Option<(String, String)> {
        (0..run.len()).find_map(|from| self.joined(&run[from..]).filter(|(told, _)| stands_alone(told)))
    }

    /// These parts as one text, with the subject of the first part if they lost it.
    fn joined(&self, parts: &[usize]) -> Option<(String, String)> {
        let of = |texts: &[String]| {
            let texts: Vec<&str> = parts.iter().map(|part| texts[*part].as_str()).collect();
            joined(&texts)
        };
        let told = of(&self.told).map(|told| with_subject(&self.told[0], &told));
        told.zip(of(&self.said))
    }
}

/// Texts one after the other, each as a sentence of its own.
fn sentences_of(texts: &[String]) -> String {
    let ends = |text: &String| text.ends_with(['.', '!', '?', '。', '！', '？']);
    let is_ascii = texts.iter().all(|text| text.is_ascii());
    let stop = if is_ascii || texts.iter().any(|text| text.contains(' ')) { "." } else { "。" };
    let last = texts.len().saturating_sub(1);
    let closed = |(place, text): (usize, &String)| match place < last && !ends(text) {
        true => format!("{text}{stop}"),
        false => text.clone(),
    };
    let closed: Vec<String> = texts.iter().enumerate().map(closed).collect();
    closed.join(if stop == "." { " " } else { "" })
}

/// The parts without one of them.
fn others(parts: &[String], without: usize) -> Vec<&str> {
    parts.iter().enumerate().filter(|(part, _)| *part != without).map(|(_, text)| text.as_str()).collect()
}

/// A memory that a change closes.
pub(super) struct Ended {
    memory: Memory,
    /// The part of it that still holds.
    rest: Option<String>,
}

/// Whether a statement that seems to end a memory speaks about something else: they share no word, and the reader is not
/// very sure. A todo ends with a bare «done». A short answer replaces nothing else either, unless its question
/// or the answer shares a word with the memory. The name of one thing does not replace that of another.
fn is_about_another(statement: &Statement, remembered: &str, relation: &PairReading) -> bool {
    let new = statement.said();
    let is_answer = is_short_answer(new) && without_reply(&statement.content) != statement.content;
    if is_answer {
        return relation.change() < SURE && !share_content(&statement.content, remembered);
    }
    if names_another(new, remembered) {
        return true;
    }
    let ends = relation.of(Relation::Ends) > relation.of(Relation::Replaces);
    if !ends || share_content(new, remembered) {
        return false;
    }
    let refers = refers_back(new);
    let is_done = refers && says_done(new);
    let least = if refers { SURE } else { VERY_SURE };
    says_done_elsewhere(new) || relation.change() < least && !is_done
}

fn pairs<'a>(statement: &Statement, remembered: impl Iterator<Item = &'a str>) -> Vec<SentencePair> {
    let before = statement.as_said.as_ref().map(|said| said.before.clone()).unwrap_or_default();
    // The reader takes «actually» for a sign that nothing changes.
    let new = plainly(without_greeting(statement.said()));
    remembered
        .map(|remembered| SentencePair {
            remembered: plainly(remembered).into_owned(),
            before: before.clone(),
            new: new.clone().into_owned(),
        })
        .collect()
}

fn per_cent(certainty: f32) -> Option<u8> {
    Some((certainty.clamp(0.0, 1.0) * 100.0).round() as u8)
}

impl Reconciler<'_> {
    fn add_unless_change(&mut self, one: &DatedStatement) {
        if one.statement.standing() == Standing::Kept {
            self.add(one, &[]);
        }
    }

    /// A statement that says the same as a memory. The other words of the statement are kept in the memory's thread.
    fn repeated(&mut self, one: &DatedStatement, memory: &Memory) {
        let is_kept = one.statement.standing() == Standing::Kept;
        let is_here = self.target.holds_here(memory);
        if !is_kept || is_here && !says_more(one.statement.said(), &memory.content) {
            self.repeat(memory, &one.statement);
            return;
        }
        let id = self.add(one, &[]);
        self.note(id, MemoryNotes { thread: Some(memory.thread()), ..MemoryNotes::default() });
    }

    fn dispute(&mut self, one: &DatedStatement, memory: &Memory, certainty: f32) {
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
        let clock = self.learning.clock.as_ref();
        let is_earlier = ended.iter().any(|old| is_later(&old.memory, one.at, clock));
        // A statement from before the memory ends nothing, and becomes history if it says something.
        if is_earlier && !keep {
            return;
        }
        let one = &in_place_of(one, ended);
        let fates: Vec<(Memory, Fate)> =
            ended.iter().map(|old| (old.memory.clone(), fate(&old.memory, &one.statement, keep))).collect();
        if keep {
            let id = self.add(one, &fates);
            if let Some(thread) = ended.first().map(|old| old.memory.thread()) {
                self.note(id, MemoryNotes { thread: Some(thread), ..MemoryNotes::default() });
            }
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

/// A statement in the place of memories: what replaces a standing instruction is one, and what postpones a todo is one. It does
/// not quote what its speaker said before: that may be what it replaces.
fn in_place_of(one: &DatedStatement, ended: &[Ended]) -> DatedStatement {
    let mut one = one.clone();
    one.statement.content = without_saying(&one.statement.content);
    let ends = |kind| ended.iter().any(|old| old.memory.kind == kind);
    if ends(MemoryKind::Instruction) {
        one.statement.kind = MemoryKind::Instruction;
    } else if ends(MemoryKind::Todo) && says_postponed(one.statement.said()) {
        one.statement.kind = MemoryKind::Todo;
    }
    one
}

/// The change of a memory by a statement.
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
