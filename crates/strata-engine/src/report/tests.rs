//! The figures of a report, against figures computed by hand.

use serde_json::json;
use strata_core::job::{Job, JobStatus};
use strata_core::metric::{ErrorStage, Feedback, FeedbackKind, PromptUse, RequestMetric};
use strata_core::store::conformance::fixture::{at, job, request};
use strata_core::trace::RetrievalPath;

use super::*;
use crate::learn::window::WindowSettings;
use crate::recall::Budget;
use crate::summaries::WITHOUT_MODEL;

const DAY: i64 = 86_400;

fn week() -> Period {
    Period { since: at(0), until: at(7 * DAY) }
}

/// 25 requests, and beside them one that did not ask recall and one without words.
fn requests() -> Vec<RequestMetric> {
    let row = |number: u32| {
        let has_items = !number.is_multiple_of(5);
        RequestMetric {
            fts_hits: number % 5,
            used_fallback: !has_items,
            retrieval_path: if number < 5 { RetrievalPath::SummariesOnly } else { RetrievalPath::Fts },
            context_items: if has_items { 2 } else { 0 },
            estimated_tokens: if has_items { 100 } else { 0 },
            truncated: number < 11,
            latency_retrieval_us: u64::from(number + 1) * 1_000,
            latency_llm_us: (number < 3).then_some(900_000),
            ..request(100 + i64::from(number))
        }
    };
    let mut rows: Vec<RequestMetric> = (0..25).map(row).collect();
    for row in &mut rows[..4] {
        row.prompt = PromptUse {
            raw_tokens: Some(1_000),
            input_tokens: Some(250),
            output_tokens: Some(50),
            stable_share: None,
        };
    }
    rows[8].prompt.stable_share = Some(0.5);
    rows[9].prompt.stable_share = Some(1.0);
    // A figure without its counterpart does not count.
    rows[9].prompt.raw_tokens = Some(77_777);
    rows[5].error_stage = Some(ErrorStage::Embedding);
    rows[6].error_stage = Some(ErrorStage::Retrieval);
    rows[7].error_stage = Some(ErrorStage::Retrieval);
    let complaint = |kind| Feedback { kind, at: at(DAY), text: String::new() };
    rows[0].feedback = vec![complaint(FeedbackKind::Forgot), complaint(FeedbackKind::Forgot)];
    for row in &mut rows[1..4] {
        row.feedback = vec![complaint(FeedbackKind::Meaning)];
    }
    let unasked = RequestMetric { unasked: true, fts_hits: 0, truncated: true, ..request(500) };
    let wordless = RequestMetric { query: " ".to_owned(), fts_hits: 0, truncated: true, ..request(501) };
    rows.extend([unasked, wordless]);
    rows
}

fn jobs() -> Vec<Job> {
    let of = |kind: &str, status| Job { kind: kind.to_owned(), status, ..job(None, 0) };
    let spent = |calls: u32, input: u32, output: u32| {
        Some(json!({"spent": {"calls": calls, "input_tokens": input, "output_tokens": output}}))
    };
    let failed =
        |second, error: &str, job| Job { last_error: Some(error.to_owned()), updated_at: at(second), ..job };
    vec![
        Job { result: spent(2, 300, 100), ..of("summarise", JobStatus::Done) },
        Job { result: Some(json!({WITHOUT_MODEL: "refused"})), ..of("summarise", JobStatus::Done) },
        Job { result: spent(1, 250, 150), ..of("extract", JobStatus::Done) },
        failed(10, "cut off", of("summarise", JobStatus::Dead)),
        failed(30, "no answer", of("extract", JobStatus::Dead)),
        failed(20, "busy", of("state", JobStatus::Queued)),
        // It has succeeded after a failure.
        failed(99, "at first", of("state", JobStatus::Done)),
    ]
}

fn report() -> Report {
    Report::of(&ReportRows { requests: requests(), jobs: jobs(), ..ReportRows::default() }, week())
}

