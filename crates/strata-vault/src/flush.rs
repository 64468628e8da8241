//! Bringing files up to date with their items: read the items, write the files, note them in the snapshot.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::sync::Arc;

use strata_core::key::ApiKey;
use strata_core::store::{
    KeyQuery, MemoryQuery, MemorySelect, Page, SESSION_PURPOSES, TurnQuery, session_space,
};
use strata_core::{Error, MemoryId, Result, SessionId, Store, SummaryId, TurnId, UserId};

use super::dirty::{Dirty, Owed};
use super::disk::NewFile;
use super::form::{SessionFile, TurnExtra};
use super::front::Document;
use super::layout;
use super::processes::being_written;
use super::row::{Content, Row, hash};
use super::scope::Scope;
use super::snapshot::{Entry, ItemKey, Snapshot};
use super::vault::{Vault, all_summaries, blocking, unwritten};

/// The ids of one query.
const IDS_A_QUERY: usize = 500;

/// How often a person's own changes are taken in before a file is written over them.
const ROUNDS: usize = 4;

/// The result of writing files.
#[derive(Debug, Default)]
struct Written {
    /// Files that a person has changed since they were last seen.
    foreign: Vec<String>,
    /// The items whose files could not be written.
    failed: Vec<(ItemKey, Error)>,
    /// The items whose files another program is writing.
    postponed: Vec<ItemKey>,
    /// How many files were written.
    count: usize,
}

/// The rest of the work.
#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    /// The failures.
    pub(crate) failed: Vec<(Owed, Error)>,
    /// The items whose files another program is writing.
    pub(crate) postponed: Vec<ItemKey>,
}

impl Unwritten {
    /// The part of `dirty` that is left to do.
    pub(crate) fn of(&self, dirty: &Dirty) -> Dirty {
        let mut left = Dirty::default();
        self.failed.iter().for_each(|(owed, _)| left.merge(dirty.only(owed)));
        self.postponed.iter().for_each(|key| left.merge(dirty.only(&Owed::File(key.clone()))));
        left
    }
}

impl Vault {
    /// Brings the files of these items up to date. A change that a person has made to one of them is taken in first. Returns the
    /// items whose files are not.
    pub(crate) async fn flush(self: &Arc<Self>, dirty: &Dirty) -> Result<Unwritten> {
        if dirty.is_empty() {
            return Ok(Unwritten::default());
        }
        let mut dirty = dirty.clone();
        let mut failed = self.forget(&mut dirty).await?;
        let mut foreign: BTreeSet<String> = BTreeSet::new();
        for round in 1..=ROUNDS {
            let rows = self.rows(&dirty).await?;
            let vault = Arc::clone(self);
            let written = blocking(move || vault.write_rows(&rows, round == ROUNDS)).await?;
            self.git_notice(written.count);
            if written.foreign.is_empty() {
                failed.extend(written.failed.into_iter().map(|(key, error)| (Owed::File(key), error)));
                return Ok(Unwritten { failed, postponed: written.postponed });
            }
            foreign.extend(written.foreign);
            let paths = foreign.iter().cloned().collect();
            let found = Box::pin(self.take_in(Scope::Named(paths))).await?;
            dirty.merge(found);
            failed.extend(self.forget(&mut dirty).await?);
        }
        Ok(Unwritten { failed, postponed: Vec::new() })
    }

