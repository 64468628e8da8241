//! Where a file lies in the vault, and what its place says about it.
//!
//! The default user's files lie under `entries/`, as the memory-proxy design has it, and every other user's under
//! `users/<user>/entries/`. The front matter names the conversation; the folder names it only for files that do not.

use std::collections::BTreeSet;

use jiff::Timestamp;
use strata_core::file_name::{Named, Names, file_stem_on, read_stem_of_any};
use strata_core::store::Change;
use strata_core::summary::{Strategy, Summary};
use strata_core::turn::Role;
use strata_core::{KeyId, Memory, Result, SessionId, Turn, UserId};

/// The name under which the design keeps what holds for all conversations.
pub(crate) const GLOBAL: &str = "global";
/// The folder of Strata's own data: the index, the snapshot and the locks.
pub(crate) const PRIVATE: &str = ".strata";
/// The folder of the API keys.
pub(crate) const KEYS: &str = "keys";
/// The folder of the users other than the default one.
pub(crate) const USERS: &str = "users";
/// The folder of a user's conversations.
pub(crate) const ENTRIES: &str = "entries";
/// The folder of a conversation's deleted files.
const DELETED: &str = "deleted";
/// The spelling of a conversation whose name is that of the folder of deleted files.
const ESCAPED_DELETED: &str = "%64eleted";
/// A session's own file.
const SESSION_FILE: &str = "session.json";
/// The endings of copies that editors make of a file.
const COPIES: [&str; 6] = [".swp", ".swo", ".swn", ".bak", ".orig", ".tmp"];
/// The name of a user whose folder does not tell it.
pub(crate) const USER_FILE: &str = "user.json";

/// The kinds of folders by their content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folder {
    /// Memories.
    Facts,
    /// Turns of a role.
    Turns(Role),
    /// Summaries of a level; 0 if the folder does not tell it.
    Summaries(u8),
    /// None of them.
    Other,
}

/// The place of a file, read from its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The folder of its user under `users/`; `None` for the default user.
    pub(crate) user_folder: Option<String>,
    /// The conversation, if the folder tells it.
    pub(crate) conversation: Option<String>,
    /// Whether it lies among deleted files.
    pub(crate) deleted: bool,
    /// The kind of its folder.
    pub(crate) folder: Folder,
    /// The kind of the file.
    pub(crate) file: FileKind,
}

/// The kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A Markdown file.
    Entry,
    /// A session's own file.
    Session,
    /// An API key.
    Key,
}

/// The place of a path that is relative to the vault; `None` for a file that is none of Strata's.
pub(crate) fn place(path: &str) -> Option<Place> {
    let parts: Vec<&str> = path.split('/').collect();
    let (name, _) = parts.split_last()?;
    if name.starts_with(['.', '~', '#']) || name.ends_with('~') {
        return None;
    }
    if let [KEYS, name] = parts.as_slice() {
        let is_key = name.ends_with(".json");
        return is_key.then(|| Place::of(None, None, false, Folder::Other, FileKind::Key));
    }
    let (user_folder, rest) = match parts.as_slice() {
        [ENTRIES, rest @ ..] => (None, rest),
        [USERS, user, ENTRIES, rest @ ..] => (Some((*user).to_owned()), rest),
        _ => return None,
    };
    let (file, folders) = rest.split_last()?;
    // Earlier versions of the design's program keep all deleted files in one folder.
    let (conversation, deleted, folders) = match folders {
        [DELETED, conversation, folders @ ..] => (Some(*conversation), true, folders),
        [conversation, DELETED, folders @ ..] => (Some(*conversation), true, folders),
        [conversation, folders @ ..] => (Some(*conversation), false, folders),
        [] => (None, false, folders),
    };
    if *file == SESSION_FILE && folders.is_empty() {
        return Some(Place::of(user_folder, conversation, deleted, Folder::Other, FileKind::Session));
    }
    let is_entry = file.to_ascii_lowercase().ends_with(".md");
    is_entry.then(|| Place::of(user_folder, conversation, deleted, folder(folders), FileKind::Entry))
}

fn folder(folders: &[&str]) -> Folder {
    match folders {
        ["facts", ..] => Folder::Facts,
        ["turns", role, ..] => role.parse().map_or(Folder::Other, Folder::Turns),
        ["summaries", level, ..] => {
            Folder::Summaries(level.strip_prefix('L').and_then(|level| level.parse().ok()).unwrap_or(0))
        }
        ["summaries"] => Folder::Summaries(0),
        _ => Folder::Other,
    }
}

impl Place {
    fn of(
        user_folder: Option<String>,
        conversation: Option<&str>,
        deleted: bool,
        folder: Folder,
        file: FileKind,
    ) -> Self {
        let conversation = conversation.map(|name| match name {
            ESCAPED_DELETED => DELETED.to_owned(),
            name => match read_stem_of_any(name) {
                Named::Session(id) => id,
                Named::Digest | Named::Foreign => name.to_owned(),
            },
        });
        Self { user_folder, conversation, deleted, folder, file }
    }

