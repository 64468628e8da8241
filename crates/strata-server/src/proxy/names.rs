//! Who asks, and in which conversation: a key, Strata's own names, then the names that other programs send.
//!
//! The order is: the key's user; `X-Strata-User` and `X-Strata-Session`; Strata's own fields of the body; the headers
//! that the settings list; the fields of the providers' APIs that the settings list; `default`. A key that is bound to
//! a user takes other programs' names for labels: they never name another user, and never cause a refusal.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use serde_json::{Map, Value};
use strata_core::{SessionId, UserId};

use crate::app::App;
use crate::compat::chat::{ChatBody, name};
use crate::error::ApiError;
use crate::identity::{Caller, header};
use crate::settings::NameSources;

/// The field in which coding agents name the user and the conversation at once.
const COMPOUND_FIELD: &str = "metadata.user_id";

/// The field that names a cache: some programs send one for each conversation, others one for all of theirs.
const CACHE_FIELD: &str = "prompt_cache_key";

/// The user and the session of a chat.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) user: UserId,
    pub(crate) session: SessionId,
    /// Whether the key or the request names the user.
    pub(crate) names_user: bool,
    /// Whether the request names the session, and not only a cache, which several conversations may share.
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
        let foreign = ForeignNames::read(sources, caller, headers, body)?;
        let named = caller.chat_user([&own.user_id], foreign.user.as_deref())?;
        let labelled = foreign.session.map(SessionId::new).transpose()?;
        let session = caller.session([&own.memory_id, &own.session_id, &own.run_id])?.or(labelled.clone());
        let is_own = session != labelled || !foreign.is_cache_key;
        let (names_user, names_session) = (named.is_some(), session.is_some() && is_own);
        let (user, session) = (named.unwrap_or_default(), session.unwrap_or_default());
        Ok(Self { user, session, names_user, names_session })
    }

    /// Warns once if several clients share the default user and one session that none of them has named.
    pub(crate) fn warn_if_shared(&self, app: &App, headers: &HeaderMap) {
        if self.names_user || self.names_session {
            return;
        }
        let Some(count) = app.proxy().unnamed.note(headers, &self.session) else { return };
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
    /// Whether the session is only the name of a cache.
    is_cache_key: bool,
}

impl ForeignNames {
    /// Reads the names. If the key is bound to a user they are labels: a label that cannot be read, or that cannot name a
    /// session, counts as not given. Otherwise it is an error.
    fn read(
        sources: &NameSources,
        caller: &Caller,
        headers: &HeaderMap,
        body: &ChatBody<'_>,
    ) -> Result<Self, ApiError> {
        let are_labels = caller.is_bound();
        let read = |name: Result<Option<String>, ApiError>| match name {
            Err(_) if are_labels => Ok(None),
            Ok(name) => Ok(name.filter(|name| !are_labels || is_session(name))),
            name => name,
        };
        let by_header = |names: &[String]| first(names, |name| read(header(headers, name)));
        let by_field = |paths: &[String], what| first(paths, |path| read(name(body.fields(), path, what)));
        let (user, within) = match by_field(&sources.user_fields, "user")? {
            Some((path, value)) if path == COMPOUND_FIELD => taken_apart(value),
            named => (named.map(|(_, value)| value), None),
        };
        let session = by_header(&sources.session_headers)?.or(by_field(&sources.session_fields, "session")?);
        let is_cache_key = session.as_ref().is_some_and(|(path, _)| path == CACHE_FIELD);
        let named_user = by_header(&sources.user_headers)?.map(|(_, value)| value);
        Ok(Self {
            user: named_user.or(user),
            session: session
                .map(|(_, value)| value)
                .or(within.filter(|name| !are_labels || is_session(name))),
            is_cache_key,
        })
    }
}

fn is_session(name: &str) -> bool {
    SessionId::new(name).is_ok()
}

