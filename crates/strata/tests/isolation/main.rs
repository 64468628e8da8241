//! Two users with keys: no call of one user shows or changes the other's data.
//!
//! The calls come from the running server's own OpenAPI document: every route, every method, every parameter, with ids,
//! names, filters and times of the other user. If [`matrix`] has no values for a route or a parameter, the test fails, so that
//! no new route is forgotten. [`walls`] repeats it inside one user: between sessions without a user, and between the
//! sessions of a key that is confined to one. After every route, the other user's rows in the file are compared, and every answer is searched
//! for words that only the other user has said.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod matrix;
#[path = "../support/mod.rs"]
mod support;
mod tools;
mod upstream;
mod walls;
mod world;

use matrix::{Call, Operation};
use serde_json::json;
use support::Answer;
use world::{MARKER, World};

#[test]
fn no_call_shows_or_changes_what_is_anothers() {
    let mut world = World::new();
    // A key with all scopes of one user has no access to another user.
    for scopes in ["read,write", "read,write,admin", "chat"] {
        let key = world.key("bob", scopes);
        let before = world.rows_of("ann");
        assert!(before.to_string().matches(MARKER).count() > 20, "there is something to be seen: {before}");
        let shared = world.rows_of("*");
        let mut answered = 0;
        for operation in matrix::operations(&world.document) {
            world.record_for_bob();
            for call in matrix::calls(&operation, &world.document, &world.ann) {
                let answer = world.send(&key, &call);
                check(&world, &operation, &call, &answer);
                // The scripted model repeats the request that it received, including the headers.
                assert!(!answer.text().contains(&key), "a key is passed on or repeated: {call:?}");
                answered += usize::from(answer.status < 300);
            }
            let what = format!("{} {} with `{scopes}`", operation.method, operation.path);
            assert_eq!(world.rows_of("ann"), before, "{what}");
            if scopes != "read,write,admin" {
                assert_eq!(world.rows_of("*"), shared, "{what} changes what all share");
            }
        }
        // A key for chats opens nothing else.
        let least = if scopes == "chat" { 10 } else { 200 };
        assert!(
            answered > least,
            "{answered} calls were answered: the others were refused for another reason"
        );
    }
}

#[track_caller]
fn check(world: &World, operation: &Operation, call: &Call, answer: &Answer) {
    let text = answer.text();
    let what =
        format!("{call:?} answered {} {}", answer.status, text.chars().take(2_000).collect::<String>());
    assert!(answer.status < 500 && answer.status != 401, "{what}");
    check_text(world, &text, &what);
    if call.names_ann && operation.knows_users {
        // If a parameter does not belong to the route, that error may come first.
        assert!(answer.status == 403 || call.is_varied && answer.status == 400, "{what}");
        let code = code(answer);
        assert!(answer.status == 400 || code == "forbidden_user" || code == "insufficient_scope", "{what}");
    }
}

/// The code of a failure. Ollama's clients read a text in `error`, so it stands beside it there.
fn code(answer: &Answer) -> String {
    let body = answer.json();
    body["error"]["code"].as_str().or(body["code"].as_str()).unwrap_or_default().to_owned()
}

#[track_caller]
fn check_text(world: &World, text: &str, what: &str) {
    assert!(!text.contains(MARKER), "what ann said is shown: {what}");
    for id in &world.ann.unknown {
        assert!(!text.contains(id.as_str()), "an id of ann's is shown: {what}");
    }
}

/// The doors of the proxy, also those that the document does not list: the path, the field of the question, and whether it is a
/// chat.
const DOORS: [(&str, &str, bool); 14] = [
    ("/v1/chat/completions", "messages", true),
    ("/v1/responses", "input", true),
    ("/v1/messages", "messages", true),
    ("/api/chat", "messages", true),
    ("/api/generate", "prompt", true),
    ("/openai/deployments/d/chat/completions?api-version=1", "messages", true),
    ("/openai/v1/chat/completions", "messages", true),
    ("/openai/v1/responses", "input", true),
    ("/openai/responses?api-version=1", "input", true),
    ("/v1/completions", "prompt", false),
    ("/v1/embeddings", "input", false),
    ("/v1/responses/input_tokens", "input", false),
    ("/v1/messages/count_tokens", "messages", false),
    ("/openai/deployments/d/embeddings?api-version=1", "input", false),
];

