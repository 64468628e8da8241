//! What a reader makes of a message: which of its sentences are kept, and why the others are not.
//!
//! The form of the whole message decides first (quotations, pasted text, code, fiction), then whose word a sentence is,
//! then whether it is worth remembering. The functions are pure; [`crate::Learning`] calls the reader.

use strata_core::memory::MemoryKind;
use strata_core::ports::{SentenceInContext, SentenceReading, Speaker, Voice, best};
use strata_language::statements::{self, Aside, Leaning, Piece};

/// The probability from which a sentence is the user's own word.
const OWN: f32 = 0.5;
/// The probability from which a sentence is worth remembering.
const WORTH: f32 = 0.5;
/// The probability from which a sentence may change what is remembered, though it is not worth a memory alone.
const WORTH_OF_CHANGE: f32 = 0.4;
/// The most pieces of a message that are read. Longer messages are pasted, not said.
const MAX_PIECES: usize = 64;

/// A sentence of a message with what the reader makes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadSentence {
    /// The sentence as it was said.
    pub text: String,
    /// The sentence before it, or the last one of the message before.
    pub before: String,
    /// The probabilities.
    pub reading: SentenceReading,
    /// What becomes of it.
    pub verdict: Verdict,
}

/// What becomes of a sentence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// It becomes a statement.
    Keep,
    /// It is a statement only if it changes something that is remembered.
    OnlyAsChange,
    /// It is put aside for the form of its message.
    Form(Aside),
    /// It is not the user's own assertion.
    NotOwn(Voice),
    /// It is not worth remembering.
    NotWorth,
}

impl Verdict {
    /// The reason why it was put aside, in words; `None` if it was not.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Keep | Self::OnlyAsChange => None,
            Self::Form(aside) => Some(aside.as_str()),
            Self::NotOwn(Voice::Own | Voice::Instruction) => Some("doubtful whose word it is"),
            Self::NotOwn(Voice::SmallTalk) => Some("small talk"),
            Self::NotOwn(Voice::Material) => Some("material by or about others"),
            Self::NotOwn(Voice::Fiction) => Some("fiction"),
            Self::NotOwn(Voice::Hypothetical) => Some("a hypothesis or a joke"),
            Self::NotOwn(Voice::Request) => Some("a request"),
            Self::NotWorth => Some("not worth remembering"),
        }
    }
}

impl ReadSentence {
    /// The kind of the memory that it becomes.
    pub fn kind(&self) -> MemoryKind {
        let voice = best(&self.reading.voice);
        if voice == Voice::Instruction as usize { MemoryKind::Instruction } else { self.reading.kind() }
    }

    /// How sure it is that the sentence is the user's own and worth remembering.
    pub fn confidence(&self) -> f32 {
        (self.reading.worth * own(&self.reading)).clamp(0.0, 1.0)
    }
}

/// A message that a reader is asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct UnreadMessage {
    pieces: Vec<Piece>,
    previous: String,
    housekeeping: bool,
}

impl UnreadMessage {
    /// A message and the one before it in its session.
    pub fn new(message: &str, previous: &str) -> Self {
        let mut pieces = statements::pieces(message);
        pieces.truncate(MAX_PIECES);
        let previous = statements::pieces(previous).pop().map(|last| last.text).unwrap_or_default();
        Self { pieces, previous, housekeeping: statements::is_housekeeping(message) }
    }

    /// The sentences to read, each with its surroundings.
    pub fn sentences(&self) -> Vec<SentenceInContext> {
        let text =
            |pieces: &[Piece]| pieces.iter().map(|piece| piece.text.as_str()).collect::<Vec<_>>().join(" ");
        let sentence = |(place, piece): (usize, &Piece)| SentenceInContext {
            speaker: Speaker::User,
            text: piece.text.clone(),
            before: text(&self.pieces[..place]),
            after: text(&self.pieces[place + 1..]),
            previous: self.previous.clone(),
        };
        if self.housekeeping { Vec::new() } else { self.pieces.iter().enumerate().map(sentence).collect() }
    }

