//! The structured part of a summary (evolution plan, V1.1-3): facts, preferences, decisions, todos and entities.
//!
//! Each point holds the number of the last turn that it comes from, so that it leaves together with the window.
//! Todos stay until they are done or dropped. A model's answer is parsed leniently: strings or objects, missing fields,
//! too many points. Without a model, [`rules::extract`] finds the points and [`rules::reconcile`] merges them, as for
//! memories.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Fate, Novelty, Said, Statement, normalised, rules};
use strata_core::error::{Error, Result};
use strata_core::id::MemoryId;
use strata_core::memory::{Memory, MemoryKind, MemoryNotes};
use strata_core::ports::AnswerSchema;
use strata_core::summary::SummaryPart;
use strata_core::turn::{Metadata, Role, Turn};
use strata_language::secrets::redacted;
use strata_language::sentences::beginning;

/// The most points of a field. The oldest points leave first. A window of seven rounds seldom states more than twenty
/// things.
const MAX_POINTS: usize = 24;

/// The most characters of a point: about two sentences.
const MAX_POINT_CHARS: usize = 240;

/// One point of a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Point {
    /// The text of the point.
    pub(crate) text: String,
    /// The last turn that the point comes from; `None` if another program wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seq: Option<u64>,
}

impl<'de> Deserialize<'de> for Point {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::read(&value)
            .ok_or_else(|| serde::de::Error::custom("a point is a text or an object with `text`"))
    }
}

impl Point {
    fn new(text: &str, seq: Option<u64>) -> Option<Self> {
        let text = redacted(text.trim().trim_start_matches(['-', '*', '•']).trim());
        (!text.is_empty()).then(|| Self { text: beginning(&text, MAX_POINT_CHARS), seq })
    }

    /// Parses a text, a number, or an object that has the text under one of the names that models use.
    fn read(value: &Value) -> Option<Self> {
        const NAMES: [&str; 12] = [
            "text",
            "content",
            "name",
            "fact",
            "preference",
            "decision",
            "todo",
            "task",
            "entity",
            "description",
            "title",
            "value",
        ];
        match value {
            Value::String(text) => Self::new(text, None),
            Value::Number(number) => Self::new(&number.to_string(), None),
            Value::Object(object) => {
                let text = NAMES.iter().find_map(|name| object.get(*name)?.as_str())?;
                Self::new(text, object.get("seq").and_then(Value::as_u64))
            }
            _ => None,
        }
    }
}

/// The structured part of a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Structured {
    /// Facts.
    #[serde(default)]
    pub(crate) facts: Vec<Point>,
    /// Preferences and wishes about how something is done.
    #[serde(default)]
    pub(crate) preferences: Vec<Point>,
    /// Decisions.
    #[serde(default)]
    pub(crate) decisions: Vec<Point>,
    /// Open tasks.
    #[serde(default)]
    pub(crate) todos: Vec<Point>,
    /// People, places and things that the text is about.
    #[serde(default)]
    pub(crate) entities: Vec<Point>,
}

impl Structured {
    /// The points of a field.
    pub(crate) fn field(&self, field: SummaryPart) -> &[Point] {
        match field {
            SummaryPart::Facts => &self.facts,
            SummaryPart::Preferences => &self.preferences,
            SummaryPart::Decisions => &self.decisions,
            SummaryPart::Todos => &self.todos,
            SummaryPart::Entities => &self.entities,
        }
    }

    fn field_mut(&mut self, field: SummaryPart) -> &mut Vec<Point> {
        match field {
            SummaryPart::Facts => &mut self.facts,
            SummaryPart::Preferences => &mut self.preferences,
            SummaryPart::Decisions => &mut self.decisions,
            SummaryPart::Todos => &mut self.todos,
            SummaryPart::Entities => &mut self.entities,
        }
    }

