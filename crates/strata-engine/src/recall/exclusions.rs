//! Exclusions: relevant items that are not served. They repeat the question, repeat another item, have no content, or are
//! already shown to the caller.
//!
//! An earlier copy of the question is its best match, but does not answer it. A statement that a user repeats ten times
//! would fill the whole list. Such items are excluded before the list is cut, so that the next items move up. The words
//! of an item tell whether it may have to be excluded; the comparison of the exact texts decides
//! ([`crate::index::TextFingerprint`]). If the exact text is not known yet, the caller reads it and ranks again. These
//! rules apply to [`super::request::Order::Served`] only: the order by relevance contains all items.

use std::collections::{HashMap, HashSet};

use super::best::Scores;
use super::question::Question;
use super::rank::{Ranked, RankingInputs, Scored};
use super::request::{RecallRequest, Shown};
use super::store_candidates::FoundHit;
use crate::index::{Doc, Document, TextFingerprint, UserIndex, speaker, term_hash};
use strata_core::hash::{FNV_START, fnv_step};
use strata_core::id::ItemId;
use strata_core::store::{Hit, Item};
use strata_core::turn::{Role, Turn};
use strata_language::text::analyse;

/// Items that say the same count as equally good if their score is at least this share of the best score among them. An
/// item with a lower score was said in another context that fits the question less.
const AS_GOOD: f32 = 0.9;

/// A turn that repeats the question may have this many extra words: its speaker's name.
const NAME_WORDS: usize = 3;

/// A turn with more words than this, stop words aside, counts as one with content, so that its text need not be read. Of
/// the 815 courtesies and bare questions in three public sets of chats, none has more than 11.
const MAX_EMPTY_WORDS: u32 = 12;

/// Words that only phrase a question and add no topic to it.
const ASKING: [&str; 26] = [
    "user", "tell", "remind", "please", "know", "remember", "again", "我", "你", "的", "是", "了", "吗",
    "呢", "在", "请", "请问", "什么", "多少", "哪里", "哪儿", "哪", "谁", "怎么", "告诉", "现在",
];

/// The exclusion rules of one request.
pub(crate) struct ExclusionRules<'a> {
    question: TextFingerprint,
    shown: &'a Shown,
    /// The number of the session in which the question is asked.
    session: Option<u32>,
    /// The numbers of the question's words, and of the words in [`ASKING`].
    words: Vec<u32>,
    asking: Vec<u32>,
    /// The user's own speaker hash, as in [`Document::speaker`].
    user: u32,
}

/// Why an item is excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExclusionReason {
    /// The caller's prompt shows it already.
    Shown,
    /// It asks the same question.
    SameQuestion,
    /// The given item says the same and is newer.
    SaidAgain(ItemId),
    /// It says nothing that could answer a question.
    NoContent,
}

impl ExclusionReason {
    /// Whether the item does not count as a hit: its words match the question, but it adds no knowledge.
    pub(crate) fn is_no_hit(self) -> bool {
        matches!(self, Self::Shown | Self::SameQuestion | Self::NoContent)
    }
}

/// The excluded items of a ranking.
#[derive(Debug, Default)]
pub(crate) struct Excluded {
    /// Best first.
    pub(crate) items: Vec<(Scored, ExclusionReason)>,
    /// Items whose exact text must be read before the exclusions are final.
    pub(crate) unknown: Vec<ItemId>,
}

impl Excluded {
    /// Merges the exclusions of several questions. An item that another question found is not excluded.
    pub(super) fn of_all(exclusions: Vec<Self>, found: &[Ranked]) -> Self {
        let mut all = Self::default();
        let mut taken: HashSet<Doc> = found.iter().map(|item| item.doc).collect();
        for excluded in exclusions {
            all.items.extend(excluded.items.into_iter().filter(|(scored, _)| taken.insert(scored.doc)));
            all.unknown.extend(excluded.unknown);
        }
        all.items.sort_by(|(a, _), (b, _)| b.score.total_cmp(&a.score));
        all.unknown.sort_unstable();
        all.unknown.dedup();
        all
    }
}

impl<'a> ExclusionRules<'a> {
    pub(crate) fn new(
        index: &UserIndex,
        query: &str,
        question: &Question,
        shown: &'a Shown,
        session: Option<u32>,
    ) -> Self {
        let mut words: Vec<u32> =
            question.words.iter().filter_map(|word| index.words.number(&word.text)).collect();
        words.sort_unstable();
        let asking = ASKING.iter().filter_map(|word| index.words.number(word)).collect();
        Self { question: TextFingerprint::new(query), shown, session, words, asking, user: term_hash("user") }
    }

