//! Removed tombstones of turns and summaries: a person who removes one wants the text gone, as with that of a memory.
//!
//! The item leaves its place empty and without a file, because turns are numbered and summaries rest on each other. An index
//! that is built anew has the same.

use std::collections::BTreeMap;

use strata_core::store::{Change, ChangeSet, TurnQuery};
use strata_core::summary::{Summary, SummaryStatus};
use strata_core::{Result, Store, Turn, UserId};

use super::Intake;
use super::import::emptied;
use crate::layout;
use crate::snapshot::{Entry, Kind};

/// The items whose texts go, by their users, each with the path of its tombstone.
#[derive(Default)]
struct Buried {
    turns: BTreeMap<UserId, Vec<(String, Turn)>>,
    summaries: BTreeMap<UserId, Vec<(String, ChangeSet)>>,
}

impl Intake<'_> {
    /// Takes in the removed tombstones among these files, and returns the other files.
    pub(super) async fn take_removed_tombstones(&mut self, gone: Vec<Entry>) -> Result<Vec<Entry>> {
        let (mut buried, mut others) = (Buried::default(), Vec::new());
        for entry in gone {
            let is_tombstone = layout::place(&entry.path).is_some_and(|place| place.deleted);
            let was_taken = is_tombstone && self.bury(&entry, &mut buried).await?;
            if was_taken { self.forgotten.push(entry.path) } else { others.push(entry) }
        }
        self.correct(buried.turns).await?;
        for (user, sets) in buried.summaries {
            self.apply(&user, sets).await?;
        }
        Ok(others)
    }

    /// Adds the deleted item of a tombstone; `false` if it is neither a turn nor a summary, or not deleted.
    async fn bury(&self, entry: &Entry, buried: &mut Buried) -> Result<bool> {
        let (user, path) = (entry.item.user.clone(), entry.path.clone());
        match entry.item.kind {
            Kind::Turn => {
                let Some(turn) = self.deleted_turn(entry).await? else { return Ok(false) };
                buried.turns.entry(user).or_default().push((path, emptied(&turn)));
            }
            Kind::Summary => {
                let found = self.summary(&user, &entry.item.id).await?;
                let Some(summary) = found.filter(|summary| summary.status == SummaryStatus::Failed) else {
                    return Ok(false);
                };
                let empty =
                    Summary { text: String::new(), structured: None, updated_at: self.now, ..summary };
                let set = ChangeSet::one(self.now, Change::PutSummary(Box::new(empty)));
                buried.summaries.entry(user).or_default().push((path, set));
            }
            Kind::Memory | Kind::Session | Kind::Key => return Ok(false),
        }
        Ok(true)
    }

    async fn deleted_turn(&self, entry: &Entry) -> Result<Option<Turn>> {
        let Ok(id) = entry.item.id.parse() else { return Ok(None) };
        let turns = self.vault.index.turns(&entry.item.user, &TurnQuery::Ids(vec![id])).await?;
        Ok(turns.into_iter().find(|turn| turn.hidden.is_some()))
    }
}

/// Whether nothing is left of a summary but its place.
pub(crate) fn is_empty_summary(summary: &Summary) -> bool {
    summary.status == SummaryStatus::Failed && summary.text.is_empty() && summary.structured.is_none()
}
