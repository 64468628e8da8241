//! Extracts the fields of profiles from messages into the state.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use serde_json::{Map, Value};

use super::filter::{FilterSettings, RawLogs, strip};
use super::items::{Likeness, add_item, likeness, one_line};
use super::profile::{Profile, Rule};
use super::{logs, subject};
use strata_core::error::{Error, Result, shown};
use strata_core::state::{DiagnosticState, State};
use strata_core::turn::Role;
use strata_language::compact;
use strata_language::sentences::ends;

/// The most bytes of a message that are read from its beginning, and as many from its end. Conclusions stand at both
/// ends, and recording must not wait for a search of a long document.
const MAX_READ_BYTES: usize = 32 * 1024;

/// The field that holds the address of a device.
const DEVICE_IP: &str = "device_ip";

/// The most memory of a compiled pattern. It is enough for alternatives of words in English and Chinese.
const MAX_PATTERN_BYTES: usize = 4 * 1024 * 1024;

/// The bytes in which a thread keeps the states of a pattern that it has met.
const CACHE_BYTES: usize = 512 * 1024;

/// Updates the state from an assistant's reply, by the rules of [`Profile::diagnostic`].
pub fn extract_state_updates(response: &str, mut state: State) -> State {
    Rules::built_in().observe(Role::Assistant, response, &FilterSettings::default(), &mut state);
    state
}

/// Profiles with compiled patterns.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    profiles: Arc<[LazyProfile]>,
}

/// A profile whose patterns are compiled when it is used for the first time: most conversations need one or two of the
/// shipped profiles, and compiling all of them would delay every start.
#[derive(Debug)]
struct LazyProfile {
    profile: Profile,
    when: OnceLock<Option<Regex>>,
    compiled: OnceLock<Option<CompiledProfile>>,
}

impl LazyProfile {
    fn new(profile: Profile) -> Self {
        Self { profile, when: OnceLock::new(), compiled: OnceLock::new() }
    }

    fn compiled(&self) -> Option<&CompiledProfile> {
        self.compiled.get_or_init(|| CompiledProfile::new(&self.profile).ok()).as_ref()
    }

    /// Whether a text speaks of the profile's domain.
    fn is_about(&self, text: &str) -> bool {
        let when = || self.profile.when.as_deref().and_then(|when| compile(&self.profile, when).ok());
        self.when.get_or_init(when).as_ref().is_none_or(|when| when.is_match(text))
    }
}

#[derive(Debug, Clone)]
struct CompiledProfile {
    profile: Profile,
    rules: Vec<CompiledRule>,
    statuses: Vec<(String, Regex, Option<Regex>)>,
    /// Finds the rules that match at all, in one pass.
    any: RegexSet,
}

#[derive(Debug, Clone)]
struct CompiledRule {
    matcher: Matcher,
    from: Vec<Role>,
    unless: Option<Regex>,
    unless_line: Option<Regex>,
    only_line: Option<Regex>,
    unless_before: Option<Regex>,
    keep: bool,
}

/// A value in a message.
struct FoundValue<'a> {
    field: &'a str,
    value: &'a str,
    /// The text before it in its sentence, and its whole line.
    before: &'a str,
    line: &'a str,
}

impl CompiledRule {
    /// Whether a value is to be ignored for the words around it.
    fn ignores(&self, value: &str, found: &FoundValue<'_>) -> bool {
        let matches =
            |regex: &Option<Regex>, text: &str| regex.as_ref().is_some_and(|regex| regex.is_match(text));
        matches(&self.unless, value)
            || matches(&self.unless_line, found.line)
            || matches(&self.unless_before, found.before)
            || self.only_line.as_ref().is_some_and(|only| !only.is_match(found.line))
    }
}

#[derive(Debug, Clone)]
enum Matcher {
    Pattern(Regex),
    /// A heading, and the field for the items below it.
    Section(Regex, String),
}

impl Matcher {
    fn pattern(&self) -> Option<&Regex> {
        match self {
            Self::Pattern(regex) => Some(regex),
            Self::Section(..) => None,
        }
    }
}

