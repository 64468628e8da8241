//! Strata over HTTP and MCP: the REST routes, tools for agents, operations and the OpenAPI document.
//!
//! What is deliberately absent: SQL, a concrete store, the command line and the environment. The server is handed an
//! [`Engine`](strata_engine::Engine) and talks to nothing else. Wire types live beside their routes and are converted at the
//! edge, so that no client freezes the core.
//!
//! Start reading at [`router()`], then at one file under `routes`: each holds a route's request, response, handler and
//! tests together. Status codes exist in the error module only; which keys are good is decided in the keys module
//! only, for whom a request asks in the identity module only.

mod app;
mod error;
mod extract;
mod guard;
mod identity;
mod keys;
mod limits;
mod mcp;
mod moment;
mod proxy;
mod router;
mod routes;
mod serve;
mod telemetry;
#[cfg(test)]
mod testing;
mod throttle;

/// What the routes answer where the command line prints the same.
pub mod wire {
    pub use crate::routes::points::PointResponse;
    pub use crate::routes::requests::TracedRequestResponse;
    pub use crate::routes::summaries::SummaryResponse;
    pub use crate::routes::trace::{ExplanationResponse, TraceResponse};
}

pub use app::{App, Reach, Settings};
pub use mcp::serve_mcp;
pub use proxy::{ProxySettings, Secret, UpstreamUrl};
pub use router::router;
pub use serve::serve;
