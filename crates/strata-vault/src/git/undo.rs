//! Taking commits back, and doing again what was taken back.
//!
//! An undo is one commit: the changes of git's `revert` together with what Strata makes of them, such as the tombstone of a memory
//! whose file is gone. While the vault takes the files in, git's own mark of a revert in progress keeps other commits away.

use std::collections::HashSet;
use std::path::Path;

use strata_core::{Error, Result};

use super::bookkeeping::Undoing;
use super::{Committed, Git, repository};
use crate::disk::{Disk, NewFile};
use crate::front::Document;
use crate::layout::{self, FileKind};
use crate::vault::unwritten;

/// The commits that an undo without a name looks through.
const LOOKED_THROUGH: &str = "--max-count=1000";

/// The sentence by which git, and Strata, say which commit a commit takes back.
const REVERTS: &str = "This reverts commit ";

/// A step through the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Undo,
    Redo,
}

/// A commit that is being taken back.
pub(crate) struct TakenBack {
    commit: String,
    /// The first line of the commit that is undone or done again.
    subject: String,
    step: Step,
}

/// A commit, and the one that it takes back.
#[derive(Debug, PartialEq, Eq)]
struct Logged {
    id: String,
    reverts: Option<String>,
}

impl Git {
    /// Takes a commit back in the files; without a name, the last one that is not taken back already. A redo takes back the last
    /// undo. If later changes are in the way, nothing happens.
    pub(crate) async fn begin(&self, step: Step, commit: Option<&str>) -> Result<TakenBack> {
        self.expect_repository().await?;
        if let Committed::Busy(what) = self.commit().await? {
            return Err(Error::conflict(what));
        }
        if self.run(&["diff", "--cached", "--quiet", "--no-ext-diff"]).await.is_err() {
            let message = "the vault's repository has staged changes; commit them or unstage them first";
            return Err(Error::conflict(message));
        }
        // A step without a name has nothing behind it but what was taken back already, so where lines differ the commit's
        // former state is right: taking back wrote new front matter.
        let (commit, undoing, favour) = match commit {
            Some(name) => {
                let commit = self.commit_id(name).await?;
                let undoing = self.undoing(&commit).await?;
                (commit, undoing, "--strategy-option=no-renames")
            }
            None => {
                let (commit, undoing) = self.last(step).await?;
                (commit, undoing, "--strategy-option=theirs")
            }
        };
        let subject = self.text(&["show", "--no-patch", "--format=%s", &commit]).await?.trim().to_owned();
        self.expect_unfiltered(&undoing.paths).await?;
        if let Err(error) = self.run(&["revert", "--no-commit", favour, &undoing.reverted]).await {
            self.abort().await;
            let message =
                format!("commit `{commit}` cannot be taken back, because later ones change the same files");
            return Err(Error::conflict(message).with_source(error));
        }
        let brought = match self.put_states_back(&undoing).await {
            Ok(()) => self.bring_back().await,
            failed => failed,
        };
        if let Err(error) = brought {
            self.abort().await;
            return Err(error);
        }
        let subject =
            subject.strip_prefix("Undo “").and_then(|rest| rest.strip_suffix('”')).unwrap_or(&subject);
        Ok(TakenBack { commit, subject: subject.to_owned(), step })
    }

    /// Commits what was taken back, with what Strata has made of it. Returns the first line of the commit that was taken back.
    pub(crate) async fn finish(&self, taken: TakenBack) -> Result<String> {
        let TakenBack { commit, subject, step } = taken;
        // Nothing else is staged, see `begin`.
        self.stage().await?;
        let staged = self.staged(&[], |_, _| true).await?;
        let is_nothing = staged.is_none();
        if let Some(staged) = staged {
            let verb = if step == Step::Undo { "Undo" } else { "Redo" };
            let (_, body) = self.describe(&staged).await?;
            let body = format!("{REVERTS}{commit}.\n\n{body}");
            self.record(&staged, &format!("{verb} “{subject}”"), body.trim()).await?;
        }
        // Git's marks of a revert in progress.
        let _ = self.run(&["update-ref", "-d", "REVERT_HEAD"]).await;
        let _ = std::fs::remove_file(repository::folder(&self.root).join("MERGE_MSG"));
        if is_nothing {
            let message = format!(
                "taking back `{subject}` changes nothing, because Strata needs what it wrote; name the commit before it (`strata vault log`)"
            );
            return Err(Error::conflict(message));
        }
        Ok(subject)
    }

    /// Puts the files back as they were before [`Self::begin`].
    pub(crate) async fn abort(&self) {
        let _ = self.run(&["revert", "--abort"]).await;
    }

    /// The commit that a step without a name takes back. One that holds nothing but bookkeeping is passed over.
    async fn last(&self, step: Step) -> Result<(String, Undoing)> {
        let log = self.text(&["log", LOOKED_THROUGH, "-z", "--format=%H%n%B", "--", "."]).await?;
        let log: Vec<Logged> = log.split('\0').filter_map(logged).collect();
        let mut empty = HashSet::new();
        while let Some(commit) = target(&log, step, &empty) {
            let undoing = self.undoing(commit).await?;
            if !undoing.is_empty() {
                return Ok((commit.to_owned(), undoing));
            }
            empty.insert(commit);
        }
        Err(Error::not_found(match step {
            Step::Undo => "there is no commit to take back",
            Step::Redo => "nothing was taken back that could be done again",
        }))
    }

