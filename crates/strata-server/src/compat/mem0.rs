//! mem0's wire format: the paths and shapes of its hosted service, which its own client (`mem0ai`'s
//! `MemoryClient(host=…)`) calls.
//!
//! Unknown fields are ignored here, as that service does; all other routes refuse them. The paths are exactly those
//! of the client, so every other path under `/v1` belongs to the proxy. They are not in the OpenAPI document, which
//! describes Strata's own routes. Memories are stored unchanged. If a request names a memory only by its id, the
//! memory's owner is looked up; the caller needs access to that owner.

mod add;
mod entities;
mod lenient;
mod shown;

use axum::Json;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::routing::{any, delete, get, post, put};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use strata_core::key::KeyScope;
use strata_core::scope::{RecallScope, Scope};
use strata_core::store::{Item, ItemKinds, MemoryQuery, MemorySelect};
use strata_core::turn::Metadata;
use strata_core::{Memory, UserId};
use strata_engine::Filter;
use strata_engine::MemoryEdit;
use strata_engine::recall::{MAX_LIMIT, RecallRequest};

use crate::app::App;
use crate::error::ApiError;
use crate::extract::numbers::share;
use crate::extract::{JsonBody, Params, PathName};
use crate::identity::Caller;
use crate::identity::memories::{filter, names_user, owner_of, present, user_of};
use crate::route::{Dialect, Route};
use crate::wire::history::HistoryEntry;
use crate::wire::memory::Sources;
use crate::wire::search::sources_of;
pub(crate) use lenient::LenientBody;
use shown::{FoundMemories, MemoryPage, ShownMemory};

/// The default threshold of relevance, the same as mem0's.
const THRESHOLD: f64 = 0.1;

/// The default number of results of a search, and of entries on a page, the same as mem0's.
const FOUND: u32 = 10;
const PAGE: u32 = 100;

pub(crate) fn routes() -> Vec<Route> {
    // A list and a search have a body, but write nothing.
    let read = |path, handlers| Route::undocumented(path, handlers).needs(&[KeyScope::Read]);
    let absent = ABSENT.iter().map(|path| Route::undocumented(*path, any(refuse)));
    let present = [
        Route::undocumented("/v1/ping/", get(ping)),
        Route::undocumented("/v3/memories/add/", post(add::add_memories)),
        read("/v3/memories/", post(list_memories)),
        read("/v2/memories/", post(list_memories)),
        read("/v3/memories/search/", post(search_memories)),
        read("/v2/memories/search/", post(search_memories)),
        Route::undocumented("/v1/memories/", post(add::add_memories).delete(delete_memories)),
        Route::undocumented("/v1/memories/{id}/", get(get_memory).put(update_memory).delete(delete_memory)),
        Route::undocumented("/v1/memories/{id}/history/", get(history)),
        Route::undocumented("/v1/batch/", put(update_many).delete(delete_many)),
        Route::undocumented("/v1/entities/", get(entities::list_entities)),
        Route::undocumented("/v2/entities/{type}/{name}/", delete(entities::delete_entity)),
        Route::undocumented("/reset", post(entities::reset)),
    ];
    present.into_iter().chain(absent).map(|route| route.speaks(Dialect::Mem0)).collect()
}

/// Paths of mem0's service that Strata does not have. They are refused here, because the proxy would pass them, with
/// what they say about users, to the server of the model.
const ABSENT: [&str; 27] = [
    // The same paths without the last slash.
    "/v1/memories",
    "/v1/memories/{id}",
    "/v1/memories/{id}/{*path}",
    "/v1/batch",
    "/v1/entities",
    "/v1/ping",
    "/v1/event",
    "/v1/event/{*path}",
    "/v1/events",
    "/v1/events/",
    "/v1/events/{*path}",
    "/v1/feedback",
    "/v1/feedback/",
    "/v1/feedback/{*path}",
    "/v1/exports",
    "/v1/exports/",
    "/v1/exports/{*path}",
    "/v1/summary",
    "/v1/summary/",
    "/v1/summary/{*path}",
    "/v1/webhooks",
    "/v1/webhooks/",
    "/v1/webhooks/{*path}",
    "/v1/entities/{*path}",
    "/v1/batch/{*path}",
    "/v1/ping/{*path}",
    "/api/v1/{*path}",
];

