//! `/memories/{id}…`: one memory: shown, revised, deleted, restored, and its history.
//!
//! A deleted memory looks absent here, except to its history, to restoring and to forgetting.

use axum::Json;
use axum::extract::State;
use axum::routing::{get, post};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strata_core::nul::MayHoldNul;
use strata_core::turn::{HiddenReason, Metadata};
use strata_core::{Error, Memory, MemoryId, UserId};
use strata_engine::MemoryEdit;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::memories::{DeletedResponse, MemoryResponse, OwnScope, Source, Sources, owner, owner_to_change};
use super::params::UserName;
use super::vocabulary::Kind;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{JsonBody, Params, PathName, switch};
use crate::identity::Caller;
use crate::router::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        ("/memories/{id}", get(get_memory).put(revise_memory).delete(delete_memory)),
        ("/memories/{id}/history", get(get_history)),
        ("/memories/{id}/restore", post(restore_memory)),
    ]
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OwnerParams {
    /// Whose memory; where nobody says, of whoever has it.
    #[param(value_type = Option<UserName>, inline, nullable = false)]
    user_id: Option<String>,
    /// `global` for what all users share, instead of the user's own.
    #[param(value_type = Option<OwnScope>, inline, nullable = false)]
    scope: Option<String>,
}

impl OwnerParams {
    /// Whose memory is to be shown, and its id.
    async fn to_read(&self, app: &App, caller: &Caller, id: &str) -> Result<(UserId, MemoryId), ApiError> {
        match (&self.user_id, &self.scope) {
            (None, None) => owner_of(app, caller, id).await,
            (user_id, scope) => Ok((owner(caller, user_id, scope)?, id.parse()?)),
        }
    }

    /// Whose memory is to be changed, and its id.
    async fn to_change(&self, app: &App, caller: &Caller, id: &str) -> Result<(UserId, MemoryId), ApiError> {
        match (&self.user_id, &self.scope) {
            (None, None) => owner_of(app, caller, id).await,
            (user_id, scope) => Ok((owner_to_change(caller, user_id, scope)?, id.parse()?)),
        }
    }
}

/// The owner and the id of a memory that is named by its id alone: the caller's user, and where nobody is named at all
/// whoever has it. mem0's clients name no user here, and a caller whom nothing binds could name any.
pub(crate) async fn owner_of(app: &App, caller: &Caller, id: &str) -> Result<(UserId, MemoryId), ApiError> {
    if !caller.names_nobody() {
        return Ok((caller.user([])?, id.parse()?));
    }
    let id = id.parse()?;
    match app.engine().memories.owner_of(id).await? {
        Some(user) => Ok((user, id)),
        None => Ok((caller.user([])?, id)),
    }
}

/// A memory that was not deleted.
pub(crate) async fn present(app: &App, user: &UserId, id: MemoryId) -> Result<Memory, ApiError> {
    let memory = app.engine().memories.get(user, id).await?;
    match memory.hidden {
        Some(hidden) if hidden.reason == HiddenReason::Deleted => {
            let message = format!("memory `{id}` was deleted; `POST /memories/{id}/restore` brings it back");
            Err(Error::not_found(message).into())
        }
        _ => Ok(memory),
    }
}

async fn shown(app: &App, user: &UserId, memory: Memory) -> Result<Json<MemoryResponse>, ApiError> {
    let sources = Sources::load(app, user, [&memory]).await?;
    Ok(Json(MemoryResponse::new(user, memory, &sources)))
}

/// Show a memory
#[utoipa::path(get, path = "/memories/{id}", tag = "memories",
    params(("id" = Uuid, Path, description = "the memory"), OwnerParams),
    responses((status = 200, description = "the memory", body = MemoryResponse),
        (status = 404, description = "the user has no such memory")))]
async fn get_memory(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<OwnerParams>,
) -> Result<Json<MemoryResponse>, ApiError> {
    let (user, id) = params.to_read(&app, &caller, &id).await?;
    let memory = present(&app, &user, id).await?;
    shown(&app, &user, memory).await
}

/// A new statement for a memory: give `text`, or `memory`, or `data`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviseRequest {
    /// The new statement.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$")]
    text: Option<String>,
    /// The same as `text`, which goes first.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$")]
    memory: Option<String>,
    /// The same as `text`, which goes first.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$")]
    data: Option<String>,
    /// Replaces what was attached; where it is absent, that stays.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Metadata>,
}

