use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::context::fold::SUMMARY_HEADING;
use crate::context::{HistoryEntry, Task};

/// The «Context Structure» of the context-store design.
const DOCUMENT: &str = include_str!("worked_example.json");

fn said(number: usize) -> HistoryEntry {
    let (role, word) = if number.is_multiple_of(2) { ("user", "Message") } else { ("assistant", "Response") };
    HistoryEntry {
        timestamp: 1_708_654_321 + number as i64,
        role: role.to_owned(),
        content: format!("{word} {}", number / 2 + 1),
        token_count: Some(5),
    }
}

fn long_history(entries: usize) -> ContextData {
    let mut context = ContextData::new("user:agent:123");
    context.recent_history = (0..entries).map(said).collect();
    context
}

fn task(id: &str, status: &str, updated_at: i64) -> Task {
    serde_json::from_value(json!({
        "id": id, "description": "d", "status": status, "progress": 1.0, "created_at": 0, "updated_at": updated_at
    }))
    .unwrap()
}

#[test]
fn the_documents_example_is_read_and_written_field_for_field() {
    let context: ContextData = serde_json::from_str(DOCUMENT).unwrap();
    assert_eq!(context.session_id, "user:agent:timestamp");
    assert_eq!(context.facts, ["User prefers verbose output", "Project uses Rust 1.75"]);
    assert_eq!(context.recent_history[2].content, "{\"success\": true}");
    assert_eq!(context.recent_history[1].token_count, Some(8));
    assert_eq!(context.active_tasks[0].status, "Running");
    assert_eq!(context.tool_stats.by_tool["file_read"], 20);
    assert_eq!(context.last_known_environment.workspace, "/srv/project");
    assert_eq!(context.last_known_environment.system_snapshot["disk_usage_percent"], 45.2);
    assert_eq!(context.token_usage.by_session, 24_350);

    let written = context.to_json();
    let expected: Value = serde_json::from_str(DOCUMENT).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), expected);
    // In free-form objects (tools, measurements) names are sorted; everywhere else they keep the document's order.
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.trim_end_matches(',').to_owned());
        let free = ["\"file_", "\"echo\"", "_usage_"];
        lines.filter(|line| !free.iter().any(|name| line.contains(name))).collect()
    };
    assert_eq!(lines(&written), lines(DOCUMENT));
}

#[test]
fn unknown_fields_survive_at_every_level() {
    let mut document: Value = serde_json::from_str(DOCUMENT).unwrap();
    for path in [
        "",
        "/system_state",
        "/recent_history/0",
        "/recent_history/2",
        "/active_tasks/0",
        "/tool_stats",
        "/last_known_environment",
        "/last_known_environment/system_snapshot",
        "/token_usage",
    ] {
        document.pointer_mut(path).unwrap()["later"] = json!({ "at": path, "n": [1, 2.5, null] });
    }
    let mut context: ContextData = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(serde_json::to_value(&context).unwrap(), document);
    // They stay with their entries when other entries are added or removed.
    context.recent_history.remove(0);
    context.recent_history.push(said(9));
    let written = serde_json::to_value(&context).unwrap();
    assert_eq!(written["recent_history"][1]["later"]["at"], "/recent_history/2");
    assert_eq!(written["recent_history"][2].get("later"), None);
}

