//! Importing files of other programs: whole, twice, grown, mixed up and damaged.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_core::memory::TodoState;
use strata_core::ports::{Clock, IdSource, TokenCounter};
use strata_core::store::conformance::fixture::fresh;
use strata_core::store::{InMemoryStore, MemoryQuery, MemorySelect, Page, TurnQuery};
use strata_core::turn::HiddenReason;
use strata_core::{Memory, Role, Session, SessionId, Turn, UserId};
use strata_engine::{Engine, Settings};
use strata_import::{FileOptions, FileReport, Format, Mem0File, check_apart, load, recognise};
use tempfile::TempDir;

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        "2026-06-01T12:00:00Z".parse().unwrap()
    }
}

impl IdSource for Fixed {
    fn next(&self) -> uuid::Uuid {
        fresh()
    }
}

impl TokenCounter for Fixed {
    fn count(&self, text: &str) -> u32 {
        text.split_whitespace().count() as u32
    }
}

/// A store, and a folder for files.
struct Desk {
    engine: Engine,
    folder: TempDir,
}

impl Desk {
    fn new() -> Self {
        let fixed = Arc::new(Fixed);
        let store = Arc::new(InMemoryStore::new());
        let engine = Engine::new(store, fixed.clone(), fixed.clone(), fixed, Settings::default());
        Self { engine, folder: tempfile::tempdir().unwrap() }
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    async fn import(&self, name: &str, bytes: impl AsRef<[u8]>) -> FileReport {
        self.import_with(name, bytes, &FileOptions::default()).await.unwrap()
    }

    async fn import_with(
        &self,
        name: &str,
        bytes: impl AsRef<[u8]>,
        options: &FileOptions,
    ) -> strata_core::Result<FileReport> {
        let path = self.write(name, bytes);
        let mut last = (0, 0);
        let report =
            strata_import::file(&path, &self.engine, options, |progress| last = progress.items).await?;
        assert_eq!(last.0, last.1, "the progress ends at its total");
        Ok(report)
    }

    /// The error of an import that leaves the store as it was.
    async fn refused(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let before = self.everything().await;
        let refused = self.import_with(name, bytes, &FileOptions::default()).await.unwrap_err();
        assert_eq!(self.everything().await, before, "nothing is half imported");
        refused.message().to_owned()
    }

    async fn users(&self) -> Vec<UserId> {
        self.engine.store().users(Page::first(100)).await.unwrap()
    }

    /// All sessions, turns and memories of all users.
    async fn everything(&self) -> Vec<(UserId, Vec<Session>, Vec<Turn>, Vec<Memory>)> {
        let (mut everything, store) = (Vec::new(), self.engine.store());
        for user in self.users().await {
            let sessions = self.engine.sessions.list(&user, Page::first(1_000)).await.unwrap();
            let mut turns = Vec::new();
            for session in &sessions {
                turns.extend(self.turns(user.as_str(), session.id.as_str()).await);
            }
            let memories = store.memories(&user, &MemoryQuery::new(MemorySelect::All)).await.unwrap();
            everything.push((user, sessions, turns, memories));
        }
        everything
    }

    async fn turns(&self, user: &str, session: &str) -> Vec<Turn> {
        let session = SessionId::new(session).unwrap();
        let query = TurnQuery::Range { session, after: None, limit: 100 };
        self.engine.store().turns(&UserId::new(user).unwrap(), &query).await.unwrap()
    }

    async fn said(&self, session: &str) -> Vec<(Role, String)> {
        self.turns("default", session).await.into_iter().map(|turn| (turn.role, turn.content)).collect()
    }

    async fn memories(&self, user: &str) -> Vec<Memory> {
        let query = MemoryQuery::new(MemorySelect::All);
        self.engine.store().memories(&UserId::new(user).unwrap(), &query).await.unwrap()
    }
}

fn said(turns: &[(Role, &str)]) -> Vec<(Role, String)> {
    turns.iter().map(|(role, text)| (*role, (*text).to_owned())).collect()
}

fn node(id: &str, parent: &str, role: &str, text: &str) -> (String, Value) {
    let message = json!({
        "id": id, "author": { "role": role }, "create_time": 1_748_000_000.5, "recipient": "all",
        "content": { "content_type": "text", "parts": [text] }, "metadata": {},
    });
    (id.to_owned(), json!({ "id": id, "message": message, "parent": parent, "children": [] }))
}

/// A tree with an abandoned branch, a hidden instruction and a call of a tool.
fn chatgpt(extra: &[(String, Value)], current: &str) -> String {
    let mut mapping = serde_json::Map::new();
    mapping
        .insert("root".into(), json!({ "id": "root", "message": null, "parent": null, "children": ["s"] }));
    mapping.extend([
        node("s", "root", "system", ""),
        node("q1", "s", "user", "我的露台上种了三棵柠檬树。"),
        node("a0", "q1", "assistant", "An answer that was generated again."),
        node("a1", "q1", "assistant", "听起来很不错，它们多大了？"),
    ]);
    let (id, mut tool) = node("t1", "a1", "tool", "results of a search");
    tool["message"]["recipient"] = json!("all");
    mapping.insert(id, tool);
    mapping.extend([node("q2", "t1", "user", "Two of them bear fruit already.")]);
    mapping.extend(extra.to_vec());
    json!([{ "id": "conv-1", "conversation_id": "conv-1", "title": "柠檬树", "create_time": 1_748_000_000.0, "mapping": mapping, "current_node": current }])
        .to_string()
}

#[tokio::test]
async fn a_chatgpt_export_is_the_path_that_was_seen_last() {
    let desk = Desk::new();
    let report = desk.import("conversations.json", chatgpt(&[], "q2")).await;
    assert_eq!((report.format.as_str(), report.conversations, report.turns_added), ("chatgpt", 1, 3));
    let expected = said(&[
        (Role::User, "我的露台上种了三棵柠檬树。"),
        (Role::Assistant, "听起来很不错，它们多大了？"),
        (Role::User, "Two of them bear fruit already."),
    ]);
    assert_eq!(desk.said("conv-1").await, expected);
    let turns = desk.turns("default", "conv-1").await;
    assert_eq!(turns[0].created_at.to_string(), "2025-05-23T11:33:20.5Z");
    let skipped: Vec<_> = report.skipped.iter().collect();
    assert_eq!(skipped, [("messages of abandoned branches", 1), ("results of tools", 1)]);
    let session =
        desk.engine.sessions.get(&UserId::default(), &SessionId::new("conv-1").unwrap()).await.unwrap();
    assert_eq!(session.state.system_state["title"], "柠檬树");
    // A later export of the same account adds what is new.
    let grown = chatgpt(&[node("a2", "q2", "assistant", "Then they are older than four years.")], "a2");
    let report = desk.import("later.json", grown).await;
    assert_eq!((report.turns_added, report.turns_present), (1, 3));
}

#[tokio::test]
async fn an_archive_holds_the_conversations() {
    let desk = Desk::new();
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file("user.json", options).unwrap();
    zip.write_all(b"{}").unwrap();
    zip.start_file("conversations.json", options).unwrap();
    zip.write_all(chatgpt(&[], "q2").as_bytes()).unwrap();
    let bytes = zip.finish().unwrap().into_inner();
    let report = desk.import("export.zip", &bytes).await;
    assert_eq!((report.format.as_str(), report.turns_added), ("chatgpt", 3));
    let message = desk.refused("cut.zip", &bytes[..bytes.len() / 2]).await;
    assert!(message.contains("cannot be unpacked") && message.contains("nothing was imported"), "{message}");
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("holiday.jpg", options).unwrap();
    let message = desk.refused("other.zip", zip.finish().unwrap().into_inner()).await;
    assert!(message.contains("no `conversations.json`"), "{message}");
}

#[tokio::test]
async fn a_claude_export_has_senders_and_blocks() {
    let desk = Desk::new();
    let export = json!([{
        "uuid": "c-7", "name": "Kayak", "created_at": "2026-02-01T09:00:00.000000Z",
        "chat_messages": [
            { "uuid": "m1", "text": "old text", "sender": "human", "created_at": "2026-02-01T09:00:01.000000Z",
              "content": [{ "type": "text", "text": "I sold my kayak to Pia." }],
              "attachments": [{ "file_name": "receipt.pdf" }], "files": [] },
            { "uuid": "m2", "text": "", "sender": "assistant", "created_at": "2026-02-01T09:00:05Z",
              "content": [{ "type": "thinking", "thinking": "…" }, { "type": "text", "text": "Will you miss it?" }] },
            { "uuid": "m3", "text": "  ", "sender": "human", "created_at": "2026-02-01T09:01:00Z", "content": [] },
        ],
    }]);
    let report = desk.import("conversations.json", export.to_string()).await;
    assert_eq!((report.format.as_str(), report.turns_added), ("claude", 2));
    let expected = said(&[
        (Role::User, "I sold my kayak to Pia.\n[file: receipt.pdf]"),
        (Role::Assistant, "Will you miss it?"),
    ]);
    assert_eq!(desk.said("c-7").await, expected);
    assert_eq!(report.skipped.iter().collect::<Vec<_>>(), [("empty messages", 1)]);
    let again = desk.import("conversations.json", export.to_string()).await;
    assert_eq!((again.turns_added, again.turns_present), (0, 2));
}

#[tokio::test]
async fn openai_logs_are_joined_where_they_continue() {
    let desk = Desk::new();
    let first = json!({ "created": 1_770_000_000, "messages": [
        { "role": "system", "content": "You help." }, { "role": "user", "content": "My bees swarm in May." }],
        "choices": [{ "message": { "role": "assistant", "content": "Do you have a spare hive?" } }] });
    let second = json!({ "request": { "body": { "messages": [
        { "role": "system", "content": "You help." }, { "role": "user", "content": "My bees swarm in May." },
        { "role": "assistant", "content": "Do you have a spare hive?" },
        { "role": "user", "content": [{ "type": "text", "text": "Yes, two." }, { "type": "image_url", "image_url": {} }] },
    ] } }, "response": { "body": { "choices": [{ "message": { "role": "assistant", "content": "Good." } }] } } });
    let other = json!({ "session_id": "queen", "user": "lena", "messages": [{ "role": "user", "content": "女王蜂换了。" }] });
    let log = format!("{first}\n\n{second}\n{other}\n");
    let report = desk.import("log.jsonl", &log).await;
    assert_eq!((report.format.as_str(), report.conversations, report.turns_added), ("openai", 2, 6));
    let texts: Vec<String> = desk.said("log-1").await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts[1..4], ["My bees swarm in May.", "Do you have a spare hive?", "Yes, two.\n[image]"]);
    assert_eq!(desk.turns("lena", "queen").await.len(), 1);
    assert_eq!(desk.import("log.jsonl", &log).await.turns_added, 0);
    let options = FileOptions { user: Some(UserId::new("all").unwrap()), ..FileOptions::default() };
    desk.import_with("log.jsonl", &log, &options).await.unwrap();
    assert_eq!(desk.turns("all", "queen").await.len(), 1, "`--user` overrides the users of the file");
    // A file of single messages is one conversation.
    let lines = "{\"role\":\"user\",\"content\":\"One.\"}\n{\"role\":\"assistant\",\"content\":\"Two.\"}\n{\"role\":\"user\",\"content\":\"One.\"}\n";
    assert_eq!(desk.import("talk.jsonl", lines).await.turns_added, 3);
    assert_eq!(desk.said("talk").await.len(), 3, "a message that is said twice is two turns");
}

