//! The limits of one key: a bucket of requests that fills up with time, and a count of running requests.
//!
//! Only keys with limits are counted. The time comes from the `Clock` port.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use jiff::Timestamp;
use strata_core::KeyId;
use strata_core::key::ApiKey;

use crate::error::ApiError;

/// With more keys than this, idle keys are removed: a full bucket equals a new one.
const MAX_AT_REST: usize = 1_000;

/// The recent requests of all keys with limits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Throttle(Arc<Mutex<HashMap<KeyId, Usage>>>);

#[derive(Debug, Clone, Copy)]
struct Usage {
    /// The requests that are allowed now; at most those of one minute.
    left: f64,
    /// When this number was computed.
    at: Timestamp,
    /// The running requests.
    running: u32,
}

impl Usage {
    /// Adds the requests that the time since then allows. A clock that went back adds none.
    fn refill(&mut self, per_minute: u32, now: Timestamp) {
        let seconds = now.duration_since(self.at).as_secs_f64().max(0.0);
        self.left = (self.left + seconds * f64::from(per_minute) / 60.0).min(f64::from(per_minute));
        self.at = self.at.max(now);
    }
}

impl Throttle {
    fn lock(&self) -> MutexGuard<'_, HashMap<KeyId, Usage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request of `key` until the permit is dropped, or returns when to try again.
    pub(crate) fn enter(&self, key: &ApiKey, now: Timestamp) -> Result<Option<Permit>, ApiError> {
        let limits = key.limits;
        if limits.per_minute.is_none() && limits.concurrent.is_none() {
            return Ok(None);
        }
        let mut keys = self.lock();
        if keys.len() > MAX_AT_REST && !keys.contains_key(&key.id) {
            // A minute without a request fills any bucket.
            keys.retain(|_, usage| usage.running > 0 || now.duration_since(usage.at).as_secs() < 60);
        }
        let full = f64::from(limits.per_minute.unwrap_or(0));
        let usage = keys.entry(key.id).or_insert(Usage { left: full, at: now, running: 0 });
        if let Some(most) = limits.concurrent.filter(|most| usage.running >= *most) {
            let message = format!(
                "{most} requests of this key are under way, which is its limit; wait until one of them ends"
            );
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_at_once", message).after(1));
        }
        if let Some(per_minute) = limits.per_minute {
            usage.refill(per_minute, now);
            if usage.left < 1.0 {
                let seconds = ((1.0 - usage.left) * 60.0 / f64::from(per_minute)).ceil().max(1.0) as u32;
                let message =
                    format!("this key may ask {per_minute} times a minute; ask again in {seconds} s");
                return Err(
                    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message).after(seconds)
                );
            }
            usage.left -= 1.0;
        }
        usage.running += 1;
        Ok(Some(Permit { throttle: self.clone(), key: key.id }))
    }
}

/// One running request of a key with limits. It ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    throttle: Throttle,
    key: KeyId,
}

impl Permit {
    /// Holds the permit until the whole answer is sent: a stream counts as running until its end.
    pub(crate) fn hold(self, response: Response) -> Response {
        response.map(|body| Body::new(Held { body, _permit: self }))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(usage) = self.throttle.lock().get_mut(&self.key) {
            usage.running = usage.running.saturating_sub(1);
        }
    }
}

/// An answer's body with its permit.
struct Held {
    body: Body,
    _permit: Permit,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use strata_core::UserId;
    use strata_core::key::{KeyHash, KeyLimits, Scopes};
    use uuid::Uuid;

    use super::*;

    fn key(id: u128, per_minute: Option<u32>, concurrent: Option<u32>) -> ApiKey {
        ApiKey {
            id: KeyId(Uuid::from_u128(id)),
            user: UserId::default(),
            name: None,
            scopes: Scopes::ALL,
            hash: KeyHash([0; 32]),
            prefix: String::new(),
            created_at: at(0),
            expires_at: None,
            revoked_at: None,
            limits: KeyLimits { per_minute, concurrent },
            recall_scope: None,
        }
    }

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(1_700_000_000_000 + millisecond).unwrap()
    }

    /// The answer's `Retry-After`; none where the request may come in.
    fn wait(throttle: &Throttle, key: &ApiKey, millisecond: i64) -> Option<String> {
        let refused = throttle.enter(key, at(millisecond)).err()?.into_response();
        assert_eq!(refused.status(), 429);
        Some(refused.headers()["retry-after"].to_str().unwrap().to_owned())
    }

    #[test]
    fn a_bucket_fills_up_with_time() {
        let (throttle, key, other) = (Throttle::default(), key(1, Some(3), None), key(2, Some(3), None));
        for _ in 0..3 {
            assert_eq!(wait(&throttle, &key, 0), None);
        }
        assert_eq!(wait(&throttle, &key, 0).as_deref(), Some("20"));
        assert_eq!(wait(&throttle, &key, 12_500).as_deref(), Some("8"), "what is refused costs nothing");
        assert_eq!(wait(&throttle, &other, 12_500), None, "keys are counted apart");
        assert_eq!(wait(&throttle, &key, 20_000), None);
        assert_eq!(wait(&throttle, &key, 20_000).as_deref(), Some("20"));
        assert_eq!(
            wait(&throttle, &key, 1_000).as_deref(),
            Some("20"),
            "a clock that went back brings nothing"
        );
        for _ in 0..3 {
            assert_eq!(wait(&throttle, &key, 3_600_000), None, "no more than a minute's worth is saved up");
        }
        assert!(wait(&throttle, &key, 3_600_000).is_some());
    }

    #[test]
    fn requests_at_once_are_counted_until_they_end() {
        let (throttle, key) = (Throttle::default(), key(1, None, Some(2)));
        let one = throttle.enter(&key, at(0)).unwrap();
        let two = throttle.enter(&key, at(0)).unwrap();
        assert_eq!(wait(&throttle, &key, 0).as_deref(), Some("1"));
        let streamed = two.unwrap().hold(Response::new(Body::from("a stream")));
        assert_eq!(wait(&throttle, &key, 0).as_deref(), Some("1"), "the answer is still being sent");
        drop(streamed);
        assert_eq!(wait(&throttle, &key, 0), None);
        drop(one);
        assert_eq!(wait(&throttle, &key, 0), None);
    }

    #[test]
    fn keys_at_rest_are_forgotten_and_those_without_limits_never_counted() {
        let throttle = Throttle::default();
        assert!(throttle.enter(&key(0, None, None), at(0)).unwrap().is_none());
        let held = throttle.enter(&key(1, None, Some(1)), at(0)).unwrap();
        for id in 2..=MAX_AT_REST as u128 + 1 {
            assert_eq!(wait(&throttle, &key(id, Some(1), None), 0), None);
        }
        assert_eq!(wait(&throttle, &key(9_999, Some(1), None), 60_000), None);
        assert_eq!(throttle.lock().len(), 2, "the one under way and the new one");
        drop(held);
    }
}
