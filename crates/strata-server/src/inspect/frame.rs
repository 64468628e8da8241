//! The parts that all pages share: the user, the navigation, the token of forms, and the headers of an answer.

use std::sync::{Arc, OnceLock};

use askama::Template;
use axum::extract::FromRequestParts;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use jiff::Timestamp;
use serde::Deserialize;
use strata_core::key::KeyScope;
use strata_core::store::Page as StorePage;
use strata_core::{Error, UserId};

use crate::app::App;
use crate::cookies::{FORM_COOKIE, cookie, set_cookie};
use crate::error::{ApiError, ErrorDetail};
use crate::extract::Params;
use crate::identity::Caller;
use crate::keys::Identity;

/// Nothing but the files of this server: no inline script or style, no frame around a page, no form to another site.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The most users in the list to choose from. With more, a person types the name.
const MAX_USERS: u32 = 200;

/// The parameters of all pages. A page ignores those of others.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    /// Whose data is shown.
    pub(super) user: Option<String>,
    /// The action that led to this page.
    pub(super) done: Option<String>,
    /// The words to search for, or the question to try.
    pub(super) q: String,
    pub(super) kind: String,
    pub(super) state: String,
    pub(super) session: String,
    /// The number of a list's page, from 1.
    pub(super) page: String,
    /// Only turns after this one.
    pub(super) after: String,
    pub(super) days: String,
    pub(super) next: Option<String>,
}

impl Asked {
    /// The number of the page, from 1.
    pub(super) fn page(&self) -> u64 {
        self.page.parse().unwrap_or(1).clamp(1, 1_000_000)
    }
}

/// A place of the navigation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Section {
    #[default]
    None,
    Overview,
    Sessions,
    Memories,
    Requests,
    TryIt,
    Report,
}

/// The navigation, in its order.
const NAVIGATION: [(Section, &str, &str); 6] = [
    (Section::Overview, "/inspect", "Overview"),
    (Section::Sessions, "/inspect/sessions", "Sessions"),
    (Section::Memories, "/inspect/memories", "Memories"),
    (Section::Requests, "/inspect/requests", "Requests"),
    (Section::TryIt, "/inspect/try", "Try it"),
    (Section::Report, "/inspect/report", "Report"),
];

/// The frame around a page.
#[derive(Debug, Clone, Default)]
pub(super) struct Frame {
    pub(super) title: String,
    pub(super) section: Section,
    pub(super) user: String,
    /// The users to choose from; empty if the key decides.
    pub(super) users: Vec<String>,
    /// Whether there are more users than the list has.
    pub(super) has_more_users: bool,
    /// The first characters of the key, if one is used.
    pub(super) key: Option<String>,
    pub(super) can_write: bool,
    pub(super) token: String,
    pub(super) is_fresh: bool,
    pub(super) notice: Option<&'static str>,
}

impl Frame {
    pub(super) fn titled(mut self, section: Section, title: impl Into<String>) -> Self {
        (self.section, self.title) = (section, title.into());
        self
    }

    /// The address of a page for the same user.
    pub(super) fn href(&self, path: &str) -> String {
        self.href_with(path, "")
    }

    /// The same with more parameters, as `a=1&b=2`.
    pub(super) fn href_with(&self, path: &str, more: &str) -> String {
        let user = (!self.users.is_empty()).then(|| format!("user={}", encode(&self.user)));
        let parameters: Vec<&str> =
            user.as_deref().into_iter().chain([more]).filter(|part| !part.is_empty()).collect();
        match parameters.is_empty() {
            true => path.to_owned(),
            false => format!("{path}?{}", parameters.join("&")),
        }
    }

    /// The navigation: address, label, and whether it is the present place.
    pub(super) fn navigation(&self) -> Vec<(String, &'static str, bool)> {
        NAVIGATION
            .iter()
            .map(|(section, path, label)| (self.href(path), *label, *section == self.section))
            .collect()
    }

    /// Whether the user can be chosen.
    pub(super) fn can_choose(&self) -> bool {
        self.users.len() > 1
    }

