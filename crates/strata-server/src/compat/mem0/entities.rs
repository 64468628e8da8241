//! Entities, in mem0's sense: the users, agents and sessions that have memories.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use serde_json::{Map, Value, json};
use strata_core::UserId;
use strata_core::key::KeyScope;
use strata_core::store::{MemoryQuery, MemorySelect, Page};
use strata_engine::Filter;

use super::delete_matching;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::PathName;
use crate::identity::Caller;

/// The most users that are listed.
const MAX_ENTITIES: u32 = 1_000;

/// The users that a caller may ask for: its own user, or all users if the caller is not bound to one.
async fn users(app: &App, caller: &Caller) -> Result<Vec<UserId>, ApiError> {
    if !caller.is_unnamed() {
        return Ok(vec![caller.user([])?]);
    }
    // A key that is not bound to a user serves one user at a time; only administrators may list all users.
    caller.require(KeyScope::Admin)?;
    let users = app.engine().store().users(Page::first(MAX_ENTITIES)).await?;
    Ok(users.into_iter().filter(|user| *user != UserId::global()).collect())
}

pub(super) async fn list_entities(State(app): State<App>, caller: Caller) -> Result<Json<Value>, ApiError> {
    let mut results = Vec::new();
    for user in users(&app, &caller).await? {
        let query = MemoryQuery::new(MemorySelect::Current { as_of: None });
        let memories = app.engine().memories.list(&user, &query).await?;
        // A user who has only searched or recorded turns has no memories, and is not listed.
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

pub(super) async fn delete_entity(
    State(app): State<App>,
    caller: Caller,
    PathName((kind, name)): PathName<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    if kind == "user" {
        let user = caller.user_to_forget(&name)?;
        app.forget_user(&user).await?;
    } else {
        let field = match kind.as_str() {
            "agent" => "agent_id",
            "app" => "app_id",
            "run" => "run_id",
            _ => return Err(ApiError::invalid("this is not an entity; use `user`, `agent`, `app` or `run`")),
        };
        let only = Map::from_iter([(field.to_owned(), Value::from(name))]);
        let filter = Filter::from_json(&only)?;
        for user in users(&app, &caller).await? {
            delete_matching(&app, &user, &filter).await?;
        }
    }
    Ok(Json(json!({ "message": "Entity deleted successfully." })))
}

/// Removes all memories from recall that the caller may ask for. A body could name a user, and would be ignored.
pub(super) async fn reset(
    State(app): State<App>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<Value>, ApiError> {
    if !matches!(body.trim_ascii(), b"" | b"{}") {
        return Err(ApiError::invalid(
            "`/reset` takes no body and was not done; `DELETE /memories?user_id=NAME` removes the memories of one user",
        ));
    }
    for user in users(&app, &caller).await? {
        delete_matching(&app, &user, &Filter::always()).await?;
    }
    Ok(Json(json!({ "message": "All memories reset" })))
}
