//! A summary: derived text over a range of a session's turns, with the version it was built on.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::id::{SessionId, SummaryId};

/// How a summary was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Older turns folded into one text as they leave the recent ones.
    Rolling,
    /// The last so many turns, slid forward.
    Window,
    /// A tree of chunks, groups and one root.
    Tree,
}

impl Strategy {
    /// The name stores and clients use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rolling => "rolling",
            Self::Window => "window",
            Self::Tree => "tree",
        }
    }
}

impl std::str::FromStr for Strategy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "rolling" => Ok(Self::Rolling),
            "window" => Ok(Self::Window),
            "tree" => Ok(Self::Tree),
            _ => Err(Error::invalid(format!(
                "strategy `{name}` is unknown; use `rolling`, `window` or `tree`"
            ))),
        }
    }
}

/// How far a summary is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SummaryStatus {
    /// Being made; at most one a session.
    Processing,
    /// Done.
    Completed,
    /// Given up.
    Failed,
}

impl SummaryStatus {
    /// The name stores and clients use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

impl std::str::FromStr for SummaryStatus {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "processing" => Ok(Self::Processing),
            "completed" => Ok(Self::Completed),
            "failed" => Ok(Self::Failed),
            _ => Err(Error::invalid(format!("status `{name}` is unknown"))),
        }
    }
}

/// Derived text over a range of turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Its id.
    pub id: SummaryId,
    /// The session it is about.
    pub session: SessionId,
    /// How it was made.
    pub strategy: Strategy,
    /// Its level in a tree; 0 elsewhere.
    pub level: u8,
    /// The first turn it covers.
    pub start_seq: u64,
    /// The last turn it covers.
    pub end_seq: u64,
    /// The version it was built on.
    pub base_id: Option<SummaryId>,
    /// How far it is.
    pub status: SummaryStatus,
    /// The text; empty while processing.
    pub text: String,
    /// Facts, preferences, decisions, todos and entities, where they were made out.
    pub structured: Option<Value>,
    /// Tokens that went in.
    pub input_tokens: u32,
    /// Tokens that came out.
    pub output_tokens: u32,
    /// How long it took, in milliseconds.
    pub generation_ms: Option<u32>,
    /// When it was begun.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}
