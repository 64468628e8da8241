//! `GET /sessions/{id}/summaries`: the versions of a session's summaries.

use axum::Json;
use axum::extract::State;
use strata_core::SessionId;

use super::params::{Limit, SessionPath, UserName, query};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::numbers::limit;
use crate::extract::{Params, PathName};
use crate::identity::Caller;
use crate::route::Route;
use crate::wire::SummariesResponse;

pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(__path_list_summaries, list_summaries)]
}

query!(SummariesParams {
    user_id: UserName = "The owner of the session. Defaults to the user `default`.";
    limit: Limit = "The most entries to list.";
});

/// List the versions of a session's summaries
#[utoipa::path(get, path = "/sessions/{id}/summaries", tag = "sessions",
    params(SessionPath, SummariesParams),
    responses((status = 200, description = "the versions, the one that reaches furthest first", body = SummariesResponse),
        (status = 404, description = "the user has no such session")))]
async fn list_summaries(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<SummariesParams>,
) -> Result<Json<SummariesResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    let limit = limit(&params.limit)?;
    let report = app.engine().summaries.report(&user, &SessionId::new(id)?, limit).await?;
    Ok(Json((&report).into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::TestServer;

    #[tokio::test]
    async fn each_version_names_the_one_before() {
        let server = TestServer::new();
        assert_eq!(server.get("/sessions/s/summaries").await.status, 404);
        for batch in 0..5 {
            let said = (0..20).flat_map(|step| {
                let number = batch * 20 + step;
                [
                    json!({"role": "user", "content": format!("Question {number}?")}),
                    json!({"role": "assistant", "content": format!("Answer {number}.")}),
                ]
            });
            let messages: Vec<_> = said.collect();
            server.post("/turns", json!({"session_id": "s", "messages": messages})).await;
        }
        let summaries = server.get("/sessions/s/summaries").await.json()["summaries"].clone();
        let summaries = summaries.as_array().unwrap();
        assert_eq!(summaries.len(), 2, "{summaries:?}");
        assert_eq!(summaries[0]["base_id"], summaries[1]["id"]);
        assert_eq!(summaries[0]["base_end_seq"], summaries[1]["end_seq"]);
        assert!(summaries[0]["end_seq"].as_u64() > summaries[1]["end_seq"].as_u64(), "{summaries:?}");
        assert!(summaries[0]["text"].as_str().unwrap().contains("Question 80?"), "{}", summaries[0]);
        insta::assert_snapshot!("first", serde_json::to_string_pretty(&summaries[1]).unwrap());
        let stats = server.get("/sessions/s/summaries").await.json()["stats"].clone();
        assert_eq!((&stats["total_summaries"], &stats["stuck"]), (&json!(2), &json!(0)));
        let one = server.get("/sessions/s/summaries?limit=1").await.json();
        assert_eq!(one["summaries"].as_array().unwrap(), &summaries[..1]);
        assert_eq!(server.get("/sessions/s/summaries?user_id=eve").await.status, 404);
    }
}
