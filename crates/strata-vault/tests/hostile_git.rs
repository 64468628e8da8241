//! A vault that comes with somebody else's repository: it may lead out of the vault, and its settings may name programs.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use strata_core::store::CheckDepth;
use strata_core::{Store, UserId};
use strata_vault::{Committed, Git, VaultOptions, VaultStore};
use support::{current, open, options, write};

fn run(root: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(root).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn git_at(root: &Path) -> Git {
    Git::new(root, options().clock).unwrap()
}

/// All files below a folder with their content.
fn held(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    support::files(folder).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_working_tree_that_lies_elsewhere_is_neither_read_nor_written() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = folder.path();
    let store = open(root).await;
    write(root, "entries/global/facts/a.md", "Sails at noon\n");
    store.sync().await.unwrap();
    git_at(root).commit().await.unwrap();
    let name = support::files(&root.join("entries/global/facts")).remove(0);
    let name = name.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    write(outside.path(), &name, "Private\n");
    write(outside.path(), "entries/global/facts/other.md", "Private too\n");
    let before = held(outside.path());
    run(root, &["config", "core.worktree", outside.path().to_str().unwrap()]);
    write(root, "entries/global/facts/b.md", "Sails at dusk\n");
    store.sync().await.unwrap();
    assert_eq!(git_at(root).commit().await.unwrap(), Committed::Commit("Add 1 memory".to_owned()));
    assert!(!git_at(root).diff(None).await.unwrap().contains("Private"));
    assert_eq!(store.undo(None).await.unwrap(), "Add 1 memory");
    assert_eq!(current(&store).await, ["Sails at noon"]);
    assert!(held(outside.path()) == before);
    assert!(!run(root, &["log", "-p", "--all"]).contains("Private"));
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_that_is_not_the_vaults_own_is_refused() {
    let other = tempfile::tempdir().unwrap();
    run(other.path(), &["init", "--quiet"]);
    write(other.path(), "kept.txt", "Kept\n");
    run(other.path(), &["add", "."]);
    run(other.path(), &["commit", "--quiet", "-m", "first"]);
    let foreign = other.path().join(".git");
    let before = held(other.path());
    let check = async |plant: &dyn Fn(&Path), named: &str| {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, "entries/global/facts/a.md", "Weaves\n");
        plant(root);
        let git = git_at(root);
        for refused in
            [git.commit().await.map(drop), git.log(1).await.map(drop), git.diff(None).await.map(drop)]
        {
            let error = refused.unwrap_err();
            assert!(error.message().contains(&format!("`{named}` in the vault is")), "{error}");
            assert!(error.message().contains("a folder `.git` of the vault itself"), "{error}");
        }
        assert!(held(other.path()) == before, "{named}");
    };
    let gitdir = |root: &Path| drop(write(root, ".git", &format!("gitdir: {}\n", foreign.display())));
    check(&gitdir, ".git").await;
    check(&|root| symlink(&foreign, root.join(".git")).unwrap(), ".git").await;
    let own = |root: &Path| drop(run(root, &["init", "--quiet"]));
    let link = |name: &'static str| {
        let foreign = &foreign;
        move |root: &Path| {
            own(root);
            let place = root.join(".git").join(name);
            let _ = fs::remove_dir_all(&place).or_else(|_| fs::remove_file(&place));
            symlink(foreign.join(name), place).unwrap();
        }
    };
    check(&link("index"), ".git/index").await;
    check(&link("objects"), ".git/objects").await;
    check(&link("refs"), ".git/refs").await;
    check(&link("refs/heads"), ".git/refs/heads").await;
    check(&link("config"), ".git/config").await;
    let common = |root: &Path| {
        own(root);
        write(root, ".git/commondir", &format!("{}\n", foreign.display()));
    };
    check(&common, ".git/commondir").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_repository_is_reported_and_memory_is_kept_all_the_same() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(other.path(), &["init", "--quiet"]);
    symlink(other.path().join(".git"), folder.path().join(".git")).unwrap();
    let committing = VaultOptions { git: true, ..options() };
    let store = VaultStore::open(folder.path(), committing).await.unwrap();
    write(folder.path(), "entries/global/facts/a.md", "Keeps geese\n");
    store.sync().await.unwrap();
    assert_eq!(current(&store).await, ["Keeps geese"]);
    let told = store.check(CheckDepth::Thorough).await.unwrap().problems;
    assert!(told[0].contains("the history is not kept: `.git` in the vault is a symbolic link"), "{told:?}");
    assert_eq!(store.unusable_files(&UserId::default()).await.unwrap(), told);
    store.close().await.unwrap();
    assert!(!other.path().join(".git/index").exists());
}

