//! Whether a sentence needs the ones before it: «They're Buckfasts» says nothing without the bees.

use super::chinese::is_chinese;
use super::facts::{is_verb, names_something};
use super::unnamed::{is_measure, may_name};
use super::without_greeting;
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
/// Those of them after which only «to» and «that» make it so: «it helped me to …», but not «it helped me when …».
const ACTS: &str = "has had makes made turns turned helps helped costs";

pub(super) fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|other| other == word)
}

/// The words of a sentence in lower case, without the marks around them.
pub(super) fn lower_words(sentence: &str) -> Vec<String> {
    let lower =
        |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase().replace('’', "'");
    sentence.split_whitespace().map(lower).collect()
}

/// Whether a sentence speaks of something that it does not name, so that it means nothing alone.
pub fn lacks_referent(sentence: &str) -> bool {
    if is_chinese(sentence) { chinese_lacks(sentence) } else { english_lacks(sentence) }
}

fn english_lacks(sentence: &str) -> bool {
    let sentence = without_address(sentence);
    let raw: Vec<&str> = sentence.split_whitespace().collect();
    let words = lower_words(sentence);
    let end = first_named(&raw, &words);
    (0..end).any(|place| points(&raw, &words, place))
        || lacks_place(&raw, &words)
        || (lacks_subject(&words) || goes_on(&words, sentence)) && !is_asked(sentence)
        || (1..words.len()).any(|place| points_at_kind(&words, place))
}

/// Whether a sentence begins with the verb of something that was named before: «Gets tiring in summer».
fn lacks_subject(words: &[String]) -> bool {
    const VERBS: &str = "gets makes is isn't was wasn't seems sounds looks feels means depends has hasn't does doesn't turns turned tastes tasted helps \
        reminds ended";
    words.len() > 1 && is_in(VERBS, &words[0])
}

/// Whether a sentence is a clause of the one before it: «Which makes me late», «Because the ferry was full». Behind a comma the
/// main clause may follow.
fn goes_on(words: &[String], sentence: &str) -> bool {
    const JOINS: &str = "because cause cuz including especially whereas";
    words.len() > 1 && (words[0] == "which" || is_in(JOINS, &words[0]) && !sentence.contains(','))
}

/// Whether a sentence names a thing as one that was named before: «a course in that field».
fn points_at_kind(words: &[String], place: usize) -> bool {
    const BEFORE: &str = "in for at on with from to of by about into during after before";
    const NO_NOUN: &str = "i you he she it we they who which the a an my our your is are was were will would can could has have had do does did \
        when if because as at in on to for and or but so than until since before after way time point moment reason case much many";
    let next = words.get(place + 1).map(String::as_str).unwrap_or_default();
    is_in("that those", &words[place])
        && is_in(BEFORE, &words[place - 1])
        && !next.is_empty()
        && !next.contains('\'')
        && !is_in(NO_NOUN, next)
        && !words[..place - 1].iter().any(|word| word == next)
}

/// A sentence without the greeting before it and the name of a listener at its end: «Thanks, I tried it, Vera!».
pub(super) fn without_address(sentence: &str) -> &str {
    static CALLED: Pattern = Pattern::new(r"[,，] (?P<name>[A-Z][a-z]+)[.!…]+$");
    let sentence = without_greeting(sentence.trim());
    CALLED.find(sentence).map_or(sentence, |called| &sentence[..called.start()])
}

