//! Whether memory takes part in a chat: the switch of a request, and what its key may do.

use axum::http::HeaderMap;
use strata_core::key::KeyScope;
use utoipa::{IntoParams, ToSchema};

use crate::error::ApiError;
use crate::identity::{Caller, header};

const MEMORY_HEADER: &str = "X-Strata-Memory";

/// The headers that only chats read.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "the document's, not the code's: a header is read by hand")]
pub(crate) struct ChatHeaders {
    /// How memory takes part in this call.
    #[param(rename = "X-Strata-Memory", inline, nullable = false)]
    memory: Option<Switch>,
}

/// How memory takes part.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "the document's, not the code's: a header is read by hand")]
pub(crate) enum Switch {
    /// The default: memories are recalled, and the conversation is recorded. If it is asked for, also where a program
    /// seems to ask for itself.
    On,
    /// Nothing is recalled or recorded.
    Off,
    /// Memories are recalled, and nothing is recorded.
    Read,
    /// The conversation is recorded, and nothing is recalled.
    Write,
}

/// The part of memory in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryUse {
    pub(crate) recalls: bool,
    pub(crate) records: bool,
    /// Whether the request says `on`, so that nothing else switches memory off. The other values only narrow what memory does:
    /// a program may send one with all its requests.
    pub(crate) is_asked: bool,
}

impl MemoryUse {
    /// The use that the header asks for, as far as the key allows it.
    pub(crate) fn of(headers: &HeaderMap, caller: &Caller) -> Result<Self, ApiError> {
        let asked = header(headers, MEMORY_HEADER)?.map(|value| value.trim().to_ascii_lowercase());
        let (recalls, records) = match asked.as_deref() {
            None | Some("on") => (true, true),
            Some("off") => (false, false),
            Some("read") => (true, false),
            Some("write") => (false, true),
            Some(_) => {
                return Err(ApiError::invalid(format!(
                    "the header `{MEMORY_HEADER}` is none of `on`, `off`, `read` and `write`; use one"
                )));
            }
        };
        let may = |scope| caller.require(scope).is_ok();
        Ok(Self {
            recalls: recalls && may(KeyScope::Read),
            records: records && may(KeyScope::Write),
            is_asked: asked.as_deref() == Some("on"),
        })
    }

    /// Whether memory has no part at all.
    pub(crate) fn is_off(self) -> bool {
        !self.recalls && !self.records
    }
}
