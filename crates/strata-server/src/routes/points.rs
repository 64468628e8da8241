//! `GET /summaries`: the points of one part of the current summaries, such as every open todo.

use axum::Json;
use axum::extract::State;
use strata_core::SessionId;
use utoipa::ToSchema;

use super::params::{Limit, Name, Offset, UserName, query};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Params;
use crate::extract::numbers::page;
use crate::identity::Caller;
use crate::route::Route;
use crate::wire::PointsResponse;

pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(__path_list_points, list_points)]
}

query!(PointsParams {
    part: Part = "Which part of the summaries.", required = true;
    user_id: UserName = "The owner of the summaries. Defaults to the user `default`.";
    session_id: Name = "Only summaries of this session.";
    limit: Limit = "The most entries to list.";
    offset: Offset = "How many entries to leave out at the start.";
});

/// A part of a summary.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code, reason = "only its schema is used")]
enum Part {
    Facts,
    Preferences,
    Decisions,
    Todos,
    Entities,
}

/// List the points of one part of the current summaries
///
/// For instance every open todo. The most recently written session comes first. A point of two sessions is listed
/// once.
#[utoipa::path(get, path = "/summaries", tag = "sessions", params(PointsParams),
    responses((status = 200, description = "the points", body = PointsResponse),
        (status = 404, description = "the user has no such session")))]
async fn list_points(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<PointsParams>,
) -> Result<Json<PointsResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    let page = page(&params.limit, &params.offset)?;
    let Some(part) = params.part else {
        return Err(ApiError::invalid("`part` is missing; say which part, as `?part=todos`"));
    };
    let session = params.session_id.map(SessionId::new).transpose()?;
    let offset = usize::try_from(page.offset).unwrap_or(usize::MAX);
    let most = offset.saturating_add(page.limit as usize);
    let points = app.engine().summaries.structured(&user, session.as_ref(), part.parse()?, most).await?;
    let points = points.iter().skip(offset).take(page.limit as usize);
    Ok(Json(points.collect()))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};
    use strata_core::store::{Change, ChangeSet};
    use strata_core::summary::{Strategy, Summary, SummaryStatus};
    use strata_core::{SessionId, SummaryId, UserId};
    use uuid::Uuid;

    use crate::testing::TestServer;

    /// A session of `ada` whose summary says this.
    async fn summarised(server: &TestServer, number: u128, session: &str, structured: Value) {
        let messages = json!([{"role": "user", "content": "x"}]);
        let body = json!({"user_id": "ada", "session_id": session, "messages": messages});
        assert_eq!(server.post("/turns", body).await.status, 201);
        let at = Timestamp::from_second(1_770_000_000).unwrap();
        let summary = Summary {
            id: SummaryId(Uuid::from_u128(number)),
            session: SessionId::new(session).unwrap(),
            strategy: Strategy::Window,
            level: 0,
            start_seq: 0,
            end_seq: 0,
            base_id: None,
            status: SummaryStatus::Completed,
            text: "said".to_owned(),
            structured: Some(structured),
            input_tokens: 1,
            output_tokens: 1,
            generation_ms: None,
            created_at: at,
            updated_at: at,
        };
        let changes = ChangeSet::one(at, Change::PutSummary(Box::new(summary)));
        server.app.engine().store().apply(&UserId::new("ada").unwrap(), changes).await.unwrap();
    }

    async fn texts(server: &TestServer, query: &str) -> Vec<String> {
        let answer = server.get(&format!("/summaries?user_id=ada&{query}")).await.json();
        let points = answer["points"].as_array().unwrap().iter();
        points.map(|point| point["text"].as_str().unwrap().to_owned()).collect()
    }

    #[tokio::test]
    async fn open_todos_of_all_sessions_are_listed() {
        let server = TestServer::new();
        let structured =
            json!({"todos": [{"text": "Book a flight", "seq": 0}], "facts": ["Ada lives in Porto"]});
        summarised(&server, 1, "trip", structured).await;
        summarised(&server, 2, "home", json!({"todos": ["book a flight", "给花浇水"]})).await;
        insta::assert_snapshot!("trip", {
            server.get("/summaries?part=todos&user_id=ada&session_id=trip").await.shown()
        });
        assert_eq!(
            texts(&server, "part=todos").await,
            ["book a flight", "给花浇水"],
            "said alike, said once"
        );
        assert_eq!(texts(&server, "part=todos&limit=1&offset=1").await, ["给花浇水"]);
        assert_eq!(texts(&server, "part=facts").await, ["Ada lives in Porto"]);
        assert!(texts(&server, "part=decisions").await.is_empty());
    }

    #[tokio::test]
    async fn invalid_parameters_are_refused() {
        let server = TestServer::new();
        summarised(&server, 1, "trip", json!({"todos": ["Book a flight"]})).await;
        let eves = server.get("/summaries?part=todos&user_id=eve").await;
        assert_eq!(eves.json(), json!({"points": []}));
        for (query, status) in [
            ("part=todos&user_id=eve&session_id=trip", 404),
            ("part=todos&user_id=ada&session_id=other", 404),
            ("part=rumours&user_id=ada", 400),
            ("part=&user_id=ada", 400),
            ("user_id=ada", 400),
            ("part=todos&part=facts", 400),
        ] {
            assert_eq!(server.get(&format!("/summaries?{query}")).await.status, status, "{query}");
        }
    }
}
