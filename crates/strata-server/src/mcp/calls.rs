//! The handlers of the tools: each takes arguments, runs one use-case and returns an answer.

use jiff::Timestamp;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, JsonObject};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};
use strata_core::key::KeyScope;
use strata_core::scope::{RecallScope, Scope};
use strata_core::store::{ItemKinds, MemoryQuery, MemorySelect, Page, Removed, TurnQuery};
use strata_core::trace::RetrievalPath;
use strata_core::turn::Metadata;
use strata_core::{Error, ItemId, Memory, MemoryId, RequestId, SessionId, Turn, TurnId, UserId};
use strata_engine::Filter;
use strata_engine::recall::{RecallRequest, Recalled};
use strata_engine::{MemoryEdit, NewMemory};

use super::answers::{
    AddedAnswer, AddedMemoryAnswer, CandidateAnswer, DeletedAnswer, ExplainAnswer, ForgottenAnswer,
    FoundAnswer, MemoriesAnswer, MemoryAnswer, OneAnswer, SearchAnswer,
};
use super::arguments::{
    AddMemory, DeleteAllMemories, DeleteMemory, ExplainRecall, ForgetUser, GetContext, GetMemories,
    GetMemory, SearchMemories, UpdateMemory,
};
use super::tools;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::numbers::{MAX_LIMIT, count, share};
use crate::identity::Caller;
use crate::identity::memories::{checked_agent, filter, names_user, present, user_of};
use crate::layers::withhold;
use crate::moment::Moment;
use crate::wire::AddResponse;
use crate::wire::search::sources_of;

/// The default number of memories in a list: a page that a model can read.
const LISTED: u32 = 50;

/// The default number of messages in a conversation's context.
const CONTEXT_TURNS: u32 = 20;

/// The most candidates in an explanation: the returned items and the next best.
const EXPLAINED: usize = 20;

const RESTORABLE: &str = "out of recall; a person can bring it back with `strata memories restore ID`";

type Answer = Result<Value, ApiError>;

/// Calls a tool. A failing tool returns an answer; only an unknown tool is an error of the protocol.
pub(super) async fn call(
    app: &App,
    caller: &Caller,
    name: &str,
    arguments: JsonObject,
) -> Result<CallToolResult, ErrorData> {
    let Some(tool) = tools::all().iter().find(|tool| tool.name == name) else {
        let known: Vec<&str> = tools::all().iter().map(|tool| tool.name.as_ref()).collect();
        let shown: String = name.chars().take(64).collect();
        let message = format!("there is no tool `{shown}`; there are {}", known.join(", "));
        return Err(ErrorData::invalid_params(message, None));
    };
    let answer = match caller.require(tools::scope(tool)) {
        Ok(()) => run(app, caller, name, arguments).await,
        Err(error) => Err(error),
    };
    Ok(match answer {
        Ok(mut answer) => {
            if caller.require(KeyScope::Read).is_err() {
                withhold(&mut answer);
            }
            CallToolResult::structured(answer)
        }
        Err(error) => CallToolResult::error(vec![ContentBlock::text(told(&error))]),
    })
}

async fn run(app: &App, caller: &Caller, name: &str, arguments: JsonObject) -> Answer {
    match name {
        "search_memories" => search(app, caller, arguments).await,
        "add_memory" => add(app, caller, arguments).await,
        "get_memories" => list(app, caller, arguments).await,
        "get_memory" => show(app, caller, arguments).await,
        "update_memory" => update(app, caller, arguments).await,
        "delete_memory" => delete(app, caller, arguments).await,
        "delete_all_memories" => delete_all(app, caller, arguments).await,
        "forget_user" => forget_user(app, caller, arguments).await,
        "get_context" => context(app, caller, arguments).await,
        "explain_recall" => explain(app, caller, arguments).await,
        _ => Err(Error::internal(format!("tool `{name}` is listed but has no handler")).into()),
    }
}

