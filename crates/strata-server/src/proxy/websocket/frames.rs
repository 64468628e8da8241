//! Reads the text messages of a WebSocket from the bytes of one direction (RFC 6455, 5), wherever these are cut. The bytes
//! themselves pass elsewhere, unchanged.

/// The largest message that is read, as for bodies whose ids are checked.
pub(super) const MAX_MESSAGE_BYTES: usize = 32 * 1024 * 1024;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;

/// Frames from this opcode on are of the connection, and may stand between the parts of a message.
const FIRST_CONTROL: u8 = 0x8;

/// A frame whose content is being read.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    opcode: u8,
    /// Whether it ends its message.
    is_last: bool,
    mask: Option<[u8; 4]>,
    /// The bytes of the content that have not come yet.
    left: u64,
    /// The bytes of the content that have come.
    read: u64,
}

/// The beginning of a frame.
enum Head {
    /// More bytes are needed.
    Begun,
    Whole(Frame),
    /// The frame uses an extension, so its content is not the message's.
    Extended,
}

/// The messages of one direction.
#[derive(Debug, Default)]
pub(super) struct MessageReader {
    head: Vec<u8>,
    frame: Option<Frame>,
    /// The text message that is being read; `None` between messages and inside others.
    text: Option<Vec<u8>>,
    is_lost: bool,
}

impl MessageReader {
    /// Reads a piece, and calls `each` with every text message that ends in it.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Vec<u8>)) {
        loop {
            // A frame without content ends with its head.
            if self.is_lost || bytes.is_empty() && self.frame.is_none() {
                return;
            }
            let Some(mut frame) = self.frame.take() else {
                self.head.push(bytes[0]);
                bytes = &bytes[1..];
                self.begin();
                continue;
            };
            let count = bytes.len().min(usize::try_from(frame.left).unwrap_or(usize::MAX));
            self.take(&mut frame, &bytes[..count]);
            bytes = &bytes[count..];
            if frame.left > 0 {
                self.frame = Some(frame);
                return;
            }
            if frame.is_last && frame.opcode < FIRST_CONTROL {
                self.text.take().into_iter().for_each(&mut each);
            }
        }
    }

    /// Whether messages can no longer be read: one was too large, or the ends use an extension.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// The bytes of a message that has not ended.
    pub(super) fn held(&self) -> usize {
        self.text.as_ref().map_or(0, Vec::len)
    }

    /// Stops reading.
    pub(super) fn give_up(&mut self) {
        *self = Self { is_lost: true, ..Self::default() };
    }

    /// Begins a frame, if its head is complete.
    fn begin(&mut self) {
        match head(&self.head) {
            Head::Begun => {}
            Head::Extended => self.give_up(),
            Head::Whole(frame) => {
                self.head.clear();
                if frame.opcode == TEXT {
                    self.text = Some(Vec::new());
                }
                self.frame = Some(frame);
            }
        }
    }

    /// Takes a part of a frame's content.
    fn take(&mut self, frame: &mut Frame, content: &[u8]) {
        let before = frame.read;
        frame.read += content.len() as u64;
        frame.left -= content.len() as u64;
        let Some(text) = self.text.as_mut().filter(|_| matches!(frame.opcode, TEXT | CONTINUATION)) else {
            return;
        };
        if text.len() + content.len() > MAX_MESSAGE_BYTES {
            return self.give_up();
        }
        match frame.mask {
            None => text.extend_from_slice(content),
            Some(mask) => {
                text.extend((before..).zip(content).map(|(place, byte)| byte ^ mask[(place % 4) as usize]));
            }
        }
    }
}

