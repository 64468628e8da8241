//! Tests the running server against its OpenAPI document with the fuzzer schemathesis.
//!
//! The fuzzer sends valid and invalid requests. It checks that the server accepts the valid ones, refuses the invalid ones,
//! answers in the documented shape and never fails. The seed is fixed, so that a failure can be reproduced. The model behind
//! the proxy is scripted; it speaks the APIs of all providers, and refuses what the document calls invalid and nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::process::Command;

use support::{Apis, Server, venv};

/// The number of cases per operation: with the other phases, about two minutes. There is one worker, because with two the seed
/// does not fix the order.
const EXAMPLES: &str = "100";

#[test]
fn the_server_does_what_its_document_says() {
    let schemathesis = venv().join("bin/schemathesis");
    assert!(
        schemathesis.is_file(),
        "schemathesis is not at {}; `cargo xtask check` installs it, or name its virtual environment in `STRATA_TEST_VENV`",
        schemathesis.display()
    );
    let directory = tempfile::tempdir().unwrap();
    let upstream = Apis::start_as_documented();
    let setting = format!("upstream={}", upstream.url());
    let mut server = Server::start_with(&directory.path().join("fuzz.db"), &[&setting]);
    let output = Command::new(schemathesis)
        .current_dir(directory.path())
        .args(["run", &format!("http://{}/openapi.json", server.address())])
        .args(["--seed", "1", "--max-examples", EXAMPLES, "--generation-database", "none"])
        .args(["--request-timeout", "30", "--continue-on-failure", "--suppress-health-check", "all"])
        .args(["--warnings", "off", "--no-color"])
        .output()
        .unwrap();
    server.assert_running();
    assert!(output.status.success(), "schemathesis found faults:\n{}", support::show(&output));
}
