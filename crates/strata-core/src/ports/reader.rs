//! The reader: a network that reads sentences as a careful person would.
//!
//! It judges a sentence in the midst of its message, compares a new sentence with a remembered one, and tells whether a
//! turn helps to answer a question. It gives probabilities; the callers decide.

use async_trait::async_trait;

use crate::error::Result;
use crate::memory::MemoryKind;

/// Who says a sentence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Speaker {
    /// The user.
    #[default]
    User,
    /// The assistant.
    Assistant,
}

impl Speaker {
    /// The name that the reader knows.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A sentence with its surroundings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SentenceInContext {
    /// Who says it.
    pub speaker: Speaker,
    /// The sentence.
    pub text: String,
    /// The text before it in its message.
    pub before: String,
    /// The text after it in its message.
    pub after: String,
    /// The message before its message. It counts for a message of one sentence.
    pub previous: String,
}

/// A remembered sentence and a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SentencePair {
    /// The remembered statement, as it was said or in the third person.
    pub remembered: String,
    /// The text just before the new sentence; may be empty.
    pub before: String,
    /// The new sentence.
    pub new: String,
}

/// A turn or a memory that may help to answer a question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TurnInContext {
    /// The turn before it, as `speaker: text`; may be empty.
    pub before: String,
    /// The turn, as `speaker: text`; or the text of the memory.
    pub text: String,
}

/// Whose word a sentence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::VariantArray, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Voice {
    /// The user's own assertion.
    Own,
    /// The user's own words that need not be kept.
    SmallTalk,
    /// Material by or about others.
    Material,
    /// Fiction, or invented examples.
    Fiction,
    /// A hypothesis, a joke or a guess.
    Hypothetical,
    /// A request.
    Request,
    /// A standing instruction.
    Instruction,
}

/// The role of a sentence in a case that is worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::VariantArray, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum CaseRole {
    /// A fact.
    Fact,
    /// A constraint or a warning.
    Constraint,
    /// A finding.
    Finding,
    /// A hypothesis.
    Hypothesis,
    /// A cause that is ruled out.
    RuledOut,
    /// The established cause.
    Cause,
    /// The case is resolved.
    Resolved,
    /// The case is still open.
    Unresolved,
    /// Advice.
    Advice,
    /// A decision.
    Decision,
    /// A task to be done.
    Todo,
    /// A task that is done.
    Done,
    /// Nothing of the case.
    Nothing,
    /// A question.
    Question,
}

impl CaseRole {
    /// A letter for each role, in their order.
    const LETTERS: [char; 14] = ['f', 'w', 'n', 'h', 'x', 'o', 'v', 'u', 'a', 'd', 't', 'k', '.', '?'];

    /// The letter of the role, for a short notation of many.
    pub fn letter(self) -> char {
        Self::LETTERS[self as usize]
    }

    /// The role with this letter.
    pub fn of_letter(letter: char) -> Option<Self> {
        let place = Self::LETTERS.iter().position(|known| *known == letter)?;
        <Self as strum::VariantArray>::VARIANTS.get(place).copied()
    }
}

/// The relation of a new sentence to a remembered one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::VariantArray, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Relation {
    /// They have nothing to do with each other.
    Nothing,
    /// The new one repeats it.
    Repeats,
    /// The new one replaces it.
    Replaces,
    /// The new one ends it.
    Ends,
}

/// The kinds of memories in the order of the reader's output.
const READER_KINDS: [MemoryKind; 9] = [
    MemoryKind::Fact,
    MemoryKind::Preference,
    MemoryKind::Schedule,
    MemoryKind::Todo,
    MemoryKind::Decision,
    MemoryKind::Event,
    MemoryKind::Relation,
    MemoryKind::Work,
    MemoryKind::Instruction,
];

/// The reader's judgement of a sentence. The probabilities of each group add up to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SentenceReading {
    /// The probability that the sentence is worth remembering.
    pub worth: f32,
    /// The probability of each kind: fact, preference, schedule, todo, decision, event, relation, work, instruction.
    pub kind: [f32; 9],
    /// The probability of each [`Voice`].
    pub voice: [f32; 7],
    /// The probability of each [`CaseRole`].
    pub case: [f32; 14],
    /// The probability that the sentence, read alone, does not tell what it is about; 0 if the reader cannot tell.
    pub unclear: f32,
}

impl SentenceReading {
    /// The most probable kind.
    pub fn kind(&self) -> MemoryKind {
        READER_KINDS[best(&self.kind)]
    }

    /// The probability of a voice.
    pub fn voice(&self, voice: Voice) -> f32 {
        self.voice[voice as usize]
    }

    /// The probability of a role.
    pub fn case(&self, role: CaseRole) -> f32 {
        self.case[role as usize]
    }
}

/// The reader's judgement of a pair: the probability of each [`Relation`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PairReading(pub [f32; 4]);

impl PairReading {
    /// The probability of a relation.
    pub fn of(&self, relation: Relation) -> f32 {
        self.0[relation as usize]
    }

    /// The probability that the new sentence changes the remembered one: it replaces or ends it.
    pub fn change(&self) -> f32 {
        self.of(Relation::Replaces) + self.of(Relation::Ends)
    }
}

/// The index of the highest value; 0 for none.
pub fn best(values: &[f32]) -> usize {
    let highest = values.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
    highest.map_or(0, |(place, _)| place)
}

/// Reads sentences. All answers are in the order of what was asked.
#[async_trait]
pub trait Reader: Send + Sync + 'static {
    /// The network's name.
    fn model(&self) -> &str;

    /// Reads sentences in the midst of their messages.
    async fn sentences(&self, sentences: &[SentenceInContext]) -> Result<Vec<SentenceReading>>;

    /// Compares new sentences with remembered ones.
    async fn relations(&self, pairs: &[SentencePair]) -> Result<Vec<PairReading>>;

    /// About how many word pieces of a question and of a turn `answers` reads.
    fn reads(&self) -> (usize, usize) {
        (usize::MAX, usize::MAX)
    }

    /// How much each turn helps to answer a question, as a logit: above 0 means that it rather helps.
    async fn answers(&self, question: &str, turns: &[TurnInContext]) -> Result<Vec<f32>>;
}
