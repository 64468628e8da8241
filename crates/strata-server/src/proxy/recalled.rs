//! The outcome of memory for one chat, as the headers of its answer tell it.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;

use crate::telemetry::tell_unreadable;

const ITEMS: HeaderName = HeaderName::from_static("x-strata-memory-items");
const TOKENS: HeaderName = HeaderName::from_static("x-strata-memory-tokens");
const RECORDED: HeaderName = HeaderName::from_static("x-strata-memory-recorded");
const REASON: HeaderName = HeaderName::from_static("x-strata-memory-reason");

/// The share of the prompt that is the same as before, see `stable_share` in [`upstream`](crate::upstream).
const STABLE_PREFIX: HeaderName = HeaderName::from_static("x-strata-stable-prefix");

/// The block in front of a question.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recalled {
    pub(crate) block: Option<String>,
    pub(crate) items: u32,
    pub(crate) tokens: u32,
    /// Why there is no block.
    pub(crate) why_nothing: Option<WhyNothing>,
    /// The stored items of the user that are damaged and were passed over.
    pub(crate) unreadable: u64,
}

impl Recalled {
    pub(crate) fn nothing(why: WhyNothing) -> Self {
        Self { why_nothing: Some(why), ..Self::default() }
    }

    /// Tells the outcome in the headers of an answer.
    pub(crate) fn tell(&self, recorded: Recorded, response: &mut Response) {
        let headers = response.headers_mut();
        headers.insert(ITEMS, self.items.into());
        headers.insert(TOKENS, self.tokens.into());
        headers.insert(RECORDED, HeaderValue::from_static(recorded.as_str()));
        if let Some(why) = self.why_nothing {
            headers.insert(REASON, HeaderValue::from_static(why.as_str()));
        }
        tell_unreadable(self.unreadable, response);
    }
}

/// Whether a chat is recorded, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
pub(crate) enum Recorded {
    /// It is not recorded.
    #[strum(serialize = "false")]
    Never,
    /// Before its end is passed on.
    #[strum(serialize = "true")]
    BeforeTheEnd,
    /// Perhaps after its end is passed on: as the settings say, when the client fetches it, or when the store works again.
    #[strum(serialize = "later")]
    Later,
}

impl Recorded {
    fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why nothing was put in front of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum WhyNothing {
    /// The request or its key switches memory off.
    Off,
    /// The request or its key only records.
    WriteOnly,
    /// A program asks for itself: for a title, for tags.
    Housekeeping,
    /// The request asks nothing in words.
    NoQuestion,
    /// Nothing good enough is known.
    NothingFound,
    /// Recall took longer than the deadline.
    Late,
    /// Recall failed.
    Failed,
    /// The store fails, and there is no room left for chats that cannot be recorded.
    StoreFails,
    /// The connection is no request with an answer.
    #[strum(serialize = "websocket")]
    WebSocket,
    /// The model writes a text, but not in a chat.
    NotAChat,
    /// The body is compressed in a way that Strata does not read.
    Compressed,
    /// Nothing good enough is known in this conversation, and it is a wall: memories of others are hidden.
    Wall,
}

impl WhyNothing {
    fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Tells the share of the prompt that stayed as it was.
pub(crate) fn tell_stable(share: f64, response: &mut Response) {
    if let Ok(share) = HeaderValue::from_str(&format!("{share:.3}")) {
        response.headers_mut().insert(STABLE_PREFIX, share);
    }
}
