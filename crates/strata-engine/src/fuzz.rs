//! The parsers of this crate as functions of any bytes, for the fuzz targets. Each panics if a promise does not hold.

use jiff::Timestamp;
use serde_json::{Map, Value};
use strata_core::id::{MemoryId, TurnId};
use strata_core::memory::{Memory, MemoryKind, MemoryNotes};
use strata_core::turn::Metadata;
use uuid::Uuid;

use crate::filter::Filter;
use crate::learn::{Said, answer};
use crate::neutral::neutral;

/// A filter of a client.
pub fn filter(data: &[u8]) {
    if let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(data) {
        let _ = Filter::from_json(&fields);
    }
}

/// A stored segment. Its checksum is right, so that the bytes behind it are read.
pub fn segment(data: &[u8]) {
    crate::index::fuzz_segment(data);
}

/// A model's answer when it is asked for statements or for a plan: a plan that is accepted passes its own check.
pub fn answers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let said =
        Said { turn: TurnId(Uuid::nil()), name: None, text: "I moved to Porto", at: Timestamp::UNIX_EPOCH };
    let _ = answer::statements(&text, &[said]);
    let memories = [known("The user lives in Faro", MemoryKind::Fact), known("Call Ana", MemoryKind::Todo)];
    for known in [&[][..], &[&memories[0]][..], &[&memories[0], &memories[1]][..]] {
        for new in [0, 1, 3] {
            if let Ok(plan) = answer::plan(&text, known, new) {
                assert!(plan.check(known.len(), new).is_ok(), "{plan:?}");
            }
        }
    }
}

/// A memory that a plan may be about.
fn known(content: &str, kind: MemoryKind) -> Memory {
    Memory {
        id: MemoryId(Uuid::nil()),
        session: None,
        agent: None,
        kind,
        content: content.to_owned(),
        confidence: 1.0,
        valid_from: Timestamp::UNIX_EPOCH,
        valid_to: None,
        recorded_at: Timestamp::UNIX_EPOCH,
        replaced_by: None,
        source_turns: Vec::new(),
        source_summary: None,
        metadata: Metadata::default(),
        notes: MemoryNotes::default(),
        hidden: None,
    }
}

/// Content that is put into a prompt: harmless content is not changed again.
pub fn prompt_content(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let once = neutral(&text);
    assert!(once.len() <= 8 * text.len() + 16, "a text does not grow without limit");
    assert_eq!(neutral(&once), once, "a harmless text stays as it is");
}