/// A question at a door, with these names in the places where other programs put them.
fn at_door((path, field, _): (&str, &str, bool), user: &str, session: &str) -> Call {
    let question = "which garden do I like";
    let mut body = json!({ "model": "any", "max_tokens": 9, "user": user, "safety_identifier": user,
        "metadata": { "user_id": user }, "prompt_cache_key": session });
    body[field] = match field {
        "messages" => json!([{ "role": "user", "content": question }]),
        _ => json!(question),
    };
    let names = [
        ("X-OpenWebUI-User-Id", user),
        ("X-OpenWebUI-Chat-Id", session),
        ("X-LibreChat-User-Id", user),
        ("X-LiteLLM-End-User-Id", user),
        ("X-User-Id", user),
    ];
    Call {
        method: "POST".to_owned(),
        path: path.to_owned(),
        headers: names.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        body: Some(body),
        names_ann: false,
        is_varied: false,
    }
}

/// A key that is bound to bob takes them for labels. The model repeats its request, so the answer shows what it was told.
#[test]
fn names_of_other_programs_never_lead_to_anothers_memory() {
    let mut world = World::new();
    let (anns, bobs) = (world.key("ann", "read,write"), world.key("bob", "read,write"));
    let before = world.rows_of("ann");
    for door in DOORS {
        let session = world.ann.session;
        let mut call = at_door(door, "ann", session);
        let answer = world.send(&bobs, &call);
        let what = format!("{call:?} answered {} {}", answer.status, answer.text());
        assert_eq!(answer.status, 200, "{what}");
        check_text(&world, &answer.text(), &what);
        // Strata's own name is a request for her.
        call.headers.push(("X-Strata-User".to_owned(), "ann".to_owned()));
        let answer = world.send(&bobs, &call);
        let what = format!("{call:?} answered {} {}", answer.status, answer.text());
        assert_eq!(answer.status, 403, "{what}");
        check_text(&world, &answer.text(), &what);
        assert_eq!(world.rows_of("ann"), before, "{door:?}");
    }
    // There is something to be seen: she is shown it.
    for door in DOORS.into_iter().filter(|(_, _, is_chat)| *is_chat) {
        let call = at_door(door, "ann", "another-session");
        let answer = world.send(&anns, &call);
        assert!(answer.text().contains(MARKER), "{door:?}: {}", answer.text());
    }
}

/// A browser names the user in the address of a WebSocket.
#[test]
fn the_address_of_a_websocket_never_names_another_user() {
    let mut world = World::new();
    let key = world.key("bob", "read,write");
    let before = world.rows_of("ann");
    let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")];
    for path in ["/v1/realtime?model=any", "/v1/responses?model=any", "/openai/v1/realtime?model=any"] {
        for (more, header, status) in [
            ("&user_id=ann", None, 403),
            ("", Some(("X-Strata-User", "ann")), 403),
            // The model does not upgrade the connection; it repeats the request.
            ("", Some(("X-OpenWebUI-User-Id", "ann")), 200),
            ("&user_id=bob&session_id=walks", None, 200),
        ] {
            let headers = upgrade.into_iter().chain(header);
            let call = Call {
                method: "GET".to_owned(),
                path: format!("{path}{more}"),
                headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                body: None,
                names_ann: false,
                is_varied: false,
            };
            let answer = world.send(&key, &call);
            let what = format!("{call:?} answered {} {}", answer.status, answer.text());
            assert_eq!(answer.status, status, "{what}");
            check_text(&world, &answer.text(), &what);
        }
    }
    assert_eq!(world.rows_of("ann"), before);
}

