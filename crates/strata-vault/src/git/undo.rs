//! Taking commits back, and doing again what was taken back.
//!
//! An undo is one commit: the former versions of files together with what Strata makes of them, such as the tombstone of a memory
//! whose file is gone. What changes is worked out first ([`super::plan`]); the files are written when nothing can refuse the step
//! any more. Meanwhile the vault's own lock keeps other processes from looking at them, and that of the history from committing.

use std::collections::HashSet;

use strata_core::{Error, Result};

use super::plan::{Favour, Plan, Present, Replaced};
use super::steps::{Logged, REVERTS, Step, Unit, taken_back, target, units};
use super::{COMMITTED, Committed, Git};
use crate::disk::{Disk, NewFile};
use crate::snapshot::Stat;
use crate::vault::unwritten;

/// The commits that a step looks through.
const LOOKED_THROUGH: &str = "--max-count=1000";

/// Commits that are being taken back.
pub(crate) struct TakenBack {
    unit: Unit,
    files: Vec<Replaced>,
    /// The first line of the commit that takes them back.
    subject: String,
    /// The name of what is undone or done again.
    told: String,
}

impl Git {
    /// Works out what a step changes, without a name the last unit of commits that is in force. A redo takes back the last undo. No
    /// file of the vault is touched.
    pub(crate) async fn prepare(&self, step: Step, commit: Option<&str>) -> Result<TakenBack> {
        self.expect_repository().await?;
        if let Committed::Busy(what) = self.commit_changes().await? {
            return Err(Error::conflict(what));
        }
        if self.run(&["diff", "--cached", "--quiet", "--no-ext-diff"]).await.is_err() {
            let message = "the vault's repository has staged changes; commit them or unstage them first";
            return Err(Error::conflict(message));
        }
        let (units, present) = (self.units().await?, self.on_disk(|git| git.present()).await?);
        let (unit, plan) = match commit {
            Some(name) => self.named(&units, &present, name).await?,
            None => self.last(&units, &present, step).await?,
        };
        self.expect_unfiltered(
            &plan.files.iter().flat_map(|file| [file.path.as_str(), "\0"]).collect::<String>(),
        )
        .await?;
        let subject = self.subject(unit.oldest()).await?;
        let (line, name) = taken_back(&subject);
        let told = if step == Step::Undo { &subject } else { name };
        let kept = if plan.destroyed > 0 { " (what it destroyed stays destroyed)" } else { "" };
        Ok(TakenBack { files: plan.files, told: format!("{told}{kept}"), subject: line, unit })
    }

    /// Writes the files that a step changes, or none of them.
    pub(crate) async fn put(&self, taken: &TakenBack) -> Result<()> {
        let files = taken.files.clone();
        let stats = self.on_disk(move |git| stats(&Disk::new(&git.root), files)).await?;
        self.expect_unedited(taken).await?;
        self.on_disk(move |git| {
            let disk = Disk::new(&git.root);
            put(&disk, &stats).inspect_err(|_| put_back(&disk, stats.iter().map(|(file, _)| file)))
        })
        .await
    }

    /// Puts the files back as they were before [`Self::put`].
    pub(crate) async fn put_back(&self, taken: &TakenBack) {
        let files = taken.files.clone();
        let putting = self.on_disk(move |git| {
            put_back(&Disk::new(&git.root), files.iter());
            Ok(())
        });
        let _ = putting.await;
    }

    /// Commits what was taken back, with what Strata has made of it. Returns the name of what was taken back.
    pub(crate) async fn finish(&self, taken: TakenBack) -> Result<String> {
        let TakenBack { unit, subject, told, .. } = taken;
        let Some(staged) = self.stage().await? else {
            return Err(Error::conflict(format!(
                "taking back `{told}` changes nothing, because Strata needs what it wrote; name the commit before it (`strata vault log`)"
            )));
        };
        let (_, body) = self.describe(&staged).await?;
        let reverts: String = unit.ids.iter().map(|id| format!("{REVERTS}{id}.\n")).collect();
        self.record(&staged, &subject, format!("{reverts}\n{body}").trim()).await?;
        Ok(told)
    }

    /// The units of the history, the newest one first.
    async fn units(&self) -> Result<Vec<Unit>> {
        if self.head().await.is_none() {
            return Ok(Vec::new());
        }
        let log = self.text(&["log", LOOKED_THROUGH, "-z", "--format=%H%n%B", "--", "."]).await?;
        Ok(units(&log.split('\0').filter_map(Logged::read).collect::<Vec<_>>()))
    }

    /// The unit of a commit that a person has named. One that changes nothing is refused.
    async fn named(&self, units: &[Unit], present: &Present, name: &str) -> Result<(Unit, Plan)> {
        let commit = self.commit_id(name).await?;
        let unit = units.iter().find(|unit| unit.ids.contains(&commit)).cloned();
        let unit = unit.unwrap_or_else(|| Unit::of_one(commit));
        let plan = self.plan(&unit, present, Favour::Both).await?;
        if !plan.is_empty() {
            return Ok((unit, plan));
        }
        let subject = self.subject(unit.oldest()).await?;
        Err(Error::conflict(match plan.destroyed {
            0 => format!(
                "taking back `{subject}` changes nothing: what it did is not in force, or is no memory, turn or summary"
            ),
            _ => format!("`{subject}` cannot be taken back: what it destroyed stays destroyed"),
        }))
    }

