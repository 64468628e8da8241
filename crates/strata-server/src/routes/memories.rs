//! `/memories`: adding, listing and deleting many, as mem0's self-hosted server has them.
//!
//! Adding is in [`add`], one memory by its id in [`super::memory`].

pub(crate) mod add;

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use axum::routing::post;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strata_core::memory::TodoState;
use strata_core::store::{MemoryQuery, MemorySelect, Removed, TurnQuery};
use strata_core::turn::Metadata;
use strata_core::{ErrorKind, Memory, SessionId, Turn, TurnId, UserId};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::filters::{filter, user_of};
use super::params::{Limit, Name, Offset, UserName, page};
use super::sessions::RemovedCounts;
use super::vocabulary::{Kind, Scope};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Params, switch};
use crate::identity::Caller;
use crate::moment::Moment;
use crate::router::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![("/memories", post(add::add_memories).get(list_memories).delete(delete_memories))]
}

/// A memory.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MemoryResponse {
    /// Its id, which an edit keeps.
    pub(crate) id: Uuid,
    /// The statement.
    memory: String,
    /// Whose it is; nobody's where the scope is `global`.
    user_id: Option<String>,
    /// The agent it belongs to.
    agent_id: Option<String>,
    /// The session it is bound to.
    run_id: Option<String>,
    /// Where it holds.
    scope: Scope,
    /// What kind of statement it is.
    kind: Kind,
    /// How sure Strata is, from 0 to 1.
    confidence: f32,
    /// The client's metadata, as it was sent.
    #[schema(value_type = Object)]
    metadata: Metadata,
    /// How a todo ended: `done` or `dropped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    todo: Option<&'static str>,
    /// When its first statement was recorded; an edit leaves it.
    created_at: Timestamp,
    /// When it last changed.
    updated_at: Timestamp,
    /// Since when it is so.
    valid_from: Timestamp,
    /// Until when it was so; open while it still is.
    valid_to: Option<Timestamp>,
    /// What took its place.
    replaced_by: Option<Uuid>,
    /// Why recall does not see it, where it does not.
    hidden: Option<&'static str>,
    /// Where it comes from.
    source: Source,
}

/// Where something comes from.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Source {
    /// The turns that say so.
    pub(crate) turns: Vec<SourceTurn>,
}

/// A turn that something comes from.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SourceTurn {
    /// Its id.
    pub(crate) id: Uuid,
    /// Its session; absent when the turn has been destroyed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) session_id: Option<String>,
    /// Its place there; absent when the turn has been destroyed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) seq: Option<u64>,
}

impl MemoryResponse {
    pub(crate) fn new(user: &UserId, memory: Memory, sources: &Sources) -> Self {
        let is_global = *user == UserId::global();
        let scope = match &memory.session {
            Some(_) => Scope::Session,
            None if is_global => Scope::Global,
            None => Scope::User,
        };
        Self {
            id: memory.id.0,
            source: sources.of(&memory),
            created_at: memory.first_recorded_at(),
            metadata: memory.metadata,
            todo: memory.notes.todo.map(TodoState::as_str),
            memory: memory.content,
            user_id: (!is_global).then(|| user.as_str().to_owned()),
            agent_id: memory.agent,
            run_id: memory.session.map(String::from),
            scope,
            kind: memory.kind.into(),
            confidence: memory.confidence,
            updated_at: memory.hidden.map_or(memory.recorded_at, |hidden| hidden.at),
            valid_from: memory.valid_from,
            valid_to: memory.valid_to,
            replaced_by: memory.replaced_by.map(|id| id.0),
            hidden: memory.hidden.map(|hidden| hidden.reason.as_str()),
        }
    }
}

/// The turns that some memories come from, read together.
pub(crate) struct Sources(HashMap<TurnId, (SessionId, u64)>);

impl Sources {
    pub(crate) async fn load<'a>(
        app: &App,
        user: &UserId,
        memories: impl IntoIterator<Item = &'a Memory>,
    ) -> Result<Self, ApiError> {
        let mut ids: Vec<_> = memories.into_iter().flat_map(|memory| &memory.source_turns).copied().collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(Self(HashMap::new()));
        }
        let turns = app.engine().store().turns(user, &TurnQuery::Ids(ids)).await?;
        Ok(Self(turns.into_iter().map(|Turn { id, session, seq, .. }| (id, (session, seq))).collect()))
    }

    pub(crate) fn of(&self, memory: &Memory) -> Source {
        let turns = memory.source_turns.iter().map(|id| {
            let place = self.0.get(id);
            let session_id = place.map(|(session, _)| session.as_str().to_owned());
            SourceTurn { id: id.0, session_id, seq: place.map(|(_, seq)| *seq) }
        });
        Source { turns: turns.collect() }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListParams {
    /// Whose memories; `default` where nobody says.
    #[param(value_type = Option<UserName>, inline, nullable = false)]
    user_id: Option<String>,
    /// Only those bound to this session.
    #[param(value_type = Option<Name>, inline, nullable = false)]
    run_id: Option<String>,
    /// Only those of this agent.
    #[param(value_type = Option<Name>, inline, nullable = false)]
    agent_id: Option<String>,
    /// Only those of this kind.
    #[param(value_type = Option<Kind>, inline, nullable = false)]
    kind: Option<String>,
    /// `global` for what all users share, instead of the user's own.
    #[param(value_type = Option<OwnScope>, inline, nullable = false)]
    scope: Option<String>,
    /// What was believed then, instead of now.
    #[param(value_type = Option<Moment>, inline, nullable = false)]
    as_of: Option<String>,
    // A JSON object in a query is more than the document's format can say.
    #[param(ignore)]
    filters: Option<String>,
    /// How many at the most.
    #[param(value_type = Option<Limit>, inline, nullable = false)]
    limit: Option<String>,
    /// How many to leave out at the start.
    #[param(value_type = Option<Offset>, inline, nullable = false)]
    offset: Option<String>,
}

/// Whose memories a query is about; for the OpenAPI document.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code, reason = "only its schema is used")]
pub(crate) enum OwnScope {
    User,
    Global,
}

/// The owner that a query is about.
pub(crate) fn owner(
    caller: &Caller,
    user_id: &Option<String>,
    scope: &Option<String>,
) -> Result<UserId, ApiError> {
    // Who asks is looked at first, whatever else is wrong.
    let shared = caller.shared([user_id])?;
    match scope.as_deref() {
        None | Some("user") => caller.user([user_id]),
        Some("global") => Ok(shared),
        Some(_) => Err(ApiError::invalid("`scope` is unknown here; use `user` or `global`")),
    }
}

/// The owner of what a query is to change.
pub(crate) fn owner_to_change(
    caller: &Caller,
    user_id: &Option<String>,
    scope: &Option<String>,
) -> Result<UserId, ApiError> {
    match scope.as_deref() {
        Some("global") => caller.shared_to_change([user_id]),
        _ => owner(caller, user_id, scope),
    }
}

/// Memories, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MemoriesResponse {
    results: Vec<MemoryResponse>,
}