#[tokio::test]
async fn lines_of_different_users_never_share_a_session() {
    let desk = Desk::new();
    let line = |user: &str, session: Option<&str>, texts: &[&str]| {
        let messages: Vec<_> = texts.iter().map(|text| json!({ "role": "user", "content": text })).collect();
        let mut line = json!({ "user": user, "messages": messages });
        if let Some(session) = session {
            line["session_id"] = json!(session);
        }
        format!("{line}\n")
    };
    // Everybody begins with the same words, with and without the name of a session.
    let log = [
        line("ida", Some("main"), &["Hello."]),
        line("olav", Some("main"), &["Hello."]),
        line("ida", Some("main"), &["Hello.", "My loom is new."]),
        line("olav", Some("main"), &["Hello.", "我的船是红色的。"]),
        line("ida", None, &["Good day."]),
        line("olav", None, &["Good day."]),
        line("olav", None, &["Good day.", "The mast is ash."]),
    ];
    let report = desk.import("log.jsonl", log.concat()).await;
    assert_eq!((report.conversations, report.turns_added), (4, 7));
    let texts = async |user: &str, session: &str| -> Vec<String> {
        desk.turns(user, session).await.into_iter().map(|turn| turn.content).collect()
    };
    assert_eq!(texts("ida", "main").await, ["Hello.", "My loom is new."]);
    assert_eq!(texts("olav", "main").await, ["Hello.", "我的船是红色的。"]);
    assert_eq!(texts("ida", "log-5").await, ["Good day."]);
    assert_eq!(texts("olav", "log-6").await, ["Good day.", "The mast is ash."]);

    let numbered =
        json!({ "user": 5, "session_id": 7, "messages": [{ "role": "user", "content": "Hello." }] });
    desk.import("numbers.jsonl", numbered.to_string()).await;
    assert_eq!(texts("5", "7").await, ["Hello."]);
    for nameless in [json!({ "id": "x" }), json!(""), json!(true)] {
        let line = json!({ "user": nameless, "messages": [{ "role": "user", "content": "Hello." }] });
        assert!(
            desk.refused("nameless.jsonl", &line.to_string()).await.contains("`user` is no name"),
            "{line}"
        );
    }
}

