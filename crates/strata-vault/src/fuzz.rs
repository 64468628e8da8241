//! The parsers of this crate as functions of any bytes, for the fuzz targets. Each panics if a promise does not hold.

use jiff::Timestamp;
use uuid::Uuid;

use crate::form;
use crate::front::Document;
use crate::layout::place;

/// A file of a vault, in folders of every kind: what is written over a file that was read can be read again.
pub fn file(data: &[u8]) {
    let Ok(document) = Document::parse(data) else { return };
    for path in [
        "facts/a.md",
        "entries/talk/user/a.md",
        "entries/talk/summary/a.md",
        "entries/talk/deleted/user/a.md",
    ] {
        let Some(place) = place(path) else { continue };
        let Ok(reading) = form::read(&document, &place, Uuid::nil(), Timestamp::UNIX_EPOCH) else { continue };
        if let form::Given::Memory(memory) = &reading.given {
            let written = form::memory(memory, None, &document);
            let again = Document::parse(written.as_bytes());
            assert!(again.is_ok_and(|again| again.body().trim() == memory.content.trim()), "{written}");
        }
    }
}

/// A path inside a vault.
pub fn path(data: &[u8]) {
    if let Some(place) = std::str::from_utf8(data).ok().and_then(place) {
        let _ = place.user();
    }
}
