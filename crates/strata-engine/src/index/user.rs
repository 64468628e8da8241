//! All of one user's items, ready for ranking.

use hashbrown::HashMap;

use super::document::{Doc, Document, Marks, NO_DOC, Placement};
use super::features::{Features, TermHash};
use super::fingerprint::Fingerprints;
use super::learned::LearnedFrom;
use super::means::MeanLengths;
use super::postings::{Terms, Words};
use super::segment::IndexEntry;
use strata_core::id::{ItemId, SessionId};
use strata_core::lexicon::Lexicon;
use strata_core::store::{Head, Item, StoredVector};
use strata_core::summary::Strategy;

/// Turns that are further apart than this, in microseconds, are not neighbours. After an hour, people usually talk
/// about something else.
const NEIGHBOUR_GAP: u64 = 3_600_000_000;

/// An index of all of a user's items.
///
/// It is exact up to [`UserIndex::head`]: later changes of the store are added before a question is answered.
#[derive(Default)]
pub(crate) struct UserIndex {
    pub(crate) head: Head,
    pub(crate) documents: Vec<Document>,
    /// One for each document.
    pub(crate) places: Vec<Placement>,
    marks: Vec<Marks>,
    pub(crate) terms: Terms,
    pub(crate) words: Words,
    pub(crate) vectors: Vectors,
    /// The text fingerprints of items, as far as they are known.
    pub(crate) fingerprints: Fingerprints,
    /// The turns from which memories were learned.
    pub(crate) learned: LearnedFrom,
    pub(super) lengths: MeanLengths,
    numbers: HashMap<ItemId, Doc>,
    sessions: HashMap<SessionId, u32>,
    /// The turns of each session, by the session's number and then by `seq`: a hidden turn comes later in the feed than
    /// the turns after it.
    turns: Vec<Vec<Doc>>,
    /// The terms of items whose text may change: memories and summaries.
    statements: HashMap<Doc, Box<[(TermHash, u8)]>>,
    /// The newest summary of each session and kind of summary.
    summaries: HashMap<(u32, u32), Doc>,
    /// The number of items that a newer version has replaced.
    superseded: usize,
    /// The number of words of all items, without superseded ones.
    word_count: u64,
}

impl UserIndex {
    /// Adds a new or changed item.
    pub(crate) fn add_item(&mut self, item: &Item, lexicon: &dyn Lexicon) {
        if !is_indexed(item) {
            return;
        }
        let session = item.session().map_or(u32::MAX, |session| self.session_number(session));
        let mut document = Document { session, ..Document::of(item) };
        // The text of a turn never changes: a known turn comes again because its visibility changed.
        if let (ItemId::Turn(_), Some(&doc)) = (document.id, self.numbers.get(&document.id)) {
            let hidden_at = document.hidden_at;
            self.put(doc, Document { hidden_at, ..self.documents[doc as usize].clone() });
            return;
        }
        if let Item::Memory(memory) = item {
            self.learned.note(memory);
        }
        let features = Features::of(item, lexicon);
        document.word_count = features.word_count;
        document.latin = features.latin;
        let words: Vec<_> =
            features.words.iter().map(|(word, count)| (self.words.enter(word), *count)).collect();
        self.words.look_up(lexicon);
        if let Some(&former) = self.numbers.get(&document.id) {
            if self.says(former, &features.terms, &words) {
                // The store drops the vector of a revised memory, whatever its new text.
                if self.documents[former as usize].created_at != document.created_at {
                    self.vectors.take_out(former);
                }
                self.put(former, document);
                self.fingerprints.note(former, item);
                return;
            }
            self.take_out(former);
        }
        let doc = self.documents.len() as Doc;
        self.terms.add(doc, &features.terms);
        self.words.add(doc, &words);
        self.fingerprints.note(doc, item);
        if let Some(outdated) = self.place(document, || features.terms.into()) {
            self.take_out(outdated);
        }
    }

    /// Adds an item at the next position. `terms` returns its terms, and is called only if its text may change later.
    /// Returns the position of a summary that is outdated now; the caller takes it out.
    pub(crate) fn place(
        &mut self,
        document: Document,
        terms: impl FnOnce() -> Box<[(TermHash, u8)]>,
    ) -> Option<Doc> {
        let doc = self.documents.len() as Doc;
        let outdated = self.outdated_by(doc, &document);
        self.numbers.insert(document.id, doc);
        if !matches!(document.id, ItemId::Turn(_)) {
            self.statements.insert(doc, terms());
        }
        self.learned.placed(&document);
        self.word_count += searched_words(&document);
        self.places.push(Placement::new(document.word_count));
        self.marks.push(Marks::of(&document));
        self.documents.push(document);
        self.link(doc);
        outdated
    }