#[tokio::test]
async fn what_is_over_stays_over() {
    let desk = Desk::new();
    let rows = json!({ "results": [
        { "id": "0b5e3a52-2f2f-4c7e-8a55-5c2d8c1f9e12", "memory": "Lives in Oslo", "kind": "fact", "confidence": 0.5,
          "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "valid_from": "2025-12-24T00:00:00Z",
          "valid_to": "2026-02-01T00:00:00Z", "replaced_by": "0b5e3a52-2f2f-4c7e-8a55-5c2d8c1f9e13", "hidden": null },
        { "id": "0b5e3a52-2f2f-4c7e-8a55-5c2d8c1f9e13", "memory": "Lives in Bergen", "valid_to": null, "hidden": null },
        { "id": "3", "memory": "Paint the boat", "kind": "todo", "todo": "done", "valid_to": "2026-03-01T00:00:00Z" },
        { "id": "4", "memory": "Has a secret", "hidden": "deleted", "created_at": "2026-01-01T00:00:00Z",
          "updated_at": "2026-04-01T00:00:00Z" },
        { "id": "5", "memory": "The office closes at six", "user_id": null, "scope": "global" },
        { "id": "6", "memory": "Lives in Tromsø", "disputed_with": "0b5e3a52-2f2f-4c7e-8a55-5c2d8c1f9e13", "certainty": 60 },
    ] });
    desk.import("mem0.json", rows.to_string()).await;
    let memories = desk.memories("default").await;
    let one = |text: &str| memories.iter().find(|memory| memory.content == text).unwrap();
    let current: Vec<&str> =
        memories.iter().filter(|memory| memory.is_current()).map(|memory| memory.content.as_str()).collect();
    assert_eq!(current.len(), 2, "{current:?}");
    let oslo = one("Lives in Oslo");
    assert_eq!((oslo.valid_from.to_string().as_str(), oslo.confidence), ("2025-12-24T00:00:00Z", 0.5));
    assert_eq!(oslo.replaced_by, Some(one("Lives in Bergen").id));
    let disputed = one("Lives in Tromsø").notes;
    assert_eq!((disputed.disputed, disputed.certainty), (Some(one("Lives in Bergen").id), Some(60)));
    assert_eq!(one("Paint the boat").todo(), Some(TodoState::Done));
    let hidden = one("Has a secret").hidden.unwrap();
    assert_eq!(
        (hidden.reason, hidden.at.to_string().as_str()),
        (HiddenReason::Deleted, "2026-04-01T00:00:00Z")
    );
    let shared = desk.engine.store().memories(&UserId::global(), &MemoryQuery::new(MemorySelect::All)).await;
    assert_eq!(shared.unwrap().len(), 1, "what all users share stays shared");
    let message = desk.refused("wrong.json", "[{\"memory\":\"x\",\"valid_to\":\"soon\"}]").await;
    assert!(message.contains("memory 1: `valid_to` is no time"), "{message}");
    let message = desk.refused("wrong.json", "[{\"memory\":\"x\",\"hidden\":\"away\"}]").await;
    assert!(message.contains("`away`"), "{message}");
    let examined = Mem0File::read(&desk.write("mem0.json", rows.to_string())).unwrap();
    assert_eq!(examined.memories.len(), 3, "what is over needs no mending");
}

