//! Notices that several clients share the user `default` because none of them names its user.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, ORIGIN, USER_AGENT};
use lru::LruCache;
use strata_core::SessionId;

use super::sessions::hash;

/// More clients than this are not told apart.
const MAX_CLIENTS: usize = 64;

/// The most sessions that are kept: a program may send the name of a cache for each of its conversations.
const MAX_SESSIONS: NonZeroUsize = NonZeroUsize::new(1_024).unwrap();

/// The clients that have named no user, by the session that they share. A client is known by a hash of what it sends
/// with every request; nothing of it is kept.
pub(crate) struct UnnamedClients(Mutex<Noted>);

struct Noted {
    sessions: LruCache<u64, HashSet<u64>>,
    /// The most clients that share a session.
    most: u64,
}

impl Default for UnnamedClients {
    fn default() -> Self {
        Self(Mutex::new(Noted { sessions: LruCache::new(MAX_SESSIONS), most: 1 }))
    }
}

impl UnnamedClients {
    /// Notes a client in a session that it has not named. Returns the number of the session's clients, if more share it
    /// than any before.
    pub(crate) fn note(&self, headers: &HeaderMap, session: &SessionId) -> Option<u64> {
        let mut sent = Vec::new();
        for name in
            [USER_AGENT.as_str(), AUTHORIZATION.as_str(), ORIGIN.as_str(), "x-api-key", "x-forwarded-for"]
        {
            sent.extend(headers.get(name).map(|value| value.as_bytes()).unwrap_or_default());
            sent.push(0);
        }
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let clients = noted.sessions.get_or_insert_mut(hash(session.as_str().as_bytes()), HashSet::new);
        if clients.len() < MAX_CLIENTS {
            clients.insert(hash(&sent));
        }
        let count = clients.len() as u64;
        let is_more = count > noted.most;
        noted.most = noted.most.max(count);
        Some(count).filter(|_| is_more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_client_is_noticed_once() {
        let clients = UnnamedClients::default();
        let headers = |agent: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(USER_AGENT, agent.parse().unwrap());
            headers
        };
        let of = |name: &str| SessionId::new(name).unwrap();
        let note = |agent: &'static str| clients.note(&headers(agent), &of("default"));
        assert_eq!(note("one/1.0"), None);
        assert_eq!(note("one/1.0"), None);
        assert_eq!(note("two/1.0"), Some(2));
        assert_eq!(note("two/1.0"), None);
        assert_eq!(clients.note(&HeaderMap::new(), &of("default")), Some(3));
        // Conversations that each have one client are not shared.
        let clients = UnnamedClients::default();
        assert_eq!(clients.note(&headers("one/1.0"), &of("c-1")), None);
        assert_eq!(clients.note(&headers("two/1.0"), &of("c-2")), None);
        assert_eq!(clients.note(&headers("two/1.0"), &of("c-1")), Some(2));
    }
}
