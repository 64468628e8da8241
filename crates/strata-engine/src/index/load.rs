//! Loads an index from stored segments. All items are read first; then the inverted lists are built, each set in one
//! allocation.

use super::UserIndex;
use super::document::Doc;
use super::features::TermHash;
use super::segment::{Segment, SegmentEntry};
use strata_core::id::{ItemId, SessionId};
use strata_core::lexicon::Lexicon;

/// Builds an index from the items of consecutive segments.
pub(super) fn load(segments: &[Segment<'_>], lexicon: &dyn Lexicon) -> UserIndex {
    let mut loading = Loading::default();
    loading.reserve(segments);
    let numbers: Vec<Numbers> = segments.iter().map(|segment| loading.enter(segment)).collect();
    // Looking up the words' vectors takes half of the time, and no other step of loading needs them.
    let vocabulary = loading.index.words.lend_vocabulary();
    let texts: Vec<&str> = (0..vocabulary.len() as u32).map(|number| vocabulary.text(number)).collect();
    let rows = lexicon.words_beside(&texts, &mut || {
        for (segment, numbers) in segments.iter().zip(&numbers) {
            loading.add_segment(segment, numbers);
        }
        loading.lay_out();
    });
    drop(texts);
    loading.index.words.take_back(vocabulary, rows);
    loading.index
}

/// An index that is being loaded.
#[derive(Default)]
struct Loading {
    index: UserIndex,
    /// The terms of all items by their numbers, with their counts, one item after the other; and the end of each item's
    /// terms.
    terms: Vec<(u32, u8)>,
    ends: Vec<usize>,
}

/// The numbers of a segment's words, terms and sessions in the index.
struct Numbers {
    words: Vec<u32>,
    terms: Vec<u32>,
    sessions: Vec<u32>,
}

impl Loading {
    /// Reserves memory for all segments at once. Growing step by step would copy the data and take up to twice the
    /// memory.
    fn reserve(&mut self, segments: &[Segment<'_>]) {
        let sum = |count: fn(&Segment<'_>) -> usize| segments.iter().map(count).sum();
        // Segments share most of their words.
        let most = |count: fn(&Segment<'_>) -> usize| segments.iter().map(count).max().unwrap_or(0);
        self.index.reserve(sum(|segment| segment.len()));
        self.index
            .words
            .reserve(most(|segment| segment.words.len()), sum(|segment| segment.word_places.len()));
        self.index.terms.reserve(most(|segment| segment.terms.len()));
        self.terms.reserve(sum(|segment| segment.term_places.len()));
        self.ends.reserve(sum(|segment| segment.len()));
    }

    /// Assigns index numbers to a segment's words, terms and sessions.
    fn enter(&mut self, segment: &Segment<'_>) -> Numbers {
        let index = &mut self.index;
        // An invalid name matches no session.
        let session =
            |name: &&str| SessionId::new(*name).map_or(u32::MAX, |name| index.session_number(&name));
        Numbers {
            sessions: segment.sessions.iter().map(session).collect(),
            words: segment.words.iter().map(|word| index.words.enter(word)).collect(),
            terms: segment.terms.iter().map(|hash| index.terms.enter(hash)).collect(),
        }
    }

    fn add_segment(&mut self, segment: &Segment<'_>, numbers: &Numbers) {
        for mut entry in segment.entries() {
            let session = entry.session.map(|place| numbers.sessions[place as usize]);
            entry.document.session = session.unwrap_or(u32::MAX);
            self.add(segment, entry, numbers);
        }
    }

    fn add(&mut self, segment: &Segment<'_>, entry: SegmentEntry<'_>, numbers: &Numbers) {
        let SegmentEntry { document, terms, words, .. } = entry;
        let words = words.map(|(word, count)| (numbers.words[word as usize], count));
        let hash = |(term, count): (u32, u8)| (segment.terms.get(term as usize), count);
        let said = || terms.map(hash).collect::<Vec<(TermHash, u8)>>();
        if let Some(former) = self.index.doc(&document.id) {
            let is_turn = matches!(document.id, ItemId::Turn(_));
            if is_turn || self.index.says(former, &said(), &words.clone().collect::<Vec<_>>()) {
                self.index.put(former, document);
                return;
            }
            self.index.supersede(former);
        }
        let doc = self.index.documents.len() as Doc;
        self.index.words.add_unlisted(doc, words);
        self.terms.extend(terms.map(|(term, count)| (numbers.terms[term as usize], count)));
        self.ends.push(self.terms.len());
        if let Some(outdated) = self.index.place(document, || said().into()) {
            self.index.supersede(outdated);
        }
    }

    /// Builds the inverted lists.
    fn lay_out(&mut self) {
        let Self { index, terms, ends } = self;
        let documents = &index.documents;
        let is_listed = |doc: Doc| !documents[doc as usize].superseded;
        index.words.lay_out(is_listed);
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let items = starts.zip(ends.iter()).zip(0..).filter(|(_, doc)| is_listed(*doc));
        index.terms.lay_out(items.flat_map(|((start, end), doc)| {
            terms[start..*end].iter().map(move |(number, count)| (*number, (doc, *count)))
        }));
    }
}
