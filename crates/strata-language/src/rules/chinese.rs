//! Reads Chinese sentences: the subject, then adverbs and negation, then a predicate of the table.
//!
//! Traditional characters are read as simplified ones, and statements use the script of the message ([`script`]). Start
//! reading at [`read`].

mod head;
mod plan;
mod script;
mod table;
mod thing;
mod words;

use std::sync::LazyLock;

use jiff::Timestamp;

use super::claim::{Arity, Claim, Errand, Hold, ReadClaim, Rule, Verb, fill};
use super::patterns::{Patterns, Rewrites, with_lists};
use super::value;
use crate::Pattern;
pub(super) use crate::text::simplified;
use crate::time;
use head::PredicateHead;
pub(super) use plan::is_pet;
pub(super) use script::as_written;

/// The subject of a sentence: its key for comparison and its displayed form.
#[derive(Debug, Clone)]
struct Subject {
    key: String,
    display: String,
    /// The noun, for a person or animal that belongs to the user.
    kin: Option<String>,
    named: bool,
}

static RULES: LazyLock<Patterns> = LazyLock::new(|| {
    Patterns::new(table::RULES.iter().map(|rule| format!("^(?:{})$", expand(rule.pattern))))
});

static REWRITES: LazyLock<Rewrites> = LazyLock::new(|| Rewrites::new(table::REWRITES, expand));

static VAGUE: Pattern = Pattern::new(words::VAGUE);
static NO_ERRAND: Pattern = Pattern::new(words::NO_ERRAND);

/// Whether a value is the name of a city, a province or a district.
pub(super) fn is_city(value: &str) -> bool {
    static CITY: Pattern = Pattern::made(|| format!("^(?:{}|{})$", words::CITY, words::MORE_CITIES));
    CITY.is_match(value)
}

/// Replaces the names of word lists in a pattern by the lists.
fn expand(pattern: &str) -> String {
    let lists = [
        ("PLACE", words::PLACE),
        ("CITY", words::CITY),
        ("KIN", words::KIN),
        ("PET", words::PET),
        ("THING", words::THING),
        ("JOB", words::JOB),
        ("SPORT", words::SPORT),
        ("LANG", words::LANG),
        ("NUM", words::NUM),
    ];
    with_lists(pattern, &lists)
}

/// The claims of a clause. A clause in the first person is about `who`; `before` is the subject of the clause before.
pub(super) fn read(clause: &str, who: &str, at: Timestamp, before: &mut Option<String>) -> Vec<ReadClaim> {
    let (clause, old) =
        replaced(clause.trim_end_matches(['了', '啦', '哦', '呀', '啊', '吧', '嘛', '哈', '呢']), clause);
    let clause = rewrite(&clause);
    if let Some(reading) = thing::read(&clause, who, old.as_deref(), before.as_deref()) {
        *before = Some(reading.claim.subject.clone());
        return vec![reading];
    }
    if let Some(death) = plan::death(&clause, who, at) {
        return vec![death];
    }
    let found = subject(&clause, who).or_else(|| {
        let subject = before.as_ref().filter(|_| follows(&clause))?;
        Some((as_subject(subject, who), clause.as_str()))
    });
    if let Some((subject, rest)) = found {
        *before = (!subject.named).then(|| subject.key.clone());
        return claims_about_person(&subject, rest, who, at, old.as_deref());
    }
    // A name at the beginning has no marked end, so each end after which a rule matches is tried.
    for end in clause.char_indices().map(|(end, _)| end).skip(2).take(3) {
        let (name, rest) = clause.split_at(end);
        if !may_be_a_name(name) {
            break;
        }
        let subject = Subject { key: name.to_lowercase(), display: name.to_owned(), kin: None, named: true };
        let readings = claims_about_person(&subject, rest, who, at, old.as_deref());
        if !readings.is_empty() {
            return readings;
        }
    }
    let latin = clause.find(|c: char| !c.is_ascii_alphabetic() && c != ' ').filter(|end| *end > 1);
    if let Some((name, rest)) = latin.map(|end| clause.split_at(end)) {
        let subject = Subject {
            key: name.trim().to_lowercase(),
            display: name.trim().to_owned(),
            kin: None,
            named: true,
        };
        return claims_about_person(&subject, rest, who, at, old.as_deref());
    }
    Vec::new()
}