#[test]
fn a_mended_export_of_mem0_keeps_the_rest_as_it_was() {
    let desk = Desk::new();
    let kept = "{\"id\": \"a\", \"memory\": \"Rows\",   \"unknown\": 1.50, \"valid_to\": null}";
    let gone = "{\"id\":7,\"memory\":\"Sails\"}";
    let unnamed = "{\"memory\":\"No id\"}";
    for text in [
        format!("[{kept},{gone},{unnamed}]"),
        format!("{{\"count\": 3, \"results\": [{kept},\n{gone}, {unnamed}]}}"),
        format!("{kept}\n{gone}\n\n{unnamed}\n"),
    ] {
        let file = Mem0File::read(&desk.write("mem0.json", text)).unwrap();
        assert_eq!(file.memories.len(), 3);
        let left = file.without(&["7".to_owned(), "No id".to_owned()].into()).unwrap();
        assert_eq!(left, format!("[\n{kept}\n]\n"));
        assert_eq!(file.without(&HashSet::new()).unwrap(), format!("[\n{kept},\n{gone},\n{unnamed}\n]\n"));
    }
}

#[tokio::test]
async fn a_page_of_mem0_that_is_not_the_last_says_so() {
    let desk = Desk::new();
    let page = |next: Value| json!({ "count": 2, "next": next, "previous": null, "results": [{ "memory": "Rows" }] });
    let more = page(json!("https://api.mem0.ai/v1/memories/?page=2"));
    let report = desk.import("page.json", more.to_string()).await;
    assert!(report.skipped.iter().any(|(reason, _)| reason.contains("next page")), "{:?}", report.skipped);
    let report = desk.import("page.json", page(Value::Null).to_string()).await;
    assert_eq!((report.memories_present, report.skipped.iter().count()), (1, 0));
    let both = json!([more, page(Value::Null)]).to_string();
    let options = FileOptions { format: Some(Format::Mem0), ..FileOptions::default() };
    let report = desk.import_with("pages.json", both, &options).await.unwrap();
    assert_eq!(report.skipped.iter().count(), 0, "the last page is there");
}

