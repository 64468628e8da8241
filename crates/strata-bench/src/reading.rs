//! Reading: how many messages a second the reader reads, how long a message waits until it is believed, whether a long
//! session is learned in linear time, and whether recall waits for a backlog.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use async_trait::async_trait;
use serde_json::json;
use strata_core::ports::{
    PairReading, Reader, SentenceInContext, SentencePair, SentenceReading, TurnInContext, Voice,
};
use strata_core::turn::NewMessage;
use strata_core::{Role, SessionId, Store, UserId};
use strata_models::onnx::OnnxReader;

use crate::corpus::{Corpus, Random};
use crate::report::{Report, Target, median, p99};
use crate::server::{Client, Served};
use crate::vectors::builtin;
use crate::{Bench, engine, fill};

/// The streams of messages.
const STREAMS: [&str; 2] = ["evals/reading/values/en.txt", "evals/reading/values/zh.txt"];

/// How long a message may take to be believed before the measurement is given up.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let messages = messages(bench.size(240, 12))?;
    rate(bench, report, &messages)?;
    believed(bench, report)?;
    linear(bench, report)?;
    backlog(bench, report, &messages)
}

/// Messages of the streams, as many of each language.
fn messages(count: usize) -> Result<Vec<String>> {
    let mut messages = Vec::new();
    for path in STREAMS {
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let said =
            lines.filter_map(|line| line.split_once(' ')).map(|(_, said)| said.replace(['{', '}'], ""));
        messages.extend(said.take(count / STREAMS.len()));
    }
    Ok(messages)
}

/// The messages that the reader and the encoder read a second. Each has one thread, and they take turns.
fn rate(bench: &mut Bench, report: &mut Report, messages: &[String]) -> Result<()> {
    let path = bench.stores.fresh("reading-rate");
    let seconds = bench.runtime.block_on(async {
        let store = fill::open(&path).await?;
        let reader = OnnxReader::of_program("strata-reader", strata_weights::READER)?;
        let engine = engine::over(&store).with_reader(Arc::new(reader)).with_embedder(Arc::new(builtin()?));
        let (user, warm) = (UserId::new("measured")?, SessionId::new("warm")?);
        let said = |text: &str| vec![NewMessage::new(Role::User, text)];
        // The first message loads the networks.
        engine.learning.infer(&user, &warm, said("I have a garden."), None).await?;
        let start = Instant::now();
        for (number, message) in messages.iter().enumerate() {
            let session = SessionId::new(format!("stream-{}", number / 12))?;
            engine.learning.infer(&user, &session, said(message), None).await?;
        }
        let seconds = start.elapsed().as_secs_f64();
        store.close().await?;
        Ok::<f64, anyhow::Error>(seconds)
    })?;
    let rate = messages.len() as f64 / seconds;
    report.add("messages of the streams read a second", rate, "1/s", Some(Target::AtLeast(10.0)));
    Ok(())
}

/// The time from the answer to a recorded message until it is a memory.
fn believed(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let served = Served::start(&bench.binary, &bench.stores.fresh("reading-believed"), "builtin")?;
    served.wait_until_ready()?;
    let mut client = served.connect()?;
    let corpus = Corpus::new();
    let mut random = Random::new(21);
    let mut times = Vec::new();
    for number in 0..bench.size(60, 4) {
        let question = corpus.question(&mut random);
        let name = question.split(' ').next_back().unwrap_or("it");
        let text = format!("The spare key number {number} is with {name} in the office.");
        let took = until_believed(&mut client, &format!("user-{number}"), &text)?;
        // The first message loads the networks.
        if number > 0 {
            times.push(took);
        }
    }
    report.add("from recorded to believed, median", median(&mut times), "ms", Some(Target::AtMost(2_000.0)));
    report.add("from recorded to believed, p99", p99(&mut times), "ms", Some(Target::AtMost(2_000.0)));
    Ok(())
}

