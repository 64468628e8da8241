//! Exchanges over the reference store.

use super::*;
use crate::Ended;
use crate::recall::tests::fixture::*;
use strata_core::store::{JobQuery, Store};
use strata_core::turn::{Role, TurnNotes};

fn messages(texts: &[&str]) -> Vec<NewMessage> {
    let roles = [Role::User, Role::Assistant].into_iter().cycle();
    texts.iter().zip(roles).map(|(text, role)| NewMessage::new(role, *text)).collect()
}

fn reply(text: &str) -> Ending {
    Ending::Complete(NewMessage::new(Role::Assistant, text))
}

impl World {
    async fn exchange(&self, said: &[&str], ending: Ending) {
        let exchange =
            self.engine.recording.open_exchange(&self.user, &session("s"), &messages(said)).await.unwrap();
        self.engine.recording.close_exchange(&self.user, exchange, ending).await.unwrap();
    }

    /// Every turn as `role: content`, a hidden one with its reason.
    async fn turns(&self) -> Vec<String> {
        let turns = self.engine.sessions.turns(&self.user, &session("s"), None, 100).await.unwrap();
        let shown = |turn: Turn| {
            let why = turn.hidden.map(|hidden| format!(" ({})", hidden.reason.as_str()));
            format!("{}: {}{}", turn.role.as_str(), turn.content, why.unwrap_or_default())
        };
        turns.into_iter().map(shown).collect()
    }

    async fn jobs(&self) -> Vec<Job> {
        let query = JobQuery { limit: 100, ..JobQuery::default() };
        let jobs = self.store.jobs(&self.user, &query).await.unwrap();
        jobs.into_iter().filter(|job| job.kind == JobKind::Reply.as_str()).collect()
    }

    /// Works on due jobs, and returns whether a reply was given up.
    async fn work(&self) -> bool {
        let done = self.engine.learning.learn_all().await.unwrap();
        done.iter().any(|done| done.kind == JobKind::Reply.as_str() && done.ended == Ended::Done)
    }
}

#[tokio::test]
async fn a_conversation_is_recorded_once_however_often_it_is_sent() {
    let world = World::new();
    world.exchange(&["one"], reply("two")).await;
    world.exchange(&["one", "two", "three"], reply("four")).await;
    world.exchange(&["one", " two\n", "three", "four", "five"], reply("six")).await;
    let all =
        ["user: one", "assistant: two", "user: three", "assistant: four", "user: five", "assistant: six"];
    assert_eq!(world.turns().await, all);
    assert_eq!(world.jobs().await, [], "nothing is awaited any more");
    let turns = world.engine.sessions.turns(&world.user, &session("s"), None, 9).await.unwrap();
    let follows: Vec<_> = turns.iter().map(|turn| turn.notes.follows).collect();
    assert_eq!(follows[0], Follows::Nothing);
    assert_eq!((follows[1], follows[2]), (Follows::Turn(0), Follows::Previous));
}

#[tokio::test]
async fn evicted_turns_are_not_recorded_again() {
    let world = World::with(|settings| {
        settings.learn.max_entries = 1;
        settings.learn.delay_secs = Some(0);
    });
    world.exchange(&["one"], reply("two")).await;
    world.exchange(&["one", "two", "three"], reply("four")).await;
    world.engine.learning.learn_all().await.unwrap();
    world.exchange(&["one", "two", "three", "four", "five"], reply("six")).await;
    let turns = world.turns().await;
    assert_eq!(turns.len(), 6, "{turns:?}");
    assert_eq!(turns[0], "user: one (evicted)");
}