#[track_caller]
fn close(value: Option<f64>, expected: f64) {
    assert!(value.is_some_and(|value| (value - expected).abs() < 1e-9), "{value:?} is not {expected}");
}

#[test]
fn shares_and_percentiles_are_as_computed_by_hand() {
    let report = report();
    assert_eq!(report.requests, 25);
    let recall = &report.recall;
    close(recall.hit_rate, 20.0 / 25.0);
    close(recall.fts_hit_rate, 20.0 / 25.0);
    close(recall.few_hits, 15.0 / 25.0);
    close(recall.fallback, 5.0 / 25.0);
    close(recall.summaries_only, 5.0 / 25.0);
    close(recall.truncation, 11.0 / 25.0);
    close(recall.items, 40.0 / 25.0);
    close(recall.item_tokens, 2_000.0 / 25.0);
    // Nearest rank: the 13th and the 24th of 25.
    assert_eq!(recall.latency, Latencies { p50: Some(13_000), p95: Some(24_000), p99: None });
    assert_eq!(recall.model_latency, Latencies::default(), "three values are too few");
}

#[test]
fn tokens_failures_and_costs_are_as_computed_by_hand() {
    let report = report();
    let tokens = report.tokens;
    assert_eq!((tokens.requests, tokens.raw, tokens.shown, tokens.saved()), (4, 4_000, 1_000, 3_000));
    close(tokens.saved_share, 0.75);
    close(tokens.prefix_stability, 0.75);
    let failures = &report.failures;
    assert_eq!(json!(failures.requests), json!({"embedding": 1, "retrieval": 2}));
    assert_eq!(json!(failures.dead_jobs), json!({"extract": 1, "summarise": 1}));
    assert_eq!((failures.retried_jobs, failures.summaries), (1, 2));
    assert_eq!((failures.complaints, failures.meaning), (5, 3));
    assert_eq!(failures.last_error, Some((at(30), "no answer".to_owned())));
    let cost = report.cost;
    assert_eq!(cost.chats, Spending { calls: 4, input_tokens: 1_000, output_tokens: 200 });
    assert_eq!((cost.learning.tokens(), cost.summaries.tokens(), cost.total().tokens()), (400, 400, 2_000));
    close(Some(cost.tokens_a_day()), 2_000.0 / 7.0);
    close(cost.summary_share(), 0.2);
    // 1,550 tokens in at 2 a million, 450 out at 10 a million.
    close(Some(cost.total().price(2.0, 10.0)), 0.0031 + 0.0045);
}

#[test]
fn every_row_of_the_table_is_judged_against_its_threshold() {
    let report = report();
    let judged: Vec<_> = report
        .triggers
        .iter()
        .map(|row| (row.name, row.value.unwrap(), row.threshold, row.verdict))
        .collect();
    use Verdict::{Act, Fine};
    let expected = [
        ("few_fts_hits", 0.6, 0.3, Act),
        ("fallback", 0.2, 0.5, Fine),
        ("summaries_only", 0.2, 0.2, Fine),
        ("truncation", 0.44, 0.4, Act),
        ("embedding_needed", 0.12, 0.1, Act),
        ("complaints", 5.0, 3.0, Act),
        ("p95_latency", 0.024, 3.0, Fine),
        ("summary_cost", 0.2, 0.25, Fine),
    ];
    for (judged, expected) in judged.iter().zip(&expected) {
        assert!((judged.1 - expected.1).abs() < 1e-9, "{judged:?} {expected:?}");
        assert_eq!((judged.0, judged.2, judged.3), (expected.0, expected.2, expected.3));
    }
    assert_eq!(judged.len(), expected.len());
    assert_eq!(report.passed().count(), 4);
    // 11 questions in 7 days, 2,000 tokens each. One of 7 summaries stays, of 400 tokens in 7 days.
    assert!(report.triggers[3].cost.contains("up to 3143 a day"), "{}", report.triggers[3].cost);
    assert!(report.triggers[7].cost.contains("up to 49 tokens a day"), "{}", report.triggers[7].cost);
    assert!(report.triggers.iter().all(|row| row.missing.is_none() && !row.change.is_empty()));
}

