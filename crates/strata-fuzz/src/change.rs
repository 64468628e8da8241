//! Changes of examples, from a seed: the same seed gives the same inputs.

/// Pieces that parsers stumble over.
const PIECES: [&[u8]; 24] = [
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\r\n",
    b"\n\n",
    b"data: ",
    b"---\n",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    "\u{202e}".as_bytes(),
    "你".as_bytes(),
    "\u{1F980}".as_bytes(),
    b"-1",
    b"18446744073709551616",
    b"1e999",
    b"</memories>",
];

/// The longest input.
const MAX_BYTES: usize = 4_096;

/// Numbers from a seed (xorshift).
pub struct Numbers(u64);

impl Numbers {
    /// Numbers that follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`, or 0.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        if end == 0 { 0 } else { (self.0 % end as u64) as usize }
    }
}

/// One of the examples with up to eight changes.
pub fn changed(examples: &[Vec<u8>], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = examples.get(numbers.below(examples.len())).cloned().unwrap_or_default();
    for _ in 0..=numbers.below(8) {
        let at = numbers.below(bytes.len() + 1);
        let end = (at + numbers.below(16)).min(bytes.len());
        match numbers.below(7) {
            0 => drop(bytes.drain(at..end)),
            1 => drop(bytes.splice(at..at, PIECES[numbers.below(PIECES.len())].iter().copied())),
            2 => drop(bytes.splice(at..end, PIECES[numbers.below(PIECES.len())].iter().copied())),
            3 if at < bytes.len() => bytes[at] = numbers.below(256) as u8,
            4 => {
                let copy = bytes[at..end].to_vec();
                let to = numbers.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            5 => {
                let other = &examples[numbers.below(examples.len())];
                let from = numbers.below(other.len() + 1);
                let to = (from + numbers.below(64)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            _ => bytes.truncate(at.max(1)),
        }
    }
    bytes.truncate(MAX_BYTES);
    bytes
}
