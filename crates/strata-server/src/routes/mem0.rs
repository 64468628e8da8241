//! What mem0's own client (`mem0ai`'s `MemoryClient(host=…)`) calls: the paths and shapes of its hosted service.
//!
//! A foreign wire format, kept in this one module: fields that are not understood are passed over here, as that service
//! does, where everywhere else they are refused. The paths are exactly the client's, so that every other `/v1/…` stays the
//! proxy's. They are not in the OpenAPI document, which describes Strata's own. Memories are stored as they are given; a
//! memory that is named by its id alone belongs to whoever has it, as far as the caller may ask for them.

use axum::Json;
use axum::extract::State;
use axum::routing::{delete, get, post, put};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use strata_core::key::KeyScope;
use strata_core::scope::Scope;
use strata_core::store::{Item, ItemKinds, MemoryQuery, MemorySelect, Page};
use strata_core::turn::{Metadata, NewMessage, Owner, TurnNotes};
use strata_core::{Error, Memory, MemoryId, Role, SessionId, UserId};
use strata_engine::Filter;
use strata_engine::recall::{MAX_LIMIT, RecallRequest};
use strata_engine::{MemoryEdit, NewMemory};

use super::filters::{filter, user_of};
use super::memories::checked_agent;
use super::memory::{owner_of, present, steps};
use super::search::share;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{JsonBody, Params, PathName};
use crate::identity::Caller;
use crate::moment::Moment;
use crate::router::Route;

/// Leaves out what is less relevant where the client does not say: mem0's own default.
const THRESHOLD: f64 = 0.1;

/// How many memories a search or a page has where the client does not say: mem0's own default is 10 and 100.
const FOUND: u32 = 10;
const PAGE: u32 = 100;

/// How many users are listed at the most.
const MAX_ENTITIES: u32 = 1_000;

pub(crate) fn routes() -> Vec<Route> {
    let add = || post(add_memories);
    let list = || post(list_memories);
    let search = || post(search_memories);
    vec![
        ("/v1/ping/", get(ping)),
        ("/v3/memories/add/", add()),
        ("/v3/memories/", list()),
        ("/v2/memories/", list()),
        ("/v3/memories/search/", search()),
        ("/v2/memories/search/", search()),
        ("/v1/memories/", post(add_memories).delete(delete_memories)),
        ("/v1/memories/{id}/", get(get_memory).put(update_memory).delete(delete_memory)),
        ("/v1/memories/{id}/history/", get(history)),
        ("/v1/batch/", put(update_many).delete(delete_many)),
        ("/v1/entities/", get(list_entities)),
        ("/v2/entities/{type}/{name}/", delete(delete_entity)),
        ("/reset", post(reset)),
    ]
}

/// What the client asks for when it is made: that somebody answers, and names for what Strata does not have.
async fn ping(_caller: Caller) -> Json<Value> {
    Json(json!({ "status": "ok", "org_id": "strata", "project_id": "strata", "user_email": null }))
}

/// Who and what a memory belongs to, as the client names it: at the top or inside `filters`.
#[derive(Debug, Default, Deserialize)]
struct Entities {
    user_id: Option<String>,
    agent_id: Option<String>,
    app_id: Option<String>,
    run_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct AddRequest {
    messages: Value,
    #[serde(flatten)]
    named: Entities,
    #[serde(default)]
    filters: Option<Entities>,
    metadata: Option<Metadata>,
    timestamp: Option<Moment>,
    expiration_date: Option<String>,
    /// Said by whoever wants that statements are inferred; else they are stored as they are given, with their metadata.
    #[serde(default)]
    infer: Option<bool>,
}

/// The text of one message: a string, or the text parts of a list.
fn said(message: &Value) -> Option<String> {
    if message.get("role").and_then(Value::as_str).is_some_and(|role| role != "user") {
        return None;
    }
    match message.get("content")? {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            Some(texts.join("\n"))
        }
        _ => None,
    }
    .filter(|text| !text.trim().is_empty())
}

#[derive(Debug, Serialize)]
struct Added {
    id: MemoryId,
    memory: String,
    event: &'static str,
    metadata: Metadata,
}

