//! Working contexts on files: what the documents show, names, versions, damage, and several users of one folder.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::fs;
use std::path::Path;

use strata_context::{ContextManager, MemoryError};
use strata_core::context::{ContextCompactor, ContextData, HistoryEntry};
use strata_core::{Error, ErrorKind};
use tempfile::TempDir;

fn manager() -> (TempDir, ContextManager) {
    let folder = tempfile::tempdir().unwrap();
    let manager = ContextManager::new(folder.path().join("data/context"));
    (folder, manager)
}

fn with_fact(session: &str, fact: &str) -> ContextData {
    let mut context = ContextData::new(session);
    context.facts.push(fact.to_owned());
    context
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn usage_of_the_context_store_design() -> Result<(), MemoryError> {
    let (_folder, manager) = manager();
    manager.initialize().await?;
    let mut context = manager.load("user:agent:123").await?;
    assert_eq!(context, ContextData::new("user:agent:123"));
    assert_eq!(manager.list_sessions().await?, Vec::<String>::new(), "loading writes nothing");

    context.recent_history.push(HistoryEntry {
        timestamp: 1_708_654_321,
        role: "user".to_string(),
        content: "Hello".to_string(),
        token_count: Some(1),
    });
    context.facts.push("User speaks English".to_string());
    context.tool_stats.total_calls += 1;
    assert!(!ContextCompactor::compact(&mut context));
    manager.save(&context).await?;
    assert_eq!(manager.load("user:agent:123").await?, context);

    manager.delete("user:agent:123").await?;
    manager.delete("user:agent:123").await?;
    assert_eq!(manager.load("user:agent:123").await?, ContextData::new("user:agent:123"));
    Ok(())
}

#[tokio::test]
async fn files_of_the_context_store_design() {
    let (_folder, manager) = manager();
    for session in ["user1:agent1:123", "user1:agent2:456", "user2:agent1:789"] {
        manager.save(&with_fact(session, "x")).await.unwrap();
    }
    assert_eq!(
        names(manager.base_path()),
        [".locks", "user1:agent1:123.json", "user1:agent2:456.json", "user2:agent1:789.json", "versions"]
    );
    let text = fs::read_to_string(manager.path("user1:agent1:123").unwrap()).unwrap();
    assert!(
        text.starts_with("{\n  \"session_id\": \"user1:agent1:123\",\n  \"system_state\": {},\n"),
        "{text}"
    );
}

#[tokio::test]
async fn any_session_id_has_a_file_of_its_own() {
    let (folder, manager) = manager();
    let mut sessions: Vec<String> = [
        "a", "A", "a:b", "a/b", "a\\b", "a%2Fb", "../a", "..", ".", ".a", "a.json", "versions", ".locks",
        "CON", "a b", "a\nb", "a\0b", "🦀", "会话", "é", "e\u{301}", "~", "a.tmp", " ",
    ]
    .map(str::to_owned)
    .to_vec();
    sessions.extend([100, 200, 201, 256, 5_000].map(|length| "长".repeat(length)));
    for session in &sessions {
        manager.save(&with_fact(session, session)).await.unwrap();
        manager.save(&with_fact(session, &format!("{session} again"))).await.unwrap();
    }
    for session in &sessions {
        assert_eq!(manager.load(session).await.unwrap().facts, [format!("{session} again")]);
        assert_eq!(manager.versions(session).await.unwrap().len(), 1);
    }
    sessions.sort();
    assert_eq!(manager.list_sessions().await.unwrap(), sessions);
    assert_eq!(names(folder.path()), ["data"], "nothing was written outside the folder");
    assert_eq!(manager.load("").await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn unknown_fields_survive_a_load_and_a_save() {
    let (_folder, manager) = manager();
    manager.initialize().await.unwrap();
    let path = manager.path("s").unwrap();
    fs::write(
        &path,
        r#"{"later": 1, "recent_history": [{"role": "user", "content": "hi", "mood": "calm"}]}"#,
    )
    .unwrap();
    let context = manager.load("s").await.unwrap();
    assert_eq!(context.session_id, "s", "the name says what the document leaves out");
    manager.save(&context).await.unwrap();
    let written: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(
        (written["later"].as_i64(), written["recent_history"][0]["mood"].as_str()),
        (Some(1), Some("calm"))
    );
}

#[tokio::test]
async fn each_save_keeps_what_it_replaced() {
    let (_folder, manager) = manager();
    let manager = manager.with_versions(3);
    for number in 0..6 {
        manager.save(&with_fact("s", &number.to_string())).await.unwrap();
    }
    let versions = manager.versions("s").await.unwrap();
    assert_eq!(versions.iter().map(|version| version.number).collect::<Vec<_>>(), [5, 4, 3]);
    assert!(versions.iter().all(|version| version.bytes > 100));
    assert!(versions[0].saved_at >= versions[2].saved_at);

    assert_eq!(manager.restore("s", 4).await.unwrap().facts, ["3"]);
    assert_eq!(manager.load("s").await.unwrap().facts, ["3"]);
    let versions = manager.versions("s").await.unwrap();
    assert_eq!(versions[0].number, 6);
    assert_eq!(
        manager.restore("s", 6).await.unwrap().facts,
        ["5"],
        "what a restore replaced can be restored"
    );
    let gone = manager.restore("s", 1).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    assert_eq!(manager.versions("never saved").await.unwrap(), []);

    manager.delete("s").await.unwrap();
    assert_eq!(manager.versions("s").await.unwrap(), [], "deleted is deleted");
    let without = manager.with_versions(0);
    without.save(&with_fact("t", "1")).await.unwrap();
    without.save(&with_fact("t", "2")).await.unwrap();
    assert_eq!(without.versions("t").await.unwrap(), []);
}

#[tokio::test]
async fn a_hand_that_edits_a_document_changes_no_version() {
    let (_folder, manager) = manager();
    manager.save(&with_fact("s", "one")).await.unwrap();
    manager.save(&with_fact("s", "two")).await.unwrap();
    let path = manager.path("s").unwrap();
    let edited = fs::read_to_string(&path).unwrap().replace("two", "by hand");
    fs::write(&path, edited).unwrap();
    manager.save(&with_fact("s", "three")).await.unwrap();
    assert_eq!(manager.restore("s", 1).await.unwrap().facts, ["one"]);
    assert_eq!(manager.restore("s", 2).await.unwrap().facts, ["by hand"]);
}

#[tokio::test]
async fn a_damaged_file_is_set_aside_and_named() {
    let (_folder, manager) = manager();
    manager.save(&with_fact("s", "one")).await.unwrap();
    manager.save(&with_fact("s", "two")).await.unwrap();
    let path = manager.path("s").unwrap();
    let whole = fs::read(&path).unwrap();
    for damaged in [&whole[..whole.len() / 2], b"", b"\0\0\0\0", b"[]", b"{\"facts\": 7}", b"\xff{}"] {
        let kept = names(manager.base_path()).len();
        fs::write(&path, damaged).unwrap();
        let error = manager.load("s").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        let aside = names(manager.base_path()).into_iter().filter(|name| name.contains(".json.damaged-"));
        let aside: Vec<_> = aside.filter(|name| error.message().contains(&format!("{name}`"))).collect();
        assert_eq!(aside.len(), 1, "{error}");
        assert!(error.message().contains(&format!("`{}`", path.display())), "{error}");
        assert_eq!(fs::read(manager.base_path().join(&aside[0])).unwrap(), damaged);
        assert!(!path.exists());
        assert_eq!(names(manager.base_path()).len(), kept, "each has a name of its own");
        // The next load begins anew, and what was there before can be had back.
        assert_eq!(manager.load("s").await.unwrap(), ContextData::new("s"));
        assert_eq!(manager.restore("s", 1).await.unwrap().facts, ["one"]);
    }
    fs::write(&path, "{").unwrap();
    let refused = manager.update("s", |_| Ok(())).await.unwrap_err();
    assert!(refused.message().contains("renamed to"), "{refused}");
    manager.delete("s").await.unwrap();
    assert_eq!(names(manager.base_path()), [".locks", "versions"]);
}

#[tokio::test]
async fn a_document_of_another_session_is_left_alone() {
    let (_folder, manager) = manager();
    manager.save(&with_fact("one", "x")).await.unwrap();
    fs::copy(manager.path("one").unwrap(), manager.path("two").unwrap()).unwrap();
    let error = manager.load("two").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("`one`") && error.message().contains("`two`"), "{error}");
    assert!(manager.path("two").unwrap().exists());
}

#[tokio::test]
async fn a_folder_that_cannot_be_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "x").unwrap();
    let manager = ContextManager::new(folder.path().join("file/context"));
    for error in [
        manager.initialize().await.unwrap_err(),
        manager.save(&ContextData::new("s")).await.unwrap_err(),
        manager.load("s").await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("file"), "{error}");
    }
}

#[tokio::test]
async fn an_update_that_fails_saves_nothing() {
    let (_folder, manager) = manager();
    manager.save(&with_fact("s", "one")).await.unwrap();
    let failed = manager
        .update("s", |context| {
            context.facts.clear();
            Err::<(), _>(Error::invalid("no"))
        })
        .await;
    assert_eq!(failed.unwrap_err().message(), "no");
    let renamed = manager.update("s", |context| {
        context.session_id = "t".to_owned();
        Ok(())
    });
    assert_eq!(renamed.await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(manager.load("s").await.unwrap().facts, ["one"]);
    assert_eq!(manager.list_sessions().await.unwrap(), ["s"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn updates_of_many_tasks_lose_nothing() {
    let (_folder, manager) = manager();
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let manager = manager.clone();
            tokio::spawn(async move {
                for round in 0..10 {
                    let fact = format!("{task}-{round}");
                    let update = manager.update("s", move |context| {
                        context.facts.push(fact);
                        Ok(context.facts.len())
                    });
                    assert!(update.await.unwrap() > round);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(manager.load("s").await.unwrap().facts.len(), 80);
}