/// A failure in the form for a model: the problem, then the next step.
fn told(error: &ApiError) -> String {
    if let Some(cause) = error.cause() {
        tracing::error!(error = ?cause, "a tool failed");
    }
    let next = match error.code() {
        "not_found" => {
            "Call `search_memories` or `get_memories` to find what exists, and use an id from there."
        }
        "invalid" => "Correct the arguments and call the tool again.",
        "too_large" => "Make it shorter or split it, and call the tool again.",
        "conflict" => {
            "Look at it as it is now with `get_memory`, then decide whether the change still makes sense."
        }
        "insufficient_scope" | "forbidden_user" => {
            "Nothing was done. Tell the user that this connection's key does not allow it; do not try again."
        }
        "unavailable" => {
            "Nothing was changed. Wait a moment and call the tool again; if that fails too, tell the user."
        }
        _ => {
            "Nothing was changed. Go on without memory and tell the user that it does not work at the moment."
        }
    };
    format!("{}\n\n{next}", error.message())
}

/// Reads the arguments as those of each tool.
#[cfg(feature = "fuzz")]
pub(super) fn fuzz(given: &JsonObject) {
    let _ = read::<SearchMemories>(given.clone());
    let _ = read::<AddMemory>(given.clone());
    let _ = read::<GetMemories>(given.clone());
    let _ = read::<GetMemory>(given.clone());
    let _ = read::<UpdateMemory>(given.clone());
    let _ = read::<DeleteMemory>(given.clone());
    let _ = read::<DeleteAllMemories>(given.clone());
    let _ = read::<ForgetUser>(given.clone());
    let _ = read::<GetContext>(given.clone());
    let _ = read::<ExplainRecall>(given.clone());
}

fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, ApiError> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| ApiError::invalid(format!("the arguments are not what this tool takes: {error}")))
}

fn answer(answer: impl Serialize) -> Answer {
    serde_json::to_value(answer)
        .map_err(|error| Error::internal("an answer cannot be written as JSON").with_source(error).into())
}

async fn search(app: &App, caller: &Caller, arguments: JsonObject) -> Answer {
    let arguments: SearchMemories = read(arguments)?;
    let filter = filter(arguments.filters.as_ref())?;
    let user = user_of(caller, [&arguments.user_id], filter.as_ref())?;
    let limit = count("limit", &arguments.limit, MAX_LIMIT)?.or(count("top_k", &arguments.top_k, MAX_LIMIT)?);
    // An empty result tells a model that nothing is known. Recent turns without relevance would mislead it.
    let least = arguments.threshold.unwrap_or(f64::from(app.engine().settings().recall.score_threshold));
    let session = caller.session([&arguments.session_id])?;
    let scope: Option<Scope> = arguments.scope.as_deref().map(str::parse).transpose()?;
    let asked = scope.map(|scope| match scope {
        Scope::Session => RecallScope::Session,
        Scope::User | Scope::Global => RecallScope::User,
    });
    let names_user = names_user(caller, [&arguments.user_id], filter.as_ref());
    let request = RecallRequest {
        within: caller.recall_scope(names_user, session.as_ref(), asked),
        session,
        scope,
        kinds: item_kinds(arguments.kinds.as_deref())?,
        filter,
        as_of: Moment::parameter("as_of", arguments.as_of.as_deref())?.map(Moment::as_of),
        limit,
        score_threshold: share("threshold", Some(least))?,
        rerank: arguments.rerank,
        ..RecallRequest::new(arguments.query)
    };
    let recalled = app.engine().recall.ask(&user, &request).await?;
    app.meters().searched(recalled.path.as_str());
    let unreadable = app.engine().store().unreadable(&user);
    let damaged = (unreadable > 0).then(|| {
        format!("{unreadable} stored items are damaged and were left out; `strata doctor` tells more")
    });
    let note = note(&recalled).or(damaged);
    let sources = sources_of(app.engine(), &user, &recalled).await?;
    answer(SearchAnswer {
        request_id: recalled.request_id.to_string(),
        scope: recalled.scope.as_str(),
        note,
        results: recalled.items.iter().map(|found| FoundAnswer::new(found, &sources)).collect(),
    })
}

