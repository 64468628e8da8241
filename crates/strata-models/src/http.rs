//! Calls to model endpoints and downloads, with a limit of time and of the answer's size.

use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode, Uri};
use strata_core::{Error, Result};
use strata_http::Transport;

/// The maximum size of an answer in bytes: a batch of a thousand embeddings is about 30 MB of JSON.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// A client that keeps connections open between calls. It is cheap to clone.
#[derive(Clone)]
pub struct HttpClient {
    client: strata_http::Client<Full<Bytes>>,
    timeout: Duration,
}

/// A complete answer.
pub(crate) struct Answer {
    /// The status.
    pub status: StatusCode,
    /// How long the server asks the client to wait before the next try.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Bytes,
}

impl HttpClient {
    /// A client whose calls fail after `timeout` without an answer.
    pub fn new(timeout: Duration) -> Self {
        Self::through(&Transport::default(), timeout)
    }

    /// A client that reaches servers in this way.
    pub(crate) fn through(transport: &Transport, timeout: Duration) -> Self {
        Self { client: strata_http::client(transport), timeout }
    }

    /// Posts JSON and reads the complete answer.
    pub(crate) async fn post_json(
        &self,
        url: &str,
        key: Option<&str>,
        body: &serde_json::Value,
    ) -> Result<Answer> {
        self.post_json_within(url, key, body, MAX_ANSWER_BYTES).await
    }

    /// As [`HttpClient::post_json`]; an answer of more than `most_bytes` is an error.
    pub(crate) async fn post_json_within(
        &self,
        url: &str,
        key: Option<&str>,
        body: &serde_json::Value,
        most_bytes: usize,
    ) -> Result<Answer> {
        let headers = json_headers(key)?;
        let call = async {
            let response = self.send(Method::POST, url, headers, Bytes::from(body.to_string())).await?;
            read_body(url, response, most_bytes).await
        };
        self.in_time(url, call).await
    }

    /// Posts JSON and returns when the answer begins; the caller reads the body.
    pub(crate) async fn post_json_streamed(
        &self,
        url: &str,
        key: Option<&str>,
        body: &serde_json::Value,
    ) -> Result<Response<Incoming>> {
        let headers = json_headers(key)?;
        self.in_time(url, self.send(Method::POST, url, headers, Bytes::from(body.to_string()))).await
    }

    /// Reads the rest of an answer; one of more than `most_bytes` is an error.
    pub(crate) async fn read_answer(
        &self,
        url: &str,
        response: Response<Incoming>,
        most_bytes: usize,
    ) -> Result<Answer> {
        self.in_time(url, read_body(url, response, most_bytes)).await
    }

    /// Starts a download at byte `from`, if the server supports ranges, else at the beginning.
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
            .map_err(|error| Error::invalid(format!("`{}` is not a URL", shown(url))).with_source(error))?;
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
        let value = strata_http::bearer(key).map_err(|_| {
            Error::invalid("the API key contains characters that an HTTP header cannot carry")
        })?;
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

async fn read_body(url: &str, response: Response<Incoming>, most_bytes: usize) -> Result<Answer> {
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
    Error::unavailable(format!("the answer of `{}` was interrupted", shown(url)))
        .with_source(error)
        .retryable()
}

/// How long a server asks the client to wait: seconds, or a date, which is compared with the server's own date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let asked = text(RETRY_AFTER)?;
    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text: &str| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok();
    let wait = date(asked)?.duration_since(date(text(DATE)?)?);
    // A date in the past means no wait.
    Some(wait.try_into().unwrap_or_default())
}

/// A URL without the parts that may be secret: credentials and the query.
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
