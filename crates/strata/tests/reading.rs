//! The reader inside the binary, on streams and chats by another hand: what must be believed is, and what must not be is not.
#![cfg(not(feature = "lite"))]
#![allow(clippy::unwrap_used, reason = "a failing test says where")]

mod support;

use std::path::Path;

use serde_json::Value;
use support::{show, strata};

/// Copies every third stream and chat of a file: enough to see a loss, in a third of the time.
fn sample(from: &Path, to: &Path) {
    let text = std::fs::read_to_string(from).unwrap();
    let parts = text.split_inclusive('\n').fold(Vec::<String>::new(), |mut parts, line| {
        if line.starts_with("# ") || parts.is_empty() {
            parts.push(String::new());
        }
        parts.last_mut().unwrap().push_str(line);
        parts
    });
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::write(to, parts.into_iter().step_by(3).collect::<String>()).unwrap();
}

#[test]
fn the_reader_keeps_what_people_say_and_no_more() {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evals/reading");
    let folder = tempfile::tempdir().unwrap();
    for file in ["values/en.txt", "values/zh.txt", "chats/en.txt", "chats/zh.txt"] {
        sample(&all.join(file), &folder.path().join(file));
    }
    let output = strata()
        .args(["eval", "--reading", "--json", "--reader", "builtin"])
        .arg(folder.path())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", show(&output)));
    let share = |of: &Value| 100.0 * of["part"].as_f64().unwrap() / of["all"].as_f64().unwrap();
    for (part, figure, least, most) in [
        ("streams", "kept", 86.0, 100.0),
        ("streams", "stale", 0.0, 24.0),
        ("streams", "junk", 0.0, 14.0),
        ("streams", "false_changes", 0.0, 3.0),
        ("chats", "kept", 74.0, 100.0),
        ("chats", "wrong", 0.0, 24.0),
    ] {
        for language in ["en", "zh"] {
            let found = share(&report[part][language][figure]);
            assert!((least..=most).contains(&found), "{part} {language} {figure} is {found:.1}: {report:#}");
        }
    }
}
