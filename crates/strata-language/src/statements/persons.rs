//! Other persons in a sentence: whom a pronoun names, from the sentence before it, and who has to do something.

use super::chinese::is_chinese;
use crate::Pattern;

const ENGLISH_KIN: &str = "mum|mom|mother|dad|father|sister|brother|son|daughter|wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|aunt|uncle|niece|nephew|cousin|\
    grandmother|grandma|granny|nan|grandfather|grandpa|grandad|boss|manager|neighbour|neighbor|flatmate|roommate|colleague|friend|teacher|doctor|landlord|landlady|\
    mentor|tutor|coach|therapist|dentist|supervisor|stepmother|stepfather|mother-in-law|father-in-law|sister-in-law|brother-in-law";
const CHINESE_KIN: &str = "男朋友|女朋友|爸爸|妈妈|媽媽|父亲|母亲|父親|母親|哥哥|姐姐|弟弟|妹妹|爷爷|奶奶|爺爺|外公|外婆|女儿|女兒|儿子|兒子|老婆|老公|妻子|丈夫|太太|先生|\
    男友|女友|老板|老闆|同事|领导|領導|室友|房东|房東|邻居|鄰居|闺蜜|閨蜜|导师|導師|老师|老師|表妹|表弟|表哥|表姐|堂妹|堂弟|堂哥|堂姐|爸|妈|媽|哥|姐|弟|妹";

/// A sentence that begins with «she», «he», 她 or 他, with the person of the sentence before it instead. `None` if it begins
/// with no such pronoun, or if the sentence before does not name exactly one person by their relation to the speaker.
pub fn with_person(sentence: &str, before: &str) -> Option<String> {
    if is_chinese(sentence) { in_chinese(sentence, before) } else { in_english(sentence, before) }
}

/// Whether a sentence begins with a pronoun for somebody else.
pub fn begins_with_pronoun(sentence: &str) -> bool {
    let sentence = sentence.trim();
    let first = sentence.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default().to_lowercase();
    matches!(first.as_str(), "she" | "he")
        || sentence.starts_with(['她', '他'])
            && !sentence.starts_with("他们")
            && !sentence.starts_with("他們")
}

/// Whether a sentence tells what somebody else has to do, and asks nothing of the speaker: «my colleague said she has to move her
/// car». A task of a child or a partner is often the speaker's own, so it counts only if it is reported.
pub fn is_task_of_another(sentence: &str) -> bool {
    const DUTY: &str = r"(?:still |also |first |now |really |just )*(?:has to|have to|had to|needs? to|must|should|ought to|will|has got to|gotta|is going to|wants? to|plans? to|is supposed to)";
    const CHINESE_DUTY: &str = "(?:要(?:[^的我咱]|$)|得|必须|必須|需要|应该|應該|该|該|打算|准备|準備)";
    static ENGLISH: Pattern = Pattern::made(|| {
        format!(
            r"(?i)\b(?:she|he)(?:['’]ll|['’]s| {DUTY})\b|\b(?:said|says|mentioned|told (?:me|us))(?: that)? they {DUTY}\b|\b(?:my|our|the user['’]s) (?:\w+ )?(?:colleague|co-?worker|boss|manager|neighbou?r|flatmate|roommate|classmate|friend|teacher|landlord|landlady|tenant|client|customer)(?-i:,? [A-Z][\p{{L}}-]+)?,? {DUTY}\b"
        )
    });
    static CHINESE: Pattern = Pattern::made(|| {
        format!(
            "(?:[说說讲講]|告诉我|告訴我|提到|表示)[，,：:]?(?:她|他|自己)[^我咱，。]{{0,8}}?{CHINESE_DUTY}|^(?:她|他)[^我咱，。]{{0,6}}?{CHINESE_DUTY}|^(?:我|我们|我們|用户|用戶)?(?:的)?(?:同事|同学|同學|朋友|室友|邻居|鄰居|老板|老闆|领导|領導|客户|客戶|房东|房東)[^我咱，。的]{{0,4}}?{CHINESE_DUTY}"
        )
    });
    static ASKED: Pattern = Pattern::new(
        r"(?i)\b(?:i|i['’]\w+|we|we['’]\w+|let['’]s|remind (?:me|us|him|her|them)|(?:me|us) to|help (?:him|her|them)|to be \w+(?:ed|en|t|ven))\b|(?:我|咱)[们們]?(?:也|得|要|必须|必須|需要|应该|應該|帮|幫|去|来|來|答应|答應|记得|記得)|[让讓叫要请請](?:我|咱)|提醒|记得|記得|帮[她他]|幫[她他]|[给給][她他]",
    );
    let is = |form: &Pattern| form.is_match(sentence.trim());
    is(if is_chinese(sentence) { &CHINESE } else { &ENGLISH }) && !is(&ASKED)
}

