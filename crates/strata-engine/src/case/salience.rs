//! The sentences of a message that matter, chosen by their roles.

use strata_core::ports::{CaseRole, Speaker};
use strata_core::turn::Role;
use strata_language::content::{has_content, is_courtesy};
use strata_language::sentences::beginning;

use super::offers::is_offer;
use super::{Sentence, sentences};
use crate::prompt::FilterSettings;

/// A message whose every sentence matters may have this many times the usual characters. The summary condenses old
/// entries when it is full.
pub(crate) const SALIENT_ROOM: usize = 2;

/// The fewest words of a sentence outside the case that may still say something.
const MIN_WORDS: usize = 5;

/// The sentences that matter, in their order, with at most twice `most` characters; empty if none does. `letters` holds
/// the role of each sentence. `None` if the letters belong to another text.
pub(crate) fn salient(
    role: Role,
    content: &str,
    letters: &str,
    filter: &FilterSettings,
    most: usize,
) -> Option<String> {
    let said = sentences(role, content, filter);
    let roles: Vec<CaseRole> = letters.chars().map(CaseRole::of_letter).collect::<Option<_>>()?;
    if said.is_empty() || said.len() != roles.len() {
        return None;
    }
    let mut order: Vec<(u8, usize)> = said
        .iter()
        .zip(&roles)
        .enumerate()
        .map(|(place, (one, role))| (weight(one, *role, place + 1 == said.len()), place))
        .collect();
    order.retain(|(weight, _)| *weight > 0);
    order.sort_by_key(|(weight, place)| (std::cmp::Reverse(*weight), *place));
    let mut left = SALIENT_ROOM * most;
    let mut chosen = vec![None; said.len()];
    for (weight, place) in order {
        // A remark in passing gets the usual room.
        let room = if weight > 2 { left } else { left.saturating_sub((SALIENT_ROOM - 1) * most) };
        let text = said[place].text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = if text.chars().count() > most { beginning(&text, most) } else { text };
        let chars = text.chars().count() + 1;
        if chars <= room {
            left -= chars;
            chosen[place] = Some(text);
        }
    }
    Some(joined(chosen.into_iter().flatten()))
}

/// How much a sentence matters; 0 if it does not. `is_last` says that it ends its message.
fn weight(sentence: &Sentence, role: CaseRole, is_last: bool) -> u8 {
    match role {
        CaseRole::Cause | CaseRole::Decision | CaseRole::Constraint => 6,
        CaseRole::Finding | CaseRole::Resolved | CaseRole::Todo | CaseRole::Done => 5,
        CaseRole::RuledOut | CaseRole::Unresolved | CaseRole::Fact => 4,
        CaseRole::Hypothesis | CaseRole::Advice => 3,
        // A question is kept for its answer: the user answers the last one of a reply.
        CaseRole::Question if sentence.speaker == Speaker::User => 2,
        CaseRole::Question => u8::from(is_last && asks_something(&sentence.text)) * 2,
        CaseRole::Nothing => u8::from(says_something(sentence)),
    }
}

/// Whether a question of an assistant asks about something, and offers no help.
fn asks_something(text: &str) -> bool {
    has_content(text) && !is_courtesy(text) && !is_offer(text)
}

/// Whether a sentence outside the case names something: a user's sentence with content, or a reply's number.
fn says_something(sentence: &Sentence) -> bool {
    let text = &sentence.text;
    if is_courtesy(text) || !has_content(text) {
        return false;
    }
    let has_number = text.chars().any(|c| c.is_ascii_digit());
    let words = strata_language::text::query_terms(text).len();
    has_number || (sentence.speaker == Speaker::User && words >= MIN_WORDS)
}

/// Sentences in one line. Chinese sentences stand close together.
fn joined(texts: impl Iterator<Item = String>) -> String {
    let mut line = String::new();
    for text in texts {
        if !line.is_empty() && !line.ends_with(['。', '！', '？', '；']) {
            line.push(' ');
        }
        line.push_str(&text);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(role: Role, content: &str, letters: &str, most: usize) -> Option<String> {
        salient(role, content, letters, &FilterSettings::default(), most)
    }

    #[test]
    fn greetings_and_offers_go_and_causes_stay() {
        let reply = "Good question! The loaf sinks because the starter was fed at 9, not at noon. \
                     Let me know how it goes.";
        let kept = "The loaf sinks because the starter was fed at 9, not at noon.";
        assert_eq!(chosen(Role::Assistant, reply, ".o.", 300).as_deref(), Some(kept));
        let reply = "好问题！面团不发是因为酵母过期了。有结果告诉我。";
        assert_eq!(chosen(Role::Assistant, reply, ".o.", 300).as_deref(), Some("面团不发是因为酵母过期了。"));
        assert_eq!(chosen(Role::User, "Thanks a lot!", ".", 300).as_deref(), Some(""));
    }

    #[test]
    fn where_room_is_short_the_weighty_sentences_stay_in_their_order() {
        let said =
            "We sail on Friday. It may be the halyard. The mast step is cracked. We replace it in Brest.";
        assert_eq!(
            chosen(Role::User, said, "fhod", 26).as_deref(),
            Some("The mast step is cracked. We replace it in Brest.")
        );
        assert_eq!(chosen(Role::User, said, "fhod", 300).as_deref(), Some(said));
    }

    #[test]
    fn the_last_question_of_a_reply_stays_unless_it_is_an_offer() {
        let asked = "The hose may be cracked. Which fitting does the pump have on its left side?";
        assert_eq!(chosen(Role::Assistant, asked, "h?", 300).as_deref(), Some(asked));
        let offered = "The hose may be cracked. Shall I order a new hose for the left pump?";
        assert_eq!(chosen(Role::Assistant, offered, "h?", 300).as_deref(), Some("The hose may be cracked."));
        let rhetorical = "Why does it crack at the left fitting? The hose is too short.";
        assert_eq!(chosen(Role::Assistant, rhetorical, "?n", 300).as_deref(), Some("The hose is too short."));
    }

    #[test]
    fn letters_of_another_text_are_refused() {
        assert_eq!(chosen(Role::User, "One. Two.", "f", 300), None);
        assert_eq!(chosen(Role::User, "One.", "q", 300), None);
        assert_eq!(chosen(Role::Tool, "One.", "f", 300), None);
    }
}
