//! The binary on a store of 100,000 turns: how long from its start until it is ready, and how much memory it then holds.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::Bench;
use crate::report::{Report, Target, median};

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let turns = bench.size(100_000, 11_000);
    let starts = bench.size(15, 3);
    let store = bench.runtime.block_on(bench.stores.of(turns))?;
    let mut times = Vec::new();
    let mut memory = Vec::new();
    for _ in 0..starts {
        let start = Instant::now();
        let served = Served::start(&bench.binary, &store)?;
        served.wait_until_ready()?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        // What start-up needed for a moment is given back by now.
        std::thread::sleep(Duration::from_millis(500));
        memory.push(served.resident_megabytes()?);
    }
    report.add(
        format!("start to ready, {turns} turns"),
        median(&mut times),
        "ms",
        Some(Target::AtMost(100.0)),
    );
    report.add(format!("idle memory, {turns} turns"), median(&mut memory), "MB", Some(Target::AtMost(50.0)));
    let size = fs::metadata(&bench.binary).context("reading the binary's size")?.len();
    report.add("the binary's size", size as f64 / 1e6, "MB", None);
    Ok(())
}

/// A running `strata serve`, killed when dropped.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(binary: &Path, store: &Path) -> Result<Self> {
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--store"])
            .arg(format!("sqlite:{}", store.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", binary.display()))?;
        let stdout = child.stdout.take().context("the binary has no output")?;
        let mut served = Self { child, address: String::new() };
        for line in BufReader::new(stdout).lines() {
            if let Some(address) = line?.split("http://").nth(1) {
                let end = address.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ':')));
                served.address = address[..end.unwrap_or(address.len())].to_owned();
                return Ok(served);
            }
        }
        bail!("the binary ended without saying where it listens")
    }

    fn wait_until_ready(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if self.get("/readyz").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        bail!("the binary was not ready after 30 s")
    }

    fn get(&self, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// What the process holds in memory, as Linux counts it.
    fn resident_megabytes(&self) -> Result<f64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status =
            fs::read_to_string(&path).with_context(|| format!("reading {path}; memory needs Linux"))?;
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS in the status")?;
        let kibibytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kibibytes * 1024.0 / 1e6)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
