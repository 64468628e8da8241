//! Alignment by examples, and with clients that change their conversations at random.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A session as the engine stores it: each turn's text, the turn that it follows, and whether recall sees it.
#[derive(Debug, Default)]
struct Session {
    turns: Vec<(Stored, bool)>,
}

impl Session {
    fn visible(&self) -> Vec<Stored> {
        self.turns.iter().filter(|(_, visible)| *visible).map(|(turn, _)| *turn).collect()
    }

    /// Aligns and records like the engine. Returns the new messages and the number of abandoned turns.
    fn hear(&mut self, heard: &[Heard]) -> (Alignment, usize) {
        let alignment = align(&self.visible(), heard);
        for (turn, visible) in &mut self.turns {
            *visible &= !alignment.abandoned.contains(&turn.seq);
        }
        let mut after = alignment.after;
        for message in &heard[alignment.known..] {
            after = Some(self.append(*message, after));
        }
        let new = heard.len() - alignment.known;
        (alignment, new)
    }

    fn append(&mut self, message: Heard, after: Option<u64>) -> u64 {
        let seq = self.turns.len() as u64;
        let follows = after.map_or(Follows::Nothing, Follows::Turn);
        self.turns.push((Stored { seq, key: message.key, role: message.role, follows }, true));
        seq
    }

    /// The keys on the path that ends at the newest visible turn.
    fn path(&self) -> Vec<u64> {
        let stored = self.visible();
        let forest = Forest::new(&stored);
        let mut path = Vec::new();
        let mut place = stored.len().checked_sub(1);
        while let Some(turn) = place {
            path.push(stored[turn].key);
            place = forest.parents[turn];
        }
        path.reverse();
        path
    }
}

fn said(role: Role, text: &str) -> Heard {
    Heard { key: key(role, text, &TurnNotes::default()), role }
}

/// `u:` and `a:` messages from a short notation.
fn messages(texts: &[&str]) -> Vec<Heard> {
    let message = |text: &&str| match text.split_once(':') {
        Some(("u", text)) => said(Role::User, text),
        Some(("a", text)) => said(Role::Assistant, text),
        _ => panic!("`{text}` has no speaker"),
    };
    texts.iter().map(message).collect()
}

/// The messages that the last request adds, and the turns that it abandons, after the requests in `before`.
#[track_caller]
fn check(before: &[&[&str]], last: &[&str], new: usize, abandoned: usize) {
    let mut session = Session::default();
    for request in before {
        session.hear(&messages(request));
    }
    let heard = messages(last);
    let (alignment, added) = session.hear(&heard);
    assert_eq!((added, alignment.abandoned.len()), (new, abandoned), "{before:?} then {last:?}");
    let (again, added) = session.hear(&heard);
    assert_eq!((added, again.abandoned.len()), (0, 0), "{last:?} sent again changes nothing");
}

#[test]
fn only_new_messages_are_added() {
    check(&[], &["u:hello"], 1, 0);
    check(&[&["u:1", "a:2"]], &["u:1", "a:2", "u:3"], 1, 0);
    check(&[&["u:1", "a:2", "u:3", "a:4"]], &["u:1", "a:2", "u:3", "a:4", "u:5"], 1, 0);
    // A history that Strata does not have.
    check(&[], &["u:1", "a:2", "u:3"], 3, 0);
}

#[test]
fn a_branch_that_was_left_is_abandoned() {
    let whole: &[&str] = &["u:1", "a:2", "u:3", "a:4"];
    // The client asks for another reply.
    check(&[whole], &["u:1", "a:2", "u:3"], 0, 1);
    check(&[&["u:1", "a:2"]], &["u:1"], 0, 1);
    // A question is edited, in the middle or at the end.
    check(&[whole], &["u:1", "a:2", "u:3 please"], 1, 2);
    check(&[&["u:1", "a:2", "u:3", "a:4", "u:5", "a:6"]], &["u:1", "a:2", "u:9"], 1, 4);
    // The client sends the reply back changed.
    check(&[&["u:1", "a:2"]], &["u:1", "a:2 (edited)", "u:3"], 2, 1);
}

#[test]
fn clients_that_trim_or_touch_the_past_still_align() {
    let whole: &[&str] = &["u:1", "a:2", "u:3", "a:4", "u:5", "a:6"];
    check(&[whole], &["a:4", "u:5", "a:6", "u:7"], 1, 0);
    check(&[whole], &["a:6", "u:7"], 1, 0);
    // An old tool result or reply is shortened.
    check(&[whole], &["u:1", "a:(left out)", "u:3", "a:4", "u:5", "a:6", "u:7"], 1, 0);
    check(&[whole], &["u: 1 ", "a:2\n", "u:3", "a:4", "u:5", "a:\t6", "u:7"], 1, 0);
}

