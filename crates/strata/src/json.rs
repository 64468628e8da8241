//! The shapes that `--json` prints: the names are those of the HTTP API.

mod job;
mod learning;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use strata_core::engine::{SummaryReport, SummaryVersion};
use strata_core::metric::{ErrorStage, RequestMetric};
use strata_core::prompt::{Cut, Layer, Prompt};
use strata_core::recall::{Explanation, Outcome, Recalled, RecalledItem, Scope, Trace, TraceCandidate};
use strata_core::store::{Item, Removed};
use strata_core::summary::SummaryStats;
use strata_core::turn::Metadata;
use strata_core::{ItemId, Memory, Session, SessionId, Turn, UserId};
use strata_store::import::ImportReport;
use uuid::Uuid;

pub(crate) use job::JobJson;
pub(crate) use learning::{HistoryJson, InferredJson};

/// A session without its turns.
#[derive(Debug, Serialize)]
pub(crate) struct SessionJson<'a> {
    id: &'a SessionId,
    user_id: &'a UserId,
    created_at: Timestamp,
    updated_at: Timestamp,
    turn_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<Vec<TurnJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summaries: Option<Vec<SummaryJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<&'a SummaryStats>,
}

impl<'a> SessionJson<'a> {
    pub(crate) fn new(user: &'a UserId, session: &'a Session) -> Self {
        let Session { id, created_at, updated_at, turn_count, .. } = session;
        Self {
            id,
            user_id: user,
            created_at: *created_at,
            updated_at: *updated_at,
            turn_count: *turn_count,
            turns: None,
            summaries: None,
            stats: None,
        }
    }

    pub(crate) fn with_summaries(mut self, report: &'a SummaryReport) -> Self {
        self.summaries = Some(report.versions.iter().map(SummaryJson::new).collect());
        self.stats = Some(&report.stats);
        self
    }

    pub(crate) fn with_turns(mut self, turns: &'a [Turn]) -> Self {
        self.turns = Some(turns.iter().map(TurnJson::new).collect());
        self
    }
}

/// A turn.
#[derive(Debug, Serialize)]
pub(crate) struct TurnJson<'a> {
    id: Uuid,
    seq: u64,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    content: &'a str,
    created_at: Timestamp,
    token_count: u32,
    metadata: &'a Metadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<&'static str>,
}

impl<'a> TurnJson<'a> {
    pub(crate) fn new(turn: &'a Turn) -> Self {
        Self {
            id: turn.id.0,
            seq: turn.seq,
            role: turn.role.as_str(),
            name: turn.name.as_deref(),
            content: &turn.content,
            created_at: turn.created_at,
            token_count: turn.token_count,
            metadata: &turn.metadata,
            hidden: turn.hidden.map(|hidden| hidden.reason.as_str()),
        }
    }
}

/// One version of a summary.
#[derive(Debug, Serialize)]
pub(crate) struct SummaryJson<'a> {
    id: Uuid,
    strategy: &'static str,
    level: u8,
    start_seq: u64,
    end_seq: u64,
    base_id: Option<Uuid>,
    base_end_seq: Option<u64>,
    window_size: u64,
    status: &'static str,
    stuck: bool,
    text: &'a str,
    structured: Option<&'a Value>,
    input_tokens: u32,
    output_tokens: u32,
    generation_ms: Option<u32>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl<'a> SummaryJson<'a> {
    fn new(version: &'a SummaryVersion) -> Self {
        let SummaryVersion { summary, base_end_seq, stuck } = version;
        Self {
            id: summary.id.0,
            strategy: summary.strategy.as_str(),
            level: summary.level,
            start_seq: summary.start_seq,
            end_seq: summary.end_seq,
            base_id: summary.base_id.map(|id| id.0),
            base_end_seq: *base_end_seq,
            window_size: summary.window_size(),
            status: summary.status.as_str(),
            stuck: *stuck,
            text: &summary.text,
            structured: summary.structured.as_ref(),
            input_tokens: summary.input_tokens,
            output_tokens: summary.output_tokens,
            generation_ms: summary.generation_ms,
            created_at: summary.created_at,
            updated_at: summary.updated_at,
        }
    }
}

