//! Blocks that a program puts into a message of its user: reminders, the state of an editor, the output of hooks. They
//! are passed on, and are not the user's words: neither the question nor recorded.
//!
//! No program's list is known here. A block is recognised by its form: a tag at the beginning of a line, which ends at the
//! end of one, and whose name says that a program wrote it.

use std::borrow::Cow;
use std::ops::Range;

use strata_core::Role;

use super::Message;

/// The longest name of a tag.
const MAX_NAME_BYTES: usize = 64;

/// The most blocks of a text that are looked at.
const MAX_BLOCKS: usize = 1_000;

/// The most tags without an end that are looked for: each search reads the rest of the text.
const MAX_UNCLOSED: usize = 16;

/// A text without the blocks of programs.
pub(crate) fn without_blocks(text: &str) -> Cow<'_, str> {
    let blocks = blocks(text);
    if blocks.is_empty() {
        return Cow::Borrowed(text);
    }
    let certain = |is_certain_only: bool| {
        let (mut left, mut at) = (String::new(), 0);
        for (range, is_certain) in &blocks {
            if *is_certain || !is_certain_only {
                push(&mut left, &text[at..range.start]);
                at = range.end;
            }
        }
        push(&mut left, &text[at..]);
        left
    };
    // A text that is nothing but instructions in a tag is the question of an application.
    match certain(false) {
        left if left.trim().is_empty() => Cow::Owned(certain(true)),
        left => Cow::Owned(left),
    }
}

/// Adds the text between two blocks, without the empty lines around them.
fn push(left: &mut String, part: &str) {
    let part = part.trim_matches(['\n', '\r']);
    if part.trim().is_empty() {
        return;
    }
    if !left.is_empty() {
        left.push('\n');
    }
    left.push_str(part);
}

/// The blocks of programs, and whether each is certainly one.
fn blocks(text: &str) -> Vec<(Range<usize>, bool)> {
    let (mut blocks, mut unclosed) = (Vec::new(), 0);
    let mut at = 0;
    while let Some(found) = text[at..].find('<').map(|found| at + found) {
        at = found + 1;
        let begins_line =
            text[..found].chars().rev().find(|c| !matches!(c, ' ' | '\t')).is_none_or(|c| c == '\n');
        let Some(name) = tag(&text[at..]).filter(|_| begins_line) else { continue };
        let Some(is_certain) = is_programs(name) else { continue };
        let Some(end) = end_of(text, at, name) else {
            unclosed += 1;
            if unclosed == MAX_UNCLOSED {
                break;
            }
            continue;
        };
        blocks.push((found..end, is_certain));
        at = end;
        if blocks.len() == MAX_BLOCKS {
            break;
        }
    }
    blocks
}

/// The end of a block: its closing tag at the end of a line, or in front of another tag.
fn end_of(text: &str, from: usize, name: &str) -> Option<usize> {
    let closing = format!("</{name}>");
    let end = from + text[from..].find(&closing)? + closing.len();
    let after = text[end..].trim_start_matches([' ', '\t']);
    (after.is_empty() || after.starts_with(['\n', '\r', '<'])).then_some(end)
}

/// The name of the tag that a text begins with, behind its `<`.
fn tag(text: &str) -> Option<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    let end = text.find(|c| !is_name(c)).filter(|end| (1..=MAX_NAME_BYTES).contains(end))?;
    (text[end..].starts_with(['>', ' ']) && text.as_bytes()[0].is_ascii_alphabetic()).then(|| &text[..end])
}

/// Whether a tag says that a program wrote its block, and whether that is certain.
fn is_programs(name: &str) -> Option<bool> {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name.split(['-', '_', ':']).filter(|word| !word.is_empty()).collect();
    let has = |words_of: &[&str]| words.iter().any(|word| words_of.contains(word));
    let (first, last) = (*words.first()?, *words.last()?);
    // `/review the harbour page` is what the user has typed.
    if words == ["command", "args"] {
        return None;
    }
    let is_compound = words.len() > 1;
    let is_certain = has(&["reminder", "reminders", "hook", "caveat", "stdout", "stderr", "ide"])
        || matches!(
            first,
            "system" | "environment" | "command" | "developer" | "workspace" | "editor" | "agent"
        );
    if is_compound && is_certain {
        return Some(true);
    }
    let is_likely = is_compound
        && (matches!(
            last,
            "instructions" | "info" | "metadata" | "diagnostics" | "layout" | "rules" | "guidelines"
        ) || matches!(first, "open" | "attached" | "additional" | "recently")
            && has(&["files", "file", "data"]));
    (is_likely || name == "instructions").then_some(false)
}

