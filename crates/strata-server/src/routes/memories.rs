//! `/memories`: adding, listing and deleting memories, as in mem0's self-hosted server.
//!
//! Adding is in [`add`], one memory by its id in [`super::memory`].

pub(crate) mod add;

use axum::Json;
use axum::extract::State;
use strata_core::store::{MemoryQuery, MemorySelect, Removed};
use strata_core::{ErrorKind, SessionId, UserId};
use utoipa::ToSchema;

use super::params::{Limit, Name, Offset, UserName, query};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Params;
use crate::extract::numbers::{page, switch};
use crate::identity::Caller;
use crate::identity::memories::{Intent, checked_agent, filter, owner, user_of};
use crate::moment::Moment;
use crate::route::{Dialect, Route};
use crate::wire::MemoriesResponse;
use crate::wire::memory::DeletedResponse;
use crate::wire::names::Kind;

pub(crate) fn routes() -> Vec<Route> {
    let memories = Route::new(add::__path_add_memories, add::add_memories)
        .on(__path_list_memories, list_memories)
        .on(__path_delete_memories, delete_memories);
    vec![memories.speaks(Dialect::Mem0)]
}

// OpenAPI cannot describe a JSON object in a query, so `filters` is undocumented.
query!(ListParams {
    user_id: UserName = "The owner of the memories. Defaults to the user `default`.";
    run_id: Name = "Only memories that are bound to this session.";
    agent_id: Name = "Only memories of this agent.";
    kind: Kind = "Only memories of this kind.";
    scope: OwnScope = "`global` for the memories that all users share, instead of the user's own.";
    as_of: Moment = "The memories that were believed then, instead of now.";
    limit: Limit = "The most entries to list.";
    offset: Offset = "How many entries to leave out at the start.";
    (undocumented) filters;
});

/// The owner of the memories in a query; for the OpenAPI document.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code, reason = "only its schema is used")]
pub(crate) enum OwnScope {
    User,
    Global,
}

/// List memories
///
/// `filters`, a JSON object as in `POST /search`, narrows the list.
#[utoipa::path(get, path = "/memories", tag = "memories", params(ListParams),
    responses((status = 200, description = "the current memories, the newest first", body = MemoriesResponse)))]
async fn list_memories(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<MemoriesResponse>, ApiError> {
    let filters = params.filters.as_deref().map(serde_json::from_str).transpose();
    let filters =
        filters.map_err(|error| ApiError::invalid(format!("`filters` is not a JSON object: {error}")))?;
    let filter = filter(filters.as_ref())?;
    let user = match &params.scope {
        None => user_of(&caller, [&params.user_id], filter.as_ref())?,
        scope => owner(&caller, Intent::Read, &params.user_id, scope)?,
    };
    let as_of = Moment::parameter("as_of", params.as_of.as_deref())?;
    let query = MemoryQuery {
        select: MemorySelect::Current { as_of: as_of.map(Moment::as_of) },
        session: params.run_id.map(SessionId::new).transpose()?,
        agent: params.agent_id.map(checked_agent).transpose()?,
        kind: params.kind.as_deref().map(str::parse).transpose()?,
        keep: None,
        page: page(&params.limit, &params.offset)?,
    };
    let memories = match filter {
        Some(filter) => app.engine().memories.filtered(&user, &query, &filter).await?,
        None => app.engine().memories.list(&user, &query).await?,
    };
    Ok(Json(MemoriesResponse::load(app.engine(), &user, &memories).await?))
}

query!(DeleteParams {
    user_id: UserName = "The owner of the memories. The query must name the user, even if a header does.", required = true;
    run_id: Name = "Only memories that are bound to this session.";
    agent_id: Name = "Only memories of this agent.";
    forget: bool = "`true` destroys them for good; with `user_id` alone, also former and deleted ones.", default = false;
});

/// Delete a user's memories
///
/// The memories are removed from recall and lists, and can be restored one by one. `forget=true` destroys them.
#[utoipa::path(delete, path = "/memories", tag = "memories", params(DeleteParams),
    responses((status = 200, description = "deleted, or destroyed", body = DeletedResponse)))]
async fn delete_memories(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<DeleteParams>,
) -> Result<Json<DeletedResponse>, ApiError> {
    let user = caller.named_user(&params.user_id)?;
    let forget = switch("forget", &params.forget)?;
    let query = MemoryQuery {
        session: params.run_id.map(SessionId::new).transpose()?,
        agent: params.agent_id.map(checked_agent).transpose()?,
        ..MemoryQuery::new(if forget { MemorySelect::All } else { MemorySelect::Current { as_of: None } })
    };
    if forget {
        let removed = match (&query.session, &query.agent) {
            (None, None) => app.engine().memories.forget_all(&user).await?,
            _ => forget_selected(&app, &user, &query).await?,
        };
        return Ok(Json(DeletedResponse::destroyed("All relevant memories destroyed", &removed)));
    }
    let deleted = app.engine().memories.delete_all(&user, &query).await?;
    Ok(Json(DeletedResponse::deleted("All relevant memories deleted", deleted)))
}

