//! Edits of a person that are easily made and easily misunderstood: an edited id, files that trade places, copies of files and of
//! whole folders, removed tombstones.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

mod support;

use std::fs;

use strata_core::key::{ApiKey, KeyLimits, KeySecret, Scopes};
use strata_core::state::State;
use strata_core::store::{Change, ChangeSet, Idempotency, KeyQuery, Page, SummaryQuery, TurnQuery};
use strata_core::summary::{Summary, SummaryStatus};
use strata_core::{Memory, MemoryId, SessionId, Store, Turn, UserId};
use strata_vault::{VaultOptions, VaultStore};
use support::{all, content, current, files, found, open, options, problems, vault, write};
use tempfile::TempDir;

fn at(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_900_000_000 + second).unwrap()
}

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

async fn apply(store: &VaultStore, change: Change) {
    store.apply(&UserId::default(), ChangeSet::one(at(0), change)).await.unwrap();
}

async fn turns(store: &VaultStore, name: &str) -> Vec<Turn> {
    let query = TurnQuery::Range { session: session(name), after: None, limit: 99 };
    store.turns(&UserId::default(), &query).await.unwrap()
}

/// The same vault with an index that is built from its files.
async fn rebuilt(folder: &TempDir, store: VaultStore) -> VaultStore {
    store.close().await.unwrap();
    fs::remove_dir_all(folder.path().join(".strata")).unwrap();
    open(folder.path()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_with_another_id_is_another_statement_and_the_former_one_ends() {
    let (folder, store) = vault().await;
    let file = "---\nid: first\ncreated_at: 2026-04-01\n---\nThe ferry leaves at six\n";
    let path = write(folder.path(), "entries/global/facts/ferry.md", file);
    store.sync().await.unwrap();
    let before = all(&store).await.remove(0);
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("id: first", "id: second")).unwrap();
    store.sync().await.unwrap();
    assert_eq!(problems(&store).await, Vec::<String>::new());
    assert_eq!(current(&store).await, ["The ferry leaves at six"], "one file is one statement");
    let former = all(&store).await.into_iter().find(|memory| memory.id == before.id).unwrap();
    assert!(former.hidden.is_some() && !former.is_current());
    assert_eq!(files(&folder.path().join("entries/global/deleted")).len(), 1, "its tombstone");
    let held = content(&store).await;
    let store = rebuilt(&folder, store).await;
    assert_eq!(content(&store).await, held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_trade_places_stay_themselves() {
    let (folder, store) = vault().await;
    let a = write(folder.path(), "entries/global/facts/a.md", "The mill is open\n");
    let b = write(folder.path(), "entries/global/facts/b.md", "The forge is shut\n");
    store.sync().await.unwrap();
    let before = content(&store).await;
    let (of_a, of_b) = (fs::read_to_string(&a).unwrap(), fs::read_to_string(&b).unwrap());
    fs::write(&a, &of_b).unwrap();
    fs::write(&b, &of_a).unwrap();
    store.sync().await.unwrap();
    assert_eq!((problems(&store).await, content(&store).await), (Vec::new(), before.clone()));
    // The copy keeps the id, and the file that was copied gets a new one.
    fs::write(folder.path().join("entries/global/facts/c.md"), &of_b).unwrap();
    fs::write(&a, "The kiln is cold\n").unwrap();
    fs::write(&b, of_a.replace("The mill is open", "The mill is closed")).unwrap();
    store.sync().await.unwrap();
    let told = problems(&store).await;
    assert!(
        told.len() == 1 && told[0].contains("c.md`: it has the id of"),
        "a file without keys stays itself: {told:?}"
    );
    fs::write(&a, "---\nid: kiln\n---\nThe kiln is cold\n").unwrap();
    store.sync().await.unwrap();
    assert_eq!(problems(&store).await, Vec::<String>::new());
    assert!(current(&store).await.contains(&"The kiln is cold".to_owned()));
    for path in [&a, &b] {
        assert!(path.exists(), "{path:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copied_folder_takes_nothing_from_its_session() {
    let (folder, store) = vault().await;
    let mut state = State::default();
    state.system_state.insert("goal".to_owned(), "mend the sail".into());
    apply(&store, Change::PutState { session: session("trip"), state: Box::new(state.clone()) }).await;
    let own = folder.path().join("entries/trip/session.json");
    let copy = write(folder.path(), "entries/trip copy/session.json", &fs::read_to_string(&own).unwrap());
    store.sync().await.unwrap();
    let told = problems(&store).await;
    assert!(
        told.len() == 1 && told[0].contains("it is of the same session as `entries/trip/session.json`"),
        "{told:?}"
    );
    assert!(own.exists());
    fs::remove_file(copy).unwrap();
    store.sync().await.unwrap();
    assert_eq!(problems(&store).await, Vec::<String>::new());
    let kept = store.session(&UserId::default(), &session("trip")).await.unwrap().unwrap();
    assert_eq!(kept.state, state);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copied_key_is_not_revoked_with_its_copy() {
    let (folder, store) = vault().await;
    let secret = KeySecret::parse(&format!("strata_{}", "b".repeat(32))).unwrap();
    let id = strata_core::KeyId(uuid::Uuid::from_u128(5));
    let key = ApiKey {
        id,
        user: UserId::default(),
        name: Some("boat".to_owned()),
        scopes: Scopes::default(),
        hash: secret.hash(),
        prefix: secret.prefix(),
        created_at: at(0),
        expires_at: None,
        revoked_at: None,
        limits: KeyLimits::default(),
        recall_scope: None,
    };
    apply(&store, Change::AddKey(Box::new(key))).await;
    let copy = folder.path().join("keys/copy.json");
    fs::copy(folder.path().join(format!("keys/{id}.json")), &copy).unwrap();
    store.sync().await.unwrap();
    assert!(problems(&store).await[0].contains("it has the id of `keys/"), "{:?}", problems(&store).await);
    fs::remove_file(copy).unwrap();
    store.sync().await.unwrap();
    assert_eq!(problems(&store).await, Vec::<String>::new());
    assert_eq!(store.keys(&KeyQuery::unrevoked(Page::first(9))).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_without_its_id_is_added_whatever_else_it_has() {
    let (folder, store) = vault().await;
    let seed = write(folder.path(), "entries/global/facts/seed.md", "Keeps a goat\n");
    store.sync().await.unwrap();
    let memory = Memory {
        id: strata_core::MemoryId(uuid::Uuid::from_u128(9)),
        content: "Keeps a donkey".to_owned(),
        ..all(&store).await.remove(0)
    };
    let set = ChangeSet::one(at(0), Change::AddMemory(Box::new(memory)));
    let keyed =
        ChangeSet { idempotency: Some(Idempotency { key: "once".to_owned(), fingerprint: 7 }), ..set };
    store.apply(&UserId::default(), keyed).await.unwrap();
    let made =
        files(&folder.path().join("entries/global/facts")).into_iter().find(|path| *path != seed).unwrap();
    let text = fs::read_to_string(made).unwrap();
    assert!(text.contains("idempotency: "), "{text}");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("id: ")).collect();
    let copy = lines.join("\n").replace("donkey", "mule") + "\n";
    write(folder.path(), "entries/global/facts/copy.md", &copy);
    store.sync().await.unwrap();
    assert_eq!(problems(&store).await, Vec::<String>::new());
    let kept = ["Keeps a donkey", "Keeps a goat", "Keeps a mule"];
    assert_eq!(current(&store).await, kept);
    let store = rebuilt(&folder, store).await;
    assert_eq!(current(&store).await, kept);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copied_turn_without_its_id_is_said_again() {
    let (folder, store) = vault().await;
    let keyed = "idempotency: '{\"key\":\"k\",\"fingerprint\":3,\"turns\":1}'\n";
    let turn = |id: &str| {
        format!(
            "---\n{id}role: user\nconversation_id: s\ncreated_at: 2026-05-01\n{keyed}---\nThe tide turns\n"
        )
    };
    write(folder.path(), "entries/s/turns/user/a.md", &turn("id: t\n"));
    store.sync().await.unwrap();
    write(folder.path(), "entries/s/turns/user/b.md", &turn(""));
    store.sync().await.unwrap();
    let said: Vec<u64> = turns(&store, "s").await.iter().map(|turn| turn.seq).collect();
    assert_eq!(said, [0, 1]);
    let store = rebuilt(&folder, store).await;
    assert_eq!(turns(&store, "s").await.len(), 2);
}

/// A vault with three turns, the second of which was deleted by hand and so was its tombstone.
async fn with_an_empty_place() -> (TempDir, VaultStore, String) {
    let (folder, store) = vault().await;
    for (seq, text) in ["The lamp is lit", "The password is heron", "The lamp is out"].iter().enumerate() {
        let file = format!(
            "---\nid: t{seq}\nrole: user\nname: Ada\nseq: {seq}\nconversation_id: s\ncreated_at: 2026-05-0{}\n---\n{text}\n",
            seq + 1
        );
        write(folder.path(), &format!("entries/s/turns/user/t{seq}.md"), &file);
    }
    store.sync().await.unwrap();
    let path = folder.path().join("entries/s/turns/user/t1.md");
    let text = fs::read_to_string(&path).unwrap();
    fs::remove_file(path).unwrap();
    store.sync().await.unwrap();
    let tombstones = files(&folder.path().join("entries/s/deleted"));
    assert_eq!(tombstones.len(), 1);
    fs::remove_file(&tombstones[0]).unwrap();
    store.sync().await.unwrap();
    (folder, store, text)
}

/// The vault as the next process opens it after this one was killed: it looks for items whose files are missing.
async fn after_a_death(folder: &TempDir, store: VaultStore) -> VaultStore {
    store.close().await.unwrap();
    let snapshot = rusqlite::Connection::open(folder.path().join(".strata/files.db")).unwrap();
    assert_eq!(snapshot.execute("UPDATE marks SET value = '1' WHERE name = 'opened'", []).unwrap(), 1);
    drop(snapshot);
    open(folder.path()).await
}

fn holds(folder: &TempDir, word: &str) -> bool {
    let is_in = |path: &std::path::PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains(word));
    files(&folder.path().join("entries")).iter().any(is_in)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_tombstone_was_removed_does_not_come_back() {
    let (folder, store, _) = with_an_empty_place().await;
    let expect = async |store: &VaultStore| {
        assert!(!holds(&folder, "heron"), "no file of it is written");
        let written = files(&folder.path().join("entries/s"));
        let written = written.iter().filter(|path| path.extension().is_some_and(|end| end == "md"));
        assert_eq!(written.count(), 2);
        assert!(found(store, "heron").await.is_empty());
        let turns = turns(store, "s").await;
        let told: Vec<(u64, &str, bool)> =
            turns.iter().map(|turn| (turn.seq, turn.content.as_str(), turn.hidden.is_some())).collect();
        assert_eq!(told, [(0, "The lamp is lit", false), (1, "", true), (2, "The lamp is out", false)]);
        assert_eq!(turns[1].name, None);
        assert_eq!(problems(store).await, Vec::<String>::new());
    };
    expect(&store).await;
    store.sync().await.unwrap();
    expect(&store).await;
    let store = after_a_death(&folder, store).await;
    expect(&store).await;
    let store = rebuilt(&folder, store).await;
    expect(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_tombstone_was_removed_comes_back_with_its_file() {
    let (folder, store, text) = with_an_empty_place().await;
    write(folder.path(), "entries/s/turns/user/t1.md", &text);
    store.sync().await.unwrap();
    assert_eq!(problems(&store).await, Vec::<String>::new());
    assert_eq!(found(&store, "heron").await, ["The password is heron"]);
    let turns = turns(&store, "s").await;
    assert_eq!((turns[1].seq, turns[1].name.as_deref(), turns.len()), (1, Some("Ada"), 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_whose_tombstone_was_removed_does_not_come_back() {
    let (folder, store) = vault().await;
    let file = "---\nid: sum\nrole: summary\nconversation_id: s\nsummary_kind: rolling\nstrategy: rolling\nlevel: 0\n\
                start_seq: 0\nend_seq: 3\ncreated_at: 2026-05-01\n---\nAda mended the sail\n";
    let path = write(folder.path(), "entries/s/summaries/rolling/sum.md", file);
    store.sync().await.unwrap();
    fs::remove_file(path).unwrap();
    store.sync().await.unwrap();
    let tombstone = files(&folder.path().join("entries/s/deleted")).remove(0);
    fs::remove_file(tombstone).unwrap();
    store.sync().await.unwrap();
    let store = after_a_death(&folder, store).await;
    assert!(!holds(&folder, "mended"));
    let query = SummaryQuery { session: session("s"), strategy: None, status: None, limit: 9 };
    let summaries = store.summaries(&UserId::default(), &query).await.unwrap();
    let is_gone = |summary: &Summary| summary.status == SummaryStatus::Failed && summary.text.is_empty();
    assert!(summaries.iter().all(is_gone), "{summaries:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memory_that_is_too_long_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let limited = || VaultOptions { max_memory_bytes: 40, ..options() };
    let store = VaultStore::open(folder.path(), limited()).await.unwrap();
    let long = "The lighthouse keeper writes very long letters\n";
    let path = write(folder.path(), "entries/global/facts/a.md", long);
    write(folder.path(), "entries/global/facts/b.md", "The lighthouse is red\n");
    store.sync().await.unwrap();
    assert_eq!(current(&store).await, ["The lighthouse is red"]);
    let told = problems(&store).await;
    let expected =
        "`entries/global/facts/a.md`: the memory has 46 bytes; the most is 40 (setting `max_turn_bytes`)";
    assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), long, "the file stays as it is");
    // An edit that makes a memory too long changes nothing either.
    let red = folder.path().join("entries/global/facts/b.md");
    let text = fs::read_to_string(&red).unwrap();
    fs::write(&red, text.replace("red", "red and white and red and white")).unwrap();
    store.sync().await.unwrap();
    assert_eq!((current(&store).await.len(), problems(&store).await.len()), (1, 2));
    fs::write(&path, "Letters are long\n").unwrap();
    fs::write(&red, text).unwrap();
    store.sync().await.unwrap();
    assert_eq!(current(&store).await, ["Letters are long", "The lighthouse is red"]);
    assert!(problems(&store).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_that_was_committed_is_no_memory() {
    let (folder, store) = vault().await;
    let [from, to] = ['<', '>'].map(|sign| sign.to_string().repeat(7));
    let conflict = format!("{from} HEAD\nThe kiln is hot\n=======\nThe kiln is cold\n{to} other\n");
    write(folder.path(), "entries/global/facts/a.md", &format!("---\nkind: fact\n---\n{conflict}"));
    store.sync().await.unwrap();
    assert!(current(&store).await.is_empty());
    let told = problems(&store).await;
    assert!(
        told.len() == 1 && told[0].starts_with("`entries/global/facts/a.md`, line 4: git could not merge it"),
        "{told:?}"
    );
    let quoted = format!("---\nkind: fact\nverbatim: true\n---\n{conflict}");
    write(folder.path(), "entries/global/facts/a.md", &quoted);
    store.sync().await.unwrap();
    assert_eq!(current(&store).await, [conflict.trim_end()]);
    // A turn may quote a conflict, and so may a memory that Strata writes: both come back from their files.
    let turn = format!("---\nrole: user\nconversation_id: kiln\nseq: 0\n---\nWhat is this?\n{conflict}");
    write(folder.path(), "entries/kiln/turns/user/a.md", &turn);
    let memory = Memory { id: MemoryId(uuid::Uuid::from_u128(0x77)), ..all(&store).await.remove(0) };
    let add = Change::AddMemory(Box::new(Memory { content: format!("Once {conflict}"), ..memory }));
    store.apply(&UserId::default(), ChangeSet::one(at(0), add)).await.unwrap();
    store.sync().await.unwrap();
    let before = content(&store).await;
    assert!(before.contains("What is this?") && before.contains("Once <<<"), "{before}");
    store.close().await.unwrap();
    fs::remove_dir_all(folder.path().join(".strata")).unwrap();
    let store = open(folder.path()).await;
    assert!(problems(&store).await.is_empty());
    assert_eq!(content(&store).await, before);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_kept_of_a_memory_whose_folder_leads_out_of_the_vault() {
    let (folder, store) = vault().await;
    let outside = tempfile::tempdir().unwrap();
    write(folder.path(), "entries/kiln/facts/a.md", "The kiln is hot\n");
    store.sync().await.unwrap();
    fs::create_dir_all(folder.path().join("entries/global")).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("entries/global/facts")).unwrap();
    let memory = all(&store).await.remove(0);
    let memory = Memory { id: MemoryId(uuid::Uuid::from_u128(0x78)), session: None, ..memory };
    let add = Change::AddMemory(Box::new(memory));
    let set = ChangeSet::one(jiff::Timestamp::UNIX_EPOCH, add);
    let refused = store.apply(&UserId::default(), set.clone()).await.unwrap_err();
    assert!(
        refused.message().contains("`entries/global/facts` in the vault is not a folder but a symbolic link"),
        "{refused}"
    );
    assert_eq!(all(&store).await.len(), 1);
    assert_eq!(outside.path().read_dir().unwrap().count(), 0);
    fs::remove_file(folder.path().join("entries/global/facts")).unwrap();
    store.apply(&UserId::default(), set).await.unwrap();
    assert_eq!(all(&store).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_was_given_to_another_session_leaves_no_gap_there() {
    let (folder, store) = vault().await;
    for number in 0..3 {
        let turn = format!(
            "---\nrole: user\nseq: {number}\ncreated_at: 2026-05-0{}\n---\nLoaf {number}\n",
            number + 1
        );
        write(folder.path(), &format!("entries/oven/turns/user/{number}.md"), &turn);
    }
    store.sync().await.unwrap();
    store.close().await.unwrap();
    let path = folder.path().join("entries/oven/turns/user/2.md");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("conversation_id: oven", "conversation_id: mill")).unwrap();
    fs::remove_dir_all(folder.path().join(".strata")).unwrap();
    let store = open(folder.path()).await;
    let turns = async |name: &str| {
        let query = TurnQuery::Range { session: session(name), after: None, limit: 9 };
        let turns = store.turns(&UserId::default(), &query).await.unwrap();
        turns.into_iter().map(|turn| (turn.seq, turn.content)).collect::<Vec<_>>()
    };
    assert_eq!(turns("mill").await, [(0, "Loaf 2".to_owned())]);
    assert_eq!(turns("oven").await, [(0, "Loaf 0".to_owned()), (1, "Loaf 1".to_owned())]);
    assert!(fs::read_to_string(&path).unwrap().contains("seq: 0"), "its file says its new place");
    assert!(problems(&store).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_among_the_deleted_files_that_was_cut_short_is_finished_without_the_index_too() {
    let (folder, store) = vault().await;
    let file = "---\nid: first\ncreated_at: 2026-04-01\n---\nThe ferry leaves at six\n";
    let path = write(folder.path(), "entries/global/facts/ferry.md", file);
    store.sync().await.unwrap();
    let (left, ferry) = (fs::read_to_string(&path).unwrap(), all(&store).await.remove(0));
    apply(&store, Change::CloseMemory { id: ferry.id, valid_to: at(0), replaced_by: None }).await;
    let held = content(&store).await;
    let tombstone = folder.path().join("entries/global/deleted/facts/ferry.md");
    let buried = fs::read_to_string(&tombstone).unwrap();
    assert!(!path.exists());

    // A kill between the two steps of the move leaves both files.
    write(folder.path(), "entries/global/facts/ferry.md", &left);
    let mut store = rebuilt(&folder, store).await;
    assert_eq!((problems(&store).await, path.exists()), (Vec::new(), false));
    assert_eq!(content(&store).await, held);

    // What a person has written or copied there is another matter.
    for text in [left.replace("six", "nine"), buried] {
        write(folder.path(), "entries/global/facts/ferry.md", &text);
        store = rebuilt(&folder, store).await;
        assert_eq!(problems(&store).await.len(), 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
