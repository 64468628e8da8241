//! Why an item was not even a candidate.

use super::Requests;
use strata_core::error::{Error, Result};
use strata_core::id::{ItemId, MemoryId, TurnId, UserId};
use strata_core::metric::RequestMetric;
use strata_core::scope::Scope;
use strata_core::store::{Item, MemoryQuery, MemorySelect, TurnQuery};

impl Requests {
    /// The item of an id, in any state and of any kind, including items that all users share; *not found* if there is
    /// none.
    pub(super) async fn find_item(&self, user: &UserId, item: ItemId) -> Result<Item> {
        let turns = TurnQuery::Ids(vec![TurnId(item.uuid())]);
        if let Some(turn) = self.store.turns(user, &turns).await?.pop() {
            return Ok(Item::Turn(turn));
        }
        let memories = MemoryQuery::new(MemorySelect::Ids(vec![MemoryId(item.uuid())]));
        let mut found = self.store.memories(user, &memories).await?;
        if found.is_empty() {
            found = self.store.memories(&UserId::global(), &memories).await?;
        }
        found.pop().map(Item::Memory).ok_or_else(|| {
            Error::not_found(format!("neither a turn nor a memory of this user has the id `{}`", item.uuid()))
        })
    }
}

/// Why an item was not a candidate of a request, in one sentence.
pub(super) fn why_no_candidate(row: &RequestMetric, item: &Item) -> String {
    if item.created_at() > row.created_at {
        return format!("it is from {}, after the request", item.created_at());
    }
    let hidden = match item {
        Item::Turn(turn) => turn.hidden,
        Item::Memory(memory) => memory.hidden,
        Item::Summary(_) => None,
    };
    if let Some(hidden) = hidden {
        return format!("it is out of recall since {}: {}", hidden.at, hidden.reason.as_str());
    }
    if let Item::Memory(memory) = item
        && let Some(end) = memory.valid_to
        && end <= row.created_at
    {
        let successor = memory.replaced_by.map(|id| format!("; `{id}` took its place")).unwrap_or_default();
        return format!("it was true until {end} only{successor}");
    }
    if row.scope_used == Scope::Session && item.session().is_some() && item.session() != row.session.as_ref()
    {
        return "it belongs to another session, and the request looked in one session only".to_owned();
    }
    "its words and meaning were too far from the question to be among the best candidates".to_owned()
}
