//! The head of an English predicate: auxiliaries, negation, adverbs and tense, up to the verb that carries the meaning.

use super::super::claim::{Hold, Verb};
use super::super::since;
use super::verbs::{Form, lemma};
use super::words::ADVERBS;
use crate::Pattern;

/// A predicate taken apart.
#[derive(Debug, Default)]
pub(super) struct PredicateHead {
    /// The verb in its base form.
    pub(super) verb: String,
    /// The text after the verb, with a space before it.
    pub(super) rest: String,
    /// «not X» or «instead of X» at the end.
    pub(super) old: Option<String>,
    /// «not», «never».
    pub(super) negated: bool,
    /// «would», «could», «might»: the sentence claims nothing.
    pub(super) modal: bool,
    /// «will», «going to».
    pub(super) future: bool,
    /// «plan to», «intend to».
    pub(super) planned: bool,
    /// «is doing».
    pub(super) progressive: bool,
    /// «now», «these days», «new»: a change.
    pub(super) changed: bool,
    /// «since»: a time after it is the beginning.
    pub(super) since: bool,
    /// «no longer», «any more», «used to», «stopped».
    ended: bool,
    /// «used to».
    pub(super) used_to: bool,
    /// «started doing».
    began: bool,
    past: bool,
    perfect: bool,
    /// The verb as it was written.
    written: String,
}

impl PredicateHead {
    /// The state of a claim with a verb of this kind; none if the sentence makes no such claim.
    pub(super) fn hold_of(&self, verb: Verb) -> Option<Hold> {
        let happened = (self.past || self.perfect || self.used_to) && !self.negated && !self.future;
        let state = if self.ended || self.used_to {
            Hold::NoLonger
        } else if self.future || self.planned {
            if self.negated { Hold::Not } else { Hold::Planned }
        } else if self.negated {
            if self.past { return None } else { Hold::Not }
        } else if self.past && !self.perfect && !self.began {
            Hold::Once
        } else {
            Hold::Now
        };
        match verb {
            Verb::State => Some(state),
            Verb::Opposite => Some(if self.past && !self.perfect { state } else { state.flipped() }),
            Verb::Begin if happened => Some(Hold::Now),
            Verb::Begin if self.negated => {
                (self.ended || self.future || self.progressive).then_some(Hold::Not)
            }
            Verb::Begin => Some(Hold::Planned),
            Verb::End => happened.then_some(Hold::NoLonger),
            Verb::Deed => {
                (!self.negated && !self.future && !self.planned && !self.ended).then_some(Hold::Now)
            }
            Verb::Todo if self.negated || self.ended => (!self.past && !self.future).then_some(state),
            Verb::Todo => (!happened && !self.future).then_some(Hold::Now),
            Verb::Did | Verb::Drop => happened.then_some(Hold::Now),
            Verb::Plan => (!self.negated && !happened).then_some(Hold::Planned),
        }
    }

    /// The predicate in its original words, without auxiliaries.
    pub(super) fn as_said(&self) -> String {
        let aux = if self.perfect { "has " } else { "" };
        format!("{aux}{}{}", self.written, self.rest)
    }

    /// Whether the verb is about travelling or meeting people: its present tense means the future.
    pub(super) fn is_journey(&self) -> bool {
        [
            "fly", "travel", "go", "visit", "meet", "leave", "start", "move", "get", "have", "see", "run",
            "take", "host", "drive",
        ]
        .contains(&self.verb.as_str())
    }
}

/// The words of a predicate, as written and in lower case without commas.
struct PredicateWords<'p> {
    written: Vec<&'p str>,
    lower: Vec<String>,
}

/// The meaning of the word at a place for the head.
enum HeadStep {
    /// It belongs to the head; the next word to read is at this place.
    To(usize),
    /// The verb is at this place.
    Verb(usize),
    /// The sentence claims nothing.
    NoClaim,
}

/// Takes a predicate apart; returns none if it has no verb or claims nothing.
pub(super) fn parse(predicate: &str) -> Option<PredicateHead> {
    let words = PredicateWords::new(predicate);
    let mut head = PredicateHead::default();
    let mut place = 0;
    while place < words.written.len() {
        match head.step(&words, place) {
            HeadStep::To(next) => place = next,
            HeadStep::Verb(verb) => {
                place = verb;
                break;
            }
            HeadStep::NoClaim => return None,
        }
    }
    let verb = words.written.get(place)?;
    (head.verb, head.written) = match lemma(words.at(place)) {
        _ if !head.verb.is_empty() => (head.verb, (*verb).to_owned()),
        Some((base, form)) => {
            let past = matches!(form, Form::Past) || matches!(form, Form::Participle) && !head.perfect;
            head.past |= past && !head.progressive;
            (base.to_owned(), (*verb).to_owned())
        }
        None => ((*verb).to_lowercase(), (*verb).to_owned()),
    };
    head.perfect &= !head.used_to;
    if head.verb == "be" {
        place = head.after_be(&words, place)?;
    }
    let rest: String = words.written[place + 1..].iter().flat_map(|word| [" ", word]).collect();
    head.rest = finish(&mut head, rest);
    Some(head)
}

