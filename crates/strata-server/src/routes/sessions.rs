//! `/sessions…`: sessions and their turns.

use axum::Json;
use axum::extract::State;
use strata_core::SessionId;

use super::params::{Limit, Named, Offset, Seq, SessionPath, UserName, UserParams, query};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::numbers::{limit, number, page};
use crate::extract::{Params, PathName};
use crate::identity::Caller;
use crate::route::Route;
use crate::wire::session::{RemovedResponse, SessionResponse, SessionsResponse, TurnsResponse};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(__path_list_sessions, list_sessions),
        Route::new(__path_get_session, get_session).on(__path_delete_session, delete_session),
        Route::new(__path_list_turns, list_turns),
    ]
}

query!(ListParams {
    user_id: UserName = "The owner of the sessions. Defaults to the user `default`.";
    limit: Limit = "The most entries to list.";
    offset: Offset = "How many entries to leave out at the start.";
});

/// List a user's sessions
#[utoipa::path(get, path = "/sessions", tag = "sessions", params(ListParams),
    responses((status = 200, description = "the sessions, the last written to first", body = SessionsResponse)))]
async fn list_sessions(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<SessionsResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    let sessions = app.engine().sessions.list(&user, page(&params.limit, &params.offset)?).await?;
    Ok(Json(SessionsResponse::new(&user, &sessions)))
}

/// Show a session
#[utoipa::path(get, path = "/sessions/{id}", tag = "sessions",
    params(SessionPath, UserParams),
    responses((status = 200, description = "the session", body = SessionResponse),
        (status = 404, description = "the user has no such session")))]
async fn get_session(
    State(app): State<App>,
    Named { user, id }: Named<SessionId>,
) -> Result<Json<SessionResponse>, ApiError> {
    let session = app.engine().sessions.get(&user, &id).await?;
    Ok(Json(SessionResponse::new(&user, &session)))
}

/// Destroy a session
///
/// Its turns, its summaries and the memories bound to it are destroyed too. This cannot be undone.
#[utoipa::path(delete, path = "/sessions/{id}", tag = "sessions",
    params(SessionPath, UserParams),
    responses((status = 200, description = "destroyed", body = RemovedResponse),
        (status = 404, description = "the user has no such session")))]
async fn delete_session(
    State(app): State<App>,
    Named { user, id }: Named<SessionId>,
) -> Result<Json<RemovedResponse>, ApiError> {
    let removed = app.forget_session(&user, &id).await?;
    Ok(Json((&removed).into()))
}

query!(TurnsParams {
    user_id: UserName = "The owner of the session. Defaults to the user `default`.";
    after: Seq = "Only turns with a greater `seq`.";
    limit: Limit = "The most entries to list.";
});

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
    // One more turn than requested tells whether more follow.
    let turns = app.engine().sessions.turns(&user, &SessionId::new(id)?, after, limit + 1).await?;
    Ok(Json(TurnsResponse::new(&turns, limit as usize)))
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
