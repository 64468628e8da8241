//! `/users/{id}`: forgetting a user.

use axum::Json;
use axum::extract::State;
use utoipa::IntoParams;

use super::params::UserName;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::PathName;
use crate::identity::Caller;
use crate::route::Route;
use crate::wire::session::RemovedResponse;

pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(__path_forget_user, forget_user)]
}

/// The user in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "only its description is used")]
struct UserPath {
    /// the user's name, percent-encoded
    #[param(value_type = UserName, inline)]
    id: String,
}

/// Forget a user
///
/// Destroys everything of the user: turns, memories, summaries, states, requests and their traces, API keys, vectors, jobs
/// and stored answers. This cannot be undone. A key that is bound to a user can forget this user; any other user needs the
/// scope `admin`.
#[utoipa::path(delete, path = "/users/{id}", tag = "users", params(UserPath),
    responses((status = 200, description = "forgotten", body = RemovedResponse),
        (status = 404, description = "the store has never had anything of this user"),
        (status = 409, description = "the header names another user, or the last API keys would go")))]
async fn forget_user(
    State(app): State<App>,
    caller: Caller,
    PathName(name): PathName,
) -> Result<Json<RemovedResponse>, ApiError> {
    let user = caller.user_to_forget(&name)?;
    Ok(Json((&app.forget_user(&user).await?).into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::TestServer;

    #[tokio::test]
    async fn a_forgotten_user_is_gone_and_the_others_stay() {
        let server = TestServer::new();
        for user in ["mira", "jon"] {
            let messages = json!([{"role": "user", "content": format!("{user} keeps bees")}]);
            let body = json!({"user_id": user, "session_id": "s", "messages": messages});
            assert_eq!(server.post("/turns", body).await.status, 201);
            server.post("/search", json!({"user_id": user, "query": "bees"})).await;
        }
        let forgotten = server.delete("/users/mira").await;
        assert_eq!(forgotten.status, 200);
        assert_eq!(forgotten.json()["removed"]["turns"], 1);
        let search = |user: &str| json!({"user_id": user, "query": "who keeps bees?"});
        let left = server.post("/search", search("mira")).await.json();
        assert_eq!(left["results"], json!([]));
        assert_eq!(server.get("/sessions?user_id=mira").await.json()["sessions"], json!([]));
        let found = server.post("/search", search("jon")).await.json();
        assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
    }

    #[tokio::test]
    async fn only_a_user_who_was_there_can_be_forgotten() {
        let server = TestServer::new();
        assert_eq!(server.delete("/users/never-seen").await.status, 404);
        assert_eq!(server.delete("/users/%2A").await.status, 400);
    }
}
