//! Replies that a provider works on in the background: the client fetches them later, and they are recorded then.
//!
//! They are known to this process alone. If it ends, or a reply is never fetched, the exchange is recorded as one without a
//! reply.

use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;
use strata_engine::Ending;

/// The most replies that are awaited; the one that was asked for the longest time ago is given up first.
const MAX_AWAITED: NonZeroUsize = NonZeroUsize::new(1_024).unwrap();

/// How long a reply is awaited. OpenAI keeps such replies for about ten minutes, and research may take half an hour.
const LONGEST_WAIT: Duration = Duration::from_secs(3 * 3_600);

/// Records the end of a reply. The result resolves when the end may be passed on. If it is dropped, the exchange is recorded
/// as interrupted.
pub(crate) type RecordEnding = Box<dyn FnOnce(Ending) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// The place of a reply: the number of its upstream, and its id there.
pub(crate) type BackgroundId = (usize, String);

/// The awaited replies.
#[derive(Clone)]
pub(crate) struct BackgroundReplies(Arc<Mutex<LruCache<BackgroundId, RecordEnding>>>);

impl Default for BackgroundReplies {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(LruCache::new(MAX_AWAITED))))
    }
}

impl BackgroundReplies {
    /// Awaits a reply.
    pub(crate) fn wait_for(&self, id: BackgroundId, record: RecordEnding) {
        let (replies, awaited) = (self.clone(), id.clone());
        tokio::spawn(async move {
            tokio::time::sleep(LONGEST_WAIT).await;
            drop(replies.take(&awaited));
        });
        // The oldest one, or one with the same id, is dropped outside the lock.
        let given_up = self.locked(|replies| replies.push(id, record));
        drop(given_up);
    }

    pub(crate) fn is_awaited(&self, id: &BackgroundId) -> bool {
        self.locked(|replies| replies.contains(id))
    }

    /// Ends the wait. Only one caller gets it, so a reply is recorded once.
    pub(crate) fn take(&self, id: &BackgroundId) -> Option<RecordEnding> {
        self.locked(|replies| replies.pop(id))
    }

    /// Gives all of them up.
    pub(crate) fn give_up(&self) {
        let all = self.locked(|replies| std::mem::replace(replies, LruCache::new(MAX_AWAITED)));
        drop(all);
    }

    fn locked<T>(&self, use_it: impl FnOnce(&mut LruCache<BackgroundId, RecordEnding>) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
