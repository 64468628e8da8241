//! Statements that stand alone: a sentence that needs the one before it is joined with it, quotes what it answers, or is
//! not kept.

use super::Standing;
use super::reading::{ReadSentence, Verdict};
use strata_core::memory::MemoryKind;
use strata_core::ports::Voice;
use strata_language::content::is_courtesy;
use strata_language::statements::{
    Form, LeftOut, Piece, addresses, after_saying, announces, as_continuation, begins_with_pronoun,
    changes_topic, in_reply_to, is_asked, is_bare, is_for_listener, is_fragment, is_lead_in, is_of_speaker,
    is_short_answer, is_vague, lacks_referent, names_nothing, names_topic, names_value, pieces, says_little,
    takes_back, with_left_out_speaker, with_person, without_request,
};

/// The most characters of two sentences that become one statement, and of what a reply quotes.
const JOINED_CHARS: usize = 320;
const QUOTED_CHARS: usize = 160;
/// The most characters of a sentence that somebody says. A longer one is pasted.
const STATEMENT_CHARS: usize = 1_000;
/// The most characters of a message whose last sentence a reply quotes. The last sentence of a longer one seldom is what
/// the reply speaks about, unless it is a question and the reply a short answer.
const ANSWERED_CHARS: usize = 400;
/// The probability from which the reader's word suffices that a sentence does not tell what it is about.
const UNCLEAR: f32 = 0.7;
/// The same for a sentence that gets the words around it if they help, and stays as it is if not.
const VAGUE: f32 = 0.5;
/// The most sentences of a message in which the thing is looked for that a later one speaks of.
const LOOK_BACK: usize = 4;

/// The messages before the one that is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Previous {
    /// The text of the message before.
    pub(crate) text: String,
    /// Whether somebody else said it.
    pub(crate) by_other: bool,
    /// What the speaker of the message said last before that, if somebody else spoke meanwhile.
    pub(crate) own: String,
}

impl Previous {
    /// The last sentence of the message before.
    pub(super) fn last_sentence(&self) -> String {
        pieces(&self.text).pop().map(|last| last.text).unwrap_or_default()
    }

    /// Whether somebody else asked something at its end.
    fn asks(&self) -> bool {
        self.by_other && is_asked(&self.text)
    }

    /// Whether a reply to it may be about its last sentence.
    fn is_near(&self, reply: &str) -> bool {
        self.text.chars().count() <= ANSWERED_CHARS || self.asks() && is_short_answer(reply)
    }

    /// The words that a reply to it may quote: its last sentence, with those before it as far as it needs them.
    fn answered(&self, reply: &str) -> Option<String> {
        let mut sentences = pieces(&self.text).into_iter().rev().map(|piece| piece.text);
        let mut last = sentences.next().filter(|_| self.by_other && self.is_near(reply));
        // «How long have you had them?» and «When do you leave?» need the sentences before them, too.
        while let Some(text) = last.as_mut().filter(|text| lacks_referent(text) || names_nothing(text))
            && let Some(before) = sentences.next()
            && before.chars().count() + text.chars().count() < QUOTED_CHARS
        {
            *text = format!("{before} {text}");
        }
        last.filter(|last| is_quotable(last))
    }

    /// The last sentence of what somebody else said that names something by itself.
    fn named_by_other(&self, reply: &str) -> Option<String> {
        let is_near = self.by_other && self.is_near(reply);
        last_named(if is_near { self.text.as_str() } else { "" }, |_| true)
    }

    /// The last sentence that the speaker said before, and that names something by itself. What was asked in the message before
    /// is no subject of the next one.
    fn named_by_speaker(&self) -> Option<String> {
        match self.by_other {
            true => last_named(&self.own, |_| true),
            false => last_named(&self.text, |sentence| !is_asked(sentence)),
        }
    }
}

/// The last sentence of a text that names something by itself, and that may be quoted.
fn last_named(text: &str, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
    let mut sentences = pieces(text).into_iter().rev().filter(|piece| piece.form == Form::Plain);
    let names = |text: &str| is_quotable(text) && !is_vague(text) && is_wanted(text);
    sentences.find(|piece| names(&piece.text)).map(|piece| piece.text)
}

