//! `kill -9` during writes, during a look at edited files, while the index is built and during a commit: nothing acknowledged is
//! lost, no file is half written, and the index is built from the files with equal content. In every second round the index is
//! deleted before the vault is opened again.
//!
//! Two rounds each; `STRATA_TEST_ROUNDS` asks for more.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test's own functions")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use strata_core::memory::MemoryNotes;
use strata_core::ports::IdSource;
use strata_core::store::{Change, ChangeSet, CheckDepth, MemoryQuery, MemorySelect, TurnQuery};
use strata_core::turn::{Hidden, HiddenReason, Metadata, NewTurn, Role, TurnNotes};
use strata_core::{Memory, MemoryId, MemoryKind, SessionId, Store, TurnId, UserId};
use strata_vault::{Committed, Git, VaultOptions, VaultStore};
use support::{content, open, options};
use uuid::Uuid;

/// The variable that makes this test program a writer, and the folder that it writes to.
const CHILD: &str = "STRATA_VAULT_CHILD";

/// A moment to kill at may pass unseen.
const LONGEST_WAIT: Duration = Duration::from_millis(1_500);

/// Ids that differ between processes.
struct Ids(u64, std::sync::atomic::AtomicU64);

impl IdSource for Ids {
    fn next(&self) -> Uuid {
        let number = self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Uuid::from_u128(
            0x0191_0000_0000_7000_8000_0000_0000_0000 | u128::from(self.0) << 24 | u128::from(number),
        )
    }
}

fn rounds() -> u64 {
    std::env::var_os("STRATA_TEST_ROUNDS").and_then(|rounds| rounds.to_str()?.parse().ok()).unwrap_or(2)
}

fn turn(ids: &dyn IdSource, text: &str, at: jiff::Timestamp) -> NewTurn {
    NewTurn {
        id: TurnId(ids.next()),
        role: Role::User,
        name: None,
        content: text.to_owned(),
        created_at: at,
        token_count: 2,
        metadata: Metadata::new(),
        notes: TurnNotes::default(),
        hidden: None,
    }
}

fn memory(ids: &dyn IdSource, text: &str, at: jiff::Timestamp) -> Memory {
    Memory {
        id: MemoryId(ids.next()),
        session: None,
        agent: None,
        kind: MemoryKind::Fact,
        content: text.to_owned(),
        confidence: 1.0,
        valid_from: at,
        valid_to: None,
        recorded_at: at,
        replaced_by: None,
        source_turns: Vec::new(),
        source_summary: None,
        metadata: Metadata::new(),
        notes: MemoryNotes::default(),
        hidden: None,
    }
}

/// One writer: turns, memories that replace each other, and evictions, each printed when it is acknowledged.
async fn write_for_ever(store: Arc<VaultStore>, ids: Arc<Ids>, writer: usize) {
    let user = UserId::default();
    let session = SessionId::new(format!("session {writer}")).unwrap();
    let mut last: Option<(TurnId, MemoryId)> = None;
    for number in 0.. {
        let at = jiff::Timestamp::from_second(1_795_000_000 + number).unwrap();
        let (said, learned) =
            (turn(&*ids, &format!("turn {number}"), at), memory(&*ids, &format!("fact {number}"), at));
        let now = (said.id, learned.id);
        let mut changes = vec![
            Change::AppendTurns { session: session.clone(), turns: vec![said] },
            Change::AddMemory(Box::new(learned)),
        ];
        if let Some((turn, memory)) = last {
            changes.push(Change::CloseMemory { id: memory, valid_to: at, replaced_by: Some(now.1) });
            let hidden = Some(Hidden { reason: HiddenReason::Evicted, at });
            changes.push(Change::HideTurns { ids: vec![turn], hidden });
        }
        store.apply(&user, ChangeSet::new(at, changes)).await.unwrap();
        println!("ack {} {}", now.0, now.1);
        last = Some(now);
    }
}

