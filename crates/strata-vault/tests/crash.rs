//! `kill -9` during writes, during a look at edited files, under a watcher, while the index is built, during a commit and between
//! its steps: nothing acknowledged is lost, no file is half written, and the index is built from the files with equal content. In
//! every second round the index is deleted before the vault is opened again.
//!
//! Two rounds each; `STRATA_TEST_ROUNDS` asks for more. A kill that comes when its work is done already does not count as a round.

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

/// A moment that comes for certain, on a machine that is busy with other things.
const CERTAIN: Duration = Duration::from_secs(120);

/// How often a kill may come too late in one round.
const ATTEMPTS: u64 = 40;

/// The facts that a person edits.
const FACTS: usize = 60;

/// What a child says when it has opened the vault.
const OPENED: &str = "opened";

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
        let (git, watch) = (mode == "git", mode == "watch");
        let options = VaultOptions { git, watch, ids: ids.clone(), ..options() };
        println!("ack opening");
        let store = Arc::new(VaultStore::open(root, options).await.unwrap());
        println!("ack {OPENED}");
        if mode == "open" {
            return;
        }
        if mode == "undo" {
            store.undo(None).await.unwrap();
            return;
        }
        if mode == "watch" {
            // The watcher works until the process is killed.
            std::future::pending::<()>().await;
        }
        let writers: Vec<_> =
            (0..4).map(|writer| tokio::spawn(write_for_ever(store.clone(), ids.clone(), writer))).collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

fn spawn(mode: &str, root: &Path) -> Child {
    start(&mut command(mode, root))
}

fn command(mode: &str, root: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]).env(CHILD, format!("{mode} {}", root.display()));
    command
}

fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0).spawn().unwrap()
}

/// Lets a child work until it has acknowledged `acks` lines and `until` holds, kills it with everything that it has started, and
/// returns what it has acknowledged.
fn kill_after(child: Child, acks: usize, until: impl Fn() -> bool) -> Vec<String> {
    kill_within(LONGEST_WAIT, child, acks, until)
}

