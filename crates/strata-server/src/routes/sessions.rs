//! `/sessions…`: sessions and their turns.

use std::ops::Not;

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strata_core::store::Removed;
use strata_core::turn::{Follows, Metadata};
use strata_core::{Session, SessionId, Turn};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::params::{Limit, Offset, SessionPath, UserName, UserParams, limit, page};
use super::turns::Usage;
use super::vocabulary::Role;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Params, PathName, number};
use crate::identity::Caller;
use crate::router::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        ("/sessions", get(list_sessions)),
        ("/sessions/{id}", get(get_session).delete(delete_session)),
        ("/sessions/{id}/turns", get(list_turns)),
    ]
}

/// A session without its turns.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionResponse {
    /// Its name.
    id: String,
    /// Whose it is.
    user_id: String,
    /// When it was first written to.
    created_at: Timestamp,
    /// When it was last written to.
    updated_at: Timestamp,
    /// How many turns it has.
    turn_count: u64,
}

impl SessionResponse {
    fn new(user: &strata_core::UserId, session: Session) -> Self {
        let Session { id, created_at, updated_at, turn_count, .. } = session;
        Self { id: id.into(), user_id: user.as_str().to_owned(), created_at, updated_at, turn_count }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListParams {
    /// Whose sessions; `default` where nobody says.
    #[param(value_type = Option<UserName>, inline, nullable = false)]
    user_id: Option<String>,
    /// How many at the most.
    #[param(value_type = Option<Limit>, inline, nullable = false)]
    limit: Option<String>,
    /// How many to leave out at the start.
    #[param(value_type = Option<Offset>, inline, nullable = false)]
    offset: Option<String>,
}

/// A user's sessions, the last written to first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionsResponse {
    sessions: Vec<SessionResponse>,
}

/// List a user's sessions
#[utoipa::path(get, path = "/sessions", tag = "sessions", params(ListParams),
    responses((status = 200, description = "the sessions, the last written to first", body = SessionsResponse)))]
async fn list_sessions(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<SessionsResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    let page = page(&params.limit, &params.offset)?;
    let sessions = app.engine().sessions.list(&user, page).await?;
    let sessions = sessions.into_iter().map(|session| SessionResponse::new(&user, session)).collect();
    Ok(Json(SessionsResponse { sessions }))
}

/// Show a session
#[utoipa::path(get, path = "/sessions/{id}", tag = "sessions",
    params(SessionPath, UserParams),
    responses((status = 200, description = "the session", body = SessionResponse),
        (status = 404, description = "the user has no such session")))]
async fn get_session(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<UserParams>,
) -> Result<Json<SessionResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    let session = app.engine().sessions.get(&user, &SessionId::new(id)?).await?;
    Ok(Json(SessionResponse::new(&user, session)))
}

/// What was destroyed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RemovedResponse {
    /// How much went.
    removed: RemovedCounts,
}

/// How much was destroyed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RemovedCounts {
    /// Sessions.
    sessions: u64,
    /// Turns.
    turns: u64,
    /// Memories, former statements included.
    memories: u64,
    /// Summaries.
    summaries: u64,
}

impl From<Removed> for RemovedCounts {
    fn from(removed: Removed) -> Self {
        let Removed { sessions, turns, memories, summaries } = removed;
        Self { sessions, turns, memories, summaries }
    }
}

/// Destroy a session
///
/// Its turns, summaries and the memories bound to it go with it. There is no way back.
#[utoipa::path(delete, path = "/sessions/{id}", tag = "sessions",
    params(SessionPath, UserParams),
    responses((status = 200, description = "destroyed", body = RemovedResponse),
        (status = 404, description = "the user has no such session")))]
async fn delete_session(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<UserParams>,
) -> Result<Json<RemovedResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    let removed = app.engine().sessions.delete(&user, &SessionId::new(id)?).await?;
    Ok(Json(RemovedResponse { removed: removed.into() }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TurnsParams {
    /// Whose session; `default` where nobody says.
    #[param(value_type = Option<UserName>, inline, nullable = false)]
    user_id: Option<String>,
    /// Only turns with a greater `seq`.
    #[param(value_type = Option<i64>, minimum = 0, maximum = 9_223_372_036_854_775_807i64, nullable = false)]
    after: Option<String>,
    /// How many at the most.
    #[param(value_type = Option<Limit>, inline, nullable = false)]
    limit: Option<String>,
}

/// A part of a session, by `seq`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TurnsResponse {
    turns: Vec<TurnResponse>,
    /// Set when more turns follow: the `after` that continues here.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next_after: Option<u64>,
}

/// A turn.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TurnResponse {
    /// Its id.
    id: Uuid,
    /// Its place in the session, from 0 and without gaps.
    seq: u64,
    /// Who said it.
    role: Role,
    /// The speaker's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<String>,
    /// What was said.
    content: String,
    /// When it was said.
    created_at: Timestamp,
    /// The tokens of `content`.
    token_count: u32,
    /// The client's metadata, as it was sent.
    #[schema(value_type = Object)]
    metadata: Metadata,
    /// The `seq` of the turn that it follows, `null` if it begins a conversation. Without it, it follows the visible turn
    /// before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    follows: Option<Option<u64>>,
    /// Whether the reply broke off.
    #[serde(skip_serializing_if = "Not::not")]
    interrupted: bool,
    /// Whether the content was cut to the most bytes of a turn.
    #[serde(skip_serializing_if = "Not::not")]
    truncated: bool,
    /// The calls that a reply asks for, each with `id`, `name` and `arguments`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    tool_calls: Vec<Value>,
    /// The call that a tool's result answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    tool_call_id: Option<String>,
    /// Whether a tool's call failed, if the client said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    failed: Option<bool>,
    /// The tokens that the model reported for a reply.
    #[serde(skip_serializing_if = "Usage::is_unknown")]
    usage: Usage,
    /// Whether the turn is embedded even where embedding costs money.
    #[serde(skip_serializing_if = "Not::not")]
    high_value: bool,
    /// The agent to which the memories belong that are learned from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    agent_id: Option<String>,
    /// Why recall does not see it, where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    hidden: Option<&'static str>,
}

