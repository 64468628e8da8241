//! Finds names in a text: capitalised words in English; in Chinese book titles and words before a kind of place or
//! person.
//!
//! Only rules are used. A name that looks like an ordinary word is not found.

use strata_language::Pattern;

/// Capitalised words that are not names.
const NO_NAMES: [&str; 44] = [
    "I",
    "I'm",
    "I've",
    "I'd",
    "I'll",
    "OK",
    "Ok",
    "Okay",
    "Yes",
    "No",
    "Hi",
    "Hello",
    "Hey",
    "Thanks",
    "Thank",
    "Please",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
    "Mr",
    "Mrs",
    "Ms",
    "Dr",
    "The",
    "A",
    "An",
    "User",
    "Assistant",
];

/// Chinese words that may precede a name and do not belong to it.
const BEFORE: [&str; 34] = [
    "我们", "他们", "今天", "明天", "昨天", "一家", "那家", "这家", "一个", "我", "你", "他", "她", "在",
    "去", "到", "从", "是", "和", "的", "了", "给", "与", "把", "被", "叫", "跟", "住", "来", "为", "于",
    "对", "向", "请",
];

static QUOTED: Pattern = Pattern::new(r"《([^《》\n]{1,40})》");

static SUFFIXED: Pattern = Pattern::made(|| {
    let suffixes = "先生|女士|小姐|老师|医生|教授|经理|同学|师傅|公司|大学|学院|中学|小学|医院|银行|机场|火车站|车站|博物馆|图书馆|餐厅|酒店";
    format!(r"\p{{Han}}{{1,8}}?(?:{suffixes})")
});

static NAMED: Pattern = Pattern::new(r"(?:名叫|叫做|叫|名字是)(\p{Han}{2,4})(?:[，。！？；、\s]|$)");

/// The names in a text, each once, in the order of their first occurrence.
pub(super) fn entities(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if !name.is_empty() && !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    };
    for sentence in sentences(text) {
        english(sentence, &mut add);
    }
    let captured =
        |pattern: &'static Pattern| pattern.get().into_iter().flat_map(|regex| regex.captures_iter(text));
    for name in captured(&QUOTED).chain(captured(&NAMED)).filter_map(|name| name.get(1)) {
        add(name.as_str());
    }
    for name in SUFFIXED.get().into_iter().flat_map(|regex| regex.find_iter(text)) {
        let name = bare(name.as_str());
        // The name must be longer than the suffix itself.
        if name.chars().count() > 2 {
            add(name);
        }
    }
    found
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut start = 0;
    let ends: Vec<usize> = strata_language::sentences::ends(text).chain([text.len()]).collect();
    ends.into_iter().map(move |end| {
        let sentence = &text[start.min(end)..end];
        start = end;
        sentence
    })
}

/// Runs of capitalised words. A single word at the beginning of a sentence does not count, because every first word has
/// a capital letter.
fn english(sentence: &str, add: &mut impl FnMut(&str)) {
    let mut run: Vec<&str> = Vec::new();
    let mut begins = true;
    for (place, word) in sentence.split_whitespace().enumerate() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let bare = bare.strip_suffix("'s").or_else(|| bare.strip_suffix("’s")).unwrap_or(bare);
        let is_name = bare.chars().next().is_some_and(|c| c.is_uppercase() && !is_han(c))
            && bare.chars().count() > 1
            && !NO_NAMES.contains(&bare);
        if is_name {
            if run.is_empty() {
                begins = place == 0;
            }
            run.push(bare);
        }
        // A comma, a bracket or a possessive ends a name.
        if !is_name || !word.ends_with(bare) {
            flush(&mut run, begins, add);
        }
    }
    flush(&mut run, begins, add);
}

fn flush(run: &mut Vec<&str>, begins: bool, add: &mut impl FnMut(&str)) {
    if run.len() > usize::from(begins) && run.len() <= 5 {
        add(&run.join(" "));
    }
    run.clear();
}

fn is_han(c: char) -> bool {
    ('\u{3400}'..='\u{9fff}').contains(&c)
}

fn bare(name: &str) -> &str {
    let mut name = name;
    while let Some(rest) = BEFORE.iter().find_map(|word| name.strip_prefix(word)) {
        name = rest;
    }
    // In «在大理的人民医院» the part after the last particle is the name.
    name.rsplit(['的', '在', '去', '到', '是']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_both_languages() {
        let check = |text: &str, expected: &[&str]| assert_eq!(entities(text), expected, "{text}");
        check("Yesterday I met Ada Lovelace in London, and Bob's dog.", &["Ada Lovelace", "London", "Bob"]);
        check("Thanks! Please call Dr. Chen on Monday.", &["Chen"]);
        check("New York is large. Nothing else.", &["New York"]);
        check("我在北京大学读书，李老师推荐了《红楼梦》。", &["红楼梦", "北京大学", "李老师"]);
        check("我女儿叫小雨。她去了人民医院。", &["小雨", "人民医院"]);
        check("no names here, just i and you", &[]);
        check("公司很好", &[]);
    }
}