    /// An answer with a page.
    pub(super) fn answer(&self, page: &impl Template) -> Result<Response, ApiError> {
        let html =
            page.render().map_err(|error| Error::internal(format!("a page was not rendered: {error}")))?;
        let mut response = html.into_response();
        self.head(response.headers_mut());
        Ok(response)
    }

    /// Adds the headers of a page, with the token of its forms if the browser does not have it yet.
    fn head(&self, headers: &mut HeaderMap) {
        protect(headers);
        if let Some(cookie) = set_cookie(FORM_COOKIE, &self.token, None).filter(|_| self.is_fresh) {
            headers.append(SET_COOKIE, cookie);
        }
    }

    /// Leads to a page after a form was handled.
    pub(super) fn go(&self, path: &str, done: &str) -> Response {
        Redirect::to(&self.href_with(path, &format!("done={done}"))).into_response()
    }
}

/// The headers of a page.
fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // `no-referrer` would make browsers send forms with the origin `null`.
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// The frame of a request, for the page about its failure: the menu and the user stay. It is empty if the request was refused
/// before the person and the user were known.
#[derive(Debug, Clone, Default)]
pub(crate) struct FrameSlot(Arc<OnceLock<Frame>>);

impl FrameSlot {
    fn fill(parts: &Parts, frame: &Frame) {
        if let Some(Self(slot)) = parts.extensions.get() {
            // One request has one frame.
            let _ = slot.set(frame.clone());
        }
    }

    fn take(self) -> Frame {
        self.0.get().cloned().map(|frame| Frame { notice: None, ..frame }).unwrap_or_default()
    }
}

/// The person in front of a page, and whose data it shows.
pub(super) struct Visitor {
    pub(super) user: UserId,
    pub(super) caller: Caller,
    pub(super) frame: Frame,
    pub(super) asked: Asked,
}

impl FromRequestParts<App> for Visitor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let Params(mut asked) = Params::<Asked>::from_request_parts(parts, app).await?;
        asked.user = asked.user.filter(|user| !user.is_empty());
        let (mut users, has_more_users) = users_to_choose(&caller, app).await?;
        let usual = usual_user(&caller, &users, &app.settings().user);
        if caller.is_unnamed() && asked.user.is_none() {
            asked.user = Some(usual.clone());
        }
        let user = caller.user([&asked.user]);
        // The page about a name that is refused has the menu of the usual user.
        let shown = user.as_ref().map_or(usual, ToString::to_string);
        if caller.is_unnamed() && !users.contains(&shown) {
            users.insert(0, shown.clone());
        }
        let notice = asked.done.as_deref().and_then(notice);
        let frame = Frame { user: shown, users, has_more_users, notice, ..signed_in(parts, &caller, app) };
        FrameSlot::fill(parts, &frame);
        Ok(Self { user: user?, caller, frame, asked })
    }
}

/// The users to choose from, and whether there are more. There are none if the key or the header decides.
async fn users_to_choose(caller: &Caller, app: &App) -> Result<(Vec<String>, bool), ApiError> {
    if !caller.is_unnamed() {
        return Ok((Vec::new(), false));
    }
    let users = app.engine().store().users(StorePage::first(MAX_USERS + 1)).await?;
    let has_more_users = users.len() > MAX_USERS as usize;
    let listed = users.into_iter().take(MAX_USERS as usize);
    Ok((listed.filter(|user| *user != UserId::global()).map(Into::into).collect(), has_more_users))
}

/// A frame with the key of a request, its rights and the token of its forms.
fn signed_in(parts: &Parts, caller: &Caller, app: &App) -> Frame {
    let token = cookie(&parts.headers, FORM_COOKIE).filter(|token| !token.is_empty()).map(str::to_owned);
    let identity = parts.extensions.get::<Identity>();
    Frame {
        key: identity.and_then(Identity::key).map(|key| key.prefix.clone()),
        can_write: caller.require(KeyScope::Write).is_ok(),
        is_fresh: token.is_none(),
        token: token.unwrap_or_else(|| new_token(app)),
        ..Frame::default()
    }
}