    /// Whether an item does not count as a hit, as far as this is known without reading its text.
    pub(crate) fn is_no_hit(&self, index: &UserIndex, doc: Doc) -> bool {
        let document = &index.documents[doc as usize];
        let fingerprint = index.fingerprints.get(doc);
        let asks = || fingerprint.is_none_or(|fingerprint| self.repeats_question(document, fingerprint));
        self.shown.items.contains(&document.id)
            || fingerprint.is_some_and(|fingerprint| is_shown(self, document, fingerprint))
            || fingerprint.is_some_and(|fingerprint| is_turn(document) && !fingerprint.has_content)
            || (self.may_repeat_question(index, doc, document) && asks())
    }

    /// Whether an item may repeat the question, judged by its words.
    fn may_repeat_question(&self, index: &UserIndex, doc: Doc, document: &Document) -> bool {
        if !is_turn(document) {
            return false;
        }
        let words = index.words.of(doc);
        let asked = |word: u32| self.words.binary_search(&word).is_ok();
        if document.speaker == self.user {
            words.iter().all(|(word, _)| asked(*word) || self.asking.contains(word))
        } else {
            words.len() <= self.words.len() + NAME_WORDS
                && words.iter().filter(|(word, _)| asked(*word)).count() == self.words.len()
        }
    }

    /// Whether a turn with the question's words only asks the current question.
    fn repeats_question(&self, document: &Document, fingerprint: TextFingerprint) -> bool {
        (fingerprint == self.question && fingerprint.asks)
            || (fingerprint.is_open && document.speaker == self.user)
    }
}

/// The best `most` items without the excluded ones. If fewer than `wanted` items remain, more items are considered.
pub(crate) fn best_without_excluded(
    inputs: &RankingInputs<'_>,
    scores: &Scores<'_>,
    most: usize,
    wanted: usize,
) -> (Vec<Scored>, Excluded) {
    let mut count = most;
    loop {
        let mut best = scores.best(count);
        let Some(rules) = inputs.rules else { return (best, Excluded::default()) };
        let Judged { reasons, unknown } = judge(inputs.index, rules, &best);
        let is_all = best.len() < count;
        if best.len() - reasons.len() >= wanted || is_all || !unknown.is_empty() {
            let mut items = Vec::with_capacity(reasons.len());
            let mut places = 0..;
            best.retain(|scored| {
                let reason = places.next().and_then(|place| reasons.get(&place));
                items.extend(reason.map(|reason| (*scored, *reason)));
                reason.is_none()
            });
            return (best, Excluded { items, unknown });
        }
        count *= 4;
    }
}

/// The excluded items of a list, by their positions in it.
struct Judged {
    reasons: HashMap<usize, ExclusionReason>,
    unknown: Vec<ItemId>,
}

fn judge(index: &UserIndex, rules: &ExclusionRules<'_>, best: &[Scored]) -> Judged {
    let (mut reasons, mut unknown) = (HashMap::new(), Vec::new());
    let mut words: Vec<(u32, u64, usize)> = Vec::with_capacity(best.len());
    for (place, Scored { doc, .. }) in best.iter().enumerate() {
        let document = &index.documents[*doc as usize];
        if rules.shown.items.contains(&document.id) {
            reasons.insert(place, ExclusionReason::Shown);
            continue;
        }
        let fingerprint = index.fingerprints.get(*doc);
        let may_repeat_question = rules.may_repeat_question(index, *doc, document);
        let may_be_shown = !rules.shown.texts.is_empty() && rules.session == Some(document.session);
        match fingerprint {
            Some(fingerprint) if is_shown(rules, document, fingerprint) => {
                reasons.insert(place, ExclusionReason::Shown);
            }
            Some(fingerprint) if may_repeat_question && rules.repeats_question(document, fingerprint) => {
                reasons.insert(place, ExclusionReason::SameQuestion);
            }
            Some(fingerprint) if is_turn(document) && !fingerprint.has_content => {
                reasons.insert(place, ExclusionReason::NoContent);
            }
            None if may_repeat_question || may_be_shown || may_be_empty(document) => {
                unknown.push(document.id)
            }
            _ => words.push((document.speaker, words_of(index, *doc), place)),
        }
    }
    words.sort_unstable();
    for alike in words.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).filter(|alike| alike.len() > 1) {
        let places: Vec<usize> = alike.iter().map(|(_, _, place)| *place).collect();
        exclude_repeated(index, best, &places, &mut reasons, &mut unknown);
    }
    Judged { reasons, unknown }
}

/// Whether the prompt shows a turn's text already.
fn is_shown(rules: &ExclusionRules<'_>, document: &Document, fingerprint: TextFingerprint) -> bool {
    is_turn(document) && rules.shown.texts.contains(&fingerprint)
}

