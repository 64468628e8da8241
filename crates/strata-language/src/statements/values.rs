//! The values of a text: the numbers and names that a rewriting may neither lose nor invent.

use crate::text;

/// Words of a rewriting that need not be in its source.
const TOLD: [&str; 7] = ["the", "user", "user's", "they", "their", "them", "theirs"];

/// Whether a rewriting has every value of its source, and no other.
pub(super) fn keeps(said: &str, told: &str, name: Option<&str>) -> bool {
    let (said_lower, told_lower) = (said.to_lowercase(), told.to_lowercase());
    let lost = values(said).any(|value| !told_lower.contains(&value));
    let name = name.map(str::to_lowercase).unwrap_or_default();
    let is_told = |value: &str| is_told(value) || name.contains(value);
    let invented = values(told).any(|value| !is_told(&value) && !said_lower.contains(&value));
    !lost && !invented
}

/// Whether a word in lower case is one by which a rewriting names the speaker.
fn is_told(word: &str) -> bool {
    let stem = word.split(['\'', '’']).next().unwrap_or_default();
    TOLD.contains(&word) || TOLD.contains(&stem)
}

/// Whether the facts of a sentence have every value of it together, and no other.
pub(super) fn are_kept(sentence: &str, facts: &[String]) -> bool {
    keeps(sentence, &facts.join(" "), None)
}

/// The words that hold a digit or a capital, without the first person, and every Chinese character that is not a
/// pronoun.
fn values(text: &str) -> impl Iterator<Item = String> {
    let is_edge = |c: char| !c.is_alphanumeric();
    let words =
        text.split(|c: char| c.is_whitespace() || is_han(c)).enumerate().filter_map(move |(place, word)| {
            let word = word.trim_matches(is_edge);
            let word = word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word);
            // The capital of the first word is that of the sentence.
            let inside = word.char_indices().skip(usize::from(place == 0)).any(|(_, c)| c.is_uppercase());
            let is_value = inside || word.chars().any(char::is_numeric);
            (is_value && !is_first_person(word)).then(|| word.to_lowercase())
        });
    let han = text.chars().filter(|c| is_han(*c) && !PRONOUNS.contains(*c)).map(String::from);
    words.chain(han)
}

/// The characters by which a speaker and the user are named.
const PRONOUNS: &str = "我们們咱俺本人自己用户戶的";

fn is_han(c: char) -> bool {
    ('\u{3400}'..='\u{9fff}').contains(&c)
}

fn is_first_person(word: &str) -> bool {
    let word = word.replace('’', "'").to_lowercase();
    matches!(
        word.split('\'').next().unwrap_or_default(),
        "i" | "im" | "ive" | "my" | "me" | "mine" | "myself" | "we" | "us" | "our" | "ours" | "ourselves"
    )
}

/// Whether a new text has a number or a name that the old one has not. The first word is not a name for its capital.
pub fn has_new_values(new: &str, old: &str) -> bool {
    let old = old.to_lowercase();
    let mut letters = new.chars();
    let first = letters.next();
    let rest = letters.as_str();
    let starts_with_digit = first.is_some_and(|c| c.is_ascii_digit());
    let words = if starts_with_digit { new } else { rest };
    let mut values = words.split(|c: char| c.is_whitespace() || is_han(c)).filter_map(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let is_value = word.starts_with(|c: char| c.is_uppercase()) && word.chars().count() > 1
            || word.contains(|c: char| c.is_ascii_digit());
        let lower = word.to_lowercase();
        (is_value && !is_first_person(word) && !is_told(&lower)).then_some(lower)
    });
    values.any(|value| !old.contains(&value))
}

/// The least number of characters of a clause that says something.
const TELLING_CLAUSE: usize = 4;

/// Whether a Chinese text has a clause about something else than the old one: 现在送外卖 after 我不在银行上班了. English sentences
/// are cut into facts before.
pub fn has_new_clause(new: &str, old: &str) -> bool {
    let is_telling = |clause: &&str| clause.chars().filter(|c| is_han(*c)).count() >= TELLING_CLAUSE;
    let mut clauses = new.split(['，', '；', ',', ';', '。']).filter(is_telling);
    new.contains(is_han) && clauses.any(|clause| !share_content(clause, old))
}

/// The number of words that a text has to add to another one to say more.
const MORE_TERMS: usize = 3;

/// Whether a text says noticeably more than another one that means the same.
pub fn says_more(new: &str, old: &str) -> bool {
    let known = text::query_terms(old);
    let added = text::query_terms(new).into_iter().filter(|term| !known.contains(term)).count();
    added >= MORE_TERMS || has_new_values(new, old)
}

/// Characters of Chinese grammar, which two sentences share without speaking about the same thing.
const GRAMMAR: &str = "我们們咱俺你您他她它自己用户戶的了是在不没沒有一个個也都就还還这這那要会會能得和跟把被给給从從到上下来來去着著过過再又很太吗呢吧啊最";

/// The distinct terms of a text that carry its content: words without grammar and «user», and of Chinese text the
/// characters without grammar and the pairs of them.
pub fn content_terms(content: &str) -> Vec<String> {
    let is_word = |term: &String| term != "user" && !text::is_stop_word(term) && !term.chars().any(is_han);
    let mut terms: Vec<String> = text::query_terms(content).into_iter().filter(is_word).collect();
    let content = text::simplified(content);
    let is_content = |c: char| is_han(c) && !GRAMMAR.contains(c);
    let mut before = None;
    for c in content.chars() {
        if is_content(c) {
            terms.push(c.to_string());
            terms.extend(before.map(|before: char| format!("{before}{c}")));
        }
        before = Some(c).filter(|c| is_content(*c));
    }
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// The number of letters from which two words that begin alike are forms of one word.
const SAME_STEM: usize = 4;

/// Whether two sentences share a word with content.
pub fn share_content(a: &str, b: &str) -> bool {
    let is_content = |c: &char| is_han(*c) && !GRAMMAR.contains(*c);
    if a.chars().filter(is_content).any(|c| b.contains(c)) {
        return true;
    }
    let words = |text: &str| -> Vec<String> {
        let is_word =
            |term: &String| term != "user" && !text::is_stop_word(term) && !term.chars().any(is_han);
        text::query_terms(text).into_iter().filter(is_word).collect()
    };
    let others = words(b);
    let stem = |word: &str| word.get(..SAME_STEM).map(str::to_owned).filter(|_| word.len() > SAME_STEM);
    let is_same = |a: &str, b: &str| a == b || stem(a).is_some() && stem(a) == stem(b);
    words(a).iter().any(|word| others.iter().any(|other| is_same(word, other)))
}
