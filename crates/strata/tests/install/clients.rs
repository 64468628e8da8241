//! The typed clients: what they say about the server is true, their types are sound, and every method works.

use std::path::Path;
use std::process::Command;

use super::support::{Server, node_folder, show};
use super::{only_file, packages, root, tool};

/// With `UPDATE_CLIENTS=1`, the clients are written anew.
#[test]
fn every_method_path_parameter_and_field_is_the_servers() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("api.db"));
    let document = directory.path().join("openapi.json");
    std::fs::write(&document, server.client().get("/openapi.json").unwrap().body).unwrap();
    let mut generate = Command::new("python3");
    generate.arg(root().join("packages/generate.py")).arg(&document);
    if std::env::var_os("UPDATE_CLIENTS").is_none() {
        generate.arg("--check");
    }
    let output = generate.output().unwrap();
    assert!(
        output.status.success(),
        "{}\nrun `UPDATE_CLIENTS=1 cargo nextest run -p strata every_method_path`",
        show(&output)
    );
}

/// A client that says something else than the server is found, whatever it is.
#[test]
fn a_difference_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("api.db"));
    let document = server.client().get("/openapi.json").unwrap().text();
    for (from, to) in [
        ("\"/turns\":", "\"/messages\":"),
        ("\"name\":\"as_of\"", "\"name\":\"at\""),
        ("\"turn_count\":{", "\"turns\":{"),
        ("\"required\":[\"sessions\"]", "\"required\":[]"),
    ] {
        let changed = document.replacen(from, to, 1);
        assert_ne!(changed, document, "the document has {from}");
        let file = directory.path().join("changed.json");
        std::fs::write(&file, changed).unwrap();
        let mut generate = Command::new("python3");
        generate.arg(root().join("packages/generate.py")).arg(&file).arg("--check");
        assert!(!generate.output().unwrap().status.success(), "{to} is not seen");
    }
}

#[test]
fn the_python_client_works_in_a_clean_environment() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("python.db"));
    let script = script("client.py");
    let python = packages().join("venv/bin/python");
    let output =
        Command::new(&python).arg(&script).arg(format!("http://{}", server.address())).output().unwrap();
    assert!(output.status.success(), "{}\n{}", show(&output), server.log());

    let output = Command::new(&python).args(["-m", "strata_memory", "--version"]).output().unwrap();
    assert!(show(&output).contains(env!("CARGO_PKG_VERSION")), "{}", show(&output));
}

/// Without an installation, in an empty folder and without the network.
#[test]
fn uvx_runs_the_program_of_the_wheel() {
    let directory = tempfile::tempdir().unwrap();
    let uvx = |arguments: &[&str]| {
        let mut uvx = Command::new(tool("uvx"));
        // Variables of the tests are no settings of Strata.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("STRATA_"))
        {
            uvx.env_remove(name);
        }
        uvx.current_dir(directory.path())
            .env("HOME", directory.path())
            .env("UV_CACHE_DIR", directory.path().join("cache"))
            .args(["--offline", "--no-config", "--no-python-downloads", "--from"])
            .arg(only_file(&packages(), ".whl"))
            .args(arguments)
            .output()
            .unwrap()
    };
    let shown = uvx(&["strata", "--version"]);
    assert!(shown.status.success(), "{}", show(&shown));
    assert!(show(&shown).contains(env!("CARGO_PKG_VERSION")), "{}", show(&shown));
    let added = uvx(&["strata", "add", "the ladder is in the barn", "--store", "sqlite:barn.db"]);
    assert!(added.status.success() && directory.path().join("barn.db").is_file(), "{}", show(&added));
}

#[test]
fn the_types_of_the_python_client_are_sound() {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(tool("mypy"))
        .current_dir(root().join("packages/python"))
        .args(["--strict", "--no-incremental", "--cache-dir"])
        .arg(directory.path())
        .args(["strata_memory"])
        .arg(script("client.py"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", show(&output));
}

#[test]
fn the_javascript_client_works_in_a_clean_environment() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("js.db"));
    let node = packages().join("node");
    // Node and TypeScript look for packages beside the script.
    std::os::unix::fs::symlink(node.join("node_modules"), directory.path().join("node_modules")).unwrap();
    std::fs::copy(script("client.mts"), directory.path().join("client.mts")).unwrap();
    std::fs::write(directory.path().join("package.json"), "{\"type\": \"module\"}").unwrap();
    let tsc = node_folder().canonicalize().unwrap().join("node_modules/.bin/tsc");
    let output = Command::new(tsc)
        .current_dir(directory.path())
        .args([
            "--strict",
            "--target",
            "es2022",
            "--module",
            "nodenext",
            "--lib",
            "es2022,dom",
            "--types",
            "",
        ])
        .args(["--exactOptionalPropertyTypes", "client.mts"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", show(&output));
    let output = Command::new("node")
        .current_dir(directory.path())
        .arg("client.mjs")
        .env("STRATA_ADDRESS", format!("http://{}", server.address()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}\n{}", show(&output), server.log());

    let output = Command::new(node.join("node_modules/.bin/strata")).arg("--version").output().unwrap();
    assert!(show(&output).contains(env!("CARGO_PKG_VERSION")), "{}", show(&output));
}

fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/install").join(name)
}
