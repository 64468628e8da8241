//! Whose it is what an upstream has stored: a key that is bound to a user does not get what belongs to another user.
//!
//! An id that Strata does not know passes: it may be from before a restart, and its only protection is that it is long
//! and random. So lists, which would tell the ids of all users, are refused.

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
    pub(crate) owner: Option<UserId>,
}

impl Place {
    /// The upstream has made this id.
    pub(crate) fn made(&self, id: &str) {
        self.app.proxy().upstreams.homes.made(id, self.upstream, self.owner.as_ref());
    }

    /// The upstream has accepted these ids.
    pub(crate) fn used<'a>(&self, ids: impl IntoIterator<Item = &'a str>) {
        for id in ids {
            self.app.proxy().upstreams.homes.used(id, self.upstream, self.owner.as_ref());
        }
    }
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
