//! `GET /`: the list of routes.

use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;

use super::openapi::Document;
use crate::route::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(__path_index, index).needs(&[]).unlimited()]
}

/// The list of routes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IndexResponse {
    /// `strata`.
    name: &'static str,
    /// Its version.
    version: &'static str,
    /// Each as `METHOD /path`. `/openapi.json` describes them.
    routes: Vec<String>,
}

/// List the routes
#[utoipa::path(get, path = "/", tag = "operations",
    responses((status = 200, description = "the routes", body = IndexResponse)))]
async fn index(Extension(document): Extension<Document>) -> Json<IndexResponse> {
    let routes = document.operations().into_iter().map(|(method, path)| format!("{method} {path}")).collect();
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
