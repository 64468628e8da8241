//! Profiles: the fields that matter in one domain, and the rules that extract them from messages.
//!
//! A profile is data, so that a user can write one in the configuration. The shipped ones stand in the folder `profiles` in
//! the same format; `diagnostic` comes from the layered-prompt design.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use strata_core::turn::Role;

/// The fields of a domain and the rules that fill them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name. The layer in a prompt is called `NAME_context`. The fields of `diagnostic` are stored in the state's
    /// `diagnostic`, those of any other profile in `profile:NAME`.
    pub name: String,
    /// A note about the layer for the model, if any.
    #[serde(default)]
    pub note: Option<String>,
    /// A regular expression for the words of the profile's domain. The profile reads messages from the first one that
    /// matches it. Without it, the profile reads all messages.
    #[serde(default)]
    pub when: Option<String>,
    /// The fields, in the order of the prompt.
    #[serde(rename = "field")]
    pub fields: Vec<Field>,
    /// The rules that fill the fields.
    #[serde(rename = "rule", default)]
    pub rules: Vec<Rule>,
    /// The progress of the work, if the profile tracks it.
    #[serde(default)]
    pub status: Option<Status>,
}

/// One field of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// The name, which the groups of patterns refer to.
    pub name: String,
    /// The label in a prompt.
    pub label: String,
    /// Whether the field is a list.
    #[serde(default)]
    pub list: bool,
    /// The most items of a list. The oldest items leave first.
    #[serde(default = "default_max")]
    pub max: usize,
    /// A field that is cleared when this one changes, unless the same message sets it.
    #[serde(default)]
    pub resets: Option<String>,
    /// A list from which a value is removed when it enters this list, as a hypothesis is when it is confirmed.
    #[serde(default)]
    pub settles: Option<String>,
}

fn default_max() -> usize {
    20
}

/// A rule that fills fields. It has either a `pattern` or a `section`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// A regular expression with a group for each field that it fills, as in `ticket (?P<ticket>\d+)`. It is applied to
    /// the whole message, and may match several times.
    pub pattern: Option<String>,
    /// A regular expression for the heading of a list. The list's items go into `field`.
    pub section: Option<String>,
    /// The field that the items of a `section` go into.
    pub field: Option<String>,
    /// The speakers whose messages the rule reads; defaults to the assistant and tools.
    pub from: Option<Vec<Role>>,
    /// Values that match this pattern are ignored.
    pub unless: Option<String>,
    /// Lines that match this pattern are ignored.
    pub unless_line: Option<String>,
    /// Only lines that match this pattern are read.
    pub only_line: Option<String>,
    /// Values are ignored if the text before them in their sentence matches this pattern.
    pub unless_before: Option<String>,
    /// Whether a known value is kept.
    pub keep: bool,
}

/// The progress of the work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The field that holds the status.
    pub field: String,
    /// The status before any field is known.
    pub initial: String,
    /// The status after a field changed.
    pub active: String,
    /// The rules for other statuses; the first match wins.
    #[serde(rename = "rule", default)]
    pub rules: Vec<StatusRule>,
}

/// A pattern that sets the status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusRule {
    /// The new status.
    pub value: String,
    /// A regular expression that a sentence must match.
    pub pattern: String,
    /// A regular expression that the sentence must not match.
    #[serde(default)]
    pub unless: Option<String>,
}

/// The profiles that Strata ships: the files of the folder `profiles`, which the build script reads.
const SHIPPED: &str = include_str!(concat!(env!("OUT_DIR"), "/profiles.json"));

impl Profile {
    /// The profiles that Strata ships: the diagnosis of a device from the layered-prompt design, software incidents,
    /// support desks, coding, research and the household. All but the first wait until the conversation speaks of their
    /// domain ([`Profile::when`]).
    pub fn shipped() -> Vec<Self> {
        static PROFILES: LazyLock<Vec<Profile>> =
            // A test reads each of them.
            LazyLock::new(|| serde_json::from_str(SHIPPED).unwrap_or_default());
        PROFILES.clone()
    }

    /// A shipped profile by its name, in force whatever is said.
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::shipped().into_iter().find(|profile| profile.name == name)?;
        Some(Self { when: None, ..found })
    }

    /// The diagnosis of a device from the layered-prompt design, in English and Chinese.
    pub fn diagnostic() -> Self {
        Self::named("diagnostic").unwrap_or_else(|| Self {
            name: "diagnostic".to_owned(),
            note: None,
            when: None,
            fields: Vec::new(),
            rules: Vec::new(),
            status: None,
        })
    }
}
