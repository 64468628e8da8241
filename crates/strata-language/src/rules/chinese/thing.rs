//! Reads Chinese clauses about a possession or an appointment: the subject is the slot.

use super::super::claim::{Arity, Claim, Hold, ReadClaim};
use super::super::value;
use super::{VAGUE, corrected, in_third_person, words};
use crate::Pattern;
use crate::rules::StatementKind;

/// A pattern for a thing with its owner, and the given predicate.
fn thing(predicate: &str) -> String {
    let (attribute, appointment, kin) = (words::ATTRIBUTE, words::APPOINTMENT, words::KIN);
    let owner = format!(
        "(?<own>(?:我们|咱们|我|用户|本人)(?:现在|目前)?(?<kin>的?(?:{kin})(?:的|最)?)?)?的?(?:新|现在的)?"
    );
    let noun = format!(
        "(?<noun>最?(?:喜欢|爱)的[^是]{{1,8}}?|(?:{attribute})|[^是在不我你的]{{0,6}}?(?:{appointment})(?:时间|日期)?)"
    );
    let between = "(?:现在|目前|已经|也|又|刚|被|才|只有|差不多|大概|每个?月|一个月|从[^，]{1,8})*";
    format!("^(?:其实|现在|目前|但是?|不过)*{owner}{noun}{between}{predicate}[了啦哦呀。！]*$")
}

/// 四千五, 七十五公斤, 一米八: a number, with or without its unit.
fn is_amount(value: &str) -> bool {
    static AMOUNT: Pattern = Pattern::made(|| {
        let number = "[一二两三四五六七八九十百千万点半零〇]+";
        format!("^{number}(?:(?:公斤|千克|斤|厘米|公分|块钱?|元|岁|码|平方米|平米|米)(?:{number})?)?$")
    });
    AMOUNT.is_match(value)
}

static WITH_VERB: Pattern = Pattern::made(|| {
    thing(
        "(?<verb>定在了?|定于|改到了?|改在了?|推迟到了?|提前到了?|挪到了?|延期到了?|安排在了?|涨到了?|降到了?|涨成了?|升到了?|加到了?|减到了?|改成了?|变成了?|换成了?|改为|换了|叫做?|就?是在?|为|在)(?<v>.+?)",
    )
});
static AMOUNT: Pattern = Pattern::made(|| {
    thing("(?<verb>)(?<v>(?:\\d|[一二两三四五六七八九十]|下?个?(?:周|星期|礼拜)|明|后天).{0,10}?)")
});
static WHEN: Pattern = Pattern::new(
    r"^(?:下|本|这|上)?(?:个)?(?:周|星期|礼拜|月|明|后|今|大后|\d|[一二三四五六七八九十]+[月点号日]|早|晚|中午|上午|下午)",
);
static APPOINTMENT: Pattern = Pattern::made(|| format!("(?:{})(?:时间|日期)?$", words::APPOINTMENT));

/// A clause about a thing, taken apart.
struct Thing<'c> {
    noun: &'c str,
    verb: Option<&'c str>,
    /// The value as it was written.
    raw: &'c str,
    /// The clause itself names an owner.
    has_owner: bool,
    /// The thing is the user's, by its owner or by the clause before.
    owned: bool,
    /// The person who owns it, if it is a relative or friend of the user.
    kin: Option<&'c str>,
    favourite: bool,
    appointment: bool,
}

impl<'c> Thing<'c> {
    fn parse(clause: &'c str, before: Option<&str>) -> Option<Self> {
        let found = [&WITH_VERB, &AMOUNT].into_iter().find_map(|pattern| pattern.captures(clause))?;
        let group = |name: &str| found.name(name).map(|group| group.as_str());
        let noun = group("noun")?;
        let favourite = noun.contains("喜欢的") || noun.contains("爱的");
        let has_owner = group("own").is_some();
        Some(Self {
            noun,
            verb: group("verb").filter(|verb| !verb.is_empty()),
            raw: group("v")?,
            has_owner,
            owned: has_owner || before == Some("user"),
            kin: group("kin").map(|kin| kin.trim_start_matches('的').trim_end_matches(['的', '最'])),
            favourite,
            appointment: APPOINTMENT.is_match(noun) && !favourite,
        })
    }

    /// Whether the clause gives the thing a value, and does not merely mention it.
    fn tells(&self) -> bool {
        let is_when = || WHEN.is_match(self.raw);
        match self.verb {
            // Without a verb only an amount is a value: 体重70公斤.
            None if self.appointment => is_when(),
            None => self.raw.starts_with(|c: char| c.is_ascii_digit()) || is_amount(self.raw),
            Some("在" | "是" | "是在") if self.appointment => is_when(),
            Some("在") => false,
            Some(verb) => self.appointment || self.owned || verb.contains(['涨', '降', '升']),
        }
    }

    /// Whether the verb says that the value changed.
    fn changed(&self) -> bool {
        self.verb.is_some_and(|verb| {
            verb.contains(['改', '换', '变', '涨', '降', '升', '推', '提', '挪', '延', '加', '减'])
        })
    }

    /// The claim's subject, and how the statement names the owner.
    fn owner(&self, who: &str) -> (String, String) {
        match self.kin {
            Some(kin) => (format!("user's {}", value::noun(kin)), format!("{who}的{kin}的")),
            None if self.appointment && !self.has_owner => ("user".to_owned(), String::new()),
            None => ("user".to_owned(), format!("{who}的")),
        }
    }

    fn slot(&self) -> String {
        let slot = self.noun.trim_start_matches('最').trim_end_matches("时间").trim_end_matches("日期");
        if self.appointment { format!("{slot} when") } else { value::slot(slot) }
    }
}

/// Reads clauses such as 我的房租是三千, 会议改到周五, 我最喜欢的书是活着. `before` is the subject of the clause before.
pub(super) fn read(clause: &str, who: &str, old: Option<&str>, before: Option<&str>) -> Option<ReadClaim> {
    let thing = Thing::parse(clause, before)?;
    let Thing { noun, raw, .. } = thing;
    // A name is read by the table, which knows whose it is.
    if ["名字", "姓名"].contains(&noun) {
        return None;
    }
    if !thing.tells() || raw.chars().count() > 40 || VAGUE.is_match(raw) {
        return None;
    }
    // The tables read sentences such as 我的工作是… better.
    if !thing.owned && !thing.appointment && !thing.changed() {
        return None;
    }
    let raw = if ["老家", "家乡", "籍贯"].contains(&noun) { raw.trim_end_matches('的') } else { raw };
    let (subject, owner) = thing.owner(who);
    let said = match thing.verb {
        Some("叫" | "叫做") => "叫",
        _ if thing.appointment => "在",
        _ => "是",
    };
    let claim = Claim {
        subject,
        slot: thing.slot(),
        value: value::terms(raw),
        detail: Default::default(),
        old: old.map(value::terms),
        arity: Arity::One,
        hold: Hold::Now,
        errand: None,
    };
    let kind = if thing.favourite { StatementKind::Preference } else { StatementKind::Fact };
    let owner = if noun.starts_with('最') { owner.trim_end_matches('的') } else { &owner };
    let content = format!("{owner}{noun}{said}{}{}", in_third_person(raw, who), corrected(old));
    Some(ReadClaim { claim, content, kind, confidence: 0.9, begins: false })
}
