//! Removing everything of Strata's in the folder of a forgotten session or user, also what Strata cannot use: broken files, files
//! with odd names or too deep inside, links, and the copies that editors leave beside a file.
//!
//! Links are removed and never followed. Files that are none of Strata's stay, and so do folders of other programs.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::disk::{Disk, is_missing, sync_folder};
use super::layout;

/// One removal on its way through the folders.
struct Purge<'a> {
    root: &'a Path,
    keeps: &'a dyn Fn(&str) -> bool,
    removed: usize,
    failed: Option<io::Error>,
}

impl Disk {
    /// Removes what is Strata's in a folder, except for the paths that `keeps` names, and the folders that become empty. Returns how
    /// many files were removed. What cannot be removed does not hold up the rest.
    pub(crate) fn purge(&self, folder: &str, keeps: &dyn Fn(&str) -> bool) -> io::Result<usize> {
        if !self.is_inside(folder)? {
            return Ok(0);
        }
        let root = self.absolute("");
        let mut purge = Purge { root: &root, keeps, removed: 0, failed: None };
        purge.visit(&self.absolute(folder));
        self.remove_empty_folders(&format!("{folder}/"));
        purge.failed.map_or(Ok(purge.removed), Err)
    }
}

impl Purge<'_> {
    fn visit(&mut self, path: &Path) {
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_dir() => self.visit_folder(path),
            Ok(metadata) if self.is_owned(path, &metadata) => match fs::remove_file(path) {
                Ok(()) => self.removed += 1,
                Err(error) => self.note(error),
            },
            Ok(_) => {}
            Err(error) => self.note(error),
        }
    }

    fn visit_folder(&mut self, folder: &Path) {
        let before = self.removed;
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.note(error),
        };
        let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        for path in paths {
            let is_folder = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir());
            // Folders of other programs.
            if is_folder && file_name(&path).starts_with('.') {
                continue;
            }
            self.visit(&path);
            if is_folder {
                // A folder that holds anything is not removed.
                let _ = fs::remove_dir(&path);
            }
        }
        if self.removed > before
            && let Err(error) = sync_folder(folder)
        {
            self.note(error);
        }
    }

    fn is_owned(&self, path: &Path, metadata: &Metadata) -> bool {
        let relative = path.strip_prefix(self.root).ok().and_then(Path::to_str);
        if relative.is_some_and(self.keeps) {
            return false;
        }
        let name = file_name(path);
        let is_odd = !metadata.is_file() && !name.starts_with('.');
        is_odd || relative.is_some_and(|path| layout::place(path).is_some()) || layout::is_copy(&name)
    }

    fn note(&mut self, error: io::Error) {
        if !is_missing(&error) {
            self.failed.get_or_insert(error);
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
