//! The names in the body of a forwarded request: its model, which chooses the upstream, and the ids that it goes on with.

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;

use super::decoding::{encoding, unpacked};
use super::receiving::room;
use crate::app::App;
use crate::compat::chat::name;
use crate::compat::chat::splice::{self, Object};
use crate::error::ApiError;
use crate::extract::{Peeked, peeked};
use crate::identity::Caller;
use crate::room::{FIRST_BYTES, TakenRoom};

/// The largest JSON body that is read. Larger ones have no model.
const MAX_JSON_BYTES: usize = 8 * 1024 * 1024;

/// The largest body that is read for the ids that it goes on with. Larger ones are refused.
const MAX_CHECKED_BYTES: usize = 32 * 1024 * 1024;

/// The most of a form that is read for its model, which may stand behind a file. Providers take audio up to 25 MB.
const MAX_FORM_BYTES: usize = 32 * 1024 * 1024;

/// A longer name is no model's.
const MAX_NAME_BYTES: usize = 512;

/// The names that were found.
#[derive(Default)]
pub(super) struct Named {
    pub(super) model: Option<String>,
    /// Ids of what the provider has stored.
    pub(super) stored: Vec<String>,
    /// Whether all ids are known.
    is_read: bool,
    /// The room for the part of the body that was read, until it is passed on.
    pub(super) room: TakenRoom,
}

/// The forms of a body that are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Multipart,
}

/// Reads what decides where a request goes, and whether it may.
pub(super) async fn read_named(
    app: &App,
    caller: &Caller,
    request: Request,
) -> Result<(Parts, Body, Named), ApiError> {
    let several = app.proxy().upstreams.are_several();
    let (parts, body) = request.into_parts();
    // A server may take a body for JSON whatever its type is.
    let is_checked = caller.has_key() && parts.uri.path().split('/').any(|segment| segment == "responses");
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().trim_start().to_ascii_lowercase();
    let (form, most) = match kind {
        _ if is_checked => (Form::Json, MAX_CHECKED_BYTES),
        _ if !several => return Ok((parts, body, Named::default())),
        _ if kind.starts_with("multipart/form-data") => (Form::Multipart, MAX_FORM_BYTES),
        _ if kind.starts_with("application/json") => (Form::Json, MAX_JSON_BYTES),
        _ => return Ok((parts, body, Named::default())),
    };
    let is_too_large = form == Form::Json && body.size_hint().lower() > most as u64;
    if body.is_end_stream() || is_too_large && !is_checked {
        return Ok((parts, body, Named::default()));
    }
    let declared = usize::try_from(body.size_hint().upper().unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let timeout = app.settings().body_timeout;
    // A client that declares a body and does not send it takes no room.
    let mut peek = peeked(body, FIRST_BYTES, timeout).await?;
    let mut named = Named::of(form, &parts, &peek);
    let has_more = !peek.is_whole && named.model.is_none() && peek.bytes.len() >= FIRST_BYTES;
    if has_more && !is_too_large {
        // It is held as it came, to be passed on, and in one piece, to be read.
        let room = room(app, declared.min(most).saturating_mul(2)).await?;
        peek = peeked(peek.body, most, timeout).await?;
        named = Named { room, ..Named::of(form, &parts, &peek) };
    }
    if is_checked && !(peek.is_whole && named.is_read) {
        return Err(unchecked());
    }
    Ok((parts, peek.body, named))
}

/// A body that cannot be read might go on with what belongs to somebody else.
fn unchecked() -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "too_large",
        "the body is too large, too slow or compressed in a way that cannot be read, so the ids in it cannot be checked; send it \
         smaller, and plain or with gzip",
    )
}

impl Named {
    fn of(form: Form, parts: &Parts, peek: &Peeked) -> Self {
        match form {
            Form::Json if peek.is_whole => {
                let encoding = encoding(&parts.headers);
                match unpacked(&encoding, &peek.bytes, MAX_CHECKED_BYTES) {
                    Some(bytes) => json_names(&bytes),
                    None => Self::default(),
                }
            }
            Form::Json => Self::default(),
            Form::Multipart => Self { model: form_model(&peek.bytes), ..Self::default() },
        }
    }
}

fn json_names(bytes: &[u8]) -> Named {
    // The upstream refuses what is no JSON.
    let Ok((text, place)) = splice::parse(bytes) else { return Named { is_read: true, ..Named::default() } };
    let object = Object::at(text, &place);
    let id = |field: &&str| name(&object, field, "session").ok().flatten();
    let stored = ["previous_response_id", "conversation"].iter().filter_map(id).collect();
    let model = object.string("model").map(|model| model.into_owned());
    Named { model, stored, is_read: true, ..Named::default() }
}

/// The field `model` of a form.
fn form_model(bytes: &[u8]) -> Option<String> {
    let find = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).position(|part| part == what);
    let mut rest = bytes;
    loop {
        // The beginning of a part: its headers, and an empty line.
        let at = find(rest, b"Content-Disposition:").or_else(|| find(rest, b"content-disposition:"))?;
        rest = &rest[at..];
        let head_end = find(rest, b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&rest[..head_end.min(4_096)]).into_owned();
        rest = &rest[head_end + 4..];
        let mut fields = head.split([';', '\r', '\n']).map(str::trim);
        if fields.any(|field| matches!(field, "name=\"model\"" | "name=model")) {
            let end = find(&rest[..rest.len().min(MAX_NAME_BYTES)], b"\r\n--")?;
            let model = std::str::from_utf8(&rest[..end]).ok()?.trim();
            return Some(model.to_owned()).filter(|model| !model.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_model_of_a_form_is_found_before_and_behind_a_file() {
        let part = |head: &str, value: &str| {
            format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{value}\r\n")
        };
        let file = part(
            "name=\"file\"; filename=\"model\"\r\nContent-Type: audio/wav",
            "RIFF\r\n\r\n name=\"model\"",
        );
        let model = part("name=\"model\"", "whisper-9");
        for body in [format!("{file}{model}--b--\r\n"), format!("{model}{file}--b--\r\n")] {
            assert_eq!(form_model(body.as_bytes()).as_deref(), Some("whisper-9"), "{body}");
        }
        for body in [file.clone(), format!("{file}--b--"), part("name=\"model\"", ""), "x".to_owned()] {
            assert_eq!(form_model(format!("{body}--b--").as_bytes()), None, "{body}");
        }
    }

    proptest! {
        #[test]
        fn any_form_is_read(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "Content-Disposition:", "content-disposition:", "\r\n\r\n", "\r\n--", "name=\"model\"", ";", "x", "é", "--b",
                ]),
                0..24,
            )
        ) {
            let text = pieces.concat();
            if let Some(model) = form_model(text.as_bytes()) {
                prop_assert!(text.contains(&model));
            }
        }
    }
}