#[test]
fn conversations_that_share_a_session_leave_each_other_alone() {
    let one: &[&str] = &["u:1", "a:2", "u:3", "a:4"];
    let other: &[&str] = &["u:x", "a:y"];
    check(&[one], other, 2, 0);
    check(&[one, other], &["u:1", "a:2", "u:3", "a:4", "u:5"], 1, 0);
    check(&[one, other], &["u:x", "a:y", "u:z"], 1, 0);
    // The same greeting begins another conversation.
    check(&[&["u:hi", "a:hello", "u:3", "a:4"]], &["u:hi"], 1, 0);
    let long: Vec<String> = (0..20).flat_map(|n| [format!("u:q{n}"), format!("a:r{n}")]).collect();
    let long: Vec<&str> = ["u:hi", "a:hello"].into_iter().chain(long.iter().map(String::as_str)).collect();
    check(&[&long], &["u:hi", "a:hello", "u:new"], 1, 0);
}

#[test]
fn injected_blocks_do_not_count_as_said() {
    let plain = key(Role::User, "hello", &TurnNotes::default());
    let injected = "<strata_memory>\nknown\n</strata_memory>\n\nhello";
    assert_eq!(key(Role::User, injected, &TurnNotes::default()), plain);
    assert_ne!(key(Role::Assistant, "hello", &TurnNotes::default()), plain);
    let calls = TurnNotes { tool_calls: vec![json!({"id": "a"})], ..TurnNotes::default() };
    assert_ne!(key(Role::Assistant, "", &calls), key(Role::Assistant, "", &TurnNotes::default()));
}

#[test]
fn a_huge_history_is_bounded() {
    let heard = vec![said(Role::User, "ok"); 100_000];
    let stored: Vec<Stored> = (0..1_024)
        .map(|seq| Stored { seq, key: heard[0].key, role: Role::User, follows: Follows::Previous })
        .collect();
    let alignment = align(&stored, &heard);
    assert!(alignment.known > 100_000 - MAX_HEARD);
}

/// The next action of a client.
#[derive(Debug, Clone)]
enum Step {
    Ask,
    Retry,
    Regenerate,
    /// Edits the question this many exchanges ago.
    Edit(usize),
    /// Sends only this many of the last messages from now on.
    Trim(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Ask),
        1 => Just(Step::Retry),
        1 => Just(Step::Regenerate),
        1 => (0usize..2).prop_map(Step::Edit),
        1 => (2usize..7).prop_map(Step::Trim),
    ]
}

proptest! {
    /// After any edits of the client, the visible path of the session ends with the messages that it sent last, each
    /// message is stored once, and another conversation in the session stays unchanged.
    #[test]
    fn the_session_follows_its_client(steps in vec(step(), 1..40)) {
        let mut session = Session::default();
        session.hear(&messages(&["u:another conversation", "a:of the same user"]));
        let mut history: Vec<Heard> = Vec::new();
        let mut number = 0;
        let mut window = usize::MAX;
        let mut fresh = |role| {
            number += 1;
            said(role, &format!("message {number}"))
        };
        for step in steps {
            match step {
                Step::Ask => history.push(fresh(Role::User)),
                Step::Retry => {}
                Step::Regenerate => drop(history.pop_if(|last| last.role == Role::Assistant)),
                Step::Edit(exchanges) => {
                    history.truncate(history.len().saturating_sub(2 * exchanges + 1) & !1);
                    history.push(fresh(Role::User));
                }
                Step::Trim(most) => {
                    window = most;
                    continue;
                }
            }
            if history.last().is_none_or(|last| last.role != Role::User) {
                continue;
            }
            let sent = &history[history.len().saturating_sub(window)..];
            session.hear(sent);
            let keys: Vec<u64> = sent.iter().map(|message| message.key).collect();
            prop_assert!(session.path().ends_with(&keys), "{:?} after {sent:?}", session.path());
            let reply = fresh(Role::Assistant);
            let question = session.visible().last().map(|turn| turn.seq);
            session.append(reply, question);
            history.push(reply);
        }
        let visible = session.visible();
        let mut keys: Vec<u64> = visible.iter().map(|turn| turn.key).collect();
        prop_assert_eq!(&keys[..2], messages(&["u:another conversation", "a:of the same user"]).iter().map(|m| m.key).collect::<Vec<_>>());
        keys.sort_unstable();
        keys.dedup();
        prop_assert_eq!(keys.len(), visible.len(), "nothing is stored twice");
    }
}