    /// The user whose file it is, unless the folder's name is a digest.
    pub(crate) fn user(&self) -> Option<UserId> {
        let Some(folder) = &self.user_folder else { return Some(UserId::default()) };
        match read_stem_of_any(folder) {
            Named::Session(name) => UserId::from_stored(name).ok(),
            Named::Digest | Named::Foreign => None,
        }
    }
}

/// The folder of a user, with a slash at its end; empty for the default user.
pub(crate) fn user_folder(names: Names, user: &UserId) -> Result<String> {
    if *user == UserId::default() {
        return Ok(String::new());
    }
    Ok(format!("{USERS}/{}/", file_stem_on(names, user.as_str())?))
}

/// Whether a folder under `users/` is that of a user, on whichever file system it was made.
pub(crate) fn is_folder_of(folder: &str, user: &UserId) -> bool {
    let spellings = [Names::Exact, Names::Folded, Names::Windows];
    spellings.iter().any(|names| file_stem_on(*names, user.as_str()).is_ok_and(|own| own == folder))
}

/// Whether a user's folder does not tell the user's name.
pub(crate) fn needs_user_file(names: Names, user: &UserId) -> Result<bool> {
    let folder = file_stem_on(names, user.as_str())?;
    Ok(*user != UserId::default() && read_stem_of_any(&folder) != Named::Session(user.to_string()))
}

/// The folder of a conversation, without a slash at its end.
pub(crate) fn conversation(names: Names, user: &UserId, conversation: &str) -> Result<String> {
    let stem = file_stem_on(names, conversation)?;
    let stem = if stem == DELETED { ESCAPED_DELETED.to_owned() } else { stem };
    Ok(format!("{}{ENTRIES}/{stem}", user_folder(names, user)?))
}

/// The folder in which earlier versions of the design keep the deleted files of the conversation in this folder.
pub(crate) fn early_deleted(conversation: &str) -> String {
    let (folder, name) = conversation.rsplit_once('/').unwrap_or(("", conversation));
    format!("{folder}/{DELETED}/{name}")
}

/// Whether a file is by its name an entry, or the copy of one that an editor has left.
pub(crate) fn is_copy(name: &str) -> bool {
    let name = name.trim_start_matches(['.', '#', '~']).trim_end_matches(['~', '#']).to_ascii_lowercase();
    let ended = COPIES.iter().find_map(|end| name.strip_suffix(end));
    ended.unwrap_or(&name).ends_with(".md")
}

/// The folder that agent-cli gives a conversation, where it is another one than Strata's. Conversations with similar names share it.
pub(crate) fn agent_cli_conversation(names: Names, user: &UserId, name: &str) -> Result<Option<String>> {
    let keep = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '.' | '_') { c } else { '_' };
    let slug: String = name.chars().map(keep).collect();
    // Its own folder of deleted files, and one that is not looked into.
    if slug == DELETED || slug.starts_with('.') {
        return Ok(None);
    }
    let folder = format!("{}{ENTRIES}/{slug}", user_folder(names, user)?);
    Ok((folder != conversation(names, user, name)?).then_some(folder))
}

/// The path of a session's own file.
pub(crate) fn session_path(names: Names, user: &UserId, session: &SessionId) -> Result<String> {
    Ok(format!("{}/{SESSION_FILE}", conversation(names, user, session.as_str())?))
}

/// The path of a key.
pub(crate) fn key_path(id: KeyId) -> String {
    format!("{KEYS}/{id}.json")
}

/// The path of a turn that has no file yet.
pub(crate) fn turn_path(names: Names, user: &UserId, turn: &Turn) -> Result<String> {
    let folder = conversation(names, user, turn.session.as_str())?;
    let deleted = if turn.hidden.is_some() { "deleted/" } else { "" };
    let name = dated(turn.created_at, turn.id);
    Ok(format!("{folder}/{deleted}turns/{}/{name}", turn.role.as_str()))
}

/// The folders of the files that a change makes.
pub(crate) fn folders_of(names: Names, user: &UserId, change: &Change) -> Result<BTreeSet<String>> {
    let folder = |session: &str| conversation(names, user, session);
    Ok(match change {
        Change::AppendTurns { session, turns } => {
            let folder = folder(session.as_str())?;
            turns.iter().map(|turn| format!("{folder}/turns/{}", turn.role.as_str())).collect()
        }
        Change::AddMemory(memory) => {
            let path = memory_path(names, user, memory)?;
            path.rsplit_once('/').map(|(folder, _)| folder.to_owned()).into_iter().collect()
        }
        _ => BTreeSet::new(),
    })
}

/// The path of a memory that has no file yet.
pub(crate) fn memory_path(names: Names, user: &UserId, memory: &Memory) -> Result<String> {
    let folder = conversation(names, user, memory.session.as_ref().map_or(GLOBAL, SessionId::as_str))?;
    let deleted = if memory.is_current() { "" } else { "deleted/" };
    Ok(format!("{folder}/{deleted}facts/{}", dated(memory.recorded_at, memory.id)))
}

