//! Working contexts as files: loading, saving and compacting them.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use strata_context::ContextManager;
use strata_core::context::{ContextCompactor, ContextData, HistoryEntry};

use crate::Bench;
use crate::corpus::{Corpus, Random};
use crate::report::{Report, Target, median};

const ROUNDS: usize = 50;
const BYTES: usize = 100_000;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let folder = bench.stores.fresh("contexts");
    let context = context_of(BYTES);
    let text = context.to_json();
    let (mut saves, mut loads, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
    bench.runtime.block_on(async {
        let manager = ContextManager::new(&folder);
        manager.initialize().await?;
        for _ in 0..ROUNDS {
            syncs.push(milliseconds(|| sync(&folder, text.as_bytes()))?);
            let start = Instant::now();
            manager.save(&context).await?;
            saves.push(start.elapsed().as_secs_f64() * 1e3);
            let start = Instant::now();
            manager.load(&context.session_id).await?;
            loads.push(start.elapsed().as_secs_f64() * 1e3);
        }
        anyhow::Ok(())
    })?;
    let sync = median(&mut syncs);
    report.add("load a context of 100 KB", median(&mut loads), "ms", Some(Target::AtMost(1.0)));
    let save = (median(&mut saves) - sync).max(0.0);
    report.add("save it, without the syncs", save, "ms", Some(Target::AtMost(1.0)));
    report.add("the syncs: file and folder", sync, "ms", None);

    let entries = bench.size(10_000, 1_000);
    let full = history(entries);
    let mut times: Vec<f64> = Vec::new();
    for _ in 0..5 {
        let mut context = full.clone();
        times.push(milliseconds(|| {
            ContextCompactor::compact(&mut context);
            Ok(())
        })?);
    }
    let name = format!("compact {entries} entries");
    report.add(name, median(&mut times), "ms", Some(Target::AtMost(10.0)));
    Ok(())
}

fn milliseconds(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// The disk's part of a save: writing and syncing the file and its folder.
fn sync(folder: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = File::create(folder.join("sync"))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    File::open(folder)?.sync_all()?;
    Ok(())
}

/// A context whose document has about `bytes` bytes.
fn context_of(bytes: usize) -> ContextData {
    let mut entries = 10;
    loop {
        let context = history(entries);
        if context.to_json().len() >= bytes {
            return context;
        }
        entries += 10;
    }
}

fn history(entries: usize) -> ContextData {
    let (corpus, mut random) = (Corpus::new(), Random::new(7));
    let mut context = ContextData::new("bench");
    context.recent_history = (0..entries)
        .map(|place| HistoryEntry {
            timestamp: 1_700_000_000 + place as i64,
            role: if place % 2 == 0 { "user" } else { "assistant" }.to_owned(),
            content: corpus.turn(&mut random),
            token_count: Some(20),
        })
        .collect();
    context
}
