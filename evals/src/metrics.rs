//! The figures, from what was brought back and what should have been. No I/O.
//!
//! For a question with evidence `E`, `T_k` being all ids in the first `k` places of the ranking:
//!
//! - `R@k` is the share of `E` that is in `T_k`; `Hit@k` is 1 if any of it is, `All@k` if all of it is.
//! - `NDCG@k` gives each place that brings evidence not seen above it `1/log2(place + 1)`, divided by what the best
//!   ranking would get; `NDCGlme@k` does so with LongMemEval's discount, 1 for the first place and then `1/log2(place)`.
//! - `MRR` is one over the first place with evidence.
//! - Where turns conflict, `Fresh@k` is 1 if one that holds now is in `T_k`, and `FreshFirst` if it stands above all that
//!   held once.
//!
//! A place may hold several ids (a memory made of several turns); a place that only repeats ids from above is not counted.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

/// One place of a ranking: one id, or several ids for an item that was made from several turns.
pub type Slot = Vec<String>;

/// Metrics by name.
pub type Metrics = BTreeMap<&'static str, f64>;

/// The names of the metrics, in the order of the report.
pub const NAMES: [&str; 15] = [
    "R@5",
    "Hit@5",
    "All@5",
    "R@10",
    "Hit@10",
    "All@10",
    "R@20",
    "Hit@20",
    "All@20",
    "NDCG@10",
    "NDCGlme@10",
    "MRR",
    "Fresh@5",
    "Fresh@10",
    "FreshFirst",
];

/// The number of bootstrap samples of a confidence interval.
const DRAWS: usize = 1000;

/// The unit of the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The turns of the evidence.
    Turn,
    /// The sessions of the evidence.
    Session,
}

/// The metrics of one question. Its evidence must not be empty.
pub(crate) fn question_metrics(
    ranked: &[Slot],
    evidence: &[String],
    latest: &[String],
    stale: &[String],
) -> Metrics {
    let evidence: HashSet<&str> = evidence.iter().map(String::as_str).collect();
    let slots = places(ranked);
    let mut metrics = Metrics::new();
    // No id is in two places, so any evidence in a place is new.
    let gains: Vec<f64> =
        slots.iter().map(|slot| f64::from(slot.iter().any(|id| evidence.contains(id)))).collect();
    for (k, [recall, hit, all]) in [
        (5, ["R@5", "Hit@5", "All@5"]),
        (10, ["R@10", "Hit@10", "All@10"]),
        (20, ["R@20", "Hit@20", "All@20"]),
    ] {
        let found = slots.iter().take(k).flatten().filter(|id| evidence.contains(*id)).count();
        metrics.insert(recall, found as f64 / evidence.len() as f64);
        metrics.insert(hit, f64::from(found > 0));
        metrics.insert(all, f64::from(found == evidence.len()));
    }
    let best = vec![1.0; evidence.len().min(10)];
    let gains_10 = &gains[..gains.len().min(10)];
    metrics.insert("NDCG@10", dcg(gains_10) / dcg(&best));
    metrics.insert("NDCGlme@10", dcg_lme(gains_10) / dcg_lme(&best));
    metrics.insert(
        "MRR",
        gains.iter().position(|gain| *gain > 0.0).map_or(0.0, |place| 1.0 / (place + 1) as f64),
    );
    if !latest.is_empty() {
        let place_of: HashMap<&str, usize> = slots
            .iter()
            .enumerate()
            .flat_map(|(place, slot)| slot.iter().map(move |id| (*id, place)))
            .collect();
        let first = |ids: &[String]| ids.iter().filter_map(|id| place_of.get(id.as_str())).min().copied();
        let (fresh, stale) = (first(latest), first(stale));
        metrics.insert("Fresh@5", f64::from(fresh.is_some_and(|place| place < 5)));
        metrics.insert("Fresh@10", f64::from(fresh.is_some_and(|place| place < 10)));
        let above = fresh.is_some_and(|fresh| stale.is_none_or(|stale| fresh < stale));
        metrics.insert("FreshFirst", f64::from(above));
    }
    metrics
}

/// The places with at least one new id, each with its new ids only.
fn places(ranked: &[Slot]) -> Vec<Vec<&str>> {
    let mut seen = HashSet::new();
    let new =
        ranked.iter().map(|slot| slot.iter().map(String::as_str).filter(|id| seen.insert(*id)).collect());
    new.filter(|slot: &Vec<&str>| !slot.is_empty()).collect()
}

fn dcg(gains: &[f64]) -> f64 {
    gains.iter().enumerate().map(|(i, gain)| gain / ((i + 2) as f64).log2()).sum()
}