#[tokio::test]
async fn a_reply_made_again_and_a_question_said_otherwise_leave_recall() {
    let world = World::new();
    world.exchange(&["one"], reply("two")).await;
    world.exchange(&["one"], reply("two again")).await;
    assert_eq!(world.turns().await, ["user: one", "assistant: two (abandoned)", "assistant: two again"]);
    world.exchange(&["one", "two again", "three"], reply("four")).await;
    world.exchange(&["one", "two again", "other"], reply("fifth")).await;
    let all = [
        "user: one",
        "assistant: two (abandoned)",
        "assistant: two again",
        "user: three (abandoned)",
        "assistant: four (abandoned)",
        "user: other",
        "assistant: fifth",
    ];
    assert_eq!(world.turns().await, all);
}

#[tokio::test]
async fn failed_and_interrupted_replies_are_marked() {
    let world = World::new();
    world.exchange(&["one"], Ending::Failed(NewMessage::new(Role::Assistant, "429: slow down"))).await;
    world.exchange(&["one"], Ending::Interrupted(NewMessage::new(Role::Assistant, ""))).await;
    world.exchange(&["one"], Ending::Interrupted(NewMessage::new(Role::Assistant, "half"))).await;
    let all = ["user: one", "assistant: 429: slow down (error)", "assistant:  (error)", "assistant: half"];
    assert_eq!(world.turns().await, all, "a retry stores the question once");
    let turns = world.engine.sessions.turns(&world.user, &session("s"), None, 9).await.unwrap();
    assert!(turns[3].notes.interrupted);
}

#[tokio::test]
async fn a_reply_whose_process_died_is_known_to_be_interrupted() {
    let world = World::new();
    let dead =
        world.engine.recording.open_exchange(&world.user, &session("s"), &messages(&["one"])).await.unwrap();
    assert!(!world.work().await, "it is awaited");
    world.clock.forward(31);
    assert!(world.work().await, "nobody has awaited it for half a minute");
    assert_eq!(world.turns().await, ["user: one", "assistant:  (error)"]);
    assert_eq!(world.jobs().await, []);
    // The process was not dead, only slow.
    world.engine.recording.close_exchange(&world.user, dead, reply("two")).await.unwrap();
    assert_eq!(world.turns().await, ["user: one", "assistant:  (error)", "assistant: two"]);
}

#[tokio::test]
async fn a_reply_is_awaited_no_longer_than_any_job() {
    let world = World::with(|settings| settings.learn.lease_secs = 5);
    let open = world.engine.recording.open_exchange(&world.user, &session("s"), &messages(&["one"])).await;
    assert_eq!(world.engine.recording.exchange_hold(), std::time::Duration::from_secs(5) / 3);
    let mut exchange = open.unwrap();
    world.clock.forward(4);
    world.engine.recording.hold_exchange(&world.user, &mut exchange).await.unwrap();
    world.clock.forward(4);
    assert!(!world.work().await, "it is held");
    world.clock.forward(2);
    assert!(world.work().await);
    assert_eq!(world.turns().await, ["user: one", "assistant:  (error)"]);
}

#[tokio::test]
async fn a_reply_that_takes_long_is_held() {
    let world = World::new();
    let open = world.engine.recording.open_exchange(&world.user, &session("s"), &messages(&["one"])).await;
    let mut exchange = open.unwrap();
    for _ in 0..5 {
        world.clock.forward(20);
        world.engine.recording.hold_exchange(&world.user, &mut exchange).await.unwrap();
    }
    assert!(!world.work().await);
    world.engine.recording.close_exchange(&world.user, exchange, reply("two")).await.unwrap();
    assert_eq!(world.turns().await, ["user: one", "assistant: two"]);
}

#[tokio::test]
async fn a_reply_that_the_client_sends_back_first_is_recorded_once() {
    let world = World::new();
    let s = session("s");
    let open = async |said: &[&str]| {
        world.engine.recording.open_exchange(&world.user, &s, &messages(said)).await.unwrap()
    };
    // The disk is slower than the client: the second and third questions come before the replies are recorded.
    let first = open(&["one"]).await;
    let second = open(&["one", "two", "three"]).await;
    let third = open(&["one", "two", "three", "four", "five"]).await;
    for (exchange, text) in [(first, "two"), (third, "six"), (second, " four")] {
        world.engine.recording.close_exchange(&world.user, exchange, reply(text)).await.unwrap();
    }
    let all =
        ["user: one", "assistant: two", "user: three", "assistant: four", "user: five", "assistant: six"];
    assert_eq!(world.turns().await, all);
    assert_eq!(world.jobs().await, []);
    // The same reply to another question is another reply.
    world.exchange(&["one", "two", "three", "four", "five", "six", "seven"], reply("two")).await;
    assert_eq!(world.turns().await.len(), 8);
}

