//! Strict reading of requests: an unknown field or parameter is refused with a message, never ignored.

pub(crate) mod numbers;

use std::collections::VecDeque;
use std::error::Error as _;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};

use crate::app::App;
use crate::error::ApiError;
use crate::room::FIRST_BYTES;

/// How many bytes of a body that is too large are still read and discarded. A client that sends without reading sees
/// the answer only after it has finished sending. A client that never finishes is cut off.
const MAX_DISCARDED_BYTES: usize = 128 * 1024 * 1024;

/// How long they are read.
const MAX_DISCARD_TIME: Duration = Duration::from_secs(5);

/// A JSON body.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        check_content_type(request.headers())?;
        let settings = app.settings();
        let limit = (settings.max_body_bytes, "max_body_bytes");
        let bytes = read_body_in_time(request, limit, settings.body_timeout).await?;
        let Json(Object(value)) = Json::from_bytes(&bytes).map_err(|rejection| {
            let reason = rejection.source().map_or_else(|| rejection.to_string(), ToString::to_string);
            ApiError::invalid(format!("the body is not what this route takes: {reason}"))
        })?;
        Ok(Self(value))
    }
}

/// A JSON object. Derived code would also accept an array of the fields' values.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// Reads a JSON object, for a field of a body.
pub(crate) fn object<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Object::deserialize(deserializer).map(|Object(value)| value)
}

/// Reads a list of JSON objects, for fields of a body.
pub(crate) fn objects<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let list = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(list.into_iter().map(|Object(value)| value).collect())
}

/// Reads a list of JSON objects, or nothing.
pub(crate) fn optional_objects<'de, T, D>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let list = Option::<Vec<Object<T>>>::deserialize(deserializer)?;
    Ok(list.map(|list| list.into_iter().map(|Object(value)| value).collect()))
}

fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let value = values.next().and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = value.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
    let is_json = essence == "application/json"
        || essence.strip_prefix("application/").is_some_and(|rest| rest.ends_with("+json"));
    let is_utf8 = parts.filter_map(|part| part.split_once('=')).all(|(name, value)| {
        !name.trim().eq_ignore_ascii_case("charset")
            || value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    if is_json && is_utf8 && values.next().is_none() {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "the body's type is not JSON in UTF-8; send `Content-Type: application/json`",
    ))
}

/// Reads a body of at most `limit` bytes, within `timeout`. The message of a failure names the setting.
pub(crate) async fn read_body_in_time(
    request: Request,
    (limit, setting): (usize, &str),
    timeout: Duration,
) -> Result<Bytes, ApiError> {
    tokio::time::timeout(timeout, read_body(request, limit, setting)).await.map_err(|_| late())?
}

/// Reads the beginning of a request's body, or all of it if it is short. A body that declares more than `limit` bytes is left
/// alone, because it will be refused unread.
pub(crate) async fn begun(request: Request, limit: usize, timeout: Duration) -> Result<Request, ApiError> {
    let declared = usize::try_from(request.body().size_hint().lower()).unwrap_or(usize::MAX);
    if request.body().is_end_stream() || declared > limit {
        return Ok(request);
    }
    let (parts, mut rest) = request.into_parts();
    let reading = async {
        let mut first = VecDeque::new();
        let mut bytes = 0;
        while bytes < FIRST_BYTES {
            let Some(frame) = rest.frame().await else {
                // Now its length is known.
                rest = Body::empty();
                break;
            };
            let frame = frame
                .map_err(|_| ApiError::invalid("the body ended before it was complete; send it again"))?;
            bytes += frame.data_ref().map_or(0, Bytes::len);
            first.push_back(frame);
        }
        Ok::<_, ApiError>((first, rest))
    };
    let (first, rest) = tokio::time::timeout(timeout, reading).await.map_err(|_| late())??;
    Ok(Request::from_parts(parts, Body::new(BegunBody { first, rest })))
}

/// A body of which the beginning is known.
pub(crate) struct Peeked {
    /// Its beginning, or all of it.
    pub(crate) bytes: Vec<u8>,
    /// Whether this is all of it.
    pub(crate) is_whole: bool,
    /// All of it, unread.
    pub(crate) body: Body,
}

/// Looks at the first `most` bytes of a body, or at fewer if they do not arrive within `timeout`.
pub(crate) async fn peeked(mut rest: Body, most: usize, timeout: Duration) -> Result<Peeked, ApiError> {
    let deadline = tokio::time::Instant::now() + timeout;
    let (mut first, mut bytes, mut is_whole) = (VecDeque::new(), Vec::new(), false);
    while bytes.len() < most {
        match tokio::time::timeout_at(deadline, rest.frame()).await {
            Ok(Some(frame)) => {
                let frame = frame
                    .map_err(|_| ApiError::invalid("the body ended before it was complete; send it again"))?;
                bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
                first.push_back(frame);
            }
            Ok(None) => {
                is_whole = true;
                break;
            }
            Err(_) => break,
        }
    }
    // A body of a known length has to keep it: the upstream may refuse a body in chunks.
    let is_whole = is_whole || rest.is_end_stream();
    Ok(Peeked { bytes, is_whole, body: Body::new(BegunBody { first, rest }) })
}