impl Rules {
    /// The rules of [`Profile::shipped`], compiled once.
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Rules> = LazyLock::new(|| {
            let rules = Rules { profiles: Profile::shipped().into_iter().map(LazyProfile::new).collect() };
            rules.warm();
            rules
        });
        &BUILT_IN
    }

    /// Compiles profiles; *invalid* if one refers to a missing field or has an invalid pattern.
    pub fn new(profiles: &[Profile]) -> Result<Self> {
        let mut names = HashSet::new();
        for profile in profiles {
            let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if profile.name.is_empty() || profile.name.len() > 40 || !profile.name.chars().all(named) {
                return Err(Error::invalid(format!(
                    "profile `{}` has an invalid name; use up to 40 letters, digits, `_` and `-`",
                    shown(&profile.name)
                )));
            }
            if !names.insert(&profile.name) {
                return Err(Error::invalid(format!("profile `{}` is given twice; rename one", profile.name)));
            }
        }
        let shipped = Profile::shipped();
        if profiles == shipped {
            return Ok(Self::built_in().clone());
        }
        let ready = |profile: &Profile| {
            let ready = LazyProfile::new(profile.clone());
            // The shipped profiles are known to be right.
            if !shipped.contains(profile) {
                profile.when.as_deref().map(|when| compile(profile, when)).transpose()?;
                _ = ready.compiled.set(Some(CompiledProfile::new(profile)?));
            }
            Ok(ready)
        };
        Ok(Self { profiles: profiles.iter().map(ready).collect::<Result<_>>()? })
    }

    /// Compiles the patterns that every message needs. Otherwise the first chat would wait for them.
    fn warm(&self) {
        logs::warm();
        for lazy in self.profiles.iter().filter(|lazy| lazy.is_about("")) {
            lazy.compiled();
        }
    }

    /// The profiles, in the order given.
    pub fn profiles(&self) -> impl Iterator<Item = &Profile> {
        self.profiles.iter().map(|ready| &ready.profile)
    }

    /// The address of a device in a text.
    pub(super) fn device_address<'a>(&self, text: &'a str) -> Option<&'a str> {
        let diagnostic = self.profiles.iter().filter(|lazy| lazy.profile.name == "diagnostic");
        let compiled = diagnostic.filter_map(LazyProfile::compiled);
        let rules = compiled.flat_map(|ready| &ready.rules).filter(|rule| !rule.keep);
        rules.filter_map(|rule| Some((rule, rule.matcher.pattern()?))).find_map(|(rule, pattern)| {
            let found = pattern.captures_iter(text).filter_map(|captures| captures.name(DEVICE_IP));
            let mut found = found.map(|found| found_at(text, DEVICE_IP, found.range()));
            found.find(|found| !rule.ignores(found.value, found)).map(|found| found.value)
        })
    }

    /// The values that the rules read in one message, with no regard to what was known before.
    pub(crate) fn read_alone(&self, role: Role, content: &str, filter: &FilterSettings) -> State {
        let mut state = State::default();
        self.observe(role, content, filter, &mut state);
        state
    }

    /// As [`Rules::observe`], for the turn `seq` of a session. If the turn comes to another subject, the old one is
    /// archived, and what is known about the new one from before comes back.
    pub(crate) fn observe_turn(
        &self,
        role: Role,
        content: &str,
        seq: u64,
        filter: &FilterSettings,
        state: &mut State,
    ) {
        let before = subject::Before::of(state);
        self.observe(role, content, filter, state);
        if subject::follow(before, content, seq, state) {
            subject::add_fields(state, &self.read_alone(role, content, filter));
        }
    }

    /// Reads a message into the state. Returns whether the state changed.
    pub(crate) fn observe(
        &self,
        role: Role,
        content: &str,
        filter: &FilterSettings,
        state: &mut State,
    ) -> bool {
        let ends = both_ends(content);
        // A raw log is removed first: its addresses and words do not describe the diagnosis.
        let text = strip(&ends, filter, RawLogs::Removed);
        let mut changed = false;
        for lazy in self.profiles.iter() {
            let mut fields = fields_of(&lazy.profile, state);
            if fields.is_empty() && !lazy.is_about(&text) {
                continue;
            }
            let Some(ready) = lazy.compiled() else { continue };
            if ready.observe(role, &text, &mut fields) {
                put_fields(&ready.profile, fields, state);
                changed = true;
            }
        }
        changed
    }
}

