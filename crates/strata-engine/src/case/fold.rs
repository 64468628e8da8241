//! Folds judged sentences into the state.

use std::collections::HashSet;

use strata_core::ports::{CaseRole, Speaker};
use strata_core::state::{DiagnosticState, DiagnosticStatus, Observed, State};
use strata_language::statements::share_content;
use strata_language::text::query_terms;

use super::Judged;
use super::cues::{alternatives, begins_problem, leaves_subject};
use super::small_talk::{Attention, Links, Said, is_at_work, is_common, is_small_talk, note};
use super::status_cues::End;
use super::subject_cues::{announces_subject, without_announcement};
use super::subjects::{self, Change};
use crate::prompt::{
    Likeness, Moment, TaskEnd, add_task, close_task, has_done, likeness, one_line, open_tasks, remove_task,
};

/// The most items of each list. The oldest leave first. Facts are the first to go, because a conversation is full of
/// them; causes, decisions and findings have room for several cases.
const MAX_FACTS: usize = 20;
const MAX_FINDINGS: usize = 40;
const MAX_OTHERS: usize = 20;
const MAX_DECISIONS: usize = 40;

/// The share of the shorter sentence's words from which two sentences speak about the same.
const SAME_SHARE: f32 = 0.5;
/// The number of shared words from which they do, too.
const SAME_WORDS: usize = 3;

/// The most findings that are kept while it is open whether they begin a new problem.
const MAX_REFUSED: usize = 3;

/// The number of known items from which a sentence that does not announce a cause may state it. In 56 cases no cause is named
/// before.
const CAUSE_ITEMS: usize = 2;

/// The most letters of a word that says that something is over and names nothing.
const BARE_LETTERS: usize = 12;

/// The number of the newest hypotheses or tasks that the reader compares with a sentence that shares no words with any.
const MAX_COMPARED: usize = 6;

/// The state of a session while the sentences of one turn are folded into it.
pub(crate) struct Case<'a> {
    state: &'a mut State,
    moment: Moment,
    /// The findings of the word patterns in the turn.
    by_rules: &'a State,
    /// Whether a sentence of the turn has announced another subject.
    has_announced: bool,
}

/// The items that a sentence may end.
pub(crate) struct Endings {
    /// The items that share enough words with the sentence, by their places.
    pub(crate) by_words: Vec<usize>,
    /// Other items that the reader may compare with it, the newest last.
    pub(crate) to_compare: Vec<(usize, String)>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(state: &'a mut State, moment: Moment, by_rules: &'a State) -> Self {
        let mut case = Self { state, moment, by_rules, has_announced: false };
        if by_rules.diagnostic.status == DiagnosticStatus::Resolved {
            case.subject().status = DiagnosticStatus::Resolved;
        }
        case
    }

    /// The subject that the turn was about.
    fn subject(&mut self) -> &mut DiagnosticState {
        let State { diagnostic, archived, .. } = &mut *self.state;
        if diagnostic.since <= self.moment.seq {
            return diagnostic;
        }
        let before = archived.iter_mut().filter(|subject| subject.since <= self.moment.seq);
        before.max_by_key(|subject| subject.since).unwrap_or(diagnostic)
    }

    /// The words that a sentence shares with the case.
    fn links(&mut self, text: &str) -> Links {
        let doubted = self.state.observed.doubted.clone();
        let tasks: Vec<String> =
            open_tasks(self.state, self.moment.seq).into_iter().map(|(_, task)| task.to_owned()).collect();
        let DiagnosticState { findings, hypotheses, root_causes, decisions, facts, .. } = self.subject();
        let lists = [&*findings, hypotheses, root_causes, decisions, facts, &tasks];
        let items: Vec<&String> =
            lists.into_iter().flatten().filter(|item| !doubted.contains(item)).collect();
        let known: HashSet<String> = items.iter().flat_map(|item| terms(item)).collect();
        let shared = terms(text).into_iter().filter(|term| !is_common(term) && known.contains(term));
        Links { words: shared.count(), items: items.len() }
    }

