//! The folder of the vault's repository, which has to be the vault's own: git follows links and files that name other places,
//! and would write there.

use std::fs;
use std::path::{Path, PathBuf};

use strata_core::{Error, Result};

use super::IGNORED;
use super::locks;
use crate::processes::git_works_in;
use crate::vault::unwritten;

/// The folders of a repository in which git writes, each with how many folders lie below it where links are looked for. Hooks
/// are not run, so they may be links.
const WRITTEN: [(&str, usize); 5] = [("", 0), ("info", 0), ("objects", 0), ("refs", 8), ("logs", 9)];

/// States of a repository in which a person is in the middle of something, with the command of git that ends each.
pub(super) const IN_PROGRESS: [(&str, &str); 6] = [
    ("MERGE_HEAD", "merge --abort"),
    ("CHERRY_PICK_HEAD", "cherry-pick --abort"),
    ("REVERT_HEAD", "revert --abort"),
    ("rebase-merge", "rebase --abort"),
    ("rebase-apply", "rebase --abort"),
    ("BISECT_LOG", "bisect reset"),
];

/// What lies where the repository has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Missing,
    /// Its making was cut short.
    HalfMade,
    Whole,
}

/// The folder of the vault's own repository.
pub(super) fn folder(root: &Path) -> PathBuf {
    root.join(".git")
}

/// Looks at the repository. One that leads out of the vault is refused.
pub(super) fn state(root: &Path) -> Result<State> {
    let folder = folder(root);
    let Ok(found) = fs::symlink_metadata(&folder) else { return Ok(State::Missing) };
    if !found.is_dir() {
        let kind = if found.is_symlink() { "a symbolic link" } else { "a file" };
        return Err(elsewhere(".git", kind));
    }
    if fs::symlink_metadata(folder.join("commondir")).is_ok() {
        return Err(elsewhere(".git/commondir", "the mark of a working tree of another repository"));
    }
    for (name, depth) in WRITTEN {
        if let Some(link) = link_in(&folder, name, depth) {
            return Err(elsewhere(&format!(".git/{link}"), "a symbolic link"));
        }
    }
    Ok(if locks::is_half_made(&folder) { State::HalfMade } else { State::Whole })
}

fn elsewhere(path: &str, kind: &str) -> Error {
    Error::conflict(format!(
        "`{path}` in the vault is {kind}, and Strata keeps the history only in a folder `.git` of the vault itself; move it away, or \
         set `enable_git_versioning` to false"
    ))
}

/// The first link in a folder of the repository, and so many levels below it.
fn link_in(repository: &Path, name: &str, depth: usize) -> Option<String> {
    for entry in fs::read_dir(repository.join(name)).ok()?.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let file = entry.file_name();
        let below =
            if name.is_empty() { String::new() } else { format!("{name}/") } + &file.to_string_lossy();
        if kind.is_symlink() && below != "hooks" {
            return Some(below);
        }
        if kind.is_dir()
            && depth > 0
            && let Some(link) = link_in(repository, &below, depth - 1)
        {
            return Some(link);
        }
    }
    None
}

/// What a person is in the middle of, if anything, and how to end it.
pub(super) fn unfinished(root: &Path) -> Option<String> {
    let (name, command) = IN_PROGRESS.into_iter().find(|(name, _)| folder(root).join(name).exists())?;
    Some(format!(
        "the repository has `.git/{name}`, and nothing is committed meanwhile: finish with git what was begun there, or end it \
         with `git {command}`"
    ))
}

/// Clears a repository whose making was cut short, unless it is being made. Says whether git has to make it.
pub(super) fn prepare(root: &Path) -> Result<bool> {
    let state = state(root)?;
    if state == State::HalfMade && git_works_in(root) != Some(true) {
        locks::clear_half_made(&folder(root));
    }
    Ok(state != State::Whole)
}

/// Writes the ignore file if there is none.
pub(super) fn ignore(root: &Path) -> Result<()> {
    let ignore = root.join(".gitignore");
    if fs::symlink_metadata(&ignore).is_err() {
        fs::write(&ignore, IGNORED).map_err(|error| unwritten(&error))?;
    }
    Ok(())
}

/// Fails if the vault has no repository of its own.
pub(super) fn expect(root: &Path) -> Result<()> {
    if state(root)? != State::Missing {
        return Ok(());
    }
    Err(Error::not_found(format!(
        "the vault `{}` has no history yet; with the setting `enable_git_versioning = true`, Strata begins one when it opens the vault \
         next, for example with `strata vault sync`",
        root.display()
    )))
}
