//! Whether a sentence needs the ones before it: «They're Buckfasts» says nothing without the bees.

use super::chinese::is_chinese;
use super::facts::{is_verb, names_something};
use crate::Pattern;

/// The words of a sentence that say that something was named before it.
const ENGLISH_POINTERS: &str =
    "it its they them their theirs she her hers he him his this these those one ones";
/// Words after «this» that make it a time, and not something that was named.
const TIMES: &str = "week weekend month year morning afternoon evening night summer winter spring autumn fall time season term semester quarter day \
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november december";
/// Words after which «that» is something that was named.
const BEFORE_THAT: &str = "about of with for to in on at like did do done doing love loved like liked";
/// Verbs after «it», and words later on, that make it the subject of what follows: «it takes an hour to …».
const AFTER_SUBJECT: &str =
    "is was will would takes took has had seems feels felt makes made looks turns turned helps costs";
const FOLLOWS_IT: &str = "to that since when if until till";

fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|other| other == word)
}

/// The words of a sentence in lower case, without the marks around them.
fn lower_words(sentence: &str) -> Vec<String> {
    let lower =
        |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase().replace('’', "'");
    sentence.split_whitespace().map(lower).collect()
}

/// Whether a sentence speaks of something that it does not name, so that it means nothing alone.
pub fn lacks_referent(sentence: &str) -> bool {
    if is_chinese(sentence) { chinese_lacks(sentence) } else { english_lacks(sentence) }
}

fn english_lacks(sentence: &str) -> bool {
    let raw: Vec<&str> = sentence.split_whitespace().collect();
    let words = lower_words(sentence);
    let end = first_named(&raw, &words);
    (0..end).any(|place| points(&raw, &words, place)) || lacks_place(&raw, &words)
}

/// Whether «here» or «there» stands for a place that the sentence does not name.
fn lacks_place(raw: &[&str], words: &[String]) -> bool {
    let is_place = |place: usize| {
        let next = words.get(place + 1).map(String::as_str).unwrap_or_default();
        // «There is», «here's», «here to stay», «hi there».
        matches!(words[place].as_str(), "here" | "there")
            && place > 1
            && !is_in("is are was were will has have to", next)
    };
    let names_place = |place: usize| {
        let is_name = raw[place].starts_with(char::is_uppercase);
        let after = place.checked_sub(1).map(|at| words[at].as_str()).unwrap_or_default();
        is_name && place > 0 && words[place].split('\'').next() != Some("i")
            || is_in("in at to near on from", after) && names_something(words, place)
    };
    (0..words.len()).filter(|place| is_place(*place)).any(|place| !(0..place).any(names_place))
}

/// The place of the first word that names something, or that begins a clause after enough words: behind it, a pronoun may
/// mean what the sentence itself says.
fn first_named(raw: &[&str], words: &[String]) -> usize {
    const CLAUSE: &str = "because and but when while if which who since although though so";
    const LEAST_BEFORE: usize = 3;
    const NO_NAME: &str = "we you he she it they this that these those there here just also yes no yeah and but so then now when if what who how \
        not never always still already finally recently both maybe one";
    let names = |place: usize| {
        let stem = words[place].split('\'').next().unwrap_or_default();
        let is_subject = || words.get(1).is_some_and(|next| is_verb(next)) && !is_in(NO_NAME, stem);
        let is_name =
            raw[place].starts_with(char::is_uppercase) && stem != "i" && (place > 0 || is_subject());
        let begins = place >= LEAST_BEFORE
            && (is_in(CLAUSE, &words[place]) || raw[place - 1].ends_with([',', ';', ':']));
        is_name || begins || raw[place].contains(['"', '“']) || names_something(words, place)
    };
    (0..words.len()).find(|place| names(*place)).unwrap_or(words.len())
}

/// Whether a word points at something that was named before the sentence.
fn points(raw: &[&str], words: &[String], place: usize) -> bool {
    let stem = words[place].split('\'').next().unwrap_or_default();
    let next = words.get(place + 1).map(String::as_str).unwrap_or_default();
    let before = place.checked_sub(1).map(|at| words[at].as_str()).unwrap_or_default();
    let ends = place + 1 == words.len() || raw[place].ends_with(['.', ',', '!', ';']);
    match stem {
        "it" => {
            let is_subject = words[place].contains('\'') || is_in(AFTER_SUBJECT, next);
            !(is_subject && words[place + 1..].iter().any(|word| is_in(FOLLOWS_IT, word)))
        }
        "that" => place == 0 || is_in(BEFORE_THAT, before) && ends,
        "this" | "these" | "those" => !is_in(TIMES, next),
        "one" => place == 0 && next != "of" && next != "day" || is_in("another that this new", before),
        _ => is_in(ENGLISH_POINTERS, stem),
    }
}

