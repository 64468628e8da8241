//! Forgetting a user: everything that is stored of them, and what this process keeps of them in memory.

use std::sync::Arc;

use crate::index::Indexes;
use crate::recall::RequestLog;
use strata_core::error::{Error, Result};
use strata_core::id::UserId;
use strata_core::ports::{Clock, IdSource};
use strata_core::store::{
    Change, ChangeSet, Forget, Head, JobQuery, KeyQuery, MetricQuery, Page, Removed, Store,
};

/// How often forgetting is repeated while another task writes rows of the same user.
pub(crate) const MAX_ROUNDS: u32 = 10;

/// Forgets users.
#[derive(Clone)]
pub struct Forgetting {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) log: RequestLog,
    pub(crate) indexes: Option<Arc<Indexes>>,
}

impl Forgetting {
    /// Destroys everything of a user, API keys included, and returns how much was destroyed. This cannot be undone. It is
    /// *not found* if the store has never had anything of the user.
    pub async fn user(&self, user: &UserId) -> Result<Removed> {
        if !self.is_known(user).await? {
            return Err(Error::not_found(format!("the store has nothing of a user `{user}`")));
        }
        let mut removed = Removed::default();
        for _ in 0..MAX_ROUNDS {
            // Rows of requests wait to be written in the background. A row that is being written right now may come after
            // the change set that forgets, so forgetting is repeated.
            let is_writing = self.log.forget(user, None, self.ids.next());
            let change = Change::Forget(Forget::User);
            let round = self.store.apply(user, ChangeSet::one(self.clock.now(), change)).await?.removed;
            removed.sessions += round.sessions;
            removed.turns += round.turns;
            removed.memories += round.memories;
            removed.summaries += round.summaries;
            if !is_writing {
                break;
            }
        }
        if let Some(indexes) = &self.indexes {
            indexes.forget(user);
        }
        Ok(removed)
    }

    /// Whether the store has anything of the user, or had and has forgotten it.
    async fn is_known(&self, user: &UserId) -> Result<bool> {
        let keys = KeyQuery { id: None, user: Some(user.clone()), revoked: true, page: Page::first(1) };
        let jobs = JobQuery { limit: 1, ..JobQuery::default() };
        let requests = MetricQuery { limit: 1, ..MetricQuery::default() };
        Ok(self.store.head(user).await? != Head::default()
            || !self.store.sessions(user, Page::first(1)).await?.is_empty()
            || !self.store.requests(user, &requests).await?.is_empty()
            || !self.store.jobs(user, &jobs).await?.is_empty()
            || !self.store.keys(&keys).await?.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::RecallRequest;
    use crate::recall::tests::fixture::World;
    use jiff::SignedDuration;
    use strata_core::error::ErrorKind;
    use strata_core::id::{RequestId, SessionId};

    #[tokio::test]
    async fn nothing_of_a_forgotten_user_is_left_in_store_and_memory() {
        let world = World::new();
        world.say("s", "the lighthouse keeper has a parrot").await;
        world.recall(&RecallRequest::new("parrot")).await;
        assert_eq!(world.engine.requests.waiting(), 1, "the row of the question waits");
        let removed = world.engine.forgetting.user(&world.user).await.unwrap();
        assert_eq!((removed.sessions, removed.turns), (1, 1));
        assert_eq!(world.engine.requests.waiting(), 0);
        world.engine.requests.flush().await.unwrap();
        assert!(world.engine.store().users(Page::first(9)).await.unwrap().is_empty());
        let found = world.recall(&RecallRequest::new("parrot")).await;
        assert!(found.items.is_empty(), "{:?}", found.items);
        // A second time there is nothing to forget, and that is not an error.
        assert_eq!(world.engine.forgetting.user(&world.user).await.unwrap(), Removed::default());
    }

    #[tokio::test]
    async fn a_question_of_a_forgotten_session_or_user_leaves_no_row() {
        for forgets_user in [false, true] {
            let world = World::new();
            world.say("s", "the lighthouse keeper has a parrot").await;
            let session = SessionId::new("s").unwrap();
            let asked = RecallRequest { session: Some(session.clone()), ..RecallRequest::new("parrot") };
            world.recall(&asked).await;
            // The reply to this question is still under way.
            let log = &world.engine.forgetting.log;
            let id = RequestId(world.engine.next_id());
            let row = log.row(&asked, id, None, SignedDuration::ZERO);
            if forgets_user {
                world.engine.forgetting.user(&world.user).await.unwrap();
            } else {
                world.engine.sessions.delete(&world.user, &session).await.unwrap();
            }
            world.engine.prompting.note_chat(&world.user, row).await;
            let rows = world.engine.requests.list(&world.user, None, 9).await.unwrap();
            assert!(rows.is_empty(), "{rows:?}");
            // Later questions are noted.
            world.recall(&asked).await;
            assert_eq!(world.engine.requests.list(&world.user, None, 9).await.unwrap().len(), 1);
        }
    }

    #[tokio::test]
    async fn a_user_who_never_was_is_not_found_and_not_created() {
        let world = World::new();
        let stranger = UserId::new("nobody-here").unwrap();
        let refused = world.engine.forgetting.user(&stranger).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotFound);
    }
}
