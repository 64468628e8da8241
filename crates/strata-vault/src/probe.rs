//! How the vault's disk compares names. The operating system does not tell: Linux too may use a disk that ignores case, such as one
//! that other systems share.

use std::fs;
use std::path::Path;

use strata_core::file_name::{Names, USUAL_NAMES};

/// The files of the probe, in Strata's own folder: one with a capital, one with a colon, one with a dot at its end.
const CAPITAL: &str = "Names.probe";
const COLON: &str = "names:probe";
const DOT: &str = "names.probe-dot.";

/// Finds out how the disk with this folder compares names. A disk that cannot be written is taken for a usual one.
pub(crate) fn names(private: &Path) -> Names {
    let Some(other) = made(private, CAPITAL, &CAPITAL.to_lowercase()) else { return USUAL_NAMES };
    let colon = made(private, COLON, COLON);
    let dot = made(private, DOT, DOT.trim_end_matches('.'));
    found(Found { folds: other, has_colons: colon == Some(true), keeps_dots: dot == Some(false) })
        .max(USUAL_NAMES)
}

/// What the probe has found.
struct Found {
    folds: bool,
    has_colons: bool,
    keeps_dots: bool,
}

fn found(found: Found) -> Names {
    match found {
        Found { has_colons: false, .. } | Found { keeps_dots: false, .. } => Names::Windows,
        Found { folds: true, .. } => Names::Folded,
        Found { .. } => Names::Exact,
    }
}

/// Makes a file, and says whether it is there under another name too; `None` if it cannot be made.
fn made(private: &Path, name: &str, other: &str) -> Option<bool> {
    let path = private.join(name);
    fs::write(&path, []).ok()?;
    let is_there = fs::symlink_metadata(private.join(other)).is_ok();
    let _ = fs::remove_file(path);
    Some(is_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_taken_for_what_it_does() {
        let check = |folds, has_colons, keeps_dots, expected| {
            assert_eq!(found(Found { folds, has_colons, keeps_dots }), expected);
        };
        check(false, true, true, Names::Exact);
        check(true, true, true, Names::Folded);
        check(true, false, true, Names::Windows);
        check(true, true, false, Names::Windows);
    }

    #[test]
    fn the_probe_leaves_nothing_behind_and_agrees_with_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let names = names(folder.path());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        fs::write(folder.path().join("One"), []).unwrap();
        assert_eq!(names > Names::Exact, folder.path().join("one").exists());
        assert_eq!(super::names(&folder.path().join("missing")), USUAL_NAMES);
    }
}