    /// Drops what is doubted if the small talk goes on, and believes it if the speakers are at their case.
    fn weigh_doubts(&mut self, is_linked: bool) {
        if self.state.observed.doubted.is_empty() {
            return self.end_small_talk();
        }
        let observed = &mut self.state.observed;
        observed.doubted_for += 1;
        let is_at_work = is_at_work(observed);
        if is_linked || is_at_work {
            let refused = std::mem::take(&mut observed.refused);
            self.forget_doubts();
            if is_at_work {
                refused.into_iter().for_each(|text| take_in(self.subject(), CaseRole::Finding, Some(text)));
            }
        } else if is_small_talk(observed) {
            let (gone, status) = self.forget_doubts();
            gone.iter().for_each(|item| remove_task(self.state, item));
            let subject = self.subject();
            let DiagnosticState { findings, hypotheses, ruled_out, root_causes, decisions, .. } = subject;
            let lists = [findings, hypotheses, ruled_out, root_causes, decisions];
            let lists = lists.into_iter().chain([&mut subject.constraints, &mut subject.facts]);
            lists.for_each(|list| list.retain(|item| !gone.contains(item)));
            subject.status = status.unwrap_or(subject.status);
        }
        self.end_small_talk();
    }

    /// Ends a subject that was small talk.
    fn end_small_talk(&mut self) {
        if is_small_talk(&self.state.observed) {
            subjects::end_small_talk(self.state);
        }
    }

    /// Ends all doubts. Returns the doubted items and the status before them.
    fn forget_doubts(&mut self) -> (Vec<String>, Option<DiagnosticStatus>) {
        let Observed { doubted, doubted_for, doubted_status, refused, .. } = &mut self.state.observed;
        *doubted_for = 0;
        refused.clear();
        (std::mem::take(doubted), doubted_status.take())
    }

    /// Notes whether what was done has ended the problem: speakers who know the cause, have done something and turn to other
    /// things without a complaint are done.
    /// A deed has to be about the case: small talk tells of deeds, too.
    fn note_fix(&mut self, judged: &Judged, is_here: bool, is_about_case: bool) {
        let is_known = !self.subject().root_causes.is_empty();
        let observed = &mut self.state.observed;
        match judged.role {
            CaseRole::Done if is_here && is_known && is_about_case => observed.is_fixed = true,
            CaseRole::Unresolved if is_here => observed.is_fixed = false,
            CaseRole::Hypothesis if is_here && is_about_case => observed.is_fixed = false,
            _ if is_small_talk(observed) && std::mem::take(&mut observed.is_fixed) => {
                self.subject().status = DiagnosticStatus::Resolved;
            }
            _ => {}
        }
    }

    /// Notes that an item or a change of the status may be small talk.
    fn doubt(&mut self, text: String, status: Option<DiagnosticStatus>) {
        let now = self.subject().status;
        let Observed { doubted, doubted_status, .. } = &mut self.state.observed;
        doubted.push(text);
        *doubted_status = doubted_status.or(status.filter(|status| *status != now));
    }

    /// Keeps a finding that is not believed in the midst of small talk, because it may begin a new problem.
    fn refuse(&mut self, judged: &Judged, text: String) {
        if !judged.is_listed || !matches!(judged.role, CaseRole::Finding | CaseRole::Unresolved) {
            return;
        }
        let refused = &mut self.state.observed.refused;
        refused.push(text);
        let over = refused.len().saturating_sub(MAX_REFUSED);
        refused.drain(..over);
    }

    /// Whether a cause is known, or something has been done.
    fn is_worked_on(&mut self) -> bool {
        !self.subject().root_causes.is_empty() || has_done(self.state)
    }