#[test]
fn too_little_data_is_said_to_be_so() {
    let rows: Vec<RequestMetric> = (0..19).map(request).collect();
    let report = Report::of(&ReportRows { requests: rows.clone(), ..ReportRows::default() }, week());
    assert_eq!((report.recall.hit_rate, report.recall.latency), (None, Latencies::default()));
    for row in &report.triggers {
        assert_eq!((row.value, row.verdict), (None, Verdict::NotEnoughData), "{row:?}");
        assert!(row.missing.as_ref().is_some_and(|missing| !missing.is_empty()), "{row:?}");
    }
    assert_eq!((report.tokens.saved_share, report.tokens.prefix_stability), (None, None));
    // The 20th request is enough for shares. Nobody has judged it, and no model was called.
    let rows = rows.into_iter().chain([request(50)]).collect();
    let report = Report::of(&ReportRows { requests: rows, ..ReportRows::default() }, week());
    let unknown: Vec<_> =
        report.triggers.iter().filter(|row| row.value.is_none()).map(|row| row.name).collect();
    assert_eq!(unknown, ["embedding_needed", "summary_cost"]);
    // A single complaint counts also among few requests.
    let feedback = vec![Feedback { kind: FeedbackKind::Forgot, at: at(1), text: "the name".to_owned() }];
    let rows = vec![RequestMetric { feedback, ..request(1) }];
    let report = Report::of(&ReportRows { requests: rows, ..ReportRows::default() }, week());
    assert_eq!(report.triggers[5].value, Some(1.0));
}

#[test]
fn the_99th_percentile_needs_a_hundred_values() {
    let row = |number: i64| RequestMetric { latency_retrieval_us: number as u64, ..request(number) };
    let of = |count: i64| {
        let requests = (1..=count).map(row).collect();
        Report::of(&ReportRows { requests, ..ReportRows::default() }, week()).recall.latency
    };
    assert_eq!(of(99).p99, None);
    assert_eq!(of(100), Latencies { p50: Some(50), p95: Some(95), p99: Some(99) });
}

#[test]
fn a_period_whose_rows_were_not_all_read_begins_with_the_oldest_read() {
    let mut rows = ReportRows::default();
    rows.add(vec![request(5 * DAY), request(3 * DAY)], Vec::new(), week(), 2);
    let report = Report::of(&rows, week());
    assert_eq!((report.period.since, report.is_cut), (at(3 * DAY), true));
    assert_eq!((report.period.days(), report.cost.days), (4.0, 4.0));
    // A user whose rows are all known does not lengthen the period, and older rows of such a user do not count.
    rows.add(vec![request(4 * DAY), request(DAY)], Vec::new(), week(), 3);
    let report = Report::of(&rows, week());
    assert_eq!((report.period.since, report.requests), (at(3 * DAY), 3));
}

#[test]
fn jobs_from_before_the_period_do_not_shorten_it() {
    let old: Vec<Job> = (0..5).map(|day| job(None, -(10 + day) * DAY)).collect();
    let recent = job(None, 6 * DAY);
    let jobs = |extra: &[Job]| [extra, &old[..]].concat();
    let report = |jobs: Vec<Job>| {
        let mut rows = ReportRows::default();
        let limit = jobs.len() as u32;
        rows.add(vec![request(6 * DAY)], jobs, week(), limit);
        Report::of(&rows, week())
    };
    let unshortened = report(jobs(std::slice::from_ref(&recent)));
    assert_eq!((unshortened.period, unshortened.is_cut), (week(), false));
    let shortened = report(vec![recent]);
    assert_eq!((shortened.period.since, shortened.is_cut), (at(6 * DAY), true));
}