/// The folder of a summary.
pub(crate) fn summary_folder(names: Names, user: &UserId, summary: &Summary) -> Result<String> {
    let folder = conversation(names, user, summary.session.as_str())?;
    let level = match summary.strategy {
        Strategy::Tree => format!("L{}", summary.level),
        other => other.as_str().to_owned(),
    };
    Ok(format!("{folder}/summaries/{level}"))
}

/// The name of a summary's file: the design numbers the parts of a tree and has one root.
pub(crate) fn summary_name(summary: &Summary, number: usize) -> String {
    match (summary.strategy, summary.level) {
        (Strategy::Tree, 1) => format!("chunk_{number}.md"),
        (Strategy::Tree, 2) => format!("group_{number}.md"),
        (Strategy::Tree, 3) if number == 0 => "final.md".to_owned(),
        _ => dated(summary.created_at, summary.id),
    }
}

/// The same file among deleted files, or no longer among them.
pub(crate) fn moved(path: &str, deleted: bool) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    let start = if parts.first() == Some(&USERS) { 3 } else { 1 };
    let is_deleted = [start, start + 1].into_iter().find(|at| parts.get(*at) == Some(&DELETED));
    match (is_deleted, deleted) {
        (Some(at), false) => drop(parts.remove(at)),
        // A file outside a conversation's folder stays where it is.
        (None, true) if parts.len() > start + 1 => parts.insert(start + 1, DELETED),
        _ => {}
    }
    parts.join("/")
}

/// A name that sorts by time and holds the id.
fn dated(at: Timestamp, id: impl std::fmt::Display) -> String {
    let at: String = at.to_string().chars().map(|c| if c == ':' { '-' } else { c }).collect();
    format!("{at}__{id}.md")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_disk_that_ignores_case_no_two_names_share_a_folder() {
        let (upper, lower) = (UserId::new("Bo").unwrap(), UserId::new("bo").unwrap());
        let sessions = ["Harbour", "harbour", "tide:1", "tide", "mist.", "mist", "Deleted", "deleted"];
        for names in [Names::Folded, Names::Windows] {
            let mut seen = std::collections::BTreeSet::new();
            for user in [&upper, &lower] {
                for session in sessions {
                    let folder = conversation(names, user, session).unwrap();
                    assert!(seen.insert(folder.to_lowercase()), "{folder}");
                    let place = place(&format!("{folder}/facts/x.md")).unwrap();
                    assert_eq!(
                        (place.user().as_ref(), place.conversation.as_deref()),
                        (Some(user), Some(session))
                    );
                    assert!(is_folder_of(place.user_folder.as_deref().unwrap(), user));
                }
            }
        }
        assert_eq!(conversation(Names::Exact, &upper, "Harbour").unwrap(), "users/Bo/entries/Harbour");
        assert!(!is_folder_of("%62o", &lower) && !is_folder_of("bo", &upper));
    }

    #[test]
    fn a_path_tells_its_place() {
        let check = |path: &str, conversation: &str, deleted, expected| {
            let place = place(path).unwrap();
            assert_eq!(place.conversation.as_deref(), Some(conversation), "{path}");
            assert_eq!((place.deleted, place.folder), (deleted, expected), "{path}");
        };
        check("entries/a/facts/x.md", "a", false, Folder::Facts);
        check("entries/a/turns/user/x.md", "a", false, Folder::Turns(Role::User));
        check("entries/a/deleted/summaries/L2/group_0.md", "a", true, Folder::Summaries(2));
        check("entries/deleted/a/facts/x.md", "a", true, Folder::Facts);
        check("entries/%64eleted/facts/x.md", "deleted", false, Folder::Facts);
        check("users/bo/entries/a%2Fb/note.MD", "a/b", false, Folder::Other);
        for foreign in [
            "README.md",
            "entries/a/facts/.x.md",
            "entries/a/facts/x.md~",
            "entries/a/facts/x.txt",
            ".strata/x.md",
        ] {
            assert_eq!(place(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn the_copies_that_editors_leave_are_known_by_their_names() {
        for name in ["a.md", "A.MD", ".a.md.swp", "a.md~", "#a.md#", ".#a.md", "a.md.bak", "\u{fffd}.md"] {
            assert!(is_copy(name), "{name}");
        }
        for name in ["a.txt", "photo.png", ".DS_Store", "a.md.zip", "md", "session.json"] {
            assert!(!is_copy(name), "{name}");
        }
        assert_eq!(early_deleted("users/bo/entries/a"), "users/bo/entries/deleted/a");
    }

    #[test]
    fn a_file_moves_among_the_deleted_and_back() {
        let check = |path: &str, expected: &str| {
            assert_eq!(moved(path, true), expected);
            assert_eq!(moved(expected, true), expected);
            assert_eq!(moved(expected, false), path);
        };
        check("entries/a/facts/x.md", "entries/a/deleted/facts/x.md");
        check("users/bo/entries/a/turns/user/x.md", "users/bo/entries/a/deleted/turns/user/x.md");
        assert_eq!(moved("entries/deleted/a/facts/x.md", false), "entries/a/facts/x.md");
    }
}
