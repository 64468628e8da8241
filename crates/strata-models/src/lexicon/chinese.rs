//! Chinese words, their frequencies and their English glosses.

use strata_core::{Error, Result};

static TABLE: &[u8] = include_bytes!("../../data/zh.bin");

const HEADER: usize = 24;

/// The longest word in the table.
pub(super) const MAX_WORD_CHARS: usize = 8;

/// The cost of a word that is in the dictionary but not in the frequency list: it is rarer than all listed words.
const UNSEEN_LOG10: f32 = -10.0;

/// The cost of a character that is not a word.
pub(super) const UNKNOWN_LOG10: f32 = -11.0;

/// The dictionary. Only the start positions of words and glosses are kept outside the table.
pub(super) struct Chinese {
    probabilities: &'static [u8],
    characters: &'static [u8],
    glosses: &'static [u8],
    word_starts: Vec<u32>,
    gloss_starts: Vec<u32>,
}

/// One word of the dictionary.
pub(super) struct Entry {
    glosses: &'static [u8],
    probability: u8,
}

impl Entry {
    /// The piece ids of each of its senses.
    pub(super) fn senses(&self) -> impl Iterator<Item = impl Iterator<Item = u16>> {
        let ids = self.glosses.as_chunks::<2>().0;
        ids.split(|id| *id == [0, 0]).map(|sense| sense.iter().map(|id| u16::from_le_bytes(*id)))
    }

    /// The piece ids of its first sense.
    pub(super) fn first_sense(&self) -> Option<Vec<u16>> {
        self.senses().map(Iterator::collect).find(|sense: &Vec<u16>| !sense.is_empty())
    }

    /// The logarithm of the word's probability.
    pub(super) fn log10(&self) -> f64 {
        if self.probability == u8::MAX { UNSEEN_LOG10.into() } else { -f64::from(self.probability) / 25.0 }
    }

    /// The word's probability; 0 if it is not in the frequency list.
    pub(super) fn probability(&self) -> f32 {
        if self.probability == u8::MAX { 0.0 } else { 10_f32.powf(log10(self.probability)) }
    }
}

fn log10(probability: u8) -> f32 {
    if probability == u8::MAX { UNSEEN_LOG10 } else { -f32::from(probability) / 25.0 }
}

fn u16_at(bytes: &[u8]) -> u16 {
    u16::from_le_bytes([bytes[0], bytes[1]])
}

impl Chinese {
    pub(super) fn new() -> Result<Self> {
        Self::read(TABLE).ok_or_else(|| Error::internal("the table of Chinese words is damaged; rebuild it"))
    }

