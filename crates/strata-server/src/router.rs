//! All routes behind one service: what the server serves and what tests call in process.

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::MethodRouter;
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::App;
use crate::error::{ApiError, panicked};
use crate::guard::guarded;
use crate::keys::admitted;
use crate::limits::limited;
use crate::mcp;
use crate::routes;
use crate::telemetry::observed;

/// A path and what it answers to.
pub(crate) type Route = (&'static str, MethodRouter<App>);

/// The routes over `app`, with everything around them: ids, logs, meters, the check of `Host` and `Origin`, keys, limits,
/// and JSON for whatever goes wrong.
pub fn router(app: App) -> Router {
    let api = collect(routes::api())
        .merge(collect(routes::mem0::routes()))
        .route("/mcp", mcp::over_http(&app))
        .layer(from_fn_with_state(app.clone(), limited));
    // The last layer added is the outermost: an answer to a panic or a foreign host has an id and is counted too.
    // A model may take minutes: chats have time-outs of their own.
    api.merge(collect(crate::proxy::routes()))
        .merge(collect(routes::operations()))
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(app.clone(), admitted))
        .layer(from_fn_with_state(app.clone(), guarded))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(routes::detail::detailed))
        .layer(from_fn_with_state(app.clone(), observed))
        .with_state(app)
}

fn collect(routes: Vec<Route>) -> Router<App> {
    routes.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods))
}

async fn unknown_route() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "unknown_route",
        "there is no such route; `GET /` lists those there are",
    )
}

/// The answer to a method that a route does not have.
pub(crate) async fn wrong_method(method: Method) -> ApiError {
    let shown: String = method.as_str().chars().take(32).collect();
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        format!("this route does not answer to `{shown}`; the `Allow` header lists what it answers to"),
    )
}

#[cfg(test)]
mod tests;
