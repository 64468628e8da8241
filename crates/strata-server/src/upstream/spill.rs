//! Chats that the store could not take yet: on a full disk, a failing one, or a file that was moved away.
//!
//! Such a chat is written into a file beside the store, if that is possible, and is otherwise kept in memory. Recording is
//! tried again until it succeeds. Files that a process leaves behind are recorded by the next one. Both places are bounded.
//! Beyond the bounds nothing more is kept, and chats go on without memory and say so ([`Spill::is_full`]).
//!
//! A chat that the store refuses for good stays in the folder with the ending `refused`, where a person finds it. A file
//! that disappears was recorded by another process, or its user or its session was forgotten there.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use strata_core::turn::NewMessage;
use strata_core::{SessionId, UserId};
use strata_engine::{Ending, ExchangeIds, KeptBy};
use tokio::sync::Notify;

use super::owed::Owed;

/// The most bytes that are kept in memory. A chat has some kilobytes, so this is an hour of ten chats a second.
const MEMORY_BYTES: usize = 64 << 20;

/// The most bytes that are kept in files.
const FILE_BYTES: usize = 256 << 20;

/// The most bytes of refused chats; beyond it the oldest are removed.
const REFUSED_BYTES: u64 = 64 << 20;

/// The endings of the names of files: chats, chats that the store refused, and files that are being written.
const CHAT: &str = "json";
const REFUSED: &str = "refused";
const PARTIAL: &str = "partial";

/// The exchanges that could not be recorded yet.
#[derive(Default)]
pub(crate) struct Spill {
    folder: Option<PathBuf>,
    in_memory: AtomicUsize,
    in_files: AtomicUsize,
    is_full: AtomicBool,
    /// Told when the store works again.
    recorded: Notify,
    /// The order in which chats are recorded.
    pub(crate) owed: Owed,
}

/// A chat in the spill. If this is dropped before [`Spilled::done`], its file stays for the next process.
pub(crate) struct Spilled<'a> {
    spill: &'a Spill,
    bytes: usize,
    file: Option<PathBuf>,
}

/// A chat as it is written into a file.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct SpilledExchange {
    pub(crate) user: UserId,
    pub(crate) session: SessionId,
    pub(crate) messages: Vec<NewMessage>,
    /// Who keeps the conversation.
    pub(crate) keeper: KeptBy,
    /// The ids of the first attempt, so that one which seemed to fail is recognised.
    pub(crate) ids: ExchangeIds,
    pub(crate) ending: Ending,
}

/// The beginning of a kept chat: whose it is.
#[derive(Deserialize)]
struct Owner {
    user: UserId,
    session: SessionId,
}

impl SpilledExchange {
    /// The reply.
    pub(crate) fn reply(&self) -> &NewMessage {
        match &self.ending {
            Ending::Complete(message) | Ending::Interrupted(message) | Ending::Failed(message) => message,
        }
    }

    fn size(&self) -> usize {
        self.messages.iter().chain([self.reply()]).map(|message| message.content.len() + 256).sum()
    }
}