    /// Whether no field has a point.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        SummaryPart::ALL.into_iter().all(|field| self.field(field).is_empty())
    }

    /// Parses a stored row, which another program may have written. Fields that are not lists and points without text
    /// are skipped.
    pub(crate) fn of_row(value: &Value) -> Self {
        let mut structured = Self::default();
        for field in SummaryPart::ALL {
            let points = value.get(field.as_str()).and_then(Value::as_array).into_iter().flatten();
            structured.field_mut(field).extend(points.filter_map(Point::read));
        }
        structured
    }

    /// The form of a stored row.
    pub(crate) fn to_row(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Removes the points from before `start`. Todos stay, because leaving the window does not complete them.
    pub(crate) fn slide(&mut self, start: u64) {
        for field in SummaryPart::ALL.into_iter().filter(|field| *field != SummaryPart::Todos) {
            self.field_mut(field).retain(|point| point.seq.is_none_or(|seq| seq >= start));
        }
    }

    /// Keeps the points whose text `keep` accepts.
    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        for field in SummaryPart::ALL {
            self.field_mut(field).retain(|point| keep(&point.text));
        }
    }

    /// Merges a model's answer about the turns up to `end`. If the answer has a list of todos, also an empty one, that
    /// list replaces the open todos. A known todo keeps its turn.
    pub(crate) fn absorb(&mut self, answer: &Answered, end: u64) {
        for field in SummaryPart::ALL {
            let Some(new) = answer.points(field) else { continue };
            let known = self.field_mut(field);
            if field == SummaryPart::Todos {
                let before = std::mem::take(known);
                for text in new {
                    let was =
                        before.iter().find(|point| normalised(&point.text) == normalised(text)).cloned();
                    known.extend(was.or_else(|| Point::new(text, Some(end))));
                }
            } else {
                for text in new {
                    known.retain(|point| normalised(&point.text) != normalised(text));
                    known.extend(Point::new(text, Some(end)));
                }
            }
        }
        self.bound();
    }

    /// Merges the points that the rules find in turns, and removes those that the turns end or replace.
    pub(crate) fn observe(&mut self, turns: &[&Turn]) {
        for turn in turns {
            let text = &*redacted(&turn.content);
            for entity in entities(text) {
                self.entities.retain(|point| normalised(&point.text) != normalised(&entity));
                self.entities.extend(Point::new(&entity, Some(turn.seq)));
            }
            if turn.role == Role::User {
                let said = Said { turn: turn.id, name: turn.name.as_deref(), text, at: turn.created_at };
                self.reconcile(&rules::extract(&said), turn.seq);
            }
        }
        self.bound();
    }

    fn reconcile(&mut self, statements: &[Statement], seq: u64) {
        if statements.is_empty() {
            return;
        }
        let kinds = [
            (SummaryPart::Facts, MemoryKind::Fact),
            (SummaryPart::Preferences, MemoryKind::Preference),
            (SummaryPart::Decisions, MemoryKind::Decision),
            (SummaryPart::Todos, MemoryKind::Todo),
        ];
        let places: Vec<(SummaryPart, usize)> = kinds
            .iter()
            .flat_map(|(field, _)| (0..self.field(*field).len()).map(|place| (*field, place)))
            .collect();
        let kind_of =
            |field| kinds.iter().find(|(of, _)| *of == field).map_or(MemoryKind::Fact, |(_, kind)| *kind);
        let known: Vec<Memory> = places
            .iter()
            .map(|(field, place)| as_memory(kind_of(*field), &self.field(*field)[*place]))
            .collect();
        let plan = rules::reconcile(statements, &known);
        if plan.check(known.len(), statements.len()).is_err() {
            return;
        }
        for ((field, place), fate) in places.iter().zip(&plan.known).rev() {
            if *fate != Fate::Keep {
                self.field_mut(*field).remove(*place);
            }
        }
        // The statement that a todo is done is itself added as a fact.
        for (statement, novelty) in statements.iter().zip(&plan.new) {
            if *novelty == Novelty::Add {
                let field = kinds
                    .iter()
                    .find(|(_, kind)| *kind == statement.kind)
                    .map_or(SummaryPart::Facts, |(of, _)| *of);
                self.field_mut(field).extend(Point::new(&statement.content, Some(seq)));
            }
        }
    }

    fn bound(&mut self) {
        for field in SummaryPart::ALL {
            let points = self.field_mut(field);
            let over = points.len().saturating_sub(MAX_POINTS);
            points.drain(..over);
        }
    }
}

fn as_memory(kind: MemoryKind, point: &Point) -> Memory {
    Memory {
        id: MemoryId(Uuid::nil()),
        session: None,
        agent: None,
        kind,
        content: point.text.clone(),
        confidence: 1.0,
        valid_from: Timestamp::UNIX_EPOCH,
        valid_to: None,
        recorded_at: Timestamp::UNIX_EPOCH,
        replaced_by: None,
        source_turns: Vec::new(),
        source_summary: None,
        metadata: Metadata::new(),
        notes: MemoryNotes::default(),
        hidden: None,
    }
}

/// A model's answer to a request for a summary with its structured part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Answered {
    /// The summary.
    pub(crate) summary: String,
    points: [Option<Vec<String>>; 5],
}

impl Answered {
    /// The schema of the answer.
    pub(crate) fn schema() -> AnswerSchema {
        let texts = json!({"type": "array", "items": {"type": "string"}});
        let mut properties = Map::from_iter([("summary".to_owned(), json!({"type": "string"}))]);
        properties.extend(SummaryPart::ALL.map(|field| (field.as_str().to_owned(), texts.clone())));
        let required: Vec<String> = properties.keys().cloned().collect();
        let schema = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        });
        AnswerSchema { name: "summary", schema }
    }

    /// Parses an answer. The summary is required, the fields are optional. *Invalid* if there is no summary.
    pub(crate) fn of(value: &Value) -> Result<Self> {
        let text =
            value.get("summary").or_else(|| value.get("text")).and_then(Value::as_str).unwrap_or_default();
        let summary = text.trim().to_owned();
        if summary.is_empty() {
            return Err(Error::invalid("the answer has no `summary`; give one with at least a sentence"));
        }
        // Some models put the fields one level down, as the evolution plan stores them.
        let parts = value.get("structured").unwrap_or(value);
        let points = SummaryPart::ALL.map(|field| {
            let points = parts.get(field.as_str())?.as_array()?;
            Some(points.iter().filter_map(Point::read).map(|point| point.text).collect())
        });
        Ok(Self { summary, points })
    }

    /// The points of a field; `None` if the answer does not mention the field.
    pub(crate) fn points(&self, field: SummaryPart) -> Option<&[String]> {
        let place = SummaryPart::ALL.iter().position(|other| *other == field)?;
        self.points[place].as_deref()
    }
}

mod entities;

use entities::entities;

#[cfg(test)]
mod tests;
