//! The conflict suite: short dialogues that change, correct, repeat and retract facts. They run through the built-in extraction
//! and reconciliation. Labels say which event each message must cause, and which memories must be current at the end.
//!
//! Deliberately absent: a store and a model. The memories are in a list. `docs/evals.md` describes the data and its format.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use strata_core::{Error, Memory, MemoryId, Result, TurnId};
use strata_engine::learn::rules;
use strata_engine::learn::{Said, Statement};
use strata_language::plan::{Fate, Novelty, Plan};
use strata_language::text;
use uuid::Uuid;

/// The effect of a message on the known memories. If a message has several effects, the first of these counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Event {
    /// A memory was replaced.
    Update,
    /// A memory was contradicted, or a todo ended.
    Delete,
    /// A memory was added.
    Add,
    /// Nothing changed.
    None,
}

impl Event {
    const ALL: [Self; 4] = [Self::Add, Self::Update, Self::Delete, Self::None];

    fn name(self) -> &'static str {
        match self {
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Add => "ADD",
            Self::None => "NONE",
        }
    }
}

/// A short dialogue with its labels.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialogue {
    /// The id.
    pub id: String,
    /// The subject of the dialogue.
    pub category: String,
    /// The statements that are known before the dialogue.
    #[serde(default)]
    pub known: Vec<String>,
    /// The user's messages, two weeks apart.
    pub say: Vec<String>,
    /// The event that each message must cause.
    pub events: Vec<Event>,
    /// Patterns that a current memory must match at the end. A memory must contain all words of a pattern; `|` separates
    /// alternatives, `!` marks a word that must be absent, and `_` stands for a blank.
    #[serde(default)]
    pub holds: Vec<String>,
    /// Patterns that no current memory may match at the end.
    #[serde(default)]
    pub gone: Vec<String>,
    /// The maximum number of current memories at the end.
    pub most: Option<usize>,
}

/// A file of dialogues.
#[derive(Debug, Clone)]
pub struct Suite {
    /// The file's name without its ending: `tuned.en`.
    pub name: String,
    /// The dialogues.
    pub dialogues: Vec<Dialogue>,
}

/// Reads the `*.jsonl` files of a folder, with one dialogue per line.
pub fn load(folder: &Path) -> Result<Vec<Suite>> {
    let unreadable = |error| Error::invalid(format!("folder `{}` cannot be read: {error}", folder.display()));
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut suites = Vec::new();
    for path in paths {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Error::invalid(format!("file `{}` cannot be read: {error}", path.display())))?;
        let mut dialogues: Vec<Dialogue> = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = |why: String| Error::invalid(format!("{name}.jsonl:{}: {why}", number + 1));
            let dialogue: Dialogue = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
            if dialogue.events.len() != dialogue.say.len() {
                return Err(wrong("each message needs an event, and each event a message".to_owned()));
            }
            if dialogues.iter().any(|other| other.id == dialogue.id) {
                return Err(wrong(format!("dialogue `{}` appears twice", dialogue.id)));
            }
            dialogues.push(dialogue);
        }
        suites.push(Suite { name, dialogues });
    }
    if suites.is_empty() {
        return Err(Error::invalid(format!(
            "folder `{}` contains no `*.jsonl` file of dialogues",
            folder.display()
        )));
    }
    Ok(suites)
}

/// How often an event was expected, caused, and both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Messages that should cause the event.
    pub wanted: usize,
    /// Messages that caused the event.
    pub done: usize,
    /// Messages that should cause the event and did.
    pub right: usize,
}

/// The results of some dialogues.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Findings {
    /// The number of dialogues.
    pub dialogues: usize,
    /// The number of dialogues that end with exactly the true memories.
    pub true_at_the_end: usize,
    /// The number of messages.
    pub messages: usize,
    /// The number of messages that were said when a memory was current.
    pub with_known: usize,
    /// The number of those that ended a memory that should have stayed.
    pub falsely_ended: usize,
    /// The counts by event.
    pub events: BTreeMap<&'static str, Counts>,
    /// By category: the number of dialogues, and of those that end right.
    pub categories: BTreeMap<String, (usize, usize)>,
    /// The failures in words, one for each dialogue.
    pub failures: Vec<String>,
}