/// Not a test of its own: the process that the tests kill.
#[test]
fn child() {
    let Some(given) = std::env::var_os(CHILD) else { return };
    let given = given.into_string().unwrap();
    let (mode, root) = given.split_once(' ').unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let ids = Arc::new(Ids(u64::from(std::process::id()), Default::default()));
        let options = VaultOptions { git: mode == "git", ids: ids.clone(), ..options() };
        println!("ack opening");
        let store = Arc::new(VaultStore::open(root, options).await.unwrap());
        println!("ack opened");
        if mode == "open" {
            return;
        }
        let writers: Vec<_> =
            (0..4).map(|writer| tokio::spawn(write_for_ever(store.clone(), ids.clone(), writer))).collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

fn spawn(mode: &str, root: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, format!("{mode} {}", root.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap()
}

/// Lets a child work until it has acknowledged `acks` lines and `until` holds, kills it with everything that it has started, and
/// returns what it has acknowledged.
fn kill_after(mut child: Child, acks: usize, until: impl Fn() -> bool) -> Vec<String> {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    while seen.len() < acks {
        let Some(line) = lines.next() else { break };
        let line = line.unwrap();
        // The test runner's own words may stand before the first line.
        if let Some(at) = line.find("ack ") {
            seen.push(line[at + 4..].to_owned());
        }
    }
    let start = Instant::now();
    while !until() && start.elapsed() < LONGEST_WAIT && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let group = rustix::process::Pid::from_child(&child);
    if let Some(file) = std::env::var_os("STRATA_TEST_KILLS") {
        let mut file = fs::File::options().create(true).append(true).open(file).unwrap();
        std::io::Write::write_all(&mut file, b"k").unwrap();
    }
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    child.wait().unwrap();
    for line in lines.map_while(Result::ok) {
        // The last line may be cut off.
        if let Some(at) = line.find("ack ").filter(|at| line.len() >= at + 4 + 73) {
            seen.push(line[at + 4..].to_owned());
        }
    }
    seen
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Opens the vault after a death, checks it, and compares its content with an index that is built from the files alone.
async fn check(root: &Path, round: u64) -> VaultStore {
    if round % 2 == 1 {
        fs::remove_dir_all(root.join(".strata")).unwrap();
    }
    let store = open(root).await;
    let problems = store.check(CheckDepth::Thorough).await.unwrap().problems;
    assert!(problems.is_empty(), "{problems:?}");
    assert!(files(&root.join("entries")).iter().all(|path| path.extension().is_some_and(|end| end != "tmp")));
    let before = content(&store).await;
    store.close().await.unwrap();
    fs::remove_dir_all(root.join(".strata")).unwrap();
    let store = open(root).await;
    let after = content(&store).await;
    let differs = before.lines().zip(after.lines()).find(|(one, two)| one != two);
    assert!(before == after, "{differs:?}");
    store
}

async fn expect_acknowledged(store: &VaultStore, acknowledged: &[String]) {
    let pairs: Vec<(TurnId, MemoryId)> = acknowledged
        .iter()
        .filter_map(|line| line.split_once(' '))
        .map(|(turn, memory)| (turn.parse().unwrap(), memory.parse().unwrap()))
        .collect();
    let user = UserId::default();
    let ids: Vec<TurnId> = pairs.iter().map(|(turn, _)| *turn).collect();
    assert_eq!(store.turns(&user, &TurnQuery::Ids(ids.clone())).await.unwrap().len(), ids.len());
    let ids: Vec<MemoryId> = pairs.iter().map(|(_, memory)| *memory).collect();
    let query = MemoryQuery::new(MemorySelect::Ids(ids.clone()));
    assert_eq!(store.memories(&user, &query).await.unwrap().len(), ids.len());
    for writer in 0..4 {
        let session = SessionId::new(format!("session {writer}")).unwrap();
        let query = TurnQuery::Range { session, after: None, limit: u32::MAX };
        let turns = store.turns(&user, &query).await.unwrap();
        assert!(turns.iter().zip(0..).all(|(turn, place)| turn.seq == place), "no gap and no double");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_during_writes_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..rounds() {
        let child = spawn("write", folder.path());
        let acks = 5 + round as usize * 17 % 60;
        acknowledged.extend(kill_after(child, acks, || true).into_iter().filter(|line| line.contains(' ')));
        let store = check(folder.path(), round).await;
        expect_acknowledged(&store, &acknowledged).await;
        store.close().await.unwrap();
    }
    assert!(!acknowledged.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_during_a_look_at_edited_files_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let facts = folder.path().join("entries/global/facts");
    fs::create_dir_all(&facts).unwrap();
    for number in 0..60 {
        fs::write(facts.join(format!("{number}.md")), format!("Statement {number} of version 0\n")).unwrap();
    }
    let store = open(folder.path()).await;
    store.close().await.unwrap();
    for round in 0..rounds() {
        for file in files(&facts) {
            let text = fs::read_to_string(&file).unwrap();
            fs::write(&file, text.replace(&format!("version {round}"), &format!("version {}", round + 1)))
                .unwrap();
        }
        // Each edit that was taken in leaves a former version among the deleted files.
        let deleted = folder.path().join("entries/global/deleted");
        let before = files(&deleted).len();
        let some = round as usize * 11 % 60;
        kill_after(spawn("open", folder.path()), 1, || files(&deleted).len() >= before + some);
        let store = check(folder.path(), round).await;
        let query = MemoryQuery::new(MemorySelect::Current { as_of: None });
        let current = store.memories(&UserId::default(), &query).await.unwrap();
        let texts: BTreeSet<String> = current.iter().map(|memory| memory.content.clone()).collect();
        let expected: BTreeSet<String> =
            (0..60).map(|number| format!("Statement {number} of version {}", round + 1)).collect();
        assert_eq!(texts, expected);
        assert_eq!(current.len(), 60);
        store.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_while_the_index_is_built_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let child = spawn("write", folder.path());
    let written: Vec<String> =
        kill_after(child, 60, || true).into_iter().filter(|line| line.contains(' ')).collect();
    let store = check(folder.path(), 0).await;
    let before = content(&store).await;
    store.close().await.unwrap();
    let private = folder.path().join(".strata");
    for round in 0..rounds() {
        fs::remove_dir_all(&private).unwrap();
        // The log of the index grows while it is built.
        let log = private.join("index.db-wal");
        let far = 40_000 * (1 + round % 9);
        kill_after(spawn("open", folder.path()), 1, || fs::metadata(&log).is_ok_and(|log| log.len() >= far));
        let store = check(folder.path(), round).await;
        assert!(content(&store).await == before, "round {round}");
        expect_acknowledged(&store, &written).await;
        store.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_during_a_commit_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let git = Git::new(folder.path(), options().clock).unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..rounds() {
        // A commit begins when the vault is opened, and holds this lock; later ones follow after a second of writes.
        let lock = folder.path().join(".git/index.lock");
        let child = spawn("git", folder.path());
        let acks = if round % 2 == 0 { 3 } else { 60 };
        acknowledged
            .extend(kill_after(child, acks, || lock.exists()).into_iter().filter(|line| line.contains(' ')));
        // A lock that was left behind is old by the test's clock.
        let store = check(folder.path(), round).await;
        expect_acknowledged(&store, &acknowledged).await;
        store.close().await.unwrap();
        assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_) | Committed::Nothing));
        let fsck =
            Command::new("git").args(["fsck", "--strict"]).current_dir(folder.path()).output().unwrap();
        assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stderr));
        let status =
            Command::new("git").args(["status", "--porcelain"]).current_dir(folder.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&status.stdout), "");
    }
}
