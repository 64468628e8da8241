//! Commits of a person that a commit of Strata completes: with the tombstone of a removed file, the former version of an edited
//! statement, or the id of a new one. An undo takes them back together, because each alone leaves one half.

use std::collections::HashSet;

use strata_core::Result;

use super::objects::Changed;
use super::steps::COMPLETES;
use super::{COMMITTED, Git, Staged};
use crate::layout::{self, FileKind};

/// The beginning of the reasons by which Strata moves the branch. The branch's log shows who has made its last commits.
pub(super) const OWN_MOVE: &str = "strata: ";

/// The moves of the branch that are looked through for the last one by Strata, and the most commits that are completed at once.
const LOOKED_THROUGH: &str = "--max-count=50";
const MOST_COMPLETED: usize = 20;

impl Git {
    /// The lines of a message that name the commits which these changes complete.
    pub(super) async fn completed(&self, staged: &Staged) -> Result<String> {
        let Some((from, commits)) = self.foreign().await? else { return Ok(String::new()) };
        let head = commits.first().map_or("HEAD", String::as_str);
        let theirs = self.names(self.changed(&from, head).await?).await?;
        let is_ours = !theirs.is_disjoint(&self.names(staged.changed.clone()).await?);
        Ok(commits.iter().filter(|_| is_ours).map(|id| format!("{COMPLETES}{id}.\n")).collect())
    }

    /// The items of changed files by their ids and, as if none of them were deleted, by their paths.
    async fn names(&self, changed: Vec<Changed>) -> Result<HashSet<String>> {
        let entries = changed.into_iter().filter(|changed| changed.kind() == Some(FileKind::Entry));
        let entries: Vec<Changed> = entries.collect();
        let versions = entries.iter().flat_map(|changed| [&changed.before, &changed.after]);
        let items = self.items(versions.flatten().cloned().collect()).await?;
        let paths = entries.iter().map(|changed| layout::moved(&changed.path, false));
        Ok(items.ids().chain(paths).collect())
    }

    /// The commits since Strata's last one, the newest first, and the commit before them. Merges are not completed: nothing takes
    /// them back.
    async fn foreign(&self) -> Result<Option<(String, Vec<String>)>> {
        let Some(head) = self.head().await else { return Ok(None) };
        let last = self.own_last().await;
        if last.as_ref() == Some(&head) {
            return Ok(None);
        }
        let range = last.map(|last| format!("{last}..HEAD"));
        let commits = self.commits_in(range.as_deref()).await?;
        let commits = commits.filter(|commits| !commits.is_empty());
        let Some(oldest) = commits.as_ref().and_then(|commits| commits.last()) else { return Ok(None) };
        let Ok(before) = self.before(oldest).await else { return Ok(None) };
        Ok(commits.map(|commits| (before, commits)))
    }

    /// The commits of a range that change files of the vault, or the last one alone; `None` if they are too many or if some are
    /// merges.
    async fn commits_in(&self, range: Option<&str>) -> Result<Option<Vec<String>>> {
        let range = range.unwrap_or("HEAD^!");
        if !self.text(&["rev-list", "--merges", "--max-count=1", range]).await?.is_empty() {
            return Ok(None);
        }
        let listed = self.text(&[&["rev-list", range, "--"], &COMMITTED[..]].concat()).await?;
        let commits: Vec<String> = listed.lines().map(str::to_owned).collect();
        Ok(Some(commits).filter(|commits| commits.len() <= MOST_COMPLETED))
    }

    /// The last commit that Strata has made here, by the log of the branch.
    async fn own_last(&self) -> Option<String> {
        let listing = ["log", "--walk-reflogs", LOOKED_THROUGH, "--format=%H %gs", "HEAD"];
        let moves = self.text(&listing).await.ok()?;
        let mut moves = moves.lines().filter_map(|line| line.split_once(' '));
        moves.find(|(_, reason)| reason.starts_with(OWN_MOVE)).map(|(commit, _)| commit.to_owned())
    }
}