/// Reading the words before the verb.
impl PredicateHead {
    fn step(&mut self, words: &PredicateWords<'_>, place: usize) -> HeadStep {
        self.adverb(words, place)
            .or_else(|| self.auxiliary(words, place))
            .or_else(|| self.form_of_be(words, place))
            .or_else(|| self.phase(words, place))
            .unwrap_or(HeadStep::Verb(place))
    }

    /// Negation and adverbs.
    fn adverb(&mut self, words: &PredicateWords<'_>, place: usize) -> Option<HeadStep> {
        match words.at(place) {
            "not" | "never" => self.negated = true,
            "no" if words.at(place + 1) == "longer" => {
                self.ended = true;
                return Some(HeadStep::To(place + 2));
            }
            "now" => self.changed = true,
            // An event that almost happened did not happen.
            "almost" | "nearly" if !is_frequency(words.at(words.after_adverbs(place + 1))) => {
                return Some(HeadStep::NoClaim);
            }
            word if is_adverb(word) => {}
            _ => return None,
        }
        Some(HeadStep::To(place + 1))
    }

    /// Modal verbs, «will», «do», «used to» and «have».
    fn auxiliary(&mut self, words: &PredicateWords<'_>, place: usize) -> Option<HeadStep> {
        match words.at(place) {
            "would" | "could" | "might" | "may" | "should" | "wish" | "shall" => self.modal = true,
            "can" if words.at(place + 1) == "not" && ["stand", "bear"].contains(&words.at(place + 2)) => {
                "hate".clone_into(&mut self.verb);
                return Some(HeadStep::Verb(place + 2));
            }
            "can" => {}
            "will" => self.future = true,
            word @ ("do" | "does" | "did") if words.is_do_auxiliary(place) => self.past |= word == "did",
            "used" if words.at(place + 1) == "to" => {
                self.used_to = true;
                return Some(HeadStep::To(place + 2));
            }
            "have" | "has" | "had" if after_have(words.at(words.after_adverbs(place + 1))) => {
                self.perfect = true;
            }
            _ => return None,
        }
        Some(HeadStep::To(place + 1))
    }

    /// «is going to», «is doing».
    fn form_of_be(&mut self, words: &PredicateWords<'_>, place: usize) -> Option<HeadStep> {
        let word = words.at(place);
        if !matches!(word, "am" | "is" | "are" | "was" | "were" | "been" | "be") {
            return None;
        }
        let past = matches!(word, "was" | "were");
        let next = words.after_adverbs(place + 1);
        if words.is_going_to(next) {
            // «Was going to» speaks of an intention that came to nothing.
            if past {
                return Some(HeadStep::NoClaim);
            }
            self.future = true;
            return Some(HeadStep::To(next + 2));
        }
        if !is_progressive(words.at(next)) {
            return None;
        }
        self.progressive = true;
        self.past |= past;
        Some(HeadStep::To(place + 1))
    }

    /// Verbs that say whether another verb is planned, begins or ends.
    fn phase(&mut self, words: &PredicateWords<'_>, place: usize) -> Option<HeadStep> {
        let next = words.at(place + 1);
        match words.at(place) {
            "plan" | "plans" | "planning" | "intend" | "intends" | "intending"
                if matches!(next, "to" | "on") && lemma(words.at(place + 2)).is_some() =>
            {
                self.planned = true;
                return Some(HeadStep::To(place + 2));
            }
            "stopped" | "quit" | "stop" if is_ing(next) => self.ended = true,
            "gave" | "given" if next == "up" && !words.at(place + 2).is_empty() => {
                self.ended = true;
                return Some(if is_ing(words.at(place + 2)) {
                    HeadStep::To(place + 2)
                } else {
                    HeadStep::NoClaim
                });
            }
            "started" | "began" | "begun" if is_ing(next) => self.began = true,
            _ => return None,
        }
        Some(HeadStep::To(place + 1))
    }

    /// Reads the negation and the adverbs after «be» («is not», «am no longer»). Returns the place of the last of them, or none if the
    /// sentence claims nothing.
    fn after_be(&mut self, words: &PredicateWords<'_>, mut place: usize) -> Option<usize> {
        loop {
            match words.at(place + 1) {
                "not" | "never" => self.negated = true,
                "no" if words.at(place + 2) == "longer" => {
                    self.ended = true;
                    place += 1;
                }
                "now" => self.changed = true,
                "almost" | "nearly" => return None,
                word if is_adverb(word) => {}
                _ => return Some(place),
            }
            place += 1;
        }
    }
}

