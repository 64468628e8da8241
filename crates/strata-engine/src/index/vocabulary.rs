//! Texts by number and numbers by text, with few allocations.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Distinct texts, numbered in order of insertion.
#[derive(Default)]
pub(crate) struct Vocabulary {
    /// All texts, one after the other. `ends` uses 32 bits: a user's words take less than four gigabytes.
    texts: String,
    ends: Vec<u32>,
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Vocabulary {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text with this number.
    pub(crate) fn text(&self, number: u32) -> &str {
        text(&self.texts, &self.ends, number)
    }

    pub(crate) fn number(&self, wanted: &str) -> Option<u32> {
        let same = |number: &u32| self.text(*number) == wanted;
        self.numbers.find(self.hasher.hash_one(wanted), same).copied()
    }

    /// The text's number, and whether it is new.
    pub(crate) fn enter(&mut self, wanted: &str) -> (u32, bool) {
        let Self { texts, ends, numbers, hasher } = self;
        let hash = |number: &u32| hasher.hash_one(text(texts, ends, *number));
        let same = |number: &u32| text(texts, ends, *number) == wanted;
        match numbers.entry(hasher.hash_one(wanted), same, hash) {
            hashbrown::hash_table::Entry::Occupied(known) => (*known.get(), false),
            hashbrown::hash_table::Entry::Vacant(vacant) => {
                let number = ends.len() as u32;
                vacant.insert(number);
                texts.push_str(wanted);
                ends.push(texts.len() as u32);
                (number, true)
            }
        }
    }

    /// Reserves memory for this many more texts.
    pub(crate) fn reserve(&mut self, count: usize) {
        let Self { texts, ends, numbers, hasher } = self;
        ends.reserve(count);
        numbers.reserve(count, |number| hasher.hash_one(text(texts, ends, *number)));
    }

    pub(crate) fn bytes(&self) -> usize {
        self.texts.capacity() + self.ends.capacity() * size_of::<u32>() + self.numbers.capacity() * 5
    }
}

fn text<'a>(texts: &'a str, ends: &[u32], number: u32) -> &'a str {
    let at = number as usize;
    let start = if at == 0 { 0 } else { ends[at - 1] };
    &texts[start as usize..ends[at] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_its_number() {
        let mut vocabulary = Vocabulary::default();
        let texts: Vec<String> =
            (0..500).map(|number| "茶".repeat(number % 3) + &number.to_string()).collect();
        for (number, text) in texts.iter().enumerate() {
            assert_eq!(vocabulary.number(text), None);
            assert_eq!(vocabulary.enter(text), (number as u32, true));
        }
        assert_eq!(vocabulary.enter(""), (500, true));
        for (number, text) in texts.iter().enumerate() {
            assert_eq!(vocabulary.enter(text), (number as u32, false));
            assert_eq!(vocabulary.number(text), Some(number as u32));
            assert_eq!(vocabulary.text(number as u32), text);
        }
        assert_eq!((vocabulary.text(500), vocabulary.len()), ("", 501));
    }
}
