//! Why something was not even a candidate.

use super::Engine;
use crate::error::{Error, Result};
use crate::id::{ItemId, MemoryId, TurnId, UserId};
use crate::metric::RequestMetric;
use crate::recall::Scope;
use crate::store::{Item, MemoryQuery, MemorySelect, TurnQuery};

impl Engine {
    /// The item of an id, whatever its state and kind; *not found* where there is none.
    pub(super) async fn find_item(&self, user: &UserId, item: ItemId) -> Result<Item> {
        let turns = TurnQuery::Ids(vec![TurnId(item.uuid())]);
        if let Some(turn) = self.store.turns(user, &turns).await?.pop() {
            return Ok(Item::Turn(turn));
        }
        let memories = MemoryQuery::new(MemorySelect::Ids(vec![MemoryId(item.uuid())]));
        let memory = self.store.memories(user, &memories).await?.pop();
        memory.map(Item::Memory).ok_or_else(|| {
            Error::not_found(format!("neither a turn nor a memory of this user has the id `{}`", item.uuid()))
        })
    }

    /// Why an item was no candidate of a request, in a sentence.
    pub(super) async fn why_no_candidate(
        &self,
        user: &UserId,
        row: &RequestMetric,
        item: ItemId,
    ) -> Result<String> {
        let item = self.find_item(user, item).await?;
        if item.created_at() > row.created_at {
            return Ok(format!("it is from {}, after the request", item.created_at()));
        }
        let hidden = match &item {
            Item::Turn(turn) => turn.hidden,
            Item::Memory(memory) => memory.hidden,
            Item::Summary(_) => None,
        };
        if let Some(hidden) = hidden {
            return Ok(format!("it is out of recall since {}: {}", hidden.at, hidden.reason.as_str()));
        }
        if let Item::Memory(memory) = &item
            && let Some(end) = memory.valid_to
        {
            let successor =
                memory.replaced_by.map(|id| format!("; `{id}` took its place")).unwrap_or_default();
            return Ok(format!("it was true until {end} only{successor}"));
        }
        if row.scope_used == Scope::Session
            && item.session().is_some()
            && item.session() != row.session.as_ref()
        {
            return Ok("it belongs to another session, and the request looked in one session only".to_owned());
        }
        Ok("its words and meaning were too far from the question to be among the best candidates".to_owned())
    }
}