/// A body whose beginning was read.
struct BegunBody {
    first: VecDeque<Frame<Bytes>>,
    rest: Body,
}

impl HttpBody for BegunBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.first.pop_front() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None => Pin::new(&mut self.rest).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let first =
            self.first.iter().filter_map(Frame::data_ref).map(|bytes| bytes.len() as u64).sum::<u64>();
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(first.saturating_add(rest.lower()));
        if let Some(upper) = rest.upper() {
            hint.set_upper(first.saturating_add(upper));
        }
        hint
    }
}

fn late() -> ApiError {
    ApiError::new(
        StatusCode::REQUEST_TIMEOUT,
        "body_timeout",
        "the body did not arrive in time; send it again, faster",
    )
}

async fn read_body(request: Request, limit: usize, setting: &str) -> Result<Bytes, ApiError> {
    // A client that waits for `100 Continue` has not begun to send, so there is nothing to discard.
    let waits = request.headers().contains_key(header::EXPECT);
    let mut body = request.into_body();
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut too_large = declared > limit;
    // A buffer that grows would be copied, and takes up to three times the memory. The part of it that is never written takes
    // none, so a body of unknown length gets the largest.
    let most = body.size_hint().upper().map_or(limit, |upper| usize::try_from(upper).unwrap_or(limit));
    let mut bytes = Vec::with_capacity(if too_large { 0 } else { most.min(limit) });
    while !too_large && let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|_| ApiError::invalid("the body ended before it was complete; send it again"))?;
        if let Ok(data) = frame.into_data() {
            too_large = bytes.len() + data.len() > limit;
            bytes.extend_from_slice(&data);
        }
    }
    if !too_large {
        bytes.shrink_to_fit();
        return Ok(bytes.into());
    }
    if !waits {
        tokio::spawn(tokio::time::timeout(MAX_DISCARD_TIME, discard(body)));
    }
    Err(ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "too_large",
        format!("the body has more than {limit} bytes (setting `{setting}`); send it in several calls"),
    ))
}

async fn discard(mut body: Body) {
    let mut discarded = 0;
    while discarded < MAX_DISCARDED_BYTES
        && let Some(Ok(frame)) = body.frame().await
    {
        discarded += frame.data_ref().map_or(0, Bytes::len);
    }
}

/// The parameters of a query; each at most once, and only parameters that the route knows.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, ApiError> {
        Self::of(&parts.uri)
    }
}

impl<T: DeserializeOwned> Params<T> {
    /// Reads the parameters of an address.
    pub(crate) fn of(uri: &Uri) -> Result<Self, ApiError> {
        check_escapes(uri.query().unwrap_or_default(), "the query")?;
        let Query(params) = Query::try_from_uri(uri).map_err(|rejection| {
            let reason = rejection.source().map_or_else(|| rejection.to_string(), ToString::to_string);
            ApiError::invalid(format!("the query is not what this route takes: {reason}"))
        })?;
        Ok(Self(params))
    }
}

/// The decoded name in a path, or a tuple if the path has several.
pub(crate) struct PathName<T = String>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for PathName<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        check_escapes(parts.uri.path(), "the path")?;
        let Path(name) = Path::<T>::from_request_parts(parts, app)
            .await
            .map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
        Ok(Self(name))
    }
}

/// Refuses broken escapes and escapes that are not UTF-8, which other decoders repair silently.
fn check_escapes(text: &str, what: &str) -> Result<(), ApiError> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(ApiError::invalid(format!(
                "{what} has a `%` without two hexadecimal digits; write it as `%25`"
            )));
        };
        decoded.push((high * 16 + low) as u8);
    }
    match std::str::from_utf8(&decoded) {
        Ok(_) => Ok(()),
        Err(_) => Err(ApiError::invalid(format!("{what} is not UTF-8 once decoded; encode names as UTF-8"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_whole_and_utf8() {
        for text in ["", "a%2Fb", "%F0%9F%A6%80", "🦀", "..%2f..%2fx", "%00"] {
            assert!(check_escapes(text, "the path").is_ok(), "{text}");
        }
        for text in ["%", "%2", "%zz", "%ff", "%F0%9F", "%+1x"] {
            assert!(check_escapes(text, "the path").is_err(), "{text}");
        }
    }

    #[test]
    fn only_json_in_utf8_is_read() {
        let check = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, value.parse().unwrap());
            check_content_type(&headers).is_ok()
        };
        for value in
            ["application/json", "Application/JSON; charset=\"UTF-8\"", "application/merge-patch+json"]
        {
            assert!(check(value), "{value}");
        }
        for value in
            ["", "text/plain", "application/jsonx", "application/json; charset=latin1", "text/x+json"]
        {
            assert!(!check(value), "{value}");
        }
        assert!(check_content_type(&HeaderMap::new()).is_err());
    }
}
