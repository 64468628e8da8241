//! Recognises a sentence in which its speaker gives their name: «Hi, I'm Craig», «Bartek here.», 大家好，我是林悦。
//!
//! «I'm Happy» and «I'm German» have the same form, so a bare «I'm» needs a greeting beside it and a word that is known to be
//! no name is none. Deliberately absent: whose word the sentence is, which its message decides.

use super::chinese::is_chinese;
use crate::Pattern;
use crate::rules::is_no_name;

const GREETING: &str = r"(?:hi|hello|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day))(?: there| all| everyone| everybody| folks| team| again)?[,!.… -]+";
const MEETING: &str = r"(?:,| -| –|[.!])? ?(?:(?:it['’]?s )?(?:so )?(?:nice|good|great|pleased|glad|lovely|happy) to meet (?:you|everyone|you all|y['’]all))";
const NAME: &str = r"(?-i:(?P<name>\p{Lu}[\p{L}'’.-]*(?: \p{Lu}[\p{L}'’.-]*){0,2}?))";

/// Words that stand where a name may stand and are none, beside those that the rules know.
const NO_NAMES: &str = "happy sad new back here there sorry fine good great glad okay ok sure ready done tired sick ill busy free late early home alone \
    lost stuck bored curious confused interested excited pregnant retired vegan vegetarian gay straight queer trans nonbinary dyslexic deaf blind \
    autistic diabetic celiac coeliac asthmatic in on at from by with for of off out up down over under right left not no yes also just still only \
    all same everything nothing something anything everyone everybody nobody someone somebody anyone noone none it me you us them what who why how \
    when where which now then today tomorrow tonight yesterday monday tuesday wednesday thursday friday saturday sunday january february march \
    june july august september october november december spring summer autumn fall winter sunny rainy cloudy windy snowy cold hot warm snow rain \
    dad mom mum mother father teacher student developer engineer nurse doctor user beginner newbie admin support human robot sir madam \
    click look come see stay wait sign enter press type put paste start stop live work welcome first second last again please thanks thank \
    scottish spaniard dane swede finn pole turk serb croat greek welsh irish basque catalan breton flemish portuguese japanese chinese korean \
    saudi afghan arab persian tibetan mongolian nepali bengali punjabi tamil kurdish berlin london paris english spanish malay indonesian \
    vietnamese singaporean taiwanese ukrainian estonian latvian lithuanian slovak slovenian serbian croatian bosnian albanian macedonian \
    georgian armenian turkish syrian lebanese jordanian tunisian algerian libyan sudanese somali ugandan tanzanian rwandan texan californian \
    hispanic latino latina asexual bisexual lesbian agnostic hindu sikh protestant lutheran mormon introvert extrovert";

/// What introduces a speaker, as they would say it without a greeting: «My name is Craig», 我叫林悦; `None` for any other sentence.
pub fn introduced(sentence: &str) -> Option<String> {
    let sentence = sentence.trim();
    match is_chinese(sentence) {
        true => chinese(sentence).map(|name| format!("我叫{name}")),
        false => english(sentence).map(|name| format!("My name is {name}")),
    }
}

fn english(sentence: &str) -> Option<&str> {
    static FORMS: [Pattern; 4] = [
        // «Hi, I'm Craig», «Hello, this is Craig speaking»
        Pattern::made(|| {
            format!(
                r"(?i)^{GREETING}(?:(?:i['’]?m|i am|this is|it['’]s|my name is|my name['’]s) )?{NAME}(?: (?:here|speaking))(?:{MEETING})?[.!]*$"
            )
        }),
        Pattern::made(|| {
            format!(
                r"(?i)^{GREETING}(?:i['’]?m|i am|this is|my name is|my name['’]s|the name is|the name['’]s) {NAME}(?:{MEETING})?[.!]*$"
            )
        }),
        // «I'm Craig, nice to meet you»
        Pattern::made(|| {
            format!(r"(?i)^(?:i['’]?m|i am|this is|my name is|my name['’]s) {NAME}{MEETING}[.!]*$")
        }),
        // «My name is Craig», «Bartek here.»
        Pattern::made(|| {
            format!(
                r"(?i)^(?:(?:my name is|my name['’]s) {NAME}|(?-i:(?P<alone>\p{{Lu}}\p{{Ll}}+)) here)[.!]*$"
            )
        }),
    ];
    let found = FORMS.iter().find_map(|form| form.get()?.captures(sentence))?;
    let name =
        found.name("name").or_else(|| found.name("alone"))?.as_str().trim_end_matches(['.', '-', '’', '\'']);
    is_name(name).then_some(name)
}

