//! Full-text search of one user with 10,000 turns. The turns are the same in a small and in a large store: the number of other
//! users' turns must not matter.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use strata_core::Store;
use strata_core::store::{CheckDepth, ItemKinds, TextMatch, TextQuery};

use crate::Bench;
use crate::corpus::{Corpus, Random};
use crate::fill::{self, MEASURED_TURNS};
use crate::report::{Report, Target, median, p99};

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let (small, large) = (bench.size(100_000, 11_000), bench.size(1_000_000, 20_000));
    let questions = bench.size(500, 50);
    let small_path = bench.runtime.block_on(bench.stores.of(small))?;
    let large_path = bench.runtime.block_on(bench.stores.of(large))?;
    let times = bench.runtime.block_on(search_both(&small_path, &large_path, questions))?;
    let Times { small: mut in_small, large: mut in_large, found } = times;
    ensure!(found > questions, "the questions find too little ({found} items) to measure anything");
    let (median_small, median_large) = (median(&mut in_small), median(&mut in_large));
    let user = format!("{MEASURED_TURNS} turns of a user");
    report.add(format!("{user} in {small}, median"), median_small, "ms", Some(Target::AtMost(2.0)));
    report.add(format!("{user} in {small}, p99"), p99(&mut in_small), "ms", None);
    report.add(format!("{user} in {large}, median"), median_large, "ms", None);
    report.add(
        format!("{large} against {small}, median"),
        median_large / median_small,
        "x",
        Some(Target::AtMost(1.5)),
    );
    let bytes = bench.runtime.block_on(bytes_a_turn(&large_path))?;
    report.add(format!("on disk, a turn of {:.0} bytes", bytes.content), bytes.stored, "bytes", None);
    Ok(())
}

struct Times {
    small: Vec<f64>,
    large: Vec<f64>,
    found: usize,
}

/// Asks both stores the same questions alternately, after a first round that is not measured.
async fn search_both(small: &Path, large: &Path, questions: usize) -> Result<Times> {
    let (small, large) = (fill::open(small).await?, fill::open(large).await?);
    let corpus = Corpus::new();
    let mut random = Random::new(99);
    let mut times = Times { small: Vec::new(), large: Vec::new(), found: 0 };
    for question in 0..questions * 2 {
        let text = corpus.question(&mut random);
        let in_small = ask(&small, &text).await?;
        let in_large = ask(&large, &text).await?;
        ensure!(
            in_small.1 == in_large.1,
            "`{text}` finds {} in one store and {} in the other",
            in_small.1,
            in_large.1
        );
        if question >= questions {
            times.small.push(in_small.0);
            times.large.push(in_large.0);
            times.found += in_small.1;
        }
    }
    small.close().await?;
    large.close().await?;
    Ok(times)
}

/// The milliseconds of a question, and the number of its results.
pub(crate) async fn ask(store: &Arc<dyn Store>, text: &str) -> Result<(f64, usize)> {
    let user = fill::measured_user()?;
    let query = TextQuery {
        text: text.to_owned(),
        matching: TextMatch::Words,
        session: None,
        kinds: ItemKinds::ALL,
        as_of: None,
        keep: None,
        limit: 10,
    };
    let start = Instant::now();
    let hits = store.search(&user, &query).await?;
    Ok((start.elapsed().as_secs_f64() * 1000.0, hits.len()))
}

struct Bytes {
    stored: f64,
    content: f64,
}

async fn bytes_a_turn(path: &Path) -> Result<Bytes> {
    let store = fill::open(path).await?;
    let health = store.check(CheckDepth::Quick).await?;
    store.close().await?;
    let corpus = Corpus::new();
    let mut random = Random::new(0);
    let sample: usize = (0..MEASURED_TURNS).map(|_| corpus.turn(&mut random).len()).sum();
    Ok(Bytes {
        stored: health.bytes as f64 / health.turns as f64,
        content: sample as f64 / MEASURED_TURNS as f64,
    })
}