/// Whether an English sentence names nothing and nobody: «When do you leave?».
pub fn names_nothing(sentence: &str) -> bool {
    let sentence = without_address(sentence);
    let words = lower_words(sentence);
    !is_chinese(sentence)
        && !names_value(sentence)
        && !(0..words.len()).any(|place| names_something(&words, place))
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

/// The place of the first word that names something, or that begins a clause after words that may name something: behind it, a
/// pronoun may mean what the sentence itself says.
pub(super) fn first_named(raw: &[&str], words: &[String]) -> usize {
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
            && (is_in(CLAUSE, &words[place]) || raw[place - 1].ends_with([',', ';', ':']))
            && words[..place].iter().any(|word| may_name(word));
        // «I'm a fan of hers»: the speaker is no other person.
        let is_of_speaker =
            place > 0 && is_in("a an the", &words[place]) && is_in("i'm im am we're", &words[place - 1]);
        is_name
            || begins
            || raw[place].contains(['"', '“'])
            || names_something(words, place) && !is_of_speaker && !is_measure(words, place)
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
            let follows = if is_in(ACTS, next) { "to that" } else { FOLLOWS_IT };
            !(is_subject && words[place + 1..].iter().any(|word| is_in(follows, word)))
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
    BACKWARD.is_match(sentence.trim()) || lacks_chinese_subject(sentence)
}

/// Whether a Chinese sentence begins with a copula whose subject was named before: 是黑色的.
fn lacks_chinese_subject(sentence: &str) -> bool {
    static COPULA: Pattern = Pattern::new(
        "^(?:应该|應該|可能|好像|其实|其實|已经|已經|当然|當然|就|也|都|不|还|還|只)*(?:是|叫做|叫|属于|屬於)[^否不因为為这這那我你他她它]",
    );
    COPULA.is_match(sentence.trim())
}

/// Whether a sentence has a number or a name inside, which would be lost with it. Chinese names look like other words.
pub fn names_value(sentence: &str) -> bool {
    let sentence = without_address(sentence);
    let is_name = |word: &str| {
        let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
        let stem = word.split(['\'', '’']).next().unwrap_or_default();
        stem.starts_with(char::is_uppercase) && stem != "I"
    };
    let words: Vec<&str> = sentence.split_whitespace().collect();
    // The capital of a sentence's first word names nothing.
    let mut inside = words.windows(2).filter(|pair| !pair[0].ends_with(['.', '!', '?', '…']));
    sentence.chars().any(|c| c.is_ascii_digit())
        || is_chinese(sentence)
        || inside.any(|pair| is_name(pair[1]))
}

/// Whether a sentence of several states nothing and names nothing: an item of a list, a heading, or a Chinese copula without
/// its subject.
pub fn is_fragment(sentence: &str) -> bool {
    const LONGEST: usize = 12;
    if is_chinese(sentence) {
        let has_digit = sentence.chars().any(|c| c.is_ascii_digit());
        return !has_digit && sentence.chars().count() <= LONGEST && lacks_chinese_subject(sentence);
    }
    is_bare(sentence) && !names_value(sentence) || is_title(sentence)
}

/// Whether a text is a title: several words, all of them with a capital except for short ones, and none of them a verb.
fn is_title(text: &str) -> bool {
    const LEAST_WORDS: usize = 4;
    const SHORT: usize = 3;
    let words = lower_words(text);
    let is_capital = |word: &str| {
        let letters = word.trim_start_matches(|c: char| !c.is_alphanumeric());
        letters.chars().count() <= SHORT || letters.starts_with(char::is_uppercase)
    };
    words.len() >= LEAST_WORDS
        && !text.contains(|c: char| c.is_ascii_digit())
        && !text.trim_end().ends_with(['.', '!', '?'])
        && text.split_whitespace().all(is_capital)
        && !words.iter().any(|word| is_verb(word))
}

/// Whether a sentence names no person and has no verb.
pub fn is_bare(sentence: &str) -> bool {
    const BEGINS: &str = "any some all more other possible potential";
    const SHORT: usize = 6;
    if is_chinese(sentence) {
        return false;
    }
    let words = lower_words(sentence);
    let first = words.first().map(String::as_str).unwrap_or_default();
    let begins = first.ends_with("ing") || is_in(BEGINS, first) || words.len() <= SHORT;
    begins && states_nothing(&words)
}

/// Whether these words name no person and hold no verb.
pub(super) fn states_nothing(words: &[String]) -> bool {
    const PERSONS: &str = "user i i'm im we you he she it they my our me us mine ours who";
    !words.iter().any(|word| is_verb(word) || is_in(PERSONS, word) || word.ends_with("n't"))
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

/// Whether a sentence only leads a listener on: «let's go», «here's a photo», «well, I'm off to bed».
pub fn is_for_listener(sentence: &str) -> bool {
    static LEADS: Pattern = Pattern::new(
        r"(?i)^(?:(?:and|so|also|but|well|anyway|ok|okay),? )*(?:let['’]s|here['’]s|here (?:is|are)|check (?:out|this|it)|take a look|(?:i['’]?m|we['’]re) off(?: now| to (?:go|bed|work|sleep)|[.!]|$)|(?:i |we )?(?:gotta|have to|must) (?:go|run|dash)(?: now)?[.!]*$|have a (?:great|good|nice|lovely))\b",
    );
    static ADVISES: Pattern = Pattern::new(
        r"(?i)^(?:(?:and|so|also|but|just),? )*(?:don['’]t (?:be |forget|worry|give up|stress|hesitate)|good luck|keep (?:it |them )?up|hang in there|stay (?:strong|safe|positive)|go for it|you got this)\b",
    );
    let said = without_greeting(sentence);
    let is_advice = || ADVISES.is_match(said) && !is_of_speaker(said);
    (LEADS.is_match(said) || is_advice()) && !sentence.chars().any(|c| c.is_ascii_digit())
}

/// Whether a sentence speaks of its speaker.
pub fn is_of_speaker(sentence: &str) -> bool {
    static SPEAKER: Pattern =
        Pattern::new(r"(?i)\b(?:i|i['’]\w+|im|ive|my|mine|me|we|we['’]\w+|our|ours|us)\b|[我咱俺]");
    SPEAKER.is_match(sentence)
}

/// Whether a sentence tells nothing that is worth knowing: «I learned a lot», «things are going well», 我最近很忙.
pub fn says_little(sentence: &str) -> bool {
    const ENDS: &str =
        r"(?: (?:too|today|lately|again|together|there|here|now|so far|though|these days))*[.!…]*$";
    static ENGLISH: Pattern = Pattern::made(|| {
        format!(
            r"(?i)^(?:i|we)(?:['’]ve|['’]d| have| had| also| just| really| even| always| both| all| still| never)* (?:learn(?:ed|t)|did|got|had|made|gained|saw|met|enjoyed|loved?|like|feel|felt|knew|know|wanted?|needed?|know)(?: so| really| very)? (?:much|a lot|lots|things?|something|stuff|everything|more|it all|fun|a (?:\w+ )?(?:time|blast|ball|day|experience)){ENDS}|^(?:i|we|it|things?|everything|life|work|all)(?:['’](?:ve|s|m|re)| have| has| had| am| is| are| was| were)(?: just| all| really| so| pretty| very| quite| been| going| doing| feeling| a bit| super)* (?:well|good|great|okay|ok|fine|hectic|crazy|amazing|awesome|fun|excited|happy|nice|busy|positive){ENDS}|^(?:(?:yes|yeah|yea|yep|no|nope|nah|oh),? )*(?:i|we) (?:(?:\w+%? ){{0,2}}agree|do|did|don['’]t|didn['’]t|have|haven['’]t|am|was|can|can['’]t|will|won['’]t|would|hope so|think so)[.!]*$"
        )
    });
    static CHINESE: Pattern = Pattern::new(
        "^(?:我|我们|我們|一切|都|也|还|還)*(?:最近|今天|现在|現在)?(?:都|也|很|真|太|挺|还|還)*(?:好|不错|不錯|开心|開心|高兴|高興|忙|累|顺利|順利|学到了?很多|學到了?很多|收获很多|收穫很多)[的了啊呢吧]*[。！!]*$",
    );
    let said = without_address(sentence);
    if is_chinese(said) { CHINESE.is_match(said) } else { ENGLISH.is_match(said) }
}

/// Whether what is left of a statement after a part of it changed still says something.
pub fn is_rest(rest: &str) -> bool {
    static CUT: Pattern = Pattern::new(
        r"^(?i:to|on|in|at|with|for|of|which|that|and|but|so|including|focusing|because|see|currently)\b|^(?:并|並|但|而|所以|因此|然后|然後|以及|还|還)",
    );
    !CUT.is_match(rest) && !is_fragment(rest)
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

/// A sentence with what its speaker said before it, in quotation marks.
pub fn after_saying(sentence: &str, said: &str) -> String {
    let told = in_reply_to(sentence, said);
    told.replacen(" (in reply to “", " (after saying “", 1).replacen("（回应“", "（此前说“", 1)
}

/// A statement without what it answers, or what its speaker said before it.
pub fn without_reply(statement: &str) -> String {
    without_mark(&without_saying(statement), [(" (in reply to “", "”)"), ("（回应“", "”）")])
}

/// A statement without what its speaker said before it.
pub fn without_saying(statement: &str) -> String {
    without_mark(statement, [(" (after saying “", "”)"), ("（此前说“", "”）")])
}

/// A statement without the last text between two of these marks.
fn without_mark(statement: &str, marks: [(&str, &str); 2]) -> String {
    for (open, close) in marks {
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
            "I'm a huge fan of hers",
            "Gets tiring in summer though",
            "I'm taking a course in that field next spring",
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
            "I'm a tailor, it pays the rent.",
            "I knew of that when I was at school in Gent",
            "I row for that reason",
            "Rosa sold her car",
            "我这周不在",
            "我有一条狗，它叫豆豆。",
            "这周我值班",
        ] {
            assert!(!lacks_referent(whole), "{whole}");
        }
    }

    #[test]
    fn a_clause_that_names_nothing_explains_no_pronoun() {
        for lacking in [
            "I was really tired, but it was worth the climb.",
            "For two years I kept doing it every Sunday",
            "We had a lot of fun when they came",
            "Which makes me late on Fridays.",
            "Because the ferry was full",
            "是黑色的。",
            "应该是去年买的",
        ] {
            assert!(lacks_referent(lacking), "{lacking}");
        }
        for whole in [
            "I love sourdough because it keeps.",
            "Because the rent rose, I moved to Ulm.",
            "是不是该换了",
            "是我买的",
        ] {
            assert!(!lacks_referent(whole), "{whole}");
        }
        assert!(is_fragment("是黑色的。") && is_fragment("Common Knots for Small Dinghies"));
        assert!(!is_fragment("是2019年买的。") && !is_fragment("Ida Bought a Dinghy in Gent"));
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
    fn some_sentences_say_little() {
        for little in [
            "I learned so much!",
            "We had a great time together.",
            "Things have been pretty hectic lately.",
            "Yeah, I'm doing well, Vera!",
            "I 100% agree, Vera.",
            "Yes I have!",
            "我最近很忙。",
            "我们都挺好的",
        ] {
            assert!(says_little(little), "{little}");
        }
        for telling in
            ["I learned Basque.", "We had a great time in Gent.", "I'm vegan.", "我最近很忙，在写论文"]
        {
            assert!(!says_little(telling), "{telling}");
        }
    }

    #[test]
    fn words_to_a_listener_are_no_part_of_a_sentence() {
        assert!(lacks_referent("Thanks! it's a rowing club.") && lacks_referent("Wow, I tried it, Vera!"));
        assert!(
            lacks_referent("I keep some of these in the shed")
                && lacks_referent("It made me think since May.")
        );
        assert!(!lacks_referent("Cheers, two of my boats leak"));
        assert!(is_for_listener("Let's row on Sunday") && is_for_listener("Well, I'm off to bed"));
        assert!(is_for_listener("And don't forget to rest") && !is_for_listener("Don't forget my birthday"));
        assert!(!is_for_listener("I'm off on Fridays") && !is_for_listener("Here's my number: 4471"));
        assert!(!names_value("Thanks, I tried, Vera!") && names_value("I met Vera"));
        assert!(names_nothing("When do you leave?") && !names_nothing("When is the regatta?"));
    }

    #[test]
    fn a_rest_says_something() {
        assert!(is_rest("The user rows") && is_rest("Thursday at 10") && is_rest("用户养狗"));
        assert!(!is_rest("to finish the 3 hulls") && !is_rest("并讨论了第3章"));
        assert!(!is_rest("to finish the hull") && !is_rest("并讨论了剧情") && !is_rest("Sails and ropes"));
    }

    #[test]
    fn a_reply_names_what_it_answers() {
        let told = in_reply_to("I've had them for years.", "How are the \"turtles\"?");
        assert_eq!(told, "I've had them for years (in reply to “How are the 'turtles'?”).");
        assert_eq!(without_reply(&told), "I've had them for years.");
        assert_eq!(without_reply(&in_reply_to("养了三年了", "乌龟呢？")), "养了三年了");
        assert_eq!(without_reply("plain"), "plain");
        let told = after_saying("It leaks.", "I bought a canoe.");
        assert_eq!(told, "It leaks (after saying “I bought a canoe.”).");
        assert_eq!(without_reply(&told), "It leaks.");
        assert_eq!(without_reply(&after_saying("漏水了", "我买了艘船。")), "漏水了");
    }
}
