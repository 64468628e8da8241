//! Profiles: the fields that matter in one domain, and the rules that extract them from messages.
//!
//! A profile is data, so that a user can write one in the configuration. The built-in profile `diagnostic` comes from
//! the layered-prompt design and uses the same format.

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

/// The IPv4 address of a device. `1.2.3.4.5` does not match. [`NO_DEVICE`] excludes masks and local addresses.
pub(super) const ADDRESS: &str = r"(?:^|[^\d.])(?P<device_ip>(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d))(?:\.?(?:[^\d.]|$))";

/// Addresses that do not belong to a device.
pub(super) const NO_DEVICE: &str = r"^(?:0|127|255)\.|\.255$";

const LOG_FILE: &str = r"[A-Za-z0-9][A-Za-z0-9_.-]*\.log";

/// Matches a sentence that states no cause.
const NOT_KNOWN: &str = r"(?i)^(?:not (?:yet |been )?(?:known|clear|found|determined|identified|confirmed)|unknown|unclear|still |yet to|to be |tbd|none|n/a|analysis|尚未|尚不|还不|還不|未知|不明|不清楚|待)";

// Word boundaries are ASCII, `(?-u:\b)`: there is one between a digit and a Chinese character, and Unicode boundaries
// would disable the regex engine's fast path on every non-English text.

impl Profile {
    /// The diagnosis of a device from the layered-prompt design, in English and Chinese.
    pub fn diagnostic() -> Self {
        let value = |name: &str, label: &str| Field {
            name: name.to_owned(),
            label: label.to_owned(),
            list: false,
            max: default_max(),
            resets: None,
            settles: None,
        };
        let list = |name: &str, label: &str| Field { list: true, ..value(name, label) };
        Self {
            name: "diagnostic".to_owned(),
            note: Some(super::layers::NOTE.to_owned()),
            fields: vec![
                value("device_name", "Device"),
                Field { resets: Some("device_name".to_owned()), ..value("device_ip", "Address") },
                value("last_log_file", "Last log"),
                list("downloaded_logs", "Downloaded"),
                list("findings", "Key findings"),
                list("hypotheses", "Hypotheses"),
                Field { settles: Some("hypotheses".to_owned()), ..list("root_causes", "Root causes") },
            ],
            rules: diagnostic_rules(),
            status: Some(Status {
                field: "status".to_owned(),
                initial: "idle".to_owned(),
                active: "investigating".to_owned(),
                rules: vec![StatusRule {
                    value: "resolved".to_owned(),
                    pattern: RESOLVED.to_owned(),
                    unless: Some(NOT_RESOLVED.to_owned()),
                }],
            }),
        }
    }
}

const RESOLVED: &str = r"(?i)(?-u:\b)(?:issue|problem|fault|error|case|incident)s? (?:is|was|are|were|has been|have been) (?:now |fully )?(?:resolved|fixed|solved)(?-u:\b)|(?:^|\s)(?:status|状态|狀態)\W{0,4}(?:resolved|已解[决決])|(?:问题|問題|故障|异常|異常)(?:现在|現在)?已(?:经|經)?(?:被)?(?:解[决決]|修[复復]|排除)";

const NOT_RESOLVED: &str = r"(?i)(?-u:\b)(?:not|isn't|wasn't|hasn't|unresolved|until|once|if|whether|when|after|should be)(?-u:\b)|尚未|还没|還沒|没有|沒有|如果|是否|等到";

