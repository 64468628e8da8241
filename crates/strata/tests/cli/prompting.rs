//! Prompts, the state behind them, working contexts, and imports.

use serde_json::{Value, json};

use crate::harness::Machine;

/// A session about a diagnosed device.
fn diagnosed() -> Machine {
    let machine = Machine::new();
    let lines = [
        json!({"role": "user", "content": "look at 10.1.1.47"}),
        json!({"role": "tool", "content": "ok", "name": "fetch_log"}),
        json!({"role": "assistant", "content": "I downloaded tic_20260301.log."}),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    machine.feed(&["record", "--session", "pump"], lines).ok();
    machine
}

#[test]
fn a_prompt_is_a_text_or_messages() {
    let machine = diagnosed();
    let flat = machine.run(&["prompt", "why?", "--session", "pump"]).ok();
    assert!(flat.starts_with("why?\n\n<diagnostic_context>\nDevice: 10.1.1.47\n"), "{flat}");
    let chat = machine.run(&["prompt", "why?", "--session", "pump", "--format", "chat", "--json"]).json();
    let last = chat["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user");
    assert!(last["content"].as_str().unwrap().ends_with("\n\nwhy?"), "{last}");
    let small = machine.run(&["prompt", "why?", "--session", "pump", "--max-tokens", "1", "--json"]).json();
    assert_eq!(small["prompt"], "why?");
    assert!(!small["cut"].as_array().unwrap().is_empty(), "{small}");
    let fed = machine.feed(&["prompt", "-", "--session", "pump", "--json"], "why?\n").json();
    assert!(fed["prompt"].as_str().unwrap().starts_with("why?\n\n"), "{fed}");
}

#[test]
fn a_profile_of_the_configuration_reads_what_is_recorded() {
    let machine = Machine::new();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/prompt.md");
    let page = std::fs::read_to_string(page).unwrap();
    machine.write("strata.toml", page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap());
    let lines = [
        json!({"role": "user", "content": "My order SO-20417 has not arrived, I am Mei Lin."}),
        json!({"role": "assistant", "content": "I opened ticket #8812."}),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    machine.feed(&["record", "--session", "desk"], lines).ok();
    let prompt = machine.run(&["prompt", "and now?", "--session", "desk"]).ok();
    assert!(prompt.contains("<support_context>\nOrder: SO-20417\nTicket: 8812\n"), "{prompt}");
}

#[test]
fn a_state_is_shown_and_replaced() {
    let machine = diagnosed();
    let mut state = machine.run(&["state", "show", "pump"]).json();
    assert_eq!(state["diagnostic"]["device_ip"], "10.1.1.47");
    state["diagnostic"]["findings"] = json!(["the pump is loose"]);
    state["own"] = json!([1, null]);
    assert_eq!(machine.feed(&["state", "set", "pump", "-"], state.to_string()).json(), state);
    machine.write("state.json", &state.to_string());
    assert_eq!(machine.run(&["state", "set", "pump", "state.json"]).json(), state);
    assert_eq!(machine.run(&["state", "show", "pump"]).json(), state);
    let error = machine.feed(&["state", "set", "pump", "-"], "{\"diagnostic\": 5}").failed(1);
    assert!(error.contains("is not a valid document"), "{error}");
}

#[test]
fn a_context_is_printed_compacted_and_written_back() {
    let machine = diagnosed();
    let mut context = machine.run(&["context", "pump"]).json();
    assert_eq!(context["tool_stats"]["by_tool"]["fetch_log"], 1);
    context["facts"] = json!(["the pump is loose"]);
    context["own"] = json!({"kept": true});
    let written = machine.feed(&["context", "pump", "--write", "-"], context.to_string()).json();
    assert_eq!(written, context);
    let mut shorter = context.clone();
    shorter["facts"] = json!([]);
    let refused = machine.feed(&["context", "pump", "--write", "-"], shorter.to_string()).failed(1);
    assert!(refused.contains("`facts`") && refused.contains("--allow-removal"), "{refused}");
    let removing = ["context", "pump", "--write", "-", "--allow-removal"];
    assert_eq!(machine.feed(&removing, shorter.to_string()).json(), shorter);
    machine.feed(&["context", "pump", "--write", "-"], context.to_string()).json();
    let texts: Vec<String> = (0..60).map(|number| format!("message {number}")).collect();
    machine.record("pump", &texts.iter().map(String::as_str).collect::<Vec<_>>());
    let compacted = machine.run(&["context", "pump", "--compact"]).json();
    assert_eq!(compacted["recent_history"].as_array().unwrap().len(), 30);
    assert!(compacted["long_term_summary"].as_str().unwrap().contains("message 10"), "{compacted}");
    let ran = machine.run(&["context", "pump", "--compact"]);
    assert!(ran.stderr.contains("nothing to compact"), "{}", ran.stderr);
    assert_eq!(ran.json(), compacted);
    let shown = machine.run(&["sessions", "show", "pump", "--summaries", "--json"]).json();
    assert_eq!(shown["summaries"][0]["text"], compacted["long_term_summary"]);
    let table = machine.run(&["sessions", "show", "pump", "--summaries"]).ok();
    assert!(table.contains(" rolling completed turns 0 to "), "{table}");
}

#[test]
fn an_import_is_repeated_without_effect() {
    let machine = Machine::new();
    let source = machine.home().join("old.db");
    let tables = "CREATE TABLE conversations (id INTEGER PRIMARY KEY, title TEXT);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, conversation_id INTEGER, role TEXT, content TEXT);
        INSERT INTO conversations VALUES (7, 'the pump');
        INSERT INTO messages VALUES (1, 7, 'user', 'look at 10.1.1.47'), (2, 7, 'assistant', 'I did.');";
    rusqlite::Connection::open(&source).unwrap().execute_batch(tables).unwrap();
    let bytes = std::fs::read(&source).unwrap();
    let import = |args: &[&str]| -> Value {
        let args: Vec<&str> = ["import", "sqlite", "old.db", "--user", "ada", "--json"]
            .into_iter()
            .chain(args.iter().copied())
            .collect();
        machine.run(&args).json()
    };
    let first = import(&[]);
    assert_eq!((&first["turns_added"], &first["turns_present"]), (&json!(2), &json!(0)), "{first}");
    let second = import(&[]);
    assert_eq!((&second["turns_added"], &second["turns_present"]), (&json!(0), &json!(2)), "{second}");
    let text = machine.run(&["import", "sqlite", "old.db", "--user", "ada", "--prefix", "b:"]).ok();
    assert_eq!(text, "1 conversation: 2 new turns, 0 already imported, 0 rows skipped\n");
    let state = machine.run(&["state", "show", "b:7", "--user", "ada"]).json();
    assert_eq!(state["diagnostic"]["device_ip"], "10.1.1.47");
    assert_eq!(std::fs::read(&source).unwrap(), bytes, "the source is only read");
}

#[test]
fn a_prompt_over_its_budget_says_so() {
    let machine = Machine::new();
    machine.feed(&["record", "--session", "pump"], "The pump hums at night.").ok();
    for (question, is_over) in
        [("Why does the pump hum so loudly every single night?", true), ("Why?", false)]
    {
        let most = if is_over { "3" } else { "4000" };
        let ran = machine.run(&["prompt", question, "--session", "pump", "--max-tokens", most, "--json"]);
        assert_eq!(ran.stderr.contains("the request is never cut"), is_over, "{}", ran.stderr);
        assert_eq!(ran.code, 0);
    }
}