async fn add_memories(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<AddRequest>,
) -> Result<Json<Value>, ApiError> {
    let AddRequest { messages, named, filters, metadata, timestamp, expiration_date, infer } = request;
    if expiration_date.is_some() {
        return Err(ApiError::invalid(
            "`expiration_date` is not built; leave it out, and delete the memory when its time is over",
        ));
    }
    let inside = filters.unwrap_or_default();
    let user = caller.user([&named.user_id, &inside.user_id])?;
    let agent = named.agent_id.or(inside.agent_id).map(checked_agent).transpose()?;
    let session = named.run_id.or(inside.run_id).map(SessionId::new).transpose()?;
    let mut metadata = metadata.unwrap_or_default();
    if let Some(application) = named.app_id.or(inside.app_id) {
        metadata.insert("app_id", application.into());
    }
    let messages = match messages {
        Value::Array(messages) => messages,
        Value::String(text) => vec![json!({ "role": "user", "content": text })],
        message @ Value::Object(_) => vec![message],
        _ => return Err(ApiError::invalid("`messages` is no text, message or list of messages; send one")),
    };
    let memories: Vec<NewMemory> = messages
        .iter()
        .filter_map(said)
        .map(|content| NewMemory {
            session: session.clone(),
            agent: agent.clone(),
            valid_from: timestamp.map(Moment::at),
            metadata: metadata.clone(),
            ..NewMemory::new(content)
        })
        .collect();
    let most = app.engine().settings().limits.max_turns_per_call;
    if memories.len() > most {
        let message = format!("{} messages in one call; the most is {most}", memories.len());
        return Err(Error::too_large(message).into());
    }
    if memories.is_empty() {
        return Ok(Json(json!({ "results": [] })));
    }
    if infer == Some(true) {
        return inferred(&app, &user, memories).await;
    }
    let added = app.engine().memories.add(&user, memories).await?;
    app.meters().memories_added(added.len());
    let results: Vec<Added> = added
        .into_iter()
        .map(|memory| Added {
            id: memory.id,
            memory: memory.content,
            event: "ADD",
            metadata: memory.metadata,
        })
        .collect();
    Ok(Json(json!({ "results": results })))
}

/// Learns from what was said, as `POST /memories` does.
async fn inferred(app: &App, user: &UserId, said: Vec<NewMemory>) -> Result<Json<Value>, ApiError> {
    let session = said.first().and_then(|memory| memory.session.clone()).unwrap_or_default();
    let messages = said.into_iter().map(|memory| {
        let owner =
            Owner { agent: memory.agent, in_session: memory.session.is_some(), metadata: memory.metadata };
        let notes = TurnNotes { owner, ..TurnNotes::default() };
        let created_at = memory.valid_from;
        NewMessage { created_at, notes, ..NewMessage::new(Role::User, memory.content) }
    });
    let events = app.engine().learning.infer(user, &session, messages.collect(), None).await?;
    let results = events
        .into_iter()
        .map(|event| json!({ "id": event.id, "memory": event.memory, "event": event.event.as_str() }));
    Ok(Json(json!({ "results": results.collect::<Vec<_>>() })))
}

/// A memory as the client knows it.
fn shown(owner: &UserId, memory: Memory, score: Option<f32>) -> Value {
    let mut shown = json!({
        "id": memory.id,
        "memory": memory.content,
        "user_id": owner.as_str(),
        "agent_id": memory.agent,
        "app_id": memory.metadata.get("app_id"),
        "run_id": memory.session,
        "metadata": memory.metadata,
        "categories": memory.metadata.get("categories").cloned().unwrap_or_else(|| json!([])),
        "created_at": memory.first_recorded_at(),
        "updated_at": memory.hidden.map_or(memory.recorded_at, |hidden| hidden.at),
    });
    if let Some(score) = score {
        shown["score"] = score.into();
    }
    shown
}

