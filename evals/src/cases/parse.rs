//! The files of cases.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use strata_core::ports::CaseRole;
use strata_core::{Error, Result, Role};

/// Working conversations, and the small talk that follows each of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaseSet {
    /// The conversations.
    pub conversations: Vec<CaseConversation>,
    /// The small talk by language; none for a language without a file.
    pub small_talk: BTreeMap<String, Vec<CaseLine>>,
}

impl CaseSet {
    /// Keeps the conversations that the training of the reader holds out.
    pub fn keep_held_out(&mut self) {
        self.conversations.retain(|conversation| is_held_out(&conversation.id));
    }
}

/// Whether training holds out the conversation with this id: one of ten, by a hash (`held_out` in
/// `tools/train/formats.py`).
fn is_held_out(id: &str) -> bool {
    Sha256::digest(id.as_bytes()).iter().fold(0_u32, |rest, byte| (rest * 256 + u32::from(*byte)) % 10) == 0
}

/// A working conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaseConversation {
    /// Its id.
    pub id: String,
    /// Its language.
    pub language: String,
    /// Its sentences.
    pub lines: Vec<CaseLine>,
    /// Questions about it, each with the words of the answer.
    pub questions: Vec<(String, String)>,
}

/// A sentence of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseLine {
    /// Its role in the case.
    pub label: CaseRole,
    /// Who says it.
    pub role: Role,
    /// The sentence.
    pub text: String,
}

/// Reads the files of a folder: `*.txt` are cases, `small-talk.LANGUAGE.txt` is said after each of them.
pub fn load(folder: &Path) -> Result<CaseSet> {
    let mut set = CaseSet::default();
    for path in paths(folder)? {
        let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
        let conversations = conversations(&text, &path)?;
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("small-talk.")) {
            for conversation in conversations {
                set.small_talk.entry(conversation.language).or_default().extend(conversation.lines);
            }
        } else {
            set.conversations.extend(conversations);
        }
    }
    if set.conversations.is_empty() {
        return Err(Error::invalid(format!(
            "folder `{}` contains no case; cases are `*.txt`",
            folder.display()
        )));
    }
    Ok(set)
}

fn paths(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    Ok(paths)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::invalid(format!("`{}` cannot be read: {error}", path.display()))
}

fn conversations(text: &str, path: &Path) -> Result<Vec<CaseConversation>> {
    let mut found: Vec<CaseConversation> = Vec::new();
    for (number, line) in text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty()) {
        let wrong = || {
            Error::invalid(format!(
                "`{}` line {}: not `label speaker: sentence` or `q question | answer`",
                path.display(),
                number + 1
            ))
        };
        if let Some(head) = line.strip_prefix("# ") {
            let (id, language) = head.split_once('|').ok_or_else(wrong)?;
            let (id, language) = (id.trim().to_owned(), language.trim().to_owned());
            found.push(CaseConversation { id, language, ..CaseConversation::default() });
            continue;
        }
        if let Some(asked) = line.strip_prefix("q ") {
            let (question, answer) = asked.rsplit_once('|').ok_or_else(wrong)?;
            let last = found.last_mut().ok_or_else(wrong)?;
            last.questions.push((question.trim().to_owned(), answer.trim().to_owned()));
            continue;
        }
        let mut characters = line.chars();
        let label = characters.next().and_then(label).ok_or_else(wrong)?;
        let rest = characters.as_str().strip_prefix(' ').ok_or_else(wrong)?;
        let (speaker, text) = rest.split_once(": ").ok_or_else(wrong)?;
        let role = match speaker {
            "U" => Role::User,
            "A" => Role::Assistant,
            _ => return Err(wrong()),
        };
        let last = found.last_mut().ok_or_else(wrong)?;
        last.lines.push(CaseLine { label, role, text: text.to_owned() });
    }
    Ok(found)
}

fn label(letter: char) -> Option<CaseRole> {
    Some(match letter {
        'f' => CaseRole::Fact,
        'w' => CaseRole::Constraint,
        'n' => CaseRole::Finding,
        'h' => CaseRole::Hypothesis,
        'x' => CaseRole::RuledOut,
        'o' => CaseRole::Cause,
        'v' => CaseRole::Resolved,
        'u' => CaseRole::Unresolved,
        'a' => CaseRole::Advice,
        'd' => CaseRole::Decision,
        't' => CaseRole::Todo,
        'k' => CaseRole::Done,
        '.' => CaseRole::Nothing,
        '?' => CaseRole::Question,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tenth_is_the_one_of_the_training() {
        let held: Vec<String> = (0..60).map(|n| format!("loom-{n}")).filter(|id| is_held_out(id)).collect();
        // By `held_out` of `tools/train/formats.py`.
        assert_eq!(held, ["loom-24", "loom-27", "loom-42", "loom-58"]);
    }
}
