//! A vault at the command line: memory as files, edits, the doctor, copies and history.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use strata_core::memory::MemoryNotes;
use strata_core::state::State;
use strata_core::store::{Change, ChangeSet};
use strata_core::summary::{Strategy, Summary, SummaryStatus};
use strata_core::turn::{Metadata, NewTurn, Role, TurnNotes};
use strata_core::{Memory, MemoryId, MemoryKind, SessionId, Store, SummaryId, TurnId, UserId};
use strata_store::{SqliteOptions, SqliteStore};
use uuid::Uuid;

use crate::harness::Machine;

/// All files below a folder whose path holds `part`.
fn files(folder: &Path, part: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, part));
        } else if path.to_string_lossy().contains(part) {
            found.push(path);
        }
    }
    found
}

#[test]
fn memory_is_files_that_can_be_edited() {
    let machine = Machine::new();
    let notes = machine.home().join("notes");
    machine.write("strata.toml", "memory_path = 'notes'\nlearn.enabled = false\n");
    machine.run(&["add", "Rosa keeps bees on the roof"]).ok();
    let facts = files(&notes.join("entries"), "/facts/");
    assert_eq!(facts.len(), 1);
    let text = fs::read_to_string(&facts[0]).unwrap();
    assert!(text.ends_with("---\nRosa keeps bees on the roof\n"), "{text}");
    fs::write(&facts[0], text.replace("bees", "pigeons")).unwrap();
    let found = machine.run(&["search", "what does Rosa keep on the roof", "--limit", "1"]).ok();
    assert!(found.contains("pigeons") && !found.contains("bees"), "{found}");

    machine.write("notes/entries/global/facts/broken.md", "---\nkind: mood\n---\nx\n");
    let ran = machine.run(&["doctor"]);
    assert!(
        ran.stdout.contains("`entries/global/facts/broken.md`, line 2: `kind` is not a kind"),
        "{}",
        ran.stdout
    );
    ran.failed(1);
    assert!(machine.run(&["vault", "sync"]).failed(1).contains("1 file cannot be used"));
    // The page shows the same, with line and reason.
    let server = machine.serve(&[]);
    let (_, overview) = server.http("GET", "/inspect", "");
    for part in
        ["Files that cannot be used", "“entries/global/facts/broken.md”, line 2: “kind” is not a kind"]
    {
        assert!(overview.contains(part), "{overview}");
    }
    server.stop("TERM");
    fs::remove_file(notes.join("entries/global/facts/broken.md")).unwrap();
    let told = machine.run(&["vault", "rebuild"]).ok();
    assert!(told.starts_with("files: 2, read and indexed in ") && told.contains(" files/s)\n"), "{told}");
    let found = machine.run(&["search", "what does Rosa keep on the roof", "--limit", "1"]).ok();
    assert!(found.contains("pigeons"), "{found}");
    assert!(machine.run(&["backup", "copy.db"]).failed(2).contains("the store is a vault"));
}

#[test]
fn a_store_is_copied_into_a_vault_and_back() {
    let machine = Machine::new();
    machine.record("trip", &["I moved to Lisbon", "Welcome"]);
    machine.run(&["add", "Sails on Sundays", "--user", "ana maria"]).ok();
    let out = machine.run(&["export", "--vault", "copy"]).ok();
    assert!(out.contains("counts and digests agree"), "{out}");
    assert_eq!(files(&machine.home().join("copy/users/ana maria"), "/facts/").len(), 1);
    fs::remove_dir_all(machine.home().join("copy/.strata")).unwrap();
    machine.run(&["import", "vault", "copy", "--store", "sqlite:again.db"]).ok();
    let found = machine.run(&["search", "Lisbon", "--store", "sqlite:again.db", "--limit", "1"]).ok();
    assert!(found.contains("I moved to Lisbon"), "{found}");
    assert!(machine.run(&["vault", "log"]).failed(2).contains("is no vault"));
    // A folder that is no vault is left as it is.
    fs::create_dir(machine.home().join("letters")).unwrap();
    machine.write("letters/2026.md", "Dear Ada\n");
    let error = machine.run(&["import", "vault", "letters"]).failed(1);
    assert!(error.contains("neither a folder `entries` nor `users`"), "{error}");
    machine.run(&["migrate", "vault:letters", "sqlite:other.db"]).failed(1);
    machine.run(&["import", "vault", "nowhere"]).failed(1);
    assert_eq!(fs::read_dir(machine.home().join("letters")).unwrap().count(), 1);
    assert!(!machine.home().join("nowhere").exists() && !machine.home().join("other.db").exists());
}