#[derive(Debug, Deserialize)]
struct ListRequest {
    filters: Option<Map<String, Value>>,
    #[serde(flatten)]
    named: Entities,
    start_date: Option<Value>,
    end_date: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct PageParams {
    page: Option<u32>,
    page_size: Option<u32>,
}

/// The filter of a request: its `filters`, and what it names beside them.
fn whole_filter(
    filters: Option<&Map<String, Value>>,
    named: &Entities,
    dates: [(&str, Option<&Value>); 2],
) -> Result<Option<Filter>, ApiError> {
    let mut beside = Map::new();
    for (name, value) in [("agent_id", &named.agent_id), ("app_id", &named.app_id), ("run_id", &named.run_id)]
    {
        if let Some(value) = value {
            beside.insert(name.to_owned(), value.as_str().into());
        }
    }
    let bounds: Map<String, Value> =
        dates.into_iter().filter_map(|(operator, date)| Some((operator.to_owned(), date?.clone()))).collect();
    if !bounds.is_empty() {
        beside.insert("created_at".to_owned(), bounds.into());
    }
    let parts: Vec<Filter> = [filter(filters)?, filter(Some(&beside))?].into_iter().flatten().collect();
    Ok((!parts.is_empty()).then_some(Filter::All(parts)))
}

async fn list_memories(
    State(app): State<App>,
    caller: Caller,
    axum::extract::Query(PageParams { page, page_size }): axum::extract::Query<PageParams>,
    JsonBody(request): JsonBody<ListRequest>,
) -> Result<Json<Value>, ApiError> {
    let ListRequest { filters, named, start_date, end_date } = request;
    let dates = [("gte", start_date.as_ref()), ("lte", end_date.as_ref())];
    let filter = whole_filter(filters.as_ref(), &named, dates)?;
    let user = user_of(&caller, [&named.user_id], filter.as_ref())?;
    let page = page.unwrap_or(1).max(1);
    let size = page_size.unwrap_or(PAGE).clamp(1, MAX_LIMIT);
    let filter = filter.unwrap_or_else(Filter::always);
    let query = MemoryQuery::new(MemorySelect::Current { as_of: None });
    let memories = app.engine().memories.filtered(&user, &query, &filter).await?;
    let count = memories.len();
    let start = (page as usize - 1).saturating_mul(size as usize);
    let results: Vec<Value> = memories
        .into_iter()
        .skip(start)
        .take(size as usize)
        .map(|memory| shown(&user, memory, None))
        .collect();
    let link = |page: u32| format!("/v3/memories/?page={page}&page_size={size}");
    let next = (start + results.len() < count).then(|| link(page + 1));
    let previous = (page > 1).then(|| link(page - 1));
    Ok(Json(json!({ "count": count, "next": next, "previous": previous, "results": results })))
}

#[derive(Debug, Deserialize)]
struct SearchRequest {
    query: String,
    filters: Option<Map<String, Value>>,
    #[serde(flatten)]
    named: Entities,
    top_k: Option<u32>,
    limit: Option<u32>,
    threshold: Option<f64>,
}

async fn search_memories(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<SearchRequest>,
) -> Result<Json<Value>, ApiError> {
    let SearchRequest { query, filters, named, top_k, limit, threshold } = request;
    let filter = whole_filter(filters.as_ref(), &named, [("gte", None), ("lte", None)])?;
    let user = user_of(&caller, [&named.user_id], filter.as_ref())?;
    let request = RecallRequest {
        // Memories of a user, as mem0 has them, are that user's.
        scope: Some(Scope::User),
        kinds: ItemKinds { turns: false, memories: true },
        filter,
        limit: Some(top_k.or(limit).unwrap_or(FOUND)),
        score_threshold: share("threshold", Some(threshold.unwrap_or(THRESHOLD)))?,
        ..RecallRequest::new(query)
    };
    let recalled = app.engine().recall.ask(&user, &request).await?;
    app.meters().searched(recalled.path.as_str());
    let results: Vec<Value> = recalled
        .items
        .into_iter()
        .filter_map(|found| match found.item {
            Item::Memory(memory) => Some(shown(&user, memory, Some(found.score))),
            Item::Turn(_) | Item::Summary(_) => None,
        })
        .collect();
    Ok(Json(json!({ "results": results })))
}

async fn get_memory(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
) -> Result<Json<Value>, ApiError> {
    let (user, id) = owner_of(&app, &caller, &id).await?;
    Ok(Json(shown(&user, present(&app, &user, id).await?, None)))
}

#[derive(Debug, Deserialize)]
struct UpdateRequest {
    text: Option<String>,
    metadata: Option<Metadata>,
}

async fn update_memory(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    JsonBody(request): JsonBody<UpdateRequest>,
) -> Result<Json<Value>, ApiError> {
    let (user, memory) = updated(&app, &caller, &id, request).await?;
    Ok(Json(shown(&user, memory, None)))
}

async fn updated(
    app: &App,
    caller: &Caller,
    id: &str,
    request: UpdateRequest,
) -> Result<(UserId, Memory), ApiError> {
    let (user, id) = owner_of(app, caller, id).await?;
    let before = present(app, &user, id).await?;
    if request.text.is_none() && request.metadata.is_none() {
        return Err(ApiError::invalid("there is nothing to change; give `text` or `metadata`"));
    }
    let edit = MemoryEdit { content: request.text.unwrap_or(before.content), metadata: request.metadata };
    let memory = app.engine().memories.revise(&user, id, edit).await?;
    Ok((user, memory))
}

async fn delete_memory(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
) -> Result<Json<Value>, ApiError> {
    deleted(&app, &caller, &id).await?;
    Ok(Json(json!({ "message": "Memory deleted successfully!" })))
}

async fn deleted(app: &App, caller: &Caller, id: &str) -> Result<(), ApiError> {
    let (user, id) = owner_of(app, caller, id).await?;
    present(app, &user, id).await?;
    Ok(app.engine().memories.delete(&user, id).await?)
}

async fn history(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
) -> Result<Json<Value>, ApiError> {
    let (user, id) = owner_of(&app, &caller, &id).await?;
    Ok(Json(json!(steps(&app, &user, id).await?)))
}

/// A change of one memory among several.
#[derive(Debug, Deserialize)]
struct OneOfMany {
    memory_id: String,
    text: Option<String>,
    metadata: Option<Metadata>,
}

#[derive(Debug, Deserialize)]
struct ManyRequest {
    memories: Vec<OneOfMany>,
}

async fn update_many(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<ManyRequest>,
) -> Result<Json<Value>, ApiError> {
    let count = request.memories.len();
    for OneOfMany { memory_id, text, metadata } in request.memories {
        updated(&app, &caller, &memory_id, UpdateRequest { text, metadata }).await?;
    }
    Ok(Json(json!({ "message": format!("Successfully updated {count} memories") })))
}

async fn delete_many(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<ManyRequest>,
) -> Result<Json<Value>, ApiError> {
    let count = request.memories.len();
    for OneOfMany { memory_id, .. } in request.memories {
        deleted(&app, &caller, &memory_id).await?;
    }
    Ok(Json(json!({ "message": format!("Successfully deleted {count} memories") })))
}

async fn delete_memories(
    State(app): State<App>,
    caller: Caller,
    Params(named): Params<Entities>,
) -> Result<Json<Value>, ApiError> {
    let Entities { user_id, agent_id, app_id, run_id } = &named;
    if [user_id, agent_id, app_id, run_id].into_iter().all(Option::is_none) {
        return Err(ApiError::invalid(
            "nothing is named; say whose memories to delete, as `?user_id=NAME`, or use `POST /reset` for all",
        ));
    }
    let user = caller.user([user_id])?;
    let filter = whole_filter(None, &named, [("gte", None), ("lte", None)])?;
    let deleted = delete_matching(&app, &user, &filter.unwrap_or_else(Filter::always)).await?;
    Ok(Json(json!({ "message": "Memories deleted successfully!", "deleted": deleted })))
}

/// Takes a user's memories that a filter lets pass out of recall.
async fn delete_matching(app: &App, user: &UserId, filter: &Filter) -> Result<usize, ApiError> {
    let query = MemoryQuery::new(MemorySelect::Current { as_of: None });
    let memories = app.engine().memories.filtered(user, &query, filter).await?;
    for memory in &memories {
        app.engine().memories.delete(user, memory.id).await?;
    }
    Ok(memories.len())
}

/// The users a caller may ask for: its own, or all where nothing binds it.
async fn users(app: &App, caller: &Caller) -> Result<Vec<UserId>, ApiError> {
    if !caller.names_nobody() {
        return Ok(vec![caller.user([])?]);
    }
    // A key that is bound to nobody serves one user at a time; all at once is for administrators.
    caller.require(KeyScope::Admin)?;
    let users = app.engine().store().users(Page::first(MAX_ENTITIES)).await?;
    Ok(users.into_iter().filter(|user| *user != UserId::global()).collect())
}

async fn list_entities(State(app): State<App>, caller: Caller) -> Result<Json<Value>, ApiError> {
    let mut results = Vec::new();
    for user in users(&app, &caller).await? {
        let query = MemoryQuery::new(MemorySelect::Current { as_of: None });
        let memories = app.engine().memories.list(&user, &query).await?;
        // Who has only asked, or has only talked, has no memories here.
        let Some(last) = memories.iter().map(|memory| memory.recorded_at).max() else { continue };
        results.push(json!({
            "id": user.as_str(),
            "name": user.as_str(),
            "type": "user",
            "total_memories": memories.len(),
            "updated_at": last,
        }));
    }
    Ok(Json(json!({ "count": results.len(), "next": null, "previous": null, "results": results })))
}

async fn delete_entity(
    State(app): State<App>,
    caller: Caller,
    axum::extract::Path((kind, name)): axum::extract::Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    if kind == "user" {
        let user = caller.user([&Some(name)])?;
        delete_matching(&app, &user, &Filter::always()).await?;
    } else {
        let field = match kind.as_str() {
            "agent" => "agent_id",
            "app" => "app_id",
            "run" => "run_id",
            _ => return Err(ApiError::invalid("this is no entity; use `user`, `agent`, `app` or `run`")),
        };
        let only = Map::from_iter([(field.to_owned(), Value::from(name))]);
        let filter = Filter::from_json(&only)?;
        for user in users(&app, &caller).await? {
            delete_matching(&app, &user, &filter).await?;
        }
    }
    Ok(Json(json!({ "message": "Entity deleted successfully." })))
}

/// Takes all memories out of recall that the caller may ask for.
async fn reset(State(app): State<App>, caller: Caller) -> Result<Json<Value>, ApiError> {
    for user in users(&app, &caller).await? {
        delete_matching(&app, &user, &Filter::always()).await?;
    }
    Ok(Json(json!({ "message": "All memories reset" })))
}

#[cfg(test)]
mod tests;
