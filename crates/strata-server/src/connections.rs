//! The open connections: how many each peer has, and which of them stall because their client does not read.
//!
//! A client that sends requests and never reads the answers would hold its connections for as long as it likes. So a
//! write that makes no progress for [`Settings::write_timeout`](crate::Settings::write_timeout) ends its connection. If
//! there is no room for another connection, the one that has stalled longest is cut off at once.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

/// A connection that has stalled for this long may be cut off to make room for another.
const STALLED: Duration = Duration::from_secs(1);

/// All open connections.
#[derive(Clone)]
pub(crate) struct Connections {
    open: Arc<Mutex<HashMap<u64, Arc<Connection>>>>,
    most_per_peer: usize,
}

struct Connection {
    peer: IpAddr,
    /// Since when a write has made no progress.
    stalled: Mutex<Option<Instant>>,
    cut: Notify,
}

/// One open connection; dropping it makes room.
pub(crate) struct Held {
    all: Connections,
    number: u64,
    connection: Arc<Connection>,
}

impl Connections {
    pub(crate) fn new(most_per_peer: usize) -> Self {
        Self { open: Arc::default(), most_per_peer: most_per_peer.max(1) }
    }

    /// Counts a connection of a peer; `None` if the peer has too many and none of them has stalled.
    pub(crate) fn admit(&self, number: u64, peer: IpAddr) -> Option<Held> {
        let count = self.lock().values().filter(|connection| connection.peer == peer).count();
        if count >= self.most_per_peer && !self.cut_stalled(Some(peer)) {
            return None;
        }
        let connection = Arc::new(Connection { peer, stalled: Mutex::default(), cut: Notify::new() });
        self.lock().insert(number, Arc::clone(&connection));
        Some(Held { all: self.clone(), number, connection })
    }

    /// Cuts off the connection that has stalled longest, of this peer if one is named. Returns whether there was one.
    pub(crate) fn cut_stalled(&self, peer: Option<IpAddr>) -> bool {
        let mut open = self.lock();
        let of_peer = open.iter().filter(|(_, connection)| peer.is_none_or(|peer| connection.peer == peer));
        let stalled = of_peer.filter_map(|(number, connection)| Some((connection.stalled()?, *number)));
        let Some((since, number)) = stalled.min() else { return false };
        if since.elapsed() < STALLED {
            return false;
        }
        // It no longer counts, also while it is being closed.
        if let Some(connection) = open.remove(&number) {
            connection.cut.notify_one();
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    fn stalled(&self) -> Option<Instant> {
        *self.stalled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_stalled(&self, since: Option<Instant>) {
        *self.stalled.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}

impl Held {
    /// Resolves when the connection has to make room.
    pub(crate) async fn cut(&self) {
        self.connection.cut.notified().await;
    }

    /// The stream of the connection, with a limit for writes that make no progress.
    pub(crate) fn timed<S>(&self, stream: S, timeout: Duration) -> TimedStream<S> {
        TimedStream { stream, timeout, waiting: None, connection: Arc::clone(&self.connection) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.lock().remove(&self.number);
    }
}

/// A stream whose writes fail if they make no progress.
pub(crate) struct TimedStream<S> {
    stream: S,
    timeout: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    connection: Arc<Connection>,
}

impl<S> TimedStream<S> {
    /// The outcome of a write: an error if it has waited for too long.
    fn timed<T>(&mut self, outcome: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            if self.waiting.take().is_some() {
                self.connection.set_stalled(None);
            }
            return outcome;
        }
        if self.waiting.is_none() {
            self.connection.set_stalled(Some(Instant::now()));
        }
        let timeout = self.timeout;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answer")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.timed(outcome, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.timed(outcome, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.timed(outcome, context)
    }
}
