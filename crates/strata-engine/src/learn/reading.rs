//! Judges the sentences of a message by a reader: which are kept, and why the others are not.
//!
//! The form of the whole message decides first (quotations, pasted text, code, fiction), then whose word a sentence is,
//! then whether it is worth remembering. The functions are pure; [`crate::Learning`] calls the reader.

use strata_core::memory::MemoryKind;
use strata_core::ports::{SentenceInContext, SentenceReading, Speaker, Voice, best};
use strata_language::content::is_courtesy;
use strata_language::statements::{
    self, Form, Leaning, LeftOut, Piece, addresses, chinese_clauses, facts, introduced, is_asked,
    is_bare_question, is_instruction, is_task_of_another, plainly, rough_length, says_done, stands_alone,
};

use super::Standing;
use super::standalone::Previous;

/// The probability from which the only sentence of a message is the user's own and worth remembering.
const ALONE: f32 = 0.5;
/// The same for a sentence in the midst of others: their context makes the reader more careful.
const AMONG: f32 = 0.4;
/// The share of that probability from which a sentence may change what is remembered, though it is no memory alone.
const OF_CHANGE: f32 = 0.8;
/// The same for a clause of a Chinese sentence that was not accepted as a whole, among others and alone.
const CLAUSE_AMONG: f32 = 0.8;
const CLAUSE_ALONE: f32 = 0.9;
/// The worth of a name that its bearer gives: that of a plain statement.
const INTRODUCED: f32 = 0.9;
/// The probability of a voice that is not the user's own from which a sentence changes nothing.
const FOREIGN: f32 = 0.5;
/// The most pieces of a message that are read. Longer messages are pasted, not said.
const MAX_PIECES: usize = 64;
/// A message of one line that is at most this long is read as one sentence.
const SHORT_MESSAGE: usize = 16;

/// A sentence of a message with what the reader makes of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReadSentence {
    /// The sentence as it was said.
    pub(crate) text: String,
    /// The sentence before it, or the last one of the message before.
    pub(crate) before: String,
    /// The probabilities.
    pub(crate) reading: SentenceReading,
    /// The decision about it.
    pub(crate) verdict: Verdict,
    /// The other facts of the sentence, if it is one of several.
    pub(crate) beside: Vec<String>,
    /// The text that is remembered instead of the sentence, if it needs the one before it.
    pub(crate) told: Option<String>,
}

/// The decision about a sentence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verdict {
    /// It becomes a statement.
    Statement(Standing),
    /// It is left out for the form of its message.
    Form(LeftOut),
    /// It is not the user's own assertion.
    NotOwn(Voice),
}

impl Verdict {
    /// The reason why it was left out, in words; `None` if it was not.
    pub(crate) fn reason(self) -> Option<&'static str> {
        match self {
            Self::Statement(Standing::Kept) => None,
            Self::Statement(Standing::AsChange | Standing::AsSureChange) => {
                Some("not worth remembering unless it changes something")
            }
            Self::Form(reason) => Some(reason.as_str()),
            Self::NotOwn(Voice::Own | Voice::Instruction) => Some("doubtful whose word it is"),
            Self::NotOwn(Voice::SmallTalk) => Some("small talk"),
            Self::NotOwn(Voice::Material) => Some("material by or about others"),
            Self::NotOwn(Voice::Fiction) => Some("fiction"),
            Self::NotOwn(Voice::Hypothetical) => Some("a hypothesis or a joke"),
            Self::NotOwn(Voice::Request) => Some("a request"),
        }
    }
}

/// The least probability of the other opinion, by voice or by kind, that a sentence is a standing instruction.
const INSTRUCTION_AGREES: f32 = 0.3;
/// The probability of the voice that needs no other opinion.
const INSTRUCTION_ALONE: f32 = 0.85;

impl ReadSentence {
    /// The kind of the memory that it becomes.
    pub(crate) fn kind(&self) -> MemoryKind {
        if self.is_standing() {
            return MemoryKind::Instruction;
        }
        // The last kind is the instruction.
        let mut others = self.reading;
        others.kind[others.kind.len() - 1] = 0.0;
        match others.kind() {
            // «I finished the tax return» is nothing to be done.
            MemoryKind::Todo if says_done(&self.text) => MemoryKind::Event,
            MemoryKind::Todo if is_task_of_another(&self.text) => MemoryKind::Fact,
            kind => kind,
        }
    }

