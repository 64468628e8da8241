//! Calls to model endpoints and downloads: JSON in, answers of a bounded size out, within a time limit.

use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode, Uri};
use strata_core::{Error, Result};

/// The most bytes of an answer that is read whole: a batch of a thousand embeddings is about 30 MB of JSON.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// A client that keeps connections open between calls. Cheap to clone.
#[derive(Clone)]
pub struct HttpClient {
    client: strata_http::Client<Full<Bytes>>,
    timeout: Duration,
}

/// An answer read whole.
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// How long the server asks to wait before the next try.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Bytes,
}

impl HttpClient {
    /// A client whose calls fail after `timeout` without an answer.
    pub fn new(timeout: Duration) -> Self {
        Self { client: strata_http::client(), timeout }
    }

    /// Posts JSON and reads the answer whole.
    pub async fn post_json(&self, url: &str, key: Option<&str>, body: &serde_json::Value) -> Result<Answer> {
        self.post_json_within(url, key, body, MAX_ANSWER_BYTES).await
    }

    /// As [`HttpClient::post_json`], refusing an answer of more than `most_bytes`.
    pub async fn post_json_within(
        &self,
        url: &str,
        key: Option<&str>,
        body: &serde_json::Value,
        most_bytes: usize,
    ) -> Result<Answer> {
        let headers = json_headers(key)?;
        let call = async {
            let response = self.send(Method::POST, url, headers, Bytes::from(body.to_string())).await?;
            read_whole(url, response, most_bytes).await
        };
        self.in_time(url, call).await
    }

    /// Posts JSON and returns when the answer begins, to be read piece by piece.
    pub async fn post_json_begun(
        &self,
        url: &str,
        key: Option<&str>,
        body: &serde_json::Value,
    ) -> Result<Response<Incoming>> {
        let headers = json_headers(key)?;
        self.in_time(url, self.send(Method::POST, url, headers, Bytes::from(body.to_string()))).await
    }

    /// Reads an answer that has begun whole, refusing one of more than `most_bytes`.
    pub async fn read_whole(
        &self,
        url: &str,
        response: Response<Incoming>,
        most_bytes: usize,
    ) -> Result<Answer> {
        self.in_time(url, read_whole(url, response, most_bytes)).await
    }

    /// Starts a download, from byte `from` on where the server can do that.
    pub async fn get(&self, url: &str, from: u64) -> Result<Response<Incoming>> {
        let mut headers = HeaderMap::new();
        if from > 0
            && let Ok(range) = HeaderValue::from_str(&format!("bytes={from}-"))
        {
            headers.insert(hyper::header::RANGE, range);
        }
        self.in_time(url, self.send(Method::GET, url, headers, Bytes::new())).await
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>> {
        let uri: Uri = url
            .parse()
            .map_err(|error| Error::invalid(format!("`{}` is no URL", shown(url))).with_source(error))?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        self.client.request(request).await.map_err(|error| {
            Error::unavailable(format!("`{}` cannot be reached", shown(url))).with_source(error).retryable()
        })
    }

    async fn in_time<T>(&self, url: &str, call: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::time::timeout(self.timeout, call).await.unwrap_or_else(|_| {
            let seconds = self.timeout.as_secs_f32();
            Err(Error::unavailable(format!("`{}` did not answer within {seconds} s", shown(url))).retryable())
        })
    }
}

fn json_headers(key: Option<&str>) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = key {
        let value = strata_http::bearer(key)
            .map_err(|_| Error::invalid("the API key holds characters that no header can carry"))?;
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

async fn read_whole(url: &str, response: Response<Incoming>, most_bytes: usize) -> Result<Answer> {
    let status = response.status();
    let retry_after = retry_after(response.headers());
    let body = Limited::new(response.into_body(), most_bytes).collect().await;
    let body = body.map_err(|error| not_read(url, error, most_bytes))?.to_bytes();
    Ok(Answer { status, retry_after, body })
}

fn not_read(url: &str, error: Box<dyn std::error::Error + Send + Sync>, most_bytes: usize) -> Error {
    if error.is::<LengthLimitError>() {
        let message = format!("the answer of `{}` is longer than {most_bytes} bytes", shown(url));
        return Error::unavailable(message);
    }
    Error::unavailable(format!("the answer of `{}` broke off", shown(url))).with_source(error).retryable()
}

/// How long a server asks to wait: seconds, or a date, which counts from the server's own.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let asked = text(RETRY_AFTER)?;
    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text: &str| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok();
    let wait = date(asked)?.duration_since(date(text(DATE)?)?);
    // A moment that has passed is now.
    Some(wait.try_into().unwrap_or_default())
}

/// A URL without what may be secret in it: credentials and the query.
fn shown(url: &str) -> String {
    let without_query = url.split(['?', '#']).next().unwrap_or_default();
    match (without_query.split_once("://"), without_query.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => without_query.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_given_in_seconds_or_as_a_date() {
        let check = |after: &str, date: &str, expected: Option<u64>| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, after.parse().unwrap());
            if !date.is_empty() {
                headers.insert(DATE, date.parse().unwrap());
            }
            assert_eq!(retry_after(&headers), expected.map(Duration::from_secs), "{after}");
        };
        let now = "Sun, 06 Nov 1994 08:49:37 GMT";
        check("7", "", Some(7));
        check("Sun, 06 Nov 1994 08:50:00 GMT", now, Some(23));
        check("Sun, 06 Nov 1994 08:49:00 GMT", now, Some(0));
        check("Sun, 06 Nov 1994 08:50:00 GMT", "", None);
        check("soon", now, None);
        check("-1", now, None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn a_shown_url_holds_no_secret() {
        let check = |url: &str, expected: &str| assert_eq!(shown(url), expected);
        check("https://host/v1/embeddings", "https://host/v1/embeddings");
        check("https://me:secret@host/v1?key=secret", "https://host/v1");
        check("host/path?token=secret", "host/path");
    }
}