#[test]
fn every_route_wants_a_key_with_its_scopes() {
    let mut world = World::new();
    let revoked = world.key("bob", "read,write,admin");
    world.revoke(&revoked);
    for operation in matrix::operations(&world.document) {
        let path = operation.path.replace("{id}", "walks").replace("{deployment}", "d");
        let answer = world.send_plain(None, &operation.method, &path);
        let Some(scopes) = &operation.scopes else {
            assert_eq!(answer.status, 200, "{} {path} is for everybody", operation.method);
            continue;
        };
        assert_eq!((answer.status, code(&answer).as_str()), (401, "missing_api_key"), "{path}");
        let answer = world.send_plain(Some(&revoked), &operation.method, &path);
        assert_eq!((answer.status, code(&answer).as_str()), (401, "invalid_api_key"), "{path}");
        for scope in scopes {
            let others = ["read", "write", "admin"].into_iter().filter(|other| other != scope);
            let key = world.key("bob", &others.collect::<Vec<_>>().join(","));
            let answer = world.send_plain(Some(&key), &operation.method, &path);
            let what = format!("{} {path} without `{scope}`", operation.method);
            assert_eq!((answer.status, code(&answer).as_str()), (403, "insufficient_scope"), "{what}");
        }
    }
}

/// Fields that tell something about a stored memory besides its text.
const STORED_FIELDS: [&str; 9] = [
    "\"kind\":",
    "\"scope\":",
    "\"confidence\":",
    "\"metadata\":",
    "\"valid_from\":",
    "\"valid_to\":",
    "\"created_at\":",
    "\"updated_at\":",
    "\"source\":",
];

/// Every call with the user's own ids and names, with keys that may write but not read.
#[test]
fn a_key_without_read_never_sees_what_is_stored() {
    let mut world = World::new();
    for scopes in ["write", "write,admin"] {
        let key = world.key("ann", scopes);
        let mut answered = 0;
        let operations = matrix::operations(&world.document);
        // What is destroyed cannot be shown any more, so these calls come last.
        let (deleting, others): (Vec<_>, Vec<_>) =
            operations.into_iter().partition(|operation| operation.method == "DELETE");
        for operation in others.into_iter().chain(deleting) {
            let is_reading = operation.scopes.iter().flatten().any(|scope| scope == "read");
            for call in matrix::calls(&operation, &world.document, &world.ann) {
                let answer = world.send(&key, &call);
                let what = format!("{call:?} with `{scopes}` answered {} {}", answer.status, answer.text());
                assert!(!answer.text().contains(MARKER), "what is stored is shown: {what}");
                for field in STORED_FIELDS.iter().filter(|_| call.method != "GET") {
                    assert!(
                        answer.status >= 300 || !answer.text().contains(*field),
                        "{field} is shown: {what}"
                    );
                }
                assert!(answer.status < 500, "{what}");
                assert!(!is_reading || answer.status >= 400, "a route that reads answers: {what}");
                answered += usize::from(answer.status < 300);
            }
        }
        assert!(answered > 30, "{answered} calls were answered: the others were refused for another reason");
    }
}

#[test]
fn a_tool_shows_a_key_without_read_nothing_that_is_stored() {
    let mut world = World::new();
    let key = world.key("ann", "write,admin");
    let listed = world.send(&key, &tools::message("tools/list", json!({}))).json();
    let listed = listed["result"]["tools"].as_array().unwrap().clone();
    let mut answered = 0;
    for call in listed.iter().flat_map(|tool| tools::calls(tool, &world.ann)).collect::<Vec<_>>() {
        let answer = world.send(&key, &call);
        assert!(!answer.text().contains(MARKER), "{call:?} answered {}", answer.text());
        let answer = answer.json();
        answered += usize::from(answer.get("error").is_none() && answer["result"]["isError"] != true);
    }
    assert!(answered > 3, "{answered} calls were answered: the others were refused for another reason");
}

