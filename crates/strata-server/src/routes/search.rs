//! `POST /search`: recall.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Number, Value};
use strata_core::SessionId;
use strata_core::key::KeyScope;
use strata_core::scope::RecallScope;
use strata_core::store::ItemKinds;
use strata_engine::Filter;
use strata_engine::recall::{Budget, MAX_LIMIT, RecallRequest, RecallSettings};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};

use crate::app::App;
use crate::compat::mem0::LenientBody;
use crate::error::ApiError;
use crate::extract::numbers::{count, share};
use crate::identity::Caller;
use crate::identity::memories::{checked_agent, filter, names_user, user_of};
use crate::moment::Moment;
use crate::route::{Dialect, Route};
use crate::telemetry::set_request_id;
use crate::wire::SearchResponse;
use crate::wire::names::Scope;

/// The most tokens that a request may ask for, as in the setting `max_context_tokens`.
pub(crate) const MAX_TOKENS: u32 = 10_000_000;

/// The warning for a search of one session that names none.
const NO_SESSION: &str = "`scope` is `session` and the request names no session, so the session `default` was searched; name one in `session_id`";

pub(crate) fn routes() -> Vec<Route> {
    // The body is a question. Nothing is written.
    vec![Route::new(__path_search, search).needs(&[KeyScope::Read]).speaks(Dialect::Mem0)]
}

/// A question to memory.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchRequest {
    /// The question, with at most 10,000 characters. A longer one is answered with 413.
    #[schema(min_length = 1, pattern = r"^[^\x00]*[^\s\x00\x85][^\x00]*$")]
    query: String,
    /// The user whose memory is searched. Defaults to the user `default`.
    #[schema(min_length = 1, max_length = 256, pattern = r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")]
    user_id: Option<String>,
    /// The same as `user_id`, which takes precedence.
    #[schema(min_length = 1, max_length = 256, pattern = r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")]
    user: Option<String>,
    /// The session the question is asked in.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    session_id: Option<String>,
    /// The same as `session_id`, which takes precedence.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    memory_id: Option<String>,
    /// The same as `session_id`, which takes precedence.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    run_id: Option<String>,
    /// Where to search: `session` searches one session, `user` all items of the user, `global` also the memories that
    /// all users share. By default recall searches the session if one is named, and goes beyond it if it finds too
    /// little there or if the question refers to other sessions. Without a session it searches all items of the user.
    /// In both cases it includes the memories that all users share. With `session` and no session named, the session
    /// is `default`, and the answer has a `warning`. A session that is named without a user is always searched alone, with the memories that all users
    /// share; so is each session with a key, or by default with the setting, whose recall scope is `session`. The
    /// answer's `scope` says where recall searched.
    scope: Option<Scope>,
    /// Returns only items whose fields or metadata match these conditions.
    #[schema(schema_with = filter_schema)]
    filters: Option<Map<String, Value>>,
    /// Only memories of this agent.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    agent_id: Option<String>,
    /// The most items. It raises the number of items and never their tokens.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    top_k: Option<Number>,
    /// The same as `top_k`, which takes precedence.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<Number>,
    /// Excludes items with a lower relevance, instead of the setting `score_threshold`. Above 0, recent turns are not
    /// returned as a fallback if nothing matches.
    #[schema(minimum = 0, maximum = 1)]
    threshold: Option<f64>,
    /// The weight of recency, instead of the setting.
    #[schema(minimum = 0, maximum = 1)]
    recency_weight: Option<f64>,
    /// The weight of relevance against diversity, instead of the setting.
    #[schema(minimum = 0, maximum = 1)]
    mmr_lambda: Option<f64>,
    /// Whether a cross-encoder reads the best candidates with the question and reorders them, instead of the setting
    /// `recall.rerank`. The scores stay the same.
    rerank: Option<bool>,
    /// The most tokens of all items together, instead of the setting `max_context_tokens`.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 10_000_000)]
    max_tokens: Option<Number>,
    /// The kinds to search: turns, memories and summaries. Without it, turns and memories; if none of them is relevant enough,
    /// the summaries (`retrieval_path` is then `summaries_only`).
    #[schema(min_items = 1)]
    kinds: Option<Vec<SearchedKind>>,
    /// Searches the items that were visible at this time, instead of now.
    as_of: Option<Moment>,
    /// Whether to return the outcome of each candidate, and to store it with the request.
    explain: Option<bool>,
}

