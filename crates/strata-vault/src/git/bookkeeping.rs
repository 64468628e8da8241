//! What a commit changes in files of Strata's own bookkeeping, which is not taken back with it.
//!
//! A session's file says when the session was last written to and how far it was learned from, so nearly every commit changes
//! it, and the next one changes the same lines. If these counters went back, Strata would also learn again what was just
//! taken back. Of a session's file only the state is content, without its counters: it goes back if nothing has changed it since.

use std::path::Path;

use strata_core::state::State;
use strata_core::{Error, Result, UserId};

use super::Git;
use crate::disk::{Disk, NewFile};
use crate::form::SessionFile;
use crate::front::Document;
use crate::layout::{self, FileKind};
use crate::row::{Content, Row};
use crate::vault::unwritten;

/// What taking a commit back changes.
pub(super) struct Undoing {
    /// The commit itself, or one like it without bookkeeping, to which nothing refers.
    pub(super) reverted: String,
    /// The paths that the commit has changed, each ending in NUL.
    pub(super) paths: String,
    /// The files of sessions whose states go back.
    states: Vec<NewFile>,
    has_content: bool,
}

impl Undoing {
    /// Whether the commit holds nothing that could be taken back.
    pub(super) fn is_empty(&self) -> bool {
        !self.has_content && self.states.is_empty()
    }
}

/// A file that a commit has changed.
struct Changed {
    path: String,
    /// The mode and the blob before it; a mode of zeros if it was not there.
    mode: String,
    blob: String,
}

impl Changed {
    /// Reads the output of `git diff-tree --raw -z`.
    fn read(raw: &str) -> Vec<Self> {
        let mut parts = raw.split('\0');
        let mut changed = Vec::new();
        while let (Some(fields), Some(path)) = (parts.next(), parts.next()) {
            let mut fields = fields.trim_start_matches(':').split(' ');
            if let (Some(mode), Some(blob)) = (fields.next(), fields.nth(1)) {
                changed.push(Self { path: path.to_owned(), mode: mode.to_owned(), blob: blob.to_owned() });
            }
        }
        changed
    }

    fn was_there(&self) -> bool {
        self.mode.bytes().any(|digit| digit != b'0')
    }

    /// The file before the commit, as `git update-index --index-info` reads it.
    fn restored(&self) -> String {
        let mode = if self.was_there() { &self.mode } else { "0" };
        format!("{mode} {}\t{}\0", self.blob, self.path)
    }

    fn is_session(&self) -> bool {
        layout::place(&self.path).is_some_and(|place| place.file == FileKind::Session)
    }

    fn is_bookkeeping(&self) -> bool {
        let is_user = self.path.starts_with(layout::USERS) && self.path.ends_with(layout::USER_FILE);
        self.path == ".gitignore" || is_user || self.is_session()
    }
}

impl Git {
    /// What taking this commit back changes.
    pub(super) async fn undoing(&self, commit: &str) -> Result<Undoing> {
        let parents = self.text(&["show", "--no-patch", "--format=%P", commit]).await?;
        let mut parents = parents.split_whitespace();
        let (parent, is_merge) = (parents.next().map(str::to_owned), parents.next().is_some());
        if is_merge {
            let message = format!("commit `{commit}` is a merge; take its own commits back one by one");
            return Err(Error::conflict(message));
        }
        let listing =
            ["diff-tree", "-r", "-z", "--root", "--no-commit-id", "--raw", "--no-abbrev", "--no-renames"];
        let changed = Changed::read(&self.text(&[&listing[..], &[commit]].concat()).await?);
        let paths = changed.iter().map(|changed| format!("{}\0", changed.path)).collect();
        let (left, content): (Vec<_>, Vec<_>) = changed.into_iter().partition(Changed::is_bookkeeping);
        let reverted = match left.is_empty() {
            true => commit.to_owned(),
            false => self.commit_without(commit, parent.as_deref(), &left).await?,
        };
        let mut states = Vec::new();
        for file in left.iter().filter(|file| file.is_session()) {
            states.extend(self.former_state(commit, file).await?);
        }
        Ok(Undoing { reverted, paths, states, has_content: !content.is_empty() })
    }

    /// A commit like this one that leaves files as they were before it.
    async fn commit_without(&self, commit: &str, parent: Option<&str>, left: &[Changed]) -> Result<String> {
        let index = self.own_index();
        let made = self.tree_without(&index, commit, left).await;
        let _ = std::fs::remove_file(&index);
        self.commit_tree(&made?, parent, "without bookkeeping").await
    }

    async fn tree_without(&self, index: &Path, commit: &str, left: &[Changed]) -> Result<String> {
        self.run_with(&["read-tree", commit], &[], Some(index)).await?;
        let entries: String = left.iter().map(Changed::restored).collect();
        self.run_with(&["update-index", "-z", "--index-info"], entries.as_bytes(), Some(index)).await?;
        Ok(self.said(&["write-tree"], &[], Some(index)).await?.trim().to_owned())
    }

