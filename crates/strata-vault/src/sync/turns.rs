//! Turns that a person has corrected. In the contract of a store a turn never changes; in a vault the file is the truth, so the
//! index gets what an index that is built anew would have.

use std::collections::{BTreeMap, HashSet};

use strata_core::store::Change;
use strata_core::{ErrorKind, Result, Turn, UserId};

use super::edits::{Difference, is_brought_back};
use super::{CHANGES_A_SET, Intake, Item, What};
use crate::form::{Given, ReadItem};
use crate::row::{Content, Row};

impl Intake<'_> {
    pub(super) fn turn_difference(&self, item: &Item, reading: &ReadItem, turn: &Turn) -> Difference {
        let Given::Turn { turn: given, .. } = &reading.given else { return Difference::None };
        if !reading.bare && given.session != turn.session {
            return Difference::Refused(format!(
                "a turn keeps its session; write `conversation_id: {}` again, or build the index anew with `strata vault rebuild`, \
                 which takes what the files say",
                turn.session
            ));
        }
        let hidden = match given.hidden {
            _ if is_brought_back(item) => None,
            None if reading.tombstone => turn.hidden.or(self.deleted()),
            hidden => hidden,
        };
        let changes = match hidden == turn.hidden {
            true => Vec::new(),
            false => vec![Change::HideTurns { ids: vec![turn.id], hidden }],
        };
        let corrected = corrected(reading, given, turn);
        match (corrected == *turn, changes.is_empty()) {
            (true, true) => Difference::None,
            (true, false) => Difference::Changes(changes),
            (false, _) => Difference::Correction(Box::new(corrected), changes),
        }
    }

    /// Gives turns what their files say. Returns the paths of those that the index refuses.
    pub(super) async fn correct(
        &mut self,
        corrected: BTreeMap<UserId, Vec<(String, Turn)>>,
    ) -> Result<HashSet<String>> {
        let mut failed = HashSet::new();
        for (user, turns) in corrected {
            for batch in turns.chunks(CHANGES_A_SET) {
                let turns = batch.iter().map(|(_, turn)| turn.clone()).collect();
                match self.vault.index.correct_turns(&user, self.now, turns).await {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
                    Err(error) => {
                        for (path, _) in batch {
                            self.report(path, error.message().to_owned());
                            failed.insert(path.clone());
                        }
                    }
                }
            }
        }
        Ok(failed)
    }
}

/// The turn as its file has it, at the place that it keeps.
fn corrected(reading: &ReadItem, given: &Turn, turn: &Turn) -> Turn {
    if reading.bare {
        return Turn { content: given.content.clone(), ..turn.clone() };
    }
    let created_at = if reading.timeless { turn.created_at } else { given.created_at };
    Turn { seq: turn.seq, hidden: turn.hidden, created_at, ..given.clone() }
}

/// Whether a file says another place of its turn than that which the turn keeps, so that the place is written into it again.
pub(super) fn is_displaced(item: &Item, row: &Row) -> bool {
    let (What::Entry(reading), Content::Turn(turn, _)) = (&item.what, &row.content) else { return false };
    matches!(&reading.given, Given::Turn { seq: Some(seq), .. } if *seq != turn.seq)
}
