//! Strata's reader: six outputs over one network of word pieces.
//!
//! The formats are those of its training; the number of pieces of each part is a constant below. Chinese is read by its
//! English glosses ([`crate::lexicon::gloss`]).

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use strata_core::ports::{
    PairReading, Reader, Reranker, SentenceInContext, SentencePair, SentenceReading, TurnInContext,
};
use strata_core::{Error, Result};

use super::gloss;
use super::lazy::LazyModel;
use super::session::{Sequence, Session, Urgency};

/// The pieces of a sentence.
const SENTENCE: usize = 96;
/// The pieces of the message before a message of one sentence: its last ones.
const PREVIOUS: usize = 40;
/// The pieces of what stands before a sentence in its message (the last ones) and of what follows it (the first ones).
const BEFORE: usize = 60;
const AFTER: usize = 40;
/// The pieces of each sentence of a pair, and of what was said before the new one.
const PAIR: usize = 80;
const PAIR_BEFORE: usize = 24;
/// The pieces of a question, of a turn, and of the turn before it.
const QUESTION: usize = 64;
const TURN: usize = 110;
const TURN_BEFORE: usize = 24;

/// The reader, in a folder or inside the program. Its weights are read on first use, and one thread runs it.
///
/// Sequences run one by one: batches are not faster, and the activations of an int8 network are scaled by batch, so that
/// a sentence would be judged differently beside others.
#[derive(Clone)]
pub struct OnnxReader {
    model: Arc<LazyModel<Loaded>>,
}

struct Loaded {
    session: Session,
    start: u32,
    end: u32,
}

impl OnnxReader {
    /// The reader in `dir`. This fails if the folder holds no model, and reads no weights yet.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        Ok(Self { model: Arc::new(LazyModel::open(dir.into(), Loaded::of)?) })
    }

    /// Strata's own reader, whose weights are inside the program.
    pub fn of_program(name: &str, weights: &'static [u8]) -> Result<Self> {
        Ok(Self { model: Arc::new(LazyModel::of_program(name, weights, Loaded::of)?) })
    }
}

impl Loaded {
    fn of(session: Session) -> Result<Self> {
        for output in ["worth", "kind", "voice", "case", "relation", "answers"] {
            if !session.has_output(output) {
                return Err(Error::invalid(format!(
                    "the model is not a reader: it has no output `{output}`"
                )));
            }
        }
        let (start, end) = (session.start()?, session.end()?);
        Ok(Self { session, start, end })
    }

    fn first(&self, text: &str, most: usize) -> Result<Vec<u32>> {
        gloss::first_pieces(&self.session, text, most)
    }

    fn last(&self, text: &str, most: usize) -> Result<Vec<u32>> {
        gloss::last_pieces(&self.session, text, most)
    }

    /// `[CLS] first [SEP] second [SEP]`, or `[CLS] second [SEP]` if there is no first segment.
    fn sequence(&self, first: &[u32], second: &[u32]) -> Sequence {
        let mut ids = vec![self.start];
        if !first.is_empty() {
            ids.extend(first);
            ids.push(self.end);
        }
        let second_from = ids.len();
        ids.extend(second);
        ids.push(self.end);
        if first.is_empty() { Sequence::single(ids) } else { Sequence { ids, second_from } }
    }

    fn sentence(&self, sentence: &SentenceInContext) -> Result<Sequence> {
        let SentenceInContext { speaker, text, before, after, previous } = sentence;
        let mut context = if before.is_empty() && after.is_empty() {
            self.last(previous, PREVIOUS)?
        } else {
            self.last(before, BEFORE)?
        };
        if !after.is_empty() {
            context.push(self.end);
            context.extend(self.first(after, AFTER)?);
        }
        let text = self.first(&format!("{}: {text}", speaker.as_str()), SENTENCE)?;
        Ok(self.sequence(&context, &text))
    }

    /// The text before it, if any, and the text.
    fn behind(&self, before: &str, most_before: usize, text: &str, most: usize) -> Result<Vec<u32>> {
        let mut pieces = self.last(before, most_before)?;
        if !pieces.is_empty() {
            pieces.push(self.end);
        }
        pieces.extend(self.first(text, most)?);
        Ok(pieces)
    }

