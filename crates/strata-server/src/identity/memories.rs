//! The memories that a request is about: the owner, the filter, one memory by its id.

use serde_json::{Map, Value};
use strata_core::turn::HiddenReason;
use strata_core::{Error, Memory, MemoryId, SessionId, UserId};
use strata_engine::Filter;

use super::Caller;
use crate::app::App;
use crate::error::ApiError;

/// Reads a filter; `None` if it has no conditions.
pub(crate) fn filter(filters: Option<&Map<String, Value>>) -> Result<Option<Filter>, ApiError> {
    let Some(filters) = filters.filter(|filters| !filters.is_empty()) else { return Ok(None) };
    Ok(Some(Filter::from_json(filters)?))
}

/// The user, decided by [`Caller::user`]. As with mem0's clients, the filter may name the user too.
pub(crate) fn user_of<'a>(
    caller: &Caller,
    named: impl IntoIterator<Item = &'a Option<String>>,
    filter: Option<&Filter>,
) -> Result<UserId, ApiError> {
    let meant = filter.and_then(Filter::named_user).map(str::to_owned);
    let named: Vec<&Option<String>> = named.into_iter().collect();
    let is_unnamed = meant.is_none() && named.iter().all(|name| name.is_none()) && caller.is_unnamed();
    if is_unnamed && filter.is_some_and(Filter::mentions_user) {
        return Err(ApiError::invalid(
            "`filters` has `user_id` without naming one user; ask for one user at a time, in `user_id`",
        ));
    }
    caller.user(named.into_iter().chain([&meant]))
}

/// Whether a request names a user, by key, header, body or filter.
pub(crate) fn names_user<'a>(
    caller: &Caller,
    named: impl IntoIterator<Item = &'a Option<String>>,
    filter: Option<&Filter>,
) -> bool {
    filter.and_then(Filter::named_user).is_some() || caller.names_user(named)
}

/// Whether a request reads or changes memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    Read,
    /// Memories that all users share may only be changed by administrators.
    Change,
}

/// The owner of the memories that a query is about.
pub(crate) fn owner(
    caller: &Caller,
    intent: Intent,
    user_id: &Option<String>,
    scope: &Option<String>,
) -> Result<UserId, ApiError> {
    // A wrong user is reported before a wrong scope.
    let shared = match (intent, scope.as_deref()) {
        (Intent::Change, Some("global")) => caller.shared_to_change([user_id])?,
        _ => caller.shared([user_id])?,
    };
    match scope.as_deref() {
        None | Some("user") => caller.user([user_id]),
        Some("global") => Ok(shared),
        Some(_) => Err(ApiError::invalid("`scope` is unknown here; use `user` or `global`")),
    }
}

/// The owner and the id of a memory that is named by its id alone: the caller's user, or the memory's owner if the caller names
/// no user. mem0's clients name no user here, and a caller that is not bound to a user could name any.
pub(crate) async fn owner_of(app: &App, caller: &Caller, id: &str) -> Result<(UserId, MemoryId), ApiError> {
    if !caller.is_unnamed() {
        return Ok((caller.user([])?, id.parse()?));
    }
    let id = id.parse()?;
    match app.engine().store().owner_of(id).await? {
        Some(user) => Ok((user, id)),
        None => Ok((caller.user([])?, id)),
    }
}

/// A memory that is not deleted.
pub(crate) async fn present(app: &App, user: &UserId, id: MemoryId) -> Result<Memory, ApiError> {
    let memory = app.engine().memories.get(user, id).await?;
    match memory.hidden {
        Some(hidden) if hidden.reason == HiddenReason::Deleted => {
            let message = format!("memory `{id}` was deleted; `POST /memories/{id}/restore` brings it back");
            Err(Error::not_found(message).into())
        }
        _ => Ok(memory),
    }
}

/// An agent's name follows the rules of the other names.
pub(crate) fn checked_agent(name: String) -> Result<String, ApiError> {
    let agent = SessionId::new(name)
        .map_err(|error| ApiError::invalid(error.message().replace("session id", "agent id")))?;
    Ok(agent.into())
}
