//! A loopback HTTP server that answers what a test tells it to.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One request as the server read it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The first line and the headers, lower case.
    pub(crate) head: String,
    /// The body.
    pub(crate) body: String,
}

impl Request {
    /// The first byte that a `Range` header asks for.
    pub(crate) fn range_start(&self) -> Option<usize> {
        self.head.split("range: bytes=").nth(1)?.split('-').next()?.parse().ok()
    }
}

/// What the server sends back, byte for byte; the connection is closed after it.
pub(crate) type Answer = Vec<u8>;

/// A running server. It ends with the test's runtime.
pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Starts a server whose answers are made by `answer` from the request and its number.
    pub(crate) async fn start(answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read(&mut stream).await;
                let number = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(request.clone());
                    seen.len() - 1
                };
                // A client that has gone away is none of the server's business.
                let _ = stream.write_all(&answer(number, &request)).await;
            }
        });
        Self { url, requests }
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

async fn read(stream: &mut TcpStream) -> Request {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head
                .split("content-length: ")
                .nth(1)
                .and_then(|rest| rest.lines().next()?.trim().parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Request { head, body: body.to_owned() };
            }
        }
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => bytes.extend(&buffer[..read]),
            _ => return Request { head: String::new(), body: String::new() },
        }
    }
}

/// A whole answer.
pub(crate) fn answer(status: &str, headers: &str, body: &[u8]) -> Answer {
    let mut bytes =
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n", body.len())
            .into_bytes();
    bytes.extend(body);
    bytes
}
