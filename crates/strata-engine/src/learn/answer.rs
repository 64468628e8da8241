//! Parses a model's answer: code fences, prose around the JSON, reasoning before it and text after it are all accepted.
//!
//! An error says what is wrong with the answer, so that the model can repair it. It never quotes the answer, because
//! errors are logged and stored with jobs, which must not hold what a user said.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::{Fate, MAX_STATEMENTS, Novelty, Plan, Said, Statement, TodoEnd};
use strata_core::error::{Error, Result};
use strata_core::id::TurnId;
use strata_core::memory::{Memory, MemoryKind};
use strata_core::nul::MayHoldNul;

/// The most positions in an answer that are tried as the beginning of JSON. The limit bounds the search in a very long
/// answer.
const MAX_BEGINNINGS: usize = 64;

/// The longest statement, in characters. Longer statements are dropped: they are not atomic.
const MAX_STATEMENT_CHARS: usize = 1_000;

/// The confidence of a statement whose answer gives none.
const UNSAID_CONFIDENCE: f32 = 0.8;

/// An answer without the thoughts that some models write before it, between tags. Thoughts without an end are all of it:
/// the answer is empty.
pub(crate) fn without_thoughts(answer: &str) -> &str {
    const TAGS: [(&str, &str); 4] = [
        ("<think>", "</think>"),
        ("<thinking>", "</thinking>"),
        ("<thought>", "</thought>"),
        ("<reasoning>", "</reasoning>"),
    ];
    let mut answer = answer;
    for (open, close) in TAGS {
        // Some servers leave out the first tag, because it belongs to the question.
        answer = answer.rsplit_once(close).map_or(answer, |(_, answer)| answer);
        if answer.trim_start().starts_with(open) {
            return "";
        }
    }
    answer
}

/// The first JSON value in an answer that `read` accepts. If there is none, the error is that of the first JSON value.
pub(crate) fn find<T>(answer: &str, read: impl Fn(&Value) -> Result<T>) -> Result<T> {
    let answer = without_thoughts(answer);
    let mut failure = None;
    let mut from = 0;
    for _ in 0..MAX_BEGINNINGS {
        let Some(at) = answer[from..].find(['{', '[']) else { break };
        let at = from + at;
        let mut values = serde_json::Deserializer::from_str(&answer[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => match read(&value) {
                Ok(found) => return Ok(found),
                Err(error) => {
                    failure.get_or_insert(error);
                    // The search continues after this value: a value inside it is not an answer by itself.
                    from = at + values.byte_offset().max(1);
                }
            },
            _ => from = at + 1,
        }
    }
    Err(failure.unwrap_or_else(|| Error::invalid("the answer holds no JSON")))
}

/// The statements in an answer about these messages. The answer is a list of strings, a list of objects, or an object
/// that holds such a list. Each message yields at most [`MAX_STATEMENTS`]. A statement that names no valid message
/// counts as said in all of them.
pub(crate) fn statements(answer: &str, said: &[Said<'_>]) -> Result<Vec<Statement>> {
    find(answer, |value| {
        let list = list_in(value, &["statements", "facts", "memories", "memory"])
            .ok_or_else(|| Error::invalid("the answer holds no list `statements`"))?;
        let mut left: BTreeMap<Option<TurnId>, usize> = BTreeMap::new();
        let mut statements = Vec::new();
        for entry in list {
            let Some((statement, turn)) = statement(entry, said)? else { continue };
            let most = if turn.is_some() { MAX_STATEMENTS } else { MAX_STATEMENTS * said.len().max(1) };
            let left = left.entry(turn).or_insert(most);
            if *left > 0 {
                *left -= 1;
                statements.push(statement);
            }
        }
        Ok(statements)
    })
}

fn list_in<'a>(value: &'a Value, names: &[&str]) -> Option<&'a Vec<Value>> {
    match value {
        Value::Array(list) => Some(list),
        Value::Object(object) => names.iter().find_map(|name| object.get(*name)?.as_array()),
        _ => None,
    }
}

