//! Recognises by a sentence's form that something is done, or that it goes on about a thing that was named before.

use super::chinese::is_chinese;
use crate::Pattern;

/// Whether a sentence says that the speaker has done something, and not that it is still to be done.
pub fn says_done(sentence: &str) -> bool {
    static ENGLISH: Pattern = Pattern::new(
        r"(?i)^(?:(?:and|also|so|ok|okay|yes|yay|oh|finally|well),? )*(?:(?:i|we) (?:have |had )?|(?:i|we)['’]ve )?(?:just |finally |already |now |also |both )*(?:finished|completed|submitted|filed|handed in|sent|paid|bought|booked|renewed|returned|fixed|repaired|cleaned|posted|mailed|ordered|picked up|dropped off|signed|done|did|collected|cancelled|canceled|sorted|called|emailed|painted|washed|wrote|delivered|replaced|installed)\b",
    );
    static OPEN: Pattern = Pattern::new(
        r"(?i)\b(?:need|have to|has to|must|should|still|going to|want|yet|except|but not|remember to|tomorrow|next)\b",
    );
    static CHINESE: Pattern =
        Pattern::new("完.{0,8}了|(?:好|掉|过|過|成|到)了|搞定|办妥|辦妥|已经.*了|已經.*了");
    static CHINESE_OPEN: Pattern = Pattern::new(
        "还没|還沒|没有|沒有|需要|必须|必須|打算|准备|準備|记得|記得|还要|還要|还得|還得|要.{0,8}了$|该.{0,8}了|明天|下周|下週|下个|下個",
    );
    let is_match = |form: &Pattern| form.is_match(sentence.trim());
    if is_chinese(sentence) {
        is_match(&CHINESE) && !is_match(&CHINESE_OPEN)
    } else {
        is_match(&ENGLISH) && !is_match(&OPEN)
    }
}

/// Whether a sentence that says that something is done cannot mean a thing that it shares no word with: it thanks for help («that
/// worked», 明白了), or names something else («done with lunch»).
pub fn says_done_elsewhere(sentence: &str) -> bool {
    static HELPED: Pattern = Pattern::new(
        r"(?i)\b(?:that|this|it)(?:['’]s|\s+(?:is|was|has|really|totally|did))?(?:\s+(?:so|very|really|super|all|quite|exactly|finally|just)){0,2}\s+(?:worked|works|helped|helps|helpful|useful|clears?|cleared|clear|makes?\s+sense|the\s+trick|perfect|great|brilliant|lovely|awesome)\b|^(?:\W*(?:谢谢|謝謝|多谢|多謝|太好了|好的|嗯)\W*)*(?:很有用|很有帮助|很有幫助|有帮助|有幫助|明白了|懂了|清楚了|管用了?|好用)\W*$",
    );
    static NAMED: Pattern = Pattern::new(
        r"(?i)^(?:\W*(?:and|also|so|ok|okay|yes|all|finally|well|just|now|i['’]?m|we['’]?re)\b\W*){0,3}(?:done|finished|through)\s+with\s+(?P<thing>\w+)",
    );
    const POINTS: [&str; 6] = ["it", "that", "this", "them", "those", "these"];
    let thing = NAMED.get().and_then(|named| named.captures(sentence)).and_then(|found| found.name("thing"));
    let names_one = thing.is_some_and(|thing| !POINTS.contains(&thing.as_str().to_lowercase().as_str()));
    HELPED.is_match(sentence) || names_one
}

/// Whether a sentence begins with words that take back what was said before it: «no, sorry, …», 算了.
pub fn takes_back(sentence: &str) -> bool {
    static FORM: Pattern = Pattern::new(
        r"(?i)^(?:\W*(?:oh|ok|okay|well|hmm)\b)*\W*(?:no|nope|sorry|wait|scratch that|correction|oops|i mean|my bad)\b|^(?:哦|啊|嗯|，)*(?:算了|不对|不對|错了|錯了|更正|说错|說錯|不[，,])",
    );
    FORM.is_match(sentence.trim())
}

/// Whether a sentence says that something will happen at another time, and so is still to be done.
pub fn says_postponed(sentence: &str) -> bool {
    static FORM: Pattern = Pattern::new(
        r"(?i)\b(?:postpone[ds]?|reschedul\w+|put(?:ting)? (?:\w+ ){0,3}(?:off|back)|push(?:ed|ing)? (?:\w+ ){0,3}(?:back|to)|(?:been|was|were|got|is|they|they['’]ve|have) (?:moved|shifted|delayed) (?:\w+ ){0,3}(?:to|until|till|by)|not (?:before|until|till)|do (?:it|that) (?:on|in|at|next|tomorrow|later)|won['’]t be (?:before|until|till))\b|推[迟遲到]|延[期后後到迟遲]|改[到在天期]|挪到|改成.{0,4}[号號日点點周週月]|再[弄做办辦说說去]",
    );
    FORM.is_match(sentence) && !says_done(sentence)
}

