//! Questions that ask for a number, and texts that can answer them.
//!
//! «How old is Ravi?» is about the same person as «Ravi likes chess», and no ranking by meaning keeps the two apart. A text
//! without any number does not answer such a question. Questions about a moment («when …») are left alone: the day on which
//! something was said often is the answer.

const ASKED: [&str; 26] = [
    "how many",
    "how much",
    "how old",
    "how tall",
    "how big",
    "how heavy",
    "how far",
    "how wide",
    "how high",
    "how deep",
    "what time",
    "at what time",
    "what age",
    "what price",
    "which price",
    "what number",
    "which number",
    "what size",
    "which size",
    "what percentage",
    "what salary",
    "phone number",
    "what does it cost",
    "which floor",
    "what floor",
    "what year",
];

const ASKED_IN_CHINESE: [&str; 24] = [
    "多少",
    "几岁",
    "幾歲",
    "多大",
    "几点",
    "幾點",
    "几个",
    "幾個",
    "几只",
    "幾隻",
    "几号",
    "幾號",
    "几楼",
    "幾樓",
    "几次",
    "幾次",
    "几年",
    "幾年",
    "多高",
    "多重",
    "多远",
    "多遠",
    "电话号码",
    "電話號碼",
];

/// English words that tell a number without a digit.
const NUMBER_WORDS: &str = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion half \
    quarter dozen dozens couple both twice once single double triple pair twins triplets only alone none no nobody never \
    first second third fourth fifth sixth seventh eighth ninth tenth noon midnight free newborn baby teenager few \
    several many hundreds thousands";

const CHINESE_NUMBERS: &str = "零〇一二两兩三四五六七八九十百千万萬亿億半双雙俩倆仨几幾";

/// Whether a question asks for an amount, an age, a price, a time of day or another number.
pub(crate) fn asks_amount(question: &str) -> bool {
    let lower = question.to_lowercase();
    ASKED.iter().any(|asked| lower.contains(asked))
        || ASKED_IN_CHINESE.iter().any(|asked| question.contains(asked))
}

/// Whether a text has a number in it, in digits or in words.
pub(crate) fn tells_amount(text: &str) -> bool {
    if text.chars().any(|c| c.is_numeric() || CHINESE_NUMBERS.contains(c)) {
        return true;
    }
    let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.any(|word| NUMBER_WORDS.split_whitespace().any(|number| number.eq_ignore_ascii_case(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_for_a_number_is_known_by_its_words() {
        for question in
            ["How old is Ravi?", "what time does the ferry leave", "我家的猫几岁了？", "房租多少钱"]
        {
            assert!(asks_amount(question), "{question}");
        }
        for question in
            ["When did Priya start school?", "Who owns the boat?", "How do I get there?", "谁来接我"]
        {
            assert!(!asks_amount(question), "{question}");
        }
    }

    #[test]
    fn a_number_may_be_a_word() {
        for text in ["Ravi turned nine", "the rent is 840", "She has twins.", "我有两只猫", "每月１２００"]
        {
            assert!(tells_amount(text), "{text}");
        }
        for text in ["Ravi likes chess", "We moved to Lisbon", "我住在泉州"] {
            assert!(!tells_amount(text), "{text}");
        }
    }
}
