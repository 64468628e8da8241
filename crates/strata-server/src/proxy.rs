//! The OpenAI-compatible proxy: an application gets memory by changing one URL.
//!
//! For a chat completion, the proxy recalls, passes the request on and records ([`chat`]). Any other request under
//! `/v1` goes to the upstream unchanged ([`forward`]). [`relay`] passes answers on and reads them, [`recorder`]
//! records. The wire format is in [`compat::openai`](crate::compat::openai), the connections to the upstream are in
//! [`upstream`](crate::upstream).
//!
//! Two rules always hold. Memory that fails or is slow never makes a chat fail, and delays it by at most
//! [`ProxySettings::memory_deadline`](crate::ProxySettings::memory_deadline). A reply is recorded before its end is
//! sent to the client.

mod chat;
mod compaction;
mod forward;
mod recorder;
mod relay;

use axum::routing::any;
use strata_core::key::KeyScope::{Read, Write};

use crate::route::{Dialect, Route};

/// Chat completions, which have memory, and all other paths under `/v1`.
pub(crate) fn routes() -> Vec<Route> {
    // A model may take minutes: chats have time limits of their own.
    let chat = Route::new(chat::__path_complete_chat, chat::complete_chat).needs(&[Read, Write]);
    let chat = Route { handlers: chat.handlers.fallback(forward::pass_on_reading), ..chat };
    let rest = Route::undocumented("/v1/{*path}", any(forward::pass_on));
    [chat, rest].map(|route| route.speaks(Dialect::OpenAi).unlimited()).into()
}

#[cfg(test)]
mod tests;