impl Spill {
    /// A spill with its files in `folder`; without a folder, in memory alone.
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, ..Self::default() }
    }

    /// Whether the spill has overflowed, so that nothing more can be kept. A spill without chats is never full, although a
    /// single chat may be too large for it.
    pub(crate) fn is_full(&self) -> bool {
        let kept = self.in_memory.load(Ordering::Relaxed) + self.in_files.load(Ordering::Relaxed);
        kept > 0 && self.is_full.load(Ordering::Relaxed)
    }

    /// Keeps a chat; `None` if there is no room for it.
    pub(crate) fn keep(&self, name: &str, exchange: &SpilledExchange) -> Option<Spilled<'_>> {
        let bytes = exchange.size();
        let kept = self.keep_in_file(name, exchange, bytes).or_else(|| {
            let fits = take(&self.in_memory, bytes, MEMORY_BYTES);
            fits.then(|| Spilled { spill: self, bytes, file: None })
        });
        if kept.is_none() {
            self.is_full.store(true, Ordering::Relaxed);
        }
        kept
    }

    fn keep_in_file(&self, name: &str, exchange: &SpilledExchange, bytes: usize) -> Option<Spilled<'_>> {
        let folder = self.folder.as_ref()?;
        let text = serde_json::to_vec(exchange).ok()?;
        if !take(&self.in_files, bytes, FILE_BYTES) {
            return None;
        }
        let file = folder.join(format!("{name}.{CHAT}"));
        match write(folder, &file, &text) {
            Ok(()) => Some(Spilled { spill: self, bytes, file: Some(file) }),
            Err(error) => {
                tracing::debug!(%error, "a chat that cannot be recorded is kept in memory alone");
                let _ = fs::remove_file(file.with_extension(PARTIAL));
                let _ = fs::remove_file(&file);
                self.in_files.fetch_sub(bytes, Ordering::Relaxed);
                None
            }
        }
    }

    /// Notes that the store works, so that files of an earlier process are tried again.
    pub(crate) fn works(&self) {
        self.recorded.notify_one();
    }

    /// Returns when the store works.
    pub(crate) async fn until_works(&self) {
        self.recorded.notified().await;
    }

    /// Drops the files of a user, or of one of the user's sessions.
    pub(crate) fn forget(&self, user: &UserId, session: Option<&SessionId>) {
        if let Some(folder) = &self.folder {
            forget_in(folder, user, session);
        }
    }

    /// The chats that are there, the oldest first.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.folder.as_ref().map_or_else(Vec::new, |folder| files_in(folder, &[CHAT]))
    }

    /// Removes the files that an earlier process was writing when it died. They are no chats yet.
    pub(crate) fn remove_partial(&self) {
        for file in self.folder.iter().flat_map(|folder| files_in(folder, &[PARTIAL])) {
            let _ = fs::remove_file(file);
        }
    }
}

/// Puts a file aside that the store refuses for good.
pub(crate) fn set_aside(file: &Path) {
    let refused = file.with_extension(REFUSED);
    if let Err(error) = fs::rename(file, &refused) {
        tracing::error!(%error, file = %file.display(), "a chat that the store refuses cannot be put aside");
        return;
    }
    tracing::error!(file = %refused.display(), "the store refuses a chat for good; it is put aside");
    let all = file.parent().map_or_else(Vec::new, |folder| files_in(folder, &[REFUSED]));
    let mut bytes = 0;
    for file in all.iter().rev() {
        bytes += fs::metadata(file).map_or(0, |metadata| metadata.len());
        if bytes > REFUSED_BYTES {
            let _ = fs::remove_file(file);
        }
    }
}

/// Removes the kept chats of a user, or of one of the user's sessions, from the folder of a spill, and returns how many
/// there were. A process that waits to record one of them notices that its file is gone, and drops it.
pub fn forget_in(folder: &Path, user: &UserId, session: Option<&SessionId>) -> usize {
    let mut removed = 0;
    for file in files_in(folder, &[CHAT, REFUSED]) {
        let owner = fs::read(&file).ok().and_then(|text| serde_json::from_slice::<Owner>(&text).ok());
        let is_theirs = owner.is_some_and(|owner| {
            owner.user == *user && session.is_none_or(|session| owner.session == *session)
        });
        if is_theirs && fs::remove_file(file).is_ok() {
            removed += 1;
        }
    }
    // It cannot be read whose these are. A process that is writing one keeps its chat in memory then.
    for file in files_in(folder, &[PARTIAL]) {
        let _ = fs::remove_file(file);
    }
    removed
}

fn files_in(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_asked = |file: &PathBuf| {
        file.extension().is_some_and(|extension| endings.iter().any(|ending| extension == *ending))
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_asked).collect();
    files.sort();
    files
}

impl Spilled<'_> {
    /// Whether the file has disappeared: another process has recorded the chat, or has forgotten its user or session.
    pub(crate) fn is_gone(&self) -> bool {
        let is_missing = |file: &PathBuf| {
            fs::symlink_metadata(file).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        };
        self.file.as_ref().is_some_and(is_missing)
    }

    /// The chat is recorded, or is not wanted any more.
    pub(crate) fn done(self) {
        if let Some(file) = &self.file {
            let _ = fs::remove_file(file);
        }
    }

    /// The store refuses the chat for good.
    pub(crate) fn refused(self) {
        if let Some(file) = &self.file {
            set_aside(file);
        }
    }
}

impl Drop for Spilled<'_> {
    fn drop(&mut self) {
        let place = if self.file.is_some() { &self.spill.in_files } else { &self.spill.in_memory };
        let left = place.fetch_sub(self.bytes, Ordering::Relaxed) - self.bytes;
        if left < MEMORY_BYTES / 2 {
            self.spill.is_full.store(false, Ordering::Relaxed);
        }
    }
}

