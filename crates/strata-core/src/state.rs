//! A session's structured working state: the data that a program needs to continue, beside the turns.
//!
//! The fields are those of the diagnostic state in the layered-prompt design and of the JSON document in the
//! context-store design. Fields that this version does not know survive a load and a save.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::lenient_int;

/// All data of a session beside its turns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The known facts about the current problem.
    pub diagnostic: DiagnosticState,
    /// The program's own settings for the session.
    pub system_state: Map<String, Value>,
    /// The current tasks.
    pub active_tasks: Vec<Task>,
    /// The number of calls per tool.
    pub tool_stats: ToolStats,
    /// The environment when it was last seen.
    pub last_known_environment: Map<String, Value>,
    /// Input and output tokens.
    pub token_usage: TokenUsage,
    /// Earlier subjects of the session with what is known about them, the latest last. A subject that comes up again
    /// leaves this list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub archived: Vec<DiagnosticState>,
    /// The turns that have been read into this state.
    #[serde(skip_serializing_if = "Observed::is_none")]
    pub observed: Observed,
    /// Fields of a later version or of the client's own.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The turns of a session that have been read into its state. Turns that were recorded without being read, such as the
/// user's, are read together with the next reply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observed {
    /// The number of turns that have been read.
    pub turns: u64,
    /// Tokens sent to the model since its last reply. The usage that the model reports with the next reply may replace
    /// them.
    pub unanswered_tokens: u64,
    /// The tokens of the turns that have been read: the size of a prompt that sends everything.
    #[serde(skip_serializing_if = "is_zero")]
    pub tokens: u64,
    /// The number of turns whose sentences the reader has judged. It follows `turns`, because the reader works in the
    /// background.
    #[serde(skip_serializing_if = "is_zero")]
    pub judged: u64,
    /// The roles of the sentences of the last judged turns, oldest first: the turn's number, and a letter for each
    /// sentence ([`CaseRole::letter`](crate::ports::CaseRole::letter)). The rolling summary chooses by them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<(u64, String)>,
    /// One bit for each of the last judged sentences, the newest lowest: 1 if it says nothing about the problem.
    #[serde(skip_serializing_if = "is_zero")]
    pub idle: u64,
    /// The same for sentences that share no word with the problem, once enough is known about it.
    #[serde(skip_serializing_if = "is_zero")]
    pub unlinked: u64,
    /// How much the last sentences speak for small talk rather than for work on the problem, in tenths of a nat.
    #[serde(skip_serializing_if = "is_zero")]
    pub aside: u64,
    /// The turn with which the present subject began, if it has no device: it ends if it turns out to be small talk.
    #[serde(skip_serializing_if = "is_zero")]
    pub begun: u64,
    /// Whether something was done after the cause was found, and nobody has complained since.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_fixed: bool,
    /// Items of the state that may be small talk: they share no words with the problem, and were said beside sentences
    /// that say nothing about it. They are removed if the small talk goes on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubted: Vec<String>,
    /// Findings that were not believed in the midst of small talk. They are believed if a new problem follows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The number of sentences since the first doubt.
    #[serde(skip_serializing_if = "is_zero")]
    pub doubted_for: u64,
    /// The status before the first of them, if one has changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubted_status: Option<DiagnosticStatus>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Observed {
    /// The most turns whose roles are kept: more than the recent turns of a prompt, which are summarised next.
    const MAX_ROLES: usize = 96;

    /// Keeps the roles of a turn's sentences.
    pub fn keep_roles(&mut self, seq: u64, letters: String) {
        self.roles.retain(|(known, _)| *known != seq);
        self.roles.push((seq, letters));
        let over = self.roles.len().saturating_sub(Self::MAX_ROLES);
        self.roles.drain(..over);
    }

    /// The roles of a turn's sentences, if the turn has been judged.
    pub fn roles_of(&self, seq: u64) -> Option<&str> {
        self.roles.iter().find(|(known, _)| *known == seq).map(|(_, letters)| letters.as_str())
    }

    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The known facts about the problem that a session works on. Word patterns fill it from replies, and the reader from the
/// sentences of both speakers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiagnosticState {
    /// The device's address.
    pub device_ip: Option<String>,
    /// The device's name.
    pub device_name: Option<String>,
    /// The log that was read last.
    pub last_log_file: Option<String>,
    /// All logs downloaded in this session.
    pub downloaded_logs: Vec<String>,
    /// The findings.
    pub findings: Vec<String>,
    /// The hypotheses being tested.
    pub hypotheses: Vec<String>,
    /// The hypotheses that turned out to be wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ruled_out: Vec<String>,
    /// The confirmed hypotheses.
    pub root_causes: Vec<String>,
    /// The decisions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// Constraints and warnings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// The circumstances: facts that were known from the start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    /// The phase of the diagnosis.
    pub status: DiagnosticStatus,
    /// The turn with which the session came to this subject last.
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "lenient_int::number")]
    pub since: u64,
}

/// The phase of a diagnosis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiagnosticStatus {
    /// No diagnosis is in progress.
    #[default]
    Idle,
    /// A diagnosis is in progress.
    Investigating,
    /// The cause was found.
    Resolved,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The client's id of the task.
    pub id: String,
    /// The description of the task.
    pub description: String,
    /// `Running`, `Completed`, or the client's own word.
    pub status: String,
    /// The progress, from 0 to 1.
    #[serde(default)]
    pub progress: f64,
    /// Seconds since the epoch.
    #[serde(deserialize_with = "lenient_int::number")]
    pub created_at: i64,
    /// Seconds since the epoch.
    #[serde(deserialize_with = "lenient_int::number")]
    pub updated_at: i64,
    /// Fields of the client's own.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Task {
    /// Whether the task was completed at `cutoff`, in seconds since the epoch, or before.
    pub fn is_completed_before(&self, cutoff: i64) -> bool {
        self.status.eq_ignore_ascii_case("completed") && self.updated_at <= cutoff
    }
}

/// The number of calls per tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolStats {
    /// All calls.
    #[serde(deserialize_with = "lenient_int::number")]
    pub total_calls: u64,
    /// Calls by tool name.
    #[serde(deserialize_with = "lenient_int::by_name")]
    pub by_tool: BTreeMap<String, u64>,
    /// Calls that failed.
    #[serde(deserialize_with = "lenient_int::number")]
    pub failures: u64,
    /// Fields of the client's own.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

/// Input and output tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    /// Tokens that the model read.
    #[serde(deserialize_with = "lenient_int::number")]
    pub total_input: u64,
    /// Tokens that the model wrote.
    #[serde(deserialize_with = "lenient_int::number")]
    pub total_output: u64,
    /// The sum of both, for this session.
    #[serde(deserialize_with = "lenient_int::number")]
    pub by_session: u64,
    /// Fields of the client's own.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