/// The model repeats the head of its request, so the answer shows what went upstream.
#[test]
fn a_key_goes_upstream_in_no_header_scheme_cookie_or_parameter() {
    let mut world = World::new();
    let key = world.key("bob", "read,write");
    let basic = format!("Basic {}", base64(&format!("bob:{key}")));
    let said = json!({ "model": "any", "messages": [{ "role": "user", "content": "which garden" }] });
    let routes = ["/v1/chat/completions", "/v1/embeddings", "/api/embed", "/openai/deployments/d/embeddings"];
    let headers = [
        ("Authorization", key.clone()),
        ("Authorization", format!("Bearer {key}")),
        ("Authorization", format!("Custom token={key}")),
        ("Authorization", basic),
        ("Cookie", format!("theme=dark; token={key}; lang=en")),
        ("Api-Key", key.clone()),
        ("X-Goog-Api-Key", key.clone()),
        ("X-Custom-Auth", format!("Bearer {key}")),
        ("X-Forwarded-Authorization", key.replace('_', "%5F")),
    ];
    for route in routes {
        for (name, value) in &headers {
            let call = Call {
                method: "POST".to_owned(),
                path: format!("{route}?api_key={key}&kept=1"),
                headers: vec![((*name).to_owned(), value.clone())],
                body: Some(said.clone()),
                names_ann: false,
                is_varied: false,
            };
            let answer = world.send(&key, &call);
            let text = answer.text();
            assert_eq!(answer.status, 200, "{route} {name}: {text}");
            assert!(text.contains("kept=1"), "the request is repeated: {text}");
            assert!(!text.contains(&key) && !text.contains(value.as_str()), "{route} {name}: {text}");
            assert!(!text.contains(&key.replace('_', "%5F")), "{route} {name}: {text}");
        }
    }
}

/// A text in Base64.
fn base64(text: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits =
            chunk.iter().chain([0, 0].iter()).take(3).fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        for place in 0..4 {
            let letter = char::from(ALPHABET[(bits >> (18 - 6 * place) & 63) as usize]);
            out.push(if place <= chunk.len() { letter } else { '=' });
        }
    }
    out
}

#[test]
fn no_tool_shows_or_changes_what_is_anothers() {
    let mut world = World::new();
    let key = world.key("bob", "read,write,admin");
    let before = world.rows_of("ann");
    let listed = world.send(&key, &tools::message("tools/list", json!({}))).json();
    let listed = listed["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, tools::TOOLS.map(|(name, _)| name), "a tool is new: put it into the table");
    let mut answered = 0;
    let calls =
        listed.iter().flat_map(|tool| tools::calls(tool, &world.ann)).chain(tools::resources(&world.ann));
    for call in calls.collect::<Vec<_>>() {
        let answer = world.send(&key, &call);
        let what = format!("{call:?} answered {}", answer.text());
        // A header that names another user is refused before any tool is asked.
        let is_refused = answer.status == 403 && call.names_ann;
        assert!(answer.status == 200 || is_refused, "{what}");
        check_text(&world, &answer.text(), &what);
        let answer = answer.json();
        let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
        assert!(failed || !call.names_ann, "{what}");
        answered += usize::from(!failed);
        assert_eq!(world.rows_of("ann"), before, "{what}");
    }
    assert!(answered > 20, "{answered} calls were answered: the others were refused for another reason");
}

#[test]
fn every_tool_wants_its_scope() {
    let mut world = World::new();
    let shared = world.rows_of("bob");
    for (name, scope) in tools::TOOLS {
        let others = ["read", "write", "admin"].into_iter().filter(|other| *other != scope);
        let key = world.key("bob", &others.collect::<Vec<_>>().join(","));
        let arguments = json!({ "text": "x", "query": "x", "memory_id": "x", "request_id": "x" });
        let answer =
            world.send(&key, &tools::message("tools/call", json!({ "name": name, "arguments": arguments })));
        let text = answer.json()["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        assert!(text.contains(&format!("this needs `{scope}`")), "{name}: {}", answer.text());
    }
    let key = world.key("bob", "write,admin");
    for call in tools::resources(&world.ann) {
        let answer = world.send(&key, &call);
        assert!(
            answer.text().contains("this needs `read`") || answer.status != 200,
            "{call:?}: {}",
            answer.text()
        );
    }
    assert_eq!(world.rows_of("bob")["memories"], shared["memories"]);
}