    /// A session's file with the state that it had before a commit, if the commit has changed it and nothing has since.
    async fn former_state(&self, commit: &str, file: &Changed) -> Result<Option<NewFile>> {
        let (made, before) = (
            self.session_in(commit, &file.path).await,
            match file.was_there() {
                true => self.session_at(&file.blob).await,
                false => None,
            },
        );
        let path = file.path.clone();
        let now = self.on_disk(move |git| Ok(session_on(&Disk::new(&git.root), &path))).await?;
        let Some(session) = with_former_state(now, made, before) else { return Ok(None) };
        // The text of a session's file names no user.
        let row = Row::new(&UserId::default(), Content::Session(Box::new(session)));
        let bytes = row.render(&Document::default())?.into_bytes();
        Ok(Some(NewFile { path: file.path.clone(), bytes, replaces: None, expects: None }))
    }

    async fn session_in(&self, commit: &str, path: &str) -> Option<SessionFile> {
        self.session_at(&format!("{commit}:{path}")).await
    }

    /// A session's file in git; `None` if there is none, or if it cannot be read.
    async fn session_at(&self, blob: &str) -> Option<SessionFile> {
        let read = self.run(&["cat-file", "blob", blob]).await.ok()?;
        serde_json::from_slice(&read.stdout).ok()
    }

    /// Writes the states that go back, and stages them.
    pub(super) async fn put_states_back(&self, undoing: &Undoing) -> Result<()> {
        if undoing.states.is_empty() {
            return Ok(());
        }
        let files = undoing.states.clone();
        let paths: String = files.iter().map(|file| format!("{}\0", file.path)).collect();
        let write = move |git: &Self| {
            let written = Disk::new(&git.root).write(&files);
            written.into_iter().try_for_each(|written| written.map(drop)).map_err(|error| unwritten(&error))
        };
        self.on_disk(write).await?;
        self.run_with(&["update-index", "--add", "-z", "--stdin"], paths.as_bytes(), None).await?;
        Ok(())
    }
}

fn session_on(disk: &Disk, path: &str) -> Option<SessionFile> {
    let seen = disk.read(path).ok()??.ok()?;
    serde_json::from_slice(&seen.bytes).ok()
}

/// A state without what is counted and not told.
fn content_of(state: &State) -> State {
    let State { tool_stats, token_usage, observed, .. } = State::default();
    State { tool_stats, token_usage, observed, ..state.clone() }
}

/// The file as it is `now` with the state `before` a commit, if the commit has `made` another one of it that is still there.
fn with_former_state(
    now: Option<SessionFile>,
    made: Option<SessionFile>,
    before: Option<SessionFile>,
) -> Option<SessionFile> {
    let content = |file: &Option<SessionFile>| {
        file.as_ref().map_or_else(State::default, |file| content_of(&file.state))
    };
    if content(&made) == content(&before) || content(&now) != content(&made) {
        return None;
    }
    let former = content(&before);
    let Some(now) = now else { return before };
    let State { tool_stats, token_usage, observed, .. } = now.state;
    Some(SessionFile { state: State { tool_stats, token_usage, observed, ..former }, ..now })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use strata_core::SessionId;

    use super::*;

    #[test]
    fn a_state_goes_back_unless_it_was_changed_since() {
        let file = |goal: Option<&str>, second: i64| {
            let mut state = State::default();
            state.system_state.extend(goal.map(|goal| ("goal".to_owned(), goal.into())));
            state.observed.turns = second.cast_unsigned();
            let at = Timestamp::from_second(second).unwrap();
            let session = SessionId::new("harbour").unwrap();
            SessionFile { session, created_at: at, updated_at: at, progress: Default::default(), state }
        };
        let (none, sail, row) = (file(None, 1), file(Some("sail"), 2), file(Some("row"), 3));
        let check = |now: &SessionFile,
                     made: &SessionFile,
                     before: Option<&SessionFile>,
                     expected: Option<&SessionFile>| {
            let undone = with_former_state(Some(now.clone()), Some(made.clone()), before.cloned());
            let Some(undone) = undone else { return assert_eq!(expected, None) };
            assert_eq!(undone.state.system_state, expected.unwrap().state.system_state);
            assert_eq!(undone.updated_at, now.updated_at, "its times are no content");
            assert_eq!(undone.state.observed, now.state.observed, "nor is what is counted");
        };
        let later = file(Some("sail"), 9);
        check(&later, &sail, Some(&none), Some(&none));
        check(&later, &sail, None, Some(&none));
        check(&row, &sail, Some(&none), None);
        check(&later, &sail, Some(&later), None);
        assert_eq!(with_former_state(None, None, Some(sail.clone())), Some(sail));
    }
}
