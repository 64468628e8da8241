//! Connections to servers: directly, or through an HTTP proxy.
//!
//! A proxy is asked for a tunnel (`CONNECT`, RFC 9110, 9.3.6) to a server that speaks TLS. Requests to a plain server are sent
//! to the proxy itself in absolute form (RFC 9112, 3.2.2), because proxies refuse tunnels to other ports than that of TLS.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::Scheme;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::Service;

use crate::proxy::Proxy;

/// How long a server may take to accept a connection, and a proxy to open a tunnel.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest answer to `CONNECT` that is read.
const MAX_HEAD_BYTES: usize = 8 * 1024;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Opens connections to servers.
#[derive(Clone)]
pub(crate) struct Connector {
    /// Opens connections to the proxy, or to servers if there is none.
    tcp: HttpsConnector<HttpConnector>,
    proxy: Option<Proxy>,
}

impl Connector {
    pub(crate) fn new(proxy: Option<&Proxy>, tls: &Arc<rustls::ClientConfig>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        Self { tcp: HttpsConnector::from((tcp, Arc::clone(tls))), proxy: proxy.cloned() }
    }
}

impl Service<Uri> for Connector {
    type Response = TransportStream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<TransportStream, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let Some(proxy) = self.proxy.clone() else {
            // TLS with the server is the caller's, so the connection itself is plain.
            let connecting = plain(&server).map(|server| self.tcp.call(server));
            return Box::pin(async move {
                Ok(TransportStream { stream: connecting?.await?, is_asked_for_all: false })
            });
        };
        let connecting = self.tcp.call(proxy.address().clone());
        Box::pin(async move {
            let stream = connecting.await.map_err(|error| unreachable(&proxy, &error))?;
            if server.scheme() != Some(&Scheme::HTTPS) {
                return Ok(TransportStream { stream, is_asked_for_all: true });
            }
            let opening = tunnel(stream, &server, proxy.credentials());
            let stream = match tokio::time::timeout(CONNECT_TIMEOUT, opening).await {
                Ok(opened) => opened.map_err(|error| failed(&proxy, &error.to_string()))?,
                Err(_) => return Err(failed(&proxy, "it did not answer in time")),
            };
            Ok(TransportStream { stream, is_asked_for_all: false })
        })
    }
}

/// The proxy itself cannot be reached, so nothing is known about the server behind it.
#[derive(Debug)]
pub(crate) struct ProxyUnreachable(String);

impl std::fmt::Display for ProxyUnreachable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ProxyUnreachable {}

fn unreachable(proxy: &Proxy, error: &BoxError) -> BoxError {
    Box::new(ProxyUnreachable(format!("the proxy `{proxy}` cannot be reached: {error}")))
}

fn failed(proxy: &Proxy, why: &str) -> BoxError {
    format!("the proxy `{proxy}` opened no connection: {why}").into()
}

/// The address of a server without TLS, at the port that it has with TLS.
fn plain(server: &Uri) -> Result<Uri, BoxError> {
    let port = port(server);
    let host = server.host().ok_or("the address has no name")?;
    Ok(format!("http://{host}:{port}/").parse()?)
}

fn port(server: &Uri) -> u16 {
    let of_scheme = if server.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    server.port_u16().unwrap_or(of_scheme)
}

/// Asks a proxy for a tunnel to a server.
async fn tunnel(stream: Stream, server: &Uri, credentials: Option<HeaderValue>) -> io::Result<Stream> {
    let host = server.host().unwrap_or_default();
    let place = format!("{host}:{}", port(server));
    let mut asked = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n").into_bytes();
    if let Some(credentials) = credentials {
        asked.extend_from_slice(b"Proxy-Authorization: ");
        asked.extend_from_slice(credentials.as_bytes());
        asked.extend_from_slice(b"\r\n");
    }
    asked.extend_from_slice(b"\r\n");
    let mut stream = TokioIo::new(stream);
    stream.write_all(&asked).await?;
    stream.flush().await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        // One byte at a time: what follows the head belongs to the server.
        let byte = stream.read_u8().await.map_err(|_| io::Error::other("it closed the connection"))?;
        head.push(byte);
        if head.len() > MAX_HEAD_BYTES {
            return Err(io::Error::other("its answer is too long"));
        }
    }
    match status(&head) {
        Some(200..=299) => Ok(stream.into_inner()),
        Some(407) => Err(io::Error::other("it asks for a user and a password (status 407)")),
        Some(status) => Err(io::Error::other(format!("it answered with status {status}"))),
        None => Err(io::Error::other("it does not answer as a proxy does")),
    }
}

/// The status of an answer.
fn status(head: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(head.split(|byte| *byte == b'\r').next()?).ok()?;
    let mut words = line.split(' ');
    words.next().filter(|version| version.starts_with("HTTP/1."))?;
    words.next()?.parse().ok()
}

/// A connection to a server, or to the proxy in front of it.
pub(crate) struct TransportStream {
    stream: Stream,
    /// Whether the other end is a proxy that is asked for the servers' whole addresses.
    is_asked_for_all: bool,
}

impl Connection for TransportStream {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_asked_for_all)
    }
}

impl Read for TransportStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for TransportStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Opens a connection through a proxy that answers `CONNECT` with this, and returns what the proxy was asked.
    async fn through(credentials: &str, answer: &'static str) -> (Result<String, String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = format!("http://{credentials}{}", listener.local_addr().unwrap()).parse().unwrap();
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(asked).unwrap()
        });
        let tls = Arc::new(crate::Authorities::default().client_config());
        let opened =
            Connector::new(Some(&proxy), &tls).call("https://model.example/v1".parse().unwrap()).await;
        let opened = match opened {
            Ok(stream) => {
                let mut said = String::new();
                TokioIo::new(stream).read_to_string(&mut said).await.unwrap();
                Ok(said)
            }
            Err(error) => Err(error.to_string()),
        };
        (opened, serving.await.unwrap())
    }

    #[tokio::test]
    async fn a_tunnel_is_opened_and_what_follows_is_the_servers() {
        let (said, asked) = through("", "HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nhello").await;
        assert_eq!(said.unwrap(), "hello");
        assert_eq!(asked, "CONNECT model.example:443 HTTP/1.1\r\nHost: model.example:443\r\n\r\n");
        let (said, asked) = through("ann:secret@", "HTTP/1.0 200 OK\r\n\r\n").await;
        assert_eq!(said.unwrap(), "");
        assert!(asked.contains("\r\nProxy-Authorization: Basic YW5uOnNlY3JldA==\r\n"), "{asked}");
    }

    #[tokio::test]
    async fn a_refusal_is_named_without_the_credentials() {
        for (answer, expected) in [
            ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407"),
            ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "status 403"),
            ("SSH-2.0-server\r\n\r\n", "does not answer as a proxy does"),
            ("HTTP/1.1 200 OK\r\n", "closed the connection"),
        ] {
            let (opened, _) = through("ann:secret@", answer).await;
            let error = opened.unwrap_err();
            assert!(error.contains(expected) && error.contains("http://127.0.0.1:"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_server_has_the_port_of_its_scheme() {
        let check = |server: &str, expected: &str| {
            assert_eq!(plain(&server.parse().unwrap()).unwrap().to_string(), expected);
        };
        check("https://a.example/v1", "http://a.example:443/");
        check("http://a.example/v1", "http://a.example:80/");
        check("https://[::1]:8443/", "http://[::1]:8443/");
    }
}
