//! `strata chat` with its messages on stdin, alone and with a scripted model.

use std::io::{Read as _, Write as _};
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Machine, Ran};
use crate::upstream::Upstream;

fn chat(machine: &Machine, args: &[&str], lines: &[&str]) -> Ran {
    let args: Vec<&str> = ["chat"].into_iter().chain(args.iter().copied()).collect();
    machine.feed(&args, lines.join("\n"))
}

/// A chat with the scripted model.
fn with_model(machine: &Machine, upstream: &Upstream, lines: &[&str]) -> Ran {
    let url = upstream.url();
    chat(machine, &["--upstream", &url, "--upstream-key", "sk-1", "--model", "m-1"], lines)
}

/// The turns of the session as `role: content`, hidden ones with a mark.
fn turns(machine: &Machine) -> Vec<String> {
    let shown: Value = machine.run(&["sessions", "show", "chat", "--json"]).json();
    let turns = shown["turns"].as_array().unwrap_or_else(|| panic!("{shown}"));
    let text = |turn: &Value, name: &str| turn[name].as_str().unwrap_or_default().to_owned();
    let mark = |turn: &Value| if turn["hidden"].is_null() { "" } else { " (hidden)" };
    turns
        .iter()
        .map(|turn| format!("{}: {}{}", text(turn, "role"), text(turn, "content"), mark(turn)))
        .collect()
}

#[test]
fn a_newcomer_talks_with_memory_alone() {
    let machine = Machine::new();
    let ran = chat(&machine, &[], &["I moved to Lisbon in March.", "", "Where do I live?"]);
    assert!(
        ran.stderr.contains("memory replies alone") && ran.stderr.contains("--upstream"),
        "{}",
        ran.stderr
    );
    let said = ran.ok();
    assert!(said.starts_with("Learned: ") && said.contains("This is what I remember:\n• "), "{said}");
    assert!(said.lines().last().unwrap().contains("Lisbon"), "{said}");
    assert!(!said.contains('\x1b'), "no colour where there is no terminal: {said:?}");
    // Another session has the same memory.
    let said = chat(&machine, &["--session", "later"], &["Where do I live?", "我住在里斯本吗？"]).ok();
    assert!(said.starts_with("This is what I remember:\n") && said.contains("Lisbon"), "{said}");
    assert!(said.contains("我"), "a Chinese question is answered in Chinese: {said}");
    assert_eq!(turns(&machine), ["user: I moved to Lisbon in March.", "user: Where do I live?"]);
    let said = chat(&machine, &["--store", "memory:"], &["Where do I live?"]).ok();
    assert_eq!(said, "I don't know. I remember nothing about that yet.\n");
}

#[test]
fn a_statement_right_before_a_question_is_found() {
    let machine = Machine::new();
    for (statement, question) in [
        ("The sourdough starter lives in the cellar.", "Why does it smell down there?"),
        ("酵头放在地窖里。", "为什么楼下有味道？"),
    ] {
        let said = chat(&machine, &["--session", statement], &[statement, question]).ok();
        assert!(said.lines().last().unwrap().contains(statement.trim_end_matches(['.', '。'])), "{said}");
    }
    // In another session nothing was said right before.
    let said = chat(&machine, &["--session", "other"], &["Which colour has the roof?"]).ok();
    assert_eq!(said, "I don't know. I remember nothing about that yet.\n");
}

#[test]
fn a_model_replies_with_what_memory_knows() {
    let (machine, upstream) = (Machine::new(), Upstream::start());
    machine.add(&["Ada is allergic to peanuts"]);
    let ran = with_model(&machine, &upstream, &["say hello there", "what must Ada not eat"]);
    assert!(ran.stderr.contains("m-1 at http://"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("sk-1"), "{}", ran.stderr);
    assert_eq!(ran.ok(), "hello there\nreply to what must Ada not eat\n");
    let received = upstream.received();
    let (first, last) = (&received[0], &received[1]);
    assert!(first.head.to_lowercase().contains("authorization: bearer sk-1"), "{}", first.head);
    assert_eq!((&first.body["model"], &first.body["stream"]), (&"m-1".into(), &true.into()));
    let messages = last.body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 3, "{messages:?}");
    let question = messages[2]["content"].as_str().unwrap();
    assert!(question.contains("\n[since 20"), "{question}");
    assert!(question.contains("] Ada is allergic to peanuts"), "{question}");
    assert_eq!(turns(&machine)[..2], ["user: say hello there", "assistant: hello there"]);
}

#[test]
fn a_model_that_fails_costs_nothing_that_was_said() {
    let (machine, upstream) = (Machine::new(), Upstream::start());
    let ran = with_model(&machine, &upstream, &["fail 401", "say good", "break off in the middle"]);
    assert!(ran.stderr.contains("401"), "{}", ran.stderr);
    let said = ran.ok();
    let apology = "Sorry, the model did not answer this time. Nothing was lost";
    assert!(said.starts_with(apology) && said.contains("\ngood\nreply to "), "{said}");
    assert_eq!(said.matches(apology).count(), 2, "{said}");
    let turns = turns(&machine);
    assert_eq!(turns[0], "user: fail 401");
    assert!(
        turns[1].starts_with(&format!("assistant: {apology}")) && turns[1].ends_with("(hidden)"),
        "{turns:?}"
    );
    assert_eq!(turns[2..5], ["user: say good", "assistant: good", "user: break off in the middle"]);
    assert!(turns[5].starts_with("assistant: reply to") && !turns[5].ends_with("(hidden)"), "{turns:?}");
}

