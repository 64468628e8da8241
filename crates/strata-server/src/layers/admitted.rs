//! The check of keys, before any route.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::route::{Rules, RulesByPath};

/// Lets a request pass with its identity, or answers why not. The rules of its route say which scopes the key needs.
pub(crate) async fn admitted(
    State((app, rules)): State<(App, RulesByPath)>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(scopes) = Rules::of(&request, rules).access.scopes(request.method()) else {
        return next.run(request).await;
    };
    let parts = (app.engine(), app.settings());
    match app.keys().admit(parts, scopes, request.headers()).await {
        Ok((identity, permit)) => {
            request.extensions_mut().insert(identity);
            let response = next.run(request).await;
            match permit {
                Some(permit) => permit.hold(response),
                None => response,
            }
        }
        Err(error) => error.into_response(),
    }
}
