//! Statements that stand alone: a sentence that needs the one before it is joined with it, quotes what it answers, or is
//! not kept.

use super::Standing;
use super::reading::{ReadSentence, Verdict};
use strata_core::memory::MemoryKind;
use strata_language::content::is_courtesy;
use strata_language::statements::{
    LeftOut, Piece, addresses, announces, begins_with_pronoun, in_reply_to, is_asked, is_bare,
    is_for_listener, is_fragment, is_lead_in, is_of_speaker, is_short_answer, lacks_referent, names_nothing,
    names_value, pieces, says_little, with_person, without_request,
};

/// The most characters of two sentences that become one statement, and of what a reply quotes.
const JOINED_CHARS: usize = 320;
const QUOTED_CHARS: usize = 160;
/// The most characters of a sentence that somebody says. A longer one is pasted.
const STATEMENT_CHARS: usize = 1_000;
/// The most characters of a message whose last sentence a reply quotes. The last sentence of a longer one seldom is what
/// the reply speaks about, unless it is a question and the reply a short answer.
const ANSWERED_CHARS: usize = 400;
/// The probability from which the reader's word suffices that a sentence does not tell what it is about. Such a sentence
/// joins no other one: often it corrects the one before it.
const UNCLEAR: f32 = 0.7;

/// The message before the one that is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Previous {
    /// Its text.
    pub(crate) text: String,
    /// Whether somebody else said it.
    pub(crate) by_other: bool,
}

impl Previous {
    /// Its last sentence.
    pub(super) fn last_sentence(&self) -> String {
        pieces(&self.text).pop().map(|last| last.text).unwrap_or_default()
    }

    /// Whether somebody else asked something at its end.
    fn asks(&self) -> bool {
        self.by_other && is_asked(&self.text)
    }

    /// The words that a reply to it may quote.
    fn answered(&self, reply: &str) -> Option<String> {
        let is_near = self.text.chars().count() <= ANSWERED_CHARS || self.asks() && is_short_answer(reply);
        let mut sentences = pieces(&self.text).into_iter().rev().map(|piece| piece.text);
        let mut last = sentences.next().filter(|_| self.by_other && is_near);
        // «How long have you had them?» and «When do you leave?» need the sentences before them, too.
        while let Some(text) = last.as_mut().filter(|text| lacks_referent(text) || names_nothing(text))
            && let Some(before) = sentences.next()
            && before.chars().count() + text.chars().count() < QUOTED_CHARS
        {
            *text = format!("{before} {text}");
        }
        // «[shares an image]» is nothing that was said.
        let is_said =
            |last: &String| !last.is_empty() && !is_courtesy(last) && !last.trim_end().ends_with(']');
        last.filter(|last| is_said(last) && last.chars().count() <= QUOTED_CHARS)
    }
}

