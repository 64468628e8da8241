//! `GET /report`: how well memory works, and what to change where it does not.

use axum::Json;
use axum::extract::State;
use strata_engine::REPORT_DAYS;

use super::params::{UserName, query};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Params;
use crate::extract::numbers::number;
use crate::identity::Caller;
use crate::moment::Moment;
use crate::route::Route;
use crate::wire::ReportResponse;

/// The most rows of each kind that a report reads.
const MAX_ROWS: u32 = 100_000;

/// The longest period, in days.
const MAX_DAYS: u32 = 3_650;

pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(__path_get_report, get_report)]
}

/// The days of a period.
pub(crate) struct Days;

impl utoipa::PartialSchema for Days {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::schema::{ObjectBuilder, Type};
        let days = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1_i64));
        days.maximum(Some(i64::from(MAX_DAYS))).default(Some(REPORT_DAYS.into())).into()
    }
}

impl utoipa::ToSchema for Days {}

query!(ReportParams {
    user_id: UserName = "The user of the report. Defaults to the user `default`.";
    since: Moment = "The beginning of the period, instead of `days`.";
    days: Days = "The length of the period until now, in days.";
});

/// Report how well memory works
///
/// Every upgrade trigger of the evolution plan with its value, its threshold and a verdict, computed from the requests
/// and jobs of the period. The rows of requests are kept for the number of days in the setting `requests_days`.
#[utoipa::path(get, path = "/report", tag = "requests", params(ReportParams),
    responses((status = 200, description = "the report", body = ReportResponse)))]
async fn get_report(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ReportParams>,
) -> Result<Json<ReportResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    let days = number("days", &params.days, 1..=MAX_DAYS, REPORT_DAYS)?;
    let since = Moment::parameter("since", params.since.as_deref())?.map(Moment::at);
    let reporting = &app.engine().reporting;
    let since = since.unwrap_or_else(|| reporting.days_ago(days));
    Ok(Json((&reporting.report(&[user], since, MAX_ROWS).await?).into()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::TestServer;

    async fn asked(count: usize) -> TestServer {
        let server = TestServer::new();
        let said = json!([
            {"role": "user", "content": "the ferry to Hvar leaves at nine"},
            {"role": "user", "content": "lavender honey is sold behind the church"},
            {"role": "user", "content": "Petar repairs outboard motors"},
        ]);
        server.post("/turns", json!({"user_id": "ada", "session_id": "s", "messages": said})).await;
        for _ in 0..count {
            server.post("/search", json!({"user_id": "ada", "query": "when does the ferry leave"})).await;
        }
        server
    }

    fn verdicts(report: &Value) -> Vec<&Value> {
        report["triggers"].as_array().unwrap().iter().map(|trigger| &trigger["verdict"]).collect()
    }

    #[tokio::test]
    async fn the_report_judges_the_requests_of_its_user() {
        let server = asked(20).await;
        let report = server.get("/report?user_id=ada").await;
        assert_eq!(report.status, 200, "{}", report.body);
        let report = report.json();
        assert_eq!((&report["requests"], &report["recall"]["hit_rate"]), (&json!(20), &json!(1.0)));
        assert_eq!(report["triggers"][0]["value"], json!(1.0), "one hit each");
        assert_eq!(report["triggers"][0]["verdict"], "act");
        assert_eq!(report["triggers"].as_array().unwrap().len(), 8);
        let other = server.get("/report?user_id=eve").await.json();
        assert!(verdicts(&other).iter().all(|verdict| **verdict == "not_enough_data"), "{other}");
        let later = server.get("/report?user_id=ada&since=2026-03-01T12:00:50Z").await.json();
        assert!(later["requests"].as_u64().unwrap() < 20, "{later}");
    }

    #[tokio::test]
    async fn a_wrong_period_is_refused() {
        let server = asked(1).await;
        for query in ["days=0", "days=3651", "days=x", "since=x", "unknown=1"] {
            assert_eq!(server.get(&format!("/report?{query}")).await.status, 400, "{query}");
        }
        let future = server.get("/report?since=2100-01-01").await;
        assert_eq!(future.status, 200, "a period of the future is empty: {}", future.body);
    }

    #[tokio::test]
    async fn a_complaint_is_kept_and_counted() {
        let server = asked(20).await;
        let rows = server.get("/requests?user_id=ada&limit=1").await.json();
        let id = rows["requests"][0]["id"].as_str().unwrap().to_owned();
        let path = format!("/requests/{id}/feedback");
        let body = json!({"user_id": "ada", "text": "it forgot the pier", "kind": "meaning"});
        let filed = server.post(&path, body.clone()).await;
        assert_eq!(filed.status, 201, "{}", filed.body);
        let filed = filed.json();
        assert_eq!(filed["feedback"][0]["text"], "it forgot the pier");
        assert_eq!(filed["feedback"][0]["kind"], "meaning");
        let report = server.get("/report?user_id=ada").await.json();
        assert_eq!(report["failures"]["complaints"], 1);
        assert_eq!(report["triggers"][4]["value"], 0.05);
        let weekly = report["triggers"][5]["value"].as_f64().unwrap();
        assert!((weekly - 1.0).abs() < 0.001, "{weekly}");
        // Refused, without a trace.
        for (user, path, change) in [
            ("eve", path.clone(), json!({})),
            ("ada", "/requests/00000000-0000-0000-0000-00000000ffff/feedback".to_owned(), json!({})),
            ("ada", path.clone(), json!({"kind": "praise"})),
            ("ada", path.clone(), json!({"text": "x".repeat(2_001)})),
            ("ada", path.clone(), json!({"unknown": 1})),
        ] {
            let mut wrong = body.clone();
            wrong["user_id"] = json!(user);
            wrong.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            let refused = server.post(&path, wrong).await;
            assert!(refused.status == 400 || refused.status == 404, "{}", refused.body);
        }
        let report = server.get("/report?user_id=ada").await.json();
        assert_eq!(report["failures"]["complaints"], 1);
    }
}