/// Memories are statements that a person or a rule chose to keep, so only turns are judged.
fn is_turn(document: &Document) -> bool {
    matches!(document.id, ItemId::Turn(_))
}

/// Whether a turn may have no content, judged by its length.
fn may_be_empty(document: &Document) -> bool {
    is_turn(document) && document.word_count <= MAX_EMPTY_WORDS
}

/// Excludes repeated statements among items with the same words. Of the items with the same text whose scores are near
/// the best, the newest stays.
fn exclude_repeated(
    index: &UserIndex,
    best: &[Scored],
    places: &[usize],
    reasons: &mut HashMap<usize, ExclusionReason>,
    unknown: &mut Vec<ItemId>,
) {
    let mut same: HashMap<TextFingerprint, Vec<usize>> = HashMap::new();
    for place in places {
        let doc = best[*place].doc;
        match index.fingerprints.get(doc) {
            Some(fingerprint) => same.entry(fingerprint).or_default().push(*place),
            None => unknown.push(index.documents[doc as usize].id),
        }
    }
    for places in same.into_values() {
        let top = places.iter().map(|place| best[*place].score).fold(f32::MIN, f32::max);
        let document = |place: usize| &index.documents[best[place].doc as usize];
        let newest = places
            .iter()
            .copied()
            .filter(|place| best[*place].score >= AS_GOOD * top)
            .max_by_key(|place| (document(*place).created_at, document(*place).id));
        let Some(newest) = newest else { continue };
        let others = places.iter().filter(|place| **place != newest);
        reasons.extend(others.map(|place| (*place, ExclusionReason::SaidAgain(document(newest).id))));
    }
}

/// A hash of an item's words. Items with the same words have the same hash; a collision only costs one comparison.
fn words_of(index: &UserIndex, doc: Doc) -> u64 {
    let words = index.words.of(doc).iter();
    words.fold(FNV_START, |hash, (word, count)| fnv_step(hash, u64::from(*word) ^ u64::from(*count) << 32))
}

/// Applies the same rules to hits of a store's own index, which come with their texts.
pub(super) fn exclude_hits(
    request: &RecallRequest,
    hits: Vec<FoundHit>,
) -> (Vec<FoundHit>, Vec<(Hit, ExclusionReason)>) {
    let question = TextFingerprint::new(&request.query);
    let terms: HashSet<String> =
        analyse(&request.query).into_iter().chain(analyse(&ASKING.join(" "))).collect();
    let asks = |turn: &Turn, fingerprint: TextFingerprint| {
        let is_users = turn.role == Role::User && turn.name.is_none();
        let says_no_more = || analyse(&turn.content).iter().all(|term| terms.contains(term));
        (fingerprint == question && fingerprint.asks) || (fingerprint.is_open && is_users && says_no_more())
    };
    let (mut kept, mut excluded): (Vec<FoundHit>, Vec<(Hit, ExclusionReason)>) = (Vec::new(), Vec::new());
    let mut said: HashMap<(Option<String>, TextFingerprint), usize> = HashMap::new();
    for found in hits {
        let fingerprint = TextFingerprint::new(found.hit.item.content());
        let (turn, shows) = match &found.hit.item {
            Item::Turn(turn) => (Some(turn), request.shown.texts.contains(&fingerprint)),
            Item::Memory(_) | Item::Summary(_) => (None, false),
        };
        if shows || request.shown.items.contains(&found.hit.item.id()) {
            excluded.push((found.hit, ExclusionReason::Shown));
        } else if turn.is_some_and(|turn| asks(turn, fingerprint)) {
            excluded.push((found.hit, ExclusionReason::SameQuestion));
        } else if turn.is_some() && !fingerprint.has_content {
            excluded.push((found.hit, ExclusionReason::NoContent));
        } else {
            let speaker = turn.map(|turn| speaker(turn).to_owned());
            match said.get(&(speaker.clone(), fingerprint)) {
                // The newest item takes the best position of all items that say the same.
                Some(place) if found.hit.item.created_at() > kept[*place].hit.item.created_at() => {
                    let id = found.hit.item.id();
                    excluded.push((
                        std::mem::replace(&mut kept[*place], found).hit,
                        ExclusionReason::SaidAgain(id),
                    ));
                }
                Some(place) => {
                    let id = kept[*place].hit.item.id();
                    excluded.push((found.hit, ExclusionReason::SaidAgain(id)));
                }
                None => {
                    said.insert((speaker, fingerprint), kept.len());
                    kept.push(found);
                }
            }
        }
    }
    (kept, excluded)
}
