//! Progress bars: on stderr, and hidden where it is not a terminal.

use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use strata::config::StoreUrl;
use strata_core::{Result, Store};
use strata_vault::Progress;

/// Fewer files than these are read before a bar could be seen.
const FEW_FILES: usize = 500;

/// A bar with a template of `indicatif`.
pub(super) fn bar(template: &str) -> ProgressBar {
    let bar = ProgressBar::new(0);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A bar that shows how many files of a vault have been read.
pub(super) fn of_files() -> (ProgressBar, Progress) {
    let bar = bar("{bar:40} {pos}/{len} files {per_sec} {eta}");
    let shown = bar.clone();
    let progress: Progress = Arc::new(move |done, all| {
        if all >= FEW_FILES {
            shown.set_length(all as u64);
            shown.set_position(done as u64);
        }
    });
    (bar, progress)
}

/// Opens a store, with a bar while the index of a vault is built.
pub(super) async fn open_store(url: &StoreUrl) -> Result<Arc<dyn Store>> {
    let (bar, progress) = of_files();
    let opened = strata::open_store_with(url, Some(progress)).await;
    bar.finish_and_clear();
    opened
}
