//! Explains what learning would do with a text. Nothing is recorded or changed.

use std::borrow::Cow;

use serde::Serialize;

use super::Learning;
use super::read::{read_message, statement};
use super::reconcile::{DatedStatement, Target};
use super::relate::Related;
use crate::learn::reading::ReadSentence;
use crate::learn::relation::{Decision, decide};
use crate::learn::standalone::Previous;
use crate::learn::{Said, Standing, rules};
use strata_core::error::Result;
use strata_core::id::{MemoryId, SessionId, TurnId, UserId};
use strata_core::memory::{Memory, MemoryKind};
use strata_core::ports::{PairReading, Relation, Voice, best};

/// The explanation of a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TextExplanation {
    /// Who reads: the name of the reader, or `rules`.
    pub by: String,
    /// The sentences, in order. Each is compared with the memories as they are now.
    pub sentences: Vec<SentenceExplanation>,
}

/// The explanation of a sentence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SentenceExplanation {
    /// The sentence.
    pub text: String,
    /// The probability that it is worth remembering.
    pub worth: Option<f32>,
    /// Whose word it most probably is.
    pub voice: Option<&'static str>,
    /// The probability of that voice.
    pub voice_probability: Option<f32>,
    /// Why it is left out.
    pub left_out: Option<&'static str>,
    /// The statement that it becomes.
    pub statement: Option<StatementExplanation>,
}

/// The explanation of a statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatementExplanation {
    /// The text of the memory.
    pub memory: String,
    /// Its kind.
    pub kind: MemoryKind,
    /// Its confidence.
    pub confidence: f32,
    /// Its effect: `adds`, `repeats`, `replaces`, `ends`, `disputes`, or `nothing` if it would only count as a change.
    pub effect: &'static str,
    /// The memory that it repeats, replaces, ends or disputes.
    pub about: Option<MemoryId>,
    /// The memories that it was compared with, nearest first.
    pub candidates: Vec<CandidateExplanation>,
}

/// A memory that a statement was compared with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CandidateExplanation {
    /// The memory.
    pub id: MemoryId,
    /// Its text.
    pub memory: String,
    /// The probability that the statement repeats it.
    pub repeats: f32,
    /// The probability that the statement replaces it.
    pub replaces: f32,
    /// The probability that the statement ends it.
    pub ends: f32,
}

/// Why a sentence with a secret is left out.
const HOLDS_A_SECRET: &str = "holds a password, a key or the number of a card (setting `learn.secrets`)";

impl Learning {
    /// Explains what learning would do with a message of the user, if it were said now in a session. Nothing is recorded or changed.
    pub async fn explain(&self, user: &UserId, session: &SessionId, text: &str) -> Result<TextExplanation> {
        let now = self.clock.now();
        let said = Said { turn: TurnId(self.ids.next()), name: None, text, at: now };
        let Some(reader) = &self.reader else {
            return Ok(self.by_rules(&said));
        };
        let target = Target::new(user, session.clone());
        let mut sentences = Vec::new();
        for sentence in read_message(reader.as_ref(), text, &Previous::default()).await? {
            let found = statement(&sentence, &said);
            let plain = found.as_ref().map(|statement| self.without_secrets(statement));
            let statement = match plain {
                Some(None) => {
                    let left_out = Some(HOLDS_A_SECRET);
                    sentences.push(SentenceExplanation { left_out, ..explained(&sentence, None) });
                    continue;
                }
                None => None,
                Some(Some(statement)) => {
                    let statement = statement.into_owned();
                    let heard = statement.content.clone();
                    let dated = [DatedStatement { statement, at: now, heard }];
                    let (known, _) = self.neighbourhood(user, &target, &dated).await?;
                    let DatedStatement { statement, .. } = &dated[0];
                    // A repetition in the same words is known without a reader.
                    let related = match target.equal(&statement.content, &known) {
                        Some(same) => Related::same(same),
                        None => self.related(user, reader.as_ref(), statement, &known).await?,
                    };
                    Some(StatementExplanation {
                        memory: statement.content.clone(),
                        kind: statement.kind,
                        confidence: statement.confidence,
                        ..effect(&related.candidates, &related.relations, statement.standing())
                    })
                }
            };
            sentences.push(explained(&sentence, statement));
        }
        Ok(TextExplanation { by: reader.model().to_owned(), sentences })
    }

    fn by_rules(&self, said: &Said<'_>) -> TextExplanation {
        let sentence = |statement: crate::learn::Statement| {
            let plain = self.without_secrets(&statement).map(Cow::into_owned);
            let statement = plain.map(|statement| StatementExplanation {
                memory: statement.content,
                kind: statement.kind,
                confidence: statement.confidence,
                effect: "adds",
                about: None,
                candidates: Vec::new(),
            });
            SentenceExplanation {
                text: said.text.to_owned(),
                worth: None,
                voice: None,
                voice_probability: None,
                left_out: statement.is_none().then_some(HOLDS_A_SECRET),
                statement,
            }
        };
        TextExplanation {
            by: "rules".to_owned(),
            sentences: rules::extract(said).into_iter().map(sentence).collect(),
        }
    }
}

fn explained(sentence: &ReadSentence, statement: Option<StatementExplanation>) -> SentenceExplanation {
    let reading = &sentence.reading;
    let voice = <Voice as strum::VariantArray>::VARIANTS.get(best(&reading.voice)).copied();
    SentenceExplanation {
        text: sentence.text.clone(),
        worth: Some(reading.worth),
        voice: voice.map(<&'static str>::from),
        voice_probability: voice.map(|voice| reading.voice(voice)),
        left_out: sentence.verdict.reason(),
        statement,
    }
}

/// The effect of a statement on its candidates.
fn effect(candidates: &[Memory], relations: &[PairReading], standing: Standing) -> StatementExplanation {
    let (effect, place) = match decide(relations, standing) {
        Decision::New if standing != Standing::Kept => ("nothing", None),
        Decision::New => ("adds", None),
        Decision::Repeats { place } => ("repeats", Some(place)),
        Decision::Replaces { place, .. } => ("replaces", Some(place)),
        Decision::Ends { place, .. } => ("ends", Some(place)),
        Decision::Disputes { place, .. } => ("disputes", Some(place)),
    };
    let candidate = |(memory, relation): (&Memory, &PairReading)| CandidateExplanation {
        id: memory.id,
        memory: memory.content.clone(),
        repeats: relation.of(Relation::Repeats),
        replaces: relation.of(Relation::Replaces),
        ends: relation.of(Relation::Ends),
    };
    StatementExplanation {
        memory: String::new(),
        kind: MemoryKind::Fact,
        confidence: 0.0,
        effect,
        about: place.map(|place| candidates[place].id),
        candidates: candidates.iter().zip(relations).map(candidate).collect(),
    }
}
