//! Chats through the proxy, compared with the same chats sent directly to the model: the time that memory adds to a request,
//! plain and streamed, and the cost of five hundred concurrent streams, in the API of each provider.
//!
//! The model is scripted and answers at once, in this process. A real model takes hundreds of milliseconds, which hide the time
//! to store the question. So the figures here are the maximum that memory can add.

mod dialect;
mod model;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::Bench;
use crate::fill::{MEASURED_TURNS, measured_user};
use crate::recall::{BUILTIN, WORDS, questions};
use crate::report::{Report, Target, median, p99};
use crate::server::Served;
use crate::vectors::{builtin, embedded};
use dialect::Dialect;
use model::Model;

const ROUNDS: usize = 3;

/// The delay of the slower model: about the time of a fast real model to its first token.
const THINKING: Duration = Duration::from_millis(100);

/// The allowed added milliseconds with words alone: of the median, and of the 99th percentile.
const MOST_MEDIAN: f64 = 2.0;
const MOST_P99: f64 = 8.0;

/// The allowed added milliseconds of the median with the encoder, and the turns of that user.
const MOST_WITH_ENCODER: f64 = 10.0;
const ENCODED_TURNS: usize = 1_000;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let store = bench.runtime.block_on(bench.stores.of(bench.size(100_000, 11_000)))?;
    let asked = questions(bench.size(300, 20), 99);
    let count = bench.size(500, 50);
    let binary = bench.binary.clone();
    measure_encoder(bench, &asked, report)?;
    let copy = bench.stores.fresh("proxied");
    bench.runtime.block_on(async {
        let model = Model::start().await?;
        let settings = [format!("upstream=http://{}/v1", model.address())];
        let mut table = TABLE_HEAD.to_owned();
        for dialect in Dialect::ALL {
            // A chat leaves two turns and work to learn from them. So each API begins with the same store and a new process.
            copy_store(&store, &copy)?;
            let served = Served::start_with(&binary, &copy, WORDS, &settings)?;
            served.wait_until_ready()?;
            let (plain, streamed) = added_by(dialect, (&model, &served), &asked, report).await?;
            table.push_str(&table_line(dialect, plain, streamed));
        }
        eprintln!("{table}");
        copy_store(&store, &copy)?;
        let served = Served::start_with(&binary, &copy, WORDS, &settings)?;
        served.wait_until_ready()?;
        model.think(THINKING);
        let few = Chats::new(&asked[..asked.len() / 10], "plain, a model that takes 100 ms");
        added(&model, &served, &few, report).await?;
        let few = Chats { name: "first byte, a model that takes 100 ms", is_stream: true, ..few };
        added(&model, &served, &few, report).await?;
        model.think(Duration::ZERO);
        for dialect in Dialect::ALL {
            many_streams((&model, &served), dialect, count, report).await?;
        }
        Ok(())
    })
}

/// Copies a store that no process uses, in place of the copy that was used before.
fn copy_store(store: &Path, copy: &Path) -> Result<()> {
    // A process that was killed leaves its log beside the file.
    for ending in ["", "-wal", "-shm"] {
        let (from, to) = (beside(store, ending), beside(copy, ending));
        if to.exists() {
            fs::remove_file(&to).with_context(|| format!("removing {}", to.display()))?;
        }
        if from.exists() && ending != "-shm" {
            fs::copy(&from, &to).with_context(|| format!("copying {}", from.display()))?;
        }
    }
    Ok(())
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The time that the proxy adds in one API: to a chat, and to the first byte of a stream.
async fn added_by(
    dialect: Dialect,
    (model, served): (&Model, &Served),
    asked: &[String],
    report: &mut Report,
) -> Result<(Added, Added)> {
    let name = format!("plain, {}", dialect.name());
    let limits =
        Chats { most_median: Some(MOST_MEDIAN), most_p99: Some(MOST_P99), ..Chats::new(asked, &name) };
    let plain = added(model, served, &Chats { dialect, ..limits }, report).await?;
    let name = format!("first byte of a stream, {}", dialect.name());
    let chats = Chats { name: &name, dialect, is_stream: true, ..limits };
    Ok((plain, added(model, served, &chats, report).await?))
}

/// The table of all APIs, as docs/proxy.md has it.
const TABLE_HEAD: &str = "| added to | a chat, median | p99 | the first byte of a stream, median | p99 |\n\
                          |---|---|---|---|---|\n";

fn table_line(dialect: Dialect, plain: Added, streamed: Added) -> String {
    let cells =
        [plain.median, plain.p99, streamed.median, streamed.p99].map(|figure| format!("{figure:.1} ms"));
    format!("| {} | {} |\n", dialect.name(), cells.join(" | "))
}

/// The milliseconds that the proxy adds.
#[derive(Clone, Copy)]
struct Added {
    median: f64,
    p99: f64,
    /// With the proxy, without = 1.
    ratio: f64,
}

/// Chats of one kind, and the milliseconds that the proxy may add to them.
#[derive(Clone, Copy)]
struct Chats<'a> {
    asked: &'a [String],
    name: &'a str,
    dialect: Dialect,
    is_stream: bool,
    /// The turns of the user.
    turns: usize,
    most_median: Option<f64>,
    most_p99: Option<f64>,
}

