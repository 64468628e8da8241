//! Filters on memories and turns: conditions on their fields and on the client's metadata.
//!
//! The syntax is mem0's: an object whose conditions must all hold, `AND`, `OR` and `NOT` to combine conditions, a plain
//! value for equality, and `*` for «has this field». The module `parse` parses it. A filter only narrows the items of its user:
//! a condition on `user_id` is compared with the owner and never selects another user.

mod parse;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::Value;

use strata_core::id::UserId;
use strata_core::memory::Memory;
use strata_core::store::{Item, ItemRef, Keep};
use strata_core::turn::{Metadata, Turn};

/// A filter.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// All of these hold. An empty list always holds.
    All(Vec<Filter>),
    /// At least one of these holds.
    Any(Vec<Filter>),
    /// This does not hold.
    Not(Box<Filter>),
    /// A field passes a test.
    Field(Field, Test),
}

/// The field of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// The owner: `user_id`.
    User,
    /// The agent: `agent_id`.
    Agent,
    /// The session: `run_id` or `session_id`.
    Session,
    /// The id: `id` or `memory_id`.
    Id,
    /// The text: `memory` or `text`.
    Text,
    /// `kind`: a memory's kind, or `turn`.
    Kind,
    /// The speaker: `role`.
    Role,
    /// The confidence: `confidence`.
    Confidence,
    /// A time.
    Time(Moment),
    /// A value of the client's metadata, by its name or by a path of names with dots.
    Metadata(String),
}

/// A time of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// `created_at`: when the item was said or learned.
    Created,
    /// `updated_at`: when the item last changed.
    Updated,
    /// `valid_from`: when the statement began to be true.
    ValidFrom,
    /// `valid_to`: when the statement stopped being true.
    ValidTo,
}

/// The test of a condition. A list passes if one of its elements passes.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// The field exists and is not null: `*`.
    Exists,
    /// The field equals this value. A missing field is null.
    Is(Value),
    /// The field equals one of these values.
    OneOf(Vec<Value>),
    /// The field compares with this number or text. A number never compares with a text.
    Compares(Comparison, Value),
    /// The field compares with this time.
    TimeCompares(Comparison, Timestamp),
    /// The field contains this text.
    Contains(String),
    /// The field contains this text in any case. The text is given in lower case.
    ContainsIgnoringCase(String),
}

/// The comparison of a field with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
pub enum Comparison {
    /// Greater than.
    #[strum(serialize = "gt")]
    Greater,
    /// Greater than or equal to.
    #[strum(serialize = "gte")]
    GreaterOrEqual,
    /// Less than.
    #[strum(serialize = "lt")]
    Less,
    /// Less than or equal to.
    #[strum(serialize = "lte")]
    LessOrEqual,
}

impl Comparison {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
        }
    }
}

/// The item that a filter checks.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// A memory of a user.
    Memory(&'a UserId, &'a Memory),
    /// A turn of a user.
    Turn(&'a UserId, &'a Turn),
}

impl<'a> Subject<'a> {
    /// The subject for an item; `None` for a summary, because filters have no fields for it.
    pub fn of(owner: &'a UserId, item: &'a Item) -> Option<Self> {
        match item {
            Item::Turn(turn) => Some(Self::Turn(owner, turn)),
            Item::Memory(memory) => Some(Self::Memory(owner, memory)),
            Item::Summary(_) => None,
        }
    }

    fn metadata(self) -> &'a Metadata {
        match self {
            Self::Memory(_, memory) => &memory.metadata,
            Self::Turn(_, turn) => &turn.metadata,
        }
    }

    fn moment(self, moment: Moment) -> Option<Timestamp> {
        match (self, moment) {
            (Self::Memory(_, memory), Moment::Created) => Some(memory.recorded_at),
            (Self::Memory(_, memory), Moment::Updated) => {
                Some(memory.hidden.map_or(memory.recorded_at, |hidden| hidden.at))
            }
            (Self::Memory(_, memory), Moment::ValidFrom) => Some(memory.valid_from),
            (Self::Memory(_, memory), Moment::ValidTo) => memory.valid_to,
            (Self::Turn(..), Moment::ValidTo) => None,
            (Self::Turn(_, turn), _) => Some(turn.created_at),
        }
    }

    /// The value of a field of the item itself; `None` for metadata and for fields that the item does not have.
    fn own(self, field: &Field) -> Option<Value> {
        let text = |text: &str| Some(Value::from(text));
        match (field, self) {
            (Field::User, Self::Memory(owner, _) | Self::Turn(owner, _)) => {
                (*owner != UserId::global()).then(|| owner.as_str().into())
            }
            (Field::Agent, Self::Memory(_, memory)) => memory.agent.as_deref().and_then(text),
            (Field::Session, Self::Memory(_, memory)) => {
                memory.session.as_ref().map(|session| session.as_str().into())
            }
            (Field::Session, Self::Turn(_, turn)) => text(turn.session.as_str()),
            (Field::Id, Self::Memory(_, memory)) => text(&memory.id.to_string()),
            (Field::Id, Self::Turn(_, turn)) => text(&turn.id.to_string()),
            (Field::Text, Self::Memory(_, memory)) => text(&memory.content),
            (Field::Text, Self::Turn(_, turn)) => text(&turn.content),
            (Field::Kind, Self::Memory(_, memory)) => text(memory.kind.as_str()),
            (Field::Kind, Self::Turn(..)) => text("turn"),
            (Field::Role, Self::Turn(_, turn)) => text(turn.role.as_str()),
            (Field::Confidence, Self::Memory(_, memory)) => Some(memory.confidence.into()),
            (Field::Time(moment), _) => self.moment(*moment).map(|moment| moment.to_string().into()),
            (Field::Agent | Field::Confidence, Self::Turn(..))
            | (Field::Role, Self::Memory(..))
            | (Field::Metadata(_), _) => None,
        }
    }
}

