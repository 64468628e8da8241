//! `strata doctor --memories` on what only real rows and a reader can tell: use, age, and changes in other words.

use serde_json::{Value, json};

use crate::harness::{Machine, Server};
use crate::terminal::at_terminal;

/// Imports memories of the year 2020: user, kind and statement.
fn import(machine: &Machine, memories: &[(&str, &str, &str)]) {
    let row = |(place, (user, kind, text)): (usize, &(&str, &str, &str))| {
        json!({"id": format!("0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c{place:04}"), "memory": text, "kind": kind,
            "user_id": user, "created_at": format!("2020-04-{:02}T09:00:00Z", place + 1)})
    };
    let rows: Vec<Value> = memories.iter().enumerate().map(row).collect();
    machine.write("old.json", &json!({ "results": rows }).to_string());
    machine.run(&["import", "old.json"]).ok();
}

/// Asks the same question so many times, with explanations: these keep what an answer used.
fn ask(server: &Server, user: &str, question: &str, times: u32) {
    for _ in 0..times {
        let body = json!({"user_id": user, "query": question, "explain": true}).to_string();
        assert_eq!(server.http("POST", "/search", &body).0, 200);
    }
}

/// The kind and the statement of each problem.
fn problems(machine: &Machine) -> Vec<(String, String)> {
    let report = machine.run(&["doctor", "--memories", "--json"]).json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |one: &Value| (text(&one["kind"]), text(&one["memory"]));
    report["problems"].as_array().unwrap().iter().map(of).collect()
}

fn found(kind: &str, memory: &str) -> (String, String) {
    (kind.to_owned(), memory.to_owned())
}

#[test]
fn use_is_counted_for_each_user_and_old_todos_are_dropped() {
    let machine = Machine::new();
    import(
        &machine,
        &[
            ("abe", "fact", "Abe restores barometers"),
            ("bea", "fact", "Bea breeds silkworms"),
            ("bea", "fact", "Owns a lathe from Leeds"),
            ("bea", "todo", "Has to oil the silkworms' hatch"),
            ("cid", "fact", "Cid maps caves"),
        ],
    );
    let server = machine.serve(&[]);
    // Too few answers to Abe, enough to Bea, and as many as are needed to Cid, whose answers used nothing.
    ask(&server, "abe", "Which gloves fit?", 3);
    ask(&server, "bea", "Who breeds silkworms?", 26);
    ask(&server, "cid", "Which gloves fit?", 20);
    assert_eq!(server.stop("TERM").0, Some(0));
    let (todo, lathe) = ("Has to oil the silkworms' hatch", "Owns a lathe from Leeds");
    let unused = [found("never_recalled", lathe), found("never_recalled", "Cid maps caves")];
    let listed = problems(&machine);
    assert_eq!(listed, [&[found("stale_todo", todo)], &unused[..]].concat());
    let ran = machine.run(&["doctor", "--memories"]);
    assert!(ran.stderr.contains("cannot be said yet for `abe`: "), "{}", ran.stderr);
    // What is sure is mended without a person, and the rest one by one.
    assert!(machine.run(&["doctor", "--memories", "--yes"]).ok().contains("mended 1 of 3"));
    assert_eq!(problems(&machine), unused);
    let question = "delete the memory? [y]es, [n]o, [q]uit: ";
    let steps =
        json!([["see", lathe], ["see", question], ["type", "n\n"], ["see", question], ["type", "y\n"]]);
    let shown = at_terminal(&machine, 100, &["doctor", "--memories"], &[], steps).ok();
    assert!(shown.contains("mended 1 of 2"), "{shown}");
    assert_eq!(problems(&machine), [found("never_recalled", lathe)]);
    let rows = |user: &str| machine.run(&["memories", "list", "--all", "--json", "--user", user]).json();
    let bea = rows("bea");
    let row = bea["results"].as_array().unwrap().iter().find(|row| row["memory"] == todo).unwrap();
    assert_eq!(
        (&row["todo"], row["valid_to"].is_string(), &row["hidden"]),
        (&json!("dropped"), true, &json!(null))
    );
    assert!(!rows("cid")["results"][0]["hidden"].is_null(), "a deleted memory can be restored");
}

#[test]
fn the_reader_finds_a_contradiction_in_other_words() {
    let machine = Machine::new();
    let (old, new) =
        ("Runa keeps her boat in the harbour of Molde", "Runa's boat is no longer in the harbour of Molde");
    import(
        &machine,
        &[
            ("default", "fact", old),
            ("default", "fact", "Runa paints her boat each May"),
            ("default", "fact", new),
        ],
    );
    let doctor = ["doctor", "--memories", "--setting", "learn.reader=builtin"];
    let report = machine.run(&[&doctor[..], &["--json"]].concat()).json();
    let problem = &report["problems"][0];
    assert_eq!(report["problems"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(
        (&problem["kind"], &problem["memory"], &problem["other_memory"], &problem["is_sure"]),
        (&json!("contradiction"), &json!(old), &json!(new), &json!(true))
    );
    assert_eq!(problems(&machine), [], "words alone do not tell");
    assert!(machine.run(&[&doctor[..], &["--yes"]].concat()).ok().contains("mended 1 of 1"));
    let all = machine.run(&["memories", "list", "--all", "--json"]).json();
    let row =
        |text: &str| all["results"].as_array().unwrap().iter().find(|row| row["memory"] == text).unwrap();
    assert_eq!(row(old)["replaced_by"], row(new)["id"]);
    assert_eq!(row(old)["valid_to"], row(new)["valid_from"]);
}

#[test]
fn nothing_that_can_be_mended_is_left_for_a_second_run() {
    let machine = Machine::new();
    let copies =
        ["Runa keeps her boat in the harbour of Molde", "Runa keeps her boat in the harbour at Molde"];
    let new = "Runa's boat is no longer in the harbour of Molde";
    import(
        &machine,
        &[("default", "fact", copies[0]), ("default", "fact", copies[1]), ("default", "fact", new)],
    );
    let doctor = ["doctor", "--memories", "--setting", "learn.reader=builtin"];
    machine.run(&[&doctor[..], &["--yes"]].concat()).ok();
    let current = machine.run(&["memories", "list", "--json"]).json();
    let current: Vec<_> = current["results"].as_array().unwrap().iter().map(|row| &row["memory"]).collect();
    assert_eq!(current, [new], "no copy of the outdated statement stays");
    let again = machine.run(&[&doctor[..], &["--yes", "--json"]].concat()).json();
    assert_eq!(again["mended"], 0, "{again}");
}