impl<'a> Chats<'a> {
    fn new(asked: &'a [String], name: &'a str) -> Self {
        let (dialect, turns) = (Dialect::ChatCompletions, MEASURED_TURNS);
        Self { asked, name, dialect, is_stream: false, turns, most_median: None, most_p99: None }
    }
}

/// The same chats with the encoder: questions in English, so that the figures are those of one language.
fn measure_encoder(bench: &mut Bench, asked: &[String], report: &mut Report) -> Result<()> {
    let store = embedded(bench, &builtin()?, ENCODED_TURNS)?;
    let binary = bench.binary.clone();
    let english: Vec<String> = asked.iter().filter(|question| question.is_ascii()).cloned().collect();
    bench.runtime.block_on(async {
        let model = Model::start().await?;
        let settings = [format!("upstream=http://{}/v1", model.address())];
        let served = Served::start_with(&binary, &store, BUILTIN, &settings)?;
        served.wait_until_ready()?;
        let chats = Chats {
            most_median: Some(MOST_WITH_ENCODER),
            turns: ENCODED_TURNS,
            ..Chats::new(&english, "plain, with the encoder")
        };
        added(&model, &served, &chats, report).await?;
        Ok(())
    })
}

/// The time that the proxy adds to a chat: the differences of the medians and of the 99th percentiles, in the best round. A chat
/// whose memory was late or failed would look faster, so such chats are counted in all rounds.
async fn added(model: &Model, served: &Served, chats: &Chats<'_>, report: &mut Report) -> Result<Added> {
    let Chats { asked, name, dialect, is_stream, turns, most_median, most_p99 } = *chats;
    let (mut best, mut bare) = (None::<Added>, 0);
    for round in 0..ROUNDS {
        let mut direct = Connection::open(model.address()).await?;
        let mut proxied = Connection::open(served.address()).await?;
        // The first question loads the user's index into memory.
        proxied.chat(dialect, &asked[0], &format!("warm {round} {name}"), is_stream).await?;
        proxied.without_memory = 0;
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for (number, question) in asked.iter().enumerate() {
            let session = format!("{name} {round} {number}");
            without.push(direct.chat(dialect, question, &session, is_stream).await?);
            with.push(proxied.chat(dialect, question, &session, is_stream).await?);
        }
        let figures = Added {
            median: median(&mut with) - median(&mut without),
            p99: p99(&mut with) - p99(&mut without),
            ratio: median(&mut with) / median(&mut without),
        };
        if best.is_none_or(|best| figures.median < best.median) {
            best = Some(figures);
        }
        bare += proxied.without_memory;
    }
    let best = best.context("no round was run")?;
    let median_target = most_median.map(Target::AtMost);
    report.add(format!("{name}, {turns} turns: added, median"), best.median, "ms", median_target);
    report.add(format!("{name}: added, p99"), best.p99, "ms", most_p99.map(Target::AtMost));
    report.add(format!("{name}: with the proxy, without = 1"), best.ratio, "x", None);
    let name = format!("{name}: chats whose memory was late or failed");
    report.add(name, f64::from(bare), "", most_median.map(|_| Target::AtMost(0.0)));
    Ok(best)
}