/// The kind of items that a search looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SearchedKind {
    /// Turns.
    Turn,
    /// Memories.
    Memory,
    /// Summaries of sessions.
    Summary,
}

/// A filter or nothing. The document defines a filter once.
fn filter_schema() -> RefOr<Schema> {
    let nothing = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().item(nothing).item(Ref::from_schema_name("Filter")).into()
}

fn item_kinds(kinds: Option<Vec<SearchedKind>>) -> Result<ItemKinds, ApiError> {
    let Some(kinds) = kinds else { return Ok(ItemKinds::ALL) };
    if kinds.is_empty() {
        return Err(ApiError::invalid(
            "`kinds` is empty; name `turn`, `memory` or `summary`, or leave it out",
        ));
    }
    Ok(ItemKinds {
        turns: kinds.contains(&SearchedKind::Turn),
        memories: kinds.contains(&SearchedKind::Memory),
        summaries: kinds.contains(&SearchedKind::Summary),
    })
}

impl SearchRequest {
    /// The filter, including the agent.
    fn filter(&self) -> Result<Option<Filter>, ApiError> {
        let filter = filter(self.filters.as_ref())?;
        let Some(agent) = self.agent_id.clone().map(checked_agent).transpose()? else { return Ok(filter) };
        let agent = Filter::from_json(&Map::from_iter([("agent_id".to_owned(), Value::from(agent))]))?;
        Ok(Some(Filter::All(filter.into_iter().chain([agent]).collect())))
    }

    /// How far recall may look from a session, if the request says so.
    fn asked_scope(&self) -> Option<RecallScope> {
        self.scope.map(|scope| match scope {
            Scope::Session => RecallScope::Session,
            Scope::User | Scope::Global => RecallScope::User,
        })
    }

    fn into_recall(
        self,
        caller: &Caller,
        settings: &RecallSettings,
        filter: Option<Filter>,
    ) -> Result<RecallRequest, ApiError> {
        let top_k = count("top_k", &self.top_k, MAX_LIMIT)?;
        let limit = top_k.or(count("limit", &self.limit, MAX_LIMIT)?);
        let max_tokens = count("max_tokens", &self.max_tokens, MAX_TOKENS)?;
        let session = caller.session([&self.session_id, &self.memory_id, &self.run_id])?;
        let names_user = names_user(caller, [&self.user_id, &self.user], filter.as_ref());
        let within = caller.recall_scope(names_user, session.as_ref(), self.asked_scope());
        let nameless = session.is_none() && within == Some(RecallScope::Session);
        Ok(RecallRequest {
            session: if nameless { Some(SessionId::default()) } else { session },
            scope: self.scope.map(Into::into),
            within,
            kinds: item_kinds(self.kinds)?,
            filter,
            as_of: self.as_of.map(Moment::as_of),
            limit,
            score_threshold: share("threshold", self.threshold)?,
            recency_weight: share("recency_weight", self.recency_weight)?,
            mmr_lambda: share("mmr_lambda", self.mmr_lambda)?,
            rerank: self.rerank,
            budget: max_tokens.map(|max_tokens| Budget { max_tokens, ..settings.budget.for_items(limit) }),
            explain: self.explain.unwrap_or(false),
            ..RecallRequest::new(self.query)
        })
    }
}

/// Search memory
///
/// Returns turns and memories that answer a question, the best first. Each memory names the turns that it comes from.
#[utoipa::path(post, path = "/search", tag = "search", request_body = SearchRequest,
    responses((status = 200, description = "the found items", body = SearchResponse)))]