    /// Whether a user's word closes the case, though neither a cause nor a deed is known: it names the whole problem, or speaks
    /// of the case, or of nothing else («all done!», 修好了！).
    fn is_closed_by(&mut self, judged: &Judged) -> bool {
        let text = &judged.sentence.text;
        let DiagnosticState { findings, hypotheses, facts, .. } = self.subject();
        let mut items = findings.iter().chain(&*hypotheses).chain(&*facts).peekable();
        let is_case = items.peek().is_some();
        match judged.end {
            Some(End::Whole) => is_case,
            Some(End::Announced) => {
                is_case && (is_bare_word(text) || items.any(|item| share_content(item, text)))
            }
            _ => false,
        }
    }

    /// The hypotheses or tasks that a sentence may end; none if its role ends nothing.
    pub(crate) fn endings(&mut self, judged: &Judged) -> Endings {
        let items: Vec<(usize, String)> = match judged.role {
            CaseRole::RuledOut | CaseRole::Cause => {
                self.subject().hypotheses.iter().cloned().enumerate().collect()
            }
            CaseRole::Done => open_tasks(self.state, self.moment.seq)
                .into_iter()
                .map(|(place, task)| (place, task.to_owned()))
                .collect(),
            _ => Vec::new(),
        };
        let words = terms(&judged.sentence.text);
        let is_meant =
            |item: &str| alternatives(item).into_iter().chain([item]).any(|part| speaks_of(&words, part));
        let by_words: Vec<usize> =
            items.iter().filter(|(_, item)| is_meant(item)).map(|(place, _)| *place).collect();
        let from = items.len().saturating_sub(MAX_COMPARED);
        let to_compare = if by_words.is_empty() { items[from..].to_vec() } else { Vec::new() };
        Endings { by_words, to_compare }
    }

    /// Takes a sentence into the state. `ended` are the places of the hypotheses or tasks that it ends.
    pub(crate) fn take(&mut self, judged: &Judged, ended: &[usize]) {
        let text = one_line(&judged.sentence.text);
        if text.is_empty() {
            return;
        }
        let (links, is_other) = self.followed(judged);
        // The endings are those of the subject before.
        let ended = if is_other { &[] } else { ended };
        let judged = &self.without_early_cause(judged, links);
        let mut before = Attention::before(&self.state.observed);
        // A speaker who announces another problem is at work, though it shares no word with the case before.
        if before.words_needed() == 0 && begins_problem(&judged.sentence.text) {
            before = Attention::at_work(&mut self.state.observed);
        }
        note(&mut self.state.observed, said(judged), links, leaves_subject(&judged.sentence.text));
        // In the midst of small talk, an item ends only by a sentence that is about the case.
        let ended = if before.is_away() && !Attention::is_about_case(links) { &[] } else { ended };
        let is_linked = !ended.is_empty() || before.is_linked(links);
        let reopens =
            judged.role == CaseRole::Unresolved && self.subject().status == DiagnosticStatus::Resolved;
        let may_be_first = Attention::may_begin_small_talk(links, judged.role);
        let is_doubted =
            !is_linked && (may_be_first || before.is_doubtful() || (reopens && before.doubts_return(links)));
        // A doubt that began without small talk ends with the next word about the case.
        let Observed { aside, refused, .. } = &self.state.observed;
        let is_back = links.words > 0 && *aside == 0 && refused.is_empty();
        self.weigh_doubts(is_linked || is_back);
        let needs = before.words_needed();
        let is_about_case = !is_doubted && (links.words > 0 || !ended.is_empty() || !before.has_paused());
        self.note_fix(judged, needs == 0, is_about_case);
        if ended.is_empty() && links.words < needs {
            return self.refuse(judged, text);
        }
        let status = self.subject().status;
        if judged.may_resolve && (self.is_worked_on() || self.is_closed_by(judged)) {
            self.subject().status = DiagnosticStatus::Resolved;
        }
        self.tell(judged, ended, text.clone(), is_doubted);
        let is_changed = self.subject().status != status;
        let is_sure = may_be_first && !before.is_doubtful() && self.is_worked_on();
        let doubts_status = is_doubted && !is_sure && before.doubts_status(links);
        if is_changed && !doubts_status {
            self.state.observed.doubted_status = None;
        }
        let says_nothing = matches!(judged.role, CaseRole::Nothing | CaseRole::Question | CaseRole::Advice);
        if is_doubted && (is_changed || !says_nothing) {
            self.doubt(text, Some(status).filter(|_| doubts_status));
        }
    }