/// As [`kill_after`], waiting for `longest` at most.
fn kill_within(longest: Duration, mut child: Child, acks: usize, until: impl Fn() -> bool) -> Vec<String> {
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
    while !until() && start.elapsed() < longest && child.try_wait().unwrap().is_none() {
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
        let is_whole = |at: &usize| line.len() >= at + 4 + 73 || line[at + 4..] == *OPENED;
        if let Some(at) = line.find("ack ").filter(is_whole) {
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

/// A vault with facts that a person edits, closed.
async fn with_facts(root: &Path) {
    let facts = root.join("entries/global/facts");
    fs::create_dir_all(&facts).unwrap();
    for number in 0..FACTS {
        fs::write(facts.join(format!("{number}.md")), format!("Statement {number} of version 0\n")).unwrap();
    }
    open(root).await.close().await.unwrap();
}

/// Edits each fact, as an editor that replaces the file.
fn edit_facts(root: &Path, version: u64) {
    for file in files(&root.join("entries/global/facts")) {
        let text = fs::read_to_string(&file).unwrap();
        let edited = text.replace(&format!("version {version}\n"), &format!("version {}\n", version + 1));
        let temporary = file.with_extension("new");
        fs::write(&temporary, edited).unwrap();
        fs::rename(temporary, file).unwrap();
    }
}

/// The former versions of facts: each edit that was taken in leaves one.
fn former_versions(root: &Path) -> usize {
    let is_whole = |path: &PathBuf| path.extension().is_some_and(|end| end == "md");
    files(&root.join("entries/global/deleted")).into_iter().filter(is_whole).count()
}

async fn expect_version(store: &VaultStore, version: u64) {
    let query = MemoryQuery::new(MemorySelect::Current { as_of: None });
    let current = store.memories(&UserId::default(), &query).await.unwrap();
    let texts: BTreeSet<String> = current.iter().map(|memory| memory.content.clone()).collect();
    let expected: BTreeSet<String> =
        (0..FACTS).map(|number| format!("Statement {number} of version {version}")).collect();
    assert_eq!(texts, expected);
    assert_eq!(current.len(), FACTS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_during_a_look_at_edited_files_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    with_facts(root).await;
    let (mut round, mut version) = (0, 0);
    while round < rounds() {
        edit_facts(root, version);
        version += 1;
        let before = former_versions(root);
        let some = 1 + round as usize * 11 % (FACTS / 2);
        let is_begun = || former_versions(root) >= before + some;
        let seen = kill_within(CERTAIN, spawn("open", root), 1, is_begun);
        // A kill after the vault was open has hit nothing.
        round += u64::from(!seen.iter().any(|line| line == OPENED) && former_versions(root) > before);
        let store = check(root, round).await;
        expect_version(&store, version).await;
        store.close().await.unwrap();
        assert!(version < rounds() + ATTEMPTS, "{round} of {version} kills have hit the work");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_under_a_watcher_that_follows_edits_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    with_facts(root).await;
    for round in 0..rounds() {
        let before = former_versions(root);
        let some = 1 + round as usize * 7 % FACTS;
        let edited = std::cell::Cell::new(false);
        let is_begun = || {
            if !edited.replace(true) {
                edit_facts(root, round);
            }
            former_versions(root) >= before + some
        };
        kill_within(CERTAIN, spawn("watch", root), 2, is_begun);
        assert!(former_versions(root) >= before + some, "the watcher has taken nothing in");
        let store = check(root, round).await;
        expect_version(&store, round + 1).await;
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
    let (mut round, mut kills) = (0, 0);
    while round < rounds() {
        fs::remove_dir_all(&private).unwrap();
        // The log of the index grows while it is built.
        let log = private.join("index.db-wal");
        let far = 40_000 * (1 + round % 9);
        let is_far = || fs::metadata(&log).is_ok_and(|log| log.len() >= far);
        let seen = kill_within(CERTAIN, spawn("open", folder.path()), 1, is_far);
        (kills, round) = (kills + 1, round + u64::from(!seen.iter().any(|line| line == OPENED)));
        let store = check(folder.path(), round).await;
        assert!(content(&store).await == before, "round {round}");
        expect_acknowledged(&store, &written).await;
        store.close().await.unwrap();
        assert!(kills < rounds() + ATTEMPTS, "{round} of {kills} kills have hit the work");
    }
}

/// A program `git` that touches a file before or after a command and then goes no further. The other commands are git's own.
fn git_that_stops(folder: &Path, command: &str, when: &str) -> PathBuf {
    let find = Command::new("sh").args(["-c", "command -v git"]).output().unwrap();
    let real = String::from_utf8(find.stdout).unwrap().trim().to_owned();
    let reached = folder.join("reached");
    let _ = fs::remove_file(&reached);
    let run = if when == "after" { format!("'{real}' \"$@\"") } else { String::new() };
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *{command}*)\n{run}\ntouch '{}'\nexec tail -f /dev/null >/dev/null;;\nesac\nexec '{real}' \"$@\"\n",
        reached.display()
    );
    let program = folder.join("git");
    fs::write(&program, script).unwrap();
    Command::new("chmod").arg("755").arg(program).status().unwrap();
    reached
}

/// A child that finds the programs of a folder first.
fn spawn_with(programs: &Path, mode: &str, root: &Path) -> Child {
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    start(command(mode, root).env("PATH", format!("{}:{path}", programs.display())))
}

/// The history is whole, and holds everything after one more commit.
async fn expect_history(root: &Path) {
    let git = Git::new(root, options().clock).unwrap();
    assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_) | Committed::Nothing));
    let fsck = Command::new("git").args(["fsck", "--strict"]).current_dir(root).output().unwrap();
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stderr));
    let status = Command::new("git").args(["status", "--porcelain"]).current_dir(root).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&status.stdout), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_between_the_steps_of_a_commit_loses_nothing() {
    const STEPS: [(&str, &str); 6] = [
        ("' update-index --add '", "before"),
        ("' update-index --add '", "after"),
        ("' write-tree '", "after"),
        ("' commit-tree '", "after"),
        ("' update-ref '", "before"),
        ("' update-ref '", "after"),
    ];
    let (folder, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = folder.path();
    let mut acknowledged = Vec::new();
    for (round, (command, when)) in (0..rounds().max(STEPS.len() as u64)).zip(STEPS.into_iter().cycle()) {
        let reached = git_that_stops(programs.path(), command, when);
        // It is committed as soon as the vault is open; a stream of writes alone would be after fifteen seconds.
        let facts = root.join("entries/global/facts");
        fs::create_dir_all(&facts).unwrap();
        fs::write(facts.join(format!("{round}.md")), format!("Step {round} was taken\n")).unwrap();
        let seen = kill_within(CERTAIN, spawn_with(programs.path(), "git", root), 3, || reached.exists());
        acknowledged.extend(seen.into_iter().filter(|line| line.contains(' ')));
        assert!(reached.exists(), "no commit came to {command}");
        let store = check(root, round).await;
        expect_acknowledged(&store, &acknowledged).await;
        store.close().await.unwrap();
        expect_history(root).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_git_that_hangs_holds_up_no_write() {
    let (folder, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let reached = git_that_stops(programs.path(), "", "before");
    let mut child = spawn_with(programs.path(), "git", folder.path());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.by_ref().map(Result::unwrap).find(|line| line.contains("ack "));
    // Writes are acknowledged until git hangs, and then on.
    while !reached.exists() {
        assert!(next().is_some());
    }
    for _ in 0..40 {
        assert!(next().is_some());
    }
    let group = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    child.wait().unwrap();
    check(folder.path(), 0).await.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_during_a_commit_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
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
        expect_history(folder.path()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_during_an_undo_hinders_nothing() {
    // Before any file is touched, and after that.
    const STEPS: [(&str, &str, bool); 4] = [
        ("' cat-file '", "after", false),
        ("' write-tree '", "before", true),
        ("' update-ref '", "before", true),
        ("' update-ref '", "after", true),
    ];
    let programs = tempfile::tempdir().unwrap();
    for (round, (command, when, is_taken_back)) in (0..).zip(STEPS) {
        let folder = tempfile::tempdir().unwrap();
        let (root, facts) = (folder.path(), folder.path().join("entries/global/facts"));
        fs::create_dir_all(&facts).unwrap();
        for name in ["mill", "oven"] {
            fs::write(facts.join(format!("{name}.md")), format!("The {name} is new\n")).unwrap();
            open(root).await.close().await.unwrap();
            expect_history(root).await;
        }
        let reached = git_that_stops(programs.path(), command, when);
        kill_within(CERTAIN, spawn_with(programs.path(), "undo", root), 2, || reached.exists());
        assert!(reached.exists(), "no undo came to {command}");
        assert!(!root.join(".git/REVERT_HEAD").exists());
        let store = check(root, round).await;
        expect_history(root).await;
        let current = support::current(&store).await;
        let expected =
            if is_taken_back { &["The mill is new"][..] } else { &["The mill is new", "The oven is new"] };
        assert_eq!(current, expected, "{command}");
        // The next step works.
        store.undo(None).await.unwrap();
        store.close().await.unwrap();
    }
}