/// The first name that is one, and where it stands. All are read, because a wrong one is an error in any place.
fn first(
    places: &[String],
    mut read: impl FnMut(&str) -> Result<Option<String>, ApiError>,
) -> Result<Option<(String, String)>, ApiError> {
    let found = places.iter().map(|place| Ok(read(place)?.map(|name| (place.clone(), name))));
    let found = found.collect::<Result<Vec<_>, ApiError>>()?;
    // A program that has no value for its template sends the template.
    let is_name =
        |(_, name): &(String, String)| !name.trim().is_empty() && !name.trim_start().starts_with("{{");
    Ok(found.into_iter().flatten().find(is_name))
}

/// Coding agents put the user and the conversation into one field: `user_…_account_…_session_UUID`, or a JSON object
/// with `session_id`. The user must be the same in all conversations, so the field is taken apart. Any other name stays
/// whole, also one that resembles these: a part of it could be the name of several people.
fn taken_apart(name: String) -> (Option<String>, Option<String>) {
    if let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(&name) {
        return match fields.remove("session_id") {
            Some(Value::String(session)) if !session.is_empty() => (joined(fields), Some(session)),
            _ => (Some(name), None),
        };
    }
    match name.rsplit_once("_session_") {
        Some((user, session))
            if user.starts_with("user_") && user.contains("_account_") && is_uuid(session) =>
        {
            (Some(user.trim_end_matches('_').to_owned()), Some(session.to_owned()))
        }
        _ => (Some(name), None),
    }
}

/// The name of a user in several fields. Ids are joined; all else is written as JSON, in which different fields are
/// never the same text.
fn joined(fields: Map<String, Value>) -> Option<String> {
    let fields: BTreeMap<String, Value> = fields
        .into_iter()
        .filter(|(_, value)| !value.is_null() && value.as_str().is_none_or(|id| !id.is_empty()))
        .collect();
    let ids: Vec<&str> = fields.values().filter_map(Value::as_str).filter(|id| !id.contains('_')).collect();
    match ids.len() {
        0 if fields.is_empty() => None,
        count if count == fields.len() => Some(ids.join("_")),
        _ => serde_json::to_string(&fields).ok(),
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compound_name_is_taken_apart() {
        const SESSION: &str = "9a1e7b52-0c3d-4f6e-8a7b-1c2d3e4f5a6b";
        let check = |name: &str, user: Option<&str>, session: Option<&str>| {
            let (found, conversation) = taken_apart(name.to_owned());
            assert_eq!((found.as_deref(), conversation.as_deref()), (user, session), "{name}");
        };
        let whole = |name: &str| check(name, Some(name), None);
        let compound = |user: &str| format!("{user}_session_{SESSION}");
        check(&compound("user_9f_account_"), Some("user_9f_account"), Some(SESSION));
        check(&compound("user_9f_account_77-b"), Some("user_9f_account_77-b"), Some(SESSION));
        check(r#"{"device_id":"d1","account_uuid":"","session_id":"s9"}"#, Some("d1"), Some("s9"));
        check(r#"{"a":"d1","b":"d2","session_id":"s9"}"#, Some("d1_d2"), Some("s9"));
        check(r#"{"session_id":"s9"}"#, None, Some("s9"));
        for name in [
            "mila",
            "42",
            "_session_71",
            "guest_session_1",
            "user_9f_account__session_71-c",
            "user_guest_session_2",
            r#"{"tenant":"acme","id":17}"#,
            r#"{"id":17,"session_id":5}"#,
            r#"{"session_id":""}"#,
        ] {
            whole(name);
        }
        whole(&compound("guest"));
        // Different people stay different, whatever their fields are.
        let user = |name: &str| taken_apart(name.to_owned()).0.unwrap();
        for (one, other) in [
            (r#"{"t":"acme","id":17,"session_id":"s"}"#, r#"{"t":"acme","id":18,"session_id":"s"}"#),
            (r#"{"a":"x_y","b":"z","session_id":"s"}"#, r#"{"a":"x","b":"y_z","session_id":"s"}"#),
        ] {
            assert_ne!(user(one), user(other));
        }
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
        assert_eq!(found.unwrap(), Some(("c".to_owned(), "noor".to_owned())));
    }
}
