//! Plans, deaths and durations, in Chinese.

use jiff::Timestamp;

use super::super::claim::{Arity, Claim, Hold, ReadClaim};
use super::super::{since, value};
use super::{NO_ERRAND, Subject, VAGUE, head, in_third_person, may_be_a_name, without_times, words};
use crate::Pattern;
use crate::rules::StatementKind;

/// A predicate without its duration (吃素已经五年), and whether it had one.
pub(super) fn without_lasting(plain: &str) -> (&str, bool) {
    static LASTING: Pattern = Pattern::new(since::LASTING_CHINESE);
    let found = LASTING.get().and_then(|lasting| lasting.captures(plain)?.name("before"));
    match found.map(|before| before.end()) {
        Some(end) if end >= "吃素".len() => {
            (plain[..end].trim_end_matches("已经").trim_end_matches('了'), true)
        }
        _ => (plain, false),
    }
}

/// A plan that no rule reads better: 打算明年去日本留学.
pub(super) fn planned(
    subject: &Subject,
    plain: &str,
    (bare, ahead): (&str, impl Fn() -> bool),
    who: &str,
) -> Vec<ReadClaim> {
    static STEPS: Pattern = Pattern::new(
        "^(?:去|到|搬|学|考|买|换|读|移民|留学|创业|结婚|生|养|开|带|跟|和|申请|参加|辞职|装修|报)",
    );
    let (meant, what) = head::parse(bare);
    let is = |pattern: &Pattern| pattern.is_match(what);
    let telling = || what.chars().count() >= 4 && (is(&STEPS) || ahead()) && !is(&VAGUE) && !is(&NO_ERRAND);
    if !meant.planned || meant.negated || subject.named || !telling() {
        return Vec::new();
    }
    let claim = Claim {
        subject: subject.key.clone(),
        slot: "plan".to_owned(),
        value: value::terms(what),
        detail: Default::default(),
        old: None,
        arity: Arity::Many,
        hold: Hold::Planned,
        errand: None,
    };
    let content = format!("{}{}", subject.display, in_third_person(plain, who));
    vec![ReadClaim { claim, content, kind: StatementKind::Fact, confidence: 0.8, begins: false }]
}

/// 我的狗旺财死了, 我爸爸去世了, 旺财上个月走了.
pub(super) fn death(clause: &str, who: &str, at: Timestamp) -> Option<ReadClaim> {
    static DEATH: Pattern = Pattern::made(|| {
        let kin = words::KIN;
        format!(
            r"^(?:(?:我们?家?|用户)的?)?(?<kin>{kin})?(?<name>[^，,]{{0,4}}?)(?:(?:已经|刚刚?|因病|不幸)*)(?<verb>去世|过世|离世|病逝|死|走|离开我们)了$"
        )
    });
    if !clause.ends_with('了') || !clause.contains(['世', '逝', '死', '走', '开']) {
        return None;
    }
    let bare = without_times(clause, at);
    let found = DEATH.captures(&bare)?;
    let (kin, name) = (found.name("kin").map(|kin| kin.as_str()), &found["name"]);
    let named = (2..=4).contains(&name.chars().count()) && may_be_a_name(name);
    // 走了 may mean that a person left. For an animal, or for a name with a time, it means a death.
    let plain = !["走", "离开我们"].contains(&&found["verb"])
        || kin.is_some_and(is_pet)
        || kin.is_none() && bare != clause;
    let told_whom = named || kin.is_some() && name.is_empty();
    if !told_whom || !plain {
        return None;
    }
    let claim = Claim {
        subject: "user".to_owned(),
        slot: "death".to_owned(),
        value: value::terms(name),
        detail: value::terms(&kin.map(value::noun).unwrap_or_default()),
        old: None,
        arity: Arity::Many,
        hold: Hold::Now,
        errand: None,
    };
    let whose = kin.map_or_else(String::new, |kin| format!("{who}的{kin}"));
    let verb = if &found["verb"] == "死" { "死" } else { "去世" };
    let content = format!("{whose}{name}{verb}了");
    let confidence = if kin.is_some() { 0.9 } else { 0.7 };
    Some(ReadClaim { claim, content, kind: StatementKind::Fact, confidence, begins: false })
}

/// Whether this noun names an animal.
pub(in super::super) fn is_pet(noun: &str) -> bool {
    words::PET.split('|').any(|pet| pet == noun) || noun == "宠物"
}
