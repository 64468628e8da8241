//! The vault's history: commits that a person understands, and commits that are taken back.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use jiff::Timestamp;
use strata_core::ports::Clock;
use strata_core::store::{Change, ChangeSet, MemoryQuery, MemorySelect, session_space};
use strata_core::{Memory, SessionId, Store, UserId};
use strata_vault::{Committed, Git, VaultOptions, VaultStore};
use support::{Now, git_at, open, options, run};

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

async fn current(store: &dyn Store) -> Vec<String> {
    let all = store.memories(&UserId::default(), &MemoryQuery::new(MemorySelect::All)).await.unwrap();
    let mut current: Vec<String> =
        all.into_iter().filter(Memory::is_current).map(|memory| memory.content).collect();
    current.sort();
    current
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_says_what_it_adds_and_can_be_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let git = git_at(root);
    let store = open(root).await;
    write(root, "entries/global/facts/a.md", "Owns a sailing boat\n");
    store.sync().await.unwrap();
    assert_eq!(git.commit().await.unwrap(), Committed::Commit("Add 1 memory".to_owned()));
    assert_eq!(git.commit().await.unwrap(), Committed::Nothing);
    write(root, "entries/global/facts/b.md", "Is afraid of storms\n");
    store.sync().await.unwrap();
    git.commit().await.unwrap();
    assert!(run(root, &["log", "-1", "--format=%B"]).contains("+ Is afraid of storms"));
    assert!(
        run(root, &["ls-files"]).lines().all(|line| line.starts_with("entries/") || line == ".gitignore")
    );
    assert_eq!(current(&store).await, ["Is afraid of storms", "Owns a sailing boat"]);
    let log = git.log(9).await.unwrap();
    assert_eq!(log.lines().count(), 2);
    assert!(git.diff(Some("HEAD")).await.unwrap().contains("+Is afraid of storms"));
    assert_eq!(store.undo(None).await.unwrap(), "Add 1 memory");
    assert_eq!(current(&store).await, ["Owns a sailing boat"]);
    // A person may do the same with git alone.
    assert_eq!(run(root, &["log", "-1", "--format=%s"]), "Undo “Add 1 memory”\n");
    run(root, &["revert", "--no-edit", "HEAD~2"]);
    store.sync().await.unwrap();
    assert!(current(&store).await.is_empty());
    git.commit().await.unwrap();
    assert!(store.undo(Some("no-such-commit")).await.unwrap_err().message().contains("no commit"));
    assert!(store.undo(Some("--hard")).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reverted_edit_brings_the_old_statement_back() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let git = git_at(root);
    let store = open(root).await;
    write(root, "entries/global/facts/a.md", "Lives in Oslo\n");
    store.sync().await.unwrap();
    git.commit().await.unwrap();
    let path = root.join("entries/global/facts/a.md");
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("Oslo", "Bergen")).unwrap();
    store.sync().await.unwrap();
    git.commit().await.unwrap();
    store.undo(None).await.unwrap();
    assert_eq!(current(&store).await, ["Lives in Oslo"]);
    assert_eq!(store.redo().await.unwrap(), "Change 1 memory; take out 1 memory");
    assert_eq!(current(&store).await, ["Lives in Bergen"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_step_back_can_be_taken_forth_again() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let git = git_at(root);
    let store = open(root).await;
    for (name, text) in [("a", "Plays the cello"), ("b", "Owns a kayak")] {
        write(root, &format!("entries/global/facts/{name}.md"), &format!("{text}\n"));
        store.sync().await.unwrap();
        git.commit().await.unwrap();
    }
    let both = ["Owns a kayak", "Plays the cello"];
    store.undo(None).await.unwrap();
    assert_eq!(current(&store).await, ["Plays the cello"]);
    store.undo(None).await.unwrap();
    assert!(current(&store).await.is_empty());
    assert!(store.undo(None).await.unwrap_err().message().contains("no commit to take back"));
    store.redo().await.unwrap();
    assert_eq!(current(&store).await, ["Plays the cello"]);
    store.redo().await.unwrap();
    assert_eq!(current(&store).await, both);
    assert!(store.redo().await.is_err());
    // Removed by hand, and brought back by its name.
    fs::remove_file(root.join("entries/global/facts/a.md")).unwrap();
    store.sync().await.unwrap();
    let committed = git.commit().await.unwrap();
    assert_eq!(committed, Committed::Commit("Take out 1 memory".to_owned()));
    assert_eq!(current(&store).await, ["Owns a kayak"]);
    store.undo(Some("HEAD")).await.unwrap();
    assert_eq!(current(&store).await, both);
    assert_eq!(run(root, &["status", "--porcelain"]), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_of_one_fact_are_taken_back_one_after_another() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let git = git_at(root);
    let store = open(root).await;
    let path = root.join("entries/global/facts/a.md");
    write(root, "entries/global/facts/a.md", "Rows on Mondays\n");
    store.sync().await.unwrap();
    git.commit().await.unwrap();
    for (from, to) in [("Mondays", "Tuesdays"), ("Tuesdays", "Fridays"), ("Fridays", "Sundays")] {
        fs::write(&path, fs::read_to_string(&path).unwrap().replace(from, to)).unwrap();
        store.sync().await.unwrap();
        git.commit().await.unwrap();
    }
    for day in ["Fridays", "Tuesdays", "Mondays"] {
        store.undo(None).await.unwrap();
        assert_eq!(current(&store).await, [format!("Rows on {day}")]);
    }
    store.redo().await.unwrap();
    assert_eq!(current(&store).await, ["Rows on Tuesdays"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn taking_back_a_tombstone_alone_brings_its_memory_back() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let git = git_at(root);
    let store = open(root).await;
    write(root, "entries/global/facts/a.md", "Speaks Basque\n");
    store.sync().await.unwrap();
    git.commit().await.unwrap();
    // A person reverts with git alone, so the removed file and the tombstone are two commits.
    run(root, &["rm", "--quiet", "entries/global/facts/a.md"]);
    run(root, &["commit", "--quiet", "-m", "no longer"]);
    store.sync().await.unwrap();
    assert_eq!(git.commit().await.unwrap(), Committed::Commit("Take out 1 memory".to_owned()));
    assert!(current(&store).await.is_empty());
    store.undo(Some("HEAD")).await.unwrap();
    assert_eq!(current(&store).await, ["Speaks Basque"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_takes_back_what_strata_has_added_to_a_file_with_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let git = git_at(root);
    let store = open(root).await;
    // A person commits a file without front matter, and Strata adds the id in a commit of its own.
    write(root, "entries/global/facts/a.md", "Plays the oboe\n");
    run(root, &["init", "--quiet", "-b", "main"]);
    run(root, &["add", "entries"]);
    run(root, &["commit", "--quiet", "-m", "mine"]);
    store.sync().await.unwrap();
    assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_)));
    let (path, head) = (root.join("entries/global/facts/a.md"), run(root, &["rev-parse", "HEAD"]));
    assert!(fs::read_to_string(&path).unwrap().contains("id: "));
    // By either name, the person's commit goes with what Strata has made of it.
    for name in ["HEAD", "HEAD~1"] {
        assert_eq!(store.undo(Some(name)).await.unwrap(), "mine", "{name}");
        assert!(!path.exists());
        assert!(current(&store).await.is_empty());
        store.redo().await.unwrap();
        assert_eq!(current(&store).await, ["Plays the oboe"]);
        run(root, &["reset", "--quiet", "--hard", head.trim()]);
        store.sync().await.unwrap();
    }
    write(root, "entries/global/facts/b.md", "Plays the lute\n");
    store.sync().await.unwrap();
    git.commit().await.unwrap();
    store.undo(None).await.unwrap();
    assert_eq!(current(&store).await, ["Plays the oboe"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_that_cannot_be_done_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let git = git_at(root);
    let store = open(root).await;
    let path = root.join("entries/global/facts/a.md");
    write(root, "entries/global/facts/a.md", "Rows on Mondays\n");
    store.sync().await.unwrap();
    git.commit().await.unwrap();
    for (from, to) in [("Mondays", "Tuesdays"), ("Tuesdays", "Fridays")] {
        fs::write(&path, fs::read_to_string(&path).unwrap().replace(from, to)).unwrap();
        store.sync().await.unwrap();
        git.commit().await.unwrap();
    }
    let before = fs::read_to_string(&path).unwrap();
    assert!(
        store.undo(Some("HEAD~1")).await.unwrap_err().message().contains("later ones change the same files")
    );
    assert_eq!(
        (fs::read_to_string(&path).unwrap(), run(root, &["status", "--porcelain"])),
        (before, String::new())
    );
    // What a person has staged is neither committed nor lost.
    write(root, "notes.md", "mine\n");
    run(root, &["add", "notes.md"]);
    assert!(store.undo(None).await.unwrap_err().message().contains("staged"));
    assert_eq!(run(root, &["status", "--porcelain"]), "A  notes.md\n");
    assert_eq!(current(&store).await, ["Rows on Fridays"]);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_files_of_the_layout_are_committed_and_only_memories_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let git = git_at(root);
    let store = open(root).await;
    for path in [".a.md.swp", "a.md~", "#a.md#", ".#a.md", "~a.md", "4913", "photo.png", "a.md.tmp"] {
        write(root, &format!("entries/global/facts/{path}"), "x\n");
    }
    write(root, "entries/global/facts/a.md", "Keeps bees\n");
    write(root, "entries/global/facts/known.md", "Bakes bread\n");
    write(root, "entries/global/facts/broken.md", "---\nid: [\n---\nx\n");
    std::os::unix::fs::symlink("/etc/hostname", root.join("entries/global/facts/link.md")).unwrap();
    store.sync().await.unwrap();
    let committed = git.commit().await.unwrap();
    assert_eq!(committed, Committed::Commit("Add 2 memories; keep 1 file that cannot be used".to_owned()));
    let listed = run(root, &["ls-files"]);
    let names: Vec<&str> = listed.lines().map(|line| line.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, [".gitignore", "a.md", "broken.md", "known.md"]);
    assert_eq!(git.commit().await.unwrap(), Committed::Nothing);
    // A link in the place of a committed file is not committed either.
    fs::remove_file(root.join("entries/global/facts/known.md")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", root.join("entries/global/facts/known.md")).unwrap();
    write(root, "entries/global/facts/b.md", "Knits\n");
    store.sync().await.unwrap();
    assert_eq!(git.commit().await.unwrap(), Committed::Commit("Add 1 memory".to_owned()));
    assert!(!run(root, &["ls-tree", "-r", "HEAD"]).contains("120000"));
    // A folder that leads out of the vault is left alone as well.
    let outside = tempfile::tempdir().unwrap();
    fs::rename(root.join("entries/global"), outside.path().join("global")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("global"), root.join("entries/global")).unwrap();
    write(root, "entries/other/facts/c.md", "Whittles\n");
    store.sync().await.unwrap();
    assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_)));
    assert!(!run(root, &["ls-tree", "-r", "HEAD"]).contains("120000"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_in_use_is_respected() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let git = git_at(root);
    write(root, "entries/global/facts/a.md", "One\n");
    git.commit().await.unwrap();
    // A hook that fails, and one that would write outside.
    write(root, ".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    write(root, ".git/hooks/post-commit", "#!/bin/sh\ntouch ../hooked\n");
    for hook in ["pre-commit", "post-commit"] {
        let path = root.join(".git/hooks").join(hook);
        Command::new("chmod").arg("755").arg(path).status().unwrap();
    }
    // Files of the person, staged and not, stay as they are.
    write(root, "notes.md", "mine\n");
    write(root, "draft.md", "mine too\n");
    run(root, &["add", "notes.md"]);
    write(root, "entries/global/facts/b.md", "Two\n");
    assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_)));
    assert_eq!(run(root, &["status", "--porcelain"]), "A  notes.md\n?? draft.md\n");
    assert!(!root.join("hooked").exists() && !root.parent().unwrap().join("hooked").exists());
    // A merge in progress is not disturbed.
    write(root, ".git/MERGE_HEAD", &run(root, &["rev-parse", "HEAD"]));
    write(root, "entries/global/facts/c.md", "Three\n");
    assert!(matches!(git.commit().await.unwrap(), Committed::Busy(_)));
    fs::remove_file(root.join(".git/MERGE_HEAD")).unwrap();
    // A lock that a living process holds is waited for; one that is old was left behind.
    write(root, ".git/index.lock", "");
    assert!(git.commit().await.is_err());
    Command::new("touch").args(["-d", "10 minutes ago"]).arg(root.join(".git/index.lock")).status().unwrap();
    assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_)));
}

/// Makes a file of the repository look ten minutes old.
fn age(root: &Path, path: &str) {
    Command::new("touch").args(["-d", "10 minutes ago"]).arg(root.join(path)).status().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_git_has_left_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let git = git_at(root);
    // The making of the repository was cut short.
    for path in ["config.lock", "HEAD", "description"] {
        write(root, &format!(".git/{path}"), "");
    }
    write(root, "entries/global/facts/a.md", "One\n");
    assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_)));
    let locks = [".git/HEAD.lock", ".git/refs/heads/main.lock", ".git/packed-refs.lock", ".git/index.lock"];
    for (number, lock) in locks.into_iter().enumerate() {
        write(root, lock, "");
        age(root, lock);
        write(root, "entries/global/facts/a.md", &format!("One and {number}\n"));
        assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_)), "{lock}");
        assert!(!root.join(lock).exists());
    }
    assert_eq!(run(root, &["log", "--oneline"]).lines().count(), 5);
    assert_eq!(run(root, &["status", "--porcelain"]), "");
}

