//! What a person does to the files is what Strata remembers: made, edited, moved and removed files.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

mod support;

use std::fs;
use std::path::PathBuf;

use strata_core::store::{Change, ChangeSet, TurnQuery};
use strata_core::turn::{HiddenReason, Role};
use strata_core::{MemoryKind, SessionId, Store, UserId};
use strata_vault::VaultStore;
use support::{all, content, current, eventually, files, found, open, options, problems, vault, write};
use tempfile::TempDir;

/// The content is the same when the index is built from the files alone.
async fn expect_rebuild(folder: &TempDir, store: VaultStore) {
    let before = content(&store).await;
    store.close().await.unwrap();
    fs::remove_dir_all(folder.path().join(".strata")).unwrap();
    let store = open(folder.path()).await;
    assert_eq!(content(&store).await, before);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_without_front_matter_becomes_a_memory() {
    let (folder, store) = vault().await;
    let path = write(folder.path(), "entries/global/facts/tea.md", "I drink green tea in the morning.\n");
    store.sync().await.unwrap();
    assert_eq!(found(&store, "green tea").await, ["I drink green tea in the morning."]);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("id: ") && text.ends_with("I drink green tea in the morning.\n"), "{text}");
    store.sync().await.unwrap();
    assert_eq!(all(&store).await.len(), 1);
    expect_rebuild(&folder, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_is_a_new_version() {
    let (folder, store) = vault().await;
    let path = write(
        folder.path(),
        "entries/global/facts/a.md",
        "---\nid: note-1\ncreated_at: 2026-05-01\nkind: event\nmood: good   # mine\ntags: [x, y]\n---\nMoved to Porto\n",
    );
    store.sync().await.unwrap();
    let first = all(&store).await.remove(0);
    assert_eq!(first.kind, MemoryKind::Event);
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("Porto", "Braga")).unwrap();
    store.sync().await.unwrap();
    assert_eq!(current(&store).await, ["Moved to Braga"]);
    let versions = all(&store).await;
    assert_eq!(versions.len(), 2);
    let old = versions.iter().find(|memory| memory.content == "Moved to Porto").unwrap();
    assert_eq!((old.replaced_by, old.valid_to.is_some()), (Some(first.id), true));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("id: note-1\n") && text.contains("mood: good   # mine\ntags: [x, y]\n"), "{text}");
    let deleted = files(&folder.path().join("entries/global/deleted"));
    assert_eq!(deleted.len(), 1);
    assert!(fs::read_to_string(&deleted[0]).unwrap().contains(&format!("replaced_by: {}", first.id)));
    assert!(found(&store, "Porto").await.is_empty());
    expect_rebuild(&folder, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_the_front_matter_can_be_edited() {
    let (folder, store) = vault().await;
    let path = write(
        folder.path(),
        "entries/global/facts/a.md",
        "---\nid: a\ncreated_at: 2026-05-01\n---\nPays rent\n",
    );
    store.sync().await.unwrap();
    let edit = |from: &str, to: &str| {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&path, text.replace(from, to)).unwrap();
    };
    edit("id: a\n", "id: a\nkind: schedule\nconfidence: 0.5\n");
    store.sync().await.unwrap();
    let memory = all(&store).await.remove(0);
    assert_eq!((memory.kind, memory.confidence), (MemoryKind::Schedule, 0.5));
    edit("confidence: 0.5\n", "confidence: 0.5\nvalid_to: 2026-06-01\n");
    store.sync().await.unwrap();
    assert!(current(&store).await.is_empty());
    assert_eq!(files(&folder.path().join("entries/global/facts")), Vec::<PathBuf>::new());
    expect_rebuild(&folder, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_file_leaves_a_tombstone_and_a_moved_one_stays_itself() {
    let (folder, store) = vault().await;
    let a = write(folder.path(), "entries/global/facts/a.md", "Plays chess\n");
    let b = write(folder.path(), "entries/global/facts/b.md", "Plays the violin\n");
    store.sync().await.unwrap();
    let before: Vec<_> = all(&store).await.iter().map(|memory| memory.id).collect();
    fs::remove_file(&a).unwrap();
    let moved = folder.path().join("entries/music/facts/renamed.md");
    fs::create_dir_all(moved.parent().unwrap()).unwrap();
    fs::rename(&b, &moved).unwrap();
    store.sync().await.unwrap();
    assert_eq!(current(&store).await, ["Plays the violin"]);
    let after = all(&store).await;
    assert_eq!(after.iter().map(|memory| memory.id).collect::<Vec<_>>(), before);
    assert_eq!(after[0].hidden.unwrap().reason, HiddenReason::Deleted);
    let tombstones = files(&folder.path().join("entries/global/deleted/facts"));
    assert_eq!(tombstones.len(), 1);
    // Moving the tombstone back brings the memory back.
    fs::create_dir_all(folder.path().join("entries/global/facts")).unwrap();
    fs::rename(&tombstones[0], folder.path().join("entries/global/facts/back.md")).unwrap();
    store.sync().await.unwrap();
    assert_eq!(current(&store).await, ["Plays chess", "Plays the violin"]);
    // Moving a file among the deleted ones takes it out of recall; removing it there destroys it.
    let grave = folder.path().join("entries/music/deleted/facts/renamed.md");
    fs::create_dir_all(grave.parent().unwrap()).unwrap();
    fs::rename(&moved, &grave).unwrap();
    store.sync().await.unwrap();
    assert_eq!(current(&store).await, ["Plays chess"]);
    fs::remove_file(&grave).unwrap();
    store.sync().await.unwrap();
    assert_eq!(all(&store).await.len(), 1);
    expect_rebuild(&folder, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_while_strata_was_off_are_taken_in() {
    let (folder, store) = vault().await;
    let a = write(folder.path(), "entries/global/facts/a.md", "Has a cat\n");
    store.sync().await.unwrap();
    store.close().await.unwrap();
    fs::write(&a, fs::read_to_string(&a).unwrap().replace("cat", "dog")).unwrap();
    write(folder.path(), "entries/global/facts/new.md", "Has a bicycle\n");
    let store = open(folder.path()).await;
    assert_eq!(current(&store).await, ["Has a bicycle", "Has a dog"]);
    expect_rebuild(&folder, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_is_not_lost_when_strata_writes_the_same_file() {
    let (folder, store) = vault().await;
    let a = write(folder.path(), "entries/global/facts/a.md", "Works on Mondays\n");
    store.sync().await.unwrap();
    let id = all(&store).await[0].id;
    fs::write(&a, fs::read_to_string(&a).unwrap().replace("Mondays", "Fridays")).unwrap();
    // Strata closes the memory without having seen the edit.
    let close = Change::CloseMemory {
        id,
        valid_to: jiff::Timestamp::from_second(1_900_000_000).unwrap(),
        replaced_by: None,
    };
    store.apply(&UserId::default(), ChangeSet::one(jiff::Timestamp::UNIX_EPOCH, close)).await.unwrap();
    let texts: Vec<String> = all(&store).await.into_iter().map(|memory| memory.content).collect();
    assert_eq!(texts, ["Works on Fridays", "Works on Mondays"]);
    expect_rebuild(&folder, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_cannot_be_read_is_left_alone_and_reported() {
    let (folder, store) = vault().await;
    let a = write(folder.path(), "entries/global/facts/a.md", "Knows Ana\n");
    store.sync().await.unwrap();
    let text = fs::read_to_string(&a).unwrap();
    let broken = text.replacen("role:", "role: [", 1);
    fs::write(&a, &broken).unwrap();
    let odd = write(folder.path(), "entries/global/facts/odd.md", "---\nconfidence: 7\n---\nx\n");
    store.sync().await.unwrap();
    let listed = problems(&store).await;
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed[0].contains("`entries/global/facts/a.md`, line "), "{listed:?}");
    assert!(listed[1].contains("line 2: `confidence` is not a number from 0 to 1"), "{listed:?}");
    assert_eq!(store.unusable_files(&UserId::default()).await.unwrap(), listed);
    assert!(store.unusable_files(&UserId::new("bo").unwrap()).await.unwrap().is_empty());
    assert_eq!(fs::read_to_string(&a).unwrap(), broken);
    assert_eq!(current(&store).await, ["Knows Ana"]);
    fs::write(&a, text).unwrap();
    fs::remove_file(odd).unwrap();
    store.sync().await.unwrap();
    assert!(problems(&store).await.is_empty());
}

/// PostgreSQL keeps no NUL character, and a vault may be moved to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_escape_for_a_nul_character_is_reported_and_not_stored() {
    let (folder, store) = vault().await;
    for (number, keys) in [
        "role: user\nname: \"Ana\\0\"",
        r#"agent: "\u0000""#,
        r#"metadata: {mood: "good\0"}"#,
        r#"metadata: '{"mood":["good\u0000"]}'"#,
        r#"notes: '{"\u0000":1}'"#,
    ]
    .into_iter()
    .enumerate()
    {
        let file = format!("---\nconversation_id: nul{number}\n{keys}\n---\nKeeps bees\n");
        let path = write(folder.path(), &format!("entries/nul{number}/facts/a.md"), &file);
        store.sync().await.unwrap();
        let told = problems(&store).await;
        assert!(told.len() == 1 && told[0].contains("holds a NUL character; remove it"), "{file}: {told:?}");
        assert!(found(&store, "bees").await.is_empty(), "{file}");
        fs::remove_file(path).unwrap();
        store.sync().await.unwrap();
    }
    // The six characters of the escape in a text are no NUL character.
    write(folder.path(), "entries/global/facts/a.md", "---\nagent: '\\u0000'\n---\nKeeps bees\n");
    store.sync().await.unwrap();
    assert_eq!(problems(&store).await, Vec::<String>::new());
    assert_eq!(current(&store).await, ["Keeps bees"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corrected_turn_says_what_its_file_says_with_and_without_an_index() {
    let (folder, store) = vault().await;
    let file = "---\nid: t\nrole: user\nseq: 0\nconversation_id: s\ncreated_at: 2026-05-01\nname: Ada\ntoken_count: 4\n\
                metadata: '{\"boat\":\"sloop\"}'\n---\nWe sail on Sunday\n";
    let path = write(folder.path(), "entries/s/turns/user/t.md", file);
    write(
        folder.path(),
        "entries/s/turns/user/u.md",
        &file.replace("id: t", "id: u").replace("seq: 0", "seq: 1"),
    );
    store.sync().await.unwrap();
    let query = TurnQuery::Range { session: SessionId::new("s").unwrap(), after: None, limit: 9 };
    let turns = async |store: &VaultStore| store.turns(&UserId::default(), &query).await.unwrap();
    let before = turns(&store).await.remove(0);
    for (from, to) in [
        ("Sunday", "Monday, in the fog"),
        ("name: Ada", "name: Bo"),
        ("token_count: 4", "token_count: 7"),
        ("sloop", "ketch"),
        ("role: user", "role: assistant"),
        ("created_at: 2026-05-01", "created_at: 2026-05-03"),
    ] {
        fs::write(&path, fs::read_to_string(&path).unwrap().replace(from, to)).unwrap();
        // Taken in while Strata runs, and by an index that is built anew: both say the same.
        store.sync().await.unwrap();
        assert_eq!(problems(&store).await, Vec::<String>::new(), "{to}");
        let copy = tempfile::tempdir().unwrap();
        copy_entries(folder.path(), copy.path());
        let built = open(copy.path()).await;
        assert_eq!(turns(&store).await, turns(&built).await, "{to}");
        built.close().await.unwrap();
    }
    let after = turns(&store).await.remove(0);
    assert_eq!((after.id, after.seq, &after.content[..]), (before.id, 0, "We sail on Monday, in the fog"));
    assert_eq!((after.name.as_deref(), after.token_count, after.role), (Some("Bo"), 7, Role::Assistant));
    assert_eq!(found(&store, "fog").await, ["We sail on Monday, in the fog"]);
    assert_eq!(found(&store, "sunday").await, ["We sail on Sunday"], "the other turn says it still");
    expect_rebuild(&folder, store).await;
}

/// Copies the files of the default user.
fn copy_entries(from: &std::path::Path, to: &std::path::Path) {
    for path in files(&from.join("entries")) {
        let name = path.strip_prefix(from).unwrap().to_str().unwrap().to_owned();
        write(to, &name, &fs::read_to_string(&path).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_keeps_its_place_in_its_session() {
    let (folder, store) = vault().await;
    let file = "---\nid: t\nrole: user\nseq: 0\nconversation_id: s\ncreated_at: 2026-05-01\n---\nWe sail on Sunday\n";
    let path = write(folder.path(), "entries/s/turns/user/t.md", file);
    store.sync().await.unwrap();
    fs::write(&path, file.replace("seq: 0", "seq: 5")).unwrap();
    store.sync().await.unwrap();
    assert_eq!(problems(&store).await, Vec::<String>::new());
    assert!(fs::read_to_string(&path).unwrap().contains("seq: 0\n"), "its place is written again");
    let elsewhere = file.replace("conversation_id: s", "conversation_id: far");
    fs::write(&path, &elsewhere).unwrap();
    for _ in 0..2 {
        store.sync().await.unwrap();
        let told = problems(&store).await.join("\n");
        for part in
            ["`entries/s/turns/user/t.md`", "write `conversation_id: s` again", "`strata vault rebuild`"]
        {
            assert!(told.contains(part), "{part} in {told}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), elsewhere, "what the person wrote is left alone");
    }
    fs::write(&path, file).unwrap();
    store.sync().await.unwrap();
    assert_eq!(problems(&store).await, Vec::<String>::new());
    fs::remove_file(&path).unwrap();
    store.sync().await.unwrap();
    assert!(found(&store, "sail").await.is_empty());
    expect_rebuild(&folder, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_with_the_same_id_is_reported() {
    let (folder, store) = vault().await;
    let a = write(folder.path(), "entries/global/facts/a.md", "Knows Ana\n");
    store.sync().await.unwrap();
    fs::copy(&a, folder.path().join("entries/global/facts/copy.md")).unwrap();
    store.sync().await.unwrap();
    assert!(problems(&store).await[0].contains("it has the id of `entries/global/facts/a.md`"));
    assert_eq!(all(&store).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_files_at_once_are_taken_in() {
    let (folder, store) = vault().await;
    for number in 0..200 {
        write(
            folder.path(),
            &format!("entries/global/facts/{number}.md"),
            &format!("Fact number {number}\n"),
        );
    }
    store.sync().await.unwrap();
    assert_eq!(current(&store).await.len(), 200);
    for number in 0..200 {
        let path = folder.path().join(format!("entries/global/facts/{number}.md"));
        fs::write(&path, fs::read_to_string(&path).unwrap().replace("Fact", "Statement")).unwrap();
    }
    store.sync().await.unwrap();
    assert!(current(&store).await.iter().all(|content| content.starts_with("Statement")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_time_is_a_time_and_beats_no_correction() {
    let (folder, store) = vault().await;
    let file = "---\nid: far\ncreated_at: 9999-12-31\nvalid_to: 9999-12-31\n---\nRents a boat\n";
    let path = write(folder.path(), "entries/global/facts/far.md", file);
    let said =
        "---\nid: t\nrole: user\nconversation_id: s\ncreated_at: \"9999-12-31T23:59:59Z\"\n---\nSaid last\n";
    write(folder.path(), "entries/s/turns/user/t.md", said);
    store.sync().await.unwrap();
    assert_eq!(problems(&store).await, Vec::<String>::new());
    assert_eq!(found(&store, "said last").await, ["Said last"]);
    assert_eq!(all(&store).await[0].content, "Rents a boat");
    fs::write(&path, file.replace("valid_to: 9999-12-31\n", "").replace("a boat", "a canoe")).unwrap();
    store.sync().await.unwrap();
    assert_eq!(current(&store).await, ["Rents a canoe"]);
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("canoe", "raft")).unwrap();
    store.sync().await.unwrap();
    assert_eq!(current(&store).await, ["Rents a raft"]);
    expect_rebuild(&folder, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_watcher_follows_edits_and_leaves_its_own_writes_alone() {
    let folder = tempfile::tempdir().unwrap();
    let watching = strata_vault::VaultOptions { watch: true, ..options() };
    let store = VaultStore::open(folder.path(), watching).await.unwrap();
    let a = write(folder.path(), "entries/global/facts/a.md", "Runs at noon\n");
    eventually(|| async {
        current(&store).await == ["Runs at noon"] && fs::read_to_string(&a).unwrap().contains("id:")
    })
    .await;
    // An editor that writes a temporary file and renames it.
    let temporary = folder.path().join("entries/global/facts/.a.md.swp");
    fs::write(&temporary, fs::read_to_string(&a).unwrap().replace("noon", "dawn")).unwrap();
    fs::rename(&temporary, &a).unwrap();
    eventually(|| async { current(&store).await == ["Runs at dawn"] }).await;
    // An editor that removes the file and writes it anew.
    let text = fs::read_to_string(&a).unwrap();
    fs::remove_file(&a).unwrap();
    fs::write(&a, text.replace("dawn", "dusk")).unwrap();
    eventually(|| async { current(&store).await == ["Runs at dusk"] }).await;
    fs::remove_file(&a).unwrap();
    eventually(|| async { current(&store).await.is_empty() }).await;
    // Strata's own writes, the tombstone among them, are no changes of a person: one new file is one new memory.
    let versions = all(&store).await.len();
    write(folder.path(), "entries/global/facts/b.md", "Swims at night\n");
    eventually(|| async { current(&store).await == ["Swims at night"] }).await;
    store.sync().await.unwrap();
    assert_eq!((versions, all(&store).await.len()), (3, 4));
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_text_that_an_editor_still_held_becomes_the_newest_version_and_bends_no_other() {
    let (folder, store) = vault().await;
    let path = write(folder.path(), "entries/global/facts/a.md", "Lives in Oslo\n");
    store.sync().await.unwrap();
    let first = all(&store).await.remove(0);
    let held = fs::read_to_string(&path).unwrap();
    let at = jiff::Timestamp::from_second(1_850_000_000).unwrap();
    let revise = Change::ReviseMemory {
        id: first.id,
        archive_as: strata_core::MemoryId(uuid::Uuid::from_u128(7)),
        content: "Lives in Bergen".to_owned(),
        metadata: None,
    };
    store.apply(&UserId::default(), ChangeSet::one(at, revise)).await.unwrap();
    fs::write(&path, held.replace("Oslo", "Oslo, near the sea")).unwrap();
    store.sync().await.unwrap();
    let versions = all(&store).await;
    let of = |text: &str| versions.iter().find(|memory| memory.content == text).unwrap();
    assert_eq!(versions.len(), 3);
    let (oslo, bergen, sea) = (of("Lives in Oslo"), of("Lives in Bergen"), of("Lives in Oslo, near the sea"));
    assert_eq!((oslo.valid_from, oslo.valid_to), (first.valid_from, Some(at)));
    assert_eq!(bergen.valid_from, at, "what Strata had learned keeps its time");
    assert_eq!((bergen.replaced_by, sea.id, sea.is_current()), (Some(first.id), first.id, true));
    expect_rebuild(&folder, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_has_ended_is_not_opened_by_an_editor_that_still_held_it() {
    let (folder, store) = vault().await;
    let path = write(folder.path(), "entries/global/facts/a.md", "Rents a flat\n");
    store.sync().await.unwrap();
    let id = all(&store).await[0].id;
    let held = fs::read_to_string(&path).unwrap();
    let valid_to = jiff::Timestamp::from_second(1_900_000_000).unwrap();
    let close = Change::CloseMemory { id, valid_to, replaced_by: None };
    store.apply(&UserId::default(), ChangeSet::one(valid_to, close)).await.unwrap();
    let tombstone = files(&folder.path().join("entries/global/deleted")).remove(0);
    let saved = held.replace("flat", "large flat");
    write(folder.path(), "entries/global/facts/a.md", &saved);
    store.sync().await.unwrap();
    let told = problems(&store).await;
    assert!(
        told.len() == 1 && told[0].contains("it was saved after Strata had ended this statement"),
        "{told:?}"
    );
    assert!(current(&store).await.is_empty());
    assert!(tombstone.exists());
    assert_eq!(fs::read_to_string(&path).unwrap(), saved, "what the person wrote is still there");
    // Either way out that the report names.
    fs::remove_file(tombstone).unwrap();
    store.sync().await.unwrap();
    assert!(problems(&store).await.is_empty());
    assert_eq!(current(&store).await, ["Rents a large flat"]);
}

/// A clock that a test sets.
struct Jumping(std::sync::atomic::AtomicI64);

impl strata_core::ports::Clock for Jumping {
    fn now(&self) -> jiff::Timestamp {
        let second = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        jiff::Timestamp::from_second(1_800_000_000 + second).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_by_a_year_hides_no_edit_and_no_removal() {
    const YEAR: i64 = 365 * 86_400;
    let clock = std::sync::Arc::new(Jumping(std::sync::atomic::AtomicI64::new(0)));
    let jump = |by: i64| clock.0.fetch_add(by, std::sync::atomic::Ordering::Relaxed);
    let folder = tempfile::tempdir().unwrap();
    let jumping = strata_vault::VaultOptions { clock: clock.clone(), ..options() };
    let store = VaultStore::open(folder.path(), jumping).await.unwrap();
    let path = write(folder.path(), "entries/global/facts/a.md", "Plays on day 0\n");
    let gone = write(folder.path(), "entries/global/facts/b.md", "Sleeps\n");
    // Strata need not write this one.
    let whole = "---\nid: w\nrole: memory\ncreated_at: 2026-05-01\n---\nWakes at 5\n";
    let kept = write(folder.path(), "entries/global/facts/c.md", whole);
    store.sync().await.unwrap();
    let before = fs::metadata(&kept).unwrap().modified().unwrap();
    fs::write(&kept, whole.replace("at 5", "at 6")).unwrap();
    fs::File::options().append(true).open(&kept).unwrap().set_modified(before).unwrap();
    store.sync().await.unwrap();
    assert_eq!(current(&store).await[2], "Wakes at 6");
    for (day, by) in [YEAR, -YEAR, -YEAR, YEAR].into_iter().enumerate() {
        // The same size within the same tick of the file system's clock.
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(&format!("day {day}"), &format!("day {}", day + 1))).unwrap();
        fs::File::options().append(true).open(&path).unwrap().set_modified(before).unwrap();
        jump(by);
        store.sync().await.unwrap();
        let expected = format!("Plays on day {}", day + 1);
        assert_eq!(current(&store).await[..2], [expected, "Sleeps".to_owned()]);
        assert!(problems(&store).await.is_empty());
    }
    fs::remove_file(gone).unwrap();
    jump(-YEAR);
    store.sync().await.unwrap();
    assert_eq!(current(&store).await, ["Plays on day 4", "Wakes at 6"]);
    assert_eq!(all(&store).await.len(), 8);
    expect_rebuild(&folder, store).await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_link_by_which_an_editor_locks_a_file_is_no_problem() {
    let (folder, store) = vault().await;
    let path = write(folder.path(), "entries/global/facts/a.md", "Knows Ana\n");
    std::os::unix::fs::symlink("ada@desk.4711:1", path.with_file_name(".#a.md")).unwrap();
    store.sync().await.unwrap();
    assert!(problems(&store).await.is_empty());
    assert_eq!(current(&store).await, ["Knows Ana"]);
}

/// Breaks the front matter of a file, and returns what it was.
fn break_front_matter(path: &std::path::Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, text.replacen("role:", "role: [", 1)).unwrap();
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_a_memory_whose_file_cannot_be_read_is_kept() {
    let (folder, store) = vault().await;
    let a = write(folder.path(), "entries/global/facts/a.md", "The bakery opens on Mondays\n");
    store.sync().await.unwrap();
    let id = all(&store).await[0].id;
    let text = break_front_matter(&a);
    let broken = fs::read_to_string(&a).unwrap();
    let archive_as = strata_core::MemoryId(uuid::Uuid::from_u128(77));
    let content = "The bakery opens on Fridays".to_owned();
    let change = Change::ReviseMemory { id, archive_as, metadata: None, content };
    store.apply(&UserId::default(), ChangeSet::one(late(), change)).await.unwrap();
    assert_eq!(fs::read_to_string(&a).unwrap(), broken, "the person's file stays as it is");
    // While the file is broken, and after it is mended.
    let fridays = ["The bakery opens on Fridays"];
    let store = rebuilt(&folder, store).await;
    assert_eq!(current(&store).await, fridays);
    fs::write(&a, text).unwrap();
    store.sync().await.unwrap();
    assert_eq!(current(&store).await, fridays);
    let told = problems(&store).await;
    assert!(told.len() == 1 && told[0].contains("`entries/global/facts/a.md`: it has the id of"), "{told:?}");
    let store = rebuilt(&folder, store).await;
    assert_eq!(current(&store).await, fridays);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memory_that_ends_while_its_file_cannot_be_read_stays_ended() {
    let (folder, store) = vault().await;
    let closed = write(folder.path(), "entries/global/facts/a.md", "Rents a garden\n");
    let hidden = write(folder.path(), "entries/global/facts/b.md", "Tends bees\n");
    store.sync().await.unwrap();
    let ids: Vec<_> = all(&store).await.iter().map(|memory| memory.id).collect();
    let texts = [&closed, &hidden].map(|path| break_front_matter(path));
    let hide = strata_core::turn::Hidden { reason: HiddenReason::Deleted, at: late() };
    let changes = vec![
        Change::CloseMemory { id: ids[0], valid_to: late(), replaced_by: None },
        Change::HideMemory { id: ids[1], hidden: Some(hide) },
    ];
    store.apply(&UserId::default(), ChangeSet::new(late(), changes)).await.unwrap();
    fs::write(&closed, &texts[0]).unwrap();
    fs::write(&hidden, &texts[1]).unwrap();
    for _ in 0..2 {
        store.sync().await.unwrap();
        assert!(current(&store).await.is_empty());
        assert_eq!(problems(&store).await.len(), 2);
    }
    let store = rebuilt(&folder, store).await;
    assert!(current(&store).await.is_empty());
}

/// A time after all those of the test's clock.
fn late() -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_900_000_000).unwrap()
}

/// The same vault with an index that is built from its files.
async fn rebuilt(folder: &TempDir, store: VaultStore) -> VaultStore {
    store.close().await.unwrap();
    fs::remove_dir_all(folder.path().join(".strata")).unwrap();
    open(folder.path()).await
}
