//! `POST /search`: recall.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use strata_core::recall::{MAX_LIMIT, RecallRequest, Recalled, RecalledItem};
use strata_core::store::Item;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};
use uuid::Uuid;

use super::memories::{Source, SourceTurn, Sources};
use super::vocabulary::{Kind, Role, Scope};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::JsonBody;
use crate::identity::Caller;
use crate::moment::Moment;
use crate::router::Route;
use crate::telemetry::set_request_id;

pub(crate) fn routes() -> Vec<Route> {
    vec![("/search", post(search))]
}

/// A question to memory.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchRequest {
    /// What to look for, in at most 10,000 characters; more answer 413.
    #[schema(min_length = 1, pattern = r"\S")]
    query: String,
    /// Whose memory; `default` where nobody says.
    #[schema(min_length = 1, max_length = 256, pattern = r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")]
    user_id: Option<String>,
    /// The same as `user_id`, which goes first.
    #[schema(min_length = 1, max_length = 256, pattern = r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")]
    user: Option<String>,
    /// The session the question is asked in.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    session_id: Option<String>,
    /// The same as `session_id`, which goes first.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    memory_id: Option<String>,
    /// The same as `session_id`, which goes first.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    run_id: Option<String>,
    /// Where to look: `session` where a session is named, else `user`.
    scope: Option<Scope>,
    /// Not built yet: only an empty object is taken.
    #[schema(schema_with = empty_object)]
    filters: Option<Map<String, Value>>,
    /// How many items at the most.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    top_k: Option<Number>,
    /// The same as `top_k`, which goes first.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<Number>,
    /// Leaves out items with a lower score. Scores are comparable within one answer only.
    #[schema(minimum = 0)]
    threshold: Option<f64>,
    /// What could be seen then, instead of now.
    as_of: Option<Moment>,
    /// Not built yet: only `false` is taken.
    #[schema(schema_with = only_false)]
    explain: Option<bool>,
}

// What is not built yet is refused, and the OpenAPI document says so.

fn empty_object() -> RefOr<Schema> {
    let types = SchemaType::from_iter([Type::Object, Type::Null]);
    ObjectBuilder::new().schema_type(types).max_properties(Some(0)).into()
}

fn only_false() -> RefOr<Schema> {
    let types = SchemaType::from_iter([Type::Boolean, Type::Null]);
    ObjectBuilder::new().schema_type(types).enum_values(Some([Value::Bool(false), Value::Null])).into()
}

/// How many items: a whole number, however it is written (`5`, `5.0`), within recall's own limit.
fn count(name: &str, number: &Option<Number>) -> Result<Option<u32>, ApiError> {
    let Some(number) = number else { return Ok(None) };
    let value = number.as_f64().unwrap_or_default();
    if value.fract() == 0.0 && (1.0..=f64::from(MAX_LIMIT)).contains(&value) {
        return Ok(Some(value as u32));
    }
    Err(ApiError::invalid(format!("`{name}` is `{number}`; it is a whole number from 1 to {MAX_LIMIT}")))
}

impl SearchRequest {
    fn into_recall(self, caller: &Caller) -> Result<RecallRequest, ApiError> {
        if self.explain == Some(true) {
            return Err(ApiError::invalid("`explain` is not built yet; leave it out"));
        }
        if self.filters.is_some_and(|filters| !filters.is_empty()) {
            return Err(ApiError::invalid("`filters` are not built yet; leave them out"));
        }
        if self.threshold.is_some_and(|threshold| !(threshold.is_finite() && threshold >= 0.0)) {
            return Err(ApiError::invalid("`threshold` is below 0; no score is, so leave it out"));
        }
        let (top_k, limit) = (count("top_k", &self.top_k)?, count("limit", &self.limit)?);
        Ok(RecallRequest {
            session: caller.session([&self.session_id, &self.memory_id, &self.run_id])?,
            scope: self.scope.map(Into::into),
            as_of: self.as_of.map(|moment| moment.0),
            limit: top_k.or(limit),
            ..RecallRequest::new(self.query)
        })
    }
}

/// What was found, the best first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchResponse {
    results: Vec<FoundItem>,
    /// The request's id, as in the header `X-Strata-Request-Id`.
    request_id: Uuid,
    /// Which path gave the items: `fts`, `trgm`, `vector`, `window`, `summaries_only` or `none`.
    retrieval_path: &'static str,
    /// Where was looked.
    scope: Scope,
}

/// A found item.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundItem {
    /// Its id.
    id: Uuid,
    /// Its text.
    memory: String,
    /// How well it fits, comparable within one answer.
    score: f32,
    /// What it is.
    kind: FoundKind,
    /// When it was said or learned.
    created_at: Timestamp,
    /// Since when it is so.
    valid_from: Timestamp,
    /// Until when it was so; open while it still is.
    valid_to: Option<Timestamp>,
    /// The session it belongs to.
    session_id: Option<String>,
    /// Who said it, where it is a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    /// Where it comes from.
    source: Source,
}

/// What a found item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FoundKind {
    /// A turn.
    Turn,
    /// A summary.
    Summary,
    /// A memory: something that is so.
    Fact,
    /// A memory: something somebody likes or wants done in a certain way.
    Preference,
    /// A memory: something to be done.
    Todo,
    /// A memory: something that was settled.
    Decision,
}

impl From<Kind> for FoundKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Fact => Self::Fact,
            Kind::Preference => Self::Preference,
            Kind::Todo => Self::Todo,
            Kind::Decision => Self::Decision,
        }
    }
}

