//! Recognises by a sentence's form that it tells the assistant what to do from now on.
//!
//! Three signs together make a standing instruction: it is said to the assistant and not about the speaker, it names
//! something that an assistant does, and it holds for more than the present message. A sentence about the speaker's own
//! habits has the same words («I always answer in French», 我回答时都用敬语), so every form begins with the order itself, or with
//! words that only lead to it («remember:», 记住，).

use super::chinese::is_chinese;
use crate::Pattern;

/// Verbs of an assistant's work for a user. People do most of it for themselves, too, so such an order names a text, its form, or
/// the speaker.
const SERVICE: &str = "answer|reply|respond|write|use|call|address|explain|show|give|suggest|recommend|offer|propose|translate|format|start|end|\
    begin|apologi[sz]e|mention|ask|remind|say|send|include|add|assume|summari[sz]e|quote|cite|list|keep|put|speak|talk|tell|bring|skip|leave|stick|stop|name|state|spell|refer";
/// Those of them that nobody but an assistant is told to do.
const SERVES_ONLY: &str = "answer|reply|respond|call me|address me|explain|summari[sz]e|translate|format|cite|quote|suggest|recommend|propose|apologi[sz]e|\
    speak to me|talk to me|write to me|remind me|ask me|tell me|show me|give me|use (?:metric|imperial|bullet|plain|simple|short|british|american|emoji|markdown|tables?|footnotes|headings|code blocks|formal|informal)";
const SERVING: &str = "calling|suggesting|recommending|offering|using|apologi[sz]ing|asking|telling|writing|adding|saying|mentioning|giving|sending|\
    reminding|explaining|summari[sz]ing|translating|answering|repeating|ending|starting|replying|responding|quoting|listing|including";
/// What such an order names.
const NAMED: &str = "me|your|units?|metric|imperial|celsius|fahrenheit|sentences?|paragraphs?|words?|lines?|bullets?|lists?|tables?|headings?|titles?|intros?|introductions?|\
    emojis?|emoticons?|smileys|tone|jargon|slang|abbreviations|acronyms|examples?|sources?|links?|citations?|references?|footnotes?|code|comments?|snippets?|\
    disclaimers?|greetings?|questions?|answers?|replies|responses?|messages?|spelling|pronouns?|names?|nickname|options?|alternatives|steps?|conclusions?|summary|markdown|latex|\
    python|typescript|rust|javascript|english|french|german|dutch|danish|spanish|italian|portuguese|polish|czech|hungarian|finnish|swedish|norwegian|welsh|basque|\
    irish|japanese|korean|chinese|mandarin|cantonese|arabic|hebrew|turkish|greek|russian|ukrainian|hindi|latin|dates?|prices?|currency|euros?|time zones?";
/// An assistant's words.
const WORDS: &str = "answers|replies|responses|explanations|summaries|suggestions|recommendations|translations|messages|code examples|examples|drafts";
/// Words that lead to an order.
const LEADS: &str = r"(?:(?:please|and|also|but|oh|ok|okay|so|btw|just|hey|hi|thanks|one more thing|one last thing|another thing|important|reminder|rule|note|fyi|by the way|in general|(?:please )?(?:remember|note|keep in mind|bear in mind|make sure|be sure)(?: (?:that|this|to|you))?)[,:.!]* )*";
/// The time from which an order holds.
const FROM_NOW: &str = "from now on|from here on|from today on|starting now|as of now|henceforth|in (?:the )?future|going forward|at all times|by default|every (?:single )?time|each time|every day|whenever you|until i say otherwise|unless i say otherwise|unless i ask";
/// Occasions of an assistant's work.
const WHEN: &str = r"(?:when|whenever|each time|every time|any ?time|if) you (?:are )?(?:answer|reply|respond|explain|translat|summari[sz]|suggest|recommend|write (?:to me|code|something for me)|talk to me|speak to me|quote|cite|propose|list|remind)(?:e|ing)?\b[^,.!?]{0,40}|when (?:answering|replying|responding|explaining|translating|summari[sz]ing|suggesting|recommending)\b[^,.!?]{0,40}";
/// Things that an assistant's text may be without.
const MANNERS: &str = "emojis?|emoticons?|smileys|exclamation marks|bullet points|bullets|jargon|apologies|disclaimers|small talk|filler|tables|markdown|headings|abbreviations|flattery|compliments|lectures|moralizing|moralising|footnotes|follow-up questions|pleasantries";

/// Whether a sentence tells the assistant what to do from now on.
pub fn is_instruction(sentence: &str) -> bool {
    let sentence = sentence.trim();
    if sentence.ends_with(['?', '？']) {
        return false;
    }
    if is_chinese(sentence) { chinese(sentence) } else { english(sentence) }
}

