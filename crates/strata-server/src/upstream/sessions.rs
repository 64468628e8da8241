//! The data that the proxy keeps for a session between two requests, in memory only: the last prompt, and the block
//! that was inserted into it. Losing it costs a cache hit of the model provider, never a memory.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;
use strata_core::{SessionId, UserId};
use strata_engine::BlockSources;

/// The most sessions that are kept. Above it, the least recently used one is dropped.
const MAX_SESSIONS: usize = 4_096;

/// The beginning of a prompt is compared byte by byte, up to this many bytes. Prompts that are so short that a block
/// matters mostly end within it.
const HEAD_BYTES: usize = 1_024;

/// The rest is compared in blocks of this many bytes, which costs an eighth of a prompt in memory.
const BLOCK_BYTES: usize = 64;

/// After this many blocks, the rest is compared in larger ones, so that a huge prompt costs little memory.
const SMALL_BLOCKS: usize = 16 * 1024;
const LARGE_BLOCK_BYTES: usize = 64 * 1024;

/// The most token counts that are kept for a session.
const MAX_COUNTS: usize = 8_192;

/// The histories, by user and session.
pub(crate) struct PromptHistories(Mutex<LruCache<(UserId, SessionId), PromptHistory>>);

impl Default for PromptHistories {
    fn default() -> Self {
        Self(Mutex::new(LruCache::unbounded()))
    }
}

/// The last prompt of a session.
#[derive(Default)]
pub(crate) struct PromptHistory {
    /// The last prompt.
    last: Option<PromptPrint>,
    /// The block in front of the last question.
    pub(crate) injected: Option<Injected>,
    /// The summary that replaces the messages with this hash.
    pub(crate) summary: Option<(u64, Option<String>)>,
    /// The tokens of messages, by the hash of the text.
    counts: HashMap<u64, u32>,
}

/// A block in front of a question.
#[derive(Clone)]
pub(crate) struct Injected {
    /// The hash of the conversation up to the question.
    pub(crate) upto: u64,
    pub(crate) block: Option<String>,
    pub(crate) items: u32,
    pub(crate) tokens: u32,
    /// The items that it was made of: it is sent again only as long as nothing of that was forgotten.
    pub(crate) sources: BlockSources,
}

impl PromptHistories {
    /// Reads or changes the history of a session.
    pub(crate) fn with<T>(
        &self,
        user: &UserId,
        session: &SessionId,
        look: impl FnOnce(&mut PromptHistory) -> T,
    ) -> T {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = look(sessions.get_or_insert_mut((user.clone(), session.clone()), PromptHistory::default));
        if sessions.len() > MAX_SESSIONS {
            sessions.pop_lru();
        }
        found
    }
}

impl PromptHistories {
    /// Drops the histories of a user.
    pub(crate) fn forget(&self, user: &UserId) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_user: Vec<_> =
            sessions.iter().map(|(key, _)| key).filter(|(of, _)| of == user).cloned().collect();
        for key in of_user {
            sessions.pop(&key);
        }
    }
}

impl PromptHistory {
    /// The share of this prompt's bytes that equals the beginning of the session's last prompt; `None` for the first
    /// prompt.
    pub(crate) fn stable_share(&mut self, prompt: PromptPrint) -> Option<f64> {
        let share = self.last.as_ref().map(|last| last.share_in(&prompt));
        self.last = Some(prompt);
        share
    }

    /// The tokens of a message, counted once.
    pub(crate) fn tokens(&mut self, key: u64, count: impl FnOnce() -> u32) -> u32 {
        if self.counts.len() >= MAX_COUNTS {
            self.counts.clear();
        }
        *self.counts.entry(key).or_insert_with(count)
    }
}

/// The parts of a prompt that are kept to compare the next one with it: its beginning, and the hash of each block of the rest.
#[derive(Default)]
pub(crate) struct PromptPrint {
    head: Vec<u8>,
    blocks: Vec<u64>,
    length: usize,
}

