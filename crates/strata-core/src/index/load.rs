//! A cold index from stored segments: everything is read first, and the lists are laid out at the end, in one piece.

use super::UserIndex;
use super::document::{Doc, Document};
use super::segment::{self, SegmentEntry};
use crate::id::ItemId;
use crate::lexicon::Lexicon;

/// An index that is being loaded.
#[derive(Default)]
pub(super) struct Loading {
    pub(super) index: UserIndex,
    /// The terms of each item by their numbers, one item after the other, with their counts; and where each item's end.
    terms: Vec<(u32, u8)>,
    ends: Vec<usize>,
}

impl Loading {
    /// Takes in a stored segment. Says whether the bytes could be read; where not, nothing has changed.
    pub(super) fn add_segment(&mut self, bytes: &[u8]) -> bool {
        let Some(segment) = segment::decode(bytes) else { return false };
        let words: Vec<u32> = segment.words.iter().map(|word| self.index.words.enter(word)).collect();
        let sessions: Vec<u32> =
            segment.sessions.iter().map(|session| self.index.session_number(session)).collect();
        self.index.reserve(segment.entries.len());
        for entry in segment.entries {
            let session = entry.session.map_or(u32::MAX, |place| sessions[place as usize]);
            self.add(Document { session, ..entry.document.clone() }, &entry, &words);
        }
        true
    }

    fn add(&mut self, document: Document, entry: &SegmentEntry<'_>, numbers: &[u32]) {
        let words = entry.words.iter().map(|(word, count)| (numbers[word as usize], count));
        if let Some(former) = self.index.doc(&document.id) {
            let is_turn = matches!(document.id, ItemId::Turn(_));
            let says = |index: &UserIndex| {
                let (terms, words): (Vec<_>, Vec<_>) =
                    (entry.terms.iter().collect(), words.clone().collect());
                index.says(former, &terms, &words)
            };
            if is_turn || says(&self.index) {
                self.index.documents[former as usize] = document;
                return;
            }
            self.index.leave_out(former);
        }
        let doc = self.index.documents.len() as Doc;
        self.index.words.add_unlisted(doc, words);
        self.terms.extend(entry.terms.iter().map(|(hash, count)| (self.index.terms.enter(hash), count)));
        self.ends.push(self.terms.len());
        self.index.place(document, || entry.terms.iter().collect());
    }

    /// The index, ready for questions.
    pub(super) fn finish(self, lexicon: &dyn Lexicon) -> UserIndex {
        let Self { mut index, terms, ends } = self;
        index.words.look_up(lexicon);
        let documents = &index.documents;
        let is_listed = |doc: Doc| !documents[doc as usize].superseded;
        index.words.lay_out(is_listed);
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let items = starts.zip(&ends).zip(0..).filter(|(_, doc)| is_listed(*doc));
        index.terms.lay_out(items.flat_map(|((start, end), doc)| {
            terms[start..*end].iter().map(move |(number, count)| (*number, (doc, *count)))
        }));
        index
    }
}