impl FoundItem {
    fn new(recalled: RecalledItem, sources: &Sources) -> Self {
        let RecalledItem { item, score, .. } = recalled;
        let (valid_from, valid_to) = match &item {
            Item::Memory(memory) => (memory.valid_from, memory.valid_to),
            Item::Turn(_) | Item::Summary(_) => (item.created_at(), None),
        };
        let (kind, role, source) = match &item {
            Item::Turn(turn) => {
                let session_id = Some(turn.session.as_str().to_owned());
                let place = SourceTurn { id: turn.id.0, session_id, seq: Some(turn.seq) };
                (FoundKind::Turn, Some(turn.role.into()), Source { turns: vec![place] })
            }
            Item::Memory(memory) => (Kind::from(memory.kind).into(), None, sources.of(memory)),
            Item::Summary(_) => (FoundKind::Summary, None, Source { turns: Vec::new() }),
        };
        Self {
            id: item.id().uuid(),
            memory: item.content().to_owned(),
            score,
            kind,
            created_at: item.created_at(),
            valid_from,
            valid_to,
            session_id: item.session().map(|session| session.as_str().to_owned()),
            role,
            source,
        }
    }
}

/// Search memory
///
/// Turns and memories that answer a question, the best first; each names the turns it comes from.
#[utoipa::path(post, path = "/search", tag = "search", request_body = SearchRequest,
    responses((status = 200, description = "what was found", body = SearchResponse)))]
async fn search(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<SearchRequest>,
) -> Result<Response, ApiError> {
    let user = caller.user([&request.user_id, &request.user])?;
    let threshold = request.threshold;
    let request = request.into_recall(&caller)?;
    let recalled = app.engine().recall(&user, &request).await?;
    app.meters().searched(recalled.path.as_str());

    let Recalled { request_id, mut items, path, scope, .. } = recalled;
    if let Some(threshold) = threshold {
        items.retain(|item| f64::from(item.score) >= threshold);
    }
    let memories = items.iter().filter_map(|recalled| match &recalled.item {
        Item::Memory(memory) => Some(memory),
        Item::Turn(_) | Item::Summary(_) => None,
    });
    let sources = Sources::load(&app, &user, memories).await?;
    let mut response = Json(SearchResponse {
        results: items.into_iter().map(|item| FoundItem::new(item, &sources)).collect(),
        request_id: request_id.0,
        retrieval_path: path.as_str(),
        scope: scope.into(),
    })
    .into_response();
    set_request_id(&mut response, request_id.0);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::TestServer;

    async fn with_tea() -> TestServer {
        let server = TestServer::new();
        for (session, content) in
            [("s", "we drink green tea"), ("t", "she drinks black tea"), ("t", "coffee")]
        {
            let messages = json!([{"role": "user", "content": content}]);
            server
                .post("/turns", json!({"user_id": "ada", "session_id": session, "messages": messages}))
                .await;
        }
        server
            .post("/memories", json!({"user_id": "ada", "text": "prefers green tea", "kind": "preference"}))
            .await;
        server.post("/memories", json!({"text": "tea is served at four", "scope": "global"})).await;
        server
    }

    fn found(answer: &Value) -> Vec<&str> {
        let mut found: Vec<_> = answer["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["memory"].as_str().unwrap())
            .collect();
        found.sort_unstable();
        found
    }

    #[tokio::test]
    async fn what_is_found_names_its_turns() {
        let server = with_tea().await;
        let answer = server.post("/search", json!({"query": "green", "user_id": "ada"})).await;
        let mut shown = answer.json();
        assert_eq!(
            answer.header("x-strata-request-id"),
            shown["request_id"].as_str(),
            "one id for one request"
        );
        for item in shown["results"].as_array_mut().unwrap() {
            assert!(item["score"].as_f64().unwrap() > 0.0);
            item["score"] = json!("positive");
        }
        insta::assert_snapshot!("found", serde_json::to_string_pretty(&shown).unwrap());
    }

    #[tokio::test]
    async fn scope_limit_and_threshold_narrow_the_answer() {
        let server = with_tea().await;
        for (extra, expected) in [
            (json!({}), vec!["prefers green tea", "she drinks black tea", "we drink green tea"]),
            (json!({"session_id": "t"}), vec!["prefers green tea", "she drinks black tea"]),
            (
                json!({"session_id": "t", "scope": "user"}),
                vec!["prefers green tea", "she drinks black tea", "we drink green tea"],
            ),
            (
                json!({"scope": "global"}),
                vec![
                    "prefers green tea",
                    "she drinks black tea",
                    "tea is served at four",
                    "we drink green tea",
                ],
            ),
            (json!({"threshold": 1e9}), vec![]),
            (json!({"user_id": "eve"}), vec![]),
            (json!({"as_of": "2020-01-01T00:00:00Z"}), vec![]),
        ] {
            let mut body =
                json!({"query": "tea", "user_id": "ada", "top_k": 10, "explain": false, "filters": {}});
            body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            let answer = server.post("/search", body).await;
            assert_eq!(found(&answer.json()), expected, "{extra}");
        }
        for limits in [json!({"top_k": 1}), json!({"limit": 1.0}), json!({"top_k": 1, "limit": 5})] {
            let mut body = json!({"query": "tea", "user_id": "ada"});
            body.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
            assert_eq!(found(&server.post("/search", body).await.json()).len(), 1, "{limits}");
        }
    }
}