/// A clock that is a year away from that of the machine.
struct Away(i64);

impl Clock for Away {
    fn now(&self) -> Timestamp {
        Now.now() + jiff::SignedDuration::from_hours(self.0 * 365 * 24)
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lock_of_a_commit_that_a_person_is_writing_stays() {
    use std::os::unix::process::CommandExt as _;

    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let git = git_at(root);
    write(root, "entries/global/facts/a.md", "One\n");
    git.commit().await.unwrap();
    write(root, "entries/global/facts/a.md", "Two\n");
    let mut editing = Command::new("git");
    editing.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-a"]);
    let editing = editing.current_dir(root).env("GIT_EDITOR", "touch opened; sleep 60;:").process_group(0);
    let mut editing = editing.spawn().unwrap();
    support::eventually(|| async { root.join("opened").exists() }).await;
    age(root, ".git/index.lock");
    for away in [0, 1, -1] {
        let git = Git::new(root, Arc::new(Away(away))).unwrap();
        assert!(git.commit().await.is_err());
        assert!(root.join(".git/index.lock").exists(), "{away} years away");
    }
    Command::new("kill").arg("--").arg(format!("-{}", editing.id())).status().unwrap();
    editing.wait().unwrap();
    // Now nobody holds it, and a clock that was set back does not keep it.
    write(root, ".git/index.lock", "");
    age(root, ".git/index.lock");
    let git = Git::new(root, Arc::new(Away(-1))).unwrap();
    assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_a_person_between_those_of_the_vault_are_not_committed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let git = git_at(root);
    write(root, "entries/global/facts/a.md", "One\n");
    write(root, "entries/global/photo.txt", "mine\n");
    git.commit().await.unwrap();
    run(root, &["add", "."]);
    run(root, &["commit", "--quiet", "-m", "my photo"]);
    write(root, "entries/global/photo.txt", "mine, retouched\n");
    write(root, "entries/global/plan.txt", "mine too\n");
    run(root, &["add", "entries/global/plan.txt"]);
    write(root, "entries/global/facts/a.md", "Two\n");
    assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_)));
    assert_eq!(run(root, &["show", "--name-only", "--format="]), "entries/global/facts/a.md\n");
    let status = run(root, &["status", "--porcelain"]);
    assert_eq!(status, " M entries/global/photo.txt\nA  entries/global/plan.txt\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_that_strata_does_not_write_is_committed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let committing = VaultOptions { git: true, clock: Arc::new(Now), ..options() };
    let store = VaultStore::open(root, committing).await.unwrap();
    let file = "---\nid: a\nrole: memory\ncreated_at: 2026-05-01\n---\nMoved to Porto\n";
    write(root, "entries/global/facts/a.md", file);
    store.sync().await.unwrap();
    let committed = || async {
        let log = Command::new("git").args(["log", "-p"]).current_dir(root).output().unwrap();
        String::from_utf8_lossy(&log.stdout).into_owned()
    };
    support::eventually(|| async { committed().await.contains("+Moved to Porto") }).await;
    write(root, "entries/global/facts/a.md", &file.replace("id: a", "id: a\nmood: good"));
    store.sync().await.unwrap();
    support::eventually(|| async { committed().await.contains("+mood: good") }).await;
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_ignored_in_a_repository_with_rules_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    run(root, &["init", "--quiet"]);
    write(root, ".gitignore", "*.log\n");
    write(root, "keys/known.json", "{}\n");
    let store = open(root).await;
    run(root, &["add", "--all"]);
    assert_eq!(run(root, &["ls-files"]), ".gitignore\n");
    store.close().await.unwrap();
    fs::remove_dir_all(root.join("keys")).unwrap();
    let store = open(root).await;
    let secret = strata_core::key::KeySecret::parse(&format!("strata_{}", "a".repeat(32))).unwrap();
    let key = strata_core::key::ApiKey {
        id: strata_core::KeyId(uuid::Uuid::from_u128(1)),
        user: UserId::default(),
        name: None,
        scopes: strata_core::key::Scopes::default(),
        hash: secret.hash(),
        prefix: secret.prefix(),
        created_at: Timestamp::UNIX_EPOCH,
        expires_at: None,
        revoked_at: None,
        limits: strata_core::key::KeyLimits::default(),
        recall_scope: None,
    };
    let add = strata_core::store::Change::AddKey(Box::new(key));
    let set = strata_core::store::ChangeSet::one(Timestamp::UNIX_EPOCH, add);
    store.apply(&UserId::default(), set).await.unwrap();
    assert!(root.join("keys").read_dir().unwrap().count() > 1);
    run(root, &["add", "--all"]);
    assert_eq!(run(root, &["ls-files"]), ".gitignore\n");
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_committed_in_the_background() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let committing = VaultOptions { git: true, clock: Arc::new(Now), ..options() };
    let store = VaultStore::open(root, committing).await.unwrap();
    for number in 0..20 {
        write(root, &format!("entries/global/facts/{number}.md"), &format!("Fact {number}\n"));
        store.sync().await.unwrap();
    }
    store.close().await.unwrap();
    assert_eq!(run(root, &["status", "--porcelain"]), "");
    let commits = run(root, &["log", "--oneline"]).lines().count();
    assert!((1..20).contains(&commits), "{commits} commits for 20 changes");
}

