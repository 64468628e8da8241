//! One row for each request that recalled something: what makes «it forgot» a question with an answer.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{ItemId, RequestId, SessionId};
use crate::scope::Scope;
use crate::trace::{RetrievalPath, Trace};

/// Where a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ErrorStage {
    /// Recall.
    Retrieval,
    /// The model's reply.
    LlmReply,
    /// Summarising.
    Summary,
    /// Embedding the question.
    Embedding,
}

impl ErrorStage {
    /// The name stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What one request did and cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestMetric {
    /// The request.
    pub id: RequestId,
    /// The session it was made in.
    pub session: Option<SessionId>,
    /// When.
    pub created_at: Timestamp,
    /// The question.
    pub query: String,
    /// Hits of full text.
    pub fts_hits: u32,
    /// Hits of trigrams.
    pub trgm_hits: u32,
    /// Hits of vectors.
    pub vector_hits: u32,
    /// Whether neither text path gave anything and recent turns stood in.
    pub used_fallback: bool,
    /// Which path gave the result.
    pub retrieval_path: RetrievalPath,
    /// The scope asked for.
    pub scope: Scope,
    /// The scope used in the end.
    pub scope_used: Scope,
    /// Why the scope was widened.
    pub expansion: Option<String>,
    /// Items given back.
    pub context_items: u32,
    /// Their tokens.
    pub estimated_tokens: u32,
    /// Whether the budget cut something.
    pub truncated: bool,
    /// Time spent on recall, in microseconds.
    pub latency_retrieval_us: u64,
    /// Time spent on the model, in microseconds.
    pub latency_llm_us: Option<u64>,
    /// Where it failed.
    pub error_stage: Option<ErrorStage>,
    /// The full trace, when one was asked for; of a chat, what it was given ([`RequestMetric::served`]).
    pub trace: Option<Value>,
}

/// What a row keeps where nobody asked for a trace and not all that was found was given.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    served: Vec<ItemId>,
}

/// Where the trace of a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceSource {
    /// It was kept with the request.
    Kept,
    /// It is made anew.
    Anew,
    /// It is made anew, but what was given then is known.
    AnewAsGiven,
}

impl TraceSource {
    /// The same for a person who reads the trace.
    pub fn note(self) -> &'static str {
        match self {
            Self::Kept => "this trace was kept with the request",
            Self::Anew => {
                "this trace was made anew: the question was asked again, of what had been recorded by then, with the \
                 settings of now"
            }
            Self::AnewAsGiven => {
                "this trace was made anew: the question was asked again, of what had been recorded before it, with the \
                 settings of now; served is what was given then, which leaves out what the chat shows itself"
            }
        }
    }
}

impl RequestMetric {
    /// Keeps what was given, best first, unless a whole trace is kept.
    pub fn keep_served(&mut self, items: impl Iterator<Item = ItemId>) {
        if self.trace.is_none() {
            self.trace = serde_json::to_value(Given { served: items.collect() }).ok();
        }
    }

    /// What was given, best first, where the row says so beside its trace.
    pub fn served(&self) -> Option<Vec<ItemId>> {
        Given::deserialize(self.trace.as_ref()?).ok().map(|given| given.served)
    }

    /// Where the trace of this request comes from.
    pub fn trace_source(&self) -> TraceSource {
        match &self.trace {
            Some(trace) if Trace::deserialize(trace).is_ok() => TraceSource::Kept,
            Some(_) if self.served().is_some() => TraceSource::AnewAsGiven,
            _ => TraceSource::Anew,
        }
    }
}
