//! The style sheet, the script and the icon.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::IntoResponse;
use axum::routing::get;

use crate::route::Route;

const STYLE: &str = include_str!("../../assets/inspector.css");
const SCRIPT: &str = include_str!("../../assets/inspector.js");
const ICON: &str = include_str!("../../assets/icon.svg");

pub(super) fn routes() -> Vec<Route> {
    let asset = |path: &'static str, kind: &'static str, content: &'static str| {
        let answer = move || async move { served(kind, content) };
        Route::undocumented(path, get(answer)).open()
    };
    vec![
        asset("/inspect/inspector.css", "text/css; charset=utf-8", STYLE),
        asset("/inspect/inspector.js", "text/javascript; charset=utf-8", SCRIPT),
        asset("/inspect/icon.svg", "image/svg+xml", ICON),
    ]
}

fn served(kind: &'static str, content: &'static str) -> impl IntoResponse {
    // The address does not change with the version, so a browser asks again after an hour.
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "max-age=3600"), (X_CONTENT_TYPE_OPTIONS, "nosniff")], content)
}
