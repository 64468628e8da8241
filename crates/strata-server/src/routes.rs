//! Strata's own routes, one topic a file.

pub(crate) mod context;
pub(crate) mod health;
pub(crate) mod index;
pub(crate) mod jobs;
pub(crate) mod memories;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod openapi;
pub(crate) mod params;
pub(crate) mod points;
pub(crate) mod prompt;
pub(crate) mod report;
pub(crate) mod requests;
pub(crate) mod search;
pub(crate) mod sessions;
pub(crate) mod state;
pub(crate) mod summaries;
pub(crate) mod turns;
pub(crate) mod users;

use crate::route::Route;

pub(crate) fn routes() -> Vec<Route> {
    let topics = [
        turns::routes,
        sessions::routes,
        prompt::routes,
        summaries::routes,
        points::routes,
        context::routes,
        state::routes,
        memories::routes,
        memory::routes,
        search::routes,
        requests::routes,
        report::routes,
        jobs::routes,
        users::routes,
        index::routes,
        health::routes,
        metrics::routes,
        openapi::routes,
    ];
    topics.into_iter().flat_map(|routes| routes()).collect()
}