    /// Whether it is a standing instruction: by its form, or because the reader says so of both its kind and its voice.
    /// An instruction is part of every prompt, so one opinion does not suffice for a remark such as «always the same».
    fn is_standing(&self) -> bool {
        let SentenceReading { kind, voice, .. } = &self.reading;
        let by_voice = best(voice) == Voice::Instruction as usize;
        let by_kind = self.reading.kind() == MemoryKind::Instruction;
        let agree = |other: f32| other >= INSTRUCTION_AGREES;
        is_instruction(&self.text)
            || (by_voice
                && (self.reading.voice(Voice::Instruction) >= INSTRUCTION_ALONE
                    || agree(kind[kind.len() - 1])))
            || (by_kind && agree(self.reading.voice(Voice::Instruction)))
    }

    /// How sure it is that the sentence is the user's own and worth remembering.
    pub(crate) fn confidence(&self) -> f32 {
        (self.reading.worth * own(&self.reading)).clamp(0.0, 1.0)
    }
}

/// A message that a reader is asked about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UnreadMessage {
    pieces: Vec<Piece>,
    previous: String,
    housekeeping: bool,
}

/// A Chinese sentence that was not accepted as a whole, cut into clauses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SecondLook {
    place: usize,
    /// The clauses as they were said.
    said: Vec<String>,
    /// The clauses, each with its surroundings.
    pub(crate) clauses: Vec<SentenceInContext>,
}

impl UnreadMessage {
    /// A message and the one before it in its session.
    pub(crate) fn new(message: &str, previous: &Previous) -> Self {
        let mut pieces = statements::pieces(message);
        let is_plain = pieces.iter().all(|piece| piece.form == Form::Plain && piece.line == pieces[0].line);
        let is_short = rough_length(message) <= SHORT_MESSAGE;
        let is_one = is_plain && is_short && !statements::mix_scripts(&pieces);
        let is_asked_of = || pieces.iter().any(|piece| asks_for_help(&piece.text));
        let is_introduced = || pieces.iter().any(|piece| introduced(&piece.text).is_some());
        let is_apart = || statements::hold_orders(&pieces) || is_asked_of() || is_introduced();
        if pieces.len() > 1 && is_one && !is_apart() {
            pieces.truncate(1);
            pieces[0].text = message.trim().to_owned();
        }
        pieces.truncate(MAX_PIECES);
        let previous = previous.last_sentence();
        Self { pieces, previous, housekeeping: statements::is_housekeeping(message) }
    }

    /// The sentences to read, each with its surroundings.
    pub(crate) fn sentences(&self) -> Vec<SentenceInContext> {
        let sentence = |place: usize| self.in_context(place, &[], &self.pieces[place].text, &[]);
        if self.housekeeping { Vec::new() } else { (0..self.pieces.len()).map(sentence).collect() }
    }

    /// A text in place of a piece, with the clauses of the piece before and after it.
    fn in_context(&self, place: usize, before: &[String], text: &str, after: &[String]) -> SentenceInContext {
        let texts = |pieces: &[Piece]| pieces.iter().map(|piece| piece.text.clone()).collect::<Vec<_>>();
        SentenceInContext {
            speaker: Speaker::User,
            text: plainly(text).into_owned(),
            before: [&texts(&self.pieces[..place]), before].concat().join(" "),
            after: [after, &texts(&self.pieces[place + 1..])].concat().join(" "),
            previous: self.previous.clone(),
        }
    }

