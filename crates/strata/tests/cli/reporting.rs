//! `strata report` and `strata feedback`.

use crate::harness::Machine;

/// A machine on which 20 questions were asked, and the id of the last.
fn asked() -> (Machine, String) {
    let machine = Machine::new();
    machine.record(
        "garden",
        &["The plum tree stands behind the shed", "The hedge is cut in autumn", "The gate needs paint"],
    );
    let mut request = String::new();
    for _ in 0..20 {
        let found = machine.run(&["search", "where is the plum tree", "--json"]).json();
        request = found["request_id"].as_str().unwrap().to_owned();
    }
    (machine, request)
}

#[test]
fn the_report_judges_what_was_asked() {
    let (machine, request) = asked();
    let report = machine.run(&["report", "--json"]).json();
    assert_eq!((&report["requests"], &report["recall"]["hit_rate"]), (&20.into(), &1.0.into()), "{report}");
    assert_eq!(report["triggers"].as_array().unwrap().len(), 8);
    let printed = machine.run(&["report", "--days", "30", "--input-price", "2", "--output-price", "8"]).ok();
    for part in ["20 requests", "hit rate", "VERDICT", "not enough data", "change:", "cost a day"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let nobody = machine.run(&["report", "--user", "nobody", "--json"]).json();
    assert_eq!(nobody["requests"], 0);
    machine.run(&["report", "--since", "yesterday"]).failed(2);
    machine.run(&["report", "--days", "0"]).failed(2);
    machine.run(&["report", "--days", "2", "--since", "7d"]).failed(2);

    let filed = machine.run(&["feedback", &request, "it forgot the shed"]).ok();
    assert!(filed.contains(&request), "{filed}");
    let filed = machine.run(&["feedback", &request, "--kind", "meaning", "--json"]).json();
    assert_eq!(filed["feedback"][0]["text"], "it forgot the shed");
    assert_eq!(filed["feedback"][1]["kind"], "meaning");
    let report = machine.run(&["report", "--since", "36h", "--json"]).json();
    assert_eq!(report["failures"]["complaints"], 2);
    machine.run(&["feedback", &request, "--user", "eve"]).failed(1);
    machine.run(&["feedback", "x"]).failed(2);
    machine.run(&["feedback", &request, "--kind", "praise"]).failed(2);
}
