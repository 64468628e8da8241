//! Every route that writes is killed under by some test.

use std::collections::BTreeSet;

use crate::support::TestStore;

/// The routes with methods that may write, and the test that kills under each. A new route that writes needs such a test.
const ROUTES: [(&str, &str, &str); 21] = [
    ("POST", "/turns", "crash"),
    ("POST", "/memories", "write_paths_crash"),
    ("DELETE", "/memories", "write_paths_crash"),
    ("PUT", "/memories/{id}", "write_paths_crash"),
    ("DELETE", "/memories/{id}", "write_paths_crash"),
    ("POST", "/memories/{id}/restore", "write_paths_crash"),
    ("DELETE", "/sessions/{id}", "write_paths_crash"),
    ("PUT", "/sessions/{id}/state", "write_paths_crash"),
    ("PUT", "/sessions/{id}/context", "write_paths_crash"),
    ("DELETE", "/users/{id}", "write_paths_crash"),
    ("POST", "/requests/{id}/feedback", "write_paths_crash"),
    ("POST", "/sessions/{id}/compact", "compaction_crash"),
    ("POST", "/v1/chat/completions", "proxy_crash"),
    ("POST", "/v1/responses", "proxy_crash"),
    ("POST", "/v1/messages", "proxy_crash"),
    ("POST", "/api/chat", "proxy_crash"),
    ("POST", "/openai/deployments/{deployment}/chat/completions", "proxy_crash"),
    // It records as the routes above do.
    ("POST", "/api/generate", "proxy_crash"),
    // A job that has failed waits again: one value of one row. That jobs come to their end is a test of its own.
    ("POST", "/jobs/{id}/retry", "learning_crash"),
    // These read, and note a row about it, which may be lost.
    ("POST", "/search", "write_paths_crash"),
    ("POST", "/sessions/{id}/prompt", "write_paths_crash"),
];

#[test]
fn every_route_that_writes_is_killed_under() {
    let store = TestStore::sqlite();
    let document = store.serve(&[]).client().get("/openapi.json").unwrap().json();
    let mut found = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let methods = methods.as_object().unwrap().keys().filter(|method| *method != "get");
        found.extend(methods.map(|method| (method.to_uppercase(), path.clone())));
    }
    let known: BTreeSet<_> =
        ROUTES.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
    assert_eq!(found, known, "each route that writes needs a test that kills under it");
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    for (_, path, test) in ROUTES {
        let is_there = |end: &str| std::path::Path::new(&format!("{tests}/{test}{end}")).is_file();
        assert!(is_there(".rs") || is_there("/main.rs"), "{path}: there is no test `{test}`");
    }
}