    /// Changes the subject if a sentence does. Returns the words that the sentence shares with the subject, and whether it is
    /// another one.
    fn followed(&mut self, judged: &Judged) -> (Links, bool) {
        let text = &judged.sentence.text;
        let links = self.links(text);
        let shared = self.links(&without_announcement(text)).words;
        let found = subjects::change(self.state, judged, self.has_announced, shared);
        self.has_announced |= judged.sentence.speaker == Speaker::User && announces_subject(text);
        let is_away = Attention::before(&self.state.observed).words_needed() > 0;
        let is_past = self.state.diagnostic.since > self.moment.seq;
        if is_past || found == Change::None || (is_away && found == Change::Begins) {
            return (links, false);
        }
        self.forget_doubts();
        self.state.observed.is_fixed = false;
        subjects::apply(self.state, found, self.by_rules, self.moment.seq);
        Attention::at_work(&mut self.state.observed);
        (self.links(text), true)
    }

    /// The sentence with another role, if it states the cause before anything is known: that is the complaint.
    fn without_early_cause(&mut self, judged: &Judged, links: Links) -> Judged {
        let is_early = judged.role == CaseRole::Cause && links.items < CAUSE_ITEMS && !judged.is_announced;
        let role = if is_early { CaseRole::Finding } else { judged.role };
        Judged { role, ..judged.clone() }
    }

    /// Tells the state what a sentence says.
    fn tell(&mut self, judged: &Judged, ended: &[usize], text: String, is_doubted: bool) {
        match judged.role {
            CaseRole::Todo => add_task(self.state, &text, TaskEnd::Open, self.moment),
            CaseRole::Done if ended.is_empty() && judged.is_listed => {
                add_task(self.state, &text, TaskEnd::Done, self.moment);
            }
            CaseRole::Done => ended.iter().for_each(|place| close_task(self.state, *place, self.moment)),
            role => {
                // A sentence that holds a value of the word patterns is not added beside it.
                let DiagnosticState { findings, hypotheses, root_causes, .. } = &self.by_rules.diagnostic;
                let mut values = findings.iter().chain(hypotheses).chain(root_causes);
                let is_known = values.any(|value| likeness(&text, value) == Likeness::Covers);
                // What drops a known hypothesis is surely ruled out.
                let is_listed = judged.is_listed || role == CaseRole::RuledOut && !ended.is_empty();
                let text = Some(text).filter(|_| is_listed && !is_known);
                let subject = self.subject();
                match role {
                    CaseRole::RuledOut => drop_hypotheses(subject, ended, &terms(&judged.sentence.text)),
                    _ => drop_hypotheses(subject, ended, &HashSet::new()),
                }
                // A solved problem needs no more testing.
                if role == CaseRole::Resolved && !is_doubted {
                    subject.hypotheses.clear();
                }
                take_in(subject, role, text);
            }
        }
    }

    /// Removes values of the word patterns that the reader contradicts: what is supposed, asked or ruled out is no cause
    /// and no finding.
    pub(crate) fn correct(&mut self, known: &[Judged]) {
        let by_rules = &self.by_rules.diagnostic;
        let role_of = |value: &String| {
            let holds = |one: &&Judged| likeness(&one.sentence.text, value) == Likeness::Covers;
            known.iter().find(holds).map(|one| one.role)
        };
        let is_wrong =
            |value: &String, roles: &[CaseRole]| role_of(value).is_some_and(|role| roles.contains(&role));
        let (supposed, out) = ([CaseRole::Hypothesis, CaseRole::Question], [CaseRole::RuledOut]);
        let no_cause = [&supposed[..], &out].concat();
        let subject = self.subject();
        let lists = [
            (&mut subject.root_causes, &by_rules.root_causes, &no_cause[..]),
            (&mut subject.findings, &by_rules.findings, &supposed),
            (&mut subject.hypotheses, &by_rules.hypotheses, &out),
        ];
        for (list, values, roles) in lists {
            let wrong: Vec<&String> = values.iter().filter(|value| is_wrong(value, roles)).collect();
            list.retain(|item| !wrong.contains(&item));
        }
    }
}