/// A prompt, and how it came to its size.
#[derive(Debug, Serialize)]
pub(crate) struct PromptJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<MessageJson<'a>>>,
    tokens: u32,
    layers: &'a [Layer],
    cut: &'a [Cut],
}

#[derive(Debug, Serialize)]
struct MessageJson<'a> {
    role: &'static str,
    content: &'a str,
}

impl<'a> PromptJson<'a> {
    pub(crate) fn new(prompt: &'a Prompt) -> Self {
        let messages = prompt.messages().map(|messages| {
            let messages = messages.iter();
            messages
                .map(|message| MessageJson { role: message.role.as_str(), content: &message.content })
                .collect()
        });
        let Prompt { tokens, layers, cut, .. } = prompt;
        Self { prompt: prompt.text(), messages, tokens: *tokens, layers, cut }
    }
}

/// What an import did.
#[derive(Debug, Serialize)]
pub(crate) struct ImportJson<'a> {
    conversations: u64,
    messages: u64,
    turns_added: u64,
    turns_present: u64,
    summaries_added: u64,
    states_added: u64,
    skipped: u64,
    problems: &'a [String],
}

impl<'a> ImportJson<'a> {
    pub(crate) fn new(report: &'a ImportReport) -> Self {
        Self {
            conversations: report.conversations,
            messages: report.messages,
            turns_added: report.turns_added,
            turns_present: report.turns_present,
            summaries_added: report.summaries_added,
            states_added: report.states_added,
            skipped: report.skipped,
            problems: &report.problems,
        }
    }
}

/// A memory. `run_id` is its session, as mem0's clients call it.
#[derive(Debug, Serialize)]
pub(crate) struct MemoryJson<'a> {
    id: Uuid,
    memory: &'a str,
    user_id: Option<&'a UserId>,
    agent_id: Option<&'a str>,
    run_id: Option<&'a SessionId>,
    scope: Scope,
    kind: &'static str,
    confidence: f32,
    metadata: &'a Metadata,
    created_at: Timestamp,
    valid_from: Timestamp,
    valid_to: Option<Timestamp>,
    replaced_by: Option<Uuid>,
    hidden: Option<&'static str>,
    source: SourceJson<'a>,
}

impl<'a> MemoryJson<'a> {
    pub(crate) fn new(user: &'a UserId, memory: &'a Memory) -> Self {
        let is_global = *user == UserId::global();
        Self {
            id: memory.id.0,
            memory: &memory.content,
            user_id: (!is_global).then_some(user),
            agent_id: memory.agent.as_deref(),
            run_id: memory.session.as_ref(),
            scope: match &memory.session {
                Some(_) => Scope::Session,
                None if is_global => Scope::Global,
                None => Scope::User,
            },
            kind: memory.kind.as_str(),
            confidence: memory.confidence,
            metadata: &memory.metadata,
            created_at: memory.recorded_at,
            valid_from: memory.valid_from,
            valid_to: memory.valid_to,
            replaced_by: memory.replaced_by.map(|id| id.0),
            hidden: memory.hidden.map(|hidden| hidden.reason.as_str()),
            source: SourceJson::of_memory(memory),
        }
    }
}

/// The turns that say so.
#[derive(Debug, Serialize)]
struct SourceJson<'a> {
    turns: Vec<SourceTurnJson<'a>>,
}

#[derive(Debug, Serialize)]
struct SourceTurnJson<'a> {
    id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

impl<'a> SourceJson<'a> {
    fn of_turn(turn: &'a Turn) -> Self {
        let place = SourceTurnJson { id: turn.id.0, session_id: Some(&turn.session), seq: Some(turn.seq) };
        Self { turns: vec![place] }
    }

