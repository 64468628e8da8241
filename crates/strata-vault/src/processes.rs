//! The activity of other programs in the vault: which files they write, and whether git works there. Only Linux tells.

use std::collections::HashSet;
use std::path::Path;

/// The paths that a program has open for writing. A file that is replaced while its writer has it open loses what is written later.
pub(crate) fn being_written<'a>(root: &Path, paths: impl Iterator<Item = &'a str>) -> HashSet<String> {
    let paths: Vec<&str> = paths.collect();
    if paths.is_empty() { HashSet::new() } else { found(root, &paths) }
}

#[cfg(target_os = "linux")]
fn found(root: &Path, paths: &[&str]) -> HashSet<String> {
    use std::collections::HashMap;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    let mut wanted: HashMap<(u64, u64), &str> = HashMap::new();
    let mut names = HashSet::new();
    for path in paths {
        if let Ok(metadata) = fs::symlink_metadata(root.join(path)) {
            wanted.insert((metadata.dev(), metadata.ino()), path);
            names.insert(std::ffi::OsStr::new(path.rsplit('/').next().unwrap_or(path)));
        }
    }
    let mut written = HashSet::new();
    for process in processes() {
        let Ok(open) = fs::read_dir(process.join("fd")) else { continue };
        for file in open.flatten() {
            // The name first: asking for more may wait for a device.
            let is_named = |at: std::path::PathBuf| at.file_name().is_some_and(|name| names.contains(name));
            if !fs::read_link(file.path()).is_ok_and(is_named) {
                continue;
            }
            let Ok(metadata) = fs::metadata(file.path()) else { continue };
            if let Some(path) = wanted.get(&(metadata.dev(), metadata.ino()))
                && is_for_writing(&process.join("fdinfo").join(file.file_name()))
            {
                written.insert((*path).to_owned());
            }
        }
    }
    written
}

/// Whether git is working in a folder; `None` where the system does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn git_works_in(root: &Path) -> Option<bool> {
    let is_git = |process: &std::path::PathBuf| {
        let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
        let name = name.trim();
        (name == "git" || name.starts_with("git-"))
            && std::fs::read_link(process.join("cwd")).is_ok_and(|at| at.starts_with(root))
    };
    Some(processes().iter().any(is_git))
}

#[cfg(target_os = "linux")]
fn processes() -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_process))
        .map(|entry| entry.path())
        .collect()
}

/// Reads the flags of an open file, which are octal; the last two bits say how it is open.
#[cfg(target_os = "linux")]
fn is_for_writing(info: &Path) -> bool {
    let info = std::fs::read_to_string(info).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).is_some_and(|flags| flags & 3 != 0)
}

#[cfg(not(target_os = "linux"))]
fn found(_: &Path, _: &[&str]) -> HashSet<String> {
    HashSet::new()
}

/// Whether git is working in a folder; `None` where the system does not tell.
#[cfg(not(target_os = "linux"))]
pub(crate) fn git_works_in(_: &Path) -> Option<bool> {
    None
}
