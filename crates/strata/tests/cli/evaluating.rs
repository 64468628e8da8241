//! `strata eval`.

use std::path::Path;

use serde_json::Value;

use crate::harness::Machine;

/// The sample set that ships with the repository.
fn samples() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evals/samples").display().to_string()
}

#[test]
fn the_samples_are_measured_in_a_store_of_their_own() {
    let machine = Machine::new();
    let table = machine.run(&["eval", &samples(), "--set", "garden"]).ok();
    assert!(table.contains("# garden: 2 conversations") && table.contains("± 95 %"), "{table}");
    assert!(!machine.store().exists());
}

#[test]
fn figures_go_to_a_program_and_rankings_to_files() {
    let machine = Machine::new();
    let report = machine.run(&["eval", &samples(), "--set", "garden", "--runs", "runs", "--json"]).json();
    let set = &report["sets"][0];
    assert_eq!(
        (&set["set"], &set["orders"][0]["order"]),
        (&Value::from("garden"), &Value::from("relevance"))
    );
    assert_eq!(set["orders"][0]["turn"]["categories"]["fact"]["R@10"], 1.0);
    for file in ["runs/garden.jsonl", "runs/garden.served.jsonl"] {
        let run = std::fs::read_to_string(machine.home().join(file)).unwrap();
        assert_eq!(run.lines().count(), 10, "{file}");
    }
}

#[test]
fn a_named_store_is_used_once() {
    let machine = Machine::new();
    let args = ["eval", &samples(), "--set", "garden", "--store", "sqlite:eval.db", "--order", "relevance"];
    machine.run(&args).ok();
    assert!(machine.home().join("eval.db").exists());
    assert!(machine.run(&args).failed(1).contains("contains an earlier run of set `garden`"));
}

#[test]
fn a_folder_without_the_set_is_named() {
    let machine = Machine::new();
    assert!(machine.run(&["eval", "."]).failed(2).contains("contains no set"));
    let error = machine.run(&["eval", &samples(), "--set", "locomo"]).failed(1);
    assert!(error.contains("set `locomo` has no file `locomo.conversations.jsonl`"), "{error}");
}

#[test]
fn the_rules_of_learning_are_measured_on_conflicts() {
    let machine = Machine::new();
    let conflicts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evals/conflicts").display().to_string();
    let table = machine.run(&["eval", &conflicts, "--conflicts"]).ok();
    assert!(table.contains("| held-out.zh |") && table.contains("| UPDATE | en |"), "{table}");
    let report = machine.run(&["eval", &conflicts, "--conflicts", "--json"]).json();
    assert!(report["all"]["dialogues"].as_u64().unwrap() >= 160, "{report}");
    assert!(machine.run(&["eval", &samples(), "--conflicts"]).failed(2).contains(".jsonl:1: "));
}

/// What `strata eval` measures with everything that a new store has: words, the encoder and the reader's second look.
#[cfg(not(feature = "lite"))]
fn measured(folder: &str, args: &[&str]) -> Value {
    let machine = Machine::with_encoder();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evals").join(folder).display().to_string();
    let args: Vec<&str> = ["eval", folder.as_str(), "--json", "--setting", "learn.reader=builtin"]
        .into_iter()
        .chain(args.iter().copied())
        .collect();
    machine.run(&args).json()["sets"][0].clone()
}

/// The floors and the ceiling are a few points beside the measured values, which `docs/recall.md` has.
#[test]
#[cfg(not(feature = "lite"))]
fn answers_in_another_language_are_found_and_served() {
    let set = measured("samples", &["--set", "crosslang"]);
    let share = |order: usize| set["orders"][order]["turn"]["overall"]["R@10"].as_f64().unwrap();
    assert!(share(0) >= 0.92, "by relevance: {}", share(0));
    assert!(share(1) >= 0.76, "served: {}", share(1));
}

#[test]
#[cfg(not(feature = "lite"))]
fn small_stores_serve_answers_and_not_much_else() {
    let set = measured("small-stores", &["--foreign", "--order", "served"]);
    let served = |group: &str| set["foreign"][group]["served"].as_f64().unwrap();
    assert!(served("own") >= 0.94, "answerable: {}", served("own"));
    assert!(served("abstention") <= 0.42, "unanswerable: {}", served("abstention"));
}
