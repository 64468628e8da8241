//! A parser for server-sent events that takes bytes as they arrive: split anywhere, with any line ending.
//!
//! It returns only the data of each event. It is pure, and it is in this crate because the proxy and the client of chat
//! models both use it.

/// An event longer than this is no part of a reply. The parser skips it, so that a stream cannot fill the memory. Some
/// APIs repeat the whole reply in the last event.
const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;

/// Assembles events from chunks of bytes.
#[derive(Debug, Default)]
pub struct EventReader {
    /// The current, unfinished line.
    line: Vec<u8>,
    /// The data of the current, unfinished event, its lines joined.
    data: Vec<u8>,
    has_data: bool,
    /// Whether the last byte was a carriage return. A line feed that follows belongs to it.
    after_return: bool,
    is_too_long: bool,
}

impl EventReader {
    /// Reads the next bytes, and calls `emit` with the data of each event that they complete.
    pub fn feed(&mut self, bytes: &[u8], emit: &mut dyn FnMut(&[u8])) {
        let mut rest = bytes;
        if self.after_return && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        if !bytes.is_empty() {
            self.after_return = false;
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.push(&rest[..end]);
            self.end_line(emit);
            let is_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_return {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
        }
        self.push(rest);
    }

    /// Ends the stream. An event without an empty line after it counts too: not every server sends the last empty line.
    pub fn finish(&mut self, emit: &mut dyn FnMut(&[u8])) {
        if !self.line.is_empty() {
            self.end_line(emit);
        }
        self.end_event(emit);
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.line.len() + self.data.len() + bytes.len() > MAX_EVENT_BYTES {
            self.is_too_long = true;
            self.line.clear();
            self.data.clear();
        }
        // One byte of a skipped line stays in the buffer, so that the line does not look empty.
        let kept = if self.is_too_long { &bytes[..bytes.len().min(1)] } else { bytes };
        self.line.extend_from_slice(kept);
    }

    fn end_line(&mut self, emit: &mut dyn FnMut(&[u8])) {
        let line = std::mem::take(&mut self.line);
        let line_bytes = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        if line_bytes.is_empty() {
            self.end_event(emit);
        } else if let Some(value) = data_of(line_bytes)
            && !self.is_too_long
        {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
            self.has_data = true;
        }
        // The buffer is reused.
        self.line = line;
        self.line.clear();
    }

    fn end_event(&mut self, emit: &mut dyn FnMut(&[u8])) {
        if self.has_data && !self.is_too_long {
            emit(&self.data);
        }
        self.data.clear();
        self.has_data = false;
        self.is_too_long = false;
    }
}

/// The value of a `data` field; `None` for comments and other fields.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"data")?;
    match rest.first() {
        None => Some(b""),
        Some(b':') => Some(rest[1..].strip_prefix(b" ").unwrap_or(&rest[1..])),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut events = Vec::new();
        let mut reader = EventReader::default();
        let mut emit = |data: &[u8]| events.push(String::from_utf8(data.to_vec()).unwrap());
        for piece in pieces {
            reader.feed(piece, &mut emit);
        }
        reader.finish(&mut emit);
        events
    }

    #[test]
    fn events_are_read_as_the_standard_says() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(read(&[text.as_bytes()]), expected, "{text:?}");
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(read(&bytes), expected, "{text:?} byte by byte");
        };
        check("data: a\n\ndata: b\n\n", &["a", "b"]);
        check("data: a\r\n\r\ndata:b\r\r", &["a", "b"]);
        check(": comment\n\nevent: x\ndata: a\ndata:  b\nid: 1\n\n", &["a\n b"]);
        check("data\n\ndata:\n\n", &["", ""]);
        check("\u{feff}data: a\n\n", &["a"]);
        check("database: x\n\nretry: 5\n\n", &[]);
        check("data: no end", &["no end"]);
        check("data: {\"长\": 1}\n\ndata: [DONE]", &["{\"长\": 1}", "[DONE]"]);
    }

    #[test]
    fn an_endless_event_is_passed_over() {
        let long = vec![b'x'; 1024 * 1024];
        let mut pieces: Vec<&[u8]> = vec![b"data: "];
        pieces.extend((0..66).map(|_| long.as_slice()));
        pieces.push(b"\n\ndata: after\n\n");
        assert_eq!(read(&pieces), ["after"]);
    }
}
