//! The reader inside the binary, on streams and chats by another hand: what must be believed is, and what must not be is not.
#![cfg(not(feature = "lite"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test says where")]

mod support;

use std::path::Path;

use serde_json::Value;
use strata::{Memory, MemoryKind, NewMessage, Role};
use support::{show, strata};

/// Copies every fifth stream and chat of a file: enough to see a loss, in a fifth of the time.
fn sample(from: &Path, to: &Path) {
    let text = std::fs::read_to_string(from).unwrap();
    let parts = text.split_inclusive('\n').fold(Vec::<String>::new(), |mut parts, line| {
        if line.starts_with("# ") || parts.is_empty() {
            parts.push(String::new());
        }
        parts.last_mut().unwrap().push_str(line);
        parts
    });
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::write(to, parts.into_iter().step_by(5).collect::<String>()).unwrap();
}

#[test]
fn the_reader_keeps_what_people_say_and_no_more() {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evals/reading");
    let folder = tempfile::tempdir().unwrap();
    for file in ["values/en.txt", "values/zh.txt", "chats/en.txt", "chats/zh.txt"] {
        sample(&all.join(file), &folder.path().join(file));
    }
    let output = strata()
        .args(["eval", "--reading", "--json", "--reader", "builtin"])
        .arg(folder.path())
        .output()
        .unwrap();
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", show(&output)));
    let share = |of: &Value| 100.0 * of["part"].as_f64().unwrap() / of["all"].as_f64().unwrap();
    for (part, figure, least, most) in [
        ("streams", "kept", 86.0, 100.0),
        ("streams", "stale", 0.0, 24.0),
        ("streams", "junk", 0.0, 14.0),
        ("streams", "false_changes", 0.0, 3.0),
        ("chats", "kept", 74.0, 100.0),
        ("chats", "wrong", 0.0, 24.0),
    ] {
        for language in ["en", "zh"] {
            let found = share(&report[part][language][figure]);
            assert!((least..=most).contains(&found), "{part} {language} {figure} is {found:.1}: {report:#}");
        }
    }
}

/// A memory without a file, read by the network inside the binary.
async fn memory(user: &str) -> Memory {
    Memory::builder("memory:").user(user).open().await.unwrap()
}

/// What is believed after these messages, sorted.
async fn believed(user: &str, said: &[&str]) -> Vec<(MemoryKind, String)> {
    let memory = memory(user).await;
    for text in said {
        let message = vec![NewMessage::new(Role::User, *text)];
        let learning = &memory.engine().learning;
        learning.infer(memory.user_id(), memory.session_id(), message, None).await.unwrap();
    }
    let memories = memory.memories().await.unwrap();
    let mut found: Vec<_> = memories.into_iter().map(|memory| (memory.kind, memory.content)).collect();
    found.sort_by(|a, b| a.1.cmp(&b.1));
    found
}

async fn texts(user: &str, said: &[&str]) -> Vec<String> {
    believed(user, said).await.into_iter().map(|(_, text)| text).collect()
}

#[tokio::test]
async fn a_move_to_a_tool_is_no_move_of_home() {
    let found = texts("graz", &["I live in Graz.", "We switched to Bitbucket in spring."]).await;
    assert_eq!(found, ["The user lives in Graz.", "The user switched to Bitbucket in spring."]);
    let found =
        texts("split", &["I work at the harbour office in Split.", "I changed over to Thunderbird."]).await;
    assert!(found.contains(&"The user works at the harbour office in Split.".to_owned()), "{found:?}");
    let found = texts("kunming", &["我住在昆明。", "我们换到飞书了。"]).await;
    assert_eq!(found, ["用户住在昆明。", "用户换到飞书了。"]);
}

#[tokio::test]
async fn the_material_of_a_request_changes_nothing() {
    let home = "I live in Graz and my phone number is 0664 88123.";
    let mail = "Write a friendly reply to this mail from a tenant: Hello, I moved to Kyoto and my phone number is 555-0199";
    let found = texts("mail", &[home, mail]).await;
    assert_eq!(found, ["The user lives in Graz.", "The user's phone number is 0664 88123."]);
    let home = "我住在昆明，电话是13800001111。";
    let mail = "帮我回复客户的邮件：您好，我搬到京都了，电话换成 555-0199，请更新一下";
    assert_eq!(texts("mail-zh", &[home, mail]).await, ["用户住在昆明。", "用户电话是13800001111。"]);
    for title in [
        "Generate a title for this chat: I love sailing and I live in Bonn",
        "请为以上对话生成一个标题：我住在昆明",
    ] {
        assert_eq!(texts("title", &[title]).await, [""; 0], "{title}");
    }
}

#[tokio::test]
async fn plain_statements_of_all_kinds_are_kept() {
    for (text, kind, value) in [
        ("Hello, I'm Odile", None, "Odile"),
        ("I'm vegan and can't have aspirin.", None, "aspirin"),
        ("Please always reply in Danish", Some(MemoryKind::Instruction), "Danish"),
        ("The label printer listens on port 9100", Some(MemoryKind::Work), "9100"),
        ("We rehearse every Wednesday at 7", Some(MemoryKind::Schedule), "Wednesday at 7"),
        ("I visited Oslo in 2016", None, "Oslo in 2016"),
        ("你好，我叫若琳", None, "若琳"),
        ("我吃素，对青霉素过敏。", None, "青霉素"),
        ("以后请一直用英文回答我", Some(MemoryKind::Instruction), "英文"),
        ("打印服务器的端口是9100", Some(MemoryKind::Work), "9100"),
        ("我们每周三晚上七点排练", Some(MemoryKind::Schedule), "周三晚上七点"),
        ("我2016年去过奥斯陆", None, "2016年去过奥斯陆"),
    ] {
        let found = believed("kinds", &[text]).await;
        let holding = found.iter().find(|(_, memory)| memory.contains(value));
        assert!(holding.is_some_and(|(read, _)| kind.is_none_or(|kind| *read == kind)), "{text}: {found:?}");
    }
}

#[tokio::test]
async fn a_todo_ends_when_it_is_done() {
    let done = ["I have to cancel the gym membership.", "Cancelled the gym today, finally."];
    assert!(believed("gym", &done).await.iter().all(|(kind, _)| *kind != MemoryKind::Todo));
    assert!(
        believed("gym-zh", &["我要把健身卡退掉。", "健身卡今天退掉了。"])
            .await
            .iter()
            .all(|(kind, _)| *kind != MemoryKind::Todo)
    );
}

/// What ends a todo may share no word with it.
#[tokio::test]
async fn a_todo_ends_in_words_that_it_does_not_share() {
    for (user, todo, done) in [
        ("van", "I have to hand back the company van.", "Its keys are with the fleet office again."),
        (
            "papers",
            "I have to renew my passport.",
            "Picked up the new travel document at the town hall today.",
        ),
        ("crossing", "I have to book the ferry to Gotland.", "Got our tickets for the crossing!"),
        ("rent-zh", "我要交房租。", "钱今天早上转给房东了，搞定。"),
    ] {
        let todos = |found: Vec<(MemoryKind, String)>| {
            found
                .into_iter()
                .filter(|(kind, _)| *kind == MemoryKind::Todo)
                .map(|(_, text)| text)
                .collect::<Vec<_>>()
        };
        assert_eq!(todos(believed(user, &[todo]).await).len(), 1, "{todo}");
        assert_eq!(todos(believed(&format!("{user}-done"), &[todo, done]).await), [""; 0], "{done}");
    }
}