    /// The sentences with their verdicts. `readings` has one entry for each of [`UnreadMessage::sentences`].
    pub(crate) fn judge(&self, readings: &[SentenceReading]) -> Vec<ReadSentence> {
        let leanings: Vec<Leaning> = readings
            .iter()
            .map(|reading| Leaning {
                foreign: reading.voice(Voice::Material) + reading.voice(Voice::Fiction),
                request: reading.voice(Voice::Request),
            })
            .collect();
        let left_out = statements::left_out(&self.pieces, &leanings);
        let least = if self.pieces.len() > 1 { AMONG } else { ALONE };
        let mut before = self.previous.as_str();
        let mut judged = Vec::with_capacity(self.pieces.len());
        for (place, piece) in self.pieces.iter().enumerate() {
            let reading = readings.get(place).copied().unwrap_or_default();
            let verdict = match left_out[place] {
                _ if self.housekeeping => Verdict::Form(LeftOut::Housekeeping),
                Some(reason) => Verdict::Form(reason),
                None if is_courtesy(&piece.text) => Verdict::NotOwn(Voice::SmallTalk),
                None => verdict(&reading, least),
            };
            judged.push(ReadSentence {
                text: piece.text.clone(),
                before: before.to_owned(),
                reading,
                verdict,
                beside: Vec::new(),
                told: None,
            });
            before = &piece.text;
        }
        judged
    }

    /// The Chinese sentences that may hold a statement in one of their clauses.
    pub(crate) fn second_looks(&self, judged: &[ReadSentence]) -> Vec<SecondLook> {
        let look = |(place, sentence): (usize, &ReadSentence)| {
            let said = match sentence.verdict {
                Verdict::Form(_) | Verdict::Statement(Standing::Kept) => return None,
                _ => chinese_clauses(&sentence.text),
            };
            let in_context =
                |(at, clause): (usize, &String)| self.in_context(place, &said[..at], clause, &said[at + 1..]);
            let clauses: Vec<SentenceInContext> = said.iter().enumerate().map(in_context).collect();
            (clauses.len() > 1).then_some(SecondLook { place, said, clauses })
        };
        judged.iter().enumerate().filter_map(look).collect()
    }

    /// Puts the clauses that are statements in the place of their sentences. `readings` has one entry for each clause of
    /// all looks, in their order.
    pub(crate) fn look_again(
        &self,
        judged: Vec<ReadSentence>,
        looks: &[SecondLook],
        readings: &[SentenceReading],
    ) -> Vec<ReadSentence> {
        let least = if self.pieces.len() > 1 { CLAUSE_AMONG } else { CLAUSE_ALONE };
        let mut readings = readings.iter();
        let mut found = Vec::with_capacity(judged.len());
        for (place, sentence) in judged.into_iter().enumerate() {
            let Some(look) = looks.iter().find(|look| look.place == place) else {
                found.push(sentence);
                continue;
            };
            let clauses = clauses_of(&sentence, look, &mut readings, least);
            if clauses.is_empty() {
                found.push(sentence);
            }
            found.extend(clauses);
        }
        found
    }
}

/// The clauses of a Chinese sentence that are statements. A clause that does not stand alone keeps the one before it.
fn clauses_of<'r>(
    sentence: &ReadSentence,
    look: &SecondLook,
    readings: &mut impl Iterator<Item = &'r SentenceReading>,
    least: f32,
) -> Vec<ReadSentence> {
    let mut found: Vec<ReadSentence> = Vec::new();
    let mut before: Option<(&str, &SentenceReading)> = None;
    for (clause, reading) in look.said.iter().zip(readings) {
        let said_before = before.replace((clause, reading));
        if own(reading) < least || reading.worth < least || is_bare_question(clause) {
            continue;
        }
        let leans = said_before.filter(|(_, reading)| own(reading) >= AMONG && !stands_alone(clause));
        match found.last_mut().filter(|last| leans.is_some_and(|(text, _)| last.text.ends_with(text))) {
            Some(last) => last.text.push_str(clause),
            None => found.push(ReadSentence {
                text: clause.clone(),
                before: said_before.map_or(&sentence.before[..], |(text, _)| text).to_owned(),
                reading: *reading,
                verdict: Verdict::Statement(Standing::Kept),
                beside: Vec::new(),
                told: leans.map(|(text, _)| format!("{text}{clause}")),
            }),
        }
    }
    found
}

/// A sentence in which the speaker gives their name, as a statement of it. A reader takes it for a greeting. What others say, what
/// is invented and what is only supposed gives no name.
pub(crate) fn with_introduction(mut sentence: ReadSentence) -> ReadSentence {
    let is_own = match sentence.verdict {
        Verdict::Form(_) => false,
        Verdict::NotOwn(voice) => !matches!(voice, Voice::Material | Voice::Fiction | Voice::Hypothetical),
        Verdict::Statement(_) => true,
    };
    if let Some(told) = introduced(&sentence.text).filter(|_| is_own) {
        sentence.verdict = Verdict::Statement(Standing::Kept);
        sentence.told = Some(told);
        sentence.reading.kind = Default::default();
        sentence.reading.kind[MemoryKind::Fact as usize] = 1.0;
        sentence.reading.worth = sentence.reading.worth.max(INTRODUCED);
        sentence.reading.voice = Default::default();
        sentence.reading.voice[Voice::Own as usize] = 1.0;
    }
    sentence
}