#[tokio::test]
async fn files_that_would_share_a_session_are_refused() {
    let desk = Desk::new();
    std::fs::create_dir(desk.folder.path().join("sub")).unwrap();
    for (name, other, text) in [
        ("plan.md", "sub/plan.md", "Sow peas."),
        ("log.jsonl", "sub/log.jsonl", "{\"messages\":[{\"role\":\"user\",\"content\":\"One.\"}]}"),
    ] {
        let mut loaded = Vec::new();
        for name in [name, other] {
            let path = desk.write(name, text);
            loaded.push(load(&path, &desk.engine, &FileOptions::default()).await.unwrap());
        }
        let refused = check_apart(&loaded).unwrap_err();
        assert!(refused.message().contains("--prefix"), "{refused}");
        check_apart(&loaded[..1]).unwrap();
    }
    // With a name of its own, each is a session.
    for name in ["plan.md", "sub/plan.md"] {
        let options = FileOptions { name: Some(name.to_owned()), ..FileOptions::default() };
        let loaded = load(&desk.folder.path().join(name), &desk.engine, &options).await.unwrap();
        loaded.import(&desk.engine, |_| {}).await.unwrap();
        assert_eq!(desk.said(name).await, said(&[(Role::User, "Sow peas.")]));
    }
}

#[tokio::test]
async fn mem0_memories_keep_their_ids_and_times() {
    let desk = Desk::new();
    let id = "0b5e3a52-2f2f-4c7e-8a55-5c2d8c1f9e11";
    let all = json!({ "results": [
        { "id": id, "memory": "Plays the oboe", "user_id": "noor", "created_at": "2026-01-02T03:04:05-07:00",
          "updated_at": "2026-02-02T03:04:05-07:00", "metadata": { "source": "app" }, "categories": ["music"] },
        { "id": "second", "memory": "住在青岛", "created_at": null, "updated_at": null },
        { "id": "third", "memory": " " },
    ], "relations": [] });
    let report = desk.import("mem0.json", all.to_string()).await;
    assert_eq!((report.format.as_str(), report.memories_added), ("mem0", 2));
    let memory = desk.memories("noor").await.pop().unwrap();
    assert_eq!((memory.id.to_string().as_str(), memory.content.as_str()), (id, "Plays the oboe"));
    assert_eq!(memory.recorded_at.to_string(), "2026-02-02T10:04:05Z");
    assert_eq!(memory.first_recorded_at().to_string(), "2026-01-02T10:04:05Z");
    assert_eq!(
        (&memory.metadata["source"], &memory.metadata["categories"]),
        (&json!("app"), &json!(["music"]))
    );
    assert_eq!(desk.memories("default").await.len(), 1);
    let again = desk.import("mem0.json", all.to_string()).await;
    assert_eq!((again.memories_added, again.memories_present), (0, 2));
    assert_eq!(again.skipped.iter().collect::<Vec<_>>(), [("empty memories", 1)]);
}