/// The session of a call's memories: the one that the call names; behind a wall the connection's, whatever the call
/// names.
fn bound_to<const N: usize>(
    caller: &Caller,
    user_id: &Option<String>,
    named: [&Option<String>; N],
) -> Result<Option<SessionId>, ApiError> {
    let wall = caller.wall(caller.names_user([user_id]), named)?;
    Ok(wall.or(Caller::own_session(named)?))
}

/// A memory that is not deleted, and behind a wall not another session's.
pub(super) async fn visible(
    app: &App,
    caller: &Caller,
    user: &UserId,
    named: &Option<String>,
    id: MemoryId,
) -> Result<Memory, ApiError> {
    let memory = present(app, user, id).await?;
    let wall = caller.wall(caller.names_user([named]), [])?;
    match (&memory.session, wall) {
        (Some(session), Some(wall)) if *session != wall => {
            Err(Error::not_found(format!("memory `{id}` does not exist for this user")).into())
        }
        _ => Ok(memory),
    }
}

/// A hint against misunderstanding a result.
fn note(recalled: &Recalled) -> Option<String> {
    match recalled.path {
        RetrievalPath::None if recalled.fts_hits + recalled.trgm_hits + recalled.vector_hits > 0 => Some(
            "nothing is relevant enough; call again with `threshold` 0 to see what comes nearest".to_owned(),
        ),
        RetrievalPath::None => Some("nothing is known about this".to_owned()),
        RetrievalPath::Window => {
            Some("nothing matches the question; these are only the most recent messages".to_owned())
        }
        RetrievalPath::SummariesOnly => Some(
            "no message or memory answers this; these are summaries of conversations about it".to_owned(),
        ),
        _ => recalled.expansion.as_ref().map(|reason| format!("looked beyond the conversation: {reason}")),
    }
}

fn item_kinds(kinds: Option<&[String]>) -> Result<ItemKinds, ApiError> {
    let Some(kinds) = kinds.filter(|kinds| !kinds.is_empty()) else { return Ok(ItemKinds::ALL) };
    let mut wanted = ItemKinds { turns: false, memories: false, summaries: false };
    for kind in kinds {
        match kind.as_str() {
            "turn" => wanted.turns = true,
            "memory" => wanted.memories = true,
            "summary" => wanted.summaries = true,
            _ => {
                return Err(ApiError::invalid(
                    "`kinds` has an unknown name; use `memory`, `turn` and `summary`",
                ));
            }
        }
    }
    Ok(wanted)
}

async fn add(app: &App, caller: &Caller, arguments: JsonObject) -> Answer {
    let arguments: AddMemory = read(arguments)?;
    let user = caller.user([&arguments.user_id])?;
    let memory = NewMemory {
        kind: arguments.kind.as_deref().map(str::parse).transpose()?.unwrap_or_default(),
        // The connection's session does not bind a memory, because a memory stored by an agent should outlive the
        // conversation; but without a user the session is a wall.
        session: bound_to(caller, &arguments.user_id, [&arguments.session_id, &arguments.run_id])?,
        agent: arguments.agent_id,
        metadata: arguments.metadata.unwrap_or_default().into(),
        ..NewMemory::new(arguments.text)
    };
    // An agent that calls this tool has already worded its statement, so nothing is inferred. It is reconciled with the
    // known memories, because agents tend to say the same again.
    let added = AddResponse::reconciled(&app.engine().learning.add(&user, vec![memory]).await?);
    app.meters().memories_added(added.added());
    answer(AddedAnswer { results: added.results.iter().map(AddedMemoryAnswer::from).collect() })
}