/// Revise a memory
///
/// It keeps its id; what it said until now stays in its history.
#[utoipa::path(put, path = "/memories/{id}", tag = "memories", request_body = ReviseRequest,
    params(("id" = Uuid, Path, description = "the memory"), OwnerParams),
    responses((status = 200, description = "the memory as it is now", body = MemoryResponse),
        (status = 404, description = "the user has no such memory"),
        (status = 409, description = "the memory was replaced or changed meanwhile")))]
async fn revise_memory(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<OwnerParams>,
    JsonBody(request): JsonBody<ReviseRequest>,
) -> Result<Json<MemoryResponse>, ApiError> {
    let (user, id) = params.to_change(&app, &caller, &id).await?;
    let given = [&request.text, &request.memory, &request.data];
    if given.into_iter().flatten().any(|text| text.trim().is_empty() || text.holds_nul()) {
        return Err(ApiError::invalid(
            "the new statement is empty or holds a NUL character; say what to remember",
        ));
    }
    let Some(content) = request.text.or(request.memory).or(request.data) else {
        return Err(ApiError::invalid("the new statement is missing; give it in `text`"));
    };
    present(&app, &user, id).await?;
    let edit = MemoryEdit { content, metadata: request.metadata };
    let memory = app.engine().memories.revise(&user, id, edit).await?;
    shown(&app, &user, memory).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DeleteParams {
    /// Whose memory; where nobody says, of whoever has it.
    #[param(value_type = Option<UserName>, inline, nullable = false)]
    user_id: Option<String>,
    /// `global` for what all users share, instead of the user's own.
    #[param(value_type = Option<OwnScope>, inline, nullable = false)]
    scope: Option<String>,
    /// `true` destroys it and its former statements for good.
    #[param(value_type = Option<bool>, default = false, nullable = false)]
    forget: Option<String>,
}

/// Delete a memory
///
/// It leaves recall and lists and can be restored; `forget=true` destroys it and its former statements.
#[utoipa::path(delete, path = "/memories/{id}", tag = "memories",
    params(("id" = Uuid, Path, description = "the memory"), DeleteParams),
    responses((status = 200, description = "deleted, or destroyed", body = DeletedResponse),
        (status = 404, description = "the user has no such memory")))]
async fn delete_memory(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<DeleteParams>,
) -> Result<Json<DeletedResponse>, ApiError> {
    let owner = OwnerParams { user_id: params.user_id, scope: params.scope };
    let (user, id) = owner.to_change(&app, &caller, &id).await?;
    if switch("forget", &params.forget)? {
        let removed = app.engine().memories.forget(&user, id).await?;
        let message = "Memory destroyed";
        return Ok(Json(DeletedResponse { message, deleted: 0, removed: Some(removed.into()) }));
    }
    present(&app, &user, id).await?;
    app.engine().memories.delete(&user, id).await?;
    Ok(Json(DeletedResponse { message: "Memory deleted successfully", deleted: 1, removed: None }))
}

/// Restore a deleted memory
#[utoipa::path(post, path = "/memories/{id}/restore", tag = "memories",
    params(("id" = Uuid, Path, description = "the memory"), OwnerParams),
    responses((status = 200, description = "the memory, back in recall", body = MemoryResponse),
        (status = 404, description = "the user has no such memory")))]
async fn restore_memory(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<OwnerParams>,
) -> Result<Json<MemoryResponse>, ApiError> {
    let (user, id) = params.to_change(&app, &caller, &id).await?;
    let memory = app.engine().memories.restore(&user, id).await?;
    shown(&app, &user, memory).await
}

/// One step in a memory's life.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HistoryEntry {
    /// The id of the statement; former ones have their own.
    id: Uuid,
    /// The memory that was asked for.
    memory_id: Uuid,
    /// What was believed before.
    old_memory: Option<String>,
    /// What is believed since.
    new_memory: Option<String>,
    /// What happened.
    event: Event,
    /// When it happened.
    created_at: Timestamp,
    /// Whether the statement is deleted.
    is_deleted: bool,
    /// What kind of statement it is.
    kind: Kind,
    /// Since when it is so.
    valid_from: Timestamp,
    /// Until when it was so.
    valid_to: Option<Timestamp>,
    /// What took its place.
    replaced_by: Option<Uuid>,
    /// Where it comes from.
    source: Source,
    /// The statement's life in a sentence: what was believed, since when, what took its place, and which turn said so.
    explanation: String,
}