/// Names programs in the settings of a repository wherever git would run one, each of which leaves `proof`.
fn plant_programs(root: &Path, proof: &Path) {
    let program = write(root, ".git/program", &format!("#!/bin/sh\ntouch '{}'\ncat\n", proof.display()));
    Command::new("chmod").arg("755").arg(&program).status().unwrap();
    let program = program.to_str().unwrap();
    for setting in [
        "filter.odd=x.clean",
        "filter.odd=x.smudge",
        "diff.odd.textconv",
        "diff.odd.command",
        "diff.external",
        "merge.odd.driver",
        "core.fsmonitor",
        "core.editor",
        "core.pager",
        "gpg.program",
    ] {
        run(root, &["config", setting, program]);
    }
    for (setting, value) in
        [("filter.odd=x.required", "true"), ("log.showSignature", "true"), ("merge.default", "odd")]
    {
        run(root, &["config", setting, value]);
    }
    run(root, &["config", "alias.ls-files", &format!("!{program}")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_program_that_the_repository_names_is_run() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = folder.path();
    let proof = outside.path().join("proof");
    let store = open(root).await;
    let path = write(root, "entries/global/facts/a.md", "Grows figs\n");
    store.sync().await.unwrap();
    git_at(root).commit().await.unwrap();
    plant_programs(root, &proof);
    write(root, ".git/info/attributes", "*.md diff=odd merge=odd\n");
    for fruit in ["plums", "pears"] {
        let text = fs::read_to_string(&path).unwrap();
        let edited =
            if text.contains("figs") { text.replace("figs", fruit) } else { text.replace("plums", fruit) };
        fs::write(&path, edited).unwrap();
        store.sync().await.unwrap();
        assert!(git_at(root).diff(None).await.unwrap().contains(&format!("+Grows {fruit}")));
        assert!(matches!(git_at(root).commit().await.unwrap(), Committed::Commit(_)));
        assert!(git_at(root).diff(Some("HEAD")).await.unwrap().contains(&format!("+Grows {fruit}")));
    }
    assert_eq!(git_at(root).log(9).await.unwrap().lines().count(), 3);
    // A revert that has to merge runs no program either, and changes nothing.
    assert!(store.undo(Some("HEAD~1")).await.is_err());
    assert_eq!(current(&store).await, ["Grows pears"]);
    store.undo(None).await.unwrap();
    assert_eq!(current(&store).await, ["Grows plums"]);
    // A file that the person has pass through a program would be kept as it should not be.
    write(root, ".gitattributes", "entries/** filter=odd=x\n");
    let head = run(root, &["rev-parse", "HEAD"]);
    write(root, "entries/global/facts/b.md", "Presses oil\n");
    for refused in [git_at(root).commit().await.map(drop), store.undo(None).await.map(drop)] {
        let error = refused.unwrap_err();
        assert!(error.message().contains("has the attribute `filter=odd=x`"), "{error}");
    }
    assert_eq!(run(root, &["rev-parse", "HEAD"]), head);
    git_at(root).diff(None).await.unwrap();
    assert!(!proof.exists());
    store.close().await.unwrap();
}