/// Whether a sentence asks something of the listener. What stands beside it in a short message is read alone.
fn asks_for_help(sentence: &str) -> bool {
    const CHINESE: [&str; 6] = ["帮我", "幫我", "能不能", "可不可以", "可以吗", "可以嗎"];
    let asks = addresses(sentence) || CHINESE.iter().any(|word| sentence.contains(word));
    is_asked(sentence) && asks
}

/// The facts of the compound sentences among those that are kept, each with its surroundings.
pub(crate) fn compounds(read: &[ReadSentence]) -> Vec<SentenceInContext> {
    let of_sentence = |sentence: &ReadSentence| {
        let facts = facts_of(sentence);
        let in_context = |place: usize| SentenceInContext {
            speaker: Speaker::User,
            text: facts[place].clone(),
            before: [std::slice::from_ref(&sentence.before), &facts[..place]]
                .concat()
                .join(" ")
                .trim()
                .to_owned(),
            after: facts[place + 1..].join(" "),
            previous: String::new(),
        };
        (0..facts.len()).map(in_context).collect::<Vec<_>>()
    };
    read.iter().flat_map(of_sentence).collect()
}

/// The facts of a compound sentence that is kept; none of any other.
fn facts_of(sentence: &ReadSentence) -> Vec<String> {
    let facts = if sentence.verdict == Verdict::Statement(Standing::Kept) {
        facts(&sentence.text)
    } else {
        Vec::new()
    };
    let is_cut = facts.len() > 1 && !facts.iter().any(|fact| statements::says_little(fact));
    if is_cut { facts } else { Vec::new() }
}

/// Puts the facts of compound sentences in their place. Whose word a fact is and whether it is worth remembering is decided
/// by its sentence; its kind is its own. `readings` has one entry for each of [`compounds`].
pub(crate) fn cut(read: Vec<ReadSentence>, readings: &[SentenceReading]) -> Vec<ReadSentence> {
    let mut readings = readings.iter();
    let mut found = Vec::with_capacity(read.len());
    for sentence in read {
        let facts = facts_of(&sentence);
        if facts.is_empty() {
            found.push(sentence);
            continue;
        }
        for (place, reading) in (0..facts.len()).zip(readings.by_ref()) {
            let others = facts.iter().enumerate().filter(|(other, _)| *other != place);
            found.push(ReadSentence {
                text: facts[place].clone(),
                before: if place == 0 { sentence.before.clone() } else { facts[place - 1].clone() },
                reading: SentenceReading { kind: reading.kind, unclear: reading.unclear, ..sentence.reading },
                verdict: sentence.verdict,
                beside: others.map(|(_, fact)| fact.clone()).collect(),
                told: None,
            });
        }
    }
    found
}

/// The probability that a sentence is the user's own assertion or standing instruction.
fn own(reading: &SentenceReading) -> f32 {
    reading.voice(Voice::Own) + reading.voice(Voice::Instruction)
}