/// One statement and the turn that it names. `None` if it is empty, too long or holds a NUL.
fn statement(entry: &Value, said: &[Said<'_>]) -> Result<Option<(Statement, Option<TurnId>)>> {
    let content = match entry {
        Value::String(content) => content.as_str(),
        Value::Object(object) => ["content", "statement", "fact", "text", "memory"]
            .iter()
            .find_map(|name| object.get(*name)?.as_str())
            .ok_or_else(|| Error::invalid("a statement has no `content`"))?,
        _ => return Err(Error::invalid("a statement is neither a text nor an object")),
    };
    let content = content.trim();
    if content.is_empty() || content.holds_nul() || content.chars().count() > MAX_STATEMENT_CHARS {
        return Ok(None);
    }
    let kind = entry.get("kind").and_then(Value::as_str).and_then(|kind| kind.to_lowercase().parse().ok());
    let confidence = entry.get("confidence").and_then(Value::as_f64).map(|value| value as f32);
    // The messages are numbered from 1 in the request.
    let turn = entry
        .get("message")
        .and_then(number)
        .and_then(|number| said.get(usize::try_from(number.checked_sub(1)?).ok()?).map(|said| said.turn));
    let statement = Statement {
        as_said: None,
        content: content.to_owned(),
        kind: kind.unwrap_or(MemoryKind::Fact),
        confidence: confidence.filter(|value| value.is_finite()).unwrap_or(UNSAID_CONFIDENCE).clamp(0.0, 1.0),
        turns: turn.map_or_else(|| said.iter().map(|said| said.turn).collect(), |turn| vec![turn]),
        valid_from: entry.get("since").and_then(Value::as_str).and_then(moment),
    };
    Ok(Some((statement, turn)))
}

/// A number, or a text that holds a number.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// Parses a timestamp, or a date as midnight UTC.
fn moment(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let day = || text.parse::<jiff::civil::Date>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
    text.parse().ok().or_else(|| day().map(|day| day.timestamp()))
}

/// The plan in an answer about known memories and new statements. Memories are numbered from 1, and the statements
/// follow. The answer has to name every number. If the plan would lose a statement, the statement is added instead.
pub(crate) fn plan(answer: &str, known: &[&Memory], new: usize) -> Result<Plan> {
    find(answer, |value| {
        let list = list_in(value, &["memories", "memory", "results", "events"])
            .ok_or_else(|| Error::invalid("the answer holds no list `memories`"))?;
        let entries = Entries::read(list, known.len() + new)?;
        let mut plan = Plan::add_all(known.len(), new);
        for (place, memory) in known.iter().enumerate() {
            plan.known[place] = entries.fate(place, memory, known.len(), new)?;
        }
        for place in 0..new {
            plan.new[place] = entries.novelty(place, known.len())?;
        }
        keep_all(&mut plan);
        plan.check(known.len(), new).map_err(Error::invalid)?;
        Ok(plan)
    })
}

/// The event of each number and the number in its `by`, both counted from 0.
struct Entries(Vec<(String, Option<usize>)>);

impl Entries {
    fn read(list: &[Value], count: usize) -> Result<Self> {
        let mut entries: Vec<Option<(String, Option<usize>)>> = vec![None; count];
        for entry in list {
            let id =
                entry.get("id").and_then(number).ok_or_else(|| Error::invalid("an entry has no `id`"))?;
            let slot = usize::try_from(id).ok().and_then(|id| entries.get_mut(id.checked_sub(1)?));
            let Some(slot) = slot else {
                return Err(Error::invalid(format!("there is no number {id}; they go from 1 to {count}")));
            };
            let event = entry.get("event").and_then(Value::as_str).unwrap_or_default().trim().to_uppercase();
            let by = entry.get("by").and_then(number).and_then(|by| usize::try_from(by).ok()?.checked_sub(1));
            let read = (event, by.filter(|by| *by < count));
            if slot.as_ref().is_some_and(|before| *before != read) {
                return Err(Error::invalid(format!("number {id} has two different events")));
            }
            *slot = Some(read);
        }
        let missing: Vec<String> =
            (1..=count).filter(|id| entries[id - 1].is_none()).map(|id| id.to_string()).collect();
        if !missing.is_empty() {
            return Err(Error::invalid(format!("the answer leaves out the numbers {}", missing.join(", "))));
        }
        Ok(Self(entries.into_iter().flatten().collect()))
    }

    fn fate(&self, place: usize, memory: &Memory, known: usize, new: usize) -> Result<Fate> {
        let (event, by) = &self.0[place];
        let by = match by.and_then(|by| by.checked_sub(known)) {
            Some(by) => Some(by),
            // If there is only one new statement, it is the reason.
            None => (new == 1).then_some(0),
        };
        let because = || {
            by.ok_or_else(|| {
                Error::invalid(format!("number {} has no `by` that is a new statement", place + 1))
            })
        };
        let ends = |how| {
            let by = because()?;
            Ok(if memory.kind == MemoryKind::Todo { Fate::End { by, how } } else { Fate::Delete { by } })
        };
        match event.as_str() {
            "NONE" | "ADD" | "KEEP" => Ok(Fate::Keep),
            "UPDATE" => Ok(Fate::Update { by: because()? }),
            "DELETE" => Ok(Fate::Delete { by: because()? }),
            "DONE" => ends(TodoEnd::Done),
            "DROPPED" => ends(TodoEnd::Dropped),
            _ => Err(Error::invalid(format!("number {} has an event that is not listed", place + 1))),
        }
    }

    fn novelty(&self, place: usize, known: usize) -> Result<Novelty> {
        let (event, by) = &self.0[known + place];
        match (event.as_str(), by) {
            ("ADD" | "UPDATE", _) => Ok(Novelty::Add),
            ("NONE", Some(of)) if *of < known => Ok(Novelty::Duplicate { of: *of }),
            ("NONE", Some(of)) => Ok(Novelty::Repeated { of: of - known }),
            ("NONE", None) => Err(Error::invalid(format!(
                "number {} has event NONE and no `by` that says the same",
                known + place + 1
            ))),
            _ => {
                Err(Error::invalid(format!("number {} is new: its event is ADD or NONE", known + place + 1)))
            }
        }
    }
}

/// Adds the statements that a plan would lose: those that end a memory, and those that repeat something that does not
/// stay.
fn keep_all(plan: &mut Plan) {
    for by in plan.known.iter().filter_map(|fate| fate.because_of()) {
        if let Some(novelty) = plan.new.get_mut(by) {
            *novelty = Novelty::Add;
        }
    }
    for place in 0..plan.new.len() {
        let stays = match plan.new[place] {
            Novelty::Add => true,
            Novelty::Duplicate { of } => plan.known.get(of) == Some(&Fate::Keep),
            Novelty::Repeated { of } => of < place && plan.new[of] == Novelty::Add,
        };
        if !stays {
            plan.new[place] = Novelty::Add;
        }
    }
}

#[cfg(test)]
#[path = "answer/tests.rs"]
mod tests;