/// Takes `bytes` of a place, if there are as many left.
fn take(place: &AtomicUsize, bytes: usize, most: usize) -> bool {
    place
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            taken.checked_add(bytes).filter(|taken| *taken <= most)
        })
        .is_ok()
}

fn write(folder: &Path, file: &Path, text: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // A file that is not whole must not be taken for a chat.
    let partial = file.with_extension(PARTIAL);
    let mut written = options.open(&partial)?;
    written.write_all(text)?;
    written.sync_all()?;
    fs::rename(&partial, file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use strata_core::Role;

    fn chat(words: usize) -> SpilledExchange {
        SpilledExchange {
            user: UserId::default(),
            session: SessionId::default(),
            messages: vec![NewMessage::new(Role::User, "word ".repeat(words))],
            keeper: KeptBy::Client,
            ids: ExchangeIds::new(uuid::Uuid::nil),
            ending: Ending::Complete(NewMessage::new(Role::Assistant, "fine")),
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let files = files_in(folder, &[CHAT, REFUSED, PARTIAL]);
        files.iter().map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_full_spill_says_so_until_there_is_room_again() {
        let spill = Spill::new(None);
        let large = chat(MEMORY_BYTES / 5 - 1_000);
        let kept = spill.keep("a", &large).expect("there is room");
        assert!(!spill.is_full());
        assert!(spill.keep("b", &large).is_none());
        assert!(spill.is_full());
        drop(kept);
        assert!(!spill.is_full());
        assert!(spill.keep("c", &large).is_some());
        assert!(spill.keep("d", &chat(MEMORY_BYTES)).is_none());
        assert!(!spill.is_full(), "nothing is kept");
    }

    #[test]
    fn what_is_kept_of_a_forgotten_user_or_session_goes() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("spill");
        let spill = Spill::new(Some(folder.clone()));
        let other = SpilledExchange { user: UserId::new("other").unwrap(), ..chat(3) };
        let elsewhere = SpilledExchange { session: SessionId::new("t").unwrap(), ..chat(3) };
        let mut kept = [("a", &chat(3)), ("b", &other), ("c", &elsewhere), ("d", &chat(3))]
            .map(|(name, chat)| spill.keep(name, chat));
        kept[3].take().unwrap().refused();
        fs::write(folder.join("e.partial"), "{").unwrap();
        assert_eq!(names(&folder), ["a.json", "b.json", "c.json", "d.refused", "e.partial"]);
        spill.forget(&UserId::default(), Some(&elsewhere.session));
        assert_eq!(names(&folder), ["a.json", "b.json", "d.refused"]);
        assert_eq!(forget_in(&folder, &UserId::default(), None), 2);
        assert_eq!(names(&folder), ["b.json"]);
        let gone: Vec<bool> = kept.iter().flatten().map(Spilled::is_gone).collect();
        assert_eq!(gone, [true, false, true]);
    }

    #[test]
    fn a_kept_chat_is_a_file_until_it_is_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::new(Some(folder.path().join("spill")));
        let kept = spill.keep("a", &chat(3)).unwrap();
        assert_eq!(spill.files().len(), 1);
        let text = fs::read(&spill.files()[0]).unwrap();
        let read: SpilledExchange = serde_json::from_slice(&text).unwrap();
        assert_eq!((read.messages, read.ending), (chat(3).messages, chat(3).ending));
        kept.done();
        assert!(spill.files().is_empty());
        // A folder that cannot be written leaves the memory.
        let spill = Spill::new(Some("/dev/null/no-folder".into()));
        assert!(spill.keep("a", &chat(3)).is_some());
        assert!(spill.files().is_empty());
    }

    #[test]
    fn a_file_that_cannot_be_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::new(Some(folder.path().to_owned()));
        // The name is taken by a folder, so the last step fails.
        fs::create_dir_all(folder.path().join("a.json/x")).unwrap();
        let kept = spill.keep("a", &chat(3)).unwrap();
        assert!(kept.file.is_none());
        assert_eq!(names(folder.path()), ["a.json"]);
        fs::write(folder.path().join("b.partial"), "{").unwrap();
        spill.remove_partial();
        assert_eq!(names(folder.path()), ["a.json"]);
    }
}
