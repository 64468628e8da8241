//! A session's structured working state: what a program needs to go on, beside what was said.
//!
//! The fields are those of the layered prompt's diagnostic state and of the working context's JSON document. Fields that
//! this version does not know survive a load and a save.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::lenient_int;

/// Everything kept about a session beside its turns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// What is known of the problem at hand.
    pub diagnostic: DiagnosticState,
    /// The program's own settings for the session.
    pub system_state: Map<String, Value>,
    /// What is being worked on.
    pub active_tasks: Vec<Task>,
    /// How often which tool was called.
    pub tool_stats: ToolStats,
    /// The last seen surroundings.
    pub last_known_environment: Map<String, Value>,
    /// Tokens in and out.
    pub token_usage: TokenUsage,
    /// How far the turns have been read into this state.
    #[serde(skip_serializing_if = "Observed::is_none")]
    pub observed: Observed,
    /// Fields of a later version or of the client's own.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// How far a session's turns have been read into its state. Turns that were recorded without being read, as a user's are,
/// are caught up with the next reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observed {
    /// How many turns have been read.
    pub turns: u64,
    /// Tokens said to the model since its last reply, which that reply's usage may replace.
    pub unanswered_tokens: u64,
}

impl Observed {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The state of a diagnosis, filled from the assistant's replies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiagnosticState {
    /// The device's address.
    pub device_ip: Option<String>,
    /// The device's name.
    pub device_name: Option<String>,
    /// The log read last.
    pub last_log_file: Option<String>,
    /// All logs downloaded in this session.
    pub downloaded_logs: Vec<String>,
    /// What was found.
    pub findings: Vec<String>,
    /// What is being tested.
    pub hypotheses: Vec<String>,
    /// What was confirmed.
    pub root_causes: Vec<String>,
    /// How far it is.
    pub status: DiagnosticStatus,
}

/// How far a diagnosis is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiagnosticStatus {
    /// Nothing is being looked into.
    #[default]
    Idle,
    /// Something is.
    Investigating,
    /// The cause was found.
    Resolved,
}

/// One thing being worked on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The client's id for it.
    pub id: String,
    /// What it is.
    pub description: String,
    /// `Running`, `Completed`, or the client's own word.
    pub status: String,
    /// From 0 to 1.
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

/// How often which tool was called.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolStats {
    /// All calls.
    #[serde(deserialize_with = "lenient_int::number")]
    pub total_calls: u64,
    /// Calls by the tool's name.
    #[serde(deserialize_with = "lenient_int::by_name")]
    pub by_tool: BTreeMap<String, u64>,
    /// Calls that failed.
    #[serde(deserialize_with = "lenient_int::number")]
    pub failures: u64,
    /// Fields of the client's own.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

/// Tokens in and out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    /// Tokens the model was shown.
    #[serde(deserialize_with = "lenient_int::number")]
    pub total_input: u64,
    /// Tokens the model produced.
    #[serde(deserialize_with = "lenient_int::number")]
    pub total_output: u64,
    /// Both, for this session.
    #[serde(deserialize_with = "lenient_int::number")]
    pub by_session: u64,
    /// Fields of the client's own.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