fn diagnostic_rules() -> Vec<Rule> {
    let pattern = |pattern: String| Rule { pattern: Some(pattern), ..Rule::default() };
    let section = |field: &str, heading: &str| Rule {
        section: Some(heading.to_owned()),
        field: Some(field.to_owned()),
        ..Rule::default()
    };
    let known = |rule: Rule| Rule { unless: Some(NOT_KNOWN.to_owned()), ..rule };
    let says = Some(vec![Role::User]);
    let address = Rule { unless: Some(NO_DEVICE.to_owned()), ..pattern(ADDRESS.to_owned()) };
    let name = pattern(r"(?i)(?-u:\b)(?P<device_name>zspr[ _-]?\d{1,4})(?-u:\b)".to_owned());
    let labelled = Rule {
        unless: Some(r"^\d+\.\d+\.".to_owned()),
        ..pattern(r"(?im)^[ \t*_-]*(?:device(?: name)?|设备|設備|机台|機台)[*_]*[ \t]*[:：][*_]*[ \t]*(?P<device_name>[^\s(（,，。;；|*][^\n(（,，。;；|*]{1,39})".to_owned())
    };
    vec![
        // The user decides which device is meant. A reply may name others, so it only fills an empty field.
        Rule { from: says.clone(), ..address.clone() },
        Rule { keep: true, ..address },
        Rule { from: says, ..name.clone() },
        Rule { keep: true, ..name },
        Rule { keep: true, ..labelled },
        Rule {
            unless_line: Some(r"(?i)not found|does not exist|no such|could ?n[o']t|cannot|failed to|找不到|不存在|无法|無法|失[败敗]".to_owned()),
            ..pattern(format!(r"(?:^|[^A-Za-z0-9_.-])(?P<downloaded_logs>{LOG_FILE})(?-u:\b)"))
        },
        Rule {
            unless_line: Some(r"(?i)not found|does not exist|no such|找不到|不存在".to_owned()),
            ..pattern(format!(r"(?:^|[^A-Za-z0-9_.-])(?P<last_log_file>{LOG_FILE})(?-u:\b)"))
        },
        section("findings", r"(?i)^(?:key |main |diagnostic )*findings?$|^(?:主要|关键|關鍵|重要|诊断|診斷)*(?:发现|發現)$"),
        section("hypotheses", r"(?i)^(?:active |working |current )*hypothes[ei]s$|^(?:possible|likely|potential|suspected) (?:root )?causes?$|^可能(?:的)?(?:根本)?原因$|^(?:假设|假設)$"),
        section("root_causes", r"(?i)^(?:confirmed )?root causes?$|^confirmed causes?$|^(?:根本原因|根因|确认(?:的)?原因|確認(?:的)?原因)$"),
        pattern(r"(?im)^[ \t*_>#-]*(?:key |main )?findings?[*_]*[ \t]*[:：][*_]*[ \t]*(?P<findings>\S.{3,})$".to_owned()),
        pattern(r"(?i)(?-u:\b)(?:I|we) found that (?P<findings>[^\n]{4,})".to_owned()),
        pattern(r"(?:我们|我們|我)?(?:发现|發現)(?:了)?[:：,，][ \t]*(?P<findings>[^\n]{4,})".to_owned()),
        known(pattern(r"(?i)(?-u:\b)(?:working |current |my )?hypothesis(?:\*\*)?(?:[ \t]*[:：]|[ \t]+is(?: that)?)(?:\*\*)?[ \t]*(?P<hypotheses>[^\n]{4,})".to_owned())),
        known(pattern(r"(?i)(?-u:\b)(?:may|might|could) be (?:caused by|due to) (?P<hypotheses>[^\n]{4,})".to_owned())),
        known(pattern(r"(?:可能是|怀疑是|懷疑是|疑似)(?P<hypotheses>[^\n，。；,]{3,60}?)(?:导致|導致|引起|造成|所致|[，。；,\n]|$)".to_owned())),
        known(pattern(r"(?i)(?-u:\b)(?:the )?(?:confirmed )?root cause(?:\*\*)?(?:[ \t]*[:：]|[ \t]+(?:is|was)(?: that)?)(?:\*\*)?[ \t]*(?P<root_causes>[^\n]{4,})".to_owned())),
        known(pattern(r"(?:根本原因|根因)(?:\*\*)?[ \t]*(?:[:：]|是|为|為)(?:\*\*)?[ \t]*(?P<root_causes>[^\n]{2,})".to_owned())),
        known(pattern(r"(?:确认|確認)(?:了)?(?:原因)?(?:是|为|為)(?P<root_causes>[^\n，。；]{3,})".to_owned())),
    ]
}