#[tokio::test]
async fn an_exchange_is_opened_and_closed_once_however_often_that_is_tried() {
    let world = World::new();
    let (s, recording) = (session("s"), &world.engine.recording);
    let ids = recording.exchange_ids();
    let said = messages(&["one"]);
    let open =
        async |ids| recording.open_exchange_as(ids, &world.user, &s, &said, KeptBy::Client).await.unwrap();
    let lost = open(ids).await;
    let again = open(ids.tried()).await;
    assert_eq!(lost.question(), again.question());
    assert_eq!((world.turns().await.len(), world.jobs().await.len()), (1, 1));
    for _ in 0..3 {
        recording.close_exchange(&world.user, again.clone(), reply("two")).await.unwrap();
    }
    assert_eq!(world.turns().await, ["user: one", "assistant: two"]);
    assert_eq!(world.jobs().await, []);
}

#[tokio::test]
async fn a_reply_that_was_given_up_is_recorded_once_however_often_that_is_tried() {
    let world = World::new();
    let (s, recording) = (session("s"), &world.engine.recording);
    let (ids, said) = (recording.exchange_ids(), messages(&["one"]));
    let open = async |ids| recording.open_exchange_as(ids, &world.user, &s, &said, KeptBy::Client).await;
    let dead = open(ids).await.unwrap();
    world.clock.forward(31);
    assert!(world.work().await);
    for exchange in [dead, open(ids.tried()).await.unwrap()] {
        for _ in 0..2 {
            recording.close_exchange(&world.user, exchange.clone(), reply("two")).await.unwrap();
        }
    }
    assert_eq!(world.turns().await, ["user: one", "assistant:  (error)", "assistant: two"]);
    assert_eq!(world.jobs().await, []);
}

#[tokio::test]
async fn a_question_forgotten_meanwhile_stays_forgotten() {
    let world = World::new();
    let open = async || {
        world.engine.recording.open_exchange(&world.user, &session("s"), &messages(&["one"])).await.unwrap()
    };
    let exchange = open().await;
    world.engine.sessions.delete(&world.user, &session("s")).await.unwrap();
    world.engine.recording.close_exchange(&world.user, exchange, reply("two")).await.unwrap();
    assert!(world.engine.sessions.get(&world.user, &session("s")).await.is_err());
    assert_eq!(world.jobs().await, []);
    open().await;
    world.engine.sessions.delete(&world.user, &session("s")).await.unwrap();
    world.clock.forward(31);
    assert!(world.work().await);
    assert!(world.engine.sessions.get(&world.user, &session("s")).await.is_err());
}

#[tokio::test]
async fn messages_that_cannot_be_stored_are_made_to_fit() {
    let world = World::with(|settings| settings.limits.max_turn_bytes = 10);
    let exchange = world
        .engine
        .recording
        .open_exchange(&world.user, &session("s"), &messages(&["长长长长长 a\0b"]))
        .await
        .unwrap();
    world.engine.recording.close_exchange(&world.user, exchange, reply("a\0b")).await.unwrap();
    assert_eq!(world.turns().await, ["user: 长长长", "assistant: a\u{fffd}b"]);
    let turns = world.engine.sessions.turns(&world.user, &session("s"), None, 100).await.unwrap();
    assert_eq!((turns[0].notes.truncated, turns[1].notes.truncated), (true, false));
}