impl<'p> PredicateWords<'p> {
    fn new(predicate: &'p str) -> Self {
        let written: Vec<&str> = predicate.split_whitespace().collect();
        let lower = written.iter().map(|word| word.trim_end_matches(',').to_lowercase()).collect();
        Self { written, lower }
    }

    /// The word in lower case; empty after the end.
    fn at(&self, place: usize) -> &str {
        self.lower.get(place).map_or("", String::as_str)
    }

    /// The first place from `place` on that is neither an adverb nor a negation.
    fn after_adverbs(&self, mut place: usize) -> usize {
        while self.lower.get(place).is_some_and(|word| is_negation(word) || is_adverb(word)) {
            place += 1;
        }
        place
    }

    /// «going to» before a verb: neither an article nor a name follows, nor one of the few nouns that need no article.
    fn is_going_to(&self, place: usize) -> bool {
        const NO_VERBS: &str = "a an the my our this that his her their some school work bed church college uni university town sleep";
        let verb = self.written.get(place + 2).is_some_and(|verb| verb.starts_with(char::is_lowercase))
            && !NO_VERBS.split(' ').any(|other| other == self.at(place + 2));
        matches!(self.at(place), "going" | "about") && self.at(place + 1) == "to" && verb
    }

    /// «do» as an auxiliary: a negation or a base form follows.
    fn is_do_auxiliary(&self, place: usize) -> bool {
        let next = self.after_adverbs(place + 1);
        is_negation(self.at(place + 1)) || matches!(lemma(self.at(next)), Some((_, Form::Base)))
    }
}

fn is_negation(word: &str) -> bool {
    matches!(word, "not" | "never")
}

/// «Almost always» describes a habit.
fn is_frequency(word: &str) -> bool {
    ["always", "never", "every", "exclusively", "entirely", "only", "daily"].contains(&word)
}

fn is_adverb(word: &str) -> bool {
    word != "now" && ADVERBS.split_ascii_whitespace().any(|adverb| adverb == word)
}

/// «have» as the auxiliary of the perfect: a participle follows.
fn after_have(next: &str) -> bool {
    next == "been" || matches!(lemma(next), Some((_, Form::Past | Form::Participle))) && next != "left"
}

fn is_ing(word: &str) -> bool {
    matches!(lemma(word), Some((_, Form::Ing)))
}

fn is_progressive(word: &str) -> bool {
    is_ing(word)
        || word.len() > 5
            && word.ends_with("ing")
            && ![
                "nothing",
                "something",
                "anything",
                "everything",
                "willing",
                "boring",
                "annoying",
                "amazing",
                "interesting",
                "exciting",
            ]
            .contains(&word)
}

/// Removes phrases at the end that are about the whole sentence, and notes them in the head.
fn finish(head: &mut PredicateHead, rest: String) -> String {
    static OLD: Pattern = Pattern::new(
        r"(?i)^(?<new>.*?)(?:(?:,| and| but)(?: and| but)? not (?:in |at |on |for |to )?(?:an? |the )?(?<a>[^,]+)|,? (?:instead of|rather than|and no longer) (?:in |at |on )?(?:an? |the )?(?<b>[^,]+))$",
    );
    static BUT: Pattern = Pattern::new(
        r"(?i)^(?<lead> (?:in |at |on |for |to |an? )*)(?<old>[^,]+?),? but (?:rather |actually )?(?:in |at |on |for |to )?(?:an? )?(?<new>[^,]+)$",
    );
    static LASTING: Pattern = Pattern::made(|| format!("(?i) for {}$", since::LASTING));
    let mut rest = rest.trim_end().trim_end_matches([',', '.', '!', ':', ';', ')', '(']).to_owned();
    if head.negated
        && let Some(found) = BUT.captures(&rest)
    {
        head.negated = false;
        head.old = Some(found["old"].to_owned());
        rest = format!("{}{}", &found["lead"], &found["new"]);
    }
    trim_tags(head, &mut rest);
    if let Some(found) = OLD.captures(&rest) {
        head.old = found.name("a").or_else(|| found.name("b")).map(|old| old.as_str().to_owned());
        rest = found["new"].to_owned();
    }
    trim_tags(head, &mut rest);
    let mut rest = cut(&rest).to_owned();
    trim_tags(head, &mut rest);
    head.since |= rest.contains(" since ");
    match LASTING.find(&rest) {
        // «for three years» is a beginning only if the state still holds.
        Some(lasting) if head.perfect && !head.negated => {
            head.since = true;
            rest[..lasting.start()].to_owned()
        }
        _ => rest,
    }
}