    /// The unit that a step without a name takes back. One that holds nothing but bookkeeping is passed over.
    async fn last(&self, units: &[Unit], present: &Present, step: Step) -> Result<(Unit, Plan)> {
        let (mut passed, mut destroying) = (HashSet::new(), None::<Unit>);
        while let Some(unit) = target(units, step, &passed) {
            let plan = self.plan(unit, present, Favour::Former).await?;
            match (plan.is_empty(), &destroying) {
                (false, None) => return Ok((unit.clone(), plan)),
                (false, Some(destroyed)) => return Err(self.stays_destroyed(destroyed, Some(unit)).await?),
                (true, None) if plan.destroyed > 0 => destroying = Some(unit.clone()),
                (true, _) => {}
            }
            passed.insert(unit.newest().to_owned());
        }
        Err(match destroying {
            Some(destroyed) => self.stays_destroyed(&destroyed, None).await?,
            None => Error::not_found(nothing_to(step)),
        })
    }

    /// Says that a unit is not taken back because it has destroyed something, and names the one before it. That one is not taken
    /// back unasked: the person has meant another one.
    async fn stays_destroyed(&self, unit: &Unit, before: Option<&Unit>) -> Result<Error> {
        let subject = self.subject(unit.oldest()).await?;
        let hint = match before {
            Some(before) => {
                let short = before.newest().get(..10).unwrap_or_default();
                format!(
                    "; `strata vault undo {short}` takes back `{}`, the step before it",
                    self.subject(before.oldest()).await?
                )
            }
            None => String::new(),
        };
        Ok(Error::conflict(format!(
            "the last step, `{subject}`, cannot be taken back: what it destroyed stays destroyed{hint}"
        )))
    }

    async fn subject(&self, commit: &str) -> Result<String> {
        Ok(self.text(&["show", "--no-patch", "--format=%s", commit]).await?.trim().to_owned())
    }

    /// Fails if a file that a step changes is not as it was committed: a person is editing it.
    async fn expect_unedited(&self, taken: &TakenBack) -> Result<()> {
        let listing = ["ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard", "--"];
        let listed = self.text(&[&listing[..], &COMMITTED].concat()).await?;
        let edited: HashSet<&str> = listed.split('\0').collect();
        match taken.files.iter().find(|file| edited.contains(file.path.as_str())) {
            Some(file) => Err(edited_meanwhile(&file.path)),
            None => Ok(()),
        }
    }
}

fn nothing_to(step: Step) -> &'static str {
    match step {
        Step::Undo => "there is no commit to take back",
        Step::Redo => "nothing was taken back that could be done again",
    }
}

fn edited_meanwhile(path: &str) -> Error {
    Error::conflict(format!("`{path}` is being changed; wait until it is saved and committed, and try again"))
}

/// The files with what they are like now. A place that something else has taken is refused.
fn stats(disk: &Disk, files: Vec<Replaced>) -> Result<Vec<(Replaced, Option<Stat>)>> {
    let mut found = Vec::with_capacity(files.len());
    for file in files {
        let stat = disk.stat(&file.path).map_err(|error| unwritten(&error))?;
        let is_free = || std::fs::symlink_metadata(disk.absolute(&file.path)).is_err();
        if stat.is_some() != file.now.is_some() || stat.is_none() && !is_free() {
            return Err(edited_meanwhile(&file.path));
        }
        found.push((file, stat));
    }
    Ok(found)
}

/// Gives files what they were, each at once. New contents come first, so that a crash in between leaves more rather than less.
fn put(disk: &Disk, files: &[(Replaced, Option<Stat>)]) -> Result<()> {
    let new: Vec<NewFile> = files.iter().filter_map(|(file, stat)| new_file(file, *stat)).collect();
    let written = disk.write(&new).into_iter().try_for_each(|written| written.map(drop));
    written.map_err(|error| unwritten(&error))?;
    let removed = files.iter().filter(|(file, _)| file.then.is_none()).map(|(file, _)| file.path.as_str());
    let mut removing = removed.clone().map(|path| disk.remove(path));
    removing.try_for_each(|removed| removed).map_err(|error| unwritten(&error))?;
    disk.sync_folders_of(removed).map_err(|error| unwritten(&error))
}

fn new_file(file: &Replaced, expects: Option<Stat>) -> Option<NewFile> {
    let bytes = file.then.clone()?;
    Some(NewFile { path: file.path.clone(), bytes, replaces: None, expects })
}

/// Puts back the files that have come to hold what a step gives them.
fn put_back<'a>(disk: &Disk, files: impl Iterator<Item = &'a Replaced>) {
    let read =
        |path: &str| disk.read(path).ok().flatten().and_then(std::result::Result::ok).map(|seen| seen.bytes);
    let changed = files.filter(|file| read(&file.path) == file.then);
    let former = |file: &Replaced| Replaced {
        path: file.path.clone(),
        now: file.then.clone(),
        then: file.now.clone(),
    };
    let former: Vec<_> = changed.map(|file| (former(file), None)).collect();
    if let Err(error) = put(disk, &former) {
        tracing::warn!(%error, "a step through the vault's history broke off half-way");
    }
}
