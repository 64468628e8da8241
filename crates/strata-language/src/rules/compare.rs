//! Compares new statements with known ones, claim by claim, and makes the plan.
//!
//! The worst error is to end a memory that is still true. So a memory ends only if every claim in it is replaced,
//! denied or done. A text that no rule reads can only be recognised as a repetition, and a hedged statement ends
//! nothing.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::claim::{Arity, Claim, Errand, Hold};
use super::sentence::{self, Language};
use super::statement::Known;
use super::{chinese, english};
use crate::normalised;
use crate::plan::{Fate, Novelty, Plan, TodoEnd};
use crate::text;

/// A statement with less confidence than this ends nothing.
const SURE_ENOUGH: f32 = 0.5;

/// The effect of a new claim on a known one.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Verdict {
    Unrelated,
    Same,
    /// It has another value, which replaces the known one.
    Replaces,
    /// It denies the known claim.
    Denies,
    /// The todo is over. The similarity of the two claims selects one of several todos.
    Ends(TodoEnd, f32),
}

/// A text as the comparison sees it.
struct ReadText {
    /// Identical texts make identical claims, whether or not a grammar reads them.
    text: String,
    claims: Vec<Claim>,
    terms: BTreeSet<String>,
    negative: bool,
}

impl ReadText {
    fn of(content: &str) -> Self {
        let mut claims = Vec::new();
        let mut subject = None;
        for clause in sentence::clauses(content) {
            let readings = match clause.language {
                Language::English => english::read(&clause.text, "The user", Timestamp::UNIX_EPOCH),
                Language::Chinese => chinese::read(&clause.text, "用户", Timestamp::UNIX_EPOCH, &mut subject),
            };
            claims.extend(readings.into_iter().map(|reading| reading.claim));
        }
        let folded = text::fold(content);
        let denials = [" not ", "n't ", " no longer ", " never ", "不", "没", "别"];
        Self {
            text: normalised(content),
            claims,
            terms: text::analyse(content).into_iter().filter(|term| term != "user").collect(),
            negative: denials.iter().any(|denial| folded.contains(denial)),
        }
    }

    /// Whether this says the same as `known`.
    fn repeats(&self, known: &Self) -> bool {
        if self.text == known.text {
            return true;
        }
        if self.claims.is_empty() || known.claims.is_empty() {
            return self.terms == known.terms && self.negative == known.negative;
        }
        let said = |claim: &Claim| known.claims.iter().any(|other| judge(claim, other) == Verdict::Same);
        self.claims.iter().all(said)
    }

    /// The effect of this on `known`, if there is one: each claim of `known` has to end.
    fn ends(&self, known: &Self) -> Option<Verdict> {
        if self.text == known.text {
            return None;
        }
        let mut last = None;
        for claim in &known.claims {
            let verdicts = self.claims.iter().map(|own| judge(own, claim));
            last = Some(
                verdicts
                    .into_iter()
                    .find(|verdict| !matches!(verdict, Verdict::Unrelated | Verdict::Same))?,
            );
        }
        last
    }
}

