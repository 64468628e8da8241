//! Who asks, and in which conversation: a key, Strata's own names, then the names that other programs send.
//!
//! The order is: the key's user; `X-Strata-User` and `X-Strata-Session`; Strata's own fields of the body; the headers
//! that the settings list; the fields of the providers' APIs that the settings list; `default`. A key that is bound to
//! a user takes other programs' names for labels: they never name another user, and never cause a refusal.

use axum::http::HeaderMap;
use serde_json::Value;
use strata_core::{SessionId, UserId};

use crate::app::App;
use crate::compat::chat::{ChatBody, name};
use crate::error::ApiError;
use crate::identity::{Caller, header};
use crate::settings::NameSources;

/// The user and the session of a chat.
pub(crate) struct Asker {
    pub(crate) user: UserId,
    pub(crate) session: SessionId,
    /// Whether the key or the request names the user.
    pub(crate) names_user: bool,
    /// Whether the request names the session.
    names_session: bool,
}

impl Asker {
    pub(crate) fn read(
        sources: &NameSources,
        caller: &Caller,
        headers: &HeaderMap,
        body: &ChatBody<'_>,
    ) -> Result<Self, ApiError> {
        let own = &body.names;
        let foreign = ForeignNames::read(sources, headers, body)?;
        let named = caller.chat_user([&own.user_id], foreign.user.as_deref())?;
        let labelled = foreign.session.map(SessionId::new).transpose()?;
        let session = caller.session([&own.memory_id, &own.session_id, &own.run_id])?.or(labelled);
        let (names_user, names_session) = (named.is_some(), session.is_some());
        let (user, session) = (named.unwrap_or_default(), session.unwrap_or_default());
        Ok(Self { user, session, names_user, names_session })
    }

    /// Warns once if several clients share the default user and the default session.
    pub(crate) fn warn_if_shared(&self, app: &App, headers: &HeaderMap) {
        if self.names_user || self.names_session {
            return;
        }
        let Some(count) = app.proxy().unnamed.note(headers) else { return };
        if count == 2 {
            tracing::warn!(
                "several clients name no user, so they share the memories of the user `default`; give each a key \
                 (`strata keys create --user NAME`), or let them name their user in `X-Strata-User` or a header of \
                 the setting `proxy.user_headers`"
            );
        }
        let (app, user) = (app.clone(), self.user.clone());
        tokio::spawn(async move {
            let engine = app.engine();
            if let Err(error) = engine.requests.note_clients(&user, count, engine.now()).await {
                tracing::debug!(%error, "the number of clients without a user could not be noted");
            }
        });
    }
}

/// The names that other programs send.
#[derive(Debug, Default, PartialEq, Eq)]
struct ForeignNames {
    user: Option<String>,
    session: Option<String>,
}

impl ForeignNames {
    fn read(sources: &NameSources, headers: &HeaderMap, body: &ChatBody<'_>) -> Result<Self, ApiError> {
        let by_header = |names: &[String]| first(names, |name| header(headers, name));
        let by_field = |paths: &[String], what| first(paths, |path| name(body.fields(), path, what));
        let field = by_field(&sources.user_fields, "user")?;
        let (user, session) = field.map(taken_apart).unwrap_or_default();
        Ok(Self {
            user: by_header(&sources.user_headers)?.or(user),
            session: by_header(&sources.session_headers)?
                .or(by_field(&sources.session_fields, "session")?)
                .or(session),
        })
    }
}

/// The first name that is one. All are read, because a wrong one is an error in any place.
fn first(
    names: &[String],
    mut read: impl FnMut(&str) -> Result<Option<String>, ApiError>,
) -> Result<Option<String>, ApiError> {
    let found = names.iter().map(|name| read(name)).collect::<Result<Vec<_>, _>>()?;
    // A program that has no value for its template sends the template.
    let is_name = |name: &String| !name.trim().is_empty() && !name.trim_start().starts_with("{{");
    Ok(found.into_iter().flatten().find(is_name))
}

/// Coding agents put the user and the conversation into one field: `USER_session_SESSION`, or a JSON object with
/// `session_id`. The user must be the same in all conversations, so the field is taken apart.
fn taken_apart(name: String) -> (Option<String>, Option<String>) {
    if let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(&name) {
        let session = fields.remove("session_id").and_then(|id| id.as_str().map(str::to_owned));
        let ids = fields.values().filter_map(Value::as_str).filter(|id| !id.is_empty());
        let user = ids.collect::<Vec<_>>().join("_");
        return (Some(user).filter(|user| !user.is_empty()), session);
    }
    match name.rsplit_once("_session_") {
        Some((user, session)) if !user.is_empty() && !session.is_empty() => {
            (Some(user.trim_end_matches('_').to_owned()), Some(session.to_owned()))
        }
        _ => (Some(name), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compound_name_is_taken_apart() {
        let check = |name: &str, user: Option<&str>, session: Option<&str>| {
            let (found, conversation) = taken_apart(name.to_owned());
            assert_eq!((found.as_deref(), conversation.as_deref()), (user, session), "{name}");
        };
        check("mila", Some("mila"), None);
        check("user_9f_account__session_71-c", Some("user_9f_account"), Some("71-c"));
        check("_session_71", Some("_session_71"), None);
        check(r#"{"device_id":"d1","account_uuid":"","session_id":"s9"}"#, Some("d1"), Some("s9"));
        check(r#"{"session_id":"s9"}"#, None, Some("s9"));
        check("42", Some("42"), None);
    }

    #[test]
    fn a_template_without_a_value_is_no_name() {
        let names = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let values = [" ", "{{SOME_USER_ID}}", "noor"];
        let mut place = 0;
        let found = first(&names, |_| {
            place += 1;
            Ok(Some(values[place - 1].to_owned()))
        });
        assert_eq!(found.unwrap().as_deref(), Some("noor"));
    }
}
