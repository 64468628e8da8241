//! Recall with Strata's encoder, the encoder's speed, and its memory use. This needs the encoder's folder.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use strata_core::Store;
use strata_core::ports::{Embedder, Passage};
use strata_core::store::{Change, ChangeSet, Item};
use strata_core::vector::{ItemVector, Vector};
use strata_models::onnx::OnnxEncoder;

use crate::Bench;
use crate::corpus::{Corpus, Random};
use crate::fill::{self, MEASURED_TURNS, measured_user};
use crate::recall::{ask_all, best_round, questions, settled_megabytes};
use crate::report::{Report, Target, median, p99};
use crate::server::Served;

/// The number of items that the worker embeds at once.
const BATCH: usize = 32;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let Some(folder) = bench.encoder.clone() else {
        report.skip("no folder given: `--encoder DIR` or STRATA_BENCH_ENCODER");
        return Ok(());
    };
    let encoder = OnnxEncoder::open(&folder)?;
    let (rate, vectors) = bench.runtime.block_on(embed(&encoder, bench.size(1_000, 64)))?;
    report.add("turns embedded a second by one core", rate, "1/s", None);

    // The store has only the measured user, because the worker would embed the turns of other users meanwhile.
    let store = bench.runtime.block_on(bench.stores.with(MEASURED_TURNS, MEASURED_TURNS))?;
    let opened = bench.runtime.block_on(fill::open(&store))?;
    bench.runtime.block_on(put_vectors(&opened, encoder.model(), &vectors))?;
    bench.runtime.block_on(opened.close())?;

    let served = Served::start(&bench.binary, &store, &format!("onnx:{}", folder.display()))?;
    served.wait_until_ready()?;
    let mut client = served.connect()?;
    report.add("memory before the encoder is loaded", settled_megabytes(&served)?, "MB", None);
    let english: Vec<String> =
        questions(bench.size(750, 60), 94).into_iter().filter(|question| question.is_ascii()).collect();
    let first = ask_all(&mut client, &english[..1])?;
    report.add("first recall, which loads it", first.first().copied().unwrap_or_default(), "ms", None);
    report.add("memory after", settled_megabytes(&served)?, "MB", None);
    ask_all(&mut client, &english[..english.len() / 4])?;
    let mut times = best_round(|| ask_all(&mut client, &english))?;
    let user = format!("{MEASURED_TURNS} items of a user, questions in English");
    report.add(format!("{user}, median"), median(&mut times), "ms", Some(Target::AtMost(15.0)));
    report.add(format!("{user}, p99"), p99(&mut times), "ms", None);
    Ok(())
}

/// Embeds turns as the worker does, each with the previous turn. Returns the turns per second and the vectors.
async fn embed(encoder: &OnnxEncoder, count: usize) -> Result<(f64, Vec<Vector>)> {
    let corpus = Corpus::new();
    let mut random = Random::new(11);
    let texts: Vec<String> = (0..count).map(|_| format!("user: {}", corpus.turn(&mut random))).collect();
    let passages: Vec<Passage> = texts
        .iter()
        .enumerate()
        .map(|(place, text)| Passage {
            context: place.checked_sub(1).map(|before| texts[before].clone()),
            text: text.clone(),
        })
        .collect();
    // The first use loads the weights.
    encoder.embed_passages(&passages[..1]).await?;
    let start = Instant::now();
    let mut vectors = Vec::new();
    for batch in passages.chunks(BATCH) {
        vectors.extend(encoder.embed_passages(batch).await?.iter().map(|values| Vector::quantise(values)));
    }
    Ok((count as f64 / start.elapsed().as_secs_f64(), vectors))
}

/// Stores one of the vectors for each item of the measured user. The values do not change the time of a recall, and embedding
/// all turns would take minutes.
async fn put_vectors(store: &Arc<dyn Store>, model: &str, vectors: &[Vector]) -> Result<()> {
    let user = measured_user()?;
    let mut after = 0;
    loop {
        let items = store.feed(&user, after, 1_000).await?;
        let Some((last, _)) = items.last() else { break };
        after = *last;
        let vectors = items
            .iter()
            .map(|(_, item)| item)
            .filter(|item| matches!(item, Item::Turn(_)))
            .zip(vectors.iter().cycle());
        let vectors = vectors.map(|(item, vector)| ItemVector {
            item: item.id(),
            model: model.to_owned(),
            vector: vector.clone(),
        });
        let changes = vec![
            Change::PutVectors(vectors.collect()),
            Change::SetProgress { space: model.to_owned(), revision: after },
        ];
        store.apply(&user, ChangeSet::new(Timestamp::UNIX_EPOCH, changes)).await?;
    }
    let stored = store.vectors_since(&user, model, 0).await.context("reading the vectors back")?.len();
    ensure!(stored == MEASURED_TURNS, "{MEASURED_TURNS} items should have vectors and {stored} have");
    Ok(())
}
