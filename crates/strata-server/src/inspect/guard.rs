//! Cookies, form tokens and origins: what keeps other sites from acting through the browser of a person who is signed in.
//!
//! - The key is in a cookie that scripts cannot read and that other sites' requests do not carry (`HttpOnly`,
//!   `SameSite=Strict`). The cookie is sent to `/inspect` only, so that it never reaches the proxy.
//! - A form holds a token that a second cookie holds too. A page of another origin can read neither.
//! - A form must come from this server's own origin, port included. Cookies do not know ports: another program of this
//!   machine is the same site for a browser, and only the origin tells it apart.

use std::collections::BTreeMap;

use axum::extract::{FromRequest, Request};
use axum::http::header::{ACCEPT, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Method, Uri};
use axum::response::{IntoResponse, Redirect, Response};

use super::frame::encode;
use super::overview::overview_address;
use crate::app::App;
use crate::cookies::{FORM_COOKIE, cookie};
use crate::error::ApiError;
use crate::extract::read_body_in_time;
use crate::route::Access;

/// The field of a form that holds the token.
pub(super) const TOKEN_FIELD: &str = "form_token";

/// Whether a client wants a page: it accepts HTML, and names it before JSON.
pub(crate) fn prefers_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match (accepted.find("text/html"), accepted.find("application/json")) {
        (Some(html), Some(json)) => html < json,
        (html, _) => html.is_some(),
    }
}

/// The answer to a request without a valid key. A browser that opens a page is led to the form for signing in.
pub(crate) fn refused(
    access: Access,
    (method, uri, headers): (&Method, &Uri, &HeaderMap),
    error: ApiError,
) -> Response {
    let is_page = access == Access::Inspector || (uri.path() == "/" && prefers_html(headers));
    let is_missing = error.detail().0 == axum::http::StatusCode::UNAUTHORIZED;
    if is_page && is_missing && *method == Method::GET {
        let back = match uri.path() {
            "/" => overview_address(uri),
            path => uri.path_and_query().map_or(path, |path| path.as_str()).to_owned(),
        };
        return Redirect::to(&format!("/inspect/sign-in?next={}", encode(&back))).into_response();
    }
    error.into_response()
}

/// Where to go after signing in: a page of the inspector, never another site.
pub(super) fn safe_next(next: Option<&str>) -> &str {
    next.filter(|next| *next == "/inspect" || next.starts_with("/inspect/") || next.starts_with("/inspect?"))
        .filter(|next| !next.chars().any(char::is_control) && !next.contains('\\'))
        .unwrap_or("/inspect")
}

/// A form that was filled in on a page of this server.
pub(super) struct Form(BTreeMap<String, String>);

impl Form {
    /// A field; empty if the form does not have it.
    pub(super) fn field(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }
}

impl FromRequest<App> for Form {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let headers = request.headers().clone();
        check_origin(&headers)?;
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("application/x-www-form-urlencoded") {
            return Err(ApiError::invalid("the body is not a form; use the form on the page"));
        }
        let settings = app.settings();
        let limit = (settings.max_body_bytes, "max_body_bytes");
        let bytes = read_body_in_time(request, limit, settings.body_timeout).await?;
        let form =
            parse_form(&bytes).ok_or_else(|| ApiError::invalid("the form is not UTF-8; send it again"))?;
        let form = Self(form);
        let token = cookie(&headers, FORM_COOKIE).filter(|token| !token.is_empty());
        if token.is_none_or(|token| token != form.field(TOKEN_FIELD)) {
            return Err(ApiError::forbidden(
                "stale_form",
                "this form is not from a page that is open in this browser; go back, load the page again and repeat it",
            ));
        }
        Ok(form)
    }
}

/// Refuses a form of another origin. `guarded` lets pages of all programs on this machine call the API; a form acts with the
/// cookie of a person and has to come from this server itself.
fn check_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let site = text(HeaderName::from_static("sec-fetch-site"));
    let origin = text(ORIGIN).map(|origin| {
        origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")).unwrap_or(origin)
    });
    let same_origin = origin.is_none_or(|origin| Some(origin) == text(HOST));
    let same_site = site.is_none_or(|site| site == "same-origin");
    match same_origin && same_site && (origin.is_some() || site.is_some()) {
        true => Ok(()),
        false => Err(ApiError::forbidden(
            "forbidden_origin",
            "this form was not sent by a page of this server; open the inspector itself",
        )),
    }
}

/// The fields of a form; `None` if it is not UTF-8. A field that comes twice keeps its last value.
fn parse_form(bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    let decode = |text: &[u8]| -> Option<String> {
        let mut decoded = Vec::with_capacity(text.len());
        let mut rest = text.iter();
        while let Some(byte) = rest.next() {
            decoded.push(match byte {
                b'+' => b' ',
                b'%' => {
                    let mut digit = || rest.next().and_then(|byte| char::from(*byte).to_digit(16));
                    (digit()? * 16 + digit()?) as u8
                }
                byte => *byte,
            });
        }
        // A browser sends line ends as CR LF.
        String::from_utf8(decoded).ok().map(|text| text.replace("\r\n", "\n"))
    };
    let pairs = bytes.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let mut parts = pair.splitn(2, |byte| *byte == b'=');
            Some((decode(parts.next()?)?, decode(parts.next().unwrap_or_default())?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn a_form_comes_from_this_server() {
        let check = |pairs: &[(&'static str, &str)]| check_origin(&headers(pairs)).is_ok();
        let host = ("host", "localhost:8100");
        assert!(check(&[host, ("origin", "http://localhost:8100")]));
        assert!(check(&[host, ("origin", "http://localhost:8100"), ("sec-fetch-site", "same-origin")]));
        for wrong in [
            &[host][..],
            &[host, ("origin", "http://localhost:3000")],
            &[host, ("origin", "http://127.0.0.1:8100")],
            &[host, ("origin", "null")],
            &[host, ("origin", "http://localhost:8100"), ("sec-fetch-site", "same-site")],
            &[host, ("sec-fetch-site", "cross-site")],
        ] {
            assert!(!check(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn forms_are_decoded() {
        let form = parse_form("a=1+2&b=%E8%A5%BF%E6%B9%96&c=x%0D%0Ay&d&a=3".as_bytes()).unwrap();
        let pairs: Vec<_> = form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("a", "3"), ("b", "西湖"), ("c", "x\ny"), ("d", "")]);
        assert!(parse_form(b"a=%ff").is_none() && parse_form(b"a=%").is_none());
    }

    #[test]
    fn a_browser_is_told_from_a_client() {
        let accepts = |value: &str| prefers_html(&headers(&[("accept", value)]));
        assert!(accepts("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        for value in ["*/*", "application/json", "application/json, text/html", "text/plain"] {
            assert!(!accepts(value), "{value}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }

    #[test]
    fn nothing_leads_to_another_site() {
        for good in ["/inspect", "/inspect/memories?user=a", "/inspect?user=a"] {
            assert_eq!(safe_next(Some(good)), good);
        }
        for bad in
            ["//evil.example", "https://evil.example", "/inspectx", "/", "/inspect/\\evil", "/inspect/\n"]
        {
            assert_eq!(safe_next(Some(bad)), "/inspect", "{bad}");
        }
    }
}
