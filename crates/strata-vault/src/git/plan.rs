//! What taking commits back changes, worked out from git's objects alone: no file of the vault is touched here, so a step that
//! is refused leaves no trace.
//!
//! Each file is looked at by itself. If it is as the commits have left it, it gets its former version; if it was changed since,
//! the changes are merged. An item that was destroyed does not come back: git still holds its text, but forgetting is for good.

use std::collections::{HashMap, HashSet};

use strata_core::{Error, Result};

use super::objects::{Blobs, Changed, id_in};
use super::program::refusal;
use super::steps::Unit;
use super::{Git, repository};
use crate::form;
use crate::front::Document;
use crate::layout::{self, FileKind};
use crate::snapshot::Snapshot;
use crate::vault::{SNAPSHOT, unwritten};

/// What counts if a file was changed since the commits that are taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Favour {
    /// The former version: everything since was taken back too, and has left nothing but new front matter.
    Former,
    /// Both, and nothing is taken back if they contradict each other.
    Both,
}

/// A file that a step changes. A content is `None` where there is no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replaced {
    pub(super) path: String,
    pub(super) now: Option<Vec<u8>>,
    pub(super) then: Option<Vec<u8>>,
}

/// What a step changes.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) files: Vec<Replaced>,
    /// How many files of destroyed items stay away.
    pub(super) destroyed: usize,
}

/// The items and files that the vault has now.
#[derive(Default)]
pub(super) struct Present {
    ids: HashSet<String>,
    paths: Vec<String>,
}

impl Present {
    /// Whether anything else is left in the folder of a session's file.
    pub(super) fn is_beside(&self, path: &str) -> bool {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_below = |other: &&String| other.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        self.paths.iter().filter(is_below).any(|other| other != path)
    }

    /// Whether the item of a former file was destroyed since. A file without an id tells nothing: it counts as destroyed if it was
    /// not taken out by an undo.
    fn lacks(&self, former: &[u8], is_undo: bool) -> bool {
        match id_in(former) {
            Some(id) => !self.ids.contains(&form::uuid_of(&id).to_string()),
            None => !is_undo,
        }
    }
}

/// A file that differs from its former version.
struct Wish {
    changed: Changed,
    now: Option<String>,
}

impl Git {
    /// What taking these commits back changes.
    pub(super) async fn plan(&self, unit: &Unit, present: &Present, favour: Favour) -> Result<Plan> {
        let before = self.before(unit.oldest()).await?;
        let changed = self.changed(&before, unit.newest()).await?;
        let since = self.changed(unit.newest(), "HEAD").await?;
        let since = since.into_iter().map(|changed| (changed.path, changed.after)).collect();
        let (sessions, changed): (Vec<_>, Vec<_>) =
            changed.into_iter().partition(|changed| changed.kind() == Some(FileKind::Session));
        let mut plan = self.plan_entries(unit, wishes(changed, &since), present, favour).await?;
        plan.files.extend(self.plan_sessions(sessions, &since, present).await?);
        Ok(plan)
    }

    async fn plan_entries(
        &self,
        unit: &Unit,
        wishes: Vec<Wish>,
        present: &Present,
        favour: Favour,
    ) -> Result<Plan> {
        let versions = wishes.iter().flat_map(|wish| [&wish.changed.before, &wish.changed.after, &wish.now]);
        let blobs = self.blobs(versions.flatten().cloned().collect()).await?;
        let mut plan = Plan::default();
        for wish in wishes {
            let former = blobs.of(wish.changed.before.as_ref()).filter(|_| wish.now.is_none());
            if former.is_some_and(|former| present.lacks(former, !unit.reverts.is_empty())) {
                let is_told = unit.reverts.is_empty() || !former.is_some_and(|former| is_former(former));
                plan.destroyed += usize::from(is_told);
                continue;
            }
            let Some(then) = self.former(&wish, &blobs, favour).await? else { return Err(in_the_way(unit)) };
            plan.files.push(Replaced {
                now: blobs.of(wish.now.as_ref()).cloned(),
                then,
                path: wish.changed.path,
            });
        }
        plan.bring_back();
        Ok(plan)
    }

    /// The content that a file gets; `None` if later changes are in the way.
    async fn former(&self, wish: &Wish, blobs: &Blobs, favour: Favour) -> Result<Option<Option<Vec<u8>>>> {
        let Wish { changed: Changed { before, after, .. }, now } = wish;
        let former = blobs.of(before.as_ref()).cloned();
        let versions = [now, after, before].map(|version| blobs.of(version.as_ref()));
        Ok(match (versions, favour) {
            _ if now == after => Some(former),
            ([Some(now), Some(after), Some(before)], _) => {
                self.merged([now, after, before], favour).await?.map(Some)
            }
            (_, Favour::Former) => Some(former),
            (_, Favour::Both) => None,
        })
    }