/// Holds many streams open at once until all of them have begun, and then reads them to the end.
async fn many_streams(
    (model, served): (&Model, &Served),
    dialect: Dialect,
    streams: usize,
    report: &mut Report,
) -> Result<()> {
    let before = served.resident_megabytes()?;
    model.hold();
    let mut tasks = JoinSet::new();
    for number in 0..streams {
        let address = served.address().to_owned();
        tasks.spawn(async move {
            let mut connection = Connection::open(&address).await?;
            let session = format!("one of many {} {number}", dialect.name());
            connection.chat(dialect, "what did we say about the garden", &session, true).await
        });
    }
    model.wait_for(streams).await?;
    let held = served.resident_megabytes()?;
    model.release();
    let mut errors = 0;
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended? {
            errors += 1;
            eprintln!("  a stream failed: {error:#}");
        }
    }
    report.add(
        format!("{streams} streams at once, {}: errors", dialect.name()),
        f64::from(errors),
        "",
        Some(Target::AtMost(0.0)),
    );
    let bytes = (held - before) * 1e6 / streams as f64;
    let name = format!("{streams} streams at once, {}: added memory a stream", dialect.name());
    report.add(name, bytes / 1e3, "kB", None);
    Ok(())
}

/// A client on one connection.
struct Connection {
    stream: TcpStream,
    host: String,
    /// The bytes after the last answer.
    rest: Vec<u8>,
    /// The answers of which Strata says that memory was late or failed.
    without_memory: u32,
}

impl Connection {
    async fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, host: address.to_owned(), rest: Vec::new(), without_memory: 0 })
    }

    /// Sends a chat, and returns the milliseconds to the end of the answer, or to the first event of a stream.
    async fn chat(
        &mut self,
        dialect: Dialect,
        question: &str,
        session: &str,
        is_stream: bool,
    ) -> Result<f64> {
        let user = measured_user()?;
        let body = dialect.request(question, is_stream).to_string();
        let path = dialect.path();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nX-Strata-User: {user}\r\nX-Strata-Session: {session}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        let start = Instant::now();
        self.stream.write_all(request.as_bytes()).await?;
        let mut first = None;
        loop {
            if let Some(end) = whole(&self.rest, is_stream)? {
                self.without_memory += u32::from(is_without_memory(&self.rest));
                self.rest.drain(..end);
                break;
            }
            if self.stream.read_buf(&mut self.rest).await? == 0 {
                anyhow::bail!("the connection ended before the answer did");
            }
            if first.is_none() && find(&self.rest, b"\r\n\r\n").is_some_and(|head| self.rest.len() > head + 4)
            {
                first = Some(start.elapsed());
            }
        }
        let elapsed = if is_stream { first.context("a stream without an event")? } else { start.elapsed() };
        Ok(elapsed.as_secs_f64() * 1000.0)
    }
}

/// Whether an answer says that memory was late or failed.
fn is_without_memory(answer: &[u8]) -> bool {
    let head = &answer[..find(answer, b"\r\n\r\n").unwrap_or(answer.len())];
    let head = String::from_utf8_lossy(head).to_lowercase();
    let mut reasons = head.lines().filter_map(|line| line.strip_prefix("x-strata-memory-reason:"));
    reasons.any(|reason| matches!(reason.trim(), "late" | "failed" | "store-fails"))
}

/// The end of an answer, if it is complete.
fn whole(bytes: &[u8], is_stream: bool) -> Result<Option<usize>> {
    let Some(head) = find(bytes, b"\r\n\r\n").map(|end| end + 4) else { return Ok(None) };
    ensure!(
        bytes.starts_with(b"HTTP/1.1 200"),
        "the answer is `{}`",
        String::from_utf8_lossy(&bytes[..head])
    );
    if is_stream {
        return Ok(find(bytes, b"0\r\n\r\n").filter(|end| *end > head).map(|end| end + 5));
    }
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length: Option<usize> =
        text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let end = head + length.context("an answer without a length")?;
    if bytes.len() < end {
        return Ok(None);
    }
    serde_json::from_slice::<Value>(&bytes[head..end]).context("the answer is no JSON")?;
    Ok(Some(end))
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    find(bytes, part).is_some()
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
