//! The user and the session of a request.
//!
//! A key that is bound to a user decides: its requests ask for that user, and naming another user anywhere is refused. A
//! request with an unbound key names its user. Without keys the header `X-Strata-User` decides, then the user that the body or
//! query names, then the user `default`. A session that is named without a user is a wall: recall returns nothing of the
//! other sessions of `default`. [`Caller`] is the one place for that: every handler gets its user from it.

pub(crate) mod memories;

use axum::extract::{FromRequestParts, Query};
use axum::http::header::UPGRADE;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Method, StatusCode, Uri};
use serde::Deserialize;
use strata_core::key::{ApiKey, KeyScope};
use strata_core::scope::RecallScope;
use strata_core::{SessionId, UserId};

use crate::app::App;
use crate::error::ApiError;
use crate::keys::Identity;

const USER_HEADER: &str = "X-Strata-User";
const SESSION_HEADER: &str = "X-Strata-Session";

/// The caller of a request, before the body or query is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    user: Option<UserId>,
    session: Option<SessionId>,
    identity: Identity,
}

impl Caller {
    /// Reads the caller from a request's headers and from its key.
    pub(crate) fn read(headers: &HeaderMap, extensions: &Extensions) -> Result<Self, ApiError> {
        Ok(Self {
            user: header(headers, USER_HEADER)?.map(UserId::new).transpose()?,
            session: header(headers, SESSION_HEADER)?.map(SessionId::new).transpose()?,
            identity: extensions.get::<Identity>().cloned().unwrap_or_default(),
        })
    }

    /// The caller with the names of the query, which count if no header names a user or a session.
    fn with_names_of(mut self, uri: &Uri) -> Result<Self, ApiError> {
        let names = Query::<NamesInQuery>::try_from_uri(uri);
        let Query(NamesInQuery { user_id, session_id }) = names.map_err(|error| {
            ApiError::invalid(format!("the query cannot be read: {error}; send each name once"))
        })?;
        if user_id.is_some() {
            self.named([&user_id])?;
        }
        self.user = self.user.or(user_id.map(UserId::new).transpose()?);
        self.session = self.session.or(session_id.map(SessionId::new).transpose()?);
        Ok(self)
    }

    /// The user who started this process, for calls that are not requests.
    pub(crate) fn of_process(user: Option<UserId>, session: Option<SessionId>) -> Self {
        Self { user, session, identity: Identity::default() }
    }

