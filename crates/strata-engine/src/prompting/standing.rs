//! Standing instructions: the memories that every prompt of a session holds, whatever is asked.
//!
//! They are the user's own and those that all users share. An instruction that is bound to another session does not hold.
//! A prompt that is confined to its session leaves out what was learned in another one, as recall does.

use strata_core::error::Result;
use strata_core::id::{SessionId, UserId};
use strata_core::memory::{Memory, MemoryKind};
use strata_core::scope::{RecallScope, Scope};
use strata_core::store::{ItemRef, Keep, MemoryQuery, MemorySelect, Page};

use super::Prompting;
use crate::disputes::drop_settled;

/// The most standing instructions of one owner in a prompt, newest first.
const MAX_INSTRUCTIONS: usize = 12;

/// The number of instructions that are read at once. Few users have more.
const READ_AT_ONCE: u32 = 50;

impl Prompting {
    /// The memories that are standing instructions in a session: the user's own and then the shared ones, each newest
    /// first. `within` says how far the prompt may look, instead of the setting.
    pub(crate) async fn standing(
        &self,
        user: &UserId,
        session: &SessionId,
        within: Option<RecallScope>,
    ) -> Vec<Memory> {
        let is_confined = within.unwrap_or(self.recall.settings.scope) == RecallScope::Session;
        let mut standing = Vec::new();
        for owner in Scope::User.owners(user, true) {
            // What all users share was learned in nobody's session.
            let is_confined = is_confined && owner == *user;
            match self.standing_of(&owner, session, is_confined).await {
                Ok(found) => standing.extend(found),
                Err(error) => tracing::warn!(%error, "a prompt is made without standing instructions"),
            }
        }
        standing
    }

    /// The standing instructions of one owner. Other sessions' instructions leave no place empty.
    async fn standing_of(
        &self,
        owner: &UserId,
        session: &SessionId,
        is_confined: bool,
    ) -> Result<Vec<Memory>> {
        let mut standing = Vec::new();
        let mut page = Page::first(READ_AT_ONCE);
        while standing.len() < MAX_INSTRUCTIONS {
            let mut found = self.recording.store.memories(owner, &holding_in(session, page)).await?;
            let is_last = found.len() < READ_AT_ONCE as usize;
            if is_confined {
                let elsewhere = self.recall.learned_elsewhere(owner, session, &found).await?;
                found.retain(|memory| !elsewhere.contains(&memory.id));
            }
            standing.extend(found);
            if is_last {
                break;
            }
            page.offset += u64::from(READ_AT_ONCE);
        }
        standing.truncate(MAX_INSTRUCTIONS);
        drop_settled(self.recording.store.as_ref(), owner, standing.iter_mut()).await?;
        Ok(standing)
    }
}

/// The query of the current instructions that are bound to this session or to none.
fn holding_in(session: &SessionId, page: Page) -> MemoryQuery {
    let session = session.clone();
    let holds = move |item: ItemRef<'_>| match item {
        ItemRef::Memory(memory) => memory.session.as_ref().is_none_or(|bound| *bound == session),
        ItemRef::Turn(_) => false,
    };
    MemoryQuery {
        kind: Some(MemoryKind::Instruction),
        keep: Some(Keep::new(holds)),
        page,
        ..MemoryQuery::new(MemorySelect::Current { as_of: None })
    }
}
