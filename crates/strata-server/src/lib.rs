//! Strata over HTTP and MCP: the REST routes, the OpenAI-compatible proxy, tools for agents, operations and the OpenAPI document.
//!
//! Deliberately absent: SQL, a concrete store, the command line and the environment. The server gets an
//! [`Engine`](strata_engine::Engine) and uses nothing else. [`wire`] has the types of all answers; routes and tools
//! convert to them, so clients do not depend on the core's types.
//!
//! Start reading at the router module, which lists the layers that a request passes. Then read one file under
//! `routes`: each has the requests, the declaration, the handlers and the tests of a topic. Only the error module
//! knows status codes, only the keys module checks keys, and only the identity module decides for which user a
//! request asks.

mod answers;
mod app;
mod compat;
mod connections;
mod cookies;
mod error;
mod extract;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod identity;
mod inspect;
mod keys;
mod layers;
mod mcp;
mod moment;
mod proxy;
mod room;
mod route;
mod router;
mod routes;
mod serve;
mod settings;
mod telemetry;
#[cfg(test)]
mod testing;
mod throttle;
mod upstream;
pub mod wire;

pub use app::App;
pub use mcp::serve_mcp;
pub use serve::serve;
pub use settings::{
    ModelPattern, NameSources, ProxySettings, Reach, Secret, Settings, UpstreamApi, UpstreamSettings,
    UpstreamUrl,
};
pub use strata_http::{Authorities, ProxyError, Transport};
pub use upstream::forget_kept_chats;
