//! Recall: from a question to the few items that answer it.
//!
//! First stage: full text, then trigrams, then the most recent turns, in that order; what each path gave is counted.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::id::{RequestId, SessionId, UserId};
use crate::metric::RetrievalPath;
use crate::store::{Hit, Item, ItemKinds, TextMatch, TextQuery, TurnQuery};

/// Where recall looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One session, and the memories bound to none.
    Session,
    /// All of the user's sessions and memories.
    User,
    /// The user's, and what is shared by all users.
    Global,
}

impl std::str::FromStr for Scope {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "session" => Ok(Self::Session),
            "user" => Ok(Self::User),
            "global" => Ok(Self::Global),
            _ => Err(Error::invalid(format!(
                "scope `{}` is unknown; use `session`, `user` or `global`",
                name.chars().take(64).collect::<String>()
            ))),
        }
    }
}

/// How recall works.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallSettings {
    /// How many items to give where the caller does not say (document 4).
    pub default_top_k: u32,
    /// The least trigram similarity of a word: `pg_trgm`'s own default, which document 3 builds on.
    pub min_similarity: f32,
    /// Questions shorter than this many characters do not go to the trigrams: everything resembles them.
    pub min_query_len: usize,
}

impl Default for RecallSettings {
    fn default() -> Self {
        Self { default_top_k: 5, min_similarity: 0.3, min_query_len: 2 }
    }
}

/// A question to memory.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallRequest {
    /// The question.
    pub query: String,
    /// The session it is asked in.
    pub session: Option<SessionId>,
    /// Where to look; without it, the session if one is named, else all of the user's.
    pub scope: Option<Scope>,
    /// Which kinds of items.
    pub kinds: ItemKinds,
    /// What could be seen then instead of now.
    pub as_of: Option<Timestamp>,
    /// How many items at the most.
    pub limit: Option<u32>,
    /// In which order, and whether the guardrails apply.
    pub order: Order,
}

/// In which order items come back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// As they are shown to a model: recency, diversity and the budget applied.
    #[default]
    Served,
    /// By relevance alone, after fusion, time and validity: what benchmarks measure.
    Relevance,
}

impl RecallRequest {
    /// A plain question over all of the user's items.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            session: None,
            scope: None,
            kinds: ItemKinds::ALL,
            as_of: None,
            limit: None,
            order: Order::default(),
        }
    }
}

/// What recall brought back.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// The id under which the request is known.
    pub request_id: RequestId,
    /// The items, best first.
    pub items: Vec<RecalledItem>,
    /// Which path gave them.
    pub path: RetrievalPath,
    /// The scope that was used.
    pub scope: Scope,
    /// Hits of full text.
    pub fts_hits: u32,
    /// Hits of trigrams.
    pub trgm_hits: u32,
}

/// One recalled item.
#[derive(Debug, Clone, PartialEq)]
pub struct RecalledItem {
    /// What it is.
    pub item: Item,
    /// How well it fits, comparable within one answer.
    pub score: f32,
}

/// The longest question, in characters: longer texts are no questions, and their terms would match everything.
pub const MAX_QUERY_CHARS: usize = 10_000;

/// The most items one call may ask for.
pub const MAX_LIMIT: u32 = 1_000;

impl Engine {
    /// Answers a question from memory.
    pub async fn recall(&self, user: &UserId, request: &RecallRequest) -> Result<Recalled> {
        let settings = &self.settings.recall;
        let length = request.query.chars().count();
        if request.query.trim().is_empty() {
            return Err(Error::invalid("the query is empty; say what to look for"));
        }
        if length > MAX_QUERY_CHARS {
            return Err(Error::too_large(format!(
                "the query has {length} characters; the most is {MAX_QUERY_CHARS}"
            )));
        }
        let limit = request.limit.unwrap_or(settings.default_top_k);
        if limit == 0 || limit > MAX_LIMIT {
            return Err(Error::invalid(format!("the limit is `{limit}`; it goes from 1 to {MAX_LIMIT}")));
        }
        let scope = match (request.scope, &request.session) {
            (Some(Scope::Session), None) => {
                return Err(Error::invalid("scope `session` needs a session; name one"));
            }
            (Some(scope), _) => scope,
            (None, Some(_)) => Scope::Session,
            (None, None) => Scope::User,
        };

        let query = TextQuery {
            text: request.query.clone(),
            matching: TextMatch::Words,
            session: request.session.clone().filter(|_| scope == Scope::Session),
            kinds: request.kinds,
            as_of: request.as_of,
            limit,
        };
        let mut recalled = Recalled {
            request_id: RequestId(self.ids.next()),
            items: Vec::new(),
            path: RetrievalPath::Fts,
            scope,
            fts_hits: 0,
            trgm_hits: 0,
        };
        let mut hits = self.search_in(user, scope, &query).await?;
        recalled.fts_hits = hits.len() as u32;
        if hits.is_empty() && length >= settings.min_query_len {
            let matching = TextMatch::Similar { min_similarity: settings.min_similarity };
            hits = self.search_in(user, scope, &TextQuery { matching, ..query.clone() }).await?;
            recalled.trgm_hits = hits.len() as u32;
            recalled.path = RetrievalPath::Trgm;
        }
        if hits.is_empty() && request.kinds.turns {
            let recent = TurnQuery::Recent { session: query.session, as_of: request.as_of, limit };
            let turns = self.store.turns(user, &recent).await?;
            hits = turns.into_iter().map(|turn| Hit { item: Item::Turn(turn), score: 0.0 }).collect();
            recalled.path = RetrievalPath::Window;
        }
        if hits.is_empty() {
            recalled.path = RetrievalPath::None;
        }
        recalled.items = hits.into_iter().map(|Hit { item, score }| RecalledItem { item, score }).collect();
        Ok(recalled)
    }

    /// One search, in the shared bucket too where the scope is global.
    async fn search_in(&self, user: &UserId, scope: Scope, query: &TextQuery) -> Result<Vec<Hit>> {
        let mut hits = self.store.search(user, query).await?;
        if scope == Scope::Global {
            hits.extend(self.store.search(&UserId::global(), query).await?);
            hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.item.id().cmp(&b.item.id())));
            hits.truncate(query.limit as usize);
        }
        Ok(hits)
    }
}