    /// Reads items as they are now. Those that are gone are left out.
    async fn rows(&self, dirty: &Dirty) -> Result<Vec<Row>> {
        let mut rows = Vec::with_capacity(dirty.len());
        for (user, turns) in by_user(dirty.turns.iter().map(|((user, id), extra)| (user, (*id, extra)))) {
            let ids: Vec<TurnId> = turns.iter().map(|(id, _)| *id).collect();
            let extras: BTreeMap<TurnId, &TurnExtra> = turns.into_iter().collect();
            for ids in ids.chunks(IDS_A_QUERY) {
                for turn in self.index.turns(user, &TurnQuery::Ids(ids.to_vec())).await? {
                    let extra =
                        extras.get(&turn.id).map_or_else(TurnExtra::default, |extra| (*extra).clone());
                    rows.push(Row::new(user, Content::Turn(Box::new(turn), extra)));
                }
            }
        }
        for (user, memories) in by_user(dirty.memories.iter().map(|((user, id), keyed)| (user, (*id, keyed))))
        {
            let ids: Vec<MemoryId> = memories.iter().map(|(id, _)| *id).collect();
            let keyed: BTreeMap<MemoryId, _> = memories.into_iter().collect();
            for ids in ids.chunks(IDS_A_QUERY) {
                let query = MemoryQuery::new(MemorySelect::Ids(ids.to_vec()));
                for memory in self.index.memories(user, &query).await? {
                    let key = keyed.get(&memory.id).copied().cloned().flatten();
                    rows.push(Row::new(user, Content::Memory(Box::new(memory), key)));
                }
            }
        }
        self.add_summaries(dirty, &mut rows).await?;
        for (user, session) in &dirty.sessions {
            rows.extend(self.session_row(user, session).await?);
        }
        for (user, id) in &dirty.keys {
            let query =
                KeyQuery { id: Some(*id), user: Some(user.clone()), revoked: true, page: Page::first(1) };
            let keys: Vec<ApiKey> = self.index.keys(&query).await?;
            rows.extend(keys.into_iter().map(|key| Row::new(user, Content::Key(Box::new(key)))));
        }
        Ok(rows)
    }

    async fn add_summaries(&self, dirty: &Dirty, rows: &mut Vec<Row>) -> Result<()> {
        let mut wanted: BTreeMap<(&UserId, &SessionId), HashSet<SummaryId>> = BTreeMap::new();
        for (user, session, id) in &dirty.summaries {
            wanted.entry((user, session)).or_default().insert(*id);
        }
        for ((user, session), ids) in wanted {
            let summaries = self.index.summaries(user, &all_summaries(session)).await?;
            let changed = summaries.into_iter().filter(|summary| ids.contains(&summary.id));
            rows.extend(changed.map(|summary| Row::new(user, Content::Summary(Box::new(summary)))));
        }
        Ok(())
    }

    /// A session's own file; `None` if the session is gone.
    pub(crate) async fn session_row(&self, user: &UserId, session: &SessionId) -> Result<Option<Row>> {
        let Some(session) = self.index.session(user, session).await? else { return Ok(None) };
        let mut progress = BTreeMap::new();
        for purpose in SESSION_PURPOSES {
            let revision = self.index.progress(user, &session_space(purpose, &session.id)).await?;
            if revision > 0 {
                progress.insert(purpose.to_owned(), revision);
            }
        }
        Ok(Some(Row::new(user, Content::Session(Box::new(SessionFile::new(session, progress))))))
    }

    /// Writes the files of rows. With `over`, also those that a person has changed in the meantime.
    fn write_rows(&self, rows: &[Row], over: bool) -> Result<Written> {
        let mut snapshot = self.snapshot();
        let mut written = Written::default();
        let mut taken = HashSet::new();
        let (mut files, mut noted, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        let busy = if over { self.being_written(rows, &snapshot)? } else { HashSet::new() };
        for row in rows {
            if busy.contains(&row.key()) {
                written.postponed.push(row.key());
                continue;
            }
            match self.plan(row, over, &snapshot, &mut taken) {
                Ok(Planned::Nothing) => {}
                Ok(Planned::Foreign(path)) => written.foreign.push(path),
                Ok(Planned::Note(entry)) => entries.push(entry),
                Ok(Planned::Write(file, digest)) => {
                    files.push(file);
                    noted.push((row, digest));
                }
                // One folder that cannot be used does not hold up the others.
                Err(error) => written.failed.push((row.key(), error)),
            }
        }
        if !written.foreign.is_empty() {
            return Ok(written);
        }
        if noted.iter().any(|(row, _)| matches!(row.content, Content::Key(_))) {
            super::vault::ignore_keys(&self.root)?;
        }
        let users: BTreeSet<&UserId> = noted.iter().map(|(row, _)| &row.user).collect();
        for user in users {
            files.extend(self.user_file(user)?);
        }
        for file in &files {
            self.retire(&file.path, &mut snapshot)?;
        }
        let outcomes = self.disk.write(&files);
        for ((row, digest), (outcome, file)) in noted.into_iter().zip(outcomes.into_iter().zip(files)) {
            match outcome {
                Ok(stat) => {
                    written.count += 1;
                    let (item, hash) = (row.key(), hash(&file.bytes));
                    entries.push(Entry { path: file.path, item, hash, stat, racy: true, row: digest });
                }
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    written.foreign.push(file.replaces.unwrap_or(file.path));
                }
                Err(error) => written.failed.push((row.key(), unwritten(&error))),
            }
        }
        snapshot.write(|snapshot| entries.iter().try_for_each(|entry| snapshot.put(entry)))?;
        Ok(written)
    }

