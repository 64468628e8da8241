//! WebSockets, as realtime APIs use them: the connection passes in both directions. Its frames are sounds and events of
//! one exchange that never ends, so nothing is recalled or recorded, and the answer says so.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use super::forward::unread;
use super::recalled::{Recalled, Recorded, WhyNothing};
use crate::app::App;
use crate::error::ApiError;
use crate::upstream::{AnswerUse, Asked, answer_headers, decoded};

const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

/// Whether a request asks for a WebSocket.
pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Passes a WebSocket on.
pub(crate) async fn pass(app: &App, mut request: Request) -> Result<Response, ApiError> {
    let client = hyper::upgrade::on(&mut request);
    let (parts, _) = request.into_parts();
    let mut pairs = parts.uri.query().unwrap_or_default().split('&');
    let model = pairs.find_map(|pair| pair.strip_prefix("model=")).map(|model| decoded(model.as_bytes()));
    let model = model.map(|model| String::from_utf8_lossy(&model).into_owned().into());
    let by_path = Asked::of_path(parts.uri.path());
    let upstream = app.proxy().upstreams.choose(&Asked { model: model.or(by_path.model), ..by_path })?;
    let mut headers = upstream.headers(&parts, AnswerUse::Pass);
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, WEBSOCKET);
    let mut answer = upstream.send(parts.method.clone(), &parts.uri, headers, Body::empty()).await?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(unread(answer, upstream.timeout()));
    }
    tracing::info!(path = parts.uri.path(), "a WebSocket passes without memory; nothing of it is recorded");
    let server = hyper::upgrade::on(&mut answer);
    tokio::spawn(async move {
        let (Ok(client), Ok(server)) = tokio::join!(client, server) else { return };
        // Either end may close the connection at any time.
        let _ = copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(server)).await;
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = answer_headers(answer.headers());
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response.headers_mut().insert(UPGRADE, WEBSOCKET);
    Recalled::nothing(WhyNothing::WebSocket).tell(Recorded::Never, &mut response);
    Ok(response)
}