/// Makes two commits that cannot be merged: `main` and `other` say different things in one file.
fn diverge(root: &Path, path: &str) {
    let text = fs::read_to_string(root.join(path)).unwrap();
    let say = |words: &str| write(root, path, &text.replace("eight", words));
    run(root, &["checkout", "--quiet", "-b", "other"]);
    say("nine");
    run(root, &["commit", "--quiet", "-am", "nine"]);
    run(root, &["checkout", "--quiet", "main"]);
    say("ten");
    run(root, &["commit", "--quiet", "-am", "ten"]);
}

/// The first words of what is wrong with the files.
async fn told(store: &VaultStore) -> Vec<String> {
    let problems = store.problems().await.unwrap();
    problems.iter().map(|told| told.split(';').next().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_of_a_merge_is_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (root, path) = (folder.path(), "entries/global/facts/a.md");
    let (git, store) = (git_at(root), open(root).await);
    write(root, path, "The choir sings at eight\n");
    store.sync().await.unwrap();
    git.commit().await.unwrap();
    diverge(root, path);
    let before = current(&store).await;
    let merge = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "merge", "other"];
    assert!(!Command::new("git").args(merge).current_dir(root).output().unwrap().status.success());
    let marked = fs::read_to_string(root.join(path)).unwrap();
    assert!(marked.contains("<<<<<<<"), "{marked}");
    let line = marked.lines().position(|line| line.starts_with("<<<<<<<")).unwrap() + 1;
    let expected = [format!("`entries/global/facts/a.md`, line {line}: git could not merge it")];
    store.sync().await.unwrap();
    assert_eq!((current(&store).await, told(&store).await), (before.clone(), expected.to_vec()));
    // Without git's mark of a merge, as after `git stash pop`. Other files are committed.
    fs::remove_file(root.join(".git/MERGE_HEAD")).unwrap();
    write(root, "entries/global/facts/b.md", "The hall has an organ\n");
    store.sync().await.unwrap();
    assert_eq!(told(&store).await, expected);
    assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_)));
    assert!(run(root, &["status", "--porcelain"]).contains("UU entries/global/facts/a.md"));
    assert!(!run(root, &["show", &format!("HEAD:{path}")]).contains("<<<<<<<"));
    assert_eq!(fs::read_to_string(root.join(path)).unwrap(), marked);
    // Settled.
    write(
        root,
        path,
        &marked
            .lines()
            .filter(|line| !line.starts_with(['<', '=', '>']) && !line.contains("nine"))
            .collect::<Vec<_>>()
            .join("\n"),
    );
    run(root, &["add", path]);
    store.sync().await.unwrap();
    assert!(told(&store).await.is_empty());
    assert_eq!(current(&store).await, ["The choir sings at ten", "The hall has an organ"]);
    // A statement about such marks is none of git's.
    let marks = ['<', '=', '>'].map(|sign| format!("{} mark\n", sign.to_string().repeat(7)));
    write(root, "entries/global/facts/c.md", &format!("Git writes\n{}", marks.concat()));
    store.sync().await.unwrap();
    assert!(told(&store).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_in_the_place_of_a_file_stops_no_commit_and_neither_does_the_way_back() {
    let folder = tempfile::tempdir().unwrap();
    let (root, git) = (folder.path(), git_at(folder.path()));
    let tracked = || run(root, &["ls-files", "entries"]);
    write(root, "entries/s/facts/a.md", "One\n");
    write(root, "entries/s/facts/b.md", "Two\n");
    git.commit().await.unwrap();
    for name in ["a.md", "b.md"] {
        fs::remove_file(root.join("entries/s/facts").join(name)).unwrap();
    }
    write(root, "entries/s/facts/a.md/x.md", "x\n");
    fs::create_dir(root.join("entries/s/facts/b.md")).unwrap();
    write(root, "entries/s/facts/c.md", "Three\n");
    assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_)));
    assert_eq!(tracked(), "entries/s/facts/a.md/x.md\nentries/s/facts/c.md\n");
    fs::remove_dir_all(root.join("entries/s/facts/a.md")).unwrap();
    write(root, "entries/s/facts/a.md", "One again\n");
    assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_)));
    assert_eq!(tracked(), "entries/s/facts/a.md\nentries/s/facts/c.md\n");
    assert_eq!(run(root, &["status", "--porcelain"]), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_repository_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "entries/s/facts/a.md", "One\n");
    git_at(root).commit().await.unwrap();
    let committing = || VaultOptions { git: true, ..options() };
    for remake in [false, true] {
        fs::remove_dir_all(root.join(".git/objects")).unwrap();
        if remake {
            fs::create_dir(root.join(".git/objects")).unwrap();
        }
        let store = VaultStore::open(root, committing()).await.unwrap();
        let told = support::problems(&store).await;
        assert!(told.len() == 1 && told[0].starts_with("the history is not kept: git "), "{told:?}");
        store.close().await.unwrap();
        fs::create_dir_all(root.join(".git/objects")).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_still_being_written_is_neither_reported_nor_committed() {
    use std::io::Write as _;

    let folder = tempfile::tempdir().unwrap();
    let (root, path) = (folder.path(), "entries/global/facts/a.md");
    let (git, store) = (git_at(root), open(root).await);
    write(root, path, "The pool is open\n");
    store.sync().await.unwrap();
    git.commit().await.unwrap();
    let committed = || run(root, &["show", &format!("HEAD:{path}")]);
    let (before, whole) = (committed(), "---\nkind: fact\nconfidence: 0.5\n---\nThe pool is closed\n");
    let text = before.replace("open", "closed");
    let mut writers = Vec::new();
    for (path, half, rest) in
        [(path, &text[..9], &text[9..]), ("entries/global/facts/b.md", &whole[..9], &whole[9..])]
    {
        let mut file = fs::File::create(root.join(path)).unwrap();
        file.write_all(half.as_bytes()).unwrap();
        writers.push((file, rest.to_owned()));
    }
    write(root, "entries/global/facts/c.md", "The sauna is hot\n");
    store.sync().await.unwrap();
    assert_eq!(store.problems().await.unwrap(), Vec::<String>::new());
    assert_eq!(current(&store).await, ["The pool is open", "The sauna is hot"]);
    assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_)));
    assert_eq!(committed(), before);
    assert_eq!(run(root, &["ls-files", "entries"]), "entries/global/facts/a.md\nentries/global/facts/c.md\n");
    for (mut file, rest) in writers {
        file.write_all(rest.as_bytes()).unwrap();
    }
    store.sync().await.unwrap();
    assert_eq!(current(&store).await, ["The pool is closed", "The pool is closed", "The sauna is hot"]);
    assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_)));
    assert!(committed().ends_with("The pool is closed\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_diff_shows_new_files_and_leaves_the_index_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (root, git) = (folder.path(), git_at(folder.path()));
    write(root, "entries/s/facts/a.md", "One\n");
    git.commit().await.unwrap();
    assert_eq!(git.diff(None).await.unwrap(), "");
    write(root, "entries/s/facts/a.md", "One and a half\n");
    write(root, "entries/s/facts/[b].md", "Two\n");
    write(root, "entries/s/facts/notes.txt", "none of the vault's\n");
    let shown = git.diff(None).await.unwrap();
    assert!(shown.contains("\n-One\n+One and a half\n") && shown.contains("\n+Two\n"), "{shown}");
    assert!(!shown.contains("notes"), "{shown}");
    let status = run(root, &["status", "--porcelain", "--untracked-files=all"]);
    let expected = " M entries/s/facts/a.md\n?? entries/s/facts/[b].md\n?? entries/s/facts/notes.txt\n";
    assert_eq!(status, expected);
    assert!(
        fs::read_dir(root.join(".git"))
            .unwrap()
            .flatten()
            .all(|entry| !entry.file_name().to_string_lossy().starts_with("strata-"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_the_first_commit_a_diff_shows_what_it_would_hold() {
    let folder = tempfile::tempdir().unwrap();
    let (root, git) = (folder.path(), git_at(folder.path()));
    assert!(git.diff(None).await.unwrap_err().message().contains("has no history yet"));
    run(root, &["init", "--quiet"]);
    assert_eq!(git.diff(None).await.unwrap(), "");
    assert_eq!(git.log(9).await.unwrap(), "nothing is committed yet\n");
    write(root, "entries/s/facts/a.md", "Grows pears\n");
    write(root, "entries/s/facts/notes.txt", "none of the vault's\n");
    let shown = git.diff(None).await.unwrap();
    assert!(shown.contains("\n+Grows pears\n") && !shown.contains("notes"), "{shown}");
    assert_eq!(run(root, &["status", "--porcelain"]), "?? entries/\n", "nothing is staged");
    git.commit().await.unwrap();
    assert_eq!(
        (git.diff(None).await.unwrap(), git.log(9).await.unwrap().lines().count()),
        (String::new(), 1)
    );
}

/// A session that is learned from: each step notes in its file how far.
async fn learn(store: &VaultStore, git: &Git, revision: u64) {
    let session = SessionId::new("harbour").unwrap();
    let state = store
        .session(&UserId::default(), &session)
        .await
        .unwrap()
        .unwrap_or_else(|| strata_core::Session::unwritten(session.clone(), Timestamp::UNIX_EPOCH));
    let mut state = state.state;
    state.observed.turns = revision;
    let changes = vec![
        Change::PutState { session: session.clone(), state: Box::new(state) },
        Change::SetProgress { space: session_space("learn", &session), revision },
    ];
    let at = Timestamp::from_second(1_900_000_000 + i64::try_from(revision).unwrap()).unwrap();
    store.apply(&UserId::default(), ChangeSet::new(at, changes)).await.unwrap();
    assert!(matches!(git.commit().await.unwrap(), Committed::Commit(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_of_learning_are_taken_back_one_after_another() {
    let folder = tempfile::tempdir().unwrap();
    let (root, git) = (folder.path(), git_at(folder.path()));
    let store = open(root).await;
    let facts = ["Berths the Heron", "Paints hulls", "Reads charts"];
    for (number, fact) in facts.iter().enumerate() {
        write(root, &format!("entries/harbour/facts/{number}.md"), &format!("{fact}\n"));
        store.sync().await.unwrap();
        learn(&store, &git, 2 * number as u64 + 1).await;
        // Nothing was learned: the commit holds nothing but how far Strata has come.
        learn(&store, &git, 2 * number as u64 + 2).await;
    }
    let session = root.join("entries/harbour/session.json");
    for left in (0..facts.len()).rev() {
        store.undo(None).await.unwrap();
        assert_eq!(current(&store).await, facts[..left]);
        assert!(fs::read_to_string(&session).unwrap().contains("\"turns\": 6"), "what was read stays read");
    }
    assert!(store.undo(None).await.unwrap_err().message().contains("no commit to take back"));
    for done in 1..=facts.len() {
        store.redo().await.unwrap();
        assert_eq!(current(&store).await, facts[..done]);
    }
    // By its name, with later steps behind it that have written to the session's file.
    let first = run(root, &["rev-list", "--max-parents=0", "HEAD"]);
    store.undo(Some(first.trim())).await.unwrap();
    assert_eq!(current(&store).await, facts[1..]);
    let nothing = store.undo(Some("HEAD~7")).await.unwrap_err();
    assert!(nothing.message().contains("changes nothing"), "{nothing}");
    assert_eq!(run(root, &["status", "--porcelain"]), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_that_a_person_has_edited_is_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let (root, git) = (folder.path(), git_at(folder.path()));
    let store = open(root).await;
    write(root, "entries/harbour/facts/a.md", "Berths the Heron\n");
    store.sync().await.unwrap();
    learn(&store, &git, 1).await;
    let path = root.join("entries/harbour/session.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"system_state\": {}", "\"system_state\": {\"berth\": \"north\"}"))
        .unwrap();
    store.sync().await.unwrap();
    git.commit().await.unwrap();
    let berth = async || {
        let session = SessionId::new("harbour").unwrap();
        let state = store.session(&UserId::default(), &session).await.unwrap().unwrap().state;
        state.system_state.get("berth").cloned()
    };
    assert!(berth().await.is_some());
    learn(&store, &git, 2).await;
    store.undo(None).await.unwrap();
    assert_eq!(berth().await, None);
    store.redo().await.unwrap();
    assert!(berth().await.is_some());
}
