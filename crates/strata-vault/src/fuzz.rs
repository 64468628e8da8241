//! The parsers of this crate as functions of any bytes, for the fuzz targets. Each panics if a promise does not hold.

use jiff::Timestamp;
use uuid::Uuid;

use crate::form::{self, Given, TurnExtra};
use crate::front::Document;
use crate::layout::{Place, place};

/// A file of each kind, in force and among the deleted ones.
const PATHS: [&str; 5] = [
    "entries/talk/facts/a.md",
    "entries/talk/turns/user/a.md",
    "entries/talk/summaries/L1/chunk_0.md",
    "entries/talk/deleted/facts/a.md",
    "entries/talk/deleted/turns/user/a.md",
];

/// The keys that Strata reads and writes. It leaves all others as they are.
const OWN: [&str; 36] = [
    "id",
    "role",
    "conversation_id",
    "created_at",
    "verbatim",
    "replaced_by",
    "scope",
    "agent",
    "kind",
    "confidence",
    "valid_from",
    "valid_to",
    "sources",
    "source_id",
    "source_summary",
    "metadata",
    "notes",
    "idempotency",
    "hidden",
    "hidden_at",
    "recorded_at",
    "seq",
    "name",
    "token_count",
    "summary_kind",
    "strategy",
    "level",
    "start_seq",
    "end_seq",
    "base_id",
    "status",
    "structured",
    "input_tokens",
    "output_tokens",
    "generation_ms",
    "updated_at",
];

/// A file of a vault, in folders of every kind: the item that is written over a file is the one that is read from it again, and
/// the person's own keys stay.
pub fn file(data: &[u8]) {
    let Ok(document) = Document::parse(data) else { return };
    for path in PATHS {
        let place = place(path);
        assert!(place.is_some(), "`{path}` is no place of a vault");
        let Some(place) = place else { continue };
        let Some((given, written)) = read_and_written(&document, &place) else { continue };
        let again = Document::parse(written.as_bytes());
        assert!(again.is_ok(), "cannot be read again: {written}");
        let Ok(again) = again else { continue };
        for (key, value) in document.fields.iter().filter(|(key, _)| !OWN.contains(&key.as_str())) {
            assert_eq!(again.fields.get(key), Some(value), "{key} in {written}");
        }
        let second = read_and_written(&again, &place);
        assert_eq!(second, Some((given, written)));
    }
}

/// The item in a file, and the file after the item was written over it.
fn read_and_written(document: &Document, place: &Place) -> Option<(Given, String)> {
    let reading = form::read(document, place, Uuid::nil(), Timestamp::UNIX_EPOCH).ok()?;
    let written = match &reading.given {
        Given::Memory(memory) => form::memory(memory, reading.keyed.as_ref(), document),
        Given::Turn { turn, extra, .. } => form::turn(turn, extra, document),
        Given::Summary(summary) => form::summary(summary, document),
    };
    Some((without_defaults(reading.given), written))
}

/// What a file says, with what it leaves out as it is written.
fn without_defaults(given: Given) -> Given {
    match given {
        Given::Turn { turn, seq, extra } => {
            // A time that is that of the turn is not written.
            let recorded_at = extra.recorded_at.filter(|at| *at != turn.created_at);
            let seq = Some(seq.unwrap_or(turn.seq));
            Given::Turn { turn, seq, extra: TurnExtra { recorded_at, ..extra } }
        }
        other => other,
    }
}

/// A path inside a vault.
pub fn path(data: &[u8]) {
    if let Some(place) = std::str::from_utf8(data).ok().and_then(place) {
        let _ = place.user();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_each_kind_reads_the_same_after_it_was_written() {
        for text in [
            "---\nid: a\nrole: memory\ncreated_at: 2026-05-01\nkind: fact\nmood: mine\n---\nKeeps bees\n",
            "---\nrole: user\nseq: 4\nname: \"Bo: 1\"\nmetadata: {a: [1, \"二\"]}\nrecorded_at: 2026-05-02\n---\n  said \r\n",
            "---\n{role: summary, level: 2, start_seq: 3, mine: [1, 2]}\n---\nOf rivers\n",
            "---\nrole: memory\nconversation_id: 12\nconfidence: 0.3\nhidden: evicted\n---\n---\n",
            "no front matter\n",
        ] {
            file(text.as_bytes());
        }
    }
}