fn english(sentence: &str) -> bool {
    // «Always answer in French», «don't ever call me Bob», «from now on, use metric units»
    static ORDERED: Pattern = Pattern::made(|| {
        format!(
            r"(?i)^{LEADS}(?:(?:from now on|from here on|in future|in the future|going forward|henceforth|starting now|as of now),? (?:please |you )?(?:always |never |only |just |do not |don['’]t )?|you (?:should|must|have to|need to|are to|may) (?:always|never|only) |(?:do not|don['’]t|dont) ever |never (?:ever |again )?|always |no longer )(?:(?:{SERVES_ONLY})\b|(?:{SERVICE})\b[^?]*\b(?:{NAMED})\b)|^{LEADS}(?:stop|quit|avoid) (?:{SERVING})\b"
        )
    });
    // «Answer in French from now on», «call me Bo at all times»
    static FOR_EVER: Pattern = Pattern::made(|| {
        format!(
            r"(?i)^{LEADS}(?:only |just |do not |don['’]t )?(?:(?:{SERVES_ONLY})\b|(?:{SERVICE})\b.*\b(?:{NAMED})\b).*\b(?:{FROM_NOW}|always)\W*$"
        )
    });
    // «When you explain something, start with an example»
    static WHENEVER: Pattern = Pattern::made(|| {
        format!(
            r"(?i)^{LEADS}(?:{WHEN}),? (?:please )?(?:always |never |only |just |do not |don['’]t |no |stick |keep |be |(?:{SERVICE})\b)"
        )
    });
    // «Keep your answers short», «your replies should be in French», «in all your answers, name the source»
    static ABOUT_WORDS: Pattern = Pattern::made(|| {
        format!(
            r"(?i)^{LEADS}(?:keep|make) (?:all (?:of )?)?your (?:{WORDS})\b|^{LEADS}(?:all (?:of )?)?your (?:{WORDS}) (?:should|must|have to|need to|shall|are to|may) (?:always |never |only |not )?(?:be|use|have|start|end|include|contain|stay|fit|come)\b|^{LEADS}(?:in|for|with) (?:(?:all|each|every one) (?:of )?)?(?:your|every|future|all) (?:future )?(?:{WORDS})\b[^?]*\b(?:{SERVICE}|be|no|do not|don['’]t)\b|^{LEADS}(?:please )?no (?:more )?(?:{MANNERS})\b[^?]{{0,40}}(?:\b(?:your (?:{WORDS})|from now on|ever|please|again)\b)"
        )
    });
    // «I'd like you to always answer in French», «you should never apologise»
    static WISHED: Pattern = Pattern::made(|| {
        format!(
            r"(?i)^{LEADS}(?:i(?:['’]d| would)? (?:want|like|prefer|need|expect|ask) (?:it if )?you (?:to |would )?(?:always|never|only|stop|from now on)|i(?:['’]d| would)? (?:want|like|prefer|need|expect) (?:all (?:of )?)?your (?:{WORDS})\b|i (?:always )?want you to (?:{SERVES_ONLY})\b.*\b(?:{FROM_NOW}|always)\b)"
        )
    });
    let about_customers = |found: &str| !found.is_empty() && BY_SPEAKER.is_match(found);
    let forms = [&ORDERED, &FOR_EVER, &WHENEVER, &ABOUT_WORDS, &WISHED];
    forms.iter().any(|form| form.find(sentence).is_some_and(|found| !about_customers(found.as_str())))
}

/// «Always use my left hand, I» is no order; the speaker is the subject.
static BY_SPEAKER: Pattern =
    Pattern::new(r"(?i)\b(?:i always|i never|i only|i usually|we always|we never)\b");