#[tokio::test]
async fn the_escape_of_a_nul_is_kept_and_a_nul_is_left_out() {
    let world = World::new();
    let said = |text: &str| {
        let mut message = messages(&["see this"]).remove(0);
        message.metadata.insert("text", text.into());
        message.notes.tool_calls = vec![serde_json::json!({"id": "c", "arguments": text})];
        message.notes.tool_call_id = Some("b".to_owned());
        message
    };
    for (session_name, text, is_kept) in [("escape", r"\u0000", true), ("nul", "\0", false)] {
        let s = session(session_name);
        let exchange = world.engine.recording.open_exchange(&world.user, &s, &[said(text)]).await.unwrap();
        world.engine.recording.close_exchange(&world.user, exchange, reply("seen")).await.unwrap();
        let turn = world.engine.sessions.turns(&world.user, &s, None, 1).await.unwrap().remove(0);
        assert_eq!(turn.content, "see this");
        assert_eq!(turn.metadata.contains_key("text"), is_kept, "{text:?}");
        assert_eq!(turn.notes.tool_calls.len(), usize::from(is_kept), "{text:?}");
        assert_eq!(turn.notes.tool_call_id.is_some(), is_kept, "{text:?}");
    }
}

#[tokio::test]
async fn metadata_steers_nothing() {
    let world = World::new();
    let like_notes = |message: NewMessage| {
        let metadata = serde_json::json!({
            "follows": null, "interrupted": true, "truncated": true, "tool_calls": [{"id": "a"}], "tool_call_id": "a",
            "agent_id": "x", "memory_in_session": true, "memory_metadata": {"a": 1}, "high_value": true,
            "usage": {"prompt_tokens": 9, "completion_tokens": 9}, "tool": "t", "error": "e", "success": false,
        });
        NewMessage { metadata: metadata.as_object().unwrap().clone().into(), ..message }
    };
    for (of, attach) in [("plain", false), ("attached", true)] {
        let s = session(of);
        let with = |message: NewMessage| if attach { like_notes(message) } else { message };
        let told = messages(&["I live in Berlin", "noted"]).into_iter().map(with).collect();
        world.engine.recording.record(&world.user, &s, told, None).await.unwrap();
        let heard = messages(&["I live in Berlin", "noted", "and where?"]);
        let exchange = world.engine.recording.open_exchange(&world.user, &s, &heard).await.unwrap();
        let tool = with(NewMessage::new(Role::Tool, "found"));
        world.engine.recording.record(&world.user, &s, vec![tool], None).await.unwrap();
        world.engine.recording.close_exchange(&world.user, exchange, reply("Berlin")).await.unwrap();
    }
    let turns = async |of| world.engine.sessions.turns(&world.user, &session(of), None, 100).await.unwrap();
    let (plain, attached) = (turns("plain").await, turns("attached").await);
    assert_eq!(plain.len(), 5, "the messages that were recorded already align");
    for (plain, attached) in plain.iter().zip(&attached) {
        assert_eq!((&plain.content, &plain.notes), (&attached.content, &attached.notes));
    }
    let state = async |of| world.engine.sessions.state(&world.user, &session(of)).await.unwrap();
    assert_eq!(state("plain").await, state("attached").await);
}

#[tokio::test]
async fn a_chat_recalls_other_sessions_but_not_its_own_messages() {
    let world = World::new();
    world.say("other", "the dog sleeps in the flat").await;
    world.exchange(&["the dog is called Bello"], reply("noted")).await;
    let question = crate::ChatQuestion {
        session: session("s"),
        question: "where does the dog sleep".to_owned(),
        shown: ["the dog is called Bello", "noted", "where does the dog sleep"]
            .iter()
            .zip([Role::User, Role::Assistant, Role::User])
            .map(|(text, role)| key(role, text, &TurnNotes::default()))
            .collect(),
        score_threshold: Some(0.0),
        ..Default::default()
    };
    let id = strata_core::id::RequestId(world.engine.next_id());
    let snapshot = world.engine.prompting.chat_snapshot(&world.user, &question.session).await.unwrap();
    let memory = world.engine.prompting.chat_memory(&world.user, id, &question, snapshot).await.unwrap();
    let block = memory.block.unwrap();
    assert!(block.contains("[2024-06-01 user] the dog sleeps in the flat"), "{block}");
    assert!(!block.contains("Bello"), "{block}");
    assert_eq!(memory.row.context_items, 1);
    assert_eq!(world.engine.requests.waiting(), 0, "the row waits for the model's answer");
    world.engine.prompting.note_chat(&world.user, memory.row).await;
    assert_eq!(world.engine.requests.get(&world.user, id).await.unwrap().query, "where does the dog sleep");
}