/// What happened to a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Event {
    /// It was learned.
    Add,
    /// Another statement took its place.
    Update,
    /// It was deleted.
    Delete,
}

/// Read a memory's history
///
/// All that it replaced, itself, and all that replaced it, the oldest first.
#[utoipa::path(get, path = "/memories/{id}/history", tag = "memories",
    params(("id" = Uuid, Path, description = "the memory"), OwnerParams),
    responses((status = 200, description = "the steps, the oldest first", body = [HistoryEntry]),
        (status = 404, description = "the user has no such memory")))]
async fn get_history(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<OwnerParams>,
) -> Result<Json<Vec<HistoryEntry>>, ApiError> {
    let (user, id) = params.to_read(&app, &caller, &id).await?;
    Ok(Json(steps(&app, &user, id).await?))
}

/// The steps of a memory's life, the oldest first.
pub(crate) async fn steps(app: &App, user: &UserId, id: MemoryId) -> Result<Vec<HistoryEntry>, ApiError> {
    let history = app.engine().memories.explain(user, id).await?;
    let sources = Sources::load(app, user, history.iter().map(|step| &step.memory)).await?;
    let mut steps = Vec::with_capacity(history.len() + 1);
    let mut before: Option<&Memory> = None;
    for explained in &history {
        let memory = &explained.memory;
        // What was taken back and left nothing in its place came to its end as by deleting it.
        let deleted = memory.hidden.filter(|hidden| match hidden.reason {
            HiddenReason::Abandoned => memory.replaced_by.is_none(),
            reason => reason == HiddenReason::Deleted,
        });
        let step = |event, old: Option<&Memory>, new: Option<&Memory>, created_at| HistoryEntry {
            id: memory.id.0,
            memory_id: id.0,
            old_memory: old.map(|memory| memory.content.clone()),
            new_memory: new.map(|memory| memory.content.clone()),
            event,
            created_at,
            is_deleted: deleted.is_some(),
            kind: memory.kind.into(),
            valid_from: memory.valid_from,
            valid_to: memory.valid_to,
            replaced_by: memory.replaced_by.map(|id| id.0),
            source: sources.of(memory),
            explanation: explained.to_string(),
        };
        let event = if before.is_some() { Event::Update } else { Event::Add };
        steps.push(step(event, before, Some(memory), memory.recorded_at));
        if let Some(hidden) = deleted {
            steps.push(step(Event::Delete, Some(memory), None, hidden.at));
        }
        before = Some(memory);
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use axum::http::Method;
    use serde_json::json;

    use crate::testing::TestServer;

    /// A server with one memory of `ada`, and the path of it.
    async fn with_memory() -> (TestServer, String) {
        let server = TestServer::new();
        let added = server
            .post("/memories", json!({"text": "likes tea", "user_id": "ada", "metadata": {"a": 1}}))
            .await;
        let id = added.json()["results"][0]["id"].as_str().unwrap().to_owned();
        (server, format!("/memories/{id}"))
    }

    #[tokio::test]
    async fn a_revision_keeps_the_id_and_the_history() {
        let (server, path) = with_memory().await;
        insta::assert_snapshot!("shown", server.get(&format!("{path}?user_id=ada")).await.shown());
        let own = format!("{path}?user_id=ada");
        let revised = server.write(Method::PUT, &own, json!({"text": "likes coffee"})).await;
        insta::assert_snapshot!("revised", revised.shown());
        let again = json!({"data": "likes water", "metadata": {"b": 2}});
        assert_eq!(server.write(Method::PUT, &own, again).await.json()["metadata"], json!({"b": 2}));
        server.delete(&own).await;
        insta::assert_snapshot!("history", server.get(&format!("{path}/history?user_id=ada")).await.shown());
    }

    #[tokio::test]
    async fn an_edit_by_hand_names_no_turn_and_keeps_when_it_was_made() {
        let server = TestServer::new();
        let said = json!({"messages": [{"role": "user", "content": "I live in Ghent."}], "user_id": "ada"});
        let added = server.post("/memories", said).await.json();
        let id = added["results"][0]["id"].as_str().unwrap().to_owned();
        let own = format!("/memories/{id}?user_id=ada");
        let before = server.get(&own).await.json();
        assert_eq!(before["source"]["turns"].as_array().unwrap().len(), 1, "{before}");
        server.write(Method::PUT, &own, json!({"text": "Lives in Namur"})).await;
        let edited = server.write(Method::PUT, &own, json!({"text": "Lives in Liège"})).await.json();
        assert_eq!(edited["created_at"], before["created_at"]);
        assert!(edited["updated_at"].as_str() > before["updated_at"].as_str(), "{edited}");
        assert_eq!((&edited["source"]["turns"], &edited["metadata"]), (&json!([]), &before["metadata"]));
        let history = server.get(&format!("/memories/{id}/history?user_id=ada")).await.json();
        let told = |step: usize| history[step]["explanation"].as_str().unwrap().to_owned();
        assert!(
            told(0).contains("“I live in Ghent.”")
                && told(0).contains("«Lives in Namur» took its place (edited by hand)"),
            "{history}"
        );
        assert!(!told(1).contains("Ghent") && told(2).contains("(edited by hand)"), "{history}");
        // A date is taken with all of its day.
        let on = |day: &str| format!("/memories?user_id=ada&as_of={day}");
        assert_eq!(server.get(&on("2026-03-01")).await.json()["results"].as_array().unwrap().len(), 1);
        assert_eq!(server.get(&on("2026-02-28")).await.json()["results"], json!([]));
    }

    #[tokio::test]
    async fn a_deleted_memory_can_be_restored_until_it_is_forgotten() {
        let (server, path) = with_memory().await;
        let own = format!("{path}?user_id=ada");
        insta::assert_snapshot!("deleted", server.delete(&own).await.shown());
        let gone = server.get(&own).await;
        assert_eq!(gone.status, 404);
        assert!(gone.body.contains("/restore"), "{}", gone.body);
        assert_eq!(server.delete(&own).await.status, 404);
        assert_eq!(server.write(Method::PUT, &own, json!({"text": "x"})).await.status, 404);
        assert_eq!(server.get("/memories?user_id=ada").await.json(), json!({"results": []}));

        let restored = server.post(&format!("{path}/restore?user_id=ada"), json!({})).await;
        assert_eq!(restored.status, 200, "{}", restored.body);
        assert_eq!(server.get(&own).await.json()["memory"], "likes tea");

        insta::assert_snapshot!("forgotten", server.delete(&format!("{own}&forget=true")).await.shown());
        assert_eq!(server.post(&format!("{path}/restore?user_id=ada"), json!({})).await.status, 404);
        assert_eq!(server.get(&format!("{path}/history?user_id=ada")).await.status, 404);
    }

    #[tokio::test]
    async fn another_user_sees_and_changes_nothing() {
        let (server, path) = with_memory().await;
        let before = server.heads().await;
        let foreign = format!("{path}?user_id=eve");
        insta::assert_snapshot!("foreign", server.get(&foreign).await.shown());
        for uri in [foreign.clone(), format!("{foreign}&scope=global"), format!("{path}?scope=user")] {
            assert_eq!(server.get(&uri).await.status, 404, "{uri}");
            assert_eq!(server.delete(&uri).await.status, 404, "{uri}");
            assert_eq!(server.write(Method::PUT, &uri, json!({"text": "x"})).await.status, 404, "{uri}");
        }
        assert_eq!(server.delete(&format!("{foreign}&forget=true")).await.status, 404);
        assert_eq!(server.get(&format!("{path}/history?user_id=eve")).await.status, 404);
        assert_eq!(server.post(&format!("{path}/restore?user_id=eve"), json!({})).await.status, 404);
        assert_eq!(server.heads().await, before);
    }

    #[tokio::test]
    async fn who_names_nobody_may_ask_for_whoever_has_it() {
        let (server, path) = with_memory().await;
        assert_eq!(server.get(&path).await.json()["user_id"], "ada");
        let revised = server.write(Method::PUT, &path, json!({"text": "likes coffee"})).await;
        assert_eq!((revised.status.as_u16(), &revised.json()["user_id"]), (200, &json!("ada")));
        assert_eq!(server.get(&format!("{path}/history")).await.json().as_array().unwrap().len(), 2);
        assert_eq!(server.delete(&path).await.status, 200);
        let gone = server.get(&path).await;
        assert_eq!(gone.status, 404);
        assert_eq!(gone.json()["detail"], gone.json()["error"]["message"], "where mem0's clients look");
        assert_eq!(server.post(&format!("{path}/restore"), json!({})).await.status, 200);
    }
}
