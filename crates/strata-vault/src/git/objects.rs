//! Reading git's objects: what commits change, and the files as they were.

use std::collections::{HashMap, HashSet};

use strata_core::{Error, Result};

use super::Git;
use super::program::refusal;
use crate::front::Document;
use crate::layout::{self, FileKind};

/// A file that differs between two commits, with its versions in git. A version is `None` where there is no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) path: String,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    mode: String,
}

impl Changed {
    /// Reads the output of `git diff --raw -z`, without the files that git could not merge. A name that is not UTF-8 has come here with other characters.
    pub(super) fn read(raw: &str) -> Vec<Self> {
        let mut parts = raw.split('\0');
        let mut changed = Vec::new();
        while let (Some(fields), Some(path)) = (parts.next(), parts.next()) {
            let fields: Vec<&str> = fields.trim_start_matches(':').split(' ').collect();
            if let [mode, new_mode, before, after, status] = fields.as_slice()
                && *status != "U"
                && !path.contains(char::REPLACEMENT_CHARACTER)
            {
                let (before, after) = (version(mode, before), version(new_mode, after));
                changed.push(Self { path: path.to_owned(), before, after, mode: (*new_mode).to_owned() });
            }
        }
        changed
    }

    /// The file as `git update-index --index-info` reads it.
    pub(super) fn staged(&self) -> String {
        match &self.after {
            Some(blob) => format!("{} {blob}\t{}\0", self.mode, self.path),
            None => format!("0 {}\t{}\0", "0".repeat(40), self.path),
        }
    }

    /// The kind of the file, if it is one of the vault's.
    pub(super) fn kind(&self) -> Option<FileKind> {
        layout::place(&self.path).map(|place| place.file)
    }
}

/// A version of a file; a mode of zeros says that there is none, and one of a link or another repository that it is no file.
fn version(mode: &str, blob: &str) -> Option<String> {
    mode.starts_with("100").then(|| blob.to_owned())
}

/// The contents of blobs, by their names.
pub(super) struct Blobs(HashMap<String, Vec<u8>>);

impl Blobs {
    pub(super) fn of(&self, blob: Option<&String>) -> Option<&Vec<u8>> {
        self.0.get(blob?)
    }
}

/// The items of versions of files.
#[derive(Default)]
pub(super) struct Items(HashMap<String, String>);

impl Items {
    /// The item of a version, or the version itself if it holds none.
    pub(super) fn name<'a>(&'a self, version: &'a str) -> &'a str {
        self.0.get(version).map_or(version, String::as_str)
    }

    pub(super) fn ids(self) -> impl Iterator<Item = String> {
        self.0.into_values()
    }
}

/// The id that a file names.
pub(super) fn id_in(file: &[u8]) -> Option<String> {
    let file = Document::parse(file).ok()?;
    file.fields.get("id").and_then(|id| id.as_str()).map(str::to_owned)
}

impl Git {
    /// The items of versions of files.
    pub(super) async fn items(&self, versions: HashSet<String>) -> Result<Items> {
        let Blobs(blobs) = self.blobs(versions).await?;
        Ok(Items(blobs.into_iter().filter_map(|(blob, file)| Some((blob, id_in(&file)?))).collect()))
    }

    /// The files that differ between two commits or trees.
    pub(super) async fn changed(&self, from: &str, to: &str) -> Result<Vec<Changed>> {
        let listing = ["diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", from, to];
        Ok(Changed::read(&self.text(&listing).await?))
    }

    /// The first parent of a commit, or the tree without files for the first commit. A merge is refused.
    pub(super) async fn before(&self, commit: &str) -> Result<String> {
        let parents = self.text(&["show", "--no-patch", "--format=%P", commit]).await?;
        let mut parents = parents.split_whitespace();
        match (parents.next(), parents.next()) {
            (Some(parent), None) => Ok(parent.to_owned()),
            (None, _) => self.empty_tree().await,
            (Some(_), Some(_)) => {
                let message = format!("commit `{commit}` is a merge; take its own commits back one by one");
                Err(Error::conflict(message))
            }
        }
    }

    /// The name of the tree without files.
    pub(super) async fn empty_tree(&self) -> Result<String> {
        Ok(self.text(&["hash-object", "-t", "tree", "--stdin"]).await?.trim().to_owned())
    }

    /// Reads blobs.
    pub(super) async fn blobs(&self, names: HashSet<String>) -> Result<Blobs> {
        if names.is_empty() {
            return Ok(Blobs(HashMap::new()));
        }
        let input: String = names.iter().flat_map(|name| [name.as_str(), "\n"]).collect();
        let read = self.run_with(&["cat-file", "--batch"], input.as_bytes(), None).await?;
        let blobs = batch(&read.stdout).filter(|blobs| blobs.len() == names.len());
        blobs.map(Blobs).ok_or_else(|| refusal(&["cat-file"], &read))
    }
}

/// Reads the output of `git cat-file --batch`: lines with name, kind and size, each with the content behind it.
fn batch(mut rest: &[u8]) -> Option<HashMap<String, Vec<u8>>> {
    let mut blobs = HashMap::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let line = std::str::from_utf8(&rest[..end]).ok()?;
        let mut words = line.split(' ');
        let (name, size) = (words.next()?, words.nth(1)?.parse::<usize>().ok()?);
        let content = rest.get(end + 1..end + 1 + size)?;
        blobs.insert(name.to_owned(), content.to_vec());
        rest = rest.get(end + 2 + size..)?;
    }
    Some(blobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_of_any_bytes_are_read() {
        let blobs = batch(b"aa blob 3\nx\ny\nbb blob 0\n\ncc blob 2\n\xff\0\n").unwrap();
        assert_eq!(
            (blobs["aa"].as_slice(), blobs["bb"].len(), blobs["cc"].as_slice()),
            (&b"x\ny"[..], 0, &b"\xff\0"[..])
        );
        assert_eq!(batch(b"dd missing\n"), None);
    }

    #[test]
    fn links_are_no_files() {
        let raw = ":000000 100644 0 a A\0x.md\0:100644 120000 b c T\0y.md\0:100644 000000 d 0 D\0z.md\0";
        let read: Vec<_> =
            Changed::read(raw).into_iter().map(|changed| (changed.before, changed.after)).collect();
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(read, [(None, some("a")), (some("b"), None), (some("d"), None)]);
    }
}