/// The complete plan.
pub(super) fn plan(new: &[(&str, f32)], known: &[Known<'_>]) -> Plan {
    let mut plan = Plan::add_all(known.len(), new.len());
    let read_known: Vec<Option<ReadText>> =
        known.iter().map(|known| known.is_current.then(|| ReadText::of(known.content))).collect();
    let read_new: Vec<ReadText> = new.iter().map(|(content, _)| ReadText::of(content)).collect();
    for (place, (_, confidence)) in new.iter().enumerate() {
        let own = &read_new[place];
        let same = read_known.iter().zip(&plan.known).position(|(other, fate)| {
            *fate == Fate::Keep && other.as_ref().is_some_and(|other| own.repeats(other))
        });
        let ending =
            if *confidence < SURE_ENOUGH { Vec::new() } else { endings(own, &read_known, &plan, place) };
        match same {
            // It says the same as one memory and contradicts another: it replaces both.
            Some(same) if !ending.is_empty() => {
                let taken = plan.new.contains(&Novelty::Duplicate { of: same });
                if !taken {
                    plan.known[same] = Fate::Update { by: place };
                }
            }
            Some(same) => {
                plan.new[place] = Novelty::Duplicate { of: same };
                continue;
            }
            None => {
                let earlier = (0..place)
                    .find(|earlier| plan.new[*earlier] == Novelty::Add && own.repeats(&read_new[*earlier]));
                if let Some(of) = earlier.filter(|_| ending.is_empty()) {
                    plan.new[place] = Novelty::Repeated { of };
                    continue;
                }
            }
        }
        for (memory, fate) in ending {
            plan.known[memory] = fate;
        }
    }
    plan
}

/// The memories that end because of a statement.
fn endings(own: &ReadText, known: &[Option<ReadText>], plan: &Plan, by: usize) -> Vec<(usize, Fate)> {
    let mut found = Vec::new();
    let mut todos: Vec<(usize, TodoEnd, f32)> = Vec::new();
    for (place, other) in known.iter().enumerate() {
        let (Some(other), fate) = (other, plan.known[place]) else { continue };
        // A memory that ends already may end for a better reason: «used to live in A, now lives in B» replaces A.
        let open = matches!(fate, Fate::Keep | Fate::Delete { .. });
        if !open || plan.new.contains(&Novelty::Duplicate { of: place }) {
            continue;
        }
        match own.ends(other) {
            Some(Verdict::Replaces) => found.push((place, Fate::Update { by })),
            Some(Verdict::Denies) if fate == Fate::Keep => found.push((place, Fate::Delete { by })),
            Some(Verdict::Ends(how, likeness)) if fate == Fate::Keep => todos.push((place, how, likeness)),
            _ => {}
        }
    }
    found.extend(likeliest(todos).map(|(place, how)| (place, Fate::End { by, how })));
    found
}

/// The todo that matches best. `None` if two match equally well, because it is unknown which of them was done.
fn likeliest(mut todos: Vec<(usize, TodoEnd, f32)>) -> Option<(usize, TodoEnd)> {
    todos.sort_by(|a, b| b.2.total_cmp(&a.2));
    match todos.as_slice() {
        [first, second, ..] if first.2 == second.2 => None,
        [(place, how, _), ..] => Some((*place, *how)),
        [] => None,
    }
}

/// Whether a claim ends another.
pub(super) fn ends(new: &Claim, known: &Claim) -> bool {
    !matches!(judge(new, known), Verdict::Unrelated | Verdict::Same)
}

fn judge(new: &Claim, known: &Claim) -> Verdict {
    if !is_same_one(&new.subject, &known.subject) {
        return Verdict::Unrelated;
    }
    if new.slot == "death" {
        return judge_death(new, known);
    }
    if new.errand.is_some() || known.errand.is_some() {
        return judge_errands(new, known);
    }
    let changed = new.hold == Hold::Now && known.hold == Hold::Now && has_changed(new, known);
    if changed {
        return Verdict::Replaces;
    }
    if !slots_meet(new, known) {
        return Verdict::Unrelated;
    }
    let same = !known.value.is_empty() && new.value == known.value && !is_another_time(new, known);
    let gone = new.hold.denies() && ["owned", "has"].contains(&new.slot.as_str());
    // «I sold my car» means any car that is known; «my old car» may be another one.
    if gone && !new.detail.is_empty() {
        return Verdict::Unrelated;
    }
    let same = same || gone && names_slot(new, known);
    let corrected = new.old.as_ref().is_some_and(|old| {
        !old.is_empty()
            && (*old == known.value || known.slot.starts_with("decision") && old.is_subset(&known.value))
    });
    if corrected && matches!(known.hold, Hold::Now | Hold::Planned) && !same {
        return if new.hold.denies() { Verdict::Denies } else { Verdict::Replaces };
    }
    match (new.hold, known.hold) {
        (Hold::Now, Hold::Now) | (Hold::Planned, Hold::Planned) => {
            let known_better =
                new.arity == Arity::One && !new.value.is_empty() && new.value.is_subset(&known.value);
            match (same || known_better, new.arity) {
                (true, _) => Verdict::Same,
                (false, Arity::One) => Verdict::Replaces,
                (false, Arity::Soft | Arity::Many) => Verdict::Unrelated,
            }
        }
        // The plan was carried out.
        (Hold::Now, Hold::Planned) if same => Verdict::Replaces,
        (Hold::Not | Hold::NoLonger, Hold::Now | Hold::Planned) if same || new.value.is_empty() => {
            Verdict::Denies
        }
        (Hold::Now, Hold::Not | Hold::NoLonger) if same => Verdict::Denies,
        (Hold::Not | Hold::NoLonger, Hold::Not | Hold::NoLonger) if same => Verdict::Same,
        (Hold::Once, Hold::Once) if same => Verdict::Same,
        _ => Verdict::Unrelated,
    }
}

/// Whether two subjects are the same: by equal words, or by a name and a relation («Leo», «my son Leo»).
fn is_same_one(one: &str, other: &str) -> bool {
    let names = |name: &str, kin: &str| {
        kin.starts_with("user's ")
            && kin.split(' ').count() > 2
            && kin.strip_suffix(name).is_some_and(|kin| kin.ends_with(' '))
    };
    one == other || names(one, other) || names(other, one)
}

/// Whether the detail beside the value changed, or a new couple ends the state of being single.
fn has_changed(new: &Claim, known: &Claim) -> bool {
    let couple = ["partner", "spouse"].contains(&new.slot.as_str()) || is_couple(&new.slot);
    if couple && known.slot == "marital status" {
        return ["single", "单身"].iter().any(|single| known.value == super::value::terms(single));
    }
    if new.slot != known.slot || new.value.is_empty() {
        return false;
    }
    // «On Wednesdays, not Mondays».
    let other_time = new.old.as_ref().is_some_and(|old| !old.is_empty() && old.is_subset(&known.detail));
    // «Prefers coffee over tea» after «prefers tea».
    let reversed = new.slot == "favourite"
        && !known.value.is_empty()
        && new.value != known.value
        && known.value.is_subset(&new.detail)
        && (known.detail.is_empty() || new.value.is_subset(&known.detail));
    new.value == known.value && other_time && new.detail != known.detail || reversed
}

/// Whether both claims are true at different times: «on Mondays» and «on Wednesdays».
fn is_another_time(new: &Claim, known: &Claim) -> bool {
    let both = !new.detail.is_empty() && !known.detail.is_empty();
    ["plays", "routine"].contains(&new.slot.as_str()) && both && new.detail != known.detail
}

/// Whether the value of a claim is the noun of another claim's slot: «the car» and «my car is».
fn names_slot(new: &Claim, known: &Claim) -> bool {
    text::analyse(&known.slot).into_iter().collect::<BTreeSet<_>>() == new.value
}

/// The effect of a death: an animal that died is no longer a pet; the facts about people stay.
fn judge_death(new: &Claim, known: &Claim) -> Verdict {
    let is_pet = |noun: &str| english::is_pet(noun) || chinese::is_pet(noun);
    let named = known.slot.strip_prefix("name of ").is_some_and(is_pet)
        && !new.value.is_empty()
        && known.value == new.value;
    let unnamed = known.slot == "has" && new.value.is_empty() && known.value == new.detail;
    match known.slot.as_str() {
        "death" if known.value == new.value && known.detail == new.detail => Verdict::Same,
        _ if known.hold == Hold::Now && (named || unnamed) => Verdict::Denies,
        _ => Verdict::Unrelated,
    }
}

fn judge_errands(new: &Claim, known: &Claim) -> Verdict {
    match (new.errand, known.errand) {
        (Some(a), Some(b)) if a == b && new.value == known.value => Verdict::Same,
        (Some(end @ (Errand::Done | Errand::Dropped)), Some(Errand::Open)) => {
            let meets = !new.value.is_empty()
                && !known.value.is_empty()
                && (new.value.is_subset(&known.value) || known.value.is_subset(&new.value));
            let shared = new.value.intersection(&known.value).count() as f32;
            let likeness = shared / new.value.union(&known.value).count().max(1) as f32;
            let how = if end == Errand::Done { TodoEnd::Done } else { TodoEnd::Dropped };
            if meets { Verdict::Ends(how, likeness) } else { Verdict::Unrelated }
        }
        _ => Verdict::Unrelated,
    }
}

/// Whether two claims are about the same thing. The end of a state reaches further than the state: a person who sold
/// the Golf neither has nor drives it, and a couple that broke up ends under every name.
fn slots_meet(new: &Claim, known: &Claim) -> bool {
    let couple = |slot: &str| slot == "spouse" || is_couple(slot);
    match new.slot.as_str() {
        slot if slot == known.slot => true,
        "owned" if ["has", "vehicle"].contains(&known.slot.as_str()) => true,
        "owned" | "has" => new.hold.denies() && names_slot(new, known),
        // A person who gave up coffee no longer likes it.
        "eat" => new.hold == Hold::NoLonger && known.slot == "like",
        "partner" => new.hold.denies() && couple(&known.slot),
        slot => slot.starts_with("decision") && known.slot.starts_with("decision") && new.old.is_some(),
    }
}

/// Whether a slot is the name of a partner.
fn is_couple(slot: &str) -> bool {
    const COUPLES: &str =
        "boyfriend girlfriend partner husband wife spouse fiance 妻子 丈夫 男朋友 女朋友 男友 女友";
    slot.strip_prefix("name of ").is_some_and(|noun| COUPLES.split(' ').any(|couple| couple == noun))
}
