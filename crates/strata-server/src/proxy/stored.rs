//! Whose it is what an upstream has stored: a key that is bound to a user does not get what belongs to another user.
//!
//! An id that Strata does not know passes: it may be from before a restart, and its only protection is that it is long
//! and random. So lists, which would tell the ids of all users, are refused.
//!
//! Which of several upstreams keeps an id is noted in the store too, for the user, so that a chat stays with its upstream over a restart.

use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use strata_core::UserId;

use crate::app::App;
use crate::error::ApiError;
use crate::upstream::{StoredPath, Upstream};

/// The place of an answer: its upstream, and for whom it is.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) app: App,
    pub(crate) upstream: usize,
    /// The user that the request asks for.
    pub(crate) user: UserId,
    /// Whose the stored things are: the user of a request with a key.
    pub(crate) owner: Option<UserId>,
}

impl Place {
    /// The upstream has made this id.
    pub(crate) fn made(&self, id: &str) {
        self.app.proxy().upstreams.homes.made(id, self.upstream, self.owner.as_ref());
        note_home(&self.app, &self.user, id, self.upstream);
    }

    /// The upstream has accepted these ids.
    pub(crate) fn used<'a>(&self, ids: impl IntoIterator<Item = &'a str>) {
        for id in ids {
            if self.app.proxy().upstreams.homes.used(id, self.upstream, self.owner.as_ref()) {
                note_home(&self.app, &self.user, id, self.upstream);
            }
        }
    }
}

/// Notes in the store which of several upstreams keeps an id. No chat waits for it: without the note, the upstreams are asked.
pub(super) fn note_home(app: &App, user: &UserId, id: &str, upstream: usize) {
    let upstreams = &app.proxy().upstreams;
    let Some(print) = upstreams.prints().get(upstream).copied().filter(|_| upstreams.are_several()) else {
        return;
    };
    // A server that stops waits for it.
    let recording = app.proxy().recordings.clone().try_acquire_owned();
    let (app, user, id) = (app.clone(), user.clone(), id.to_owned());
    tokio::spawn(async move {
        let engine = app.engine();
        if let Err(error) = engine.requests.note_home(&user, &id, print, engine.now()).await {
            tracing::debug!(%error, "it could not be noted which upstream keeps a response");
        }
        drop(recording);
    });
}

/// Refuses an id that belongs to another user. `user` is the one that a key stands for; without a key every client may
/// ask for every user.
pub(crate) fn check<'a>(
    app: &App,
    user: Option<&UserId>,
    ids: impl IntoIterator<Item = &'a str>,
) -> Result<(), ApiError> {
    let Some(user) = user else { return Ok(()) };
    let homes = &app.proxy().upstreams.homes;
    match ids.into_iter().find(|id| homes.is_foreign(id, user)) {
        None => Ok(()),
        Some(id) => {
            let shown: String = id.chars().take(64).collect();
            let message = format!("`{shown}` does not exist for this user; use an id of the user's own");
            Err(ApiError::new(StatusCode::NOT_FOUND, "not_found", message))
        }
    }
}

/// Refuses a list of what all users of an upstream's key have stored, for a key that is bound to one user.
pub(crate) fn check_list(upstream: &Upstream, parts: &Parts, is_bound: bool) -> Result<(), ApiError> {
    let is_reading = matches!(parts.method, Method::GET | Method::HEAD);
    let is_list = StoredPath::of(parts.uri.path()).is_some_and(|stored| stored.id.is_none());
    if is_bound && is_reading && is_list && upstream.is_shared(parts) {
        return Err(ApiError::forbidden(
            "forbidden_list",
            "this list has what all users of the upstream's key have stored; ask for one by its id, or use a key that is bound to no user",
        ));
    }
    Ok(())
}