/// Whether a sentence is too short to name anything. Chinese characters count three times.
fn is_bare_word(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.map(|c| if c.is_ascii() { 1 } else { 3 }).sum::<usize>() <= BARE_LETTERS
}

/// The relation of a sentence to the case, for telling small talk.
fn said(judged: &Judged) -> Said {
    match judged.role {
        _ if judged.says_nothing => Said::Nothing,
        CaseRole::Question => Said::Question,
        _ => Said::Something,
    }
}

/// Removes the hypotheses at these places. Of one that names alternatives, only those are removed that share `words`; without
/// words, all are.
fn drop_hypotheses(subject: &mut DiagnosticState, ended: &[usize], words: &HashSet<String>) {
    let mut place = 0;
    subject.hypotheses.retain_mut(|hypothesis| {
        place += 1;
        if !ended.contains(&(place - 1)) {
            return true;
        }
        let parts = alternatives(hypothesis);
        let (gone, left): (Vec<&str>, Vec<&str>) = parts.into_iter().partition(|part| speaks_of(words, part));
        if gone.is_empty() || left.is_empty() {
            return false;
        }
        *hypothesis = left.join(if hypothesis.is_ascii() { " or " } else { "、" });
        true
    });
}

/// Takes a sentence into what is known about a subject.
fn take_in(subject: &mut DiagnosticState, role: CaseRole, text: Option<String>) {
    match role {
        CaseRole::Resolved => subject.status = DiagnosticStatus::Resolved,
        // Speakers who suppose something about a problem that was solved have a new one.
        CaseRole::Unresolved | CaseRole::Hypothesis => subject.status = DiagnosticStatus::Investigating,
        _ => {}
    }
    let (list, most) = match role {
        CaseRole::Fact => (&mut subject.facts, MAX_FACTS),
        CaseRole::Constraint => (&mut subject.constraints, MAX_OTHERS),
        // A word about the status tells what was observed.
        CaseRole::Finding | CaseRole::Resolved | CaseRole::Unresolved => {
            (&mut subject.findings, MAX_FINDINGS)
        }
        CaseRole::Hypothesis => (&mut subject.hypotheses, MAX_OTHERS),
        CaseRole::RuledOut => (&mut subject.ruled_out, MAX_OTHERS),
        CaseRole::Cause => (&mut subject.root_causes, MAX_OTHERS),
        CaseRole::Decision => (&mut subject.decisions, MAX_DECISIONS),
        CaseRole::Advice | CaseRole::Todo | CaseRole::Done | CaseRole::Nothing | CaseRole::Question => return,
    };
    if let Some(text) = text {
        add(list, text, most);
    }
    if subject.status == DiagnosticStatus::Idle {
        subject.status = DiagnosticStatus::Investigating;
    }
}

/// Adds an item that the list does not include yet; it replaces an item that says less.
fn add(items: &mut Vec<String>, text: String, most: usize) {
    let mut less = None;
    for (place, item) in items.iter().enumerate() {
        match likeness(item, &text) {
            Likeness::Covers => return,
            Likeness::Covered => less = less.or(Some(place)),
            Likeness::Other => {}
        }
    }
    match less {
        Some(place) => items[place] = text,
        None => items.push(text),
    }
    let over = items.len().saturating_sub(most);
    items.drain(..over);
}

fn terms(text: &str) -> HashSet<String> {
    query_terms(text).into_iter().collect()
}

/// Whether a sentence shares enough words with an item.
fn speaks_of(words: &HashSet<String>, item: &str) -> bool {
    let item = terms(item);
    let shared = words.intersection(&item).count();
    let shorter = words.len().min(item.len()).max(1);
    shared >= SAME_WORDS || (shared > 0 && shared as f32 / shorter as f32 >= SAME_SHARE)
}
