//! The settings of learning.

use serde::{Deserialize, Serialize};

use super::summarising::SummarisingSettings;

/// The scope of a learned memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LearnInto {
    /// The memory holds in all of the user's sessions.
    #[default]
    User,
    /// The memory is bound to the session in which it was said, as in the memory-proxy design.
    Session,
}

/// The treatment of a statement that holds a password, a key, or the number of a card.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LearnSecrets {
    /// It is not learned. The turn stays as it was said.
    #[default]
    Skip,
    /// It is learned like any other.
    Keep,
}

/// The settings of learning. Names and defaults come from the designs, if a design has them.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnSettings {
    /// Whether Strata learns from recorded turns.
    pub enabled: bool,
    /// The scope of learned memories.
    pub into: LearnInto,
    /// The treatment of statements that hold a secret ([`strata_language::secrets`]).
    pub secrets: LearnSecrets,
    /// The most entries of a session that recall sees (memory-proxy design); 0 sets no limit.
    ///
    /// The memory-proxy design says 500. Strata's default is no limit: the design's limit protects an index that slows
    /// down, and here it would only cost recall. If each conversation of the recall benchmarks were one session, the
    /// newest 500 entries would leave 28 % of their 4,528 questions without any of their evidence (92 % of `knowme`'s,
    /// 74 % of `realmem`'s, 56 % of `factcon`'s), while the index ranks 100,000 items of a user in milliseconds.
    pub max_entries: u32,
    /// The number of days without a write after which a session's turns leave recall (layered-prompt design, phase 3);
    /// 0 means never.
    pub prune_after_days: u32,
    /// The most turns that one job reads. A session with more turns needs several jobs.
    pub batch_turns: u32,
    /// With a model: the number of the user's turns that share one call.
    pub model_batch: u32,
    /// How long a turn waits for others to share a job with. Defaults to 0 for the rules and to 180 for a model.
    pub delay_secs: Option<u32>,
    /// With a model: the rules read a turn that lies more than this many turns back, so that a long imported history
    /// causes no unexpected cost.
    pub model_backlog: u64,
    /// The most characters of a message that a model sees. Of a longer message it sees the beginning and the end.
    pub max_message_chars: usize,
    /// The number of known memories that a model compares with each new statement.
    pub neighbours: u32,
    /// The number of attempts before a job is given up.
    pub max_attempts: u32,
    /// How long a worker may hold a job before another worker takes it over.
    pub lease_secs: u32,
    /// The pause after the first failure. It doubles with each failure, up to an hour.
    pub retry_secs: u32,
    /// The number of days for which finished jobs are kept.
    pub jobs_kept_days: u32,
    /// Replaces the built-in instructions for extraction (see `learn/prompts`).
    pub extract_prompt: Option<String>,
    /// Replaces the built-in instructions for reconciliation.
    pub reconcile_prompt: Option<String>,
    /// The settings of summaries.
    pub summaries: SummarisingSettings,
}

impl Default for LearnSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            into: LearnInto::User,
            secrets: LearnSecrets::Skip,
            max_entries: 0,
            prune_after_days: 0,
            batch_turns: 32,
            model_batch: 4,
            delay_secs: None,
            model_backlog: 256,
            max_message_chars: 2_000,
            neighbours: 5,
            max_attempts: 5,
            lease_secs: 300,
            retry_secs: 5,
            jobs_kept_days: 7,
            extract_prompt: None,
            reconcile_prompt: None,
            summaries: SummarisingSettings::default(),
        }
    }
}
