//! The binary in a process of its own, and a client that keeps its connection.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

/// A running `strata serve`, killed when dropped.
pub(crate) struct Served {
    child: Child,
    address: String,
}

impl Served {
    pub(crate) fn start(binary: &Path, store: &Path, embedder: &str) -> Result<Self> {
        Self::start_with(binary, store, embedder, &[])
    }

    /// As [`Served::start`], with settings as `key=value`.
    pub(crate) fn start_with(
        binary: &Path,
        store: &Path,
        embedder: &str,
        settings: &[String],
    ) -> Result<Self> {
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--store"])
            .arg(format!("sqlite:{}", store.display()))
            .args(settings.iter().flat_map(|setting| ["--setting", setting]))
            .env("STRATA_EMBEDDER", embedder)
            // The binary refuses an unknown setting.
            .env_remove("STRATA_BENCH_ENCODER")
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

    pub(crate) fn wait_until_ready(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if self.get("/readyz").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        bail!("the binary was not ready after 30 s")
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// A connection that is kept open.
    pub(crate) fn connect(&self) -> Result<Client> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        Ok(Client { stream: BufReader::new(stream), host: self.address.clone() })
    }

    fn get(&self, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// The resident memory of the process, from Linux.
    pub(crate) fn resident_megabytes(&self) -> Result<f64> {
        self.megabytes("VmRSS:")
    }

    /// The most that the process had resident since [`Served::forget_peak`].
    pub(crate) fn peak_megabytes(&self) -> Result<f64> {
        self.megabytes("VmHWM:")
    }

    /// Makes the system count the peak anew, and returns the resident memory.
    pub(crate) fn forget_peak(&self) -> Result<f64> {
        fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").context("resetting the peak")?;
        self.resident_megabytes()
    }

    fn megabytes(&self, name: &str) -> Result<f64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status =
            fs::read_to_string(&path).with_context(|| format!("reading {path}; memory needs Linux"))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .with_context(|| format!("no {name} in the status"))?;
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

/// A client on one connection.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Client {
    /// Searches a user's memory. Returns the milliseconds from the first byte of the request to the last of the answer, and the
    /// answer.
    pub(crate) fn search(&mut self, user: &str, question: &str) -> Result<(f64, Value)> {
        self.post("/search", &json!({ "query": question, "user_id": user }))
    }

    /// Posts a body. Returns the milliseconds from the first byte of the request to the last of the answer, and the answer.
    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Result<(f64, Value)> {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        let start = Instant::now();
        self.stream.get_mut().write_all(request.as_bytes())?;
        let answer = self.read_answer()?;
        let elapsed = start.elapsed().as_secs_f64() * 1000.0;
        Ok((elapsed, serde_json::from_slice(&answer).context("the answer is no JSON")?))
    }

    /// Reads a document.
    pub(crate) fn get(&mut self, path: &str) -> Result<Value> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
        self.stream.get_mut().write_all(request.as_bytes())?;
        serde_json::from_slice(&self.read_answer()?).context("the answer is no JSON")
    }

    /// Loads a page. Returns the milliseconds from the first byte of the request to the last of the answer, and its bytes.
    pub(crate) fn page(&mut self, path: &str) -> Result<(f64, usize)> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: text/html\r\n\r\n", self.host);
        let start = Instant::now();
        self.stream.get_mut().write_all(request.as_bytes())?;
        let bytes = self.read_answer()?.len();
        Ok((start.elapsed().as_secs_f64() * 1000.0, bytes))
    }

    fn read_answer(&mut self) -> Result<Vec<u8>> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        ensure!(line.starts_with("HTTP/1.1 20"), "the binary answered `{}`", line.trim());
        let (mut length, mut is_chunked) = (0, false);
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            }
            is_chunked |= name.eq_ignore_ascii_case("transfer-encoding");
        }
        if is_chunked {
            return self.read_chunks();
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    /// The body of a large answer, which comes in chunks.
    fn read_chunks(&mut self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16).context("the length of a chunk")?;
            let from = body.len();
            // The line after a chunk is empty.
            body.resize(from + length + 2, 0);
            self.stream.read_exact(&mut body[from..])?;
            body.truncate(from + length);
            if length == 0 {
                return Ok(body);
            }
        }
    }
}