    fn read_sentences(&self, sentences: &[SentenceInContext]) -> Result<Vec<SentenceReading>> {
        let sequences = sentences.iter().map(|one| self.sentence(one)).collect::<Result<Vec<_>>>()?;
        let mut readings = vec![SentenceReading::default(); sentences.len()];
        let outputs = ["worth", "kind", "voice", "case", "alone"];
        let known = if self.session.has_output("alone") { &outputs[..] } else { &outputs[..4] };
        self.session.run_heads(&sequences, known, Urgency::Background, |index, output, logits| {
            let reading = &mut readings[index];
            match output {
                0 => reading.worth = softmax::<2>(logits)[1],
                1 => reading.kind = softmax(logits),
                2 => reading.voice = softmax(logits),
                3 => reading.case = softmax(logits),
                _ => reading.unclear = softmax::<2>(logits)[0],
            }
        })?;
        Ok(readings)
    }

    fn read_pairs(&self, pairs: &[SentencePair]) -> Result<Vec<PairReading>> {
        let sequence = |pair: &SentencePair| {
            let new = self.behind(&pair.before, PAIR_BEFORE, &pair.new, PAIR)?;
            Ok(self.sequence(&self.first(&pair.remembered, PAIR)?, &new))
        };
        let sequences = pairs.iter().map(sequence).collect::<Result<Vec<_>>>()?;
        let mut readings = vec![PairReading::default(); pairs.len()];
        self.session.run_heads(&sequences, &["relation"], Urgency::Background, |index, _, logits| {
            readings[index] = PairReading(softmax(logits));
        })?;
        Ok(readings)
    }

    fn read_answers(
        &self,
        question: &str,
        turns: &[TurnInContext],
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<f32>> {
        let question = self.first(question, QUESTION)?;
        let sequence = |turn: &TurnInContext| {
            let turn = self.behind(&turn.before, TURN_BEFORE, &turn.text, TURN)?;
            Ok(self.sequence(&question, &turn))
        };
        let sequences = turns.iter().map(sequence).collect::<Result<Vec<_>>>()?;
        let rows = self.session.run_side_by_side(&sequences, "answers", is_wanted)?;
        let logit = |row: Vec<f32>| match row[..] {
            [no, yes] => Ok(yes - no),
            _ => Err(Error::invalid("the reader's output `answers` has no two values")),
        };
        rows.into_iter().map(logit).collect()
    }
}

/// The probabilities of the first `N` logits; all zero if there are fewer.
fn softmax<const N: usize>(logits: &[f32]) -> [f32; N] {
    let mut values = [0.0; N];
    let Some(logits) = logits.get(..N) else { return values };
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for (value, logit) in values.iter_mut().zip(logits) {
        *value = (logit - highest).exp();
    }
    let sum: f32 = values.iter().sum();
    values.map(|value| value / sum)
}

#[async_trait]
impl Reader for OnnxReader {
    fn model(&self) -> &str {
        self.model.name()
    }

    async fn sentences(&self, sentences: &[SentenceInContext]) -> Result<Vec<SentenceReading>> {
        let sentences = sentences.to_vec();
        self.model.run(move |loaded| loaded.read_sentences(&sentences)).await
    }

    async fn relations(&self, pairs: &[SentencePair]) -> Result<Vec<PairReading>> {
        let pairs = pairs.to_vec();
        self.model.run(move |loaded| loaded.read_pairs(&pairs)).await
    }

    fn reads(&self) -> (usize, usize) {
        (QUESTION, TURN)
    }

    async fn answers(&self, question: &str, turns: &[TurnInContext]) -> Result<Vec<f32>> {
        let (question, turns) = (question.to_owned(), turns.to_vec());
        // A caller with a deadline drops this future when the deadline passes. The threads then stop after their turns.
        let caller = Arc::new(());
        let waiting = Arc::downgrade(&caller);
        let is_wanted = move || waiting.strong_count() > 0;
        let answers = self.model.run(move |loaded| loaded.read_answers(&question, &turns, &is_wanted)).await;
        drop(caller);
        answers
    }
}

#[async_trait]
impl Reranker for OnnxReader {
    fn model(&self) -> &str {
        self.model.name()
    }

    fn reads(&self) -> (usize, usize) {
        Reader::reads(self)
    }

    async fn score(&self, question: &str, items: &[TurnInContext]) -> Result<Vec<f32>> {
        self.answers(question, items).await
    }
}
