//! Forgetting in the files: those of items that are gone, what Strata cannot use in the folders of forgotten sessions and users, and
//! the names of all these in the snapshot.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::Arc;

use strata_core::store::{KeyQuery, MemoryQuery, MemorySelect, Page, TurnQuery};
use strata_core::{Error, Result, SessionId, Store, TurnId, UserId};

use super::dirty::{Dirty, Owed};
use super::layout;
use super::snapshot::{Entry, ItemKey, Kind};
use super::vault::{Vault, all_summaries, blocking, unwritten};

/// The ids of one query.
const IDS_A_QUERY: usize = 500;

impl Vault {
    /// Does what `dirty` says of forgetting, and returns what could not be done. One file that cannot be removed holds up no other.
    pub(crate) async fn forget(self: &Arc<Self>, dirty: &mut Dirty) -> Result<Vec<(Owed, Error)>> {
        let (users, emptied) = (std::mem::take(&mut dirty.forgetting), std::mem::take(&mut dirty.emptied));
        if users.is_empty() && emptied.is_empty() {
            return Ok(Vec::new());
        }
        let mut failed = Vec::new();
        for user in users {
            if let Err(error) = self.sweep(&user, dirty).await? {
                failed.push((Owed::Sweep(user), unwritten(&error)));
            }
        }
        for (user, session) in emptied {
            if let Err(error) = self.empty(&user, session.as_ref()).await? {
                failed.push((Owed::Empty(user, session), unwritten(&error)));
            }
        }
        let vault = Arc::clone(self);
        if let Err(error) = blocking(move || vault.snapshot().scrub()).await {
            tracing::warn!(%error, "names of forgotten files stay in the vault's snapshot until something is forgotten again");
        }
        Ok(failed)
    }

    /// Removes the files of a user's items that are gone, and notes the memories that may have lost a source with them.
    async fn sweep(self: &Arc<Self>, user: &UserId, dirty: &mut Dirty) -> Result<io::Result<()>> {
        let entries = {
            let (vault, user) = (Arc::clone(self), user.clone());
            blocking(move || vault.snapshot().of_user(&user)).await?
        };
        let present = self.present(user, &entries).await?;
        let gone: Vec<String> = entries
            .into_iter()
            .filter(|entry| !present.contains(&entry.item))
            .map(|entry| entry.path)
            .collect();
        for key in present {
            if let (Kind::Memory, Ok(id)) = (key.kind, key.id.parse()) {
                dirty.note_memory(user, id);
            }
        }
        self.git_notice(gone.len());
        let vault = Arc::clone(self);
        blocking(move || vault.remove_files(&gone)).await
    }

    /// Removes files, and what the snapshot has of them. Returns the first failure.
    fn remove_files(&self, gone: &[String]) -> Result<io::Result<()>> {
        let mut failed = Ok(());
        let mut removed: Vec<&String> = Vec::with_capacity(gone.len());
        for path in gone {
            match self.disk.remove(path) {
                Ok(()) => removed.push(path),
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        let flushed = self.disk.sync_folders_of(removed.iter().map(|path| path.as_str()));
        self.snapshot().write(|snapshot| removed.iter().try_for_each(|path| snapshot.remove(path)))?;
        Ok(failed.and(flushed))
    }

    /// Removes what is left in the folders of a forgotten session or user.
    async fn empty(self: &Arc<Self>, user: &UserId, session: Option<&SessionId>) -> Result<io::Result<()>> {
        let folders = match session {
            Some(session) => self.session_folders(user, session)?,
            None => vec![format!("{}{}", layout::user_folder(self.names, user)?, layout::ENTRIES)],
        };
        let own = if session.is_none() { layout::user_folder(self.names, user)? } else { String::new() };
        let user_file = (!own.is_empty()).then(|| format!("{own}{}", layout::USER_FILE));
        let vault = Arc::clone(self);
        let emptied = blocking(move || vault.remove_left(&folders, user_file)).await?;
        Ok(emptied.map(|removed| self.git_notice(removed)))
    }

    /// The folders in which files of a session may lie: its own, the one of earlier versions of the design for deleted files, and
    /// the one that agent-cli has named, unless another conversation shares it.
    fn session_folders(&self, user: &UserId, session: &SessionId) -> Result<Vec<String>> {
        let own = layout::conversation(self.names, user, session.as_str())?;
        let mut folders = vec![layout::early_deleted(&own), own];
        if let Some(shared) = layout::agent_cli_conversation(self.names, user, session.as_str())?
            && self.snapshot().one_below(&shared)?.is_none()
        {
            folders.push(shared);
        }
        Ok(folders)
    }

    fn remove_left(&self, folders: &[String], user_file: Option<String>) -> Result<io::Result<usize>> {
        // An item that has been written since is not part of what was forgotten.
        let mut kept: HashSet<String> = HashSet::new();
        let mut solved: BTreeSet<String> = BTreeSet::new();
        for folder in folders {
            let snapshot = self.snapshot();
            kept.extend(snapshot.at_or_below(folder)?.into_iter().map(|entry: Entry| entry.path));
            solved.extend(snapshot.problems_at_or_below(folder)?);
        }
        let mut removed = Ok(0);
        for folder in folders {
            let purged = self.disk.purge(folder, &|path| kept.contains(path));
            removed = removed.and_then(|before| purged.map(|more| before + more));
        }
        let is_there = |path: &str| std::fs::symlink_metadata(self.disk.absolute(path)).is_ok();
        if let Some(path) = user_file.filter(|_| !folders.iter().any(|folder| is_there(folder))) {
            removed = removed.and_then(|before| self.disk.remove(&path).map(|()| before));
        }
        let gone: Vec<&String> = solved.iter().filter(|path| !is_there(path)).collect();
        self.snapshot().write(|snapshot| gone.iter().try_for_each(|path| snapshot.solve(path)))?;
        Ok(removed)
    }

    /// Which of the items exist.
    async fn present(&self, user: &UserId, entries: &[Entry]) -> Result<HashSet<ItemKey>> {
        let mut present = HashSet::new();
        let mut add = |kind, id: String| {
            present.insert(ItemKey { user: user.clone(), kind, id });
        };
        let turns: Vec<TurnId> = entries
            .iter()
            .filter(|entry| entry.item.kind == Kind::Turn)
            .filter_map(|entry| entry.item.id.parse().ok())
            .collect();
        for ids in turns.chunks(IDS_A_QUERY) {
            for turn in self.index.turns(user, &TurnQuery::Ids(ids.to_vec())).await? {
                add(Kind::Turn, turn.id.to_string());
            }
        }
        for memory in self.index.memories(user, &MemoryQuery::new(MemorySelect::All)).await? {
            add(Kind::Memory, memory.id.to_string());
        }
        for session in self.index.sessions(user, Page::first(u32::MAX)).await? {
            for summary in self.index.summaries(user, &all_summaries(&session.id)).await? {
                add(Kind::Summary, summary.id.to_string());
            }
            add(Kind::Session, session.id.to_string());
        }
        let keys =
            KeyQuery { id: None, user: Some(user.clone()), revoked: true, page: Page::first(u32::MAX) };
        for key in self.index.keys(&keys).await? {
            add(Kind::Key, key.id.to_string());
        }
        Ok(present)
    }
}
