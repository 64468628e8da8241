//! Chats that the store could not take yet: on a full disk, a failing one, or a file that was moved away.
//!
//! Such a chat is written into a file beside the store, if that is possible, and is otherwise kept in memory. Recording is
//! tried again until it succeeds. Files that a process leaves behind are recorded by the next one. Both places are bounded.
//! Beyond the bounds nothing more is kept, and chats go on without memory and say so ([`Spill::is_full`]).

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use strata_core::turn::NewMessage;
use strata_core::{SessionId, UserId};
use strata_engine::{Ending, ExchangeIds, Keeper};
use tokio::sync::Notify;

/// The most bytes that are kept in memory. A chat has some kilobytes, so this is an hour of ten chats a second.
const MEMORY_BYTES: usize = 64 << 20;

/// The most bytes that are kept in files.
const FILE_BYTES: usize = 256 << 20;

/// What could not be recorded yet.
#[derive(Default)]
pub(crate) struct Spill {
    folder: Option<PathBuf>,
    in_memory: AtomicUsize,
    in_files: AtomicUsize,
    is_full: AtomicBool,
    /// Told when the store works again.
    recorded: Notify,
    /// How often each user was forgotten. A chat that waits is dropped with its user.
    forgotten: Mutex<HashMap<UserId, u64>>,
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
    pub(crate) keeper: Keeper,
    /// The ids of the first attempt, so that one which seemed to fail is recognised.
    pub(crate) ids: ExchangeIds,
    pub(crate) ending: Ending,
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
        let file = folder.join(format!("{name}.json"));
        match write(folder, &file, &text) {
            Ok(()) => Some(Spilled { spill: self, bytes, file: Some(file) }),
            Err(error) => {
                tracing::debug!(%error, "a chat that cannot be recorded is kept in memory alone");
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

    /// Drops what is kept of a user.
    pub(crate) fn forget(&self, user: &UserId) {
        *self.lock().entry(user.clone()).or_default() += 1;
        for file in self.files() {
            let spilled = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
            if spilled.is_some_and(|spilled: SpilledExchange| spilled.user == *user) {
                let _ = fs::remove_file(file);
            }
        }
    }

    /// How often a user was forgotten.
    pub(crate) fn times_forgotten(&self, user: &UserId) -> u64 {
        self.lock().get(user).copied().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<UserId, u64>> {
        self.forgotten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files that are there.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let Some(entries) = self.folder.as_ref().and_then(|folder| fs::read_dir(folder).ok()) else {
            return Vec::new();
        };
        let files = entries.flatten().map(|entry| entry.path());
        let mut files: Vec<PathBuf> =
            files.filter(|file| file.extension().is_some_and(|extension| extension == "json")).collect();
        files.sort();
        files
    }
}

impl Spilled<'_> {
    /// The chat is recorded, or can never be.
    pub(crate) fn done(self) {
        if let Some(file) = &self.file {
            let _ = fs::remove_file(file);
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
    let partial = file.with_extension("partial");
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
            keeper: Keeper::Client,
            ids: ExchangeIds::new(uuid::Uuid::nil),
            ending: Ending::Complete(NewMessage::new(Role::Assistant, "fine")),
        }
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
    fn what_is_kept_of_a_forgotten_user_goes() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::new(Some(folder.path().join("spill")));
        let other = SpilledExchange { user: UserId::new("other").unwrap(), ..chat(3) };
        let _kept = [spill.keep("a", &chat(3)), spill.keep("b", &other)];
        spill.forget(&UserId::default());
        assert_eq!(spill.files(), [folder.path().join("spill/b.json")]);
        assert_eq!(spill.times_forgotten(&UserId::default()), 1);
        assert_eq!(spill.times_forgotten(&other.user), 0);
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
}
