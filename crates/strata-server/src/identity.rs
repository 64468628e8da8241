//! Who is asking, and in which session.
//!
//! An API key will decide first, once keys exist: [`Caller`] is the one place for that, since every handler gets its user
//! from it. Until then the header `X-Strata-User` decides, then what the body or query names, then `default`.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use strata_core::{SessionId, UserId};

use crate::app::App;
use crate::error::ApiError;

const USER_HEADER: &str = "X-Strata-User";
const SESSION_HEADER: &str = "X-Strata-Session";

/// Who a request says it comes from, before its body or query is asked.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    user: Option<UserId>,
    session: Option<SessionId>,
}

impl Caller {
    /// The user: the header's, else the first one named, else `default`. A name that cannot be right is an error even
    /// where another goes before it.
    pub(crate) fn user<'a>(
        &self,
        named: impl IntoIterator<Item = &'a Option<String>>,
    ) -> Result<UserId, ApiError> {
        let named = named.into_iter().flatten().map(|name| UserId::new(name.as_str()));
        let named = named.collect::<Result<Vec<_>, _>>()?;
        Ok(self.user.clone().or_else(|| named.into_iter().next()).unwrap_or_default())
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

    /// The session that the request itself names, whatever the header says.
    pub(crate) fn own_session<'a>(
        named: impl IntoIterator<Item = &'a Option<String>>,
    ) -> Result<Option<SessionId>, ApiError> {
        Self::default().session(named)
    }

    /// The user that a destructive call names by itself: a header that is set once for all calls is not enough, and one
    /// that says otherwise is a mistake.
    pub(crate) fn named_user(&self, named: &Option<String>) -> Result<UserId, ApiError> {
        let Some(name) = named else {
            return Err(ApiError::invalid(
                "`user_id` is missing; say whose memories to delete, as `?user_id=NAME`",
            ));
        };
        let user = UserId::new(name.as_str())?;
        match &self.user {
            Some(caller) if *caller != user => Err(ApiError::invalid(format!(
                "`user_id` names another user than the header `{USER_HEADER}`; send the same name or only one of them"
            ))),
            _ => Ok(user),
        }
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, ApiError> {
        Ok(Self {
            user: header(&parts.headers, USER_HEADER)?.map(UserId::new).transpose()?,
            session: header(&parts.headers, SESSION_HEADER)?.map(SessionId::new).transpose()?,
        })
    }
}

/// A header's value as UTF-8; sent twice it is ambiguous and therefore an error.
pub(crate) fn header(headers: &HeaderMap, name: &str) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(ApiError::invalid(format!("the header `{name}` is given twice; send it once")));
    }
    match std::str::from_utf8(value.as_bytes()) {
        Ok(value) => Ok(Some(value.to_owned())),
        Err(_) => Err(ApiError::invalid(format!("the header `{name}` is not UTF-8; encode it so"))),
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
        let by_header = Caller { user: Some(UserId::new("h").unwrap()), session: None };
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
    fn a_destructive_call_names_its_user() {
        let by_header = Caller { user: Some(UserId::new("h").unwrap()), session: None };
        assert!(by_header.named_user(&None).is_err());
        assert!(by_header.named_user(&name("other")).is_err());
        assert_eq!(by_header.named_user(&name("h")).unwrap().as_str(), "h");
    }
}