#[test]
fn each_day_of_the_period_has_its_figures() {
    let row = |second, items, micros| RequestMetric {
        context_items: items,
        latency_retrieval_us: micros,
        ..request(second)
    };
    // The period begins at 22:13:20 and touches eight days.
    let midnight = 6_400;
    let requests = vec![row(5, 1, 10), row(6, 0, 30), row(midnight, 2, 7), row(7 * DAY - 1, 0, 5)];
    let report = Report::of(&ReportRows { requests, ..ReportRows::default() }, week());
    let days: Vec<_> = report.days.iter().map(|day| (day.requests, day.hit_rate, day.p50, day.p95)).collect();
    let none = (0, None, None, None);
    let one = |rate, micros| (1, Some(rate), Some(micros), Some(micros));
    let first = (2, Some(0.5), Some(10), Some(30));
    assert_eq!(days, [first, one(1.0, 7), none, none, none, none, none, one(0.0, 5)]);
    assert_eq!(report.days[1].since, at(midnight));
}

#[test]
fn a_store_of_two_items_is_not_judged() {
    let rows = |items| ReportRows { requests: requests(), items: Some(items), ..ReportRows::default() };
    let small = Report::of(&rows(2), week());
    for trigger in &small.triggers[..5] {
        assert_eq!((trigger.verdict, trigger.value), (Verdict::NotEnoughData, None), "{}", trigger.name);
        assert_eq!(trigger.missing.as_deref(), Some("2 items are stored; 3 are needed"));
    }
    assert_eq!(small.triggers[6].name, "p95_latency");
    assert_eq!(small.triggers[6].verdict, Verdict::Fine, "recall of a small store has a time too");
    assert_eq!(Report::of(&rows(3), week()).triggers[0].verdict, Verdict::Act);
}

#[test]
fn what_is_in_force_is_not_advised() {
    let advice = |embeds, reranks| {
        let in_force = InForce { embeds, reranks, ..InForce::default() };
        let report =
            Report::of(&ReportRows { requests: requests(), in_force, ..ReportRows::default() }, week());
        assert_eq!(report.triggers[0].verdict, Verdict::Act);
        (report.triggers[0].setting, report.triggers[0].change.clone())
    };
    let (setting, change) = advice(false, false);
    assert!(setting == "embedder" && change.contains("builtin"), "{change}");
    let (setting, change) = advice(true, false);
    assert!(setting == "recall.rerank" && !change.contains("builtin"), "{change}");
    let (setting, change) = advice(true, true);
    assert!(setting == "embedder" && !change.contains("builtin") && !change.contains("reader"), "{change}");
}

#[test]
fn tokens_that_memory_adds_are_not_called_saved() {
    let row = |raw, input| {
        let mut row = request(1);
        row.prompt.raw_tokens = Some(raw);
        row.prompt.input_tokens = Some(input);
        Report::of(&ReportRows { requests: vec![row], ..ReportRows::default() }, week()).tokens.words()
    };
    assert_eq!(row(1_000, 250), "750 of 1000 (75.0 %)");
    assert_eq!(row(10, 250), "none: short sessions, to which memory added 240 tokens");
}

/// The change and the cost that a trigger advises for settings in force.
fn advised(trigger: usize, set: impl FnOnce(&mut InForce)) -> (String, String) {
    let mut in_force = InForce::default();
    set(&mut in_force);
    let report = Report::of(
        &ReportRows { requests: requests(), jobs: jobs(), in_force, ..ReportRows::default() },
        week(),
    );
    let trigger = &report.triggers[trigger];
    (trigger.change.clone(), trigger.cost.clone())
}