    /// The rows whose files another program is writing.
    fn being_written(&self, rows: &[Row], snapshot: &Snapshot) -> Result<HashSet<ItemKey>> {
        let mut keys: BTreeMap<String, ItemKey> = BTreeMap::new();
        for row in rows {
            let key = row.key();
            keys.extend(snapshot.of(&key)?.map(|entry| (entry.path, key)));
        }
        let written = being_written(&self.root, keys.keys().map(String::as_str));
        Ok(written.into_iter().filter_map(|path| keys.remove(&path)).collect())
    }

    /// The work for one row.
    fn plan(
        &self,
        row: &Row,
        over: bool,
        snapshot: &Snapshot,
        taken: &mut HashSet<String>,
    ) -> Result<Planned> {
        let (key, digest) = (row.key(), row.digest()?);
        let Some(entry) = snapshot.of(&key)? else {
            return self.plan_new(row, &key, digest, snapshot, taken);
        };
        if entry.row == digest {
            return Ok(Planned::Nothing);
        }
        let seen = match self.disk.read(&entry.path).map_err(|error| unwritten(&error))? {
            Some(Ok(seen)) if seen.hash == entry.hash => Some(seen),
            None if over => None,
            Some(read) if over && row.is_markdown() => match read {
                Ok(seen) if !snapshot.has_problem(&entry.path)? => Some(seen),
                _ => return self.plan_beside(row, &entry.path, digest, taken),
            },
            // The other files have one place each.
            Some(read) if over => read.ok(),
            Some(_) | None => return Ok(Planned::Foreign(entry.path)),
        };
        let document = match &seen {
            Some(seen) if row.is_markdown() => match Document::parse(&seen.bytes) {
                Ok(document) => document,
                Err(_) => return self.plan_beside(row, &entry.path, digest, taken),
            },
            _ => Document::default(),
        };
        let bytes = row.render(&document)?.into_bytes();
        let path =
            if row.is_markdown() { layout::moved(&entry.path, row.is_deleted()) } else { entry.path.clone() };
        if let Some(seen) = seen.as_ref().filter(|seen| seen.bytes == bytes && path == entry.path) {
            return Ok(Planned::Note(Entry { hash: seen.hash, stat: seen.stat, row: digest, ..entry }));
        }
        let expects = seen.filter(|_| !over).map(|seen| seen.stat);
        let path = if path == entry.path { path } else { self.free(path, taken)? };
        let replaces = (path != entry.path).then_some(entry.path);
        Ok(Planned::Write(NewFile { path, bytes, replaces, expects }, digest))
    }

    /// A row whose file cannot be used now. That file stays as the person has left it, and is among the problems; the item gets
    /// another one beside it, so that the change outlives the index.
    fn plan_beside(
        &self,
        row: &Row,
        unusable: &str,
        digest: u64,
        taken: &mut HashSet<String>,
    ) -> Result<Planned> {
        let path = self.free(layout::moved(unusable, row.is_deleted()), taken)?;
        let bytes = row.render(&Document::default())?.into_bytes();
        Ok(Planned::Write(NewFile { path, bytes, replaces: None, expects: None }, digest))
    }

    /// A row without a file. A file that a crash has left without its note is taken over.
    fn plan_new(
        &self,
        row: &Row,
        key: &ItemKey,
        digest: u64,
        snapshot: &Snapshot,
        taken: &mut HashSet<String>,
    ) -> Result<Planned> {
        let number = match &row.content {
            Content::Summary(summary) => {
                snapshot.count_in(&layout::summary_folder(self.names, &row.user, summary)?)?
            }
            _ => 0,
        };
        let path = self.beside_others(row, row.new_path(self.names, number)?, snapshot)?;
        let bytes = row.render(&Document::default())?.into_bytes();
        if let Some(Ok(seen)) = self.disk.read(&path).map_err(|error| unwritten(&error))?
            && seen.bytes == bytes
        {
            let entry =
                Entry { path, item: key.clone(), hash: seen.hash, stat: seen.stat, racy: true, row: digest };
            return Ok(Planned::Note(entry));
        }
        // A tree has one root. The root before it gives its place up, see `retire`.
        let is_root =
            matches!(&row.content, Content::Summary(summary) if summary.is_root() && !row.is_deleted());
        let path = if is_root { row.new_path(self.names, 0)? } else { self.free(path, taken)? };
        Ok(Planned::Write(NewFile { path, bytes, replaces: None, expects: None }, digest))
    }

