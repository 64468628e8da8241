//! `GET /`: the inspector for a browser, the list of routes for a program.

use axum::http::header::{ACCEPT, VARY};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;

use super::openapi::Document;
use crate::inspect::{overview_address, prefers_html};
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
///
/// A client that accepts HTML before JSON, as browsers do, is led to the inspector at `/inspect` instead.
#[utoipa::path(get, path = "/", tag = "operations",
    responses((status = 200, description = "the routes", body = IndexResponse),
        (status = 303, description = "a browser is led to the inspector")))]
async fn index(uri: Uri, headers: HeaderMap, Extension(document): Extension<Document>) -> Response {
    if prefers_html(&headers) {
        return ([(VARY, ACCEPT)], Redirect::to(&overview_address(&uri))).into_response();
    }
    let routes = document.operations().into_iter().map(|(method, path)| format!("{method} {path}")).collect();
    let index = IndexResponse { name: "strata", version: env!("CARGO_PKG_VERSION"), routes };
    ([(VARY, ACCEPT)], Json(index)).into_response()
}

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    #[tokio::test]
    async fn the_index_names_the_routes() {
        insta::assert_snapshot!("index", TestServer::new().get("/").await.shown());
    }
}