/// Words that lead to an order.
const CHINESE_LEADS: &str = "(?:(?:请|請|麻烦|麻煩|拜托|拜託|劳烦|勞煩|帮我|幫我|你|您|对了|對了|另外|还有|還有|顺便|順便|再说一遍|再說一遍|说好了|說好了|提醒一下|提醒你|要求是?|规矩是?|規矩是?|注意|一定要?|务必要?|務必要?|给我|給我|要|也|得)?(?:记住|記住|记得|記得|记好|記好|记下|記下|记着|記著|牢记|牢記|请|請|注意|听好|聽好)?(?:了|啦|哦|啊|一下|一点|一點|一条|一條)*[，,：:。！!、 ]*)*";
/// Work that only an assistant does for a user.
const CHINESE_SERVES: &str = "回答|回复|回覆|答复|答覆|回我|叫我|称呼|稱呼|[给給]我(?:推荐|推薦|讲|講|写|寫|列|回|发|發|解释|解釋|翻译|翻譯|建议|建議|举|舉|总结|總結|的)|[跟和对對]我(?:说|說|讲|講|聊|用|沟通|溝通|解释|解釋|称|稱)|推荐|推薦|建议|建議|解释|解釋|提到|提醒|问我|問我|翻译|翻譯|总结|總結|称我|稱我|道歉|举例|舉例|列出|列举|列舉|输出|輸出";
/// Work that people do for themselves, too.
const CHINESE_MAY_SERVE: &str = "用|说|說|写|寫|列|发|發|加|讲|講|带|帶|附|控制|保持|分|先|标|標";
/// What the text of an assistant is like.
const CHINESE_FORMS: &str = "回答|回复|回覆|答复|答覆|答案|解释|解釋|代码|代碼|注释|注釋|表格|列表|要点|要點|条目|條目|分点|分點|分条|分條|标题|標題|英文|英语|英語|中文|汉语|漢語|普通话|普通話|繁体|繁體|简体|簡體|粤语|粵語|日语|日語|日文|法语|法語|法文|德语|德語|德文|西班牙语|韩语|韓語|文言|口语|口語|敬语|敬語|公制|英制|摄氏|攝氏|华氏|華氏|表情|emoji|markdown|语气|語氣|口吻|客套|废话|廢話|一句话|一句話|术语|術語|例子|来源|來源|出处|出處|链接|連結|步骤|步驟|结论|結論|字以内|字以內|句话|句話|句以内|句以內|表示|显示|顯示";
/// The time for which an order holds.
const CHINESE_FROM_NOW: &str = "以后|以後|今后|今後|往后|往後|从现在起|從現在起|从现在开始|從現在開始|从今以后|從今以後|从今天起|從今天起|从此|從此|下次起|下次开始|下次開始|每次|每回|始终|始終|永远|永遠|一律|一直|总是|總是|统一|統一|千万|千萬|任何时候|任何時候|无论|無論|不管";
/// Denials in an order.
const CHINESE_NOT: &str = "别再|別再|不要再|别|別|不要|不准|不许|不許|不用|不必|不得|禁止|少|甭";