#[test]
fn a_larger_budget_starts_from_the_present_one() {
    let (change, cost) = advised(3, |force| {
        force.recall.budget = Budget { max_tokens: 6_500, max_turns: 1_000, max_item_chars: 900 };
    });
    assert!(change.contains("`max_context_tokens = 13000`, `max_item_chars = 1800`"), "{change}");
    assert!(!change.contains("max_context_turns"), "more turns are not possible: {change}");
    // 11 questions in 7 days.
    assert_eq!(cost, "at most 6500 input tokens more for each such question: up to 10214 a day");
    let most = Budget { max_tokens: 10_000_000, max_turns: 1_000, max_item_chars: 10_000_000 };
    let (change, cost) = advised(3, |force| force.recall.budget = most);
    assert!(!change.contains(" = ") && cost.contains("up to 0 a day"), "{change}: {cost}");
}

#[test]
fn looser_recall_starts_from_the_present_threshold() {
    let (change, cost) = advised(5, |_| ());
    assert!(change.contains("`score_threshold = 0.25`"), "{change}");
    assert!(change.contains("`default_top_k = 10` with `max_context_turns = 10`"), "{change}");
    assert!(cost.contains("2000 tokens"), "{cost}");
    let (change, _) = advised(5, |force| {
        force.recall.score_threshold = 0.04;
        force.recall.default_top_k = 700;
        force.recall.budget.max_turns = 1_000;
    });
    assert!(
        change.contains("`score_threshold = 0.00`") && change.ends_with("`default_top_k = 1000`"),
        "{change}"
    );
    let (change, _) = advised(5, |force| {
        force.recall.score_threshold = 0.0;
        force.recall.default_top_k = 1_000;
    });
    assert_eq!(change, "read the traces first");
}

#[test]
fn faster_recall_names_the_cross_encoder_only_if_it_is_in_force() {
    let (change, cost) = advised(6, |force| force.recall.index_bytes = 3_000_000_000);
    assert!(change.starts_with("`index_bytes = 12000000000`") && !change.contains("rerank"), "{change}");
    assert!(!cost.contains("order"), "{cost}");
    let (change, cost) = advised(6, |force| force.reranks = true);
    assert!(change.starts_with("`recall.rerank = \"off\"`"), "{change}");
    assert!(cost.starts_with("a less exact order"), "{cost}");
}

#[test]
fn fewer_summaries_start_from_the_present_triggers() {
    let with = |after, every, size| {
        advised(7, |force| {
            force.learn.summaries.window = WindowSettings {
                memory_summarize_after_seq: after,
                summarise_every_user_turns: every,
                memory_rolling_window_size: size,
            };
        })
    };
    let (change, _) = with(9, 0, 14);
    assert!(
        change.starts_with("`memory_summarize_after_seq = 0` and `summarise_every_user_turns = 7`"),
        "{change}"
    );
    let (change, cost) = with(0, 20, 14);
    assert!(
        change.starts_with("`summarise_every_user_turns = 40` and `memory_rolling_window_size = 80`"),
        "{change}"
    );
    // Half of 400 tokens in 7 days.
    assert!(cost.contains("up to 29 tokens"), "{cost}");
    let (change, cost) = with(0, 400, 1_000);
    assert!(change.starts_with("`summarise_every_user_turns = 500`:"), "{change}");
    // A fifth.
    assert!(cost.contains("up to 11 tokens"), "{cost}");
    for every in [0, 500] {
        assert!(with(0, every, 14).0.starts_with("`enable_summarization = false`"));
    }
}

#[test]
fn a_model_that_learns_is_not_advised_again() {
    let (change, cost) = advised(2, |force| force.learn.model_batch = 9);
    assert!(change.starts_with("`learn.model = ") && cost.contains("every 9 turns"), "{change}: {cost}");
    let (change, _) = advised(2, |force| force.learns_by_model = true);
    assert!(change.starts_with("a model learns already"), "{change}");
    let (change, _) = advised(2, |force| force.learn.enabled = false);
    assert!(change.starts_with("`learn.enabled = true`"), "{change}");
}