#[test]
fn a_change_is_taken_back() {
    let machine = Machine::new();
    let settings =
        "memory_path = 'notes'\nenable_git_versioning = true\nstart_watcher = true\nlearn.enabled = false\n";
    machine.write("strata.toml", settings);
    machine.run(&["add", "Uri collects stamps"]).ok();
    machine.run(&["add", "Uri collects clocks"]).ok();
    let log = machine.run(&["vault", "log"]).ok();
    assert!(log.contains("Add 1 memory"), "{log}");
    assert!(machine.run(&["vault", "diff", "HEAD"]).ok().contains("+Uri collects clocks"));
    assert!(machine.run(&["vault", "undo"]).ok().contains("taken back: "));
    let found = machine.run(&["search", "what does Uri collect"]).ok();
    assert!(found.contains("stamps") && !found.contains("clocks"), "{found}");
    assert!(machine.run(&["vault", "redo"]).ok().contains("done again: Add 1 memory"));
    let found = machine.run(&["search", "what does Uri collect"]).ok();
    assert!(found.contains("stamps") && found.contains("clocks"), "{found}");
    assert!(machine.run(&["vault", "redo"]).failed(1).contains("nothing was taken back"));
}

#[test]
fn the_oldest_entries_move_among_the_deleted_files() {
    let machine = Machine::new();
    machine.write("strata.toml", "memory_path = 'notes'\nmax_entries = 4\nlearn.into = 'session'\n");
    let said: String = (0..9).map(|number| format!("The lamp of pier {number} burns.\n")).collect();
    machine.feed(&["record", "--session", "harbour"], said).ok();
    machine.run(&["learn"]).ok();
    let conversation = machine.home().join("notes/entries/harbour");
    let (kept, gone) =
        (files(&conversation.join("turns"), ".md"), files(&conversation.join("deleted/turns"), ".md"));
    assert_eq!(kept.len() + gone.len(), 9);
    assert!(kept.len() <= 4, "{kept:?}");
    let oldest = |path: &PathBuf| fs::read_to_string(path).unwrap().contains("pier 0 burns");
    assert!(gone.iter().any(oldest), "{gone:?}");
}

#[test]
fn sync_counts_what_the_files_hold_now() {
    let machine = Machine::new();
    machine.write("strata.toml", "memory_path = 'notes'\nlearn.enabled = false\n");
    machine.run(&["add", "Rosa keeps bees on the roof"]).ok();
    machine.run(&["add", "阿华喜欢爬山"]).ok();
    machine.feed(&["record"], "My kite is red.\nIts tail is long.").ok();
    let notes = machine.home().join("notes/entries");
    let holding = |words: &str| {
        let is_meant = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains(words));
        files(&notes, ".md").into_iter().find(is_meant).unwrap()
    };
    let bees = holding("bees");
    fs::write(&bees, fs::read_to_string(&bees).unwrap().replace("bees", "pigeons")).unwrap();
    fs::remove_file(holding("爬山")).unwrap();
    let told = machine.run(&["vault", "sync"]).ok();
    assert!(told.contains("sessions: 1, turns: 2, current memories: 1"), "{told}");
}

#[test]
fn a_session_counts_its_turns_without_the_places_of_deleted_ones() {
    let machine = Machine::new();
    machine.write("strata.toml", "memory_path = 'notes'\nlearn.enabled = false\n");
    machine
        .feed(&["record", "--session", "kites"], "My kite is red.\nIts tail is long.\nThe wind is low.")
        .ok();
    let count = || machine.run(&["sessions", "list"]).ok().lines().nth(1).unwrap().trim().to_owned();
    assert!(count().starts_with("3 "), "{}", count());
    for folder in ["turns", "deleted"] {
        let holding = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains("tail"));
        let found = files(&machine.home().join("notes/entries/kites").join(folder), ".md");
        fs::remove_file(found.into_iter().find(holding).unwrap()).unwrap();
        assert!(count().starts_with("2 "), "{}", count());
    }
    machine.run(&["vault", "rebuild"]).ok();
    assert!(count().starts_with("2 "), "{}", count());
    let shown = machine.run(&["sessions", "show", "kites"]).ok();
    assert!(shown.contains("2 turns and 1 deleted"), "{shown}");
}

