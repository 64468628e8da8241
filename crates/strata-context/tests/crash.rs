//! SIGKILL while two processes save one context: what is found afterwards is whole, readable and recent.
//!
//! Two processes die in each round; `STRATA_TEST_ROUNDS` asks for a number of rounds.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use strata_context::ContextManager;
use strata_core::context::ContextData;

const SESSION: &str = "user:agent:1";
const FOLDER: &str = "STRATA_TEST_CONTEXT_FOLDER";
const WRITER: &str = "STRATA_TEST_CONTEXT_WRITER";
const WRITERS: [&str; 2] = ["one", "two"];

/// Filler that a torn file would lose: about 100 KB, 25 pages.
fn filler(saves: u64) -> Vec<String> {
    (0..1_000).map(|line| format!("save {saves}, line {line}: {}", "x".repeat(80))).collect()
}

/// Nothing on its own: the writing half of the test below, which starts this test in a process of its own.
#[test]
fn saves_until_it_is_killed() {
    let (Some(folder), Some(writer)) = (std::env::var_os(FOLDER), std::env::var_os(WRITER)) else { return };
    let writer = writer.into_string().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let manager = ContextManager::new(folder).with_versions(5);
    let mut output = std::io::stdout();
    loop {
        let name = writer.clone();
        let saved = runtime.block_on(manager.update(SESSION, move |context| {
            let saves = context.tool_stats.by_tool.entry(name).or_default();
            *saves += 1;
            let saves = *saves;
            context.tool_stats.total_calls += 1;
            context.facts = filler(context.tool_stats.total_calls);
            Ok(saves)
        }));
        writeln!(output, "saved {}", saved.unwrap()).unwrap();
    }
}

fn start(folder: &Path, writer: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "saves_until_it_is_killed", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(WRITER, writer)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills a writer, and counts that for `cargo xtask torture`: one byte in the file `STRATA_TEST_KILLS`.
fn kill(child: &mut Child) {
    if let Some(file) = std::env::var_os("STRATA_TEST_KILLS") {
        let mut file = std::fs::File::options().create(true).append(true).open(file).unwrap();
        file.write_all(b"k").unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The rounds that are asked for; without them, the test goes on until it has seen enough.
fn rounds() -> Option<usize> {
    let rounds = std::env::var_os("STRATA_TEST_ROUNDS");
    rounds.map(|rounds| rounds.to_string_lossy().parse().expect("a number of rounds"))
}

fn saved(line: &str) -> Option<u64> {
    line.strip_prefix("saved ")?.parse().ok()
}

fn assert_whole(context: &ContextData) {
    assert_eq!(context.session_id, SESSION);
    assert_eq!(context.facts, filler(context.tool_stats.total_calls));
    assert_eq!(context.tool_stats.by_tool.values().sum::<u64>(), context.tool_stats.total_calls);
}

/// Reads the file as it is, over and over: what a kill would leave at that moment, thousands of times more often than
/// processes can be killed. Gives back how often.
fn watch(path: &Path, stop: &AtomicBool) -> u64 {
    let mut reads = 0;
    while !stop.load(Ordering::Relaxed) {
        if let Ok(text) = std::fs::read(path) {
            assert_whole(&serde_json::from_slice(&text).expect("a document is whole at every moment"));
            reads += 1;
        }
    }
    reads
}

#[tokio::test]
async fn a_killed_save_leaves_a_whole_and_recent_document() {
    let folder = tempfile::tempdir().unwrap();
    let manager = ContextManager::new(folder.path()).with_versions(5);
    let mut acknowledged: BTreeMap<&str, u64> = BTreeMap::new();
    let stop = Arc::new(AtomicBool::new(false));
    let watcher = std::thread::spawn({
        let (path, stop) = (manager.path(SESSION).unwrap(), Arc::clone(&stop));
        move || watch(&path, &stop)
    });
    let mut round = 0;
    while rounds().map_or(acknowledged.values().sum::<u64>() < 1_000, |rounds| round < rounds) {
        let mut children = WRITERS.map(|writer| (writer, start(folder.path(), writer)));
        // One writer is heard a few times more in each round, so that the kill falls into ever other moments.
        let mut lines =
            children.each_mut().map(|(_, child)| BufReader::new(child.stdout.take().unwrap()).lines());
        let mut heard = 0;
        while heard < 20 + round % 7 {
            let line = lines[round % 2].next().unwrap().unwrap();
            if let Some(saves) = saved(&line) {
                acknowledged.insert(WRITERS[round % 2], saves);
                heard += 1;
            }
        }
        for (_, child) in &mut children {
            kill(child);
        }
        // What they said before they died, and nobody had read yet.
        for ((writer, _), lines) in children.iter().zip(lines) {
            for saves in lines.map_while(Result::ok).filter_map(|line| saved(&line)) {
                acknowledged.insert(writer, saves);
            }
        }
        let context = manager.load(SESSION).await.unwrap();
        assert_whole(&context);
        for (writer, saves) in &acknowledged {
            let found = context.tool_stats.by_tool[*writer];
            assert!(found == *saves || found == saves + 1, "{writer}: {found} found, {saves} acknowledged");
            // A save that was not acknowledged any more counts from now on.
        }
        round += 1;
    }
    stop.store(true, Ordering::Relaxed);
    assert!(watcher.join().unwrap() > 100 || rounds().is_some());
    let versions = manager.versions(SESSION).await.unwrap();
    assert_eq!(versions.len(), 5);
    // A restore is a save: it must not drop the versions that are still to be looked at.
    let manager = manager.with_versions(100);
    for version in versions {
        assert_whole(&manager.restore(SESSION, version.number).await.unwrap());
    }
    assert_eq!(manager.list_sessions().await.unwrap(), [SESSION]);
}
