//! `GET /openapi.json`: a description of the server's requests and answers, complete enough to generate tests from
//! it.
//!
//! The document is made from the list of routes. Each handler describes itself. The parts that all handlers share
//! (user and session, the id of an answer, the errors, the scopes of a key) are added here.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::Extension;
use axum::http::{Method, header};
use axum::response::IntoResponse;
use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use super::{context, state};
use crate::compat::chat;
use crate::error::ErrorResponse;
use crate::route::{Access, Dialect, Route, Rules};

pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(__path_read_openapi, read_openapi).needs(&[]).unlimited()]
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Strata",
        description = "Memory for any LLM application. Every failure is JSON in the shape of `ErrorResponse`; a path that \
            is not listed answers 404, a method that is not listed 405 with `Allow`. Under `/v1`, `/api` and `/openai` a failure \
            has the shape of the imitated API, and paths that are not listed are passed to the upstream."
    ),
    components(schemas(ErrorResponse))
)]
struct Base;

/// The document. It is made at the first request for it.
#[derive(Clone, Copy)]
pub(crate) struct Document(pub(crate) &'static LazyLock<Value>);

/// Makes the document of some routes.
pub(crate) fn document(routes: &[Route]) -> Value {
    let mut document = Base::openapi();
    for describe in routes.iter().flat_map(|route| &route.operations) {
        describe(&mut document);
    }
    let rules: HashMap<&str, Rules> = routes.iter().map(|route| (route.path.as_str(), route.rules)).collect();
    let mut document = serde_json::to_value(document).unwrap_or_default();
    for_each_operation(&mut document, |method, path, operation| {
        let rules = rules.get(path).copied().unwrap_or_default();
        complete(rules, operation);
        describe_scopes(rules, method, operation);
    });
    describe_keys(&mut document);
    refine(&mut document["components"]["schemas"]);
    document
}

/// Read this document
#[utoipa::path(get, path = "/openapi.json", tag = "operations",
    responses((status = 200, description = "OpenAPI 3.1", body = Object, content_type = "application/json")))]
async fn read_openapi(Extension(Document(document)): Extension<Document>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], document.to_string())
}

impl Document {
    /// Every documented method and path, by path.
    pub(crate) fn operations(self) -> Vec<(String, String)> {
        let paths = self.0["paths"].as_object().into_iter().flatten();
        let methods =
            |methods: &Value| methods.as_object().into_iter().flat_map(Map::keys).cloned().collect();
        paths
            .flat_map(|(path, item)| {
                let methods: Vec<String> = methods(item);
                methods.into_iter().map(|method| (method.to_uppercase(), path.clone()))
            })
            .collect()
    }
}

fn for_each_operation(document: &mut Value, mut change: impl FnMut(&str, &str, &mut Value)) {
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for (path, methods) in paths.into_iter().flatten() {
        for (method, operation) in methods.as_object_mut().into_iter().flatten() {
            change(method, path, operation);
        }
    }
}

/// How a key is sent. The empty alternative says that no key is needed as long as the store has none.
fn describe_keys(document: &mut Value) {
    document["components"]["securitySchemes"] = json!({
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "a key, as `strata keys create` shows it; requests with it ask for its user",
        },
        "api_key": {
            "type": "apiKey",
            "in": "header",
            "name": "X-API-Key",
            "description": "the same key, where `Authorization` holds that of a model provider",
        },
    });
    document["security"] = json!([{}, { "bearer": [] }, { "api_key": [] }]);
}

/// Adds the scopes that a key needs for an operation.
fn describe_scopes(rules: Rules, method: &str, operation: &mut Value) {
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap_or_default();
    match rules.access.needed(&method) {
        None => operation["security"] = json!([]),
        Some(needed) => {
            let scopes: Vec<&str> = needed.scopes.iter().map(|scope| scope.as_str()).collect();
            operation["x-strata-scopes"] = json!(scopes);
        }
    }
}

/// Adds the parts that all operations of a kind share to an operation.
fn complete(rules: Rules, operation: &mut Value) {
    let is_api = operation["tags"] != json!(["operations"]);
    // Deleting many memories takes the user from the query alone; the header may only repeat it.
    if is_api && operation["operationId"] != "delete_memories" {
        // If the path names the session, the header has no effect.
        let takes_session =
            operation.get("requestBody").is_some() && operation["tags"] != json!(["sessions"]);
        if let Some(parameters) = parameters(operation) {
            parameters.push(name_header(
                "X-Strata-User",
                "who is asking; goes before what the body or query names, and may only agree with a key that is bound to a user",
            ));
            if takes_session {
                parameters
                    .push(name_header("X-Strata-Session", "the session; goes before what the body names"));
            }
        }
    }
    if let Some(body) = operation.get_mut("requestBody") {
        body["required"] = json!(true);
    }
    add_failures(rules, operation);
    describe_answers(rules, operation);
}