#[test]
fn sync_counts_all_files_that_cannot_be_used_and_lists_the_first() {
    let machine = Machine::new();
    machine.write("strata.toml", "memory_path = 'notes'\nlearn.enabled = false\n");
    fs::create_dir_all(machine.home().join("notes/entries/global/facts")).unwrap();
    for number in 0..53 {
        machine.write(&format!("notes/entries/global/facts/{number}.md"), "---\nkind: mood\n---\nx\n");
    }
    let ran = machine.run(&["vault", "sync"]);
    assert_eq!(ran.stdout.matches("is not a kind").count(), 50, "{}", ran.stdout);
    assert!(ran.stdout.contains("3 further files cannot be used"), "{}", ran.stdout);
    assert!(ran.failed(1).contains("53 files cannot be used"));
}

#[test]
fn a_folder_of_other_files_is_read_as_no_vault_and_stays_as_it_is() {
    let machine = Machine::new();
    fs::create_dir(machine.home().join("plans")).unwrap();
    machine.write("plans/garden.txt", "Plant beans.\n");
    let store = ["--store", "vault:plans"];
    for command in [
        &["search", "beans"][..],
        &["vault", "log"],
        &["vault", "sync"],
        &["doctor"],
        &["memories", "list"],
        &["learn"],
    ] {
        let ran = machine.run(&[command, &store].concat());
        assert!(
            ran.stdout.contains("is no vault") || ran.stderr.contains("is no vault"),
            "{command:?}: {}",
            ran.stderr
        );
        ran.failed(1);
        assert_eq!(fs::read_dir(machine.home().join("plans")).unwrap().count(), 1, "{command:?}");
    }
    machine.run(&[&["add", "Beans need sun"][..], &store].concat()).ok();
    assert!(machine.run(&[&["search", "what do beans need"][..], &store].concat()).ok().contains("sun"));
}

#[test]
fn a_vault_of_somebody_else_is_imported_without_its_keys_and_with_a_report() {
    let machine = Machine::new();
    machine.write("strata.toml", "memory_path = 'theirs'\nlearn.enabled = false\n");
    machine.run(&["add", "Rosa keeps bees on the roof"]).ok();
    machine.run(&["keys", "create", "--user", "default"]).ok();
    machine.write("theirs/entries/global/facts/broken.md", "---\nkind: mood\n---\nx\n");
    let import = |store: &str, more: &[&str]| {
        let ran = machine.run(&[&["import", "vault", "theirs", "--store", store][..], more].concat());
        let problem = "skipped: `entries/global/facts/broken.md`, line 2: `kind` is not a kind";
        assert!(ran.stderr.contains(problem), "{}", ran.stderr);
        ran.ok();
        machine.run(&["keys", "list", "--json", "--store", store]).ok()
    };
    assert!(!import("sqlite:mine.db", &[]).contains("\"id\""));
    assert!(import("sqlite:ours.db", &["--keys"]).contains("\"id\""));
}