/// 不是甲而是乙, 从甲改成乙: the sentence with only the new value, and the old value.
fn replaced(trimmed: &str, clause: &str) -> (String, Option<String>) {
    static NOT_BUT: Pattern = Pattern::new(
        r"^(?<s>.*?)(?:其实)?(?:并)?不(?<b>是|叫|在|住在|喜欢)(?<m>叫|在|住在)?(?<o>[^，,而]+?)[，,]?(?:而|应该|其实)?(?:是|叫|在)(?<n>叫|在|住在)?(?<v>[^，,]+)$",
    );
    static BUT_NOT: Pattern = Pattern::new(r"^(?<v>[^不]+?)而不是(?:叫|在|住在)?(?<o>[^，]+)$");
    static FROM_TO: Pattern = Pattern::new(
        r"^(?<s>.*?)从(?<o>[^，]+?)(?<v>(?:改|换|变|涨|降|搬|升|跳槽|调|挪|推迟|提前)(?:成|到|为|用|去).+)$",
    );
    if let Some(found) = NOT_BUT.captures(trimmed) {
        let verb = found
            .name("n")
            .or_else(|| found.name("m"))
            .map_or_else(|| found["b"].to_owned(), |verb| verb.as_str().to_owned());
        return (format!("{}{verb}{}", &found["s"], &found["v"]), Some(found["o"].to_owned()));
    }
    if let Some(found) = BUT_NOT.captures(trimmed) {
        return (found["v"].to_owned(), Some(found["o"].to_owned()));
    }
    if let Some(found) = FROM_TO.captures(trimmed) {
        return (format!("{}{}", &found["s"], &found["v"]), Some(found["o"].to_owned()));
    }
    (clause.trim().to_owned(), None)
}

fn rewrite(clause: &str) -> String {
    REWRITES.apply(clause)
}

/// Whether a clause without a subject continues with the subject of the clause before.
fn follows(clause: &str) -> bool {
    const STARTS: [&str; 25] = [
        "现在", "目前", "在", "也", "还", "又", "而且", "并且", "不过", "但", "就", "已经", "喜欢", "讨厌",
        "住", "是", "叫", "今年", "最", "对", "不", "打算", "改", "每天", "每周",
    ];
    STARTS.iter().any(|start| clause.starts_with(start))
}

fn as_subject(key: &str, who: &str) -> Subject {
    let kin = key.strip_prefix("user's ").map(str::to_owned);
    let display = kin.as_ref().map_or_else(|| who.to_owned(), |kin| format!("{who}的{kin}"));
    let key = kin.as_ref().map_or_else(|| key.to_owned(), |kin| format!("user's {}", value::noun(kin)));
    Subject { key, display, kin, named: false }
}

/// The user, or a person or animal that belongs to the user, and the text after it.
fn subject<'t>(clause: &'t str, who: &str) -> Option<(Subject, &'t str)> {
    static USER: Pattern = Pattern::made(|| {
        format!(
            r"^(?:(?:现在|目前|其实|但是?|不过|而且|所以|因为|反正|最近|以前|去年|今年|原来)*)(?<user>我们家?|咱们?家?|我家?|本人|俺|用户|该用户)(?:(?:的|家的?|有个|有一个)?(?<kin>{})(?:的名字)?)?",
            words::KIN
        )
    });
    static FAMILY: Pattern = Pattern::made(|| format!("^(?<kin>{})", words::FAMILY));
    if let Some(kin) = FAMILY.get().and_then(|family| family.captures(clause)?.name("kin")) {
        return Some((as_subject(&format!("user's {}", kin.as_str()), who), &clause[kin.end()..]));
    }
    let found = USER.captures(clause)?;
    let lead = &clause[..found.name("user")?.start()];
    if let Some(kin) = found.name("kin") {
        let rest = &clause[kin.end()..];
        // 我妈 may be the beginning of 我妈妈, which comes first in the list; 我同事们 is a group.
        if rest.starts_with('们') {
            return None;
        }
        let noun = value::noun(kin.as_str());
        let subject = Subject {
            key: format!("user's {noun}"),
            display: format!("{who}的{}", kin.as_str()),
            kin: Some(kin.as_str().to_owned()),
            named: false,
        };
        return Some((subject, rest.strip_prefix("的名字").unwrap_or(rest)));
    }
    let rest = &clause[found.get(0)?.end()..];
    let past = ["以前", "原来"].iter().any(|word| lead.contains(word));
    let changed = lead.contains("现在") || lead.contains("目前");
    // The words before the subject belong to the predicate if they say something about time.
    let rest =
        if past || changed { clause.get(lead.len() + found.name("user")?.as_str().len()..)? } else { rest };
    Some((Subject { key: "user".to_owned(), display: who.to_owned(), kin: None, named: false }, rest))
}

