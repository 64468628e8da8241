//! The proxy: an application gets memory by changing one URL.
//!
//! For a chat, in the API of any provider ([`doors`]), the proxy recalls, passes the request on and records
//! ([`chat`]). Any other request of these APIs goes to the upstream unchanged ([`forward`]). [`relay`] passes answers
//! on and reads them, [`recorder`] records. The wire formats are in [`compat::chat`](crate::compat::chat) and beside
//! it, the connections to the upstream are in [`upstream`](crate::upstream).
//!
//! Two rules always hold. Recall that fails or is slow never makes a chat fail, and delays it by at most
//! [`ProxySettings::memory_deadline`](crate::ProxySettings::memory_deadline). A reply is recorded before its end is
//! sent to the client, unless the store fails or a setting says otherwise ([`recorder`]).

mod chat;
mod compaction;
mod decoding;
mod doors;
mod forward;
mod housekeeping;
mod left;
mod locating;
mod models;
mod names;
mod reading;
mod recalled;
mod receiving;
mod recorder;
mod relay;
mod remember;
mod stored;
mod switch;
mod websocket;

use axum::routing::{any, post};

#[cfg(feature = "fuzz")]
pub(crate) use decoding::fuzz as fuzz_bodies;
pub(crate) use left::record_left;
#[cfg(feature = "fuzz")]
pub(crate) use websocket::messages;

use crate::route::{Dialect, Route};

/// The paths with memory, and all other paths of the providers' APIs, which are passed on.
pub(crate) fn routes() -> Vec<Route> {
    use Dialect::{Anthropic, Ollama, OpenAi};
    let also_read =
        |route: Route| Route { handlers: route.handlers.fallback(forward::pass_on_reading), ..route };
    let chats = [
        (Route::new(doors::__path_complete_chat, doors::complete_chat), OpenAi),
        (Route::new(doors::__path_create_response, doors::create_response), OpenAi),
        (Route::new(doors::__path_create_message, doors::create_message), Anthropic),
        (Route::new(doors::__path_ollama_chat, doors::ollama_chat), Ollama),
        (Route::new(doors::__path_ollama_generate, doors::ollama_generate), Ollama),
        (Route::new(doors::__path_azure_chat, doors::azure_chat), OpenAi),
        // Azure's newer paths are OpenAI's own.
        (Route::undocumented("/openai/v1/chat/completions", post(doors::complete_chat)), OpenAi),
        (Route::undocumented("/openai/v1/responses", post(doors::create_response)), OpenAi),
        (Route::undocumented("/openai/responses", post(doors::create_response)), OpenAi),
    ];
    let rest = [
        ("/v1/messages/{*path}", Anthropic),
        ("/v1/{*path}", OpenAi),
        ("/api/{*path}", Ollama),
        ("/openai/{*path}", OpenAi),
    ];
    let chats = chats.map(|(route, dialect)| also_read(route).chats().speaks(dialect));
    let rest =
        rest.map(|(path, dialect)| Route::undocumented(path, any(forward::pass_on)).passes().speaks(dialect));
    // A model may take minutes: chats have time limits of their own.
    chats.into_iter().chain(rest).map(Route::unlimited).collect()
}

#[cfg(test)]
mod tests;