/// The user whose data is shown if the address names none: the one of the key or of the header, else the `configured` one. If
/// none is configured and `default` has no data, the first user is shown.
fn usual_user(caller: &Caller, users: &[String], configured: &UserId) -> String {
    let usual = caller.known_user().unwrap_or(configured).to_string();
    match users.first() {
        Some(first) if *configured == UserId::default() && !users.contains(&usual) => first.clone(),
        _ => usual,
    }
}

/// The answer to a path below `/inspect` that is no page.
pub(super) async fn unknown_page(_: Visitor) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "unknown_route", "there is no such page in the inspector")
}

/// A token for forms, from two ids with 74 random bits each.
pub(super) fn new_token(app: &App) -> String {
    format!("{}{}", app.engine().next_id().simple(), app.engine().next_id().simple())
}

/// The result of an action, in words. The parameter is one of these names, so that no link can put words on a page.
fn notice(done: &str) -> Option<&'static str> {
    Some(match done {
        "edited" => "The memory was edited. Its former statement stays in the history.",
        "deleted" => "The memory was deleted. It can be restored.",
        "restored" => "The memory is back.",
        "forgotten" => "The memory and its former statements were destroyed.",
        "complained" => "Your complaint was filed. It counts in the report.",
        "retried" => "The job is in the queue again.",
        _ => return None,
    })
}

#[derive(Template)]
#[template(path = "failure.html")]
struct FailurePage {
    frame: Frame,
    status: u16,
    message: String,
}

/// A failure as a page. `answer` is the same failure as JSON.
pub(crate) fn failure_page(frame: FrameSlot, error: ErrorDetail, answer: Response) -> Response {
    let status = answer.status().as_u16();
    let title = match status {
        404 => "Not found",
        401 | 403 => "Not allowed",
        500.. => "Something went wrong",
        _ => "That did not work",
    };
    let page = FailurePage {
        frame: frame.take().titled(Section::None, title),
        status,
        message: sentence(&quoted(&error.message)),
    };
    let (mut parts, body) = answer.into_parts();
    match page.render() {
        Ok(html) => {
            parts.headers.remove(CONTENT_LENGTH);
            page.frame.head(&mut parts.headers);
            Response::from_parts(parts, html.into())
        }
        Err(_) => Response::from_parts(parts, body),
    }
}

/// A message with typographic quotes instead of backticks.
pub(super) fn quoted(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for (place, part) in message.split('`').enumerate() {
        text.push_str(match place {
            0 => "",
            place if place % 2 == 1 => "“",
            _ => "”",
        });
        text.push_str(part);
    }
    text
}

/// A message with a capital letter at its beginning. Messages of errors begin with a small one, because other programs quote
/// them. A message that begins with a name stays as it is.
fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Percent-encodes a name for a path or a query.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => encoded.push(char::from(byte)),
            // A point alone would be read as a step in a path.
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// A moment as pages show it.
pub(super) fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M").to_string()
}

/// A day as pages show it.
pub(super) fn day(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d").to_string()
}

/// A number with separators between thousands.
pub(super) fn grouped(number: impl Into<i128>) -> String {
    let number: i128 = number.into();
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("−{text}") } else { text }
}

/// A number with its noun.
pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_written_for_links_and_people() {
        assert_eq!(encode("a/b ?&=#%.西"), "a%2Fb%20%3F%26%3D%23%25%2E%E8%A5%BF");
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (-1_234_567, "−1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn a_message_has_quotes_in_pairs() {
        assert_eq!(quoted("session `a` is no `b`"), "session “a” is no “b”");
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(sentence(&quoted("session `a` is gone")), "Session “a” is gone");
        assert_eq!(sentence(&quoted("`xyz` is no id")), "“xyz” is no id");
    }

    #[test]
    fn an_address_names_the_user_where_there_is_a_choice() {
        let bound = Frame { user: "ada".to_owned(), ..Frame::default() };
        assert_eq!(bound.href("/inspect"), "/inspect");
        let open = Frame { user: "a&b".to_owned(), users: vec!["a&b".to_owned()], ..Frame::default() };
        assert_eq!(open.href_with("/inspect", "page=2"), "/inspect?user=a%26b&page=2");
    }
}