    fn of_memory(memory: &Memory) -> Self {
        let turns = memory.source_turns.iter();
        Self { turns: turns.map(|id| SourceTurnJson { id: id.0, session_id: None, seq: None }).collect() }
    }
}

/// What a search found.
#[derive(Debug, Serialize)]
pub(crate) struct RecalledJson<'a> {
    results: Vec<ResultJson<'a>>,
    request_id: Uuid,
    retrieval_path: &'static str,
    scope: Scope,
    expansion: Option<&'a str>,
    tokens: u32,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<TraceJson<'a>>,
}

#[derive(Debug, Serialize)]
struct ResultJson<'a> {
    id: Uuid,
    memory: &'a str,
    truncated: bool,
    score: f32,
    relevance: f32,
    kind: &'static str,
    created_at: Timestamp,
    valid_from: Timestamp,
    valid_to: Option<Timestamp>,
    session_id: Option<&'a SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    source: SourceJson<'a>,
}

impl<'a> RecalledJson<'a> {
    pub(crate) fn new(recalled: &'a Recalled) -> Self {
        Self {
            results: recalled.items.iter().map(ResultJson::new).collect(),
            request_id: recalled.request_id.0,
            retrieval_path: recalled.path.as_str(),
            scope: recalled.scope,
            expansion: recalled.expansion.as_deref(),
            tokens: recalled.tokens,
            truncated: recalled.truncated,
            trace: recalled.trace.as_ref().map(TraceJson::new),
        }
    }
}

impl<'a> ResultJson<'a> {
    fn new(found: &'a RecalledItem) -> Self {
        let item = &found.item;
        let (valid_from, valid_to, role, source) = match item {
            Item::Turn(turn) => (turn.created_at, None, Some(turn.role.as_str()), SourceJson::of_turn(turn)),
            Item::Memory(memory) => (memory.valid_from, memory.valid_to, None, SourceJson::of_memory(memory)),
            Item::Summary(summary) => (summary.created_at, None, None, SourceJson { turns: Vec::new() }),
        };
        Self {
            id: item.id().uuid(),
            memory: found.shortened.as_deref().unwrap_or_else(|| item.content()),
            truncated: found.shortened.is_some(),
            score: found.score,
            relevance: found.relevance,
            kind: kind_of(item),
            created_at: item.created_at(),
            valid_from,
            valid_to,
            session_id: item.session(),
            role,
            source,
        }
    }
}

/// What an item is called: a memory by its own kind.
pub(crate) fn kind_of(item: &Item) -> &'static str {
    match item {
        Item::Turn(_) => "turn",
        Item::Memory(memory) => memory.kind.as_str(),
        Item::Summary(_) => "summary",
    }
}

/// What happened in one recall.
#[derive(Debug, Serialize)]
pub(crate) struct TraceJson<'a> {
    query: &'a str,
    scope: Scope,
    expansion: Option<&'a str>,
    retrieval_path: &'static str,
    fts_hits: u32,
    trgm_hits: u32,
    vector_hits: u32,
    candidates: Vec<CandidateJson>,
}

/// What happened to one candidate.
#[derive(Debug, Serialize)]
pub(crate) struct CandidateJson {
    id: Uuid,
    kind: &'static str,
    place: u32,
    terms: Option<f32>,
    words: Option<f32>,
    mean: Option<f32>,
    encoder: Option<f32>,
    timely: bool,
    likeness: Option<f32>,
    fresher_by: i32,
    score: f32,
    relevance: f32,
    age_days: Option<f32>,
    served_score: Option<f32>,
    outcome: &'static str,
    reason: String,
}

impl<'a> TraceJson<'a> {
    pub(crate) fn new(trace: &'a Trace) -> Self {
        Self {
            query: &trace.query,
            scope: trace.scope,
            expansion: trace.expansion.as_deref(),
            retrieval_path: trace.path.as_str(),
            fts_hits: trace.fts_hits,
            trgm_hits: trace.trgm_hits,
            vector_hits: trace.vector_hits,
            candidates: trace.candidates.iter().map(CandidateJson::new).collect(),
        }
    }
}

