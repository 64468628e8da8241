//! One row per request that recalled something. It answers the question why Strata forgot something.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::id::{ItemId, RequestId, SessionId};
use crate::names::{Named, unknown};
use crate::scope::Scope;
use crate::trace::{RetrievalPath, Trace};

/// The step at which a request failed.
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
    /// Recording the reply: its end was passed on before it was recorded.
    Recording,
}

impl ErrorStage {
    /// The name that stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A stage whose result came after the request's deadline, so that recall answered without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LateStage {
    /// Embedding the question. The items were ranked by their words.
    Embedding,
    /// The cross-encoder. The items stay in the order before it.
    Reranking,
    /// The reader, asked where the scores leave a doubt. The scores stay.
    SecondLook,
}

impl LateStage {
    /// The name that stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The prompt that a model was shown for a request, in tokens. A figure that is not known is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PromptUse {
    /// The tokens of all turns of the session: the size of a prompt that sends everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_tokens: Option<u64>,
    /// The tokens that the model read, as it reports them, or else as Strata counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// The tokens that the model wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The share of the prompt that equals the beginning of the session's last prompt, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable_share: Option<f32>,
}

impl PromptUse {
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// A person's judgement of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<FeedbackKind>)]
pub enum FeedbackKind {
    /// It forgot something that was known.
    #[default]
    Forgot,
    /// It forgot something that shares no words with the question: only its meaning could find it.
    Meaning,
}

impl FeedbackKind {
    /// The name that stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for FeedbackKind {
    const WHAT: &'static str = "kind of feedback";
}

/// A complaint about a request, filed by a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// The kind of failure.
    pub kind: FeedbackKind,
    /// The time at which it was filed.
    pub at: Timestamp,
    /// The person's own words; they may be empty.
    pub text: String,
}

/// The result and the cost of one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestMetric {
    /// The request.
    pub id: RequestId,
    /// The session it was made in.
    pub session: Option<SessionId>,
    /// The time of the request.
    pub created_at: Timestamp,
    /// The question.
    pub query: String,
    /// Hits of full text.
    pub fts_hits: u32,
    /// Hits of trigrams.
    pub trgm_hits: u32,
    /// Hits of vectors.
    pub vector_hits: u32,
    /// Whether neither text path found anything, so that recent turns were used instead.
    pub used_fallback: bool,
    /// The path that found the result.
    pub retrieval_path: RetrievalPath,
    /// The requested scope.
    pub scope: Scope,
    /// The scope that was used in the end.
    pub scope_used: Scope,
    /// The reason for widening the scope, if it was widened.
    pub expansion: Option<String>,
    /// The number of returned items.
    pub context_items: u32,
    /// Their tokens.
    pub estimated_tokens: u32,
    /// Whether the budget excluded something.
    pub truncated: bool,
    /// The time spent on recall, in microseconds.
    pub latency_retrieval_us: u64,
    /// The time spent on the model, in microseconds.
    pub latency_llm_us: Option<u64>,
    /// The step at which it failed.
    pub error_stage: Option<ErrorStage>,
    /// The stage that was too late to be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateStage>,
    /// Whether recall did not run, because the caller asked for none, or because a chat goes on with the memory of the
    /// request before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
    /// The prompt that a model was shown.
    #[serde(default, skip_serializing_if = "PromptUse::is_unknown")]
    pub prompt: PromptUse,
    /// Complaints about the request, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback: Vec<Feedback>,
    /// The full trace if the request asked for one; for a chat, the items that it was given
    /// ([`RequestMetric::served`]).
    pub trace: Option<Value>,
}

/// The part of the trace that a row keeps if no trace was requested and not all found items were returned.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServedItems {
    served: Vec<ItemId>,
}

/// The origin of a request's trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceSource {
    /// It was stored with the request.
    Kept,
    /// It is computed again.
    Anew,
    /// It is computed again, but the returned items are known.
    AnewAsGiven,
}

impl TraceSource {
    /// The origin in words, for a person who reads the trace.
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
    /// Keeps the returned items, best first, unless the full trace is kept.
    pub fn keep_served(&mut self, items: impl Iterator<Item = ItemId>) {
        if self.trace.is_none() {
            self.trace = serde_json::to_value(ServedItems { served: items.collect() }).ok();
        }
    }

    /// The returned items, best first, if the row keeps them apart from a trace.
    pub fn served(&self) -> Option<Vec<ItemId>> {
        ServedItems::deserialize(self.trace.as_ref()?).ok().map(|given| given.served)
    }

    /// The origin of this request's trace.
    pub fn trace_source(&self) -> TraceSource {
        match &self.trace {
            Some(trace) if Trace::deserialize(trace).is_ok() => TraceSource::Kept,
            Some(_) if self.served().is_some() => TraceSource::AnewAsGiven,
            _ => TraceSource::Anew,
        }
    }
}
