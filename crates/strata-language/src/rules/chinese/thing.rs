//! What Chinese sentences say of something that somebody has, or of an appointment: the subject is the slot.

use std::sync::LazyLock;

use regex::Regex;

use super::super::claim::{Arity, Claim, Hold, Reading};
use super::super::value;
use super::{VAGUE, corrected, in_third_person, words};
use crate::rules::StatementKind;

/// Something of somebody's, and what follows it.
fn thing(predicate: &str) -> Option<Regex> {
    let (attribute, appointment, kin) = (words::ATTRIBUTE, words::APPOINTMENT, words::KIN);
    let owner = format!(
        "(?<own>(?:我们|咱们|我|用户|本人)(?:现在|目前)?(?<kin>的?(?:{kin})(?:的|最)?)?)?的?(?:新|现在的)?"
    );
    let noun = format!(
        "(?<noun>最?(?:喜欢|爱)的[^是]{{1,8}}?|(?:{attribute})|[^是在不我你的]{{0,6}}?(?:{appointment})(?:时间|日期)?)"
    );
    let between = "(?:现在|目前|已经|也|又|刚|被|才|只有|差不多|大概|每个?月|一个月|从[^，]{1,8})*";
    Regex::new(&format!("^(?:其实|现在|目前|但是?|不过)*{owner}{noun}{between}{predicate}[了啦哦呀。！]*$"))
        .ok()
}

/// 四千五, 七十五公斤, 一米八: a number, with or without its unit.
fn is_amount(value: &str) -> bool {
    static AMOUNT: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let number = "[一二两三四五六七八九十百千万点半零〇]+";
        Regex::new(&format!(
            "^{number}(?:(?:公斤|千克|斤|厘米|公分|块钱?|元|岁|码|平方米|平米|米)(?:{number})?)?$"
        ))
        .ok()
    });
    AMOUNT.as_ref().is_some_and(|amount| amount.is_match(value))
}

/// 我的房租是三千, 会议改到周五, 我最喜欢的书是活着.
pub(super) fn read(clause: &str, who: &str, old: Option<&str>, before: &Option<String>) -> Vec<Reading> {
    static WITH_VERB: LazyLock<Option<Regex>> = LazyLock::new(|| {
        thing(
            "(?<verb>定在了?|定于|改到了?|改在了?|推迟到了?|提前到了?|挪到了?|延期到了?|安排在了?|涨到了?|降到了?|涨成了?|升到了?|加到了?|减到了?|改成了?|变成了?|换成了?|改为|换了|叫做?|就?是在?|为|在)(?<v>.+?)",
        )
    });
    static AMOUNT: LazyLock<Option<Regex>> = LazyLock::new(|| {
        thing("(?<verb>)(?<v>(?:\\d|[一二两三四五六七八九十]|下?个?(?:周|星期|礼拜)|明|后天).{0,10}?)")
    });
    static WHEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^(?:下|本|这|上)?(?:个)?(?:周|星期|礼拜|月|明|后|今|大后|\d|[一二三四五六七八九十]+[月点号日]|早|晚|中午|上午|下午)").ok()
    });
    static APPOINTMENT: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(&format!("(?:{})(?:时间|日期)?$", words::APPOINTMENT)).ok());
    let found = [&WITH_VERB, &AMOUNT].into_iter().find_map(|thing| thing.as_ref()?.captures(clause));
    let Some(found) = found else { return Vec::new() };
    let (noun, verb, raw) =
        (&found["noun"], Some(&found["verb"]).filter(|verb| !verb.is_empty()), &found["v"]);
    // A name is read by the table, which knows whose it is.
    if ["名字", "姓名"].contains(&noun) {
        return Vec::new();
    }
    let favourite = noun.contains("喜欢的") || noun.contains("爱的");
    let appointment =
        APPOINTMENT.as_ref().is_some_and(|appointment| appointment.is_match(noun)) && !favourite;
    let owned = found.name("own").is_some() || before.as_deref() == Some("user");
    let telling = match verb {
        // Without a verb only an amount is a value: 体重70公斤.
        None if appointment => WHEN.as_ref().is_some_and(|when| when.is_match(raw)),
        None => raw.starts_with(|c: char| c.is_ascii_digit()) || is_amount(raw),
        Some("在" | "是" | "是在") if appointment => WHEN.as_ref().is_some_and(|when| when.is_match(raw)),
        Some("在") => false,
        Some(verb) => appointment || owned || verb.contains(['涨', '降', '升']),
    };
    if !telling || raw.chars().count() > 40 || VAGUE.as_ref().is_some_and(|vague| vague.is_match(raw)) {
        return Vec::new();
    }
    let raw = if ["老家", "家乡", "籍贯"].contains(&noun) { raw.trim_end_matches('的') } else { raw };
    // 我的工作是… and the like say what the tables say better.
    let changed = verb.is_some_and(|verb| {
        verb.contains(['改', '换', '变', '涨', '降', '升', '推', '提', '挪', '延', '加', '减'])
    });
    if !owned && !appointment && !changed {
        return Vec::new();
    }
    let (kin, holder) = match found.name("kin") {
        Some(kin) => {
            let kin = kin.as_str().trim_start_matches('的').trim_end_matches(['的', '最']);
            (format!("user's {}", value::noun(kin)), format!("{who}的{kin}的"))
        }
        None => (
            "user".to_owned(),
            if appointment && found.name("own").is_none() { String::new() } else { format!("{who}的") },
        ),
    };
    let slot = noun.trim_start_matches('最').trim_end_matches("时间").trim_end_matches("日期");
    let slot = if appointment { format!("{slot} when") } else { value::slot(slot) };
    let said = match verb {
        Some("叫" | "叫做") => "叫",
        _ if appointment => "在",
        _ => "是",
    };
    let claim = Claim {
        subject: kin,
        slot,
        value: value::terms(raw),
        detail: Default::default(),
        old: old.map(value::terms),
        arity: Arity::One,
        hold: Hold::Now,
        errand: None,
    };
    let kind = if favourite { StatementKind::Preference } else { StatementKind::Fact };
    let holder = if noun.starts_with('最') { holder.trim_end_matches('的') } else { &holder };
    let content = format!("{holder}{noun}{said}{}{}", in_third_person(raw, who), corrected(old));
    vec![Reading { claim, content, kind, confidence: 0.9, begins: false }]
}