    /// The path in the folder in which agent-cli keeps this conversation, if it does.
    fn beside_others(&self, row: &Row, path: String, snapshot: &Snapshot) -> Result<String> {
        let Some(conversation) = row.conversation() else { return Ok(path) };
        let Some(folder) = layout::agent_cli_conversation(self.names, &row.user, conversation)? else {
            return Ok(path);
        };
        let Some(other) = snapshot.one_below(&folder)? else { return Ok(path) };
        let Ok(Some(Ok(seen))) = self.disk.read(&other.path) else { return Ok(path) };
        let names_it = Document::parse(&seen.bytes)
            .is_ok_and(|file| file.fields.get("conversation_id").is_some_and(|name| name == conversation));
        let own = layout::conversation(self.names, &row.user, conversation)?;
        Ok(match path.strip_prefix(&own) {
            Some(rest) if names_it => format!("{folder}{rest}"),
            _ => path,
        })
    }

    /// Moves the former root of a tree among the deleted files, if a new one is about to take its name.
    fn retire(&self, path: &str, snapshot: &mut Snapshot) -> Result<()> {
        if !path.ends_with("/L3/final.md") {
            return Ok(());
        }
        let Some(entry) = snapshot.at(path)? else { return Ok(()) };
        let Some(Ok(seen)) = self.disk.read(path).map_err(|error| unwritten(&error))? else { return Ok(()) };
        let folder = layout::moved(path, true);
        let folder = folder.strip_suffix("final.md").unwrap_or(&folder);
        let file = NewFile {
            path: format!("{folder}{}.md", entry.item.id),
            bytes: seen.bytes,
            replaces: Some(path.to_owned()),
            expects: None,
        };
        let former = Entry { path: file.path.clone(), ..entry };
        let stat = self.disk.write(&[file]).pop().transpose().map_err(|error| unwritten(&error))?;
        let former = Entry { stat: stat.unwrap_or(former.stat), ..former };
        snapshot.write(|snapshot| snapshot.put(&former))
    }

    /// The path, or one like it if something else has its place.
    fn free(&self, path: String, taken: &mut HashSet<String>) -> Result<String> {
        let stem = path.rsplit_once('.').map_or(path.as_str(), |(stem, _)| stem);
        let ending = &path[stem.len()..];
        for number in 0..10_000 {
            let candidate = if number == 0 { path.clone() } else { format!("{stem}-{number}{ending}") };
            let is_there = std::fs::symlink_metadata(self.disk.absolute(&candidate)).is_ok();
            if !is_there && taken.insert(candidate.clone()) {
                return Ok(candidate);
            }
        }
        Err(Error::unavailable(format!("there is no free name for `{path}` in the vault")))
    }

    /// The file that names a user whose folder does not.
    fn user_file(&self, user: &UserId) -> Result<Option<NewFile>> {
        if !layout::needs_user_file(self.names, user)? {
            return Ok(None);
        }
        let path = format!("{}{}", layout::user_folder(self.names, user)?, layout::USER_FILE);
        if self.disk.stat(&path).map_err(|error| unwritten(&error))?.is_some() {
            return Ok(None);
        }
        let bytes = serde_json::json!({ "user": user.as_str() }).to_string().into_bytes();
        Ok(Some(NewFile { path, bytes, replaces: None, expects: None }))
    }
}

/// The work for a row.
enum Planned {
    Nothing,
    /// A person has changed the file.
    Foreign(String),
    /// The file is right; only the snapshot is not.
    Note(Entry),
    /// The file has to be written, for an item with this digest.
    Write(NewFile, u64),
}

fn by_user<'a, T>(items: impl Iterator<Item = (&'a UserId, T)>) -> BTreeMap<&'a UserId, Vec<T>> {
    let mut grouped: BTreeMap<&UserId, Vec<T>> = BTreeMap::new();
    for (user, item) in items {
        grouped.entry(user).or_default().push(item);
    }
    grouped
}