async fn refuse(method: Method, uri: Uri) -> ApiError {
    let message = format!(
        "Strata has no {method} `{}` of mem0's service; docs/mem0.md lists what it has, and nothing was passed on",
        uri.path()
    );
    ApiError::new(StatusCode::NOT_IMPLEMENTED, "not_supported", message)
}

/// The client calls this route when it is created. It expects an answer with names for things that Strata does not
/// have.
async fn ping(_caller: Caller) -> Json<Value> {
    Json(json!({ "status": "ok", "org_id": "strata", "project_id": "strata", "user_email": null }))
}

/// The owner of a memory, as the client names it: at the top level or inside `filters`.
#[derive(Debug, Default, Deserialize)]
struct Entities {
    user_id: Option<String>,
    agent_id: Option<String>,
    app_id: Option<String>,
    run_id: Option<String>,
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

/// The filter of a request: its `filters`, and the owner named beside them.
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
    Params(PageParams { page, page_size }): Params<PageParams>,
    JsonBody(request): JsonBody<ListRequest>,
) -> Result<Json<MemoryPage>, ApiError> {
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
    let page_of: Vec<Memory> = memories.into_iter().skip(start).take(size as usize).collect();
    let sources = Sources::load(app.engine(), &user, &page_of).await?;
    let results: Vec<ShownMemory> =
        page_of.into_iter().map(|memory| ShownMemory::new(&user, memory, &sources)).collect();
    let link = |page: u32| format!("/v3/memories/?page={page}&page_size={size}");
    let next = (start + results.len() < count).then(|| link(page + 1));
    let previous = (page > 1).then(|| link(page - 1));
    Ok(Json(MemoryPage { count, next, previous, results }))
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
) -> Result<Json<FoundMemories>, ApiError> {
    let SearchRequest { query, filters, named, top_k, limit, threshold } = request;
    let filter = whole_filter(filters.as_ref(), &named, [("gte", None), ("lte", None)])?;
    let user = user_of(&caller, [&named.user_id], filter.as_ref())?;
    let session = caller.session([&named.run_id])?;
    let names_user = names_user(&caller, [&named.user_id], filter.as_ref());
    let within = caller.recall_scope(names_user, session.as_ref(), None);
    let is_wall = within == Some(RecallScope::Session);
    let request = RecallRequest {
        session: is_wall.then(|| session.unwrap_or_default()),
        within,
        // In mem0, the memories of a user belong to that user alone.
        scope: Some(Scope::User),
        kinds: ItemKinds::MEMORIES,
        filter,
        limit: Some(top_k.or(limit).unwrap_or(FOUND)),
        score_threshold: share("threshold", Some(threshold.unwrap_or(THRESHOLD)))?,
        ..RecallRequest::new(query)
    };
    let recalled = app.engine().recall.ask(&user, &request).await?;
    app.meters().searched(recalled.path.as_str());
    let sources = sources_of(app.engine(), &user, &recalled).await?;
    let results = recalled
        .items
        .into_iter()
        .filter_map(|found| match found.item {
            Item::Memory(mut memory) => {
                memory.content = found.shortened.unwrap_or(memory.content);
                Some(ShownMemory::new(&user, memory, &sources).scored(found.score))
            }
            Item::Turn(_) | Item::Summary(_) => None,
        })
        .collect();
    Ok(Json(FoundMemories { results }))
}

async fn get_memory(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
) -> Result<Json<ShownMemory>, ApiError> {
    let (user, id) = owner_of(&app, &caller, &id).await?;
    let memory = present(&app, &user, id).await?;
    let sources = Sources::load(app.engine(), &user, [&memory]).await?;
    Ok(Json(ShownMemory::new(&user, memory, &sources)))
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
) -> Result<Json<ShownMemory>, ApiError> {
    let (user, memory) = updated(&app, &caller, &id, request).await?;
    let sources = Sources::load(app.engine(), &user, [&memory]).await?;
    Ok(Json(ShownMemory::new(&user, memory, &sources)))
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
    Ok(Json(json!(HistoryEntry::load(app.engine(), &user, id).await?)))
}

/// The change of one memory in a batch.
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

/// Removes a user's memories that match a filter from recall.
async fn delete_matching(app: &App, user: &UserId, filter: &Filter) -> Result<usize, ApiError> {
    let query = MemoryQuery::new(MemorySelect::Current { as_of: None });
    let memories = app.engine().memories.filtered(user, &query, filter).await?;
    for memory in &memories {
        app.engine().memories.delete(user, memory.id).await?;
    }
    Ok(memories.len())
}

#[cfg(test)]
mod tests;