fn chinese(sentence: &str) -> bool {
    // 以后回答我都用表格; 从现在起别再叫我老王
    static FROM_NOW: Pattern = Pattern::made(|| {
        format!(
            "^{CHINESE_LEADS}(?:{CHINESE_FROM_NOW})(?:[，, ]|你|您|请|請|都|只|就|要|能|得|可以|一定|务必|務必|必须|必須|尽量|盡量|凡是|只要|{CHINESE_FROM_NOW}|{CHINESE_NOT})*(?:(?:在|当|當)?[^我，,。咱俺]{{0,6}}?(?:{CHINESE_SERVES})|(?:(?:涉及|遇到|碰到|说到|說到|关于|關於|凡是|写|寫)[^我，。咱俺]{{0,8}}?(?:都|就|一律|请|請|要))?(?:{CHINESE_MAY_SERVE})[^，。]*?(?:{CHINESE_FORMS}))"
        )
    });
    // 回答时请始终用敬语; 给我推荐餐厅的时候一律不要辣的
    static OCCASION: Pattern = Pattern::made(|| {
        format!(
            "^{CHINESE_LEADS}(?:在|当|當|凡是|每次|每当|每當)?(?:{CHINESE_SERVES})(?:我|问题|問題)?[^，。,我咱俺]{{0,10}}?(?:(?:的?时候|的?時候|时|時)[，, ]*(?:先|请|請|要|用|得|把|务必|務必|一定|必须|必須|尽量|盡量)|[，, ]*(?:请|請|你|您|也|就|得|要|务必|務必|一定|必须|必須|尽量|盡量)*(?:{CHINESE_FROM_NOW}|都(?:要|得|用|请|請|写|寫|给|給|别|別|不|先|必须|必須|应该|應該|控制|保持)|{CHINESE_NOT}))"
        )
    });
    // 你的回答要始终简短
    static WORDS: Pattern = Pattern::made(|| {
        format!(
            "^{CHINESE_LEADS}(?:你|您)?(?:的|所有的?)?(?:回答|回复|回覆|答复|答案|解释|解釋|建议|建議|翻译|翻譯)[^，。我]{{0,8}}?(?:{CHINESE_FROM_NOW}|都|每次)"
        )
    });
    // 别再给我推荐恐怖片; 永远不要叫我全名
    static DENIED: Pattern = Pattern::made(|| {
        format!(
            "^{CHINESE_LEADS}(?:永远|永遠|千万|千萬|以后|以後)?(?:别再|別再|不要再|不准再|不许再|不許再|不用再|不必再)[^我，]{{0,6}}?(?:{CHINESE_SERVES}|说|說|写|寫|用.{{0,8}}?(?:{CHINESE_FORMS})|加.{{0,4}}?(?:{CHINESE_FORMS})|发.{{0,4}}?(?:{CHINESE_FORMS}))|^{CHINESE_LEADS}(?:永远|永遠)(?:别|別|不要)[^我，]{{0,6}}?(?:{CHINESE_SERVES}|说|說)"
        )
    });
    // 我希望你以后都用英文回答
    static WISHED: Pattern = Pattern::made(|| {
        format!(
            "^{CHINESE_LEADS}我(?:希望|想让|想讓|想要|要|要求|需要)(?:你|您)(?:的(?:回答|回复|回覆|解释|解釋))?[^。]{{0,4}}?(?:{CHINESE_FROM_NOW}|都)[^。]*?(?:{CHINESE_SERVES}|{CHINESE_FORMS})"
        )
    });
    [&FROM_NOW, &OCCASION, &WORDS, &DENIED, &WISHED].iter().any(|form| form.is_match(sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn english_orders_that_hold_from_now_on() {
        for instruction in [
            "Don't ever call me Robert.",
            "never recommend seafood again",
            "Please always reply in Dutch",
            "From now on, use metric units",
            "stop apologising",
            "Remember: always answer in Danish.",
            "Remember to always reply in two sentences",
            "Please remember that from now on you call me Doctor Pell.",
            "Keep your answers under a hundred words.",
            "Answer in Finnish from now on.",
            "When you explain a recipe, always start with the oven temperature.",
            "Whenever you suggest a film, give me the running time.",
            "In all your answers, name the source.",
            "Your replies should be in plain text.",
            "I'd like you to always address me formally.",
            "I want you to never use emoji",
            "You must always answer in Basque.",
            "No emojis in your replies, please.",
            "Call me Skipper from now on",
            "Going forward, only suggest vegan dishes.",
            "stop ending every message with a question",
        ] {
            assert!(is_instruction(instruction), "{instruction}");
        }
    }

    #[test]
    fn english_habits_and_single_requests_are_none() {
        for other in [
            "I never use umbrellas.",
            "Never been to Oslo.",
            "Always late, that man.",
            "Use metric units",
            "I always answer letters in French.",
            "My boss wants me to always reply within an hour.",
            "From now on I cycle to the yard.",
            "We only use oat milk from now on.",
            "I prefer short answers from my doctor.",
            "When I explain recipes, I always start with the oven.",
            "Keep the dog away from the chocolate.",
            "Answer this letter for me.",
            "Your answer was very good.",
            "I'd like you to write a toast for my brother.",
            "Remember that I always take the early ferry.",
            "Do you always answer in French?",
            "No sugar in my coffee, please.",
            "I want to always have a spare key.",
            "Always put the bins out on Thursday.",
            "Never leave the stove on.",
            "Use the side entrance from now on.",
            "Always ask for a window seat",
            "Keep your summary to one line.",
        ] {
            assert!(!is_instruction(other), "{other}");
        }
    }

    #[test]
    fn chinese_orders_that_hold_from_now_on() {
        for instruction in [
            "以后都用繁体回复我",
            "别再给我推荐恐怖片",
            "請以後都叫我阿哲",
            "以后别用表情",
            "记住，以后回答我都用列表。",
            "记住：以后跟我说话别用敬语",
            "回答时请始终先给结论。",
            "回复我的时候不要加表情。",
            "请记住，从现在起一律用摄氏度回答。",
            "今后解释概念时都要举例子",
            "回答我的问题时一定要列出处。",
            "以后涉及价格都用欧元表示",
            "跟我讲解代码的时候，先说思路",
            "给我推荐饭馆的时候，千万别推荐辣的。",
            "你的回答以后都控制在三句话以内。",
            "我希望你每次都用英文回答。",
            "每次回答都要附上来源。",
            "永远不要叫我全名",
            "麻烦以后写代码都加上中文注释",
            "翻译的时候请一律保留人名原文。",
            "不要再跟我说客套话了",
            "對了，以後回覆都用繁體。",
        ] {
            assert!(is_instruction(instruction), "{instruction}");
        }
    }

    #[test]
    fn chinese_habits_and_single_requests_are_none() {
        for other in [
            "以后我都不喝酒了",
            "别再下雨了",
            "我以后都用现金付款。",
            "以后都坐地铁上班。",
            "我回答客户时始终用敬语。",
            "记住，我对虾过敏。",
            "老师回答时总是很耐心。",
            "以后每周三去游泳。",
            "我喜欢用列表记事。",
            "以后都用飞书开会。",
            "回答一下这个问题。",
            "我希望以后都住在海边。",
            "给我推荐一家面馆。",
            "我妈总是叫我老三。",
            "你以后都用英文回答吗？",
            "他以后都用左手写字。",
            "每次出门都带伞。",
            "之后给我回个电话。",
            "以后跟我妈说话要小声。",
            "我们公司以后统一用飞书。",
            "老板说以后回复客户都要抄送他。",
        ] {
            assert!(!is_instruction(other), "{other}");
        }
    }
}
