//! The body of a chat, as it is received: within the room that all bodies share, and without its compression.
//!
//! A chat waits for room only while it holds none that others wait for. Otherwise chats that each hold a part of the room would
//! wait for one another. So the room for a whole body is taken before it is read, and what it does not need is given back.
//! A compressed body has a room of its own while it waits for the room of its text.

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_ENCODING;
use axum::http::request::Parts;

use super::decoding::{encoding, unpacked};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::read_body_in_time;
use crate::room::{FIRST_BYTES, TakenRoom};

/// How much shorter a compressed text is at most, as a rule.
const USUAL_COMPRESSION: usize = 16;

/// The body of a chat, and the room that it takes until the chat has passed.
pub(super) enum Received {
    Readable(Bytes, TakenRoom),
    /// It is compressed in a way that cannot be read.
    Unreadable(Bytes, TakenRoom),
}

/// Receives the body of a chat, of which the beginning has come. The header that says how it is compressed is removed if it can
/// be read, because the body is passed on plain.
pub(super) async fn receive(app: &App, parts: &mut Parts, body: Body) -> Result<Received, ApiError> {
    let encoding = encoding(&parts.headers);
    let limit = app.settings().proxy.max_body_bytes;
    let most = most_bytes(&body, limit);
    if encoding.is_empty() {
        let room = room(app, most).await?;
        let (bytes, room) = read(app, parts, body, room).await?;
        return Ok(Received::Readable(bytes, room));
    }
    let unpacked = match most <= limit / USUAL_COMPRESSION {
        true => unpack_short(app, &encoding, parts, body).await?,
        false => unpack_long(app, &encoding, parts, body).await?,
    };
    if matches!(unpacked, Received::Readable(..)) {
        parts.headers.remove(CONTENT_ENCODING);
    }
    Ok(unpacked)
}

/// The most bytes that a body may have. One that declares too many is refused before it is read.
fn most_bytes(body: &Body, limit: usize) -> usize {
    let declared = body.size_hint().upper().map(|upper| usize::try_from(upper).unwrap_or(usize::MAX));
    match declared {
        Some(declared) if declared > limit => 0,
        declared => declared.unwrap_or(limit),
    }
}

/// Reads a body that has room, and gives back what it does not need.
async fn read(
    app: &App,
    parts: &Parts,
    body: Body,
    mut room: TakenRoom,
) -> Result<(Bytes, TakenRoom), ApiError> {
    let settings = app.settings();
    let limit = (settings.proxy.max_body_bytes, "proxy.max_body_bytes");
    let bytes =
        read_body_in_time(Request::from_parts(parts.clone(), body), limit, settings.body_timeout).await?;
    room.shrink(bytes.len());
    Ok((bytes, room))
}

/// Receives a compressed body whose text has hardly ever more than the largest size. Text is rarely compressed further than
/// [`USUAL_COMPRESSION`]; a body that is takes the room of the largest.
async fn unpack_short(app: &App, encoding: &str, parts: &Parts, body: Body) -> Result<Received, ApiError> {
    let limit = app.settings().proxy.max_body_bytes;
    // The beginning of a body takes no room.
    let packed_room = match most_bytes(&body, limit) {
        most if most <= FIRST_BYTES => TakenRoom::default(),
        most => in_time(app, app.rooms().take_packed(most)).await?,
    };
    let (packed, packed_room) = read(app, parts, body, packed_room).await?;
    for most in [packed.len().saturating_mul(USUAL_COMPRESSION).min(limit), limit] {
        let mut room = room(app, most).await?;
        if let Some(bytes) = decoded(encoding, &packed, most).await {
            room.shrink(bytes.len());
            return Ok(Received::Readable(bytes, room));
        }
    }
    Ok(Received::Unreadable(packed, packed_room))
}

/// Receives a compressed body that is long, or of unknown length. It takes the room for itself and for the longest text at once.
async fn unpack_long(app: &App, encoding: &str, parts: &Parts, body: Body) -> Result<Received, ApiError> {
    let limit = app.settings().proxy.max_body_bytes;
    let settings = app.settings();
    let mut room = room(app, most_bytes(&body, limit).saturating_add(limit)).await?;
    let limits = (limit, "proxy.max_body_bytes");
    let packed =
        read_body_in_time(Request::from_parts(parts.clone(), body), limits, settings.body_timeout).await?;
    Ok(match decoded(encoding, &packed, limit).await {
        Some(bytes) => {
            room.shrink(bytes.len());
            Received::Readable(bytes, room)
        }
        None => {
            room.shrink(packed.len());
            Received::Unreadable(packed, room)
        }
    })
}

/// A compressed body as it is; `None` if it cannot be read, or has more than `most` bytes.
async fn decoded(encoding: &str, packed: &Bytes, most: usize) -> Option<Bytes> {
    let (packed, encoding) = (packed.clone(), encoding.to_owned());
    let decoding = tokio::task::spawn_blocking(move || unpacked(&encoding, &packed, most));
    decoding.await.ok().flatten().map(Bytes::from)
}

/// Waits until there is room for a body, as long as a client may take to send one.
pub(super) async fn room(app: &App, bytes: usize) -> Result<TakenRoom, ApiError> {
    in_time(app, app.rooms().take(bytes)).await
}

async fn in_time(app: &App, room: impl Future<Output = TakenRoom>) -> Result<TakenRoom, ApiError> {
    tokio::time::timeout(app.settings().body_timeout, room).await.map_err(|_| {
        ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "busy",
            "too many large chats are under way (setting `max_bytes_under_way`); try again",
        )
        .retryable()
    })
}
