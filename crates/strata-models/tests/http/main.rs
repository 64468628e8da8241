//! The HTTP client against a real socket.

#![allow(clippy::unwrap_used, reason = "a test's own functions")]

mod chat;
mod pull;
mod remote;
mod server;