/// Whether a sentence is short enough to be quoted, and says something. «[shares an image]» is nothing that was said.
fn is_quotable(text: &str) -> bool {
    let is_said = !text.is_empty() && !is_courtesy(text) && !text.trim_end().ends_with(']');
    is_said && text.chars().count() <= QUOTED_CHARS && !lacks_referent(text) && names_topic(text)
}

/// How much a sentence needs the words around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Not at all.
    Nothing,
    /// It speaks to a listener.
    Listener,
    /// They may say what it is about: «the issue is solved».
    Helped,
    /// The reader is sure that it does not tell what it is about.
    Unclear,
    /// Its form shows that it does not.
    Required,
}

/// A message whose sentences are made understandable one after the other.
struct Message<'a> {
    previous: &'a Previous,
    /// The last sentence of the message before.
    outside: String,
    is_only: bool,
    /// The sentences that are done.
    found: Vec<ReadSentence>,
}

/// The sentences of a message with those that are kept made understandable without their message.
pub(crate) fn standing_alone(read: Vec<ReadSentence>, previous: &Previous) -> Vec<ReadSentence> {
    let found = Vec::with_capacity(read.len());
    let mut message =
        Message { previous, outside: previous.last_sentence(), is_only: read.len() == 1, found };
    let mut read = read.into_iter().peekable();
    while let Some(sentence) = read.next() {
        let is_code = |next: &ReadSentence| matches!(next.verdict, Verdict::Form(LeftOut::Code));
        let is_before_code = read.peek().is_some_and(is_code);
        message.add(sentence, is_before_code);
    }
    message.found
}

