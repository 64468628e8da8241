//! A scripted model that speaks every dialect, and answers at once, after a delay, or when it is released.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::dialect::Dialect;

/// The scripted model.
pub(super) struct Model {
    address: String,
    script: Arc<Script>,
}

struct Script {
    thinking_us: AtomicU64,
    /// Streams that have begun and wait.
    begun: AtomicUsize,
    held: watch::Sender<bool>,
}

impl Model {
    pub(super) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let (held, _) = watch::channel(false);
        let script = Arc::new(Script { thinking_us: AtomicU64::new(0), begun: AtomicUsize::new(0), held });
        let shared = Arc::clone(&script);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let script = Arc::clone(&shared);
                tokio::spawn(async move { script.serve(stream).await });
            }
        });
        Ok(Self { address, script })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Sets the delay before an answer.
    pub(super) fn think(&self, time: Duration) {
        self.script.thinking_us.store(time.as_micros() as u64, Ordering::Relaxed);
    }

    /// Lets streams begin and then wait.
    pub(super) fn hold(&self) {
        self.script.begun.store(0, Ordering::SeqCst);
        self.script.held.send_replace(true);
    }

    /// Waits until this many streams have begun.
    pub(super) async fn wait_for(&self, streams: usize) -> Result<()> {
        for _ in 0..3_000 {
            if self.script.begun.load(Ordering::SeqCst) >= streams {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("{} of {streams} streams have begun after a minute", self.script.begun.load(Ordering::SeqCst))
    }

    pub(super) fn release(&self) {
        self.script.held.send_replace(false);
    }
}

impl Script {
    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut bytes = Vec::new();
        loop {
            let (head, length, dialect) = loop {
                if let Some(end) = super::find(&bytes, b"\r\n\r\n") {
                    let head = String::from_utf8_lossy(&bytes[..end]);
                    let dialect = Dialect::of_request(&head);
                    let head = head.to_lowercase();
                    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
                    let length = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
                    break (end + 4, length, dialect);
                }
                if stream.read_buf(&mut bytes).await? == 0 {
                    return Ok(());
                }
            };
            while bytes.len() < head + length {
                if stream.read_buf(&mut bytes).await? == 0 {
                    return Ok(());
                }
            }
            let is_stream = super::holds(&bytes[head..head + length], b"\"stream\":true");
            bytes.drain(..head + length);
            let thinking = Duration::from_micros(self.thinking_us.load(Ordering::Relaxed));
            if !thinking.is_zero() {
                tokio::time::sleep(thinking).await;
            }
            match is_stream {
                true => self.speak(&mut stream, dialect).await?,
                false => answer(&mut stream, dialect).await?,
            }
        }
    }

    async fn speak(&self, stream: &mut TcpStream, dialect: Dialect) -> std::io::Result<()> {
        let kind = dialect.content_type();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        let (begin, words, end) = dialect.stream();
        for piece in begin {
            write_piece(stream, &piece).await?;
        }
        for (number, piece) in words.iter().enumerate() {
            write_piece(stream, piece).await?;
            if number == 0 {
                self.begun.fetch_add(1, Ordering::SeqCst);
                let mut held = self.held.subscribe();
                let _ = held.wait_for(|held| !held).await;
            }
        }
        for piece in end {
            write_piece(stream, &piece).await?;
        }
        stream.write_all(b"0\r\n\r\n").await
    }
}

async fn write_piece(stream: &mut TcpStream, piece: &str) -> std::io::Result<()> {
    stream.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).await
}

async fn answer(stream: &mut TcpStream, dialect: Dialect) -> std::io::Result<()> {
    let body = dialect.document().to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await
}