/// Whether no word of a text is known to be something else than a name. A word of one letter is an initial, and at the end none.
fn is_name(text: &str) -> bool {
    let known = |word: &str| NO_NAMES.split_whitespace().any(|known| known == word) || is_no_name(word);
    let is_verb = |word: &str| word.len() > 5 && word.ends_with("ing");
    let is_word = |word: &str| known(word) || is_verb(word);
    text.chars().count() > 1 && !text.to_lowercase().split(' ').any(is_word)
}

/// The hundred most common family names, by which «我是…» is told from «我是学生».
const FAMILY_NAMES: &str = "王李张張刘劉陈陳杨楊赵趙黄黃周吴吳徐孙孫胡朱高林何郭马馬罗羅梁宋郑鄭谢謝韩韓唐冯馮于董萧蕭程曹袁邓鄧许許傅沈曾彭吕呂苏蘇卢盧蒋蔣蔡贾賈丁魏薛叶葉阎余潘杜戴夏钟鐘汪田任姜范方石姚谭譚廖邹鄒熊金陆陸郝孔白崔康毛邱秦江史顾顧侯邵孟龙龍万萬段雷钱錢汤湯尹黎易常武乔喬贺賀赖賴龚龔文小老阿";
/// The ends of Chinese words for what somebody is.
const ROLES: &str =
    "生师師员員人手家者工长長妈媽爸户戶民客友迷党黨控族主板司机機郎夫妻男女孩兵官医醫商农農狗猫粉素";

fn chinese(sentence: &str) -> Option<&str> {
    static CALLED: Pattern = Pattern::new(
        r"^(?:(?:大家|各位|你们|你們|诸位|諸位)?(?:好|早|晚上好|早上好|下午好|你好|您好)(?:呀|啊)?[，,！!。～~\s]*|(?:嗨|哈喽|哈囉|嘿)[，,！!。～~\s]*)?(?:我叫|我的名字叫|我的名字是|我名叫)(?P<name>\p{Han}{2,4}|[A-Z][A-Za-z-]+)[。！!～~]*$",
    );
    static AM: Pattern = Pattern::new(
        r"^(?:(?:大家|各位|你们|你們|诸位|諸位)(?:好|早|晚上好|早上好|下午好)|你好|您好|早上好|晚上好|下午好|嗨|哈喽|哈囉|嘿)(?:呀|啊)?[，,！!。～~\s]*我是(?P<name>\p{Han}{2,3}|[A-Z][a-z]+)[。！!～~]*$",
    );
    if let Some(found) = CALLED.get()?.captures(sentence) {
        return Some(found.name("name")?.as_str());
    }
    let name = AM.get()?.captures(sentence)?.name("name")?.as_str();
    let is_family = |name: &str| name.starts_with(|first| FAMILY_NAMES.contains(first));
    let is_role = |name: &str| name.ends_with(|last| ROLES.contains(last));
    let is_name = if name.is_ascii() { is_name(name) } else { is_family(name) && !is_role(name) };
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speaker_gives_their_name() {
        let check = |said: &str, told: &str| assert_eq!(introduced(said).as_deref(), Some(told), "{said}");
        check("Hi, I'm Orla", "My name is Orla");
        check("Hello there! I am Piet.", "My name is Piet");
        check("hey, this is Ines", "My name is Ines");
        check("Good morning, my name is Jan-Willem Bakker!", "My name is Jan-Willem Bakker");
        check("Hi everyone, I'm Siobhán O'Dea, nice to meet you!", "My name is Siobhán O'Dea");
        check("I'm Teun, pleased to meet you", "My name is Teun");
        check("Bartek here.", "My name is Bartek");
        check("Hi, Bartek here", "My name is Bartek");
        check("Hello, this is Noor speaking.", "My name is Noor");
        check("大家好，我是陈若琳。", "我叫陈若琳");
        check("你好！我是Noor", "我叫Noor");
        check("我叫若琳", "我叫若琳");
    }

    #[test]
    fn other_words_in_its_place_are_no_name() {
        for said in [
            "Hi, I'm Happy",
            "Hi, I'm German",
            "Hello, I'm Danish.",
            "Hi, I'm Looking Forward",
            "hi, i'm orla",
            "I'm Orla",
            "Hi, I'm a carpenter",
            "Nothing here.",
            "Raining here.",
            "Monday here",
            "Hi, this is Great!",
            "She said hi, I'm Orla",
            "Hi, are you Orla?",
            "Hi Orla",
            "大家好，我是高中生",
            "大家好，我是程序员",
            "我是陈老师的学生",
            "大家好，我是新人",
        ] {
            assert_eq!(introduced(said), None, "{said}");
        }
    }
}
