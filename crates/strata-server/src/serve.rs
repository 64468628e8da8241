//! Serving connections: timeouts against slow clients, and a shutdown that finishes accepted requests.
//!
//! `axum::serve` would be shorter, but has no header timeout, no limit on connections and no limit on the time of a
//! shutdown.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use strata_core::{Error, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::app::App;
use crate::connections::{Connections, Held};
use crate::proxy::record_left;
use crate::router::router;
use crate::settings::Reach;

/// How often measurements are folded into their buckets while there are any: the exporter's own default.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// How long the server pauses after a failed accept, which mostly means that file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The most bytes of a request's head.
const MAX_HEADER_BYTES: usize = 128 * 1024;

/// Serves `app` on `listener` until `shutdown` completes. Then it accepts no more connections, finishes the running
/// requests and returns. Requests that are not finished within
/// [`Settings::drain_timeout`](crate::Settings::drain_timeout) are cut off.
///
/// A listener that is not on loopback is refused, unless the settings say that the server can be reached from
/// elsewhere. Then every request needs a key: otherwise any program that reaches the port could read everything.
pub async fn serve(listener: TcpListener, app: App, shutdown: impl Future<Output = ()> + Send) -> Result<()> {
    let address = listener.local_addr().map_err(|error| {
        Error::unavailable("the listener has no address; bind it first").with_source(error)
    })?;
    if !address.ip().is_loopback() && app.settings().reach == Reach::Loopback {
        return Err(Error::invalid(format!(
            "`{address}` is not a loopback address; listen on `127.0.0.1` or `[::1]`, or say in the settings that the server \
             is reached from elsewhere, where it needs keys"
        )));
    }

    let service = router(app.clone());
    let connections =
        Arc::new(Semaphore::new(app.settings().max_connections.clamp(1, Semaphore::MAX_PERMITS)));
    let open = Connections::new(app.settings().max_connections_per_peer);
    let upkeep = [tokio::spawn(make_room(app.clone(), open.clone())), tokio::spawn(keep_meters(app.clone()))];
    let (stop, stopping) = watch::channel(());
    let (mut number, mut tasks) = (0_u64, JoinSet::new());
    tasks.spawn(record_left(app.clone()));
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = async { (free_place(&connections, &open).await, listener.accept().await) };
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = tasks.join_next() => {}
            (permit, accepted) = accepted => match accepted {
                Ok((stream, peer)) => {
                    number += 1;
                    let Some(held) = open.admit(number, peer.ip()) else {
                        refuse(&stream);
                        continue;
                    };
                    let connection = connection(stream, held, service.clone(), app.clone(), stopping.clone());
                    tasks.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }

    drop((listener, stop));
    upkeep.iter().for_each(tokio::task::JoinHandle::abort);
    let open = tasks.len();
    let drain = async { while tasks.join_next().await.is_some() {} };
    let finished = timeout(app.settings().drain_timeout, drain).await.is_ok();
    tracing::info!(open, cut_off = tasks.len(), finished, "server stopped");
    tasks.shutdown().await;
    // A reply that was cut off is recorded as interrupted.
    app.proxy().finish(app.settings().drain_timeout).await;
    Ok(())
}

/// Waits until there is room for another connection. Meanwhile connections whose clients do not read are cut off.
async fn free_place(
    places: &Arc<Semaphore>,
    open: &Connections,
) -> std::result::Result<OwnedSemaphorePermit, AcquireError> {
    loop {
        // The semaphore is never closed.
        match timeout(ACCEPT_PAUSE, Arc::clone(places).acquire_owned()).await {
            Ok(place) => return place,
            Err(_) => _ = open.cut_stalled(None),
        }
    }
}

/// Cuts off connections whose clients do not read, as long as the answers under way take too much memory.
async fn make_room(app: App, open: Connections) {
    loop {
        app.answers().crowded().await;
        tokio::time::sleep(ACCEPT_PAUSE).await;
        open.cut_stalled(None);
    }
}

/// Folds measurements into their buckets some seconds after a request. A server to which nothing happens sleeps.
async fn keep_meters(app: App) {
    loop {
        app.meters().measured().await;
        tokio::time::sleep(UPKEEP_INTERVAL).await;
        app.meters().upkeep();
    }
}

/// Tells a peer with too many connections that this one is not served.
fn refuse(stream: &TcpStream) {
    tracing::debug!("a peer has too many connections");
    let answer = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    // The buffer of a new connection takes it at once.
    let _ = stream.try_write(answer);
}

/// Serves one connection to its end, or to the end of the running request after `stopping` has fired.
async fn connection(
    stream: TcpStream,
    held: Held,
    service: Router,
    app: App,
    mut stopping: watch::Receiver<()>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not switch off the delay of small packets");
    }
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(app.settings().header_timeout)
        .max_header_size(MAX_HEADER_BYTES)
        // A client may close its half of the connection once it has sent its request, and still read the answer.
        .half_close(true)
        .keep_alive(true);
    let stream = held.timed(stream, app.settings().write_timeout);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    // A WebSocket of the proxy leaves HTTP.
    let connection = connection.with_upgrades();
    let mut connection = pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = held.cut() => {
            tracing::debug!("a connection whose client does not read makes room for another");
            return;
        }
        // The sender sends nothing; dropping it is the signal.
        _ = stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use serde_json::json;
    use strata_core::ErrorKind;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::oneshot;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::Settings;
    use crate::testing::TestServer;

    /// A server on a real socket.
    struct Running {
        server: TestServer,
        address: SocketAddr,
        stop: oneshot::Sender<()>,
        task: JoinHandle<Result<()>>,
    }

    impl Running {
        async fn start(settings: Settings) -> Self {
            let server = TestServer::with(settings, Default::default());
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (stop, stopped) = oneshot::channel();
            let app = server.app.clone();
            let task = tokio::spawn(async move { serve(listener, app, async { drop(stopped.await) }).await });
            Self { server, address, stop, task }
        }

        async fn connect(&self) -> TcpStream {
            TcpStream::connect(self.address).await.unwrap()
        }

        /// Sends `text` on a connection of its own and gives all that comes back until it closes.
        async fn exchange(&self, text: &str) -> String {
            let mut stream = self.connect().await;
            stream.write_all(text.as_bytes()).await.unwrap();
            read_all(&mut stream).await
        }
    }

    async fn read_all(stream: &mut TcpStream) -> String {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        String::from_utf8(bytes).unwrap()
    }

    async fn read_until(stream: &mut TcpStream, end: &str) -> String {
        let mut text = String::new();
        while !text.ends_with(end) {
            text.push(char::from(stream.read_u8().await.unwrap()));
        }
        text
    }

    /// The body and the head of a request that writes one turn and asks before it sends the body.
    fn one_turn() -> (String, String) {
        let body = json!({"session_id": "s", "messages": [{"role": "user", "content": "tea"}]}).to_string();
        let head = format!(
            "POST /turns HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        (head, body)
    }

    #[tokio::test]
    async fn a_shutdown_finishes_accepted_requests() {
        let running = Running::start(Settings::default()).await;
        let mut stream = running.connect().await;
        let (head, body) = one_turn();
        stream.write_all(head.as_bytes()).await.unwrap();
        let go_on = read_until(&mut stream, "\r\n\r\n").await;
        assert!(go_on.starts_with("HTTP/1.1 100"), "{go_on}");
        let idle =
            running.exchange("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
        assert!(idle.starts_with("HTTP/1.1 200"), "{idle}");

        // The handler waits for the body: the request is under way when the server is told to stop.
        running.stop.send(()).unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        let answer = read_all(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        running.task.await.unwrap().unwrap();
        assert!(TcpStream::connect(running.address).await.is_err(), "nobody listens any more");
        let turns = running.server.get("/sessions/s/turns").await.json();
        assert_eq!(turns["turns"][0]["content"], "tea");
    }

    #[tokio::test]
    async fn a_shutdown_does_not_wait_for_ever() {
        let settings = Settings { drain_timeout: Duration::from_millis(20), ..Settings::default() };
        let running = Running::start(settings).await;
        let mut stream = running.connect().await;
        stream.write_all(one_turn().0.as_bytes()).await.unwrap();
        read_until(&mut stream, "\r\n\r\n").await;
        running.stop.send(()).unwrap();
        running.task.await.unwrap().unwrap();
        assert_eq!(read_all(&mut stream).await, "", "cut off without an answer");
        assert!(running.server.heads().await.is_empty());
    }

    #[tokio::test]
    async fn slow_clients_are_cut_off() {
        let soon = Duration::from_millis(250);
        let running = Running::start(Settings { header_timeout: soon, ..Settings::default() }).await;
        let answer = running.exchange("GET / HT").await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
        let running = Running::start(Settings { body_timeout: soon, ..Settings::default() }).await;
        let answer = running.exchange(&one_turn().0).await;
        assert!(answer.contains("HTTP/1.1 408") && answer.contains("body_timeout"), "{answer}");
    }

    #[tokio::test]
    async fn a_body_of_100_mb_is_refused_and_the_client_hears_why() {
        let running = Running::start(Settings::default()).await;
        let head = "POST /turns HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
        let chunk = vec![b' '; 1_000_000];

        let mut declared = running.connect().await;
        declared.write_all(format!("{head}Content-Length: 100000000\r\n\r\n").as_bytes()).await.unwrap();
        for _ in 0..100 {
            declared.write_all(&chunk).await.unwrap();
        }
        let answer = read_until(&mut declared, "}}").await;
        assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("max_body_bytes"), "{answer}");

        let mut chunked = running.connect().await;
        chunked.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).await.unwrap();
        for _ in 0..20 {
            chunked.write_all(format!("{:x}\r\n", chunk.len()).as_bytes()).await.unwrap();
            chunked.write_all(&chunk).await.unwrap();
            chunked.write_all(b"\r\n").await.unwrap();
        }
        let answer = read_until(&mut chunked, "}}").await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");

        // Who asks first is told at once and need not send anything.
        let asked = format!("{head}Expect: 100-continue\r\nContent-Length: 100000000\r\n\r\n");
        let mut asking = running.connect().await;
        asking.write_all(asked.as_bytes()).await.unwrap();
        let answer = read_until(&mut asking, "}}").await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
        assert!(running.server.heads().await.is_empty());
    }

    #[tokio::test]
    async fn a_web_page_from_elsewhere_cannot_read() {
        let running = Running::start(Settings::default()).await;
        let port = running.address.port();
        for (headers, status) in [
            (format!("Host: 127.0.0.1:{port}"), 200),
            (format!("Host: localhost:{port}\r\nOrigin: http://localhost:{port}"), 200),
            ("Host: [::1]".to_owned(), 200),
            ("Host: rebound.example".to_owned(), 403),
            (format!("Host: localhost:{port}\r\nOrigin: https://evil.example"), 403),
            (format!("Host: localhost:{port}\r\nOrigin: null"), 403),
            ("X-None: 1".to_owned(), 403),
        ] {
            let request = format!("GET /memories HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n");
            let answer = running.exchange(&request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{headers}: {answer}");
            assert!(answer.to_lowercase().contains("x-strata-request-id: "), "{answer}");
            assert!(!answer.to_lowercase().contains("access-control"), "{answer}");
        }
    }

    #[tokio::test]
    async fn a_connection_serves_several_requests() {
        let running = Running::start(Settings::default()).await;
        let mut stream = running.connect().await;
        for _ in 0..3 {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            let answer = read_until(&mut stream, "}").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
    }

    #[tokio::test]
    async fn a_connection_waits_while_too_many_are_open() {
        let running = Running::start(Settings { max_connections: 1, ..Settings::default() }).await;
        let mut first = running.connect().await;
        first.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        read_until(&mut first, "}").await;
        let mut second = running.connect().await;
        second
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
        drop(first);
        assert!(read_all(&mut second).await.starts_with("HTTP/1.1 200"));
    }

    /// Records a session whose turns are a large answer.
    async fn record_much(running: &Running) {
        let message = json!({"role": "user", "content": "x".repeat(900_000)});
        let body = json!({"session_id": "s", "messages": vec![message; 7]});
        assert_eq!(running.server.post("/turns", body).await.status, 201);
    }

    /// Asks for more answers than the buffers of both ends have room for, and does not read them.
    async fn ask_without_reading(running: &Running) -> TcpStream {
        let mut stream = running.connect().await;
        let request = b"GET /sessions/s/turns HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(4);
        stream.write_all(&request).await.unwrap();
        stream
    }

    #[tokio::test]
    async fn a_client_that_never_reads_is_cut_off() {
        let soon = Duration::from_millis(300);
        let running = Running::start(Settings { write_timeout: soon, ..Settings::default() }).await;
        record_much(&running).await;
        let mut stream = ask_without_reading(&running).await;
        // While the client does not read, the server does not either: a write waits until the connection is cut.
        let more = vec![b'\n'; 64 * 1024];
        let gone = async { while stream.write_all(&more).await.is_ok() {} };
        timeout(Duration::from_secs(120), gone).await.unwrap();
    }

    #[tokio::test]
    async fn clients_that_never_read_leave_room_for_others() {
        let settings = Settings { max_connections: 4, max_connections_per_peer: 4, ..Settings::default() };
        let running = Running::start(settings).await;
        record_much(&running).await;
        let mut unread = Vec::new();
        for _ in 0..4 {
            unread.push(ask_without_reading(&running).await);
        }
        let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let answer = timeout(Duration::from_secs(25), running.exchange(request)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// A client that stays, while others ask for more answers than there is room for and do not read them.
    #[tokio::test]
    async fn clients_that_never_read_do_not_fill_the_memory() {
        let most = 20 * 1024 * 1024;
        let running = Running::start(Settings { max_bytes_under_way: most, ..Settings::default() }).await;
        record_much(&running).await;
        let mut unread = Vec::new();
        for _ in 0..8 {
            unread.push(ask_without_reading(&running).await);
        }
        // Each of them has the beginning of an answer, a refusal, or a closed connection.
        for stream in &unread {
            stream.readable().await.unwrap();
        }
        let request = "GET /sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let answer = timeout(Duration::from_secs(25), running.exchange(request)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(running.server.app.answers().held() <= most);
    }

    #[tokio::test]
    async fn clients_that_never_send_their_bodies_hold_nothing_up() {
        let settings = Settings {
            max_concurrent_requests: 1,
            max_bytes_under_way: 4 * 1024 * 1024,
            body_timeout: Duration::from_secs(120),
            request_timeout: Duration::from_secs(120),
            ..Settings::default()
        };
        let running = Running::start(settings).await;
        let mut silent = Vec::new();
        for path in ["/turns", "/turns", "/v1/chat/completions", "/v1/chat/completions"] {
            let mut stream = running.connect().await;
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                 Expect: 100-continue\r\nContent-Length: 8000000\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            // The server waits for this body.
            assert!(read_until(&mut stream, "\r\n\r\n").await.starts_with("HTTP/1.1 100"));
            silent.push(stream);
        }
        for (path, body) in [
            ("/turns", json!({"session_id": "s", "messages": [{"role": "user", "content": "tea"}]})),
            ("/v1/chat/completions", json!({"model": "m", "messages": [{"role": "user", "content": "tea"}]})),
        ] {
            let body = body.to_string();
            let request = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let answer = timeout(Duration::from_secs(25), running.exchange(&request)).await.unwrap();
            assert!(!answer.contains("body_timeout") && !answer.contains("busy"), "{answer}");
        }
    }

    #[tokio::test]
    async fn a_peer_has_a_limit_of_its_own() {
        let running = Running::start(Settings { max_connections_per_peer: 2, ..Settings::default() }).await;
        let mut open = Vec::new();
        for _ in 0..2 {
            let mut stream = running.connect().await;
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            read_until(&mut stream, "}").await;
            open.push(stream);
        }
        let mut third = running.connect().await;
        assert!(read_all(&mut third).await.starts_with("HTTP/1.1 503"));
        drop(open);
        let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        loop {
            let answer = running.exchange(request).await;
            if answer.starts_with("HTTP/1.1 200") {
                return;
            }
            assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        }
    }

    #[tokio::test]
    async fn a_client_may_close_its_half() {
        let running = Running::start(Settings::default()).await;
        let mut stream = running.connect().await;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        stream.shutdown().await.unwrap();
        assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn only_loopback_is_served_unless_keys_are_needed() {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let error = serve(listener, TestServer::new().app, async {}).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("not a loopback address"), "{error}");
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let settings = Settings { reach: Reach::Network, ..Settings::default() };
        let server = TestServer::with(settings, Default::default());
        serve(listener, server.app, async {}).await.unwrap();
    }
}
