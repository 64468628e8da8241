//! Recall over HTTP on the real binary: a small user with words alone and with the encoder; then with words alone, which shows the
//! rest best: warm, cold, with many clients, in a large store, and with a growing user.
//!
//! Rounds are repeated and the best is reported, because other work of the machine can only add time.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use strata_core::lexicon;
use strata_models::BuiltinLexicon;

use crate::Bench;
use crate::corpus::{Corpus, Random};
use crate::fill::{MEASURED_TURNS, measured_user};
use crate::report::{Report, Target, median, p99};
use crate::server::{Client, Served};
use crate::vectors::{builtin, embedded};

const ROUNDS: usize = 3;
const CLIENTS: usize = 8;

/// The word vectors alone.
pub(crate) const WORDS: &str = "words";

/// The words and the encoder together.
pub(crate) const BUILTIN: &str = "builtin";

/// The turns of a user whose recall has a target for each embedder.
const SMALL_USER: usize = 1_000;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    measure_words(bench, report)?;
    measure_embedders(bench, report)?;
    measure_warm(bench, report)?;
    measure_crowd(bench, report)?;
    measure_cold(bench, report)?;
    measure_store_size(bench, report)?;
    measure_growth(bench, report)
}

/// Questions of five to twelve words, one in three Chinese; the same in every run.
pub(crate) fn questions(count: usize, seed: u64) -> Vec<String> {
    let corpus = Corpus::new();
    let mut random = Random::new(seed);
    (0..count).map(|_| corpus.long_question(&mut random)).collect()
}

/// The milliseconds of each question of the measured user.
pub(crate) fn ask_all(client: &mut Client, questions: &[String]) -> Result<Vec<f64>> {
    let user = measured_user()?;
    questions.iter().map(|question| Ok(client.search(user.as_str(), question)?.0)).collect()
}

/// The times of the round with the smallest median.
pub(crate) fn best_round(mut round: impl FnMut() -> Result<Vec<f64>>) -> Result<Vec<f64>> {
    let mut rounds = (0..ROUNDS).map(|_| round()).collect::<Result<Vec<_>>>()?;
    rounds.sort_by(|a, b| median(&mut a.clone()).total_cmp(&median(&mut b.clone())));
    Ok(rounds.swap_remove(0))
}

fn serve(bench: &Bench, store: &Path) -> Result<Served> {
    let served = Served::start(&bench.binary, store, WORDS)?;
    served.wait_until_ready()?;
    Ok(served)
}

/// Asks one question of a user without data, which prepares the data that all users share.
fn ask_for_nobody(client: &mut Client) -> Result<f64> {
    Ok(client.search("nobody", "what did we say about the garden 花园")?.0)
}

fn measure_words(bench: &Bench, report: &mut Report) -> Result<()> {
    let lexicon = BuiltinLexicon::new();
    let sentences = questions(bench.size(2_000, 100), 5);
    let embed = || {
        let time = |sentence: &String| {
            let start = Instant::now();
            black_box(lexicon::mean(&lexicon, black_box(sentence)));
            start.elapsed().as_secs_f64() * 1000.0
        };
        Ok(sentences.iter().map(time).collect())
    };
    let mut times = best_round(embed)?;
    let target = Some(Target::AtMost(0.1));
    report.add("embedding a short sentence, median", median(&mut times), "ms", target);
    Ok(())
}

/// The same questions with words alone and with the encoder, in English and in Chinese: a Chinese text reaches the encoder
/// as glosses, and is ranked by more of its words.
fn measure_embedders(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let store = embedded(bench, &builtin()?, SMALL_USER)?;
    let (english, chinese): (Vec<String>, Vec<String>) =
        questions(bench.size(450, 60), 93).into_iter().partition(|question| question.is_ascii());
    for (embedder, most) in [(WORDS, 1.0), (BUILTIN, 10.0)] {
        let served = Served::start(&bench.binary, &store, embedder)?;
        served.wait_until_ready()?;
        let mut client = served.connect()?;
        ask_all(&mut client, &english[..english.len() / 4])?;
        let name = format!("{SMALL_USER} items of a user, {embedder}");
        for (name, asked) in [(name.clone(), &english), (format!("{name}, in Chinese"), &chinese)] {
            let mut times = best_round(|| ask_all(&mut client, asked))?;
            report.add(format!("{name}, median"), median(&mut times), "ms", Some(Target::AtMost(most)));
            report.add(format!("{name}, p99"), p99(&mut times), "ms", None);
        }
        report.add(format!("{name}, memory"), settled_megabytes(&served)?, "MB", None);
    }
    Ok(())
}

fn measure_warm(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let turns = bench.size(100_000, 11_000);
    let store = bench.runtime.block_on(bench.stores.of(turns))?;
    let served = serve(bench, &store)?;
    let mut client = served.connect()?;
    let questions = questions(bench.size(600, 60), 99);
    let mut found = 0;
    for question in &questions {
        let (_, answer) = client.search(measured_user()?.as_str(), question)?;
        found += answer["results"].as_array().map_or(0, Vec::len);
    }
    ensure!(found > questions.len(), "the questions find too little ({found} items) to measure anything");
    let mut times = best_round(|| ask_all(&mut client, &questions))?;
    let user = format!("{MEASURED_TURNS} items of a user in {turns}");
    report.add(format!("{user}, median"), median(&mut times), "ms", Some(Target::AtMost(3.0)));
    report.add(format!("{user}, p99"), p99(&mut times), "ms", Some(Target::AtMost(10.0)));
    Ok(())
}