async fn list(app: &App, caller: &Caller, arguments: JsonObject) -> Answer {
    let arguments: GetMemories = read(arguments)?;
    let filter = filter(arguments.filters.as_ref())?.unwrap_or_else(Filter::always);
    let user = user_of(caller, [&arguments.user_id], Some(&filter))?;
    let limit = count("limit", &arguments.limit, MAX_LIMIT)?.unwrap_or(LISTED);
    let offset = offset(&arguments.offset)?;
    let query = MemoryQuery {
        select: MemorySelect::Current {
            as_of: Moment::parameter("as_of", arguments.as_of.as_deref())?.map(Moment::as_of),
        },
        session: bound_to(caller, &arguments.user_id, [&arguments.session_id, &arguments.run_id])?,
        agent: arguments.agent_id.map(checked_agent).transpose()?,
        kind: arguments.kind.as_deref().map(str::parse).transpose()?,
        keep: None,
        page: Page { offset, limit },
    };
    let memories = app.engine().memories.filtered(&user, &query, &filter).await?;
    let next_offset = (memories.len() == limit as usize).then(|| offset + u64::from(limit));
    let results = memories.into_iter().map(|memory| MemoryAnswer::new(&user, &memory)).collect();
    answer(MemoriesAnswer { results, next_offset })
}

fn offset(offset: &Option<Number>) -> Result<u64, ApiError> {
    let Some(offset) = offset else { return Ok(0) };
    offset.as_u64().filter(|offset| i64::try_from(*offset).is_ok()).ok_or_else(|| {
        ApiError::invalid(format!("`offset` is `{offset}`; use the `next_offset` of the previous answer"))
    })
}

async fn show(app: &App, caller: &Caller, arguments: JsonObject) -> Answer {
    let arguments: GetMemory = read(arguments)?;
    let user = caller.user([&arguments.user_id])?;
    let id: MemoryId = arguments.memory_id.parse()?;
    let memory = MemoryAnswer::new(&user, &visible(app, caller, &user, &arguments.user_id, id).await?);
    let history = match arguments.history {
        Some(true) => {
            let history = app.engine().memories.history(&user, id).await?;
            Some(history.into_iter().map(|memory| MemoryAnswer::new(&user, &memory)).collect())
        }
        _ => None,
    };
    answer(OneAnswer { memory, history })
}

async fn update(app: &App, caller: &Caller, arguments: JsonObject) -> Answer {
    let arguments: UpdateMemory = read(arguments)?;
    let user = caller.user([&arguments.user_id])?;
    let id: MemoryId = arguments.memory_id.parse()?;
    visible(app, caller, &user, &arguments.user_id, id).await?;
    let edit = MemoryEdit { content: arguments.text, metadata: arguments.metadata.map(Metadata::from) };
    let memory = app.engine().memories.revise(&user, id, edit).await?;
    answer(MemoryAnswer::new(&user, &memory))
}

async fn delete(app: &App, caller: &Caller, arguments: JsonObject) -> Answer {
    let arguments: DeleteMemory = read(arguments)?;
    let user = caller.user([&arguments.user_id])?;
    let id: MemoryId = arguments.memory_id.parse()?;
    visible(app, caller, &user, &arguments.user_id, id).await?;
    app.engine().memories.delete(&user, id).await?;
    answer(DeletedAnswer { deleted: 1, note: RESTORABLE })
}

async fn delete_all(app: &App, caller: &Caller, arguments: JsonObject) -> Answer {
    let arguments: DeleteAllMemories = read(arguments)?;
    let user = caller.user([&arguments.user_id])?;
    let query = MemoryQuery {
        session: bound_to(caller, &arguments.user_id, [&arguments.session_id, &arguments.run_id])?,
        agent: arguments.agent_id.map(checked_agent).transpose()?,
        ..MemoryQuery::new(MemorySelect::Current { as_of: None })
    };
    let deleted = app.engine().memories.delete_all(&user, &query).await?;
    answer(DeletedAnswer { deleted, note: RESTORABLE })
}

