//! File names for the ids of sessions and users: readable, safe on every file system, and different for different ids.
//!
//! An unsafe character is written as its UTF-8 bytes, as in `%2F` for a slash. A name that would be too long consists of its
//! beginning, `%~` and a digest; no escaped character begins with `%~`. If the file system ignores case or the composition of
//! letters, capitals and composed letters are escaped too; where it follows the rules of Windows, colons and dots and spaces at
//! the end as well.

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::hash::hex;

/// The maximum length of a name without its ending, in bytes. With the longest ending, `.json.damaged-` and a time, the name
/// stays below the 255 bytes that file systems allow.
const MAX_STEM_BYTES: usize = 200;

/// The mark before the digest of a name that was too long.
const DIGEST_MARK: &str = "%~";

/// Sixteen bytes of SHA-256 in hexadecimal: finding two ids with the same digest is infeasible.
const DIGEST_CHARS: usize = 32;

/// Names that Windows reserves for devices, with any ending.
const RESERVED: [&str; 22] = [
    "con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
    "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

/// How a file system compares names; the later, the more has to be escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Names {
    /// By their bytes.
    Exact,
    /// Case and the composition of letters may be ignored.
    Folded,
    /// As above, and a name can neither contain a colon nor end in a dot or a space.
    Windows,
}

/// How the file systems of this operating system usually compare names.
pub const USUAL_NAMES: Names = if cfg!(windows) {
    Names::Windows
} else if cfg!(any(target_os = "macos", target_os = "ios")) {
    Names::Folded
} else {
    Names::Exact
};

/// The name of the file or folder of an id, without an ending.
pub fn file_stem(session_id: &str) -> Result<String> {
    if session_id.is_empty() {
        return Err(Error::invalid("session id is empty; give it at least one character"));
    }
    Ok(stem(session_id, USUAL_NAMES))
}

/// As [`file_stem`], on a file system that is known.
pub fn file_stem_on(names: Names, id: &str) -> Result<String> {
    if id.is_empty() {
        return Err(Error::invalid("the id is empty; give it at least one character"));
    }
    Ok(stem(id, names))
}

/// The id that a file's name stands for.
#[derive(Debug, PartialEq, Eq)]
pub enum Named {
    /// The id.
    Session(String),
    /// The id was too long for the name; it is in the document.
    Digest,
    /// The name is not one that Strata writes.
    Foreign,
}

/// Reads a name without its ending.
pub fn read_stem(text: &str) -> Named {
    read(text, &[USUAL_NAMES])
}

/// As [`read_stem`], in a folder that may have been written on other file systems too.
pub fn read_stem_of_any(text: &str) -> Named {
    read(text, &[Names::Exact, Names::Folded, Names::Windows])
}

fn read(text: &str, spellings: &[Names]) -> Named {
    if let Some((_, digest)) = text.split_once(DIGEST_MARK) {
        let ours =
            digest.len() == DIGEST_CHARS && digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        return if ours { Named::Digest } else { Named::Foreign };
    }
    match unescape(text) {
        // Only the spelling that Strata itself writes is accepted.
        Some(id) if !id.is_empty() && spellings.iter().any(|names| stem(&id, *names) == text) => {
            Named::Session(id)
        }
        _ => Named::Foreign,
    }
}

fn stem(id: &str, names: Names) -> String {
    let device = id.split('.').next().unwrap_or(id).trim_end().to_ascii_lowercase();
    let is_device = RESERVED.contains(&device.as_str());
    let mut stem = String::with_capacity(id.len());
    // The length to which a name is cut if a digest follows.
    let mut cut = 0;
    for (at, character) in id.char_indices() {
        if stem.len() <= MAX_STEM_BYTES - DIGEST_MARK.len() - DIGEST_CHARS {
            cut = stem.len();
        }
        let first = at == 0 && (character == '.' || is_device);
        let is_last = at + character.len_utf8() == id.len();
        let dropped = is_last && names == Names::Windows && matches!(character, '.' | ' ');
        match first || dropped || must_escape(character, names) {
            true => push_escaped(character, &mut stem),
            false => stem.push(character),
        }
    }
    if stem.len() <= MAX_STEM_BYTES {
        return stem;
    }
    stem.truncate(cut);
    stem.push_str(DIGEST_MARK);
    stem.push_str(&hex(&Sha256::digest(id.as_bytes())[..DIGEST_CHARS / 2]));
    stem
}

fn push_escaped(character: char, stem: &mut String) {
    for byte in character.encode_utf8(&mut [0; 4]).bytes() {
        stem.push_str(&format!("%{byte:02X}"));
    }
}

