//! `/memories/{id}…`: reading, revising, deleting and restoring one memory, and its history.
//!
//! A deleted memory counts as absent here, except for its history, for restoring and for forgetting.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use strata_core::nul::MayHoldNul;
use strata_core::turn::Metadata;
use strata_core::{MemoryId, UserId};
use strata_engine::MemoryEdit;
use utoipa::ToSchema;

use super::memories::OwnScope;
use super::params::{IdPath, UserName, query};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::numbers::switch;
use crate::extract::{JsonBody, Params, PathName};
use crate::identity::Caller;
use crate::identity::memories::{Intent, owner, owner_of, present};
use crate::route::{Dialect, Route};
use crate::wire::MemoryResponse;
use crate::wire::history::HistoryEntry;
use crate::wire::memory::DeletedResponse;

pub(crate) fn routes() -> Vec<Route> {
    let memory = Route::new(__path_get_memory, get_memory)
        .on(__path_revise_memory, revise_memory)
        .on(__path_delete_memory, delete_memory);
    let history = Route::new(__path_get_history, get_history);
    let restore = Route::new(__path_restore_memory, restore_memory);
    [memory, history, restore].map(|route| route.speaks(Dialect::Mem0)).into()
}

query!(OwnerParams {
    user_id: UserName = "The owner of the memory. Defaults to the user of the key or the header, else to the owner of the memory.";
    scope: OwnScope = "`global` for the memories that all users share, instead of the user's own.";
});

impl OwnerParams {
    /// The owner of a memory, and its id.
    async fn owner(
        &self,
        app: &App,
        caller: &Caller,
        intent: Intent,
        id: &str,
    ) -> Result<(UserId, MemoryId), ApiError> {
        match (&self.user_id, &self.scope) {
            (None, None) => owner_of(app, caller, id).await,
            (user_id, scope) => Ok((owner(caller, intent, user_id, scope)?, id.parse()?)),
        }
    }
}

/// Show a memory
#[utoipa::path(get, path = "/memories/{id}", tag = "memories",
    params(IdPath, OwnerParams),
    responses((status = 200, description = "the memory", body = MemoryResponse),
        (status = 404, description = "the user has no such memory")))]
async fn get_memory(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<OwnerParams>,
) -> Result<Json<MemoryResponse>, ApiError> {
    let (user, id) = params.owner(&app, &caller, Intent::Read, &id).await?;
    let memory = present(&app, &user, id).await?;
    Ok(Json(MemoryResponse::load(app.engine(), &user, &memory).await?))
}

/// A new statement for a memory: give `text`, or `memory`, or `data`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviseRequest {
    /// The new statement.
    #[schema(pattern = r"^[^\x00]*[^\s\x00\x85][^\x00]*$")]
    text: Option<String>,
    /// The same as `text`, which takes precedence.
    #[schema(pattern = r"^[^\x00]*[^\s\x00\x85][^\x00]*$")]
    memory: Option<String>,
    /// The same as `text`, which takes precedence.
    #[schema(pattern = r"^[^\x00]*[^\s\x00\x85][^\x00]*$")]
    data: Option<String>,
    /// Replaces the metadata. If this field is absent, the metadata stays.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Metadata>,
}

/// Revise a memory
///
/// The memory keeps its id. Its former statement stays in its history.
#[utoipa::path(put, path = "/memories/{id}", tag = "memories", request_body = ReviseRequest,
    params(IdPath, OwnerParams),
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
    let (user, id) = params.owner(&app, &caller, Intent::Change, &id).await?;
    let given = [&request.text, &request.memory, &request.data];
    if given.into_iter().flatten().any(|text| text.trim().is_empty() || text.holds_nul()) {
        return Err(ApiError::invalid(
            "the new statement is empty or contains a NUL character; say what to remember",
        ));
    }
    let Some(content) = request.text.or(request.memory).or(request.data) else {
        return Err(ApiError::invalid("the new statement is missing; give it in `text`"));
    };
    present(&app, &user, id).await?;
    let edit = MemoryEdit { content, metadata: request.metadata };
    let memory = app.engine().memories.revise(&user, id, edit).await?;
    Ok(Json(MemoryResponse::load(app.engine(), &user, &memory).await?))
}

query!(DeleteParams {
    user_id: UserName = "The owner of the memory. Defaults to the user of the key or the header, else to the owner of the memory.";
    scope: OwnScope = "`global` for the memories that all users share, instead of the user's own.";
    forget: bool = "`true` destroys the memory and its former statements for good.", default = false;
});

/// Delete a memory
///
/// The memory is removed from recall and lists, and can be restored. `forget=true` destroys it and its former
/// statements.
#[utoipa::path(delete, path = "/memories/{id}", tag = "memories",
    params(IdPath, DeleteParams),
    responses((status = 200, description = "deleted, or destroyed", body = DeletedResponse),
        (status = 404, description = "the user has no such memory")))]
async fn delete_memory(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<DeleteParams>,
) -> Result<Json<DeletedResponse>, ApiError> {
    let owner = OwnerParams { user_id: params.user_id, scope: params.scope };
    let (user, id) = owner.owner(&app, &caller, Intent::Change, &id).await?;
    if switch("forget", &params.forget)? {
        let removed = app.engine().memories.forget(&user, id).await?;
        return Ok(Json(DeletedResponse::destroyed("Memory destroyed", &removed)));
    }
    present(&app, &user, id).await?;
    app.engine().memories.delete(&user, id).await?;
    Ok(Json(DeletedResponse::deleted("Memory deleted successfully", 1)))
}

/// Restore a deleted memory
#[utoipa::path(post, path = "/memories/{id}/restore", tag = "memories",
    params(IdPath, OwnerParams),
    responses((status = 200, description = "the memory, back in recall", body = MemoryResponse),
        (status = 404, description = "the user has no such memory")))]
async fn restore_memory(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<OwnerParams>,
) -> Result<Json<MemoryResponse>, ApiError> {
    let (user, id) = params.owner(&app, &caller, Intent::Change, &id).await?;
    let memory = app.engine().memories.restore(&user, id).await?;
    Ok(Json(MemoryResponse::load(app.engine(), &user, &memory).await?))
}

/// Read a memory's history
///
/// Every statement that this memory replaced, its own statement, and every statement that replaced it, the oldest
/// first.
#[utoipa::path(get, path = "/memories/{id}/history", tag = "memories",
    params(IdPath, OwnerParams),
    responses((status = 200, description = "the steps, the oldest first", body = [HistoryEntry]),
        (status = 404, description = "the user has no such memory")))]
async fn get_history(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<OwnerParams>,
) -> Result<Json<Vec<HistoryEntry>>, ApiError> {
    let (user, id) = params.owner(&app, &caller, Intent::Read, &id).await?;
    Ok(Json(HistoryEntry::load(app.engine(), &user, id).await?))
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
    async fn an_unbound_caller_without_a_user_reads_any_memory_by_id() {
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
