//! English in the third person: «I live in Lisbon and my cat is old» becomes «The user lives in Lisbon and their cat is
//! old».
//!
//! The first «I» or «my» becomes the speaker; the verb after it follows. Later ones become «they» and «their» if the
//! speaker is the subject, and the speaker again if not. Words between quotation marks stay.

use super::context::without_reply;
use super::facts::is_base;
use super::subjects::with_speaker;
use crate::rules::verb_in_third_person;

/// Verbs and forms that do not change after the speaker.
const UNCHANGED: &str = "can could will would shall should may might must cannot can't won't wouldn't couldn't shouldn't mustn't used ought had did \
    didn't hadn't wasn't was went got came became bought broke chose drove drank ate flew gave grew kept left lost made met paid put quit rose rode \
    ran sold sent sang spoke spent swam took taught wore wrote began fell thought felt knew saw said told found brought caught built cut hurt hit \
    let set read held heard led lent lit meant rang sat shot slept split stood stuck struck swore threw understood woke won dealt drew fed fought \
    forgot froze hid hung shook sank sought slid spread stole swept tore withdrew bet cost shut burnt learnt spelt laid rewrote rebuilt redid";
/// Base forms that end like a past.
const NO_PAST: &str = "need feed speed bleed breed proceed succeed exceed heed seed weed embed shed wed";
/// Adverbs that may stand between the speaker and the verb.
const ADVERBS: &str = "never always also just still often only really now already even rarely hardly sometimes mostly mainly usually generally \
    actually finally currently recently probably definitely absolutely basically literally personally honestly typically normally barely \
    regularly occasionally apparently then both too kinda sorta almost nearly first officially no longer ever seldom once twice alone thus if soon later again perhaps \
    maybe instead likewise meanwhile together rather quite not therefore hence nonetheless anyway afterwards last";
/// The first word of a sentence that leaves out the speaker, and what stands for it.
const LEFT_OUT: &[(&str, &str)] = &[
    ("have", "has"),
    ("need", "needs"),
    ("want", "wants"),
    ("going", "is going"),
    ("planning", "is planning"),
    ("trying", "is trying"),
    ("thinking", "is thinking"),
    ("been", "has been"),
    ("didn't", "didn't"),
    ("haven't", "hasn't"),
    ("waiting", "is waiting"),
    ("will", "will"),
    ("can't", "can't"),
    ("had", "had"),
    ("got", "got"),
    ("went", "went"),
    ("took", "took"),
    ("bought", "bought"),
    ("sold", "sold"),
    ("left", "left"),
    ("met", "met"),
    ("quit", "quit"),
    ("lost", "lost"),
    ("found", "found"),
    ("gave", "gave"),
    ("made", "made"),
    ("paid", "paid"),
    ("sent", "sent"),
    ("told", "told"),
    ("ran", "ran"),
    ("saw", "saw"),
    ("started", "started"),
];
/// Words after which a past without a subject is the speaker's.
const AFTER_PAST: &str = "a an the my our up in out to from off on at with for into over down back this that it him her them some another two three \
    today yesterday just new our away";
/// Adverbs before a verb without a subject.
const LEADING: &str =
    "just recently finally already also currently really lately mostly still actually definitely probably";
/// How a speaker feels who leaves out «I am».
const FEELINGS: &str = "excited fascinated thrilled worried interested proud glad happy sorry afraid scared amazed allergic tired looking hoping";
/// Words after which a past without a subject may be a passive.
const PASSIVE: &str = "for from on at with";
/// Verbs that follow the speaker's first verb after «and» or «but», and that are seldom nouns there.
const SECOND: &str = "live work keep own use love hate like prefer want need teach study learn speak drive rent eat earn sell commute have \
    play run sing bake cook grow raise collect wear manage lead coach volunteer do go don't";
/// Words after which a verb is no longer the speaker's second one: a subject of its own, a condition, another verb's object.
const ENDS_SECOND: &str = "he she it they you who which that whose what if when while because since unless until than let lets help helps helped \
    make makes made see saw hear heard watch watched can could will would shall should may might must cannot can't won't did didn't does do don't";
