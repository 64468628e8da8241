//! Synthetic texts: English and Chinese words drawn from a seeded model whose frequencies follow Zipf's law.
//!
//! The most frequent words are real function words, because a text analyser treats them specially. The others are made of
//! syllables or of pairs of common characters. Real text would be better, but its licences do not allow us to ship it.

/// A small, fast, seeded generator (SplitMix64): the same texts in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A number from 0 up to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

const ENGLISH: &str = "the of and to a in is you that it he was for on are as with his they I at be this have from or \
    one had by but not what all were we when your can said there";
const CHINESE: &str = "的 了 是 我 在 不 有 你 就 也 都 和 这 那 他 她 说 要 去 会 很 到 吗 吧 啊";
const ONSETS: &str = "b c d f g h j k l m n p r s t v w z bl br ch cl cr dr fl gr pl pr sh sl st th tr";
const VOWELS: &str = "a e i o u ai ea ee oo ou";
const CODAS: &str = "n r s t l m k ck nd st ng ss";
const CHARACTERS: &str = "大小中国人天地山水火风云月日年时分上下左右前后东西南北学生工作家书文字画电话车船飞机路门窗花草树木\
    鸟鱼马牛羊狗猫红黄蓝白黑高低长短新旧好坏多少开关早晚春夏秋冬雨雪冷热饭菜茶酒米面油盐糖医药病痛手足头眼耳口心";

/// The number of words of each language: about as many as a person uses.
const WORDS: usize = 30_000;

/// The words of one language, by falling frequency.
struct Lexicon {
    words: Vec<String>,
    /// The number of function words, which come first.
    function_words: usize,
    /// The cumulative frequencies.
    sums: Vec<f64>,
    separator: &'static str,
    stop: &'static str,
}

impl Lexicon {
    fn new(
        function_words: &str,
        separator: &'static str,
        stop: &'static str,
        mut invent: impl FnMut(usize) -> String,
    ) -> Self {
        let mut words: Vec<String> = function_words.split_whitespace().map(str::to_owned).collect();
        let function_words = words.len();
        words.extend((0..WORDS).map(&mut invent));
        let mut sum = 0.0;
        let sums = (1..=words.len()).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Self { sums: sums.collect(), words, function_words, separator, stop }
    }

    fn draw(&self, random: &mut Random) -> usize {
        let total = self.sums.last().copied().unwrap_or_default();
        let point = random.unit() * total;
        self.sums.partition_point(|sum| *sum <= point).min(self.words.len() - 1)
    }

    fn sentence(&self, random: &mut Random, count: usize) -> String {
        let words: Vec<&str> = (0..count).map(|_| self.words[self.draw(random)].as_str()).collect();
        words.join(self.separator) + self.stop
    }

    fn question(&self, random: &mut Random) -> String {
        let mut words = vec![self.words[random.below(self.function_words)].as_str()];
        while words.len() < 4 {
            let word = self.draw(random);
            if word >= self.function_words {
                words.push(&self.words[word]);
            }
        }
        words.join(self.separator)
    }

    /// Random words, at least three of them content words.
    fn long_question(&self, random: &mut Random, count: usize) -> String {
        loop {
            let words: Vec<usize> = (0..count).map(|_| self.draw(random)).collect();
            if words.iter().filter(|word| **word >= self.function_words).count() >= 3 {
                return words
                    .iter()
                    .map(|word| self.words[*word].as_str())
                    .collect::<Vec<_>>()
                    .join(self.separator);
            }
        }
    }
}

/// The word model.
pub(crate) struct Corpus {
    english: Lexicon,
    chinese: Lexicon,
}

impl Corpus {
    pub(crate) fn new() -> Self {
        let mut random = Random::new(1);
        let parts = |parts: &'static str| parts.split_whitespace().collect::<Vec<_>>();
        let (onsets, vowels, codas) = (parts(ONSETS), parts(VOWELS), parts(CODAS));
        let english = Lexicon::new(ENGLISH, " ", ".", |rank| {
            // Frequent words are short.
            let syllables = 1 + (rank > 100) as usize + (rank > 3_000) as usize;
            let mut word = String::new();
            for _ in 0..syllables {
                word += onsets[random.below(onsets.len())];
                word += vowels[random.below(vowels.len())];
            }
            word + codas[random.below(codas.len())]
        });
        let characters: Vec<char> = CHARACTERS.chars().filter(|c| !c.is_whitespace()).collect();
        let mut random = Random::new(2);
        let chinese = Lexicon::new(CHINESE, "", "。", |_| {
            [0, 0].map(|_| characters[random.below(characters.len())]).iter().collect()
        });
        Self { english, chinese }
    }

    /// One turn. Seven in ten are English; most are short, some are long.
    pub(crate) fn turn(&self, random: &mut Random) -> String {
        let lexicon = self.lexicon(random);
        let sentences = 1 + random.below(3);
        let parts: Vec<String> = (0..sentences)
            .map(|_| {
                let words = 4 + random.below(12);
                lexicon.sentence(random, words)
            })
            .collect();
        parts.join(lexicon.separator)
    }

    /// A question of three content words and one function word.
    pub(crate) fn question(&self, random: &mut Random) -> String {
        self.lexicon(random).question(random)
    }

    /// A natural question: five to twelve words, including function words; one in three is Chinese.
    pub(crate) fn long_question(&self, random: &mut Random) -> String {
        let lexicon = if random.below(3) == 0 { &self.chinese } else { &self.english };
        let count = 5 + random.below(8);
        lexicon.long_question(random, count)
    }

    fn lexicon(&self, random: &mut Random) -> &Lexicon {
        if random.below(10) < 7 { &self.english } else { &self.chinese }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_texts_and_another_seed_others() {
        let corpus = Corpus::new();
        let texts = |seed| {
            let mut random = Random::new(seed);
            (0..20).map(|_| corpus.turn(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(texts(7), texts(7));
        assert_ne!(texts(7), texts(8));
    }

    #[test]
    fn words_follow_zipf() {
        let corpus = Corpus::new();
        let mut random = Random::new(3);
        let mut counts = vec![0usize; corpus.english.words.len()];
        for _ in 0..100_000 {
            counts[corpus.english.draw(&mut random)] += 1;
        }
        let ratio = counts[0] as f64 / counts[9] as f64;
        assert!((8.0..12.0).contains(&ratio), "the first word should be ten times the tenth, not {ratio}");
    }
}
