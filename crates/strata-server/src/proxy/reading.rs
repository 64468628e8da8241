//! The names in the body of a forwarded request: its model, which chooses the upstream, and the ids that it goes on with.

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use tokio::sync::OwnedSemaphorePermit;

use super::chat::room;
use crate::app::{App, FIRST_BYTES};
use crate::compat::chat::name;
use crate::compat::chat::splice::{self, Object};
use crate::error::ApiError;
use crate::extract::{Peeked, peeked};
use crate::identity::Caller;
use crate::upstream::StoredPath;

/// The largest JSON body that is read. Larger ones have no model.
const MAX_JSON_BYTES: usize = 8 * 1024 * 1024;

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
    /// The room for the part of the body that was read, until it is passed on.
    pub(super) room: Option<OwnedSemaphorePermit>,
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
    let path = parts.uri.path();
    // A server may take a body for JSON whatever its type is.
    let is_checked = caller.has_key() && (StoredPath::of(path).is_some() || path.contains("/responses/"));
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().trim_start().to_ascii_lowercase();
    let form = match kind {
        _ if kind.starts_with("multipart/form-data") => Some(Form::Multipart),
        _ if kind.starts_with("application/json") || is_checked => Some(Form::Json),
        _ => None,
    };
    let most = match form {
        Some(Form::Json) if several || is_checked => MAX_JSON_BYTES,
        Some(Form::Multipart) if several => MAX_FORM_BYTES,
        _ => return Ok((parts, body, Named::default())),
    };
    if body.is_end_stream() || (form == Some(Form::Json) && body.size_hint().lower() > most as u64) {
        return Ok((parts, body, Named::default()));
    }
    let declared = usize::try_from(body.size_hint().upper().unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let expected = declared.min(most);
    let room = if expected > FIRST_BYTES { room(app, expected).await? } else { None };
    let Peeked { bytes, is_whole, body } = peeked(body, most, app.settings().body_timeout).await?;
    let (model, stored) = match form {
        Some(Form::Json) if is_whole => json_names(&bytes),
        Some(Form::Multipart) => (form_model(&bytes), Vec::new()),
        _ => (None, Vec::new()),
    };
    Ok((parts, body, Named { model, stored, room }))
}

fn json_names(bytes: &[u8]) -> (Option<String>, Vec<String>) {
    let Ok((text, place)) = splice::parse(bytes) else { return (None, Vec::new()) };
    let object = Object::at(text, &place);
    let id = |field: &&str| name(&object, field, "session").ok().flatten();
    let stored = ["previous_response_id", "conversation"].iter().filter_map(id).collect();
    (object.string("model").map(|model| model.into_owned()), stored)
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
}
