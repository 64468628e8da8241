//! `GET /`: what is here. The inspector will take its place.

use axum::Json;
use axum::routing::get;
use serde::Serialize;
use utoipa::ToSchema;

use super::openapi;
use crate::router::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![("/", get(index))]
}

/// What is here.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IndexResponse {
    /// `strata`.
    name: &'static str,
    /// Its version.
    version: &'static str,
    /// Each as `METHOD /path`; `/openapi.json` says more.
    routes: Vec<String>,
}

/// List the routes
#[utoipa::path(get, path = "/", tag = "operations",
    responses((status = 200, description = "what is here", body = IndexResponse)))]
async fn index() -> Json<IndexResponse> {
    let routes = openapi::operations().into_iter().map(|(method, path)| format!("{method} {path}")).collect();
    Json(IndexResponse { name: "strata", version: env!("CARGO_PKG_VERSION"), routes })
}

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    #[tokio::test]
    async fn the_index_names_the_routes() {
        insta::assert_snapshot!("index", TestServer::new().get("/").await.shown());
    }
}
