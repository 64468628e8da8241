//! Strata over HTTP and MCP: the REST routes, the OpenAI-compatible proxy, tools for agents, operations and the OpenAPI document.
//!
//! What is deliberately absent: SQL, a concrete store, the command line and the environment. The server is handed an
//! [`Engine`](strata_engine::Engine) and talks to nothing else. [`wire`] has the types of all answers; routes and tools convert at
//! the edge, so no client freezes the core.
//!
//! Start reading at [`router()`], which lists the layers that a request passes, then at one file under `routes`: each has the
//! requests, the declaration, the handlers and the tests of a topic. Status codes exist in the error module only, keys are
//! checked in the keys module only, and the identity module alone decides for which user a request asks.

mod app;
mod compat;
mod error;
mod extract;
mod identity;
mod keys;
mod layers;
mod mcp;
mod moment;
mod proxy;
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
pub use router::router;
pub use serve::serve;
pub use settings::{ProxySettings, Reach, Secret, Settings, UpstreamUrl};
