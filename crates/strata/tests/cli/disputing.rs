//! Memories that may contradict each other, as a person sees them on the command line.

use serde_json::json;

use crate::harness::Machine;

const OLDER: &str = "0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7e01";
const NEWER: &str = "0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7e02";

/// A machine with a dispute about Frida's shift, and a memory that nothing contradicts.
fn machine() -> Machine {
    let machine = Machine::new();
    let memories = json!({"results": [
        {"id": OLDER, "memory": "Frida's shift at the ferry begins at five", "kind": "schedule",
            "created_at": "2026-01-05T09:00:00Z", "disputed_with": NEWER, "certainty": 55},
        {"id": NEWER, "memory": "The shift of Frida begins at six", "kind": "schedule",
            "created_at": "2026-03-02T09:00:00Z", "disputed_with": OLDER, "certainty": 55},
        {"memory": "Frida's brother repairs outboard motors", "kind": "relation", "created_at": "2026-02-01T09:00:00Z"},
    ]});
    machine.write("memories.json", &memories.to_string());
    let file = machine.home().join("memories.json");
    machine.run(&["import", file.to_str().unwrap()]).ok();
    machine
}

/// The lines of a table that hold a text.
fn lines<'a>(table: &'a str, text: &str) -> Vec<&'a str> {
    table.lines().filter(|line| line.contains(text)).collect()
}

#[test]
fn lists_searches_and_chats_say_what_is_disputed() {
    let machine = machine();
    let list = machine.run(&["memories", "list"]).ok();
    assert_eq!(lines(&list, " disputed ").len(), 2, "{list}");
    assert!(lines(&list, "disputed")[0].contains("six"), "the newer one comes first: {list}");
    assert!(lines(&list, "brother")[0].contains(" current "), "{list}");
    let shown = machine.run(&["memories", "show", OLDER]).ok();
    assert!(shown.contains("disputed") && shown.contains(&format!("may contradict {NEWER}")), "{shown}");

    let question = "when does Frida's shift at the ferry begin";
    let found = machine.run(&["search", question]).ok();
    let disputed = lines(&found, "schedule, disputed");
    assert!(disputed.len() == 2 && disputed[0].contains("six"), "{found}");
    let json = machine.run(&["search", question, "--json"]).json();
    assert_eq!(
        (&json["results"][0]["id"], &json["results"][0]["disputed_with"]),
        (&NEWER.into(), &OLDER.into())
    );

    let prompt = machine.run(&["prompt", question, "--session", "new", "--format", "chat"]).ok();
    let said = machine.feed(&["chat", "--session", "talk"], format!("{question}?\n")).ok();
    for text in [prompt, said] {
        let (six, five) = (text.find("begins at six").unwrap(), text.find("begins at five").unwrap());
        assert!(six < five, "the newer one comes first: {text}");
        assert_eq!(text.matches("disputed]").count(), 2, "{text}");
    }
}

#[test]
fn a_dispute_that_a_person_settles_is_over() {
    let machine = machine();
    machine.run(&["memories", "delete", OLDER]).ok();
    let list = machine.run(&["memories", "list"]).ok();
    assert!(!list.contains("disputed") && lines(&list, "six")[0].contains(" current "), "{list}");
    let found = machine.run(&["search", "when does the shift of Frida begin"]).ok();
    assert!(found.contains("six") && !found.contains("disputed"), "{found}");
    machine.run(&["memories", "restore", OLDER]).ok();
    let list = machine.run(&["memories", "list"]).ok();
    assert_eq!(lines(&list, " disputed ").len(), 2, "{list}");
}