/// The verdict for a sentence whose probabilities have to reach `least`.
fn verdict(reading: &SentenceReading, least: f32) -> Verdict {
    if own(reading) >= least {
        if reading.worth >= least {
            return Verdict::Statement(Standing::Kept);
        }
        if reading.worth >= OF_CHANGE * least {
            return Verdict::Statement(Standing::AsChange);
        }
    }
    let foreign = [Voice::Material, Voice::Fiction, Voice::Hypothetical, Voice::Request];
    if foreign.iter().map(|voice| reading.voice(*voice)).sum::<f32>() < FOREIGN {
        return Verdict::Statement(Standing::AsSureChange);
    }
    let likeliest = foreign.into_iter().max_by(|a, b| reading.voice(*a).total_cmp(&reading.voice(*b)));
    Verdict::NotOwn(likeliest.unwrap_or(Voice::SmallTalk))
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
        let judged = UnreadMessage::new(message, &Previous::default()).judge(readings);
        judged.into_iter().map(|sentence| sentence.verdict).collect()
    }

    #[test]
    fn a_remark_that_only_sounds_like_an_instruction_is_none() {
        let sentence = |text: &str, voice: f32, kind: f32| {
            let mut reading = reading(0.9, Voice::Own);
            reading.voice = [0.0; 7];
            reading.voice[Voice::Instruction as usize] = voice;
            reading.voice[Voice::Own as usize] = 1.0 - voice;
            reading.kind = [0.0; 9];
            (reading.kind[7], reading.kind[8]) = (1.0 - kind, kind);
            UnreadMessage::new(text, &Previous::default()).judge(&[reading])[0].kind()
        };
        assert_eq!(sentence("Left and right print fine.", 0.1, 0.8), MemoryKind::Work);
        assert_eq!(sentence("左边一直都有声音。", 0.6, 0.1), MemoryKind::Work);
        assert_eq!(sentence("Metric units, please.", 0.6, 0.5), MemoryKind::Instruction);
        assert_eq!(sentence("Metric units, please.", 0.9, 0.1), MemoryKind::Instruction);
        assert_eq!(sentence("Never use emoji with me.", 0.0, 0.0), MemoryKind::Instruction);
    }

    #[test]
    fn whose_word_and_worth_decide() {
        let own = |worth| reading(worth, Voice::Own);
        let statement = Verdict::Statement;
        let long =
            "I live in the old town of Bergen. I may leave it some day, who knows. It rains there a lot.";
        assert_eq!(
            verdicts(long, &[own(0.41), own(0.35), own(0.1)]),
            [statement(Standing::Kept), statement(Standing::AsChange), statement(Standing::AsSureChange)]
        );
        assert_eq!(
            verdicts("I live here.", &[own(0.45)]),
            [statement(Standing::AsChange)],
            "alone it needs more"
        );
        assert_eq!(
            verdicts("If only I left.", &[reading(0.9, Voice::Hypothetical)]),
            [Verdict::NotOwn(Voice::Hypothetical)]
        );
        let small_talk = [reading(0.9, Voice::SmallTalk)];
        assert_eq!(verdicts("It is in the post.", &small_talk), [statement(Standing::AsSureChange)]);
        for courtesy in ["Ok.", "嗯嗯"] {
            assert_eq!(verdicts(courtesy, &[own(0.9)]), [Verdict::NotOwn(Voice::SmallTalk)], "{courtesy}");
        }
    }

    #[test]
    fn a_short_message_is_one_sentence_and_a_chinese_one_gets_a_second_look() {
        let sentences = |text: &str| UnreadMessage::new(text, &Previous::default()).sentences().len();
        assert_eq!(sentences("Moved. Porto now."), 1);
        for asked in
            ["Could you fix the Friday slot? We moved to the annex.", "能帮我改一下地址吗？我们搬到后院了。"]
        {
            assert_eq!(sentences(asked), 2, "{asked}");
        }
        let message =
            UnreadMessage::new("帮我想个午饭的主意好不好，我家老二下个月满四岁了。", &Previous::default());
        let judged = message.judge(&[reading(0.2, Voice::Request)]);
        let looks = message.second_looks(&judged);
        assert_eq!(looks[0].clauses.len(), 2);
        assert_eq!(looks[0].clauses[1].before, "帮我想个午饭的主意好不好，");
        let readings = [reading(0.1, Voice::Request), reading(0.95, Voice::Own)];
        let found = message.look_again(judged, &looks, &readings);
        let texts: Vec<&str> = found.iter().map(|sentence| sentence.text.as_str()).collect();
        assert_eq!(texts, ["我家老二下个月满四岁了。"]);
    }

    #[test]
    fn a_chinese_clause_keeps_the_one_that_it_needs() {
        let clauses = |own_before: f32| {
            let message = UnreadMessage::new(
                "我姑妈在绍兴老街开了一家小茶馆，并且请了两位从福建来的老师傅。",
                &Previous::default(),
            );
            let judged = message.judge(&[reading(0.2, Voice::Request)]);
            let looks = message.second_looks(&judged);
            let mut first = reading(0.1, Voice::Request);
            (first.voice[Voice::Own as usize], first.voice[Voice::Request as usize]) =
                (own_before, 1.0 - own_before);
            let found = message.look_again(judged, &looks, &[first, reading(0.95, Voice::Own)]);
            found.into_iter().map(|sentence| sentence.told.unwrap_or(sentence.text)).collect::<Vec<_>>()
        };
        assert_eq!(clauses(0.6), ["我姑妈在绍兴老街开了一家小茶馆，并且请了两位从福建来的老师傅。"]);
        assert_eq!(clauses(0.1), ["并且请了两位从福建来的老师傅。"], "a request is no part of it");
    }

    #[test]
    fn a_short_message_in_two_scripts_has_two_sentences() {
        let texts = |message: &str| {
            let sentences = UnreadMessage::new(message, &Previous::default()).sentences();
            sentences.into_iter().map(|sentence| sentence.text).collect::<Vec<_>>()
        };
        assert_eq!(texts("我住在宁波。 I prefer green tea."), ["我住在宁波。", "I prefer green tea."]);
        assert_eq!(texts("I row. 我会游泳。"), ["I row.", "我会游泳。"]);
        assert_eq!(texts("搬家了。现在住宁波。").len(), 1);
    }

    #[test]
    fn what_is_done_is_an_event_and_an_order_is_an_instruction() {
        let kind = |text: &str, kind: usize| {
            let mut reading = reading(0.9, Voice::Own);
            (reading.kind[0], reading.kind[kind]) = (0.0, 1.0);
            UnreadMessage::new(text, &Previous::default()).judge(&[reading])[0].kind()
        };
        let todo = 3;
        assert_eq!(kind("I have to file the claim.", todo), MemoryKind::Todo);
        assert_eq!(kind("I filed the claim.", todo), MemoryKind::Event);
        assert_eq!(kind("我交完水费了", todo), MemoryKind::Event);
        assert_eq!(kind("My flatmate says he has to sell the sofa.", todo), MemoryKind::Fact);
        assert_eq!(kind("邻居老周说他得修屋顶", todo), MemoryKind::Fact);
        assert_eq!(kind("Don't ever suggest seafood.", 1), MemoryKind::Instruction);
        assert_eq!(kind("别再给我推荐恐怖片", 1), MemoryKind::Instruction);
    }

    #[test]
    fn a_bare_question_is_never_a_statement() {
        for question in [
            "Where do I live?",
            "我住在哪里？",
            "what's my flat number?",
            "where do I live",
            "我的狗叫什么",
            "我住在哪里",
        ] {
            let own = reading(0.95, Voice::Own);
            assert_eq!(verdicts(question, &[own]), [Verdict::Form(LeftOut::Question)], "{question}");
        }
    }

    #[test]
    fn the_form_of_the_message_comes_first() {
        let own = reading(0.9, Voice::Own);
        let request = reading(0.1, Voice::Request);
        assert_eq!(
            verdicts("Correct these lines for me please:\nI lives in Bonn.", &[request, own]),
            [Verdict::NotOwn(Voice::Request), Verdict::Form(LeftOut::Material)]
        );
        let title = UnreadMessage::new(
            "Generate a title for this conversation: I live in Bonn.",
            &Previous::default(),
        );
        assert!(title.sentences().is_empty());
        assert!(title.judge(&[]).iter().all(|one| one.verdict == Verdict::Form(LeftOut::Housekeeping)));
    }

    #[test]
    fn a_sentence_is_read_in_the_midst_of_its_message() {
        let message = UnreadMessage::new(
            "One is here.\nTwo is there.",
            &Previous { text: "Before. Just before.".to_owned(), by_other: false, ..Previous::default() },
        );
        let sentences = message.sentences();
        assert_eq!(sentences[1].before, "One is here.");
        assert_eq!(sentences[0].after, "Two is there.");
        assert_eq!(sentences[0].previous, "Just before.");
        let judged = message.judge(&[reading(0.9, Voice::Own), reading(0.9, Voice::Instruction)]);
        assert_eq!((judged[0].before.as_str(), judged[1].before.as_str()), ("Just before.", "One is here."));
        assert_eq!((judged[0].kind(), judged[1].kind()), (MemoryKind::Fact, MemoryKind::Instruction));
    }
}