#[tokio::test]
async fn notes_are_transcripts_or_paragraphs() {
    let desk = Desk::new();
    let transcript = "**User:** Which train goes to Graz?\n\n**Assistant:** The one at ten.\nIt stops twice.\n\n用户：谢谢\n";
    assert_eq!(desk.import("trip.md", transcript).await.turns_added, 3);
    let expected = said(&[
        (Role::User, "Which train goes to Graz?"),
        (Role::Assistant, "The one at ten.\nIt stops twice."),
        (Role::User, "谢谢"),
    ]);
    assert_eq!(desk.said("trip.md").await, expected);
    let diary = "---\ntitle: Garden\ndate: 2026-03-01\n---\n# Garden\n\nThe pond froze.\nAll of it.\n\n## 2026-03-09\n\n- sowed peas\n- 种了豌豆\n";
    assert_eq!(desk.import("diary.md", diary).await.turns_added, 2);
    let turns = desk.turns("default", "diary.md").await;
    assert_eq!(turns[0].content, "Garden\nThe pond froze.\nAll of it.");
    assert_eq!(
        (turns[0].created_at.to_string(), turns[1].created_at.to_string()),
        ("2026-03-01T00:00:00Z".into(), "2026-03-09T00:00:00Z".into())
    );
    let grown = format!("{diary}\n## 2026-03-10\n\nThe peas are up.\n");
    let report = desk.import("diary.md", grown).await;
    assert_eq!((report.turns_added, report.turns_present), (1, 2));
    let text = "The well was deepened.\n\nIt is now nine metres deep: enough for August.\n";
    assert_eq!(desk.import("2026-04-05 well.txt", text).await.turns_added, 2);
    assert_eq!(
        desk.turns("default", "2026-04-05 well.txt").await[0].created_at.to_string(),
        "2026-04-05T00:00:00Z"
    );
}