    /// The summary that is outdated once a document stands at this position: the earlier one of the same session, or the
    /// new one itself if it covers less.
    fn outdated_by(&mut self, doc: Doc, document: &Document) -> Option<Doc> {
        let (ItemId::Summary(_), true) = (document.id, document.session != u32::MAX) else { return None };
        let former = self.summaries.get(&(document.session, document.speaker)).copied();
        let is_newer = former.is_none_or(|former| self.documents[former as usize].seq <= document.seq);
        if is_newer {
            self.summaries.insert((document.session, document.speaker), doc);
            return former.filter(|former| !self.documents[*former as usize].superseded);
        }
        Some(doc)
    }

    /// Whether any session has a summary.
    pub(crate) fn has_summaries(&self) -> bool {
        !self.summaries.is_empty()
    }

    /// The session of a summary.
    pub(crate) fn session_of(&self, doc: Doc) -> Option<SessionId> {
        let number = self.documents[doc as usize].session;
        self.sessions.iter().find(|(_, other)| **other == number).map(|(session, _)| session.clone())
    }

    /// Replaces the document at a position. Its text stays the same.
    pub(super) fn put(&mut self, doc: Doc, document: Document) {
        self.marks[doc as usize] = Marks::of(&document);
        self.documents[doc as usize] = document;
    }

    /// The kind of the item at a position, if recall can see it now.
    #[inline]
    pub(crate) fn mark(&self, doc: Doc) -> Marks {
        self.marks[doc as usize]
    }

    /// Whether the item at a position has exactly these terms and words. The text of a turn never changes.
    pub(super) fn says(&self, doc: Doc, terms: &[(TermHash, u8)], words: &[(u32, u8)]) -> bool {
        self.statements.get(&doc).is_none_or(|said| **said == *terms && self.words.of(doc) == words)
    }

    /// Marks a position as superseded while the index is being loaded, before its inverted lists are built.
    pub(super) fn supersede(&mut self, doc: Doc) {
        self.statements.remove(&doc);
        let document = &mut self.documents[doc as usize];
        document.superseded = true;
        self.word_count -= searched_words(document);
        self.marks[doc as usize] = Marks::default();
        self.superseded += 1;
    }

    /// Reserves memory for this many more items.
    pub(super) fn reserve(&mut self, items: usize) {
        self.documents.reserve(items);
        self.places.reserve(items);
        self.marks.reserve(items);
        self.numbers.reserve(items);
    }

    /// Removes the item at a position, so that the statistics are those of an index that never contained it.
    fn take_out(&mut self, doc: Doc) {
        if let Some(terms) = self.statements.get(&doc) {
            self.terms.remove(doc, terms);
        }
        self.words.remove(doc);
        self.vectors.take_out(doc);
        self.supersede(doc);
    }

    /// The number of words of all items: how much was said.
    pub(crate) fn word_count(&self) -> u64 {
        self.word_count
    }

    /// The number of items, without superseded ones.
    pub(crate) fn len(&self) -> usize {
        self.documents.len() - self.superseded
    }

    /// Links a turn with the turns before and after it in its session.
    fn link(&mut self, doc: Doc) {
        let Document { id: ItemId::Turn(_), session, seq, .. } = self.documents[doc as usize] else { return };
        let Some(turns) = self.turns.get_mut(session as usize) else { return };
        let place = seq as usize;
        if turns.len() <= place {
            turns.resize(place + 1, NO_DOC);
        }
        turns[place] = doc;
        let at = |place: Option<usize>| place.and_then(|place| turns.get(place)).copied().unwrap_or(NO_DOC);
        let (previous, next) = (at(place.checked_sub(1)), at(place.checked_add(1)));
        self.join(previous, doc);
        self.join(doc, next);
    }

    fn join(&mut self, first: Doc, second: Doc) {
        if first == NO_DOC || second == NO_DOC {
            return;
        }
        let said = |doc: Doc| self.documents[doc as usize].created_at;
        if said(first).abs_diff(said(second)) <= NEIGHBOUR_GAP {
            self.places[first as usize].next = second;
            self.places[second as usize].previous = first;
        }
    }

