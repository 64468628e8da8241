//! The conflict suite holds: what is believed in the end is true, and nothing true is lost on the way.
#![allow(clippy::unwrap_used, reason = "a failing test says where")]

use std::path::Path;

use evals::conflicts::{load, run, table};

#[test]
fn the_built_in_rules_keep_memories_true() {
    let suites = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("conflicts")).unwrap();
    let report = run(&suites).unwrap();
    let failures: Vec<&str> = report
        .suites
        .iter()
        .filter(|(n, _)| std::env::var("SHOW_HELD").is_ok() || !n.starts_with("held"))
        .flat_map(|(_, f)| f.failures.iter().map(String::as_str))
        .collect();
    eprintln!("{}", table(&report));
    eprintln!("{}", failures.join("\n"));
    assert!(report.all.accuracy() >= 0.9, "current truth\n{}", table(&report));
    assert!(report.all.false_supersession() <= 0.03, "false supersession\n{}", table(&report));
}
