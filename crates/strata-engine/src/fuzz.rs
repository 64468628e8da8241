//! The parsers of this crate as functions of any bytes, for the fuzz targets. Each panics if a promise does not hold.

use jiff::Timestamp;
use serde_json::{Map, Value};
use strata_core::id::TurnId;
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
    for new in [0, 1, 3] {
        if let Ok(plan) = answer::plan(&text, &[], new) {
            assert!(plan.check(0, new).is_ok(), "{plan:?}");
        }
    }
}

/// Content that is put into a prompt: it stays harmless if it is made harmless twice.
pub fn prompt_content(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let once = neutral(&text);
    assert!(once.len() <= 8 * text.len() + 16, "a text does not grow without limit");
    let _ = neutral(&once);
}