impl Filter {
    /// A filter that always holds.
    pub fn always() -> Self {
        Self::All(Vec::new())
    }

    /// The filter as the test of a query over the items of a user.
    pub fn keep(&self, owner: &UserId) -> Keep {
        let (filter, owner) = (self.clone(), owner.clone());
        Keep::new(move |item| {
            filter.matches(match item {
                ItemRef::Turn(turn) => Subject::Turn(&owner, turn),
                ItemRef::Memory(memory) => Subject::Memory(&owner, memory),
            })
        })
    }

    /// Whether the filter holds for an item.
    pub fn matches(&self, subject: Subject<'_>) -> bool {
        match self {
            Self::All(filters) => filters.iter().all(|filter| filter.matches(subject)),
            Self::Any(filters) => filters.iter().any(|filter| filter.matches(subject)),
            Self::Not(filter) => !filter.matches(subject),
            Self::Field(Field::Time(moment), test) => time_passes(subject.moment(*moment), test),
            Self::Field(Field::Metadata(path), test) => passes(attached(subject.metadata(), path), test),
            Self::Field(field, test) => passes(subject.own(field).as_ref(), test),
        }
    }

    /// The one user whose items can pass, if the filter names one. It serves as the user of a request that names no
    /// other.
    pub fn named_user(&self) -> Option<&str> {
        match self {
            Self::Field(Field::User, Test::Is(Value::String(name))) => Some(name),
            Self::All(filters) => filters.iter().find_map(Self::named_user),
            _ => None,
        }
    }

    /// Whether the filter has a condition on `user_id`, other than `*`.
    pub fn mentions_user(&self) -> bool {
        match self {
            Self::All(filters) | Self::Any(filters) => filters.iter().any(Self::mentions_user),
            Self::Not(filter) => filter.mentions_user(),
            Self::Field(field, test) => *field == Field::User && *test != Test::Exists,
        }
    }

    /// Whether the filter holds for all items of `owner`, because its only condition names that user.
    pub(crate) fn is_only(&self, owner: &UserId) -> bool {
        match self {
            Self::All(filters) => filters.iter().all(|filter| filter.is_only(owner)),
            Self::Field(Field::User, Test::Is(Value::String(name))) => name == owner.as_str(),
            Self::Field(Field::User, Test::Exists) => *owner != UserId::global(),
            _ => false,
        }
    }
}

/// A value of the client's metadata, by its name or by a path of names.
fn attached<'a>(metadata: &'a Metadata, path: &str) -> Option<&'a Value> {
    if let Some(value) = metadata.get(path) {
        return Some(value);
    }
    let mut names = path.split('.');
    let first = metadata.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}

fn passes(value: Option<&Value>, test: &Test) -> bool {
    let value = value.unwrap_or(&Value::Null);
    if let Value::Array(elements) = value {
        // A condition may also name the list as a whole.
        let whole = matches!(test, Test::Exists) || matches!(test, Test::Is(wanted) if wanted == value);
        return whole || elements.iter().any(|element| one_passes(element, test));
    }
    one_passes(value, test)
}

fn one_passes(value: &Value, test: &Test) -> bool {
    match test {
        Test::Exists => !value.is_null(),
        Test::Is(wanted) => same(value, wanted),
        Test::OneOf(wanted) => wanted.iter().any(|wanted| same(value, wanted)),
        Test::Compares(comparison, other) => {
            compare(value, other).is_some_and(|ordering| comparison.holds(ordering))
        }
        Test::TimeCompares(..) => false,
        Test::Contains(part) => value.as_str().is_some_and(|text| text.contains(part.as_str())),
        Test::ContainsIgnoringCase(part) => {
            value.as_str().is_some_and(|text| text.to_lowercase().contains(part.as_str()))
        }
    }
}

fn time_passes(moment: Option<Timestamp>, test: &Test) -> bool {
    match (test, moment) {
        (Test::TimeCompares(comparison, other), Some(moment)) => comparison.holds(moment.cmp(other)),
        (Test::TimeCompares(..), None) => false,
        (test, moment) => one_passes(&moment.map_or(Value::Null, |moment| moment.to_string().into()), test),
    }
}

/// Whether two values are equal. Numbers are compared by value, in any notation.
fn same(one: &Value, other: &Value) -> bool {
    one == other || (one.is_number() && compare(one, other) == Some(Ordering::Equal))
}

fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => Some(one.cmp(&other)),
            _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
        },
        (Value::String(one), Value::String(other)) => Some(one.as_str().cmp(other)),
        _ => None,
    }
}