async fn forget_user(app: &App, caller: &Caller, arguments: JsonObject) -> Answer {
    let arguments: ForgetUser = read(arguments)?;
    if !arguments.confirmed {
        return Err(ApiError::invalid("`confirmed` is false; nothing was destroyed; ask the user first"));
    }
    let removed = app.forget_user(&caller.user_to_forget(&arguments.user_id)?).await?;
    let Removed { sessions, turns, memories, .. } = removed;
    answer(ForgottenAnswer { sessions, turns, memories, note: "destroyed; it cannot be restored" })
}

async fn context(app: &App, caller: &Caller, arguments: JsonObject) -> Answer {
    let arguments: GetContext = read(arguments)?;
    let user = caller.user([&arguments.user_id])?;
    let named = bound_to(caller, &arguments.user_id, [&arguments.session_id])?;
    let session: SessionId = match named {
        Some(session) => session,
        None => caller.session([])?.unwrap_or_default(),
    };
    let turns = count("turns", &arguments.turns, MAX_LIMIT)?.unwrap_or(CONTEXT_TURNS) as usize;
    let mut context = app.engine().contexts.get(&user, &session).await?;
    let too_many = context.recent_history.len().saturating_sub(turns);
    context.recent_history.drain(..too_many);
    let mut told = answer(context)?;
    let recent = TurnQuery::recent(Some(session.clone()), turns as u32);
    let said = app.engine().store().turns(&user, &recent).await?;
    let first_shown = said.iter().map(|turn| turn.seq).min();
    let written = app.engine().prompting.model_summaries(&user, &session, first_shown).await?;
    if !written.is_empty() {
        told["summaries"] = written.into();
    }
    for entry in told["recent_history"].as_array_mut().into_iter().flatten() {
        add_speaker(entry, &said);
    }
    Ok(told)
}

/// Adds to an entry of a history when and by whom it was said, in a form that a model can read.
fn add_speaker(entry: &mut Value, said: &[Turn]) {
    let is_entry = |turn: &&Turn| {
        entry["timestamp"] == turn.created_at.as_second()
            && entry["role"] == turn.role.as_str()
            && entry["content"] == turn.content.as_str()
    };
    let name = said.iter().find(is_entry).and_then(|turn| turn.name.clone());
    let at = entry["timestamp"].as_i64().and_then(|second| Timestamp::from_second(second).ok());
    if let Some(at) = at {
        entry["said_at"] = at.to_string().into();
    }
    if let Some(name) = name {
        entry["name"] = name.into();
    }
}

async fn explain(app: &App, caller: &Caller, arguments: JsonObject) -> Answer {
    let arguments: ExplainRecall = read(arguments)?;
    let user = caller.user([&arguments.user_id])?;
    let id: RequestId = arguments.request_id.parse()?;
    let Some(item) = arguments.item_id else {
        let trace = app.engine().requests.trace(&user, id).await?;
        let candidates: Vec<_> = trace.candidates.iter().take(EXPLAINED).map(CandidateAnswer::from).collect();
        return answer(ExplainAnswer {
            more_candidates: trace.candidates.len() - candidates.len(),
            query: trace.query,
            expansion: trace.expansion,
            reason: None,
            candidates,
        });
    };
    let query = app.engine().requests.get(&user, id).await?.query;
    // Ids are unique across kinds, so the engine finds the item of any kind.
    let item = ItemId::Turn(item.parse::<TurnId>()?);
    let explanation = app.engine().requests.explain(&user, id, item).await?;
    answer(ExplainAnswer {
        query,
        expansion: None,
        reason: Some(explanation.reason),
        candidates: explanation.candidate.iter().map(CandidateAnswer::from).collect(),
        more_candidates: 0,
    })
}
