//! The answers that are being sent, and the memory that they take.
//!
//! A client that asks for large answers and does not read them has the server hold them. The answers under way may take
//! [`Settings::max_bytes_under_way`](crate::Settings::max_bytes_under_way) together: when they take more, a large answer is
//! dropped for a `503`, new requests wait, and the connections that have stalled longest are cut off. Small answers are not
//! counted. Start reading at [`Answers::send`].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use tokio::sync::Notify;

use crate::error::ApiError;

/// A smaller answer is not counted: as many as there may be connections take little memory.
const LARGE: usize = 64 * 1024;

/// The answers under way. Cloning it is cheap.
#[derive(Clone)]
pub(crate) struct Answers(Arc<Inner>);

struct Inner {
    most: usize,
    held: AtomicUsize,
    /// Told when there is no more room, and when there is some again.
    crowded: Notify,
    freed: Notify,
}

/// A part of the room, freed when it is dropped.
struct Room {
    answers: Answers,
    bytes: usize,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.answers.0.held.fetch_sub(self.bytes, Ordering::SeqCst);
        self.answers.0.freed.notify_waiters();
    }
}

/// The bytes of an answer, until the last of them is sent.
struct Held {
    bytes: Bytes,
    _room: Room,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Answers {
    pub(crate) fn new(most: usize) -> Self {
        let (held, crowded, freed) = (AtomicUsize::new(0), Notify::new(), Notify::new());
        Self(Arc::new(Inner { most, held, crowded, freed }))
    }

    /// The answer as it is sent: counted if it is large, or a refusal if there is no room for it.
    pub(crate) fn send(&self, response: Response) -> Response {
        let bytes = usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX);
        if bytes < LARGE {
            return response;
        }
        let Some(room) = self.take(bytes) else {
            self.0.crowded.notify_one();
            return ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "too many large answers wait for clients that do not read them (setting `max_bytes_under_way`); try again",
            )
            .retryable()
            .into_response();
        };
        let mut room = Some(room);
        response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                frame.map_data(|bytes| match room.take() {
                    Some(_room) => Bytes::from_owner(Held { bytes, _room }),
                    None => bytes,
                })
            }))
        })
    }

    /// Takes room for an answer. An answer that is larger than all the room is sent alone.
    fn take(&self, bytes: usize) -> Option<Room> {
        let fits = |held: usize| (held == 0 || held + bytes <= self.0.most).then_some(held + bytes);
        self.0.held.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits).ok()?;
        if self.is_full() {
            self.0.crowded.notify_one();
        }
        Some(Room { answers: self.clone(), bytes })
    }

    /// Whether no further large answer has room: a sixteenth of it is kept free.
    fn is_full(&self) -> bool {
        self.0.held.load(Ordering::SeqCst) > self.0.most - self.0.most / 16
    }

    /// The bytes of large answers that are being sent.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.0.held.load(Ordering::SeqCst)
    }

    /// Waits until there is room for an answer.
    pub(crate) async fn room(&self) {
        loop {
            let freed = self.0.freed.notified();
            if !self.is_full() {
                return;
            }
            freed.await;
        }
    }

    /// Waits until there is no room for an answer.
    pub(crate) async fn crowded(&self) {
        while !self.is_full() {
            self.0.crowded.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(bytes: usize) -> Response {
        Response::new(Body::from(vec![b'x'; bytes]))
    }

    async fn first_bytes(response: Response) -> Bytes {
        response.into_body().frame().await.unwrap().unwrap().into_data().unwrap()
    }

    #[tokio::test]
    async fn an_answer_takes_room_until_its_last_byte_is_sent() {
        let answers = Answers::new(4 * LARGE);
        let first = first_bytes(answers.send(answer(3 * LARGE))).await;
        assert_eq!(answers.send(answer(2 * LARGE)).status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answers.send(answer(10)).status(), StatusCode::OK, "a small answer is not counted");
        let part = first.slice(5..9);
        drop(first);
        assert_eq!(answers.send(answer(2 * LARGE)).status(), StatusCode::SERVICE_UNAVAILABLE);
        drop(part);
        assert_eq!(answers.send(answer(2 * LARGE)).status(), StatusCode::OK);
        assert_eq!(answers.0.held.load(Ordering::SeqCst), 0, "an answer that is never sent frees its room");
        assert_eq!(answers.send(answer(9 * LARGE)).status(), StatusCode::OK, "alone it may be larger");
    }

    #[tokio::test]
    async fn requests_wait_for_room() {
        let answers = Answers::new(LARGE);
        answers.room().await;
        let held = first_bytes(answers.send(answer(LARGE))).await;
        answers.crowded().await;
        let waiting = tokio::spawn({
            let answers = answers.clone();
            async move { answers.room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(held);
        waiting.await.unwrap();
    }
}