fn until_believed(client: &mut Client, user: &str, text: &str) -> Result<f64> {
    let body = json!({ "user_id": user, "messages": [{ "role": "user", "content": text }] });
    client.post("/turns", &body)?;
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let found = client.get(&format!("/memories?user_id={user}"))?;
        if found["results"].as_array().is_some_and(|memories| !memories.is_empty()) {
            return Ok(start.elapsed().as_secs_f64() * 1000.0);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    bail!("a message was not believed within {} s", PATIENCE.as_secs())
}

/// The time to learn sessions of two lengths, without the time of the networks, which is the same for each message.
fn linear(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let short = bench.size(5_000, 200);
    let lengths = if bench.long { vec![short, 2 * short, 10 * short] } else { vec![short, 2 * short] };
    let mut seconds = Vec::new();
    for turns in &lengths {
        let path = bench.stores.fresh(&format!("reading-{turns}"));
        let took = bench.runtime.block_on(learn_session(&path, *turns))?;
        report.add(format!("a session of {turns} turns, learned without networks"), took, "s", None);
        seconds.push(took);
    }
    for (turns, took) in lengths.iter().zip(&seconds).skip(1) {
        let times = *turns as f64 / short as f64;
        let ratio = took / seconds[0] / times;
        let name = format!("a turn among {turns} against one among {short}");
        report.add(name, ratio, "x", Some(Target::AtMost(1.5)));
    }
    Ok(())
}

pub(crate) async fn learn_session(path: &std::path::Path, turns: usize) -> Result<f64> {
    let store: Arc<dyn Store> = fill::open(path).await?;
    let engine = engine::over(&store).with_reader(Arc::new(Instantly));
    let (user, session) = (UserId::new("measured")?, SessionId::new("long")?);
    let corpus = Corpus::new();
    let mut random = Random::new(31);
    let mut left = turns;
    while left > 0 {
        let count = left.min(500);
        let messages = (0..count).map(|place| {
            let role = if place % 2 == 0 { Role::User } else { Role::Assistant };
            NewMessage::new(role, corpus.turn(&mut random))
        });
        engine.recording.record(&user, &session, messages.collect(), None).await?;
        left -= count;
    }
    let start = Instant::now();
    engine.learning.learn_all().await?;
    let seconds = start.elapsed().as_secs_f64();
    store.close().await?;
    Ok(seconds)
}

/// A reader that takes no time and keeps the first sentence of each message: what is left is Strata's own work.
struct Instantly;

#[async_trait]
impl Reader for Instantly {
    fn model(&self) -> &str {
        "instantly"
    }

    async fn sentences(&self, sentences: &[SentenceInContext]) -> strata_core::Result<Vec<SentenceReading>> {
        let read = |sentence: &SentenceInContext| {
            let is_first = sentence.before.is_empty();
            let mut reading =
                SentenceReading { worth: if is_first { 0.9 } else { 0.1 }, ..SentenceReading::default() };
            reading.kind[0] = 1.0;
            reading.voice[if is_first { Voice::Own } else { Voice::SmallTalk } as usize] = 1.0;
            reading
        };
        Ok(sentences.iter().map(read).collect())
    }

    async fn relations(&self, pairs: &[SentencePair]) -> strata_core::Result<Vec<PairReading>> {
        Ok(vec![PairReading([1.0, 0.0, 0.0, 0.0]); pairs.len()])
    }

    async fn answers(&self, _: &str, turns: &[TurnInContext]) -> strata_core::Result<Vec<f32>> {
        Ok(vec![0.0; turns.len()])
    }
}

/// The median of recall on an idle machine, and while many messages of another user wait to be read.
fn backlog(bench: &mut Bench, report: &mut Report, messages: &[String]) -> Result<()> {
    let served = Served::start(&bench.binary, &bench.stores.fresh("reading-backlog"), "builtin")?;
    served.wait_until_ready()?;
    let mut client = served.connect()?;
    let say = |client: &mut Client, user: &str, texts: &[String]| {
        let list: Vec<_> = texts.iter().map(|text| json!({ "role": "user", "content": text })).collect();
        client.post("/turns", &json!({ "user_id": user, "messages": list })).map(|_| ())
    };
    say(&mut client, "asking", messages)?;
    let asked: Vec<&String> = messages.iter().take(bench.size(60, 4)).collect();
    let ask = |client: &mut Client| {
        let times = asked.iter().map(|question| Ok(client.search("asking", question)?.0));
        times.collect::<Result<Vec<f64>>>()
    };
    wait_until_learned(&mut client, "asking")?;
    ask(&mut client)?;
    let idle = median(&mut ask(&mut client)?);
    for number in 0..4 {
        say(&mut client, &format!("telling-{number}"), messages)?;
    }
    let busy = median(&mut ask(&mut client)?);
    report.add("recall, median, nothing waits to be read", idle, "ms", None);
    report.add("recall, median, while a backlog is read", busy, "ms", None);
    report.add("recall during a backlog against recall alone", busy / idle, "x", Some(Target::AtMost(2.0)));
    Ok(())
}

fn wait_until_learned(client: &mut Client, user: &str) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < 10 * PATIENCE {
        let waiting = ["queued", "leased"].iter().try_fold(0, |sum, status| {
            let jobs = client.get(&format!("/jobs?user_id={user}&status={status}&limit=10"))?;
            Ok::<usize, anyhow::Error>(sum + jobs["jobs"].as_array().map_or(0, Vec::len))
        })?;
        if waiting == 0 {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    bail!("the messages were not learned within {} s", (10 * PATIENCE).as_secs())
}
