//! A blocking HTTP/1.1 client on a plain socket, because a library would refuse to send many of these bad requests.

use std::io::{self, BufRead as _, BufReader, Read};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// The time limit of an answer, so that a hanging server fails the test and not the whole run.
const PATIENCE: Duration = Duration::from_secs(60);

/// One client. It keeps its connection as long as the server does.
pub(crate) struct Client {
    address: String,
    connection: Option<BufReader<TcpStream>>,
}

/// An answer of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("the answer {} is JSON ({error}): {}", self.status, self.text()))
    }
}

impl Client {
    pub(crate) fn new(address: &str) -> Self {
        Self { address: address.to_owned(), connection: None }
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.send("GET", path, &[], b"")
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> io::Result<Answer> {
        self.send("POST", path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
    }

    /// Sends a request with its length, and reads the answer.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        let head = self.head(method, path, headers, &format!("Content-Length: {}", body.len()));
        let was_open = self.connection.is_some();
        let answer = self.exchange(&mut head.as_bytes().chain(body));
        match answer {
            // A server may close a kept connection, for example after a body that it refused to read. As any client would, retry
            // once on a new connection.
            Err(_) if was_open => self.exchange(&mut head.as_bytes().chain(body)),
            answer => answer,
        }
    }

    /// Sends a body of `length` bytes without holding it in memory, with its length announced or in chunks.
    pub(crate) fn send_huge(&mut self, path: &str, length: u64, framing: Framing) -> io::Result<Answer> {
        let json = [("Content-Type", "application/json")];
        match framing {
            Framing::Announced => {
                let head = self.head("POST", path, &json, &format!("Content-Length: {length}"));
                self.exchange(&mut head.as_bytes().chain(io::repeat(b'[').take(length)))
            }
            Framing::Chunked => {
                let head = self.head("POST", path, &json, "Transfer-Encoding: chunked");
                let chunk = format!("10000\r\n{}\r\n", "[".repeat(0x10000));
                let chunks = Repeated { bytes: chunk.into_bytes(), at: 0 };
                let framed = length / 0x10000 * (0x10000 + 9);
                self.exchange(&mut head.as_bytes().chain(chunks.take(framed)).chain(&b"0\r\n\r\n"[..]))
            }
        }
    }

    fn head(&self, method: &str, path: &str, headers: &[(&str, &str)], framing: &str) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{framing}\r\n", self.address);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head + "\r\n"
    }

    /// Sends raw bytes. The server may answer and close the connection before it has read all; then the answer counts.
    pub(crate) fn exchange(&mut self, request: &mut dyn Read) -> io::Result<Answer> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let stream = TcpStream::connect(&self.address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                BufReader::new(stream)
            }
        };
        let sent = io::copy(request, connection.get_mut());
        let answer = match (read_answer(&mut connection), sent) {
            (Ok(answer), _) => answer,
            (Err(_), Err(error)) | (Err(error), Ok(_)) => return Err(error),
        };
        let closes = answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if !closes {
            self.connection = Some(connection);
        }
        Ok(answer)
    }
}

/// How the length of a body is transmitted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Framing {
    Announced,
    Chunked,
}

/// The same bytes again and again.
struct Repeated {
    bytes: Vec<u8>,
    at: usize,
}

impl Read for Repeated {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = into.len().min(self.bytes.len() - self.at);
        into[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at = (self.at + count) % self.bytes.len();
        Ok(count)
    }
}

fn read_answer(connection: &mut BufReader<TcpStream>) -> io::Result<Answer> {
    let mut status_line = String::new();
    if connection.read_line(&mut status_line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| invalid(format!("no status in `{status_line}`")))?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if connection.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
            None => break,
        }
    }
    let mut answer = Answer { status, headers, body: Vec::new() };
    if answer.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        read_chunks(connection, &mut answer.body)?;
    } else if let Some(length) = answer.header("content-length") {
        let length = length.parse().map_err(|_| invalid(format!("`{length}` is no length")))?;
        answer.body.resize(length, 0);
        connection.read_exact(&mut answer.body)?;
    }
    Ok(answer)
}

fn read_chunks(connection: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let mut line = String::new();
        connection.read_line(&mut line)?;
        let size = line.trim().split(';').next().unwrap_or_default();
        let size =
            u64::from_str_radix(size, 16).map_err(|_| invalid(format!("`{size}` is no chunk's size")))?;
        connection.take(size).read_to_end(body)?;
        let mut end = String::new();
        connection.read_line(&mut end)?;
        if size == 0 {
            return Ok(());
        }
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
