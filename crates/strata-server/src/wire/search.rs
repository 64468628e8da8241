//! The items that a search finds.

use jiff::Timestamp;
use serde::Serialize;
use strata_core::store::Item;
use strata_core::turn::Metadata;
use strata_core::{Result, UserId};
use strata_engine::Engine;
use strata_engine::recall::{Recalled, RecalledItem};
use utoipa::ToSchema;
use uuid::Uuid;

use super::memory::{Source, Sources};
use super::names::{Role, Scope};
use super::shortest_f32;
use super::trace::TraceResponse;

response! {
    /// The items that a search found, the best first.
    pub SearchResponse of fn(recalled: &Recalled, results: Vec<FoundItem>, unreadable: u64) {
        results: Vec<FoundItem> = results,
        /// The request's id, as in the header `X-Strata-Request-Id`.
        request_id: Uuid = recalled.request_id.0,
        /// The retrieval path that found the items: `fts`, `trgm`, `vector`, `window`, `summaries_only` or `nothing`.
        retrieval_path: &'static str = recalled.path.as_str(),
        /// Where recall searched.
        scope: Scope = recalled.scope.into(),
        /// Why the search was wider than the session.
        expansion: Option<String> = recalled.expansion.clone(),
        /// The tokens of the items.
        tokens: u32 = recalled.tokens,
        /// Whether the budget shortened an item or left one out.
        truncated: bool = recalled.truncated,
        /// How many damaged items of the user were passed over; `strata doctor` names them.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        unreadable: Option<u64> = (unreadable > 0).then_some(unreadable),
        /// A name that the request left out although its answer depends on it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        warning: Option<&'static str> = None,
        /// The outcome of each candidate, with `explain`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        trace: Option<TraceResponse> = recalled.trace.as_ref().map(TraceResponse::from),
    }
}

impl SearchResponse {
    /// The result of a recall for `user`. This reads the memories' source turns.
    pub async fn load(engine: &Engine, user: &UserId, recalled: &Recalled) -> Result<Self> {
        let sources = sources_of(engine, user, recalled).await?;
        let found = recalled.items.iter().map(|found| FoundItem::new(found, &sources)).collect();
        Ok(Self::new(recalled, found, engine.store().unreadable(user)))
    }

    /// The same answer with a warning.
    pub(crate) fn warning(self, warning: Option<&'static str>) -> Self {
        Self { warning, ..self }
    }
}

/// The source turns of the memories that a recall found.
pub(crate) async fn sources_of(engine: &Engine, user: &UserId, recalled: &Recalled) -> Result<Sources> {
    let memories = recalled.items.iter().filter_map(|found| match &found.item {
        Item::Memory(memory) => Some(memory),
        Item::Turn(_) | Item::Summary(_) => None,
    });
    Sources::load(engine, user, memories).await
}

/// A found item.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundItem {
    /// Its id.
    pub(crate) id: Uuid,
    /// Its text, or the part of it that fits the budget.
    pub(crate) memory: String,
    /// Whether the text was shortened.
    pub(crate) truncated: bool,
    /// The score: relevance and recency together, from 0 to 1.
    #[serde(serialize_with = "shortest_f32")]
    pub(crate) score: f32,
    /// The relevance for the question, from 0 to 1. `threshold` is compared with it.
    #[serde(serialize_with = "shortest_f32")]
    relevance: f32,
    /// The kind of the item.
    #[schema(value_type = FoundKind)]
    pub(crate) kind: &'static str,
    /// The agent it belongs to.
    agent_id: Option<String>,
    /// The client's metadata.
    #[schema(value_type = Object)]
    pub(crate) metadata: Metadata,
    /// When it was said or learned.
    pub(crate) created_at: Timestamp,
    /// When it last changed.
    updated_at: Timestamp,
    /// When the statement became true.
    valid_from: Timestamp,
    /// When the statement stopped being true; `null` while it is true.
    pub(crate) valid_to: Option<Timestamp>,
    /// A current memory that it may contradict, if it is a memory. The newer of the two comes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    disputed_with: Option<Uuid>,
    /// The session it belongs to.
    pub(crate) session_id: Option<String>,
    /// The role of the speaker, if it is a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<Role>,
    /// The name of the speaker of the turn, or of the turn that a memory was learned from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) name: Option<String>,
    /// When it was said: the time of the turn, or of the turn that a memory was learned from.
    pub(crate) said_at: Timestamp,
    /// The turns that it comes from.
    source: Source,
}

/// The kind of a found item.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code, reason = "only its schema is used")]
pub(crate) enum FoundKind {
    /// A turn.
    Turn,
    /// A summary.
    Summary,
    /// A memory: a fact.
    Fact,
    /// A memory: a preference.
    Preference,
    /// A memory: a time or a rhythm.
    Schedule,
    /// A memory: a task to be done.
    Todo,
    /// A memory: a decision that was made.
    Decision,
    /// A memory: something that happened.
    Event,
    /// A memory: a person or an animal.
    Relation,
    /// A memory: a detail of work.
    Work,
    /// A memory: a standing instruction.
    Instruction,
}

/// The name of an item's kind. For a memory, it is the memory's own kind.
pub fn kind_of(item: &Item) -> &'static str {
    match item {
        Item::Turn(_) => "turn",
        Item::Memory(memory) => memory.kind.as_str(),
        Item::Summary(_) => "summary",
    }
}

/// The memory that an item may contradict.
fn disputed_with(item: &Item) -> Option<Uuid> {
    match item {
        Item::Memory(memory) => memory.in_dispute_with().map(|other| other.0),
        Item::Turn(_) | Item::Summary(_) => None,
    }
}

impl FoundItem {
    pub(crate) fn new(found: &RecalledItem, sources: &Sources) -> Self {
        let RecalledItem { item, shortened, score, relevance } = found;
        let (mut valid_from, mut created_at) = (item.created_at(), item.created_at());
        let (mut valid_to, mut agent_id, mut role) = (None, None, None);
        let (mut name, mut said_at) = (None, item.created_at());
        let (metadata, source) = match item {
            Item::Turn(turn) => {
                (role, name) = (Some(turn.role.into()), turn.name.clone());
                (turn.metadata.clone(), Source::from(turn))
            }
            Item::Memory(memory) => {
                (valid_from, valid_to) = (memory.valid_from, memory.valid_to);
                (created_at, agent_id) = (memory.first_recorded_at(), memory.agent.clone());
                (name, said_at) = (sources.name(memory), sources.said_at(memory));
                (memory.metadata.clone(), sources.of(memory))
            }
            Item::Summary(_) => (Metadata::new(), Source::default()),
        };
        Self {
            id: item.id().uuid(),
            memory: shortened.as_deref().unwrap_or_else(|| item.content()).to_owned(),
            truncated: shortened.is_some(),
            score: *score,
            relevance: *relevance,
            kind: kind_of(item),
            agent_id,
            metadata,
            created_at,
            updated_at: item.created_at(),
            valid_from,
            valid_to,
            disputed_with: disputed_with(item),
            session_id: item.session().map(ToString::to_string),
            role,
            name,
            said_at,
            source,
        }
    }
}