    /// The current version of a file with the changes from its later to its former one; `None` if they contradict each other.
    async fn merged(&self, versions: [&[u8]; 3], favour: Favour) -> Result<Option<Vec<u8>>> {
        let files = ["now", "after", "before"].map(|name| self.own_file(name));
        let contents: Vec<_> = files.iter().cloned().zip(versions.map(<[u8]>::to_vec)).collect();
        self.on_disk(move |_| write_all(&contents)).await?;
        let merged = self.merge_files(&files, favour).await;
        files.iter().for_each(|file| drop(std::fs::remove_file(file)));
        merged
    }

    async fn merge_files(&self, files: &[std::path::PathBuf; 3], favour: Favour) -> Result<Option<Vec<u8>>> {
        let mut arguments = vec!["merge-file", "-p", "-q"];
        arguments.extend((favour == Favour::Former).then_some("--theirs"));
        let names: Vec<String> = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
        arguments.extend(names.iter().map(String::as_str));
        let output = self.output(&arguments, &[], None).await?;
        match output.status.code() {
            Some(0) => Ok(Some(output.stdout)),
            // The number of contradictions.
            Some(1..=127) => Ok(None),
            _ => Err(refusal(&arguments, &output)),
        }
    }

    /// What the vault has now. Its files were looked at just before.
    pub(super) fn present(&self) -> Result<Present> {
        let path = self.root.join(layout::PRIVATE).join(SNAPSHOT);
        if !path.exists() {
            return Ok(Present::default());
        }
        let entries = Snapshot::open(&path)?.all()?;
        let (ids, paths) = entries.into_iter().map(|entry| (entry.item.id, entry.path)).unzip();
        Ok(Present { ids, paths })
    }

    /// A path in the repository's folder for a file of this process.
    fn own_file(&self, name: &str) -> std::path::PathBuf {
        let own = super::locks::OWN_FILE;
        repository::folder(&self.root).join(format!("{own}{name}-{}", std::process::id()))
    }
}

impl Plan {
    /// Whether nothing would change.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Where taking commits back removes only the tombstone of an item, the item itself is meant: its file moves back to where it
    /// was. (A tombstone that is removed by hand destroys its memory.) A former statement goes with the edit that made it one.
    fn bring_back(&mut self) {
        let restored = self.files.iter().filter(|file| file.now.is_none());
        let restored: HashSet<String> = restored.filter_map(|file| id_in(file.then.as_deref()?)).collect();
        let mut back = Vec::new();
        for file in self.files.iter().filter(|file| file.then.is_none()) {
            let Some(now) = file.now.as_ref().filter(|now| is_tombstone(&file.path) && !is_former(now))
            else {
                continue;
            };
            if Document::parse(now).is_ok() && id_in(now).is_none_or(|id| !restored.contains(&id)) {
                let path = layout::moved(&file.path, false);
                back.push(Replaced { path, now: None, then: Some(now.clone()) });
            }
        }
        back.retain(|back| self.files.iter().all(|file| file.path != back.path));
        self.files.extend(back);
    }
}

/// The files of items that are not as they were.
fn wishes(changed: Vec<Changed>, since: &HashMap<String, Option<String>>) -> Vec<Wish> {
    let entries = changed.into_iter().filter(|changed| changed.kind() == Some(FileKind::Entry));
    let wishes = entries.map(|changed| {
        let now = since.get(&changed.path).unwrap_or(&changed.after).clone();
        Wish { changed, now }
    });
    wishes.filter(|wish| wish.now != wish.changed.before).collect()
}

fn in_the_way(unit: &Unit) -> Error {
    let commit = unit.newest();
    Error::conflict(format!(
        "commit `{commit}` cannot be taken back, because later ones change the same files"
    ))
}

fn is_tombstone(path: &str) -> bool {
    layout::place(path).is_some_and(|place| place.deleted)
}

/// Whether a file is a statement that another one has replaced.
fn is_former(file: &[u8]) -> bool {
    Document::parse(file).is_ok_and(|file| file.fields.contains_key("replaced_by"))
}

fn write_all(files: &[(std::path::PathBuf, Vec<u8>)]) -> Result<()> {
    let mut written = files.iter().map(|(path, bytes)| std::fs::write(path, bytes));
    written.try_for_each(|written| written.map_err(|error| unwritten(&error)))
}
