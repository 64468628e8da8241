use serde_json::json;

use super::*;
use crate::ErrorKind;
use crate::store::conformance::fixture::{at, deleted, memory, object, session, summary, turn};
use crate::turn::Role;

fn parts(turns: &[&str]) -> SessionParts {
    let turns: Vec<Turn> = (0u64..)
        .zip(turns)
        .map(|(seq, content)| {
            let role = if seq.is_multiple_of(2) { Role::User } else { Role::Assistant };
            let mut said = turn(content).at(session("user:agent:123"), seq);
            (said.role, said.created_at) = (role, at(seq as i64));
            said
        })
        .collect();
    SessionParts {
        session: Session {
            id: session("user:agent:123"),
            created_at: at(0),
            updated_at: at(9),
            version: 1,
            turn_count: turns.len() as u64,
            state: State::default(),
        },
        memories: vec![memory("User prefers verbose output"), memory("Project uses Rust 1.75")],
        turns,
        summary: None,
    }
}

fn refused(parts: &SessionParts, after: &ContextData, word: &str) {
    let error = changes(parts, after).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Conflict), "{error}");
    assert!(error.message().contains(word), "{error}");
}

#[test]
fn a_session_reads_as_the_document() {
    let mut parts = parts(&["Create a new file", "I'll create the file for you", "oops"]);
    parts.turns[2].hidden = deleted(5);
    parts.memories.push(memory("Project uses Rust 1.75"));
    parts.memories.push(Memory { hidden: deleted(1), ..memory("gone") });
    parts.summary = Some(summary("user:agent:123", 0));
    parts.session.state.tool_stats.total_calls = 42;
    parts.session.state.last_known_environment = object(json!({ "workspace": "/p", "mood": "calm" }));
    parts.session.state.extra = object(json!({ "title": "Files" }));
    let context = of_session(&parts);
    assert_eq!(
        serde_json::to_value(&context).unwrap(),
        json!({
            "session_id": "user:agent:123",
            "system_state": {},
            "facts": ["Project uses Rust 1.75", "User prefers verbose output"],
            "recent_history": [
                { "timestamp": 1_700_000_000, "role": "user", "content": "Create a new file", "token_count": 1 },
                { "timestamp": 1_700_000_001, "role": "assistant", "content": "I'll create the file for you",
                  "token_count": 1 },
            ],
            "long_term_summary": "they talked",
            "active_tasks": [],
            "tool_stats": { "total_calls": 42, "by_tool": {}, "failures": 0 },
            "last_known_environment": { "workspace": "/p", "last_update": 0, "system_snapshot": {}, "mood": "calm" },
            "token_usage": { "total_input": 0, "total_output": 0, "by_session": 0 },
            "title": "Files",
        })
    );
    assert!(changes(&parts, &context).unwrap().is_empty());
}

#[test]
fn facts_that_come_and_go_are_memories_that_come_and_go() {
    let parts = parts(&["hello"]);
    let mut after = of_session(&parts);
    after.facts = ["User prefers verbose output", "User speaks English", "User speaks English"]
        .map(str::to_owned)
        .to_vec();
    let asked = changes(&parts, &after).unwrap();
    assert_eq!(asked.new_facts, ["User speaks English"]);
    assert_eq!(asked.removed_facts, [parts.memories[1].id]);
    assert_eq!((asked.state, asked.summary, asked.new_messages), (None, None, vec![]));
}

#[test]
fn state_fields_become_the_state_and_leave_the_diagnosis_alone() {
    let mut parts = parts(&[]);
    parts.session.state.diagnostic.device_ip = Some("10.1.1.47".to_owned());
    let mut after = of_session(&parts);
    after.tool_stats.total_calls += 1;
    after.token_usage.total_input = 7;
    after.last_known_environment.workspace = "/p".to_owned();
    after.extra = object(json!({ "mine": true }));
    let state = changes(&parts, &after).unwrap().state.unwrap();
    assert_eq!(state.diagnostic, parts.session.state.diagnostic);
    assert_eq!((state.tool_stats.total_calls, state.token_usage.total_input), (1, 7));
    assert_eq!(state.last_known_environment["workspace"], "/p");
    assert_eq!(state.extra["mine"], true);
    after.extra = object(json!({ "diagnostic": {} }));
    refused(&parts, &after, "`diagnostic`");
}