    pub(super) fn session_number(&mut self, session: &SessionId) -> u32 {
        if let Some(number) = self.sessions.get(session) {
            return *number;
        }
        let number = self.turns.len() as u32;
        self.turns.push(Vec::new());
        self.sessions.insert(session.clone(), number);
        number
    }

    /// The number of a session; `None` if it has no items.
    pub(crate) fn session(&self, session: &SessionId) -> Option<u32> {
        self.sessions.get(session).copied()
    }

    /// The position of an item.
    pub(crate) fn doc(&self, item: &ItemId) -> Option<Doc> {
        self.numbers.get(item).copied()
    }

    /// Whether so much of the index is outdated that a new index saves memory and time.
    pub(crate) fn is_outdated(&self) -> bool {
        self.superseded > 1_000 && self.superseded * 4 > self.documents.len()
    }

    /// Adds vectors of one model for items in the index. If the model is another one than before, the old vectors are
    /// dropped.
    pub(crate) fn add_vectors(&mut self, model: &str, vectors: impl IntoIterator<Item = StoredVector>) {
        self.vectors.select(model);
        for stored in vectors {
            if let Some(doc) = self.doc(&stored.vector.item) {
                self.vectors.put(doc, &stored.vector.vector.values, stored.vector.vector.scale);
            }
        }
    }

    /// The approximate size of the index in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let documents = self.documents.len()
            * (size_of::<Document>()
                + size_of::<Placement>()
                + size_of::<Marks>()
                + size_of::<(ItemId, Doc)>() * 2);
        let turns: usize = self.turns.iter().map(|turns| turns.capacity() * size_of::<Doc>()).sum();
        let terms: usize = self.statements.values().map(|terms| terms.len() * 8 + 32).sum();
        let sessions = self.sessions.len() * 120 + turns + terms;
        documents
            + sessions
            + self.terms.bytes()
            + self.words.bytes()
            + self.vectors.values.capacity()
            + self.fingerprints.bytes()
            + self.learned.bytes()
            + self.lengths.bytes()
    }
}

/// The vectors of items, all of one model.
#[derive(Default)]
pub(crate) struct Vectors {
    pub(crate) model: String,
    pub(crate) dimension: usize,
    values: Vec<i8>,
    /// 0 if an item has no vector.
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
        self.count += usize::from(scale > 0.0);
        self.count -= usize::from(self.scales[doc] > 0.0);
        self.scales[doc] = scale;
        self.values[doc * self.dimension..(doc + 1) * self.dimension].copy_from_slice(values);
    }

    fn take_out(&mut self, doc: Doc) {
        if let Some(scale) = self.scales.get_mut(doc as usize).filter(|scale| **scale > 0.0) {
            *scale = 0.0;
            self.count -= 1;
        }
    }

    /// An item's vector and its scale.
    pub(crate) fn get(&self, doc: Doc) -> Option<(&[i8], f32)> {
        let scale = *self.scales.get(doc as usize)?;
        let start = doc as usize * self.dimension;
        (scale > 0.0).then(|| (&self.values[start..start + self.dimension], scale))
    }
}

/// Whether an item is indexed. Items without text are not: a reply that only calls a tool, a message that is a picture.
/// Of the summaries, those of windows and the roots of trees are. A rolling summary changes every few turns and is shown
/// with its session.
pub(crate) fn is_indexed(item: &Item) -> bool {
    let is_searched = match item {
        Item::Turn(_) | Item::Memory(_) => true,
        Item::Summary(summary) => summary.strategy == Strategy::Window || summary.is_root(),
    };
    is_searched && !item.content().trim().is_empty()
}

/// The words that an item adds to those that a question searches. Summaries repeat what their turns say.
fn searched_words(document: &Document) -> u64 {
    if matches!(document.id, ItemId::Summary(_)) { 0 } else { u64::from(document.word_count) }
}

/// The segment entry of an item.
pub(crate) fn entry_of(item: &Item, lexicon: &dyn Lexicon) -> IndexEntry {
    let features = Features::of(item, lexicon);
    let document = Document { word_count: features.word_count, latin: features.latin, ..Document::of(item) };
    IndexEntry { document, session: item.session().cloned(), features }
}