fn head(bytes: &[u8]) -> Head {
    let [first, second, rest @ ..] = bytes else { return Head::Begun };
    if first & 0x70 != 0 {
        return Head::Extended;
    }
    let long = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let has_mask = second & 0x80 != 0;
    if rest.len() < long + if has_mask { 4 } else { 0 } {
        return Head::Begun;
    }
    let length = rest[..long].iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
    Head::Whole(Frame {
        opcode: first & 0x0f,
        is_last: first & 0x80 != 0,
        mask: has_mask.then(|| [rest[long], rest[long + 1], rest[long + 2], rest[long + 3]]),
        left: if long == 0 { u64::from(second & 0x7f) } else { length },
        read: 0,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame as an end writes it.
    pub(super) fn frame(opcode: u8, is_last: bool, mask: Option<[u8; 4]>, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![opcode | if is_last { 0x80 } else { 0 }];
        let flag = if mask.is_some() { 0x80 } else { 0 };
        match content.len() {
            short @ ..126 => bytes.push(flag | short as u8),
            middle @ ..65_536 => {
                bytes.push(flag | 126);
                bytes.extend((middle as u16).to_be_bytes());
            }
            long => {
                bytes.push(flag | 127);
                bytes.extend((long as u64).to_be_bytes());
            }
        }
        bytes.extend(mask.into_iter().flatten());
        let masked = |(place, byte): (usize, &u8)| byte ^ mask.map_or(0, |mask| mask[place % 4]);
        bytes.extend(content.iter().enumerate().map(masked));
        bytes
    }

    fn read(pieces: &[&[u8]]) -> (Vec<String>, bool) {
        let (mut reader, mut found) = (MessageReader::default(), Vec::new());
        for piece in pieces {
            reader.feed(piece, |message| found.push(String::from_utf8_lossy(&message).into_owned()));
        }
        (found, reader.is_lost())
    }

    #[test]
    fn parts_are_joined_and_other_frames_are_left_out() {
        let bytes = [
            frame(2, true, None, b"\x00\xffsound"),
            frame(TEXT, false, None, b"one "),
            frame(9, true, None, b"ping"),
            frame(CONTINUATION, true, None, b"message"),
            frame(TEXT, true, None, b""),
            frame(2, false, None, b"more"),
            frame(CONTINUATION, true, None, b" sound"),
            frame(8, true, None, b"\x03\xe8bye"),
        ]
        .concat();
        assert_eq!(read(&[&bytes]), (vec!["one message".to_owned(), String::new()], false));
    }

    #[test]
    fn what_cannot_be_read_is_given_up() {
        let mut compressed = frame(TEXT, true, None, b"x");
        compressed[0] |= 0x40;
        assert_eq!(read(&[&compressed, &frame(TEXT, true, None, b"later")]), (Vec::new(), true));
        let huge = vec![b'a'; MAX_MESSAGE_BYTES / 2 + 1];
        let first = frame(TEXT, false, None, &huge);
        let (found, is_lost) = read(&[&first, &frame(CONTINUATION, true, None, &huge)]);
        assert!(found.is_empty() && is_lost);
        // A length that no memory has is only a number.
        let mut endless = vec![0x81, 127];
        endless.extend([0xff; 8]);
        assert_eq!(read(&[&endless, b"abc"]), (Vec::new(), false));
    }

    proptest! {
        /// Messages of any size, in any parts, cut at any byte.
        #[test]
        fn messages_are_read_wherever_they_are_cut(
            messages in prop::collection::vec((prop::collection::vec("[a-zé\"]{0,9}|[a-z]{200}", 1..4), any::<Option<[u8; 4]>>()), 1..4),
            cuts in prop::collection::vec(any::<usize>(), 0..16),
        ) {
            let mut bytes = Vec::new();
            for (parts, mask) in &messages {
                for (number, part) in parts.iter().enumerate() {
                    let opcode = if number == 0 { TEXT } else { CONTINUATION };
                    bytes.extend(frame(opcode, number + 1 == parts.len(), *mask, part.as_bytes()));
                }
            }
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            let expected: Vec<String> = messages.iter().map(|(parts, _)| parts.concat()).collect();
            prop_assert_eq!(read(&pieces), (expected, false));
        }

        #[test]
        fn any_bytes_are_read(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6)) {
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            read(&pieces);
        }
    }
}