#[tokio::test]
async fn the_neutral_form_has_a_user_for_each_conversation() {
    let desk = Desk::new();
    let line = json!({ "dataset": "own", "conversation_id": "pair-3", "lang": "en", "sessions": [
        { "session_id": "s1", "timestamp": "2025-09-01 10:00:00", "turns": [
            { "turn_id": "s1:1", "speaker": "Ines", "text": "The ferry was late." },
            { "turn_id": "s1:2", "speaker": "assistant", "text": "By how much?", "timestamp": "2025-09-01 10:01:00" }] }] });
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(format!("{line}\n").as_bytes()).unwrap();
    let report = desk.import("own.conversations.jsonl.gz", packed.finish().unwrap()).await;
    assert_eq!((report.format.as_str(), report.turns_added), ("neutral", 2));
    let turns = desk.turns("pair-3", "s1").await;
    assert_eq!(
        (turns[0].name.as_deref(), turns[0].created_at.to_string().as_str()),
        (Some("Ines"), "2025-09-01T10:00:00Z")
    );
    assert_eq!((turns[1].role, turns[1].name.as_deref()), (Role::Assistant, None));
}

#[tokio::test]
async fn a_nul_character_in_any_part_of_a_file_is_refused_before_anything_is_written() {
    let desk = Desk::new();
    let memory = |part: Value| {
        let mut row = json!({ "id": "1", "memory": "Keeps bees", "user_id": "ann" });
        row.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        json!({ "results": [row] })
    };
    let talk = |part: Value| {
        let mut message = json!({ "role": "user", "content": "Hello." });
        message.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        json!({ "session_id": "s", "messages": [message] })
    };
    for contents in [
        memory(json!({ "metadata": { "mood": "good\0" } })),
        memory(json!({ "metadata": { "moods": [{ "\0": 1 }] } })),
        memory(json!({ "agent_id": "a\0b" })),
        memory(json!({ "memory": "Keeps\0bees" })),
        talk(json!({ "content": "Hel\0lo." })),
        talk(json!({ "name": "An\0n" })),
        json!({ "session_id": "s\0", "messages": [{ "role": "user", "content": "Hello." }] }),
        json!({ "title": "t\0", "messages": [{ "role": "user", "content": "Hello." }] }),
    ] {
        let message = desk.refused("nul.json", contents.to_string()).await;
        assert!(message.contains("NUL character"), "{contents}: {message}");
    }
}