impl Message<'_> {
    fn add(&mut self, mut sentence: ReadSentence, is_before_code: bool) {
        if sentence.verdict == KEPT {
            leave_out_courtesies(&mut sentence);
            match self.left_out(&sentence, is_before_code) {
                Some(verdict) => sentence.verdict = verdict,
                None if self.explain(&mut sentence) => return,
                None => {}
            }
        }
        self.found.push(sentence);
    }

    /// The verdict about a sentence that is no statement by its form.
    fn left_out(&self, sentence: &ReadSentence, is_before_code: bool) -> Option<Verdict> {
        let text = &sentence.text;
        if !self.is_only && (is_lead_in(text) || announces(text) && is_before_code) {
            return Some(Verdict::Form(LeftOut::LeadIn));
        }
        if !self.is_only && is_fragment(text) && !self.is_led(sentence) {
            return Some(Verdict::Form(LeftOut::Fragment));
        }
        if says_little(text) || is_for_listener(text) {
            return Some(Verdict::Statement(Standing::AsChange));
        }
        (text.chars().count() > STATEMENT_CHARS).then_some(Verdict::Form(LeftOut::Material))
    }

    /// Whether a fragment belongs to the sentence before it: that one announces it, or it is a Chinese clause that leaves out
    /// its subject.
    fn is_led(&self, fragment: &ReadSentence) -> bool {
        let before = self.explaining(fragment, Need::Required).filter(|place| place + 1 == self.found.len());
        before.is_some_and(|place| is_lead_in(&self.found[place].text) || is_chinese_fragment(&fragment.text))
    }

    /// Gives a sentence the words around it that it needs. Whether it became a part of another sentence.
    fn explain(&mut self, sentence: &mut ReadSentence) -> bool {
        let need = self.need(sentence);
        match need {
            Need::Nothing => self.name_speaker(sentence),
            Need::Listener => leave_out_request(sentence),
            _ => return self.explain_by_words_around(sentence, need),
        }
        false
    }

    fn need(&self, sentence: &ReadSentence) -> Need {
        let text = &sentence.text;
        if sentence.told.is_some() {
            Need::Nothing
        } else if needs_context(text) || self.is_only && self.previous.asks() && is_short_answer(text) {
            Need::Required
        } else if addresses(text) {
            Need::Listener
        } else if changes_topic(text) {
            Need::Nothing
        } else if sentence.reading.unclear >= UNCLEAR {
            Need::Unclear
        } else if is_vague(text) || sentence.reading.unclear >= VAGUE {
            Need::Helped
        } else {
            Need::Nothing
        }
    }

    fn explain_by_words_around(&mut self, sentence: &mut ReadSentence, need: Need) -> bool {
        let is_behind_foreign = self.found.last().is_some_and(|last| !may_explain(last.verdict));
        if is_behind_foreign {
            give_up(sentence, need);
            return false;
        }
        if let Some(place) = self.explaining(sentence, need) {
            return self.join(place, sentence, need);
        }
        if self.found.is_empty() && !sentence.before.is_empty() && sentence.before != self.outside {
            // The clause before it was left out.
            let both = format!("{} {}", sentence.before, sentence.text);
            if names_topic(&sentence.before) && both.chars().count() <= JOINED_CHARS {
                sentence.told = Some(both);
                return false;
            }
        }
        // A short message goes on with what its speaker said, and often changes it.
        let may_stand = need == Need::Required && self.is_only && !self.previous.by_other;
        // «Spill the beans!» behind other sentences answers nothing.
        let may_quote = self.found.is_empty() || !is_bare(&sentence.text);
        if !(may_quote && self.quote(sentence, need)) && (!may_stand || is_chinese_fragment(&sentence.text)) {
            give_up(sentence, need);
        }
        false
    }

    /// The place of the nearest sentence of the message that names something which a later one may mean.
    fn explaining(&self, sentence: &ReadSentence, need: Need) -> Option<usize> {
        let near = self.found.iter().enumerate().rev().take(LOOK_BACK);
        let mut near = near.take_while(|(_, before)| may_explain(before.verdict));
        let names = |before: &ReadSentence| {
            let said = told(before);
            let is_topic = need == Need::Required && !names_nothing(said) && !is_courtesy(said);
            let is_said = before.verdict == KEPT || is_topic;
            is_said
                && names_topic(said)
                && !is_condition(before)
                && (before.told.is_some() || !lacks_referent(said))
                && said != sentence.text
        };
        near.find(|(_, before)| names(before)).map(|(place, _)| place)
    }

    /// Joins a sentence with an earlier one of its message. Whether it became a part of that one.
    fn join(&mut self, place: usize, sentence: &mut ReadSentence, need: Need) -> bool {
        let before = &self.found[place];
        let said = told(before);
        if let Some(told) = with_person(&sentence.text, said) {
            sentence.told = Some(told);
            return false;
        }
        // What only may belong together stays apart if one of them may correct the other.
        let is_doubtful = match need {
            _ if takes_back(&sentence.text) => true,
            Need::Required => false,
            Need::Unclear if !is_of_speaker(&sentence.text) => true,
            _ => has_number(said) && has_number(&sentence.text),
        };
        let Some(both) = joined(said, &sentence.text).filter(|_| !is_doubtful) else {
            give_up(sentence, need);
            return false;
        };
        let is_apart = matches!(sentence.kind(), MemoryKind::Todo | MemoryKind::Instruction)
            && sentence.kind() != before.kind();
        if before.verdict != KEPT || is_apart || !both.starts_with(said) {
            sentence.told = Some(both);
            return false;
        }
        let before = &mut self.found[place];
        before.text = format!("{} {}", before.text, sentence.text);
        before.told = (before.told.is_some() || both != before.text).then_some(both);
        true
    }

    /// Lets a sentence quote what it answers or goes on with. Whether that is known.
    fn quote(&self, sentence: &mut ReadSentence, need: Need) -> bool {
        let previous = self.previous;
        let text = &sentence.text;
        // «It's at nine now» shall not quote the time that was asked about.
        let fits = |quoted: &String| !(has_number(quoted) && has_number(text)) && quoted != text;
        let other =
            || previous.answered(text).filter(fits).or_else(|| previous.named_by_other(text).filter(fits));
        // A message of several sentences begins anew: «it» is no word of the speaker's message before.
        let may_go_on = !is_bare(text) && (previous.by_other || self.is_only && need == Need::Required);
        // A value that was said before may have changed since.
        let is_plain = |said: &String| !names_value(said) && !has_number(said);
        let own = || previous.named_by_speaker().filter(|_| may_go_on).filter(is_plain).filter(fits);
        // Of a complete sentence, what was said before seldom is the topic, unless it is asked for.
        if matches!(need, Need::Helped | Need::Unclear) && !previous.asks() && !is_vague(text) {
            return false;
        }
        let told = match other() {
            Some(answered) => Some(in_reply_to(text, &answered)),
            None => own().map(|said| after_saying(text, &said)),
        };
        sentence.told = told.or(sentence.told.take());
        sentence.told.is_some()
    }

    /// Puts the speaker into a Chinese sentence that leaves them out and stands first. What somebody asked may be about another
    /// person.
    fn name_speaker(&self, sentence: &mut ReadSentence) {
        let told = with_left_out_speaker(&sentence.text).filter(|_| self.found.is_empty());
        if told.is_some()
            && sentence.told.is_none()
            && !(self.previous.asks() && self.quote(sentence, Need::Helped))
        {
            sentence.told = told;
        }
    }
}