/// Verbs after which «to» begins an infinitive.
const WITH_TO: &str = "have had need needed want wanted plan planned got going hope hoped decided used ought like love remember try tried promised";
/// Words after «we» that make it more than one person.
const SEVERAL: &str =
    "both all each together two three four five six seven eight nine ten couple family team";

fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|other| other == word)
}

/// A word with the marks around it.
struct Word<'t> {
    before: &'t str,
    text: &'t str,
    after: &'t str,
}

impl<'t> Word<'t> {
    fn new(word: &'t str) -> Self {
        let start = word.len() - word.trim_start_matches(|c: char| !c.is_alphanumeric()).len();
        let end = word.trim_end_matches(|c: char| !c.is_alphanumeric()).len().max(start);
        Self { before: &word[..start], text: &word[start..end], after: &word[end..] }
    }

    fn lower(&self) -> String {
        self.text.to_lowercase().replace('’', "'")
    }
}

/// The speaker's last role in the sentence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SpeakerRole {
    /// Not mentioned yet.
    Absent,
    /// The subject of the sentence.
    Subject,
    /// Mentioned, but not as the subject.
    Other,
}

/// The sentence with the speaker in the third person.
pub(super) fn third_person(said: &str, name: Option<&str>) -> String {
    if is_several(&without_reply(said)) {
        return said.to_owned();
    }
    let said = &*with_speaker(said);
    let mut teller = Teller {
        who: name.unwrap_or("the user"),
        role: SpeakerRole::Absent,
        verb: None,
        second: None,
        told: Vec::new(),
        adverbs: 0,
    };
    let mut quoted = false;
    for (place, raw) in said.split(' ').enumerate() {
        let word = Word::new(raw);
        let opens = word.before.contains(['"', '“']);
        quoted |= opens;
        if quoted {
            teller.told.push(raw.to_owned());
        } else {
            let next = said.split(' ').nth(place + 1).map(|next| Word::new(next).lower()).unwrap_or_default();
            teller.tell(place, &word, raw, &next);
        }
        if word.after.contains(['"', '”']) {
            quoted = false;
        }
    }
    let told = teller.told.join(" ");
    let mut letters = told.chars();
    match letters.next() {
        // «the user» at the beginning of the sentence.
        Some(first) if told.starts_with(teller.who) => first.to_uppercase().chain(letters).collect(),
        _ => told,
    }
}

/// Whether «we» means more than what can be said of one person.
fn is_several(said: &str) -> bool {
    let words: Vec<String> = said.split_whitespace().map(|word| Word::new(word).lower()).collect();
    let we = |word: &String| matches!(word.as_str(), "we" | "we're" | "we've" | "we'll");
    // «Some of us», «the two of us», «us both».
    let of_us = words.windows(2).any(|pair| {
        pair[0] == "of" && pair[1] == "us" || pair[0] == "us" && matches!(pair[1].as_str(), "both" | "all")
    });
    of_us
        || words.iter().enumerate().any(|(place, word)| {
            we(word) && words.iter().skip(place + 1).take(4).any(|next| is_in(SEVERAL, next))
        })
}

struct Teller<'a> {
    who: &'a str,
    role: SpeakerRole,
    /// The number of words within which the verb of the subject follows.
    verb: Option<u8>,
    /// Whether a second verb of the subject may follow: «I live in Bari and keep bees».
    second: Option<Second>,
    told: Vec<String>,
    /// The number of adverbs with which the sentence begins.
    adverbs: usize,
}

/// Where a second verb of the speaker may stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Second {
    /// After the next «and» or «but».
    Later,
    /// Here, after adverbs.
    Here,
}

