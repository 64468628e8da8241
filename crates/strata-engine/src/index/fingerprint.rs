//! Fingerprints of texts, for comparison by exact wording. Words alone are not enough: «I like tea» and «I do not like
//! tea» have the same words without stop words.
//!
//! Few texts are compared by exact wording, so fingerprints are kept only of items that came after the index was loaded
//! and of items that were read for this purpose. The others are read when they are needed (see `recall::exclusions`).

use hashbrown::HashMap;

use super::document::Doc;
use strata_core::hash::{FNV_START, fnv_step};
use strata_core::store::Item;
use strata_language::content::has_content;
use strata_language::rules::is_question;
use strata_language::text::fold;

/// The number of characters that are compared.
const MOST_READ: usize = 1_000;

/// The fingerprint of a text. It ignores case, width, punctuation and white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TextFingerprint {
    hash: u64,
    /// Whether the text is a question of any form.
    pub(crate) asks: bool,
    /// Whether the text asks for something that it does not name: «what is my code», «我住在哪里», but not «is it 4417?».
    pub(crate) is_open: bool,
    /// Whether the text says anything: «ok» and «where is it?» do not.
    pub(crate) has_content: bool,
}

impl TextFingerprint {
    /// The fingerprint of `text`.
    pub fn new(text: &str) -> Self {
        if let Some((end, _)) = text.char_indices().nth(MOST_READ) {
            // Two long texts with the same start are almost never different; the length stands for the rest.
            let hash = hash(fold(&text[..end]).chars()) ^ (text.trim().len() as u64).rotate_left(32);
            return Self { hash, asks: false, is_open: false, has_content: true };
        }
        let folded = fold(text);
        let letters = || folded.chars().filter(|c| c.is_alphanumeric());
        // In a text without letters and digits, the other characters count.
        let hash = match letters().next() {
            Some(_) => hash(letters()),
            None => hash(folded.chars()),
        };
        Self { hash, asks: is_question(text), is_open: is_open(&folded), has_content: has_content(text) }
    }
}

/// FNV-1a over characters, in 64 bits: a collision between two texts of one user happens for about one in a million
/// users.
fn hash(characters: impl Iterator<Item = char>) -> u64 {
    characters.fold(FNV_START, |hash, c| fnv_step(hash, u64::from(c)))
}

/// Question words, folded.
const ASKED_WITH: [&str; 9] = ["what", "where", "who", "whom", "whose", "which", "why", "how", "when"];
/// Words after «when» in a question: «when I was young» asks nothing, «when did I» does.
const AFTER_WHEN: [&str; 14] =
    ["do", "does", "did", "is", "are", "am", "was", "were", "will", "would", "should", "can", "have", "has"];
/// Words that people put before a question.
const IN_FRONT: [&str; 24] = [
    "please", "tell", "remind", "me", "do", "you", "know", "remember", "can", "could", "again", "hey", "hi",
    "hello", "and", "so", "but", "ok", "okay", "well", "sorry", "now", "of", "about",
];
/// Chinese question words. Traditional characters are folded into simplified ones.
const CHINESE: [&str; 12] =
    ["什么", "怎么", "怎样", "哪", "谁", "几", "多少", "多大", "多久", "为何", "啥", "何时"];

fn is_open(folded: &str) -> bool {
    if CHINESE.iter().any(|word| folded.contains(word)) {
        return true;
    }
    // Clitics become words of their own: «what's» starts with the question word «what».
    let mut words = folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    if words.clone().skip_while(|word| *word == "please").take(2).eq(["tell", "me"]) {
        return true;
    }
    let Some(first) = words.find(|word| !IN_FRONT.contains(word)) else { return false };
    ASKED_WITH.contains(&first)
        && (first != "when" || words.next().is_some_and(|next| next == "s" || AFTER_WHEN.contains(&next)))
}

/// The fingerprints of items, as far as they are known.
#[derive(Default)]
pub(crate) struct Fingerprints(HashMap<Doc, TextFingerprint>);

impl Fingerprints {
    pub(crate) fn note(&mut self, doc: Doc, item: &Item) {
        self.0.insert(doc, TextFingerprint::new(item.content()));
    }

    pub(crate) fn get(&self, doc: Doc) -> Option<TextFingerprint> {
        self.0.get(&doc).copied()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.capacity() * (size_of::<(Doc, TextFingerprint)>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_punctuation_do_not_change_a_fingerprint() {
        let same = |a: &str, b: &str| TextFingerprint::new(a) == TextFingerprint::new(b);
        assert!(same("My code is 4417.", "my  code is 4417!"));
        assert!(same("我住在臺北。", "我住在台北"));
        assert!(same("👍", " 👍 ") && !same("👍", "👎"));
        assert!(!same("I like tea", "I do not like tea"));
        assert!(!same("From Rome to Paris", "From Paris to Rome"));
        let long = "so much to say ".repeat(80);
        assert!(same(&long, &long) && !same(&long, &format!("{long} and more")));
        assert!(!same("You live here.", "You live here?"), "a statement and a question differ");
    }

    #[test]
    fn an_open_question_does_not_name_what_it_asks_for() {
        let open = |text: &str| TextFingerprint::new(text).is_open;
        for text in [
            "What is my locker code?",
            "what's my locker code",
            "Tell me what my code is",
            "Please tell me my code",
            "Remind me what my code is",
            "Do you remember where I live?",
            "When did I move?",
            "我住在哪里？",
            "我的密碼是什麼",
        ] {
            assert!(open(text), "{text}");
        }
        for text in [
            "My locker code is 4417.",
            "My locker code is 4417, right?",
            "Is my locker code 4417?",
            "When I was in Rome I ate pizza",
            "Remind me to buy milk",
            "我的密码是4417吗？",
            "我住在成都。",
        ] {
            assert!(!open(text), "{text}");
        }
    }
}