impl CandidateJson {
    fn new(candidate: &TraceCandidate) -> Self {
        Self {
            id: candidate.item.uuid(),
            kind: item_kind(candidate.item),
            place: candidate.place,
            terms: candidate.terms,
            words: candidate.words,
            mean: candidate.mean,
            encoder: candidate.encoder,
            timely: candidate.timely,
            likeness: candidate.likeness,
            fresher_by: candidate.fresher_by,
            score: candidate.score,
            relevance: candidate.relevance,
            age_days: candidate.age_days,
            served_score: candidate.served_score,
            outcome: match candidate.outcome {
                Outcome::Served(_) => "served",
                Outcome::BelowThreshold => "below_threshold",
                Outcome::NotChosen => "not_chosen",
                Outcome::OverBudget(_) => "over_budget",
            },
            reason: candidate.outcome.to_string(),
        }
    }
}

fn item_kind(item: ItemId) -> &'static str {
    match item {
        ItemId::Turn(_) => "turn",
        ItemId::Memory(_) => "memory",
        ItemId::Summary(_) => "summary",
    }
}

/// Why one item was or was not recalled.
#[derive(Debug, Serialize)]
pub(crate) struct ExplanationJson<'a> {
    id: Uuid,
    kind: &'static str,
    recalled: bool,
    reason: &'a str,
    candidate: Option<CandidateJson>,
}

impl<'a> ExplanationJson<'a> {
    pub(crate) fn new(explanation: &'a Explanation) -> Self {
        let Explanation { item, reason, candidate } = explanation;
        let served = |candidate: &TraceCandidate| matches!(candidate.outcome, Outcome::Served(_));
        Self {
            id: item.uuid(),
            kind: item_kind(*item),
            recalled: candidate.as_ref().is_some_and(served),
            reason,
            candidate: candidate.as_ref().map(CandidateJson::new),
        }
    }
}

/// What one request did and cost, with its trace.
#[derive(Debug, Serialize)]
pub(crate) struct RequestJson<'a> {
    id: Uuid,
    user_id: &'a UserId,
    session_id: Option<&'a SessionId>,
    created_at: Timestamp,
    query: &'a str,
    fts_hits: u32,
    trgm_hits: u32,
    vector_hits: u32,
    used_fallback: bool,
    retrieval_path: &'static str,
    scope: Scope,
    scope_used: Scope,
    expansion: Option<&'a str>,
    context_items: u32,
    estimated_tokens: u32,
    truncated: bool,
    latency_retrieval_ms: f64,
    latency_llm_ms: Option<f64>,
    error_stage: Option<ErrorStage>,
    trace_kept: bool,
    trace: TraceJson<'a>,
}

impl<'a> RequestJson<'a> {
    pub(crate) fn new(user: &'a UserId, row: &'a RequestMetric, trace: &'a Trace) -> Self {
        let milliseconds = |micros: u64| micros as f64 / 1_000.0;
        Self {
            id: row.id.0,
            user_id: user,
            session_id: row.session.as_ref(),
            created_at: row.created_at,
            query: &row.query,
            fts_hits: row.fts_hits,
            trgm_hits: row.trgm_hits,
            vector_hits: row.vector_hits,
            used_fallback: row.used_fallback,
            retrieval_path: row.retrieval_path.as_str(),
            scope: row.scope,
            scope_used: row.scope_used,
            expansion: row.expansion.as_deref(),
            context_items: row.context_items,
            estimated_tokens: row.estimated_tokens,
            truncated: row.truncated,
            latency_retrieval_ms: milliseconds(row.latency_retrieval_us),
            latency_llm_ms: row.latency_llm_us.map(milliseconds),
            error_stage: row.error_stage,
            trace_kept: row.trace.is_some(),
            trace: TraceJson::new(trace),
        }
    }
}

/// What was destroyed.
#[derive(Debug, Serialize)]
pub(crate) struct RemovedJson {
    pub(crate) removed: Removed,
}
