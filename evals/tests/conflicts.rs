//! The conflict suite holds: what is believed in the end is true, and nothing true is lost on the way.
#![allow(clippy::unwrap_used, reason = "a failing test says where")]

use std::path::Path;

use evals::conflicts::{load, run, table};

#[test]
fn the_built_in_rules_keep_memories_true() {
    let suites = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("conflicts")).unwrap();
    let dialogues = |ending: &str| -> usize {
        suites.iter().filter(|suite| suite.name.ends_with(ending)).map(|suite| suite.dialogues.len()).sum()
    };
    assert!(dialogues("") >= 160 && dialogues(".zh") >= 60);
    let report = run(&suites).unwrap();
    // What fails in the tuned half; the held-out half is not to be tuned on, so it shows its figures only.
    let tuned = report.suites.iter().filter(|(name, _)| !name.starts_with("held-out"));
    let failures: Vec<&str> =
        tuned.flat_map(|(_, findings)| &findings.failures).map(String::as_str).collect();
    let figures = format!("{}\n{}", table(&report), failures.join("\n"));
    assert!(report.all.accuracy() >= 0.9, "current truth\n{figures}");
    assert!(report.all.false_supersession() <= 0.03, "false supersession\n{figures}");
}