fn trim_tags(head: &mut PredicateHead, rest: &mut String) {
    const TAGS: [(&str, Tag); 28] = [
        (" any more", Tag::Ended),
        (" anymore", Tag::Ended),
        (" any longer", Tag::Ended),
        (" no more", Tag::Ended),
        (" now", Tag::Changed),
        (" these days", Tag::Changed),
        (" lately", Tag::Nothing),
        (" even more", Tag::Nothing),
        (" nowadays", Tag::Changed),
        (" instead", Tag::Changed),
        (" at the moment", Tag::Changed),
        (" right now", Tag::Changed),
        (" currently", Tag::Changed),
        (" again", Tag::Changed),
        (" after all", Tag::Changed),
        (" too", Tag::Nothing),
        (" as well", Tag::Nothing),
        (" also", Tag::Nothing),
        (" by the way", Tag::Nothing),
        (" btw", Tag::Nothing),
        (" though", Tag::Nothing),
        (" you know", Tag::Nothing),
        (" lol", Tag::Nothing),
        (" haha", Tag::Nothing),
        (" so much", Tag::Nothing),
        (" a lot", Tag::Nothing),
        (" very much", Tag::Nothing),
        (" at all", Tag::Nothing),
    ];
    loop {
        let trimmed = rest.trim_end_matches([',', ' ', '.', '!']).len();
        rest.truncate(trimmed);
        let lower = rest.to_lowercase();
        let Some((tag, what)) = TAGS.iter().find(|(tag, _)| lower.ends_with(tag)) else { return };
        match what {
            Tag::Ended => head.ended |= head.negated || *tag == " no more",
            Tag::Changed => head.changed = true,
            Tag::Nothing => {}
        }
        // Lower case may change the length in other scripts; the tags are plain ASCII.
        let Some(shorter) = rest.len().checked_sub(tag.len()).filter(|end| rest.is_char_boundary(*end))
        else {
            return;
        };
        rest.truncate(shorter);
    }
}

enum Tag {
    Ended,
    Changed,
    Nothing,
}

/// The text up to a reason, a contrast or another sentence.
fn cut(rest: &str) -> &str {
    static END: Pattern = Pattern::new(
        r"(?i),? (?:because|so that|so i|so we|but|which|who|where|although|though|even though|while|whereas|unless|and i|and we|and my|thanks to|due to|if|i think|i guess|i mean|you know|and it|and that|and they|and he|and she|and you|especially|except|and the|and now|as it|as i|since i|since it|since my|that's|it's|when i|when it|and have|and has|and am|and is|and are|to be honest|according to|ever since)\b|,? - | \(|[,;:] (?:[a-z]|I\b)",
    );
    match END.find(rest) {
        Some(end) if end.start() > 0 => rest[..end.start()].trim_end(),
        _ => rest,
    }
}

/// Expands contractions: «I'm» becomes «I am», «don't» becomes «do not».
pub(super) fn expand_contractions(clause: &str) -> String {
    let clause = clause.replace('’', "'");
    let mut words: Vec<String> = Vec::new();
    for word in clause.split_whitespace() {
        let lower = word.to_lowercase();
        let written = match lower.trim_end_matches(',') {
            "can't" | "cannot" | "cant" => "can not".to_owned(),
            "won't" | "wont" => "will not".to_owned(),
            "dont" | "don't" => "do not".to_owned(),
            "doesnt" => "does not".to_owned(),
            "im" => "I am".to_owned(),
            "ive" => "I have".to_owned(),
            "gonna" => "going to".to_owned(),
            "gotta" => "have to".to_owned(),
            "wanna" => "want to".to_owned(),
            "let's" | "lets" => "let us".to_owned(),
            "there's" => "there is".to_owned(),
            "it's" | "that's" | "he's" | "she's" => format!("{} is", &word[..word.len() - 2]),
            bare => match bare.rsplit_once('\'') {
                Some((_, "m")) => format!("{} am", cut_end(word, "'m")),
                Some((_, "ve")) => format!("{} have", cut_end(word, "'ve")),
                Some((_, "ll")) => format!("{} will", cut_end(word, "'ll")),
                Some((_, "re")) => format!("{} are", cut_end(word, "'re")),
                Some((_, "d")) => format!("{} would", cut_end(word, "'d")),
                Some((stem, "t")) if stem.ends_with('n') => format!("{} not", cut_end(word, "n't")),
                _ => word.to_owned(),
            },
        };
        words.push(written);
    }
    words.join(" ")
}

/// The word without an ending of ASCII letters, in any case.
fn cut_end<'w>(word: &'w str, ending: &str) -> &'w str {
    let word = word.trim_end_matches(',');
    word.get(..word.len().saturating_sub(ending.len())).unwrap_or(word)
}