const KEPT: Verdict = Verdict::Statement(Standing::Kept);

/// The words of a sentence as they are remembered.
fn told(sentence: &ReadSentence) -> &str {
    sentence.told.as_deref().unwrap_or(&sentence.text)
}

fn has_number(text: &str) -> bool {
    text.chars().any(|c| c.is_ascii_digit())
}

/// Whether a sentence may name what a later one means. The words of others, fiction and hypotheses have their own things.
fn may_explain(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Statement(_) => true,
        Verdict::Form(reason) => matches!(reason, LeftOut::Question | LeftOut::LeadIn | LeftOut::Fragment),
        Verdict::NotOwn(voice) => {
            matches!(voice, Voice::Own | Voice::Instruction | Voice::SmallTalk | Voice::Request)
        }
    }
}

/// Whether a sentence that is no statement puts a case: «If I sold it, what would I get?».
fn is_condition(sentence: &ReadSentence) -> bool {
    const WORDS: [&str; 5] = ["if ", "suppose ", "如果", "要是", "假如"];
    let text = sentence.text.to_lowercase();
    sentence.verdict != KEPT && WORDS.iter().any(|word| text.contains(word))
}

/// Two sentences as one statement, or the last one of the first with the second; `None` if that is too long.
fn joined(said: &str, sentence: &str) -> Option<String> {
    let sentence = as_continuation(sentence);
    let fits = |both: &String| both.chars().count() <= JOINED_CHARS;
    let last = || pieces(said).pop().filter(|last| names_topic(&last.text) && !lacks_referent(&last.text));
    let shorter = || last().map(|last| format!("{} {sentence}", last.text)).filter(fits);
    Some(format!("{said} {sentence}")).filter(fits).or_else(shorter)
}

/// Leaves out the sentences of a short message that only speak to a listener: «Thanks! Moved to Ulm. See you there?».
fn leave_out_courtesies(sentence: &mut ReadSentence) {
    let parts = pieces(&sentence.text);
    let is_said = |part: &&Piece| {
        let is_to_listener = addresses(&part.text) || is_for_listener(&part.text) || is_asked(&part.text);
        !is_courtesy(&part.text) && !says_little(&part.text) && (!is_to_listener || names_value(&part.text))
    };
    let said: Vec<&str> = parts.iter().filter(is_said).map(|part| part.text.as_str()).collect();
    if parts.len() > 1 && !said.is_empty() && said.len() < parts.len() {
        sentence.text = said.join(" ");
    }
}

/// Leaves out the request at the end of a sentence. Other words to a listener are no statement about the speaker, unless
/// it names something.
fn leave_out_request(sentence: &mut ReadSentence) {
    let rest = without_request(&sentence.text);
    if rest.len() < sentence.text.len() {
        sentence.told = Some(rest.to_owned());
    } else if sentence.kind() != MemoryKind::Instruction {
        match is_of_speaker(&sentence.text) {
            true => doubt(sentence),
            // «You could try rye bread» is advice.
            false => sentence.verdict = Verdict::Statement(Standing::AsSureChange),
        }
    }
}

/// Whether a text is a Chinese clause that names neither its subject nor a value: 是黑色的.
fn is_chinese_fragment(text: &str) -> bool {
    is_fragment(text) && !text.is_ascii() && !text.contains(|c: char| c.is_ascii_alphabetic())
}

/// Whether the form of a sentence shows that it does not tell what it is about.
fn needs_context(sentence: &str) -> bool {
    begins_with_pronoun(sentence) || lacks_referent(sentence) || is_bare(sentence)
}

/// A sentence that the words around it do not explain.
fn give_up(sentence: &mut ReadSentence, need: Need) {
    if matches!(need, Need::Unclear | Need::Required) {
        doubt(sentence);
    }
}

