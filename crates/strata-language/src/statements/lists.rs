//! Lists over several lines: a heading and its items become one sentence, because an item says nothing without its heading.

use std::borrow::Cow;

use super::chinese::is_chinese;
use super::left_out::{is_own_heading, is_request_for};
use crate::Pattern;

/// The least and the most number of items of a list that is joined. A longer one is pasted.
const ITEMS: std::ops::RangeInclusive<usize> = 2..=12;
/// The most characters of an item. Longer ones are sentences of their own.
const ITEM_CHARS: usize = 80;

static BULLET: Pattern = Pattern::new(r"^\s*(?:[-*•·–](?:\s*\[[ xX]?\])?|\(?\d{1,2}[.)、）])\s*");

/// The message with each list of the speaker's own in one line: «To pack:», «- socks», «- map» becomes «To pack: socks, map».
pub(super) fn with_joined_lists(message: &str) -> Cow<'_, str> {
    if !message.contains('\n') || !message.contains([':', '：']) {
        return Cow::Borrowed(message);
    }
    let lines: Vec<&str> = message.split('\n').collect();
    let mut joined: Vec<String> = Vec::with_capacity(lines.len());
    let mut at = 0;
    while at < lines.len() {
        let items: Vec<&str> = lines[at + 1..].iter().map_while(|line| item(line)).collect();
        if is_heading(lines[at]) && ITEMS.contains(&items.len()) {
            let comma = if is_chinese(lines[at]) { "、" } else { ", " };
            let space = if lines[at].trim_end().ends_with('：') { "" } else { " " };
            joined.push(format!("{}{space}{}", lines[at].trim_end(), items.join(comma)));
            at += 1 + items.len();
        } else {
            joined.push(lines[at].to_owned());
            at += 1;
        }
    }
    Cow::Owned(joined.join("\n"))
}

/// A text without the mark of a list item before it.
pub(super) fn without_bullet(text: &str) -> &str {
    static MARK: Pattern = Pattern::new(r"^\s*[-*•·–](?:\s*\[[ xX]?\])?\s+");
    MARK.find(text).map_or(text, |mark| &text[mark.end()..])
}

/// The text of a line that is an item of a list.
fn item(line: &str) -> Option<&str> {
    let mark = BULLET.find(line)?;
    let text = line[mark.end()..].trim().trim_end_matches([',', ';', '.', '，', '；', '。', '、']);
    let is_short = (1..=ITEM_CHARS).contains(&text.chars().count());
    (is_short && !text.ends_with(['?', '？', ':', '：'])).then_some(text)
}

/// Whether a line announces a list of the speaker's own, and not something to be worked on.
fn is_heading(line: &str) -> bool {
    let line = line.trim_end();
    line.ends_with([':', '：']) && is_own_heading(line) && !is_request_for(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_one_sentence() {
        let check = |message: &str, expected: &str| assert_eq!(with_joined_lists(message), expected);
        check(
            "Hi!\nI still have to get for the regatta:\n- a jib sheet\n- two shackles,\n- sun cream\nSee you.",
            "Hi!\nI still have to get for the regatta: a jib sheet, two shackles, sun cream\nSee you.",
        );
        check("我要带：\n1、护照\n2、雨衣", "我要带：护照、雨衣");
        check("Allergies:\n* nuts\n* rye", "Allergies: nuts, rye");
        for other in [
            "Please correct these sentences:\n- I lives in Bonn\n- She go home",
            "I have one thing:\n- rope",
            "Is this normal:\n- the tenant pays\n- the owner decides?",
            "翻译下面几句：\n- 我住在大连\n- 他走了",
        ] {
            check(other, other);
        }
        assert_eq!(without_bullet("- [ ] paint the hull"), "paint the hull");
        assert_eq!(without_bullet("-5 degrees"), "-5 degrees");
    }
}
