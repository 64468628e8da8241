//! The routes, one a file.

pub(crate) mod context;
pub(crate) mod detail;
pub(crate) mod filters;
pub(crate) mod health;
pub(crate) mod index;
pub(crate) mod jobs;
pub(crate) mod mem0;
pub(crate) mod memories;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod openapi;
pub(crate) mod params;
pub(crate) mod points;
pub(crate) mod prompt;
pub(crate) mod requests;
pub(crate) mod search;
pub(crate) mod sessions;
pub(crate) mod state;
pub(crate) mod summaries;
pub(crate) mod trace;
pub(crate) mod turns;
pub(crate) mod vocabulary;

use crate::router::Route;

/// What clients call, under the limits.
pub(crate) fn api() -> Vec<Route> {
    [
        turns::routes(),
        sessions::routes(),
        prompt::routes(),
        summaries::routes(),
        points::routes(),
        context::routes(),
        state::routes(),
        memories::routes(),
        memory::routes(),
        search::routes(),
        requests::routes(),
        jobs::routes(),
    ]
    .concat()
}

/// What operators call, also while the server is full.
pub(crate) fn operations() -> Vec<Route> {
    [index::routes(), health::routes(), metrics::routes(), openapi::routes()].concat()
}
