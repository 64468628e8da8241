//! Recognises by a sentence's form that something is done, that the assistant shall always do something, or that it
//! goes on about a thing that was named before.

use super::chinese::is_chinese;
use crate::Pattern;

/// Verbs of an assistant's work for a user.
const ENGLISH_SERVICE: &str = "answer|reply|respond|write|use|call|address|explain|show|give|suggest|recommend|offer|propose|translate|format|start|end|\
    begin|apologi[sz]e|mention|ask|remind|say|send|include|add|assume|summari[sz]e|quote|cite|list|keep|put|speak|talk|tell|bring|skip|leave|stick|stop";
const ENGLISH_SERVING: &str = "calling|suggesting|recommending|offering|using|apologi[sz]ing|asking|telling|writing|adding|saying|mentioning|giving|sending|\
    reminding|explaining|summari[sz]ing|translating|answering";
const CHINESE_SERVICE: &str = "回答|回复|回覆|回我|答复|用|说|說|写|寫|叫我|称呼|稱呼|给我|給我|跟我|对我|對我|推荐|推薦|建议|建議|解释|解釋|提到|提醒|问我|問我|翻译|翻譯|\
    总结|總結|列|发|發|加|讲|講|称我|稱我";

/// Whether a sentence tells the assistant what to do from now on.
pub fn is_instruction(sentence: &str) -> bool {
    static ENGLISH: Pattern = Pattern::made(|| {
        format!(
            r"(?i)^(?:(?:please|and|also|but|oh|ok|okay|so|btw),? )*(?:(?:from now on|in future|in the future|going forward),? (?:please )?(?:always |never |do not |don['’]t |only )?|(?:do not|don['’]t|dont) ever |never (?:ever |again )?|always |no longer )(?:{ENGLISH_SERVICE})\b|^(?:please |and |also )*(?:stop|quit) (?:{ENGLISH_SERVING})\b"
        )
    });
    static CHINESE: Pattern = Pattern::made(|| {
        format!(
            "^(?:请|請|麻烦|麻煩|你|您|对了，|對了，)*(?:(?:以后|以後|今后|今後|往后|往後|从现在起|從現在起|从今以后)[，, ]?(?:请|請|你|您)?(?:都|只|就|要|一律|永远|永遠|每次)?(?:别|別|不要|不用|不必)?(?:再)?|(?:永远|永遠|千万|千萬)?(?:别|別|不要|不准)再|(?:永远|永遠)(?:别|別|不要)|每次都(?:要)?)[^我，]{{0,6}}?(?:{CHINESE_SERVICE})"
        )
    });
    let sentence = sentence.trim();
    let form = if is_chinese(sentence) { &CHINESE } else { &ENGLISH };
    form.is_match(sentence)
}

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
    fn instructions_are_known_by_their_form() {
        for instruction in [
            "Don't ever call me Robert.",
            "never recommend seafood again",
            "Please always reply in Dutch",
            "From now on, use metric units",
            "stop apologising",
            "以后都用繁体回复我",
            "别再给我推荐恐怖片",
            "請以後都叫我阿哲",
            "以后别用表情",
        ] {
            assert!(is_instruction(instruction), "{instruction}");
        }
        for other in [
            "I never use umbrellas.",
            "Never been to Oslo.",
            "Always late, that man.",
            "以后我都不喝酒了",
            "别再下雨了",
            "Use metric units",
        ] {
            assert!(!is_instruction(other), "{other}");
        }
    }

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