#[test]
fn a_history_grows_at_its_end_only() {
    let parts = parts(&["one", "two", "three"]);
    let served = of_session(&parts);
    let entry = |role: &str, content: &str| HistoryEntry {
        timestamp: 1_708_654_321,
        role: role.to_owned(),
        content: content.to_owned(),
        token_count: None,
    };

    let mut after = served.clone();
    after.recent_history.push(entry("tool", "{\"success\": true}"));
    let asked = changes(&parts, &after).unwrap();
    assert_eq!(asked.new_messages.len(), 1);
    assert_eq!(asked.new_messages[0].role, Role::Tool);
    assert_eq!(asked.new_messages[0].created_at.unwrap().as_second(), 1_708_654_321);

    let mut edited = served.clone();
    edited.recent_history[1].content = "zwei".to_owned();
    refused(&parts, &edited, "entry 1");
    let mut inserted = served.clone();
    inserted.recent_history.insert(1, entry("user", "in between"));
    refused(&parts, &inserted, "entry 1");
    let mut shorter = served.clone();
    shorter.recent_history.pop();
    refused(&parts, &shorter, "entry 2");
    let mut dropped = served.clone();
    dropped.recent_history.remove(0);
    refused(&parts, &dropped, "summarise them");
    let mut emptied = served.clone();
    emptied.recent_history.clear();
    refused(&parts, &emptied, "summarise them");
    let mut unknown_role = served.clone();
    unknown_role.recent_history.push(entry("narrator", "meanwhile"));
    refused(&parts, &unknown_role, "role `narrator`");
    let mut other = served;
    other.session_id = "another".to_owned();
    refused(&parts, &other, "`another`");
}

#[test]
fn unknown_fields_of_a_new_entry_become_metadata() {
    let parts = parts(&["one"]);
    let mut document = serde_json::to_value(of_session(&parts)).unwrap();
    let entry = json!({ "role": "user", "content": "two", "mood": "calm" });
    document["recent_history"].as_array_mut().unwrap().push(entry);
    let after: ContextData = serde_json::from_value(document).unwrap();
    let asked = changes(&parts, &after).unwrap();
    assert_eq!(asked.new_messages[0].metadata["mood"], "calm");
    assert_eq!(asked.new_messages[0].created_at, None, "no timestamp means now");
}

#[test]
fn oldest_entries_leave_into_a_longer_summary() {
    let mut parts = parts(&["one", "two", "three"]);
    parts.summary = Some(summary("user:agent:123", 0));
    let mut after = of_session(&parts);
    after.recent_history.drain(..2);
    after.long_term_summary.push_str(", and went on");
    let rewrite = changes(&parts, &after).unwrap().summary.unwrap();
    assert_eq!((rewrite.text.as_str(), rewrite.end_seq), ("they talked, and went on", 1));
    assert_eq!(rewrite.structured, json!({ "history_from": 2 }));
}

#[test]
fn the_history_reaches_back_to_the_last_compaction() {
    let check = |turns: u64, summarised: Option<u64>, from: Option<u64>, expected: u64| {
        let session = Session { turn_count: turns, ..parts(&[]).session };
        let mut version = summarised.map(|end| summary("user:agent:123", end));
        if let (Some(version), Some(from)) = (&mut version, from) {
            version.structured = Some(json!({ "history_from": from }));
        }
        let start = SessionParts::history_start(&session, version.as_ref(), 1_000);
        assert_eq!(start, expected, "{turns} turns, {summarised:?}, {from:?}");
    };
    check(0, None, None, 0);
    check(40, None, None, 0);
    check(400, None, None, 0);
    check(4_000, None, None, 3_000);
    check(400, Some(300), None, 0);
    check(400, Some(393), Some(42), 42);
    check(4_000, Some(3_993), None, 3_000);
    check(400, Some(393), Some(394), 394);
    check(4_000, Some(10), Some(11), 3_000);
}
