//! The facts of a compound sentence: «I live in Malmö and keep bees» has two.
//!
//! A sentence is cut where each part can stand alone, and the subject is carried over. It stays whole where a part would lose
//! its meaning: in quotations and lists of things, under a condition or a report, and where a pronoun needs the part
//! before it. No value of the sentence is lost over all its parts.

mod chinese;
mod english;
mod verbs;

use super::chinese::is_chinese;
use super::values;
pub(super) use verbs::{is_base, is_finite, is_past, is_verb, names_something};

/// The facts of a sentence, in order and in the words of the speaker; the sentence itself if it is one fact.
pub fn facts(sentence: &str) -> Vec<String> {
    let sentence = sentence.trim();
    let facts = if is_chinese(sentence) { chinese::facts(sentence) } else { english::facts(sentence) };
    if facts.len() > 1 && values::are_kept(sentence, &facts) { facts } else { vec![sentence.to_owned()] }
}

/// The rest of a statement in the third person, with the speaker as its subject if it lost it: «plays handball» after
/// «The user lives in Malmö» or «Ida lives in Malmö».
pub fn with_subject(statement: &str, rest: &str) -> String {
    let user = ["The user", "用户", "用戶"].into_iter().find(|subject| statement.starts_with(subject));
    let subject = user.or_else(|| english::named_subject(statement));
    let lost = |subject: &&str| !rest.starts_with(subject);
    match subject.filter(lost) {
        Some(subject) if is_chinese(subject) => match chinese::begins_with_verb(rest) {
            true => format!("{subject}{rest}"),
            false => rest.to_owned(),
        },
        Some(subject) if english::begins_with_verb(rest) => {
            let mut letters = rest.chars();
            let first: String = letters.next().into_iter().flat_map(char::to_lowercase).collect();
            format!("{subject} {first}{}", letters.as_str())
        }
        _ => rest.to_owned(),
    }
}

/// Whether a Chinese text begins with what it speaks of, and not with a verb whose subject stands before it.
pub(super) fn begins_with_subject(text: &str) -> bool {
    text.starts_with("用户") || text.starts_with("用戶") || !chinese::begins_with_verb(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sentence: &str, expected: &[&str]) {
        assert_eq!(facts(sentence), expected, "{sentence}");
    }

    fn stays(sentence: &str) {
        check(sentence, &[sentence]);
    }

    #[test]
    fn english_facts_stand_alone() {
        check("I live in Tampere and sell honey.", &["I live in Tampere.", "I sell honey."]);
        check(
            "Our plumber is Mr Okafor and our landlord is Petra.",
            &["Our plumber is Mr Okafor.", "our landlord is Petra."],
        );
        check("i rent a boat, i swim every day", &["i rent a boat", "i swim every day"]);
        check("I left Vodafone and joined Orange in May", &["I left Vodafone", "I joined Orange in May"]);
        check("I've sold the van and bought a bike", &["I've sold the van", "I've bought a bike"]);
        check(
            "My aunt lives in Gent and teaches Latin.",
            &["My aunt lives in Gent.", "My aunt teaches Latin."],
        );
        check("I'm vegan but eat honey.", &["I'm vegan.", "I eat honey."]);
        check(
            "I work at Nokia, and my badge number is 4471.",
            &["I work at Nokia.", "my badge number is 4471."],
        );
        check(
            "I have to call the bank, order tiles and paint the fence.",
            &["I have to call the bank.", "I have to order tiles.", "I have to paint the fence."],
        );
        check("return the drill, water plants, buy salt", &["return the drill", "water plants", "buy salt"]);
        check(
            "Last year I left Vodafone and joined Orange.",
            &["Last year I left Vodafone.", "Last year I joined Orange."],
        );
        check("Moved to Gdynia and started at Wärtsilä.", &["Moved to Gdynia.", "I started at Wärtsilä."]);
        check(
            "My cellar was flooded, but luckily, I saved the wine.",
            &["My cellar was flooded.", "I saved the wine."],
        );
        check("I left Vela in May and teach at Orrin.", &["I left Vela in May.", "I teach at Orrin."]);
    }

    #[test]
    fn english_that_belongs_together_stays_whole() {
        stays("I like tea and coffee.");
        stays("I bought bread and water for the week.");
        stays("I was born and raised in Ghent.");
        stays("My cousin who lives in Bari and teaches Latin is here.");
        stays("If it rains I stay at home and read novels.");
        stays("I think Ana left Lyon and my boss is angry.");
        stays("We had a canoe but sold it.");
        stays("I don't eat pork and drink milk rarely.");
        stays("She said \"I live here and keep bees\" to me.");
        stays("The gap between me and my brother is ten years.");
        stays("I have to go and buy salt.");
        stays("The regatta was in Kiel, and me and my crew had fun.");
        stays("We sang and we cooked together.");
        stays("I've done the crossing, and while it takes longer, my crew likes it.");
        stays("I eat fish because I like it and drink wine with it.");
        stays("I'm knitting a jumper for Ida, and the deadline is 5 May.");
    }

    #[test]
    fn a_rest_has_a_subject() {
        let check =
            |statement: &str, rest: &str, expected: &str| assert_eq!(with_subject(statement, rest), expected);
        check("The user rents a flat, plays chess", "Plays chess", "The user plays chess");
        check("The user rents a flat, the rent is 900", "The rent is 900", "The rent is 900");
        check("Ida rents a flat, plays chess", "Plays chess", "Ida plays chess");
        check("用户租房，喜欢下棋", "喜欢下棋", "用户喜欢下棋");
        check("用户租房，房租九百", "房租九百", "房租九百");
    }

    #[test]
    fn chinese_facts_stand_alone() {
        check(
            "我住在昆明，养了一条狗，平时用京东云。",
            &["我住在昆明。", "我养了一条狗。", "我平时用京东云。"],
        );
        check("我在邮局上班，老家在绵阳", &["我在邮局上班", "我老家在绵阳"]);
        check("我妹在大连读书，喜欢画画。", &["我妹在大连读书。", "我妹喜欢画画。"]);
        check("我要续签护照，买邮票，还要修门", &["我要续签护照", "我要买邮票", "我还要修门"]);
        check("屋顶要补，还要给漆匠回个信。", &["屋顶要补。", "还要给漆匠回个信。"]);
        check("记得换灯泡，还要买两桶机油", &["记得换灯泡", "还要买两桶机油"]);
    }

    #[test]
    fn chinese_that_belongs_together_stays_whole() {
        stays("如果下雨，我就在家看书。");
        stays("我有一条狗，它叫豆豆。");
        stays("我搬到昆明，因为房租便宜。");
        stays("我听说老王走了，去了大连。");
        stays("我喜欢茶，咖啡，牛奶。");
        stays("我不是医生，是护士。");
        stays("我有个表妹，叫小荷，在大连当老师。");
        stays("屋顶要补，要下雨就算了。");
        stays("要是屋顶要补，得先问房东。");
        stays("屋顶要补，它漏了。");
    }
}