/// The sentences of a message with those that are kept made understandable without their message.
pub(crate) fn standing_alone(read: Vec<ReadSentence>, previous: &Previous) -> Vec<ReadSentence> {
    let is_only = read.len() == 1;
    let outside = previous.last_sentence();
    let mut found: Vec<ReadSentence> = Vec::with_capacity(read.len());
    let mut read = read.into_iter().peekable();
    while let Some(mut sentence) = read.next() {
        let is_before_code =
            read.peek().is_some_and(|next| matches!(next.verdict, Verdict::Form(LeftOut::Code)));
        if sentence.verdict == Verdict::Statement(Standing::Kept) {
            leave_out_courtesies(&mut sentence);
            if !is_only && (is_lead_in(&sentence.text) || announces(&sentence.text) && is_before_code) {
                sentence.verdict = Verdict::Form(LeftOut::LeadIn);
            } else if !is_only && is_fragment(&sentence.text) {
                sentence.verdict = Verdict::Form(LeftOut::Fragment);
            } else if says_little(&sentence.text) || is_for_listener(&sentence.text) {
                sentence.verdict = Verdict::Statement(Standing::AsChange);
            } else if sentence.text.chars().count() > STATEMENT_CHARS {
                sentence.verdict = Verdict::Form(LeftOut::Material);
            } else if needs_context(&sentence.text)
                || is_only && previous.asks() && is_short_answer(&sentence.text)
            {
                let is_own = !sentence.before.is_empty() && sentence.before != outside;
                match is_own {
                    true if is_joined(&mut found, &mut sentence, previous) => continue,
                    true => {}
                    // A message of several sentences begins anew: «it» is no word of the message before.
                    false if !is_only && !previous.by_other => doubt(&mut sentence),
                    false => reply(&mut sentence, previous),
                }
            } else if addresses(&sentence.text) {
                leave_out_request(&mut sentence);
            } else if sentence.reading.unclear >= UNCLEAR {
                match previous.asks() && sentence.before == outside {
                    true => reply(&mut sentence, previous),
                    false => doubt(&mut sentence),
                }
            }
        }
        found.push(sentence);
    }
    found
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

/// Whether the form of a sentence shows that it does not tell what it is about.
fn needs_context(sentence: &str) -> bool {
    begins_with_pronoun(sentence) || lacks_referent(sentence) || is_bare(sentence)
}

/// Gives a sentence the context of the one before it in its message. Whether it became a part of that one.
fn is_joined(found: &mut [ReadSentence], sentence: &mut ReadSentence, previous: &Previous) -> bool {
    let before = found.iter_mut().rev().find(|before| before.text == sentence.before);
    let said =
        before.as_ref().map_or(&sentence.before, |before| before.told.as_ref().unwrap_or(&before.text));
    if let Some(told) = with_person(&sentence.text, said) {
        sentence.told = Some(told);
        return false;
    }
    let both = format!("{said} {}", sentence.text);
    // «Good idea!» is no context.
    if before.as_ref().is_none_or(|before| before.verdict != Verdict::Statement(Standing::Kept))
        && names_nothing(said)
    {
        match previous.by_other {
            true => reply(sentence, previous),
            false => doubt(sentence),
        }
        return false;
    }
    let is_foreign = before.as_ref().is_some_and(|before| !matches!(before.verdict, Verdict::Statement(_)));
    if is_foreign || both.chars().count() > JOINED_CHARS {
        doubt(sentence);
        return false;
    }
    match before.filter(|before| before.verdict == Verdict::Statement(Standing::Kept)) {
        Some(before) => {
            before.text = format!("{} {}", before.text, sentence.text);
            before.told = before.told.take().map(|told| format!("{told} {}", sentence.text));
            true
        }
        None => {
            sentence.told = Some(both);
            false
        }
    }
}

/// Lets a sentence quote what it answers, if that is known.
fn reply(sentence: &mut ReadSentence, previous: &Previous) {
    let has_number = |text: &str| text.chars().any(|c| c.is_ascii_digit());
    match previous.answered(&sentence.text) {
        Some(answered) if lacks_referent(&answered) => doubt(sentence),
        // «It's at nine now» shall not quote the time that was asked about.
        Some(answered) if !(has_number(&answered) && has_number(&sentence.text)) => {
            sentence.told = Some(in_reply_to(&sentence.text, &answered));
        }
        _ if previous.by_other => doubt(sentence),
        _ => {}
    }
}

/// A sentence that cannot be understood alone becomes a memory only if it changes one, unless it names something that would be lost.
fn doubt(sentence: &mut ReadSentence) {
    if !names_value(&sentence.text) {
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
    fn a_reply_quotes_what_it_answers() {
        let asked = |text: &str| Previous { text: text.to_owned(), by_other: true };
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
            let previous = Previous { text: asked.to_owned(), by_other: true };
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
        let previous = Previous { text: asked.to_owned(), by_other: true };
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
        let previous = Previous { text: "I met the choir.".to_owned(), by_other: false };
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
}
