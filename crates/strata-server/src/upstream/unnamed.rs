//! Notices that several clients share the user `default` because none of them names its user.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, ORIGIN, USER_AGENT};

use super::sessions::hash;

/// More clients than this are not told apart.
const MAX_CLIENTS: usize = 64;

/// The clients that have named no user. A client is known by a hash of what it sends with every request; nothing of it
/// is kept.
#[derive(Default)]
pub(crate) struct UnnamedClients(Mutex<HashSet<u64>>);

impl UnnamedClients {
    /// Notes a client. Returns the number of clients, if this one is new and not the only one.
    pub(crate) fn note(&self, headers: &HeaderMap) -> Option<u64> {
        let mut sent = Vec::new();
        for name in
            [USER_AGENT.as_str(), AUTHORIZATION.as_str(), ORIGIN.as_str(), "x-api-key", "x-forwarded-for"]
        {
            sent.extend(headers.get(name).map(|value| value.as_bytes()).unwrap_or_default());
            sent.push(0);
        }
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = clients.len() < MAX_CLIENTS && clients.insert(hash(&sent));
        Some(clients.len() as u64).filter(|count| is_new && *count > 1)
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
        assert_eq!(clients.note(&headers("one/1.0")), None);
        assert_eq!(clients.note(&headers("one/1.0")), None);
        assert_eq!(clients.note(&headers("two/1.0")), Some(2));
        assert_eq!(clients.note(&headers("two/1.0")), None);
        assert_eq!(clients.note(&HeaderMap::new()), Some(3));
    }
}
