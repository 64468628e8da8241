//! The columns of a segment as bytes: numbers of one width, and texts after their lengths.

use crate::index::vocabulary::Vocabulary;

/// Numbers of one width (one, two or four bytes), decoded on access.
#[derive(Clone, Copy)]
pub(crate) enum Numbers<'a> {
    /// Up to 255.
    Bytes(&'a [u8]),
    /// Up to 65,535.
    Pairs(&'a [[u8; 2]]),
    /// Any.
    Fours(&'a [[u8; 4]]),
}

impl<'a> Numbers<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Bytes(numbers) => numbers.len(),
            Self::Pairs(numbers) => numbers.len(),
            Self::Fours(numbers) => numbers.len(),
        }
    }

    #[inline]
    pub(crate) fn get(self, at: usize) -> u32 {
        match self {
            Self::Bytes(numbers) => numbers[at].into(),
            Self::Pairs(numbers) => u16::from_le_bytes(numbers[at]).into(),
            Self::Fours(numbers) => u32::from_le_bytes(numbers[at]),
        }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u32> + 'a {
        (0..self.len()).map(move |at| self.get(at))
    }
}

/// Writes columns.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn u32(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    /// Writes numbers with the width that the largest of them needs.
    pub(super) fn numbers(&mut self, numbers: &[u32]) {
        let largest = numbers.iter().copied().max().unwrap_or(0);
        let width = if u8::try_from(largest).is_ok() {
            1
        } else if u16::try_from(largest).is_ok() {
            2
        } else {
            4
        };
        self.0.push(width);
        self.u32(numbers.len() as u32);
        for number in numbers {
            self.0.extend(&number.to_le_bytes()[..usize::from(width)]);
        }
    }

    /// Writes the texts of a vocabulary: their lengths, then all texts in one piece.
    pub(super) fn strings(&mut self, texts: &Vocabulary) {
        let texts = || (0..texts.len() as u32).map(|number| texts.text(number));
        self.numbers(&texts().map(|text| text.len() as u32).collect::<Vec<_>>());
        texts().for_each(|text| self.0.extend(text.as_bytes()));
    }
}

/// Reads columns. Each method returns `None` if the bytes are too short or invalid.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads `count` arrays of `SIZE` bytes.
    pub(super) fn chunks<const SIZE: usize>(&mut self, count: usize) -> Option<&'a [[u8; SIZE]]> {
        Some(self.take(count.checked_mul(SIZE)?)?.as_chunks().0)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.chunks(1)?.first().copied().map(u32::from_le_bytes)
    }

    pub(super) fn numbers(&mut self) -> Option<Numbers<'a>> {
        let width = *self.take(1)?.first()?;
        let count = self.u32()? as usize;
        Some(match width {
            1 => Numbers::Bytes(self.take(count)?),
            2 => Numbers::Pairs(self.chunks(count)?),
            4 => Numbers::Fours(self.chunks(count)?),
            _ => return None,
        })
    }

    pub(super) fn strings(&mut self) -> Option<Vec<&'a str>> {
        let lengths = self.numbers()?;
        let total: u64 = lengths.iter().map(u64::from).sum();
        // All texts are validated at once.
        let mut rest = std::str::from_utf8(self.take(usize::try_from(total).ok()?)?).ok()?;
        let mut texts = Vec::with_capacity(lengths.len());
        for length in lengths.iter() {
            let (text, others) = rest.split_at_checked(length as usize)?;
            texts.push(text);
            rest = others;
        }
        Some(texts)
    }
}