impl Teller<'_> {
    fn tell(&mut self, place: usize, word: &Word<'_>, raw: &str, next: &str) {
        let lower = word.lower();
        if place == self.adverbs
            && let Some(told) = self.left_out(word, &lower, next)
        {
            self.push(word, &told);
            return;
        }
        // «Just sold the van», «Recently made some tarts».
        if place == self.adverbs && word.after.is_empty() && is_in(LEADING, &lower) {
            self.adverbs += 1;
        }
        let (pronoun, ending) = match lower.split_once('\'') {
            Some((pronoun, ending)) => (pronoun, Some(ending)),
            None if lower == "im" => ("i", Some("m")),
            None if lower == "ive" => ("i", Some("ve")),
            None => (lower.as_str(), None),
        };
        match pronoun {
            "i" | "we" => self.subject(word, ending, next),
            "my" | "our" => {
                let told = match self.role {
                    SpeakerRole::Subject => "their".to_owned(),
                    SpeakerRole::Absent | SpeakerRole::Other => format!("{}'s", self.who),
                };
                self.mention(word, &told);
            }
            "me" | "us" if !is_abbreviation(word.text) => self.object(word, "them"),
            "mine" | "ours" => {
                let told = if self.role == SpeakerRole::Subject {
                    "theirs".to_owned()
                } else {
                    format!("{}'s", self.who)
                };
                self.mention(word, &told);
            }
            "myself" | "ourselves" => self.mention(word, "themselves"),
            _ => self.other(word, raw, &lower, next),
        }
    }

    /// The form of a word that is a second verb of the speaker; `None` if it is none.
    fn second_verb(&mut self, word: &Word<'_>, lower: &str, next: &str) -> Option<String> {
        let state = self.second?;
        let is_here = state == Second::Here && word.before.is_empty();
        if is_here && is_in(SECOND, lower) && !next.is_empty() && word.after.is_empty() {
            self.second = (next != "to").then_some(Second::Later);
            return verb(word.text, lower);
        }
        let is_infinitive = lower == "to" && (is_in(SECOND, next) || is_base(next));
        self.second = match lower {
            _ if is_in(ENDS_SECOND, lower) || is_infinitive => None,
            "and" | "but" => Some(Second::Here),
            _ if is_here && is_in(ADVERBS, lower) => Some(Second::Here),
            _ => Some(Second::Later),
        };
        None
    }

    fn object(&mut self, word: &Word<'_>, later: &str) {
        let told = if self.role == SpeakerRole::Subject { later.to_owned() } else { self.who.to_owned() };
        self.mention(word, &told);
    }

    fn mention(&mut self, word: &Word<'_>, told: &str) {
        if self.role == SpeakerRole::Absent {
            self.role = SpeakerRole::Other;
        }
        self.verb = None;
        // «I live in Bari and my aunt …»: another subject follows.
        self.second = self.second.filter(|second| *second == Second::Later);
        self.push(word, told);
    }

    /// «I», «I'm», «I've», «I'll», «I'd» and the same of «we».
    fn subject(&mut self, word: &Word<'_>, ending: Option<&str>, next: &str) {
        self.second = None;
        if self.role == SpeakerRole::Subject {
            let told = match ending {
                Some("m" | "re") => "they're".to_owned(),
                Some(ending) => format!("they'{ending}"),
                None => "they".to_owned(),
            };
            self.verb = None;
            self.push(word, &told);
            return;
        }
        let who = self.who;
        self.verb = None;
        let told = match ending {
            Some("m" | "re") => format!("{who} is"),
            Some("ve") => format!("{who} has"),
            Some("ll") => format!("{who} will"),
            Some("d") if is_past(next) || matches!(next, "better" | "been") => format!("{who} had"),
            Some("d") => format!("{who} would"),
            Some(ending) => format!("{who}'{ending}"),
            None => {
                self.verb = Some(3);
                who.to_owned()
            }
        };
        if matches!(ending, Some("m" | "re")) && next != "going" {
            self.second = Some(Second::Later);
        }
        // «My boss says I …»: the speaker is not the subject of the sentence.
        if self.role == SpeakerRole::Absent {
            self.role = SpeakerRole::Subject;
        }
        self.push(word, &told);
    }

    /// A word that is no pronoun. It may be the verb of the speaker.
    fn other(&mut self, word: &Word<'_>, raw: &str, lower: &str, next: &str) {
        if self.told.last().is_some_and(|last| last == "they") {
            let told = match lower {
                "am" => Some("are"),
                "was" => Some("were"),
                "wasn't" => Some("weren't"),
                _ => None,
            };
            if let Some(told) = told {
                self.push(word, told);
                return;
            }
        }
        let Some(left) = self.verb else {
            match self.second_verb(word, lower, next) {
                Some(told) => self.push(word, &told),
                None => self.told.push(raw.to_owned()),
            }
            return;
        };
        if is_in(ADVERBS, lower) || lower.len() > 4 && lower.ends_with("ly") {
            self.verb = left.checked_sub(1).filter(|left| *left > 0);
            self.told.push(raw.to_owned());
            return;
        }
        self.verb = None;
        let governs = is_in(ENDS_SECOND, lower) || next == "not" || next == "to" && is_in(WITH_TO, lower);
        self.second = (!governs && (is_past(lower) || lower == word.text)).then_some(Second::Later);
        match verb(word.text, lower) {
            Some(told) => self.push(word, &told),
            None => self.told.push(raw.to_owned()),
        }
    }

    /// The beginning of a sentence that leaves out «I».
    fn left_out(&mut self, word: &Word<'_>, lower: &str, next: &str) -> Option<String> {
        let form = match LEFT_OUT.iter().find(|(first, _)| *first == lower) {
            Some((_, form))
                if is_in(AFTER_PAST, next) || next == "to" || is_past(next) || is_number(next) =>
            {
                (*form).to_owned()
            }
            Some((_, form))
                if is_in("been didn't haven't", lower) && !next.is_empty()
                    || next.ends_with("ing")
                    || lower == "waiting" && matches!(next, "on" | "for") =>
            {
                (*form).to_owned()
            }
            // «Just ate», «Finally gave up».
            _ if self.adverbs > 0 && is_past(lower) && !next.is_empty() => lower.to_owned(),
            // «Excited about the trip»
            None if is_in(FEELINGS, lower) && is_in("about by to for of that with", next) => {
                format!("is {lower}")
            }
            // «Booked for Friday» may be said of anything.
            None if lower.len() > 4 && is_past(lower) && is_in(AFTER_PAST, next) && !is_in(PASSIVE, next) => {
                lower.to_owned()
            }
            _ => return None,
        };
        if !word.before.is_empty() {
            return None;
        }
        self.role = SpeakerRole::Subject;
        let governs = next == "to" && is_in(WITH_TO, lower);
        self.second = (is_past(lower) && !governs).then_some(Second::Later);
        if self.adverbs > 0 {
            let adverbs = self.told.join(" ").to_lowercase();
            self.told = vec![format!("{} {adverbs}", self.who)];
            return Some(form);
        }
        Some(format!("{} {form}", self.who))
    }

    fn push(&mut self, word: &Word<'_>, told: &str) {
        let begins = self.told.last().is_some_and(|last| last.ends_with(['.', '!', '?']));
        let mut letters = told.chars();
        let told = match letters.next() {
            // «They» at the beginning of another sentence.
            Some(first) if begins && word.text.starts_with(char::is_uppercase) => {
                first.to_uppercase().chain(letters).collect()
            }
            _ => told.to_owned(),
        };
        self.told.push(format!("{}{told}{}", word.before, word.after));
    }
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

fn is_past(word: &str) -> bool {
    is_in(UNCHANGED, word) || word.ends_with("ed") && !is_in(NO_PAST, word)
}

/// «US» and «ME» are places, not pronouns.
fn is_abbreviation(word: &str) -> bool {
    word.len() > 1 && word.chars().all(char::is_uppercase)
}

/// The form of a verb after the speaker; `None` if it does not change.
fn verb(word: &str, lower: &str) -> Option<String> {
    let changed = match lower {
        "am" | "are" => "is",
        "were" => "was",
        "have" => "has",
        "do" => "does",
        "don't" | "dont" => "doesn't",
        "haven't" => "hasn't",
        "aren't" => "isn't",
        "weren't" => "wasn't",
        "wanna" => "wants to",
        "gotta" => "has to",
        _ if is_past(lower) || word != lower || !lower.bytes().all(|byte| byte.is_ascii_lowercase()) => {
            return None;
        }
        // «I, of course, …», «I and Tom …»: no verb follows.
        "and" | "or" | "of" | "in" | "at" | "to" | "for" | "who" | "that" | "not" | "too" | "with" => {
            return None;
        }
        _ => return Some(verb_in_third_person(lower)),
    };
    Some(changed.to_owned())
}
