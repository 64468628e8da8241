//! The binary on a store of 100,000 turns: the time from its start until it is ready, and its memory use then.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::Bench;
use crate::report::{Report, Target, median};
use crate::server::Served;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let turns = bench.size(100_000, 11_000);
    let starts = bench.size(15, 3);
    let store = bench.runtime.block_on(bench.stores.of(turns))?;
    let mut times = Vec::new();
    let mut memory = Vec::new();
    for _ in 0..starts {
        let start = Instant::now();
        let served = Served::start(&bench.binary, &store, "words")?;
        served.wait_until_ready()?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        // By now, the temporary memory of the start has been released.
        std::thread::sleep(Duration::from_millis(500));
        memory.push(served.resident_megabytes()?);
    }
    let (ready, target) = (format!("start to ready, {turns} turns"), Some(Target::AtMost(100.0)));
    report.add(ready, median(&mut times), "ms", target);
    report.add(format!("idle memory, {turns} turns"), median(&mut memory), "MB", Some(Target::AtMost(50.0)));
    // An empty store leaves nothing to embed, so the encoder is not loaded.
    let served = Served::start(&bench.binary, &bench.stores.fresh("empty"), "builtin")?;
    served.wait_until_ready()?;
    std::thread::sleep(Duration::from_millis(500));
    let idle = served.resident_megabytes()?;
    report.add("idle memory, an empty store and the encoder", idle, "MB", Some(Target::AtMost(40.0)));
    let size = fs::metadata(&bench.binary).context("reading the binary's size")?.len();
    report.add("the binary's size", size as f64 / 1e6, "MB", Some(Target::AtMost(120.0)));
    Ok(())
}
