//! The advice of a trigger: which setting to change, from the values in force, and what the change costs.
//!
//! Each `key = value` is a line that `strata.toml` accepts and that differs from the present one; a test beside the table of
//! settings reads them all.

use std::fmt::Display;

use super::InForce;
use crate::learn::window::WindowSettings;
use crate::maintenance::EmbedItems;
use crate::recall::{Budget, MAX_LIMIT, RecallSettings};

/// The largest values that the settings `max_context_tokens` and `max_item_chars` accept.
const MAX_BUDGET: u32 = 10_000_000;

/// The largest value that the setting `summarise_every_user_turns` accepts. Its window of twice as many turns is the largest
/// that `memory_rolling_window_size` accepts.
const MAX_USER_TURNS: u64 = 500;

/// How far one step lowers `score_threshold`: a tenth of its scale. The traces show whether the next items help.
const THRESHOLD_STEP: f32 = 0.1;

/// The least bytes of the indexes that advice starts from; four times as many are the default of `index_bytes`.
const MIN_INDEX_BYTES: usize = 64 * 1024 * 1024;

/// A change, and what it costs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Advice {
    /// The setting to change.
    pub(super) setting: &'static str,
    /// How to change it.
    pub(super) change: String,
    /// The costs.
    pub(super) cost: String,
}

impl Advice {
    fn new(setting: &'static str, change: impl Into<String>, cost: impl Into<String>) -> Self {
        Self { setting, change: change.into(), cost: cost.into() }
    }
}

/// A line of `strata.toml`.
fn line(key: &str, value: impl Display) -> String {
    format!("`{key} = {value}`")
}

/// Twice a value, at most `most`; `None` if it has no room to grow.
fn doubled(value: u32, most: u32) -> Option<u32> {
    (value < most).then(|| value.saturating_mul(2).clamp(1, most))
}

/// The next step towards answers that share no words with their questions.
pub(super) fn by_meaning(in_force: &InForce) -> Advice {
    match (in_force.embeds, in_force.reranks) {
        (false, _) => Advice::new(
            "embedder",
            "`embedder = \"builtin\"` compares by meaning",
            "5 to 15 ms of one core for a question and about 30 ms for a turn",
        ),
        (true, false) => Advice::new(
            "recall.rerank",
            "an embedder is in force and serves such questions; if answers are missing, `recall.rerank = \"reader\"`",
            "5 to 40 ms of one core for each of 20 candidates",
        ),
        (true, true) => {
            let Advice { setting, change, cost } = larger_encoder(in_force);
            let known = "an embedder and a cross-encoder are in force and serve such questions; if answers are missing";
            Advice { setting, change: format!("{known}, {change}"), cost }
        }
    }
}

/// An encoder, or a larger one than the one in force.
pub(super) fn larger_encoder(in_force: &InForce) -> Advice {
    if !in_force.embeds {
        return by_meaning(in_force);
    }
    let all = match in_force.embed {
        EmbedItems::All => String::new(),
        EmbedItems::Auto | EmbedItems::Derived => ", and `embed = \"all\"`".to_owned(),
    };
    Advice::new(
        "embedder",
        format!("a larger encoder: `embedder = \"onnx:DIR\"` or `embedder = \"URL#MODEL\"`{all}"),
        "all items are embedded again: about 30 ms of one core a turn, or the remote model's price",
    )
}

/// A model that learns, or a larger one.
pub(super) fn learning_model(in_force: &InForce) -> Advice {
    if !in_force.learn.enabled {
        let change = format!("{} learns memories beside the summaries", line("learn.enabled", true));
        return Advice::new("learn.enabled", change, "10 to 30 ms of one core for a sentence");
    }
    if in_force.learns_by_model {
        let change = "a model learns already; a larger one (`learn.model = \"URL#MODEL\"`) writes more structured summaries";
        return Advice::new("learn.model", change, "its price, for as many calls as now");
    }
    let cost = format!(
        "one call of the model for every {} turns of the user (`learn.model_batch`), and one for each summary",
        in_force.learn.model_batch
    );
    let change = "`learn.model = \"URL#MODEL\"` writes structured summaries and more memories";
    Advice::new("learn.model", change, cost)
}

/// A budget of twice the size, where `cut_a_day` questions a day lose something to the present one.
pub(super) fn larger_budget(in_force: &InForce, cut_a_day: f64) -> Advice {
    let Budget { max_tokens, max_turns, max_item_chars } = in_force.recall.budget;
    let limits = [
        ("max_context_tokens", max_tokens, MAX_BUDGET),
        ("max_context_turns", max_turns, MAX_LIMIT),
        ("max_item_chars", max_item_chars, MAX_BUDGET),
    ];
    let lines: Vec<String> =
        limits.iter().filter_map(|(key, value, most)| Some(line(key, doubled(*value, *most)?))).collect();
    let change = match lines.is_empty() {
        true => "the budget has the largest values that it accepts; ask for fewer items".to_owned(),
        false => format!("the traces say which limit excluded an item: {}", lines.join(", ")),
    };
    let more = doubled(max_tokens, MAX_BUDGET).map_or(0, |larger| larger - max_tokens);
    let a_day = cut_a_day * f64::from(more);
    let cost = format!("at most {more} input tokens more for each such question: up to {a_day:.0} a day");
    Advice::new("max_context_tokens", change, cost)
}