impl Message {
    /// The message without the blocks of programs. A message that has nothing else has no speaker.
    pub(crate) fn without_harness(mut self) -> Self {
        let is_heard = |role: Role| matches!(role, Role::User | Role::Tool);
        if !self.role.is_some_and(is_heard) {
            return self;
        }
        let mut is_cut = false;
        let mut cut = |text: &mut String| {
            if let Cow::Owned(left) = without_blocks(text) {
                *text = left;
                is_cut = true;
            }
        };
        cut(&mut self.said);
        self.turns.iter_mut().filter(|turn| is_heard(turn.role)).for_each(|turn| cut(&mut turn.content));
        if is_cut && self.role == Some(Role::User) && self.other_parts == 0 && self.said.trim().is_empty() {
            self.turns.retain(|turn| turn.role != Role::User || !turn.content.trim().is_empty());
            if self.turns.iter().all(|turn| turn.role != Role::User) {
                self.role = (!self.turns.is_empty()).then_some(Role::Tool);
                self.slot = None;
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blocks_of_programs_are_not_said() {
        let check = |text: &str, left: &str| assert_eq!(without_blocks(text), left, "{text}");
        check(
            "<system-reminder>\nThe file a.rs has changed.\n</system-reminder>\nmy ferry leaves at nine",
            "my ferry leaves at nine",
        );
        check(
            "my ferry leaves at nine\n\n<system-reminder>todo: empty</system-reminder>",
            "my ferry leaves at nine",
        );
        check(
            "one\n<system-reminder>a</system-reminder>\n<system-reminder>b</system-reminder>\ntwo",
            "one\ntwo",
        );
        check("<system-reminder>only this</system-reminder>", "");
        check("mend it\n<environment_details>\n# Open Tabs\nsrc/a.rs\n</environment_details>", "mend it");
        check("<environment_context>\n  <cwd>/x</cwd>\n</environment_context>", "");
        check("<local-command-stdout>done</local-command-stdout>", "");
        check(
            "<command-name>/review</command-name>\n<command-args>the harbour page</command-args>",
            "<command-args>the harbour page</command-args>",
        );
        check("<user-prompt-submit-hook>ok</user-prompt-submit-hook>\n渡轮九点开", "渡轮九点开");
        check("<ide_opened_file>a.rs</ide_opened_file>\nwhat does it do", "what does it do");
        check("<user_info>\nOS: linux\n</user_info>\n\nwhen do I row", "when do I row");
        check("<instructions>Answer in French.</instructions>\nwhen do I row", "when do I row");
    }

    #[test]
    fn words_of_people_stay() {
        for text in [
            "my ferry leaves at nine",
            "why does <system-reminder> show up in my log",
            "the tag <system-reminder>x</system-reminder> in the middle of a line",
            "<system-reminder> without an end",
            "<div>\nhello\n</div>",
            "<task>mend the mooring</task>",
            "<user_query>when do I row</user_query>",
            "<context>Ann: the boat is green</context>\nwhat colour is the boat",
            "<instructions>Say when the ferry leaves.</instructions>",
            "<system_prompt",
            "a < b and c > d",
            "",
        ] {
            assert_eq!(without_blocks(text), text);
        }
    }

    proptest! {
        /// Of any text, nothing is added to it, and the rest has no block any more.
        #[test]
        fn a_text_only_loses_blocks(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "<system-reminder>", "</system-reminder>", "<environment_details>", "</environment_details>", "<", ">", "\n",
                    " ", "é", "words", "</", "<instructions>", "</instructions>", "\r\n", "<system-", "🦀",
                ]),
                0..24,
            )
        ) {
            let text = pieces.concat();
            let left = without_blocks(&text);
            prop_assert!(left.len() <= text.len());
            let mut rest = text.chars();
            prop_assert!(left.chars().all(|c| c == '\n' || rest.any(|other| other == c)), "{text:?} {left:?}");
        }
    }
}
