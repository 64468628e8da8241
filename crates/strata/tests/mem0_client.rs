//! Programs written for mem0, with its own client and for its self-hosted server, against the real binary: only the URL is
//! changed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::process::Command;

use support::{Server, venv};

#[test]
fn programs_for_mem0_work_by_changing_the_url() {
    let python = venv().join("bin/python");
    assert!(
        python.is_file(),
        "there is no Python at {}; `cargo xtask check` makes it, or name its virtual environment in `STRATA_TEST_VENV`",
        python.display()
    );
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(&directory.path().join("mem0.db"));
    let output = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mem0_client.py"))
        .arg(format!("http://{}", server.address()))
        // The package writes a file of its own and reports its usage to its authors.
        .env("MEM0_DIR", directory.path())
        .env("MEM0_TELEMETRY", "false")
        .env("HOME", directory.path())
        .output()
        .unwrap();
    server.assert_running();
    assert!(output.status.success(), "the program failed:\n{}\n{}", support::show(&output), server.log());
}