    /// The user: the key's, else the header's, else the first one named, else `default`. An invalid name is an error
    /// even if another name takes precedence. Naming another user than the key's is an error too.
    pub(crate) fn user<'a>(
        &self,
        named: impl IntoIterator<Item = &'a Option<String>>,
    ) -> Result<UserId, ApiError> {
        let named = self.named(named)?;
        match self.identity.key() {
            Some(key) if !key.is_unbound() => Ok(key.user.clone()),
            // A gateway that forgets to name the user would mix the memories of all its users.
            Some(_) => named.ok_or_else(unnamed),
            None => Ok(named.unwrap_or_default()),
        }
    }

    /// The user of a chat; `None` if neither key nor request names one. `own` are the names in Strata's fields, which
    /// may not contradict the key. `label` is a name that another program sends: a bound key ignores it.
    pub(crate) fn chat_user<'a>(
        &self,
        own: impl IntoIterator<Item = &'a Option<String>>,
        label: Option<&str>,
    ) -> Result<Option<UserId>, ApiError> {
        let named = self.named(own)?;
        if let Some(key) = self.identity.key().filter(|key| !key.is_unbound()) {
            return Ok(Some(key.user.clone()));
        }
        // A wrong name is an error also where another one goes before it.
        let labelled = label.map(UserId::new).transpose()?;
        let named = named.or(labelled);
        match (named, self.identity.key()) {
            (None, Some(_)) => Err(unnamed()),
            (named, _) => Ok(named),
        }
    }

    /// Whether the key is bound to a user.
    pub(crate) fn is_bound(&self) -> bool {
        self.identity.key().is_some_and(|key| !key.is_unbound())
    }

    /// Whether the request has a key.
    pub(crate) fn has_key(&self) -> bool {
        self.identity.key().is_some()
    }

    /// The user of the key, or the one that the header names.
    pub(crate) fn known_user(&self) -> Option<&UserId> {
        let bound = self.identity.key().filter(|key| !key.is_unbound());
        bound.map(|key| &key.user).or(self.user.as_ref())
    }

    /// Whether the key, the header or the request itself names a user.
    pub(crate) fn names_user<'a>(&self, named: impl IntoIterator<Item = &'a Option<String>>) -> bool {
        !self.is_unnamed() || named.into_iter().any(Option::is_some)
    }

    /// How far recall looks from a session; `None` leaves it to the settings. A session without a user is a wall, and so
    /// is every session for a key that says so: a wider scope that the request asks for is narrowed.
    pub(crate) fn recall_scope(
        &self,
        names_user: bool,
        session: Option<&SessionId>,
        asked: Option<RecallScope>,
    ) -> Option<RecallScope> {
        let by_key = self.identity.key().and_then(|key| key.recall_scope);
        let is_wall = (!names_user && session.is_some()) || by_key == Some(RecallScope::Session);
        if is_wall { Some(RecallScope::Session) } else { asked.or(by_key) }
    }

    /// The session behind whose wall a tool works: the one that the call or the connection names without a user.
    pub(crate) fn wall<'a>(
        &self,
        names_user: bool,
        named: impl IntoIterator<Item = &'a Option<String>>,
    ) -> Result<Option<SessionId>, ApiError> {
        Ok(self.session(named)?.filter(|_| !names_user))
    }

    /// Whether neither key nor header names a user, so that the body or query may name any user.
    pub(crate) fn is_unnamed(&self) -> bool {
        self.user.is_none() && self.identity.key().is_none_or(ApiKey::is_unbound)
    }

    /// The owner of memories that all users share, for reading. The names in the request are checked all the same.
    pub(crate) fn shared<'a>(
        &self,
        named: impl IntoIterator<Item = &'a Option<String>>,
    ) -> Result<UserId, ApiError> {
        self.named(named)?;
        Ok(UserId::global())
    }

    /// The owner of memories that all users share, for changing. With keys, only administrators may do this, because
    /// the models of all users see these memories.
    pub(crate) fn shared_to_change<'a>(
        &self,
        named: impl IntoIterator<Item = &'a Option<String>>,
    ) -> Result<UserId, ApiError> {
        self.identity.require(KeyScope::Admin)?;
        self.shared(named)
    }

    /// Refuses an operation that the request's key does not allow.
    pub(crate) fn require(&self, scope: KeyScope) -> Result<(), ApiError> {
        self.identity.require(scope)
    }

    /// The header's user or the first one named. All names are checked.
    fn named<'a>(
        &self,
        named: impl IntoIterator<Item = &'a Option<String>>,
    ) -> Result<Option<UserId>, ApiError> {
        let named = named.into_iter().flatten().map(|name| UserId::new(name.as_str()));
        let named = named.collect::<Result<Vec<_>, _>>()?;
        let named: Vec<&UserId> = self.user.iter().chain(&named).collect();
        if let Some(key) = self.identity.key().filter(|key| !key.is_unbound())
            && named.iter().any(|user| **user != key.user)
        {
            return Err(foreign(key));
        }
        Ok(named.first().copied().cloned())
    }

    /// The session: the header's, else the first one named.
    pub(crate) fn session<'a>(
        &self,
        named: impl IntoIterator<Item = &'a Option<String>>,
    ) -> Result<Option<SessionId>, ApiError> {
        let named = named.into_iter().flatten().map(|name| SessionId::new(name.as_str()));
        let named = named.collect::<Result<Vec<_>, _>>()?;
        Ok(self.session.clone().or_else(|| named.into_iter().next()))
    }

    /// The session that the request itself names, ignoring the header.
    pub(crate) fn own_session<'a>(
        named: impl IntoIterator<Item = &'a Option<String>>,
    ) -> Result<Option<SessionId>, ApiError> {
        Self::default().session(named)
    }

    /// The user that a call may forget: the key's own, or any user for administrators, because the user's keys go too.
    pub(crate) fn user_to_forget(&self, name: &str) -> Result<UserId, ApiError> {
        // First the name in the header, as everywhere: a foreign one is refused, whatever else is wrong.
        self.named([])?;
        if self.user.as_ref().is_some_and(|caller| caller.as_str() != name) && UserId::new(name).is_ok() {
            let message =
                format!("the path names another user than the header `{USER_HEADER}`; nothing was forgotten");
            return Err(ApiError::new(StatusCode::CONFLICT, "conflict", message));
        }
        let user = self.named_user(&Some(name.to_owned()))?;
        if self.identity.key().is_some_and(ApiKey::is_unbound) {
            self.require(KeyScope::Admin)?;
        }
        Ok(user)
    }

    /// The user that a destructive call has to name explicitly. A header, which a client may set once for all calls,
    /// is not enough. A header that names another user is an error.
    pub(crate) fn named_user(&self, named: &Option<String>) -> Result<UserId, ApiError> {
        let Some(name) = named else {
            return Err(ApiError::invalid(
                "`user_id` is missing; say whose memories to delete, as `?user_id=NAME`",
            ));
        };
        let user = UserId::new(name.as_str())?;
        self.named([named])?;
        match &self.user {
            Some(caller) if *caller != user => Err(ApiError::invalid(format!(
                "`user_id` names another user than the header `{USER_HEADER}`; send the same name or only one of them"
            ))),
            _ => Ok(user),
        }
    }
}