fn may_be_a_name(name: &str) -> bool {
    const NO_NAME: &str = "我说讲觉认为告诉问你您他她它这那哪谁有没不是会要就都也还很太最只再又的了着过和跟与或但而在从把被让对为什么怎吗呢吧啊哦嗯好请帮给想能可以大家人们今明昨早晚上下现最后然因所如虽其每各某一二三四五六七八九十两几多少";
    name.chars().all(|c| ('\u{4E00}'..='\u{9FFF}').contains(&c) && !NO_NAME.contains(c))
}

/// The claims about a person.
fn claims_about_person(
    subject: &Subject,
    rest: &str,
    who: &str,
    at: Timestamp,
    old: Option<&str>,
) -> Vec<ReadClaim> {
    let whole = rest.trim_end_matches(['。', '！', '!', '.', ' ', '~', '～']);
    let plain = whole.trim_end_matches(['了', '啦', '哦', '呀', '啊', '吧', '嘛', '哈', '呢', '的']);
    let over = plain.len() < whole.len() && whole[plain.len()..].contains(['了', '啦']);
    let (plain, lasting) = plan::without_lasting(plain);
    let ahead = || !over && time::parse(plain, at).iter().any(|span| span.start > at);
    let bare = without_times(plain, at);
    for text in [bare.as_str(), plain] {
        let (head, predicate) = head::parse(text);
        for place in RULES.matches(predicate) {
            let (Some(rule), Some(found)) = (table::RULES.get(place), RULES.groups(place, predicate)) else {
                continue;
            };
            let group = |name: &str| found.name(name).map_or("", |group| group.as_str());
            let Some(hold) = head.hold_of(rule.verb, over) else { continue };
            // An event that begins next month is a plan.
            let hold = if rule.verb == Verb::Begin && !head.done && ahead() { Hold::Planned } else { hold };
            if !is_fit(rule, subject, group("v"), hold)
                || rule.verb == Verb::Begin
                    && rule.slot == "home"
                    && !over
                    && !head.done
                    && !head.planned
                    && text == plain
                    && plain == whole
                    && whole.starts_with('要')
            {
                continue;
            }
            let mut read =
                reading(rule, subject, head, [group("v"), group("t"), group("n")], hold, old, (plain, who));
            read.begins |= lasting && hold == Hold::Now;
            // A decision keeps the time that it names.
            if rule.slot.starts_with("decision") && text != plain && old.is_none() {
                return of_decision(read, subject, plain, who);
            }
            return vec![read];
        }
    }
    plan::planned(subject, plain, (&bare, ahead), who)
}

fn of_decision(read: ReadClaim, subject: &Subject, plain: &str, who: &str) -> Vec<ReadClaim> {
    let content = format!("{}{}", subject.display, in_third_person(plain, who));
    vec![ReadClaim { content, ..read }]
}

fn reading(
    rule: &Rule,
    subject: &Subject,
    head: PredicateHead,
    groups: [&str; 3],
    hold: Hold,
    old: Option<&str>,
    (plain, who): (&str, &str),
) -> ReadClaim {
    let [value, tail, noun] = groups;
    let errand = match rule.verb {
        Verb::Todo => Some(Errand::Open),
        Verb::Did => Some(Errand::Done),
        Verb::Drop => Some(Errand::Dropped),
        _ => None,
    };
    let (key, slot, arity) = slot_of(rule, subject, head, value, noun);
    let claim = Claim {
        subject: key,
        slot,
        value: value::terms(value),
        detail: value::terms(tail),
        old: old.map(value::terms),
        arity,
        hold,
        errand,
    };
    let confidence = match rule.verb {
        _ if subject.named => 0.7,
        Verb::State | Verb::Opposite | Verb::Deed => 0.9,
        Verb::Todo | Verb::Begin | Verb::End | Verb::Drop | Verb::Plan => 0.8,
        Verb::Did => 0.7,
    };
    let predicate = predicate(rule, head, hold, fill(rule.say, value, tail, noun), plain);
    let content = format!("{}{}{}", subject.display, in_third_person(&predicate, who), corrected(old));
    ReadClaim { claim, content, kind: rule.kind, confidence, begins: rule.verb == Verb::Begin }
}

