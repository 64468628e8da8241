//! Checks a chat model's answers: its statements hold only values that were said, and its plans change nothing that the
//! message does not speak about. Without a usable model the reader does the work; the counts say how often.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Learning;
use super::reconcile::{DatedStatement, Target};
use crate::learn::checks::{SaidValues, has_term, share_content, shared_content};
use crate::learn::{Fate, Novelty, Plan, Said, Statement, rules};
use strata_core::id::{SessionId, TurnId, UserId};
use strata_core::memory::Memory;
use strata_core::ports::{PairReading, SentencePair};
use strata_language::sentences::ends;
use strata_language::statements::has_new_values;

/// The probability of a change from which the reader supports a model's plan. A model has read both sentences too, so
/// less is needed than for a change by the reader alone.
const SUPPORTED: f32 = 0.3;
/// The same for sentences that share a word with content.
const SUPPORTED_WITH_WORDS: f32 = 0.05;

/// The probability from which a change is sure. A statement that changes several memories needs it for each of them with
/// which the message shares no word, except for the surest.
const SURE: f32 = 0.9;

/// The most sentences of a message that the reader compares with a memory.
const MAX_SENTENCES: usize = 8;

/// The number of nearest memories whose values a statement may name.
const NEAR: usize = 3;

/// How the learning model did, since this process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelRecord {
    /// How often the model could not be used and the reader or the rules did its work.
    pub failures: u64,
    /// Statements that were refused, because they hold a value that was never said.
    pub refused_statements: u64,
    /// Changes that were refused, because the message does not speak about the memory.
    pub refused_changes: u64,
}

/// The counts behind a [`ModelRecord`].
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelCounts(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    failures: AtomicU64,
    refused_statements: AtomicU64,
    refused_changes: AtomicU64,
}

impl ModelCounts {
    pub(super) fn failed(&self) {
        self.0.failures.fetch_add(1, Ordering::Relaxed);
    }

    fn record(&self) -> ModelRecord {
        let Counts { failures, refused_statements, refused_changes } = self.0.as_ref();
        let [failures, refused_statements, refused_changes] =
            [failures, refused_statements, refused_changes].map(|count| count.load(Ordering::Relaxed));
        ModelRecord { failures, refused_statements, refused_changes }
    }
}

/// A turn before a message that is learned from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EarlierTurn {
    pub(super) by_user: bool,
    pub(super) text: String,
}

impl Learning {
    /// How the learning model did; `None` without one.
    pub fn model_record(&self) -> Option<ModelRecord> {
        self.model.as_ref().map(|_| self.counts.record())
    }

    /// Removes the statements of messages of which the model told something that was never said. Returns the places of these
    /// messages, for the reader.
    pub(super) async fn refuse_unsaid(
        &self,
        user: &UserId,
        session: &SessionId,
        statements: &mut Vec<Statement>,
        sources: &Sources<'_>,
    ) -> Vec<usize> {
        let target = Target::new(user, session.clone());
        let mut refused: Vec<TurnId> = Vec::new();
        let mut count = 0;
        for statement in statements.iter() {
            if sources.hold(statement, &[]) {
                continue;
            }
            // A change may name what the memory that it changes already says.
            let near = self.neighbours(user, &target, statement).await.unwrap_or_default();
            if !sources.hold(statement, &near[..near.len().min(NEAR)]) {
                refused.extend(&statement.turns);
                count += 1;
            }
        }
        self.counts.0.refused_statements.fetch_add(count, Ordering::Relaxed);
        statements.retain(|statement| !statement.turns.iter().any(|turn| refused.contains(turn)));
        (0..sources.said.len()).filter(|place| refused.contains(&sources.said[*place].turn)).collect()
    }