/// Adds the failures that the operation does not describe itself.
fn add_failures(rules: Rules, operation: &mut Value) {
    let is_api = operation["tags"] != json!(["operations"]);
    let is_proxied = rules.dialect.is_proxied();
    let needs_key = rules.access != Access::Open;
    let takes_body = operation.get("requestBody").is_some();
    let failures: &[(&str, bool, &str)] = &[
        ("400", is_api, "the request cannot be right; the message says what to do"),
        ("401", needs_key, "a key is needed, or the one that was sent is not good"),
        (
            "403",
            true,
            "the key is bound to another user or lacks a scope, or `Host` or `Origin` is not this server's",
        ),
        ("408", takes_body, "the body did not arrive in time"),
        ("413", takes_body, "the body, or a text in it, is too large"),
        ("415", takes_body && !is_proxied, "the body is not JSON"),
        ("429", needs_key, "the key asks more than it may; `Retry-After` says when to come again"),
        ("500", true, "a defect, or stored data that cannot be right"),
        ("502", is_proxied, "the upstream cannot be reached"),
        ("503", is_api, "the store does not answer now, or the request took too long; try again"),
        ("504", is_proxied, "the upstream did not answer in time"),
        ("default", is_proxied, "any other answer of the upstream, unchanged"),
    ];
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { return };
    for (status, applies, description) in failures {
        if *applies && !responses.contains_key(*status) {
            responses.insert((*status).to_owned(), json!({ "description": description }));
        }
    }
}

/// Adds the shape of each failure, and the id of each answer.
fn describe_answers(rules: Rules, operation: &mut Value) {
    let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
    for (status, response) in responses.into_iter().flatten() {
        if !status.starts_with('2') {
            let name = error_schema(rules.dialect);
            let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
            response["content"] = json!({ "application/json": { "schema": schema } });
        }
        response["headers"]["X-Strata-Request-Id"] = json!({
            "description": "the answer's id, which the server's log knows",
            "required": true,
            "schema": { "type": "string", "format": "uuid" },
        });
    }
}

/// The name of a dialect's error.
fn error_schema(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAi => "ChatErrorResponse",
        Dialect::Anthropic => "MessagesErrorResponse",
        Dialect::Ollama => "OllamaErrorResponse",
        Dialect::Strata | Dialect::Mem0 | Dialect::Page => "ErrorResponse",
    }
}

/// Adds the dependencies between fields of a body, which Rust types do not express.
fn refine(schemas: &mut Value) {
    let text = |name: &str| json!({ "required": [name], "properties": { name: { "type": "string" } } });
    let absent = |name: &str| json!({ "properties": { name: { "type": "null" } } });
    let scope = |names: Value| json!({ "required": ["scope"], "properties": { "scope": { "enum": names } } });

    // No NUL anywhere in a client's metadata: not every store can store one.
    let no_nul = json!({ "type": "string", "pattern": r"^[^\x00]*$" });
    let any = json!({ "$ref": "#/components/schemas/MetadataValue" });
    schemas["MetadataValue"] = json!({ "anyOf": [
        { "type": ["null", "boolean", "number"] },
        no_nul,
        { "type": "array", "items": any },
        { "type": "object", "propertyNames": no_nul, "additionalProperties": any },
    ] });
    filters(schemas);
    schemas["ContextDocument"] = context::schema();
    schemas["StateDocument"] = state::schema();
    for (name, schema) in chat::schemas() {
        schemas[name] = schema;
    }
    for name in ["MessageRequest", "AddRequest", "ReviseRequest"] {
        let metadata = &mut schemas[name]["properties"]["metadata"];
        metadata["propertyNames"] = no_nul.clone();
        metadata["additionalProperties"] = any.clone();
    }

    // The text of a memory must not be empty; a turn may be empty.
    schemas["StatementRequest"] = schemas["MessageRequest"].clone();
    schemas["StatementRequest"]["properties"]["content"]["pattern"] =
        json!(r"^[^\x00]*[^\s\x00\x85][^\x00]*$");
    let messages = &mut schemas["AddRequest"]["properties"]["messages"];
    messages["items"] = json!({ "$ref": "#/components/schemas/StatementRequest" });
    messages["minItems"] = json!(1);
    let messages = json!({ "required": ["messages"], "properties": { "messages": { "type": "array" } } });
    schemas["AddRequest"]["allOf"] = json!([
        { "oneOf": [
            { "allOf": [text("text"), absent("messages")] },
            { "allOf": [messages, absent("text")] },
        ] },
        // A setting decides where an inferred memory holds. By default, statements are inferred from messages.
        { "if": { "anyOf": [
                { "required": ["infer"], "properties": { "infer": { "const": true } } },
                { "allOf": [messages, absent("infer")] },
            ] },
            "then": { "properties": { "scope": { "enum": [null, "user"] } } } },
        { "if": scope(json!(["user", "global"])), "then": { "allOf": [absent("run_id"), absent("session_id")] } },
    ]);
    schemas["ReviseRequest"]["anyOf"] = json!([text("text"), text("memory"), text("data")]);
}