/// Destroys some of a user's memories, one after the other. If it fails on the way, the same call can be repeated to
/// finish.
async fn forget_selected(app: &App, user: &UserId, query: &MemoryQuery) -> Result<Removed, ApiError> {
    let mut removed = Removed::default();
    for memory in app.engine().memories.list(user, query).await? {
        match app.engine().memories.forget(user, memory.id).await {
            Ok(gone) => removed.memories += gone.memories,
            // The memory was destroyed together with the one that replaced it.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use axum::http::Method;
    use serde_json::{Value, json};

    use crate::testing::TestServer;

    fn statements(list: &Value) -> Vec<&str> {
        list["results"].as_array().unwrap().iter().map(|memory| memory["memory"].as_str().unwrap()).collect()
    }

    #[tokio::test]
    async fn messages_of_the_user_are_stored_unchanged() {
        let server = TestServer::new();
        let body = json!({
            "user_id": "ada", "agent_id": "cook", "metadata": {"a": 1, "b": 1}, "infer": false, "kind": "preference",
            "messages": [
                {"role": "system", "content": "be kind"},
                {"role": "user", "content": "I like green tea", "created_at": "2026-01-01T00:00:00Z", "metadata": {"b": 2}},
                {"role": "assistant", "content": "Noted."},
                {"role": "user", "content": "not black tea"},
            ],
        });
        insta::assert_snapshot!("added", server.post("/memories", body).await.shown());
        insta::assert_snapshot!("listed", server.get("/memories?user_id=ada").await.shown());
        assert_eq!(server.get("/memories?user_id=eve").await.json(), json!({"results": []}));
    }

    #[tokio::test]
    async fn messages_of_others_are_not_remembered() {
        let server = TestServer::new();
        let messages = json!([{"role": "assistant", "content": "Noted."}]);
        let answer = server.post("/memories", json!({"user_id": "ada", "messages": messages.clone()})).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["results"]), (200, &json!([])));
        assert_eq!(server.get("/memories?user_id=ada").await.json(), json!({"results": []}));
        for wrong in [json!({"metadata": {"\u{0}": 1}}), json!({"agent_id": ""})] {
            let mut body = json!({"messages": messages});
            body.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
            assert_eq!(server.post("/memories", body).await.status, 400, "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_memory_holds_where_its_scope_says() {
        let server = TestServer::new();
        for body in [
            json!({"text": "bound", "user_id": "ada", "run_id": "s"}),
            json!({"text": "bound too", "user_id": "ada", "session_id": "s", "scope": "session"}),
            json!({"text": "free", "user_id": "ada", "scope": "user", "kind": "todo", "agent_id": "x"}),
            json!({"text": "shared", "user_id": "ada", "scope": "global"}),
            json!({"text": "nowhere else", "user_id": "bob", "scope": "session"}),
        ] {
            let answer = server.post("/memories", body).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
        for (query, expected) in [
            ("user_id=ada", vec!["free", "bound too", "bound"]),
            ("user_id=ada&run_id=s", vec!["bound too", "bound"]),
            ("user_id=ada&kind=todo", vec!["free"]),
            ("user_id=ada&agent_id=x", vec!["free"]),
            ("user_id=ada&limit=1&offset=1", vec!["bound too"]),
            ("user_id=ada&as_of=2020-01-01T00:00:00Z", vec![]),
            ("user_id=eve&scope=global", vec!["shared"]),
            ("user_id=bob&run_id=default", vec!["nowhere else"]),
        ] {
            let list = server.get(&format!("/memories?{query}")).await.json();
            assert_eq!(statements(&list), expected, "{query}");
        }
        let shared = &server.get("/memories?scope=global").await.json()["results"][0];
        assert_eq!((&shared["user_id"], &shared["scope"]), (&Value::Null, &json!("global")));
    }

    #[tokio::test]
    async fn many_are_deleted_only_for_a_user_that_is_named() {
        let server = TestServer::new();
        for (user, run) in [("ada", "s"), ("ada", "t"), ("eve", "s"), ("ada", "u")] {
            server.post("/memories", json!({"text": "x", "user_id": user, "run_id": run})).await;
        }
        insta::assert_snapshot!("unnamed", server.delete("/memories").await.shown());
        insta::assert_snapshot!("deleted", server.delete("/memories?user_id=ada&run_id=s").await.shown());
        let revised = server.get("/memories?user_id=ada&run_id=u").await.json();
        let id = revised["results"][0]["id"].as_str().unwrap();
        server.write(Method::PUT, &format!("/memories/{id}?user_id=ada"), json!({"text": "y"})).await;
        let gone = server.delete("/memories?user_id=ada&run_id=u&forget=true").await;
        assert_eq!(gone.json()["removed"]["memories"], 2, "with its former statement: {}", gone.body);
        let left = server.get("/memories?user_id=ada").await.json();
        assert_eq!(left["results"][0]["run_id"], "t");
        assert_eq!(left["results"].as_array().unwrap().len(), 1);
        insta::assert_snapshot!(
            "forgotten",
            server.delete("/memories?user_id=ada&forget=true").await.shown()
        );
        assert_eq!(server.get("/memories?user_id=eve").await.json()["results"].as_array().unwrap().len(), 1);
    }
}
