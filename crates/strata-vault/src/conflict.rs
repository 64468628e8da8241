//! The marks that git leaves in a file which it could not merge.

/// The line of the first mark, from 1, if lines of a file begin with all three marks of a conflict: seven signs each, and a name
/// behind the outer ones.
pub(crate) fn marked(bytes: &[u8]) -> Option<u64> {
    let line = |sign: u8, end: &[u8]| {
        let mark = [&[sign; 7][..], end].concat();
        lines(bytes).position(|line| line.starts_with(&mark))
    };
    let first = line(b'<', b" ")?;
    (line(b'=', b"").is_some() && line(b'>', b" ").is_some()).then_some(first as u64 + 1)
}

/// The line in which a conflict begins, from 1, if a file has the marks just as git writes them: in their order, and nothing behind
/// the middle one.
pub(crate) fn begun(bytes: &[u8]) -> Option<u64> {
    let (from, to) = ([b'<'; 7], [b'>'; 7]);
    let is_mark =
        |line: &[u8], mark: &[u8]| line.strip_prefix(mark).is_some_and(|rest| rest.starts_with(b" "));
    let mut numbered = lines(bytes).enumerate();
    let (first, _) = numbered.find(|(_, line)| is_mark(line, &from))?;
    numbered.find(|(_, line)| line.trim_ascii_end() == b"=======")?;
    numbered.find(|(_, line)| is_mark(line, &to))?;
    Some(first as u64 + 1)
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_told_from_a_text_about_marks() {
        let check = |text: &str, loosely: Option<u64>, exactly: Option<u64>| {
            let text = text.replace("{<}", &"<".repeat(7)).replace("{>}", &">".repeat(7));
            assert_eq!((marked(text.as_bytes()), begun(text.as_bytes())), (loosely, exactly), "{text}");
        };
        check("a\n{<} HEAD\nb\n=======\r\nc\n{>} other\n", Some(2), Some(2));
        check("{<} x\n======= x\n{>} x\n", Some(1), None);
        check("=======\n{>} x\n{<} x\n", Some(3), None);
        check("A heading\n=======\n", None, None);
    }
}