/// The fields of a profile, as JSON.
pub(super) fn fields_of(profile: &Profile, state: &State) -> Map<String, Value> {
    let value = if profile.name == "diagnostic" {
        serde_json::to_value(&state.diagnostic).ok()
    } else {
        state.extra.get(&key(profile)).cloned()
    };
    match value {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn put_fields(profile: &Profile, fields: Map<String, Value>, state: &mut State) {
    if profile.name == "diagnostic" {
        // A profile of this name with other fields than those of the layered-prompt design does not change the state.
        if let Ok(diagnostic) = serde_json::from_value::<DiagnosticState>(Value::Object(fields)) {
            state.diagnostic = diagnostic;
        }
    } else {
        state.extra.insert(key(profile), Value::Object(fields));
    }
}

fn key(profile: &Profile) -> String {
    format!("profile:{}", profile.name)
}

/// The beginning and the end of a long text, separated by a blank line.
fn both_ends(text: &str) -> std::borrow::Cow<'_, str> {
    if text.len() <= 2 * MAX_READ_BYTES {
        return text.into();
    }
    let border = |at: usize| (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let (head, tail) = (border(MAX_READ_BYTES), border(text.len() - MAX_READ_BYTES));
    format!("{}\n\n{}", &text[..head], &text[tail..]).into()
}

impl CompiledProfile {
    fn new(profile: &Profile) -> Result<Self> {
        let known: HashSet<&str> = profile.fields.iter().map(|field| field.name.as_str()).collect();
        let check = |name: &str| {
            if known.contains(name) {
                return Ok(());
            }
            Err(Error::invalid(format!(
                "profile `{}` has no field `{name}`, which one of its rules fills; add the field or rename the group",
                profile.name
            )))
        };
        for field in &profile.fields {
            field.resets.iter().chain(&field.settles).try_for_each(|name| check(name))?;
        }
        let mut rules = Vec::new();
        let mut patterns = Vec::new();
        for rule in &profile.rules {
            let (ready, pattern) = compiled_rule(profile, rule)?;
            match &ready.matcher {
                Matcher::Pattern(regex) => regex.capture_names().flatten().try_for_each(check)?,
                Matcher::Section(_, field) => check(field)?,
            }
            rules.push(ready);
            patterns.push(compact(&pattern));
        }
        let statuses = profile.status.iter().flat_map(|status| &status.rules);
        let statuses = statuses.map(|rule| {
            let unless = rule.unless.as_deref().map(|unless| compile(profile, unless)).transpose()?;
            Ok((rule.value.clone(), compile(profile, &rule.pattern)?, unless))
        });
        let any = RegexSetBuilder::new(&patterns).size_limit(4 * MAX_PATTERN_BYTES).build();
        let any = any.map_err(|error| unreadable(profile, "all of its patterns", error))?;
        Ok(Self { statuses: statuses.collect::<Result<_>>()?, profile: profile.clone(), rules, any })
    }

    /// Reads a message into the fields. Returns whether a field changed.
    fn observe(&self, role: Role, text: &str, fields: &mut Map<String, Value>) -> bool {
        let before = fields.clone();
        let mut filled = HashSet::new();
        for place in self.any.matches(text) {
            let rule = &self.rules[place];
            if !rule.from.contains(&role) {
                continue;
            }
            match &rule.matcher {
                Matcher::Pattern(regex) => {
                    for captures in regex.captures_iter(text) {
                        let named = regex.capture_names().flatten();
                        for (name, found) in named.filter_map(|name| Some((name, captures.name(name)?))) {
                            let found = found_at(text, name, found.start()..found.end());
                            self.take_value(rule, &found, fields, &mut filled);
                        }
                    }
                }
                Matcher::Section(heading, field) => {
                    for item in section_items(heading, text) {
                        let found = FoundValue { field, value: item, before: "", line: item };
                        self.take_value(rule, &found, fields, &mut filled);
                    }
                }
            }
        }
        self.reset(&before, fields, &filled);
        let is_new = *fields != before;
        self.set_status(role, text, is_new, fields);
        *fields != before
    }

    /// Stores one value of a field.
    fn take_value(
        &self,
        rule: &CompiledRule,
        found: &FoundValue<'_>,
        fields: &mut Map<String, Value>,
        filled: &mut HashSet<String>,
    ) {
        let name = found.field;
        let Some(field) = self.profile.fields.iter().find(|field| field.name == name) else { return };
        let value = one_line(found.value);
        if value.is_empty() || value.ends_with(['?', '？']) || rule.ignores(&value, found) {
            return;
        }
        filled.insert(name.to_owned());
        if !field.list {
            if !(rule.keep && fields.get(name).is_some_and(|known| !known.is_null())) {
                fields.insert(name.to_owned(), Value::String(value));
            }
            return;
        }
        if let Some(settled) = &field.settles
            && let Some(Value::Array(items)) = fields.get_mut(settled)
        {
            items.retain(|item| item.as_str().is_none_or(|item| likeness(item, &value) == Likeness::Other));
        }
        let Value::Array(items) = fields.entry(name.to_owned()).or_insert_with(|| Value::Array(Vec::new()))
        else {
            return;
        };
        add_item(items, value, field.max);
    }

    /// Clears the fields that depend on a changed field.
    fn reset(&self, before: &Map<String, Value>, fields: &mut Map<String, Value>, filled: &HashSet<String>) {
        for field in &self.profile.fields {
            let Some(dependent) = &field.resets else { continue };
            let was = before.get(&field.name).filter(|was| !was.is_null());
            if was.is_some() && was != fields.get(&field.name) && !filled.contains(dependent) {
                fields.insert(dependent.clone(), Value::Null);
            }
        }
    }

    fn set_status(&self, role: Role, text: &str, is_new: bool, fields: &mut Map<String, Value>) {
        let Some(status) = &self.profile.status else { return };
        let said = (role != Role::Tool).then(|| {
            let sentences = || text.split_inclusive(['\n', '。', '！', '？', '.', '!', '?', '；', ';']);
            self.statuses.iter().find(|(_, pattern, unless)| {
                // Most messages do not mention the status, so the whole text is checked first.
                pattern.is_match(text)
                    && sentences().any(|sentence| {
                        pattern.is_match(sentence)
                            && !sentence.ends_with(['?', '？'])
                            && !unless.as_ref().is_some_and(|unless| unless.is_match(sentence))
                    })
            })
        });
        let now = match said.flatten() {
            Some((value, ..)) => value,
            None if is_new => &status.active,
            None if fields.contains_key(&status.field) => return,
            None => &status.initial,
        };
        // An untouched profile stays absent from the state.
        if !fields.is_empty() || now != &status.initial {
            fields.insert(status.field.clone(), Value::String(now.clone()));
        }
    }
}

fn compiled_rule(profile: &Profile, rule: &Rule) -> Result<(CompiledRule, String)> {
    let compiled =
        |pattern: &Option<String>| pattern.as_deref().map(|text| compile(profile, text)).transpose();
    let (matcher, pattern) = match (&rule.pattern, &rule.section, &rule.field) {
        (Some(pattern), None, None) => (Matcher::Pattern(compile(profile, pattern)?), pattern.clone()),
        // A heading is matched line by line, which the set cannot do.
        (None, Some(heading), Some(field)) => {
            (Matcher::Section(compile(profile, heading)?, field.clone()), String::new())
        }
        _ => {
            return Err(Error::invalid(format!(
                "a rule of profile `{}` has to have either a `pattern`, or a `section` and a `field`",
                profile.name
            )));
        }
    };
    let from = rule.from.clone().unwrap_or_else(|| vec![Role::Assistant, Role::Tool]);
    let ready = CompiledRule {
        matcher,
        from,
        unless: compiled(&rule.unless)?,
        unless_line: compiled(&rule.unless_line)?,
        only_line: compiled(&rule.only_line)?,
        unless_before: compiled(&rule.unless_before)?,
        keep: rule.keep,
    };
    Ok((ready, pattern))
}

fn compile(profile: &Profile, pattern: &str) -> Result<Regex> {
    let regex = RegexBuilder::new(&compact(pattern))
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(CACHE_BYTES)
        .build();
    regex.map_err(|error| unreadable(profile, &format!("pattern `{pattern}`"), error))
}

fn unreadable(profile: &Profile, what: &str, error: regex::Error) -> Error {
    Error::invalid(format!("{what} of profile `{}` cannot be read: {error}", profile.name)).with_source(error)
}

/// A value of a field, with the words around it.
fn found_at<'a>(text: &'a str, field: &'a str, range: Range<usize>) -> FoundValue<'a> {
    let start = text[..range.start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[range.start..].find('\n').map_or(text.len(), |newline| range.start + newline);
    let ahead = &text[start..range.start];
    let sentence = ends(ahead).filter(|end| *end < ahead.len()).last().unwrap_or(0);
    FoundValue { field, value: &text[range], before: &ahead[sentence..], line: &text[start..end] }
}

/// The items of the lists under a heading: the bulleted lines after it, up to the next other line.
fn section_items<'a>(heading: &Regex, text: &'a str) -> Vec<&'a str> {
    let mut items = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let bare = line.trim();
        if let (true, Some(item)) = (inside, bullet(bare)) {
            items.push(item);
        } else if !bare.is_empty() {
            let name = bare.trim_matches(['#', '*', '_', ' ', ':', '：', '【', '】']);
            inside = name.len() <= 60 && bullet(bare).is_none() && heading.is_match(name);
        }
    }
    items
}

/// The text of a list item.
fn bullet(line: &str) -> Option<&str> {
    let item = line.strip_prefix(['-', '*', '•', '·']).filter(|rest| rest.starts_with(' '));
    let numbered = || {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        (rest.len() < line.len()).then_some(rest)?.strip_prefix(['.', ')', '、'])
    };
    item.or_else(numbered).map(str::trim)
}
