//! Forgetting a user, and damaged rows, from the command line.

use rusqlite::Connection;

use super::harness::Machine;

#[test]
fn a_user_is_forgotten_after_a_confirmation() {
    let machine = Machine::new();
    machine.record("trip", &["I moved to Tartu"]);
    let asked = machine.run(&["users", "forget", "default"]).failed(2);
    assert!(asked.contains("--yes"), "{asked}");
    assert!(machine.run(&["users", "forget", "stranger", "--yes"]).failed(1).contains("stranger"));
    let told = machine.run(&["users", "forget", "default", "--yes"]).ok();
    assert!(told.contains("1 session, 1 turn, "), "{told}");
    assert!(!machine.run(&["sessions", "list"]).ok().contains("trip"));
    let again = machine.run(&["users", "forget", "default", "--yes", "--json"]).json();
    assert_eq!(again["removed"]["turns"], 0);
}

#[test]
fn the_doctor_names_a_damaged_row_and_puts_it_aside() {
    let machine = Machine::new();
    machine.record("trip", &["I moved to Tartu", "the flat has a stove", "and a cellar"]);
    assert!(machine.run(&["doctor"]).ok().contains("no problems"));
    let conn = Connection::open(machine.store()).unwrap();
    conn.execute("UPDATE turns SET content = CAST(x'73746f7665ff' AS TEXT) WHERE seq = 1", []).unwrap();
    drop(conn);
    let found = machine.run(&["search", "where did I move"]).ok();
    assert!(found.contains("Tartu"), "{found}");
    machine.run(&["reindex"]).ok();
    let told = machine.run(&["doctor", "--json"]).stdout;
    assert!(told.contains("table `turns`") && told.contains("--repair"), "{told}");
    let repaired = machine.run(&["doctor", "--repair"]).ok();
    assert!(repaired.contains("1 damaged rows were put aside"), "{repaired}");
    let kept = machine.run(&["doctor", "--quarantine"]).ok();
    assert!(kept.contains("73746f7665ff"), "{kept}");
    machine.run(&["doctor"]).ok();
}