fn measure_crowd(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let store = bench.runtime.block_on(bench.stores.of(bench.size(100_000, 11_000)))?;
    let served = serve(bench, &store)?;
    let each = bench.size(100, 10);
    ask_all(&mut served.connect()?, &questions(each, 98))?;
    let (mut one, mut many) = (Vec::new(), Vec::new());
    // The rounds alternate, so that a slow minute of the machine affects both.
    for _ in 0..ROUNDS {
        one.push(rate(&served, 1, each * CLIENTS)?);
        many.push(rate(&served, CLIENTS, each)?);
    }
    let best = |rates: Vec<f64>| rates.into_iter().fold(0.0, f64::max);
    let (one, many) = (best(one), best(many));
    report.add("one client", one, "1/s", None);
    report.add(format!("{CLIENTS} clients"), many, "1/s", None);
    let target = Some(Target::AtLeast(1.5));
    report.add(format!("{CLIENTS} clients against one"), many / one, "x", target);
    Ok(())
}

/// The number of answers per second for `clients` clients with `each` questions each. Generating the questions is not measured.
fn rate(served: &Served, clients: usize, each: usize) -> Result<f64> {
    let asked: Vec<_> = (0..clients).map(|client| questions(each, 1_000 + client as u64)).collect();
    let mut connected = (0..clients).map(|_| served.connect()).collect::<Result<Vec<_>>>()?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let asking: Vec<_> = connected
            .iter_mut()
            .zip(&asked)
            .map(|(client, questions)| scope.spawn(|| ask_all(client, questions)))
            .collect();
        for client in asking {
            client.join().map_err(|_| anyhow::anyhow!("a client died"))??;
        }
        Ok((clients * each) as f64 / start.elapsed().as_secs_f64())
    })
}

fn measure_cold(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let store = bench.runtime.block_on(bench.stores.of(bench.size(100_000, 11_000)))?;
    let questions = questions(bench.size(9, 2), 97);
    // Each round has its own process.
    let first = |question: &String, is_first_of_process: bool| {
        let served = serve(bench, &store)?;
        let mut client = served.connect()?;
        if !is_first_of_process {
            ask_for_nobody(&mut client)?;
        }
        Ok(client.search(measured_user()?.as_str(), question)?.0)
    };
    let mut first_of_user = best_round(|| questions.iter().map(|question| first(question, false)).collect())?;
    let mut first_of_process =
        best_round(|| questions.iter().map(|question| first(question, true)).collect())?;
    let user = format!("first recall of a cold user of {MEASURED_TURNS}");
    let target = Some(Target::AtMost(30.0));
    report.add(format!("{user}, median"), median(&mut first_of_user), "ms", target);
    report.add(format!("{user}, the process's first too"), median(&mut first_of_process), "ms", None);
    Ok(())
}

/// The same user in a small and in a large store, asked alternately.
fn measure_store_size(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let (small, large) = (bench.size(100_000, 11_000), bench.size(1_000_000, 20_000));
    let small_store = bench.runtime.block_on(bench.stores.of(small))?;
    let large_store = bench.runtime.block_on(bench.stores.of(large))?;
    let (in_small, in_large) = (serve(bench, &small_store)?, serve(bench, &large_store)?);
    let (mut in_small, mut in_large) = (in_small.connect()?, in_large.connect()?);
    let (mut small_times, mut large_times) = (Vec::new(), Vec::new());
    let questions = questions(bench.size(500, 50), 96);
    let warming = questions.len() / 5;
    for question in &questions {
        small_times.extend(ask_all(&mut in_small, std::slice::from_ref(question))?);
        large_times.extend(ask_all(&mut in_large, std::slice::from_ref(question))?);
    }
    let ratio = median(&mut large_times[warming..]) / median(&mut small_times[warming..]);
    report.add(format!("{large} turns in the store against {small}"), ratio, "x", Some(Target::AtMost(1.2)));
    Ok(())
}

fn measure_growth(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let sizes: &[usize] =
        if bench.quick { &[1_000, 2_000] } else { &[1_000, 3_000, 10_000, 30_000, 100_000] };
    let questions = questions(bench.size(100, 10), 95);
    for size in sizes {
        let store = bench.runtime.block_on(bench.stores.with(*size, *size))?;
        let served = serve(bench, &store)?;
        let mut client = served.connect()?;
        ask_for_nobody(&mut client)?;
        let before = settled_megabytes(&served)?;
        let first = ask_all(&mut client, &questions[..1])?;
        let after = settled_megabytes(&served)?;
        ask_all(&mut client, &questions)?;
        let mut times = best_round(|| ask_all(&mut client, &questions))?;
        report.add(format!("{size} items, median"), median(&mut times), "ms", None);
        report.add(
            format!("{size} items, first recall"),
            first.first().copied().unwrap_or_default(),
            "ms",
            None,
        );
        report.add(
            format!("{size} items, memory an item"),
            (after - before) * 1e6 / *size as f64,
            "bytes",
            None,
        );
    }
    Ok(())
}

/// The memory use after the temporary memory of the requests has been released.
pub(crate) fn settled_megabytes(served: &Served) -> Result<f64> {
    std::thread::sleep(Duration::from_millis(300));
    served.resident_megabytes()
}
