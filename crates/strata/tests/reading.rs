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
        ("chats", "wrong", 0.0, 26.0),
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

/// The memories that are current, without those that are in dispute.
async fn undisputed(user: &str, said: &[&str]) -> Vec<String> {
    let memory = memory(user).await;
    for text in said {
        let message = vec![NewMessage::new(Role::User, *text)];
        memory.engine().learning.infer(memory.user_id(), memory.session_id(), message, None).await.unwrap();
    }
    let memories = memory.memories().await.unwrap();
    let settled = memories.into_iter().filter(|memory| memory.in_dispute_with().is_none());
    settled.map(|memory| memory.content).collect()
}

#[tokio::test]
async fn of_two_todos_only_the_one_that_is_done_ends() {
    for (user, todos, done, ended, left) in [
        (
            "roof",
            "The roof needs patching and I have to ring the tiler.",
            "The roof is patched.",
            "roof",
            "tiler",
        ),
        ("roof-zh", "屋顶要补，还要给漆匠回个信", "屋顶补好了", "屋顶", "漆匠"),
        ("bike-zh", "周末得修自行车，还要去邮局取包裹。", "自行车修好了。", "自行车", "包裹"),
    ] {
        let open: Vec<String> = believed(user, &[todos, done])
            .await
            .into_iter()
            .filter(|(kind, _)| *kind == MemoryKind::Todo)
            .map(|(_, text)| text)
            .collect();
        assert!(open.len() == 1 && open[0].contains(left) && !open[0].contains(ended), "{todos}: {open:?}");
    }
}

#[tokio::test]
async fn what_no_longer_holds_is_replaced_or_disputed() {
    for (user, before, now, old) in [
        ("cola-zh", "我每天早上喝两杯可乐。", "我早就不喝可乐了，只喝豆浆。", "两杯可乐"),
        ("teacher-zh", "我是小学老师。", "我不当老师了，在学修表。", "小学老师"),
        (
            "paramedic",
            "I'm a paramedic in Hull.",
            "I quit paramedic work, I'm retraining as a carpenter.",
            "in Hull",
        ),
        ("tea", "I drink green tea at breakfast.", "These days it's mostly cocoa.", "green tea"),
    ] {
        let settled = undisputed(user, &[before, now]).await;
        assert!(!settled.iter().any(|text| text.contains(old)), "{now}: {settled:?}");
    }
    let found = texts("bank-zh", &["我在银行上班。", "我不在银行上班了，现在送外卖。"]).await;
    assert!(found.len() == 1 && found[0].contains("送外卖"), "what is new is kept: {found:?}");
}

#[tokio::test]
async fn standing_instructions_are_told_from_habits() {
    for (text, is_instruction) in [
        ("记住，以后回答我都用列表。", true),
        ("回答时请始终先给结论。", true),
        ("今后解释概念时都要举例子", true),
        ("Keep your answers under a hundred words.", true),
        ("Answer in Finnish from now on.", true),
        ("When you explain a recipe, always start with the oven temperature.", true),
        ("记住，我习惯用公制单位。", false),
        ("以后都坐地铁上班。", false),
        ("I always answer letters in French.", false),
        ("Always put the bins out on Thursday.", false),
    ] {
        let found = believed("orders", &[text]).await;
        let has = found.iter().any(|(kind, _)| *kind == MemoryKind::Instruction);
        assert_eq!((has, found.len()), (is_instruction, 1), "{text}: {found:?}");
    }
}

#[tokio::test]
async fn a_fact_is_kept_without_the_request_beside_it() {
    for (text, expected) in [
        ("Could you fix the Friday slot? We moved to the annex.", "The user moved to the annex."),
        ("能帮我改一下地址吗？我们搬到后院了。", "用户搬到后院了。"),
    ] {
        assert_eq!(texts("annex", &[text]).await, [expected]);
    }
}