    fn read(table: &'static [u8]) -> Option<Self> {
        let number = |at: usize| {
            let bytes = table.get(at..at + 4)?;
            usize::try_from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).ok()
        };
        if !table.starts_with(b"STRZ") || number(4)? != 1 {
            return None;
        }
        let (words, characters, glosses) = (number(8)?, number(12)?, number(16)?);
        let mut at = HEADER;
        let mut take = |length: usize| {
            let part = table.get(at..at + length)?;
            at += length;
            Some(part)
        };
        let lengths = take(words)?;
        let probabilities = take(words)?;
        let gloss_lengths = take(words)?;
        take((3 * words) % 2)?;
        Some(Self {
            probabilities,
            characters: take(2 * characters)?,
            glosses: take(2 * glosses)?,
            word_starts: starts(lengths),
            gloss_starts: starts(gloss_lengths),
        })
    }

    fn len(&self) -> usize {
        self.probabilities.len()
    }

    /// The characters of word `index` as UTF-16; each character of the table is one unit.
    fn word(&self, index: usize) -> impl Iterator<Item = u16> {
        let range = 2 * self.word_starts[index] as usize..2 * self.word_starts[index + 1] as usize;
        self.characters[range].chunks_exact(2).map(u16_at)
    }

    fn word_len(&self, index: usize) -> usize {
        (self.word_starts[index + 1] - self.word_starts[index]) as usize
    }

    /// The character of word `index` at `place`; 0 after the end of the word, which sorts before all characters.
    fn character(&self, index: usize, place: usize) -> u16 {
        if place >= self.word_len(index) {
            return 0;
        }
        let at = 2 * (self.word_starts[index] as usize + place);
        u16_at(&self.characters[at..at + 2])
    }

    /// Narrows the words `low..high`, which share their first `place` characters, to those with `wanted` at `place`.
    fn narrow(&self, low: usize, high: usize, place: usize, wanted: u16) -> (usize, usize) {
        let first = |from: usize, keep: &dyn Fn(u16) -> bool| {
            let (mut low, mut high) = (from, high);
            while low < high {
                let middle = usize::midpoint(low, high);
                if keep(self.character(middle, place)) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            low
        };
        let start = first(low, &|character| character < wanted);
        (start, first(start, &|character| character <= wanted))
    }

    /// The entry of a word written in simplified characters.
    pub(super) fn find(&self, word: &str) -> Option<Entry> {
        // Latin words are looked up here too, and far more often.
        if word.is_ascii() || word.chars().count() > MAX_WORD_CHARS {
            return None;
        }
        let (mut low, mut high) = (0, self.len());
        for (place, unit) in word.encode_utf16().enumerate() {
            (low, high) = self.narrow(low, high, place, unit);
        }
        (low < high && self.word(low).eq(word.encode_utf16())).then(|| self.entry(low))
    }

    fn entry(&self, index: usize) -> Entry {
        let range = 2 * self.gloss_starts[index] as usize..2 * self.gloss_starts[index + 1] as usize;
        Entry { glosses: &self.glosses[range], probability: self.probabilities[index] }
    }

    /// Splits a run of Chinese characters into its most probable words (Viterbi over word frequencies).
    pub(super) fn cut(&self, run: &str, emit: &mut dyn FnMut(&str)) {
        let starts: Vec<usize> =
            run.char_indices().map(|(at, _)| at).chain(std::iter::once(run.len())).collect();
        let count = starts.len() - 1;
        let mut best = vec![f32::NEG_INFINITY; count + 1];
        let mut back = vec![0; count + 1];
        best[0] = 0.0;
        for start in 0..count {
            let mut offer = |length: usize, cost: f32| {
                if best[start] + cost > best[start + length] {
                    best[start + length] = best[start] + cost;
                    back[start + length] = start;
                }
            };
            let mut known = false;
            let (mut low, mut high) = (0, self.len());
            for (place, c) in run[starts[start]..].chars().take(MAX_WORD_CHARS).enumerate() {
                let Ok(unit) = u16::try_from(u32::from(c)) else { break };
                (low, high) = self.narrow(low, high, place, unit);
                if low == high {
                    break;
                }
                // The shortest word of the range comes first. If it has this length, a word ends here.
                if self.word_len(low) == place + 1 {
                    known |= place == 0;
                    offer(place + 1, log10(self.probabilities[low]));
                }
            }
            if !known {
                offer(1, UNKNOWN_LOG10);
            }
        }
        let mut cuts = vec![count];
        while let Some(&end) = cuts.last()
            && end > 0
        {
            cuts.push(back[end]);
        }
        for pair in cuts.windows(2).rev() {
            emit(&run[starts[pair[1]]..starts[pair[0]]]);
        }
    }
}

fn starts(lengths: &[u8]) -> Vec<u32> {
    let mut at = 0;
    let mut starts = Vec::with_capacity(lengths.len() + 1);
    starts.push(0);
    for length in lengths {
        at += u32::from(*length);
        starts.push(at);
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(run: &str) -> Vec<String> {
        let mut words = Vec::new();
        Chinese::new().unwrap().cut(run, &mut |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn runs_are_cut_into_probable_words() {
        assert_eq!(cut("我喜欢喝咖啡"), ["我", "喜欢", "喝", "咖啡"]);
        assert_eq!(cut("西湖"), ["西湖"]);
        assert_eq!(cut("𠀀茶"), ["𠀀", "茶"]);
        assert_eq!(cut(""), Vec::<String>::new());
    }

    #[test]
    fn every_word_of_the_table_is_found() {
        let chinese = Chinese::new().unwrap();
        for index in (0..chinese.len()).step_by(97) {
            let units: Vec<u16> = chinese.word(index).collect();
            let word = String::from_utf16(&units).unwrap();
            let entry = chinese.find(&word).unwrap_or_else(|| panic!("{word} is not found"));
            assert_eq!(entry.glosses, chinese.entry(index).glosses, "{word}");
        }
        assert!(chinese.find("咖啡咖啡咖啡").is_none());
    }
}
