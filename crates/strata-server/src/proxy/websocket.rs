//! WebSockets, as realtime APIs use them: the connection passes in both directions, byte for byte.
//!
//! Nothing is recalled, because a model's session keeps what it was told. What is said in texts that Strata can read is recorded
//! ([`listener`]): OpenAI's realtime conversations and its Responses. A reply is recorded before its last message is passed on.
//! Of any other connection nothing is recorded, and the answer says so.

mod frames;
mod listener;
mod requests;

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONNECTION, SEC_WEBSOCKET_EXTENSIONS, UPGRADE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional, split};
use tokio::time::timeout;

use super::forward::unread;
use super::recalled::{Recalled, Recorded, WhyNothing};
use crate::app::App;
use crate::error::ApiError;
use crate::identity::Caller;
use crate::room::FIRST_BYTES;
use crate::upstream::{AnswerUse, Asked, answer_headers, decoded};
use frames::{MAX_MESSAGE_BYTES, MessageReader};
use listener::{Listener, Side};

const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

/// The bytes that pass at once.
const PIECE_BYTES: usize = 16 * 1024;

/// Passes a WebSocket on.
pub(crate) async fn pass(app: &App, caller: Caller, mut request: Request) -> Result<Response, ApiError> {
    let client = hyper::upgrade::on(&mut request);
    let (parts, _) = request.into_parts();
    let upstream = app.proxy().upstreams.choose(&asked(&parts))?;
    let listener = Listener::of(app, caller, &parts, upstream.number)?;
    let mut headers = upstream.headers(&parts, AnswerUse::Pass);
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, WEBSOCKET);
    if listener.is_some() {
        // Compressed messages could not be read.
        headers.remove(SEC_WEBSOCKET_EXTENSIONS);
    }
    let mut answer = upstream.send(parts.method.clone(), &parts.uri, headers, Body::empty()).await?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(unread(answer, upstream.timeout()));
    }
    let recorded = recorded(app, listener.as_ref());
    if recorded == Recorded::Never {
        tracing::info!(
            path = parts.uri.path(),
            "a WebSocket passes without memory; nothing of it is recorded"
        );
    }
    let server = hyper::upgrade::on(&mut answer);
    tokio::spawn(connect(client, server, listener));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = answer_headers(answer.headers());
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response.headers_mut().insert(UPGRADE, WEBSOCKET);
    Recalled::nothing(WhyNothing::WebSocket).tell(recorded, &mut response);
    Ok(response)
}

/// The parts of a request that choose its upstream.
fn asked(parts: &Parts) -> Asked<'_> {
    let given = |name: &str| {
        let mut pairs =
            parts.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let value = pairs.find(|(key, value)| *key == name && !value.is_empty())?.1;
        Some(String::from_utf8_lossy(&decoded(value.as_bytes())).into_owned().into())
    };
    // Azure names the deployment.
    let model = given("model").or_else(|| given("deployment"));
    let by_path = Asked::of_path(parts.uri.path());
    Asked { model: model.or(by_path.model), ..by_path }
}

/// When something of a connection is recorded.
fn recorded(app: &App, listener: Option<&Listener>) -> Recorded {
    match listener.is_some_and(Listener::records) {
        false => Recorded::Never,
        true if app.settings().proxy.reply_wait.is_some() => Recorded::Later,
        true => Recorded::BeforeTheEnd,
    }
}

/// Passes everything between the two ends until they have closed. Either end may do that at any time.
async fn connect(client: OnUpgrade, server: OnUpgrade, listener: Option<Listener>) {
    let (Ok(client), Ok(server)) = tokio::join!(client, server) else { return };
    let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
    match listener {
        None => drop(copy_bidirectional(&mut client, &mut server).await),
        Some(listener) => overhear(client, server, &listener).await,
    }
}

/// The same for ends that are listened to.
async fn overhear(client: TokioIo<Upgraded>, server: TokioIo<Upgraded>, listener: &Listener) {
    let (from_client, to_client) = split(client);
    let (from_server, to_server) = split(server);
    let passed = tokio::try_join!(
        pump(from_client, to_server, listener, Side::Client),
        pump(from_server, to_client, listener, Side::Server),
    );
    if let Err(error) = passed {
        tracing::debug!(%error, "a WebSocket broke off");
    }
    listener.end().await;
}

/// Passes one direction on. A message is heard before its end is passed on.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    listener: &Listener,
    side: Side,
) -> io::Result<()> {
    let app = listener.app();
    let (mut reader, mut room) = (MessageReader::default(), None);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        // The rest of a message that takes room has to come.
        let patience = room.as_ref().map_or(Duration::MAX, |_| app.settings().body_timeout);
        let Ok(count) = timeout(patience, from.read(&mut piece)).await else {
            reader.give_up();
            room = None;
            listener.lose(side)?;
            continue;
        };
        let piece = &piece[..count?];
        if piece.is_empty() {
            return to.shutdown().await;
        }
        let (mut messages, was_lost) = (Vec::new(), reader.is_lost());
        reader.feed(piece, |message| messages.push(message));
        for message in messages {
            listener.hear(side, &message).await?;
        }
        if reader.is_lost() && !was_lost {
            listener.lose(side)?;
        }
        match reader.held() {
            0 => room = None,
            held if held > FIRST_BYTES && room.is_none() => {
                room = Some(app.rooms().take(MAX_MESSAGE_BYTES).await)
            }
            _ => {}
        }
        to.write_all(piece).await?;
        to.flush().await?;
    }
}

/// The text messages in these pieces of one direction.
#[cfg(feature = "fuzz")]
pub(crate) fn messages(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    let (mut reader, mut found) = (MessageReader::default(), Vec::new());
    pieces.iter().for_each(|piece| reader.feed(piece, |message| found.push(message)));
    found
}
