//! The OpenAI-compatible proxy: an application gets memory by changing one URL.
//!
//! A chat completion is recalled for, passed on and recorded ([`chat`]); anything else under `/v1` goes to the upstream as
//! it came ([`forward`]). [`relay`] passes answers on and reads them, [`recorder`] records. The wire format is in
//! [`compat::openai`](crate::compat::openai), the connections to the upstream are in [`upstream`](crate::upstream).
//!
//! Two rules hold throughout. Memory that fails or is slow never fails a chat, and delays it by no more than
//! [`ProxySettings::memory_deadline`](crate::ProxySettings::memory_deadline). A reply whose end a client has seen is recorded
//! before that end is sent.

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
