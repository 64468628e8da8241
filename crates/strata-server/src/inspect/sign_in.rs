//! Signing in with a key, and out.

use askama::Template;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use strata_core::key::KeyScope;

use super::frame::{Asked, Frame, Section, new_token, quoted};
use super::guard::{Form, safe_next};
use crate::app::App;
use crate::cookies::{FORM_COOKIE, KEY_COOKIE, cookie, set_cookie};
use crate::error::ApiError;
use crate::extract::Params;
use crate::keys::{API_KEY, Needed};
use crate::route::{Dialect, Route};

/// How long a person stays signed in: a working day.
const SIGNED_IN_SECS: u32 = 12 * 3_600;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::undocumented("/inspect/sign-in", get(show).post(sign_in)).open().speaks(Dialect::Page),
        Route::undocumented("/inspect/sign-out", post(sign_out)).open().speaks(Dialect::Page),
    ]
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
    next: String,
    problem: Option<String>,
}

fn page(app: &App, headers: &HeaderMap, next: &str, problem: Option<String>) -> Result<Response, ApiError> {
    let token = cookie(headers, FORM_COOKIE).filter(|token| !token.is_empty()).map(str::to_owned);
    let frame = Frame {
        is_fresh: token.is_none(),
        token: token.unwrap_or_else(|| new_token(app)),
        ..Frame::default().titled(Section::None, "Sign in")
    };
    let page = SignInPage { frame, next: next.to_owned(), problem };
    page.frame.answer(&page)
}

async fn show(
    State(app): State<App>,
    headers: HeaderMap,
    Params(asked): Params<Asked>,
) -> Result<Response, ApiError> {
    page(&app, &headers, safe_next(asked.next.as_deref()), None)
}

async fn sign_in(State(app): State<App>, headers: HeaderMap, form: Form) -> Result<Response, ApiError> {
    let next = safe_next(Some(form.field("next")));
    let key = form.field("key").trim();
    let mut presented = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_str(key) {
        presented.insert(API_KEY, value);
    }
    let needed = Needed { scopes: &[KeyScope::Read], instead: None };
    let admitted = app.keys().admit((app.engine(), app.settings()), needed, &presented).await;
    match admitted {
        Ok((identity, _)) if identity.key().is_some() => {
            let mut response = Redirect::to(next).into_response();
            if let Some(cookie) = set_cookie(KEY_COOKIE, key, Some(SIGNED_IN_SECS)) {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            Ok(response)
        }
        // A server without keys needs no signing in.
        Ok(_) => Ok(Redirect::to(next).into_response()),
        Err(error) => {
            let mut response = page(&app, &headers, next, Some(problem(&error)))?;
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            Ok(response)
        }
    }
}

/// What a person gave instead of a key. A form has no headers to speak of.
const NO_KEY: &str =
    "this is no key of this server; a key begins with `strata_`, and `strata keys create` makes one";

/// Why a key is not accepted, for a person.
fn problem(error: &ApiError) -> String {
    let is_key = error.code() != "missing_api_key";
    quoted(&if is_key { error.message() } else { NO_KEY.to_owned() })
}

async fn sign_out(_form: Form) -> Response {
    let mut response = Redirect::to("/inspect/sign-in").into_response();
    if let Some(cookie) = set_cookie(KEY_COOKIE, "", Some(0)) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}
