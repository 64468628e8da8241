//! After a process has died: the items whose files it did not come to write, and the files of items that it has destroyed.

use std::sync::Arc;

use strata_core::state::State;
use strata_core::store::{Item, KeyQuery, Page};
use strata_core::{Result, Store, UserId};

use super::dirty::Dirty;
use super::form::TurnExtra;
use super::row::{Content, Row};
use super::sync::{is_empty_summary, is_placeholder};
use super::vault::{Vault, all_summaries, blocking};

/// The items of one query.
const ITEMS_A_QUERY: u32 = 2_000;

/// The users of one query.
const USERS_A_PAGE: u32 = 500;

impl Vault {
    /// Compares every item of the index with the digest that its file was written for, and returns those that differ.
    pub(crate) async fn reconcile(self: &Arc<Self>) -> Result<Dirty> {
        let mut dirty = Dirty::default();
        let mut seen = 0;
        loop {
            let page = self.index.users(Page { offset: seen, limit: USERS_A_PAGE }).await?;
            if page.is_empty() {
                break;
            }
            seen += page.len() as u64;
            for user in page {
                self.reconcile_items(&user, &mut dirty).await?;
                self.reconcile_sessions(&user, &mut dirty).await?;
                dirty.forgetting.insert(user);
            }
        }
        let keys = KeyQuery { id: None, user: None, revoked: true, page: Page::first(u32::MAX) };
        for key in self.index.keys(&keys).await? {
            let user = key.user.clone();
            dirty.forgetting.insert(user.clone());
            let id = key.id;
            if self.is_stale(Row::new(&user, Content::Key(Box::new(key)))).await? {
                dirty.keys.insert((user, id));
            }
        }
        // Users of whom nothing is left in the index.
        let vault = Arc::clone(self);
        let known = blocking(move || vault.snapshot().users()).await?;
        dirty.forgetting.extend(known);
        Ok(dirty)
    }

    async fn reconcile_items(self: &Arc<Self>, user: &UserId, dirty: &mut Dirty) -> Result<()> {
        let mut after = 0;
        loop {
            let items = self.index.feed(user, after, ITEMS_A_QUERY).await?;
            let Some((last, _)) = items.last() else { return Ok(()) };
            after = *last;
            let has_file = |item: &Item| match item {
                Item::Turn(turn) => !is_placeholder(turn),
                Item::Summary(summary) => !is_empty_summary(summary),
                Item::Memory(_) => true,
            };
            let items = items.into_iter().map(|(_, item)| item).filter(has_file);
            let rows = items.map(|item| match item {
                Item::Turn(turn) => Content::Turn(Box::new(turn), TurnExtra::default()),
                Item::Memory(memory) => Content::Memory(Box::new(memory), None),
                Item::Summary(summary) => Content::Summary(Box::new(summary)),
            });
            let rows: Vec<Row> = rows.map(|content| Row::new(user, content)).collect();
            for row in self.stale(rows).await? {
                dirty.note_row(&row);
            }
        }
    }

    async fn reconcile_sessions(self: &Arc<Self>, user: &UserId, dirty: &mut Dirty) -> Result<()> {
        for session in self.index.sessions(user, Page::first(u32::MAX)).await? {
            let summaries = self.index.summaries(user, &all_summaries(&session.id)).await?;
            let summaries = summaries.into_iter().filter(|summary| !is_empty_summary(summary));
            let rows = summaries.map(|summary| Row::new(user, Content::Summary(Box::new(summary))));
            for row in self.stale(rows.collect()).await? {
                dirty.note_row(&row);
            }
            let Some(row) = self.session_row(user, &session.id).await? else { continue };
            let Content::Session(file) = &row.content else { continue };
            // The turns of a session without a state tell all about it.
            let is_told =
                session.turn_count > 0 && file.state == State::default() && file.progress.is_empty();
            if !is_told && self.is_stale(row.clone()).await? {
                dirty.note_row(&row);
            }
        }
        Ok(())
    }

    async fn is_stale(self: &Arc<Self>, row: Row) -> Result<bool> {
        Ok(!self.stale(vec![row]).await?.is_empty())
    }

    /// The rows whose files were written for another state of theirs, or not at all.
    async fn stale(self: &Arc<Self>, rows: Vec<Row>) -> Result<Vec<Row>> {
        let vault = Arc::clone(self);
        blocking(move || {
            let snapshot = vault.snapshot();
            let mut stale = Vec::new();
            for row in rows {
                let written = snapshot.of(&row.key())?.map(|entry| entry.row);
                if written != Some(row.digest()?) {
                    stale.push(row);
                }
            }
            Ok(stale)
        })
        .await
    }
}

impl Dirty {
    fn note_row(&mut self, row: &Row) {
        let user = row.user.clone();
        match &row.content {
            Content::Turn(turn, _) => drop(self.turns.entry((user, turn.id)).or_default()),
            Content::Memory(memory, _) => self.note_memory(&user, memory.id),
            Content::Summary(summary) => {
                self.summaries.insert((user, summary.session.clone(), summary.id));
            }
            Content::Session(session) => drop(self.sessions.insert((user, session.session.clone()))),
            Content::Key(key) => drop(self.keys.insert((user, key.id))),
        }
    }
}