    /// Takes out of a model's plan what the statements do not speak about: such memories stay. A statement that names
    /// something new is no repetition.
    pub(super) async fn keep_unspoken(&self, plan: &mut Plan, dated: &[DatedStatement], known: &[Memory]) {
        for (place, one) in dated.iter().enumerate() {
            if let Novelty::Duplicate { of } = plan.new[place]
                && has_new_values(&one.statement.content, &known[of].content)
            {
                plan.new[place] = Novelty::Add;
            }
        }
        let changes: Vec<ProposedChange> = plan
            .known
            .iter()
            .enumerate()
            .filter_map(|(place, fate)| {
                fate.because_of().map(|by| ProposedChange { place, by, sureness: 0.0 })
            })
            .collect();
        let spoken = self.spoken_about(&changes, dated, known).await;
        for ProposedChange { place, .. } in changes {
            if !spoken.iter().any(|kept| kept.place == place) {
                plan.known[place] = Fate::Keep;
                self.counts.0.refused_changes.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The changes of memories that their messages speak about.
    async fn spoken_about(
        &self,
        changes: &[ProposedChange],
        dated: &[DatedStatement],
        known: &[Memory],
    ) -> Vec<ProposedChange> {
        let pair = |change: &ProposedChange| {
            (known[change.place].content.clone(), dated[change.by].statement.content.clone())
        };
        let readings = self.readings(changes.iter().map(pair)).await;
        let mut spoken = Vec::new();
        for (number, change) in changes.iter().enumerate() {
            let (memory, one) = (&known[change.place], &dated[change.by]);
            let reading = readings.as_ref().and_then(|readings| readings.get(number));
            if is_supported(memory, &one.statement, reading) && self.is_heard(memory, one).await {
                let by_rules = || if rules_end(memory, &one.statement) { 1.0 } else { 0.0 };
                let sureness = reading.map_or_else(by_rules, PairReading::change);
                spoken.push(ProposedChange { sureness, ..*change });
            }
        }
        without_bystanders(spoken, dated, known)
    }

    /// Whether the words by which a statement touches a memory were heard: a model may repeat the memory itself in its
    /// statement. If none of them was, the reader compares the message with the memory.
    async fn is_heard(&self, memory: &Memory, one: &DatedStatement) -> bool {
        let shared = shared_content(&one.statement.content, &memory.content);
        if shared.is_empty() || shared.iter().any(|term| has_term(&one.heard, term)) {
            return true;
        }
        let sentences = sentences(&one.heard).take(MAX_SENTENCES);
        let pairs = sentences.map(|sentence| (memory.content.clone(), sentence.to_owned()));
        let readings = self.readings(pairs).await.unwrap_or_default();
        readings.iter().any(|reading| reading.change() >= SUPPORTED)
    }

    /// How the reader relates pairs of a memory and a new sentence; `None` without a usable reader.
    async fn readings(&self, pairs: impl Iterator<Item = (String, String)>) -> Option<Vec<PairReading>> {
        let pair = |(remembered, new)| SentencePair { remembered, before: String::new(), new };
        let pairs: Vec<SentencePair> = pairs.map(pair).collect();
        match &self.reader {
            Some(reader) if !pairs.is_empty() => reader.relations(&pairs).await.ok(),
            _ => None,
        }
    }
}

/// A change in a model's plan.
#[derive(Debug, Clone, Copy)]
struct ProposedChange {
    /// The memory.
    place: usize,
    /// The statement.
    by: usize,
    sureness: f32,
}

/// The changes without those of bystanders. A statement mostly changes one memory, so the others that it changes have to
/// share a word with the message, or the change has to be sure.
fn without_bystanders(
    changes: Vec<ProposedChange>,
    dated: &[DatedStatement],
    known: &[Memory],
) -> Vec<ProposedChange> {
    let surest = |by: usize| {
        let of_statement = changes.iter().filter(|change| change.by == by);
        of_statement.max_by(|a, b| a.sureness.total_cmp(&b.sureness)).map(|change| change.place)
    };
    let is_meant = |change: &&ProposedChange| {
        change.sureness >= SURE
            || surest(change.by) == Some(change.place)
            || share_content(&dated[change.by].heard, &known[change.place].content)
    };
    changes.iter().filter(is_meant).copied().collect()
}

/// The texts from which a model draws its statements.
pub(super) struct Sources<'a> {
    pub(super) said: &'a [Said<'a>],
    /// The assistant's reply that each message answers.
    pub(super) replies: &'a [Option<String>],
    pub(super) earlier: &'a [EarlierTurn],
}

impl Sources<'_> {
    /// Whether each value of a statement was said: in its messages, in the turns that they answer, by the user before, or
    /// in these memories.
    fn hold(&self, statement: &Statement, memories: &[Memory]) -> bool {
        let mut values = SaidValues::default();
        let mut at = None;
        for (message, reply) in self.said.iter().zip(self.replies) {
            let is_source = statement.turns.contains(&message.turn);
            if is_source {
                at = Some(message.at);
                values.add_day(message.at);
                if let Some(reply) = reply {
                    values.add(reply, message.at);
                }
            }
            // The user's earlier messages tell who «she» is.
            if at.is_none() || is_source {
                values.add(message.text, message.at);
            }
            if let Some(name) = message.name {
                values.add_name(name);
            }
        }
        let Some(at) = at else { return true };
        let earlier = self.earlier.iter().filter(|turn| turn.by_user).map(|turn| turn.text.as_str());
        for text in earlier.chain(memories.iter().map(|memory| memory.content.as_str())) {
            values.add(text, at);
        }
        values.hold(&statement.content, at)
    }
}

/// Whether a change of a memory is supported: by the reader or, without one, by the rules or by words that both share.
fn is_supported(memory: &Memory, statement: &Statement, reading: Option<&PairReading>) -> bool {
    let shares = || share_content(&statement.content, &memory.content);
    match reading.map(PairReading::change) {
        Some(change) => change >= SUPPORTED || change >= SUPPORTED_WITH_WORDS && shares(),
        None => shares() || rules_end(memory, statement),
    }
}

/// The sentences of a text.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut from = 0;
    let sentence = move |end| text[std::mem::replace(&mut from, end)..end].trim();
    ends(text).chain([text.len()]).map(sentence).filter(|sentence| !sentence.is_empty())
}

fn rules_end(memory: &Memory, statement: &Statement) -> bool {
    let plan = rules::reconcile(std::slice::from_ref(statement), std::slice::from_ref(memory));
    plan.known.first().is_some_and(|fate| fate.because_of().is_some())
}