    /// The sentences with their verdicts. `readings` has one entry for each of [`UnreadMessage::sentences`].
    pub fn judge(&self, readings: &[SentenceReading]) -> Vec<ReadSentence> {
        let leanings: Vec<Leaning> = readings
            .iter()
            .map(|reading| Leaning {
                foreign: reading.voice(Voice::Material) + reading.voice(Voice::Fiction),
                request: reading.voice(Voice::Request),
            })
            .collect();
        let aside = statements::aside(&self.pieces, &leanings);
        let mut before = self.previous.as_str();
        let mut judged = Vec::with_capacity(self.pieces.len());
        for (place, piece) in self.pieces.iter().enumerate() {
            let reading = readings.get(place).copied().unwrap_or_default();
            let verdict = match aside[place] {
                _ if self.housekeeping => Verdict::Form(Aside::Housekeeping),
                Some(aside) => Verdict::Form(aside),
                None => verdict(&reading),
            };
            judged.push(ReadSentence {
                text: piece.text.clone(),
                before: before.to_owned(),
                reading,
                verdict,
            });
            before = &piece.text;
        }
        judged
    }
}

/// The probability that a sentence is the user's own assertion or standing instruction.
fn own(reading: &SentenceReading) -> f32 {
    reading.voice(Voice::Own) + reading.voice(Voice::Instruction)
}

fn verdict(reading: &SentenceReading) -> Verdict {
    if own(reading) < OWN {
        let voices = [Voice::SmallTalk, Voice::Material, Voice::Fiction, Voice::Hypothetical, Voice::Request];
        let likeliest = voices.into_iter().max_by(|a, b| reading.voice(*a).total_cmp(&reading.voice(*b)));
        return Verdict::NotOwn(likeliest.unwrap_or(Voice::SmallTalk));
    }
    match reading.worth {
        worth if worth >= WORTH => Verdict::Keep,
        worth if worth >= WORTH_OF_CHANGE => Verdict::OnlyAsChange,
        _ => Verdict::NotWorth,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading of a user's own sentence.
    fn reading(worth: f32, voice: Voice) -> SentenceReading {
        let mut reading = SentenceReading { worth, ..SentenceReading::default() };
        reading.voice[voice as usize] = 1.0;
        reading.kind[0] = 1.0;
        reading
    }

    fn verdicts(message: &str, readings: &[SentenceReading]) -> Vec<Verdict> {
        let judged = UnreadMessage::new(message, "").judge(readings);
        judged.into_iter().map(|sentence| sentence.verdict).collect()
    }

    #[test]
    fn whose_word_and_worth_decide() {
        let own = |worth| reading(worth, Voice::Own);
        assert_eq!(
            verdicts("I live here. I may. Ok.", &[own(0.9), own(0.45), own(0.1)]),
            [Verdict::Keep, Verdict::OnlyAsChange, Verdict::NotWorth]
        );
        assert_eq!(
            verdicts("What if I left?", &[reading(0.9, Voice::Hypothetical)]),
            [Verdict::NotOwn(Voice::Hypothetical)]
        );
    }

    #[test]
    fn the_form_of_the_message_comes_first() {
        let own = reading(0.9, Voice::Own);
        let request = reading(0.1, Voice::Request);
        assert_eq!(
            verdicts("Correct this: I lives in Bonn.", &[request, own]),
            [Verdict::NotOwn(Voice::Request), Verdict::Form(Aside::Material)]
        );
        let title = UnreadMessage::new("Generate a title for this conversation: I live in Bonn.", "");
        assert!(title.sentences().is_empty());
        assert!(title.judge(&[]).iter().all(|one| one.verdict == Verdict::Form(Aside::Housekeeping)));
    }

    #[test]
    fn a_sentence_is_read_in_the_midst_of_its_message() {
        let message = UnreadMessage::new("One is here. Two is there.", "Before. Just before.");
        let sentences = message.sentences();
        assert_eq!(sentences[1].before, "One is here.");
        assert_eq!(sentences[0].after, "Two is there.");
        assert_eq!(sentences[0].previous, "Just before.");
        let judged = message.judge(&[reading(0.9, Voice::Own), reading(0.9, Voice::Instruction)]);
        assert_eq!((judged[0].before.as_str(), judged[1].before.as_str()), ("Just before.", "One is here."));
        assert_eq!((judged[0].kind(), judged[1].kind()), (MemoryKind::Fact, MemoryKind::Instruction));
    }
}