#[tokio::test]
async fn a_damaged_file_names_the_line_and_changes_nothing() {
    let desk = Desk::new();
    let good = "{\"messages\":[{\"role\":\"user\",\"content\":\"One.\"}]}";
    let check = async |name: &str, text: &str, expected: &[&str]| {
        let message = desk.refused(name, text).await;
        for part in expected {
            assert!(message.contains(part), "{name}: {message}");
        }
    };
    check("a.jsonl", &format!("{good}\n{{\"messages\":[{{\"role\":"), &["line 2", "nothing was imported"])
        .await;
    check(
        "b.jsonl",
        &format!("{good}\n{good}\n{{\"messages\":[{{\"role\":\"king\",\"content\":\"x\"}}]}}"),
        &["line 3", "`king`"],
    )
    .await;
    // JSON that holds neither conversations nor memories is no text either.
    for (name, text, part) in [
        ("empty.json", "[]", "line 1: `[]` is no object"),
        ("null.jsonl", "null\n", "line 1: `null` is no object"),
        ("list.json", "\n\n[1, 2]", "line 3: `[1, 2]` is no object"),
        ("word.json", "\"hello\"", "line 1: `\"hello\"` is no object"),
        ("number", "42", "line 1: `42` is no object"),
        ("lists.jsonl", "[]\n[]\n", "line 2"),
        ("prose.json", "Dear diary", "line 1: "),
        ("broken.json", "[1,", "line 1: EOF"),
    ] {
        check(name, text, &[part, "nothing was imported"]).await;
    }
    let export = chatgpt(&[], "q2");
    check("c.json", &export[..export.len() - 40], &["line 1", "EOF", "nothing was imported"]).await;
    check("d.json", &chatgpt(&[], "nowhere"), &["conversation 1", "`nowhere`"]).await;
    check(
        "e.json",
        "[\n{\"uuid\":\"1\",\"chat_messages\":[]},\n{\"uuid\":\"2\",\"chat_messages\":[{}]}\n]",
        &["line 3", "sender"],
    )
    .await;
    check("f.json", "{\"results\":[{\"id\":\"1\",\"text\":1}]}", &["memory 1"]).await;
    check("g.json", "{\"what\":\"else\"}", &["no form that Strata knows"]).await;
    check("h.txt", "", &["is empty"]).await;
    let message = desk.refused("i.txt", b"fine\nnot \xff fine").await;
    assert!(message.contains("line 2") && message.contains("UTF-8"), "{message}");
    let too_long = "x".repeat(Settings::default().limits.max_turn_bytes + 1);
    check(
        "j.jsonl",
        &format!("{good}\n{}", json!({"messages":[{"role":"user","content":too_long}]})),
        &["line 2, message 1"],
    )
    .await;
    // With `skip_bad`, the good parts are imported and the bad ones told.
    let options = FileOptions { skip_bad: true, ..FileOptions::default() };
    let mixed = format!("{good}\n{{\"messages\":4}}\n{}", good.replace("One", "Two"));
    let report = desk.import_with("k.jsonl", mixed, &options).await.unwrap();
    assert_eq!(report.turns_added, 1 + 1);
    assert!(report.skipped.iter().any(|(reason, _)| reason.starts_with("line 2")), "{:?}", report.skipped);
}

#[test]
fn program_code_is_no_conversation() {
    let desk = Desk::new();
    for (name, text) in
        [("walk.go", "package main\n\nfunc main() {}\n"), ("任务.PY", "import os\n\nprint(os.name)\n")]
    {
        let refused = recognise(&desk.write(name, text)).unwrap_err();
        assert!(refused.message().contains("program code"), "{refused:?}");
        assert!(refused.message().contains("strata import text"), "{refused:?}");
    }
    assert_eq!(recognise(&desk.write("diary.txt", "import day: I moved.\n")).unwrap(), Format::Text);
}

#[test]
fn a_form_is_recognised_by_its_content() {
    let desk = Desk::new();
    let check = |text: &str, expected: Format| {
        assert_eq!(recognise(&desk.write("file", text)).unwrap(), expected, "{text}");
    };
    check("{\"strata\":{\"version\":1}}\n", Format::Strata);
    check("[{\"mapping\":{},\"title\":\"x\"}]", Format::ChatGpt);
    check("[\n  {\n    \"chat_messages\": []\n  }\n]", Format::Claude);
    check("{\n \"results\": [ {\"memory\": \"x\"} ]\n}", Format::Mem0);
    check("[{\"memory\":\"x\"}]", Format::Mem0);
    check("{\"id\":\"1\",\"memory\":\"x\"}\n{\"id\":\"2\",\"memory\":\"y\"}", Format::Mem0);
    check("[{\"role\":\"user\",\"content\":\"x\"}]", Format::OpenAi);
    check("{\"conversation_id\":\"1\",\"sessions\":[]}", Format::Neutral);
    check("# A heading\n\ntext", Format::Markdown);
    check("text [with brackets]", Format::Text);
    check("[note to self] buy rope", Format::Text);
    assert!("word".parse::<Format>().is_err() && "chatgpt".parse::<Format>().unwrap() == Format::ChatGpt);
}
