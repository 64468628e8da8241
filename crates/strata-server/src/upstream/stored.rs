//! The responses and conversations that upstreams store: their paths, the upstream that keeps each, and its user.
//!
//! Requests of all users may go to an upstream with one key, so the provider cannot tell the users apart. Strata notes
//! for whom it saw an id first. That is known to this process alone: the user of an id from before a restart stays unknown until
//! somebody uses the id. Its upstream is found in the store, or asked for (`proxy::locating`).

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;
use strata_core::UserId;

/// The most ids that are known; the one that was used the longest time ago is dropped first.
const MAX_IDS: NonZeroUsize = NonZeroUsize::new(16_384).unwrap();

/// A longer text is no id of a provider's.
const MAX_ID_BYTES: usize = 512;

/// A path of something that a provider stores: a conversation, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredPath<'a> {
    /// Its id; `None` for the list of all, and for creating one.
    pub(crate) id: Option<&'a str>,
    /// Whether a request that creates one gets its id in a document, and says nothing itself.
    pub(crate) is_container: bool,
}

impl<'a> StoredPath<'a> {
    /// Reads a path that was made plain.
    pub(crate) fn of(path: &'a str) -> Option<Self> {
        let mut segments = path.split('/').filter(|segment| !segment.is_empty()).peekable();
        match segments.next()? {
            "v1" => {}
            "openai" => match *segments.peek()? {
                "v1" => drop(segments.next()),
                "deployments" => drop((segments.next(), segments.next())),
                _ => {}
            },
            _ => return None,
        }
        let (is_container, actions): (bool, &[&str]) = match segments.next()? {
            "responses" => (false, &["compact", "input_tokens"]),
            "conversations" => (true, &[]),
            "threads" => (true, &["runs"]),
            "batches" => (false, &[]),
            "chat" => match segments.next()? {
                "completions" => (false, &[]),
                _ => return None,
            },
            "messages" => match segments.next()? {
                "batches" => (false, &[]),
                _ => return None,
            },
            _ => return None,
        };
        let id = segments.next();
        match id.is_some_and(|id| actions.contains(&id)) {
            true => None,
            false => Some(Self { id, is_container }),
        }
    }
}

/// Where something is stored, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Home {
    upstream: usize,
    owner: Option<UserId>,
}

/// The homes of what is stored, by its id.
pub(crate) struct Homes(Mutex<LruCache<String, Home>>);

impl Default for Homes {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_IDS)))
    }
}

impl Homes {
    /// The upstream that keeps an id.
    pub(crate) fn upstream(&self, id: &str) -> Option<usize> {
        self.locked(|homes| homes.get(id).map(|home| home.upstream))
    }

    /// Whether an id belongs to somebody else than this user.
    pub(crate) fn is_foreign(&self, id: &str, user: &UserId) -> bool {
        self.locked(|homes| {
            homes.get(id).and_then(|home| home.owner.as_ref()).is_some_and(|owner| owner != user)
        })
    }

    /// Notes an id that an upstream has just made for a user.
    pub(crate) fn made(&self, id: &str, upstream: usize, owner: Option<&UserId>) {
        if id.len() <= MAX_ID_BYTES {
            let home = Home { upstream, owner: owner.cloned() };
            self.locked(|homes| homes.put(id.to_owned(), home));
        }
    }

    /// Notes an id that an upstream has accepted from a user. Whose it is known to be stays so. Returns whether its upstream was unknown.
    pub(crate) fn used(&self, id: &str, upstream: usize, owner: Option<&UserId>) -> bool {
        let is_known = self.locked(|homes| {
            let known = homes.get_mut(id);
            known.map(|home| home.owner = home.owner.take().or(owner.cloned())).is_some()
        });
        if !is_known {
            self.made(id, upstream, owner);
        }
        !is_known
    }

    fn locked<T>(&self, use_it: impl FnOnce(&mut LruCache<String, Home>) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_what_is_stored() {
        let check = |path: &str, expected: Option<(Option<&str>, bool)>| {
            let found = StoredPath::of(path).map(|found| (found.id, found.is_container));
            assert_eq!(found, expected, "{path}");
        };
        for prefix in ["/v1", "/openai/v1", "/openai", "/openai/deployments/d"] {
            check(&format!("{prefix}/responses/r_1/input_items"), Some((Some("r_1"), false)));
            check(&format!("{prefix}/chat/completions"), Some((None, false)));
            check(&format!("{prefix}/chat/completions/c_1/"), Some((Some("c_1"), false)));
        }
        check("/v1/conversations", Some((None, true)));
        check("/v1/conversations/c_1/items", Some((Some("c_1"), true)));
        check("/v1/threads/t_1", Some((Some("t_1"), true)));
        check("/v1/messages/batches/b_1/results", Some((Some("b_1"), false)));
        for path in [
            "/v1/responses/compact",
            "/v1/threads/runs",
            "/v1/messages",
            "/v1/files/f",
            "/api/chat",
            "/v1",
            "/openai",
        ] {
            check(path, None);
        }
    }

    #[test]
    fn the_first_user_of_an_id_owns_it() {
        let homes = Homes::default();
        let [ann, bob] = ["ann", "bob"].map(|name| UserId::new(name).unwrap());
        assert!(!homes.is_foreign("r", &bob), "nobody knows it");
        homes.used("r", 1, None);
        assert!(!homes.is_foreign("r", &bob));
        homes.used("r", 2, Some(&ann));
        homes.used("r", 2, Some(&bob));
        assert_eq!((homes.upstream("r"), homes.is_foreign("r", &ann)), (Some(1), false));
        assert!(homes.is_foreign("r", &bob));
        homes.made("r", 2, Some(&bob));
        assert_eq!((homes.upstream("r"), homes.is_foreign("r", &ann)), (Some(2), true));
    }
}
