//! How learning works.

use serde::{Deserialize, Serialize};

use super::summarising::SummarySettings;

/// Where a learned memory belongs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LearnInto {
    /// It holds in all of the user's sessions.
    #[default]
    User,
    /// It is bound to the session in which it was said, as document 4 keeps it.
    Session,
}

/// How learning works. Names and defaults are the documents' where they have them.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnSettings {
    /// Whether recorded turns are learned from.
    pub enabled: bool,
    /// Where learned memories belong.
    pub into: LearnInto,
    /// The most entries of a session that recall sees (document 4); 0 sets no limit.
    ///
    /// Document 4 says 500. Strata's default is no limit: the limit was made for an index that slows down, and here it would
    /// only cost recall. Were each conversation of the recall benchmarks one session, the newest 500 entries would leave 28 % of
    /// their 4,528 questions without any of their evidence (92 % of `knowme`'s, 74 % of `realmem`'s, 56 % of `factcon`'s), while
    /// the index ranks 100,000 items of a user in milliseconds.
    pub max_entries: u32,
    /// After how many days without a write a session's turns leave recall (document 0, phase 3); 0 is never.
    pub prune_after_days: u32,
    /// The most turns that one job reads; a session with more waiting is read in several.
    pub batch_turns: u32,
    /// With a model: how many of the user's turns share its calls.
    pub model_batch: u32,
    /// How long a turn waits for others to share a job with. Without a word, 0 for the rules and 180 for a model.
    pub delay_secs: Option<u32>,
    /// With a model: turns further back than this when they are reached are left to the rules, so that a long history that
    /// was imported does not cost money by surprise.
    pub model_backlog: u64,
    /// The most characters of a message that a model is shown; of a longer one the beginning and the end.
    pub max_message_chars: usize,
    /// How many known memories are compared with each new statement.
    pub neighbours: u32,
    /// How often a job is tried before it is given up.
    pub max_attempts: u32,
    /// How long a worker may hold a job before another takes it over.
    pub lease_secs: u32,
    /// The first pause after a failure; it doubles with each, up to an hour.
    pub retry_secs: u32,
    /// For how many days finished jobs can be looked at.
    pub jobs_kept_days: u32,
    /// Instead of the built-in instructions for extraction (see `learn/prompts`).
    pub extract_prompt: Option<String>,
    /// Instead of the built-in instructions for reconciliation.
    pub reconcile_prompt: Option<String>,
    /// How sessions are summarised.
    pub summaries: SummarySettings,
}

impl Default for LearnSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            into: LearnInto::User,
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
            summaries: SummarySettings::default(),
        }
    }
}