async fn search(
    State(app): State<App>,
    caller: Caller,
    LenientBody(request): LenientBody<SearchRequest>,
) -> Result<Response, ApiError> {
    let filter = request.filter()?;
    let user = user_of(&caller, [&request.user_id, &request.user], filter.as_ref())?;
    let is_session = matches!(request.scope, Some(Scope::Session));
    let named = caller.session([&request.session_id, &request.memory_id, &request.run_id])?;
    let warning = (is_session && named.is_none()).then_some(NO_SESSION);
    let request = request.into_recall(&caller, &app.engine().settings().recall, filter)?;
    let recalled = app.engine().recall.ask(&user, &request).await?;
    app.meters().searched(recalled.path.as_str());

    let found = SearchResponse::load(app.engine(), &user, &recalled).await?.warning(warning);
    let mut response = Json(found).into_response();
    set_request_id(&mut response, recalled.request_id.0);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::{TestServer, with_window_on};

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
    async fn found_memories_name_their_turns() {
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
            item["relevance"] = json!("positive");
        }
        insta::assert_snapshot!("found", serde_json::to_string_pretty(&shown).unwrap());
    }

    #[tokio::test]
    async fn a_search_is_reranked_when_asked() {
        let server = TestServer::with_reversing_reranker();
        for content in ["the quay is closed on Sunday", "a quay", "which boats lie at that quay in winter"] {
            let messages = json!([{"role": "user", "content": content}]);
            server.post("/turns", json!({"user_id": "ada", "messages": messages})).await;
        }
        let ask = async |rerank: Value| {
            let body = json!({"query": "quay", "user_id": "ada", "threshold": 0, "recency_weight": 0, "rerank": rerank});
            server.post("/search", body).await
        };
        let list = |answer: Value| {
            let items = answer["results"].as_array().unwrap().clone();
            items.iter().map(|item| item["memory"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let plain = list(ask(Value::Null).await.json());
        assert_eq!(list(ask(json!(false)).await.json()), plain);
        let mut reranked = list(ask(json!(true)).await.json());
        assert_eq!((plain.len(), reranked.len()), (3, 3));
        reranked.reverse();
        assert_eq!(reranked, plain);
        assert_eq!(ask(json!("yes")).await.status, 400);
    }

    #[tokio::test]
    async fn a_search_explains_itself_when_asked() {
        let server = with_tea().await;
        let ask = async |body: Value| server.post("/search", body).await.json();
        assert_eq!(ask(json!({"query": "green", "user_id": "ada"})).await.get("trace"), None);
        let answer = ask(json!({"query": "green", "user_id": "ada", "top_k": 1, "explain": true})).await;
        let candidates = answer["trace"]["candidates"].as_array().unwrap();
        assert_eq!(candidates[0]["id"], answer["results"][0]["id"]);
        assert_eq!(candidates[0]["reason"], "served as number 1");
        assert_eq!(candidates[1]["outcome"], "not_chosen");
    }

    #[tokio::test]
    async fn a_long_item_is_shortened_and_says_so() {
        let server = TestServer::new();
        server
            .post("/memories", json!({"user_id": "ada", "text": format!("tea {}", "x".repeat(5_000))}))
            .await;
        let answer = server.post("/search", json!({"query": "tea", "user_id": "ada"})).await.json();
        assert_eq!((&answer["truncated"], &answer["results"][0]["truncated"]), (&json!(true), &json!(true)));
        let shown = answer["results"][0]["memory"].as_str().unwrap();
        assert!(shown.chars().count() == 1_500 && shown.ends_with('…'), "{shown}");
        let counted = json!({"query": "tea", "user_id": "ada", "top_k": 1});
        let counted = server.post("/search", counted).await.json();
        assert_eq!(counted["results"][0]["memory"], shown, "a number of items does not lift the budget");
    }

    #[tokio::test]
    async fn scope_limit_and_threshold_narrow_the_answer() {
        let server = with_tea().await;
        for (extra, expected) in [
            (
                json!({}),
                vec![
                    "prefers green tea",
                    "she drinks black tea",
                    "tea is served at four",
                    "we drink green tea",
                ],
            ),
            (
                json!({"session_id": "t", "scope": "session"}),
                vec!["prefers green tea", "she drinks black tea"],
            ),
            (
                json!({"session_id": "t"}),
                vec![
                    "prefers green tea",
                    "she drinks black tea",
                    "tea is served at four",
                    "we drink green tea",
                ],
            ),
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
            (json!({"kinds": ["memory"]}), vec!["prefers green tea", "tea is served at four"]),
            (json!({"kinds": ["turn"]}), vec!["she drinks black tea", "we drink green tea"]),
            (json!({"max_tokens": 3}), vec!["prefers green tea"]),
            (json!({"scope": "session"}), vec!["prefers green tea"]),
            (json!({"user_id": "eve"}), vec!["tea is served at four"]),
            (json!({"user_id": "eve", "scope": "user"}), vec![]),
            (json!({"as_of": "2020-01-01T00:00:00Z"}), vec![]),
        ] {
            let mut body =
                json!({"query": "tea", "user_id": "ada", "top_k": 10, "explain": false, "filters": {}});
            body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            let answer = server.post("/search", body).await;
            assert_eq!(found(&answer.json()), expected, "{extra}");
            let is_nameless = extra == json!({"scope": "session"});
            assert_eq!(answer.json()["warning"].is_string(), is_nameless, "{extra}");
        }
        let wider = json!({"query": "tea", "user_id": "ada", "session_id": "t"});
        let wider = server.post("/search", wider).await.json();
        assert_eq!(wider["scope"], "user");
        assert!(wider["expansion"].as_str().unwrap().contains("fewer than 3"), "{wider}");
        for limits in [json!({"top_k": 1}), json!({"limit": 1.0}), json!({"top_k": 1, "limit": 5})] {
            let mut body = json!({"query": "tea", "user_id": "ada"});
            body.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
            assert_eq!(found(&server.post("/search", body).await.json()).len(), 1, "{limits}");
        }
        for (query, threshold, expected) in [
            ("what did I just say?", json!(null), 3),
            ("what did I just say?", json!(0.5), 0),
            ("qqqq zzzz", json!(null), 0),
        ] {
            let body = json!({"query": query, "user_id": "ada", "threshold": threshold});
            let answer = server.post("/search", body).await.json();
            assert_eq!(
                found(&answer).len(),
                expected,
                "{query} {threshold}: what was said last has no relevance"
            );
            assert_eq!(answer["retrieval_path"], if expected > 0 { "window" } else { "nothing" });
        }
    }

    #[tokio::test]
    async fn summaries_are_a_kind_of_their_own() {
        let server = with_window_on(TestServer::with_lexicon()).await;
        let search = async |kinds: Value| {
            let body = json!({"user_id": "ada", "query": "the relay of the kiln in Gdansk", "kinds": kinds, "threshold": 0});
            let answer = server.post("/search", body).await.json();
            let kinds = answer["results"].as_array().unwrap().iter().map(|item| item["kind"].clone());
            let mut kinds: Vec<Value> = kinds.collect();
            kinds.dedup();
            Value::from(kinds)
        };
        assert_eq!(search(json!(["summary"])).await, json!(["summary"]));
        assert_eq!(search(json!(["turn"])).await, json!(["turn"]));
        assert_eq!(search(json!(["memory"])).await, json!([]));
        assert_eq!(search(Value::Null).await, json!(["turn"]), "no summary stands beside turns");
        let refused = json!({"user_id": "ada", "query": "kiln", "kinds": []});
        assert_eq!(server.post("/search", refused).await.status, 400);
    }
}
