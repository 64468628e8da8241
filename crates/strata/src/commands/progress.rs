//! Progress bars: on stderr, and hidden where it is not a terminal.

use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use strata::config::StoreUrl;
use strata_core::{Result, Store};
use strata_import::Transferred;
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

/// A bar for a store that is copied into another one.
pub(super) fn copy_bar() -> ProgressBar {
    let bar = bar("{spinner} {bar:40} {pos}/{len} turns and memories, {msg} {eta}");
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Shows how far a copy has come. `all` is the number of all turns and memories.
pub(super) fn show_copied(bar: &ProgressBar, done: &Transferred, all: u64) {
    bar.set_length(all);
    bar.set_position(done.turns + done.memories);
    bar.set_message(format!("{} users", done.users));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_a_total_and_comes_to_it() {
        let bar = ProgressBar::hidden();
        show_copied(&bar, &Transferred { turns: 3, memories: 1, ..Transferred::default() }, 9);
        assert_eq!((bar.position(), bar.length()), (4, Some(9)));
    }
}