impl Findings {
    /// The share of dialogues that end with exactly the true memories.
    pub fn accuracy(&self) -> f64 {
        share(self.true_at_the_end, self.dialogues)
    }

    /// The share of messages, among those said when a memory was current, that ended a memory that should have stayed.
    pub fn false_supersession(&self) -> f64 {
        share(self.falsely_ended, self.with_known)
    }

    fn merge(&mut self, other: &Self) {
        self.dialogues += other.dialogues;
        self.true_at_the_end += other.true_at_the_end;
        self.messages += other.messages;
        self.with_known += other.with_known;
        self.falsely_ended += other.falsely_ended;
        for (event, counts) in &other.events {
            let own = self.events.entry(event).or_default();
            own.wanted += counts.wanted;
            own.done += counts.done;
            own.right += counts.right;
        }
        for (category, (all, right)) in &other.categories {
            let own = self.categories.entry(category.clone()).or_default();
            own.0 += all;
            own.1 += right;
        }
        self.failures.extend(other.failures.iter().cloned());
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The results by suite, by language, and of all dialogues.
#[derive(Debug, Clone, Serialize)]
pub struct ConflictReport {
    /// By suite.
    pub suites: BTreeMap<String, Findings>,
    /// By language, which is the last part of a suite's name.
    pub languages: BTreeMap<String, Findings>,
    /// Of all dialogues.
    pub all: Findings,
}

/// Runs the suites through the built-in rules.
pub fn run(suites: &[Suite]) -> Result<ConflictReport> {
    let mut report =
        ConflictReport { suites: BTreeMap::new(), languages: BTreeMap::new(), all: Findings::default() };
    for suite in suites {
        let mut findings = Findings::default();
        for dialogue in &suite.dialogues {
            run_dialogue(dialogue, &mut findings)?;
        }
        let language = suite.name.rsplit('.').next().unwrap_or_default().to_owned();
        report.languages.entry(language).or_default().merge(&findings);
        report.all.merge(&findings);
        report.suites.insert(suite.name.clone(), findings);
    }
    Ok(report)
}

fn run_dialogue(dialogue: &Dialogue, findings: &mut Findings) -> Result<()> {
    let mut at: Timestamp = Timestamp::constant(1_709_287_200, 0);
    let mut memories: Vec<Memory> = Vec::new();
    for content in &dialogue.known {
        memories.push(memory(content, at, memories.len()));
    }
    let mut wrong = Vec::new();
    for (text, wanted) in dialogue.say.iter().zip(&dialogue.events) {
        let known = memories.iter().any(Memory::is_current);
        let said = Said { turn: TurnId(Uuid::nil()), name: None, text, at };
        let statements = rules::extract(&said);
        let plan = rules::reconcile(&statements, &memories);
        plan.check(memories.len(), statements.len()).map_err(Error::invalid)?;
        let ended = plan.known.iter().filter(|fate| **fate != Fate::Keep).count();
        let event = event(&plan);
        let spurious = match wanted {
            Event::Add | Event::None => ended > 0,
            Event::Update | Event::Delete => ended > 1,
        };
        findings.messages += 1;
        findings.with_known += usize::from(known);
        findings.falsely_ended += usize::from(spurious);
        findings.events.entry(wanted.name()).or_default().wanted += 1;
        let counts = findings.events.entry(event.name()).or_default();
        counts.done += 1;
        counts.right += usize::from(event == *wanted);
        if event != *wanted {
            let contents: Vec<&str> = statements.iter().map(|statement| statement.content.as_str()).collect();
            wrong.push(format!("`{text}` did {} instead of {}: {contents:?}", event.name(), wanted.name()));
        }
        apply(&plan, &statements, &mut memories, at);
        at += SignedDuration::from_hours(24 * 14);
    }
    let current: Vec<String> = memories
        .iter()
        .filter(|memory| memory.is_current())
        .map(|memory| text::fold(&memory.content))
        .collect();
    let said = |entry: &String| current.iter().any(|content| matches(content, entry));
    let lost: Vec<&String> = dialogue.holds.iter().filter(|entry| !said(entry)).collect();
    let stale: Vec<&String> = dialogue.gone.iter().filter(|entry| said(entry)).collect();
    let crowded = dialogue.most.is_some_and(|most| current.len() > most);
    let right = lost.is_empty() && stale.is_empty() && !crowded;
    findings.dialogues += 1;
    findings.true_at_the_end += usize::from(right);
    let category = findings.categories.entry(dialogue.category.clone()).or_default();
    category.0 += 1;
    category.1 += usize::from(right);
    if !right {
        wrong.push(format!("in the end {current:?} lacks {lost:?}, still says {stale:?}"));
    }
    if !wrong.is_empty() {
        findings.failures.push(format!("{}: {}", dialogue.id, wrong.join("; ")));
    }
    Ok(())
}

fn event(plan: &Plan) -> Event {
    let fates = plan.known.iter().map(|fate| match fate {
        Fate::Keep => Event::None,
        Fate::Update { .. } => Event::Update,
        Fate::Delete { .. } | Fate::End { .. } => Event::Delete,
    });
    let added = plan.new.iter().map(|new| if *new == Novelty::Add { Event::Add } else { Event::None });
    fates.chain(added).min().unwrap_or(Event::None)
}

/// Applies a plan to the list of memories, as a store would.
fn apply(plan: &Plan, statements: &[Statement], memories: &mut Vec<Memory>, at: Timestamp) {
    for (memory, fate) in memories.iter_mut().zip(&plan.known) {
        if *fate != Fate::Keep {
            memory.valid_to = Some(at);
        }
    }
    for (statement, novelty) in statements.iter().zip(&plan.new) {
        if *novelty == Novelty::Add {
            let number = memories.len();
            let mut memory = memory(&statement.content, statement.valid_from.unwrap_or(at), number);
            memory.kind = statement.kind;
            memory.confidence = statement.confidence;
            memories.push(memory);
        }
    }
}

fn memory(content: &str, at: Timestamp, number: usize) -> Memory {
    Memory {
        id: MemoryId(Uuid::from_u128(number as u128)),
        session: None,
        agent: None,
        kind: Default::default(),
        content: content.to_owned(),
        confidence: 0.9,
        valid_from: at,
        valid_to: None,
        recorded_at: at,
        replaced_by: None,
        source_turns: Vec::new(),
        source_summary: None,
        metadata: Default::default(),
        notes: Default::default(),
        hidden: None,
    }
}

fn matches(content: &str, entry: &str) -> bool {
    entry.split_whitespace().all(|word| match word.strip_prefix('!') {
        Some(absent) => !has_any(content, absent),
        None => has_any(content, word),
    })
}

fn has_any(content: &str, alternatives: &str) -> bool {
    alternatives.split('|').any(|word| content.contains(&text::fold(&word.replace('_', " "))))
}

/// The report as text.
pub fn table(report: &ConflictReport) -> String {
    let mut text = String::new();
    let rows =
        report.suites.iter().chain(&report.languages).map(|(name, findings)| (name.as_str(), findings));
    let _ =
        writeln!(text, "| conflicts | dialogues | truth, % | false supersession, % |\n|---|---:|---:|---:|");
    for (name, findings) in rows.clone().chain([("all", &report.all)]) {
        let (accuracy, ended) = (100.0 * findings.accuracy(), 100.0 * findings.false_supersession());
        let _ = writeln!(text, "| {name} | {} | {accuracy:.1} | {ended:.1} |", findings.dialogues);
    }
    let _ = writeln!(text, "\n| event | in | wanted | precision, % | recall, % |\n|---|---|---:|---:|---:|");
    for (name, findings) in rows.chain([("all", &report.all)]) {
        for event in Event::ALL {
            let counts = findings.events.get(event.name()).copied().unwrap_or_default();
            let (precision, recall) = (share(counts.right, counts.done), share(counts.right, counts.wanted));
            let _ = writeln!(
                text,
                "| {} | {name} | {} | {:.1} | {:.1} |",
                event.name(),
                counts.wanted,
                100.0 * precision,
                100.0 * recall
            );
        }
    }
    let _ = writeln!(text, "\n| category | dialogues | truth, % |\n|---|---:|---:|");
    for (category, (all, right)) in &report.all.categories {
        let _ = writeln!(text, "| {category} | {all} | {:.1} |", 100.0 * share(*right, *all));
    }
    text
}
