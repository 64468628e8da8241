//! All routes as one service, for the server and for tests that call it in process.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::middleware::{from_fn_with_state, map_request};
use axum::{Extension, Router};
use serde_json::Value;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::PropagateRequestIdLayer;
use tower_http::set_header::SetRequestHeaderLayer;

use crate::app::App;
use crate::compat::mem0;
use crate::error::{panicked, unknown_route, wrong_method};
use crate::layers::{admitted, guarded, limited, observed, translated};
use crate::route::{Route, Rules};
use crate::routes::openapi::{Document, document};
use crate::telemetry::REQUEST_ID;
use crate::upstream::with_plain_path;
use crate::{inspect, mcp, proxy, routes};

/// Every route of the server.
pub(crate) fn all() -> Vec<Route> {
    [routes::routes(), inspect::routes(), mem0::routes(), mcp::routes(), proxy::routes()]
        .into_iter()
        .flatten()
        .collect()
}

static RULES: LazyLock<HashMap<String, Rules>> =
    LazyLock::new(|| all().into_iter().map(|route| (route.path, route.rules)).collect());

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| document(&all()));

/// The routes over `app`, with the layers around them. A request passes the layers in this order:
///
/// 1. `observed` measures the request and writes its log line.
/// 2. The request gets an id, which its answer carries unless a handler has set another.
/// 3. `translated` puts a failure into the dialect of the route.
/// 4. A panic becomes an answer.
/// 5. `guarded` checks `Host` and `Origin`, and answers browsers from allowed origins (CORS).
/// 6. `admitted` checks the key, its scopes and its own limits.
/// 7. `limited` waits for a permit and sets the time limit, on routes with limits.
pub(crate) fn router(app: App) -> Router {
    let (with_limits, without): (Vec<Route>, Vec<Route>) =
        all().into_iter().partition(|route| route.is_limited);
    let ids = app.clone();
    let next_id = move |_: &Request| HeaderValue::from_str(&ids.engine().next_id().to_string()).ok();
    // The last layer added is the outermost.
    let routes = collect(with_limits)
        .layer(from_fn_with_state(app.clone(), limited))
        .merge(collect(without))
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(Extension(Document(&DOCUMENT)))
        .layer(from_fn_with_state((app.clone(), &*RULES), admitted))
        .layer(from_fn_with_state(app.clone(), guarded))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(&*RULES, translated))
        .layer(PropagateRequestIdLayer::new(REQUEST_ID))
        // A client's own id is overwritten: ids are unique, and the log contains nothing that a client wrote.
        .layer(SetRequestHeaderLayer::overriding(REQUEST_ID, next_id))
        .layer(from_fn_with_state(app.clone(), observed))
        .with_state(app);
    // A path is made plain before it is matched, so that the same path means the same here and at the upstream.
    Router::new().fallback_service(routes).layer(map_request(|request| async { with_plain_path(request) }))
}

fn collect(routes: Vec<Route>) -> Router<App> {
    routes.into_iter().fold(Router::new(), |router, route| router.route(&route.path, route.handlers))
}

#[cfg(test)]
mod tests;
