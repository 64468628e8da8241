//! What a person sees at a terminal: colour, tables that fit, bars, questions, and the demo with its browser. Python's `pty`
//! is the terminal (`terminal.py`).

use std::process::Command;

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::harness::{Machine, Ran};

/// Runs `strata` on a terminal with so many columns.
pub(crate) fn at_terminal(
    machine: &Machine,
    width: u16,
    args: &[&str],
    set: &[(&str, &str)],
    steps: Value,
) -> Ran {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/terminal.py");
    let starter = ["python3", script, &width.to_string(), &steps.to_string()];
    let mut python = machine.command_under(&starter, args);
    python.env("TERM", "xterm").env_remove("NO_COLOR").env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    python.env_remove("BROWSER").envs(set.iter().copied());
    Ran::from(python.output().unwrap())
}

/// A browser that tells into the pipe `opened` which page it got, and never shows anything.
fn browser(machine: &Machine) -> String {
    let program = "#!/usr/bin/env python3\n\
                   import sys, urllib.request\n\
                   request = urllib.request.Request(sys.argv[1], headers={'Accept': 'text/html'})\n\
                   with urllib.request.urlopen(request) as answer, open('opened', 'w') as pipe:\n\
                   \x20   pipe.write(f'OPENED {answer.url} {\"meilin\" in answer.read().decode()}\\n')\n";
    machine.write("browser", program);
    let path = machine.home().join("browser");
    let make = ["-c", "chmod +x browser && mkfifo opened"];
    assert!(Command::new("sh").args(make).current_dir(machine.home()).status().unwrap().success());
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_demo_opens_a_browser_and_leaves_nothing_behind() {
    let machine = Machine::new();
    let browser = browser(&machine);
    std::fs::create_dir(machine.home().join("tmp")).unwrap();
    let tmp = machine.home().join("tmp").to_str().unwrap().to_owned();
    let steps = json!([
        ["see", "Ctrl-C ends the demo"],
        ["see", "strata listens on"],
        ["open", "opened"],
        ["type", "\u{3}"]
    ]);
    let demo = ["demo", "--setting", "listen=127.0.0.1:0"];
    let shown = at_terminal(&machine, 100, &demo, &[("BROWSER", &browser), ("TMPDIR", &tmp)], steps).ok();
    let address = shown.split("Look at it at ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(shown.contains(&format!("OPENED {address}inspect True")), "{shown}");
    assert!(shown.contains("messages ") && shown.contains("RAW TOKENS"), "the bar and the table: {shown}");
    assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 0, "the temporary store is removed");
    assert!(!machine.store().exists());
}

#[test]
fn the_demo_prints_its_address_where_no_browser_is_wanted() {
    let machine = Machine::new();
    let steps =
        json!([["see", "Look at it at http://127.0.0.1:"], ["see", "strata listens on"], ["type", "\u{3}"]]);
    // A browser that the demo may not start would end the test: it kills its own parent.
    machine.write("browser", "#!/bin/sh\nkill -9 $PPID\n");
    let path = machine.home().join("browser");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    let demo = ["demo", "--no-open", "--setting", "listen=127.0.0.1:0"];
    at_terminal(&machine, 80, &demo, &[("BROWSER", path.to_str().unwrap())], steps.clone()).ok();
    // Without a desktop no browser is looked for.
    let demo = ["demo", "--setting", "listen=127.0.0.1:0"];
    at_terminal(&machine, 80, &demo, &[], steps).ok();
}

#[test]
fn problems_of_memories_are_mended_one_by_one() {
    let machine = Machine::new();
    for text in
        ["Noa rents a boat in Kiel", "Noa rents a boat in Emden", "noa paints icons.", "Noa paints icons"]
    {
        machine.add(&[text, "--verbatim"]);
    }
    machine.add(&["What time is it?", "--verbatim"]);
    let question = "[q]uit: ";
    let steps = json!([
        ["see", "end the older memory in favour of the newer one?"],
        ["see", question],
        ["type", "perhaps\n"],
        ["see", "end the older memory in favour of the newer one?"],
        ["see", question],
        ["type", "y\n"],
        ["see", "delete the older memory?"],
        ["see", question],
        ["type", "n\n"],
        ["see", "delete the memory?"],
        ["see", question],
        ["type", "q\n"],
    ]);
    let shown = at_terminal(&machine, 100, &["doctor", "--memories"], &[], steps).ok();
    assert!(shown.contains("mended 1 of 3 problems"), "{shown}");
    let left = machine.run(&["memories", "list"]).ok();
    assert!(!left.contains("Kiel") && left.contains("Emden") && left.contains("What time"), "{left}");
    assert_eq!(left.matches("icons").count(), 2, "{left}");
    let all = machine.run(&["memories", "list", "--all", "--json"]).json();
    let rows = all["results"].as_array().unwrap();
    let row = |word: &str| rows.iter().find(|row| row["memory"].as_str().unwrap().contains(word)).unwrap();
    assert_eq!(row("Kiel")["replaced_by"], row("Emden")["id"], "{all}");
}

#[test]
fn a_chat_has_colour_and_its_commands_work() {
    let machine = Machine::new();
    let steps = json!([
        ["see", "› "],
        ["type", "Our canoe is called Wren.\r"],
        ["see", "Learned: "],
        ["see", "› "],
        ["type", "What is our canoe called?\r"],
        ["see", "Wren"],
        ["see", "› "],
        ["type", "/why\r"],
        ["see", "recalled for the last reply"],
        ["see", "› "],
        ["type", "/memories\r"],
        ["see", "Wren"],
        ["see", "› "],
        ["type", "/forget 1\r"],
        ["see", "› "],
        ["type", "What is our canoe called?\r"],
        ["see", "I don't know"],
        ["see", "› "],
        ["type", "\u{4}"],
    ]);
    let coloured = at_terminal(&machine, 80, &["chat"], &[], steps).ok();
    for (style, what) in
        [("\u{1b}[32m", "memory"), ("\u{1b}[33m", "what is not known"), ("\u{1b}[2m", "dates")]
    {
        assert!(coloured.contains(style), "{what} has a colour: {coloured:?}");
    }
    let steps = json!([
        ["see", "› "],
        ["type", "Where is the canoe?\r"],
        ["see", "I don't know"],
        ["see", "› "],
        ["type", "/quit\r"]
    ]);
    let plain = at_terminal(&machine, 80, &["chat", "--user", "odd"], &[("NO_COLOR", "1")], steps).ok();
    assert!(!plain.contains("\u{1b}[33m"), "{plain:?}");
}

#[test]
fn tables_fit_the_terminal() {
    let machine = Machine::new();
    let long =
        "The keys of the boathouse hang behind the third paddle from the left, next to the old lantern";
    machine.add(&[long, "--verbatim"]);
    machine
        .add(&["船屋的钥匙挂在左边第三支桨的后面，就在那盏旧灯笼旁边，别忘了还要带上手电筒", "--verbatim"]);
    machine.record("boathouse", &[long]);
    for width in [48, 72, 120] {
        for command in
            [&["memories", "list"][..], &["sessions", "list"], &["search", "keys"], &["users", "list"]]
        {
            let shown = at_terminal(&machine, width, command, &[], json!([])).ok();
            let widest = shown.lines().map(|line| line.trim_end_matches('\r').width()).max().unwrap();
            assert!(widest <= usize::from(width), "{command:?} is {widest} wide at {width}: {shown}");
        }
    }
    // Where no terminal is, nothing is cut.
    assert!(machine.run(&["memories", "list"]).ok().contains(long));
}

#[test]
fn an_import_shows_how_far_it_has_come() {
    let machine = Machine::new();
    let line = |number: u32| {
        format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"Paddle {number} is varnished.\"}}]}}\n")
    };
    machine.write("log.jsonl", &(0..30).map(line).collect::<String>());
    let shown = at_terminal(&machine, 100, &["import", "log.jsonl"], &[], json!([])).ok();
    assert!(shown.contains('█') || shown.contains('░'), "{shown:?}");
    assert!(shown.contains("30 new turns"), "{shown}");
    let quiet = machine.run(&["import", "log.jsonl"]);
    assert!(!quiet.stderr.contains('█') && !quiet.stderr.contains('░'), "{}", quiet.stderr);
}

#[test]
fn a_memory_is_edited_in_the_editor_of_the_person() {
    let machine = Machine::new();
    let id = machine.add(&["Ada moors in Kiel", "--verbatim"]);
    let editor = [("VISUAL", ""), ("EDITOR", "sed -i s/Kiel/Emden/")];
    at_terminal(&machine, 80, &["memories", "edit", &id], &editor, json!([])).ok();
    assert!(machine.run(&["memories", "list"]).ok().contains("Ada moors in Emden"));
}
