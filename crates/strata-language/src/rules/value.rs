//! Normalises values and nouns, so that the same meaning has the same form.

use std::collections::BTreeSet;

use crate::{text, time};

/// Synonyms in values and in the nouns of slots.
const SAME: &[(&str, &str)] = &[
    ("mom", "mother"),
    ("mum", "mother"),
    ("dad", "father"),
    ("kid", "child"),
    ("kids", "child"),
    ("children", "child"),
    ("favorite", "favourite"),
    ("color", "colour"),
    ("movie", "film"),
    ("cell", "phone"),
    ("mobile", "phone"),
    ("smartphone", "phone"),
    ("bicycle", "bike"),
    ("e-mail", "email"),
    ("flat", "apartment"),
    ("puppies", "puppy"),
    ("fiancé", "fiance"),
    ("fiancée", "fiance"),
    ("neighbor", "neighbour"),
    ("soccer", "football"),
    ("nyc", "new york"),
    ("usa", "us"),
    ("老婆", "妻子"),
    ("太太", "妻子"),
    ("媳妇", "妻子"),
    ("爱人", "妻子"),
    ("老公", "丈夫"),
    ("先生", "丈夫"),
    ("爸爸", "父亲"),
    ("老爸", "父亲"),
    ("爸", "父亲"),
    ("妈妈", "母亲"),
    ("老妈", "母亲"),
    ("妈", "母亲"),
    ("小孩", "孩子"),
    ("娃", "孩子"),
    ("宝宝", "孩子"),
    ("猫咪", "猫"),
    ("小猫", "猫"),
    ("狗狗", "狗"),
    ("小狗", "狗"),
    ("哥", "哥哥"),
    ("弟", "弟弟"),
    ("姐", "姐姐"),
    ("妹", "妹妹"),
    ("薪水", "工资"),
    ("薪资", "工资"),
    ("月薪", "工资"),
    ("电邮", "邮箱"),
    ("闺女", "女儿"),
    ("素食者", "素"),
    ("素食主义者", "素"),
    ("素食", "素"),
    ("全素", "纯素"),
];

/// Words that add no meaning to a value.
const LIGHT: &str = "eating drinking playing eat drink play doing going to some any really very own new old kind kinds all lot lots of quite anymore also listen listening \
    watch watching read reading use music on year years euro euros dollar dollars month per";

/// The terms of a value, for comparison.
pub(super) fn terms(value: &str) -> BTreeSet<String> {
    let folded = text::fold(value);
    let plain: Vec<String> = folded
        .split(|c: char| {
            c.is_whitespace() || (c.is_ascii_punctuation() && !matches!(c, '@' | '.' | '-' | '+' | '#' | ','))
        })
        .map(|word| word.trim_matches(['.', ',', '-']))
        .filter(|word| !word.is_empty())
        .map(|word| number(word).map_or_else(|| same(word).to_owned(), |number| number.to_string()))
        .collect();
    let telling: Vec<&str> = plain
        .iter()
        .map(String::as_str)
        .filter(|word| !LIGHT.split_ascii_whitespace().any(|light| light == *word))
        .collect();
    let kept = if telling.is_empty() { plain.join(" ") } else { telling.join(" ") };
    let kept = chinese_value(&kept);
    text::analyse(&kept).into_iter().collect()
}

/// A Chinese value without measure words and light verbs; other text stays unchanged.
fn chinese_value(value: &str) -> String {
    if value.is_ascii() {
        return value.to_owned();
    }
    let mut value = value.trim_end_matches(['了', '的', '啦', '呢', '吧', '呀', '啊', '块', '元', '钱']);
    for light in ["吃", "喝", "看", "听", "一个", "一只", "一条", "一辆", "一台", "一部", "这个", "那个"]
    {
        if let Some(rest) = value.strip_prefix(light).filter(|rest| !rest.is_empty()) {
            value = rest;
        }
    }
    number(value).map_or_else(|| value.to_owned(), |number| number.to_string())
}

/// The normal form of a noun: singular, and one word for synonyms.
pub(super) fn noun(noun: &str) -> String {
    let noun = noun.trim().to_lowercase();
    let single = same(&noun);
    if single != noun {
        return single.to_owned();
    }
    let plural = noun.is_ascii() && noun.len() > 3 && noun.ends_with('s') && !noun.ends_with("ss");
    let single = if plural { &noun[..noun.len() - 1] } else { &noun };
    same(single).to_owned()
}

/// The normal form of a slot's words.
pub(super) fn slot(slot: &str) -> String {
    let words = text::fold(slot);
    let words: Vec<&str> = words
        .split(' ')
        .filter(|word| !["all-time", "absolute", "current", "new", "monthly", "the", "my"].contains(word))
        .map(same)
        .collect();
    words.join(" ")
}

fn same(word: &str) -> &str {
    SAME.iter().find(|(other, _)| *other == word).map_or(word, |(_, one)| one)
}

/// A number in digits or words, in either language.
pub(super) fn number(text: &str) -> Option<u64> {
    let digits: String = text.chars().filter(|c| *c != ',').collect();
    if let Ok(number) = digits.parse() {
        return Some(number);
    }
    english_number(text).or_else(|| time::chinese_number(&text.chars().collect::<Vec<_>>()))
}

fn english_number(text: &str) -> Option<u64> {
    if text == "zero" {
        return Some(0);
    }
    let Some((tens, ones)) = text.split_once('-') else { return time::number(text).map(u64::from) };
    let (tens, ones) = (time::number(tens)?, time::number(ones)?);
    (tens >= 20 && ones < 10).then_some(u64::from(tens + ones))
}

/// The value without an article before it.
pub(super) fn without_article(value: &str) -> &str {
    ["a ", "an ", "the ", "A ", "An ", "The "]
        .iter()
        .find_map(|article| value.strip_prefix(article))
        .unwrap_or(value)
}

/// Whether this may name a place: it is not a room, not a state of mind and not a long phrase.
pub(super) fn may_be_a_place(value: &str) -> bool {
    const NO_PLACE: &str = "fear harmony peace poverty luxury hiding general addition case front bed person between debt silence style town work school church \
        college university home bed sleep heaven hell";
    let words = value.split_whitespace().count();
    words <= 5 && !NO_PLACE.split_whitespace().any(|no| no == value.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_both_languages() {
        for (text, expected) in [
            ("12", Some(12)),
            ("5,000", Some(5000)),
            ("two", Some(2)),
            ("twenty-three", Some(23)),
            ("forty", Some(40)),
            ("zero", Some(0)),
            ("two-three", None),
            ("两", Some(2)),
            ("十五", Some(15)),
            ("二十三", Some(23)),
            ("三千五", Some(3500)),
            ("三千零五", Some(3005)),
            ("一万二", Some(12000)),
            ("cat", None),
            ("上海", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }

    #[test]
    fn values_that_mean_the_same_are_the_same() {
        for (a, b) in [
            ("hiking", "hikes"),
            ("the violin", "violin"),
            ("eating sushi", "sushi"),
            ("two", "2"),
            ("喝咖啡", "咖啡"),
            ("三千块", "3000元"),
            ("爬山", "爬山"),
            ("吃榴莲了", "榴蓮"),
        ] {
            assert_eq!(terms(a), terms(b), "{a} {b}");
        }
        assert_ne!(terms("green tea"), terms("tea"));
    }
}
