//! Why something was or was not recalled.

use serde_json::Value;

use crate::harness::Machine;

fn text<'a>(json: &'a Value, name: &str) -> &'a str {
    json[name].as_str().unwrap_or_else(|| panic!("`{name}` in {json}"))
}

/// A machine with some turns, and their ids.
fn machine() -> (Machine, Vec<String>) {
    let machine = Machine::new();
    machine.record("trip", &["I moved to Lisbon in March", "Lisbon has good trams", "my cat is called Tom"]);
    let session = machine.run(&["sessions", "show", "trip", "--json"]).json();
    let turns = session["turns"].as_array().unwrap();
    let ids = turns.iter().map(|turn| text(turn, "id").to_owned()).collect();
    (machine, ids)
}

#[test]
fn a_search_explains_itself() {
    let (machine, ids) = machine();
    let ran = machine.run(&["search", "where in lisbon do I live", "--limit", "1", "--explain"]);
    assert!(ran.stderr.contains("strata explain "), "{}", ran.stderr);
    let printed = ran.ok();
    for column in ["RELEVANCE", "TERMS", "WORDS", "OUTCOME"] {
        assert!(printed.contains(column), "{printed}");
    }
    assert!(printed.contains("served as number 1") && printed.contains("others were better"), "{printed}");

    let json = machine.run(&["search", "lisbon", "--limit", "1", "--explain", "--json"]).json();
    let candidates = json["trace"]["candidates"].as_array().unwrap();
    assert_eq!(candidates[0]["outcome"], "served");
    assert_eq!(candidates[0]["id"], json["results"][0]["id"]);
    assert!(candidates[0]["terms"].as_f64().unwrap() > 0.0, "{json}");
    assert!(candidates.iter().any(|candidate| candidate["id"] == ids[1].as_str()), "{json}");
    let plain = machine.run(&["search", "lisbon", "--json"]).json();
    assert_eq!(plain.get("trace"), None);
    assert!(plain["results"][0]["relevance"].as_f64().unwrap() > 0.35, "{plain}");
}

#[test]
fn a_search_leaves_a_row_that_is_explained_later() {
    let (machine, ids) = machine();
    for explain in [&[][..], &["--explain"]] {
        let args: Vec<&str> =
            ["search", "lisbon", "--limit", "1", "--json"].iter().chain(explain).copied().collect();
        let found = machine.run(&args).json();
        let request = text(&found, "request_id");
        let row = machine.run(&["explain", request, "--json"]).json();
        assert_eq!((text(&row, "id"), text(&row, "query")), (request, "lisbon"));
        assert_eq!((&row["context_items"], &row["error_stage"]), (&1.into(), &Value::Null));
        assert_eq!(row["trace_kept"], !explain.is_empty());
        assert!(row["latency_retrieval_ms"].as_f64().unwrap() > 0.0, "{row}");
        let shown = machine.run(&["explain", request]).ok();
        assert!(shown.contains("returned 1 item,") && shown.contains("I moved to Lisbon"), "{shown}");
        machine.run(&["explain", request, "--user", "eve"]).failed(1);

        let why = |item: &str| machine.run(&["explain", request, "--item", item, "--json"]).json();
        let served = text(&found["results"][0], "id");
        assert_eq!(why(served)["recalled"], true);
        let cat = why(&ids[2]);
        assert_eq!((&cat["recalled"], &cat["kind"]), (&false.into(), &"turn".into()), "{cat}");
        assert!(text(&cat, "reason").len() > 10, "{cat}");
        let shown = machine.run(&["explain", request, "--item", served]).ok();
        assert!(shown.starts_with("it was candidate 1 by relevance: served as number 1"), "{shown}");
        let error = machine.run(&["explain", request, "--item", request]).failed(1);
        assert!(error.contains("neither a turn nor a memory"), "{error}");
    }
}

#[test]
fn what_came_after_or_is_gone_says_so() {
    let (machine, _) = machine();
    let gone = machine.add(&["Lisbon is sunny"]);
    machine.run(&["memories", "delete", &gone]).ok();
    let found = machine.run(&["search", "lisbon", "--json"]).json();
    let request = text(&found, "request_id");
    let later = machine.add(&["Lisbon is hilly"]);
    let why = |item: &str| {
        let json = machine.run(&["explain", request, "--item", item, "--json"]).json();
        assert_eq!(json["kind"], "memory");
        text(&json, "reason").to_owned()
    };
    assert!(why(&gone).contains("out of recall since"), "{}", why(&gone));
    assert!(why(&later).contains("after the request"), "{}", why(&later));
}
