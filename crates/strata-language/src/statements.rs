//! From a message to statements in the speaker's own words: its pieces, and a piece in the third person.
//!
//! [`pieces`] splits a message into sentences, and [`chinese_clauses`] a Chinese one into clauses. [`left_out`] finds the
//! pieces that are not the speaker's own word by the form of the whole message: quotations, pasted text, code, fiction.
//! [`third_person`] rewrites a piece for a memory. No value is lost or invented: a rewriting that would change a number,
//! a name or a date is not used. [`facts`] cuts a compound sentence into facts that stand alone, and [`parts`] cuts a statement when only a part of it changes.
//!
//! Deliberately absent: what a piece means and whether it is worth remembering. A reader decides that, or the
//! [`rules`](crate::rules).

mod alone;
mod asked;
mod called;
mod chinese;
mod context;
mod dates;
mod english;
mod facts;
mod instructions;
mod introductions;
mod items;
mod left_out;
mod lists;
mod orders;
mod others;
mod pairs;
mod parts;
mod persons;
mod pieces;
mod plainly;
mod quotations;
mod same_fact;
mod sense;
mod subjects;
mod todos;
mod unnamed;
mod values;

use jiff::Timestamp;

use crate::Pattern;

pub use alone::{stands_alone, without_secrets};
pub use called::names_another;
pub use chinese::with_left_out_speaker;
pub use context::{
    addresses, after_saying, announces, in_reply_to, is_asked, is_bare, is_for_listener, is_fragment,
    is_lead_in, is_of_speaker, is_rest, is_short_answer, lacks_referent, names_nothing, names_value,
    says_little, without_reply, without_request, without_saying,
};
pub use facts::{facts, with_subject};
pub use instructions::is_instruction;
pub use introductions::introduced;
pub use items::without_items;
pub use left_out::{Leaning, LeftOut, is_bare_question, is_housekeeping, left_out};
pub use orders::{hold_orders, without_orders};
pub use pairs::without_one;
pub use parts::{joined, parts};
pub use persons::{begins_with_pronoun, is_task_of_another, with_person};
pub use pieces::{Form, Piece, chinese_clauses, mix_scripts, pieces, rough_length};
pub use plainly::plainly;
pub use same_fact::is_same_fact;
pub use sense::{
    denies, refers_back, says_done, says_done_elsewhere, says_postponed, takes_back, tells_cause,
};
pub use todos::without_done;
pub use unnamed::{is_vague, names_topic};
pub use values::{content_terms, has_new_clause, has_new_values, says_more, share_content};

/// The least number of letters and digits that a text has to have without its greeting.
const LEAST_WITHOUT_GREETING: usize = 4;

/// A piece in the third person, with absolute dates beside the relative ones. `name` is the speaker's; without one, it
/// is «the user» or 用户. If that would change a value, the words stay as they were said.
pub fn third_person(said: &str, name: Option<&str>, at: Timestamp) -> String {
    let said = without_greeting(lists::without_bullet(without_stray_stop(said.trim())));
    let said = said.trim_end_matches(['，', '、', ',', ';', '；']);
    let is_chinese = chinese::is_chinese(said);
    let told = if is_chinese { chinese::third_person(said, name) } else { english::third_person(said, name) };
    let told = if values::keeps(said, &told, name) { told } else { said.to_owned() };
    sentence_case(&dates::absolute(&told, at, is_chinese))
}

/// The text without a full stop or comma that was left of the sentence before it.
fn without_stray_stop(said: &str) -> &str {
    const WIDE: [char; 6] = ['。', '，', '；', '！', '？', '、'];
    let rest = said.trim_start_matches(['.', ',', ';', '…', '!', '?']).trim_start_matches(WIDE);
    // «.env» and «.5» begin with their dot.
    let is_apart = rest.starts_with(char::is_whitespace) || said.starts_with(WIDE);
    if is_apart { rest.trim_start() } else { said }
}

/// The text without the greetings, interjections and conjunctions before it. A «no» stays, because it says something.
pub fn without_greeting(said: &str) -> &str {
    static GREETING: Pattern = Pattern::new(
        r"(?i)^(?:(?:(?:hi|hello|hey|hiya|good (?:morning|afternoon|evening))(?: there| all| again)?|ok|okay|oh|ah|aw+|well|btw|by the way|anyway|right|yes|yeah|yep|yup|sure|sorry|thanks(?: for asking)?|cheers|take care|thank you|wow|w[hw]oah?|haha+|cool|great|nice|awesome|totally|absolutely|exactly|definitely)(?-i:,? \p{Lu}\p{Ll}+)?[,!.…]+\s+|(?:(?:oh,? )?and by the way|oh,? and|also|on (?:another|a different) note|speaking of which|(?:oh,? )?(?:and )?(?:one more|one other|another) thing|before i forget)[,:.…]+\s+|(?:你好|您好|嗨|哈喽|哦?对了|哦?對了|哦|嗯|啊|哎|哈哈|另外|还有|還有|(?:顺便|順便)(?:说|說|提|讲|講)?(?:一下|一句|一声|一聲)?|顺带一提|順帶一提|话说|話說)[，,！!。～~…\s]+)+",
    );
    let end = GREETING.find(said).map_or(0, |greeting| greeting.end());
    let rest = &said[end..];
    let rest = if rest.chars().filter(|c| c.is_alphanumeric()).count() < LEAST_WITHOUT_GREETING {
        said
    } else {
        rest
    };
    without_conjunction(rest)
}

/// A sentence without the words before it, so that it may follow another one.
pub fn as_continuation(said: &str) -> String {
    let rest = without_greeting(said);
    if rest.len() < said.len() { sentence_case(rest) } else { said.to_owned() }
}

/// Whether a sentence says at its beginning that it is about something else than the one before it: «By the way, …», 顺便说一下，…
pub fn changes_topic(said: &str) -> bool {
    static APART: Pattern = Pattern::new(
        r"(?i)^(?:oh,? )?(?:and )?(?:by the way|btw|on (?:another|a different) note|before i forget)\b|^哦?(?:对了|對了)[，,]|^(?:顺便|順便)(?:说|說|提|讲|講)|^(?:顺带一提|順帶一提|另外)[，,]",
    );
    APART.is_match(said)
}

/// The text without a conjunction or «actually» before the first person, «the» or «there»: these join it to what was said before.
fn without_conjunction(said: &str) -> &str {
    static JOINED: Pattern = Pattern::new(
        r"(?i)^(?:actually|oh and|oh|and by the way|by the way|and|also|but|so|btw|plus|yes|yeah|yea|yep|yup|haha+|lol|hmm+|ah|well|ok|okay),? (?P<rest>(?:i|i['’]\w+|im|ive|we|we['’]\w+|my|our|the|there|there['’]s) )",
    );
    // Behind a comma the main clause may follow: «Although I row, I hate water».
    static CONCEDED: Pattern = Pattern::new(
        r"(?i)^(?:although|even though|though)\s+(?P<rest>(?:i|i['’]\w+|we|we['’]\w+|my|our) [^,]*$)",
    );
    let rest_of = |form: &Pattern| form.get()?.captures(said)?.name("rest").map(|rest| rest.start());
    rest_of(&JOINED).or_else(|| rest_of(&CONCEDED)).map_or(said, |start| &said[start..])
}

/// The text with a capital at the beginning, if its first word is plain.
fn sentence_case(text: &str) -> String {
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_plain = first.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '\'' | ',' | ':'));
    let mut letters = text.chars();
    match letters.next() {
        Some(letter) if is_plain => letter.to_uppercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