fn unnamed() -> ApiError {
    ApiError::invalid(format!(
        "this key is bound to no user; name the one you ask for, in `{USER_HEADER}` or `user_id`"
    ))
}

fn foreign(key: &ApiKey) -> ApiError {
    ApiError::forbidden(
        "forbidden_user",
        format!(
            "this key is bound to user `{}` and cannot ask for another user; leave the other name out, or use a key of that user",
            key.user
        ),
    )
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, ApiError> {
        let caller = Self::read(&parts.headers, &parts.extensions)?;
        // Also where no handler asks for the user: a request that is passed on, or a WebSocket.
        caller.named([])?;
        // The other methods read their names from the query themselves. A name that a POST ignored would put one user's words
        // among another's. A browser cannot send headers with a WebSocket.
        let is_named = parts.method == Method::POST || is_websocket(&parts.headers);
        if is_named { caller.with_names_of(&parts.uri) } else { Ok(caller) }
    }
}

/// Whether a request asks for a WebSocket.
pub(crate) fn is_websocket(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// The names in the query of a POST or a WebSocket.
#[derive(Debug, Deserialize)]
struct NamesInQuery {
    user_id: Option<String>,
    session_id: Option<String>,
}

/// A header's value as UTF-8. A header sent twice is ambiguous and therefore an error.
pub(crate) fn header(headers: &HeaderMap, name: &str) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(ApiError::invalid(format!("the header `{name}` is given twice; send it once")));
    }
    match std::str::from_utf8(value.as_bytes()) {
        Ok(value) => Ok(Some(value.to_owned())),
        Err(_) => Err(ApiError::invalid(format!("the header `{name}` is not UTF-8; encode it as UTF-8"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    #[test]
    fn the_header_goes_before_the_body_and_the_body_before_the_default() {
        let by_header = Caller { user: Some(UserId::new("h").unwrap()), ..Caller::default() };
        assert_eq!(by_header.user([&name("b")]).unwrap().as_str(), "h");
        let plain = Caller::default();
        assert_eq!(plain.user([&None, &name("b"), &name("c")]).unwrap().as_str(), "b");
        assert_eq!(plain.user([&None]).unwrap().as_str(), "default");
        assert_eq!(plain.session([&None, &name("s")]).unwrap().unwrap().as_str(), "s");
        assert!(plain.session([&None]).unwrap().is_none());
        assert!(plain.user([&name("*")]).is_err());
        assert!(
            by_header.user([&name("b"), &name("*")]).is_err(),
            "a wrong name is wrong also where it is not used"
        );
    }

    #[test]
    fn a_session_without_a_user_is_a_wall() {
        let (plain, here) = (Caller::default(), SessionId::new("客户-7").unwrap());
        let by_header = Caller { user: Some(UserId::new("h").unwrap()), ..Caller::default() };
        assert!(!plain.names_user([&None, &None]) && plain.names_user([&None, &name("b")]));
        assert!(by_header.names_user([&None]));
        for asked in [None, Some(RecallScope::User), Some(RecallScope::Session)] {
            let wall = plain.recall_scope(false, Some(&here), asked);
            assert_eq!(wall, Some(RecallScope::Session), "{asked:?}");
            assert_eq!(plain.recall_scope(true, Some(&here), asked), asked, "a user is named");
            assert_eq!(plain.recall_scope(false, None, asked), asked, "no session is named");
        }
    }

    #[test]
    fn the_query_of_a_post_names_user_and_session() {
        let named =
            |caller: Caller, query: &str| caller.with_names_of(&format!("/turns?{query}").parse().unwrap());
        let plain = named(Caller::default(), "user_id=zo%C3%AB&session_id=s%201&limit=2").unwrap();
        assert_eq!(plain.user([&None]).unwrap().as_str(), "zoë");
        assert_eq!(plain.session([&None]).unwrap().unwrap().as_str(), "s 1");
        assert!(plain.names_user([&None]), "it is no wall");
        let by_header = Caller { user: Some(UserId::new("h").unwrap()), ..Caller::default() };
        assert_eq!(named(by_header, "user_id=zoe").unwrap().user([&None]).unwrap().as_str(), "h");
        assert!(named(Caller::default(), "user_id=*").is_err());
        assert!(named(Caller::default(), "user_id=a&user_id=b").is_err());
    }

    #[test]
    fn a_destructive_call_names_its_user() {
        let by_header = Caller { user: Some(UserId::new("h").unwrap()), ..Caller::default() };
        assert!(by_header.named_user(&None).is_err());
        assert!(by_header.named_user(&name("other")).is_err());
        assert_eq!(by_header.named_user(&name("h")).unwrap().as_str(), "h");
    }
}
