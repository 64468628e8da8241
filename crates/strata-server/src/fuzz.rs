//! The parsers of this crate as functions of any bytes, for the fuzz targets. Each panics if a promise does not hold.

use std::io::{self, Write as _};

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::compat::anthropic::Messages;
use crate::compat::chat::reply::{Framing, Reply, StreamReader, document};
use crate::compat::chat::{ChatApi, ChatBody};
use crate::compat::ollama;
use crate::compat::openai::completions::Completions;
use crate::compat::openai::realtime::Realtime;
use crate::compat::openai::responses::Responses;
use crate::cookies::{cookie, with_cookie_key, without_cookies};
use crate::extract::Params;
use crate::mcp::fuzz as fuzz_messages;
use crate::proxy::{fuzz_bodies, messages};
use crate::routes::{jobs, memories, report, requests, sessions, summaries};
use crate::upstream::{remove_keys, with_plain_path, without_keys};

const APIS: [&dyn ChatApi; 5] = [&Completions, &Responses, &Messages, &ollama::Chat, &ollama::Generate];

/// The body of a chat, in every API: with a block of memory it is JSON still, and every byte of the client stays.
pub fn splice(data: &[u8]) {
    for api in APIS {
        let Ok(body) = ChatBody::read(api, data) else { continue };
        let block = |place| (place, "what \"is\" known\n\u{1F980} \\".to_owned());
        let blocks: Vec<(usize, String)> = body.question().map(block).into_iter().collect();
        let sent = body.forwarded(&blocks, |_| false).bytes(data);
        assert!(serde_json::from_slice::<IgnoredAny>(&sent).is_ok(), "{}", String::from_utf8_lossy(&sent));
        let bare = body.forwarded(&[], |_| false).bytes(data);
        assert!(has_one_text_more(&sent, &bare), "a byte is lost: {}", String::from_utf8_lossy(&sent));
        assert!(sent.len() <= bare.len() + 400, "only the block is added");
        let fields = body.fields();
        let has_extras = (0..fields.places().len()).any(|place| fields.name(place).starts_with("memory_"));
        assert!(has_extras || bare == data, "a byte is lost: {}", String::from_utf8_lossy(&bare));
        let gone = body.forwarded(&[], |place| place % 2 == 0).bytes(data);
        assert!(serde_json::from_slice::<IgnoredAny>(&gone).is_ok(), "{}", String::from_utf8_lossy(&gone));
    }
}

/// Whether `sent` is `body` with at most one text put in.
fn has_one_text_more(sent: &[u8], body: &[u8]) -> bool {
    let same = |(one, other): &(&u8, &u8)| one == other;
    let before = sent.iter().zip(body).take_while(same).count();
    let after = sent.iter().rev().zip(body.iter().rev()).take_while(same).count();
    sent.len() >= body.len() && before + after >= body.len()
}

/// A reply of a model, in every API: a stream means the same wherever it is cut. The first byte says where.
pub fn streams(data: &[u8]) {
    let Some((cut, rest)) = data.split_first() else { return };
    let cut = usize::from(*cut).min(rest.len());
    for api in APIS {
        for framing in [Framing::Events, Framing::Lines] {
            let read = |parts: &[&[u8]]| -> Reply {
                let mut stream = StreamReader::new(api, framing);
                parts.iter().for_each(|part| stream.feed(part));
                stream.finish();
                stream.reply
            };
            let (whole, parts) = (read(&[rest]), read(&[&rest[..cut], &rest[cut..]]));
            assert_eq!(format!("{whole:?}"), format!("{parts:?}"), "cut at {cut}");
            let _ = whole.into_message();
        }
        let _ = document(api, rest).into_message();
    }
}

/// The bytes of a WebSocket: the same messages wherever they are cut, each an event of either end. The first byte says where.
pub fn websocket(data: &[u8]) {
    let Some((cut, rest)) = data.split_first() else { return };
    let cut = usize::from(*cut).min(rest.len());
    let whole = messages(&[rest]);
    assert_eq!(whole, messages(&[&rest[..cut], &rest[cut..]]), "cut at {cut}");
    let mut realtime = Realtime::default();
    // The bytes themselves are a message too: few texts are frames.
    for message in whole.iter().map(Vec::as_slice).chain([rest]) {
        realtime.hear(message);
        if let Ok(event) = serde_json::from_slice::<Value>(message) {
            realtime.read(&event);
        }
        while realtime.next().is_some() {}
    }
    while realtime.rest().is_some() {}
}

/// Headers, cookies and paths that a client sends: what removes keys removes all of them the first time.
pub fn headers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut headers = HeaderMap::new();
    for line in text.lines() {
        let (name, value) = line.split_once(':').unwrap_or(("cookie", line));
        let (name, value) =
            (HeaderName::from_bytes(name.trim().as_bytes()), HeaderValue::from_str(value.trim()));
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    let _ = cookie(&headers, "strata_key");
    let _ = with_cookie_key(&headers);
    let _ = headers.get("cookie").and_then(without_cookies);
    remove_keys(&mut headers);
    let once = headers.clone();
    remove_keys(&mut headers);
    assert_eq!(once, headers, "keys are removed the first time");
    let query = without_keys(&text);
    assert_eq!(without_keys(&query), query, "keys are removed the first time");
    if let Ok(uri) = text.parse::<Uri>() {
        let mut request = Request::default();
        *request.uri_mut() = uri;
        let plain = with_plain_path(request).uri().clone();
        let mut request = Request::default();
        *request.uri_mut() = plain.clone();
        assert_eq!(with_plain_path(request).uri(), &plain, "a plain path stays");
    }
}

/// Compressed bodies. The first byte says where a stream is cut, the second which byte of a packed body is changed.
pub fn bodies(data: &[u8]) {
    let [cut, place, rest @ ..] = data else { return };
    let cut = usize::from(*cut);
    fuzz_bodies(cut, rest);
    for mut packed in [gzip(rest), zlib(rest)].into_iter().flatten() {
        fuzz_bodies(cut, &packed);
        let place = usize::from(*place) % packed.len().max(1);
        if let Some(byte) = packed.get_mut(place) {
            *byte ^= cut as u8 | 1;
        }
        fuzz_bodies(cut, &packed);
    }
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn zlib(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// The parameters of the queries that read, and of those that delete.
pub fn query(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(uri) = format!("/x?{text}").parse::<Uri>() else { return };
    let _ = Params::<summaries::SummariesParams>::of(&uri);
    let _ = Params::<sessions::ListParams>::of(&uri);
    let _ = Params::<sessions::TurnsParams>::of(&uri);
    let _ = Params::<jobs::ListParams>::of(&uri);
    let _ = Params::<memories::ListParams>::of(&uri);
    let _ = Params::<memories::DeleteParams>::of(&uri);
    let _ = Params::<requests::ListParams>::of(&uri);
    let _ = Params::<report::ReportParams>::of(&uri);
}

/// A message of MCP: the protocol, and the arguments of every tool.
pub fn mcp(data: &[u8]) {
    fuzz_messages(data);
}