    /// Where taking a commit back removes only the tombstone of an item, the item itself is meant: its file moves back to where it
    /// was. (A tombstone that is removed by hand destroys its memory.)
    async fn bring_back(&self) -> Result<()> {
        let added = self.staged_paths("--diff-filter=A").await?;
        let restored = self.on_disk(move |git| ids_in(&git.root, &added)).await?;
        let mut files = Vec::new();
        for path in self.staged_paths("--diff-filter=D").await? {
            if !layout::place(&path).is_some_and(|place| place.deleted && place.file == FileKind::Entry) {
                continue;
            }
            let bytes = self.run(&["cat-file", "blob", &format!("HEAD:{path}")]).await?.stdout;
            let Ok(tombstone) = Document::parse(&bytes) else { continue };
            // A former statement goes with the edit that made it one.
            let is_former = tombstone.fields.contains_key("replaced_by");
            if !is_former && id_of(&tombstone).is_none_or(|id| !restored.contains(&id)) {
                let path = layout::moved(&path, false);
                files.push(NewFile { path, bytes, replaces: None, expects: None });
            }
        }
        let write = move |git: &Self| {
            let written = Disk::new(&git.root).write(&files);
            written.into_iter().try_for_each(|written| written.map(drop)).map_err(|error| unwritten(&error))
        };
        self.on_disk(write).await
    }

    /// The staged paths of the vault's layout that a filter of git lets through.
    async fn staged_paths(&self, filter: &str) -> Result<Vec<String>> {
        let listing = ["diff", "--cached", "--name-only", "--no-renames", filter, "-z", "--"];
        let listed = self.text(&[&listing[..], &super::COMMITTED].concat()).await?;
        Ok(listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
    }
}

/// The ids of the items in files.
fn ids_in(root: &Path, paths: &[String]) -> Result<HashSet<String>> {
    let disk = Disk::new(root);
    let mut ids = HashSet::new();
    for path in paths {
        let file = disk.read(path).map_err(|error| unwritten(&error))?.and_then(std::result::Result::ok);
        ids.extend(file.and_then(|file| id_of(&Document::parse(&file.bytes).ok()?)));
    }
    Ok(ids)
}

fn id_of(file: &Document) -> Option<String> {
    file.fields.get("id").and_then(|id| id.as_str()).map(str::to_owned)
}

/// Reads one commit of a log: its id, and its message.
fn logged(text: &str) -> Option<Logged> {
    let (id, message) = text.trim_start().split_once('\n')?;
    // A line of its own: a statement that the message lists may hold the same words.
    let named = message.lines().find_map(|line| line.strip_prefix(REVERTS));
    let reverts = named.map(|rest| rest.chars().take_while(char::is_ascii_hexdigit).collect::<String>());
    Some(Logged { id: id.to_owned(), reverts: reverts.filter(|id| id.len() >= 40) })
}

/// The commit that a step takes back, none of those that are `empty`. `log` has the newest commit first: a commit that is taken
/// back does nothing, so it takes nothing back either.
fn target<'a>(log: &'a [Logged], step: Step, empty: &HashSet<&str>) -> Option<&'a str> {
    let plain: HashSet<&str> =
        log.iter().filter(|commit| commit.reverts.is_none()).map(|commit| commit.id.as_str()).collect();
    let mut gone: HashSet<&str> = HashSet::new();
    for commit in log {
        let id = commit.id.as_str();
        if gone.contains(id) {
            continue;
        }
        match (&commit.reverts, step) {
            (None, Step::Undo) if !empty.contains(id) => return Some(id),
            (Some(reverted), Step::Redo) if plain.contains(reverted.as_str()) && !empty.contains(id) => {
                return Some(id);
            }
            (Some(reverted), _) => drop(gone.insert(reverted)),
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undo_goes_back_and_redo_forth() {
        let id = |name: char| name.to_string().repeat(40);
        let log = |commits: &[(char, Option<char>)]| -> Vec<Logged> {
            let logged = |(commit, reverts): &(char, Option<char>)| Logged {
                id: id(*commit),
                reverts: reverts.map(id),
            };
            commits.iter().map(logged).collect()
        };
        let check = |commits: &[(char, Option<char>)], undo: Option<char>, redo: Option<char>| {
            let log = log(commits);
            assert_eq!(
                target(&log, Step::Undo, &HashSet::new()).map(str::to_owned),
                undo.map(id),
                "{commits:?}"
            );
            assert_eq!(
                target(&log, Step::Redo, &HashSet::new()).map(str::to_owned),
                redo.map(id),
                "{commits:?}"
            );
        };
        // The newest commit stands first.
        check(&[], None, None);
        check(&[('b', None), ('a', None)], Some('b'), None);
        check(&[('c', Some('b')), ('b', None), ('a', None)], Some('a'), Some('c'));
        check(&[('d', Some('a')), ('c', Some('b')), ('b', None), ('a', None)], None, Some('d'));
        check(&[('e', Some('c')), ('c', Some('b')), ('b', None), ('a', None)], Some('b'), None);
        check(
            &[('f', Some('d')), ('d', Some('a')), ('c', Some('b')), ('b', None), ('a', None)],
            Some('a'),
            Some('c'),
        );
        check(&[('d', None), ('c', Some('b')), ('b', None)], Some('d'), Some('c'));
    }

    #[test]
    fn a_commit_names_the_one_that_it_takes_back() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let plain = logged(&format!("{id}\nAdd 1 memory\n\n+ This reverts commit law\n")).unwrap();
        assert_eq!(plain, Logged { id: id.to_owned(), reverts: None });
        let quoting =
            logged(&format!("{id}\nAdd 1 memory\n\n+ Git says: This reverts commit {id}.\n")).unwrap();
        assert_eq!(quoting.reverts, None);
        let revert = logged(&format!("\n{id}\nRevert \"Add\"\n\nThis reverts commit {id}.\n")).unwrap();
        assert_eq!(revert.reverts.as_deref(), Some(id));
    }
}
