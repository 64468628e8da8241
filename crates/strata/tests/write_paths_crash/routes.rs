//! Every route that may write is killed under by some test, or does what another one does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::support::TestStore;

/// How it is shown that a kill under a route does no harm.
enum Shown {
    /// The test of this name sends the route, and kills the server.
    By(&'static str),
    /// The handler is that of another route, or calls the same use-case.
    As(&'static str),
    /// The route writes nothing to the store.
    WritesNothing,
}

use Shown::{As, By, WritesNothing};

/// The routes with methods that may write. A new route that writes needs a test that kills under it.
const ROUTES: [(&str, &str, Shown); 40] = [
    ("POST", "/turns", By("crash")),
    ("POST", "/memories", By("write_paths_crash")),
    ("DELETE", "/memories", By("write_paths_crash")),
    ("PUT", "/memories/{id}", By("write_paths_crash")),
    ("DELETE", "/memories/{id}", By("write_paths_crash")),
    ("POST", "/memories/{id}/restore", By("write_paths_crash")),
    ("DELETE", "/sessions/{id}", By("write_paths_crash")),
    ("PUT", "/sessions/{id}/state", By("write_paths_crash")),
    ("PUT", "/sessions/{id}/context", By("write_paths_crash")),
    ("DELETE", "/users/{id}", By("write_paths_crash")),
    ("POST", "/requests/{id}/feedback", By("write_paths_crash")),
    ("POST", "/jobs/{id}/retry", By("write_paths_crash")),
    ("POST", "/mcp", By("write_paths_crash")),
    // These read, and note a row about it, which may be lost.
    ("POST", "/search", By("write_paths_crash")),
    ("POST", "/sessions/{id}/prompt", By("write_paths_crash")),
    ("POST", "/sessions/{id}/compact", By("compaction_crash")),
    ("POST", "/v1/chat/completions", By("proxy_crash")),
    ("POST", "/v1/responses", By("proxy_crash")),
    ("POST", "/v1/messages", By("proxy_crash")),
    ("POST", "/api/chat", By("proxy_crash")),
    ("POST", "/api/generate", By("proxy_crash")),
    ("POST", "/openai/deployments/{deployment}/chat/completions", By("proxy_crash")),
    ("POST", "/openai/v1/chat/completions", As("POST /v1/chat/completions")),
    ("POST", "/openai/v1/responses", As("POST /v1/responses")),
    ("POST", "/openai/responses", As("POST /v1/responses")),
    // The paths of mem0's client.
    ("POST", "/v3/memories/add/", As("POST /memories")),
    ("POST", "/v1/memories/", As("POST /memories")),
    ("DELETE", "/v1/memories/", As("DELETE /memories")),
    ("PUT", "/v1/memories/{id}/", As("PUT /memories/{id}")),
    ("DELETE", "/v1/memories/{id}/", As("DELETE /memories/{id}")),
    ("PUT", "/v1/batch/", As("PUT /memories/{id}")),
    ("DELETE", "/v1/batch/", As("DELETE /memories/{id}")),
    ("DELETE", "/v2/entities/{type}/{name}/", As("DELETE /users/{id}")),
    ("POST", "/reset", As("DELETE /users/{id}")),
    // The forms of the inspector.
    ("POST", "/inspect/memories/{id}/edit", As("PUT /memories/{id}")),
    ("POST", "/inspect/memories/{id}/delete", As("DELETE /memories/{id}")),
    ("POST", "/inspect/memories/{id}/restore", As("POST /memories/{id}/restore")),
    ("POST", "/inspect/memories/{id}/forget", As("DELETE /memories/{id}")),
    ("POST", "/inspect/requests/{id}/feedback", As("POST /requests/{id}/feedback")),
    ("POST", "/inspect/jobs/{id}/retry", As("POST /jobs/{id}/retry")),
];

/// Forms that set a cookie.
const WITHOUT_STORE: [(&str, &str, Shown); 2] =
    [("POST", "/inspect/sign-in", WritesNothing), ("POST", "/inspect/sign-out", WritesNothing)];

fn known() -> BTreeMap<(String, String), &'static Shown> {
    let all = ROUTES.iter().chain(&WITHOUT_STORE);
    all.map(|(method, path, shown)| (((*method).to_owned(), (*path).to_owned()), shown)).collect()
}

/// The routes of the OpenAPI document.
fn documented() -> BTreeSet<(String, String)> {
    let store = TestStore::sqlite();
    let document = store.serve(&[]).client().get("/openapi.json").unwrap().json();
    let mut found = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let methods = methods.as_object().unwrap().keys().filter(|method| *method != "get");
        found.extend(methods.map(|method| (method.to_uppercase(), path.clone())));
    }
    found
}

/// The routes outside the document, read from the sources: each declares its path and its methods on one line.
fn undocumented() -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../strata-server/src");
    for_each_source(&sources, &mut |text| {
        for line in text.lines() {
            for (declared, is_form) in [("undocumented(\"", false), ("form(\"", true)] {
                let Some((_, rest)) = line.split_once(declared) else { continue };
                let Some((path, handlers)) = rest.split_once('"').filter(|(path, _)| path.starts_with('/'))
                else {
                    continue;
                };
                for (word, method) in
                    [("post(", "POST"), ("put(", "PUT"), ("delete(", "DELETE"), ("patch(", "PATCH")]
                {
                    let is_method = handlers.split(|c: char| !c.is_alphanumeric() && c != '(' && c != '_');
                    if is_form && word == "post(" || is_method.clone().any(|part| part.starts_with(word)) {
                        found.insert((method.to_owned(), path.to_owned()));
                    }
                }
            }
        }
    });
    found
}

fn for_each_source(folder: &Path, visit: &mut impl FnMut(&str)) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            for_each_source(&path, visit);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            visit(&std::fs::read_to_string(path).unwrap());
        }
    }
}

/// The source of a test with its modules.
fn source_of(test: &str) -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut source = std::fs::read_to_string(tests.join(test).with_extension("rs")).unwrap_or_default();
    if tests.join(test).is_dir() {
        for entry in std::fs::read_dir(tests.join(test)).unwrap().flatten() {
            // This list is no request.
            if entry.file_name() != "routes.rs" {
                source += &std::fs::read_to_string(entry.path()).unwrap();
            }
        }
    }
    source
}

#[test]
fn every_route_that_writes_is_killed_under() {
    let found: BTreeSet<_> = documented().union(&undocumented()).cloned().collect();
    let known = known();
    let listed: BTreeSet<_> = known.keys().cloned().collect();
    assert_eq!(found, listed, "each route that writes needs a test that kills under it");
    for ((method, path), shown) in &known {
        match shown {
            By(test) => check_sent(path, test),
            As(other) => {
                let (of, other) = other.split_once(' ').unwrap();
                let same = known.get(&(of.to_owned(), other.to_owned()));
                assert!(matches!(same, Some(By(_))), "{method} {path}: {of} {other} is killed under");
            }
            WritesNothing => {}
        }
    }
}

/// Checks that a test kills and sends a route: its source has each part of the path that is no name.
fn check_sent(path: &str, test: &str) {
    let source = source_of(test);
    assert!(source.contains("kill("), "`{test}` kills nothing");
    for part in path.split('/').filter(|part| !part.is_empty() && !part.starts_with('{')) {
        let ends = ["/", "?", "\"", "`"].iter().any(|end| source.contains(&format!("/{part}{end}")));
        assert!(ends, "`{test}` never sends `{path}`: it has no `/{part}`");
    }
}