/// List memories
///
/// `filters`, a JSON object as `POST /search` takes it, narrows the list.
#[utoipa::path(get, path = "/memories", tag = "memories", params(ListParams),
    responses((status = 200, description = "what is believed, the newest first", body = MemoriesResponse)))]
async fn list_memories(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<MemoriesResponse>, ApiError> {
    let filters = params.filters.as_deref().map(serde_json::from_str).transpose();
    let filters =
        filters.map_err(|error| ApiError::invalid(format!("`filters` is no JSON object: {error}")))?;
    let filter = filter(filters.as_ref())?;
    let user = match &params.scope {
        None => user_of(&caller, [&params.user_id], filter.as_ref())?,
        scope => owner(&caller, &params.user_id, scope)?,
    };
    let as_of = params.as_of.as_deref().map(Moment::parse).transpose();
    let as_of = as_of.map_err(|reason| ApiError::invalid(format!("`as_of`: {reason}")))?;
    let query = MemoryQuery {
        select: MemorySelect::Current { as_of: as_of.map(Moment::as_of) },
        session: params.run_id.map(SessionId::new).transpose()?,
        agent: params.agent_id.map(checked_agent).transpose()?,
        kind: params.kind.as_deref().map(str::parse).transpose()?,
        page: page(&params.limit, &params.offset)?,
    };
    let memories = match filter {
        Some(filter) => app.engine().memories.filtered(&user, &query, &filter).await?,
        None => app.engine().memories.list(&user, &query).await?,
    };
    let sources = Sources::load(&app, &user, &memories).await?;
    let results = memories.into_iter().map(|memory| MemoryResponse::new(&user, memory, &sources)).collect();
    Ok(Json(MemoriesResponse { results }))
}

/// An agent's name follows the rules of the other names.
pub(crate) fn checked_agent(name: String) -> Result<String, ApiError> {
    let agent = SessionId::new(name)
        .map_err(|error| ApiError::invalid(error.message().replace("session id", "agent id")))?;
    Ok(agent.into())
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DeleteParams {
    /// Whose memories. It must be named here, whatever the headers say.
    #[param(value_type = UserName, inline, required = true, nullable = false)]
    user_id: Option<String>,
    /// Only those bound to this session.
    #[param(value_type = Option<Name>, inline, nullable = false)]
    run_id: Option<String>,
    /// Only those of this agent.
    #[param(value_type = Option<Name>, inline, nullable = false)]
    agent_id: Option<String>,
    /// `true` destroys them for good: with `user_id` alone all, former and deleted ones too.
    #[param(value_type = Option<bool>, default = false, nullable = false)]
    forget: Option<String>,
}

/// What a deletion did.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedResponse {
    /// For a person.
    pub(crate) message: &'static str,
    /// How many memories left recall and lists; they can be restored.
    pub(crate) deleted: u64,
    /// What was destroyed, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) removed: Option<RemovedCounts>,
}

/// Delete a user's memories
///
/// They leave recall and lists and can be restored one by one; `forget=true` destroys them.
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
        let message = "All relevant memories destroyed";
        return Ok(Json(DeletedResponse { message, deleted: 0, removed: Some(removed.into()) }));
    }
    let deleted = app.engine().memories.delete_all(&user, &query).await?;
    Ok(Json(DeletedResponse { message: "All relevant memories deleted", deleted, removed: None }))
}

/// Destroys some of a user's memories, one after the other: if it fails on the way, the same call finishes it.
async fn forget_selected(app: &App, user: &UserId, query: &MemoryQuery) -> Result<Removed, ApiError> {
    let mut removed = Removed::default();
    for memory in app.engine().memories.list(user, query).await? {
        match app.engine().memories.forget(user, memory.id).await {
            Ok(gone) => removed.memories += gone.memories,
            // It went with the one that replaced it.
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
    async fn what_the_user_says_is_remembered_as_it_is() {
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
    async fn what_only_others_say_is_not_remembered() {
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