/// A sentence that cannot be understood alone becomes a memory only if it changes one, unless it names something that would be lost.
fn doubt(sentence: &mut ReadSentence) {
    if !names_value(&sentence.text) || is_fragment(&sentence.text) {
        sentence.verdict = Verdict::Statement(Standing::AsChange);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strata_core::ports::{SentenceReading, Voice};

    fn sentences(texts: &[(&str, Verdict)], before: &str) -> Vec<ReadSentence> {
        let mut before = before.to_owned();
        let mut reading = SentenceReading::default();
        (reading.kind[0], reading.voice[Voice::Own as usize]) = (1.0, 1.0);
        let mut read = Vec::new();
        for (text, verdict) in texts {
            read.push(ReadSentence {
                text: (*text).to_owned(),
                before: std::mem::replace(&mut before, (*text).to_owned()),
                reading,
                verdict: *verdict,
                beside: Vec::new(),
                told: None,
            });
        }
        read
    }

    const KEPT: Verdict = Verdict::Statement(Standing::Kept);

    fn told(read: &[ReadSentence]) -> Vec<&str> {
        let kept = read.iter().filter(|sentence| sentence.verdict == KEPT);
        kept.map(|sentence| sentence.told.as_deref().unwrap_or(&sentence.text)).collect()
    }

    #[test]
    fn a_sentence_joins_the_one_that_it_needs() {
        let nobody = Previous::default();
        let read = sentences(&[("I keep bees.", KEPT), ("They're Buckfasts.", KEPT)], "");
        assert_eq!(told(&standing_alone(read, &nobody)), ["I keep bees. They're Buckfasts."]);
        let read = sentences(&[("My aunt Lena is here.", KEPT), ("She sings alto.", KEPT)], "");
        assert_eq!(
            told(&standing_alone(read, &nobody)),
            ["My aunt Lena is here.", "My aunt Lena sings alto."]
        );
        let read = sentences(&[("I own a ketch.", KEPT), ("I live in Hoorn.", KEPT)], "");
        assert_eq!(told(&standing_alone(read, &nobody)), ["I own a ketch.", "I live in Hoorn."]);
    }

    #[test]
    fn a_sentence_about_something_else_joins_nothing() {
        let nobody = Previous::default();
        let read = |texts: &[(&str, Verdict)]| {
            let mut read = sentences(texts, "");
            read.iter_mut().skip(1).for_each(|sentence| sentence.reading.unclear = 0.9);
            standing_alone(read, &nobody)
        };
        let apart = read(&[("I sorted the shed.", KEPT), ("By the way, my canoe is called Teal.", KEPT)]);
        assert_eq!(told(&apart), ["I sorted the shed.", "By the way, my canoe is called Teal."]);
        let joined = read(&[("I own a canoe.", KEPT), ("Oh and, my paddle is called Twig.", KEPT)]);
        assert_eq!(told(&joined), ["I own a canoe. My paddle is called Twig."]);
    }

    #[test]
    fn a_reply_quotes_what_it_answers() {
        let asked = |text: &str| Previous { text: text.to_owned(), by_other: true, ..Previous::default() };
        let question = "Do you have family in Gent?";
        let read = || sentences(&[("Yes, my cousins live there.", KEPT)], question);
        assert_eq!(
            told(&standing_alone(read(), &asked(question))),
            ["Yes, my cousins live there (in reply to “Do you have family in Gent?”)."]
        );
        let long = format!("{} {question}", "A long lecture about towns. ".repeat(40));
        assert!(told(&standing_alone(read(), &asked(&long))).is_empty(), "the reply may be about anything");
        let own = Previous { by_other: false, ..asked(question) };
        assert_eq!(told(&standing_alone(read(), &own)), ["Yes, my cousins live there."]);
    }

    #[test]
    fn a_short_answer_quotes_its_question() {
        let check = |asked: &str, said: &str, expected: &str| {
            let previous = Previous { text: asked.to_owned(), by_other: true, ..Previous::default() };
            let read = sentences(&[(said, KEPT)], &previous.last_sentence());
            assert_eq!(told(&standing_alone(read, &previous)), [expected]);
        };
        let long = "Trams run every ten minutes from the harbour to the old market. ".repeat(9);
        let question = "Is there any food you react to?";
        check(
            &format!("{long}{question}"),
            "Shellfish.",
            "Shellfish (in reply to “Is there any food you react to?”).",
        );
        check("你老家是哪儿的？", "泉州", "泉州（回应“你老家是哪儿的？”）");
        check("泉州真不错。", "我住泉州", "我住泉州");
    }

    #[test]
    fn a_short_message_keeps_what_it_says() {
        let nobody = Previous::default();
        let check = |said: &str, expected: &str| {
            assert_eq!(told(&standing_alone(sentences(&[(said, KEPT)], ""), &nobody)), [expected]);
        };
        check("Thanks! I moved to Ulm. Will you visit?", "I moved to Ulm.");
        check("Moved. Ulm now.", "Moved. Ulm now.");
        check("好的！我搬到大连了。", "我搬到大连了。");
    }

    #[test]
    fn praise_is_no_context_and_a_quotation_goes_back_to_what_it_names() {
        let asked = "Madeira sounds lovely. So nice! When are you leaving?";
        let previous = Previous { text: asked.to_owned(), by_other: true, ..Previous::default() };
        let read = sentences(&[("I'm flying there in May.", KEPT)], &previous.last_sentence());
        assert_eq!(
            told(&standing_alone(read, &previous)),
            [
                "I'm flying there in May (in reply to “Madeira sounds lovely. So nice! When are you leaving?”)."
            ]
        );
        let small_talk = Verdict::NotOwn(strata_core::ports::Voice::SmallTalk);
        let read = sentences(&[("Good idea!", small_talk), ("I'll try it in spring.", KEPT)], "");
        assert!(told(&standing_alone(read, &Previous::default())).is_empty());
    }

    #[test]
    fn a_long_message_does_not_go_on_with_the_one_before() {
        let previous =
            Previous { text: "I met the choir.".to_owned(), by_other: false, ..Previous::default() };
        let texts = [("It taught me patience.", KEPT), ("I row on Sundays.", KEPT)];
        let read = sentences(&texts, &previous.last_sentence());
        assert_eq!(told(&standing_alone(read, &previous)), ["I row on Sundays."]);
    }

    #[test]
    fn a_request_and_words_to_others_are_left_out() {
        let nobody = Previous::default();
        let read = sentences(
            &[
                ("I row on Mondays and Fridays, can you help me plan?", KEPT),
                ("Glad to hear you rest.", KEPT),
            ],
            "",
        );
        assert_eq!(told(&standing_alone(read, &nobody)), ["I row on Mondays and Fridays"]);
    }

    #[test]
    fn headings_and_lead_ins_are_no_statements() {
        let read = sentences(
            &[("I moved to Ulm.", KEPT), ("Choosing a notary.", KEPT), ("Here is my schema:", KEPT)],
            "",
        );
        assert_eq!(told(&standing_alone(read, &Previous::default())), ["I moved to Ulm."]);
    }

    #[test]
    fn a_chain_of_sentences_keeps_what_it_is_about() {
        let texts = [("I restore a ketch.", KEPT), ("It's from Hoorn.", KEPT), ("It leaks a little.", KEPT)];
        let read = sentences(&texts, "");
        assert_eq!(
            told(&standing_alone(read, &Previous::default())),
            ["I restore a ketch. It's from Hoorn. It leaks a little."]
        );
        let kind = Verdict::NotOwn(Voice::SmallTalk);
        let read =
            sentences(&[("I joined a rowing club.", KEPT), ("Good times!", kind), ("It's tiny.", KEPT)], "");
        assert_eq!(told(&standing_alone(read, &Previous::default())), ["I joined a rowing club. It's tiny."]);
    }

    #[test]
    fn a_request_names_what_the_next_sentence_means() {
        let request = Verdict::NotOwn(Voice::Request);
        let read = sentences(
            &[("Can you check my essay about eels?", request), ("It's for a museum in Ghent.", KEPT)],
            "",
        );
        assert_eq!(
            told(&standing_alone(read, &Previous::default())),
            ["Can you check my essay about eels? It's for a museum in Ghent."]
        );
        let read =
            sentences(&[("If I sold my ketch, what would I get?", request), ("It's from Hoorn.", KEPT)], "");
        assert_eq!(
            told(&standing_alone(read, &Previous::default())),
            ["It's from Hoorn."],
            "a case that is put"
        );
        let read = sentences(&[("We sail from Kiel.", KEPT), ("No, sorry, it's Rostock.", KEPT)], "");
        assert_eq!(
            told(&standing_alone(read, &Previous::default())),
            ["We sail from Kiel.", "No, sorry, it's Rostock."],
            "a correction does not repeat what it corrects"
        );
        let material = Verdict::Form(LeftOut::Material);
        let read = sentences(&[("A ketch has two masts.", material), ("It's lovely.", KEPT)], "");
        assert!(told(&standing_alone(read, &Previous::default())).is_empty(), "others speak of it");
    }

    #[test]
    fn what_is_said_in_between_answers_nothing() {
        let small_talk = Verdict::NotOwn(Voice::SmallTalk);
        let asked = "I met the harbour pilot.";
        let previous = Previous { text: asked.to_owned(), by_other: true, ..Previous::default() };
        let read = sentences(&[("Really?", small_talk), ("Fair winds!", KEPT)], asked);
        assert!(told(&standing_alone(read, &previous)).is_empty());
        let mut read = sentences(
            &[("Congrats on your new mooring.", small_talk), ("I sailed all of Monday.", KEPT)],
            "",
        );
        read[1].reading.unclear = 0.6;
        assert_eq!(told(&standing_alone(read, &Previous::default())), ["I sailed all of Monday."]);
    }

    #[test]
    fn a_task_stays_a_memory_of_its_own() {
        let mut read = sentences(&[("My mooring permit runs out.", KEPT), ("I have to renew it.", KEPT)], "");
        read[1].reading.kind = [0.0; 9];
        read[1].reading.kind[3] = 1.0;
        assert_eq!(
            told(&standing_alone(read, &Previous::default())),
            ["My mooring permit runs out.", "My mooring permit runs out. I have to renew it."]
        );
    }

    #[test]
    fn a_vague_sentence_gets_the_one_that_names_it() {
        let texts = [("My outboard motor stalls.", KEPT), ("The problem started in spring.", KEPT)];
        let read = sentences(&texts, "");
        assert_eq!(
            told(&standing_alone(read, &Previous::default())),
            ["My outboard motor stalls. The problem started in spring."]
        );
        let read = sentences(&[("The problem started in spring.", KEPT)], "");
        assert_eq!(told(&standing_alone(read, &Previous::default())), ["The problem started in spring."]);
    }

    #[test]
    fn a_sentence_goes_on_with_what_its_speaker_said_before() {
        let advice = "Fibreglass is light, and cedar is easy to shape. ".repeat(10);
        let previous =
            Previous { text: advice, by_other: true, own: "How do I patch my cedar canoe?".to_owned() };
        let read = sentences(&[("I tried it on Sunday.", KEPT)], &previous.last_sentence());
        assert_eq!(
            told(&standing_alone(read, &previous)),
            ["I tried it on Sunday (after saying “How do I patch my cedar canoe?”)."]
        );
        let previous = Previous { text: "I bought a cedar canoe.".to_owned(), ..Previous::default() };
        let read = sentences(&[("It's leaking.", KEPT)], &previous.last_sentence());
        assert_eq!(
            told(&standing_alone(read, &previous)),
            ["It's leaking (after saying “I bought a cedar canoe.”)."]
        );
    }

    #[test]
    fn a_chinese_sentence_gets_its_subject() {
        let nobody = Previous::default();
        let check = |texts: &[(&str, Verdict)], expected: &[&str]| {
            assert_eq!(told(&standing_alone(sentences(texts, ""), &nobody)), expected);
        };
        check(&[("是黑色的。", KEPT)], &[]);
        check(&[("我养了一只鹦鹉。", KEPT), ("是黑色的。", KEPT)], &["我养了一只鹦鹉。 是黑色的。"]);
        check(&[("去年搬到大连了。", KEPT)], &["我去年搬到大连了。"]);
        let asked = Previous { text: "你妹妹呢？".to_owned(), by_other: true, own: String::new() };
        let read = sentences(&[("去年搬到大连了。", KEPT)], &asked.text);
        assert_eq!(told(&standing_alone(read, &asked)), ["去年搬到大连了（回应“你妹妹呢？”）。"]);
    }
}
