//! The parsers of `strata-core`.

use strata_core::context::{ContextCompactor, ContextData};
use strata_core::file_name::read_stem;
use strata_core::key::KeySecret;
use strata_core::moment::{parse_as_of, parse_moment};
use strata_core::sse::EventReader;
use strata_core::{SessionId, UserId};

/// Server-sent events: a stream means the same wherever it is cut. The first byte says where.
pub(crate) fn events(data: &[u8]) {
    let Some((cut, rest)) = data.split_first() else { return };
    let read = |parts: &[&[u8]]| {
        let (mut reader, mut events) = (EventReader::default(), Vec::new());
        for part in parts {
            reader.feed(part, &mut |event| events.push(event.to_vec()));
        }
        reader.finish(&mut |event| events.push(event.to_vec()));
        events
    };
    let cut = usize::from(*cut).min(rest.len());
    assert_eq!(read(&[rest]), read(&[&rest[..cut], &rest[cut..]]), "cut at {cut}");
}

/// Names, times, keys and file names.
pub(crate) fn names(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (_, _) = (parse_moment(&text), parse_as_of(&text));
    let _ = read_stem(&text);
    let _ = UserId::new(text.as_ref());
    if let Ok(session) = SessionId::new(text.as_ref()) {
        assert_eq!(session.as_str(), text, "a name is kept as it is");
    }
    if let Some(secret) = KeySecret::parse(&text) {
        assert_eq!(secret.reveal(), text);
    }
}

/// A working context: a document that is read can be written and read again.
pub(crate) fn context(data: &[u8]) {
    let Ok(mut context) = serde_json::from_slice::<ContextData>(data) else { return };
    let written = context.to_json();
    // Not compared: a number with many digits may change in its last one, because it is read as a float.
    assert!(serde_json::from_str::<ContextData>(&written).is_ok(), "{written}");
    ContextCompactor::compact(&mut context);
}
