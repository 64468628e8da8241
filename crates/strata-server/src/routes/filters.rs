//! Filters as clients send them, and the user that they are about.

use serde_json::{Map, Value};
use strata_core::UserId;
use strata_engine::Filter;

use crate::error::ApiError;
use crate::identity::Caller;

/// Reads a filter; one without conditions is none.
pub(crate) fn filter(filters: Option<&Map<String, Value>>) -> Result<Option<Filter>, ApiError> {
    let Some(filters) = filters.filter(|filters| !filters.is_empty()) else { return Ok(None) };
    Ok(Some(Filter::from_json(filters)?))
}

/// The user: as [`Caller::user`] has it, and else the one that the filter names, which is where mem0's clients say it.
pub(crate) fn user_of<'a>(
    caller: &Caller,
    named: impl IntoIterator<Item = &'a Option<String>>,
    filter: Option<&Filter>,
) -> Result<UserId, ApiError> {
    let meant = filter.and_then(Filter::named_user).map(str::to_owned);
    let named: Vec<&Option<String>> = named.into_iter().collect();
    let nobody = meant.is_none() && named.iter().all(|name| name.is_none()) && caller.names_nobody();
    if nobody && filter.is_some_and(Filter::mentions_user) {
        return Err(ApiError::invalid(
            "`filters` speak of `user_id` without naming one user; ask for one user at a time, in `user_id`",
        ));
    }
    caller.user(named.into_iter().chain([&meant]))
}