fn dcg_lme(gains: &[f64]) -> f64 {
    let rest: f64 = gains.iter().enumerate().skip(1).map(|(i, gain)| gain / ((i + 1) as f64).log2()).sum();
    gains.first().copied().unwrap_or(0.0) + rest
}

/// The mean metrics of some questions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The number of questions.
    pub n: usize,
    /// The means, each over the questions that have the metric.
    #[serde(flatten)]
    pub metrics: Metrics,
}

/// The metrics of a set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Over all questions.
    pub overall: Row,
    /// Half the width of the 95 % confidence interval, by bootstrap over the questions.
    pub ci95: Metrics,
    /// The mean of the categories' means.
    #[serde(rename = "macro")]
    pub macro_mean: Metrics,
    /// By category.
    pub categories: BTreeMap<String, Row>,
}

/// Summarises the metrics of questions, each with its category.
pub fn summarise(questions: &[(&str, Metrics)]) -> Summary {
    let mut by_category: BTreeMap<String, Vec<&Metrics>> = BTreeMap::new();
    for (category, metrics) in questions {
        by_category.entry((*category).to_owned()).or_default().push(metrics);
    }
    let categories: BTreeMap<String, Row> =
        by_category.into_iter().map(|(category, metrics)| (category, row(&metrics))).collect();
    let all: Vec<&Metrics> = questions.iter().map(|(_, metrics)| metrics).collect();
    let (mut random, mut ci95, mut macro_mean) = (Random(7), Metrics::new(), Metrics::new());
    for name in NAMES {
        let values: Vec<f64> = all.iter().filter_map(|metrics| metrics.get(name).copied()).collect();
        if values.len() > 1 {
            ci95.insert(name, half_interval(&values, &mut random));
        }
        let means: Vec<f64> = categories.values().filter_map(|row| row.metrics.get(name).copied()).collect();
        if let Some(mean) = mean(&means) {
            macro_mean.insert(name, mean);
        }
    }
    Summary { overall: row(&all), ci95, macro_mean, categories }
}

fn row(questions: &[&Metrics]) -> Row {
    let of = |name: &'static str| {
        let values: Vec<f64> = questions.iter().filter_map(|metrics| metrics.get(name).copied()).collect();
        Some((name, mean(&values)?))
    };
    Row { n: questions.len(), metrics: NAMES.into_iter().filter_map(of).collect() }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Half the width between the 2.5th and the 97.5th percentile of the means of samples drawn with replacement.
