//! Leaving a branch: memories that only its turns state are no longer believed, and the memories that they replaced are
//! believed again.
//!
//! Nothing is overwritten. A memory that only abandoned turns state leaves recall, marked as they are; it stays in its
//! history. The memory that it had replaced is added again as a new memory that replaces it in turn, so that as-of reads
//! still return what was believed in between.
//!
//! Learning and leaving may happen at once. Leaving expects that no memory changes, and counts how often the session was
//! left; learning expects that this count stays the same ([`Recording::times_left`]). So the second of the two reads again.

use super::Recording;
use std::collections::HashSet;

use jiff::Timestamp;

use strata_core::error::Result;
use strata_core::id::{MemoryId, SessionId, TurnId, UserId};
use strata_core::memory::{Memory, MemoryNotes};
use strata_core::store::{
    Change, ChangeSet, Expectation, MemoryQuery, MemorySelect, TurnQuery, session_space,
};
use strata_core::turn::{Hidden, HiddenReason, Role, Turn};

impl Recording {
    /// How often the client left a branch of a session on which the user had said something.
    pub(crate) async fn times_left(&self, user: &UserId, session: &SessionId) -> Result<u64> {
        self.store.progress(user, &left_space(session)).await
    }

    /// Adds to `set` how the memories change when these turns of a session are left, with the expectation that no memory
    /// has changed since they were read.
    pub(crate) async fn unlearn_into(
        &self,
        set: &mut ChangeSet,
        user: &UserId,
        session: &SessionId,
        left: &[&Turn],
    ) -> Result<()> {
        // Memories come from the user's turns only.
        if !left.iter().any(|turn| turn.role == Role::User) {
            return Ok(());
        }
        let now = set.at;
        // The head is read first, so that the expectation covers everything that is read after it.
        set.expect.push(Expectation::memories_since(self.store.head(user).await?));
        let times = self.times_left(user, session).await?;
        let memories = self.store.memories(user, &MemoryQuery::new(MemorySelect::All)).await?;
        let gone = self.stated_only_by(user, left, &memories).await?;
        let changes = &mut set.changes;
        let hidden = Some(Hidden { reason: HiddenReason::Abandoned, at: now });
        for memory in memories.iter().filter(|memory| gone.contains(&memory.id)) {
            changes.push(Change::HideMemory { id: memory.id, hidden });
            if memory.valid_to.is_some() {
                continue;
            }
            let mut successor = None;
            for former in replaced(memory.id, &memories, &gone) {
                let again = self.revived(former, now);
                successor = successor.or(Some(again.id));
                changes.push(Change::AddMemory(Box::new(again)));
            }
            if successor.is_some() {
                changes.push(Change::CloseMemory { id: memory.id, valid_to: now, replaced_by: successor });
            }
        }
        changes.push(Change::SetProgress { space: left_space(session), revision: times + 1 });
        Ok(())
    }

    /// The visible memories that one of these turns states and that no other turn that still counts states. A memory
    /// that a person has reworded since is kept: it is that person's statement.
    async fn stated_only_by(
        &self,
        user: &UserId,
        left: &[&Turn],
        memories: &[Memory],
    ) -> Result<HashSet<MemoryId>> {
        let left: HashSet<TurnId> = left.iter().map(|turn| turn.id).collect();
        let is_touched = |memory: &&Memory| {
            memory.hidden.is_none() && memory.source_turns.iter().any(|turn| left.contains(turn))
        };
        let touched: Vec<&Memory> = memories.iter().filter(is_touched).collect();
        let others =
            touched.iter().flat_map(|memory| &memory.source_turns).filter(|turn| !left.contains(turn));
        let others: Vec<TurnId> = others.copied().collect();
        let others = match others.is_empty() {
            true => Vec::new(),
            false => self.store.turns(user, &TurnQuery::Ids(others)).await?,
        };
        let counts = |id: &TurnId| {
            let mut found = others.iter().filter(|turn| turn.id == *id);
            found.any(|turn| turn.hidden.is_none_or(|hidden| hidden.reason != HiddenReason::Abandoned))
        };
        // The statement that a person replaced is stored under a newer id, with the sources that it had then.
        let is_revised = |memory: &Memory| {
            memories.iter().any(|former| {
                former.replaced_by == Some(memory.id)
                    && former.id > memory.id
                    && memory.source_turns.starts_with(&former.source_turns)
            })
        };
        let gone = touched.into_iter().filter(|memory| !memory.source_turns.iter().any(counts));
        Ok(gone.filter(|memory| !is_revised(memory)).map(|memory| memory.id).collect())
    }

    /// A closed memory that is believed again.
    fn revived(&self, former: &Memory, now: Timestamp) -> Memory {
        Memory {
            id: MemoryId(self.ids.next()),
            valid_to: None,
            recorded_at: now,
            replaced_by: None,
            notes: MemoryNotes { todo: None, ..former.notes },
            ..former.clone()
        }
    }
}

/// The visible memories that a memory replaced. If a replaced memory is gone too, the search goes on with the
/// memories that it replaced.
fn replaced<'a>(id: MemoryId, memories: &'a [Memory], gone: &HashSet<MemoryId>) -> Vec<&'a Memory> {
    let mut found = Vec::new();
    let mut open = vec![id];
    let mut seen = HashSet::from([id]);
    while let Some(id) = open.pop() {
        for former in memories.iter().filter(|memory| memory.replaced_by == Some(id)) {
            match seen.insert(former.id) {
                true if gone.contains(&former.id) => open.push(former.id),
                true if former.hidden.is_none() => found.push(former),
                _ => {}
            }
        }
    }
    found
}

pub(crate) fn left_space(session: &SessionId) -> String {
    session_space("left", session)
}