impl PromptPrint {
    /// The print of a prompt that is given in pieces.
    pub(crate) fn of<'p>(pieces: impl Iterator<Item = &'p [u8]>) -> Self {
        let mut print = Self::default();
        let mut block: Vec<u8> = Vec::new();
        for mut piece in pieces {
            print.length += piece.len();
            let (head, rest) = piece.split_at(piece.len().min(HEAD_BYTES - print.head.len()));
            print.head.extend_from_slice(head);
            piece = rest;
            while !piece.is_empty() {
                let size = block_bytes(print.blocks.len());
                let (part, rest) = piece.split_at(piece.len().min(size - block.len()));
                block.extend_from_slice(part);
                piece = rest;
                if block.len() == size {
                    print.blocks.push(hash(&block));
                    block.clear();
                }
            }
        }
        if !block.is_empty() {
            print.blocks.push(hash(&block));
        }
        print
    }

    /// The share of a prompt's bytes that this one begins with too.
    fn share_in(&self, prompt: &Self) -> f64 {
        let mut stable = self.head.iter().zip(&prompt.head).take_while(|(one, other)| one == other).count();
        if stable == HEAD_BYTES {
            let blocks = self.blocks.iter().zip(&prompt.blocks).enumerate();
            let same = blocks.take_while(|(_, (one, other))| one == other);
            stable += same.map(|(place, _)| block_bytes(place)).sum::<usize>();
        }
        // The last block may be shorter than the others.
        stable.min(prompt.length) as f64 / prompt.length.max(1) as f64
    }
}

/// The size of the block at a place.
fn block_bytes(place: usize) -> usize {
    if place < SMALL_BLOCKS { BLOCK_BYTES } else { LARGE_BLOCK_BYTES }
}

pub(crate) fn hash(bytes: &[u8]) -> u64 {
    strata_core::hash::in_process(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_a_prompt_that_stayed_is_measured() {
        let mut history = PromptHistory::default();
        let mut share = |prompt: &[u8]| history.stable_share(PromptPrint::of(prompt.chunks(100)));
        let mut prompt = vec![b'a'; 640];
        assert_eq!(share(&prompt), None);
        assert_eq!(share(&prompt), Some(1.0));
        prompt.extend_from_slice(&[b'b'; 640]);
        assert_eq!(share(&prompt), Some(0.5));
        prompt[0] = b'c';
        assert_eq!(share(&prompt), Some(0.0));
        assert_eq!(share(b"[hi]"), Some(0.0));
        assert_eq!(share(b"[hi, ok]"), Some(3.0 / 8.0));
        assert_eq!(share(b"[hi, ok]"), Some(1.0));
        let mut long = vec![b'd'; 4_000];
        share(&long);
        assert_eq!(share(&long), Some(1.0));
        long[3_000] = b'e';
        let left = share(&long).unwrap();
        assert!(left > 0.7 && left <= 0.75, "{left}");
        let mut huge = vec![b'f'; 4 * 1024 * 1024];
        share(&huge);
        assert_eq!(share(&huge), Some(1.0));
        huge[3 * 1024 * 1024] = b'g';
        let left = share(&huge).unwrap();
        assert!(left > 0.7 && left <= 0.75, "{left}");
    }

    #[test]
    fn old_sessions_are_let_go() {
        let sessions = PromptHistories::default();
        let user = UserId::default();
        for number in 0..MAX_SESSIONS + 1 {
            let session = SessionId::new(number.to_string()).unwrap();
            sessions.with(&user, &session, |known| {
                known.stable_share(PromptPrint::of([b"prompt".as_slice()].into_iter()))
            });
        }
        assert!(sessions.0.lock().unwrap().len() <= MAX_SESSIONS);
        let last = SessionId::new(MAX_SESSIONS.to_string()).unwrap();
        assert!(
            sessions
                .with(&user, &last, |known| known
                    .stable_share(PromptPrint::of([b"prompt".as_slice()].into_iter())))
                .is_some()
        );
    }
}