fn chinese_lacks(sentence: &str) -> bool {
    static BACKWARD: Pattern = Pattern::new(
        "^(?:不过|不過|其实|其實|而且|所以|因此|但是|但|然后|然後|最后|最後|后来|後來|结果|結果|于是|於是|并且|並且|并|並|还|還|也|就)*[，,]?(?:[它她他牠]|[这這那](?:个|個|些|里|裡|儿|兒|样|樣|次|本|部|件|家|种|種|位)?[^天周週月年])|^(?:然后|然後|最后|最後|后来|後來|于是|於是|并|並|但是|而且|所以|因此|结果|結果)",
    );
    BACKWARD.is_match(sentence.trim())
}

/// Whether a sentence has a number or a name inside, which would be lost with it. Chinese names look like other words.
pub fn names_value(sentence: &str) -> bool {
    let is_name = |word: &str| {
        let stem = word.split(['\'', '’']).next().unwrap_or_default();
        stem.starts_with(char::is_uppercase) && stem != "I"
    };
    let words =
        sentence.split_whitespace().map(|word| word.trim_start_matches(|c: char| !c.is_alphanumeric()));
    sentence.chars().any(|c| c.is_ascii_digit()) || is_chinese(sentence) || words.skip(1).any(is_name)
}

/// Whether a sentence of several states nothing and names nothing: an item of a list, or a heading.
pub fn is_fragment(sentence: &str) -> bool {
    is_bare(sentence) && !names_value(sentence)
}

/// Whether a sentence names no person and has no verb.
pub fn is_bare(sentence: &str) -> bool {
    const PERSONS: &str = "user i i'm im we you he she it they my our me us mine ours who";
    const BEGINS: &str = "any some all more other possible potential";
    const SHORT: usize = 6;
    if is_chinese(sentence) {
        return false;
    }
    let words = lower_words(sentence);
    let first = words.first().map(String::as_str).unwrap_or_default();
    let begins = first.ends_with("ing") || is_in(BEGINS, first) || words.len() <= SHORT;
    let states = |word: &String| is_verb(word) || is_in(PERSONS, word) || word.ends_with("n't");
    begins && !words.iter().any(states)
}

/// Whether a sentence is a short answer, which means nothing without its question: «Penicillin», 厦门.
pub fn is_short_answer(sentence: &str) -> bool {
    const LONGEST: usize = 8;
    const STATES: &str =
        "我你您他她它咱是在有要想去来來喜爱愛住用了过過改换換不没沒会會能得叫做吃喝买買吗嗎呢吧谢謝好行嗯哦";
    if !is_chinese(sentence) {
        return is_bare(sentence);
    }
    let mut letters = sentence.chars().filter(|c| c.is_alphanumeric());
    letters.clone().count() <= LONGEST && !letters.any(|c| STATES.contains(c))
}

/// Whether a sentence is a question, by its mark.
pub fn is_asked(sentence: &str) -> bool {
    sentence
        .trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '”' | '」' | ')'))
        .ends_with(['?', '？'])
}

/// A sentence without the request at its end: «I row on Mondays, can you make a plan?». It stays whole if the request names
/// a value, or if little is left.
pub fn without_request(sentence: &str) -> &str {
    static REQUEST: Pattern = Pattern::new(
        r"(?i)(?:,| -)?\s+(?:(?:so|and|but)\s+)?(?:can|could|would|will) you (?:please )?(?:help|review|check|show|tell|give|explain|suggest|recommend|make|create|write|assess|look|advise|walk|provide|guide)\b[^.]*\??$|[，,](?:你|您)?(?:能不能|能否|可不可以|可以|能)?帮我[^。]*[？?吗嗎]?$",
    );
    const LEAST_WORDS: usize = 4;
    const LEAST_CHARS: usize = 8;
    let Some(request) = REQUEST.find(sentence) else { return sentence };
    let (rest, asked) = sentence.split_at(request.start());
    let is_enough = if is_chinese(rest) {
        rest.chars().count() >= LEAST_CHARS
    } else {
        rest.split_whitespace().count() >= LEAST_WORDS
    };
    let asks_value = asked.chars().any(|c| c.is_ascii_digit())
        || asked
            .split_whitespace()
            .skip(1)
            .any(|word| word.starts_with(|c: char| c.is_ascii_uppercase()) && word != "I");
    if is_enough && !asks_value { rest } else { sentence }
}

/// Whether a sentence speaks to somebody: «glad you like it».
pub fn addresses(sentence: &str) -> bool {
    static YOU: Pattern = Pattern::new(r"(?i)\b(?:you|your|yours|you['’]\w+)\b|[你您]");
    YOU.is_match(sentence)
}

/// Whether what is left of a statement after a part of it changed still says something.
pub fn is_rest(rest: &str) -> bool {
    static CUT: Pattern = Pattern::new(
        r"^(?i:to|on|in|at|with|for|of|which|that|and|but|so|including|focusing|because|see|currently)\b|^(?:并|並|但|而|所以|因此|然后|然後|以及|还|還)",
    );
    let is_cut = CUT.is_match(rest) || is_fragment(rest);
    !is_cut || rest.chars().any(|c| c.is_ascii_digit())
}