#[test]
fn a_server_finds_what_a_person_saves() {
    let machine = Machine::new();
    machine.write("strata.toml", "memory_path = 'notes'\nstart_watcher = true\nlearn.enabled = false\n");
    machine.run(&["add", "Rosa keeps bees on the roof"]).ok();
    let server = machine.serve(&[]);
    let find = |expected: &str| {
        let begun = std::time::Instant::now();
        loop {
            let (_, found) =
                server.http("POST", "/search", r#"{"query": "what does Rosa keep on the roof"}"#);
            if found.contains(expected) {
                return;
            }
            assert!(begun.elapsed().as_secs() < 30, "{expected} in {found}");
        }
    };
    find("bees");
    machine.write("notes/entries/global/facts/new.md", "On the roof Rosa keeps pigeons too\n");
    find("pigeons");
    let facts = files(&machine.home().join("notes/entries"), "/facts/");
    let bees = facts.into_iter().find(|path| fs::read_to_string(path).unwrap().contains("bees")).unwrap();
    fs::write(&bees, fs::read_to_string(&bees).unwrap().replace("bees", "swans")).unwrap();
    find("swans");
    server.stop("TERM");
}

/// Runs git in a vault as a person does.
fn git(machine: &Machine, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    let mut command = std::process::Command::new("git");
    let output =
        command.args(identity).args(arguments).current_dir(machine.home().join("notes")).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_was_learned_leaves_recall_when_its_commit_is_reverted() {
    let machine = Machine::new();
    machine.write("strata.toml", "memory_path = 'notes'\nenable_git_versioning = true\n");
    machine.feed(&["record", "--session", "move"], "I live in Graz.").ok();
    machine.run(&["learn"]).ok();
    let known = || machine.run(&["memories", "list", "--json"]).ok();
    assert!(known().contains("lives in Graz"), "{}", known());
    assert!(git(&machine, &["log", "-1", "--format=%B"]).contains("+ The user lives in Graz"));
    git(&machine, &["revert", "--no-edit", "HEAD"]);
    let found = machine.run(&["search", "where does the user live"]).ok();
    assert!(found.contains("I live in Graz") && !found.contains("The user lives in Graz"), "{found}");
    assert!(!known().contains("lives in Graz"), "{}", known());
    // Learning goes on, and does not bring back what was taken back.
    machine.feed(&["record", "--session", "move"], "I like trams.").ok();
    machine.run(&["learn"]).ok();
    assert!(known().contains("likes trams") && !known().contains("lives in Graz"), "{}", known());
}

#[test]
fn what_was_learned_is_taken_back_step_by_step_until_nothing_is_left() {
    let machine = Machine::new();
    machine.write("strata.toml", "memory_path = 'notes'\nenable_git_versioning = true\n");
    for said in ["My cousin Ines repairs violins.", "I moved to Porto in May.", "My boat is called Gaivota."]
    {
        machine.feed(&["record", "--session", "letters"], said).ok();
        machine.run(&["learn"]).ok();
    }
    let commits = git(&machine, &["rev-list", "--count", "HEAD"]).trim().parse::<usize>().unwrap();
    let mut steps = 0;
    let mut undo = || {
        steps += 1;
        machine.run(&["vault", "undo"])
    };
    let last = loop {
        let ran = undo();
        if !ran.stdout.contains("taken back: ") {
            break ran;
        }
    };
    assert!(last.failed(1).contains("there is no commit to take back"));
    assert!((4..=commits + 1).contains(&steps), "{steps} steps over {commits} commits");
    assert_eq!(machine.run(&["search", "what does Ines repair"]).ok().trim(), "");
    assert!(!machine.run(&["memories", "list"]).ok().contains("Porto"));
    assert!(machine.run(&["vault", "redo"]).ok().contains("done again: "));
}

#[test]
fn a_server_with_watcher_and_history_follows_each_change_once() {
    let machine = Machine::new();
    let settings =
        "memory_path = 'notes'\nenable_git_versioning = true\nstart_watcher = true\nlearn.enabled = false\n";
    machine.write("strata.toml", settings);
    let server = machine.serve(&[]);
    let until = |is_so: &dyn Fn(&str) -> bool| {
        let begun = std::time::Instant::now();
        loop {
            let (_, found) =
                server.http("POST", "/search", r#"{"query": "what does Uri collect in the attic"}"#);
            if is_so(&found) {
                return;
            }
            assert!(begun.elapsed().as_secs() < 60, "{found}");
        }
    };
    let (status, _) = server.http("POST", "/memories", r#"{"text": "Uri collects stamps in the attic"}"#);
    assert!((200..300).contains(&status), "{status}");
    until(&|found| found.contains("stamps"));
    let facts = machine.home().join("notes/entries/global/facts");
    for thing in ["clocks", "kites", "lamps"] {
        machine.write(
            &format!("notes/entries/global/facts/{thing}.md"),
            &format!("Uri collects {thing} in the attic\n"),
        );
        until(&|found| found.contains(thing));
    }
    let lamps = facts.join("lamps.md");
    fs::write(&lamps, fs::read_to_string(&lamps).unwrap().replace("lamps", "lanterns")).unwrap();
    until(&|found| found.contains("lanterns"));
    // The edits of a moment are one commit, or each its own; what Strata writes itself makes no further ones.
    let is_committed = || git(&machine, &["--no-optional-locks", "status", "--porcelain"]).is_empty();
    let begun = std::time::Instant::now();
    while !is_committed() {
        assert!(begun.elapsed().as_secs() < 60);
    }
    // Taken back with Strata beside the server, and with git alone.
    machine.write("notes/entries/global/facts/maps.md", "Uri collects maps in the attic\n");
    until(&|found| found.contains("maps"));
    while !is_committed() {
        assert!(begun.elapsed().as_secs() < 60);
    }
    machine.run(&["vault", "undo"]).ok();
    until(&|found| !found.contains("maps"));
    machine.run(&["vault", "redo"]).ok();
    until(&|found| found.contains("maps"));
    git(&machine, &["revert", "--no-edit", "HEAD"]);
    until(&|found| !found.contains("maps") && found.contains("lanterns"));
    assert_eq!(server.stop("TERM").0, Some(0));
    assert_eq!(git(&machine, &["status", "--porcelain"]), "");
    let commits = git(&machine, &["log", "--oneline"]).lines().count();
    assert!((4..=14).contains(&commits), "{commits}: {}", git(&machine, &["log", "--oneline"]));
    let versions = files(&machine.home().join("notes/entries"), "/facts/");
    let holding = |word: &str| {
        versions
            .iter()
            .filter(|path| fs::read_to_string(path).unwrap().contains(&format!("collects {word} ")))
            .count()
    };
    assert_eq!(["stamps", "clocks", "kites", "lamps", "lanterns"].map(holding), [1; 5]);
}

#[cfg(target_os = "linux")]
#[test]
fn any_command_that_builds_the_index_shows_how_far_it_is() {
    let machine = Machine::new();
    machine.write("strata.toml", "memory_path = 'notes'\nlearn.enabled = false\n");
    fs::create_dir_all(machine.home().join("notes/entries/global/facts")).unwrap();
    for number in 0..600 {
        let text = format!("---\nid: n{number}\nrole: memory\ncreated_at: 2026-05-01\n---\nFact {number}\n");
        machine.write(&format!("notes/entries/global/facts/{number}.md"), &text);
    }
    // A terminal, because a bar is shown on nothing else.
    let strata = machine.command(&[]);
    let search = format!("{} search fact", strata.get_program().to_string_lossy());
    let mut shell = std::process::Command::new("script");
    shell.args(["-qec", &search, "/dev/null"]).current_dir(machine.home()).env("TERM", "xterm");
    for (name, value) in strata.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let shown = shell.stdin(std::process::Stdio::null()).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("/600 files"), "{shown}");
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap()
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x0190_1111_0000_7000_8000_0000_0000_0000 + number)
}

fn summary(session: &SessionId, number: u128, level: u8) -> Change {
    Change::PutSummary(Box::new(Summary {
        id: SummaryId(id(200 + number)),
        session: session.clone(),
        strategy: if level > 0 { Strategy::Tree } else { Strategy::Window },
        level,
        start_seq: 0,
        end_seq: 1,
        base_id: None,
        status: SummaryStatus::Completed,
        text: format!("Summary {number}"),
        structured: Some(serde_json::json!({"facts": ["a: b"]})),
        input_tokens: 10,
        output_tokens: 4,
        generation_ms: None,
        created_at: at(20),
        updated_at: at(21),
    }))
}

/// Fills a store with turns, versions of a memory, summaries and a state.
async fn fill(store: &dyn Store) {
    let session = SessionId::new("garden / α").unwrap();
    let turn = |number: u128| NewTurn {
        id: TurnId(id(number)),
        role: if number.is_multiple_of(2) { Role::User } else { Role::Assistant },
        name: None,
        content: format!("Turn {number}\r\n---\nid: x\n"),
        created_at: at(number as i64),
        token_count: 3,
        metadata: Metadata::new(),
        notes: TurnNotes::default(),
        hidden: None,
    };
    let memory = Memory {
        id: MemoryId(id(100)),
        session: None,
        agent: None,
        kind: MemoryKind::Preference,
        content: "Likes roses".to_owned(),
        confidence: 0.85,
        valid_from: at(5),
        valid_to: None,
        recorded_at: at(6),
        replaced_by: None,
        source_turns: vec![TurnId(id(1))],
        source_summary: None,
        metadata: Metadata::from_text(r#"{"z":1.0}"#).unwrap(),
        notes: MemoryNotes::default(),
        hidden: None,
    };
    let mut state = State::default();
    state.system_state.insert("n".to_owned(), serde_json::json!(0.1));
    let turns = (0..4).map(turn).collect();
    let mut changes = vec![
        Change::AppendTurns { session: session.clone(), turns },
        Change::PutState { session: session.clone(), state: Box::new(state) },
        Change::AddMemory(Box::new(memory)),
    ];
    let levels = [(1, 1), (2, 1), (3, 2), (4, 3), (5, 0)];
    changes.extend(levels.map(|(number, level)| summary(&session, number, level)));
    let me = UserId::default();
    store.apply(&me, ChangeSet::new(at(30), changes)).await.unwrap();
    for (number, content) in [(1, "Likes tulips"), (2, "Likes neither")] {
        let revise = Change::ReviseMemory {
            id: MemoryId(id(100)),
            archive_as: MemoryId(id(100 + number)),
            content: content.to_owned(),
            metadata: None,
        };
        store.apply(&me, ChangeSet::one(at(30 + number as i64), revise)).await.unwrap();
    }
}

#[test]
fn versions_summaries_and_state_come_back_from_a_vault_without_its_index() {
    let machine = Machine::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(machine.home().join("first.db"), SqliteOptions::default()).unwrap();
        fill(&store).await;
        store.close().await.unwrap();
    });
    machine.run(&["export", "--vault", "vault", "--store", "sqlite:first.db"]).ok();
    fs::remove_dir_all(machine.home().join("vault/.strata")).unwrap();
    machine.run(&["import", "vault", "vault", "--store", "sqlite:last.db"]).ok();
    // The first line has the time of the export, and the last one a digest of all lines.
    let lines = |store: &str| -> Vec<String> {
        let all = machine.run(&["export", "-", "--store", store]).ok();
        let lines: Vec<&str> = all.lines().collect();
        lines[1..lines.len() - 1].iter().map(|line| (*line).to_owned()).collect()
    };
    let (first, last) = (lines("sqlite:first.db"), lines("sqlite:last.db"));
    assert_eq!(first, last);
    let first = first.join("\n");
    for part in ["replaced_by", "Likes roses", "Likes neither", "Summary 5", "0.1", "Turn 3"] {
        assert!(first.contains(part), "{part}");
    }
}

#[test]
fn files_that_cannot_be_used_are_not_left_out_unasked() {
    let machine = Machine::new();
    machine.write("strata.toml", "memory_path = 'notes'\nlearn.enabled = false\nmax_turn_bytes = 60\n");
    machine.run(&["add", "Rosa keeps bees on the roof"]).ok();
    machine.write("notes/entries/global/facts/broken.md", "---\nkind: mood\n---\nx\n");
    let long = "Rosa writes ".repeat(6);
    machine.write("notes/entries/global/facts/long.md", &long);
    let ran = machine.run(&["migrate", "vault:notes", "sqlite:moved.db"]);
    for problem in
        ["`entries/global/facts/broken.md`, line 2: `kind` is not a kind", "setting `max_turn_bytes`"]
    {
        assert!(ran.stdout.contains(problem), "{}", ran.stdout);
    }
    assert!(ran.failed(1).contains("`--skip-unusable`"));
    assert!(!machine.home().join("moved.db").exists(), "nothing was made");
    let ran = machine.run(&["migrate", "vault:notes", "sqlite:moved.db", "--skip-unusable", "--json"]);
    assert!(ran.stderr.contains("skipped: `entries/global/facts/broken.md`"), "{}", ran.stderr);
    let told = ran.ok();
    assert!(told.contains("\"memories\": 1") && told.contains("is not a kind"), "{told}");
    // The doctor and the page tell of the memory that is too long as well.
    assert!(machine.run(&["doctor"]).stdout.contains("the memory has 71 bytes"));
    assert!(machine.serve(&[]).http("GET", "/inspect", "").1.contains("the memory has 71 bytes"));
}

#[test]
fn a_copy_into_a_vault_with_other_memories_says_so() {
    let machine = Machine::new();
    machine.run(&["add", "Rosa keeps bees", "--store", "vault:theirs"]).ok();
    machine.run(&["add", "Uri collects stamps"]).ok();
    let error = machine.run(&["export", "--vault", "theirs"]).failed(1);
    assert!(
        error.contains("the target has memories of user `default` that the source does not have (1)")
            && error.contains("choose an empty target"),
        "{error}"
    );
    let kept = machine.run(&["memories", "list", "--store", "vault:theirs"]).ok();
    assert!(kept.contains("bees") && !kept.contains("stamps"), "{kept}");
}

#[test]
fn a_vault_without_a_history_says_how_to_begin_one() {
    let machine = Machine::new();
    machine.write("strata.toml", "memory_path = 'notes'\nstart_watcher = true\n");
    machine.run(&["add", "Rosa keeps bees"]).ok();
    for action in ["log", "diff", "undo", "redo"] {
        let error = machine.run(&["vault", action]).failed(1);
        assert!(error.contains("has no history yet") && error.contains("enable_git_versioning"), "{error}");
    }
}