#[test]
fn missing_and_null_fields_read_as_empty() {
    let empty: ContextData = serde_json::from_str("{}").unwrap();
    assert_eq!(empty, ContextData::default());
    let nulls: ContextData = serde_json::from_str(
        r#"{"session_id": "s", "system_state": null, "recent_history": null, "last_known_environment": null}"#,
    )
    .unwrap();
    assert_eq!(nulls, ContextData::new("s"));
    assert!(serde_json::from_str::<ContextData>(r#"{"facts": "no list"}"#).is_err());
}

#[test]
fn the_usage_in_the_context_store_design_compiles_and_compacts() {
    let mut context = ContextData::new("user:agent:123");
    context.recent_history.push(HistoryEntry {
        timestamp: 1_708_654_321,
        role: "user".to_string(),
        content: "Hello".to_string(),
        token_count: Some(1),
    });
    context.facts.push("User speaks English".to_string());
    context.tool_stats.total_calls += 1;
    let total_tokens: usize = context.recent_history.iter().filter_map(|e| e.token_count).sum();
    assert_eq!(total_tokens, 1);
    assert!(!ContextCompactor::compact(&mut context), "there is nothing to compact");
}

#[test]
fn a_history_over_50_keeps_its_newest_30() {
    // «Message 1», «Response 1», 50 more entries, «Message 27»: the entries of the example.
    let mut context = long_history(53);
    assert!(ContextCompactor::compact(&mut context));
    assert_eq!(context.recent_history, (23..53).map(said).collect::<Vec<_>>());
    let summary = &context.long_term_summary;
    assert!(
        summary.starts_with("Previous conversation summary:\n- user: Message 1\n- assistant: Response 1\n"),
        "{summary}"
    );
    assert!(summary.ends_with("\n- user: Message 12"), "{summary}");
    assert_eq!(summary.lines().count(), 24);

    let mut at_the_limit = long_history(50);
    assert!(!ContextCompactor::compact(&mut at_the_limit));
    assert_eq!(at_the_limit.recent_history.len(), 50);
}

#[test]
fn a_second_compaction_goes_on_under_the_same_heading() {
    let mut context = long_history(51);
    context.long_term_summary = "User requested file creation. Successfully created test.txt.".to_owned();
    assert!(ContextCompactor::compact(&mut context));
    context.recent_history.extend((51..81).map(said));
    assert!(ContextCompactor::compact(&mut context));
    let summary = &context.long_term_summary;
    assert!(summary.starts_with(
        "User requested file creation. Successfully created test.txt.\n\nPrevious conversation summary:\n- user: Message 1\n"
    ));
    assert_eq!(summary.matches(SUMMARY_HEADING).count(), 1);
    assert_eq!(summary.matches("\n- ").count(), 51);
}

#[test]
fn over_100_000_tokens_the_oldest_half_goes() {
    let mut context = long_history(9);
    context.recent_history[8].token_count = Some(100_000 - 8 * 5);
    assert!(!ContextCompactor::compact(&mut context), "100,000 are not more than 100,000");
    context.recent_history[8].token_count = Some(100_000 - 8 * 5 + 1);
    assert!(ContextCompactor::compact(&mut context));
    assert_eq!(context.recent_history.len(), 5);
    assert_eq!(context.long_term_summary.lines().count(), 5);
}

#[test]
fn uncounted_tokens_are_estimated_from_characters() {
    let check = |content: &str, expected: usize| {
        let entry = HistoryEntry { content: content.to_owned(), ..HistoryEntry::default() };
        assert_eq!(entry.tokens(), expected, "{content}");
    };
    check("", 0);
    check("abcd", 1);
    check("abcde", 2);
    check("Größe", 2);
    check("温度波动", 4);
    let mut context = long_history(4);
    context.recent_history[0] =
        HistoryEntry { content: "x".repeat(400_000), token_count: None, ..context.recent_history[0].clone() };
    assert!(ContextCompactor::compact(&mut context), "100,015 tokens");
    assert_eq!(context.recent_history.len(), 2);
}

#[test]
fn facts_become_sorted_and_unique() {
    let mut context = ContextData::new("s");
    context.facts = ["b", "a", "b", "a"].map(str::to_owned).to_vec();
    assert!(ContextCompactor::compact(&mut context));
    assert_eq!(context.facts, ["a", "b"]);
    assert!(!ContextCompactor::compact(&mut context));
}

#[test]
fn completed_tasks_go_after_a_day() {
    let now = 1_708_654_321;
    let day = 24 * 60 * 60;
    let mut context = ContextData::new("s");
    context.active_tasks = vec![
        task("running", "Running", now - 9 * day),
        task("paused", "Paused", now - 9 * day),
        task("fresh", "Completed", now - day + 1),
        task("old", "Completed", now - day),
        task("older", "completed", now - 2 * day),
    ];
    let ids = |context: &ContextData| -> Vec<String> {
        context.active_tasks.iter().map(|task| task.id.clone()).collect()
    };
    let mut by_the_document = context.clone();
    assert!(ContextCompactor::compact_with(&mut context, &CompactionLimits::default(), now));
    assert_eq!(ids(&context), ["running", "paused", "fresh"]);
    // Without a clock the newest moment in the document counts as the present. It is that of `fresh`, so that `old` is
    // one second old.
    assert!(ContextCompactor::compact(&mut by_the_document));
    assert_eq!(ids(&by_the_document), ["running", "paused", "fresh", "old"]);
}

#[test]
fn every_limit_is_a_setting() {
    let limits = CompactionLimits {
        max_recent_history: 4,
        keep_recent_history: 1,
        max_tokens: 4,
        completed_task_seconds: 5,
        max_entry_chars: 6,
        ..CompactionLimits::default()
    };
    let mut context = long_history(5);
    context.active_tasks = vec![task("t", "Completed", 90)];
    assert!(ContextCompactor::compact_with(&mut context, &limits, 95));
    assert_eq!(context.recent_history.len(), 1, "one entry has no older half");
    assert!(context.active_tasks.is_empty());
    assert_eq!(context.long_term_summary.lines().nth(1), Some("- user: Messa…"));
}

#[test]
fn a_long_life_ages_gracefully() {
    let mut context = ContextData::new("s");
    let limits = CompactionLimits { max_summary_chars: 3_000, ..CompactionLimits::default() };
    for number in 0..5_000 {
        let mut entry = said(number);
        entry.content = format!("{} of many. {}", entry.content, "More words follow here. ".repeat(20));
        context.recent_history.push(entry);
        ContextCompactor::compact_with(&mut context, &limits, 0);
    }
    let summary = &context.long_term_summary;
    assert!(summary.chars().count() <= 3_000, "{}", summary.chars().count());
    let lines: Vec<&str> = summary.lines().collect();
    let length = |line: &str| line.chars().count();
    assert!(lines[1].ends_with(" earlier entries"), "{summary}");
    assert!(length(lines[2]) < 100 && length(lines.last().unwrap()) > 250, "{summary}");
}

/// The number of entries that a summary stands for.
fn summarised(summary: &str) -> usize {
    let counted =
        |line: &str| line.strip_prefix("… ")?.strip_suffix(" earlier entries")?.parse::<usize>().ok();
    summary.lines().filter(|line| *line != SUMMARY_HEADING).map(|line| counted(line).unwrap_or(1)).sum()
}

fn any_entry() -> impl Strategy<Value = HistoryEntry> {
    let content = prop_oneof![
        any::<String>(),
        "[a-z .!?\n]{0,400}",
        "[温度波动。，！🇩🇪é👨‍👩‍👧]{0,400}",
        Just("… 9 earlier entries\nPrevious conversation summary:\n- user: x".to_owned()),
    ];
    ("(user|assistant|tool|… |\n- x|[a-z]{0,50})", content, any::<Option<u16>>()).prop_map(
        |(role, content, tokens)| HistoryEntry {
            timestamp: 0,
            role,
            content,
            token_count: tokens.map(usize::from),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn compaction_loses_no_entry_that_it_does_not_summarise(
        batches in prop::collection::vec(prop::collection::vec(any_entry(), 0..90), 1..5),
        max_tokens in 0usize..200_000,
        max_summary_chars in 0usize..20_000,
    ) {
        let limits = CompactionLimits { max_tokens, max_summary_chars, ..CompactionLimits::default() };
        let mut context = ContextData::new("s");
        let mut all = Vec::new();
        for batch in batches {
            all.extend(batch.clone());
            context.recent_history.extend(batch);
            ContextCompactor::compact_with(&mut context, &limits, 0);
            let gone = all.len() - context.recent_history.len();
            // The remaining entries are the newest, in order and unchanged; the removed ones are in the summary.
            prop_assert_eq!(&context.recent_history[..], &all[gone..]);
            prop_assert!(context.recent_history.len() <= limits.max_recent_history);
            prop_assert_eq!(summarised(&context.long_term_summary), gone, "{}", &context.long_term_summary);
            let most = max_summary_chars.max(SUMMARY_HEADING.len() + 40);
            prop_assert!(context.long_term_summary.chars().count() <= most);
        }
    }
}
