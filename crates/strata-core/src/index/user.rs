//! All of one user's items, ready for ranking.

use std::collections::HashMap;

use super::document::{Doc, Document, NO_DOC};
use super::features::Features;
use super::postings::{Terms, Words};
use super::segment::{self, Entry};
use crate::id::{ItemId, SessionId};
use crate::lexicon::Lexicon;
use crate::store::{Head, Item, StoredVector};

/// Turns further apart than this, in microseconds, are no neighbours: an hour, after which people speak of something
/// else.
const NEIGHBOUR_GAP: u64 = 3_600_000_000;

/// An index of everything a user has.
///
/// It is exact up to [`UserIndex::head`]: what the store has changed since is fed in before a question is answered.
#[derive(Default)]
pub(crate) struct UserIndex {
    pub(crate) head: Head,
    pub(crate) documents: Vec<Document>,
    pub(crate) terms: Terms,
    pub(crate) words: Words,
    pub(crate) vectors: Vectors,
    numbers: HashMap<ItemId, Doc>,
    sessions: HashMap<SessionId, u32>,
    /// The last turn of each session, by the session's number.
    last_turns: Vec<Doc>,
    /// Items whose place a newer version has taken.
    superseded: usize,
}

impl UserIndex {
    /// Takes in a stored segment. Says whether the bytes could be read; where not, nothing has changed.
    pub(crate) fn add_segment(&mut self, bytes: &[u8], lexicon: &dyn Lexicon) -> bool {
        let Some(segment) = segment::decode(bytes) else { return false };
        let words: Vec<u32> = segment.words.iter().map(|word| self.words.intern(word, lexicon)).collect();
        let sessions: Vec<u32> =
            segment.sessions.iter().map(|session| self.session_number(session)).collect();
        for entry in segment.entries {
            let session = entry.session.map_or(u32::MAX, |place| sessions[place as usize]);
            let numbers = entry.words.into_iter().map(|(place, count)| (words[place as usize], count));
            self.place(Document { session, ..entry.document }, &entry.terms, numbers);
        }
        true
    }

    /// Takes in an item that is new or has changed.
    pub(crate) fn add_item(&mut self, item: &Item, lexicon: &dyn Lexicon) {
        let session = item.session().map_or(u32::MAX, |session| self.session_number(session));
        let mut document = Document { session, ..Document::of(item) };
        // What a turn says never changes: a known one comes again because its visibility did.
        if let (ItemId::Turn(_), Some(&doc)) = (document.id, self.numbers.get(&document.id)) {
            self.documents[doc as usize].hidden_at = document.hidden_at;
            return;
        }
        let features = Features::of(item, lexicon);
        document.word_count = features.word_count;
        document.latin = features.latin;
        let words: Vec<_> =
            features.words.iter().map(|(word, count)| (self.words.intern(word, lexicon), *count)).collect();
        self.place(document, &features.terms, words.into_iter());
    }

    fn place(&mut self, document: Document, terms: &[(u32, u8)], words: impl Iterator<Item = (u32, u8)>) {
        let doc = self.documents.len() as Doc;
        if let Some(former) = self.numbers.insert(document.id, doc) {
            self.documents[former as usize].superseded = true;
            self.superseded += 1;
        }
        self.terms.add(doc, terms);
        self.words.add(doc, words);
        self.documents.push(document);
        self.link(doc);
    }

    /// Joins a turn with the one before it in its session. Turns of a session come in order.
    fn link(&mut self, doc: Doc) {
        let document = &self.documents[doc as usize];
        let (ItemId::Turn(_), session) = (document.id, document.session as usize) else { return };
        let (seq, moment) = (document.seq, document.created_at);
        let Some(last) = self.last_turns.get_mut(session) else { return };
        let previous = std::mem::replace(last, doc);
        let follows = |previous: &Document| {
            previous.seq.checked_add(1) == Some(seq) && moment.abs_diff(previous.created_at) <= NEIGHBOUR_GAP
        };
        if previous != NO_DOC && follows(&self.documents[previous as usize]) {
            self.documents[previous as usize].next = doc;
            self.documents[doc as usize].previous = previous;
        }
    }

    fn session_number(&mut self, session: &SessionId) -> u32 {
        if let Some(number) = self.sessions.get(session) {
            return *number;
        }
        let number = self.last_turns.len() as u32;
        self.last_turns.push(NO_DOC);
        self.sessions.insert(session.clone(), number);
        number
    }

    /// The number of a session that has items.
    pub(crate) fn session(&self, session: &SessionId) -> Option<u32> {
        self.sessions.get(session).copied()
    }

    /// The place of an item.
    pub(crate) fn doc(&self, item: &ItemId) -> Option<Doc> {
        self.numbers.get(item).copied()
    }

    /// Whether so much of the index is out of date that building it anew saves memory and time.
    pub(crate) fn is_worn(&self) -> bool {
        self.superseded > 1_000 && self.superseded * 4 > self.documents.len()
    }

    /// Takes in vectors of one model; those of another model replace all.
    pub(crate) fn add_vectors(&mut self, model: &str, vectors: Vec<StoredVector>) {
        self.vectors.select(model);
        for stored in vectors {
            self.head.vectors = self.head.vectors.max(stored.revision);
            if let Some(doc) = self.doc(&stored.vector.item) {
                self.vectors.put(doc, &stored.vector.vector.values, stored.vector.vector.scale);
            }
        }
    }

    /// About how many bytes the index takes.
    pub(crate) fn bytes(&self) -> usize {
        let documents = self.documents.len() * (size_of::<Document>() + size_of::<(ItemId, Doc)>() * 2);
        let sessions = self.sessions.len() * 96;
        documents + sessions + self.terms.bytes() + self.words.bytes() + self.vectors.values.capacity()
    }
}

/// One vector an item, of one model.
#[derive(Default)]
pub(crate) struct Vectors {
    pub(crate) model: String,
    pub(crate) dimension: usize,
    values: Vec<i8>,
    /// 0 where an item has no vector.
    scales: Vec<f32>,
    pub(crate) count: usize,
}

impl Vectors {
    fn select(&mut self, model: &str) {
        if self.model != model {
            *self = Self { model: model.to_owned(), ..Self::default() };
        }
    }

    fn put(&mut self, doc: Doc, values: &[i8], scale: f32) {
        if self.dimension == 0 {
            self.dimension = values.len();
        }
        if values.len() != self.dimension || self.dimension == 0 {
            return;
        }
        let doc = doc as usize;
        if self.scales.len() <= doc {
            self.scales.resize(doc + 1, 0.0);
            self.values.resize((doc + 1) * self.dimension, 0);
        }
        if self.scales[doc] == 0.0 {
            self.count += 1;
        }
        self.scales[doc] = scale;
        self.values[doc * self.dimension..(doc + 1) * self.dimension].copy_from_slice(values);
    }

    /// An item's vector and its scale.
    pub(crate) fn get(&self, doc: Doc) -> Option<(&[i8], f32)> {
        let scale = *self.scales.get(doc as usize)?;
        let start = doc as usize * self.dimension;
        (scale > 0.0).then(|| (&self.values[start..start + self.dimension], scale))
    }
}

/// What a segment holds of an item.
pub(crate) fn entry_of(item: &Item, lexicon: &dyn Lexicon) -> Entry {
    let features = Features::of(item, lexicon);
    let document = Document { word_count: features.word_count, latin: features.latin, ..Document::of(item) };
    Entry { document, session: item.session().cloned(), features }
}
