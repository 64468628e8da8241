//! Recall with Strata's encoder, the encoder's speed, and its memory use.
//!
//! It is the encoder inside the binary, or the one of a folder.

use anyhow::Result;
use strata_models::onnx::OnnxEncoder;

use crate::Bench;
use crate::fill::MEASURED_TURNS;
use crate::recall::{ask_all, best_round, questions, settled_megabytes};
use crate::report::{Report, Target, median, p99};
use crate::server::Served;
use crate::vectors::{builtin, embed, embedded};

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let (encoder, name) = match &bench.encoder {
        Some(folder) => (OnnxEncoder::open(folder)?, format!("onnx:{}", folder.display())),
        None => (builtin()?, "builtin".to_owned()),
    };
    let (rate, _) = bench.runtime.block_on(embed(&encoder, bench.size(1_000, 64)))?;
    report.add("turns embedded a second by one core", rate, "1/s", None);
    let store = embedded(bench, &encoder, MEASURED_TURNS)?;
    let served = Served::start(&bench.binary, &store, &name)?;
    served.wait_until_ready()?;
    let mut client = served.connect()?;
    report.add("memory before the encoder is loaded", settled_megabytes(&served)?, "MB", None);
    let english: Vec<String> =
        questions(bench.size(750, 60), 94).into_iter().filter(|question| question.is_ascii()).collect();
    let first = ask_all(&mut client, &english[..1])?;
    report.add("first recall, which loads it", first.first().copied().unwrap_or_default(), "ms", None);
    report.add("memory after", settled_megabytes(&served)?, "MB", Some(Target::AtMost(200.0)));
    ask_all(&mut client, &english[..english.len() / 4])?;
    let mut times = best_round(|| ask_all(&mut client, &english))?;
    let user = format!("{MEASURED_TURNS} items of a user, questions in English");
    report.add(format!("{user}, median"), median(&mut times), "ms", Some(Target::AtMost(15.0)));
    report.add(format!("{user}, p99"), p99(&mut times), "ms", None);
    Ok(())
}
