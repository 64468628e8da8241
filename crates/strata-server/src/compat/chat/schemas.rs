//! The requests and the failures of the providers' APIs in the OpenAPI document. Only the fields that Strata reads are
//! described; the upstream checks the others.

use serde_json::{Value, json};

use super::options;

/// The schemas by their names.
pub(crate) fn schemas() -> Vec<(&'static str, Value)> {
    let list = json!({ "type": "array", "items": { "type": "object" } });
    let stream = json!({ "type": ["boolean", "null"] });
    let label = json!({ "type": ["string", "null"], "maxLength": 256, "pattern": r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]*$" });
    let metadata = json!({ "properties": { "user_id": label } });
    let openai = json!({
        "stream": stream, "user": label, "safety_identifier": label, "prompt_cache_key": label, "metadata": metadata,
    });
    let kept = json!({ "anyOf": [
        label,
        { "type": "object", "required": ["id"], "properties": { "id": { "type": "string", "minLength": 1, "maxLength": 256, "pattern": r"^[^\x00-\x1f\x7f-\x9f]+$" } } },
    ] });
    let input = json!({ "anyOf": [{ "type": ["string", "null"] }, list] });
    let response = with(
        &openai,
        json!({
            "input": input, "conversation": kept, "previous_response_id": { "type": ["string", "null"] },
        }),
    );
    vec![
        (
            "ChatRequest",
            request("OpenAI's request", &["messages"], &with(&openai, json!({ "messages": list }))),
        ),
        ("ResponsesRequest", request("OpenAI's request", &[], &response)),
        (
            "MessagesRequest",
            request(
                "Anthropic's request",
                &["messages"],
                &json!({ "messages": list, "stream": stream, "metadata": metadata }),
            ),
        ),
        (
            "OllamaChatRequest",
            request("Ollama's request", &[], &json!({ "messages": list, "stream": stream })),
        ),
        (
            "OllamaGenerateRequest",
            request(
                "Ollama's request",
                &[],
                &json!({ "prompt": { "type": ["string", "null"] }, "stream": stream }),
            ),
        ),
        ("ChatErrorResponse", openai_failure()),
        ("MessagesErrorResponse", anthropic_failure()),
        ("OllamaErrorResponse", ollama_failure()),
    ]
}

fn request(of: &str, required: &[&str], fields: &Value) -> Value {
    json!({
        "type": "object",
        "description": format!("{of} with a few fields of Strata's own, which are not passed on."),
        "required": required,
        "properties": with(&options::properties(), fields.clone()),
        "additionalProperties": true,
    })
}

fn with(some: &Value, more: Value) -> Value {
    let mut all = more;
    if let (Some(all), Some(some)) = (all.as_object_mut(), some.as_object()) {
        all.extend(some.clone());
    }
    all
}

fn openai_failure() -> Value {
    json!({
        "type": "object",
        "description": "A failure in the shape of OpenAI's. One of the upstream's is passed on as it came.",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "type"],
                "properties": {
                    "message": { "type": "string", "description": "what went wrong, for a person" },
                    "type": { "type": ["string", "null"], "description": "the class of failure" },
                    "param": { "type": ["string", "null"], "description": "the field that is to blame" },
                    "code": { "type": ["string", "integer", "null"], "description": "the failure, for a program" },
                },
            },
        },
    })
}

fn anthropic_failure() -> Value {
    json!({
        "type": "object",
        "description": "A failure in the shape of Anthropic's. One of the upstream's is passed on as it came.",
        "required": ["type", "error"],
        "properties": {
            "type": { "type": "string" },
            "error": {
                "type": "object",
                "required": ["type", "message"],
                "properties": {
                    "type": { "type": "string", "description": "the class of failure" },
                    "message": { "type": "string", "description": "what went wrong, for a person" },
                    "code": { "type": "string", "description": "the failure, for a program" },
                },
            },
        },
    })
}

fn ollama_failure() -> Value {
    json!({
        "type": "object",
        "description": "A failure in the shape of Ollama's. One of the upstream's is passed on as it came.",
        "required": ["error"],
        "properties": {
            "error": { "type": "string", "description": "what went wrong, for a person" },
            "code": { "type": "string", "description": "the failure, for a program" },
        },
    })
}
