//! The inspector: what is stored, what was asked, and what would be shown, as pages for a person.
//!
//! The pages are rendered on the server and work without a script; one small script adds search while typing. A page uses
//! the parts of the engine, as the routes do, and shows at most about 100 kB: lists have pages, and long texts are
//! shortened with a link to the rest. Everything that is stored is hostile input: templates escape it, and the content
//! security policy allows no script or style but the two files of [`assets`]. [`guard`] has cookies, form tokens and the
//! check of origins; [`frame`] is what all pages share. Start reading at [`frame::Visitor`], then at `memories`, which is a
//! whole page in one file.

mod assets;
mod charts;
mod clip;
mod diff;
mod frame;
mod guard;
mod jobs;
mod memories;
mod memory;
mod overview;
mod report;
mod request;
mod requests;
mod session;
mod sessions;
mod sign_in;
#[cfg(test)]
mod tests;
mod try_it;
mod turn;

pub(crate) use frame::{FrameSlot, failure_page};
pub(crate) use guard::{prefers_html, refused};
pub(crate) use overview::overview_address;

use axum::routing::any;

use crate::route::Route;

pub(crate) fn routes() -> Vec<Route> {
    let pages = [
        assets::routes,
        sign_in::routes,
        overview::routes,
        sessions::routes,
        session::routes,
        turn::routes,
        memories::routes,
        memory::routes,
        requests::routes,
        request::routes,
        jobs::routes,
        try_it::routes,
        report::routes,
    ];
    // Every other address below `/inspect` gets a page that says so.
    let unknown = Route::undocumented("/inspect/{*rest}", any(frame::unknown_page)).inspects();
    pages.into_iter().flat_map(|routes| routes()).chain([unknown]).collect()
}
