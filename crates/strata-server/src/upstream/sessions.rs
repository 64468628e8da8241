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
    /// The last prompt: its beginning, and the hash of each block of the rest.
    head: Vec<u8>,
    blocks: Vec<u64>,
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
    /// What it was made of: it is sent again only as long as nothing of that was forgotten.
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
    pub(crate) fn stable_share(&mut self, prompt: &[u8]) -> Option<f64> {
        let (head, rest) = prompt.split_at(prompt.len().min(HEAD_BYTES));
        let blocks: Vec<u64> = rest.chunks(BLOCK_BYTES).map(hash).collect();
        let mut stable = self.head.iter().zip(head).take_while(|(one, other)| one == other).count();
        if stable == HEAD_BYTES {
            let same = self.blocks.iter().zip(&blocks).take_while(|(one, other)| one == other).count();
            // The last block may be shorter than the others.
            stable = (HEAD_BYTES + same * BLOCK_BYTES).min(prompt.len());
        }
        let is_first = self.head.is_empty();
        self.head = head.to_vec();
        self.blocks = blocks;
        (!is_first).then(|| stable as f64 / prompt.len().max(1) as f64)
    }

    /// The tokens of a message, counted once.
    pub(crate) fn tokens(&mut self, key: u64, count: impl FnOnce() -> u32) -> u32 {
        if self.counts.len() >= MAX_COUNTS {
            self.counts.clear();
        }
        *self.counts.entry(key).or_insert_with(count)
    }
}

pub(crate) fn hash(bytes: &[u8]) -> u64 {
    strata_core::hash::in_process(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_a_prompt_that_stayed_is_measured() {
        let mut known = PromptHistory::default();
        let mut prompt = vec![b'a'; 640];
        assert_eq!(known.stable_share(&prompt), None);
        assert_eq!(known.stable_share(&prompt), Some(1.0));
        prompt.extend_from_slice(&[b'b'; 640]);
        assert_eq!(known.stable_share(&prompt), Some(0.5));
        prompt[0] = b'c';
        assert_eq!(known.stable_share(&prompt), Some(0.0));
        assert_eq!(known.stable_share(b"[hi]"), Some(0.0));
        assert_eq!(known.stable_share(b"[hi, ok]"), Some(3.0 / 8.0));
        assert_eq!(known.stable_share(b"[hi, ok]"), Some(1.0));
        let mut long = vec![b'd'; 4_000];
        known.stable_share(&long);
        assert_eq!(known.stable_share(&long), Some(1.0));
        long[3_000] = b'e';
        let share = known.stable_share(&long).unwrap();
        assert!(share > 0.7 && share <= 0.75, "{share}");
    }

    #[test]
    fn old_sessions_are_let_go() {
        let sessions = PromptHistories::default();
        let user = UserId::default();
        for number in 0..MAX_SESSIONS + 1 {
            let session = SessionId::new(number.to_string()).unwrap();
            sessions.with(&user, &session, |known| known.stable_share(b"prompt"));
        }
        assert!(sessions.0.lock().unwrap().len() <= MAX_SESSIONS);
        let last = SessionId::new(MAX_SESSIONS.to_string()).unwrap();
        assert!(sessions.with(&user, &last, |known| known.stable_share(b"prompt")).is_some());
    }
}
