//! Vectors of Strata's encoder, for stores in which nothing is left to embed.

use std::path::PathBuf;
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
use crate::fill::{self, measured_user};

/// The number of items that the worker embeds at once.
const BATCH: usize = 32;

/// The encoder inside the binary, under the name that the binary gives it.
pub(crate) fn builtin() -> Result<OnnxEncoder> {
    Ok(OnnxEncoder::of_program("strata-encoder", strata_weights::ENCODER)?)
}

/// A store of the measured user alone, all of whose items have vectors, so that the worker has nothing to embed.
pub(crate) fn embedded(bench: &mut Bench, encoder: &OnnxEncoder, turns: usize) -> Result<PathBuf> {
    let store = bench.runtime.block_on(bench.stores.with(turns, turns))?;
    bench.runtime.block_on(async {
        let (_, vectors) = embed(encoder, BATCH).await?;
        let opened = fill::open(&store).await?;
        put_vectors(&opened, encoder.model(), &vectors, turns).await?;
        opened.close().await?;
        Ok(store.clone())
    })
}

/// Embeds turns as the worker does, each with the previous turn. Returns the turns per second and the vectors.
pub(crate) async fn embed(encoder: &OnnxEncoder, count: usize) -> Result<(f64, Vec<Vector>)> {
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
async fn put_vectors(store: &Arc<dyn Store>, model: &str, vectors: &[Vector], turns: usize) -> Result<()> {
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
    ensure!(stored == turns, "{turns} items should have vectors and {stored} have");
    Ok(())
}