/// Whether a sentence only announces what follows it, such as code: «Here is what I have so far:».
pub fn is_lead_in(sentence: &str) -> bool {
    sentence.trim_end().ends_with([':', '：'])
}

/// Whether a sentence announces what follows, if code follows it.
pub fn announces(sentence: &str) -> bool {
    static HERE: Pattern = Pattern::new(
        r"(?i)\b(?:here['’]?s|here (?:is|are)|the following|below|what i have(?: so far)?|as follows)\b|如下|以下|下面",
    );
    is_lead_in(sentence) || HERE.is_match(sentence)
}

/// A sentence with what it answers, in quotation marks.
pub fn in_reply_to(sentence: &str, asked: &str) -> String {
    let (sentence, asked) = (sentence.trim(), asked.trim().replace(['"', '“', '”'], "'"));
    let body = sentence.trim_end_matches(['.', '。']);
    let end = &sentence[body.len()..];
    if is_chinese(sentence) {
        format!("{body}（回应“{asked}”）{end}")
    } else {
        format!("{body} (in reply to “{asked}”){end}")
    }
}

/// A statement without what it answers.
pub fn without_reply(statement: &str) -> String {
    for (open, close) in [(" (in reply to “", "”)"), ("（回应“", "”）")] {
        if let Some(from) = statement.rfind(open)
            && let Some(length) = statement[from..].find(close)
        {
            return format!("{}{}", &statement[..from], &statement[from + length + close.len()..]);
        }
    }
    statement.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pronoun_without_a_name_lacks_its_referent() {
        for lacking in [
            "They're Buckfasts.",
            "I've had them since March.",
            "She plays the viola.",
            "I tested it on the boat.",
            "I'll add it to my list.",
            "It is in Ghent!",
            "I come quite often, I've got cousins who live over there",
            "I have lived in here for ages",
            "I loved that!",
            "This pace suits me.",
            "它今年三岁了",
            "然后她去了大连。",
            "并且讨论了剧情。",
            "这本我还没看完",
        ] {
            assert!(lacks_referent(lacking), "{lacking}");
        }
        for whole in [
            "I have a canoe and it leaks.",
            "My sister lost her keys.",
            "I like jazz because it calms me.",
            "It takes me forty minutes to get to work.",
            "I'm off this week.",
            "There is a leak in the roof.",
            "I think that Ana is right.",
            "Rosa sold her car",
            "我这周不在",
            "我有一条狗，它叫豆豆。",
            "这周我值班",
        ] {
            assert!(!lacks_referent(whole), "{whole}");
        }
    }

    #[test]
    fn a_short_answer_needs_its_question() {
        assert!(is_short_answer("Shellfish.") && is_short_answer("泉州") && is_short_answer("星期四下午"));
        assert!(!is_short_answer("I eat fish.") && !is_short_answer("我住泉州") && !is_short_answer("换了"));
        assert!(is_asked("Where to? ") && is_asked("去哪儿？") && !is_asked("I asked why."));
    }

    #[test]
    fn what_states_nothing_is_known_by_its_form() {
        assert!(is_fragment("Choosing a notary.") && is_fragment("Budget options for the hall"));
        assert!(
            !is_fragment("I rang Lena") && !is_fragment("The hall is booked.") && !is_fragment("Gate: 12")
        );
        assert!(announces("Here's my current schema:") && announces("this is what i have so far"));
        assert!(!announces("I have two cats.") && is_lead_in("我的代码："));
    }

    #[test]
    fn a_request_at_the_end_is_no_part_of_a_statement() {
        let check = |sentence: &str, expected: &str| assert_eq!(without_request(sentence), expected);
        check("I row on Mondays and Fridays, can you help me plan?", "I row on Mondays and Fridays");
        check(
            "I row on Mondays, so can you make a plan until 5 May?",
            "I row on Mondays, so can you make a plan until 5 May?",
        );
        check("Boat sold, can you check?", "Boat sold, can you check?");
        check("我每周一三五去划船，你能帮我排个计划吗", "我每周一三五去划船");
        assert!(addresses("Glad you like it") && addresses("祝你好运") && !addresses("I like young wine"));
    }

    #[test]
    fn a_rest_says_something() {
        assert!(is_rest("The user rows") && is_rest("Thursday at 10") && is_rest("用户养狗"));
        assert!(!is_rest("to finish the hull") && !is_rest("并讨论了剧情") && !is_rest("Sails and ropes"));
    }

    #[test]
    fn a_reply_names_what_it_answers() {
        let told = in_reply_to("I've had them for years.", "How are the \"turtles\"?");
        assert_eq!(told, "I've had them for years (in reply to “How are the 'turtles'?”).");
        assert_eq!(without_reply(&told), "I've had them for years.");
        assert_eq!(without_reply(&in_reply_to("养了三年了", "乌龟呢？")), "养了三年了");
        assert_eq!(without_reply("plain"), "plain");
    }
}