impl From<Turn> for TurnResponse {
    fn from(turn: Turn) -> Self {
        let Turn { id, seq, role, name, content, created_at, token_count, metadata, notes, hidden, .. } =
            turn;
        Self {
            id: id.0,
            seq,
            role: role.into(),
            name,
            content,
            created_at,
            token_count,
            metadata,
            follows: match notes.follows {
                Follows::Previous => None,
                Follows::Nothing => Some(None),
                Follows::Turn(seq) => Some(Some(seq)),
            },
            interrupted: notes.interrupted,
            truncated: notes.truncated,
            tool_calls: notes.tool_calls,
            tool_call_id: notes.tool_call_id,
            failed: notes.failed,
            usage: notes.usage.into(),
            high_value: notes.high_value,
            agent_id: notes.owner.agent,
            hidden: hidden.map(|hidden| hidden.reason.as_str()),
        }
    }
}

/// Read a session's turns
#[utoipa::path(get, path = "/sessions/{id}/turns", tag = "sessions",
    params(SessionPath, TurnsParams),
    responses((status = 200, description = "the turns by `seq`", body = TurnsResponse),
        (status = 404, description = "the user has no such session")))]
async fn list_turns(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<TurnsParams>,
) -> Result<Json<TurnsResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    let limit = limit(&params.limit)?;
    let after = match &params.after {
        Some(_) => Some(number("after", &params.after, 0..=i64::MAX as u64, 0)?),
        None => None,
    };
    // One more than asked for tells whether more follow.
    let mut turns = app.engine().sessions.turns(&user, &SessionId::new(id)?, after, limit + 1).await?;
    let more = turns.len() > limit as usize;
    turns.truncate(limit as usize);
    let next_after = turns.last().filter(|_| more).map(|turn| turn.seq);
    Ok(Json(TurnsResponse { turns: turns.into_iter().map(TurnResponse::from).collect(), next_after }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::TestServer;

    #[tokio::test]
    async fn odd_names_work_percent_encoded() {
        let server = TestServer::new();
        for (name, encoded) in [
            ("a/b", "a%2Fb"),
            ("../../x", "..%2F..%2Fx"),
            ("🦀", "%F0%9F%A6%80"),
            ("user:agent:1", "user:agent:1"),
            (" ", "%20"),
            ("..", "%2E%2E"),
            ("100%", "100%25"),
            ("a+b", "a+b"),
            ("turns", "turns"),
        ] {
            let body = json!({"session_id": name, "messages": [{"role": "user", "content": "x"}]});
            assert_eq!(server.post("/turns", body).await.status, 201, "{name}");
            let session = server.get(&format!("/sessions/{encoded}")).await;
            assert_eq!(session.json()["id"], name, "{}", session.body);
            let turns = server.get(&format!("/sessions/{encoded}/turns")).await;
            assert_eq!(turns.json()["turns"].as_array().unwrap().len(), 1, "{name}");
            assert_eq!(server.delete(&format!("/sessions/{encoded}")).await.status, 200, "{name}");
            assert_eq!(server.get(&format!("/sessions/{encoded}")).await.status, 404, "{name}");
        }
    }

    #[tokio::test]
    async fn sessions_are_listed_shown_and_destroyed() {
        let server = TestServer::new();
        for session in ["one", "two", "three"] {
            let messages = json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]);
            let body = json!({"user_id": "ada", "session_id": session, "messages": messages});
            server.post("/turns", body).await;
        }
        insta::assert_snapshot!("listed", server.get("/sessions?user_id=ada&limit=2").await.shown());
        let rest = server.get("/sessions?user_id=ada&limit=2&offset=2").await;
        assert_eq!(rest.json()["sessions"][0]["id"], "one");
        insta::assert_snapshot!("shown", server.get("/sessions/two?user_id=ada").await.shown());
        insta::assert_snapshot!("foreign", server.get("/sessions/two?user_id=eve").await.shown());
        assert_eq!(server.delete("/sessions/two?user_id=eve").await.status, 404);
        insta::assert_snapshot!("destroyed", server.delete("/sessions/two?user_id=ada").await.shown());
        assert_eq!(server.delete("/sessions/two?user_id=ada").await.status, 404);
    }

    #[tokio::test]
    async fn turns_come_in_pages_until_there_are_no_more() {
        let server = TestServer::new();
        let messages: Vec<_> = (0..5).map(|n| json!({"role": "user", "content": format!("n{n}")})).collect();
        server.post("/turns", json!({"session_id": "s", "messages": messages})).await;
        let mut seen = Vec::new();
        let mut uri = "/sessions/s/turns?limit=2".to_owned();
        loop {
            let page = server.get(&uri).await.json();
            seen.extend(page["turns"].as_array().unwrap().iter().map(|turn| turn["seq"].as_u64().unwrap()));
            match page.get("next_after") {
                Some(after) => uri = format!("/sessions/s/turns?limit=2&after={after}"),
                None => break,
            }
        }
        assert_eq!(seen, [0, 1, 2, 3, 4]);
        let whole = server.get("/sessions/s/turns?limit=5").await.json();
        assert!(whole.get("next_after").is_none(), "nothing follows");
        assert_eq!(server.get("/sessions/s/turns?after=4").await.json(), json!({"turns": []}));
        assert_eq!(server.get("/sessions/unknown/turns").await.status, 404);
    }
}