fn in_english(sentence: &str, before: &str) -> Option<String> {
    static KIN: Pattern = Pattern::made(|| {
        format!(
            r"(?i)\b(?P<who>(?:my|our) (?:(?:older|younger|elder|big|little|late|old|new|best|ex|half|twin) )?(?:{ENGLISH_KIN})(?-i:,? (?P<name>[A-Z][\p{{L}}-]+))?)\b"
        )
    });
    static OTHER: Pattern = Pattern::new(r"(?i)\b(?:she|he|her|him|his|they|them)\b");
    static START: Pattern = Pattern::new(r"^(?i:she|he)(?P<end>['’]s|['’]ll|['’]d)? ");
    let start = START.captures(sentence.trim())?;
    let mut kin = KIN.get()?.captures_iter(before);
    let only = kin.next()?;
    if kin.next().is_some()
        || OTHER.is_match(before)
        || has_other_name(before, only.name("name").map(|name| name.as_str()))
    {
        return None;
    }
    let who = only.name("who")?.as_str().replace(',', "");
    let end = start.name("end").map_or("", |end| end.as_str());
    let rest = &sentence.trim()[start.get(0)?.end()..];
    let mut letters = who.chars();
    let who: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    Some(format!("{who}{end} {rest}"))
}

/// Whether a sentence has a capitalised word inside that is not this name: it may be another person.
fn has_other_name(sentence: &str, name: Option<&str>) -> bool {
    let words =
        sentence.split_whitespace().skip(1).map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let is_name = |word: &str| {
        let stem = word.split(['\'', '’']).next().unwrap_or_default();
        stem.starts_with(char::is_uppercase) && stem != "I" && Some(stem) != name
    };
    let mut before = "";
    for word in words {
        // A place or a company follows a preposition.
        if is_name(word) && !matches!(before, "in" | "at" | "to" | "from" | "near" | "on" | "for" | "of") {
            return true;
        }
        before = word;
    }
    false
}

fn in_chinese(sentence: &str, before: &str) -> Option<String> {
    static KIN: Pattern = Pattern::made(|| format!("(?:我们|我們|我)(?:的)?(?:{CHINESE_KIN})"));
    let sentence = sentence.trim();
    let rest = sentence.strip_prefix(['她', '他']).filter(|rest| !rest.starts_with(['们', '們', '的']))?;
    let mut kin = KIN.get()?.find_iter(before);
    let only = kin.next()?;
    (kin.next().is_none() && !before.contains(['她', '他', '和', '跟']))
        .then(|| format!("{}{rest}", only.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_to_do_is_no_task_of_the_speaker() {
        for others in [
            "My colleague Mia said she has to renew her visa",
            "Our neighbour told me that he needs to repaint the fence by June",
            "My classmate Tomas must return the projector on Friday",
            "She still has to hand in the thesis.",
            "同事小赵说她要交报告",
            "室友跟我说他得去补办护照",
            "我同事要搬家",
        ] {
            assert!(is_task_of_another(others), "{others}");
        }
        for own in [
            "My boss said I have to renew my visa",
            "Mia said she has to be picked up at five",
            "My colleague said she has to move, so I should help her",
            "I need to call my colleague",
            "My passport has to be renewed",
            "The plants need to go inside",
            "My daughter needs to see the dentist on Monday",
            "同事小赵让我交报告",
            "同事要的报告周五前交",
            "我要交报告",
            "提醒同事要交报告",
        ] {
            assert!(!is_task_of_another(own), "{own}");
        }
    }

    #[test]
    fn one_person_is_plain() {
        let check = |sentence: &str, before: &str, expected: Option<&str>| {
            assert_eq!(with_person(sentence, before).as_deref(), expected, "{before} {sentence}");
        };
        check("She turns 50 in May.", "My aunt Lena is visiting us.", Some("My aunt Lena turns 50 in May."));
        check("He's moving to Lyon.", "I had lunch with my brother.", Some("My brother's moving to Lyon."));
        check("She turns 50 in May.", "My aunt and my mother are here.", None);
        check("She turns 50.", "My aunt met Vera.", None);
        check("It is old.", "My aunt has a car.", None);
        check("她下个月退休。", "我姑妈不在，我妈妈来了。", Some("我妈妈下个月退休。"));
        check("他搬到大连了", "我哥和我弟吵架了", None);
        assert!(begins_with_pronoun("He sings") && begins_with_pronoun("她唱歌"));
        assert!(!begins_with_pronoun("Helen sings") && !begins_with_pronoun("他们唱歌"));
    }
}