/// A chat that could not be recorded when it happened.
struct Kept {
    ids: ExchangeIds,
    said: Vec<NewMessage>,
    replied: &'static str,
}

impl Kept {
    fn new(world: &World, said: &[&str], replied: &'static str) -> Self {
        Self { ids: world.engine.recording.exchange_ids(), said: messages(said), replied }
    }

    async fn record(&self, world: &World) -> strata_core::error::Result<()> {
        let recording = &world.engine.recording;
        let (s, ids) = (session("s"), self.ids.tried());
        let exchange = recording.open_exchange_as(ids, &world.user, &s, &self.said, KeptBy::Client).await?;
        recording.close_exchange(&world.user, exchange, reply(self.replied)).await
    }
}

#[tokio::test]
async fn chats_of_an_outage_are_recorded_once_in_any_order() {
    let whole: Vec<String> =
        ["user: one", "assistant: ok", "user: two", "assistant: ok", "user: three", "assistant: fine"]
            .map(str::to_owned)
            .to_vec();
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let world = World::new();
        let kept = [
            Kept::new(&world, &["one"], "ok"),
            Kept::new(&world, &["one", "ok", "two"], "ok"),
            Kept::new(&world, &["one", "ok", "two", "ok", "three"], "fine"),
        ];
        for place in order {
            kept[place].record(&world).await.unwrap();
        }
        assert_eq!(world.turns().await, whole, "{order:?}");
        for kept in kept {
            kept.record(&world).await.unwrap();
        }
        assert_eq!(world.turns().await, whole, "{order:?}, again");
        assert_eq!(world.jobs().await, []);
    }
}

#[tokio::test]
async fn a_chat_that_was_under_way_brings_nothing_forgotten_back() {
    let world = World::new();
    for forgets_user in [false, true] {
        world.exchange(&["before"], reply("ok")).await;
        let kept = Kept::new(&world, &["before", "ok", "after"], "fine");
        if forgets_user {
            world.engine.forgetting.user(&world.user).await.unwrap();
        } else {
            world.engine.sessions.delete(&world.user, &session("s")).await.unwrap();
        }
        let refused = kept.record(&world).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotFound);
        assert!(world.engine.sessions.get(&world.user, &session("s")).await.is_err());
        // A chat that begins afterwards is recorded.
        world.exchange(&["again"], reply("ok")).await;
        assert_eq!(world.turns().await, ["user: again", "assistant: ok"]);
        world.engine.sessions.delete(&world.user, &session("s")).await.unwrap();
    }
}

#[tokio::test]
async fn equal_questions_with_equal_replies_are_all_recorded() {
    let world = World::new();
    for count in 0..4 {
        let said: Vec<&str> = ["again", "fine"].repeat(count).into_iter().chain(["again"]).collect();
        world.exchange(&said, reply("fine")).await;
        assert_eq!(world.turns().await.len(), 2 * count + 2);
    }
    assert!(world.turns().await.iter().all(|turn| !turn.contains('(')), "none is abandoned");
    // The last reply is asked for again.
    let said: Vec<&str> = ["again", "fine"].repeat(3).into_iter().chain(["again"]).collect();
    world.exchange(&said, reply("better")).await;
    assert_eq!(world.turns().await[7..], ["assistant: fine (abandoned)", "assistant: better"]);
}