fn half_interval(values: &[f64], random: &mut Random) -> f64 {
    let mut means: Vec<f64> = (0..DRAWS)
        .map(|_| {
            (0..values.len()).map(|_| values[random.below(values.len())]).sum::<f64>() / values.len() as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    (means[974] - means[25]) / 2.0
}

/// SplitMix64 (Steele and others, 2014): small, seeded, and good enough to draw samples.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// A ranking: places are separated by `|`, ids by spaces.
    fn ranking(text: &str) -> Vec<Slot> {
        text.split('|').map(ids).filter(|slot| !slot.is_empty()).collect()
    }

    /// Checks the named metrics; the expected values were computed by hand.
    #[track_caller]
    fn check(ranked: &str, evidence: &str, expected: &[(&'static str, f64)]) {
        check_fresh(ranked, evidence, "", "", expected);
    }

    #[track_caller]
    fn check_fresh(
        ranked: &str,
        evidence: &str,
        latest: &str,
        stale: &str,
        expected: &[(&'static str, f64)],
    ) {
        let metrics = question_metrics(&ranking(ranked), &ids(evidence), &ids(latest), &ids(stale));
        for (name, value) in expected {
            let found = metrics.get(name).copied();
            let close = found.is_some_and(|found| (found - value).abs() < 1e-9);
            assert!(close, "{ranked} for {evidence}: {name} is {found:?}, expected {value}");
        }
    }

    #[test]
    fn a_share_of_the_evidence_is_found() {
        check(
            "x | a | y | b",
            "a b c",
            &[
                ("R@5", 2.0 / 3.0),
                ("Hit@5", 1.0),
                ("All@5", 0.0),
                ("MRR", 0.5),
                // (1/log2 3 + 1/log2 5) / (1 + 1/log2 3 + 1/log2 4)
                ("NDCG@10", (0.630_929_753_571_457_4 + 0.430_676_558_073_393_06) / 2.130_929_753_571_457_4),
                // (1/log2 2 + 1/log2 4) / (1 + 1/log2 2 + 1/log2 3)
                ("NDCGlme@10", 1.5 / 2.630_929_753_571_457_4),
            ],
        );
        check(
            "",
            "a",
            &[("R@20", 0.0), ("Hit@20", 0.0), ("MRR", 0.0), ("NDCG@10", 0.0), ("NDCGlme@10", 0.0)],
        );
        check("a", "a", &[("R@5", 1.0), ("All@5", 1.0), ("MRR", 1.0), ("NDCG@10", 1.0), ("NDCGlme@10", 1.0)]);
    }

    #[test]
    fn each_depth_counts_its_own_places() {
        let ranked = "1 | 2 | 3 | 4 | 5 | a | 7 | 8 | 9 | 10 | b";
        check(ranked, "a b", &[("R@5", 0.0), ("R@10", 0.5), ("All@10", 0.0), ("R@20", 1.0), ("All@20", 1.0)]);
        check(ranked, "a b", &[("MRR", 1.0 / 6.0)]);
    }

    #[test]
    fn a_repeated_place_is_dropped_and_a_place_may_hold_several() {
        // The second place repeats the first and is dropped, so `a` is in the fifth.
        check("1 | 1 | 2 | 3 | 4 | a", "a", &[("R@5", 1.0), ("MRR", 0.2)]);
        check("1 2 | 2 a b | c", "a b c d", &[("R@5", 0.75), ("MRR", 0.5)]);
        // Two pieces of evidence in one place count once: (1/log2 3 + 1/log2 4) over the best four places.
        let best = 1.0 + 0.630_929_753_571_457_4 + 0.5 + 0.430_676_558_073_393_06;
        check("1 2 | 2 a b | c", "a b c d", &[("NDCG@10", (0.630_929_753_571_457_4 + 0.5) / best)]);
    }

    #[test]
    fn evidence_named_twice_counts_once() {
        check("a", "a a", &[("R@5", 1.0), ("All@5", 1.0), ("NDCG@10", 1.0)]);
    }

    #[test]
    fn the_newest_of_conflicting_turns_comes_first_or_not() {
        let fresh = |value| [("FreshFirst", value)];
        check_fresh("new | old", "new", "new", "old", &fresh(1.0));
        check_fresh("old | new", "new", "new", "old", &fresh(0.0));
        check_fresh("x | new", "new", "new", "old", &fresh(1.0));
        check_fresh("x | y", "new", "new", "old", &fresh(0.0));
        check_fresh("new old", "new", "new", "old", &fresh(0.0));
        check_fresh("old2 | new | old", "new", "new", "old", &fresh(1.0));
        check_fresh("1|2|3|4|5|new", "new", "new", "old", &[("Fresh@5", 0.0), ("Fresh@10", 1.0)]);
        let without = question_metrics(&ranking("a"), &ids("a"), &[], &[]);
        assert!(!without.contains_key("FreshFirst") && !without.contains_key("Fresh@5"));
    }

    #[test]
    fn means_by_category_over_all_and_of_categories() {
        let question = |ranked: &str| question_metrics(&ranking(ranked), &ids("a"), &[], &[]);
        let fresh = question_metrics(&ranking("a"), &ids("a"), &ids("a"), &ids("b"));
        let questions = [("x", question("a")), ("x", question("b")), ("x", question("b")), ("y", fresh)];
        let summary = summarise(&questions);
        assert_eq!((summary.overall.n, summary.categories["x"].n, summary.categories["y"].n), (4, 3, 1));
        assert_eq!(summary.overall.metrics["R@5"], 0.5);
        assert_eq!(summary.categories["x"].metrics["R@5"], 1.0 / 3.0);
        assert_eq!(summary.macro_mean["R@5"], (1.0 / 3.0 + 1.0) / 2.0);
        // A metric that only some questions have is the mean over these.
        assert_eq!(summary.overall.metrics["FreshFirst"], 1.0);
        assert!(!summary.categories["x"].metrics.contains_key("FreshFirst"));
        assert!(!summary.ci95.contains_key("FreshFirst"));
    }

    #[test]
    fn the_interval_is_that_of_a_proportion() {
        // 400 questions of which half hit: 1.96 * sqrt(0.25 / 400) = 0.049.
        let values: Vec<f64> = (0..400).map(|i| f64::from(i % 2)).collect();
        let half = half_interval(&values, &mut Random(7));
        assert!((half - 0.049).abs() < 0.005, "{half}");
        assert_eq!(half, half_interval(&values, &mut Random(7)));
        assert_eq!(half_interval(&[1.0; 30], &mut Random(7)), 0.0);
    }

    #[test]
    fn no_questions_have_no_metrics() {
        let summary = summarise(&[]);
        assert_eq!(summary.overall.n, 0);
        assert!(
            summary.overall.metrics.is_empty() && summary.ci95.is_empty() && summary.macro_mean.is_empty()
        );
    }
}
