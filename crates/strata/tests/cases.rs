//! The state of working conversations, read by the network inside the binary: what was found, decided and promised is kept
//! through small talk, and little else is claimed.
#![cfg(not(feature = "lite"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test says where")]

mod support;

use std::path::Path;

use serde_json::Value;
use support::{show, strata};

#[test]
fn the_state_keeps_what_matters_and_claims_little_else() {
    check(
        "cases",
        &[
            ("roles", 78.0, 100.0),
            ("causes", 75.0, 100.0),
            ("findings", 75.0, 100.0),
            ("ruled_out", 70.0, 100.0),
            ("decisions", 70.0, 100.0),
            ("todos", 75.0, 100.0),
            ("kept", 85.0, 100.0),
            ("wrong", 0.0, 5.0),
            ("status", 70.0, 100.0),
        ],
    );
}

#[test]
fn conversations_by_another_hand_are_read_as_well() {
    check(
        "unseen-cases",
        &[
            ("roles", 75.0, 100.0),
            ("causes", 85.0, 100.0),
            ("findings", 80.0, 100.0),
            ("ruled_out", 75.0, 100.0),
            ("decisions", 80.0, 100.0),
            ("todos", 75.0, 100.0),
            ("kept", 80.0, 100.0),
            ("wrong", 0.0, 7.0),
            ("status", 75.0, 100.0),
        ],
    );
}

/// Checks that each figure of a set lies within its bounds, in both languages.
fn check(set: &str, bounds: &[(&str, f64, f64)]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evals").join(set);
    let output =
        strata().args(["eval", "--cases", "--json", "--reader", "builtin"]).arg(folder).output().unwrap();
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", show(&output)));
    let share = |of: &Value| 100.0 * of["part"].as_f64().unwrap() / of["all"].as_f64().unwrap();
    for (figure, least, most) in bounds {
        for language in ["en", "zh"] {
            let found = share(&report["languages"][language][figure]);
            assert!((*least..=*most).contains(&found), "{language} {figure} is {found:.1}: {report:#}");
        }
    }
}