/// More items, and less relevant ones.
pub(super) fn looser_recall(in_force: &InForce) -> Advice {
    let RecallSettings { score_threshold, default_top_k, budget, .. } = &in_force.recall;
    let mut steps = vec!["read the traces first".to_owned()];
    let lower = (score_threshold - THRESHOLD_STEP).max(0.0);
    if *score_threshold >= 0.01 {
        steps.push(format!(
            "if items were «not relevant enough», {}",
            line("score_threshold", format!("{lower:.2}"))
        ));
    }
    if let Some(more) = doubled(*default_top_k, MAX_LIMIT) {
        let turns = (budget.max_turns < more).then(|| format!(" with {}", line("max_context_turns", more)));
        let items = line("default_top_k", more);
        steps.push(format!("if «others were better», {items}{}", turns.unwrap_or_default()));
    }
    let setting = if *score_threshold >= 0.01 { "score_threshold" } else { "default_top_k" };
    let cost = format!(
        "more items of lower relevance, at most {} tokens a question (`max_context_tokens`)",
        budget.max_tokens
    );
    Advice::new(setting, steps.join("; "), cost)
}

/// Recall that takes less time.
pub(super) fn faster_recall(in_force: &InForce) -> Advice {
    let bytes = in_force.recall.index_bytes.max(MIN_INDEX_BYTES).saturating_mul(4).min(i64::MAX as usize);
    let mut steps = Vec::new();
    if in_force.reranks {
        steps.push(
            "`recall.rerank = \"off\"` spares the cross-encoder, which reads 20 candidates a question"
                .to_owned(),
        );
    }
    if bytes > in_force.recall.index_bytes {
        steps.push(format!("{} keeps more users in memory", line("index_bytes", bytes)));
    }
    steps.push("several processes on PostgreSQL".to_owned());
    let memory = "1.7 kB of memory for each item of a user that asks";
    match in_force.reranks {
        true => {
            Advice::new("recall.rerank", steps.join("; "), format!("a less exact order of results; {memory}"))
        }
        false => Advice::new("index_bytes", steps.join("; "), memory),
    }
}

/// Fewer summaries, where they cost so many tokens a day.
pub(super) fn fewer_summaries(in_force: &InForce, tokens_a_day: f64) -> Advice {
    let window = in_force.learn.summaries.window;
    match window.summarise_every_user_turns {
        _ if window.memory_summarize_after_seq > 0 => not_every_round(window, tokens_a_day),
        0 | MAX_USER_TURNS.. => no_summaries(tokens_a_day),
        every => half_as_often(window, every, tokens_a_day),
    }
}

/// Every round makes a summary: only the trigger that counts the user's turns stays.
fn not_every_round(window: WindowSettings, tokens_a_day: f64) -> Advice {
    let usual = WindowSettings::default().summarise_every_user_turns;
    let (every, and) = match window.summarise_every_user_turns {
        0 => (usual, format!(" and {}", line("summarise_every_user_turns", usual))),
        every => (every, String::new()),
    };
    let change = format!(
        "{}{and}: one summary for every {every} turns of the user instead of one for every round",
        line("memory_summarize_after_seq", 0)
    );
    let saved = tokens_a_day * (1.0 - 1.0 / every as f64);
    Advice::new("memory_summarize_after_seq", change, saves(saved))
}

/// The window grows with its trigger, so that no turn leaves it before it is summarised.
fn half_as_often(window: WindowSettings, every: u64, tokens_a_day: f64) -> Advice {
    let rarer = (every * 2).min(MAX_USER_TURNS);
    let wider = match window.memory_rolling_window_size < rarer * 2 {
        true => format!(" and {}", line("memory_rolling_window_size", rarer * 2)),
        false => String::new(),
    };
    let change =
        format!("{}{wider}: one summary for twice as many turns", line("summarise_every_user_turns", rarer));
    let saved = tokens_a_day * (1.0 - every as f64 / rarer as f64);
    Advice::new("summarise_every_user_turns", change, saves(saved))
}

fn saves(tokens_a_day: f64) -> String {
    format!("saves up to {tokens_a_day:.0} tokens a day; the newest turns wait longer for their summary")
}

fn no_summaries(tokens_a_day: f64) -> Advice {
    let change = format!("{}: only clients ask for summaries", line("enable_summarization", false));
    let cost = format!("saves up to {tokens_a_day:.0} tokens a day; sessions are no longer summarised");
    Advice::new("enable_summarization", change, cost)
}