#[test]
fn memory_can_be_asked_about_itself() {
    let machine = Machine::new();
    let lines = [
        "/why",
        "I am allergic to peanuts.",
        "What am I allergic to?",
        "/why",
        "/memories",
        "/forget 1",
        "/memories",
        "I live in Porto.",
        "/forget that",
        "/memories",
        "/forget nonsense",
        "/forget 99",
        "/frobnicate",
        "/help",
        "/quit",
        "never said",
    ];
    let ran = chat(&machine, &[], &lines);
    assert!(ran.stderr.contains("there is no reply yet"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`/frobnicate` is not a command"), "{}", ran.stderr);
    assert!(ran.stderr.contains("name a number from"), "{}", ran.stderr);
    assert!(ran.stderr.contains("there is no memory 99"), "{}", ran.stderr);
    assert!(ran.stderr.contains("strata explain "), "{}", ran.stderr);
    let said = ran.ok();
    let after =
        |mark: &str| said.split(mark).nth(1).unwrap_or_else(|| panic!("no {mark:?} in {said}")).to_owned();
    let why = after("recalled for the last reply, from all your sessions:");
    assert!(why.starts_with("\n1. fact of ") && why.contains("relevance "), "{why}");
    assert!(after("#  KIND").contains("allergic"), "{said}");
    assert_eq!(said.matches("there are no memories yet").count(), 2, "{said}");
    assert!(after("your last message is no longer recalled").contains("Porto"), "{said}");
    assert!(said.contains("/forget that"), "{said}");
    assert!(!said.contains("never said"), "{said}");
    assert_eq!(turns(&machine)[2], "user: I live in Porto. (hidden)");
}

#[test]
fn what_is_forgotten_by_number_is_not_answered_from_its_turn() {
    let machine = Machine::new();
    let lines = ["I live in Lisbon.", "/memories", "/forget 1", "Where do I live?", "/why"];
    let said = chat(&machine, &[], &lines).ok();
    let after = said.split("forgotten:").nth(1).unwrap_or_else(|| panic!("nothing was forgotten: {said}"));
    let (forgotten, answered) = after.split_once("the message that said it is no longer recalled").unwrap();
    assert!(forgotten.contains("Lisbon"), "{said}");
    assert!(!answered.contains("Lisbon"), "{said}");
    assert!(answered.contains("nothing was recalled"), "{said}");
    assert_eq!(turns(&machine)[0], "user: I live in Lisbon. (hidden)");
}

#[test]
fn what_is_left_after_forgetting_is_no_answer() {
    let machine = Machine::new();
    let lines = [
        "I live in Lisbon.",
        "I work at the aquarium.",
        "My dog is called Moss.",
        "/memories",
        "/forget 3",
        "Where do I live?",
    ];
    let said = chat(&machine, &[], &lines).ok();
    let answered =
        said.split("no longer recalled").nth(1).unwrap_or_else(|| panic!("nothing was forgotten: {said}"));
    assert!(!answered.contains("This is what I remember"), "{said}");
    assert!(answered.contains("I am not sure.") || answered.contains("I don't know."), "{said}");
}

#[test]
fn a_new_session_knows_the_user() {
    let machine = Machine::new();
    let ran = chat(&machine, &["--user", "ada"], &["I live in Lisbon.", "/new", "Where do I live?"]);
    assert!(ran.stderr.contains("session `chat-"), "{}", ran.stderr);
    assert!(ran.ok().contains("This is what I remember:"));
    let sessions = machine.run(&["sessions", "list", "--user", "ada", "--json"]).json();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 2, "{sessions}");
}

#[test]
fn what_was_learned_behind_the_conversation_is_believed_at_once() {
    let (machine, upstream) = (Machine::new(), Upstream::start());
    let said = with_model(&machine, &upstream, &["I live in Lisbon.", "/memories"]).ok();
    assert!(said.contains("#  KIND") && said.lines().last().unwrap().contains("Lisbon"), "{said}");
}

#[test]
fn nothing_that_is_stored_or_said_steers_the_terminal() {
    let (machine, upstream) = (Machine::new(), Upstream::start());
    machine.add(&["the flat is \u{1b}[31mred\u{7}"]);
    let said = with_model(&machine, &upstream, &["say \u{1b}]0;x\u{7}flat", "/why", "/memories"]).ok();
    assert!(said.contains("flat") && said.contains("red"), "{said}");
    assert!(!said.contains(['\u{1b}', '\u{7}']), "{said:?}");
}

#[test]
fn a_reply_is_stopped_by_an_interrupt() {
    let (machine, upstream) = (Machine::new(), Upstream::start());
    let url = upstream.url();
    let mut child = machine
        .command(&["chat", "--upstream", &url, "--model", "m-1"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    writeln!(stdin, "hang on").unwrap();
    // The reply has begun, because its first words have arrived.
    let mut heard = vec![0; "reply".len()];
    stdout.read_exact(&mut heard).unwrap();
    let kill = format!("kill -INT {}", child.id());
    assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let mut rest = String::new();
    drop(stdin);
    stdout.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    let turns = turns(&machine);
    assert_eq!(turns, ["user: hang on", "assistant: reply "]);
    let shown = machine.run(&["sessions", "show", "chat", "--json"]).json();
    assert_eq!(shown["turns"][1]["interrupted"], true, "{shown}");
}