fn must_escape(character: char, names: Names) -> bool {
    match character {
        '%' | '/' | '\\' | '<' | '>' | '"' | '|' | '?' | '*' => true,
        ':' => names == Names::Windows,
        c if c.is_control() => true,
        // Line and paragraph separators and direction marks would make a listing of the folder misleading.
        '\u{2028}'
        | '\u{2029}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' => true,
        c => names != Names::Exact && (c.is_ascii_uppercase() || !c.is_ascii()),
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            rest = after;
            continue;
        }
        let (digits, after) = after.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_readable_and_safe() {
        let check = |id: &str, expected: &str| assert_eq!(stem(id, Names::Exact), expected, "{id:?}");
        check("user1:agent1:123", "user1:agent1:123");
        check("User 1@example.com", "User 1@example.com");
        check("会话：一", "会话：一");
        check("../../etc/passwd", "%2E./../etc/passwd".replace('/', "%2F").as_str());
        check("a\\b", "a%5Cb");
        check(".hidden", "%2Ehidden");
        check("..", "%2E.");
        check("100%", "100%25");
        check("%2F", "%252F");
        check("a\0b\n\u{85}", "a%00b%0A%C2%85");
        check("CON", "%43ON");
        check("con.backup", "%63on.backup");
        check("nul ", "%6Eul ");
        check("console", "console");
        check("a*b?", "a%2Ab%3F");
        check("\u{202e}txt", "%E2%80%AEtxt");
    }

    #[test]
    fn a_file_system_that_folds_names_is_told_more() {
        assert_eq!(stem("User:é", Names::Folded), "%55ser:%C3%A9");
        assert_eq!(stem("User:é", Names::Windows), "%55ser%3A%C3%A9");
        assert_eq!(stem("at ease. ", Names::Windows), "at ease.%20");
        assert_eq!(stem("a..", Names::Windows), "a.%2E");
    }

    #[test]
    fn a_folder_of_another_file_system_says_its_id_too() {
        let check = |id: &str| {
            for names in [Names::Exact, Names::Folded, Names::Windows] {
                let name = file_stem_on(names, id).unwrap();
                assert_eq!(read_stem_of_any(&name), Named::Session(id.to_owned()), "{name}");
            }
        };
        for id in ["User", "é:长", "a. ", "%55ser", "CON", "100%"] {
            check(id);
        }
        assert_eq!(read_stem_of_any("%61"), Named::Foreign);
    }

    #[test]
    fn a_long_name_ends_in_a_digest() {
        let long = "长".repeat(90);
        let name = stem(&long, Names::Exact);
        assert!(name.len() <= MAX_STEM_BYTES && name.starts_with("长长"), "{name}");
        assert_eq!(read_stem(&name), Named::Digest);
        assert_ne!(name, stem(&format!("{long}长"), Names::Exact));
        assert_eq!(read_stem(&stem(&"x".repeat(200), Names::Exact)), Named::Session("x".repeat(200)));
        assert_eq!(read_stem(&stem(&"x".repeat(201), Names::Exact)), Named::Digest);
        // An id that looks like such a name does not become one.
        assert_eq!(read_stem(&stem(&name[..190], Names::Exact)), Named::Session(name[..190].to_owned()));
    }

    #[test]
    fn other_files_are_not_taken_for_ours() {
        for name in ["%61", "100%", "%zz", "%+1", "%2f", "a/b", ".x", "", "x%~abc", "%FF"] {
            assert_eq!(read_stem(name), Named::Foreign, "{name}");
        }
    }

    fn any_id() -> impl Strategy<Value = String> {
        prop_oneof![any::<String>(), "[a-bA-B%~./:2F]{1,8}", "[a%]{60,80}", "[é长🦀]{40,80}", ".{1,300}"]
    }

    proptest! {
        #[test]
        fn two_ids_never_share_a_name(one in any_id(), two in any_id()) {
            for names in [Names::Exact, Names::Folded, Names::Windows] {
                let (a, b) = (stem(&one, names), stem(&two, names));
                if names == Names::Exact {
                    prop_assert_eq!(a == b, one == two);
                } else {
                    prop_assert_eq!(a.to_lowercase() == b.to_lowercase(), one == two);
                }
            }
        }

        #[test]
        fn a_name_says_its_id_and_is_safe(id in any_id()) {
            prop_assume!(!id.is_empty());
            let name = file_stem(&id).unwrap();
            prop_assert!(name.len() <= MAX_STEM_BYTES);
            prop_assert!(!name.starts_with('.') && !name.contains(['/', '\\', '\0', '\n']));
            let digest = name.contains(DIGEST_MARK);
            prop_assert_eq!(read_stem(&name), if digest { Named::Digest } else { Named::Session(id) });
        }
    }
}
