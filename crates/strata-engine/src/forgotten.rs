//! The users and sessions that this process has forgotten, so that work that began before does not bring them back.
//!
//! A chat takes as long as its model needs, and one that could not be recorded is tried again for hours. If its user or
//! its session is forgotten meanwhile, neither its turns nor the row of its question may be written. Ids rise with
//! time, so an id that was made before the forgetting tells such work.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use strata_core::id::{SessionId, UserId};

/// The most users and sessions that are remembered: some megabytes. Beyond it the oldest ones are dropped.
const MAX_REMEMBERED: usize = 10_000;

/// A user, or one of the user's sessions.
type Part = (UserId, Option<SessionId>);

/// The forgotten users and sessions, each with an id that was made at that time.
#[derive(Default)]
pub(crate) struct Forgotten(Mutex<HashMap<Part, Uuid>>);

impl Forgotten {
    fn lock(&self) -> MutexGuard<'_, HashMap<Part, Uuid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a user, or a session of the user, is forgotten now; `now` is a new id.
    pub(crate) fn note(&self, user: &UserId, session: Option<&SessionId>, now: Uuid) {
        let mut parts = self.lock();
        if parts.len() >= MAX_REMEMBERED
            && let Some(oldest) = parts.iter().min_by_key(|(_, at)| **at).map(|(part, _)| part.clone())
        {
            parts.remove(&oldest);
        }
        parts.insert((user.clone(), session.cloned()), now);
    }

    /// Whether the user or the session was forgotten after `id` was made.
    pub(crate) fn since(&self, id: Uuid, user: &UserId, session: Option<&SessionId>) -> bool {
        let parts = self.lock();
        if parts.is_empty() {
            return false;
        }
        let is_later = |session: Option<SessionId>| {
            parts.get(&(user.clone(), session)).is_some_and(|forgotten| *forgotten > id)
        };
        is_later(None) || session.is_some_and(|session| is_later(Some(session.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_began_before_the_forgetting_is_covered() {
        let forgotten = Forgotten::default();
        let (user, other) = (UserId::new("ada").unwrap(), UserId::new("bob").unwrap());
        let (s, t) = (SessionId::new("s").unwrap(), SessionId::new("t").unwrap());
        forgotten.note(&user, Some(&s), Uuid::from_u128(5));
        let check = |id: u128, user: &UserId, session: Option<&SessionId>, covered: bool| {
            assert_eq!(
                forgotten.since(Uuid::from_u128(id), user, session),
                covered,
                "{id} {user} {session:?}"
            );
        };
        check(4, &user, Some(&s), true);
        check(6, &user, Some(&s), false);
        check(4, &user, Some(&t), false);
        check(4, &user, None, false);
        check(4, &other, Some(&s), false);
        forgotten.note(&user, None, Uuid::from_u128(8));
        check(6, &user, Some(&t), true);
        check(6, &user, None, true);
        check(9, &user, Some(&s), false);
        for number in 0..MAX_REMEMBERED as u128 {
            let session = SessionId::new(format!("n{number}")).unwrap();
            forgotten.note(&other, Some(&session), Uuid::from_u128(10 + number));
        }
        assert_eq!(forgotten.lock().len(), MAX_REMEMBERED);
    }
}
