//! The calls of `/mcp`: every listed tool, with every id and name of ann's that fits.

use serde_json::{Value, json};

use crate::matrix::{self, Call};
use crate::world::Ann;

/// The tools and the scope that each needs. A tool that is missing here fails the test.
pub(crate) const TOOLS: [(&str, &str); 10] = [
    ("search_memories", "read"),
    ("add_memory", "write"),
    ("get_memories", "read"),
    ("get_memory", "read"),
    ("update_memory", "write"),
    ("delete_memory", "write"),
    ("delete_all_memories", "write"),
    ("forget_user", "write"),
    ("get_context", "read"),
    ("explain_recall", "read"),
];

/// One message.
pub(crate) fn message(method: &str, params: Value) -> Call {
    Call {
        method: "POST".to_owned(),
        path: "/mcp".to_owned(),
        headers: vec![("Accept".to_owned(), "application/json, text/event-stream".to_owned())],
        body: Some(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })),
        names_ann: false,
        is_varied: false,
    }
}

/// All values of ann's for an argument of this name.
fn tempting(name: &str, ann: &Ann) -> Vec<Value> {
    let all = || matrix::tempting("id", ann);
    match name {
        "memory_id" | "item_id" | "request_id" => all(),
        "kinds" => vec![json!(["turn"]), json!(["memory"])],
        "turns" => vec![json!(1000)],
        "history" => vec![json!(true)],
        // Only `forget_user` needs it.
        "user_id" => vec![json!("ann")],
        other => matrix::tempting(other, ann),
    }
}

/// All calls of a tool, as `tools/list` describes it.
pub(crate) fn calls(tool: &Value, ann: &Ann) -> Vec<Call> {
    let name = tool["name"].as_str().unwrap();
    let schema = &tool["inputSchema"];
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap()).collect();
    // Each required argument with each of its values, the others with their first.
    let mut requests = vec![json!({})];
    for name in &required {
        let values = tempting(name, ann);
        let with = |request: &Value, value: &Value| {
            let mut request = request.clone();
            request[*name] = value.clone();
            request
        };
        requests =
            requests.iter().flat_map(|request| values.iter().map(|value| with(request, value))).collect();
    }
    let base = requests[0].clone();
    let fields = schema["properties"].as_object().unwrap().keys();
    for field in fields.filter(|field| *field != "user_id" && !required.contains(&field.as_str())) {
        requests.extend(tempting(field, ann).into_iter().map(|value| {
            let mut request = base.clone();
            request[field] = value;
            request
        }));
    }
    let call = |arguments: &Value| message("tools/call", json!({ "name": name, "arguments": arguments }));
    let mut calls: Vec<Call> = requests.iter().map(call).collect();
    for request in &requests {
        let mut named = request.clone();
        named["user_id"] = json!("ann");
        calls.push(Call { names_ann: true, ..call(&named) });
        let mut by_header = call(request);
        by_header.headers.push(("X-Strata-User".to_owned(), "ann".to_owned()));
        calls.push(Call { names_ann: true, ..by_header });
    }
    calls
}

/// Ann's memories as resources.
pub(crate) fn resources(ann: &Ann) -> Vec<Call> {
    let ids = matrix::tempting("id", ann).into_iter();
    let read = ids.map(|id| {
        message("resources/read", json!({ "uri": format!("strata://memories/{}", id.as_str().unwrap()) }))
    });
    let mut calls: Vec<Call> = read.chain([message("resources/list", json!({}))]).collect();
    for call in calls.clone() {
        let mut call = call;
        call.headers.push(("X-Strata-User".to_owned(), "ann".to_owned()));
        calls.push(Call { names_ann: true, ..call });
    }
    calls
}