/// The subject, the slot and the number of values of a claim.
fn slot_of(
    rule: &Rule,
    subject: &Subject,
    head: PredicateHead,
    value: &str,
    noun: &str,
) -> (String, String, Arity) {
    let mut slot = rule.slot.replace("{n}", &value::noun(noun));
    if ["home", "origin", "birthplace"].contains(&slot.as_str())
        && words::COUNTRIES.split_whitespace().any(|country| country == value)
    {
        slot.push_str(" country");
    }
    // 我女儿叫小雨 names a person that belongs to the user; so does 我有个女儿叫小雨.
    if slot == "name"
        && let Some(kin) = &subject.kin
    {
        let single = words::SINGLE.split_whitespace().any(|one| one == kin);
        let arity = if single { Arity::One } else { Arity::Many };
        return ("user".to_owned(), format!("name of {}", value::noun(kin)), arity);
    }
    let arity = match rule.arity {
        // Two sentences about 我同事 may speak of two colleagues.
        Arity::One | Arity::Soft if is_one_of_several(subject) => Arity::Many,
        Arity::Soft if head.changed => Arity::One,
        arity => arity,
    };
    (subject.key.clone(), slot, arity)
}

/// The predicate as the statement says it: `say` with negation or tense, or the clause itself for todos and plans.
fn predicate(rule: &Rule, head: PredicateHead, hold: Hold, say: String, plain: &str) -> String {
    let shown = if rule.verb == Verb::Opposite { hold.flipped() } else { hold };
    // Todos and plans keep the times they name.
    let timed = matches!(rule.verb, Verb::Todo | Verb::Plan) || hold == Hold::Planned;
    match shown {
        _ if timed => plain.trim_start_matches(['我', '，']).to_owned(),
        Hold::Now | Hold::Once => say,
        Hold::Not if say.starts_with('有') => format!("没{say}"),
        Hold::Not => format!("不{say}"),
        Hold::NoLonger if head.past => format!("以前{say}"),
        Hold::NoLonger => format!("不再{say}"),
        Hold::Planned => format!("打算{say}"),
    }
}

fn is_one_of_several(subject: &Subject) -> bool {
    subject.kin.as_ref().is_some_and(|kin| words::SEVERAL.split_whitespace().any(|several| several == kin))
}

/// Replaces 我 inside a predicate: by nothing before a person who belongs to the user, otherwise by the user.
pub(super) fn in_third_person(text: &str, who: &str) -> String {
    static MINE: Pattern = Pattern::made(|| format!("我们?的?(?<kin>{})", words::KIN));
    let text = match MINE.get() {
        Some(mine) => mine.replace_all(text, "$kin").into_owned(),
        None => text.to_owned(),
    };
    text.replace("我们", who).replace('我', who)
}

/// The replaced value. The sentence keeps it, so that a later comparison knows it.
fn corrected(old: Option<&str>) -> String {
    old.filter(|old| !old.is_empty()).map_or_else(String::new, |old| format!("，而不是{old}"))
}

/// The text without its time expressions.
fn without_times(text: &str, at: Timestamp) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut from = 0;
    for span in time::parse(text, at) {
        bare.push_str(text.get(from..span.text.start).unwrap_or_default());
        from = span.text.end;
    }
    bare.push_str(text.get(from..).unwrap_or_default());
    bare
}

/// Whether the rule may make a memory of this value: some values mean nothing without their context.
fn is_fit(rule: &Rule, subject: &Subject, value: &str, hold: Hold) -> bool {
    if VAGUE.is_match(value) && rule.verb != Verb::Todo {
        return false;
    }
    if value.is_empty() && rule.verb != Verb::End && !(rule.slot == "partner" && hold.denies()) {
        return false;
    }
    let user = subject.key == "user" && !subject.named;
    match rule.slot {
        "todo" if rule.verb == Verb::Todo => user && !NO_ERRAND.is_match(value),
        "todo" | "decision" | "decision for {n}" | "plan" => user,
        // Only food and drinks that a person avoids say something about the person.
        "eat" | "smoke" | "alcohol" if subject.named => false,
        "eat" => hold.denies() || rule.verb == Verb::Begin,
        "owned" if rule.verb == Verb::State => hold.denies(),
        "has" if rule.say == "有{v}" && rule.pattern.starts_with("有?") => hold.denies(),
        "routine" | "taste" => hold == Hold::Now,
        "name" => subject.kin.is_some() || user,
        "origin" if rule.say == "是{v}人" => !words::NO_ORIGIN.split('|').any(|no| value.ends_with(no)),
        "home" | "origin" => {
            value::may_be_a_place(value) && !["家", "家里", "学校", "宿舍", "酒店", "一起"].contains(&value)
        }
        "employer" => !["家", "家里", "努力", "认真", "一起", "哪里", "哪", "外面"].contains(&value),
        _ => true,
    }
}
