//! The state that every request can reach: the engine, the settings, the meters.

use std::sync::Arc;

use strata_core::store::{KeyQuery, Page, Removed};
use strata_core::{Error, SessionId, UserId};
use strata_engine::Engine;
use tokio::sync::Semaphore;

use crate::answers::Answers;
use crate::keys::Keys;
use crate::room::Rooms;
use crate::settings::Settings;
use crate::telemetry::Meters;
use crate::upstream::ProxyState;

/// The state of a server, shared by all its requests. Cloning it is cheap.
#[derive(Clone)]
pub struct App(Arc<Parts>);

struct Parts {
    engine: Engine,
    settings: Settings,
    meters: Meters,
    permits: Semaphore,
    rooms: Rooms,
    answers: Answers,
    keys: Keys,
    proxy: ProxyState,
}

impl App {
    /// A server over `engine`.
    pub fn new(engine: Engine, settings: Settings) -> Self {
        let permits = Semaphore::new(settings.max_concurrent_requests.clamp(1, Semaphore::MAX_PERMITS));
        let rooms = Rooms::new(&settings);
        let answers = Answers::new(settings.max_bytes_under_way);
        let proxy = ProxyState::new(&settings.proxy);
        let (meters, keys) = (Meters::new(), Keys::default());
        Self(Arc::new(Parts { engine, settings, meters, permits, rooms, answers, keys, proxy }))
    }

    /// The use-cases.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Forgets a user: in the store, and in everything that this server keeps in memory.
    pub(crate) async fn forget_user(&self, user: &UserId) -> strata_core::Result<Removed> {
        self.refuse_last_key(user).await?;
        // First what would be written later.
        self.proxy().spill.forget(user, None);
        let removed = self.engine().forgetting.user(user).await?;
        self.keys().forget(user);
        self.proxy().histories.forget(user);
        Ok(removed)
    }

    /// Forgets a session of a user, and what is kept of it until the store works.
    pub(crate) async fn forget_session(
        &self,
        user: &UserId,
        session: &SessionId,
    ) -> strata_core::Result<Removed> {
        self.proxy().spill.forget(user, Some(session));
        self.engine().sessions.delete(user, session).await
    }

    /// A server without keys is open, so a request may not destroy the last ones. `strata users forget` may.
    async fn refuse_last_key(&self, user: &UserId) -> strata_core::Result<()> {
        let keys = self.engine().store().keys(&KeyQuery::unrevoked(Page::first(u32::MAX))).await?;
        if !keys.is_empty() && keys.iter().all(|key| key.user == *user) {
            return Err(Error::conflict(
                "these are the last API keys, and a server without keys is open to everybody; create a key of another user first",
            ));
        }
        Ok(())
    }

    pub(crate) fn meters(&self) -> &Meters {
        &self.0.meters
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.0.keys
    }

    pub(crate) fn proxy(&self) -> &ProxyState {
        &self.0.proxy
    }

    pub(crate) fn permits(&self) -> &Semaphore {
        &self.0.permits
    }

    /// The answers that are being sent.
    pub(crate) fn answers(&self) -> &Answers {
        &self.0.answers
    }

    /// The room for the bodies of chats.
    pub(crate) fn rooms(&self) -> &Rooms {
        &self.0.rooms
    }
}