/// A filter: conditions on fields by their names, combined.
fn filters(schemas: &mut Value) {
    let filter = json!({ "$ref": "#/components/schemas/Filter" });
    let list = |least: u32| json!({ "type": "array", "items": filter, "minItems": least });
    let values = json!({ "type": "array", "items": {}, "maxItems": 1000 });
    let ordered = json!({ "type": ["number", "string"] });
    let text = json!({ "type": "string" });
    schemas["FilterCondition"] = json!({
        "description": "a value that the field is, a list of values of which it is one, `*` where it is there, or operators",
        "anyOf": [
            { "type": ["null", "boolean", "number", "string"] },
            values,
            { "type": "object", "minProperties": 1, "additionalProperties": false, "properties": {
                "eq": {}, "ne": {}, "in": values, "nin": values,
                "gt": ordered, "gte": ordered, "lt": ordered, "lte": ordered,
                "contains": text, "icontains": text,
            } },
        ],
    });
    let names = json!({ "type": "string", "minLength": 1, "maxLength": 256 });
    schemas["Filter"] = json!({
        "description": "all of its conditions must hold",
        "type": "object",
        "propertyNames": names,
        "properties": { "AND": list(0), "OR": list(1), "NOT": { "anyOf": [list(1), filter] } },
        "additionalProperties": { "$ref": "#/components/schemas/FilterCondition" },
    });
}

fn parameters(operation: &mut Value) -> Option<&mut Vec<Value>> {
    operation.as_object_mut()?.entry("parameters").or_insert_with(|| json!([])).as_array_mut()
}

/// A header that names a user or a session. Values beyond ASCII are UTF-8, which this format cannot express.
fn name_header(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "in": "header",
        "required": false,
        "description": description,
        "schema": { "type": "string", "minLength": 1, "maxLength": 256, "pattern": r"^(?!\*$)[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$" },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use axum::body::Body;
    use axum::http::StatusCode;

    use super::*;
    use crate::router;
    use crate::testing::{TestServer, request};

    fn documented() -> BTreeSet<(String, String)> {
        static DOCUMENT: LazyLock<Value> = LazyLock::new(|| document(&router::all()));
        Document(&DOCUMENT).operations().into_iter().collect()
    }

    #[tokio::test]
    async fn the_document_lists_exactly_the_routes_of_the_router() {
        let server = TestServer::new();
        let mut served = BTreeSet::new();
        for path in crate::routes::routes().into_iter().map(|route| route.path) {
            for method in
                [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS]
            {
                let uri = path.replace("{id}", "00000000-0000-0000-0000-000000000000");
                let answer = server.send(request(method.clone(), &uri).body(Body::empty()).unwrap()).await;
                if answer.status != StatusCode::METHOD_NOT_ALLOWED {
                    served.insert((method.to_string(), path.clone()));
                } else {
                    assert!(answer.header("allow").is_some_and(|allow| !allow.is_empty()), "{method} {path}");
                    assert_eq!(answer.json()["error"]["code"], "method_not_allowed");
                }
            }
        }
        // Except for the chats, everything under the paths of the providers belongs to the upstream.
        for path in [
            "/v1/chat/completions",
            "/v1/responses",
            "/v1/messages",
            "/api/chat",
            "/api/generate",
            "/openai/deployments/{deployment}/chat/completions",
        ] {
            served.insert(("POST".to_owned(), path.to_owned()));
        }
        assert_eq!(served, documented());
    }

    #[tokio::test]
    async fn every_reference_leads_somewhere() {
        let document = TestServer::new().get("/openapi.json").await.json();
        let mut open = vec![&document];
        let mut references = 0;
        while let Some(value) = open.pop() {
            if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
                references += 1;
                assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
            }
            open.extend(value.as_object().into_iter().flat_map(Map::values));
            open.extend(value.as_array().into_iter().flatten());
        }
        assert!(references > 20, "{references}");
    }

    #[test]
    fn the_document_as_clients_see_it() {
        insta::assert_snapshot!("openapi", serde_json::to_string_pretty(&document(&router::all())).unwrap());
    }
}
