//! Sessions: created by the first write, listed by the last write, with almost any name.

use serde_json::json;

use super::fixture::*;
use crate::id::MAX_NAME_CHARS;
use crate::state::{State, Task};
use crate::store::{Change, Page, Store};

fn state(note: &str) -> State {
    let mut state = State::default();
    state.system_state.insert("note".to_owned(), json!(note));
    state
}

fn putting(to: &str, state: State) -> Change {
    Change::PutState { session: session(to), state: Box::new(state) }
}

/// Appending to a session that does not exist creates it at the time of the change set.
pub async fn creates_a_session_with_its_first_turn(store: &dyn Store) {
    apply_at(store, &ann(), 10, appending("s", vec![turn("one")])).await;
    let first = store.session(&ann(), &session("s")).await.unwrap().unwrap();
    assert_eq!(first.id, session("s"));
    assert_eq!((first.created_at, first.updated_at, first.turn_count), (at(10), at(10), 1));
    assert_eq!(first.state, State::default());
    apply_at(store, &ann(), 20, appending("s", vec![turn("two"), turn("three")])).await;
    let second = store.session(&ann(), &session("s")).await.unwrap().unwrap();
    assert_eq!((second.created_at, second.updated_at, second.turn_count), (at(10), at(20), 3));
}

/// A session that was never written does not exist.
pub async fn has_no_session_that_was_never_written(store: &dyn Store) {
    assert_eq!(store.session(&ann(), &session("s")).await.unwrap(), None);
    assert!(store.sessions(&ann(), Page::first(10)).await.unwrap().is_empty());
    append(store, &ann(), "s", &["one"]).await;
    assert_eq!(store.session(&ann(), &session("S")).await.unwrap(), None);
}

/// A state replaces the former one and comes back whole, with its unknown fields.
pub async fn keeps_state_and_its_unknown_fields(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    let mut full = state("first");
    full.diagnostic.findings.push("过热".to_owned());
    full.diagnostic.device_ip = Some("10.0.0.1".to_owned());
    full.active_tasks.push(Task {
        id: "t1".to_owned(),
        description: "look".to_owned(),
        status: "Running".to_owned(),
        progress: 0.25,
        created_at: 1,
        updated_at: 2,
        extra: object(json!({"owner": "ann"})),
    });
    full.tool_stats.by_tool.insert("grep".to_owned(), 3);
    full.extra.insert("later_version".to_owned(), json!({"kept": [1, 2]}));
    apply_at(store, &ann(), 5, putting("s", full.clone())).await;
    let read = store.session(&ann(), &session("s")).await.unwrap().unwrap();
    assert_eq!((read.state, read.updated_at, read.turn_count), (full, at(5), 1));
    apply_at(store, &ann(), 6, putting("s", state("second"))).await;
    assert_eq!(store.session(&ann(), &session("s")).await.unwrap().unwrap().state, state("second"));
}

/// A state creates the session if it does not exist.
pub async fn creates_a_session_with_its_first_state(store: &dyn Store) {
    apply_at(store, &ann(), 5, putting("s", state("early"))).await;
    let read = store.session(&ann(), &session("s")).await.unwrap().unwrap();
    assert_eq!((read.turn_count, read.created_at, read.state), (0, at(5), state("early")));
    let applied = apply(store, &ann(), appending("s", vec![turn("one")])).await;
    assert_eq!(applied.turns[0].seq, 0);
}

/// Turns and state are independent.
pub async fn appending_leaves_the_state_alone(store: &dyn Store) {
    apply(store, &ann(), putting("s", state("kept"))).await;
    append(store, &ann(), "s", &["one"]).await;
    assert_eq!(store.session(&ann(), &session("s")).await.unwrap().unwrap().state, state("kept"));
}

/// Sessions are listed by their last write of any kind, newest first.
pub async fn lists_the_last_written_first(store: &dyn Store) {
    for (second, name) in [(1, "a"), (2, "b"), (3, "c")] {
        apply_at(store, &ann(), second, appending(name, vec![turn("one")])).await;
    }
    apply_at(store, &ann(), 4, appending("a", vec![turn("two")])).await;
    apply_at(store, &ann(), 5, putting("b", state("touched"))).await;
    let sessions = store.sessions(&ann(), Page::first(10)).await.unwrap();
    assert_eq!(sessions.iter().map(|session| session.id.as_str()).collect::<Vec<_>>(), ["b", "a", "c"]);
    for listed in sessions {
        assert_eq!(store.session(&ann(), &listed.id).await.unwrap(), Some(listed));
    }
}

/// Pages cut the list without overlap or gap.
pub async fn pages_through_sessions(store: &dyn Store) {
    for number in 0..7 {
        apply_at(store, &ann(), number, appending(&format!("s{number}"), vec![turn("one")])).await;
    }
    let mut names = Vec::new();
    for offset in [0, 3, 6, 9] {
        let page = store.sessions(&ann(), Page { offset, limit: 3 }).await.unwrap();
        names.extend(page.into_iter().map(|session| session.id.to_string()));
    }
    assert_eq!(names, ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]);
    let beyond = Page { offset: i64::MAX as u64, limit: u32::MAX };
    assert!(store.sessions(&ann(), beyond).await.unwrap().is_empty());
}

/// Users and sessions may have almost any name.
pub async fn takes_odd_names(store: &dyn Store) {
    let longest = "长".repeat(MAX_NAME_CHARS);
    let names = [
        "user:agent:1",
        "../../x",
        "/etc/passwd",
        "C:\\con",
        ".",
        "..",
        " ",
        "🦀",
        "a\u{301}",
        "%2e%2e",
        "'; --",
        "*s",
        "CON",
        "naïve",
        "\u{202e}x",
        &longest,
    ];
    for name in names {
        let owner = user(name);
        append(store, &owner, name, &[name]).await;
        let read = all_turns(store, &owner, name).await;
        assert_eq!(read.len(), 1, "{name}");
        assert_eq!((read[0].session.as_str(), read[0].content.as_str()), (name, name));
        let sessions = store.sessions(&owner, Page::first(10)).await.unwrap();
        assert_eq!(sessions.iter().map(|session| session.id.as_str()).collect::<Vec<_>>(), [name]);
    }
    let users = store.users(Page::first(100)).await.unwrap();
    assert_eq!(users.len(), names.len());
}

/// Names that look similar are different names.
pub async fn keeps_names_apart_that_look_alike(store: &dyn Store) {
    let names = ["s", "S", "s ", " s", "ｓ", "é", "e\u{301}", "E\u{301}", "a/b", "a:b", "a%2Fb", "a_b"];
    for name in names {
        append(store, &ann(), name, &[name]).await;
        append(store, &user(name), "same", &[name]).await;
    }
    for name in names {
        let contents =
            |turns: Vec<crate::Turn>| turns.into_iter().map(|turn| turn.content).collect::<Vec<_>>();
        assert_eq!(contents(all_turns(store, &ann(), name).await), [name]);
        assert_eq!(contents(all_turns(store, &user(name), "same").await), [name]);
    }
}