/// Whether a statement gives a cause.
pub fn tells_cause(statement: &str) -> bool {
    static FORM: Pattern = Pattern::new(
        r"(?i)\b(?:because|due to|owing to|caused by|caused|root cause|(?:the|real|actual|true) (?:cause|reason|culprit)|culprit|turned out|turns out|came from|stemmed from|traced (?:back )?to|was to blame)\b|因为|因為|由于|由於|原因|导致|導致|造成|引起|罪魁|问题出在|問題出在|是[^，。]{1,12}(?:闹|鬧|惹|害)的",
    );
    FORM.is_match(statement)
}

/// Whether a sentence denies or corrects what was said before.
pub fn denies(sentence: &str) -> bool {
    static FORM: Pattern = Pattern::new(
        r"(?i)\b(?:(?:(?:is|was|are|were)n['’]t|not) (?:the|a|an|its|their|because|due|caused|from|my|our)|after all|actually|in fact|in reality|wrong(?:ly)?|mistaken|mistake|false|correction)\b|不是|并非|並非|其实|其實|搞错|搞錯|弄错|弄錯|说错|說錯|记错|記錯|误会|誤會|更正|纠正|糾正",
    );
    FORM.is_match(sentence)
}

/// Whether a sentence speaks about something that was named before: by a pronoun, or without naming anything.
pub fn refers_back(sentence: &str) -> bool {
    static ENGLISH: Pattern = Pattern::new(
        r"(?i)\b(?:it|its|they|them|their|she|her|he|him|his|that|this|those|these|ones?|there|both|neither)\b",
    );
    static CHINESE: Pattern = Pattern::new(
        "[它她他这這那牠]|^(?:已经|已經|都|终于|終於)?.{1,2}(?:完|好|掉|过|過)?了(?:[，。！,!]|$)",
    );
    let sentence = sentence.trim();
    if is_chinese(sentence) {
        return CHINESE.is_match(sentence);
    }
    let clause = sentence.split([',', '.', '!', ';', ':']).next().unwrap_or_default();
    clause.split_whitespace().count() <= 2 || ENGLISH.is_match(sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_is_not_to_be_done() {
        for done in [
            "I finished the insurance form",
            "We've paid the plumber.",
            "just bought the paint",
            "我交完水费了",
            "水费已经交了",
            "搞定，签证办妥了",
        ] {
            assert!(says_done(done), "{done}");
        }
        for open in [
            "I have to finish the form",
            "I still need to pay the plumber",
            "我要交水费了",
            "水费还没交",
            "I finished, but still need to post it",
        ] {
            assert!(!says_done(open), "{open}");
        }
    }

    #[test]
    fn thanks_and_other_things_end_nothing_else() {
        for elsewhere in [
            "Nice, that worked!",
            "Great, that clears it up.",
            "Thanks, that was very helpful!",
            "this makes sense now",
            "Done with breakfast.",
            "OK, finished with the dishes",
            "谢谢，明白了",
            "很有帮助！",
        ] {
            assert!(says_done_elsewhere(elsewhere), "{elsewhere}");
        }
        for here in [
            "Done!",
            "That's done",
            "Finished it last night",
            "Handed in my notice",
            "搞定了",
            "交完了",
            "done with it",
        ] {
            assert!(!says_done_elsewhere(here), "{here}");
        }
    }

    #[test]
    fn what_is_postponed_is_still_to_be_done() {
        for postponed in [
            "They've put my eye test off to the 19th",
            "Had to push the oil change back a week",
            "the viewing was moved to Friday",
            "no time, I'll do it at Easter, not before",
            "面试推到下周三了",
            "体检改到十九号",
        ] {
            assert!(says_postponed(postponed), "{postponed}");
        }
        for other in ["I moved to Graz", "I cancelled the viewing", "我改名了", "Done with the eye test"]
        {
            assert!(!says_postponed(other), "{other}");
        }
    }

    #[test]
    fn a_correction_takes_back_what_was_said() {
        for back in
            ["No, sorry, it leaves from Kiel.", "oh wait, it's the 9th", "算了，不去了", "不对，是周五"]
        {
            assert!(takes_back(back), "{back}");
        }
        assert!(!takes_back("It has no rudder.") && !takes_back("不错，很好用") && !takes_back("Nora rows."));
    }

    #[test]
    fn causes_and_denials_are_known_by_their_form() {
        for cause in ["The boat sank because of a rotten plank", "漏水的原因是垫圈老化", "是那只猫惹的祸"]
        {
            assert!(tells_cause(cause), "{cause}");
        }
        assert!(!tells_cause("The boat is in Kiel") && !tells_cause("船在青岛"));
        for denial in ["It wasn't the plank", "The plank was fine after all", "其实船在大连", "我搞错了"]
        {
            assert!(denies(denial), "{denial}");
        }
        for later in ["The plank is new", "The boat doesn't leak any more", "船板换了新的，没有再漏"]
        {
            assert!(!denies(later), "{later}");
        }
    }

    #[test]
    fn some_sentences_need_what_was_said_before() {
        assert!(
            refers_back("Found them! In the sale.")
                && refers_back("All done, at last.")
                && refers_back("拍完了，很累")
        );
        assert!(refers_back("他搬走了"));
        assert!(!refers_back("I gave up chess") && !refers_back("我戒烟了"));
    }
}
